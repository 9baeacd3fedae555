//! The nodes of `scontrol show node`.
//!
//! What is free of a node's GPUs is told in three ways, of which a site may have any: `GresUsed`
//! (with `--details`), `AllocTRES` (where GPUs are accounted for), or neither. Where two disagree the
//! larger use counts; where there is none and the node is not idle, the use is not known.
//!
//! Facts: recorded outputs of Slurm 20.11 to 26.05; `man scontrol`, `man gres.conf`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::model::{
    Bytes, Cpus, Gres, GresKind, Known, Node, NodeMemory, NodeReason, NodeState, Notice, Tres,
};
use crate::text;

use super::controller::Clock;
use super::scontrol::{self, Grammar};
use super::values;

/// What operators write, and what can follow it.
const GRAMMAR: Grammar = Grammar {
    free: &["Reason", "Comment", "Extra", "OS"],
    after: &["Reason", "Comment", "Extra", "RealMemory", "InstanceId", "InstanceType"],
};

/// The nodes of an output, each once, and what is odd about them.
pub(super) fn nodes(output: &[u8], clock: &Clock) -> (Vec<Node>, Vec<Notice>) {
    let text = text::lossy(output);
    let records = scontrol::split(&text, "NodeName");
    let mut nodes: Vec<Node> = Vec::with_capacity(records.len());
    let mut seen = HashSet::with_capacity(records.len());
    let mut shared = Shared::default();
    for record in records {
        let cells = cells(record);
        if !cells.name.is_empty() && seen.insert(cells.name) {
            nodes.push(node(&cells, clock, &mut shared));
        }
    }
    let mut strange: Vec<&str> =
        shared.states.values().flat_map(|state| &state.unknown).map(String::as_str).collect();
    strange.sort_unstable();
    strange.dedup();
    let mut notices = Vec::new();
    if !strange.is_empty() {
        notices.push(Notice::warning(
            "unknown-state-word",
            format!(
                "Slurm has nodes in a state that this jobwise does not know, {}: they are not counted as free",
                text::join(&strange, "and"),
            ),
        ));
    }
    (nodes, notices)
}

/// The cells of a record that are needed, as printed.
#[derive(Default)]
struct Cells<'t> {
    name: &'t str,
    state: &'t str,
    cpus: [&'t str; 3],
    load: &'t str,
    special_cpus: &'t str,
    memory: [&'t str; 4],
    gres: &'t str,
    gres_used: &'t str,
    configured: Option<&'t str>,
    allocated: &'t str,
    features: [&'t str; 2],
    weight: &'t str,
    partitions: &'t str,
    booted: &'t str,
    reason: &'t str,
    reservation: &'t str,
}

/// What many nodes have in common, by how it is printed.
#[derive(Default)]
struct Shared<'t> {
    states: HashMap<&'t str, Arc<NodeState>>,
    lists: HashMap<&'t str, Arc<[String]>>,
}

impl<'t> Shared<'t> {
    fn state(&mut self, text: &'t str) -> Arc<NodeState> {
        let state = self.states.entry(text).or_insert_with(|| NodeState::parse(text).into());
        Arc::clone(state)
    }

    fn names(&mut self, text: &'t str) -> Arc<[String]> {
        let names = self.lists.entry(text).or_insert_with(|| values::names(text).into());
        Arc::clone(names)
    }
}

fn cells(record: &str) -> Cells<'_> {
    let mut cells = Cells::default();
    scontrol::pairs(record, GRAMMAR, |key, value| {
        let cell = match key {
            "NodeName" => &mut cells.name,
            "State" => &mut cells.state,
            "CPUTot" => &mut cells.cpus[0],
            "CPUEfctv" => &mut cells.cpus[1],
            "CPUAlloc" => &mut cells.cpus[2],
            "CPULoad" => &mut cells.load,
            "CPUSpecList" => &mut cells.special_cpus,
            "RealMemory" => &mut cells.memory[0],
            "AllocMem" => &mut cells.memory[1],
            "FreeMem" => &mut cells.memory[2],
            "MemSpecLimit" => &mut cells.memory[3],
            "Gres" | "GRES" => &mut cells.gres,
            "GresUsed" => &mut cells.gres_used,
            "CfgTRES" => {
                cells.configured.get_or_insert(value);
                return;
            }
            "AllocTRES" => &mut cells.allocated,
            "ActiveFeatures" => &mut cells.features[0],
            "AvailableFeatures" => &mut cells.features[1],
            "Weight" => &mut cells.weight,
            "Partitions" => &mut cells.partitions,
            "BootTime" => &mut cells.booted,
            "Reason" => &mut cells.reason,
            "ReservationName" => &mut cells.reservation,
            _ => return,
        };
        if cell.is_empty() {
            *cell = value;
        }
    });
    cells
}

fn node<'t>(cells: &Cells<'t>, clock: &Clock, shared: &mut Shared<'t>) -> Node {
    let cpus = cpus(cells);
    let (gres, gpus_allocated) = gres(cells, cpus.allocated == Known::Value(0));
    let [active, available] = cells.features;
    let mut features = shared.names(active);
    if features.is_empty() {
        features = shared.names(available);
    }
    Node {
        name: cells.name.to_owned(),
        state: shared.state(cells.state),
        cpus,
        load: hundredths(cells.load),
        memory: NodeMemory {
            total: values::mebibytes(cells.memory[0]),
            allocated: values::mebibytes(cells.memory[1]),
            free: values::mebibytes(cells.memory[2]),
            set_apart: values::mebibytes(cells.memory[3]),
        },
        gres,
        gpus_allocated,
        features,
        weight: values::count(cells.weight),
        partitions: shared.names(cells.partitions),
        booted: values::moment(cells.booted, &clock.0),
        reason: values::text(cells.reason).map(|text| Box::new(reason(&text, clock))),
        reservation: values::word(cells.reservation),
    }
}

fn cpus(cells: &Cells<'_>) -> Cpus {
    let [total, effective, allocated] = cells.cpus.map(values::count);
    // Releases before 22.05 name only the CPUs that are set apart.
    let apart = match cells.special_cpus {
        "" => 0,
        list => text::expand(&format!("[{list}]"), 4096).map_or(0, |list| list.len() as u64),
    };
    let left = total.get().map(|total| total.saturating_sub(apart));
    Cpus { effective: effective.or(left.into()), total, allocated }
}

/// `12.03`, in hundredths.
fn hundredths(text: &str) -> Known<u64> {
    let number = |text: &str| {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let mut digits = part.chars().chain("00".chars()).take(2);
        let part = digits.try_fold(0, |sum, digit| Some(sum * 10 + u64::from(digit.to_digit(10)?)));
        let whole: u64 = whole.parse().ok()?;
        whole.checked_mul(100)?.checked_add(part?)
    };
    match values::trim(text) {
        text if values::is_null(text) => Known::NotGathered,
        text => number(text).map_or_else(|| Known::unreadable(text), Known::Value),
    }
}

/// One entry of a list of generic resources.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'t> {
    pub(super) name: &'t str,
    pub(super) model: Option<&'t str>,
    pub(super) count: u64,
    /// Whether jobs may have it without using it up.
    is_shared: bool,
}

/// The entries of `gpu:a100:4(S:0-1),nsight:no_consume:1` or of `gpu:a100:2(IDX:0,3)`: what stands
/// in brackets says which, not how many.
pub(super) fn entries(list: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    let mut ends: Vec<usize> = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => ends.push(at),
            _ => {}
        }
    }
    ends.push(list.len());
    for end in ends {
        found.extend(entry(list[start..end].trim()));
        start = end + 1;
    }
    found
}

fn entry(text: &str) -> Option<Entry<'_>> {
    // An untyped GPU in use is `gpu:(null):4(IDX:0-3)`: only a bracket behind a number is cut off.
    let bytes = text.as_bytes();
    let cut = (1..bytes.len()).find(|at| bytes[*at] == b'(' && bytes[at - 1] != b':');
    let mut parts: Vec<&str> = text[..cut.unwrap_or(text.len())].split(':').collect();
    let name = parts.first().copied().filter(|name| !values::is_null(name.trim()))?;
    let last = parts.last().copied().filter(|_| parts.len() > 1);
    let count = last.and_then(amount);
    if count.is_some() {
        parts.pop();
    }
    let is_shared = parts.contains(&"no_consume");
    let mut models = parts.into_iter().skip(1).filter(|part| *part != "no_consume");
    let model = models.next().filter(|model| !values::is_null(model.trim()));
    Some(Entry { name, model, count: count.unwrap_or(1), is_shared })
}

/// A count, perhaps with a suffix: `4`, `16G`.
fn amount(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| Bytes::parse(text, 1).ok().map(|bytes| bytes.0))
}

/// The generic resources with their use, and the GPUs in use whatever their type.
fn gres(cells: &Cells<'_>, is_idle: bool) -> (Vec<Gres>, Known<u64>) {
    let mut all: Vec<Gres> = Vec::new();
    if values::is_null(cells.gres) {
        return (all, Known::Value(0));
    }
    let same = |gres: &Gres, entry: &Entry<'_>| {
        gres.name == entry.name && gres.model.as_deref() == entry.model
    };
    let mut shared = Vec::new();
    for entry in entries(cells.gres) {
        if let Some(known) = all.iter_mut().find(|gres| same(gres, &entry)) {
            known.total = known.total.saturating_add(entry.count);
            continue;
        }
        if entry.is_shared {
            shared.push(all.len());
        }
        all.push(Gres {
            kind: GresKind::of(entry.name, entry.model),
            name: entry.name.to_owned(),
            model: entry.model.map(str::to_owned),
            total: entry.count,
            used: Known::NotGathered,
        });
    }
    if all.is_empty() {
        return (all, Known::Value(0));
    }
    let has_details = !values::is_null(cells.gres_used.trim());
    let used = entries(cells.gres_used);
    let allocated = Tres::parse(cells.allocated);
    let configured = cells.configured.map(Tres::parse);
    let several = |gres: &Gres| all.iter().filter(|other| other.name == gres.name).count() > 1;
    let found: Vec<Known<u64>> = all
        .iter()
        .map(|gres| {
            let listed = used.iter().filter(|entry| same(gres, entry)).map(|entry| entry.count);
            let listed = has_details.then(|| listed.sum::<u64>());
            let generic = format!("gres/{}", gres.name);
            let typed = gres.model.as_ref().map(|model| format!("{generic}:{model}"));
            let in_typed = typed.as_ref().and_then(|name| allocated.count(name));
            let in_generic = allocated.count(&generic).filter(|_| !several(gres));
            // Nothing allocated is zero where the resource is accounted for.
            let tracked =
                |name: &str| configured.as_ref().is_some_and(|tres| tres.get(name).is_some());
            let is_tracked = typed.as_deref().is_some_and(tracked)
                || (tracked(&generic) && (!several(gres) || allocated.get(&generic).is_none()));
            let accounted = in_typed.or(in_generic).or(is_tracked.then_some(0));
            let used = listed.max(accounted).or(is_idle.then_some(0));
            used.map(|used| used.min(gres.total)).into()
        })
        .collect();
    for (index, used) in found.into_iter().enumerate() {
        all[index].used = if shared.contains(&index) { Known::Value(0) } else { used };
    }
    let gpus = gpus_allocated(&all, &allocated, configured.as_ref());
    (all, gpus)
}

/// GPUs in use: by type where every type is known, else as accounting sums them up.
fn gpus_allocated(all: &[Gres], allocated: &Tres, configured: Option<&Tres>) -> Known<u64> {
    let gpus: Vec<&Gres> = all.iter().filter(|gres| gres.kind == GresKind::Gpu).collect();
    let by_type: Option<u64> = gpus.iter().map(|gres| gres.used.get()).sum();
    let has_slices = all.iter().any(|gres| gres.kind == GresKind::MigSlice);
    let is_tracked = configured.is_some_and(|tres| tres.gpus().is_some());
    let summed = allocated.gpus().or(is_tracked.then_some(0)).filter(|_| !has_slices);
    let total: u64 = gpus.iter().map(|gres| gres.total).sum();
    by_type.max(summed).map(|used| used.min(total)).into()
}

/// `ECC errors [root@1796034858]`: the words, who, when. Of a day, its beginning.
fn reason(text: &str, clock: &Clock) -> NodeReason {
    let stamp = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let stamp = stamp.and_then(|(words, stamp)| Some((words, stamp.rsplit_once('@')?)));
    match stamp {
        Some((words, (by, at))) if !by.contains(char::is_whitespace) => NodeReason {
            text: words.trim().to_owned(),
            by: values::text(by),
            at: match values::moment(at, &clock.0) {
                Known::Unreadable(at) => values::moment(&format!("{at}T00:00:00"), &clock.0),
                known => known,
            },
        },
        _ => NodeReason { text: text.to_owned(), by: None, at: Known::NotGathered },
    }
}

#[cfg(test)]
mod tests;
