//! `eval`: what to measure, on what, and what has to be reached.

use super::failure::{Exit, Failure};
use super::{Printer, args, usage};
use crate::answer::evaluate::{self, SearchWanted, SuiteWanted, Wanted};
use crate::answer::{self, World};
use crate::eval::{Split, Thresholds};

pub(super) fn evaluate(
    world: World<'_>,
    args: &args::Eval,
    printer: &Printer,
) -> Result<Exit, Failure> {
    if let Some(suite) = args.suite {
        return measure_suite(world, suite, args, printer);
    }
    let split = match args.split {
        args::Split::Open => Split::Open,
        args::Split::Blind => Split::Blind,
        args::Split::All => Split::All,
    };
    let wanted = Wanted {
        files: args.files.clone(),
        split,
        results: args.results.clone(),
        calibrate: args.calibrate,
        baseline: args.baseline,
        leave_one_out: args.leave_one_out,
        thresholds: Thresholds {
            min_accuracy: args.min_accuracy,
            min_recall_at_1: args.min_recall_at_1,
            max_false_alarms: args.max_false_alarms,
        },
    };
    let evaluation = answer::evaluate::evaluate(world, &wanted)?;
    printer.print(&evaluation)?;
    Ok(if evaluation.is_passed() {
        Exit::Answered
    } else if evaluation.has_no_case() {
        Exit::Usage
    } else {
        Exit::No
    })
}

fn measure_suite(
    world: World<'_>,
    suite: args::Suite,
    args: &args::Eval,
    printer: &Printer,
) -> Result<Exit, Failure> {
    if let args::Suite::Retrieval = suite {
        return measure_search(world, args, printer);
    }
    let retrieval_only = args.results.is_some()
        || !args.queries.is_empty()
        || args.min_recall_at_1.or(args.min_hidden_at_1).or(args.min_gain).is_some();
    if retrieval_only {
        let message = "--results, --queries, --min-recall-at-1, --min-hidden-at-1 and --min-gain are \
                       of no suite but \"retrieval\"";
        return Err(usage(message.to_owned(), "see: jobwise eval --help"));
    }
    let wanted = SuiteWanted {
        suite: match suite {
            args::Suite::Negatives => evaluate::Suite::Negatives,
            args::Suite::Mutations => evaluate::Suite::Mutations,
            args::Suite::Cascades => evaluate::Suite::Cascades,
            args::Suite::Messages | args::Suite::Retrieval => evaluate::Suite::Messages,
        },
        files: args.files.clone(),
        seed: args.seed,
        jobs: args.jobs,
        padding: args.padding.saturating_mul(1_000_000),
        min_right: args.min_right,
        max_false_alarms: args.max_false_alarms,
    };
    let report = evaluate::suite(world, &wanted)?;
    printer.print(&report)?;
    Ok(if report.is_passed() { Exit::Answered } else { Exit::No })
}

fn measure_search(world: World<'_>, args: &args::Eval, printer: &Printer) -> Result<Exit, Failure> {
    let wanted = SearchWanted {
        files: args.files.iter().chain(&args.queries).cloned().collect(),
        results: args.results.clone(),
        min_known: args.min_recall_at_1,
        min_hidden: args.min_hidden_at_1,
        min_gain: args.min_gain,
    };
    let report = evaluate::retrieval(world, &wanted)?;
    printer.print(&report)?;
    Ok(if report.is_passed() { Exit::Answered } else { Exit::No })
}
