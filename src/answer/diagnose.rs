//! Why did this job end as it did, and what exactly do I change?

mod surroundings;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::{AnswerError, World, kb};
use crate::classify::{self, Facts, LogFacts, Rules};
use crate::host::{Content, Unpacked, is_packed};
use crate::logs::{self, Line, Located, Scan, Scanner};
use crate::model::{
    BaseState, Edit, Evidence, Exit, FamilyId, Job, JobId, Known, Notice, Outcome, Source, State,
    StepId, Stream, Verdict,
};
use crate::patch::{self, Patch, Target};
use crate::retrieve::{Library, Match, Query, Wants, first_steps};
use crate::sched::{Backend, SchedError};
use crate::text;

pub(super) use surroundings::AtHand;
use surroundings::{Cluster, Surroundings};

/// The answer for every job asked about.
#[derive(Debug, Serialize)]
pub struct Diagnoses {
    /// `jobwise/diagnose/1`.
    pub schema: &'static str,
    /// One for each record found, in the order asked.
    pub diagnoses: Vec<Diagnosis>,
    /// Ids for which there is no answer, and why.
    pub failures: Vec<Failure>,
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
    /// The logs that were looked for.
    pub logs: Vec<LogReport>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// What to change in the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// What gave this answer.
    pub answered_by: AnsweredBy,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
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

/// What to do: a section of the knowledge base.
#[derive(Debug, Serialize)]
pub struct Fix {
    /// The family whose note it is.
    pub family: FamilyId,
    /// The note's title.
    pub title: String,
    /// The section's heading.
    pub heading: String,
    /// Its numbered steps.
    pub steps: Vec<String>,
    /// The score by which it was chosen.
    pub score: f64,
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

/// Logs without accounting.
#[derive(Debug)]
pub struct Given {
    /// The logs, in order.
    pub logs: Vec<PathBuf>,
    /// The batch script.
    pub script: Option<PathBuf>,
    /// How the job ended.
    pub state: Option<State>,
    /// Its exit.
    pub exit: Option<Exit>,
}

/// What one run of the program builds once, whatever the number of jobs.
pub(super) struct Engine {
    rules: Rules,
    scanner: Scanner,
    scan: logs::Limits,
    library: Library,
    index: String,
}

impl Engine {
    pub(super) fn start(world: World<'_>) -> Result<(Self, Vec<Notice>), AnswerError> {
        let (families, broken) = world.families()?;
        let rules = Rules::new(families);
        let scanner = Scanner::new(&rules.literals());
        let scan = logs::Limits { bytes: world.config.settings.scan.limit_bytes };
        let (library, index, mut notices) = kb::library(world, rules.families())?;
        notices.extend(broken.iter().map(super::left_out));
        Ok((Self { rules, scanner, scan, library, index }, notices))
    }

    /// The sections that fit a text, best first, whatever the verdict.
    pub(super) fn search(&self, text: &str) -> Vec<Match> {
        let query = Query { text, family: None, wants: Wants::Fix };
        self.library.search(&query, usize::MAX)
    }

    /// The sections of the knowledge base that fit a verdict, best first; what to do comes first.
    pub(super) fn sections(&self, verdict: &Verdict, limit: usize) -> Vec<Match> {
        let unknown = FamilyId("unknown".to_owned());
        let cause = verdict.causes.first().filter(|_| verdict.outcome != Outcome::Unknown);
        let family = cause.map_or(&unknown, |cause| &cause.family);
        let words: Vec<&str> = cause
            .map(|cause| cause.evidence.iter().map(|evidence| evidence.text.as_str()).collect())
            .unwrap_or_default();
        let text = words.join("\n");
        let query = Query { text: &text, family: Some(family), wants: Wants::Fix };
        self.library.search(&query, limit)
    }
}

/// Diagnoses jobs by id. An id without an answer is reported beside the others' answers.
pub fn diagnose(world: World<'_>, ids: &[String], hints: &Hints) -> Result<Diagnoses, AnswerError> {
    let (engine, notices) = Engine::start(world)?;
    let backend = world.backend();
    let mut answer = Diagnoses {
        schema: "jobwise/diagnose/1",
        diagnoses: Vec::new(),
        failures: Vec::new(),
        notices,
    };
    for text in ids {
        match asked(&engine, world, &backend, text, hints) {
            Err(error) => answer.failures.push(Failure { id: text.clone(), error }),
            Ok((diagnoses, notices)) => {
                answer.add_notices(notices);
                answer.diagnoses.extend(diagnoses);
            }
        }
    }
    Ok(answer)
}

/// Diagnoses the jobs that one id names.
pub(super) fn asked(
    engine: &Engine,
    world: World<'_>,
    backend: &Backend<'_>,
    text: &str,
    hints: &Hints,
) -> Result<(Vec<Diagnosis>, Vec<Notice>), AnswerError> {
    let (jobs, mut notices) = look_up(backend, text)?;
    let (jobs, skipped) = worth_diagnosing(jobs, world.config.settings.diagnose.array_tasks);
    notices.extend(skipped);
    let one = |job| one(engine, job, &mut Cluster::new(world, backend, hints));
    Ok((jobs.into_par_iter().map(one).collect(), notices))
}

fn look_up(backend: &Backend<'_>, text: &str) -> Result<(Vec<Job>, Vec<Notice>), AnswerError> {
    let (id, step) = JobId::parse_with_step(text)?;
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let found = source.job(&id)?;
    let mut notices = found.notices;
    if let Some(step) = step {
        notices.push(Notice::info(
            "whole-job",
            format!("{text} is step {step} of job {id}: the whole job is diagnosed"),
        ));
    }
    Ok((found.value, notices))
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

/// Diagnoses one job. The one path from a record to an answer: only where the logs, the script and
/// the limits come from differs.
pub(super) fn one(engine: &Engine, job: Job, surroundings: &mut impl Surroundings) -> Diagnosis {
    let mut notices = Vec::new();
    if matches!(job.state.base, BaseState::Pending) {
        let verdict = classify::decide(&engine.rules, &record_alone(&job));
        let helps = waiting_helps(&engine.rules, &verdict);
        let waiting = job.reason.as_deref().map(|reason| waiting(surroundings, reason, helps));
        return Diagnosis { waiting, ..bare(engine, job, verdict, notices) };
    }
    // A job that ended well is only looked at through its record; its log may say anything.
    if matches!(job.state.base, BaseState::Completed | BaseState::Running | BaseState::Suspended) {
        let verdict = classify::decide(&engine.rules, &record_alone(&job));
        if verdict.outcome != Outcome::Cause {
            return bare(engine, job, verdict, notices);
        }
    }

    let (scanned, mut reports) = read_logs(engine, surroundings.logs(&job));
    if scanned.is_empty() {
        notices.push(no_logs(&job, &reports));
    } else {
        notices.extend(log_notices(&reports));
    }
    let verdict = classify::decide(&engine.rules, &facts_of(&job, &scanned, &reports));
    let edits = first_edits(&engine.rules, &verdict);
    let patch = if edits.is_empty() {
        None
    } else {
        propose(&job, surroundings, &edits, &reports, &mut notices)
    };
    if verdict.outcome == Outcome::Unknown {
        quote_tails(&scanned, &mut reports);
    }
    Diagnosis { logs: reports, patch, ..bare(engine, job, verdict, notices) }
}

/// Everything but logs and patch; with the fix that belongs to the verdict.
fn bare(engine: &Engine, job: Job, mut verdict: Verdict, notices: Vec<Notice>) -> Diagnosis {
    mask(&mut verdict);
    let fix = match verdict.outcome {
        Outcome::Cause | Outcome::Unknown => fix(engine, &verdict),
        Outcome::Pending if !verdict.causes.is_empty() => fix(engine, &verdict),
        Outcome::Healthy | Outcome::Running | Outcome::Pending => None,
    };
    Diagnosis {
        job,
        verdict,
        waiting: None,
        logs: Vec::new(),
        fix,
        patch: None,
        answered_by: AnsweredBy {
            rules: engine.rules.families().len(),
            index: engine.index.clone(),
            model: None,
        },
        notices,
    }
}

/// Diagnoses logs without any accounting.
pub fn diagnose_given(world: World<'_>, given: &Given) -> Result<Diagnoses, AnswerError> {
    let (engine, notices) = Engine::start(world)?;
    let state = given.state.clone().unwrap_or_else(|| State::parse("FAILED"));
    let mut job = Job::bare(JobId::whole(0), state, Source::Given);
    job.exit = given.exit.into();
    let mut logs = Vec::new();
    let mut refused = None;
    for path in &given.logs {
        let opened = world.cluster.open(path);
        refused = refused.or_else(|| opened.as_ref().err().cloned());
        logs.push(Located::given(path, opened));
    }
    // Of several files the others are an answer; if none can be read, that is the answer.
    if let Some(error) = refused
        && logs.iter().all(|log| log.found.is_err())
    {
        return Err(error.into());
    }
    let script = match &given.script {
        None => None,
        Some(path) => {
            let content = world.cluster.open(path)?;
            let bytes = content.read_all(SCRIPT_LIMIT).map_err(|error| {
                AnswerError::File(crate::host::FileError::from_io(path, &error))
            })?;
            Some(Ok((path.display().to_string(), bytes)))
        }
    };
    let diagnosis = one(&engine, job, &mut AtHand { logs, script });
    Ok(Diagnoses {
        schema: "jobwise/diagnose/1",
        diagnoses: vec![diagnosis],
        failures: Vec::new(),
        notices,
    })
}

/// Diagnoses a text that somebody has at hand: a log, or what a submission command printed.
pub fn diagnose_text(world: World<'_>, text: &[u8]) -> Result<Diagnoses, AnswerError> {
    let (engine, notices) = Engine::start(world)?;
    Ok(Diagnoses {
        schema: "jobwise/diagnose/1",
        diagnoses: vec![of_text(&engine, text)],
        failures: Vec::new(),
        notices,
    })
}

/// Diagnoses a text without a job.
pub(super) fn of_text(engine: &Engine, text: &[u8]) -> Diagnosis {
    let job = Job::bare(JobId::whole(0), State::parse(""), Source::Given);
    let located = Located::given(Path::new("text"), Ok(Box::new(text.to_vec())));
    let (scanned, mut reports) = read_logs(engine, vec![located]);
    let facts = facts_of(&job, &scanned, &reports);
    let verdict = match facts.logs.first() {
        Some(log) => classify::decide_text(&engine.rules, log, text),
        None => classify::decide(&engine.rules, &Facts { job: None, ..facts }),
    };
    if verdict.outcome == Outcome::Unknown {
        quote_tails(&scanned, &mut reports);
    }
    Diagnosis { logs: reports, ..bare(engine, job, verdict, Vec::new()) }
}

/// A batch script is short; Slurm itself refuses one of more than 4 MiB.
const SCRIPT_LIMIT: u64 = 4 << 20;

/// A log that was read.
struct Scanned {
    path: String,
    stream: Stream,
    step: Option<StepId>,
    task: Option<u64>,
    scan: Scan,
}

fn record_alone(job: &Job) -> Facts<'_> {
    Facts { job: Some(job), logs: Vec::new(), logs_complete: false }
}

/// What is judged: the record, and every stream that was read.
fn facts_of<'a>(job: &'a Job, scanned: &'a [Scanned], reports: &[LogReport]) -> Facts<'a> {
    let logs = scanned.iter().map(|log| LogFacts {
        path: &log.path,
        stream: log.stream,
        step: log.step.as_ref(),
        task: log.task,
        scan: &log.scan,
    });
    let logs_complete =
        !reports.is_empty() && reports.iter().all(|report| report.trouble.is_none());
    Facts { job: Some(job), logs: logs.collect(), logs_complete }
}

fn read_logs(engine: &Engine, located: Vec<Located>) -> (Vec<Scanned>, Vec<LogReport>) {
    let read: Vec<(LogReport, Option<Scanned>)> = located
        .into_par_iter()
        .map(|log| {
            let mut report = LogReport {
                path: log.path.clone(),
                stream: log.stream,
                how: log.how,
                size: Known::NotGathered,
                scanned: Known::NotGathered,
                unpacked: false,
                trouble: None,
                tail: Vec::new(),
            };
            match log.found {
                Err(error) => {
                    report.trouble = Some(error.to_string());
                    (report, None)
                }
                Ok(content) => {
                    report.unpacked = is_packed(&*content);
                    let scan = scan(&engine.scanner, content, engine.scan);
                    report.size = Known::Value(scan.size);
                    report.scanned = Known::Value(scan.scanned);
                    report.trouble.clone_from(&scan.stopped);
                    let Located { path, stream, step, task, .. } = log;
                    (report, Some(Scanned { path, stream, step, task, scan }))
                }
            }
        })
        .collect();
    let (reports, scanned): (Vec<LogReport>, Vec<Option<Scanned>>) = read.into_iter().unzip();
    (scanned.into_iter().flatten().collect(), reports)
}

/// One pass over a log, packed or not. Why a packed one gave no more comes before what the pass
/// itself has to say.
fn scan(scanner: &Scanner, content: Box<dyn Content>, limits: logs::Limits) -> Scan {
    if !is_packed(&*content) {
        return scanner.scan(&*content, limits);
    }
    let text = Unpacked::new(content, limits.bytes);
    let mut scan = scanner.scan(&text, limits);
    scan.stopped = text.trouble().map(str::to_owned).or(scan.stopped);
    scan
}

/// What to say of logs that were read, but not as they are or not to their end, and of those that
/// could not be read beside others that could.
fn log_notices(reports: &[LogReport]) -> Vec<Notice> {
    /// A job of a thousand ranks may have as many logs.
    const TOLD: usize = 3;
    let mut notices = Vec::new();
    let unpacked: Vec<&str> =
        reports.iter().filter(|log| log.unpacked).map(|log| log.path.as_str()).collect();
    if !unpacked.is_empty() {
        let (first, others) = unpacked.split_at(unpacked.len().min(TOLD));
        let mut names: Vec<String> = first.iter().map(|&path| path.to_owned()).collect();
        if !others.is_empty() {
            names.push(text::count(others.len() as u64, "more log"));
        }
        let names = text::join(&names, "and");
        let text = format!("unpacked {names}: lines and bytes count in the unpacked text");
        notices.push(Notice::info("unpacked-log", text));
    }
    if reports.iter().all(|log| log.size == Known::Value(0)) {
        let names: Vec<&str> = reports.iter().take(TOLD).map(|log| log.path.as_str()).collect();
        let text = format!("nothing was written to {}", text::join(&names, "and"));
        notices.push(Notice::warning("empty-log", text));
    }
    let incomplete: Vec<String> = reports
        .iter()
        .filter_map(|log| Some(format!("{}: {}", log.path, log.trouble.as_deref()?)))
        .collect();
    let (told, others) = incomplete.split_at(incomplete.len().min(TOLD));
    notices.extend(told.iter().map(|text| Notice::warning("log-incomplete", text)));
    if !others.is_empty() {
        let text = format!(
            "{} could not be read to the end",
            text::count(others.len() as u64, "more log")
        );
        notices.push(Notice::warning("log-incomplete", text));
    }
    notices
}

/// Adds the last lines of each stream to its report.
fn quote_tails(scanned: &[Scanned], reports: &mut [LogReport]) {
    const LINES: usize = 5;
    for log in scanned {
        let Some(report) = reports.iter_mut().find(|report| report.path == log.path) else {
            continue;
        };
        let from = log.scan.tail.len().saturating_sub(LINES);
        let quote = |line: &Line| Quoted { line: line.number, text: text::masked(&line.text) };
        report.tail = log.scan.tail[from..].iter().map(quote).collect();
    }
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

/// The edits of the first cause: its family's, and those of the signals that were seen. None when
/// the cause is not known.
fn first_edits(rules: &Rules, verdict: &Verdict) -> Vec<Edit> {
    let cause = verdict.causes.first().filter(|_| verdict.outcome == Outcome::Cause);
    let Some((cause, family)) = cause.and_then(|cause| Some((cause, rules.family(&cause.family)?)))
    else {
        return Vec::new();
    };
    let mut edits = family.edits.clone();
    let heard = family.signals.iter().filter(|signal| cause.heard.contains(&signal.id));
    edits.extend(heard.flat_map(|signal| signal.edits.iter().cloned()));
    edits
}

/// The change to the script; `None` where nobody speaks of a script.
fn propose(
    job: &Job,
    surroundings: &mut impl Surroundings,
    edits: &[Edit],
    logs: &[LogReport],
    notices: &mut Vec<Notice>,
) -> Option<Patch> {
    // Only a larger request can meet a limit: nothing is asked of the scheduler for the rest.
    let is_larger = edits.iter().any(|edit| matches!(edit, Edit::Memory | Edit::Time));
    let partition = job.partition.as_deref().filter(|_| is_larger);
    let limits = partition.and_then(|partition| {
        let limits = surroundings.limits(partition)?;
        limits.map_err(|error| notices.push(no_limits(partition, &error))).ok()
    });
    let environments = match &job.work_dir {
        Some(directory) if edits.contains(&Edit::Activate) => environments(surroundings, directory),
        _ => Vec::new(),
    };
    let unread = logs.iter().filter(|log| !log.size.is_value());
    let folders = unread.filter_map(|log| Path::new(&log.path).parent());
    let mut folders = folders.filter(|folder| surroundings.lacks_directory(folder));
    let missing = if edits.contains(&Edit::MakeDirectory) { folders.next() } else { None };
    let name = surroundings.script_name(job);
    let script = match surroundings.script(job)? {
        Ok((_, bytes)) => Some(bytes.as_slice()),
        Err(tried) => {
            notices.push(no_script(tried));
            None
        }
    };
    let target = Target {
        script,
        name: &name,
        submit_line: job.submit_line.as_deref(),
        job,
        limits: limits.as_ref(),
        suggestion: None,
        environments: &environments,
        missing_directory: missing.and_then(Path::to_str),
    };
    Some(patch::propose(&target, edits))
}

/// Virtual environments by their usual names in a job's directory.
fn environments(surroundings: &impl Surroundings, directory: &str) -> Vec<String> {
    let usual = [".venv", "venv", "env"].into_iter();
    let there = usual.filter(|name| {
        surroundings.has_file(&Path::new(directory).join(name).join("bin/activate"))
    });
    there.map(|name| format!("{}/{name}", directory.trim_end_matches('/'))).collect()
}

fn fix(engine: &Engine, verdict: &Verdict) -> Option<Fix> {
    let best = engine.sections(verdict, 1).into_iter().next()?;
    Some(Fix {
        family: best.chunk.family.clone(),
        title: best.chunk.title.clone(),
        heading: best.chunk.heading.clone(),
        steps: first_steps(&best.chunk.markdown),
        score: best.score,
    })
}

/// Nobody's token leaves in a quoted line or a captured value.
fn mask(verdict: &mut Verdict) {
    let evidence = |piece: &mut Evidence| piece.text = text::masked(&piece.text);
    for cause in &mut verdict.causes {
        cause.evidence.iter_mut().for_each(evidence);
        cause.captures.values_mut().for_each(|value| *value = text::masked(value));
    }
    verdict.consequences.iter_mut().for_each(evidence);
}

fn no_logs(job: &Job, reports: &[LogReport]) -> Notice {
    let text = match reports {
        [] => "no log could be located".to_owned(),
        [first, ..] => {
            let trouble = first.trouble.as_deref().unwrap_or("empty");
            format!("no log was read: {}: {trouble}", first.path)
        }
    };
    let notice = Notice::warning("no-log", text);
    if job.has_started() { notice.hint("name the log's folder with --log-dir DIR") } else { notice }
}

fn no_limits(partition: &str, error: &SchedError) -> Notice {
    Notice::warning(
        "no-limits",
        format!(
            "the limits of partition {partition} are unknown ({error}): the change is not capped"
        ),
    )
}

fn no_script(tried: &[String]) -> Notice {
    let text = format!("the batch script could not be read ({})", tried.join("; "));
    Notice::warning("no-script", text).hint("apply the change by hand")
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
