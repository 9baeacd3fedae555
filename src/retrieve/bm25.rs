//! BM25 over the chunks: rare words count more, long chunks no more for being long.

use std::collections::BTreeMap;

use super::words::terms;
use crate::text::did_you_mean;

/// How soon a repeated word stops adding; the usual value.
const K1: f64 = 1.2;
/// How much the length of a chunk is held against it; the usual value.
const B: f64 = 0.75;

/// Term frequencies of every chunk.
#[derive(Debug)]
pub(super) struct Bm25 {
    /// For every term, the chunks that have it and how often.
    postings: BTreeMap<String, Vec<(usize, f64)>>,
    /// Terms per chunk, relative to the mean.
    lengths: Vec<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^53")]
impl Bm25 {
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut postings: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
        let mut lengths = Vec::new();
        for (chunk, text) in texts.enumerate() {
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            let terms = terms(text);
            lengths.push(terms.len() as f64);
            for term in terms {
                *counts.entry(term).or_default() += 1.0;
            }
            for (term, count) in counts {
                postings.entry(term).or_default().push((chunk, count));
            }
        }
        let mean = lengths.iter().sum::<f64>() / (lengths.len().max(1) as f64);
        for length in &mut lengths {
            *length = if mean > 0.0 { *length / mean } else { 1.0 };
        }
        Self { postings, lengths }
    }

    /// Whether a text has anything to do with the chunks: one of its words is theirs, with a slip of
    /// the hand perhaps, or joined with others.
    pub(super) fn knows(&self, text: &str) -> bool {
        terms(text)
            .iter()
            .any(|word| self.postings.contains_key(word) || !self.meant(word).is_empty())
    }

    /// What a word that no chunk has may have been meant as: a known word of nearly the same length
    /// with a slip, else the longest known words that are joined in it, else the nearest word.
    fn meant(&self, word: &str) -> Vec<&str> {
        /// Shorter words are near to too many others.
        const LEAST: usize = 5;
        if word.len() < LEAST || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Vec::new();
        }
        let known = || self.postings.keys().map(String::as_str).filter(|term| term.len() >= LEAST);
        let near = |by: usize| {
            let candidates = known().filter(move |term| term.len().abs_diff(word.len()) <= by);
            did_you_mean(word, candidates)
        };
        if let Some(slip) = near(1) {
            return vec![slip];
        }
        let contained: Vec<&str> = known().filter(|term| word.contains(term)).collect();
        let whole = |term: &&str| {
            !contained.iter().any(|other| other.len() > term.len() && other.contains(term))
        };
        let joined: Vec<&str> = contained.iter().copied().filter(whole).collect();
        if joined.is_empty() { near(word.len() / 3).into_iter().collect() } else { joined }
    }

    /// The score of every chunk as a share of what a chunk could get that repeats every word of the
    /// query without end. A word that no chunk has counts as the rarest, so that few words of many
    /// are few; a word asked twice counts once.
    pub(super) fn shares(&self, query: &str) -> Vec<f64> {
        /// So many words are typed by a person; more are a program's, which makes no slips.
        const TYPED: usize = 16;
        let mut scores = vec![0.0; self.lengths.len()];
        let words = terms(query);
        let mut asked: Vec<&str> = Vec::new();
        for word in &words {
            let meant = if self.postings.contains_key(word) || words.len() > TYPED {
                Vec::new()
            } else {
                self.meant(word)
            };
            if meant.is_empty() {
                asked.push(word);
            }
            asked.extend(meant);
        }
        asked.sort_unstable();
        asked.dedup();
        let all = self.lengths.len() as f64;
        let mut most = 0.0;
        for term in asked {
            let postings = self.postings.get(term).map_or(&[][..], Vec::as_slice);
            let having = postings.len() as f64;
            let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
            most += rarity * (K1 + 1.0);
            for (chunk, count) in postings {
                let length = self.lengths.get(*chunk).copied().unwrap_or(1.0);
                let saturated = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                if let Some(score) = scores.get_mut(*chunk) {
                    *score += rarity * saturated;
                }
            }
        }
        if most > 0.0 {
            for score in &mut scores {
                *score /= most;
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_word_counts_more_than_a_common_one() {
        let bm25 = Bm25::new(["memory node", "memory disk", "memory memory"].into_iter());
        let scores = bm25.shares("memory disk");
        assert!(scores[1] > scores[2] && scores[2] > scores[0], "{scores:?}");
        assert_eq!(bm25.shares("unheard"), [0.0; 3]);
        assert!(Bm25::new(std::iter::empty()).shares("memory").is_empty());
    }

    #[test]
    fn a_slip_is_the_nearest_word_and_joined_words_are_theirs() {
        let bm25 = Bm25::new(["segment size", "segmentation", "memory", "reached"].into_iter());
        for (typed, meant) in [
            ("segmentaton", &["segmentation"][..]),
            ("cudaoutofmemory", &["memory"]),
            ("segmentsize", &["segment"]),
            ("memorry", &["memory"]),
            ("pizza", &[]),
        ] {
            assert_eq!(bm25.meant(typed), meant, "{typed}");
        }
    }

    #[test]
    fn one_word_of_many_is_a_small_share_and_no_share_is_above_one() {
        let bm25 = Bm25::new(["memory node", "disk quota", "memory memory"].into_iter());
        let [alone, among] = ["disk", "disk of an unheard strange machine"]
            .map(|query| bm25.shares(query).into_iter().fold(0.0, f64::max));
        assert!(among < alone / 3.0 && alone <= 1.0, "{alone} {among}");
    }
}
