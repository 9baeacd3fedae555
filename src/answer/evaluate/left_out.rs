//! Each family taken away in turn: what its cases come to without it.

use std::path::PathBuf;

use rayon::prelude::*;

use super::{diagnosed, label, named};
use crate::answer::World;
use crate::answer::diagnose::Engine;
use crate::eval::{Case, LeftOut};
use crate::model::FamilyId;

/// Diagnoses the cases of every family without its rule. Those without an answer are told of where all
/// are measured.
pub(super) fn leave_one_out(
    engine: &Engine,
    world: World<'_>,
    cases: &[(PathBuf, Case)],
) -> Vec<LeftOut> {
    let mut families: Vec<&FamilyId> = engine.families().iter().map(|family| &family.id).collect();
    families.retain(|family| cases.iter().any(|(_, case)| case.family == family.0));
    let yields = |from: &str, to: &str| {
        let known = engine.families().iter().find(|family| family.id.0 == from);
        known.is_some_and(|family| family.yields_to.iter().any(|id| id.0 == to))
    };
    let part = |family: &&FamilyId| {
        let without = engine.without(family);
        let mut part = LeftOut { family: family.0.clone(), ..LeftOut::default() };
        for (folder, case) in cases.iter().filter(|(_, case)| case.family == family.0) {
            let Ok(told) = diagnosed(&without, world, folder, case) else { continue };
            let confidence = named(&told.verdict).map(|cause| cause.confidence.measured);
            let near = |got: &str| {
                let also = case.also.iter().any(|also| also == got);
                also || yields(&family.0, got) || yields(got, &family.0)
            };
            part.count(&case.id, label(&told.verdict), confidence, near);
        }
        part
    };
    families.par_iter().map(part).collect()
}
