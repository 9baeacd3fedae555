//! Text as vectors.

use std::fmt;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::words::terms;

/// What must be the same for two vectors to be comparable; it goes into the provenance of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// The name of the model, or of the method where there is none.
    pub model: String,
    /// The hash of the model's file, or the version of the method.
    pub weights: String,
    /// The hash of what cuts text into tokens.
    pub tokenizer: String,
    /// How the vectors of tokens become one.
    pub pooling: String,
    /// The length of the vectors.
    pub dimensions: usize,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, weights, tokenizer, pooling, dimensions } = self;
        let short = |hash: &str| hash.chars().take(8).collect::<String>();
        let (weights, tokenizer) = (short(weights), short(tokenizer));
        write!(f, "{model} ({weights}, {tokenizer}, {pooling}, {dimensions} dimensions)")
    }
}

/// Turns texts into vectors of fixed length.
pub trait Embedder: Send + Sync {
    /// What the vectors can be compared with. Known without running anything.
    fn space(&self) -> Space;
    /// Whether near vectors mean the same: else the nearest says nothing where no word is known.
    fn understands(&self) -> bool {
        true
    }
    /// The vectors of these texts, in order, each of length 1; all zero when a text says nothing.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Why a text has no vector here. The answer is found by words then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// No model is to be run here; that is nothing to complain of.
    #[error("no embedding model is used here")]
    NoModel,
    /// The model or its library is there and cannot be used.
    #[error("the embedding model cannot be used: {0}")]
    Unusable(String),
}

/// Words and their pieces hashed into 512 places. It needs no model and knows no meaning: it finds
/// words with typing errors and joined or cut identifiers, which BM25 misses.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashEmbedder;

const DIMENSIONS: usize = 512;
/// What a piece of a word counts beside the whole word.
const PIECE_WEIGHT: f32 = 0.3;

impl Embedder for HashEmbedder {
    fn space(&self) -> Space {
        Space {
            model: "hashed n-grams".to_owned(),
            weights: "1".to_owned(),
            tokenizer: "terms and their pieces".to_owned(),
            pooling: "sum".to_owned(),
            dimensions: DIMENSIONS,
        }
    }

    fn understands(&self) -> bool {
        false
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.par_iter().map(|text| Self::vector(text)).collect())
    }
}

impl HashEmbedder {
    fn vector(text: &str) -> Vec<f32> {
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
        let [one, other] = [one, other].map(HashEmbedder::vector);
        one.iter().zip(other).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn the_same_words_are_near_and_other_words_are_far() {
        assert!((similarity("CUDA out of memory", "cuda out of memory") - 1.0).abs() < 1e-5);
        assert!(similarity("segmentation fault", "segmentaton fault") > 0.5);
        assert!(similarity("segmentation fault", "disk quota exceeded").abs() < 0.2);
        assert!(HashEmbedder::vector("the of").iter().all(|value| *value == 0.0));
    }
}
