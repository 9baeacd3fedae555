//! Which text has which vector, and the form of that on disk.
//!
//! A vector belongs to a text, whose hash stands for it: what was changed has no vector until it is
//! made again, what was not keeps its own. Two kinds of text have vectors: sections, which are
//! searched, and examples of signals, which are looked up.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::vectors::{Table, Vectors, failed};
use super::{RetrieveError, Space};

/// Rises with every change of what is written.
const FORMAT: u32 = 3;
const METRIC: &str = "cosine";

/// Stands for a text: the first half of its BLAKE3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TextHash([u8; HASH]);

const HASH: usize = 16;

impl TextHash {
    pub(super) fn of(text: &str) -> Self {
        let mut half = [0; HASH];
        half.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..HASH]);
        Self(half)
    }
}

/// The vectors of texts.
pub struct Index {
    pub(super) space: Space,
    /// By position in `vectors`.
    sections: Vec<TextHash>,
    places: HashMap<TextHash, usize>,
    pub(super) vectors: Vectors,
    /// Sections that had none when the index was built.
    without: HashSet<TextHash>,
    /// By position in `table`.
    examples: Vec<TextHash>,
    table: Table,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("space", &self.space)
            .field("sections", &self.sections.len())
            .field("without", &self.without.len())
            .field("examples", &self.examples.len())
            .finish_non_exhaustive()
    }
}

/// Made by `kb vectors`: sections and examples of the built-in notes, as they were then.
const BUILT_IN: &[u8] = include_bytes!("../../knowledge/vectors.bin");

/// A text with its vector.
pub(super) type Embedded = (TextHash, Vec<f32>);

impl Index {
    /// The vectors that come with the program.
    pub fn built_in() -> Result<Self, RetrieveError> {
        Self::decode(BUILT_IN, &super::model_space())
    }

    /// An index of nothing.
    pub fn empty(space: Space) -> Result<Self, RetrieveError> {
        Self::of(space, Vec::new(), HashSet::new(), Vec::new())
    }

    /// An index of these texts, each once; `examples` sorted.
    pub(super) fn of(
        space: Space,
        sections: Vec<Embedded>,
        without: HashSet<TextHash>,
        examples: Vec<Embedded>,
    ) -> Result<Self, RetrieveError> {
        let dimensions = space.dimensions;
        let vectors = Vectors::build(dimensions, sections.iter().map(|(_, vector)| vector))?;
        let table = Table::build(dimensions, examples.iter().map(|(_, vector)| vector));
        let hashes = |texts: Vec<Embedded>| texts.into_iter().map(|(hash, _)| hash).collect();
        Ok(Self::assembled(space, hashes(sections), vectors, without, hashes(examples), table))
    }

    fn assembled(
        space: Space,
        sections: Vec<TextHash>,
        vectors: Vectors,
        without: HashSet<TextHash>,
        examples: Vec<TextHash>,
        table: Table,
    ) -> Self {
        let places = sections.iter().enumerate().map(|(place, hash)| (*hash, place)).collect();
        Self { space, sections, places, vectors, without, examples, table }
    }

    /// Where a section's vector is.
    pub(super) fn place(&self, section: TextHash) -> Option<usize> {
        self.places.get(&section).copied()
    }

    /// Whether a section was there when the index was built, with a vector or without.
    pub(super) fn has_seen(&self, section: TextHash) -> bool {
        self.places.contains_key(&section) || self.without.contains(&section)
    }

    /// The vector of a section.
    pub(super) fn section(&self, section: TextHash) -> Option<Vec<f32>> {
        self.vectors.get(self.place(section)?)
    }

    /// The vector of an example.
    pub(super) fn example(&self, example: TextHash) -> Option<Vec<f32>> {
        self.table.get(self.examples.binary_search(&example).ok()?)
    }

    /// How many sections have a vector.
    pub fn sections(&self) -> usize {
        self.sections.len()
    }

    /// How many examples have one.
    pub fn examples(&self) -> usize {
        self.examples.len()
    }

    /// How it is searched: `exact`, or `graph` where there are very many sections.
    pub fn search_kind(&self) -> &'static str {
        Vectors::search_kind(self.sections.len())
    }

    /// As one file: a line that describes it, and the vectors.
    pub fn encode(&self) -> Result<Vec<u8>, RetrieveError> {
        let mut without: Vec<TextHash> = self.without.iter().copied().collect();
        without.sort_unstable();
        let hashes = self.sections.iter().chain(&without).chain(&self.examples);
        let mut body: Vec<u8> = hashes.flat_map(|hash| hash.0).collect();
        body.extend_from_slice(self.table.as_bytes());
        body.extend_from_slice(&self.vectors.encode()?);
        let meta = Meta {
            format: FORMAT,
            space: self.space.clone(),
            metric: METRIC.to_owned(),
            sections: self.sections.len(),
            without: without.len(),
            examples: self.examples.len(),
            body: blake3::hash(&body).to_hex().to_string(),
        };
        let mut file = serde_json::to_vec(&meta).map_err(failed)?;
        file.push(b'\n');
        file.extend_from_slice(&body);
        Ok(file)
    }

    /// Opens what [`Self::encode`] wrote: undamaged, and of this space.
    pub fn decode(file: &[u8], space: &Space) -> Result<Self, RetrieveError> {
        /// Read first, so that another format is named as such and not as a missing field.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| RetrieveError::Unreadable(error.to_string());
        let end = memchr::memchr(b'\n', file).unwrap_or(file.len());
        let (meta, rest) = file.split_at(end);
        let body = rest.get(1..).unwrap_or_default();
        let head: Head = serde_json::from_slice(meta).map_err(unreadable)?;
        if head.format != FORMAT {
            return Err(RetrieveError::Format { found: head.format, expected: FORMAT });
        }
        let meta: Meta = serde_json::from_slice(meta).map_err(unreadable)?;
        if blake3::hash(body).to_hex().as_str() != meta.body {
            return Err(RetrieveError::Damaged);
        }
        if meta.space != *space || meta.metric != METRIC {
            return Err(RetrieveError::Foreign {
                found: meta.space.to_string(),
                expected: space.to_string(),
            });
        }
        Self::from_body(meta, body).ok_or_else(|| failed("it does not hold what it says"))?
    }

    fn from_body(meta: Meta, body: &[u8]) -> Option<Result<Self, RetrieveError>> {
        let dimensions = meta.space.dimensions;
        let mut rest = body;
        let mut take = |length: usize| {
            let (taken, left) = rest.split_at_checked(length)?;
            rest = left;
            Some(taken)
        };
        let mut hashes = |count: usize| {
            let (hashes, _) = take(count.checked_mul(HASH)?)?.as_chunks::<HASH>();
            Some(hashes.iter().map(|hash| TextHash(*hash)).collect::<Vec<_>>())
        };
        let sections = hashes(meta.sections)?;
        let without = hashes(meta.without)?.into_iter().collect();
        let examples = hashes(meta.examples)?;
        let rows = take(Table::length(dimensions, meta.examples)?)?;
        let table = Table::decode(dimensions, meta.examples, rows)?;
        let vectors = match Vectors::decode(dimensions, meta.sections, rest) {
            Ok(vectors) => vectors,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(Self::assembled(meta.space, sections, vectors, without, examples, table)))
    }
}

/// The description before the vectors.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    format: u32,
    space: Space,
    metric: String,
    sections: usize,
    without: usize,
    examples: usize,
    /// BLAKE3 of all that follows.
    body: String,
}
