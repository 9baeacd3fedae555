//! What is different between two readings of a cluster: what came, what went, what changed.
//!
//! Nodes that changed alike are told together. What could not be read in one of the two is not
//! compared: its absence is no change.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::free::Frees;
use crate::model::{Allowed, BaseState, Cluster, Known, Node, Qos, Queue, Reading};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Of what: `node`, `partition`, `QOS`, `reservation`, `jobs`.
    pub subject: &'static str,
    /// What happened.
    pub kind: DifferenceKind,
    /// Of which ones; nothing for the cluster as a whole.
    pub names: Vec<String>,
    /// What changed, from and to; empty for what came or went.
    pub what: String,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another.
    Changed,
}

/// The differences, in one order.
pub fn differences(before: &Cluster, after: &Cluster) -> Vec<Difference> {
    let mut found = Vec::new();
    let both = |reading| !before.lacks(reading) && !after.lacks(reading);
    if both(Reading::Queues) {
        compare(
            "partition",
            &by(&before.queues, |q| &q.name),
            &by(&after.queues, |q| &q.name),
            queue,
            &mut found,
        );
    }
    if both(Reading::Nodes) {
        nodes(before, after, &mut found);
    }
    if both(Reading::Qos) {
        compare(
            "QOS",
            &by(&before.qos, |q| &q.name),
            &by(&after.qos, |q| &q.name),
            qos,
            &mut found,
        );
    }
    if both(Reading::Reservations) {
        let named = |cluster: &Cluster| -> BTreeMap<String, String> {
            let held = cluster.reservations.iter();
            held.map(|held| (held.name.clone(), held.node_list.clone())).collect()
        };
        let (old, new) = (named(before), named(after));
        let old = old.iter().map(|(name, nodes)| (name.as_str(), nodes)).collect();
        let new = new.iter().map(|(name, nodes)| (name.as_str(), nodes)).collect();
        let nodes = |old: &String, new: &String| {
            vec![changed("nodes", old, new)].into_iter().flatten().collect()
        };
        compare("reservation", &old, &new, nodes, &mut found);
    }
    if both(Reading::Jobs) {
        let count = |cluster: &Cluster, base| {
            cluster.jobs.iter().filter(|job| job.state.base == base).count()
        };
        for (base, word) in [(BaseState::Running, "running"), (BaseState::Pending, "waiting")] {
            let (old, new) = (count(before, base), count(after, base));
            if old != new {
                let what = format!("{word} {old} -> {new}");
                found.push(Difference {
                    subject: "jobs",
                    kind: DifferenceKind::Changed,
                    names: Vec::new(),
                    what,
                });
            }
        }
    }
    found
}

fn by<T>(things: &[T], name: fn(&T) -> &String) -> BTreeMap<&str, &T> {
    things.iter().map(|thing| (name(thing).as_str(), thing)).collect()
}

fn compare<T>(
    subject: &'static str,
    before: &BTreeMap<&str, &T>,
    after: &BTreeMap<&str, &T>,
    changes: impl Fn(&T, &T) -> Vec<String>,
    found: &mut Vec<Difference>,
) {
    let only = |ours: &BTreeMap<&str, &T>, theirs: &BTreeMap<&str, &T>| -> Vec<String> {
        ours.keys()
            .filter(|name| !theirs.contains_key(*name))
            .map(|name| (*name).to_owned())
            .collect()
    };
    for (kind, names) in [
        (DifferenceKind::Added, only(after, before)),
        (DifferenceKind::Removed, only(before, after)),
    ] {
        if !names.is_empty() {
            found.push(Difference { subject, kind, names, what: String::new() });
        }
    }
    // What changed alike is told once.
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, old) in before {
        let Some(new) = after.get(name) else { continue };
        for what in changes(old, new) {
            alike.entry(what).or_default().push((*name).to_owned());
        }
    }
    found.extend(alike.into_iter().map(|(what, names)| Difference {
        subject,
        kind: DifferenceKind::Changed,
        names,
        what,
    }));
}

fn changed(field: &str, old: &impl ToString, new: &impl ToString) -> Option<String> {
    let (old, new) = (old.to_string(), new.to_string());
    let told = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    (old != new).then(|| format!("{field} {} -> {}", told(&old), told(&new)))
}

fn nodes(before: &Cluster, after: &Cluster, found: &mut Vec<Difference>) {
    let standing = |cluster| -> BTreeMap<String, (String, String)> {
        let frees = Frees::new(cluster);
        let entry = |free: &Arc<super::free::Free<'_>>| {
            (free.node.name.clone(), (free.class.word().to_owned(), hardware(free.node)))
        };
        frees.nodes.iter().map(entry).collect()
    };
    let (old, new) = (standing(before), standing(after));
    let old = old.iter().map(|(name, node)| (name.as_str(), node)).collect();
    let new = new.iter().map(|(name, node)| (name.as_str(), node)).collect();
    let changes = |old: &(String, String), new: &(String, String)| {
        [changed("state", &old.0, &new.0), changed("hardware", &old.1, &new.1)]
            .into_iter()
            .flatten()
            .collect()
    };
    compare("node", &old, &new, changes, found);
}

fn hardware(node: &Node) -> String {
    let gres = node.gres.iter().map(|gres| {
        let kind = gres.model.as_ref().map_or(String::new(), |model| format!("{model}:"));
        format!(", {}:{kind}{}", gres.name, gres.total)
    });
    let rest: String = gres.collect();
    format!("{} CPUs, {}{rest}", node.cpus.effective, node.memory.total)
}

fn queue(old: &Queue, new: &Queue) -> Vec<String> {
    let allowed = |allowed: &Allowed| match allowed {
        Allowed::Everybody => "everybody".to_owned(),
        Allowed::Only(names) => names.join(","),
        Allowed::Nobody => "nobody".to_owned(),
    };
    let state = |queue: &Queue| format!("{:?}", queue.state).to_lowercase();
    [
        changed("state", &state(old), &state(new)),
        changed("time limit", &old.max_time, &new.max_time),
        changed("most nodes", &old.max_nodes, &new.max_nodes),
        changed("accounts", &allowed(&old.accounts), &allowed(&new.accounts)),
        changed("QOS", &allowed(&old.qos), &allowed(&new.qos)),
        changed("groups", &allowed(&old.groups), &allowed(&new.groups)),
        changed("nodes", &old.node_count, &new.node_count),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn qos(old: &Qos, new: &Qos) -> Vec<String> {
    let list = |tres: &crate::model::Tres| {
        let words: Vec<String> =
            tres.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        words.join(",")
    };
    let unset = |known: &Known<u64>| known.to_string();
    [
        changed("time limit", &old.job.wall, &new.job.wall),
        changed("limit per job", &list(&old.job.tres), &list(&new.job.tres)),
        changed("limit per user", &list(&old.user.tres), &list(&new.user.tres)),
        changed("jobs per user", &unset(&old.user.jobs), &unset(&new.user.jobs)),
        changed("limit of all", &list(&old.group.tres), &list(&new.group.tres)),
        changed("priority", &unset(&old.priority), &unset(&new.priority)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fit::tests::{cluster, gpu_node};
    use super::*;
    use crate::model::{NodeState, QueueState, ReadFailure};

    #[test]
    fn what_came_went_and_changed_is_told_together_where_it_is_alike() {
        let node = |name: &str, state: &str| {
            let mut node = gpu_node(name, 8, "a100", 2, 0, 0);
            node.state = NodeState::parse(state).into();
            node.gpus_allocated = Known::Value(0);
            node
        };
        let before = cluster(vec![node("n1", "IDLE"), node("n2", "IDLE"), node("n3", "IDLE")]);
        let mut after = cluster(vec![node("n1", "DOWN"), node("n2", "DOWN"), node("n4", "IDLE")]);
        after.queues[0].state = QueueState::Down;
        let told: Vec<(DifferenceKind, String, String)> = differences(&before, &after)
            .into_iter()
            .map(|found| (found.kind, found.names.join(" "), found.what))
            .collect();
        let line = |kind, names: &str, what: &str| (kind, names.to_owned(), what.to_owned());
        assert_eq!(
            told,
            [
                line(DifferenceKind::Changed, "gpu", "state unknown -> down"),
                line(DifferenceKind::Added, "n4", ""),
                line(DifferenceKind::Removed, "n3", ""),
                line(DifferenceKind::Changed, "n1 n2", "state idle -> down"),
            ]
        );
        assert!(differences(&before, &before).is_empty());
        // What could not be read is not gone.
        let mut blind = cluster(Vec::new());
        blind.queues.clear();
        blind.failures = [Reading::Nodes, Reading::Queues]
            .map(|reading| ReadFailure { reading, message: String::new() })
            .to_vec();
        assert!(differences(&before, &blind).is_empty());
    }
}
