//! How good the diagnoses are: labelled cases, and what is counted over their answers. Pure: cases
//! and answers in, numbers out.
//!
//! Decides which answers count as right and nothing else. It refuses to diagnose: an answer comes
//! from the same path that `diagnose` runs, so that what is measured is what people get. A share
//! of nothing is `None`, never zero.

mod case;
mod measure;

pub use case::{BadLine, Case, Material, Split, Texts, read};
pub use measure::{Answered, Cell, FamilyRow, Measures, Retrieval, Share, measure};

/// The label of a job that ended well.
pub const HEALTHY: &str = "none";
/// The label of a case whose evidence decides nothing.
pub const UNKNOWN: &str = "unknown";

/// FNV-1a of 64 bits: the same number on every machine, for splits that anyone can repeat.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
