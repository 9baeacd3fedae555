//! What jobwise keeps for itself, broken, foreign, or with no place to be; and broken notes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use jobwise::knowledge::{Notes, Provenance, built_in, parse};

use crate::run::{Shown, Test};

/// A line that describes the index, and the index.
const INDEX: &str = "home/cache/notes.index";
const NOT_USED: &str = "the stored index was not used";

/// The answer is that of a machine without an index, and says why.
#[track_caller]
fn falls_back(shown: &Shown) {
    shown.ends(0).says("(host_oom)").says("built-in notes");
    shown.says(NOT_USED).says("hint: run: jobwise kb build");
}

fn built(name: &str) -> Test {
    let test = Test::slurm(name);
    test.run(&["kb", "build"]).ends(0);
    test
}

#[test]
fn a_sound_index_is_used_in_silence() {
    let test = built("index-sound");
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("stored index");
    assert!(!shown.stdout.contains(NOT_USED), "{}", shown.all());
}

#[test]
fn a_corrupt_index_is_not_used() {
    let test = built("index-corrupt");
    let whole = fs::read(test.path(INDEX)).expect("built");
    let end = whole.iter().position(|byte| *byte == b'\n').expect("a description");
    for place in [end / 2, end, whole.len() / 2] {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x55;
        for bytes in [&flipped[..], &whole[..place], b"", b"\0\xff rubbish {", b"{}\n"] {
            test.file(INDEX, bytes);
            falls_back(&test.run(&["diagnose", "67"]));
        }
    }
    // Built again, it is sound again.
    test.run(&["kb", "build"]).ends(0);
    test.run(&["diagnose", "67"]).ends(0).says("stored index");
    fs::remove_file(test.path(INDEX)).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(test.path(INDEX)).status().expect("mkfifo");
    assert!(made.success());
    falls_back(&test.run(&["diagnose", "67"]));
    fs::remove_file(test.path(INDEX)).expect("removed");
    fs::create_dir(test.path(INDEX)).expect("made");
    falls_back(&test.run(&["diagnose", "67"]));
}

#[test]
fn an_index_of_other_notes_or_another_program_is_not_used() {
    let test = built("index-foreign");
    let whole = fs::read(test.path(INDEX)).expect("built");
    let end = whole.iter().position(|byte| *byte == b'\n').expect("a description");
    let meta: serde_json::Value = serde_json::from_slice(&whole[..end]).expect("JSON");
    // Whatever is changed in the description, it no longer describes this index or these notes.
    let fields = meta.as_object().expect("an object");
    for name in fields.keys() {
        let mut other = meta.clone();
        other[name] = match &fields[name] {
            serde_json::Value::Number(number) => (number.as_u64().unwrap_or(0) + 1).into(),
            serde_json::Value::String(text) => format!("{text}x").into(),
            serde_json::Value::Array(items) => items[1..].to_vec().into(),
            _ => continue,
        };
        test.file(INDEX, &[other.to_string().as_bytes(), &whole[end..]].concat());
        let shown = test.run(&["diagnose", "67"]);
        assert!(shown.stdout.contains(NOT_USED), "{name} may be anything\n{}", shown.all());
        falls_back(&shown);
    }
}

/// An index that may be read and not replaced is used; one that may not be read is told.
#[test]
fn an_index_that_is_read_only_is_used_and_one_that_is_unreadable_is_not() {
    let Some(test) = built("index-ro").unprivileged() else { return };
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(test.path(path), fs::Permissions::from_mode(mode)).expect("set");
    };
    mode(INDEX, 0o444);
    mode("home/cache", 0o755);
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("(host_oom)").says("stored index");
    let build = test.run(&["kb", "build"]);
    let message =
        format!("could not write {}: Permission denied (os error 13)", test.path(INDEX).display());
    build.ends(3).fails_with(&message, "set JOBWISE_HOME to a folder you may write");
    test.run(&["diagnose", "67"]).ends(0).says("stored index");
    mode(INDEX, 0o000);
    falls_back(&test.run(&["diagnose", "67"]));
    let told = test.run(&["diagnose", "67", "--json"]).json();
    let told = told["notices"][0]["text"].as_str().expect("a notice").to_owned();
    assert!(told.starts_with(NOT_USED) && told.contains(INDEX), "{told}");
}

/// Answers while the index is built again and again: each is that of a whole index.
#[test]
fn an_index_that_is_being_rebuilt_is_always_whole() {
    let test = built("index-rebuilt");
    for _ in 0..4 {
        let mut build = test
            .command(&["kb", "build"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("started");
        while build.try_wait().expect("asked").is_none() {
            let shown = test.run(&["diagnose", "67"]);
            shown.ends(0).says("(host_oom)").says("stored index");
            assert!(!shown.stdout.contains(NOT_USED), "{}", shown.all());
        }
    }
}

#[test]
fn without_a_home_everything_but_keeping_works() {
    let test = Test::slurm("no-home").without("HOME").without("JOBWISE_HOME");
    test.run(&["diagnose", "67"]).ends(0).says("(host_oom)");
    test.run(&["kb", "search", "killed", "for", "memory"]).ends(0);
    test.run(&["config", "show"]).ends(0);
    test.run(&["kb", "build"]).ends(3).fails_with(
        "there is no folder to keep the index in",
        "set JOBWISE_HOME to a folder you may write",
    );
}

#[test]
fn in_a_home_that_is_read_only_everything_but_keeping_works() {
    let Some(test) = Test::slurm("ro-home").unprivileged() else { return };
    let test = test.without("JOBWISE_HOME");
    let home = test.path("home");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o555)).expect("set");
    test.run(&["diagnose", "67"]).ends(0).says("(host_oom)");
    let shown = test.run(&["kb", "build"]);
    shown.ends(3).fails_with(
        &format!(
            "could not write {}/.cache/jobwise: Permission denied (os error 13)",
            home.display()
        ),
        "set JOBWISE_HOME to a folder you may write",
    );
    // A place that may not even be looked into.
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).expect("set");
    test.run(&["diagnose", "67"]).ends(0).says("(host_oom)");
}

#[test]
fn builds_at_the_same_time_leave_one_sound_index() {
    let test = Test::slurm("two-builds");
    for _ in 0..3 {
        let mut builds: Vec<_> = (0..4)
            .map(|_| {
                test.command(&["kb", "build"])
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .expect("started")
            })
            .collect();
        assert!(builds.iter_mut().all(|build| build.wait().expect("ended").success()));
        test.run(&["diagnose", "67"]).ends(0).says("stored index");
    }
    let left = fs::read_dir(test.path("home/cache")).expect("listed");
    let mut left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["limits.json", "notes.index", "qos.json"], "no half of an index");
}

/// The front matter of the note on memory, with one thing wrong in each.
#[test]
fn a_broken_note_is_told_with_file_line_and_reason_and_costs_only_itself() {
    let good = include_str!("../../knowledge/host_oom.md");
    assert!(parse("host_oom.md", good, Provenance::BuiltIn).is_ok());
    let line =
        |text: &str| good.lines().position(|line| line.starts_with(text)).expect("there") + 1;
    for (broken, message) in [
        (good.replacen("---\n", "", 1), "host_oom.md:1: has no front matter".to_owned()),
        (
            good.replacen("title:", "titel:", 1),
            format!("host_oom.md:{}: unknown field `titel`", line("title:")),
        ),
        (good.replacen("domain: ", "domain: [", 1), "host_oom.md:".to_owned()),
        (
            good.replacen("family: host_oom", "family: other", 1),
            format!("host_oom.md:{}: family 'other'", line("family:")),
        ),
        (good.replacen("role: root", "role: king", 1), "host_oom.md:".to_owned()),
        (String::new(), "host_oom.md:1: has no front matter".to_owned()),
        ("\0\u{1b}[31m---\n".to_owned(), "host_oom.md:1: has no front matter".to_owned()),
        ("---\n&a [*a, *a]\n---\n".to_owned(), "host_oom.md".to_owned()),
    ] {
        assert_ne!(broken, good);
        let error = parse("host_oom.md", &broken, Provenance::BuiltIn).expect_err(&message);
        assert!(error.to_string().starts_with(&message), "{error} is not {message}");

        let families = built_in().expect("sound");
        let before = Notes { families, ..Notes::default() };
        let files = vec![("site/host_oom.md".to_owned(), broken.clone().into_bytes())];
        let notes = before.clone().with_overlay(files);
        assert_eq!(notes.families, before.families, "the built-in note stays");
        // What has nothing of a family is a page; what is one in part is refused.
        let page = broken.starts_with('\0');
        let told = (notes.pages.len(), notes.errors.len());
        assert_eq!(told, (usize::from(page), usize::from(!page)), "{broken}");
    }
}

#[test]
fn a_note_of_one_s_own_is_used_and_a_broken_one_is_told() {
    let test = Test::slurm("overlay");
    let note = "---\nfamily: scratch_purge\ntitle: Scratch was purged\ndomain: site\nsignals:\n  - id: purge\n    from: log\n    role: root\n    literal: \"SCRATCH PURGED: error\"\n    example: \"SCRATCH PURGED: error 7\"\nwithout_edit: \"the data is gone\"\n---\n\n## Symptoms\n\nFiles are gone.\n\n## Causes\n\nAge.\n\n## Fixes\n\n1. Stage the data again.\n\n## Verify\n\nLook.\n";
    test.file("notes/scratch_purge.md", note.as_bytes());
    test.file("notes/broken.md", b"---\nfamily: broken\n---\n");
    test.file("notes/ignored.txt", b"not a note");
    test.file("job.log", b"start\nSCRATCH PURGED: error 7\n");
    let folder = test.path("notes").display().to_string();
    let log = test.path("job.log").display().to_string();
    let shown = test.run(&["diagnose", "--log", &log, "--knowledge", &folder]);
    shown.ends(0).says("Scratch was purged (scratch_purge)").says("Stage the data again");
    shown.says("broken.md").says("missing field `title`").says("built-in notes and yours");
    let check = test.run(&["kb", "check", "--knowledge", &folder]);
    check.ends(1).says("missing field `title`");
    // An index of other notes is not taken for one of these.
    test.run(&["kb", "build"]).ends(0);
    test.run(&["diagnose", "--log", &log, "--knowledge", &folder]).says("scratch_purge/Causes");
}
