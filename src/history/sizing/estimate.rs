//! How much of something runs need, from complete measurements and such as broke off.

use crate::math::{median_deviation, survival};

use super::{Misfits, float, whole};

/// What runs used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Measured {
    /// Complete measurements.
    pub(super) complete: Vec<u64>,
    /// At least so much, since the run was ended there.
    pub(super) at_least: Vec<u64>,
}

/// How much runs need.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Estimate {
    /// Runs that it rests on.
    pub(super) runs: usize,
    /// The most that was measured completely; of none the most that was seen.
    pub(super) most: u64,
    /// What all but the accepted share use at most; `None` where too many broke off to know.
    pub(super) quantile: Option<u64>,
    /// What to add for runs that are yet to come, in per cent.
    pub(super) headroom: u32,
}

impl Measured {
    pub(super) fn len(&self) -> usize {
        self.complete.len() + self.at_least.len()
    }

    /// The estimate; `None` of nothing.
    pub(super) fn estimate(&self, risk: f64) -> Option<Estimate> {
        let most_complete = self.complete.iter().max().copied();
        let most = most_complete.or_else(|| self.at_least.iter().max().copied())?;
        let values = self.complete.iter().map(|value| (*value, true));
        let values = values.chain(self.at_least.iter().map(|value| (*value, false)));
        let quantile = survival(values.collect()).exceeded_by(risk);
        let headroom = self.headroom(quantile.unwrap_or(most));
        Some(Estimate { runs: self.len(), most, quantile, headroom })
    }

    /// Three robust standard deviations, but from 10 to 30 per cent; 30 where too few runs say how
    /// much they vary.
    fn headroom(&self, needed: u64) -> u32 {
        const FEW: usize = 10;
        const RANGE: (f64, f64) = (10.0, 30.0);
        if self.complete.len() < FEW || needed == 0 {
            return 30;
        }
        let mut values: Vec<f64> = self.complete.iter().map(|value| float(*value)).collect();
        values.sort_by(f64::total_cmp);
        let spread = median_deviation(&values).unwrap_or(f64::MAX);
        let percent = (300.0 * spread / float(needed)).clamp(RANGE.0, RANGE.1);
        u32::try_from(whole(percent)).unwrap_or(30)
    }

    /// Runs that an amount would not have held.
    pub(super) fn misfits(&self, amount: u64) -> Misfits {
        let over = self.complete.iter().filter(|value| **value > amount).count();
        let cut = self.at_least.iter().filter(|value| **value >= amount).count();
        Misfits { runs: over + cut, unknown: self.at_least.len() - cut, of: self.len() }
    }
}

impl Estimate {
    /// What is needed with the headroom.
    pub(super) fn with_headroom(&self) -> u64 {
        let needed = self.quantile.unwrap_or(self.most);
        whole(float(needed) * f64::from(100 + self.headroom) / 100.0)
    }
}
