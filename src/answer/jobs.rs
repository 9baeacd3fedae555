//! Which jobs were there?

use jiff::Timestamp;
use serde::Serialize;

use super::{AnswerError, World, mask};
use crate::model::{Job, Notice};
use crate::sched::{Filter, SchedError};

/// The jobs of a window.
#[derive(Debug, Serialize)]
pub struct Jobs {
    /// `jobwise/jobs/1`.
    pub schema: &'static str,
    /// Begin of the window.
    pub since: Timestamp,
    /// End of the window.
    pub until: Timestamp,
    /// How many jobs matched.
    pub total: usize,
    /// The jobs, newest submission first; at most as many as were asked for.
    pub jobs: Vec<Job>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Lists the jobs that match; `limit` of `None` lists all.
pub fn jobs(world: World<'_>, filter: &Filter, limit: Option<usize>) -> Result<Jobs, AnswerError> {
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let found = source.list(filter)?;
    let mut jobs = found.value;
    jobs.sort_by(|a, b| {
        let newest = b.submitted.get().cmp(&a.submitted.get());
        newest.then_with(|| b.id.cmp(&a.id))
    });
    let total = jobs.len();
    jobs.truncate(limit.unwrap_or(usize::MAX));
    Ok(Jobs {
        schema: "jobwise/jobs/1",
        since: filter.since,
        until: filter.until,
        total,
        jobs: jobs.into_iter().map(mask::job).collect(),
        notices: mask::notices(found.notices),
    })
}
