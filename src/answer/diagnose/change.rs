//! The change to the script: what `patch` needs to know, and what is to be said of the script.

use std::path::Path;

use super::shared::Dated;
use super::surroundings::Surroundings;
use super::{Diagnosis, history};
use crate::classify::{Rules, Silence};
use crate::model::{Edit, Notice, Outcome, Verdict};
use crate::patch::{self, Altered, Patch, Refused, Target};
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

/// The change to the script; `None` where there is nothing to change, or nobody speaks of a script.
/// Adds to the notices what there is to say of both.
pub(super) fn propose(
    rules: &Rules,
    told: &mut Diagnosis,
    silence: Option<Silence>,
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
        if let Some(why) = history::had_enough(job, surroundings) {
            refused.push(Refused { edit: edits.remove(at), why });
            if edits.is_empty() {
                return Some(Patch { refused, ..Patch::default() });
            }
        } else if let Some(silence) = silence {
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
    notices.extend(limits.as_ref().and_then(Dated::age));
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
    let target = Target {
        script,
        name: &name,
        submit_line: job.submit_line.as_deref(),
        job,
        limits: limits.as_ref().map(Dated::limits),
        suggestion: None,
        environments: &environments,
        missing_directory: missing.and_then(Path::to_str),
    };
    let mut patch = patch::propose(&target, &edits);
    patch.refused.extend(refused);
    notices.extend(patch.altered.map(not_exact));
    Some(patch)
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
