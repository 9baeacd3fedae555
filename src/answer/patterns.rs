//! What goes wrong again and again?

use std::collections::BTreeSet;

use serde::Serialize;

use super::limits::Ceilings;
use super::past::Wanted;
use super::scope::{self, Scope, WorkloadName};
use super::{AnswerError, World, mask};
use crate::history::patterns::{Kind, Pattern, patterns};
use crate::history::sizing::{Advice, Amount, Basis, Flag, Verdict, sizing};
use crate::history::workloads::workloads;
use crate::model::{BaseState, Bytes, Notice, Run, Span};

/// The patterns of a window.
#[derive(Debug, Serialize)]
pub struct Patterns {
    /// `jobwise/patterns/1`.
    pub schema: &'static str,
    /// Whose, and when.
    #[serde(flatten)]
    pub scope: Scope,
    /// Workloads that were looked at.
    pub workload_count: usize,
    /// How many patterns there are.
    pub total: usize,
    /// The patterns, the most expensive first, as many as were asked for.
    pub patterns: Vec<PatternRow>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Something that repeats in one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatternRow {
    /// Which workload.
    #[serde(flatten)]
    pub name: WorkloadName,
    /// `failures`, `memory` or `requeues`.
    pub pattern: &'static str,
    /// Whether it should be looked at first.
    pub severe: bool,
    /// Ended runs of the workload.
    pub runs: u64,
    /// Those that show it.
    pub hits: u64,
    /// Core-hours of these.
    pub core_hours: f64,
    /// GPU-hours of these.
    pub gpu_hours: f64,
    /// What it looks like.
    pub evidence: String,
    /// What to do about it; where that is a request, it is the one that `sizing` gives.
    pub action: String,
}

/// Looks for patterns; `limit` of `None` tells all.
pub fn patterns_of(
    world: World<'_>,
    wanted: &Wanted,
    limit: Option<usize>,
) -> Result<Patterns, AnswerError> {
    let mut history = scope::read(world, wanted)?;
    let idle = scope::idle(world.config);
    // A step may have died of memory though its job's record does not say so.
    let died = |run: &Run| run.derived_exit.is_some_and(|exit| !exit.is_clean());
    scope::add_steps(world, wanted, &mut history, died)?;
    let of_patterns: BTreeSet<u32> = {
        let workloads = workloads(&history);
        let found = patterns(&history, &workloads, &idle);
        let shown = found.iter().take(limit.unwrap_or(usize::MAX));
        let runs = shown.flat_map(|pattern| workloads[pattern.workload].runs(&history));
        runs.map(|run| run.number).collect()
    };
    // What hung, and what the next run should ask for, only steps tell.
    scope::add_steps(world, wanted, &mut history, |run| {
        of_patterns.contains(&run.number) && !run.failed_steps.is_some()
    })?;
    let workloads = workloads(&history);
    let found = patterns(&history, &workloads, &idle);
    let total = found.len();
    let shown: Vec<Pattern> = found.into_iter().take(limit.unwrap_or(usize::MAX)).collect();
    let mut notices = history.notices.clone();
    let sized = shown
        .iter()
        .filter(|pattern| !matches!(pattern.kind, Kind::Requeues { .. }))
        .map(|pattern| &workloads[pattern.workload]);
    let limits = Ceilings::ask(world, wanted, &history, sized, &mut notices);
    let basis = Basis { risk: Basis::RISK, idle };
    let rows = shown.into_iter().map(|pattern| {
        let workload = &workloads[pattern.workload];
        let runs: Vec<&Run> = workload.runs(&history).collect();
        let limits = limits.of(&history, workload);
        let advice = sizing(&runs, &history, limits.as_ref(), &basis);
        PatternRow {
            name: WorkloadName::of(workload, &history),
            pattern: match pattern.kind {
                Kind::Failures { .. } => "failures",
                Kind::Memory { .. } => "memory",
                Kind::Requeues { .. } => "requeues",
            },
            severe: pattern.severe,
            runs: pattern.runs,
            hits: pattern.hits,
            core_hours: scope::hours(pattern.core_seconds),
            gpu_hours: scope::hours(pattern.gpu_seconds),
            evidence: evidence(&pattern),
            action: action(&pattern, &advice),
        }
    });
    Ok(Patterns {
        schema: "jobwise/patterns/1",
        scope: Scope::of(world, &wanted.filter, &history),
        workload_count: workloads.len(),
        total,
        patterns: rows.collect(),
        notices: mask::notices(notices),
    })
}

fn evidence(pattern: &Pattern) -> String {
    let Pattern { runs, hits, .. } = pattern;
    match &pattern.kind {
        Kind::Failures { state, of_state, hung, limit, one_array } => {
            let word = state.word();
            let mut said = format!("{hits} of {runs} runs failed, {of_state} of them {word}");
            if *hung > 0 {
                said.push_str(&format!("; {hung} held their cores and did nothing"));
            }
            if let Some(limit) = limit {
                let limit = Span::seconds(u64::from(*limit));
                said.push_str(&format!("; all with a limit of {limit}"));
            }
            if *one_array {
                said.push_str("; all of one array");
            }
            said
        }
        Kind::Memory { tried, then, mixed } => {
            const SHOWN: usize = 8;
            let step = |(limit, times): &(u64, u64)| match times {
                1 => Bytes(*limit).to_string(),
                times => format!("{} x{times}", Bytes(*limit)),
            };
            let mut walk: Vec<String> = tried.iter().take(SHOWN).map(step).collect();
            if tried.len() > SHOWN {
                walk.push("...".to_owned());
            }
            let mut said = format!("{hits} of {runs} runs died of memory: {}", walk.join(", "));
            match then {
                Some((count, limit)) => said.push_str(&format!(
                    "; then {count} completed, the last with {}",
                    Bytes(*limit)
                )),
                None => said.push_str("; none completed since"),
            }
            if *mixed {
                said.push_str("; yet others completed with no more than what some died of");
            }
            said
        }
        Kind::Requeues { seconds } => {
            let given_up = Span::seconds(*seconds);
            format!(
                "{hits} of {runs} runs were given up and put back into the queue after {given_up} in all"
            )
        }
    }
}

/// What to do; requests are quoted from the advice.
fn action(pattern: &Pattern, advice: &[Advice]) -> String {
    let about = |flags: &[Flag]| advice.iter().find(|advice| flags.contains(&advice.flag));
    let quote = |advice: &Advice| {
        let option = advice.flag.option();
        match (advice.suggestion.filter(|_| advice.is_change()), advice.now) {
            (Some(to), _) => {
                format!("sizing: {} --{option} to {}", advice.verdict.in_words(), to.to_option())
            }
            (None, now) => {
                let now =
                    now.map_or_else(String::new, |now| format!(" {}", Amount::to_option(now)));
                let verdict = advice.verdict.in_words();
                match advice.verdict {
                    Verdict::Unknown => {
                        format!("sizing: {verdict} whether --{option}{now} is right")
                    }
                    Verdict::Capped => format!("sizing: --{option}{now} is the most there is"),
                    _ => format!("sizing: --{option}{now} is {verdict}"),
                }
            }
        }
    };
    match &pattern.kind {
        Kind::Failures { hung, .. } if hung * 2 >= pattern.hits => {
            "find what they wait for: a longer limit would only hold more for longer".to_owned()
        }
        Kind::Failures { state: BaseState::Timeout, .. } => {
            about(&[Flag::Time]).map_or_else(String::new, quote)
        }
        Kind::Failures { state: BaseState::OutOfMemory, .. }
        | Kind::Memory { mixed: false, .. } => {
            about(&[Flag::Memory, Flag::MemoryPerCpu, Flag::MemoryPerGpu])
                .map_or_else(String::new, quote)
        }
        Kind::Memory { mixed: true, .. } => {
            let asked = about(&[Flag::Memory, Flag::MemoryPerCpu, Flag::MemoryPerGpu]).map(quote);
            let asked = asked.map_or_else(String::new, |quoted| format!("; {quoted}"));
            format!("look for what differs between those that died and the others{asked}")
        }
        Kind::Failures { state: BaseState::NodeFail | BaseState::BootFail, .. } => {
            "jobwise reliability says whether a node is to blame".to_owned()
        }
        Kind::Failures { .. } => "jobwise diagnose on one of them names the cause".to_owned(),
        Kind::Requeues { .. } => {
            "checkpoints save what was done; jobwise reliability says whether a node is to blame"
                .to_owned()
        }
    }
}
