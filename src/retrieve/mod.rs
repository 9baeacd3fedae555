//! Finding the section of the knowledge base that answers a question.
//!
//! Every section of every family and page is a chunk. How the note that answers is chosen, and which
//! of its sections, stands in `rank`. Which cause is right is not decided here: a named family is
//! taken at its word.
//!
//! The same families and question give the same answer in the same order on every machine. Nothing
//! is read or written: an index is encoded to bytes and decoded from bytes, and is checked by hash
//! before it is opened, because a damaged usearch file of the right size loads and then crashes.

mod bm25;
mod embed;
mod index;
mod minilm;
mod rank;
mod steps;
mod vectors;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::OnceLock;

use serde::Serialize;

use crate::knowledge::{Family, Page, Section, Signal, SignalSource, unfilled};
use crate::model::{Domain, FamilyId};
use bm25::Bm25;
pub use embed::{EmbedError, Embedder, HashEmbedder, Space};
pub use index::Index;
use index::{Embedded, TextHash};
pub use minilm::{MiniLm, NoModel, space as model_space};
pub use rank::{Match, Method, Parts, Query, Scored, Wants};
pub use steps::{first_steps, points};

/// Why a library could not be built or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetrieveError {
    /// The description beside the index is not one.
    #[error("the description of the index cannot be read: {0}")]
    Unreadable(String),
    /// It was written by another version of jobwise.
    #[error("the index has format {found}; this jobwise reads format {expected}: build it again")]
    Format {
        /// The format found.
        found: u32,
        /// The format this version reads.
        expected: u32,
    },
    /// The bytes are not those that were written.
    #[error("the index is damaged: its hash is not the recorded one; build it again")]
    Damaged,
    /// It was made by another embedder.
    #[error("the index was made with {found}, not with {expected}: build it again")]
    Foreign {
        /// The embedder and shape recorded.
        found: String,
        /// The embedder and shape at hand.
        expected: String,
    },
    /// The knowledge base has changed since.
    #[error("the index is not of this knowledge base ({}): build it again", few(.changed))]
    Stale {
        /// The sections that were added or changed, as `family/heading`.
        changed: Vec<String>,
    },
    /// The vector index itself failed.
    #[error("the vector index failed: {0}")]
    Index(String),
    /// The vectors of texts could not be made.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// The first of many, and how many more.
fn few(changed: &[String]) -> String {
    let (told, rest) = changed.split_at(changed.len().min(3));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!("{}{more}", told.join(", "))
}

/// A section as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChunkRef {
    /// The family, or the name of a page.
    pub family: FamilyId,
    /// The note's title.
    pub title: String,
    /// Whose it is; a page does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// Other words by which it is found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The heading of the section; of a page, with those it lies under.
    pub heading: String,
    /// The section.
    pub markdown: String,
    /// The file of a page, which is of the site's or the user's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

impl ChunkRef {
    /// Whether another section is of the same note.
    fn is_of_note(&self, other: &Self) -> bool {
        self.family == other.family && self.page == other.page
    }
}

/// What a ranking by meaning is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning<'a> {
    /// Any words. The embedder has to run.
    Words(&'a str),
    /// Examples of signals, as the notes give them. Their vectors are kept: nothing has to run.
    Examples(&'a [&'a str]),
}

/// A section with the texts by which it is found.
struct Chunk {
    found: ChunkRef,
    /// For words.
    text: String,
    /// For meaning.
    meaning: TextHash,
}

/// The searchable knowledge base.
pub struct Library {
    /// In the order of their notes.
    chunks: Vec<Chunk>,
    /// The examples of each family's signals.
    examples: BTreeMap<FamilyId, Vec<TextHash>>,
    /// Of all sections, made for the first question that needs it: it takes longer than all else.
    bm25: OnceLock<Bm25>,
    index: Index,
    embedder: Box<dyn Embedder>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library")
            .field("chunks", &self.chunks.len())
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Library {
    /// The sections of `families`, with the vectors that `index` has for them: nothing is embedded,
    /// and a section without a vector is found by its words alone.
    pub fn open(
        families: &[Family],
        pages: &[Page],
        embedder: Box<dyn Embedder>,
        index: Index,
    ) -> Result<Self, RetrieveError> {
        let space = embedder.space();
        if index.space != space {
            let (found, expected) = (index.space.to_string(), space.to_string());
            return Err(RetrieveError::Foreign { found, expected });
        }
        let chunks = chunks(families, pages);
        let examples = hashes(families);
        Ok(Self { chunks, examples, bm25: OnceLock::new(), index, embedder })
    }

    /// The sections of `families`, each with a vector: that of `known` where its text has not
    /// changed, else a new one. `progress` hears how many of how many texts are done. Where no
    /// model is to run, what is not known stays without a vector.
    pub fn build(
        families: &[Family],
        pages: &[Page],
        embedder: Box<dyn Embedder>,
        known: &[&Index],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, RetrieveError> {
        let space = embedder.space();
        let chunks = chunks(families, pages);
        let texts = families.iter().flat_map(sections).chain(pages.iter().flat_map(parts));
        let sections: BTreeMap<TextHash, String> =
            texts.map(|text| (TextHash::of(&text), text)).collect();
        let examples: BTreeMap<TextHash, &str> =
            families.iter().flat_map(examples).map(|text| (TextHash::of(text), text)).collect();

        let known = || known.iter().filter(|index| index.space == space);
        let mut made: BTreeMap<TextHash, Vec<f32>> = BTreeMap::new();
        let mut missing: Vec<(TextHash, &str)> = Vec::new();
        for (hash, text) in sections.iter().map(|(hash, text)| (*hash, text.as_str())) {
            match known().find_map(|index| index.section(hash)) {
                Some(vector) => drop(made.insert(hash, vector)),
                None => missing.push((hash, text)),
            }
        }
        for (hash, text) in examples.iter().map(|(hash, text)| (*hash, *text)) {
            match known().find_map(|index| index.example(hash)) {
                Some(vector) => drop(made.insert(hash, vector)),
                None => missing.push((hash, text)),
            }
        }
        embed(embedder.as_ref(), missing, &mut made, progress)?;

        let unmade = |hash: &TextHash| !made.contains_key(hash);
        let without: HashSet<TextHash> = sections.keys().copied().filter(unmade).collect();
        let vectors = |hashes: Vec<TextHash>| -> Vec<Embedded> {
            hashes.iter().filter_map(|hash| Some((*hash, made.get(hash)?.clone()))).collect()
        };
        // In the order of the sections, so that the order of the files changes nothing.
        let mut seen = HashSet::new();
        let order = chunks.iter().map(|chunk| chunk.meaning).filter(|hash| seen.insert(*hash));
        let sections = vectors(order.collect());
        let examples = vectors(examples.into_keys().collect());
        let index = Index::of(space, sections, without, examples)?;
        let examples = hashes(families);
        Ok(Self { chunks, examples, bm25: OnceLock::new(), index, embedder })
    }

    /// The vectors, to be kept.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// How many sections there are.
    pub fn sections(&self) -> usize {
        self.chunks.len()
    }

    /// How many sections are found by their words alone.
    pub fn without_vector(&self) -> usize {
        let lacking = |chunk: &&Chunk| self.index.place(chunk.meaning).is_none();
        self.chunks.iter().filter(lacking).count()
    }

    /// Which space the vectors are of.
    pub fn space(&self) -> &Space {
        &self.index.space
    }

    /// How near each section is to a meaning, from -1 to 1, in the order of the sections; 0 for a
    /// section without a vector, and for all where the meaning has none.
    pub fn similarities(&self, meaning: Meaning<'_>) -> Result<Vec<f64>, EmbedError> {
        Ok(self.near(&self.vector(meaning)?))
    }

    fn vector(&self, meaning: Meaning<'_>) -> Result<Vec<f32>, EmbedError> {
        match meaning {
            Meaning::Words(text) => Ok(self.embedder.embed(&[text])?.pop().unwrap_or_default()),
            Meaning::Examples(examples) => Ok(self.mean(examples)),
        }
    }

    fn near(&self, vector: &[f32]) -> Vec<f64> {
        let found = self.index.vectors.similarities(vector);
        let of = |chunk: &Chunk| found.get(self.index.place(chunk.meaning)?).copied();
        self.chunks.iter().map(|chunk| of(chunk).unwrap_or(0.0)).collect()
    }

    /// The mean of the vectors of examples, as far as they have one.
    fn mean(&self, examples: &[&str]) -> Vec<f32> {
        let examples: BTreeSet<TextHash> = examples.iter().map(|text| TextHash::of(text)).collect();
        let mut sum = vec![0.0; self.index.space.dimensions];
        for vector in examples.into_iter().filter_map(|example| self.index.example(example)) {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
        }
        // The cosine does not ask how long it is.
        sum
    }

    /// The share of every section by words. Where the family is known only its own sections are to
    /// be told apart.
    fn words(&self, query: &Query<'_>) -> Vec<f64> {
        let Some(family) = query.family else { return self.bm25().shares(query.text) };
        let own = || self.chunks.iter().filter(|chunk| chunk.found.family == *family);
        let mut shares = Bm25::new(own().map(|chunk| chunk.text.as_str())).shares(query.text);
        let mut shares = shares.drain(..);
        let of = |chunk: &Chunk| (chunk.found.family == *family).then(|| shares.next()).flatten();
        self.chunks.iter().map(of).map(Option::unwrap_or_default).collect()
    }

    fn bm25(&self) -> &Bm25 {
        let texts = || self.chunks.iter().map(|chunk| chunk.text.as_str());
        self.bm25.get_or_init(|| Bm25::new(texts()))
    }
}

impl Index {
    /// Itself, if all sections of these notes were there when it was built.
    pub fn of_all(self, families: &[Family], pages: &[Page]) -> Result<Self, RetrieveError> {
        let changed = sections_that(families, pages, |text| !self.has_seen(text));
        if changed.is_empty() { Ok(self) } else { Err(RetrieveError::Stale { changed }) }
    }

    /// The texts of `families` without a vector, as `family/heading` and `family/signal`.
    pub fn lacking(&self, families: &[Family]) -> Vec<String> {
        let mut lacking = sections_that(families, &[], |text| self.place(text).is_none());
        for family in families {
            let unknown = |text: &str| self.example(TextHash::of(text)).is_none();
            let signals = logged(family).filter(|one| one.example.as_deref().is_some_and(unknown));
            lacking.extend(signals.map(|signal| format!("{}/{}", family.id, signal.id)));
        }
        lacking
    }
}

/// Sections by the hash of their text, as `family/heading`.
fn sections_that(
    families: &[Family],
    pages: &[Page],
    which: impl Fn(TextHash) -> bool,
) -> Vec<String> {
    let families = families.iter().map(|family| (&family.id, &family.title, &family.sections));
    let notes = families.chain(pages.iter().map(|page| (&page.id, &page.title, &page.sections)));
    let mut those = Vec::new();
    for (id, title, sections) in notes {
        let wanted = sections.iter().filter(|one| which(TextHash::of(&meaning_of(title, one))));
        those.extend(wanted.map(|one| format!("{id}/{}", one.heading)));
    }
    those
}

/// The texts by whose meaning the sections of a family are found.
fn sections(family: &Family) -> impl Iterator<Item = String> + '_ {
    family.sections.iter().map(|section| meaning_of(&family.title, section))
}

/// The same of a page.
fn parts(page: &Page) -> impl Iterator<Item = String> + '_ {
    page.sections.iter().map(|section| meaning_of(&page.title, section))
}

fn meaning_of(title: &str, section: &Section) -> String {
    format!("{title}. {}\n{}", section.heading, unfilled(&section.markdown))
}

/// What stands for the examples of each family.
fn hashes(families: &[Family]) -> BTreeMap<FamilyId, Vec<TextHash>> {
    let of = |family: &Family| examples(family).map(TextHash::of).collect();
    families.iter().map(|family| (family.id.clone(), of(family))).collect()
}

/// The examples of a family's signals: lines of logs, reasons, messages.
fn examples(family: &Family) -> impl Iterator<Item = &str> {
    logged(family).filter_map(|signal| signal.example.as_deref())
}

fn logged(family: &Family) -> impl Iterator<Item = &Signal> {
    family.signals.iter().filter(|signal| signal.from != SignalSource::Record)
}

/// More texts at once would only make the progress coarse.
const AT_ONCE: usize = 32;

/// Makes the vectors of texts, long ones together: a batch takes as long as its longest.
fn embed(
    embedder: &dyn Embedder,
    mut missing: Vec<(TextHash, &str)>,
    made: &mut BTreeMap<TextHash, Vec<f32>>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(), RetrieveError> {
    missing.sort_by_key(|(hash, text)| (text.len(), *hash));
    let all = missing.len();
    for (group, texts) in missing.chunks(AT_ONCE).enumerate() {
        progress(group * AT_ONCE, all);
        let words: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
        match embedder.embed(&words) {
            Ok(vectors) => made.extend(texts.iter().map(|(hash, _)| *hash).zip(vectors)),
            Err(EmbedError::NoModel) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    progress(all, all);
    Ok(())
}

/// The sections in an order that does not depend on the order of the files, those of a note
/// together. Symptoms are also found by the lines that their signals recognise.
fn chunks(families: &[Family], pages: &[Page]) -> Vec<Chunk> {
    let of_family = |family: &Family, section: &Section| {
        let words = unfilled(&section.markdown);
        let tags = family.tags.join(" ");
        let mut text = format!("{}\n{}\n{tags}\n{words}", family.title, family.id);
        if section.heading == "Symptoms" {
            for example in examples(family) {
                text.push('\n');
                text.push_str(example);
            }
        }
        let found = ChunkRef {
            family: family.id.clone(),
            title: family.title.clone(),
            domain: Some(family.domain),
            tags: family.tags.clone(),
            heading: section.heading.clone(),
            markdown: section.markdown.clone(),
            page: None,
        };
        Chunk { found, text, meaning: TextHash::of(&meaning_of(&family.title, section)) }
    };
    let of_page = |page: &Page, section: &Section| {
        let found = ChunkRef {
            family: page.id.clone(),
            title: page.title.clone(),
            domain: None,
            tags: Vec::new(),
            heading: section.heading.clone(),
            markdown: section.markdown.clone(),
            page: Some(page.path.clone()),
        };
        let text = format!("{}\n{}\n{}", page.title, section.heading, section.markdown);
        Chunk { found, text, meaning: TextHash::of(&meaning_of(&page.title, section)) }
    };
    let mut chunks: Vec<Chunk> = families
        .iter()
        .flat_map(|family| family.sections.iter().map(move |section| of_family(family, section)))
        .collect();
    for page in pages {
        chunks.extend(page.sections.iter().map(|section| of_page(page, section)));
    }
    let key = |chunk: &Chunk| {
        let ChunkRef { family, page, heading, .. } = &chunk.found;
        (family.clone(), page.clone(), heading.clone())
    };
    chunks.sort_by_cached_key(key);
    chunks
}

#[cfg(test)]
mod tests;
