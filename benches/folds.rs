//! What answers about many runs cost: `overview`, `sizing` and `stats` of 100,000 jobs with their
//! steps, beside slurmpast 0.9.0 where that is installed (`SLURMPAST=PATH`, or in `PATH`).
//!
//! Both programs ask the same `sacct` for the columns that each of them wants: this program under
//! another name, whose own time is taken off on both sides. Fails when a bound is broken: a
//! thirtieth of slurmpast's CPU time and half its memory; one workload of 100,000 runs in no more
//! than 1.2 times the time of the same runs over 200.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes and reads clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
const JOBS: u32 = 100_000;
/// 2026-07-01 in UTC; one job every six seconds, so all of them begin within a week.
const BASE: u32 = 1_782_864_000;
const ROUNDS: usize = 5;

/// Columns that Slurm 22.05 has and either program asks for.
const FIELDS: &str = "Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID AveCPU AveCPUFreq \
    AveDiskRead AveDiskWrite AvePages AveRSS AveVMSize Cluster Comment Constraints ConsumedEnergy \
    ConsumedEnergyRaw CPUTime CPUTimeRAW DerivedExitCode Elapsed ElapsedRaw Eligible End ExitCode \
    Flags GID Group JobID JobIDRaw JobName Layout MaxDiskRead MaxDiskReadNode MaxDiskWrite \
    MaxDiskWriteNode MaxPages MaxPagesNode MaxRSS MaxRSSNode MaxRSSTask MaxVMSize MaxVMSizeNode \
    MinCPU MinCPUNode MinCPUTask NCPUS NNodes NodeList NTasks Partition Priority QOS Reason \
    ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqMem ReqNodes ReqTRES Reservation Reserved \
    Start State Submit SubmitLine Suspended SystemCPU Timelimit TimelimitRaw TotalCPU \
    TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInTot TRESUsageOutTot UID User \
    UserCPU WCKey WorkDir";

fn main() -> ExitCode {
    let name = env::args().next().unwrap_or_default();
    let name = Path::new(&name).file_name().map(|name| name.to_string_lossy().into_owned());
    match name.as_deref() {
        Some("sacct") => sacct(),
        Some("scontrol" | "squeue" | "sinfo" | "sstat") => {}
        _ => return measure(),
    }
    ExitCode::SUCCESS
}

// The clients.

/// Prints what is asked for, and notes down its own time.
fn sacct() {
    let args: Vec<String> = env::args().skip(1).collect();
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    if args.iter().any(|arg| arg == "--helpformat") {
        writeln!(out, "{}", FIELDS.split_whitespace().collect::<Vec<_>>().join(" ")).expect("read");
        return;
    }
    let value = |long: &str, short: &str| {
        let with = args.iter().find_map(|arg| arg.strip_prefix(&format!("--{long}=")));
        let at = args.iter().position(|arg| arg == short || arg == &format!("--{long}"));
        with.map(str::to_owned).or_else(|| args.get(at? + 1).cloned())
    };
    let format = value("format", "-o").expect("columns");
    let columns: Vec<&str> = format.split(',').collect();
    let delimiter = value("delimiter", "").unwrap_or_else(|| "|".to_owned());
    let steps = !args.iter().any(|arg| arg == "-X" || arg == "--allocations");
    let ids: Option<BTreeSet<u32>> = value("jobs", "-j").map(|list| {
        list.split(',').filter_map(|id| id.parse::<u32>().ok()?.checked_sub(1_000_000)).collect()
    });
    let epoch = env::var("SLURM_TIME_FORMAT").is_ok_and(|format| format == "%s");
    let since = value("starttime", "-S").and_then(|text| text.strip_prefix("uts")?.parse().ok());
    let until = value("endtime", "-E").and_then(|text| text.strip_prefix("uts")?.parse().ok());
    let jobs: Box<dyn Iterator<Item = u32>> = match ids {
        Some(ids) => Box::new(ids.into_iter()),
        None => Box::new(0..JOBS),
    };
    let mut line = String::new();
    for job in jobs {
        let job = Job::of(job);
        let outside = since.is_some_and(|since: u32| job.end < since)
            || until.is_some_and(|until: u32| job.start > until);
        if outside {
            continue;
        }
        for row in [None, Some("batch"), Some("extern")] {
            if row.is_some() && !steps {
                break;
            }
            line.clear();
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    line.push_str(&delimiter);
                }
                job.cell(column, row, epoch, &mut line);
            }
            line.push('\n');
            out.write_all(line.as_bytes()).expect("read");
        }
    }
    out.flush().expect("read");
    if let Some(log) = env::var_os("FEEDER_LOG") {
        let mut log = OpenOptions::new().append(true).create(true).open(log).expect("a log");
        // In one piece: several feeders may note theirs at once.
        log.write_all(format!("{}\n", own_nanoseconds()).as_bytes()).expect("noted");
    }
}

/// Time on a CPU so far (`/proc/self/schedstat`, the first number).
fn own_nanoseconds() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

struct Job {
    number: u32,
    chance: u32,
    start: u32,
    end: u32,
    state: &'static str,
    exit: &'static str,
}

impl Job {
    fn of(number: u32) -> Self {
        // Any numbers that look like many different ones.
        let chance = number.wrapping_mul(2_654_435_761) >> 8;
        let (state, exit) = match chance % 100 {
            0..80 => ("COMPLETED", "0:0"),
            80..90 => ("FAILED", "1:0"),
            90..96 => ("TIMEOUT", "0:0"),
            96..98 => ("OUT_OF_MEMORY", "0:125"),
            _ => ("CANCELLED by 1000", "0:0"),
        };
        let start = BASE + number * 6;
        Self { number, chance, start, end: start + 400 + chance % 6800, state, exit }
    }

    fn cell(&self, column: &str, step: Option<&str>, epoch: bool, out: &mut String) {
        use std::fmt::Write;
        let elapsed = self.end - self.start;
        let span = |seconds: u32| {
            format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        };
        let time = |second: u32| if epoch { second.to_string() } else { civil(second) };
        let workload = if one_workload() { 0 } else { self.number % 200 };
        let busy = if step == Some("extern") { 0 } else { elapsed * 3 };
        let memory = match step {
            None => String::new(),
            Some("extern") => "1956K".to_owned(),
            Some(_) => format!("{}K", 1_000_000 + self.chance % 60_000_000),
        };
        let gpu = if workload.is_multiple_of(3) { "gres/gpu=1," } else { "" };
        let of_job = step.is_none();
        let text = match column {
            "JobID" | "JobIDRaw" => {
                let id = self.number + 1_000_000;
                step.map_or_else(|| id.to_string(), |step| format!("{id}.{step}"))
            }
            "JobName" => match step {
                None => format!("wl{}-train-{}", letters(workload), self.number),
                Some(step) => step.to_owned(),
            },
            "State" if of_job => self.state.to_owned(),
            "State" => self.state.split(' ').next().unwrap_or_default().to_owned(),
            "ExitCode" => self.exit.to_owned(),
            "DerivedExitCode" if of_job => "0:0".to_owned(),
            "User" | "Group" if of_job => "alice".to_owned(),
            "UID" | "GID" if of_job => "1000".to_owned(),
            "Partition" if of_job => "batch".to_owned(),
            "QOS" if of_job => "normal".to_owned(),
            "Reason" if of_job => "None".to_owned(),
            "Timelimit" if of_job => "02:00:00".to_owned(),
            "TimelimitRaw" if of_job => "120".to_owned(),
            "ReqMem" if of_job => "64G".to_owned(),
            "ReqTRES" if of_job => format!("billing=8,cpu=8,{gpu}mem=64G,node=1"),
            "WorkDir" if of_job => format!("/home/alice/p{}", workload % 5),
            "SubmitLine" if of_job => format!("sbatch run{workload}.sh"),
            "Account" => "physics".to_owned(),
            "Cluster" => "lab".to_owned(),
            "AllocTRES" => format!("cpu=8,{gpu}mem=64G,node=1"),
            "AllocCPUS" | "NCPUS" | "ReqCPUS" => "8".to_owned(),
            "AllocNodes" | "NNodes" | "ReqNodes" => "1".to_owned(),
            "NTasks" if !of_job => "1".to_owned(),
            "NodeList" => format!("n{:04}", self.chance % 400),
            "Submit" | "Eligible" => time(self.start - 90),
            "Start" => time(self.start),
            "End" => time(self.end),
            "Elapsed" => span(elapsed),
            "ElapsedRaw" => elapsed.to_string(),
            "CPUTime" => span(elapsed * 8),
            "CPUTimeRAW" => (elapsed * 8).to_string(),
            "TotalCPU" | "UserCPU" => span(busy),
            "AveCPU" | "MinCPU" if !of_job => span(busy),
            "Suspended" | "SystemCPU" => "00:00:00".to_owned(),
            "MaxRSS" | "AveRSS" => memory,
            "ConsumedEnergyRaw" | "ConsumedEnergy" => "0".to_owned(),
            "TRESUsageInTot" | "TRESUsageInMax" | "TRESUsageInAve" if !of_job => format!(
                "cpu={},energy=0,fs/disk=125829120,mem={memory},pages=0,vmem={memory}",
                span(busy)
            ),
            "TRESUsageOutTot" if !of_job => "energy=0,fs/disk=41943040".to_owned(),
            _ => String::new(),
        };
        write!(out, "{text}").expect("a text takes everything");
    }
}

fn one_workload() -> bool {
    env::var_os("FEEDER_ONE").is_some()
}

fn letters(number: u32) -> String {
    let letter = |digit: u32| char::from(b'a' + u8::try_from(digit % 26).unwrap_or(0));
    [letter(number), letter(number / 26)].iter().collect()
}

/// A moment of July or August 2026 as Slurm prints it.
fn civil(second: u32) -> String {
    let at = jiff::Timestamp::from_second(i64::from(second)).expect("a time");
    at.to_zoned_datetime(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

// The measurement.

/// CPU milliseconds of a program without its feeder, and its peak of memory in KiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    millis: u64,
    peak: u64,
}

struct Bench {
    clients: PathBuf,
    log: PathBuf,
}

impl Bench {
    fn run(&self, program: &str, args: &[&str], one: bool) -> Cost {
        let _ = fs::remove_file(&self.log);
        let before = children_millis();
        let path = format!("{}:{}", self.clients.display(), env::var("PATH").unwrap_or_default());
        let mut command = Command::new(program);
        command.args(args).env("PATH", path).env("FEEDER_LOG", &self.log).env("TZ", "UTC");
        command.env("HOME", &self.clients).stdout(Stdio::null()).stderr(Stdio::null());
        if one {
            command.env("FEEDER_ONE", "1");
        }
        let mut child = command.spawn().expect("the program starts");
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().expect("a child").is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            peak = peak.max(now.unwrap_or(0));
            thread::sleep(Duration::from_millis(5));
        }
        let feeder = fs::read_to_string(&self.log).unwrap_or_default();
        let feeder: u64 = feeder.lines().filter_map(|line| line.parse::<u64>().ok()).sum();
        let all = children_millis() - before;
        Cost { millis: all.saturating_sub(feeder / 1_000_000), peak }
    }

    fn median(&self, program: &str, args: &[&str], one: bool, rounds: usize) -> Cost {
        let mut costs: Vec<Cost> = (0..rounds).map(|_| self.run(program, args, one)).collect();
        costs.sort_unstable();
        costs[rounds / 2]
    }
}

/// CPU time of everything that was waited for (`man 5 proc`, hundredths of a second).
fn children_millis() -> u64 {
    let times = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = times.rsplit(')').next().expect("fields").split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<u64>().expect("ticks") * 10).sum()
}

fn measure() -> ExitCode {
    let folder = env::temp_dir().join(format!("jobwise-folds-{}", std::process::id()));
    let clients = folder.join("bin");
    fs::create_dir_all(&clients).expect("a folder");
    let me = env::current_exe().expect("this program");
    for name in ["sacct", "scontrol", "squeue", "sinfo", "sstat"] {
        symlink(&me, clients.join(name)).expect("a link");
    }
    let bench = Bench { clients, log: folder.join("feeder") };
    let window = ["-u", "alice", "-S", "2026-07-01", "-E", "2026-08-01"];
    let rival = env::var("SLURMPAST").unwrap_or_else(|_| "slurmpast".to_owned());
    let there = Command::new(&rival).arg("--version").output();
    let there = there.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("0.9.0"));
    if !there {
        println!("slurmpast 0.9.0 is not installed: skipped, jobwise alone");
    }
    let mut broken = false;
    for (ours, theirs) in [
        (&["overview"][..], "--overview"),
        (&["sizing"], "--sizing"),
        (&["stats", "--by", "user"], "--json"),
    ] {
        let cost = bench.median(JOBWISE, &[ours, &window[..]].concat(), false, ROUNDS);
        let one = bench.median(JOBWISE, &[ours, &window[..]].concat(), true, ROUNDS);
        let name = ours.join(" ");
        println!("{name:<16} {:>6} ms CPU  {:>4} MiB", cost.millis, cost.peak / 1024);
        println!("  one workload   {:>6} ms CPU  {:>4} MiB", one.millis, one.peak / 1024);
        broken |= one.millis * 10 > cost.millis * 12;
        if there {
            let plain = ["--plain", "--no-cache", theirs];
            let other = bench.median(&rival, &[&plain[..], &window[..]].concat(), false, 1);
            let times = other.millis / cost.millis.max(1);
            println!(
                "  slurmpast      {:>6} ms CPU  {:>4} MiB  {times} times ours",
                other.millis,
                other.peak / 1024
            );
            broken |= times < 30 || cost.peak * 2 > other.peak;
        }
    }
    let _ = fs::remove_dir_all(&folder);
    if broken {
        println!("a bound is broken");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
