//! The knowledge base: what is in it, what it finds, whether it is sound.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::embedding::{self, Told};
use super::{AnswerError, World};
use crate::classify::{self, Rules};
use crate::knowledge::{self, Family, Finding, Notes, Page, Provenance};
use crate::logs::{self, Limits, Scanner};
use crate::model::{Domain, Edit, FamilyId, Notice};
use crate::retrieve::{Index, Library, Match, NoModel, Query, RetrieveError, Wants, model_space};
use crate::text;

/// The description and the index in one file, so that they are replaced together.
const INDEX: &str = "notes.index";

/// The library to search, where its vectors come from, and what has to be told.
pub(super) struct Opened {
    pub(super) library: Library,
    pub(super) from: String,
    pub(super) notices: Vec<Notice>,
    /// What became of the model, once something was searched.
    pub(super) told: Told,
}

/// The library with the index that `kb build` left, where it is sound and current, else with what
/// comes with the program. Says which, and why a stored one was not used.
pub(super) fn library(
    world: World<'_>,
    families: &[Family],
    pages: &[Page],
) -> Result<Opened, AnswerError> {
    let (embedder, told) = embedding::choose(world);
    let mut notices = Vec::new();
    // An index that cannot be used is as good as none: it can be built again.
    let store = world.store.filter(|_| world.live);
    let space = embedder.space();
    let stored = match store.map(|store| store.read(INDEX)) {
        None | Some(Ok(None)) => None,
        Some(Ok(Some(file))) => {
            let index = Index::decode(&file, &space);
            let index = index.and_then(|index| index.of_all(families, pages));
            Some(index.map_err(|error| error.to_string()))
        }
        Some(Err(error)) => Some(Err(error.to_string())),
    };
    match stored {
        None => {}
        Some(Ok(index)) => {
            let library = Library::open(families, pages, embedder, index)?;
            return Ok(Opened { library, from: "stored index".to_owned(), notices, told });
        }
        Some(Err(error)) => {
            let text = format!("the stored index was not used: {error}");
            notices.push(Notice::warning("index", text).hint("run: jobwise kb build"));
        }
    }
    let library = if space == model_space() {
        Library::open(families, pages, embedder, Index::built_in()?)?
    } else {
        Library::build(families, pages, embedder, &[], &mut |_, _| {})?
    };
    let own = families.iter().any(|family| family.provenance != Provenance::BuiltIn);
    let own = own || !pages.is_empty();
    let from = if own { "built-in notes and yours" } else { "built-in notes" }.to_owned();
    Ok(Opened { library, from, notices, told })
}

/// What `kb build` made.
#[derive(Debug, Serialize)]
pub struct Built {
    /// `jobwise/kb-build/1`.
    pub schema: &'static str,
    /// Families read.
    pub families: usize,
    /// Pages read.
    pub pages: usize,
    /// Chunks indexed.
    pub chunks: usize,
    /// Texts that were embedded now; the vectors of the others were known.
    pub embedded: usize,
    /// Chunks that are found by their words alone.
    pub without_vector: usize,
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

/// Hears how many of how many texts are embedded.
pub type Progress<'p> = &'p mut dyn FnMut(usize, usize);

/// Builds the index and keeps it. Only what has changed since the last time is embedded.
pub fn build(world: World<'_>, progress: Progress<'_>) -> Result<Built, AnswerError> {
    let store = world.store.ok_or(AnswerError::NoStore)?;
    let Notes { families, pages, errors } = world.notes()?;
    let (embedder, told) = embedding::choose(world);
    let space = embedder.space();
    let earlier = store.read(INDEX).ok().flatten();
    let earlier = earlier.and_then(|file| Index::decode(&file, &space).ok());
    let built_in = Index::built_in()?;
    let known: Vec<&Index> = earlier.iter().chain([&built_in]).collect();
    let mut embedded = 0;
    let mut hear = |done: usize, all: usize| {
        embedded = done;
        progress(done, all);
    };
    let library = match Library::build(&families, &pages, embedder, &known, &mut hear) {
        // A model that cannot be used is told; what is known without it is kept.
        Err(RetrieveError::Embed(_)) => {
            embedded = 0;
            Library::build(&families, &pages, Box::new(NoModel), &known, &mut |_, _| {})?
        }
        other => other?,
    };
    let file = library.index().encode()?;
    store.replace(INDEX, &file)?;
    let without = library.without_vector();
    let mut notices: Vec<Notice> = errors.iter().map(super::left_out).collect();
    notices.extend(told.notice());
    if without > 0 {
        let text = format!(
            "{} without a vector: found by words alone",
            text::count(without as u64, "section")
        );
        notices.push(Notice::info("no-vector", text).hint("jobwise kb model install"));
    }
    Ok(Built {
        schema: "jobwise/kb-build/1",
        families: families.len(),
        pages: pages.len(),
        chunks: library.sections(),
        embedded,
        without_vector: without,
        embedder: library.space().model.clone(),
        search: library.index().search_kind(),
        index: store.root().join(INDEX),
        bytes: file.len(),
        notices,
    })
}

/// What `kb vectors` made.
#[derive(Debug, Serialize)]
pub struct Refreshed {
    /// `jobwise/kb-vectors/1`.
    pub schema: &'static str,
    /// Sections that have a vector.
    pub sections: usize,
    /// Examples that have one.
    pub examples: usize,
    /// Texts that were embedded now.
    pub embedded: usize,
    /// Where they were written.
    pub file: PathBuf,
    /// Its bytes.
    pub bytes: usize,
}

/// Makes the vectors that come with the program: of the built-in notes, by the model. What has not
/// changed keeps its vector, so that the file changes no more than the notes.
pub fn vectors(
    world: World<'_>,
    file: &Path,
    progress: Progress<'_>,
) -> Result<Refreshed, AnswerError> {
    let families = knowledge::built_in()?;
    let (embedder, told) = embedding::choose(world);
    let known = Index::built_in();
    let known: Vec<&Index> = known.iter().collect();
    let mut embedded = 0;
    let mut hear = |done: usize, all: usize| {
        embedded = done;
        progress(done, all);
    };
    let library = Library::build(&families, &[], embedder, &known, &mut hear);
    let complete = library.as_ref().is_ok_and(|library| {
        library.space() == &model_space() && library.index().lacking(&families).is_empty()
    });
    if !complete {
        let reason = told.notice().map(|notice| notice.text);
        let reason = reason.unwrap_or_else(|| "it is not used here".to_owned());
        return Err(AnswerError::NoModel { reason });
    }
    let library = library?;
    let bytes = library.index().encode()?;
    super::write_named(file, &bytes)?;
    Ok(Refreshed {
        schema: "jobwise/kb-vectors/1",
        sections: library.index().sections(),
        examples: library.index().examples(),
        embedded,
        file: file.to_owned(),
        bytes: bytes.len(),
    })
}

/// What a question found.
#[derive(Debug, Serialize)]
pub struct Hits {
    /// `jobwise/kb-search/2`.
    pub schema: &'static str,
    /// The question.
    pub query: String,
    /// What it wants to know.
    pub wants: Wants,
    /// Whether people are shown what each score is made of; the JSON always has it.
    #[serde(skip)]
    pub scores: bool,
    /// Notes, best first, each by the section that answers.
    pub matches: Vec<Match>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Searches the notes for plain words.
pub fn search(
    world: World<'_>,
    words: &str,
    limit: usize,
    scores: bool,
) -> Result<Hits, AnswerError> {
    let Notes { families, pages, errors } = world.notes()?;
    let Opened { library, mut notices, told, .. } = library(world, &families, &pages)?;
    notices.extend(errors.iter().map(super::left_out));
    let wants = Wants::of(words);
    let query = Query { text: words, examples: &[], family: None, wants };
    let mut matches = library.search(&query, limit);
    for found in &mut matches {
        found.chunk.markdown = knowledge::unfilled(&found.chunk.markdown);
    }
    notices.extend(told.notice());
    Ok(Hits {
        schema: "jobwise/kb-search/2",
        query: words.to_owned(),
        wants,
        scores,
        matches,
        notices,
    })
}

/// The notes at a glance.
#[derive(Debug, Serialize)]
pub struct Listing {
    /// `jobwise/kb-list/1`.
    pub schema: &'static str,
    /// One row a family, by id.
    pub families: Vec<Row>,
    /// Pages of the site's and the user's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PageRow>,
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
    /// Where the note is.
    pub provenance: Provenance,
}

/// One page of a listing.
#[derive(Debug, Serialize)]
pub struct PageRow {
    /// Its name.
    pub page: FamilyId,
    /// Its title.
    pub title: String,
    /// Its file.
    pub path: String,
}

/// Lists the notes.
pub fn list(world: World<'_>) -> Result<Listing, AnswerError> {
    let Notes { families, pages, .. } = world.notes()?;
    let families = families.into_iter().map(|family| Row {
        signals: family.signals.len(),
        family: family.id,
        title: family.title,
        domain: family.domain,
        edits: family.edits,
        provenance: family.provenance,
    });
    let pages =
        pages.into_iter().map(|Page { id: page, title, path, .. }| PageRow { page, title, path });
    Ok(Listing {
        schema: "jobwise/kb-list/1",
        families: families.collect(),
        pages: pages.collect(),
    })
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
    let mut literals = Rules::new(world.notes()?.families).literals();
    literals.sort_unstable();
    literals.dedup();
    Ok(Literals { schema: "jobwise/kb-literals/1", literals })
}

/// One note, whole.
#[derive(Debug, Serialize)]
pub struct Note {
    /// `jobwise/kb-show/1`.
    pub schema: &'static str,
    /// The family of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The pages of that name: what the site or the user has to say of the family.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<Page>,
}

/// Shows one note, as it reads where nothing is known of a job.
pub fn show(world: World<'_>, name: &str) -> Result<Note, AnswerError> {
    let Notes { mut families, mut pages, .. } = world.notes()?;
    let known = families.iter().map(|family| &family.id).chain(pages.iter().map(|page| &page.id));
    let names: Vec<String> = known.map(|id| id.0.clone()).collect();
    families.retain(|family| family.id.0 == name);
    pages.retain(|page| page.id.0 == name);
    let mut family = families.pop();
    if family.is_none() && pages.is_empty() {
        return Err(AnswerError::UnknownFamily {
            name: name.to_owned(),
            nearest: text::did_you_mean(name, names.iter().map(String::as_str)).map(str::to_owned),
        });
    }
    for section in family.iter_mut().flat_map(|family| &mut family.sections) {
        section.markdown = knowledge::unfilled(&section.markdown);
    }
    Ok(Note { schema: "jobwise/kb-show/1", family, pages })
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
    /// What is less good than it could be.
    pub notices: Vec<Notice>,
}

/// Proves that every note is sound: see `kb check --help`.
pub fn check(world: World<'_>) -> Result<Check, AnswerError> {
    let Notes { families, errors, .. } = world.notes()?;
    let mut findings: Vec<Finding> = errors.into_iter().map(Finding::from).collect();
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
        notices: outdated()?.into_iter().collect(),
    })
}

/// Built-in notes that have changed since their vectors were made are found by their words alone.
fn outdated() -> Result<Option<Notice>, AnswerError> {
    let lacking = Index::built_in()?.lacking(&knowledge::built_in()?);
    let Some(first) = lacking.first() else { return Ok(None) };
    let texts = text::count(lacking.len() as u64, "built-in text");
    let text = format!("{texts} changed since the vectors were made, such as {first}");
    Ok(Some(Notice::warning("vectors-outdated", text).hint("jobwise kb vectors makes them")))
}
