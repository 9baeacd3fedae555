//! The text of `sacct --parsable2` back into records.
//!
//! `sacct` escapes nothing: a job name, comment or command line may hold pipes, unit separators and
//! newlines (seen in all of 20.11 to 26.05). So the delimiter is three characters that nobody types
//! (`--delimiter` takes any string since 17.02), and lines are joined until the columns are all
//! there. A file that somebody saved may have any delimiter: there a row with too many columns is
//! read if only one text can be the one that holds it.
//!
//! A history has millions of rows, so nothing is copied: a row is a piece of what came, and where
//! its cells are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::{memchr, memchr_iter};

use crate::model::{BaseState, JobId, State};

use super::fields::{Field, Layout};
use super::values;

/// Between two columns.
pub(super) const DELIMITER: &str = "@~@";
/// Why a record has too many columns.
pub(in crate::sched) const DELIMITED: &str = "some text in it holds the delimiter";
/// A record that is longer was not printed by Slurm.
const LONGEST: usize = 16 << 20;

/// One record, as many cells as the layout has columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row<'r> {
    layout: &'r Layout,
    text: Cow<'r, str>,
    /// Where each cell begins and ends.
    cells: Cow<'r, [(usize, usize)]>,
}

impl<'r> Row<'r> {
    /// A record by the names of its columns; what is not named is empty.
    pub(super) fn from_fields(layout: &'r Layout, fields: &BTreeMap<String, String>) -> Self {
        let (mut text, mut cells) = (String::new(), Vec::new());
        for name in layout.names() {
            let begin = text.len();
            text.push_str(fields.get(name.as_ref()).map_or("", String::as_str));
            cells.push((begin, text.len()));
        }
        Self { layout, text: Cow::Owned(text), cells: Cow::Owned(cells) }
    }

    /// A cell; empty where this `sacct` has no such column.
    pub(super) fn get(&self, field: Field) -> &str {
        self.layout.position(field).map_or("", |position| self.at(position))
    }

    /// The cell of a column by its place.
    pub(super) fn at(&self, position: usize) -> &str {
        let cell = self.cells.get(position);
        cell.and_then(|(begin, end)| self.text.get(*begin..*end)).unwrap_or("")
    }

    /// The cells of columns that nothing here reads, by their names.
    pub(super) fn others(&self) -> BTreeMap<String, String> {
        let others = self.layout.others().map(|(position, name)| (name, self.at(position)));
        let told = others.filter(|(name, cell)| !name.is_empty() && !values::is_null(cell.trim()));
        told.map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect()
    }

    fn into_owned(self, layout: &Layout) -> Row<'_> {
        Row {
            layout,
            text: Cow::Owned(self.text.into_owned()),
            cells: Cow::Owned(self.cells.into_owned()),
        }
    }

    /// Whether the columns that Slurm fills hold what they can hold.
    fn is_plausible(&self) -> bool {
        let state = self.get(Field::State);
        let exit = self.get(Field::Exit);
        (state.is_empty() || State::parse(state).base != BaseState::Other)
            && (exit.is_empty() || values::exit(exit, true).is_value())
            && [Field::Elapsed, Field::Limit, Field::CpuTime].into_iter().all(|field| {
                !matches!(values::span(self.get(field)), crate::model::Known::Unreadable(_))
            })
            && [Field::Nodes, Field::Cpus, Field::Tasks, Field::Uid].into_iter().all(|field| {
                !matches!(values::count(self.get(field)), crate::model::Known::Unreadable(_))
            })
    }
}

/// The records of an output, and how many could not be read.
pub(super) fn read<'l>(output: &[u8], layout: &'l Layout) -> (Vec<Row<'l>>, usize) {
    let mut rows = Vec::new();
    let mut reader = Reader::new(layout, DELIMITER);
    reader.feed(output, &mut |row| rows.push(row.into_owned(layout)));
    let unreadable = reader.finish(&mut |row| rows.push(row.into_owned(layout)));
    (rows, unreadable)
}

/// What could not be read: how much, and where the first of it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::sched) struct Unread {
    /// How many records.
    pub(in crate::sched) count: usize,
    /// The line on which each of the first began, and why it could not be read.
    pub(in crate::sched) first: Vec<(u64, String)>,
}

impl Unread {
    /// So many are told of with their lines.
    pub(in crate::sched) const TOLD: usize = 3;

    fn add(&mut self, line: u64, why: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push((line, why()));
        }
    }
}

/// Reads records while they come, in pieces that may end anywhere.
#[derive(Debug)]
pub(super) struct Reader<'l> {
    layout: &'l Layout,
    delimiter: &'l str,
    /// The column of the id.
    id: usize,
    /// The line that names the columns, which a file may hold again and again.
    heading: Option<Vec<u8>>,
    /// What came and is in no record yet: perhaps the begin of one, then the begin of a line.
    rest: Vec<u8>,
    /// Whether a record begins where `rest` begins.
    open: bool,
    /// Where in `rest` the line begins whose end has not come.
    line: usize,
    /// Where the search for that end goes on.
    searched: usize,
    cells: Vec<(usize, usize)>,
    /// Lines so far, and that on which the open record began.
    number: u64,
    begun: u64,
    unread: Unread,
}

impl<'l> Reader<'l> {
    pub(super) fn new(layout: &'l Layout, delimiter: &'l str) -> Self {
        Self {
            layout,
            delimiter,
            id: layout.position(Field::Id).unwrap_or(0),
            heading: None,
            rest: Vec::new(),
            open: false,
            line: 0,
            searched: 0,
            cells: Vec::new(),
            number: 0,
            begun: 0,
            unread: Unread::default(),
        }
    }

    /// Passes over lines that are this one.
    pub(super) fn skip(&mut self, heading: &[u8]) {
        self.heading = Some(heading.to_vec());
    }

    /// Takes a piece; passes on every record that it completes.
    pub(super) fn feed(&mut self, piece: &[u8], sink: &mut dyn FnMut(Row<'_>)) {
        self.rest.extend_from_slice(piece);
        let text = std::mem::take(&mut self.rest);
        let (mut record, mut line) = (self.open.then_some(0), self.line);
        let mut from = self.searched;
        while let Some(length) = memchr(b'\n', &text[from..]) {
            let end = from + length;
            self.line(&text, line..end, &mut record, sink);
            (line, from) = (end + 1, end + 1);
        }
        // What is too long for a record is given up; so is a line that does not end.
        if text.len() - record.unwrap_or(line) > LONGEST {
            let begun = if record.is_some() { self.begun } else { self.number + 1 };
            self.unread.add(begun, || "longer than any record of Slurm".to_owned());
            (record, line) = (None, text.len());
        }
        let kept = record.unwrap_or(line);
        (self.open, self.line, self.searched) = (record.is_some(), line - kept, text.len() - kept);
        self.rest = text;
        self.rest.drain(..kept);
    }

    /// Passes on the last record; says how many could not be read.
    pub(super) fn finish(self, sink: &mut dyn FnMut(Row<'_>)) -> usize {
        self.end(sink).count
    }

    /// Passes on the last record; says what could not be read, and where it was.
    pub(super) fn end(mut self, sink: &mut dyn FnMut(Row<'_>)) -> Unread {
        let text = std::mem::take(&mut self.rest);
        let mut record = self.open.then_some(0);
        if self.line < text.len() {
            let line = self.line..text.len();
            self.line(&text, line, &mut record, sink);
        }
        if let Some(begin) = record {
            let end = text.len() - usize::from(text.ends_with(b"\n"));
            self.close(&text[begin..end.max(begin)], sink);
        }
        self.unread
    }

    /// Takes a line: it begins a record, or belongs to the one that is open.
    fn line(
        &mut self,
        text: &[u8],
        line: std::ops::Range<usize>,
        record: &mut Option<usize>,
        sink: &mut dyn FnMut(Row<'_>),
    ) {
        let begin = line.start;
        let line = &text[line];
        let heading = self.heading.as_deref() == Some(line);
        self.number += 1;
        if heading || opens_record(line, self.delimiter.as_bytes(), self.id) {
            if let Some(open) = *record {
                self.close(&text[open..begin - 1], sink);
            }
            *record = (!heading).then_some(begin);
            self.begun = self.number;
        } else if record.is_none() && !line.trim_ascii().is_empty() {
            if self.id > 0 {
                // Perhaps a record whose first lines end before its id.
                *record = Some(begin);
                self.begun = self.number;
            } else {
                self.unread.add(self.number, || "no job id at its begin".to_owned());
            }
        }
    }

    fn close(&mut self, record: &[u8], sink: &mut dyn FnMut(Row<'_>)) {
        // A file whose heading ends as Windows ends lines has no such byte of anybody's at an end.
        let carried = self.heading.as_ref().is_some_and(|heading| heading.ends_with(b"\r"));
        let record = record.strip_suffix(b"\r").filter(|_| carried).unwrap_or(record);
        // Nearly all records are ASCII, which this sees many bytes at a time.
        let text =
            str::from_utf8(record).map_or_else(|_| String::from_utf8_lossy(record), Cow::Borrowed);
        let mut rest = &text[..];
        let mut line = self.begun;
        // Text before the id may have lines of its own: then several records were taken for one.
        while self.id > 0
            && let Some(end) = self.end_of_first(rest)
        {
            self.take(&rest[..end], line, sink);
            line += memchr_iter(b'\n', &rest.as_bytes()[..=end]).count() as u64;
            rest = &rest[end + 1..];
        }
        self.take(rest, line, sink);
    }

    fn take(&mut self, text: &str, line: u64, sink: &mut dyn FnMut(Row<'_>)) {
        let mut cells = std::mem::take(&mut self.cells);
        split(text, self.delimiter, &mut cells);
        // Too many columns: some text holds the delimiter.
        let fits = cells.len() == self.layout.len() || self.join(text, &mut cells);
        if fits {
            let (text, cells) = (Cow::Borrowed(text), Cow::Borrowed(cells.as_slice()));
            sink(Row { layout: self.layout, text, cells });
        } else {
            let (found, wanted) = (cells.len(), self.layout.len());
            self.unread.add(line, || {
                if found < wanted {
                    format!("{found} columns of {wanted}")
                } else {
                    format!("{found} columns for {wanted}: {DELIMITED}")
                }
            });
        }
        self.cells = cells;
    }

    /// Where a record ends behind which another one begins: the end of a line in its last column,
    /// best such that an id follows where it belongs.
    fn end_of_first(&self, text: &str) -> Option<usize> {
        /// Nobody's text in the last column has more lines.
        const LINES: usize = 1000;
        let delimiter = self.delimiter.as_bytes();
        let mut delimiters = text.match_indices(self.delimiter).map(|(at, _)| at);
        let last = self.layout.len().checked_sub(2)?;
        let (begin, end) = (delimiters.nth(last)?, delimiters.next()?);
        let lines = memchr_iter(b'\n', &text.as_bytes()[begin..end]).take(LINES);
        let mut ends = lines
            .map(|at| begin + at)
            .filter(|at| text[at + 1..].match_indices(self.delimiter).nth(last).is_some());
        // No text holds a whole record: what comes is one even where its id is not in its place.
        let first = ends.next()?;
        let opens = |at: &usize| opens_record(&text.as_bytes()[at + 1..], delimiter, self.id);
        std::iter::once(first).chain(ends).find(opens).or(Some(first))
    }

    /// Joins cells that are one text with delimiters in it, if only one text can be that one.
    fn join(&self, text: &str, cells: &mut Vec<(usize, usize)>) -> bool {
        let Some(extra) = cells.len().checked_sub(self.layout.len()) else { return false };
        let mut found = None;
        // Where only one column is text there is no choice, however odd the others are.
        let is_only = self.layout.free_text().count() == 1;
        for position in self.layout.free_text() {
            let mut joined = cells.clone();
            let Some(last) = joined.get(position + extra).copied() else { continue };
            joined[position].1 = last.1;
            joined.drain(position + 1..=position + extra);
            let (text, cells) = (Cow::Borrowed(text), Cow::Borrowed(joined.as_slice()));
            if is_only || (Row { layout: self.layout, text, cells }).is_plausible() {
                if found.is_some() {
                    return false;
                }
                found = Some(joined);
            }
        }
        found.is_some_and(|joined| {
            *cells = joined;
            true
        })
    }
}

/// Where the cells of a record begin and end.
fn split(text: &str, delimiter: &str, cells: &mut Vec<(usize, usize)>) {
    cells.clear();
    let (bytes, delimiter) = (text.as_bytes(), delimiter.as_bytes());
    // Its middle: the `~` of `@~@` comes once where `@` comes twice.
    let middle = delimiter.len() / 2;
    let mut begin = 0;
    for at in delimiter.get(middle).into_iter().flat_map(|byte| memchr_iter(*byte, bytes)) {
        // Behind the delimiter before, of which this byte may be a part.
        let Some(start) = at.checked_sub(middle).filter(|start| *start >= begin) else { continue };
        if delimiter.len() == 1 || bytes[start..].starts_with(delimiter) {
            cells.push((begin, start));
            begin = start + delimiter.len();
        }
    }
    cells.push((begin, bytes.len()));
}

/// Where a delimiter begins. It is near, so a search that has to be prepared costs more.
fn find(bytes: &[u8], delimiter: &[u8]) -> Option<usize> {
    if let [only] = delimiter {
        return memchr(*only, bytes);
    }
    let mut from = 0;
    loop {
        let at = from + memchr(*delimiter.first()?, &bytes[from..])?;
        if bytes[at..].starts_with(delimiter) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The first line of a record has an id in its column, and a delimiter behind it; a line of
/// somebody's text does not.
pub(super) fn opens_record(mut line: &[u8], delimiter: &[u8], column: usize) -> bool {
    for _ in 0..column {
        let Some(end) = find(line, delimiter) else { return false };
        line = &line[end + delimiter.len()..];
    }
    if !line.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let Some(end) = find(line, delimiter) else { return false };
    let id = &line[..end];
    // Most ids are a number, and many have a step behind it.
    let digits = id.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let plain = (1..=9).contains(&digits)
        && id[0] != b'0'
        && match &id[digits..] {
            [] => true,
            [b'.', step @ ..] => !step.is_empty() && step.iter().all(u8::is_ascii_alphanumeric),
            _ => false,
        };
    plain || str::from_utf8(id).is_ok_and(|id| JobId::parse_with_step(id).is_ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fields::Fields;
    use super::*;

    fn layout() -> Layout {
        Fields::from_help(b"JobID State ExitCode JobName Comment").expect("fields").layout(true)
    }

    fn names(output: &str) -> (Vec<String>, usize) {
        let layout = layout();
        let (rows, unreadable) = read(output.as_bytes(), &layout);
        (rows.iter().map(|row| row.get(Field::Name).to_owned()).collect(), unreadable)
    }

    #[test]
    fn text_with_newlines_pipes_and_separators_stays_in_its_column() {
        let output = "80@~@COMPLETED@~@0:0@~@two\nlines@~@line1\n2nd\ttab\n\
                      81@~@COMPLETED@~@0:0@~@unit\u{1f}sep|pipe@~@\n";
        assert_eq!(names(output), (vec!["two\nlines".to_owned(), "unit\u{1f}sep|pipe".into()], 0));
    }

    #[test]
    fn lines_before_the_id_take_no_record_away() {
        // `sacct -o ALL` has the account and comments before the id.
        let columns = ["Account", "Comment", "JobID", "State", "ExitCode", "JobName"];
        let layout = Layout::named(&columns).expect("a heading");
        let rows = [
            "p|line1\n2nd\ttab|80|COMPLETED|0:0|a",
            "p||81|COMPLETED|0:0|b",
            "p|x\ny|82|FAILED|1:0|c",
            "p|x\n\n7|83|FAILED|1:0|d",
            "p||84|COMPLETED|0:0|e",
        ];
        for order in [[0, 1, 2, 3, 4], [1, 0, 2, 4, 3], [4, 3, 2, 1, 0]] {
            let text: Vec<&str> = order.iter().map(|at| rows[*at]).collect();
            let mut names = Vec::new();
            let mut reader = Reader::new(&layout, "|");
            let mut take = |row: Row<'_>| names.push(row.get(Field::Name).to_owned());
            reader.feed(text.join("\n").as_bytes(), &mut take);
            assert_eq!(reader.finish(&mut take), 0, "{order:?}");
            let expected: Vec<&str> =
                order.iter().map(|at| &rows[*at][rows[*at].len() - 1..]).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn a_record_whose_id_is_not_in_its_place_is_not_part_of_the_one_before() {
        let columns = ["Account", "Comment", "JobID", "State", "ExitCode", "JobName"];
        let layout = Layout::named(&columns).expect("a heading");
        let mut reader = Reader::new(&layout, "|");
        let mut names = Vec::new();
        let mut take = |row: Row<'_>| names.push(row.get(Field::Name).to_owned());
        reader
            .feed(b"p||1|COMPLETED|0:0|a\np|c|d|2|FAILED|1:0|x|y\np||3|FAILED|1:0|c\n", &mut take);
        let unread = reader.end(&mut take);
        let first = unread.first.first().map(|(line, _)| *line);
        assert_eq!(
            (names, unread.count, first),
            (vec!["a".to_owned(), "c".to_owned()], 1, Some(2))
        );
    }

    #[test]
    fn a_record_that_cannot_be_read_is_counted_and_costs_no_other() {
        let output = "garbage\n1@~@FAILED@~@1:0@~@cut\n2@~@FAILED@~@1:0@~@good@~@\n\
                      3@~@FAILED@~@1:0@~@has@~@the@~@delimiter\n";
        assert_eq!(names(output), (vec!["good".to_owned()], 3));
        assert_eq!(names(""), (vec![], 0));
        let layout = layout();
        let mut reader = Reader::new(&layout, DELIMITER);
        reader.feed(output.as_bytes(), &mut |_| ());
        let unread = reader.end(&mut |_| ());
        let told: Vec<(u64, &str)> =
            unread.first.iter().map(|(line, why)| (*line, why.as_str())).collect();
        assert_eq!(
            told,
            [
                (1, "no job id at its begin"),
                (2, "4 columns of 5"),
                (4, "6 columns for 5: some text in it holds the delimiter"),
            ]
        );
    }

    proptest! {
        /// Any bytes are read; every row has all columns.
        #[test]
        fn any_bytes_are_read(output in prop::collection::vec(any::<u8>(), 0..200)) {
            let layout = layout();
            let (rows, _) = read(&output, &layout);
            prop_assert!(rows.iter().all(|row| row.cells.len() == layout.len()));
        }

        /// Wherever the pieces end, the records are the same.
        #[test]
        fn pieces_give_the_same_records(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "1@~@FAILED@~@1:0@~@name@~@", "2@~@COMPLETED@~@0:0@~@two", "lines@~@é", "",
                ]),
                0..12,
            ),
            size in 1_usize..40,
        ) {
            let (layout, output) = (layout(), lines.join("\n"));
            let (whole, unreadable) = read(output.as_bytes(), &layout);
            let mut rows = Vec::new();
            let mut reader = Reader::new(&layout, DELIMITER);
            for piece in output.as_bytes().chunks(size) {
                reader.feed(piece, &mut |row| rows.push(row.into_owned(&layout)));
            }
            let left = reader.finish(&mut |row| rows.push(row.into_owned(&layout)));
            prop_assert_eq!(left, unreadable);
            prop_assert_eq!(rows, whole);
        }
    }
}
