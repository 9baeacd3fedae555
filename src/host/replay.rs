//! Answers from a recording instead of the machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::file::within;
use super::manifest::{Answered, End, FORMAT, Kept, KeptOutcome, MANIFEST, Manifest, Range};
use super::piece::Piece;
use super::{
    Caller, Cmd, Content, ExecError, FileError, FileErrorKind, Finished, Output, RecordingError,
    Runner, System, Unpacked, allow, columns, nodetop,
};

/// A recording keeps at most 64 MiB of each log; a file of it that is larger than this is none.
const LARGEST: u64 = 4 << 30;

/// A recording that answers.
#[derive(Debug)]
pub struct Replay {
    pub(super) manifest: Manifest,
    pub(super) blobs: BTreeMap<String, Piece>,
    is_demo: bool,
    /// Whether its queries are another program's.
    is_foreign: bool,
}

impl Replay {
    pub(super) fn new(manifest: Manifest, blobs: BTreeMap<String, Piece>) -> Self {
        Self { manifest, blobs, is_demo: false, is_foreign: false }
    }

    /// Reads a recording from its folder or file.
    pub fn load(path: &Path) -> Result<Self, RecordingError> {
        if path.is_dir() {
            let manifest = path.join(MANIFEST);
            let mut replay = Self::read_manifest(&manifest, read(&manifest)?.into())?;
            let folder = path.join("blobs");
            for name in replay.blob_names() {
                // A blob's name is a hash: nothing in a manifest points outside the folder.
                if !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    let reason = format!("'{name}' is no name of a blob");
                    return Err(RecordingError::Broken { path: manifest, reason });
                }
                let bytes = read(&folder.join(&name))?;
                replay.blobs.insert(name, bytes.into());
            }
            replay.checked(&manifest)
        } else {
            Self::read_manifest(path, read(path)?.into())?.checked(path)
        }
    }

    /// Reads the one-file form; `path` is for messages.
    pub fn parse(path: &Path, json: &[u8]) -> Result<Self, RecordingError> {
        Self::read_manifest(path, json.into())?.checked(path)
    }

    /// The demo cluster, whose users have no recording of their own: what it cannot answer is told
    /// in other words.
    pub fn demo(json: &[u8]) -> Result<Self, RecordingError> {
        Ok(Self { is_demo: true, ..Self::parse(Path::new("demo"), json)? })
    }

    /// Also answers what another recording of the same cluster answers, packed by gzip; where both
    /// have an answer this one's counts.
    pub fn join(&mut self, packed: &[u8]) -> Result<(), RecordingError> {
        let path = Path::new("demo");
        let text = Unpacked::new(Box::new(packed.to_vec()), LARGEST).read_all(LARGEST);
        let text = text.map_err(|source| RecordingError::Io { path: path.to_owned(), source })?;
        let other = Self::parse(path, &text)?;
        self.manifest.commands.extend(other.manifest.commands);
        self.manifest.files.extend(other.manifest.files);
        self.manifest.directories.extend(other.manifest.directories);
        // Named by their contents.
        self.blobs.extend(other.blobs);
        Ok(())
    }

    fn read_manifest(path: &Path, json: Cow<'_, [u8]>) -> Result<Self, RecordingError> {
        /// Read first, so that a newer format is told as such and not as a strange field.
        #[derive(serde::Deserialize)]
        struct Head {
            format: u32,
        }
        let malformed = |source| RecordingError::Malformed { path: path.to_owned(), source };
        if nodetop::is_snapshot(&json) {
            let (machine, json) = (System::default(), json.into_owned());
            let (manifest, blobs) = nodetop::parse(path, json, machine.now(), &machine.zone())?;
            return Ok(Self { is_foreign: true, ..Self::new(manifest, blobs) });
        }
        let head: Head = serde_json::from_slice(&json).map_err(malformed)?;
        if head.format > FORMAT {
            return Err(RecordingError::Newer { path: path.to_owned(), found: head.format });
        }
        let mut manifest: Manifest = serde_json::from_slice(&json).map_err(malformed)?;
        let blobs = std::mem::take(&mut manifest.blobs)
            .into_iter()
            .map(|(name, blob)| (name, blob.into_bytes().into()))
            .collect();
        Ok(Self::new(manifest, blobs))
    }

    /// Puts the parts of each file in order; refuses what is named and not there, and parts that
    /// lie outside their file or over each other.
    fn checked(mut self, path: &Path) -> Result<Self, RecordingError> {
        let broken = |reason| RecordingError::Broken { path: path.to_owned(), reason };
        let absent = self.blob_names().into_iter().find(|name| !self.blobs.contains_key(name));
        if let Some(name) = absent {
            return Err(broken(format!("the blob '{name}' is not there")));
        }
        for Kept { path: file, outcome } in &mut self.manifest.files {
            let KeptOutcome::Content { size, ranges, .. } = outcome else { continue };
            ranges.sort_by_key(|range| range.offset);
            let mut free = 0;
            for Range { offset, blob } in ranges {
                let length = self.blobs.get(blob).map_or(0, |bytes| bytes.len() as u64);
                let end = offset.checked_add(length).filter(|end| *end <= *size);
                match end {
                    Some(end) if *offset >= free => free = end,
                    _ => return Err(broken(format!("the parts of {file} do not fit in it"))),
                }
            }
        }
        Ok(self)
    }

    /// The settings that were in force when the recording was made, in the form of
    /// [`super::Recording::start`]; `None` in recordings of before they were kept.
    pub fn settings(&self) -> Option<&serde_json::Value> {
        self.manifest.settings.as_ref()
    }

    /// Whether it is a snapshot of another program, which names no time zone.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Every job id that the recording was asked about, in order, each once.
    pub fn job_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for answered in &self.manifest.commands {
            for id in answered.argv.iter().filter_map(|arg| arg.strip_prefix("--jobs=")) {
                if !ids.iter().any(|known| known == id) {
                    ids.push(id.to_owned());
                }
            }
        }
        ids
    }

    fn blob_names(&self) -> Vec<String> {
        let commands = self.manifest.commands.iter().flat_map(|answered| {
            let stderr = match &answered.end {
                End::Exit { stderr, .. } => Some(stderr.clone()),
                _ => None,
            };
            stderr.into_iter().chain([answered.stdout.clone()])
        });
        let ranges = self.manifest.files.iter().flat_map(|kept| match &kept.outcome {
            KeptOutcome::Content { ranges, .. } => {
                ranges.iter().map(|range| range.blob.clone()).collect()
            }
            KeptOutcome::Error(_) => Vec::new(),
        });
        // What is empty needs no blob.
        let mut names: Vec<String> =
            commands.chain(ranges).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn blob(&self, name: &str) -> Piece {
        self.blobs.get(name).cloned().unwrap_or_default()
    }

    /// What was recorded of a command, in the columns that it asks for.
    fn answer(&self, cmd: &Cmd) -> Result<(&Answered, Cow<'_, [u8]>), ExecError> {
        if !allow::permits(cmd) {
            return Err(ExecError::NotAllowed { command: cmd.to_string() });
        }
        let answered = self.answered(cmd).ok_or_else(|| {
            if self.is_demo {
                ExecError::NotInDemo
            } else {
                ExecError::NotRecorded { command: cmd.brief() }
            }
        })?;
        let stdout = self.blobs.get(&answered.stdout).map_or(&[][..], |bytes| bytes);
        let table = if self.is_foreign {
            nodetop::columns(answered, cmd, stdout)
        } else {
            columns::projected(answered, cmd, stdout)
        };
        Ok((answered, table.map_or(Cow::Borrowed(stdout), Cow::Owned)))
    }

    fn answered(&self, cmd: &Cmd) -> Option<&Answered> {
        let argv = cmd.argv();
        let found = self.manifest.commands.iter().find(|answered| answered.argv == argv);
        let commands = &self.manifest.commands;
        found.or_else(|| {
            if self.is_foreign {
                nodetop::answered(commands, cmd)
            } else {
                columns::answered(commands, cmd)
            }
        })
    }

    fn kept(&self, path: &str) -> Option<&Kept> {
        self.manifest.files.iter().find(|kept| kept.path == path)
    }
}

/// A part of a recording, read past the Runner that it makes. No device, no FIFO: such a file would
/// never end, or never begin.
fn read(path: &Path) -> Result<Vec<u8>, RecordingError> {
    let io = |source| RecordingError::Io { path: path.to_owned(), source };
    let content =
        System::default().open(path).map_err(|error| io(io::Error::other(error.reason)))?;
    if content.size() > LARGEST {
        return Err(io(io::Error::other("is too large for a recording")));
    }
    content.read_all(LARGEST).map_err(io)
}

impl Runner for Replay {
    fn stream(&self, cmd: &Cmd, sink: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError> {
        let (answered, stdout) = self.answer(cmd)?;
        sink(&stdout);
        answered.end.result(cmd, |name| self.blob(name).to_vec())
    }

    fn run(&self, cmd: &Cmd) -> Result<Output<'_>, ExecError> {
        let (answered, stdout) = self.answer(cmd)?;
        let finished = answered.end.result(cmd, |name| self.blob(name).to_vec())?;
        Ok(Output { stdout, finished })
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        let kept = path.to_str().and_then(|text| self.kept(text));
        match kept.map(|kept| &kept.outcome) {
            None => Err(FileError::new(path, FileErrorKind::NotRecorded)),
            Some(KeptOutcome::Error(kind)) => Err(FileError::new(path, *kind)),
            Some(KeptOutcome::Content { size, modified, owner, ranges }) => {
                let kept =
                    ranges.iter().map(|range| (range.offset, self.blob(&range.blob))).collect();
                Ok(Box::new(Parts { size: *size, modified: *modified, owner: *owner, kept }))
            }
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        let path = directory.to_str().unwrap_or_default();
        let listed = self.manifest.directories.iter().find(|listed| listed.path == path);
        match listed.map(|listed| &listed.outcome) {
            None => Err(FileError::new(directory, FileErrorKind::NotRecorded)),
            Some(Ok(names)) => Ok(names.clone()),
            Some(Err(kind)) => Err(FileError::new(directory, *kind)),
        }
    }

    fn now(&self) -> Timestamp {
        self.manifest.clock
    }

    fn zone(&self) -> TimeZone {
        let zone = &self.manifest.zone;
        let named = zone.name.as_deref().and_then(|name| TimeZone::get(name).ok());
        named.unwrap_or_else(|| {
            TimeZone::fixed(Offset::from_seconds(zone.offset_seconds).unwrap_or(Offset::UTC))
        })
    }

    fn env(&self, name: &str) -> Option<String> {
        self.manifest.environment.get(name).cloned().flatten()
    }

    fn caller(&self) -> Caller {
        let caller = &self.manifest.caller;
        Caller { uid: caller.uid, name: caller.name.clone() }
    }
}

/// A file of which parts are held in memory; between them are gaps.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) size: u64,
    pub(super) modified: Option<Timestamp>,
    pub(super) owner: Option<u32>,
    /// Start and bytes of each part, in order; none lies over another or beyond the size.
    pub(super) kept: Vec<(u64, Piece)>,
}

impl Parts {
    /// The index of the first part that ends behind an offset.
    fn at(&self, offset: u64) -> usize {
        self.kept.partition_point(|(start, bytes)| start + bytes.len() as u64 <= offset)
    }
}

impl Content for Parts {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Timestamp> {
        self.modified
    }

    fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// One read gives what is kept up to the next gap, or the zeros of a gap, never both.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let buffer = within(self.size, offset, buffer);
        buffer.fill(0);
        let usize = |length: u64| usize::try_from(length).unwrap_or(usize::MAX);
        let mut filled = 0;
        for (start, bytes) in &self.kept[self.at(offset)..] {
            let position = offset + filled as u64;
            if *start > position {
                // A gap: the read ends before it, or is of nothing else.
                let gap = usize(start - position).min(buffer.len());
                return Ok(if filled > 0 { filled } else { gap });
            }
            let rest = &bytes[usize(position - start)..];
            let count = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&rest[..count]);
            filled += count;
            if filled == buffer.len() {
                return Ok(filled);
            }
        }
        Ok(if filled > 0 { filled } else { buffer.len() })
    }

    fn gap(&self, offset: u64) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        let next = self.kept.get(self.at(offset)).map_or(self.size, |(start, _)| *start);
        (next > offset).then_some(next)
    }
}
