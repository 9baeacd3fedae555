//! Suites: properties that hold for more logs than anyone can label.
//!
//! Decides what a suite is made of, the same bytes each time: what frightens in successes and what
//! Slurm says comes from committed files, damaged logs ([`Mutation`]) and jobs of many ranks
//! ([`Cascade`]) are made from a seed. It refuses to diagnose: `answer` does, and counts here.

mod cascade;
mod mutation;
mod stream;

pub use cascade::{Cascade, Layout, RankLog, Root, cascades};
pub use mutation::Mutation;

use serde::Serialize;

use super::Share;

/// The sign of a line that must not be given a cause.
pub const NO_CAUSE: &str = "-";

/// A part of a suite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// How many of its cases were right.
    #[serde(flatten)]
    pub share: Share,
    /// The others.
    pub wrong: Vec<Wrong>,
}

/// A case that was not right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The case.
    pub id: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl Part {
    /// Of outcomes in their order: `None` for one that was right.
    pub fn of(name: &str, outcomes: Vec<Option<Wrong>>) -> Self {
        let cases = outcomes.len();
        let wrong: Vec<Wrong> = outcomes.into_iter().flatten().collect();
        Self { share: Share::of(name, cases - wrong.len(), cases), wrong }
    }
}

/// A line of a set of messages: the text, and every label that is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message as a person sees it.
    pub text: &'a str,
    /// Families of which each is right; [`NO_CAUSE`] stands for none.
    pub families: Vec<&'a str>,
}

/// Reads `text, families separated by |`, a tab between; a line without a tab is none.
pub fn messages(table: &str) -> Vec<Message<'_>> {
    let rows = table.lines().filter_map(|line| line.split_once('\t'));
    rows.map(|(text, families)| Message { text, families: families.split('|').collect() }).collect()
}

/// The names of the logs in an index: the first column below the heading.
pub fn names(index: &str) -> Vec<&str> {
    index.lines().skip(1).filter_map(|row| row.split('\t').next()).collect()
}

/// `SplitMix64`: the same numbers from the same seed on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        let last = choices.len() as u64;
        choices[usize::try_from(self.below(last)).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // The first outputs of Vigna's splitmix64.c for the seed 1234567.
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_message_may_have_several_right_families() {
        let read = messages("srun: x\thost_oom|-\nno tab\nsbatch: y\tsubmit_limit\n");
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], Message { text: "srun: x", families: vec!["host_oom", NO_CAUSE] });
    }
}
