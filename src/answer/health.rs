//! Which nodes are out, and which work and are worse than they look?

use jiff::Timestamp;
use serde::Serialize;

use super::{AnswerError, World};
use crate::capacity::free::{Frees, Sums};
use crate::capacity::health::{self, Degraded, Out};
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

/// Looks at the health of every node.
pub fn health(world: World<'_>) -> Result<Health, AnswerError> {
    let (cluster, notices) = world.cluster()?;
    let frees = Frees::new(&cluster);
    let mut out = health::out(&frees);
    for group in &mut out {
        group.reason = group.reason.as_deref().map(text::masked);
    }
    let mut degraded = health::degraded(&cluster, &frees);
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
