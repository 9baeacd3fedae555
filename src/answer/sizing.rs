//! What should the next run ask for?

mod evidence;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::limits::Ceilings;
use super::overview::{Sort, rank};
use super::past::Wanted;
use super::scope::{self, Scope, WorkloadName};
use super::{AnswerError, World, mask};
use crate::history::reclaim::{Followed, Freed, followed, reclaimable};
use crate::history::sizing::{Advice, Amount, Basis, Flag, Verdict, sizing};
use crate::history::workloads::{Workload, fold, workloads};
use crate::history::{Summary, cost};
use crate::model::{History, Notice, Run};
use crate::sched::Depth;
use crate::text;
use evidence::Evidence;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// Which history.
    pub past: Wanted,
    /// Only workloads of these names, as they are or folded; an empty list is all.
    pub workloads: Vec<String>,
    /// The share of runs that may not fit.
    pub risk: f64,
    /// The order.
    pub sort: Sort,
    /// How many workloads to tell of; `None` for all.
    pub limit: Option<usize>,
    /// Also those that are about right.
    pub all: bool,
}

/// Advice on the workloads of a window.
#[derive(Debug, Serialize)]
pub struct Sized {
    /// `jobwise/sizing/1`.
    pub schema: &'static str,
    /// Whose, and when.
    #[serde(flatten)]
    pub scope: Scope,
    /// The names of workloads that were asked for; an empty list is all.
    pub asked_for: Vec<String>,
    /// The share of runs that may not fit, before headroom.
    pub risk: f64,
    /// Workloads that were looked at.
    pub workload_count: usize,
    /// Of these: with something to change.
    pub to_change: usize,
    /// Of these: without, though there was evidence.
    pub about_right: usize,
    /// Of these: with too little evidence on every option.
    pub without_evidence: usize,
    /// Of these: so many runs of others come before them that what theirs used was not asked.
    pub not_judged: usize,
    /// The workloads, as many as were asked for.
    pub workloads: Vec<SizedWorkload>,
    /// What all ended runs would have left free with the advice, by account; not the excess of time
    /// limits, which is held by nobody.
    pub reclaimable: Vec<FreedRow>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// A workload and the advice on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizedWorkload {
    /// Which.
    #[serde(flatten)]
    pub name: WorkloadName,
    /// Its ended runs.
    pub runs: u64,
    /// The verdict on each option.
    pub advice: Vec<AdviceRow>,
    /// Lines to paste into the script.
    pub directives: Vec<String>,
    /// How the runs since the last change of a request fared, beside what was advised before it.
    pub after: Vec<FollowedRow>,
}

/// The verdict on an option.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdviceRow {
    /// The option: `--mem`.
    pub option: String,
    /// `raise`, `lower`, `keep`, `set`, `unknown` or `capped`.
    pub verdict: &'static str,
    /// What the last run asked for.
    pub now: Option<String>,
    /// What the next should ask for.
    pub suggestion: Option<String>,
    /// Runs that this rests on.
    pub runs: usize,
    /// The most that one of them used.
    pub most: Option<String>,
    /// What all but the accepted share used at most.
    pub quantile: Option<String>,
    /// What was added, in per cent.
    pub headroom_percent: Option<u32>,
    /// Of the runs it rests on those that would not have fitted.
    pub would_not_have_fitted: Option<usize>,
    /// Why.
    pub because: String,
    /// The verdict itself, for drawing.
    #[serde(skip)]
    pub means: Verdict,
    /// The risk in words.
    #[serde(skip)]
    pub risk: Option<String>,
}

/// What advice would have left free.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reclaimable {
    /// Core-hours.
    pub core_hours: f64,
    /// GPU-hours.
    pub gpu_hours: f64,
    /// Node-hours, of nodes that were not needed at all.
    pub node_hours: f64,
    /// GiB of memory times hours.
    pub memory_gib_hours: f64,
}

/// What an account would have had free.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FreedRow {
    /// The account; `None` where the record names none.
    pub account: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub freed: Reclaimable,
}

/// How runs fared with advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FollowedRow {
    /// The option: `--mem`.
    pub option: String,
    /// What the history before the change advised.
    pub advised: String,
    /// What is asked for since.
    pub asked: String,
    /// Runs since.
    pub runs: usize,
    /// The most that one of them used, as far as was measured.
    pub used: Option<String>,
    /// Whether that is about what was advised.
    pub followed: bool,
    /// Runs since that ended for want of it.
    pub fell_short: usize,
}

/// Advises on the workloads of a window.
pub fn sized(world: World<'_>, question: &Question) -> Result<Sized, AnswerError> {
    let mut history = scope::read(world, &question.past)?;
    let basis = Basis { risk: question.risk, idle: scope::idle(world.config) };
    let whole = !question.past.files.is_empty() || question.past.depth == Depth::Steps;
    let evidence = if whole {
        Evidence::all()
    } else {
        Evidence::of(&ranked(&history, question, &basis), &history, question.risk)
    };
    scope::add_steps(world, &question.past, &mut history, |run| evidence.holds(run))?;
    let ranked = ranked(&history, question, &basis);
    let mut notices = history.notices.clone();
    let judged = ranked.iter().map(|(workload, _)| workload);
    let limits = Ceilings::ask(world, &question.past, &history, judged, &mut notices);
    let mut report = Sized {
        schema: "jobwise/sizing/1",
        scope: Scope::of(world, &question.past.filter, &history),
        asked_for: question.workloads.iter().map(|name| text::masked(name)).collect(),
        risk: question.risk,
        workload_count: ranked.len(),
        to_change: 0,
        about_right: 0,
        without_evidence: 0,
        not_judged: 0,
        workloads: Vec::new(),
        reclaimable: Vec::new(),
        notices: Vec::new(),
    };
    let mut freed: BTreeMap<String, Freed> = BTreeMap::new();
    let mut shortened = 0;
    for (workload, summary) in &ranked {
        let all: Vec<&Run> = workload.runs(&history).collect();
        let runs: Vec<&Run> = all.iter().copied().filter(|run| evidence.holds(run)).collect();
        if runs.is_empty() {
            report.not_judged += 1;
            continue;
        }
        shortened += usize::from(runs.len() < all.len());
        let most = limits.of(&history, workload);
        let advice = sizing(&runs, &history, most.as_ref(), &basis);
        for (account, more) in reclaimable(&all, &history, &advice) {
            freed.entry(account).or_default().merge(more);
        }
        let changes =
            advice.iter().any(|advice| advice.is_change() || advice.verdict == Verdict::Capped);
        let count = if changes {
            &mut report.to_change
        } else if advice.iter().any(|advice| advice.verdict == Verdict::Keep) {
            &mut report.about_right
        } else {
            &mut report.without_evidence
        };
        *count += 1;
        let named = !question.workloads.is_empty();
        let room = report.workloads.len() < question.limit.unwrap_or(usize::MAX);
        if room && (changes || named || question.all) {
            let after = followed(&runs, &history, most.as_ref(), &basis);
            report.workloads.push(SizedWorkload {
                name: WorkloadName::of(workload, &history),
                runs: summary.ended,
                directives: advice.iter().filter_map(Advice::directive).collect(),
                advice: advice.into_iter().map(AdviceRow::from).collect(),
                after: after.into_iter().map(FollowedRow::from).collect(),
            });
        }
    }
    let mut freed: Vec<(String, Freed)> = freed.into_iter().collect();
    freed.sort_by_key(|(_, freed)| Reverse(cost(freed.core_seconds, freed.gpu_seconds)));
    report.reclaimable = freed.into_iter().map(FreedRow::from).collect();
    notices.extend(evidence.told(shortened, report.not_judged));
    report.notices = mask::notices(notices);
    Ok(report)
}

/// The workloads that are asked about, in the order asked for.
fn ranked(history: &History, question: &Question, basis: &Basis) -> Vec<(Workload, Summary)> {
    let mut ranked: Vec<(Workload, Summary)> = workloads(history)
        .into_iter()
        .filter(|workload| is_wanted(workload, &question.workloads))
        .map(|workload| {
            let mut summary = Summary::default();
            workload.runs(history).for_each(|run| summary.add(run, &basis.idle));
            (workload, summary)
        })
        .filter(|(_, summary)| summary.ended > 0)
        .collect();
    rank(&mut ranked, question.sort);
    ranked
}

/// Whether a workload has one of the names given: as it is, without its numbers, or without the
/// place where they stand at its end.
fn is_wanted(workload: &Workload, names: &[String]) -> bool {
    let folded = fold(&workload.label);
    let stem = folded.trim_end_matches(['#', '-', '_', '.']);
    names.is_empty() || names.iter().any(|name| folded == fold(name) || stem == name)
}

fn option(flag: Flag) -> String {
    format!("--{}", flag.option())
}

impl From<Advice> for AdviceRow {
    fn from(advice: Advice) -> Self {
        let told = |amount: Option<Amount>| amount.map(Amount::to_option);
        Self {
            option: option(advice.flag),
            verdict: match advice.verdict {
                Verdict::Raise => "raise",
                Verdict::Lower => "lower",
                Verdict::Keep => "keep",
                Verdict::Set => "set",
                Verdict::Unknown => "unknown",
                Verdict::Capped => "capped",
            },
            now: told(advice.now),
            suggestion: told(advice.suggestion),
            runs: advice.runs,
            most: told(advice.most),
            quantile: told(advice.quantile),
            headroom_percent: advice.headroom,
            would_not_have_fitted: advice.misfits.map(|misfits| misfits.runs),
            because: advice.because,
            means: advice.verdict,
            risk: advice.misfits.map(crate::history::sizing::Misfits::in_words),
        }
    }
}

impl From<Followed> for FollowedRow {
    fn from(found: Followed) -> Self {
        Self {
            option: option(found.flag),
            advised: found.advised.to_option(),
            asked: found.asked.to_option(),
            runs: found.runs,
            used: found.used.map(|used| used.to_string()),
            followed: found.followed,
            fell_short: found.fell_short,
        }
    }
}

impl From<Freed> for Reclaimable {
    fn from(freed: Freed) -> Self {
        Self {
            core_hours: scope::hours(freed.core_seconds),
            gpu_hours: scope::hours(freed.gpu_seconds),
            node_hours: scope::hours(freed.node_seconds),
            memory_gib_hours: scope::hours(freed.mib_seconds / 1024),
        }
    }
}

impl From<(String, Freed)> for FreedRow {
    fn from((account, freed): (String, Freed)) -> Self {
        Self { account: (!account.is_empty()).then_some(account), freed: freed.into() }
    }
}
