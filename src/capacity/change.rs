//! The one change that would let a job run now: less of one thing, or another queue.
//!
//! Each candidate differs from what was asked in one respect and is judged like any shape, by rules
//! and nodes; of each kind of change the smallest that helps is told. What nobody would give up
//! lightly comes last.

use jiff::SignedDuration;
use serde::Serialize;

use super::gates::Kind;
use super::rank::Look;
use crate::model::{Bytes, Known, Per, Queue, Room, Shape, Span};
use crate::text;

/// A change that would let it run now, as far as rules and nodes tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What changes, as one would say it.
    pub what: String,
    /// The queue in which it would run then.
    pub queue: String,
    /// What is asked for then.
    pub shape: Shape,
}

/// Less of one thing, in words and as a shape, the least change first.
type Lesser = fn(&Look<'_>, &Queue, &Shape) -> Vec<(String, Shape)>;

/// How many changes are worth reading.
const MOST: usize = 5;
/// Nobody asks for less time than this.
const SHORTEST: u64 = 60;

/// The changes that would let a shape run now, the least first.
pub fn changes(look: &Look<'_>, shape: &Shape) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    let anywhere = Shape { partitions: Vec::new(), ..shape.clone() };
    let (named, others): (Vec<&Queue>, Vec<&Queue>) = look
        .queues()
        .filter(|queue| !queue.is_hidden || shape.partitions.contains(&queue.name))
        .partition(|queue| shape.partitions.is_empty() || shape.partitions.contains(&queue.name));
    // Another queue is a change by itself, and the only one made then.
    for queue in others {
        if runs_now(look, queue, &anywhere) {
            let what = format!("in partition {}", queue.name);
            let mut shape = anywhere.clone();
            shape.partitions = vec![queue.name.clone()];
            found.push(Change { what, queue: queue.name.clone(), shape });
            break;
        }
    }
    let kinds: [Lesser; 8] = [
        shorter,
        without_exclusive,
        other_gpu,
        fewer_gpus,
        less_memory,
        fewer_cpus,
        fewer_nodes,
        looser,
    ];
    for kind in kinds {
        let helps = named.iter().find_map(|queue| {
            kind(look, queue, shape)
                .into_iter()
                .find(|(_, changed)| runs_now(look, queue, changed))
                .map(|(what, shape)| Change { what, queue: queue.name.clone(), shape })
        });
        found.extend(helps);
    }
    found.truncate(MOST);
    found
}

fn runs_now(look: &Look<'_>, queue: &Queue, shape: &Shape) -> bool {
    let access = look.access(queue, shape);
    let refuses = [Kind::Fatal, Kind::Shape, Kind::Wait].iter().any(|kind| access.has(*kind));
    !refuses && look.fit_of(&queue.name, shape).is_some_and(|fit| fit.now)
}

/// With the longest time that a rule or a reservation leaves.
fn shorter(look: &Look<'_>, queue: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let mut times = look.spare_times(queue, shape);
    times.retain(|time| shape.time.exceeds(time) && time.as_seconds() >= SHORTEST);
    times.sort_unstable_by(|a, b| b.cmp(a));
    times.dedup();
    let shapes = times.into_iter().map(|time| {
        let what = match shape.time.get() {
            Some(asked) => {
                let less = Span::seconds(asked.as_seconds() - time.as_seconds());
                format!("with {} less time (--time={time})", spoken(less))
            }
            None => format!("with a time limit (--time={time})"),
        };
        (what, Shape { time: Known::Value(time), ..shape.clone() })
    });
    shapes.collect()
}

fn without_exclusive(_: &Look<'_>, _: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    if !shape.exclusive {
        return Vec::new();
    }
    vec![("without --exclusive".to_owned(), Shape { exclusive: false, ..shape.clone() })]
}

fn other_gpu(_: &Look<'_>, _: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let mut changed = shape.clone();
    let kinds: Vec<String> =
        changed.devices.iter_mut().filter_map(|devices| devices.kind.take()).collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    vec![(format!("with GPUs of any type instead of {}", text::join(&kinds, "and")), changed)]
}

fn fewer_gpus(_: &Look<'_>, _: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let Some(at) = shape.devices.iter().position(|devices| devices.name == "gpu") else {
        return Vec::new();
    };
    let asked = &shape.devices[at];
    let per = match asked.per {
        Per::Node => " per node",
        Per::Task => " per task",
        _ => "",
    };
    let fewer = (1..asked.count).rev().map(|count| {
        let mut changed = shape.clone();
        changed.devices[at].count = count;
        (format!("with {}{per} instead of {}", text::count(count, "GPU"), asked.count), changed)
    });
    fewer.collect()
}

fn less_memory(_: &Look<'_>, _: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let Some(Room { bytes, per }) = shape.memory else { return Vec::new() };
    let parts = [(3, 4), (1, 2), (1, 4)].map(|(part, of)| {
        // Whole GiB, or MiB where it is less.
        let unit = if bytes.0 / 4 >= Bytes::GIB { Bytes::GIB } else { Bytes::MIB };
        let less = Bytes(bytes.0 / of * part / unit * unit);
        let changed = Shape { memory: Some(Room { bytes: less, per }), ..shape.clone() };
        (format!("with {} of memory instead of {}", less.to_option(), bytes.to_option()), changed)
    });
    parts.into_iter().filter(|(_, changed)| changed.memory.is_some_and(|m| m.bytes.0 > 0)).collect()
}

fn fewer_cpus(_: &Look<'_>, _: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let asked = shape.cpus_per_task.unwrap_or(1);
    let mut fewer = asked / 2;
    let mut shapes = Vec::new();
    while fewer > 0 {
        let changed = Shape { cpus_per_task: Some(fewer), ..shape.clone() };
        shapes.push((
            format!("with {} per task instead of {asked}", text::count(fewer, "CPU")),
            changed,
        ));
        fewer /= 2;
    }
    shapes
}

fn fewer_nodes(look: &Look<'_>, queue: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let asked = shape.least_nodes();
    let fitting = look.fit_of(&queue.name, shape).map_or(0, |fit| fit.fitting.min(asked - 1));
    if fitting == 0 || !shape.has_fixed_nodes() {
        return Vec::new();
    }
    let mut changed = Shape { nodes: Some((fitting, None)), ..shape.clone() };
    // Each node keeps what it had.
    changed.tasks = shape.tasks.map(|_| shape.tasks_on_node().saturating_mul(fitting));
    vec![(format!("on {} instead of {asked}", text::count(fitting, "node")), changed)]
}

/// Without what narrows the choice of nodes.
fn looser(_: &Look<'_>, _: &Queue, shape: &Shape) -> Vec<(String, Shape)> {
    let mut shapes = Vec::new();
    let mut without =
        |what: String, changed: Shape| shapes.push((format!("without {what}"), changed));
    if let Some(list) = &shape.exclude {
        without(format!("--exclude={list}"), Shape { exclude: None, ..shape.clone() });
    }
    if let Some(list) = &shape.nodelist {
        without(format!("--nodelist={list}"), Shape { nodelist: None, ..shape.clone() });
    }
    if let Some(words) = &shape.constraint {
        without(format!("--constraint={words}"), Shape { constraint: None, ..shape.clone() });
    }
    shapes
}

/// `2 h`, `45 min`, `1 d 6 h`.
pub fn spoken(span: Span) -> String {
    let minutes = span.as_seconds().div_ceil(60);
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .take(2)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if parts.is_empty() { "0 min".to_owned() } else { parts.join(" ") }
}

/// The time from one moment to another, as one would say it.
pub fn spoken_until(duration: SignedDuration) -> String {
    spoken(Span::seconds(u64::try_from(duration.as_secs()).unwrap_or(0)))
}
