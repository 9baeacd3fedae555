//! Accounting that somebody saved: a history without a scheduler at hand.
//!
//! A file is known by how it begins: `sacct` with a heading and any delimiter, `sacct --json`, or
//! our own export. All files of one call are read together, so a job whose rows lie in two of them
//! is one run, and a file that is named twice counts once. Nothing is asked of a cluster; a record
//! that is open stays open.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::slurm::{DELIMITED, Heading, Loader, TextReader, Unread, json};
use super::{Filter, slurm};
use crate::host::{Content, FileError};
use crate::model::{History, Notice, RUN_SCHEMA, Run, run_fields};
use crate::text;

/// Read at a time.
const PIECE: usize = 256 << 10;
/// A document is read as a whole; larger ones are not written by anybody who can wait for them.
const DOCUMENT: u64 = 4 << 30;

/// What programs of Windows write before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a file gives no history.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It has no heading, and nobody said what its columns are.
    #[error("{}: no heading says what its columns are", path.display())]
    NoHeading {
        /// The file.
        path: PathBuf,
    },
    /// It is no document of accounting.
    #[error("{}: {reason}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Files of accounting that are read together.
pub struct Saved {
    loader: Loader,
    columns: Vec<String>,
    unreadable: usize,
    /// Where the first of those are, and why they could not be read.
    unread: Vec<String>,
    /// Jobs of documents that lost their exit codes.
    exits: usize,
    /// Files that do not say how long a run was.
    timeless: Vec<String>,
}

/// What a file is, by how it begins.
enum Form {
    Text(Box<Heading>),
    Document,
    Lines,
    Table,
}

impl Saved {
    /// Local times are of a zone; `columns` are those of files without a heading.
    pub fn new(zone: TimeZone, columns: Vec<String>) -> Self {
        Self {
            loader: slurm::loader(zone),
            columns,
            unreadable: 0,
            unread: Vec::new(),
            exits: 0,
            timeless: Vec::new(),
        }
    }

    /// Reads a file.
    pub fn read(&mut self, path: &Path, content: &dyn Content) -> Result<(), SavedError> {
        let mut begin = vec![0; PIECE];
        let count = read_full(content, 0, &mut begin).map_err(|e| FileError::from_io(path, &e))?;
        begin.truncate(count);
        let marked = begin.starts_with(MARK);
        let begin = if marked { &begin[MARK.len()..] } else { &begin[..] };
        if begin.is_empty() {
            return Ok(());
        }
        let first = if marked { MARK.len() as u64 } else { 0 };
        let whole = |take: &mut dyn FnMut(&[u8])| pieces(path, content, first, take);
        match self.form(path, begin)? {
            Form::Document => self.document(path, content),
            Form::Text(heading) => {
                self.loader.read_as(heading.reading());
                let mut reader = TextReader::new(&heading);
                let loader = &mut self.loader;
                whole(&mut |piece| reader.feed(piece, loader))?;
                let unread = reader.finish(loader);
                self.unreadable += unread.count - unread.first.len();
                for (line, why) in unread.first {
                    self.lose(path, &format!("line {line}"), &why);
                }
                Ok(())
            }
            Form::Lines => {
                let mut lines = Lines::default();
                let mut number = 0;
                let mut take = |line: &[u8]| {
                    number += 1;
                    self.line(path, number, line);
                };
                whole(&mut |piece| lines.feed(piece, &mut take))?;
                lines.finish(&mut take);
                Ok(())
            }
            Form::Table => {
                let mut table = Table::default();
                let mut number = 0;
                let mut take = |cells: &[String]| {
                    number += 1;
                    self.cells(path, number, cells);
                };
                whole(&mut |piece| table.feed(piece, &mut take))?;
                table.finish(&mut take);
                Ok(())
            }
        }
    }

    /// The history, of what a filter selects. The caller's own jobs cannot be told apart in a file
    /// of another machine: without names it is everybody's.
    pub fn finish(self, filter: &Filter) -> History {
        let local = self.loader.local_times();
        let unread = self.told();
        let mut history = self.loader.finish(self.unreadable);
        slurm::keep(&mut history, filter);
        let notice = history.notices.iter_mut().find(|notice| notice.code == "unreadable-rows");
        if let (Some(notice), Some(unread)) = (notice, unread) {
            *notice = unread;
        }
        if self.exits > 0 {
            let jobs = text::count(self.exits as u64, "job");
            let text = format!(
                "the exit codes of {jobs} are not known: sacct --json of Slurm before 23.11 does not tell them"
            );
            history
                .notices
                .push(Notice::info("lost-exit-codes", text).hint("save the text: sacct -P -o ALL"));
        }
        if !self.timeless.is_empty() {
            let text = format!(
                "{}: Elapsed, Start and End are none of the columns, so its runs are in no sum, as \
                 if none had started",
                self.timeless.join(", ")
            );
            let hint = "sacct -P -o ALL prints them";
            history.notices.push(Notice::warning("no-times", text).hint(hint));
        }
        if local > 0 {
            let text = "the files hold local times without a zone, which are read as of the zone \
                        here";
            history.notices.push(
                Notice::info("local-times", text).hint(
                    "SLURM_TIME_FORMAT=%s sacct ... saves times that are the same everywhere",
                ),
            );
        }
        history
    }

    fn form(&mut self, path: &Path, begin: &[u8]) -> Result<Form, SavedError> {
        let begin = begin.trim_ascii_start();
        let first = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if begin.starts_with(b"{") {
            let record = serde_json::from_slice::<Map<String, Value>>(first).ok();
            let schema = record.as_ref().and_then(|record| record.get("schema")?.as_str());
            return Ok(if schema == Some(RUN_SCHEMA) { Form::Lines } else { Form::Document });
        }
        let names: Vec<&str> = run_fields().map(|field| field.name).collect();
        if first.trim_ascii_end() == names.join(",").as_bytes() {
            return Ok(Form::Table);
        }
        let heading = Heading::read(first).or_else(|| Heading::given(&self.columns, first));
        let heading = heading.ok_or_else(|| SavedError::NoHeading { path: path.to_owned() })?;
        if !heading.tells_times() {
            self.timeless.push(path.display().to_string());
        }
        Ok(Form::Text(Box::new(heading)))
    }

    fn document(&mut self, path: &Path, content: &dyn Content) -> Result<(), SavedError> {
        let bytes = content.read_all(DOCUMENT).map_err(|e| FileError::from_io(path, &e))?;
        let bytes = bytes.strip_prefix(MARK).unwrap_or(&bytes);
        let lacking = json::read(bytes, &mut self.loader)
            .map_err(|reason| SavedError::Document { path: path.to_owned(), reason })?;
        for place in lacking.unreadable {
            self.lose(path, &format!("job {place} of the list"), "no job id");
        }
        self.exits += lacking.exits;
        Ok(())
    }

    /// Counts a record that could not be read; of the first ones it is told where they are.
    fn lose(&mut self, path: &Path, place: &str, why: &str) {
        self.unreadable += 1;
        if self.unread.len() < Unread::TOLD {
            self.unread.push(format!("{}, {place}: {why}", path.display()));
        }
    }

    /// What could not be read, where, and what would lose less.
    fn told(&self) -> Option<Notice> {
        if self.unreadable == 0 {
            return None;
        }
        let records = text::count(self.unreadable as u64, "record");
        let mut told = format!("{records} could not be read: {}", self.unread.join("; "));
        let more = self.unreadable - self.unread.len();
        if more > 0 {
            told.push_str(&format!("; and {more} more"));
        }
        let notice = Notice::warning("unreadable-rows", told);
        let delimited = self.unread.iter().any(|told| told.ends_with(DELIMITED));
        Some(if delimited {
            notice
                .hint("sacct -P --delimiter='@~@' saves what loses none: nobody's text holds that")
        } else {
            notice
        })
    }

    /// A line of our own export.
    fn line(&mut self, path: &Path, number: u64, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice::<Map<String, Value>>(line) {
            Ok(record) => self.record(path, number, &record),
            Err(_) => self.lose(path, &format!("line {number}"), "no JSON"),
        }
    }

    /// A row of our own table.
    fn cells(&mut self, path: &Path, number: u64, cells: &[String]) {
        let names: Vec<&str> = run_fields().map(|field| field.name).collect();
        if cells.iter().map(String::as_str).eq(names.iter().copied()) {
            return;
        }
        if cells.len() != names.len() {
            let why = format!("{} columns for {}", cells.len(), names.len());
            self.lose(path, &format!("row {number}"), &why);
            return;
        }
        let mut record: Map<String, Value> = names
            .into_iter()
            .zip(cells)
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| (name.to_owned(), Value::from(cell.as_str())))
            .collect();
        record.insert("schema".to_owned(), RUN_SCHEMA.into());
        self.record(path, number, &record);
    }

    fn record(&mut self, path: &Path, number: u64, record: &Map<String, Value>) {
        if self.loader.push(|names| Run::from_flat(record, names)).is_err() {
            self.lose(path, &format!("row {number}"), "no run of this export's form");
        }
    }
}

fn read_full(content: &dyn Content, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match content.read_at(offset + filled as u64, &mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Passes on a file from an offset to its end, piece by piece.
fn pieces(
    path: &Path,
    content: &dyn Content,
    mut offset: u64,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), SavedError> {
    let mut buffer = vec![0; PIECE];
    loop {
        match content.read_at(offset, &mut buffer).map_err(|e| FileError::from_io(path, &e))? {
            0 => return Ok(()),
            count => {
                take(&buffer[..count]);
                offset += count as u64;
            }
        }
    }
}

/// Lines out of pieces that may end anywhere.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(&[u8])) {
        let mut lines = piece.split(|byte| *byte == b'\n');
        let Some(mut line) = lines.next() else { return };
        for next in lines {
            self.rest.extend_from_slice(line);
            take(&self.rest);
            self.rest.clear();
            line = next;
        }
        self.rest.extend_from_slice(line);
    }

    fn finish(self, take: &mut dyn FnMut(&[u8])) {
        if !self.rest.is_empty() {
            take(&self.rest);
        }
    }
}

/// Rows of comma-separated values (RFC 4180) out of pieces that may end anywhere.
#[derive(Default)]
struct Table {
    cells: Vec<String>,
    cell: Vec<u8>,
    quoted: bool,
    /// A quote within quotes: the next byte says whether it ends them.
    quote: bool,
}

impl Table {
    fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(&[String])) {
        for &byte in piece {
            match byte {
                b'"' if self.quote => {
                    self.cell.push(b'"');
                    self.quote = false;
                }
                b'"' if self.quoted => self.quote = true,
                other if self.quoted && !self.quote => self.cell.push(other),
                b'"' if self.cell.is_empty() => self.quoted = true,
                b',' => self.end_cell(),
                b'\n' => {
                    self.end_cell();
                    take(&self.cells);
                    self.cells.clear();
                }
                b'\r' => {}
                other => self.cell.push(other),
            }
        }
    }

    fn end_cell(&mut self) {
        (self.quoted, self.quote) = (false, false);
        let cell = std::mem::take(&mut self.cell);
        self.cells.push(String::from_utf8_lossy(&cell).into_owned());
    }

    fn finish(mut self, take: &mut dyn FnMut(&[String])) {
        if !self.cells.is_empty() || !self.cell.is_empty() {
            self.end_cell();
            take(&self.cells);
        }
    }
}

#[cfg(test)]
mod tests;
