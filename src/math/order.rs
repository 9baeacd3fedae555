//! Statistics that only need an order: quantiles, median, median absolute deviation.

/// The smallest value that at least a share `q` of a sorted slice does not exceed; `None` of an
/// empty one.
///
/// A value that really occurred, never one between two: a request sized by it would have held that
/// share of the runs. Source: Hyndman and Fan, "Sample quantiles in statistical packages", The
/// American Statistician 50 (1996) 361-365, definition 1.
pub fn quantile<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "a slice of 2^53 values does not fit in memory")]
    let rank = (q.clamp(0.0, 1.0) * sorted.len() as f64 - ROUNDING).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the length"
    )]
    let rank = rank.max(1.0) as usize;
    sorted.get((rank - 1).min(last)).copied()
}

/// 0.95 of 100 values is 95 of them, whatever the nearest binary fraction says.
const ROUNDING: f64 = 1e-9;

/// The middle of a sorted slice, or half way between the two middles.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(middle - 1)?, upper))
}

/// The median absolute deviation of a sorted slice, times 1.4826: of a normal distribution that is
/// its standard deviation, and half of the values may be wild without moving it far.
///
/// Source: F. R. Hampel, "The influence curve and its role in robust estimation", JASA 69 (1974)
/// 383-393.
pub fn median_deviation(sorted: &[f64]) -> Option<f64> {
    const NORMAL: f64 = 1.482_602_218_505_602;
    let middle = median(sorted)?;
    let mut away: Vec<f64> = sorted.iter().map(|value| (value - middle).abs()).collect();
    away.sort_by(f64::total_cmp);
    Some(median(&away)? * NORMAL)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quantile_is_a_value_that_occurred() {
        // The nearest-rank example that textbooks share: 15, 20, 35, 40, 50.
        let values = [15, 20, 35, 40, 50];
        for (q, expected) in [(0.05, 15), (0.3, 20), (0.4, 20), (0.5, 35), (1.0, 50)] {
            assert_eq!(quantile(&values, q), Some(expected), "{q}");
        }
        let hundred: Vec<u32> = (1..=100).collect();
        assert_eq!(quantile(&hundred, 0.95), Some(95));
        assert_eq!(quantile::<u32>(&[], 0.5), None);
    }

    #[test]
    fn the_deviation_ignores_what_is_wild() {
        // 1 1 2 2 4 6 9: median 2, deviations 0 0 1 1 2 4 7, their median 1.
        let values = [1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0];
        assert_eq!(median(&values), Some(2.0));
        assert_eq!(median_deviation(&values), Some(1.482_602_218_505_602));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!((median(&[]), median_deviation(&[])), (None, None));
    }

    proptest! {
        /// At least the share asked for does not exceed it, and less of them do not reach it.
        #[test]
        fn a_quantile_holds_its_share(
            mut values in prop::collection::vec(0_u32..100, 1..60), q in 0.01_f64..1.0,
        ) {
            values.sort_unstable();
            let found = quantile(&values, q).expect("values");
            let within = values.iter().filter(|value| **value <= found).count();
            let below = values.iter().filter(|value| **value < found).count();
            let wanted = q * f64::from(u32::try_from(values.len()).expect("few"));
            prop_assert!(f64::from(u32::try_from(within).expect("few")) >= wanted - 1e-6);
            prop_assert!(f64::from(u32::try_from(below).expect("few")) < wanted);
        }
    }
}
