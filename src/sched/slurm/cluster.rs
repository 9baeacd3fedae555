//! One reading of the whole cluster: what its capacity is judged by.
//!
//! At most eight of Slurm's clients are started, as many at once as `host` allows, each with a
//! deadline of its own. A query that fails costs its part of the answer and stands in the failures;
//! without nodes or partitions there is no answer at all.

use std::path::Path;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::config;
use crate::host::{Cmd, Runner};
use crate::model::{Cluster, Identity, JobId, Known, ReadFailure, Reading, Share};

use super::super::{Found, SchedError};
use super::controller;
use super::{is_answer, limits, nodes, partitions, queued, refusal, reservations, shares};

/// Ten thousand nodes print some ten megabytes; jobs, of which there may be more, likewise.
const LIMIT: u64 = 256 << 20;
/// The kernel's word for the name of this machine.
const HOST: &str = "/proc/sys/kernel/hostname";

/// Questions about nodes, partitions, limits and who may use them.
pub struct Nodes<'h> {
    runner: &'h dyn Runner,
    deadline: Duration,
    /// Asked first, and once: it says whether Slurm is here, and what the cluster is called.
    settings: OnceLock<Result<Vec<u8>, SchedError>>,
}

impl std::fmt::Debug for Nodes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl<'h> Nodes<'h> {
    /// Asks nothing yet.
    pub fn new(runner: &'h dyn Runner, settings: &config::Scheduler) -> Self {
        let deadline = Duration::from_secs(settings.deadline_seconds);
        Self { runner, deadline, settings: OnceLock::new() }
    }

    /// Whether Slurm's clients are missing here.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self.settings(), Err(SchedError::NoScheduler))
    }

    /// Reads the cluster.
    pub fn cluster(&self) -> Result<Found<Cluster>, SchedError> {
        let clock = controller::Clock(self.runner.zone());
        let mut failures = Vec::new();
        let settings = part(Reading::Controller, self.settings().clone(), &mut failures);
        let controller = controller::settings(&settings);
        let name = controller.setting("ClusterName").map(str::to_owned);
        let identity = self.identity(&mut failures);

        let [nodes, queues, reservations, jobs, qos, associations, usage] =
            thread::scope(|scope| {
                let commands = self.commands(&identity, name.as_deref());
                commands
                    .map(|cmd| scope.spawn(move || cmd.map_or_else(Err, |cmd| self.bytes(&cmd))))
                    .map(|query| {
                        query.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })
            });
        // Without these there is nothing to judge.
        let (nodes, queues) = (nodes?, queues?);
        let (nodes, mut notices) = nodes::nodes(&nodes, &clock);
        let queues = partitions::queues(&queues);
        for (is_empty, what) in [(nodes.is_empty(), "node"), (queues.is_empty(), "partition")] {
            if is_empty {
                return Err(SchedError::Failed {
                    command: format!("scontrol show {what}"),
                    message: format!("it printed no {what} that can be read"),
                });
            }
        }
        let reservations = part(Reading::Reservations, reservations, &mut failures);
        let jobs = part(Reading::Jobs, jobs, &mut failures);
        let qos = part(Reading::Qos, qos, &mut failures);
        let associations = part(Reading::Associations, associations, &mut failures);
        let usage = part(Reading::Usage, usage, &mut failures);
        let (jobs, unreadable) = queued::jobs(&jobs, &clock);
        if unreadable > 0 {
            notices.push(super::unreadable_rows(unreadable));
        }
        let mut cluster = Cluster {
            backend: "slurm",
            associations: limits::associations(&associations, name.as_deref()),
            name,
            taken_at: self.runner.now(),
            identity,
            nodes,
            queues,
            qos: limits::qos(&qos),
            account_use: limits::account_use(&usage),
            reservations: reservations::reservations(&reservations, &clock),
            jobs,
            licences: Vec::new(),
            controller,
            failures,
        };
        cluster.licences = controller::licences(&cluster);
        Ok(Found { value: cluster, notices })
    }

    /// What a running job has of each of its nodes.
    pub fn shares(&self, id: &JobId) -> Result<Vec<Share>, SchedError> {
        let cmd = Cmd::new("scontrol", &["--details", "--oneliner", "show", "job"]);
        let cmd = cmd.arg(super::queried(id)).deadline(self.deadline);
        Ok(shares::shares(&self.bytes(&cmd)?))
    }

    /// The queries of one reading, in the order in which they are taken apart.
    fn commands(&self, identity: &Identity, cluster: Option<&str>) -> [Result<Cmd, SchedError>; 7] {
        let ask =
            |program, args: &[&str]| Cmd::new(program, args).deadline(self.deadline).cap(LIMIT);
        let who = identity.user.as_deref();
        let mine = |cmd: &dyn Fn(&str) -> Cmd| {
            who.map(cmd).ok_or_else(|| SchedError::Failed {
                command: "id".to_owned(),
                message: "the caller's login name is not known".to_owned(),
            })
        };
        let account = ["--readonly", "--noheader", "--parsable2", "show"];
        [
            // `--details` adds the generic resources in use; `--all` nodes of hidden partitions.
            Ok(ask("scontrol", &["--all", "--details", "--oneliner", "show", "node"])),
            Ok(ask("scontrol", &["--all", "--oneliner", "show", "partition"])),
            Ok(ask("scontrol", &["--all", "--oneliner", "show", "reservation"])),
            Ok(ask("squeue", &["--all", "--noheader"]).arg(queued::format())),
            Ok(ask("sacctmgr", &account).arg("qos").arg(limits::qos_format())),
            mine(&|user| {
                let cmd = ask("sacctmgr", &account).arg("assoc").arg("where");
                let cmd = cmd.arg(format!("user={user}"));
                let cmd = match cluster {
                    Some(cluster) => cmd.arg(format!("cluster={cluster}")),
                    None => cmd,
                };
                cmd.arg(limits::association_format())
            }),
            // Every account with its limits and use; of the users only the caller.
            mine(&|user| {
                ask("scontrol", &["--oneliner", "show", "assoc_mgr"])
                    .arg(format!("users={user}"))
                    .arg("flags=assoc")
            }),
        ]
    }

    fn settings(&self) -> &Result<Vec<u8>, SchedError> {
        self.settings.get_or_init(|| {
            self.bytes(&Cmd::new("scontrol", &["show", "config"]).deadline(self.deadline))
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

    fn bytes(&self, cmd: &Cmd) -> Result<Vec<u8>, SchedError> {
        let output = self.runner.run(cmd)?;
        if is_answer(&output.finished, output.stdout.is_empty()) {
            return Ok(output.stdout);
        }
        Err(refusal::meaning(cmd, &output))
    }
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
