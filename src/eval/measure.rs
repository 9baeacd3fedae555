//! What is counted over the answers to labelled cases.

use std::collections::BTreeMap;

use serde::Serialize;

use super::calibration::{Reliability, reliability};
use super::case::Case;
use super::{HEALTHY, UNKNOWN};

/// The answer to one case; a line of `--results`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// At which place it comes when only the line that tells the cause is looked up; `None` where
    /// no line does, or it did not come.
    pub line_rank: Option<usize>,
    /// Whether the line that tells the cause is among the evidence of the first cause; `None`
    /// where no line does.
    pub root_line_hit: Option<bool>,
    /// How long it took.
    pub millis: u64,
    /// What keywords would have said, where they were asked; empty for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keywords: Option<String>,
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
    /// A case before it has an answer.
    pub fn without_answer(case: &Case) -> Self {
        Self {
            id: case.id.clone(),
            expected: case.family.clone(),
            also: case.also.clone(),
            got: "error".to_owned(),
            named: false,
            confidence: None,
            first: None,
            score: None,
            doc_rank: None,
            line_rank: None,
            root_line_hit: None,
            millis: 0,
            keywords: None,
            difficulty: case.difficulty.clone(),
            stage: case.stage.clone().unwrap_or_else(|| "run".to_owned()),
            source: case.source.clone(),
        }
    }

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

/// Where the label's note came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Retrieval {
    /// How many cases: of the verdict's all but successes, which need no note; of the lines' those
    /// that have one.
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
    /// Notes found by the verdict: what a person gets.
    pub retrieval: Retrieval,
    /// Notes found by the line that tells the cause, without any verdict: what search alone does.
    pub retrieval_by_line: Retrieval,
    /// Whether confidences can be believed.
    pub reliability: Reliability,
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
        retrieval: retrieval(answered.iter().filter(|c| c.expected != HEALTHY).map(|c| c.doc_rank)),
        retrieval_by_line: retrieval(
            answered.iter().filter(|c| c.root_line_hit.is_some()).map(|c| c.line_rank),
        ),
        reliability: reliability(answered),
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
    let share = |(name, (right, cases)): (&str, (usize, usize))| Share::of(name, right, cases);
    let mut shares: Vec<Share> = counts.into_iter().map(share).collect();
    shares.sort_by_key(|share| rank(&share.name));
    shares
}

/// Groups in the order in which people think of them; others after these, by name.
pub(super) fn rank(name: &str) -> usize {
    const ORDER: [&str; 6] = ["easy", "medium", "hard", "submit", "pending", "run"];
    ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len())
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

fn retrieval(ranks: impl Iterator<Item = Option<usize>>) -> Retrieval {
    let ranks: Vec<Option<usize>> = ranks.collect();
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

/// What a measurement has to reach.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Thresholds {
    /// The least accuracy.
    pub min_accuracy: Option<f64>,
    /// The least share of notes that came first.
    pub min_recall_at_1: Option<f64>,
    /// The most successes that may be given a cause.
    pub max_false_alarms: Option<usize>,
}

impl Thresholds {
    /// What was missed, in words. What could not be measured is missed.
    pub fn missed(&self, measures: &Measures) -> Vec<String> {
        let least = |name: &str, found: Option<f64>, least: Option<f64>| {
            let least = least?;
            let found_text = found.map_or_else(|| "n/a".to_owned(), |found| format!("{found:.3}"));
            (found.is_none_or(|found| found < least))
                .then(|| format!("{name} is {found_text}, less than {least}"))
        };
        let alarms = measures.false_alarms.len();
        let most = self.max_false_alarms.filter(|most| alarms > *most);
        [
            least("accuracy", measures.accuracy.share, self.min_accuracy),
            least("recall@1", measures.retrieval.recall_at_1, self.min_recall_at_1),
            most.map(|most| format!("{alarms} false alarms, more than {most}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::read;
    use super::*;

    /// An answer that says nothing but its label.
    pub(in crate::eval) fn case(id: &str, expected: &str, got: &str) -> Answered {
        let line = format!(r#"{{"id": "{id}", "family": "{expected}"}}"#);
        let (cases, _) = read(&line);
        let named = !matches!(got, UNKNOWN | HEALTHY);
        Answered { got: got.to_owned(), named, ..Answered::without_answer(&cases[0]) }
    }

    #[test]
    fn precision_recall_and_confusion_by_hand() {
        // Labels a a a b none; answers a a b b c. Of a: 3 cases, 2 answers, both right: precision
        // 2/2, recall 2/3. Of b: 1 case, 2 answers, 1 right: 1/2 and 1/1. Accuracy 3/5. The success
        // that got a cause is the one false alarm.
        let cases = [
            case("1", "a", "a"),
            case("2", "a", "a"),
            case("3", "a", "b"),
            case("4", "b", "b"),
            case("5", HEALTHY, "c"),
        ];
        let found = measure(&cases);
        assert_eq!(found.accuracy, Share::of("all", 3, 5));
        assert_eq!(found.false_alarms, ["5"]);
        let row = |name: &str| {
            let row = found.families.iter().find(|row| row.family == name).expect("a row");
            (row.cases, row.answers, row.right, row.precision, row.recall)
        };
        assert_eq!(row("a"), (3, 2, 2, Some(1.0), Some(2.0 / 3.0)));
        assert_eq!(row("b"), (1, 2, 1, Some(0.5), Some(1.0)));
        // Never answered, never asked: no share, not zero.
        assert_eq!(row(HEALTHY), (1, 0, 0, None, Some(0.0)));
        assert_eq!(row("c"), (0, 1, 0, Some(0.0), None));
        let cells: Vec<(&str, &str, usize)> = found
            .confusion
            .iter()
            .map(|cell| (cell.expected.as_str(), cell.got.as_str(), cell.cases))
            .collect();
        assert_eq!(cells, [("a", "a", 2), ("a", "b", 1), ("b", "b", 1), (HEALTHY, "c", 1)]);
    }

    #[test]
    fn another_label_that_is_as_right_counts_as_itself() {
        let mut one = case("1", "a", "b");
        one.also = vec!["b".to_owned()];
        let found = measure(&[one]);
        assert_eq!(found.accuracy.right, 1);
        assert_eq!(found.confusion.len(), 1);
        assert_eq!((found.confusion[0].expected.as_str(), found.families.len()), ("b", 1));
    }

    #[test]
    fn places_of_notes_by_hand() {
        // Places 1, 3, none, 2, and a success that needs no note. Of 4: first 1/4, among three 3/4,
        // MRR = (1 + 1/3 + 0 + 1/2) / 4 = (11/6) / 4 = 11/24.
        let at = |rank| {
            let mut case = case("1", "a", "a");
            case.doc_rank = rank;
            case
        };
        let cases = [at(Some(1)), at(Some(3)), at(None), at(Some(2)), case("5", HEALTHY, HEALTHY)];
        let found = measure(&cases).retrieval;
        assert_eq!(
            (found.cases, found.recall_at_1, found.recall_at_3),
            (4, Some(0.25), Some(0.75))
        );
        assert_eq!(found.recall_at_5, Some(0.75));
        assert!((found.mrr.expect("measured") - 11.0 / 24.0).abs() < 1e-12);
    }

    #[test]
    fn of_nothing_there_is_no_share() {
        let found = measure(&[]);
        assert_eq!(found.accuracy.share, None);
        assert_eq!((found.retrieval.mrr, found.retrieval.recall_at_1), (None, None));
        let wanted = Thresholds { min_accuracy: Some(0.0), ..Thresholds::default() };
        assert_eq!(wanted.missed(&found), ["accuracy is n/a, less than 0"]);
        assert!(Thresholds::default().missed(&found).is_empty());
    }

    #[test]
    fn a_threshold_is_reached_when_it_is_met_exactly() {
        let found = measure(&[case("1", "a", "a"), case("2", HEALTHY, "a")]);
        let wanted = |min_accuracy, max_false_alarms| {
            Thresholds { min_accuracy, max_false_alarms, min_recall_at_1: None }.missed(&found)
        };
        assert!(wanted(Some(0.5), Some(1)).is_empty());
        assert_eq!(
            wanted(Some(0.6), Some(0)),
            ["accuracy is 0.500, less than 0.6", "1 false alarms, more than 0"]
        );
    }
}
