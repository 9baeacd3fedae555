//! What advice would have freed had it been followed, and what came of it where it was.

use std::collections::BTreeMap;

use crate::model::{BaseState, Bytes, History, Limits, Run, Span};

use super::sizing::{Advice, Amount, Basis, Flag, LEAST_RUNS, Verdict, sizing};

/// Time for which something was held and not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freed {
    /// Core-seconds.
    pub core_seconds: u64,
    /// GPU-seconds.
    pub gpu_seconds: u64,
    /// Node-seconds, of nodes that a run did not need at all.
    pub node_seconds: u64,
    /// Memory in MiB, times seconds.
    pub mib_seconds: u64,
}

impl Freed {
    /// Adds another amount.
    pub fn merge(&mut self, other: Self) {
        self.core_seconds = self.core_seconds.saturating_add(other.core_seconds);
        self.gpu_seconds = self.gpu_seconds.saturating_add(other.gpu_seconds);
        self.node_seconds = self.node_seconds.saturating_add(other.node_seconds);
        self.mib_seconds = self.mib_seconds.saturating_add(other.mib_seconds);
    }
}

/// What the ended runs of a workload would have left free with its advice, by account. Advice to
/// raise takes nothing away from it: it pays for runs that would have failed.
pub fn reclaimable(runs: &[&Run], history: &History, advice: &[Advice]) -> BTreeMap<String, Freed> {
    let lower = |flags: &[Flag]| {
        let found = advice.iter().find(|advice| flags.contains(&advice.flag));
        found.filter(|advice| advice.verdict == Verdict::Lower).and_then(|advice| advice.suggestion)
    };
    let cores = lower(&[Flag::CpusPerTask]);
    let gpus = lower(&[Flag::Gpus]);
    let fewer = lower(&[Flag::Nodes]);
    let memory = advice.iter().find(|advice| advice.verdict == Verdict::Lower && is_memory(advice));
    let mut freed: BTreeMap<String, Freed> = BTreeMap::new();
    if [cores, gpus, fewer].iter().all(Option::is_none) && memory.is_none() {
        return freed;
    }
    for run in runs.iter().filter(|run| run.is_ended()) {
        let Some(seconds) = run.elapsed.get().map(u64::from) else { continue };
        let nodes = u64::from(run.nodes.get().unwrap_or(1).max(1));
        let mut of_run = Freed::default();
        if let (Some(Amount::Count(enough)), Some(cpus), Some(per_task)) =
            (cores, run.cpus.get(), run.cpus_per_task())
        {
            let tasks = u64::from(cpus / per_task.max(1)).max(1);
            let free = u64::from(cpus).saturating_sub(enough * tasks);
            of_run.core_seconds = free.saturating_mul(seconds);
        }
        if let (Some(Amount::Count(enough)), Some(gpus)) = (gpus, run.gpus.get()) {
            of_run.gpu_seconds = u64::from(gpus).saturating_sub(enough).saturating_mul(seconds);
        }
        let enough = match fewer {
            Some(Amount::Count(enough)) => enough.min(nodes),
            _ => nodes,
        };
        of_run.node_seconds = (nodes - enough).saturating_mul(seconds);
        // Fewer nodes have more on each of them.
        let (then_nodes, share) = (enough, nodes.div_ceil(enough.max(1)));
        if let (Some(advice), Some(held)) = (memory, run.memory_per_node())
            && let Some(Amount::Memory(enough)) = advice.suggestion
        {
            let units = match advice.flag {
                Flag::MemoryPerCpu => run.cpus.get().map_or(1, |cpus| u64::from(cpus) / nodes),
                Flag::MemoryPerGpu => run.gpus.get().map_or(1, |gpus| u64::from(gpus) / nodes),
                _ => 1,
            };
            let grown = if advice.flag == Flag::Memory { 1 } else { share };
            let then = enough.0.saturating_mul(units.max(1) * grown).saturating_mul(then_nodes);
            let free = held.saturating_mul(nodes).saturating_sub(then);
            of_run.mib_seconds = (free / Bytes::MIB).saturating_mul(seconds);
        }
        freed.entry(history.text(run.account).to_owned()).or_default().merge(of_run);
    }
    freed.retain(|_, freed| *freed != Freed::default());
    freed
}

fn is_memory(advice: &Advice) -> bool {
    matches!(advice.flag, Flag::Memory | Flag::MemoryPerCpu | Flag::MemoryPerGpu)
}

/// What became of a request that was changed, beside what the runs before the change advised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The option.
    pub flag: Flag,
    /// What the history before the change advised.
    pub advised: Amount,
    /// What is asked for since.
    pub asked: Amount,
    /// Runs since.
    pub runs: usize,
    /// The most that one of them used, as far as was measured.
    pub used: Option<Amount>,
    /// Whether what was advised is what was asked for, give or take a tenth.
    pub followed: bool,
    /// Runs since that ended for want of it.
    pub fell_short: usize,
}

/// Looks for the last change of each request, and holds the runs since against the advice that the
/// runs before would have given. Nothing is told of a request that never changed, or where there was
/// no advice.
pub fn followed(
    runs: &[&Run],
    history: &History,
    limits: Option<&Limits>,
    basis: &Basis,
) -> Vec<Followed> {
    let ended: Vec<&Run> =
        runs.iter().copied().filter(|run| run.is_ended() && run.has_started()).collect();
    [Flag::Time, Flag::Memory, Flag::CpusPerTask, Flag::Gpus, Flag::Nodes]
        .into_iter()
        .filter_map(|flag| {
            let now = request(flag, ended.last()?)?;
            let since = ended.iter().rposition(|run| request(flag, run) != Some(now))? + 1;
            let (before, after) = ended.split_at(since);
            if before.len() < LEAST_RUNS {
                return None;
            }
            let advice = sizing(before, history, limits, basis);
            let advised = advice.iter().find(|advice| advice.flag == flag)?.suggestion?;
            let tenth = size(advised) / 10;
            Some(Followed {
                flag,
                advised,
                asked: now,
                runs: after.len(),
                used: after.iter().filter_map(|run| used(flag, run)).max_by_key(|used| size(*used)),
                followed: size(now).abs_diff(size(advised)) <= tenth,
                fell_short: after.iter().filter(|run| fell_short(flag, run)).count(),
            })
        })
        .collect()
}

/// What a run asked for; per CPU or GPU its record says too little of that.
fn request(flag: Flag, run: &Run) -> Option<Amount> {
    match flag {
        Flag::Time => run.limit.seconds().map(seconds),
        Flag::Memory => run.memory_per_node().map(|bytes| Amount::Memory(Bytes(bytes))),
        Flag::CpusPerTask => run.cpus_per_task().map(|cpus| Amount::Count(u64::from(cpus))),
        Flag::Gpus => run.gpus.get().map(|gpus| Amount::Count(u64::from(gpus))),
        Flag::Nodes => run.nodes.get().map(|nodes| Amount::Count(u64::from(nodes))),
        Flag::MemoryPerCpu | Flag::MemoryPerGpu | Flag::Array => None,
    }
}

fn used(flag: Flag, run: &Run) -> Option<Amount> {
    match flag {
        Flag::Time => run.elapsed.get().map(seconds),
        Flag::Memory => run.node_memory.get().map(|bytes| Amount::Memory(Bytes(bytes))),
        Flag::CpusPerTask => Some(busy(run.cpu_use()?, run.cpus_per_task()?)),
        Flag::Gpus => Some(busy(run.gpu_use()?, run.gpus.get()?)),
        _ => None,
    }
}

/// How many of so many were kept busy on average, in whole ones.
fn busy(share: f64, of: u32) -> Amount {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a few")]
    let busy = (share * f64::from(of) - 1e-9).ceil().max(0.0) as u64;
    Amount::Count(busy)
}

fn fell_short(flag: Flag, run: &Run) -> bool {
    match flag {
        Flag::Time => run.state == BaseState::Timeout,
        Flag::Memory => run.out_of_memory,
        _ => false,
    }
}

fn seconds(seconds: u32) -> Amount {
    Amount::Time(Span::seconds(u64::from(seconds)))
}

fn size(amount: Amount) -> u64 {
    match amount {
        Amount::Time(span) => span.as_seconds(),
        Amount::Memory(Bytes(number)) | Amount::Count(number) | Amount::AtATime(number) => number,
        Amount::Unlimited => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Allowance, Idle, Maybe, RunPart};

    const GIB: u64 = Bytes::GIB;
    const BASIS: Basis = Basis {
        risk: Basis::RISK,
        idle: Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 },
    };

    /// Runs of an hour with 8 cores, one busy, and 64 GiB, of which 2 used.
    fn runs(count: u32) -> Vec<Run> {
        let run = |number: u32| Run {
            started: Maybe::some(number * 10_000),
            ended: Maybe::some(number * 10_000 + 3600),
            elapsed: Maybe::some(3600),
            limit: Allowance::Seconds(2 * 3600),
            nodes: Maybe::some(1),
            cpus: Maybe::some(8),
            gpus: Maybe::some(0),
            tasks: Maybe::some(1),
            allocated_memory: Maybe::some(64 * GIB),
            node_memory: Maybe::some(2 * GIB),
            cpu_millis: Maybe::some(3_400_000),
            ..Run::bare(number, RunPart::Whole, BaseState::Completed)
        };
        (1..=count).map(run).collect()
    }

    #[test]
    fn what_was_asked_for_and_not_needed_is_counted_by_account() {
        let runs = runs(4);
        let runs: Vec<&Run> = runs.iter().collect();
        let history = History::default();
        let advice = sizing(&runs, &history, None, &BASIS);
        // 0.944 cores busy x 1.2 = 2; 2 GiB + 30 % = 3.
        let freed = reclaimable(&runs, &history, &advice)[""];
        assert_eq!(freed.core_seconds, 4 * 6 * 3600);
        assert_eq!(freed.mib_seconds, 4 * 61 * 1024 * 3600);
        assert_eq!(freed.gpu_seconds, 0);
        assert!(reclaimable(&runs, &history, &[]).is_empty());
    }

    #[test]
    fn nodes_that_were_not_needed_are_counted_with_the_memory_on_them() {
        let mut runs = runs(4);
        for run in &mut runs {
            run.nodes = Maybe::some(4);
            run.tasks = Maybe::some(4);
            run.cpu_millis = Maybe::some(8 * 3_400_000);
        }
        let runs: Vec<&Run> = runs.iter().collect();
        let limits = Limits {
            node_cpus: crate::model::Known::Value(64),
            node_memory: crate::model::Known::Value(Bytes(256 * GIB)),
            ..Limits::default()
        };
        let history = History::default();
        let advice = sizing(&runs, &history, Some(&limits), &BASIS);
        // Eight CPUs fit on one node: three of four nodes for an hour, four times. 16 GiB on each
        // are 64 in all; 2 GiB on each are 8 on one, + 30 % = 10.4, so 11: 53 of 64 free.
        let freed = reclaimable(&runs, &history, &advice)[""];
        assert_eq!(freed.node_seconds, 4 * 3 * 3600);
        assert_eq!(freed.mib_seconds, 4 * 53 * 1024 * 3600);
        assert_eq!((freed.core_seconds, freed.gpu_seconds), (0, 0));
    }

    #[test]
    fn runs_since_a_change_are_held_against_the_advice_before_it() {
        let mut runs = runs(7);
        for (run, gib) in runs[5..].iter_mut().zip([5, 4]) {
            run.allocated_memory = Maybe::some(3 * GIB);
            run.node_memory = Maybe::some(gib * GIB / 2);
        }
        let borrowed: Vec<&Run> = runs.iter().collect();
        let found = followed(&borrowed, &History::default(), None, &BASIS);
        let gib = |tenths: u64| Amount::Memory(Bytes(tenths * GIB / 10));
        let expected = Followed {
            flag: Flag::Memory,
            advised: gib(30),
            asked: gib(30),
            runs: 2,
            used: Some(gib(25)),
            followed: true,
            fell_short: 0,
        };
        // The cores and the time were never changed.
        assert_eq!(found, [expected]);
        // Two runs before a change are no history.
        let late = followed(&borrowed[3..], &History::default(), None, &BASIS);
        assert!(late.is_empty(), "{late:?}");
    }
}
