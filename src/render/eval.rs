//! A measurement for people. Of the confusion matrix only what was confused; the JSON has all.

use std::cmp::Reverse;
use std::io;

use super::Report;
use super::page::{Cell, Column, Label, Page};
use crate::answer::evaluate::{Evaluation, SuiteReport};
use crate::eval::{Comparison, LeftOut, Measures, Part, Reliability, Retrieval, Share, Table};

const MARGIN: usize = 12;

/// From this confidence down the curve of risk is told.
const LEVELS: usize = 8;

impl Report for Evaluation {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        summary(page, &self.measures)?;
        reliability(page, &self.measures.reliability)?;
        if !self.measures.families.is_empty() {
            page.gap()?;
            families(page, &self.measures)?;
        }
        confused(page, &self.measures)?;
        if let Some(comparison) = &self.baseline {
            page.gap()?;
            compared(page, comparison)?;
        }
        if let Some(parts) = &self.left_out {
            page.gap()?;
            left_out(page, parts)?;
        }
        if let Some(table) = &self.calibration {
            page.gap()?;
            calibration(page, table)?;
        }
        lacking(page, &self.failures, &self.missed)?;
        page.notices(&self.notices)
    }
}

impl Report for SuiteReport {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let columns = [left("PART"), right("CASES"), right("WRONG"), right("SHARE RIGHT")];
        let row = |part: &Part| {
            let Share { name, cases, share, .. } = &part.share;
            vec![plain(name), plain(cases), plain(&part.wrong.len()), plain(&number(*share))]
        };
        page.table(&columns, &self.parts.iter().map(row).collect::<Vec<_>>())?;
        for part in self.parts.iter().filter(|part| !part.wrong.is_empty()) {
            page.gap()?;
            page.line(&[(Label::Strong, &part.share.name)])?;
            for wrong in &part.wrong {
                let text = format!("{}: is {}, got {}", wrong.id, wrong.expected, wrong.got);
                page.entry("", 2, Label::Plain, &text)?;
            }
        }
        lacking(page, &self.failures, &self.missed)?;
        page.notices(&self.notices)
    }
}

/// Cases without an answer, and aims that were not reached.
fn lacking(page: &mut Page<'_>, failures: &[String], missed: &[String]) -> io::Result<()> {
    if !failures.is_empty() || !missed.is_empty() {
        page.gap()?;
    }
    for (name, said) in [("no answer", failures), ("missed", missed)] {
        for said in said {
            page.entry(name, MARGIN, Label::Bad, said)?;
        }
    }
    Ok(())
}

fn summary(page: &mut Page<'_>, measures: &Measures) -> io::Result<()> {
    page.entry("accuracy", MARGIN, Label::Strong, &share(&measures.accuracy))?;
    for (name, rows) in [("difficulty", &measures.by_difficulty), ("stage", &measures.by_stage)] {
        let rows: Vec<String> =
            rows.iter().map(|row| format!("{} {}", row.name, share(row))).collect();
        if !rows.is_empty() {
            page.entry(name, MARGIN, Label::Plain, &rows.join(", "))?;
        }
    }
    let abstained = format!("{}, where another label is right", measures.abstained);
    page.entry("unknown", MARGIN, Label::Plain, &abstained)?;
    let alarms = match measures.false_alarms.as_slice() {
        [] => "0".to_owned(),
        ids => format!("{}: {}", ids.len(), ids.join(" ")),
    };
    page.entry("alarms", MARGIN, Label::Plain, &alarms)?;
    page.entry("notes", MARGIN, Label::Plain, &retrieval(&measures.retrieval))?;
    page.entry("by line", MARGIN, Label::Plain, &retrieval(&measures.retrieval_by_line))?;
    page.entry("root lines", MARGIN, Label::Plain, &share(&measures.root_lines))
}

fn retrieval(found: &Retrieval) -> String {
    format!(
        "recall@1 {}, @3 {}, @5 {}, MRR {} (of {})",
        number(found.recall_at_1),
        number(found.recall_at_3),
        number(found.recall_at_5),
        number(found.mrr),
        found.cases
    )
}

fn reliability(page: &mut Page<'_>, found: &Reliability) -> io::Result<()> {
    let text = format!(
        "ECE {}, Brier {} (of {} answers that name a cause)",
        number(found.ece),
        number(found.brier),
        found.answers
    );
    page.entry("confidence", MARGIN, Label::Plain, &text)?;
    for bin in &found.bins {
        let text = format!(
            "from {:.1}: stated {:.3}, right {:.3} ({} of {})",
            bin.from, bin.stated, bin.share, bin.right, bin.answers
        );
        page.entry("", MARGIN, Label::Plain, &text)?;
    }
    for point in found.risk_coverage.iter().take(LEVELS) {
        let text = format!(
            "from {:.3} on: {:.3} of the cases answered, {:.3} of these wrong",
            point.confidence, point.coverage, point.risk
        );
        page.entry("", MARGIN, Label::Plain, &text)?;
    }
    for wrong in &found.sure_and_wrong {
        let text = format!(
            "{}: {} at {:.2}, is {}",
            wrong.id, wrong.got, wrong.confidence, wrong.expected
        );
        page.entry("sure, wrong", MARGIN, Label::Bad, &text)?;
    }
    Ok(())
}

fn left(heading: &'static str) -> Column {
    Column { heading, right: false, least: 12 }
}

fn right(heading: &'static str) -> Column {
    Column { heading, right: true, least: heading.len() }
}

fn plain(text: &impl ToString) -> Cell {
    (Label::Plain, text.to_string())
}

fn families(page: &mut Page<'_>, measures: &Measures) -> io::Result<()> {
    let columns = [
        left("LABEL"),
        right("CASES"),
        right("ANSWERS"),
        right("RIGHT"),
        right("PRECISION"),
        right("RECALL"),
    ];
    let rows: Vec<Vec<Cell>> = measures
        .families
        .iter()
        .map(|row| {
            vec![
                plain(&row.family),
                plain(&row.cases),
                plain(&row.answers),
                plain(&row.right),
                plain(&number(row.precision)),
                plain(&number(row.recall)),
            ]
        })
        .collect();
    page.table(&columns, &rows)
}

fn confused(page: &mut Page<'_>, measures: &Measures) -> io::Result<()> {
    let mut cells: Vec<_> =
        measures.confusion.iter().filter(|cell| cell.expected != cell.got).collect();
    if cells.is_empty() {
        return Ok(());
    }
    cells.sort_by_key(|cell| Reverse(cell.cases));
    let rows: Vec<Vec<Cell>> = cells
        .into_iter()
        .map(|cell| vec![plain(&cell.expected), plain(&cell.got), plain(&cell.cases)])
        .collect();
    page.gap()?;
    page.table(&[left("CONFUSED"), left("WITH"), right("CASES")], &rows)
}

fn compared(page: &mut Page<'_>, comparison: &Comparison) -> io::Result<()> {
    if comparison.right.iter().chain([&comparison.wrong]).all(|row| row.cases == 0) {
        return page.entry("keywords", MARGIN, Label::Plain, "no case with texts to compare on");
    }
    let columns = [left("RIGHT KIND"), right("CASES"), right("JOBWISE"), right("KEYWORDS")];
    let row = |row: &crate::eval::Compared, name: String| {
        vec![plain(&name), plain(&row.cases), plain(&row.jobwise), plain(&row.keywords)]
    };
    let mut rows: Vec<Vec<Cell>> =
        comparison.right.iter().map(|each| row(each, each.name.clone())).collect();
    rows.push(row(&comparison.wrong, "wrong name, of no kind".to_owned()));
    page.table(&columns, &rows)
}

/// Every family that was taken away, the sum, and each case that was named wrongly.
fn left_out(page: &mut Page<'_>, parts: &[LeftOut]) -> io::Result<()> {
    let columns = [
        left("WITHOUT"),
        right("CASES"),
        right("UNKNOWN"),
        right("NEIGHBOUR"),
        right("UNSURE"),
        right("WRONG"),
    ];
    let row = |part: &LeftOut, name: &str| {
        let LeftOut { cases, unknown, neighbour, unsure, wrong, .. } = part;
        let mut row = vec![plain(&name)];
        row.extend([*cases, *unknown, *neighbour, *unsure, wrong.len()].map(|n| plain(&n)));
        row
    };
    let sum = LeftOut::sum(parts);
    let mut rows: Vec<Vec<Cell>> = parts.iter().map(|part| row(part, &part.family)).collect();
    rows.push(row(&sum, "each in turn"));
    page.table(&columns, &rows)?;
    for wrong in &sum.wrong {
        let text = format!("{}: {} without {}", wrong.id, wrong.got, wrong.expected);
        page.entry("wrong", MARGIN, Label::Bad, &text)?;
    }
    Ok(())
}

/// The table as `classify` keeps it.
fn calibration(page: &mut Page<'_>, table: &Table) -> io::Result<()> {
    let text = format!(
        "{} of {} cases have a first cause; by {} folds of whole sources ECE {}, Brier {}",
        table.cases,
        table.of,
        table.folds,
        number(table.cross_validated_ece),
        number(table.cross_validated_brier)
    );
    page.entry("calibration", MARGIN, Label::Plain, &text)?;
    for line in table.source() {
        page.line(&[(Label::Plain, &line)])?;
    }
    Ok(())
}

fn number(share: Option<f64>) -> String {
    share.map_or_else(|| "n/a".to_owned(), |share| format!("{share:.3}"))
}

fn share(share: &Share) -> String {
    format!("{} ({} of {})", number(share.share), share.right, share.cases)
}
