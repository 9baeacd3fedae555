//! Whether a program got on with its work behind an error, where the record says that the run failed
//! or ran into its limit.
//!
//! Decides by what only a program that works writes: a line that says that it goes on, a bar of
//! progress, or the same line with other numbers. A rank that still waits writes none of these. Knows
//! only the last lines of a stream, and no family by name.

use std::collections::BTreeMap;

use super::line::{goes_on, is_official};
use super::{LogFacts, Piece};
use crate::logs::Line;
use crate::model::Role;

/// A line of fewer letters is not known again.
const WORDS: usize = 3;
/// What an error is still worth behind which the program went on with its work.
const LEFT_BEHIND: f64 = 0.55;

/// Of a run that worked until its limit: an error behind which it got on did not end it.
pub(super) fn weigh_until_limit(log: &LogFacts<'_>, pieces: &mut [Piece]) {
    for piece in roots(pieces) {
        if moved_on(log, piece, u64::MAX, true) {
            piece.score *= LEFT_BEHIND;
        }
    }
}

/// Of a run that failed: an error that no traceback carried, and behind which it got on until an
/// uncaught exception ended the log, was handled.
pub(super) fn weigh_until_exception(log: &LogFacts<'_>, pieces: &mut [Piece]) {
    /// Lines that may follow the exception: the words of a shell and of a launcher.
    const BEHIND: u32 = 2;
    let last = log.scan.blocks.iter().rev().find(|block| block.terminal.is_some());
    let Some(last) = last.filter(|block| !block.ignored && block.lines_after <= BEHIND) else {
        return;
    };
    let end = last.first.offset;
    for piece in roots(pieces).filter(|piece| !piece.traced) {
        if piece.at.is_some_and(|(_, offset)| offset < end) && moved_on(log, piece, end, false) {
            piece.score *= LEFT_BEHIND;
        }
    }
}

fn roots(pieces: &mut [Piece]) -> impl Iterator<Item = &mut Piece> {
    pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official)
}

/// Whether lines of the same rank between a piece and an offset show work that goes on; `counting`
/// takes lines for it that differ in their numbers only, as those of dying programs may.
fn moved_on(log: &LogFacts<'_>, piece: &Piece, end: u64, counting: bool) -> bool {
    let Some((_, offset)) = piece.at else { return false };
    let told = |line: &Line| log.scan.hits.iter().any(|hit| hit.line.offset == line.offset);
    let rank = piece.rank();
    let tail = log.scan.tail.iter();
    let between = tail
        .filter(|line| line.offset > offset && line.offset < end)
        .filter(|line| rank.is_none() || line.rank.is_none() || line.rank == rank)
        .filter(|line| !is_official(&line.text) && !told(line));
    let mut forms: BTreeMap<String, &str> = BTreeMap::new();
    for line in between {
        let text = line.text.as_str();
        if goes_on(text) || is_bar(text, counting) {
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

/// `Epoch 0:  12%|###   | 12/100`; where any bar will not do, for work that dies may still draw, one
/// that was filled.
fn is_bar(text: &str, any: bool) -> bool {
    let Some((before, _)) = text.split_once("%|") else { return false };
    before.ends_with("100") || (any && before.ends_with(|c: char| c.is_ascii_digit()))
}
