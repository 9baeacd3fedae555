//! Text as vectors.

use super::words::terms;

/// Turns text into a vector of fixed length.
pub trait Embedder {
    /// A name that changes whenever the vectors would; it goes into the provenance of an index.
    fn name(&self) -> String;
    /// The length of the vectors.
    fn dimensions(&self) -> usize;
    /// The vector of a text, of length 1; all zero when the text says nothing.
    fn embed(&self, text: &str) -> Vec<f32>;
}

/// Words and their pieces hashed into 512 places. It needs no model and knows no meaning: it finds
/// words with typing errors and joined or cut identifiers, which BM25 misses.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashEmbedder;

const DIMENSIONS: usize = 512;
/// What a piece of a word counts beside the whole word.
const PIECE_WEIGHT: f32 = 0.3;

impl Embedder for HashEmbedder {
    fn name(&self) -> String {
        format!("hashed-ngrams-{DIMENSIONS}-v1")
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; DIMENSIONS];
        let mut counts = std::collections::BTreeMap::new();
        for term in terms(text) {
            *counts.entry(term).or_insert(0.0_f32) += 1.0;
        }
        for (term, count) in counts {
            let weight = 1.0 + count.ln();
            add(&mut vector, term.bytes().fold(SEED, step), weight);
            let edged: Vec<char> = format!("<{term}>").chars().collect();
            for length in 3..=5 {
                for piece in edged.windows(length) {
                    let mut utf8 = [0; 4];
                    let hash = piece
                        .iter()
                        .fold(SEED, |hash, c| c.encode_utf8(&mut utf8).bytes().fold(hash, step));
                    add(&mut vector, hash, weight * PIECE_WEIGHT);
                }
            }
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length > 0.0 {
            for value in &mut vector {
                *value /= length;
            }
        }
        vector
    }
}

/// FNV-1a, 64 bits: the same on every machine and in every version.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Adds a feature at its hashed place, with a hashed sign so that collisions cancel on average.
fn add(vector: &mut [f32], hash: u64, weight: f32) {
    let sign = if hash >> 63 == 0 { weight } else { -weight };
    let place = usize::try_from((hash >> 8) % DIMENSIONS as u64).unwrap_or_default();
    if let Some(value) = vector.get_mut(place) {
        *value += sign;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(one: &str, other: &str) -> f32 {
        let embed = |text| HashEmbedder.embed(text);
        embed(one).iter().zip(embed(other)).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn the_same_words_are_near_and_other_words_are_far() {
        assert!((similarity("CUDA out of memory", "cuda out of memory") - 1.0).abs() < 1e-5);
        assert!(similarity("segmentation fault", "segmentaton fault") > 0.5);
        assert!(similarity("segmentation fault", "disk quota exceeded").abs() < 0.2);
        assert!(HashEmbedder.embed("the of").iter().all(|value| *value == 0.0));
    }
}
