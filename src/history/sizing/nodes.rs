//! `--nodes`, of work that had several.
//!
//! Fewer are advised where all its CPUs, and what it used of memory, fit on fewer nodes of the
//! partition, unless runs on fewer took longer. More are advised only where runs that had more, and
//! kept all their CPUs busy, were as much faster. How many GPUs a node has is not known here, so of
//! work that holds GPUs nothing is said.

use crate::math::median;
use crate::model::Run;
use crate::text;

use super::cores::{Measured, scaling};
use super::{Advice, Amount, Flag, LEAST_RUNS, Subject, Verdict, float, memory};

/// Runs on fewer nodes may take this much longer.
const AS_FAST: f64 = 1.1;
/// A shorter run is mostly start and end.
const LEAST_SECONDS: u32 = 120;

/// The advice on nodes; `None` for work on one.
pub(super) fn advise(subject: &Subject<'_>) -> Option<Advice> {
    let asked = subject.last.nodes.get().map(u64::from).filter(|nodes| *nodes > 1)?;
    let now = Some(Amount::Count(asked));
    let unknown = |runs, because: String| Some(Advice::unknown(Flag::Nodes, now, runs, because));
    if subject.last.gpus.get() > Some(0) {
        return unknown(0, "how many GPUs a node has is not known".to_owned());
    }
    let runs: Vec<&Run> = subject
        .ended
        .iter()
        .copied()
        .filter(|run| run.is_completed() && !subject.hung(run))
        .filter(|run| run.elapsed.get().is_some_and(|elapsed| elapsed >= LEAST_SECONDS))
        .collect();
    let alike: Vec<&&Run> = runs.iter().filter(|run| run.nodes == subject.last.nodes).collect();
    if alike.len() < LEAST_RUNS {
        let told = text::count(alike.len() as u64, "completed run");
        return unknown(alike.len(), format!("{told} of two minutes or more on {asked} nodes"));
    }
    let told = text::count(alike.len() as u64, "completed run");
    let keep = |because: String| Advice {
        verdict: Verdict::Keep,
        ..Advice::unknown(Flag::Nodes, now, alike.len(), because)
    };
    let measured: Vec<Measured> = runs.iter().filter_map(|run| measure(run)).collect();
    if let Some((more, share)) = scaling(&measured, asked) {
        let mut advice = keep(format!(
            "{told} that kept all CPUs busy; runs on {more} nodes took {share:.0} % of the time"
        ));
        let most = subject.limits.and_then(crate::model::Limits::nodes);
        advice.verdict = Verdict::Raise;
        advice.suggestion = Some(Amount::Count(more));
        if let Some(most) = most.filter(|most| more > most.value) {
            advice.verdict = Verdict::Capped;
            advice.suggestion = (most.value > asked).then_some(Amount::Count(most.value));
            advice.because.push_str(&format!("; {}", most.whose));
        }
        return Some(advice);
    }
    if subject.last.exclusive == Some(true) {
        return Some(keep(format!("{told}, whole nodes; that more would be faster no run shows")));
    }
    let room = subject.limits.map(|limits| (limits.cpus_per_node(1), limits.memory_per_node(1)));
    let Some((Some(cpus), Some(memory))) = room else {
        return unknown(alike.len(), "the size of the partition's nodes is not known".to_owned());
    };
    let (Some(all), Some(used)) = (subject.last.cpus.get(), memory::on_a_node(subject)) else {
        let because = format!("memory was measured for too few runs on {asked} nodes");
        return unknown(alike.len(), because);
    };
    // All the nodes have used that much at most.
    let in_all = used.with_headroom().saturating_mul(asked);
    let fits =
        u64::from(all).div_ceil(cpus.value.max(1)).max(in_all.div_ceil(memory.value.0.max(1)));
    let footprint = format!(
        "{told}: {all} CPUs, and at most {} of memory in all",
        crate::model::Bytes(used.most.saturating_mul(asked))
    );
    if fits >= asked {
        let because = format!("{footprint}, do not fit on fewer; {}", cpus.whose);
        return Some(keep(because));
    }
    if let Some(slower) = slower(&runs, asked, fits) {
        return Some(keep(format!(
            "{footprint}; runs on fewer nodes took {slower:.0} % of the time"
        )));
    }
    let nodes = if fits == 1 { "one node".to_owned() } else { format!("{fits} nodes") };
    let mut because = format!("{footprint}, fit on {nodes}: {}", cpus.whose);
    if subject.given(&["ntasks-per-node"]).is_some()
        && let Some(tasks) = subject.last.tasks.get()
    {
        because.push_str(&format!("; give --ntasks={tasks} in place of --ntasks-per-node"));
    }
    Some(Advice { verdict: Verdict::Lower, suggestion: Some(Amount::Count(fits)), ..keep(because) })
}

/// CPUs busy on all nodes together, as if each node were a core.
fn measure(run: &Run) -> Option<Measured> {
    let nodes = u64::from(run.nodes.get()?);
    Some(Measured {
        cores: nodes,
        busy: run.cpu_use()? * float(nodes),
        seconds: f64::from(run.elapsed.get()?),
    })
}

/// The per cent of the time that runs on fewer nodes took, where that is markedly more.
fn slower(runs: &[&Run], asked: u64, fits: u64) -> Option<f64> {
    let typical = |on: &dyn Fn(u64) -> bool| {
        let of = runs.iter().filter(|run| run.nodes.get().is_some_and(|nodes| on(nodes.into())));
        let mut seconds: Vec<f64> = of.filter_map(|run| run.elapsed.get()).map(f64::from).collect();
        seconds.sort_by(f64::total_cmp);
        median(&seconds).filter(|_| seconds.len() >= LEAST_RUNS)
    };
    let share =
        typical(&|nodes| (fits..asked).contains(&nodes))? / typical(&|nodes| nodes == asked)?;
    (share > AS_FAST).then_some(share * 100.0)
}
