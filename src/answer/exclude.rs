//! Which nodes should a job keep away from?

use serde::Serialize;

use super::cluster::known_queue;
use super::{AnswerError, World};
use crate::capacity::free::Frees;
use crate::capacity::health;
use crate::model::Notice;
use crate::text;

/// Slurm refuses an option that is longer than some thousand characters.
const LONG: usize = 4096;

/// Nodes to exclude.
#[derive(Debug, Serialize)]
pub struct Exclude {
    /// `jobwise/exclude/1`.
    pub schema: &'static str,
    /// How many.
    pub count: usize,
    /// As `--exclude` takes them.
    pub nodelist: String,
    /// One by one.
    pub nodes: Vec<String>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Which nodes; each that is set adds to the list.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Nodes with GPUs.
    pub gpu_nodes: bool,
    /// Nodes that take no work.
    pub unschedulable: bool,
    /// Nodes that work and are worse than they look.
    pub degraded: bool,
    /// Only nodes of these queues.
    pub queues: Vec<String>,
}

/// Lists nodes to exclude.
pub fn exclude(world: World<'_>, wanted: &Wanted) -> Result<Exclude, AnswerError> {
    let (cluster, mut notices) = world.cluster()?;
    wanted.queues.iter().try_for_each(|name| known_queue(&cluster, name).map(|_| ()))?;
    let frees = Frees::new(&cluster);
    let ailing: Vec<String> = if wanted.degraded {
        let serious = health::degraded(&cluster, &frees).into_iter();
        serious.filter(|finding| finding.is_serious).map(|finding| finding.node).collect()
    } else {
        Vec::new()
    };
    let nodes: Vec<String> = frees
        .nodes
        .iter()
        .filter(|free| {
            let node = free.node;
            let here = wanted.queues.is_empty()
                || node.partitions.iter().any(|name| wanted.queues.contains(name));
            here && ((wanted.gpu_nodes
                && !node.gres.is_empty()
                && node.gpu_models().next().is_some())
                || (wanted.unschedulable && !free.class.is_up())
                || (wanted.degraded && ailing.contains(&node.name)))
        })
        .map(|free| free.node.name.clone())
        .collect();
    let nodelist = text::collapse(nodes.iter().map(String::as_str));
    if nodes.is_empty() {
        notices.push(Notice::info("no-nodes", "no node matches, so there is nothing to exclude"));
    }
    if nodelist.len() > LONG {
        notices.push(Notice::warning(
            "long-list",
            format!("the list has {} characters; sbatch may refuse it", nodelist.len()),
        ));
    }
    Ok(Exclude { schema: "jobwise/exclude/1", count: nodes.len(), nodelist, nodes, notices })
}
