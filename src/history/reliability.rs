//! Which nodes fail more often than others would with the same work.
//!
//! A trial is a job on a node and not a process or a task: a hundred tasks of one array that fail
//! together on a node are one misfortune. Each workload is compared within itself, so that a node on
//! which somebody tries out what breaks is not blamed for it; the comparisons are then pooled, and
//! judged as many as they are. Runs that say nothing of a node are left out: cancelled, killed at a
//! limit of their own, or on several nodes without a word which of them was to blame.

use std::collections::{BTreeMap, HashMap};

use crate::math::{self, Share, Table};
use crate::model::{BaseState, History, Idle, Run, RunPart, Symbol};
use crate::text;

use super::Outcome;
use super::workloads::Workload;

/// Nodes with fewer trials are not judged.
pub const LEAST_TRIALS: u64 = 10;
/// At most this share of the nodes that are called worse is expected to be so by chance.
pub const DISCOVERY: f64 = 0.05;
/// Nodes of one list that are told apart.
const LIST: usize = 65_536;

/// What counts against a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The run failed: not at a limit that it was given, but by exit, by signal or for the node.
    Failure,
    /// The run held its cores and did nothing.
    Hang,
}

/// A node and how runs fared on it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRow {
    /// The node.
    pub node: String,
    /// Jobs that ran on it.
    pub trials: u64,
    /// Those that count against it.
    pub hits: u64,
    /// Their share with its interval.
    pub share: Share,
    /// Trials of work that also ran on other nodes: all that can be compared.
    pub compared_trials: u64,
    /// Those of them that count against it.
    pub compared_hits: u64,
    /// How many of the compared trials would have been hits elsewhere, work for work; `None` where
    /// there are none.
    pub expected: Option<f64>,
    /// The odds of a hit on it over those of the same work elsewhere; `None` where elsewhere there
    /// was none.
    pub odds: Option<f64>,
    /// The probability to see so many by chance, adjusted for how many nodes were looked at; `None`
    /// where the node's work ran nowhere else.
    pub chance: Option<f64>,
}

impl NodeRow {
    /// Whether it is worse than the others beyond chance.
    pub fn is_worse(&self) -> bool {
        self.chance.is_some_and(|chance| chance <= DISCOVERY)
    }
}

/// The nodes of a history.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reliability {
    /// Nodes with enough trials: the worst first.
    pub nodes: Vec<NodeRow>,
    /// Nodes with too few trials to be judged.
    pub few: u64,
    /// Trials on all nodes.
    pub trials: u64,
    /// Hits among them.
    pub hits: u64,
    /// Runs on several nodes that failed and do not say on which.
    pub ambiguous: u64,
    /// Runs that failed at a limit of their own, which says nothing of a node: in no trial.
    pub at_limits: u64,
    /// Tasks of arrays that were put together: an array is one trial on each node.
    pub tasks: u64,
    /// Runs that ended because their node did, by node, the most first: whatever is judged of it.
    pub node_failures: Vec<(String, u64)>,
}

/// Judges the nodes.
pub fn reliability(
    history: &History,
    workloads: &[Workload],
    metric: Metric,
    idle: &Idle,
) -> Reliability {
    let mut found = Reliability::default();
    let mut lists: HashMap<Symbol, Vec<u32>> = HashMap::new();
    let mut nodes: Vec<String> = Vec::new();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut number = |name: String| {
        *numbers.entry(name).or_insert_with_key(|name| {
            nodes.push(name.clone());
            u32::try_from(nodes.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let mut node_failures: BTreeMap<u32, u64> = BTreeMap::new();
    // Node -> its count in each workload where it has one.
    let mut counts: BTreeMap<u32, Vec<(Count, Count)>> = BTreeMap::new();
    for workload in workloads {
        let mut here: HashMap<u32, Count> = HashMap::new();
        // Tasks of an array that ran on the same node are one trial.
        let mut arrays: HashMap<(u32, u32), Count> = HashMap::new();
        for run in workload.runs(history) {
            let Some(list) = run.node_list else { continue };
            let Some(hit) = hit(run, metric, idle) else {
                let failed = metric == Metric::Failure && Outcome::of_run(run) == Outcome::Failed;
                found.at_limits += u64::from(failed);
                continue;
            };
            let on = lists.entry(list).or_insert_with(|| {
                let expanded = text::expand(history.names.get(list), LIST).unwrap_or_default();
                expanded.into_iter().map(&mut number).collect()
            });
            let lost = matches!(run.state, BaseState::NodeFail | BaseState::BootFail);
            let blamed = match (hit, on.len(), run.failed_node) {
                (true, 2.., Some(node)) => vec![number(history.names.get(node).to_owned())],
                (true, 2.., None) => {
                    found.ambiguous += 1;
                    continue;
                }
                _ => on.clone(),
            };
            let is_task = matches!(run.part, RunPart::Task(_));
            found.tasks += u64::from(is_task);
            for node in blamed {
                if lost {
                    *node_failures.entry(node).or_default() += 1;
                }
                let count = if is_task {
                    arrays.entry((node, run.number)).or_default()
                } else {
                    here.entry(node).or_default()
                };
                count.add(hit);
            }
        }
        for ((node, _), tasks) in arrays {
            // The node is blamed for an array if most of its tasks failed there.
            here.entry(node).or_default().add(tasks.hits * 2 >= tasks.trials);
        }
        let mut all = Count::default();
        for count in here.values() {
            all.merge(*count);
        }
        found.trials += all.trials;
        found.hits += all.hits;
        for (node, count) in here {
            let others = Count { hits: all.hits - count.hits, trials: all.trials - count.trials };
            counts.entry(node).or_default().push((count, others));
        }
    }
    let named = node_failures.into_iter();
    let named = named.filter_map(|(node, runs)| Some((nodes.get(node as usize)?.clone(), runs)));
    found.node_failures = named.collect();
    found.node_failures.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut rows: Vec<NodeRow> = counts
        .into_iter()
        .filter_map(|(node, strata)| {
            let name = nodes.get(node as usize)?.clone();
            let row = row(name, &strata);
            if row.is_none() {
                found.few += 1;
            }
            row
        })
        .collect();
    // The order of the numbers is that of the first appearance; that of the output is the names'.
    rows.sort_by(|a, b| a.node.cmp(&b.node));
    let judged: Vec<f64> = rows.iter().filter_map(|row| row.chance).collect();
    let mut adjusted = math::adjusted(&judged).into_iter();
    for row in &mut rows {
        row.chance = row.chance.and_then(|_| adjusted.next());
    }
    rows.sort_by(|a, b| {
        let chance = |row: &NodeRow| row.chance.unwrap_or(1.0);
        chance(a).total_cmp(&chance(b)).then(b.share.value.total_cmp(&a.share.value))
    });
    found.nodes = rows;
    found
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    hits: u64,
    trials: u64,
}

impl Count {
    fn add(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.trials += 1;
    }

    fn merge(&mut self, other: Self) {
        self.hits += other.hits;
        self.trials += other.trials;
    }
}

/// Whether a run counts against its node; `None` where it says nothing of it.
fn hit(run: &Run, metric: Metric, idle: &Idle) -> Option<bool> {
    if !run.is_ended() || !run.has_started() {
        return None;
    }
    match metric {
        Metric::Hang => run.is_hang(idle),
        Metric::Failure if run.out_of_memory => None,
        Metric::Failure => match run.state {
            BaseState::Completed => Some(false),
            BaseState::Failed | BaseState::NodeFail | BaseState::BootFail => Some(true),
            _ => None,
        },
    }
}

fn row(node: String, strata: &[(Count, Count)]) -> Option<NodeRow> {
    let (mut all, mut compared) = (Count::default(), Count::default());
    for (count, others) in strata {
        all.merge(*count);
        if others.trials > 0 {
            compared.merge(*count);
        }
    }
    if all.trials < LEAST_TRIALS {
        return None;
    }
    let tables: Vec<Table> = strata
        .iter()
        .map(|(count, others)| Table {
            hits: count.hits,
            misses: count.trials - count.hits,
            other_hits: others.hits,
            other_misses: others.trials - others.hits,
        })
        .collect();
    let expected = strata.iter().map(|(count, others)| {
        super::share(others.hits, others.trials) * super::share(count.trials, 1)
    });
    Some(NodeRow {
        node,
        trials: all.trials,
        hits: all.hits,
        share: math::wilson(all.hits, all.trials)?,
        compared_trials: compared.trials,
        compared_hits: compared.hits,
        expected: (compared.trials > 0).then(|| expected.sum()),
        odds: math::common_odds_ratio(&tables),
        chance: math::worse(&tables),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::workloads::workloads;
    use crate::model::Maybe;

    const IDLE: Idle =
        Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 };

    struct Made {
        history: History,
        number: u32,
    }

    impl Made {
        fn new() -> Self {
            Self { history: History::default(), number: 0 }
        }

        fn run(&mut self, name: &str, nodes: &str, state: BaseState) -> &mut Run {
            self.number += 1;
            let name = self.history.names.intern(name);
            let nodes = self.history.names.intern(nodes);
            self.history.runs.push(Run {
                name: Some(name),
                node_list: Some(nodes),
                started: Maybe::some(self.number * 1000),
                ended: Maybe::some(self.number * 1000 + 900),
                elapsed: Maybe::some(900),
                ..Run::bare(self.number, RunPart::Whole, state)
            });
            self.history.runs.last_mut().expect("just pushed")
        }

        fn found(&self) -> Reliability {
            let workloads = workloads(&self.history);
            reliability(&self.history, &workloads, Metric::Failure, &IDLE)
        }
    }

    use BaseState::{Cancelled, Completed, Failed, NodeFail};

    #[test]
    fn a_bad_node_is_found_in_the_work_that_also_ran_elsewhere() {
        let mut made = Made::new();
        for round in 0..12 {
            for node in 1..=4 {
                let bad = node == 3 && round < 8;
                made.run("fit", &format!("n{node}"), if bad { Failed } else { Completed });
            }
        }
        let found = made.found();
        let worst = &found.nodes[0];
        assert_eq!((worst.node.as_str(), worst.hits, worst.trials), ("n3", 8, 12));
        assert!(worst.is_worse() && worst.odds.is_none());
        assert!(found.nodes[1..].iter().all(|row| !row.is_worse()));
        assert_eq!((found.trials, found.hits, found.few), (48, 8, 0));
        // Fisher's test of 8/12 against 0/36: 1 / C(48,8) x C(12,8) = 495 / 377,348,994, times the
        // four nodes looked at.
        let chance = worst.chance.expect("compared");
        assert!((chance / (4.0 * 495.0 / 377_348_994.0) - 1.0).abs() < 1e-6, "{chance}");
    }

    #[test]
    fn a_node_is_not_blamed_for_the_work_that_only_it_was_given() {
        let mut made = Made::new();
        for _ in 0..20 {
            made.run("debug", "n1", Failed);
            made.run("fit", "n1", Completed);
            made.run("fit", "n2", Completed);
        }
        let found = made.found();
        assert!(found.nodes.iter().all(|row| !row.is_worse()), "{:?}", found.nodes);
        // 20 of its 40 jobs failed, and none of the 20 that can be compared with other nodes'.
        let row = found.nodes.iter().find(|row| row.node == "n1").expect("judged");
        assert_eq!((row.hits, row.trials), (20, 40));
        assert_eq!((row.compared_hits, row.compared_trials), (0, 20));
        assert_eq!(row.expected, Some(0.0));
    }

    #[test]
    fn failures_without_a_node_decide_nothing() {
        // Weakness 23: the most events were of work that was refused before it had a node.
        let mut made = Made::new();
        for _ in 0..30 {
            let refused = made.run("refused", "x", Failed);
            (refused.node_list, refused.started) = (None, Maybe::NONE);
            refused.elapsed = Maybe::NONE;
        }
        for _ in 0..12 {
            made.run("fit", "n1", Failed);
            made.run("fit", "n2", Completed);
        }
        let found = made.found();
        assert_eq!((found.trials, found.hits), (24, 12));
        assert_eq!(found.nodes[0].node, "n1");
        assert!(found.nodes[0].is_worse());
    }

    #[test]
    fn tasks_of_an_array_on_one_node_are_one_trial() {
        // Weakness 28: a hundred tasks were a hundred trials.
        let mut made = Made::new();
        for task in 0..100 {
            let run = made.run("sweep", "n1", Failed);
            (run.number, run.part) = (1, RunPart::Task(task));
        }
        for _ in 0..12 {
            made.run("sweep", "n1", Completed);
            made.run("sweep", "n2", Completed);
        }
        let found = made.found();
        let row = found.nodes.iter().find(|row| row.node == "n1").expect("judged");
        assert_eq!((row.hits, row.trials), (1, 13));
        assert!(!row.is_worse());
        assert_eq!((found.tasks, found.node_failures.len()), (100, 0));
    }

    #[test]
    fn a_failure_on_several_nodes_is_blamed_on_the_one_that_is_named() {
        let mut made = Made::new();
        let named = made.history.names.intern("n2");
        for _ in 0..10 {
            made.run("mpi", "n[1-3]", NodeFail).failed_node = Some(named);
            made.run("mpi", "n[1-3]", Completed);
            made.run("mpi", "n[1-3]", Failed);
            made.run("mpi", "n[1-3]", Cancelled);
        }
        let found = made.found();
        assert_eq!(found.ambiguous, 10);
        let of = |name: &str| {
            let row = found.nodes.iter().find(|row| row.node == name).expect("judged");
            (row.hits, row.trials)
        };
        assert_eq!((of("n1"), of("n2"), of("n3")), ((0, 10), (10, 20), (0, 10)));
        assert!(found.nodes[0].is_worse());
    }

    #[test]
    fn what_a_node_ended_is_told_whatever_is_judged_of_it() {
        // Ten tasks of one array among sixteen that completed there: one trial, and no hit.
        let mut made = Made::new();
        for task in 0..26 {
            let run = made.run("sweep", "n13", if task < 10 { NodeFail } else { Completed });
            (run.number, run.part) = (1, RunPart::Task(task));
        }
        let found = made.found();
        assert_eq!((found.trials, found.hits, found.few), (1, 0, 1));
        assert_eq!(found.node_failures, [("n13".to_owned(), 10)]);
    }

    #[test]
    fn what_failed_at_a_limit_of_its_own_is_counted_apart() {
        let mut made = Made::new();
        made.run("fit", "n1", Completed);
        made.run("fit", "n1", Failed);
        made.run("fit", "n2", BaseState::Timeout);
        made.run("fit", "n2", BaseState::OutOfMemory).out_of_memory = true;
        made.run("fit", "n2", Cancelled);
        let found = made.found();
        assert_eq!((found.trials, found.hits, found.at_limits), (2, 1, 2));
    }

    #[test]
    fn few_trials_are_not_judged() {
        let mut made = Made::new();
        for _ in 0..9 {
            made.run("fit", "n1", Failed);
            made.run("fit", "n2", Completed);
        }
        let found = made.found();
        assert_eq!((found.nodes.len(), found.few), (0, 2));
    }
}
