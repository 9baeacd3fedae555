//! Statistics for people: how much failed and what it cost, then by cause and by partition.

use std::io;

use super::Report;
use super::figures::{figure, hours, percent};
use super::overview::head;
use super::page::{Column, Label, Page, WHOLE};
use crate::answer::stats::{Amount, EnergyNotes, Estimate, LogsRead, Measured, Rate, Stats};
use crate::text;

/// Before what is said of a name.
pub(super) const MARGIN: usize = 14;
/// Ways to exit that are told in a line.
const EXITS: usize = 6;

impl Report for Stats {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        head(page, &self.scope)?;
        page.entry("ended", MARGIN, Label::Plain, &ended(self))?;
        let apart = apart(self);
        if !apart.is_empty() {
            page.entry("not counted", MARGIN, Label::Plain, &apart)?;
        }
        page.entry("failure rate", MARGIN, Label::Strong, &failure_rate(&self.failure_rate))?;
        if self.runs.ended == 0 {
            return page.notices_apart(&self.notices);
        }
        page.entry("wasted", MARGIN, Label::Plain, &wasted(self))?;
        for (name, amount) in [("cancelled", &self.cancelled), ("preempted", &self.preempted)] {
            if amount.runs > 0 {
                page.entry(name, MARGIN, Label::Plain, &amounts(amount))?;
            }
        }
        if let Some(idle) = self.idle.as_ref().filter(|idle| idle.runs > 0) {
            page.entry("did nothing", MARGIN, Label::Plain, &did_nothing(idle))?;
        }
        if let Some(read) = &self.logs {
            logs(page, read)?;
        }
        energy(page, &self.energy, &self.wasted, &self.used)?;
        if self.runs.failed > 0 {
            page.gap()?;
            causes(page, self)?;
        }
        if !self.partitions.is_empty() {
            page.gap()?;
            partitions(page, self)?;
        }
        page.notices_apart(&self.notices)
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
    if runs.ended == 0 {
        "no run in this window".to_owned()
    } else if parts.is_empty() {
        total
    } else {
        format!("{total}: {parts}")
    }
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
    // Many runs make a narrow interval, which whole per cents would hide.
    let percent = |share: f64| {
        if high - low < 0.02 { format!("{:.1}", share * 100.0) } else { percent(share) }
    };
    format!(
        "{} % (95 % interval {}-{} %): {} failed of {} failed or completed",
        percent(share),
        percent(low),
        percent(high),
        rate.failed,
        rate.of,
    )
}

fn wasted(stats: &Stats) -> String {
    let of = |part: Option<f64>, whole: Option<f64>| {
        Some(format!("{} of {}", hours(part?), hours(whole?)))
    };
    let (wasted, used) = (&stats.wasted, &stats.used);
    let told = |part, whole, unit| {
        of(part, whole).map_or_else(|| format!("n/a {unit}"), |of| format!("{of} {unit}"))
    };
    let cores = told(wasted.core_hours, used.core_hours, "core-hours");
    let nodes = told(wasted.node_hours, used.node_hours, "node-hours");
    let cores = format!("{cores}, {nodes}");
    match of(wasted.gpu_hours, used.gpu_hours) {
        Some(gpus) => format!("by failed runs at most {gpus} GPU-hours, {cores}"),
        None if used.gpu_hours.is_some() => {
            format!("by failed runs at most {cores}; n/a GPU-hours")
        }
        None => {
            format!("by failed runs at most {cores}; n/a GPU-hours (no record names a GPU)")
        }
    }
}

/// What runs held, in one line.
pub(super) fn amounts(amount: &Amount) -> String {
    let mut parts = Vec::new();
    if let Some(gpus) = amount.gpu_hours.filter(|gpus| *gpus > 0.0) {
        parts.push(format!("{} GPU-hours", hours(gpus)));
    }
    for (value, unit) in [(amount.core_hours, "core-hours"), (amount.node_hours, "node-hours")] {
        parts.push(value.map_or_else(|| format!("n/a {unit}"), |v| format!("{} {unit}", hours(v))));
    }
    if let Some(Estimate { value, .. }) = amount.kwh {
        parts.push(format!("{} kWh", figure(value, 3)));
    }
    parts.join(", ")
}

/// What runs held that completed and did nothing.
pub(super) fn did_nothing(idle: &Amount) -> String {
    let runs = text::count(idle.runs, "run");
    format!("{runs}, though they completed: {}", amounts(idle))
}

/// What the logs of failed runs added.
pub(super) fn logs(page: &mut Page<'_>, read: &LogsRead) -> io::Result<()> {
    let mut said = format!("read of {}", text::count(read.read, "failed run"));
    if read.named > 0 {
        said.push_str(&format!(
            ", which name the cause of {} that the record does not",
            read.named
        ));
    }
    if read.without > 0 {
        said.push_str(&format!("; {} without a log that can be read", read.without));
    }
    if read.not_tried > 0 {
        said.push_str(&format!("; {} not tried", read.not_tried));
        match read.not_tried_without_cause {
            0 => said.push_str(", whose records name a cause"),
            unknown => said.push_str(&format!(", {unknown} of them of no known cause")),
        }
    }
    page.entry("logs", MARGIN, Label::Plain, &said)?;
    let saved = &read.with_checkpoint;
    if saved.runs == 0 {
        return Ok(());
    }
    let told = format!(
        "{} saved one; what they held after the last: {}; of all: {}",
        text::count(saved.runs, "run"),
        amounts(&read.after_checkpoint),
        amounts(saved)
    );
    page.entry("checkpoints", MARGIN, Label::Plain, &told)
}

/// Energy and carbon, with what they rest on: the figures without their ranges, which JSON has.
pub(super) fn energy(
    page: &mut Page<'_>,
    notes: &EnergyNotes,
    wasted: &Amount,
    used: &Amount,
) -> io::Result<()> {
    page.entry("energy", MARGIN, Label::Plain, &kilowatt_hours(notes, wasted, used))?;
    match carbon(notes, wasted, used) {
        Some(carbon) => page.entry("CO2", MARGIN, Label::Plain, &carbon),
        None => Ok(()),
    }
}

fn kilowatt_hours(notes: &EnergyNotes, wasted: &Amount, used: &Amount) -> String {
    let amounts = of_all(wasted.kwh.as_ref(), used.kwh.as_ref(), "kWh");
    let figures = notes.assumptions.iter().map(|row| {
        let figure = row.figure.value;
        match row.unit {
            "" => format!("{} {figure}", row.what),
            "times" => format!("{} x{figure}", row.what),
            unit => format!("{} {figure} {unit}", row.what),
        }
    });
    let figures: Vec<String> = figures.collect();
    let missing = text::join(&notes.missing, "and");
    let how = match &notes.measured {
        None => "not measured but from".to_owned(),
        Some(measured) => format!("{}; the rest from", measured_part(measured)),
    };
    format!("{amounts}; {how} {}; without {missing}", figures.join(", "))
}

/// "12 % measured, 3 kWh by the ipmi meters of nodes that 4 runs had to themselves".
fn measured_part(measured: &Measured) -> String {
    let Measured { runs, kwh, share, meter } = measured;
    let meter =
        meter.as_deref().map_or_else(|| "meters".to_owned(), |meter| format!("{meter} meters"));
    format!(
        "{} % measured, {} kWh by the {meter} of nodes that {} had to themselves",
        percent(*share),
        figure(*kwh, 2),
        text::count(*runs, "run"),
    )
}

fn carbon(notes: &EnergyNotes, wasted: &Amount, used: &Amount) -> Option<String> {
    let grams = notes.carbon_grams_per_kwh?;
    let source = notes.carbon_source.as_deref().unwrap_or("n/a");
    let amounts = of_all(wasted.co2_kg.as_ref(), used.co2_kg.as_ref(), "kg");
    Some(format!("{amounts}, at {grams} g a kWh from {source}"))
}

fn of_all(part: Option<&Estimate>, whole: Option<&Estimate>, unit: &str) -> String {
    let whole = whole.map_or_else(|| "n/a".to_owned(), amount);
    let Some(part) = part else { return format!("n/a of {whole} {unit}") };
    let value = amount(part);
    match (part.low, part.high) {
        (Some(low), Some(high)) => {
            let (low, high) = (figure(low, 2), figure(high, 2));
            format!("{value} {unit} (from {low} to {high}) of {whole} {unit}")
        }
        _ => format!("{value} of {whole} {unit}"),
    }
}

fn causes(page: &mut Page<'_>, stats: &Stats) -> io::Result<()> {
    let first = [Column { heading: "CAUSE", right: false, least: 10 }, right("FAILED")];
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
    let first =
        [Column { heading: "PARTITION", right: false, least: 10 }, right("RATE"), right("FAILED")];
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

/// Half a number is another number: it is never cut.
fn right(heading: &'static str) -> Column {
    Column { heading, right: true, least: WHOLE }
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
        columns.push(right("GPU-H"));
    }
    columns.extend(["CORE-H", "NODE-H", "KWH"].map(right));
    let told = |value: Option<f64>| (Label::Plain, value.map_or_else(|| "n/a".to_owned(), hours));
    let rows: Vec<_> = rows
        .map(|(mut cells, wasted)| {
            if gpus {
                cells.push(told(wasted.gpu_hours));
            }
            cells.push(told(wasted.core_hours));
            cells.push(told(wasted.node_hours));
            let kwh = wasted.kwh.as_ref().map_or_else(|| "n/a".to_owned(), amount);
            cells.push((Label::Plain, kwh));
            cells
        })
        .collect();
    page.table(&columns, &rows)
}

/// Three digits, though a range may leave the second in doubt: parts shall add up to their sum.
fn amount(estimate: &Estimate) -> String {
    figure(estimate.value, 3)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::answer::stats::tests::{HISTORY, answer};
    use crate::render::Look;

    fn text(rows: &str, width: usize) -> String {
        let stats = answer(rows, "", |_| ());
        let look =
            Look { width, color: false, ascii: true, zone: TimeZone::UTC, year: 2026, cut: true };
        let mut out = Vec::new();
        stats.text(&mut Page::new(&mut out, &look)).expect("a vector takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_real_history_fits_eighty_columns() {
        let text = text(HISTORY, 80);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
        has("all users");
        has("131 runs: 51 completed, 71 failed, 4 cancelled, 2 preempted, 3");
        has("22 never started, 7 running, 30 waiting");
        has("58 % (95 % interval 49-67 %): 71 failed of 122 failed or completed");
        has("by failed runs at most 0.0011 of 0.0028 GPU-hours, 0.13 of 0.26");
    }

    #[test]
    fn what_is_not_recorded_is_never_a_digit() {
        let row = "9@~@FAILED@~@1:0@~@0:0@~@batch@~@None@~@1796034865@~@1796034942@~@00:01:17@~@\
                   00:02:00@~@2@~@@~@c01\n";
        let text = text(row, 80);
        let line = |begin: &str| {
            let line = text.lines().find(|line| line.starts_with(begin));
            line.unwrap_or_else(|| panic!("no {begin}: {text}")).to_owned()
        };
        assert!(line("wasted ").contains("at most n/a core-hours, n/a node-hours; n/a"), "{text}");
        assert!(line("energy ").contains("n/a of n/a kWh"), "{text}");
        let cells =
            |begin: &str| line(begin).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cells("unknown ")[1..], ["1", "n/a", "n/a", "n/a"]);
        assert_eq!(cells("batch ")[3..], ["1/1", "n/a", "n/a", "n/a"]);
    }

    #[test]
    fn an_empty_window_has_no_rate() {
        let text = text("", 80);
        assert!(text.contains("failure rate  n/a"), "{text}");
        for what in ["CAUSE", "PARTITION", "wasted", "kWh"] {
            assert!(!text.contains(what), "{text}");
        }
    }

    #[test]
    fn numbers_have_the_digits_they_deserve() {
        let two = |value| figure(value, 2);
        assert_eq!(
            (two(15.36), two(1234.0), two(0.01234)),
            ("15".into(), "1200".into(), "0.012".into())
        );
        assert_eq!((two(9.96), two(0.0999), two(0.5)), ("10".into(), "0.10".into(), "0.50".into()));
        assert_eq!((two(0.0), two(4e-7)), ("0".into(), "<0.000001".into()));
        assert_eq!(figure(15.36, 3), "15.4");
        assert_eq!(
            (percent(0.071), percent(0.5625), percent(1.0)),
            ("7.1".into(), "56".into(), "100".into())
        );
        // 0.0515 x 100 is a little less than 5.15.
        assert_eq!(percent(0.0515), "5.2");
        assert_eq!(
            (hours(0.004), hours(24.0), hours(384.2)),
            ("0.0040".into(), "24.0".into(), "384".into())
        );
    }
}
