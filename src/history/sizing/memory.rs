//! `--mem`, `--mem-per-cpu` or `--mem-per-gpu`: the one that the workload uses.
//!
//! Measured is what all tasks and steps of a run used on one node, as [`Run::node_memory`] says. A
//! run that was killed for memory needed its limit or more. That is withdrawn when later runs of the
//! same limit, or a smaller one, completed: then the two kinds contradict each other, and the request
//! stays as it is.

use crate::model::request::{after_memory_limit, round_memory};
use crate::model::{Bytes, Limits, MemoryScope, Run};
use crate::text;

use super::estimate::Measured;
use super::time::some;
use super::{Advice, Amount, Flag, LEAST_RUNS, Subject, TIGHT, Verdict, WORTH, evidence, float};

/// A shorter run was sampled twice at most.
const LEAST_SECONDS: u32 = 60;
/// A run that used this share of its limit and completed may have filled the rest with cached files.
const AT_THE_LIMIT: f64 = 0.95;

pub(super) fn advise(subject: &Subject<'_>, cores: &Advice) -> Advice {
    let last = subject.last;
    let unit = Unit::of(subject, cores);
    let flag = unit.flag;
    let per_node = last.memory_per_node();
    let now = per_node.map(|bytes| Amount::Memory(Bytes(bytes / unit.now_per_node)));
    if last.exclusive == Some(true) {
        let because = "its nodes are its own: what it does not use stays empty".to_owned();
        return Advice::unknown(flag, now, 0, because);
    }
    let Seen { measured, killed, withdrawn, above } = seen(subject.ended);
    let mut notes = String::new();
    if !killed.is_empty() {
        let dead = some(killed.len(), measured.len() + killed.len());
        notes.push_str(&format!("; {dead} died of memory, at {} at most", largest(&killed)));
    }
    if !withdrawn.is_empty() {
        notes.push_str(&format!(
            "; mixed evidence: {} died of memory at {}, but later ones completed with no more",
            text::count(withdrawn.len() as u64, "earlier run"),
            largest(&withdrawn)
        ));
    }
    if above > 0 {
        let runs = text::count(above as u64, "run");
        notes.push_str(&format!("; {runs} left out that seem to have used more than their limit"));
    }
    let mut all = measured.clone();
    all.at_least.extend(&killed);
    let estimate = all.estimate(subject.basis.risk).filter(|_| all.len() >= LEAST_RUNS);
    let Some(estimate) = estimate else {
        let runs = text::count(all.len() as u64, "run");
        let because = format!("memory was measured of {runs} of a minute or more{notes}");
        return Advice::unknown(flag, now, all.len(), because);
    };
    let wanted = match (estimate.quantile, killed.iter().max()) {
        (None, Some(limit)) => {
            let next = after_memory_limit(Bytes(*limit)).0;
            // A larger limit that held is enough.
            let held = measured_limits(subject.ended).filter(|held| held > limit).min();
            next.min(held.unwrap_or(u64::MAX)).max(estimate.with_headroom())
        }
        _ => estimate.with_headroom(),
    };
    let amount = |bytes: u64| Amount::Memory(Bytes(bytes));
    let mut because = evidence(&estimate, subject.basis.risk, "used on a node", amount) + &notes;
    let mut wanted = wanted.div_ceil(unit.then_per_node);
    let mut suggestion = round_memory(Bytes(wanted));
    let current = per_node.map(|bytes| bytes / unit.then_per_node);
    let needed = estimate.quantile.map(|needed| needed.div_ceil(unit.then_per_node));
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
    if !withdrawn.is_empty() && matches!(verdict, Verdict::Raise | Verdict::Lower) {
        verdict = Verdict::Keep;
    }
    let full = current.zip(needed).is_some_and(|(current, needed)| {
        float(needed) >= float(current) * AT_THE_LIMIT && needed <= current
    });
    if verdict == Verdict::Raise && killed.is_empty() && full {
        verdict = Verdict::Keep;
        because.push_str(
            "; none died, and at a limit cached files fill what is left: the need may be less",
        );
    }
    let cap = subject.limits.and_then(most_per_node);
    if let Some((most, whose)) = cap {
        let most = most / unit.then_per_node / Bytes::MIB * Bytes::MIB;
        if suggestion.0 > most && verdict != Verdict::Keep {
            (wanted, suggestion, verdict) = (most, Bytes(most), Verdict::Capped);
            because.push_str(&format!("; {whose}"));
        }
    }
    let stays =
        verdict == Verdict::Keep || current.is_some_and(|now| now == wanted.max(suggestion.0));
    let held = if stays { current.unwrap_or(suggestion.0) } else { suggestion.0 };
    let per_unit = |bytes: u64| Amount::Memory(Bytes(bytes.div_ceil(unit.then_per_node)));
    Advice {
        flag,
        verdict,
        now,
        suggestion: (!stays).then_some(Amount::Memory(suggestion)),
        runs: estimate.runs,
        most: Some(per_unit(estimate.most)),
        quantile: estimate.quantile.map(per_unit),
        headroom: (!stays && estimate.quantile.is_some()).then_some(estimate.headroom),
        misfits: Some(all.misfits(held.saturating_mul(unit.then_per_node))),
        because,
    }
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

fn seen(ended: &[&Run]) -> Seen {
    let mut seen =
        Seen { measured: Measured::default(), killed: Vec::new(), withdrawn: Vec::new(), above: 0 };
    // From the last run back, with the limits at which runs after the one at hand completed.
    let mut completed: Vec<u64> = Vec::new();
    for run in ended.iter().rev() {
        let limit = run.memory_per_node();
        if run.out_of_memory {
            let Some(limit) = limit else { continue };
            let held = completed.iter().filter(|later| **later <= limit).count();
            if held >= LEAST_RUNS { &mut seen.withdrawn } else { &mut seen.killed }.push(limit);
            continue;
        }
        if run.is_completed() {
            completed.extend(limit);
        }
        let long = run.elapsed.get().is_some_and(|elapsed| elapsed >= LEAST_SECONDS);
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

fn measured_limits(ended: &[&Run]) -> impl Iterator<Item = u64> {
    ended.iter().filter(|run| run.is_completed()).filter_map(|run| run.memory_per_node())
}

fn largest(limits: &[u64]) -> Bytes {
    Bytes(limits.iter().max().copied().unwrap_or(0))
}

/// What the option counts memory per.
struct Unit {
    flag: Flag,
    /// How many there are on a node in the last run, and in the next by the advice on cores.
    now_per_node: u64,
    then_per_node: u64,
}

impl Unit {
    fn of(subject: &Subject<'_>, cores: &Advice) -> Self {
        let last = subject.last;
        let nodes = u64::from(last.nodes.get().unwrap_or(1).max(1));
        let given = subject.given(&["mem", "mem-per-cpu", "mem-per-gpu"]);
        let by_record =
            last.requested_memory.is_some_and(|memory| memory.scope == MemoryScope::Cpu);
        let per = |count: Option<u32>| count.map_or(1, |count| (u64::from(count) / nodes).max(1));
        let (flag, now_per_node) = match given.as_deref() {
            Some("mem-per-cpu") => (Flag::MemoryPerCpu, per(last.cpus.get())),
            Some("mem-per-gpu") => (Flag::MemoryPerGpu, per(last.gpus.get())),
            None if by_record => (Flag::MemoryPerCpu, per(last.cpus.get())),
            _ => (Flag::Memory, 1),
        };
        let then_per_node = match (flag, cores.now, cores.suggestion) {
            (Flag::MemoryPerCpu, Some(Amount::Count(now)), Some(Amount::Count(then))) => {
                (now_per_node * then / now.max(1)).max(1)
            }
            _ => now_per_node,
        };
        Self { flag, now_per_node, then_per_node }
    }
}

/// The most bytes that may be asked for on a node, and in words whose limit that is.
fn most_per_node(limits: &Limits) -> Option<(u64, String)> {
    let partition = &limits.partition;
    let by_cpus = limits.max_memory_per_cpu.get().zip(limits.node_cpus.get());
    let by_cpus = by_cpus.map(|(per_cpu, cpus)| Bytes(per_cpu.0.saturating_mul(cpus)));
    let allowed = [limits.max_memory_per_node.get(), by_cpus].into_iter().flatten().min();
    let allowed =
        allowed.map(|most| (most.0, format!("partition {partition} allows {most} at most")));
    let there = limits.node_memory.get();
    let there = there.map(|most| (most.0, format!("nodes of partition {partition} have {most}")));
    allowed.into_iter().chain(there).min_by_key(|(most, _)| *most)
}
