//! What the logs of a job say, where thousands of jobs are asked about: the verdict and the last
//! checkpoint, and nothing that would have to be asked of the scheduler.

use jiff::civil::DateTime;

use super::reading::read_logs;
use super::surroundings::{Cluster, Surroundings};
use super::{Engine, Hints, Shared, facts_of, logs_tell_the_end};
use crate::classify::{self, last_checkpoint};
use crate::logs;
use crate::model::{Job, Verdict};
use crate::sched::Backend;

/// What logs say.
pub(in crate::answer) struct ByLogs {
    /// The verdict on the record and the logs.
    pub(in crate::answer) verdict: Verdict,
    /// When the job last saved what it had done, in the cluster's own time.
    pub(in crate::answer) checkpoint: Option<DateTime>,
}

impl Engine {
    /// The same with less of each log.
    pub(in crate::answer) fn up_to(mut self, bytes: u64) -> Self {
        self.scan = logs::Limits { bytes: bytes.min(self.scan.bytes) };
        self
    }
}

/// Judges a job by its record and logs; `None` where no log could be read.
pub(in crate::answer) fn by_its_logs(
    engine: &Engine,
    shared: &Shared<'_>,
    backend: &Backend<'_>,
    job: &Job,
    hints: &Hints,
) -> Option<ByLogs> {
    let mut surroundings = Cluster::new(backend, hints, shared).silent();
    let (scanned, reports) = read_logs(engine, surroundings.logs(job), logs_tell_the_end(job));
    if scanned.is_empty() {
        return None;
    }
    let verdict = classify::decide(&engine.rules, &facts_of(job, &scanned, &reports));
    let checkpoint = scanned.iter().filter_map(|log| last_checkpoint(&log.last_lines())).max();
    Some(ByLogs { verdict, checkpoint })
}
