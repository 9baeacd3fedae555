//! Which nodes are there, and what can be had of each?

use jiff::Timestamp;
use serde::Serialize;

use super::cluster::{NodeFilter, NodeRow};
use super::{AnswerError, World};
use crate::capacity::free::{Frees, Sums};
use crate::model::Notice;

/// Nodes with what can be had of them.
#[derive(Debug, Serialize)]
pub struct Nodes {
    /// `jobwise/nodes/1`.
    pub schema: &'static str,
    /// When they were read.
    pub taken_at: Timestamp,
    /// How many matched.
    pub total: usize,
    /// All nodes of the cluster: the classes add up.
    pub cluster: Sums,
    /// The nodes that matched, added up.
    pub matching: Sums,
    /// The nodes, at most as many as were asked for.
    pub nodes: Vec<NodeRow>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Lists nodes.
pub fn nodes(world: World<'_>, filter: &NodeFilter) -> Result<Nodes, AnswerError> {
    let (cluster, notices) = world.cluster()?;
    filter.check(&cluster)?;
    let frees = Frees::new(&cluster);
    let (nodes, total) = filter.rows(&cluster, &frees);
    Ok(Nodes {
        schema: "jobwise/nodes/1",
        taken_at: cluster.taken_at,
        total,
        cluster: Sums::of(&frees.nodes),
        matching: filter.sums(&cluster, &frees),
        nodes,
        notices,
    })
}
