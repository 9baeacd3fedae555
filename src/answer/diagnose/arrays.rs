//! How the tasks of an array ended: counts of causes, before three hundred tasks are told one by one.
//!
//! Decides nothing: it counts the verdicts that were reached. Tasks that were not diagnosed are not in
//! it; that there are any is said elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::Diagnosis;
use crate::model::{Outcome, Part};
use crate::text;

/// How the tasks of one array ended.
#[derive(Debug, Serialize)]
pub struct Array {
    /// The number of the array.
    pub job: u64,
    /// Tasks that were diagnosed.
    pub tasks: usize,
    /// What came of them, the most frequent first.
    pub ends: Vec<End>,
}

/// What came of so many tasks.
#[derive(Debug, Serialize)]
pub struct End {
    /// The family of the cause; `unknown`, or the state where nothing failed.
    pub what: String,
    /// How many.
    pub tasks: usize,
}

/// The arrays of which more than one task was diagnosed, in the order in which they are told.
pub(super) fn arrays(diagnoses: &[Diagnosis]) -> Vec<Array> {
    let mut found: Vec<(u64, BTreeMap<String, usize>)> = Vec::new();
    for diagnosis in diagnoses {
        let id = &diagnosis.job.id;
        let tasks = match &id.part {
            Part::Task(_) => 1,
            Part::Tasks(tasks) => waiting(tasks),
            Part::Whole | Part::Component(_) => continue,
        };
        let at = found.iter().position(|(job, _)| *job == id.number).unwrap_or_else(|| {
            found.push((id.number, BTreeMap::new()));
            found.len() - 1
        });
        *found[at].1.entry(end(diagnosis)).or_default() += tasks;
    }
    let array = |(job, ends): (u64, BTreeMap<String, usize>)| {
        let mut ends: Vec<End> =
            ends.into_iter().map(|(what, tasks)| End { what, tasks }).collect();
        ends.sort_by_key(|end| Reverse(end.tasks));
        Array { job, tasks: ends.iter().map(|end| end.tasks).sum(), ends }
    };
    found.into_iter().map(array).filter(|array| array.tasks > 1).collect()
}

fn end(diagnosis: &Diagnosis) -> String {
    let verdict = &diagnosis.verdict;
    let named = matches!(verdict.outcome, Outcome::Cause | Outcome::Pending);
    match verdict.causes.first().filter(|_| named) {
        Some(cause) => cause.family.0.clone(),
        None if verdict.outcome == Outcome::Unknown => "unknown".to_owned(),
        None => diagnosis.job.state.word().to_lowercase(),
    }
}

/// How many tasks a record of waiting ones stands for: `3-9%2`, `1,4,7`.
fn waiting(tasks: &str) -> usize {
    const MOST: usize = 4_000_000;
    let list = tasks.trim_matches(['[', ']']);
    let list = list.split_once('%').map_or(list, |(list, _)| list);
    text::expand(&format!("t[{list}]"), MOST).map_or(1, |names| names.len().max(1))
}

impl Array {
    /// In one line.
    pub fn in_words(&self) -> String {
        let ends: Vec<String> =
            self.ends.iter().map(|end| format!("{} {}", end.tasks, end.what)).collect();
        format!(
            "{} of array {}: {}",
            text::count(self.tasks as u64, "task"),
            self.job,
            ends.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::waiting;

    #[test]
    fn a_record_of_waiting_tasks_counts_for_all_of_them() {
        // The forms that `squeue` and `sacct` print.
        assert_eq!(["3-9%2", "[3-9]", "1,4,7", "5", "odd"].map(waiting), [7, 7, 3, 1, 1]);
    }
}
