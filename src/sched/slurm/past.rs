//! A long history, run by run, while `sacct` still prints it.
//!
//! `sacct` and its database hold a whole answer in memory before they print it: 1.7 KB a row. So a
//! history is asked for in pieces, one after the other, the newest first: that says how much the
//! next may hold. A piece costs a tenth of a second of its own, so few are better than many. A run
//! that crosses a border is printed for both pieces and belongs to the one it ended in.
//!
//! What steps used costs ten times as much as the runs alone, for the database looks up the steps of
//! each job on their own. So they are asked for only of runs that a question is about.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::host::Cmd;
use crate::model::{BaseState, History, Job, JobId, Names, Notice, Run, RunPart, State, Symbol};
use crate::text;

use super::controlled::SHORT_DEADLINE;
use super::fields::{Field, Layout};
use super::numbers::Clock;
use super::records::{self, Reading, Records};
use super::rows::{self, Reader, Row};
use super::runs::Loader;
use super::{
    Depth, Filter, Found, Jobs, LIST_LIMIT, SchedError, Users, broke_off, quirks, refusal, squeue,
    unreadable_rows,
};

impl Jobs<'_> {
    /// Passes on every run that ended in the window (`until` not included), and every record that
    /// is still open, as they come: those of requeued jobs one by one, without name, steps and
    /// usage. After an error what was passed on is incomplete.
    pub fn each(
        &self,
        filter: &Filter,
        sink: &mut dyn FnMut(Job),
    ) -> Result<Vec<Notice>, SchedError> {
        let layout = self.fields()?.summed();
        let reading = Reading { folded: self.is_folded(), ..Reading::default() };
        let mut pieces = self.pieces(filter, Depth::Allocations);
        let mut unreadable = 0;
        while let Some((since, until)) = pieces.next() {
            let last = until == filter.until;
            let cmd = self.selection(filter, (since, until), &layout, Depth::Allocations);
            let cmd = cmd.arg("--duplicates");
            // A fold holds no row, so nothing needs a cap.
            let cmd = cmd.cap(u64::MAX);
            let mut reader = Reader::new(&layout, rows::DELIMITER);
            let mut take = |row: Row<'_>| {
                pieces.held += 1;
                let Ok((id, None)) = JobId::parse_with_step(row.get(Field::Id)) else { return };
                let job = records::job(&row, id, reading);
                let belongs = job.ended.get().map_or(last, |end| {
                    // Both are known to the second.
                    (since.as_second()..until.as_second()).contains(&end.as_second())
                });
                if belongs {
                    sink(job);
                }
            };
            let mut silent = true;
            let ended = self.runner.stream(&cmd, &mut |piece| {
                silent &= piece.is_empty();
                reader.feed(piece, &mut take);
            });
            unreadable += reader.finish(&mut take);
            if let Some(error) = refusal(&cmd, ended, silent) {
                return Err(error);
            }
        }
        Ok(if unreadable > 0 { vec![unreadable_rows(unreadable)] } else { Vec::new() })
    }
}

impl Jobs<'_> {
    /// The jobs of a window, newest run of each, without steps or usage; of a long window piece by
    /// piece too. What broke off is told beside what came before.
    pub fn list(&self, filter: &Filter) -> Result<Found<Vec<Job>>, SchedError> {
        let layout = self.fields()?.layout(false);
        // `--state=RUNNING` also lists jobs that ran in the window and ended in it.
        let states: Vec<BaseState> =
            filter.states.iter().map(|word| State::parse(word).base).collect();
        let wanted = |row: &Row<'_>| {
            let name = row.get(Field::Name);
            (states.is_empty() || states.contains(&State::parse(row.get(Field::State)).base))
                && (filter.names.is_empty() || filter.names.iter().any(|named| named == name))
        };
        let reading = Reading { folded: self.is_folded(), ..Reading::default() };
        let mut found: Found<Vec<Job>> = Found { value: Vec::new(), notices: Vec::new() };
        let mut seen: BTreeSet<JobId> = BTreeSet::new();
        let (mut unreadable, mut broken) = (0, None);
        let mut pieces = self.pieces(filter, Depth::Allocations);
        while let Some(window) = pieces.next() {
            let cmd = self.selection(filter, window, &layout, Depth::Allocations).cap(LIST_LIMIT);
            let mut reader = Reader::new(&layout, rows::DELIMITER);
            let mut records = Records::new(reading);
            let mut take = |row: Row<'_>| {
                pieces.held += 1;
                if wanted(&row) {
                    records.add(&row);
                }
            };
            let mut silent = true;
            let ended = self.runner.stream(&cmd, &mut |piece| {
                silent &= piece.is_empty();
                reader.feed(piece, &mut take);
            });
            unreadable += reader.finish(&mut take);
            let (jobs, notices) = records.finish();
            // What crosses a border is printed for both pieces, and the newer one knows its end.
            found.value.extend(jobs.into_iter().filter(|job| seen.insert(job.id.clone())));
            found.notices.extend(notices);
            broken = refusal(&cmd, ended, silent);
            if broken.is_some() {
                break;
            }
        }
        match broken {
            Some(error) if found.value.is_empty() => return Err(error),
            Some(error) => found.notices.push(broke_off(&error, "jobs")),
            None => {}
        }
        if unreadable > 0 {
            found.notices.push(unreadable_rows(unreadable));
        }
        Ok(found)
    }
}

/// So many runs and their steps at most are asked for by their ids at once,
const CHUNK_RUNS: usize = 5000;
/// and so many ids: a command line holds no more than 128 KiB in one word.
const CHUNK_IDS: usize = 2000;

impl Jobs<'_> {
    /// Every run that ended in the window (`until` not included), and every record that is still
    /// open: those of requeued jobs one by one, each whole, also where it began before.
    ///
    /// Costs a query for each piece of the window. With steps, others for the jobs that had begun
    /// before it: of those `sacct` leaves out the steps that had ended by then.
    pub fn past(&self, filter: &Filter, depth: Depth) -> Result<History, SchedError> {
        let layout = self.fields()?.history(depth);
        let mut loader = Loader::new(self.reading_of_runs(), Clock::new(self.runner.zone()));
        let mut pieces = self.pieces(filter, depth);
        let mut unreadable = 0;
        while let Some(window) = pieces.next() {
            let cmd = self.selection(filter, window, &layout, depth).arg("--duplicates");
            let before = loader.rows();
            unreadable += self.load(&cmd, &layout, &mut loader)?;
            pieces.held = loader.rows() - before;
        }
        let since = u32::try_from(filter.since.as_second()).unwrap_or(0);
        let crosses = |run: &Run| {
            let begun = run.started.get().is_some_and(|begun| begun < since);
            begun && run.ended.get().is_none_or(|end| end >= since)
        };
        let missing = match depth {
            Depth::Allocations => 0,
            Depth::Steps => {
                let runs: Vec<Run> =
                    loader.runs().iter().filter(|run| crosses(run)).copied().collect();
                self.whole(filter, &runs, &mut loader, &mut unreadable)?
            }
        };
        let mut history = loader.finish(unreadable);
        note_missing(missing, &mut history);
        keep(&mut history, filter);
        self.find_stale_runs(filter, &mut history);
        Ok(history)
    }

    /// Adds to a history of allocations what the steps of some of its runs used. They are asked for
    /// by their ids; of most runs of a history by its window instead.
    pub fn add_steps(
        &self,
        filter: &Filter,
        history: &mut History,
        wanted: impl Fn(&Run) -> bool,
    ) -> Result<(), SchedError> {
        let runs: Vec<Run> = history.runs.iter().filter(|run| wanted(run)).copied().collect();
        if runs.is_empty() {
            return Ok(());
        }
        if runs.len() > CHUNK_RUNS && runs.len() * 2 > history.runs.len() {
            *history = self.past(filter, Depth::Steps)?;
            return Ok(());
        }
        let mut loader = Loader::new(self.reading_of_runs(), Clock::new(self.runner.zone()));
        let mut unreadable = 0;
        let missing = self.whole(filter, &runs, &mut loader, &mut unreadable)?;
        let mut found = loader.finish(unreadable);
        note_missing(missing, &mut found);
        keep(&mut found, filter);
        // An id brings all tasks of its array, and runs may have ended since.
        let stale: BTreeSet<_> = history
            .runs
            .iter()
            .filter(|run| run.stale)
            .map(|run| (run.number, run.submitted.get()))
            .collect();
        for run in &mut found.runs {
            run.stale = stale.contains(&(run.number, run.submitted.get()));
        }
        history.merge(&found);
        Ok(())
    }

    /// The runs that began in a window, by one query that may not take long: for questions that can
    /// do without.
    pub fn begun(&self, filter: &Filter) -> Result<History, SchedError> {
        let layout = self.fields()?.history(Depth::Steps);
        let mut loader = Loader::new(self.reading_of_runs(), Clock::new(self.runner.zone()));
        let window = (filter.since, filter.until);
        let cmd = self.selection(filter, window, &layout, Depth::Steps).arg("--duplicates");
        let unreadable =
            self.load(&cmd.deadline(self.deadline.min(SHORT_DEADLINE)), &layout, &mut loader)?;
        let mut history = loader.finish(unreadable);
        keep(&mut history, filter);
        // Of a run that began before, sacct may leave out steps.
        let since = filter.since.as_second();
        history.runs.retain(|run| run.started.get().is_some_and(|at| i64::from(at) >= since));
        Ok(history)
    }

    /// What the rows of this release mean.
    fn reading_of_runs(&self) -> Reading {
        let release = self.release();
        Reading {
            folded: self.is_folded(),
            cpu_time_lost: release.is_some_and(quirks::loses_cpu_time),
            sums_gpus: release.is_some_and(quirks::sums_gpus),
        }
    }

    /// Marks open records that the queue does not hold: they were never closed. One query, whatever
    /// their number, and none where nothing is open.
    fn find_stale_runs(&self, filter: &Filter, history: &mut History) {
        let runs = |run: &Run| matches!(run.state, BaseState::Running | BaseState::Suspended);
        let is_open = |run: &Run| runs(run) && !run.is_ended();
        if !history.runs.iter().any(is_open) {
            return;
        }
        let mut cmd = self
            .ask("squeue", &["--noheader", "--states=all"])
            .arg(format!("--format={}", squeue::OWNED));
        if !filter.clusters.is_empty() {
            cmd = cmd.arg(format!("--clusters={}", filter.clusters.join(",")));
        }
        let output = match self.query(&cmd) {
            Ok(output) => output,
            Err(error) => {
                let text = format!("open records may never have been closed: {error}");
                history.notices.push(Notice::warning("no-controller", text));
                return;
            }
        };
        let mut names = Names::default();
        let (mut queued, mut owners) = (BTreeSet::new(), BTreeSet::new());
        for (id, owner) in squeue::owned(&output.stdout) {
            queued.extend(RunPart::of(&id, &mut names));
            owners.insert(owner);
        }
        // A site may show everybody no more than their own jobs.
        let caller = self.runner.caller();
        let sees_others = owners.iter().any(|owner| Some(owner) != caller.name.as_ref());
        if filter.users != Users::Me && caller.uid != 0 && !sees_others {
            let text =
                "open records may never have been closed: the queue shows nobody else's jobs";
            history.notices.push(Notice::warning("no-controller", text));
            return;
        }
        let mut stale = 0;
        for run in history.runs.iter_mut().filter(|run| is_open(run)) {
            run.stale = !queued.contains(&(run.number, run.part));
            stale += u64::from(run.stale);
        }
        if stale > 0 {
            let text = format!(
                "{} whose end was never recorded: in no sum",
                text::count(stale, "open record")
            );
            history.notices.push(Notice::warning("stale-record", text));
        }
    }

    /// Asks for runs with their steps, by the ids of their jobs; says of how many jobs none came.
    fn whole(
        &self,
        filter: &Filter,
        runs: &[Run],
        loader: &mut Loader,
        unreadable: &mut usize,
    ) -> Result<usize, SchedError> {
        let layout = self.fields()?.history(Depth::Steps);
        // By job, so that a thousand tasks of an array are one id.
        let mut jobs: BTreeMap<u32, usize> = BTreeMap::new();
        for run in runs {
            *jobs.entry(run.number).or_default() += 1;
        }
        let first = runs.iter().filter_map(|run| run.submitted.or(run.started).get()).min();
        let begin = first.and_then(|first| Timestamp::from_second(i64::from(first)).ok());
        // The ids narrow enough, and a state would leave out the runs before a requeue.
        let since = begin.map_or(filter.since, |begin| begin.min(filter.since));
        let whole = Filter { since, states: Vec::new(), ..filter.clone() };
        let mut missing = 0;
        for chunk in chunks(&jobs) {
            let ids: Vec<String> = chunk.iter().map(u32::to_string).collect();
            let window = (whole.since, whole.until);
            let cmd = self.selection(&whole, window, &layout, Depth::Steps);
            let cmd = cmd.arg("--duplicates").arg(format!("--jobs={}", ids.join(",")));
            let before = loader.runs().len();
            *unreadable += self.load(&cmd, &layout, loader)?;
            let came: BTreeSet<u32> =
                loader.runs()[before..].iter().map(|run| run.number).collect();
            missing += chunk.iter().filter(|number| !came.contains(number)).count();
        }
        Ok(missing)
    }

    /// The pieces of a window.
    fn pieces(&self, filter: &Filter, depth: Depth) -> Pieces {
        // Of one user there is a fraction.
        let days = if filter.users == Users::All { self.list_days } else { 4 * self.list_days };
        Pieces::new((filter.since, filter.until), days, depth)
    }

    /// Runs a query; says how many of its rows could not be read.
    fn load(&self, cmd: &Cmd, layout: &Layout, loader: &mut Loader) -> Result<usize, SchedError> {
        // Nothing of it is kept but the runs, so nothing needs a cap.
        let cmd = cmd.clone().cap(u64::MAX);
        let mut reader = Reader::new(layout, rows::DELIMITER);
        let mut silent = true;
        let ended = self.runner.stream(&cmd, &mut |piece| {
            silent &= piece.is_empty();
            reader.feed(piece, &mut |row| loader.add(&row));
        });
        let unreadable = reader.finish(&mut |row| loader.add(&row));
        refusal(&cmd, ended, silent).map_or(Ok(unreadable), Err)
    }
}

/// Keeps the runs that a filter selects: `sacct` shows more, and a file holds whatever it holds.
/// Who "me" is only the machine knows that was asked.
pub(in crate::sched) fn keep(history: &mut History, filter: &Filter) {
    let History { names, runs, .. } = history;
    let states: Vec<BaseState> = filter.states.iter().map(|word| State::parse(word).base).collect();
    // Seconds are all that is recorded.
    let (since, until) = (filter.since.as_second(), filter.until.as_second());
    let listed = |symbol: Option<Symbol>, wanted: &[String], any_of: bool| {
        let text = symbol.map_or("", |symbol| names.get(symbol));
        wanted.is_empty()
            || wanted.iter().any(|wanted| {
                // The database keeps names of its own in lower case.
                text.eq_ignore_ascii_case(wanted)
                    || (any_of && text.split(',').any(|part| part.eq_ignore_ascii_case(wanted)))
            })
    };
    runs.retain(|run| {
        let name = run.name.map_or("", |name| names.get(name));
        let owner = |wanted: &String| {
            let uid = run.uid.get().map(|uid| uid.to_string());
            listed(run.user, std::slice::from_ref(wanted), false) || uid.as_ref() == Some(wanted)
        };
        let owned = match &filter.users {
            Users::Named(names) => names.iter().any(owner),
            Users::Me | Users::All => true,
        };
        owned
            && run.ended.get().is_none_or(|end| (since..until).contains(&i64::from(end)))
            && (states.is_empty() || states.contains(&run.state))
            && listed(run.account, &filter.accounts, false)
            && listed(run.partition, &filter.partitions, true)
            && listed(run.qos, &filter.qos, false)
            && listed(run.cluster, &filter.clusters, false)
            && (filter.names.is_empty() || filter.names.iter().any(|wanted| wanted == name))
    });
}

/// The ids of jobs in groups that are asked for together, by the runs that are known of each.
fn chunks(jobs: &BTreeMap<u32, usize>) -> Vec<Vec<u32>> {
    let mut chunks: Vec<Vec<u32>> = Vec::new();
    let mut runs = CHUNK_RUNS;
    for (number, more) in jobs {
        let full = chunks.last().is_none_or(|chunk| chunk.len() >= CHUNK_IDS);
        if full || runs + more > CHUNK_RUNS {
            chunks.push(Vec::new());
            runs = 0;
        }
        runs += more;
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(*number);
        }
    }
    chunks
}

fn note_missing(missing: usize, history: &mut History) {
    if missing > 0 {
        let jobs = text::count(missing as u64, "job");
        let text = format!("accounting gave no steps from before the window of {jobs}");
        history.notices.push(Notice::warning("incomplete-jobs", text));
    }
}

/// A window in pieces, the newest first, so that each holds about [`Pieces::ROWS`].
struct Pieces {
    since: i64,
    /// Where the next one ends; `None` when there is none.
    until: Option<i64>,
    /// How long the next one is, in seconds; none is longer than the window.
    length: i64,
    growth: i64,
    /// How many rows the last one held.
    held: usize,
    first: bool,
    ends: (Timestamp, Timestamp),
}

impl Pieces {
    /// Of so many `sacct` holds some 170 MB.
    const ROWS: u32 = 100_000;

    /// The first is of so many days; zero is the whole window.
    fn new((since, until): (Timestamp, Timestamp), days: u64, depth: Depth) -> Self {
        let days = i64::try_from(days).ok().filter(|days| (1..=36_500).contains(days));
        Self {
            since: since.as_second(),
            until: Some(until.as_second()),
            length: days.map_or(i64::MAX, |days| days * 86_400),
            // What is older may be denser: an answer that takes ten times as long is approached
            // with more care.
            growth: if depth == Depth::Steps { 2 } else { 4 },
            held: 0,
            first: true,
            ends: (since, until),
        }
    }

    fn next(&mut self) -> Option<(Timestamp, Timestamp)> {
        let until = self.until?;
        if !self.first {
            let most = self.length.saturating_mul(self.growth);
            // As many rows as in the last one for each second of it.
            let held = i64::try_from(self.held.max(1)).unwrap_or(i64::MAX);
            let fits = self.length.saturating_mul(i64::from(Self::ROWS)) / held;
            self.length = fits.clamp(86_400, most);
        }
        self.held = 0;
        // A small rest is no piece of its own.
        let rest = until.saturating_sub(self.since);
        let begin = if rest <= self.length.saturating_add(self.length / 4) {
            self.until = None;
            None
        } else {
            self.until = Some(until - self.length);
            self.until
        };
        let at = |second| Timestamp::from_second(second).ok();
        // The ends of the window are as they were given.
        let end = if self.first { self.ends.1 } else { at(until)? };
        self.first = false;
        Some((begin.and_then(at).unwrap_or(self.ends.0), end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days of the pieces of a window that holds so many rows a day.
    fn days(window: (i64, i64), days: u64, depth: Depth, rows_a_day: usize) -> Vec<(i64, i64)> {
        const DAY: i64 = 86_400;
        let at = |day: i64| Timestamp::from_second(day * DAY).expect("a time");
        let mut pieces = Pieces::new((at(window.0), at(window.1)), days, depth);
        let mut found = Vec::new();
        while let Some((since, until)) = pieces.next() {
            let (since, until) = (since.as_second() / DAY, until.as_second() / DAY);
            pieces.held = usize::try_from(until - since).unwrap_or(0) * rows_a_day;
            found.push((since, until));
        }
        found
    }

    #[test]
    fn pieces_touch_and_cover_the_window() {
        let runs = Depth::Allocations;
        assert_eq!(days((0, 30), 0, runs, 9), [(0, 30)]);
        assert_eq!(days((0, 7), 7, runs, 9), [(0, 7)]);
        // 28 days and a quarter of them are more than 30.
        assert_eq!(days((0, 30), 28, runs, 9), [(0, 30)]);
        // Four times as long each, while few come.
        assert_eq!(days((0, 365), 7, runs, 9), [(358, 365), (330, 358), (218, 330), (0, 218)]);
        assert_eq!(days((0, 365), 7, Depth::Steps, 9).len(), 6);
        // A window that ends before it begins is sacct's to refuse.
        assert_eq!(days((7, 0), 7, runs, 9), [(7, 0)]);
    }

    #[test]
    fn a_piece_holds_no_more_rows_than_fit() {
        for rows in [1_000, 10_000, 50_000, 100_000, 1_000_000] {
            let pieces = days((0, 365), 7, Depth::Steps, rows);
            assert!(pieces.windows(2).all(|pair| pair[0].0 == pair[1].1), "{pieces:?}");
            assert_eq!((pieces[0].1, pieces[pieces.len() - 1].0), (365, 0));
            let most = usize::try_from(pieces[1..].iter().map(|(a, b)| b - a).max().expect("two"));
            // A quarter may be added at the end; no piece is shorter than a day.
            let bound = (Pieces::ROWS as usize + Pieces::ROWS as usize / 4).max(rows);
            assert!(most.expect("days") * rows <= bound, "{rows}: {pieces:?}");
        }
    }

    #[test]
    fn ids_are_asked_for_in_groups_of_bounded_answers() {
        let jobs: BTreeMap<u32, usize> = (1..=4500).map(|number| (number, 1)).collect();
        assert_eq!(chunks(&jobs).iter().map(Vec::len).collect::<Vec<_>>(), [2000, 2000, 500]);
        // Arrays of a thousand tasks each, and one that is too large for any group.
        let mut jobs: BTreeMap<u32, usize> = (1..=12).map(|number| (number, 1000)).collect();
        jobs.insert(13, 90_000);
        assert_eq!(chunks(&jobs).iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 2, 1]);
        assert_eq!(chunks(&BTreeMap::new()).len(), 0);
    }
}
