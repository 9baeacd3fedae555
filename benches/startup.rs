//! What one call costs: `--help` beside `/bin/true`, and a diagnosis of the demo's recording.
//!
//! Whole processes, medians of 20, measured in turn so that load meets all alike. Fails when a
//! bound is broken: `--help` 5 ms over `/bin/true`, a diagnosis 50 ms.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes and reads clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
const ROUNDS: usize = 20;

fn once(program: &str, args: &[&str]) -> Duration {
    let begun = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program starts");
    let taken = begun.elapsed();
    assert!(status.success(), "{program} {args:?}: {status}");
    taken
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> ExitCode {
    let calls: [(&str, &[&str]); 3] =
        [("/bin/true", &[]), (JOBWISE, &["--help"]), (JOBWISE, &["diagnose", "--demo"])];
    let mut times = vec![Vec::new(); calls.len()];
    for round in 0..=ROUNDS {
        for (call, times) in calls.iter().zip(&mut times) {
            let taken = once(call.0, call.1);
            // The first round only warms the page cache.
            if round > 0 {
                times.push(taken);
            }
        }
    }
    let medians: Vec<Duration> = times.into_iter().map(median).collect();
    let help = medians[1].saturating_sub(medians[0]);
    println!("/bin/true          {:>8.2?}", medians[0]);
    println!("jobwise --help     {:>8.2?}  ({help:.2?} more, bound 5 ms)", medians[1]);
    println!("diagnose --demo    {:>8.2?}  (bound 50 ms)", medians[2]);
    if help > Duration::from_millis(5) || medians[2] > Duration::from_millis(50) {
        println!("a bound is broken");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
