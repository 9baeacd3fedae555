//! A report as text or as JSON.
//!
//! Nothing is computed here and nothing is asked: a report is a value, and each format is a way
//! to write it to a writer. Colours are labels until [`Page`] paints them; text is understandable
//! without any.

mod breakdown;
mod capacity;
mod diagnosis;
mod eval;
mod export;
mod figures;
mod gpus;
mod job;
mod json;
mod kb;
mod overview;
mod page;
mod patterns;
mod place;
mod reliability;
mod retrieval;
mod settings;
mod sizing;
mod snapshot;
mod stats;
mod ticket;
mod zoom;

use std::io::{self, Write};

use serde::Serialize;

use crate::answer::breakdown::Breakdown;

pub use page::{Label, Look, Page};

use crate::answer::diagnose::Diagnoses;

/// A report that can be written for people.
pub trait Report: Serialize {
    /// Writes it as text.
    fn text(&self, page: &mut Page<'_>) -> io::Result<()>;
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: one document with a `schema` field.
    Json,
}

/// Writes a value that is no report, such as a refusal, as one JSON document.
pub fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    json::write(value, false, out)
}

/// Writes a diagnosis as one block of Markdown for a ticket.
pub fn write_ticket(answer: &Diagnoses, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    ticket::ticket(answer, &mut Page::new(out, look))
}

/// Writes sums as comma-separated values.
pub fn write_csv(sums: &Breakdown, out: &mut dyn Write) -> io::Result<()> {
    breakdown::csv(sums, out)
}

/// Writes a report.
pub fn write(
    report: &impl Report,
    format: Format,
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => report.text(&mut Page::new(out, look)),
        Format::Json => json::write(report, look.ascii, out),
    }
}
