//! Resolved tickets as notes: what did others do about this here?
//!
//! Each file becomes one page of the user's or site's own notes. Secrets are masked and whatever
//! steers a terminal is taken out before anything is written; who wrote a ticket, and about whom, is
//! not known for private here and stays: what is imported is readable by its owner alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{AnswerError, NOTE_LIMIT, World};
use crate::host::{FileError, FileErrorKind, Runner, Store};
use crate::knowledge;
use crate::model::Notice;
use crate::text;

/// Where imported notes are kept, below what a person has installed: a cache may be emptied.
const OWN: &str = "notes";

/// The folder of the user's own notes; `None` without a home.
pub fn own_folder(machine: &dyn Runner) -> Option<PathBuf> {
    Some(Store::locate_data(machine)?.root().join(OWN))
}

/// What was imported.
#[derive(Debug, Serialize)]
pub struct Imported {
    /// `jobwise/kb-import/1`.
    pub schema: &'static str,
    /// Where the notes are.
    pub folder: PathBuf,
    /// One for each ticket, by name.
    pub tickets: Vec<Ticket>,
    /// What was left out, and why.
    pub notices: Vec<Notice>,
}

/// A ticket.
#[derive(Debug, Serialize)]
pub struct Ticket {
    /// Its file.
    pub from: PathBuf,
    /// The note it became.
    pub note: String,
    /// Its title.
    pub title: String,
    /// Whether the note is new or another than before.
    pub changed: bool,
    /// Secrets that were masked.
    pub masked: usize,
}

/// Imports the tickets of a folder: its files that end in `.md` or `.txt`. The same tickets give the
/// same notes, however often.
pub fn import(
    world: World<'_>,
    tickets: &Path,
    into: Option<&Path>,
) -> Result<Imported, AnswerError> {
    let folder = match into {
        Some(folder) => folder.to_owned(),
        None => own_folder(world.machine).ok_or(AnswerError::NoStore)?,
    };
    let store = Store::at(&folder);
    let mut names = world.machine.list(tickets)?;
    names.sort_unstable();
    let mut imported = Imported {
        schema: "jobwise/kb-import/1",
        folder,
        tickets: Vec::new(),
        notices: Vec::new(),
    };
    let mut taken = BTreeSet::new();
    for name in names.iter().filter(|name| is_ticket(name)) {
        let from = tickets.join(name);
        match read(world, &from) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let (page, title, masked) = page(name, &text);
                let note = free(&slug(name), &mut taken);
                let changed = store.read(&note)?.as_deref() != Some(page.as_bytes());
                if changed {
                    store.replace(&note, page.as_bytes())?;
                }
                imported.tickets.push(Ticket { from, note, title, changed, masked });
            }
            Err(error) => {
                let text = format!("a ticket was left out: {error}");
                imported.notices.push(Notice::warning("ticket-left-out", text));
            }
        }
    }
    Ok(imported)
}

fn is_ticket(name: &str) -> bool {
    let end = Path::new(name).extension();
    end.is_some_and(|end| end == "md" || end == "txt") && !name.starts_with('.')
}

fn read(world: World<'_>, path: &Path) -> Result<String, FileError> {
    let content = world.machine.open_itself(path)?;
    if content.size() > NOTE_LIMIT {
        let reason = "is longer than the 1 MiB that a note may take".to_owned();
        return Err(FileError { reason, ..FileError::new(path, FileErrorKind::Io) });
    }
    let bytes = content.read_all(NOTE_LIMIT);
    let bytes = bytes.map_err(|error| FileError::from_io(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The note that a ticket becomes, its title, and how many secrets were masked.
fn page(name: &str, text: &str) -> (String, String, usize) {
    let lines: Vec<String> =
        text.lines().map(|line| text::clean_line(line.as_bytes()).trim_end().to_owned()).collect();
    let mut bytes = lines.join("\n").into_bytes();
    let masked = text::mask_secrets(&mut bytes);
    let clean = String::from_utf8_lossy(&bytes).into_owned();
    let title = knowledge::page(name, &clean).title;
    let body = clean.trim();
    // A title of its own is there already; front matter is none of ours, and no rule.
    let page =
        if body.starts_with("# ") { format!("{body}\n") } else { format!("# {title}\n\n{body}\n") };
    (page, title, masked)
}

/// A name of small letters, digits and dashes: the ticket's, marked as one.
fn slug(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let parts: Vec<&str> =
        stem.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let stem = parts.join("-");
    if stem.starts_with("ticket") { stem } else { format!("ticket-{stem}") }
}

/// The name as a file's, with a number where an earlier ticket has it already.
fn free(slug: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = format!("{slug}.md");
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{slug}-{number}.md");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_each_is_taken_once() {
        let mut taken = BTreeSet::new();
        let names = ["4711.md", "4711.txt", "GPU node (c12) lost!.md", "ticket_8.md"];
        let names = names.map(|name| free(&slug(name), &mut taken));
        assert_eq!(
            names,
            ["ticket-4711.md", "ticket-4711-2.md", "ticket-gpu-node-c12-lost.md", "ticket-8.md"]
        );
    }

    #[test]
    fn a_ticket_keeps_its_words_and_loses_secrets_and_escapes() {
        let (page, title, masked) =
            page("4711.txt", "\u{1b}[31mQuota\u{1b}[0m again\nexport TOKEN=hunter2hunter2\r\n");
        assert_eq!((title.as_str(), masked), ("4711", 1));
        assert!(page.starts_with("# 4711\n\nQuota again\nexport TOKEN="), "{page}");
        assert!(!page.contains("hunter2") && !page.contains('\u{1b}') && !page.contains('\r'));
        // A title of its own stays the only one.
        assert!(super::page("a.md", "# Own\n\nx\n").0.starts_with("# Own\n\nx"));
        // Front matter of another program makes no family of it.
        assert!(super::page("a.md", "---\nid: 7\n---\nx\n").0.starts_with("# a\n\n---"));
    }
}
