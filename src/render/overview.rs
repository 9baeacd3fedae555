//! Workloads for people: how many runs, how they went, what they held.

use std::io;

use super::Report;
use super::figures::{hours, percent};
use super::page::{Cell, Column, Label, Page, WHOLE};
use crate::answer::overview::Overview;
use crate::answer::scope::{Scope, WorkloadName};
use crate::model::Known;
use crate::text;

impl Report for Overview {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        head(page, &self.scope)?;
        page.entry("", 0, Label::Plain, &sentence(self))?;
        if self.workloads.is_empty() {
            return page.notices(&self.notices);
        }
        page.gap()?;
        table(page, self)?;
        if self.rest.runs > 0 || self.workload_count > self.workloads.len() {
            let hidden = self.workload_count - self.workloads.len();
            let share = self.rest.cost_share.map_or_else(|| "n/a".to_owned(), percent);
            let tail = format!(
                "{} not shown, {} with {share} % of the use; -n 0 shows all",
                text::count(hidden as u64, "workload"),
                text::count(self.rest.runs, "run"),
            );
            page.entry("", 0, Label::Dim, &tail)?;
        }
        page.notices_apart(&self.notices)
    }
}

/// The line that says whose runs of which window.
pub(super) fn head(page: &mut Page<'_>, scope: &Scope) -> io::Result<()> {
    let at = |moment| page.moment(&Known::Value(moment));
    // A file in which nothing was found has no window.
    let window = if scope.since < scope.until {
        format!("{} to {}  ", at(scope.since), at(scope.until))
    } else {
        String::new()
    };
    let whose = match &scope.users {
        None => "all users".to_owned(),
        Some(users) => users.iter().map(whose).collect::<Vec<_>>().join(", "),
    };
    page.line(&[(Label::Strong, &window), (Label::Plain, &whose)])
}

/// A login name; of a user who has none here the number.
fn whose(user: &String) -> String {
    if user.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("uid {user}")
    } else {
        user.clone()
    }
}

/// What there is to know of a workload beside its label.
pub(super) fn beside(name: &WorkloadName, with_user: bool) -> String {
    let mut parts = Vec::new();
    if with_user {
        parts.extend(name.user.clone());
    }
    parts.extend(name.partition.clone());
    parts.extend(name.script.clone());
    if name.names > 1 {
        parts.push(format!("{} job names", name.names));
    }
    parts.join(", ")
}

/// The header in one sentence.
fn sentence(overview: &Overview) -> String {
    let total = &overview.total;
    if total.runs == 0 {
        let open = open(overview);
        return if open.is_empty() {
            "no run in this window".to_owned()
        } else {
            format!("nothing has ended in this window{open}")
        };
    }
    let mut said = format!(
        "{} of {}: {} completed, {} failed",
        text::count(total.runs, "run"),
        text::count(overview.workload_count as u64, "workload"),
        total.completed,
        total.failed,
    );
    for (runs, how) in [
        (total.cancelled, "cancelled"),
        (total.preempted, "preempted or requeued"),
        (total.other, "otherwise"),
    ] {
        if runs > 0 {
            said.push_str(&format!(", {runs} {how}"));
        }
    }
    // The one rate that all answers about failures mean.
    if let Some(rate) = total.failure_rate {
        let rate = percent(rate);
        said.push_str(&format!("; failure rate {rate} % of those that failed or completed"));
    }
    if let Some(idle) = total.idle.filter(|idle| *idle > 0) {
        said.push_str(&format!("; {idle} did nothing"));
        if total.idle_completed > 0 {
            said.push_str(&format!(", {} of them though they completed", total.idle_completed));
        }
    }
    said.push_str(&format!("; {} core-hours", or_not(total.core_hours)));
    if let Some(gpus) = total.gpu_hours.filter(|gpus| *gpus > 0.0) {
        said.push_str(&format!(", {} GPU-hours", hours(gpus)));
    }
    if let Some((name, wasted)) = worst(overview) {
        said.push_str(&format!("; {name} wasted most: {} GPU-hours", hours(wasted)));
    }
    said.push_str(&open(overview));
    said
}

/// What is in none of the sums.
fn open(overview: &Overview) -> String {
    let mut said = String::new();
    if overview.total.running > 0 {
        said.push_str(&format!("; {} not over yet", text::count(overview.total.running, "run")));
    }
    for (jobs, what) in [(overview.waiting, "waiting"), (overview.never_started, "never started")] {
        if jobs > 0 {
            said.push_str(&format!("; {} {what}", text::count(jobs, "job")));
        }
    }
    said
}

/// The workload whose failed and idle runs held GPUs for longest, where that is worth a word: an hour
/// and a tenth of its use, or a hundred hours.
fn worst(overview: &Overview) -> Option<(&str, f64)> {
    let rows = overview.workloads.iter();
    let rows = rows.filter_map(|row| Some((row, row.sums.wasted_gpu_hours?)));
    let (worst, wasted) = rows.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let tenth = worst.sums.gpu_hours? / 10.0;
    let told = wasted >= 100.0 || (wasted >= 1.0 && wasted >= tenth);
    told.then_some((worst.name.workload.as_str(), wasted))
}

fn or_not(known: Option<f64>) -> String {
    known.map_or_else(|| "n/a".to_owned(), hours)
}

fn table(page: &mut Page<'_>, overview: &Overview) -> io::Result<()> {
    let gpus = overview.total.gpu_hours > Some(0.0);
    let idle = overview.total.idle != Some(0);
    let users = overview.scope.users.as_ref().is_none_or(|users| users.len() > 1);
    let right = |heading| Column { heading, right: true, least: WHOLE };
    let left = |heading, least| Column { heading, right: false, least };
    // The name is what a row is known by: all others leave it this much of 80 columns.
    let mut columns = vec![left("WORKLOAD", 16)];
    if users {
        columns.push(left("USER", 4));
    }
    columns.push(left("PARTITION", 9));
    columns.extend(["RUNS", "FAILED"].map(right));
    if idle {
        columns.push(right("IDLE"));
    }
    columns.push(right("CORE-H"));
    if gpus {
        columns.push(right("GPU-H"));
    }
    columns.push(left("LAST", WHOLE));
    let rows = overview.workloads.iter().map(|row| {
        let sums = &row.sums;
        let bad = match sums.flagged_rate {
            Some(rate) if rate >= 0.5 && sums.runs >= 3 => Label::Bad,
            Some(rate) if rate >= 0.2 && sums.runs >= 3 => Label::Warn,
            _ => Label::Plain,
        };
        let name = match &row.name.script {
            Some(script) => format!("{} ({script})", row.name.workload),
            None => row.name.workload.clone(),
        };
        let mut cells: Vec<Cell> = vec![(Label::Plain, name)];
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "n/a".to_owned());
        if users {
            cells.push((Label::Plain, word(&row.name.user)));
        }
        cells.push((Label::Plain, word(&row.name.partition)));
        cells.push((Label::Plain, sums.runs.to_string()));
        cells.push((bad, sums.failed.to_string()));
        if idle {
            cells.push(match sums.idle {
                Some(idle) => (if idle > 0 { bad } else { Label::Plain }, idle.to_string()),
                None => (Label::Dim, "n/a".to_owned()),
            });
        }
        cells.push((Label::Plain, or_not(sums.core_hours)));
        if gpus {
            let told = if row.name.gpus { or_not(sums.gpu_hours) } else { "-".to_owned() };
            cells.push((Label::Plain, told));
        }
        // The day is enough.
        let last = page.brief_moment(&sums.last.into());
        let day = last.split(' ').next().unwrap_or_default().to_owned();
        cells.push((Label::Plain, day));
        cells
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    page.table(&columns, &rows)
}
