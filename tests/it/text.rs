//! `jobwise diagnose --text`: what a submission command printed, or a piece of a log, is enough.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn diagnose(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_jobwise"))
        .arg("diagnose")
        .args(arguments)
        .env("JOBWISE_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("jobwise runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that does not read its input may be gone already.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_refusal_is_named_with_the_option_to_change() {
    // What Slurm 22.05 printed for `sbatch --qos=strict -t 2:00:00`.
    let text = "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n";
    let output = diagnose(&["--text", "-", "--json"], text.as_bytes());
    assert_eq!(output.status.code(), Some(0));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let diagnosis = &answer["diagnoses"][0];
    assert_eq!(diagnosis["verdict"]["causes"][0]["family"], "submit_time_limit");
    assert_eq!(diagnosis["verdict"]["causes"][0]["evidence"][0]["place"]["line"], 1);
    let steps = diagnosis["fix"]["steps"][0].as_str().expect("a step");
    assert!(steps.contains("--time"), "{steps}");

    let given = diagnose(&["--text", "sbatch: error: Invalid --time specification"], b"");
    let told = String::from_utf8(given.stdout).expect("text");
    assert!(told.starts_with("text without a record\n"), "{told}");
    assert!(told.contains("(submit_script)"), "{told}");
}

#[test]
fn a_text_that_tells_nothing_is_unknown_and_no_bytes_harm() {
    let output = diagnose(&["--text", "-"], b"all is well \xff\xfe \x1b[31m\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.contains(&0x1b), "escape sequences go");
    assert_eq!(diagnose(&["--text", "x", "12"], b"").status.code(), Some(64));
}
