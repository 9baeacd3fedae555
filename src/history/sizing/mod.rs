//! What the next run of a workload should ask for, from what its runs really used.
//!
//! Each option gets a verdict of its own with the runs it rests on. A run that was ended at its limit
//! is a measurement that broke off, not one of the limit; a run that hung is none at all; what was
//! killed for memory counts until later runs of the same size prove otherwise. More cores are never
//! advised because those that there are were busy: only runs that had more and were as much faster
//! show that more would help. Limits of the partition and its nodes are data here: they cap.

mod cores;
mod estimate;
mod gpus;
mod memory;
mod nodes;
mod throttle;
mod time;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::model::{Bytes, History, Idle, Limits, Run, Span};
use crate::script::{Given, parse_submit_line};
use crate::text;

use estimate::Estimate;

/// What is taken for granted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basis {
    /// The share of runs that may not fit, before headroom.
    pub risk: f64,
    /// When a run counts as hung.
    pub idle: Idle,
}

impl Basis {
    /// One run in forty may not fit unless somebody asks for another risk.
    pub const RISK: f64 = 0.025;
}

/// Fewer runs say too little.
pub const LEAST_RUNS: usize = 3;

/// An option of the submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flag {
    /// `--time`.
    Time,
    /// `--mem`, per node.
    Memory,
    /// `--mem-per-cpu`.
    MemoryPerCpu,
    /// `--mem-per-gpu`.
    MemoryPerGpu,
    /// `--cpus-per-task`.
    CpusPerTask,
    /// `--gpus`, of all nodes together.
    Gpus,
    /// `--nodes`.
    Nodes,
    /// The `%N` of `--array`.
    Array,
}

impl Flag {
    /// Its long name, without the dashes.
    pub fn option(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Memory => "mem",
            Self::MemoryPerCpu => "mem-per-cpu",
            Self::MemoryPerGpu => "mem-per-gpu",
            Self::CpusPerTask => "cpus-per-task",
            Self::Gpus => "gpus",
            Self::Nodes => "nodes",
            Self::Array => "array",
        }
    }
}

/// A value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Wall time.
    Time(Span),
    /// Memory.
    Memory(Bytes),
    /// Cores, GPUs, nodes.
    Count(u64),
    /// Tasks of an array at a time.
    AtATime(u64),
    /// No limit.
    Unlimited,
}

impl Amount {
    /// As the option takes it.
    pub fn to_option(self) -> String {
        match self {
            Self::Time(span) => span.to_string(),
            Self::Memory(bytes) => bytes.to_option(),
            Self::Count(count) => count.to_string(),
            Self::AtATime(count) => format!("%{count}"),
            Self::Unlimited => "UNLIMITED".to_owned(),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(span) => span.fmt(f),
            Self::Memory(bytes) => bytes.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::AtATime(count) => write!(f, "%{count}"),
            Self::Unlimited => f.pad("unlimited"),
        }
    }
}

/// What to do about an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Ask for more.
    Raise,
    /// Ask for less.
    Lower,
    /// It is about right.
    Keep,
    /// There is no limit, or none is recorded: set one.
    Set,
    /// There is not enough evidence.
    Unknown,
    /// More is needed than may be asked for here.
    Capped,
}

impl Verdict {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Raise => "raise",
            Self::Lower => "lower",
            Self::Keep => "about right",
            Self::Set => "set",
            Self::Unknown => "not enough evidence",
            Self::Capped => "capped",
        }
    }
}

/// How many of the runs that were judged would not have fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfits {
    /// Those that would not.
    pub runs: usize,
    /// Those that ended before it was known.
    pub unknown: usize,
    /// Of so many.
    pub of: usize,
}

impl Misfits {
    /// "1 in 40 of the runs would not have fitted".
    pub fn in_words(self) -> String {
        let Self { runs, unknown, of } = self;
        let said = match runs {
            0 if unknown == 0 && of == 1 => "the run would have fitted".to_owned(),
            0 if unknown == 0 => format!("all {of} runs would have fitted"),
            0 => format!("{} of {of} runs would have fitted", of - unknown),
            runs if of.is_multiple_of(runs) && runs < of => {
                format!("1 in {} of the runs would not have fitted", of / runs)
            }
            runs => format!("{runs} of {of} runs would not have fitted"),
        };
        if unknown == 0 { said } else { format!("{said}, of {unknown} it is not known") }
    }
}

/// The verdict on one option.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The option.
    pub flag: Flag,
    /// The verdict.
    pub verdict: Verdict,
    /// What the last run asked for.
    pub now: Option<Amount>,
    /// What the next should ask for.
    pub suggestion: Option<Amount>,
    /// Runs that it rests on.
    pub runs: usize,
    /// The most that one of them is known to have used.
    pub most: Option<Amount>,
    /// What all but the accepted share of them used at most.
    pub quantile: Option<Amount>,
    /// What was added to that, in per cent.
    pub headroom: Option<u32>,
    /// How the suggestion, or what is asked for now, would have held them.
    pub misfits: Option<Misfits>,
    /// Why, in one sentence.
    pub because: String,
}

impl Advice {
    fn unknown(flag: Flag, now: Option<Amount>, runs: usize, because: String) -> Self {
        Self {
            flag,
            verdict: Verdict::Unknown,
            now,
            suggestion: None,
            runs,
            most: None,
            quantile: None,
            headroom: None,
            misfits: None,
            because,
        }
    }

    /// Whether there is something to change.
    pub fn is_change(&self) -> bool {
        matches!(self.verdict, Verdict::Raise | Verdict::Lower | Verdict::Set)
            || (self.verdict == Verdict::Capped && self.suggestion.is_some())
    }

    /// The directive that changes it; `None` where nothing is to change, the option is to go, or its
    /// suggestion is only a part of what it takes.
    pub fn directive(&self) -> Option<String> {
        let suggestion = self.suggestion.filter(|_| self.is_change())?;
        // The indices of the next array are not known here.
        let whole = suggestion != Amount::Count(0) && self.flag != Flag::Array;
        whole.then(|| format!("#SBATCH --{}={}", self.flag.option(), suggestion.to_option()))
    }
}

/// The advice on every option of a workload, those without evidence included.
///
/// `runs` are the workload's in the order of their starts; open ones and those that never started
/// are passed over.
pub fn sizing(
    runs: &[&Run],
    history: &History,
    limits: Option<&Limits>,
    basis: &Basis,
) -> Vec<Advice> {
    let ended: Vec<&Run> =
        runs.iter().copied().filter(|run| run.is_ended() && run.has_started()).collect();
    let Some(last) = ended.last().copied() else { return Vec::new() };
    let subject = Subject { ended: &ended, last, history, limits, basis };
    let (cores, nodes) = (cores::advise(&subject), nodes::advise(&subject));
    let memory = memory::advise(&subject, &cores, nodes.as_ref());
    let mut advice = vec![time::advise(&subject), memory, cores];
    advice.extend(gpus::advise(&subject));
    advice.extend(nodes);
    advice.extend(throttle::advise(&subject));
    advice
}

/// What is judged.
struct Subject<'s> {
    ended: &'s [&'s Run],
    last: &'s Run,
    history: &'s History,
    limits: Option<&'s Limits>,
    basis: &'s Basis,
}

impl Subject<'_> {
    fn hung(&self, run: &Run) -> bool {
        run.is_hang(&self.basis.idle) == Some(true)
    }

    /// The last of some options in the last submission command.
    fn given(&self, options: &[&str]) -> Option<Given> {
        let line = parse_submit_line(self.history.text(self.last.submit_line));
        line.options.into_iter().rev().find(|given| options.contains(&given.option.as_str()))
    }
}

/// The begin of every evidence sentence: the runs, what they used, what was added.
fn evidence(estimate: &Estimate, risk: f64, verb: &str, unit: impl Fn(u64) -> Amount) -> String {
    let runs = text::count(estimate.runs as u64, "run");
    let most = unit(estimate.most);
    match estimate.quantile {
        Some(quantile) if quantile < estimate.most => format!(
            "{runs}: {} % of them {verb} at most {}, the most was {most}",
            figure((1.0 - risk) * 100.0),
            unit(quantile),
        ),
        _ => format!("{runs}, the most that one {verb} was {most}"),
    }
}

/// The end of the evidence for what stays as it is: what it leaves.
fn leaves(current: u64, needed: u64) -> String {
    let headroom = current.saturating_sub(needed).saturating_mul(100) / needed.max(1);
    format!("; that leaves {headroom} % headroom")
}

/// A percentage without needless decimals: `97.5`, `90`.
fn figure(percent: f64) -> String {
    let text = format!("{percent:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// What an amount is lowered to must be below this share of it: less is not worth a change.
const WORTH: f64 = 0.8;
/// Less headroom than this share above what is needed is too little.
const TIGHT: f64 = 1.1;

#[expect(clippy::cast_precision_loss, reason = "amounts are compared to some per cent")]
fn float(amount: u64) -> f64 {
    amount as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an amount times a factor near one; what is too large saturates"
)]
fn whole(amount: f64) -> u64 {
    amount.max(0.0).ceil() as u64
}
