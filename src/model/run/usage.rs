//! What the steps of a run used, folded into the run.
//!
//! Decides what counts as the run's own: work steps do, the one that only holds the environment
//! (`extern`) does where nothing else can have been meant. Memory is told per node, because a node
//! is what kills: the peak of one task says little where eight tasks or four steps share one. Peaks
//! of tasks need not coincide, so the footprint is never below the truth by that, only above.
//! Nothing that was not measured becomes a number.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::{Maybe, Names, Run, Symbol};
use crate::model::{BaseState, Bytes, Exit, Known, Span, Step, Tres};

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepKind {
    /// The batch script, or a program that was started on its own.
    Work,
    /// What holds the environment of the job on each node.
    Extern,
}

/// What a step used: the part of its record that a run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepUse {
    /// Its id: `batch`, `0`.
    pub id: Symbol,
    /// What it is for.
    pub kind: StepKind,
    /// Whether it ended badly: by its state, or with an exit that is not clean.
    pub failed: bool,
    /// Whether the kernel killed a process of it for memory.
    pub out_of_memory: bool,
    /// Its start, in epoch seconds.
    pub started: Maybe<u32>,
    /// Seconds of wall time.
    pub elapsed: Maybe<u32>,
    /// CPUs.
    pub cpus: Maybe<u32>,
    /// Nodes.
    pub nodes: Maybe<u32>,
    /// Tasks.
    pub tasks: Maybe<u32>,
    /// GPUs.
    pub gpus: Maybe<u32>,
    /// The nodes it ran on.
    pub node_list: Option<Symbol>,
    /// Per cent of a GPU that it kept busy, summed over its GPUs: 200 is two busy ones.
    pub gpu_percent: Maybe<u32>,
    /// CPU time in milliseconds.
    pub cpu_millis: Maybe<u64>,
    /// The most bytes of memory that one task used.
    pub task_memory: Maybe<u64>,
    /// The sum over the tasks of the most that each used, in bytes.
    pub total_memory: Maybe<u64>,
    /// The sum over the tasks of the most GPU memory that each used, in bytes.
    pub gpu_memory: Maybe<u64>,
    /// Bytes read.
    pub read: Maybe<u64>,
    /// Bytes written.
    pub written: Maybe<u64>,
    /// Joules that its nodes drew meanwhile.
    pub joules: Maybe<u64>,
}

/// Whether a step with this state and exit ended badly. One that was cancelled did not: a job that
/// reaches its limit cancels its steps.
pub fn is_failed(state: BaseState, exit: Option<Exit>) -> bool {
    match state {
        BaseState::Failed
        | BaseState::Timeout
        | BaseState::NodeFail
        | BaseState::BootFail
        | BaseState::Deadline
        | BaseState::OutOfMemory => true,
        BaseState::Completed => exit.is_some_and(|exit| !exit.is_clean()),
        _ => false,
    }
}

impl StepUse {
    /// The use that a full record of a step tells of.
    pub fn of(step: &Step, names: &mut Names) -> Self {
        let bytes = |text: Option<&str>| {
            let bytes = text.and_then(|text| Bytes::parse(text, 1).ok());
            positive(bytes.map(|bytes| bytes.0))
        };
        let usage = &step.usage;
        let disk = |total: &Tres, most: &Known<Bytes>| {
            let total = total.get("fs/disk").and_then(|text| Bytes::parse(text, 1).ok());
            Maybe::from(total.or(most.get()).map(|bytes| bytes.0))
        };
        let percent = usage.total.get("gres/gpuutil").or_else(|| usage.average.get("gres/gpuutil"));
        let gpu_memory = bytes(usage.total.get("gres/gpumem"));
        let percent = Maybe::from(percent.and_then(|text| text.parse().ok()));
        Self {
            id: names.intern(&step.id.0),
            kind: if step.id.is_extern() { StepKind::Extern } else { StepKind::Work },
            failed: is_failed(step.state.base, step.exit.get()),
            out_of_memory: is_out_of_memory(step.state.base, step.exit.get()),
            started: seconds(&step.started),
            elapsed: step.elapsed.get().map(whole_seconds).into(),
            cpus: small(&step.cpus),
            nodes: small(&step.nodes),
            tasks: small(&step.tasks),
            gpus: step.allocated.gpus().and_then(|gpus| u32::try_from(gpus).ok()).into(),
            node_list: step.node_list.as_deref().and_then(|list| names.intern_some(list)),
            gpu_percent: busy(percent, gpu_memory),
            cpu_millis: cpu(step.cpu_time.get(), usage.total.get("cpu")),
            task_memory: positive(step.max_rss.get().map(|bytes| bytes.0)),
            total_memory: bytes(usage.total.get("mem")),
            gpu_memory,
            read: disk(&usage.total, &usage.read),
            written: disk(&usage.total_out, &usage.written),
            joules: positive(usage.energy.get()),
        }
    }

    /// The most that it can have used on one of its nodes, as far as is known.
    fn on_one_node(&self) -> Maybe<u64> {
        let spread = self.total_memory.get().map(|total| {
            let tasks = u64::from(self.tasks.get().unwrap_or(1).max(1));
            let nodes = u64::from(self.nodes.get().unwrap_or(1).max(1));
            // Three tasks on two nodes: one has two of them.
            let share = u128::from(total) * u128::from(tasks.div_ceil(nodes)) / u128::from(tasks);
            u64::try_from(share).unwrap_or(u64::MAX - 1)
        });
        self.task_memory.max(spread.into())
    }

    fn is_work(&self) -> bool {
        self.kind == StepKind::Work
    }
}

/// Whether the kernel killed for memory: the state says so, or Slurm's own word among the signals.
pub fn is_out_of_memory(state: BaseState, exit: Option<Exit>) -> bool {
    state == BaseState::OutOfMemory || exit.is_some_and(|exit| exit.signal == 125)
}

/// A use of no GPU beside no GPU memory is how it prints what was not measured.
pub fn busy(percent: Maybe<u32>, memory: Maybe<u64>) -> Maybe<u32> {
    if percent.get() == Some(0) && !memory.is_some() { Maybe::NONE } else { percent }
}

/// CPU time; what the resource list says where the field itself was lost.
pub(super) fn cpu(field: Option<Span>, listed: Option<&str>) -> Maybe<u64> {
    let field = field.map(Span::as_millis);
    if field.is_some_and(|millis| millis > 0) {
        return field.into();
    }
    let listed = listed.and_then(|text| Span::parse_clock(text).ok()).map(Span::as_millis);
    Maybe::from(listed.filter(|millis| *millis > 0).or(field))
}

pub(super) fn positive(number: Option<u64>) -> Maybe<u64> {
    number.filter(|number| *number > 0).into()
}

pub(super) fn small(count: &Known<u64>) -> Maybe<u32> {
    count.get().and_then(|count| u32::try_from(count).ok()).into()
}

/// A moment in epoch seconds; those before 1970 and after 2105 are nobody's.
pub(super) fn seconds(moment: &Known<jiff::Timestamp>) -> Maybe<u32> {
    moment.get().and_then(|moment| u32::try_from(moment.as_second()).ok()).into()
}

pub(super) fn whole_seconds(span: Span) -> u32 {
    u32::try_from(span.as_seconds()).unwrap_or(u32::MAX - 1)
}

impl Run {
    /// Adds up what its steps used. Each step counts once, however often it is given.
    pub fn add_steps(&mut self, steps: &mut Vec<StepUse>) {
        // Of two records of one step that which says more was written later.
        let order = |step: &StepUse| {
            let amount = (step.elapsed.get(), step.cpu_millis.get(), step.task_memory.get());
            let more = (step.total_memory.get(), step.gpu_percent.get(), step.gpu_memory.get());
            let moved = (step.read.get(), step.written.get(), step.joules.get());
            let shape = (step.cpus.get(), step.nodes.get(), step.tasks.get(), step.gpus.get());
            let end = (step.failed, step.out_of_memory);
            (step.id, step.started.get(), Reverse((amount, more, moved, shape, end)))
        };
        steps.sort_unstable_by_key(order);
        steps.dedup_by_key(|step| (step.id, step.started.get()));
        if steps.is_empty() {
            return;
        }
        // Those of work first; the order within does not matter from here on.
        steps.sort_by_key(|step| step.kind);
        let work = &steps[..steps.partition_point(StepUse::is_work)];
        let counted = if work.is_empty() { &steps[..] } else { work };
        let sum = |what: fn(&StepUse) -> Maybe<u64>| {
            counted.iter().fold(Maybe::NONE, |sum, step| what(step).plus(sum))
        };
        let most = |what: fn(&StepUse) -> Maybe<u64>| {
            work.iter().fold(Maybe::NONE, |most, step| what(step).max(most))
        };
        self.cpu_millis = sum(|step| step.cpu_millis).or(self.cpu_millis);
        self.read = sum(|step| step.read);
        self.written = sum(|step| step.written);
        self.joules = self.joules.or(sum(|step| step.joules));
        self.gpu_memory = most(|step| step.gpu_memory);
        self.tasks = Maybe::from(work.iter().filter_map(|step| step.tasks.get()).max());
        self.longest_step = Maybe::from(work.iter().filter_map(|step| step.elapsed.get()).max());
        let failed = work.iter().filter(|step| step.failed).count();
        self.failed_steps = Maybe::from(u32::try_from(failed).ok());
        self.out_of_memory |= work.iter().any(|step| step.out_of_memory);
        self.gpu_permille = self.gpu_use_of(work);
        self.add_memory(work, steps);
    }

    fn add_memory(&mut self, work: &[StepUse], steps: &[StepUse]) {
        let peak = |steps: &mut dyn Iterator<Item = &StepUse>| {
            steps.fold(Maybe::NONE, |most: Maybe<u64>, step| most.max(step.task_memory))
        };
        let of_work = peak(&mut work.iter());
        let of_extern = peak(&mut steps.iter().filter(|step| !step.is_work()));
        // A shell that somebody opened on the node counts; a sum beyond the limit while the work
        // stays within it is a fault of the sampler.
        let limit = self.memory_per_node();
        let fits = |memory: Maybe<u64>| {
            memory.get().zip(limit).is_none_or(|(memory, limit)| memory <= limit)
        };
        let believed = fits(of_extern) || !fits(of_work);
        self.task_memory = if believed { of_work.max(of_extern) } else { of_work };
        let footprint = footprint(work, self.nodes);
        self.node_memory = if believed { footprint.max(of_extern) } else { footprint };
    }

    /// The share of its GPUs' time that they were busy, in thousandths.
    fn gpu_use_of(&self, work: &[StepUse]) -> Maybe<u16> {
        let (Some(gpus), Some(elapsed)) = (self.gpus.get(), self.elapsed.get()) else {
            return Maybe::NONE;
        };
        let held = u128::from(gpus) * u128::from(elapsed.max(1));
        let busy = work.iter().filter_map(|step| {
            Some(u128::from(step.gpu_percent.get()?) * u128::from(step.elapsed.get()?))
        });
        let busy: Vec<u128> = busy.collect();
        if held == 0 || busy.is_empty() {
            return Maybe::NONE;
        }
        let permille = (busy.iter().sum::<u128>() * 10 + held / 2) / held;
        Maybe::some(u16::try_from(permille.min(1000)).unwrap_or(1000))
    }
}

/// The most memory that steps can have used at one time on one node.
///
/// Steps of the same list of nodes share them; steps on all nodes of the job share them with each.
fn footprint(work: &[StepUse], nodes: Maybe<u32>) -> Maybe<u64> {
    // Most jobs have one step.
    if let [only] = work {
        return only.on_one_node();
    }
    let mut lists: HashMap<Option<Symbol>, Vec<&StepUse>> = HashMap::new();
    let mut everywhere = Vec::new();
    for step in work.iter().filter(|step| step.on_one_node().is_some()) {
        if step.nodes.is_some() && step.nodes == nodes {
            everywhere.push(step);
        } else {
            lists.entry(step.node_list).or_default().push(step);
        }
    }
    let most = lists.into_values().map(at_one_time);
    let most = most.fold(Maybe::NONE, |most: Maybe<u64>, list| most.max(list));
    most.plus(at_one_time(everywhere))
}

/// The most memory that steps on the same nodes can have used at one time. One whose span is not
/// known is taken to have run beside all others.
fn at_one_time(mut steps: Vec<&StepUse>) -> Maybe<u64> {
    steps.sort_unstable_by_key(|step| step.started.get());
    let (mut running, mut now, mut always) = (BinaryHeap::new(), 0_u64, 0_u64);
    let mut most = None;
    for step in steps {
        let memory = step.on_one_node().get().unwrap_or(0);
        let (Some(start), Some(elapsed)) = (step.started.get(), step.elapsed.get()) else {
            always = always.saturating_add(memory);
            most = most.max(Some(0));
            continue;
        };
        while let Some(Reverse((end, ended))) = running.peek().copied()
            && end <= start
        {
            running.pop();
            now -= ended;
        }
        // Two that began in the same second ran side by side, however short they were.
        running.push(Reverse((start.saturating_add(elapsed.max(1)), memory)));
        now = now.saturating_add(memory);
        most = most.max(Some(now));
    }
    Maybe::from(most.map(|most| most.saturating_add(always).min(u64::MAX - 1)))
}
