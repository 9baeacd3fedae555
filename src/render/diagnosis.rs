//! A diagnosis for people: what ended how, why, by which lines, and what to do.

use std::io;

use super::job::heading;
use super::page::{Label, Page};
use super::{Report, kb};
use crate::answer::diagnose::{
    AnsweredBy, ChildJob, Closest, Diagnoses, Diagnosis, Fix, LogReport, Offer, Waiting, Wrapped,
};
use crate::capacity::gates::Gate;
use crate::knowledge::Provenance;
use crate::model::{Bytes, Cause, Confidence, Evidence, Job, Outcome, Place};
use crate::patch::{self, Patch};
use crate::text;

/// The margin that holds the names of parts.
const MARGIN: usize = 10;
/// Evidence shown for the first cause; the JSON has all of it.
const EVIDENCE: usize = 5;
/// Lines of a consequence list.
const CONSEQUENCES: usize = 3;

impl Report for Diagnoses {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for array in &self.arrays {
            page.line(&[(Label::Strong, &array.in_words())])?;
        }
        if !self.arrays.is_empty() {
            page.gap()?;
        }
        for (index, alike) in stories(&self.diagnoses).iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            let [first, others @ ..] = alike.as_slice() else { continue };
            one(page, first, self.scores)?;
            if !others.is_empty() {
                let ids: Vec<String> =
                    others.iter().map(|other| other.job.id.to_string()).collect();
                let what = text::count(others.len() as u64, "more job");
                page.entry(
                    "same for",
                    MARGIN,
                    Label::Strong,
                    &format!("{what}: {}", ids.join(" ")),
                )?;
            }
        }
        page.notices(&self.notices)?;
        let judged = self.diagnoses.iter().find(|diagnosis| diagnosis.fix.is_some());
        judged.map_or(Ok(()), |diagnosis| answered_by(page, &diagnosis.answered_by))
    }
}

/// The diagnoses in groups that are one story each, in the order in which they are first told.
pub(super) fn stories(diagnoses: &[Diagnosis]) -> Vec<Vec<&Diagnosis>> {
    let mut told: Vec<(Key<'_>, Vec<&Diagnosis>)> = Vec::new();
    for diagnosis in diagnoses {
        match told.iter_mut().find(|(key, _)| *key == Key::of(diagnosis)) {
            Some((_, alike)) => alike.push(diagnosis),
            None => told.push((Key::of(diagnosis), vec![diagnosis])),
        }
    }
    told.into_iter().map(|(_, alike)| alike).collect()
}

/// What makes two tasks of an array the same story.
#[derive(PartialEq)]
struct Key<'d> {
    number: u64,
    state: &'d str,
    exit: String,
    outcome: Outcome,
    signal: Option<(&'d str, &'d str)>,
}

impl<'d> Key<'d> {
    fn of(diagnosis: &'d Diagnosis) -> Self {
        let signal = diagnosis.verdict.causes.first();
        Self {
            number: diagnosis.job.id.number,
            state: &diagnosis.job.state.text,
            exit: diagnosis.job.exit.to_string(),
            outcome: diagnosis.verdict.outcome,
            signal: signal.map(|cause| (cause.family.0.as_str(), cause.signal.as_str())),
        }
    }
}

fn one(page: &mut Page<'_>, diagnosis: &Diagnosis, scores: bool) -> io::Result<()> {
    if diagnosis.job.state.text.is_empty() {
        page.line(&[(Label::Strong, "text without a record")])?;
    } else {
        heading(page, &diagnosis.job)?;
    }
    if let Some(ending) = &diagnosis.ending {
        let number = ending.line.map(|line| format!(" in line {line}")).unwrap_or_default();
        let text = format!("no sign of failure; a good end{number}: {}", ending.text);
        page.entry("cause", MARGIN, Label::Good, &text)?;
    }
    match diagnosis.verdict.outcome {
        Outcome::Healthy => {
            page.entry("verdict", MARGIN, Label::Good, &nothing_wrong(diagnosis))?;
            return page.notices(&diagnosis.notices);
        }
        Outcome::Running => {
            page.entry("verdict", MARGIN, Label::Plain, "not over yet; ask again when it is")?;
            return page.notices(&diagnosis.notices);
        }
        Outcome::Pending => {
            if let Some(waiting) = &diagnosis.waiting {
                self::waiting(page, waiting, diagnosis.fix.is_some())?;
            }
            if let Some(first) = diagnosis.verdict.causes.first() {
                let text = format!("{} ({})", first.title, first.family);
                page.entry("cause", MARGIN, Label::Strong, &text)?;
            }
            for gate in &diagnosis.held {
                page.entry("limit", MARGIN, Label::Strong, &limit_in_words(gate))?;
            }
        }
        Outcome::Cause => {
            if let Some(first) = diagnosis.verdict.causes.first() {
                cause(page, &diagnosis.job, first)?;
            }
            let consequences = diagnosis.verdict.consequences.iter().take(CONSEQUENCES);
            evidence(page, &diagnosis.job, "then", consequences)?;
        }
        Outcome::Unknown => {
            unknown(page, diagnosis)?;
            closest(page, &diagnosis.closest, scores)?;
        }
    }
    for offer in &diagnosis.offers {
        page.entry("instead", MARGIN, Label::Strong, &offer_in_words(offer))?;
    }
    for parent in &diagnosis.parents {
        child(page, "parent", parent)?;
    }
    for failed in &diagnosis.children {
        child(page, "child", failed)?;
    }
    if let Some(fix) = &diagnosis.fix {
        self::fix(page, fix)?;
        if scores {
            kb::scores(page, fix.score, fix.parts, &fix.sections)?;
        }
    }
    if diagnosis.report.is_some() {
        let text = "not yours to mend: with --ticket this is a report for the site's staff";
        page.entry("report", MARGIN, Label::Plain, text)?;
    }
    if let Some(patch) = &diagnosis.patch {
        self::patch(page, patch)?;
    }
    if let Some(wrapped) = &diagnosis.wrapper {
        self::wrapped(page, wrapped)?;
    }
    page.notices(&diagnosis.notices)
}

/// What was looked at, and that nothing was found: whether the results are right no record tells.
fn nothing_wrong(diagnosis: &Diagnosis) -> String {
    let job = &diagnosis.job;
    // Of logs alone nobody may have said how the run ended.
    let state = job.state.word().to_lowercase();
    let stated = if state.is_empty() { String::new() } else { format!("{state}; ") };
    let record = if state.is_empty() { "" } else { "its record and " };
    let read = |log: &&LogReport| log.trouble.is_none() && log.scanned.is_value();
    let logs: Vec<&LogReport> = diagnosis.logs.iter().filter(read).collect();
    let bytes: u64 = logs.iter().filter_map(|log| log.scanned.get()).sum();
    let mut said = match logs.as_slice() {
        [] => format!("{stated}nothing found wrong in its record, and no log was read"),
        [log] => {
            let path = short(job, &log.path);
            format!("{stated}nothing found wrong in {record}{path} ({} read)", Bytes(bytes))
        }
        logs => {
            let logs = text::count(logs.len() as u64, "log");
            format!("{stated}nothing found wrong in {record}{logs} ({} read)", Bytes(bytes))
        }
    };
    for log in diagnosis.logs.iter().filter(|log| !read(log)).take(1) {
        let why = log.trouble.as_deref().unwrap_or("not read");
        said.push_str(&format!("; {}: {why}", short(job, &log.path)));
    }
    said
}

/// What the change is called in the tool that wrote the submission.
fn wrapped(page: &mut Page<'_>, wrapped: &Wrapped) -> io::Result<()> {
    for setting in &wrapped.settings {
        let text = format!("in {} (seen in {}): {setting}", wrapped.tool, wrapped.seen_in);
        page.entry("set", MARGIN, Label::Strong, &text)?;
    }
    Ok(())
}

/// The name that was probably meant, and all there are.
pub(super) fn offer_in_words(offer: &Offer) -> String {
    /// A cluster has a dozen partitions, a user a few accounts.
    const MOST: usize = 20;
    let what = offer.what.option();
    let given = offer.given.as_deref();
    let valid = if offer.valid.is_empty() {
        format!("you have no {what} here that could be given")
    } else {
        let shown: Vec<&str> = offer.valid.iter().take(MOST).map(String::as_str).collect();
        let more = offer.valid.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("there are {}{more}", shown.join(", "))
    };
    match (&offer.nearest, given) {
        (Some(nearest), Some(given)) => {
            format!("--{what}={nearest} instead of {given}? {valid}")
        }
        (_, Some(given)) if offer.valid.iter().any(|name| name == given) => {
            format!("--{what}={given} is there, but not for this job; {valid}")
        }
        (_, Some(given)) => format!("no {what} is called {given}: {valid}"),
        (_, None) => format!("--{what}: {valid}"),
    }
}

/// What a job asks for beside what is allowed, and what to ask for instead.
pub(super) fn limit_in_words(gate: &Gate) -> String {
    let lift = gate.lift.as_ref().map(|lift| format!(": {lift}")).unwrap_or_default();
    format!("{} ({}){lift}", gate.text, gate.source)
}

/// A job that belongs to another one, in one sentence.
pub(super) fn child_in_words(child: &ChildJob) -> String {
    let step = child.step.as_deref().map_or_else(String::new, |step| format!("step {step}, "));
    let id = &child.id;
    let Some(told) = &child.diagnosis else {
        let why = child.trouble.as_deref().unwrap_or("unknown");
        return format!("{step}job {id}: not read ({why}); ask: jobwise diagnose {id}");
    };
    let named = matches!(told.verdict.outcome, Outcome::Cause | Outcome::Pending);
    let cause = told.verdict.causes.first().filter(|_| named);
    let cause = cause.map(|cause| format!("{} ({})", cause.title, cause.family));
    let cause = cause.unwrap_or_else(|| {
        let known = match told.verdict.outcome {
            Outcome::Healthy => "nothing wrong with it",
            Outcome::Running => "not over yet",
            Outcome::Pending => "the reason is not known",
            _ => "cause unknown",
        };
        known.to_owned()
    });
    format!("{step}job {id}, {}: {cause}", told.job.state.text)
}

/// A job that belongs to another one: what it came to, its evidence, and what to change.
fn child(page: &mut Page<'_>, what: &str, child: &ChildJob) -> io::Result<()> {
    page.entry(what, MARGIN, Label::Strong, &child_in_words(child))?;
    let Some(told) = &child.diagnosis else { return Ok(()) };
    let cause = told.verdict.causes.first().filter(|_| told.verdict.outcome == Outcome::Cause);
    evidence(page, &told.job, "", cause.iter().flat_map(|cause| &cause.evidence).take(2))?;
    for change in told.patch.iter().flat_map(|patch| &patch.changes) {
        let text = format!("{}: {}", change.to, change.because);
        page.entry("", MARGIN, Label::Strong, &text)?;
    }
    told.wrapper.as_ref().map_or(Ok(()), |wrapped| self::wrapped(page, wrapped))
}

fn answered_by(page: &mut Page<'_>, by: &AnsweredBy) -> io::Result<()> {
    let model = by.model.as_deref().unwrap_or("no model");
    let rules = text::count(by.rules as u64, "family");
    page.line(&[(Label::Dim, &format!("answered by rules ({rules}), {}, {model}", by.index))])
}

/// The table's short advice is for reasons that no note explains.
fn waiting(page: &mut Page<'_>, waiting: &Waiting, explained: bool) -> io::Result<()> {
    page.entry("waits", MARGIN, Label::Strong, &waiting.reason)?;
    let meaning = waiting.meaning.as_deref().unwrap_or("a reason this version does not know");
    page.entry("that is", MARGIN, Label::Plain, meaning)?;
    let (label, helps) = match (waiting.waiting_helps, explained) {
        (Some(true), _) => (Label::Good, "helps: it will start by itself"),
        (Some(false), _) => (Label::Bad, "does not help: as it is, it will not start"),
        (None, true) => (Label::Warn, "helps in some cases only, see below"),
        (None, false) => (Label::Plain, "n/a"),
    };
    page.entry("waiting", MARGIN, label, helps)?;
    match waiting.action.as_deref().filter(|_| !explained) {
        Some(action) => page.entry("advice", MARGIN, Label::Plain, action),
        None => Ok(()),
    }
}

fn cause(page: &mut Page<'_>, job: &Job, cause: &Cause) -> io::Result<()> {
    page.entry("cause", MARGIN, Label::Strong, &format!("{} ({})", cause.title, cause.family))?;
    page.entry("sure", MARGIN, Label::Plain, &confidence(cause))?;
    evidence(page, job, "evidence", cause.evidence.iter().take(EVIDENCE))
}

pub(super) fn confidence(cause: &Cause) -> String {
    let Confidence { measured, cases, .. } = cause.confidence;
    let right = (measured * f64::from(cases)).round();
    format!("{:.0} % (right in {right} of {cases} known cases as clear as this)", measured * 100.0)
}

/// A place in a log.
pub(super) fn in_log(job: &Job, place: &Place) -> String {
    let Place::Log { path, line, offset, partial, .. } = place else { return String::new() };
    let part = if *partial { ", a damaged file" } else { "" };
    match line {
        Some(line) => format!("{}:{line}{part}", short(job, path)),
        None => format!("{} at byte {offset}{part}", short(job, path)),
    }
}

/// Lines of logs with their place above them; what the record says in one paragraph at the end.
fn evidence<'e>(
    page: &mut Page<'_>,
    job: &Job,
    name: &str,
    pieces: impl Iterator<Item = &'e Evidence>,
) -> io::Result<()> {
    let (logs, records): (Vec<&Evidence>, Vec<&Evidence>) =
        pieces.partition(|piece| matches!(piece.place, Place::Log { .. }));
    let mut name = name;
    for piece in logs {
        let place = match &piece.place {
            Place::Log { .. } => in_log(job, &piece.place),
            Place::Record { .. } => continue,
        };
        page.line(&[(Label::Dim, &text::pad(name, MARGIN)), (Label::Dim, &place)])?;
        page.entry("", MARGIN + 2, Label::Plain, &piece.text)?;
        name = "";
    }
    let said: Vec<String> = records
        .iter()
        .map(|piece| match &piece.place {
            Place::Record { step: Some(step), .. } => format!("step {step}: {}", piece.text),
            _ => piece.text.clone(),
        })
        .collect();
    if said.is_empty() {
        return Ok(());
    }
    page.entry(name, MARGIN, Label::Plain, &format!("the record: {}", said.join("; ")))
}

/// A path as people call it: relative to the job's own directory where it lies below.
pub(super) fn short<'p>(job: &Job, path: &'p str) -> &'p str {
    let below = job.work_dir.as_deref().and_then(|directory| {
        path.strip_prefix(directory.trim_end_matches('/'))?.strip_prefix('/')
    });
    below.unwrap_or(path)
}

fn unknown(page: &mut Page<'_>, diagnosis: &Diagnosis) -> io::Result<()> {
    let verdict = &diagnosis.verdict;
    let silent = verdict.causes.is_empty() && verdict.consequences.is_empty();
    let text = if diagnosis.job.state.text.is_empty() && silent {
        "unknown: the text speaks neither of a failure nor of a good end"
    } else {
        "unknown: the evidence does not decide"
    };
    page.entry("cause", MARGIN, Label::Strong, text)?;
    for guess in verdict.causes.iter().take(3) {
        let text = format!("perhaps {} ({}), {}", guess.title, guess.family, confidence(guess));
        page.entry("guess", MARGIN, Label::Plain, &text)?;
        evidence(page, &diagnosis.job, "", guess.evidence.iter().take(1))?;
        let known = diagnosis.guesses.iter().find(|known| known.family == guess.family);
        if let Some(first) = known.and_then(|known| known.verify.first()) {
            page.entry("check", MARGIN, Label::Plain, first)?;
        }
        page.entry("more", MARGIN, Label::Dim, &format!("jobwise kb show {}", guess.family))?;
    }
    evidence(page, &diagnosis.job, "seen", diagnosis.verdict.consequences.iter().take(EVIDENCE))?;
    for log in &diagnosis.logs {
        if log.tail.is_empty() {
            let nothing = match log.size.get() {
                None => continue,
                Some(0) if log.trouble.is_some() => "nothing of it could be read",
                Some(0) => "empty",
                Some(_) => "nothing but blanks",
            };
            let text = format!("{}: {nothing}", short(&diagnosis.job, &log.path));
            page.entry("read", MARGIN, Label::Dim, &text)?;
            continue;
        }
        let place = format!("{}, its last lines:", short(&diagnosis.job, &log.path));
        page.line(&[(Label::Dim, &text::pad("read", MARGIN)), (Label::Dim, &place)])?;
        for quoted in &log.tail {
            let number = quoted.line.map(|line| format!("{line}: ")).unwrap_or_default();
            page.entry("", MARGIN + 2, Label::Plain, &format!("{number}{}", quoted.text))?;
        }
    }
    Ok(())
}

/// Notes to begin with: nobody says that one of them is the cause.
fn closest(page: &mut Page<'_>, closest: &[Closest], scores: bool) -> io::Result<()> {
    for (index, note) in closest.iter().enumerate() {
        let name = if index == 0 { "closest" } else { "" };
        let text = format!("{}: jobwise kb show {}", note.title, note.family);
        page.entry(name, MARGIN, Label::Plain, &text)?;
        let next = closest.get(index + 1);
        if next.is_none_or(|next| next.line != note.line) {
            page.entry("", MARGIN, Label::Dim, &format!("by: {}", note.line))?;
        }
        if scores {
            kb::scores(page, note.score, note.parts, &[])?;
        }
    }
    if closest.is_empty() {
        return Ok(());
    }
    let meant = closest.iter().any(|note| note.parts.dense > 0.0);
    let by = if meant { "words and meaning" } else { "words" };
    page.entry("", MARGIN, Label::Dim, &format!("guesses by {by}, and no cause"))
}

fn fix(page: &mut Page<'_>, fix: &Fix) -> io::Result<()> {
    for own in &fix.own {
        page.entry("here", MARGIN, Label::Strong, &format!("{} ({})", own.title, own.path))?;
        steps(page, &own.steps)?;
    }
    let title = match &fix.provenance {
        Provenance::BuiltIn => fix.title.clone(),
        Provenance::Overlay(path) => format!("{} ({path})", fix.title),
        Provenance::Replacement(path) => {
            format!("{} ({path}, in place of the built-in note)", fix.title)
        }
    };
    page.entry("fix", MARGIN, Label::Strong, &title)?;
    steps(page, &fix.steps)?;
    page.entry("more", MARGIN, Label::Dim, &format!("jobwise kb show {}", fix.family))
}

fn steps(page: &mut Page<'_>, steps: &[String]) -> io::Result<()> {
    for (index, step) in steps.iter().enumerate() {
        let number = format!("{:>width$}. ", index + 1, width = MARGIN - 2);
        page.entry(&number, MARGIN, Label::Plain, step)?;
    }
    Ok(())
}

/// Where a change belongs, behind the change.
pub(super) fn where_to(place: patch::Place) -> &'static str {
    match place {
        patch::Place::CommandLine => " on the submission command, which wins over the script",
        patch::Place::BeforeSubmitting => " before submitting",
        patch::Place::NotAtHand => " where the job is described",
        patch::Place::Script => "",
    }
}

fn patch(page: &mut Page<'_>, patch: &Patch) -> io::Result<()> {
    for change in &patch.changes {
        let from = change.from.as_deref().map_or_else(String::new, |from| format!("{from} -> "));
        let text = format!("{from}{}{}: {}", change.to, where_to(change.place), change.because);
        page.entry("change", MARGIN, Label::Strong, &text)?;
    }
    for refused in &patch.refused {
        page.entry("no change", MARGIN, Label::Warn, &refused.why)?;
    }
    for line in patch.diff.as_deref().unwrap_or_default().split_terminator('\n') {
        let label = match line.as_bytes().first() {
            Some(b'+') => Label::Added,
            Some(b'-') => Label::Removed,
            _ => Label::Plain,
        };
        page.diff_line(label, line)?;
    }
    Ok(())
}
