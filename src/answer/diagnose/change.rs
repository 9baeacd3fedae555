//! The change to the script: what `patch` needs to know, and what is to be said of the script.

use std::path::Path;

use super::reading::Scanned;
use super::surroundings::Surroundings;
use super::{Diagnosis, history};
use crate::classify::{self, Facts, Rules, Silence};
use crate::history::sizing::{Amount, Basis, Flag, sizing};
use crate::history::workloads::workloads;
use crate::logs;
use crate::model::{
    Bytes, Edit, History, Idle, Job, JobId, Limits, Notice, Outcome, Pace, Run, Source, Span,
    Verdict,
};
use crate::patch::{self, Altered, Patch, Refused, Suggestion, Target};
use crate::sched::SchedError;
use crate::script::{self, Ignored, NoteKind};
use crate::text;

/// The edits of the first cause: its family's, and those of the signals that were seen. None when
/// the cause is not known.
fn first_edits(rules: &Rules, verdict: &Verdict) -> Vec<Edit> {
    let cause = verdict.causes.first().filter(|_| verdict.outcome == Outcome::Cause);
    let Some((cause, family)) = cause.and_then(|cause| Some((cause, rules.family(&cause.family)?)))
    else {
        return Vec::new();
    };
    let mut edits = family.edits.clone();
    let heard = family.signals.iter().filter(|signal| cause.heard.contains(&signal.id));
    edits.extend(heard.flat_map(|signal| signal.edits.iter().cloned()));
    edits
}

/// What the logs of a run tell about a change.
pub(super) struct Shown {
    silence: Option<Silence>,
    pace: Option<Pace>,
    /// The last line, where it says that the program waited.
    waits: Option<String>,
    host: Option<String>,
}

impl Shown {
    pub(super) fn of(facts: &Facts<'_>, scanned: &[Scanned]) -> Self {
        /// Of a thousand ranks the first few tell enough.
        const LOGS: usize = 4;
        let scans = || scanned.iter().take(LOGS).map(|log| &log.scan);
        let paces = scans().filter_map(logs::pace);
        // Of several that of the one that has most to do.
        let left = |pace: &Pace| pace.needed(Span::seconds(1 << 20));
        let pace = paces.max_by_key(left).filter(|_| !scans().any(logs::has_open_rounds));
        let waits = scans().find_map(logs::standstill).filter(|_| pace.is_none());
        Self {
            silence: classify::silence(facts),
            pace,
            waits: waits.map(|line| line.text.clone()),
            host: scanned.iter().take(LOGS).find_map(|log| logs::host(&log.edges())),
        }
    }

    /// Why more time would not help.
    fn stood_still(&self, job: &Job) -> Option<String> {
        if let Some(line) = &self.waits {
            let line: String = line.trim().chars().take(160).collect();
            return Some(format!(
                "it ended in waiting ('{line}'): more time only lengthens that, so \
                 find what it waited for"
            ));
        }
        let silence = self.silence.filter(|_| !was_busy(job))?;
        let most = silence.span.as_seconds() >= silence.elapsed.as_seconds() / 2;
        (most || silence.is_abrupt()).then(|| {
            format!(
                "{silence}: it stood still, so find what it waited for before it gets more time"
            )
        })
    }
}

/// Whether its CPUs worked at least half of the time: a program may well be quiet while it works.
fn was_busy(job: &Job) -> bool {
    let held = job.elapsed.get().zip(job.cpus.get());
    let held = held.map(|(elapsed, cpus)| elapsed.as_millis().saturating_mul(cpus.max(1)));
    job.cpu_time.get().zip(held).is_some_and(|(used, held)| used.as_millis() >= held / 2)
}

/// The change to the script; `None` where there is nothing to change, or nobody speaks of a script.
/// Adds to the notices what there is to say of both.
pub(super) fn propose(
    rules: &Rules,
    told: &mut Diagnosis,
    shown: &Shown,
    idle: Idle,
    surroundings: &mut impl Surroundings,
) -> Option<Patch> {
    let Diagnosis { job, logs, notices, verdict, .. } = told;
    let mut edits = first_edits(rules, verdict);
    if let Some((_, bytes)) = surroundings.script_at_hand() {
        notices.extend(unread_directives(bytes, &edits));
    }
    if edits.is_empty() {
        return None;
    }
    let mut refused = Vec::new();
    if let Some(at) = edits.iter().position(|edit| *edit == Edit::Time) {
        let enough = history::had_enough(job, surroundings);
        if let Some(why) = enough.or_else(|| shown.stood_still(job)) {
            refused.push(Refused { edit: edits.remove(at), why });
            if edits.is_empty() {
                return Some(Patch { refused, ..Patch::default() });
            }
        } else if let Some(silence) = shown.silence {
            let text = format!("{silence}: look whether it stood still before it gets more time");
            notices.push(Notice::warning("silent", text));
        }
    }
    // Only a larger request can meet a limit: nothing is asked of the scheduler for the rest.
    let is_larger = edits.iter().any(|edit| matches!(edit, Edit::Memory | Edit::Time));
    let partition = job.partition.as_deref().filter(|_| is_larger);
    let limits = partition.and_then(|partition| {
        let limits = surroundings.limits(job, partition)?;
        limits.map_err(|error| notices.push(no_limits(partition, &error))).ok()
    });
    let limits = limits.map(|(limits, told)| {
        notices.extend(told);
        limits
    });
    let past = if is_larger { surroundings.past(job) } else { None };
    let environments = match &job.work_dir {
        Some(directory) if edits.contains(&Edit::Activate) => environments(surroundings, directory),
        _ => Vec::new(),
    };
    let unread = logs.iter().filter(|log| !log.size.is_value());
    let folders = unread.filter_map(|log| Path::new(&log.path).parent());
    let mut folders = folders.filter(|folder| surroundings.lacks_directory(folder));
    let missing = if edits.contains(&Edit::MakeDirectory) { folders.next() } else { None };
    let name = surroundings.script_name(job);
    let was_at_hand = surroundings.script_at_hand().is_some();
    let script = match surroundings.script(job)? {
        Ok((_, bytes)) => {
            if !was_at_hand {
                notices.extend(unread_directives(bytes, &edits));
            }
            Some(bytes.as_slice())
        }
        Err(tried) => {
            notices.push(no_script(tried));
            None
        }
    };
    let advised = Advised::of(job, past.as_deref(), limits.as_ref(), idle);
    let node = failed_node(job, verdict, script, shown);
    let target = Target {
        script,
        name: &name,
        submit_line: job.submit_line.as_deref(),
        job,
        limits: limits.as_ref(),
        memory: advised.memory(),
        time: advised.time(),
        pace: shown.pace,
        node: node.as_deref(),
        environments: &environments,
        missing_directory: missing.and_then(Path::to_str),
    };
    let mut patch = patch::propose(&target, &edits);
    patch.refused.extend(refused);
    notices.extend(patch.altered.map(not_exact));
    Some(patch)
}

/// The node to leave out, where the record does not tell: the one that the cause names, or the only one
/// there was.
fn failed_node(
    job: &Job,
    verdict: &Verdict,
    script: Option<&[u8]>,
    shown: &Shown,
) -> Option<String> {
    let cause = verdict.causes.first()?;
    let alone = || {
        let nodes = script.map(script::parse);
        let nodes = nodes.as_ref().and_then(|script| script.effective("nodes"));
        let one = nodes.is_none_or(|asked| asked.value.as_deref() == Some("1"));
        shown.host.clone().filter(|_| one && job.source == Source::Given)
    };
    cause.captures.get("node").cloned().or_else(alone)
}

/// What sizing advises for the work that a job is a run of.
#[derive(Default)]
struct Advised {
    memory: Option<(Bytes, String)>,
    time: Option<(Span, String)>,
}

impl Advised {
    /// From the runs that began before the job did, and the job itself.
    fn of(job: &Job, past: Option<&History>, limits: Option<&Limits>, idle: Idle) -> Self {
        let mut found = Self::default();
        let Some(past) = past else { return found };
        let same = |run: &Run| {
            run.id(&past.names) == JobId { cluster: None, ..job.id.clone() }
                && run.submitted.get().map(i64::from)
                    == job.submitted.get().map(jiff::Timestamp::as_second)
        };
        let workloads = workloads(past);
        let of_job = workloads.iter().find(|workload| workload.runs(past).any(same));
        let Some(workload) = of_job else { return found };
        let started = job.started.get().map_or(i64::MAX, jiff::Timestamp::as_second);
        let until = |run: &&Run| run.started.get().is_some_and(|at| i64::from(at) <= started);
        let runs: Vec<&Run> = workload.runs(past).filter(until).collect();
        let basis = Basis { risk: Basis::RISK, idle };
        for advice in sizing(&runs, past, limits, &basis) {
            // Whether that is more than this run had is the patch's to see.
            match (advice.flag, advice.suggestion) {
                (Flag::Time, Some(Amount::Time(span))) => found.time = Some((span, advice.because)),
                (Flag::Memory, Some(Amount::Memory(bytes))) => {
                    found.memory = Some((bytes, advice.because));
                }
                (Flag::MemoryPerCpu | Flag::MemoryPerGpu, Some(Amount::Memory(bytes))) => {
                    let nodes = job.nodes.get().unwrap_or(1).max(1);
                    let units = match advice.flag {
                        Flag::MemoryPerGpu => job.gpus(),
                        _ => job.cpus.get(),
                    };
                    let on_a_node = units.map_or(1, |units| (units / nodes).max(1));
                    let bytes = Bytes(bytes.0.saturating_mul(on_a_node));
                    found.memory = Some((bytes, advice.because));
                }
                _ => {}
            }
        }
        found
    }

    fn memory(&self) -> Option<Suggestion<'_, Bytes>> {
        let (value, because) = self.memory.as_ref()?;
        Some(Suggestion { value: *value, because })
    }

    fn time(&self) -> Option<Suggestion<'_, Span>> {
        let (value, because) = self.time.as_ref()?;
        Some(Suggestion { value: *value, because })
    }
}

/// Virtual environments by their usual names in a job's directory.
fn environments(surroundings: &impl Surroundings, directory: &str) -> Vec<String> {
    let usual = [".venv", "venv", "env"].into_iter();
    let there = usual.filter(|name| {
        surroundings.has_file(&Path::new(directory).join(name).join("bin/activate"))
    });
    there.map(|name| format!("{}/{name}", directory.trim_end_matches('/'))).collect()
}

/// What stands in the script like a directive and is not read, in one line: where it is about what is
/// to be changed, or about memory, time and output, it is why the job had other limits than its
/// owner thinks.
fn unread_directives(bytes: &[u8], edits: &[Edit]) -> Option<Notice> {
    const ALWAYS: [&str; 6] = ["mem", "mem-per-cpu", "mem-per-gpu", "time", "output", "error"];
    let matters = |option: &str| {
        ALWAYS.contains(&option) || edits.iter().any(|edit| edit.to_string() == option)
    };
    let script = script::parse(bytes);
    let mut told: Vec<String> = Vec::new();
    let behind = script.directives.iter().filter_map(|directive| match directive.ignored? {
        Ignored::AfterCommand(first) => Some((directive, first)),
    });
    let mut behind = behind.filter(|(directive, _)| matters(&directive.option)).peekable();
    if let Some((_, first)) = behind.peek().copied() {
        let lines = behind
            .map(|(directive, _)| format!("{} (line {})", directive.as_written(), directive.line));
        let lines = text::join(&lines.collect::<Vec<_>>(), "and");
        told.push(format!("{lines}: behind the first command, line {first}"));
    }
    for note in &script.notes {
        let matters = match note.kind {
            NoteKind::DosLineEnds => true,
            NoteKind::Miscased | NoteKind::Indented | NoteKind::BlankAfterHash => {
                miswritten(bytes, note.line).iter().any(|option| matters(option))
            }
            _ => false,
        };
        if matters {
            told.push(format!("line {}: {}", note.line, note.kind));
        }
    }
    (!told.is_empty()).then(|| {
        let text = format!("sbatch does not read all of the script: {}", told.join("; "));
        Notice::warning("unread-directive", text)
    })
}

/// The options of a line that would be a directive if it were written as one.
fn miswritten(bytes: &[u8], line: usize) -> Vec<String> {
    let text = bytes.split(|&byte| byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let at = text.windows(2).position(|two| two[0].is_ascii_whitespace() && two[1] == b'-');
    let options = at.and_then(|at| text.get(at..)).unwrap_or_default();
    let mended = script::parse(&[b"#!/bin/sh\n#SBATCH", options].concat());
    mended.directives.into_iter().map(|directive| directive.option).collect()
}

/// Why the diff cannot be applied as it is printed.
fn not_exact(altered: Altered) -> Notice {
    let what = match altered {
        Altered::Secret => "a secret in the script's lines near the change was masked",
        Altered::Unprintable => "the script's lines near the change hold what cannot be printed",
    };
    Notice::warning("inexact-diff", format!("{what}, so the diff does not apply as it is"))
}

fn no_limits(partition: &str, error: &SchedError) -> Notice {
    Notice::warning(
        "no-limits",
        format!(
            "the limits of partition {partition} are unknown ({error}): the change is not capped"
        ),
    )
}

fn no_script(tried: &[String]) -> Notice {
    let text = format!("the batch script could not be read ({})", tried.join("; "));
    Notice::warning("no-script", text).hint("apply the change by hand")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BaseState, Known, Maybe, RunPart, State, Tres};

    const GIB: u64 = Bytes::GIB;

    #[test]
    fn a_change_is_sized_by_the_runs_of_the_same_work() {
        let at = |second: u32| jiff::Timestamp::from_second(i64::from(second)).expect("a time");
        let mut past = History::default();
        let name = past.names.intern("assemble");
        // Eight runs that completed with 64 GiB, at most 47 used, and one that died with 32.
        past.runs = (1..=9)
            .map(|number| Run {
                name: Some(name),
                submitted: Maybe::some(number * 1000),
                started: Maybe::some(number * 1000 + 10),
                ended: Maybe::some(number * 1000 + 900),
                elapsed: Maybe::some(890),
                nodes: Maybe::some(1),
                cpus: Maybe::some(8),
                allocated_memory: Maybe::some(64 * GIB),
                node_memory: Maybe::some((39 + u64::from(number)) * GIB),
                ..Run::bare(number, RunPart::Whole, BaseState::Completed)
            })
            .collect();
        let last = past.runs.last_mut().expect("nine runs");
        last.state = BaseState::OutOfMemory;
        last.out_of_memory = true;
        last.allocated_memory = Maybe::some(32 * GIB);
        last.node_memory = Maybe::some(31 * GIB);
        let state = State::parse("OUT_OF_MEMORY");
        let job = |number: u32| Job {
            submitted: Known::Value(at(number * 1000)),
            started: Known::Value(at(number * 1000 + 10)),
            ..Job::bare(JobId::whole(u64::from(number)), state.clone(), Source::Accounting)
        };
        let idle =
            Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 };
        let advised = Advised::of(&job(9), Some(&past), None, idle);
        // 47 GiB and 30 %, in steps of four: not twice the limit at which one died.
        let memory = advised.memory().expect("advice");
        assert_eq!(memory.value, Bytes(64 * GIB));
        assert!(memory.because.starts_with("9 runs, the most that one used on a node was 47G"));
        // The same per GPU: 61.1 over four is 15.3, so 16, and 64 on the node.
        let line = past.names.intern("sbatch --gpus=4 --mem-per-gpu=16G assemble.sh");
        for run in &mut past.runs {
            run.gpus = Maybe::some(4);
            run.submit_line = Some(line);
        }
        let job_of_gpus = Job { allocated: Tres::parse("gres/gpu=4"), ..job(9) };
        let per_gpu = Advised::of(&job_of_gpus, Some(&past), None, idle);
        assert_eq!(per_gpu.memory().expect("advice").value, Bytes(64 * GIB));
        // Of another number nothing is known, and without a past nothing.
        assert_eq!(Advised::of(&job(10), Some(&past), None, idle).memory(), None);
        assert_eq!(Advised::of(&job(9), None, None, idle).memory(), None);
    }
}
