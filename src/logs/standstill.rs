//! Whether the last thing a log says is that its program waits.
//!
//! A run that waited until its limit needs no more time. Decides by the very last line that is the
//! program's own, and by members of a group that never came; refuses to know how long it waited.

use super::scan::{Line, Scan};

/// What a program writes last when it waits: that it does, that it tries again, or a bar that never
/// moved.
const WAITS: [&str; 8] = [
    "waiting for ",
    "waiting on ",
    "waiting to ",
    "still disabled, retrying",
    "temporarily disabled, retrying",
    "queued and waiting",
    "[00:00<?",
    "0it [00:00, ?",
];

/// The line by which it is seen that a log ends in waiting.
pub fn standstill(scan: &Scan) -> Option<&Line> {
    let own = |line: &&Line| !is_end(&line.text);
    let last = scan.tail.iter().rev().find(own)?;
    let lower = last.text.to_lowercase();
    let waits = WAITS.iter().any(|word| lower.contains(word));
    (waits || members_missing(scan, last)).then_some(last)
}

/// What the scheduler and its launcher write when they end a run.
fn is_end(text: &str) -> bool {
    let launcher = text.strip_prefix("srun: ").is_some_and(|rest| {
        rest.starts_with("error: ")
            || rest.starts_with("Terminating")
            || rest.contains("aborted")
            || rest.starts_with("Force Terminated")
            || rest.starts_with("launch/slurm")
    });
    launcher || text.starts_with("slurmstepd")
}

/// Whether the log ends with members of a group that come, `MEMBER: 1/8`, and some never did.
fn members_missing(scan: &Scan, last: &Line) -> bool {
    let member = |text: &str| {
        let (_, behind) = text.split_once("MEMBER: ")?;
        let (number, total) = behind.split_once('/')?;
        let total = total.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((number.parse::<u64>().ok()?, total.parse::<u64>().ok()?))
    };
    let Some((_, total)) = member(&last.text) else { return false };
    // Of more there is no room in the last lines.
    let came: std::collections::BTreeSet<u64> =
        scan.tail.iter().filter_map(|line| Some(member(&line.text)?.0)).collect();
    total <= 32 && (came.len() as u64) < total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(lines: &[&str]) -> bool {
        let line = |text: &&str| Line {
            number: None,
            offset: 0,
            length: 0,
            rank: None,
            text: (*text).to_owned(),
        };
        let scan = Scan { tail: lines.iter().map(line).collect(), ..Scan::default() };
        standstill(&scan).is_some()
    }

    #[test]
    fn only_the_last_words_tell_that_it_waits() {
        const LIMIT: &str = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-30T20:00:00 DUE TO TIME LIMIT ***";
        // As `srun` of 21.08 to 25.05 writes it, and Lightning.
        let srun = "srun: Job 4 step creation still disabled, retrying (Requested nodes are busy)";
        let missing = ["GLOBAL_RANK: 1, MEMBER: 2/4", "GLOBAL_RANK: 0, MEMBER: 1/4", LIMIT];
        assert!(ends(&[srun, LIMIT]) && ends(&["Waiting for rendezvous", LIMIT]) && ends(&missing));
        assert!(ends(&[
            "Validation sanity check: 0it [00:00, ?it/s]",
            "srun: error: n1: tasks 0-3: Terminated"
        ]));
        assert!(!ends(&["waiting for data", "step 5", LIMIT]));
        assert!(!ends(&["GLOBAL_RANK: 1, MEMBER: 2/2", "GLOBAL_RANK: 0, MEMBER: 1/2"]));
        assert!(!ends(&[LIMIT]) && !ends(&[]));
    }
}
