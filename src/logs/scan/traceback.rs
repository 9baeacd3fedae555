//! Python tracebacks, put together line by line.
//!
//! Ranks that write at the same time interleave their lines, so there is one state per rank. The
//! forms are those of `CPython`'s `traceback` module, with exception groups (`  | `) reduced to the
//! tracebacks in them. A traceback that never comes to its exception is kept without one; one
//! without even a frame was only a mention.

use std::collections::{BTreeMap, VecDeque};

use super::{Block, BlockKind, Frame, Line, cut};
use crate::text::joined_exception;

/// What begins a traceback, and what links it to the one before. Looked for with the literals.
pub(super) const MARKS: [&str; 6] = [
    "Traceback (most recent call last)",
    "During handling of the above exception, another exception occurred",
    "The above exception was the direct cause of the following exception",
    "Exception ignored in",
    "Exception ignored on",
    "--- Logging error ---",
];

/// One of [`MARKS`] in a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// A traceback begins, behind so many bytes of something else.
    Header(usize),
    /// The next traceback was raised over the last one.
    Link,
    /// The next traceback is of an exception that nothing could be done about, and nothing was.
    Ignored,
}

impl Mark {
    /// The mark by its index and its place in the line.
    pub(super) fn new(index: usize, at: usize) -> Self {
        match index {
            0 => Self::Header(at),
            1 | 2 => Self::Link,
            _ => Self::Ignored,
        }
    }
}

/// Blocks kept from the beginning of a stream, and as many from its end.
const KEPT: usize = 32;
/// Ranks followed at the same time.
const RANKS: usize = 4096;
/// Frames kept of one traceback: the outermost and the innermost.
const OUTER_FRAMES: usize = 16;
const FRAMES: usize = 64;
/// Lines of the same rank that do not belong, after which a traceback is given up.
const FOREIGN: u32 = 20;
/// Lines of any rank without one of its own, after which a traceback is given up.
const IDLE: u64 = 5000;
/// Bytes that other ranks may write between two lines of one.
const INTERLEAVED: u64 = 4096;

type Rank = Option<u64>;

/// A traceback being read.
#[derive(Debug)]
struct Open {
    id: usize,
    block: Block,
    end: u64,
    indent: usize,
    /// What a logger put before the header, such as a time.
    prefix: String,
    grouped: bool,
    foreign: u32,
    /// Whether the line before was one of its own, so that an exception may follow.
    adjacent: bool,
    touched: u64,
}

/// A traceback that has been read, with the offset of its last line.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) id: usize,
    pub(super) block: Block,
    pub(super) end: u64,
}

/// All tracebacks of a stream.
#[derive(Debug, Default)]
pub(super) struct Tracebacks {
    opened: usize,
    lines: u64,
    open: BTreeMap<Rank, Open>,
    /// The last traceback of each rank that was concluded.
    recent: BTreeMap<Rank, usize>,
    /// The traceback that the next one of this rank was raised over.
    chained: BTreeMap<Rank, usize>,
    /// Where the line ends that said of each rank that the next traceback is ignored.
    ignored: BTreeMap<Rank, u64>,
    first: Vec<Closed>,
    last: VecDeque<Closed>,
}

impl Tracebacks {
    /// Whether every line must be shown to [`Self::line`]; else those with a mark will do.
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes a line with the first mark in it, and says which traceback it is part of.
    pub(super) fn line(&mut self, line: &Line, text: &str, mark: Option<Mark>) -> Option<usize> {
        self.lines += 1;
        if self.lines.is_multiple_of(256) {
            self.give_up_idle();
        }
        match mark {
            Some(Mark::Header(at)) => {
                let first = Line { text: cut(text, at), ..line.clone() };
                return self.begin(first, &text[..at]);
            }
            Some(Mark::Link) => {
                self.close(line.rank);
                if let Some(&id) = self.recent.get(&line.rank) {
                    self.chained.insert(line.rank, id);
                }
                return None;
            }
            Some(Mark::Ignored) => {
                self.close(line.rank);
                self.ignored.insert(line.rank, line.offset + line.length);
                return None;
            }
            None => {}
        }
        let lines = self.lines;
        let open = self.open.get_mut(&line.rank)?;
        let whole = text;
        let text = open.relative(text);
        if text.trim().is_empty() {
            return None;
        }
        let own = if text.starts_with([' ', '\t']) {
            if let Some((file, number, function)) = frame(text) {
                if open.block.frames.len() == FRAMES {
                    open.block.frames.remove(OUTER_FRAMES);
                }
                let at = Line { text: cut(whole, 0), ..line.clone() };
                open.block.frames.push(Frame { file, line: number, function, at });
            } else if let Some(joined) = joined_exception(text)
                && is_exception(joined, false)
            {
                open.block.terminal = Some(Line { text: cut(joined, 0), ..line.clone() });
            }
            true
        } else if is_exception(text, open.adjacent && !open.block.frames.is_empty()) {
            open.block.terminal = Some(Line { text: cut(text, 0), ..line.clone() });
            true
        } else {
            open.foreign += 1;
            false
        };
        open.adjacent = own;
        let id = open.id;
        if own {
            open.end = line.offset;
            open.touched = lines;
        }
        if open.block.terminal.is_some() || open.foreign > FOREIGN {
            self.close(line.rank);
        }
        own.then_some(id)
    }

    /// Ends all that are open: the stream does not go on here.
    pub(super) fn interrupt(&mut self) {
        while let Some((&rank, _)) = self.open.first_key_value() {
            self.close(rank);
        }
        self.recent.clear();
        self.chained.clear();
        self.ignored.clear();
    }

    /// The tracebacks in the order of the stream, the first and the last few.
    pub(super) fn finish(mut self) -> Vec<Closed> {
        self.interrupt();
        let mut all = self.first;
        all.extend(self.last);
        all.sort_by_key(|closed| closed.id);
        all
    }

    fn begin(&mut self, first: Line, before: &str) -> Option<usize> {
        let rank = first.rank;
        self.close(rank);
        if self.open.len() >= RANKS {
            return None;
        }
        let id = self.opened;
        self.opened += 1;
        if let Some(earlier) = self.chained.remove(&rank) {
            let mut kept = self.first.iter_mut().chain(self.last.iter_mut());
            if let Some(closed) = kept.find(|closed| closed.id == earlier) {
                closed.block.leads_to = Some(id);
            }
        }
        let announced = self.ignored.remove(&rank);
        // Where ranks write between each other, other lines may come between.
        let between = if rank.is_some() { INTERLEAVED } else { 2 };
        let ignored = announced.is_some_and(|end| first.offset <= end + between);
        let grouped = before.trim_start().starts_with(['|', '+']);
        let blank = before.trim().is_empty();
        let indent = if blank { before.len() } else { 0 };
        let prefix = if blank || grouped { String::new() } else { before.to_owned() };
        let (end, touched) = (first.offset, self.lines);
        let block = Block {
            kind: BlockKind::PythonTraceback,
            first,
            terminal: None,
            frames: Vec::new(),
            leads_to: None,
            ignored,
            lines_after: 0,
            heading: None,
        };
        let foreign = 0;
        let adjacent = true;
        let open = Open { id, block, end, indent, prefix, grouped, foreign, adjacent, touched };
        self.open.insert(rank, open);
        Some(id)
    }

    fn close(&mut self, rank: Rank) {
        let Some(Open { id, block, end, .. }) = self.open.remove(&rank) else { return };
        if block.terminal.is_none() && block.frames.is_empty() {
            return;
        }
        if self.recent.len() < RANKS || self.recent.contains_key(&rank) {
            self.recent.insert(rank, id);
        }
        let closed = Closed { id, block, end };
        if self.first.len() < KEPT {
            self.first.push(closed);
        } else {
            self.last.push_back(closed);
            if self.last.len() > KEPT {
                self.last.pop_front();
            }
        }
    }

    fn give_up_idle(&mut self) {
        let idle: Vec<Rank> = self
            .open
            .iter()
            .filter(|(_, open)| self.lines - open.touched > IDLE)
            .map(|(&rank, _)| rank)
            .collect();
        for rank in idle {
            self.close(rank);
        }
    }
}

impl Open {
    /// The line as it would be if the traceback stood at the margin.
    fn relative<'a>(&self, text: &'a str) -> &'a str {
        if self.grouped {
            let inner = text.trim_start();
            if let Some(inner) = inner.strip_prefix(['|', '+']) {
                return inner.strip_prefix(' ').unwrap_or(inner);
            }
        }
        let text = behind_alike(text, &self.prefix);
        let blanks = text.bytes().take_while(|&byte| byte == b' ').count();
        &text[blanks.min(self.indent)..]
    }
}

/// What stands behind a prefix of the same shape: with other digits in the same places. A line
/// without one stays what it is.
fn behind_alike<'a>(text: &'a str, prefix: &str) -> &'a str {
    let alike = |(a, b): (u8, u8)| a == b || a.is_ascii_digit() && b.is_ascii_digit();
    match (text.get(..prefix.len()), text.get(prefix.len()..)) {
        (Some(own), Some(rest)) if own.bytes().zip(prefix.bytes()).all(alike) => rest,
        _ => text,
    }
}

/// How exceptions are called.
const ENDINGS: [&str; 8] =
    ["Error", "Exception", "Interrupt", "Exit", "Warning", "Iteration", "Timeout", "Group"];

/// `  File "train.py", line 3, in main`
fn frame(text: &str) -> Option<(String, u64, String)> {
    let rest = text.trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let line = rest[..digits].parse().ok()?;
    // A syntax error names the place without a function.
    let function = rest[digits..].strip_prefix(", in ").unwrap_or_default();
    Some((file.to_owned(), line, function.trim().to_owned()))
}

/// Whether a line at the margin is the exception that a traceback ends with: a name, alone or
/// before a colon. Right behind a frame any name with a capital will do; elsewhere, where other
/// output may be mixed in, it has to be called like an exception.
fn is_exception(text: &str, directly: bool) -> bool {
    let (name, alone) = match text.split_once(": ") {
        Some((name, _)) => (name, false),
        None => (text.trim_end().trim_end_matches(':'), true),
    };
    let dotted = name.contains('.');
    let identifier = name.split('.').all(|part| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
            || part == "<locals>"
    });
    let last = name.rsplit('.').next().unwrap_or(name);
    let called_so = ENDINGS.iter().any(|ending| last.ends_with(ending));
    let camel = last.starts_with(char::is_uppercase) && last.contains(char::is_lowercase);
    identifier && (called_so || directly && (dotted || camel && !alone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_name_file_line_and_function() {
        let made = frame("  File \"/a b/x.py\", line 12, in main").expect("a frame");
        assert_eq!(made, ("/a b/x.py".to_owned(), 12, "main".to_owned()));
        assert_eq!(frame("  File \"x.py\", line 3").map(|made| made.2).as_deref(), Some(""));
        assert_eq!(frame("    raise ValueError"), None);
    }

    #[test]
    fn exceptions_are_told_from_other_output() {
        for text in [
            "KeyError: 'DATA_ROOT'",
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried",
            "AssertionError",
            "KeyboardInterrupt",
            "ValueError: ",
            "ExceptionGroup: many (2 sub-exceptions)",
        ] {
            assert!(is_exception(text, false), "{text}");
        }
        for text in ["queue.Empty", "subprocess.TimeoutExpired: Command 'x'", "Boom: why"] {
            assert!(is_exception(text, true), "{text}");
            assert!(!is_exception(text, false), "{text}");
        }
        for text in ["INFO: saving", "Epoch 3: loss", "step: 3", "Killed", "srun: error: x", ""] {
            assert!(!is_exception(text, true), "{text}");
        }
    }
}
