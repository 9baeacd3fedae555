//! The knowledge base for people.

use std::io;

use super::Report;
use super::page::{Column, Label, Page, WHOLE};
use crate::answer::import::Imported;
use crate::answer::kb::{Built, Check, Hits, Listing, Literals, Note, Refreshed};
use crate::answer::models::{Candidate, Installed, Models, Removed, Whereabouts};
use crate::knowledge::Provenance;
use crate::model::Bytes;
use crate::retrieve::{Parts, Scored, first_steps};
use crate::text;

const MARGIN: usize = 10;

impl Report for Built {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let line = format!(
            "{} of {} indexed by {} ({} search, {} bytes)",
            text::count(self.chunks as u64, "section"),
            text::count(self.families as u64, "family"),
            self.embedder,
            self.search,
            self.bytes
        );
        page.entry("", 0, Label::Good, &line)?;
        let embedded = text::count(self.embedded as u64, "text");
        page.line(&[(Label::Plain, &format!("{embedded} embedded, the others were known"))])?;
        page.line(&[(Label::Plain, &self.index.display().to_string())])?;
        page.notices(&self.notices)
    }
}

impl Report for Hits {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.matches.is_empty() {
            page.line(&[(Label::Plain, "no note has to do with these words")])?;
        }
        for (index, found) in self.matches.iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            let title = format!("{} - {}", found.chunk.title, found.chunk.heading);
            page.row(&[(Label::Strong, &title), (Label::Dim, &found.chunk.family.0)])?;
            let steps = first_steps(&found.chunk.markdown);
            if steps.is_empty() {
                for line in found.chunk.markdown.lines() {
                    page.entry("", 2, Label::Plain, line)?;
                }
            }
            for (number, step) in steps.iter().enumerate() {
                page.entry(&format!("  {}. ", number + 1), 5, Label::Plain, step)?;
            }
            if let Some(file) = &found.chunk.page {
                page.entry("", 2, Label::Dim, file)?;
            }
            if self.scores {
                scores(page, found.score, found.parts, &found.sections)?;
            }
        }
        if let Some(first) = self.matches.first() {
            let all = format!("all of a note: jobwise kb show {}", first.chunk.family);
            page.line(&[(Label::Dim, &all)])?;
        }
        page.notices(&self.notices)
    }
}

/// What a score is made of, and how each section did by itself.
pub(super) fn scores(
    page: &mut Page<'_>,
    score: f64,
    parts: Parts,
    sections: &[Scored],
) -> io::Result<()> {
    let Parts { bm25, dense, family } = parts;
    let parts = format!("{score:.3} = words {bm25:.3} + meaning {dense:.3} + family {family:.0}");
    page.entry("score", MARGIN, Label::Dim, &parts)?;
    let sections: Vec<String> =
        sections.iter().map(|own| format!("{} {:.3}", own.heading, own.score)).collect();
    if sections.is_empty() {
        return Ok(());
    }
    page.entry("", MARGIN, Label::Dim, &sections.join(", "))
}

impl Report for Imported {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for ticket in &self.tickets {
            let state = if ticket.changed { "imported" } else { "unchanged" };
            let masked = match ticket.masked {
                0 => String::new(),
                secrets => format!(", {} masked", text::count(secrets as u64, "secret")),
            };
            let line = format!("{}: {}{masked}", ticket.note, ticket.title);
            page.entry(state, MARGIN, Label::Plain, &line)?;
        }
        if self.tickets.is_empty() {
            page.line(&[(Label::Plain, "no file there ends in .md or .txt")])?;
        } else {
            page.line(&[(Label::Plain, &self.folder.display().to_string())])?;
        }
        page.notices(&self.notices)
    }
}

impl Report for Listing {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        // How many signals each has is for programs: JSON has it, and the titles need the room.
        const COLUMNS: [Column; 4] = [
            Column { heading: "FAMILY", right: false, least: WHOLE },
            Column { heading: "TITLE", right: false, least: 20 },
            Column { heading: "WHOSE", right: false, least: 5 },
            Column { heading: "EDITS", right: false, least: 6 },
        ];
        let rows: Vec<Vec<(Label, String)>> = self
            .families
            .iter()
            .map(|row| {
                let edits: Vec<String> = row.edits.iter().map(ToString::to_string).collect();
                vec![
                    (Label::Strong, row.family.to_string()),
                    (Label::Plain, row.title.clone()),
                    (Label::Plain, format!("{:?}", row.domain).to_lowercase()),
                    (Label::Plain, edits.join(", ")),
                ]
            })
            .collect();
        page.table(&COLUMNS, &rows)?;
        for row in &self.families {
            let (what, path) = match &row.provenance {
                Provenance::BuiltIn => continue,
                Provenance::Overlay(path) => ("yours", path),
                Provenance::Replacement(path) => ("replaced", path),
            };
            page.entry(what, MARGIN, Label::Dim, &format!("{}: {path}", row.family))?;
        }
        for own in &self.pages {
            page.entry("page", MARGIN, Label::Dim, &format!("{}: {}", own.page, own.path))?;
        }
        Ok(())
    }
}

impl Report for Literals {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        // For `grep -F -f`: a blank at the end of one is part of it.
        self.literals.iter().try_for_each(|literal| page.verbatim(literal))
    }
}

impl Report for Note {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for own in &self.pages {
            page.row(&[(Label::Strong, &own.title), (Label::Dim, &own.path)])?;
            for section in &own.sections {
                page.gap()?;
                page.line(&[(Label::Strong, &section.heading)])?;
                for paragraph in section.markdown.lines() {
                    page.entry("", 2, Label::Plain, paragraph)?;
                }
            }
        }
        let Some(family) = &self.family else { return Ok(()) };
        if !self.pages.is_empty() {
            page.gap()?;
        }
        page.row(&[(Label::Strong, &family.title), (Label::Dim, &family.id.to_string())])?;
        match &family.provenance {
            Provenance::BuiltIn => {}
            Provenance::Overlay(path) => page.line(&[(Label::Dim, path)])?,
            Provenance::Replacement(path) => {
                page.line(&[(Label::Dim, path), (Label::Dim, ", in place of the built-in note")])?;
            }
        }
        for section in &family.sections {
            page.gap()?;
            page.line(&[(Label::Strong, &section.heading)])?;
            for paragraph in section.markdown.lines() {
                page.entry("", 2, Label::Plain, paragraph)?;
            }
        }
        page.gap()?;
        for signal in &family.signals {
            let how = match (&signal.literal, &signal.when) {
                (Some(literal), _) => format!("{} \"{literal}\"", signal.id),
                (None, _) => format!("{} (from the record)", signal.id),
            };
            let role = format!("{:?}", signal.role).to_lowercase();
            page.entry(&role, MARGIN, Label::Plain, &how)?;
        }
        for edit in &family.edits {
            page.entry("edit", MARGIN, Label::Plain, &edit.to_string())?;
        }
        if let Some(reason) = &family.without_edit {
            page.entry("no edit", MARGIN, Label::Plain, reason)?;
        }
        for source in &family.sources {
            page.entry("source", MARGIN, Label::Plain, source)?;
        }
        Ok(())
    }
}

impl Report for Check {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for finding in &self.findings {
            page.entry("", 0, Label::Bad, &finding.to_string())?;
        }
        let what = format!(
            "{}, {}: {}",
            text::count(self.families as u64, "family"),
            text::count(self.signals as u64, "signal"),
            text::count(self.findings.len() as u64, "finding")
        );
        let label = if self.findings.is_empty() { Label::Good } else { Label::Bad };
        page.line(&[(label, &what)])?;
        page.notices(&self.notices)
    }
}

impl Report for Refreshed {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let line = format!(
            "vectors of {} and {}, {} embedded now ({} bytes)",
            text::count(self.sections as u64, "section"),
            text::count(self.examples as u64, "example"),
            self.embedded,
            self.bytes
        );
        page.entry("", 0, Label::Good, &line)?;
        page.line(&[(Label::Plain, &self.file.display().to_string())])
    }
}

impl Report for Models {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for (index, row) in self.files.iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            page.row(&[(Label::Strong, &row.name), (Label::Dim, row.what)])?;
            let size = format!("{} ({} to fetch)", Bytes(row.bytes), Bytes(row.download));
            for (name, value) in [
                ("file", row.file),
                ("size", &*size),
                ("package", row.package),
                ("licence", row.licence),
                ("sha256", row.sha256),
            ] {
                page.entry(name, MARGIN, Label::Plain, value)?;
            }
        }
        Ok(())
    }
}

impl Report for Whereabouts {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for candidate in &self.candidates {
            let Candidate { what, path, place, used, why_not } = candidate;
            let path = path.display().to_string();
            let label = if *used { Label::Good } else { Label::Dim };
            page.entry(what, MARGIN, label, &path)?;
            let why = why_not.as_deref().unwrap_or("used");
            page.entry("", MARGIN, Label::Dim, &format!("{place}: {why}"))?;
        }
        page.notices(&self.notices)
    }
}

impl Report for Installed {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for file in &self.files {
            page.entry(file.what, MARGIN, Label::Good, &file.path.display().to_string())?;
            let from = match &file.from {
                Some(from) => format!("verified, from {from}"),
                None => "verified, was there already".to_owned(),
            };
            page.entry("", MARGIN, Label::Dim, &from)?;
        }
        page.notices(&self.notices)
    }
}

impl Report for Removed {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.files.is_empty() {
            page.line(&[(Label::Plain, "nothing was installed there")])?;
        }
        for file in &self.files {
            page.entry("removed", MARGIN, Label::Plain, &file.display().to_string())?;
        }
        Ok(())
    }
}
