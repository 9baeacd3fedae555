//! What one family file says, once it is read.
//!
//! Plain data: it neither parses ([`mod@super::parse`]) nor judges (`classify`).

use serde::{Deserialize, Serialize};

use crate::model::{Domain, Edit, FamilyId, Role};

/// Where a family's text came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Embedded in the program.
    BuiltIn,
    /// A site's or user's folder; the path of the file.
    Overlay(String),
    /// The same, in place of a built-in family.
    Replacement(String),
}

impl Provenance {
    /// The file, where it is not the program itself.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::BuiltIn => None,
            Self::Overlay(path) | Self::Replacement(path) => Some(path),
        }
    }
}

/// One failure family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Family {
    /// The id; equals the file's stem.
    pub id: FamilyId,
    /// A title of a few words.
    pub title: String,
    /// Whose it is.
    pub domain: Domain,
    /// Words by which people look for it and that stand nowhere in its text: a site's own name for
    /// a thing.
    pub tags: Vec<String>,
    /// Base state words in which the family may be the cause; empty for any.
    pub states: Vec<String>,
    /// Whether it is only a description of last resort, which any other family outranks.
    pub fallback: bool,
    /// Whether it is how programs die that went on blindly behind an error: one that is told just
    /// before explains it.
    pub crash: bool,
    /// How it is recognised.
    pub signals: Vec<Signal>,
    /// Lines that must not make this family win.
    pub counter: Vec<String>,
    /// Confusable neighbours that outrank it when both hold.
    pub yields_to: Vec<FamilyId>,
    /// Facts to check beyond the signals.
    pub checks: Vec<Check>,
    /// Changes to the batch script that fix it, whichever signal was seen.
    pub edits: Vec<Edit>,
    /// Why the family brings no edit; absent where it, or one of its signals, brings one.
    pub without_edit: Option<String>,
    /// What to ask of the site's staff where the fault is theirs or a machine's: sentences that stand
    /// above the evidence in a ticket.
    pub report: Option<String>,
    /// Where the messages are documented or were reported.
    pub sources: Vec<String>,
    /// The body: `Symptoms`, `Causes`, `Fixes`, `Verify`, in the file's order.
    pub sections: Vec<Section>,
    /// Where the file is.
    pub provenance: Provenance,
}

/// A section of a family's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// The markdown below it, blank lines trimmed at both ends.
    pub markdown: String,
    /// The line of the heading in the file, from 1.
    pub line: usize,
}

/// A fact of the record that supports or contradicts a family: a closed vocabulary, because each
/// needs code in `classify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The peak of memory against what was allocated.
    MemoryNearLimit,
    /// Whether the job was given a GPU at all.
    GpusAllocated,
    /// Whether the job ran as long as its limit.
    TimeUsedUp,
    /// Whether the CPUs did any work: a job that idled until its limit hung.
    CpuWasBusy,
}

impl Check {
    /// Every check with what it compares, for `kb check --help`.
    pub const ALL: [(&'static str, &'static str); 4] = [
        ("memory_near_limit", "peak memory against the memory allocated"),
        ("gpus_allocated", "whether the job was given a GPU"),
        ("time_used_up", "elapsed time against the time limit"),
        ("cpu_was_busy", "CPU time against what the allocated CPUs could have used"),
    ];
}

/// Where a signal is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalSource {
    /// The job's logs.
    Log,
    /// The reason the scheduler gives for waiting.
    Reason,
    /// What a submission command printed.
    Submit,
    /// The scheduler's record: no text.
    Record,
}

/// One way to recognise a family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Signal {
    /// Unique within the family.
    pub id: String,
    /// Where it is looked for.
    pub from: SignalSource,
    /// What it is evidence of.
    pub role: Role,
    /// The literal that every matching line contains; absent only for [`SignalSource::Record`].
    pub literal: Option<String>,
    /// A pattern that narrows the literal and captures values; runs on the line or block only.
    pub regex: Option<String>,
    /// A pattern that must not match the same line: a neighbour's message with the same words.
    pub unless: Option<String>,
    /// How much it counts, above 0 and at most 1.
    pub weight: f64,
    /// A true line that must make this family win, with the lines it needs around it; absent for
    /// record signals.
    pub example: Option<String>,
    /// Whether scripts also get this message when they only look whether something is there: then
    /// work that goes on speaks against it, whatever else the log holds.
    pub probe: bool,
    /// Whether it is a result that was not reached, with which its program is known to end with 0.
    pub may_exit_zero: bool,
    /// The check that makes a root of it where it supports the family; without that support it has
    /// its own role.
    pub with: Option<Check>,
    /// The record pattern of a [`SignalSource::Record`] signal.
    pub when: Option<RecordPattern>,
    /// Of a [`SignalSource::Reason`]: whether a job that waits for it will start without anybody
    /// changing anything; `None` where it depends.
    pub waiting_helps: Option<bool>,
    /// Changes to the batch script that fix it where this signal was seen.
    pub edits: Vec<Edit>,
}

/// A pattern over the scheduler's record; every field given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordPattern {
    /// The base state word of the job.
    pub state: Option<String>,
    /// The exit as `code:signal`; `*` stands for any number. Folded codes match both readings.
    pub exit: Option<String>,
    /// The derived exit, likewise.
    pub derived_exit: Option<String>,
    /// The base state word of some step other than `extern`.
    pub step_state: Option<String>,
    /// A prefix of the reason.
    pub reason: Option<String>,
    /// Whether the run ever started.
    pub started: Option<bool>,
    /// Whether the state names who cancelled: the job, or the step of `step_state`.
    pub cancelled_by: Option<bool>,
    /// Whether it was submitted to wait for another job.
    pub depends: Option<bool>,
    /// Whether its CPUs are known to have idled nearly all the time.
    pub idle: Option<bool>,
    /// Whether its logs are known to have fallen silent long before the end, and not by habit.
    pub silent: Option<bool>,
    /// Whether its peak of memory is known to have reached nine tenths of what a node allowed.
    pub memory_full: Option<bool>,
}
