use super::{RULES, Text, scan};
use crate::classify::{Facts, LogFacts, Rules, check, decide, decide_text};
use crate::knowledge::parse;
use crate::logs::{Limits, Scanner};
use crate::model::{Job, JobId, Outcome, Place, Source, State, Stream, Verdict};

fn log(scan: &crate::logs::Scan) -> LogFacts<'_> {
    LogFacts { path: "job.out", stream: Stream::Output, step: None, task: None, scan, end: None }
}

/// The family that a log alone names.
fn alone(text: &str) -> Option<String> {
    let scan = scan(text);
    let end = Some(text.as_bytes());
    let log = LogFacts { end, ..log(&scan) };
    let by_text = first(&decide_text(&RULES, &log, text.as_bytes()));
    // A file is read as the same text is.
    let facts = Facts { job: None, logs: vec![log], logs_complete: true };
    assert_eq!(first(&decide(&RULES, &facts)), by_text, "{text}");
    by_text
}

/// The verdict on a job that failed with this log.
fn failed(text: &str) -> Verdict {
    let scan = scan(text);
    let job = Job::bare(JobId::whole(42), State::parse("FAILED"), Source::Given);
    decide(&RULES, &Facts { job: Some(&job), logs: vec![log(&scan)], logs_complete: true })
}

fn first(verdict: &Verdict) -> Option<String> {
    let cause = verdict.causes.first().filter(|_| verdict.outcome == Outcome::Cause)?;
    Some(cause.family.0.clone())
}

const FULL: &str = "Traceback (most recent call last):\n  File \"a.py\", line 5, in <module>\n    out.write(x)\nOSError: [Errno 28] No space left on device\n";

#[test]
fn a_program_that_says_how_it_goes_on_has_got_over_an_error() {
    assert_eq!(alone(FULL).as_deref(), Some("disk_full"));
    let over = format!("{FULL}writing to /tmp instead\nstep 1\nstep 2\n");
    assert_eq!(alone(&over), None);
    // The record knows that the run failed all the same.
    assert_eq!(first(&failed(&over)).as_deref(), Some("disk_full"));
}

#[test]
fn a_report_at_the_end_speaks_against_what_stands_before_it() {
    let steps = "part 1\npart 2\npart 3\npart 4\n";
    assert_eq!(alone(&format!("{FULL}{steps}report written\n")), None);
    // A script says the same after a program that failed.
    assert_eq!(alone(&format!("{FULL}done\n")).as_deref(), Some("disk_full"));
    let ended = format!("{FULL}{steps}Job ended at Mon Nov 30 10:34:25 CET 2026\n");
    assert_eq!(alone(&ended).as_deref(), Some("disk_full"));
    let gave_up = format!("{FULL}{steps}report not written: giving up\n");
    assert_eq!(alone(&gave_up).as_deref(), Some("disk_full"));
}

#[test]
fn the_summary_of_a_test_runner_tells_expected_failures_from_others() {
    let expected = "E   FileNotFoundError: [Errno 2] No such file or directory: 'missing.dat'\n";
    let passed = format!("{expected}===== 1 passed, 3 xfailed in 0.06s =====\n");
    assert_eq!(alone(&passed), None);
    let failed = format!("{expected}===== 1 failed, 3 passed in 0.06s =====\n");
    assert_eq!(alone(&failed).as_deref(), Some("file_not_found"));
}

#[test]
fn an_exception_that_the_interpreter_ignores_is_no_cause() {
    // As CPython 3.11 prints it when `__del__` raises.
    let ignored = "Exception ignored in: <function Handle.__del__ at 0x7fac7787d580>\nTraceback (most recent call last):\n  File \"a.py\", line 3, in __del__\nKeyError: 'x'\n";
    assert_eq!(alone(ignored), None);
    assert_eq!(first(&failed(&format!("{ignored}{FULL}"))).as_deref(), Some("disk_full"));
}

#[test]
fn what_a_rank_prints_before_another_one_that_explains_it_is_a_consequence() {
    let text = "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 8, in <module>\n[rank1]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.78]:23001\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 9, in step\n[rank0]: KeyError: 'labels'\n[rank2]: Traceback (most recent call last):\n[rank2]:   File \"train.py\", line 8, in <module>\n[rank2]: BrokenPipeError: [Errno 32] Broken pipe\n";
    let verdict = failed(text);
    assert_eq!(first(&verdict).as_deref(), Some("application_error"));
    let place = &verdict.causes[0].evidence[0].place;
    assert!(matches!(place, Place::Log { rank: Some(0), .. }), "{place:?}");
}

#[test]
fn the_launcher_knows_which_rank_failed_first() {
    let traceback = |rank: u64, line: &str| {
        format!(
            "[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File \"train.py\", line 9, in step\n[rank{rank}]: {line}\n"
        )
    };
    let text = traceback(1, "OSError: [Errno 28] No space left on device")
        + &traceback(3, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.");
    // As torch.distributed.elastic.multiprocessing.errors prints it.
    let summary = "============================================================\ntrain.py FAILED\n------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2024-08-20_04:37:40\n  host      : c01\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 3973209)\n============================================================\n";
    assert_eq!(first(&failed(&text)).as_deref(), Some("disk_full"));
    assert_eq!(first(&failed(&format!("{text}{summary}"))).as_deref(), Some("cuda_oom"));
}

#[test]
fn a_noise_signal_silences_the_line_that_bears_it() {
    let family = "---\nfamily: full\ntitle: t\ndomain: user\nsources: [\"https://example.org\"]\nsignals:\n  - {id: a, from: log, role: root, literal: no room, weight: 0.9, example: no room}\n  - {id: b, from: log, role: noise, literal: no room for jokes, example: no room for jokes}\n---\n## Symptoms\nx\n## Causes\nx\n## Fixes\nx\n## Verify\nx\n";
    let family = parse("full.md", family, crate::knowledge::Provenance::BuiltIn).expect("a family");
    let rules = Rules::new(vec![family]);
    let scanner = Scanner::new(&rules.literals());
    let scan = |text: &str| scanner.scan(&Text(text.as_bytes()), Limits { bytes: 1 << 20 });
    assert_eq!(check(&rules, &scan), []);
    let verdict = |text: &str| {
        let scan = scan(text);
        first(&decide(&rules, &Facts { job: None, logs: vec![log(&scan)], logs_complete: true }))
    };
    assert_eq!(verdict("no room\n").as_deref(), Some("full"));
    assert_eq!(verdict("no room for jokes\n"), None);
}
