//! What the scheduler's record says: record signals, and the checks that support or contradict a
//! family. Accounting is evidence with its own reliability, never the only veto.

use std::collections::BTreeMap;

use super::Piece;
use super::rules::Rules;
use super::silence::Silence;
use crate::knowledge::{Check, RecordPattern, SignalSource};
use crate::model::{BaseState, Evidence, Exit, Job, Place, Role, Span, State, Step};

/// The pieces that the record signals of all families find. Of a job that never ran only those that
/// ask for no exit and no step: it has none, whatever the record fills in.
pub(super) fn pieces(rules: &Rules, job: &Job, ran: bool, silence: Option<&Silence>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, family) in rules.families().iter().enumerate() {
        for signal in family.signals.iter().filter(|s| s.from == SignalSource::Record) {
            let Some(when) = signal.when.as_ref().filter(|when| ran || !is_of_a_run(when)) else {
                continue;
            };
            let Some(found) = matches(when, job, silence) else { continue };
            // A folded code has two readings: it agrees with what something else says, no more.
            let role =
                if found.folded && signal.role == Role::Root { Role::Confirm } else { signal.role };
            let evidence = fact(&signal.id, role, found.field, found.step, found.text);
            let captures = found.captures;
            pieces.push(Piece { captures, ..Piece::recorded(index, signal, role, evidence) });
        }
    }
    pieces
}

/// Whether a pattern asks how a run went.
fn is_of_a_run(when: &RecordPattern) -> bool {
    let RecordPattern { exit, derived_exit, step_state, idle, silent, memory_full, .. } = when;
    exit.is_some()
        || derived_exit.is_some()
        || step_state.is_some()
        || idle.is_some()
        || silent.is_some()
        || memory_full.is_some()
}

/// A run that used less than one CPU in so many did next to nothing.
const WAITED: u64 = 10;

#[derive(Default)]
struct Found {
    field: &'static str,
    step: Option<String>,
    text: String,
    folded: bool,
    captures: BTreeMap<String, String>,
}

/// Whether every field of the pattern holds; told is the most telling of them.
fn matches(when: &RecordPattern, job: &Job, silence: Option<&Silence>) -> Option<Found> {
    let mut found: Option<Found> = None;
    let mut note = |it: Found| {
        found.get_or_insert(it);
    };
    let mut state = &job.state;
    if let Some(word) = &when.step_state {
        let step = own_steps(job).find(|step| step.state.word() == word)?;
        state = &step.state;
        let exit = step.exit.get().filter(|exit| !exit.is_clean());
        let exit = exit.map(|exit| format!(", {}", exit.explained())).unwrap_or_default();
        let (by, captures) = cancelled_by(state, job);
        let text = format!("{}{by}{exit}", state.text);
        note(Found {
            field: "State",
            step: Some(step.id.0.clone()),
            text,
            captures,
            ..Found::default()
        });
    }
    if let Some(cancelled_by) = when.cancelled_by {
        (state.by.is_some() == cancelled_by).then_some(())?;
    }
    if let Some(idle) = when.idle {
        let (idled, text) = idled(job)?;
        (idled == idle).then_some(())?;
        note(Found { field: "TotalCPU", text, ..Found::default() });
    }
    // Told before the exit: it says which reading of a folded code is meant.
    if let Some(full) = when.memory_full {
        let (peak, step) = job.peak_memory()?;
        let limit = job.memory_per_node()?;
        (full == (peak.0 >= limit.0 / 100 * 90)).then_some(())?;
        let text = format!("{peak} of {limit} allocated per node");
        note(Found { field: "MaxRSS", step: Some(step.id.0.clone()), text, ..Found::default() });
    }
    if let Some(silent) = when.silent {
        let stood = silence.filter(|silence| stood_still(silence, job));
        (stood.is_some() == silent).then_some(())?;
        let text = stood.map(Silence::to_string).unwrap_or_default();
        note(Found { field: "End", text, ..Found::default() });
    }
    for (field, pattern, exit) in [
        ("ExitCode", &when.exit, &job.exit),
        ("DerivedExitCode", &when.derived_exit, &job.derived_exit),
    ] {
        if let Some(pattern) = pattern {
            let exit = exit.get()?;
            let folded = exit_matches(pattern, exit)?;
            note(Found { field, text: exit.explained(), folded, ..Found::default() });
        }
    }
    if let Some(prefix) = &when.reason {
        let reason = job.reason.as_ref().filter(|reason| reason.starts_with(prefix.as_str()))?;
        note(Found { field: "Reason", text: reason.clone(), ..Found::default() });
    }
    if let Some(depends) = when.depends {
        let dependency = dependency(job);
        (dependency.is_some() == depends).then_some(())?;
        note(Found {
            field: "Dependency",
            text: dependency.unwrap_or_default(),
            ..Found::default()
        });
    }
    if let Some(word) = &when.state {
        (job.state.word() == word).then_some(())?;
        let (by, captures) = cancelled_by(&job.state, job);
        let text = format!("{}{by}", job.state.text);
        note(Found { field: "State", text, captures, ..Found::default() });
    }
    if let Some(started) = when.started {
        (job.has_started() == started).then_some(())?;
        let text = if started { "started" } else { "never started" }.to_owned();
        note(Found { field: "Start", text, ..Found::default() });
    }
    found
}

/// Who cancelled, in words and as captures, where the state says so.
fn cancelled_by(state: &State, job: &Job) -> (&'static str, BTreeMap<String, String>) {
    let Some(by) = state.by.as_deref() else { return ("", BTreeMap::new()) };
    let is_owner =
        job.user.as_deref() == Some(by) || job.uid.get().is_some_and(|uid| by.parse() == Ok(uid));
    let (who, words) = match by {
        "0" | "root" => ("root", " (root: the site's staff or its programs)"),
        _ if is_owner => ("owner", " (the job's owner)"),
        _ if job.user.is_none() && !job.uid.is_value() => ("unknown", ""),
        _ => ("other", " (not the job's owner)"),
    };
    let captures = [("by", by), ("who", who)].map(|(name, value)| (name.into(), value.into()));
    (words, captures.into())
}

/// What the job was submitted to wait for, as far as that is recorded.
fn dependency(job: &Job) -> Option<String> {
    let recorded = job.dependency.clone().filter(|text| !text.is_empty());
    recorded.or_else(|| {
        let mut words = job.submit_line.as_deref()?.split_whitespace();
        while let Some(word) = words.next() {
            if let Some(value) = word.strip_prefix("--dependency=") {
                return Some(value.to_owned());
            }
            if word == "--dependency" || word == "-d" {
                return words.next().map(str::to_owned);
            }
        }
        None
    })
}

/// Whether an exit fits `code:signal`, and whether only by the other reading of a folded code.
fn exit_matches(pattern: &str, exit: Exit) -> Option<bool> {
    let (code, signal) = pattern.split_once(':')?;
    let fits = |part: &str, value: u32| part == "*" || part.parse() == Ok(value);
    fits(signal, exit.signal).then_some(())?;
    if fits(code, exit.code) {
        return Some(false);
    }
    exit.codes().into_iter().any(|value| fits(code, value)).then_some(true)
}

/// Steps that run the user's work.
pub(super) fn own_steps(job: &Job) -> impl Iterator<Item = &Step> {
    job.steps.iter().filter(|step| !step.id.is_extern())
}

/// Evidence from a field of the record.
pub(super) fn fact(
    signal: &str,
    role: Role,
    field: &'static str,
    step: Option<String>,
    value: impl AsRef<str>,
) -> Evidence {
    Evidence {
        signal: signal.to_owned(),
        role,
        place: Place::Record { field, step },
        text: format!("{field} {}", value.as_ref()),
    }
}

/// What the record tells about a run that nothing explains: how it ended, and the first step that
/// did not end well.
pub(super) fn plain_facts(job: &Job) -> Vec<Evidence> {
    let mut facts = Vec::new();
    let mut tell = |field, step, value: String| {
        facts.push(fact("record", Role::Confirm, field, step, value));
    };
    if job.state.base != BaseState::Completed {
        tell("State", None, job.state.text.clone());
    }
    if let Some(exit) = job.exit.get().filter(|exit| !exit.is_clean()) {
        tell("ExitCode", None, exit.explained());
    }
    if let Some(exit) = job.derived_exit.get().filter(|exit| !exit.is_clean()) {
        tell("DerivedExitCode", None, exit.explained());
    }
    if let Some(step) = own_steps(job).find(|step| !step.id.is_batch() && step.state.is_failure()) {
        let exit =
            step.exit.get().map(|exit| format!(", {}", exit.explained())).unwrap_or_default();
        tell("State", Some(step.id.0.clone()), format!("{}{exit}", step.state.text));
    }
    facts
}

/// Whether a run that the scheduler calls completed failed in some step all the same. Steps that
/// were still running when the script ended are cancelled by nobody: that is no failure.
pub(super) fn failed_silently(job: &Job) -> bool {
    let mut steps = own_steps(job).filter(|step| !step.id.is_batch()).peekable();
    if steps.peek().is_none() {
        return job.derived_exit.get().is_some_and(|exit| !exit.is_clean());
    }
    steps.any(|step| step.state.is_failure() || step.state.by.is_some())
}

/// Why a job that failed in something is called completed all the same.
pub(super) fn why_completed(of: &str) -> Evidence {
    let text = format!("COMPLETED: the state is that of the script's last command, not of {of}");
    fact("check", Role::Confirm, "State", None, text)
}

/// What a check says about a family for which there is evidence already.
pub(super) struct Said {
    /// What the family's score is multiplied by; 1 where nothing contradicts.
    pub(super) factor: f64,
    /// The numbers, as support ([`Role::Confirm`]) or contradiction ([`Role::Noise`]).
    pub(super) evidence: Option<Evidence>,
}

impl Said {
    const NOTHING: Self = Self { factor: 1.0, evidence: None };

    fn for_it(field: &'static str, step: Option<String>, text: impl AsRef<str>) -> Self {
        Self { factor: 1.0, evidence: Some(fact("check", Role::Confirm, field, step, text)) }
    }

    fn against(factor: f64, field: &'static str, text: impl AsRef<str>) -> Self {
        Self { factor, evidence: Some(fact("check", Role::Noise, field, None, text)) }
    }
}

/// Runs one check.
pub(super) fn check(check: Check, job: &Job, silence: Option<&Silence>) -> Said {
    match check {
        Check::MemoryNearLimit => memory_near_limit(job),
        Check::GpusAllocated => gpus_allocated(job),
        Check::TimeUsedUp => time_used_up(job),
        Check::CpuWasBusy => cpu_was_busy(job, silence),
    }
}

/// Peaks are sampled, so a low one contradicts only a run long enough to have been sampled often.
fn memory_near_limit(job: &Job) -> Said {
    let (Some((peak, step)), Some(limit)) = (job.peak_memory(), job.memory_per_node()) else {
        return Said::NOTHING;
    };
    let text = format!("{peak} of {limit} allocated per node");
    if peak.0 >= limit.0 / 100 * 85 {
        Said::for_it("MaxRSS", Some(step.id.0.clone()), text)
    } else if peak.0 < limit.0 / 4 && lasted(job, 300) {
        Said::against(0.85, "MaxRSS", text)
    } else {
        Said::NOTHING
    }
}

fn gpus_allocated(job: &Job) -> Said {
    if job.allocated.is_empty() {
        return Said::NOTHING;
    }
    match job.gpus() {
        Some(count) if count > 0 => Said::NOTHING,
        _ => Said::against(0.7, "AllocTRES", "names no GPU"),
    }
}

fn time_used_up(job: &Job) -> Said {
    let (Some(elapsed), Some(limit)) = (job.elapsed.get(), job.limit.get()) else {
        return Said::NOTHING;
    };
    let text = format!("{elapsed} of {limit}");
    if elapsed >= limit {
        Said::for_it("Elapsed", None, text)
    } else if elapsed.as_millis() < limit.as_millis() / 2 && !timed_out(job) {
        Said::against(0.4, "Elapsed", text)
    } else if elapsed.as_millis() < limit.as_millis() / 10 * 9 {
        Said::against(0.7, "Elapsed", text)
    } else {
        Said::NOTHING
    }
}

/// Whether the record itself speaks of a time limit. That of a step may be shorter than the job's.
fn timed_out(job: &Job) -> bool {
    let states = job.steps.iter().map(|step| &step.state).chain([&job.state]);
    states.into_iter().any(|state| matches!(state.base, BaseState::Timeout | BaseState::Cancelled))
}

fn cpu_was_busy(job: &Job, silence: Option<&Silence>) -> Said {
    match (idled(job), silence.filter(|silence| stood_still(silence, job))) {
        (Some((true, text)), _) => Said::against(0.5, "TotalCPU", text),
        (_, Some(silence)) => Said::against(0.5, "End", silence.to_string()),
        _ => Said::NOTHING,
    }
}

/// Whether nothing tells that the run stood still before it ended.
pub(super) fn worked(job: &Job, silence: Option<&Silence>) -> bool {
    !matches!(idled(job), Some((true, _)))
        && !silence.is_some_and(|silence| stood_still(silence, job))
}

/// Whether a silence means that the run stood still: it broke off a steady stream of lines, or the
/// CPUs did next to nothing either. A program may well be quiet while it works.
fn stood_still(silence: &Silence, job: &Job) -> bool {
    let used = job.cpu_time.get().filter(|used| used.as_millis() > 0);
    let waited = used.is_some_and(|used| used.as_millis() < silence.elapsed.as_millis() / WAITED);
    silence.is_abrupt() || waited
}

/// Whether it waited and did not work: under two per cent of one CPU over ten minutes and more; with
/// the numbers. `None` where that cannot be known: a CPU time of zero means that nobody measured.
fn idled(job: &Job) -> Option<(bool, String)> {
    let used = job.cpu_time.get().filter(|used| used.as_millis() > 0)?;
    let elapsed = job.elapsed.get()?;
    let idle = lasted(job, 600) && used.as_millis() < elapsed.as_millis() / 50;
    let waited = if idle { ": it waited" } else { "" };
    Some((idle, format!("{used} in {elapsed}{waited}")))
}

fn lasted(job: &Job, seconds: u64) -> bool {
    job.elapsed.get().is_some_and(|elapsed| elapsed >= Span::seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_exit_fits_by_its_other_reading_only() {
        let folded = Exit { code: 11, signal: 0, folded: true };
        assert_eq!(exit_matches("139:0", folded), Some(true));
        assert_eq!(exit_matches("11:0", folded), Some(false));
        assert_eq!(exit_matches("*:0", folded), Some(false));
        assert_eq!(exit_matches("139:0", Exit { folded: false, ..folded }), None);
        assert_eq!(exit_matches("0:11", Exit { code: 0, signal: 11, folded: true }), Some(false));
    }
}
