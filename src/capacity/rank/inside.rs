//! The nodes of the reservation that a job names, and what is left of it there.
//!
//! A reservation of some cores is a small cluster of its own: on each of its nodes it has so many
//! CPUs, of which its own jobs hold some. Memory and devices are not reserved, so those of the node
//! count. Which of the running jobs are its own the queue tells; where it does not, nothing is told
//! to be left.

use std::collections::{BTreeMap, BTreeSet};

use super::super::fit::Host;
use super::super::free::Free;
use super::super::start::{MOST_HOSTS, share};
use super::Look;
use crate::model::{BaseState, Known, QueuedJob, Reservation, Shape};
use crate::text;

/// A reservation as something to put jobs in.
pub(super) struct Inside<'c> {
    pub(super) held: &'c Reservation,
    nodes: BTreeSet<String>,
    /// By the place of a node: what the reservation has of it; nothing where that is not told.
    parts: BTreeMap<usize, Host<'c>>,
}

impl<'c> Inside<'c> {
    /// Whether a node is one of its nodes.
    pub(super) fn has(&self, node: &str) -> bool {
        self.nodes.contains(node)
    }

    /// What it has of a node, where it holds only a part of its nodes and tells which.
    pub(super) fn part(&self, place: usize) -> Option<&Host<'c>> {
        self.parts.get(&place)
    }

    /// Whether a job in it can have something of a node: where it holds a part, it must be told which.
    pub(super) fn can_have(&self, free: &Free<'_>) -> bool {
        self.has(&free.node.name)
            && (!self.held.is_part_of_nodes() || self.parts.contains_key(&free.place))
    }

    /// Whether a job is, or will be, one of its own.
    pub(super) fn owns(&self, job: &QueuedJob) -> bool {
        job.reservation.value() == Some(&self.held.name)
    }
}

impl<'c> Look<'c> {
    /// The reservation that a shape names, where there is one of that name.
    pub(super) fn inside(&self, shape: &Shape) -> Option<Inside<'c>> {
        let name = shape.reservation.as_deref()?;
        let held = self.cluster.reservations.iter().find(|held| held.name == name)?;
        let nodes = text::expand(&held.node_list, MOST_HOSTS).unwrap_or_default();
        let nodes: BTreeSet<String> = nodes.into_iter().collect();
        let mut inside = Inside { held, nodes, parts: BTreeMap::new() };
        for (place, host) in self.hosts.iter().enumerate() {
            let part = held.parts.iter().find(|(node, _)| *node == host.node.name);
            let Some((_, cpus)) = part else { continue };
            if let Some(used) = self.used_inside(&inside, &host.node.name) {
                inside.parts.insert(place, host.with_cpus(*cpus, cpus.saturating_sub(used)));
            }
        }
        Some(inside)
    }

    /// The CPUs of a node that jobs of a reservation hold; `None` where it is not told whose are.
    fn used_inside(&self, inside: &Inside<'_>, node: &str) -> Option<u64> {
        let mut used: u64 = 0;
        for job in self.cluster.jobs.iter().filter(|job| job.state.base == BaseState::Running) {
            let list = job.node_list.as_deref().unwrap_or_default();
            let nodes = text::expand(list, MOST_HOSTS).unwrap_or_default();
            if !nodes.iter().any(|known| known == node) {
                continue;
            }
            if job.reservation == Known::NotGathered {
                return None;
            }
            if inside.owns(job) {
                used += share(job, nodes.len() as u64).cpus;
            }
        }
        Some(used)
    }
}
