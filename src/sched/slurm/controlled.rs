//! What only the controller can know of a job: its present, where its logs are, which of two exit codes
//! it was; and all of it, while accounting is off or silent.
//!
//! It knows no steps, and forgets a job minutes after its end, so it is asked only where it can add
//! something. An open record that it does not know was never closed: that is told, not mended.

use std::time::Duration;

use jiff::SignedDuration;

use crate::model::{Job, JobId, Notice, Part};

use super::fields::Field;
use super::named::{is_named, own_number, queried};
use super::{Jobs, SchedError, is_lack, on_cluster, quirks, scontrol, squeue, unreadable_rows};

/// No site is known to keep ended jobs in the controller for longer.
const CONTROLLER_MEMORY: SignedDuration = SignedDuration::from_hours(1);
/// Once accounting has answered, a controller that is down may not hold that up for long.
pub(super) const SHORT_DEADLINE: Duration = Duration::from_secs(10);

impl Jobs<'_> {
    /// What the controller holds about an id.
    pub(super) fn controlled(
        &self,
        id: &JobId,
        patience: Duration,
    ) -> Result<(Vec<Job>, usize), SchedError> {
        if let Some(known) = self.controlled_at_once(id) {
            return known;
        }
        let show = |asked: String| {
            let cmd = on_cluster(self.ask("scontrol", &["--oneliner"]), id).deadline(patience);
            self.query(&cmd.arg("show").arg("job").arg(asked))
        };
        let output = match (show(queried(id)), &id.part) {
            // As of accounting: what was recorded of an array is what there is of its tasks.
            (Err(error), Part::Task(_)) if is_lack(&error) => show(id.number.to_string())?,
            (answer, _) => answer?,
        };
        let (mut jobs, unreadable) = scontrol::jobs(&output.stdout);
        jobs.retain(|job| is_named(id, job));
        Ok((jobs, unreadable))
    }

    /// The jobs where accounting gave none: it is off or silent, or has not heard of them yet.
    pub(super) fn only_controlled(
        &self,
        id: &JobId,
        refusal: Option<SchedError>,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<Job>, SchedError> {
        let jobs = match self.controlled(id, self.deadline) {
            Ok((jobs, unreadable)) => {
                if unreadable > 0 {
                    notices.push(unreadable_rows(unreadable));
                }
                jobs
            }
            Err(SchedError::UnknownJob { .. }) => Vec::new(),
            // What accounting said comes first: it is the one that should have known.
            Err(error) => return Err(refusal.unwrap_or(error)),
        };
        if jobs.is_empty() {
            return Err(refusal.unwrap_or_else(|| SchedError::UnknownJob { id: id.clone() }));
        }
        if let Some(refusal) = refusal {
            notices.push(
                Notice::warning(
                    "no-accounting",
                    format!("{refusal}; this is the controller's record"),
                )
                .hint("the controller knows no steps and forgets a job minutes after its end"),
            );
        }
        Ok(jobs)
    }

    /// Whether the controller may know what accounting does not: the present, where the logs are,
    /// which of two exit codes it was.
    pub(super) fn controller_adds(&self, job: &Job) -> bool {
        let lacks = !self.records_logs() || job.exit.get().is_some_and(quirks::is_ambiguous);
        !job.state.is_ended() || (lacks && self.may_remember(job))
    }

    pub(super) fn records_logs(&self) -> bool {
        self.fields().is_ok_and(|fields| fields.has(Field::Stdout))
    }

    /// Whether the controller may still know a job: it forgets `MinJobAge` after the end, five
    /// minutes unless the site says otherwise.
    pub(super) fn may_remember(&self, job: &Job) -> bool {
        let end = job.ended.get();
        !job.state.is_ended()
            || end.is_none_or(|end| self.runner.now().duration_since(end) < CONTROLLER_MEMORY)
    }

    pub(super) fn add_controlled(&self, id: &JobId, jobs: &mut [Job], notices: &mut Vec<Notice>) {
        let live = match self.controlled(id, self.deadline.min(SHORT_DEADLINE)) {
            Ok((live, _)) => live,
            Err(SchedError::UnknownJob { .. }) => Vec::new(),
            Err(error) => {
                if jobs.iter().any(|job| !job.state.is_ended()) {
                    notices.push(Notice::warning(
                        "no-controller",
                        format!("the controller could not be asked for the present state: {error}"),
                    ));
                }
                return;
            }
        };
        let mut unconfirmed = Vec::new();
        for job in jobs {
            match live.iter().find(|live| own_number(live) == own_number(job)) {
                Some(live) => scontrol::merge(job, live),
                None if !job.state.is_ended() => unconfirmed.push(&*job),
                None => {}
            }
        }
        if !unconfirmed.is_empty() {
            self.find_stale(id, &unconfirmed, notices);
        }
    }

    /// Says which open records the queue does not know either: they were never closed.
    fn find_stale(&self, id: &JobId, jobs: &[&Job], notices: &mut Vec<Notice>) {
        let numbers: Vec<String> = jobs.iter().map(|job| own_number(job).to_string()).collect();
        let cmd = self
            .ask("squeue", &["--noheader", "--states=all"])
            .arg(format!("--format={}", squeue::FORMAT))
            .arg(format!("--jobs={}", numbers.join(",")));
        let queued = if self.controlled_at_once(id).is_some() {
            // All that it knows was read, and these are not among it.
            squeue::numbers(b"")
        } else {
            match self.query(&on_cluster(cmd, id)) {
                Ok(output) => squeue::numbers(&output.stdout),
                // So it says when none of the numbers is in the queue.
                Err(SchedError::UnknownJob { .. }) => squeue::numbers(b""),
                Err(_) => return,
            }
        };
        for job in jobs.iter().filter(|job| !queued.contains(&own_number(job))) {
            notices.push(Notice::warning(
                "stale-record",
                format!(
                    "accounting shows job {} as {}, but the controller does not know it: its end \
                     was never recorded",
                    job.id, job.state,
                ),
            ));
        }
    }
}
