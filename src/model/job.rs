//! One run of a job, with its steps, as the scheduler recorded it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::node::is_slice;
use super::{BaseState, Bytes, Drawn, Exit, JobId, Known, NodeUse, Span, State, StepId, Tres};

/// What an amount of memory is counted per.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    /// The whole job.
    Job,
    /// Each node.
    Node,
    /// Each allocated CPU.
    Cpu,
}

/// A memory request with its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The amount.
    pub bytes: Bytes,
    /// What it is counted per.
    pub scope: MemoryScope,
}

/// Where the record came from, and so how far it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The accounting database.
    Accounting,
    /// The controller, which forgets a job minutes after its end and knows no steps.
    Controller,
    /// The command line: logs without accounting.
    Given,
}

/// One run (incarnation) of one job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// The id as users write it.
    pub id: JobId,
    /// The scheduler's own id of this array task or component, where it differs.
    pub raw_id: Known<u64>,
    /// The name; empty where it is not known.
    #[serde(serialize_with = "known_name")]
    pub name: String,
    /// The owner's login name.
    pub user: Option<String>,
    /// The owner's numeric id.
    pub uid: Known<u64>,
    /// The account charged.
    pub account: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The partition, or the comma list asked for while pending.
    pub partition: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The state.
    pub state: State,
    /// How the batch script exited.
    pub exit: Known<Exit>,
    /// The highest exit of the job's steps.
    pub derived_exit: Known<Exit>,
    /// Why it waits, or waited; `None` when the scheduler gave none.
    pub reason: Option<String>,
    /// Submission.
    pub submitted: Known<Timestamp>,
    /// When it could first have started.
    pub eligible: Known<Timestamp>,
    /// Start of this run; not gathered when it never started.
    pub started: Known<Timestamp>,
    /// End of this run.
    pub ended: Known<Timestamp>,
    /// Wall time.
    pub elapsed: Known<Span>,
    /// For how long of that span it was suspended; the wall time leaves it out.
    pub suspended: Known<Span>,
    /// The time limit.
    pub limit: Known<Span>,
    /// CPU time used by all steps.
    pub cpu_time: Known<Span>,
    /// Joules that its nodes drew meanwhile; not gathered where the site has no meter.
    pub energy: Known<u64>,
    /// Whether it had its nodes to itself.
    pub exclusive: Known<bool>,
    /// The memory request.
    pub requested_memory: Known<Memory>,
    /// Nodes allocated.
    pub nodes: Known<u64>,
    /// CPUs allocated.
    pub cpus: Known<u64>,
    /// What was asked for.
    pub requested: Tres,
    /// What was allocated.
    pub allocated: Tres,
    /// The nodes, in the scheduler's own compressed form.
    pub node_list: Option<String>,
    /// The node whose failure ended the run.
    pub failed_node: Option<String>,
    /// Features asked for.
    pub constraints: Option<String>,
    /// How often it was requeued.
    pub restarts: Known<u64>,
    /// The submission command.
    pub submit_line: Option<String>,
    /// The working directory.
    pub work_dir: Option<String>,
    /// Standard output as recorded, `%` patterns not expanded.
    pub stdout: Option<String>,
    /// Standard error as recorded, `%` patterns not expanded.
    pub stderr: Option<String>,
    /// The batch script's path, where the controller still knows it.
    pub command: Option<String>,
    /// The owner's comment.
    pub comment: Option<String>,
    /// What the site's own programs noted about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_comment: Option<String>,
    /// What a monitoring of the site measured on its nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<NodeUse>,
    /// What this job waits for.
    pub dependency: Option<String>,
    /// The steps, in the order recorded.
    pub steps: Vec<Step>,
    /// Earlier runs of the same job, oldest first.
    pub earlier: Vec<Job>,
    /// What else is recorded, by the scheduler's own names and as it printed it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<String, String>,
    /// Where the record came from.
    pub source: Source,
}

/// What is not known is null, not an empty text.
fn known_name<S: serde::Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    Some(name).filter(|name| !name.is_empty()).serialize(serializer)
}

impl Job {
    /// A record that says nothing yet but its id, state and source.
    pub fn bare(id: JobId, state: State, source: Source) -> Self {
        Self {
            id,
            raw_id: Known::NotGathered,
            name: String::new(),
            user: None,
            uid: Known::NotGathered,
            account: None,
            cluster: None,
            partition: None,
            qos: None,
            state,
            exit: Known::NotGathered,
            derived_exit: Known::NotGathered,
            reason: None,
            submitted: Known::NotGathered,
            eligible: Known::NotGathered,
            started: Known::NotGathered,
            ended: Known::NotGathered,
            elapsed: Known::NotGathered,
            suspended: Known::NotGathered,
            limit: Known::NotGathered,
            cpu_time: Known::NotGathered,
            energy: Known::NotGathered,
            exclusive: Known::NotGathered,
            requested_memory: Known::NotGathered,
            nodes: Known::NotGathered,
            cpus: Known::NotGathered,
            requested: Tres::default(),
            allocated: Tres::default(),
            node_list: None,
            failed_node: None,
            constraints: None,
            restarts: Known::NotGathered,
            submit_line: None,
            work_dir: None,
            stdout: None,
            stderr: None,
            command: None,
            comment: None,
            admin_comment: None,
            measured: Vec::new(),
            dependency: None,
            steps: Vec::new(),
            earlier: Vec::new(),
            recorded: BTreeMap::new(),
            source,
        }
    }

    /// Changes every text that somebody other than the scheduler may have written: names, commands,
    /// paths, comments; those of its steps and earlier runs too.
    pub fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        change(&mut self.name);
        let texts = [
            &mut self.reason,
            &mut self.constraints,
            &mut self.submit_line,
            &mut self.work_dir,
            &mut self.stdout,
            &mut self.stderr,
            &mut self.command,
            &mut self.comment,
            &mut self.admin_comment,
            &mut self.dependency,
        ];
        texts.into_iter().flatten().for_each(&mut *change);
        self.recorded.values_mut().for_each(&mut *change);
        for step in &mut self.steps {
            change(&mut step.name);
            let texts = [&mut step.submit_line, &mut step.stdout, &mut step.stderr];
            texts.into_iter().flatten().for_each(&mut *change);
            step.recorded.values_mut().for_each(&mut *change);
        }
        for earlier in &mut self.earlier {
            earlier.each_text(change);
        }
    }

    /// Whether the run ever held nodes: a refused or never started job did not, though a job that
    /// was cancelled while it waited has a start (its end).
    pub fn has_started(&self) -> bool {
        let ran = self.elapsed.get().is_some_and(|elapsed| elapsed > Span::default());
        self.started.is_value() && (ran || self.node_list.is_some())
            || self.steps.iter().any(|step| step.elapsed.is_value())
    }

    /// Whether it waits to run. The record of a run that was requeued is that of a run: its job waits
    /// again, under a record of its own.
    pub fn waits(&self) -> bool {
        let ran = self.elapsed.get().is_some_and(|elapsed| elapsed > Span::default());
        self.state.base == BaseState::Pending && !(ran && self.state.text.starts_with("REQUEUED"))
    }

    /// GPUs allocated, or asked for where nothing is allocated yet.
    pub fn gpus(&self) -> Option<u64> {
        if self.allocated.is_empty() { self.requested.gpus() } else { self.allocated.gpus() }
    }

    /// The most that one task of one step used, with that step.
    pub fn peak_memory(&self) -> Option<(Bytes, &Step)> {
        self.steps
            .iter()
            .filter(|step| !step.id.is_extern())
            .filter_map(|step| Some((step.max_rss.get()?, step)))
            .max_by_key(|(rss, _)| *rss)
    }

    /// The share of the time of its GPUs that they were busy, as measured on the nodes.
    pub fn measured_gpu_use(&self) -> Option<f64> {
        let gpus = self.measured.iter().flat_map(|node| &node.gpus);
        let shares: Vec<f64> = gpus.filter_map(|gpu| gpu.percent).collect();
        #[expect(clippy::cast_precision_loss, reason = "GPUs of a job are few")]
        let count = shares.len() as f64;
        (count > 0.0).then(|| shares.iter().sum::<f64>() / count / 100.0)
    }

    /// The energy that was recorded for it.
    pub fn drawn(&self) -> Option<Drawn> {
        let suspended = self.suspended.get().map(Span::as_seconds);
        Drawn::of(self.energy.get(), self.exclusive.get(), suspended, self.node_seconds())
    }

    /// Nodes times seconds that it held them, whole or in part.
    pub fn node_seconds(&self) -> Option<u64> {
        let nodes = self.allocated.count("node").or(self.nodes.get())?;
        Some(nodes.saturating_mul(self.elapsed.get()?.as_seconds()))
    }

    /// How many GPUs it held that none of its steps ever touched: all were measured, and every number
    /// is zero. `None` where anything was used, or where any step was not measured.
    pub fn unused_gpus(&self) -> Option<u64> {
        let gpus = self.allocated.gpus().filter(|gpus| *gpus > 0)?;
        // What a part of a GPU does is not measured: it prints as zero.
        let is_part = self.allocated.gpu_type().is_some_and(|model| is_slice(&model));
        let mut own = self.steps.iter().filter(|step| !step.id.is_extern()).peekable();
        own.peek()?;
        let unused = |step: &Step| {
            let none = |name| step.usage.total.get(name) == Some("0");
            none("gres/gpuutil") && none("gres/gpumem")
        };
        let idle = own.all(unused) && self.measured_gpu_use().unwrap_or(0.0) <= 0.0;
        (idle && !is_part).then_some(gpus)
    }

    /// The memory that one node may use, from what was allocated.
    pub fn memory_per_node(&self) -> Option<Bytes> {
        let total = self.allocated.memory().or_else(|| self.requested.memory())?;
        Some(Bytes(total.0 / self.nodes.get().filter(|nodes| *nodes > 0)?))
    }
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The step.
    pub id: StepId,
    /// Its name: the program, or `batch`.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// Its exit; not gathered where the scheduler leaves it empty.
    pub exit: Known<Exit>,
    /// Its start.
    pub started: Known<Timestamp>,
    /// Its end.
    pub ended: Known<Timestamp>,
    /// Wall time.
    pub elapsed: Known<Span>,
    /// CPU time.
    pub cpu_time: Known<Span>,
    /// Tasks.
    pub tasks: Known<u64>,
    /// Nodes.
    pub nodes: Known<u64>,
    /// CPUs.
    pub cpus: Known<u64>,
    /// The nodes it ran on.
    pub node_list: Option<String>,
    /// The most that one task used, as sampled; not gathered before the first sample.
    pub max_rss: Known<Bytes>,
    /// The node of that task.
    pub max_rss_node: Option<String>,
    /// The command line of the step.
    pub submit_line: Option<String>,
    /// Standard output as recorded, patterns not expanded.
    pub stdout: Option<String>,
    /// Standard error as recorded, patterns not expanded.
    pub stderr: Option<String>,
    /// What it was given.
    pub allocated: Tres,
    /// What else was measured of it, where that was asked for.
    #[serde(skip_serializing_if = "Usage::is_unasked")]
    pub usage: Usage,
    /// What else is recorded, by the scheduler's own names and as it printed it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<String, String>,
}

impl Step {
    /// A record that says nothing yet but its id and state.
    pub fn bare(id: StepId, state: State) -> Self {
        Self {
            id,
            name: String::new(),
            state,
            exit: Known::NotGathered,
            started: Known::NotGathered,
            ended: Known::NotGathered,
            elapsed: Known::NotGathered,
            cpu_time: Known::NotGathered,
            tasks: Known::NotGathered,
            nodes: Known::NotGathered,
            cpus: Known::NotGathered,
            node_list: None,
            max_rss: Known::NotGathered,
            max_rss_node: None,
            submit_line: None,
            stdout: None,
            stderr: None,
            allocated: Tres::default(),
            usage: Usage::default(),
            recorded: BTreeMap::new(),
        }
    }
}

/// What was measured of the tasks of one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Usage {
    /// By resource, the sum over the tasks: what they took in.
    pub total: Tres,
    /// By resource, the most that one task took in.
    pub most: Tres,
    /// By resource, the mean over the tasks.
    pub average: Tres,
    /// By resource, the sum over the tasks: what they put out.
    pub total_out: Tres,
    /// CPU time in the program.
    pub user_cpu: Known<Span>,
    /// CPU time in the kernel.
    pub system_cpu: Known<Span>,
    /// CPU time of a task, on average.
    pub average_cpu: Known<Span>,
    /// CPU time of the task that used least.
    pub least_cpu: Known<Span>,
    /// The node of that task.
    pub least_cpu_node: Option<String>,
    /// The most memory of a task, on average.
    pub average_rss: Known<Bytes>,
    /// Page faults of the task that had most.
    pub page_faults: Known<u64>,
    /// The most bytes that one task read.
    pub read: Known<Bytes>,
    /// The most bytes that one task wrote.
    pub written: Known<Bytes>,
    /// Joules that its nodes drew meanwhile.
    pub energy: Known<u64>,
}

impl Usage {
    /// Whether it holds nothing.
    fn is_unasked(&self) -> bool {
        *self == Self::default()
    }
}
