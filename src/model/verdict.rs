//! What the rules concluded, and every line that made them conclude it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a failure family: the stem of its file in `knowledge/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FamilyId(pub String);

impl fmt::Display for FamilyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whose fault a family is, and so who can act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    /// The request or the environment of the job's owner.
    User,
    /// The cluster's staff.
    Site,
    /// A machine.
    Hardware,
    /// Limits and policies of the scheduler.
    Scheduler,
    /// The program that ran.
    Application,
}

/// What a signal may be evidence of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May be the cause.
    Root,
    /// Supports a cause that something else names; alone it names nothing.
    Confirm,
    /// A consequence of something else.
    Cascade,
    /// Frightening but meaningless.
    Noise,
}

/// Which stream of a job a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output, or both streams in one file.
    Output,
    /// Standard error alone.
    Error,
}

/// Where a piece of evidence stands, so that anyone can read it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "in", rename_all = "lowercase")]
pub enum Place {
    /// A line of a log.
    Log {
        /// The file.
        path: String,
        /// The line, from 1; `None` where the scan began in the middle of the file.
        line: Option<u64>,
        /// The byte at which the line begins.
        offset: u64,
        /// The bytes of the line as it stands in the file.
        length: u64,
        /// The rank that wrote it, where a prefix says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        rank: Option<u64>,
        /// Whether only a part of the file could be read, as it breaks off or is damaged.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    /// A field of the scheduler's record.
    Record {
        /// The field.
        field: &'static str,
        /// The step, where it is a step's field.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The signal that recognised it, as `family/signal`.
    pub signal: String,
    /// What it is evidence of.
    pub role: Role,
    /// Where it stands.
    pub place: Place,
    /// The line, cleaned of escape sequences; or the field and its value.
    pub text: String,
}

/// How sure the rules are: the score they gave, and how often such scores were right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Confidence {
    /// The share of labelled cases in this score's bin whose first cause was right, 0 to 1.
    pub measured: f64,
    /// How many labelled cases that bin holds.
    pub cases: u32,
    /// The raw score of the rules; only its order means anything.
    pub score: f64,
}

/// One cause, ranked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The family.
    pub family: FamilyId,
    /// The signal that carried it.
    pub signal: String,
    /// The family's title.
    pub title: String,
    /// Whose it is.
    pub domain: Domain,
    /// How sure.
    pub confidence: Confidence,
    /// The evidence, the deciding piece first.
    pub evidence: Vec<Evidence>,
    /// Values captured by the signal: a path, a module, a size.
    pub captures: BTreeMap<String, String>,
    /// Every signal of the family that was seen, also those whose line is not told twice.
    pub heard: BTreeSet<String>,
}

/// What kind of answer the verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The first cause is the answer.
    Cause,
    /// The evidence does not decide; causes, if any, are guesses.
    Unknown,
    /// The job ended well and nothing says otherwise.
    Healthy,
    /// It has not ended: there is nothing to diagnose yet.
    Running,
    /// It waits.
    Pending,
}

/// The rules' conclusion about one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of answer.
    pub outcome: Outcome,
    /// Causes, most likely first. With [`Outcome::Unknown`] they are guesses.
    pub causes: Vec<Cause>,
    /// What followed from the first cause, in order of appearance. With [`Outcome::Unknown`] what
    /// there is that explains nothing: how the record says it ended, exceptions of no known
    /// family, and consequences.
    pub consequences: Vec<Evidence>,
}
