//! What every answer about many runs has in common: whose and when, the names of workloads, hours.

use jiff::Timestamp;
use serde::Serialize;

use super::past::{Wanted, past};
use super::{AnswerError, World};
use crate::config::Config;
use crate::history::workloads::Workload;
use crate::model::{BaseState, History, Idle, Notice, Run};
use crate::sched::{Depth, Filter, SchedError, Users};
use crate::text;

/// Whose runs of which window an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Begin of the window.
    pub since: Timestamp,
    /// End of the window, not included.
    pub until: Timestamp,
    /// Whose runs; `None` for everybody's.
    pub users: Option<Vec<String>>,
}

impl Scope {
    pub(super) fn of(world: World<'_>, filter: &Filter, history: &History) -> Self {
        // The scheduler keeps seconds.
        let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
        // A file holds what it holds: its window is that of its runs.
        let begins = |run: &Run| run.started.or(run.submitted);
        let starts = history.runs.iter().filter_map(|run| begins(run).get()).min();
        let ends = history.runs.iter().filter_map(|run| run.ended.or(begins(run)).get()).max();
        let first = moment(starts).unwrap_or(Timestamp::UNIX_EPOCH);
        let since = if filter.since == Timestamp::MIN { first } else { filter.since };
        let last = moment(ends.map(|end| end.saturating_add(1))).unwrap_or(since);
        // Nothing may have ended since.
        let until = if filter.until == Timestamp::MAX { last.max(since) } else { filter.until };
        let users = match &filter.users {
            // Whose files those are nobody says.
            Users::All => None,
            Users::Named(names) => {
                let name = |given: &String| given.parse().ok().and_then(|uid| login(history, uid));
                Some(names.iter().map(|given| name(given).unwrap_or(given.clone())).collect())
            }
            Users::Me => {
                // The number was asked for; the name may only be what the environment says.
                let caller = world.cluster.caller();
                let name = login(history, caller.uid).or(caller.name);
                Some(vec![name.unwrap_or_else(|| caller.uid.to_string())])
            }
        };
        Self { since: second(since), until: second(until), users }
    }
}

/// The name that the records have of a user's number.
fn login(history: &History, uid: u32) -> Option<String> {
    let run = history.runs.iter().find(|run| run.user.is_some() && run.uid.get() == Some(uid))?;
    Some(history.text(run.user).to_owned())
}

/// Reads the history that an answer is about.
pub(super) fn read(world: World<'_>, wanted: &Wanted) -> Result<History, AnswerError> {
    let mut history = past(world, wanted)?;
    // The cluster was asked what it still knows; a file only has its dates.
    if !wanted.files.is_empty() {
        mark_stale(&mut history, world.cluster.now());
    }
    history.notices.extend(nothing_matches(&wanted.filter, history.runs.is_empty()));
    Ok(history)
}

/// What to say where names were given and nothing is of them: one that is mistyped shall not pass for
/// one of whom nothing failed.
pub(super) fn nothing_matches(filter: &Filter, nothing: bool) -> Option<Notice> {
    let users: &[String] = match &filter.users {
        Users::Named(names) => names,
        Users::All | Users::Me => &[],
    };
    let given = [
        ("user", users),
        ("account", &filter.accounts[..]),
        ("partition", &filter.partitions),
        ("QOS", &filter.qos),
        ("cluster", &filter.clusters),
        ("name", &filter.names),
    ];
    let given = given.iter().filter(|(_, names)| !names.is_empty());
    let given: Vec<String> =
        given.map(|(what, names)| format!("{what} {}", text::join(names, "or"))).collect();
    if given.is_empty() || !nothing {
        return None;
    }
    let text = format!("no record in this window is of {}", text::join(&given, "and"));
    Some(Notice::warning("nothing-matches", text).hint("is the name right, and the window?"))
}

/// What steps used is asked for unasked of so many runs at most: that takes about a second. Of all
/// runs of a cluster it would take ten times as long as the runs alone.
pub(super) const FEW: usize = 5000;

/// As [`read`], and of a cluster also what the steps of those runs used that may have done nothing,
/// if that was asked for or they are few. Says whether that is known, and if not, how to know it.
pub(super) fn read_with_few_steps(
    world: World<'_>,
    wanted: &Wanted,
    idle: &Idle,
) -> Result<(History, bool), AnswerError> {
    let mut history = read(world, wanted)?;
    if !wanted.files.is_empty() || wanted.depth == Depth::Steps {
        return Ok((history, true));
    }
    let may_hang = |run: &Run| {
        let long = run.elapsed.get().is_some_and(|elapsed| elapsed >= idle.least_seconds);
        long && run.is_ended()
    };
    let those = history.runs.iter().filter(|run| may_hang(run)).count();
    if those > FEW {
        let runs = text::count(those as u64, "run");
        let text = format!(
            "what {runs} did with what they held was not asked: only steps know which hung"
        );
        let hint = "--steps asks, which takes some ten times as long";
        history.notices.push(Notice::info("no-steps", text).hint(hint));
        return Ok((history, false));
    }
    let known = add_steps(world, wanted, &mut history, may_hang);
    if let Err(error) = &known {
        let text = format!("what runs did with what they held is not known: {error}");
        history.notices.push(Notice::warning("no-steps", text));
    }
    Ok((history, known.is_ok()))
}

/// Adds what the steps of some runs used to a history of allocations; a file holds them or not.
pub(super) fn add_steps(
    world: World<'_>,
    wanted: &Wanted,
    history: &mut History,
    of: impl Fn(&Run) -> bool,
) -> Result<(), AnswerError> {
    let known = !wanted.files.is_empty() || wanted.depth == Depth::Steps;
    if known || !history.runs.iter().any(&of) {
        return Ok(());
    }
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    Ok(source.add_steps(&wanted.filter, history, of)?)
}

/// Marks records that are open though nothing can run for so long: twice its limit and a day. What is
/// stale counts in no sum.
fn mark_stale(history: &mut History, now: Timestamp) {
    const GRACE: i64 = 24 * 3600;
    let mut stale = 0;
    for run in &mut history.runs {
        let open = run.state == BaseState::Running && !run.is_ended();
        let (Some(start), Some(limit)) = (run.started.get(), run.limit.seconds()) else { continue };
        if open && now.as_second() - i64::from(start) > 2 * i64::from(limit) + GRACE {
            run.stale = true;
            stale += 1;
        }
    }
    if stale > 0 {
        let records = text::count(stale, "record");
        let text = format!("{records} open far beyond the time limit, so never closed: in no sum");
        history.notices.push(Notice::warning("stale-record", text));
    }
}

/// When a run counts as hung, by the settings.
pub(super) fn idle(config: &Config) -> Idle {
    let set = &config.settings.idle;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Idle {
        least_seconds: small(set.least_seconds),
        most_busy_permille: small(set.most_busy_permille),
        most_bytes_per_second: set.most_bytes_per_second,
    }
}

/// A workload as answers name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkloadName {
    /// The name of its runs, numbers in it folded to `#` where they differ.
    pub workload: String,
    /// How many names that stands for.
    pub names: usize,
    /// Whose.
    pub user: Option<String>,
    /// Where.
    pub partition: Option<String>,
    /// Whether its runs hold GPUs.
    pub gpus: bool,
    /// The script that tells it from other work of its name, where there is such.
    pub script: Option<String>,
}

impl WorkloadName {
    pub(super) fn of(workload: &Workload, history: &History) -> Self {
        let name_of = |symbol: Option<_>| symbol.map(|symbol| history.names.get(symbol).to_owned());
        let masked = text::masked;
        Self {
            workload: masked(&workload.label),
            names: workload.names,
            user: name_of(workload.user),
            partition: name_of(workload.partition),
            gpus: workload.gpus,
            script: workload.script.as_deref().map(masked),
        }
    }
}

/// Hours to four decimals: a third of a second.
#[expect(clippy::cast_precision_loss, reason = "hours are told to four decimals")]
pub(super) fn hours(seconds: u64) -> f64 {
    (seconds as f64 / 3600.0 * 10_000.0).round() / 10_000.0
}

/// A share to four decimals; `None` of nothing.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| (part as f64 / of as f64 * 10_000.0).round() / 10_000.0)
}

/// A moment from epoch seconds.
pub(super) fn moment(second: Option<u32>) -> Option<Timestamp> {
    Timestamp::from_second(i64::from(second?)).ok()
}
