//! The limits of a partition, which every change and every size must stay within.
//!
//! They change only with the site's configuration. Those of each cluster are remembered for a day
//! in our own folder, and whoever rests on remembered ones says how old they are. A refusal is
//! never remembered, nor is anything of a cluster whose name is not known.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::World;
use crate::model::{Limits, Notice};
use crate::sched::SchedError;
use crate::sched::slurm::Jobs;

/// The file in our own folder.
const FILE: &str = "limits.json";

/// Limits, and when the cluster named them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Dated {
    asked: Timestamp,
    limits: Limits,
    /// How old they are, where they were remembered.
    #[serde(skip)]
    age: Option<SignedDuration>,
}

impl Dated {
    /// The limits themselves.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How old they are, where that is worth telling: of a question that is asked twice in a row
    /// the answers are the same to the byte.
    pub(super) fn age(&self) -> Option<Notice> {
        const WORTH_TELLING: i64 = 15;
        let minutes = self.age?.as_mins();
        if minutes < WORTH_TELLING {
            return None;
        }
        let age =
            if minutes < 90 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let partition = &self.limits.partition;
        let text = format!("the limits of partition {partition} were asked for {age} ago");
        Some(Notice::info("limits-remembered", text).hint("--fresh asks again"))
    }
}

/// What the file holds: limits by cluster and partition.
type Kept = BTreeMap<String, BTreeMap<String, Dated>>;

/// The limits of a partition of a cluster: remembered ones, or those that the scheduler names now.
pub(super) fn of(
    world: World<'_>,
    source: &Jobs<'_>,
    cluster: Option<&str>,
    partition: &str,
) -> Result<Dated, SchedError> {
    if let Some(dated) = recall(world, cluster, partition) {
        return Ok(dated);
    }
    let limits = source.limits(partition)?;
    let dated = Dated { asked: world.cluster.now(), limits, age: None };
    keep(world, cluster, partition, &dated);
    Ok(dated)
}

fn lasts(world: World<'_>) -> SignedDuration {
    SignedDuration::from_secs(world.config.settings.scheduler.limits_seconds.into())
}

/// Everything remembered; nothing where that may not be used or cannot be read.
fn kept(world: World<'_>) -> Option<Kept> {
    let store = world.store.filter(|_| world.live && !lasts(world).is_zero())?;
    let bytes = store.read(FILE).ok().flatten().unwrap_or_default();
    Some(serde_json::from_slice(&bytes).unwrap_or_default())
}

fn recall(world: World<'_>, cluster: Option<&str>, partition: &str) -> Option<Dated> {
    if world.fresh {
        return None;
    }
    let dated = kept(world)?.remove(cluster?)?.remove(partition)?;
    let age = world.cluster.now().duration_since(dated.asked);
    // What was asked in the future was asked by another clock.
    let holds = !age.is_negative() && age < lasts(world);
    holds.then_some(Dated { age: Some(age), ..dated })
}

/// Keeps limits for the next question. If they cannot be kept it asks again: no harm is done.
fn keep(world: World<'_>, cluster: Option<&str>, partition: &str, dated: &Dated) {
    let (Some(mut kept), Some(cluster)) = (kept(world), cluster) else { return };
    let partitions = kept.entry(cluster.to_owned()).or_default();
    partitions.insert(partition.to_owned(), dated.clone());
    if let (Some(store), Ok(bytes)) = (world.store, serde_json::to_vec(&kept)) {
        let _ = store.replace(FILE, &bytes);
    }
}
