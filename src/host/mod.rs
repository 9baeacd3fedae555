//! The only door to processes, files, the clock and the environment.
//!
//! Everything else asks a [`Runner`]. There are three: [`System`] is the machine, [`Recording`]
//! wraps it and keeps what it answered, [`Replay`] answers from what was kept. The demo cluster,
//! every fixture and a bug report are recordings, so one mechanism serves them all.
//!
//! Nothing here knows what an answer means. What may be asked at all stands in [`allow`]: queries
//! only, by the shape of their arguments.

pub mod allow;
mod columns;
mod command;
mod file;
mod manifest;
mod nodetop;
pub mod packages;
mod packed;
mod patience;
mod piece;
mod piped;
mod recording;
mod replay;
mod store;
mod system;

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use command::{Cmd, ExecError, Finished, Output};
pub use file::{Content, FileError, FileErrorKind};
pub use manifest::RecordingError;
pub use packed::{Unpacked, is_packed, no_text};
pub use recording::Recording;
pub use replay::Replay;
pub use store::{Store, StoreError};
pub use system::System;

/// Who runs jobwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The numeric user id.
    pub uid: u32,
    /// The login name, where it is known.
    pub name: Option<String>,
}

impl Caller {
    /// Whether a file may be read for the job of the user with this id. A job's owner chooses the names
    /// of its files; whoever may read more must not be led to files that its owner could not show.
    pub fn may_read_for(&self, owner: Option<u64>, content: &dyn Content) -> bool {
        let (Some(job), Some(file)) = (owner, content.owner()) else { return true };
        job == u64::from(self.uid) || job == u64::from(file)
    }
}

/// The outside world.
pub trait Runner: Sync {
    /// Runs one allow-listed query. Standard output goes to `sink` in chunks as it comes;
    /// standard error is kept, bounded. A non-zero exit is not an error here: the caller knows
    /// what its program means by it.
    fn stream(&self, cmd: &Cmd, sink: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError>;

    /// Runs one allow-listed query and collects what it prints; what is at hand is not copied.
    fn run(&self, cmd: &Cmd) -> Result<Output<'_>, ExecError> {
        let mut stdout = Vec::new();
        let finished = self.stream(cmd, &mut |chunk| stdout.extend_from_slice(chunk))?;
        Ok(Output { stdout: stdout.into(), finished })
    }

    /// Opens a regular file for reading; anything else (a directory, FIFO, device) is refused
    /// without blocking.
    fn open(&self, path: &Path) -> Result<Box<dyn Content>, FileError>;

    /// The same for files of a folder that anybody may have put there: a link is refused, for it
    /// may point at what only the caller may read.
    fn open_itself(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        self.open(path)
    }

    /// Reads what somebody pipes in to its end: standard input for `-`, else a FIFO that was named. Only
    /// the machine itself can.
    fn piped(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        Err(FileError::new(path, FileErrorKind::Special))
    }

    /// The names in a directory, sorted.
    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError>;

    /// The current time; in a replay, the time of the recording.
    fn now(&self) -> Timestamp;

    /// The time zone in which people here read times.
    fn zone(&self) -> TimeZone;

    /// An environment variable; one that is not UTF-8 counts as unset.
    fn env(&self, name: &str) -> Option<String>;

    /// Who runs jobwise.
    fn caller(&self) -> Caller;
}
