//! `kb check`, the half that runs the rules: whether each example makes its own family win, and
//! no counter does.

use super::stream::listen;
use super::{Facts, LogFacts, Rules, decide};
use crate::knowledge::{Finding, SignalSource};
use crate::logs::Scan;
use crate::model::{FamilyId, Outcome, Role, Stream};

/// Checks every family. `scan` scans a text for the literals of `rules`.
pub fn check(rules: &Rules, scan: &dyn Fn(&str) -> Scan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for family in rules.families() {
        for signal in family.signals.iter().filter(|signal| signal.from == SignalSource::Log) {
            let Some(example) = &signal.example else { continue };
            let scanned = scan(example);
            let heard = heard(rules, &scanned, &family.id, &signal.id);
            let first = first(rules, &scanned);
            let wins = first.as_deref() == Some(family.id.0.as_str());
            if signal.role == Role::Root && !wins {
                let first = first.as_deref().unwrap_or("nothing");
                let what = format!("the example of '{}' names {first} first", signal.id);
                findings.push(Finding::about(family, what));
            } else if !heard {
                let what = format!("the example of '{}' does not fire it", signal.id);
                findings.push(Finding::about(family, what));
            }
        }
        for counter in &family.counter {
            if first(rules, &scan(counter)).as_deref() == Some(family.id.0.as_str()) {
                findings.push(Finding::about(family, format!("'{counter}' makes it win")));
            }
        }
    }
    findings
}

/// The family that a log of this text alone names.
fn first(rules: &Rules, scan: &Scan) -> Option<String> {
    let verdict = decide(rules, &facts(scan));
    let cause = verdict.causes.into_iter().next()?;
    (verdict.outcome == Outcome::Cause).then_some(cause.family.0)
}

/// Whether the signal becomes a piece of evidence.
fn heard(rules: &Rules, scan: &Scan, family: &FamilyId, signal: &str) -> bool {
    let facts = facts(scan);
    let pieces = facts.logs.iter().flat_map(|log| listen(rules, 0, log).pieces);
    let mut own = pieces.filter(|piece| rules.families()[piece.family].id == *family);
    own.any(|piece| piece.signal == signal)
}

fn facts(scan: &Scan) -> Facts<'_> {
    let log = LogFacts { path: "example", stream: Stream::Error, step: None, task: None, scan };
    Facts { job: None, logs: vec![log], logs_complete: true }
}
