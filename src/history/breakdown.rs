//! The same sums for each user, account, quality of service, partition, GPU type or week.

use std::collections::{BTreeMap, HashMap};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::model::{History, Idle, Run, Symbol};

use super::{Held, Outcome};

/// By what runs are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Who ran it.
    User,
    /// The account charged.
    Account,
    /// The quality of service.
    Qos,
    /// Where it ran.
    Partition,
    /// The type of its GPUs.
    Gpu,
    /// The week in which it ended, by its Monday.
    Week,
}

/// What the ended runs of a group held, by what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// All of them.
    pub used: Held,
    /// Those that failed.
    pub failed: Held,
    /// Those that somebody cancelled.
    pub cancelled: Held,
    /// Those that made way for others, or were put back into the queue.
    pub preempted: Held,
    /// Those that completed and yet did nothing: they held cores that stayed idle, or GPUs.
    pub idle: Held,
    /// Completed runs.
    pub completed: u64,
}

impl Group {
    /// Adds an ended run.
    fn add(&mut self, run: &Run, held: &Held, idle: &Idle) {
        self.used.merge(held);
        match Outcome::of_run(run) {
            Outcome::Completed => {
                self.completed += 1;
                if is_idle(run, idle) {
                    self.idle.merge(held);
                }
            }
            Outcome::Failed => self.failed.merge(held),
            Outcome::Cancelled => self.cancelled.merge(held),
            Outcome::Preempted | Outcome::Requeued => self.preempted.merge(held),
            _ => {}
        }
    }

    /// Adds what another group held.
    pub fn merge(&mut self, other: &Self) {
        self.used.merge(&other.used);
        self.failed.merge(&other.failed);
        self.cancelled.merge(&other.cancelled);
        self.preempted.merge(&other.preempted);
        self.idle.merge(&other.idle);
        self.completed += other.completed;
    }
}

/// Whether a run that completed did nothing with what it held.
pub fn is_idle(run: &Run, idle: &Idle) -> bool {
    let holds_gpus = run.gpus.get().is_some_and(|gpus| gpus > 0);
    let long = run.elapsed.get().is_some_and(|elapsed| elapsed >= idle.least_seconds);
    run.is_hang(idle) == Some(true) || (holds_gpus && long && run.gpu_permille.get() == Some(0))
}

/// The groups of a dimension by name; of no name where the record has none. Runs that have not
/// ended, or ended outside of the window (from its begin to before its end, in epoch seconds), are
/// in none.
pub fn breakdown(
    history: &History,
    dimension: Dimension,
    (since, until): (i64, i64),
    zone: &TimeZone,
    idle: &Idle,
) -> BTreeMap<String, Group> {
    let mut by_symbol: HashMap<Option<Symbol>, Group> = HashMap::new();
    let mut by_text: BTreeMap<String, Group> = BTreeMap::new();
    let mut weeks = Weeks::default();
    for run in ended(history, since, until) {
        let held = Held::by_run(run, history);
        let group = match dimension {
            Dimension::User => by_symbol.entry(run.user),
            Dimension::Account => by_symbol.entry(run.account),
            Dimension::Qos => by_symbol.entry(run.qos),
            Dimension::Partition => by_symbol.entry(run.partition),
            Dimension::Gpu => by_symbol.entry(run.gpu_type),
            Dimension::Week => {
                let week = weeks.of(run.ended.get().unwrap_or(0), zone);
                match by_text.get_mut(week) {
                    Some(group) => group.add(run, &held, idle),
                    None => by_text.entry(week.to_owned()).or_default().add(run, &held, idle),
                }
                continue;
            }
        };
        if dimension == Dimension::Gpu && run.gpus.get().is_none_or(|gpus| gpus == 0) {
            continue;
        }
        group.or_default().add(run, &held, idle);
    }
    let named = by_symbol.into_iter().map(|(name, group)| (history.text(name).to_owned(), group));
    let mut groups = by_text;
    for (name, group) in named {
        groups.entry(name).or_default().merge(&group);
    }
    groups
}

/// Runs that held something and ended in a window.
pub fn ended(history: &History, since: i64, until: i64) -> impl Iterator<Item = &Run> {
    history.runs.iter().filter(move |run| {
        let end = run.ended.get().map(i64::from);
        !run.stale
            && Outcome::ENDED.contains(&Outcome::of_run(run))
            && end.is_some_and(|end| (since..until).contains(&end))
    })
}

/// The Mondays of weeks; runs come in the order of their numbers, which is nearly that of time.
#[derive(Default)]
struct Weeks {
    /// Begin and end of the week that was asked for last, and its Monday.
    last: Option<(i64, i64, String)>,
}

impl Weeks {
    fn of(&mut self, second: u32, zone: &TimeZone) -> &str {
        let second = i64::from(second);
        let known = self.last.as_ref().is_some_and(|(from, to, _)| (*from..*to).contains(&second));
        if !known {
            self.last = week(second, zone);
        }
        self.last.as_ref().map_or("", |(_, _, monday)| monday)
    }
}

fn week(second: i64, zone: &TimeZone) -> Option<(i64, i64, String)> {
    let date = Timestamp::from_second(second).ok()?.to_zoned_datetime(zone.clone()).date();
    let since_monday = date.weekday().to_monday_zero_offset();
    let monday = date.checked_sub(since_monday.days()).ok()?;
    let at = |date: jiff::civil::Date| {
        Some(date.to_zoned_datetime(zone.clone()).ok()?.timestamp().as_second())
    };
    Some((at(monday)?, at(monday.checked_add(7.days()).ok()?)?, monday.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BaseState, Maybe, RunPart};

    const IDLE: Idle =
        Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 };
    const ALWAYS: (i64, i64) = (0, i64::MAX);

    fn run(number: u32, state: BaseState, ended: u32) -> Run {
        Run {
            started: Maybe::some(ended - 3600),
            ended: Maybe::some(ended),
            elapsed: Maybe::some(3600),
            nodes: Maybe::some(2),
            cpus: Maybe::some(8),
            gpus: Maybe::some(2),
            gpu_permille: Maybe::some(500),
            cpu_millis: Maybe::some(3_600_000),
            allocated_memory: Maybe::some(1 << 30),
            ..Run::bare(number, RunPart::Whole, state)
        }
    }

    fn groups(runs: Vec<Run>, dimension: Dimension) -> BTreeMap<String, Group> {
        let history = History { runs, ..History::default() };
        breakdown(&history, dimension, ALWAYS, &TimeZone::UTC, &IDLE)
    }

    #[test]
    fn what_ended_how_stands_apart() {
        use BaseState::{Cancelled, Completed, Failed, Preempted};
        let mut runs: Vec<Run> = [Completed, Failed, Cancelled, Preempted, Completed]
            .into_iter()
            .zip(1..)
            .map(|(state, number)| run(number, state, 1_000_000))
            .collect();
        // The last held its GPUs for nothing.
        runs[4].gpu_permille = Maybe::some(0);
        let groups = groups(runs, Dimension::Account);
        let group = &groups[""];
        let hours = |held: &Held| held.gpu_seconds().map(|seconds| seconds / 3600);
        assert_eq!(hours(&group.used), Some(10));
        for part in [&group.failed, &group.cancelled, &group.preempted, &group.idle] {
            assert_eq!((part.runs, hours(part)), (1, Some(2)));
        }
        assert_eq!((group.completed, group.used.node_seconds), (2, 5 * 7200));
        assert_eq!(group.failed.node_seconds, 7200);
    }

    #[test]
    fn a_week_begins_on_monday_in_the_site_s_zone() {
        // 2026-11-30 is a Monday; its midnight is 1,795,996,800.
        const MONDAY: u32 = 1_795_996_800;
        let runs = vec![
            run(1, BaseState::Completed, MONDAY - 1),
            run(2, BaseState::Completed, MONDAY),
            run(3, BaseState::Completed, MONDAY + 7 * 86_400 - 1),
        ];
        let weeks = groups(runs.clone(), Dimension::Week);
        let told: Vec<(&str, u64)> =
            weeks.iter().map(|(week, group)| (week.as_str(), group.used.runs)).collect();
        assert_eq!(told, [("2026-11-23", 1), ("2026-11-30", 2)]);
        let history = History { runs, ..History::default() };
        let east = TimeZone::fixed(jiff::tz::offset(1));
        let weeks = breakdown(&history, Dimension::Week, ALWAYS, &east, &IDLE);
        assert_eq!(weeks["2026-11-30"].used.runs, 2);
        assert_eq!(weeks["2026-12-07"].used.runs, 1);
    }

    #[test]
    fn the_window_is_of_ends_and_its_end_is_not_in_it() {
        let runs = vec![run(1, BaseState::Completed, 5000), run(2, BaseState::Completed, 6000)];
        let history = History { runs, ..History::default() };
        let runs = |since, until| ended(&history, since, until).count();
        assert_eq!((runs(5000, 6000), runs(5001, 6001), runs(0, 5000)), (1, 1, 0));
    }
}
