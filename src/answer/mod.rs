//! One file = one question -> one report value.
//!
//! Composes, never computes: facts come from below, judgements are made below, and every face
//! (text, JSON, later the dashboard and agents) shows the same value. What an answer lacks stands
//! in its notices.

pub mod diagnose;
pub mod evaluate;
pub mod job;
pub mod jobs;
pub mod kb;
pub mod settings;
pub mod stats;
mod window;

use crate::classify::Rules;
use crate::config::Config;
use crate::host::{FileError, Runner, Store, StoreError};
use crate::knowledge::{self, KnowledgeError};
use crate::model::IdError;
use crate::retrieve::RetrieveError;
use crate::sched::{self, Backend, SchedError};

pub use window::{WindowError, parse_time};

/// What every question is asked of.
#[derive(Clone, Copy)]
pub struct World<'w> {
    /// The cluster: a machine, a recording being made, or a replay.
    pub cluster: &'w dyn Runner,
    /// The settings in force.
    pub config: &'w Config,
    /// Our own folder, where there is one.
    pub store: Option<&'w Store>,
}

impl<'w> World<'w> {
    /// The scheduler of this cluster.
    fn backend(&self) -> Backend<'w> {
        sched::detect(self.cluster, &self.config.settings.scheduler)
    }
}

/// The rules of the families built in.
fn rules() -> Result<Rules, AnswerError> {
    Ok(Rules::new(knowledge::built_in()?))
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
    /// There is no family of that name.
    #[error("there is no family '{name}'")]
    UnknownFamily {
        /// The name given.
        name: String,
        /// The nearest there is.
        nearest: Option<String>,
    },
}
