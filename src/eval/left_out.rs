//! What becomes of a family's cases when its rule is taken away: a failure of a kind that nobody has
//! described has to come out as unknown, or as a true neighbour, and not as something else for sure.

use serde::Serialize;

use super::{HEALTHY, UNKNOWN, Wrong};

/// From this confidence on a wrong name counts as stated for sure.
const SURE: f64 = 0.5;

/// The cases of one family, or of all, without its rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LeftOut {
    /// The family; empty in the sum.
    pub family: String,
    /// Its cases.
    pub cases: usize,
    /// Of those: no cause was named.
    pub unknown: usize,
    /// A family was named that may stand for it: another right label, or one of the two yields to the
    /// other where both hold.
    pub neighbour: usize,
    /// Another family was named, below a confidence of a half.
    pub unsure: usize,
    /// Another family was named at such a confidence or above.
    pub wrong: Vec<Wrong>,
}

impl LeftOut {
    /// Counts the answer to one case. `is_neighbour` says whether a family may stand for the one that
    /// was left out.
    pub fn count(
        &mut self,
        id: &str,
        got: &str,
        confidence: Option<f64>,
        is_neighbour: impl Fn(&str) -> bool,
    ) {
        self.cases += 1;
        match confidence {
            None => self.unknown += 1,
            Some(_) if matches!(got, UNKNOWN | HEALTHY) => self.unknown += 1,
            Some(_) if is_neighbour(got) => self.neighbour += 1,
            Some(confidence) if confidence < SURE => self.unsure += 1,
            Some(_) => self.wrong.push(Wrong {
                id: id.to_owned(),
                expected: self.family.clone(),
                got: got.to_owned(),
            }),
        }
    }

    /// The sum over families.
    pub fn sum(parts: &[Self]) -> Self {
        parts.iter().fold(Self::default(), |mut sum, part| {
            sum.cases += part.cases;
            sum.unknown += part.unknown;
            sum.neighbour += part.neighbour;
            sum.unsure += part.unsure;
            sum.wrong.extend(part.wrong.iter().cloned());
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_counts_once() {
        let mut part = LeftOut { family: "cuda_oom".to_owned(), ..LeftOut::default() };
        let near = |got: &str| got == "gpu_busy";
        part.count("a", UNKNOWN, None, near);
        part.count("b", "gpu_busy", Some(0.9), near);
        part.count("c", "host_oom", Some(0.4), near);
        part.count("d", "host_oom", Some(0.5), near);
        part.count("e", "pending", None, near);
        let LeftOut { cases, unknown, neighbour, unsure, .. } = part;
        assert_eq!((cases, unknown, neighbour, unsure), (5, 2, 1, 1));
        assert_eq!(part.wrong.len(), 1);
        assert_eq!(part.wrong[0].id, "d");
        let sum = LeftOut::sum(&[part.clone(), part]);
        assert_eq!((sum.cases, sum.wrong.len()), (10, 2));
    }
}
