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
        let because = format!("CPU time was measured of {told} of two minutes or more");
        return Advice::unknown(flag, now, runs.len(), because);
    };
    let mut busy: Vec<f64> = runs.iter().map(|run| run.busy).collect();
    busy.sort_by(f64::total_cmp);
    let most = busy.last().copied().unwrap_or_default();
    let needed = quantile(&busy, 1.0 - subject.basis.risk).unwrap_or(most);
    let wanted = whole(needed * HEADROOM - 1e-9).max(1);
    let mut because =
        format!("{told}, the most that a task kept busy on average was {most:.2} of {asked}");
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
    let most_there = subject.limits.and_then(|limits| limits.node_cpus.get());
    if let (Some(Amount::Count(more)), Some(most_there)) = (advice.suggestion, most_there)
        && more > most_there
    {
        advice.verdict = Verdict::Capped;
        advice.suggestion = (most_there > asked).then_some(Amount::Count(most_there));
        because =
            format!("{because}; nodes of partition {} have {most_there}", subject.partition());
    }
    advice.because = because;
    advice
}

struct Measured {
    /// Cores of a task.
    cores: u64,
    /// Of those, busy on average.
    busy: f64,
    seconds: f64,
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
fn scaling(runs: &[Measured], asked: u64) -> Option<(u64, f64)> {
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
