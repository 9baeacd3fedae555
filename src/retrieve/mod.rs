//! Finding the section of the knowledge base that answers a question.
//!
//! Every section of every family is a chunk. Two rankings of the question's own words (BM25, and
//! vectors in a usearch index) and the family that the verdict named are added up. Which cause is
//! right is not decided here: a named family is taken at its word.
//!
//! The same families and question give the same answer in the same order on every machine. Nothing
//! is read or written: an index is encoded to bytes and decoded from bytes, and is checked by hash
//! before it is opened, because a damaged usearch file of the right size loads and then crashes.

mod bm25;
mod embed;
mod index;
mod minilm;
mod steps;
mod vectors;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use crate::knowledge::{Family, Section, Signal, SignalSource};
use crate::model::{Domain, FamilyId};
use bm25::Bm25;
pub use embed::{EmbedError, Embedder, HashEmbedder, Space};
pub use index::Index;
use index::{Embedded, TextHash};
pub use minilm::{MODEL_HASH, MiniLm, NoModel, space as model_space};
pub use steps::first_steps;

/// The section that says what to do.
const FIXES: &str = "Fixes";

/// The share of BM25 in the score of a text; the rest is the vectors'. Measured with the hashed
/// embedder on the built-in families, the right one among the first three, in two sets: 40 plain
/// questions, and 16 mistyped ones. Both were written before most families were.
///
/// | share | plain | mistyped |
/// |---|---|---|
/// | 1 (BM25 only) | 34 | 5 |
/// | 0.5 to 0.9 | 34 to 35 | 11 |
/// | 0.3 | 30 | 12 |
/// | 0 (vectors only) | 25 | 12 |
const BM25_SHARE: f64 = 0.8;

/// What a family named by the verdict adds: more than any text can (1), so that it always leads.
const FAMILY_BONUS: f64 = 2.0;

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

/// What kind of section is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wants {
    /// What to do: the fixes of the family that the question describes.
    #[default]
    Fix,
    /// Whatever section fits.
    Any,
}

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// The words.
    pub text: &'a str,
    /// The examples of the signals that the verdict rests on: they have a meaning without a model.
    pub examples: &'a [&'a str],
    /// The family that the verdict named.
    pub family: Option<&'a FamilyId>,
    /// What kind of section is wanted.
    pub wants: Wants,
}

/// A section as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChunkRef {
    /// The family.
    pub family: FamilyId,
    /// The family's title.
    pub title: String,
    /// Whose it is.
    pub domain: Domain,
    /// The heading of the section.
    pub heading: String,
    /// The section.
    pub markdown: String,
}

/// What each ranking contributed; they add up to the score.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Parts {
    /// The words.
    pub bm25: f64,
    /// The vectors.
    pub dense: f64,
    /// The family that the verdict named.
    pub family: f64,
}

impl Parts {
    fn text(self) -> f64 {
        self.bm25 + self.dense
    }
}

/// One section that fits, with its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Match {
    /// The section.
    pub chunk: ChunkRef,
    /// The sum of the parts. Only its order means anything.
    pub score: f64,
    /// What it is made of.
    pub parts: Parts,
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
    chunks: Vec<Chunk>,
    bm25: Bm25,
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

fn words_of(chunks: &[Chunk]) -> Bm25 {
    Bm25::new(chunks.iter().map(|chunk| chunk.text.as_str()))
}

impl Library {
    /// The sections of `families`, with the vectors that `index` has for them: nothing is embedded,
    /// and a section without a vector is found by its words alone.
    pub fn open(
        families: &[Family],
        embedder: Box<dyn Embedder>,
        index: Index,
    ) -> Result<Self, RetrieveError> {
        let space = embedder.space();
        if index.space != space {
            let (found, expected) = (index.space.to_string(), space.to_string());
            return Err(RetrieveError::Foreign { found, expected });
        }
        let chunks = chunks(families);
        Ok(Self { bm25: words_of(&chunks), chunks, index, embedder })
    }

    /// The sections of `families`, each with a vector: that of `known` where its text has not
    /// changed, else a new one. `progress` hears how many of how many texts are done. Where no
    /// model is to run, what is not known stays without a vector.
    pub fn build(
        families: &[Family],
        embedder: Box<dyn Embedder>,
        known: &[&Index],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, RetrieveError> {
        let space = embedder.space();
        let chunks = chunks(families);
        let sections: BTreeMap<TextHash, String> =
            families.iter().flat_map(sections).map(|text| (TextHash::of(&text), text)).collect();
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
        Ok(Self { bm25: words_of(&chunks), chunks, index, embedder })
    }

    /// The same with other vectors of the same space.
    pub fn with(self, index: Index) -> Result<Self, RetrieveError> {
        if index.space != self.index.space {
            let (found, expected) = (index.space.to_string(), self.index.space.to_string());
            return Err(RetrieveError::Foreign { found, expected });
        }
        Ok(Self { index, ..self })
    }

    /// The vectors, to be kept.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// How many sections there are.
    pub fn sections(&self) -> usize {
        self.chunks.len()
    }

    /// The sections whose text was not there when the index was built, as `family/heading`.
    pub fn unseen(&self) -> Vec<String> {
        self.named(|chunk| !self.index.has_seen(chunk.meaning))
    }

    /// The sections that are found by their words alone, as `family/heading`.
    pub fn without_vector(&self) -> Vec<String> {
        self.named(|chunk| self.index.place(chunk.meaning).is_none())
    }

    fn named(&self, which: impl Fn(&Chunk) -> bool) -> Vec<String> {
        let name = |chunk: &Chunk| format!("{}/{}", chunk.found.family, chunk.found.heading);
        self.chunks.iter().filter(|chunk| which(chunk)).map(name).collect()
    }

    /// Which space the vectors are of.
    pub fn space(&self) -> &Space {
        &self.index.space
    }

    /// How near each section is to a meaning, from -1 to 1, in the order of the sections; 0 for a
    /// section without a vector, and for all where the meaning has none.
    pub fn similarities(&self, meaning: Meaning<'_>) -> Result<Vec<f64>, EmbedError> {
        let vector = match meaning {
            Meaning::Words(text) => self.embedder.embed(&[text])?.pop().unwrap_or_default(),
            Meaning::Examples(examples) => self.mean(examples),
        };
        let found = self.index.vectors.similarities(&vector);
        let of = |chunk: &Chunk| found.get(self.index.place(chunk.meaning)?).copied();
        Ok(self.chunks.iter().map(|chunk| of(chunk).unwrap_or(0.0)).collect())
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

    /// The sections that fit best, best first, at most `limit`.
    pub fn search(&self, query: &Query<'_>, limit: usize) -> Vec<Match> {
        self.ranked(query, BM25_SHARE).into_iter().take(limit).collect()
    }

    fn ranked(&self, query: &Query<'_>, bm25_share: f64) -> Vec<Match> {
        let bm25 = relative(self.bm25.scores(query.text));
        // The nearest vector may be far. How far says little: of words that nobody knows and of
        // known ones with a slip the best cosine is 0.05 to 0.2 alike.
        let meaning = if query.examples.is_empty() {
            Some(Meaning::Words(query.text)).filter(|_| self.bm25.knows(query.text))
        } else {
            Some(Meaning::Examples(query.examples))
        };
        let dense = meaning.and_then(|meaning| self.similarities(meaning).ok());
        let dense = relative(dense.unwrap_or_else(|| vec![0.0; self.chunks.len()]));
        let mut matches: Vec<Match> = self
            .chunks
            .iter()
            .zip(bm25.into_iter().zip(dense))
            .map(|(chunk, (bm25, dense))| {
                let named = query.family == Some(&chunk.found.family);
                let parts = Parts {
                    bm25: bm25 * bm25_share,
                    dense: dense * (1.0 - bm25_share),
                    family: if named { FAMILY_BONUS } else { 0.0 },
                };
                Match { chunk: chunk.found.clone(), score: 0.0, parts }
            })
            .collect();
        if query.wants == Wants::Fix {
            promote_fixes(&mut matches);
        }
        for found in &mut matches {
            found.score = found.parts.text() + found.parts.family;
        }
        matches.retain(|found| found.score > 0.0);
        let is_fix = |found: &Match| query.wants == Wants::Fix && found.chunk.heading == FIXES;
        matches.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| is_fix(b).cmp(&is_fix(a)))
                .then_with(|| a.chunk.family.cmp(&b.chunk.family))
                .then_with(|| a.chunk.heading.cmp(&b.chunk.heading))
        });
        matches
    }
}

/// People describe symptoms and want fixes: the fixes of a family take the score of its best
/// section, and so come before it.
fn promote_fixes(matches: &mut [Match]) {
    for at in 0..matches.len() {
        let Some(fixes) = matches.get(at).filter(|found| found.chunk.heading == FIXES) else {
            continue;
        };
        let family = fixes.chunk.family.clone();
        let best = matches
            .iter()
            .filter(|found| found.chunk.family == family)
            .map(|found| found.parts)
            .max_by(|a, b| a.text().total_cmp(&b.text()));
        if let (Some(best), Some(fixes)) = (best, matches.get_mut(at)) {
            fixes.parts = best;
        }
    }
}

/// Scores as shares of the best one; all zero where there is none.
fn relative(mut scores: Vec<f64>) -> Vec<f64> {
    let best = scores.iter().copied().fold(0.0, f64::max);
    for score in &mut scores {
        *score = if best > 0.0 { (*score / best).max(0.0) } else { 0.0 };
    }
    scores
}

/// The texts of `families` that have no vector in `index`, as `family/heading` and `family/signal`.
pub fn lacking(families: &[Family], index: &Index) -> Vec<String> {
    let sections = families.iter().flat_map(|family| {
        let lacking = family
            .sections
            .iter()
            .filter(|section| index.place(TextHash::of(&meaning_of(family, section))).is_none());
        lacking.map(|section| format!("{}/{}", family.id, section.heading))
    });
    let examples = families.iter().flat_map(|family| {
        let lacking = logged(family).filter(|signal| {
            let example = signal.example.as_deref();
            example.is_some_and(|text| index.example(TextHash::of(text)).is_none())
        });
        lacking.map(|signal| format!("{}/{}", family.id, signal.id))
    });
    sections.chain(examples).collect()
}

/// The texts by whose meaning the sections of a family are found.
fn sections(family: &Family) -> impl Iterator<Item = String> + '_ {
    family.sections.iter().map(|section| meaning_of(family, section))
}

fn meaning_of(family: &Family, section: &Section) -> String {
    format!("{}. {}\n{}", family.title, section.heading, section.markdown)
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

/// The sections in an order that does not depend on the order of the files. Symptoms are also
/// found by the lines that their signals recognise.
fn chunks(families: &[Family]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = families
        .iter()
        .flat_map(|family| family.sections.iter().map(move |section| (family, section)))
        .map(|(family, section)| {
            let mut text = format!("{}\n{}\n{}", family.title, family.id, section.markdown);
            if section.heading == "Symptoms" {
                for example in examples(family) {
                    text.push('\n');
                    text.push_str(example);
                }
            }
            let found = ChunkRef {
                family: family.id.clone(),
                title: family.title.clone(),
                domain: family.domain,
                heading: section.heading.clone(),
                markdown: section.markdown.clone(),
            };
            Chunk { found, text, meaning: TextHash::of(&meaning_of(family, section)) }
        })
        .collect();
    chunks.sort_by(|a, b| {
        (&a.found.family, &a.found.heading).cmp(&(&b.found.family, &b.found.heading))
    });
    chunks
}

#[cfg(test)]
mod tests;
