//! Does a property hold over a whole suite of logs?

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::{LIMIT, label, named, of_case, of_streams, of_texts};
use crate::answer::diagnose::{AtHand, Engine, of_text, one};
use crate::answer::{AnswerError, World};
use crate::eval::{
    self, Cascade, Case, HEALTHY, Layout, Material, Mutation, NO_CAUSE, Part, Root, Texts, UNKNOWN,
    Wrong,
};
use crate::host::{Content, FileError};
use crate::model::{BaseState, Cause, Job, JobId, Notice, Place, Source, State, Stream};

/// Which suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Logs of successes that frighten: none may be given a cause.
    Negatives,
    /// Labelled cases, damaged: no verdict may move.
    Mutations,
    /// Jobs of many ranks: the first failure has to be found.
    Cascades,
    /// What Slurm says: each message has to be known.
    Messages,
}

impl Suite {
    /// The files it reads where none are named, below the folder that holds the sources.
    fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Negatives => &["eval/suites/negatives/index.tsv"],
            Self::Mutations => &["eval/reports.jsonl"],
            Self::Cascades => &[],
            Self::Messages => &[
                "eval/suites/messages/20.11.tsv",
                "eval/suites/messages/22.05.tsv",
                "eval/suites/messages/24.11.tsv",
                "eval/suites/messages/26.05.tsv",
            ],
        }
    }
}

/// What to measure.
#[derive(Debug)]
pub struct SuiteWanted {
    /// The suite.
    pub suite: Suite,
    /// Its files; none for the usual ones.
    pub files: Vec<PathBuf>,
    /// The seed of what is made.
    pub seed: u64,
    /// How many jobs of many ranks are made.
    pub jobs: usize,
    /// Bytes of padding on either side of a log.
    pub padding: u64,
    /// The least share that has to be right, in every part.
    pub min_right: Option<f64>,
    /// The most successes that may be given a cause by their log alone.
    pub max_false_alarms: Option<usize>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct SuiteReport {
    /// `jobwise/eval-suite/1`.
    pub schema: &'static str,
    /// The suite.
    pub suite: Suite,
    /// Its parts.
    pub parts: Vec<Part>,
    /// What could not be measured, and why.
    pub failures: Vec<String>,
    /// The thresholds that were not reached.
    pub missed: Vec<String>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

impl SuiteReport {
    /// Whether all was measured and every threshold reached.
    pub fn is_passed(&self) -> bool {
        let empty = self.parts.iter().all(|part| part.share.cases == 0);
        self.failures.is_empty() && self.missed.is_empty() && !empty
    }
}

/// The reading of [`Suite::Negatives`] that a limit on false alarms holds for.
const LOG_ALONE: &str = "log alone";

/// Measures one suite.
pub fn suite(world: World<'_>, wanted: &SuiteWanted) -> Result<SuiteReport, AnswerError> {
    let (engine, mut notices) = Engine::start(world)?;
    let usual = wanted.suite.usual().iter().map(PathBuf::from);
    let files = if wanted.files.is_empty() { usual.collect() } else { wanted.files.clone() };
    let mut failures = Vec::new();
    let parts = match wanted.suite {
        Suite::Negatives => negatives(world, &engine, &files)?,
        Suite::Mutations => mutations(world, &engine, &files, wanted.padding, &mut failures)?,
        Suite::Cascades => cascades(&engine, wanted),
        Suite::Messages => messages(world, &engine, &files)?,
    };
    if parts.iter().all(|part| part.share.cases == 0) {
        notices.push(Notice::warning("no-cases", "there is no case to measure"));
    }
    Ok(SuiteReport {
        schema: "jobwise/eval-suite/1",
        suite: wanted.suite,
        missed: missed(wanted, &parts),
        parts,
        failures,
        notices,
    })
}

fn missed(wanted: &SuiteWanted, parts: &[Part]) -> Vec<String> {
    let mut missed = Vec::new();
    for part in parts {
        if let (Some(least), Some(found)) = (wanted.min_right, part.share.share)
            && found < least
        {
            missed.push(format!("{} is {found:.3}, less than {least}", part.share.name));
        }
        let alarms = part.wrong.len();
        if let Some(most) = wanted.max_false_alarms
            && part.share.name == LOG_ALONE
            && alarms > most
        {
            missed.push(format!("{alarms} false alarms, more than {most}"));
        }
    }
    missed
}

fn text_of(world: World<'_>, file: &Path) -> Result<Vec<u8>, AnswerError> {
    let bytes = world.cluster.open(file)?.read_all(LIMIT);
    Ok(bytes.map_err(|error| FileError::from_io(file, &error))?)
}

/// Successes: by a record that says so, and by the log alone.
fn negatives(
    world: World<'_>,
    engine: &Engine,
    files: &[PathBuf],
) -> Result<Vec<Part>, AnswerError> {
    let mut logs: Vec<(String, Vec<u8>)> = Vec::new();
    for file in files {
        let index = text_of(world, file)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        for name in eval::names(&String::from_utf8_lossy(&index)) {
            logs.push((name.to_owned(), text_of(world, &folder.join(name))?));
        }
    }
    let completed = |(name, bytes): &(String, Vec<u8>)| {
        let mut job = Job::bare(JobId::whole(42), State::parse("COMPLETED"), Source::Accounting);
        job.exit = Some(crate::model::Exit { code: 0, signal: 0, folded: false }).into();
        let log = of_case(Stream::Output, name.clone(), Box::new(bytes.clone()));
        let verdict = one(engine, job, &mut AtHand { logs: vec![log], script: None }).verdict;
        let got = label(&verdict);
        (got != HEALTHY).then(|| wrong(name, HEALTHY, got))
    };
    let alone = |(name, bytes): &(String, Vec<u8>)| {
        let verdict = of_text(engine, bytes).verdict;
        named(&verdict).map(|cause| wrong(name, "no cause", &told(cause)))
    };
    Ok(vec![
        Part::of("COMPLETED", logs.par_iter().map(completed).collect()),
        Part::of(LOG_ALONE, logs.par_iter().map(alone).collect()),
    ])
}

fn wrong(id: &str, expected: &str, got: &str) -> Wrong {
    Wrong { id: id.to_owned(), expected: expected.to_owned(), got: got.to_owned() }
}

/// A cause and the line that decided it.
fn told(cause: &Cause) -> String {
    let line = cause.evidence.first().map_or("", |evidence| evidence.text.as_str());
    format!("{} ({line})", cause.family)
}

/// Runs that left a log, each damaged in every way.
fn mutations(
    world: World<'_>,
    engine: &Engine,
    files: &[PathBuf],
    padding: u64,
    failures: &mut Vec<String>,
) -> Result<Vec<Part>, AnswerError> {
    let mut cases = Vec::new();
    for file in files {
        let bytes = text_of(world, file)?;
        let (read, bad) = eval::read(&String::from_utf8_lossy(&bytes));
        failures.extend(
            bad.into_iter().map(|bad| format!("{}:{}: {}", file.display(), bad.line, bad.what)),
        );
        cases.extend(read.into_iter().filter(|case| case.stage.as_deref() == Some("run")));
    }
    let runs: Vec<(&Case, &Texts)> = cases
        .iter()
        .filter_map(|case| match &case.material {
            Material::Texts(texts) => Some((case, texts)),
            Material::Recording { .. } => None,
        })
        .filter(|(_, texts)| !texts.out.is_empty() || !texts.err.is_empty())
        .collect();
    let before: Vec<Result<String, String>> = runs
        .par_iter()
        .map(|(case, texts)| Ok(label(&of_texts(engine, case, texts)?.verdict).to_owned()))
        .collect();
    failures.extend(before.iter().filter_map(|before| before.as_ref().err().cloned()));
    let part = |(mutation, name): (Mutation, &str)| {
        let moved = runs.par_iter().zip(&before).filter_map(|((case, texts), before)| {
            let before = before.as_ref().ok()?;
            if mutation.adds_work() && fell_silent(texts, before) {
                return None;
            }
            let damaged = |text: &str| mutation.apply(text, &case.root_cause_line, padding);
            let (out, err) = (damaged(&texts.out), damaged(&texts.err));
            if out.is_none() && err.is_none() {
                return None;
            }
            let whole = |text: &str| -> Box<dyn Content> { Box::new(text.as_bytes().to_vec()) };
            let out = out.unwrap_or_else(|| whole(&texts.out));
            let err = err.or_else(|| (!texts.err.is_empty()).then(|| whole(&texts.err)));
            let after = of_streams(engine, case, texts, Some(out), err).ok()?.verdict;
            let got = label(&after);
            Some((got != before).then(|| wrong(&case.id, before, got)))
        });
        Part::of(name, moved.collect())
    };
    Ok(Mutation::ALL.into_iter().map(part).collect())
}

/// Whether a run failed in what its record does not tell of: it lasted until its limit or was cancelled
/// and is held to have failed before, or it is called completed. That nothing followed is what tells so, and work
/// after it would tell the opposite.
fn fell_silent(texts: &Texts, verdict: &str) -> bool {
    let state = texts.record.get("State").map(|text| State::parse(text).base);
    match state {
        Some(BaseState::Timeout) => verdict != "time_limit",
        Some(BaseState::Completed) => verdict != HEALTHY,
        Some(BaseState::Cancelled) => verdict != "cancelled_by_user",
        _ => false,
    }
}

/// Made jobs, by what happened first and where the ranks write.
fn cascades(engine: &Engine, wanted: &SuiteWanted) -> Vec<Part> {
    let jobs = eval::cascades(wanted.seed, wanted.jobs);
    let found: Vec<Option<Wrong>> = jobs.par_iter().map(|job| cascade(engine, job)).collect();
    let layouts = [(Layout::OneFile, "one file"), (Layout::FileEach, "a file each")];
    let mut parts = Vec::new();
    for (root, root_name) in Root::ALL {
        for (layout, layout_name) in layouts {
            let own = jobs.iter().zip(&found);
            let own = own.filter(|(job, _)| job.root == root && job.layout == layout);
            let outcomes = own.map(|(_, found)| found.clone()).collect();
            parts.push(Part::of(&format!("{root_name}, {layout_name}"), outcomes));
        }
    }
    parts
}

/// What is wrong with the answer to a made job: the family, the line, or its rank.
fn cascade(engine: &Engine, made: &Cascade) -> Option<Wrong> {
    let state = if made.root == Root::HostMemory { "OUT_OF_MEMORY" } else { "FAILED" };
    let job = Job::bare(JobId::whole(42), State::parse(state), Source::Given);
    let logs = made.logs.iter().map(|log| {
        let name = log.task.map_or_else(|| "job.out".to_owned(), |task| format!("{task}.out"));
        let mut located = of_case(Stream::Output, name, log.content());
        located.task = log.task;
        located
    });
    let verdict = one(engine, job, &mut AtHand { logs: logs.collect(), script: None }).verdict;
    let got = match named(&verdict) {
        None => UNKNOWN.to_owned(),
        Some(cause) if is_root(cause, made) => return None,
        Some(cause) => {
            let rank = cause.evidence.iter().find_map(rank_of);
            let rank = rank.map_or_else(|| "no rank".to_owned(), |rank| format!("rank {rank}"));
            format!("{rank}: {}", told(cause))
        }
    };
    let expected = format!("rank {} of {}: {}", made.rank, made.ranks, made.lines[0]);
    Some(wrong(&made.id, &expected, &got))
}

/// Whether a cause is of the right family, quotes a line that says why, and says whose it is.
fn is_root(cause: &Cause, made: &Cascade) -> bool {
    let family = made.root.families().contains(&cause.family.0.as_str());
    let quoted = cause.evidence.iter().filter(|evidence| {
        let text = evidence.text.trim();
        made.lines.iter().any(|line| text.ends_with(line.as_str()))
    });
    let by_launcher = format!(": task {}: ", made.rank);
    let mut quoted = quoted.map(|evidence| match rank_of(evidence) {
        Some(rank) => rank == made.rank,
        None => evidence.text.contains(&by_launcher),
    });
    family && quoted.any(|right| right)
}

fn rank_of(evidence: &crate::model::Evidence) -> Option<u64> {
    match evidence.place {
        Place::Log { rank, .. } => rank,
        Place::Record { .. } => None,
    }
}

/// What Slurm says, by release: what is a failure, and what is none.
fn messages(
    world: World<'_>,
    engine: &Engine,
    files: &[PathBuf],
) -> Result<Vec<Part>, AnswerError> {
    let mut parts = Vec::new();
    for file in files {
        let bytes = text_of(world, file)?;
        let table = String::from_utf8_lossy(&bytes).into_owned();
        let release = file.file_stem().unwrap_or_default().to_string_lossy();
        let (harmless, failures): (Vec<_>, Vec<_>) =
            eval::messages(&table).into_iter().partition(|message| message.families == [NO_CAUSE]);
        for (kind, messages) in [("failures", failures), ("no failures", harmless)] {
            let judge = |message: &eval::Message<'_>| {
                let verdict = of_text(engine, message.text.as_bytes()).verdict;
                let got = named(&verdict).map_or(NO_CAUSE, |cause| &cause.family.0);
                let right = message.families.contains(&got);
                (!right).then(|| wrong(message.text, &message.families.join("|"), got))
            };
            let judged = messages.par_iter().map(judge).collect();
            parts.push(Part::of(&format!("{release}, {kind}"), judged));
        }
    }
    Ok(parts)
}
