//! One reading of the whole cluster: what its capacity is judged by.
//!
//! At most eight of Slurm's clients are started, as many at once as `host` allows, each with a
//! deadline of its own. A query that fails costs its part of the answer and stands in the failures;
//! without nodes or partitions there is no answer at all.
//!
//! Text is read and not `--json`: of nodes, partitions and reservations it tells all that capacity is
//! judged by, in one form from 20.11 on, where `scontrol --json` begins with 23.02, changes with each
//! release of its parser and takes four times the bytes (28 against 7 kB for the 11 nodes of a 24.11).

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::config;
use crate::host::{Cmd, Runner};
use crate::model::{
    AccountUse, Caps, Cluster, Controller, Identity, JobId, Known, Qos, ReadFailure, Reading, Share,
};

use super::super::{Found, SchedError};
use super::controller;
use super::named::queried;
use super::{Learnt, is_answer, limits, nodes, partitions, queued, refusal, reservations, shares};

/// Ten thousand nodes print some ten megabytes; jobs, of which there may be more, likewise.
const LIMIT: u64 = 256 << 20;
/// The kernel's word for the name of this machine.
const HOST: &str = "/proc/sys/kernel/hostname";

/// A program and its arguments.
type Query = (&'static str, &'static [&'static str]);

/// What is used of the limits of accounts, and of each quality of service by its name.
type Usage = (Vec<AccountUse>, Vec<(String, Caps)>);

/// `--details` adds the generic resources in use; `--all` what belongs to hidden partitions.
const NODES: Query = ("scontrol", &["--all", "--details", "--oneliner", "show", "node"]);
const PARTITIONS: Query = ("scontrol", &["--all", "--oneliner", "show", "partition"]);
const RESERVATIONS: Query = ("scontrol", &["--all", "--oneliner", "show", "reservation"]);
/// How `sacctmgr` is asked.
const ACCOUNTING: [&str; 4] = ["--readonly", "--noheader", "--parsable2", "show"];

/// Questions about nodes, partitions, limits and who may use them.
pub struct Nodes<'h> {
    runner: &'h dyn Runner,
    deadline: Duration,
    learnt: Arc<Learnt>,
}

impl std::fmt::Debug for Nodes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl<'h> Nodes<'h> {
    /// Asks nothing yet.
    pub fn new(runner: &'h dyn Runner, settings: &config::Scheduler) -> Self {
        Self::knowing(runner, settings, Arc::default())
    }

    pub(super) fn knowing(
        runner: &'h dyn Runner,
        settings: &config::Scheduler,
        learnt: Arc<Learnt>,
    ) -> Self {
        let deadline = Duration::from_secs(settings.deadline_seconds);
        Self { runner, deadline, learnt }
    }

    /// Whether Slurm's clients are missing here.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self.settings(), Err(SchedError::NoScheduler))
    }

    /// Why it does not answer, though its clients are here.
    pub fn trouble(&self) -> Option<&SchedError> {
        self.settings().as_ref().err()
    }

    /// Reads the cluster.
    pub fn cluster(&self) -> Result<Found<Cluster>, SchedError> {
        let clock = controller::Clock(self.runner.zone());
        let mut failures = Vec::new();
        let settings = part(Reading::Controller, self.settings().clone(), &mut failures);
        let controller = controller::settings(&settings);
        let name = controller.setting("ClusterName").map(str::to_owned);
        let identity = self.identity(&mut failures);

        // Each answer is read where it arrives, so that no text is kept longer than it takes.
        let (clock, here) = (&clock, name.as_deref());
        let (nodes, queues, reservations, jobs, (qos, usage), associations) =
            thread::scope(|scope| {
                let queues = scope.spawn(|| self.ask(&PARTITIONS, partitions::queues));
                let held = scope.spawn(|| {
                    self.ask(&RESERVATIONS, |text| reservations::reservations(text, clock))
                });
                let jobs = scope.spawn(|| {
                    let cmd = Cmd::new("squeue", &["--all", "--noheader"]).arg(queued::format());
                    self.read(cmd, |text| queued::jobs(text, clock))
                });
                let qos = scope.spawn(|| self.qualities(&identity));
                let rights = scope.spawn(|| {
                    let cmd = association_query(user_of(&identity)?, here);
                    let columns = &limits::ASSOCIATION_COLUMNS;
                    self.read(cmd, |text| limits::associations(text, columns, here))
                });
                // The largest answer by far is read here: what another thread allocates costs more.
                let nodes = self.ask(&NODES, |text| nodes::nodes(text, clock));
                (nodes, joined(queues), joined(held), joined(jobs), joined(qos), joined(rights))
            });
        // Without these there is nothing to judge.
        let ((nodes, mut notices), queues) = (nodes?, queues?);
        for (is_empty, what) in [(nodes.is_empty(), "node"), (queues.is_empty(), "partition")] {
            if is_empty {
                return Err(SchedError::Failed {
                    command: format!("scontrol show {what}"),
                    message: format!("it printed no {what} that can be read"),
                });
            }
        }
        let (jobs, unreadable) = part(Reading::Jobs, jobs, &mut failures);
        if unreadable > 0 {
            notices.push(super::unreadable_rows(unreadable));
        }
        let reservations = part(Reading::Reservations, reservations, &mut failures);
        let mut qos = part(Reading::Qos, qos, &mut failures);
        let associations = part(Reading::Associations, associations, &mut failures);
        let (account_use, spent) = part(Reading::Usage, usage, &mut failures);
        charge(&mut qos, spent);
        let mut cluster = Cluster {
            backend: "slurm",
            name,
            taken_at: self.runner.now(),
            identity,
            nodes,
            queues,
            qos,
            associations,
            account_use,
            reservations,
            jobs,
            licences: Vec::new(),
            controller,
            failures,
        };
        cluster.licences = controller::licences(&cluster);
        Ok(Found { value: cluster, notices })
    }

    /// The rules alone that hold back a job of a user: partitions, limits, and what is used of
    /// accounts. Four queries; without the partitions there is no answer.
    pub fn rules(&self, user: &str) -> Result<Cluster, SchedError> {
        let mut failures: Vec<ReadFailure> = [
            Reading::Identity,
            Reading::Controller,
            Reading::Nodes,
            Reading::Reservations,
            Reading::Jobs,
        ]
        .map(|reading| ReadFailure { reading, message: "not asked for".to_owned() })
        .into();
        let identity = Identity { user: Some(user.to_owned()), ..Identity::default() };
        let (queues, (qos, usage), associations) = thread::scope(|scope| {
            let qos = scope.spawn(|| self.qualities(&identity));
            let rights = scope.spawn(|| {
                let columns = &limits::ASSOCIATION_COLUMNS;
                self.read(association_query(user, None), |text| {
                    limits::associations(text, columns, None)
                })
            });
            let queues = self.ask(&PARTITIONS, partitions::queues);
            (queues, joined(qos), joined(rights))
        });
        let mut qos = part(Reading::Qos, qos, &mut failures);
        let (account_use, spent) = part(Reading::Usage, usage, &mut failures);
        charge(&mut qos, spent);
        Ok(Cluster {
            backend: "slurm",
            name: None,
            taken_at: self.runner.now(),
            identity,
            nodes: Vec::new(),
            queues: queues?,
            qos,
            associations: part(Reading::Associations, associations, &mut failures),
            account_use,
            reservations: Vec::new(),
            jobs: Vec::new(),
            licences: Vec::new(),
            controller: Controller::default(),
            failures,
        })
    }

    /// What a running job has of each of its nodes.
    pub fn shares(&self, id: &JobId) -> Result<Vec<Share>, SchedError> {
        let cmd = Cmd::new("scontrol", &["--details", "--oneliner", "show", "job"]);
        let cmd = cmd.arg(queried(id)).deadline(self.deadline);
        Ok(shares::shares(&self.bytes(&cmd)?))
    }

    fn ask<T>(&self, (program, args): &Query, read: impl Fn(&[u8]) -> T) -> Result<T, SchedError> {
        self.read(Cmd::new(program, args), read)
    }

    /// Runs a query and reads what it prints.
    fn read<T>(&self, cmd: Cmd, read: impl Fn(&[u8]) -> T) -> Result<T, SchedError> {
        Ok(read(&self.bytes(&cmd.deadline(self.deadline).cap(LIMIT))?))
    }

    /// The qualities of service, and what is used of the limits of accounts and of theirs.
    fn qualities(
        &self,
        identity: &Identity,
    ) -> (Result<Vec<Qos>, SchedError>, Result<Usage, SchedError>) {
        // Which budgets there are has to be known before what is left of them is asked.
        let qos = self.read(qos_query(), limits::qos);
        let budgets = qos.as_ref().map_or_else(|_| String::new(), |qos| limits::with_budgets(qos));
        let usage = self.usage(identity, &budgets);
        (qos, usage)
    }

    /// What is used of the limits of accounts, and of the qualities of service with budgets.
    fn usage(&self, identity: &Identity, budgets: &str) -> Result<Usage, SchedError> {
        let cmd = usage_query(user_of(identity)?, budgets);
        let brief = cmd.brief();
        self.read(cmd, |text| {
            let is_told = !text.trim_ascii().is_empty();
            is_told.then(|| (limits::account_use(text), limits::qos_use(text)))
        })?
        // What is not told is not nothing.
        .ok_or_else(|| SchedError::Failed { command: brief, message: "it printed nothing".into() })
    }

    /// Asked first, and once: it says whether Slurm is here, and what the cluster is called.
    fn settings(&self) -> &Result<Vec<u8>, SchedError> {
        self.learnt.settings.get_or_init(|| {
            let cmd = Cmd::new("scontrol", &["show", "config"]).deadline(self.deadline);
            self.bytes(&cmd).map(Cow::into_owned)
        })
    }

    /// Who asks: by `id`, which asks the directory that the site keeps its groups in.
    fn identity(&self, failures: &mut Vec<ReadFailure>) -> Identity {
        let caller = self.runner.caller();
        let told = self.bytes(&Cmd::new("id", &[]).deadline(self.deadline));
        let told = told.map(|output| controller::identity(&output));
        let mut identity = part(Reading::Identity, told, failures);
        identity.uid = identity.uid.or(Known::Value(u64::from(caller.uid)));
        identity.user = identity.user.or(caller.name);
        // Only where it is not known is a partition that takes jobs from some hosts left open.
        let host = self.runner.open(Path::new(HOST)).ok().and_then(|file| file.read_all(4096).ok());
        identity.host = host.map(|name| String::from_utf8_lossy(&name).trim().to_owned());
        identity
    }

    fn bytes(&self, cmd: &Cmd) -> Result<Cow<'h, [u8]>, SchedError> {
        let output = self.runner.run(cmd)?;
        if is_answer(&output.finished, output.stdout.is_empty()) {
            return Ok(output.stdout);
        }
        Err(refusal::meaning(cmd, &output))
    }
}

/// The caller's login name.
fn user_of(identity: &Identity) -> Result<&str, SchedError> {
    identity.user.as_deref().ok_or_else(|| SchedError::Failed {
        command: "id".to_owned(),
        message: "the caller's login name is not known".to_owned(),
    })
}

fn qos_query() -> Cmd {
    Cmd::new("sacctmgr", &ACCOUNTING).arg("qos").arg(limits::format(&limits::QOS_COLUMNS))
}

fn association_query(user: &str, cluster: Option<&str>) -> Cmd {
    let cmd = Cmd::new("sacctmgr", &ACCOUNTING).arg("assoc").arg("where");
    let cmd = cmd.arg(format!("user={user}"));
    let cmd = match cluster {
        Some(cluster) => cmd.arg(format!("cluster={cluster}")),
        None => cmd,
    };
    cmd.arg(limits::format(&limits::ASSOCIATION_COLUMNS))
}

/// Every account with its limits and use; of the users only the caller.
/// Of the qualities of service those in the list: each carries a line for every user that it has.
fn usage_query(user: &str, budgets: &str) -> Cmd {
    let cmd = Cmd::new("scontrol", &["--oneliner", "show", "assoc_mgr"]);
    let cmd = cmd.arg(format!("users={user}"));
    if budgets.is_empty() {
        return cmd.arg("flags=assoc");
    }
    cmd.arg(format!("qos={budgets}")).arg("flags=assoc,qos")
}

/// Notes what is used of the budgets of qualities of service.
fn charge(qos: &mut [Qos], spent: Vec<(String, Caps)>) {
    for (name, used) in spent {
        if let Some(qos) = qos.iter_mut().find(|qos| qos.name.eq_ignore_ascii_case(&name)) {
            qos.group_used = Some(used);
        }
    }
}

/// The result of a thread; its panic goes on here.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A part of the answer, or nothing and why.
fn part<T: Default>(
    reading: Reading,
    answer: Result<T, SchedError>,
    failures: &mut Vec<ReadFailure>,
) -> T {
    answer.unwrap_or_else(|error| {
        failures.push(ReadFailure { reading, message: error.to_string() });
        T::default()
    })
}
