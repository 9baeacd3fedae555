//! Which nodes fail more often than chance explains?

use serde::Serialize;

use super::past::Wanted;
use super::scope::{self, Scope};
use super::{AnswerError, World, mask};
use crate::history::reliability::{self, DISCOVERY, Metric, NodeRow, Reliability};
use crate::history::workloads::workloads;
use crate::model::Notice;
use crate::text;

/// The nodes of a window.
#[derive(Debug, Serialize)]
pub struct Nodes {
    /// `jobwise/reliability/1`.
    pub schema: &'static str,
    /// Whose runs, and when.
    #[serde(flatten)]
    pub scope: Scope,
    /// What counts against a node: `failure` or `hang`.
    pub metric: &'static str,
    /// Jobs on nodes; tasks of an array on one node are one.
    pub trials: u64,
    /// Those that count against their node.
    pub hits: u64,
    /// Nodes that were judged.
    pub judged: usize,
    /// Nodes on which too little ran.
    pub too_few_trials: u64,
    /// Failed runs on several nodes whose record does not say which was to blame: in no trial.
    pub ambiguous: u64,
    /// Runs that failed at a limit of their own, of memory or time: in no trial. Of hangs none.
    pub at_limits: u64,
    /// Tasks of arrays among the runs: those of an array are one trial on each node.
    pub array_tasks: u64,
    /// Runs that ended because their node did, by node, the most first.
    pub node_failures: Vec<NodeFailures>,
    /// Of the nodes that are called worse at most this share is expected to be so by chance.
    pub false_discovery_rate: f64,
    /// The nodes, the worst first, as many as were asked for.
    pub nodes: Vec<NodeLine>,
    /// Nodes to leave out, in the scheduler's compressed form.
    pub exclude: Option<String>,
    /// Nodes that are worse and not in that list.
    pub not_excluded: usize,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// A node that ended runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFailures {
    /// Its name.
    pub node: String,
    /// Runs in the states `NODE_FAIL` and `BOOT_FAIL`.
    pub runs: u64,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeLine {
    /// Its name.
    pub node: String,
    /// Jobs that ran on it.
    pub trials: u64,
    /// Those that count against it.
    pub hits: u64,
    /// Their share.
    pub rate: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Jobs of work that also ran on other nodes.
    pub compared_trials: u64,
    /// Those of them that count against it.
    pub compared_hits: u64,
    /// How many of the compared jobs would have counted against other nodes; `None` of none.
    pub expected: Option<f64>,
    /// The odds over those of the same work elsewhere; `None` where elsewhere none failed.
    pub odds_ratio: Option<f64>,
    /// The probability of so many by chance, adjusted for the number of nodes; `None` where the same
    /// work ran nowhere else.
    pub chance: Option<f64>,
    /// `worse` or `inconclusive`.
    pub verdict: &'static str,
}

/// Leaving out more nodes than this makes a job wait.
const EXCLUDED: usize = 8;

/// Judges the nodes of a window; `limit` of `None` tells all.
pub fn nodes(
    world: World<'_>,
    wanted: &Wanted,
    metric: Metric,
    limit: Option<usize>,
) -> Result<Nodes, AnswerError> {
    let history = scope::read(world, wanted)?;
    let workloads = workloads(&history);
    let idle = scope::idle(world.config);
    let found = reliability::reliability(&history, &workloads, metric, &idle);
    let Reliability { nodes, few, trials, hits, ambiguous, at_limits, tasks, node_failures } =
        found;
    let worse: Vec<&str> =
        nodes.iter().filter(|row| row.is_worse()).map(|row| row.node.as_str()).collect();
    let excluded: Vec<&str> = worse.iter().take(EXCLUDED).copied().collect();
    Ok(Nodes {
        schema: "jobwise/reliability/1",
        scope: Scope::of(world, &wanted.filter, &history),
        metric: match metric {
            Metric::Failure => "failure",
            Metric::Hang => "hang",
        },
        trials,
        hits,
        judged: nodes.len(),
        too_few_trials: few,
        ambiguous,
        at_limits,
        array_tasks: tasks,
        node_failures: node_failures
            .into_iter()
            .map(|(node, runs)| NodeFailures { node, runs })
            .collect(),
        false_discovery_rate: DISCOVERY,
        exclude: (!excluded.is_empty()).then(|| text::collapse(excluded.iter().copied())),
        not_excluded: worse.len() - excluded.len(),
        nodes: nodes.into_iter().take(limit.unwrap_or(usize::MAX)).map(NodeLine::from).collect(),
        notices: mask::notices(history.notices),
    })
}

impl From<NodeRow> for NodeLine {
    fn from(row: NodeRow) -> Self {
        let round = |value: f64| (value * 10_000.0).round() / 10_000.0;
        Self {
            verdict: if row.is_worse() { "worse" } else { "inconclusive" },
            node: row.node,
            trials: row.trials,
            hits: row.hits,
            rate: round(row.share.value),
            low: round(row.share.low),
            high: round(row.share.high),
            compared_trials: row.compared_trials,
            compared_hits: row.compared_hits,
            expected: row.expected.map(round),
            odds_ratio: row.odds.map(round),
            // Through the decimal form: a chance has no more digits than that.
            chance: row.chance.map(|chance| format!("{chance:.2e}").parse().unwrap_or(chance)),
        }
    }
}
