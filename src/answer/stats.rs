//! How much fails, why, and what does that waste?
//!
//! Sums and causes come from the records alone unless the logs are asked for too; those of the runs
//! that held most are read then, so many and no more. What is not recorded is in no sum.

mod amount;
mod logs;
#[cfg(test)]
pub(crate) mod tests;

use jiff::Timestamp;
use serde::Serialize;

use super::scope::Scope;
use super::{AnswerError, World};
use crate::classify::{Facts, Rules, decide};
use crate::history::{Carbon, Held, Method, Outcome, Outcomes, Tally};
use crate::knowledge::Notes;
use crate::model::{BaseState, History, Job, Notice, Outcome as Judged, Verdict};
use crate::sched::{Filter, SchedError};
use crate::text;

pub use amount::{Amount, AssumptionRow, EnergyNotes, Estimate, Rate};
pub(super) use amount::{Meter, by_waste, rate};
use logs::Candidates;
pub use logs::LogsRead;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Whose jobs, and which window.
    pub filter: Filter,
    /// How energy is worked out.
    pub method: Method,
    /// Watts of a GPU, over the settings.
    pub gpu_watts: Option<u32>,
    /// Watts of a core, over the settings.
    pub cpu_watts: Option<u32>,
    /// Carbon intensity, over the settings.
    pub carbon: Option<Carbon>,
    /// Of how many failed runs the logs are read: those that held most; `None` for no logs.
    pub logs: Option<usize>,
}

/// The runs that ended in a window.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// `jobwise/stats/1`.
    pub schema: &'static str,
    /// Begin of the window.
    pub since: Timestamp,
    /// End of the window, not included.
    pub until: Timestamp,
    /// Whose runs; `None` for everybody's.
    pub users: Option<Vec<String>>,
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
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let Notes { families, errors: broken, .. } = world.notes()?;
    let rules = Rules::new(families);
    let mut tally = Tally::default();
    let mut failed = Candidates::new(question.logs.unwrap_or(0));
    let mut notices = source.each(&question.filter, &mut |job| {
        // Runs whose logs may be read wait until they were; the others are done with.
        let done = if Outcome::of(&job) == Outcome::Failed { failed.offer(job) } else { vec![job] };
        for job in &done {
            tally.add(job, |job| cause(&rules, job));
        }
    })?;
    let not_asked = failed.left_out;
    let read = logs::read(world, &backend, &question.filter, failed.finish(), &mut tally, &rules)?;
    let scope = Scope::of(world, &question.filter, &History::default());
    let meter = Meter::new(world.config, question, tally.names_gpus);
    let mut report = report(&tally, &meter, question.logs.is_some());
    report.logs = question.logs.is_some().then(|| read.told(not_asked, &meter));
    (report.since, report.until, report.users) = (scope.since, scope.until, scope.users);
    notices.extend(read.notices);
    notices.extend(broken.iter().map(super::left_out));
    report.notices.splice(0..0, notices);
    Ok(report)
}

/// The cause that the record alone names, by the rules of `diagnose`; where no family fits, a
/// state that says itself what happened.
pub(super) fn cause(rules: &Rules, job: &Job) -> Option<String> {
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

/// The report on a tally; whose it is and of when stands in the question.
fn report(tally: &Tally, meter: &Meter, by_logs: bool) -> Stats {
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
        since: Timestamp::UNIX_EPOCH,
        until: Timestamp::UNIX_EPOCH,
        users: None,
        failure_rate: rate(runs.failed, runs.completed),
        used: meter.amount(&all),
        wasted: meter.amount(&outcomes.held(&[Outcome::Failed])),
        cancelled: meter.amount(&outcomes.held(&[Outcome::Cancelled])),
        preempted: meter.amount(&outcomes.held(&[Outcome::Preempted, Outcome::Requeued])),
        logs: None,
        causes,
        unknown_exits,
        partitions,
        energy: meter.notes(&all),
        notices: notices(&runs, &all, tally, by_logs),
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
pub(super) fn no_cause(unknown: u64, failed: u64, by_logs: bool) -> Notice {
    let (who, hint) = if by_logs {
        ("neither the record nor a log that was read", "jobwise diagnose JOB reads all of its logs")
    } else {
        (
            "the record alone",
            "--logs reads the logs of those that held most; diagnose JOB those of one",
        )
    };
    let of = text::count(failed, "failed run");
    let names = format!("{who} names a cause for {unknown} of {of}");
    let text = if by_logs { names } else { names.replace("names a cause", "names no cause") };
    Notice::info("cause-not-recorded", text).hint(hint)
}

fn notices(runs: &Runs, all: &Held, tally: &Tally, by_logs: bool) -> Vec<Notice> {
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
        notices.push(no_cause(unknown.runs, runs.failed, by_logs));
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
