//! How good the diagnoses are: labelled cases, and what is counted over their answers. Pure: cases
//! and answers in, numbers out.
//!
//! Decides which answers count as right and nothing else. It refuses to diagnose: an answer comes
//! from the same path that `diagnose` runs, so that what is measured is what people get. A share
//! of nothing is `None`, never zero.

mod baseline;
mod calibration;
mod case;
mod left_out;
mod measure;
mod search;
mod suite;

pub use baseline::{Compared, Comparison, compare, keywords};
pub use calibration::{Reliability, Table, table};
pub use case::{BadLine, Case, Material, Split, Texts, read};
pub use left_out::LeftOut;
pub use measure::{Answered, Measures, Retrieval, Share, Thresholds, measure};
pub use search::{ALL_KINDS, Asked, Interval, Place, Ranked, queries, ranked};
pub use suite::{
    Cascade, Layout, Message, Mutation, NO_CAUSE, Part, RankLog, Root, Wrong, cascades, messages,
    names,
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the FNV reference code, 64 bits, 1a.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
