//! What running and waiting jobs count against limits, as the queue tells.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use crate::model::{Bytes, Cluster, Part, QueuedJob, Reading, Tres};

/// Whose jobs count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope<'c> {
    /// Those of a quality of service.
    pub(super) qos: Option<&'c str>,
    /// Those that charge an account.
    pub(super) account: Option<String>,
    /// Whether only the caller's own.
    pub(super) is_mine: bool,
}

/// What the jobs of a scope have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sum {
    /// Resources of those that run.
    pub(super) tres: BTreeMap<String, u64>,
    /// How many run.
    pub(super) running: u64,
    /// How many run or wait; each task of an array counts.
    pub(super) submitted: u64,
}

/// Sums over the queue, each made once.
#[derive(Debug)]
pub(super) struct Usage<'c> {
    cluster: &'c Cluster,
    sums: RefCell<HashMap<Scope<'c>, Sum>>,
    /// Whether the site shows nobody the jobs of others.
    pub(super) hides_others: bool,
}

impl<'c> Usage<'c> {
    pub(super) fn new(cluster: &'c Cluster) -> Self {
        let private = cluster.controller.setting("PrivateData").unwrap_or_default();
        let hides_others = private.split(',').any(|word| word.trim() == "jobs" || word == "all");
        Self { cluster, sums: RefCell::default(), hides_others }
    }

    /// Whether a sum is all there is, and not only what may be seen.
    pub(super) fn is_whole(&self, scope: &Scope<'_>) -> bool {
        !self.cluster.lacks(Reading::Jobs) && (scope.is_mine || !self.hides_others)
    }

    pub(super) fn of(&self, scope: &Scope<'c>) -> Sum {
        if let Some(sum) = self.sums.borrow().get(scope) {
            return sum.clone();
        }
        let sum = self.add_up(scope);
        self.sums.borrow_mut().insert(scope.clone(), sum.clone());
        sum
    }

    fn add_up(&self, scope: &Scope<'_>) -> Sum {
        let mut sum = Sum::default();
        for job in self.cluster.jobs.iter().filter(|job| self.counts(scope, job)) {
            match job.state.word() {
                "RUNNING" | "SUSPENDED" => {
                    sum.running += 1;
                    sum.submitted += 1;
                    for (name, value) in &job.tres.0 {
                        let amount = amount(name, value).unwrap_or(0);
                        let entry = sum.tres.entry(name.clone()).or_default();
                        *entry = entry.saturating_add(amount);
                    }
                    // Sites that account for types only print no sum.
                    if job.tres.get("gres/gpu").is_none() {
                        *sum.tres.entry("gres/gpu".to_owned()).or_default() +=
                            job.tres.gpus().unwrap_or(0);
                    }
                }
                _ => sum.submitted = sum.submitted.saturating_add(tasks(job)),
            }
        }
        sum
    }

    fn counts(&self, scope: &Scope<'_>, job: &QueuedJob) -> bool {
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let by_qos = scope.qos.is_none_or(|qos| {
            // A job counts for the quality of service it has, and for that of its partition.
            job.qos.as_deref().is_some_and(|own| same(own, qos))
                || job.partition.as_deref().is_some_and(|names| {
                    names
                        .split(',')
                        .filter_map(|name| self.cluster.queue(name))
                        .any(|queue| queue.limits_from.as_deref().is_some_and(|own| same(own, qos)))
                })
        });
        by_qos
            && scope
                .account
                .as_deref()
                .is_none_or(|account| job.account.as_deref().is_some_and(|own| same(own, account)))
            && (!scope.is_mine || (job.user.is_some() && job.user == self.cluster.identity.user))
    }
}

/// How many tasks a record stands for; of a list that was cut off, at least one.
fn tasks(job: &QueuedJob) -> u64 {
    let Part::Tasks(list) = &job.id.part else { return 1 };
    let list = list.split('%').next().unwrap_or_default().trim_matches(['[', ']']);
    let range = |range: &str| {
        let (range, step) = range.split_once(':').unwrap_or((range, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let step: u64 = step.parse().ok().filter(|step| *step > 0)?;
        last.checked_sub(first).map(|more| more / step + 1)
    };
    list.split(',').filter_map(range).fold(0_u64, u64::saturating_add).max(1)
}

/// An amount of a resource: of memory in bytes, else a count.
pub(super) fn amount(name: &str, value: &str) -> Option<u64> {
    if name == "mem" || name == "vmem" {
        return Bytes::parse(value, Bytes::MIB).ok().map(|bytes| bytes.0);
    }
    value.parse().ok().or_else(|| Bytes::parse(value, 1).ok().map(|bytes| bytes.0))
}

/// An amount as people read it.
pub(super) fn shown(name: &str, amount: u64) -> String {
    if name == "mem" || name == "vmem" { Bytes(amount).to_string() } else { amount.to_string() }
}

/// What a resource is called in a sentence.
pub(super) fn noun(name: &str) -> String {
    match name {
        "cpu" => "CPUs".to_owned(),
        "node" => "nodes".to_owned(),
        "mem" => "memory".to_owned(),
        "gres/gpu" => "GPUs".to_owned(),
        other => match other.strip_prefix("gres/gpu:") {
            Some(model) => format!("{model} GPUs"),
            None => other.to_owned(),
        },
    }
}

/// What a resource is called in a code: `MAX_GPU_USER`.
pub(super) fn code_word(name: &str) -> String {
    match name {
        "gres/gpu" => "GPU".to_owned(),
        other => {
            let word = other.strip_prefix("gres/").unwrap_or(other).to_ascii_uppercase();
            word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        }
    }
}

/// Everything that a list of limits names.
pub(super) fn entries(limits: &Tres) -> impl Iterator<Item = (&str, Option<u64>, &str)> {
    limits.0.iter().map(|(name, value)| (name.as_str(), amount(name, value), value.as_str()))
}
