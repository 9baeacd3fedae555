//! Statistics for people: how much failed and what it cost, then by cause and by partition.

use std::io;

use super::Report;
use super::page::{Column, Label, Page};
use crate::answer::stats::{Amount, Estimate, Rate, Stats};
use crate::model::Known;
use crate::text;

const MARGIN: usize = 14;
/// Ways to exit that are told in a line.
const EXITS: usize = 6;

impl Report for Stats {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let window = format!(
            "{} to {}",
            page.moment(&Known::Value(self.since)),
            page.moment(&Known::Value(self.until))
        );
        let whose = match &self.users {
            None => "all users".to_owned(),
            Some(users) => users.join(", "),
        };
        page.line(&[(Label::Strong, &window), (Label::Plain, "  "), (Label::Plain, &whose)])?;
        page.entry("ended", MARGIN, Label::Plain, &ended(self))?;
        let apart = apart(self);
        if !apart.is_empty() {
            page.entry("not counted", MARGIN, Label::Plain, &apart)?;
        }
        page.entry("failure rate", MARGIN, Label::Strong, &failure_rate(&self.failure_rate))?;
        page.entry("wasted", MARGIN, Label::Plain, &wasted(self))?;
        page.entry("energy", MARGIN, Label::Plain, &energy(self))?;
        if let Some(carbon) = carbon(self) {
            page.entry("CO2", MARGIN, Label::Plain, &carbon)?;
        }
        if self.runs.failed > 0 {
            page.gap()?;
            causes(page, self)?;
        }
        if !self.partitions.is_empty() {
            page.gap()?;
            partitions(page, self)?;
        }
        if !self.notices.is_empty() {
            page.gap()?;
        }
        page.notices(&self.notices)
    }
}

fn ended(stats: &Stats) -> String {
    let runs = &stats.runs;
    let parts = parts(&[
        (runs.completed, "completed"),
        (runs.failed, "failed"),
        (runs.cancelled, "cancelled"),
        (runs.preempted, "preempted"),
        (runs.requeued, "requeued"),
        (runs.other, "of an unknown state"),
    ]);
    let total = text::count(runs.ended, "run");
    if parts.is_empty() { total } else { format!("{total}: {parts}") }
}

fn apart(stats: &Stats) -> String {
    let runs = &stats.runs;
    parts(&[
        (runs.never_started, "never started"),
        (runs.running, "running"),
        (runs.pending, "waiting"),
    ])
}

fn parts(counts: &[(u64, &str)]) -> String {
    let told = counts.iter().filter(|(count, _)| *count > 0);
    told.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

fn failure_rate(rate: &Rate) -> String {
    let (Some(share), Some(low), Some(high)) = (rate.rate, rate.low, rate.high) else {
        return "n/a: no run completed or failed".to_owned();
    };
    format!(
        "{} %: {} failed of {} that completed or failed (95 % interval {}-{} %)",
        percent(share),
        rate.failed,
        rate.of,
        percent(low),
        percent(high),
    )
}

fn wasted(stats: &Stats) -> String {
    let of = |part: Option<f64>, whole: Option<f64>, what: &str| match (part, whole) {
        (Some(part), Some(whole)) => format!("{} of {} {what}", hours(part), hours(whole)),
        _ => format!("n/a {what}"),
    };
    let (wasted, used) = (&stats.wasted, &stats.used);
    let cores = of(wasted.core_hours, used.core_hours, "core-hours");
    let gpus = of(wasted.gpu_hours, used.gpu_hours, "GPU-hours");
    format!("{gpus}, {cores} by failed runs: at most, for what they saved is not lost")
}

fn energy(stats: &Stats) -> String {
    let notes = &stats.energy;
    let amounts = of_all(stats.wasted.kwh.as_ref(), stats.used.kwh.as_ref(), "kWh");
    let known = notes.assumptions.join(", ");
    let missing = text::join(&notes.missing, "or");
    let method = if notes.method == "flat" { "reckoned flat" } else { "estimated" };
    format!("{amounts}; {method}, not measured: {known}; without {missing}")
}

fn carbon(stats: &Stats) -> Option<String> {
    let grams = stats.energy.carbon_grams_per_kwh?;
    let source = stats.energy.carbon_source.as_deref().unwrap_or("n/a");
    let amounts = of_all(stats.wasted.co2_kg.as_ref(), stats.used.co2_kg.as_ref(), "kg");
    Some(format!("{amounts}, at {grams} g a kWh from {source}"))
}

fn of_all(part: Option<&Estimate>, whole: Option<&Estimate>, unit: &str) -> String {
    let whole = whole.map_or_else(|| "n/a".to_owned(), amount);
    match part {
        None => format!("n/a of {whole} {unit}"),
        Some(part) => match (part.low, part.high) {
            (Some(low), Some(high)) => format!(
                "{} of {whole} {unit} (from {} to {})",
                amount(part),
                figure(low, 2),
                figure(high, 2)
            ),
            _ => format!("{} of {whole} {unit}", amount(part)),
        },
    }
}

fn causes(page: &mut Page<'_>, stats: &Stats) -> io::Result<()> {
    let first = [
        Column { heading: "CAUSE", right: false, least: 10 },
        Column { heading: "FAILED", right: true, least: 6 },
    ];
    let rows = stats.causes.iter().map(|row| {
        let runs = (Label::Plain, row.wasted.runs.to_string());
        (vec![(Label::Plain, row.cause.clone()), runs], &row.wasted)
    });
    table(page, stats, &first, rows)?;
    if stats.unknown_exits.is_empty() {
        return Ok(());
    }
    let exits = &stats.unknown_exits;
    let mut told: Vec<String> =
        exits.iter().take(EXITS).map(|row| format!("{} x{}", row.exit, row.runs)).collect();
    let rest: u64 = exits.iter().skip(EXITS).map(|row| row.runs).sum();
    if rest > 0 {
        told.push(format!("others x{rest}"));
    }
    page.entry("unknown: ", 9, Label::Plain, &told.join("; "))
}

fn partitions(page: &mut Page<'_>, stats: &Stats) -> io::Result<()> {
    let first = [
        Column { heading: "PARTITION", right: false, least: 10 },
        Column { heading: "RATE", right: true, least: 5 },
        Column { heading: "FAILED", right: true, least: 6 },
    ];
    let rows = stats.partitions.iter().map(|row| {
        let rate = &row.failure_rate;
        let share =
            rate.rate.map_or_else(|| "n/a".to_owned(), |share| format!("{} %", percent(share)));
        let cells = vec![
            (Label::Plain, row.partition.clone().unwrap_or_else(|| "n/a".to_owned())),
            (Label::Plain, share),
            (Label::Plain, format!("{}/{}", rate.failed, rate.of)),
        ];
        (cells, &row.wasted)
    });
    table(page, stats, &first, rows)
}

/// A table whose last columns are what was wasted; without GPUs where none are counted.
fn table<'s>(
    page: &mut Page<'_>,
    stats: &Stats,
    first: &[Column],
    rows: impl Iterator<Item = (Vec<(Label, String)>, &'s Amount)>,
) -> io::Result<()> {
    let gpus = stats.used.gpu_hours.is_some();
    let mut columns = first.to_vec();
    if gpus {
        columns.push(Column { heading: "GPU-HOURS", right: true, least: 9 });
    }
    columns.push(Column { heading: "CORE-HOURS", right: true, least: 10 });
    columns.push(Column { heading: "KWH", right: true, least: 6 });
    let told = |value: Option<f64>| (Label::Plain, value.map_or_else(|| "n/a".to_owned(), hours));
    let rows: Vec<_> = rows
        .map(|(mut cells, wasted)| {
            if gpus {
                cells.push(told(wasted.gpu_hours));
            }
            cells.push(told(wasted.core_hours));
            let kwh = wasted.kwh.as_ref().map_or_else(|| "n/a".to_owned(), amount);
            cells.push((Label::Plain, kwh));
            cells
        })
        .collect();
    page.table(&columns, &rows)
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn hours(hours: f64) -> String {
    if hours <= 0.0 {
        "0".to_owned()
    } else if hours < 0.01 {
        "<0.01".to_owned()
    } else if hours < 99.5 {
        figure(hours, 3)
    } else {
        format!("{hours:.0}")
    }
}

/// Two digits where there is a range, three where none is claimed.
fn amount(estimate: &Estimate) -> String {
    figure(estimate.value, if estimate.low.is_some() { 2 } else { 3 })
}

/// A number to so many significant digits, without an exponent.
fn figure(value: f64, digits: usize) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    if value < 0.001 {
        return "<0.001".to_owned();
    }
    // The decimal form rounds first, so that 9.96 is 10 and not 10.0.
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent = rounded.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    let rounded: f64 = rounded.parse().unwrap_or(value);
    let decimals = i32::try_from(digits).unwrap_or(2) - 1 - exponent;
    format!("{rounded:.*}", usize::try_from(decimals).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_they_deserve() {
        let two = |value| figure(value, 2);
        assert_eq!(
            (two(15.36), two(1234.0), two(0.01234)),
            ("15".into(), "1200".into(), "0.012".into())
        );
        assert_eq!((two(9.96), two(0.0999), two(0.5)), ("10".into(), "0.10".into(), "0.50".into()));
        assert_eq!((two(0.0), two(0.0004)), ("0".into(), "<0.001".into()));
        assert_eq!(figure(15.36, 3), "15.4");
        assert_eq!(
            (percent(0.071), percent(0.5625), percent(1.0)),
            ("7.1".into(), "56".into(), "100".into())
        );
        assert_eq!(
            (hours(0.004), hours(24.0), hours(384.2)),
            ("<0.01".into(), "24.0".into(), "384".into())
        );
    }
}
