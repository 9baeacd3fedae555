//! The accelerators of a cluster: how many of which, what can be had, and what they can do.
//!
//! A device that is not identified stands under the scheduler's own word for it and counts for no
//! ability: it may have it or not. Slices of a GPU are devices of their own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::free::{Free, Frees};
use super::gates::{Access, Gates, Left, Term, within};
use crate::hardware::{Catalogue, Device, Memory, Watts};
use crate::model::{Ability, Cluster, GresKind, Queue};

/// Devices that are alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stock {
    /// The model, or the scheduler's word for it.
    pub name: String,
    /// The scheduler's words for it.
    pub labels: BTreeSet<String>,
    /// Whether the model is known.
    pub identified: bool,
    /// Whether these are slices.
    pub slices: bool,
    /// Who makes it.
    pub vendor: Option<String>,
    /// Its generation.
    pub architecture: Option<String>,
    /// What compilers call it.
    pub target: Option<String>,
    /// The memory of each.
    pub memory: Option<Memory>,
    /// Board power.
    pub watts: Option<Watts>,
    /// Nodes that have it.
    pub nodes: u64,
    /// How many there are.
    pub installed: u64,
    /// How many can be had now, by whoever is let in.
    pub free: u64,
    /// Those of them that the caller can have: in queues open by their rules, within limits.
    pub yours: u64,
    /// How many nobody has and nobody can get, for want of cores or memory beside them.
    pub stranded: u64,
    /// Devices of which it is not known whether they are in use.
    pub unknown: u64,
    /// What it can do; what is not known is left out.
    pub abilities: BTreeMap<Ability, bool>,
    /// Queues that have it and are open to the caller, by their rules.
    pub open_in: BTreeSet<String>,
    /// Other queues that have it.
    pub closed_in: BTreeSet<String>,
}

/// How far an ability reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Reach {
    /// Devices that have it.
    pub installed: u64,
    /// Those of them that can be had now.
    pub free: u64,
    /// Devices of which nobody knows.
    pub unknown: u64,
}

/// Every kind of accelerator, the most numerous first.
pub fn stocks(
    cluster: &Cluster,
    frees: &Frees<'_>,
    gates: &Gates<'_>,
    catalogue: &Catalogue,
    queues: &[String],
) -> Vec<Stock> {
    // What the site hides is told to those who name it.
    let told = |queue: &&Queue| !queue.is_hidden || queues.contains(&queue.name);
    let access: BTreeMap<&str, (&Queue, Access, bool)> = cluster
        .queues
        .iter()
        .filter(told)
        .map(|queue| {
            let access = gates.access(queue, None);
            let is_open = matches!(Term::of(&access), Term::Open | Term::Unchecked);
            (queue.name.as_str(), (queue, access, is_open))
        })
        .collect();
    let mut rooms: BTreeMap<String, Vec<(&Free<'_>, u64)>> = BTreeMap::new();
    let mut known: HashMap<(Option<&str>, &[String]), Device<'_>> = HashMap::new();
    let mut stocks: BTreeMap<String, Stock> = BTreeMap::new();
    for free in &frees.nodes {
        let node = free.node;
        if !queues.is_empty() && !node.partitions.iter().any(|name| queues.contains(name)) {
            continue;
        }
        let mut counted = BTreeSet::new();
        let mut stranded = free.gpus_stranded;
        for (gres, left) in node.gres.iter().zip(&free.gres) {
            if !matches!(gres.kind, GresKind::Gpu | GresKind::MigSlice) {
                continue;
            }
            let kind = gres.model.as_deref();
            let device = known.entry((kind, &*node.features)).or_insert_with(|| {
                let features: Vec<&str> = node.features.iter().map(String::as_str).collect();
                catalogue.identify(kind, &features)
            });
            let name = device.name();
            let stock = stocks.entry(name.clone()).or_insert_with(|| new(name.clone(), device));
            stock.installed += gres.total;
            match left.get() {
                Some(left) => {
                    stock.free += left.min(gres.total);
                    rooms.entry(name.clone()).or_default().push((&**free, left.min(gres.total)));
                }
                None => stock.unknown += gres.total,
            }
            // Which of several types is stranded is not told; the first that has as many.
            let here = stranded.min(gres.total);
            stock.stranded += here;
            stranded -= here;
            if !device.label.is_empty() {
                stock.labels.insert(device.label.clone());
            }
            stock.memory = match (stock.memory, device.memory) {
                (Some(a), Some(b)) => {
                    Some(Memory { least: a.least.min(b.least), most: a.most.max(b.most) })
                }
                (a, b) => a.or(b),
            };
            if counted.insert(name) {
                stock.nodes += 1;
            }
            for queue in node.partitions.iter() {
                let Some((.., is_open)) = access.get(queue.as_str()) else { continue };
                let names = if *is_open { &mut stock.open_in } else { &mut stock.closed_in };
                if !names.contains(queue) {
                    names.insert(queue.clone());
                }
            }
        }
    }
    for (name, stock) in &mut stocks {
        let typed: Vec<String> =
            stock.labels.iter().map(|label| format!("gres/gpu:{label}")).collect();
        let names: Vec<&str> =
            std::iter::once("gres/gpu").chain(typed.iter().map(String::as_str)).collect();
        let open: BTreeMap<&str, Option<Left>> = stock
            .open_in
            .iter()
            .filter_map(|name| access.get_key_value(name.as_str()))
            .map(|(name, (queue, access, _))| {
                (*name, gates.left(queue, &access.way, &access.gates, &names))
            })
            .collect();
        stock.yours = within(rooms.remove(name).unwrap_or_default(), &open);
    }
    let mut stocks: Vec<Stock> = stocks.into_values().collect();
    stocks.sort_by(|a, b| b.installed.cmp(&a.installed).then_with(|| a.name.cmp(&b.name)));
    stocks
}

fn new(name: String, device: &Device<'_>) -> Stock {
    let model = device.model;
    let abilities = Ability::all().filter_map(|ability| Some((ability, device.can(ability)?)));
    Stock {
        name,
        labels: BTreeSet::new(),
        identified: model.is_some(),
        slices: device.slice.is_some(),
        vendor: model.map(|model| model.vendor.clone()),
        architecture: model.map(|model| model.architecture.clone()),
        target: model.map(|model| model.target.clone()),
        memory: None,
        watts: model.and_then(|model| model.watts.clone()).filter(|_| device.slice.is_none()),
        nodes: 0,
        installed: 0,
        free: 0,
        yours: 0,
        stranded: 0,
        unknown: 0,
        abilities: abilities.collect(),
        open_in: BTreeSet::new(),
        closed_in: BTreeSet::new(),
    }
}

/// How far each ability reaches.
pub fn reach(stocks: &[Stock]) -> BTreeMap<Ability, Reach> {
    let reach = |ability| {
        stocks.iter().fold(Reach::default(), |mut sum, stock| {
            match stock.abilities.get(&ability) {
                Some(true) => {
                    sum.installed += stock.installed;
                    sum.free += stock.free;
                }
                Some(false) => {}
                None => sum.unknown += stock.installed,
            }
            sum
        })
    };
    Ability::all().map(|ability| (ability, reach(ability))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fit::tests::{cluster, gpu_node};
    use super::*;
    use crate::model::{Known, NodeState};

    #[test]
    fn kinds_are_counted_apart_and_what_is_not_identified_counts_for_no_ability() {
        let node = |name: &str, kind: &str, gpus, cpus, used| {
            let mut node = gpu_node(name, 8, kind, gpus, cpus, used);
            node.state = NodeState::parse(if cpus == 0 { "IDLE" } else { "MIXED" }).into();
            node.gpus_allocated = Known::Value(used);
            node.partitions = ["gpu".to_owned()].into();
            node
        };
        let cluster = cluster(vec![
            node("g1", "a100", 4, 4, 1),
            node("g2", "weirdgpu9000", 2, 0, 0),
            // No core is left for the two that nobody has.
            node("g3", "nvidia_a100_80gb", 4, 8, 2),
            node("g4", "a100_1g.10gb", 7, 0, 0),
        ]);
        let catalogue = Catalogue::built_in().expect("sound");
        let frees = Frees::new(&cluster);
        let gates = Gates::new(&cluster, &frees);
        let stocks = stocks(&cluster, &frees, &gates, &catalogue, &[]);
        let seen: Vec<(&str, u64, u64, u64)> = stocks
            .iter()
            .map(|stock| (stock.name.as_str(), stock.installed, stock.free, stock.stranded))
            .collect();
        assert_eq!(seen, [("A100", 8, 3, 2), ("A100 1g.10gb", 7, 7, 0), ("weirdgpu9000", 2, 2, 0)]);
        let gib = |memory: Option<Memory>| memory.map(|m| (m.least.0 >> 30, m.most.0 >> 30));
        assert_eq!(gib(stocks[0].memory), Some((40, 80)));
        let bf16 = reach(&stocks)[&Ability::Bf16];
        assert_eq!((bf16.installed, bf16.free, bf16.unknown), (15, 10, 2));
        assert!(
            super::stocks(&cluster, &frees, &gates, &catalogue, &["cpu".to_owned()]).is_empty()
        );
    }
}
