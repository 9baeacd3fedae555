//! The text of `sacct --parsable2` back into records.
//!
//! `sacct` escapes nothing: a job name, comment or command line may hold pipes, unit separators and
//! newlines (seen in all of 20.11 to 26.05). So the delimiter is three characters that nobody types
//! (`--delimiter` takes any string since 17.02), and lines are joined until the columns are all
//! there.

use std::collections::BTreeMap;

use crate::model::JobId;

use super::fields::{Field, Layout};

/// Between two columns.
pub(super) const DELIMITER: &str = "@~@";

/// One record, as many cells as the layout has columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row<'l> {
    layout: &'l Layout,
    cells: Vec<String>,
}

impl<'l> Row<'l> {
    /// A record by the names of its columns; what is not named is empty.
    pub(super) fn from_fields(layout: &'l Layout, fields: &BTreeMap<String, String>) -> Self {
        let cell = |name: &&str| fields.get(*name).cloned().unwrap_or_default();
        Self { layout, cells: layout.names().iter().map(cell).collect() }
    }

    /// A cell; empty where this `sacct` has no such column.
    pub(super) fn get(&self, field: Field) -> &str {
        let position = self.layout.position(field);
        position.and_then(|position| self.cells.get(position)).map_or("", String::as_str)
    }
}

/// The records of an output, and how many could not be read.
pub(super) fn read<'l>(output: &[u8], layout: &'l Layout) -> (Vec<Row<'l>>, usize) {
    let mut rows = Vec::new();
    let mut reader = Reader::new(layout);
    reader.feed(output, &mut |row| rows.push(row));
    let unreadable = reader.finish(&mut |row| rows.push(row));
    (rows, unreadable)
}

/// Reads records while they come, in pieces that may end anywhere.
#[derive(Debug)]
pub(super) struct Reader<'l> {
    layout: &'l Layout,
    /// The begin of a line whose end has not come.
    rest: Vec<u8>,
    /// A record to which the next line may still belong.
    record: Option<String>,
    unreadable: usize,
}

impl<'l> Reader<'l> {
    pub(super) fn new(layout: &'l Layout) -> Self {
        Self { layout, rest: Vec::new(), record: None, unreadable: 0 }
    }

    /// Takes a piece; passes on every record that it completes.
    pub(super) fn feed(&mut self, piece: &[u8], sink: &mut dyn FnMut(Row<'l>)) {
        let mut lines = piece.split(|byte| *byte == b'\n');
        let Some(mut line) = lines.next() else { return };
        for next in lines {
            if self.rest.is_empty() {
                self.line(line, sink);
            } else {
                self.rest.extend_from_slice(line);
                let whole = std::mem::take(&mut self.rest);
                self.line(&whole, sink);
            }
            line = next;
        }
        self.rest.extend_from_slice(line);
    }

    /// Passes on the last record; says how many could not be read.
    pub(super) fn finish(mut self, sink: &mut dyn FnMut(Row<'l>)) -> usize {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.line(&rest, sink);
        }
        self.close(sink);
        self.unreadable
    }

    fn line(&mut self, line: &[u8], sink: &mut dyn FnMut(Row<'l>)) {
        let line = String::from_utf8_lossy(line);
        if opens_record(&line) {
            self.close(sink);
            self.record = Some(line.into_owned());
        } else if let Some(record) = &mut self.record {
            record.push('\n');
            record.push_str(&line);
        } else if !line.trim().is_empty() {
            self.unreadable += 1;
        }
    }

    fn close(&mut self, sink: &mut dyn FnMut(Row<'l>)) {
        let Some(record) = self.record.take() else { return };
        let cells: Vec<String> = record.split(DELIMITER).map(str::to_owned).collect();
        // Too many columns: some text holds the delimiter, and none of it can be told apart.
        if cells.len() == self.layout.len() {
            sink(Row { layout: self.layout, cells });
        } else {
            self.unreadable += 1;
        }
    }
}

/// A record begins with an id and a delimiter; a line of somebody's text does not.
fn opens_record(line: &str) -> bool {
    line.split_once(DELIMITER).is_some_and(|(id, _)| JobId::parse_with_step(id).is_ok())
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
    fn a_record_that_cannot_be_read_is_counted_and_costs_no_other() {
        let output = "garbage\n1@~@FAILED@~@1:0@~@cut\n2@~@FAILED@~@1:0@~@good@~@\n\
                      3@~@FAILED@~@1:0@~@has@~@the@~@delimiter\n";
        assert_eq!(names(output), (vec!["good".to_owned()], 3));
        assert_eq!(names(""), (vec![], 0));
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
            let mut reader = Reader::new(&layout);
            for piece in output.as_bytes().chunks(size) {
                reader.feed(piece, &mut |row| rows.push(row));
            }
            prop_assert_eq!(reader.finish(&mut |row| rows.push(row)), unreadable);
            prop_assert_eq!(rows, whole);
        }
    }
}
