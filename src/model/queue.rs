//! A queue (Slurm: partition): who may use it, and for what.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{Bytes, Known, Span, Tres};

/// One queue at one instant.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the scheduler's own")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether it takes and starts jobs.
    pub state: QueueState,
    /// Whether jobs that name none go here.
    pub is_default: bool,
    /// Whether it is not shown to everybody.
    pub is_hidden: bool,
    /// Whether only root may use it.
    pub is_root_only: bool,
    /// Whether a job needs a reservation here.
    pub needs_reservation: bool,
    /// Accounts that may use it.
    pub accounts: Allowed,
    /// Accounts that may not.
    pub denied_accounts: Vec<String>,
    /// Qualities of service that may be used here.
    pub qos: Allowed,
    /// Those that may not.
    pub denied_qos: Vec<String>,
    /// Unix groups that may use it.
    pub groups: Allowed,
    /// Nodes from which one may submit to it; a compressed list.
    pub submit_hosts: Allowed,
    /// The quality of service whose limits every job here has, too.
    pub limits_from: Option<String>,
    /// The longest time limit.
    pub max_time: Known<Span>,
    /// The time limit of a job that names none.
    pub default_time: Known<Span>,
    /// The fewest nodes of a job.
    pub min_nodes: Known<u64>,
    /// The most nodes of a job.
    pub max_nodes: Known<u64>,
    /// The most CPUs of a job on one node.
    pub max_cpus_per_node: Known<u64>,
    /// The most memory of a job on one node.
    pub max_memory_per_node: Known<Bytes>,
    /// The most memory of a job per CPU.
    pub max_memory_per_cpu: Known<Bytes>,
    /// Memory of a job that names none, per node.
    pub default_memory_per_node: Known<Bytes>,
    /// Memory of a job that names none, per CPU.
    pub default_memory_per_cpu: Known<Bytes>,
    /// Memory of a job that names none, per GPU.
    pub default_memory_per_gpu: Known<Bytes>,
    /// CPUs of a job that names none, per GPU.
    pub default_cpus_per_gpu: Known<u64>,
    /// How jobs share nodes and cores.
    pub sharing: Sharing,
    /// Whether a node is one user's at a time.
    pub is_one_user_per_node: bool,
    /// Queues of a higher tier are served first, and may preempt.
    pub tier: Known<u64>,
    /// Its nodes, as a compressed list.
    pub node_list: String,
    /// How many nodes it says it has.
    pub node_count: Known<u64>,
    /// How many CPUs it says it has.
    pub cpu_count: Known<u64>,
    /// What it says it has of everything.
    pub tres: Tres,
}

impl Queue {
    /// Whether it matters here what is charged.
    pub fn has_lists(&self) -> bool {
        let everybody = [&self.accounts, &self.qos].map(|allowed| *allowed == Allowed::Everybody);
        everybody != [true; 2] || !(self.denied_accounts.is_empty() && self.denied_qos.is_empty())
    }

    /// Whether a job of an ordinary user goes here as far as the queue's own lists tell: it takes and
    /// starts jobs, hides from nobody, and lets these in. Where a list is of something that is not
    /// known, it lets nobody in.
    pub fn lets_in(&self, account: Option<&str>, qos: Option<&str>) -> bool {
        let passes =
            |allowed: &Allowed, denied: &[String], name: Option<&str>| match (allowed, name) {
                (Allowed::Everybody, None) => denied.is_empty(),
                (_, None) => false,
                // Where both are set, only who is let in counts (`man slurm.conf`).
                (Allowed::Everybody, Some(name)) => {
                    denied.iter().all(|known| !known.eq_ignore_ascii_case(name))
                }
                (allowed, Some(name)) => allowed.lets_in(name),
            };
        self.state == QueueState::Up
            && !(self.is_hidden || self.is_root_only || self.needs_reservation)
            && self.groups == Allowed::Everybody
            && passes(&self.accounts, &self.denied_accounts, account)
            && passes(&self.qos, &self.denied_qos, qos)
    }
}

/// Whether a queue takes jobs, and starts them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum QueueState {
    /// Takes and starts them.
    Up,
    /// Takes them and starts none.
    Down,
    /// Takes none and lets what it has run.
    Drain,
    /// Takes none and starts none.
    Inactive,
    /// A word this version does not know.
    Other(String),
    /// Nothing was said.
    #[default]
    Unknown,
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Drain => "drain",
            Self::Inactive => "inactive",
            Self::Other(word) => word,
            Self::Unknown => "unknown",
        })
    }
}

impl Serialize for QueueState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Who is let in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Allowed {
    /// Everybody.
    #[default]
    Everybody,
    /// These.
    Only(Vec<String>),
    /// Nobody.
    Nobody,
}

impl Allowed {
    /// Whether a name is let in; case is as the scheduler keeps it, lower.
    pub fn lets_in(&self, name: &str) -> bool {
        match self {
            Self::Everybody => true,
            Self::Only(names) => names.iter().any(|known| known.eq_ignore_ascii_case(name)),
            Self::Nobody => false,
        }
    }
}

/// How jobs share what a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Nodes, but not cores.
    #[default]
    Nodes,
    /// Nothing: a node is one job's.
    Exclusive,
    /// Cores, too, where a job allows it: at most so many jobs on one.
    Cores(u64),
    /// Cores, too, whatever a job says: at most so many jobs on one.
    ForcedCores(u64),
}
