//! A cluster at one instant: all that decides whether, and when, a job can run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Bytes, JobId, Known, Node, Queue, Span, State, Tres};

/// Everything that one reading of a cluster gave.
///
/// What could not be read is empty **and** stands in [`Cluster::failures`]: an empty answer is not
/// an answer that could not be had.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cluster {
    /// The scheduler.
    pub backend: &'static str,
    /// The cluster's name.
    pub name: Option<String>,
    /// When it was read.
    pub taken_at: Timestamp,
    /// Who asks.
    pub identity: Identity,
    /// How the scheduler is set up.
    pub controller: Controller,
    /// The nodes, by name.
    pub nodes: Vec<Node>,
    /// The queues, in the scheduler's order.
    pub queues: Vec<Queue>,
    /// The qualities of service.
    pub qos: Vec<Qos>,
    /// The caller's associations on this cluster.
    pub associations: Vec<Association>,
    /// The accounts, and the caller's places in them, with what is used of their limits.
    pub account_use: Vec<AccountUse>,
    /// The reservations, also of the future.
    pub reservations: Vec<Reservation>,
    /// The jobs that run and wait, everybody's as far as the site shows them.
    pub jobs: Vec<QueuedJob>,
    /// The licences.
    pub licences: Vec<Licence>,
    /// What could not be read.
    pub failures: Vec<ReadFailure>,
}

/// One of the things that are read of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// Who asks.
    Identity,
    /// How the scheduler is set up.
    Controller,
    /// Nodes.
    Nodes,
    /// Queues.
    Queues,
    /// Qualities of service.
    Qos,
    /// The caller's associations.
    Associations,
    /// What is used of the limits of accounts.
    Usage,
    /// Reservations.
    Reservations,
    /// Jobs.
    Jobs,
}

/// A thing that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadFailure {
    /// Which.
    pub reading: Reading,
    /// Why, in the scheduler's words.
    pub message: String,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Identity {
    /// The login name.
    pub user: Option<String>,
    /// The numeric id.
    pub uid: Known<u64>,
    /// The Unix groups by name.
    pub groups: Vec<String>,
    /// The machine from which jobs would be submitted.
    pub host: Option<String>,
}

/// How the scheduler is set up, as far as that decides what a job can have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Controller {
    /// Its version.
    pub version: Option<String>,
    /// Whether memory is given out, or only cores and GPUs.
    pub gives_out_memory: Known<bool>,
    /// Memory of a job that names none, per CPU.
    pub default_memory_per_cpu: Known<Bytes>,
    /// Memory of a job that names none, per node.
    pub default_memory_per_node: Known<Bytes>,
    /// The most memory of a job per CPU.
    pub max_memory_per_cpu: Known<Bytes>,
    /// The most memory of a job per node.
    pub max_memory_per_node: Known<Bytes>,
    /// What accounting enforces: `associations`, `limits`, `qos`, `safe`.
    pub enforces: Known<Vec<String>>,
    /// Whether a job over a queue's limits is refused at once (`ALL`, `ANY`) or waits (`NO`).
    pub refuses_over_limit: Known<bool>,
    /// The settings as printed, for questions that are asked seldom.
    pub settings: Vec<(String, String)>,
}

/// Limits of one scope: a job, a user, an account, a whole group.
///
/// A limit that is not set is [`Known::NotGathered`], or not in its list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Caps {
    /// Resources at a time.
    pub tres: Tres,
    /// Resource-minutes in all.
    pub minutes: Tres,
    /// Resource-minutes that running jobs may still take.
    pub running_minutes: Tres,
    /// Running jobs.
    pub jobs: Known<u64>,
    /// Jobs that run or wait.
    pub submitted: Known<u64>,
    /// Wall time: of one job, or of all together.
    pub wall: Known<Span>,
}

/// A quality of service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Qos {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: Known<u64>,
    /// Its flags, such as `DenyOnLimit` and `OverPartQOS`.
    pub flags: Vec<String>,
    /// By how much what its jobs use counts against budgets, in parts of [`Qos::WHOLE`].
    #[serde(default, skip_serializing_if = "not_gathered")]
    pub usage_factor: Known<u64>,
    /// Limits of one job.
    pub job: Caps,
    /// The most that one job may have on one node.
    pub node: Tres,
    /// The least that one job must ask for.
    pub least: Tres,
    /// Limits of one user.
    pub user: Caps,
    /// Limits of one account.
    pub account: Caps,
    /// Limits of all together.
    pub group: Caps,
    /// What the controller has counted against the limits of all together; `None` where it was not
    /// asked or did not tell.
    pub group_used: Option<Caps>,
}

impl Qos {
    /// A usage factor of one.
    pub const WHOLE: u64 = 1_000_000;
}

fn not_gathered(factor: &Known<u64>) -> bool {
    *factor == Known::NotGathered
}

/// The right of the caller to charge an account, perhaps in one queue only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Association {
    /// The cluster.
    pub cluster: String,
    /// The account.
    pub account: String,
    /// The queue, where the right is for one only.
    pub partition: Option<String>,
    /// The qualities of service that may be asked for.
    pub qos: Vec<String>,
    /// The one that a job gets which asks for none.
    pub default_qos: Option<String>,
    /// Limits of one job, and of the caller's jobs here; what accounts above say is in them.
    pub job: Caps,
    /// The most that one job may have on one node.
    pub node: Tres,
    /// Limits of all the caller's jobs here together.
    pub group: Caps,
}

/// A place in the tree of accounts: an account, or the caller in one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountUse {
    /// The account.
    pub account: String,
    /// The user, where this is the caller's own place.
    pub user: Option<String>,
    /// The queue, where it is for one only.
    pub partition: Option<String>,
    /// The account above.
    pub parent: Option<String>,
    /// Whether jobs that name no account are charged here.
    pub is_default: bool,
    /// Limits of one job here, and how many may run at a time.
    pub job: Caps,
    /// The most that one job here may have on one node.
    pub node: Tres,
    /// Limits of all jobs here together.
    pub limits: Caps,
    /// What is used of them.
    pub used: Caps,
}

/// Nodes, cores or licences that are kept for somebody, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reservation {
    /// Its name.
    pub name: String,
    /// From when.
    pub start: Known<Timestamp>,
    /// Until when.
    pub end: Known<Timestamp>,
    /// Its nodes, as a compressed list.
    pub node_list: String,
    /// How many nodes.
    pub node_count: Known<u64>,
    /// How many cores.
    pub cores: Known<u64>,
    /// Where it holds only some cores of its nodes: how many CPUs of each.
    pub parts: Vec<(String, u64)>,
    /// The queue, where it is of one.
    pub partition: Option<String>,
    /// Users it is for; with a `-` before the name: not for.
    pub users: Vec<String>,
    /// Accounts it is for; with a `-`: not for.
    pub accounts: Vec<String>,
    /// Unix groups it is for; with a `-`: not for.
    pub groups: Vec<String>,
    /// Qualities of service it is for; with a `-`: not for.
    pub qos: Vec<String>,
    /// Licences it holds.
    pub licences: Vec<(String, u64)>,
    /// Its flags, such as `MAINT`, `MAGNETIC`, `FLEX`.
    pub flags: Vec<String>,
    /// Whether it is in force now.
    pub is_active: bool,
}

impl Controller {
    /// A setting as printed.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Reservation {
    /// Whether it holds only some cores of its nodes.
    pub fn is_part_of_nodes(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// Whether it is for maintenance, and so for no job.
    pub fn is_maintenance(&self) -> bool {
        self.has("MAINT")
    }
}

/// A job that runs or waits.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedJob {
    /// Its id; one record may stand for many tasks that wait.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub user: Option<String>,
    /// The account charged.
    pub account: Option<String>,
    /// The queue; while it waits perhaps a comma list.
    pub partition: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The state.
    pub state: State,
    /// Its nodes, as a compressed list.
    pub node_list: Option<String>,
    /// How many nodes it has or wants.
    pub nodes: Known<u64>,
    /// How many CPUs it has or wants.
    pub cpus: Known<u64>,
    /// What it has, or wants while it waits.
    pub tres: Tres,
    /// When it started; while it waits, when the scheduler expects it to.
    pub start: Known<Timestamp>,
    /// When its time limit ends it; while it waits, by the scheduler's guess.
    pub end: Known<Timestamp>,
    /// Its time limit.
    pub limit: Known<Span>,
    /// Why it waits.
    pub reason: Option<String>,
    /// Its priority.
    pub priority: Known<u64>,
    /// Licences it has or wants.
    pub licences: Vec<(String, u64)>,
    /// The reservation it runs in, or wants to; empty for none.
    pub reservation: Known<String>,
    /// Nodes that it must have, as a compressed list.
    pub wanted_nodes: Option<String>,
    /// How it shares nodes, in the scheduler's word: `OK`, `NO` (alone on its nodes), `YES`.
    pub sharing: Option<String>,
}

/// What a job has of some of its nodes, of each the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The nodes, as a compressed list.
    pub node_list: String,
    /// CPUs on each.
    pub cpus: Known<u64>,
    /// Memory on each.
    pub memory: Known<Bytes>,
    /// GPUs on each.
    pub gpus: Known<u64>,
}

/// A licence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Licence {
    /// Its name, as in `--licenses=NAME`.
    pub name: String,
    /// How many there are.
    pub total: u64,
    /// How many running jobs hold; not known where jobs could not be read.
    pub used: Known<u64>,
}

impl Cluster {
    /// Whether something could not be read.
    pub fn lacks(&self, reading: Reading) -> bool {
        self.failures.iter().any(|failure| failure.reading == reading)
    }

    /// A queue by its name.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// A quality of service by its name.
    pub fn qos_named(&self, name: &str) -> Option<&Qos> {
        self.qos.iter().find(|qos| qos.name.eq_ignore_ascii_case(name))
    }

    /// The caller's accounts, each once.
    pub fn accounts(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for association in &self.associations {
            if !names.contains(&association.account.as_str()) {
                names.push(&association.account);
            }
        }
        names
    }
}
