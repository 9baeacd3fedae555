//! Which work used the cluster, and how did it go?

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::Serialize;

use super::past::Wanted;
use super::scope::{self, Scope, WorkloadName};
use super::{AnswerError, World, mask};
use crate::history::workloads::{Workload, workloads};
use crate::history::{Outcome, Summary};
use crate::model::{History, Idle, Notice};
use crate::text;

/// By what workloads are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// What they held, a GPU counted as 16 cores: the most first.
    #[default]
    Cost,
    /// Runs that failed or hung.
    Failures,
    /// The share of these.
    Rate,
    /// The last start.
    Recent,
    /// Runs.
    Runs,
    /// The name.
    Name,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Which history.
    pub past: Wanted,
    /// The order.
    pub sort: Sort,
    /// How many workloads to tell of; `None` for all.
    pub limit: Option<usize>,
}

/// The workloads of a window.
#[derive(Debug, Serialize)]
pub struct Overview {
    /// `jobwise/overview/1`.
    pub schema: &'static str,
    /// Whose, and when.
    #[serde(flatten)]
    pub scope: Scope,
    /// All of them together.
    pub total: Sums,
    /// How many workloads there are.
    pub workload_count: usize,
    /// The order of the rows.
    pub sort: Sort,
    /// The workloads, as many as were asked for.
    pub workloads: Vec<WorkloadRow>,
    /// The workloads that are not told of, together.
    pub rest: Sums,
    /// Jobs and tasks of arrays that wait: in no sum.
    pub waiting: u64,
    /// Refused, or cancelled while they waited: they held nothing and are in no sum.
    pub never_started: u64,
    /// Open records that the scheduler no longer knows: in no sum.
    pub stale: u64,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// What a number of runs come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sums {
    /// Runs that held something and are over.
    pub runs: u64,
    /// Of these: completed.
    pub completed: u64,
    /// Ended badly.
    pub failed: u64,
    /// Cancelled by somebody.
    pub cancelled: u64,
    /// Made way for others, or were put back into the queue.
    pub preempted: u64,
    /// Ended in a state that is not known here.
    pub other: u64,
    /// Held their cores and did nothing; in one of the other counts too. `None` where none is known
    /// to have and some may: only steps tell.
    pub hung: Option<u64>,
    /// Did nothing with what they held: hung, or held GPUs that stayed at 0 %; in one of the other
    /// counts too. `None` as of `hung`.
    pub idle: Option<u64>,
    /// Of these: completed all the same, which is what `stats` tells of those that did nothing.
    pub idle_completed: u64,
    /// Lasted long enough to have hung, and what they did is not known.
    pub unjudged: u64,
    /// Failed or did nothing, as far as is known, each once.
    pub flagged: u64,
    /// Run now: in none of the other counts.
    pub running: u64,
    /// The share of those that failed or did nothing.
    pub flagged_rate: Option<f64>,
    /// Failed runs among those that completed or failed: what `stats` tells.
    pub failure_rate: Option<f64>,
    /// Core-hours; `None` where no record says what its run held.
    pub core_hours: Option<f64>,
    /// GPU-hours; `None` where no record says whether its run held any.
    pub gpu_hours: Option<f64>,
    /// Core-hours of those that failed or did nothing.
    pub wasted_core_hours: Option<f64>,
    /// GPU-hours of those that failed or did nothing.
    pub wasted_gpu_hours: Option<f64>,
    /// Runs whose record does not say what they held: in no hours.
    pub unrecorded: u64,
    /// The share of the use of all runs, a GPU counted as 16 cores.
    pub cost_share: Option<f64>,
    /// The start of the first.
    pub first: Option<Timestamp>,
    /// The start of the last.
    pub last: Option<Timestamp>,
}

/// A workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadRow {
    /// Which.
    #[serde(flatten)]
    pub name: WorkloadName,
    /// How it went.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Ranks the workloads of a window.
pub fn overview(world: World<'_>, question: &Question) -> Result<Overview, AnswerError> {
    let idle = scope::idle(world.config);
    let (history, _) = scope::read_with_few_steps(world, &question.past, &idle)?;
    let scope = Scope::of(world, &question.past.filter, &history);
    Ok(report(&history, &idle, scope, question))
}

fn report(history: &History, idle: &Idle, scope: Scope, question: &Question) -> Overview {
    let mut ranked: Vec<(Workload, Summary)> = workloads(history)
        .into_iter()
        .map(|workload| {
            let mut summary = Summary::default();
            workload.runs(history).for_each(|run| summary.add(run, idle));
            (workload, summary)
        })
        .collect();
    let mut total = Summary::default();
    for (_, summary) in &ranked {
        total.merge(summary);
    }
    rank(&mut ranked, question.sort);
    let workload_count = ranked.len();
    let shown = question.limit.unwrap_or(usize::MAX).min(workload_count);
    let mut rest = Summary::default();
    ranked[shown..].iter().for_each(|(_, summary)| rest.merge(summary));
    let cost = total.cost();
    let rows = ranked[..shown].iter().map(|(workload, summary)| WorkloadRow {
        name: WorkloadName::of(workload, history),
        sums: Sums::of(summary, cost),
    });
    let (mut waiting, mut never_started) = (0, 0);
    for run in &history.runs {
        match Outcome::of_run(run) {
            Outcome::Pending => waiting += run.id(&history.names).tasks().unwrap_or(1),
            Outcome::NeverStarted => never_started += 1,
            _ => {}
        }
    }
    let mut notices = history.notices.clone();
    if total.unrecorded > 0 {
        let runs = text::count(total.unrecorded, "run");
        let text = format!("{runs} not recorded with what it held or how long: in no hours");
        notices.push(Notice::warning("unrecorded-allocation", text));
    }
    Overview {
        schema: "jobwise/overview/1",
        scope,
        total: Sums::of(&total, cost),
        workload_count,
        sort: question.sort,
        workloads: rows.collect(),
        rest: Sums::of(&rest, cost),
        waiting,
        never_started,
        stale: history.runs.iter().filter(|run| run.stale).count() as u64,
        notices: mask::notices(notices),
    }
}

/// Puts the first first; workloads that are alike stay in the order of their names.
pub(super) fn rank(ranked: &mut [(Workload, Summary)], sort: Sort) {
    match sort {
        Sort::Cost => ranked.sort_by_key(|(_, summary)| Reverse(summary.cost())),
        Sort::Failures => ranked.sort_by_key(|(_, summary)| Reverse(summary.flagged)),
        Sort::Rate => ranked.sort_by(|(_, a), (_, b)| {
            let rate = |summary: &Summary| scope::share(summary.flagged, summary.ended);
            rate(b).partial_cmp(&rate(a)).unwrap_or(std::cmp::Ordering::Equal)
        }),
        Sort::Recent => ranked.sort_by_key(|(_, summary)| Reverse(summary.last)),
        Sort::Runs => ranked.sort_by_key(|(_, summary)| Reverse(summary.ended)),
        Sort::Name => {}
    }
}

impl Sums {
    fn of(summary: &Summary, cost: u64) -> Self {
        // Of no run nothing was held, and nothing is known where every run is unrecorded.
        let known = |unrecorded: u64, seconds: u64| {
            (unrecorded < summary.ended || summary.ended == 0).then(|| scope::hours(seconds))
        };
        Self {
            runs: summary.ended,
            completed: summary.completed,
            failed: summary.failed,
            cancelled: summary.cancelled,
            preempted: summary.preempted,
            other: summary.other,
            hung: summary.known_hung(),
            idle: summary.known_idle(),
            idle_completed: summary.idle_completed,
            unjudged: summary.unjudged,
            flagged: summary.flagged,
            running: summary.running,
            flagged_rate: scope::share(summary.flagged, summary.ended),
            failure_rate: scope::share(summary.failed, summary.failed + summary.completed),
            core_hours: known(summary.unrecorded, summary.core_seconds),
            gpu_hours: known(summary.unrecorded_gpus, summary.gpu_seconds),
            wasted_core_hours: known(summary.unrecorded, summary.wasted_core_seconds),
            wasted_gpu_hours: known(summary.unrecorded_gpus, summary.wasted_gpu_seconds),
            unrecorded: summary.unrecorded,
            cost_share: scope::share(summary.cost(), cost),
            first: scope::moment(summary.first),
            last: scope::moment(summary.last),
        }
    }
}
