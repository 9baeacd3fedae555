//! How much more time to ask for.

use super::script_edit::Edits;
use super::setting::{Sources, steps_have_their_own};
use super::{Proposal, Target};
use crate::model::request::{after_progress, after_time_limit, round_time};
use crate::model::{BaseState, Known, Limits, Span};

pub(super) fn propose(
    target: &Target<'_>,
    sources: &Sources<'_>,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    sources.overruled(&["walltime=", "cput="], &["-W"])?;
    if target.job.state.base != BaseState::Timeout {
        steps_have_their_own(target.job, BaseState::Timeout, &["time"])?;
    }
    let setting = sources.setting(&["time"])?;
    let asked = setting.given().map(|(_, value)| read(value)).transpose()?;
    let ran_with = match &target.job.limit {
        Known::Value(limit) => Some(*limit),
        Known::Unlimited => return Err("the job has no time limit".to_owned()),
        Known::NotGathered | Known::Unreadable(_) => None,
    };
    let base = ran_with.or(asked).ok_or("the job's time limit is not known")?;
    let mut limit = round_time(after_time_limit(base)).as_seconds();
    let mut because = format!("it ran into its limit of {base}; half as much again, rounded up");
    let mut needed = None;
    // What the run itself showed counts for more than what others took.
    if let Some((whole, words)) = whole(target, base) {
        needed = Some(whole);
        limit = round_time(after_progress(whole)).as_seconds();
        because = format!("{words}: {whole} in all, and a quarter, rounded up");
    } else if let Some(suggestion) = target.time.filter(|suggestion| suggestion.value > base) {
        limit = round_time(suggestion.value).as_seconds();
        because = format!("runs of this work: {}", suggestion.because);
    }
    if let Some(asked) = asked.filter(|asked| *asked != base) {
        because = format!("{because} ({}, that is {asked})", setting.in_words());
    }
    if let Some(most) = target.limits.and_then(Limits::longest)
        && limit > most.value.as_seconds()
    {
        if let Some(whole) = needed.filter(|whole| *whole > most.value) {
            return Err(format!(
                "it does not fit: at the pace of its log the work takes {whole}, and {}: save \
                 checkpoints and continue in further jobs, or use one that allows more",
                most.whose
            ));
        }
        if most.value <= base {
            return Err(format!(
                "{}: use one that allows more, or save checkpoints and continue in a further job",
                most.whose
            ));
        }
        limit = most.value.as_seconds();
        because = format!("{because}, but {}", most.whose);
    }
    let limit = Span::seconds(limit);
    if asked.is_some_and(|asked| asked >= limit) {
        return Err(format!("{}, and the job ran with {base}", setting.in_words()));
    }
    sources.set(&setting, "time", &limit.to_string(), because, edits)
}

/// How long all of the work takes by the progress that the log tells, and the arithmetic; `None` where
/// it tells none, or one that would have fitted.
fn whole(target: &Target<'_>, base: Span) -> Option<(Span, String)> {
    let pace = target.pace?;
    let elapsed = target.job.elapsed.get().unwrap_or(base);
    let whole = pace.needed(elapsed)?;
    let fits = after_progress(whole) <= base;
    (!fits).then(|| (whole, pace.in_words(elapsed).to_string()))
}

/// Reads a limit as `sbatch` does; zero and the words for it are no limit.
fn read(value: &str) -> Result<Span, String> {
    let unlimited =
        ["unlimited", "infinite", "-1"].iter().any(|word| value.eq_ignore_ascii_case(word));
    match Span::parse_limit(value) {
        Ok(limit) if limit.as_seconds() > 0 => Ok(limit),
        Ok(_) => Err("the job already asks for no time limit".to_owned()),
        Err(_) if unlimited => Err("the job already asks for no time limit".to_owned()),
        Err(error) => Err(format!("{error}: not changed")),
    }
}
