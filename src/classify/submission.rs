//! What a submission command printed: the lines that say why it refused.
//!
//! They come without a job, so there is no record to weigh them against. A line counts by its
//! manner of speaking, as a line of a log does; a refusal that is only put off ("retrying") is none.

use super::handled::OVERCOME;
use super::line::{Manner, manner};
use super::rules::Rules;
use super::{LogFacts, Piece};
use crate::knowledge::SignalSource;
use crate::model::{Evidence, Place, Role};
use crate::text::printable;

/// The pieces in a text, which is also the stream with this number.
pub(super) fn pieces(rules: &Rules, number: usize, log: &LogFacts<'_>, text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut offset = 0;
    for (number_of_line, raw) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let line = raw.strip_suffix(b"\n").unwrap_or(raw);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let length = line.len() as u64;
        // Before all else: of a long text hardly any line is.
        if !rules.may_refuse(line) {
            offset += raw.len() as u64;
            continue;
        }
        let line = printable(line);
        for found in rules.matches_from(SignalSource::Submit, &line) {
            let (role, worth) = match (manner(&line, found.at), found.signal.role) {
                (Manner::NoEvidence, _) | (_, Role::Noise) => continue,
                (Manner::Harmless, Role::Root) => (Role::Confirm, 0.6),
                (_, role) => (role, 1.0),
            };
            let taken = next(text, offset + raw.len() as u64).any(|text| is_taken(&text));
            let worth = if taken { worth * OVERCOME } else { worth };
            let place = Place::Log {
                path: log.path.to_owned(),
                line: Some(number_of_line),
                offset,
                length,
                rank: None,
                partial: false,
            };
            let signal = found.signal.id.clone();
            let evidence = Evidence { signal, role, place, text: line.clone() };
            let recorded = Piece::recorded(found.family, found.signal, role, evidence);
            pieces.push(Piece {
                score: recorded.score * worth,
                at: Some((number, offset)),
                captures: found.captures,
                ..recorded
            });
        }
        offset += raw.len() as u64;
    }
    pieces
}

/// Whether a submission was taken, in Slurm's words.
fn is_taken(text: &str) -> bool {
    text.contains("Submitted batch job ")
}

/// The lines that follow an offset.
fn next(text: &[u8], offset: u64) -> impl Iterator<Item = String> {
    const NEXT: usize = 2;
    let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..));
    let lines = rest.unwrap_or_default().split(|byte| *byte == b'\n');
    lines.filter(|line| !line.trim_ascii().is_empty()).take(NEXT).map(printable)
}
