//! Capacity on large clusters, beside nodetop 0.7.0 on the same snapshots: CPU time and memory of
//! whole processes, in turn, so that load meets both alike.
//!
//! The snapshots are made here, in nodetop's own form, which both read. nodetop is the program that
//! `NODETOP` names, or that of the `PATH`; without one the figures are jobwise's alone. The aims: on
//! 10,000 nodes a twentieth of nodetop's time and half its memory, with 12,000 jobs on them a fiftieth
//! of its time for `nodes`, and that in a second; anything about 600 nodes in 15 ms. It fails by a
//! fifth more, since machines differ and have other work.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes and reads clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
/// The part of an aim that has to be reached.
const LEAST: f64 = 0.8;
/// Runs of jobwise in a round: its time is told in hundredths of a second.
const EACH: u32 = 10;

/// The shares of a cluster that are in each state; every hundredth node is in one that is rare.
const STATES: [&str; 6] =
    ["DOWN*+DRAIN", "IDLE+DRAIN", "MIXED+PLANNED", "IDLE+POWERED_DOWN", "MIXED+COMPLETING", "DOWN"];
const GPUS: [&str; 4] = ["a100", "v100", "h100-80gb", "weirdgpu9000"];

/// A snapshot of a cluster in nodetop's form.
fn snapshot(nodes: usize, queues: usize, jobs: usize) -> String {
    let mut node_text = String::new();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); queues];
    for index in 0..nodes {
        let gpu = (index % 7 == 0).then(|| GPUS[index / 7 % GPUS.len()]);
        let cpus = if gpu.is_some() { 64 } else { 48 };
        let given = [0, 0, cpus / 2, cpus, cpus, cpus - 4][index * 31 % 6];
        let state = match index % 100 {
            rare @ 0..6 => STATES[rare],
            _ if given == 0 => "IDLE",
            _ if given == cpus => "ALLOCATED",
            _ => "MIXED",
        };
        let own = (index * queues / nodes).min(queues - 1);
        members[own].push(index);
        let mut names = format!("part{own:02}");
        if index % 3 == 0 && own != 0 {
            members[0].push(index);
            names.push_str(",part00");
        }
        let (gres, tres) = match gpu {
            Some(kind) => (format!("gpu:{kind}:4(S:0-1)"), format!(",gres/gpu={}", index % 5)),
            None => ("(null)".to_owned(), String::new()),
        };
        let memory = 191_000;
        let taken = memory * given / cpus;
        let _ = writeln!(
            node_text,
            "NodeName=cn-{index:05} Arch=x86_64 CoresPerSocket=24 CPUAlloc={given} CPUEfctv={cpus} \
             CPUTot={cpus} CPULoad={given}.01 AvailableFeatures=xeon,ib ActiveFeatures=xeon,ib Gres={gres} \
             NodeAddr=cn-{index:05} NodeHostName=cn-{index:05} Version=23.11.8 OS=Linux 4.18.0-477 #1 SMP \
             RealMemory={memory} AllocMem={taken} FreeMem={} Sockets=2 Boards=1 State={state} \
             ThreadsPerCore=1 TmpDisk=900000 Weight=1 Owner=N/A MCS_label=N/A Partitions={names} \
             BootTime=2026-05-01T08:00:00 SlurmdStartTime=2026-05-01T08:01:00 \
             LastBusyTime=2026-07-01T10:00:00 CfgTRES=cpu={cpus},mem={memory}M,billing={cpus} \
             AllocTRES=cpu={given},mem={taken}M{tres} CapWatts=n/a CurrentWatts=0 AveWatts=0",
            memory - taken,
        );
    }
    let mut queue_text = String::new();
    for (index, members) in members.iter_mut().enumerate() {
        members.sort_unstable();
        let (state, time) =
            if index % 11 == 5 { ("DOWN", "UNLIMITED") } else { ("UP", "1-12:00:00") };
        let _ = write!(
            queue_text,
            "PartitionName=part{index:02}\n   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL\n   AllocNodes=ALL \
             Default={} QoS=N/A\n   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO\n   \
             MaxNodes=UNLIMITED MaxTime={time} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED\n   Nodes={}\n   \
             PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO\n   State={state} \
             TotalCPUs={} TotalNodes={} SelectTypeParameters=NONE\n   DefMemPerCPU=3810 MaxMemPerNode=UNLIMITED\n\n",
            if index == 0 { "YES" } else { "NO" },
            host_list(members),
            48 * members.len(),
            members.len(),
        );
    }
    let (mut ends, mut list) = (String::new(), String::new());
    for job in 0..jobs {
        let node = job * 7919 % nodes;
        let end = format!("2026-07-0{}T{:02}:00:00", 2 + job % 7, job % 24);
        let _ = writeln!(ends, "cn-{node:05}|{end}");
        let _ = writeln!(
            list,
            "{job}|user{:03}|acct{:02}|part{:02}|cn-{node:05}|8|N/A|1:00:00|10:00:00|RUNNING|job",
            job % 500,
            job % 40,
            (node * queues / nodes).min(queues - 1),
        );
    }
    let config = "Configuration data as of 2026-07-01T12:00:00\nAccountingStorageEnforce = associations,limits,qos\n\
                  ClusterName             = ada\nDefMemPerCPU            = 3810\nSelectType              = select/cons_tres\n\
                  SelectTypeParameters    = CR_CORE_MEMORY\nSLURM_VERSION           = 23.11.8\n";
    let user = env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let qos = "sacctmgr -nP show qos format=Name,MaxWall,MaxTRESPerUser,MaxTRESPerJob,MaxJobsPerUser,\
               MaxSubmitJobsPerUser,Priority,Flags";
    let assoc = format!(
        "sacctmgr -nP show assoc where user={user} format=Account,Partition,QOS,DefaultQOS"
    );
    let answers = [
        ("scontrol show node --all --oneliner", node_text),
        ("scontrol show partition --all", queue_text),
        ("scontrol show config", config.to_owned()),
        (qos, "normal|1-12:00:00|cpu=512,node=8|||100|0|\n".to_owned()),
        (assoc.as_str(), "acct01||normal|normal\n".to_owned()),
        ("squeue -h -t RUNNING -o %N|%e", ends),
        ("squeue -h -t RUNNING -o %i|%u|%a|%P|%N|%C|%b|%M|%L|%T|%j", list),
        ("scontrol show job -d", "\n".to_owned()),
    ];
    let commands: BTreeMap<&str, serde_json::Value> = answers
        .iter()
        .map(|(key, text)| (*key, serde_json::json!({"rc": 0, "stdout": text, "stderr": ""})))
        .collect();
    // Its own keys first: that is how such a file is told from others.
    let commands = serde_json::to_string(&commands).expect("texts are JSON");
    format!(
        "{{\"nodetop\": \"0.7.0\", \"backend\": \"slurm\", \"queue_term\": \"partition\", \
         \"captured_at\": \"2026-07-01T12:00:00\", \"errors\": {{}}, \"commands\": {commands}}}"
    )
}

fn host_list(members: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for member in members {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *member => *last = *member,
            _ => ranges.push((*member, *member)),
        }
    }
    let ranges: Vec<String> =
        ranges.iter().map(|(first, last)| format!("{first:05}-{last:05}")).collect();
    format!("cn-[{}]", ranges.join(","))
}

/// What a run takes.
#[derive(Clone, Copy)]
struct Cost {
    /// Milliseconds of CPU time, the kernel's for it among them.
    cpu: f64,
    /// The most memory that was resident, in KiB, looked at each half a millisecond.
    memory: u64,
}

/// The mean of some runs one after the other.
fn runs(program: &str, args: &[&str], home: &Path, count: u32) -> Cost {
    let begun = children_millis();
    let memory = (0..count).map(|_| peak(program, args, home)).max().unwrap_or(0);
    Cost { cpu: (children_millis() - begun) / f64::from(count), memory }
}

/// Runs a program and watches how large it gets.
fn peak(program: &str, args: &[&str], home: &Path) -> u64 {
    let mut child = Command::new(program)
        .args(args)
        .env("JOBWISE_HOME", home)
        .env("XDG_CACHE_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(peak.unwrap_or(0));
        thread::sleep(Duration::from_micros(500));
    }
    most
}

/// CPU time of everything that was waited for (`man 5 proc`, hundredths of a second).
fn children_millis() -> f64 {
    let times = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = times.rsplit(')').next().expect("fields").split_whitespace().collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().expect("ticks") * 10.0).sum()
}

/// The median time and the most memory.
fn median(mut costs: Vec<Cost>) -> Option<Cost> {
    costs.sort_unstable_by(|a, b| a.cpu.total_cmp(&b.cpu));
    let memory = costs.iter().map(|cost| cost.memory).max()?;
    Some(Cost { memory, ..*costs.get(costs.len() / 2)? })
}

/// The program to compare with; a word where there is none.
fn rival() -> Option<String> {
    let program = env::var("NODETOP").unwrap_or_else(|_| "nodetop".to_owned());
    let version = Command::new(&program).arg("--version").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match version.as_deref() {
        Some("nodetop 0.7.0") => Some(program),
        Some(other) => {
            println!("not compared: {program} is '{other}', not nodetop 0.7.0");
            None
        }
        None => {
            println!("not compared: there is no nodetop here (NODETOP names one)");
            None
        }
    }
}

/// A cluster, what is asked about it, and what that may cost.
struct Case {
    nodes: usize,
    queues: usize,
    jobs: usize,
    calls: &'static [Call],
    /// Rounds with nodetop, which takes its time.
    rounds: u32,
    /// CPU milliseconds.
    most: f64,
    /// Times nodetop's time, and parts of its memory, where that is promised.
    times: Option<f64>,
    parts: Option<f64>,
}

/// Our words and nodetop's.
type Call = (&'static [&'static str], &'static [&'static str]);

const STATUS: Call = (&["status"], &["status", "--static"]);
const NODES: Call = (&["nodes", "--all"], &["nodes", "--all"]);
const WHERE: Call = (&["where", "-c", "4"], &["where", "-c", "4"]);

#[rustfmt::skip]
const CASES: [Case; 3] = [
    Case {
        nodes: 600, queues: 20, jobs: 700, calls: &[STATUS, NODES, WHERE],
        rounds: 0, most: 15.0, times: None, parts: None,
    },
    Case {
        nodes: 10_000, queues: 60, jobs: 0, calls: &[STATUS, NODES, WHERE],
        rounds: 3, most: 1000.0, times: Some(20.0), parts: Some(2.0),
    },
    Case {
        nodes: 10_000, queues: 60, jobs: 12_000, calls: &[NODES],
        rounds: 1, most: 1000.0, times: Some(50.0), parts: None,
    },
];

fn main() -> ExitCode {
    let folder = env::temp_dir().join(format!("jobwise-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("made");
    let rival = rival();
    let mut broken = false;
    for case in CASES {
        let Case { nodes, queues, jobs, .. } = case;
        let file = folder.join(format!("{nodes}-{jobs}.json"));
        fs::write(&file, snapshot(nodes, queues, jobs)).expect("written");
        let path = file.display().to_string();
        println!("{nodes} nodes, {queues} partitions, {jobs} jobs");
        for (ours, theirs) in case.calls {
            let name = ours.join(" ");
            let [ours, theirs] =
                [ours, theirs].map(|words| [words, &["--replay", &path][..]].concat());
            let (mut us, mut them) = (Vec::new(), Vec::new());
            // A first run to warm the page cache.
            peak(JOBWISE, &ours, &folder);
            for _ in 0..case.rounds.max(3) {
                us.push(runs(JOBWISE, &ours, &folder, EACH));
                if let Some(rival) = rival.as_ref().filter(|_| them.len() < case.rounds as usize) {
                    them.push(runs(rival, &theirs, &folder, 1));
                }
            }
            let us = median(us).expect("rounds");
            let mut within = |what: String, holds: bool| {
                if !holds {
                    println!("    a bound is broken: {what}");
                    broken = true;
                }
            };
            println!("  {name:<14} {:>6.1} ms CPU {:>5.1} MiB", us.cpu, mebibytes(us.memory));
            within(format!("{} ms", case.most), us.cpu * LEAST < case.most);
            let Some(them) = median(them) else { continue };
            let (times, parts) = (them.cpu / us.cpu, mebibytes(them.memory) / mebibytes(us.memory));
            println!(
                "    nodetop      {:>6.0} ms CPU {:>5.1} MiB: {times:.1} times the time, {parts:.2} times the memory",
                them.cpu,
                mebibytes(them.memory),
            );
            if let Some(least) = case.times {
                within(format!("{least} times as fast"), times >= least * LEAST);
            }
            if let Some(least) = case.parts {
                within(format!("a part of {least} of the memory"), parts >= least * LEAST);
            }
        }
    }
    fs::remove_dir_all(&folder).expect("removed");
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[expect(clippy::cast_precision_loss, reason = "far from 2^53")]
fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}
