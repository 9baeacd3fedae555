//! The history that a question is about: the cluster's, or that of files.
//!
//! Every question about many runs begins here, so all of them mean the same by a window, a filter
//! and a file.

use std::path::PathBuf;

use super::{AnswerError, World};
use crate::model::History;
use crate::sched::{Depth, Filter, Saved, SchedError};

/// Which history.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Whose runs, and which window.
    pub filter: Filter,
    /// How deep it is read.
    pub depth: Depth,
    /// Files of saved accounting; the cluster is asked where there are none.
    pub files: Vec<PathBuf>,
    /// The columns of files without a heading.
    pub columns: Vec<String>,
}

/// Reads it. The texts of its runs are as they were written: mask what leaves in an answer.
pub fn past(world: World<'_>, wanted: &Wanted) -> Result<History, AnswerError> {
    if wanted.files.is_empty() {
        let backend = world.backend();
        let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
        return Ok(source.past(&wanted.filter, wanted.depth)?);
    }
    let mut saved = Saved::new(world.cluster.zone(), wanted.columns.clone());
    for path in &wanted.files {
        let content = world.cluster.open(path)?;
        saved.read(path, &*content)?;
    }
    Ok(saved.finish(&wanted.filter))
}
