//! Many dry runs, politely: which queues would take a job, and charged to whom.
//!
//! A queue is asked with one account after the other until one is taken; accounts that another queue
//! took come first, and a refusal that is the same in words that are not known with a second account
//! is taken for one of the job. Three are asked at a time and no more than a budget in all, as each
//! costs the controller a scheduling attempt and a job id. What was not asked is told as such: it is
//! neither a yes nor a no; only a refusal that no queue can change stands for all.
//!
//! The order of the questions depends on the answers alone, never on which of three came first, so
//! that a recording replays.

use std::thread;

use super::slurm::{Answer, Probe, Question};
use crate::model::{DryRun, Refusal, Shape};

/// Dry runs at a time.
const AT_ONCE: usize = 3;
/// Dry runs of one question in all.
pub const BUDGET: usize = 150;
/// Accounts of which one queue is asked at least, if it takes so many.
const LEAST_EACH: usize = 12;

/// An account and a quality of service to ask with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Charge {
    /// The account; `None` lets the scheduler choose.
    pub account: Option<String>,
    /// The quality of service; `None` lets the scheduler choose.
    pub qos: Option<String>,
}

/// A queue with what to ask it with, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The queue.
    pub queue: String,
    /// With what; never empty for a queue that is to be asked.
    pub charges: Vec<Charge>,
}

/// What one queue answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The queue.
    pub queue: String,
    /// The answer that says most; `None` where it was not asked.
    pub best: Option<DryRun>,
    /// Answers in which a site's filter and the scheduler say different things.
    pub disagreements: Vec<DryRun>,
    /// How many charges were tried; none where the answer of another queue stands for all.
    pub tried: usize,
    /// How many were left when the budget was.
    pub untried: usize,
}

/// What all queues answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Survey {
    /// One entry for each candidate, in the order given.
    pub answers: Vec<Answered>,
    /// Dry runs made.
    pub asked: usize,
    /// Whether dry runs can be made here at all.
    pub can_ask: bool,
}

impl Survey {
    /// The answer of a queue.
    pub fn of(&self, queue: &str) -> Option<&Answered> {
        self.answers.iter().find(|answered| answered.queue == queue)
    }
}

/// Asks every candidate whether it would take a job of this shape.
pub fn survey(probe: &Probe<'_>, shape: &Shape, candidates: &[Candidate]) -> Survey {
    ask_all(&|question| probe.ask(question, shape), candidates, BUDGET)
}

fn ask_all(
    ask: &(dyn Fn(&Question) -> Answer + Sync),
    candidates: &[Candidate],
    budget: usize,
) -> Survey {
    let each = LEAST_EACH.max(budget / candidates.len().max(1));
    let mut survey = Survey { can_ask: true, ..Survey::default() };
    survey.answers = candidates
        .iter()
        .map(|candidate| Answered {
            queue: candidate.queue.clone(),
            best: None,
            disagreements: Vec::new(),
            tried: 0,
            untried: candidate.charges.len(),
        })
        .collect();
    // What is settled with one question is asked first.
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|index| candidates[*index].charges.len());
    let mut unrecorded = 0;
    let mut for_all: Option<DryRun> = None;
    let mut taken: Vec<Charge> = Vec::new();
    let mut left: Vec<Vec<Charge>> =
        candidates.iter().map(|candidate| candidate.charges.clone()).collect();
    while !order.is_empty() && survey.asked < budget && survey.can_ask {
        let room = AT_ONCE.min(budget - survey.asked);
        let mut batch: Vec<(usize, Charge)> = Vec::with_capacity(room);
        // One of each queue; where that leaves room, more of those that are refused for their account.
        for round in 0..AT_ONCE {
            for index in &order {
                let charges = &mut left[*index];
                let goes_on = round == 0
                    || (1..each.saturating_sub(round)).contains(&survey.answers[*index].tried);
                if batch.len() < room && goes_on && !charges.is_empty() {
                    let favourite = charges.iter().position(|charge| taken.contains(charge));
                    batch.push((*index, charges.remove(favourite.unwrap_or(0))));
                }
            }
        }
        let questions = batch.iter().map(|(index, charge)| Question {
            queue: candidates[*index].queue.clone(),
            account: charge.account.clone(),
            qos: charge.qos.clone(),
        });
        // A recording answers at once: a thread for each question would take longer.
        let answers: Vec<Answer> = if unrecorded > 0 {
            questions.map(|question| ask(&question)).collect()
        } else {
            side_by_side(ask, questions)
        };
        for ((index, charge), answer) in batch.into_iter().zip(answers) {
            let is_put = !matches!(answer, Answer::NotPut(_));
            let answer = match answer {
                Answer::Said(answer) | Answer::NotPut(answer) => *answer,
                // Recorded may be the answer for another account.
                Answer::Unrecorded => {
                    unrecorded += 1;
                    survey.answers[index].untried = left[index].len();
                    continue;
                }
                Answer::Impossible => {
                    survey.can_ask = false;
                    continue;
                }
            };
            survey.asked += usize::from(is_put);
            let entry = &mut survey.answers[index];
            entry.tried += 1;
            entry.untried = left[index].len();
            if answer.disagrees() {
                entry.disagreements.push(answer.clone());
            }
            let refusal = answer.refusal();
            if refusal.is_some_and(|refusal| !refusal.depends_on_queue()) {
                for_all.get_or_insert_with(|| answer.clone());
            }
            let said_before = entry.best.as_ref().is_some_and(|best| {
                refusal == Some(Refusal::Unrecognised) && best.message == answer.message
            });
            let goes_on = refusal.is_some_and(Refusal::depends_on_account) && !said_before;
            if answer.is_taken() && !taken.contains(&charge) {
                taken.push(charge);
            }
            if entry.best.as_ref().is_none_or(|best| best.weight() < answer.weight()) {
                entry.best = Some(answer);
            }
            // Another account cannot open what is closed, nor make nodes.
            if !goes_on {
                left[index].clear();
                entry.untried = 0;
            }
        }
        order.retain(|index| !left[*index].is_empty() && survey.answers[*index].tried < each);
        if let Some(answer) = &for_all {
            for entry in survey.answers.iter_mut().filter(|entry| entry.best.is_none()) {
                entry.best = Some(DryRun { queue: entry.queue.clone(), ..answer.clone() });
                entry.untried = 0;
            }
            break;
        }
    }
    survey.can_ask &= survey.asked > 0 || unrecorded == 0;
    survey
}

/// The answers, in the order of the questions, which are asked at the same time.
fn side_by_side(
    ask: &(dyn Fn(&Question) -> Answer + Sync),
    questions: impl Iterator<Item = Question>,
) -> Vec<Answer> {
    thread::scope(|scope| {
        let asked = questions.map(|question| scope.spawn(move || ask(&question)));
        let asked: Vec<_> = asked.collect();
        let joined = asked
            .into_iter()
            .map(|answer| answer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::model::{Known, Settled};

    fn answer(question: &Question, settled: Settled) -> DryRun {
        DryRun {
            queue: question.queue.clone(),
            account: question.account.clone(),
            qos: question.qos.clone(),
            settled,
            message: String::new(),
            filter: None,
            effective_qos: None,
            start: Known::NotGathered,
            nodes: None,
        }
    }

    fn candidate(queue: &str, accounts: usize) -> Candidate {
        let charges =
            (1..=accounts).map(|n| Charge { account: Some(format!("a{n}")), qos: None }).collect();
        Candidate { queue: queue.to_owned(), charges }
    }

    /// Asks queues that take one account only; the questions come back in their order.
    fn asked(
        candidates: &[Candidate],
        takes: &(dyn Fn(&Question) -> Settled + Sync),
        budget: usize,
    ) -> (Survey, Vec<String>) {
        let log = Mutex::new(Vec::new());
        let ask = |question: &Question| {
            let words =
                format!("{} {}", question.queue, question.account.as_deref().unwrap_or("-"));
            log.lock().expect("whole").push(words);
            Answer::Said(Box::new(answer(question, takes(question))))
        };
        let survey = ask_all(&ask, candidates, budget);
        (survey, log.into_inner().expect("whole"))
    }

    /// Thirty-four accounts, of which only the thirty-second is taken: it is found, and named.
    #[test]
    fn the_account_that_works_is_found_among_many() {
        let only = |question: &Question| match question.account.as_deref() {
            Some("a32") => Settled::Taken,
            _ => Settled::Refused(Refusal::AccountMismatch),
        };
        let (survey, log) = asked(&[candidate("big", 34)], &only, BUDGET);
        let best = survey.answers[0].best.as_ref().expect("asked");
        assert!(best.is_taken());
        // One, then three at a time: it is the first of the eleventh three.
        assert_eq!((best.account.as_deref(), log.len()), (Some("a32"), 34));
        // With a budget of twelve it is not found, and that is no refusal by all.
        let (survey, _) = asked(&[candidate("big", 34)], &only, 12);
        assert_eq!((survey.answers[0].tried, survey.answers[0].untried), (12, 22));
    }

    #[test]
    fn an_account_that_one_queue_took_is_tried_first_at_the_next() {
        let only = |question: &Question| match question.account.as_deref() {
            Some("a3") => Settled::Taken,
            _ => Settled::Refused(Refusal::AccountMismatch),
        };
        let (survey, log) = asked(&[candidate("one", 3), candidate("two", 9)], &only, BUDGET);
        assert!(
            survey
                .answers
                .iter()
                .all(|answered| answered.best.as_ref().is_some_and(DryRun::is_taken))
        );
        // Not all nine: the third of the one comes next at the other.
        assert!(log.len() <= 8, "{log:?}");
    }

    #[test]
    fn another_account_is_not_tried_where_it_could_change_nothing() {
        for settled in [
            Settled::Refused(Refusal::QueueClosed),
            Settled::Refused(Refusal::Shape),
            Settled::NoAnswer,
        ] {
            let (survey, log) = asked(&[candidate("down", 9)], &|_| settled, BUDGET);
            assert_eq!((log.len(), survey.answers[0].untried), (1, 0), "{settled:?}");
        }
    }

    /// `sbatch --test-only -L nosuch` of a lab's Slurm 22.05 was asked 110 times for eight queues.
    #[test]
    fn what_no_account_and_no_queue_can_change_is_asked_once() {
        let candidates: Vec<Candidate> = (0..8).map(|n| candidate(&format!("q{n}"), 15)).collect();
        let unknown = |_: &Question| Settled::Refused(Refusal::Unrecognised);
        let (survey, log) = asked(&candidates, &unknown, BUDGET);
        // Twice of each queue; the last of all is asked a third time beside the second.
        assert_eq!(log.len(), 17, "{log:?}");
        assert!(survey.answers.iter().all(|answered| answered.untried == 0));
        let licence = |_: &Question| Settled::Refused(Refusal::Licence);
        let (survey, log) = asked(&candidates, &licence, BUDGET);
        assert_eq!((log.len(), survey.asked), (3, 3));
        let of_last = survey.of("q7").and_then(|answered| answered.best.as_ref());
        let of_last = of_last.map(|answer| (answer.queue.as_str(), answer.refusal()));
        assert_eq!(of_last, Some(("q7", Some(Refusal::Licence))));
    }

    /// What was not put is an answer for its queue and no dry run.
    #[test]
    fn a_question_that_was_not_put_costs_nothing() {
        let not_put =
            |question: &Question| Answer::NotPut(Box::new(answer(question, Settled::NoAnswer)));
        let survey = ask_all(&not_put, &[candidate("one", 1), candidate("two", 1)], BUDGET);
        assert!(survey.can_ask && survey.asked == 0);
        assert!(survey.answers.iter().all(|answered| answered.best.is_some()));
    }

    #[test]
    fn the_budget_is_kept_and_what_was_not_asked_says_so() {
        let candidates: Vec<Candidate> =
            (0..60).map(|n| candidate(&format!("q{n:02}"), 1)).collect();
        let (survey, log) = asked(&candidates, &|_| Settled::Taken, 10);
        assert_eq!((survey.asked, log.len()), (10, 10));
        assert!(survey.answers[59].best.is_none() && survey.answers[59].untried == 1);
        // Where it cannot be asked at all, three learn it and nobody asks again.
        let none = ask_all(&|_| Answer::Impossible, &candidates, BUDGET);
        assert!(!none.can_ask && none.asked == 0);
        // A recording that holds some of the answers gives those.
        let some = |question: &Question| match question.queue.as_str() {
            "q41" => Answer::Said(Box::new(answer(question, Settled::Taken))),
            _ => Answer::Unrecorded,
        };
        let some = ask_all(&some, &candidates, BUDGET);
        assert!(some.can_ask && some.asked == 1 && some.answers[41].best.is_some());
        assert!(!ask_all(&|_| Answer::Unrecorded, &candidates, BUDGET).can_ask);
    }
}
