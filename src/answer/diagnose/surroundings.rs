//! What belongs to a job beside its record, and where it comes from.
//!
//! The one place where a job of the cluster and a job of which only some files are at hand differ:
//! from here on both go the same way.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use crate::host::FileErrorKind;
use crate::logs::{self, Asked, Located};
use crate::model::{self, History, Job, JobId, Limits, Notice};
use crate::sched::{Backend, Reason, SchedError, slurm};
use crate::script::{self, Script};

use super::shared::Shared;
use super::{Diagnosis, Engine, Hints, one};

/// Where a script came from and its bytes, or every place that had none.
pub(in crate::answer) type FoundScript = Result<(String, Vec<u8>), Vec<String>>;

/// What belongs to a job beside its record. There are two: the cluster it ran on, and what is
/// at hand where no cluster is asked.
pub(in crate::answer) trait Surroundings {
    /// What a reason for waiting means.
    fn explain(&self, reason: &str) -> Option<Reason>;

    /// Its logs, found or not.
    fn logs(&mut self, job: &Job) -> Vec<Located>;

    /// Its batch script; `None` where nobody speaks of one.
    fn script(&mut self, job: &Job) -> Option<&FoundScript>;

    /// The script as far as it has been asked for.
    fn script_at_hand(&self) -> Option<&(String, Vec<u8>)>;

    /// What a diff calls the script.
    fn script_name(&self, job: &Job) -> String;

    /// The limits of its partition and quality of service, where they can be asked for, and what to
    /// say of them.
    fn limits(
        &self,
        job: &Job,
        partition: &str,
    ) -> Option<Result<(Limits, Vec<Notice>), SchedError>>;

    /// The rules that hold back jobs of its owner, where they can be read.
    fn rules(&self, job: &Job) -> Option<Arc<model::Cluster>>;

    /// Runs of the same user and partition, where they can be asked for and are answered.
    fn past(&self, job: &Job) -> Option<Arc<History>>;

    /// Whether a directory is known not to exist.
    fn lacks_directory(&self, path: &Path) -> bool;

    /// Whether a file is there to be read.
    fn has_file(&self, path: &Path) -> bool;

    /// The scheduler, where it may be asked.
    fn backend(&self) -> Option<&Backend<'_>>;

    /// The diagnoses of jobs that this one submitted; `None` where nobody can be asked.
    fn children(
        &self,
        engine: &Engine,
        ids: &[JobId],
    ) -> Option<Result<Vec<Diagnosis>, SchedError>>;
}

/// The cluster, as far as this user may see it.
pub(super) struct Cluster<'c, 'w> {
    backend: &'c Backend<'w>,
    hints: &'c Hints,
    shared: &'c Shared<'w>,
    script: OnceCell<Arc<FoundScript>>,
    /// Whether the scheduler is not to be asked: of a child everything comes from its record.
    silent: bool,
}

impl<'c, 'w> Cluster<'c, 'w> {
    pub(super) fn new(backend: &'c Backend<'w>, hints: &'c Hints, shared: &'c Shared<'w>) -> Self {
        let script = OnceCell::new();
        Self { backend, hints, shared, script, silent: false }
    }

    /// As it is known without a question to the scheduler.
    pub(super) fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    fn read_script(&self, job: &Job) -> &FoundScript {
        self.script.get_or_init(|| {
            let nobody = || Arc::new(Err(Vec::new()));
            if self.silent { nobody() } else { self.shared.script(self.backend, job) }
        })
    }
}

impl Surroundings for Cluster<'_, '_> {
    fn explain(&self, reason: &str) -> Option<Reason> {
        self.backend.explain_reason(reason)
    }

    fn logs(&mut self, job: &Job) -> Vec<Located> {
        // The script is read for its directives only where nothing else names the logs.
        let given = job.submit_line.as_deref().map(script::parse_submit_line);
        let given =
            |long: &str| given.as_ref().is_some_and(|line| line.effective(0, long).is_some());
        let named = job.stdout.is_some() || (given("output") && given("error"));
        let asked = if named { None } else { self.read_script(job).as_ref().ok().map(asked) };
        logs::locate(job, asked.as_ref(), self.shared.world.cluster, &self.hints.log_dirs)
    }

    fn script(&mut self, job: &Job) -> Option<&FoundScript> {
        Some(self.read_script(job))
    }

    fn script_at_hand(&self) -> Option<&(String, Vec<u8>)> {
        self.script.get()?.as_ref().as_ref().ok()
    }

    /// The file that was submitted, as far as that is known.
    fn script_name(&self, job: &Job) -> String {
        let submitted = job.submit_line.as_deref().map(script::parse_submit_line);
        let path = job.command.clone().or_else(|| submitted?.script);
        let name = path.as_deref().and_then(|path| path.rsplit('/').next());
        let name = name.filter(|name| !name.is_empty());
        name.map_or_else(|| format!("job-{}.sh", job.id), str::to_owned)
    }

    fn limits(
        &self,
        job: &Job,
        partition: &str,
    ) -> Option<Result<(Limits, Vec<Notice>), SchedError>> {
        let asked = || self.shared.limits(self.backend, job, partition);
        if self.silent { None } else { asked() }
    }

    fn rules(&self, job: &Job) -> Option<Arc<model::Cluster>> {
        if self.silent { None } else { self.shared.rules(self.backend, job) }
    }

    fn past(&self, job: &Job) -> Option<Arc<History>> {
        if self.silent { None } else { self.shared.past(self.backend, job) }
    }

    fn lacks_directory(&self, path: &Path) -> bool {
        let listed = self.shared.world.cluster.list(path);
        listed.is_err_and(|error| error.kind == FileErrorKind::Absent)
    }

    fn has_file(&self, path: &Path) -> bool {
        self.shared.world.cluster.open(path).is_ok()
    }

    fn backend(&self) -> Option<&Backend<'_>> {
        Some(self.backend).filter(|_| !self.silent)
    }

    fn children(
        &self,
        engine: &Engine,
        ids: &[JobId],
    ) -> Option<Result<Vec<Diagnosis>, SchedError>> {
        let facts = self.backend.jobs.as_ref().filter(|_| !self.silent)?;
        Some(facts.several(ids).map(|found| {
            let diagnose = |job| {
                let cluster = Self::new(self.backend, self.hints, self.shared);
                one(engine, job, &mut Cluster { silent: true, ..cluster })
            };
            found.value.into_iter().map(diagnose).collect()
        }))
    }
}

/// Logs and a script that are at hand; no cluster is asked.
#[derive(Default)]
pub(in crate::answer) struct AtHand {
    pub(in crate::answer) logs: Vec<Located>,
    pub(in crate::answer) script: Option<FoundScript>,
}

impl Surroundings for AtHand {
    fn explain(&self, reason: &str) -> Option<Reason> {
        slurm::explain_reason(reason)
    }

    fn logs(&mut self, _: &Job) -> Vec<Located> {
        std::mem::take(&mut self.logs)
    }

    fn script(&mut self, _: &Job) -> Option<&FoundScript> {
        self.script.as_ref()
    }

    fn script_at_hand(&self) -> Option<&(String, Vec<u8>)> {
        self.script.as_ref()?.as_ref().ok()
    }

    fn script_name(&self, _: &Job) -> String {
        match &self.script {
            Some(Ok((name, _))) => name.clone(),
            _ => String::new(),
        }
    }

    fn limits(&self, _: &Job, _: &str) -> Option<Result<(Limits, Vec<Notice>), SchedError>> {
        None
    }

    fn rules(&self, _: &Job) -> Option<Arc<model::Cluster>> {
        None
    }

    fn past(&self, _: &Job) -> Option<Arc<History>> {
        None
    }

    fn lacks_directory(&self, _: &Path) -> bool {
        false
    }

    fn has_file(&self, _: &Path) -> bool {
        false
    }

    fn backend(&self) -> Option<&Backend<'_>> {
        None
    }

    fn children(&self, _: &Engine, _: &[JobId]) -> Option<Result<Vec<Diagnosis>, SchedError>> {
        None
    }
}

/// What a script's directives say about files.
fn asked((_, bytes): &(String, Vec<u8>)) -> Asked {
    let script: Script = script::parse(bytes);
    let value = |long: &str| script.effective(long).and_then(|found| found.value.clone());
    Asked { output: value("output"), error: value("error"), chdir: value("chdir") }
}
