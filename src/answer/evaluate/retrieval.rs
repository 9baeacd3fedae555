//! Does search find the note and the section that answer, and what does each ranking add?

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::{LIMIT, named};
use crate::answer::diagnose::{Engine, of_text};
use crate::answer::{AnswerError, World, write_named};
use crate::eval::{self, ALL_KINDS, Asked, Interval, Place, Ranked};
use crate::host::FileError;
use crate::knowledge::unfilled;
use crate::model::{FamilyId, Notice};
use crate::retrieve::{Match, Method, Parts, Scored, first_steps};

/// The queries that choices are made on, below the folder that holds the sources.
const USUAL: &str = "eval/queries.jsonl";
/// The wanted section of a note that was only looked up.
const LOOKED_UP: &str = "Fixes";
/// Notes of a query that `--results` tells.
const TOLD: usize = 10;

/// The ways of ranking that are compared. Of a family that is hidden the query says nothing but its
/// words.
const WAYS: [&str; 6] = ["lookup", "BM25", "dense", "fused", "by the rules", "family known"];
const BM25: usize = 1;
const FUSED: usize = 3;
const KNOWN: usize = 5;

/// What to measure, and what has to be reached.
#[derive(Debug, Default)]
pub struct SearchWanted {
    /// Files of queries; none for the usual one.
    pub files: Vec<PathBuf>,
    /// Where to write a line a query.
    pub results: Option<PathBuf>,
    /// The least share of notes that come first when the family is known, in every kind.
    pub min_known: Option<f64>,
    /// The least share of notes that come first when the family is hidden, of all queries.
    pub min_hidden: Option<f64>,
    /// The least that search adds to BM25 alone on paraphrases, without losing on evidence.
    pub min_gain: Option<f64>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct SearchReport {
    /// `jobwise/eval-retrieval/1`.
    pub schema: &'static str,
    /// Whose vectors took part.
    pub embedder: String,
    /// Each way of ranking, on all queries and on each kind.
    pub rows: Vec<Ranked>,
    /// What could not be measured, and why.
    pub failures: Vec<String>,
    /// The thresholds that were not reached.
    pub missed: Vec<String>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

impl SearchReport {
    /// Whether all was measured and every threshold reached.
    pub fn is_passed(&self) -> bool {
        let empty = self.rows.iter().all(|row| row.queries == 0);
        self.failures.is_empty() && self.missed.is_empty() && !empty
    }
}

/// A line of `--results`: what a person who asks is shown.
#[derive(Serialize)]
struct Told<'q> {
    id: &'q str,
    kind: &'q str,
    query: &'q str,
    family: &'q str,
    section: &'q str,
    /// The family that the rules name for the words.
    named: Option<&'q str>,
    /// The place of the right note: family hidden, named by the rules, known.
    place: [Option<usize>; 3],
    notes: Vec<ToldNote>,
    /// The steps of the first note.
    answer: Vec<String>,
}

#[derive(Serialize)]
struct ToldNote {
    family: String,
    section: String,
    score: f64,
    parts: Parts,
    sections: Vec<Scored>,
}

/// Ranks the notes for every query, each way.
pub fn retrieval(world: World<'_>, wanted: &SearchWanted) -> Result<SearchReport, AnswerError> {
    let (engine, mut notices) = Engine::start(world)?;
    let usual = [PathBuf::from(USUAL)];
    let files = if wanted.files.is_empty() { &usual[..] } else { &wanted.files };
    let (asked, failures) = read(world, files)?;
    if asked.is_empty() {
        notices.push(Notice::warning("no-cases", "there is no query to measure"));
    }
    let answered: Vec<Answered> = asked.par_iter().map(|asked| answer(&engine, asked)).collect();
    let mut rows = Vec::new();
    for (way, name) in WAYS.into_iter().enumerate() {
        let places: Vec<Place> =
            answered.iter().filter_map(|query| query.places.get(way)).copied().collect();
        rows.extend(eval::ranked(name, &asked, &places));
    }
    if let Some(path) = &wanted.results {
        write_results(path, &asked, &answered)?;
    }
    notices.extend(engine.model_notice());
    Ok(SearchReport {
        schema: "jobwise/eval-retrieval/1",
        embedder: engine.embedder(),
        missed: missed(wanted, &rows),
        rows,
        failures,
        notices,
    })
}

fn read(world: World<'_>, files: &[PathBuf]) -> Result<(Vec<Asked>, Vec<String>), AnswerError> {
    let mut asked = Vec::new();
    let mut failures = Vec::new();
    for file in files {
        let bytes = world.cluster.open(file)?.read_all(LIMIT);
        let bytes = bytes.map_err(|error| FileError::from_io(file, &error))?;
        let (read, bad) = eval::queries(&String::from_utf8_lossy(&bytes));
        let told = |bad: eval::BadLine| format!("{}:{}: {}", file.display(), bad.line, bad.what);
        failures.extend(bad.into_iter().map(told));
        asked.extend(read);
    }
    Ok((asked, failures))
}

/// The answer to a query.
struct Answered {
    named: Option<FamilyId>,
    /// In the order of [`WAYS`].
    places: [Place; WAYS.len()],
    /// What somebody who asks is shown.
    found: Vec<Match>,
}

fn answer(engine: &Engine, asked: &Asked) -> Answered {
    let label = FamilyId(asked.family.clone());
    let verdict = of_text(engine, asked.query.as_bytes()).verdict;
    let named = named(&verdict).map(|cause| cause.family.clone());
    let rank = |family: Option<&FamilyId>, method| engine.ask(&asked.query, family, method);
    let place = |found: &[Match]| {
        let notes = found.iter().map(|found| (&*found.chunk.family.0, &*found.chunk.heading));
        Place::of(asked, notes)
    };
    let looked_up = named.iter().map(|family| (family.0.as_str(), LOOKED_UP));
    let fused = rank(None, Method::Fused);
    // A family that is known, or that the rules name, leads: what its words mean is not asked.
    let by_rules = match &named {
        Some(family) => rank(Some(family), Method::Fused),
        None => fused.clone(),
    };
    let places = [
        Place::of(asked, looked_up),
        place(&rank(None, Method::Words)),
        place(&rank(None, Method::Meaning)),
        place(&fused),
        place(&by_rules),
        place(&rank(Some(&label), Method::Fused)),
    ];
    Answered { named, places, found: fused }
}

fn write_results(path: &Path, asked: &[Asked], answered: &[Answered]) -> Result<(), AnswerError> {
    let mut lines = String::new();
    for (asked, answered) in asked.iter().zip(answered) {
        let note = |found: &Match| ToldNote {
            family: found.chunk.family.0.clone(),
            section: found.chunk.heading.clone(),
            score: found.score,
            parts: found.parts,
            sections: found.sections.clone(),
        };
        let steps = answered.found.first().map(|found| unfilled(&found.chunk.markdown));
        let told = Told {
            id: &asked.id,
            kind: &asked.kind,
            query: &asked.query,
            family: &asked.family,
            section: &asked.section,
            named: answered.named.as_ref().map(|family| family.0.as_str()),
            place: [FUSED, FUSED + 1, KNOWN].map(|way| answered.places.get(way)?.note),
            notes: answered.found.iter().take(TOLD).map(note).collect(),
            answer: steps.map(|steps| first_steps(&steps)).unwrap_or_default(),
        };
        // A struct of plain fields always becomes JSON.
        lines.push_str(&serde_json::to_string(&told).unwrap_or_default());
        lines.push('\n');
    }
    write_named(path, lines.as_bytes())
}

fn missed(wanted: &SearchWanted, rows: &[Ranked]) -> Vec<String> {
    let of = |way: usize| rows.iter().filter(move |row| Some(&row.method) == WAYS.get(way));
    let first = |way: usize, kind: &str| {
        let row = of(way).find(|row| row.kind == kind)?;
        row.recall_at_1.map(|Interval { value, .. }| value)
    };
    let mut missed = Vec::new();
    let mut least = |name: &str, found: Option<f64>, least: Option<f64>| {
        let Some(least) = least else { return };
        let told = found.map_or_else(|| "n/a".to_owned(), |found| format!("{found:.3}"));
        if found.is_none_or(|found| found < least) {
            missed.push(format!("{name} is {told}, less than {least}"));
        }
    };
    for row in of(KNOWN) {
        let name = format!("recall@1 of {} with the family known", row.kind);
        least(&name, row.recall_at_1.map(|found| found.value), wanted.min_known);
    }
    least("recall@1 with the family hidden", first(FUSED, ALL_KINDS), wanted.min_hidden);
    let gain = |kind: &str| Some(first(FUSED, kind)? - first(BM25, kind)?);
    least("what search adds to BM25 on paraphrases", gain("paraphrase"), wanted.min_gain);
    let none = wanted.min_gain.map(|_| 0.0);
    least("what search adds to BM25 on evidence", gain("evidence"), none);
    missed
}
