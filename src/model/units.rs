//! Bytes and spans of time, with the grammars that batch schedulers print and accept.
//!
//! Facts: `man sacct`, `man sbatch`, and `specs` of what Slurm 20.11 to 26.05 really print: memory
//! suffixes are powers of 1024, `-t 30` is minutes, `MM:SS.mmm` occurs below one hour.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct UnitError {
    /// What was found.
    pub text: String,
    /// What would have been understood, with its article.
    pub expected: &'static str,
}

impl UnitError {
    fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.to_owned(), expected }
    }
}

/// An amount of memory or data, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// One KiB.
    pub const KIB: u64 = 1 << 10;
    /// One MiB.
    pub const MIB: u64 = 1 << 20;
    /// One GiB.
    pub const GIB: u64 = 1 << 30;

    /// Reads `512`, `82916K`, `99.50M`, `4G`, `1.5T` (also `MB`, `MiB`, lower case).
    /// A bare number is multiplied by `bare`, the unit that the field at hand uses.
    pub fn parse(text: &str, bare: u64) -> Result<Self, UnitError> {
        let error = || UnitError::new(text, "an amount of memory");
        // Of a large cluster most are bare, and many.
        if text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(whole) = text.parse::<u64>()
        {
            return whole.checked_mul(bare).map(Self).ok_or_else(error);
        }
        let trimmed = text.trim();
        let digits =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, suffix) = trimmed.split_at(digits);
        let mut letters = suffix.chars();
        let unit = match letters.next().map(|c| c.to_ascii_uppercase()) {
            None => bare,
            Some('B') => 1,
            Some('K') => Self::KIB,
            Some('M') => Self::MIB,
            Some('G') => Self::GIB,
            Some('T') => Self::GIB << 10,
            Some('P') => Self::GIB << 20,
            Some('E') => Self::GIB << 30,
            Some(_) => return Err(error()),
        };
        if !matches!(letters.as_str(), "" | "B" | "b" | "iB" | "ib") {
            return Err(error());
        }
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Self).ok_or_else(error);
        }
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(error());
        }
        let number: f64 = number.parse().map_err(|_| error())?;
        #[expect(clippy::cast_precision_loss, reason = "a fraction is printed with two digits")]
        let bytes = (number * unit as f64).round();
        #[expect(clippy::cast_precision_loss, reason = "the bound may be off by one in 2^64")]
        if !bytes.is_finite() || bytes < 0.0 || bytes >= u64::MAX as f64 {
            return Err(error());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "range checked above"
        )]
        Ok(Self(bytes as u64))
    }

    /// The value as a scheduler option takes it: whole `G` or `M` where it is whole, else `K`
    /// rounded up (never less than asked).
    pub fn to_option(self) -> String {
        if self.0 >= Self::GIB && self.0.is_multiple_of(Self::GIB) {
            format!("{}G", self.0 / Self::GIB)
        } else if self.0 >= Self::MIB && self.0.is_multiple_of(Self::MIB) {
            format!("{}M", self.0 / Self::MIB)
        } else {
            format!("{}K", self.0.div_ceil(Self::KIB))
        }
    }
}

impl fmt::Display for Bytes {
    /// Three significant figures with a binary unit: `99.5M`, `1.50G`, `812K`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "K", "M", "G", "T", "P", "E"];
        #[expect(clippy::cast_precision_loss, reason = "three figures are printed")]
        let mut value = self.0 as f64;
        let mut unit = 0;
        // 1023.5 would round to "1024": the unit is chosen from what will be printed.
        while value >= 1023.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let whole = if unit == 0 || value >= 99.95 {
            Some(value.round_ties_even())
        } else {
            Some(value.round()).filter(|whole| (value - whole).abs() < 0.005)
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below 1024, or 16 of the last unit"
        )]
        let text = match whole {
            // As a whole number it is written in a fraction of the time.
            Some(whole) => format!("{}{}", whole as u64, UNITS[unit]),
            None if value >= 9.995 => format!("{value:.1}{}", UNITS[unit]),
            None => format!("{value:.2}{}", UNITS[unit]),
        };
        f.pad(&text)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

/// A length of time, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    millis: u64,
}

impl Span {
    /// From whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self { millis: seconds.saturating_mul(1000) }
    }

    /// From milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self { millis }
    }

    /// Whole seconds, rounded down.
    pub const fn as_seconds(self) -> u64 {
        self.millis / 1000
    }

    /// Milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.millis
    }

    /// Reads what accounting prints: `[D-]HH:MM:SS[.mmm]`, `MM:SS[.mmm]`, or bare seconds.
    pub fn parse_clock(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError::new(text, "a span of time");
        let (days, clock) = split_days(text.trim()).ok_or_else(error)?;
        let (clock, millis) = split_fraction(clock).ok_or_else(error)?;
        let fields = numbers(clock).ok_or_else(error)?;
        let seconds = match fields[..] {
            [seconds] if days == 0 => Some(seconds),
            [minutes, seconds] if days == 0 => total(0, 0, minutes, seconds),
            [hours, minutes, seconds] => total(days, hours, minutes, seconds),
            _ => None,
        };
        let seconds = seconds.ok_or_else(error)?;
        let millis = seconds.checked_mul(1000).and_then(|whole| whole.checked_add(millis));
        millis.map(Self::millis).ok_or_else(error)
    }

    /// Reads what `sbatch --time` takes: `minutes`, `minutes:seconds`, `hours:minutes:seconds`,
    /// `days-hours`, `days-hours:minutes`, `days-hours:minutes:seconds`.
    pub fn parse_limit(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError::new(text, "a time limit");
        let trimmed = text.trim();
        let (days, clock) = split_days(trimmed).ok_or_else(error)?;
        let fields = numbers(clock).ok_or_else(error)?;
        let seconds = match (trimmed.contains('-'), &fields[..]) {
            (false, [minutes]) => total(0, 0, *minutes, 0),
            (false, [minutes, seconds]) => total(0, 0, *minutes, *seconds),
            (true, [hours]) => total(days, *hours, 0, 0),
            (true, [hours, minutes]) => total(days, *hours, *minutes, 0),
            (_, [hours, minutes, seconds]) => total(days, *hours, *minutes, *seconds),
            _ => None,
        };
        let seconds = seconds.ok_or_else(error)?;
        seconds.checked_mul(1000).map(Self::millis).ok_or_else(error)
    }
}

fn split_days(text: &str) -> Option<(u64, &str)> {
    match text.split_once('-') {
        None => Some((0, text)),
        Some((days, clock)) => Some((number(days)?, clock)),
    }
}

fn split_fraction(clock: &str) -> Option<(&str, u64)> {
    match clock.split_once('.') {
        None => Some((clock, 0)),
        Some((whole, fraction)) => {
            let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
            number(fraction)?;
            Some((whole, number(&digits)?))
        }
    }
}

fn numbers(clock: &str) -> Option<Vec<u64>> {
    clock.split(':').map(number).collect()
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn total(days: u64, hours: u64, minutes: u64, seconds: u64) -> Option<u64> {
    days.checked_mul(24)?
        .checked_add(hours)?
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60)?
        .checked_add(seconds)
}

impl fmt::Display for Span {
    /// `[D-]HH:MM:SS`, the form that every Slurm option takes back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_seconds();
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
        if days == 0 { f.pad(&clock) } else { f.pad(&format!("{days}-{clock}")) }
    }
}

impl Serialize for Span {
    /// Seconds, with a fraction only where there is one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.millis.is_multiple_of(1000) {
            serializer.serialize_u64(self.as_seconds())
        } else {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds of centuries fit 2^53")]
            serializer.serialize_f64(self.millis as f64 / 1000.0)
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    /// Whole seconds: fractions are of measurements, which nothing reads back.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_forms_that_accounting_prints() {
        // specs of real outputs: below an hour with a fraction, with hours, with days, bare.
        assert_eq!(Span::parse_clock("00:00.092"), Ok(Span::millis(92)));
        assert_eq!(Span::parse_clock("03:04.5"), Ok(Span::millis(184_500)));
        assert_eq!(Span::parse_clock("00:10:00"), Ok(Span::seconds(600)));
        assert_eq!(Span::parse_clock("2-01:02:03"), Ok(Span::seconds(176_523)));
        assert_eq!(Span::parse_clock("77"), Ok(Span::seconds(77)));
        for bad in ["", "-", "1-", "a", "1:2:3:4", "1-2", "INVALID", "1:-2", "+5"] {
            assert!(Span::parse_clock(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limit_forms_of_the_sbatch_manual() {
        let minutes = |m: u64| Ok(Span::seconds(m * 60));
        assert_eq!(Span::parse_limit("30"), minutes(30));
        assert_eq!(Span::parse_limit("30:00"), minutes(30));
        assert_eq!(Span::parse_limit("2:00:00"), minutes(120));
        assert_eq!(Span::parse_limit("2-12"), minutes(60 * 60));
        assert_eq!(Span::parse_limit("1-12:30"), minutes(36 * 60 + 30));
        assert_eq!(Span::parse_limit("1-00:00:30"), Ok(Span::seconds(86_430)));
        assert!(Span::parse_limit("UNLIMITED").is_err());
    }

    #[test]
    fn memory_suffixes_are_binary() {
        assert_eq!(Bytes::parse("99.50M", 1), Ok(Bytes(104_333_312)));
        assert_eq!(Bytes::parse("83248K", 1), Ok(Bytes(85_245_952)));
        assert_eq!(Bytes::parse("100", Bytes::MIB), Ok(Bytes(104_857_600)));
        assert_eq!(Bytes::parse("4GB", 1), Ok(Bytes(4 << 30)));
        for bad in ["", "M", "-4G", "4X", "4GBs", "1e9", "n/a", "99999999999999999999E"] {
            assert!(Bytes::parse(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_print_in_the_unit_of_what_is_printed() {
        let shown = |bytes: u64| Bytes(bytes).to_string();
        assert_eq!(shown(0), "0B");
        assert_eq!(shown(104_333_312), "99.5M");
        assert_eq!(shown(Bytes::GIB - 1), "1G");
        assert_eq!(shown(3 * Bytes::GIB / 2), "1.50G");
        assert_eq!(Bytes(100 * Bytes::MIB).to_option(), "100M");
        assert_eq!(Bytes(1).to_option(), "1K");
    }
}
