//! Sums over a cluster of three failed jobs whose logs say more than their records.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::accounting::{cluster as accounting_cluster, job};
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
    // Of two runs those whose records name no cause, 201 and 202, though 203 held four times what
    // 202 did: its record says TIMEOUT. Of one the first of them, which held 8 core-hours and not 1.
    let few = |most: &str| {
        let logs = told(&[most])["logs"].clone();
        let names = ["read", "named", "without", "not_tried", "not_tried_without_cause"];
        names.map(|name| logs[name].as_u64().expect("a count"))
    };
    assert_eq!(few("--logs=2"), [1, 1, 1, 1, 0]);
    assert_eq!(few("--logs=1"), [1, 1, 0, 2, 1]);
    test.run(&[&["stats", "--logs=1"], &WINDOW[..]].concat())
        .says("2 not tried, 1 of them of no known cause");
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

#[test]
fn sizing_stays_within_what_the_account_allows() {
    let test = cluster("sizing-account");
    // Eight hours of eight and a half, as above; nine by the user's association, and eight and a half
    // by the account, which the user's overrides.
    let rows: Vec<String> = (0..4)
        .map(|number| {
            let row = row(&test, &(300 + number).to_string(), "COMPLETED", 4, 9 * number, 8);
            row.replace("10:00:00", "08:30:00")
        })
        .collect();
    test.answer("rows", &rows.join("\n"));
    test.answer("qos", "normal|50||||||||||||||||||\n");
    test.answer(
        "places",
        "ClusterName=lab Account=root UserName= Partition= ParentAccount= GrpTRES=cpu=N(0) \
         MaxWallPJ= MaxTRESPJ= MaxTRESPN=\n\
         ClusterName=lab Account=physics UserName= Partition= ParentAccount=root(1) \
         GrpTRES=cpu=N(0) MaxWallPJ=510 MaxTRESPJ= MaxTRESPN=\n\
         ClusterName=lab Account=physics UserName=ada(1005) Partition= ParentAccount= \
         GrpTRES=cpu=N(0) MaxWallPJ=540 MaxTRESPJ= MaxTRESPN=\n",
    );
    let enforced = |words: &str| {
        let answer = format!(
            "case \"$*\" in *'users=ada flags=assoc'*) say places ;;\n\
             *config*) echo 'AccountingStorageEnforce = {words}' ;;\n\
             *partition*) say partition ;; *) exit 1 ;; esac"
        );
        test.client("scontrol", &answer);
        let _ = fs::remove_file(test.path("calls"));
        test.run(&[&["sizing"], &WINDOW[..]].concat())
    };
    let told = enforced("associations,limits");
    told.ends(0).says("raise from 08:30:00 to 09:00:00, the most there is: 4 runs");
    told.says("ada's association with account physics allows 09:00:00 at most");
    let calls = fs::read_to_string(test.path("calls")).expect("calls");
    assert_eq!(calls.lines().filter(|call| call.contains("assoc_mgr")).count(), 1, "{calls}");
    // Limits that are set and not enforced hold back nothing.
    enforced("associations").ends(0).says("raise from 08:30:00 to 10:30:00: 4 runs");
    test.client("scontrol", "echo 'Invalid user id' >&2; exit 1");
    test.run(&[&["sizing"], &WINDOW[..]].concat())
        .ends(0)
        .says("the limits of associations are not checked: ");
}

/// Four hours of 8 cores on one node each, by hand: of what the energy consists.
#[test]
fn what_the_cluster_metered_replaces_the_estimate_of_those_runs() {
    let run = |id: &str, joules: &str, exclusive: &str, submitted: &str| {
        let row = job(id, "FAILED", 4 * 3600).with("ExitCode", "1:0").with("AllocCPUS", "8");
        let row = row.with("AllocTRES", "cpu=8,node=1").with("ConsumedEnergyRaw", joules);
        row.with("Exclusive", exclusive).with("SubmitLine", submitted)
    };
    let rows = [
        // 300 W for four hours, alone by the word of 26.05, and by its command before that.
        run("1", "4320000", "NODE", "sbatch run.sh"),
        run("2", "4320000", "", "sbatch --exclusive run.sh"),
        // Not known to have been alone; alone but for jobs of its own user; a broken counter (1 MW);
        // NO_VAL64; nobody measured.
        run("3", "4320000", "", "sbatch run.sh --exclusive"),
        run("4", "4320000", "USER", "sbatch --exclusive=user run.sh"),
        run("5", "14400000000", "NODE", "sbatch run.sh"),
        run("6", "18446744073709551614", "NODE", "sbatch run.sh"),
        run("7", "0", "NODE", "sbatch run.sh"),
    ];
    let test = accounting_cluster("stats-metered", &rows);
    let meter = |plugin: &str| {
        let line = format!("AcctGatherEnergyType    = acct_gather_energy/{plugin}");
        let answer = format!("case \"$*\" in *config*) echo '{line}' ;; *) exit 1 ;; esac");
        test.client("scontrol", &answer);
        test.run(&[&["stats", "--all-users", "--json"], &WINDOW[..]].concat()).ends(0).json()
    };
    let near = |found: &serde_json::Value, expected: f64| {
        let found = found.as_f64().expect("a number");
        assert!((found - expected).abs() < expected * 5.1e-4, "{found} is not {expected}");
    };
    // 8 cores x 5 W x 1.2 for the rest of the node, for four hours: 0.192 kWh a run. Both metered
    // ones drew 1.2 kWh. Everything x 1.56 for the machine room.
    let told = meter("ipmi");
    near(&told["used"]["kwh"]["value"], (2.0 * 1.2 + 5.0 * 0.192) * 1.56);
    let measured = &told["energy"]["measured"];
    assert_eq!((&measured["runs"], &measured["meter"]), (&2.into(), &"ipmi".into()));
    near(&measured["kwh"], 2.4);
    near(&measured["share"], 2.4 / 3.36);
    let text = test.run(&[&["stats", "--all-users"], &WINDOW[..]].concat());
    text.ends(0).says("71 % measured, 2.4 kWh by the ipmi meters of nodes that 2 runs had");
    text.says(
        "2 runs with a measured energy that is of nodes that others may have used too: estimated",
    );
    text.says("1 run with a measured energy that no node can draw: estimated");
    // The same by user, and from a file, which names no meter.
    let by = test.run(&[&["stats", "--by", "user", "--all-users", "--json"], &WINDOW[..]].concat());
    assert_eq!(&by.ends(0).json()["energy"]["measured"], measured);
    let saved = test.run(&["stats", "--from", "rows.txt", "--json"]).ends(0).json();
    assert_eq!(saved["used"]["kwh"], told["used"]["kwh"]);
    assert!(saved["energy"]["measured"]["meter"].is_null());
    // RAPL counts the processors and not their nodes.
    let told = meter("rapl");
    near(&told["used"]["kwh"]["value"], 7.0 * 0.192 * 1.56);
    assert!(told["energy"]["measured"].is_null());
    assert!(
        told["notices"].to_string().contains("2 runs with a measured energy counted by rapl"),
        "{told:#}"
    );
    // Figures that compare with those of other tools stay formulas.
    let flat = test.run(&["stats", "--from", "rows.txt", "--method", "flat", "--json"]);
    near(&flat.ends(0).json()["used"]["kwh"]["value"], 7.0 * 4.0 * 8.0 * 0.015);
    // And of one job what is its own is told apart.
    test.run(&["job", "1", "--all"]).says("4320000 J of its nodes, which it had to itself");
    test.run(&["job", "3", "--all"]).says("n/a: 4320000 J of its nodes, perhaps of other jobs");
    test.run(&["job", "5", "--all"]).says("n/a: 14400000000 J, which no node can draw");
}
