//! When a job of a shape would start in a queue: the cluster played forward, see [`super::super::start`].
//!
//! Refuses to guess: a node of which nobody knows when it is back counts for nothing, and where the
//! jobs could not be read there is no estimate at all.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};

use super::super::fit::{Demand, Hardware};
use super::super::free::{Class, Free};
use super::super::start::waiting::{self, Hosts};
use super::super::start::{Closed, Timeline};
use super::{AT_ONCE, Look, length};
use crate::model::{Queue, Reading, Shape};

/// A node that is off is up after so many seconds, where the site does not say how long it gives
/// them (the default of `ResumeTimeout`).
const BOOT: i64 = 60;
/// A job that is being cleaned up is killed after so many seconds, where the site does not say (the
/// default of `KillWait`).
const KILLED: i64 = 30;

impl<'c> Look<'c> {
    /// When a shape would fit in a queue, played forward; `None` where it never does, or where the
    /// end of what is in the way is not known.
    pub fn estimate(&self, queue: &'c Queue, shape: &Shape) -> Option<Timestamp> {
        if self.cluster.lacks(Reading::Jobs) {
            return None;
        }
        let demand = Demand::new(shape, self.cluster, queue);
        let comes = self.comes(queue, &demand, shape);
        let hosts = self.hosts_of(&comes);
        self.timeline().earliest(&demand, &hosts, self.cluster.taken_at, length(queue, shape))
    }

    /// The running jobs, and those that wait before a new one.
    fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| {
            let mut timeline = Timeline::new(self.cluster);
            let plain = Shape::default();
            timeline.seat(self.cluster, |queue, demand| {
                let comes = self.comes(queue, demand, &plain).into_iter();
                // Which of them are closed to those users is not known: nothing is taken for closed.
                comes.map(|(place, _)| (place, &self.hosts[place], &[][..])).collect()
            });
            timeline
        })
    }

    /// The nodes of a queue that can have a job, with the times in which they cannot.
    fn comes(
        &self,
        queue: &Queue,
        demand: &Demand<'_>,
        shape: &Shape,
    ) -> Vec<(usize, Cow<'_, [Closed]>)> {
        self.gates
            .nodes(queue)
            .iter()
            .filter(|free| demand.hardware(&self.hosts[free.place]) == Hardware::Right)
            .filter_map(|free| Some((free.place, self.closed_times(free, shape)?)))
            .collect()
    }

    fn hosts_of<'h>(&'h self, comes: &'h [(usize, Cow<'_, [Closed]>)]) -> Hosts<'h> {
        comes.iter().map(|(place, closed)| (*place, &self.hosts[*place], &**closed)).collect()
    }

    /// When a job would start after those that wait, where that is not now.
    pub(super) fn after_others(&self, queue: &'c Queue, shape: &Shape) -> Option<Timestamp> {
        if waiting::in_front(self.cluster).is_empty() {
            return None;
        }
        let mut places = self.gates.nodes(queue).iter().map(|free| free.place);
        if !self.timeline().is_claimed(&mut places) {
            return None;
        }
        let at = self.estimate(queue, shape)?;
        (at.duration_since(self.cluster.taken_at) > AT_ONCE).then_some(at)
    }

    /// A setting that is printed as `60 sec`.
    fn seconds(&self, name: &str, default: i64) -> SignedDuration {
        let set = self.cluster.controller.setting(name);
        let seconds = set.and_then(|text| text.split(' ').next()?.parse().ok());
        SignedDuration::from_secs(seconds.unwrap_or(default))
    }

    /// When a node takes nothing from the caller; `None` where nobody knows when that ends.
    fn closed_times(&self, free: &Free<'_>, shape: &Shape) -> Option<Cow<'_, [Closed]>> {
        let now = self.cluster.taken_at;
        let closed = self.closed[free.place].as_slice();
        let wait = match free.class {
            Class::Idle | Class::Room | Class::Full | Class::MemoryExhausted | Class::Stranded => {
                return Some(Cow::Borrowed(closed));
            }
            Class::PoweredDown | Class::PoweringUp | Class::PoweringDown | Class::Rebooting => {
                self.seconds("ResumeTimeout", BOOT)
            }
            Class::Completing => self.seconds("KillWait", KILLED),
            Class::ReservedForCaller => {
                let is_named =
                    shape.reservation.as_deref().is_some_and(|name| free.reservation == Some(name));
                return is_named.then_some(Cow::Borrowed(closed));
            }
            Class::Reserved | Class::Maintenance => {
                let is_told = closed.iter().any(|time| time.from <= now && time.until > now);
                return is_told.then_some(Cow::Borrowed(closed));
            }
            _ => return None,
        };
        let until = now.checked_add(wait).ok()?;
        let mut times = closed.to_vec();
        times.push(Closed { from: now, until });
        Some(Cow::Owned(times))
    }
}
