//! One queue with its nodes, one node with its jobs, one job with its nodes; and what is out.

use std::collections::HashMap;
use std::io;

use super::Report;
use super::capacity::{MARGIN, ago, class_label, classes, node_table, queue};
use super::page::{Cell, Column, Label, Page, WHOLE};
use crate::answer::cluster::NodeRow;
use crate::answer::health::Health;
use crate::answer::zoom::{JobOnNode, JobRow, Place, Zoom};
use crate::capacity::health::Degraded;
use crate::model::{Known, Share};
use crate::text;

impl Report for Zoom {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        for (index, place) in self.places.iter().enumerate() {
            if index > 0 {
                page.gap()?;
            }
            match place {
                Place::Queue { queue: row, nodes, total, .. } => {
                    queue(page, row)?;
                    page.gap()?;
                    node_table(page, nodes)?;
                    if *total > nodes.len() {
                        let more = text::count((*total - nodes.len()) as u64, "node");
                        page.entry("", 0, Label::Dim, &format!("{more} more: --all"))?;
                    }
                }
                Place::Node { node: row, jobs } => node(page, self, row, jobs.as_deref())?,
                Place::Job { job: row, shares } => job(page, row, shares.as_deref())?,
            }
        }
        page.notices_apart(&self.notices)
    }
}

fn node(
    page: &mut Page<'_>,
    zoom: &Zoom,
    row: &NodeRow,
    jobs: Option<&[JobOnNode]>,
) -> io::Result<()> {
    let title = format!("node {}", row.name);
    page.row(&[
        (Label::Strong, &title),
        (class_label(row.class), row.class.word()),
        (Label::Dim, &row.state.text),
    ])?;
    let mut entry = |name: &str, body: &str| page.entry(name, MARGIN, Label::Plain, body);
    entry(
        "free",
        &format!(
            "{} of {} cores, {} of {} memory{}",
            row.cpus_free,
            row.cpus,
            row.memory_free,
            row.memory,
            if row.gpus_stranded > 0 {
                format!("; {} stranded", text::count(row.gpus_stranded, "GPU"))
            } else {
                String::new()
            },
        ),
    )?;
    for gres in &row.gres {
        let model = gres.model.as_ref().map_or(String::new(), |model| format!(":{model}"));
        entry("", &format!("{} of {} {}{model}", gres.free, gres.total, gres.name))?;
    }
    entry("partitions", &row.partitions.join(", "))?;
    if !row.features.is_empty() {
        entry("features", &row.features.join(", "))?;
    }
    if let Some(load) = row.load.get() {
        entry("load", &format!("{}.{:02}", load / 100, load % 100))?;
    }
    if let Some(until) = row.until {
        let by = row.reservation.as_deref().unwrap_or("n/a");
        let at = page.moment(&Known::Value(until));
        page.entry(
            "reserved",
            MARGIN,
            Label::Warn,
            &format!("from {at} by {by}: jobs must end before"),
        )?;
    } else if let Some(by) = &row.reservation {
        page.entry("reserved", MARGIN, Label::Warn, &format!("now by {by}"))?;
    }
    if let Some(reason) = &row.reason {
        let by = reason.by.as_ref().map_or(String::new(), |by| format!(", by {by}"));
        let body = format!("{}{by}, {}", reason.text, ago(&reason.at, zoom.taken_at));
        page.entry("reason", MARGIN, Label::Warn, &body)?;
    }
    match jobs {
        None => page.entry("", 0, Label::Warn, "the jobs here could not be read"),
        Some([]) if row.class.gives_now() => page.entry("", 0, Label::Plain, "nothing runs here"),
        Some([]) if row.cpus_allocated.get().is_some_and(|cpus| cpus > 0) => {
            let line = "cores are given away, but no job that you may see is here";
            page.entry("", 0, Label::Warn, line)
        }
        Some([]) => page.entry("", 0, Label::Plain, "nothing runs here, and nothing can start"),
        Some(jobs) => {
            page.gap()?;
            jobs_here(page, jobs)
        }
    }
}

/// What each job has of this node.
fn jobs_here(page: &mut Page<'_>, jobs: &[JobOnNode]) -> io::Result<()> {
    const COLUMNS: [Column; 9] = [
        Column { heading: "JOB", right: false, least: WHOLE },
        Column { heading: "USER", right: false, least: 4 },
        Column { heading: "ACCOUNT", right: false, least: 4 },
        Column { heading: "CORES", right: true, least: WHOLE },
        Column { heading: "MEMORY", right: true, least: WHOLE },
        Column { heading: "GPUS", right: true, least: WHOLE },
        Column { heading: "NODES", right: true, least: WHOLE },
        Column { heading: "LEFT", right: true, least: WHOLE },
        Column { heading: "NAME", right: false, least: 6 },
    ];
    let rows: Vec<Vec<Cell>> = jobs
        .iter()
        .map(|row| {
            let plain = |text: String| (Label::Plain, text);
            vec![
                plain(row.job.id.to_string()),
                plain(row.job.user.clone().unwrap_or_else(|| "n/a".to_owned())),
                plain(row.job.account.clone().unwrap_or_else(|| "n/a".to_owned())),
                plain(row.cpus_here.to_string()),
                plain(row.memory_here.to_string()),
                plain(row.gpus_here.to_string()),
                plain(row.job.nodes.to_string()),
                plain(row.job.left.to_string()),
                plain(row.job.name.clone()),
            ]
        })
        .collect();
    page.table(&COLUMNS, &rows)?;
    page.entry("", 0, Label::Dim, "cores, memory and GPUs are those on this node")
}

/// What a job has of its nodes.
const SHARE_COLUMNS: [Column; 4] = [
    Column { heading: "NODES", right: false, least: 8 },
    Column { heading: "CORES", right: true, least: WHOLE },
    Column { heading: "MEMORY", right: true, least: WHOLE },
    Column { heading: "GPUS", right: true, least: WHOLE },
];

fn job(page: &mut Page<'_>, row: &JobRow, shares: Option<&[Share]>) -> io::Result<()> {
    let title = format!("job {} \"{}\"", row.id, row.name);
    page.row(&[(Label::Strong, title.as_str()), (Label::Plain, &row.state)])?;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "n/a".to_owned());
    let start = page.moment(&row.start);
    let end = page.moment(&row.end);
    let mut entry = |name: &str, body: &str| page.entry(name, MARGIN, Label::Plain, body);
    let owner =
        format!("{}, account {}, QOS {}", known(&row.user), known(&row.account), known(&row.qos));
    entry("owner", &owner)?;
    entry("partition", &known(&row.partition))?;
    let size = format!(
        "{} on {}, {} memory, {} GPUs",
        row.cpus.get().map_or_else(|| "n/a cores".to_owned(), |cpus| text::count(cpus, "core")),
        row.nodes.get().map_or_else(|| "n/a nodes".to_owned(), |nodes| text::count(nodes, "node")),
        row.memory,
        row.gpus,
    );
    entry("size", &size)?;
    if let Some(reason) = &row.reason {
        entry("waits for", reason)?;
        entry("priority", &row.priority.to_string())?;
        entry("start", &format!("{start}, by the scheduler's guess"))?;
    } else {
        entry("start", &start)?;
        entry("ends", &format!("{end} at the latest, {} left", row.left))?;
    }
    if let Some(nodes) = &row.node_list {
        entry("nodes", nodes)?;
    }
    let Some(shares) = shares.filter(|shares| !shares.is_empty()) else { return Ok(()) };
    let rows: Vec<Vec<Cell>> = shares
        .iter()
        .map(|share| {
            vec![
                (Label::Plain, share.node_list.clone()),
                (Label::Plain, share.cpus.to_string()),
                (Label::Plain, share.memory.to_string()),
                (Label::Plain, share.gpus.to_string()),
            ]
        })
        .collect();
    page.gap()?;
    page.table(&SHARE_COLUMNS, &rows)?;
    page.entry("", 0, Label::Dim, "what it has on each of these nodes")
}

impl Report for Health {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.entry("nodes", MARGIN, Label::Plain, &classes(&self.nodes))?;
        if self.out.is_empty() && self.degraded.is_empty() {
            page.entry("", 0, Label::Good, "no node is out, and none looks degraded")?;
        }
        if !self.out.is_empty() {
            page.gap()?;
            page.entry("", 0, Label::Strong, "out")?;
        }
        for group in &self.out {
            let reason = group.reason.as_deref().unwrap_or("no reason was given");
            let count = format!("{} {}", group.nodes.len(), group.class.word());
            page.row(&[(Label::Bad, count.as_str()), (Label::Plain, reason)])?;
            let mut facts = vec![text::collapse(group.nodes.iter().map(String::as_str))];
            if !group.by.is_empty() {
                facts.push(format!("by {}", text::join(&group.by, "and")));
            }
            if let (Some(first), Some(last)) = (group.first.get(), group.last.get()) {
                facts.push(ago(&Known::Value(last), self.taken_at));
                if first != last {
                    facts.push(format!("first {}", ago(&Known::Value(first), self.taken_at)));
                }
            }
            if group.gpus > 0 {
                facts.push(text::count(group.gpus, "GPU"));
            }
            facts.push(text::count(group.cpus, "core"));
            page.entry("", 2, Label::Dim, &facts.join(", "))?;
            let of_it = |found: &&Degraded| group.nodes.contains(&found.node);
            for found in self.degraded.iter().filter(of_it) {
                let text = format!("{}: {}", found.node, found.text);
                page.entry("", 2, Label::Plain, &text)?;
            }
        }
        let is_out = |node: &String| self.out.iter().any(|group| group.nodes.contains(node));
        let degraded: Vec<&Degraded> =
            self.degraded.iter().filter(|found| !is_out(&found.node)).collect();
        if !degraded.is_empty() {
            page.gap()?;
            page.entry("", 0, Label::Strong, "work, and are worse than they look")?;
        }
        // One line for what is said of many nodes alike.
        let mut groups: Vec<(&Degraded, Vec<&str>)> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for finding in degraded.iter().copied() {
            let index = *known.entry(&finding.text).or_insert_with(|| {
                groups.push((finding, Vec::new()));
                groups.len() - 1
            });
            groups[index].1.push(&finding.node);
        }
        for (finding, nodes) in &groups {
            let label = if finding.is_serious { Label::Warn } else { Label::Plain };
            let names = text::collapse(nodes.iter().copied());
            if text::width(&names) < MARGIN {
                page.entry(&names, MARGIN, label, &finding.text)?;
            } else {
                page.entry("", 0, Label::Plain, &names)?;
                page.entry("", MARGIN, label, &finding.text)?;
            }
        }
        // What the other findings say is no reason to keep away.
        let avoided = |found: &&&Degraded| found.is_serious && found.finding != "failures";
        let mut avoided: Vec<&str> =
            degraded.iter().filter(avoided).map(|found| found.node.as_str()).collect();
        avoided.dedup();
        if !avoided.is_empty() {
            let line = format!(
                "worth keeping away from (exclude --degraded): {}",
                text::collapse(avoided.iter().copied())
            );
            page.entry("", 0, Label::Dim, &line)?;
        }
        page.notices_apart(&self.notices)
    }
}
