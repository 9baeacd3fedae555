//! How often scores of a height were right, measured on labelled cases.

use crate::model::Confidence;

/// From this score on the first cause is called the cause.
pub(super) const THRESHOLD: f64 = 0.55;

/// One bin of scores.
struct Bin {
    /// Its lowest score.
    from: f64,
    /// Cases whose first cause had such a score and was the labelled one.
    right: u32,
    /// Cases whose first cause had such a score.
    of: u32,
}

const BINS: [Bin; 4] = [
    Bin { from: 0.0, right: 0, of: 0 },
    Bin { from: THRESHOLD, right: 0, of: 0 },
    Bin { from: 0.7, right: 0, of: 0 },
    Bin { from: 0.85, right: 0, of: 0 },
];

/// The measured confidence of a score.
pub(super) fn confidence(score: f64) -> Confidence {
    let bin = BINS.iter().rev().find(|bin| score >= bin.from).unwrap_or(&BINS[0]);
    let measured = if bin.of == 0 { 0.0 } else { f64::from(bin.right) / f64::from(bin.of) };
    Confidence { measured, cases: bin.of, score }
}
