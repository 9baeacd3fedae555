//! Capacity for people: the cluster at a glance, tables of queues and nodes, and one of each.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io;

use jiff::Timestamp;

use super::Report;
use super::page::{Cell, Column, Label, Page, WHOLE};
use crate::answer::backends::{Backends, Row};
use crate::answer::cluster::{NodeRow, QueueRow};
use crate::answer::exclude::Exclude;
use crate::answer::nodes::Nodes;
use crate::answer::queues::Queues;
use crate::answer::status::Status;
use crate::capacity::free::{Class, Sums};
use crate::capacity::gates::{Gate, Kind, Term};
use crate::model::Known;
use crate::text;

/// The margin of names beside what they name.
pub(super) const MARGIN: usize = 11;

impl Report for Status {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let name = self.cluster.as_deref().unwrap_or("cluster without a name");
        let user = self.identity.user.as_deref().unwrap_or("n/a");
        let taken = page.moment(&Known::Value(self.taken_at));
        page.row(&[
            (Label::Strong, name),
            (Label::Plain, self.backend),
            (Label::Plain, &format!("you are {user}")),
            (Label::Dim, &taken),
        ])?;
        if self.accounts.as_ref().is_some_and(Vec::is_empty) {
            page.entry(
                "",
                MARGIN,
                Label::Bad,
                "you have no account here: see jobwise queues -p NAME",
            )?;
        }
        page.entry("partitions", MARGIN, Label::Plain, &terms(self))?;
        page.entry("nodes", MARGIN, Label::Plain, &classes(&self.nodes))?;
        let limits = if self.limited { "; more is free, but not within your limits" } else { "" };
        page.entry("yours", MARGIN, Label::Strong, &format!("{}{limits}", free(&self.yours)))?;
        if let Some(access) = &self.access {
            page.entry("access", MARGIN, Label::Dim, &access.told())?;
        }
        let (few, many): (Vec<&QueueRow>, Vec<&QueueRow>) = self
            .queues
            .iter()
            .filter(|row| row.is_usable())
            .partition(|row| !row.dedicated_to.is_empty());
        if !many.is_empty() {
            page.gap()?;
            free_table(page, &many, self.shown)?;
        }
        if !few.is_empty() {
            page.gap()?;
            page.entry("", 0, Label::Dim, "for one or two accounts only, yours among them")?;
            free_table(page, &few, self.shown)?;
        }
        page.notices_apart(&self.notices)
    }
}

/// `17: 9 open, 3 no access, ...`.
fn terms(status: &Status) -> String {
    let all: u64 = status.terms.values().sum();
    let terms: Vec<String> =
        status.terms.iter().map(|(term, count)| format!("{count} {}", term.word())).collect();
    let hidden = match status.hidden {
        0 => String::new(),
        hidden => format!(" ({hidden} hidden: --all)"),
    };
    format!("{all}: {}{hidden}", terms.join(", "))
}

/// `11: 3 idle, 2 room left, ...`: every node in one class.
pub(super) fn classes(sums: &Sums) -> String {
    let classes: Vec<String> =
        sums.classes.iter().map(|(class, count)| format!("{count} {}", class.word())).collect();
    format!("{}: {}", sums.nodes, classes.join(", "))
}

/// What can be had, of how much.
fn free(sums: &Sums) -> String {
    let mut parts = vec![format!("{} of {} cores free", sums.cpus_free, sums.cpus)];
    if sums.gpus > 0 {
        let stranded = match sums.gpus_stranded {
            0 => String::new(),
            stranded => format!(" ({stranded} stranded)"),
        };
        parts.push(format!("{} of {} GPUs{stranded}", sums.gpus_free, sums.gpus));
    }
    if sums.slices_free > 0 {
        parts.push(format!("{} GPU slices", sums.slices_free));
    }
    parts.push(format!("{} of {} memory", sums.memory_free, sums.memory));
    parts.push(format!("{} of {} nodes idle", sums.nodes_idle, sums.nodes));
    if sums.nodes_untold > 0 {
        parts.push(format!("{} do not tell what is free", text::count(sums.nodes_untold, "node")));
    }
    parts.join(", ")
}

/// What can be had, of how much: `3/8`.
struct Of<F, A>(F, A);

impl<F: Display, A: Display> Display for Of<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

fn of(free: impl Display, all: impl Display) -> String {
    Of(free, all).to_string()
}

fn models(row: &QueueRow) -> String {
    row.gpu_models.keys().cloned().collect::<Vec<_>>().join(",")
}

/// The queues with what is free of them; at most so many.
fn free_table(page: &mut Page<'_>, queues: &[&QueueRow], shown: usize) -> io::Result<()> {
    const COLUMNS: [Column; 7] = [
        Column { heading: "PARTITION", right: false, least: WHOLE },
        Column { heading: "IDLE", right: true, least: WHOLE },
        Column { heading: "CORES FREE", right: true, least: WHOLE },
        Column { heading: "MEM FREE", right: true, least: WHOLE },
        Column { heading: "GPUS", right: true, least: WHOLE },
        Column { heading: "MAX TIME", right: true, least: WHOLE },
        Column { heading: "GPU TYPES", right: false, least: 5 },
    ];
    let rows: Vec<Vec<Cell>> = queues
        .iter()
        .take(shown)
        .map(|row| {
            let sums = &row.nodes;
            let label = if row.term == Term::Open { Label::Plain } else { Label::Warn };
            let gpus =
                if sums.gpus == 0 { String::new() } else { of(row.gpus_to_have(), sums.gpus) };
            vec![
                (label, name(row)),
                (Label::Plain, of(sums.nodes_idle, sums.nodes)),
                (Label::Plain, of(sums.cpus_free, sums.cpus)),
                (Label::Plain, of(sums.memory_free, sums.memory)),
                (Label::Plain, gpus),
                (Label::Plain, row.max_time.to_string()),
                (Label::Plain, models(row)),
            ]
        })
        .collect();
    page.table(&COLUMNS, &rows)?;
    if queues.len() > shown {
        let line = format!("{} more: --all", queues.len() - shown);
        page.entry("", 0, Label::Dim, &line)?;
    }
    limited(page, queues.iter().take(shown).copied())
}

/// Which take only jobs that name a reservation, and whose limits leave less than is free.
fn limited<'r>(page: &mut Page<'_>, rows: impl Iterator<Item = &'r QueueRow>) -> io::Result<()> {
    for row in rows {
        let reserved = row.gates.iter().find(|gate| gate.code == "REQUIRES_RESERVATION");
        if let Some(gate) = reserved.filter(|_| row.is_usable()) {
            page.entry("", 0, Label::Warn, &format!("{} ({})", gate.text, gate.source))?;
        }
        let Some(left) = &row.gpus_left else { continue };
        let line = format!(
            "{}: of {} limits leave you {} ({})",
            row.name,
            text::count(row.nodes.gpus_free, "free GPU"),
            left.amount,
            left.source
        );
        page.entry("", 0, Label::Warn, &line)?;
    }
    Ok(())
}

/// The name, with a star for the default and a question mark where something was not checked.
fn name(row: &QueueRow) -> String {
    let star = if row.is_default { "*" } else { "" };
    let doubt = if row.term == Term::Unchecked { "?" } else { "" };
    format!("{}{star}{doubt}", row.name)
}

fn term_label(term: Term) -> Label {
    match term {
        Term::Open => Label::Good,
        Term::Unchecked => Label::Warn,
        Term::NoAccess | Term::NoNodes | Term::Closed => Label::Bad,
    }
}

/// What a list of queues tells of each.
const QUEUE_COLUMNS: [Column; 7] = [
    Column { heading: "PARTITION", right: false, least: WHOLE },
    Column { heading: "STATE", right: false, least: WHOLE },
    Column { heading: "UP", right: true, least: WHOLE },
    Column { heading: "CORES", right: true, least: WHOLE },
    Column { heading: "GPUS", right: true, least: WHOLE },
    Column { heading: "MAX TIME", right: true, least: WHOLE },
    Column { heading: "BLOCKED BY", right: false, least: 10 },
];

impl Queues {
    /// How sure the answer is.
    fn ending(&self, page: &mut Page<'_>) -> io::Result<()> {
        if let Some(access) = &self.access {
            page.gap()?;
            page.entry("access", MARGIN, Label::Dim, &access.told())?;
        }
        page.notices_apart(&self.notices)
    }
}

impl Report for Queues {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        if self.detail {
            for (index, row) in self.queues.iter().enumerate() {
                if index > 0 {
                    page.gap()?;
                }
                queue(page, row)?;
            }
            return self.ending(page);
        }
        let rows: Vec<Vec<Cell>> = self
            .queues
            .iter()
            .map(|row| {
                let sums = &row.nodes;
                let gpus =
                    if sums.gpus == 0 { String::new() } else { of(row.gpus_to_have(), sums.gpus) };
                vec![
                    (Label::Plain, name(row)),
                    (term_label(row.term), row.term.word().to_owned()),
                    (Label::Plain, of(sums.nodes_up, sums.nodes)),
                    (Label::Plain, of(sums.cpus_free, sums.cpus)),
                    (Label::Plain, gpus),
                    (Label::Plain, row.max_time.to_string()),
                    (Label::Plain, blocked_by(row)),
                ]
            })
            .collect();
        if rows.is_empty() {
            page.entry("", 0, Label::Plain, "no partition to show")?;
        } else {
            page.table(&QUEUE_COLUMNS, &rows)?;
        }
        limited(page, self.queues.iter().filter(|row| row.is_usable()))?;
        if self.hidden > 0 {
            let more = text::count(self.hidden as u64, "hidden partition");
            page.entry("", 0, Label::Dim, &format!("{more} not shown: --all"))?;
        }
        if !self.queues.is_empty() {
            page.entry(
                "",
                0,
                Label::Dim,
                "up, cores and GPUs: free/all; jobwise zoom PARTITION: why, and its nodes",
            )?;
        }
        self.ending(page)
    }
}

/// The first code, and how many more.
fn blocked_by(row: &QueueRow) -> String {
    let mut gates = row.gates.iter().filter(|gate| gate.kind != Kind::Note);
    match (gates.next(), gates.count()) {
        (None, _) => String::new(),
        (Some(first), 0) => first.code.clone(),
        (Some(first), more) => format!("{} +{more}", first.code),
    }
}

/// One queue at length.
pub(super) fn queue(page: &mut Page<'_>, row: &QueueRow) -> io::Result<()> {
    let title = format!("partition {}", name(row));
    let hidden = if row.is_hidden { "hidden" } else { "" };
    let mut pieces = vec![(Label::Strong, title.as_str()), (term_label(row.term), row.term.word())];
    if !hidden.is_empty() {
        pieces.push((Label::Dim, hidden));
    }
    page.row(&pieces)?;
    let mut entry = |name: &str, body: &str| page.entry(name, MARGIN, Label::Plain, body);
    entry("nodes", &classes(&row.nodes))?;
    if let Some(declared) = row.nodes_declared.get() {
        let said =
            format!("the partition says it has {declared} nodes, {} were told", row.nodes.nodes);
        entry("", &said)?;
    }
    entry("free", &free(&row.nodes))?;
    if row.advertised_idle > 0 {
        let idle = text::count(row.advertised_idle, "idle node");
        entry("", &format!("shows {idle} though nothing starts here"))?;
    }
    if !row.gpu_models.is_empty() {
        let models: Vec<String> = row
            .gpu_models
            .iter()
            .map(|(model, nodes)| format!("{model} on {}", text::count(*nodes, "node")))
            .collect();
        entry("GPU types", &models.join(", "))?;
    }
    entry("max time", &format!("{}, by {}", row.max_time, row.max_time_source))?;
    if let Some(most) = row.cpus_per_node.get() {
        let most = format!("{most} cores of a node, by partition {} MaxCPUsPerNode", row.name);
        entry("at once", &most)?;
    }
    for ceiling in &row.at_once {
        let most = format!(
            "{} {} for one user, of which you have {}, by {}",
            ceiling.most, ceiling.resource, ceiling.used, ceiling.source,
        );
        entry("at once", &most)?;
    }
    if let Some(account) = &row.way.account {
        let qos = row.way.qos.as_ref().map_or(String::new(), |qos| format!(", QOS {qos}"));
        entry("charges", &format!("{account}{qos}"))?;
    }
    gates(page, &row.gates)
}

/// What is in the way, each with whose rule it is and what would lift it.
pub(super) fn gates(page: &mut Page<'_>, gates: &[Gate]) -> io::Result<()> {
    for gate in gates {
        let (word, label) = match gate.kind {
            Kind::Fatal => ("refused", Label::Bad),
            Kind::Shape => ("limit", Label::Warn),
            Kind::Wait => ("waits", Label::Warn),
            Kind::Unchecked => ("unchecked", Label::Warn),
            Kind::Note => ("note", Label::Plain),
        };
        let lift = gate.lift.as_ref().map_or(String::new(), |lift| format!("; {lift}"));
        let body = format!("{} ({}){lift}  {}", gate.text, gate.source, gate.code);
        page.entry(word, MARGIN, label, &body)?;
    }
    Ok(())
}

/// How a class looks.
pub(super) fn class_label(class: Class) -> Label {
    match class {
        Class::Idle | Class::Room => Label::Good,
        class if class.is_out() => Label::Bad,
        Class::Full => Label::Plain,
        _ => Label::Warn,
    }
}

/// A table of nodes.
pub(super) fn node_table(page: &mut Page<'_>, nodes: &[NodeRow]) -> io::Result<()> {
    const COLUMNS: [Column; 7] = [
        Column { heading: "NODE", right: false, least: 6 },
        Column { heading: "CLASS", right: false, least: WHOLE },
        Column { heading: "CORES", right: true, least: WHOLE },
        Column { heading: "MEMORY", right: true, least: WHOLE },
        Column { heading: "GPUS", right: true, least: WHOLE },
        Column { heading: "JOBS", right: true, least: WHOLE },
        Column { heading: "STATE, FEATURES", right: false, least: 8 },
    ];
    let mut cells = page.cells(&COLUMNS, nodes.len());
    for row in nodes {
        cells.push(Label::Plain, &row.name);
        cells.push(class_label(row.class), row.class.word());
        cells.push(Label::Plain, Of(&row.cpus_free, &row.cpus));
        cells.push(Label::Plain, Of(&row.memory_free, &row.memory));
        if row.gpus == 0 {
            cells.push(Label::Plain, "");
        } else {
            cells.push(Label::Plain, Of(&row.gpus_free, row.gpus));
        }
        cells.push(Label::Plain, &row.jobs);
        cells.push(Label::Dim, marks(row));
    }
    page.grid(&COLUMNS, &cells)
}

/// The state as printed, then what kinds of GPU, then features; each once.
fn marks(row: &NodeRow) -> String {
    let slices = row.gres.iter().filter(|gres| gres.name != "gpu" || gres.model.is_some());
    let slices = slices.map(|gres| match (&gres.model, gres.name.as_str()) {
        (Some(model), "gpu") => model.into(),
        (_, name) => format!("{name} {}", Of(&gres.free, gres.total)).into(),
    });
    let state = std::iter::once(Cow::Borrowed(row.state.text.as_str()));
    let mut words: Vec<Cow<'_, str>> = Vec::with_capacity(8);
    for word in state.chain(slices).chain(row.features.iter().map(Cow::from)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

impl Report for Nodes {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut nodes = classes(&self.matching);
        if self.matching.nodes < self.cluster.nodes {
            nodes = nodes.replacen(':', &format!(" of {}:", self.cluster.nodes), 1);
        }
        page.entry("nodes", MARGIN, Label::Plain, &nodes)?;
        if self.nodes.is_empty() {
            page.entry("", 0, Label::Plain, "no node matches")?;
        } else {
            page.gap()?;
            node_table(page, &self.nodes)?;
            page.entry("", 0, Label::Dim, "cores, memory and GPUs: free/all")?;
        }
        if self.total > self.nodes.len() {
            let more = format!(
                "{} more: --all",
                text::count((self.total - self.nodes.len()) as u64, "node")
            );
            page.entry("", 0, Label::Dim, &more)?;
        }
        page.notices_apart(&self.notices)
    }
}

impl Report for Exclude {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        if !self.nodelist.is_empty() {
            page.verbatim(&text::printable(self.nodelist.as_bytes()))?;
        }
        Ok(())
    }
}

impl Report for Backends {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        const COLUMNS: [Column; 5] = [
            Column { heading: "SCHEDULER", right: false, least: WHOLE },
            Column { heading: "HERE", right: false, least: WHOLE },
            Column { heading: "PAST JOBS", right: false, least: WHOLE },
            Column { heading: "NODES", right: false, least: WHOLE },
            Column { heading: "DRY RUN", right: false, least: WHOLE },
        ];
        let cell = |yes: bool| {
            if yes { (Label::Good, "yes".to_owned()) } else { (Label::Plain, "no".to_owned()) }
        };
        // What does not answer was not heard to do anything.
        let able = |row: &Row, yes: bool| match &row.trouble {
            Some(_) => (Label::Warn, "n/a".to_owned()),
            None => cell(yes),
        };
        let rows: Vec<Vec<Cell>> = self
            .backends
            .iter()
            .map(|row| {
                vec![
                    (Label::Plain, row.name.to_owned()),
                    cell(row.is_here),
                    able(row, row.knows_jobs),
                    able(row, row.knows_nodes),
                    able(row, row.has_dry_run),
                ]
            })
            .collect();
        page.table(&COLUMNS, &rows)?;
        for row in &self.backends {
            if let Some(trouble) = &row.trouble {
                page.entry(
                    "",
                    0,
                    Label::Warn,
                    &format!("{} does not answer: {trouble}", row.name),
                )?;
            }
        }
        Ok(())
    }
}

/// How long ago something was, in the largest unit that says something.
pub(super) fn ago(then: &Known<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then.get() else { return "n/a".to_owned() };
    let seconds = now.duration_since(then).as_secs();
    match seconds {
        ..0 => "in the future".to_owned(),
        0..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}
