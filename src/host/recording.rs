//! Keeps everything that another [`Runner`] answers, so that it can be replayed elsewhere.
//!
//! What is kept is what is answered: secrets are masked before the caller sees the bytes, and a
//! huge file is reduced to its head and tail. So a run that records and its replay say the same.
//! The settings in force are kept too; notes of one's own (`--knowledge`) are not: those are of the
//! machine that replays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::manifest::{
    Answered, Blob, End, FORMAT, Kept, KeptOutcome, Listed, MANIFEST, Manifest, Range,
    RecordedCaller, Zone, blob_name,
};
use super::packed::{HEAD, Unpacked, is_packed, no_text, pack};
use super::piece::Piece;
use super::replay::Parts;
use super::{
    Caller, Cmd, Content, ExecError, FileError, Finished, RecordingError, Replay, Runner, Store,
};
use crate::text::mask_secrets;

/// A larger file is kept as this much of its head and of its tail.
const HALF: u64 = 32 << 20;

/// A [`Runner`] that writes down what it passes on.
pub struct Recording<'r> {
    inner: &'r dyn Runner,
    path: PathBuf,
    kept: Mutex<Replay>,
}

impl<'r> Recording<'r> {
    /// Starts a recording: one file where `path` ends in `.json`, else a folder. One that is
    /// there already is continued at its own clock and with its own settings, so that all of it
    /// speaks of one moment: ask [`Recording::settings`] which are in force.
    pub fn start(
        inner: &'r dyn Runner,
        path: &Path,
        settings: serde_json::Value,
    ) -> Result<Self, RecordingError> {
        let there = if is_file(path) { path.exists() } else { path.join(MANIFEST).exists() };
        let kept = if there { Some(Replay::load(path)?) } else { None };
        Ok(Self::of(inner, path, kept, settings))
    }

    /// Starts a recording anew, whatever is there.
    pub fn anew(inner: &'r dyn Runner, path: &Path, settings: serde_json::Value) -> Self {
        Self::of(inner, path, None, settings)
    }

    fn of(
        inner: &'r dyn Runner,
        path: &Path,
        kept: Option<Replay>,
        settings: serde_json::Value,
    ) -> Self {
        let kept = kept.unwrap_or_else(|| {
            let clock = inner.now();
            let zone = inner.zone();
            let caller = inner.caller();
            let manifest = Manifest {
                format: FORMAT,
                jobwise: env!("CARGO_PKG_VERSION").to_owned(),
                clock,
                zone: Zone {
                    name: zone.iana_name().map(str::to_owned),
                    offset_seconds: zone.to_offset(clock).seconds(),
                },
                caller: RecordedCaller { uid: caller.uid, name: caller.name },
                environment: BTreeMap::new(),
                settings: Some(settings),
                commands: Vec::new(),
                files: Vec::new(),
                directories: Vec::new(),
                blobs: BTreeMap::new(),
            };
            Replay::new(manifest, BTreeMap::new())
        });
        Self { inner, path: path.to_owned(), kept: Mutex::new(kept) }
    }

    /// How many queries it holds.
    pub fn queries(&self) -> usize {
        self.lock().manifest.commands.len()
    }

    /// Changes every text that it holds: what was asked, what was answered, who asked. `change` gets
    /// the command that a text belongs to. Files are dropped: what is in them is not known.
    pub fn rewrite(&self, change: &dyn Fn(&[String], &str) -> String) {
        let mut kept = self.lock();
        let blobs = std::mem::take(&mut kept.blobs);
        let mut commands = std::mem::take(&mut kept.manifest.commands);
        for answered in &mut commands {
            let argv = answered.argv.clone();
            let mut renew = |name: &mut String| {
                if let Some(bytes) = blobs.get(name) {
                    let text = change(&argv, &String::from_utf8_lossy(bytes));
                    *name = kept.keep(text.as_bytes());
                }
            };
            renew(&mut answered.stdout);
            if let End::Exit { stderr, .. } = &mut answered.end {
                renew(stderr);
            }
            for word in &mut answered.argv {
                *word = change(&[], word);
            }
        }
        let manifest = &mut kept.manifest;
        manifest.commands = commands;
        manifest.caller.name = manifest.caller.name.as_ref().map(|name| change(&[], name));
        manifest.files.clear();
        manifest.directories.clear();
        manifest.environment.clear();
    }

    /// The settings that this recording is made with.
    pub fn settings(&self) -> Option<serde_json::Value> {
        self.lock().settings().cloned()
    }

    /// Writes the recording.
    pub fn finish(&self) -> Result<(), RecordingError> {
        let kept = self.lock();
        let mut manifest = kept.manifest.clone();
        let (folder, name) = if is_file(&self.path) {
            manifest.blobs =
                kept.blobs.iter().map(|(name, bytes)| (name.clone(), Blob::new(bytes))).collect();
            let folder = self.path.parent().unwrap_or(Path::new(""));
            (folder, self.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        } else {
            (self.path.as_path(), MANIFEST.to_owned())
        };
        let store = Store::at(folder);
        let write = |name: &str, bytes: &[u8]| {
            store
                .replace(name, bytes)
                .map_err(|error| RecordingError::Io { path: error.path, source: error.source })
        };
        if manifest.blobs.is_empty() {
            for (name, bytes) in &kept.blobs {
                let name = format!("blobs/{name}");
                if !folder.join(&name).exists() {
                    write(&name, bytes)?;
                }
            }
        }
        let json = serde_json::to_vec_pretty(&manifest)
            .map_err(|source| RecordingError::Malformed { path: self.path.clone(), source })?;
        write(&name, &json)
    }

    fn lock(&self) -> MutexGuard<'_, Replay> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

impl Replay {
    fn keep(&mut self, bytes: &[u8]) -> String {
        let name = blob_name(bytes);
        self.blobs.entry(name.clone()).or_insert_with(|| bytes.to_vec().into());
        name
    }
}

/// Masks cell by cell what stands between the delimiters that clients are asked to print: a secret
/// without a blank behind it would take the next cells with it.
fn mask_cells(stdout: &mut [u8]) {
    const DELIMITER: &[u8] = b"@~@";
    let mut rest = stdout;
    loop {
        let end = memchr::memmem::find(rest, DELIMITER).unwrap_or(rest.len());
        let (cell, behind) = rest.split_at_mut(end);
        mask_secrets(cell);
        let skipped = behind.len().min(DELIMITER.len());
        if skipped == 0 {
            return;
        }
        rest = &mut behind[skipped..];
    }
}

impl Runner for Recording<'_> {
    fn stream(&self, cmd: &Cmd, sink: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError> {
        let mut stdout = Vec::new();
        let mut result = self.inner.stream(cmd, &mut |chunk| stdout.extend_from_slice(chunk));
        if matches!(result, Err(ExecError::NotAllowed { .. })) {
            return result;
        }
        mask_cells(&mut stdout);
        if let Ok(finished) = &mut result {
            mask_secrets(&mut finished.stderr);
        }
        sink(&stdout);
        let mut kept = self.lock();
        let stderr = match &result {
            Ok(finished) => kept.keep(&finished.stderr),
            Err(_) => String::new(),
        };
        let answered = Answered {
            argv: cmd.argv(),
            stdout: kept.keep(&stdout),
            end: End::of(&result, |_| stderr.clone()),
        };
        kept.manifest.commands.retain(|known| known.argv != answered.argv);
        kept.manifest.commands.push(answered);
        result
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        let opened = self.inner.open(path).and_then(|content| {
            parts(path, content).map_err(|error| FileError::from_io(path, &error))
        });
        let outcome = match &opened {
            Err(error) => KeptOutcome::Error(error.kind),
            Ok(parts) => KeptOutcome::Content {
                size: parts.size,
                modified: parts.modified,
                owner: parts.owner,
                ranges: parts
                    .kept
                    .iter()
                    .map(|(offset, bytes)| Range { offset: *offset, blob: self.lock().keep(bytes) })
                    .collect(),
            },
        };
        let mut kept = self.lock();
        let path = path.to_string_lossy().into_owned();
        kept.manifest.files.retain(|known| known.path != path);
        kept.manifest.files.push(Kept { path, outcome });
        opened.map(|parts| Box::new(parts) as Box<dyn Content>)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        let listed = self.inner.list(directory);
        let outcome = listed.clone().map_err(|error| error.kind);
        let path = directory.to_string_lossy().into_owned();
        let mut kept = self.lock();
        kept.manifest.directories.retain(|known| known.path != path);
        kept.manifest.directories.push(Listed { path, outcome });
        listed
    }

    fn now(&self) -> Timestamp {
        self.lock().manifest.clock
    }

    fn zone(&self) -> TimeZone {
        self.lock().zone()
    }

    fn env(&self, name: &str) -> Option<String> {
        let value = self.inner.env(name);
        self.lock().manifest.environment.insert(name.to_owned(), value.clone());
        value
    }

    fn caller(&self) -> Caller {
        self.lock().caller()
    }
}

/// Head and tail of a file, or all of it, with secrets masked at the same length.
///
/// Of a packed file the text is masked and packed again: in it a secret could not be seen. Of one that is
/// not unpacked here only so much is kept as tells that.
fn parts(path: &Path, content: Box<dyn Content>) -> std::io::Result<Parts> {
    let owner = content.owner();
    if is_packed(&*content) {
        let text = Unpacked::new(content, 2 * HALF);
        let modified = text.modified();
        let mut bytes = text.read_all(2 * HALF)?;
        mask_secrets(&mut bytes);
        let packed: Piece = pack(&bytes, text.trouble().is_none())?.into();
        return Ok(Parts { size: packed.len() as u64, modified, owner, kept: vec![(0, packed)] });
    }
    let size = content.size();
    let spans: &[(u64, u64)] = if no_text(&path.to_string_lossy(), &*content).is_some() {
        &[(0, size.min(HEAD as u64))]
    } else if size <= 2 * HALF {
        &[(0, size)]
    } else {
        &[(0, HALF), (size - HALF, HALF)]
    };
    let mut kept = Vec::new();
    for &(start, length) in spans {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let mut filled = 0;
        while filled < bytes.len() {
            match content.read_at(start + filled as u64, &mut bytes[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        mask_secrets(&mut bytes);
        kept.push((start, bytes.into()));
    }
    Ok(Parts { size, modified: content.modified(), owner, kept })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make their own files")]

    use std::io::Write;

    use super::*;
    use crate::host::{FileErrorKind, System};

    /// Asks one runner everything that the test compares.
    fn answers(runner: &dyn Runner, file: &Path) -> String {
        let missing = runner.run(&Cmd::new("sinfo", &["--noheader", "--format=%P"]));
        let refused = runner.run(&Cmd::new("scontrol", &["update", "x=y"]));
        let content = runner.open(file).map(|content| {
            let bytes = content.read_all(u64::MAX).expect("readable");
            (content.size(), content.modified(), content.owner(), bytes)
        });
        let absent = runner.open(Path::new("/no/such/file")).map(|_| ());
        let list = runner.list(file.parent().expect("a folder"));
        let offset = runner.zone().to_offset(runner.now());
        format!(
            "{missing:?} {refused:?} {content:?} {absent:?} {list:?} {:?} {offset} {:?} {:?}",
            runner.now(),
            runner.env("JOBWISE_TEST_UNSET"),
            runner.caller(),
        )
    }

    #[test]
    fn a_replay_says_what_the_recorded_run_said() {
        for form in ["folder", "file.json"] {
            let root = std::env::temp_dir().join(format!("jobwise-{}-{form}", std::process::id()));
            let logs = root.join("logs");
            std::fs::create_dir_all(&logs).expect("made");
            let log = logs.join("job.out");
            let mut file = std::fs::File::create(&log).expect("made");
            file.write_all(b"a\x00b \xff text\n").expect("written");

            let system = System::new(false);
            let settings = serde_json::json!({"a": 1});
            let recording = Recording::start(&system, &root.join(form), settings).expect("started");
            let said = answers(&recording, &log);
            recording.finish().expect("written");
            let replay = Replay::load(&root.join(form)).expect("read back");
            assert_eq!(answers(&replay, &log), said);
            assert_eq!(replay.settings(), Some(&serde_json::json!({"a": 1})));
            // Continued, it keeps its own.
            let again = Recording::start(&system, &root.join(form), serde_json::json!({}));
            assert_eq!(again.expect("continued").settings().as_ref(), replay.settings());

            let unasked = replay.open(Path::new("/etc/passwd")).map(|_| ());
            assert_eq!(unasked.expect_err("not asked").kind, FileErrorKind::NotRecorded);
            let unasked = (&replay as &dyn Runner).run(&Cmd::new("sacct", &["--helpformat"]));
            assert!(matches!(unasked, Err(ExecError::NotRecorded { .. })));
            std::fs::remove_dir_all(&root).expect("removed");
        }
    }

    /// A name `token=abcdefgh12` took the rest of its row with it, which then was no record any more.
    #[test]
    fn a_secret_ends_with_its_cell() {
        let mut row =
            b"400@~@token=abcdefgh12@~@FAILED@~@1:0\n401@~@fit@~@COMPLETED@~@0:0\n".to_vec();
        mask_cells(&mut row);
        let row = String::from_utf8(row).expect("text");
        assert!(!row.contains("abcdefgh12"), "{row}");
        let cells: Vec<usize> = row.lines().map(|line| line.split("@~@").count()).collect();
        assert_eq!(cells, [4, 4], "{row}");
        assert!(row.ends_with("@~@FAILED@~@1:0\n401@~@fit@~@COMPLETED@~@0:0\n"), "{row}");
    }

    #[test]
    fn what_is_no_recording_is_told_with_its_place() {
        let error = |json: &str| {
            Replay::parse(Path::new("x.json"), json.as_bytes()).expect_err("refused").to_string()
        };
        assert!(error("{\"format\": 99}").contains("format 99"), "{}", error("{\"format\": 99}"));
        assert!(error("{}").starts_with("x.json: not a recording"));
        assert!(error("").contains("line 1"));
        let file = |size: u64, ranges: &str| {
            let json = format!(
                r#"{{"format": 1, "jobwise": "", "clock": "2026-11-30T00:00:00Z", "environment": {{}},
                "zone": {{"name": null, "offset_seconds": 0}}, "caller": {{"uid": 1, "name": null}},
                "commands": [], "directories": [], "blobs": {{"aa": {{"text": "four"}}}}, "files": [
                {{"path": "/f", "outcome": {{"content": {{"size": {size}, "modified": null,
                "ranges": [{ranges}]}}}}}}]}}"#
            );
            Replay::parse(Path::new("x.json"), json.as_bytes()).map_err(|error| error.to_string())
        };
        let at = |offset: u64| format!(r#"{{"offset": {offset}, "blob": "aa"}}"#);
        let outside = "x.json: not a recording: the parts of /f do not fit in it";
        assert_eq!(file(u64::MAX, &at(u64::MAX - 1)).expect_err("outside"), outside);
        assert_eq!(file(7, &at(4)).expect_err("outside"), outside);
        assert_eq!(file(9, &format!("{},{}", at(0), at(3))).expect_err("over another"), outside);
        let absent = file(9, r#"{"offset": 0, "blob": "../../etc/passwd"}"#).expect_err("absent");
        assert_eq!(absent, "x.json: not a recording: the blob '../../etc/passwd' is not there");
        // In any order, and with a gap to the end of what a number can hold.
        let whole = file(u64::MAX, &format!("{},{}", at(8), at(4))).expect("sound");
        let content = whole.open(Path::new("/f")).expect("there");
        let read = |offset| {
            let mut bytes = [b'x'; 16];
            let count = content.read_at(offset, &mut bytes).expect("read");
            String::from_utf8(bytes[..count].to_vec()).expect("text")
        };
        assert_eq!((read(4).as_str(), read(0).as_str()), ("fourfour", "\0\0\0\0"));
        assert_eq!(
            (content.gap(0), content.gap(5), content.gap(12)),
            (Some(4), None, Some(u64::MAX))
        );
        assert_eq!(read(u64::MAX - 2), "\0\0");
    }

    #[test]
    fn a_huge_file_keeps_its_head_and_tail_at_their_places() {
        let size = 2 * HALF + 1_000_000;
        let path = std::env::temp_dir().join(format!("jobwise-huge-{}", std::process::id()));
        let mut file = std::fs::File::create(&path).expect("made");
        file.write_all(b"head").expect("written");
        file.set_len(size - 4).expect("sparse");
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).expect("sought");
        file.write_all(b"tail").expect("written");
        let content = System::new(false).open(&path).expect("opened");
        let parts = parts(&path, content).expect("read");
        let at = |offset| {
            let mut four = [0; 4];
            parts.read_at(offset, &mut four).expect("read");
            four
        };
        assert_eq!((at(0), at(size - 4), at(size / 2)), (*b"head", *b"tail", [0; 4]));
        assert_eq!((parts.gap(HALF - 1), parts.gap(HALF + 1)), (None, Some(size - HALF)));
        std::fs::remove_file(&path).expect("removed");
    }
}
