use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::config::Config;
use crate::model::{JobId, Known, Names, Source, State, StepId, Tres};

fn settings() -> (Idle, Thresholds) {
    let config = Config::recorded(None).expect("the defaults");
    let idle = &config.settings.idle;
    let small = |number: u64| u32::try_from(number).expect("small");
    let idle = Idle {
        least_seconds: small(idle.least_seconds),
        most_busy_permille: small(idle.most_busy_permille),
        most_bytes_per_second: idle.most_bytes_per_second,
    };
    (idle, config.settings.findings)
}

/// A job of so many seconds on CPUs, with CPU seconds and one step.
fn job(state: &str, seconds: u64, cpus: u64, cpu_millis: u64, allocated: &str) -> Job {
    let at = |second| Known::from(Timestamp::from_second(second).ok());
    let step = Step {
        started: at(1_796_000_000),
        elapsed: Known::Value(Span::seconds(seconds)),
        cpu_time: Known::Value(Span::millis(cpu_millis)),
        tasks: Known::Value(1),
        nodes: Known::Value(1),
        allocated: Tres::parse(allocated),
        ..Step::bare(StepId("batch".to_owned()), State::parse("COMPLETED"))
    };
    Job {
        uid: Known::Value(1001),
        started: at(1_796_000_000),
        ended: at(1_796_000_000 + i64::try_from(seconds).expect("small")),
        elapsed: Known::Value(Span::seconds(seconds)),
        cpus: Known::Value(cpus),
        nodes: Known::Value(1),
        node_list: Some("n1".to_owned()),
        allocated: Tres::parse(allocated),
        steps: vec![step],
        ..Job::bare(JobId::whole(7), State::parse(state), Source::Accounting)
    }
}

fn codes(job: &Job, cause: Option<&str>) -> Vec<&'static str> {
    let (idle, thresholds) = settings();
    let run = Run::of(job, &mut Names::default());
    let found = findings(job, &run, cause, &idle, &thresholds);
    // Whatever is said rests on a number.
    assert!(found.iter().all(|finding| !finding.figures.is_empty()));
    found.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_run_that_did_nothing_is_told_so_and_nothing_else_of_its_use() {
    // Case 1, and weakness 13: 12 CPU-seconds of 8 cores in two hours are no progress.
    assert_eq!(codes(&job("TIMEOUT", 1815, 1, 539, "cpu=1"), Some("time_limit")), ["did-nothing"]);
    let hung = job("TIMEOUT", 7200, 8, 12_000, "cpu=8,gres/gpu=4,mem=200G");
    assert_eq!(codes(&hung, Some("time_limit")), ["did-nothing"]);
    let mut completed = job("COMPLETED", 7200, 8, 12_000, "cpu=8,mem=200G");
    completed.limit = Known::Value(Span::seconds(86_400));
    completed.steps[0].max_rss = Known::Value(Bytes(Bytes::GIB));
    assert_eq!(codes(&completed, None), ["did-nothing"]);
    // 9 CPU-seconds in 600 s of one core are little, but no hang.
    assert!(codes(&job("COMPLETED", 600, 1, 9_000, "cpu=1"), None).is_empty());
}

#[test]
fn what_the_state_or_the_cause_explains_is_not_said_in_other_words() {
    for state in ["OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"] {
        assert!(codes(&job(state, 3600, 8, 100, "cpu=8,gres/gpu=1"), None).is_empty(), "{state}");
    }
    let failed = job("FAILED", 3600, 8, 100, "cpu=8");
    assert_eq!(codes(&failed, None), ["did-nothing"]);
    assert!(codes(&failed, Some("network_unreachable")).is_empty());
}

#[test]
fn a_step_s_end_is_told_where_the_job_s_hides_it() {
    // Case 13: completed, a step exited with 1; or was killed by signal 9.
    for (code, signal) in [(1, 0), (0, 9)] {
        let mut completed = job("COMPLETED", 60, 1, 1000, "cpu=1");
        let exit = crate::model::Exit { code, signal, folded: true };
        completed.derived_exit = Known::Value(exit);
        completed.steps[0].exit = Known::Value(exit);
        assert_eq!(codes(&completed, None), ["failed-step"]);
    }
    // Case 11: the kernel killed a step. Where the diagnosis says so, it is said once.
    let mut killed = job("COMPLETED", 60, 1, 1000, "cpu=1");
    killed.steps[0].state = State::parse("OUT_OF_MEMORY");
    assert_eq!(codes(&killed, None), ["step-out-of-memory"]);
    assert!(codes(&killed, Some("host_oom")).is_empty());
}

#[test]
fn gpus_are_judged_by_all_of_them_and_not_in_a_second() {
    let with = |seconds, total: &str| {
        let mut job = job("COMPLETED", seconds, 8, seconds * 4000, "cpu=8,gres/gpu=4");
        job.steps[0].usage.total = Tres::parse(total);
        codes(&job, None)
    };
    // One busy GPU of four is 25 %; 10 over all of them is 2.5 %.
    assert_eq!(with(3600, "gres/gpuutil=100,gres/gpumem=9G"), ["gpu-little-used"]);
    assert_eq!(with(3600, "gres/gpuutil=10,gres/gpumem=9G"), ["gpu-idle"]);
    assert!(with(3600, "gres/gpuutil=360,gres/gpumem=9G").is_empty());
    assert!(with(1, "gres/gpuutil=0,gres/gpumem=9G").is_empty());
    // Nothing measured, and the CPUs busy: nothing to say.
    assert!(with(3600, "").is_empty());
    let quiet = job("COMPLETED", 3600, 8, 100_000, "cpu=8,gres/gpu=4");
    assert_eq!(codes(&quiet, None), ["gpu-perhaps-idle"]);
}

#[test]
fn short_runs_are_not_told_that_they_asked_for_too_much() {
    // Weakness 20: a job of no time, "request much larger than needed".
    let small = |seconds| {
        let mut job = job("COMPLETED", seconds, 8, seconds * 1000, "cpu=8,mem=100G");
        job.limit = Known::Value(Span::seconds(86_400));
        job.steps[0].max_rss = Known::Value(Bytes(2 * Bytes::GIB));
        codes(&job, None)
    };
    assert!(small(0).is_empty() && small(60).is_empty());
    assert_eq!(small(3600), ["cpu-little-used", "memory-left-over", "time-left-over"]);
}

#[test]
fn memory_of_all_tasks_counts() {
    // Weakness 2: 8 tasks of 10 GiB have 76 of 100 GiB in use, not 10.
    let mut many = job("COMPLETED", 3600, 8, 20_000_000, "cpu=8,mem=100G");
    many.steps[0].tasks = Known::Value(8);
    many.steps[0].max_rss = Known::Value(Bytes(10 * Bytes::GIB));
    many.steps[0].usage.total = Tres::parse("mem=80000000K");
    assert!(codes(&many, None).is_empty());
}

#[test]
fn who_cancelled_is_told_where_it_was_another() {
    let cancelled =
        |by: &str| codes(&job(&format!("CANCELLED by {by}"), 60, 1, 1000, "cpu=1"), None);
    assert_eq!(cancelled("0"), ["cancelled-by-another"]);
    assert_eq!(cancelled("1002"), ["cancelled-by-another"]);
    assert!(cancelled("1001").is_empty());
}

#[test]
fn heavier_findings_come_first() {
    let (idle, thresholds) = settings();
    let mut busy = job("COMPLETED", 3600, 8, 1_000_000, "cpu=8,mem=100G");
    busy.limit = Known::Value(Span::seconds(86_400));
    busy.steps[0].state = State::parse("OUT_OF_MEMORY");
    let run = Run::of(&busy, &mut Names::default());
    let found = findings(&busy, &run, None, &idle, &thresholds);
    let weights: Vec<Weight> = found.iter().map(|finding| finding.weight).collect();
    assert!(weights.len() > 2 && weights.is_sorted(), "{found:?}");
}

/// Findings of which two cannot hold of one run.
const CONTRADICTIONS: [(&str, &[&str]); 8] = [
    (
        "did-nothing",
        &[
            "cpu-little-used",
            "cpu-time-above-all",
            "gpu-perhaps-idle",
            "kernel-time",
            "memory-left-over",
            "time-left-over",
        ],
    ),
    ("gpu-idle", &["gpu-little-used", "gpu-perhaps-idle"]),
    ("gpu-little-used", &["gpu-perhaps-idle"]),
    ("memory-above-limit", &["memory-left-over"]),
    ("step-out-of-memory", &["memory-left-over", "memory-above-limit", "failed-step"]),
    ("step-out-of-memory", &["page-faults"]),
    ("cpu-time-above-all", &["cpu-little-used", "gpu-perhaps-idle"]),
    ("cancelled-by-another", &["failed-step", "time-left-over", "memory-left-over"]),
];

/// Any run that accounting could tell of, sensible or not.
fn any_job() -> impl Strategy<Value = Job> {
    let states = vec![
        "COMPLETED",
        "FAILED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "NODE_FAIL",
        "CANCELLED by 0",
        "PREEMPTED",
        "RUNNING",
        "DEADLINE",
        "X",
    ];
    let amount = || prop::sample::select(vec![0_u64, 1, 9, 60, 600, 7200, 400_000]);
    let bytes =
        || prop::sample::select(vec![0, 1 << 20, 1 << 30, 10 << 30, 99 << 30, u64::MAX >> 1]);
    let tres = prop::sample::select(vec!["cpu=8", "cpu=8,mem=100G", "cpu=8,mem=1G,gres/gpu=4"]);
    let used = prop::sample::select(vec![
        "",
        "gres/gpuutil=0,gres/gpumem=0",
        "gres/gpuutil=3,gres/gpumem=1G",
        "gres/gpuutil=100,mem=90G",
        "gres/gpuutil=400,gres/gpumem=1G,fs/disk=90T",
    ]);
    let (states, killed) = (prop::sample::select(states), any::<[bool; 3]>());
    (states, amount(), 1_u64..129, amount(), tres, used, bytes(), bytes(), amount(), killed)
        .prop_map(
            |(
                state,
                seconds,
                cpus,
                cpu,
                tres,
                used,
                most,
                average,
                other,
                [killed, exclusive, failed],
            )| {
                let mut job = job(state, seconds, cpus, cpu * 1000, tres);
                job.limit = Known::Value(Span::seconds(7200));
                job.suspended = Known::Value(Span::seconds(other));
                job.exclusive = Known::Value(exclusive);
                let step = &mut job.steps[0];
                step.tasks = Known::Value(cpus);
                step.max_rss = Known::Value(Bytes(most));
                step.usage.total = Tres::parse(used);
                step.usage.average_rss = Known::Value(Bytes(average));
                step.usage.average_cpu = Known::Value(Span::seconds(cpu));
                step.usage.least_cpu = Known::Value(Span::seconds(other));
                step.usage.system_cpu = Known::Value(Span::seconds(other));
                step.usage.page_faults = Known::Value(other);
                if killed {
                    step.state = State::parse("OUT_OF_MEMORY");
                }
                if failed {
                    let exit = crate::model::Exit { code: 1, signal: 0, folded: false };
                    job.derived_exit = Known::Value(exit);
                }
                job
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Weakness 6: whatever is recorded and whatever the cause, no finding speaks against another,
    /// the state or the cause; each has figures that are numbers.
    #[test]
    fn no_two_findings_contradict(
        job in any_job(),
        cause in prop::sample::select(vec![
            None, Some("time_limit"), Some("hang"), Some("host_oom"), Some("cuda_oom"),
        ]),
    ) {
        let (idle, thresholds) = settings();
        let run = Run::of(&job, &mut Names::default());
        let found = findings(&job, &run, cause, &idle, &thresholds);
        let has = |code: &str| found.iter().any(|finding| finding.code == code);
        for (one, others) in CONTRADICTIONS {
            let against = others.iter().find(|other| has(one) && has(other));
            prop_assert!(against.is_none(), "{one} and {against:?} of {job:?}");
        }
        let little = ["did-nothing", "cpu-little-used", "gpu-idle", "gpu-little-used", "gpu-perhaps-idle"];
        if matches!(cause, Some("host_oom" | "cuda_oom")) {
            prop_assert!(!little.iter().any(|code| has(code)), "{found:?}");
        }
        if cause == Some("host_oom") || job.state.base == BaseState::OutOfMemory {
            prop_assert!(!has("step-out-of-memory") && !has("memory-left-over"), "{found:?}");
        }
        if job.state.base != BaseState::Completed {
            let well = ["failed-step", "time-left-over", "memory-left-over"];
            prop_assert!(!well.iter().any(|code| has(code)), "{found:?}");
        }
        for finding in &found {
            prop_assert!(!finding.figures.is_empty() && !finding.action.is_empty());
            prop_assert!(finding.figures.iter().all(|figure| figure.value.is_finite()));
        }
        let codes: std::collections::BTreeSet<&str> = found.iter().map(|found| found.code).collect();
        prop_assert_eq!(codes.len(), found.len());
    }
}
