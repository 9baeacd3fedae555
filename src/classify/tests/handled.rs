//! Errors that a program got over before the end, and harmless lines beside the end itself.

use super::verdicts::{exit, job, judge, named, step};
use crate::model::{Bytes, Job, Known, Span, Tres};

fn timed_out() -> Job {
    let mut job = job("TIMEOUT", 0, 0);
    job.elapsed = Known::Value(Span::seconds(36_010));
    job.limit = Known::Value(Span::seconds(36_000));
    job.cpu_time = Known::Value(Span::seconds(35_000));
    job
}

const LIMIT: &str =
    "slurmstepd: error: *** JOB 67 ON c01 CANCELLED AT 2026-11-30T20:34:25 DUE TO TIME LIMIT ***\n";

#[test]
fn an_error_that_a_run_worked_on_behind_did_not_end_it_at_its_limit() {
    for error in [
        "OSError: [Errno 28] No space left on device (checkpoint skipped)",
        "ModuleNotFoundError: No module named 'apex'",
        "wandb: Network error (ConnectionError), HTTPSConnectionPool(host='api.wandb.ai', port=443): Max retries exceeded with url: /graphql",
        "Lmod has detected the following error: The following module(s) are unknown: \"gcc/12.3\"",
        "fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com",
    ] {
        let log = format!("epoch 1\n{error}\nepoch 2\nepoch 3\n{LIMIT}");
        assert_eq!(named(&judge(Some(&timed_out()), &[&log])), "time_limit", "{error}");
        // What is the last thing that a run said may well be why it stood still.
        let log = format!("epoch 1\nepoch 2\n{error}\n{LIMIT}");
        assert_ne!(named(&judge(Some(&timed_out()), &[&log])), "Unknown", "{error}");
    }
    let crashed = format!("epoch 1\nepoch 2\nCUDA out of memory\n{LIMIT}");
    assert_eq!(named(&judge(Some(&timed_out()), &[&crashed])), "cuda_oom");
}

#[test]
fn a_handled_error_does_not_explain_the_exception_that_ends_the_log() {
    let raised = "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 9, in <module>\n    main()\n";
    // The words of Lightning's batch size finder.
    let found = "Batch size 256 failed: CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 15.77 GiB total capacity)\nFinished batch size finder, will continue with full run using batch size 128\nEpoch 0: 100%|##########| 100/100\n";
    let log = format!(
        "{found}{raised}TypeError: evaluate() missing 1 required positional argument: 'x'\n"
    );
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "application_error");
    let caught = "caught expected torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB -> reducing batch size to 16\nepoch 1 done\n";
    let log = format!(
        "{caught}{raised}json.decoder.JSONDecodeError: Expecting ',' delimiter: line 3 column 5 (char 42)\n"
    );
    assert_ne!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "cuda_oom");
    // Without work in between it is what the exception comes from.
    let log = format!("CUDA out of memory. Tried to allocate 20.00 GiB\n{raised}TypeError: x\n");
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "cuda_oom");
}

#[test]
fn workers_that_die_at_once_write_over_each_others_line_ends() {
    let frames = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n  File \"/usr/lib/python3.11/multiprocessing/spawn.py\", line 132, in _main\n";
    let log = format!(
        "{frames}{frames}    self = reduction.pickle.load(from_parent)MemoryError\n    self = reduction.pickle.load(from_parent)MemoryError\n"
    );
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "app_alloc_failure");
}

#[test]
fn a_worker_of_r_that_died_left_no_damaged_file() {
    let log = "Error in unserialize(node$con) : error reading from connection\nCalls: parLapply -> recvResult\nExecution halted\n";
    let verdict = named(&judge(Some(&job("FAILED", 1, 0)), &[log]));
    assert!(["peer_lost", "Unknown"].contains(&verdict.as_str()), "{verdict}");
}

#[test]
fn looks_at_the_systems_own_folders_explain_no_crash() {
    let mkdir = "mkdir: cannot create directory '/run/user/1000': Permission denied\nFontconfig error: No writable cache directories\nassertion failed: n > 0, file solver.c\n/var/spool/slurmd/job1/slurm_script: line 4: 1234 Aborted                 (core dumped) ./solver\n";
    assert_eq!(named(&judge(Some(&job("FAILED", 134, 0)), &[mkdir])), "segfault");
    let cat = "cat: /sys/fs/cgroup/memory/memory.limit_in_bytes: No such file or directory\nSimulation finished\n./post.sh: line 3: 1234 Segmentation fault (core dumped) ./post\n";
    assert_eq!(named(&judge(Some(&job("FAILED", 139, 0)), &[cat])), "segfault");
}

#[test]
fn a_driver_that_does_not_answer_is_the_sites_where_a_gpu_was_given() {
    let log = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n";
    let mut given = job("FAILED", 9, 0);
    given.allocated = Tres::parse("billing=1,cpu=1,gres/gpu=1,mem=100M,node=1");
    assert_eq!(named(&judge(Some(&given), &[log])), "gpu_driver");
    assert_eq!(named(&judge(Some(&job("FAILED", 9, 0)), &[log])), "gpu_not_visible");
}

#[test]
fn a_kill_is_of_memory_where_its_peak_says_so() {
    let log =
        "/var/spool/slurmd/job1/slurm_script: line 4: 1234 Killed                  ./assemble\n";
    let with = |code, signal, peak: u64| {
        let mut job = job("FAILED", code, signal);
        job.allocated = Tres::parse("billing=1,cpu=1,mem=1000M,node=1");
        let mut batch = step("batch", "FAILED", code, signal);
        batch.max_rss = Known::Value(Bytes(peak * Bytes::MIB));
        job.steps = vec![batch];
        job
    };
    for (code, signal) in [(137, 0), (0, 9)] {
        let verdict = judge(Some(&with(code, signal, 950)), &[log]);
        assert_eq!(named(&verdict), "host_oom", "{code}:{signal}");
        let told = &verdict.causes[0].evidence;
        assert!(told.iter().any(|e| e.text.starts_with("MaxRSS ")), "{told:?}");
        assert_eq!(named(&judge(Some(&with(code, signal, 500)), &[log])), "Unknown");
        assert_eq!(named(&judge(Some(&job("FAILED", code, signal)), &[log])), "Unknown");
    }
    assert!(exit(137, 0).is_value());
}

#[test]
fn everyday_messages_of_other_languages_are_known() {
    for (line, family) in [
        ("double free or corruption (out)", "segfault"),
        (
            "Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so.2 or libmkl_def.so.2.",
            "shared_lib_missing",
        ),
        (
            "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
            "host_oom",
        ),
        ("Error: vector memory exhausted (limit reached?)\nExecution halted", "app_alloc_failure"),
    ] {
        assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[line])), family, "{line}");
    }
}

/// Lines of work.
fn steps() -> String {
    (1..60).map(|step| format!("step {step} loss=0.{step}\n")).collect::<Vec<_>>().concat()
}

#[test]
fn an_error_that_was_got_over_does_not_explain_an_end_that_nothing_explains() {
    let import = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    import cupy\nModuleNotFoundError: No module named 'cupy'\n";
    let over = format!("{import}cupy not found, falling back to numpy\n{}", steps());
    let judge = |state, code, signal, end: &str| {
        named(&judge(Some(&job(state, code, signal)), &[&format!("{over}{end}")]))
    };
    assert_eq!(judge("FAILED", 139, 0, "Segmentation fault (core dumped)\n"), "segfault");
    assert_eq!(judge("FAILED", 0, 11, ""), "segfault");
    let forrtl = "forrtl: severe (174): SIGSEGV, segmentation fault occurred\n";
    assert_eq!(judge("FAILED", 174, 0, forrtl), "segfault");
    assert_eq!(judge("FAILED", 1, 0, "FATAL: negative density in cell 12\n"), "Unknown");
    assert_eq!(judge("FAILED", 137, 0, "Killed\n"), "Unknown");
    // Without the work behind it, it is the best that is known.
    assert_eq!(
        named(&super::verdicts::judge(Some(&job("FAILED", 1, 0)), &[import])),
        "python_import"
    );
}

#[test]
fn work_behind_an_error_takes_the_lead_from_it_where_something_else_ended_the_run() {
    let full = "OSError: [Errno 28] No space left on device: '/tmp/x'\n";
    let tool = "bash: line 3: nvidia-smi: command not found\n";
    let steps = steps();
    let judged = |code, log: String| named(&judge(Some(&job("FAILED", code, 0)), &[&log]));
    assert_eq!(judged(139, format!("{full}{steps}Segmentation fault (core dumped)\n")), "segfault");
    assert_eq!(judged(1, format!("{tool}{steps}FATAL: energy not conserved\n")), "Unknown");
    // Nothing else ended it: what is known is told.
    assert_eq!(judged(1, format!("{tool}{steps}")), "command_not_found");
}

#[test]
fn a_step_that_was_tried_again_with_success_did_not_end_the_job() {
    let killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=67.0. Some of the step tasks have been OOM Killed.\nsrun: error: c01: task 0: Out Of Memory\n";
    let rest = format!(
        "{}python: can't open file 'eval.py': [Errno 2] No such file or directory\n",
        steps()
    );
    let log = format!("{killed}retry with 2 workers: ok\n{rest}");
    assert_eq!(named(&judge(Some(&job("FAILED", 2, 0)), &[&log])), "file_not_found");
}

#[test]
fn a_submission_that_was_taken_the_second_time_was_not_refused() {
    let refused = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n";
    let log = format!(
        "{refused}retry with account b\nSubmitted batch job 991\nwaiting for 991\nFATAL: child 991 failed\n"
    );
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&log])), "Unknown");
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[refused])), "submit_account");
}

#[test]
fn a_crash_right_behind_an_error_tells_no_more_than_the_error() {
    let crash = "/var/spool/slurmd/job1/slurm_script: line 9: 41734 Segmentation fault      (core dumped) ./run\n";
    let judged = |code, log: String| named(&judge(Some(&job("FAILED", code, 0)), &[&log]));
    let library = "Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open shared object file: No such file or directory\n";
    assert_eq!(judged(139, format!("{library}{crash}")), "shared_lib_missing");
    // bamaddrg's message where the paths are wrong.
    let input = "could not open input BAM files\n";
    assert_eq!(judged(139, format!("{input}{crash}")), "file_not_found");
    // With work in between, or before the error, it is a crash of its own.
    assert_eq!(judged(139, format!("{library}{}{crash}", steps())), "segfault");
    assert_eq!(judged(139, format!("{crash}{library}")), "segfault");
    // The watchdog's own end, as PyTorch writes it.
    let watchdog = "[rank2]:[E1119 13:21:12.514402210 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800001 milliseconds before timing out.\nterminate called after throwing an instance of 'c10::DistBackendError'\n./train.sh: line 184: 2324239 Aborted                 (core dumped) python train.py\n";
    assert_eq!(judged(134, watchdog.to_owned()), "nccl_timeout");
}

#[test]
fn a_kill_that_a_wrapper_tells_is_of_memory_where_its_peak_says_so() {
    // Trinity ends with 25 when a stage of it was killed.
    let log = "sh: line 1:  2741 Killed                  inchworm --kmers jellyfish.kmers.fa\nError encountered\n";
    let with = |peak: u64| {
        let mut job = job("FAILED", 25, 0);
        job.allocated = Tres::parse("billing=1,cpu=1,mem=1000M,node=1");
        let mut batch = step("batch", "FAILED", 25, 0);
        batch.max_rss = Known::Value(Bytes(peak * Bytes::MIB));
        job.steps = vec![batch];
        job
    };
    assert_eq!(named(&judge(Some(&with(990)), &[log])), "host_oom");
    assert_eq!(named(&judge(Some(&with(500)), &[log])), "Unknown");
}

#[test]
fn a_step_that_was_never_made_is_no_success() {
    let lost = "srun: error: slurm_receive_msg: Socket timed out on send/recv operation\nsrun: error: Unable to confirm allocation for job 3178522: Socket timed out on send/recv operation\n";
    let judged = |log: &str| judge(Some(&job("COMPLETED", 0, 0)), &[log]);
    assert_eq!(named(&judged(lost)), "slurm_controller");
    let later = format!("{lost}trying again\n{}", steps());
    assert_eq!(judged(&later).outcome, crate::model::Outcome::Healthy);
}

#[test]
fn what_only_looked_gives_way_to_what_ended_the_run() {
    let look = "./job.sh: line 4: nvidia-smi: command not found\n";
    let oom = "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 9, in step\n    loss.backward()\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
    assert_eq!(named(&judge(Some(&job("FAILED", 1, 0)), &[&format!("{look}{oom}")])), "cuda_oom");
    assert_eq!(named(&judge(Some(&job("FAILED", 127, 0)), &[look])), "command_not_found");
}

#[test]
fn successes_that_frighten_are_no_failures() {
    // The banner of OpenFOAM of ESI, which traps what is named there.
    let banner =
        "trapFpe: Floating point exception trapping enabled (FOAM_SIGFPE).\nTime = 1\nEnd\n";
    // CPython 3.11, of a thread; and multiprocessing, of a child.
    let raised = "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/threading.py\", line 1038, in run\nKeyError: 'x'\n";
    let thread = format!("all 19 samples done\nException in thread Thread-1 (work):\n{raised}");
    let child = format!("all 19 samples done\nProcess Process-1:\n{raised}");
    let caught = "numpy.linalg.LinAlgError: Singular matrix - using pinv\ndone\n";
    for log in [banner, &thread, &child, caught] {
        let verdict = judge(Some(&job("COMPLETED", 0, 0)), &[log]);
        assert_eq!(verdict.outcome, crate::model::Outcome::Healthy, "{log}");
    }
    let qe = "     convergence NOT achieved after 100 iterations: stopping\n     JOB DONE.\n";
    assert_eq!(named(&judge(Some(&job("COMPLETED", 0, 0)), &[qe])), "numeric_divergence");
}
