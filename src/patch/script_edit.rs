//! Edits as replacements of byte ranges, so that every other byte stays as it is.

use std::ops::Range;

use similar::TextDiff;

use super::Altered;
use crate::text::{holds_secret, mask_secrets, steers};

/// Replacements, in the order proposed.
#[derive(Debug, Default)]
pub(super) struct Edits {
    replacements: Vec<Replacement>,
}

#[derive(Debug)]
struct Replacement {
    span: Range<usize>,
    /// Where a directive and a command are added at the same byte, the directive comes first:
    /// behind a command it would not be read.
    is_command: bool,
    text: Vec<u8>,
}

impl Edits {
    pub(super) fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    pub(super) fn replace(&mut self, span: Range<usize>, text: &str) {
        let text = text.as_bytes().to_vec();
        self.replacements.push(Replacement { span, is_command: false, text });
    }

    /// Adds a directive at byte `at`: the start of a line or the end of the script.
    pub(super) fn insert_directive(&mut self, script: &[u8], at: usize, line: &str) {
        let text = whole_line(script, at, line);
        self.replacements.push(Replacement { span: at..at, is_command: false, text });
    }

    /// Adds a command, likewise.
    pub(super) fn insert_command(&mut self, script: &[u8], at: usize, line: &str) {
        let text = whole_line(script, at, line);
        self.replacements.push(Replacement { span: at..at, is_command: true, text });
    }

    /// The script with every replacement made.
    pub(super) fn apply(mut self, script: &[u8]) -> Vec<u8> {
        self.replacements.sort_by_key(|new| (new.span.start, new.is_command));
        let mut patched = Vec::with_capacity(script.len() + 64);
        let mut at = 0;
        for Replacement { span, text, .. } in &self.replacements {
            patched.extend_from_slice(script.get(at..span.start).unwrap_or_default());
            patched.extend_from_slice(text);
            at = at.max(span.end);
        }
        patched.extend_from_slice(script.get(at..).unwrap_or_default());
        patched
    }
}

/// A line with the line end that the script uses at byte `at`.
fn whole_line(script: &[u8], at: usize, line: &str) -> Vec<u8> {
    let before = script.get(..at).unwrap_or(script);
    let dos = before.ends_with(b"\r\n")
        || (before.is_empty() && script.split(|b| *b == b'\n').next().is_some_and(ends_in_cr));
    let end = if dos { "\r\n" } else { "\n" };
    let start = if before.is_empty() || before.ends_with(b"\n") { "" } else { end };
    format!("{start}{line}{end}").into_bytes()
}

fn ends_in_cr(line: &[u8]) -> bool {
    line.ends_with(b"\r")
}

/// The diff with secrets masked, and how it differs from the script's own lines for it. A secret that
/// was masked already, as in a recording, counts.
pub(super) fn shown(name: &str, before: &[u8], after: &[u8]) -> (String, Option<Altered>) {
    let masked = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        mask_secrets(&mut bytes);
        bytes
    };
    let exact = diff(name, before, after);
    let shown = diff(name, &masked(before), &masked(after));
    let is_text = |line: &str| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        !line.contains('\u{fffd}') && !line.chars().any(|c| c != '\t' && steers(c))
    };
    let altered = if shown != exact || holds_secret(&exact) {
        Some(Altered::Secret)
    } else if !exact.split('\n').all(is_text) {
        Some(Altered::Unprintable)
    } else {
        None
    };
    (shown, altered)
}

/// A unified diff with three lines of context. Bytes that are no UTF-8 are shown as U+FFFD.
fn diff(name: &str, before: &[u8], after: &[u8]) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    // Not `from_lines`: that also cuts at a lone carriage return.
    let lines =
        |text: &'_ str| -> Vec<String> { text.split_inclusive('\n').map(str::to_owned).collect() };
    let (before, after) = (lines(&before), lines(&after));
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    let after: Vec<&str> = after.iter().map(String::as_str).collect();
    TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&before, &after)
        .unified_diff()
        .context_radius(3)
        .header(&name, &name)
        .to_string()
}
