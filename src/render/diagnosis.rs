//! A diagnosis for people: what ended how, why, by which lines, and what to do.

use std::io;

use super::job::heading;
use super::page::{Label, Page};
use super::Report;
use crate::answer::diagnose::{Diagnoses, Diagnosis, Fix, Waiting};
use crate::model::{Cause, Evidence, Level, Notice, Outcome, Place};
use crate::patch::Patch;
use crate::text;

/// The margin that holds the names of parts.
const MARGIN: usize = 10;
/// Evidence shown for the first cause; the JSON has all of it.
const EVIDENCE: usize = 5;
/// Lines of a consequence list.
const CONSEQUENCES: usize = 3;

impl Report for Diagnoses {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut told: Vec<(Key<'_>, Vec<&Diagnosis>)> = Vec::new();
        for diagnosis in &self.diagnoses {
            match told.iter_mut().find(|(key, _)| *key == Key::of(diagnosis)) {
                Some((_, alike)) => alike.push(diagnosis),
                None => told.push((Key::of(diagnosis), vec![diagnosis])),
            }
        }
        for (index, (_, alike)) in told.iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            let [first, others @ ..] = alike.as_slice() else { continue };
            one(page, first)?;
            if !others.is_empty() {
                let ids: Vec<String> = others.iter().map(|other| other.job.id.to_string()).collect();
                let what = text::count(others.len() as u64, "more job");
                page.entry("same for", MARGIN, Label::Strong, &format!("{what}: {}", ids.join(" ")))?;
            }
        }
        for failure in &self.failures {
            let text = format!("{}: {}", failure.id, failure.error);
            page.notices(&[Notice { level: Level::Warning, ..Notice::warning("failure", text) }])?;
        }
        Ok(())
    }
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

fn one(page: &mut Page<'_>, diagnosis: &Diagnosis) -> io::Result<()> {
    heading(page, &diagnosis.job)?;
    match diagnosis.verdict.outcome {
        Outcome::Healthy | Outcome::Running => return page.notices(&diagnosis.notices),
        Outcome::Pending => {
            if let Some(waiting) = &diagnosis.waiting {
                self::waiting(page, waiting)?;
            }
            return page.notices(&diagnosis.notices);
        }
        Outcome::Cause => {
            if let Some(first) = diagnosis.verdict.causes.first() {
                cause(page, first)?;
            }
            let consequences = &diagnosis.verdict.consequences;
            for (index, piece) in consequences.iter().take(CONSEQUENCES).enumerate() {
                evidence(page, if index == 0 { "then" } else { "" }, piece)?;
            }
        }
        Outcome::Unknown => unknown(page, diagnosis)?,
    }
    if let Some(fix) = &diagnosis.fix {
        self::fix(page, fix)?;
    }
    if let Some(patch) = &diagnosis.patch {
        self::patch(page, patch)?;
    }
    page.notices(&diagnosis.notices)?;
    let by = &diagnosis.answered_by;
    let model = by.model.as_deref().unwrap_or("no model");
    let line = format!(
        "answered by rules ({}), {}, {model}",
        text::count(by.rules as u64, "family"),
        by.index
    );
    page.line(&[(Label::Dim, &line)])
}

fn waiting(page: &mut Page<'_>, waiting: &Waiting) -> io::Result<()> {
    page.entry("waits", MARGIN, Label::Strong, &waiting.reason)?;
    match &waiting.meaning {
        Some(meaning) => page.entry("that is", MARGIN, Label::Plain, meaning)?,
        None => page.entry("that is", MARGIN, Label::Plain, "a reason this version does not know")?,
    }
    match &waiting.action {
        Some(action) => page.entry("you can", MARGIN, Label::Plain, action),
        None => Ok(()),
    }
}

fn cause(page: &mut Page<'_>, cause: &Cause) -> io::Result<()> {
    let sure = confidence(cause);
    page.entry("cause", MARGIN, Label::Strong, &format!("{} ({})", cause.title, cause.family))?;
    page.entry("sure", MARGIN, Label::Plain, &sure)?;
    for (index, piece) in cause.evidence.iter().take(EVIDENCE).enumerate() {
        evidence(page, if index == 0 { "evidence" } else { "" }, piece)?;
    }
    Ok(())
}

fn confidence(cause: &Cause) -> String {
    let measured = cause.confidence.measured * 100.0;
    format!(
        "{measured:.0} %: of {} with a score like this, that many were right",
        text::count(u64::from(cause.confidence.cases), "labelled case")
    )
}

fn evidence(page: &mut Page<'_>, name: &str, piece: &Evidence) -> io::Result<()> {
    let place = match &piece.place {
        Place::Log { path, line: Some(line), .. } => format!("{path}:{line}"),
        Place::Log { path, offset, .. } => format!("{path} at byte {offset}"),
        Place::Record { step: Some(step), .. } => format!("record of step {step}"),
        Place::Record { step: None, .. } => "record of the job".to_owned(),
    };
    page.entry(name, MARGIN, Label::Dim, &place)?;
    page.entry("", MARGIN + 2, Label::Plain, &piece.text)
}

fn unknown(page: &mut Page<'_>, diagnosis: &Diagnosis) -> io::Result<()> {
    page.entry("cause", MARGIN, Label::Strong, "unknown: the evidence does not decide")?;
    for guess in diagnosis.verdict.causes.iter().take(3) {
        let text = format!("perhaps {} ({}), {}", guess.title, guess.family, confidence(guess));
        page.entry("guess", MARGIN, Label::Plain, &text)?;
        if let Some(piece) = guess.evidence.first() {
            evidence(page, "", piece)?;
        }
    }
    for log in diagnosis.logs.iter().filter(|log| log.trouble.is_none()) {
        page.entry("read", MARGIN, Label::Plain, &log.path)?;
    }
    Ok(())
}

fn fix(page: &mut Page<'_>, fix: &Fix) -> io::Result<()> {
    page.entry("fix", MARGIN, Label::Strong, &format!("{} - {}", fix.title, fix.heading))?;
    for (index, step) in fix.steps.iter().enumerate() {
        let number = format!("{:>width$}. ", index + 1, width = MARGIN - 2);
        page.entry(&number, MARGIN, Label::Plain, step)?;
    }
    Ok(())
}

fn patch(page: &mut Page<'_>, patch: &Patch) -> io::Result<()> {
    for change in &patch.changes {
        let from = change.from.as_deref().unwrap_or("nothing");
        let text = format!("{from} -> {}: {}", change.to, change.because);
        page.entry("change", MARGIN, Label::Plain, &text)?;
    }
    for refused in &patch.refused {
        page.entry("no change", MARGIN, Label::Warn, &refused.why)?;
    }
    if let Some(command_line) = &patch.command_line {
        page.entry("submit", MARGIN, Label::Plain, command_line)?;
    }
    if let Some(diff) = &patch.diff {
        for line in diff.lines() {
            let label = match line.as_bytes().first() {
                Some(b'+') => Label::Added,
                Some(b'-') => Label::Removed,
                _ => Label::Plain,
            };
            page.line(&[(label, line)])?;
        }
    }
    Ok(())
}
