//! What `sacct` printed into a file: which columns, between what.

use super::Loader;
use super::fields::{Field, Layout};
use super::quirks;
use super::records::Reading;
use super::release::Release;
use super::rows::{self, Reader, Unread, opens_record};

/// Delimiters that people choose; the ones that users write least come first.
const DELIMITERS: [&str; 7] = [rows::DELIMITER, "\u{1f}", "\u{1e}", "\t", "|", ";", ","];

/// The columns of a file, and what stands between them.
pub(in crate::sched) struct Heading {
    layout: Layout,
    delimiter: String,
    /// The line itself, where the file has one.
    line: Option<Vec<u8>>,
    release: Release,
}

impl Heading {
    /// Reads a heading such as `JobID|State|JobName`; `None` when the line is none.
    pub(in crate::sched) fn read(line: &[u8]) -> Option<Self> {
        let text = str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric();
        // What stands between the first two names stands between all.
        let rest = text.trim_start_matches(is_name);
        let delimiter = &rest[..rest.find(is_name).unwrap_or(rest.len())];
        if delimiter.is_empty() || delimiter.chars().all(|c| c == ' ') {
            return None;
        }
        let names: Vec<&str> = text.split(delimiter).collect();
        Self::new(&names, delimiter, Some(line.to_vec()))
    }

    /// Whether it says how long a run was, or when: one that was not is taken for never started.
    pub(in crate::sched) fn tells_times(&self) -> bool {
        [Field::Elapsed, Field::Start, Field::End]
            .into_iter()
            .any(|field| self.layout.position(field).is_some())
    }

    /// The heading of a file without one, whose columns somebody named; the first row says what
    /// stands between them.
    pub(in crate::sched) fn given(columns: &[String], row: &[u8]) -> Option<Self> {
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let text = String::from_utf8_lossy(row);
        let id = names.iter().position(|name| name.eq_ignore_ascii_case("JobID"))?;
        let fits = |delimiter: &&&str| {
            opens_record(row, delimiter.as_bytes(), id)
                && text.split(**delimiter).count() >= names.len()
        };
        let delimiter = DELIMITERS.iter().find(fits)?;
        Self::new(&names, delimiter, None)
    }

    fn new(names: &[&str], delimiter: &str, line: Option<Vec<u8>>) -> Option<Self> {
        let has = |name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
        let release = Release::from_fields(has);
        // Columns that are not there may not have been asked for.
        let release = Release { before: None, ..release };
        let layout = Layout::named(names)?;
        Some(Self { layout, delimiter: delimiter.to_owned(), line, release })
    }

    /// What the columns say about the release that printed them.
    pub(in crate::sched) fn reading(&self) -> Reading {
        Reading {
            folded: self.release.is_before(super::Version(25, 11)) != Some(false),
            cpu_time_lost: quirks::loses_cpu_time(self.release),
            sums_gpus: quirks::sums_gpus(self.release),
        }
    }
}

/// Reads the rows of a file into a history.
pub(in crate::sched) struct TextReader<'h> {
    reader: Reader<'h>,
}

impl<'h> TextReader<'h> {
    /// A reader of a file with this heading.
    pub(in crate::sched) fn new(heading: &'h Heading) -> Self {
        let mut reader = Reader::new(&heading.layout, &heading.delimiter);
        if let Some(line) = &heading.line {
            reader.skip(line);
        }
        Self { reader }
    }

    /// Takes a piece.
    pub(in crate::sched) fn feed(&mut self, piece: &[u8], loader: &mut Loader) {
        self.reader.feed(piece, &mut |row| loader.add(&row));
    }

    /// Takes the last record; says what could not be read.
    pub(in crate::sched) fn finish(self, loader: &mut Loader) -> Unread {
        self.reader.end(&mut |row| loader.add(&row))
    }
}
