//! A long history, run by run, while `sacct` still prints it.
//!
//! `sacct` and its database hold a whole answer in memory before they print it, so everybody's
//! history is asked for in pieces, one after the other; the jobs of one user are few and take one
//! query. A run that crosses a border is printed for both pieces and belongs to the one it ended in.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::host::Cmd;
use crate::model::{BaseState, History, Job, JobId, Names, Notice, Run, RunPart, State, Symbol};
use crate::text;

use super::fields::{Field, Layout};
use super::numbers::Clock;
use super::records::{self, Reading};
use super::rows::{self, Reader, Row};
use super::runs::Loader;
use super::{
    Depth, Filter, Jobs, SHORT_DEADLINE, SchedError, Users, quirks, refusal, squeue,
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
        let days = if filter.users == Users::All { self.list_days } else { 0 };
        let mut unreadable = 0;
        for (since, until) in pieces(filter.since, filter.until, days) {
            let last = until == filter.until;
            let cmd = self.selection(filter, (since, until), &layout, Depth::Allocations);
            let cmd = cmd.arg("--duplicates");
            // A fold holds no row, so nothing needs a cap.
            let cmd = cmd.cap(u64::MAX);
            let mut reader = Reader::new(&layout, rows::DELIMITER);
            let mut take = |row: Row<'_>| {
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

/// At most this many ids are asked for at once.
const CHUNK: usize = 500;

impl Jobs<'_> {
    /// Every run that ended in the window (`until` not included), and every record that is still
    /// open: those of requeued jobs one by one, each whole, also where it began before.
    ///
    /// Costs a query for each piece of the window. With steps, another for each [`CHUNK`] of the
    /// jobs that had begun before it: of those `sacct` leaves out the steps that had ended by then.
    pub fn past(&self, filter: &Filter, depth: Depth) -> Result<History, SchedError> {
        let layout = self.fields()?.history(depth);
        let mut loader = Loader::new(self.reading_of_runs(), Clock::new(self.runner.zone()));
        let days = if filter.users == Users::All { self.list_days } else { 0 };
        let mut unreadable = 0;
        for window in pieces(filter.since, filter.until, days) {
            let cmd = self.selection(filter, window, &layout, depth).arg("--duplicates");
            unreadable += self.load(&cmd, &layout, &mut loader)?;
        }
        let missing = match depth {
            Depth::Allocations => 0,
            Depth::Steps => self.complete(filter, &layout, &mut loader, &mut unreadable)?,
        };
        let mut history = loader.finish(unreadable);
        if missing > 0 {
            let jobs = text::count(missing as u64, "job");
            let text = format!("accounting gave no steps from before the window of {jobs}");
            history.notices.push(Notice::warning("incomplete-jobs", text));
        }
        keep(&mut history, filter);
        self.find_stale_runs(filter, &mut history);
        Ok(history)
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

    /// Asks for the steps of jobs that had begun before the window; says of how many none came.
    fn complete(
        &self,
        filter: &Filter,
        layout: &Layout,
        loader: &mut Loader,
        unreadable: &mut usize,
    ) -> Result<usize, SchedError> {
        let since = u32::try_from(filter.since.as_second()).unwrap_or(0);
        let crosses = |run: &&Run| {
            let begun = run.started.get().is_some_and(|begun| begun < since);
            begun && run.ended.get().is_none_or(|end| end >= since)
        };
        let crossing: Vec<Run> = loader.runs().iter().filter(crosses).copied().collect();
        // By job, so that a thousand tasks of an array are one id.
        let jobs: BTreeSet<u32> = crossing.iter().map(|run| run.number).collect();
        let first = crossing.iter().filter_map(|run| run.submitted.get()).min().unwrap_or(since);
        let begin = Timestamp::from_second(i64::from(first)).unwrap_or(filter.since);
        // The ids narrow enough, and a state would leave out the runs before a requeue.
        let whole = Filter { since: begin, states: Vec::new(), ..filter.clone() };
        let jobs: Vec<u32> = jobs.into_iter().collect();
        let mut missing = 0;
        for chunk in jobs.chunks(CHUNK) {
            let ids: Vec<String> = chunk.iter().map(u32::to_string).collect();
            let window = (whole.since, whole.until);
            let cmd = self.selection(&whole, window, layout, Depth::Steps);
            let cmd = cmd.arg("--duplicates").arg(format!("--jobs={}", ids.join(",")));
            let before = loader.runs().len();
            *unreadable += self.load(&cmd, layout, loader)?;
            let came: BTreeSet<u32> =
                loader.runs()[before..].iter().map(|run| run.number).collect();
            missing += chunk.iter().filter(|number| !came.contains(number)).count();
        }
        Ok(missing)
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

/// A window in pieces of at most so many days, in order; in one where `days` is zero.
fn pieces(since: Timestamp, until: Timestamp, days: u64) -> Vec<(Timestamp, Timestamp)> {
    let step = i64::try_from(days).ok().filter(|days| (1..=36_500).contains(days));
    let step = step.map(|days| SignedDuration::from_hours(24 * days));
    let mut pieces = Vec::new();
    let mut begin = since;
    while let Some(end) = step.and_then(|step| begin.checked_add(step).ok())
        && end < until
    {
        pieces.push((begin, end));
        begin = end;
    }
    pieces.push((begin, until));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_touch_and_cover_the_window() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let days = |days: i64| at(days * 86_400);
        assert_eq!(pieces(days(0), days(30), 0), [(days(0), days(30))]);
        let month = pieces(days(0), days(30), 7);
        assert_eq!(month.len(), 5);
        assert_eq!((month[0].0, month[4]), (days(0), (days(28), days(30))));
        assert!(month.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(pieces(days(0), days(7), 7), [(days(0), days(7))]);
        // A window that ends before it begins is sacct's to refuse.
        assert_eq!(pieces(days(7), days(0), 7), [(days(7), days(0))]);
    }
}
