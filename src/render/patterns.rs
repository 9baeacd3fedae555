//! Patterns for people.

use std::io;

use super::Report;
use super::figures::hours;
use super::overview::{beside, head};
use super::page::{Label, Page};
use crate::answer::patterns::{PatternRow, Patterns};
use crate::text;

impl Report for Patterns {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        head(page, &self.scope)?;
        let workloads = text::count(self.workload_count as u64, "workload");
        let mut said = match self.total {
            0 => format!("nothing repeats in {workloads}"),
            total => format!("{} in {workloads}", text::count(total as u64, "pattern")),
        };
        if self.total > self.patterns.len() {
            let hidden = self.total - self.patterns.len();
            said.push_str(&format!("; {hidden} not shown, -n 0 shows all"));
        }
        page.entry("", 0, Label::Plain, &said)?;
        let users = self.scope.users.as_ref().is_none_or(|users| users.len() > 1);
        for pattern in &self.patterns {
            page.gap()?;
            block(page, pattern, users)?;
        }
        page.notices_apart(&self.notices)
    }
}

fn block(page: &mut Page<'_>, pattern: &PatternRow, users: bool) -> io::Result<()> {
    let what = match pattern.pattern {
        "failures" => "fails again and again",
        "memory" => "dies of memory",
        _ => "is requeued again and again",
    };
    let label = if pattern.severe { Label::Bad } else { Label::Warn };
    let beside = beside(&pattern.name, users);
    page.row(&[(Label::Strong, &pattern.name.workload), (Label::Plain, &beside), (label, what)])?;
    page.entry("  seen  ", 8, Label::Plain, &pattern.evidence)?;
    let mut cost = format!("{} core-hours", hours(pattern.core_hours));
    if pattern.gpu_hours > 0.0 {
        cost.push_str(&format!(", {} GPU-hours", hours(pattern.gpu_hours)));
    }
    page.entry("  cost  ", 8, Label::Plain, &cost)?;
    page.entry("  do    ", 8, Label::Plain, &pattern.action)
}
