//! Capacity on large clusters, beside nodetop 0.7.0 on the same snapshots: wall time and memory of whole
//! processes, in turn, so that load meets both alike.
//!
//! The snapshots are made here, in nodetop's own form, which both read. nodetop is the program that
//! `NODETOP` names, or that of the `PATH`; without one the figures are jobwise's alone. Fails when a
//! bound is broken: 20 times as fast at half the memory on 10,000 nodes, `nodes` of 10,000 nodes with
//! 12,000 jobs below a second, everything of 600 nodes below 15 ms.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes and reads clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
const ROUNDS: usize = 5;

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

/// What one run took.
#[derive(Clone, Copy)]
struct Taken {
    wall: Duration,
    /// The most memory that was resident, in KiB, looked at each millisecond.
    memory: u64,
}

fn once(program: &str, args: &[&str], home: &Path) -> Taken {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(args)
        .env("JOBWISE_HOME", home)
        .env("XDG_CACHE_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut memory = 0;
    loop {
        let ended = child.try_wait().expect("a child").is_some();
        let wall = begun.elapsed();
        if ended {
            return Taken { wall, memory };
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        memory = memory.max(peak.unwrap_or(0));
        thread::sleep(Duration::from_micros(500));
    }
}

fn medians(mut runs: Vec<Taken>) -> Taken {
    runs.sort_unstable_by_key(|taken| taken.wall);
    let wall = runs[runs.len() / 2].wall;
    let memory = runs.iter().map(|taken| taken.memory).max().unwrap_or(0);
    Taken { wall, memory }
}

/// The program to compare with; `None` with a word why.
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

fn main() -> ExitCode {
    let folder = env::temp_dir().join(format!("jobwise-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("made");
    let rival = rival();
    let mut broken = false;
    let within = |broken: &mut bool, what: &str, holds: bool| {
        if !holds {
            println!("  a bound is broken: {what}");
            *broken = true;
        }
    };
    let sizes = [(600, 20, 0), (10_000, 60, 0), (10_000, 60, 12_000)];
    for (nodes, queues, jobs) in sizes {
        let file = folder.join(format!("{nodes}-{jobs}.json"));
        fs::write(&file, snapshot(nodes, queues, jobs)).expect("written");
        let path = file.display().to_string();
        println!("{nodes} nodes, {queues} partitions, {jobs} jobs");
        let calls: [(&[&str], &[&str]); 3] = [
            (&["status"], &["status", "--static"]),
            (&["nodes", "--all"], &["nodes", "--all"]),
            (&["where", "-c", "4"], &["where", "-c", "4"]),
        ];
        for (ours, theirs) in calls {
            let ours: Vec<&str> = ours.iter().copied().chain(["--replay", &path]).collect();
            let theirs: Vec<&str> = theirs.iter().copied().chain(["--replay", &path]).collect();
            let (mut us, mut them) = (Vec::new(), Vec::new());
            for round in 0..=ROUNDS {
                let taken = once(JOBWISE, &ours, &folder);
                // The first round only warms the page cache.
                if round > 0 {
                    us.push(taken);
                }
                if let Some(rival) = &rival
                    && round < 3
                {
                    them.push(once(rival, &theirs, &folder));
                }
            }
            let us = medians(us);
            let name = ours[..ours.len() - 2].join(" ");
            print!("  {name:<14} {:>9.2?} {:>6} KiB", us.wall, us.memory);
            if them.is_empty() {
                println!();
            } else {
                let them = medians(them);
                let times = them.wall.as_secs_f64() / us.wall.as_secs_f64();
                println!(
                    "   nodetop {:>9.2?} {:>6} KiB   {times:.1} times as fast",
                    them.wall, them.memory
                );
                if nodes == 10_000 && jobs == 0 {
                    within(&mut broken, "20 times as fast", times >= 20.0);
                    within(&mut broken, "half the memory", us.memory * 2 <= them.memory);
                }
            }
            if nodes == 600 {
                within(&mut broken, "15 ms", us.wall < Duration::from_millis(15));
            } else {
                within(&mut broken, "1 s", us.wall < Duration::from_secs(1));
            }
        }
    }
    fs::remove_dir_all(&folder).expect("removed");
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
