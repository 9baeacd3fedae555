//! Sums over a cluster of three failed jobs whose logs say more than their records.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::run::Test;

/// Whatever columns are asked for, of all rows: a query by id and one by window get the same.
const SACCT: &str = r#"case "$*" in
    *--helpformat*) say fields ;;
    *--format=*) format=${*##*--format=}; say_columns rows "${format%% *}" ;;
esac"#;

/// 2026-11-30T08:00:00Z.
const EIGHT: u64 = 1_796_025_600;

/// A failed run of so many CPUs that began so many hours after eight, and its length in hours.
fn row(test: &Test, id: &str, state: &str, cpus: u64, begin: u64, hours: u64) -> String {
    let uid = fs::metadata(&test.root).expect("there").uid();
    let work = test.path("work").display().to_string();
    let (start, end) = (EIGHT + begin * 3600, EIGHT + (begin + hours) * 3600);
    let exit = if state == "FAILED" { "1:0" } else { "0:0" };
    let tres = format!("cpu={cpus},mem=4G,node=1");
    [
        id,
        id,
        state,
        exit,
        "0:0",
        "ada",
        &uid.to_string(),
        "physics",
        "lab",
        "batch",
        "normal",
        "None",
        &start.to_string(),
        &start.to_string(),
        &start.to_string(),
        &end.to_string(),
        &format!("0{hours}:00:00"),
        "10:00:00",
        "4G",
        "1",
        &cpus.to_string(),
        &tres,
        &tres,
        "n1",
        "01:00:00",
        "1",
        "",
        "",
        "",
        &work,
        "train",
        "",
        "sbatch run.sh",
    ]
    .join("@~@")
}

fn cluster(name: &str) -> Test {
    let test = Test::slurm(name);
    let log = test.path("calls").display().to_string();
    let test = test.env("CALLS", &log);
    let rows = [
        row(&test, "201", "FAILED", 4, 0, 2),
        row(&test, "202", "FAILED", 1, 0, 1),
        row(&test, "203", "TIMEOUT", 4, 2, 1),
    ];
    test.answer("rows", &rows.join("\n"));
    test.client("sacct", SACCT);
    test.file(
        "work/slurm-201.out",
        b"2026-11-30 08:00:05 epoch 1\n\
          2026-11-30 09:30:00 Saved checkpoint to run/step-900.pt\n\
          2026-11-30 09:58:00 epoch 2\n\
          Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    step()\n\
          torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total \
          capacity of 39.39 GiB of which 1.06 GiB is free.\n",
    );
    test.file(
        "work/slurm-203.out",
        b"2026-11-30 10:40:00 saving checkpoint at iteration 700\n2026-11-30 10:59:00 step 701\n\
          slurmstepd: error: *** JOB 203 ON n1 CANCELLED AT 2026-11-30T11:00:00 DUE TO TIME LIMIT ***\n",
    );
    test
}

const WINDOW: [&str; 4] = ["--since", "2026-11-01", "--until", "2026-12-31"];

#[test]
fn logs_name_causes_and_what_was_lost_since_the_last_checkpoint() {
    let test = cluster("stats-logs");
    let told = |more: &[&str]| {
        let args = [&["stats", "--json"], more, &WINDOW[..]].concat();
        test.run(&args).ends(0).json()
    };
    let causes = |stats: &serde_json::Value| {
        let rows = stats["causes"].as_array().expect("causes").clone();
        let mut told: Vec<String> =
            rows.iter().map(|row| row["cause"].as_str().expect("a name").to_owned()).collect();
        told.sort();
        told
    };
    let bare = told(&[]);
    assert_eq!(causes(&bare), ["time_limit", "unknown"]);
    assert!(bare["logs"].is_null());
    let stats = told(&["--logs"]);
    assert_eq!(causes(&stats), ["cuda_oom", "time_limit", "unknown"]);
    let logs = &stats["logs"];
    let counts = ["read", "named", "without", "not_tried"].map(|name| logs[name].as_u64());
    assert_eq!(counts, [Some(2), Some(1), Some(1), Some(0)]);
    // Four CPUs for half an hour and for twenty minutes, of two hours and one.
    assert_eq!(logs["after_checkpoint"]["core_hours"], 3.3333);
    assert_eq!(logs["after_checkpoint"]["node_hours"], 0.8333);
    assert_eq!(logs["with_checkpoint"]["core_hours"], 12.0);
    // What is not read is counted: of two runs those that held 8 and 4 core-hours, not 1.
    let two = told(&["--logs=2"]);
    assert_eq!((&two["logs"]["read"], &two["logs"]["not_tried"]), (&2.into(), &1.into()));
    // The sums are the same whoever names the causes.
    for part in ["runs", "used", "wasted", "partitions", "failure_rate"] {
        assert_eq!(bare[part], stats[part], "{part}");
    }
    let text = test.run(&[&["stats", "--logs"], &WINDOW[..]].concat());
    text.ends(0).says("read of 2 failed runs, which name the cause of 1 that the record does not");
    text.says("1 without a log that can be read");
    text.says("2 runs saved one; what they held after the last: 3.33 core-hours, 0.83 node-hours");
    let by_cause = test.run(&[&["stats", "--by", "cause", "--logs"], &WINDOW[..]].concat());
    by_cause.ends(0).says("cuda_oom 1 8.00 2.00");
}

#[test]
fn logs_cost_one_query_more_and_no_script() {
    let test = cluster("stats-logs-calls");
    let calls = |args: &[&str]| {
        let log = test.path("calls");
        let _ = fs::remove_file(&log);
        test.run(&[args, &WINDOW[..]].concat()).ends(0);
        let calls = fs::read_to_string(log).expect("calls");
        calls.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    let (bare, with) = (calls(&["stats"]), calls(&["stats", "--logs"]));
    assert_eq!(with.len(), bare.len() + 1, "{with:#?}");
    assert!(with.iter().all(|call| !call.contains("batch")), "{with:#?}");
    let by_id = with.iter().filter(|call| call.contains("--jobs=201,202,203"));
    assert_eq!(by_id.count(), 1, "{with:#?}");
}

#[test]
fn node_hours_stand_beside_the_others() {
    let test = cluster("stats-nodes");
    let stats = test.run(&[&["stats", "--json"], &WINDOW[..]].concat()).ends(0).json();
    // One node for two hours and twice for one.
    assert_eq!(stats["wasted"]["node_hours"], 4.0);
    assert_eq!(stats["wasted"]["core_hours"], 13.0);
    test.run(&[&["stats"], &WINDOW[..]].concat())
        .says("13.0 of 13.0 core-hours, 4.00 of 4.00 node-hours");
    let refused = test.run(&["stats", "--by", "user", "--logs"]);
    refused.ends(64);
}

#[test]
fn sizing_stays_within_the_quality_of_service() {
    let test = cluster("sizing-qos");
    // Eight hours of eight and a half: 10:24 would be right, but the QOS allows nine.
    let rows: Vec<String> = (0..4)
        .map(|number| {
            let row = row(&test, &(300 + number).to_string(), "COMPLETED", 4, 9 * number, 8);
            row.replace("10:00:00", "08:30:00")
        })
        .collect();
    test.answer("rows", &rows.join("\n"));
    test.answer("qos", "normal|50|||09:00:00||||||||||||||||\n");
    let args = [&["sizing"], &WINDOW[..]].concat();
    let told = test.run(&args);
    told.ends(0).says("raise from 08:30:00 to 09:00:00, the most there is: 4 runs");
    told.says("QOS normal allows 09:00:00 at most").says("#SBATCH --time=09:00:00");
    let calls = fs::read_to_string(test.path("calls")).expect("calls");
    assert_eq!(calls.lines().filter(|call| call.starts_with("sacctmgr")).count(), 1, "{calls}");
    // One that cannot be asked is told.
    test.client("sacctmgr", "echo 'sacctmgr: error: not now' >&2; exit 1");
    let told = test.run(&[&args[..], &["--fresh"]].concat());
    told.says("raise from 08:30:00 to 10:30:00: 4 runs");
    told.says("the limits of QOS normal are unknown: advice is not capped by them");
}
