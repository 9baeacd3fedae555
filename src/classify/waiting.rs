//! Why a job waits: the one reason that the scheduler gives for it.
//!
//! A signal of a reason is a whole word that the reason begins with, or a pattern over the structure
//! of its name: what follows (`ReqNodeNotAvail, UnavailableNodes:g03`) is detail. No other field is
//! looked at: a record says `QOS=normal` of every job.

use super::Piece;
use super::record::fact;
use super::rules::{Match, Rules};
use crate::knowledge::SignalSource;
use crate::model::Job;

/// The pieces that a job's reason is.
pub(super) fn pieces(rules: &Rules, job: &Job) -> Vec<Piece> {
    let Some(reason) = job.reason.as_deref() else { return Vec::new() };
    // `scontrol` joins the words of a sentence by underscores.
    let sentence = reason.replace('_', " ");
    let other = (sentence != reason).then_some(sentence.as_str());
    [Some(reason), other]
        .into_iter()
        .flatten()
        .flat_map(|told| {
            let found = rules.matches_from(SignalSource::Reason, told);
            found.filter(move |found| says(told, found))
        })
        .map(|found| {
            let (id, role) = (&found.signal.id, found.signal.role);
            let evidence = fact(id, role, "Reason", None, reason);
            let captures = found.captures;
            Piece { captures, ..Piece::recorded(found.family, found.signal, role, evidence) }
        })
        .collect()
}

/// Whether the reason begins with the literal, as a whole word where no pattern narrows it.
fn says(reason: &str, found: &Match<'_>) -> bool {
    let end = found.at + found.signal.literal.as_deref().map_or(0, str::len);
    let details = &reason[end..];
    let whole = details.is_empty() || details.starts_with([',', ' ']);
    found.at == 0 && (found.signal.regex.is_some() || whole)
}
