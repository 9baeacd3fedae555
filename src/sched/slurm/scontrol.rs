//! What the controller prints about jobs and partitions.
//!
//! `scontrol show` prints `Key=Value` pairs and escapes nothing: names hold blanks and newlines. So
//! the text is cut at keys, not at blanks, and text that users write ends only at a key that is
//! known to follow it. Facts: recorded outputs of Slurm 20.11 to 26.05.

use std::collections::BTreeMap;

use crate::model::{
    BaseState, Bytes, Job, JobId, Known, Limits, Memory, MemoryScope, Part, Source, Span, State,
    Tres,
};

use super::values;

/// Keys whose value is text that a user wrote.
const FREE_TEXT: [&str; 10] = [
    "JobName",
    "Command",
    "SubmitLine",
    "WorkDir",
    "Comment",
    "AdminComment",
    "SystemComment",
    "StdErr",
    "StdIn",
    "StdOut",
];
/// Keys that can follow such text.
const AFTER_FREE_TEXT: [&str; 22] = [
    "UserId",
    "Command",
    "SubmitLine",
    "WorkDir",
    "Comment",
    "AdminComment",
    "SystemComment",
    "StdErr",
    "StdIn",
    "StdOut",
    "Power",
    "Container",
    "ContainerID",
    "CpusPerTres",
    "MemPerTres",
    "TresPerNode",
    "TresPerJob",
    "TresPerTask",
    "TresPerSocket",
    "TresBind",
    "NtasksPerTRES",
    "MailUser",
];

/// How the record of a job is read.
pub(super) const JOB: Grammar = Grammar { free: &FREE_TEXT, after: &AFTER_FREE_TEXT };

/// The pairs of one record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Record(BTreeMap<String, String>);

impl Record {
    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }
}

/// The records of an output; each begins with `first=` at the start of a line.
fn records(output: &[u8], first: &str) -> Vec<Record> {
    let text = String::from_utf8_lossy(output);
    split(&text, first).into_iter().map(|record| Record::new(record, JOB)).collect()
}

/// The texts of the records of an output; each begins with `first=` at the start of a line, and
/// holds the lines up to the next one.
pub(super) fn split<'t>(text: &'t str, first: &str) -> Vec<&'t str> {
    let line_starts = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let mut starts: Vec<usize> = std::iter::once(0)
        .chain(line_starts)
        .filter(|at| text[*at..].strip_prefix(first).is_some_and(|rest| rest.starts_with('=')))
        .collect();
    starts.push(text.len());
    starts.windows(2).map(|pair| text[pair[0]..pair[1]].trim_end()).collect()
}

/// Which values people write, and which keys can follow them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar {
    /// Keys whose value is free text.
    pub(super) free: &'static [&'static str],
    /// Keys that can follow such text.
    pub(super) after: &'static [&'static str],
}

/// Which bytes keys are made of, as in `ReqB:S:C:T`: looked up, as a large cluster prints millions.
const IS_OF_KEY: [bool; 256] = {
    let mut is_of_key = [false; 256];
    let mut byte = 0;
    while byte < u8::MAX {
        is_of_key[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'/');
        byte += 1;
    }
    is_of_key
};

/// Gives each key of a record with its value to `each`, in order. A key stands before an equals sign
/// and at the start or behind a blank; it may come twice: the first counts, as what people write
/// mostly stands last.
pub(super) fn pairs<'t>(text: &'t str, grammar: Grammar, mut each: impl FnMut(&'t str, &'t str)) {
    let bytes = text.as_bytes();
    let is_other = |byte: &u8| !IS_OF_KEY[usize::from(*byte)];
    let mut open: Option<(&str, usize)> = None;
    let mut start = 0;
    while let Some(length) = bytes[start..].iter().position(is_other) {
        let end = start + length;
        if bytes[end] == b'=' && bytes[start].is_ascii_uppercase() {
            let key = &text[start..end];
            let in_free_text = open.is_some_and(|(key, _)| grammar.free.contains(&key));
            if (!in_free_text || grammar.after.contains(&key))
                && let Some((known, value)) = open.replace((key, end + 1))
            {
                each(known, values::trim(&text[value..start]));
            }
        }
        let blank = bytes[end..].iter().position(|byte| matches!(byte, b' ' | b'\n' | b'\t'));
        let Some(blank) = blank else { break };
        start = end + blank + 1;
    }
    if let Some((key, value)) = open {
        each(key, values::trim(&text[value..]));
    }
}

impl Record {
    fn new(text: &str, grammar: Grammar) -> Self {
        let mut found = BTreeMap::new();
        pairs(text, grammar, |key, value| {
            found.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        });
        Self(found)
    }
}

/// The jobs of `scontrol show job`, and how many records could not be read.
pub(super) fn jobs(output: &[u8]) -> (Vec<Job>, usize) {
    let records = records(output, "JobId");
    let jobs: Vec<Job> = records.iter().filter_map(job).collect();
    let unreadable = records.len() - jobs.len();
    (jobs, unreadable)
}

fn job(record: &Record) -> Option<Job> {
    let number: u64 = record.get("JobId").parse().ok()?;
    let id = id(record, number);
    let raw_id = match id.part {
        Part::Whole => Known::NotGathered,
        _ => Known::Value(number),
    };
    // Tasks that wait in one record have no log; its path is that of no task.
    let log = |key: &str| match id.part {
        Part::Tasks(_) => None,
        _ => values::text(record.get(key)),
    };
    let (stdout, stderr) = (log("StdOut"), log("StdErr"));
    let state = State::parse(record.get("JobState"));
    let over = state.is_ended();
    let (user, uid) = owner(record.get("UserId"));
    let started = values::time(record.get("StartTime"));
    let has_begun = started.is_value() && state.base != BaseState::Pending;
    // Up to 23.11 one list says what was allocated, or asked for while the job waits.
    let tres = Tres::parse(record.get("TRES"));
    let list = |key: &str| values::word(record.get(key)).map(|list| Tres::parse(&list));
    let allocated = list("AllocTRES").unwrap_or_default();
    let requested = list("ReqTRES").unwrap_or_else(|| tres.clone());
    Some(Job {
        raw_id,
        name: record.get("JobName").to_owned(),
        user,
        uid,
        account: values::text(record.get("Account")),
        partition: values::text(record.get("Partition")),
        qos: values::text(record.get("QOS")),
        // Other than sacct, the controller printed exit codes as they are in every release.
        exit: if over { values::exit(record.get("ExitCode"), false) } else { Known::NotGathered },
        reason: reason(record.get("Reason")),
        submitted: values::time(record.get("SubmitTime")),
        eligible: values::time(record.get("EligibleTime")),
        // While it runs this is when the limit ends it, and before that a guess.
        ended: if over { values::time(record.get("EndTime")) } else { Known::NotGathered },
        elapsed: if has_begun { values::span(record.get("RunTime")) } else { Known::NotGathered },
        started: if has_begun { started } else { Known::NotGathered },
        limit: values::span(record.get("TimeLimit")),
        requested_memory: memory(record),
        nodes: values::count(record.get("NumNodes")),
        cpus: values::count(record.get("NumCPUs")),
        requested,
        allocated: if allocated.is_empty() && has_begun { tres } else { allocated },
        node_list: values::word(record.get("NodeList")),
        failed_node: values::word(record.get("FailedNode")),
        constraints: values::text(record.get("Features")),
        restarts: values::count(record.get("Restarts")),
        submit_line: values::text(record.get("SubmitLine")),
        work_dir: values::text(record.get("WorkDir")),
        stdout,
        stderr,
        command: values::text(record.get("Command")),
        comment: values::text(record.get("Comment")),
        dependency: values::word(record.get("Dependency")),
        ..Job::bare(id, state, Source::Controller)
    })
}

fn id(record: &Record, number: u64) -> JobId {
    let count = |key: &str| values::count(record.get(key)).get();
    let tasks = record.get("ArrayTaskId");
    let (number, part) = if let Some(array) = count("ArrayJobId") {
        let part = tasks.parse().map_or_else(|_| Part::Tasks(tasks.to_owned()), Part::Task);
        (array, part)
    } else if let Some(leader) = count("HetJobId") {
        let offset = count("HetJobOffset").and_then(|offset| u32::try_from(offset).ok());
        (leader, offset.map_or(Part::Whole, Part::Component))
    } else {
        (number, Part::Whole)
    };
    JobId { number, part, cluster: None }
}

/// `alice(1001)`.
fn owner(text: &str) -> (Option<String>, Known<u64>) {
    match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((name, uid)) => (values::text(name), values::count(uid)),
        None => (values::text(text), Known::NotGathered),
    }
}

/// The reason as `squeue` words it: the controller prints blanks as underscores, and no reason of
/// its own holds one. Node names after a colon keep theirs.
fn reason(text: &str) -> Option<String> {
    let text = values::word(text)?;
    Some(match text.split_once(':') {
        Some((words, names)) => format!("{}:{names}", words.replace('_', " ")),
        None => text.replace('_', " "),
    })
}

fn memory(record: &Record) -> Known<Memory> {
    let amount = |key: &str, scope| match values::mebibytes(record.get(key)) {
        Known::Value(Bytes(0)) => Known::NotGathered,
        known => known.map(|bytes| Memory { bytes, scope }),
    };
    amount("MinMemoryNode", MemoryScope::Node).or(amount("MinMemoryCPU", MemoryScope::Cpu))
}

/// Adds to an accounting record what only the controller knows.
pub(super) fn merge(job: &mut Job, live: &Job) {
    if job.stdout.is_none() {
        job.stdout.clone_from(&live.stdout);
    }
    if job.stderr.is_none() {
        job.stderr.clone_from(&live.stderr);
    }
    job.command.clone_from(&live.command);
    job.dependency.clone_from(&live.dependency);
    if job.restarts == Known::NotGathered {
        job.restarts.clone_from(&live.restarts);
    }
    if job.work_dir.is_none() {
        job.work_dir.clone_from(&live.work_dir);
    }
    if job.state.is_ended() {
        unfold(job, live);
    } else {
        // Accounting keeps an old reason, and hears of the end some seconds later.
        job.reason.clone_from(&live.reason);
        job.state = live.state.clone();
        job.exit = live.exit.clone();
        job.ended = live.ended.clone();
        if live.state.is_ended() {
            job.started = live.started.clone();
            job.elapsed = live.elapsed.clone();
        }
    }
}

/// Takes the exit code as the controller has it, where accounting's is that code minus 128.
fn unfold(job: &mut Job, live: &Job) {
    let (Some(printed), Some(exact)) = (job.exit.get(), live.exit.get()) else { return };
    let same = printed.signal == exact.signal
        && (exact.code == printed.code || exact.code == printed.code + 128);
    if printed.folded && same {
        let batch = job.steps.iter_mut().filter(|step| step.id.is_batch());
        for step in batch.filter(|step| step.exit == job.exit) {
            step.exit = live.exit.clone();
        }
        job.exit = live.exit.clone();
    }
}

/// The limits of `scontrol show partition`; `None` when it printed no partition.
pub(super) fn limits(output: &[u8]) -> Option<Limits> {
    let records = records(output, "PartitionName");
    let record = records.first()?;
    let max_time: Known<Span> = values::span(record.get("MaxTime"));
    Some(Limits {
        partition: record.get("PartitionName").to_owned(),
        max_time,
        max_memory_per_node: values::mebibytes(record.get("MaxMemPerNode")),
        max_memory_per_cpu: values::mebibytes(record.get("MaxMemPerCPU")),
        node_memory: Known::NotGathered,
        node_cpus: Known::NotGathered,
        qos: values::word(record.get("QoS")),
        rules: Vec::new(),
    })
}

/// The largest node of `sinfo --exact --format=%m|%c`: memory, and CPUs.
pub(super) fn largest_node(output: &[u8]) -> (Known<Bytes>, Known<u64>) {
    let text = String::from_utf8_lossy(output);
    let sizes = text.lines().filter_map(|line| line.split_once('|'));
    let (memory, cpus): (Vec<_>, Vec<_>) = sizes
        .map(|(memory, cpus)| (values::mebibytes(memory).get(), values::count(cpus).get()))
        .unzip();
    (memory.into_iter().flatten().max().into(), cpus.into_iter().flatten().max().into())
}
