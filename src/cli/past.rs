//! `jobs`, `stats`, `overview`, `sizing`, `patterns`, `reliability`, `export`: many runs, and which.

use jiff::Timestamp;

use super::args::{self, Command, EnergyMethod, ExportFormat};
use super::failure::{Exit, Failure};
use super::{Printer, note, print_csv, state_of, usage};
use crate::answer::breakdown::{By, breakdown_by};
use crate::answer::overview::{self, Sort};
use crate::answer::past::Wanted;
use crate::answer::stats::Question;
use crate::answer::{self, World, export, sizing};
use crate::history::reliability::Metric;
use crate::history::sizing::Basis;
use crate::history::{Carbon, Method};
use crate::render::Format;
use crate::sched::{Depth, Filter, Users};

/// The history that a command is about, where the demo cluster answers it with that of 90 days: logs
/// are only of the recorded jobs.
pub(super) fn of_the_demo(command: &mut Command) -> Option<&mut args::Past> {
    let past = match command {
        Command::Overview(args) => &mut args.past,
        Command::Sizing(args) => &mut args.past,
        Command::Patterns(args) => &mut args.past,
        Command::Reliability(args) => &mut args.past,
        Command::Export(args) => &mut args.past,
        Command::Stats(args) if args.logs.is_none() => &mut args.past,
        Command::Health(args) if args.history => &mut args.past,
        _ => return None,
    };
    past.from.is_empty().then_some(past)
}

pub(super) fn jobs(
    world: World<'_>,
    args: &args::Jobs,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let jobs = answer::jobs::jobs(world, &filter(world, args)?, limit(args.limit))?;
    printer.print(&jobs)?;
    Ok(Exit::Answered)
}

pub(super) fn overview(
    world: World<'_>,
    args: &args::Overview,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let question = overview::Question {
        past: wanted(world, &args.past, depth(args.steps))?,
        sort: sort(args.sort),
        limit: limit(args.limit),
    };
    printer.print(&overview::overview(world, &question)?)?;
    Ok(Exit::Answered)
}

pub(super) fn sizing(
    world: World<'_>,
    args: &args::Sizing,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let question = sizing::Question {
        past: wanted(world, &args.past, depth(args.steps))?,
        workloads: args.workloads.clone(),
        risk: args.risk.unwrap_or(Basis::RISK),
        sort: sort(args.sort),
        limit: limit(args.limit),
        all: args.all,
    };
    let sized = sizing::sized(world, &question)?;
    printer.print(&sized)?;
    let unknown = sized.workload_count == 0 && !args.workloads.is_empty();
    Ok(if unknown { Exit::No } else { Exit::Answered })
}

pub(super) fn patterns(
    world: World<'_>,
    args: &args::Patterns,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let history = wanted(world, &args.past, Depth::Allocations)?;
    printer.print(&answer::patterns::patterns_of(world, &history, limit(args.limit))?)?;
    Ok(Exit::Answered)
}

pub(super) fn reliability(
    world: World<'_>,
    args: &args::Reliability,
    printer: &Printer,
) -> Result<Exit, Failure> {
    // Only steps know whether something happened in a run.
    let (metric, depth) = match args.metric {
        args::Metric::Failure => (Metric::Failure, Depth::Allocations),
        args::Metric::Hang => (Metric::Hang, Depth::Steps),
    };
    let history = wanted(world, &args.past, depth)?;
    printer.print(&answer::reliability::nodes(world, &history, metric, limit(args.limit))?)?;
    Ok(Exit::Answered)
}

pub(super) fn export(
    world: World<'_>,
    args: &args::Export,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let depth = depth(!args.no_steps);
    let layout = match args.format {
        ExportFormat::Ndjson => export::Layout::Lines,
        ExportFormat::Csv => export::Layout::Table,
    };
    let export = export::export(world, &wanted(world, &args.past, depth)?, layout)?;
    // What is written is data alone.
    if printer.format == Format::Text {
        export.notices().iter().for_each(|notice| note(&notice.text));
    }
    printer.print(&export)?;
    Ok(Exit::Answered)
}

fn filter(world: World<'_>, args: &args::Jobs) -> Result<Filter, Failure> {
    let (since, until) = window(world, &args.since, &args.until)?;
    let failed = ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"];
    let states = if args.failed {
        failed.map(str::to_owned).into()
    } else {
        let words = args.state.iter().map(|name| Ok(state_of(name)?.word().to_owned()));
        words.collect::<Result<_, Failure>>()?
    };
    Ok(Filter {
        users: users(&args.whose),
        states,
        accounts: args.whose.account.clone(),
        partitions: args.whose.of.partition.clone(),
        qos: Vec::new(),
        clusters: Vec::new(),
        names: args.name.clone(),
        since,
        until,
    })
}

/// The history that a command is about.
pub(super) fn wanted(world: World<'_>, args: &args::Past, depth: Depth) -> Result<Wanted, Failure> {
    let (now, zone) = (world.cluster.now(), world.cluster.zone());
    let live = args.from.is_empty();
    let time = |text: &str| answer::parse_time(text, now, &zone).map_err(answer::AnswerError::from);
    // A file holds what somebody saved; the cluster holds years.
    let since = match args.since.as_deref() {
        Some(text) => time(text)?,
        None if live => time("30d")?,
        None => Timestamp::MIN,
    };
    let until = match args.until.as_deref() {
        Some(text) => time(text)?,
        None if live => now,
        None => Timestamp::MAX,
    };
    let states = args.state.iter().map(|name| Ok(state_of(name)?.word().to_owned()));
    let filter = Filter {
        // Whose jobs the caller's are, only the machine knows that a file is of.
        users: match users(&args.whose) {
            Users::Me if !live => Users::All,
            users => users,
        },
        states: states.collect::<Result<_, Failure>>()?,
        accounts: args.whose.account.clone(),
        partitions: args.whose.of.partition.clone(),
        qos: args.qos.clone(),
        clusters: args.clusters.clone(),
        names: args.name.clone(),
        since,
        until,
    };
    if since >= until {
        let (since, until) = (args.since.as_deref(), args.until.as_deref());
        let message = format!(
            "the window ends before it begins: {} is not before {}",
            since.unwrap_or("30d"),
            until.unwrap_or("now")
        );
        return Err(usage(message, "-S is its begin, -E its end"));
    }
    Ok(Wanted { filter, depth, files: args.from.clone(), columns: args.columns.clone() })
}

fn question(args: &args::Stats, past: Wanted) -> Question {
    Question {
        past,
        logs: args.logs.map(|runs| runs as usize),
        method: match args.method {
            EnergyMethod::Estimate => Method::Estimate,
            EnergyMethod::Flat => Method::Flat,
            EnergyMethod::GreenAlgorithms => Method::GreenAlgorithms,
        },
        gpu_watts: args.gpu_watts,
        cpu_watts: args.cpu_watts,
        carbon: args
            .carbon_intensity
            .map(|grams_per_kwh| Carbon { grams_per_kwh, source: "--carbon-intensity".to_owned() }),
    }
}

fn sort(sort: args::Sort) -> Sort {
    match sort {
        args::Sort::Cost => Sort::Cost,
        args::Sort::Failures => Sort::Failures,
        args::Sort::Rate => Sort::Rate,
        args::Sort::Recent => Sort::Recent,
        args::Sort::Runs => Sort::Runs,
        args::Sort::Name => Sort::Name,
    }
}

fn dimension(by: args::By) -> By {
    match by {
        args::By::Cause => By::Cause,
        args::By::User => By::User,
        args::By::Account => By::Account,
        args::By::Qos => By::Qos,
        args::By::Partition => By::Partition,
        args::By::Gpu => By::Gpu,
        args::By::Week => By::Week,
    }
}

/// The plain statistics, or the sums apart.
pub(super) fn statistics(
    world: World<'_>,
    args: &args::Stats,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let question = question(args, wanted(world, &args.past, depth(args.steps))?);
    let Some(by) = args.by.or(args.format.map(|_| args::By::Partition)) else {
        printer.print(&answer::stats::stats(world, &question)?)?;
        return Ok(Exit::Answered);
    };
    if by != args::By::Cause && args.logs.is_some() {
        let message = "the logs tell causes, and the sums are by something else".to_owned();
        return Err(usage(message, "--by cause, or neither --by nor --format"));
    }
    let sums = breakdown_by(world, &question, dimension(by))?;
    match args.format {
        None => printer.print(&sums)?,
        Some(args::Table::Csv) => print_csv(&sums)?,
    }
    Ok(Exit::Answered)
}

fn depth(steps: bool) -> Depth {
    if steps { Depth::Steps } else { Depth::Allocations }
}

/// Zero is all.
fn limit(limit: usize) -> Option<usize> {
    (limit > 0).then_some(limit)
}

/// The window, with one "now" for both of its ends.
fn window(world: World<'_>, since: &str, until: &str) -> Result<(Timestamp, Timestamp), Failure> {
    let (now, zone) = (world.cluster.now(), world.cluster.zone());
    let time = |text| answer::parse_time(text, now, &zone).map_err(answer::AnswerError::from);
    let (begin, end) = (time(since)?, time(until)?);
    if begin >= end {
        let message = format!("the window ends before it begins: {since} is not before {until}");
        return Err(usage(message, "-S is its begin, -E its end"));
    }
    Ok((begin, end))
}

fn users(whose: &args::Whose) -> Users {
    if whose.all_users {
        Users::All
    } else if whose.user.is_empty() {
        Users::Me
    } else {
        Users::Named(whose.user.clone())
    }
}
