//! The format of a recording: what was asked of the outside, and what came back.
//!
//! A recording is a folder (`manifest.json` and `blobs/`) or one JSON file that holds the same.
//! Formats are numbered; older ones stay readable.
//!
//! What is kept is checked when it is read: a recording may come from anybody.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Cmd, ExecError, FileErrorKind, Finished};

/// The format written today.
pub(super) const FORMAT: u32 = 1;
/// The name of the manifest in a recording's folder.
pub(super) const MANIFEST: &str = "manifest.json";

/// Why a recording could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The path holds no recording, or cannot be reached.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The manifest is not what it should be.
    #[error("{path}: not a recording: {source}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// It is JSON of the right form, but does not hold together.
    #[error("{path}: not a recording: {reason}", path = path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It was written by a newer jobwise.
    #[error("{path}: recording format {found}, this jobwise reads up to {FORMAT}", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

/// All that a recording says, without the contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) jobwise: String,
    pub(super) clock: Timestamp,
    pub(super) zone: Zone,
    pub(super) caller: RecordedCaller,
    pub(super) environment: BTreeMap<String, Option<String>>,
    /// The settings that were in force; `None` in recordings of before they were kept. What they
    /// mean is known above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) settings: Option<serde_json::Value>,
    pub(super) commands: Vec<Answered>,
    pub(super) files: Vec<Kept>,
    pub(super) directories: Vec<Listed>,
    /// Only in the one-file form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) blobs: BTreeMap<String, Blob>,
}

/// The zone by name, and its offset at the recording's clock for machines that lack the name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Zone {
    pub(super) name: Option<String>,
    pub(super) offset_seconds: i32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedCaller {
    pub(super) uid: u32,
    pub(super) name: Option<String>,
}

/// One command and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) argv: Vec<String>,
    pub(super) stdout: String,
    pub(super) end: End,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Exit { status: Option<i32>, stderr: String },
    Missing,
    TimedOut { after_seconds: u64 },
    NotAsked { hung: String },
    Truncated { cap: u64 },
    Failed { reason: String },
}

/// A file: its size, and the parts of it that were kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) path: String,
    pub(super) outcome: KeptOutcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeptOutcome {
    Content {
        size: u64,
        modified: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<u32>,
        ranges: Vec<Range>,
    },
    Error(FileErrorKind),
}

/// A kept part of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) offset: u64,
    pub(super) blob: String,
}

/// A directory that was listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) path: String,
    pub(super) outcome: Result<Vec<String>, FileErrorKind>,
}

/// Content in the one-file form: text where it is UTF-8, else one character for each byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Blob {
    Text(String),
    Bytes(String),
}

impl Blob {
    pub(super) fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.iter().map(|&byte| char::from(byte)).collect()),
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            // A character beyond one byte was not written by us; `?` keeps the length.
            Self::Bytes(text) => text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect(),
        }
    }
}

/// The name under which content is kept.
pub(super) fn blob_name(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..24].to_owned()
}

impl End {
    pub(super) fn of(result: &Result<Finished, ExecError>, keep: impl Fn(&[u8]) -> String) -> Self {
        match result {
            Ok(finished) => Self::Exit { status: finished.status, stderr: keep(&finished.stderr) },
            Err(ExecError::Missing { .. }) => Self::Missing,
            // In whole seconds, as it is told.
            Err(ExecError::TimedOut { after, .. }) => {
                let seconds = after.as_millis().div_ceil(1000);
                Self::TimedOut { after_seconds: u64::try_from(seconds).unwrap_or(u64::MAX) }
            }
            Err(ExecError::NotAsked { hung, .. }) => Self::NotAsked { hung: hung.clone() },
            Err(ExecError::Truncated { cap, .. }) => Self::Truncated { cap: *cap },
            Err(error) => Self::Failed { reason: error.to_string() },
        }
    }

    pub(super) fn result(
        &self,
        cmd: &Cmd,
        blob: impl Fn(&str) -> Vec<u8>,
    ) -> Result<Finished, ExecError> {
        let command = cmd.brief();
        match self {
            Self::Exit { status, stderr } => Ok(Finished { status: *status, stderr: blob(stderr) }),
            Self::Missing => Err(ExecError::Missing { program: cmd.program.to_owned() }),
            Self::TimedOut { after_seconds } => {
                Err(ExecError::TimedOut { command, after: Duration::from_secs(*after_seconds) })
            }
            Self::NotAsked { hung } => Err(ExecError::NotAsked { command, hung: hung.clone() }),
            Self::Truncated { cap } => Err(ExecError::Truncated { command, cap: *cap }),
            Self::Failed { reason } => Err(ExecError::Io { command, reason: reason.clone() }),
        }
    }
}
