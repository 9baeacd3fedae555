//! What Slurm's reasons mean.
//!
//! `reasons.tsv` has one line for each: the word, what it means, what to do. The words are those of
//! `job_state_reason.c` and the free texts that the controller writes instead of one.

use super::super::Reason;

const TABLE: &str = include_str!("reasons.tsv");

/// What a reason means; details that follow the word (`ReqNodeNotAvail, UnavailableNodes:g03`) do
/// not matter.
pub(super) fn explain(reason: &str) -> Option<Reason> {
    let rows = TABLE.lines().filter_map(|line| {
        let (word, rest) = line.split_once('\t')?;
        let (meaning, action) = rest.split_once('\t')?;
        let details = reason.strip_prefix(word)?;
        let whole = !details.starts_with(|c: char| c.is_alphanumeric());
        whole.then_some((word.len(), Reason { meaning, action }))
    });
    rows.max_by_key(|(length, _)| *length).map(|(_, reason)| reason)
}

/// Whether a text is one of these words, and nothing else.
pub(super) fn is_reason(text: &str) -> bool {
    words().any(|word| word == text)
}

/// The words.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|line| Some(line.split_once('\t')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_the_queue_shows_are_explained() {
        // Seen in `squeue` of 22.05, on a cluster made to show them.
        for reason in [
            "Priority",
            "Resources",
            "Dependency",
            "JobArrayTaskLimit",
            "AssocGrpCPUMinutesLimit",
            "QOSMaxWallDurationPerJobLimit",
            "ReqNodeNotAvail, UnavailableNodes:g03",
            "launch failed requeued held",
            "job requeued in held state",
            "PartitionConfig",
            "Job's account not permitted to use this partition (private allows chem not physics)",
        ] {
            assert!(explain(reason).is_some(), "{reason}");
        }
        assert_eq!(explain("NoSuchReason"), None);
        assert_eq!(explain(""), None);
    }

    #[test]
    fn the_longest_word_counts_and_no_part_of_one() {
        let never = explain("DependencyNeverSatisfied").expect("known");
        assert!(never.action.contains("cancel"), "{never:?}");
        assert_eq!(explain("Prioritywise"), None);
    }

    #[test]
    fn every_line_has_three_cells() {
        for line in TABLE.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{line}");
        }
    }
}
