//! Of which runs is asked what their steps used?
//!
//! Of all, where they are few or somebody asks for that; files hold it anyway. Else of the last runs of
//! each workload, the fewer the more workloads there are, and in the order asked for until so many are
//! asked for in all: the database looks up the steps of each job on their own. What was not asked is
//! not judged, and said.

use std::collections::HashSet;

use super::super::scope::FEW;
use crate::history::Summary;
use crate::history::workloads::Workload;
use crate::model::{History, Notice, Run};
use crate::text;

/// So many runs in all: some ten seconds.
const IN_ALL: usize = 10_000;
/// So many runs of each should not fit, that the risk can be told well; one at least,
const BEYOND: f64 = 5.0;
/// and of so many at most.
const OF_EACH: f64 = 2000.0;

/// The jobs whose runs are judged; `None` for all. How many runs of each workload that are.
pub(super) struct Evidence {
    jobs: Option<HashSet<u32>>,
    each: usize,
}

impl Evidence {
    /// All runs.
    pub(super) fn all() -> Self {
        Self { jobs: None, each: usize::MAX }
    }

    /// The last runs of workloads in their order; all of them where they are few.
    pub(super) fn of(ranked: &[(Workload, Summary)], history: &History, risk: f64) -> Self {
        let all = || ranked.iter().flat_map(|(workload, _)| workload.runs(history));
        if all().count() <= FEW {
            let jobs = all().map(|run| run.number).collect();
            return Self { jobs: Some(jobs), each: usize::MAX };
        }
        let (each, mut left) = (of_each(risk, ranked.len()), IN_ALL);
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
        Self { jobs: Some(jobs), each }
    }

    /// Whether a run is judged.
    pub(super) fn holds(&self, run: &Run) -> bool {
        self.jobs.as_ref().is_none_or(|jobs| jobs.contains(&run.number))
    }

    /// What is not judged: workloads of which only the last runs are, and those of which none is.
    pub(super) fn told(&self, shortened: usize, without: usize) -> Option<Notice> {
        let workloads = |count: usize| text::count(count as u64, "workload");
        let mut said = Vec::new();
        if shortened > 0 {
            let (of, each) = (workloads(shortened), self.each);
            said.push(format!("of {of} only the last {each} runs or so are judged"));
        }
        if without > 0 {
            let of = workloads(without);
            said.push(format!("what the runs of {of}, the last in this order, used was not asked"));
        }
        let hint = "--steps asks what all runs used, which may take minutes";
        let notice = Notice::info("few-steps", said.join("; "));
        (!said.is_empty()).then(|| notice.hint(hint))
    }
}

/// How many runs of each of so many workloads are judged.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped to a few thousand"
)]
fn of_each(risk: f64, workloads: usize) -> usize {
    let least = (1.0 / risk).clamp(1.0, OF_EACH);
    let most = (BEYOND / risk).clamp(BEYOND, OF_EACH);
    let share = IN_ALL as f64 / workloads.max(1) as f64;
    share.clamp(least, most).ceil() as usize
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
            // Numbers would make one workload of all.
            let letter =
                |at: usize| u32::try_from(at).ok().and_then(|at| char::from_digit(10 + at, 36));
            let letters = [which / 26, which % 26].map(letter);
            let name =
                Some(history.names.intern(&letters.into_iter().flatten().collect::<String>()));
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
        // 10,000 runs are 50 of each of 200 workloads; of 400 one in forty is the least that tells.
        assert_eq!(judged(&history(&[60; 200], 1), 0.025), [50; 200]);
        let many = judged(&history(&[60; 400], 1), 0.025);
        assert_eq!(many, [[40; 250].as_slice(), &[0; 150]].concat());
    }

    #[test]
    fn an_array_is_asked_for_whole_and_the_sum_is_bounded() {
        assert_eq!(judged(&history(&[6000, 900], 300), 0.025), [300, 300]);
        // Arrays of 6,000 tasks: one fits into 10,000, two do not.
        assert_eq!(judged(&history(&[6000, 6000, 10], 6000), 0.025), [6000, 0, 0]);
    }
}
