//! What can be had of a node now, and why not more.
//!
//! Every node is in exactly one [`Class`], so that the counts of a cluster add up. Only nodes that
//! take work now give anything; what others have is counted beside it (GPUs that are stranded, cores
//! that come soon), never as free. Facts: `man sinfo`, `man slurm.conf`.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{
    Bytes, Cluster, GresKind, Known, Node, NodeBase, NodeFlag, Queue, QueueState, Reading, Sharing,
};

use super::reserved::{self, Reserved};

/// Where a node stands. The order is that of usefulness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// All of it can be had.
    Idle,
    /// A part of it can be had.
    Room,
    /// All of it is given away.
    Full,
    /// Cores are left, but no memory for them.
    MemoryExhausted,
    /// GPUs are left, but no core for them.
    Stranded,
    /// Kept for a job of higher priority; only jobs that end before that fit in.
    Planned,
    /// A job is being cleaned up: soon.
    Completing,
    /// Boots: soon.
    PoweringUp,
    /// Powered down: boots when a job needs it.
    PoweredDown,
    /// On its way into powered down.
    PoweringDown,
    /// Kept for the caller, who must name the reservation.
    ReservedForCaller,
    /// Kept for others, or for whom is not known.
    Reserved,
    /// Kept free by a job that needs its whole block, or its counters.
    Blocked,
    /// In a maintenance window.
    Maintenance,
    /// Booting by order, or about to.
    Rebooting,
    /// Takes no new work.
    Drained,
    /// Failing, or registered with less than it should have.
    Failing,
    /// Does not answer.
    Unreachable,
    /// Down.
    Down,
    /// Its state is not known, or is a word that this version does not know.
    Unknown,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 20] = [
        Self::Idle,
        Self::Room,
        Self::Full,
        Self::MemoryExhausted,
        Self::Stranded,
        Self::Planned,
        Self::Completing,
        Self::PoweringUp,
        Self::PoweredDown,
        Self::PoweringDown,
        Self::ReservedForCaller,
        Self::Reserved,
        Self::Blocked,
        Self::Maintenance,
        Self::Rebooting,
        Self::Drained,
        Self::Failing,
        Self::Unreachable,
        Self::Down,
        Self::Unknown,
    ];

    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Room => "room left",
            Self::Full => "full",
            Self::MemoryExhausted => "memory exhausted",
            Self::Stranded => "GPUs stranded",
            Self::Planned => "planned",
            Self::Completing => "completing",
            Self::PoweringUp => "powering up",
            Self::PoweredDown => "boots on demand",
            Self::PoweringDown => "powering down",
            Self::ReservedForCaller => "reserved for you",
            Self::Reserved => "reserved",
            Self::Blocked => "blocked",
            Self::Maintenance => "maintenance",
            Self::Rebooting => "rebooting",
            Self::Drained => "drained",
            Self::Failing => "failing",
            Self::Unreachable => "unreachable",
            Self::Down => "down",
            Self::Unknown => "state unknown",
        }
    }

    /// Whether work runs, or could, with nobody having to repair anything.
    pub fn is_up(self) -> bool {
        self <= Self::PoweredDown || matches!(self, Self::ReservedForCaller | Self::Reserved)
    }

    /// Whether a job can start there now.
    pub fn gives_now(self) -> bool {
        matches!(self, Self::Idle | Self::Room)
    }

    /// Whether an operator has to do something before it works again.
    pub fn is_out(self) -> bool {
        self >= Self::Maintenance
    }
}

/// What can be had of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Free<'c> {
    /// The node.
    pub node: &'c Node,
    /// Its place in the cluster's list of nodes.
    pub place: usize,
    /// Where it stands.
    pub class: Class,
    /// Cores that can be had now; not known where the node does not tell.
    pub cpus: Known<u64>,
    /// Memory that can be had now.
    pub memory: Known<Bytes>,
    /// GPUs that can be had now.
    pub gpus: Known<u64>,
    /// Each kind of generic resource that can be had now, as in [`Node::gres`].
    pub gres: Vec<Known<u64>>,
    /// GPUs that nobody has and nobody can get, as no core or no memory is left for them.
    pub gpus_stranded: u64,
    /// Jobs must end before: something is reserved from then on.
    pub until: Option<(Timestamp, &'c str)>,
    /// The reservation in force that the class speaks of.
    pub reservation: Option<&'c str>,
}

/// What can be had of every node of a cluster, in the cluster's order.
#[derive(Debug)]
pub struct Frees<'c> {
    /// One entry for each node.
    pub nodes: Vec<Arc<Free<'c>>>,
    by_name: OnceCell<HashMap<&'c str, usize>>,
    /// Names of reservations whose nodes could not be told.
    pub unclear_reservations: Vec<&'c str>,
}

impl<'c> Frees<'c> {
    /// Judges every node of a cluster.
    pub fn new(cluster: &'c Cluster) -> Self {
        let reserved = Reserved::new(cluster);
        let rules = Rules::new(cluster);
        let nodes = cluster.nodes.iter().enumerate();
        let nodes = nodes.map(|(place, node)| Arc::new(rules.free(place, node, &reserved)));
        let nodes: Vec<Arc<Free<'_>>> = nodes.collect();
        let unclear = reserved.unclear.iter().map(|reservation| reservation.name.as_str());
        let unclear_reservations = unclear.collect();
        Self { nodes, by_name: OnceCell::new(), unclear_reservations }
    }

    /// A node by its name.
    pub fn named(&self, name: &str) -> Option<&Free<'c>> {
        let by_name = self.by_name.get_or_init(|| {
            self.nodes.iter().map(|free| (free.node.name.as_str(), free.place)).collect()
        });
        by_name.get(name).and_then(|place| self.nodes.get(*place)).map(|free| &**free)
    }

    /// The nodes of each queue, as one of its jobs could have them.
    pub fn by_queue(&self, cluster: &'c Cluster) -> BTreeMap<&'c str, Vec<Arc<Free<'c>>>> {
        let mut found: Vec<Vec<Arc<Free<'_>>>> = vec![Vec::new(); cluster.queues.len()];
        // Most nodes have their list in common with many others.
        let mut places: HashMap<*const [String], Vec<usize>> = HashMap::new();
        for free in &self.nodes {
            let names = &free.node.partitions;
            let places = places.entry(Arc::as_ptr(names)).or_insert_with(|| {
                let place =
                    |name: &String| cluster.queues.iter().position(|queue| queue.name == *name);
                names.iter().filter_map(place).collect()
            });
            for place in places {
                found[*place].push(free.in_queue(&cluster.queues[*place]));
            }
        }
        cluster.queues.iter().map(|queue| queue.name.as_str()).zip(found).collect()
    }
}

impl Free<'_> {
    /// What a job of a queue can have: where nodes are given whole, a part of one is nothing.
    #[must_use]
    pub fn in_queue(self: &Arc<Self>, queue: &Queue) -> Arc<Self> {
        let mut free = Arc::clone(self);
        if queue.sharing == Sharing::Exclusive && free.class == Class::Room {
            let free = Arc::make_mut(&mut free);
            free.class = Class::Full;
            free.give_nothing();
        }
        if let (Some(cap), Some(cpus)) = (queue.max_cpus_per_node.get(), free.cpus.get())
            && cpus > cap
        {
            Arc::make_mut(&mut free).cpus = Known::Value(cap);
        }
        free
    }

    /// Whether nothing of it is given away and all of it can be had.
    pub fn is_whole(&self) -> bool {
        self.class == Class::Idle
    }

    fn give_nothing(&mut self) {
        self.cpus = Known::Value(0);
        self.gpus = Known::Value(0);
        self.memory = Known::Value(Bytes(0));
        self.gres.fill(Known::Value(0));
    }
}

/// How this cluster gives out what it has.
struct Rules<'c> {
    cluster: &'c Cluster,
    accounts: Vec<&'c str>,
    /// Below this no core can be had, where memory is given out at all.
    memory_floor: Option<Bytes>,
    /// Whether each queue that starts jobs gives nodes whole; nothing where none does.
    whole_only: BTreeMap<&'c str, bool>,
}

impl<'c> Rules<'c> {
    fn new(cluster: &'c Cluster) -> Self {
        let controller = &cluster.controller;
        // Not to know whether memory is given out is to fear that it is.
        let gives_out = controller.gives_out_memory != Known::Value(false);
        let default = controller.default_memory_per_cpu.get().unwrap_or(Bytes(0));
        let queues = cluster.queues.iter();
        let live = queues.filter(|queue| matches!(queue.state, QueueState::Up | QueueState::Drain));
        let mut whole_only: BTreeMap<&str, bool> =
            live.map(|queue| (queue.name.as_str(), queue.sharing == Sharing::Exclusive)).collect();
        // Mostly no queue does, and no node has to be looked at for it.
        if !whole_only.values().any(|is_whole| *is_whole) {
            whole_only.clear();
        }
        Self {
            cluster,
            accounts: cluster.accounts(),
            memory_floor: gives_out.then_some(default.max(Bytes(Bytes::MIB))),
            whole_only,
        }
    }

    fn free(&self, place: usize, node: &'c Node, reserved: &Reserved<'c>) -> Free<'c> {
        let (class, reservation) = self.standing(node, reserved);
        let mut free = Free {
            node,
            place,
            class: class.unwrap_or(Class::Full),
            cpus: self.free_cpus(node, reserved),
            memory: free_memory(node),
            gpus: free_gpus(node),
            gres: node.gres.iter().map(free_of).collect(),
            gpus_stranded: 0,
            until: reserved.next_on(&node.name).map(|(at, by)| (at, by.name.as_str())),
            reservation,
        };
        match class {
            None => self.weigh(&mut free),
            Some(_) => free.give_nothing(),
        }
        free
    }

    /// The class that the state decides; `None` where it is what is left that decides.
    fn standing(&self, node: &Node, reserved: &Reserved<'c>) -> (Option<Class>, Option<&'c str>) {
        let state = &node.state;
        let has = |flag| state.has(flag);
        let class = if !state.unknown.is_empty() || state.base == NodeBase::Other {
            Class::Unknown
        } else if matches!(state.base, NodeBase::Down | NodeBase::Error | NodeBase::Future) {
            Class::Down
        } else if has(NodeFlag::Fail) || has(NodeFlag::InvalidRegistration) {
            Class::Failing
        } else if has(NodeFlag::Drain) {
            Class::Drained
        } else if has(NodeFlag::PoweringDown) || has(NodeFlag::PowerDownPending) {
            Class::PoweringDown
        } else if has(NodeFlag::PoweringUp) {
            Class::PoweringUp
        } else if has(NodeFlag::RebootIssued) || has(NodeFlag::RebootRequested) {
            Class::Rebooting
        } else if has(NodeFlag::Maintenance) {
            Class::Maintenance
        } else if has(NodeFlag::PoweredDown) {
            Class::PoweredDown
        } else if has(NodeFlag::NotResponding) {
            Class::Unreachable
        } else if has(NodeFlag::Blocked) || has(NodeFlag::PerformanceCounters) {
            Class::Blocked
        } else {
            return self.scheduled(node, reserved);
        };
        (Some(class), None)
    }

    /// The class of a node that is up, by what the scheduler has in mind for it.
    fn scheduled(&self, node: &Node, reserved: &Reserved<'c>) -> (Option<Class>, Option<&'c str>) {
        let state = &node.state;
        let mut whole =
            reserved.now_on(&node.name).filter(|held| !held.is_part_of_nodes()).peekable();
        if whole.peek().is_some() {
            // In several at once, the one that lets the caller in.
            let held: Vec<_> = whole.collect();
            let mine = |held: &&&crate::model::Reservation| {
                reserved::lets_in(held, &self.cluster.identity, &self.accounts)
            };
            return match held.iter().find(mine) {
                // Jobs of those whom it is for run in it without naming it.
                Some(held) if held.has("MAGNETIC") => (None, Some(&held.name)),
                Some(held) => (Some(Class::ReservedForCaller), Some(&held.name)),
                None if held.iter().any(|held| held.is_maintenance()) => {
                    (Some(Class::Maintenance), Some(&held[0].name))
                }
                None => (Some(Class::Reserved), Some(&held[0].name)),
            };
        }
        let is_partly = reserved.now_on(&node.name).next().is_some();
        let class = if state.has(NodeFlag::Reserved) && !is_partly {
            // In a reservation that is not known: whose it is, is neither.
            Class::Reserved
        } else if state.has(NodeFlag::Completing) {
            Class::Completing
        } else if state.has(NodeFlag::Planned) {
            Class::Planned
        } else if state.base == NodeBase::Unknown {
            Class::Unknown
        } else {
            return (None, None);
        };
        (Some(class), None)
    }

    /// The class of a node that takes work, by what is left of it.
    fn weigh(&self, free: &mut Free<'_>) {
        let node = free.node;
        let gpus_left = free.gpus.get().unwrap_or(0);
        let is_exhausted = self
            .memory_floor
            .is_some_and(|floor| free.memory.get().is_some_and(|left| left < floor));
        let no_core = free.cpus == Known::Value(0);
        if no_core || is_exhausted {
            free.class = match (is_exhausted && !no_core, gpus_left) {
                (true, _) => Class::MemoryExhausted,
                (false, 0) => Class::Full,
                (false, _) => Class::Stranded,
            };
            free.gpus_stranded = gpus_left;
            // How much memory is left stays told: a job that asks for less than the default may fit.
            let memory = free.memory.clone();
            free.give_nothing();
            if !no_core {
                free.memory = memory;
            }
            return;
        }
        let untouched = node.cpus.allocated == Known::Value(0)
            && matches!(node.gpus_allocated, Known::Value(0))
            && node.state.base == NodeBase::Idle;
        free.class = if untouched { Class::Idle } else { Class::Room };
        let mut modes =
            node.partitions.iter().filter_map(|name| self.whole_only.get(name.as_str()));
        let any = modes.clone().next().is_some();
        if free.class == Class::Room && any && modes.all(|is_whole| *is_whole) {
            free.class = Class::Full;
            free.give_nothing();
        }
    }

    /// Cores that nobody has and no reservation keeps.
    fn free_cpus(&self, node: &Node, reserved: &Reserved<'_>) -> Known<u64> {
        let kept: u64 = reserved
            .now_on(&node.name)
            .filter(|held| held.is_part_of_nodes())
            .filter(|held| {
                let mine = reserved::lets_in(held, &self.cluster.identity, &self.accounts);
                !(mine && held.has("MAGNETIC"))
            })
            .filter_map(|held| Some(held.cores.get()?.div_ceil(held.node_count.get()?.max(1))))
            .sum();
        let (all, given) = (node.cpus.effective.get(), node.cpus.allocated.get());
        // Reserved cores may be among those given away; which, is not told.
        all.zip(given).map(|(all, given)| all.saturating_sub(given.saturating_add(kept))).into()
    }
}

/// Memory that nobody has.
fn free_memory(node: &Node) -> Known<Bytes> {
    let memory = &node.memory;
    let apart = memory.set_apart.get().unwrap_or(Bytes(0)).0;
    let left = memory.total.get().zip(memory.allocated.get());
    left.map(|(all, given)| Bytes(all.0.saturating_sub(given.0.saturating_add(apart)))).into()
}

fn free_of(gres: &crate::model::Gres) -> Known<u64> {
    gres.used.clone().map(|used| gres.total.saturating_sub(used))
}

fn free_gpus(node: &Node) -> Known<u64> {
    node.gpus_allocated.clone().map(|used| node.gpus().saturating_sub(used))
}

/// Sums over nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Sums {
    /// Nodes.
    pub nodes: u64,
    /// Nodes of which all can be had.
    pub nodes_idle: u64,
    /// Nodes of which something can be had.
    pub nodes_with_room: u64,
    /// Nodes that work, or could with nobody repairing anything.
    pub nodes_up: u64,
    /// Cores that jobs may have at all.
    pub cpus: u64,
    /// Cores that can be had now.
    pub cpus_free: u64,
    /// Memory that jobs may have at all.
    pub memory: Bytes,
    /// Memory that can be had now.
    pub memory_free: Bytes,
    /// GPUs.
    pub gpus: u64,
    /// GPUs that can be had now.
    pub gpus_free: u64,
    /// GPUs that nobody has and nobody can get.
    pub gpus_stranded: u64,
    /// Slices of GPUs that can be had now.
    pub slices_free: u64,
    /// Nodes that do not tell what is free of them, though they take work.
    pub nodes_untold: u64,
    /// How many nodes stand in each class; they add up to `nodes`.
    pub classes: BTreeMap<Class, u64>,
}

impl Sums {
    /// Adds up nodes.
    pub fn of<'f, 'c: 'f>(nodes: impl IntoIterator<Item = &'f Arc<Free<'c>>>) -> Self {
        let mut sums = Self::default();
        for free in nodes {
            sums.add(free);
        }
        sums
    }

    fn add(&mut self, free: &Free<'_>) {
        let node = free.node;
        let gives = free.class.gives_now();
        self.nodes += 1;
        *self.classes.entry(free.class).or_default() += 1;
        self.nodes_idle += u64::from(free.is_whole());
        self.nodes_with_room += u64::from(gives);
        self.nodes_up += u64::from(free.class.is_up());
        self.cpus += node.cpus.effective.get().unwrap_or(0);
        self.gpus += node.gpus();
        self.gpus_stranded += free.gpus_stranded;
        let apart = node.memory.set_apart.get().unwrap_or_default();
        let total = node.memory.total.get().unwrap_or_default();
        self.memory.0 = self.memory.0.saturating_add(total.0.saturating_sub(apart.0));
        if gives {
            self.cpus_free += free.cpus.get().unwrap_or(0);
            self.gpus_free += free.gpus.get().unwrap_or(0);
            let left = free.memory.get().unwrap_or_default();
            self.memory_free.0 = self.memory_free.0.saturating_add(left.0);
            let slices = node.gres.iter().zip(&free.gres);
            let slices = slices.filter(|(gres, _)| gres.kind == GresKind::MigSlice);
            self.slices_free += slices.filter_map(|(_, left)| left.get()).sum::<u64>();
            self.nodes_untold += u64::from(!(free.cpus.is_value() && free.gpus.is_value()));
        }
    }

    /// For a queue that starts nothing: what its nodes have cannot be had there.
    pub fn give_nothing(&mut self) {
        self.nodes_idle = 0;
        self.nodes_with_room = 0;
        self.cpus_free = 0;
        self.memory_free = Bytes(0);
        self.gpus_free = 0;
        self.slices_free = 0;
    }

    /// How many nodes stand in a class.
    pub fn in_class(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or(0)
    }
}

/// Whether what is free could be judged as it should be: reservations could be read.
pub fn is_sure(cluster: &Cluster) -> bool {
    !cluster.lacks(Reading::Reservations)
}

#[cfg(test)]
mod tests;
