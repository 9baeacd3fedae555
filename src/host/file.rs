//! Reading files by position, and why a file cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// An opened regular file. It may grow while it is read; [`Content::size`] is its size when it
/// was opened, and nothing beyond is read.
pub trait Content: Send + Sync {
    /// Bytes when opened.
    fn size(&self) -> u64;

    /// When it was last written, where that is known.
    fn modified(&self) -> Option<Timestamp>;

    /// The numeric id of its owner, where that is known.
    fn owner(&self) -> Option<u32> {
        None
    }

    /// Reads at a position into `buffer`; 0 at the end. Never moves a shared cursor.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The first byte at or after `offset` that is not in a hole; `None` when only a hole is left.
    /// A hole holds zeros, and no line end: what stands in it is known.
    fn next_data(&self, offset: u64) -> Option<u64> {
        (offset < self.size()).then_some(offset)
    }

    /// Where the gap ends that `offset` lies in; `None` where the byte can be had. What the file
    /// holds in a gap is not known, so nothing can be counted across it; it reads as zeros, and a
    /// read that begins before it ends there.
    fn gap(&self, _offset: u64) -> Option<u64> {
        None
    }

    /// Reads all of it, at most `limit` bytes.
    fn read_all(&self, limit: u64) -> io::Result<Vec<u8>> {
        let size = usize::try_from(self.size().min(limit)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < size {
            match self.read_at(filled as u64, &mut bytes[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// The part of a buffer that can be filled from an offset on, in a file of a size.
pub(super) fn within(size: u64, offset: u64, buffer: &mut [u8]) -> &mut [u8] {
    let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
    let length = buffer.len().min(left);
    &mut buffer[..length]
}

/// Bytes at hand, as a file that is never written to.
impl Content for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn modified(&self) -> Option<Timestamp> {
        None
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Why a path gave no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileErrorKind {
    /// There is nothing by that name.
    Absent,
    /// This user may not read it, or may not look into its directory.
    Denied,
    /// It is a directory.
    Directory,
    /// It is a FIFO, a socket or a device.
    Special,
    /// It was not read when the recording was made.
    NotRecorded,
    /// The system could not read it.
    Io,
}

/// A path that gave no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct FileError {
    /// The path.
    pub path: PathBuf,
    /// The kind of trouble.
    pub kind: FileErrorKind,
    /// In words.
    pub reason: String,
}

impl FileError {
    /// An error in the words that belong to its kind.
    pub fn new(path: &Path, kind: FileErrorKind) -> Self {
        let reason = match kind {
            FileErrorKind::Absent => "no such file",
            FileErrorKind::Denied => "you may not read it",
            FileErrorKind::Directory => "is a directory",
            FileErrorKind::Special => "is not a regular file",
            FileErrorKind::NotRecorded => "is not in the recording",
            FileErrorKind::Io => "could not be read",
        };
        Self { path: path.to_owned(), kind, reason: reason.to_owned() }
    }

    /// From a system error.
    pub fn from_io(path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileErrorKind::Absent,
            io::ErrorKind::PermissionDenied => FileErrorKind::Denied,
            io::ErrorKind::IsADirectory => FileErrorKind::Directory,
            _ => FileErrorKind::Io,
        };
        let mut made = Self::new(path, kind);
        if kind == FileErrorKind::Io {
            made.reason = error.to_string();
        }
        made
    }
}
