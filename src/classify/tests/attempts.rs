//! Logs that a requeued job, or a script that appends, wrote in several runs.

use super::verdicts::{job, judge, named};

fn ended(why: &str, at: &str) -> String {
    format!("slurmstepd: error: *** JOB 67 ON c01 CANCELLED AT 2026-11-30T{at}{why} ***\n")
}

const NODE: &str = " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS";
const RAISED: &str = "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 9, in step\n    x = a + b\nValueError: shapes (3,) and (4,) not aligned\n";

/// Lines of work.
fn steps(count: usize) -> String {
    (0..count).map(|step| format!("step {step} loss 0.{step}\n")).collect::<Vec<_>>().concat()
}

#[test]
fn the_end_of_an_earlier_run_is_not_that_of_this_one() {
    let first = format!("{}{}resumed from step 20\n", steps(20), ended(NODE, "10:00:00"));
    let log = format!("{first}{}", steps(3));
    assert_eq!(named(&judge(Some(&job("TIMEOUT", 0, 0)), &[&log])), "time_limit");
    assert_eq!(named(&judge(Some(&job("NODE_FAIL", 0, 0)), &[&log])), "node_fail");
    let log = format!("{first}{RAISED}");
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "application_error");
    let log = format!("{first}{}FATAL: cannot go on\n", steps(30));
    assert_eq!(named(&judge(Some(&job("FAILED", 2, 0)), &[&log])), "Unknown");
}

#[test]
fn of_two_ends_the_later_one_is_that_of_this_run() {
    let full = "OSError: [Errno 28] No space left on device\n";
    let preempted = ended(" DUE TO PREEMPTION", "10:00:00");
    let log = format!("{full}{preempted}{}{}", steps(3), ended(" DUE TO TIME LIMIT", "18:00:00"));
    let verdict = judge(None, &[&log]);
    assert_eq!(named(&verdict), "time_limit");
    // Every node tells the same end, each by its own clock.
    let twice = format!(
        "{}{full}{}",
        ended(" DUE TO PREEMPTION", "10:00:00"),
        ended(" DUE TO PREEMPTION", "10:00:02")
    );
    assert_eq!(named(&judge(Some(&job("PREEMPTED", 0, 15)), &[&twice])), "preempted");
}

#[test]
fn what_a_job_says_while_it_is_preempted_is_no_other_run() {
    // With GraceTime a job ends by itself, with an exit code of its own.
    let log = format!(
        "{}{}caught SIGTERM\nsaving checkpoint\nsaved\n",
        steps(20),
        ended(" DUE TO PREEMPTION", "10:00:00")
    );
    assert_eq!(named(&judge(Some(&job("FAILED", 143, 0)), &[&log])), "preempted");
}

#[test]
fn an_exception_behind_a_preemption_is_that_of_another_run() {
    let log = format!("{}{}step 1\n{RAISED}", steps(20), ended(" DUE TO PREEMPTION", "10:00:00"));
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "application_error");
    let told = RAISED.replace("ValueError: shapes (3,) and (4,) not aligned", "KeyboardInterrupt");
    let log = format!("{}{}{told}", steps(20), ended(" DUE TO PREEMPTION", "10:00:00"));
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "preempted");
}

#[test]
fn a_start_that_failed_is_not_the_end_of_the_run_that_worked_behind_it() {
    let import = RAISED.replace(
        "ValueError: shapes (3,) and (4,) not aligned",
        "ModuleNotFoundError: No module named 'apex'",
    );
    let log = format!("{import}==== restart ====\n{}{RAISED}", steps(37));
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "application_error");
}
