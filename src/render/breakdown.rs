//! Sums by user, week and the like for people, with bars, and as comma-separated values.

use std::io::{self, Write};

use super::Report;
use super::figures::{figure, hours, percent};
use super::overview::head;
use super::page::{Cell, Column, Label, Page, WHOLE};
use super::sizing::reclaimable;
use super::stats::{MARGIN, amounts, did_nothing, energy, logs};
use crate::answer::breakdown::{Breakdown, By, GroupRow};
use crate::answer::stats::Amount;
use crate::text;

/// Columns of a bar.
const BAR: usize = 12;

impl Report for Breakdown {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        head(page, &self.scope)?;
        page.entry("", 0, Label::Plain, &sentence(self))?;
        let held =
            |amount: &Amount| format!("{}: {}", text::count(amount.runs, "run"), amounts(amount));
        for (name, amount, told) in [
            ("cancelled", &self.total.cancelled, held as fn(&Amount) -> String),
            ("preempted", &self.total.preempted, held),
            ("did nothing", &self.total.idle, did_nothing),
        ] {
            if let Some(amount) = amount.as_ref().filter(|amount| amount.runs > 0) {
                page.entry(name, MARGIN, Label::Plain, &told(amount))?;
            }
        }
        if let Some(read) = &self.logs {
            logs(page, read)?;
        }
        energy(page, &self.energy, &self.total.failed, &self.total.used)?;
        if !self.groups.is_empty() {
            page.gap()?;
            table(page, self)?;
            let hours = "hours and kWh of failed runs";
            let bar = format!(
                "FAILED: of those that failed or completed; {hours}; the bar: all that was held, \
                 full as far as failed"
            );
            let bar = if self.by == By::Cause { hours } else { &bar };
            page.entry("", 0, Label::Dim, bar)?;
        }
        freed(page, self)?;
        page.notices_apart(&self.notices)
    }
}

fn sentence(breakdown: &Breakdown) -> String {
    let total = &breakdown.total;
    let runs = text::count(total.used.runs, "run");
    let rate = match total.failure_rate.rate {
        Some(rate) => format!(
            "failure rate {} %: {} failed of {} failed or completed",
            percent(rate),
            total.failure_rate.failed,
            total.failure_rate.of
        ),
        None => "none of them completed or failed".to_owned(),
    };
    let (failed, used) = (amounts(&total.failed), amounts(&total.used));
    let wasted = if total.failed.runs > 0 {
        format!("; the failed held {failed}, the most that they can have wasted")
    } else {
        String::new()
    };
    format!("{runs} held {used}; {rate}{wasted}")
}

/// What advice would have left free, by account.
fn freed(page: &mut Page<'_>, breakdown: &Breakdown) -> io::Result<()> {
    let told = |row: &GroupRow| Some(reclaimable(row.name.as_deref(), row.reclaimable?));
    let rows: Vec<String> = breakdown.groups.iter().filter_map(told).collect();
    if rows.is_empty() {
        return Ok(());
    }
    page.gap()?;
    page.entry("reclaimable", MARGIN, Label::Plain, &rows.join("; "))
}

fn table(page: &mut Page<'_>, breakdown: &Breakdown) -> io::Result<()> {
    let gpus = breakdown.total.used.gpu_hours > Some(0.0);
    let cause = breakdown.by == By::Cause;
    let right = |heading| Column { heading, right: true, least: WHOLE };
    let heading = match breakdown.by {
        By::Cause => "CAUSE",
        By::User => "USER",
        By::Account => "ACCOUNT",
        By::Qos => "QOS",
        By::Partition => "PARTITION",
        By::Gpu => "GPU",
        By::Week => "WEEK OF",
    };
    let mut columns = vec![Column { heading, right: false, least: 8 }, right("RUNS")];
    if !cause {
        columns.push(right("FAILED"));
    }
    if gpus {
        columns.push(right("GPU-H"));
    }
    columns.extend([right("CORE-H"), right("NODE-H"), right("KWH")]);
    // A bar that is cut says another thing.
    columns.push(Column { heading: "WASTED", right: false, least: WHOLE });
    let measure = |amount: &Amount| amount.kwh.map_or(0.0, |kwh| kwh.value);
    let most = breakdown.groups.iter().map(|row| measure(&row.used)).fold(0.0, f64::max);
    let told = |value: Option<f64>| (Label::Plain, value.map_or_else(|| "n/a".to_owned(), hours));
    let rows = breakdown.groups.iter().map(|row| {
        let mut cells: Vec<Cell> = vec![
            (Label::Plain, row.name.clone().unwrap_or_else(|| "n/a".to_owned())),
            (Label::Plain, row.used.runs.to_string()),
        ];
        if !cause {
            let rate = row.failure_rate.rate;
            let rate = rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{} %", percent(rate)));
            cells.push((Label::Plain, rate));
        }
        if gpus {
            cells.push(told(row.failed.gpu_hours));
        }
        cells.extend([told(row.failed.core_hours), told(row.failed.node_hours)]);
        let kwh = row.failed.kwh.map_or_else(|| "n/a".to_owned(), |kwh| figure(kwh.value, 3));
        cells.push((Label::Plain, kwh));
        cells.push((Label::Plain, bar(measure(&row.failed), measure(&row.used), most)));
        cells
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    page.table(&columns, &rows)
}

/// A bar as long as what was used, filled as far as that was wasted.
fn bar(wasted: f64, used: f64, most: f64) -> String {
    if most <= 0.0 {
        return String::new();
    }
    let columns = |part: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of some columns"
        )]
        let columns = (part / most * BAR as f64).round() as usize;
        // What there is shows.
        if part > 0.0 { columns.clamp(1, BAR) } else { 0 }
    };
    let (full, all) = (columns(wasted), columns(used));
    format!("{}{}", "█".repeat(full), "░".repeat(all.saturating_sub(full)))
}

/// Writes the groups as comma-separated values (RFC 4180), amounts in full.
pub(super) fn csv(breakdown: &Breakdown, out: &mut dyn Write) -> io::Result<()> {
    let parts = ["used", "failed", "cancelled", "preempted", "idle"];
    let mut heading = vec!["group".to_owned()];
    for part in parts {
        for unit in [
            "runs",
            "unrecorded",
            "core_hours",
            "gpu_hours",
            "node_hours",
            "kwh",
            "kwh_low",
            "kwh_high",
        ] {
            heading.push(format!("{part}_{unit}"));
        }
    }
    heading.extend(
        [
            "failure_rate",
            "reclaimable_core_hours",
            "reclaimable_gpu_hours",
            "reclaimable_node_hours",
            "reclaimable_memory_gib_hours",
        ]
        .map(str::to_owned),
    );
    line(out, &heading)?;
    for row in &breakdown.groups {
        line(out, &cells(row))?;
    }
    Ok(())
}

fn cells(row: &GroupRow) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mut cells = vec![row.name.clone().unwrap_or_default()];
    let amounts = [
        Some(&row.used),
        Some(&row.failed),
        row.cancelled.as_ref(),
        row.preempted.as_ref(),
        row.idle.as_ref(),
    ];
    for amount in amounts {
        let count = |what: fn(&Amount) -> u64| {
            amount.map_or_else(String::new, |amount| what(amount).to_string())
        };
        cells.push(count(|amount| amount.runs));
        cells.push(count(|amount| amount.unrecorded));
        cells.push(number(amount.and_then(|amount| amount.core_hours)));
        cells.push(number(amount.and_then(|amount| amount.gpu_hours)));
        cells.push(number(amount.and_then(|amount| amount.node_hours)));
        let kwh = amount.and_then(|amount| amount.kwh);
        cells.push(number(kwh.map(|kwh| kwh.value)));
        cells.push(number(kwh.and_then(|kwh| kwh.low)));
        cells.push(number(kwh.and_then(|kwh| kwh.high)));
    }
    cells.push(number(row.failure_rate.rate));
    let freed = row.reclaimable;
    cells.push(number(freed.map(|freed| freed.core_hours)));
    cells.push(number(freed.map(|freed| freed.gpu_hours)));
    cells.push(number(freed.map(|freed| freed.node_hours)));
    cells.push(number(freed.map(|freed| freed.memory_gib_hours)));
    cells
}

/// A line of values. What a spreadsheet would take for a formula is text there.
fn line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    let cells = cells.iter().map(|cell| {
        let clean = text::masked(&text::printable(cell.as_bytes()));
        let formula = clean.starts_with(['=', '+', '-', '@']);
        let clean = if formula { format!("'{clean}") } else { clean };
        if clean.contains([',', '"', '\n']) || formula {
            format!("\"{}\"", clean.replace('"', "\"\""))
        } else {
            clean
        }
    });
    writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_there_is() {
        // Half of twelve columns.
        assert_eq!(bar(4.0, 8.0, 8.0), format!("{}{}", "█".repeat(6), "░".repeat(6)));
        assert_eq!(bar(0.001, 0.002, 8.0), "█");
        assert_eq!(bar(0.0, 4.0, 8.0), "░".repeat(6));
        assert_eq!((bar(0.0, 0.0, 8.0), bar(0.0, 0.0, 0.0)), (String::new(), String::new()));
    }

    #[test]
    fn no_name_becomes_a_formula_or_a_line_of_its_own() {
        let mut out = Vec::new();
        let hostile = ["=cmd()", "a,b", "say \"no\"", "two\nlines", "\u{1b}[31m"];
        line(&mut out, &hostile.map(str::to_owned)).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        assert!(text.starts_with("\"'=cmd()\",\"a,b\",\"say \"\"no\"\"\","), "{text:?}");
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        assert!(!text.contains('\u{1b}'));
    }
}
