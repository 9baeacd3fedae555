//! Which jobs the queue holds: tells a live record from one that was never closed.

use std::collections::BTreeSet;

/// The value of `--format`: the number that each record has of its own.
pub(super) const FORMAT: &str = "%A";

/// The numbers in the queue.
pub(super) fn numbers(output: &[u8]) -> BTreeSet<u64> {
    let text = String::from_utf8_lossy(output);
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}
