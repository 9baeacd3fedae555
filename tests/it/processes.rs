//! What is started, and what is written: no more than the few queries that an answer needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use jobwise::host::allow;

use crate::run::{FIXTURES, JOBWISE, Test, fixture};

fn calls(test: &Test, args: &[&str]) -> Vec<String> {
    let log = test.path("calls");
    let _ = fs::remove_file(&log);
    test.run(args).ends(0).says("cause ");
    let calls = fs::read_to_string(&log).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

fn counted(name: &str) -> Test {
    let test = Test::slurm(name);
    let log = test.path("calls").display().to_string();
    test.env("CALLS", &log)
}

/// The record as if the job had ended a minute ago: then most is worth asking.
fn just_ended(record: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    // The job of the recording ended at 1796034873.
    (1_796_034_860..=1_796_034_880).fold(record.to_owned(), |text, second| {
        text.replace(
            &second.to_string(),
            &(now - 60 - (1_796_034_873 - second.min(1_796_034_873))).to_string(),
        )
    })
}

#[test]
fn a_cause_costs_at_most_four_processes() {
    // A key error: its family has no change to propose.
    let test = counted("budget");
    for record in
        [fixture("slurm-22.05/sacct-segv.txt"), just_ended(&fixture("slurm-22.05/sacct-segv.txt"))]
    {
        test.record("41", &record);
        test.file("work/fail-segv-41_4294967294.out", b"KeyError: 'x'\n");
        let calls = calls(&test, &["diagnose", "41"]);
        assert!(calls.len() <= 4, "{calls:#?}");
    }
}

#[test]
fn a_change_costs_at_most_four_more() {
    let test = counted("budget-patch");
    for record in
        [fixture("slurm-22.05/sacct-oom.txt"), just_ended(&fixture("slurm-22.05/sacct-oom.txt"))]
    {
        test.record("67", &record);
        let calls = calls(&test, &["diagnose", "67", "--fresh"]);
        assert!(calls.len() <= 8, "{calls:#?}");
        assert!(
            calls.iter().any(|call| call.contains("partition")),
            "limits were asked: {calls:#?}"
        );
        // Twice the same question is a question too many.
        let different: BTreeSet<&String> = calls.iter().collect();
        assert_eq!(different.len(), calls.len(), "{calls:#?}");
    }
}

#[test]
fn a_quality_of_service_caps_a_change_and_is_asked_for_once_a_day() {
    let test = counted("qos");
    // Killed at 100 MiB, and twice that is one more than a job may have.
    test.answer("qos", "normal|50||||mem=150M|||||||||||||||\n");
    let asks = |args: &[&str]| {
        let asked = calls(&test, args);
        asked.iter().filter(|call| call.starts_with("sacctmgr")).count()
    };
    assert_eq!(asks(&["diagnose", "67"]), 1);
    assert_eq!(asks(&["diagnose", "67"]), 0);
    let told = test.run(&["diagnose", "67"]);
    told.says("QOS normal allows 150M for a job at most").says("--mem=150");
    // One that cannot be asked for is no limit, and that is told.
    test.client("sacctmgr", "echo 'sacctmgr: error: not now' >&2; exit 1");
    let told = test.run(&["diagnose", "67", "--fresh"]);
    told.says("the limits of QOS normal are unknown").says("--mem=200");
}

#[test]
fn the_tasks_of_an_array_cost_no_more_than_one() {
    // F179: a thousand sacct at once took a database down.
    let test = counted("budget-array");
    let record = fixture("slurm-22.05/sacct-oom.txt");
    // The tasks of array 67: 67_1 is job 101, 67_2 is job 102, ...
    let task = |task: u32| {
        let (id, raw) = (format!("67_{task}"), (100 + task).to_string());
        let lines = record.lines().map(|line| {
            let line = line.strip_prefix("67").expect("the job's own rows");
            let (step, rest) = line.split_once("@~@67").expect("the id twice");
            format!("{id}{step}@~@{raw}{rest}\n")
        });
        lines.collect::<String>()
    };
    test.record("67", &(1..=30).map(task).collect::<String>());
    let calls = calls(&test, &["diagnose", "67"]);
    assert!(calls.len() <= 8, "{calls:#?}");
    assert_eq!(calls.iter().filter(|call| call.contains("show partition")).count(), 1);
    assert_eq!(calls.iter().filter(|call| call.contains("--batch-script")).count(), 1);
}

#[test]
fn limits_are_remembered_for_a_day_and_their_age_is_told() {
    let test = counted("limits");
    let asks =
        |args: &[&str]| calls(&test, args).iter().any(|call| call.contains("show partition"));
    assert!(asks(&["diagnose", "67"]));
    let again = &["diagnose", "67"];
    assert!(!asks(again));
    assert_eq!(test.run(again).stdout, test.run(&["diagnose", "67", "--fresh"]).stdout);
    assert!(asks(&["diagnose", "67", "--fresh"]));
    // A recording is to hold the answer itself.
    let folder = test.path("recording").display().to_string();
    assert!(asks(&["--record", &folder, "diagnose", "67"]));

    let kept = fs::read_to_string(test.path("home/cache/limits.json")).expect("kept");
    let asked = kept.split("\"asked\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let asked = asked.expect("a time");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let earlier = jiff::Timestamp::from_second(now.cast_signed() - 2 * 3600 - 60).expect("a time");
    test.file("home/cache/limits.json", kept.replace(asked, &earlier.to_string()).as_bytes());
    assert!(!asks(again));
    test.run(again).says("the limits of partition gpu were asked for 2 h ago");
    let told = test.run(&["diagnose", "67", "--json"]).json();
    assert_eq!(told["diagnoses"][0]["notices"][0]["code"], "limits-remembered");
    // Weakness 29: clusters may share a home: each has limits of its own, and loses nobody else's.
    let elsewhere = kept.replace("\"lab\"", "\"elsewhere\"");
    assert_ne!(elsewhere, kept);
    test.file("home/cache/limits.json", elsewhere.as_bytes());
    assert!(asks(again) && !asks(again));
    let both = fs::read_to_string(test.path("home/cache/limits.json")).expect("kept");
    assert!(both.contains("\"elsewhere\"") && both.contains("\"lab\""), "{both}");
    for (other, message) in [
        ("2020-01-01T00:00:00Z", "older than a day"),
        ("2999-01-01T00:00:00Z", "of another clock"),
        ("rubbish", "no time"),
    ] {
        test.file("home/cache/limits.json", kept.replace(asked, other).as_bytes());
        assert!(asks(again), "{message}");
        assert!(!asks(again), "kept again after {message}");
    }
    let never = counted("limits-never").env("JOBWISE_SCHEDULER_LIMITS_SECONDS", "0");
    for _ in 0..2 {
        let calls = calls(&never, again);
        assert!(calls.iter().any(|call| call.contains("show partition")), "{calls:#?}");
    }
}

#[test]
fn what_is_no_question_of_the_cluster_asks_it_nothing() {
    let test = counted("budget-none");
    for args in [
        &["kb", "list"][..],
        &["kb", "check"],
        &["kb", "build"],
        &["config", "show"],
        &["--help"],
        &["diagnose", "--log", "oom-67_4294967294.out"],
        &["diagnose", "--demo"],
    ] {
        test.run(args).ends(0);
        assert!(!test.path("calls").exists(), "{args:?}");
    }
}

/// Under strace: what is opened for writing lies in our own folder, what is started is on the list.
#[test]
fn nothing_is_written_elsewhere_and_nothing_else_is_started() {
    if !Path::new("/usr/bin/strace").exists() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let test = Test::slurm("strace");
    let trace = test.path("trace").display().to_string();
    let calls = "trace=execve,execveat,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,\
                 link,linkat,symlink,symlinkat,truncate,rmdir,chmod,fchmodat,mknod,mknodat,connect";
    let test =
        test.under(&["/usr/bin/strace", "-f", "-qq", "-s", "4096", "-o", &trace, "-e", calls]);
    let replay = format!("{FIXTURES}/jobs/rank-files.json");
    let reports = format!("{FIXTURES}/../eval/reports.jsonl");
    for args in [
        &["diagnose", "67"][..],
        &["diagnose", "67", "--json"],
        &["diagnose", "999"],
        &["diagnose", "--log", "oom-67_4294967294.out"],
        &["diagnose", "--demo"],
        &["--replay", &replay, "diagnose", "619"],
        &["job", "67"],
        &["jobs"],
        &["stats"],
        &["diagnose", "--text", "CUDA out of memory"],
        &["kb", "build"],
        &["kb", "search", "memory"],
        &["kb", "list"],
        &["kb", "show", "host_oom"],
        &["kb", "check"],
        &["kb", "list", "--literals"],
        &["kb", "model", "list"],
        &["kb", "model", "where"],
        &["config", "show", "--origin"],
        &["eval", &reports],
        &["eval", "--suite", "cascades", "--jobs", "10"],
        &["--help"],
    ] {
        let shown = test.run(args);
        assert!(matches!(shown.code, 0 | 1), "{}", shown.all());
        let trace = fs::read_to_string(&trace).expect("a trace");
        // The index, and the limits of a partition that it has not heard of yet.
        let keeps = args == ["kb", "build"] || args == ["diagnose", "67"];
        assert!(trace.contains("execve(") && trace.contains("O_CREAT") == keeps, "{args:?}");
        let own = format!("\"{}/", test.path("home/cache").display());
        for line in trace.lines() {
            let Some((call, rest)) = line.split_once('(') else { continue };
            let call = call.rsplit(' ').next().unwrap_or(call);
            if rest.contains(" = -1 ") {
                continue;
            }
            match call {
                "execve" | "execveat" => {
                    let path = Path::new(rest.split('"').nth(1).expect("a path"));
                    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
                    let ours = path == Path::new(JOBWISE) || allow::programs().contains(&name);
                    assert!(ours, "{args:?} started {line}");
                }
                "open" | "openat" | "openat2" => {
                    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"];
                    // The shell of the fake clients, and the library that starts programs.
                    let null = rest.contains("\"/dev/null\"");
                    assert!(
                        null || rest.contains(&own)
                            || !writes.iter().any(|flag| rest.contains(flag)),
                        "{args:?}: {line}"
                    );
                }
                "connect" => assert!(rest.contains("AF_UNIX"), "{args:?} connects: {line}"),
                _ => {
                    let folder = own.trim_end_matches('/');
                    assert!(rest.contains(folder), "{args:?}: {line}");
                }
            }
        }
    }
}
