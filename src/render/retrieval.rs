//! How rankings of notes compare, for people: one table, an interval where choices are made.

use std::io;

use super::Report;
use super::page::{Cell, Column, Label, Page};
use crate::answer::evaluate::SearchReport;
use crate::eval::{Interval, Ranked};

const MARGIN: usize = 12;

impl Report for SearchReport {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let columns = [
            left("RANKED BY", 12),
            left("QUERIES", 10),
            right("R@1"),
            right("95 %"),
            right("@3"),
            right("@5"),
            right("MRR"),
            right("NDCG@5"),
            right("SECTION"),
        ];
        let row = |row: &Ranked| -> Vec<Cell> {
            let Ranked { method, kind, recall_at_1, recall_at_3, recall_at_5, mrr, .. } = row;
            let within = recall_at_1.map_or_else(
                || "n/a".to_owned(),
                |Interval { low, high, .. }| format!("{low:.2}-{high:.2}"),
            );
            let others = [recall_at_3, recall_at_5, mrr, &row.ndcg_at_5, &row.section_at_1];
            let mut cells: Vec<Cell> = vec![
                (Label::Plain, (*method).to_owned()),
                (Label::Plain, kind.clone()),
                (Label::Plain, number(recall_at_1.as_ref())),
                (Label::Plain, within),
            ];
            cells.extend(others.map(|found| (Label::Plain, number(found.as_ref()))));
            cells
        };
        page.table(&columns, &self.rows.iter().map(row).collect::<Vec<_>>())?;
        page.gap()?;
        let first = self.rows.first().map(|row| row.method);
        let kinds = self.rows.iter().filter(|row| Some(row.method) == first);
        let kinds: Vec<String> = kinds.map(|row| format!("{} {}", row.queries, row.kind)).collect();
        page.entry("queries", MARGIN, Label::Plain, &kinds.join(", "))?;
        page.entry("vectors", MARGIN, Label::Plain, &self.embedder)?;
        for failure in &self.failures {
            page.entry("no query", MARGIN, Label::Bad, failure)?;
        }
        for missed in &self.missed {
            page.entry("missed", MARGIN, Label::Bad, missed)?;
        }
        page.notices(&self.notices)
    }
}

fn number(found: Option<&Interval>) -> String {
    found.map_or_else(|| "n/a".to_owned(), |found| format!("{:.3}", found.value))
}

fn left(heading: &'static str, least: usize) -> Column {
    Column { heading, right: false, least }
}

fn right(heading: &'static str) -> Column {
    Column { heading, right: true, least: heading.len() }
}
