//! Which queues are there, where does each stand for me, and why?

use jiff::Timestamp;
use serde::Serialize;

use super::access::{Access, AccessSummary, confirm};
use super::cluster::{QueueRow, known_queue, queue_rows, sort_rows};
use super::{AnswerError, World};
use crate::capacity::free::Frees;
use crate::capacity::gates::Gates;
use crate::model::Notice;
use crate::sched::SchedError;

/// Queues with what is in the way.
#[derive(Debug, Serialize)]
pub struct Queues {
    /// `jobwise/queues/1`.
    pub schema: &'static str,
    /// When they were read.
    pub taken_at: Timestamp,
    /// How many there are in all.
    pub total: usize,
    /// How many of those that were asked for are hidden, and left out therefore.
    #[serde(skip)]
    pub hidden: usize,
    /// The queues.
    pub queues: Vec<QueueRow>,
    /// What was asked of the scheduler; `None` where only the rules count.
    pub access: Option<AccessSummary>,
    /// Whether the text tells each at length.
    #[serde(skip)]
    pub detail: bool,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Which queues to list.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that people type")]
pub struct Wanted {
    /// These, at length.
    pub names: Vec<String>,
    /// Only those that start nothing of the caller.
    pub unusable_only: bool,
    /// At length.
    pub detail: bool,
    /// Hidden ones, too.
    pub all: bool,
    /// Whether the scheduler is left alone.
    pub declared: bool,
}

/// Lists queues.
pub fn queues(world: World<'_>, wanted: &Wanted) -> Result<Queues, AnswerError> {
    let backend = world.capacity();
    let source = backend.nodes.as_ref().ok_or(SchedError::NoScheduler)?;
    let (cluster, notices) = super::cluster::read(source)?;
    wanted.names.iter().try_for_each(|name| known_queue(&cluster, name).map(|_| ()))?;
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let mut rows = queue_rows(&cluster, &gates);
    if !wanted.names.is_empty() {
        rows.retain(|row| wanted.names.contains(&row.name));
    }
    let asks = !wanted.declared;
    let access = asks.then(|| confirm(world, &backend, &cluster, &gates, &mut rows));
    sort_rows(&mut rows);
    let total = cluster.queues.len();
    rows.retain(|row| !(wanted.unusable_only && row.is_usable()));
    let matching = rows.len();
    // Those that were named are all that is left.
    rows.retain(|row| wanted.all || !wanted.names.is_empty() || !row.is_hidden);
    Ok(Queues {
        schema: "jobwise/queues/1",
        taken_at: cluster.taken_at,
        total,
        hidden: matching - rows.len(),
        queues: rows,
        access: access.map(Access::summary),
        detail: wanted.detail || !wanted.names.is_empty(),
        notices,
    })
}
