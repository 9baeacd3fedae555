//! What can be had of the cluster now, and where is it open to me?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::access::{Access, AccessSummary, confirm};
use super::cluster::{QueueRow, queue_rows, sort_rows};
use super::{AnswerError, World};
use crate::capacity::free::{Free, Frees, Sums};
use crate::capacity::gates::{Gates, Left, Term, within};
use crate::model::{Bytes, Cluster, Identity, Notice, Reading};
use crate::sched::SchedError;

/// The cluster at a glance.
#[derive(Debug, Serialize)]
pub struct Status {
    /// `jobwise/status/1`.
    pub schema: &'static str,
    /// The scheduler.
    pub backend: &'static str,
    /// The cluster's name.
    pub cluster: Option<String>,
    /// When it was read.
    pub taken_at: Timestamp,
    /// Who asks.
    pub identity: Identity,
    /// The accounts that may be charged; `None` where they could not be read.
    pub accounts: Option<Vec<String>>,
    /// All nodes: the classes add up.
    pub nodes: Sums,
    /// The nodes of queues that are not closed to the caller; of what is free there, what limits
    /// leave.
    pub yours: Sums,
    /// Whether limits leave less than is free there.
    pub limited: bool,
    /// How many queues stand where, hidden ones among them: the terms add up.
    pub terms: BTreeMap<Term, u64>,
    /// How many of them are hidden and not told one by one.
    pub hidden: usize,
    /// The queues, the usable and roomiest first.
    pub queues: Vec<QueueRow>,
    /// What was asked of the scheduler; `None` where only the rules count.
    pub access: Option<AccessSummary>,
    /// How many queues the text shows.
    #[serde(skip)]
    pub shown: usize,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Looks at the cluster; the text shows at most so many queues, and with `None` the hidden ones, too.
///
/// Unless only what is `declared` counts, the scheduler is asked about queues that are open.
pub fn status(
    world: World<'_>,
    shown: Option<usize>,
    declared: bool,
) -> Result<Status, AnswerError> {
    let backend = world.capacity();
    let source = backend.nodes.as_ref().ok_or(SchedError::NoScheduler)?;
    let (cluster, mut notices) = super::cluster::read(source)?;
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let (hidden, mut queues): (Vec<QueueRow>, Vec<QueueRow>) =
        queue_rows(&cluster, &gates).into_iter().partition(|row| row.is_hidden && shown.is_some());
    let access = (!declared).then(|| confirm(world, &backend, &cluster, &gates, &mut queues));
    sort_rows(&mut queues);
    let mut terms: BTreeMap<Term, u64> = BTreeMap::new();
    for row in queues.iter().chain(&hidden) {
        *terms.entry(row.term).or_default() += 1;
    }
    let open: BTreeSet<&str> =
        queues.iter().filter(|row| row.is_usable()).map(|row| row.name.as_str()).collect();
    let mine = frees
        .nodes
        .iter()
        .filter(|free| free.node.partitions.iter().any(|name| open.contains(name.as_str())));
    let all = Sums::of(mine.clone());
    let mut yours = all.clone();
    let nodes: Vec<&Free<'_>> = mine.map(Arc::as_ref).collect();
    limit(&mut yours, &cluster, &gates, &queues, &nodes);
    if !frees.unclear_reservations.is_empty() {
        notices.push(Notice::warning(
            "reservation-unclear",
            format!(
                "the nodes of the reservation {} cannot be told; they may be counted as free",
                crate::text::join(&frees.unclear_reservations, "and"),
            ),
        ));
    }
    let accounts = cluster.accounts().into_iter().map(str::to_owned).collect();
    Ok(Status {
        schema: "jobwise/status/1",
        backend: cluster.backend,
        cluster: cluster.name.clone(),
        taken_at: cluster.taken_at,
        identity: cluster.identity.clone(),
        accounts: (!cluster.lacks(Reading::Associations)).then_some(accounts),
        nodes: Sums::of(&frees.nodes),
        limited: yours != all,
        yours,
        terms,
        hidden: hidden.len(),
        shown: shown.unwrap_or(queues.len()),
        queues,
        access: access.map(Access::summary),
        notices,
    })
}

/// Takes away what is free and what limits do not leave the caller.
fn limit(
    sums: &mut Sums,
    cluster: &Cluster,
    gates: &Gates<'_>,
    queues: &[QueueRow],
    nodes: &[&Free<'_>],
) {
    let had = |resource: &str, amount: fn(&Free<'_>) -> u64| {
        let open: BTreeMap<&str, Option<Left>> = queues
            .iter()
            .filter(|row| row.is_usable())
            .filter_map(|row| Some((row, cluster.queue(&row.name)?)))
            .map(|(row, queue)| {
                (row.name.as_str(), gates.left(queue, &row.way, &row.gates, &[resource]))
            })
            .collect();
        let giving = nodes.iter().filter(|free| free.class.gives_now());
        within(giving.map(|free| (*free, amount(free))), &open)
    };
    sums.cpus_free = had("cpu", |free| free.cpus.get().unwrap_or(0));
    sums.gpus_free = had("gres/gpu", |free| free.gpus.get().unwrap_or(0));
    sums.memory_free = Bytes(had("mem", |free| free.memory.get().unwrap_or_default().0));
}
