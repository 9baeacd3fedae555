//! Whether one group fares worse than the others, in one fourfold table or over several strata.

/// A fourfold table: events and the rest, of one group and of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Events of the group.
    pub hits: u64,
    /// Trials of the group without one.
    pub misses: u64,
    /// Events of the others.
    pub other_hits: u64,
    /// Trials of the others without one.
    pub other_misses: u64,
}

impl Table {
    fn trials(self) -> u64 {
        self.hits + self.misses
    }

    fn others(self) -> u64 {
        self.other_hits + self.other_misses
    }

    fn events(self) -> u64 {
        self.hits + self.other_hits
    }

    fn total(self) -> u64 {
        self.trials() + self.others()
    }

    /// The least and the most events that the group can have, the margins given.
    fn bounds(self) -> (u64, u64) {
        (self.events().saturating_sub(self.others()), self.trials().min(self.events()))
    }

    /// The events that the group would have if it were like the others, and their variance.
    fn expected(self) -> (f64, f64) {
        let (trials, others) = (float(self.trials()), float(self.others()));
        let (events, total) = (float(self.events()), float(self.total()));
        let mean = trials * events / total;
        (mean, mean * (others / total) * ((total - events) / (total - 1.0)))
    }

    /// The probability of every number of events that the group can have, from the least on, if it
    /// is like the others: the hypergeometric distribution.
    fn distribution(self) -> Vec<f64> {
        let choose = |n: u64, k: u64| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
        let (least, most) = self.bounds();
        let all = choose(self.total(), self.events());
        let probability = |hits: u64| {
            let others = choose(self.others(), self.events() - hits);
            (choose(self.trials(), hits) + others - all).exp()
        };
        (least..=most).map(probability).collect()
    }
}

/// Above this many possible outcomes the normal approximation is as good as the exact one.
const EXACT: u64 = 1000;

/// The probability that a group like the others has as many events as it has or more, over strata
/// within which it is compared; `None` where no stratum compares anything.
///
/// Exact where that is quick: of one stratum it is Fisher's test, of several its product
/// (R. A. Fisher, "The logic of inductive inference", Journal of the Royal Statistical Society 98
/// (1935) 39-82; M. Zelen, Biometrika 58 (1971) 129-137). Else the statistic of Cochran, Mantel
/// and Haenszel with its continuity correction (Mantel and Haenszel, Journal of the National
/// Cancer Institute 22 (1959) 719-748).
pub fn worse(strata: &[Table]) -> Option<f64> {
    let telling: Vec<Table> = strata
        .iter()
        .copied()
        .filter(|table| {
            let (least, most) = table.bounds();
            least < most
        })
        .collect();
    if telling.is_empty() {
        return None;
    }
    let outcomes: u64 = telling
        .iter()
        .map(|table| {
            let (least, most) = table.bounds();
            most - least
        })
        .sum();
    Some(if outcomes <= EXACT { exact(&telling) } else { approximate(&telling) })
}

fn exact(strata: &[Table]) -> f64 {
    let mut sums = vec![1.0];
    let mut above = 0;
    for table in strata {
        let of_one = table.distribution();
        let mut next = vec![0.0; sums.len() + of_one.len() - 1];
        for (at, p) in sums.iter().enumerate() {
            for (more, q) in of_one.iter().enumerate() {
                next[at + more] += p * q;
            }
        }
        sums = next;
        above += table.hits - table.bounds().0;
    }
    let above = usize::try_from(above).unwrap_or(usize::MAX);
    // The smallest first, so that a small tail is not lost beside one.
    sums.iter().skip(above).rev().sum::<f64>().min(1.0)
}

fn approximate(strata: &[Table]) -> f64 {
    let (mut excess, mut variance) = (0.0, 0.0);
    for table in strata {
        let (mean, spread) = table.expected();
        excess += float(table.hits) - mean;
        variance += spread;
    }
    upper_normal((excess - 0.5) / variance.sqrt())
}

/// The odds of an event in the group over those in the others, common to the strata: Mantel and
/// Haenszel's estimate. `None` where the others have none, or the group nothing else.
pub fn common_odds_ratio(strata: &[Table]) -> Option<f64> {
    let mut sums = (0.0, 0.0);
    for table in strata.iter().filter(|table| table.total() > 0) {
        let total = float(table.total());
        sums.0 += float(table.hits) * float(table.other_misses) / total;
        sums.1 += float(table.misses) * float(table.other_hits) / total;
    }
    (sums.1 > 0.0).then(|| sums.0 / sums.1)
}

/// The logarithm of n!: Stirling's series, good to twelve digits from 10 on
/// (Abramowitz and Stegun, 6.1.41).
fn ln_factorial(n: u64) -> f64 {
    if n < 10 {
        return (1..=n).map(float).product::<f64>().ln();
    }
    let x = float(n) + 1.0;
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// The probability of a standard normal value above `z`.
fn upper_normal(z: f64) -> f64 {
    let tail = |z: f64| {
        let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        if z < 3.0 {
            // Abramowitz and Stegun, 26.2.11.
            let mut term = z;
            let mut sum = z;
            for step in 1..80_u32 {
                term *= z * z / f64::from(2 * step + 1);
                sum += term;
            }
            0.5 - density * sum
        } else {
            // The same, 26.2.14.
            (1..=60_u32).rev().fold(z, |below, step| z + f64::from(step) / below).recip() * density
        }
    };
    if z < 0.0 { 1.0 - tail(-z) } else { tail(z) }
}

#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tables(counts: &[[u64; 4]]) -> Vec<Table> {
        let table = |[hits, misses, other_hits, other_misses]: &[u64; 4]| Table {
            hits: *hits,
            misses: *misses,
            other_hits: *other_hits,
            other_misses: *other_misses,
        };
        counts.iter().map(table).collect()
    }

    /// Admitted and refused men, then women, in six departments of Berkeley (Bickel, Hammel and
    /// O'Connell, Science 187 (1975) 398-404).
    const BERKELEY: [[u64; 4]; 6] = [
        [512, 313, 89, 19],
        [353, 207, 17, 8],
        [120, 205, 202, 391],
        [138, 279, 131, 244],
        [53, 138, 94, 299],
        [22, 351, 24, 317],
    ];

    #[test]
    fn the_lady_who_tasted_tea() {
        // Fisher, "The design of experiments" (1935): three cups of four right: 17 / 70.
        let found = worse(&tables(&[[3, 1, 1, 3]])).expect("a comparison");
        assert!((found - 17.0 / 70.0).abs() < 1e-12, "{found}");
        let all_right = worse(&tables(&[[4, 0, 0, 4]])).expect("a comparison");
        assert!((all_right - 1.0 / 70.0).abs() < 1e-12, "{all_right}");
    }

    #[test]
    fn five_strata_exactly() {
        // Penicillin and rabbits (Mantel, JASA 58 (1963) 690-700), the example of R's
        // `mantelhaen.test(Rabbits, exact = TRUE)`: S = 16, two-sided p = 0.03994, of which the
        // exact upper tail is half: the distribution is symmetric.
        let rabbits =
            tables(&[[0, 6, 0, 5], [3, 3, 0, 6], [6, 0, 2, 4], [5, 1, 6, 0], [2, 0, 5, 0]]);
        let found = worse(&rabbits).expect("a comparison");
        assert!((found - 0.019_97).abs() < 5e-6, "{found}");
        // "common odds ratio 7" of the chi-squared form.
        let odds = common_odds_ratio(&rabbits).expect("odds");
        assert!((odds - 7.0).abs() < 1e-9, "{odds}");
    }

    #[test]
    fn many_trials_by_the_normal_approximation() {
        // R's `mantelhaen.test(UCBAdmissions)`: X-squared 1.4269, common odds ratio 0.9046968.
        let berkeley = tables(&BERKELEY);
        let odds = common_odds_ratio(&berkeley).expect("odds");
        assert!((odds - 0.904_696_8).abs() < 5e-8, "{odds}");
        // Men fare worse than expected: with the correction towards the mean on the lower side,
        // chi-squared 1.4269 is the probability 0.2323 on both sides.
        let women = tables(&BERKELEY.map(|[a, b, c, d]| [c, d, a, b]));
        let found = approximate(&women) * 2.0;
        assert!((found - 0.2323).abs() < 5e-5, "{found}");
    }

    #[test]
    fn both_ways_agree_where_both_are_right() {
        let table = tables(&[[42, 958, 300, 8700], [14, 486, 200, 8000]]);
        let (exact, approximate) = (exact(&table), approximate(&table));
        assert!((exact / approximate - 1.0).abs() < 0.15, "{exact} {approximate}");
    }

    #[test]
    fn what_compares_nothing_has_no_answer() {
        for nothing in [[0, 0, 3, 4], [5, 5, 0, 0], [0, 5, 0, 5], [4, 0, 6, 0]] {
            assert_eq!(worse(&tables(&[nothing])), None, "{nothing:?}");
        }
        assert_eq!(worse(&[]), None);
        assert_eq!(common_odds_ratio(&tables(&[[3, 4, 0, 9]])), None);
    }

    #[test]
    fn tails_of_the_normal_distribution() {
        // Abramowitz and Stegun, table 26.1 and 26.2.
        for (z, p) in
            [(0.0, 0.5), (1.0, 0.158_655_254), (1.96, 0.024_997_895), (3.0, 0.001_349_898)]
        {
            assert!((upper_normal(z) - p).abs() < 5e-10, "{z}: {}", upper_normal(z));
            assert!((upper_normal(-z) - (1.0 - p)).abs() < 5e-10);
        }
        assert!((upper_normal(5.0) / 2.866_515_7e-7 - 1.0).abs() < 1e-7);
        assert!((ln_factorial(20) - 2_432_902_008_176_640_000_f64.ln()).abs() < 1e-10);
    }

    proptest! {
        #[test]
        fn a_probability_lies_between_zero_and_one(
            counts in prop::collection::vec(prop::array::uniform4(0_u64..400), 0..6),
        ) {
            if let Some(found) = worse(&tables(&counts)) {
                prop_assert!((0.0..=1.0).contains(&found), "{}", found);
            }
        }
    }
}
