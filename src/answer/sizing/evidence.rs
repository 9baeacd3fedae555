//! Of which runs is asked what their steps used?
//!
//! Of all, where they are few or somebody asks for that; files hold it anyway. Else of the last runs of
//! each workload, those first that come first in the order asked for, so many in all and no more: the
//! database looks up the steps of each job on their own. What was not asked is not judged, and said.

use std::collections::HashSet;

use super::super::scope::FEW;
use crate::history::Summary;
use crate::history::workloads::Workload;
use crate::model::{History, Notice, Run};
use crate::text;

/// So many runs in all: some ten seconds.
const IN_ALL: usize = 10_000;
/// So many runs of each should not fit, that the risk can be told,
const BEYOND: f64 = 5.0;
/// of so many at most.
const OF_EACH: f64 = 2000.0;

/// The jobs whose runs are judged; `None` for all.
pub(super) struct Evidence(Option<HashSet<u32>>);

impl Evidence {
    /// All runs.
    pub(super) fn all() -> Self {
        Self(None)
    }

    /// The last runs of workloads in their order; all of them where they are few.
    pub(super) fn of(ranked: &[(Workload, Summary)], history: &History, risk: f64) -> Self {
        let all = || ranked.iter().flat_map(|(workload, _)| workload.runs(history));
        if all().count() <= FEW {
            return Self(Some(all().map(|run| run.number).collect()));
        }
        let (each, mut left) = (of_each(risk), IN_ALL);
        let mut jobs = HashSet::new();
        for (workload, _) in ranked {
            let (mut taken, mut own) = (0, HashSet::new());
            for run in workload.runs(history).rev().filter(|run| run.is_ended()) {
                // All tasks of an array come together.
                if taken >= each && !own.contains(&run.number) {
                    break;
                }
                taken += 1;
                own.insert(run.number);
            }
            if taken > left {
                break;
            }
            left -= taken;
            jobs.extend(own);
        }
        Self(Some(jobs))
    }

    /// Whether a run is judged.
    pub(super) fn holds(&self, run: &Run) -> bool {
        self.0.as_ref().is_none_or(|jobs| jobs.contains(&run.number))
    }

    /// What is not judged: workloads of which only the last runs are, and those of which none is.
    pub(super) fn told(shortened: usize, without: usize, risk: f64) -> Option<Notice> {
        let mut said = Vec::new();
        if shortened > 0 {
            let workloads = text::count(shortened as u64, "workload");
            said.push(format!("of {workloads} the last {} runs or so are judged", of_each(risk)));
        }
        if without > 0 {
            let workloads = text::count(without as u64, "workload");
            said.push(format!("{workloads}, the last in this order, not at all"));
        }
        let hint = "--steps asks what all runs used, which may take minutes";
        let notice = Notice::info("few-steps", said.join("; "));
        (!said.is_empty()).then(|| notice.hint(hint))
    }
}

/// How many runs of a workload are judged.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to a few thousand"
)]
fn of_each(risk: f64) -> usize {
    (BEYOND / risk).ceil().clamp(BEYOND, OF_EACH) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::workloads::workloads;
    use crate::model::{BaseState, Maybe, RunPart};

    /// Workloads of so many runs; each run a job of its own, or tasks of arrays of so many.
    fn history(sizes: &[u32], array: u32) -> History {
        let mut history = History::default();
        let mut number = 0;
        for (which, size) in sizes.iter().enumerate() {
            let name = Some(history.names.intern(&format!("work-{}", ["a", "b", "c", "d"][which])));
            for run in 0..*size {
                number += u32::from(run % array == 0);
                let part = if array > 1 { RunPart::Task(run) } else { RunPart::Whole };
                history.runs.push(Run {
                    name,
                    started: Maybe::some(1000 + number),
                    ended: Maybe::some(2000 + number),
                    elapsed: Maybe::some(1000),
                    ..Run::bare(number, part, BaseState::Completed)
                });
            }
        }
        history
    }

    fn judged(history: &History, risk: f64) -> Vec<usize> {
        let ranked: Vec<_> =
            workloads(history).into_iter().map(|found| (found, Summary::default())).collect();
        let evidence = Evidence::of(&ranked, history, risk);
        let held =
            |workload: &Workload| workload.runs(history).filter(|run| evidence.holds(run)).count();
        ranked.iter().map(|(workload, _)| held(workload)).collect()
    }

    #[test]
    fn of_many_runs_the_last_of_each_workload_are_asked_for() {
        // One in forty may not fit: 5 of 200.
        assert_eq!(judged(&history(&[4000, 1000], 1), 0.025), [4000, 1000]);
        assert_eq!(judged(&history(&[4000, 1001], 1), 0.025), [200, 200]);
        assert_eq!(judged(&history(&[6000, 150], 1), 0.025), [200, 150]);
        // One in a thousand: 5 of 5,000 would be asked for, and 2,000 are the most of each.
        assert_eq!(judged(&history(&[6000, 3000], 1), 0.001), [2000, 2000]);
    }

    #[test]
    fn an_array_is_asked_for_whole_and_the_sum_is_bounded() {
        assert_eq!(judged(&history(&[6000, 900], 300), 0.025), [300, 300]);
        // Arrays of 6,000 tasks: one fits into 10,000, two do not.
        assert_eq!(judged(&history(&[6000, 6000, 10], 6000), 0.025), [6000, 0, 0]);
    }
}
