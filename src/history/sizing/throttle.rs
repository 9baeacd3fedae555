//! The `%N` of `--array`: how many tasks may run at a time.
//!
//! Judged by the history alone: whether tasks took longer when many ran side by side, as they do
//! where all wait for one file system, and whether more of them were done in an hour. Where they were
//! not, a throttle finishes the array as soon and holds less meanwhile. That tasks are many is no
//! reason by itself: the scheduler sees to that.

use crate::math::median;
use crate::model::{Run, RunPart};
use crate::text;

use super::{Advice, Amount, Flag, Subject, Verdict, whole};

/// Fewer tasks at each level are no evidence.
const LEAST: usize = 10;
/// With fewer tasks at a time there is nothing to throttle.
const CROWD: usize = 8;
/// The levels that are compared are apart by this factor at least.
const APART: f64 = 2.0;
/// Tasks that took this many times as long were slowed down.
const SLOWED: f64 = 1.5;
/// More at a time are worth it where they get this many times as much done in an hour.
const WORTH: f64 = 1.2;

/// The advice on the throttle; `None` where the last run is no task of an array.
pub(super) fn advise(subject: &Subject<'_>) -> Option<Advice> {
    if !matches!(subject.last.part, RunPart::Task(_)) {
        return None;
    }
    let given = subject.given(&["array"]).and_then(|given| given.value);
    let now = given.as_ref().and_then(|value| value.split_once('%')?.1.parse().ok());
    let now = now.map(Amount::AtATime);
    let unknown = |runs, because| Some(Advice::unknown(Flag::Array, now, runs, because));
    let levels = levels(subject);
    let told =
        format!("{} of a minute or more", text::count(levels.len() as u64, "completed task"));
    if levels.is_empty() {
        return unknown(0, told);
    }
    let most = levels.last().map_or(0, |(together, _)| *together);
    if most < CROWD || levels.len() < 2 * LEAST {
        return unknown(levels.len(), format!("{told}, at most {most} at a time"));
    }
    let (few, many) = (&levels[..levels.len() / 4], &levels[levels.len() * 3 / 4..]);
    let (Some(few), Some(many)) = (typical(few), typical(many)) else {
        return unknown(levels.len(), format!("{told}, at most {most} at a time"));
    };
    if many.0 < few.0 * APART {
        let because = format!("{told}, about {:.0} at a time in all of them", many.0);
        return unknown(levels.len(), because);
    }
    let slowed = many.1 / few.1.max(1.0);
    let gain = (many.0 / few.0) / slowed.max(f64::MIN_POSITIVE);
    let because = format!(
        "{told}: with {:.0} at a time one took {}, with {:.0} it took {}",
        few.0,
        clock(few.1),
        many.0,
        clock(many.1)
    );
    let throttle = whole(few.0).max(1);
    let fewer = !matches!(now, Some(Amount::AtATime(now)) if now <= throttle);
    let advice = |verdict, suggestion, because| Advice {
        verdict,
        suggestion,
        ..Advice::unknown(Flag::Array, now, levels.len(), because)
    };
    // As many as may run at a time anyway need no throttle.
    let capped = subject.limits.and_then(crate::model::Limits::jobs_at_a_time);
    if let Some(most) = capped.filter(|most| most.value <= throttle) {
        let because = format!("{because}; {}", most.whose);
        return Some(advice(Verdict::Keep, None, because));
    }
    if slowed >= SLOWED && gain < WORTH && fewer {
        let verdict = if now.is_some() { Verdict::Lower } else { Verdict::Set };
        let because = format!(
            "{because}: more at a time got no more done; write %{throttle} behind the indices of \
             --array"
        );
        return Some(advice(verdict, Some(Amount::AtATime(throttle)), because));
    }
    Some(advice(Verdict::Keep, None, because))
}

/// How many ran on average while each task did, and its seconds, the fewest first.
fn levels(subject: &Subject<'_>) -> Vec<(usize, u32)> {
    let spans = subject.ended.iter().filter_map(|run| Some((run.started.get()?, run.ended.get()?)));
    let (mut starts, mut ends): (Vec<u32>, Vec<u32>) = spans.unzip();
    starts.sort_unstable();
    ends.sort_unstable();
    let together = |run: &Run| {
        let (start, end) = (run.started.get()?, run.ended.get()?);
        let middle = start + end.saturating_sub(start) / 2;
        let begun = starts.partition_point(|start| *start <= middle);
        let over = ends.partition_point(|end| *end <= middle);
        Some((begun.saturating_sub(over).max(1), run.elapsed.get()?))
    };
    let tasks = subject.ended.iter().filter(|run| run.is_completed() && !subject.hung(run));
    let tasks = tasks.filter(|run| run.elapsed.get().is_some_and(|elapsed| elapsed >= 60));
    let mut levels: Vec<(usize, u32)> = tasks.filter_map(|run| together(run)).collect();
    levels.sort_unstable();
    levels
}

/// The medians of how many ran and how long they took; `None` of too few.
fn typical(levels: &[(usize, u32)]) -> Option<(f64, f64)> {
    if levels.len() < LEAST {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "tasks at a time are few")]
    let mut together: Vec<f64> = levels.iter().map(|(together, _)| *together as f64).collect();
    let mut seconds: Vec<f64> = levels.iter().map(|(_, seconds)| f64::from(*seconds)).collect();
    together.sort_by(f64::total_cmp);
    seconds.sort_by(f64::total_cmp);
    Some((median(&together)?, median(&seconds)?))
}

fn clock(seconds: f64) -> crate::model::Span {
    crate::model::Span::seconds(whole(seconds))
}
