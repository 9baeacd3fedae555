//! Jobs for people: a heading of two lines, a table, or all that is recorded.

use std::collections::BTreeMap;
use std::io;

use super::Report;
use super::page::{Column, Label, Page, WHOLE};
use crate::answer::job::{Gauge, Record, Records, View};
use crate::answer::jobs::Jobs;
use crate::history::Weight;
use crate::model::{
    BaseState, Bytes, Drawn, Exit, Job, Known, Memory, MemoryScope, NodeUse, Span, State, Step,
    Tres,
};
use crate::text;

const MARGIN: usize = 12;

/// How a state looks.
fn state_label(state: &State) -> Label {
    match state.base {
        BaseState::Completed => Label::Good,
        BaseState::Cancelled | BaseState::Preempted | BaseState::Other => Label::Warn,
        _ if state.is_failure() => Label::Bad,
        _ => Label::Plain,
    }
}

/// The name as it can stand in a line; a job without one says so.
fn name(job: &Job) -> String {
    if job.name.is_empty() { String::new() } else { format!(" \"{}\"", job.name) }
}

/// The exit as recorded, and in words where they say more.
fn exit(exit: &Known<Exit>) -> String {
    match exit.get() {
        None => String::new(),
        Some(exit) => format!("exit {}", exit.explained()),
    }
}

/// Who, where, what became of it, how long of how much.
pub(super) fn heading(page: &mut Page<'_>, job: &Job) -> io::Result<()> {
    let title = if matches!(job.source, crate::model::Source::Given) {
        "logs without a record".to_owned()
    } else {
        format!("job {}{}", job.id, name(job))
    };
    let state = job.state.text.clone();
    let time = format!("{} of {}", job.elapsed, job.limit);
    let exit = exit(&job.exit);
    let started = job.has_started();
    let mut pieces = vec![(Label::Strong, title.as_str()), (state_label(&job.state), &state)];
    if started && job.state.is_ended() && !exit.is_empty() {
        pieces.push((Label::Plain, &exit));
    }
    if started {
        pieces.push((Label::Plain, &time));
    }
    page.row(&pieces)?;
    let mut facts: Vec<String> = Vec::new();
    facts.extend(job.user.clone());
    facts.extend(job.account.as_ref().map(|account| format!("account {account}")));
    facts.extend(job.partition.as_ref().map(|partition| format!("partition {partition}")));
    facts.extend(job.node_list.as_ref().map(|nodes| format!("on {nodes}")));
    if job.ended.is_value() {
        facts.push(format!("ended {}", page.moment(&job.ended)));
    } else if job.submitted.is_value() {
        facts.push(format!("submitted {}", page.moment(&job.submitted)));
    }
    if !job.earlier.is_empty() {
        facts.push(text::count(job.earlier.len() as u64, "earlier run"));
    }
    if facts.is_empty() { Ok(()) } else { page.entry("", 2, Label::Dim, &facts.join(", ")) }
}

impl Report for Jobs {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        const COLUMNS: [Column; 7] = [
            Column { heading: "JOBID", right: false, least: WHOLE },
            Column { heading: "NAME", right: false, least: 6 },
            Column { heading: "USER", right: false, least: 4 },
            Column { heading: "PARTITION", right: false, least: 5 },
            Column { heading: "STATE", right: false, least: WHOLE },
            Column { heading: "ELAPSED", right: true, least: WHOLE },
            Column { heading: "ENDED", right: false, least: WHOLE },
        ];
        let rows: Vec<Vec<(Label, String)>> = self
            .jobs
            .iter()
            .map(|job| {
                let elapsed =
                    if job.has_started() { job.elapsed.to_string() } else { "n/a".to_owned() };
                vec![
                    (Label::Plain, job.id.to_string()),
                    (Label::Plain, job.name.clone()),
                    (Label::Plain, job.user.clone().unwrap_or_else(|| "n/a".to_owned())),
                    (Label::Plain, job.partition.clone().unwrap_or_else(|| "n/a".to_owned())),
                    (state_label(&job.state), job.state.text.clone()),
                    (Label::Plain, elapsed),
                    (Label::Plain, page.brief_moment(&job.ended)),
                ]
            })
            .collect();
        if rows.is_empty() {
            page.line(&[(Label::Plain, "no jobs in this window")])?;
        } else {
            page.table(&COLUMNS, &rows)?;
        }
        if self.total > self.jobs.len() {
            let rest = self.total - self.jobs.len();
            let line = format!("{} more: -n 0 shows all", text::count(rest as u64, "job"));
            page.line(&[(Label::Dim, &line)])?;
        }
        page.notices(&self.notices)
    }
}

impl Report for Records {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let shown = shown(&self.jobs, self.view);
        if shown.len() < self.jobs.len() {
            summary(page, &self.jobs)?;
            page.gap()?;
        }
        for (index, told) in shown.iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            record(page, told, self.view)?;
        }
        if shown.len() < self.jobs.len() {
            page.gap()?;
            let more = text::count((self.jobs.len() - shown.len()) as u64, "more record");
            let line = format!("{more}: name the task, as JOB_TASK, or --all shows all");
            page.entry("", 0, Label::Dim, &line)?;
        }
        page.notices(&self.notices)
    }
}

/// Records that are shown one by one unless all are asked for.
const BLOCKS: usize = 8;
/// Where there are more: so many, the first of each state.
const EXAMPLES: usize = 3;

/// The records to show: all, or the first of the states that most of them ended in.
fn shown(records: &[Record], view: View) -> Vec<&Record> {
    if view.all || records.len() <= BLOCKS {
        return records.iter().collect();
    }
    let states = by_state(records);
    states.iter().take(EXAMPLES).filter_map(|(_, records)| records.first().copied()).collect()
}

/// Records by their state, the most frequent first.
fn by_state(records: &[Record]) -> Vec<(&State, Vec<&Record>)> {
    let mut states: Vec<(&State, Vec<&Record>)> = Vec::new();
    for record in records {
        let state = &record.job.state;
        match states.iter_mut().find(|(known, _)| known.base == state.base) {
            Some((_, records)) => records.push(record),
            None => states.push((state, vec![record])),
        }
    }
    states.sort_by_key(|(_, records)| std::cmp::Reverse(records.len()));
    states
}

/// How many records there are of each state, and which.
fn summary(page: &mut Page<'_>, records: &[Record]) -> io::Result<()> {
    const COLUMNS: [Column; 3] = [
        Column { heading: "STATE", right: false, least: WHOLE },
        Column { heading: "RECORDS", right: true, least: WHOLE },
        Column { heading: "JOBS", right: false, least: 8 },
    ];
    const NAMED: usize = 4;
    let rows = by_state(records).into_iter().map(|(state, records)| {
        let ids = records.iter().take(NAMED).map(|record| record.job.id.to_string());
        let mut ids = ids.collect::<Vec<_>>().join(", ");
        if records.len() > NAMED {
            ids.push_str(", ...");
        }
        vec![
            (state_label(state), state.word().to_owned()),
            (Label::Plain, records.len().to_string()),
            (Label::Plain, ids),
        ]
    });
    let rows: Vec<Vec<(Label, String)>> = rows.collect();
    page.table(&COLUMNS, &rows)
}

fn record(page: &mut Page<'_>, told: &Record, view: View) -> io::Result<()> {
    let job = &told.job;
    heading(page, job)?;
    for gauge in &told.gauges {
        bar(page, gauge, job.state.is_ended())?;
    }
    if let Some(cause) = &told.cause {
        let text = format!("{} ({}); jobwise diagnose {}", cause.title, cause.family, job.id);
        page.entry("cause", MARGIN + 2, Label::Strong, &text)?;
    }
    for finding in &told.findings {
        let (name, label) = match finding.weight {
            Weight::Critical => ("critical", Label::Bad),
            Weight::Warning => ("warning", Label::Warn),
            Weight::Info => ("note", Label::Plain),
        };
        page.entry(name, MARGIN + 2, label, &finding.text)?;
        page.entry("", MARGIN + 2, Label::Plain, &finding.action)?;
    }
    for log in &told.logs {
        for (index, quoted) in log.tail.iter().enumerate() {
            let name = if index == 0 { "log" } else { "" };
            if index == 0 {
                page.entry(name, MARGIN + 2, Label::Dim, &log.path)?;
            }
            page.entry("", MARGIN + 2, Label::Plain, &quoted.text)?;
        }
    }
    for node in &job.measured {
        page.entry("measured", MARGIN + 2, Label::Plain, &measured(node))?;
    }
    facts(page, job, view)?;
    if !job.steps.is_empty() {
        steps(page, &job.steps, view)?;
    }
    for (index, earlier) in job.earlier.iter().enumerate() {
        let exit = exit(&earlier.exit);
        let text = format!(
            "{} after {}, ended {} {exit}",
            earlier.state,
            earlier.elapsed,
            page.moment(&earlier.ended)
        );
        page.entry(&format!("run {}", index + 1), MARGIN + 2, Label::Plain, &text)?;
    }
    Ok(())
}

/// Columns of a bar.
const BAR: usize = 20;

/// What was used of what there was, as a bar and in figures.
fn bar(page: &mut Page<'_>, gauge: &Gauge, over: bool) -> io::Result<()> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "gauges are far below 2^53 and not negative"
    )]
    let shown = |amount: f64| match gauge.unit {
        "s" => Span::seconds(amount as u64).to_string(),
        "bytes" => Bytes(amount as u64).to_string(),
        unit => format!("{amount:.1} {unit}"),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of 20 columns"
    )]
    let filled = gauge.share.map_or(0, |share| (share * BAR as f64).round() as usize).min(BAR);
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR - filled));
    let percent =
        gauge.share.map_or_else(|| "  n/a".to_owned(), |share| format!("{:>4.0}%", share * 100.0));
    let text = match (gauge.used, gauge.of) {
        (Some(used), Some(of)) => {
            let where_ = if gauge.name == "memory" { " on a node" } else { "" };
            format!("[{bar}] {percent}  {} of {}{where_}", shown(used), shown(of))
        }
        (Some(used), None) => format!("{} of n/a", shown(used)),
        (None, of) => {
            let of = of.map_or_else(|| "n/a".to_owned(), shown);
            match gauge.gathered_by {
                Some(by) => format!("n/a of {of}: not measured; a site measures it with {by}"),
                None if over => format!("n/a of {of}: it took no time"),
                None => {
                    format!("n/a of {of}: not counted yet, accounting learns it when a step ends")
                }
            }
        }
    };
    page.entry(&gauge.name.to_uppercase(), MARGIN + 2, Label::Plain, &text)
}

fn facts(page: &mut Page<'_>, job: &Job, view: View) -> io::Result<()> {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "n/a".to_owned());
    let memory = match job.requested_memory.get() {
        Some(Memory { bytes, scope }) => {
            let per = match scope {
                MemoryScope::Job => "in all",
                MemoryScope::Node => "per node",
                MemoryScope::Cpu => "per CPU",
            };
            format!("{bytes} {per} asked for")
        }
        None => "n/a".to_owned(),
    };
    let peak = match job.peak_memory() {
        Some((peak, step)) => format!("{peak} in one task of step {}", step.id),
        None => "n/a".to_owned(),
    };
    // A list of what was allocated that names no GPU says that there was none.
    let listed = !job.allocated.is_empty();
    let gpus = job.gpus().or(listed.then_some(0));
    let gpus = gpus.map_or_else(|| "n/a".to_owned(), |gpus| gpus.to_string());
    let energy = match (job.drawn(), job.energy.get()) {
        (Some(Drawn::Own(joules)), _) => format!("{joules} J of its nodes, which it had to itself"),
        (Some(Drawn::Shared(joules)), _) => {
            format!("n/a: {joules} J of its nodes, perhaps of other jobs on them too")
        }
        (Some(Drawn::Absurd(joules)), _) => format!("n/a: {joules} J, which no node can draw"),
        (None, Some(joules)) => format!("n/a: {joules} J, for how long is not recorded"),
        (None, None) => {
            "n/a: not measured; a site measures it with AcctGatherEnergyType".to_owned()
        }
    };
    let exclusive = match job.exclusive.get() {
        None => "n/a",
        Some(true) => "whole nodes",
        Some(false) => "nodes that others may share",
    };
    let basic = [
        ("submitted", page.moment(&job.submitted)),
        ("started", page.moment(&job.started)),
        ("ended", page.moment(&job.ended)),
        ("elapsed", format!("{} of {}", job.elapsed, job.limit)),
        ("CPU time", job.cpu_time.to_string()),
        ("QOS", known(&job.qos)),
        ("nodes", format!("{}: {}", job.nodes, known(&job.node_list))),
        ("CPUs", job.cpus.to_string()),
        ("GPUs", gpus),
        ("memory", memory),
        ("peak", peak),
        ("restarts", job.restarts.to_string()),
        ("reason", known(&job.reason)),
        ("directory", known(&job.work_dir)),
        ("stdout", known(&job.stdout)),
        ("stderr", known(&job.stderr)),
        ("submitted as", known(&job.submit_line)),
        ("comment", known(&job.comment)),
    ];
    for (name, value) in basic {
        page.entry(name, MARGIN + 2, Label::Plain, &value)?;
    }
    if !view.all {
        return Ok(());
    }
    let raw_id = job.raw_id.to_string();
    let derived = job.derived_exit.get().map_or_else(|| "n/a".to_owned(), Exit::explained);
    let rest = [
        ("own number", raw_id),
        ("user id", job.uid.to_string()),
        ("cluster", known(&job.cluster)),
        ("eligible", page.moment(&job.eligible)),
        ("suspended", job.suspended.to_string()),
        ("worst exit", derived),
        ("asked for", list(&job.requested)),
        ("allocated", list(&job.allocated)),
        ("constraints", known(&job.constraints)),
        ("failed node", known(&job.failed_node)),
        ("dependency", known(&job.dependency)),
        ("script", known(&job.command)),
        ("energy", energy),
        ("shared", exclusive.to_owned()),
        ("site's note", known(&job.admin_comment)),
    ];
    for (name, value) in rest {
        page.entry(name, MARGIN + 2, Label::Plain, &value)?;
    }
    recorded(page, &job.recorded)
}

/// What a monitoring of the site measured on one node.
fn measured(node: &NodeUse) -> String {
    let shown = |number: Option<String>| number.unwrap_or_else(|| "n/a".to_owned());
    let bytes = |bytes: Option<u64>| shown(bytes.map(|bytes| Bytes(bytes).to_string()));
    let cpu = shown(node.cpu_seconds.map(|seconds| Span::seconds(seconds).to_string()));
    let cpus = shown(node.cpus.map(|cpus| cpus.to_string()));
    let mut text = format!(
        "{}: CPU time {cpu} on {cpus} CPUs, memory {} of {}",
        node.node,
        bytes(node.memory),
        bytes(node.of_memory)
    );
    for gpu in &node.gpus {
        let busy = shown(gpu.percent.map(|percent| format!("{percent:.0} %")));
        let memory = format!("{} of {}", bytes(gpu.memory), bytes(gpu.of_memory));
        text.push_str(&format!("; GPU {} {busy} busy, {memory}", gpu.index));
    }
    text
}

/// A list of resources as the scheduler writes it.
fn list(tres: &Tres) -> String {
    let entries = tres.0.iter().map(|(name, value)| format!("{name}={value}"));
    let list = entries.collect::<Vec<_>>().join(",");
    if list.is_empty() { "n/a".to_owned() } else { list }
}

/// What else is recorded, by the scheduler's own names.
fn recorded(page: &mut Page<'_>, fields: &BTreeMap<String, String>) -> io::Result<()> {
    const NAMES: usize = 22;
    for (name, value) in fields {
        page.entry(name, NAMES, Label::Plain, value)?;
    }
    Ok(())
}

/// Steps that are shown unless all are asked for.
const STEPS: usize = 10;

fn steps(page: &mut Page<'_>, steps: &[Step], view: View) -> io::Result<()> {
    const COLUMNS: [Column; 8] = [
        Column { heading: "STEP", right: false, least: 5 },
        Column { heading: "NAME", right: false, least: 6 },
        Column { heading: "STATE", right: false, least: 9 },
        Column { heading: "EXIT", right: true, least: WHOLE },
        Column { heading: "ELAPSED", right: true, least: WHOLE },
        Column { heading: "CPU TIME", right: true, least: WHOLE },
        Column { heading: "TASKS", right: true, least: WHOLE },
        Column { heading: "MAXRSS", right: true, least: WHOLE },
    ];
    let shown = if view.all || view.steps { steps.len() } else { STEPS };
    let rows: Vec<Vec<(Label, String)>> = steps
        .iter()
        .take(shown)
        .map(|step| {
            vec![
                (Label::Plain, step.id.to_string()),
                (Label::Plain, step.name.clone()),
                (state_label(&step.state), step.state.text.clone()),
                (Label::Plain, step.exit.to_string()),
                (Label::Plain, step.elapsed.to_string()),
                (Label::Plain, step.cpu_time.to_string()),
                (Label::Plain, step.tasks.to_string()),
                (Label::Plain, step.max_rss.to_string()),
            ]
        })
        .collect();
    page.table(&COLUMNS, &rows)?;
    if steps.len() > shown {
        let more = text::count((steps.len() - shown) as u64, "more step");
        page.line(&[(Label::Dim, &format!("{more}: --steps"))])?;
    }
    if view.steps || view.all {
        moved(page, steps)?;
    }
    if view.all {
        for step in steps {
            page.line(&[(Label::Strong, &format!("step {}", step.id))])?;
            details(page, step)?;
        }
    }
    Ok(())
}

/// Where each step ran and what it moved.
fn moved(page: &mut Page<'_>, steps: &[Step]) -> io::Result<()> {
    const COLUMNS: [Column; 6] = [
        Column { heading: "STEP", right: false, least: 5 },
        Column { heading: "STARTED", right: false, least: WHOLE },
        Column { heading: "NODES", right: false, least: 6 },
        Column { heading: "READ", right: true, least: WHOLE },
        Column { heading: "WRITTEN", right: true, least: WHOLE },
        Column { heading: "GPU USE", right: true, least: WHOLE },
    ];
    let disk = |tres: &Tres| {
        let bytes = tres.get("fs/disk").and_then(|text| Bytes::parse(text, 1).ok());
        bytes.map_or_else(|| "n/a".to_owned(), |bytes| bytes.to_string())
    };
    let rows: Vec<Vec<(Label, String)>> = steps
        .iter()
        .map(|step| {
            let gpu = step.usage.total.get("gres/gpuutil");
            vec![
                (Label::Plain, step.id.to_string()),
                (Label::Plain, page.brief_moment(&step.started)),
                (Label::Plain, step.node_list.clone().unwrap_or_else(|| "n/a".to_owned())),
                (Label::Plain, disk(&step.usage.total)),
                (Label::Plain, disk(&step.usage.total_out)),
                (Label::Plain, gpu.map_or_else(|| "n/a".to_owned(), |gpu| format!("{gpu}%"))),
            ]
        })
        .collect();
    page.table(&COLUMNS, &rows)
}

/// Everything that is recorded of one step and stands in no table.
fn details(page: &mut Page<'_>, step: &Step) -> io::Result<()> {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "n/a".to_owned());
    let usage = &step.usage;
    let energy =
        usage.energy.get().map_or_else(|| "n/a".to_owned(), |joules| format!("{joules} J"));
    for (name, value) in [
        ("ended", page.moment(&step.ended)),
        ("nodes", step.nodes.to_string()),
        ("CPUs", step.cpus.to_string()),
        ("allocated", list(&step.allocated)),
        ("largest on", known(&step.max_rss_node)),
        ("in program", usage.user_cpu.to_string()),
        ("in kernel", usage.system_cpu.to_string()),
        ("mean task", usage.average_cpu.to_string()),
        ("least task", format!("{} on {}", usage.least_cpu, known(&usage.least_cpu_node))),
        ("mean memory", usage.average_rss.to_string()),
        ("page faults", usage.page_faults.to_string()),
        ("most read", usage.read.to_string()),
        ("most written", usage.written.to_string()),
        ("all tasks", list(&usage.total)),
        ("largest task", list(&usage.most)),
        ("mean of tasks", list(&usage.average)),
        ("all put out", list(&usage.total_out)),
        ("energy", energy),
        ("stdout", known(&step.stdout)),
        ("stderr", known(&step.stderr)),
        ("started as", known(&step.submit_line)),
    ] {
        page.entry(name, MARGIN + 4, Label::Plain, &value)?;
    }
    recorded(page, &step.recorded)
}
