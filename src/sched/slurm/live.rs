//! What the steps of running jobs have used so far: `sstat`, which asks their nodes.
//!
//! Accounting learns what a step used when the step ends. The nodes answer nobody but the owner of
//! a job and root (`man sstat`), so of others' jobs nothing is asked; nor of many jobs at once, as
//! every node of each has to answer. Steps that are over keep what accounting says.

use crate::model::{BaseState, Job, Known, Notice, Span, State, Step, StepId, Tres};
use crate::text;

use super::controlled::SHORT_DEADLINE;
use super::named::own_number;
use super::{Jobs, SchedError, values};

/// Columns that 20.11 has, too; none of them holds text that users write.
const COLUMNS: [&str; 7] =
    ["JobID", "NTasks", "MaxRSS", "MaxRSSNode", "AveRSS", "TRESUsageInTot", "TRESUsageOutTot"];
/// More running jobs are not asked after.
const JOBS: usize = 8;
/// A task that has used more has used none: the counter was not read (seen as 200 billion days).
const LONGEST: u64 = 366 * 86_400;

impl Jobs<'_> {
    /// Adds to the caller's running jobs what their steps have used; one query, which may not take
    /// long.
    pub(super) fn add_live(&self, jobs: &mut [Vec<Job>], notices: &mut Vec<Notice>) {
        let caller = self.runner.caller();
        let is_own = |job: &Job| {
            caller.uid == 0
                || job.uid.get().map_or_else(
                    || job.user.is_some() && job.user == caller.name,
                    |uid| uid == u64::from(caller.uid),
                )
        };
        let numbers: Vec<String> = jobs
            .iter()
            .flatten()
            .filter(|job| job.state.base == BaseState::Running && is_own(job))
            .map(|job| own_number(job).to_string())
            .collect();
        // The client asks the nodes of the cluster at hand, whatever cluster a job is of.
        let elsewhere = jobs.iter().flatten().any(|job| job.id.cluster.is_some());
        // A record that was never closed has no node that could answer.
        let stale = notices.iter().any(|notice| notice.code == "stale-record");
        if numbers.is_empty() || elsewhere || stale {
            return;
        }
        if numbers.len() > JOBS {
            let text = format!(
                "what their steps have used so far was not asked for: it is of at most {JOBS} running \
                 jobs"
            );
            notices.push(Notice::info("no-live-use", text));
            return;
        }
        let cmd = self
            .ask("sstat", &["--allsteps", "--noheader", "--parsable2"])
            .arg(format!("--format={}", COLUMNS.join(",")))
            .arg(format!("--jobs={}", numbers.join(",")))
            .deadline(self.deadline.min(SHORT_DEADLINE));
        match self.query(&cmd) {
            Ok(output) => {
                let steps = add(&output.stdout, jobs);
                if steps > 0 {
                    let steps = text::count(steps as u64, "running step");
                    let text = format!("use of {steps}: as far as the nodes have counted it");
                    notices.push(Notice::info("live-use", text));
                }
            }
            // A recording of before holds no such answer.
            Err(SchedError::NotRecorded { .. } | SchedError::NotInDemo(_)) => {}
            Err(SchedError::NoScheduler) => {
                let text = "what its steps have used so far is not known: no sstat here";
                notices.push(Notice::info("no-live-use", text));
            }
            Err(error) => {
                let text = format!("what its steps have used so far is not known: {error}");
                notices.push(Notice::info("no-live-use", text));
            }
        }
    }
}

/// Adds the rows of an answer to the steps that they are of; says of how many.
fn add(output: &[u8], jobs: &mut [Vec<Job>]) -> usize {
    let text = String::from_utf8_lossy(output);
    let rows = text.lines().map(|line| line.split('|').collect::<Vec<&str>>());
    let mut steps = 0;
    for row in rows {
        let Ok(cells) = <[&str; COLUMNS.len()]>::try_from(row) else { continue };
        let Some((id, step)) = cells[0].split_once('.') else { continue };
        let of_row = |job: &&mut Job| id.parse() == Ok(own_number(job)) && !job.state.is_ended();
        if let Some(job) = jobs.iter_mut().flatten().find(of_row) {
            steps += usize::from(add_to(job, step, cells));
        }
    }
    steps
}

fn add_to(job: &mut Job, id: &str, cells: [&str; COLUMNS.len()]) -> bool {
    let [_, tasks, most, node, average, total, total_out] = cells;
    let place = job.steps.iter().position(|step| step.id.0 == id).unwrap_or_else(|| {
        job.steps.push(Step::bare(StepId(id.to_owned()), State::parse("RUNNING")));
        job.steps.len() - 1
    });
    let step = &mut job.steps[place];
    if step.state.is_ended() {
        return false;
    }
    // Before the first sample there are zeros, and no step uses no memory.
    let measured = |text: &str| match values::bytes(text) {
        Known::Value(bytes) if bytes.0 == 0 => Known::NotGathered,
        bytes => bytes,
    };
    if !step.tasks.is_value() {
        step.tasks = values::count(tasks);
    }
    step.max_rss = measured(most);
    step.max_rss_node = values::word(node).filter(|_| step.max_rss.is_value());
    step.usage.average_rss = measured(average);
    (step.usage.total, step.usage.total_out) = (Tres::parse(total), Tres::parse(total_out));
    let used = step.usage.total.get("cpu").map_or(Known::NotGathered, values::span);
    let tasks = step.tasks.get().unwrap_or(1).max(1);
    match used.get().map(Span::as_seconds) {
        Some(seconds) if seconds > 0 && seconds <= LONGEST.saturating_mul(tasks) => {
            step.cpu_time = used;
        }
        _ => {
            step.usage.total.0.remove("cpu");
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Bytes, Source};

    fn running(id: &str) -> Job {
        let id = id.parse().expect("an id");
        Job::bare(id, State::parse("RUNNING"), Source::Accounting)
    }

    #[test]
    fn what_the_nodes_count_is_added_to_running_steps() {
        // The columns of a row that `sstat` of Slurm 22.05 printed, with CPU time and a second task.
        let mut jobs = vec![running("134")];
        let over = Step::bare(StepId("0".into()), State::parse("COMPLETED"));
        jobs[0].steps.push(over.clone());
        let output = b"134.batch|2|396K|c02|396K|cpu=00:01:30,fs/disk=10129,mem=792K|fs/disk=1\n\
                       134.0|1|9G|c02|9G||\n135.batch|1|1G|c02|1G||\nno row\n";
        assert_eq!(add(output, std::slice::from_mut(&mut jobs)), 1);
        assert_eq!(jobs[0].steps[0], over, "what is over keeps what accounting says");
        let batch = &jobs[0].steps[1];
        assert_eq!(batch.max_rss, Known::Value(Bytes(396 << 10)));
        assert_eq!(batch.cpu_time, Known::Value(Span::seconds(90)));
        assert_eq!((batch.tasks.get(), jobs[0].steps.len()), (Some(2), 2));
    }

    #[test]
    fn what_was_not_sampled_stays_unknown() {
        let mut jobs = vec![running("134")];
        for cpu in ["00:00:00", "213503982334-14:25:51"] {
            let row = format!("134.batch|1|0|c02|0|cpu={cpu}|\n");
            assert_eq!(add(row.as_bytes(), std::slice::from_mut(&mut jobs)), 1);
            let batch = &jobs[0].steps[0];
            assert!(!batch.max_rss.is_value() && !batch.cpu_time.is_value(), "{cpu}");
            assert_eq!((batch.usage.total.get("cpu"), batch.max_rss_node.as_deref()), (None, None));
        }
    }

    #[test]
    fn a_task_of_an_array_is_found_by_its_own_number() {
        let mut jobs = vec![running("134_1"), running("134_2")];
        jobs[0].raw_id = Known::Value(135);
        jobs[1].raw_id = Known::Value(134);
        assert_eq!(add(b"134.batch|1|4K|n|4K||\n", std::slice::from_mut(&mut jobs)), 1);
        assert_eq!((jobs[0].steps.len(), jobs[1].steps.len()), (0, 1));
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut jobs = vec![running("1")];
            add(&[b"1.0|".as_slice(), &bytes].concat(), std::slice::from_mut(&mut jobs));
        }
    }
}
