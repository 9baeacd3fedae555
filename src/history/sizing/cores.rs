//! `--cpus-per-task`.

use crate::math::{median, quantile};
use crate::model::Run;
use crate::text;

use super::{Advice, Amount, Flag, LEAST_RUNS, Misfits, Subject, Verdict, float, whole};

/// A shorter run is mostly start and end.
const LEAST_SECONDS: u32 = 120;
/// Cores that are this busy leave nothing to take away.
const SATURATED: f64 = 0.85;
/// Cores are added above those that were busy on average, as phases differ.
const HEADROOM: f64 = 1.2;
/// More cores are worth it where they made runs faster by at least this share of their number.
const SCALES: f64 = 0.8;

pub(super) fn advise(subject: &Subject<'_>) -> Advice {
    let flag = Flag::CpusPerTask;
    let asked = subject.last.cpus_per_task().map(u64::from);
    let now = asked.map(Amount::Count);
    if subject.last.exclusive == Some(true) {
        let because = "its nodes are its own: what it does not use stays idle".to_owned();
        return Advice::unknown(flag, now, 0, because);
    }
    let runs: Vec<Measured> =
        subject.ended.iter().filter_map(|run| measure(subject, run)).collect();
    let told = text::count(runs.len() as u64, "completed run");
    let (Some(asked), true) = (asked, runs.len() >= LEAST_RUNS) else {
        let because = format!("CPU time was measured for {told} of two minutes or more");
        return Advice::unknown(flag, now, runs.len(), because);
    };
    let mut busy: Vec<f64> = runs.iter().map(|run| run.busy).collect();
    busy.sort_by(f64::total_cmp);
    let most = busy.last().copied().unwrap_or_default();
    let needed = quantile(&busy, 1.0 - subject.basis.risk).unwrap_or(most);
    let wanted = whole(needed * HEADROOM - 1e-9).max(1);
    // Of runs that had another number of cores the share of what they had tells.
    let had = runs.iter().max_by(|a, b| a.busy.total_cmp(&b.busy)).map_or(asked, |run| run.cores);
    let mut because =
        format!("{told}, the most that a task kept busy on average was {most:.2} of {had}");
    if had != asked {
        because.push_str(&format!(", before it had {asked}"));
    }
    let mut advice = Advice {
        flag,
        verdict: Verdict::Keep,
        now,
        suggestion: None,
        runs: runs.len(),
        most: Some(Amount::Count(whole(most))),
        quantile: Some(Amount::Count(whole(needed))),
        headroom: None,
        misfits: None,
        because: String::new(),
    };
    if needed >= float(asked) * SATURATED {
        if let Some((more, speed)) = scaling(&runs, asked) {
            advice.verdict = Verdict::Raise;
            advice.suggestion = Some(Amount::Count(more));
            because = format!("{because}; runs with {more} took {speed:.0} % of the time");
        } else {
            because.push_str("; that more would be faster no run shows");
        }
    } else if float(wanted) <= float(asked) * 0.75 {
        advice.verdict = Verdict::Lower;
        advice.suggestion = Some(Amount::Count(wanted));
        advice.headroom = Some(20);
        let over = busy.iter().filter(|busy| **busy > float(wanted)).count();
        advice.misfits = Some(Misfits { runs: over, unknown: 0, of: busy.len() });
    }
    if let (Some(Amount::Count(more)), Some((room, whose))) = (advice.suggestion, room(subject))
        && more > room
    {
        advice.verdict = Verdict::Capped;
        advice.suggestion = (room > asked).then_some(Amount::Count(room));
        because = format!("{because}; {whose}");
    }
    advice.because = because;
    advice
}

/// The most CPUs that a task can have, and whose limit that is: the tasks of a node share it.
fn room(subject: &Subject<'_>) -> Option<(u64, String)> {
    let nodes = u64::from(subject.last.nodes.get().unwrap_or(1).max(1));
    let tasks = u64::from(subject.last.tasks.get().unwrap_or(1).max(1));
    let most = subject.limits?.cpus_per_node(nodes)?;
    Some((most.value / tasks.div_ceil(nodes), most.whose))
}

/// What a run did with its cores.
pub(super) struct Measured {
    /// Cores of a task.
    pub(super) cores: u64,
    /// Of those, busy on average.
    pub(super) busy: f64,
    /// How long it took.
    pub(super) seconds: f64,
}

fn measure(subject: &Subject<'_>, run: &Run) -> Option<Measured> {
    let elapsed = run.elapsed.get().filter(|elapsed| *elapsed >= LEAST_SECONDS)?;
    if !run.is_completed() || subject.hung(run) {
        return None;
    }
    let cores = run.cpus_per_task()?;
    Some(Measured {
        cores: u64::from(cores),
        busy: run.cpu_use()? * f64::from(cores),
        seconds: f64::from(elapsed),
    })
}

/// A larger number of cores that runs had, kept busy, and were faster by; with the per cent of the
/// time that they took.
pub(super) fn scaling(runs: &[Measured], asked: u64) -> Option<(u64, f64)> {
    let typical = |cores: u64| {
        let group = || runs.iter().filter(move |run| run.cores == cores);
        let mut seconds: Vec<f64> = group().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let saturated = group().all(|run| run.busy >= float(cores) * SATURATED);
        median(&seconds).filter(|_| seconds.len() >= LEAST_RUNS && saturated)
    };
    let here = typical(asked)?;
    let mut more: Vec<u64> =
        runs.iter().map(|run| run.cores).filter(|cores| *cores > asked).collect();
    more.sort_unstable();
    more.dedup();
    more.into_iter().rev().find_map(|cores| {
        let there = typical(cores)?;
        let ideal = here * float(asked) / float(cores);
        (ideal >= there * SCALES).then(|| (cores, there / here * 100.0))
    })
}
