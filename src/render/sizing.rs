//! Advice for people: each workload with its options, and lines to paste.

use std::io;

use super::Report;
use super::figures::hours;
use super::overview::{beside, head};
use super::page::{Label, Page};
use crate::answer::sizing::{AdviceRow, FollowedRow, Reclaimable, Sized, SizedWorkload};
use crate::history::sizing::Verdict;
use crate::text;

/// Before each line of a workload.
const INDENT: usize = 2;

impl Report for Sized {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        head(page, &self.scope)?;
        page.entry("", 0, Label::Plain, &sentence(self))?;
        let users = self.scope.users.as_ref().is_none_or(|users| users.len() > 1);
        for workload in &self.workloads {
            page.gap()?;
            block(page, workload, users)?;
        }
        if !self.reclaimable.is_empty() {
            page.gap()?;
            let rows = self.reclaimable.iter();
            let rows = rows.map(|row| reclaimable(row.account.as_deref(), row.freed));
            let rows = rows.collect::<Vec<_>>().join("; ");
            page.entry("reclaimable  ", 13, Label::Plain, &rows)?;
        }
        page.notices_apart(&self.notices)
    }
}

fn sentence(sized: &Sized) -> String {
    if sized.workload_count == 0 {
        return match sized.asked_for.as_slice() {
            [] => "no run ended in this window".to_owned(),
            [name] => format!("no run of a workload {name} ended in this window"),
            names => {
                format!("no run of workloads {} ended in this window", text::join(names, "or"))
            }
        };
    }
    let all = text::count(sized.workload_count as u64, "workload");
    let mut parts = vec![format!("{} to change", sized.to_change)];
    parts.push(format!("{} about right", sized.about_right));
    if sized.without_evidence > 0 {
        parts.push(format!("{} with too few runs to say", sized.without_evidence));
    }
    if sized.not_judged > 0 {
        parts.push(format!("{} not judged", sized.not_judged));
    }
    let mut said = format!("{all}: {}", parts.join(", "));
    let hidden = sized.to_change.saturating_sub(sized.workloads.len());
    if hidden > 0 {
        said.push_str(&format!("; {hidden} of those to change not shown, -n 0 shows all"));
    }
    said
}

fn block(page: &mut Page<'_>, workload: &SizedWorkload, users: bool) -> io::Result<()> {
    let beside = beside(&workload.name, users);
    let runs = text::count(workload.runs, "run");
    page.row(&[
        (Label::Strong, &workload.name.workload),
        (Label::Plain, &beside),
        (Label::Plain, &runs),
    ])?;
    let margin = workload.advice.iter().map(|row| row.option.len()).max().unwrap_or(0);
    for row in &workload.advice {
        let name = format!("{:INDENT$}{:margin$}  ", "", row.option);
        let (label, verdict) = verdict(row);
        let body = match &row.risk {
            // Of a change the risk is always told, of what stays where there is one.
            Some(risk) if row.suggestion.is_some() || row.would_not_have_fitted > Some(0) => {
                format!("{verdict}: {}{}; {risk}", row.because, headroom(row))
            }
            _ => format!("{verdict}: {}", row.because),
        };
        page.entry(&name, INDENT + margin + 2, label, &body)?;
    }
    for directive in &workload.directives {
        page.line(&[(Label::Added, &format!("{:INDENT$}{directive}", ""))])?;
    }
    for row in &workload.after {
        let label = if row.fell_short > 0 { Label::Bad } else { Label::Good };
        page.entry("  since then  ", 14, label, &after(row))?;
    }
    Ok(())
}

/// The headroom of a change, and of time and memory why so much: it follows how much the runs vary,
/// from 10 to 30 per cent, and is the most where they are few.
fn headroom(row: &AdviceRow) -> String {
    let Some(percent) = row.headroom_percent else { return String::new() };
    let varies = row.option == "--time" || row.option.starts_with("--mem");
    let why = match percent {
        _ if !varies => "",
        10 => ", the least, as they vary little",
        30 if row.runs < 10 => ", the most, as they are few",
        30 => ", the most, as they vary",
        _ => ", by how much they vary",
    };
    format!("; {percent} % headroom{why}")
}

fn verdict(row: &AdviceRow) -> (Label, String) {
    // What no record tells, such as a throttle that stands in the script, may yet be there.
    let now = row.now.as_deref().unwrap_or("n/a");
    let then = row.suggestion.as_deref();
    match (row.means, then) {
        (Verdict::Raise, Some(then)) => (Label::Warn, format!("raise from {now} to {then}")),
        (Verdict::Lower, Some(then)) => (Label::Good, format!("lower from {now} to {then}")),
        (Verdict::Set, Some(then)) => (Label::Warn, format!("set {then}, now {now}")),
        (Verdict::Capped, Some(then)) => {
            (Label::Bad, format!("raise from {now} to {then}, the most there is"))
        }
        (Verdict::Capped, None) => {
            (Label::Bad, format!("{now} is not enough, and there is no more"))
        }
        (Verdict::Unknown, _) if row.now.is_none() => {
            (Label::Plain, "not enough evidence".to_owned())
        }
        (Verdict::Unknown, _) => (Label::Plain, format!("{now}, not enough evidence")),
        _ if row.now.is_none() => (Label::Plain, "about right as it is".to_owned()),
        _ => (Label::Plain, format!("{now} is about right")),
    }
}

/// "--mem: asked 13G as advised, 3 runs peaked at 9.77G".
fn after(row: &FollowedRow) -> String {
    let advice = if row.followed {
        "as advised".to_owned()
    } else {
        format!("where {} was advised", row.advised)
    };
    let runs = text::count(row.runs as u64, "run");
    let mut said = format!("{}: asked {} {advice}, {runs}", row.option, row.asked);
    if let Some(used) = &row.used {
        let verb = match row.option.as_str() {
            "--time" => "took at most",
            "--cpus-per-task" | "--gpus" => "kept busy at most",
            _ => "peaked at",
        };
        said.push_str(&format!(" {verb} {used}"));
    }
    if row.fell_short > 0 {
        said.push_str(&format!("; for {} that was not enough", row.fell_short));
    }
    said
}

/// What an account would have had free with the advice.
pub(super) fn reclaimable(account: Option<&str>, freed: Reclaimable) -> String {
    let amounts = [
        (freed.core_hours, "core-hours"),
        (freed.gpu_hours, "GPU-hours"),
        (freed.node_hours, "node-hours"),
        (freed.memory_gib_hours, "GiB-hours of memory"),
    ];
    let parts: Vec<String> = amounts
        .into_iter()
        .filter(|(amount, _)| *amount > 0.0)
        .map(|(amount, unit)| format!("{} {unit}", hours(amount)))
        .collect();
    let parts = if parts.is_empty() { "nothing".to_owned() } else { text::join(&parts, "and") };
    format!("{}: {parts}", account.unwrap_or("no account"))
}
