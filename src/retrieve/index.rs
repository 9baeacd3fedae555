//! The vector index, and its form on disk.

use serde::{Deserialize, Serialize};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::{Chunk, Embedder, RetrieveError};
use crate::model::FamilyId;

/// Rises with every change of what is written.
const FORMAT: u32 = 2;
const METRIC: &str = "cosine";

/// Below this many vectors all are compared: as fast as the graph, and nothing is missed.
const EXACT_BELOW: usize = 10_000;
/// How many neighbours the graph is asked for above that.
const NEIGHBOURS: usize = 200;

/// Vectors by the position of their chunk.
pub(super) struct Vectors {
    index: Index,
    dimensions: usize,
}

fn failed(error: impl std::fmt::Display) -> RetrieveError {
    RetrieveError::Index(error.to_string())
}

fn empty(dimensions: usize, vectors: usize) -> Result<Index, RetrieveError> {
    let options = IndexOptions {
        dimensions,
        metric: MetricKind::Cos,
        quantization: ScalarKind::F32,
        ..IndexOptions::default()
    };
    // Where all vectors are compared nobody walks the graph: the smallest there is will do.
    let options = if vectors < EXACT_BELOW {
        IndexOptions { connectivity: 2, expansion_add: 1, ..options }
    } else {
        options
    };
    Index::new(&options).map_err(failed)
}

impl Vectors {
    /// How so many vectors are searched.
    pub(super) fn search_kind(chunks: usize) -> &'static str {
        if chunks < EXACT_BELOW { "exact" } else { "graph" }
    }

    /// Fills an index, one vector after the other: the same vectors give the same bytes.
    pub(super) fn build(
        dimensions: usize,
        vectors: impl ExactSizeIterator<Item = Vec<f32>>,
    ) -> Result<Self, RetrieveError> {
        let index = empty(dimensions, vectors.len())?;
        index.reserve_capacity_and_threads(vectors.len().max(1), 1).map_err(failed)?;
        for (key, vector) in (0_u64..).zip(vectors) {
            if vector.len() != dimensions {
                let length = vector.len();
                return Err(failed(format!("a vector has {length} values, not {dimensions}")));
            }
            index.add(key, &vector).map_err(failed)?;
        }
        Ok(Self { index, dimensions })
    }

    /// The cosine of every chunk with `vector`; 0 for those not among the neighbours.
    pub(super) fn similarities(&self, vector: &[f32], chunks: usize) -> Vec<f64> {
        let mut similarities = vec![0.0; chunks];
        let says_something = vector.iter().any(|value| *value != 0.0);
        if chunks == 0 || !says_something || vector.len() != self.dimensions {
            return similarities;
        }
        let found = if chunks < EXACT_BELOW {
            self.index.exact_search(vector, chunks)
        } else {
            self.index.search(vector, NEIGHBOURS)
        };
        // A search that fails costs this ranking, not the answer.
        let Ok(found) = found else { return similarities };
        for (key, distance) in found.keys.iter().zip(&found.distances) {
            let at = usize::try_from(*key).ok();
            if let Some(similarity) = at.and_then(|at| similarities.get_mut(at))
                && distance.is_finite()
            {
                *similarity = 1.0 - f64::from(*distance);
            }
        }
        similarities
    }
}

/// An index as it is stored: two files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFiles {
    /// The usearch index.
    pub index: Vec<u8>,
    /// Its description, JSON.
    pub meta: Vec<u8>,
}

/// The description beside an index.
#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    format: u32,
    embedder: String,
    dimensions: usize,
    metric: String,
    /// BLAKE3 of the index file.
    index: String,
    chunks: Vec<ChunkRecord>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ChunkRecord {
    family: FamilyId,
    heading: String,
    /// BLAKE3 of the text that was embedded.
    text: String,
}

impl ChunkRecord {
    fn of(chunk: &Chunk) -> Self {
        Self {
            family: chunk.found.family.clone(),
            heading: chunk.found.heading.clone(),
            text: blake3::hash(chunk.text.as_bytes()).to_hex().to_string(),
        }
    }
}

pub(super) fn encode(
    chunks: &[Chunk],
    vectors: &Vectors,
    embedder: &dyn Embedder,
) -> Result<IndexFiles, RetrieveError> {
    let mut index = vec![0; vectors.index.serialized_length()];
    vectors.index.save_to_buffer(&mut index).map_err(failed)?;
    let meta = Meta {
        format: FORMAT,
        embedder: embedder.name(),
        dimensions: vectors.dimensions,
        metric: METRIC.to_owned(),
        index: blake3::hash(&index).to_hex().to_string(),
        chunks: chunks.iter().map(ChunkRecord::of).collect(),
    };
    Ok(IndexFiles { index, meta: serde_json::to_vec(&meta).map_err(failed)? })
}

pub(super) fn decode(
    chunks: &[Chunk],
    embedder: &dyn Embedder,
    index: &[u8],
    meta: &[u8],
) -> Result<Vectors, RetrieveError> {
    /// Read first, so that another format is named as such and not as a missing field.
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let unreadable = |error: serde_json::Error| RetrieveError::Unreadable(error.to_string());
    let head: Head = serde_json::from_slice(meta).map_err(unreadable)?;
    if head.format != FORMAT {
        return Err(RetrieveError::Format { found: head.format, expected: FORMAT });
    }
    let meta: Meta = serde_json::from_slice(meta).map_err(unreadable)?;
    if blake3::hash(index).to_hex().as_str() != meta.index {
        return Err(RetrieveError::Damaged);
    }
    let shape = |name: &str, dimensions: usize, metric: &str| {
        format!("{name} ({dimensions} dimensions, {metric})")
    };
    let found = shape(&meta.embedder, meta.dimensions, &meta.metric);
    let expected = shape(&embedder.name(), embedder.dimensions(), METRIC);
    if found != expected {
        return Err(RetrieveError::Foreign { found, expected });
    }
    let now: Vec<ChunkRecord> = chunks.iter().map(ChunkRecord::of).collect();
    if now != meta.chunks {
        return Err(RetrieveError::Stale { changed: changed(&meta.chunks, &now) });
    }
    let loaded = empty(meta.dimensions, chunks.len())?;
    loaded.load_from_buffer(index).map_err(failed)?;
    if loaded.size() != chunks.len() || loaded.dimensions() != meta.dimensions {
        return Err(failed("it does not hold what its description says"));
    }
    Ok(Vectors { index: loaded, dimensions: meta.dimensions })
}

/// What was added, removed or changed, as `family/heading`, sorted, each once.
fn changed(then: &[ChunkRecord], now: &[ChunkRecord]) -> Vec<String> {
    let missing = |from: &[ChunkRecord], to: &[ChunkRecord]| {
        let gone = from.iter().filter(|record| !to.contains(record));
        gone.map(|record| format!("{}/{}", record.family, record.heading)).collect::<Vec<_>>()
    };
    let mut names = missing(then, now);
    names.extend(missing(now, then));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_vectors_are_searched_through_the_graph() {
        let vector = |n: u16| {
            let angle = f32::from(n) * 0.1;
            vec![angle.sin(), angle.cos(), f32::from(n % 97), f32::from(n % 13)]
        };
        let many = u16::try_from(EXACT_BELOW).expect("small") + 10;
        let vectors = Vectors::build(4, (0..many).map(vector)).expect("an index");
        let similarities = vectors.similarities(&vector(4321), usize::from(many));
        assert!(similarities[4321] > 0.999);
        let found = similarities.iter().filter(|similarity| **similarity != 0.0).count();
        assert!(found <= NEIGHBOURS);
    }
}
