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
mod steps;
mod words;

use rayon::prelude::*;
use serde::Serialize;

use crate::knowledge::{Family, SignalSource};
use crate::model::{Domain, FamilyId};
use bm25::Bm25;
pub use embed::{Embedder, HashEmbedder};
pub use index::IndexFiles;
use index::Vectors;
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
        /// The sections that were added, removed or changed, as `family/heading`.
        changed: Vec<String>,
    },
    /// The vector index itself failed.
    #[error("the vector index failed: {0}")]
    Index(String),
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

/// A section with the text by which it is found.
struct Chunk {
    found: ChunkRef,
    text: String,
}

/// The searchable knowledge base.
pub struct Library {
    chunks: Vec<Chunk>,
    bm25: Bm25,
    vectors: Vectors,
    embedder: Box<dyn Embedder + Send + Sync>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library")
            .field("chunks", &self.chunks.len())
            .field("embedder", &self.embedder.name())
            .finish_non_exhaustive()
    }
}

fn words_of(chunks: &[Chunk]) -> Bm25 {
    Bm25::new(chunks.iter().map(|chunk| chunk.text.as_str()))
}

impl Library {
    /// Indexes every section of `families`.
    pub fn build(
        families: &[Family],
        embedder: Box<dyn Embedder + Send + Sync>,
    ) -> Result<Self, RetrieveError> {
        let chunks = chunks(families);
        let embed = || -> Vec<Vec<f32>> {
            chunks.par_iter().map(|chunk| embedder.embed(&chunk.text)).collect()
        };
        let (bm25, embedded) = rayon::join(|| words_of(&chunks), embed);
        let vectors = Vectors::build(embedder.dimensions(), embedded.into_iter())?;
        Ok(Self { chunks, bm25, vectors, embedder })
    }

    /// The index as bytes, with the description that proves it fits.
    pub fn encode(&self) -> Result<IndexFiles, RetrieveError> {
        index::encode(&self.chunks, &self.vectors, self.embedder.as_ref())
    }

    /// Opens an encoded index. It must be undamaged, from the same embedder, and of exactly these
    /// families' sections.
    pub fn decode(
        families: &[Family],
        embedder: Box<dyn Embedder + Send + Sync>,
        index: &[u8],
        meta: &[u8],
    ) -> Result<Self, RetrieveError> {
        let chunks = chunks(families);
        let vectors = index::decode(&chunks, embedder.as_ref(), index, meta)?;
        let bm25 = words_of(&chunks);
        Ok(Self { chunks, bm25, vectors, embedder })
    }

    /// How many sections there are.
    pub fn sections(&self) -> usize {
        self.chunks.len()
    }

    /// The embedder's name.
    pub fn embedder(&self) -> String {
        self.embedder.name()
    }

    /// How the vectors are searched: `exact`, or `graph` where there are very many.
    pub fn search_kind(&self) -> &'static str {
        Vectors::search_kind(self.chunks.len())
    }

    /// The sections that fit best, best first, at most `limit`.
    pub fn search(&self, query: &Query<'_>, limit: usize) -> Vec<Match> {
        self.ranked(query, BM25_SHARE).into_iter().take(limit).collect()
    }

    fn ranked(&self, query: &Query<'_>, bm25_share: f64) -> Vec<Match> {
        let bm25 = relative(self.bm25.scores(query.text));
        // The nearest vector may be far. How far says little: of words that nobody knows and of
        // known ones with a slip the best cosine is 0.05 to 0.2 alike.
        let dense = if self.bm25.knows(query.text) {
            let vector = self.embedder.embed(query.text);
            relative(self.vectors.similarities(&vector, self.chunks.len()))
        } else {
            vec![0.0; self.chunks.len()]
        };
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

/// The sections in an order that does not depend on the order of the files. Symptoms are also
/// found by the lines that their signals recognise.
fn chunks(families: &[Family]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = families
        .iter()
        .flat_map(|family| family.sections.iter().map(move |section| (family, section)))
        .map(|(family, section)| {
            let mut text = format!("{}\n{}\n{}", family.title, family.id, section.markdown);
            if section.heading == "Symptoms" {
                let logged =
                    family.signals.iter().filter(|signal| signal.from != SignalSource::Record);
                for example in logged.filter_map(|signal| signal.example.as_deref()) {
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
            Chunk { found, text }
        })
        .collect();
    chunks.sort_by(|a, b| {
        (&a.found.family, &a.found.heading).cmp(&(&b.found.family, &b.found.heading))
    });
    chunks
}

#[cfg(test)]
mod tests;
