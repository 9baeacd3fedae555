//! When licences are given back.
//!
//! They belong to no node: running jobs hold them until the end of their time limits, those that wait
//! take theirs first, the highest priority first, and reservations keep some back. Of licences that
//! the controller does not count itself nothing is told, and nobody waits for them here.

use jiff::Timestamp;

use super::after;
use crate::model::{BaseState, Cluster, QueuedJob, Shape, Span};

/// Licences that somebody has for a while.
struct Held<'c> {
    from: Timestamp,
    until: Timestamp,
    counts: &'c [(String, u64)],
}

/// Licences by name, and how many of each reservations keep from others.
pub fn kept(cluster: &Cluster, name: &str, named: Option<&str>) -> u64 {
    let reservations = cluster.reservations.iter();
    reservations
        .filter(|held| held.is_active && named != Some(held.name.as_str()))
        .flat_map(|held| &held.licences)
        .filter(|(held, _)| held == name)
        .map(|(_, count)| count)
        .sum()
}

/// The first moment at which a shape has its licences for all its length; `None` where nobody knows.
pub fn free_at(cluster: &Cluster, shape: &Shape, length: Option<Span>) -> Option<Timestamp> {
    let now = cluster.taken_at;
    if shape.licences.is_empty() {
        return Some(now);
    }
    let holders = cluster.jobs.iter().filter(|job| !job.licences.is_empty());
    let (running, mut waiting): (Vec<&QueuedJob>, Vec<_>) =
        holders.partition(|job| job.state.base == BaseState::Running);
    // Who waits for something else, such as another job, may wait for ever.
    waiting.retain(|job| {
        let reason = job.reason.as_deref().unwrap_or("None");
        job.state.base == BaseState::Pending
            && matches!(reason, "Licenses" | "Resources" | "Priority" | "None")
    });
    waiting.sort_by_key(|job| (std::cmp::Reverse(job.priority.get()), job.id.clone()));
    let mut held: Vec<Held<'_>> = running
        .into_iter()
        .map(|job| {
            let until = job.end.get().map_or(Timestamp::MAX, |end| end.max(now));
            Held { from: now, until, counts: &job.licences }
        })
        .collect();
    let named = shape.reservation.as_deref();
    for job in waiting {
        let length = job.limit.get();
        if let Some(from) = first(cluster, &held, (&job.licences, named), length) {
            held.push(Held { from, until: after(from, length), counts: &job.licences });
        }
    }
    first(cluster, &held, (&shape.licences, named), length)
}

/// The first moment at which so many are free for so long.
fn first(
    cluster: &Cluster,
    held: &[Held<'_>],
    (wanted, named): (&[(String, u64)], Option<&str>),
    length: Option<Span>,
) -> Option<Timestamp> {
    let now = cluster.taken_at;
    let of = |counts: &[(String, u64)], name: &str| -> u64 {
        counts.iter().filter(|(known, _)| known == name).map(|(_, count)| count).sum()
    };
    let is_free = |name: &str, count: u64, from: Timestamp| {
        let Some(licence) = cluster.licences.iter().find(|licence| licence.name == name) else {
            return true;
        };
        let until = after(from, length);
        let used_at = |moment: Timestamp| -> u64 {
            let there = held.iter().filter(|held| held.from <= moment && held.until > moment);
            there.map(|held| of(held.counts, name)).sum()
        };
        let starts = held.iter().map(|held| held.from).filter(|at| *at > from && *at < until);
        let most = starts.chain([from]).map(used_at).max().unwrap_or(0);
        count.saturating_add(most).saturating_add(kept(cluster, name, named)) <= licence.total
    };
    let mut moments: Vec<Timestamp> = held.iter().map(|held| held.until).chain([now]).collect();
    moments.sort_unstable();
    let moments = moments.into_iter().filter(|at| *at < Timestamp::MAX);
    moments.into_iter().find(|at| wanted.iter().all(|(name, count)| is_free(name, *count, *at)))
}
