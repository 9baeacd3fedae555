//! How much fails, why, and what does that waste?
//!
//! Sums and causes come from the records alone unless the logs are asked for too: then those of so
//! many failed runs are read and no more, first of those whose record names no cause, and of these
//! first of those that held most. What is not recorded is in no sum.

mod amount;
mod logs;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;

use serde::Serialize;

use super::past::Wanted;
use super::scope::{self, Scope};
use super::{AnswerError, World, mask};
use crate::classify::{Facts, Rules, decide};
use crate::history::{Carbon, Held, Method, Outcome, Outcomes, Tally};
use crate::knowledge::Notes;
use crate::model::{
    BaseState, Exit, History, Job, Notice, Outcome as Judged, Run, Symbol, Verdict,
};
use crate::sched::SchedError;
use crate::text;

pub use amount::{Amount, AssumptionRow, EnergyNotes, Estimate, Measured, Rate};
pub(super) use amount::{Meter, by_waste, counter, rate};
pub use logs::LogsRead;
use logs::{Candidate, Candidates};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Which history.
    pub past: Wanted,
    /// How energy is worked out.
    pub method: Method,
    /// Watts of a GPU, over the settings.
    pub gpu_watts: Option<u32>,
    /// Watts of a core, over the settings.
    pub cpu_watts: Option<u32>,
    /// Carbon intensity, over the settings.
    pub carbon: Option<Carbon>,
    /// Of how many failed runs the logs are read: first of those whose record names no cause, and of
    /// these first of those that held most; `None` for no logs.
    pub logs: Option<usize>,
}

/// The runs that ended in a window.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// `jobwise/stats/1`.
    pub schema: &'static str,
    /// Whose, and when.
    #[serde(flatten)]
    pub scope: Scope,
    /// How they ended.
    pub runs: Runs,
    /// Failed runs among those that completed or failed.
    pub failure_rate: Rate,
    /// What all ended runs held.
    pub used: Amount,
    /// What the failed ones of them held: the most that their failures can have wasted.
    pub wasted: Amount,
    /// What those held that somebody cancelled.
    pub cancelled: Amount,
    /// What those held that made way for others, or were put back into the queue.
    pub preempted: Amount,
    /// What those held that completed and did nothing: idle cores, or GPUs at 0 %; `None` where only
    /// steps could tell and were not asked for.
    pub idle: Option<Amount>,
    /// What the logs added, where they were asked for.
    pub logs: Option<LogsRead>,
    /// Failed runs by cause, the most energy first.
    pub causes: Vec<CauseRow>,
    /// How the runs of no known cause exited, the most frequent first.
    pub unknown_exits: Vec<ExitRow>,
    /// By partition, the most wasted energy first.
    pub partitions: Vec<PartitionRow>,
    /// How energy was worked out.
    pub energy: EnergyNotes,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Runs by how they ended. Each run of a requeued job counts, and each task of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// Held nodes and ended in the window: the sum of the next six.
    pub ended: u64,
    /// The last command of the script returned zero.
    pub completed: u64,
    /// Ended badly: failed, out of time or memory, or for a node.
    pub failed: u64,
    /// Cancelled by somebody.
    pub cancelled: u64,
    /// Made way for another job.
    pub preempted: u64,
    /// Put back into the queue.
    pub requeued: u64,
    /// Ended in a state that jobwise does not know.
    pub other: u64,
    /// Refused, or cancelled or overdue while waiting: no runs at all.
    pub never_started: u64,
    /// Has not ended.
    pub running: u64,
    /// Waits; those tasks of an array that wait are one record.
    pub pending: u64,
    /// Completed, but a step failed.
    pub completed_with_failed_step: u64,
}

/// A cause of failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseRow {
    /// A family, a state, or `unknown`: the record alone names none.
    pub cause: String,
    /// What its runs held.
    pub wasted: Amount,
}

/// A way to exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitRow {
    /// In words.
    pub exit: String,
    /// The runs.
    pub runs: u64,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionRow {
    /// Its name; `None` where the record names none.
    pub partition: Option<String>,
    /// Its failure rate.
    pub failure_rate: Rate,
    /// What its ended runs held.
    pub used: Amount,
    /// What its failed runs held.
    pub wasted: Amount,
}

/// Sums over the runs of a window.
pub fn stats(world: World<'_>, question: &Question) -> Result<Stats, AnswerError> {
    let Notes { families, errors: broken, .. } = world.notes()?;
    let rules = Rules::new(families);
    let saved = !question.past.files.is_empty();
    let mut folded = if saved {
        of_files(world, question, &rules)?
    } else {
        of_the_cluster(world, question, &rules)?
    };
    let Folded { tally, counter, .. } = &folded;
    let meter = Meter::new(world.config, question, tally.names_gpus, counter.clone());
    let mut report = report(tally, &meter, question, folded.scope.clone());
    report.idle = saved.then(|| meter.amount(&tally.idle));
    report.logs = question.logs.is_some().then(|| folded.logs.told(&meter));
    folded.notices.append(&mut folded.logs.notices);
    folded.notices.extend(broken.iter().map(super::left_out));
    report.notices.splice(0..0, mask::notices(folded.notices));
    Ok(report)
}

/// The sums over a history, and how they came about.
struct Folded {
    tally: Tally,
    logs: logs::Sums,
    /// What counts energy there, where that is known.
    counter: Option<String>,
    scope: Scope,
    notices: Vec<Notice>,
}

/// Record by record, while the scheduler prints them.
fn of_the_cluster(
    world: World<'_>,
    question: &Question,
    rules: &Rules,
) -> Result<Folded, AnswerError> {
    let filter = &question.past.filter;
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let mut tally = Tally::default();
    let mut failed = Candidates::new(question.logs.unwrap_or(0));
    let mut nothing = true;
    let mut notices = source.each(filter, &mut |job| {
        nothing = false;
        if Outcome::of(&job) != Outcome::Failed {
            tally.add(&job, |_| None);
            return;
        }
        let cause = cause(rules, &job);
        // Runs whose logs may be read wait until they were; the others are done with.
        for Candidate { job, cause } in failed.offer(Candidate { job, cause }) {
            tally.add(&job, |_| cause);
        }
    })?;
    notices.extend(scope::nothing_matches(filter, nothing));
    let logs = logs::read(world, &backend, filter, failed, &mut tally)?;
    let counter = counter(Some(source), &tally.all().held(&Outcome::ENDED));
    let scope = Scope::of(world, filter, &History::default());
    Ok(Folded { tally, logs, counter, scope, notices })
}

/// Files tell of runs, and nobody says whose meters counted their energy.
fn of_files(world: World<'_>, question: &Question, rules: &Rules) -> Result<Folded, AnswerError> {
    let history = scope::read(world, &question.past)?;
    let mut tally = Tally::default();
    let mut causes = RunCauses::new(rules);
    let idle = scope::idle(world.config);
    for run in &history.runs {
        tally.add_run(run, &history, &idle, |run| causes.of(run, &history));
    }
    let scope = Scope::of(world, &question.past.filter, &history);
    let logs = logs::Sums::default();
    Ok(Folded { tally, logs, counter: None, scope, notices: history.notices })
}

/// The causes that the records of runs alone name. What decides is the same for most of them.
struct RunCauses<'r> {
    rules: &'r Rules,
    known: HashMap<Deciding, Option<String>>,
}

/// What a run's record has that decides.
type Deciding = (BaseState, Option<Exit>, Option<Exit>, bool, Option<Symbol>);

impl<'r> RunCauses<'r> {
    fn new(rules: &'r Rules) -> Self {
        Self { rules, known: HashMap::new() }
    }

    fn of(&mut self, run: &Run, history: &History) -> Option<String> {
        let facts = (run.state, run.exit, run.derived_exit, run.out_of_memory, run.reason);
        let ask = || cause(self.rules, &run.as_job(&history.names));
        self.known.entry(facts).or_insert_with(ask).clone()
    }
}

/// The cause that the record alone names, by the rules of `diagnose`; where no family fits, a
/// state that says itself what happened.
fn cause(rules: &Rules, job: &Job) -> Option<String> {
    let facts = Facts { job: Some(job), logs: Vec::new(), logs_complete: false };
    let by_state = || job.state.word().to_ascii_lowercase();
    let says_why = job.state.base != BaseState::Failed;
    family(decide(rules, &facts)).or_else(|| says_why.then(by_state))
}

/// The family of the first cause; `None` where the verdict names none.
fn family(verdict: Verdict) -> Option<String> {
    let first = verdict.causes.into_iter().next();
    first.filter(|_| verdict.outcome == Judged::Cause).map(|first| first.family.0)
}

/// The report on a tally.
fn report(tally: &Tally, meter: &Meter, question: &Question, scope: Scope) -> Stats {
    let outcomes = tally.all();
    let all = outcomes.held(&Outcome::ENDED);
    let runs = runs(&outcomes, tally.failed_steps);
    let mut causes: Vec<CauseRow> = tally
        .causes
        .iter()
        .map(|(cause, held)| CauseRow {
            cause: cause.clone().unwrap_or_else(|| "unknown".to_owned()),
            wasted: meter.amount(held),
        })
        .collect();
    causes.sort_by(|a, b| by_waste(&a.wasted, &b.wasted).then_with(|| a.cause.cmp(&b.cause)));
    let mut partitions: Vec<PartitionRow> = tally
        .partitions
        .iter()
        .filter_map(|(name, outcomes)| partition(meter, name.as_deref(), outcomes))
        .collect();
    partitions
        .sort_by(|a, b| by_waste(&a.wasted, &b.wasted).then_with(|| a.partition.cmp(&b.partition)));
    let mut unknown_exits: Vec<ExitRow> = tally
        .exits
        .iter()
        .map(|(exit, runs)| ExitRow { exit: exit.clone(), runs: *runs })
        .collect();
    unknown_exits.sort_by(|a, b| b.runs.cmp(&a.runs).then_with(|| a.exit.cmp(&b.exit)));
    Stats {
        schema: "jobwise/stats/1",
        scope,
        failure_rate: rate(runs.failed, runs.completed),
        used: meter.amount(&all),
        wasted: meter.amount(&outcomes.held(&[Outcome::Failed])),
        cancelled: meter.amount(&outcomes.held(&[Outcome::Cancelled])),
        preempted: meter.amount(&outcomes.held(&[Outcome::Preempted, Outcome::Requeued])),
        idle: None,
        logs: None,
        causes,
        unknown_exits,
        partitions,
        energy: meter.notes(&all),
        notices: notices(&runs, &all, tally, question)
            .into_iter()
            .chain(meter.left_out(&all))
            .collect(),
        runs,
    }
}

fn runs(outcomes: &Outcomes, failed_steps: u64) -> Runs {
    let count = |outcome| outcomes.runs(outcome);
    Runs {
        ended: outcomes.held(&Outcome::ENDED).runs,
        completed: count(Outcome::Completed),
        failed: count(Outcome::Failed),
        cancelled: count(Outcome::Cancelled),
        preempted: count(Outcome::Preempted),
        requeued: count(Outcome::Requeued),
        other: count(Outcome::Other),
        never_started: count(Outcome::NeverStarted),
        running: count(Outcome::Running),
        pending: count(Outcome::Pending),
        completed_with_failed_step: failed_steps,
    }
}

/// A partition in which something ended.
fn partition(meter: &Meter, name: Option<&str>, outcomes: &Outcomes) -> Option<PartitionRow> {
    let used = outcomes.held(&Outcome::ENDED);
    (used.runs > 0).then(|| PartitionRow {
        partition: name.map(str::to_owned),
        failure_rate: rate(outcomes.runs(Outcome::Failed), outcomes.runs(Outcome::Completed)),
        used: meter.amount(&used),
        wasted: meter.amount(&outcomes.held(&[Outcome::Failed])),
    })
}

/// Runs whose cause is not known, and what would say more.
fn no_cause(unknown: u64, failed: u64, question: &Question) -> Notice {
    let cause = format!("cause for {unknown} of {}", text::count(failed, "failed run"));
    let (said, hint) = if question.logs.is_some() {
        let hint = "jobwise diagnose JOB reads all of its logs";
        (format!("neither the record nor a log that was read names a {cause}"), Some(hint))
    } else {
        let hint =
            "--logs reads their logs, of those that held most first; diagnose JOB those of one";
        // Where the logs of a file's runs are it does not say.
        let hint = question.past.files.is_empty().then_some(hint);
        (format!("the record alone names no {cause}"), hint)
    };
    let notice = Notice::info("cause-not-recorded", said);
    hint.into_iter().fold(notice, Notice::hint)
}

fn notices(runs: &Runs, all: &Held, tally: &Tally, question: &Question) -> Vec<Notice> {
    let mut notices = Vec::new();
    if all.unrecorded > 0 {
        notices.push(Notice::warning(
            "unrecorded-allocation",
            format!(
                "{} not recorded with what it held or how long: in no sum of hours or energy",
                text::count(all.unrecorded, "ended run"),
            ),
        ));
    }
    if all.without_memory > 0 {
        notices.push(Notice::info(
            "unrecorded-memory",
            format!("the memory of {} is not recorded", text::count(all.without_memory, "run")),
        ));
    }
    if runs.other > 0 {
        notices.push(Notice::warning(
            "unknown-state",
            format!("{} in a state that jobwise does not know", text::count(runs.other, "run")),
        ));
    }
    if let Some(unknown) = tally.causes.get(&None) {
        notices.push(no_cause(unknown.runs, runs.failed, question));
    }
    if runs.completed_with_failed_step > 0 {
        let completed = text::count(runs.completed_with_failed_step, "completed run");
        notices.push(Notice::info(
            "failed-step",
            format!("{completed} had a step that failed, and count as completed"),
        ));
    }
    notices
}
