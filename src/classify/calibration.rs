//! How often scores of a height were right, measured on labelled cases.
//!
//! Measured on 2026-11-30 on the 184 open development cases of jobs that ran, each with its record
//! and its logs through the streaming scanner: 34 of the eight families known then, 150 of other
//! families, successes and cases without evidence, where any name is wrong. A case counts in the
//! bin of its first cause, guess or not; the 141 without any count nowhere. The rules were written
//! with these cases in view, so the shares are upper bounds until cases that were kept apart have
//! been measured, and a bin of twelve says little: the number of cases is told with the share.

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

const LOWEST: Bin = Bin { from: 0.0, right: 1, of: 4 };
const HIGHER: [Bin; 2] =
    [Bin { from: 0.82, right: 24, of: 27 }, Bin { from: THRESHOLD, right: 9, of: 12 }];

/// The measured confidence of a score.
pub(super) fn confidence(score: f64) -> Confidence {
    let bin = HIGHER.iter().find(|bin| score >= bin.from).unwrap_or(&LOWEST);
    let measured = f64::from(bin.right) / f64::from(bin.of);
    Confidence { measured, cases: bin.of, score }
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
