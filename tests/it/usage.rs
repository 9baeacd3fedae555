//! A command line, a setting or a recording that is wrong: told with what would be right.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::run::Test;

const RECORDING: &str = "--record PATH writes what --replay PATH reads";
const SETTING: &str = "see: jobwise config show";

#[test]
fn each_mistake_has_its_message() {
    let test = Test::slurm("usage");
    test.file("work/broken.toml", b"[scan\n");
    test.file("work/not.json", b"[1, 2");
    test.file("work/newer.json", b"{\"format\": 99}");
    for (args, message, hint) in [
        (&["--replay", "nosuch", "diagnose", "1"][..], "nosuch: no such file", RECORDING),
        (
            &["--replay", "/dev/zero", "diagnose", "1"],
            "/dev/zero: is not a regular file",
            RECORDING,
        ),
        (
            &["--replay", "newer.json", "diagnose", "1"],
            "newer.json: recording format 99, this jobwise reads up to 1",
            RECORDING,
        ),
        (&["--config", "nosuch", "diagnose", "67"], "nosuch: no such file", SETTING),
        (&["--config", "/", "diagnose", "67"], "/: is a directory", SETTING),
        (&["--config", "/dev/zero", "kb", "list"], "/dev/zero: is not a regular file", SETTING),
        (
            &["jobs", "--since", "whenever"],
            "'whenever' is not a time",
            "a time is 7d, now-2hours, 2026-11-30 or 2026-11-30T08:00",
        ),
    ] {
        test.run(args).ends(64).fails_with(message, hint);
    }
    for args in [
        &["--replay", "not.json", "diagnose", "1"][..],
        &["--config", "broken.toml", "kb", "list"],
        &["diagnose"],
        &["diagnose", "67", "--log", "x"],
        &["diagnose", "--log", "not.json", "--exit-code", "x"],
        &["nosuch"],
        &[],
    ] {
        let shown = test.run(args);
        shown.ends(64);
        assert!(shown.stdout.is_empty() && !shown.stderr.is_empty(), "{args:?}\n{}", shown.all());
    }
    let shown = test.run(&["kb", "show", "host_omo"]);
    shown.ends(1).fails_with("there is no family 'host_omo'", "did you mean 'host_oom'?");
    let broken = test.env("JOBWISE_SCAN_LIMIT_BYTES", "much");
    broken.run(&["diagnose", "67"]).ends(64).fails_with(
        "JOBWISE_SCAN_LIMIT_BYTES: 'scan.limit_bytes' must be a positive integer, not \"much\"",
        SETTING,
    );
}

#[test]
fn an_answer_that_cannot_be_written_is_no_answer() {
    let test = Test::slurm("full");
    let full = File::options().write(true).open("/dev/full").expect("open");
    let output = test.command(&["diagnose", "67"]).stdout(full).stderr(Stdio::piped()).output();
    let output = output.expect("ran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("could not write the answer: No space left on device"), "{said}");
    assert_eq!(output.status.code(), Some(3));
}

/// In a packed log a token cannot be seen, so it is unpacked to be masked.
#[test]
fn a_recording_holds_no_secret_and_says_the_same() {
    let test = Test::new("record-packed");
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = format!("clone https://{secret}@example.org/x\nRuntimeError: CUDA out of memory\n");
    let log = test.file("work/train.out", text.as_bytes());
    assert!(Command::new("gzip").arg(&log).status().expect("gzip").success());
    let live = test.run(&["diagnose", "--log", "train.out.gz"]);
    live.ends(0).says("(cuda_oom)").says("unpacked train.out.gz");
    let recorded = test.run(&["--record", "kept", "diagnose", "--log", "train.out.gz"]);
    let replayed = test.run(&["--replay", "kept", "diagnose", "--log", "train.out.gz"]);
    assert_eq!((&live.stdout, &live.stdout), (&recorded.stdout, &replayed.stdout));
    let blobs = std::fs::read_dir(test.path("work/kept/blobs")).expect("listed");
    let texts = blobs.map(|blob| {
        let bytes = std::fs::read(blob.expect("an entry").path()).expect("read");
        let text = jobwise::host::Unpacked::new(Box::new(bytes.clone()), 1 << 20);
        let text = jobwise::host::Content::read_all(&text, 1 << 20).expect("read");
        String::from_utf8_lossy(&[bytes, text].concat()).into_owned()
    });
    let all: String = texts.collect();
    assert!(all.contains("CUDA out of memory") && !all.contains(secret), "{all}");
}
