//! Which jobs a workflow's log says failed.
//!
//! An engine tells the id when it submits and the failure when it ends, some in one line and some far
//! apart. An id counts only with its failure. Forms: Snakemake's `cluster-generic` and `slurm`
//! executors, Nextflow's `TaskHandler`, submitit, Cromwell, Canu, and whoever prints what `sbatch` did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// More children of one workflow are not told.
pub const MOST: usize = 3;
/// Lines of a block that Snakemake prints about a failed rule.
const BLOCK: usize = 30;

/// A job that a workflow submitted, and that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its id, as the engine tells it: digits, and `_` with a task.
    pub id: String,
    /// The step of the workflow, where the log names it.
    pub step: Option<String>,
}

/// A pattern of this file; a test finds each.
struct Form(Option<Regex>);

impl Form {
    fn new(text: &str) -> Self {
        Self(Regex::new(text).ok())
    }

    fn captures<'l>(&self, line: &'l str) -> Option<Captures<'l>> {
        self.0.as_ref()?.captures(line)
    }

    fn is_match(&self, line: &str) -> bool {
        self.0.as_ref().is_some_and(|form| form.is_match(line))
    }
}

/// The id and the failure in one line.
static ONE_LINE: LazyLock<[Form; 4]> = LazyLock::new(|| {
    [
        Form::new(r"SLURM-job '(?P<id>\d+)' failed"),
        Form::new(
            r"Error executing rule (?P<step>\S+) on cluster \(.*external: (?:Submitted batch job )?(?P<id>\d+)",
        ),
        Form::new(
            r"TaskHandler\[jobId: (?P<id>\d+);.* name: (?P<step>[^;]+);.* exit: (?:[1-9]\d*|-)[;\]]",
        ),
        Form::new(r"\bJob (?P<id>\d+(?:_\d+)?) \(task: \d+\) with path "),
    ]
});
static RULE: LazyLock<Form> = LazyLock::new(|| Form::new(r"^Error in rule (?P<step>\w+):"));
static EXTERNAL: LazyLock<Form> = LazyLock::new(|| {
    Form::new(r"^\s+(?:external_jobid|cluster_jobid): (?:Submitted batch job )?(?P<id>\d+)")
});
static CROMWELL: LazyLock<Form> =
    LazyLock::new(|| Form::new(r"(?P<step>[\w.]+:[\w-]+:\d+)\]: job id: (?P<id>\d+)"));
static CROMWELL_FAILED: LazyLock<Form> = LazyLock::new(|| {
    Form::new(
        r"Job (?P<one>\S+) exited with return code|(?P<two>[\w.]+:[\w-]+:\d+)\]: Return file not found",
    )
});
static CANU: LazyLock<Form> = LazyLock::new(|| Form::new(r"-> job (?P<id>\d+) tasks? "));
static CANU_FAILED: LazyLock<Form> =
    LazyLock::new(|| Form::new(r"^-- +(?P<step>.+?) jobs failed, (?:tried|retry)"));
static SUBMITTED: LazyLock<Form> = LazyLock::new(|| Form::new(r"^Submitted batch job (?P<id>\d+)"));
static FAILED: LazyLock<Form> = LazyLock::new(|| {
    Form::new(
        r"(?i)\bfailed\b|\berror\b|OUT_OF_ME|TIMEOUT|NODE_FAIL|CANCELLED|exit(?:ed)?(?: with)?(?: code| status)? [1-9]",
    )
});

/// The jobs that a log says failed, in its order, the last state of each; at most three.
pub fn children(log: &str) -> Vec<Child> {
    let mut found: Vec<Child> = Vec::new();
    let mut add = |id: &str, step: Option<&str>| {
        let step = step.map(|step| step.trim().to_owned()).filter(|step| !step.is_empty());
        let full = found.len() == MOST;
        match found.iter_mut().find(|child| child.id == id) {
            Some(known) => known.step = known.step.take().or(step),
            None if full => {}
            None => found.push(Child { id: id.to_owned(), step }),
        }
    };
    let mut rule: Option<(&str, usize)> = None;
    let mut calls: BTreeMap<&str, &str> = BTreeMap::new();
    let mut stage: Option<&str> = None;
    let mut submitted: BTreeSet<&str> = BTreeSet::new();
    for (number, line) in log.lines().enumerate() {
        let own_rule = rule.filter(|(_, at)| number - at <= BLOCK).map(|(step, _)| step);
        for form in ONE_LINE.iter() {
            if let Some(found) = form.captures(line) {
                let step = found.name("step").map(|step| step.as_str());
                add(&found["id"], step.or(own_rule));
            }
        }
        if let Some(found) = RULE.captures(line) {
            rule = found.name("step").map(|step| (step.as_str(), number));
        } else if let (Some(step), Some(found)) = (own_rule, EXTERNAL.captures(line)) {
            add(&found["id"], Some(step));
        }
        if let Some(found) = CROMWELL.captures(line) {
            if let (Some(step), Some(id)) = (found.name("step"), found.name("id")) {
                calls.insert(step.as_str(), id.as_str());
            }
        } else if let Some(found) = CROMWELL_FAILED.captures(line) {
            let call = found.name("one").or_else(|| found.name("two"));
            let call = call.map_or("", |call| call.as_str());
            if let Some(id) = calls.get(call) {
                add(id, Some(call));
            }
        }
        if let Some(found) = CANU.captures(line) {
            stage = found.name("id").map(|id| id.as_str());
        } else if let (Some(id), Some(found)) = (stage, CANU_FAILED.captures(line)) {
            add(id, found.name("step").map(|step| step.as_str()));
        }
        if let Some(found) = SUBMITTED.captures(line) {
            submitted.extend(found.name("id").map(|id| id.as_str()));
        } else if !submitted.is_empty() && FAILED.is_match(line) {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric());
            for id in words.filter(|word| submitted.contains(word)) {
                add(id, None);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(log: &str) -> Vec<(String, Option<String>)> {
        children(log).into_iter().map(|child| (child.id, child.step)).collect()
    }

    fn child(id: &str, step: &str) -> (String, Option<String>) {
        (id.to_owned(), Some(step.to_owned()))
    }

    #[test]
    fn snakemake_tells_its_failed_jobs_in_three_forms() {
        // As snakemake-executor-plugin-slurm and `--cluster` of Snakemake 7 print them.
        let plugin = "Error in rule star_align:\n    message: SLURM-job '45360507' failed, SLURM status is: 'OUT_OF_MEMORY'. For further error details see the cluster/cloud log\n    jobid: 14\n    external_jobid: 45360507\n";
        assert_eq!(of(plugin), [child("45360507", "star_align")]);
        let older = "Submitted job 14 with external jobid 'Submitted batch job 98764'.\nError in rule star_align:\n    jobid: 14\n    output: a.bam\n    cluster_jobid: Submitted batch job 98765\n\nError executing rule star_align on cluster (jobid: 14, external: Submitted batch job 98765, jobscript: /home/alice/x.sh). For error details see the cluster log\n";
        assert_eq!(of(older), [child("98765", "star_align")]);
    }

    #[test]
    fn other_engines_tell_the_id_before_the_failure() {
        let nextflow = "Nov-30 10:12 [Task monitor] DEBUG n.processor.TaskPollingMonitor - Task completed > TaskHandler[jobId: 7312; id: 4; name: ALIGN (S1); status: COMPLETED; exit: 137; error: -; workDir: /w started: 1; exited: -; ]\n";
        assert_eq!(of(nextflow), [child("7312", "ALIGN (S1)")]);
        assert!(of(&nextflow.replace("exit: 137", "exit: 0")).is_empty());
        let cromwell = "[2026-11-30 10:00:00,01] [info] DispatchedConfigAsyncJobExecutionActor [52491eafatac.align:NA:1]: job id: 5512\n[info] DispatchedConfigAsyncJobExecutionActor [1fatac.trim:NA:1]: job id: 5513\nJob 52491eafatac.align:NA:1 exited with return code 1 which has not been declared as a valid return code.\n";
        assert_eq!(of(cromwell), [child("5512", "52491eafatac.align:NA:1")]);
        let canu = "    'meryl-count.jobSubmit-01.sh' -> job 5723 tasks 1-16.\n--  meryl-count jobs failed, tried 2 times, giving up.\n";
        assert_eq!(of(canu), [child("5723", "meryl-count")]);
        let submitit = "submitit.core.utils.UncompletedJobError: Job 98765_0 (task: 0) with path /home/alice/98765_0_0_result.pkl\nhas not produced any output (state: OUT_OF_MEMORY)\n";
        assert_eq!(of(submitit), [("98765_0".to_owned(), None)]);
    }

    #[test]
    fn a_job_that_is_only_named_has_not_failed() {
        let script = "Submitted batch job 77\nSubmitted batch job 78\nwaiting\njob 78 failed with OUT_OF_MEMORY\n";
        assert_eq!(of(script), [("78".to_owned(), None)]);
        assert!(of("Submitted batch job 77\nerror: 12 of 770 files\n").is_empty());
        let lines: Vec<String> = (1..=9).map(|n| format!("SLURM-job '{n}' failed, x")).collect();
        let many = lines.join("\n");
        assert_eq!(of(&many).len(), MOST);
    }

    proptest! {
        #[test]
        fn no_log_makes_it_panic(log in "(Error in rule |external_jobid: |job id: |-> job |Submitted batch job |failed|é|[0-9]{1,4}|\n|[ -~]{0,8}){0,40}") {
            for child in children(&log) {
                prop_assert!(child.id.bytes().all(|b| b.is_ascii_digit() || b == b'_'));
            }
        }
    }
}
