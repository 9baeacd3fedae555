//! What the same work took before: asked for once, and only where it changes what is said.

use std::fs;

use crate::run::{COLUMNS, Test, fixture};

/// The record of a run of ten minutes, in this state after so long; its name is `oom`.
fn record(state: &str, exit: &str, elapsed: &str) -> String {
    let row = fixture("slurm-22.05/sacct-oom.txt");
    let row = row.lines().next().expect("a row");
    row.replace("OUT_OF_MEMORY", state)
        .replace("0:125", exit)
        .replace("00:00:02", elapsed)
        // Its CPU was busy.
        .replace("00:00.116", elapsed)
}

/// A cluster whose accounting knows job 67, and so many earlier runs of its name that ended well.
fn with_past(name: &str, job: &str, earlier: &[&str]) -> Test {
    let test = Test::slurm(name);
    for (index, elapsed) in earlier.iter().enumerate() {
        let id = (index + 1).to_string();
        let row = record("COMPLETED", "0:0", elapsed);
        test.record(&id, &row.replacen("67@~@67@~@", &format!("{id}@~@{id}@~@"), 1));
        let (from, to) = (test.path("answers/cells"), test.path(&format!("answers/{id}/cells")));
        fs::remove_file(test.path(&format!("answers/{id}"))).expect("removed");
        fs::create_dir_all(test.path(&format!("answers/{id}"))).expect("made");
        fs::rename(from, to).expect("moved");
    }
    test.record("67", job);
    let ids: Vec<String> = (1..=earlier.len()).map(|id| id.to_string()).collect();
    test.client(
        "sacct",
        &format!(
            r#"case "$*" in
    *--helpformat*) say fields ;;
    *--batch-script*) ;;
    *--name=*) root=$answers; for id in {}; do (answers=$root/$id; say_cells "${{*##*--format=}}"); done ;;
    *--jobs=67*) say_columns 67 "${{*##*--format=}}" ;;
esac"#,
            ids.join(" ")
        ),
    );
    let calls = test.path("calls").display().to_string();
    test.env("CALLS", &calls)
}

const LIMIT: &str =
    "slurmstepd: error: *** JOB 67 ON c04 CANCELLED AT 2026-11-30T10:44:33 DUE TO TIME LIMIT ***\n";

#[test]
fn a_run_that_never_needed_so_long_gets_no_more_time() {
    let job = record("TIMEOUT", "0:0", "00:10:02");
    let test = with_past("past-enough", &job, &["00:02:00", "00:01:30", "00:02:10"]);
    test.file("work/oom-67_4294967294.out", format!("step 1\n{LIMIT}").as_bytes());
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("(time_limit)");
    shown.says("no change 3 runs called oom ended well within 00:02:10, so 00:10:00 was enough");
    assert!(!shown.stdout.contains("\nchange "), "{}", shown.all());
    let calls = fs::read_to_string(test.path("calls")).expect("calls");
    assert_eq!(calls.matches("--name=oom").count(), 1, "{calls}");
    assert!(calls.lines().count() <= 8, "{calls}");
    // Runs that took nearly as long say nothing of the kind, and two are no habit.
    for (name, earlier) in
        [("past-near", &["00:02:00", "00:08:00", "00:02:10"][..]), ("past-few", &["00:02:00"; 2])]
    {
        let test = with_past(name, &job, earlier);
        test.file("work/oom-67_4294967294.out", format!("step 1\n{LIMIT}").as_bytes());
        let shown = test.run(&["diagnose", "67"]);
        shown.ends(0).says("(time_limit)").says("change");
        assert!(!shown.stdout.contains("no change"), "{}", shown.all());
        let calls = fs::read_to_string(test.path("calls")).expect("calls");
        assert!(calls.lines().count() <= 8, "{calls}");
    }
}

#[test]
fn a_completed_run_that_was_over_at_once_is_doubted() {
    let job = record("COMPLETED", "0:0", "00:00:12");
    let long = ["01:02:00", "01:10:00", "01:30:00", "01:01:30", "02:00:00"];
    let test = with_past("past-short", &job, &long);
    test.file("work/oom-67_4294967294.out", b"done\n");
    test.run(&["diagnose", "67"]).ends(0).says(
        "warning: it was over after 00:00:12; the shortest of 5 runs called oom that ended well \
         took 01:01:30 hint: look whether it did its work",
    );
    let calls = fs::read_to_string(test.path("calls")).expect("calls");
    assert!(calls.lines().count() <= 4, "{calls}");
    // As long as ever, or a name whose runs are all short.
    let usual = with_past("past-usual", &record("COMPLETED", "0:0", "01:00:00"), &long);
    let quick = with_past("past-quick", &job, &["00:04:00"; 5]);
    for test in [usual, quick] {
        let shown = test.run(&["diagnose", "67"]);
        assert!(!shown.stdout.contains("it was over after"), "{}", shown.all());
    }
}

#[test]
fn a_completed_job_whose_log_ends_in_an_exception_is_not_called_healthy() {
    let test = with_past("past-raised", &record("COMPLETED", "0:0", "00:00:12"), &[]);
    let raised = "Traceback (most recent call last):\n  File \"/home/u/a.py\", line 1, in <module>\nKeyError: 'x'\n";
    test.file("work/oom-67_4294967294.out", raised.as_bytes());
    let shown = test.run(&["diagnose", "67"]);
    shown
        .ends(0)
        .says("(application_error)")
        .says("the state is that of the script's last command");
}

/// A run of an hour on two GPUs of this model, of whose use accounting says so much.
fn on_gpus(name: &str, release: &str, state: &str, model: &str, used: &str) -> Test {
    let test = Test::slurm(name);
    test.answer("fields", &fixture(&format!("{release}/sacct-helpformat.txt")));
    test.answer("columns", &format!("{COLUMNS},TRESUsageInTot"));
    let gpus = format!("cpu=1,gres/gpu:{model}=2,gres/gpu=2,mem=100M");
    let exit = if state == "COMPLETED" { "0:0" } else { "1:0" };
    let row = record(state, exit, "01:00:00").replace("billing=1,cpu=1,mem=100M,node=1", &gpus);
    let batch = row.replace("67@~@67@~@", "67.batch@~@67.batch@~@");
    test.record("67", &format!("{row}@~@\n{batch}@~@{used}\n"));
    test.file("work/oom-67_4294967294.out", b"Traceback (most recent call last):\n  File \"/home/a/x.py\", line 3, in <module>\nKeyError: 'lr'\n");
    test
}

#[test]
fn gpus_that_were_measured_and_never_used_are_told() {
    const NONE: &str = "cpu=00:00:20,gres/gpumem=0,gres/gpuutil=0,mem=100M";
    let said = "warning: 2 GPUs held for 01:00:00 and never used: accounting measured 0 % of use and \
                no memory in every step hint: if the program should use one, print what it sees";
    for (name, state) in [("gpu-completed", "COMPLETED"), ("gpu-failed", "FAILED")] {
        let test = on_gpus(name, "slurm-24.11", state, "a100", NONE);
        if state == "COMPLETED" {
            test.file("work/oom-67_4294967294.out", b"done\n");
        }
        test.run(&["diagnose", "67"]).ends(0).says(said);
    }
    // Used a little; not gathered; a part of a GPU, which cannot be measured; a release that lost what
    // it had measured (Slurm's changes in 23.02.6: "lost with jobacct_gather/cgroup").
    for (name, release, model, used) in [
        ("gpu-used", "slurm-24.11", "a100", "cpu=00:00:20,gres/gpumem=9G,gres/gpuutil=0,mem=100M"),
        ("gpu-unknown", "slurm-24.11", "a100", "cpu=00:00:20,mem=100M"),
        ("gpu-part", "slurm-24.11", "a100_1g.5gb", NONE),
        ("gpu-lost", "slurm-22.05", "a100", NONE),
    ] {
        let shown = on_gpus(name, release, "FAILED", model, used).run(&["diagnose", "67"]);
        assert!(!shown.stdout.contains("never used"), "{name}: {}", shown.all());
    }
}
