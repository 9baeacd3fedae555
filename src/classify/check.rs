//! `kb check`, the half that runs the rules: whether each example makes its own family win, and
//! no counter does.

use super::stream::{listen, silenced};
use super::{Facts, LogFacts, Rules, decide, decide_text};
use crate::knowledge::{Finding, SignalSource};
use crate::logs::Scan;
use crate::model::{FamilyId, Job, JobId, Outcome, Role, Source, State, Stream, Verdict};

/// Checks every family. `scan` scans a text for the literals of `rules`.
pub fn check(rules: &Rules, scan: &dyn Fn(&str) -> Scan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for family in rules.families() {
        let mut find = |what| findings.push(Finding::about(family, what));
        for signal in &family.signals {
            let Some(example) = &signal.example else { continue };
            if signal.role == Role::Noise {
                if signal.from == SignalSource::Log && silenced(rules, &scan(example)).is_empty() {
                    find(format!("the example of '{}' does not fire it", signal.id));
                }
                continue;
            }
            let verdict = verdict(rules, signal.from, example, scan);
            let first = first(&verdict);
            let wins = first == Some(&family.id);
            if signal.role == Role::Root && !wins {
                let first = first.map_or("nothing", |id| &id.0);
                find(format!("the example of '{}' names {first} first", signal.id));
            } else if !wins && !heard(rules, &scan(example), &family.id, &signal.id) {
                find(format!("the example of '{}' does not fire it", signal.id));
            }
        }
        let mut sources = vec![SignalSource::Log];
        sources.extend(family.signals.iter().map(|signal| signal.from));
        for counter in &family.counter {
            let wins = |from: &SignalSource| {
                first(&verdict(rules, *from, counter, scan)) == Some(&family.id)
            };
            if sources.iter().any(wins) {
                find(format!("'{counter}' makes it win"));
            }
        }
    }
    findings
}

/// What is concluded from a text alone, taken for what it is said to be.
fn verdict(rules: &Rules, from: SignalSource, text: &str, scan: &dyn Fn(&str) -> Scan) -> Verdict {
    let scanned = scan(text);
    let facts = facts(&scanned);
    match from {
        SignalSource::Reason => {
            let state = State::parse("PENDING");
            let mut job = Job::bare(JobId::whole(0), state, Source::Given);
            job.reason = Some(text.to_owned());
            decide(rules, &Facts { job: Some(&job), ..facts })
        }
        SignalSource::Submit => decide_text(rules, &facts.logs[0], text.as_bytes()),
        SignalSource::Log | SignalSource::Record => decide(rules, &facts),
    }
}

/// The family that a verdict names.
fn first(verdict: &Verdict) -> Option<&FamilyId> {
    let named = matches!(verdict.outcome, Outcome::Cause | Outcome::Pending);
    verdict.causes.first().filter(|_| named).map(|cause| &cause.family)
}

/// Whether the signal becomes a piece of evidence.
fn heard(rules: &Rules, scan: &Scan, family: &FamilyId, signal: &str) -> bool {
    let facts = facts(scan);
    let pieces = facts.logs.iter().flat_map(|log| listen(rules, 0, log, None).pieces);
    let mut own = pieces.filter(|piece| rules.families()[piece.family].id == *family);
    own.any(|piece| piece.signal == signal)
}

fn facts(scan: &Scan) -> Facts<'_> {
    let log = LogFacts {
        path: "example",
        stream: Stream::Error,
        step: None,
        task: None,
        scan,
        end: None,
    };
    Facts { job: None, logs: vec![log], logs_complete: true }
}
