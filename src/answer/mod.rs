//! One file = one question -> one report value.
//!
//! Composes, never computes: facts come from below, judgements are made below, and every face
//! (text, JSON, later the dashboard and agents) shows the same value. What an answer lacks stands
//! in its notices.

pub mod access;
pub mod backends;
pub mod breakdown;
pub mod cluster;
pub mod diagnose;
mod embedding;
pub mod evaluate;
pub mod exclude;
pub mod export;
pub mod gpus;
pub mod health;
pub mod import;
pub mod job;
pub mod jobs;
pub mod kb;
mod limits;
mod mask;
pub mod models;
pub mod nodes;
pub mod overview;
pub mod past;
pub mod patterns;
pub mod place;
mod queries;
pub mod queues;
pub mod reliability;
pub mod scope;
pub mod settings;
pub mod sizing;
pub mod snapshot;
pub mod stats;
pub mod status;
mod window;
pub mod zoom;

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::hardware::CatalogueError;
use crate::host::packages::PackageError;
use crate::host::{FileError, Runner, Store, StoreError};
use crate::knowledge::{self, KnowledgeError, Notes};
use crate::model::{IdError, Notice};
use crate::retrieve::RetrieveError;
use crate::sched::{self, Backend, SavedError, SchedError, Session};

pub use window::{WindowError, parse_time};

/// What every question is asked of.
#[derive(Clone, Copy)]
pub struct World<'w> {
    /// The cluster: a machine, a recording being made, or a replay.
    pub cluster: &'w dyn Runner,
    /// This machine, whatever the cluster is.
    pub machine: &'w dyn Runner,
    /// Folders of the site's and the user's own notes, on this machine; a later one wins.
    pub overlays: &'w [PathBuf],
    /// The settings in force.
    pub config: &'w Config,
    /// Our own folder, where there is one.
    pub store: Option<&'w Store>,
    /// Whether what is kept there may be used: an answer that is recorded or replayed must not
    /// depend on what this machine has built or heard before.
    pub live: bool,
    /// Whether the cluster is asked again for what was remembered.
    pub fresh: bool,
    /// What this answer has learnt of the cluster's scheduler so far.
    pub session: &'w Session,
}

impl<'w> World<'w> {
    /// The scheduler of this cluster.
    fn backend(&self) -> Backend<'w> {
        sched::detect(
            self.cluster,
            &self.config.settings.scheduler,
            sched::Need::Jobs,
            self.session,
        )
    }

    /// The same with another cluster, of which nothing is known yet.
    fn on<'a>(self, cluster: &'a dyn Runner, session: &'a Session) -> World<'a>
    where
        'w: 'a,
    {
        World { cluster, session, ..self }
    }

    /// What is known: what is built in, and the overlays'.
    fn notes(&self) -> Result<Notes, AnswerError> {
        let mut notes = Notes { families: knowledge::built_in()?, ..Notes::default() };
        for folder in self.overlays {
            let mut files = Vec::new();
            // A folder that is not mounted today takes no answer away.
            let mut names = match self.machine.list(folder) {
                Ok(names) => names,
                Err(error) => {
                    let (file, what) = (folder.display().to_string(), error.reason);
                    notes.errors.push(KnowledgeError { file, line: None, what });
                    continue;
                }
            };
            names.sort_unstable();
            let paths = names.into_iter().map(|name| folder.join(name));
            for path in paths.filter(|path| path.extension().is_some_and(|end| end == "md")) {
                let content = self.machine.open(&path).and_then(|content| {
                    content.read_all(NOTE_LIMIT).map_err(|error| FileError::from_io(&path, &error))
                });
                let file = path.display().to_string();
                match content {
                    Ok(bytes) => files.push((file, bytes)),
                    // Somebody else's folder may hold what is not for everybody.
                    Err(error) => {
                        let what = error.reason;
                        notes.errors.push(KnowledgeError { file, line: None, what });
                    }
                }
            }
            notes = notes.with_overlay(files);
        }
        Ok(notes)
    }
}

/// A note is a page or two; what is larger is cut.
const NOTE_LIMIT: u64 = 1 << 20;

/// Writes a file that somebody asked for by name, whole or not at all.
fn write_named(path: &Path, bytes: &[u8]) -> Result<(), AnswerError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let store = Store::at(folder.unwrap_or(Path::new(".")));
    store.replace(&name, bytes).map_err(AnswerError::Results)
}

/// A family file that had to be left out.
fn left_out(error: &KnowledgeError) -> Notice {
    Notice::warning("note-left-out", format!("notes were left out: {error}"))
        .hint("jobwise kb check proves every note")
}

/// Why there is no answer at all. A degraded answer is not an error: it has notices.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The scheduler could not be asked, or does not know.
    #[error(transparent)]
    Scheduler(#[from] SchedError),
    /// A file of saved accounting gives no history.
    #[error(transparent)]
    Saved(#[from] SavedError),
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
    /// What was asked for by the name of its file cannot be written there.
    #[error("could not write {0}")]
    Results(#[source] StoreError),
    /// Something is to be embedded, and the model cannot be used.
    #[error("vectors of notes need the embedding model: {reason}")]
    NoModel {
        /// In words.
        reason: String,
    },
    /// Nothing of what was given is the model or its library.
    #[error("neither the model nor its library is among what was given")]
    NothingGiven,
    /// The model or its library could not be had.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// There is no folder of our own: neither `HOME` nor `JOBWISE_HOME` is set.
    #[error("there is no folder to keep the index in")]
    NoStore,
    /// A file that was named cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// What was piped in is empty.
    #[error("there is nothing to read: {0} is empty")]
    NothingToRead(&'static str),
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
    /// There is no node of that name.
    #[error("there is no node '{name}' here: sbatch refuses a job that names it")]
    UnknownNode {
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
