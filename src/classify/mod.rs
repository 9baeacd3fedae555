//! From signals to evidence, from evidence to causes, from causes to a verdict. Pure: data in,
//! data out; the same input gives the same verdict.
//!
//! Decides what caused a run to end as it did, and says so only as far as scores of that height
//! were right on labelled cases. Refuses to know a scheduler, a file or a clock: the record comes
//! from `sched`, the hits from `logs`, the rules from `knowledge`.
//!
//! The rules hold for every family; none names a case. What a single line is worth stands in
//! [`mod@line`], what a stream says in [`mod@stream`], which of several ranks died first in
//! [`mod@ranks`], what of a log an earlier run wrote in [`mod@attempts`], whether a program got over an
//! error in [`mod@handled`] and on behind it in [`mod@progress`], whether a log without a record ended
//! well in [`mod@aftermath`], what the record says in [`mod@record`], how long it had been silent in [`mod@silence`], what speaks against a record of
//! success in [`mod@quietly`], why a job waits in [`mod@waiting`], why a submission was refused in
//! [`mod@submission`], and how the pieces become causes in [`mod@judge`].

mod aftermath;
mod attempts;
mod calibration;
mod check;
mod checkpoint;
mod handled;
mod judge;
mod line;
mod progress;
mod quietly;
mod ranks;
mod record;
mod rules;
mod silence;
mod stream;
mod submission;
#[cfg(test)]
mod tests;
mod waiting;

pub use aftermath::good_ending;
pub use check::check;
pub use checkpoint::last_checkpoint;
pub use judge::{decide, decide_text};
pub use rules::Rules;
pub use silence::{Silence, silence};

use std::collections::BTreeMap;

use crate::knowledge::{Check, Signal};
use crate::logs::Scan;
use crate::model::{Evidence, Job, Place, Role, StepId, Stream};

/// What the scan of one stream found, and whose stream it is.
#[derive(Debug, Clone, Copy)]
pub struct LogFacts<'a> {
    /// The file.
    pub path: &'a str,
    /// Which stream.
    pub stream: Stream,
    /// The step that wrote it, where it is known.
    pub step: Option<&'a StepId>,
    /// The task of that step, where each has a file of its own.
    pub task: Option<u64>,
    /// The scan, made with the literals of the same [`Rules`].
    pub scan: &'a Scan,
    /// Its last bytes, at most [`END`] of them, where no record tells how the run ended.
    pub end: Option<&'a [u8]>,
}

/// The most of a log's end that is looked at for how the run ended.
pub const END: usize = 1 << 20;

/// Everything that a verdict on a run rests on.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The scheduler's record, where there is one.
    pub job: Option<&'a Job>,
    /// The streams that could be read.
    pub logs: Vec<LogFacts<'a>>,
    /// Whether every stream that the job should have was read. A silent log is evidence only then.
    pub logs_complete: bool,
}

/// One piece of evidence with what it is worth.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Piece {
    /// The family, as an index into [`Rules::families`].
    family: usize,
    /// The signal's id.
    signal: String,
    /// What it is evidence of, after the rules for lines.
    role: Role,
    /// Its weight after everything that speaks for and against it, 0 to 1.
    score: f64,
    /// The stream (by its number) and the byte; `None` for the record.
    at: Option<(usize, u64)>,
    /// Whether the scheduler or the kernel says so: that is final wherever it stands.
    official: bool,
    /// Lines of work that follow it in its stream; where the run failed, up to the last trouble.
    work_after: u32,
    /// Lines of work that follow the last trouble of its stream, where the run failed.
    work_after_all: u32,
    /// Whether it concludes a traceback or a trace follows it.
    traced: bool,
    /// Whether it may come from a script that only looked whether something is there.
    probe: bool,
    /// Whether it is a result that was not reached, whatever its program's exit says.
    result: bool,
    /// The check that makes a root of it where it supports the family.
    with: Option<Check>,
    /// Whether the lines around it say that the program got over it.
    overcome: bool,
    /// Where it stands and what it says.
    evidence: Evidence,
    /// The user's own innermost frame, where it concludes a traceback.
    frame: Option<Evidence>,
    /// What its pattern captured.
    captures: BTreeMap<String, String>,
}

impl Piece {
    /// The rank that says it, where that is known.
    fn rank(&self) -> Option<u64> {
        match self.evidence.place {
            Place::Log { rank, .. } => rank,
            Place::Record { .. } => None,
        }
    }

    /// Lines of work that follow it in its stream, whatever followed the last trouble.
    fn work_in_all(&self) -> u32 {
        // What a script only looked for keeps them all.
        if self.probe { self.work_after } else { self.work_after + self.work_after_all }
    }

    /// What the scheduler itself says, in a field of the record or in a message of its own.
    fn recorded(family: usize, signal: &Signal, role: Role, evidence: Evidence) -> Self {
        Self {
            family,
            signal: signal.id.clone(),
            role,
            score: signal.weight,
            at: None,
            official: true,
            work_after: 0,
            work_after_all: 0,
            traced: false,
            probe: false,
            result: signal.may_exit_zero,
            with: signal.with,
            overcome: false,
            evidence,
            frame: None,
            captures: BTreeMap::new(),
        }
    }
}
