//! How a job or step ended, or where it stands.

use std::fmt;

use serde::{Serialize, Serializer};

/// The state itself, without the flags that ride on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BaseState {
    /// Waits in the queue.
    Pending,
    /// Runs.
    Running,
    /// Holds its allocation but is stopped.
    Suspended,
    /// The last command of the script returned zero; no proof of success.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// Ended with a non-zero exit or a signal.
    Failed,
    /// Reached its time limit.
    Timeout,
    /// A node of the allocation failed.
    NodeFail,
    /// Made way for another job.
    Preempted,
    /// The nodes did not boot.
    BootFail,
    /// Could not end before its deadline.
    Deadline,
    /// The kernel killed a process for memory.
    OutOfMemory,
    /// A word this version does not know; shown, never mapped to another.
    Other,
}

const WORDS: &[(&str, &str, BaseState)] = &[
    ("PENDING", "PD", BaseState::Pending),
    ("RUNNING", "R", BaseState::Running),
    ("SUSPENDED", "S", BaseState::Suspended),
    ("COMPLETED", "CD", BaseState::Completed),
    ("CANCELLED", "CA", BaseState::Cancelled),
    ("FAILED", "F", BaseState::Failed),
    ("TIMEOUT", "TO", BaseState::Timeout),
    ("NODE_FAIL", "NF", BaseState::NodeFail),
    ("PREEMPTED", "PR", BaseState::Preempted),
    ("BOOT_FAIL", "BF", BaseState::BootFail),
    ("DEADLINE", "DL", BaseState::Deadline),
    ("OUT_OF_MEMORY", "OOM", BaseState::OutOfMemory),
];

/// A state as printed, with its base and what rides on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The base state.
    pub base: BaseState,
    /// Who cancelled the job, where the scheduler says so (`CANCELLED by 1001`).
    pub by: Option<String>,
    /// The text as the scheduler printed it, blanks trimmed.
    pub text: String,
}

impl State {
    /// Reads a state word with its decorations: `CANCELLED by 1001`, `OUT_OF_ME+`, `CG`,
    /// `RUNNING,COMPLETING`. Never fails: an unknown word is [`BaseState::Other`].
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let first = text.split([' ', ',', '+']).next().unwrap_or("");
        let upper = first.to_ascii_uppercase();
        let cut = text.ends_with('+');
        let base = WORDS
            .iter()
            .find(|(word, code, _)| {
                upper == *word
                    || upper == *code
                    || (cut && upper.len() > 3 && word.starts_with(&upper))
            })
            .map_or_else(|| flag_base(&upper), |(_, _, base)| *base);
        let by = text.split_once(" by ").map(|(_, who)| who.trim().to_owned());
        Self { base, by, text: text.to_owned() }
    }

    /// Whether the job is over: nothing about it will change.
    pub fn is_ended(&self) -> bool {
        !matches!(
            self.base,
            BaseState::Pending | BaseState::Running | BaseState::Suspended | BaseState::Other
        )
    }

    /// Whether the job ended in a way that its owner did not want.
    pub fn is_failure(&self) -> bool {
        matches!(
            self.base,
            BaseState::Failed
                | BaseState::Timeout
                | BaseState::NodeFail
                | BaseState::BootFail
                | BaseState::Deadline
                | BaseState::OutOfMemory
        )
    }

    /// The scheduler's word for the base state, without who or flags; for front matter and filters.
    pub fn word(&self) -> &str {
        WORDS
            .iter()
            .find(|(_, _, base)| *base == self.base)
            .map_or(self.text.as_str(), |(word, _, _)| word)
    }
}

impl BaseState {
    /// The scheduler's word for it; empty for a state that is not known.
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(_, _, base)| *base == self).map_or("", |(word, _, _)| word)
    }

    /// Every state word that a filter or a rule may name.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _, _)| *word)
    }
}

/// Where only a flag is printed, the base state it implies.
fn flag_base(word: &str) -> BaseState {
    match word {
        "COMPLETING" | "CG" | "CONFIGURING" | "CF" | "RESIZING" | "RS" | "SIGNALING" | "SI"
        | "STAGE_OUT" | "SO" => BaseState::Running,
        "STOPPED" | "ST" => BaseState::Suspended,
        "REQUEUED" | "RQ" | "REQUEUE_FED" | "RF" | "REQUEUE_HOLD" | "RH" | "RESV_DEL_HOLD"
        | "RD" | "SPECIAL_EXIT" | "SE" => BaseState::Pending,
        _ => BaseState::Other,
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Nothing where none was told.
impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.text.is_empty() {
            return serializer.serialize_none();
        }
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorated_words_keep_their_base_and_their_text() {
        let by = State::parse("CANCELLED by 1001");
        assert_eq!((by.base, by.by.as_deref()), (BaseState::Cancelled, Some("1001")));
        assert_eq!(by.to_string(), "CANCELLED by 1001");
        assert_eq!(State::parse("OUT_OF_ME+").base, BaseState::OutOfMemory);
        assert_eq!(State::parse("CANCELLED+").base, BaseState::Cancelled);
        assert_eq!(State::parse("PD").base, BaseState::Pending);
        assert_eq!(State::parse("REQUEUED").base, BaseState::Pending);
    }

    #[test]
    fn an_unknown_word_is_neither_done_nor_failed() {
        for text in ["HYPERSPACE", "", "C+"] {
            let state = State::parse(text);
            assert_eq!(state.base, BaseState::Other, "{text}");
            assert!(!state.is_ended() && !state.is_failure());
        }
    }
}
