//! The jobs that a pending one waits for, and what became of them.
//!
//! Asked for in one query of accounting, and only where the reason is a dependency. A parent that
//! failed is diagnosed; of one that waits or runs it is said that it does.

use super::Engine;
use super::surroundings::Surroundings;
use super::wrapped::ChildJob;
use crate::model::{Job, JobId, Outcome, Verdict};
use crate::script::parse_submit_line;

/// Parents that are looked up.
const MOST: usize = 4;

/// The parents that decide: those that failed, or all while none has.
pub(super) fn parents(
    engine: &Engine,
    verdict: &Verdict,
    job: &Job,
    surroundings: &impl Surroundings,
) -> Vec<ChildJob> {
    let cause = verdict.causes.first().filter(|_| verdict.outcome == Outcome::Pending);
    if cause.is_none_or(|cause| cause.family.0 != "dependency") {
        return Vec::new();
    }
    let submitted = job.submit_line.as_deref().map(parse_submit_line);
    let submitted = submitted.and_then(|line| line.effective(0, "dependency")?.value.clone());
    let Some(text) = job.dependency.clone().or(submitted) else { return Vec::new() };
    let mut ids = named(&text);
    ids.retain(|id| id.number != job.id.number);
    ids.truncate(MOST);
    let found = if ids.is_empty() { None } else { surroundings.children(engine, &ids) };
    let (mut diagnoses, trouble) = match found {
        // Nobody can be asked, and the step says how to.
        None => return Vec::new(),
        Some(Err(error)) => (Vec::new(), error.to_string()),
        Some(Ok(diagnoses)) => (diagnoses, "accounting does not know it".to_owned()),
    };
    let mut told: Vec<ChildJob> = ids
        .into_iter()
        .map(|id| {
            let number = id.number;
            // Of an array a task that failed.
            let own = diagnoses.iter().position(|told| told.job.id == id);
            let failed = || {
                let mut told = diagnoses.iter();
                told.position(|told| told.job.id.number == number && told.job.state.is_failure())
            };
            let any = || diagnoses.iter().position(|told| told.job.id.number == number);
            let at = own.or_else(failed).or_else(any);
            let diagnosis = at.map(|at| Box::new(diagnoses.swap_remove(at)));
            let trouble = diagnosis.is_none().then(|| trouble.clone());
            ChildJob { id: id.to_string(), step: None, diagnosis, trouble }
        })
        .collect();
    let failed = |parent: &ChildJob| {
        parent.diagnosis.as_ref().is_some_and(|told| told.job.state.is_failure())
    };
    if told.iter().any(failed) {
        told.retain(failed);
    }
    told
}

/// The ids of `afterok:6(failed),afterany:7:8?after:9+10`.
fn named(dependency: &str) -> Vec<JobId> {
    let conditions = dependency.split([',', '?']);
    let ids = conditions.flat_map(|condition| condition.split(':').skip(1));
    let mut found: Vec<JobId> = Vec::new();
    for text in ids {
        // Behind the id stands how it stands, or how many minutes later.
        let end = text.find(['(', '+']).unwrap_or(text.len());
        // `6_*` is the whole array.
        let text = text[..end].trim_end_matches("_*");
        if let Ok(id) = text.parse::<JobId>()
            && !found.contains(&id)
        {
            found.push(id);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parents_are_read_in_every_form() {
        let ids =
            |text: &str| -> Vec<String> { named(text).iter().map(JobId::to_string).collect() };
        assert_eq!(ids("afterok:6(failed),afterany:7:8?after:9+10"), ["6", "7", "8", "9"]);
        assert_eq!(ids("aftercorr:5_*(unfulfilled),afterok:5_3"), ["5", "5_3"]);
        assert_eq!(ids("singleton"), [""; 0]);
        assert_eq!(ids("afterok:x:"), [""; 0]);
    }
}
