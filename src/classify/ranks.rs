//! Which rank died first, where every rank of a step has a file of its own.
//!
//! Ranks write no common clock, but each file was last written about when its rank ended. A rank
//! that fails well after another one had failed for good most likely fails because of that. Knows
//! no launcher and no family.

use jiff::{SignedDuration, Timestamp};

use super::{LogFacts, Piece, Rules};
use crate::logs::Line;
use crate::model::Role;

/// Ranks that end within this time of each other tell no order: files are written a little late,
/// and servers keep times to the second.
const APART: SignedDuration = SignedDuration::from_secs(1);
/// What a rank that only followed is still worth: not enough to be the cause by itself.
const FOLLOWED: f64 = 0.55;

/// The streams, those of the ranks of one step in the order in which they fell silent.
pub(super) fn in_order<'f, 'a>(logs: &'f [LogFacts<'a>]) -> Vec<&'f LogFacts<'a>> {
    let place = |log: &LogFacts<'_>, own: usize| {
        let first = logs.iter().position(|other| log.task.is_some() && beside(log, other));
        (first.unwrap_or(own), log.task.and(log.scan.modified))
    };
    let mut ordered: Vec<_> =
        logs.iter().enumerate().map(|(own, log)| (place(log, own), log)).collect();
    ordered.sort_by_key(|(place, _)| *place);
    ordered.into_iter().map(|(_, log)| log).collect()
}

/// Makes roots of ranks count less that failed after another rank of their step had.
pub(super) fn weigh_later(rules: &Rules, logs: &[&LogFacts<'_>], pieces: &mut [Piece]) {
    let fatal: Vec<Vec<usize>> = (0..logs.len())
        .map(|number| {
            let fatal = |piece: &&Piece| {
                piece.at.is_some_and(|at| at.0 == number)
                    && piece.role == Role::Root
                    && piece.score >= 0.6
                    && piece.work_after <= 3
            };
            pieces.iter().filter(fatal).map(|piece| piece.family).collect()
        })
        .collect();
    let deaths: Vec<Option<Timestamp>> = fatal
        .iter()
        .zip(logs)
        .map(|(fatal, log)| (!fatal.is_empty()).then(|| log.task.and(log.scan.modified))?)
        .collect();
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official) {
        let Some((number, _)) = piece.at else { continue };
        let Some(own) = deaths[number] else { continue };
        // Clocks differ: what would be explained by this one does not come before it.
        let explains =
            |fatal: &[usize]| fatal.iter().any(|&family| !rules.yields(family, piece.family));
        let earlier = logs.iter().zip(&deaths).zip(&fatal).any(|((other, death), fatal)| {
            beside(logs[number], other)
                && explains(fatal)
                && death.is_some_and(|death| own.duration_since(death) >= APART)
        });
        if earlier {
            piece.score *= FOLLOWED;
        }
    }
}

/// A launcher that waits for its ranks knows which one ended first. Roots of others count less, if
/// that one says anything that they do not explain.
pub(super) fn weigh_named(rules: &Rules, logs: &[&LogFacts<'_>], pieces: &mut [Piece]) {
    let Some(first) = logs.iter().find_map(|log| named(log)) else { return };
    let own = pieces.iter().filter(|piece| piece.role == Role::Root && piece.rank() == Some(first));
    let own: Vec<usize> = own.map(|piece| piece.family).collect();
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official) {
        let other = piece.rank().is_some_and(|rank| rank != first);
        if other && own.iter().any(|&family| !rules.yields(family, piece.family)) {
            piece.score *= FOLLOWED;
        }
    }
}

/// The rank in `Root Cause (first observed failure)`, with which torchrun ends its summary.
fn named(log: &LogFacts<'_>) -> Option<u64> {
    let ends = [&log.scan.last_told, &log.scan.tail];
    ends.into_iter().find_map(|lines| named_in(lines))
}

fn named_in(lines: &[Line]) -> Option<u64> {
    let mut tail = lines.iter().map(|line| line.text.as_str());
    tail.by_ref().find(|text| text.contains("Root Cause (first observed failure)"))?;
    let rank = tail.take(8).find_map(|text| {
        let (before, value) = text.split_once(':')?;
        before.trim_end().ends_with("rank").then(|| value.trim_start())
    })?;
    let digits = rank.bytes().take_while(u8::is_ascii_digit).count();
    rank[..digits].parse().ok()
}

/// Whether two streams are those of ranks of one step.
fn beside(one: &LogFacts<'_>, other: &LogFacts<'_>) -> bool {
    one.task.is_some() && other.task.is_some() && one.step == other.step
}
