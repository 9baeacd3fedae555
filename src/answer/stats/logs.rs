//! The logs of failed runs: what they name as the cause, and since when nothing was saved any more.
//!
//! Runs whose record names no cause come first, for of the others the cause is known; of both those
//! that held most. Bounded: so many runs, their records asked for a hundred at a time and their scripts not at all,
//! and of each log so much. Whatever was not read is counted.

use std::cmp::Reverse;

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use super::amount::{Amount, Meter};
use super::family;
use crate::answer::diagnose::{Engine, Hints, Shared, by_its_logs};
use crate::answer::{AnswerError, World};
use crate::history::{Held, Tally, cost};
use crate::model::{Job, JobId, Notice};
use crate::sched::{Backend, Filter, SchedError};

/// So much of one log: a quarter of it at the beginning, the rest at the end.
const BYTES: u64 = 16 << 20;
/// A scheduler is asked for so many records at once.
const AT_ONCE: usize = 100;

/// What came of reading the logs of failed runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogsRead {
    /// Failed runs of which a log was read.
    pub read: u64,
    /// Of these, runs whose record alone named no cause but whose logs do.
    pub named: u64,
    /// Runs of which no log could be found or read.
    pub without: u64,
    /// Runs whose logs were not looked for: beyond the bound.
    pub not_tried: u64,
    /// Of these, runs whose record names no cause: they held less than those that were read.
    pub not_tried_without_cause: u64,
    /// At most so many bytes of each log were read.
    pub bytes_of_each: u64,
    /// What the runs held whose logs tell when they last saved a checkpoint.
    pub with_checkpoint: Amount,
    /// What those held after it: what they really lost.
    pub after_checkpoint: Amount,
}

/// A failed run, and the cause that its record names.
pub(super) struct Candidate {
    pub(super) job: Job,
    pub(super) cause: Option<String>,
}

/// The failed runs whose logs are worth most.
pub(super) struct Candidates {
    most: usize,
    kept: Vec<Candidate>,
    /// The others, and those of them without a cause.
    left_out: [u64; 2],
}

impl Candidates {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Vec::new(), left_out: [0, 0] }
    }

    /// Takes a failed run, and gives back those that are none of the chosen any more.
    pub(super) fn offer(&mut self, run: Candidate) -> Vec<Candidate> {
        self.kept.push(run);
        // Of none nothing waits.
        if self.most > 0 && self.kept.len() < 2 * self.most + 64 { Vec::new() } else { self.cut() }
    }

    fn cut(&mut self) -> Vec<Candidate> {
        self.kept.sort_by_cached_key(|Candidate { job, cause }| {
            (cause.is_some(), Reverse(weight(job)), job.id.to_string(), job.started.get())
        });
        let rest = self.kept.split_off(self.most.min(self.kept.len()));
        self.left_out[0] += rest.len() as u64;
        self.left_out[1] += rest.iter().filter(|run| run.cause.is_none()).count() as u64;
        rest
    }
}

/// What a run held, in one number.
fn weight(job: &Job) -> u64 {
    let seconds = job.elapsed.get().map_or(0, crate::model::Span::as_seconds);
    let held = |count: Option<u64>| count.unwrap_or(0).saturating_mul(seconds);
    cost(held(job.cpus.get()), held(job.allocated.gpus()))
}

/// The sums of what was read.
#[derive(Default)]
pub(super) struct Sums {
    read: u64,
    named: u64,
    without: u64,
    not_tried: [u64; 2],
    with_checkpoint: Held,
    after_checkpoint: Held,
    pub(super) notices: Vec<Notice>,
}

impl Sums {
    pub(super) fn told(&self, meter: &Meter) -> LogsRead {
        LogsRead {
            read: self.read,
            named: self.named,
            without: self.without,
            not_tried: self.not_tried[0],
            not_tried_without_cause: self.not_tried[1],
            bytes_of_each: BYTES,
            with_checkpoint: meter.amount(&self.with_checkpoint),
            after_checkpoint: meter.amount(&self.after_checkpoint),
        }
    }
}

/// Reads the logs of runs, and adds all of them to the tally: those with logs by what these say.
pub(super) fn read(
    world: World<'_>,
    backend: &Backend<'_>,
    filter: &Filter,
    mut failed: Candidates,
    tally: &mut Tally,
) -> Result<Sums, AnswerError> {
    for Candidate { job, cause } in failed.cut() {
        tally.add(&job, |_| cause);
    }
    let Candidates { kept: runs, left_out: not_tried, .. } = failed;
    let mut told = Sums { not_tried, ..Sums::default() };
    if runs.is_empty() {
        return Ok(told);
    }
    let Some(source) = backend.jobs.as_ref() else { return Ok(told) };
    let (engine, _) = Engine::start(world)?;
    let engine = engine.up_to(BYTES);
    let (shared, hints) = (Shared::new(world), Hints::default());
    let cluster = filter.clusters.first().filter(|_| filter.clusters.len() == 1);
    let zone = world.cluster.zone();
    for runs in runs.chunks(AT_ONCE) {
        let mut ids: Vec<JobId> = runs
            .iter()
            .map(|run| JobId { cluster: cluster.cloned(), ..run.job.id.clone() })
            .collect();
        // Of a requeued job several runs may be among them.
        ids.sort_by_cached_key(ToString::to_string);
        ids.dedup();
        let records = match source.several(&ids) {
            Ok(found) => found.value,
            // A recording holds the answers on single jobs.
            Err(SchedError::NotRecorded { .. } | SchedError::NotInDemo(_)) => {
                ids.iter().filter_map(|id| source.job(id).ok()).flat_map(|job| job.value).collect()
            }
            Err(error) => {
                let text = format!("records of failed runs could not be had: {error}");
                told.notices.push(Notice::warning("no-records", text));
                Vec::new()
            }
        };
        // Of a job that was requeued each run has a record, and the log belongs to one of them.
        let of = |run: &Job| {
            let same = |record: &&Job| {
                JobId { cluster: None, ..record.id.clone() } == run.id
                    && record.started == run.started
            };
            records.iter().find(same)
        };
        let judged: Vec<_> = runs
            .par_iter()
            .map(|run| {
                of(&run.job).and_then(|job| by_its_logs(&engine, &shared, backend, job, &hints))
            })
            .collect();
        for (Candidate { job, cause: by_record }, judged) in runs.iter().zip(judged) {
            let by_record = by_record.clone();
            let Some(judged) = judged else {
                told.without += 1;
                tally.add(job, |_| by_record);
                continue;
            };
            told.read += 1;
            let by_logs = family(judged.verdict);
            told.named += u64::from(by_record.is_none() && by_logs.is_some());
            tally.add(job, |_| by_logs.or(by_record));
            let saved = judged.checkpoint.and_then(|at| at.to_zoned_datetime(zone.clone()).ok());
            if let Some(after) = saved.and_then(|at| since(job, at.timestamp())) {
                told.with_checkpoint.merge(&Held::at_the_end(job, u64::MAX));
                told.after_checkpoint.merge(&Held::at_the_end(job, after));
            }
        }
    }
    Ok(told)
}

/// Seconds from a checkpoint to the end; `None` where it was not saved in this run.
fn since(run: &Job, saved: Timestamp) -> Option<u64> {
    let (started, ended) = (run.started.get()?, run.ended.get()?);
    let within = started <= saved && saved <= ended;
    within.then(|| u64::try_from(ended.duration_since(saved).as_secs()).ok())?
}
