//! Measurements of which some broke off: of those only the least they can have become is known.

/// How large the measured thing gets, from measurements that are complete and such as broke off.
#[derive(Debug, Clone, PartialEq)]
pub struct Survival {
    /// Each value at which a complete measurement lies, with the share that exceeds it.
    steps: Vec<(u64, f64)>,
}

/// The product-limit estimate. `values` are pairs of a value and whether it is complete; their
/// order does not matter. One that broke off exactly where others are complete counts as larger.
///
/// Source: Kaplan and Meier, "Nonparametric estimation from incomplete observations", JASA 53
/// (1958) 457-481.
pub fn survival(mut values: Vec<(u64, bool)>) -> Survival {
    // Complete ones first at a tie.
    values.sort_unstable_by_key(|(value, complete)| (*value, !*complete));
    let mut steps = Vec::new();
    let mut left = values.len();
    let mut share = 1.0;
    for same in values.chunk_by(|a, b| a.0 == b.0) {
        let complete = same.iter().filter(|(_, complete)| *complete).count();
        if complete > 0 {
            #[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
            let surviving = (left - complete) as f64 / left as f64;
            share *= surviving;
            steps.push((same[0].0, share));
        }
        left -= same.len();
    }
    Survival { steps }
}

impl Survival {
    /// The least value that at most a share `risk` exceeds; `None` where too much broke off before
    /// to know one.
    pub fn exceeded_by(&self, risk: f64) -> Option<u64> {
        self.steps.iter().find(|(_, share)| *share <= risk + 1e-9).map(|(value, _)| *value)
    }

    /// The share that exceeds a value, as far as is known.
    pub fn above(&self, value: u64) -> f64 {
        let step = self.steps.iter().rev().find(|(at, _)| *at <= value);
        step.map_or(1.0, |(_, share)| *share)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::math::quantile;

    /// Weeks of remission under 6-mercaptopurine (Freireich and others, Blood 21 (1963) 699-716),
    /// the data that textbooks show the estimate with; `true` are those that ended.
    const REMISSIONS: [(u64, bool); 21] = [
        (6, true),
        (6, true),
        (6, true),
        (6, false),
        (7, true),
        (9, false),
        (10, true),
        (10, false),
        (11, false),
        (13, true),
        (16, true),
        (17, false),
        (19, false),
        (20, false),
        (22, true),
        (23, true),
        (25, false),
        (32, false),
        (32, false),
        (34, false),
        (35, false),
    ];

    #[test]
    fn the_estimate_is_that_of_the_literature() {
        // Cox and Oakes, "Analysis of survival data" (1984), table 4.1.
        let found = survival(REMISSIONS.to_vec());
        for (week, share) in [
            (5, 1.0),
            (6, 0.857),
            (7, 0.807),
            (9, 0.807),
            (10, 0.753),
            (13, 0.690),
            (16, 0.627),
            (22, 0.538),
            (23, 0.448),
            (35, 0.448),
        ] {
            assert!((found.above(week) - share).abs() < 5e-4, "{week}: {}", found.above(week));
        }
        // Their median is 23 weeks; less than 44.8 % were never seen to end.
        assert_eq!(found.exceeded_by(0.5), Some(23));
        assert_eq!(found.exceeded_by(0.4), None);
        assert_eq!(survival(Vec::new()).exceeded_by(0.5), None);
    }

    proptest! {
        /// Where nothing broke off it is the plain quantile.
        #[test]
        fn complete_measurements_give_their_quantile(
            mut values in prop::collection::vec(0_u64..50, 1..40), risk in 0.0_f64..0.99,
        ) {
            values.sort_unstable();
            let complete = values.iter().map(|value| (*value, true)).collect();
            prop_assert_eq!(
                survival(complete).exceeded_by(risk), quantile(&values, 1.0 - risk)
            );
        }

        /// That something broke off never makes it smaller.
        #[test]
        fn what_broke_off_only_raises_it(
            values in prop::collection::vec((0_u64..50, any::<bool>()), 1..40), risk in 0.0_f64..0.99,
        ) {
            let complete = values.iter().map(|(value, _)| (*value, true)).collect();
            let whole = survival(complete).exceeded_by(risk);
            let found = survival(values).exceeded_by(risk);
            prop_assert!(found.is_none_or(|found| Some(found) >= whole));
        }
    }
}
