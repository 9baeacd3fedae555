//! What may not be asked for, what was measured wrongly, and what broke off.

use super::*;
use crate::model::{Caps, Qos, Tres};

/// A QOS that allows eight hours, 8 CPUs and 48 GiB for a job.
fn short() -> Limits {
    let qos = Qos {
        name: "short".to_owned(),
        job: Caps {
            tres: Tres::parse("cpu=8,mem=48G"),
            wall: Known::Value(Span::seconds(8 * 3600)),
            ..Caps::default()
        },
        ..Qos::default()
    };
    limits().under(Some("short"), &[qos])
}

fn under(limits: &Limits, flag: Flag, runs: &[Run]) -> Advice {
    let found = advised(runs, Some(limits)).into_iter().find(|advice| advice.flag == flag);
    found.expect("advice on every option")
}

#[test]
fn no_more_is_advised_than_the_quality_of_service_allows() {
    // Six hours of at most five needed: 5 h + 30 % = 6:30; of eight needed 10:24, but 8 is the most.
    let long = |hours: u32| {
        runs(4, move |_, run| {
            run.limit = Allowance::Seconds(6 * HOUR);
            run.elapsed = Maybe::some(hours * HOUR);
            run.cpu_millis = Maybe::some(u64::from(hours * HOUR) * 950);
        })
    };
    let fits = under(&short(), Flag::Time, &long(5));
    assert_eq!((fits.verdict, fits.suggestion), (Verdict::Keep, None), "{fits:?}");
    // Six hours are a fifth more than five.
    assert!(fits.because.ends_with("that leaves 20 % headroom"), "{}", fits.because);
    let time = under(&short(), Flag::Time, &long(8));
    assert_eq!((time.verdict, time.suggestion), (Verdict::Capped, Some(hours(8))));
    assert!(time.because.contains("QOS short allows 08:00:00 at most"), "{}", time.because);
    // Without the QOS 10:24 becomes 10:30, as the partition allows a day.
    let free = under(&limits(), Flag::Time, &long(8));
    assert_eq!(free.suggestion, Some(Amount::Time(Span::seconds(10 * 3600 + 1800))));

    // Killed three times at 32 GiB: twice that is more than 48.
    let dead: Vec<Run> = (0..3).map(|number| killed(number, 32 * GIB)).collect();
    let memory = under(&short(), Flag::Memory, &dead);
    assert_eq!((memory.verdict, memory.suggestion), (Verdict::Capped, Some(gib(48))));
    assert!(memory.because.contains("QOS short allows 48G for a job"), "{}", memory.because);
    // On two nodes that is 24 for each, and they had 32.
    let mut both = dead;
    for run in &mut both {
        run.nodes = Maybe::some(2);
        run.allocated_memory = Maybe::some(64 * GIB);
    }
    let memory = under(&short(), Flag::Memory, &both);
    assert_eq!((memory.verdict, memory.suggestion), (Verdict::Capped, None), "{memory:?}");

    // Runs on 16 cores were twice as fast, but 8 is the most.
    let scaled = runs(8, |number, run| {
        let (cpus, seconds) = if number < 4 { (16, HOUR / 2) } else { (4, 2 * HOUR) };
        run.cpus = Maybe::some(cpus);
        run.elapsed = Maybe::some(seconds);
        run.cpu_millis = Maybe::some(u64::from(seconds * cpus) * 960);
    });
    let cores = under(&short(), Flag::CpusPerTask, &scaled);
    assert_eq!((cores.verdict, cores.suggestion), (Verdict::Capped, Some(Amount::Count(8))));
    assert!(cores.because.ends_with("QOS short allows 8 CPUs for a job at most"));
    assert_eq!(under(&limits(), Flag::CpusPerTask, &scaled).suggestion, Some(Amount::Count(16)));
}

#[test]
fn a_limit_below_what_is_asked_for_is_no_reason_to_ask_for_less() {
    // They took eight hours, with a limit of twelve; since then the QOS allows eight at most.
    let long = runs(4, |_, run| {
        run.limit = Allowance::Seconds(12 * HOUR);
        run.elapsed = Maybe::some(12 * HOUR - 60);
        run.cpu_millis = Maybe::some(u64::from(HOUR) * 11_000);
    });
    let advice = under(&short(), Flag::Time, &long);
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Capped, None), "{advice:?}");
    assert_eq!(advice.directive(), None);
}

#[test]
fn what_was_measured_above_its_own_limit_says_nothing() {
    let above = |count: u32| {
        runs(20, move |number, run| {
            run.allocated_memory = Maybe::some(64 * GIB);
            run.node_memory = Maybe::some(if number < count { 70 } else { 5 } * GIB);
        })
    };
    // Four of twenty: whatever the others say may be as wrong.
    let advice = on(Flag::Memory, &above(4));
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Unknown, None));
    assert!(advice.because.starts_with("4 of 20 runs were measured above their own limit"));
    // Two of twenty are a slip of the sampler: 5 GiB + 10 % = 5.5.
    let advice = on(Flag::Memory, &above(2));
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Lower, Some(gib(6))));
    assert!(advice.because.contains("2 runs left out, measured above the limit they had"));
}

#[test]
fn more_time_is_not_advised_where_as_many_hung_as_ran_out_of_it() {
    let ended = |hung: u32| {
        runs(12, move |number, run| {
            if number < 6 {
                run.state = BaseState::Timeout;
                run.elapsed = Maybe::some(2 * HOUR);
                let busy = if number < hung { 500 } else { u64::from(HOUR) * 1900 };
                run.cpu_millis = Maybe::some(busy);
            }
        })
    };
    assert_eq!(on(Flag::Time, &ended(2)).verdict, Verdict::Raise);
    let advice = on(Flag::Time, &ended(3));
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Unknown, None));
    assert!(advice.because.contains("3 runs left out that hung: as many as reached it"));
}

#[test]
fn what_hung_is_no_measure_of_memory() {
    // Three did nothing with 1 GiB, three worked with 3 of 4.
    let hung = runs(6, |number, run| {
        if number % 2 == 0 {
            run.cpu_millis = Maybe::some(500);
            run.node_memory = Maybe::some(GIB);
        } else {
            run.node_memory = Maybe::some(3 * GIB);
        }
    });
    let advice = on(Flag::Memory, &hung);
    assert_eq!((advice.verdict, advice.runs), (Verdict::Keep, 3), "{advice:?}");
    let all = runs(6, |_, run| run.cpu_millis = Maybe::some(500));
    assert_eq!(on(Flag::Memory, &all).verdict, Verdict::Unknown);
}

#[test]
fn runs_that_broke_off_count_as_long_as_they_were_seen() {
    // Two took an hour, one was preempted after an hour, one took two. Of three complete runs one
    // third took longer than an hour; but of four that were there at an hour two ended, which leaves
    // one half (Kaplan and Meier), and at a risk of 0.4 that is too many: two hours, + 30 %.
    let cut = runs(4, |number, run| {
        run.limit = Allowance::Seconds(2 * HOUR);
        match number {
            2 => run.state = BaseState::Preempted,
            3 => run.elapsed = Maybe::some(2 * HOUR),
            _ => {}
        }
    });
    let borrowed: Vec<&Run> = cut.iter().collect();
    let time = |risk: f64, runs: &[&Run]| {
        sizing(runs, &History::default(), None, &Basis { risk, ..BASIS }).swap_remove(0)
    };
    let advice = time(0.4, &borrowed);
    assert_eq!(advice.quantile, Some(hours(2)), "{advice:?}");
    // 2:36, to the quarter.
    assert_eq!(advice.suggestion, Some(Amount::Time(Span::seconds(2 * 3600 + 45 * 60))));
    let complete: Vec<&Run> = borrowed.iter().copied().filter(|run| run.is_completed()).collect();
    assert_eq!(time(0.4, &complete).quantile, Some(hours(1)));
}

#[test]
fn memory_per_gpu_is_asked_for_per_gpu() {
    let mut history = History::default();
    let line = history.names.intern("sbatch --gpus=4 --mem-per-gpu=32G train.sh");
    let runs = runs(4, |_, run| {
        run.submit_line = Some(line);
        run.gpus = Maybe::some(4);
        run.allocated_memory = Maybe::some(128 * GIB);
        run.node_memory = Maybe::some(40 * GIB);
    });
    let runs: Vec<&Run> = runs.iter().collect();
    let advice = &sizing(&runs, &history, None, &BASIS)[1];
    // 40 GiB + 30 % = 52, over four GPUs 13.
    assert_eq!((advice.flag, advice.now), (Flag::MemoryPerGpu, Some(gib(32))));
    assert_eq!(advice.directive().as_deref(), Some("#SBATCH --mem-per-gpu=13G"));
}

#[test]
fn a_request_that_was_changed_is_held_against_what_runs_had_then() {
    // They kept 16 of 16 cores busy; the last asked for one.
    let changed = runs(5, |number, run| {
        let cpus = if number < 4 { 16 } else { 1 };
        run.cpus = Maybe::some(cpus);
        run.cpu_millis = Maybe::some(u64::from(HOUR * cpus) * 990);
    });
    let advice = on(Flag::CpusPerTask, &changed);
    assert_eq!((advice.verdict, advice.suggestion), (Verdict::Keep, None));
    assert!(advice.because.contains("15.84 of 16, before it had 1"), "{}", advice.because);
}

#[test]
fn every_option_has_a_verdict_and_its_evidence() {
    let all = runs(12, |number, run| {
        run.part = RunPart::Task(number);
        run.gpus = Maybe::some(2);
        run.gpu_permille = Maybe::some(990);
        run.nodes = Maybe::some(2);
        run.cpus = Maybe::some(4);
        run.cpu_millis = Maybe::some(u64::from(HOUR) * 3900);
        run.allocated_memory = Maybe::some(8 * GIB);
    });
    let advice = advised(&all, Some(&limits()));
    let flags: Vec<&str> = advice.iter().map(|advice| advice.flag.option()).collect();
    assert_eq!(flags, ["time", "mem", "cpus-per-task", "gpus", "nodes", "array"]);
    for advice in advice {
        let runs = ["12 ", "how many GPUs a node has"];
        assert!(runs.iter().any(|begin| advice.because.starts_with(begin)), "{advice:?}");
    }
}
