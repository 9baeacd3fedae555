//! Jobs that a tool submitted: the change is told in the words of that tool, and a workflow's failed
//! job is followed to its cause.

use std::fs;
use std::process::Command;

use crate::run::{Test, fixture};

/// What snakemake-executor-plugin-slurm prints about a rule whose job the kernel killed.
const SNAKEMAKE: &str = "Building DAG of jobs...
Error in rule star_align:
    message: SLURM-job '67' failed, SLURM status is: 'OUT_OF_MEMORY'. For further error details see the cluster/cloud log and the log files of the involved rule(s).
    jobid: 14
    external_jobid: 67
Exiting because a job execution failed. Look below for error messages
";

/// A controller job with this log; its record is that of a job that failed by itself.
fn controller(name: &str, log: &str) -> Test {
    let test = Test::slurm(name);
    let calls = test.path("calls").display().to_string();
    let record = fixture("slurm-22.05/sacct-segv.txt");
    let record = record.replace("@~@11:0", "@~@1:0").replace("@~@0:11", "@~@1:0");
    test.record("41", &record);
    test.file("work/fail-segv-41_4294967294.out", log.as_bytes());
    test.env("CALLS", &calls)
}

#[test]
fn a_workflow_leads_to_its_failed_job_and_to_its_own_setting() {
    let test = controller("wrapper-child", SNAKEMAKE);
    let shown = test.run(&["diagnose", "41"]);
    shown.ends(0).says("(workflow_engine)");
    shown.says("child step star_align, job 67, OUT_OF_MEMORY: Host memory exhausted (host_oom)");
    shown.says("oom-67_4294967294.out:2");
    // The need lies above the limit of 100M: twice that, in the unit of the rule.
    shown.says("set in Snakemake (seen in the log): `resources: mem_mb=200` of the rule");
    let calls = fs::read_to_string(test.path("calls")).expect("calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.iter().filter(|call| call.contains("--jobs=67")).count(), 1, "{calls:#?}");
    assert!(calls.len() <= 8, "{calls:#?}");
    let answer = test.run(&["diagnose", "41", "--json"]).json();
    let child = &answer["diagnoses"][0]["children"][0];
    assert_eq!(child["step"], "star_align");
    assert_eq!(child["diagnosis"]["verdict"]["causes"][0]["family"], "host_oom");
    test.run(&["diagnose", "41", "--ticket"])
        .says("- step star_align, job 67, OUT_OF_MEMORY: Host");
}

#[test]
fn a_packed_log_leads_to_the_failed_job_as_well() {
    let test = Test::new("wrapper-packed");
    let path = test.file("work/snake.log", SNAKEMAKE.as_bytes());
    assert!(Command::new("gzip").arg(&path).status().expect("gzip").success());
    let shown = test.run(&["diagnose", "--log", "snake.log.gz"]);
    shown.says("step star_align, job 67: not read (no scheduler is asked");
}

#[test]
fn a_child_that_cannot_be_read_is_named() {
    let unknown = SNAKEMAKE.replace("67", "990");
    let test = controller("wrapper-unknown", &unknown);
    let shown = test.run(&["diagnose", "41"]);
    shown.says("child step star_align, job 990: not read (accounting does not know it); ask:");
    shown.says("jobwise diagnose 990");
    // Without a scheduler the id is told all the same.
    let alone = Test::new("wrapper-alone");
    alone.file("work/snake.log", unknown.as_bytes());
    let shown = alone.run(&["diagnose", "--log", "snake.log"]);
    shown.says("job 990: not read (no scheduler is asked");
    // The workflow says itself how that job ended: which of its settings that is about is known.
    shown.says("set in Snakemake (seen in the log): `resources: mem_mb=");
    alone.file("work/snake.log", unknown.replace("OUT_OF_MEMORY", "FAILED").as_bytes());
    let shown = alone.run(&["diagnose", "--log", "snake.log"]);
    assert!(!shown.stdout.contains("set in"), "{}", shown.all());
}

#[test]
fn at_most_three_children_are_asked_for_in_one_query() {
    let log: String = (901..=909).map(|id| SNAKEMAKE.replace("67", &id.to_string())).collect();
    let test = controller("wrapper-many", &log);
    test.run(&["diagnose", "41"]).says("job 901").says("job 903");
    let calls = fs::read_to_string(test.path("calls")).expect("calls");
    assert_eq!(calls.matches("--jobs=901,902,903").count(), 1, "{calls}");
    assert!(!calls.contains("904"), "{calls}");
}

#[test]
fn the_change_is_told_in_the_words_of_the_tool_that_submitted() {
    let test = Test::slurm("wrapper-nextflow");
    let record = fixture("slurm-22.05/sacct-oom.txt");
    let submitted = "sbatch --parsable -J oom -o oom-%A_%a.out --mem=100 /home/scripts/oom.sh";
    let nextflow = "sbatch -o oom-%A_%a.out --mem 100M .command.run";
    assert!(record.contains(submitted));
    test.record("67", &record.replace(submitted, nextflow));
    test.run(&["diagnose", "67"])
        .ends(0)
        .says("set in Nextflow (seen in the submission command): `process.memory = '1 GB'`");
    // Who wrote the submission by hand sees nothing of this.
    test.record("67", &record);
    let own = test.run(&["diagnose", "67", "--json"]).json();
    assert!(own["diagnoses"][0]["wrapper"].is_null(), "{own}");
}
