//! A scan made the plain way, so that deciding can be tested apart from the streaming scanner.

use crate::classify::Rules;
use crate::logs::{Block, BlockKind, Frame, Hit, Line, Scan};

/// Scans a text for the literals of `rules`.
pub(super) fn scan(rules: &Rules, text: &str) -> Scan {
    let lines = lines(text);
    let blocks = blocks(&lines);
    let literals = rules.literals();
    let mut hits = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let number = line.number;
        let block = blocks.iter().position(|block| {
            let last = block.terminal.as_ref().and_then(|line| line.number);
            block.first.number <= number && number <= last.or(block.first.number)
        });
        for (literal, words) in literals.iter().enumerate() {
            if line.text.contains(words.as_str()) {
                let lines_after = after(&lines, index);
                hits.push(Hit { literal, line: line.clone(), block, lines_after });
            }
        }
    }
    let filled = lines.iter().filter(|line| !line.text.trim().is_empty());
    let tail: Vec<Line> = filled.rev().take(10).cloned().collect();
    Scan {
        hits,
        blocks,
        tail: tail.into_iter().rev().collect(),
        size: text.len() as u64,
        scanned: text.len() as u64,
        ..Scan::default()
    }
}

fn after(lines: &[Line], index: usize) -> u32 {
    let filled = lines[index + 1..].iter().filter(|line| !line.text.trim().is_empty()).count();
    u32::try_from(filled.min(1000)).expect("at most 1000")
}

fn lines(text: &str) -> Vec<Line> {
    let mut offset = 0;
    let mut lines = Vec::new();
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let body = raw.trim_end_matches(['\n', '\r']);
        let shown = body.rsplit('\r').find(|part| !part.is_empty()).unwrap_or("");
        let (rank, text) = without_rank(&without_escapes(shown));
        lines.push(Line {
            number: Some(index as u64 + 1),
            offset,
            length: body.len() as u64,
            rank,
            text,
        });
        offset += raw.len() as u64;
    }
    lines
}

fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

fn without_rank(text: &str) -> (Option<u64>, String) {
    for (start, end) in [("[rank", "]:"), ("[rank", "]"), ("", ":")] {
        let split = text.strip_prefix(start).and_then(|rest| rest.split_once(end));
        if let Some((number, rest)) = split
            && let Ok(rank) = number.trim().parse()
        {
            return (Some(rank), rest.strip_prefix(' ').unwrap_or(rest).to_owned());
        }
    }
    (None, text.to_owned())
}

fn blocks(lines: &[Line]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        if !lines[index].text.starts_with("Traceback (most recent call last)") {
            index += 1;
            continue;
        }
        let first = index;
        index += 1;
        while lines.get(index).is_some_and(|line| line.text.starts_with(' ')) {
            index += 1;
        }
        if let Some(last) = blocks.last() {
            let ended = last.terminal.as_ref().and_then(|line| line.number).unwrap_or(0);
            let between = &lines[usize::try_from(ended).expect("small")..first];
            let leads = between.iter().any(|line| {
                line.text.starts_with("During handling of the above")
                    || line.text.starts_with("The above exception was")
            });
            let next = blocks.len();
            if leads {
                blocks[next - 1].leads_to = Some(next);
            }
        }
        blocks.push(Block {
            kind: BlockKind::PythonTraceback,
            first: lines[first].clone(),
            terminal: lines.get(index).cloned(),
            frames: lines[first..index.min(lines.len())].iter().filter_map(frame).collect(),
            leads_to: None,
            lines_after: after(lines, index.min(lines.len() - 1)),
        });
        index += 1;
    }
    blocks
}

fn frame(line: &Line) -> Option<Frame> {
    let rest = line.text.trim().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let (number, function) = rest.split_once(", in ").unwrap_or((rest, ""));
    let (file, function) = (file.to_owned(), function.to_owned());
    Some(Frame { file, line: number.parse().ok()?, function })
}
