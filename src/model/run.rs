//! One run of one job in two hundred odd bytes: what a history of a million keeps of each.
//!
//! Holds what folds over many runs need, and only that; the full record of one job is
//! [`Job`]. Times are whole seconds, texts are symbols, a number that was not
//! measured is nothing and never zero. Every amount says what it is counted per.

mod flat;
mod history;
mod maybe;
mod names;
mod usage;

use super::{
    BaseState, Bytes, Drawn, Exit, Job, JobId, Known, Memory, MemoryScope, Source, Span, State,
    Step, StepId,
};

pub use flat::{FlatError, FlatField, SCHEMA as RUN_SCHEMA, fields as run_fields};
pub use history::{History, Owner, Rows};
pub use maybe::Maybe;
pub use names::{Names, Symbol};
pub use usage::{StepKind, StepUse, busy, is_failed, is_out_of_memory};

/// Which part of a job a run is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The whole job.
    Whole,
    /// A task of an array.
    Task(u32),
    /// A component of a heterogeneous job.
    Component(u32),
    /// Tasks of an array that wait in one record; the text between the brackets.
    Tasks(Symbol),
}

/// How long a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Allowance {
    /// It is not recorded.
    Unknown,
    /// As long as it likes.
    Unlimited,
    /// Seconds.
    Seconds(u32),
}

impl Allowance {
    /// The seconds, where there is a limit.
    pub fn seconds(self) -> Option<u32> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            _ => None,
        }
    }
}

/// One run (incarnation) of one job, task or component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The number that all parts of the job share.
    pub number: u32,
    /// Which part of the job.
    pub part: Part,
    /// The cluster.
    pub cluster: Option<Symbol>,
    /// The job's name.
    pub name: Option<Symbol>,
    /// The owner's login name.
    pub user: Option<Symbol>,
    /// The owner's numeric id.
    pub uid: Maybe<u32>,
    /// The account charged.
    pub account: Option<Symbol>,
    /// The partition, or the list asked for while it waits.
    pub partition: Option<Symbol>,
    /// The quality of service.
    pub qos: Option<Symbol>,
    /// The submission command.
    pub submit_line: Option<Symbol>,
    /// The working directory.
    pub work_dir: Option<Symbol>,
    /// The nodes, in the scheduler's compressed form.
    pub node_list: Option<Symbol>,
    /// The node whose failure ended it.
    pub failed_node: Option<Symbol>,
    /// Why it waits, or waited.
    pub reason: Option<Symbol>,
    /// The type of its GPUs; of several types all, with `+` between them.
    pub gpu_type: Option<Symbol>,
    /// The state.
    pub state: BaseState,
    /// The state as printed, with who cancelled it.
    pub state_text: Option<Symbol>,
    /// How the batch script exited.
    pub exit: Option<Exit>,
    /// The highest exit of its steps.
    pub derived_exit: Option<Exit>,
    /// Submission, in epoch seconds; of a requeued run that of its place in the queue.
    pub submitted: Maybe<u32>,
    /// When it could first have started, in epoch seconds.
    pub eligible: Maybe<u32>,
    /// Start, in epoch seconds.
    pub started: Maybe<u32>,
    /// End, in epoch seconds.
    pub ended: Maybe<u32>,
    /// Seconds of wall time, without those for which it was suspended.
    pub elapsed: Maybe<u32>,
    /// Seconds for which it was suspended.
    pub suspended: Maybe<u32>,
    /// The time limit.
    pub limit: Allowance,
    /// Nodes allocated.
    pub nodes: Maybe<u32>,
    /// CPUs allocated, as the scheduler counts them.
    pub cpus: Maybe<u32>,
    /// GPUs allocated; 0 where what was allocated is recorded and names none.
    pub gpus: Maybe<u32>,
    /// The most tasks of a step.
    pub tasks: Maybe<u32>,
    /// The memory request, with what it is counted per.
    pub requested_memory: Option<Memory>,
    /// Bytes of memory allocated, on all nodes together.
    pub allocated_memory: Maybe<u64>,
    /// The most bytes that one task used.
    pub task_memory: Maybe<u64>,
    /// The most bytes that were used on one node: its tasks, and steps side by side. At least
    /// `task_memory`; above the truth where the peaks of tasks did not coincide.
    pub node_memory: Maybe<u64>,
    /// CPU time of all work steps, in milliseconds.
    pub cpu_millis: Maybe<u64>,
    /// Seconds of the longest work step; a step may outlive the allocation by a moment.
    pub longest_step: Maybe<u32>,
    /// Share of the time of all its GPUs that they were busy, in thousandths.
    pub gpu_permille: Maybe<u16>,
    /// The most bytes of GPU memory that the tasks of one step used together.
    pub gpu_memory: Maybe<u64>,
    /// Joules that its nodes drew meanwhile: its own only where it had them to itself.
    pub joules: Maybe<u64>,
    /// Bytes read by all work steps.
    pub read: Maybe<u64>,
    /// Bytes written by all work steps.
    pub written: Maybe<u64>,
    /// How often the job was requeued.
    pub restarts: Maybe<u32>,
    /// Work steps that ended badly; nothing where steps were not asked for.
    pub failed_steps: Maybe<u32>,
    /// Whether the kernel killed a process of it for memory, by its own state or that of a step.
    pub out_of_memory: bool,
    /// Whether it had its nodes to itself.
    pub exclusive: Option<bool>,
    /// Whether a later run of the same job is in the history: it was requeued.
    pub earlier: bool,
    /// Whether its record is open but the scheduler knows no such job: its end was never recorded,
    /// and it counts in no total.
    pub stale: bool,
}

/// When a run counts as hung: it held its cores and did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Shorter runs have not had the time to show it, in seconds.
    pub least_seconds: u32,
    /// It kept fewer cores busy than this, in thousandths of one core.
    pub most_busy_permille: u32,
    /// It moved fewer bytes than this in a second: else it worked for the disks.
    pub most_bytes_per_second: u64,
}

impl Run {
    /// A record that says nothing yet but its id and state.
    pub fn bare(number: u32, part: Part, state: BaseState) -> Self {
        Self {
            number,
            part,
            cluster: None,
            name: None,
            user: None,
            uid: Maybe::NONE,
            account: None,
            partition: None,
            qos: None,
            submit_line: None,
            work_dir: None,
            node_list: None,
            failed_node: None,
            reason: None,
            gpu_type: None,
            state,
            state_text: None,
            exit: None,
            derived_exit: None,
            submitted: Maybe::NONE,
            eligible: Maybe::NONE,
            started: Maybe::NONE,
            ended: Maybe::NONE,
            elapsed: Maybe::NONE,
            suspended: Maybe::NONE,
            limit: Allowance::Unknown,
            nodes: Maybe::NONE,
            cpus: Maybe::NONE,
            gpus: Maybe::NONE,
            tasks: Maybe::NONE,
            requested_memory: None,
            allocated_memory: Maybe::NONE,
            task_memory: Maybe::NONE,
            node_memory: Maybe::NONE,
            cpu_millis: Maybe::NONE,
            longest_step: Maybe::NONE,
            gpu_permille: Maybe::NONE,
            gpu_memory: Maybe::NONE,
            joules: Maybe::NONE,
            read: Maybe::NONE,
            written: Maybe::NONE,
            restarts: Maybe::NONE,
            failed_steps: Maybe::NONE,
            out_of_memory: false,
            exclusive: None,
            earlier: false,
            stale: false,
        }
    }

    /// What a history keeps of a full record; its earlier runs are records of their own.
    pub fn of(job: &Job, names: &mut Names) -> Self {
        // An id that was read has numbers of 32 bits.
        let (number, part) = Part::of(&job.id, names).unwrap_or((u32::MAX, Part::Whole));
        let mut symbol = |text: Option<&str>| text.and_then(|text| names.intern_some(text));
        let mut run = Self {
            cluster: symbol(job.cluster.as_deref()),
            name: symbol(Some(&job.name)),
            user: symbol(job.user.as_deref()),
            uid: usage::small(&job.uid),
            account: symbol(job.account.as_deref()),
            partition: symbol(job.partition.as_deref()),
            qos: symbol(job.qos.as_deref()),
            submit_line: symbol(job.submit_line.as_deref()),
            work_dir: symbol(job.work_dir.as_deref()),
            node_list: symbol(job.node_list.as_deref()),
            failed_node: symbol(job.failed_node.as_deref()),
            reason: symbol(job.reason.as_deref()),
            gpu_type: symbol(job.allocated.gpu_type().as_deref()),
            state_text: symbol(Some(&job.state.text)),
            exit: job.exit.get(),
            derived_exit: job.derived_exit.get(),
            submitted: usage::seconds(&job.submitted),
            eligible: usage::seconds(&job.eligible),
            started: usage::seconds(&job.started),
            ended: usage::seconds(&job.ended),
            elapsed: job.elapsed.get().map(usage::whole_seconds).into(),
            suspended: job.suspended.get().map(usage::whole_seconds).into(),
            limit: match &job.limit {
                Known::Value(limit) => Allowance::Seconds(usage::whole_seconds(*limit)),
                Known::Unlimited => Allowance::Unlimited,
                _ => Allowance::Unknown,
            },
            nodes: usage::small(&job.nodes),
            cpus: usage::small(&job.cpus),
            gpus: if job.allocated.is_empty() {
                Maybe::NONE
            } else {
                let gpus = job.allocated.gpus().unwrap_or(0);
                u32::try_from(gpus).ok().into()
            },
            requested_memory: job.requested_memory.get(),
            allocated_memory: usage::positive(job.allocated.memory().map(|bytes| bytes.0)),
            cpu_millis: job.cpu_time.get().map(Span::as_millis).into(),
            joules: usage::positive(job.energy.get()),
            restarts: usage::small(&job.restarts),
            out_of_memory: usage::is_out_of_memory(job.state.base, job.exit.get()),
            exclusive: job.exclusive.get(),
            ..Self::bare(number, part, job.state.base)
        };
        let mut steps = job.steps.iter().map(|step| StepUse::of(step, names)).collect();
        run.add_steps(&mut steps);
        // What a monitoring measured stands in where accounting took no sample.
        let most = job.measured.iter().filter_map(|node| node.memory).max();
        run.node_memory = run.node_memory.or(usage::positive(most));
        let spent = job.measured.iter().try_fold(0_u64, |sum, node| {
            Some(sum.saturating_add(node.cpu_seconds?.saturating_mul(1000)).min(u64::MAX - 1))
        });
        run.cpu_millis = run.cpu_millis.or(usage::positive(spent));
        if let Some(share) = job.measured_gpu_use() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share from 0 to 1"
            )]
            let permille = (share.clamp(0.0, 1.0) * 1000.0).round() as u16;
            run.gpu_permille = Maybe::some(permille);
        }
        run
    }

    /// The part of the full record that says how it ended, as far as a history keeps it.
    pub fn as_job(&self, names: &Names) -> Job {
        let text = |symbol: Option<Symbol>| symbol.map(|symbol| names.get(symbol).to_owned());
        let moment = |second: Maybe<u32>| -> Known<jiff::Timestamp> {
            second.get().and_then(|at| jiff::Timestamp::from_second(i64::from(at)).ok()).into()
        };
        // Of steps only this is kept: that the kernel killed one for memory.
        let killed = self.out_of_memory && self.state != BaseState::OutOfMemory;
        let killed =
            killed.then(|| Step::bare(StepId("batch".into()), State::parse("OUT_OF_MEMORY")));
        let state = text(self.state_text).unwrap_or_else(|| self.state.word().to_owned());
        Job {
            exit: self.exit.into(),
            derived_exit: self.derived_exit.into(),
            reason: text(self.reason),
            started: moment(self.started),
            ended: moment(self.ended),
            elapsed: self.elapsed.get().map(|seconds| Span::seconds(seconds.into())).into(),
            limit: match self.limit {
                Allowance::Seconds(seconds) => Known::Value(Span::seconds(seconds.into())),
                Allowance::Unlimited => Known::Unlimited,
                Allowance::Unknown => Known::NotGathered,
            },
            cpus: self.cpus.get().map(u64::from).into(),
            node_list: text(self.node_list),
            failed_node: text(self.failed_node),
            steps: killed.into_iter().collect(),
            ..Job::bare(self.id(names), State::parse(&state), Source::Accounting)
        }
    }

    /// The id as people write it.
    pub fn id(&self, names: &Names) -> JobId {
        let part = match self.part {
            Part::Whole => super::id::Part::Whole,
            Part::Task(task) => super::id::Part::Task(u64::from(task)),
            Part::Component(component) => super::id::Part::Component(component),
            Part::Tasks(tasks) => super::id::Part::Tasks(names.get(tasks).to_owned()),
        };
        JobId { number: u64::from(self.number), part, cluster: None }
    }

    /// Whether it is over: nothing about it will change.
    pub fn is_ended(&self) -> bool {
        let waits = matches!(
            self.state,
            BaseState::Pending | BaseState::Running | BaseState::Suspended | BaseState::Other
        );
        // A run that was put back into the queue is over although its job waits.
        !waits || self.ended.is_some()
    }

    /// Whether it ever held nodes.
    pub fn has_started(&self) -> bool {
        let ran = self.elapsed.get().is_some_and(|elapsed| elapsed > 0);
        self.started.is_some() && (ran || self.node_list.is_some()) || self.longest_step.is_some()
    }

    /// Whether it ran and ended in a way that its owner did not want.
    pub fn is_failure(&self) -> bool {
        let bad = matches!(
            self.state,
            BaseState::Failed
                | BaseState::Timeout
                | BaseState::NodeFail
                | BaseState::BootFail
                | BaseState::Deadline
                | BaseState::OutOfMemory
        );
        bad && self.has_started()
    }

    /// Whether it ended as its script wanted.
    pub fn is_completed(&self) -> bool {
        self.state == BaseState::Completed
    }

    /// Who cancelled it, where that is recorded: a numeric id, or a name.
    pub fn cancelled_by<'n>(&self, names: &'n Names) -> Option<&'n str> {
        let (_, who) = names.get(self.state_text?).split_once(" by ")?;
        Some(who.trim())
    }

    /// CPUs times seconds that it held them.
    pub fn core_seconds(&self) -> Option<u64> {
        Some(u64::from(self.cpus.get()?) * u64::from(self.elapsed.get()?))
    }

    /// GPUs times seconds that it held them.
    pub fn gpu_seconds(&self) -> Option<u64> {
        Some(u64::from(self.gpus.get()?) * u64::from(self.elapsed.get()?))
    }

    /// Nodes times seconds that it held them, whole or in part.
    pub fn node_seconds(&self) -> Option<u64> {
        Some(u64::from(self.nodes.get()?) * u64::from(self.elapsed.get()?))
    }

    /// The energy that was recorded for it.
    pub fn drawn(&self) -> Option<Drawn> {
        let suspended = self.suspended.get().map(u64::from);
        Drawn::of(self.joules.get(), self.exclusive, suspended, self.node_seconds())
    }

    /// Seconds from when it could have started until it did.
    pub fn waited(&self) -> Option<u32> {
        let since = self.eligible.or(self.submitted).get()?;
        Some(self.started.get()?.saturating_sub(since))
    }

    /// CPUs of each task: what `--cpus-per-task` was, if the tasks were given all.
    pub fn cpus_per_task(&self) -> Option<u32> {
        let tasks = self.tasks.get().or(self.nodes.get()).unwrap_or(1).max(1);
        Some((self.cpus.get()? / tasks).max(1))
    }

    /// The share of its CPUs' time that they were busy, from 0 to 1; nothing where more is recorded
    /// than they can give.
    pub fn cpu_use(&self) -> Option<f64> {
        let seconds = self.elapsed.get()?.max(self.longest_step.get().unwrap_or(0));
        let held = f64::from(self.cpus.get()?) * f64::from(seconds);
        #[expect(clippy::cast_precision_loss, reason = "a share is told to three digits")]
        let used = self.cpu_millis.get()? as f64 / 1000.0;
        // Both ends of the span are whole seconds, and CPU time is counted for a moment longer.
        let most = held * 1.05 + 2.0 * f64::from(self.cpus.get()?);
        (held > 0.0 && used <= most).then(|| (used / held).min(1.0))
    }

    /// Cores that it kept busy on average.
    pub fn busy_cores(&self) -> Option<f64> {
        Some(self.cpu_use()? * f64::from(self.cpus.get()?))
    }

    /// The share of its GPUs' time that they were busy, from 0 to 1.
    pub fn gpu_use(&self) -> Option<f64> {
        self.gpu_permille.get().map(|permille| f64::from(permille) / 1000.0)
    }

    /// The bytes that it may use on one node: what was allocated, else what was asked for.
    pub fn memory_per_node(&self) -> Option<u64> {
        let nodes = u64::from(self.nodes.get().unwrap_or(1).max(1));
        let total = self.allocated_memory.get().map(|total| total / nodes);
        total.or_else(|| {
            let Memory { bytes: Bytes(bytes), scope } = self.requested_memory?;
            match scope {
                MemoryScope::Job => Some(bytes / nodes),
                MemoryScope::Node => Some(bytes),
                MemoryScope::Cpu => {
                    let cpus = u64::from(self.cpus.get()?);
                    Some(bytes.saturating_mul(cpus) / nodes)
                }
            }
        })
    }

    /// Whether it held its cores and did nothing; `None` where that was not measured.
    ///
    /// Measured by one core and not by all of them: one busy core of a hundred is low use, but no
    /// hang.
    pub fn is_hang(&self, idle: &Idle) -> Option<bool> {
        let elapsed = self.elapsed.get()?;
        if elapsed < idle.least_seconds || !self.is_ended() {
            return Some(false);
        }
        let used = self.cpu_millis.get()?;
        let moved = self.read.plus(self.written).get().unwrap_or(0) / u64::from(elapsed.max(1));
        let works_elsewhere =
            self.gpu_use().is_some_and(|busy| busy >= 0.01) || moved >= idle.most_bytes_per_second;
        // Milliseconds to a second of wall time are thousandths of a core.
        let busy = used / u64::from(elapsed.max(1));
        Some(busy < u64::from(idle.most_busy_permille) && !works_elsewhere)
    }
}

#[cfg(test)]
mod tests;
