//! What many runs say together: how they ended, what they held, and the energy that took.
//!
//! Folds records one at a time, in memory that grows with the partitions and causes and not with
//! the runs. Every sum is an integer and every fold can be merged with another, so that any order
//! and any division of the work gives the same report. Refuses to know why a run failed: the
//! cause comes in from outside, and a run whose cause is not known stays in a row of its own.
//! Facts: `man sacct`; the rules for what counts stand in [`Tally`], the physics in [`Energy`].

mod energy;
mod findings;
mod tally;

pub use energy::{Assumption, Carbon, Energy, Method, Range, Site};
pub use findings::{Figure, Finding, Weight, findings};
pub use tally::{Held, HostTime, Outcome, Outcomes, Tally};
