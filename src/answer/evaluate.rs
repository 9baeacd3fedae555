//! How good are the diagnoses on labelled cases?
//!
//! Each case goes the path of `diagnose`: only its logs and its record come from a file.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::diagnose::{AtHand, Diagnosis, Engine, Hints, asked, one};
use super::{AnswerError, World};
use crate::eval::{self, Answered, Case, HEALTHY, Material, Measures, Split, Texts, UNKNOWN};
use crate::host::{Replay, Store};
use crate::logs::{Certainty, Located};
use crate::model::{Evidence, Job, JobId, Notice, Outcome, Place, Source, State, Stream};
use crate::sched::{self, slurm};
use crate::text;

/// Sets of cases are text files of a few megabytes.
const LIMIT: u64 = 1 << 30;
/// Notes looked at for the place of the right one.
const PLACES: usize = 64;

/// What to measure on.
#[derive(Debug, Default)]
pub struct Sets {
    /// Files of cases.
    pub files: Vec<PathBuf>,
    /// Which of their cases.
    pub split: Split,
    /// Where to write a line a case.
    pub results: Option<PathBuf>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Evaluation {
    /// `jobwise/eval/1`.
    pub schema: &'static str,
    /// Every number.
    #[serde(flatten)]
    pub measures: Measures,
    /// Cases that could not be read, as `file:line: what`.
    pub skipped: Vec<String>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Diagnoses every case and counts.
pub fn evaluate(world: World<'_>, sets: &Sets) -> Result<Evaluation, AnswerError> {
    let (engine, notices) = Engine::start(world)?;
    let mut cases: Vec<(PathBuf, Case)> = Vec::new();
    let mut skipped = Vec::new();
    for file in &sets.files {
        let bytes = world.cluster.open(file)?.read_all(LIMIT);
        let bytes = bytes.map_err(|error| crate::host::FileError::from_io(file, &error))?;
        let (read, bad) = eval::read(&String::from_utf8_lossy(&bytes));
        skipped.extend(
            bad.into_iter().map(|bad| format!("{}:{}: {}", file.display(), bad.line, bad.what)),
        );
        let folder = file.parent().unwrap_or(Path::new(""));
        let held = read.into_iter().filter(|case| sets.split.holds(case));
        cases.extend(held.map(|case| (folder.to_owned(), case)));
    }
    let answers: Vec<(Answered, Option<String>)> =
        cases.par_iter().map(|(folder, case)| answer(&engine, world, folder, case)).collect();
    let (answered, errors): (Vec<Answered>, Vec<Option<String>>) = answers.into_iter().unzip();
    skipped.extend(errors.into_iter().flatten());
    if let Some(path) = &sets.results {
        write_results(path, &answered)?;
    }
    Ok(Evaluation {
        schema: "jobwise/eval/1",
        measures: eval::measure(&answered),
        skipped,
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
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Store::at(folder.unwrap_or(Path::new("."))).replace(&name, lines.as_bytes())?)
}

/// The answer to one case; with what is wrong where there is none.
fn answer(
    engine: &Engine,
    world: World<'_>,
    folder: &Path,
    case: &Case,
) -> (Answered, Option<String>) {
    let began = world.cluster.now();
    let diagnosis = match &case.material {
        Material::Texts(texts) => of_texts(engine, case, texts),
        Material::Recording { path, job } => of_recording(engine, world, &folder.join(path), job),
    };
    let mut answered = Answered {
        id: case.id.clone(),
        expected: case.family.clone(),
        also: case.also.clone(),
        got: "error".to_owned(),
        named: false,
        confidence: None,
        first: None,
        score: None,
        doc_rank: None,
        root_line_hit: None,
        millis: 0,
        difficulty: case.difficulty.clone(),
        stage: case.stage.clone(),
        source: case.source.clone(),
    };
    let diagnosis = match diagnosis {
        Ok(diagnosis) => diagnosis,
        Err(what) => return (answered, Some(format!("{}: {what}", case.id))),
    };
    let verdict = &diagnosis.verdict;
    let first = verdict.causes.first();
    answered.named =
        matches!(verdict.outcome, Outcome::Cause | Outcome::Pending) && first.is_some();
    let family = first.map(|cause| cause.family.0.clone());
    answered.got = match verdict.outcome {
        Outcome::Cause | Outcome::Pending if answered.named => family.clone().unwrap_or_default(),
        Outcome::Cause | Outcome::Unknown => UNKNOWN.to_owned(),
        Outcome::Healthy => HEALTHY.to_owned(),
        Outcome::Running => "running".to_owned(),
        Outcome::Pending => "pending".to_owned(),
    };
    answered.confidence = first.filter(|_| answered.named).map(|cause| cause.confidence.measured);
    answered.score = first.map(|cause| cause.confidence.score);
    answered.first = family;
    answered.doc_rank = doc_rank(engine, &diagnosis, &answered);
    answered.root_line_hit = quotes_root(case, &diagnosis);
    let millis = world.cluster.now().as_millisecond() - began.as_millisecond();
    answered.millis = u64::try_from(millis).unwrap_or(0);
    (answered, None)
}

/// The case's logs as they would have been found, its record as `sacct` would have told it.
fn of_texts(engine: &Engine, case: &Case, texts: &Texts) -> Result<Diagnosis, String> {
    let job = if texts.record.is_empty() {
        Job::bare(JobId::whole(0), State::parse("FAILED"), Source::Given)
    } else {
        slurm::job_from_fields(&texts.record).map_err(|error| error.to_string())?
    };
    let log = |stream, end: &str, text: &str| Located {
        stream,
        path: format!("{}.{end}", case.id),
        certainty: Certainty::Given,
        how: "a labelled case".to_owned(),
        step: None,
        task: None,
        found: Ok(Box::new(text.as_bytes().to_vec())),
    };
    let mut logs = Vec::new();
    // Both streams in one file leave the second empty; where both are, there was no log.
    if !texts.out.is_empty() || !texts.err.is_empty() {
        logs.push(log(Stream::Output, "out", &texts.out));
    }
    if !texts.err.is_empty() {
        logs.push(log(Stream::Error, "err", &texts.err));
    }
    let script = (!texts.script.is_empty())
        .then(|| Ok((format!("{}.sh", case.id), texts.script.as_bytes().to_vec())));
    Ok(one(engine, job, &mut AtHand { logs, script }))
}

fn of_recording(
    engine: &Engine,
    world: World<'_>,
    path: &Path,
    job: &str,
) -> Result<Diagnosis, String> {
    let replay = Replay::load(path).map_err(|error| error.to_string())?;
    let world = World { cluster: &replay, ..world };
    let backend = sched::detect(&replay, &world.config.settings.scheduler);
    let (mut diagnoses, _) = asked(engine, world, &backend, job, &Hints::default())
        .map_err(|error| error.to_string())?;
    if diagnoses.len() != 1 {
        return Err(format!("{job} names {} jobs; a case is one", diagnoses.len()));
    }
    diagnoses.pop().ok_or_else(String::new)
}

/// At which place a right note comes when the verdict is looked up; each note counts once.
fn doc_rank(engine: &Engine, diagnosis: &Diagnosis, answered: &Answered) -> Option<usize> {
    let mut notes: Vec<String> = Vec::new();
    for found in engine.sections(&diagnosis.verdict, PLACES * 4) {
        if !notes.contains(&found.chunk.family.0) {
            notes.push(found.chunk.family.0);
        }
    }
    notes.iter().position(|note| answered.accepts(note)).map(|index| index + 1)
}

/// Whether the first cause quotes the line that tells the cause.
fn quotes_root(case: &Case, diagnosis: &Diagnosis) -> Option<bool> {
    let root = text::masked(&text::clean_line(case.root_cause_line.as_bytes()));
    let root = root.trim();
    if root.is_empty() {
        return None;
    }
    let from_record = case.root_cause_in == "sacct";
    let quotes = |evidence: &Evidence| {
        let line = evidence.text.trim();
        match evidence.place {
            Place::Record { .. } => from_record,
            // The evidence is a whole line but for the label of its rank.
            Place::Log { .. } => !line.is_empty() && (line.contains(root) || root.ends_with(line)),
        }
    };
    let first = diagnosis.verdict.causes.first();
    Some(first.is_some_and(|cause| cause.evidence.iter().any(quotes)))
}
