//! What accounting says and what it means: every case that is known to be read wrong somewhere.
//!
//! Three lists stand behind these tests: cases in which another reader of `sacct` and a careful
//! person differ ("Case"), wrong answers that such a reader was seen to give ("Weakness"), and
//! reports of users and administrators about programs that read accounting, by their numbers
//! ("F"). Each has a test with the right value and the reason in a comment; here is which. A test
//! below sees to it that each of them is there and names its case.
//!
//! | case | what is read | test |
//! |---|---|---|
//! | Case 1 | 0.5 s of CPU time in half an hour | `accounting::a_run_that_used_nothing_is_a_hang` |
//! | Case 2 | memory that was allocated and not asked for | `accounting::memory_is_told_per_node` |
//! | Case 3 | memory of two nodes | `accounting::memory_is_told_per_node` |
//! | Case 4 | memory per CPU, memory without a unit | `accounting::memory_is_told_per_node` |
//! | Case 5 | what the extern step used | `accounting::the_peak_is_that_of_what_can_be_true` |
//! | Case 6 | CPU time of all steps | `accounting::cpu_time_is_that_of_all_work_over_what_was_held` |
//! | Case 7 | a step that outlives its job | `accounting::cpu_time_is_that_of_all_work_over_what_was_held` |
//! | Case 8 | every form of GPUs | `accounting::gpus_are_counted_in_every_form` |
//! | Case 9 | a record that was never closed | `accounting::a_record_that_was_never_closed_is_in_no_sum` |
//! | Case 10 | requeued, or another job of that number | `accounting::a_requeued_job_is_one_job_with_an_earlier_run` |
//! | Case 11 | a step that was killed for memory | `accounting::a_step_says_what_the_job_hides` |
//! | Case 12 | exit 0:53 | `accounting::an_exit_is_told_for_what_it_is` |
//! | Case 13 | a step that failed in a completed job | `accounting::a_step_says_what_the_job_hides` |
//! | Case 14 | exits of 126 and more | `accounting::an_exit_is_told_for_what_it_is` |
//! | Case 15 | delimiters in names | `sched::saved::text_of_users_moves_no_column` |
//! | Case 16 | parts of jobs | `accounting::every_form_of_an_id_is_that_part` |
//! | Case 17 | a peak of zero | `accounting::the_peak_is_that_of_what_can_be_true` |
//! | Case 18 | eight tasks on a node | `history::sizing::memory_is_what_all_tasks_of_a_node_use_together` |
//! | Case 19 | one busy core | `history::sizing::cores_that_are_busy_are_no_reason_for_more` |
//! | Case 20 | no time limit | `history::sizing::no_limit_is_given_one_and_not_a_larger_one` |
//! | Case 21 | deaths that later runs disprove | `history::sizing::what_later_runs_disprove_is_withdrawn` |
//! | Case 22 | energy with a unit | `accounting::energy_is_joules_or_nothing` |
//! | Case 23 | suspended time | `accounting::suspended_time_is_told_apart` |
//! | Case 24 | lists of nodes | `accounting::lists_of_nodes_are_expanded_and_never_invented` |
//!
//! | weakness | wrong answer | test |
//! |---|---|---|
//! | Weakness 1 | busy cores: ask for more | `history::sizing::cores_that_are_busy_are_no_reason_for_more` |
//! | Weakness 2 | eight tasks: ask for the memory of one | `history::findings::memory_of_all_tasks_counts` |
//! | Weakness 3 | a step's death is not seen | `accounting::a_step_says_what_the_job_hides` |
//! | Weakness 4 | 0:53 is a signal | `accounting::an_exit_is_told_for_what_it_is` |
//! | Weakness 5 | few causes are known | `suites::every_release_has_its_messages` |
//! | Weakness 6 | a report contradicts itself | `accounting::no_two_statements_of_a_record_contradict` |
//! | Weakness 7 | a caught error of a completed run | `accounting::a_caught_error_of_a_completed_run_is_none` |
//! | Weakness 8 | steps from before the window | `sched::slurm::jobs_that_had_begun_before_the_window_are_asked_for_whole` |
//! | Weakness 9 | no limit: raise it | `history::sizing::no_limit_is_given_one_and_not_a_larger_one` |
//! | Weakness 10 | deaths count for ever | `history::sizing::what_later_runs_disprove_is_withdrawn` |
//! | Weakness 11 | patterns and sizing disagree | `workloads::patterns_quote_sizing_and_never_contradict_it` |
//! | Weakness 12 | a peak of zero is a measurement | `accounting::the_peak_is_that_of_what_can_be_true` |
//! | Weakness 13 | ten CPU-seconds are progress | `history::findings::a_run_that_did_nothing_is_told_so_and_nothing_else_of_its_use` |
//! | Weakness 14 | GPUs that were busy for 360 % | `model::run::gpus_are_busy_for_a_share_of_all_their_time` |
//! | Weakness 15 | 2080 GPUs; GPUs of refused jobs | `accounting::gpus_are_counted_in_every_form` |
//! | Weakness 16 | energy that is lost | `accounting::energy_is_joules_or_nothing` |
//! | Weakness 17 | a separator in a name | `sched::saved::text_of_users_moves_no_column` |
//! | Weakness 18 | a line that begins with a digit | `sched::saved::text_of_users_moves_no_column` |
//! | Weakness 19 | a step that failed in a completed job | `accounting::a_step_says_what_the_job_hides` |
//! | Weakness 20 | advice to a job of no time | `history::findings::short_runs_are_not_told_that_they_asked_for_too_much` |
//! | Weakness 21 | `%a` of a job that is no array | `logs::locate::pattern::names_of_batch_logs_are_those_that_slurm_makes` |
//! | Weakness 22 | the script's own `-o` | `logs::locate::submit::options_of_the_script_are_not_options_of_the_job` |
//! | Weakness 23 | failures without a node | `history::reliability::failures_without_a_node_decide_nothing` |
//! | Weakness 24 | jobs that wait are "unterminated" | `accounting::jobs_that_wait_are_counted_and_explained` |
//! | Weakness 25 | preempted runs are nothing | `accounting::every_state_is_in_one_count` |
//! | Weakness 26 | a number that came round again | `sched::saved::numbers_that_come_round_again_are_other_jobs` |
//! | Weakness 27 | an unknown id vanishes | `accounting::an_unknown_id_is_told_beside_the_known_ones` |
//! | Weakness 28 | tasks are independent trials | `history::reliability::tasks_of_an_array_on_one_node_are_one_trial` |
//! | Weakness 29 | a cache knows no cluster | `processes::limits_are_remembered_for_a_day_and_their_age_is_told` |
//!

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::Value;

use crate::run::{Shown, Test, fixture};

/// A row of `sacct`: its columns by name.
#[derive(Clone)]
pub(crate) struct Row(BTreeMap<&'static str, String>);

/// When the jobs here start: 2026-11-30 00:53:20 UTC.
pub(crate) const START: u64 = 1_796_000_000;

/// A job that ran for so many seconds on one CPU of one node.
pub(crate) fn job(id: &str, state: &str, seconds: u64) -> Row {
    let texts = [
        ("JobID", id),
        ("State", state),
        ("ExitCode", "0:0"),
        ("User", "alice"),
        ("UID", "1001"),
        ("Account", "physics"),
        ("Cluster", "lab"),
        ("Partition", "batch"),
        ("Timelimit", "1-00:00:00"),
        ("NNodes", "1"),
        ("AllocCPUS", "1"),
        ("NodeList", "n1"),
        ("JobName", "work"),
    ];
    let row = Row(texts.map(|(name, text)| (name, text.to_owned())).into());
    row.with("AllocTRES", "cpu=1,node=1").from(START, seconds)
}

/// A step of it that ran as long.
pub(crate) fn step(id: &str, seconds: u64, cpu: &str) -> Row {
    let mut row = job(id, "COMPLETED", seconds).with("TotalCPU", cpu).with("NTasks", "1");
    for name in ["User", "UID", "Account", "Partition", "Timelimit", "Submit"] {
        row.0.remove(name);
    }
    row
}

impl Row {
    pub(crate) fn with(mut self, name: &'static str, text: &str) -> Self {
        self.0.insert(name, text.to_owned());
        self
    }

    /// Submitted a minute before its start.
    pub(crate) fn from(self, start: u64, seconds: u64) -> Self {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
        let elapsed = if days > 0 { format!("{days}-{clock}") } else { clock };
        self.with("Submit", &(start - 60).to_string())
            .with("Start", &start.to_string())
            .with("End", &(start + seconds).to_string())
            .with("Elapsed", &elapsed)
    }

    /// Never started.
    pub(crate) fn waiting(self) -> Self {
        self.with("Start", "Unknown")
            .with("End", "Unknown")
            .with("Elapsed", "00:00:00")
            .with("NodeList", "None assigned")
            .with("AllocTRES", "")
            .with("AllocCPUS", "0")
            .with("NNodes", "0")
    }
}

/// As `sacct -P` would print them.
pub(crate) fn table(rows: &[Row]) -> String {
    let names: BTreeSet<&str> = rows.iter().flat_map(|row| row.0.keys().copied()).collect();
    let mut text = names.iter().copied().collect::<Vec<_>>().join("|");
    for row in rows {
        let cells = names.iter().map(|name| row.0.get(name).map_or("", String::as_str));
        text.push('\n');
        text.push_str(&cells.collect::<Vec<_>>().join("|"));
    }
    text.push('\n');
    text
}

/// Prints the columns that it is asked for of the jobs that it is asked about.
const SACCT: &str = r#"case "$*" in
    *--helpformat*) say fields ;;
    *--version*) echo "slurm 26.05.5" ;;
    *--batch-script*) ;;
    *--format=*)
        format=${*##*--format=}; ids=; whole=
        case "$*" in *--jobs=*) ids=${*##*--jobs=} ;; esac
        case "$*" in *--allocations*) whole=1 ;; esac
        PATH=/usr/bin:/bin awk -F'|' -v wanted="${format%% *}" -v ids="${ids%% *}" -v whole="$whole" '
            function number(id) { sub(/[._+].*/, "", id); return id }
            NR == 1 {
                for (i = 1; i <= NF; i++) at[$i] = i
                n = split(wanted, names, ","); m = split(ids, list, ",")
                next
            }
            {
                id = $(at["JobID"]); asked = !m
                for (i = 1; i <= m; i++) if (number(list[i]) == number(id)) asked = 1
                if (!asked || whole && index(id, ".")) next
                line = ""
                for (i = 1; i <= n; i++)
                    line = line (i > 1 ? "@~@" : "") (names[i] in at ? $(at[names[i]]) : "")
                print line
            }' "$answers/rows" ;;
esac"#;

/// A cluster of 26.05 whose accounting holds these rows, as a file too.
pub(crate) fn cluster(name: &str, rows: &[Row]) -> Test {
    let test = Test::new(name);
    test.answer("fields", &fixture("slurm-26.05/sacct-helpformat.txt"));
    test.answer("rows", &table(rows));
    test.file("work/rows.txt", table(rows).as_bytes());
    test.client("sacct", SACCT);
    let unknown = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1";
    test.client("scontrol", unknown);
    test.client("squeue", unknown);
    test
}

/// The record of job 7.
pub(crate) fn record(name: &str, rows: &[Row]) -> Value {
    let told = cluster(name, rows).run(&["job", "7", "--json"]).ends(0).json();
    assert_eq!(told["jobs"].as_array().map(Vec::len), Some(1), "{told:#}");
    told["jobs"][0].clone()
}

pub(crate) fn gauge(record: &Value, name: &str) -> Value {
    let gauges = record["gauges"].as_array().expect("gauges");
    gauges.iter().find(|gauge| gauge["name"] == name).cloned().unwrap_or_default()
}

pub(crate) fn codes(record: &Value) -> Vec<&str> {
    let findings = record["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["code"].as_str()).collect()
}

/// What the file of these rows exports.
pub(crate) fn exported(name: &str, rows: &[Row]) -> Vec<Value> {
    let shown = cluster(name, rows).run(&["export", "--from", "rows.txt"]);
    lines(&shown)
}

pub(crate) fn lines(shown: &Shown) -> Vec<Value> {
    let lines = shown.ends(0).stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("a record")).collect()
}

#[track_caller]
pub(crate) fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap_or(f64::NAN);
    assert!((value - expected).abs() <= expected.abs() * 1e-3, "{value} is not {expected}");
}

const GIB: f64 = 1_073_741_824.0;

#[test]
fn a_run_that_used_nothing_is_a_hang() {
    // Case 1: two fields of TotalCPU are minutes and seconds: 0.539 s in 1815 s.
    let rows = [
        job("7", "TIMEOUT", 1815).with("Timelimit", "00:30:00"),
        step("7.batch", 1815, "00:00.539").with("State", "CANCELLED"),
    ];
    let told = record("case-1", &rows);
    assert_eq!(told["steps"][0]["cpu_time"], 0.539);
    assert_eq!(codes(&told), ["did-nothing"]);
    let shown = cluster("case-1-file", &rows).run(&["overview", "--from", "rows.txt", "--json"]);
    assert_eq!(shown.ends(0).json()["total"]["hung"], 1);
}

#[test]
fn memory_is_told_per_node() {
    let of = |name: &str, asked: &str, allocated: &str, cpus: &str, nodes: &str| {
        let row = job("7", "COMPLETED", 600).with("ReqMem", asked).with("AllocTRES", allocated);
        let row = row.with("AllocCPUS", cpus).with("NNodes", nodes);
        gauge(&record(name, &[row]), "memory")["of"].as_f64().map(|bytes| bytes / GIB)
    };
    // Case 2: `0n` is how 20.11 prints that none was asked for.
    assert_eq!(of("case-2", "0n", "mem=80G,node=1", "4", "1"), Some(80.0));
    // Case 3: AllocTRES is of the allocation, on both nodes.
    assert_eq!(of("case-3", "16G", "mem=16G,node=2", "4", "2"), Some(8.0));
    // Case 4: 2 GiB for each of 4 CPUs, half of them on each of 2 nodes; and 4000 MiB.
    assert_eq!(of("case-4", "2Gc", "", "4", "2"), Some(4.0));
    assert_eq!(of("case-4-bare", "4000", "", "4", "1"), Some(4000.0 / 1024.0));
}

#[test]
fn the_peak_is_that_of_what_can_be_true() {
    let used = |name: &str, seconds, batch: &str, external: &str| {
        let told = record(
            name,
            &[
                job("7", "COMPLETED", seconds).with("AllocTRES", "cpu=1,mem=50G,node=1"),
                step("7.batch", seconds, "00:09:00").with("MaxRSS", batch),
                step("7.extern", seconds, "00:00:00").with("MaxRSS", external),
            ],
        );
        gauge(&told, "memory")
    };
    // Case 5: 15.7 GiB in the extern step fit into 50, 2.8 TiB do not.
    assert_eq!(used("case-5", 600, "4108K", "16439052K")["used"], 16_439_052.0 * 1024.0);
    assert_eq!(used("case-5-not", 600, "4000K", "3000000000000K")["used"], 4_096_000.0);
    // Case 17, Weakness 12: the sampler had not run yet; no program uses no memory.
    let short = used("case-17", 1, "0", "0");
    assert!(short["used"].is_null() && short["share"].is_null(), "{short}");
    assert!(short["gathered_by"].as_str().is_some_and(|by| by.contains("JobAcctGatherType")));
}

#[test]
fn cpu_time_is_that_of_all_work_over_what_was_held() {
    // Case 6: batch 0.037 s and step 0 of 17253 s, on 16 CPUs for 1081 s: 99.8 %, and 99.75 % with
    // more digits. The largest step or the batch step alone are another number.
    let sixteen = |row: Row| row.with("AllocCPUS", "16").with("AllocTRES", "cpu=16,node=1");
    let told = record(
        "case-6",
        &[
            sixteen(job("7", "COMPLETED", 1081)),
            sixteen(step("7.batch", 1081, "00:00.037")),
            sixteen(step("7.extern", 1081, "00:00.001")),
            sixteen(step("7.0", 1080, "04:47:33")),
        ],
    );
    near(&gauge(&told, "cpu")["share"], 17_253.037 / 17_296.0);
    // Case 7: 44.686 s in 8 s of a step on 8 CPUs; the allocation was over after 5: 69.8 %.
    let eight = |row: Row| row.with("AllocCPUS", "8").with("AllocTRES", "cpu=8,node=1");
    let rows = [eight(job("7", "CANCELLED by 1001", 5)), eight(step("7.0", 8, "00:44.686"))];
    near(&gauge(&record("case-7", &rows), "cpu")["share"], 44.686 / 64.0);
}

#[test]
fn gpus_are_counted_in_every_form() {
    let of = |name: &str, allocated: &str, generic: &str| {
        let row = job("7", "COMPLETED", 3600).with("AllocTRES", allocated);
        let row = row.with("AllocGRES", generic);
        let test = cluster(name, std::slice::from_ref(&row));
        // Before 20.11 there was a column for generic resources.
        let fields = fixture("slurm-20.11/sacct-helpformat.txt") + " AllocGRES\n";
        test.answer("fields", &fields);
        let told = test.run(&["job", "7", "--json"]).ends(0).json();
        let gpus = gauge(&told["jobs"][0], "gpu")["of"].as_f64();
        let sums = test.run(&["overview", "--from", "rows.txt", "--json"]).ends(0).json();
        // An hour each.
        assert_eq!(sums["total"]["gpu_hours"].as_f64(), Some(gpus.unwrap_or(0.0)), "{name}");
        gpus
    };
    // Case 8, Weakness 15; F062, F063, F067, F068: typed and generic are the same devices; a model is no number; what
    // stands in brackets says which sockets, not how many.
    assert_eq!(of("case-8", "cpu=1,gres/gpu:a100=2,gres/gpu=2", ""), Some(2.0));
    assert_eq!(of("case-8-typed", "cpu=1,gres/gpu:a100=2,gres/gpu:v100=1", ""), Some(3.0));
    assert_eq!(of("case-8-tesla", "cpu=1", "gpu:tesla:4"), Some(4.0));
    assert_eq!(of("case-8-2080", "cpu=1", "gpu:2080ti"), Some(1.0));
    assert_eq!(of("case-8-sockets", "cpu=1", "gpu:4(S:0-1)"), Some(4.0));
    assert_eq!(of("case-8-both", "cpu=1,gres/gpu=2", "gpu:tesla:4"), Some(2.0));
    // A job that was refused held none of the 99 that it asked for.
    let refused = job("7", "FAILED", 0).waiting().with("ReqTRES", "cpu=1,gres/gpu=99,node=1");
    let refused = refused.with("End", &START.to_string());
    let test = cluster("refused-gpus", &[refused]);
    let told = test.run(&["job", "7", "--json"]).ends(0).json();
    assert_eq!(told["jobs"][0]["gauges"], serde_json::json!([]));
    let sums = test.run(&["overview", "--from", "rows.txt", "--json"]).ends(0).json();
    assert_eq!((&sums["total"]["runs"], &sums["never_started"]), (&0.into(), &1.into()));
    assert_eq!(sums["total"]["gpu_hours"], 0.0);
}

#[test]
fn a_record_that_was_never_closed_is_in_no_sum() {
    // Case 9: RUNNING for 62 days, in the queue or not. F091: whether it is there says no more than
    // that.
    let open =
        job("7", "RUNNING", 62 * 86_400).with("End", "Unknown").with("Timelimit", "90-00:00:00");
    let rows = [open, job("8", "COMPLETED", 3600)];
    let window = ["-S", "2026-11-01", "-E", "2026-12-31", "--json"];
    for (name, queue, (stale, running)) in
        [("case-9", "echo '9 alice'", (1, 0)), ("case-9-live", "echo '7 alice'", (0, 1))]
    {
        let test = cluster(name, &rows);
        test.client("squeue", queue);
        let told = test.run(&[&["overview"], &window[..]].concat()).ends(0).json();
        assert_eq!((&told["stale"], &told["total"]["running"]), (&stale.into(), &running.into()));
        assert_eq!(
            (&told["total"]["runs"], &told["total"]["core_hours"]),
            (&1.into(), &1.0.into())
        );
    }
}

#[test]
fn a_requeued_job_is_one_job_with_an_earlier_run() {
    let later = START + 4000;
    let runs = |owner: &str, name: &str, start: u64| {
        [
            job("7", "NODE_FAIL", 3600),
            step("7.batch", 3600, "00:50:00"),
            job("7", "COMPLETED", 1800).from(start, 1800).with("UID", owner).with("JobName", name),
            step("7.batch", 1800, "00:20:00").with("Start", &start.to_string()),
        ]
    };
    // Case 10: one job, one earlier run, the steps of the second alone.
    let told = record("case-10", &runs("1001", "work", later));
    assert_eq!(
        (&told["state"], told["earlier"].as_array().map(Vec::len)),
        (&"COMPLETED".into(), Some(1))
    );
    assert_eq!(
        (told["steps"].as_array().map(Vec::len), &told["steps"][0]["cpu_time"]),
        (Some(1), &1200.into())
    );
    // Another owner, or years apart: the number came round again.
    for (name, rows) in [
        ("case-10-owner", runs("1002", "work", later)),
        ("case-10-years", runs("1001", "other", START + 200_000_000)),
    ] {
        assert_eq!(record(name, &rows)["earlier"], serde_json::json!([]), "{name}");
    }
}

#[test]
fn a_step_says_what_the_job_hides() {
    // Case 11, Weakness 3: FAILED 1:0 by the script, but the kernel killed step 0 for memory.
    let told = record(
        "case-11",
        &[
            job("7", "FAILED", 60).with("ExitCode", "1:0").with("DerivedExitCode", "0:125"),
            step("7.batch", 60, "00:00:10").with("State", "FAILED").with("ExitCode", "1:0"),
            step("7.0", 50, "00:00:40").with("State", "OUT_OF_MEMORY").with("ExitCode", "0:125"),
        ],
    );
    assert_eq!(told["cause"]["family"], "host_oom");
    // Case 13, Weakness 19: a step failed, or was killed, inside of a job that completed.
    for (name, exit) in [("case-13", "1:0"), ("case-13-killed", "0:9")] {
        let rows = [
            job("7", "COMPLETED", 60).with("DerivedExitCode", exit),
            step("7.batch", 60, "00:00:10"),
            step("7.0", 50, "00:00:40").with("State", "FAILED").with("ExitCode", exit),
        ];
        let told = record(name, &rows);
        assert_eq!(codes(&told), ["failed-step"], "{name}");
        assert_eq!(told["findings"][0]["weight"], "warning", "{name}");
    }
}

/// What job 7 is diagnosed with when it ends so, with this log.
fn cause(name: &str, exit: &str, seconds: u64, log: Option<&str>) -> (Value, String) {
    let test = cluster(name, &[]);
    let owner = fs::metadata(&test.root).expect("there").uid().to_string();
    let work = test.path("work").display().to_string();
    let row = job("7", "FAILED", seconds).with("ExitCode", exit).with("UID", &owner);
    let row = row.with("WorkDir", &work).with("StdOut", "out.log").with("StdErr", "out.log");
    test.answer("rows", &table(&[row]));
    if let Some(log) = log {
        test.file("work/out.log", log.as_bytes());
    }
    let told = test.run(&["job", "7", "--json"]).ends(0).json();
    let text = test.run(&["job", "7"]).ends(0).stdout.clone();
    (told["jobs"][0]["cause"]["family"].clone(), text)
}

#[test]
fn an_exit_is_told_for_what_it_is() {
    // Case 12, Weakness 4: Slurm's own word for a log or directory that could not be opened.
    let (family, text) = cause("case-12", "0:53", 0, None);
    assert_eq!(family, "log_path_unwritable");
    assert!(!text.contains("SIGRT") && !text.contains("killed by signal 53"), "{text}");
    // Case 14: 128 and a signal, or a code of the program's own: the log decides. 26.05 prints
    // codes whole.
    let crash = "step 12\n./run.sh: line 3:  4711 Segmentation fault      (core dumped) ./solve\n";
    for (name, exit) in [("case-14-139", "139:0"), ("case-14-11", "0:11")] {
        let (family, text) = cause(name, exit, 60, Some(crash));
        assert_eq!(family, "segfault", "{name}: {text}");
    }
    let abort = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  mesh has no cells\n./run.sh: line 3:  4711 Aborted                 (core dumped) ./solve\n";
    let (family, text) = cause("case-14-134", "134:0", 60, Some(abort));
    // The note on crashes is of aborts too; which of them it was, the record says.
    assert_eq!(family, "segfault", "{text}");
    assert!(text.contains("killed by SIGABRT") && !text.contains("SIGSEGV"), "{text}");
    // 126: there, but not to be executed; 127: not there.
    let denied = "/var/spool/slurmd/job00007/slurm_script: line 3: ./solve: Permission denied\n";
    let (family, text) = cause("case-14-126", "126:0", 1, Some(denied));
    assert_eq!(family, "permission_denied", "{text}");
    let (_, text) = cause("case-14-bare", "126:0", 1, None);
    assert!(text.contains("126"), "{text}");
}

#[test]
fn every_form_of_an_id_is_that_part() {
    // Case 16: a task, a component, tasks that wait in one record.
    let rows = [
        job("76_3", "COMPLETED", 60),
        step("76_3.batch", 60, "00:00:30"),
        job("78+0", "COMPLETED", 60),
        job("78+1", "COMPLETED", 60),
        step("78+1.0", 60, "00:00:30"),
        job("49046820_[1-20%10]", "PENDING", 0).waiting(),
    ];
    let told = exported("case-16", &rows);
    let ids: Vec<&str> = told.iter().filter_map(|run| run["id"].as_str()).collect();
    assert_eq!(ids, ["76_3", "78+0", "78+1", "49046820_[1-20%10]"]);
    // The steps are of their own part.
    let times: Vec<Option<u64>> = told.iter().map(|run| run["cpu_milliseconds"].as_u64()).collect();
    assert_eq!(times, [Some(30_000), None, Some(30_000), None]);
}

#[test]
fn energy_is_joules_or_nothing() {
    // Case 22, Weakness 16: ConsumedEnergy has decimal units; the raw field says the same exactly;
    // zero is how a site without a meter prints. Steps add up where the job itself tells nothing.
    let told = |name: &str, rows: &[Row]| exported(name, rows)[0]["joules"].clone();
    let unit = job("7", "COMPLETED", 60).with("ConsumedEnergy", "12.34K");
    assert_eq!(told("case-22", std::slice::from_ref(&unit)), 12_340);
    let both = unit.with("ConsumedEnergyRaw", "12343");
    assert_eq!(told("case-22-raw", &[both]), 12_343);
    for (name, nothing) in [("case-22-zero", "0"), ("case-22-none", "18446744073709551614")] {
        let row = job("7", "COMPLETED", 60).with("ConsumedEnergyRaw", nothing);
        assert_eq!(told(name, &[row]), Value::Null, "{name}");
    }
    let steps = [
        job("7", "COMPLETED", 60).with("ConsumedEnergyRaw", ""),
        step("7.0", 30, "00:00:10").with("ConsumedEnergyRaw", "500"),
        step("7.1", 30, "00:00:10").with("ConsumedEnergyRaw", "700").with("Start", "1796000030"),
    ];
    assert_eq!(told("case-22-steps", &steps), 1200);
}

#[test]
fn suspended_time_is_told_apart() {
    // Case 23: 8 s from start to end, of which it ran for 5.
    let row = job("7", "COMPLETED", 8).with("Elapsed", "00:00:05").with("Suspended", "00:00:03");
    let told = record("case-23", std::slice::from_ref(&row));
    assert_eq!((&told["elapsed"], &told["suspended"]), (&5.into(), &3.into()));
    let run = &exported("case-23-file", &[row])[0];
    assert_eq!((&run["elapsed_seconds"], &run["suspended_seconds"]), (&5.into(), &3.into()));
    let span = run["ended"].as_u64().zip(run["started"].as_u64()).map(|(end, start)| end - start);
    assert_eq!(span, Some(8));
}

#[test]
fn lists_of_nodes_are_expanded_and_never_invented() {
    // Case 24: two brackets are four hosts (`scontrol show hostnames` of 22.05); a text behind the
    // bracket (23.11); a list that Slurm refuses names no host.
    let lists = ["unit[0-1]rack[0-1]", "node[0001-0002]-int", "n[3-1]", "foo-m11-16"];
    let ran = |(list, id): (&str, usize)| {
        let start = START + 10_000 * id as u64;
        job(&id.to_string(), "COMPLETED", 60).from(start, 60).with("NodeList", list)
    };
    let rows: Vec<Row> = lists.iter().copied().cycle().take(40).zip(1..).map(ran).collect();
    let test = cluster("case-24", &rows);
    let told = test.run(&["reliability", "--from", "rows.txt", "--json"]).ends(0).json();
    let nodes: BTreeSet<&str> = told["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|row| row["node"].as_str())
        .collect();
    let expected = [
        "foo-m11-16",
        "node0001-int",
        "node0002-int",
        "unit0rack0",
        "unit0rack1",
        "unit1rack0",
        "unit1rack1",
    ];
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), expected);
    // The list itself is kept as it is.
    let kept = lines(&test.run(&["export", "--from", "rows.txt"]));
    assert!(kept.iter().any(|run| run["node_list"] == "n[3-1]"));
}

#[test]
fn a_caught_error_of_a_completed_run_is_none() {
    // Weakness 7: words of a log that the run got over.
    let test = cluster("weakness-7", &[]);
    let owner = fs::metadata(&test.root).expect("there").uid().to_string();
    let work = test.path("work").display().to_string();
    let row = job("7", "COMPLETED", 600).with("UID", &owner).with("WorkDir", &work);
    let row = row.with("StdOut", "out.log").with("StdErr", "out.log");
    test.answer("rows", &table(&[row]));
    let log = "epoch 1\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB; retrying with a smaller batch\nImportError: no module named apex, falling back\nepoch 2\nepoch 3\ndone\n";
    test.file("work/out.log", log.as_bytes());
    let told = test.run(&["job", "7", "--json"]).ends(0).json();
    assert!(told["jobs"][0]["cause"].is_null(), "{told:#}");
    let shown = test.run(&["diagnose", "7"]);
    shown.ends(0).says("completed; nothing found wrong in its record and out.log (169B read)");
}

#[test]
fn jobs_that_wait_are_counted_and_explained() {
    // Weakness 24: three records are of 23 jobs, and none of them is "unterminated".
    let waits = |id: &str, reason: &str| {
        job(id, "PENDING", 0).waiting().with("Reason", reason).with("UID", "1002")
    };
    let rows = [
        waits("7", "AssocGrpGRES"),
        waits("8_[0-19]", "Priority"),
        waits("9+0", "Resources"),
        waits("9+1", "Resources"),
    ];
    let test = cluster("weakness-24", &rows);
    let told = test.run(&["overview", "--from", "rows.txt", "--json"]).ends(0).json();
    assert_eq!((&told["waiting"], &told["total"]["runs"]), (&23.into(), &0.into()));
    test.run(&["overview", "--from", "rows.txt"]).ends(0).says("23 jobs waiting");
    let shown = test.run(&["job", "7"]);
    shown.ends(0).says("AssocGrpGRES");
    assert!(!shown.all().contains("sstat"), "{}", shown.all());
}

#[test]
fn every_state_is_in_one_count() {
    // Weakness 25; F059, F060, F089, F090, F092, F093, F094, F095, F096, F097, F098, F099, F132: every
    // word of `man sacct` and its code, cut words, and one of a later Slurm.
    let states = [
        ("completed", &["COMPLETED", "CD"][..]),
        (
            "failed",
            &[
                "FAILED",
                "F",
                "TIMEOUT",
                "TO",
                "NODE_FAIL",
                "NF",
                "BOOT_FAIL",
                "BF",
                "DEADLINE",
                "DL",
                "OUT_OF_MEMORY",
                "OOM",
                "OUT_OF_ME+",
            ],
        ),
        ("cancelled", &["CANCELLED by 123", "CANCELLED+", "CA"]),
        ("preempted", &["PREEMPTED", "PR", "REQUEUED"]),
        ("other", &["REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "HYPERSPACE"]),
    ];
    let all = states.iter().flat_map(|(_, words)| words.iter());
    let rows: Vec<Row> =
        all.zip(1..).map(|(state, id)| job(&id.to_string(), state, 3600)).collect();
    let test = cluster("weakness-25", &rows);
    let told = test.run(&["overview", "--from", "rows.txt", "--json"]).ends(0).json();
    for (count, words) in states {
        assert_eq!(told["total"][count].as_u64(), Some(words.len() as u64), "{count}");
    }
    assert_eq!(told["total"]["runs"], rows.len());
    let shown = test.run(&["overview", "--from", "rows.txt"]);
    shown.ends(0).says(
        // 13 of 15 are 86.7 %.
        "2 completed, 13 failed, 3 cancelled, 3 preempted or requeued, 4 otherwise; failure rate \
         87 % of those that failed or completed",
    );
}

#[test]
fn an_unknown_id_is_told_beside_the_known_ones() {
    // Weakness 27: it vanished, and the exit code was that of the known one.
    let test = cluster("weakness-27", &[job("7", "COMPLETED", 60)]);
    let shown = test.run(&["job", "7", "999"]);
    shown.ends(1).says("job 7");
    assert!(shown.stderr.contains("999: no job 999"), "{}", shown.all());
    let told = test.run(&["job", "7", "999", "--json"]).ends(1).json();
    assert_eq!((&told["jobs"][0]["id"], &told["failures"][0]["id"]), (&"7".into(), &"999".into()));
    test.run(&["job", "999"]).ends(1);
    let shown = test.run(&["diagnose", "7", "999"]);
    assert!(shown.ends(1).stderr.contains("999: no job 999"), "{}", shown.all());
}

/// Findings of which two cannot hold of one run.
const CONTRADICTIONS: [(&str, &[&str]); 7] = [
    (
        "did-nothing",
        &[
            "cpu-little-used",
            "cpu-time-above-all",
            "gpu-perhaps-idle",
            "kernel-time",
            "memory-left-over",
            "time-left-over",
        ],
    ),
    ("gpu-idle", &["gpu-little-used", "gpu-perhaps-idle"]),
    ("gpu-little-used", &["gpu-perhaps-idle"]),
    ("memory-above-limit", &["memory-left-over"]),
    (
        "step-out-of-memory",
        &["memory-left-over", "memory-above-limit", "failed-step", "page-faults"],
    ),
    ("cpu-time-above-all", &["cpu-little-used"]),
    ("cancelled-by-another", &["failed-step", "time-left-over", "memory-left-over"]),
];

/// What a record is told to be: no finding speaks against another, its state or its cause.
#[track_caller]
fn agrees(told: &Value, diagnosed: Option<&str>) {
    let found = codes(told);
    let about = |text: &str| format!("{}: {text}: {found:?}", told["id"]);
    for (one, others) in CONTRADICTIONS {
        let both = found.contains(&one) && others.iter().any(|other| found.contains(other));
        assert!(!both, "{}", about(one));
    }
    let state = told["state"].as_str().expect("a state");
    let cause = told["cause"]["family"].as_str();
    assert_eq!(cause, diagnosed, "{}", about("the cause of diagnose is another"));
    // What a cause explains is not told in other words, and nobody who ran out has too much.
    let use_of =
        ["did-nothing", "cpu-little-used", "gpu-idle", "gpu-little-used", "gpu-perhaps-idle"];
    if cause.is_some_and(|cause| !matches!(cause, "time_limit" | "hang")) {
        assert!(!found.iter().any(|code| use_of.contains(code)), "{}", about("a cause is known"));
    }
    if state.starts_with("OUT_OF_ME") || cause == Some("host_oom") {
        assert!(
            !found.contains(&"memory-left-over") && !found.contains(&"step-out-of-memory"),
            "{}",
            about(state)
        );
    }
    if state != "COMPLETED" {
        let well = ["failed-step", "time-left-over", "memory-left-over"];
        assert!(!found.iter().any(|code| well.contains(code)), "{}", about(state));
    }
    // Each rests on numbers, and says what can be done.
    for finding in told["findings"].as_array().expect("findings") {
        let figures = finding["figures"].as_array().expect("figures");
        assert!(!figures.is_empty() && figures.iter().all(|figure| figure["value"].is_number()));
        assert!(finding["action"].as_str().is_some_and(|action| !action.is_empty()));
    }
}

#[test]
fn no_two_statements_of_a_record_contradict() {
    // Weakness 6: over the demo cluster and what the oldest and the newest release recorded of one cluster.
    let test = Test::new("agreement");
    let mut compared = 0;
    for version in ["20.11", "26.05"] {
        let path = format!("{}/recordings/slurm-{version}.json", crate::run::FIXTURES);
        let text = fs::read_to_string(&path).expect("a recording");
        let recording: Value = serde_json::from_str(&text).expect("JSON");
        let asked = |command: &Value| {
            let words = command["argv"].as_array()?.iter();
            words
                .filter_map(Value::as_str)
                .find_map(|word| word.strip_prefix("--jobs="))
                .map(str::to_owned)
        };
        let commands = recording["commands"].as_array().expect("commands");
        let ids: BTreeSet<String> = commands.iter().filter_map(asked).collect();
        compared += agreement(&test, &["--replay", &path], ids.iter().map(String::as_str));
    }
    let listed = test.run(&["--demo", "jobs", "--all-users", "-n", "0", "--json"]).ends(0).json();
    let ids = listed["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str());
    compared += agreement(&test, &["--demo"], ids);
    assert!(compared > 150, "{compared}");
}

/// Compares the records of jobs with their diagnoses; says how many there are.
fn agreement<'i>(test: &Test, from: &[&str], ids: impl Iterator<Item = &'i str>) -> usize {
    let mut compared = 0;
    let ids: Vec<&str> = ids.collect();
    let all = [from, &["diagnose", "--json"], &ids[..]].concat();
    let diagnoses = test.run(&all).json();
    for id in ids {
        let records = test.run(&[from, &["job", id, "--json"][..]].concat()).json();
        let Some(records) = records["jobs"].as_array() else { continue };
        // The logs of several tasks are not read for their records.
        let of_one = records.len() == 1;
        for told in records {
            let of = |diagnosis: &&Value| diagnosis["job"]["id"] == told["id"];
            let diagnoses = diagnoses["diagnoses"].as_array().expect("diagnoses");
            let diagnosis = diagnoses.iter().find(of).expect("a diagnosis");
            let is_cause = diagnosis["verdict"]["outcome"] == "cause";
            let cause = diagnosis["verdict"]["causes"][0]["family"].as_str().filter(|_| is_cause);
            agrees(told, if of_one { cause } else { told["cause"]["family"].as_str() });
            compared += 1;
        }
    }
    compared
}

/// Where a test of the tables may stand.
fn places(path: &str) -> Vec<String> {
    let path = path.replace("::", "/");
    let places = ["tests/it/{}.rs", "src/{}.rs", "src/{}/tests.rs", "src/{}/mod.rs"];
    let root = env!("CARGO_MANIFEST_DIR");
    places.iter().map(|place| format!("{root}/{}", place.replace("{}", &path))).collect()
}

/// The text of a test, with the comment above it.
fn text_of(path: &str, name: &str) -> Option<String> {
    let texts = places(path).into_iter().filter_map(|place| fs::read_to_string(place).ok());
    texts.into_iter().find_map(|text| {
        let at = text.find(&format!("fn {name}("))?;
        let before = text[..at].rfind("\n\n").unwrap_or(0);
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = text[at..].find(&format!("\n{}}}\n", &text[line..at]));
        Some(text[before..at + end?].to_owned())
    })
}

/// Whether a text names a case: `Case 1` is not in `Case 12`.
fn names(text: &str, case: &str) -> bool {
    let text = text.to_lowercase();
    let case = case.to_lowercase();
    text.match_indices(&case)
        .any(|(at, _)| !text[at + case.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

#[test]
fn every_case_has_its_test() {
    let mut found = BTreeSet::new();
    for file in ["accounting", "field_reports"] {
        let text = fs::read_to_string(&places(file)[0]).expect("a file of tests");
        for row in text.lines().filter_map(|line| line.strip_prefix("//! | ")) {
            let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
            let Some(test) =
                cells.last().and_then(|cell| cell.strip_prefix('`')?.strip_suffix('`'))
            else {
                continue;
            };
            let (path, name) = test.rsplit_once("::").expect("a path");
            let body = text_of(path, name).unwrap_or_else(|| panic!("no test {test}"));
            for case in cells[0].split(", ") {
                assert!(names(&body, case), "{test} does not name {case}");
                found.insert(case.to_owned());
            }
        }
    }
    let all =
        |kind: &str, count: usize| (1..=count).map(|n| format!("{kind} {n}")).collect::<Vec<_>>();
    for case in all("Case", 24).into_iter().chain(all("Weakness", 29)) {
        assert!(found.contains(&case), "{case}");
    }
    assert!(found.iter().filter(|case| case.starts_with('F')).count() > 120);
}
