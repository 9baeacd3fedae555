//! A scheduler that does not answer as it should.

use std::fs;

use serde_json::{Value, json};

use crate::run::{Test, fixture};

const NO_SCHEDULER_HINT: &str =
    "--demo shows a demo cluster; diagnose --log FILE and sizing --from FILE need no scheduler";

/// A healthy cluster, to know that the tests below break something.
#[test]
fn a_job_is_diagnosed() {
    let test = Test::slurm("healthy");
    test.run(&["diagnose", "67"]).ends(0).says("(host_oom)").says("oom-kill event");
    test.run(&["jobs", "--since", "2026-11-01"]).ends(0).says("67 oom alice batch OUT_OF_MEMORY");
    test.run(&["stats", "--since", "2026-11-01"]).ends(0).says("host_oom 1");
}

#[test]
fn an_unknown_id_is_a_no() {
    // F163: sacct that prints nothing and returns 0 knows no such job: that is no "running".
    let test = Test::slurm("unknown");
    test.run(&["diagnose", "999"]).ends(1).fails_with(
        "no job 999 is known here, or you may not see it",
        "jobwise jobs lists yours; an old job may have left the database",
    );
    test.run(&["job", "999"]).ends(1);
    // Beside one that is known, the answer stands.
    let both = test.run(&["diagnose", "67", "999"]);
    both.ends(1).says("(host_oom)");
    assert!(both.stderr.starts_with("jobwise: 999: no job 999 is known here"), "{}", both.all());
}

#[test]
fn what_is_no_id_is_told_so() {
    let test = Test::slurm("no-id");
    for id in [
        "abc",
        "12x",
        "-5",
        "1..2",
        "67; rm -rf /",
        "\u{1b}[31m",
        "0",
        "4294967363",
        "67_4294967296",
        "67_[",
        "67_[$(id)]",
    ] {
        let shown = test.run(&["diagnose", id]);
        shown.ends(64);
        assert!(!shown.stderr.contains('\u{1b}'), "{}", shown.all());
    }
    let shown = test.run(&["diagnose", "abc"]);
    shown.fails_with("'abc' is not a job id", "an id is 123, 123_4, 123+1 or 123;cluster");
}

#[test]
fn a_step_leads_to_its_job() {
    let test = Test::slurm("step");
    let shown = test.run(&["diagnose", "67.batch"]);
    shown.ends(0).says("(host_oom)");
    shown.says("note: 67.batch is step batch of job 67: the whole job is diagnosed");
}

#[test]
fn no_slurm_cannot_be_asked() {
    let test = Test::new("no-slurm");
    for args in [&["diagnose", "67"][..], &["job", "67"], &["jobs"]] {
        test.run(args)
            .ends(2)
            .fails_with("no scheduler that jobwise knows is installed here", NO_SCHEDULER_HINT);
    }
}

#[test]
fn clients_without_a_configuration_are_no_scheduler() {
    let test = Test::new("not-configured");
    let body = "echo 'scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host' >&2; \
                echo 'scontrol: fatal: Could not establish a configuration source' >&2; exit 1";
    for client in ["sacct", "scontrol", "squeue", "sinfo", "sacctmgr", "sbatch"] {
        test.client(client, body);
    }
    let message = "Slurm's clients are here but have no configuration; is this a login node?";
    for args in [&["diagnose", "67"][..], &["jobs"], &["nodes"], &["where"]] {
        let shown = test.run(args);
        shown.ends(2);
        assert!(
            shown.stderr.contains(message) && shown.stderr.contains("--demo"),
            "{}",
            shown.all()
        );
    }
    let shown = test.run(&["backends"]).ends(0).stdout.clone();
    let row: Vec<&str> = shown.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(row, ["slurm", "yes", "n/a", "n/a", "n/a"]);
    let said = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("slurm does not answer: {message}")), "{shown}");
}

#[test]
fn a_hanging_sacct_is_ended() {
    for (name, body) in [
        ("hang-all", "pause 600"),
        // One that will not be asked to stop, and one that writes without end and says nothing.
        ("hang-stubborn", "trap '' TERM; while :; do pause 600; done"),
        ("hang-query", "case \"$*\" in *--helpformat*) say fields ;; *) pause 600 ;; esac"),
    ] {
        let test = Test::slurm(name).env("JOBWISE_SCHEDULER_DEADLINE_SECONDS", "1");
        test.client("sacct", body);
        let shown = test.run(&["diagnose", "67"]);
        shown.ends(3);
        assert!(shown.stderr.contains("gave no answer within 1 s"), "{}", shown.all());
        // A later command is waited for in what the first that hung has left.
        let hint = "hint: try again later, or raise scheduler.deadline_seconds: all that hangs \
                    shares one and a half of it\n";
        assert!(shown.stderr.ends_with(hint), "{}", shown.all());
        // What the controller knows is still told.
        test.answer("controller", &fixture("slurm-22.05/scontrol-oom.txt"));
        test.client("scontrol", "case \"$*\" in *job*67*) say controller ;; esac");
        let shown = test.run(&["diagnose", "67"]);
        shown.ends(0).says("(host_oom)").says("this is the controller's record");
    }
}

/// Site wrappers around the clients leave such things behind.
#[test]
fn a_client_that_leaves_something_running_is_not_waited_for() {
    let test = Test::slurm("background").env("JOBWISE_SCHEDULER_DEADLINE_SECONDS", "60");
    let sacct = fs::read_to_string(test.path("bin/sacct")).expect("the client");
    let (_, body) = sacct.split_once("pause()").expect("its header");
    let (_, body) = body.split_once('\n').expect("its body");
    test.client("sacct", &format!("pause 30 &\n{body}"));
    test.run(&["job", "67"]).ends(0).says("OUT_OF_MEMORY");
}

#[test]
fn rubbish_is_no_answer_and_no_silence() {
    let test = Test::slurm("rubbish");
    test.client("sacct", "printf 'Segmentation\\377 \\033[31mfault\\000\\n\\n|||\\n'");
    test.run(&["diagnose", "67"]).ends(3).fails_with(
        "'sacct --helpformat' failed: it printed no list of fields",
        "-v shows each command",
    );
    // The fields are listed, the record is not one.
    test.client(
        "sacct",
        "case \"$*\" in *--helpformat*) say fields ;; *) printf '67@~@half\\377\\n\\033rubbish\\n' ;; esac",
    );
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(3);
    assert!(shown.stderr.contains("could not be read"), "{}", shown.all());
    // A good record among rubbish is used, and the rubbish is told.
    test.client(
        "sacct",
        "case \"$*\" in *--helpformat*) say fields ;; *) echo rubbish; say_columns 67 \"${*##*--format=}\"; echo 67.0@~@x ;; esac",
    );
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("(host_oom)").says("warning: 2 records of Slurm could not be read");
}

#[test]
fn an_answer_that_breaks_off_is_used_as_far_as_it_goes() {
    let test = Test::slurm("halfway");
    let record = fixture("slurm-22.05/sacct-oom.txt");
    let (job, step) = record.split_once('\n').expect("two rows");
    test.record("67", &format!("{job}\n{}", &step[..40]));
    for end in ["kill -9 $$", "echo 'sacct: error: slurm_persist_conn_recv: lost' >&2; exit 1"] {
        let body = format!(
            "case \"$*\" in *--helpformat*) say fields ;; *--jobs=*) say_columns 67 \"${{*##*--format=}}\"; {end} ;; *) say_cells \"${{*##*--format=}}\"; {end} ;; esac"
        );
        test.client("sacct", &body);
        let shown = test.run(&["diagnose", "67"]);
        shown.ends(0).says("(host_oom)").says("what came before is used, steps may be missing");
        let listed = test.run(&["jobs", "--since", "2026-11-01"]);
        listed.ends(0).says("OUT_OF_MEMORY").says("jobs may be missing");
    }
    // Before anything came, there is nothing to use.
    test.client("sacct", "case \"$*\" in *--helpformat*) say fields ;; *) kill -9 $$ ;; esac");
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(3);
    assert!(shown.stderr.contains("failed: it was killed\nhint: "), "{}", shown.all());
}

#[test]
fn accounting_that_is_off_or_closed_cannot_be_asked() {
    // F162, F164, F165, F166, F167, F168, F169, F170: none of it is an empty history, and the
    // controller may still know.
    let test = Test::slurm("off");
    for (complaint, message) in [
        // Both as Slurm prints them.
        (
            "Slurm accounting storage is disabled",
            "the accounting database cannot be asked: Slurm accounting storage is disabled",
        ),
        (
            "sacct: error: slurmdbd: Operation not permitted",
            "the accounting database cannot be asked: slurmdbd: Operation not permitted",
        ),
    ] {
        test.client("sacct", &format!("echo '{complaint}' >&2; exit 1"));
        let hint = "--log FILE diagnoses a log without the record";
        test.run(&["diagnose", "67"]).ends(2).fails_with(message, hint);
        test.run(&["jobs"]).ends(2);
    }
    let refused = "case \"$*\" in *--helpformat*) say fields ;; *) echo 'sacct: error: \
                   Access/permission denied' >&2; exit 1 ;; esac";
    test.client("sacct", refused);
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(2);
    assert!(shown.stderr.contains("was refused: Access/permission denied"), "{}", shown.all());
    // The controller's record is an answer.
    test.answer("controller", &fixture("slurm-22.05/scontrol-oom.txt"));
    test.client("scontrol", "case \"$*\" in *job*67*) say controller ;; esac");
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("(host_oom)").says("the controller knows no steps and forgets a job");
}

#[test]
fn fields_that_a_release_lacks_cost_no_answer() {
    // F148, F154: one field that a release does not have fails the whole query.
    let test = Test::slurm("fields");
    test.answer("fields", &fixture("slurm-20.11/sacct-helpformat.txt"));
    test.answer("67", &fixture("slurm-20.11/sacct-oom.txt"));
    let record = fixture("slurm-20.11/sacct-oom.txt");
    let id = record.split("@~@").next().expect("an id").to_owned();
    test.answer(&id, &record);
    test.run(&["diagnose", &id]).ends(0).says("(host_oom)");
    // Hardly more than what every release has.
    test.answer("fields", "JobID JobName State ExitCode Start End Elapsed");
    test.answer("columns", "JobID,State,ExitCode,Start,End,Elapsed,JobName");
    test.answer("67", "67@~@OUT_OF_MEMORY@~@0:125@~@1796034871@~@1796034873@~@00:00:02@~@oom\n");
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("(host_oom)");
    test.run(&["job", "67"]).ends(0).says("n/a");
}

/// A job whose record says only that it failed, and whose log says why.
fn failed(test: &Test, id: &str, raw_id: &str) {
    let oom = fixture("slurm-22.05/sacct-oom.txt");
    let row = oom.lines().next().expect("the job");
    let row = row
        .replacen("67@~@67", &format!("{id}@~@{raw_id}"), 1)
        .replace("OUT_OF_MEMORY@~@0:125", "FAILED@~@1:0")
        .replace("oom-%A_%a.out", "%j.out");
    test.record(id, &row);
    let log = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
    test.file(&format!("work/{raw_id}.out"), log);
}

#[test]
fn the_record_of_a_job_is_the_same_alone_and_with_others() {
    let test = Test::slurm("several");
    for (id, raw_id) in [("68", "68"), ("69", "69"), ("70_1", "71"), ("70_2", "70")] {
        failed(&test, id, raw_id);
    }
    // Where the log of this one is, only its script says.
    let row = fs::read_to_string(test.path("answers/69")).expect("a record");
    test.answer("69", &row.replace("-o %j.out ", ""));
    fs::rename(test.path("work/69.out"), test.path("work/own.log")).expect("moved");
    let rule = "-".repeat(80);
    let script = format!("Batch Script for 69\n{rule}\n#!/bin/sh\n#SBATCH --output=own.log\n\n");
    test.answer("script", &script);

    let ids = ["67", "68", "69", "70_1", "70_2"];
    let together = test.run(&[&["job", "--json"][..], &ids].concat()).ends(0).json();
    for (place, id) in ids.into_iter().enumerate() {
        let alone = test.run(&["job", "--json", id]).ends(0).json();
        assert_eq!(together["jobs"][place], alone["jobs"][0], "{id}");
        let family = if id == "67" { "host_oom" } else { "cuda_oom" };
        assert_eq!(alone["jobs"][0]["cause"]["family"], family, "{id}");
        assert_eq!(alone["jobs"][0]["logs"].as_array().map(Vec::len), Some(1), "{id}");
    }

    // An id that names several tasks opens no log of theirs, and takes none from the others.
    let tasks = ["70_1", "70_2"].map(|id| fs::read_to_string(test.path("answers").join(id)));
    test.answer("70", &tasks.map(|row| row.expect("a record")).join("\n"));
    let mixed = test.run(&["job", "70", "68", "--json"]).ends(0).json();
    let opened: Vec<bool> =
        mixed["jobs"].as_array().expect("records").iter().map(has_log).collect();
    assert_eq!(opened, [false, false, true]);
    assert_eq!(mixed["jobs"][2], together["jobs"][1]);
}

#[test]
fn of_many_jobs_it_is_said_that_not_every_log_was_read() {
    let test = Test::slurm("many");
    let ids: Vec<String> = (101..=122).map(|number| number.to_string()).collect();
    for id in &ids {
        failed(&test, id, id);
    }
    let mut args = vec!["job", "--json"];
    args.extend(ids.iter().map(String::as_str));
    let told = test.run(&args).ends(0).json();
    let records = told["jobs"].as_array().expect("records");
    assert!(records[..20].iter().all(|told| has_log(told) && told["cause"].is_object()));
    assert!(records[20..].iter().all(|told| !has_log(told) && told["cause"].is_null()));
    assert_eq!(told["notices"][0]["code"], "logs-not-read");
    args.remove(1);
    test.run(&args).ends(0).says("the logs of the first 20 of 22 jobs that are over were read");
    // 20 are no more than are read.
    args.truncate(21);
    args.push("--json");
    assert_eq!(test.run(&args).ends(0).json()["notices"], json!([]));
}

fn has_log(told: &Value) -> bool {
    told["logs"].as_array().is_some_and(|logs| !logs.is_empty())
}
