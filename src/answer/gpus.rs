//! Which accelerators are there, what can be had, and what can they do?

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{AnswerError, World, place};
use crate::capacity::free::Frees;
use crate::capacity::gates::Gates;
use crate::capacity::inventory::{self, Reach, Stock};
use crate::model::{Ability, Notice};

/// The accelerators of a cluster.
#[derive(Debug, Serialize)]
pub struct Gpus {
    /// `jobwise/gpus/1`.
    pub schema: &'static str,
    /// When they were read.
    pub taken_at: Timestamp,
    /// How many there are, slices among them.
    pub installed: u64,
    /// How many can be had now.
    pub free: u64,
    /// Those of them that the caller can have, by rules and limits.
    pub yours: u64,
    /// How many are not identified: they count for no ability.
    pub unidentified: u64,
    /// Each kind, the most numerous first.
    pub models: Vec<Stock>,
    /// How far each ability reaches.
    pub abilities: BTreeMap<Ability, Reach>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// Counts the accelerators, of these queues or of all.
pub fn gpus(world: World<'_>, queues: &[String]) -> Result<Gpus, AnswerError> {
    let place::Read { cluster, catalogue, notices, .. } = place::read(world)?;
    place::known_queues(&cluster, queues)?;
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let models = inventory::stocks(&cluster, &frees, &gates, &catalogue, queues);
    let sum = |count: fn(&Stock) -> u64| models.iter().map(count).sum();
    Ok(Gpus {
        schema: "jobwise/gpus/1",
        taken_at: cluster.taken_at,
        installed: sum(|stock| stock.installed),
        free: sum(|stock| stock.free),
        yours: sum(|stock| stock.yours),
        unidentified: models.iter().filter(|s| !s.identified).map(|s| s.installed).sum(),
        abilities: inventory::reach(&models),
        models,
        notices,
    })
}
