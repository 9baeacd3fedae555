//! Schedulers: facts about jobs and partitions, as far as this user may see them.
//!
//! Judges nothing. A scheduler is one entry of [`ALL`]; what it can do is a [`Backend`], a struct
//! of optional capabilities, so that "keeps no accounting of jobs" is a type and not an error at
//! run time. Every answer is [`Found`]: the value, and what it lacks.

mod saved;
pub mod slurm;
pub mod survey;

use std::sync::Arc;

use jiff::Timestamp;

use crate::config;
use crate::host::{ExecError, Runner};
use crate::model::{JobId, Notice};

pub use saved::{Saved, SavedError};

/// A scheduler that jobwise can ask.
#[derive(Debug)]
pub struct Scheduler {
    /// Its name.
    pub name: &'static str,
    /// Its backend, if it is on this machine.
    detect: for<'h> fn(
        &'h dyn Runner,
        &config::Scheduler,
        Need,
        &Arc<slurm::Learnt>,
    ) -> Option<Backend<'h>>,
}

/// Every scheduler, in the order in which they are looked for.
pub static ALL: &[Scheduler] = &[Scheduler { name: "slurm", detect: slurm::detect }];

/// What [`config::Scheduler::backend`] may be.
pub fn choices() -> impl Iterator<Item = &'static str> {
    std::iter::once(AUTO).chain(ALL.iter().map(|scheduler| scheduler.name))
}

/// Takes whatever is found.
const AUTO: &str = "auto";

/// The first scheduler on this machine that the settings admit; where there is none, a backend that
/// can do nothing.
///
/// Looking costs no process of its own: what it learns, later questions of that kind use.
pub fn detect<'h>(
    runner: &'h dyn Runner,
    settings: &config::Scheduler,
    need: Need,
    session: &Session,
) -> Backend<'h> {
    let none = Backend { name: "none", jobs: None, nodes: None, probe: None, explain: |_| None };
    let chosen = settings.backend.as_str();
    let mut admitted = ALL.iter().filter(|known| chosen == AUTO || chosen == known.name);
    admitted
        .find_map(|scheduler| (scheduler.detect)(runner, settings, need, &session.0))
        .unwrap_or(none)
}

/// What one answer has learnt of the scheduler of one cluster: whatever part of the answer asks
/// first, the others need not ask again.
#[derive(Debug, Default)]
pub struct Session(Arc<slurm::Learnt>);

/// What the first question will be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Jobs and their history.
    Jobs,
    /// Nodes and queues at this moment.
    Nodes,
}

/// What one scheduler can be asked.
#[derive(Debug)]
pub struct Backend<'h> {
    /// Its name.
    pub name: &'static str,
    /// Questions about jobs.
    pub jobs: Option<slurm::Jobs<'h>>,
    /// Questions about nodes and queues.
    pub nodes: Option<slurm::Nodes<'h>>,
    /// Dry runs.
    pub probe: Option<slurm::Probe<'h>>,
    explain: fn(&str) -> Option<Reason>,
}

impl Backend<'_> {
    /// What a reason for waiting means; `None` for one that is not known.
    pub fn explain_reason(&self, reason: &str) -> Option<Reason> {
        (self.explain)(reason)
    }
}

/// What a reason for waiting means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// In plain words.
    pub meaning: &'static str,
    /// What its owner can do.
    pub action: &'static str,
}

/// A value, and what it lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<T> {
    /// The value.
    pub value: T,
    /// What to say beside it.
    pub notices: Vec<Notice>,
}

/// Whose jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Users {
    /// Those of the caller.
    #[default]
    Me,
    /// Everybody's, as far as the site shows them.
    All,
    /// Those of these login names or numeric ids.
    Named(Vec<String>),
}

/// Which jobs to list; an empty list does not narrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Whose.
    pub users: Users,
    /// Base state words.
    pub states: Vec<String>,
    /// Accounts charged.
    pub accounts: Vec<String>,
    /// Partitions.
    pub partitions: Vec<String>,
    /// Qualities of service.
    pub qos: Vec<String>,
    /// Clusters; an empty list is the one at hand.
    pub clusters: Vec<String>,
    /// Job names, whole.
    pub names: Vec<String>,
    /// The begin of the window.
    pub since: Timestamp,
    /// The end of the window.
    pub until: Timestamp,
}

/// How deep a history is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What was asked for and given, and how it ended.
    Allocations,
    /// Also what the steps used: ten times the work for the scheduler's database.
    Steps,
}

/// Why a scheduler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedError {
    /// Its programs are not on this machine.
    #[error("no scheduler that jobwise knows is installed here")]
    NoScheduler,
    /// The site keeps no accounting, or its database does not answer.
    #[error("the accounting database cannot be asked: {message}")]
    NoAccounting {
        /// The scheduler's words.
        message: String,
    },
    /// This user may not see it.
    #[error("'{command}' was refused: {message}")]
    Forbidden {
        /// The command.
        command: String,
        /// The scheduler's words.
        message: String,
    },
    /// There is no such job, or this user may not see it; the two look the same.
    #[error("no job {id} is known here, or you may not see it")]
    UnknownJob {
        /// The id.
        id: JobId,
    },
    /// It gave no answer in time.
    #[error("'{command}' gave no answer within {seconds} s")]
    TimedOut {
        /// The command.
        command: String,
        /// The deadline.
        seconds: u64,
    },
    /// It was not asked: what hung before it used up the time of this answer.
    #[error("'{command}' was not asked, as '{hung}' had hung before it")]
    NotAsked {
        /// The command.
        command: String,
        /// The one that hung first.
        hung: String,
    },
    /// The clients find no scheduler to ask.
    #[error("Slurm's clients are here but have no configuration; is this a login node?")]
    NotConfigured,
    /// There is no such user.
    #[error("there is no user '{name}' here")]
    UnknownUser {
        /// The name or number given.
        name: String,
    },
    /// There is no such cluster.
    #[error("there is no cluster '{name}' here")]
    UnknownCluster {
        /// The name given.
        name: String,
    },
    /// The demo cluster holds no answer.
    #[error(transparent)]
    NotInDemo(ExecError),
    /// The demo cluster holds no record of that job.
    #[error("the demo holds no record of job {id}; 'jobwise --demo jobs' lists those it holds")]
    NoDemoJob {
        /// The id.
        id: JobId,
    },
    /// The recording that is replayed holds no answer.
    #[error("the recording holds no answer to '{command}'")]
    NotRecorded {
        /// The command.
        command: String,
    },
    /// The query failed.
    #[error("'{command}' failed: {message}")]
    Failed {
        /// The command.
        command: String,
        /// The scheduler's words.
        message: String,
    },
}

impl From<ExecError> for SchedError {
    fn from(error: ExecError) -> Self {
        let message = error.to_string();
        match error {
            ExecError::Missing { .. } => Self::NoScheduler,
            ExecError::TimedOut { command, after } => {
                let seconds = u64::try_from(after.as_millis().div_ceil(1000));
                Self::TimedOut { command, seconds: seconds.unwrap_or(u64::MAX) }
            }
            ExecError::NotAsked { command, hung } => Self::NotAsked { command, hung },
            ExecError::NotRecorded { command } => Self::NotRecorded { command },
            ExecError::NotInDemo => Self::NotInDemo(error),
            ExecError::Io { command, reason } => Self::Failed { command, message: reason },
            ExecError::Truncated { command, cap } => {
                Self::Failed { command, message: format!("it printed more than {cap} bytes") }
            }
            ExecError::NotAllowed { command } => Self::Failed { command, message },
        }
    }
}
