//! How far the work had got by the last lines of a log, and how fast.
//!
//! Decides by counters that move: `step 590/6000`, `Epoch 3/10 ... 450/1000`, `[12/90]`, a bar, a
//! percentage, or the program's own forecast. A count that starts again is a loop inside another
//! whose end nobody tells: that is no measure, and neither is one that only names a rank or an
//! attempt.

use jiff::civil::DateTime;

use super::clock::{cancelled_at, line_time};
use super::scan::{Line, Scan};
use crate::model::{Pace, Rest, Span};

/// What a program counts as its work, before `3/10` or behind `3 of 10`.
const WORK: [&str; 44] = [
    "step",
    "steps",
    "timestep",
    "timesteps",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "it",
    "epoch",
    "epochs",
    "batch",
    "batches",
    "sample",
    "samples",
    "frame",
    "frames",
    "cycle",
    "cycles",
    "generation",
    "generations",
    "chunk",
    "chunks",
    "block",
    "blocks",
    "item",
    "items",
    "file",
    "files",
    "image",
    "images",
    "record",
    "records",
    "read",
    "reads",
    "sequence",
    "sequences",
    "sweep",
    "sweeps",
    "trial",
    "trials",
    "event",
    "events",
    "processed",
];
/// Counts in brackets or without a word have to move so often.
const UNNAMED: usize = 3;

/// A count in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    done: u64,
    total: u64,
    /// Of loops inside each other the outer one.
    is_epoch: bool,
    /// Whether a word or a bar says that it counts work.
    is_named: bool,
}

/// What a line tells.
struct Point {
    time: Option<DateTime>,
    count: Option<Count>,
    forecast: Option<Span>,
}

/// The progress that the last lines of a log tell; `None` where they tell none, or all was done.
pub fn pace(scan: &Scan) -> Option<Pace> {
    let tells = |line: &&Line| !counts(&line.text).is_empty() || forecast(&line.text).is_some();
    let rank = scan.tail.iter().rev().find(tells)?.rank;
    let mut points: Vec<Point> = Vec::new();
    let mut outer: Option<Count> = None;
    let mut ended = None;
    let mut loops = false;
    for line in &scan.tail {
        ended = cancelled_at(&line.text).or(ended);
        if line.rank != rank
            || line.text.starts_with("slurmstepd")
            || line.text.starts_with("srun:")
        {
            continue;
        }
        let found = counts(&line.text);
        outer = found.iter().copied().find(|count| count.is_epoch).or(outer);
        let inner = found.iter().copied().find(|count| !count.is_epoch);
        loops |= outer.is_none() && names_a_loop(&line.text);
        let count = match (inner, outer) {
            (Some(inner), Some(outer)) => Some(inner.within(outer)),
            (inner, None) => inner,
            // The number of the one that has begun.
            (None, Some(_)) => found.into_iter().find(|count| count.is_epoch).map(Count::begun),
        };
        // A forecast of one loop is none of the whole.
        let forecast = forecast(&line.text).filter(|_| outer.is_none());
        if count.is_some() || forecast.is_some() {
            points.push(Point { time: line_time(&line.text), count, forecast });
        }
    }
    let last = points.last()?;
    if loops {
        return None;
    }
    let idle = last.time.zip(ended).map_or(Span::seconds(0), |(last, ended)| between(last, ended));
    let Some(count) = last.count else {
        let rest = Rest::Forecast(last.forecast?);
        return Some(Pace { done: None, rest, idle });
    };
    let same: Vec<(&Point, Count)> = points
        .iter()
        .filter_map(|point| Some((point, point.count?)))
        .filter(|(_, other)| other.total == count.total)
        .collect();
    let starts_again = same.windows(2).any(|pair| pair[1].1.done < pair[0].1.done);
    let moves = same.windows(2).filter(|pair| pair[1].1.done > pair[0].1.done).count();
    let enough = if count.is_named { 1 } else { UNNAMED };
    if starts_again || count.done >= count.total || count.done == 0 {
        return None;
    }
    if moves < enough && last.forecast.is_none() {
        return None;
    }
    let (first, begun) = same.first()?;
    let steps = count.done - begun.done;
    let took = first.time.zip(last.time).map(|(first, last)| between(first, last));
    let rest = match (took.filter(|took| steps > 0 && took.as_seconds() > 0), last.forecast) {
        (Some(took), _) => Rest::Timed(steps, took),
        (None, Some(rest)) => Rest::Forecast(rest),
        (None, None) => Rest::Share,
    };
    Some(Pace { done: Some((count.done, count.total)), rest, idle })
}

/// Whether the last lines count rounds of which nobody says how many there are: what another log of
/// the run counts meanwhile may be but one of them.
pub fn has_open_rounds(scan: &Scan) -> bool {
    let is_told = |line: &Line| counts(&line.text).iter().any(|count| count.is_epoch);
    let mut open = scan.tail.iter().filter(|line| names_a_loop(&line.text));
    open.next().is_some() && !scan.tail.iter().any(is_told)
}

fn between(from: DateTime, to: DateTime) -> Span {
    Span::seconds(u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0))
}

impl Count {
    /// What of all loops is done by a count within one of them.
    fn within(self, outer: Self) -> Self {
        let before = outer.done.saturating_sub(1).saturating_mul(self.total);
        Self {
            done: before.saturating_add(self.done),
            total: outer.total.saturating_mul(self.total),
            ..self
        }
    }

    /// The one that is counted has begun and is not done.
    fn begun(self) -> Self {
        Self { done: self.done.saturating_sub(1), ..self }
    }
}

/// `Epoch 3: 12%|...`: how many there are is not told.
fn names_a_loop(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((_, behind)) = lower.split_once("epoch") else { return false };
    let behind = behind.trim_start_matches(['s', ' ', '=', ':', '#', '[', '(']);
    behind.starts_with(|c: char| c.is_ascii_digit())
}

/// The counts of a line, at most two.
fn counts(text: &str) -> Vec<Count> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() && found.len() < 2 {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let (done, end) = number(text, at);
        let count = of_two(text, at, done, end).or_else(|| percentage(text, done, end));
        match count {
            Some((count, end)) => {
                found.push(count);
                at = end;
            }
            None => at = end,
        }
    }
    found
}

/// The number at a place, and its end; one that is too large is none.
fn number(text: &str, at: usize) -> (Option<u64>, usize) {
    let digits = text.as_bytes()[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (text[at..at + digits].parse().ok(), at + digits)
}

/// `590/6000` or `590 of 6000`, where it counts work.
fn of_two(text: &str, at: usize, done: Option<u64>, end: usize) -> Option<(Count, usize)> {
    let before = &text[..at];
    if before.ends_with(|c: char| c.is_ascii_alphanumeric() || "./:-_\\".contains(c)) {
        return None;
    }
    let rest = &text[end..];
    let trimmed = rest.trim_start();
    let behind = trimmed.strip_prefix('/').or_else(|| trimmed.strip_prefix("of "))?.trim_start();
    let from = text.len() - behind.len();
    let (total, end) = number(text, from);
    let (done, total) = (done?, total?);
    let after = &text[end..];
    let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || "/.-_:".contains(c));
    let sentence = after.starts_with(['.', ':', '-'])
        && !after[1..].starts_with(|c: char| c.is_ascii_alphanumeric());
    if total < 2 || done > total || (goes_on && !sentence) {
        return None;
    }
    let word = word_before(before);
    let next = after.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    let next = next.to_ascii_lowercase();
    let is_bar = before.trim_end().ends_with('|') && before.contains("%|");
    let bracket = before.ends_with(['[', '(']) && after.starts_with([']', ')']);
    let named = is_bar || WORK.contains(&word.as_str()) || WORK.contains(&next.as_str());
    let unnamed = bracket && (word.is_empty() || word == "progress");
    (named || unnamed).then(|| {
        let is_epoch = word.starts_with("epoch") || next.starts_with("epoch");
        (Count { done, total, is_epoch, is_named: named }, end)
    })
}

/// `progress: 12 %`, `12% done`; of a bar the count behind it tells more.
fn percentage(text: &str, done: Option<u64>, end: usize) -> Option<(Count, usize)> {
    let rest = &text[end..];
    let digits = rest
        .strip_prefix('.')
        .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count() + 1);
    let behind = rest[digits..].trim_start().strip_prefix('%')?;
    if behind.starts_with('|') {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let says = ["progress", "% done", "% complete", "percent done", "% finished", "completed:"];
    let says = says.iter().any(|word| lower.contains(word));
    let tenth = rest.as_bytes().get(1).filter(|byte| digits > 1 && byte.is_ascii_digit());
    let tenth = tenth.map_or(0, |byte| u64::from(byte - b'0'));
    let done = done?.checked_mul(10)?.checked_add(tenth)?;
    let end = text.len() - behind.len();
    let count = Count { done, total: 1000, is_epoch: false, is_named: true };
    (says && done <= 1000).then_some((count, end))
}

/// The word before a count, without what joins the two.
fn word_before(before: &str) -> String {
    let joined = before.trim_end_matches([' ', ':', '=', '#', '[', '(']);
    let word = joined.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    word.to_ascii_lowercase()
}

/// How long the program expects to go on: `<27:48,` of a bar, `ETA: 1:30:00`, `remaining: 90 s`.
fn forecast(text: &str) -> Option<Span> {
    if let Some((_, bar)) = text.split_once("%|") {
        let (_, behind) = bar.rsplit_once('<')?;
        return span(behind);
    }
    let lower = text.to_ascii_lowercase();
    for word in ["eta", "remaining"] {
        for (at, _) in lower.match_indices(word) {
            let alone = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let behind = &lower[at + word.len()..];
            if !alone || behind.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                continue;
            }
            // `remaining wall clock time: 1253 s`
            let from = behind.find(|c: char| c.is_ascii_digit()).filter(|from| *from <= 24);
            if let Some(found) = from.and_then(|from| span(&behind[from..])) {
                return Some(found);
            }
        }
    }
    None
}

/// `1:30:00`, `27:48`, `1h30m`, `90 s`: what is not followed by a unit is none.
fn span(text: &str) -> Option<Span> {
    let clock: &str = text.split(|c: char| !c.is_ascii_digit() && c != ':').next()?;
    if clock.contains(':') {
        let mut seconds: u64 = 0;
        for part in clock.trim_end_matches(':').split(':') {
            seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
        }
        return Some(Span::seconds(seconds));
    }
    let mut rest = text;
    let mut seconds: Option<u64> = None;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(count) = rest[..digits].parse::<u64>() else { break };
        let behind = rest[digits..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        let behind = behind.trim_start();
        let unit: String = behind.chars().take_while(char::is_ascii_alphabetic).collect();
        let worth = match unit.as_str() {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0).checked_add(count.checked_mul(worth)?)?);
        rest = behind[unit.len()..].trim_start_matches([' ', ',']);
    }
    seconds.map(Span::seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Option<Pace> {
        let line = |text: &&str| Line {
            number: None,
            offset: 0,
            length: 0,
            rank: None,
            text: (*text).to_owned(),
        };
        pace(&Scan { tail: lines.iter().map(line).collect(), ..Scan::default() })
    }

    #[test]
    fn counters_that_move_tell_the_pace() {
        let timed = told(&[
            "2026-11-30 08:00:00 step 0/6000 loss 0.1",
            "2026-11-30 08:09:50 step 590/6000 loss 0.1",
            "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-30T08:10:00 DUE TO TIME LIMIT ***",
        ]);
        let rest = Rest::Timed(590, Span::seconds(590));
        let expected = Pace { done: Some((590, 6000)), rest, idle: Span::seconds(10) };
        assert_eq!(timed, Some(expected));
        let done = |lines: &[&str]| told(lines).and_then(|pace| pace.done);
        for (lines, expected) in [
            (["iteration 5 of 20", "iteration 6 of 20."], Some((6, 20))),
            (["Step: 100 / 400, loss 3", "Step: 150 / 400, loss 2"], Some((150, 400))),
            (["4 of 20 steps (20%) done", "5 of 20 steps (25%) done"], Some((5, 20))),
            (["progress 12.5 %", "progress 13.5 %"], Some((135, 1000))),
            // Ten epochs of 100 batches, of which two and a half are done.
            (["Epoch 3/10 batch 49/100", "Epoch 3/10 batch 50/100"], Some((250, 1000))),
            (["Epoch 3/10", "50/100 [====>...] - ETA: 12s"], None),
            // The third has begun.
            (["Epoch 2/10 loss 1", "Epoch 3/10 loss 1"], Some((2, 10))),
        ] {
            assert_eq!(done(&lines), expected, "{lines:?}");
        }
        assert_eq!(done(&["[1/9] a", "[2/9] b", "[3/9] c", "[4/9] d"]), Some((4, 9)));
    }

    #[test]
    fn the_program_s_own_forecast_counts() {
        let bar = told(&["it:  16%|#         | 332/2000 [05:32<27:48,  4.80it/s]"]);
        let rest = Rest::Forecast(Span::seconds(27 * 60 + 48));
        let idle = Span::seconds(0);
        assert_eq!(bar, Some(Pace { done: Some((332, 2000)), rest, idle }));
        let gromacs = told(&["imb F 3% step 41000, remaining wall clock time:  1253 s"]);
        let rest = Rest::Forecast(Span::seconds(1253));
        assert_eq!(gromacs, Some(Pace { done: None, rest, idle }));
        assert_eq!(span("1h 30m"), Some(Span::seconds(5400)));
        assert_eq!(span("12"), None);
    }

    #[test]
    fn what_only_looks_like_progress_tells_nothing() {
        for lines in [
            &["initializing ddp: MEMBER: 2/8", "initializing ddp: MEMBER: 3/8"][..],
            &["attempt 1/5 failed", "attempt 2/5 failed"],
            &["on 11/30 at", "on 12/30 at"],
            &["reading /data/1/4.h5", "reading /data/2/4.h5"],
            &["step 590/6000"],
            &["step 5/10", "step 5/10"],
            &["step 9/10", "step 10/10"],
            // A loop whose end is told, inside one whose end is not.
            &["batch 8/10", "batch 9/10", "batch 1/10", "batch 2/10"],
            &[
                "Epoch 0:  73%|##| 1383/1875 [23:03<08:12]",
                "Epoch 0:  82%|##| 1556/1875 [25:56<05:19]",
            ],
            &["[1/4] Compiling", "[2/4] Linking"],
            &["no metadata 5 remaining", "eta"],
        ] {
            assert_eq!(told(lines), None, "{lines:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_lines_are_taken(lines in proptest::collection::vec("(step |[0-9]{1,22}|/| of |%|eta|[:<|.]|é|\\PC){0,12}", 0..6)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            if let Some(pace) = told(&lines) {
                let _ = pace.needed(Span::seconds(600));
            }
        }
    }
}
