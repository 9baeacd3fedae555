//! What a recording keeps, and that its replay says the same whatever has become of the machine.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::process::Command;

use crate::run::{Shown, Test};

const BROKEN: &str = "--record PATH writes what --replay PATH reads";

#[track_caller]
fn same(one: &Shown, other: &Shown) {
    assert_eq!(one.stdout, other.stdout, "{}\n{}", one.all(), other.all());
    assert_eq!(one.code, other.code, "{}\n{}", one.all(), other.all());
}

#[test]
fn neither_an_index_nor_settings_of_the_machine_change_a_replay() {
    let test = Test::slurm("replay-same").env("JOBWISE_ENERGY_GPU_WATTS", "300");
    test.run(&["kb", "build"]).ends(0);
    let questions = [
        &["diagnose", "67"][..],
        &["diagnose", "67", "--json"],
        &["stats", "--since", "2026-11-01", "--until", "2026-12-31"],
        &["config", "show", "--origin"],
    ];
    let record = |question: &[&str]| test.run(&[&["--record", "kept"], question].concat());
    let recorded: Vec<Shown> = questions.iter().map(|question| record(question)).collect();
    recorded[3].ends(0).says("energy.gpu_watts 300 JOBWISE_ENERGY_GPU_WATTS");
    // Another machine: no index, other settings, one of them wrong.
    fs::remove_dir_all(test.path("home/cache")).expect("removed");
    let other = test.env("JOBWISE_ENERGY_GPU_WATTS", "900").env("JOBWISE_SCAN_LIMIT_BYTES", "x");
    let replay = |question: &[&str]| other.run(&[&["--replay", "kept"], question].concat());
    for (question, recorded) in questions.iter().zip(&recorded) {
        same(recorded, &replay(question));
    }
    // A file that is named is meant.
    other.file("work/own.toml", b"[energy]\ngpu_watts = 500\n");
    let named = other.without("JOBWISE_SCAN_LIMIT_BYTES").without("JOBWISE_ENERGY_GPU_WATTS");
    let shown =
        named.run(&["--replay", "kept", "--config", "own.toml", "config", "show", "--origin"]);
    shown.ends(0).says("energy.gpu_watts 500 own.toml");
}

#[test]
fn what_a_recording_leaves_out_of_a_log_is_not_counted_and_is_told() {
    let test = Test::new("replay-huge");
    let mut log = File::create(test.path("work/huge.out")).expect("made");
    log.write_all(b"begin\n").expect("written");
    // 32 MiB of either end are kept, so that of 70 MiB some lines in the middle are not.
    let middle = 34 << 20;
    log.seek(SeekFrom::Start(middle)).expect("sought");
    log.write_all(&b"\n".repeat(1000)).expect("written");
    log.seek(SeekFrom::Start((70 << 20) - 70)).expect("sought");
    log.write_all(b"\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
        .expect("written");
    let question = ["diagnose", "--log", "huge.out", "--json"];
    let recorded = test.run(&[&["--record", "kept"][..], &question].concat());
    same(&recorded, &test.run(&[&["--replay", "kept"][..], &question].concat()));
    let diagnosis = &recorded.json()["diagnoses"][0];
    let cause = &diagnosis["verdict"]["causes"][0];
    assert_eq!(cause["family"], "cuda_oom");
    assert!(cause["evidence"][0]["place"]["line"].is_null(), "{cause:#}");
    let trouble = diagnosis["logs"][0]["trouble"].as_str().expect("told");
    // 32 MiB of either end.
    assert_eq!(trouble, "scanned 64M of 70M: the rest is not in the recording");
}

#[test]
fn a_query_that_fails_is_in_the_recording() {
    let test = Test::slurm("record-failure");
    test.client(
        "sacct",
        "case \"$*\" in *--helpformat*) say fields ;; *) echo 'sacct: error: odd' >&2; exit 1 ;; esac",
    );
    for question in [&["job", "67"][..], &["jobs", "-S", "2026-11-01", "-E", "2026-12-01"]] {
        let recorded = test.run(&[&["--record", "kept.json"], question].concat());
        recorded.ends(3);
        let replayed = test.run(&[&["--replay", "kept.json"], question].concat());
        same(&recorded, &replayed);
        assert_eq!(recorded.stderr, replayed.stderr);
        // Nothing of how the list is printed.
        assert!(
            recorded.stderr.len() < 160 && recorded.stderr.contains("odd"),
            "{}",
            recorded.all()
        );
    }
}

#[test]
fn what_is_no_recording_is_told_without_waiting() {
    let test = Test::slurm("replay-hostile");
    let made = Command::new("mkfifo").arg(test.path("work/pipe")).status().expect("mkfifo");
    assert!(made.success());
    let shown = test.run(&["--replay", "pipe", "diagnose", "67"]);
    shown.ends(64).fails_with("pipe: is not a regular file", BROKEN);

    test.run(&["--record", "kept", "diagnose", "67"]).ends(0);
    let blob = fs::read_dir(test.path("work/kept/blobs")).expect("listed").next();
    let blob = blob.expect("one").expect("an entry").path();
    fs::remove_file(&blob).expect("removed");
    let name = format!("kept/blobs/{}", blob.file_name().expect("a name").display());
    let shown = test.run(&["--replay", "kept", "diagnose", "67"]);
    shown.ends(64).fails_with(&format!("{name}: no such file"), BROKEN);
    assert!(Command::new("mkfifo").arg(&blob).status().expect("mkfifo").success());
    let shown = test.run(&["--replay", "kept", "diagnose", "67"]);
    shown.ends(64).fails_with(&format!("{name}: is not a regular file"), BROKEN);

    let manifest = test.path("work/kept/manifest.json");
    let text = fs::read_to_string(&manifest).expect("read");
    let known = blob.file_name().expect("a name").to_string_lossy().into_owned();
    fs::write(&manifest, text.replace(&known, "../manifest")).expect("written");
    let shown = test.run(&["--replay", "kept", "diagnose", "67"]);
    let message = "kept/manifest.json: not a recording: '../manifest' is no name of a blob";
    shown.ends(64).fails_with(message, BROKEN);
}

#[test]
fn a_log_in_very_many_parts_is_read_like_any_other() {
    let test = Test::slurm("replay-parts");
    test.file("work/one.out", b"CUDA out of memory. Tried to allocate 2.00 GiB\n");
    test.run(&["--record", "kept.json", "diagnose", "--log", "one.out"]).ends(0);
    let path = test.path("work/kept.json");
    let mut kept: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    kept["blobs"]["aa"] = serde_json::json!({"text": "x\n"});
    let content = &mut kept["files"][0]["outcome"]["content"];
    let last = content["ranges"][0]["blob"].clone();
    // Backwards: the order in the file is nobody's promise.
    let parts = (0..200_000_u64).map(|part| serde_json::json!({"offset": 2 * part, "blob": "aa"}));
    let end = serde_json::json!({"offset": 400_000, "blob": last});
    content["ranges"] = parts.chain([end]).rev().collect();
    content["size"] = 400_047.into();
    fs::write(&path, kept.to_string()).expect("written");
    let shown = test.run(&["--replay", "kept.json", "diagnose", "--log", "one.out"]);
    shown.ends(0).says("one.out:200001");
}

#[test]
fn a_job_whose_name_holds_a_line_end_is_replayed() {
    let test = Test::new("replay-two-lines");
    for release in ["22.05", "24.11", "26.05"] {
        let path =
            format!("{}/fixtures/recordings/slurm-{release}.json", env!("CARGO_MANIFEST_DIR"));
        let shown = test.run(&["--replay", &path, "job", "80"]);
        shown.ends(0).says("job 80 \"two lines\" COMPLETED exit 0:0");
    }
    // The pattern that 24.11 keeps is told as the name that the file has.
    let path = format!("{}/fixtures/recordings/slurm-24.11.json", env!("CARGO_MANIFEST_DIR"));
    test.run(&["--replay", &path, "job", "80"]).says("name-newline-80_4294967294.out");
}
