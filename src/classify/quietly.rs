//! What the log of a run that the scheduler calls completed says all the same.
//!
//! Programs print frightening words and succeed, so words alone say nothing here. Five things do: an
//! uncaught exception as the very last thing in a log, the scheduler's own count of processes that were
//! killed for their memory, its refusal to make a step, a shell's report of a crash, and a result of a family whose programs are
//! known to end with 0 without having reached it. What the rest of the log says was got over, or reached
//! later, is none.

use super::aftermath::says_all_is_done;
use super::line::{goes_on, is_low_level};
use super::rules::Rules;
use super::stream::listen;
use super::{Facts, LogFacts, Piece, aftermath};
use crate::knowledge::Check;
use crate::logs::{Block, BlockKind};
use crate::model::Role;

/// Lines that may follow the exception: a shell's own last words.
const BEHIND: u32 = 2;
/// Below this a result is not told for sure.
const SURE: f64 = 0.6;

/// The pieces that speak against the record, each in its stream.
pub(super) fn pieces(rules: &Rules, facts: &Facts<'_>) -> Vec<Piece> {
    let mut found = Vec::new();
    for (number, log) in facts.logs.iter().enumerate() {
        let mut pieces = listen(rules, number, log, facts.job).pieces;
        let before: Vec<f64> = pieces.iter().map(|piece| piece.score).collect();
        aftermath::weigh(log, &mut pieces);
        for (piece, before) in pieces.into_iter().zip(before) {
            if piece.official && (is_kill(rules, &piece) || is_lost_step(&piece)) {
                found.push(piece);
                continue;
            }
            let root = piece.role == Role::Root && !piece.official;
            let overcome = piece.score < before;
            // Such programs report that they are done, whatever came out.
            if root && is_result(log, &piece, before) {
                found.push(Piece { score: before, ..piece });
            } else if root && !overcome && (ends_in(log, &piece) || crashed(rules, log, &piece)) {
                found.push(piece);
            }
        }
    }
    found
}

/// Whether the scheduler counts processes that it had killed: it does not err, and the job's own script
/// may well have gone on without them.
fn is_kill(rules: &Rules, piece: &Piece) -> bool {
    let memory = rules.families()[piece.family].checks.contains(&Check::MemoryNearLimit);
    piece.role == Role::Root && memory && piece.captures.contains_key("events")
}

/// Whether a step was never made, as `srun` says itself, and nothing was done behind it: its script
/// did not ask how it went.
fn is_lost_step(piece: &Piece) -> bool {
    const LOST: [&str; 2] = ["Unable to create step", "Unable to confirm allocation"];
    let text = &piece.evidence.text;
    piece.role == Role::Root
        && LOST.iter().any(|words| text.contains(words))
        && !goes_on(text)
        && !piece.overcome
        && piece.work_in_all() <= BEHIND
}

/// Whether the piece is the shell's own report that a program crashed, near the end, of a program that
/// had not said that its work was done: some only crash while they leave.
fn crashed(rules: &Rules, log: &LogFacts<'_>, piece: &Piece) -> bool {
    /// Lines that a script may write about it.
    const ABOUT: u32 = 6;
    /// Lines before it in which the program would have said it.
    const BEFORE: usize = 8;
    let Some((_, offset)) = piece.at else { return false };
    let before = log.scan.tail.iter().rev().filter(|line| line.offset < offset).take(BEFORE);
    rules.families()[piece.family].crash
        && piece.captures.contains_key("program")
        && piece.work_in_all() <= ABOUT
        && !before.into_iter().any(|line| says_all_is_done(&line.text))
}

/// Whether the piece is the exception that a log ends in.
fn ends_in(log: &LogFacts<'_>, piece: &Piece) -> bool {
    let Some((_, offset)) = piece.at else { return false };
    log.scan.blocks.iter().any(|block| {
        block.kind == BlockKind::PythonTraceback
            && !block.ignored
            && block.leads_to.is_none()
            && !is_logged(log, block)
            && !block.heading.as_deref().is_some_and(is_background)
            && block.lines_after <= BEHIND
            && block.terminal.as_ref().is_some_and(|line| line.offset == offset)
    }) && piece.work_after <= BEHIND
}

/// Whether a line says that what follows is the end of a thread, or of a process that the program
/// started: it goes on without them.
fn is_background(text: &str) -> bool {
    text.starts_with("Exception in thread ") || text.starts_with("Process ") && text.ends_with(':')
}

/// Whether a logger wrote the traceback, behind a line with its level: then the exception was caught.
/// Another rank may write between the two.
fn is_logged(log: &LogFacts<'_>, block: &Block) -> bool {
    const BEFORE: usize = 2;
    let before = log.scan.tail.iter().rev().filter(|line| line.offset < block.first.offset);
    // What is registered for the end runs when the work is done: its exceptions change no result.
    let late = |text: &str| text.starts_with("Error in atexit._run_exitfuncs");
    let logged = |text: &str| is_low_level(text) || text.contains("ERROR") || late(text);
    before.take(BEFORE).any(|line| logged(&line.text))
}

/// Whether the piece is a result that was not reached, and nothing later says that it was.
fn is_result(log: &LogFacts<'_>, piece: &Piece, score: f64) -> bool {
    const REACHED: [&str; 3] = ["converged", "convergence has been achieved", "required accuracy"];
    let Some((_, offset)) = piece.at else { return false };
    let later = log.scan.tail.iter().filter(|line| line.offset > offset);
    let mut later = later.map(|line| line.text.to_lowercase());
    let reached =
        |text: String| REACHED.iter().any(|words| text.contains(words)) && !text.contains("not ");
    piece.result && score >= SURE && !later.any(reached)
}
