//! Snapshots, and what differs between two, for people.

use std::io;

use super::Report;
use super::page::{Label, Page};
use crate::answer::snapshot::{Compared, Snapshot};
use crate::capacity::diff::{Difference, DifferenceKind};
use crate::model::Known;
use crate::text;

/// So many names are told of one difference; the rest is counted.
const NAMES: usize = 6;

impl Report for Snapshot {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.line(&[(Label::Strong, &self.path)])?;
        let count = |number: usize, noun: &str| text::count(number as u64, noun);
        let facts = [
            format!("cluster {}", self.cluster.as_deref().unwrap_or("n/a")),
            count(self.nodes, "node"),
            count(self.queues, "partition"),
            count(self.jobs, "job"),
            count(self.asked, "dry run"),
            format!("taken {}", page.moment(&Known::Value(self.taken_at))),
        ];
        page.entry("", 2, Label::Plain, &facts.join(", "))?;
        let names = if self.redacted {
            "users, accounts, groups and hosts have other names, and jobs none"
        } else {
            "it names users, accounts and hosts: --redact replaces them"
        };
        page.entry("", 2, Label::Dim, names)?;
        page.notices(&self.notices)
    }
}

impl Report for Compared {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let moment = |at| page.moment(&Known::Value(at));
        let heading = format!("{} -> {}", moment(self.before), moment(self.after));
        page.line(&[(Label::Strong, &heading)])?;
        if self.differences.is_empty() {
            page.line(&[(Label::Plain, "nothing differs")])?;
        }
        for difference in &self.differences {
            let (sign, label) = match difference.kind {
                DifferenceKind::Added => ("+ ", Label::Added),
                DifferenceKind::Removed => ("- ", Label::Removed),
                DifferenceKind::Changed => ("~ ", Label::Plain),
            };
            page.entry(sign, 2, label, &sentence(difference))?;
        }
        page.notices(&self.notices)
    }
}

fn sentence(difference: &Difference) -> String {
    let Difference { subject, names, what, .. } = difference;
    let shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(" ");
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if names.len() > 1 {
        text::count(names.len() as u64, subject)
    } else {
        (*subject).to_owned()
    };
    match (names.is_empty(), what.is_empty()) {
        (true, _) => format!("{noun} {what}"),
        (false, true) => format!("{noun} {shown}{more}"),
        (false, false) => format!("{noun} {shown}{more}: {what}"),
    }
}
