//! Whether a job of a shape goes on a node, and on enough nodes at a time.
//!
//! The same rule judges three amounts of room: all that a node has (is it the right hardware?), what
//! is free now, and what will be free at a moment to come. Counts what can be proven: a GPU that is
//! not identified counts for no stated need, and is told apart from one that is known not to do.
//!
//! Facts: `man sbatch`, `man slurm.conf` (a job that names no memory where no default is set gets
//! all of its nodes').

use crate::hardware::Device;
use crate::model::{
    Bytes, Cluster, Controller, GresKind, Known, Node, Per, Queue, Room, Shape, Sharing,
};
use crate::text;

/// Room on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Space {
    /// Cores.
    pub cpus: u64,
    /// Memory; `None` where that of the node is not known, or is not given out.
    pub memory: Option<Bytes>,
    /// Generic resources, in the order of [`Host::devices`].
    pub devices: Vec<u64>,
}

/// A node as something to put jobs on.
#[derive(Debug)]
pub struct Host<'c> {
    /// The node.
    pub node: &'c Node,
    /// Its generic resources.
    pub devices: Vec<HostDevice<'c>>,
    /// All that jobs can have of it.
    pub whole: Space,
    /// What is free of that now.
    pub free: Space,
}

/// A kind of generic resource on a node.
#[derive(Debug, Clone)]
pub struct HostDevice<'c> {
    /// Its name.
    pub name: &'c str,
    /// Its type.
    pub kind: Option<&'c str>,
    /// What it is, where it is a GPU.
    pub device: Device<'c>,
}

/// Whether a GPU does what a job needs of each; `None` where nobody knows.
pub(super) fn suits(shape: &Shape, device: &Device<'_>) -> Option<bool> {
    let needs = shape.needs.iter().map(|need| device.can(*need));
    let memory = shape.gpu_memory.map(|bytes| device.holds(bytes));
    let answers: Vec<Option<bool>> = needs.chain(memory).collect();
    if answers.contains(&Some(false)) {
        Some(false)
    } else if answers.contains(&None) {
        None
    } else {
        Some(true)
    }
}

impl<'c> Host<'c> {
    /// A node with what jobs can have of it.
    ///
    /// `identify` says what a GPU of a type is on this node.
    pub fn new(
        node: &'c Node,
        controller: &Controller,
        mut identify: impl FnMut(Option<&'c str>) -> Device<'c>,
    ) -> Self {
        let devices = node.gres.iter().map(|gres| {
            let kind = gres.model.as_deref();
            let is_gpu = matches!(gres.kind, GresKind::Gpu | GresKind::MigSlice);
            let device = if is_gpu { identify(kind) } else { Device::default() };
            HostDevice { name: &gres.name, kind, device }
        });
        let devices: Vec<HostDevice<'_>> = devices.collect();
        let cpus = node.cpus.effective.get().or(node.cpus.total.get()).unwrap_or(0);
        let gives_out = controller.gives_out_memory.get() != Some(false);
        let set_apart = node.memory.set_apart.get().map_or(0, |bytes| bytes.0);
        let memory = node.memory.total.get().filter(|_| gives_out);
        let memory = memory.map(|total| Bytes(total.0.saturating_sub(set_apart)));
        let whole =
            Space { cpus, memory, devices: node.gres.iter().map(|gres| gres.total).collect() };
        let allocated = node.memory.allocated.get().map_or(0, |bytes| bytes.0);
        let free = Space {
            // What is given away and not known is not free.
            cpus: node.cpus.allocated.get().map_or(0, |used| cpus.saturating_sub(used)),
            memory: memory.map(|all| Bytes(all.0.saturating_sub(allocated))),
            devices: free_devices(node),
        };
        Self { node, devices, whole, free }
    }
}

impl Host<'_> {
    /// The same with so many CPUs in all, and of them at most so many free.
    pub(super) fn with_cpus(&self, all: u64, free: u64) -> Self {
        // Those that are not given away, whoever they are kept for.
        let unallocated =
            self.node.cpus.allocated.get().map_or(0, |used| self.whole.cpus.saturating_sub(used));
        Self {
            node: self.node,
            devices: self.devices.clone(),
            whole: Space { cpus: all.min(self.whole.cpus), ..self.whole.clone() },
            free: Space { cpus: free.min(unallocated), ..self.free.clone() },
        }
    }
}

/// What is free of each generic resource.
fn free_devices(node: &Node) -> Vec<u64> {
    let mut free: Vec<u64> = node
        .gres
        .iter()
        .map(|gres| match gres.used.get() {
            Some(used) => gres.total.saturating_sub(used),
            None => gres.total,
        })
        .collect();
    // Where only their sum is known, the busy ones may be of any type.
    let untold = node.gres.iter().any(|gres| gres.kind == GresKind::Gpu && !gres.used.is_value());
    if let (true, Some(used)) = (untold, node.gpus_allocated.get()) {
        for (gres, free) in node.gres.iter().zip(&mut free) {
            if gres.kind == GresKind::Gpu {
                *free = free.saturating_sub(used);
            }
        }
    }
    free
}

/// What a job asks for, with what the queue adds where it says nothing.
#[derive(Debug, Clone)]
pub struct Demand<'s> {
    /// The shape.
    pub shape: &'s Shape,
    /// Its memory; zero per node is all of it.
    memory: Option<Room>,
    cpus_per_gpu: Option<u64>,
    most_cpus: Option<u64>,
    exclusive: bool,
    constraint: Option<Constraint>,
    exclude: Vec<String>,
    nodelist: Vec<String>,
}

/// Whether hardware is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hardware {
    /// It is.
    Right,
    /// Its GPUs are not identified, so nobody can say.
    Unverified,
    /// It is not, in few words.
    Wrong(String),
}

/// More hosts than this are not in one list that a person writes.
const MOST_HOSTS: usize = 65_536;

impl<'s> Demand<'s> {
    /// A shape in a queue.
    pub fn new(shape: &'s Shape, cluster: &Cluster, queue: &Queue) -> Self {
        let controller = &cluster.controller;
        let room = |bytes: &Known<Bytes>, per| bytes.get().map(|bytes| Room { bytes, per });
        let gpus = shape.gpus().next().is_some();
        let default = || {
            room(&queue.default_memory_per_gpu, Per::Gpu)
                .filter(|_| gpus)
                .or_else(|| room(&queue.default_memory_per_cpu, Per::Cpu))
                .or_else(|| room(&queue.default_memory_per_node, Per::Node))
                .or_else(|| room(&controller.default_memory_per_cpu, Per::Cpu))
                .or_else(|| room(&controller.default_memory_per_node, Per::Node))
                .unwrap_or(Room { bytes: Bytes(0), per: Per::Node })
        };
        let expand = |list: &Option<String>| {
            let list = list.as_deref().unwrap_or_default();
            text::expand(list, MOST_HOSTS).unwrap_or_default()
        };
        let gives_out = controller.gives_out_memory.get() != Some(false);
        Self {
            shape,
            memory: Some(shape.memory.unwrap_or_else(default)).filter(|_| gives_out),
            cpus_per_gpu: shape.cpus_per_gpu.or(queue.default_cpus_per_gpu.get()),
            most_cpus: queue.max_cpus_per_node.get(),
            exclusive: shape.exclusive || queue.sharing == Sharing::Exclusive,
            constraint: shape.constraint.as_deref().map(Constraint::parse),
            exclude: expand(&shape.exclude),
            nodelist: expand(&shape.nodelist),
        }
    }

    /// How many tasks of the job go in some room of a node; only on devices that are known to do
    /// what is needed, or on those, too, of which nobody knows.
    pub fn tasks(&self, host: &Host<'_>, space: &Space, unverified: bool) -> u64 {
        let shape = self.shape;
        let per_task = shape.cpus_per_task.unwrap_or(1).max(1);
        let cpus = self.most_cpus.map_or(space.cpus, |most| space.cpus.min(most));
        if self.exclusive && space != &host.whole {
            return 0;
        }
        let mut tasks = cpus / per_task;
        let mut gpus = 0;
        for wanted in &shape.devices {
            let free: u64 = self
                .matching(host, &wanted.name, wanted.kind.as_deref(), unverified)
                .map(|index| space.devices.get(index).copied().unwrap_or(0))
                .sum();
            let nodes = shape.least_nodes().max(1);
            let needed = match wanted.per {
                Per::Task => {
                    tasks = tasks.min(free / wanted.count.max(1));
                    wanted.count
                }
                Per::Job if shape.has_fixed_nodes() => wanted.count.div_ceil(nodes),
                Per::Job => wanted.count.min(free).max(1),
                _ => wanted.count,
            };
            if free < needed {
                return 0;
            }
            if wanted.name == "gpu" {
                gpus += needed;
            }
        }
        if self.cpus_per_gpu.is_some_and(|each| cpus < each.saturating_mul(gpus)) {
            return 0;
        }
        if let (Some(Room { bytes, per }), Some(free)) = (self.memory, space.memory) {
            let fits = match per {
                _ if bytes.0 == 0 => Some(free) == host.whole.memory && free.0 > 0,
                Per::Cpu => {
                    tasks = tasks.min(free.0 / bytes.0.saturating_mul(per_task));
                    true
                }
                Per::Gpu => free.0 >= bytes.0.saturating_mul(gpus.max(1)),
                _ => free >= bytes,
            };
            if !fits {
                return 0;
            }
        }
        match shape.tasks_per_node {
            Some(wanted) if tasks < wanted.min(shape.all_tasks()) => 0,
            Some(wanted) => wanted,
            None => tasks.min(shape.all_tasks()),
        }
    }

    /// The resources of a host that a request may take.
    fn matching<'h>(
        &'h self,
        host: &'h Host<'_>,
        name: &'h str,
        kind: Option<&'h str>,
        unverified: bool,
    ) -> impl Iterator<Item = usize> + 'h {
        host.devices.iter().enumerate().filter_map(move |(index, device)| {
            let named = device.name == name;
            let typed = kind.is_none_or(|kind| {
                device.kind.is_some_and(|known| known.eq_ignore_ascii_case(kind))
            });
            let suits = name != "gpu"
                || match suits(self.shape, &device.device) {
                    Some(suits) => suits,
                    None => unverified,
                };
            (named && typed && suits).then_some(index)
        })
    }

    /// Whether a node has, when it is empty, what the job needs of a node.
    pub fn hardware(&self, host: &Host<'_>) -> Hardware {
        let wrong = |why: String| Hardware::Wrong(why);
        let name = &host.node.name;
        if self.exclude.contains(name) {
            return wrong("excluded".to_owned());
        }
        if !self.nodelist.is_empty() && !self.nodelist.contains(name) {
            return wrong("not on the node list".to_owned());
        }
        if let Some(constraint) = &self.constraint
            && !constraint.holds(&host.node.features)
        {
            return wrong(format!(
                "without {}",
                self.shape.constraint.as_deref().unwrap_or_default()
            ));
        }
        if self.tasks(host, &host.whole, false) >= self.least_tasks() {
            return Hardware::Right;
        }
        if self.tasks(host, &host.whole, true) >= self.least_tasks() {
            return Hardware::Unverified;
        }
        wrong(self.what_lacks(host))
    }

    /// The fewest tasks for which a node is worth taking.
    fn least_tasks(&self) -> u64 {
        if self.shape.has_fixed_nodes() && self.shape.tasks_per_node.is_none() {
            // Tasks may be spread unevenly, so that any node may have the fewest.
            let (all, nodes) = (self.shape.all_tasks(), self.shape.least_nodes().max(1));
            (all / nodes).max(1)
        } else {
            1
        }
    }

    /// In few words, what an empty node lacks; the first thing that is found.
    fn what_lacks(&self, host: &Host<'_>) -> String {
        for wanted in &self.shape.devices {
            let count = |kind: Option<&str>| -> u64 {
                let devices = host.devices.iter().zip(&host.whole.devices);
                devices
                    .filter(|(device, _)| device.name == wanted.name)
                    .filter(|(device, _)| {
                        kind.is_none_or(|kind| {
                            device.kind.is_some_and(|known| known.eq_ignore_ascii_case(kind))
                        })
                    })
                    .map(|(_, count)| count)
                    .sum()
            };
            let what = if wanted.name == "gpu" { "GPU" } else { &wanted.name };
            if count(None) == 0 {
                return format!("no {what} (node Gres)");
            }
            if let Some(kind) = wanted.kind.as_deref().filter(|kind| count(Some(kind)) == 0) {
                return format!("no {what} of type {kind} (node Gres)");
            }
            let needed = match wanted.per {
                Per::Task => wanted.count.saturating_mul(self.least_tasks()),
                Per::Job if self.shape.has_fixed_nodes() => {
                    wanted.count.div_ceil(self.shape.least_nodes().max(1))
                }
                Per::Job => 1,
                _ => wanted.count,
            };
            let there = count(wanted.kind.as_deref());
            if there < needed {
                return format!("{there} of {needed} {what}s");
            }
            if wanted.name == "gpu" {
                let devices = host.devices.iter().filter(|device| device.name == "gpu");
                for device in devices.map(|device| &device.device) {
                    let lacks =
                        self.shape.needs.iter().find(|need| device.can(**need) == Some(false));
                    if let Some(need) = lacks {
                        return format!("GPUs without {}", need.word());
                    }
                    if self.shape.gpu_memory.is_some_and(|b| device.holds(b) == Some(false)) {
                        let most = device.memory.map_or(Bytes(0), |memory| memory.most);
                        return format!("GPUs of {most}");
                    }
                }
            }
        }
        let cpus = self.most_cpus.map_or(host.whole.cpus, |most| host.whole.cpus.min(most));
        let per_task = self.shape.cpus_per_task.unwrap_or(1).max(1);
        if cpus < per_task.saturating_mul(self.least_tasks()) {
            return format!("{cpus} cores");
        }
        match host.whole.memory {
            Some(memory) => format!("{memory} of memory"),
            None => "too small".to_owned(),
        }
    }

    /// Of a node that has it all when empty: the one thing that too little is left of, and the field
    /// of the node that says so.
    pub fn what_is_taken(&self, host: &Host<'_>) -> (&'static str, &'static str) {
        let fits_with = |space: Space| self.tasks(host, &space, false) > 0;
        let (whole, free) = (&host.whole, &host.free);
        if fits_with(Space { devices: whole.devices.clone(), ..free.clone() }) {
            let gpus = self.shape.gpus().next().is_some();
            // Whichever of them tells the larger use counts.
            let field = "GresUsed, AllocTRES";
            (if gpus { "short of GPUs" } else { "short of devices" }, field)
        } else if fits_with(Space { memory: whole.memory, ..free.clone() }) {
            ("short of memory", "AllocMem")
        } else if fits_with(Space { cpus: whole.cpus, ..free.clone() }) {
            ("short of cores", "CPUAlloc")
        } else {
            ("too little left", "AllocTRES")
        }
    }

    /// The nodes that are needed, and whether those that take so many tasks each are enough.
    pub fn enough(&self, tasks: &[u64]) -> bool {
        let mut best: Vec<u64> = tasks.iter().copied().filter(|tasks| *tasks > 0).collect();
        let nodes = usize::try_from(self.shape.least_nodes()).unwrap_or(usize::MAX);
        if best.len() < nodes {
            return false;
        }
        if self.shape.has_fixed_nodes() {
            best.sort_unstable_by(|a, b| b.cmp(a));
            best.truncate(nodes);
        }
        let sum = best.iter().fold(0_u64, |sum, tasks| sum.saturating_add(*tasks));
        sum >= self.shape.all_tasks() && !best.is_empty()
    }

    /// Whether the GPUs of a job that does not say where they are to be are enough.
    pub fn enough_gpus(&self, hosts: &[(&Host<'_>, &Space)]) -> bool {
        self.shape.devices.iter().filter(|wanted| wanted.per == Per::Job).all(|wanted| {
            if self.shape.has_fixed_nodes() {
                return true;
            }
            let kind = wanted.kind.as_deref();
            let free: u64 = hosts
                .iter()
                .flat_map(|(host, space)| {
                    self.matching(host, &wanted.name, kind, false)
                        .map(|index| space.devices.get(index).copied().unwrap_or(0))
                })
                .sum();
            free >= wanted.count
        })
    }
}

/// An expression over features: names, `&`, `|`, and brackets around either.
///
/// A count (`*2`) and the "same for all nodes" of square brackets are not weighed: a node is judged
/// for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Constraint {
    Feature(String),
    All(Vec<Constraint>),
    Any(Vec<Constraint>),
}

impl Constraint {
    fn parse(text: &str) -> Self {
        let text = text.trim();
        let parts = |separators: &[char]| split_outside(text, separators);
        let any = parts(&['|']);
        if any.len() > 1 {
            return Self::Any(any.into_iter().map(Self::parse).collect());
        }
        let all = parts(&['&', ',']);
        if all.len() > 1 {
            return Self::All(all.into_iter().map(Self::parse).collect());
        }
        let bare = text.split_once('*').map_or(text, |(bare, _)| bare);
        let inner = [('[', ']'), ('(', ')')].iter().find_map(|(open, close)| {
            bare.strip_prefix(*open).and_then(|rest| rest.strip_suffix(*close))
        });
        match inner {
            Some(inner) => Self::parse(inner),
            None => Self::Feature(bare.to_owned()),
        }
    }

    fn holds(&self, features: &[String]) -> bool {
        match self {
            Self::Feature(name) => features.contains(name),
            Self::All(parts) => parts.iter().all(|part| part.holds(features)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(features)),
        }
    }
}

/// The parts of a text at separators that stand outside brackets.
fn split_outside<'t>(text: &'t str, separators: &[char]) -> Vec<&'t str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && separators.contains(&c) => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hardware::Catalogue;
    use crate::model::{Cpus, Gres, NodeMemory};

    pub(in crate::capacity) fn host<'c>(
        node: &'c Node,
        cluster: &Cluster,
        catalogue: &'c Catalogue,
    ) -> Host<'c> {
        Host::new(node, &cluster.controller, |kind| catalogue.identify(kind, &[]))
    }

    /// A node of 100 GiB whose GPUs are of one type.
    pub(in crate::capacity) fn gpu_node(
        name: &str,
        cpus: u64,
        kind: &str,
        gpus: u64,
        cpus_used: u64,
        gpus_used: u64,
    ) -> Node {
        let gres = Gres {
            kind: GresKind::of("gpu", Some(kind)),
            name: "gpu".to_owned(),
            model: Some(kind.to_owned()),
            total: gpus,
            used: Known::Value(gpus_used),
        };
        let gib = |gib| Known::Value(Bytes(gib * Bytes::GIB));
        Node {
            name: name.to_owned(),
            cpus: Cpus {
                total: Known::Value(cpus),
                effective: Known::Value(cpus),
                allocated: Known::Value(cpus_used),
            },
            memory: NodeMemory {
                total: gib(100),
                allocated: Known::Value(Bytes(cpus_used * Bytes::GIB)),
                ..NodeMemory::default()
            },
            gres: if gpus > 0 { vec![gres] } else { Vec::new() },
            features: ["intel", "ib"].map(str::to_owned).into(),
            ..Node::default()
        }
    }

    /// A cluster of one queue, `gpu`, over these nodes.
    pub(in crate::capacity) fn cluster(nodes: Vec<Node>) -> Cluster {
        let queue = Queue { name: "gpu".to_owned(), ..Queue::default() };
        Cluster { nodes, queues: vec![queue], ..Cluster::default() }
    }

    pub(in crate::capacity) fn shape(options: &[(&str, &str)]) -> Shape {
        let mut shape = Shape::default();
        for (option, value) in options {
            shape.apply(option, Some(value)).expect("an option");
        }
        shape
    }

    /// The tasks that go on each node now, and what its hardware is.
    fn judged(cluster: &Cluster, shape: &Shape) -> Vec<(u64, Hardware)> {
        let catalogue = Catalogue::built_in().expect("sound");
        let demand = Demand::new(shape, cluster, &cluster.queues[0]);
        cluster
            .nodes
            .iter()
            .map(|node| {
                let host = host(node, cluster, &catalogue);
                (demand.tasks(&host, &host.free, false), demand.hardware(&host))
            })
            .collect()
    }

    #[test]
    fn cores_memory_and_gpus_must_all_be_there() {
        let one = cluster(vec![gpu_node("g1", 16, "a100", 4, 12, 2)]);
        let tasks = |options: &[(&str, &str)]| judged(&one, &shape(options))[0].0;
        // 4 of 16 cores, 88 of 100 GiB and 2 of 4 GPUs are free.
        assert_eq!(tasks(&[("ntasks", "9"), ("mem-per-cpu", "1G")]), 4);
        assert_eq!(tasks(&[("ntasks", "9"), ("mem-per-cpu", "40G")]), 2);
        assert_eq!(tasks(&[("mem", "88G")]), 1);
        assert_eq!(tasks(&[("mem", "89G")]), 0);
        assert_eq!(tasks(&[("gres", "gpu:2"), ("mem", "1G")]), 1);
        assert_eq!(tasks(&[("gres", "gpu:3"), ("mem", "1G")]), 0);
        assert_eq!(tasks(&[("gpus-per-task", "1"), ("ntasks", "9"), ("mem", "1G")]), 2);
        assert_eq!(tasks(&[("gres", "gpu:1"), ("cpus-per-gpu", "8"), ("mem", "1G")]), 0);
        assert_eq!(tasks(&[("cpus-per-task", "5"), ("mem", "1G")]), 0);
        let mut alone = shape(&[("mem", "1G")]);
        alone.exclusive = true;
        assert_eq!(judged(&one, &alone)[0].0, 0);
    }

    /// `man slurm.conf`: without a default a job gets all the memory of its node; with one, that.
    #[test]
    fn a_job_that_names_no_memory_takes_the_default() {
        let mut one = cluster(vec![gpu_node("g1", 16, "a100", 4, 12, 2)]);
        let plain = shape(&[("ntasks", "1")]);
        assert_eq!(judged(&one, &plain)[0].0, 0, "88 of 100 GiB are free");
        one.queues[0].default_memory_per_cpu = Known::Value(Bytes(30 * Bytes::GIB));
        assert_eq!(judged(&one, &shape(&[("ntasks", "9")]))[0].0, 2);
        // Where memory is not given out, it binds nobody.
        one.controller.gives_out_memory = Known::Value(false);
        assert_eq!(judged(&one, &shape(&[("ntasks", "9")]))[0].0, 4);
    }

    #[test]
    fn wrong_busy_and_unverified_are_three_things() {
        let nodes = vec![
            gpu_node("g1", 16, "v100", 4, 0, 0),
            gpu_node("g2", 16, "weirdgpu9000", 4, 0, 0),
            gpu_node("g3", 16, "a100", 4, 16, 4),
            gpu_node("c1", 16, "", 0, 0, 0),
        ];
        let cluster = cluster(nodes);
        let mut wanted = shape(&[("gres", "gpu:1"), ("mem", "1G")]);
        wanted.needs = vec![crate::model::Ability::Bf16];
        let wrong = |why: &str| Hardware::Wrong(why.to_owned());
        let seen = judged(&cluster, &wanted);
        assert_eq!(
            seen,
            [
                (0, wrong("GPUs without bf16")),
                (0, Hardware::Unverified),
                (0, Hardware::Right),
                (0, wrong("no GPU (node Gres)")),
            ]
        );
        let typed = judged(&cluster, &shape(&[("gres", "gpu:a100:8"), ("mem", "1G")]));
        assert_eq!(typed[2].1, wrong("4 of 8 GPUs"));
        assert_eq!(typed[0].1, wrong("no GPU of type a100 (node Gres)"));
        let big = judged(&cluster, &shape(&[("cpus-per-task", "32"), ("mem", "1G")]));
        assert_eq!(big[3].1, wrong("16 cores"));
        let away = judged(&cluster, &shape(&[("exclude", "g[1-3]"), ("constraint", "intel&ib")]));
        assert_eq!((away[0].1.clone(), away[3].1.clone()), (wrong("excluded"), Hardware::Right));
    }

    #[test]
    fn nodes_are_enough_when_they_are_as_many_and_take_all_tasks() {
        let cluster = cluster(Vec::new());
        let enough = |options: &[(&str, &str)], tasks: &[u64]| {
            let shape = shape(options);
            Demand::new(&shape, &cluster, &cluster.queues[0]).enough(tasks)
        };
        assert!(enough(&[("nodes", "2")], &[1, 0, 1]));
        assert!(!enough(&[("nodes", "2")], &[9, 0, 0]));
        assert!(enough(&[("ntasks", "9")], &[4, 3, 2]));
        assert!(!enough(&[("ntasks", "10")], &[4, 3, 2]));
        assert!(enough(&[("nodes", "2"), ("ntasks", "7")], &[1, 4, 3]));
        assert!(!enough(&[("nodes", "2"), ("ntasks", "8")], &[1, 4, 3]));
        assert!(!enough(&[], &[]));
    }

    #[test]
    fn expressions_over_features_are_weighed() {
        let features: Vec<String> = ["intel", "ib", "avx512"].map(str::to_owned).to_vec();
        let holds = |text: &str| Constraint::parse(text).holds(&features);
        assert!(holds("intel&ib") && holds("amd|ib") && holds("[amd|intel]"));
        assert!(holds("(amd|intel)&avx512") && holds("ib*2"));
        assert!(!holds("amd") && !holds("intel&amd") && !holds("(amd|zen)&ib"));
    }

    proptest! {
        #[test]
        fn any_expression_is_read(text in "[a-c&|()\\[\\]*2,]{0,20}") {
            let _ = Constraint::parse(&text).holds(&["a".to_owned()]);
        }

        /// What goes in little room goes in more.
        #[test]
        fn more_room_takes_no_fewer_tasks(
            cpus in 0_u64..40, more in 0_u64..40, tasks in 1_u64..20, each in 1_u64..5, mem in 0_u64..100
        ) {
            let cluster = cluster(vec![gpu_node("n", 80, "a100", 0, 0, 0)]);
            let shape = shape(&[
                ("ntasks", &tasks.to_string()),
                ("cpus-per-task", &each.to_string()),
                ("mem-per-cpu", "1G"),
            ]);
            let catalogue = Catalogue::built_in().expect("sound");
            let demand = Demand::new(&shape, &cluster, &cluster.queues[0]);
            let host = host(&cluster.nodes[0], &cluster, &catalogue);
            let space = |cpus| Space { cpus, memory: Some(Bytes(mem * Bytes::GIB)), devices: vec![] };
            let few = demand.tasks(&host, &space(cpus), false);
            prop_assert!(few <= demand.tasks(&host, &space(cpus + more), false));
            prop_assert!(few * each <= cpus && few <= tasks);
        }
    }
}
