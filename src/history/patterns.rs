//! What goes wrong again and again, over the runs of a workload.
//!
//! One pass over the runs of each; nothing here looks at a pair of them. What the next run should
//! ask for is not told here: that is sizing's to say, so that the two cannot contradict each other.

use std::collections::BTreeMap;

use crate::model::{Allowance, BaseState, History, Idle, Run};

use super::Outcome;
use super::workloads::Workload;

/// A failure repeats when so many runs failed,
const LEAST_FAILURES: u64 = 5;
/// which are at least half of all, and is severe above four fifths.
const SHARES: (f64, f64) = (0.5, 0.8);
/// So many deaths for memory are a search for the right limit.
const LEAST_DEATHS: u64 = 3;
/// So many requeued jobs are a habit, if they are at least one run in ten.
const LEAST_REQUEUED: u64 = 3;

/// Something that repeats in one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The place of the workload in the list.
    pub workload: usize,
    /// Ended runs of the workload.
    pub runs: u64,
    /// Those that show the pattern.
    pub hits: u64,
    /// Core-seconds of these.
    pub core_seconds: u64,
    /// GPU-seconds of these.
    pub gpu_seconds: u64,
    /// Whether it should be looked at first.
    pub severe: bool,
    /// What it is.
    pub kind: Kind,
}

/// What repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Most runs fail.
    Failures {
        /// The state in which most of them ended.
        state: BaseState,
        /// How many ended in it.
        of_state: u64,
        /// How many of the failed ones held their cores and did nothing.
        hung: u64,
        /// The one time limit that all of them had.
        limit: Option<u32>,
        /// Whether all of them are tasks of one array.
        one_array: bool,
    },
    /// Runs died for memory, at one limit or at several.
    Memory {
        /// The limits per node in the order in which they were tried, with how often in a row.
        tried: Vec<(u64, u64)>,
        /// Runs that completed after the last death, and the limit of the last of them.
        then: Option<(u64, u64)>,
        /// Whether a later run completed with no more than an earlier one died of.
        mixed: bool,
    },
    /// Jobs were put back into the queue.
    Requeues {
        /// Seconds of wall time of the runs that were given up.
        seconds: u64,
    },
}

/// The patterns of all workloads, the most expensive first.
pub fn patterns(history: &History, workloads: &[Workload], idle: &Idle) -> Vec<Pattern> {
    let mut found = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        let ended: Vec<&Run> = workload.runs(history).filter(|run| run.is_ended()).collect();
        found.extend(failures(index, &ended, idle));
        found.extend(memory(index, &ended));
        found.extend(requeues(index, &ended));
    }
    found.sort_by_key(|pattern| {
        let cost = (pattern.gpu_seconds, pattern.core_seconds, pattern.hits);
        (std::cmp::Reverse((pattern.severe, cost)), pattern.workload)
    });
    found
}

fn pattern(workload: usize, ended: &[&Run], hits: &[&Run], severe: bool, kind: Kind) -> Pattern {
    let sum = |what: fn(&Run) -> Option<u64>| hits.iter().filter_map(|run| what(run)).sum();
    Pattern {
        workload,
        runs: ended.len() as u64,
        hits: hits.len() as u64,
        core_seconds: sum(Run::core_seconds),
        gpu_seconds: sum(Run::gpu_seconds),
        severe,
        kind,
    }
}

fn failures(index: usize, ended: &[&Run], idle: &Idle) -> Option<Pattern> {
    let failed: Vec<&Run> =
        ended.iter().copied().filter(|run| Outcome::of_run(run) == Outcome::Failed).collect();
    let share = super::share(failed.len() as u64, ended.len() as u64);
    if (failed.len() as u64) < LEAST_FAILURES || share < SHARES.0 {
        return None;
    }
    let mut states: BTreeMap<BaseState, u64> = BTreeMap::new();
    for run in &failed {
        *states.entry(run.state).or_default() += 1;
    }
    let (state, of_state) = states.into_iter().max_by_key(|(state, count)| (*count, *state))?;
    let first = failed.first()?;
    let limit = match first.limit {
        Allowance::Seconds(limit) if failed.iter().all(|run| run.limit == first.limit) => {
            Some(limit)
        }
        _ => None,
    };
    let is_task = matches!(first.part, crate::model::RunPart::Task(_));
    let kind = Kind::Failures {
        state,
        of_state,
        hung: failed.iter().filter(|run| run.is_hang(idle) == Some(true)).count() as u64,
        limit,
        one_array: is_task && failed.iter().all(|run| run.number == first.number),
    };
    Some(pattern(index, ended, &failed, share > SHARES.1, kind))
}

fn memory(index: usize, ended: &[&Run]) -> Option<Pattern> {
    let dead: Vec<&Run> = ended
        .iter()
        .copied()
        .filter(|run| run.out_of_memory && run.memory_per_node().is_some())
        .collect();
    if (dead.len() as u64) < LEAST_DEATHS {
        return None;
    }
    let mut tried: Vec<(u64, u64)> = Vec::new();
    for limit in dead.iter().filter_map(|run| run.memory_per_node()) {
        match tried.last_mut() {
            Some((last, times)) if *last == limit => *times += 1,
            _ => tried.push((limit, 1)),
        }
    }
    // What completed, and the least limit at which something had died until then.
    let mut least_deadly = u64::MAX;
    let mut then = None;
    let mut mixed = false;
    for run in ended {
        let Some(limit) = run.memory_per_node() else { continue };
        if run.out_of_memory {
            least_deadly = least_deadly.min(limit);
            then = None;
        } else if run.is_completed() {
            mixed |= limit <= least_deadly && least_deadly != u64::MAX;
            then = Some((then.map_or(0, |(count, _): (u64, u64)| count) + 1, limit));
        }
    }
    let severe = mixed || then.is_none();
    Some(pattern(index, ended, &dead, severe, Kind::Memory { tried, then, mixed }))
}

fn requeues(index: usize, ended: &[&Run]) -> Option<Pattern> {
    let given_up: Vec<&Run> = ended.iter().copied().filter(|run| run.earlier).collect();
    let mut jobs: Vec<_> = given_up.iter().map(|run| (run.number, run.part)).collect();
    jobs.sort_unstable();
    jobs.dedup();
    if (jobs.len() as u64) < LEAST_REQUEUED || jobs.len() * 10 < ended.len() {
        return None;
    }
    let seconds = given_up.iter().filter_map(|run| run.elapsed.get()).map(u64::from).sum();
    Some(pattern(index, ended, &given_up, false, Kind::Requeues { seconds }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::workloads::workloads;
    use crate::model::{Maybe, RunPart};

    const GIB: u64 = 1 << 30;
    const IDLE: Idle =
        Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 };

    fn history(runs: impl IntoIterator<Item = (BaseState, u64)>) -> History {
        let mut history = History::default();
        let name = history.names.intern("train");
        let runs = runs.into_iter().enumerate().map(|(index, (state, gib))| {
            let number = u32::try_from(index + 1).expect("few");
            Run {
                name: Some(name),
                started: Maybe::some(number * 10_000),
                ended: Maybe::some(number * 10_000 + 4000),
                elapsed: Maybe::some(4000),
                limit: Allowance::Seconds(3600),
                nodes: Maybe::some(1),
                cpus: Maybe::some(2),
                cpu_millis: Maybe::some(if state == BaseState::Timeout { 500 } else { 4_000_000 }),
                allocated_memory: Maybe::some(gib * GIB),
                out_of_memory: state == BaseState::OutOfMemory,
                ..Run::bare(number, RunPart::Whole, state)
            }
        });
        history.runs = runs.collect();
        history
    }

    fn found(history: &History) -> Vec<Pattern> {
        patterns(history, &workloads(history), &IDLE)
    }

    #[test]
    fn a_workload_that_fails_most_of_the_time_is_found() {
        use BaseState::{Completed, Failed, Timeout};
        let states = [Timeout, Timeout, Completed, Timeout, Timeout, Failed, Completed, Timeout];
        let found = found(&history(states.map(|state| (state, 4))));
        let [pattern] = &found[..] else { panic!("{found:?}") };
        assert_eq!((pattern.runs, pattern.hits, pattern.severe), (8, 6, false));
        assert_eq!(pattern.core_seconds, 6 * 2 * 4000);
        let expected = Kind::Failures {
            state: Timeout,
            of_state: 5,
            hung: 5,
            limit: Some(3600),
            one_array: false,
        };
        assert_eq!(pattern.kind, expected);
        // Four failures of five runs are too few to speak of.
        let few = [Failed, Failed, Completed, Failed, Failed];
        assert!(super::tests::found(&history(few.map(|state| (state, 4)))).is_empty());
    }

    #[test]
    fn a_walk_through_limits_is_one_line() {
        use BaseState::{Completed, OutOfMemory};
        let walk = [
            (OutOfMemory, 16),
            (OutOfMemory, 24),
            (OutOfMemory, 24),
            (Completed, 64),
            (Completed, 64),
        ];
        let found = found(&history(walk));
        let [pattern] = &found[..] else { panic!("{found:?}") };
        let tried = vec![(16 * GIB, 1), (24 * GIB, 2)];
        let expected = Kind::Memory { tried, then: Some((2, 64 * GIB)), mixed: false };
        assert_eq!((&pattern.kind, pattern.severe), (&expected, false));
        // One that completed with what another had died of: memory may not be the cause.
        let mixed = [(OutOfMemory, 16), (OutOfMemory, 32), (Completed, 16), (OutOfMemory, 16)];
        let found = super::tests::found(&history(mixed));
        assert!(matches!(found[0].kind, Kind::Memory { mixed: true, then: None, .. }));
        assert!(found[0].severe);
    }

    #[test]
    fn jobs_that_were_requeued_again_and_again_are_counted_once_each() {
        let mut history = history([(BaseState::Completed, 4); 10]);
        for (index, run) in history.runs.iter_mut().take(4).enumerate() {
            run.earlier = true;
            run.state = BaseState::NodeFail;
            run.number = u32::try_from(index / 2 + 1).expect("few");
        }
        assert!(found(&history).is_empty(), "two jobs, twice each");
        history.runs[4].earlier = true;
        let found = found(&history);
        assert_eq!((found[0].hits, &found[0].kind), (5, &Kind::Requeues { seconds: 20_000 }));
    }
}
