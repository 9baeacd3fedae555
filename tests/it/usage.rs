//! A command line, a setting or a recording that is wrong: told with what would be right.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::run::Test;

const RECORDING: &str = "--record PATH writes what --replay PATH reads";
const SETTING: &str = "see: jobwise config show --origin";

#[test]
fn what_is_set_for_one_command_has_a_short_name_too() {
    let test = Test::slurm("short-names").env("JOBWISE_LOG_TAIL", "2");
    let log = test.file("work/quiet.log", b"one\ntwo\nthree\nfour\n");
    let log = log.display().to_string();
    let shown = test.run(&["diagnose", "--log", &log]);
    shown.ends(1).says("three").says("four");
    assert!(!shown.stdout.contains("two"), "{}", shown.all());
    test.run(&["config", "show", "--origin"]).ends(0).says("JOBWISE_LOG_TAIL");

    let test = test.env("JOBWISE_BACKEND", "abacus");
    let hint = "it is auto or slurm";
    test.run(&["jobs"]).ends(64).fails_with("jobwise knows no scheduler 'abacus'", hint);
    test.run(&["--backend", "slurm", "diagnose", "67"]).ends(0);
}

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
            &["--backend", "slrum", "jobs"],
            "jobwise knows no scheduler 'slrum'",
            "it is auto or slurm",
        ),
        (&["jobs", "-s", "FAILD"], "'FAILD' is not a state", "did you mean FAILED?"),
        (
            &["jobs", "-S", "now", "-E", "7d"],
            "the window ends before it begins: now is not before 7d",
            "-S is its begin, -E its end",
        ),
        (
            &["stats", "-S", "1d", "-E", "2d"],
            "the window ends before it begins: 1d is not before 2d",
            "-S is its begin, -E its end",
        ),
        (
            &["diagnose", "--log", "not.json", "--state", "TIMEOUTS"],
            "'TIMEOUTS' is not a state",
            "did you mean TIMEOUT?",
        ),
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
        &["jobs", "-u", ""],
        &["jobs", "-u", "ada,"],
        &["jobs", "-s", ""],
        &["jobs", "-A", ""],
        &["jobs", "-p", ""],
        &["jobs", "--name", ""],
        &["stats", "-u", ""],
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

/// Slurm's clients say it in 22.05 so; the question itself is nothing that a reader typed.
#[test]
fn a_user_or_cluster_that_is_not_there_is_a_no() {
    let test = Test::slurm("nobody");
    test.client(
        "sacct",
        "case \"$*\" in *--helpformat*) say fields ;; *--user=nosuch*) echo 'sacct: error: Invalid \
         user id: nosuch' >&2; exit 1 ;; esac",
    );
    let hint = "-u takes login names and numeric ids";
    for command in ["jobs", "stats"] {
        let shown = test.run(&[command, "-u", "nosuch"]);
        shown.ends(1).fails_with("there is no user 'nosuch' here", hint);
    }
    test.client(
        "scontrol",
        "echo \"scontrol: error: No cluster 'nosuch' known by database.\" >&2; exit 1",
    );
    let hint = "sacctmgr list clusters names them";
    let shown = test.run(&["diagnose", "1;nosuch"]);
    shown.ends(1).fails_with("there is no cluster 'nosuch' here", hint);
}

/// $LOGNAME is what anybody says; the number is the kernel's.
#[test]
fn whose_jobs_are_one_s_own_is_not_a_matter_of_the_environment() {
    let test = Test::slurm("logname");
    let log = test.path("calls").display().to_string();
    let test = test.env("CALLS", &log).env("LOGNAME", "somebody").env("USER", "somebody");
    test.run(&["jobs"]).ends(0);
    let calls = std::fs::read_to_string(test.path("calls")).expect("asked");
    let me = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("me"));
    assert!(calls.contains(&format!("--user={me}")) && !calls.contains("somebody"), "{calls}");
}

#[test]
fn settings_of_others_that_cannot_be_read_are_told_and_left_out() {
    let test = Test::new("settings");
    let path = test.path("home/.config/jobwise/config.toml");
    let told =
        |reason: &str| format!("note: settings were left out: {}: {reason}\n", path.display());
    std::fs::create_dir_all(&path).expect("made");
    let shown = test.run(&["config", "show", "--origin"]);
    shown.ends(0).says("scan.limit_bytes");
    assert_eq!(shown.stderr, told("is a directory"));
    std::fs::remove_dir(&path).expect("removed");
    test.file("home/.config/jobwise/config.toml", &b"#".repeat((1 << 20) + 1));
    let shown = test.run(&["config", "show", "--origin"]);
    let reason = "is longer than the 1048576 bytes that settings may take";
    assert_eq!((shown.ends(0).stderr.as_str(), shown.code), (told(reason).as_str(), 0));
    // Named, it must be read.
    let named = path.display().to_string();
    let shown = test.run(&["--config", &named, "config", "show", "--origin"]);
    shown.ends(64).fails_with(&format!("{named}: {reason}"), SETTING);
}

#[test]
fn the_demo_says_what_it_is() {
    let test = Test::new("demo");
    test.run(&["--demo", "jobs"]).ends(0).says("align-reads");
    let message = "the demo cluster is a recording and cannot answer this; 'jobwise --demo jobs' lists its jobs";
    let hint = "without --demo your own cluster is asked";
    test.run(&["--demo", "jobs", "-S", "3d"]).ends(2).fails_with(message, hint);
    // No such job is a no, here as on any cluster.
    let message = "the demo holds no record of job 999; 'jobwise --demo jobs' lists those it holds";
    for args in [&["diagnose", "999"][..], &["job", "999"], &["where", "--job", "999"]] {
        test.run(&[&["--demo"], args].concat()).ends(1).fails_with(message, hint);
    }
    // What it lists it knows: of an array each task, with its log.
    test.run(&["--demo", "diagnose", "9_0"]).ends(0).says("KeyError: 'learning_rate'");
    test.run(&["--demo", "job", "9_5"]).ends(0).says("job 9_5 \"sweep\"");
    test.run(&["--demo", "where", "--job", "9_1"]).ends(0).says("1 CPU, 100M per node, 00:10:00");
}

#[test]
fn help_and_mistakes_are_painted_only_where_that_is_wanted() {
    let test = Test::new("paint").env("CLICOLOR_FORCE", "1");
    for args in [&["--help"][..], &["nosuch"], &["jobs", "--help"]] {
        let painted = test.run(args);
        assert!(painted.all().contains('\u{1b}'), "{}", painted.all());
        let plain = test.run(&[args, &["--no-color"]].concat());
        assert!(!plain.all().contains('\u{1b}'), "{}", plain.all());
        assert_eq!(plain.code, painted.code);
    }
}

#[test]
fn who_asks_for_json_gets_a_document_also_when_there_is_no_answer() {
    let test = Test::slurm("json-errors");
    for (args, code) in [
        (&["job", "999"][..], 1),
        (&["kb", "show", "nosuch"], 1),
        (&["jobs", "-S", "bogus"], 64),
        (&["jobs", "--nosuch"], 64),
        (&[], 64),
        (&["--config", "nosuch", "config", "show", "--origin"], 64),
        (&["--replay", "nosuch", "jobs"], 64),
        (&["--demo", "job", "999"], 1),
        (&["diagnose", "--log", "nosuch.out"], 3),
    ] {
        let shown = test.run(&[args, &["--json"]].concat());
        let document = shown.ends(code).json();
        assert_eq!(document["schema"], "jobwise/error/1", "{args:?}\n{}", shown.all());
        assert_eq!(document["exit"], code);
        assert!(document["error"].is_string() && !shown.stderr.is_empty(), "{}", shown.all());
    }
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

#[test]
fn where_the_answers_come_from_is_said_once() {
    let test = Test::slurm("sources");
    let kept = test.path("kept.json").display().to_string();
    for args in [
        &["--demo", "diagnose", "1", "--record", &kept][..],
        &["--demo", "jobs", "--replay", &kept],
        &["--record", &kept, "jobs", "--replay", &kept],
    ] {
        let message = "--demo, --replay and --record exclude each other";
        test.run(args).ends(64).fails_with(message, "each says where the answers come from");
    }
    assert!(!test.path("kept.json").exists());
    // Before the command or behind it.
    let before = test.run(&["--demo", "diagnose"]);
    before.ends(0);
    assert_eq!(before.stdout, test.run(&["diagnose", "--demo"]).stdout);
    let hint = "name its id, or give --log FILE or --text TEXT";
    test.run(&["diagnose"]).ends(64).fails_with("no job was named", hint);
}

#[test]
fn more_than_can_be_pasted_is_refused_and_not_cut() {
    let test = Test::new("long-paste");
    let long = test.path("long.log");
    let file = File::create(&long).expect("made");
    file.set_len((64 << 20) + 1).expect("sparse");
    let mut command = test.command(&["diagnose", "--text", "-"]);
    let shown = command.stdin(File::open(&long).expect("there")).output().expect("run");
    assert_eq!(shown.status.code(), Some(64));
    let told = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(told.contains("standard input holds more than 64 MiB"), "{told}");
}

#[test]
fn ascii_holds_for_documents_too() {
    let test = Test::new("ascii-json");
    let log = test.file("work/a.log", "写入失败\nKeyError: 'Grüße'\n".as_bytes());
    let log = log.display().to_string();
    let plain = test.run(&["diagnose", "--log", &log, "--json"]);
    let ascii = test.run(&["diagnose", "--log", &log, "--json", "--ascii"]);
    assert!(ascii.stdout.is_ascii() && !plain.stdout.is_ascii(), "{}", ascii.all());
    assert_eq!(ascii.json(), plain.json());
}

#[test]
fn a_number_that_is_none_is_told_in_words_and_a_missing_sign_with_the_right_form() {
    let test = Test::new("numbers");
    let shown = test.run(&["--demo", "jobs", "-n", "abc"]);
    assert!(shown.ends(64).stderr.contains("'abc' for '--limit <N>': a whole number is expected"));
    let shown = test.run(&["--demo", "stats", "--logs", "3"]);
    let hint = "hint: a number of runs is given so: --logs=3";
    assert!(shown.ends(64).stderr.contains(hint), "{}", shown.all());
}

#[test]
fn a_time_limit_that_was_passed_fills_its_bar() {
    // 87 s of 60 s are 145 %.
    let shown = Test::new("over-time").run(&["--demo", "job", "2", "--ascii"]);
    shown.ends(0).says("TIME [####################] 145% 00:01:27 of 00:01:00");
}

#[test]
fn what_one_must_type_again_is_whole_in_a_narrow_table() {
    let test = Test::new("narrow-names").env("COLUMNS", "60");
    let whole = |args: &[&str], name: &str| {
        let shown = test.run(args);
        assert!(shown.ends(0).stdout.contains(name), "{name}: {}", shown.stdout);
    };
    whole(&["kb", "list"], "allocation_exhausted ");
    whole(&["--demo", "queues"], "gpu-long ");
    whole(&["--demo", "status"], "gpu-long ");
    whole(&["--demo", "where"], "gpu-long ");
    whole(&["config", "show"], "findings.gpu_suspect_cpu_percent ");
}
