//! How much more of a resource the caller's limits leave, whatever is free.
//!
//! What is free of a queue and what its caller can have of that are two numbers: who holds all that
//! one user may have gets none of the idle rest. Limits count what can be seen of running jobs;
//! where a site hides others' jobs the result is the most that may be left, never too little.

use std::collections::BTreeMap;

use serde::Serialize;

use super::usage::{self, Scope};
use super::{Gate, Gates, Kind, Way};
use crate::capacity::free::Free;
use crate::model::{Caps, Qos, Queue};

/// What a limit leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// How much more the caller may have.
    pub amount: u64,
    /// Whose rule that is.
    pub source: String,
}

/// A limit on what jobs have at once: of a rule, its name, and whose jobs count.
type Rule = (fn(&Qos) -> &Caps, &'static str, bool, bool);

/// By user, by account, of everybody.
const RULES: [Rule; 3] = [
    (|qos| &qos.user, "MaxTRESPerUser", true, false),
    (|qos| &qos.account, "MaxTRESPerAccount", false, true),
    (|qos| &qos.group, "GrpTRES", false, false),
];

impl<'c> Gates<'c> {
    /// What the narrowest limit of a way into a queue leaves of a resource, by any of its names;
    /// `None` where nothing limits it. The gates are those in that way without a shape.
    pub fn left(&self, queue: &Queue, way: &Way, gates: &[Gate], names: &[&str]) -> Option<Left> {
        if !self.enforces("limits") {
            return None;
        }
        // Who may run no further job gets nothing more.
        let full = gates.iter().find(|gate| gate.kind == Kind::Shape && gate.clears);
        if let Some(gate) = full {
            return Some(Left { amount: 0, source: gate.source.clone() });
        }
        let mut found: Vec<Left> = Vec::new();
        let mut limited = |limit: u64, used: u64, source: String| {
            found.push(Left { amount: limit.saturating_sub(used), source });
        };
        let rules: Vec<&'c Qos> = self.rules(queue, way);
        for name in names {
            for (caps, rule, is_mine, by_account) in RULES {
                // The first that sets a limit decides.
                let first = rules.iter().find_map(|qos| {
                    let mut entries = usage::entries(&caps(qos).tres);
                    let (_, limit, _) = entries.find(|(known, ..)| known == name)?;
                    Some((limit?, *qos))
                });
                let Some((limit, qos)) = first else { continue };
                let account = way.account.clone().filter(|_| by_account);
                let scope = Scope { qos: Some(&qos.name), account, is_mine };
                let used = self.usage.of(&scope).tres.get(*name).copied().unwrap_or(0);
                limited(limit, used, format!("QOS {} {rule}", qos.name));
            }
            let Some(account) = way.account.as_deref() else { continue };
            let mut levels = self.above(account);
            levels.push(account);
            let places = self.cluster.account_use.iter().filter(|place| {
                let here = place.partition.as_deref().is_none_or(|part| part == queue.name);
                let is_own = place.user.is_none() || place.account.eq_ignore_ascii_case(account);
                let counts = levels.iter().any(|level| place.account.eq_ignore_ascii_case(level));
                here && is_own && counts
            });
            for place in places {
                let mut entries = usage::entries(&place.limits.tres);
                let limit = entries.find(|(known, ..)| known == name);
                let Some(limit) = limit.and_then(|(_, limit, _)| limit) else { continue };
                let used = place.used.tres.get(name);
                let used = used.and_then(|value| usage::amount(name, value)).unwrap_or(0);
                limited(limit, used, format!("account {} GrpTRES", place.account));
            }
        }
        found.into_iter().min_by_key(|left| left.amount)
    }
}

/// How much of what is free on these nodes the caller can have: on a node through the queues that
/// are open, each with what its limit leaves. Queues that share a limit share what it leaves.
pub fn within<'f, 'c: 'f>(
    nodes: impl IntoIterator<Item = (&'f Free<'c>, u64)>,
    open: &BTreeMap<&str, Option<Left>>,
) -> u64 {
    let mut pools: BTreeMap<&str, u64> = BTreeMap::new();
    let mut narrow: Vec<(Vec<&str>, u64)> = Vec::new();
    let mut sum = 0;
    for (free, amount) in nodes {
        let ways: Vec<&Option<Left>> =
            free.node.partitions.iter().filter_map(|name| open.get(name.as_str())).collect();
        if ways.iter().any(|left| left.is_none()) {
            sum += amount;
            continue;
        }
        let mut sources = Vec::new();
        for left in ways.into_iter().flatten() {
            pools.insert(&left.source, left.amount);
            sources.push(left.source.as_str());
        }
        sources.sort_unstable();
        sources.dedup();
        narrow.push((sources, amount));
    }
    // What can be had in one way only takes from it first.
    narrow.sort_by_key(|(sources, _)| sources.len());
    for (sources, mut amount) in narrow {
        for source in sources {
            if let Some(left) = pools.get_mut(source) {
                let taken = amount.min(*left);
                *left -= taken;
                amount -= taken;
                sum += taken;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::super::fit::tests::{cluster, gpu_node};
    use super::super::super::free::Frees;
    use super::*;

    /// Two nodes with four GPUs each: one in queue `a`, one in `a` and `b`.
    #[test]
    fn queues_under_one_limit_share_what_it_leaves() {
        let node = |name: &str, queues: &[&str]| {
            let mut node = gpu_node(name, 8, "a100", 4, 0, 0);
            node.partitions = queues.iter().map(|&name| name.to_owned()).collect();
            node
        };
        let cluster = cluster(vec![node("g1", &["a"]), node("g2", &["a", "b"])]);
        let frees = Frees::new(&cluster);
        let left = |amount, source: &str| Some(Left { amount, source: source.to_owned() });
        let had = |open: Vec<(&str, Option<Left>)>| {
            let open: BTreeMap<&str, Option<Left>> = open.into_iter().collect();
            within(frees.nodes.iter().map(|free| (&**free, 4)), &open)
        };
        assert_eq!(had(vec![("a", left(3, "q")), ("b", left(3, "q"))]), 3);
        // Three of g1 under q, two of g2 under r.
        assert_eq!(had(vec![("a", left(3, "q")), ("b", left(2, "r"))]), 5);
        assert_eq!(had(vec![("a", left(3, "q")), ("b", None)]), 7);
        assert_eq!(had(vec![("b", left(9, "r"))]), 4, "g1 is in no open queue");
    }
}
