//! A share among few trials, with how far it can be trusted.

/// The share of `hits` among `trials` with its Wilson score interval of 95 %; `None` without
/// trials, where there is no share.
///
/// Unlike the textbook interval it stays within 0 and 1 and holds for few trials and for shares
/// near the ends, where failure rates live. Source: E. B. Wilson, "Probable inference, the law of
/// succession, and statistical inference", JASA 22 (1927) 209-212.
pub fn wilson(hits: u64, trials: u64) -> Option<Share> {
    /// The two-sided 95 % point of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of jobs are far below 2^53")]
    let (hits, trials) = (hits.min(trials) as f64, trials as f64);
    let value = hits / trials;
    let square = Z * Z / trials;
    let middle = value + square / 2.0;
    let reach = Z * (value * (1.0 - value) / trials + square / (4.0 * trials)).sqrt();
    Some(Share {
        value,
        low: ((middle - reach) / (1.0 + square)).clamp(0.0, value),
        high: ((middle + reach) / (1.0 + square)).clamp(value, 1.0),
    })
}

/// A share between 0 and 1 with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The share itself.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_interval_is_that_of_the_literature() {
        // Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I,
        // method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (hits, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let share = wilson(hits, trials).expect("trials");
            assert!((share.low - low).abs() < 5e-5, "{hits}/{trials}: {share:?}");
            assert!((share.high - high).abs() < 5e-5, "{hits}/{trials}: {share:?}");
        }
        assert_eq!(wilson(0, 0), None);
    }

    proptest! {
        #[test]
        fn the_share_lies_in_its_interval(trials in 1_u64..1 << 40, hits in 0_u64..1 << 40) {
            let share = wilson(hits.min(trials), trials).expect("trials");
            prop_assert!(0.0 <= share.low && share.low <= share.value);
            prop_assert!(share.value <= share.high && share.high <= 1.0);
        }
    }
}
