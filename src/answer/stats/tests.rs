//! Sums over a real history, counted by hand and by other programs.

use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::config::Config;
use crate::host::Replay;
use crate::sched::{Filter, Session, Users};

/// What `sacct` of 22.05 printed of a small cluster with many deliberate failures.
pub(crate) const HISTORY: &str = include_str!("../../../fixtures/slurm-22.05/sacct-history.txt");
const HELP: &str = include_str!("../../../fixtures/slurm-22.05/sacct-helpformat.txt");
const SINCE: i64 = 1_795_952_483;
const UNTIL: i64 = 1_796_038_883;

/// The answer on a cluster whose `sacct` prints these rows.
pub(crate) fn answer(rows: &str, settings: &str, change: impl Fn(&mut Question)) -> Stats {
    let columns = "JobID,State,ExitCode,DerivedExitCode,Partition,Reason,Start,End,Elapsed,\
                   Timelimit,AllocCPUS,AllocTRES,NodeList";
    let argv = [
        "sacct",
        "--parsable2",
        "--noheader",
        "--allocations",
        "--delimiter=@~@",
        &format!("--format={columns}"),
        &format!("--starttime=uts{SINCE}"),
        &format!("--endtime=uts{UNTIL}"),
        "--allusers",
        "--duplicates",
    ];
    let ended = json!({"exit": {"status": 0, "stderr": "00"}});
    let recording = json!({
        "format": 1,
        "jobwise": "0.1.0",
        "clock": "2026-11-30T11:41:23Z",
        "zone": {"name": null, "offset_seconds": 0},
        "caller": {"uid": 1001, "name": "alice"},
        "environment": {},
        "commands": [
            {"argv": ["sacct", "--helpformat"], "stdout": "01", "end": ended},
            {"argv": argv, "stdout": "02", "end": ended},
        ],
        "files": [{"path": "site.toml", "outcome": {"content": {
            "size": settings.len(), "modified": null, "ranges": [{"offset": 0, "blob": "03"}],
        }}}],
        "directories": [],
        "blobs": {
            "00": {"text": ""}, "01": {"text": HELP}, "02": {"text": rows},
            "03": {"text": settings},
        },
    });
    let cluster =
        Replay::parse(Path::new("test"), recording.to_string().as_bytes()).expect("a recording");
    let config = Config::load(&cluster, Some(Path::new("site.toml"))).expect("settings");
    let at = |second| Timestamp::from_second(second).expect("a time");
    let filter = Filter {
        users: Users::All,
        states: Vec::new(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        qos: Vec::new(),
        clusters: Vec::new(),
        names: Vec::new(),
        since: at(SINCE),
        until: at(UNTIL),
    };
    let mut question = Question {
        past: Wanted {
            filter,
            depth: crate::sched::Depth::Allocations,
            files: Vec::new(),
            columns: Vec::new(),
        },
        method: Method::Estimate,
        gpu_watts: None,
        cpu_watts: None,
        carbon: None,
        logs: None,
    };
    change(&mut question);
    let world = World {
        cluster: &cluster,
        machine: &cluster,
        overlays: &[],
        config: &config,
        store: None,
        live: false,
        fresh: false,
        session: &Session::default(),
    };
    stats(world, &question).expect("an answer")
}

/// To the four decimals or four digits that are told.
fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("recorded");
    assert!((found - expected).abs() <= 5.1e-5_f64.min(expected * 5.1e-4), "{found}, {expected}");
}

#[test]
fn a_real_history_is_counted_as_awk_counts_it() {
    // The expected numbers are those of an awk script over the same rows: node list not
    // "None assigned", by state, elapsed x AllocCPUS, elapsed x the number after `gres/gpu=`.
    let stats = answer(HISTORY, "", |_| ());
    let expected = Runs {
        ended: 131,
        completed: 51,
        failed: 60 + 6 + 3 + 2,
        cancelled: 4,
        preempted: 2,
        requeued: 3,
        other: 0,
        never_started: 22,
        running: 7,
        pending: 30,
        completed_with_failed_step: 3,
    };
    assert_eq!(stats.runs, expected);
    near(stats.wasted.core_hours, 456.0 / 3600.0);
    near(stats.used.core_hours, 940.0 / 3600.0);
    assert_eq!(stats.wasted.gpu_hours, Some(0.0011), "4 s");
    assert_eq!(stats.used.gpu_hours, Some(0.0028), "10 s");
    let rate = stats.failure_rate;
    assert_eq!((rate.failed, rate.of), (71, 122));
    near(rate.rate, 71.0 / 122.0);
    let partitions: Vec<_> = stats
        .partitions
        .iter()
        .map(|row| {
            let name = row.partition.as_deref().expect("recorded");
            (name, row.failure_rate.failed, row.failure_rate.of)
        })
        .collect();
    let expected = [
        ("batch", 64, 105),
        ("gpu", 4, 10),
        ("flaky", 2, 3),
        ("cloud", 1, 1),
        ("exclusive", 0, 1),
        ("over", 0, 1),
        ("unlim", 0, 1),
    ];
    assert_eq!(partitions, expected);
    assert!(stats.notices.iter().all(|notice| notice.code != "unrecorded-allocation"));
}

#[test]
fn energy_of_a_real_history_by_hand() {
    // Failed runs: 4 GPU-s of a100, beside them 8 core-s and 600 MiB-s; on CPUs only 448 core-s
    // and 44500 MiB-s. In joules:
    let gpu_runs = 4.0 * 400.0 * 0.6 + 8.0 * 5.0 + 600.0 * 1.048_576e-3 * 0.15;
    let cpu_runs = 448.0 * 5.0 + 44_500.0 * 1.048_576e-3 * 0.15;
    let joules = (gpu_runs * 1.3 + cpu_runs * 1.2) * 1.56;
    let stats = answer(HISTORY, "", |_| ());
    near(stats.wasted.kwh.map(|kwh| kwh.value), joules / 3.6e6);
    assert_eq!(stats.wasted.co2_kg, None);
    assert_eq!(stats.energy.carbon_grams_per_kwh, None);
}

#[test]
fn causes_are_those_that_the_record_alone_names() {
    let stats = answer(HISTORY, "", |_| ());
    let runs = |cause: &str| {
        let row = stats.causes.iter().find(|row| row.cause == cause);
        row.map_or(0, |row| row.wasted.runs)
    };
    assert_eq!(runs("time_limit"), 2);
    assert_eq!(runs("node_fail"), 3);
    // Six in the state OUT_OF_MEMORY, and one FAILED whose step was 0:125.
    assert_eq!(runs("host_oom"), 7);
    assert_eq!(stats.causes.iter().map(|row| row.wasted.runs).sum::<u64>(), 71);
    let exits: u64 = stats.unknown_exits.iter().map(|row| row.runs).sum();
    assert_eq!(exits, runs("unknown"));
}

#[test]
fn the_order_of_the_records_does_not_change_a_byte() {
    let told = |rows: &[&str]| {
        let stats = answer(&format!("{}\n", rows.join("\n")), "", |_| ());
        serde_json::to_string(&stats).expect("JSON")
    };
    let mut rows: Vec<&str> = HISTORY.lines().collect();
    let first = told(&rows);
    rows.reverse();
    assert_eq!(told(&rows), first);
    rows.sort_by_key(|row| row.len());
    assert_eq!(told(&rows), first);
}

#[test]
fn the_site_s_word_counts_and_is_named() {
    // Failed runs as above: 4 GPU-s, 8 core-s and 600 MiB-s beside them, 448 core-s and
    // 44500 MiB-s on CPUs, as above.
    let joules = |gpu: f64, core: f64, pue: f64| {
        let memory = 1.048_576e-3 * 0.15;
        let gpu_runs = 4.0 * gpu * 0.6 + 8.0 * core + 600.0 * memory;
        (gpu_runs * 1.3 + (448.0 * core + 44_500.0 * memory) * 1.2) * pue
    };
    let settings = "[energy]\npue_percent = 110\ncpu_watts = 10\ncarbon_grams_per_kwh = 50\n";
    let stats = answer(HISTORY, settings, |_| ());
    let kwh = joules(400.0, 10.0, 1.1) / 3.6e6;
    near(stats.wasted.kwh.map(|kwh| kwh.value), kwh);
    near(stats.wasted.co2_kg.map(|kg| kg.value), kwh * 0.05);
    assert_eq!(stats.energy.carbon_source.as_deref(), Some("site.toml"));
    // The command line has the last word.
    let stats = answer(HISTORY, settings, |question| {
        question.cpu_watts = Some(15);
        question.gpu_watts = Some(300);
    });
    near(stats.wasted.kwh.map(|kwh| kwh.value), joules(300.0, 15.0, 1.1) / 3.6e6);
    // Flat figures heed the command line alone: 4 GPU-s x 400 W + 456 core-s x 20 W = 10720 J.
    let stats = answer(HISTORY, settings, |question| {
        question.method = Method::Flat;
        question.cpu_watts = Some(20);
    });
    near(stats.wasted.kwh.map(|kwh| kwh.value), 10_720.0 / 3.6e6);
}

#[test]
fn a_state_that_no_family_covers_is_its_own_cause() {
    let row = "9@~@DEADLINE@~@0:0@~@0:0@~@batch@~@None@~@1796034865@~@1796034942@~@00:01:17@~@\
               00:02:00@~@2@~@cpu=2,mem=200M,node=1@~@c01\n";
    let causes = answer(row, "", |_| ()).causes;
    assert_eq!(causes.len(), 1);
    assert_ne!(causes[0].cause, "unknown");
}

#[test]
fn what_is_not_recorded_is_null() {
    // A record without AllocTRES, as of a Slurm that did not keep it.
    let row = "9@~@FAILED@~@1:0@~@0:0@~@batch@~@None@~@1796034865@~@1796034942@~@00:01:17@~@\
               00:02:00@~@2@~@@~@c01\n";
    let stats = answer(row, "", |_| ());
    let told = serde_json::to_value(&stats).expect("JSON");
    for part in ["wasted", "used"] {
        assert_eq!(told[part]["runs"], 1);
        for amount in ["gpu_hours", "core_hours", "kwh", "co2_kg"] {
            assert!(told[part][amount].is_null(), "{part} {amount}");
        }
    }
    assert!(stats.notices.iter().any(|notice| notice.code == "unrecorded-allocation"));
    let nothing = answer("", "", |_| ());
    assert_eq!((nothing.runs.ended, nothing.failure_rate.rate), (0, None));
}
