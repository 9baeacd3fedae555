//! Records and histories as a user meets them: one job in full, and many from files.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::accounting::{Row, cluster, gauge, job, step};
use crate::run::{FIXTURES, Test};

/// `sacct` of 26.05 with a job and a step of which every column says something of its own.
const SACCT: &str = r#"case "$*" in
    *--helpformat*) say fields ;;
    *--format=*)
        format=${*##*--format=}
        PATH=/usr/bin:/bin awk -v wanted="${format%% *}" '
            function cell(name, id) {
                if (name == "JobID") return id
                if (name == "JobIDRaw") return 7
                if (name == "State") return "COMPLETED"
                if (name == "ExitCode") return "0:0"
                if (name == "DerivedExitCode") return "3:0"
                if (name == "UID") return 4321
                if (name == "Submit") return 1796000001
                if (name == "Eligible") return 1796000062
                if (name == "Start") return 1796000123
                if (name == "End") return 1796003784
                if (name == "Elapsed") return "01:01:01"
                if (name == "Suspended") return "00:08:09"
                if (name == "Timelimit") return "02:03:04"
                if (name == "TotalCPU") return "00:50:51"
                if (name == "UserCPU") return "00:40:41"
                if (name == "SystemCPU") return "00:10:10"
                if (name == "AveCPU") return "00:33:34"
                if (name == "MinCPU") return "00:22:23"
                if (name == "ReqMem") return "61G"
                if (name == "NNodes") return 13
                if (name == "AllocCPUS") return 87
                if (name == "NTasks") return 29
                if (name == "Restarts") return 19
                if (name == "MaxRSS") return "1111M"
                if (name == "AveRSS") return "222M"
                if (name == "MaxPages") return 333
                if (name == "MaxDiskRead") return "444M"
                if (name == "MaxDiskWrite") return "555M"
                if (name == "ConsumedEnergyRaw") return 666666
                if (name == "Exclusive") return "NODE"
                if (name == "ReqTRES") return "cpu=71,mem=72G"
                if (name == "AllocTRES") return "cpu=87,mem=73G,gres/gpu=2"
                if (name == "TRESUsageInTot") return "cpu=00:50:51,fs/disk=74M,mem=75M"
                if (name == "TRESUsageInMax") return "mem=76M"
                if (name == "TRESUsageInAve") return "mem=77M"
                if (name == "TRESUsageOutTot") return "fs/disk=78M"
                return "the-" tolower(name)
            }
            BEGIN {
                n = split(wanted, names, ",")
                split("7 7.0", ids, " ")
                for (row = 1; row <= 2; row++) {
                    line = ""
                    for (i = 1; i <= n; i++) line = line (i > 1 ? "@~@" : "") cell(names[i], ids[row])
                    print line
                }
            }' ;;
esac"#;

fn whole(name: &str) -> Test {
    let test = Test::new(name);
    let fields = fs::read_to_string(format!("{FIXTURES}/slurm-26.05/sacct-helpformat.txt"));
    test.answer("fields", &fields.expect("a fixture"));
    test.client("sacct", SACCT);
    let unknown = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1";
    test.client("scontrol", unknown);
    test.client("squeue", unknown);
    test.env("COLUMNS", "200")
}

#[test]
fn every_column_that_is_asked_for_is_shown() {
    let test = whole("whole-record");
    let shown = test.run(&["job", "7", "--all"]);
    shown.ends(0);
    // Whatever nothing here reads has a text of its own, and so has most of what is read.
    let fields = fs::read_to_string(format!("{FIXTURES}/slurm-26.05/sacct-helpformat.txt"));
    let fields = fields.expect("a fixture");
    let elsewhere = [
        "AllocNodes",
        "BlockID",
        "ConsumedEnergy",
        "CPUTime",
        "CPUTimeRAW",
        "ElapsedRaw",
        "GID",
        "NCPUS",
        "PlannedCPURAW",
        "QOSRAW",
        "ReqCPUFreq",
        "TimelimitRaw",
        "WCKeyID",
    ];
    let typed = [
        "JobID",
        "JobIDRaw",
        "State",
        "ExitCode",
        "DerivedExitCode",
        "UID",
        "Submit",
        "Eligible",
        "Start",
        "End",
        "Elapsed",
        "Suspended",
        "Timelimit",
        "TotalCPU",
        "UserCPU",
        "SystemCPU",
        "AveCPU",
        "MinCPU",
        "ReqMem",
        "NNodes",
        "AllocCPUS",
        "NTasks",
        "Restarts",
        "MaxRSS",
        "AveRSS",
        "MaxPages",
        "MaxDiskRead",
        "MaxDiskWrite",
        "ConsumedEnergyRaw",
        "Exclusive",
        "ReqTRES",
        "AllocTRES",
        "TRESUsageInTot",
        "TRESUsageInMax",
        "TRESUsageInAve",
        "TRESUsageOutTot",
    ];
    for name in fields.split_whitespace().filter(|name| !elsewhere.contains(name)) {
        if !typed.contains(&name) {
            shown.says(&format!("the-{}", name.to_lowercase()));
        }
    }
    // 1796000001 is 2026-11-30 00:53:21 UTC.
    for text in [
        "job 7",
        "COMPLETED",
        "worst exit 3:0",
        "user id 4321",
        "submitted 2026-11-30 00:53:21",
        "eligible 2026-11-30 00:54:22",
        "started 2026-11-30 00:55:23",
        "ended 2026-11-30 01:56:24",
        "01:01:01 of 02:03:04",
        "suspended 00:08:09",
        "00:50:51",
        "in program 00:40:41",
        "in kernel 00:10:10",
        "mean task 00:33:34",
        "least task 00:22:23",
        "61G in all",
        "nodes 13",
        "CPUs 87",
        " 29 ",
        "restarts 19",
        "1.08G",
        "mean memory 222M",
        "page faults 333",
        "most read 444M",
        "most written 555M",
        "666666 J",
        "whole nodes",
        "cpu=71,mem=72G",
        "mem=73G",
        "mem=75M",
        "largest task mem=76M",
        "mean of tasks mem=77M",
        "fs/disk=78M",
    ] {
        shown.says(text);
    }
}

#[test]
fn gauges_have_ceilings_and_say_what_would_measure_them() {
    let shown = whole("gauges").run(&["job", "7"]);
    // 3661 of 7384 s; 3051 CPU-s of 87 x 3661; 1111 MiB at least on a node with 73 / 13 GiB.
    shown.ends(0).says("TIME [##########..........] 50% 01:01:01 of 02:03:04");
    shown.says("CPU [....................] 1% 0.8 CPUs of 87.0 CPUs");
    shown.says("MEMORY [####................] 19% 1.08G of 5.62G on a node");
    shown
        .says("GPU n/a of 2.0 GPUs: not measured; a site measures it with AutoDetect=nvml or rsmi");
    let told = whole("gauges-json").run(&["job", "7", "--json"]).json();
    assert_eq!(told["schema"], "jobwise/job/1");
    assert_eq!(told["jobs"][0]["gauges"][0]["of"], 7384.0);
    assert!(told["jobs"][0]["gauges"][3]["used"].is_null());
    // The step exited well, but the highest exit of all was 3.
    let codes: Vec<&str> = told["jobs"][0]["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    assert!(codes.contains(&"failed-step"), "{codes:?}");
}

/// The comment that `jobstats` leaves on a job: `base64 -d | zcat` makes of it one node with 4 CPUs
/// that were busy for 3000 s, 2 of 16 GiB in use, and a GPU that was busy for 3.2 %.
const JOBSTATS: &str = "JS1:H4sIAAAAAAACA2WO3Q7CIAxGX2Xh2ix0dPz4MsviiCEZYBy70IV3t0wlcfYCCOd8bTd2va0LOzdwaliIky3vjQUO+315QyRI3pBiGufBWx/vj51zOnWvjRHYm47nj7cudjpqwL9VreRm9xyTi6Faou0KPgwCBcpoaUBjhcl5WwLUsOX0+zuzA1SohUSd819E0g4vXG6HCvkAAAA=";

#[test]
fn what_a_monitoring_measured_is_unpacked_and_comes_first() {
    let four =
        |row: Row| row.with("AllocCPUS", "4").with("AllocTRES", "cpu=4,gres/gpu=1,mem=16G,node=1");
    // Accounting itself measured nothing.
    let rows = [
        four(job("7", "COMPLETED", 3600)).with("AdminComment", JOBSTATS),
        four(step("7.batch", 3600, "")),
    ];
    let test = cluster("jobstats", &rows);
    let told = test.run(&["job", "7", "--json"]).ends(0).json()["jobs"][0].clone();
    let share = |name: &str| gauge(&told, name)["share"].as_f64().expect("measured");
    assert!((share("gpu") - 0.032).abs() < 1e-6, "{told:#}");
    assert!((share("cpu") - 3000.0 / (4.0 * 3600.0)).abs() < 1e-6, "{told:#}");
    assert!((share("memory") - 2.0 / 16.0).abs() < 1e-6, "{told:#}");
    assert_eq!(told["findings"][0]["code"], "gpu-idle");
    let shown = test.run(&["job", "7"]);
    shown
        .ends(0)
        .says("measured n01: CPU time 00:50:00 on 4 CPUs, memory 2G of 16G; GPU 0 3 % busy");
    // Words that stand for no measurement.
    for nothing in ["JS1:None", "JS1:Short"] {
        let rows = [four(job("7", "COMPLETED", 7200)).with("AdminComment", nothing)];
        let told = cluster("jobstats-none", &rows).run(&["job", "7", "--json"]).ends(0).json();
        assert!(told["jobs"][0]["measured"].is_null(), "{nothing}");
        assert!(gauge(&told["jobs"][0], "gpu")["used"].is_null());
    }
}

#[test]
fn a_recording_of_another_question_shows_what_it_holds() {
    // The demo was recorded by diagnoses, whose query has fewer columns.
    let shown = Test::new("demo-job").run(&["--demo", "job", "10"]);
    shown.ends(0).says("checksum").says("FAILED").says("STEP");
    assert!(!shown.all().contains("holds only the jobs"), "{}", shown.all());
}

/// What must be the same of a job that was submitted alike to four releases; what it used, where it
/// ran and when may differ.
const ALIKE: [&str; 17] = [
    "name",
    "account",
    "partition",
    "qos",
    "user",
    "work_dir",
    "limit_seconds",
    "nodes",
    "cpus",
    "gpus",
    "gpu_type",
    "tasks",
    "allocated_memory_bytes",
    "out_of_memory",
    "failed_node",
    "reason",
    "failed_steps",
];

#[test]
fn the_same_job_reads_the_same_in_four_releases() {
    let test = Test::new("releases");
    let mut releases = Vec::new();
    for release in ["20.11", "22.05", "24.11", "26.05"] {
        let saved = format!("{FIXTURES}/slurm-{release}/sacct-all-fields.psv");
        let lines = test.run(&["export", "--from", &saved]);
        // By name, and by what follows the number in the id: tasks, components.
        let mut jobs = BTreeMap::new();
        for line in lines.ends(0).stdout.lines() {
            let run: Value = serde_json::from_str(line).expect("JSON");
            let id = run["id"].as_str().expect("an id").trim_start_matches(char::is_numeric);
            jobs.insert((run["name"].to_string(), id.to_owned()), run);
        }
        releases.push((release, jobs));
    }
    // `11:0?` is 11 or 139, which 26.05 tells; who cancelled has another number on each machine.
    let plain = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let text = text.split(" by ").next().unwrap_or_default();
        match text.strip_suffix(":0").and_then(|code| code.parse::<u32>().ok()) {
            Some(code) if code > 128 => format!("{}:0?", code - 128),
            _ => text.to_owned(),
        }
    };
    let (_, oldest) = &releases[0];
    let mut compared = 0;
    for (key, first) in oldest {
        let all: Vec<(&str, &Value)> =
            releases.iter().filter_map(|(name, jobs)| Some((*name, jobs.get(key)?))).collect();
        if all.len() < 4 {
            continue;
        }
        compared += 1;
        for (release, run) in &all[1..] {
            for field in ALIKE {
                // A step that ran out of memory is the job's end to 20.11, which knows it by that.
                assert_eq!(run[field], first[field], "{field} of {key:?} in {release}");
            }
            let ended_by_step = key.0.contains("oom-step");
            for field in ["state", "exit"] {
                let (one, other) = (plain(&first[field]), plain(&run[field]));
                assert!(one == other || ended_by_step, "{field} of {key:?}: {one}, {other}");
            }
        }
    }
    assert!(compared >= 12, "{compared}");
}

/// `sacct` with so many completed runs of an hour each; their steps used half a core, but for the
/// last, which did nothing. It tells how it was asked.
fn of_runs(name: &str, runs: u32) -> Test {
    let test = Test::new(name);
    test.answer(
        "fields",
        &std::fs::read_to_string(format!("{FIXTURES}/slurm-22.05/sacct-helpformat.txt"))
            .expect("there"),
    );
    let body = r#"case "$*" in
    *--helpformat*) say fields ;;
    *--format=*)
        format=${*##*--format=} steps=1
        case "$*" in *--allocations*) steps= ;; esac
        PATH=/usr/bin:/bin awk -v wanted="${format%% *}" -v steps="$steps" -v runs=RUNS '
            function cell(name, id, step) {
                if (name == "JobID") return id
                if (name == "State") return "COMPLETED"
                if (name == "ExitCode") return "0:0"
                if (name == "JobName") return "fit"
                if (name == "User" && !step) return "ada"
                if (name == "Partition" && !step) return "cpu"
                if (name == "Submit" || name == "Start") return 1795000000
                if (name == "End") return 1795003600
                if (name == "Elapsed") return "01:00:00"
                if (name == "AllocCPUS" || name == "NNodes") return 1
                if (name == "AllocTRES") return "cpu=1,mem=1G,node=1"
                if (name == "NodeList") return "n1"
                if (name == "TotalCPU") return id ~ /^1\./ ? "00:00:01" : "00:30:00"
                return ""
            }
            function row(id, step,    line, i) {
                line = cell(names[1], id, step)
                for (i = 2; i <= count; i++) line = line "@~@" cell(names[i], id, step)
                print line
            }
            BEGIN {
                count = split(wanted, names, ",")
                for (n = 1; n <= runs; n++) { row(n, 0); if (steps) row(n ".batch", 1) }
            }' ;;
esac"#;
    test.client("sacct", &body.replace("RUNS", &runs.to_string()));
    test.client("squeue", "exit 0");
    let log = test.path("calls").display().to_string();
    test.env("CALLS", &log)
}

#[test]
fn steps_are_asked_for_where_they_are_few_or_wanted() {
    const WINDOW: [&str; 5] = ["--all-users", "-S", "2026-11-01", "-E", "2026-11-30"];
    let ask = |runs, more: &[&str]| {
        let test = of_runs(&format!("steps-{runs}-{}", more.len()), runs);
        let shown = test.run(&[&["overview", "--json"], &WINDOW[..], more].concat());
        let calls = fs::read_to_string(test.path("calls")).expect("asked");
        let with_steps = calls
            .lines()
            .filter(|call| call.contains("--format") && !call.contains("--allocations"))
            .count();
        // What accounting can be asked is the same for all parts of an answer.
        assert_eq!(calls.lines().filter(|call| call.contains("--helpformat")).count(), 1);
        let report = shown.ends(0).json();
        assert_eq!(report["total"]["runs"], runs);
        (report["total"]["hung"].clone(), with_steps, shown)
    };
    // One of twenty did nothing.
    assert_eq!((ask(20, &[]).0, ask(20, &[]).1), (1.into(), 1));
    // Of more than 5000 it is not known, never zero, and it says how it would be.
    let (hung, asked, shown) = ask(5001, &[]);
    assert_eq!((hung, asked), (Value::Null, 0));
    assert!(shown.all().contains("--steps"), "{}", shown.all());
    let (hung, asked, _) = ask(5001, &["--steps"]);
    // The window is 29 days: of a week, two, and the rest.
    assert_eq!((hung, asked), (1.into(), 3));
}

#[test]
fn an_export_reads_back_to_itself() {
    let test = Test::new("export");
    let saved = format!("{FIXTURES}/slurm-24.11/sacct-all-fields.psv");
    let lines = test.run(&["export", "--from", &saved]);
    lines.ends(0);
    assert!(lines.stdout.lines().count() > 10);
    assert!(lines.stdout.lines().all(|line| line.starts_with("{\"schema\":\"jobwise/run/1\"")));
    assert!(lines.stderr.contains("local times"), "{}", lines.stderr);
    let first = test.file("work/first.ndjson", lines.stdout.as_bytes());
    let again = test.run(&["export", "--from", &first.display().to_string()]);
    assert_eq!(again.ends(0).stdout, lines.stdout);
    // A table holds the same, and the same file twice holds no more.
    let table = test.run(&["export", "--format", "csv", "--from", &saved]);
    let second = test.file("work/second.csv", table.stdout.as_bytes());
    let second = second.display().to_string();
    let both = test.run(&["export", "--from", &second, &second]);
    assert_eq!(both.ends(0).stdout, lines.stdout);
}

#[test]
fn a_packed_file_is_read_as_the_text_in_it() {
    let test = Test::new("export-packed");
    let saved = format!("{FIXTURES}/slurm-24.11/sacct-all-fields.psv");
    let plain = test.run(&["export", "--from", &saved]);
    let text = fs::read(&saved).expect("there");
    let copy = test.file("work/saved.psv", &text);
    assert!(Command::new("gzip").arg(&copy).status().expect("gzip").success());
    let packed = test.run(&["export", "--from", "saved.psv.gz"]);
    assert_eq!(packed.ends(0).stdout, plain.ends(0).stdout);
    // What breaks off says so, and loses no row before.
    let bytes = fs::read(test.path("work/saved.psv.gz")).expect("packed");
    test.file("work/cut.psv.gz", &bytes[..bytes.len() / 2]);
    let cut = test.run(&["export", "--from", "cut.psv.gz"]);
    assert!(plain.stdout.starts_with(cut.stdout.lines().next().expect("a run")), "{}", cut.all());
    assert!(cut.stderr.contains("cut.psv.gz: breaks off"), "{}", cut.stderr);
}

#[test]
fn a_file_that_is_no_accounting_is_told_so() {
    let test = Test::new("no-accounting");
    test.file("work/notes.txt", b"hello\n");
    let shown = test.run(&["export", "--from", "notes.txt"]);
    shown.ends(64).fails_with(
        "notes.txt: no heading says what its columns are",
        "save it with sacct -P -o ALL, or name its columns: --columns JobID,State,...",
    );
}

#[test]
fn secrets_do_not_leave_in_an_export() {
    let test = Test::new("export-secret");
    let rows = "JobID|State|JobName|SubmitLine\n\
                7|FAILED|x|sbatch --export=HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345 run.sh\n";
    test.file("work/rows.txt", rows.as_bytes());
    let shown = test.run(&["export", "--from", "rows.txt"]);
    assert!(!shown.ends(0).stdout.contains("abcdefghijklmnop"), "{}", shown.stdout);
}

/// Names of runs are written by anybody, and a secret in one is in no answer about many of them.
#[test]
fn secrets_and_escapes_in_a_history_do_not_come_out() {
    let test = Test::new("hostile-history");
    let hostile = "\u{1b}[31mR\u{1b}]0;own\u{7}\u{9b}2J\u{8}\u{202e}E";
    let mut text = String::from(
        "JobID|JobName|User|Account|Partition|QOS|State|ExitCode|Submit|Start|End|Elapsed|Timelimit|NNodes|\
         AllocCPUS|AllocTRES|NodeList|WorkDir|SubmitLine|Comment|Reservation\n",
    );
    for job in 1..=40 {
        let name = |what: &str| {
            format!("{hostile}{what} pass\u{1b}[0mword=hunter2hunter2,x{}{hostile}", job % 2)
        };
        let state = ["FAILED|1:0", "COMPLETED|0:0", "TIMEOUT|0:15", "NODE_FAIL|0:0"][job % 4];
        text += &format!(
            "{job}|{}|{}|{}|{}|{}|{state}|2026-11-20T08:00:00|2026-11-20T09:00:00|2026-11-20T10:00:00|\
             01:00:00|02:00:00|1|4|cpu=4,mem=8G,node=1|{}|{}|{}|{}|{}\n",
            name("job"),
            name("user"),
            name("account"),
            name("partition"),
            name("qos"),
            name("node"),
            name("dir"),
            name("line"),
            name("comment"),
            name("reservation"),
        );
    }
    test.file("work/hostile.txt", text.as_bytes());
    for command in [
        &["stats"][..],
        &["stats", "--by", "user"],
        &["stats", "--by", "account", "--format", "csv"],
        &["sizing"],
        &["patterns"],
        &["reliability"],
        &["overview"],
        &["export"],
        &["export", "--format", "csv"],
    ] {
        for format in [&[][..], &["--json"]] {
            if command.contains(&"csv") && !format.is_empty() {
                continue;
            }
            let shown = test.run(&[command, &["--from", "hostile.txt"], format].concat());
            shown.ends(0);
            let all = shown.all();
            let together = all.split_whitespace().collect::<String>();
            assert!(!together.contains("hunter2hunter2"), "{command:?} {format:?}\n{all}");
            let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert_eq!(all.chars().find(|c| steers(*c)), None, "{command:?} {format:?}\n{all}");
        }
    }
}
