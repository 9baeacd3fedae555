//! One file = one question -> one report value.
//!
//! Composes, never computes: facts come from below, judgements are made below, and every face
//! (text, JSON, later the dashboard and agents) shows the same value. What an answer lacks stands
//! in its notices.

pub mod access;
pub mod backends;
pub mod cluster;
pub mod diagnose;
pub mod evaluate;
pub mod exclude;
pub mod gpus;
pub mod health;
pub mod job;
pub mod jobs;
pub mod kb;
mod mask;
pub mod nodes;
pub mod place;
pub mod queues;
pub mod settings;
pub mod snapshot;
pub mod stats;
pub mod status;
mod window;
pub mod zoom;

use std::path::Path;

use crate::config::Config;
use crate::hardware::CatalogueError;
use crate::host::{FileError, Runner, Store, StoreError};
use crate::knowledge::{self, Family, KnowledgeError};
use crate::model::{IdError, Notice};
use crate::retrieve::RetrieveError;
use crate::sched::{self, Backend, SchedError};

pub use window::{WindowError, parse_time};

/// What every question is asked of.
#[derive(Clone, Copy)]
pub struct World<'w> {
    /// The cluster: a machine, a recording being made, or a replay.
    pub cluster: &'w dyn Runner,
    /// This machine, whatever the cluster is.
    pub machine: &'w dyn Runner,
    /// A folder of the site's or the user's own notes, on this machine.
    pub overlay: Option<&'w Path>,
    /// The settings in force.
    pub config: &'w Config,
    /// Our own folder, where there is one.
    pub store: Option<&'w Store>,
    /// Whether what is kept there may be used: an answer that is recorded or replayed must not
    /// depend on what this machine has built or heard before.
    pub live: bool,
    /// Whether the cluster is asked again for what was remembered.
    pub fresh: bool,
}

impl<'w> World<'w> {
    /// The scheduler of this cluster.
    fn backend(&self) -> Backend<'w> {
        sched::detect(self.cluster, &self.config.settings.scheduler, sched::Need::Jobs)
    }

    /// The failure families: those built in, and the overlay's. A file of the overlay that cannot
    /// be read as a family is left out; the errors say which.
    fn families(&self) -> Result<(Vec<Family>, Vec<KnowledgeError>), AnswerError> {
        let families = knowledge::built_in()?;
        let Some(folder) = self.overlay else { return Ok((families, Vec::new())) };
        let mut files = Vec::new();
        let paths = self.machine.list(folder)?.into_iter().map(|name| folder.join(name));
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "md")) {
            let content = self.machine.open(&path)?;
            let bytes = content.read_all(NOTE_LIMIT);
            let bytes = bytes.map_err(|error| FileError::from_io(&path, &error))?;
            files.push((path.display().to_string(), bytes));
        }
        Ok(knowledge::with_overlay(families, files))
    }
}

/// A note is a page or two; what is larger is cut.
const NOTE_LIMIT: u64 = 1 << 20;

/// A family file that had to be left out.
fn left_out(error: &KnowledgeError) -> Notice {
    Notice::warning("note-left-out", format!("a note was left out: {error}"))
        .hint("jobwise kb check proves every note")
}

/// Why there is no answer at all. A degraded answer is not an error: it has notices.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The scheduler could not be asked, or does not know.
    #[error(transparent)]
    Scheduler(#[from] SchedError),
    /// What was given is no job id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// What was given is no time.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// A family file is broken.
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
    /// The index cannot be used or made.
    #[error(transparent)]
    Index(#[from] RetrieveError),
    /// Our own folder cannot be written.
    #[error("could not write {0}")]
    Store(#[from] StoreError),
    /// The results cannot be written where they were asked for.
    #[error("could not write {0}")]
    Results(#[source] StoreError),
    /// There is no folder of our own: neither `HOME` nor `JOBWISE_HOME` is set.
    #[error("there is no folder to keep the index in")]
    NoStore,
    /// A file that was named cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// No dry run can be made here.
    #[error("the scheduler cannot be asked here: there is no dry run")]
    NoDryRun,
    /// The catalogue of accelerators is broken.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// There is no queue of that name.
    #[error("there is no partition '{name}' here")]
    UnknownQueue {
        /// The name given.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// There is neither a queue nor a node nor a job of that name.
    #[error("there is no partition, node or job '{name}' here")]
    UnknownPlace {
        /// The name given.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
    /// There is no family of that name.
    #[error("there is no family '{name}'")]
    UnknownFamily {
        /// The name given.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
}
