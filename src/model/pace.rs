//! How far a run had got when its log ended, and how fast.

use std::fmt;

use super::Span;

/// Progress that a log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How much of how much was done; `None` where only the program's own forecast is known.
    pub done: Option<(u64, u64)>,
    /// How long the rest takes, and by whose word.
    pub rest: Rest,
    /// From the line that tells this until the scheduler ended the run; zero where not known.
    pub idle: Span,
}

/// How long the rest of the work takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// So much was done in such a time, by the times of two lines.
    Timed(u64, Span),
    /// The program says so.
    Forecast(Span),
    /// As long as its share of the work, compared with what is done.
    Share,
}

impl Pace {
    /// How long all of the work takes, of which a run did a part in a time; never less than a run from
    /// the start needs at this pace.
    pub fn needed(&self, elapsed: Span) -> Option<Span> {
        let so_far = self.so_far(elapsed);
        let scaled = |seconds: u64, by: u64, of: u64| {
            (of > 0).then(|| seconds.saturating_mul(by).div_ceil(of))
        };
        let needed = match (self.rest, self.done) {
            (Rest::Timed(steps, took), Some((done, total))) => {
                let (took, left) = (took.as_seconds(), total.saturating_sub(done));
                let rest = scaled(took, left, steps)?;
                so_far.as_seconds().saturating_add(rest).max(scaled(took, total, steps)?)
            }
            (Rest::Forecast(rest), _) => so_far.as_seconds().saturating_add(rest.as_seconds()),
            (Rest::Share, Some((done, total))) => scaled(so_far.as_seconds(), total, done)?,
            (_, None) => return None,
        };
        Some(Span::seconds(needed))
    }

    fn so_far(&self, elapsed: Span) -> Span {
        Span::seconds(elapsed.as_seconds().saturating_sub(self.idle.as_seconds()))
    }

    /// The arithmetic in words.
    pub fn in_words(&self, elapsed: Span) -> impl fmt::Display {
        let so_far = self.so_far(elapsed);
        let done = match self.done {
            Some((done, total)) => format!("{done} of {total} done after {so_far}"),
            None => format!("after {so_far}"),
        };
        match self.rest {
            Rest::Timed(steps, took) => format!("{done}, the last {steps} in {took}"),
            Rest::Forecast(rest) => format!("{done}, and the program expected {rest} more"),
            Rest::Share => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_the_time_so_far_and_the_rest() {
        let span = Span::seconds;
        let pace = |done, rest| Pace { done, rest, idle: span(10) };
        // 590 s and 5410 steps at one a second; a run that began at step 550 needs all 6000.
        let timed = pace(Some((590, 6000)), Rest::Timed(100, span(100)));
        assert_eq!(timed.needed(span(600)), Some(span(6000)));
        assert_eq!(timed.needed(span(50)), Some(span(6000)));
        let words = timed.in_words(span(600)).to_string();
        assert_eq!(words, "590 of 6000 done after 00:09:50, the last 100 in 00:01:40");
        // A quarter in 590 s; and 90 s more by the program's own word.
        assert_eq!(pace(Some((1, 4)), Rest::Share).needed(span(600)), Some(span(2360)));
        assert_eq!(pace(None, Rest::Forecast(span(90))).needed(span(600)), Some(span(680)));
        assert_eq!(pace(Some((0, 4)), Rest::Share).needed(span(600)), None);
        assert_eq!(pace(None, Rest::Share).needed(span(600)), None);
        let most = pace(Some((1, u64::MAX)), Rest::Timed(1, span(u64::MAX / 1000)));
        assert!(most.needed(span(u64::MAX / 1000)).is_some());
    }
}
