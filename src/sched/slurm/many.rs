//! Several jobs at once: however many are named, Slurm is asked a few times and not once for each.
//!
//! Accounting takes a list of ids. The controller takes one id or none, so of more than a few jobs
//! all that it knows is read, as `squeue` does. Scripts come from accounting by a list, too; the
//! controller writes one at a time, so only a few are had from there.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::model::{Job, JobId, Notice};

use super::controlled::SHORT_DEADLINE;
use super::fields::{Field, Fields, Layout};
use super::named::{is_named, queried};
use super::scripts::NOT_STORED;
use super::{Found, Jobs, SchedError, is_not_held, of_a_job, scontrol, stored};

/// So many ids at most are in one query: an id may be an array of thousands.
const IDS: usize = 200;
/// Of so many jobs at most the controller is asked one by one.
const ONE_BY_ONE: usize = 4;

/// What is known of one id.
type Answer = Result<Found<Vec<Job>>, SchedError>;
/// Ids that have no answer, each with its reason.
type Unanswered = Vec<(JobId, SchedError)>;

/// What was asked for several jobs at once.
#[derive(Default)]
pub(super) struct AtOnce {
    /// All jobs that the controller knows.
    controlled: OnceLock<Result<Vec<Job>, SchedError>>,
    /// The scripts that accounting gave, or none, by the numbers of their jobs.
    scripts: OnceLock<BTreeMap<u64, Option<Vec<u8>>>>,
    /// Scripts that the controller was asked for.
    written: AtomicUsize,
}

impl Jobs<'_> {
    /// As [`Jobs::job`] for each of several ids, in their order.
    pub fn jobs(&self, ids: &[JobId]) -> Vec<Answer> {
        self.each_of(ids, of_a_job, Self::job)
    }

    /// All that is recorded about several ids, in their order, the records of each together; of the
    /// caller's running jobs also what their steps have used so far. And the ids that have no answer,
    /// each with its reason.
    pub fn whole_jobs(&self, ids: &[JobId]) -> (Found<Vec<Vec<Job>>>, Unanswered) {
        let mut all = Found { value: Vec::new(), notices: Vec::new() };
        let mut unknown = Vec::new();
        for (id, found) in ids.iter().zip(self.each_of(ids, Fields::whole, Self::whole_job)) {
            match found {
                Err(error) => unknown.push((id.clone(), error)),
                Ok(Found { value, notices }) => {
                    all.value.push(value);
                    for notice in notices {
                        if !all.notices.contains(&notice) {
                            all.notices.push(notice);
                        }
                    }
                }
            }
        }
        self.add_live(&mut all.value, &mut all.notices);
        (all, unknown)
    }

    fn each_of(
        &self,
        ids: &[JobId],
        columns: fn(&Fields) -> Layout,
        alone: fn(&Self, &JobId) -> Answer,
    ) -> Vec<Answer> {
        let mut clusters: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            clusters.entry(id.cluster.as_deref()).or_default().push(place);
        }
        let mut answers = BTreeMap::new();
        for chunk in clusters.values().flat_map(|places| places.chunks(IDS)) {
            let asked: Vec<JobId> = chunk.iter().map(|place| ids[*place].clone()).collect();
            let found = match &asked[..] {
                [id] => vec![alone(self, id)],
                _ => self.together(&asked, columns, alone),
            };
            answers.extend(chunk.iter().copied().zip(found));
        }
        answers.into_values().collect()
    }

    /// Several ids of one cluster.
    fn together(
        &self,
        ids: &[JobId],
        columns: fn(&Fields) -> Layout,
        alone: fn(&Self, &JobId) -> Answer,
    ) -> Vec<Answer> {
        let mut notices: Vec<Notice> = Vec::new();
        let recorded = self.recorded(ids, columns, &mut notices);
        // It may hold them one by one.
        if is_not_held(&recorded) {
            return ids.iter().map(|id| alone(self, id)).collect();
        }
        let mut of_ids = Vec::new();
        for id in ids {
            let its = |jobs: &Vec<Job>| -> Vec<Job> {
                jobs.iter().filter(|job| is_named(id, job)).cloned().collect()
            };
            of_ids.push(recorded.as_ref().map(its).map_err(SchedError::clone));
        }
        let wants_controller = |jobs: &&Result<Vec<Job>, SchedError>| {
            let jobs = jobs.as_ref().map_or(&[][..], Vec::as_slice);
            jobs.is_empty() || jobs.iter().any(|job| self.controller_adds(job))
        };
        let wanting = of_ids.iter().filter(wants_controller).count();
        if wanting > ONE_BY_ONE && ids[0].cluster.is_none() {
            self.at_once.controlled.get_or_init(|| self.all_controlled());
        }
        let complete = |(id, recorded)| self.completed(id, recorded, std::mem::take(&mut notices));
        ids.iter().zip(of_ids).map(complete).collect()
    }

    fn all_controlled(&self) -> Result<Vec<Job>, SchedError> {
        let cmd = self.ask("scontrol", &["--oneliner", "show", "job"]);
        let output = self.query(&cmd.deadline(self.deadline.min(SHORT_DEADLINE)))?;
        Ok(scontrol::jobs(&output.stdout).0)
    }

    /// What the controller knows of an id, where all that it knows was read.
    pub(super) fn controlled_at_once(
        &self,
        id: &JobId,
    ) -> Option<Result<(Vec<Job>, usize), SchedError>> {
        let all = self.at_once.controlled.get().filter(|_| id.cluster.is_none())?;
        Some(all.as_ref().map_err(SchedError::clone).and_then(|all| {
            let its: Vec<Job> = all.iter().filter(|job| is_named(id, job)).cloned().collect();
            if its.is_empty() {
                return Err(SchedError::UnknownJob { id: id.clone() });
            }
            Ok((its, 0))
        }))
    }

    /// Asks accounting for the scripts of several jobs of the cluster at hand, so that it need not
    /// be asked for each.
    pub fn fetch_scripts<'j>(&self, jobs: impl Iterator<Item = &'j Job>) {
        let stores = self.fields().is_ok_and(|fields| fields.has(Field::SubmitLine));
        let mut numbers: Vec<u64> =
            jobs.filter(|job| job.id.cluster.is_none()).map(|job| job.id.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() < 2 || !stores {
            return;
        }
        let mut scripts = BTreeMap::new();
        for chunk in numbers.chunks(IDS) {
            let ids: Vec<String> =
                chunk.iter().map(|number| queried(&JobId::whole(*number))).collect();
            let cmd = self.ask("sacct", &["--batch-script"]);
            let answer = self.query(&cmd.arg(format!("--jobs={}", ids.join(","))));
            let Ok(output) = answer else { return };
            let mut given = stored::scripts(&output.stdout);
            for number in chunk {
                // Of one that is in doubt it is asked alone.
                match given.remove(number) {
                    Some(None) => {}
                    script => _ = scripts.insert(*number, script.flatten()),
                }
            }
        }
        let _ = self.at_once.scripts.set(scripts);
    }

    /// The script of a job, or that there is none, where accounting was asked for several.
    pub(super) fn stored_at_once(&self, job: &Job) -> Option<Result<Vec<u8>, &'static str>> {
        let scripts = self.at_once.scripts.get().filter(|_| job.id.cluster.is_none())?;
        scripts.get(&job.id.number).map(|script| script.clone().ok_or(NOT_STORED))
    }

    /// Whether the controller may be asked for one more script.
    pub(super) fn may_write_script(&self) -> bool {
        self.at_once.written.fetch_add(1, Ordering::Relaxed) < ONE_BY_ONE
    }
}
