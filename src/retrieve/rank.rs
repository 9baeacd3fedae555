//! Which note answers a question, and which of its sections.
//!
//! The note is chosen by three parts that add up: the question's words (BM25, as a share of what a
//! text that has all of them could get), its meaning (cosines with the sections and with the nearest
//! example of a signal), and the family that the verdict named. Both shares are absolute: one word
//! found by accident stays little, however little else was found. In a line from a log the words
//! count more than in a sentence. The section is chosen by what is asked, not by a score: somebody
//! who describes a symptom wants the fixes.

use std::ops::Range;

use serde::Serialize;

use super::words::{cleaned, machine_share};
use super::{Chunk, ChunkRef, Library, Meaning};
use crate::model::FamilyId;

/// What the words of a plain question count, from 0 to 1; its meaning counts the rest. How the
/// figures of `jobwise eval --suite retrieval` were on the queries that choices are made on is told
/// in `eval/README.md`.
const WORDS_OF_A_QUESTION: f64 = 0.45;
/// What the words of a line from a log count: there the very words are what is known, and a model
/// of sentences makes little of names, paths and numbers.
const WORDS_OF_A_LINE: f64 = 0.85;
/// From this share of words that no person writes in a sentence on a text is a line from a log.
const MACHINE_SHARE: f64 = 0.5;

/// What the words of a text count: the more it looks like a line from a log, the more.
fn weight_of_words(text: &str) -> f64 {
    let like_a_line = (machine_share(text) / MACHINE_SHARE).min(1.0);
    WORDS_OF_A_QUESTION + (WORDS_OF_A_LINE - WORDS_OF_A_QUESTION) * like_a_line
}

/// What the nearest example of a family's signals counts beside its nearest section.
const EXAMPLE_WEIGHT: f64 = 0.3;

/// From this cosine on a section has something to do with a question of which no word is known:
/// nonsense and questions about anything else stay below, paraphrases above.
const NEAR: f64 = 0.225;

/// What a family named by the verdict adds: more than any text can, so that it always leads.
const FAMILY_BONUS: f64 = 2.0;
/// What a page of the site's or the user's own about that family adds: it comes before ours.
const OWN_PAGE_BONUS: f64 = 3.0;

/// What kind of section is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wants {
    /// What to do.
    #[default]
    Fix,
    /// Why it happens.
    Why,
    /// How to see whether it is so.
    Check,
}

impl Wants {
    /// What a question in plain words wants: the fixes, if it does not say otherwise.
    pub fn of(question: &str) -> Self {
        const WHAT: [&str; 5] = ["is", "does", "causes", "caused", "could"];
        const SEE: [&str; 9] =
            ["check", "see", "tell", "test", "verify", "know", "sure", "confirm", "measure"];
        /// `how do I really see`: the verb stands this near.
        const NEAR_BY: usize = 5;
        let words: Vec<String> = question
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let after = |at: usize| words.iter().skip(at + 1).take(NEAR_BY);
        let asks = |first: &str, then: &[&str], near: usize| {
            words.iter().enumerate().any(|(at, word)| {
                word == first && after(at).take(near).any(|next| then.contains(&next.as_str()))
            })
        };
        if asks("how", &SEE, NEAR_BY) {
            Self::Check
        } else if words.iter().any(|word| word == "why" || word == "who") || asks("what", &WHAT, 1)
        {
            Self::Why
        } else {
            Self::Fix
        }
    }

    /// The heading of the section in a family's note.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Fix => "Fixes",
            Self::Why => "Causes",
            Self::Check => "Verify",
        }
    }
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

/// By what notes are ranked; all but the last are there to be compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The words alone.
    Words,
    /// The meaning alone.
    Meaning,
    /// Both.
    Fused,
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

/// A note that fits, by the section that answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Match {
    /// The section.
    pub chunk: ChunkRef,
    /// The note's score: the sum of the parts. Only its order means anything.
    pub score: f64,
    /// What it is made of.
    pub parts: Parts,
    /// All sections of the note, the one that answers first, the others by what fits best.
    pub sections: Vec<Scored>,
}

/// A section by its own score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scored {
    /// The heading.
    pub heading: String,
    /// What words and meaning of this section alone give.
    pub score: f64,
}

impl Library {
    /// The notes that fit best, best first, at most `limit`, each by one section.
    pub fn search(&self, query: &Query<'_>, limit: usize) -> Vec<Match> {
        self.best(query, Method::Fused, limit)
    }

    /// Every note that fits at all, best first.
    pub fn ranked(&self, query: &Query<'_>, method: Method) -> Vec<Match> {
        self.best(query, method, usize::MAX)
    }

    fn best(&self, query: &Query<'_>, method: Method, limit: usize) -> Vec<Match> {
        let (words, meaning) = match method {
            Method::Words => (1.0, 0.0),
            Method::Meaning => (0.0, 1.0),
            Method::Fused => {
                let words = weight_of_words(query.text);
                (words, 1.0 - words)
            }
        };
        let times = |shares: Vec<f64>, by: f64| -> Vec<f64> {
            shares.into_iter().map(|share| share * by).collect()
        };
        let bm25 = times(self.words(query), words);
        let dense = if meaning > 0.0 { self.meaning(query) } else { vec![0.0; bm25.len()] };
        let dense = times(dense, meaning);

        let mut notes = Vec::new();
        let mut first = 0;
        for note in self.chunks.chunk_by(|one, next| one.found.is_of_note(&next.found)) {
            let places = first..first + note.len();
            first = places.end;
            let best = |scores: &[f64]| {
                scores.get(places.clone()).unwrap_or_default().iter().copied().fold(0.0, f64::max)
            };
            let family = match note.first() {
                Some(lead) if query.family != Some(&lead.found.family) => 0.0,
                Some(lead) if lead.found.page.is_some() => OWN_PAGE_BONUS,
                _ => FAMILY_BONUS,
            };
            let parts = Parts { bm25: best(&bm25), dense: best(&dense), family };
            let score = parts.bm25 + parts.dense + parts.family;
            if score > 0.0 {
                notes.push((score, parts, note, places));
            }
        }
        // Notes of equal score stay in the order of their names.
        notes.sort_by(|a, b| b.0.total_cmp(&a.0));
        notes.truncate(limit);

        let own = |place: usize| {
            let of = |scores: &[f64]| scores.get(place).copied().unwrap_or(0.0);
            of(&bm25) + of(&dense)
        };
        let is_wanted = |chunk: &ChunkRef| chunk.heading == query.wants.heading();
        let told = |(score, parts, note, places): (f64, Parts, &[Chunk], Range<usize>)| {
            let mut sections: Vec<(&ChunkRef, f64)> =
                note.iter().zip(places).map(|(chunk, place)| (&chunk.found, own(place))).collect();
            // A page of somebody's own has headings of its own: what fits best leads.
            sections.sort_by(|(a, one), (b, other)| {
                is_wanted(b).cmp(&is_wanted(a)).then_with(|| other.total_cmp(one))
            });
            let (lead, _) = sections.first()?;
            let chunk = (*lead).clone();
            let scored =
                |(chunk, score): (&ChunkRef, f64)| Scored { heading: chunk.heading.clone(), score };
            Some(Match {
                chunk,
                score,
                parts,
                sections: sections.into_iter().map(scored).collect(),
            })
        };
        notes.into_iter().filter_map(told).collect()
    }

    /// How near each section is in meaning, from 0 to 1, its family's examples counted in; all zero
    /// where no vector says anything.
    fn meaning(&self, query: &Query<'_>) -> Vec<f64> {
        let nothing = || vec![0.0; self.chunks.len()];
        // The note of a named family leads whatever its words mean: no model is run for that.
        if query.examples.is_empty() && query.family.is_some() {
            return nothing();
        }
        let text = cleaned(query.text);
        let meaning = if query.examples.is_empty() {
            Meaning::Words(&text)
        } else {
            Meaning::Examples(query.examples)
        };
        let known = !query.examples.is_empty() || self.bm25().knows(query.text);
        if !known && !self.embedder.understands() {
            return nothing();
        }
        let Ok(vector) = self.vector(meaning) else { return nothing() };
        let mut near = self.near(&vector);
        if !known && near.iter().all(|cosine| *cosine < NEAR) {
            return nothing();
        }
        let mut example = 0.0;
        for place in 0..near.len() {
            let (Some(chunk), Some(cosine)) = (self.chunks.get(place), near.get_mut(place)) else {
                continue;
            };
            let same = place.checked_sub(1).and_then(|before| self.chunks.get(before));
            if same.is_none_or(|before| !before.found.is_of_note(&chunk.found)) {
                example = self.nearest_example(&chunk.found, &vector);
            }
            *cosine = (cosine.max(0.0) + EXAMPLE_WEIGHT * example) / (1.0 + EXAMPLE_WEIGHT);
        }
        near
    }

    /// How near the nearest example of a family is; 0 where it has none.
    fn nearest_example(&self, of: &ChunkRef, vector: &[f32]) -> f64 {
        let examples = self.examples.get(&of.family).filter(|_| of.page.is_none());
        let vectors = examples.into_iter().flatten().filter_map(|hash| self.index.example(*hash));
        vectors.map(|example| cosine(&example, vector)).fold(0.0, f64::max)
    }
}

/// The cosine of the angle between two vectors of one length; 0 where one says nothing.
fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { f64::from(dot(one, other) / lengths) } else { 0.0 }
}

/// Summed in lanes, which a processor adds at once.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum::<f32>();
    for (one, other) in ones.zip(others) {
        for ((sum, a), b) in sums.iter_mut().zip(one).zip(other) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_what_it_wants() {
        for (question, wants) in [
            ("my job was killed, what now", Wants::Fix),
            ("how do I give it more time", Wants::Fix),
            ("why was my job killed", Wants::Why),
            ("What does QOSMaxCpuPerUserLimit mean?", Wants::Why),
            ("who cancelled it", Wants::Why),
            ("how can I see what it used", Wants::Check),
            ("how do I really check that", Wants::Check),
            ("slurmstepd: error: something", Wants::Fix),
            ("", Wants::Fix),
        ] {
            assert_eq!(Wants::of(question), wants, "{question}");
        }
    }

    #[test]
    fn a_cosine_is_that_of_the_angle() {
        assert!((cosine(&[3.0, 4.0], &[4.0, 3.0]) - 0.96).abs() < 1e-6);
        assert!(cosine(&[0.0, 0.0], &[4.0, 3.0]).abs() < 1e-12);
    }
}
