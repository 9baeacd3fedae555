//! Which limit holds a pending job back, in numbers: what it asks for beside what the rules allow.
//!
//! Asked for only where the reason speaks of a limit, and once for all jobs of one owner: the
//! partitions, the QOS, the owner's associations and what is used of accounts, four queries. What
//! others hold of a limit is not asked for; where the rules cannot be read, nothing is said.

use super::surroundings::Surroundings;
use crate::capacity::free::Frees;
use crate::capacity::gates::{Gate, Gates, Kind};
use crate::model::{Job, Outcome, Shape, Verdict};

/// Families whose reasons are limits with a number.
const LIMITS: [&str; 3] = ["pend_qos_limit", "pend_partition_limit", "allocation_exhausted"];

/// What stands in the way of a job, what only a change lifts first.
pub(super) fn held(verdict: &Verdict, job: &Job, surroundings: &impl Surroundings) -> Vec<Gate> {
    /// More would be a list and no answer.
    const MOST: usize = 3;
    let cause = verdict.causes.first().filter(|_| verdict.outcome == Outcome::Pending);
    if !cause.is_some_and(|cause| LIMITS.contains(&cause.family.0.as_str())) {
        return Vec::new();
    }
    let Some(rules) = surroundings.rules(job) else { return Vec::new() };
    let frees = Frees::new(&rules);
    let gates = Gates::new(&rules, &frees);
    let shape = Shape::of_job(job);
    // One that may run in several waits for the first that takes it.
    let names = job.partition.as_deref().unwrap_or_default().split(',');
    let queues = names.filter_map(|name| rules.queue(name));
    let each = queues.map(|queue| {
        let found = gates.access(queue, Some(&shape)).gates;
        found.into_iter().filter(is_a_limit).collect::<Vec<Gate>>()
    });
    let mut least = each.min_by_key(|gates| gates.iter().filter(|gate| !gate.clears).count());
    let found = least.as_mut().map(std::mem::take).unwrap_or_default();
    let (clears, mut stays): (Vec<Gate>, Vec<Gate>) =
        found.into_iter().partition(|gate| gate.clears);
    stays.extend(clears);
    stays.truncate(MOST);
    stays
}

/// Whether it is a limit that this job meets, and not who it is or what could not be looked at.
fn is_a_limit(gate: &Gate) -> bool {
    const CODES: [&str; 5] = ["MAX_", "MIN_", "GRP_", "QUEUE_MAX_", "QUEUE_MIN_"];
    matches!(gate.kind, Kind::Fatal | Kind::Shape | Kind::Wait)
        && CODES.iter().any(|code| gate.code.starts_with(code))
}
