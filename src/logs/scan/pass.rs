//! One pass over the bytes of a stream, fed in pieces of any size.
//!
//! The stream is taken apart into units: what stands between two line ends or carriage returns,
//! so that a message between two states of a progress bar is found. Only units with a stem are
//! looked at; while a traceback is open, every one. What is found does not depend on how the
//! stream was cut into pieces.

use std::collections::VecDeque;

use memchr::{memchr_iter, memchr2, memrchr2};

use super::ending::COUNTED;
use super::traceback::{Mark, Tracebacks};
use super::{Hit, Line, Pattern, Scanner, cut, rank};
use crate::text::{in_english, masked, printable};

/// A unit longer than this is not looked at as a whole, but in windows around its stems.
pub(super) const LONG: usize = 64 << 10;
/// The window: so much before a stem and after it.
const BEFORE: usize = 1024;
const AFTER: usize = 3072;
/// So much on either side of a window is looked at for the rest of a secret.
const BESIDE: usize = 4096;
/// Hits kept per literal from the beginning, and as many from the end.
const KEPT: usize = 8;

/// The state of a pass.
pub(super) struct Pass<'s> {
    scanner: &'s Scanner,
    labelled: bool,
    /// The number of the line that is being read, where lines can be counted.
    number: Option<u64>,
    /// In a unit too long to be taken whole: up to which offset it was searched.
    long: Option<u64>,
    /// The rest of a line that began before the stream was entered is to be passed over.
    skipping: bool,
    first: Vec<Vec<Hit>>,
    last: Vec<VecDeque<Hit>>,
    /// Where the last lines begin that hold a literal or are part of a traceback, also those of
    /// which no hit is kept.
    told: VecDeque<u64>,
    tracebacks: Tracebacks,
}

/// What a pass found. The blocks of hits and the links between tracebacks are ids still.
pub(super) struct Found {
    /// The hits in the order of the stream.
    pub(super) hits: Vec<Hit>,
    /// Where the last thousand lines begin that hold a literal or are part of a traceback.
    pub(super) told: Vec<u64>,
    pub(super) tracebacks: Tracebacks,
}

impl<'s> Pass<'s> {
    pub(super) fn new(scanner: &'s Scanner, labelled: bool) -> Self {
        Self {
            scanner,
            labelled,
            number: Some(1),
            long: None,
            skipping: false,
            first: vec![Vec::new(); scanner.literals],
            last: vec![VecDeque::new(); scanner.literals],
            told: VecDeque::new(),
            tracebacks: Tracebacks::default(),
        }
    }

    /// Line ends passed, where they can be counted.
    pub(super) fn newlines(&self) -> Option<u64> {
        self.number.map(|number| number - 1)
    }

    /// The pass goes on elsewhere, in the middle of a line.
    pub(super) fn jump(&mut self) {
        self.number = None;
        self.skipping = true;
        self.tracebacks.interrupt();
    }

    /// What was found.
    pub(super) fn finish(self) -> Found {
        let mut hits: Vec<Hit> =
            self.first.into_iter().flatten().chain(self.last.into_iter().flatten()).collect();
        hits.sort_by_key(|hit| (hit.line.offset, hit.literal));
        Found { hits, told: self.told.into(), tracebacks: self.tracebacks }
    }

    /// Takes the bytes at `base` and says how many of them are done with; the others want to be
    /// seen again with what follows. With `last` nothing follows.
    pub(super) fn feed(&mut self, bytes: &[u8], base: u64, last: bool) -> usize {
        let mut at = 0;
        if self.skipping {
            match memchr2(b'\n', b'\r', bytes) {
                Some(end) => at = end + 1,
                None => return bytes.len(),
            }
            self.skipping = false;
        }
        loop {
            if let Some(searched) = self.long {
                let from = usize::try_from(searched - base).unwrap_or(0).max(at);
                let end = memchr2(b'\n', b'\r', &bytes[from..]).map(|end| from + end);
                let to = end.unwrap_or(bytes.len());
                let reached = self.windows(bytes, base, at, from, to, end.is_some() || last);
                let Some(end) = end else {
                    self.long = (!last).then_some(base + reached as u64);
                    return if last { to } else { reached.saturating_sub(BEFORE + BESIDE).max(at) };
                };
                self.long = None;
                self.count(&bytes[end..=end]);
                at = end + 1;
            }
            let whole = if last {
                bytes.len()
            } else {
                memrchr2(b'\n', b'\r', &bytes[at..]).map_or(at, |end| at + end + 1)
            };
            self.units(&bytes[..whole], base, at);
            at = whole;
            if last || bytes.len() - at <= LONG {
                return at;
            }
            self.long = Some(base + at as u64);
        }
    }

    /// All units from `at` on; the bytes end with a unit.
    fn units(&mut self, bytes: &[u8], base: u64, mut at: usize) {
        let scanner = self.scanner;
        let mut stems = scanner.stems.hits(bytes, at..bytes.len());
        while at < bytes.len() {
            let mut from = at;
            if !self.tracebacks.any_open() {
                let Some(stem) = stems.at_or_after(at) else {
                    self.count(&bytes[at..]);
                    return;
                };
                let start = memrchr2(b'\n', b'\r', &bytes[at..stem]).map_or(at, |end| at + end + 1);
                self.count(&bytes[at..start]);
                at = start;
                from = stem;
            }
            let end = memchr2(b'\n', b'\r', &bytes[from..]).map_or(bytes.len(), |end| from + end);
            if end - at > LONG {
                self.windows(bytes, base, at, at, end, true);
            } else {
                self.unit(&bytes[at..end], base + at as u64);
            }
            let next = bytes.len().min(end + 1);
            self.count(&bytes[end..next]);
            at = next;
        }
    }

    /// One unit without its end.
    fn unit(&mut self, raw: &[u8], offset: u64) {
        let text = printable(raw);
        let (rank, text) = rank::strip(&text, self.labelled);
        let line = Line {
            number: self.number,
            offset,
            length: raw.len() as u64,
            rank,
            text: String::new(),
        };
        let (mark, found) = self.search(text);
        let block = self.tracebacks.line(&line, text, mark);
        if block.is_some() || !found.is_empty() {
            self.tell(offset);
        }
        self.keep(&line, text, block, &found);
    }

    fn tell(&mut self, offset: u64) {
        if self.told.len() == COUNTED {
            self.told.pop_front();
        }
        self.told.push_back(offset);
    }

    /// The stems of a long unit that begins at or before `start`, searched in `from..to`. Says up
    /// to where it is done.
    fn windows(
        &mut self,
        bytes: &[u8],
        base: u64,
        start: usize,
        mut from: usize,
        to: usize,
        complete: bool,
    ) -> usize {
        let scanner = self.scanner;
        let mut stems = scanner.stems.hits(bytes, from..to);
        while let Some(stem) = stems.at_or_after(from) {
            if stem + AFTER + BESIDE > to && !complete {
                return stem;
            }
            let first = stem.saturating_sub(BEFORE).max(start);
            let end = to.min(stem + AFTER);
            let line = Line {
                number: self.number,
                offset: base + first as u64,
                length: (end - first) as u64,
                rank: None,
                text: String::new(),
            };
            let text = printable(&bytes[first..end]);
            let (_, found) = self.search(&text);
            if !found.is_empty() {
                self.tell(line.offset);
                let before = printable(&bytes[first.saturating_sub(BESIDE).max(start)..first]);
                let after = printable(&bytes[end..to.min(end + BESIDE)]);
                let whole = masked(&[before.as_str(), &text, &after].concat());
                let text = whole.get(before.len()..before.len() + text.len()).unwrap_or_default();
                self.keep(&line, text, None, &found);
            }
            from = end;
        }
        // A stem may lie across the end of what is there.
        if complete { to } else { from.max(to.saturating_sub(self.scanner.longest_stem)) }
    }

    /// The first mark of a traceback in a text, and every literal with its first place; of those that
    /// only its English holds, that of the message.
    fn search(&self, text: &str) -> (Option<Mark>, Vec<(usize, usize)>) {
        let (mut mark, mut literals, mut message) = (None, Vec::new(), None);
        let add = |literals: &mut Vec<(usize, usize)>, index: usize, at: usize| {
            if literals.iter().all(|(known, _)| *known != index) {
                literals.push((index, at));
            }
        };
        for (pattern, at) in self.patterns(text) {
            match pattern {
                Pattern::Mark(index) => mark = mark.or(Some(Mark::new(index, at))),
                Pattern::Literal(index) => add(&mut literals, index, at),
                Pattern::Foreign => message = message.or(Some(at)),
            }
        }
        if let Some(at) = message
            && let Some(english) = in_english(text)
        {
            for (pattern, _) in self.patterns(&english) {
                if let Pattern::Literal(index) = pattern {
                    add(&mut literals, index, at);
                }
            }
        }
        (mark, literals)
    }

    /// What the automaton finds in a text.
    fn patterns<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (Pattern, usize)> {
        let automaton = self.scanner.automaton.as_ref();
        let found = automaton.into_iter().flat_map(move |it| it.find_overlapping_iter(text));
        found.filter_map(|found| {
            let pattern = self.scanner.index.get(found.pattern().as_usize())?;
            Some((*pattern, found.start()))
        })
    }

    /// Keeps a hit for each literal that was found.
    fn keep(&mut self, line: &Line, text: &str, block: Option<usize>, found: &[(usize, usize)]) {
        for &(literal, at) in found {
            let line = Line { text: cut(text, at), ..line.clone() };
            let hit = Hit {
                literal,
                line,
                block,
                lines_after: 0,
                other_lines_after: 0,
                traced: false,
                next: Vec::new(),
            };
            if self.first[literal].len() < KEPT {
                self.first[literal].push(hit);
            } else {
                let last = &mut self.last[literal];
                if last.len() == KEPT {
                    last.pop_front();
                }
                last.push_back(hit);
            }
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        if let Some(number) = &mut self.number {
            *number += memchr_iter(b'\n', bytes).count() as u64;
        }
    }
}
