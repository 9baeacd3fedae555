//! Queries of the notes with the note and section that answer each, and how rankings of notes compare
//! on them.
//!
//! Pure: rankings in, numbers out. The unit that is drawn again for an interval is the query. The
//! labels are people's judgement; nothing here corrects them.

use serde::{Deserialize, Serialize};

use super::case::BadLine;
use super::suite::Random;

/// A query with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Asked {
    /// Its id.
    pub id: String,
    /// What kind of query it is: `evidence`, `question`, `paraphrase`.
    #[serde(default)]
    pub kind: String,
    /// The words.
    pub query: String,
    /// The family whose note answers.
    pub family: String,
    /// The heading of the section that answers best; empty where nobody has judged.
    #[serde(default)]
    pub section: String,
    /// Other families that are as right.
    #[serde(default)]
    pub also: Vec<String>,
}

impl Asked {
    /// Whether a note answers.
    pub fn accepts(&self, family: &str) -> bool {
        self.family == family || self.also.iter().any(|also| also == family)
    }
}

/// Reads a set of queries; a line that is none costs no other.
pub fn queries(text: &str) -> (Vec<Asked>, Vec<BadLine>) {
    let mut asked = Vec::new();
    let mut bad = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(query) => asked.push(query),
            Err(error) => bad.push(BadLine { line: index + 1, what: error.to_string() }),
        }
    }
    (asked, bad)
}

/// Where the answer to a query came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The place of the first right note, from 1; `None` where none came.
    pub note: Option<usize>,
    /// Whether that note was told by the right section.
    pub section: bool,
}

impl Place {
    /// Of notes in their order, each by the heading of the section it was told by.
    pub fn of<'n>(asked: &Asked, notes: impl Iterator<Item = (&'n str, &'n str)>) -> Self {
        let mut ranked = notes.zip(1..);
        let found = ranked.find(|((family, _), _)| asked.accepts(family));
        found.map_or_else(Self::default, |((_, heading), place)| Self {
            note: Some(place),
            section: heading == asked.section,
        })
    }

    fn within(self, limit: usize) -> f64 {
        f64::from(u8::from(self.note.is_some_and(|place| place <= limit)))
    }

    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    fn reciprocal(self) -> f64 {
        self.note.map_or(0.0, |place| 1.0 / place as f64)
    }

    /// One note answers: it counts whole by the right section and half by another, divided by the
    /// logarithm of its place.
    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    fn gain(self) -> f64 {
        let place = self.note.filter(|place| *place <= 5);
        let whole = if self.section { 1.0 } else { 0.5 };
        place.map_or(0.0, |place| whole / (place as f64 + 1.0).log2())
    }
}

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub value: f64,
    /// Of means of queries drawn again, 2.5 in a hundred are below.
    pub low: f64,
    /// And 2.5 above.
    pub high: f64,
}

/// How often the queries are drawn again.
const DRAWS: usize = 2000;

/// The mean of `values` with its 95 % interval by bootstrap; the same values give the same interval.
/// `None` of nothing.
fn interval(values: &[f64]) -> Option<Interval> {
    #[expect(clippy::cast_precision_loss, reason = "numbers of queries are small")]
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mut random = Random(1);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn = (0..values.len()).map(|_| random.below(values.len() as u64));
            let drawn = drawn.filter_map(|at| values.get(usize::try_from(at).ok()?));
            drawn.sum::<f64>() / count
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: usize| means.get(DRAWS * share / 1000).copied().unwrap_or_default();
    Some(Interval { value: values.iter().sum::<f64>() / count, low: at(25), high: at(975) })
}

/// How one way of ranking did on the queries of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The way.
    pub method: &'static str,
    /// The kind; `all` for every query.
    pub kind: String,
    /// How many queries.
    pub queries: usize,
    /// The share whose note came first.
    pub recall_at_1: Option<Interval>,
    /// The share whose note was among the first three.
    pub recall_at_3: Option<Interval>,
    /// The share whose note was among the first five.
    pub recall_at_5: Option<Interval>,
    /// The mean of one over the place.
    pub mrr: Option<Interval>,
    /// The mean gain of the first five: a note counts whole by the right section, half by another.
    pub ndcg_at_5: Option<Interval>,
    /// The share whose note came first by the right section.
    pub section_at_1: Option<Interval>,
}

/// What stands for every kind.
pub const ALL_KINDS: &str = "all";

/// Counts over the places of one way of ranking: all queries first, then each kind.
pub fn ranked(method: &'static str, asked: &[Asked], places: &[Place]) -> Vec<Ranked> {
    let mut kinds: Vec<&str> = vec![ALL_KINDS];
    for query in asked.iter().filter(|query| !query.kind.is_empty()) {
        if !kinds.contains(&query.kind.as_str()) {
            kinds.push(&query.kind);
        }
    }
    let row = |kind: &str| {
        let own =
            asked.iter().zip(places).filter(|(query, _)| kind == ALL_KINDS || query.kind == kind);
        let own: Vec<Place> = own.map(|(_, place)| *place).collect();
        let of = |value: &dyn Fn(Place) -> f64| {
            interval(&own.iter().map(|place| value(*place)).collect::<Vec<_>>())
        };
        Ranked {
            method,
            kind: kind.to_owned(),
            queries: own.len(),
            recall_at_1: of(&|place| place.within(1)),
            recall_at_3: of(&|place| place.within(3)),
            recall_at_5: of(&|place| place.within(5)),
            mrr: of(&Place::reciprocal),
            ndcg_at_5: of(&Place::gain),
            section_at_1: of(&|place| if place.section { place.within(1) } else { 0.0 }),
        }
    };
    kinds.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        let line = r#"{"id": "1", "kind": "question", "query": "q", "family": "a",
            "section": "Causes", "also": ["b"], "note": "left alone"}"#;
        let (mut asked, bad) = queries(&line.replace('\n', ""));
        assert_eq!(bad, []);
        asked.remove(0)
    }

    #[test]
    fn a_line_that_is_no_query_is_named_and_costs_no_other() {
        let set = "{\"id\": \"1\", \"query\": \"q\", \"family\": \"a\"}\n\nno\n{\"id\": \"2\"}\n";
        let (asked, bad) = queries(set);
        assert_eq!((asked.len(), asked[0].section.as_str()), (1, ""));
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn places_and_gains_by_hand() {
        let asked = asked();
        let place =
            |notes: &[(&'static str, &'static str)]| Place::of(&asked, notes.iter().copied());
        let second = place(&[("x", "Causes"), ("b", "Fixes"), ("a", "Causes")]);
        assert_eq!(second, Place { note: Some(2), section: false });
        // Half of 1 / log2(3).
        assert!((second.gain() - 0.315_465).abs() < 1e-6);
        assert!((second.reciprocal() - 0.5).abs() < 1e-9);
        let first = place(&[("a", "Causes")]);
        assert!((first.gain() - 1.0).abs() < 1e-9);
        assert_eq!(place(&[("x", "Causes")]), Place::default());
        let sixth = Place { note: Some(6), section: true };
        assert!(sixth.gain().abs() < 1e-9);
        let rows = ranked("m", &[asked.clone(), asked], &[second, first]);
        assert_eq!(rows.len(), 2);
        let value = |of: Option<Interval>| of.expect("two queries").value;
        assert!((value(rows[0].recall_at_1) - 0.5).abs() < 1e-9);
        assert!((value(rows[1].recall_at_3) - 1.0).abs() < 1e-9);
        assert!((value(rows[1].mrr) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn an_interval_is_that_of_the_binomial_nearly() {
        // 50 of 100: the normal approximation gives 0.5 plus or minus 0.098.
        let values: Vec<f64> = (0..100).map(|n| f64::from(n % 2)).collect();
        let found = interval(&values).expect("not empty");
        assert!((found.value - 0.5).abs() < 1e-9);
        assert!(
            (found.low - 0.402).abs() < 0.015 && (found.high - 0.598).abs() < 0.015,
            "{found:?}"
        );
        assert_eq!(interval(&values), Some(found));
        assert_eq!(interval(&[]), None);
    }
}
