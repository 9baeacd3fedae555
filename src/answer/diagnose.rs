//! Why did this job end as it did, and what exactly do I change?

mod arrays;
mod by_logs;
mod change;
mod closest;
mod engine;
mod fix;
mod given;
mod held;
mod history;
mod offers;
mod parents;
mod reading;
mod shared;
mod surroundings;
mod unused;
mod wrapped;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::{AnswerError, World, mask};
use crate::capacity::gates::Gate;
use crate::classify::{self, Facts, LogFacts, Rules};
use crate::host::FileErrorKind;
use crate::knowledge::Family;
use crate::model::{
    BaseState, FamilyId, Job, JobId, Known, Notice, Outcome, Source, Stream, Verdict,
};
use crate::patch::Patch;
use crate::retrieve::points;
use crate::sched::{Backend, SchedError};

pub use arrays::{Array, End};
pub(super) use by_logs::by_its_logs;
pub use closest::Closest;
use closest::Finder;
pub(super) use engine::Engine;
use fix::fix;
pub use fix::{Fix, OwnPage};
pub use given::{Given, diagnose_given, diagnose_text};
pub(super) use given::{of_text, open_given};
pub use offers::{Offer, Refusable};
use reading::{Scanned, notices, quote_tails, read_logs};
pub(super) use shared::Shared;
pub(super) use surroundings::AtHand;
use surroundings::{Cluster, Surroundings};
pub use wrapped::{ChildJob, Wrapped};

/// The answer for every job asked about.
#[derive(Debug, Serialize)]
pub struct Diagnoses {
    /// `jobwise/diagnose/1`.
    pub schema: &'static str,
    /// How the tasks of each array ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<Array>,
    /// One for each record found, in the order asked.
    pub diagnoses: Vec<Diagnosis>,
    /// Ids for which there is no answer, and why.
    pub failures: Vec<Failure>,
    /// Whether people are shown what each score is made of; the JSON always has it.
    #[serde(skip)]
    pub scores: bool,
    /// What all answers lack.
    pub notices: Vec<Notice>,
}

/// An id without an answer.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// The id as given.
    pub id: String,
    /// Why.
    #[serde(serialize_with = "in_words")]
    pub error: AnswerError,
}

fn in_words<S: serde::Serializer>(error: &AnswerError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error)
}

/// The answer for one job.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The record.
    pub job: Job,
    /// The verdict of the rules.
    pub verdict: Verdict,
    /// Why a pending job waits, in plain words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The limits that hold a pending job back, in numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Gate>,
    /// The logs that were looked for.
    pub logs: Vec<LogReport>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Notes that are near to what the logs of an unknown failure say: guesses, and no cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closest: Vec<Closest>,
    /// What to ask of the site's staff, where the fault is theirs or a machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// What to change in the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// What could be asked for instead of what was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    /// The tool that submitted it for its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrapper: Option<Wrapped>,
    /// Jobs that a pending one waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<ChildJob>,
    /// Jobs that it submitted itself, and that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildJob>,
    /// What gave this answer.
    pub answered_by: AnsweredBy,
    /// How to make sure of each guess, where the cause is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guesses: Vec<Guess>,
    /// The line by which logs without a record are seen to have ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Quoted>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// How to make sure of a guess.
#[derive(Debug, Serialize)]
pub struct Guess {
    /// The family.
    pub family: FamilyId,
    /// What its note says to look at, with the job's own values where they are known.
    pub verify: Vec<String>,
}

/// Why a job waits.
#[derive(Debug, Serialize)]
pub struct Waiting {
    /// The scheduler's word.
    pub reason: String,
    /// What it means; `None` for a word this version does not know.
    pub meaning: Option<String>,
    /// What to do about it.
    pub action: Option<String>,
    /// Whether it will start by itself; `None` where that depends, or the reason is not known.
    pub waiting_helps: Option<bool>,
}

/// One log, read or not.
#[derive(Debug, Serialize)]
pub struct LogReport {
    /// The path.
    pub path: String,
    /// The stream.
    pub stream: Stream,
    /// How its place is known, in words.
    pub how: String,
    /// Bytes of the file, where it could be opened; of a packed one, of the text in it.
    pub size: Known<u64>,
    /// Bytes read.
    pub scanned: Known<u64>,
    /// Whether it was unpacked while it was read: places then count in the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unpacked: bool,
    /// Why it was not read, or not to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its last lines, where the cause is unknown: a person may see more in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Quoted>,
}

/// A line as it stands in a log.
#[derive(Debug, Serialize)]
pub struct Quoted {
    /// Its number, from 1.
    pub line: Option<u64>,
    /// Its text, cleaned, secrets masked.
    pub text: String,
}

/// What took part in an answer.
#[derive(Debug, Serialize)]
pub struct AnsweredBy {
    /// Families whose rules were applied.
    pub rules: usize,
    /// The index that found the fix.
    pub index: String,
    /// The language model that worded it: never one that decided.
    pub model: Option<String>,
}

/// What may be said about the jobs beside their ids.
#[derive(Debug, Default)]
pub struct Hints {
    /// Directories to look for logs in.
    pub log_dirs: Vec<PathBuf>,
}

/// Diagnoses jobs by id. An id without an answer is reported beside the others' answers.
pub fn diagnose(world: World<'_>, ids: &[String], hints: &Hints) -> Result<Diagnoses, AnswerError> {
    let (engine, notices) = Engine::start(world)?;
    let backend = world.backend();
    let shared = Shared::new(world);
    let mut finder = Finder::new(&engine);
    let mut answer = Diagnoses {
        schema: "jobwise/diagnose/1",
        arrays: Vec::new(),
        diagnoses: Vec::new(),
        failures: Vec::new(),
        scores: false,
        notices,
    };
    answer.notices.extend(hints.log_dirs.iter().filter_map(|folder| no_folder(world, folder)));
    let found = look_up(&backend, ids);
    if let Some(source) = backend.jobs.as_ref() {
        let all = found.iter().filter_map(|found| found.as_ref().ok()).flat_map(|(jobs, _)| jobs);
        source.fetch_scripts(all.filter(|job| job.state.is_ended() && job.has_started()));
    }
    for (text, found) in ids.iter().zip(found) {
        match found {
            Err(error) => answer.failures.push(Failure { id: text.clone(), error }),
            Ok(found) => {
                let (mut diagnoses, notices) = of_found(&engine, &shared, &backend, found, hints);
                for told in &mut diagnoses {
                    finder.add(told);
                }
                answer.add_notices(mask::notices(notices));
                answer.diagnoses.extend(diagnoses);
            }
        }
    }
    answer.arrays = arrays::arrays(&answer.diagnoses);
    answer.notices.extend(engine.model_notice());
    Ok(answer)
}

/// What to say of a folder that was named for logs and cannot be looked into.
fn no_folder(world: World<'_>, folder: &Path) -> Option<Notice> {
    let error = world.cluster.list(folder).err()?;
    // A recording holds those that were looked into when it was made.
    let known = error.kind != FileErrorKind::NotRecorded;
    known.then(|| Notice::warning("log-dir", format!("--log-dir was of no use: {error}")))
}

/// Diagnoses the jobs that one id names.
pub(super) fn asked(
    engine: &Engine,
    shared: &Shared<'_>,
    backend: &Backend<'_>,
    text: &str,
    hints: &Hints,
) -> Result<(Vec<Diagnosis>, Vec<Notice>), AnswerError> {
    let found = look_up(backend, &[text.to_owned()]).into_iter().next();
    let found = found.ok_or(SchedError::NoScheduler)??;
    Ok(of_found(engine, shared, backend, found, hints))
}

/// Records, and what they lack.
type LookedUp = (Vec<Job>, Vec<Notice>);

fn of_found(
    engine: &Engine,
    shared: &Shared<'_>,
    backend: &Backend<'_>,
    (jobs, mut notices): LookedUp,
    hints: &Hints,
) -> (Vec<Diagnosis>, Vec<Notice>) {
    let (jobs, skipped) = worth_diagnosing(jobs, shared.world.config.settings.diagnose.array_tasks);
    notices.extend(skipped);
    let one = |job| one(engine, job, &mut Cluster::new(backend, hints, shared));
    (jobs.into_par_iter().map(one).collect(), notices)
}

/// Looks ids up, all at once.
fn look_up(backend: &Backend<'_>, texts: &[String]) -> Vec<Result<LookedUp, AnswerError>> {
    let read: Vec<_> = texts.iter().map(|text| JobId::parse_with_step(text)).collect();
    let ids: Vec<JobId> = read.iter().flatten().map(|(id, _)| id.clone()).collect();
    let mut found = match backend.jobs.as_ref() {
        Some(source) => source.jobs(&ids),
        None => vec![Err(SchedError::NoScheduler); ids.len()],
    }
    .into_iter();
    let answer = |(text, read): (&String, Result<(JobId, Option<_>), _>)| {
        let (id, step) = read?;
        let found = found.next().unwrap_or(Err(SchedError::NoScheduler))?;
        let mut notices = found.notices;
        if let Some(step) = step {
            notices.push(Notice::info(
                "whole-job",
                format!("{text} is step {step} of job {id}: the whole job is diagnosed"),
            ));
        }
        Ok((found.value, notices))
    };
    texts.iter().zip(read).map(answer).collect()
}

/// Of a huge array only so many failed tasks are diagnosed; the others are counted.
fn worth_diagnosing(jobs: Vec<Job>, limit: usize) -> (Vec<Job>, Option<Notice>) {
    if jobs.len() <= limit {
        return (jobs, None);
    }
    let total = jobs.len();
    let mut kept: Vec<Job> = jobs;
    kept.sort_by_key(|job| !job.state.is_failure());
    kept.truncate(limit);
    let notice = Notice::warning("array-cut", format!("{limit} of {total} tasks were diagnosed"))
        .hint("name the tasks you want, or raise diagnose.array_tasks");
    (kept, Some(notice))
}

/// The verdict on a job of the cluster and its logs with their last lines, and nothing that would
/// have to be asked for only to say what to change.
pub(super) fn judged(
    engine: &Engine,
    shared: &Shared<'_>,
    backend: &Backend<'_>,
    job: &Job,
    hints: &Hints,
) -> (Verdict, Vec<LogReport>) {
    if !job.state.is_ended() || !job.has_started() {
        return (judged_alone(engine, job), Vec::new());
    }
    let mut surroundings = Cluster::new(backend, hints, shared);
    let logs = surroundings.logs(job);
    let (scanned, mut reports) = read_logs(engine, logs, logs_tell_the_end(job));
    let verdict = classify::decide(&engine.rules, &facts_of(job, &scanned, &reports));
    quote_tails(&scanned, &mut reports, engine.tail_lines);
    (verdict, reports)
}

/// The verdict on a record alone.
pub(super) fn judged_alone(engine: &Engine, job: &Job) -> Verdict {
    classify::decide(&engine.rules, &record_alone(job))
}

/// Diagnoses one job. The one path from a record to an answer: only where the logs, the script and
/// the limits come from differs.
pub(super) fn one(engine: &Engine, job: Job, surroundings: &mut impl Surroundings) -> Diagnosis {
    let mut told = unmasked(engine, job, surroundings);
    fix::fill(&mut told);
    mask::diagnosis(told)
}

fn unmasked(engine: &Engine, job: Job, surroundings: &mut impl Surroundings) -> Diagnosis {
    if job.waits() {
        let verdict = classify::decide(&engine.rules, &record_alone(&job));
        let helps = waiting_helps(&engine.rules, &verdict);
        let held = held::held(&verdict, &job, surroundings);
        // What the numbers say counts for more than what such a reason mostly means.
        let helps = held.first().map(|gate| gate.clears).or(helps);
        let waiting = job.reason.as_deref().map(|reason| waiting(surroundings, reason, helps));
        let parents = parents::parents(engine, &verdict, &job, surroundings);
        let mut told = Diagnosis { waiting, held, parents, ..bare(engine, job, verdict) };
        add_beside(engine, &mut told, &[], surroundings);
        return told;
    }
    if matches!(job.state.base, BaseState::Running | BaseState::Suspended) {
        let verdict = classify::decide(&engine.rules, &record_alone(&job));
        return bare(engine, job, verdict);
    }

    let (scanned, mut reports) =
        read_logs(engine, surroundings.logs(&job), logs_tell_the_end(&job));
    let facts = facts_of(&job, &scanned, &reports);
    let verdict = classify::decide(&engine.rules, &facts);
    let (verdict, ending) = ended_well(verdict, &facts);
    if ending.is_some() {
        return Diagnosis { ending, logs: reports, ..bare(engine, job, verdict) };
    }
    if verdict.outcome == Outcome::Healthy {
        let short = history::short_run(&job, surroundings);
        let notices = short.into_iter().chain(unused::gpus(&job, engine.least_gpu)).collect();
        return Diagnosis { logs: reports, notices, ..bare(engine, job, verdict) };
    }
    let shown = change::Shown::of(&facts, &scanned);
    let mut notices = notices(&job, &reports);
    notices.extend(unused::gpus(&job, engine.least_gpu));
    if verdict.outcome == Outcome::Unknown {
        quote_tails(&scanned, &mut reports, engine.tail_lines);
    }
    let mut told = Diagnosis { logs: reports, notices, ..bare(engine, job, verdict) };
    told.patch = change::propose(&engine.rules, &mut told, &shown, engine.idle, surroundings);
    add_beside(engine, &mut told, &scanned, surroundings);
    told
}

/// Whether the logs alone tell how a run ended: also of one that is called completed they may know
/// better.
fn logs_tell_the_end(job: &Job) -> bool {
    !says_how_it_ended(job) || job.state.base == BaseState::Completed
}

/// Adds what could be asked for instead, the tool that submitted the job, and the failed jobs that it
/// submitted itself.
fn add_beside(
    engine: &Engine,
    told: &mut Diagnosis,
    scanned: &[Scanned],
    surroundings: &impl Surroundings,
) {
    if let Some(backend) = surroundings.backend().filter(|_| offers::is_wanted(&told.verdict)) {
        let (found, lacking) = offers::offers(&told.verdict, &told.job, "", backend);
        told.offers = found;
        told.notices.extend(lacking);
    }
    let script = surroundings.script_at_hand().map(|(_, bytes)| bytes.as_slice());
    let tool = wrapped::tool(&told.job, script, scanned);
    let children = wrapped::children(engine, &told.verdict, &told.job, scanned, surroundings);
    told.children = children;
    told.wrapper = tool.map(|tool| wrapped::advice(tool, &engine.rules, told));
    let Some(tool) = tool else { return };
    for child in told.children.iter_mut().filter_map(|child| child.diagnosis.as_mut()) {
        if child.wrapper.is_none() {
            let advice = wrapped::advice(tool, &engine.rules, child);
            child.wrapper = Some(advice);
        }
    }
}

/// The record and the verdict, with the fix that belongs to it.
fn bare(engine: &Engine, job: Job, verdict: Verdict) -> Diagnosis {
    let fix = match verdict.outcome {
        Outcome::Cause | Outcome::Unknown => fix(engine, &verdict),
        Outcome::Pending if !verdict.causes.is_empty() => fix(engine, &verdict),
        Outcome::Healthy | Outcome::Running | Outcome::Pending => None,
    };
    Diagnosis {
        job,
        waiting: None,
        held: Vec::new(),
        logs: Vec::new(),
        report: report(&engine.rules, &verdict),
        guesses: guesses(&engine.rules, &verdict),
        ending: None,
        verdict,
        fix,
        closest: Vec::new(),
        patch: None,
        offers: Vec::new(),
        wrapper: None,
        parents: Vec::new(),
        children: Vec::new(),
        answered_by: AnsweredBy {
            rules: engine.rules.families().len(),
            index: engine.index.clone(),
            model: None,
        },
        notices: Vec::new(),
    }
}

fn record_alone(job: &Job) -> Facts<'_> {
    Facts { job: Some(job), logs: Vec::new(), logs_complete: false }
}

/// Whether anybody says how the job ended: of logs alone nobody may.
fn says_how_it_ended(job: &Job) -> bool {
    job.source != Source::Given || !job.state.text.is_empty()
}

/// What is judged: the record, and every stream that was read.
fn facts_of<'a>(job: &'a Job, scanned: &'a [Scanned], reports: &[LogReport]) -> Facts<'a> {
    let logs = scanned.iter().map(|log| LogFacts {
        path: &log.path,
        stream: log.stream,
        step: log.step.as_ref(),
        task: log.task,
        scan: &log.scan,
        end: log.end.as_deref(),
    });
    let logs_complete =
        !reports.is_empty() && reports.iter().all(|report| report.trouble.is_none());
    Facts { job: says_how_it_ended(job).then_some(job), logs: logs.collect(), logs_complete }
}

fn waiting(surroundings: &impl Surroundings, reason: &str, waiting_helps: Option<bool>) -> Waiting {
    let known = surroundings.explain(reason);
    Waiting {
        reason: reason.to_owned(),
        meaning: known.map(|known| known.meaning.to_owned()),
        action: known.map(|known| known.action.to_owned()),
        waiting_helps,
    }
}

/// What the signal that carries the first cause says about waiting.
fn waiting_helps(rules: &Rules, verdict: &Verdict) -> Option<bool> {
    let cause = verdict.causes.first()?;
    let signals = &rules.family(&cause.family)?.signals;
    signals.iter().find(|signal| signal.id == cause.signal)?.waiting_helps
}

/// What the note of the cause asks of the site's staff.
fn report(rules: &Rules, verdict: &Verdict) -> Option<String> {
    let named = matches!(verdict.outcome, Outcome::Cause | Outcome::Pending);
    let cause = verdict.causes.first().filter(|_| named)?;
    rules.family(&cause.family)?.report.clone()
}

/// What the notes of the guesses say to look at.
fn guesses(rules: &Rules, verdict: &Verdict) -> Vec<Guess> {
    let guesses = verdict.causes.iter().filter(|_| verdict.outcome == Outcome::Unknown);
    let verify = |family: &Family| {
        let section = family.sections.iter().find(|section| section.heading == "Verify");
        section.map(|section| points(&section.markdown)).unwrap_or_default()
    };
    guesses
        .filter_map(|guess| rules.family(&guess.family))
        .map(|family| Guess { family: family.id.clone(), verify: verify(family) })
        .collect()
}

/// Logs of which nobody knows how they ended, in which nothing speaks of a failure and one says that
/// its work is done, are those of a run that ended well.
fn ended_well(verdict: Verdict, facts: &Facts<'_>) -> (Verdict, Option<Quoted>) {
    let silent = verdict.outcome == Outcome::Unknown
        && verdict.causes.is_empty()
        && verdict.consequences.is_empty()
        && facts.job.is_none()
        && facts.logs_complete;
    let ending = facts.logs.iter().filter(|_| silent).find_map(classify::good_ending);
    let Some(line) = ending else { return (verdict, None) };
    let ending = Quoted { line: line.number, text: line.text.clone() };
    (Verdict { outcome: Outcome::Healthy, ..verdict }, Some(ending))
}

impl Diagnoses {
    /// Adds what is not said yet: many tasks lack the same.
    fn add_notices(&mut self, notices: impl IntoIterator<Item = Notice>) {
        for notice in notices {
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
    }
}

impl Diagnosis {
    /// True unless the cause is unknown.
    pub fn is_answered(&self) -> bool {
        self.verdict.outcome != Outcome::Unknown
    }
}
