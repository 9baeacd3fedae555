//! What comes out, whatever goes in: nothing that steers a terminal, no secret, always the same.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::run::{OOM_LOG, Test, fixture};

/// Every command that answers, with arguments for the fake cluster.
const COMMANDS: &[&[&str]] = &[
    &["diagnose", "67"],
    &["diagnose", "67", "999"],
    &["diagnose", "67", "--ticket"],
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

const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;owned\u{7}\u{9b}2J\u{8}\u{202e}evil\u{2028} PGPASS\u{1b}[0mWORD=hunter2hunter2\u{7f} \r\u{85}";

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
                let together = text.split_whitespace().collect::<String>();
                assert!(!together.contains("hunter2hunter2"), "{args:?}\n{}", shown.all());
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
    let test = hostile("columns").env("COLUMNS", "80");
    // A ticket is Markdown: whoever reads it wraps it.
    let wide = |args: &[&str]| args.contains(&"--literals") || args.contains(&"--ticket");
    for args in COMMANDS.iter().filter(|args| !wide(args)) {
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
        // Of the second of `67 999` there is something to say, of the reader there is nothing.
        let others = complaint.lines().filter(|line| !line.starts_with("jobwise: 999: no job 999"));
        assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{args:?}");
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

/// What stands in the script of job 67, between the lines that `sacct --batch-script` prints.
fn scripted(test: &Test, script: &[u8]) {
    let record = fixture("slurm-22.05/sacct-oom.txt").replace(" --mem=100 ", " ");
    test.record("67", &record);
    let head = b"Batch Script for 67\n----------------------------------------\n";
    test.file("answers/script", &[&head[..], script].concat());
    // A shell cannot say every byte.
    test.client(
        "sacct",
        r#"case "$*" in
    *--helpformat*) say fields ;;
    *--version*) echo "slurm 22.05.8" ;;
    *--batch-script*) /bin/cat "$answers/script" ;;
    *--jobs=*) say_columns 67 "${*##*--format=}" ;;
esac"#,
    );
}

#[test]
fn no_secret_of_a_record_or_a_script_comes_out() {
    let test = Test::slurm("secret-record");
    let secrets =
        ["hunter2hunter2", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "zqpw4zqpw4", "zqpass9"];
    let record = fixture("slurm-22.05/sacct-oom.txt")
        .replace("@~@oom@~@@~@", &format!("@~@{}@~@db_pass: {}@~@", secrets[1], secrets[3]))
        .replace(
            "-J oom",
            &format!(
                "-J oom --export=ALL,DB_PASSWORD={} --wrap curl -u me:{} x",
                secrets[0], secrets[2]
            ),
        );
    let script = format!(
        "#!/bin/bash\n#SBATCH --mem=100M\nexport HF_TOKEN={}\ncurl -u me:{} x\n",
        secrets[1], secrets[2]
    );
    scripted(&test, script.as_bytes());
    test.record("67", &record);
    for args in [
        &["diagnose", "67"][..],
        &["job", "67"],
        &["jobs", "--since", "2026-11-01", "--until", "2026-12-31"],
    ] {
        for format in [&[][..], &["--json"]] {
            let shown = test.run(&[args, format].concat());
            let all = shown.all().split_whitespace().collect::<String>();
            for secret in secrets {
                assert!(!all.contains(secret), "{secret}\n{}", shown.all());
            }
        }
    }
}

/// Live, while it is recorded, and from the recording.
#[test]
fn a_masked_script_is_told_the_same_way_everywhere() {
    let test = Test::slurm("secret-diff");
    let script = b"#!/bin/bash\n#SBATCH --mem=100M\nexport HF_TOKEN=abcdefgh1234\n";
    scripted(&test, script);
    let record = test.path("record.json").display().to_string();
    let live = test.run(&["diagnose", "67"]);
    live.ends(0).says(" export HF_TOKEN=************").says("+#SBATCH --mem=200M");
    live.says(
        "a secret in the script's lines near the change was masked, so the diff does not apply",
    );
    let recorded = test.run(&["diagnose", "67", "--record", &record]);
    let replayed = test.run(&["diagnose", "67", "--replay", &record]);
    assert_eq!((&recorded.stdout, &replayed.stdout), (&live.stdout, &live.stdout));
    // Far from the change it does not matter.
    let far = [&b"#!/bin/bash\n#SBATCH --mem=100M\n\n\n\n\n\nexport HF_TOKEN=abcdefgh1234\n"[..]]
        .concat();
    scripted(&test, &far);
    let shown = test.run(&["diagnose", "67"]);
    shown.says("+#SBATCH --mem=200M");
    assert!(!shown.stdout.contains("does not apply"), "{}", shown.all());
}

#[test]
fn a_key_at_the_end_of_a_log_does_not_come_out() {
    let test = Test::new("secret-key");
    let body = format!("{}\n", "MIIEvQIBADANBgkq".repeat(4)).repeat(60);
    let log = format!("start\n-----BEGIN {0}-----\n{body}-----END {0}-----\n", "PRIVATE KEY");
    test.file("work/key.out", log.as_bytes());
    for format in [&[][..], &["--json"]] {
        let shown = test.run(&[&["diagnose", "--log", "key.out"], format].concat());
        shown.ends(1).says("************");
        assert!(!shown.stdout.contains("MIIE"), "{}", shown.all());
    }
}

#[test]
fn the_printed_change_can_be_piped_into_patch() {
    let test = Test::slurm("patch");
    for script in [
        &b"#!/bin/bash\n#SBATCH --mem=100M\n\t\n\ttrain\t--fast  \n   \nend"[..],
        b"#!/bin/bash\r\n#SBATCH --mem=100M\r\n\t\r\ntrain \r\n",
        b"#!/bin/bash\n#SBATCH --mem=100M",
        "#!/bin/bash\n# Gr\u{fc}\u{df}e  \n#SBATCH --mem=100M\t\n".as_bytes(),
    ] {
        scripted(&test, script);
        let shown = test.run(&["diagnose", "67"]);
        shown.ends(0).says("+#SBATCH --mem=200M");
        assert!(!shown.stdout.contains("does not apply"), "{}", shown.all());
        let file = test.file("script.sh", script);
        let mut patch = Command::new("patch")
            .args(["--binary", "--fuzz=0", "--quiet"])
            .arg(&file)
            .stdin(Stdio::piped())
            .spawn()
            .expect("patch");
        let mut input = patch.stdin.take().expect("a pipe");
        input.write_all(shown.stdout.as_bytes()).expect("written");
        drop(input);
        assert!(patch.wait().expect("ran").success(), "{}", shown.all());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let wanted = text(script).replace("--mem=100M", "--mem=200M");
        assert_eq!(text(&fs::read(&file).expect("there")), wanted);
    }
    // What cannot be printed is told.
    scripted(&test, b"#!/bin/bash\n#SBATCH --mem=100M\n# \x1b[31mred\xff\n");
    test.run(&["diagnose", "67"]).ends(0).says("hold what cannot be printed, so the diff does not");
}

#[test]
fn a_directive_that_is_not_read_is_told_where_it_matters() {
    let test = Test::slurm("unread");
    let told = "warning: sbatch does not read all of the script:";
    for (script, text) in [
        (
            "#!/bin/bash\necho hi\n#SBATCH --mem=4G\n",
            "--mem=4G (line 3): behind the first command, line 2",
        ),
        (
            "#!/bin/bash\n#Sbatch --time=10\ntrain\n",
            "line 2: not read: '#SBATCH' must be in capitals",
        ),
        (
            "#!/bin/bash\n# SBATCH -o x\ntrain\n",
            "line 2: not read: '# SBATCH' has a blank after '#'",
        ),
        ("#!/bin/bash\r\ntrain\r\n", "line 1: DOS line ends: sbatch refuses the script"),
    ] {
        scripted(&test, script.as_bytes());
        test.run(&["diagnose", "67"]).ends(0).says(&format!("{told} {text}"));
        // Also where only files are at hand.
        test.file("work/train.sh", script.as_bytes());
        let args = ["diagnose", "--log", "oom-67_4294967294.out", "--script", "train.sh"];
        test.run(&args).says(&format!("{told} {text}"));
    }
    scripted(
        &test,
        b"#!/bin/bash\n#Sbatch --job-name=x\n##SBATCH --mem=1G\ntrain\n#SBATCH --mail-type=END\n",
    );
    let shown = test.run(&["diagnose", "67"]);
    assert!(!shown.stdout.contains(told), "{}", shown.all());
}

#[test]
fn words_that_no_note_knows_are_answered_with_a_no() {
    let test = Test::new("unknown-words");
    test.run(&["kb", "search", "zzzzqqq"]).ends(1).says("no note has to do with these words");
    test.run(&["kb", "search", "segmentaton falt"]).ends(0).says("segfault");
}
