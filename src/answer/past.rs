//! The runs of a window: what every answer about many of them begins with.

use jiff::Timestamp;
use serde::Serialize;

use super::{AnswerError, World};
use crate::config::Config;
use crate::history::workloads::Workload;
use crate::model::{History, Idle};
use crate::sched::{Depth, Filter, SchedError, Users};

/// Whose runs of which window an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Begin of the window.
    pub since: Timestamp,
    /// End of the window, not included.
    pub until: Timestamp,
    /// Whose runs; `None` for everybody's.
    pub users: Option<Vec<String>>,
}

impl Scope {
    pub(super) fn of(world: World<'_>, filter: &Filter) -> Self {
        // The scheduler keeps seconds.
        let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
        let users = match &filter.users {
            Users::All => None,
            Users::Named(names) => Some(names.clone()),
            Users::Me => {
                let caller = world.cluster.caller();
                Some(vec![caller.name.unwrap_or_else(|| caller.uid.to_string())])
            }
        };
        Self { since: second(filter.since), until: second(filter.until), users }
    }
}

/// Reads the runs that a filter selects.
pub(super) fn load(
    world: World<'_>,
    filter: &Filter,
    depth: Depth,
) -> Result<History, AnswerError> {
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    Ok(source.past(filter, depth)?)
}

/// When a run counts as hung, by the settings.
pub(super) fn idle(config: &Config) -> Idle {
    let set = &config.settings.idle;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Idle {
        least_seconds: small(set.least_seconds),
        most_busy_permille: small(set.most_busy_permille),
        most_bytes_per_second: set.most_bytes_per_second,
    }
}

/// A workload as answers name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkloadName {
    /// The name of its runs, numbers in it folded to `#` where they differ.
    pub workload: String,
    /// How many names that stands for.
    pub names: usize,
    /// Whose.
    pub user: Option<String>,
    /// Where.
    pub partition: Option<String>,
    /// Whether its runs hold GPUs.
    pub gpus: bool,
    /// The script that tells it from other work of its name, where there is such.
    pub script: Option<String>,
}

impl WorkloadName {
    pub(super) fn of(workload: &Workload, history: &History) -> Self {
        let text = |symbol: Option<_>| symbol.map(|symbol| history.names.get(symbol).to_owned());
        let masked = crate::text::masked;
        Self {
            workload: masked(&workload.label),
            names: workload.names,
            user: text(workload.user),
            partition: text(workload.partition),
            gpus: workload.gpus,
            script: workload.script.as_deref().map(masked),
        }
    }
}

/// Hours to four decimals: a third of a second.
#[expect(clippy::cast_precision_loss, reason = "hours are told to four decimals")]
pub(super) fn hours(seconds: u64) -> f64 {
    (seconds as f64 / 3600.0 * 10_000.0).round() / 10_000.0
}

/// A share to four decimals; `None` of nothing.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| (part as f64 / of as f64 * 10_000.0).round() / 10_000.0)
}

/// A moment from epoch seconds.
pub(super) fn moment(second: Option<u32>) -> Option<Timestamp> {
    Timestamp::from_second(i64::from(second?)).ok()
}
