//! Nodes that are out, by reason, and nodes that work and are worse than they look.
//!
//! A node is called degraded only for facts at hand: what an operator wrote on it while it takes
//! work, resources that its siblings have and it lacks, memory that nobody holds and that is gone, a
//! load far above what was given away, a boot of its own. Each finding says what it rests on.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{Bytes, Cluster, Known, Node, NodeFlag};

use super::free::{Class, Free, Frees};

/// A group of nodes that are out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Out {
    /// Where they stand.
    pub class: Class,
    /// The words of the reason, numbers put aside; `None` where nobody gave one.
    pub reason: Option<String>,
    /// Who set it.
    pub by: Vec<String>,
    /// When it was set first.
    pub first: Known<Timestamp>,
    /// When it was set last.
    pub last: Known<Timestamp>,
    /// The nodes.
    pub nodes: Vec<String>,
    /// GPUs on them.
    pub gpus: u64,
    /// Cores on them.
    pub cpus: u64,
}

/// What is wrong with a node that takes work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Degraded {
    /// The node.
    pub node: String,
    /// A stable word: `reason`, `fewer-gpus`, `less-memory`, `fewer-cpus`, `overloaded`,
    /// `memory-gone`, `recent-boot`; of a history also `failures`.
    pub finding: &'static str,
    /// The finding in a sentence, with its figures.
    pub text: String,
    /// Whether it is worth keeping jobs away from.
    pub is_serious: bool,
}

/// Words by which operators and monitors say that a node is slow or ailing. Each is whole, or the
/// begin of a longer one where it ends in `-`.
const AILING: [&str; 36] = [
    "bit",
    "clock",
    "clocks",
    "dbe",
    "dcgm",
    "degrad-",
    "ecc",
    "fan",
    "fans",
    "fell",
    "ib",
    "infiniband",
    "link",
    "links",
    "nvidia-",
    "nvlink",
    "overheat-",
    "performance",
    "powerbrake",
    "brake",
    "pressure",
    "psu",
    "remap-",
    "retired",
    "sbe",
    "slow",
    "slower",
    "slowdown",
    "thermal-",
    "throttl-",
    "uncorrect-",
    "unhealthy",
    "xid",
    "oom",
    "dimm",
    "temperature",
];

/// Memory that nobody holds and is gone is told from this share of the node on.
const GONE_SHARE: u64 = 25;
/// Load above what was given away is told from so many CPUs on, and from half as much again.
const OVERLOAD: u64 = 400;
/// A boot is told for so long.
const RECENT: i64 = 24 * 3600;

/// The nodes that an operator has to see to, by reason; the largest group first.
pub fn out(frees: &Frees<'_>) -> Vec<Out> {
    let mut groups: BTreeMap<(Class, Option<String>), Vec<&Free<'_>>> = BTreeMap::new();
    for free in frees.nodes.iter().filter(|free| free.class.is_out()) {
        let reason = free.node.reason.as_ref().map(|reason| without_numbers(&reason.text));
        groups.entry((free.class, reason)).or_default().push(free);
    }
    let mut all: Vec<Out> =
        groups.into_iter().map(|((class, _), nodes)| group(class, &nodes)).collect();
    all.sort_by(|a, b| b.nodes.len().cmp(&a.nodes.len()).then(a.class.cmp(&b.class)));
    all
}

fn group(class: Class, nodes: &[&Free<'_>]) -> Out {
    let reasons: Vec<_> = nodes.iter().filter_map(|free| free.node.reason.as_ref()).collect();
    let mut by: Vec<String> = reasons.iter().filter_map(|reason| reason.by.clone()).collect();
    by.sort_unstable();
    by.dedup();
    let times = || reasons.iter().filter_map(|reason| reason.at.get());
    let alike = reasons.windows(2).all(|pair| pair[0].text == pair[1].text);
    Out {
        class,
        reason: reasons
            .first()
            .map(|first| if alike { first.text.clone() } else { without_numbers(&first.text) }),
        by,
        first: times().min().into(),
        last: times().max().into(),
        nodes: nodes.iter().map(|free| free.node.name.clone()).collect(),
        gpus: nodes.iter().map(|free| free.node.gpus()).sum(),
        cpus: nodes.iter().filter_map(|free| free.node.cpus.effective.get()).sum(),
    }
}

/// The words with each number put aside, so that "GPU 2" and "GPU 3" are one reason.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if shown.ends_with('#') => {}
            '0'..='9' => shown.push('#'),
            c => shown.push(c),
        }
    }
    shown
}

/// The nodes that take work and are worse than they look, in the cluster's order.
pub fn degraded(cluster: &Cluster, frees: &Frees<'_>) -> Vec<Degraded> {
    let siblings = Siblings::new(cluster);
    let works = |free: &&Arc<Free<'_>>| free.class.is_up();
    let others_are_older = most_are_older(cluster);
    let mut found = Vec::new();
    for free in frees.nodes.iter().filter(works) {
        siblings.compare(free, &mut found);
        look(cluster, others_are_older, free, &mut found);
    }
    found
}

/// What a node's own figures say.
fn look(cluster: &Cluster, others_are_older: bool, free: &Free<'_>, found: &mut Vec<Degraded>) {
    let node = free.node;
    let mut say = |finding, is_serious, text| {
        found.push(Degraded { node: node.name.clone(), finding, text, is_serious });
    };
    if let Some(reason) = &node.reason
        && is_ailing(&reason.text)
    {
        say("reason", true, format!("takes work though it is marked \"{}\"", reason.text));
    }
    // Powered down and booting nodes tell nothing of themselves.
    let is_off = node.state.has(NodeFlag::PoweredDown) || node.state.has(NodeFlag::PoweringUp);
    if is_off {
        return;
    }
    if let (Some(load), Some(given)) = (node.load.get(), node.cpus.allocated.get()) {
        let given = given.saturating_mul(100);
        let total = node.cpus.total.get().unwrap_or(0).saturating_mul(100);
        if load > given.saturating_add(OVERLOAD) && load > total.saturating_add(total / 2) {
            say(
                "overloaded",
                true,
                format!("has a load of {} for {} CPUs in use", load / 100, given / 100),
            );
        }
    }
    let memory = &node.memory;
    if let (Some(total), Some(given), Some(left)) =
        (memory.total.get(), memory.allocated.get(), memory.free.get())
        && given == Bytes(0)
        && free.class == Class::Idle
        && left.0 < total.0 / 100 * GONE_SHARE
    {
        // Caches of files count as used here, so this alone is no proof.
        say(
            "memory-gone",
            false,
            format!(
                "is idle, and its system has {left} of {total} free, of which jobs are given all: \
                 a process, or a cache, was left behind"
            ),
        );
    }
    if let Some(booted) = node.booted.get() {
        let age = cluster.taken_at.duration_since(booted).as_secs();
        if (0..RECENT).contains(&age) && others_are_older {
            say("recent-boot", false, format!("booted {} ago", super::age(age)));
        }
    }
}

/// Whether most nodes have been up for long: a boot of all at once says nothing of one.
fn most_are_older(cluster: &Cluster) -> bool {
    let ages = cluster.nodes.iter().filter_map(|node| node.booted.get());
    let ages: Vec<i64> = ages.map(|at| cluster.taken_at.duration_since(at).as_secs()).collect();
    ages.iter().filter(|age| **age > 2 * RECENT).count() * 2 > ages.len()
}

fn is_ailing(text: &str) -> bool {
    let spaced = split_camel(text);
    let mut words =
        spaced.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| {
        AILING.iter().any(|known| match known.strip_suffix('-') {
            Some(begin) => word.starts_with(begin),
            None => word == *known,
        })
    })
}

/// `HwPowerBrake` as words, in lower case.
fn split_camel(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + 8);
    let mut was_lower = false;
    for c in text.chars() {
        if c.is_ascii_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_ascii_lowercase();
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// What nodes of one make have: those of the same features, and of one name but for its number.
struct Siblings<'c>(BTreeMap<(&'c str, &'c [String]), Usual>);

/// A group smaller than this has no rule.
const LEAST_SIBLINGS: usize = 3;

/// GPUs, MiB of memory, CPUs.
type Has = [u64; 3];

/// What most of a group have, and how many of it do.
struct Usual {
    nodes: usize,
    of: [(u64, usize); 3],
}

impl<'c> Siblings<'c> {
    fn new(cluster: &'c Cluster) -> Self {
        let mut groups: BTreeMap<(&str, &[String]), Vec<Has>> = BTreeMap::new();
        for node in &cluster.nodes {
            if let Some(has) = has(node) {
                groups.entry(make(node)).or_default().push(has);
            }
        }
        groups.retain(|_, group| group.len() >= LEAST_SIBLINGS);
        Self(groups.into_iter().map(|(make, group)| (make, Usual::of(&group))).collect())
    }

    fn compare(&self, free: &Free<'_>, found: &mut Vec<Degraded>) {
        let node = free.node;
        let Some((own, usual)) = has(node).zip(self.0.get(&make(node))) else { return };
        let kinds = [("fewer-gpus", "GPUs"), ("less-memory", "MiB"), ("fewer-cpus", "CPUs")];
        for (index, (finding, unit)) in kinds.into_iter().enumerate() {
            let (value, alike) = usual.of[index];
            // A rule is what most have.
            if own[index] < value && alike * 2 > usual.nodes {
                let text = format!(
                    "has {} {unit}, {alike} of its {} siblings have {value}",
                    own[index],
                    usual.nodes - 1,
                );
                let is_serious = finding == "fewer-gpus";
                found.push(Degraded { node: node.name.clone(), finding, text, is_serious });
            }
        }
    }
}

impl Usual {
    fn of(group: &[Has]) -> Self {
        let kind = |index: usize| {
            let mut values: Vec<u64> = group.iter().map(|has| has[index]).collect();
            values.sort_unstable();
            let middle = values[values.len() / 2];
            (middle, values.iter().filter(|value| **value == middle).count())
        };
        Self { nodes: group.len(), of: [kind(0), kind(1), kind(2)] }
    }
}

fn make(node: &Node) -> (&str, &[String]) {
    (node.name.trim_end_matches(|c: char| c.is_ascii_digit()), &node.features)
}

fn has(node: &Node) -> Option<Has> {
    let memory = node.memory.total.get()?.0 / Bytes::MIB;
    Some([node.gpus(), memory, node.cpus.total.get()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ailing_nodes_are_known_and_names_are_not() {
        for text in [
            "HwPowerBrake active, clocks low",
            "ECC errors on GPU 2",
            "GPU fell off the bus (Xid 79)",
            "thermalThrottling",
            "fan 3 failed",
            "IB link down",
        ] {
            assert!(is_ailing(text), "{text}");
        }
        for text in ["Fang's reservation", "ask Eccles", "kept for the course", "libfabric test"] {
            assert!(!is_ailing(text), "{text}");
        }
    }

    #[test]
    fn numbers_do_not_tell_reasons_apart() {
        assert_eq!(
            without_numbers("ECC errors on GPU 2, ticket #4711"),
            "ECC errors on GPU #, ticket #"
        );
    }
}
