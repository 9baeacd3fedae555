//! What one stream says: its hits as pieces of evidence, weighed by where they stand.
//!
//! An error after which work goes on was handled; the first unhandled one explains those after
//! it; what the scheduler says late is final. Knows no other stream and no record.

use std::collections::BTreeSet;

use super::handled::{OVERCOME, WENT_ON, is_overcome};
use super::line::{Manner, manner, names_exception};
use super::rules::{Match, Rules};
use super::{LogFacts, Piece, attempts, progress};
use crate::logs::{Block, BlockKind, Frame, Hit, Line, Scan};
use crate::model::{BaseState, Evidence, Job, Place, Role};

/// What a stream says.
pub(super) struct Voice {
    /// Every piece, in order of appearance.
    pub(super) pieces: Vec<Piece>,
    /// Conclusions of tracebacks that no root or cascade signal explains.
    pub(super) unexplained: Vec<Evidence>,
}

/// Reads the hits of the stream with this number; `job` is the record, where there is one.
pub(super) fn listen(rules: &Rules, number: usize, log: &LogFacts<'_>, job: Option<&Job>) -> Voice {
    // Of other ends the record itself says why.
    let failed = job.filter(|job| job.state.base == BaseState::Failed);
    let mut pieces = Vec::new();
    let silenced = silenced(rules, log.scan);
    for hit in &log.scan.hits {
        let block = hit.block.and_then(|index| log.scan.blocks.get(index));
        if silenced.contains(&hit.line.offset) {
            continue;
        }
        for found in rules.matches(hit.literal, &hit.line.text) {
            let fallback = rules.families()[found.family].fallback;
            pieces.extend(piece(number, log, hit, block, found, fallback));
        }
    }
    pieces.sort_by_key(|piece| piece.at);

    // Other programs write into the end of a traceback; so the last lines are looked at as well.
    let blocks = || log.scan.blocks.iter();
    let terminals = blocks().filter_map(|block| block.terminal.as_ref());
    let ignored =
        blocks().filter(|block| block.ignored).filter_map(|block| block.terminal.as_ref());
    let ignored: Vec<u64> = ignored.map(|line| line.offset).collect();
    let mut unexplained: Vec<&Line> = terminals
        .chain(&log.scan.tail)
        .chain(&log.scan.last_told)
        .filter(|line| names_exception(&line.text))
        .filter(|line| !silenced.contains(&line.offset) && !ignored.contains(&line.offset))
        .filter(|line| {
            let here = Some((number, line.offset));
            !pieces.iter().any(|piece| piece.at == here && piece.role != Role::Confirm)
        })
        .collect();
    unexplained.sort_by_key(|line| line.offset);
    unexplained.dedup_by_key(|line| line.offset);
    if let Some(boundary) = attempts::boundary(log, job) {
        attempts::weigh(boundary, &mut pieces);
        unexplained.retain(|line| line.offset > boundary);
    }
    if failed.is_some() {
        from_the_last(log.scan, &mut pieces, &unexplained);
    }
    weigh_handled(&mut pieces, job.is_some());
    if let Some(job) = failed {
        progress::weigh_until_failure(rules, job, log, &mut pieces);
    }
    chain(log.scan, &mut pieces);
    order(rules, &mut pieces, &unexplained);
    let unexplained = unexplained
        .into_iter()
        .map(|line| evidence(log, line, "traceback".to_owned(), Role::Confirm))
        .collect();
    Voice { pieces, unexplained }
}

/// Where lines begin that a signal calls noise: whatever else they bear, they are no evidence.
pub(super) fn silenced(rules: &Rules, scan: &Scan) -> BTreeSet<u64> {
    let noise = |hit: &&Hit| {
        rules
            .matches(hit.literal, &hit.line.text)
            .iter()
            .any(|found| found.signal.role == Role::Noise)
    };
    scan.hits.iter().filter(noise).map(|hit| hit.line.offset).collect()
}

/// The piece that a hit is for one of its signals, if it is any.
fn piece(
    number: usize,
    log: &LogFacts<'_>,
    hit: &Hit,
    block: Option<&Block>,
    found: Match<'_>,
    fallback: bool,
) -> Option<Piece> {
    let line = &hit.line;
    let manner = manner(&line.text, found.at);
    let official = manner == Manner::Official;
    let traceback = block.filter(|block| block.kind == BlockKind::PythonTraceback);
    let concludes = traceback
        .and_then(|block| block.terminal.as_ref())
        .is_some_and(|terminal| terminal.offset == line.offset);
    // The indented lines of a traceback quote the source; a message is not among them.
    if traceback.is_some() && !concludes && !official && line.text.starts_with(' ') {
        return None;
    }
    let manner = match traceback {
        Some(block) if block.ignored && !official => Manner::Harmless,
        _ => manner,
    };
    let role = match (manner, found.signal.role) {
        (Manner::NoEvidence, _) | (_, Role::Noise) => return None,
        (Manner::Harmless, Role::Root) => Role::Confirm,
        (_, role) => role,
    };
    let mut score = found.signal.weight;
    let raised = || raised_by_user(traceback.filter(|_| concludes));
    if fallback && !official && role == Role::Root && !raised() {
        score *= 0.85;
    }
    if manner == Manner::Harmless {
        score *= 0.6;
    }
    let frame = traceback.filter(|_| concludes).and_then(|block| own_frame(log, block));
    Some(Piece {
        family: found.family,
        signal: found.signal.id.clone(),
        role,
        score,
        at: Some((number, line.offset)),
        official,
        // The lines of failures themselves are no work.
        work_after: hit.other_lines_after,
        work_after_all: 0,
        traced: concludes || hit.traced,
        probe: found.signal.probe,
        result: found.signal.may_exit_zero,
        with: found.signal.with,
        overcome: is_overcome(hit, traceback.filter(|_| concludes)),
        evidence: evidence(log, line, found.signal.id.clone(), role),
        frame,
        captures: found.captures,
    })
}

/// Counts the work after each piece from the last trouble of the stream on. What failed left its
/// reason somewhere: what is written after the last trouble, by a script that goes on or a rank that
/// is well, tells no trouble from another. A script that only looked whether something is there got
/// over it.
fn from_the_last(scan: &Scan, pieces: &mut [Piece], unexplained: &[&Line]) {
    let last = unexplained.last().map_or(0, |line| line.offset);
    let concluded = scan
        .blocks
        .iter()
        .find(|block| block.terminal.as_ref().is_some_and(|line| line.offset == last));
    let told = pieces.iter().map(|piece| piece.work_after);
    let least = told.chain(concluded.map(|block| block.lines_after)).min().unwrap_or(0);
    for piece in pieces {
        piece.work_after_all = least;
        if !piece.probe {
            piece.work_after -= least;
        }
    }
}

/// An error after which work goes on was handled. Where a record knows that the run did not end well,
/// that a program says so is believed when it did go on.
fn weigh_handled(pieces: &mut [Piece], recorded: bool) {
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root) {
        if recorded && piece.overcome && piece.work_in_all() >= WENT_ON {
            piece.score *= OVERCOME;
        }
        if !piece.official {
            piece.score *= handled(piece.traced, piece.work_after);
        }
    }
}

/// How much an error is still worth when work goes on after it. A traceback is printed when
/// nothing caught the exception, or by a logger that did: it loses less than a bare line.
fn handled(traced: bool, work_after: u32) -> f64 {
    match (traced, work_after) {
        (_, 0..=3) => 1.0,
        (true, 4..=200) => 0.95,
        (true, _) => 0.8,
        (false, 4..=10) => 0.9,
        (false, 11..=60) => 0.75,
        (false, _) => 0.6,
    }
}

/// An exception that led to another one was handled, if the last of the chain explains the end
/// by itself; else it is the best explanation that the chain has.
fn chain(scan: &Scan, pieces: &mut [Piece]) {
    let concluding = |block: &Block| block.terminal.as_ref().map(|line| line.offset);
    let roots: Vec<u64> = pieces
        .iter()
        .filter(|piece| piece.role == Role::Root)
        .filter_map(|piece| Some(piece.at?.1))
        .collect();
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official) {
        let Some((_, offset)) = piece.at else { continue };
        let own = scan.blocks.iter().position(|block| concluding(block) == Some(offset));
        let Some(mut last) = own else { continue };
        while let Some(next) = scan.blocks[last].leads_to.filter(|next| *next > last) {
            if next >= scan.blocks.len() {
                break;
            }
            last = next;
        }
        if Some(last) != own {
            let explained = concluding(&scan.blocks[last]).is_some_and(|at| roots.contains(&at));
            piece.score *= if explained { 0.55 } else { 0.85 };
        }
    }
}

/// What comes after another failure is likely its consequence, unless the scheduler says it. Ranks
/// write into one stream a little late: between two of them the order of lines tells less.
fn order(rules: &Rules, pieces: &mut [Piece], unexplained: &[&Line]) {
    let roots: Vec<(usize, u64, f64)> = pieces
        .iter()
        .filter(|piece| piece.role == Role::Root)
        .filter_map(|piece| Some((piece.family, piece.at?.1, piece.score)))
        .collect();
    let causes: Vec<(u64, u32)> = pieces
        .iter()
        .filter(|piece| piece.role == Role::Root && is_inner(piece))
        .filter_map(|piece| Some((piece.at?.1, piece.work_in_all())))
        .collect();
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official) {
        let Some((_, offset)) = piece.at else { continue };
        // An exception of Java is explained by what its trace says it came from.
        let work = piece.work_in_all();
        if piece.traced && causes.iter().any(|cause| cause.0 > offset && cause.1 == work) {
            piece.score *= 0.55;
        }
        if is_inner(piece) {
            continue;
        }
        let fallback = rules.families()[piece.family].fallback;
        let own = piece.rank();
        let first = unexplained
            .iter()
            .find(|line| own.is_none() || line.rank.is_none_or(|rank| own == Some(rank)));
        if first.is_some_and(|first| first.offset < offset) {
            piece.score *= if fallback { 0.55 } else { 0.8 };
        }
        let earlier = |&(family, at, score): &(usize, u64, f64)| {
            family != piece.family
                && at < offset
                && score >= 0.6
                && !rules.yields(family, piece.family)
                && (fallback || !rules.families()[family].fallback)
        };
        if roots.iter().any(earlier) {
            piece.score *= 0.8;
        }
    }
}

/// Whether a line names an exception inside the trace of another one.
fn is_inner(piece: &Piece) -> bool {
    let text = piece.evidence.text.trim_start();
    text.starts_with("Caused by: ") || text.starts_with("Suppressed: ")
}

fn evidence(log: &LogFacts<'_>, line: &Line, signal: String, role: Role) -> Evidence {
    let place = Place::Log {
        path: log.path.to_owned(),
        line: line.number,
        offset: line.offset,
        length: line.length,
        // A prefix in the line knows better than the name of the file.
        rank: line.rank.or(log.task),
        partial: log.scan.damaged,
    };
    Evidence { signal, role, place, text: line.text.clone() }
}

/// Whether a traceback was raised by a line of the user's own. An error raised inside a package, or
/// printed without a traceback, may well have a cause outside the program.
fn raised_by_user(traceback: Option<&Block>) -> bool {
    traceback.and_then(|block| block.frames.last()).is_some_and(is_own)
}

/// The innermost frame that is the user's own.
fn own_frame(log: &LogFacts<'_>, block: &Block) -> Option<Evidence> {
    let frame = block.frames.iter().rev().find(|frame| is_own(frame))?;
    Some(evidence(log, &frame.at, "frame".to_owned(), Role::Confirm))
}

/// Whether a frame lies outside the interpreter and installed packages.
fn is_own(frame: &Frame) -> bool {
    const FOREIGN: [&str; 5] =
        ["site-packages/", "dist-packages/", "/lib/python", "/lib64/python", "<frozen "];
    !FOREIGN.iter().any(|part| frame.file.contains(part))
}
