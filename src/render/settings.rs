//! The settings in force, for people.

use std::io;

use super::Report;
use super::page::{Column, Label, Page};
use crate::answer::settings::Settings;

impl Report for Settings {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        const COLUMNS: [Column; 3] = [
            Column { heading: "SETTING", right: false, least: 20 },
            Column { heading: "VALUE", right: true, least: 5 },
            Column { heading: "FROM", right: false, least: 7 },
        ];
        let rows: Vec<Vec<(Label, String)>> = self
            .settings
            .iter()
            .map(|row| {
                let cells = [Some(&row.key), Some(&row.value), row.origin.as_ref()];
                cells.into_iter().flatten().map(|cell| (Label::Plain, cell.clone())).collect()
            })
            .collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(COLUMNS.len());
        page.table(&COLUMNS[..columns], &rows)
    }
}
