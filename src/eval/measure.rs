//! What is counted over the answers to labelled cases.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{HEALTHY, UNKNOWN};

/// The answer to one case; a line of `--results`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    /// The case.
    pub id: String,
    /// Its label.
    pub expected: String,
    /// Other labels that are as right.
    pub also: Vec<String>,
    /// The label of the answer: a family, `unknown`, `none` where nothing is wrong, `pending` or
    /// `running` where the answer is no more than that, `error` where there is none.
    pub got: String,
    /// Whether the answer names a cause.
    pub named: bool,
    /// The confidence that the answer states, where it names a cause.
    pub confidence: Option<f64>,
    /// The first cause, guess or not.
    pub first: Option<String>,
    /// Its raw score.
    pub score: Option<f64>,
    /// At which place the note of the label came, from 1; `None` where it did not come.
    pub doc_rank: Option<usize>,
    /// Whether the line that tells the cause is among the evidence of the first cause; `None`
    /// where no line does.
    pub root_line_hit: Option<bool>,
    /// How long it took.
    pub millis: u64,
    /// How hard the case is.
    #[serde(skip)]
    pub difficulty: Option<String>,
    /// Its stage.
    #[serde(skip)]
    pub stage: String,
    /// Its source.
    #[serde(skip)]
    pub source: String,
}

impl Answered {
    /// Whether a label is right for this case.
    pub fn accepts(&self, label: &str) -> bool {
        self.expected == label || self.also.iter().any(|also| also == label)
    }

    /// Whether the answer is right.
    pub fn is_right(&self) -> bool {
        self.accepts(&self.got)
    }

    /// The label to count it under: of several right ones the one that was given.
    fn label(&self) -> &str {
        if self.is_right() { &self.got } else { &self.expected }
    }
}

/// So many of so many.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Of what.
    pub name: String,
    /// How many were right.
    pub right: usize,
    /// Of how many.
    pub cases: usize,
    /// The share; `null` of nothing.
    pub share: Option<f64>,
}

/// One family's answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyRow {
    /// The label.
    pub family: String,
    /// Cases with this label.
    pub cases: usize,
    /// Answers with this label.
    pub answers: usize,
    /// Answers that were right.
    pub right: usize,
    /// Of the answers, the share that was right.
    pub precision: Option<f64>,
    /// Of the cases, the share that was found.
    pub recall: Option<f64>,
}

/// One cell of the confusion matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The label.
    pub expected: String,
    /// The answer.
    pub got: String,
    /// How often.
    pub cases: usize,
}

/// Where the label's note came when the verdict was looked up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Retrieval {
    /// Cases whose label can have a note: all but successes.
    pub cases: usize,
    /// The share whose note came first.
    pub recall_at_1: Option<f64>,
    /// The share whose note was among the first three.
    pub recall_at_3: Option<f64>,
    /// The share whose note was among the first five.
    pub recall_at_5: Option<f64>,
    /// The mean of one over the place; a note that did not come counts as zero.
    pub mrr: Option<f64>,
}

/// Everything that is counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    /// Right answers of all cases.
    pub accuracy: Share,
    /// The same by how hard the cases are.
    pub by_difficulty: Vec<Share>,
    /// The same by stage.
    pub by_stage: Vec<Share>,
    /// Cases whose label is not "unknown" that got no answer but that.
    pub abstained: usize,
    /// Successes that were given a cause.
    pub false_alarms: Vec<String>,
    /// By label.
    pub families: Vec<FamilyRow>,
    /// Every cell that is not empty, by label and answer.
    pub confusion: Vec<Cell>,
    /// Notes found.
    pub retrieval: Retrieval,
    /// Of the cases with a line that tells the cause, those whose first cause quotes it.
    pub root_lines: Share,
}

#[expect(clippy::cast_precision_loss, reason = "numbers of cases are small")]
pub(super) fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Share {
    /// The share of `cases` that are `right`.
    pub fn of(name: &str, right: usize, cases: usize) -> Self {
        Self { name: name.to_owned(), right, cases, share: ratio(right, cases) }
    }
}

/// Counts.
pub fn measure(answered: &[Answered]) -> Measures {
    let right = answered.iter().filter(|case| case.is_right()).count();
    let lines: Vec<bool> = answered.iter().filter_map(|case| case.root_line_hit).collect();
    Measures {
        accuracy: Share::of("all", right, answered.len()),
        by_difficulty: shares(answered, |case| case.difficulty.as_deref()),
        by_stage: shares(answered, |case| Some(&case.stage)),
        abstained: answered.iter().filter(|case| case.got == UNKNOWN && !case.is_right()).count(),
        false_alarms: answered
            .iter()
            .filter(|case| case.expected == HEALTHY && case.named && !case.is_right())
            .map(|case| case.id.clone())
            .collect(),
        families: families(answered),
        confusion: confusion(answered),
        retrieval: retrieval(answered),
        root_lines: Share::of("root lines", lines.iter().filter(|hit| **hit).count(), lines.len()),
    }
}

fn shares<'a>(
    answered: &'a [Answered],
    group: impl Fn(&'a Answered) -> Option<&'a str>,
) -> Vec<Share> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for case in answered {
        let Some(name) = group(case) else { continue };
        let (right, cases) = counts.entry(name).or_default();
        *right += usize::from(case.is_right());
        *cases += 1;
    }
    counts.into_iter().map(|(name, (right, cases))| Share::of(name, right, cases)).collect()
}

fn families(answered: &[Answered]) -> Vec<FamilyRow> {
    let mut counts: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for case in answered {
        counts.entry(case.label()).or_default().0 += 1;
        let of_answer = counts.entry(&case.got).or_default();
        of_answer.1 += 1;
        of_answer.2 += usize::from(case.is_right());
    }
    let row = |(family, (cases, answers, right)): (&str, (usize, usize, usize))| FamilyRow {
        family: family.to_owned(),
        cases,
        answers,
        right,
        precision: ratio(right, answers),
        recall: ratio(right, cases),
    };
    counts.into_iter().map(row).collect()
}

fn confusion(answered: &[Answered]) -> Vec<Cell> {
    let mut cells: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for case in answered {
        *cells.entry((case.label(), &case.got)).or_default() += 1;
    }
    let cell = |((expected, got), cases): ((&str, &str), usize)| Cell {
        expected: expected.to_owned(),
        got: got.to_owned(),
        cases,
    };
    cells.into_iter().map(cell).collect()
}

fn retrieval(answered: &[Answered]) -> Retrieval {
    let ranks: Vec<Option<usize>> =
        answered.iter().filter(|case| case.expected != HEALTHY).map(|case| case.doc_rank).collect();
    let within = |limit: usize| {
        let found = ranks.iter().flatten().filter(|rank| **rank <= limit).count();
        ratio(found, ranks.len())
    };
    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    let sum: f64 = ranks.iter().flatten().map(|rank| 1.0 / *rank as f64).sum();
    Retrieval {
        cases: ranks.len(),
        recall_at_1: within(1),
        recall_at_3: within(3),
        recall_at_5: within(5),
        #[expect(clippy::cast_precision_loss, reason = "numbers of cases are small")]
        mrr: (!ranks.is_empty()).then(|| sum / ranks.len() as f64),
    }
}
