//! Which nodes are out, and which work and are worse than they look?

use jiff::Timestamp;
use serde::Serialize;

use super::past::Wanted;
use super::reliability::{self, NodeLine};
use super::{AnswerError, World};
use crate::capacity::free::{Frees, Sums};
use crate::capacity::health::{self, Degraded, Out};
use crate::history::reliability::Metric;
use crate::model::Notice;
use crate::text;

/// The health of the nodes.
#[derive(Debug, Serialize)]
pub struct Health {
    /// `jobwise/health/1`.
    pub schema: &'static str,
    /// When it was read.
    pub taken_at: Timestamp,
    /// All nodes: the classes add up.
    pub nodes: Sums,
    /// Nodes that an operator has to see to, by reason.
    pub out: Vec<Out>,
    /// Nodes that work and are worse than they look.
    pub degraded: Vec<Degraded>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Looks at the health of every node; with a history also at how jobs fared there. Where that cannot
/// be read the rest is told all the same.
pub fn health(world: World<'_>, history: Option<&Wanted>) -> Result<Health, AnswerError> {
    let (cluster, mut notices) = world.cluster()?;
    let frees = Frees::new(&cluster);
    let mut out = health::out(&frees);
    for group in &mut out {
        group.reason = group.reason.as_deref().map(text::masked);
    }
    let mut degraded = health::degraded(&cluster, &frees);
    if let Some(wanted) = history {
        match reliability::nodes(world, wanted, Metric::Failure, None) {
            Ok(found) => {
                degraded.extend(found.nodes.iter().filter(|line| is_worse(line)).map(failing));
                notices.extend(found.notices);
            }
            Err(error) => {
                let text = format!("how jobs fared on the nodes could not be read: {error}");
                notices.push(Notice::warning("no-history", text));
            }
        }
    }
    for finding in &mut degraded {
        finding.text = text::masked(&finding.text);
    }
    Ok(Health {
        schema: "jobwise/health/1",
        taken_at: cluster.taken_at,
        nodes: Sums::of(&frees.nodes),
        out,
        degraded,
        notices,
    })
}

fn is_worse(line: &NodeLine) -> bool {
    line.verdict == "worse"
}

/// A node on which more jobs failed than the same work explains: of the jobs that can be compared.
fn failing(line: &NodeLine) -> Degraded {
    let text = format!(
        "{} of {} failed here, where the same work elsewhere explains {:.1} (jobwise reliability)",
        line.compared_hits,
        text::count(line.compared_trials, "job"),
        line.expected.unwrap_or_default(),
    );
    Degraded { node: line.node.clone(), finding: "failures", text, is_serious: true }
}
