//! The settings in force, for people.

use std::io;

use super::Report;
use super::page::{Column, Label, Page, WHOLE};
use crate::answer::settings::Settings;

impl Report for Settings {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        const COLUMNS: [Column; 3] = [
            Column { heading: "SETTING", right: false, least: WHOLE },
            Column { heading: "VALUE", right: true, least: 5 },
            Column { heading: "FROM", right: false, least: 7 },
        ];
        let rows: Vec<Vec<(Label, String)>> = self
            .settings
            .iter()
            .map(|row| {
                // Of energy zero says that nobody has told.
                let untold = row.key.starts_with("energy.") && row.value == "0";
                let value = if untold { "not set".to_owned() } else { row.value.clone() };
                let cells = [Some(row.key.clone()), Some(value), row.origin.clone()];
                cells.into_iter().flatten().map(|cell| (Label::Plain, cell)).collect()
            })
            .collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(COLUMNS.len());
        page.table(&COLUMNS[..columns], &rows)?;
        if self.files.is_empty() {
            return Ok(());
        }
        page.gap()?;
        for (index, file) in self.files.iter().enumerate() {
            let name = if index == 0 { "files" } else { "" };
            let state = if file.read { "read" } else { "not there" };
            page.entry(name, 7, Label::Plain, &format!("{} ({state})", file.path))?;
        }
        let how = "[section] then key = value, each file over the one before; over all of them \
                   JOBWISE_SECTION_KEY of the environment";
        page.entry("", 7, Label::Dim, how)
    }
}
