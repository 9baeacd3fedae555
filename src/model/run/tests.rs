use jiff::Timestamp;

use super::*;
use crate::model::{Bytes, Source, Span, State, Step, StepId, Tres};

const GIB: u64 = Bytes::GIB;

/// A job that ran for so long on a number of CPUs and nodes.
fn job(state: &str, seconds: u64, cpus: u64, nodes: u64, allocated: &str) -> Job {
    Job {
        name: "train".to_owned(),
        user: Some("alice".to_owned()),
        submitted: at(1000),
        started: at(1060),
        ended: at(1060 + i64::try_from(seconds).expect("small")),
        elapsed: Known::Value(Span::seconds(seconds)),
        cpus: Known::Value(cpus),
        nodes: Known::Value(nodes),
        node_list: Some("n[1-9]".to_owned()),
        allocated: Tres::parse(allocated),
        ..Job::bare(JobId::whole(7), State::parse(state), Source::Accounting)
    }
}

fn at(second: i64) -> Known<Timestamp> {
    Timestamp::from_second(second).ok().into()
}

/// A step from a moment on, for so long, with CPU time in milliseconds and `TRESUsageInTot`.
fn step(id: &str, start: i64, seconds: u64, cpu: u64, total: &str) -> Step {
    let mut step = Step {
        started: at(start),
        elapsed: Known::Value(Span::seconds(seconds)),
        cpu_time: Known::Value(Span::millis(cpu)),
        tasks: Known::Value(1),
        nodes: Known::Value(1),
        node_list: Some("n1".to_owned()),
        ..Step::bare(StepId(id.to_owned()), State::parse("COMPLETED"))
    };
    step.usage.total = Tres::parse(total);
    step
}

fn rss(step: Step, kibibytes: u64) -> Step {
    Step { max_rss: Known::Value(Bytes(kibibytes * Bytes::KIB)), ..step }
}

fn run(job: &Job) -> Run {
    Run::of(job, &mut Names::default())
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("measured");
    assert!((found - expected).abs() < 5e-4, "{found} is not {expected}");
}

#[test]
fn a_million_runs_fit_a_quarter_of_a_gibibyte() {
    assert!(size_of::<Run>() <= 256, "{}", size_of::<Run>());
}

#[test]
fn cpu_time_is_the_sum_of_the_work_steps() {
    // Case 6: batch 00:00.037 and step .0 04:47:33 on 16 CPUs for 1081 s: 17253.037 s of 17296 s.
    // The row of the allocation, the extern step and the most of all steps are other numbers.
    let mut job = job("COMPLETED", 1081, 16, 1, "cpu=16");
    job.cpu_time = Known::Value(Span::seconds(1));
    job.steps = vec![
        step("batch", 1060, 1081, 37, ""),
        step("extern", 1060, 1081, 5_000, ""),
        step("0", 1061, 1080, 17_253_000, ""),
    ];
    let run = run(&job);
    assert_eq!(run.cpu_millis.get(), Some(17_253_037));
    near(run.cpu_use(), 17_253.037 / 17_296.0);
    // Only the allocation has one: that is then all there is.
    job.steps.clear();
    assert_eq!(Run::of(&job, &mut Names::default()).cpu_millis.get(), Some(1000));
}

#[test]
fn a_step_that_outlives_the_allocation_is_no_use_above_all() {
    // Case 7: cancelled after 5 s, its step ended after 8 s with 44.686 s of 8 cores: 69.8 %.
    let mut job = job("CANCELLED by 1001", 5, 8, 1, "cpu=8");
    job.steps = vec![step("0", 1060, 8, 44_686, "")];
    near(run(&job).cpu_use(), 0.698);
}

#[test]
fn a_hang_is_told_by_one_core_and_not_by_all() {
    let idle = Idle {
        least_seconds: 300,
        most_busy_permille: 10,
        most_bytes_per_second: 100 * Bytes::MIB,
    };
    let hang = |seconds, cpus, millis, total: &str| {
        let mut job = job("TIMEOUT", seconds, cpus, 1, "cpu=8");
        job.steps = vec![step("batch", 1060, seconds, millis, total)];
        run(&job).is_hang(&idle)
    };
    // Case 1: 0.539 s of CPU in 1815 s.
    assert_eq!(hang(1815, 1, 539, ""), Some(true));
    // Weakness 13: 12 CPU-seconds in two hours on 8 cores is no progress (10 was the cliff), and
    // 9 CPU-seconds in 600 s is some.
    assert_eq!(hang(7200, 8, 12_000, ""), Some(true));
    assert_eq!(hang(600, 1, 9_000, ""), Some(false));
    // One busy core of 128 is a waste and no hang; a copy works for the disks.
    assert_eq!(hang(7200, 128, 7_100_000, ""), Some(false));
    assert_eq!(hang(600, 1, 0, "fs/disk=107374182400"), Some(false));
    // Too short to tell; and what was not measured is not known.
    assert_eq!(hang(60, 1, 0, ""), Some(false));
    assert_eq!(run(&job("TIMEOUT", 600, 1, 1, "cpu=1")).is_hang(&idle), None);
}

#[test]
fn a_reading_of_zero_is_no_measurement() {
    // Case 17: the sampler had not run yet.
    let mut short = job("COMPLETED", 1, 1, 1, "cpu=1,mem=1G");
    short.steps = vec![rss(step("batch", 1060, 1, 10, "mem=0,energy=0"), 0)];
    let run = run(&short);
    assert_eq!(
        (run.task_memory.get(), run.node_memory.get(), run.joules.get()),
        (None, None, None)
    );
}

#[test]
fn what_the_extern_step_used_counts_when_it_can_be_true() {
    let peak = |extern_kib| {
        let mut job = job("COMPLETED", 3600, 4, 1, "cpu=4,mem=50G");
        let work = rss(step("batch", 1060, 3600, 1, ""), 4108);
        job.steps = vec![work, rss(step("extern", 1060, 3600, 1, ""), extern_kib)];
        run(&job).task_memory.get()
    };
    // Case 5: 15.7 GiB of 50 GiB in a shell on the node; 2.8 TiB of 50 GiB are nobody's.
    assert_eq!(peak(16_439_052), Some(16_439_052 * Bytes::KIB));
    assert_eq!(peak(3_000_000_000), Some(4108 * Bytes::KIB));
}

#[test]
fn memory_on_a_node_is_that_of_all_its_tasks() {
    // Case 18: 8 tasks of up to 10 GiB on one node use 76.3 GiB of 100 together.
    let mut job = job("COMPLETED", 3600, 8, 1, "cpu=8,mem=100G");
    let mut tasks = rss(step("0", 1060, 3600, 1, "mem=80000000K"), 10 << 20);
    tasks.tasks = Known::Value(8);
    job.steps = vec![tasks.clone()];
    let one = run(&job);
    assert_eq!(one.node_memory.get(), Some(80_000_000 * Bytes::KIB));
    assert_eq!(one.task_memory.get(), Some(10 * GIB));
    // The same on 2 nodes is half of it on each; 3 tasks on 2 nodes are two on one of them.
    job.nodes = Known::Value(2);
    job.steps = vec![Step { nodes: Known::Value(2), ..tasks.clone() }];
    assert_eq!(run(&job).node_memory.get(), Some(40_000_000 * Bytes::KIB));
    job.steps = vec![Step {
        nodes: Known::Value(2),
        tasks: Known::Value(3),
        max_rss: Known::NotGathered,
        ..tasks
    }];
    assert_eq!(run(&job).node_memory.get(), Some(80_000_000 * Bytes::KIB * 2 / 3));
}

#[test]
fn memory_of_steps_side_by_side_adds_up() {
    let fifteen = |id, start, node: &str| Step {
        node_list: Some(node.to_owned()),
        ..rss(step(id, start, 100, 1, ""), 15 << 20)
    };
    let used = |steps: Vec<Step>, nodes| {
        let mut job = job("COMPLETED", 400, 8, nodes, "cpu=8,mem=200G");
        job.steps = steps;
        run(&job).node_memory.get().map(|bytes| bytes / GIB)
    };
    // Four steps of 15 GiB at one time on one node, one after the other, and on four nodes.
    let four = |gap: i64, nodes: [&str; 4]| {
        let starts = (0..).map(|n| 1060 + n * gap);
        let ids = ["0", "1", "2", "3"].into_iter().zip(starts);
        nodes.iter().zip(ids).map(|(node, (id, at))| fifteen(id, at, node)).collect::<Vec<_>>()
    };
    assert_eq!(used(four(0, ["n1"; 4]), 1), Some(60));
    assert_eq!(used(four(100, ["n1"; 4]), 1), Some(15));
    assert_eq!(used(four(50, ["n1"; 4]), 1), Some(30));
    assert_eq!(used(four(0, ["n1", "n2", "n3", "n4"]), 4), Some(15));
}

#[test]
fn gpus_are_busy_for_a_share_of_all_their_time() {
    let busy = |gpus: u32, steps: &[(u64, &str)]| {
        let seconds: u64 = steps.iter().map(|(seconds, _)| seconds).sum();
        let mut job = job("COMPLETED", seconds, 8, 1, &format!("cpu=8,gres/gpu={gpus}"));
        let mut start = 1060;
        for (index, (seconds, total)) in steps.iter().enumerate() {
            job.steps.push(step(&index.to_string(), start, *seconds, 1, total));
            start += i64::try_from(*seconds).expect("small");
        }
        run(&job).gpu_use()
    };
    // Weakness 14: the counter is a sum over devices (360 on 4 is 90 %; 100 on 4 is one of four),
    // and a hot minute does not hide a cold hour: (60 x 95 + 3500 x 1) / 3560 = 2.58 %.
    near(busy(4, &[(3600, "gres/gpuutil=360,gres/gpumem=1G")]), 0.9);
    near(busy(4, &[(3600, "gres/gpuutil=100,gres/gpumem=1G")]), 0.25);
    near(busy(1, &[(60, "gres/gpuutil=95"), (3500, "gres/gpuutil=1")]), 0.0258);
    // 0 % beside no memory is how it looks where nothing is gathered.
    assert_eq!(busy(1, &[(3600, "gres/gpuutil=0,gres/gpumem=0")]), None);
    assert_eq!(busy(1, &[(3600, "")]), None);
}

#[test]
fn a_suspended_run_has_the_time_that_it_ran() {
    // Case 23: 8 s from start to end, 3 of them suspended.
    let mut job = job("COMPLETED", 5, 1, 1, "cpu=1");
    job.ended = at(1068);
    job.suspended = Known::Value(Span::seconds(3));
    let run = run(&job);
    assert_eq!((run.elapsed.get(), run.suspended.get()), (Some(5), Some(3)));
    assert_eq!(run.ended.get().zip(run.started.get()).map(|(e, s)| e - s), Some(8));
}

#[test]
fn a_request_for_memory_is_told_per_node() {
    let per_node = |bytes, scope, cpus, nodes, allocated: &str| {
        let mut job = job("COMPLETED", 5, cpus, nodes, allocated);
        job.requested_memory = bytes;
        job.requested_memory =
            job.requested_memory.map(|memory: Memory| Memory { scope, ..memory });
        run(&job).memory_per_node().map(|bytes| bytes / GIB)
    };
    let gib = |n: u64| Known::Value(Memory { bytes: Bytes(n * GIB), scope: MemoryScope::Job });
    // Case 2: `0n` is no request; what was allocated is 80 GiB. Case 3: 16 GiB are of both nodes.
    assert_eq!(per_node(Known::NotGathered, MemoryScope::Job, 8, 1, "mem=80G,node=1"), Some(80));
    assert_eq!(per_node(gib(16), MemoryScope::Job, 8, 2, "mem=16G,node=2"), Some(8));
    // Case 4: `2Gc`, 4 CPUs on 2 nodes.
    assert_eq!(per_node(gib(2), MemoryScope::Cpu, 4, 2, ""), Some(4));
    assert_eq!(per_node(gib(2), MemoryScope::Node, 4, 2, ""), Some(2));
}

#[test]
fn histories_merge_to_one_whatever_their_order() {
    let mut names = Names::default();
    let mut first = job("NODE_FAIL", 50, 1, 1, "cpu=1");
    let mut second = job("COMPLETED", 100, 1, 1, "cpu=1");
    (first.submitted, second.submitted) = (at(1000), at(1200));
    let other = Job { id: JobId::whole(8), ..second.clone() };
    let runs: Vec<Run> =
        [&first, &second, &other].into_iter().map(|job| Run::of(job, &mut names)).collect();
    let history = |indices: &[usize]| {
        let runs = indices.iter().map(|index| runs[*index]).collect();
        let mut history = History { names: names.clone(), runs, ..History::default() };
        history.settle();
        history
    };
    let whole = history(&[2, 0, 1]);
    assert_eq!(whole.runs.iter().map(|run| run.earlier).collect::<Vec<_>>(), [true, false, false]);
    for (one, two) in [(&[0][..], &[1, 2][..]), (&[2, 0], &[1]), (&[0, 1, 2], &[1, 2])] {
        let mut merged = history(two);
        merged.merge(&history(one));
        assert_eq!(merged.runs, whole.runs);
    }
    // Case 10: another owner, another name or years between: no requeue.
    for change in [
        (|job: &mut Job| job.user = Some("bob".to_owned())) as fn(&mut Job),
        |job| job.name = "other".to_owned(),
        |job| job.submitted = at(300_000_000),
    ] {
        let mut stranger = second.clone();
        change(&mut stranger);
        let runs = [&first, &stranger].into_iter().map(|job| Run::of(job, &mut names)).collect();
        let mut history = History { names: names.clone(), runs, ..History::default() };
        history.settle();
        assert!(history.runs.iter().all(|run| !run.earlier));
    }
}
