//! `--time`.
//!
//! How long a run would have taken that broke on its way nobody knows. So less time is advised only
//! where enough runs completed, and most of those that ran to an end of their own did.

use crate::model::request::{after_time_limit, round_time};
use crate::model::{Allowance, BaseState, Limits, Span};
use crate::text;

use super::estimate::Measured;
use super::{Advice, Amount, Flag, LEAST_RUNS, Subject, TIGHT, Verdict, WORTH, evidence, float};

/// Fewer completed runs are no reason to ask for less.
const LEAST_COMPLETED: usize = 5;

pub(super) fn advise(subject: &Subject<'_>) -> Advice {
    let now = match subject.last.limit {
        Allowance::Seconds(seconds) => Some(seconds_of(u64::from(seconds))),
        Allowance::Unlimited => Some(Amount::Unlimited),
        Allowance::Unknown => None,
    };
    let mut measured = Measured::default();
    let mut reached: Vec<u64> = Vec::new();
    let (mut hung, mut broke) = (0, 0);
    for run in subject.ended {
        let Some(elapsed) = run.elapsed.get().map(u64::from) else { continue };
        if subject.hung(run) {
            hung += 1;
            continue;
        }
        match run.state {
            BaseState::Completed => measured.complete.push(elapsed),
            BaseState::Timeout => {
                measured.at_least.push(elapsed);
                reached.push(run.limit.seconds().map_or(elapsed, u64::from));
            }
            // Ended by what has nothing to do with how long it takes.
            BaseState::Preempted | BaseState::NodeFail => measured.at_least.push(elapsed),
            // It broke, or its owner gave it up: how long it would have taken is not known at all.
            _ => broke += usize::from(run.is_failure()),
        }
    }
    let told = measured.complete.len() + reached.len();
    let mut notes = String::new();
    if !reached.is_empty() {
        let reached = if reached.len() == told && told > 1 {
            "all of them".to_owned()
        } else {
            reached.len().to_string()
        };
        notes.push_str(&format!("; {reached} reached the limit"));
    }
    if hung > 0 {
        notes.push_str(&format!("; {} left out that hung", text::count(hung, "run")));
    }
    let estimate = measured.estimate(subject.basis.risk).filter(|_| told >= LEAST_RUNS);
    let Some(estimate) = estimate else {
        let because = format!("{} completed or reached the limit", text::count(told as u64, "run"));
        return Advice::unknown(Flag::Time, now, told, because + &notes);
    };
    let longest_limit = reached.iter().max().copied();
    let wanted = match (estimate.quantile, longest_limit) {
        (None, Some(limit)) => {
            let next = after_time_limit(Span::seconds(limit)).as_seconds();
            next.max(estimate.with_headroom())
        }
        _ => estimate.with_headroom(),
    };
    let mut wanted = round_time(Span::seconds(wanted)).as_seconds();
    let mut because = evidence(&estimate, subject.basis.risk, "took", seconds_of) + &notes;
    let needed = estimate.quantile.unwrap_or(wanted);
    let limit = subject.last.limit.seconds().map(u64::from);
    let mut verdict = match limit {
        None => Verdict::Set,
        Some(limit) if float(limit) < float(needed) * TIGHT && limit < wanted => Verdict::Raise,
        Some(limit) if float(wanted) <= float(limit) * WORTH => Verdict::Lower,
        Some(_) => Verdict::Keep,
    };
    if verdict == Verdict::Raise && hung >= LEAST_RUNS.max(reached.len()) as u64 {
        let because = because
            + ": as many as reached it, so those may have stood still as well, which more time \
               does not mend";
        return Advice::unknown(Flag::Time, now, told, because);
    }
    let completed = measured.complete.len();
    if verdict == Verdict::Lower && (completed < LEAST_COMPLETED || completed < broke) {
        let because = if completed < broke {
            let broke = text::count(broke as u64, "run");
            format!(
                "{because}; {broke} broke on the way, and how long they would have taken nobody \
                 knows"
            )
        } else {
            format!("{because}; less is advised from {LEAST_COMPLETED} completed runs on")
        };
        return Advice {
            most: Some(seconds_of(estimate.most)),
            quantile: estimate.quantile.map(seconds_of),
            ..Advice::unknown(Flag::Time, now, estimate.runs, because)
        };
    }
    let most = subject.limits.and_then(Limits::longest);
    if let Some(most) = most.filter(|most| wanted > most.value.as_seconds())
        && verdict != Verdict::Keep
    {
        wanted = most.value.as_seconds();
        because
            .push_str(&format!("; {}: save checkpoints and continue in a further job", most.whose));
        if limit.is_some() {
            verdict = Verdict::Capped;
        }
    }
    let stays = verdict == Verdict::Keep
        || (verdict == Verdict::Capped && limit.is_some_and(|limit| limit >= wanted));
    if let (Verdict::Keep, Some(limit), Some(needed)) = (verdict, limit, estimate.quantile) {
        because.push_str(&super::leaves(limit, needed));
    }
    Advice {
        flag: Flag::Time,
        verdict,
        now,
        suggestion: (!stays).then(|| seconds_of(wanted)),
        runs: estimate.runs,
        most: Some(seconds_of(estimate.most)),
        quantile: estimate.quantile.map(seconds_of),
        headroom: (!stays && estimate.quantile.is_some()).then_some(estimate.headroom),
        misfits: Some(measured.misfits(if stays { limit.unwrap_or(wanted) } else { wanted })),
        because,
    }
}

fn seconds_of(seconds: u64) -> Amount {
    Amount::Time(Span::seconds(seconds))
}
