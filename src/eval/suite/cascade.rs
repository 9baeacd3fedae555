//! Jobs of many ranks of which one fails for a reason, and the others because of it.
//!
//! The messages are those of `PyTorch`, NCCL, Open MPI, UCX and Slurm; their order, clocks and losses
//! come from a seed. What is known of each job: which rank failed first, and the lines that say why.

use jiff::Timestamp;
use serde::Serialize;

use super::Random;
use super::stream::Stream;
use crate::host::Content;

/// What happened to the rank that failed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Root {
    /// A Python exception.
    Exception,
    /// The memory of its GPU did not suffice.
    DeviceMemory,
    /// A segmentation fault.
    Segfault,
    /// A module that its node lacks.
    Import,
    /// The kernel killed it for its memory.
    HostMemory,
}

/// Where the ranks write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Layout {
    /// All into one file.
    OneFile,
    /// Each into its own; the launcher into the job's.
    FileEach,
}

impl Root {
    /// Every one with its name.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Exception, "exception"),
        (Self::DeviceMemory, "device memory"),
        (Self::Segfault, "segfault"),
        (Self::Import, "import"),
        (Self::HostMemory, "host memory"),
    ];

    /// The families that are right.
    pub fn families(self) -> &'static [&'static str] {
        match self {
            Self::Exception => &["application_error", "app_input_error"],
            Self::DeviceMemory => &["cuda_oom"],
            Self::Segfault => &["segfault"],
            Self::Import => &["python_import"],
            Self::HostMemory => &["host_oom"],
        }
    }
}

/// A file of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankLog {
    /// The rank that wrote it; `None` for the job's own.
    pub task: Option<u64>,
    /// Its text.
    pub text: String,
    /// When it was last written.
    pub modified: Timestamp,
}

impl RankLog {
    /// The file as it is read.
    pub fn content(&self) -> Box<dyn Content> {
        Box::new(Stream::plain(self.text.clone().into_bytes(), Some(self.modified)))
    }
}

/// A job whose ranks failed one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cascade {
    /// Its number, and what it is.
    pub id: String,
    /// What happened first.
    pub root: Root,
    /// Where the ranks write.
    pub layout: Layout,
    /// How many ranks there are.
    pub ranks: u64,
    /// The one that failed first.
    pub rank: u64,
    /// The lines that say why, without the label of the rank.
    pub lines: Vec<String>,
    /// Its files.
    pub logs: Vec<RankLog>,
}

/// So many jobs; the same seed makes the same bytes.
pub fn cascades(seed: u64, count: usize) -> Vec<Cascade> {
    (0..count)
        .map(|number| {
            let own = Random(seed ^ (number as u64).wrapping_mul(0x2545_f491_4f6c_dd1d)).next();
            let (root, name) = Root::ALL[number % Root::ALL.len()];
            let layout = match number / Root::ALL.len() % 2 {
                0 => Layout::OneFile,
                _ => Layout::FileEach,
            };
            Job::new(Random(own), root, layout).written(format!("{number} ({name})"))
        })
        .collect()
}

/// When the first rank fails: any moment does.
const FAILS: i64 = 1_796_034_072_000;
/// Ranks of a node.
const PER_NODE: u64 = 8;
/// Of a hundred lines that are not the root's so many are lost.
const LOST: u64 = 3;

/// What a rank writes arrives at most so many milliseconds late.
const LATE: u64 = 500;

/// A line, when it is written, and by which rank; `None` for the launcher.
struct Event {
    at: i64,
    rank: Option<u64>,
    text: String,
}

/// A job in the making.
struct Job {
    random: Random,
    root: Root,
    layout: Layout,
    ranks: u64,
    rank: u64,
    /// Whether the ranks are those of `PyTorch` with NCCL, not of MPI.
    torch: bool,
    /// Whether the launcher ends the others at once, so that no collective times out.
    prompt: bool,
    /// How far the clock of each node is off, in milliseconds.
    skew: Vec<i64>,
    lines: Vec<String>,
    events: Vec<Event>,
}

impl Job {
    fn new(mut random: Random, root: Root, layout: Layout) -> Self {
        // As many small jobs as large ones: 2 to 512 by powers of two, and between.
        let power = 1 << (1 + random.below(9));
        let ranks = (power + random.below(power)).min(512);
        let rank = random.below(ranks);
        let torch = root == Root::DeviceMemory || random.percent(60);
        let prompt = random.percent(50);
        let skew = (0..ranks.div_ceil(PER_NODE)).map(|_| milliseconds(&mut random, 4000) - 2000);
        let skew = skew.collect();
        let (lines, events) = (Vec::new(), Vec::new());
        Self { random, root, layout, ranks, rank, torch, prompt, skew, lines, events }
    }

    /// Lets it run and fail.
    fn written(mut self, id: String) -> Cascade {
        self.work();
        self.fail();
        let mut last = FAILS;
        let first = self.rank;
        for rank in (0..self.ranks).filter(|rank| *rank != first) {
            last = last.max(self.follow(rank));
        }
        self.end(last + 500);
        let Self { mut random, root, layout, ranks, rank, torch, lines, mut events, .. } = self;
        events.retain(|event| is_root(&lines, event) || !random.percent(LOST));
        // What a rank writes arrives a little late, the root's too: a consequence may come first.
        // One rank's lines keep their order, others' come between.
        let late: Vec<i64> = (0..=ranks).map(|_| milliseconds(&mut random, LATE)).collect();
        for event in &mut events {
            let place = event.rank.map_or(0, |rank| rank + 1);
            let place = usize::try_from(place).unwrap_or(0);
            event.at += late.get(place).copied().unwrap_or(0);
        }
        events.sort_by_key(|event| event.at);
        let label =
            move |rank: u64| if torch { format!("[rank{rank}]: ") } else { format!("{rank}: ") };
        let logs = match layout {
            Layout::OneFile => vec![file(None, &events, |event| match event.rank {
                Some(rank) => format!("{}{}\n", label(rank), event.text),
                None => format!("{}\n", event.text),
            })],
            Layout::FileEach => files(ranks, events),
        };
        Cascade { id, root, layout, ranks, rank, lines, logs }
    }

    /// What all did before. Only some ranks of a large job write.
    fn work(&mut self) {
        let writing = self.ranks.min(4 + self.random.below(29));
        for rank in 0..writing {
            let mut at = FAILS - 60_000 + milliseconds(&mut self.random, 900);
            for step in 0..12 {
                let loss = self.random.below(9000);
                let text = format!("{} step {step} loss 0.{loss:04}", self.clock(rank, at));
                self.say(at, Some(rank), text);
                at += 4000 + milliseconds(&mut self.random, 900);
            }
        }
    }

    fn fail(&mut self) {
        let rank = self.rank;
        let node = node(rank);
        match self.root {
            Root::Exception => {
                let line = self.random.of(&[
                    "KeyError: 'labels'",
                    "ValueError: could not convert string to float: 'n/a'",
                    "AssertionError: batch 1203 has no targets",
                    "IndexError: list index out of range",
                    "ZeroDivisionError: division by zero",
                ]);
                self.raise(line.to_owned(), "self.step(batch)");
            }
            Root::Import => {
                let module = self.random.of(&["flash_attn", "mpi4py", "h5py", "apex"]);
                let line = format!("ModuleNotFoundError: No module named '{module}'");
                self.raise(line, &format!("import {module}"));
            }
            Root::DeviceMemory => {
                let gpu = rank % PER_NODE;
                let line = format!(
                    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU \
                     {gpu} has a total capacity of 79.15 GiB of which 1.21 GiB is free. Including \
                     non-PyTorch memory, this process has 77.93 GiB memory in use."
                );
                self.raise(line, "loss.backward()");
            }
            Root::Segfault => {
                let pid = 4000 + rank;
                let own = if self.torch {
                    vec![
                        "Fatal Python error: Segmentation fault".to_owned(),
                        String::new(),
                        "Current thread 0x00007f2a5c5fe740 (most recent call first):".to_owned(),
                        "  File \"/home/user/train.py\", line 88 in step".to_owned(),
                    ]
                } else {
                    vec![
                        format!("[{node}:{pid:05}] *** Process received signal ***"),
                        format!("[{node}:{pid:05}] Signal: Segmentation fault (11)"),
                        format!("[{node}:{pid:05}] Signal code: Address not mapped (1)"),
                        format!("[{node}:{pid:05}] *** End of error message ***"),
                    ]
                };
                self.lines.push(own[usize::from(!self.torch)].clone());
                self.block(FAILS, rank, own);
                let text =
                    format!("srun: error: {node}: task {rank}: Segmentation fault (core dumped)");
                self.lines.push(text.clone());
                self.say(FAILS + 300, None, text);
            }
            Root::HostMemory => {
                let killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=42.0. Some of \
                              the step tasks have been OOM Killed.";
                let told = format!("srun: error: {node}: task {rank}: Out Of Memory");
                self.lines.extend([killed.to_owned(), told.clone()]);
                self.say(FAILS + 200, None, killed.to_owned());
                self.say(FAILS + 300, None, told);
            }
        }
        if matches!(self.root, Root::Exception | Root::Import | Root::DeviceMemory) {
            if !self.torch {
                self.block(FAILS + 40, rank, aborted(rank));
            }
            let text = format!("srun: error: {node}: task {rank}: Exited with exit code 1");
            self.say(FAILS + 600, None, text);
        }
    }

    /// A traceback of the rank that fails.
    fn raise(&mut self, line: String, source: &str) {
        self.lines.push(line.clone());
        let frames = traceback("train.py", source);
        self.block(FAILS, self.rank, frames.into_iter().chain([line]).collect());
    }

    /// What becomes of another rank; when it has ended.
    fn follow(&mut self, rank: u64) -> i64 {
        let soon = FAILS + 20 + milliseconds(&mut self.random, 3000);
        let share = self.random.below(100);
        if self.torch {
            self.follow_torch(rank, soon, share)
        } else {
            self.follow_mpi(rank, soon, share)
        }
    }

    fn follow_torch(&mut self, rank: u64, soon: i64, share: u64) -> i64 {
        if share < 40 {
            let raised = "torch.distributed.DistBackendError: NCCL error in: \
                          ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2066, remote process \
                          exited or there was a network error, NCCL version 2.21.5";
            let mut lines =
                traceback("distributed_c10d.py", "work = group.allreduce([tensor], opts)");
            lines.push(raised.to_owned());
            lines.push(
                "ncclRemoteError: A call failed possibly due to a network error or a remote \
                        process exiting prematurely."
                    .to_owned(),
            );
            lines.push("Last error:".to_owned());
            let peer = self.random.below(250);
            lines.push(format!(
                "socketProgress: Connection closed by remote peer 10.0.0.{peer}<41234>"
            ));
            return self.block(soon, rank, lines);
        }
        if share < 55 {
            let mut lines = traceback("distributed_c10d.py", "work.wait()");
            let peer = self.random.below(250);
            lines.push(format!(
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection \
                 closed by peer [10.0.0.{peer}]:23001"
            ));
            return self.block(soon, rank, lines);
        }
        if share < 65 {
            let lines = self.cut_off();
            return self.block(soon, rank, lines);
        }
        if self.prompt {
            // Killed without a word.
            return soon;
        }
        let late = FAILS + 600_000 + milliseconds(&mut self.random, 4000);
        let stamp = self.clock(rank, late);
        let ran = 600_000 + self.random.below(90);
        let lines = vec![
            format!(
                "[E {stamp} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective \
                 operation timeout: WorkNCCL(SeqNum=1203, OpType=ALLREDUCE, NumelIn=26214400, \
                 NumelOut=26214400, Timeout(ms)=600000) ran for {ran} milliseconds before timing out."
            ),
            format!(
                "[E {stamp} ProcessGroupNCCL.cpp:630] [Rank {rank}] Some NCCL operations have failed \
                 or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU \
                 operations might run on corrupted/incomplete data."
            ),
            format!(
                "[E {stamp} ProcessGroupNCCL.cpp:636] [Rank {rank}] To avoid data inconsistency, we \
                 are taking the entire process down."
            ),
            "terminate called after throwing an instance of 'c10::DistBackendError'".to_owned(),
        ];
        self.block(late, rank, lines)
    }

    fn follow_mpi(&mut self, rank: u64, soon: i64, share: u64) -> i64 {
        let (node, pid) = (node(rank), 4000 + rank);
        let lines = if share < 25 {
            vec![format!(
                "[1796034072.123456] [{node}:{pid}:0] tcp_ep.c:1100 UCX  ERROR tcp_ep \
                 0x55d0c8a3f0c0 (state=CONNECTED): recv(fd=33) failed: Connection reset by remote peer"
            )]
        } else if share < 45 {
            vec![
                format!("[{node}:{pid:05}] *** An error occurred in MPI_Allreduce"),
                format!("[{node}:{pid:05}] *** reported by process [3735928559,{rank}]"),
                format!("[{node}:{pid:05}] *** on communicator MPI_COMM_WORLD"),
                format!("[{node}:{pid:05}] *** MPI_ERR_OTHER: known error not in list"),
                format!(
                    "[{node}:{pid:05}] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will \
                     now abort,"
                ),
                format!("[{node}:{pid:05}] ***    and potentially your MPI job)"),
            ]
        } else if share < 55 {
            self.cut_off()
        } else {
            return soon;
        };
        self.block(soon, rank, lines)
    }

    /// What a rank's own code raises when another has gone, or when it is told to end.
    fn cut_off(&mut self) -> Vec<String> {
        let line = self.random.of(&[
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            "BrokenPipeError: [Errno 32] Broken pipe",
            "EOFError",
            "KeyboardInterrupt",
        ]);
        let mut lines = traceback("train.py", "message = peer.recv()");
        lines.push(line.to_owned());
        lines
    }

    /// The launcher ends what is left.
    fn end(&mut self, at: i64) {
        let stamp = clock(at).replace(' ', "T");
        let nodes = self.ranks.div_ceil(PER_NODE);
        self.say(
            at,
            None,
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.".to_owned(),
        );
        self.say(
            at + 1,
            None,
            format!("slurmstepd: error: *** STEP 42.0 ON c000 CANCELLED AT {stamp} ***"),
        );
        for number in 0..nodes {
            let first = number * PER_NODE;
            let last = (first + PER_NODE).min(self.ranks) - 1;
            let how = self.random.of(&["Killed", "Terminated", "Exited with exit code 1"]);
            let jitter = milliseconds(&mut self.random, 2000);
            let text = format!("srun: error: {}: tasks {first}-{last}: {how}", node(first));
            self.say(at + 100 + jitter, None, text);
        }
    }

    /// Lines that one rank writes within milliseconds of each other; when it has written them.
    fn block(&mut self, at: i64, rank: u64, lines: Vec<String>) -> i64 {
        let mut at = at;
        for text in lines {
            self.say(at, Some(rank), text);
            at += milliseconds(&mut self.random, 3);
        }
        at
    }

    fn say(&mut self, at: i64, rank: Option<u64>, text: String) {
        self.events.push(Event { at, rank, text });
    }

    /// The time as the rank's node has it.
    fn clock(&self, rank: u64, at: i64) -> String {
        let node = usize::try_from(rank / PER_NODE).unwrap_or(0);
        clock(at + self.skew.get(node).copied().unwrap_or(0))
    }
}

/// Whether an event is one that must not be lost.
fn is_root(lines: &[String], event: &Event) -> bool {
    lines.contains(&event.text)
}

fn milliseconds(random: &mut Random, end: u64) -> i64 {
    i64::try_from(random.below(end)).unwrap_or(0)
}

fn node(rank: u64) -> String {
    format!("c{:03}", rank / PER_NODE)
}

fn moment(at: i64) -> Timestamp {
    Timestamp::from_millisecond(at).unwrap_or_default()
}

fn clock(at: i64) -> String {
    moment(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn traceback(file: &str, source: &str) -> Vec<String> {
    let folder = if file == "train.py" {
        "/home/user"
    } else {
        "/opt/env/lib/python3.11/site-packages/torch/distributed"
    };
    vec![
        "Traceback (most recent call last):".to_owned(),
        "  File \"/home/user/train.py\", line 142, in <module>".to_owned(),
        "    main()".to_owned(),
        format!("  File \"{folder}/{file}\", line 88, in step"),
        format!("    {source}"),
    ]
}

/// What Open MPI prints for a rank that ends itself.
fn aborted(rank: u64) -> Vec<String> {
    let rule = "-".repeat(74);
    vec![
        rule.clone(),
        format!("MPI_ABORT was invoked on rank {rank} in communicator MPI_COMM_WORLD"),
        "with errorcode 1.".to_owned(),
        String::new(),
        "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.".to_owned(),
        rule,
    ]
}

fn file(task: Option<u64>, events: &[Event], write: impl Fn(&Event) -> String) -> RankLog {
    let last = events.iter().map(|event| event.at).max().unwrap_or(FAILS);
    RankLog { task, text: events.iter().map(write).collect(), modified: moment(last) }
}

/// A file for each rank that wrote anything, and the job's.
fn files(ranks: u64, events: Vec<Event>) -> Vec<RankLog> {
    let mut own: Vec<Vec<Event>> = (0..=ranks).map(|_| Vec::new()).collect();
    for event in events {
        let place = event.rank.map_or(0, |rank| rank + 1);
        if let Some(place) = usize::try_from(place).ok().and_then(|place| own.get_mut(place)) {
            place.push(event);
        }
    }
    let tasks = [None].into_iter().chain((0..ranks).map(Some));
    tasks
        .zip(own)
        .filter(|(_, events)| !events.is_empty())
        .map(|(task, events)| file(task, &events, |event| format!("{}\n", event.text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_bytes() {
        assert_eq!(cascades(7, 20), cascades(7, 20));
        assert_ne!(cascades(7, 20), cascades(8, 20));
    }

    #[test]
    fn the_root_is_there_and_its_rank_wrote_it() {
        for job in cascades(1, 60) {
            assert!((2..=512).contains(&job.ranks) && job.rank < job.ranks, "{}", job.id);
            let text: String = job.logs.iter().map(|log| log.text.as_str()).collect();
            for line in &job.lines {
                assert!(text.contains(line), "{}: {line}", job.id);
            }
            let by_launcher = job.root == Root::HostMemory;
            if job.layout == Layout::FileEach && !by_launcher {
                let own = job.logs.iter().find(|log| log.task == Some(job.rank)).expect("its file");
                assert!(own.text.contains(&job.lines[0]), "{}", job.id);
            }
        }
    }
}
