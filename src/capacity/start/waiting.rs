//! What the jobs that wait will take before a new one gets its turn.
//!
//! They are placed one after the other, the highest priority first, each at the earliest moment at
//! which it fits, and not before the scheduler expects it to start where it tells that; a new job may
//! go in before one of them only where it delays none, as the scheduler's backfill lets it. Only those
//! count that wait for nothing but resources or their turn: when a dependency ends, a limit is lifted
//! or a hold is released, nobody can tell.

use std::collections::HashMap;

use super::{Claim, Closed, Timeline, after, share};
use crate::capacity::fit::{Demand, Host};
use crate::model::{BaseState, Cluster, Devices, Per, Queue, QueuedJob, Room, Shape};

/// Waiting jobs times nodes that are weighed at most: more would take longer than people wait.
const MOST_WEIGHED: usize = 400_000;

/// The nodes of a queue that a job of it can have at all, with when each is closed.
pub type Hosts<'h> = Vec<(usize, &'h Host<'h>, &'h [Closed])>;

/// How Slurm words the turn of a job where some node of the queue is down; that of one which can have
/// only such nodes reads the same, so it counts where a start is named.
const SOME_ARE_DOWN: &str = "Nodes required for job are DOWN";

/// Whether it waits for nothing but resources or its turn.
fn is_next(job: &QueuedJob) -> bool {
    let reason = job.reason.as_deref().unwrap_or("None");
    job.state.base == BaseState::Pending
        && (matches!(reason, "Resources" | "Priority" | "None")
            || job.start.is_value() && reason.starts_with(SOME_ARE_DOWN))
}

/// The jobs that are in front of a new one, the first of them first; of them only those that count.
pub fn in_front(cluster: &Cluster, counts: impl Fn(&QueuedJob) -> bool) -> Vec<&QueuedJob> {
    let next = cluster.jobs.iter().filter(|job| is_next(job) && counts(job));
    let mut jobs: Vec<&QueuedJob> = next.collect();
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.priority.get()), job.id.clone()));
    // The scheduler tells in this order, queue by queue, when it expects them. One that it passed over
    // waits for what will not come soon, such as a node that is kept for others; the last are too new
    // to be told.
    let mut told: HashMap<Option<&str>, usize> = HashMap::new();
    for (place, job) in jobs.iter().enumerate().filter(|(_, job)| job.start.is_value()) {
        told.insert(job.partition.as_deref(), place);
    }
    let is_passed = |(place, job): (usize, &&QueuedJob)| {
        let last = told.get(&job.partition.as_deref());
        !job.start.is_value() && last.is_some_and(|last| place < *last)
    };
    let passed: Vec<bool> = jobs.iter().enumerate().map(is_passed).collect();
    let mut passed = passed.into_iter();
    jobs.retain(|_| passed.next() == Some(false));
    jobs
}

impl Timeline {
    /// Puts the waiting jobs in their places; `hosts` tells the nodes of a queue. Those that fit
    /// nowhere, or are too many to be weighed, are left out.
    pub fn seat<'h>(
        &mut self,
        cluster: &Cluster,
        counts: impl Fn(&QueuedJob) -> bool,
        hosts: impl Fn(&Queue, &Demand<'_>) -> Hosts<'h>,
    ) {
        let mut weighed = 0;
        for job in in_front(cluster, counts) {
            let names = job.partition.as_deref().unwrap_or_default();
            let Some(queue) = names.split(',').find_map(|name| cluster.queue(name)) else {
                continue;
            };
            let shape = shape(job);
            let demand = Demand::new(&shape, cluster, queue);
            let hosts = hosts(queue, &demand);
            weighed += hosts.len().max(1);
            if weighed > MOST_WEIGHED {
                break;
            }
            let length = shape.time_in(queue).get();
            let now = cluster.taken_at;
            let expected = job.start.get().unwrap_or(now).max(now);
            let Some((from, chosen)) = self.place(&demand, &hosts, (now, expected), length) else {
                continue;
            };
            let until = after(from, length);
            let share = share(job, chosen.len() as u64);
            for place in chosen {
                let claim = Claim { from, until, share: share.clone() };
                self.claims.entry(place).or_default().push(claim);
            }
        }
    }
}

/// What a waiting job asks for, as the queue tells it.
fn shape(job: &QueuedJob) -> Shape {
    let nodes = job.nodes.get().unwrap_or(1).max(1);
    let devices = job.tres.devices().into_iter().map(|(name, kind, count)| Devices {
        name: name.to_owned(),
        kind: kind.map(str::to_owned),
        count: count.div_ceil(nodes),
        per: Per::Node,
    });
    let memory = job.tres.memory().map(|bytes| crate::model::Bytes(bytes.0 / nodes));
    Shape {
        nodes: Some((nodes, None)),
        tasks: job.tres.count("cpu").or(job.cpus.get()),
        memory: memory.map(|bytes| Room { bytes, per: Per::Node }),
        devices: devices.collect(),
        time: job.limit.clone(),
        nodelist: job.wanted_nodes.clone(),
        exclusive: job.sharing.as_deref() == Some("NO"),
        ..Shape::default()
    }
}
