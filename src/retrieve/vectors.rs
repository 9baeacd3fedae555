//! Vectors by their position: those that are searched, in usearch, and those that are only looked
//! up, as a plain table.

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::RetrieveError;

/// Below this many vectors all are compared: as fast as the graph, and nothing is missed.
pub(super) const EXACT_BELOW: usize = 10_000;
/// How many neighbours the graph is asked for above that.
const NEIGHBOURS: usize = 200;

pub(super) fn failed(error: impl std::fmt::Display) -> RetrieveError {
    RetrieveError::Index(error.to_string())
}

/// Vectors that are searched.
pub(super) struct Vectors {
    index: Index,
    dimensions: usize,
}

impl Vectors {
    /// An empty index of this shape. Sixteen bits a value: half the bytes, and no neighbour is lost.
    /// Of the two kinds that there are this one is cut from a value and not converted, which takes
    /// a sixth of the time where the processor does not help.
    fn empty(dimensions: usize, vectors: usize) -> Result<Self, RetrieveError> {
        let options = IndexOptions {
            dimensions,
            metric: MetricKind::Cos,
            quantization: ScalarKind::BF16,
            ..IndexOptions::default()
        };
        // Where all vectors are compared nobody walks the graph: the smallest there is will do.
        let options = if vectors < EXACT_BELOW {
            IndexOptions { connectivity: 2, expansion_add: 1, ..options }
        } else {
            options
        };
        Ok(Self { index: Index::new(&options).map_err(failed)?, dimensions })
    }

    /// How so many vectors are searched.
    pub(super) fn search_kind(vectors: usize) -> &'static str {
        if vectors < EXACT_BELOW { "exact" } else { "graph" }
    }

    /// Fills an index, one vector after the other: the same vectors give the same bytes.
    pub(super) fn build<V: AsRef<[f32]>>(
        dimensions: usize,
        vectors: impl ExactSizeIterator<Item = V>,
    ) -> Result<Self, RetrieveError> {
        let built = Self::empty(dimensions, vectors.len())?;
        built.index.reserve_capacity_and_threads(vectors.len().max(1), 1).map_err(failed)?;
        for (key, vector) in (0_u64..).zip(vectors) {
            let vector = vector.as_ref();
            if vector.len() != dimensions {
                let length = vector.len();
                return Err(failed(format!("a vector has {length} values, not {dimensions}")));
            }
            built.index.add(key, vector).map_err(failed)?;
        }
        Ok(built)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.index.size()
    }

    /// One of them.
    pub(super) fn get(&self, position: usize) -> Option<Vec<f32>> {
        let mut vector = vec![0.0; self.dimensions];
        let found = self.index.get(position as u64, &mut vector).ok()?;
        (found == 1).then_some(vector)
    }

    /// The cosine of every vector with `vector`; 0 for those not among the neighbours.
    pub(super) fn similarities(&self, vector: &[f32]) -> Vec<f64> {
        let count = self.len();
        let mut similarities = vec![0.0; count];
        let says_something = vector.iter().any(|value| *value != 0.0);
        if count == 0 || !says_something || vector.len() != self.dimensions {
            return similarities;
        }
        let found = if count < EXACT_BELOW {
            self.index.exact_search(vector, count)
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

    pub(super) fn encode(&self) -> Result<Vec<u8>, RetrieveError> {
        let mut bytes = vec![0; self.index.serialized_length()];
        self.index.save_to_buffer(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Opens what [`Self::encode`] wrote. The bytes must be known to be those: a damaged index of
    /// the right size loads, and crashes the process in the search.
    pub(super) fn decode(
        dimensions: usize,
        count: usize,
        bytes: &[u8],
    ) -> Result<Self, RetrieveError> {
        let loaded = Self::empty(dimensions, count)?;
        loaded.index.load_from_buffer(bytes).map_err(failed)?;
        // A loaded index has room for as many searches at once as the machine has cores, and refuses
        // one more: jobs may be diagnosed on more threads than that.
        let threads = rayon::current_num_threads();
        loaded.index.reserve_capacity_and_threads(count.max(1), threads).map_err(failed)?;
        if loaded.len() != count || loaded.index.dimensions() != dimensions {
            return Err(failed("it does not hold what its description says"));
        }
        Ok(loaded)
    }
}

/// Vectors that are only looked up, eight bits a value: each has a scale of its own, so that the
/// direction stays right to a hundredth of a degree of its angle.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Table {
    dimensions: usize,
    rows: Vec<u8>,
}

/// The bytes of the scale before a row.
const SCALE: usize = size_of::<f32>();
/// The largest value of a byte with a sign.
const LARGEST: f32 = 127.0;

impl Table {
    pub(super) fn build<V: AsRef<[f32]>>(
        dimensions: usize,
        vectors: impl Iterator<Item = V>,
    ) -> Self {
        let mut rows = Vec::new();
        for vector in vectors {
            let vector = vector.as_ref();
            let largest = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let scale = if largest > 0.0 { largest / LARGEST } else { 1.0 };
            rows.extend_from_slice(&scale.to_le_bytes());
            #[expect(clippy::cast_possible_truncation, reason = "within -127 to 127 by the scale")]
            rows.extend(vector.iter().map(|value| ((value / scale).round() as i8).cast_unsigned()));
        }
        Self { dimensions, rows }
    }

    /// Opens what [`Self::as_bytes`] gave; any bytes of the right number will do.
    pub(super) fn decode(dimensions: usize, count: usize, bytes: &[u8]) -> Option<Self> {
        let expected = Self::length(dimensions, count)?;
        (bytes.len() == expected).then(|| Self { dimensions, rows: bytes.to_vec() })
    }

    /// The bytes of so many.
    pub(super) fn length(dimensions: usize, count: usize) -> Option<usize> {
        dimensions.checked_add(SCALE)?.checked_mul(count)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.rows
    }

    pub(super) fn get(&self, position: usize) -> Option<Vec<f32>> {
        let width = self.dimensions + SCALE;
        let start = position.checked_mul(width)?;
        let row = self.rows.get(start..start.checked_add(width)?)?;
        let (scale, values) = row.split_first_chunk::<SCALE>()?;
        let scale = f32::from_le_bytes(*scale);
        Some(values.iter().map(|value| f32::from(value.cast_signed()) * scale).collect())
    }
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
        let similarities = vectors.similarities(&vector(4321));
        assert!(similarities[4321] > 0.999);
        let found = similarities.iter().filter(|similarity| **similarity != 0.0).count();
        assert!(found <= NEIGHBOURS);
    }

    #[test]
    fn what_is_looked_up_points_where_it_pointed() {
        let vectors = [vec![0.6, -0.8, 0.0], vec![0.0; 3], vec![1e-3, 2e-3, -3e-3]];
        let table = Table::build(3, vectors.iter());
        let again = Table::decode(3, 3, table.as_bytes()).expect("whole");
        assert_eq!(again, table);
        for (position, vector) in vectors.iter().enumerate() {
            let found = table.get(position).expect("there");
            let largest = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            for (found, value) in found.iter().zip(vector) {
                // Rounding to 127 steps errs by half a step.
                assert!((found - value).abs() <= largest / 254.0 + 1e-9, "{found} {value}");
            }
        }
        assert_eq!(table.get(3), None);
        assert_eq!(Table::decode(3, 2, table.as_bytes()), None);
    }
}
