//! What is recorded about one job?

use serde::Serialize;

use super::{AnswerError, World, mask};
use crate::model::{Job, JobId, Notice};
use crate::sched::SchedError;

/// The records behind the ids.
#[derive(Debug, Serialize)]
pub struct Records {
    /// `jobwise/job/1`.
    pub schema: &'static str,
    /// One record for a plain job; one for each task or component of an array or het job.
    pub jobs: Vec<Job>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Looks the ids up, in the order given.
pub fn job(world: World<'_>, ids: &[JobId]) -> Result<Records, AnswerError> {
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let mut records = Records { schema: "jobwise/job/1", jobs: Vec::new(), notices: Vec::new() };
    for id in ids {
        let found = source.job(id)?;
        records.jobs.extend(found.value.into_iter().map(mask::job));
        records.notices.extend(mask::notices(found.notices));
    }
    Ok(records)
}
