//! The history that a question is about: the cluster's, or that of files.
//!
//! Every question about many runs begins here, so all of them mean the same by a window, a filter
//! and a file.

use std::path::PathBuf;

use super::diagnose::open_given;
use super::{AnswerError, World};
use crate::host::{Unpacked, is_packed};
use crate::model::{History, Notice};
use crate::sched::{Depth, Filter, Saved, SchedError};

/// A packed file of accounting that holds more text than this is read so far.
const UNPACKED: u64 = 64 << 30;

/// Which history.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Whose runs, and which window.
    pub filter: Filter,
    /// How deep it is read.
    pub depth: Depth,
    /// Files of saved accounting, packed by gzip or not; the cluster is asked where there are none.
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
    let mut notices = Vec::new();
    for path in &wanted.files {
        let content = open_given(world, path)?;
        if !is_packed(&*content) {
            saved.read(path, &*content)?;
            continue;
        }
        let text = Unpacked::new(content, UNPACKED);
        if let Some(trouble) = text.trouble() {
            notices.push(Notice::warning("packed-file", format!("{}: {trouble}", path.display())));
        }
        saved.read(path, &text)?;
    }
    let mut history = saved.finish(&wanted.filter);
    history.notices.append(&mut notices);
    Ok(history)
}
