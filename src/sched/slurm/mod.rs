//! Slurm, asked through its own clients: `sacct`, `scontrol`, `squeue`, `sinfo` and `sacctmgr`.
//!
//! The field list of `sacct` is read once and says what may be asked and how old Slurm is. One job
//! costs one query of accounting; the controller is asked only for what accounting cannot know: the
//! log paths of older releases, the live reason, a job while accounting is off or silent. Budget:
//! naming the cause of a finished job starts at most four processes.
//!
//! The clients print for people and for nobody's parser; each oddity is told where it is handled,
//! and those that differ between releases stand in [`quirks`].

mod cluster;
mod controlled;
mod controller;
mod fields;
mod jobstats;
pub(super) mod json;
mod limits;
mod live;
mod many;
mod named;
mod nodes;
mod numbers;
mod offers;
mod partitions;
mod past;
mod pasted;
mod probe;
mod queued;
pub mod quirks;
mod reasons;
mod records;
mod refusal;
pub mod release;
mod reservations;
mod rows;
mod runs;
mod saved;
mod scontrol;
mod scripts;
mod shares;
mod squeue;
mod stored;
mod unnamed;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config;
use crate::host::{Cmd, ExecError, Finished, Output, Runner};
use crate::model::{AccountUse, Controller, IdError, Job, JobId, Known, Limits, Notice, Part, Qos};

use super::{Backend, Depth, Filter, Found, Need, SchedError, Users};
use controlled::SHORT_DEADLINE;
use fields::{Fields, Layout};
use named::{is_named, queried};
use numbers::Clock;
use records::Reading;
use release::{Release, Version};
use rows::Row;

pub use cluster::Nodes;
pub use pasted::pasted;
pub use probe::{Answer, Probe, Question};
pub use unnamed::unnamed;

pub(super) use past::keep;
pub(super) use rows::{DELIMITED, Unread};
pub(super) use runs::Loader;
pub(super) use saved::{Heading, TextReader};

/// A list of some hundred thousand jobs; they are kept, the text is not.
const LIST_LIMIT: u64 = 256 << 20;
/// Slurm, if its clients are on this machine.
pub(super) fn detect<'h>(
    runner: &'h dyn Runner,
    settings: &config::Scheduler,
    need: Need,
    learnt: &Arc<Learnt>,
) -> Option<Backend<'h>> {
    let jobs = Jobs::knowing(runner, settings, Arc::clone(learnt));
    let nodes = Nodes::knowing(runner, settings, Arc::clone(learnt));
    // The first query of each kind is needed by every question of that kind, so looking costs
    // nothing.
    let missing = match need {
        Need::Jobs => matches!(jobs.fields(), Err(SchedError::NoScheduler)),
        Need::Nodes => nodes.is_missing(),
    };
    let explain = reasons::explain;
    let probe = Some(Probe::new(runner, settings));
    (!missing).then(|| Backend {
        name: "slurm",
        jobs: Some(jobs),
        nodes: Some(nodes),
        probe,
        explain,
    })
}

/// What a reason for waiting means, where nobody can be asked.
pub fn explain_reason(reason: &str) -> Option<super::Reason> {
    reasons::explain(reason)
}

/// A record of accounting from its fields by `sacct`'s names, read as one that `sacct` printed:
/// labelled cases hold their records so.
pub fn job_from_fields(fields: &BTreeMap<String, String>) -> Result<Job, IdError> {
    records::from_fields(fields)
}

/// A history in the making, of rows that were printed anywhere.
pub(super) fn loader(zone: TimeZone) -> Loader {
    Loader::new(Reading::default(), Clock::new(zone))
}

/// What one answer has learnt of this Slurm: each of it is asked once.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    /// The field list of `sacct`.
    fields: OnceLock<Result<Fields, SchedError>>,
    /// Its exact release, where that had to be asked.
    version: OnceLock<Option<Version>>,
    /// What the controller is set to.
    settings: OnceLock<Result<Vec<u8>, SchedError>>,
}

/// Questions about jobs.
pub struct Jobs<'h> {
    runner: &'h dyn Runner,
    deadline: Duration,
    list_deadline: Duration,
    list_days: u64,
    learnt: Arc<Learnt>,
    at_once: many::AtOnce,
}

impl fmt::Debug for Jobs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("learnt", &self.learnt).finish_non_exhaustive()
    }
}

impl<'h> Jobs<'h> {
    /// Asks nothing yet.
    pub fn new(runner: &'h dyn Runner, settings: &config::Scheduler) -> Self {
        Self::knowing(runner, settings, Arc::default())
    }

    fn knowing(runner: &'h dyn Runner, settings: &config::Scheduler, learnt: Arc<Learnt>) -> Self {
        Self {
            runner,
            deadline: Duration::from_secs(settings.deadline_seconds),
            list_deadline: Duration::from_secs(settings.list_deadline_seconds),
            list_days: settings.list_days,
            learnt,
            at_once: many::AtOnce::default(),
        }
    }

    /// The records that an id names: a job; every task of an array, or one; every component of a
    /// heterogeneous job, or one. Each is the newest run, with its steps and its earlier runs.
    pub fn job(&self, id: &JobId) -> Result<Found<Vec<Job>>, SchedError> {
        let mut notices = Vec::new();
        let recorded = self.recorded(std::slice::from_ref(id), of_a_job, &mut notices);
        self.completed(id, recorded, notices)
    }

    /// As [`Self::job`], with all that accounting has to say, but for what steps that run have used
    /// so far. A recording that was made by another question holds less: then that.
    fn whole_job(&self, id: &JobId) -> Result<Found<Vec<Job>>, SchedError> {
        let mut notices = Vec::new();
        let recorded = self.recorded(std::slice::from_ref(id), Fields::whole, &mut notices);
        if is_not_held(&recorded) {
            return self.job(id);
        }
        self.completed(id, recorded, notices)
    }

    /// What accounting said, with what only the controller can know.
    fn completed(
        &self,
        id: &JobId,
        recorded: Result<Vec<Job>, SchedError>,
        mut notices: Vec<Notice>,
    ) -> Result<Found<Vec<Job>>, SchedError> {
        let (mut jobs, refusal) = match recorded {
            Ok(jobs) => (jobs, None),
            Err(refusal) => (Vec::new(), Some(refusal)),
        };
        if jobs.is_empty() {
            let found = self.only_controlled(id, refusal, &mut notices);
            jobs = found.map_err(|error| match error {
                SchedError::NotInDemo(_) => SchedError::NoDemoJob { id: id.clone() },
                error => error,
            })?;
        } else if jobs.iter().any(|job| self.controller_adds(job)) {
            self.add_controlled(id, &mut jobs, &mut notices);
        }
        if let Some(release) = self.release() {
            notices.extend(quirks::notices(release, &jobs));
        }
        for job in &mut jobs {
            job.id.cluster.clone_from(&id.cluster);
        }
        Ok(Found { value: jobs, notices })
    }

    /// What accounting holds about several jobs, asked for at once; those it does not know are left
    /// out. They are of one cluster.
    pub fn several(&self, ids: &[JobId]) -> Result<Found<Vec<Job>>, SchedError> {
        let mut notices = Vec::new();
        let value = self.recorded(ids, of_a_job, &mut notices)?;
        Ok(Found { value, notices })
    }

    /// What counts the energy that accounting holds: `ipmi`; nothing where none does or nobody says.
    pub fn energy_meter(&self) -> Option<String> {
        let controller = self.configuration()?;
        let plugin = controller.setting("AcctGatherEnergyType")?.rsplit('/').next()?;
        values::word(plugin).filter(|kind| kind != "none")
    }

    /// Whether limits of associations hold back jobs; `None` where nobody says.
    pub fn enforces_limits(&self) -> Option<bool> {
        let Known::Value(enforced) = self.configuration()?.enforces else { return None };
        // `safe` and `all` imply it.
        let words = ["limits", "safe", "all"];
        Some(enforced.iter().any(|word| words.contains(&word.as_str())))
    }

    fn configuration(&self) -> Option<Controller> {
        let cmd = self.ask("scontrol", &["show", "config"]).deadline(SHORT_DEADLINE);
        Some(controller::settings(&self.query(&cmd).ok()?.stdout))
    }

    /// What is known of Slurm's release; `None` when its field list could not be read.
    pub fn release(&self) -> Option<Release> {
        let fields = self.fields().ok()?;
        let exact = self.learnt.version.get().copied().flatten().map(Release::exact);
        Some(exact.unwrap_or(fields.release))
    }

    /// The limits of a partition and the size of its largest node.
    pub fn limits(&self, name: &str) -> Result<Limits, SchedError> {
        let shown =
            self.query(&self.ask("scontrol", &["--oneliner", "show", "partition", name]))?;
        let mut limits = scontrol::limits(&shown.stdout).ok_or_else(|| SchedError::Failed {
            command: format!("scontrol show partition {name}"),
            message: "it printed no partition".to_owned(),
        })?;
        // Without `--exact` nodes of several sizes are summed up as `32000+`, the smallest.
        let sizes = self
            .ask("sinfo", &["--noheader", "--exact", "--format=%m|%c"])
            .arg(format!("--partition={name}"));
        if let Ok(sizes) = self.query(&sizes) {
            (limits.node_memory, limits.node_cpus) = scontrol::largest_node(&sizes.stdout);
        }
        Ok(limits)
    }

    /// Every quality of service with its limits.
    pub fn qualities(&self) -> Result<Vec<Qos>, SchedError> {
        let how = ["--readonly", "--noheader", "--parsable2", "show", "qos"];
        let cmd = self.ask("sacctmgr", &how).arg(limits::format(&limits::QOS_COLUMNS));
        Ok(limits::qos(&self.query(&cmd)?.stdout))
    }

    /// Every account with its limits, and a user's place in each: one record for every account.
    pub fn places(&self, user: &str) -> Result<Vec<AccountUse>, SchedError> {
        let cmd = self.ask("scontrol", &["--oneliner", "show", "assoc_mgr"]);
        let cmd = cmd.arg(format!("users={user}")).arg("flags=assoc");
        let places = limits::account_use(&self.query(&cmd)?.stdout);
        // There is a root at least, where the caller may see any.
        let nothing =
            || SchedError::Failed { command: cmd.brief(), message: "it printed none".to_owned() };
        if places.is_empty() { Err(nothing()) } else { Ok(places) }
    }

    /// The query of the jobs that a filter selects, for a window of its own.
    fn selection(
        &self,
        filter: &Filter,
        (since, until): (Timestamp, Timestamp),
        layout: &Layout,
        depth: Depth,
    ) -> Cmd {
        let epoch = |at: Timestamp| format!("uts{}", at.as_second());
        let how = ["--parsable2", "--noheader", "--allocations"];
        let how = if depth == Depth::Steps { &how[..2] } else { &how };
        let mut cmd = self
            .ask("sacct", how)
            .arg(format!("--delimiter={}", rows::DELIMITER))
            .arg(format!("--format={}", layout.format()))
            // Without both, the window depends on the other options.
            .arg(format!("--starttime={}", epoch(since)))
            .arg(format!("--endtime={}", epoch(until)))
            .deadline(self.list_deadline);
        cmd = match &filter.users {
            Users::All => cmd.arg("--allusers"),
            Users::Named(names) => cmd.arg(format!("--user={}", names.join(","))),
            // The number is the kernel's word; the name is only what the environment says.
            Users::Me => cmd.arg(format!("--user={}", self.runner.caller().uid)),
        };
        let narrow = [
            ("state", &filter.states),
            ("accounts", &filter.accounts),
            ("partition", &filter.partitions),
            ("qos", &filter.qos),
            ("clusters", &filter.clusters),
        ];
        for (option, values) in narrow.into_iter().filter(|(_, values)| !values.is_empty()) {
            cmd = cmd.arg(format!("--{option}={}", values.join(",")));
        }
        // A name with a comma would be taken for two; those are picked out of the answer.
        if !filter.names.is_empty() && !filter.names.iter().any(|name| name.contains(',')) {
            cmd = cmd.arg(format!("--name={}", filter.names.join(",")));
        }
        cmd
    }

    fn ask(&self, program: &'static str, args: &[&str]) -> Cmd {
        Cmd::new(program, args).deadline(self.deadline)
    }

    fn fields(&self) -> Result<&Fields, SchedError> {
        let fields = self.learnt.fields.get_or_init(|| {
            let cmd = self.ask("sacct", &["--helpformat"]);
            let output = self.query(&cmd)?;
            Fields::from_help(&output.stdout).ok_or_else(|| SchedError::Failed {
                command: cmd.brief(),
                message: "it printed no list of fields".to_owned(),
            })
        });
        fields.as_ref().map_err(SchedError::clone)
    }

    /// What accounting holds about ids of one cluster; empty when it holds nothing.
    fn recorded(
        &self,
        ids: &[JobId],
        columns: impl FnOnce(&Fields) -> Layout,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Job>, SchedError> {
        let Some(first) = ids.first() else { return Ok(Vec::new()) };
        let asked: Vec<String> = ids.iter().map(queried).collect();
        let layout = columns(self.fields()?);
        // With `--jobs` and no times Slurm looks through all history. `--duplicates` shows the
        // runs before a requeue.
        let query = |asked: &[String]| {
            let cmd = self
                .ask("sacct", &["--parsable2", "--noheader", "--duplicates"])
                .arg(format!("--delimiter={}", rows::DELIMITER))
                .arg(format!("--format={}", layout.format()))
                .arg(format!("--jobs={}", asked.join(",")));
            on_cluster(cmd, first)
        };
        let mut cmd = query(&asked);
        let (mut stdout, mut refusal) = self.partial(&cmd);
        // A recording in which a whole array was asked for holds each of its tasks.
        if refusal.as_ref().is_some_and(is_lack) && matches!(first.part, Part::Task(_)) {
            cmd = query(&[first.number.to_string()]);
            (stdout, refusal) = self.partial(&cmd);
        }
        let (rows, unreadable) = rows::read(&stdout, &layout);
        let (mut jobs, found) = records::jobs(&rows, self.reading(&rows));
        match refusal {
            Some(error) if jobs.is_empty() => return Err(error),
            Some(error) => notices.push(broke_off(&error, "steps")),
            None if jobs.is_empty() && unreadable > 0 => {
                let message = unreadable_rows(unreadable).text;
                return Err(SchedError::Failed { command: cmd.brief(), message });
            }
            None => {}
        }
        notices.extend(found);
        if unreadable > 0 {
            notices.push(unreadable_rows(unreadable));
        }
        jobs.retain(|job| ids.iter().any(|id| is_named(id, job)));
        Ok(jobs)
    }

    fn reading(&self, rows: &[Row<'_>]) -> Reading {
        Reading {
            folded: self
                .folds()
                .unwrap_or_else(|| !records::has_exit_code(rows) || self.is_folded()),
            cpu_time_lost: self.release().is_some_and(quirks::loses_cpu_time),
            sums_gpus: self.release().is_some_and(quirks::sums_gpus),
        }
    }

    /// Whether this Slurm prints exit codes minus 128, as far as that is known without asking.
    fn folds(&self) -> Option<bool> {
        self.release()?.is_before(Version(25, 11))
    }

    /// Whether exit codes may be printed minus 128. Where the field list leaves it open, this asks
    /// for the version, once.
    fn is_folded(&self) -> bool {
        if self.folds().is_none() && self.fields().is_ok() {
            self.learnt.version.get_or_init(|| {
                let output = self.query(&self.ask("sacct", &["--version"])).ok()?;
                Version::parse(&output.stdout)
            });
        }
        self.folds().unwrap_or(true)
    }

    /// Runs a query of records: what it printed, and what went wrong, perhaps after that.
    fn partial(&self, cmd: &Cmd) -> (Vec<u8>, Option<SchedError>) {
        let mut stdout = Vec::new();
        let ended = self.runner.stream(cmd, &mut |chunk| stdout.extend_from_slice(chunk));
        let refusal = refusal(cmd, ended, stdout.is_empty());
        (stdout, refusal)
    }

    /// Runs a query; what Slurm refuses becomes the error it means.
    fn query(&self, cmd: &Cmd) -> Result<Output<'_>, SchedError> {
        let output = self.runner.run(cmd)?;
        if is_answer(&output.finished, output.stdout.is_empty()) {
            return Ok(output);
        }
        Err(refusal::meaning(cmd, &output))
    }
}

/// Whether a recording or the demo has no answer to a question.
fn is_not_held<T>(answer: &Result<T, SchedError>) -> bool {
    answer.as_ref().is_err_and(is_lack)
}

fn is_lack(error: &SchedError) -> bool {
    matches!(error, SchedError::NotRecorded { .. } | SchedError::NotInDemo(_))
}

/// What went wrong with a query of records, whatever it printed before.
fn refusal(cmd: &Cmd, ended: Result<Finished, ExecError>, silent: bool) -> Option<SchedError> {
    match ended {
        Ok(finished) if is_answer(&finished, silent) => None,
        Ok(finished) => {
            Some(refusal::meaning(cmd, &Output { stdout: Vec::new().into(), finished }))
        }
        Err(error) => Some(error.into()),
    }
}

/// Whether a command answered. `scontrol write` complains and still exits with zero.
fn is_answer(finished: &Finished, silent: bool) -> bool {
    let complains = String::from_utf8_lossy(&finished.stderr);
    let complains = complains.contains("error") || complains.contains("failed");
    finished.success() && !(silent && complains)
}

fn on_cluster(cmd: Cmd, id: &JobId) -> Cmd {
    match &id.cluster {
        Some(cluster) => cmd.arg(format!("--clusters={cluster}")),
        None => cmd,
    }
}

/// The columns that a diagnosis needs.
fn of_a_job(fields: &Fields) -> Layout {
    fields.layout(true)
}

fn broke_off(error: &SchedError, lacking: &str) -> Notice {
    let text = format!("{error}; what came before is used, {lacking} may be missing");
    Notice::warning("broke-off", text)
}

fn unreadable_rows(count: usize) -> Notice {
    let records = if count == 1 { "record" } else { "records" };
    Notice::warning("unreadable-rows", format!("{count} {records} of Slurm could not be read"))
}
