//! The knowledge base: what is in it, what it finds, whether it is sound.

use std::path::PathBuf;

use serde::Serialize;

use super::{AnswerError, World};
use crate::classify::{self, Rules};
use crate::knowledge::{self, Family, Finding, Provenance};
use crate::logs::{self, Limits, Scanner};
use crate::model::{Domain, Edit, FamilyId, Notice};
use crate::retrieve::{HashEmbedder, Library, Match, Query, Wants};
use crate::text;

/// The description and the index in one file, so that they are replaced together.
const INDEX: &str = "notes.index";

/// The library to search: the index that `kb build` left, where it is sound and current, else one
/// built in memory from the notes at hand. Says which, and why a stored one was not used.
pub(super) fn library(
    world: World<'_>,
    families: &[Family],
) -> Result<(Library, String, Vec<Notice>), AnswerError> {
    let mut notices = Vec::new();
    // An index that cannot be read is as good as none: it can be built again.
    let store = world.store.filter(|_| world.live);
    let stored = store.and_then(|store| store.read(INDEX).ok().flatten());
    if let Some(stored) = stored {
        // The description is one line of JSON.
        let end = stored.iter().position(|byte| *byte == b'\n').unwrap_or(stored.len());
        let (meta, rest) = stored.split_at(end);
        let index = rest.get(1..).unwrap_or_default();
        match Library::decode(families, Box::new(HashEmbedder), index, meta) {
            Ok(library) => return Ok((library, "stored index".to_owned(), notices)),
            Err(error) => notices.push(
                Notice::warning("index", format!("the stored index was not used: {error}"))
                    .hint("run: jobwise kb build"),
            ),
        }
    }
    let library = Library::build(families, Box::new(HashEmbedder))?;
    let notes = if families.iter().all(|family| family.provenance == Provenance::BuiltIn) {
        "built-in notes"
    } else {
        "built-in notes and yours"
    };
    Ok((library, notes.to_owned(), notices))
}

/// What `kb build` made.
#[derive(Debug, Serialize)]
pub struct Built {
    /// `jobwise/kb-build/1`.
    pub schema: &'static str,
    /// Families read.
    pub families: usize,
    /// Chunks indexed.
    pub chunks: usize,
    /// The embedder.
    pub embedder: String,
    /// How it is searched.
    pub search: &'static str,
    /// Where it is kept.
    pub index: PathBuf,
    /// Bytes of the index.
    pub bytes: usize,
    /// What the index lacks.
    pub notices: Vec<Notice>,
}

/// Builds the index and keeps it.
pub fn build(world: World<'_>) -> Result<Built, AnswerError> {
    let store = world.store.ok_or(AnswerError::NoStore)?;
    let (families, broken) = world.families()?;
    let library = Library::build(&families, Box::new(HashEmbedder))?;
    let files = library.encode()?;
    store.replace(INDEX, &[files.meta.as_slice(), b"\n", &files.index].concat())?;
    Ok(Built {
        schema: "jobwise/kb-build/1",
        families: families.len(),
        chunks: library.sections(),
        embedder: library.embedder(),
        search: library.search_kind(),
        index: store.root().join(INDEX),
        bytes: files.index.len(),
        notices: broken.iter().map(super::left_out).collect(),
    })
}

/// What a question found.
#[derive(Debug, Serialize)]
pub struct Hits {
    /// `jobwise/kb-search/1`.
    pub schema: &'static str,
    /// The question.
    pub query: String,
    /// Sections, best first.
    pub matches: Vec<Match>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Searches the notes for plain words.
pub fn search(world: World<'_>, words: &str, limit: usize) -> Result<Hits, AnswerError> {
    let (families, broken) = world.families()?;
    let (library, _, mut notices) = library(world, &families)?;
    notices.extend(broken.iter().map(super::left_out));
    let query = Query { text: words, family: None, wants: Wants::Any };
    let matches = library.search(&query, limit);
    Ok(Hits { schema: "jobwise/kb-search/1", query: words.to_owned(), matches, notices })
}

/// The families at a glance.
#[derive(Debug, Serialize)]
pub struct Listing {
    /// `jobwise/kb-list/1`.
    pub schema: &'static str,
    /// One row a family, by id.
    pub families: Vec<Row>,
}

/// One family of a listing.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The id.
    pub family: FamilyId,
    /// Its title.
    pub title: String,
    /// Whose it is.
    pub domain: Domain,
    /// How many signals recognise it.
    pub signals: usize,
    /// The changes it may propose.
    pub edits: Vec<Edit>,
}

/// Lists the families.
pub fn list(world: World<'_>) -> Result<Listing, AnswerError> {
    let families = world.families()?.0.into_iter().map(|family| Row {
        signals: family.signals.len(),
        family: family.id,
        title: family.title,
        domain: family.domain,
        edits: family.edits,
    });
    Ok(Listing { schema: "jobwise/kb-list/1", families: families.collect() })
}

/// What logs are searched for.
#[derive(Debug, Serialize)]
pub struct Literals {
    /// `jobwise/kb-literals/1`.
    pub schema: &'static str,
    /// The literals of all signals, each once, sorted.
    pub literals: Vec<String>,
}

/// Lists the literals.
pub fn literals(world: World<'_>) -> Result<Literals, AnswerError> {
    let mut literals = Rules::new(world.families()?.0).literals();
    literals.sort_unstable();
    literals.dedup();
    Ok(Literals { schema: "jobwise/kb-literals/1", literals })
}

/// One family, whole.
#[derive(Debug, Serialize)]
pub struct Note {
    /// `jobwise/kb-show/1`.
    pub schema: &'static str,
    /// The family.
    pub family: Family,
}

/// Shows one family.
pub fn show(world: World<'_>, name: &str) -> Result<Note, AnswerError> {
    let (families, _) = world.families()?;
    let names: Vec<String> = families.iter().map(|family| family.id.0.clone()).collect();
    match families.into_iter().find(|family| family.id.0 == name) {
        Some(family) => Ok(Note { schema: "jobwise/kb-show/1", family }),
        None => Err(AnswerError::UnknownFamily {
            name: name.to_owned(),
            nearest: text::did_you_mean(name, names.iter().map(String::as_str)).map(str::to_owned),
        }),
    }
}

/// What is wrong with the notes.
#[derive(Debug, Serialize)]
pub struct Check {
    /// `jobwise/kb-check/1`.
    pub schema: &'static str,
    /// Families checked.
    pub families: usize,
    /// Signals checked.
    pub signals: usize,
    /// What is wrong; empty when all is well.
    pub findings: Vec<Finding>,
}

/// Proves that every note is sound: see `kb check --help`.
pub fn check(world: World<'_>) -> Result<Check, AnswerError> {
    let (families, broken) = world.families()?;
    let mut findings: Vec<Finding> = broken.into_iter().map(Finding::from).collect();
    findings.extend(knowledge::check(&families, &|literal| logs::stem_of(literal).is_some()));
    let rules = Rules::new(families.clone());
    let scanner = Scanner::new(&rules.literals());
    findings.extend(classify::check(&rules, &|text| {
        scanner.scan(&text.as_bytes().to_vec(), Limits { bytes: u64::MAX })
    }));
    Ok(Check {
        schema: "jobwise/kb-check/1",
        families: families.len(),
        signals: families.iter().map(|family| family.signals.len()).sum(),
        findings,
    })
}
