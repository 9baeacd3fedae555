//! What is said of a queue that was asked about a shape: the words, and which says most.
//!
//! Decides nothing: [`super`] does.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::super::gates::{self, Kind};
use crate::model::{DryRun, Queue};

/// What is said of a queue, in one word or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It starts at once: rules, nodes and scheduler agree.
    RunNow,
    /// It is taken and waits.
    Queue,
    /// Nothing speaks against it, and the scheduler did not say, or was not asked.
    NoAnswer,
    /// It asks for more than a limit allows.
    Limit,
    /// There are too few nodes that could run it.
    TooFew,
    /// No node has what it asks for.
    WrongHardware,
    /// The queue is closed, or lets this user not in.
    Blocked,
}

impl Verdict {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::RunNow => "RUN NOW",
            Self::Queue => "QUEUE",
            Self::NoAnswer => "NO ANSWER",
            Self::Limit => "LIMIT",
            Self::TooFew => "TOO FEW",
            Self::WrongHardware => "WRONG HW",
            Self::Blocked => "BLOCKED",
        }
    }

    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::RunNow => "starts at once",
            Self::Queue => "is taken and waits",
            Self::NoAnswer => "nothing speaks against it, but the scheduler did not say yes",
            Self::Limit => "asks for more than a limit allows",
            Self::TooFew => "too few nodes could ever run it",
            Self::WrongHardware => "no node has what it asks for",
            Self::Blocked => "closed, or closed to you",
        }
    }
}

/// How the nodes of a queue suit a shape.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Fit {
    /// Nodes of the queue.
    pub considered: u64,
    /// Nodes that have what is asked for, busy or not.
    pub right: u64,
    /// Nodes whose GPUs are not identified: they may have it.
    pub unverified: u64,
    /// Why the others have not, with how many.
    pub wrong: BTreeMap<String, u64>,
    /// Right nodes on which it could start now.
    pub fitting: u64,
    /// Nodes that it needs.
    pub needed: u64,
    /// Right nodes that cannot take it now, by where they stand.
    pub busy: BTreeMap<&'static str, Busy>,
    /// Whether it fits now.
    pub now: bool,
    /// Whether it fits when all the right nodes that are up are empty.
    pub ever: bool,
    /// Models of the right nodes' GPUs, with the number of nodes.
    pub gpus: BTreeMap<String, u64>,
}

/// Nodes that cannot take a job now for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Busy {
    /// How many.
    pub nodes: u64,
    /// What of the scheduler's words says so, such as `AllocMem`.
    pub field: &'static str,
    /// The first of them by name, with what an operator noted.
    pub named: Vec<(String, Option<String>)>,
}

impl Busy {
    /// More are not told by name.
    pub const NAMED: usize = 3;
}

/// Their number is what programs ask for: nodes have their own document.
impl Serialize for Busy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.nodes)
    }
}

/// A queue before the scheduler was asked.
#[derive(Debug, Clone)]
pub struct Judged<'c> {
    /// The queue.
    pub queue: &'c Queue,
    /// Its rules.
    pub access: gates::Access,
    /// Its nodes.
    pub fit: Fit,
}

impl Judged<'_> {
    /// Whether a dry run could still make it possible: none is spent on what is closed anyway, or
    /// has not the hardware, or asks for more licences than there are.
    pub fn is_worth_asking(&self) -> bool {
        !self.access.has(Kind::Fatal)
            && self.access.gates.iter().all(|gate| gate.code != "LICENCE_TOTAL")
            && self.fit.right + self.fit.unverified > 0
    }
}

/// Where a time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The scheduler said so.
    Scheduler,
    /// Worked out from the time limits of running jobs.
    Estimate,
}

/// When a job would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Start {
    /// When.
    pub at: Timestamp,
    /// Who says so.
    pub source: Source,
}

/// A queue, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placement {
    /// The queue.
    pub queue: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in one sentence with whose rule it is; empty for `RUN NOW`.
    pub because: String,
    /// Whether it can be had: now, or after a wait.
    pub reachable: bool,
    /// Whether the scheduler said that it would take it.
    pub confirmed: bool,
    /// When it would start.
    pub start: Option<Start>,
    /// How its nodes suit.
    pub fit: Fit,
    /// Its rules, and the way in that was weighed.
    pub access: gates::Access,
    /// What the scheduler said; `None` where it was not asked.
    pub dry_run: Option<DryRun>,
    /// Accounts that were not tried.
    pub untried: usize,
    /// The options with which to submit; none for what cannot be.
    pub submit: Vec<String>,
    /// Jobs that wait for the same queue.
    pub waiting: u64,
}

/// What was asked of the scheduler about one queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asked<'a> {
    /// The answer that says most, and how many accounts were not tried.
    Yes(&'a DryRun, usize),
    /// Its turn did not come.
    TooMany,
    /// Nothing can be, or was to be, asked.
    No,
}

/// The place of a verdict. What has room and is closed to this user is closer than what has not the
/// hardware: somebody may open it.
fn standing(placement: &Placement) -> (Verdict, bool) {
    match placement.verdict {
        Verdict::Blocked if placement.fit.now => (Verdict::WrongHardware, false),
        verdict => (verdict, true),
    }
}

/// Best first: the verdict, then what the scheduler confirmed, then the sooner start, then more
/// nodes to fit on, then the name.
pub fn sort(placements: &mut [Placement]) {
    placements.sort_by(|a, b| {
        standing(a)
            .cmp(&standing(b))
            .then_with(|| b.reachable.cmp(&a.reachable))
            .then_with(|| b.confirmed.cmp(&a.confirmed))
            .then_with(|| {
                let at = |placement: &Placement| {
                    placement.start.map_or(Timestamp::MAX, |start| start.at)
                };
                at(a).cmp(&at(b))
            })
            .then_with(|| b.fit.fitting.cmp(&a.fit.fitting))
            .then_with(|| a.queue.cmp(&b.queue))
    });
}
