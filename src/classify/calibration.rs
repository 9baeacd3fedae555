//! How often scores of a height were right, measured on labelled cases.
//!
//! Measured on 2026-11-30 on 535 cases that nobody who wrote a rule had seen: the 69 development cases
//! whose source hashes to 0 modulo 3, and ten sets of 40 to 60 that were written from other public
//! reports by people who had not seen the rules, each after the misses of those before were mended. How
//! their first run went is kept in `eval/first-runs.jsonl`; those with a first cause, guess or not,
//! count in the bin of its score, the others nowhere. Bins as `jobwise eval --calibrate` makes them. A
//! test makes them anew, and holds their expected calibration error by five folds of whole sources to
//! 0.05.

use crate::model::Confidence;

/// From this score on the first cause is called the cause. Below it the share that was right is
/// too small to act on.
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

const LOWEST: Bin = Bin { from: 0.0, right: 15, of: 30 };
const HIGHER: [Bin; 5] = [
    Bin { from: 0.9555, right: 74, of: 74 },
    Bin { from: 0.921, right: 170, of: 175 },
    Bin { from: 0.855, right: 69, of: 73 },
    Bin { from: 0.79, right: 29, of: 35 },
    Bin { from: 0.6699, right: 24, of: 35 },
];

/// The measured confidence of a score. That none of so many was wrong does not make the next one
/// certain: then half a case counts as wrong.
pub(super) fn confidence(score: f64) -> Confidence {
    let bin = HIGHER.iter().find(|bin| score >= bin.from).unwrap_or(&LOWEST);
    let right = f64::from(bin.right).min(f64::from(bin.of) - 0.5);
    Confidence { measured: right / f64::from(bin.of), cases: bin.of, score }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_score_is_never_less_sure() {
        let shares: Vec<f64> =
            (0..=100_u32).map(|percent| confidence(f64::from(percent) / 100.0).measured).collect();
        assert!(shares.is_sorted(), "{shares:?}");
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
    }
}
