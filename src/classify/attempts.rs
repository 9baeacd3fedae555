//! Where in a log that several runs of a job wrote one after the other the last one begins: a job
//! that is requeued, and one whose script appends, keep what was written before.
//!
//! What the scheduler said at the end of an earlier run is no cause of this one's end, nor is what
//! stands before it. An end is an earlier one when the scheduler told a later one; when the record
//! names another end than it does, and the program wrote on; or when the program wrote on for long.
//! Words of steps end no run. Knows no family.

use jiff::SignedDuration;

use super::line::is_official;
use super::{LogFacts, Piece};
use crate::logs::{Line, cancelled_at};
use crate::model::{BaseState, Job};

/// What is left of evidence from an earlier run.
const EARLIER: f64 = 0.5;
/// One end is told by every node within this time.
const APART: SignedDuration = SignedDuration::from_secs(60);
/// A program that is being ended may write so many lines about it.
const LAST_WORDS: usize = 10;

/// An end that the scheduler told.
struct End<'a> {
    line: &'a Line,
    /// The state that it leaves a run in, where it says why.
    state: Option<BaseState>,
    /// Lines that programs wrote after it, as far as they are kept.
    after: usize,
    /// Whether the first of them says that work is taken up again.
    resumed: bool,
}

/// The byte up to which a log is of earlier runs; `None` where it is of one.
pub(super) fn boundary(log: &LogFacts<'_>, job: Option<&Job>) -> Option<u64> {
    let hits = log.scan.hits.iter().map(|hit| &hit.line);
    let mut ends: Vec<End<'_>> =
        hits.chain(&log.scan.tail).filter_map(|line| end(log, line)).collect();
    ends.sort_by_key(|end| end.line.offset);
    let latest = ends.iter().filter_map(|end| cancelled_at(&end.line.text)).max();
    let raised = raised_last(log);
    let earlier = ends.iter().rev().find(|end| {
        let another = |latest| {
            cancelled_at(&end.line.text).is_some_and(|at| latest >= at.saturating_add(APART))
        };
        latest.is_some_and(another)
            || is_contradicted(end, job, raised.is_some_and(|at| at > end.line.offset))
    });
    earlier.map(|end| end.line.offset)
}

/// Makes the pieces up to the boundary count less.
pub(super) fn weigh(boundary: u64, pieces: &mut [Piece]) {
    let earlier = |piece: &&mut Piece| piece.at.is_some_and(|(_, offset)| offset <= boundary);
    for piece in pieces.iter_mut().filter(earlier) {
        piece.score *= EARLIER;
    }
}

/// `slurmstepd: error: *** JOB 67 ON c01 CANCELLED AT 2026-11-30T20:34:25 DUE TO TIME LIMIT ***`
fn end<'a>(log: &LogFacts<'a>, line: &'a Line) -> Option<End<'a>> {
    let (_, said) = line.text.split_once("*** JOB ")?;
    if !is_official(&line.text) || !said.contains("CANCELLED AT ") {
        return None;
    }
    let why = said.split_once("DUE TO ").map_or("", |(_, why)| why);
    let state = [
        ("TIME LIMIT", BaseState::Timeout),
        ("NODE FAILURE", BaseState::NodeFail),
        ("PREEMPTION", BaseState::Preempted),
        ("JOB REQUEUE", BaseState::Preempted),
    ];
    let state = state.into_iter().find(|(words, _)| why.starts_with(words));
    let tail = log.scan.tail.iter();
    let after: Vec<&Line> =
        tail.filter(|other| other.offset > line.offset && !is_official(&other.text)).collect();
    let resumed = |line: &&Line| {
        let text = line.text.to_lowercase();
        ["resum", "restart", "restor"].iter().any(|word| text.contains(word))
    };
    Some(End {
        line,
        state: state.map(|(_, state)| state),
        after: after.len(),
        resumed: after.first().is_some_and(resumed),
    })
}

/// Where the traceback begins that ends a log, if it is none of a program that is told to end.
fn raised_last(log: &LogFacts<'_>) -> Option<u64> {
    const TOLD: [&str; 4] = ["Interrupt", "SIG", "SystemExit", "ignal"];
    let last = log.scan.blocks.iter().rev().find(|block| block.terminal.is_some())?;
    let text = &last.terminal.as_ref()?.text;
    (!TOLD.iter().any(|words| text.contains(words))).then_some(last.first.offset)
}

/// Whether what came after an end shows that it was not that of this run; `raised` says that an
/// exception did.
fn is_contradicted(end: &End<'_>, job: Option<&Job>, raised: bool) -> bool {
    let went_on = end.after > LAST_WORDS || end.resumed || raised;
    let Some(named) = end.state else { return false };
    match job.map(|job| job.state.base) {
        Some(state) if state == named => false,
        // A preempted job has time to end by itself, or is cancelled at the end of that time.
        None | Some(BaseState::Running) => went_on,
        Some(_) if named == BaseState::Preempted => went_on,
        Some(_) => end.after > 0,
    }
}
