//! What to ask a scheduler for: figures as a person would write them, and the next try after one
//! was not enough.
//!
//! The one home of these rules, so that the change to a script and the sizing of its workload come
//! to the same figure.

use super::{Bytes, Span};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// What to ask for after a run was killed at its memory limit, a censored measurement: its need is
/// the limit or anything above. Doubling finds any need in the fewest further failures and ends at
/// less than twice the need; a smaller step saves less memory than one more lost run costs.
pub fn after_memory_limit(limit: Bytes) -> Bytes {
    Bytes(limit.0.saturating_mul(2))
}

/// What to ask for after a run reached its time limit: half as much again. Unused time costs nothing
/// but a later start, so the step is large enough to end the guessing after two tries (2.25 times)
/// and small enough to keep backfill possible.
pub fn after_time_limit(limit: Span) -> Span {
    Span::seconds(limit.as_seconds().saturating_mul(3).div_ceil(2))
}

/// What to ask for where a run's own progress tells how long all of it takes: a quarter more, for the
/// start and for a slower node.
pub fn after_progress(needed: Span) -> Span {
    Span::seconds(needed.as_seconds().saturating_mul(5).div_ceil(4))
}

/// To 50 MiB steps up to 1000 MiB, then 1, 4 and 16 GiB.
#[must_use]
pub fn round_memory(amount: Bytes) -> Bytes {
    const STEPS: [(u64, u64); 3] = [
        (1000 * Bytes::MIB, 50 * Bytes::MIB),
        (16 * Bytes::GIB, Bytes::GIB),
        (128 * Bytes::GIB, 4 * Bytes::GIB),
    ];
    let within = STEPS.iter().find(|(most, _)| amount.0 <= *most);
    let step = within.map_or(16 * Bytes::GIB, |(_, step)| *step);
    Bytes(amount.0.div_ceil(step).saturating_mul(step))
}

/// To 5 minutes below an hour, 15 minutes below a day, full hours above; never to zero, which
/// `sbatch` takes for "no limit".
#[must_use]
pub fn round_time(time: Span) -> Span {
    let seconds = time.as_seconds();
    let step = match seconds {
        ..HOUR => 5 * MINUTE,
        HOUR..DAY => 15 * MINUTE,
        _ => HOUR,
    };
    Span::seconds(seconds.max(1).div_ceil(step).saturating_mul(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `man sbatch`: "A time limit of zero requests that no time limit be imposed."
    #[test]
    fn no_time_is_rounded_to_no_limit() {
        assert_eq!(round_time(Span::seconds(0)), Span::seconds(5 * MINUTE));
        assert_eq!(round_time(Span::seconds(5 * MINUTE + 1)), Span::seconds(10 * MINUTE));
    }
}
