//! How long a run had written nothing when its time was up.
//!
//! A run that stood still wrote nothing any more; so does one whose program is quiet. They are told
//! apart by how often it wrote before, and by what its CPUs did. Times are those of the files, and
//! those at the beginning of lines where the scheduler's own last words are in the same file.

use std::fmt;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use super::line::is_official;
use super::{Facts, LogFacts};
use crate::logs::Line;
use crate::model::{BaseState, Span};

/// A shorter silence is none.
const LEAST: u64 = 30 * 60;
/// Nor one that is a smaller share of the run than one in so many.
const SHARE: u64 = 4;
/// So many times the longest pause before it is no pause any more.
const PAUSES: u64 = 20;
/// So many times have to be known to know the pauses.
const TIMES: usize = 8;
/// Clocks of servers differ by so much at most.
const CLOCKS: SignedDuration = SignedDuration::from_mins(2);

/// A silence before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// How long it was.
    pub span: Span,
    /// The longest pause in the lines before it, where they tell their times.
    pub pause: Option<Span>,
    /// How long the run took.
    pub elapsed: Span,
}

impl Silence {
    /// Whether it is out of proportion to the pauses before it.
    pub fn is_abrupt(&self) -> bool {
        self.pause.is_some_and(|pause| {
            self.span.as_seconds() >= pause.as_seconds().max(1).saturating_mul(PAUSES)
        })
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the last {} of {} nothing was written", self.span, self.elapsed)?;
        match self.pause {
            Some(pause) => write!(f, ", after lines at most {pause} apart"),
            None => Ok(()),
        }
    }
}

/// The silence before the end of a run that lasted until its time limit; `None` where there was none,
/// or it is not known.
pub fn silence(facts: &Facts<'_>) -> Option<Silence> {
    let job = facts.job.filter(|job| job.state.base == BaseState::Timeout)?;
    let (ended, elapsed) = (job.ended.get()?, job.elapsed.get()?);
    if !facts.logs_complete {
        return None;
    }
    let mut shortest: Option<(Span, Option<Span>)> = None;
    for log in facts.logs.iter().filter(|log| log.scan.size > 0) {
        let found = of_stream(log, ended)?;
        if shortest.is_none_or(|(span, _)| found.0 < span) {
            shortest = Some(found);
        }
    }
    let (span, pause) = shortest?;
    let long = span.as_seconds() >= LEAST && span.as_seconds() >= elapsed.as_seconds() / SHARE;
    (long && span <= elapsed).then_some(Silence { span, pause, elapsed })
}

/// How long a stream was silent, and its longest pause before; `None` where that is not known.
fn of_stream(log: &LogFacts<'_>, ended: Timestamp) -> Option<(Span, Option<Span>)> {
    let tail = &log.scan.tail;
    let own = tail.iter().rposition(|line| !is_official(&line.text)).map_or(0, |last| last + 1);
    let (own, official) = tail.split_at(own);
    let times: Vec<DateTime> = own.iter().filter_map(time).collect();
    let pause = (times.len() >= TIMES).then(|| {
        let apart = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
        Span::seconds(apart.max().and_then(|most| u64::try_from(most).ok()).unwrap_or(0))
    });
    let span = if let Some(said) = official.iter().find_map(cancelled_at) {
        // Of a last line that tells no time nobody knows when it was written.
        let last = own.last().map(time)??;
        said.duration_since(last)
    } else if official.is_empty() {
        let written = log.scan.modified?;
        // Somebody wrote to it since: its time tells nothing.
        (written <= ended.checked_add(CLOCKS).ok()?).then(|| ended.duration_since(written))?
    } else {
        return None;
    };
    Some((Span::seconds(u64::try_from(span.as_secs()).unwrap_or(0)), pause))
}

fn time(line: &Line) -> Option<DateTime> {
    stamp(&line.text)
}

/// The time at the beginning of a line: `2026-11-30 10:34:25`, behind a bracket or a level too.
pub(super) fn stamp(line: &str) -> Option<DateTime> {
    const FAR: usize = 24;
    let text = line.as_bytes();
    (0..text.len().min(FAR)).find_map(|at| civil(text.get(at..at + 19)?))
}

/// The time in `CANCELLED AT 2024-11-14T21:08:27 DUE TO TIME LIMIT`.
fn cancelled_at(line: &Line) -> Option<DateTime> {
    let (_, rest) = line.text.split_once("CANCELLED AT ")?;
    civil(rest.as_bytes().get(..19)?)
}

fn civil(text: &[u8]) -> Option<DateTime> {
    let form = b"dddd-dd-dd dd:dd:dd";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'-' => matches!(byte, b'-' | b'/'),
        b' ' => matches!(byte, b' ' | b'T' | b'_'),
        _ => byte == form,
    };
    if !text.iter().zip(form).all(fits) {
        return None;
    }
    let number =
        |from: usize, to: usize| std::str::from_utf8(&text[from..to]).ok()?.parse::<i16>().ok();
    let small = |from: usize| i8::try_from(number(from, from + 2)?).ok();
    DateTime::new(number(0, 4)?, small(5)?, small(8)?, small(11)?, small(14)?, small(17)?, 0).ok()
}
