//! What the same work took before: a run that took much longer than ever needed no more time, and one
//! that was over at once may have done nothing.
//!
//! The same work is a job of the same owner and name. Only runs that ended well count, and only where
//! there are a few. Asked once, and only where the answer would change what is said.

use super::surroundings::Surroundings;
use crate::model::{BaseState, Job, Notice, Span};
use crate::text::count;

/// Fewer runs are no habit.
const FEWEST: usize = 3;
const FEWEST_TO_DOUBT: usize = 5;
/// A limit of more than so many times the longest run that ended well was not too short.
const ROOM: u64 = 2;
/// A run of less than a share like this of the shortest one is doubted.
const SHORT: u64 = 10;
/// The shortest run of a workload whose runs can be told apart by their length.
const WORTH: Span = Span::seconds(10 * 60);

/// The runs of the same work that ended well.
struct Past {
    runs: usize,
    shortest: Span,
    longest: Span,
}

fn past(job: &Job, surroundings: &impl Surroundings) -> Option<Past> {
    let jobs = surroundings.same_work(job)?;
    let others = jobs.iter().filter(|other| other.id != job.id && other.name == job.name);
    let well = others.filter(|other| other.state.base == BaseState::Completed);
    let took: Vec<Span> = well.filter_map(|other| other.elapsed.get()).collect();
    let (shortest, longest) = (*took.iter().min()?, *took.iter().max()?);
    Some(Past { runs: took.len(), shortest, longest })
}

/// Why a run that lasted until its limit did not need more time.
pub(super) fn had_enough(job: &Job, surroundings: &impl Surroundings) -> Option<String> {
    let limit = job.limit.get()?;
    let past = past(job, surroundings).filter(|past| past.runs >= FEWEST)?;
    let enough = past.longest.as_millis().saturating_mul(ROOM) <= limit.as_millis();
    let Past { runs, longest, .. } = past;
    enough.then(|| {
        format!(
            "{} called {} ended well within {longest}, so {limit} was enough: look what it \
             waited for, or whether its work was another, before it gets more time",
            count(runs as u64, "run"),
            job.name
        )
    })
}

/// What to say of a run that ended well far sooner than any other.
pub(super) fn short_run(job: &Job, surroundings: &impl Surroundings) -> Option<Notice> {
    let elapsed = job.elapsed.get().filter(|_| !job.name.is_empty())?;
    let past = past(job, surroundings).filter(|past| past.runs >= FEWEST_TO_DOUBT)?;
    let Past { runs, shortest, .. } = past;
    let short = elapsed.as_millis().saturating_mul(SHORT) < shortest.as_millis();
    (short && shortest >= WORTH).then(|| {
        let text = format!(
            "it was over after {elapsed}; the shortest of {} called {} that ended well took \
             {shortest}",
            count(runs as u64, "run"),
            job.name
        );
        Notice::warning("short-run", text).hint("look whether it did its work")
    })
}
