//! A measurement for people.

use std::io;

use super::Report;
use super::page::{Column, Label, Page};
use crate::answer::evaluate::Evaluation;
use crate::eval::Share;

const MARGIN: usize = 12;

impl Report for Evaluation {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let measures = &self.measures;
        page.entry("accuracy", MARGIN, Label::Strong, &share(&measures.accuracy))?;
        for (name, rows) in [("difficulty", &measures.by_difficulty), ("stage", &measures.by_stage)]
        {
            let rows: Vec<String> =
                rows.iter().map(|row| format!("{} {}", row.name, share(row))).collect();
            if !rows.is_empty() {
                page.entry(name, MARGIN, Label::Plain, &rows.join(", "))?;
            }
        }
        let found = &measures.retrieval;
        let retrieval = format!(
            "recall@1 {}, @3 {}, @5 {}, MRR {} (of {})",
            number(found.recall_at_1),
            number(found.recall_at_3),
            number(found.recall_at_5),
            number(found.mrr),
            found.cases
        );
        page.entry("notes", MARGIN, Label::Plain, &retrieval)?;
        page.entry("root lines", MARGIN, Label::Plain, &share(&measures.root_lines))?;
        let alarms = match measures.false_alarms.as_slice() {
            [] => "no success was called a failure".to_owned(),
            ids => format!("{}: {}", ids.len(), ids.join(" ")),
        };
        page.entry("alarms", MARGIN, Label::Plain, &alarms)?;
        page.gap()?;
        const FAMILIES: [Column; 6] = [
            Column { heading: "LABEL", right: false, least: 12 },
            Column { heading: "CASES", right: true, least: 5 },
            Column { heading: "ANSWERS", right: true, least: 7 },
            Column { heading: "RIGHT", right: true, least: 5 },
            Column { heading: "PRECISION", right: true, least: 9 },
            Column { heading: "RECALL", right: true, least: 6 },
        ];
        let rows: Vec<Vec<(Label, String)>> = measures
            .families
            .iter()
            .map(|row| {
                vec![
                    (Label::Plain, row.family.clone()),
                    (Label::Plain, row.cases.to_string()),
                    (Label::Plain, row.answers.to_string()),
                    (Label::Plain, row.right.to_string()),
                    (Label::Plain, number(row.precision)),
                    (Label::Plain, number(row.recall)),
                ]
            })
            .collect();
        page.table(&FAMILIES, &rows)?;
        page.gap()?;
        const CONFUSED: [Column; 3] = [
            Column { heading: "LABEL", right: false, least: 12 },
            Column { heading: "ANSWER", right: false, least: 12 },
            Column { heading: "CASES", right: true, least: 5 },
        ];
        let mut cells: Vec<_> =
            measures.confusion.iter().filter(|cell| cell.expected != cell.got).collect();
        cells.sort_by_key(|cell| std::cmp::Reverse(cell.cases));
        let rows: Vec<Vec<(Label, String)>> = cells
            .iter()
            .map(|cell| {
                vec![
                    (Label::Plain, cell.expected.clone()),
                    (Label::Bad, cell.got.clone()),
                    (Label::Plain, cell.cases.to_string()),
                ]
            })
            .collect();
        page.table(&CONFUSED, &rows)?;
        for skipped in &self.skipped {
            page.entry("skipped: ", 9, Label::Bad, skipped)?;
        }
        page.notices(&self.notices)
    }
}

fn number(share: Option<f64>) -> String {
    share.map_or_else(|| "n/a".to_owned(), |share| format!("{share:.3}"))
}

fn share(share: &Share) -> String {
    format!("{} ({} of {})", number(share.share), share.right, share.cases)
}
