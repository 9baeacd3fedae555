//! When a job of a shape would start in a queue: the cluster played forward, see [`super::super::start`].
//!
//! Refuses to guess: a node of which nobody knows when it is back counts for nothing, and where the
//! jobs could not be read there is no estimate at all.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};

use super::super::fit::{Demand, Hardware, Host};
use super::super::free::{Class, Free};
use super::super::start::waiting::{self, Hosts};
use super::super::start::{Closed, Timeline, licences};
use super::inside::Inside;
use super::{AT_ONCE, Look, length};
use crate::model::{BaseState, Queue, QueuedJob, Reading, Shape};

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
        let inside = self.inside(shape);
        let comes = self.comes(queue, &demand, shape, inside.as_ref());
        let hosts: Hosts<'_> = comes
            .iter()
            .map(|(place, closed)| (*place, self.host(*place, inside.as_ref()), &**closed))
            .collect();
        let (now, length) = (self.cluster.taken_at, length(queue, shape));
        let not_before = licences::free_at(self.cluster, shape, length)?;
        let moments = (now, not_before);
        match inside.as_ref().filter(|inside| inside.held.is_part_of_nodes()) {
            // Of its cores only its own jobs give some back.
            Some(inside) => {
                let timeline = self.play(|job| inside.owns(job), Some(inside));
                timeline.earliest(&demand, &hosts, moments, length)
            }
            None => self.timeline().earliest(&demand, &hosts, moments, length),
        }
    }

    /// The running jobs, and those that wait before a new one.
    fn timeline(&self) -> &Timeline {
        // What waits for a reservation of some cores takes nothing of the rest.
        let is_apart = |job: &QueuedJob| {
            let parts = self.cluster.reservations.iter().filter(|held| held.is_part_of_nodes());
            job.state.base == BaseState::Pending
                && parts.into_iter().any(|held| job.reservation.value() == Some(&held.name))
        };
        self.timeline.get_or_init(|| self.play(|job| !is_apart(job), None))
    }

    /// The jobs that count, those that run and those that wait.
    fn play(&self, counts: impl Fn(&QueuedJob) -> bool, inside: Option<&Inside<'c>>) -> Timeline {
        let mut timeline = Timeline::new(self.cluster, &counts);
        let shape = Shape {
            reservation: inside.map(|inside| inside.held.name.clone()),
            ..Shape::default()
        };
        timeline.seat(self.cluster, &counts, |queue, demand| {
            let comes = self.comes(queue, demand, &shape, inside).into_iter();
            // Which of them are closed to those users is not known: nothing is taken for closed.
            comes.map(|(place, _)| (place, self.host(place, inside), &[][..])).collect()
        });
        timeline
    }

    /// A node, or what a reservation has of it.
    pub(super) fn host<'h>(&'h self, place: usize, inside: Option<&'h Inside<'c>>) -> &'h Host<'c> {
        inside.and_then(|inside| inside.part(place)).unwrap_or(&self.hosts[place])
    }

    /// The nodes of a queue that can have a job, with the times in which they cannot.
    fn comes(
        &self,
        queue: &Queue,
        demand: &Demand<'_>,
        shape: &Shape,
        inside: Option<&Inside<'c>>,
    ) -> Vec<(usize, Cow<'_, [Closed]>)> {
        self.gates
            .nodes(queue)
            .iter()
            .filter(|free| inside.is_none_or(|inside| inside.can_have(free)))
            .filter(|free| demand.hardware(self.host(free.place, inside)) == Hardware::Right)
            .filter_map(|free| Some((free.place, self.closed_times(free, shape)?)))
            .collect()
    }

    /// When a job would start after those that wait, where that is not now.
    pub(super) fn after_others(&self, queue: &'c Queue, shape: &Shape) -> Option<Timestamp> {
        if waiting::in_front(self.cluster, |_| true).is_empty() {
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
