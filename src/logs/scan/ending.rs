//! The end of a stream: its last lines, and how many lines come after something.
//!
//! Read again from the end after the pass, so that the pass itself needs to look at no line that
//! holds nothing of interest.

use std::io;

use memchr::{memchr, memchr_iter};

use super::{LONG, Line, cut, rank, read, trace};
use crate::host::Content;
use crate::text::{clean_line, mask_secrets};

/// Lines of the tail.
const TAIL: usize = 40;
/// Lines after something are counted up to here.
pub(super) const COUNTED: usize = 1000;
/// How far back the end is read to find so many lines.
const FARTHEST: u64 = 16 << 20;
/// So many lines after something tell what became of it.
const NEXT: usize = 2;
/// So much of a line tells its form.
const FORM: usize = 1024;
/// Lines of a failure that may follow the last of it that holds a literal, and in how many bytes.
const REST: usize = 8;
const REST_BYTES: u64 = 4 << 10;

/// The end of a stream.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The last lines that are not blank.
    pub(super) tail: Vec<Line>,
    /// Where the last lines that are not blank begin, in order; one more than is counted.
    starts: Vec<u64>,
    /// Each of those.
    lines: Vec<Counted>,
}

/// A line that is counted.
#[derive(Debug, Default)]
struct Counted {
    /// The rank that wrote it.
    rank: Option<u64>,
    /// The beginning of its text, without the rank.
    text: String,
    /// Whether it is a frame or a heading of a trace.
    frame: bool,
    /// Whether it only belongs to a failure.
    of_failure: bool,
}

/// Lines that tell of no failure, in order: where they begin, and whose they are.
pub(super) struct Others(Vec<(u64, Option<u64>)>);

impl Others {
    /// How many follow a line. Those of another rank do not count: it goes on without this one.
    pub(super) fn after(&self, line: &Line) -> u32 {
        let first = self.0.partition_point(|(start, _)| *start <= line.offset);
        let own = |&&(_, rank): &&(u64, Option<u64>)| {
            rank.is_none() || line.rank.is_none() || rank == line.rank
        };
        counted(self.0[first..].iter().filter(own).count())
    }
}

impl Ending {
    /// Reads back from `size`, not beyond `floor`. `newlines` is how many line ends the stream
    /// has, where that is known.
    pub(super) fn read(
        content: &dyn Content,
        floor: u64,
        size: u64,
        newlines: Option<u64>,
        labelled: bool,
    ) -> io::Result<Self> {
        let mut reach: u64 = 64 << 10;
        loop {
            let from = size.saturating_sub(reach).max(floor);
            let bytes = read(content, from, size)?;
            // A line that began before is only taken if there is no other.
            let first = match memchr(b'\n', &bytes) {
                Some(at) if from > floor => at + 1,
                _ => 0,
            };
            let starts = starts(&bytes, first);
            if from == floor || reach >= FARTHEST || starts.len() > COUNTED {
                return Ok(Self::made(&bytes, from, &starts, newlines, labelled));
            }
            reach *= 16;
        }
    }

    /// Whether an offset lies in the lines that are counted.
    pub(super) fn reaches(&self, offset: u64) -> bool {
        self.starts.first().is_some_and(|&first| first <= offset)
    }

    /// How many lines that are not blank begin after an offset, at most 1000.
    pub(super) fn lines_after(&self, offset: u64) -> u32 {
        count_after(&self.starts, offset)
    }

    /// The lines that are counted, up to the one that holds an offset and behind it.
    fn around(&self, offset: u64) -> (&[Counted], &[Counted]) {
        self.lines.split_at(self.starts.partition_point(|&start| start <= offset))
    }

    /// Whether the line after an offset is a frame of a trace.
    pub(super) fn is_traced(&self, offset: u64) -> bool {
        self.around(offset).1.first().is_some_and(|line| line.frame)
    }

    /// What the same rank writes behind a line and its trace.
    pub(super) fn next(&self, line: &Line) -> Vec<String> {
        let (before, behind) = self.around(line.offset);
        let Some(own) = before.last() else { return Vec::new() };
        // Headings of traces that stand between, and what speaks of another exception.
        let aside = |text: &str| {
            text.contains("(most recent call first)") || text.starts_with("Exception ignored")
        };
        let next = behind
            .iter()
            .filter(|next| next.rank.is_none() || own.rank.is_none() || next.rank == own.rank)
            .filter(|next| next.text != own.text && !aside(&next.text))
            .skip_while(|next| next.frame || next.text.starts_with([' ', '\t']));
        next.take(NEXT).map(|next| next.text.clone()).collect()
    }

    /// The line before the one that begins at an offset.
    pub(super) fn before(&self, offset: u64) -> Option<String> {
        let (before, _) = self.around(offset.checked_sub(1)?);
        before.last().map(|line| line.text.clone())
    }

    /// Those of the last lines that are not told of: that hold none of the offsets `told` (in order),
    /// lie in none of the spans, ends included, and belong to no trace.
    pub(super) fn others(&self, told: &[u64], spans: &[(u64, u64)]) -> Others {
        let mut others = Vec::new();
        for (index, &start) in self.starts.iter().enumerate() {
            let next = self.starts.get(index + 1).copied().unwrap_or(u64::MAX);
            let at = told.partition_point(|&offset| offset < start);
            let is_told = told.get(at).is_some_and(|&offset| offset < next);
            let line = &self.lines[index];
            if !is_told
                && !line.of_failure
                && !spans.iter().any(|(first, last)| (*first..=*last).contains(&start))
            {
                others.push((start, line.rank));
            }
        }
        Others(others)
    }

    fn made(
        bytes: &[u8],
        from: u64,
        starts: &[usize],
        newlines: Option<u64>,
        labelled: bool,
    ) -> Self {
        // As one text: a key of many lines is only known by its first or last one.
        let first = starts.len().checked_sub(2 * TAIL).map_or(0, |index| starts[index]);
        let first = first.min(bytes.len().saturating_sub(LONG));
        let mut shown = bytes[first..].to_vec();
        mask_secrets(&mut shown);
        let mut tail = Vec::new();
        for &start in starts.iter().rev().take_while(|&&start| start >= first) {
            let rest = &shown[start - first..];
            let raw = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
            // Of a very long line the end is what a reader would see last.
            let line = clean_line(&raw[raw.len().saturating_sub(LONG)..]);
            if line.trim().is_empty() {
                continue;
            }
            let (rank, text) = rank::strip(&line, labelled);
            let below = memchr_iter(b'\n', rest).count() as u64;
            tail.push(Line {
                number: newlines.and_then(|all| (all + 1).checked_sub(below)),
                offset: from + start as u64,
                length: raw.strip_suffix(b"\r").unwrap_or(raw).len() as u64,
                rank,
                text: cut(text, text.len()),
            });
            if tail.len() == TAIL {
                break;
            }
        }
        tail.reverse();
        let kept = &starts[starts.len().saturating_sub(COUNTED + 1)..];
        let mut lines: Vec<Counted> = kept
            .iter()
            .map(|&start| {
                let raw = &bytes[start..];
                let raw = &raw[..memchr(b'\n', raw).unwrap_or(raw.len()).min(FORM)];
                let line = clean_line(raw);
                let (rank, text) = rank::strip(&line, labelled);
                let (text, frame) = (text.to_owned(), trace::is_frame(text));
                Counted { rank, text, frame, of_failure: false }
            })
            .collect();
        let of_failure = trace::of_failure(lines.iter().map(|line| line.text.as_str()));
        for (line, of_failure) in lines.iter_mut().zip(of_failure) {
            line.of_failure = of_failure;
        }
        let starts = kept.iter().map(|&start| from + start as u64).collect();
        Self { tail, starts, lines }
    }
}

/// How many bytes the line at an offset and the few after it have.
pub(super) fn lines_from(content: &dyn Content, offset: u64) -> io::Result<u64> {
    let bytes = read(content, offset, content.size().min(offset + REST_BYTES))?;
    let end = memchr_iter(b'\n', &bytes).nth(REST).map_or(bytes.len(), |end| end + 1);
    Ok(end as u64)
}

/// How many of the offsets, which are in order, lie behind one; at most 1000.
fn count_after(starts: &[u64], offset: u64) -> u32 {
    counted(starts.len() - starts.partition_point(|&start| start <= offset))
}

fn counted(lines: usize) -> u32 {
    u32::try_from(lines.min(COUNTED)).unwrap_or(u32::MAX)
}

/// Where lines begin that hold anything but blanks and controls.
fn starts(bytes: &[u8], first: usize) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut start = first;
    for line in bytes[first..].split(|&byte| byte == b'\n') {
        if line.iter().any(|&byte| byte > b' ') {
            starts.push(start);
        }
        start += line.len() + 1;
    }
    starts
}
