//! When a run last saved what it had done, as far as its log says so.
//!
//! A line that tells of a checkpoint having been saved, and its time or that of the nearest line
//! before it: the checkpoint is no older than that. A line about one that was read, or could not be
//! written, is none.

use jiff::civil::DateTime;

use crate::logs::line_time;

/// What a checkpoint is called.
const NAMES: [&str; 3] = ["checkpoint", "ckpt", "restart file"];
/// That it was written, in lower case.
const WRITTEN: [&str; 8] =
    ["saved", "saving", "wrote", "written", "writing", "stored", "dumped", "created"];
/// That it was not, or another thing was done with it.
const NOT: [&str; 13] = [
    "not ", "n't", "fail", "error", "unable", "skip", "load", "resum", "restor", "read", "delet",
    "remov", "will be",
];

/// The time of the last checkpoint that a log tells of; `None` where it tells of none, or of no time.
pub fn last_checkpoint(log: &str) -> Option<DateTime> {
    let (mut now, mut last) = (None, None);
    for line in log.lines() {
        now = line_time(line).or(now);
        if is_saved(line) {
            last = now.or(last);
        }
    }
    last
}

fn is_saved(line: &str) -> bool {
    /// A longer line is data.
    const LONGEST: usize = 400;
    if line.len() > LONGEST {
        return false;
    }
    let line = line.to_ascii_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| line.contains(word));
    holds(&NAMES) && holds(&WRITTEN) && !holds(&NOT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(log: &str) -> Option<String> {
        last_checkpoint(log).map(|time| time.to_string())
    }

    #[test]
    fn the_last_that_was_saved_counts() {
        let log = "2026-11-30 08:00:00 step 1000 loss 2.1\n\
                   [2026-11-30 08:10:00] Saved checkpoint to ckpt/step-1000.pt\n\
                   2026-11-30 09:00:00 step 2000 loss 1.9\n\
                   saving checkpoint at iteration 2000\n\
                   2026-11-30 10:30:00 checkpoint could not be written: No space left on device\n\
                   2026-11-30 10:40:00 failed to save checkpoint\n";
        // The one without a time of its own is no older than the line before it.
        assert_eq!(at(log).as_deref(), Some("2026-11-30T09:00:00"));
        assert_eq!(at("2026-11-30 08:00:00 loaded checkpoint step-10.pt, saved yesterday"), None);
        assert_eq!(at("Saved checkpoint"), None);
        assert_eq!(at("2026-11-30 08:00:00 model saved"), None);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in any::<String>()) {
            let _ = last_checkpoint(&text);
        }
    }
}
