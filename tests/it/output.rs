//! What comes out, whatever goes in: nothing that steers a terminal, no secret, always the same.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::run::{OOM_LOG, Test, fixture};

/// Every command that answers, with arguments for the fake cluster.
const COMMANDS: &[&[&str]] = &[
    &["diagnose", "67"],
    &["diagnose", "67", "999"],
    &["diagnose", "--log", "oom-67_4294967294.out"],
    &["job", "67"],
    &["jobs", "--since", "2026-11-01", "--until", "2026-12-31"],
    &["stats", "--since", "2026-11-01", "--until", "2026-12-31"],
    &["diagnose", "--text", "sbatch: error: Batch job submission failed: Invalid account"],
    &["kb", "build"],
    &["kb", "search", "killed for memory"],
    &["kb", "list"],
    &["kb", "list", "--literals"],
    &["kb", "show", "host_oom"],
    &["kb", "check"],
    &["config", "show"],
];

const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;owned\u{7}\u{9b}2J\u{8}\u{202e}evil\u{2028}\r\u{85}";

/// A cluster on which whatever a user may write is hostile.
fn hostile(name: &str) -> Test {
    let test = Test::slurm(name);
    let record = fixture("slurm-22.05/sacct-oom.txt")
        .replace("@~@oom@~@", &format!("@~@{HOSTILE}@~@"))
        .replace("-J oom", &format!("-J {HOSTILE}"));
    test.record("67", &record);
    test.file("work/oom-67_4294967294.out", format!("{HOSTILE}{OOM_LOG}{HOSTILE} RuntimeError: \u{1b}[1mCUDA out of memory\u{1b}[0m\n{HOSTILE}\n").as_bytes());
    test
}

#[test]
fn nothing_that_steers_a_terminal_comes_out() {
    let test = hostile("escapes");
    for args in COMMANDS {
        for format in [&[][..], &["--json"]] {
            let shown = test.run(&[args, format].concat());
            let steers = |c: char| {
                (c.is_control() && c != '\n')
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
            };
            for text in [&shown.stdout, &shown.stderr] {
                let found = text.chars().find(|c| steers(*c));
                assert_eq!(found, None, "{args:?}\n{}", shown.all());
            }
        }
    }
}

#[test]
fn no_secret_comes_out() {
    let test = Test::slurm("secrets");
    // Of the forms of GitHub, Hugging Face, AWS and of a password in an address; none was ever used.
    let secrets = [
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "AKIAIOSFODNN7EXAMPLE",
        "hunter2hunter2",
    ];
    let line = format!(
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/{}/{}?token={}' https://me:{}@host/x\n",
        secrets[0], secrets[1], secrets[2], secrets[3]
    );
    test.file("work/oom-67_4294967294.out", line.as_bytes());
    test.file(
        "work/plain.out",
        format!("something of no family {line}").replace("FileNotFoundError", "").as_bytes(),
    );
    for args in [
        &["diagnose", "67"][..],
        &["diagnose", "--log", "oom-67_4294967294.out"],
        &["diagnose", "--log", "plain.out"],
    ] {
        for format in [&[][..], &["--json"]] {
            let shown = test.run(&[args, format].concat());
            for secret in secrets {
                let all = shown.all().split_whitespace().collect::<String>();
                assert!(!all.contains(secret), "{secret}\n{}", shown.all());
            }
        }
    }
}

#[test]
fn every_answer_is_one_json_document_with_its_schema() {
    let test = Test::slurm("json");
    for args in COMMANDS {
        let shown = test.run(&[args, &["--json"][..]].concat());
        let schema = shown.json()["schema"].clone();
        assert!(
            schema.as_str().is_some_and(|name| name.starts_with("jobwise/")),
            "{args:?}: {schema}"
        );
    }
    // Also where the answer is no.
    for args in [&["diagnose", "999", "--json"][..], &["diagnose", "abc", "--json"]] {
        assert!(test.run(args).json()["schema"].is_string(), "{args:?}");
    }
}

#[test]
fn the_same_question_has_the_same_bytes() {
    let test = hostile("same");
    for args in COMMANDS {
        for format in [&[][..], &["--json"]] {
            let args = [args, format].concat();
            assert_eq!(test.run(&args).stdout, test.run(&args).stdout, "{args:?}");
        }
    }
}

#[test]
fn eighty_columns_are_enough() {
    let test = hostile("columns");
    for args in COMMANDS.iter().filter(|args| !args.contains(&"--literals")) {
        let shown = test.run(args);
        for line in shown.stdout.lines() {
            // What may be longer: a path, which nobody could copy in two parts, and a line of a diff.
            let is_diff = line.starts_with(['+', '-', ' ', '@']) && shown.stdout.contains("\n@@ ");
            let has_path = line.contains('/');
            let columns = jobwise::text::width(line);
            assert!(columns <= 80 || is_diff || has_path, "{args:?}: {columns}: {line}");
        }
    }
}

#[test]
fn nobody_is_told_that_a_reader_has_gone() {
    let test = Test::slurm("pipe");
    for args in COMMANDS {
        let mut child = test
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(1, child.stdout.take().expect("a pipe"));
        reader.read_line(&mut line).expect("a line");
        drop(reader);
        let output = child.wait_with_output().expect("ended");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(complaint, "", "{args:?}");
        // `67 999` is a no, whoever reads it.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {}", output.status);
    }
    // A reader that was never there.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = test.command(&["kb", "list"]).stdout(writer).stderr(Stdio::null()).status();
    assert_eq!(status.expect("ran").code(), Some(0));
}

/// Numbers without a pattern, the same in every run (splitmix64).
struct Junk(u64);

impl Junk {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Words of real logs, bytes of none, in any order.
    fn log(&mut self) -> Vec<u8> {
        const WORDS: [&[u8]; 14] = [
            b"Traceback (most recent call last):\n",
            b"  File \"x.py\", line 99999999999999999999, in f\n",
            b"KeyError: ",
            b"\r",
            b"\n",
            b"\0",
            b"\xff\xfe",
            b"\x1b[",
            b"\x1b]0;",
            b"slurmstepd: error: ",
            b"CUDA out of memory. Tried to allocate ",
            b"---------------------------------------\n",
            b"[rank18446744073709551616]: ",
            b"\xe2\x80",
        ];
        let mut log = Vec::new();
        for _ in 0..self.next() % 400 {
            match self.next() % 3 {
                0 => log.extend_from_slice(&self.next().to_ne_bytes()),
                _ => {
                    log.extend_from_slice(WORDS[usize::try_from(self.next() % 14).expect("small")]);
                }
            }
        }
        log
    }
}

#[test]
fn no_log_is_a_bug() {
    let test = Test::slurm("junk");
    let mut junk = Junk(7);
    for round in 0..60 {
        test.file("work/oom-67_4294967294.out", &junk.log());
        let args: &[&str] = if round % 2 == 0 {
            &["diagnose", "67"]
        } else {
            &["diagnose", "--log", "oom-67_4294967294.out"]
        };
        let shown = test.run(args);
        assert!(
            matches!(shown.code, 0 | 1) && shown.stderr.is_empty(),
            "round {round}\n{}",
            shown.all()
        );
    }
}
