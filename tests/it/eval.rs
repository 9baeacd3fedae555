//! `jobwise eval`: exit codes, the lines it writes, and that it measures what `diagnose` answers.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use jobwise::eval::{self, Answered};
use serde_json::Value;

/// A kill that Slurm 22.05 logged, a success, and a failure of which nothing is known.
const CASES: [&str; 3] = [
    r##"{"id": "kill", "family": "host_oom", "stage": "run", "difficulty": "easy",
        "sacct": {"JobID": "67", "JobName": "oom", "State": "OUT_OF_MEMORY", "ExitCode": "0:125",
        "ReqMem": "100M", "MaxRSS": "98M", "Elapsed": "00:00:02", "Timelimit": "00:10:00",
        "NNodes": 1, "NCPUS": 1, "Partition": "batch", "NodeList": "c04", "Reason": "None",
        "AllocTRES": "billing=1,cpu=1,mem=100M,node=1"},
        "script": "#!/bin/bash\n#SBATCH --mem=100M\npython big.py\n", "log_out": "loading\n",
        "log_err": "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=67.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.\n",
        "root_cause_line": "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=67.batch.",
        "root_cause_in": "log_err", "source": "a"}"##,
    r#"{"id": "fine", "family": "none", "sacct": {"JobID": "2", "State": "COMPLETED",
        "ExitCode": "0:0", "NodeList": "c01", "Elapsed": "00:01:00"}, "log_out": "Killed? no, done",
        "log_err": "", "source": "b"}"#,
    r#"{"id": "mute", "family": "application_error", "also": ["unknown"], "sacct": {"JobID": "3",
        "State": "FAILED", "ExitCode": "1:0", "NodeList": "c01", "Elapsed": "00:01:00"},
        "log_out": "begun", "log_err": "", "source": "c"}"#,
];

/// A folder of its own for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("jobwise-eval-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn cases(&self, more: &str) -> PathBuf {
        let mut lines: Vec<String> =
            CASES.iter().map(|case| case.replace("\n        ", " ")).collect();
        lines.push(more.to_owned());
        let path = self.0.join("cases.jsonl");
        fs::write(&path, lines.join("\n")).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays costs the test nothing.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn eval(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jobwise"))
        .arg("eval")
        .args(arguments)
        .env("JOBWISE_HOME", "/nonexistent")
        .output()
        .expect("jobwise runs")
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a path of ASCII")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one document")
}

#[test]
fn a_case_is_measured_and_leaves_a_line() {
    let folder = Folder::new("lines");
    let cases = folder.cases("");
    let results = folder.0.join("results.jsonl");
    let wanted = ["--min-accuracy", "1", "--min-recall-at-1", "1", "--max-false-alarms", "0"];
    let arguments = [&[path(&cases), "--json", "--results", path(&results)], &wanted[..]].concat();
    let output = eval(&arguments);
    let found = json(&output);
    assert_eq!(output.status.code(), Some(0), "{found:#}");
    assert_eq!(found["schema"], "jobwise/eval/1");
    assert_eq!((&found["accuracy"]["right"], &found["accuracy"]["cases"]), (&3.into(), &3.into()));
    let lines = fs::read_to_string(&results).expect("written");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let told: Vec<String> =
        lines.iter().map(|line| format!("{} {}", line["id"], line["got"])).collect();
    assert_eq!(told, [r#""kill" "host_oom""#, r#""fine" "none""#, r#""mute" "unknown""#]);
    assert_eq!((&lines[0]["doc_rank"], &lines[0]["root_line_hit"]), (&1.into(), &true.into()));
    assert!(lines[0]["confidence"].is_f64() && lines[2]["confidence"].is_null());
    assert!(lines[1]["root_line_hit"].is_null(), "a success has no such line");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/eval/cases.jsonl");
    let with = |threads: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobwise"));
        command.args(["eval", cases, "--json", "--calibrate", "--baseline"]);
        command.env("RAYON_NUM_THREADS", threads).env("JOBWISE_HOME", "/nonexistent");
        command.output().expect("jobwise runs").stdout
    };
    let alone = with("1");
    assert!(!alone.is_empty() && alone == with("5"));
}

#[test]
fn a_line_that_is_no_case_is_told_with_its_place() {
    let folder = Folder::new("bad");
    let cases = folder.cases("{\"id\": \"half");
    let output = eval(&[path(&cases), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = json(&output);
    assert_eq!(found["accuracy"]["cases"], 3);
    let failure = found["failures"][0].as_str().expect("a failure");
    assert!(failure.starts_with(&format!("{}:4: ", path(&cases))), "{failure}");
    // A case that cannot be diagnosed stands among the answers, wrong, and is told too.
    let cases =
        folder.cases(r#"{"id": "gone", "family": "none", "recording": "absent.json", "job": "1"}"#);
    let output = eval(&[path(&cases), "--json"]);
    let found = json(&output);
    assert_eq!((output.status.code(), &found["accuracy"]["cases"]), (Some(1), &4.into()));
    assert_eq!(found["accuracy"]["right"], 3);
    assert!(found["failures"][0].as_str().is_some_and(|text| text.contains("absent.json")));
}

#[test]
fn a_missed_threshold_is_exit_1_and_nothing_is_no_success() {
    let folder = Folder::new("thresholds");
    let wrong = r#"{"id": "wrong", "family": "segfault", "source": "d", "log_out": "nothing"}"#;
    let cases = folder.cases(wrong);
    assert_eq!(eval(&[path(&cases), "--min-accuracy", "0.75"]).status.code(), Some(0));
    let output = eval(&[path(&cases), "--min-accuracy", "0.76"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("accuracy is 0.750, less than 0.76"), "{text}");
    assert_eq!(eval(&[path(&cases), "--min-accuracy", "75"]).status.code(), Some(64));

    let empty = folder.0.join("empty.jsonl");
    fs::write(&empty, "").expect("written");
    let output = eval(&[path(&empty), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(json(&output)["accuracy"]["share"].is_null(), "no share of nothing");
    assert_ne!(eval(&["/nonexistent/cases.jsonl"]).status.code(), Some(0));
    // A file of other things is bad input, not a measurement that went wrong.
    fs::write(&empty, "no case\n{\"id\": 3}\n").expect("written");
    let output = eval(&[path(&empty), "--json"]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(json(&output)["failures"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_splits_share_the_cases_out() {
    let folder = Folder::new("splits");
    let cases = folder.cases("");
    let count = |split: &str| {
        json(&eval(&[path(&cases), "--json", "--split", split]))["accuracy"]["cases"].clone()
    };
    // FNV-1a of "a", "b" and "c" is af63dc4c8601ec8c, af63df4c8601f1a5 and af63de4c8601eff2: modulo
    // 3 (as the sum of the bytes, since 256 is 1 modulo 3) 1, 1 and 0.
    assert_eq!((count("open"), count("blind"), count("all")), (2.into(), 1.into(), 3.into()));
}

#[test]
fn a_recording_is_answered_as_diagnose_answers_it() {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = Folder::new("recording");
    let results = folder.0.join("results.jsonl");
    let cases = format!("{root}/eval/cases.jsonl");
    let found = json(&eval(&[&cases, "--json", "--results", path(&results)]));
    assert_eq!(found["failures"], Value::Array(Vec::new()));
    let written = fs::read_to_string(&cases).expect("the cases");
    let lines = fs::read_to_string(&results).expect("written");
    for (case, line) in written.lines().zip(lines.lines()).step_by(9) {
        let case: Value = serde_json::from_str(case).expect("a case");
        let line: Value = serde_json::from_str(line).expect("a line");
        let recording = case["recording"].as_str().expect("a recording");
        let output = Command::new(env!("CARGO_BIN_EXE_jobwise"))
            .args(["diagnose", "--json", "--replay", &format!("{root}/eval/{recording}")])
            .arg(case["job"].as_str().expect("a job"))
            .env("JOBWISE_HOME", "/nonexistent")
            .output()
            .expect("jobwise runs");
        let verdict = &json(&output)["diagnoses"][0]["verdict"];
        let expected = match verdict["outcome"].as_str() {
            Some("cause") => verdict["causes"][0]["family"].clone(),
            Some("healthy") => "none".into(),
            Some("pending") if verdict["causes"][0].is_object() => {
                verdict["causes"][0]["family"].clone()
            }
            other => other.into(),
        };
        assert_eq!(line["got"], expected, "{case}");
    }
}

#[test]
fn each_family_can_be_taken_away_in_turn() {
    let folder = Folder::new("left-out");
    let path = folder.cases("");
    let path = path.to_str().expect("a path of ASCII");
    let output = eval(&[path, "--leave-one-out", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let parts = report["left_out"].as_array().expect("parts");
    let names: Vec<&str> = parts.iter().filter_map(|part| part["family"].as_str()).collect();
    // Of the labels `none` has no rule to take away.
    assert_eq!(names, ["application_error", "host_oom"]);
    for part in parts {
        assert_eq!(part["cases"], 1, "{part}");
        assert_eq!(part["unknown"], 1, "nothing else explains it: {part}");
    }
    // With its rule the kill is known, as ever.
    assert_eq!(report["accuracy"]["right"], 3);
    let text = eval(&[path, "--leave-one-out"]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("each in turn"), "{text}");
    assert_eq!(eval(&["--suite", "cascades", "--leave-one-out"]).status.code(), Some(64));
}

/// The confidences that answers state are the shares that were right on cases that nobody who wrote
/// a rule had seen, as their first run went.
#[test]
fn confidences_are_those_of_first_runs() {
    let runs = include_str!("../../eval/first-runs.jsonl");
    let text = |run: &Value, key: &str| run[key].as_str().unwrap_or_default().to_owned();
    let runs: Vec<Answered> = runs
        .lines()
        .map(|line| {
            let run: Value = serde_json::from_str(line).expect("JSON");
            let also = run["also"].as_array().expect("a list").iter();
            Answered {
                id: text(&run, "id"),
                source: text(&run, "source"),
                expected: text(&run, "expected"),
                got: text(&run, "got"),
                also: also.map(|label| label.as_str().expect("a label").to_owned()).collect(),
                first: run["first"].as_str().map(str::to_owned),
                score: run["score"].as_f64(),
                ..Answered::default()
            }
        })
        .collect();
    let table = eval::table(&runs);
    let inside = include_str!("../../src/classify/calibration.rs");
    for row in &table.rows {
        let bin = format!("Bin {{ from: {:?}, right: {}, of: {} }}", row.from, row.right, row.of);
        assert!(inside.contains(&bin), "the program lacks {bin}");
    }
    let error = table.cross_validated_ece.expect("measured");
    assert!(error <= 0.05, "cross-validated expected calibration error: {error}");
}
