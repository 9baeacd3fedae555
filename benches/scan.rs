//! What a scan costs: a log of 1 GiB beside `rg` with the same literals on one thread, the memory
//! it takes, and what the matcher costs to build.
//!
//! Whole processes, medians of 5 in turn on a file in the page cache. Fails when a bound is
//! broken: half the time of `rg`, 64 MiB, 5 ms for the matcher of the built-in families, 30 ms for
//! ten times as many literals, 1 ms for a log of 35 lines.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes and reads clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jobwise::classify::Rules;
use jobwise::knowledge::built_in;
use jobwise::logs::{Limits, Scanner};

const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
const SIZE: u64 = 1 << 30;
const ROUNDS: usize = 5;
const CAUSE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n";

/// A log as a training run leaves it: steps, now and then a checkpoint or a warning, a few words
/// that messages of trouble have too; the cause in the middle.
fn write_log(path: &Path) {
    let mut log = BufWriter::with_capacity(1 << 20, File::create(path).expect("made"));
    let (mut written, mut step, mut caused) = (0_u64, 0_u64, false);
    while written < SIZE {
        let loss = 2.0 + f64::from(u32::try_from(step % 977).expect("small")) / 1000.0;
        let mut line = format!(
            "2026-11-30 {:02}:{:02}:{:02},{:03} INFO train.py:214 epoch {} step {step} loss {loss:.4} lr 3.0e-04 tokens/s {} gpu_mem 61.2GB\n",
            step / 36000 % 24,
            step / 600 % 60,
            step / 10 % 60,
            step % 10 * 100,
            step / 5000,
            41200 + step % 313,
        );
        match step % 1000 {
            100 => line.push_str("saving checkpoint to /scratch/run/checkpoints/last.pt (12.4 GB, 31 s)\n"),
            300 => line.push_str("UserWarning: the given NumPy array is not writable, and PyTorch does not support it\n"),
            500 => line.push_str("validation: mean absolute error 0.0312, timeout of the loader 120 s, 0 failed samples\n"),
            700 => line.push_str("[rank0]: prefetch queue 7/8, retrying shard 00017 after a slow read\n"),
            _ => {}
        }
        if !caused && written >= SIZE / 2 {
            line.push_str(CAUSE);
            caused = true;
        }
        log.write_all(line.as_bytes()).expect("written");
        written += line.len() as u64;
        step += 1;
    }
    log.flush().expect("written");
}

/// The time of a process, and the most memory it held, as the kernel counts it.
fn once(command: &mut Command) -> (Duration, u64) {
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("started");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("waited").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0));
        thread::sleep(Duration::from_millis(2));
    }
    (begun.elapsed(), peak << 10)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median time of many calls.
fn timed<T>(mut call: impl FnMut() -> T) -> Duration {
    let mut times = Vec::new();
    for _ in 0..21 {
        let begun = Instant::now();
        std::hint::black_box(call());
        times.push(begun.elapsed());
    }
    median(times)
}

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scan");
    fs::create_dir_all(&folder).expect("made");
    let mut broken = false;
    let mut bound = |name: &str, value: String, limit: &str, holds: bool| {
        println!("{name:<32} {value:>10}  (bound {limit}{})", if holds { "" } else { ": BROKEN" });
        broken |= !holds;
    };

    let literals = Rules::new(built_in().expect("sound")).literals();
    let more: Vec<String> = (0..10)
        .flat_map(|n| literals.iter().map(move |literal| format!("{literal} ({n})")))
        .collect();
    println!("{} literals", literals.len());
    let few = timed(|| Scanner::new(&literals));
    let many = timed(|| Scanner::new(&more));
    bound("matcher", format!("{few:.2?}"), "5 ms", few <= Duration::from_millis(5));
    bound(
        "matcher of 10 times as many",
        format!("{many:.2?}"),
        "30 ms",
        many <= Duration::from_millis(30),
    );
    let scanner = Scanner::new(&literals);
    let short: Vec<u8> =
        format!("{}{CAUSE}", "step 100 loss 2.0 lr 3.0e-04\n".repeat(34)).into_bytes();
    let small = timed(|| scanner.scan(&short, Limits { bytes: u64::MAX }));
    bound("a log of 35 lines", format!("{small:.2?}"), "1 ms", small < Duration::from_millis(1));

    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("rg is not installed: the scan of 1 GiB was not compared");
        return if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let log = folder.join("train.out");
    write_log(&log);
    let listed = Command::new(JOBWISE).args(["kb", "list", "--literals"]).output().expect("ran");
    let patterns = folder.join("literals");
    fs::write(&patterns, listed.stdout).expect("written");
    let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), 0);
    for round in 0..=ROUNDS {
        let mut rg = Command::new("rg");
        let rg = rg.args(["-F", "-j1", "--count", "-f"]).arg(&patterns).arg(&log);
        let (rg, _) = once(rg);
        let (jobwise, peak) = once(Command::new(JOBWISE).args(["diagnose", "--log"]).arg(&log));
        // The first round only fills the page cache.
        if round > 0 {
            theirs.push(rg);
            ours.push(jobwise);
            memory = memory.max(peak);
        }
    }
    fs::remove_dir_all(&folder).expect("removed");
    let (ours, theirs) = (median(ours), median(theirs));
    println!("rg -F -j1, 1 GiB                 {theirs:>10.2?}");
    println!("jobwise, 1 GiB                   {ours:>10.2?}");
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    bound("ratio", format!("{ratio:.2}"), "0.5", ratio <= 0.5);
    bound("peak memory", format!("{} MiB", memory >> 20), "64 MiB", memory < 64 << 20);
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
