use super::{RULES, scan};
use crate::classify::{Facts, LogFacts, check, decide};
use crate::knowledge;
use crate::logs::{Scan, stem_of};
use crate::model::{
    Bytes, Exit, Job, JobId, Known, Outcome, Place, Source, Span, State, Step, StepId, Stream,
    Tres, Verdict,
};

pub(super) fn exit(code: u32, signal: u32) -> Known<Exit> {
    Known::Value(Exit { code, signal, folded: true })
}

/// A run of a minute, as accounting of 22.05 records it.
pub(super) fn job(state: &str, code: u32, signal: u32) -> Job {
    let mut job = Job::bare(JobId::whole(67), State::parse(state), Source::Accounting);
    job.exit = exit(code, signal);
    job.derived_exit = exit(0, 0);
    job.started = Known::Value("2026-11-30T10:34:25Z".parse().expect("a time"));
    job.elapsed = Known::Value(Span::seconds(60));
    job.nodes = Known::Value(1);
    job.allocated = Tres::parse("billing=1,cpu=1,mem=100M,node=1");
    job
}

pub(super) fn step(id: &str, state: &str, code: u32, signal: u32) -> Step {
    Step {
        name: id.to_owned(),
        exit: exit(code, signal),
        elapsed: Known::Value(Span::seconds(60)),
        tasks: Known::Value(1),
        nodes: Known::Value(1),
        ..Step::bare(StepId(id.to_owned()), State::parse(state))
    }
}

pub(super) fn judge(job: Option<&Job>, texts: &[&str]) -> Verdict {
    let scans: Vec<Scan> = texts.iter().map(|text| scan(text)).collect();
    let logs = scans.iter().map(|scan| LogFacts {
        path: "job.out",
        stream: Stream::Output,
        step: None,
        task: None,
        scan,
        end: None,
    });
    decide(&RULES, &Facts { job, logs: logs.collect(), logs_complete: true })
}

/// The named cause, or what kind of answer it is instead.
pub(super) fn named(verdict: &Verdict) -> String {
    match (verdict.outcome, verdict.causes.first()) {
        (Outcome::Cause, Some(cause)) => cause.family.0.clone(),
        (outcome, _) => format!("{outcome:?}"),
    }
}

#[test]
fn the_scan_looks_at_the_lines_of_every_signal() {
    assert_eq!(knowledge::check(RULES.families(), &|literal| stem_of(literal).is_some()), []);
}

#[test]
fn every_example_makes_its_family_win_and_no_counter_does() {
    assert_eq!(check(&RULES, &scan), []);
}

// The logs and records of the tests below are those of a real Slurm 22.05 unless they say else.

#[test]
fn a_killed_program_is_out_of_memory_whatever_the_job_is_called() {
    let log = "slurm_script: line 7:  5651 Killed                  python3 -c \"\nslurmstepd-c04: error: Detected 1 oom-kill event(s) in StepId=67.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.\n";
    let verdict = judge(Some(&job("OUT_OF_MEMORY", 0, 125)), &[log]);
    assert_eq!(named(&verdict), "host_oom");

    // The step was killed, the script went on and ended with 1: the job is called FAILED.
    let mut failed = job("FAILED", 1, 0);
    failed.derived_exit = exit(0, 125);
    failed.steps = vec![step("batch", "FAILED", 1, 0), step("0", "OUT_OF_MEMORY", 0, 125)];
    let verdict = judge(Some(&failed), &["srun: error: c03: task 0: Out Of Memory\n"]);
    assert_eq!(named(&verdict), "host_oom");
    // Without any log the record is enough.
    assert_eq!(named(&judge(Some(&failed), &[])), "host_oom");
}

/// The verdict on a job that is called completed, with this as its whole log.
fn completed(log: &str) -> Verdict {
    let scan = scan(log);
    let (path, stream, end) = ("job.out", Stream::Output, Some(log.as_bytes()));
    let log = LogFacts { path, stream, step: None, task: None, scan: &scan, end };
    let job = job("COMPLETED", 0, 0);
    decide(&RULES, &Facts { job: Some(&job), logs: vec![log], logs_complete: true })
}

#[test]
fn a_job_that_ended_well_is_healthy_whatever_words_its_log_holds() {
    // Slurm prints the first line for page cache (galaxyproject/galaxy#2309).
    let log = "slurmstepd: error: Exceeded step memory limit at some point. Step may have been partially swapped out to disk.\nCUDA out of memory\nSegmentation fault\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'\nstep 1\nstep 2\nstep 3\n";
    let verdict = completed(log);
    assert_eq!((verdict.outcome, verdict.causes.len()), (Outcome::Healthy, 0));
    assert_eq!(named(&completed("CUDA out of memory\nbash: foo: command not found\n")), "Healthy");
}

#[test]
fn an_exception_as_the_last_thing_belies_a_completed_job() {
    let raised = "step 1\nTraceback (most recent call last):\n  File \"/home/u/a.py\", line 1, in <module>\nKeyError: 'x'\n";
    let verdict = completed(raised);
    assert_eq!(named(&verdict), "application_error");
    let told = &verdict.causes[0].evidence;
    assert!(told.iter().any(|e| e.text.starts_with("State COMPLETED: ")), "{told:?}");
    // A logger that prints the exception it caught says so, or goes on.
    assert_eq!(named(&completed(&format!("{raised}retrying without it\n"))), "Healthy");
    assert_eq!(named(&completed(&format!("{raised}step 2\nstep 3\nstep 4\n"))), "Healthy");
    // Optuna reports a failed trial so and goes on with the next (optuna/optuna#167).
    let logged = raised.replace("step 1", "[W 2018-09-07 17:56:04,311] Setting status of trial#3 as FAIL because of the following error: KeyError('x',)");
    assert_eq!(named(&completed(&logged)), "Healthy");
}

#[test]
fn a_calculation_that_did_not_converge_belies_a_completed_job() {
    // Quantum ESPRESSO ends with 0 all the same.
    let log = "     iteration #100     ecut=    40.00 Ry\n     convergence NOT achieved after 100 iterations: stopping\n     PWSCF        :   1m 2.03s CPU   1m 3.11s WALL\n   JOB DONE.\n";
    assert_eq!(named(&completed(log)), "numeric_divergence");
    let later = format!("{log}     convergence has been achieved in  12 iterations: converged\n");
    assert_eq!(named(&completed(&later)), "Healthy");
}

#[test]
fn a_silence_after_steady_lines_is_a_hang_and_a_quiet_program_none() {
    let limit = "slurmstepd-c01: error: *** JOB 67 ON c01 CANCELLED AT 2026-11-30T22:35:42 DUE TO TIME LIMIT ***\n";
    let mut run = job("TIMEOUT", 0, 0);
    run.elapsed = Known::Value(Span::seconds(12 * 3600));
    run.limit = run.elapsed.clone();
    run.ended = Known::Value("2026-11-30T21:35:42Z".parse().expect("a time"));
    // Twelve hours of CPU: ranks that wait for each other may spin.
    run.cpu_time = run.elapsed.clone();
    let steps = |hour: u32| -> String {
        let line = |minute| format!("2026-11-30 {hour:02}:{minute:02}:00 INFO step {minute}\n");
        (10..25).map(line).collect()
    };
    // A line a minute, the last at 14:24: eight hours of nothing.
    let silent = judge(Some(&run), &[&format!("{}{limit}", steps(14))]);
    assert_eq!(named(&silent), "hang");
    let told = &silent.causes[0].evidence[0].text;
    assert!(told.contains("the last 08:11:42 of 12:00:00 nothing was written"), "{told}");
    assert!(told.contains("at most 00:01:00 apart"), "{told}");
    // It wrote until eleven minutes before the end.
    assert_eq!(named(&judge(Some(&run), &[&format!("{}{limit}", steps(22))])), "time_limit");
    // A last line without a time may have been written at any time.
    let untold = format!("{}checkpoint\n{limit}", steps(14));
    assert_eq!(named(&judge(Some(&run), &[&untold])), "time_limit");
    // Three lines tell no habit; CPUs that did next to nothing tell it instead.
    let few: String = steps(14).split_inclusive('\n').take(3).collect();
    let few = format!("{few}{limit}");
    assert_eq!(named(&judge(Some(&run), &[&few])), "time_limit");
    run.cpu_time = Known::Value(Span::seconds(12 * 3600 / 20));
    assert_eq!(named(&judge(Some(&run), &[&few])), "hang");
}

#[test]
fn a_failed_step_in_a_completed_job_is_not_healthy() {
    let mut silent = job("COMPLETED", 0, 0);
    silent.derived_exit = exit(7, 0);
    silent.steps = vec![step("batch", "COMPLETED", 0, 0), step("1", "FAILED", 7, 0)];
    let log = "srun: error: c03: task 0: Exited with exit code 7\n";
    let verdict = judge(Some(&silent), &[log]);
    assert_eq!(named(&verdict), "application_error");
    let told: Vec<&str> = verdict.causes[0].evidence.iter().map(|e| e.text.as_str()).collect();
    assert!(told[0].starts_with("State FAILED, 7:0"), "{told:?}");
    assert!(told[1].contains("the script's last command"), "{told:?}");
    // What the step said explains it better than that it failed.
    let import = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nModuleNotFoundError: No module named 'torch'\n";
    assert_eq!(named(&judge(Some(&silent), &[import])), "python_import");

    let mut memory = silent.clone();
    memory.derived_exit = exit(0, 125);
    memory.steps[1] = step("1", "OUT_OF_MEMORY", 0, 125);
    assert_eq!(named(&judge(Some(&memory), &[])), "host_oom");
}

#[test]
fn a_step_that_somebody_ended_is_told_and_one_that_ended_with_the_script_is_not() {
    let mut job = job("COMPLETED", 0, 0);
    job.uid = Known::Value(1001);
    job.derived_exit = exit(0, 9);
    job.steps = vec![step("batch", "COMPLETED", 0, 0), step("0", "CANCELLED by 1001", 0, 9)];
    assert_eq!(named(&judge(Some(&job), &[])), "cancelled_by_user");
    // A monitor in the background, which Slurm ends when the script is over.
    job.steps[1] = step("0", "CANCELLED", 0, 9);
    assert_eq!(named(&judge(Some(&job), &[])), "Healthy");
}

#[test]
fn who_cancelled_is_told() {
    let log = "slurmstepd-c04: error: *** JOB 67 ON c04 CANCELLED AT 2026-11-30T10:34:34 ***\n";
    let who = |state: &str| {
        let mut cancelled = job(state, 0, 0);
        cancelled.uid = Known::Value(1001);
        let verdict = judge(Some(&cancelled), &[log]);
        assert_eq!(named(&verdict), "cancelled_by_user");
        let cause = &verdict.causes[0];
        (cause.captures["who"].clone(), cause.evidence[0].text.clone())
    };
    assert_eq!(
        who("CANCELLED by 1001"),
        ("owner".into(), "State CANCELLED by 1001 (the job's owner)".into())
    );
    assert_eq!(who("CANCELLED by 0").0, "root");
    assert_eq!(who("CANCELLED by 1002").0, "other");

    // Cancelled while it waited: a start that is its end, no node, no log.
    let mut waiting = job("CANCELLED by 1001", 0, 0);
    waiting.elapsed = Known::Value(Span::default());
    assert_eq!(named(&judge(Some(&waiting), &[])), "cancelled_by_user");
}

#[test]
fn what_failed_before_it_was_cancelled_is_the_cause() {
    let log = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nModuleNotFoundError: No module named 'torch'\nslurmstepd-c04: error: *** JOB 67 ON c04 CANCELLED AT 2026-11-30T10:34:34 ***\n";
    assert_eq!(named(&judge(Some(&job("CANCELLED by 1001", 0, 0)), &[log])), "python_import");
    let step = "slurmstepd: error: *** STEP 67.0 ON c04 CANCELLED AT 2026-11-30T10:34:34 ***\n";
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[step])), "Unknown");
}

#[test]
fn a_job_that_never_ran_is_judged_by_what_is_recorded_of_it() {
    let never = |state: &str| {
        let mut job = job(state, 1, 0);
        job.started = Known::NotGathered;
        job.elapsed = Known::Value(Span::default());
        job.reason = Some("ReqNodeNotAvail".to_owned());
        job
    };
    assert_eq!(named(&judge(Some(&never("DEADLINE")), &[])), "deadline");

    // Removed by the scheduler with --kill-on-invalid-dep: accounting says nothing but CANCELLED.
    let mut orphan = never("CANCELLED");
    orphan.submit_line = Some("sbatch --dependency=afterok:120 job.sh".to_owned());
    let verdict = judge(Some(&orphan), &[]);
    assert_eq!(named(&verdict), "dependency");
    assert_eq!(verdict.causes[0].evidence[0].text, "Dependency afterok:120");
    orphan.state = State::parse("CANCELLED by 1001");
    assert_eq!(named(&judge(Some(&orphan), &[])), "cancelled_by_user");
}

#[test]
fn a_preempted_job_is_called_so_whatever_its_last_line() {
    let requeue = "slurmstepd: error: *** JOB 67 ON g01 CANCELLED AT 2026-11-30T10:34:43 DUE TO JOB REQUEUE ***\n";
    for log in ["", requeue, &requeue.replace("JOB REQUEUE", "PREEMPTION")] {
        assert_eq!(named(&judge(Some(&job("PREEMPTED", 0, 0)), &[log])), "preempted");
    }
}

#[test]
fn what_waits_or_runs_has_nothing_to_diagnose() {
    assert_eq!(named(&judge(Some(&job("PENDING", 0, 0)), &[])), "Pending");
    assert_eq!(named(&judge(Some(&job("RUNNING", 0, 0)), &["CUDA out of memory\n"])), "Running");
}

#[test]
fn a_refused_submission_is_no_failed_run() {
    let mut refused = job("FAILED", 1, 0);
    refused.started = Known::NotGathered;
    refused.elapsed = Known::Value(Span::default());
    let verdict = judge(Some(&refused), &[]);
    assert_eq!((verdict.outcome, verdict.causes.len()), (Outcome::Unknown, 0));
}

#[test]
fn a_folded_exit_code_agrees_but_does_not_name() {
    let log = "slurm_script: line 2:  5388 Segmentation fault      python3 -c \"import ctypes; ctypes.string_at(0)\"\n";
    assert_eq!(named(&judge(Some(&job("FAILED", 11, 0)), &[log])), "segfault");
    let silent = judge(Some(&job("FAILED", 11, 0)), &["something went wrong\n"]);
    assert_eq!(named(&silent), "Unknown");
    // A signal to the script itself is certain (`0:11`), and leaves no line in the log.
    assert_eq!(named(&judge(Some(&job("FAILED", 0, 11)), &[""])), "segfault");
}

#[test]
fn a_time_limit_is_the_cause_unless_a_crash_came_before_it() {
    let limit = "slurmstepd-c01: error: *** JOB 1 ON c01 CANCELLED AT 2026-11-30T10:35:42 DUE TO TIME LIMIT ***\n";
    let timeout = job("TIMEOUT", 0, 0);
    assert_eq!(named(&judge(Some(&timeout), &[&format!("step 16\n{limit}")])), "time_limit");
    // One rank ran out of GPU memory; the others waited for it until the limit.
    let crash = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 22.30 GiB\n";
    let mut gpu = timeout.clone();
    gpu.allocated = Tres::parse("cpu=1,mem=100M,gres/gpu=4,node=1");
    assert_eq!(named(&judge(Some(&gpu), &[&format!("{crash}{limit}")])), "cuda_oom");
}

#[test]
fn a_job_that_idled_until_its_limit_hung() {
    let mut hung = job("TIMEOUT", 0, 0);
    hung.elapsed = Known::Value(Span::seconds(12 * 3600));
    hung.limit = hung.elapsed.clone();
    hung.cpu_time = Known::Value(Span::seconds(40));
    let limit = "slurmstepd-c01: error: *** JOB 67 ON c01 CANCELLED AT 2026-11-30T22:35:42 DUE TO TIME LIMIT ***\n";
    for log in ["", limit] {
        let verdict = judge(Some(&hung), &[log]);
        assert_eq!(named(&verdict), "hang");
        let edits = &RULES.family(&verdict.causes[0].family).expect("a family").edits;
        assert!(edits.is_empty(), "a hang forbids to ask for more time");
    }
    // Under two per cent of one CPU is waiting; a CPU time of zero is one that nobody measured.
    for seconds in [0, 12 * 3600 / 50, 12 * 3600] {
        hung.cpu_time = Known::Value(Span::seconds(seconds));
        assert_eq!(named(&judge(Some(&hung), &[limit])), "time_limit", "{seconds} s");
    }
}

#[test]
fn only_the_exception_that_ended_the_program_counts() {
    let handled = "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n    import cupy\nModuleNotFoundError: No module named 'cupy'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"/home/u/a.py\", line 4, in main\n    return table[key]\n  File \"/usr/lib/python3.11/collections/__init__.py\", line 1, in get\nKeyError: 'DATA_ROOT'\n";
    let verdict = judge(Some(&job("FAILED", 1, 0)), &[handled]);
    assert_eq!(named(&verdict), "application_error", "the missing module was handled");
    let wrapped = handled.replace("KeyError: 'DATA_ROOT'", "app.LoadError: no backend");
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&wrapped])), "python_import");

    let plain = "Traceback (most recent call last):\n  File \"/home/u/a.py\", line 4, in main\n  File \"/usr/lib/python3.11/site-packages/x.py\", line 1, in get\nKeyError: 'DATA_ROOT'\n";
    let verdict = judge(Some(&job("FAILED", 1, 0)), &[plain]);
    assert_eq!(named(&verdict), "application_error");
    let cause = &verdict.causes[0];
    assert_eq!(cause.captures["exception"], "KeyError");
    assert_eq!(cause.evidence[0].text, "KeyError: 'DATA_ROOT'");
    assert_eq!(cause.evidence[1].text, "  File \"/home/u/a.py\", line 4, in main");
    let frame = (&cause.evidence[1].place, plain.find("  File"));
    let (Place::Log { line: Some(2), offset, length: 38, .. }, Some(at)) = frame else {
        panic!("{frame:?}")
    };
    assert_eq!(usize::try_from(*offset), Ok(at));
    let Place::Log { line, offset, .. } = &cause.evidence[0].place else { panic!("in the log") };
    assert_eq!(*line, Some(4));
    assert_eq!(usize::try_from(*offset).ok(), plain.find("KeyError"));
}

#[test]
fn an_exception_after_another_is_no_cause() {
    // The first is one that no family knows; the second followed from it.
    let log = "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\nrequests.exceptions.HTTPError: 429 Client Error: Too Many Requests\nTraceback (most recent call last):\n  File \"a.py\", line 9, in <module>\nKeyError: 'files'\n";
    let verdict = judge(Some(&job("FAILED", 1, 0)), &[log]);
    assert_eq!(named(&verdict), "Unknown");
    assert!(verdict.consequences.iter().any(|e| e.text.starts_with("requests.exceptions")));
}

#[test]
fn a_collective_timeout_is_the_cause_only_where_nothing_came_before_it() {
    // The lines of https://github.com/NVIDIA/Megatron-LM/issues/1207.
    let timeout = "[rank3]:[E ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013 milliseconds before timing out.\n";
    let raised = "Traceback (most recent call last):\n  File \"/home/alice/train.py\", line 3, in main\nKeyError: 'DATA_ROOT'\n";
    let job = job("FAILED", 1, 0);
    assert_eq!(named(&judge(Some(&job), &[timeout])), "nccl_timeout");
    let both = format!("{raised}{timeout}");
    assert_eq!(named(&judge(Some(&job), &[&both])), "application_error");
}

#[test]
fn a_benign_probe_hours_before_the_end_is_no_cause() {
    let mut log = "cat: /proc/driver/nvidia/version: No such file or directory\n".to_owned();
    for step in 0..300 {
        log.push_str(&format!("step {step} loss 1.0\n"));
    }
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "Unknown");
    let last = "step 1\ncat: /data/inputs/config.yaml: No such file or directory\n";
    let verdict = judge(Some(&job("FAILED", 1, 0)), &[last]);
    assert_eq!(named(&verdict), "file_not_found");
    assert_eq!(verdict.causes[0].captures["path"], "/data/inputs/config.yaml");
}

#[test]
fn work_after_the_last_trouble_of_a_failed_run_tells_no_trouble_from_another() {
    let work = "step 1 loss 0.3\n";
    let raised = "Traceback (most recent call last):\n  File \"/home/u/a.py\", line 4, in main\nKeyError: 'DATA_ROOT'\n";
    // A warning-level trouble that the program got over, then the one that ended it.
    let both = format!("mpirun: command not found\n{}{raised}", work.repeat(80));
    for after in [0, 40, 3000] {
        let log = format!("{both}{}", work.repeat(after));
        let verdict = judge(Some(&job("FAILED", 1, 0)), &[&log]);
        assert_eq!(named(&verdict), named(&judge(Some(&job("FAILED", 1, 0)), &[&both])), "{after}");
        let alone = format!("{raised}{}", work.repeat(after));
        let verdict = judge(Some(&job("FAILED", 1, 0)), &[&alone]);
        assert_eq!(named(&verdict), "application_error", "{after}");
    }
    let confidence = |after| {
        let log = format!("{raised}{}", work.repeat(after));
        judge(Some(&job("FAILED", 1, 0)), &[&log]).causes[0].confidence.score
    };
    assert!(confidence(3000) < confidence(40) && confidence(40) < confidence(0));
}

#[test]
fn contradictions_lower_and_agreement_raises() {
    // A job without a GPU says nothing about the node's driver; "out of memory" proves a GPU.
    let log = "CUDA driver version is insufficient for CUDA runtime version\n";
    let mut with_gpu = job("FAILED", 1, 0);
    with_gpu.allocated = Tres::parse("cpu=1,gres/gpu:a100=1,mem=100M,node=1");
    let score = |job: &Job, log| judge(Some(job), &[log]).causes[0].confidence.score;
    assert!(score(&with_gpu, log) > score(&job("FAILED", 1, 0), log));

    let oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=67.0. Some of the step tasks have been OOM Killed.\n";
    let used = |mib: u64| {
        let mut job = job("FAILED", 1, 0);
        job.elapsed = Known::Value(Span::seconds(3600));
        let mut batch = step("batch", "FAILED", 1, 0);
        batch.max_rss = Known::Value(Bytes(mib * Bytes::MIB));
        job.steps = vec![batch];
        score(&job, oom)
    };
    let (near, far) = (used(99), used(3));
    assert!(near > far, "{near} {far}");
}

#[test]
fn consequences_follow_the_root_in_order() {
    let log = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nModuleNotFoundError: No module named 'torch'\nsrun: error: bd129: task 3: Exited with exit code 1\nsrun: Terminating StepId=48342178.0\nsrun: error: bd056: tasks 8-15: Killed\n";
    let verdict = judge(Some(&job("FAILED", 1, 0)), &[log]);
    assert_eq!(named(&verdict), "python_import");
    let kinds: Vec<&str> = verdict
        .consequences
        .iter()
        .map(|evidence| evidence.signal.rsplit('/').next().unwrap_or_default())
        .collect();
    assert_eq!(kinds, ["srun-exited", "srun-terminating", "srun-killed"]);
}

#[test]
fn what_the_scheduler_said_of_a_child_job_is_not_about_this_one() {
    let line = |id: u64| {
        format!(
            "slurmstepd: error: *** JOB {id} ON c1 CANCELLED AT 2026-11-30T10:35:42 DUE TO TIME LIMIT ***\n"
        )
    };
    let mut wrapper = job("FAILED", 1, 0);
    assert_eq!(named(&judge(Some(&wrapper), &[&line(67)])), "time_limit");
    assert_eq!(named(&judge(Some(&wrapper), &[&line(99)])), "Unknown");
    // A task of an array has a number of its own besides.
    wrapper.id = "60_7".parse().expect("an id");
    wrapper.raw_id = Known::Value(67);
    assert_eq!(named(&judge(Some(&wrapper), &[&line(67)])), "time_limit");
}

#[test]
fn logs_alone_are_enough() {
    let log = "srun: error: Node failure on c307\n";
    assert_eq!(named(&judge(None, &[log])), "node_fail");
    assert_eq!(named(&judge(None, &["all is well\n"])), "Unknown");
}

proptest::proptest! {
    #[test]
    fn no_log_makes_it_panic(text in "(Traceback \\(most recent call last\\):\n|  File \"a\", line 1, in b\n|KeyError: 'é'\n|slurmstepd: |oom_kill event|CUDA out of memory|[ -~é\u{1b}\r\n]{0,12}){0,40}") {
        let _ = judge(None, &[&text]);
        let _ = judge(Some(&job("FAILED", 1, 0)), &[&text, &text]);
    }
}

#[test]
fn of_a_repeated_error_the_first_is_quoted_and_the_others_are_no_work() {
    let line = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
    let log = format!("step 1\n{}", line.repeat(500));
    let once = judge(Some(&job("FAILED", 1, 0)), &[line]);
    let verdict = judge(Some(&job("FAILED", 1, 0)), &[&log]);
    assert_eq!(named(&verdict), "cuda_oom");
    let score = |verdict: &Verdict| verdict.causes[0].confidence.score;
    assert!((score(&verdict) - score(&once)).abs() < 1e-9, "nobody handled it");
    let Place::Log { line, .. } = &verdict.causes[0].evidence[0].place else {
        panic!("in the log")
    };
    assert_eq!(*line, Some(2));
}

const OVER: &str = "slurmstepd-c04: error: *** JOB 1 ON c04 CANCELLED AT 2026-11-30T10:34:25 DUE TO TIME LIMIT ***";

#[test]
fn without_a_record_no_job_is_another_one() {
    let mut given = Job::bare(JobId::whole(0), State::parse("FAILED"), Source::Given);
    given.exit = exit(1, 0);
    let verdict = judge(Some(&given), &[OVER]);
    assert_eq!(named(&verdict), "time_limit");
    let of_nobody = judge(None, &[OVER]);
    let score = |verdict: &Verdict| verdict.causes[0].confidence.score;
    assert!((score(&verdict) - score(&of_nobody)).abs() < 1e-9);
}

#[test]
fn what_repeats_the_scheduler_s_words_is_not_the_scheduler() {
    let traceback = "Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\n";
    for line in [
        format!("{traceback}RuntimeError: child said: echo \"{OVER}\"\n"),
        format!("echo \"{OVER}\"\n"),
        format!("2026-11-30 10:34:25 ERROR {OVER}\n"),
    ] {
        for record in [None, Some(&job("FAILED", 1, 0))] {
            assert_ne!(named(&judge(record, &[&line])), "time_limit", "{line}");
        }
    }
    // And who prints them as a line of their own is contradicted by the record.
    let mut failed = job("FAILED", 1, 0);
    (failed.id, failed.limit) = (JobId::whole(1), Known::Value(Span::seconds(3600)));
    assert_ne!(named(&judge(Some(&failed), &[OVER])), "time_limit");
    // The limit of a step may be shorter than the job's.
    failed.steps = vec![step("0", "TIMEOUT", 0, 15)];
    assert_eq!(named(&judge(Some(&failed), &[OVER])), "time_limit");
}

/// Lines of failures, whole and broken, by ranks and not, with line ends of all kinds.
fn lines() -> impl proptest::strategy::Strategy<Value = String> {
    const PIECES: [&str; 16] = [
        "Traceback (most recent call last):\n",
        "  File \"/home/u/a.py\", line 4, in main\n",
        "\tFile \"b.py\", line 4, in main \r\n",
        "[rank1]: ",
        "0: ",
        "1: ",
        "KeyError: 'x'\n",
        "\u{1b}[31mRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\u{1b}[0m\r\n",
        "ModuleNotFoundError: No module named 'torch'\n",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=67.batch.\n",
        "srun: error: c04: task 0: Segmentation fault\n",
        "app.LoadError: no backend\n",
        " 50%|#####     |\r",
        "step\n",
        "é\u{202e}",
        "\n",
    ];
    let piece = proptest::sample::select(&PIECES[..]);
    proptest::strategy::Strategy::prop_map(proptest::collection::vec(piece, 0..40), |p| p.concat())
}

proptest::proptest! {
    #[test]
    fn every_piece_of_evidence_can_be_read_again(log in lines()) {
        let verdict = judge(Some(&job("FAILED", 1, 0)), &[&log]);
        let of_causes = verdict.causes.iter().flat_map(|cause| &cause.evidence);
        for piece in of_causes.chain(&verdict.consequences) {
            let Place::Log { offset, length, .. } = &piece.place else { continue };
            let from = usize::try_from(*offset).expect("small");
            let raw = &log.as_bytes()[from..from + usize::try_from(*length).expect("small")];
            let again = crate::text::clean_line(raw);
            proptest::prop_assert!(again.ends_with(&piece.text), "{piece:?} is not {again:?}");
            proptest::prop_assert!(!raw.contains(&b'\n'));
        }
    }
}

#[test]
fn an_exception_of_what_is_registered_for_the_end_belies_nothing() {
    let late = "all epochs done\nError in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File \"/home/u/a.py\", line 1, in close\nKeyError: 'x'\n";
    assert_eq!(named(&completed(late)), "Healthy");
}

#[test]
fn processes_that_slurm_had_killed_belie_a_completed_job() {
    let own = "slurmstepd: error: Detected 1 oom_kill event in StepId=67.batch. Some of the step tasks have been OOM Killed.\n";
    let verdict = completed(&format!("done\n{own}"));
    assert_eq!(named(&verdict), "host_oom");
    let told = &verdict.causes[0].evidence;
    assert!(told.iter().any(|e| e.text.starts_with("State COMPLETED: ")), "{told:?}");
    // The log of another job, printed.
    assert_eq!(named(&completed(&own.replace("=67.", "=99."))), "Healthy");
}

#[test]
fn errors_of_the_library_are_known_in_other_languages() {
    // The messages are those of glibc's and bash's own catalogues (libc-l10n 2.36, bash 5.2).
    for (line, family) in [
        ("slurm_script: Zeile 7: mpirun: Kommando nicht gefunden.", "command_not_found"),
        ("slurm_script: ligne 7: mpirun : commande introuvable", "command_not_found"),
        ("cat: daten.txt: Datei oder Verzeichnis nicht gefunden", "file_not_found"),
        ("cat: donnees.txt: Aucun fichier ou dossier de ce type", "file_not_found"),
        ("cat: datos.txt: No existe el fichero o el directorio", "file_not_found"),
        ("bash: ./a.sh: Keine Berechtigung", "permission_denied"),
        ("touch: impossible de faire un touch '/x': Permission non accordée", "permission_denied"),
        ("bash: ./a.sh: Permiso denegado", "permission_denied"),
        (
            "cp: Fehler beim Schreiben von »x«: Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
            "disk_full",
        ),
        ("cp: error al escribir en 'x': No queda espacio en el dispositivo", "disk_full"),
        ("cp: erreur d'écriture de 'x': Débordement du quota d'espace disque", "disk_quota"),
        ("Speicherzugriffsfehler (Speicherabzug geschrieben)", "segfault"),
        ("Erreur de segmentation (core dumped)", "segfault"),
    ] {
        let verdict = judge(Some(&job("FAILED", 1, 0)), &[line]);
        assert_eq!(verdict.outcome, Outcome::Cause, "{line}");
        let first = &verdict.causes[0];
        assert_eq!(first.family.0, family, "{line}");
        assert_eq!(first.evidence[0].text, line, "the evidence is as it stands in the log");
    }
    // A line that only quotes the words of a warning names nothing.
    let verdict = judge(Some(&job("FAILED", 1, 0)), &["WARNING: x: Keine Berechtigung"]);
    assert_eq!(verdict.outcome, Outcome::Unknown);
}
