//! How good are the diagnoses on labelled cases?
//!
//! Each case goes the path of `diagnose`: only its logs and its record come from a file.

mod left_out;
mod retrieval;
mod suites;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::diagnose::{AtHand, Diagnosis, Engine, Hints, Shared, asked, of_text, one};
use super::{AnswerError, World};
use crate::eval::{
    self, Answered, Case, Comparison, HEALTHY, LeftOut, Material, Measures, Split, Table, Texts,
    Thresholds, UNKNOWN,
};
use crate::host::{Content, FileError, Replay};
use crate::logs::{Certainty, Located};
use crate::model::{Cause, Job, JobId, Notice, Outcome, Place, Source, State, Stream, Verdict};
use crate::retrieve::Match;
use crate::sched::{Session, slurm};
use crate::text;

pub use retrieval::{SearchReport, SearchWanted, retrieval};
pub use suites::{Suite, SuiteReport, SuiteWanted, suite};

/// Sets of cases are text files of a few megabytes.
const LIMIT: u64 = 1 << 30;

/// What to measure, and on what.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Files of cases.
    pub files: Vec<PathBuf>,
    /// Which of their cases.
    pub split: Split,
    /// Where to write a line a case.
    pub results: Option<PathBuf>,
    /// Whether to make the table that turns scores into confidences.
    pub calibrate: bool,
    /// Whether to compare with plain keywords.
    pub baseline: bool,
    /// Whether to see what becomes of each family's cases without its rule.
    pub leave_one_out: bool,
    /// What has to be reached.
    pub thresholds: Thresholds,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Evaluation {
    /// `jobwise/eval/1`.
    pub schema: &'static str,
    /// Every number.
    #[serde(flatten)]
    pub measures: Measures,
    /// The table that turns scores into confidences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Table>,
    /// The same cases by plain keywords.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Comparison>,
    /// Every family's cases without its rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
    /// Lines that are no case and cases without an answer, each with its place and the reason.
    pub failures: Vec<String>,
    /// The thresholds that were not reached.
    pub missed: Vec<String>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

impl Evaluation {
    /// Whether every case was measured and every threshold reached.
    pub fn is_passed(&self) -> bool {
        self.failures.is_empty() && self.missed.is_empty() && self.measures.accuracy.cases > 0
    }

    /// Whether the files hold lines, and none is a case: they are something else.
    pub fn has_no_case(&self) -> bool {
        !self.failures.is_empty() && self.measures.accuracy.cases == 0
    }
}

/// Diagnoses every case and counts.
pub fn evaluate(world: World<'_>, wanted: &Wanted) -> Result<Evaluation, AnswerError> {
    let (engine, mut notices) = Engine::start(world)?;
    let mut cases: Vec<(PathBuf, Case)> = Vec::new();
    let mut failures = Vec::new();
    for file in &wanted.files {
        let bytes = world.cluster.open(file)?.read_all(LIMIT);
        let bytes = bytes.map_err(|error| FileError::from_io(file, &error))?;
        let (read, bad) = eval::read(&String::from_utf8_lossy(&bytes));
        let place = |line: usize| format!("{}:{line}", file.display());
        failures.extend(bad.into_iter().map(|bad| format!("{}: {}", place(bad.line), bad.what)));
        let folder = file.parent().unwrap_or(Path::new(""));
        let held = read.into_iter().filter(|case| wanted.split.holds(case));
        cases.extend(held.map(|case| (folder.to_owned(), case)));
    }
    // In the order of the files, however many threads there are.
    let answers: Vec<(Answered, Option<String>)> = cases
        .par_iter()
        .map(|(folder, case)| answer(&engine, world, folder, case, wanted.baseline))
        .collect();
    let (answered, errors): (Vec<Answered>, Vec<Option<String>>) = answers.into_iter().unzip();
    failures.extend(errors.into_iter().flatten());
    if answered.is_empty() {
        notices.push(Notice::warning("no-cases", "there is no case to measure"));
    }
    if let Some(path) = &wanted.results {
        write_results(path, &answered)?;
    }
    let left_out = wanted.leave_one_out.then(|| left_out::leave_one_out(&engine, world, &cases));
    let measures = eval::measure(&answered);
    Ok(Evaluation {
        schema: "jobwise/eval/1",
        calibration: wanted.calibrate.then(|| eval::table(&answered)),
        baseline: wanted.baseline.then(|| eval::compare(&answered)),
        left_out,
        missed: wanted.thresholds.missed(&measures),
        measures,
        failures,
        notices,
    })
}

fn write_results(path: &Path, answered: &[Answered]) -> Result<(), AnswerError> {
    let mut lines = String::new();
    for case in answered {
        // A struct of plain fields always becomes JSON.
        lines.push_str(&serde_json::to_string(case).unwrap_or_default());
        lines.push('\n');
    }
    super::write_named(path, lines.as_bytes())
}

/// The answer to one case; with what is wrong where there is none.
fn answer(
    engine: &Engine,
    world: World<'_>,
    folder: &Path,
    case: &Case,
    baseline: bool,
) -> (Answered, Option<String>) {
    let began = world.cluster.now();
    let diagnosis = diagnosed(engine, world, folder, case);
    let mut answered = Answered::without_answer(case);
    let diagnosis = match diagnosis {
        Ok(diagnosis) => diagnosis,
        Err(what) => return (answered, Some(format!("{}: {what}", case.id))),
    };
    let millis = world.cluster.now().as_millisecond() - began.as_millisecond();
    answered.millis = u64::try_from(millis).unwrap_or(0);

    let verdict = &diagnosis.verdict;
    let first = verdict.causes.first();
    let named = named(verdict);
    label(verdict).clone_into(&mut answered.got);
    answered.named = named.is_some();
    answered.confidence = named.map(|cause| cause.confidence.measured);
    answered.first = first.map(|cause| cause.family.0.clone());
    answered.score = first.map(|cause| cause.confidence.score);
    if case.stage.is_none() && diagnosis.job.waits() {
        "pending".clone_into(&mut answered.stage);
    }
    if diagnosis.fix.is_some() {
        answered.doc_rank = place(&engine.sections(verdict, usize::MAX), &answered);
    }
    let root = text::masked(&text::clean_line(case.root_cause_line.as_bytes()));
    let root = root.trim();
    if !root.is_empty() {
        let from_record = case.root_cause_in == "sacct";
        answered.root_line_hit = Some(first.is_some_and(|cause| quotes(cause, root, from_record)));
        answered.line_rank = place(&engine.search(root), &answered);
    }
    if let Material::Texts(texts) = &case.material
        && baseline
    {
        let text = format!("{}\n{}", texts.out, texts.err);
        let state = texts.record.get("State").map_or("", String::as_str);
        answered.keywords = Some(eval::keywords(state, &text).unwrap_or_default().to_owned());
    }
    (answered, None)
}

fn diagnosed(
    engine: &Engine,
    world: World<'_>,
    folder: &Path,
    case: &Case,
) -> Result<Diagnosis, String> {
    match &case.material {
        Material::Texts(texts) => of_texts(engine, case, texts),
        Material::Recording { path, job } => of_recording(engine, world, &folder.join(path), job),
    }
}

/// The cause that a verdict names.
fn named(verdict: &Verdict) -> Option<&Cause> {
    let names = matches!(verdict.outcome, Outcome::Cause | Outcome::Pending);
    verdict.causes.first().filter(|_| names)
}

/// The label that a verdict amounts to.
fn label(verdict: &Verdict) -> &str {
    match (named(verdict), verdict.outcome) {
        (Some(cause), _) => &cause.family.0,
        (None, Outcome::Cause | Outcome::Unknown) => UNKNOWN,
        (None, Outcome::Healthy) => HEALTHY,
        (None, Outcome::Running) => "running",
        (None, Outcome::Pending) => "pending",
    }
}

/// At which place a right note comes; of the sections of one note the first counts.
fn place(sections: &[Match], answered: &Answered) -> Option<usize> {
    let mut notes: Vec<&str> = Vec::new();
    for found in sections {
        let note = found.chunk.family.0.as_str();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.iter().position(|note| answered.accepts(note)).map(|index| index + 1)
}

/// Whether a cause quotes the line that tells it. Where the record tells it, any field will do; a
/// line that shows the record is quoted by the field's value.
fn quotes(cause: &Cause, root: &str, from_record: bool) -> bool {
    cause.evidence.iter().any(|evidence| {
        let line = evidence.text.trim();
        let value = line.rsplit(' ').next().unwrap_or_default();
        match evidence.place {
            Place::Record { .. } => from_record || (value.len() > 2 && root.contains(value)),
            // The evidence is a whole line but for the label of its rank.
            Place::Log { .. } => !line.is_empty() && (line.contains(root) || root.ends_with(line)),
        }
    })
}

/// The case's logs as they would have been found, its record as `sacct` would have told it.
fn of_texts(engine: &Engine, case: &Case, texts: &Texts) -> Result<Diagnosis, String> {
    if case.stage.as_deref() == Some("submit") {
        let text = format!("{}\n{}", texts.out, texts.err);
        return Ok(of_text(engine, text.as_bytes()));
    }
    // Both streams in one file leave the second empty; where both are, there was no log.
    let content = |text: &str| -> Box<dyn Content> { Box::new(text.as_bytes().to_vec()) };
    let out = (!texts.out.is_empty() || !texts.err.is_empty()).then(|| content(&texts.out));
    let err = (!texts.err.is_empty()).then(|| content(&texts.err));
    of_streams(engine, case, texts, out, err)
}

/// The case with its record and script, and with these as its logs.
fn of_streams(
    engine: &Engine,
    case: &Case,
    texts: &Texts,
    out: Option<Box<dyn Content>>,
    err: Option<Box<dyn Content>>,
) -> Result<Diagnosis, String> {
    let job = if texts.record.is_empty() {
        Job::bare(JobId::whole(0), State::parse("FAILED"), Source::Given)
    } else {
        slurm::job_from_fields(&texts.record).map_err(|error| error.to_string())?
    };
    let log = |stream, end: &str, content: Option<Box<dyn Content>>| {
        Some(of_case(stream, format!("{}.{end}", case.id), content?))
    };
    let logs = [log(Stream::Output, "out", out), log(Stream::Error, "err", err)];
    let logs = logs.into_iter().flatten().collect();
    let script = (!texts.script.is_empty())
        .then(|| Ok((format!("{}.sh", case.id), texts.script.as_bytes().to_vec())));
    Ok(one(engine, job, &mut AtHand { logs, script }))
}

/// A log that belongs to a case.
fn of_case(stream: Stream, path: String, content: Box<dyn Content>) -> Located {
    Located {
        stream,
        path,
        certainty: Certainty::Given,
        how: "a labelled case".to_owned(),
        step: None,
        task: None,
        found: Ok(content),
    }
}

fn of_recording(
    engine: &Engine,
    world: World<'_>,
    path: &Path,
    job: &str,
) -> Result<Diagnosis, String> {
    let replay = Replay::load(path).map_err(|error| error.to_string())?;
    let session = Session::default();
    let world = World { live: false, ..world.on(&replay, &session) };
    let backend = world.backend();
    let (mut diagnoses, _) = asked(engine, &Shared::new(world), &backend, job, &Hints::default())
        .map_err(|error| error.to_string())?;
    if diagnoses.len() != 1 {
        return Err(format!("{job} names {} jobs; a case is one", diagnoses.len()));
    }
    diagnoses.pop().ok_or_else(String::new)
}
