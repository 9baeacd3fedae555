//! What it costs to read a history: `sacct` text of 100,000 and of 1,000,000 jobs with their steps.
//!
//! Each size is read by a process of its own, from a file that was written before, so that the
//! clock and the memory are the reader's alone. Fails when a bound is broken: 250 MB/s on one core,
//! a million jobs in at most 12 times the time of a hundred thousand, and in less than 1 GiB.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads files and clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::env;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use jobwise::host::{Runner, System};
use jobwise::sched::{Filter, Saved, Users};

const SIZES: [u32; 2] = [100_000, 1_000_000];
const ROUNDS: usize = 5;
const HEADING: &str = "JobID|State|ExitCode|DerivedExitCode|User|UID|Account|Cluster|Partition|QOS|\
                       Reason|Submit|Eligible|Start|End|Elapsed|Timelimit|ReqMem|NNodes|AllocCPUS|\
                       AllocTRES|NodeList|TotalCPU|NTasks|MaxRSS|Suspended|ConsumedEnergyRaw|\
                       TRESUsageInTot|TRESUsageOutTot|WorkDir|JobName|SubmitLine";

/// Three rows a job, in 200 workloads, as Slurm 22.05 prints them with epoch seconds.
fn write(path: &Path, jobs: u32) {
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    writeln!(out, "{HEADING}").expect("written");
    for job in 0..jobs {
        // Any numbers that look like many different ones.
        let chance = job.wrapping_mul(2_654_435_761) >> 8;
        let (state, exit) = match chance % 100 {
            0..80 => ("COMPLETED", "0:0"),
            80..90 => ("FAILED", "1:0"),
            90..96 => ("TIMEOUT", "0:0"),
            96..98 => ("OUT_OF_MEMORY", "0:125"),
            _ => ("CANCELLED by 1000", "0:0"),
        };
        let elapsed = 400 + chance % 6800;
        let span = |seconds: u32| {
            format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        };
        let start = 1_782_864_000 + job * 6;
        let (end, node, workload) = (start + elapsed, chance % 400, job % 200);
        let (wall, cpu, rss) = (span(elapsed), span(elapsed * 3), 1_000_000 + chance % 60_000_000);
        let gpu = if workload.is_multiple_of(3) { "gres/gpu=1," } else { "" };
        let tres = format!("cpu=8,{gpu}mem=64G,node=1");
        writeln!(
            out,
            "{job}|{state}|{exit}|0:0|alice|1000|physics|lab|batch|normal|None|{}|{}|{start}|{end}|\
             {wall}|02:00:00|64G|1|8|billing=8,{tres}|n{node:04}|{cpu}|||00:00:00|0|||\
             /home/alice/p{}|train-{workload}-{job}|sbatch run{workload}.sh",
            start - 90,
            start - 90,
            workload % 5,
            job = job + 1_000_000,
        )
        .expect("written");
        for step in ["batch", "extern"] {
            let rss = if step == "batch" { rss } else { 1956 };
            writeln!(
                out,
                "{job}.{step}|COMPLETED|0:0||||physics|lab||||{start}|{start}|{start}|{end}|{wall}||\
                 |1|8|{tres}|n{node:04}|{cpu}|1|{rss}K|00:00:00|0|cpu={cpu},energy=0,\
                 fs/disk=125829120,mem={rss}K,pages=0,vmem={rss}K|energy=0,fs/disk=41943040||{step}|",
                job = job + 1_000_000,
            )
            .expect("written");
        }
    }
    out.flush().expect("written");
}

/// Reads a file; prints CPU milliseconds and the peak of memory in KiB.
fn read(path: &Path) {
    let system = System::new(false);
    let content = system.open(path).expect("the file");
    let mut saved = Saved::new(TimeZone::UTC, Vec::new());
    saved.read(path, &*content).expect("a history");
    let history = saved.finish(&Filter {
        users: Users::All,
        states: Vec::new(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        qos: Vec::new(),
        clusters: Vec::new(),
        names: Vec::new(),
        since: Timestamp::MIN,
        until: Timestamp::MAX,
    });
    assert_eq!(history.rows.unreadable + history.rows.orphans, 0);
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let peak = peak.split_whitespace().next().expect("KiB");
    // User and system time in hundredths of a second (`man 5 proc`), after the name in brackets.
    let times = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = times.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    println!("{} {peak} {}", ticks * 10, history.runs.len());
}

fn main() -> ExitCode {
    if let Ok(path) = env::var("HISTORY_FILE") {
        read(Path::new(&path));
        return ExitCode::SUCCESS;
    }
    let mut broken = false;
    let mut medians = Vec::new();
    for jobs in SIZES {
        let path: PathBuf = env::temp_dir().join(format!("jobwise-history-{jobs}.txt"));
        write(&path, jobs);
        let bytes = fs::metadata(&path).expect("the file").len();
        let mut figures: Vec<(u64, u64)> = Vec::new();
        for _ in 0..ROUNDS {
            let child = Command::new(env::current_exe().expect("this program"))
                .env("HISTORY_FILE", &path)
                .output()
                .expect("this program");
            let text = String::from_utf8(child.stdout).expect("text");
            let numbers: Vec<u64> =
                text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
            assert_eq!(numbers.get(2), Some(&u64::from(jobs)), "{text}");
            figures.push((numbers[0], numbers[1]));
        }
        fs::remove_file(&path).expect("removed");
        figures.sort_unstable();
        let (millis, peak) = figures[ROUNDS / 2];
        let rate = bytes / 1000 / millis.max(1);
        println!(
            "{jobs:>9} jobs  {:>5} MB  {millis:>6} ms CPU  {rate:>4} MB/s  {:>5} MiB at most",
            bytes / 1_000_000,
            peak / 1024,
        );
        broken |= rate < 250 || peak / 1024 >= 1024;
        medians.push(millis);
    }
    broken |= medians[1] > medians[0] * 12;
    if broken {
        println!("a bound is broken");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
