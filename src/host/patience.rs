//! How long an answer waits in vain: one budget for all commands that hang.
//!
//! Deadlines stand in series: when the scheduler hangs, each question would wait for its own. So the
//! time that was lost on commands that gave no answer is counted, once where several hung side by
//! side, and each later command is waited for so much less, beyond half of its own deadline. When
//! nothing is left it is not run at all. What answers, however slowly, costs nothing here.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Cmd, ExecError};

/// The time that one answer has lost.
#[derive(Debug, Default)]
pub(super) struct Patience(Mutex<Lost>);

#[derive(Debug, Default)]
struct Lost {
    time: Duration,
    /// Until when that was counted.
    until: Option<Instant>,
    /// The first command that hung.
    by: Option<String>,
}

impl Patience {
    /// How long a command is waited for; an error where it is not to be run.
    pub(super) fn left(&self, cmd: &Cmd) -> Result<Duration, ExecError> {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = (cmd.deadline + cmd.deadline / 2).saturating_sub(lost.time).min(cmd.deadline);
        match &lost.by {
            Some(hung) if left.is_zero() => {
                Err(ExecError::NotAsked { command: cmd.brief(), hung: hung.clone() })
            }
            _ => Ok(left),
        }
    }

    /// Notes that a command hung for as long as it was given. That it took a moment more to end it
    /// takes nothing from those that come.
    pub(super) fn lose(&self, cmd: &Cmd, begun: Instant) {
        let (from, until) = (begun, begun + cmd.deadline);
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = lost.until.map_or(from, |counted| counted.max(from));
        lost.time += until.saturating_duration_since(from);
        lost.until = Some(lost.until.map_or(until, |counted| counted.max(until)));
        lost.by.get_or_insert_with(|| cmd.brief());
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::instant;
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_hangs_costs_one_answer_its_deadline_and_half_of_it() {
        let patience = Patience::default();
        let (sacct, squeue) = (Cmd::new("sacct", &["--helpformat"]), Cmd::new("squeue", &[]));
        let list = Cmd::new("sacct", &[]).deadline(seconds(120));
        let begun = instant();
        assert_eq!(patience.left(&squeue), Ok(seconds(30)));
        patience.lose(&sacct, begun);
        assert_eq!(
            (patience.left(&squeue), patience.left(&list)),
            (Ok(seconds(15)), Ok(seconds(120)))
        );
        // Two side by side lose that time once.
        for _ in 0..2 {
            patience.lose(&squeue.clone().deadline(seconds(10)), begun + seconds(31));
        }
        assert_eq!(patience.left(&squeue), Ok(seconds(5)));
        patience.lose(&squeue.clone().deadline(seconds(5)), begun + seconds(41));
        let (command, hung) = ("squeue".to_owned(), "sacct --helpformat".to_owned());
        assert_eq!(patience.left(&squeue), Err(ExecError::NotAsked { command, hung }));
    }
}
