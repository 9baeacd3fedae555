//! What is recorded about one job, and how did it use what it held?

use std::path::Path;

use serde::Serialize;

use super::diagnose::{self, Engine, Failure, Hints, LogReport, Shared};
use super::{AnswerError, World, mask};
use crate::config::Settings;
use crate::history::{Finding, findings};
use crate::logs::written;
use crate::model::{Idle, Job, JobId, Names, Notice, Outcome, Run};
use crate::sched::SchedError;
use crate::script::parse_submit_line;

/// The records behind the ids.
#[derive(Debug, Serialize)]
pub struct Records {
    /// `jobwise/job/1`.
    pub schema: &'static str,
    /// One for a plain job; one for each task or component of an array or het job.
    pub jobs: Vec<Record>,
    /// Ids for which there is no record, and why.
    pub failures: Vec<Failure>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
    /// How it is to be shown, which JSON does not ask.
    #[serde(skip)]
    pub view: View,
}

/// How much of a record is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// Every recorded field.
    pub all: bool,
    /// Every step.
    pub steps: bool,
}

/// One record, and what it means.
#[derive(Debug, Serialize)]
pub struct Record {
    /// The record.
    #[serde(flatten)]
    pub job: Job,
    /// How much of what it held it used.
    pub gauges: Vec<Gauge>,
    /// The cause that the rules name: the one of `diagnose`.
    pub cause: Option<Named>,
    /// What is worth saying about its use, the heaviest first.
    pub findings: Vec<Finding>,
    /// Its logs, and their last lines.
    pub logs: Vec<LogReport>,
}

/// A cause by its family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The family.
    pub family: String,
    /// Its title.
    pub title: String,
}

/// How much was used of what there was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gauge {
    /// `time`, `cpu`, `memory` or `gpu`.
    pub name: &'static str,
    /// What was used, in the unit.
    pub used: Option<f64>,
    /// What there was: the ceiling.
    pub of: Option<f64>,
    /// `s`, `CPUs`, `bytes` or `GPUs`.
    pub unit: &'static str,
    /// The share used, from 0 to 1, of time more where the limit was passed; `None` where one of them
    /// is not known, or more of anything else was used than there was.
    pub share: Option<f64>,
    /// What would have to be set for it to be known, where it is not and the job is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gathered_by: Option<&'static str>,
}

/// Of so many jobs that are named one by one the logs are read, too; of the others only the record is
/// judged, as of the tasks and components that one id names together.
const LOGS: usize = 20;

/// Looks the ids up, in the order given. An id without a record is told beside the others' records;
/// an error where it is the only one.
pub fn job(world: World<'_>, ids: &[JobId], view: View) -> Result<Records, AnswerError> {
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let (found, unknown) = source.whole_jobs(ids);
    let mut records = Records {
        schema: "jobwise/job/1",
        jobs: Vec::new(),
        failures: Vec::new(),
        notices: mask::notices(found.notices),
        view,
    };
    for (id, error) in unknown {
        if ids.len() == 1 {
            return Err(error.into());
        }
        records.failures.push(Failure { id: id.to_string(), error: error.into() });
    }
    let (engine, notices) = Engine::start(world)?;
    records.notices.extend(notices);
    let (shared, hints) = (Shared::new(world), Hints::default());
    // The record of a job is the same, whether it is asked for alone or with others.
    let is_over = |job: &Job| job.state.is_ended() && job.has_started();
    let named = |of_id: &[Job]| of_id.len() == 1 && is_over(&of_id[0]);
    let total = found.value.iter().filter(|of_id| named(of_id)).count();
    records.notices.extend(unread(total));
    let mut left = LOGS;
    let mut jobs: Vec<(Job, bool)> = Vec::new();
    for of_id in found.value {
        let reads = named(&of_id) && left > 0;
        left -= usize::from(reads);
        jobs.extend(of_id.into_iter().map(|job| (job, reads)));
    }
    // Where the logs of many are looked for, what accounting knows of them is asked for at once.
    let nameless = |(job, reads): &&(Job, bool)| *reads && job.stdout.is_none();
    source.fetch_scripts(jobs.iter().filter(nameless).map(|(job, _)| job));
    for (job, reads) in jobs {
        let (verdict, mut logs) = if reads {
            diagnose::judged(&engine, &shared, &backend, &job, &hints)
        } else {
            (diagnose::judged_alone(&engine, &job), Vec::new())
        };
        logs.iter_mut().for_each(mask::log);
        let first = verdict.causes.first().filter(|_| verdict.outcome == Outcome::Cause);
        let cause =
            first.map(|cause| Named { family: cause.family.0.clone(), title: cause.title.clone() });
        records.jobs.push(record(job, cause, logs, &world.config.settings));
    }
    Ok(records)
}

/// What to say where the logs of some of so many jobs are not read.
fn unread(total: usize) -> Option<Notice> {
    let text = format!(
        "the logs of the first {LOGS} of {total} jobs that are over were read: of the others the cause \
         is what the record alone says"
    );
    let hint = format!("name {LOGS} at a time, or ask jobwise diagnose, which reads all");
    (total > LOGS).then(|| Notice::warning("logs-not-read", text).hint(hint))
}

fn record(mut job: Job, cause: Option<Named>, logs: Vec<LogReport>, settings: &Settings) -> Record {
    if job.command.is_none() {
        job.command = submitted(&job);
    }
    let named = |path: &Option<String>| path.as_deref().map(|path| written(path, &job));
    (job.stdout, job.stderr) = (named(&job.stdout), named(&job.stderr));
    let run = Run::of(&job, &mut Names::default());
    let family = cause.as_ref().map(|cause| cause.family.as_str());
    let findings = findings(&job, &run, family, &idle(settings), &settings.findings);
    let gauges = if run.has_started() { gauges(&run) } else { Vec::new() };
    Record { job: mask::job(job), gauges, cause, findings, logs }
}

/// The script that was submitted, where the controller has forgotten the job: its name in the
/// submission command, seen from the directory of that.
fn submitted(job: &Job) -> Option<String> {
    let line = parse_submit_line(job.submit_line.as_deref()?);
    let script = line.script.filter(|_| line.program == "sbatch")?;
    Some(Path::new(job.work_dir.as_deref().unwrap_or("")).join(script).display().to_string())
}

/// The settings that say what doing nothing is.
pub(super) fn idle(settings: &Settings) -> Idle {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Idle {
        least_seconds: small(settings.idle.least_seconds),
        most_busy_permille: small(settings.idle.most_busy_permille),
        most_bytes_per_second: settings.idle.most_bytes_per_second,
    }
}

fn gauges(run: &Run) -> Vec<Gauge> {
    #[expect(clippy::cast_precision_loss, reason = "a gauge has three digits")]
    let float = |number: u64| number as f64;
    // More than the CPUs can give is told as it is recorded, and has no share.
    let recorded = || {
        let elapsed = run.elapsed.get().filter(|elapsed| *elapsed > 0)?;
        Some(float(run.cpu_millis.get()?) / 1000.0 / f64::from(elapsed))
    };
    // Accounting learns what a step used when the step ends.
    let runs = !run.is_ended();
    // Of no time there is no share, although it was measured.
    let short = run.elapsed.get() == Some(0) && run.cpu_millis.is_some();
    let gauge = |name, unit, used: Option<f64>, of: Option<f64>, gathered_by| {
        let share = used.zip(of).map(|(used, of)| used / of);
        // A clock is right where it passes the limit; a meter that passes its ceiling is wrong.
        let share = share.filter(|share| name == "time" || (0.0..=1.0).contains(share));
        let measured = used.is_some() || (short && name == "cpu");
        let gathered_by = if measured || runs { None } else { Some(gathered_by) };
        Gauge { name, used, of, unit, share, gathered_by }
    };
    let mut gauges = vec![
        gauge(
            "time",
            "s",
            run.elapsed.get().map(f64::from),
            run.limit.seconds().map(f64::from),
            "accounting (AccountingStorageType)",
        ),
        gauge(
            "cpu",
            "CPUs",
            run.busy_cores().or_else(recorded),
            run.cpus.get().map(f64::from),
            "JobAcctGatherType, which counts what steps use",
        ),
        gauge(
            "memory",
            "bytes",
            run.node_memory.get().map(float),
            run.memory_per_node().map(float),
            "JobAcctGatherType, each JobAcctGatherFrequency (30 s unless set): shorter work shows \
             none",
        ),
    ];
    if let Some(gpus) = run.gpus.get().filter(|gpus| *gpus > 0) {
        let busy = run.gpu_use().map(|share| share * f64::from(gpus));
        gauges.push(gauge(
            "gpu",
            "GPUs",
            busy,
            Some(f64::from(gpus)),
            "AutoDetect=nvml or rsmi in gres.conf, with gres/gpuutil in AccountingStorageTRES",
        ));
    }
    gauges
}
