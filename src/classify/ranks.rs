//! Which rank died first, where every rank of a step has a file of its own.
//!
//! Ranks write no common clock, but each file was last written about when its rank ended. A rank
//! that fails well after another one had failed for good most likely fails because of that. Knows
//! no launcher and no family.

use jiff::{SignedDuration, Timestamp};

use super::{LogFacts, Piece};
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
pub(super) fn weigh_later(logs: &[&LogFacts<'_>], pieces: &mut [Piece]) {
    let deaths: Vec<Option<Timestamp>> = (0..logs.len())
        .map(|number| {
            let fatal = |piece: &Piece| {
                piece.at.is_some_and(|at| at.0 == number)
                    && piece.role == Role::Root
                    && piece.score >= 0.6
                    && piece.work_after <= 3
            };
            pieces.iter().any(fatal).then(|| logs[number].task.and(logs[number].scan.modified))?
        })
        .collect();
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official) {
        let Some((number, _)) = piece.at else { continue };
        let Some(own) = deaths[number] else { continue };
        let earlier = logs.iter().zip(&deaths).any(|(other, death)| {
            beside(logs[number], other)
                && death.is_some_and(|death| own.duration_since(death) >= APART)
        });
        if earlier {
            piece.score *= FOLLOWED;
        }
    }
}

/// Whether two streams are those of ranks of one step.
fn beside(one: &LogFacts<'_>, other: &LogFacts<'_>) -> bool {
    one.task.is_some() && other.task.is_some() && one.step == other.step
}
