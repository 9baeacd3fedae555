//! Banners: text between two rules of `---`, `***` or `===`, as MPI and applications print.
//!
//! Only banners around a hit matter, so they are looked for there, afterwards, by reading the few
//! lines before and after it again.

use memchr::memrchr;

use super::{Block, BlockKind, Line, rank, read};
use crate::host::Content;
use crate::text::clean_line;

/// How far from a hit a rule is looked for, in bytes and lines.
const REACH: u64 = 4096;
const LINES: usize = 40;
/// The shortest row of characters that is a rule.
const RULE: usize = 20;

/// The banner around a line, with the offset of its last line.
pub(super) fn around(content: &dyn Content, line: &Line, labelled: bool) -> Option<(Block, u64)> {
    let from = line.offset.saturating_sub(REACH);
    let before = read(content, from, line.offset).ok()?;
    let end = line.offset.checked_add(line.length)?;
    let after = read(content, end, end.saturating_add(REACH).min(content.size())).ok()?;

    // Upwards from the line before: its line end is the last byte.
    let mut upper = before.strip_suffix(b"\n")?;
    let mut above = None;
    for distance in 1..=LINES {
        let start = memrchr(b'\n', upper).map_or(0, |at| at + 1);
        // The first line of what was read may have been cut.
        if start == 0 && from > 0 {
            break;
        }
        if let Some(rule) = rule(&upper[start..], labelled) {
            above = Some((distance, start, upper.len() - start, rule));
            break;
        }
        match start.checked_sub(1) {
            Some(shorter) => upper = &upper[..shorter],
            None => break,
        }
    }
    let (distance, start, length, (text, rank)) = above?;

    let mut offset = end;
    for lower in after.split_inclusive(|&byte| byte == b'\n').take(LINES + 1) {
        let closing = rule(lower, labelled);
        if closing.is_some_and(|(closing, _)| closing.get(..1) == text.get(..1)) {
            let first = Line {
                number: line.number.and_then(|number| number.checked_sub(distance as u64)),
                offset: from + start as u64,
                length: length as u64,
                rank,
                text,
            };
            let kind = BlockKind::Banner;
            let frames = Vec::new();
            let block = Block {
                kind,
                first,
                terminal: None,
                frames,
                leads_to: None,
                ignored: false,
                lines_after: 0,
                heading: None,
            };
            return Some((block, offset));
        }
        offset += lower.len() as u64;
    }
    None
}

/// The text of a rule and its rank, if the line is one.
fn rule(line: &[u8], labelled: bool) -> Option<(String, Option<u64>)> {
    if line.len() < RULE {
        return None;
    }
    let text = clean_line(line);
    let (rank, text) = rank::strip(&text, labelled);
    let text = text.trim();
    let first = text.chars().next().filter(|c| matches!(c, '-' | '*' | '='))?;
    (text.len() >= RULE && text.chars().all(|c| c == first)).then(|| (text.to_owned(), rank))
}
