//! The logs of the failed runs that held most: what they name as the cause, and since when nothing
//! was saved any more.
//!
//! Bounded: so many runs, their records asked for a hundred at a time and their scripts not at all,
//! and of each log so much. Whatever was not read is counted.

use jiff::Timestamp;
use rayon::prelude::*;
use serde::Serialize;

use super::amount::{Amount, Meter};
use super::{cause, family};
use crate::answer::diagnose::{Engine, Hints, Shared, by_its_logs};
use crate::answer::{AnswerError, World};
use crate::classify::Rules;
use crate::history::{Held, Tally};
use crate::model::{Job, JobId, Notice};
use crate::sched::{Backend, Filter, SchedError};

/// So much of one log: a quarter of it at the beginning, the rest at the end.
const BYTES: u64 = 16 << 20;
/// A scheduler is asked for so many records at once.
const AT_ONCE: usize = 100;
/// A GPU counts as so many cores, as it does where workloads are ranked.
const CORES_OF_A_GPU: u64 = 16;

/// What came of reading the logs of failed runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogsRead {
    /// Failed runs of which a log was read.
    pub read: u64,
    /// Of these, runs whose record alone named no cause but whose logs do.
    pub named: u64,
    /// Runs of which no log could be found or read.
    pub without: u64,
    /// Runs that held less than those: their logs were not looked for.
    pub not_tried: u64,
    /// At most so many bytes of each log were read.
    pub bytes_of_each: u64,
    /// What the runs held whose logs tell when they last saved a checkpoint.
    pub with_checkpoint: Amount,
    /// What those held after it: what they really lost.
    pub after_checkpoint: Amount,
}

/// The failed runs that held most.
pub(super) struct Candidates {
    most: usize,
    kept: Vec<Job>,
    /// Those that held less.
    pub(super) left_out: u64,
}

impl Candidates {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Vec::new(), left_out: 0 }
    }

    /// Takes a failed run, and gives back those that are none of the most any more.
    pub(super) fn offer(&mut self, job: Job) -> Vec<Job> {
        if self.most == 0 {
            self.left_out += 1;
            return vec![job];
        }
        self.kept.push(job);
        if self.kept.len() < 2 * self.most + 64 { Vec::new() } else { self.cut() }
    }

    fn cut(&mut self) -> Vec<Job> {
        self.kept.sort_by_cached_key(|job| {
            (std::cmp::Reverse(cost(job)), job.id.to_string(), job.started.get())
        });
        let rest = self.kept.split_off(self.most.min(self.kept.len()));
        self.left_out += rest.len() as u64;
        rest
    }

    /// Those that held most, and the others that were still here.
    pub(super) fn finish(mut self) -> (Vec<Job>, Vec<Job>) {
        let rest = self.cut();
        (self.kept, rest)
    }
}

fn cost(job: &Job) -> u64 {
    let seconds = job.elapsed.get().map_or(0, crate::model::Span::as_seconds);
    let gpus = job.allocated.gpus().unwrap_or(0).saturating_mul(CORES_OF_A_GPU);
    job.cpus.get().unwrap_or(0).saturating_add(gpus).saturating_mul(seconds)
}

/// The sums of what was read.
#[derive(Default)]
pub(super) struct Sums {
    read: u64,
    named: u64,
    without: u64,
    rest: u64,
    with_checkpoint: Held,
    after_checkpoint: Held,
    pub(super) notices: Vec<Notice>,
}

impl Sums {
    pub(super) fn told(&self, not_tried: u64, meter: &Meter) -> LogsRead {
        LogsRead {
            read: self.read,
            named: self.named,
            without: self.without,
            not_tried: not_tried + self.rest,
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
    (runs, rest): (Vec<Job>, Vec<Job>),
    tally: &mut Tally,
    rules: &Rules,
) -> Result<Sums, AnswerError> {
    let mut told = Sums { rest: rest.len() as u64, ..Sums::default() };
    for job in &rest {
        tally.add(job, |job| cause(rules, job));
    }
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
        let mut ids: Vec<JobId> =
            runs.iter().map(|run| JobId { cluster: cluster.cloned(), ..run.id.clone() }).collect();
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
            .map(|run| of(run).and_then(|job| by_its_logs(&engine, &shared, backend, job, &hints)))
            .collect();
        for (run, judged) in runs.iter().zip(judged) {
            let by_record = cause(rules, run);
            let Some(judged) = judged else {
                told.without += 1;
                tally.add(run, |_| by_record);
                continue;
            };
            told.read += 1;
            let by_logs = family(judged.verdict);
            told.named += u64::from(by_record.is_none() && by_logs.is_some());
            tally.add(run, |_| by_logs.or(by_record));
            let saved = judged.checkpoint.and_then(|at| at.to_zoned_datetime(zone.clone()).ok());
            if let Some(after) = saved.and_then(|at| since(run, at.timestamp())) {
                told.with_checkpoint.merge(&Held::at_the_end(run, u64::MAX));
                told.after_checkpoint.merge(&Held::at_the_end(run, after));
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
