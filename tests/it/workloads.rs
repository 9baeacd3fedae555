//! The commands about many runs, over the demo cluster's ninety days.
//!
//! What they must find was put there on purpose: `fixtures/demo/make-history` says what and where.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::accounting::{cluster, job, step, table};
use crate::run::{Shown, Test};

fn demo(args: &[&str]) -> Shown {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let test = Test::new(&format!("workloads-{number}")).env("COLUMNS", "80");
    test.run(&[&["--demo"], args].concat())
}

fn told(args: &[&str]) -> String {
    demo(args).ends(0).stdout.clone()
}

fn json(args: &[&str]) -> serde_json::Value {
    demo(&[&["--json"], args].concat()).ends(0).json()
}

const COMMANDS: [&[&str]; 9] = [
    &["overview"],
    &["overview", "--all-users"],
    &["sizing", "--all-users", "-n", "0"],
    &["patterns", "--all-users"],
    &["reliability", "--all-users"],
    &["reliability", "--metric", "hang"],
    &["stats", "--by", "week"],
    &["stats", "--by", "account", "--all-users"],
    &["stats", "--by", "cause"],
];

#[test]
fn every_answer_fits_eighty_columns_and_is_the_same_again() {
    for args in COMMANDS {
        let text = told(&[args, &["--ascii"]].concat());
        assert!(text.is_ascii(), "{args:?}: {text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{args:?}: {text}");
        assert_eq!(told(&[args, &["--ascii"]].concat()), text);
        let value = json(args);
        assert!(value["schema"].as_str().is_some_and(|name| name.starts_with("jobwise/")));
        assert!(value["notices"].is_array(), "{args:?}");
    }
}

/// What each command shows of the ninety days, as it is kept in `fixtures/demo/shown`; written anew
/// where `JOBWISE_SHOWN=write` asks for that, to be looked at in the difference.
#[test]
fn what_the_demo_shows_is_kept() {
    let kept: [(&str, &[&str]); 15] = [
        ("overview", &["overview"]),
        ("overview-all", &["overview", "--all-users"]),
        ("overview-rest", &["overview", "--all-users", "-n", "3"]),
        ("sizing", &["sizing"]),
        ("sizing-all", &["sizing", "--all-users", "-n", "0", "--all"]),
        ("patterns", &["patterns", "--all-users"]),
        ("reliability", &["reliability", "--all-users"]),
        ("reliability-hang", &["reliability", "--metric", "hang"]),
        ("stats-cause", &["stats"]),
        ("stats-week", &["stats", "--by", "week"]),
        ("stats-account", &["stats", "--by", "account", "--all-users"]),
        ("stats-gpu", &["stats", "--by", "gpu", "--all-users"]),
        ("export", &["export", "--name", "flow-13"]),
        ("jobs", &["jobs"]),
        ("job", &["job", "1", "--all"]),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/demo/shown");
    let mut changed = Vec::new();
    for (name, args) in kept {
        let (path, shown) = (format!("{folder}/{name}.txt"), told(args));
        if std::env::var("JOBWISE_SHOWN").is_ok_and(|what| what == "write") {
            std::fs::create_dir_all(folder).expect("made");
            std::fs::write(&path, &shown).expect("written");
        } else if std::fs::read_to_string(&path).unwrap_or_default() != shown {
            changed.push(format!("{name}:\n{shown}"));
        }
    }
    assert!(changed.is_empty(), "other than kept: {}", changed.join("\n"));
}

/// What was put into the history on purpose is seen by who asks for it.
#[test]
fn what_the_demo_is_made_of_is_visible() {
    for (args, parts) in [
        // A walk through limits of memory, and a series of hangs.
        (
            &["patterns"][..],
            &["16G, 24G x2, 32G x2, 40G x2; then 24", "13 held their cores and did"][..],
        ),
        // A bad node, and one on which work hangs.
        (&["reliability", "--all-users"], &["cn06 16/47 34 %", "#SBATCH --exclude=cn06"]),
        (&["reliability", "--metric", "hang"], &["gpu03 13/19 68 %", "#SBATCH --exclude=gpu03"]),
        // Seven minutes of margin.
        (&["sizing", "flow"], &["raise from 12:00:00 to 13:30:00", "took was 11:53:00"]),
        // Idle GPUs.
        (
            &["stats", "--by", "gpu", "--all-users"],
            &["did nothing 16 runs, though they completed: 290 GPU-hours"],
        ),
        // A record that was never closed, and one that is open.
        (&["overview"], &["1 record open far beyond the time limit", "1 run not over yet"]),
    ] {
        let shown = demo(args);
        for part in parts {
            shown.ends(0).says(part);
        }
    }
}

#[test]
fn a_long_name_is_readable_beside_everything_else() {
    // With users, hangs and GPUs all columns are there: 16 columns are the name's at least.
    let name = "assemble-the-genome-of-the-axolotl";
    let hung = job("1", "TIMEOUT", 7200).with("JobName", name).with("User", "genomics");
    let hung = hung.with("AllocTRES", "cpu=1,gres/gpu=1,node=1").with("Partition", "interactive");
    let rows = [hung, step("1.batch", 7200, "00:00.100")];
    let shown =
        cluster("long-name", &rows).env("COLUMNS", "80").run(&["overview", "--from", "rows.txt"]);
    shown.ends(0).says("assemble-the-ge");
    for heading in
        ["WORKLOAD", "USER", "PARTITION", "RUNS", "FAILED", "IDLE", "CORE-H", "GPU-H", "LAST"]
    {
        assert!(shown.stdout.contains(heading), "{heading}: {}", shown.stdout);
    }
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80), "{}", shown.stdout);
}

#[test]
fn the_overview_ranks_workloads_and_adds_up() {
    let whole = json(&["overview", "--all-users"]);
    let rows = whole["workloads"].as_array().expect("rows");
    let sum =
        |field: &str| rows.iter().map(|row| row[field].as_u64().expect("a count")).sum::<u64>();
    for field in ["runs", "completed", "failed", "cancelled", "preempted", "other", "hung", "idle"]
    {
        assert_eq!(whole["total"][field].as_u64(), Some(sum(field)), "{field}");
    }
    let row = |name: &str| rows.iter().find(|row| row["workload"] == name).expect("a workload");
    // 26 runs of four GPUs, of which 13 hung for eight hours and 12 s: 13 x 4 x 28812 s.
    let hung = row("pretrain-#");
    assert_eq!(
        (&hung["runs"], &hung["hung"], &hung["names"]),
        (&26.into(), &13.into(), &26.into())
    );
    assert_eq!(hung["wasted_gpu_hours"], 416.1733);
    // What completed on idle GPUs is what `stats` tells, and sorts with what failed.
    let idle = row("notebook-#");
    assert_eq!((&idle["idle"], &idle["idle_completed"]), (&16.into(), &16.into()));
    let stats = json(&["stats", "--all-users"]);
    assert_eq!(whole["total"]["idle_completed"], stats["idle"]["runs"]);
    let flagged = json(&["overview", "--all-users", "--sort", "failures"]);
    assert_eq!(flagged["workloads"][0]["workload"], "notebook-#");
    // One array of forty tasks in each of twelve weeks.
    assert_eq!(row("shard")["runs"], 480);
    // The record that was never closed is in no sum, and the run of today is not over.
    assert_eq!((&whole["stale"], &whole["total"]["running"]), (&1.into(), &1.into()));
    // The first two of nine, and the rest in one line.
    let short = json(&["overview", "--all-users", "-n", "2", "--sort", "runs"]);
    assert_eq!(short["workloads"][0]["workload"], "shard");
    let shown: u64 = (0..2).map(|at| short["workloads"][at]["runs"].as_u64().expect("runs")).sum();
    assert_eq!(short["rest"]["runs"].as_u64(), Some(sum("runs") - shown));
    let by_name = json(&["overview", "--sort", "name"]);
    let names = by_name["workloads"].as_array().expect("rows").iter();
    let names: Vec<&str> = names.map(|row| row["workload"].as_str().expect("a name")).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn sizing_gives_lines_to_paste_and_says_what_they_rest_on() {
    let text = told(&["sizing", "flow"]);
    // 11:53:00 of 12 h were needed: seven minutes are no margin.
    for part in [
        "raise from 12:00:00 to 13:30:00: 20 runs, the most that one",
        "13 % headroom, by how much they vary; all",
        "#SBATCH --time=13:30:00",
        "32 is about right: 20 completed runs",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let advice = |name: &str, option: &str| {
        let sized = json(&["sizing", name, "--all-users"]);
        let rows = sized["workloads"][0]["advice"].as_array().expect("advice").clone();
        rows.into_iter().find(|row| row["option"] == option).expect("the option")
    };
    // Died at up to 40 GiB, then 24 completed with 64 and 47 at most: nothing to change.
    let memory = advice("assemble", "--mem");
    assert_eq!((&memory["verdict"], &memory["now"]), (&"keep".into(), &"64G".into()));
    assert_eq!(memory["runs"], 31);
    // Saturated on all 32 cores of two nodes: no more of them.
    assert_eq!(advice("scf", "--cpus-per-task")["verdict"], "keep");
    // Two GPUs that no run ever used.
    let gpus = advice("notebook", "--gpus");
    assert_eq!((&gpus["verdict"], &gpus["suggestion"]), (&"lower".into(), &"0".into()));
    // No limit becomes a first one.
    let time = advice("index", "--time");
    assert_eq!((&time["verdict"], &time["now"]), (&"set".into(), &"UNLIMITED".into()));
}

#[test]
fn advice_that_was_followed_is_told_with_what_came_of_it() {
    let text = told(&["sizing", "tune"]);
    // The last three runs used at most 9.63 GiB, as the history was made: below 11 and above 9.
    let since = "since then  --mem: asked 11G as advised, 3 runs peaked at 9.63G";
    assert!(text.contains(since), "{text}");
    let text = told(&["sizing", "assemble"]);
    let since = "since then  --mem: asked 64G where 80G was advised, 24 runs peaked at 46.7G";
    assert!(text.contains(since), "{text}");
}

#[test]
fn what_advice_would_have_freed_is_told_by_account() {
    let sums = json(&["stats", "--by", "account", "--all-users"]);
    let physics = &sums["groups"][0];
    assert_eq!(physics["name"], "physics");
    let sized = json(&["sizing", "--all-users"]);
    let freed = &sized["reclaimable"][0];
    assert_eq!(freed["account"], "physics");
    for amount in ["core_hours", "gpu_hours", "node_hours", "memory_gib_hours"] {
        assert_eq!(physics["reclaimable"][amount], freed[amount], "{amount}");
    }
    // Sixteen notebooks of two GPUs did nothing with them.
    assert_eq!(sums["total"]["idle"]["runs"], 16);
    assert_eq!(freed["gpu_hours"], sums["total"]["idle"]["gpu_hours"]);
}

#[test]
fn files_of_runs_name_causes_as_well() {
    let sums = json(&["stats", "--by", "cause", "--all-users"]);
    let rows = sums["groups"].as_array().expect("rows");
    let failed = |row: &serde_json::Value| row["failed"]["runs"].as_u64().expect("a count");
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).map(failed);
    // 13 that hung until their limit, 7 of a walk through sizes, 6 on the node that broke.
    let found = ["time_limit", "host_oom", "node_fail"].map(named);
    assert_eq!(found, [Some(13), Some(7), Some(6)]);
    assert_eq!(
        Some(rows.iter().map(failed).sum::<u64>()),
        sums["total"]["failed"]["runs"].as_u64()
    );
    // The same file by another road, and the runs that did not fail are in the total.
    let by_user = json(&["stats", "--by", "user", "--all-users"]);
    assert_eq!(sums["total"], by_user["total"]);
}

#[test]
fn patterns_quote_sizing_and_never_contradict_it() {
    // Weakness 11: patterns said that memory was not it, sizing asked for more of it.
    let text = told(&["patterns"]);
    for part in [
        "16G, 24G x2, 32G x2, 40G x2; then 24",
        "sizing: --mem 64G is about right",
        "13 held their cores and did",
        "a longer limit would only hold more for longer",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_bad_nodes_are_found_and_no_other() {
    let worse = |args: &[&str]| {
        let nodes = json(&[&["reliability", "--all-users", "-n", "0"], args].concat());
        let rows = nodes["nodes"].as_array().expect("nodes").clone();
        let worse = rows.iter().filter(|row| row["verdict"] == "worse");
        let worse: Vec<String> =
            worse.map(|row| row["node"].as_str().expect("a name").to_owned()).collect();
        (worse, nodes["exclude"].as_str().map(str::to_owned))
    };
    assert_eq!(worse(&[]), (vec!["cn06".to_owned()], Some("cn06".to_owned())));
    let hang = worse(&["--metric", "hang"]);
    assert_eq!(hang, (vec!["gpu03".to_owned()], Some("gpu03".to_owned())));
}

#[test]
fn filters_and_windows_narrow_the_demo_too() {
    let runs = |args: &[&str]| {
        let whole = json(&[&["overview", "--all-users"], args].concat());
        whole["total"]["runs"].as_u64().expect("a count")
    };
    let all = runs(&[]);
    assert_eq!(runs(&["-p", "gpu"]) + runs(&["-p", "cpu"]), all);
    assert_eq!(runs(&["-A", "physics"]) + runs(&["-A", "biology"]), all);
    let early = runs(&["-E", "2026-10-01"]);
    assert!(early > 0 && early + runs(&["-S", "2026-10-01"]) == all);
    assert_eq!(runs(&["--name", "shard"]), 480);
    demo(&["sizing", "nothing-like-it"]).ends(1).says("no run of a workload nothing-like-it ended");
    let refused = demo(&["sizing", "--risk", "0.7"]);
    assert!(refused.ends(64).stderr.contains("below 0.5"), "{}", refused.stderr);
}

#[test]
fn sums_are_written_as_comma_separated_values() {
    let text = told(&["stats", "--by", "week", "--format", "csv"]);
    let lines: Vec<&str> = text.lines().collect();
    let columns = lines[0].split(',').count();
    assert!(lines[0].starts_with("group,used_runs,used_unrecorded,used_core_hours"));
    assert!(lines.len() > 10 && lines.iter().all(|line| line.split(',').count() == columns));
    let weeks = json(&["stats", "--by", "week"]);
    let runs = |line: &str| line.split(',').nth(1).and_then(|cell| cell.parse::<u64>().ok());
    let sum: u64 = lines[1..].iter().map(|line| runs(line).expect("a count")).sum();
    assert_eq!(weeks["total"]["used"]["runs"].as_u64(), Some(sum));
}

/// An array of which 12 tasks died of memory, 2 lost their node and 2 completed, on 16 GiB each.
fn mixed_array(name: &str) -> Test {
    let mut rows = Vec::new();
    for task in 0..16_u32 {
        let (state, exit, node, rss) = match task {
            0..12 => ("OUT_OF_MEMORY", "0:125", "n1", "16700000K"),
            12..14 => ("NODE_FAIL", "0:0", "n13", "200000K"),
            _ => ("COMPLETED", "0:0", "n13", "200000K"),
        };
        let id = format!("5000_{task}");
        let own = job(&id, state, 1800).with("ExitCode", exit).with("NodeList", node);
        rows.push(own.with("AllocTRES", "cpu=1,mem=16G,node=1").with("ReqMem", "16G"));
        let batch = step(&format!("{id}.batch"), 1800, "00:30:00").with("MaxRSS", rss);
        rows.push(batch.with("AllocTRES", "cpu=1,mem=16G,node=1").with("AllocNodes", "1"));
    }
    cluster(name, &rows)
}

#[test]
fn sizing_patterns_and_diagnose_agree_on_an_array_that_mostly_dies() {
    let test = mixed_array("mixed-array");
    // 12 of 14 died with 16G: twice that.
    test.run(&["diagnose", "5000_3"]).says("--mem=32G");
    test.run(&["sizing", "--all-users"])
        .ends(0)
        .says("--mem raise from 16G to 32G")
        .says("#SBATCH --mem=32G");
    test.run(&["patterns", "--all-users"]).ends(0).says("sizing: raise --mem to 32G");
    // Two completed, twelve broke: how long they take is not known.
    let told = test.run(&["sizing", "--all-users", "--json"]).ends(0).json();
    let time = &told["workloads"][0]["advice"][0];
    assert_eq!((&time["option"], &time["verdict"]), (&"--time".into(), &"unknown".into()));
}

#[test]
fn one_failure_rate_is_told_everywhere() {
    // 14 failed of 16 that failed or completed: 87.5 %, which prints as 88.
    let test = mixed_array("one-rate");
    test.run(&["overview", "--all-users"])
        .says("failure rate 88 % of those that failed or completed");
    test.run(&["stats", "--all-users"]).says("14 failed of 16 failed or completed");
    test.run(&["stats", "--from", "rows.txt"])
        .says("failure rate 88 % (95 % interval 64-96 %): 14 failed of 16");
    test.run(&["stats", "--by", "user", "--all-users"])
        .says("failure rate 88 %: 14 failed of 16 failed or completed");
    // The cluster and a file of the same rows are told of alike.
    let whole = |args: &[&str]| test.run(args).ends(0).json();
    let live = whole(&["stats", "--all-users", "--json"]);
    let saved = whole(&["stats", "--from", "rows.txt", "--json"]);
    for part in ["runs", "failure_rate", "used", "wasted", "causes", "partitions", "energy"] {
        assert_eq!(live[part], saved[part], "{part}");
    }
}

#[test]
fn what_a_node_ended_does_not_vanish_in_an_array() {
    let shown = mixed_array("node-fail").run(&["reliability", "--all-users"]);
    shown.ends(0).says("node failures n13 2 runs");
    shown.says("the tasks of an array count as one job on each node");
}

#[test]
fn an_array_is_summed_up_and_not_spelled_out() {
    let test = mixed_array("summed-up");
    let shown = test.run(&["job", "5000"]);
    shown.ends(0).says("OUT_OF_MEMORY 12 5000_0, 5000_1, 5000_2, 5000_3, ...");
    shown.says("NODE_FAIL 2 5000_12, 5000_13").says("COMPLETED 2 5000_14, 5000_15");
    // One record of each of the three states.
    shown.says("13 more records");
    assert_eq!(shown.stdout.lines().filter(|line| line.starts_with("job 5000_")).count(), 3);
    let all = test.run(&["job", "5000", "--all"]);
    assert_eq!(all.stdout.lines().filter(|line| line.starts_with("job 5000_")).count(), 16);
    let told = test.run(&["job", "5000", "--json"]).json();
    assert_eq!(told["jobs"].as_array().map(Vec::len), Some(16));
    // A list of what was allocated that names no GPU says that there was none.
    test.run(&["job", "5000_3"]).says("GPUs 0");
}

#[test]
fn tables_fit_narrow_terminals_and_reach_programs_whole() {
    let long = "a-name-that-is-longer-than-any-column-would-be-on-a-terminal-of-eighty";
    let rows = [job("1", "OUT_OF_MEMORY", 60).with("JobName", long).with("ExitCode", "0:125")];
    let test = cluster("piped", &rows);
    test.run(&["jobs", "--all-users"]).ends(0).says(long);
    test.run(&["overview", "--all-users"]).ends(0).says(long);
    let narrow = cluster("narrow-names", &rows).env("COLUMNS", "60");
    let shown = narrow.run(&["jobs", "--all-users"]);
    shown.ends(0).says("OUT_OF_MEMORY");
    for args in [&["jobs"][..], &["overview"], &["stats"], &["reliability"]] {
        let shown = narrow.run(&[args, &["--all-users"]].concat());
        assert!(shown.stdout.lines().all(|line| line.chars().count() <= 60), "{}", shown.stdout);
    }
    let demo = Test::new("narrow-demo").env("COLUMNS", "60");
    for args in [&["overview"][..], &["stats"], &["reliability", "--all-users"], &["jobs"]] {
        let shown = demo.run(&[&["--demo"], args].concat());
        assert!(shown.stdout.lines().all(|line| line.chars().count() <= 60), "{}", shown.stdout);
    }
}

#[test]
fn the_place_of_every_loss_is_told_with_the_count() {
    // The name of job 2 holds the delimiter, and so may its comment: its row is line 3.
    let good = |id: &str| job(id, "COMPLETED", 60).with("Comment", "");
    let rows = [good("1"), good("2").with("JobName", "a|b").with("Comment", "c|d"), good("3")];
    let test = cluster("lost", &rows);
    let shown = test.run(&["overview", "--from", "rows.txt"]);
    shown.ends(0).says("2 runs of 1 workload");
    shown.says("1 record could not be read: rows.txt, line 3: ").says("--delimiter='@~@'");
    // With a delimiter that no text holds there are all three.
    let text =
        table(&[good("1"), good("2").with("JobName", "ab").with("Comment", "cd"), good("3")]);
    let text = text.replace('|', "@~@").replace("@~@ab@~@", "@~@a|b@~@");
    test.file("work/whole.txt", text.as_bytes());
    let shown = test.run(&["overview", "--from", "whole.txt"]);
    shown.ends(0).says("3 runs of 2 workloads");
    assert!(!shown.all().contains("could not be read"), "{}", shown.all());
}

#[test]
fn where_settings_are_looked_for_is_told() {
    let test = Test::new("looked-for");
    let shown = test.run(&["config", "show"]);
    shown.ends(0).says("/etc/jobwise/config.toml (not there)").says("energy.cpu_watts not set");
    let own = test.file("home/.config/jobwise/config.toml", b"[energy]\ncpu_watts = 7\n");
    let told = test.run(&["config", "show", "--json"]).ends(0).json();
    let expected = serde_json::json!({"path": own.display().to_string(), "read": true});
    assert_eq!(told["files"][1], expected);
}

#[test]
fn what_no_record_says_is_no_zero_in_an_overview() {
    // A file without AllocCPUS and AllocTRES beside one run that has both: 4 CPUs for an hour.
    let test = Test::new("no-cpus");
    let heading = "JobID|User|UID|JobName|State|Start|End|Elapsed|AllocCPUS|AllocTRES";
    let bare = "7|ada|1005|a|COMPLETED|1796000000|1796003600|01:00:00||";
    test.file("work/bare.txt", format!("{heading}\n{bare}\n").as_bytes());
    let told = test.run(&["overview", "--from", "bare.txt"]);
    told.ends(0).says("n/a core-hours").says("a n/a 1 0 n/a n/a");
    let json = test.run(&["overview", "--from", "bare.txt", "--json"]).json();
    for part in ["core_hours", "gpu_hours", "wasted_core_hours", "wasted_gpu_hours"] {
        assert!(json["total"][part].is_null() && json["rest"][part] == 0.0, "{json:#}");
    }
    let full = "8|ada|1005|b|COMPLETED|1796000000|1796003600|01:00:00|4|cpu=4,node=1";
    test.file("work/both.txt", format!("{heading}\n{bare}\n{full}\n").as_bytes());
    let json = test.run(&["overview", "--from", "both.txt", "--json"]).json();
    assert_eq!(json["total"]["core_hours"], 4.0);
    assert_eq!(json["total"]["gpu_hours"], 0.0);
    // Of nobody there is nothing, no window and no energy; and of no workload no advice.
    let told = test.run(&["stats", "--from", "both.txt", "-u", "bob"]);
    assert!(told.ends(0).stdout.starts_with("bob\nended"), "{}", told.stdout);
    told.says("no run in this window").says("no record in this window is of user bob");
    for command in ["overview", "patterns", "reliability", "sizing"] {
        test.run(&[command, "--from", "both.txt", "-p", "typo"]).says("is of partition typo");
    }
    let live = demo(&["stats", "-A", "typo"]);
    live.ends(0).says("no record in this window is of user ada and account typo");
    assert!(live.stderr.contains("these 90 days of the demo cluster are made up"));
    // What is piped in is read, as it is by `diagnose`.
    let named = test.run(&["stats", "--from", "both.txt"]).ends(0).stdout.clone();
    let test = test.under(&["/bin/sh", "-c", "exec \"$0\" \"$@\" < both.txt"]);
    assert_eq!(test.run(&["stats", "--from", "-"]).ends(0).stdout, named);
    test.run(&["sizing", "nosuch", "--from", "both.txt"])
        .says("no run of a workload nosuch ended in this window");
    // A number that was given is a name in the records.
    test.run(&["overview", "--from", "both.txt", "-u", "1005"]).ends(0).says("2026-11-30");
    let json = test.run(&["overview", "--from", "both.txt", "-u", "1005", "--json"]).json();
    assert_eq!(json["users"], serde_json::json!(["ada"]));
}
