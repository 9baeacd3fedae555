//! Jobs for people: a heading of two lines, a table, or all that is recorded.

use std::io;

use super::Report;
use super::page::{Column, Label, Page, WHOLE};
use crate::answer::job::Records;
use crate::answer::jobs::Jobs;
use crate::model::{BaseState, Exit, Job, Known, Memory, MemoryScope, State, Step};
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
            Column { heading: "STATE", right: false, least: 9 },
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
            let line = format!("{} more: raise --limit", text::count(rest as u64, "job"));
            page.line(&[(Label::Dim, &line)])?;
        }
        page.notices(&self.notices)
    }
}

impl Report for Records {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for (index, job) in self.jobs.iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            record(page, job)?;
        }
        page.notices(&self.notices)
    }
}

fn record(page: &mut Page<'_>, job: &Job) -> io::Result<()> {
    heading(page, job)?;
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
    let gpus = job.gpus().map_or_else(|| "n/a".to_owned(), |gpus| gpus.to_string());
    for (name, value) in [
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
    ] {
        page.entry(name, MARGIN + 2, Label::Plain, &value)?;
    }
    if !job.steps.is_empty() {
        steps(page, &job.steps)?;
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

fn steps(page: &mut Page<'_>, steps: &[Step]) -> io::Result<()> {
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
    let rows: Vec<Vec<(Label, String)>> = steps
        .iter()
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
    page.table(&COLUMNS, &rows)
}
