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
use crate::logs::{cancelled_at, line_time};
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
    if !facts.logs_complete {
        return None;
    }
    let (ended, said, elapsed) = match facts.job {
        Some(job) if job.state.base == BaseState::Timeout => {
            (job.ended.get(), None, job.elapsed.get()?)
        }
        Some(_) => return None,
        // Without a record the scheduler's last words tell the end, and the first line the begin.
        None => {
            let said = facts.logs.iter().find_map(killed_at)?;
            (None, Some(said), since_the_first_line(facts, said)?)
        }
    };
    let mut shortest: Option<(Span, Option<Span>)> = None;
    let wrote = |log: &&LogFacts<'_>| {
        log.scan.size > 0
            && (facts.job.is_some() || !log.scan.tail.iter().all(|line| is_official(&line.text)))
    };
    for log in facts.logs.iter().filter(wrote) {
        let found = of_stream(log, ended, said)?;
        if shortest.is_none_or(|(span, _)| found.0 < span) {
            shortest = Some(found);
        }
    }
    let (span, pause) = shortest?;
    let long = span.as_seconds() >= LEAST && span.as_seconds() >= elapsed.as_seconds() / SHARE;
    (long && span <= elapsed).then_some(Silence { span, pause, elapsed })
}

/// How long a stream was silent, and its longest pause before; `None` where that is not known.
fn of_stream(
    log: &LogFacts<'_>,
    ended: Option<Timestamp>,
    said: Option<DateTime>,
) -> Option<(Span, Option<Span>)> {
    let tail = &log.scan.tail;
    let own = tail.iter().rposition(|line| !is_official(&line.text)).map_or(0, |last| last + 1);
    let (own, official) = tail.split_at(own);
    let times: Vec<DateTime> = own.iter().filter_map(|line| line_time(&line.text)).collect();
    let pause = (times.len() >= TIMES).then(|| {
        let apart = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
        Span::seconds(apart.max().and_then(|most| u64::try_from(most).ok()).unwrap_or(0))
    });
    let span =
        if let Some(said) = official.iter().find_map(|line| cancelled_at(&line.text)).or(said) {
            // Of a last line that tells no time nobody knows when it was written.
            let last = own.last().and_then(|line| line_time(&line.text))?;
            said.duration_since(last)
        } else if let (true, Some(ended)) = (official.is_empty(), ended) {
            let written = log.scan.modified?;
            // Somebody wrote to it since: its time tells nothing.
            (written <= ended.checked_add(CLOCKS).ok()?).then(|| ended.duration_since(written))?
        } else {
            return None;
        };
    Some((Span::seconds(u64::try_from(span.as_secs()).unwrap_or(0)), pause))
}

/// When the scheduler ended a run for its time, by its own last words.
fn killed_at(log: &LogFacts<'_>) -> Option<DateTime> {
    let mut official = log.scan.tail.iter().filter(|line| is_official(&line.text));
    official.find_map(|line| cancelled_at(&line.text).filter(|_| line.text.contains("TIME LIMIT")))
}

/// How long the run took at least: from the earliest time that is told.
fn since_the_first_line(facts: &Facts<'_>, ended: DateTime) -> Option<Span> {
    let lines = facts.logs.iter().flat_map(|log| &log.scan.tail);
    let own = lines.filter(|line| !is_official(&line.text));
    let first = own.filter_map(|line| line_time(&line.text)).min()?;
    Some(Span::seconds(u64::try_from(ended.duration_since(first).as_secs()).ok()?))
}
