//! Whether a program got on with its work behind an error, where the record says that the run failed
//! or ran into its limit.
//!
//! Decides by what only a program that works writes: a line that says that it goes on, a bar of
//! progress, or the same line with other numbers. A rank that still waits writes none of these. Knows
//! only the last lines of a stream, and no family by name.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{goes_on, is_official, is_trouble, names_exception};
use super::rules::Rules;
use super::{LogFacts, Piece};
use crate::logs::Line;
use crate::model::{Job, Role};

/// A line of fewer letters is not known again.
const WORDS: usize = 3;
/// What an error is still worth behind which the program went on with its work.
const LEFT_BEHIND: f64 = 0.55;
/// Lines that may follow what ended a run: the words of a shell and of a launcher.
const BEHIND: u32 = 2;
/// So many counted steps are work that goes on, in a run that failed.
const STEPS: usize = 5;

/// Of a run that worked until its limit: an error behind which it got on did not end it.
pub(super) fn weigh_until_limit(log: &LogFacts<'_>, pieces: &mut [Piece]) {
    for piece in roots(pieces) {
        if moved_on(log, piece, u64::MAX, true) {
            piece.score *= LEFT_BEHIND;
        }
    }
}

/// Of a run that failed: an error behind which it got on did not end it, where something else did:
/// an uncaught exception, or a fatal error that no rule knows, as the last thing that it wrote, or a
/// signal that programs are only sent for a fault of their own.
pub(super) fn weigh_until_failure(
    rules: &Rules,
    job: &Job,
    log: &LogFacts<'_>,
    pieces: &mut [Piece],
) {
    let raised = raised_at(log);
    let end = if is_fault(job) { Some(u64::MAX) } else { raised.or_else(|| fatal_at(log)) };
    let Some(end) = end else { return };
    for piece in roots(pieces) {
        let before = piece.at.is_some_and(|(_, offset)| offset < end);
        let ended = end == u64::MAX && may_end_by_signal(rules, piece.family);
        // A script that only looked whether something is there got over it.
        if before && !ended && (piece.probe || moved_on(log, piece, end, false)) {
            piece.score *= LEFT_BEHIND;
        }
    }
}

/// Where the traceback begins that ends a log.
fn raised_at(log: &LogFacts<'_>) -> Option<u64> {
    let last = log.scan.blocks.iter().rev().find(|block| block.terminal.is_some());
    let last = last.filter(|block| !block.ignored && block.lines_after <= BEHIND)?;
    Some(last.first.offset)
}

/// Where the fatal error stands that ends a log: an exception, or one that no rule knows.
fn fatal_at(log: &LogFacts<'_>) -> Option<u64> {
    const LEVELS: [&str; 6] = ["FATAL", "Fatal", "fatal", "PANIC", "panic", "ERROR STOP"];
    let own = log.scan.tail.iter().rev().filter(|line| !is_official(&line.text));
    let fatal = |line: &&Line| {
        let level = LEVELS.iter().any(|level| line.text.trim_start().starts_with(level));
        level && !is_told(log, line) || names_exception(&line.text)
    };
    let last: Vec<&Line> = own.take(BEHIND as usize + 1).collect();
    // What the interpreter ignores ends nothing.
    if last.iter().any(|line| line.text.starts_with("Exception ignored")) {
        return None;
    }
    last.into_iter().find(fatal).map(|line| line.offset)
}

/// Whether a run ended by a signal that no launcher and no other rank sends: of an instruction, an
/// address, a calculation. Shells add 128 to it.
fn is_fault(job: &Job) -> bool {
    const FAULTS: [u32; 4] = [4, 7, 8, 11];
    let exit = job.exit.get();
    exit.is_some_and(|exit| {
        FAULTS
            .iter()
            .any(|&fault| exit.signal == fault || exit.signal == 0 && exit.code == 128 + fault)
    })
}

/// Whether a family is known by the signal that a run ends by.
fn may_end_by_signal(rules: &Rules, family: usize) -> bool {
    let mut patterns = rules.families()[family].signals.iter().filter_map(|s| s.when.as_ref());
    patterns.any(|when| when.exit.is_some())
}

fn is_told(log: &LogFacts<'_>, line: &Line) -> bool {
    log.scan.hits.iter().any(|hit| hit.line.offset == line.offset)
}

fn roots(pieces: &mut [Piece]) -> impl Iterator<Item = &mut Piece> {
    pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official)
}

/// Whether lines of the same rank between a piece and an offset show work that goes on; `counting`
/// takes lines for it that differ in their numbers only, as those of dying programs may.
fn moved_on(log: &LogFacts<'_>, piece: &Piece, end: u64, counting: bool) -> bool {
    let Some((_, offset)) = piece.at else { return false };
    let rank = piece.rank();
    let tail = log.scan.tail.iter();
    let between = tail
        .filter(|line| line.offset > offset && line.offset < end)
        .filter(|line| line.rank.is_none() || line.rank == rank || counting && rank.is_none())
        .filter(|line| !is_official(&line.text) && !is_told(log, line))
        .filter(|line| !line.text.starts_with("Exception ignored"));
    let mut forms: BTreeMap<String, &str> = BTreeMap::new();
    let mut steps: BTreeSet<&str> = BTreeSet::new();
    for line in between {
        let text = line.text.as_str();
        if goes_on(text) || is_bar(text, counting) {
            return true;
        }
        if is_step(text) && steps.insert(text) && steps.len() >= STEPS {
            return true;
        }
        let parts: Vec<&str> =
            text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
        let form = parts.join("0");
        // A time stamp alone is no line that is told again.
        let words = form.chars().filter(|c| c.is_alphabetic()).count();
        if counting
            && words >= WORDS
            && form != text
            && forms.insert(form, text).is_some_and(|other| other != text)
        {
            return true;
        }
    }
    false
}

/// `step 12 loss 0.3`: what only work counts.
fn is_step(text: &str) -> bool {
    const WORDS: [&str; 5] = ["step", "epoch", "iter", "loss", "batch "];
    let lower = text.to_lowercase();
    text.bytes().any(|byte| byte.is_ascii_digit())
        && WORDS.iter().any(|word| lower.contains(word))
        && !is_trouble(text)
}

/// `Epoch 0:  12%|###   | 12/100`; where any bar will not do, for work that dies may still draw, one
/// that was filled.
fn is_bar(text: &str, any: bool) -> bool {
    let Some((before, _)) = text.split_once("%|") else { return false };
    before.ends_with("100") || (any && before.ends_with(|c: char| c.is_ascii_digit()))
}
