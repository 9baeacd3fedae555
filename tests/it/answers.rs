//! What an answer says to do: with the job's own numbers, and never against its evidence.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::{FIXTURES, Shown, Test};

const LIMIT: &str =
    "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-30T08:10:00 DUE TO TIME LIMIT ***\n";
const TEN_MINUTES: &[u8] = b"#!/bin/bash\n#SBATCH --time=00:10:00\npython x.py\n";

/// What is said of a log with a script that asks for ten minutes.
fn of_log(name: &str, log: &str) -> (Test, Shown) {
    let test = Test::new(name);
    test.file("work/job.sh", TEN_MINUTES);
    test.file("work/job.out", log.as_bytes());
    let shown = test.run(&["diagnose", "--log", "job.out", "--script", "job.sh"]);
    (test, shown)
}

/// The same with this on standard input.
fn piped(test: &Test, args: &[&str], input: &[u8]) -> Shown {
    let mut child = test
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that refuses does not read.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    Shown {
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
        code: output.status.code().unwrap_or(128),
        took: std::time::Duration::ZERO,
    }
}

#[test]
fn the_time_to_ask_for_comes_from_the_progress_in_the_log() {
    // One step a second: 590 of 6000 in 590 s, so 6000 s in all; 7500 s with a quarter.
    let steps = (0..60).map(|ten| {
        let (minute, second) = (ten * 10 / 60, ten * 10 % 60);
        format!("2026-11-30 08:{minute:02}:{second:02} step {}/6000 loss 0.1\n", ten * 10)
    });
    let log = steps.collect::<String>() + LIMIT;
    let (_test, shown) = of_log("pace", &log);
    shown.ends(0).says("590 of 6000 done after 00:09:50");
    shown.says("01:40:00 in all, and a quarter, rounded up").says("+#SBATCH --time=02:15:00");
    // Where the log tells none it is half as much again, and the step says so too.
    let (_test, shown) = of_log("no-pace", &format!("working\n{LIMIT}"));
    shown.says("half as much again, rounded up").says("+#SBATCH --time=00:15:00");
    shown.says("If they show work but no rate, ask for half as much again");
}

#[test]
fn a_run_that_waited_until_its_limit_gets_no_more_time() {
    let silent = LIMIT.replace("08:10:00", "20:00:00");
    for (name, log, why) in [
        (
            "quiet",
            format!("2026-11-30 08:00:05 start\n2026-11-30 08:00:09 read\n{silent}"),
            "nothing was written",
        ),
        (
            "waits",
            format!("2026-11-30 08:00:09 waiting for rendezvous\n{silent}"),
            "it ended in waiting",
        ),
        (
            "srun",
            format!(
                "iter 20\nsrun: Job 5 step creation still disabled, retrying (Requested nodes are busy)\n{LIMIT}"
            ),
            "'srun: Job 5 step creation still disabled, retrying",
        ),
    ] {
        let (_test, shown) = of_log(&format!("stood-{name}"), &log);
        shown.ends(0).says("no change").says(why);
        assert!(!shown.stdout.contains("+#SBATCH"), "{}", shown.all());
    }
}

/// A copy of a recording of Slurm 26.05 with more answers in it.
fn recording(test: &Test, more: &[(&[&str], &str)]) -> String {
    let text = fs::read_to_string(format!("{FIXTURES}/recordings/slurm-26.05.json"));
    let mut manifest: Value = serde_json::from_str(&text.expect("a recording")).expect("JSON");
    for (index, (argv, stdout)) in more.iter().enumerate() {
        let blob = format!("{index:024}");
        manifest["blobs"][&blob] = json!({ "text": stdout });
        let end = json!({ "exit": { "status": 0, "stderr": "" } });
        let command = json!({ "argv": argv, "end": end, "stdout": blob });
        manifest["commands"].as_array_mut().expect("commands").push(command);
    }
    let path = test.file("recording.json", manifest.to_string().as_bytes());
    path.display().to_string()
}

#[test]
fn a_pending_job_meets_its_limit_in_numbers() {
    let test = Test::new("held");
    // Columns as they were asked for when recordings lacked usage factors; the limit is that of the cluster which was recorded.
    let columns = "format=Name,Priority,Flags,MaxWall,MaxTRESPerJob,MaxTRESMins,MaxTRESPerNode,MinTRES,MaxTRESPerUser,MaxJobsPerUser,MaxSubmitJobsPerUser,MaxTRESPerAccount,MaxJobsPerAccount,MaxSubmitJobsPerAccount,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall";
    let qos = ["sacctmgr", "--readonly", "--noheader", "--parsable2", "show", "qos", columns];
    let partitions = ["scontrol", "--all", "--oneliner", "show", "partition"];
    let listed = fs::read_to_string(format!("{FIXTURES}/slurm-26.05/scontrol-partitions.txt"));
    let listed = listed.expect("a fixture");
    let path =
        recording(&test, &[(&qos, "gpu2|0|||||||gres/gpu=2|||||||||||\n"), (&partitions, &listed)]);
    let shown = test.run(&["--replay", &path, "diagnose", "131"]);
    shown.ends(0).says("waiting does not help");
    shown.says("limit 3 GPUs are more than the 2 that one user may have at once (QOS gpu2 MaxTRESPerUser): at most 2 GPUs");
    // A recording without them is answered as before.
    let shown = test.run(&["--replay", &recording(&test, &[]), "diagnose", "131"]);
    shown.ends(0).says("(pend_qos_limit)");
    assert!(!shown.stdout.contains("MaxTRESPerUser)"), "{}", shown.all());
}

#[test]
fn the_parent_of_a_job_that_never_starts_is_named_with_its_cause() {
    let shown = Test::new("parent").run(&["--demo", "diagnose", "11"]);
    shown.ends(0).says("parent job 6, FAILED: Segmentation fault (segfault)");
    shown.says("`jobwise diagnose 6`");
}

#[test]
fn a_reason_is_known_in_every_form_in_which_it_is_pasted() {
    let test = Test::new("pasted");
    for (text, family) in [
        ("  41 cpu run alice PD 0:00 1 (AssocGrpCPUMinutesLimit)", "(allocation_exhausted)"),
        ("... PD 0:00 1 (AssocGrpCPUMinutesLimit)", "(allocation_exhausted)"),
        ("Reason=BadConstraints", "(bad_constraints)"),
        ("QOSMaxGRESPerUser", "(pend_qos_limit)"),
        (
            "JobId=7 JobName=a\n   JobState=PENDING Reason=JobHeldUser Dependency=(null)",
            "(pend_held)",
        ),
    ] {
        test.run(&["diagnose", "--text", text]).ends(0).says("PENDING").says(family);
    }
    let queue = "$ squeue --me\nJOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 5 b n a R 1:00 1 c1\n 6 b n a PD 0:00 8 (Priority)\n";
    test.file("work/queue.txt", queue.as_bytes());
    test.run(&["diagnose", "--log", "queue.txt"])
        .ends(0)
        .says("job 6 PENDING")
        .says("(pend_priority)");
    // A log that prints its queue is a log.
    let log = format!("{queue}RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
    test.file("work/queue.txt", log.as_bytes());
    test.run(&["diagnose", "--log", "queue.txt"]).ends(0).says("(cuda_oom)");
}

/// Reasons of four releases of Slurm and the free texts, each with its family: many rows of one paste.
#[test]
fn every_row_of_a_paste_is_answered() {
    let reasons = fs::read_to_string(format!("{FIXTURES}/reasons.tsv")).expect("a fixture");
    let rows = reasons.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?, cells.next()?))
    });
    let rows: Vec<(&str, &str)> = rows.skip(3).step_by(17).collect();
    assert!(rows.len() > 10, "{}", rows.len());
    let lines = rows
        .iter()
        .zip(1000..)
        .map(|((reason, _), id)| format!("{id} cpu run alice PD 0:00 1 ({reason})\n"));
    let lines: String = lines.collect();
    let shown = Test::new("reasons").run(&["diagnose", "--json", "--text", &lines]);
    let answer = shown.json();
    let told = answer["diagnoses"].as_array().expect("all");
    assert_eq!(told.len(), rows.len());
    for (told, (reason, family)) in told.iter().zip(rows) {
        assert_eq!(told["job"]["reason"], reason);
        assert_eq!(told["verdict"]["causes"][0]["family"], family, "{reason}");
    }
}

#[test]
fn a_guess_says_where_to_read_on_and_how_to_make_sure() {
    let test = Test::new("guess");
    let shown = test.run(&["diagnose", "--text", "bash: line 3: 1234 Killed python train.py"]);
    shown.ends(1).says("perhaps Host memory exhausted (host_oom)");
    shown.says("check `sacct -j JOBID").says("jobwise kb show host_oom");
    shown.says("% (right in");
}

#[test]
fn a_log_that_ends_well_says_so_and_one_that_only_stops_does_not() {
    let test = Test::new("well");
    for text in [
        "epoch 3\nTraining finished successfully. All done.",
        "step 5\nTotal wall time: 0:00:12",
        "running\n===== 12 passed in 3.21s =====",
        "Pipeline completed",
    ] {
        test.run(&["diagnose", "--text", text]).ends(0).says("no sign of failure; a good end");
    }
    for text in [
        "Loading the model done\nepoch 3",
        "Training did not finish\nstep 4",
        "run 3 completed",
        "connected to server",
        "the job is not done",
    ] {
        let shown = test.run(&["diagnose", "--text", text]);
        shown.ends(1).says("neither of a failure nor of a good end");
    }
    // What failed before is not made well by the last word of its script.
    let text = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nAll done.";
    test.run(&["diagnose", "--text", text]).ends(0).says("(cuda_oom)");
}

#[test]
fn an_option_that_would_do_nothing_is_refused_or_told() {
    let test = Test::slurm("idle-options");
    for args in [
        &["diagnose", "--state", "FAILED", "67"][..],
        &["diagnose", "--script", "no.sh", "67"],
        &["diagnose", "--exit-code", "1", "67"],
        &["diagnose", "--log-dir", "x", "--text", "x"],
        &["diagnose", "--text", " "],
    ] {
        let shown = test.run(args);
        shown.ends(64);
        assert!(
            shown.stderr.contains("cannot be used with")
                || shown.stderr.contains("nothing to read")
        );
    }
    let shown = test.run(&["diagnose", "67", "--log-dir", "/nonexistent/x"]);
    shown.ends(0).says("(host_oom)").says("--log-dir was of no use: /nonexistent/x: no such file");
}

#[test]
fn standard_input_is_read_as_a_text_or_as_a_log() {
    let test = Test::new("piped");
    let log = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
    for args in [&["diagnose", "-"][..], &["diagnose", "--log", "-"], &["diagnose", "--text", "-"]]
    {
        piped(&test, args, log).ends(0).says("(cuda_oom)");
        let shown = piped(&test, args, b"");
        assert_eq!((shown.code, shown.stdout.as_str()), (64, ""), "{}", shown.all());
        assert!(
            shown.stderr.contains("nothing to read: standard input is empty"),
            "{}",
            shown.all()
        );
    }
    // As `--log <(zcat log.gz)` does; more than is kept of a pipe.
    let padding = "x".repeat(1023) + "\n";
    let log = format!("{}{}", padding.repeat(70 << 10), String::from_utf8_lossy(log));
    let shown = piped(&test, &["diagnose", "--log", "/dev/stdin"], log.as_bytes());
    shown.ends(0).says("(cuda_oom)").says("/dev/stdin");
}

#[test]
fn the_only_node_of_a_log_is_the_one_that_is_left_out() {
    let test = Test::new("node");
    let ecc = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n";
    test.file("work/job.sh", b"#!/bin/bash\n#SBATCH --nodes=1\npython x.py\n");
    test.file("work/job.out", format!("SLURM_JOB_NODELIST=c206\n{ecc}").as_bytes());
    let ask = || test.run(&["diagnose", "--log", "job.out", "--script", "job.sh"]);
    ask().ends(0).says("+#SBATCH --exclude=c206").says("`--exclude=c206`");
    test.file("work/job.out", ecc.as_bytes());
    let shown = ask();
    shown.ends(0).says("on which node it ran is not known");
    assert!(!shown.stdout.contains("is not recorded"), "{}", shown.all());
}

#[test]
fn a_value_in_a_step_is_the_job_s_own() {
    let test = Test::new("own-values");
    let shown =
        test.run(&["diagnose", "--text", "ModuleNotFoundError: No module named 'torch.nn'"]);
    // A package may be called otherwise than it is imported: no name is given to pip.
    shown.ends(0).says("pip install PACKAGE").says("`torch` is the name");
    let shown =
        test.run(&["diagnose", "--text", "  41 b n a PD 0:00 8 (launch failed requeued held)"]);
    shown.says("JobId=41").says("`scontrol release 41`");
    assert!(!shown.stdout.contains("JOBID"), "{}", shown.all());
}

#[test]
fn an_id_without_an_answer_is_an_error_beside_the_others() {
    let test = Test::new("beside");
    let shown = test.run(&["--demo", "diagnose", "6", "999"]);
    shown.ends(1).says("(segfault)");
    assert!(
        shown.stderr.contains("jobwise: 999: the demo holds no record of job 999"),
        "{}",
        shown.all()
    );
    assert!(!shown.stdout.contains("999"), "{}", shown.all());
    let shown = test.run(&["--demo", "diagnose", "6", "999", "--json"]);
    assert_eq!(shown.json()["failures"][0]["id"], "999");
    // Alone it is the error document, as everywhere; and no such job is the answer no.
    let shown = test.run(&["--demo", "diagnose", "999", "--json"]);
    shown.ends(1);
    assert_eq!(shown.json()["schema"], "jobwise/error/1");
    test.run(&["diagnose", "5", "--json"]).ends(2);
    assert!(test.run(&["diagnose", "5", "--json"]).stderr.contains("no scheduler"));
}

#[test]
fn what_a_text_does_not_tell_is_null() {
    let shown = Test::new("null").run(&["diagnose", "--text", "x", "--json"]);
    let job = &shown.json()["diagnoses"][0]["job"];
    for field in ["id", "name", "state", "user"] {
        assert!(job[field].is_null(), "{field}: {}", job[field]);
    }
}
