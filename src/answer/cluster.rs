//! What every question about capacity shares: the reading, and the rows of queues and nodes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::access::Heard;
use super::{AnswerError, World, mask};
use crate::capacity::free::{Class, Free, Frees, Sums};
use crate::capacity::gates::{Access, Ceiling, Gate, Gates, Left, Term, Way};
use crate::model::{
    Allowed, Bytes, Cluster, GresKind, Known, NodeReason, NodeState, Notice, Queue, QueueState,
    Reading, Shape, Span,
};
use crate::sched::{self, Backend, SchedError, slurm};
use crate::text;

/// More nodes than any job has.
pub(super) const MOST_NODES: usize = 100_000;

impl<'w> World<'w> {
    /// Reads the cluster; what could not be read stands in the notices.
    pub(super) fn cluster(&self) -> Result<(Cluster, Vec<Notice>), AnswerError> {
        read(&self.nodes()?)
    }

    /// Whoever can be asked about nodes and queues.
    pub(super) fn nodes(&self) -> Result<slurm::Nodes<'w>, AnswerError> {
        Ok(self.capacity().nodes.ok_or(SchedError::NoScheduler)?)
    }

    /// The scheduler, as far as questions about capacity need it.
    pub(super) fn capacity(&self) -> Backend<'w> {
        sched::detect(
            self.cluster,
            &self.config.settings.scheduler,
            sched::Need::Nodes,
            self.session,
        )
    }
}

/// Reads the cluster; what could not be read stands in the notices.
pub(super) fn read(source: &slurm::Nodes<'_>) -> Result<(Cluster, Vec<Notice>), AnswerError> {
    let found = source.cluster()?;
    let mut notices = found.notices;
    for failure in &found.value.failures {
        let text = format!("{} could not be read: {}", subject(failure.reading), failure.message);
        notices.push(Notice::warning("not-read", text).hint(lost(failure.reading)));
    }
    Ok((found.value, mask::notices(notices)))
}

fn subject(reading: Reading) -> &'static str {
    match reading {
        Reading::Identity => "your groups",
        Reading::Controller => "the scheduler's settings",
        Reading::Nodes => "the nodes",
        Reading::Queues => "the partitions",
        Reading::Qos => "the QOS limits",
        Reading::Associations => "your accounts",
        Reading::Usage => "what is used of account limits",
        Reading::Reservations => "the reservations",
        Reading::Jobs => "the jobs",
    }
}

/// What an answer is worth without it.
fn lost(reading: Reading) -> &'static str {
    match reading {
        Reading::Identity => "partitions for some groups only are told as not checked",
        Reading::Controller => "memory is taken for given out, and every limit for enforced",
        Reading::Nodes | Reading::Queues => "nothing can be said",
        Reading::Qos => "limits of a QOS are not among the reasons",
        Reading::Associations => "whether a partition lets you in is told as not checked",
        Reading::Usage => "budgets of accounts are not among the reasons",
        Reading::Reservations => "reserved nodes are told as reserved for others",
        Reading::Jobs => "who runs where, and what is in use of limits, is n/a",
    }
}

/// A queue in a table.
#[derive(Debug, Clone, Serialize)]
pub struct QueueRow {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: QueueState,
    /// Where it stands for the caller.
    pub term: Term,
    /// Whether jobs that name none go here.
    pub is_default: bool,
    /// Whether it is not shown to everybody.
    pub is_hidden: bool,
    /// The accounts that it is for, where they are one or two.
    pub dedicated_to: Vec<String>,
    /// Its nodes and what can be had of them; nothing where it starts no jobs.
    pub nodes: Sums,
    /// Idle nodes that it shows though it starts no jobs.
    pub advertised_idle: u64,
    /// Nodes that it says it has, where that is another number.
    pub nodes_declared: Known<u64>,
    /// The types of its GPUs, and on how many nodes each is.
    pub gpu_models: BTreeMap<String, u64>,
    /// The longest time limit.
    pub max_time: Known<Span>,
    /// Whose rule that is.
    pub max_time_source: String,
    /// The most cores of a node that its jobs may have together.
    pub cpus_per_node: Known<u64>,
    /// What one user may have at once.
    pub at_once: Vec<Ceiling>,
    /// What limits leave the caller of its GPUs; `None` where they leave all.
    pub gpus_left: Option<Left>,
    /// The way in that has the least against it.
    pub way: Way,
    /// What is in the way, the hardest first.
    pub gates: Vec<Gate>,
    /// What the scheduler said to the smallest job; `None` where it was not asked.
    pub heard: Option<Heard>,
}

impl QueueRow {
    /// The row of a queue.
    pub(super) fn new(gates: &Gates<'_>, queue: &Queue, shape: Option<&Shape>) -> Self {
        let access: Access = gates.access(queue, shape);
        let term = Term::of(&access);
        let nodes = gates.nodes(queue);
        let mut sums = Sums::of(nodes);
        let mut advertised_idle = 0;
        if matches!(term, Term::Closed | Term::NoNodes) {
            advertised_idle = sums.nodes_idle;
            sums.give_nothing();
        }
        let mut gpu_models: BTreeMap<&str, u64> = BTreeMap::new();
        for free in nodes {
            let mut models: Vec<&str> = free.node.gpu_models().map(model_name).collect();
            models.sort_unstable();
            models.dedup();
            for model in models {
                *gpu_models.entry(model).or_default() += 1;
            }
        }
        let gpu_models = gpu_models.into_iter().map(|(model, nodes)| (model.to_owned(), nodes));
        let dedicated_to = match &queue.accounts {
            Allowed::Only(names) if names.len() <= 2 => names.clone(),
            _ => Vec::new(),
        };
        let (max_time, max_time_source) = gates.longest(queue, &access.way);
        let declared = queue.node_count.get().filter(|declared| *declared != sums.nodes);
        let at_once = gates.ceilings(queue, &access.way);
        let gpus_left = gates
            .left(queue, &access.way, &access.gates, &["gres/gpu"])
            .filter(|left| left.amount < sums.gpus_free);
        Self {
            name: queue.name.clone(),
            state: queue.state.clone(),
            term,
            is_default: queue.is_default,
            is_hidden: queue.is_hidden,
            dedicated_to,
            nodes: sums,
            advertised_idle,
            nodes_declared: declared.into(),
            gpu_models: gpu_models.collect(),
            max_time,
            max_time_source,
            gpus_left,
            cpus_per_node: queue.max_cpus_per_node.clone(),
            at_once,
            way: access.way,
            gates: access.gates,
            heard: None,
        }
    }

    /// How many GPUs the caller can have: free, and within limits.
    pub fn gpus_to_have(&self) -> u64 {
        self.gpus_left.as_ref().map_or(self.nodes.gpus_free, |left| left.amount)
    }

    /// Whether jobs of the caller start here, as far as is known.
    pub fn is_usable(&self) -> bool {
        matches!(self.term, Term::Open | Term::Unchecked)
    }
}

/// The rows of all queues, the usable and roomiest first.
pub(super) fn queue_rows(cluster: &Cluster, gates: &Gates<'_>) -> Vec<QueueRow> {
    let mut rows: Vec<QueueRow> =
        cluster.queues.iter().map(|queue| QueueRow::new(gates, queue, None)).collect();
    sort_rows(&mut rows);
    rows
}

/// The usable and roomiest first.
pub(super) fn sort_rows(rows: &mut [QueueRow]) {
    rows.sort_by(|a, b| {
        let free = |row: &QueueRow| (row.nodes.cpus_free, row.nodes.gpus_free);
        a.term.cmp(&b.term).then(free(b).cmp(&free(a))).then_with(|| a.name.cmp(&b.name))
    });
}

/// What a type of GPU is called; one that the site gives no type is just a GPU.
pub(super) fn model_name(model: &str) -> &str {
    if model.is_empty() { "gpu" } else { model }
}

/// A node in a table.
#[derive(Debug, Clone, Serialize)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Its state; as printed in JSON.
    #[serde(serialize_with = "as_printed")]
    pub state: Arc<NodeState>,
    /// Where it stands.
    pub class: Class,
    /// Cores that can be had, and that jobs may have at all.
    pub cpus_free: Known<u64>,
    /// Cores that jobs may have at all.
    pub cpus: Known<u64>,
    /// Cores given to jobs.
    pub cpus_allocated: Known<u64>,
    /// Load, in hundredths.
    pub load: Known<u64>,
    /// Memory that can be had.
    pub memory_free: Known<Bytes>,
    /// Memory as configured.
    pub memory: Known<Bytes>,
    /// GPUs that can be had.
    pub gpus_free: Known<u64>,
    /// GPUs.
    pub gpus: u64,
    /// GPUs that nobody has and nobody can get.
    pub gpus_stranded: u64,
    /// Every generic resource.
    pub gres: Vec<GresRow>,
    /// Its features.
    #[serde(serialize_with = "shared")]
    pub features: Arc<[String]>,
    /// Its partitions.
    #[serde(serialize_with = "shared")]
    pub partitions: Arc<[String]>,
    /// The scheduler fills nodes of small weight first.
    pub weight: Known<u64>,
    /// Jobs on it.
    pub jobs: Known<u64>,
    /// Jobs must end before then.
    pub until: Option<Timestamp>,
    /// The reservation that is in force, or that begins then.
    pub reservation: Option<String>,
    /// Why an operator, or the scheduler, took it out.
    pub reason: Option<Box<NodeReason>>,
}

/// A generic resource of a node.
#[derive(Debug, Clone, Serialize)]
pub struct GresRow {
    /// What it is.
    pub kind: GresKind,
    /// Its name.
    pub name: String,
    /// Its type.
    pub model: Option<String>,
    /// How many can be had.
    pub free: Known<u64>,
    /// How many there are.
    pub total: u64,
}

fn shared<S: Serializer>(names: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(names.iter())
}

fn as_printed<S: Serializer>(state: &Arc<NodeState>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&state.text)
}

impl NodeRow {
    /// The row of a node.
    pub(super) fn new(free: &Free<'_>, jobs: Known<u64>) -> Self {
        let node = free.node;
        let gres = node.gres.iter().zip(&free.gres);
        let reason = node.reason.clone().map(|mut reason| {
            reason.text = text::masked(&reason.text);
            reason
        });
        Self {
            name: node.name.clone(),
            state: Arc::clone(&node.state),
            class: free.class,
            cpus_free: free.cpus.clone(),
            cpus: node.cpus.effective.clone(),
            cpus_allocated: node.cpus.allocated.clone(),
            load: node.load.clone(),
            memory_free: free.memory.clone(),
            memory: node.memory.total.clone(),
            gpus_free: free.gpus.clone(),
            gpus: node.gpus(),
            gpus_stranded: free.gpus_stranded,
            gres: gres
                .map(|(gres, left)| GresRow {
                    kind: gres.kind,
                    name: gres.name.clone(),
                    model: gres.model.clone(),
                    free: left.clone(),
                    total: gres.total,
                })
                .collect(),
            features: node.features.clone(),
            partitions: node.partitions.clone(),
            weight: node.weight.clone(),
            jobs,
            until: free.until.map(|(at, _)| at),
            reservation: free.reservation.or(free.until.map(|(_, by)| by)).map(str::to_owned),
            reason,
        }
    }
}

/// Which nodes a list shows, and how many.
#[derive(Debug, Clone, Default)]
pub struct NodeFilter {
    /// Only nodes of these queues.
    pub queues: Vec<String>,
    /// Only nodes with GPUs.
    pub gpu: bool,
    /// Only nodes without.
    pub cpu: bool,
    /// Only nodes of which something can be had.
    pub free: bool,
    /// The order.
    pub sort: Sort,
    /// At most so many.
    pub limit: Option<usize>,
}

/// The order of a list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// The roomiest first: by GPUs, then cores.
    #[default]
    Room,
    /// By name.
    Name,
    /// The highest load first.
    Load,
    /// The most free memory first.
    Memory,
    /// By where they stand.
    State,
}

impl NodeFilter {
    /// Refuses queues that are not there.
    pub(super) fn check(&self, cluster: &Cluster) -> Result<(), AnswerError> {
        self.queues.iter().try_for_each(|name| known_queue(cluster, name).map(|_| ()))
    }

    fn takes(&self, free: &Free<'_>) -> bool {
        let is_gpu = free.node.count(GresKind::Gpu) + free.node.count(GresKind::MigSlice) > 0;
        let names = &free.node.partitions;
        (!self.gpu || is_gpu)
            && (!self.cpu || !is_gpu)
            && (!self.free || free.class.gives_now())
            && (self.queues.is_empty() || names.iter().any(|name| self.queues.contains(name)))
    }

    /// The nodes that match, added up.
    pub(super) fn sums(&self, cluster: &Cluster, frees: &Frees<'_>) -> Sums {
        let chosen = frees.nodes.iter().filter(|free| self.takes(free));
        let chosen: Vec<_> = chosen.map(|free| self.seen_from_queue(cluster, free)).collect();
        Sums::of(&chosen)
    }

    /// The rows, in order, and how many there are in all.
    pub(super) fn rows(&self, cluster: &Cluster, frees: &Frees<'_>) -> (Vec<NodeRow>, usize) {
        let chosen = frees.nodes.iter().filter(|free| self.takes(free));
        let mut chosen: Vec<(Rank, Natural<'_>, Arc<Free<'_>>)> = chosen
            .map(|free| (Natural::new(&free.node.name), self.seen_from_queue(cluster, free)))
            .map(|(name, free)| (self.rank(&free), name, free))
            .collect();
        // No two are alike, as each name is there once.
        chosen.sort_unstable_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        let total = chosen.len();
        chosen.truncate(self.limit.unwrap_or(usize::MAX));
        let jobs = jobs_by_node(cluster);
        let count = |name: &str| match &jobs {
            None => Known::NotGathered,
            Some(jobs) => Known::Value(jobs.get(name).copied().unwrap_or(0)),
        };
        let rows = chosen.iter().map(|(_, _, free)| NodeRow::new(free, count(&free.node.name)));
        (rows.collect(), total)
    }

    /// Where a node stands in the list, but for its name.
    fn rank(&self, free: &Free<'_>) -> Rank {
        let most =
            |value: Option<u64>| Reverse([u64::from(value.is_some()), value.unwrap_or(0), 0]);
        let number = |known: &Known<u64>| known.get().unwrap_or(0);
        match self.sort {
            Sort::Room => {
                let gives = u64::from(free.class.gives_now());
                (Reverse([gives, number(&free.gpus), number(&free.cpus)]), Some(free.class))
            }
            Sort::Name => (most(None), None),
            Sort::Load => (most(free.node.load.get()), None),
            Sort::Memory => (most(free.memory.get().map(|bytes| bytes.0)), None),
            Sort::State => (most(None), Some(free.class)),
        }
    }

    /// What jobs of the one queue that was asked for can have.
    fn seen_from_queue<'c>(&self, cluster: &Cluster, free: &Arc<Free<'c>>) -> Arc<Free<'c>> {
        match self.queues.as_slice() {
            [only] => {
                cluster.queue(only).map_or_else(|| Arc::clone(free), |queue| free.in_queue(queue))
            }
            _ => Arc::clone(free),
        }
    }
}

/// By what a list is sorted before names: what is large comes first, then the class.
type Rank = (Reverse<[u64; 3]>, Option<Class>);

/// A name with a number at its end, in the order of that: `n9` before `n10`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Natural<'n> {
    stem: &'n str,
    number: Option<u64>,
    name: &'n str,
}

impl<'n> Natural<'n> {
    fn new(name: &'n str) -> Self {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Self { stem, number: name[stem.len()..].parse().ok(), name }
    }
}

/// How many running jobs are on each node; `None` where jobs could not be read.
pub(super) fn jobs_by_node(cluster: &Cluster) -> Option<HashMap<Cow<'_, str>, u64>> {
    if cluster.lacks(Reading::Jobs) {
        return None;
    }
    let mut counts: HashMap<Cow<'_, str>, u64> = HashMap::with_capacity(cluster.nodes.len());
    for job in cluster.jobs.iter().filter(|job| job.state.word() != "PENDING") {
        let list = job.node_list.as_deref().unwrap_or_default();
        // One plain name, as most jobs have, needs no expansion.
        if !list.contains([',', '[', ' ', '(']) && !list.is_empty() {
            *counts.entry(list.into()).or_default() += 1;
            continue;
        }
        for name in text::expand(list, MOST_NODES).unwrap_or_default() {
            *counts.entry(name.into()).or_default() += 1;
        }
    }
    Some(counts)
}

/// A queue by its name, or an error that says which was probably meant.
pub(super) fn known_queue<'c>(cluster: &'c Cluster, name: &str) -> Result<&'c Queue, AnswerError> {
    cluster.queue(name).ok_or_else(|| {
        let names = cluster.queues.iter().map(|queue| queue.name.as_str());
        AnswerError::UnknownQueue {
            name: name.to_owned(),
            nearest: text::did_you_mean(name, names).map(str::to_owned),
        }
    })
}
