//! What many runs say together: how they ended, what they held, and the energy that took.
//!
//! Folds records one at a time, in memory that grows with the partitions and causes and not with
//! the runs. Every sum is an integer and every fold can be merged with another, so that any order
//! and any division of the work gives the same report. Refuses to know why a run failed: the
//! cause comes in from outside, and a run whose cause is not known stays in a row of its own.
//! Facts: `man sacct`; the rules for what counts stand in [`Tally`], the physics in [`Energy`].

pub mod breakdown;
mod energy;
mod findings;
pub mod patterns;
pub mod reclaim;
pub mod reliability;
pub mod sizing;
mod summary;
mod tally;
pub mod workloads;

pub use energy::{Assumption, Carbon, Energy, Method, Range, Site};
pub use findings::{Figure, Finding, Weight, findings};
pub use summary::{Summary, cost};
pub use tally::{Held, HostTime, Load, Metered, Outcome, Outcomes, Tally};

/// A part of a whole; of nothing nothing.
#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}
