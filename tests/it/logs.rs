//! Logs that are not there, not readable, not text, or more than anyone should read.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{str, thread};

use crate::run::{FIXTURES, OOM_LOG, Shown, Test, fixture};

/// The log of job 67.
const LOG: &str = "work/oom-67_4294967294.out";
const CUDA: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";

/// Packs as gzip of the machine does.
fn gzip(test: &Test, name: &str, text: &[u8]) -> Vec<u8> {
    let path = test.file(name, text);
    assert!(Command::new("gzip").arg(&path).status().expect("gzip").success());
    fs::read(test.path(&format!("{name}.gz"))).expect("packed")
}

/// The record alone names the cause of job 67: the answer stands, and lacks its log.
fn record_alone<'s>(shown: &'s Shown, why: &str) -> &'s Shown {
    shown.ends(0).says("(host_oom)").says("the record: State OUT_OF_MEMORY");
    shown.says("warning: no log was read:").says(why)
}

#[test]
fn a_log_that_is_missing_costs_only_itself() {
    let test = Test::slurm("log-missing");
    fs::remove_file(test.path(LOG)).expect("removed");
    record_alone(&test.run(&["diagnose", "67"]), "oom-67_4294967294.out: no such file")
        .says("hint: name the log's folder with --log-dir DIR");
    let shown = test.run(&["diagnose", "--log", "nosuch.out"]);
    shown.ends(3).fails_with("nosuch.out: no such file", "name a regular file that you may read");
}

#[test]
fn a_log_that_is_no_file_is_not_read() {
    let test = Test::slurm("log-kinds");
    let path = test.path(LOG);
    let named = path.display().to_string();
    let again = |make: &dyn Fn()| {
        let _ = fs::remove_file(&path);
        make();
        (test.run(&["diagnose", "67"]), test.run(&["diagnose", "--log", &named]))
    };
    let tool = |args: &[&str]| {
        assert!(Command::new(args[0]).args(&args[1..]).arg(&path).status().expect("ran").success());
    };
    // Nobody writes to the FIFO: whoever opens it to read waits for ever.
    for (make, why) in [
        (&(|| tool(&["mkfifo"])) as &dyn Fn(), "is not a regular file"),
        (&|| tool(&["ln", "-s", "/dev/zero"]), "is not a regular file"),
        (&|| tool(&["ln", "-s", "nowhere"]), "no such file"),
        (&|| tool(&["ln", "-s", &named]), "Too many levels of symbolic links"),
        (&|| tool(&["mkdir"]), "is a directory"),
    ] {
        let (by_id, by_name) = again(make);
        record_alone(&by_id, why);
        by_name.ends(3);
        assert!(by_name.stderr.contains(why), "{}", by_name.all());
    }
}

#[test]
fn a_log_of_somebody_else_is_told_as_such() {
    let Some(test) = Test::slurm("log-denied").unprivileged() else { return };
    let set = |path: &str, mode| {
        fs::set_permissions(test.path(path), fs::Permissions::from_mode(mode)).expect("set");
    };
    set(LOG, 0o600);
    record_alone(&test.run(&["diagnose", "67"]), "you may not read it");
    let shown = test.run(&["diagnose", "--log", "oom-67_4294967294.out"]);
    let hint = "name a regular file that you may read";
    shown.ends(3).fails_with("oom-67_4294967294.out: you may not read it", hint);
    // A folder that may not be entered is the same to its reader.
    set("work", 0o700);
    let shown = test.command(&["diagnose", "67"]).current_dir("/").output().expect("ran");
    let text = str::from_utf8(&shown.stdout).expect("text");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("(host_oom)") && text.contains("you may not read it"), "{text}");
}

#[test]
fn one_log_that_cannot_be_read_costs_no_other() {
    let test = Test::new("log-two");
    test.file("work/good.out", CUDA.as_bytes());
    let shown = test.run(&["diagnose", "--log", "nosuch.err", "good.out"]);
    shown.ends(0).says("(cuda_oom)").says("warning: nosuch.err: no such file");
}

#[test]
fn an_empty_log_says_nothing_and_that_is_told() {
    let test = Test::slurm("log-empty");
    test.file(LOG, b"");
    test.run(&["diagnose", "67"]).ends(0).says("(host_oom)").says("nothing was written to");
    let shown = test.run(&["diagnose", "--log", "oom-67_4294967294.out"]);
    shown.ends(1).says("unknown").says("read oom-67_4294967294.out: empty");
    test.file(LOG, b"\n  \n");
    let shown = test.run(&["diagnose", "--log", "oom-67_4294967294.out"]);
    shown.ends(1).says("read oom-67_4294967294.out: nothing but blanks");
}

#[test]
fn a_log_may_grow_and_shrink_while_it_is_read() {
    let test = Test::slurm("log-grows");
    test.file(LOG, OOM_LOG.repeat(1000).as_bytes());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = OpenOptions::new().append(true).open(test.path(LOG)).expect("open");
            while !done.load(Ordering::Relaxed) {
                log.write_all(&b"x".repeat(100_000)).expect("written");
                thread::sleep(Duration::from_millis(1));
                if log.metadata().expect("there").len() > 50 << 20 {
                    log.set_len(1000).expect("cut");
                }
            }
        });
        for _ in 0..5 {
            test.run(&["diagnose", "67"]).ends(0).says("(host_oom)");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_binary_log_is_searched_like_any_other() {
    let test = Test::new("log-binary");
    let mut bytes: Vec<u8> = (0..300_000_u32).flat_map(|i| (i ^ 0x5bd1).to_ne_bytes()).collect();
    bytes.extend_from_slice(format!("\n{CUDA}").as_bytes());
    test.file("work/core", &bytes);
    let shown = test.run(&["diagnose", "--log", "core"]);
    shown.ends(0).says("(cuda_oom)");
}

#[test]
fn of_fifty_gigabytes_of_nothing_only_what_was_written_is_read() {
    let test = Test::new("log-sparse");
    let path = test.file("work/sparse.out", CUDA.as_bytes());
    let mut file = OpenOptions::new().write(true).open(path).expect("open");
    file.seek(SeekFrom::Start(50 << 30)).expect("sought");
    file.write_all(b"\nthe end\n").expect("written");
    let shown = test.run(&["diagnose", "--log", "sparse.out"]);
    shown.ends(0).says("(cuda_oom)");
}

#[test]
fn a_line_without_end_is_searched_in_bounded_memory() {
    let test = Test::new("log-line");
    let mut file = File::create(test.path("work/line.out")).expect("made");
    let half = [b"loss 0.1 ".repeat(11 << 17).as_slice(); 8].concat();
    for text in [&half, CUDA.trim_end().as_bytes(), &half] {
        file.write_all(text).expect("written");
    }
    let size = file.metadata().expect("there").len();
    assert!(size > 150 << 20, "{size}");
    let shown = test.run(&["diagnose", "--log", "line.out"]);
    shown.ends(0).says("(cuda_oom)");
    assert!(shown.stdout.len() < 10_000, "the line is not printed whole");
}

#[test]
fn of_a_log_beyond_the_limit_both_ends_are_read_and_that_is_told() {
    let test = Test::new("log-limit").env("JOBWISE_SCAN_LIMIT_BYTES", "10000");
    test.file("work/long.out", format!("{}{CUDA}", "step\n".repeat(10_000)).as_bytes());
    let shown = test.run(&["diagnose", "--log", "long.out"]);
    // 10000 of 50061 bytes, in units of 1024.
    shown.ends(0).says("(cuda_oom)").says("warning: long.out: scanned 9.77K of 48.9K");
}

#[test]
fn a_packed_log_is_read_as_the_text_in_it() {
    let test = Test::slurm("log-packed");
    let text = format!("{}{OOM_LOG}", "step\n".repeat(70_000));
    gzip(&test, LOG, text.as_bytes());
    let shown = test.run(&["diagnose", "67"]);
    // 70000 lines before it.
    shown.ends(0).says("(host_oom)").says("oom-67_4294967294.out.gz:70002");
    shown.says("lines and bytes count in the unpacked text");
    let json = test.run(&["diagnose", "67", "--json"]).json();
    let log = &json["diagnoses"][0]["logs"][0];
    assert_eq!(log["size"], serde_json::json!(text.len()), "{log}");
    assert_eq!(log["unpacked"], serde_json::json!(true), "{log}");

    let shown = test.run(&["diagnose", "--log", "oom-67_4294967294.out.gz"]);
    shown.ends(0).says("(host_oom)").says("unpacked oom-67_4294967294.out.gz");
}

#[test]
fn of_a_packed_log_that_is_damaged_the_rest_is_used() {
    let test = Test::new("log-damaged");
    let text = (0..20_000).fold(CUDA.to_owned(), |text, n| format!("{text}{n}\n"));
    let whole = gzip(&test, "work/whole.out", text.as_bytes());
    test.file("work/cut.out.gz", &whole[..whole.len() / 2]);
    let shown = test.run(&["diagnose", "--log", "cut.out.gz"]);
    shown.says("CUDA out of memory").says("warning: cut.out.gz: breaks off: it is not complete");
    let mut hurt = whole.clone();
    let middle = hurt.len() / 2;
    hurt[middle..middle + 64].fill(0xa5);
    test.file("work/hurt.out.gz", &hurt);
    let shown = test.run(&["diagnose", "--log", "hurt.out.gz"]);
    shown.says("CUDA out of memory").says("warning: hurt.out.gz: is damaged");
    // The name alone makes nothing packed, and its lack nothing plain.
    test.file("work/plain.gz", CUDA.as_bytes());
    test.run(&["diagnose", "--log", "plain.gz"]).ends(0).says("plain.gz:1");
}

#[test]
fn a_bomb_is_unpacked_no_further_than_the_limit() {
    let test = Test::new("log-bomb").env("JOBWISE_SCAN_LIMIT_BYTES", "3000000");
    let bomb = gzip(&test, "work/bomb.out", &vec![b'\n'; 200 << 20]);
    assert!(bomb.len() < 1 << 20);
    let shown = test.run(&["diagnose", "--log", "bomb.out.gz"]);
    shown.ends(1).says("warning: bomb.out.gz: holds more text than the 3000000 bytes unpacked");
}

/// What a real Slurm 22.05 and its ranks wrote: rank 2 dies, the others are ended by srun.
#[test]
fn the_rank_that_died_is_named_with_its_file() {
    let test = Test::new("ranks");
    let replay = format!("{FIXTURES}/jobs/rank-files.json");
    let shown = test.run(&["--replay", &replay, "diagnose", "619"]);
    shown.ends(0).says("(file_not_found)").says("evidence r-619-2.log:5 FileNotFoundError");
    let json = test.run(&["--replay", &replay, "diagnose", "619", "--json"]).json();
    let evidence = &json["diagnoses"][0]["verdict"]["causes"][0]["evidence"][0];
    assert_eq!(evidence["place"]["rank"], serde_json::json!(2), "{evidence}");
}

/// Rank 3 dies of its own error; two seconds later the others miss what it should have made.
#[test]
fn the_rank_that_died_first_is_the_cause() {
    let test = Test::new("rank-order");
    let replay = format!("{FIXTURES}/jobs/rank-order.json");
    let shown = test.run(&["--replay", &replay, "diagnose", "620"]);
    shown.ends(0).says("(application_error)").says("evidence r-620-3.log:6 KeyError: 'accuracy'");
}

/// Whoever may read everything is asked about a job whose owner chose the names of its logs.
#[test]
fn a_job_does_not_lead_to_files_that_are_not_its_owner_s() {
    let test = Test::slurm("deputy");
    // Nobody on this machine: neither the file's owner nor who runs the test.
    let record = fixture("slurm-22.05/sacct-oom.txt");
    test.record_of(4_242_424, "67", &record);
    let why = "is not the job owner's file: not read; name it with --log to read it anyway";
    record_alone(&test.run(&["diagnose", "67"]), why);
    // By a name, and by a link.
    let named = record.replace("@~@oom@~@", "@~@../../../../../../etc/passwd@~@");
    let named = named.replace("-o oom-%A_%a.out", "-o /%x");
    test.record_of(4_242_424, "67", &named);
    let shown = test.run(&["diagnose", "67"]);
    record_alone(&shown, why).says("/etc/passwd");
    assert!(!shown.stdout.contains("root:"), "{}", shown.all());
    fs::remove_file(test.path(LOG)).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", test.path(LOG)).expect("linked");
    test.record_of(4_242_424, "67", &record);
    let file = test.path("deputy.json").display().to_string();
    let shown = test.run(&["diagnose", "67", "--record", &file]);
    record_alone(&shown, why);
    let kept = fs::read_to_string(&file).expect("recorded");
    assert_eq!(test.run(&["diagnose", "67", "--replay", &file]).stdout, shown.stdout);
    // Who names it has chosen it.
    let shown = test.run(&["diagnose", "--log", "oom-67_4294967294.out"]);
    shown.ends(1).says("its last lines:");
    assert!(kept.contains("\"owner\": 0"), "{kept}");
}

/// A log that breaks off or is damaged is told as such, never as empty; what stands before counts.
#[test]
fn a_damaged_log_is_never_called_empty() {
    let test = Test::new("damaged-logs");
    let steps: Vec<String> = (0..4000_u64).map(|n| format!("step {n} {}", n * n % 9973)).collect();
    let text = format!("torch.OutOfMemoryError: CUDA out of memory.\n{}\n", steps.join("\n"));
    test.file("work/whole.out", text.as_bytes());
    let packed =
        std::process::Command::new("gzip").arg("-c").arg(test.path("work/whole.out")).output();
    let packed = packed.expect("gzip").stdout;
    for (name, bytes, said) in [
        ("half.out.gz", &packed[..packed.len() / 2], "breaks off: it is not complete"),
        ("head.out.gz", &packed[..15], "breaks off: it is not complete"),
        ("two.out.gz", &packed[..2], "is damaged: it does not begin as gzip does"),
        ("other.out", b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46", "is packed by xz: unpack it (xz -dc)"),
    ] {
        test.file(&format!("work/{name}"), bytes);
        let shown = test.run(&["diagnose", "--log", name]);
        let all = shown.all().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(all.contains(said), "{all}");
        assert!(!all.contains("empty") && !all.contains("nothing was written"), "{all}");
    }
    test.run(&["diagnose", "--log", "half.out.gz"]).ends(0).says("half.out.gz:1, a damaged file");
    let json = test.run(&["diagnose", "--log", "half.out.gz", "--json"]).json();
    let text = json.to_string();
    assert!(text.contains("\"partial\":true"), "{text}");
}
