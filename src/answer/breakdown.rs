//! Who, what, where and when used the cluster and wasted it?

use std::collections::BTreeMap;

use serde::Serialize;

use super::scope::{self, Scope};
use super::sizing::Reclaimable;
use super::stats::{
    Amount, EnergyNotes, LogsRead, Meter, Question, Rate, by_waste, counter, rate, stats,
};
use super::{AnswerError, World, mask};
use crate::history::breakdown::{Dimension, Group, breakdown};
use crate::history::reclaim::{Freed, reclaimable};
use crate::history::sizing::{Basis, sizing};
use crate::history::workloads::workloads;
use crate::model::{History, Idle, Notice, Run};
use crate::text;

/// By what the sums are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The cause of failure, as the record alone names it.
    Cause,
    /// Who ran it.
    User,
    /// The account charged.
    Account,
    /// The quality of service.
    Qos,
    /// Where it ran.
    Partition,
    /// The type of GPU.
    Gpu,
    /// The week in which it ended.
    Week,
}

/// The sums of a window, apart.
#[derive(Debug, Serialize)]
pub struct Breakdown {
    /// `jobwise/breakdown/1`.
    pub schema: &'static str,
    /// Whose, and when.
    #[serde(flatten)]
    pub scope: Scope,
    /// By what.
    pub by: By,
    /// All groups together.
    pub total: GroupRow,
    /// The groups: weeks in their order, others by what they wasted.
    pub groups: Vec<GroupRow>,
    /// How energy was worked out.
    pub energy: EnergyNotes,
    /// What the logs added to the causes, where they were asked for.
    pub logs: Option<LogsRead>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// A group of runs. What ended in different ways stands apart: it is wasted in different ways.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupRow {
    /// Its name; `None` where the record names none.
    pub name: Option<String>,
    /// Failed runs among those that completed or failed.
    pub failure_rate: Rate,
    /// What all ended runs held.
    pub used: Amount,
    /// The failed ones: the most that their failures can have wasted.
    pub failed: Amount,
    /// Those that somebody cancelled.
    pub cancelled: Option<Amount>,
    /// Those that made way for others or were requeued.
    pub preempted: Option<Amount>,
    /// Those that completed and did nothing: idle cores, or GPUs at 0 %; `None` where steps were
    /// not asked for.
    pub idle: Option<Amount>,
    /// What sizing's advice would have left free.
    pub reclaimable: Option<Reclaimable>,
}

/// Breaks the sums of a window down.
pub fn breakdown_by(
    world: World<'_>,
    question: &Question,
    by: By,
) -> Result<Breakdown, AnswerError> {
    let wanted = &question.past;
    let dimension = match by {
        // What is told of a cause is what the plain statistics tell.
        By::Cause => return causes(world, question),
        By::User => Dimension::User,
        By::Account => Dimension::Account,
        By::Qos => Dimension::Qos,
        By::Partition => Dimension::Partition,
        By::Gpu => Dimension::Gpu,
        By::Week => Dimension::Week,
    };
    let idle = scope::idle(world.config);
    let (history, has_steps) = scope::read_with_few_steps(world, wanted, &idle)?;
    let window = (wanted.filter.since.as_second(), wanted.filter.until.as_second());
    let zone = world.cluster.zone();
    let groups = breakdown(&history, dimension, window, &zone, &idle);
    let freed = match dimension {
        Dimension::Account if has_steps => reclaimable_by_account(&history, &idle),
        _ => BTreeMap::new(),
    };
    let mut total = Group::default();
    for group in groups.values() {
        total.merge(group);
    }
    let backend = wanted.files.is_empty().then(|| world.backend());
    let source = backend.as_ref().and_then(|backend| backend.jobs.as_ref());
    let counter = counter(source, &total.used);
    let meter = Meter::new(world.config, question, !total.used.load.gpus.is_empty(), counter);
    let mut all_freed = Freed::default();
    for freed in freed.values() {
        all_freed.merge(*freed);
    }
    let total_freed = (dimension == Dimension::Account && has_steps).then_some(all_freed);
    let mut rows: Vec<GroupRow> = groups
        .iter()
        .map(|(name, group)| row(&meter, Some(name), group, freed.get(name).copied()))
        .collect();
    if by != By::Week {
        rows.sort_by(|a, b| {
            by_waste(&a.failed, &b.failed).then_with(|| by_waste(&a.used, &b.used))
        });
    }
    let mut total_row = row(&meter, None, &total, total_freed);
    if !has_steps {
        for row in rows.iter_mut().chain([&mut total_row]) {
            row.idle = None;
        }
    }
    let mut notices = history.notices.clone();
    if total.used.unrecorded > 0 {
        let runs = text::count(total.used.unrecorded, "run");
        let text = format!("{runs} not recorded with what it held or how long: in no sum");
        notices.push(Notice::warning("unrecorded-allocation", text));
    }
    notices.extend(meter.left_out(&total.used));
    Ok(Breakdown {
        schema: "jobwise/breakdown/1",
        scope: Scope::of(world, &wanted.filter, &history),
        by,
        total: total_row,
        groups: rows,
        energy: meter.notes(&total.used),
        logs: None,
        notices: mask::notices(notices),
    })
}

/// The causes of the plain statistics, in the same form.
fn causes(world: World<'_>, question: &Question) -> Result<Breakdown, AnswerError> {
    let stats = stats(world, question)?;
    let bare = |name: Option<String>, failure_rate, used: &Amount, failed: &Amount| GroupRow {
        name,
        failure_rate,
        used: used.clone(),
        failed: failed.clone(),
        cancelled: None,
        preempted: None,
        idle: None,
        reclaimable: None,
    };
    let total = GroupRow {
        cancelled: Some(stats.cancelled.clone()),
        preempted: Some(stats.preempted.clone()),
        idle: stats.idle.clone(),
        ..bare(None, stats.failure_rate, &stats.used, &stats.wasted)
    };
    let groups = stats.causes.iter().map(|row| {
        let runs = row.wasted.runs;
        bare(Some(row.cause.clone()), rate(runs, 0), &row.wasted, &row.wasted)
    });
    Ok(Breakdown {
        schema: "jobwise/breakdown/1",
        scope: stats.scope.clone(),
        by: By::Cause,
        total,
        groups: groups.collect(),
        energy: stats.energy,
        logs: stats.logs,
        notices: stats.notices,
    })
}

/// What the advice on every workload would have left free, by account.
fn reclaimable_by_account(history: &History, idle: &Idle) -> BTreeMap<String, Freed> {
    let basis = Basis { risk: Basis::RISK, idle: *idle };
    let mut freed: BTreeMap<String, Freed> = BTreeMap::new();
    for workload in workloads(history) {
        let runs: Vec<&Run> = workload.runs(history).collect();
        // Limits only cap what is raised, and nothing is freed by that.
        let advice = sizing(&runs, history, None, &basis);
        for (account, more) in reclaimable(&runs, history, &advice) {
            freed.entry(account).or_default().merge(more);
        }
    }
    freed
}

fn row(meter: &Meter, name: Option<&str>, group: &Group, freed: Option<Freed>) -> GroupRow {
    GroupRow {
        name: name.filter(|name| !name.is_empty()).map(text::masked),
        failure_rate: rate(group.failed.runs, group.completed),
        used: meter.amount(&group.used),
        failed: meter.amount(&group.failed),
        cancelled: Some(meter.amount(&group.cancelled)),
        preempted: Some(meter.amount(&group.preempted)),
        idle: Some(meter.amount(&group.idle)),
        reclaimable: freed.map(Reclaimable::from),
    }
}
