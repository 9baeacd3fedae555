//! Which schedulers does jobwise know, and which is here?

use serde::Serialize;

use super::World;
use crate::config;
use crate::sched::{self, Need};
use crate::text;

/// The schedulers.
#[derive(Debug, Serialize)]
pub struct Backends {
    /// `jobwise/backends/1`.
    pub schema: &'static str,
    /// The schedulers that are here.
    pub detected: Vec<&'static str>,
    /// Each that is known.
    pub backends: Vec<Row>,
}

/// A scheduler.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Whether its clients are here.
    pub is_here: bool,
    /// Why it does not answer, where it is here and was asked in vain.
    pub trouble: Option<String>,
    /// Whether it can be asked about past jobs.
    pub knows_jobs: bool,
    /// Whether it can be asked about nodes and queues.
    pub knows_nodes: bool,
    /// Whether it can say what it would do with a job.
    pub has_dry_run: bool,
}

/// Looks for every scheduler.
pub fn backends(world: World<'_>) -> Backends {
    let settings = &world.config.settings.scheduler;
    let row = |scheduler: &'static sched::Scheduler| {
        let only = config::Scheduler { backend: scheduler.name.to_owned(), ..settings.clone() };
        let found = sched::detect(world.cluster, &only, Need::Nodes, world.session);
        let trouble = found.nodes.as_ref().and_then(|nodes| nodes.trouble());
        Row {
            name: scheduler.name,
            is_here: found.nodes.is_some() || found.jobs.is_some(),
            trouble: trouble.map(|error| text::masked(&error.to_string())),
            knows_jobs: found.jobs.is_some(),
            knows_nodes: found.nodes.is_some(),
            has_dry_run: found.probe.is_some(),
        }
    };
    let backends: Vec<Row> = sched::ALL.iter().map(row).collect();
    let detected = backends.iter().filter(|row| row.is_here).map(|row| row.name).collect();
    Backends { schema: "jobwise/backends/1", detected, backends }
}
