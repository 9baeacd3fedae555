//! `--mem`, `--mem-per-cpu` or `--mem-per-gpu`: the one that the workload uses.
//!
//! Measured is what all tasks and steps of a run used on one node, as [`Run::node_memory`] says. A
//! run that was killed for memory needed its limit or more. That is withdrawn when later runs of the
//! same limit, or a smaller one, completed: then the two kinds contradict each other, and the request
//! stays as it is. Tasks of one array, and what else was submitted in the same second, are no later
//! evidence for each other: they are one mixed lot, of which the largest decide.

use std::collections::{BTreeMap, HashMap};

use crate::model::request::{after_memory_limit, round_memory};
use crate::model::{Bytes, MemoryScope, Run, RunPart};
use crate::text;

use super::estimate::{Estimate, Measured};
use super::{Advice, Amount, Flag, LEAST_RUNS, Subject, TIGHT, Verdict, WORTH, evidence, float};

/// A shorter run was sampled twice at most.
const LEAST_SECONDS: u32 = 60;
/// A run that used this share of its limit and completed may have filled the rest with cached files.
const AT_THE_LIMIT: f64 = 0.95;

/// Runs measured above their own limit make the measurement doubtful where they are at least so many.
const DOUBTFUL: usize = 3;
/// And at least this share of all.
const DOUBTFUL_SHARE: f64 = 0.2;

/// Where a larger share of the runs that count died with no more than is asked for now, what is asked
/// for is not about right.
const DEAD_SHARE: f64 = 0.1;

pub(super) fn advise(subject: &Subject<'_>, cores: &Advice, nodes: Option<&Advice>) -> Advice {
    let last = subject.last;
    let unit = Unit::of(subject, cores, nodes);
    let flag = unit.flag;
    let per_node = last.memory_per_node();
    let now = per_node.map(|bytes| Amount::Memory(Bytes(bytes / unit.now_per_node)));
    if last.exclusive == Some(true) {
        let because = "its nodes are its own: what it does not use stays empty".to_owned();
        return Advice::unknown(flag, now, 0, because);
    }
    let seen = seen(subject);
    let all = seen.all();
    let mut because = String::new();
    if seen.is_doubtful() {
        let because = format!(
            "{} of {} were measured above their own limit, which no run can use: pages that \
             tasks share were counted more than once, so what it needs is not known",
            seen.above,
            text::count((all.len() + seen.above) as u64, "run"),
        );
        return Advice::unknown(flag, now, all.len(), because);
    }
    let notes = seen.notes();
    let estimate = all.estimate(subject.basis.risk).filter(|_| all.len() >= LEAST_RUNS);
    let Some(estimate) = estimate else {
        let runs = text::count(seen.measured.len() as u64, "run");
        let because = format!("memory was measured for {runs} of a minute or more{notes}");
        return Advice::unknown(flag, now, all.len(), because);
    };
    let wanted = match (estimate.quantile, seen.killed.iter().max()) {
        (None, Some(limit)) => {
            let next = after_memory_limit(Bytes(*limit)).0;
            // A larger limit that held is enough.
            let held = measured_limits(subject.ended).filter(|held| held > limit).min();
            next.min(held.unwrap_or(u64::MAX)).max(estimate.with_headroom())
        }
        _ => estimate.with_headroom(),
    };
    let amount = |bytes: u64| Amount::Memory(Bytes(bytes));
    because.push_str(&evidence(&estimate, subject.basis.risk, "used on a node", amount));
    because.push_str(&notes);
    if unit.share > 1 {
        because.push_str(&format!("; on fewer nodes {} of them share one", unit.share));
    }
    let of_unit = |bytes: u64| bytes.saturating_mul(unit.share).div_ceil(unit.then_per_node);
    let mut suggestion = round_memory(Bytes(of_unit(wanted)));
    let current = per_node.map(|bytes| bytes.saturating_mul(unit.grown) / unit.then_per_node);
    let needed = estimate.quantile.map(of_unit);
    let mut verdict = match current {
        None => Verdict::Set,
        Some(current) => {
            let tight = needed.is_none_or(|needed| float(current) < float(needed) * TIGHT);
            if tight && current < suggestion.0 {
                Verdict::Raise
            } else if float(suggestion.0) <= float(current) * WORTH {
                Verdict::Lower
            } else {
                Verdict::Keep
            }
        }
    };
    if !seen.withdrawn.is_empty() && matches!(verdict, Verdict::Raise | Verdict::Lower) {
        verdict = Verdict::Keep;
    }
    if verdict == Verdict::Keep && seen.is_deadly(per_node.unwrap_or(u64::MAX)) {
        because.push_str(
            ": with the same request some die and some complete, so what differs \
                          between them decides what the next needs",
        );
        return Advice::unknown(flag, now, all.len(), because);
    }
    let full = current.zip(needed).is_some_and(|(current, needed)| {
        float(needed) >= float(current) * AT_THE_LIMIT && needed <= current
    });
    // What filled the limit of one node says nothing of what several fill together.
    if verdict == Verdict::Raise && seen.killed.is_empty() && full && unit.share == 1 {
        verdict = Verdict::Keep;
        because.push_str(
            "; none died, and at a limit cached files fill what is left: the need may be less",
        );
    } else if verdict == Verdict::Keep
        && seen.withdrawn.is_empty()
        && let (Some(current), Some(needed)) = (current, needed)
    {
        because.push_str(&super::leaves(current, needed));
    }
    if let Some(most) = subject.limits.and_then(|limits| limits.memory_per_node(unit.nodes)) {
        let room = most.value.0 / unit.then_per_node / Bytes::MIB * Bytes::MIB;
        if suggestion.0 > room && verdict != Verdict::Keep {
            suggestion = Bytes(room);
            because.push_str(&format!("; {}", most.whose));
            if current.is_some() {
                verdict = Verdict::Capped;
            }
        }
    }
    let stays = verdict == Verdict::Keep
        || (verdict == Verdict::Capped && current.is_some_and(|now| now >= suggestion.0));
    let held = if stays { current.unwrap_or(suggestion.0) } else { suggestion.0 };
    let per_unit = |bytes: u64| Amount::Memory(Bytes(of_unit(bytes)));
    Advice {
        flag,
        verdict,
        now,
        suggestion: (!stays).then_some(Amount::Memory(suggestion)),
        runs: estimate.runs,
        most: Some(per_unit(estimate.most)),
        quantile: estimate.quantile.map(per_unit),
        headroom: (!stays && estimate.quantile.is_some()).then_some(estimate.headroom),
        misfits: Some(all.misfits(held.saturating_mul(unit.then_per_node) / unit.share)),
        because,
    }
}

/// What runs used on a node, where that is known well enough to put them on fewer nodes.
pub(super) fn on_a_node(subject: &Subject<'_>) -> Option<Estimate> {
    let seen = seen(subject);
    let trusted = seen.killed.is_empty() && !seen.is_doubtful();
    let estimate = seen.measured.estimate(subject.basis.risk)?;
    (trusted && seen.measured.complete.len() >= LEAST_RUNS).then_some(estimate)
}

/// What the runs say, in bytes per node.
struct Seen {
    measured: Measured,
    /// The limits at which runs died.
    killed: Vec<u64>,
    /// Those that later runs contradict.
    withdrawn: Vec<u64>,
    /// Runs that seem to have used more than they could.
    above: usize,
}

impl Seen {
    /// What was measured, and the deaths that stand.
    fn all(&self) -> Measured {
        let mut all = self.measured.clone();
        all.at_least.extend(&self.killed);
        all
    }

    fn is_doubtful(&self) -> bool {
        let of = self.measured.len() + self.killed.len() + self.above;
        let many = float(self.above as u64) >= float(of as u64) * DOUBTFUL_SHARE;
        self.above >= DOUBTFUL && many && self.killed.len() < LEAST_RUNS
    }

    /// Whether more than a small share of the runs died with no more than a limit, or with more.
    fn is_deadly(&self, limit: u64) -> bool {
        let dead = self.killed.iter().chain(&self.withdrawn).filter(|died| **died >= limit).count();
        let of = self.measured.len() + self.killed.len() + self.withdrawn.len();
        float(dead as u64) > float(of as u64) * DEAD_SHARE
    }

    fn notes(&self) -> String {
        let runs = |count: usize| text::count(count as u64, "run");
        let mut notes = String::new();
        if !self.killed.is_empty() {
            let (dead, limit) = (self.killed.len(), largest(&self.killed));
            notes.push_str(&format!("; {dead} died of memory, at {limit} at most"));
        }
        if !self.withdrawn.is_empty() {
            let dead = text::count(self.withdrawn.len() as u64, "earlier run");
            notes.push_str(&format!(
                "; mixed evidence: {dead} died of memory at {}, but later ones completed with no \
                 more",
                largest(&self.withdrawn)
            ));
        }
        if self.above > 0 {
            let above = runs(self.above);
            notes.push_str(&format!("; {above} left out, measured above the limit they had"));
        }
        notes
    }
}

fn seen(subject: &Subject<'_>) -> Seen {
    let mut seen =
        Seen { measured: Measured::default(), killed: Vec::new(), withdrawn: Vec::new(), above: 0 };
    // From the last run back, with the limits at which runs after the one at hand completed.
    let mut completed = Completed::default();
    for run in subject.ended.iter().rev() {
        let limit = run.memory_per_node();
        if run.out_of_memory {
            let Some(limit) = limit else { continue };
            let held = completed.apart_from(Lot::of(run), limit);
            if held >= LEAST_RUNS { &mut seen.withdrawn } else { &mut seen.killed }.push(limit);
            continue;
        }
        if run.is_completed() {
            completed.add(Lot::of(run), limit);
        }
        // What did nothing says nothing of what its work needs.
        let long =
            run.elapsed.get().is_some_and(|elapsed| elapsed >= LEAST_SECONDS) && !subject.hung(run);
        let Some(used) = run.node_memory.get().filter(|_| long) else { continue };
        if limit.is_some_and(|limit| used > limit) {
            seen.above += 1;
        } else if run.is_completed() {
            seen.measured.complete.push(used);
        } else {
            // It would have gone on: it needs at least as much.
            seen.measured.at_least.push(used);
        }
    }
    let floor = seen.measured.at_least.iter().max().copied();
    // What broke off for another reason is no sign of a larger need, but a floor.
    seen.measured.at_least.clear();
    if let Some(floor) = floor
        && seen.measured.complete.iter().all(|used| *used < floor)
        && !seen.measured.complete.is_empty()
    {
        seen.measured.complete.push(floor);
    }
    seen
}

/// What was submitted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Lot {
    /// The tasks of an array.
    Array(u32),
    /// Jobs of one second.
    At(u32),
}

impl Lot {
    fn of(run: &Run) -> Option<Self> {
        match run.part {
            RunPart::Task(_) => Some(Self::Array(run.number)),
            _ => run.submitted.get().map(Self::At),
        }
    }
}

/// How many runs completed at each limit: all of them, and those of each lot.
#[derive(Debug, Default)]
struct Completed {
    all: BTreeMap<u64, usize>,
    lots: HashMap<Lot, BTreeMap<u64, usize>>,
}

impl Completed {
    fn add(&mut self, lot: Option<Lot>, limit: Option<u64>) {
        let Some(limit) = limit else { return };
        *self.all.entry(limit).or_default() += 1;
        if let Some(lot) = lot {
            *self.lots.entry(lot).or_default().entry(limit).or_default() += 1;
        }
    }

    /// Those with no more than a limit that are of another lot.
    fn apart_from(&self, lot: Option<Lot>, limit: u64) -> usize {
        let up_to = |limits: &BTreeMap<u64, usize>| limits.range(..=limit).map(|(_, n)| n).sum();
        let own: usize = lot.and_then(|lot| self.lots.get(&lot)).map_or(0, up_to);
        let all: usize = up_to(&self.all);
        all.saturating_sub(own)
    }
}

fn measured_limits(ended: &[&Run]) -> impl Iterator<Item = u64> {
    ended.iter().filter(|run| run.is_completed()).filter_map(|run| run.memory_per_node())
}

fn largest(limits: &[u64]) -> Bytes {
    Bytes(limits.iter().max().copied().unwrap_or(0))
}

/// What the option counts memory per.
struct Unit {
    flag: Flag,
    /// How many there are on a node in the last run, and in the next by the other advice.
    now_per_node: u64,
    then_per_node: u64,
    /// How many times as many CPUs or GPUs a node of the next run has because it has fewer nodes.
    grown: u64,
    /// How many of the nodes that runs had are one of the next.
    share: u64,
    /// The nodes of the next run.
    nodes: u64,
}

impl Unit {
    fn of(subject: &Subject<'_>, cores: &Advice, fewer: Option<&Advice>) -> Self {
        let last = subject.last;
        let nodes = u64::from(last.nodes.get().unwrap_or(1).max(1));
        let given = subject.given(&["mem", "mem-per-cpu", "mem-per-gpu"]);
        let by_record =
            last.requested_memory.is_some_and(|memory| memory.scope == MemoryScope::Cpu);
        let per = |count: Option<u32>| count.map_or(1, |count| (u64::from(count) / nodes).max(1));
        let (flag, now_per_node) = match given.as_ref().map(|given| given.option.as_str()) {
            Some("mem-per-cpu") => (Flag::MemoryPerCpu, per(last.cpus.get())),
            Some("mem-per-gpu") => (Flag::MemoryPerGpu, per(last.gpus.get())),
            None if by_record => (Flag::MemoryPerCpu, per(last.cpus.get())),
            _ => (Flag::Memory, 1),
        };
        let then_nodes = match fewer.and_then(|advice| advice.suggestion) {
            Some(Amount::Count(then)) if then > 0 && then < nodes => then,
            _ => nodes,
        };
        let share = nodes.div_ceil(then_nodes);
        let grown = if flag == Flag::Memory { 1 } else { share };
        let then_per_node = match (flag, cores.now, cores.suggestion) {
            (Flag::MemoryPerCpu, Some(Amount::Count(now)), Some(Amount::Count(then))) => {
                (now_per_node * then / now.max(1)).max(1)
            }
            _ => now_per_node,
        };
        let then_per_node = then_per_node * grown;
        Self { flag, now_per_node, then_per_node, grown, share, nodes: then_nodes }
    }
}
