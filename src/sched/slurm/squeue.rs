//! Which jobs the queue holds: tells a live record from one that was never closed.

use std::collections::BTreeSet;

use crate::model::JobId;

/// The value of `--format`: the number that each record has of its own.
pub(super) const FORMAT: &str = "%A";

/// The numbers in the queue.
pub(super) fn numbers(output: &[u8]) -> BTreeSet<u64> {
    let text = String::from_utf8_lossy(output);
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// The value of `--format` for ids as people write them, and whose the jobs are.
pub(super) const OWNED: &str = "%i %u";

/// The jobs in the queue with their owners; tasks that wait in one record are no task.
pub(super) fn owned(output: &[u8]) -> Vec<(JobId, String)> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
    lines.filter_map(|(id, owner)| Some((id.parse().ok()?, owner.trim().to_owned()))).collect()
}
