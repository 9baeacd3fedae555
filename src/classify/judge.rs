//! From pieces of evidence to ranked causes and the verdict.

use std::collections::BTreeSet;

use super::calibration::{THRESHOLD, confidence};
use super::rules::Rules;
use super::silence::{Silence, silence};
use super::stream::listen;
use super::{
    Facts, LogFacts, Piece, aftermath, progress, quietly, ranks, record, submission, waiting,
};
use crate::knowledge::Check;
use crate::model::{BaseState, Cause, Evidence, Job, Outcome, Part, Role, Source, Verdict};

/// At most this many causes, pieces of evidence per cause, and consequences are told.
const CAUSES: usize = 3;
const PIECES: usize = 6;
const CONSEQUENCES: usize = 8;

/// Below this a cause is not even a guess.
const GUESS: f64 = 0.1;

/// Decides what caused a run to end as it did, or why a job waits.
pub fn decide(rules: &Rules, facts: &Facts<'_>) -> Verdict {
    let plain = |outcome| Verdict { outcome, causes: Vec::new(), consequences: Vec::new() };
    let mut ran = true;
    let mut silently = false;
    if let Some(job) = facts.job {
        match job.state.base {
            BaseState::Pending if job.waits() => {
                let causes = rank(rules, Some(job), None, &waiting::pieces(rules, job));
                let causes = causes.into_iter().map(|ranked| ranked.cause).collect();
                return Verdict { causes, ..plain(Outcome::Pending) };
            }
            BaseState::Running | BaseState::Suspended => return plain(Outcome::Running),
            BaseState::Completed => {
                silently = record::failed_silently(job);
                if !silently {
                    return completed(rules, facts);
                }
            }
            _ => ran = !never_ran(job, facts),
        }
    }

    let silence = silence(facts);
    let worked_until_limit = facts.job.is_some_and(|job| {
        job.state.base == BaseState::Timeout && record::worked(job, silence.as_ref())
    });
    let mut pieces = Vec::new();
    let mut unexplained = Vec::new();
    let logs = ranks::in_order(&facts.logs);
    for (number, log) in logs.iter().enumerate() {
        let mut voice = listen(rules, number, log, facts.job);
        if facts.job.is_none() {
            aftermath::weigh(log, &mut voice.pieces);
        }
        if worked_until_limit {
            progress::weigh_until_limit(log, &mut voice.pieces);
        }
        pieces.extend(voice.pieces);
        unexplained.extend(voice.unexplained);
    }
    ranks::weigh_later(rules, &logs, &mut pieces);
    ranks::weigh_named(rules, &logs, &mut pieces);
    if let Some(job) = facts.job {
        pieces.extend(record::pieces(rules, job, ran, silence.as_ref()));
        weigh_other_jobs(job, &mut pieces);
        weigh_state(rules, job, &mut pieces);
        weigh_bare_exits(facts, &mut pieces);
    }
    weigh_limit_after_crash(rules, &mut pieces);
    weigh_crash_after_error(rules, &mut pieces);
    let mut verdict = conclude(rules, facts.job, silence.as_ref(), &pieces, unexplained);
    if let (true, Outcome::Cause, Some(first)) =
        (silently, verdict.outcome, verdict.causes.first_mut())
    {
        first.evidence.push(record::why_completed("its steps"));
    }
    verdict
}

/// Decides on a run that the scheduler calls completed, and whose steps are as well.
fn completed(rules: &Rules, facts: &Facts<'_>) -> Verdict {
    let mut pieces = quietly::pieces(rules, facts);
    if let Some(job) = facts.job {
        weigh_other_jobs(job, &mut pieces);
        // What a wrapper repeats of its children's ends is not about this run.
        pieces.retain(|piece| piece.official || !piece.captures.contains_key("events"));
    }
    let mut verdict = conclude(rules, None, None, &pieces, Vec::new());
    match (verdict.outcome, verdict.causes.first_mut()) {
        (Outcome::Cause, Some(first)) => {
            first.evidence.push(record::why_completed("what its programs say"));
            verdict
        }
        _ => Verdict { outcome: Outcome::Healthy, causes: Vec::new(), consequences: Vec::new() },
    }
}

/// Decides what a text says that comes without a job: a log, or what a submission command printed.
/// `log` is the scan of the same text.
pub fn decide_text(rules: &Rules, log: &LogFacts<'_>, text: &[u8]) -> Verdict {
    let mut voice = listen(rules, 0, log, None);
    aftermath::weigh(log, &mut voice.pieces);
    let mut pieces = voice.pieces;
    pieces.extend(submission::pieces(rules, 0, log, text));
    conclude(rules, None, None, &pieces, voice.unexplained)
}

/// From all pieces to the verdict.
fn conclude(
    rules: &Rules,
    job: Option<&Job>,
    silence: Option<&Silence>,
    pieces: &[Piece],
    unexplained: Vec<Evidence>,
) -> Verdict {
    let causes = rank(rules, job, silence, pieces);
    let named = causes.first().is_some_and(|cause| cause.score >= THRESHOLD);
    let first = causes.first().filter(|_| named);
    let consequences = if first.is_some() {
        consequences(rules, pieces, first)
    } else {
        let mut rest = job.map(record::plain_facts).unwrap_or_default();
        rest.extend(unexplained);
        rest.extend(consequences(rules, pieces, None));
        rest.truncate(CONSEQUENCES);
        rest
    };
    Verdict {
        outcome: if named { Outcome::Cause } else { Outcome::Unknown },
        causes: causes.into_iter().map(|ranked| ranked.cause).collect(),
        consequences,
    }
}

/// Accounting holds records of jobs that were refused or whose deadline passed while they waited:
/// those are no failed runs. A log that was written proves the contrary.
fn never_ran(job: &Job, facts: &Facts<'_>) -> bool {
    job.source == Source::Accounting
        && !job.has_started()
        && facts.logs.iter().all(|log| log.scan.size == 0)
}

/// A wrapper prints the logs of its child jobs: what the scheduler said there is about those. Where
/// there are only logs, nobody knows which job is the one asked about.
fn weigh_other_jobs(job: &Job, pieces: &mut [Piece]) {
    if job.source == Source::Given {
        return;
    }
    let own: Vec<u64> = match (&job.id.part, job.raw_id.get()) {
        (Part::Whole, raw) => raw.into_iter().chain([job.id.number]).collect(),
        (_, Some(raw)) => vec![raw, job.id.number],
        (_, None) => return,
    };
    for piece in pieces.iter_mut().filter(|piece| piece.official) {
        let named = piece
            .captures
            .get("step")
            .and_then(|step| step.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok());
        if named.is_some_and(|named| !own.contains(&named)) {
            piece.official = false;
            piece.score *= 0.5;
        }
    }
}

/// A state in which a family is not expected makes what a program says count less.
fn weigh_state(rules: &Rules, job: &Job, pieces: &mut [Piece]) {
    for piece in pieces.iter_mut().filter(|piece| !piece.official && !is_of_child(piece)) {
        let states = &rules.families()[piece.family].states;
        if !states.is_empty() && !states.iter().any(|state| state == job.state.word()) {
            piece.score *= 0.75;
        }
    }
}

/// A bare exit code names a cause only where the log could not be expected to say more: when it
/// was read to the end and tells nothing of the kind, the code is worth less.
fn weigh_bare_exits(facts: &Facts<'_>, pieces: &mut [Piece]) {
    if !facts.logs_complete {
        return;
    }
    let told: BTreeSet<usize> =
        pieces.iter().filter(|piece| piece.at.is_some()).map(|piece| piece.family).collect();
    let stated: BTreeSet<usize> =
        pieces.iter().filter(|piece| is_state(piece)).map(|piece| piece.family).collect();
    for piece in pieces.iter_mut().filter(|piece| piece.at.is_none() && !is_state(piece)) {
        if !told.contains(&piece.family) && !stated.contains(&piece.family) {
            piece.score *= 0.75;
        }
    }
}

/// Whether the piece tells how a job ended that this one had submitted.
fn is_of_child(piece: &Piece) -> bool {
    piece.captures.contains_key("child")
}

fn is_state(piece: &Piece) -> bool {
    piece.at.is_none() && piece.evidence.text.starts_with("State ")
}

/// A program that crashed as the last thing before the limit did not need more time: the other
/// ranks waited for it until the limit.
fn weigh_limit_after_crash(rules: &Rules, pieces: &mut [Piece]) {
    let crashed = pieces.iter().any(|piece| {
        piece.role == Role::Root
            && !piece.official
            && !rules.families()[piece.family].fallback
            && piece.score >= 0.75
            && piece.work_after <= 3
    });
    if !crashed {
        return;
    }
    let is_limit = |piece: &&mut Piece| {
        piece.official && rules.families()[piece.family].checks.contains(&Check::TimeUsedUp)
    };
    for piece in pieces.iter_mut().filter(is_limit) {
        piece.score *= 0.7;
    }
}

/// A program that crashed right behind an error that it had told did not heed it: the crash tells no
/// more than the error does.
fn weigh_crash_after_error(rules: &Rules, pieces: &mut [Piece]) {
    /// A cause that is worth so much explains a crash.
    const EXPLAINS: f64 = 0.6;
    /// Lines of work between the two.
    const BETWEEN: u32 = 3;
    let family = |piece: &Piece| &rules.families()[piece.family];
    let errors: Vec<(usize, (usize, u64), u32, u32)> = pieces
        .iter()
        .filter(|piece| piece.role == Role::Root && !piece.official && piece.score >= EXPLAINS)
        .filter(|piece| !family(piece).crash && !family(piece).fallback && !piece.probe)
        .filter_map(|piece| Some((piece.family, piece.at?, piece.work_in_all(), piece.work_after)))
        .collect();
    let explained = |crash: &Piece| {
        let after = crash.work_in_all();
        // What ranks say of one that crashed they may write before its own words; a shell's report comes
        // when all is over.
        let last = crash.evidence.text.contains("core dumped)");
        errors.iter().any(|&(family, at, in_all, to_the_last)| match crash.at {
            Some(own) if own.0 == at.0 => {
                let before = at < own && in_all.saturating_sub(after) <= BETWEEN;
                before && (last || !rules.yields(family, crash.family))
            }
            // Of a crash elsewhere, or known by its exit, nobody knows when it was.
            _ => to_the_last <= BETWEEN && !rules.yields(family, crash.family),
        })
    };
    let crashes: Vec<usize> = (0..pieces.len())
        .filter(|&at| pieces[at].role == Role::Root && family(&pieces[at]).crash)
        .collect();
    // Where one of them stands before any error, it is that one which the others tell of.
    if crashes.iter().all(|&crash| explained(&pieces[crash])) {
        for crash in crashes {
            pieces[crash].role = Role::Confirm;
        }
    }
}

struct Ranked {
    family: usize,
    score: f64,
    fallback: bool,
    at: Option<(usize, u64)>,
    rank: Option<u64>,
    cause: Cause,
}

/// One cause for each family with evidence, most likely first.
fn rank(
    rules: &Rules,
    job: Option<&Job>,
    silence: Option<&Silence>,
    pieces: &[Piece],
) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = (0..rules.families().len())
        .filter_map(|family| {
            let own: Vec<&Piece> = pieces.iter().filter(|piece| piece.family == family).collect();
            cause(rules, family, job, silence, &own)
        })
        .collect();
    yield_to_neighbours(rules, &mut ranked);
    ranked.retain(|cause| cause.score >= GUESS);
    // A family of last resort stands behind every other that can be named.
    let rank = |cause: &Ranked| (cause.score >= THRESHOLD && !cause.fallback, cause.score);
    ranked.sort_by(|a, b| {
        let (a_rank, b_rank) = (rank(a), rank(b));
        b_rank.0.cmp(&a_rank.0).then(b_rank.1.total_cmp(&a_rank.1))
    });
    ranked.truncate(CAUSES);
    for cause in &mut ranked {
        cause.cause.confidence = confidence(cause.score);
    }
    ranked
}

/// Puts a family just behind a confusable neighbour that holds as well. One of last resort that came
/// first explains it, but stands behind every name: to yield to it is to be no name at all.
fn yield_to_neighbours(rules: &Rules, ranked: &mut [Ranked]) {
    type At = (Option<(usize, u64)>, Option<u64>);
    let held: Vec<(String, f64, Option<At>)> = ranked
        .iter()
        .filter(|cause| cause.score >= THRESHOLD)
        .map(|cause| {
            (
                cause.cause.family.0.clone(),
                cause.score,
                cause.fallback.then_some((cause.at, cause.rank)),
            )
        })
        .collect();
    for cause in ranked {
        let Some(family) = rules.family(&cause.cause.family) else { continue };
        for neighbour in &family.yields_to {
            let Some((_, score, last_resort)) = held.iter().find(|(id, ..)| *id == neighbour.0)
            else {
                continue;
            };
            match last_resort {
                None => cause.score = cause.score.min(score - 0.01),
                // Which of two ranks wrote first is not known so well.
                Some((at, rank))
                    if *at < cause.at
                        || rank.is_some() && cause.rank.is_some() && *rank != cause.rank =>
                {
                    cause.score = cause.score.min(THRESHOLD - 0.01);
                }
                Some(_) => {}
            }
        }
    }
}

/// Weighs the pieces of one family.
fn cause(
    rules: &Rules,
    index: usize,
    job: Option<&Job>,
    silence: Option<&Silence>,
    own: &[&Piece],
) -> Option<Ranked> {
    let family = &rules.families()[index];
    let mut told = one_per_line(own);
    if told.is_empty() {
        return None;
    }
    let is_root = |piece: &Piece| {
        let supported = |check| {
            let said = job.and_then(|job| record::check(check, job, silence).evidence);
            said.is_some_and(|evidence| evidence.role == Role::Confirm)
        };
        piece.role == Role::Root || piece.with.is_some_and(supported)
    };
    // Roots first, the strongest first, the earliest first.
    told.sort_by(|a, b| {
        let rank = |piece: &Piece| (is_root(piece), piece.score);
        let ((a_root, a_score), (b_root, b_score)) = (rank(a), rank(b));
        b_root.cmp(&a_root).then(b_score.total_cmp(&a_score)).then(a.at.cmp(&b.at))
    });
    let deciding = told[0];
    // How a job ran that a workflow submitted, the record of the workflow's own job does not tell.
    let said: Vec<record::Said> = job
        .filter(|_| !is_of_child(deciding))
        .map(|job| family.checks.iter().map(|&check| record::check(check, job, silence)).collect())
        .unwrap_or_default();

    let mut others: Vec<(&str, f64)> = Vec::new();
    for piece in &told[1..] {
        if piece.signal != deciding.signal && others.iter().all(|(id, _)| *id != piece.signal) {
            others.push((&piece.signal, piece.score));
        }
    }
    let supports = said.iter().filter_map(|said| said.evidence.as_ref());
    others.extend(supports.filter(|e| e.role == Role::Confirm).map(|_| ("check", 0.7)));
    let mut score = if is_root(deciding) {
        let agreed = others.iter().take(3);
        agreed.fold(deciding.score, |sum, (_, other)| sum + (1.0 - sum) * 0.25 * other)
    } else {
        // Nothing names the family: pieces that only support add up to a guess.
        let all = others.iter().map(|(_, other)| *other).chain([deciding.score]);
        1.0 - all.fold(1.0, |rest, other| rest * (1.0 - 0.3 * other))
    };
    for said in &said {
        score *= said.factor;
    }
    // The further it stands from the end, the less sure it is; what it is stays the same.
    if score > THRESHOLD {
        score = THRESHOLD + (score - THRESHOLD) * nearness(deciding.work_after_all);
    }

    let mut evidence: Vec<Evidence> = Vec::new();
    for (rank, piece) in told.iter().take(PIECES).enumerate() {
        evidence.push(signed(rules, piece));
        if rank == 0 {
            evidence.extend(piece.frame.clone());
        }
    }
    evidence.extend(said.into_iter().filter_map(|said| said.evidence));
    Some(Ranked {
        family: index,
        score,
        fallback: family.fallback,
        at: deciding.at,
        rank: deciding.rank(),
        cause: Cause {
            family: family.id.clone(),
            signal: deciding.signal.clone(),
            title: family.title.clone(),
            domain: family.domain,
            confidence: confidence(score),
            evidence,
            captures: deciding.captures.clone(),
            heard: own
                .iter()
                .filter(|piece| matches!(piece.role, Role::Root | Role::Confirm))
                .map(|piece| piece.signal.clone())
                .collect(),
        },
    })
}

/// What is left of the sureness of a failure when lines of work follow it.
fn nearness(lines: u32) -> f64 {
    match lines {
        0..=10 => 1.0,
        11..=200 => 0.75,
        _ => 0.5,
    }
}

/// The pieces that count for a family: of several on one line the best, of one signal in one
/// stream the best and then the earliest.
fn one_per_line<'a>(own: &[&'a Piece]) -> Vec<&'a Piece> {
    let mut best: Vec<&Piece> =
        own.iter().copied().filter(|p| matches!(p.role, Role::Root | Role::Confirm)).collect();
    best.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.at.cmp(&b.at)));
    let mut kept: Vec<&Piece> = Vec::new();
    for piece in best {
        let stream = piece.at.map(|(stream, _)| stream);
        let again = kept.iter().any(|other| match (piece.at, other.at) {
            (Some(a), Some(b)) => a == b || (piece.signal == other.signal && Some(b.0) == stream),
            _ => false,
        });
        if !again {
            kept.push(piece);
        }
    }
    kept
}

/// What followed, in order of appearance: each kind once. After the first cause in its own stream,
/// and everything of the kind in the other streams, whose order to it is not known; nothing that is
/// told as its evidence.
fn consequences(rules: &Rules, pieces: &[Piece], first: Option<&Ranked>) -> Vec<Evidence> {
    let mut seen = BTreeSet::new();
    let root = first.and_then(|first| first.at);
    let own = pieces.iter().filter(|piece| first.is_some_and(|first| first.family == piece.family));
    let told: BTreeSet<(usize, u64)> = own.filter_map(|piece| piece.at).collect();
    let later = |piece: &&Piece| match (piece.at, root) {
        (Some(at), _) if told.contains(&at) => false,
        (Some(at), Some(root)) => at.0 != root.0 || at.1 > root.1,
        _ => true,
    };
    let cascades = pieces.iter().filter(|piece| piece.role == Role::Cascade).filter(later);
    cascades
        .filter(|piece| seen.insert(piece.signal.clone()))
        .take(CONSEQUENCES)
        .map(|piece| signed(rules, piece))
        .collect()
}

/// The evidence with its signal written as `family/signal`.
fn signed(rules: &Rules, piece: &Piece) -> Evidence {
    let family = &rules.families()[piece.family].id;
    Evidence { signal: format!("{family}/{}", piece.signal), ..piece.evidence.clone() }
}
