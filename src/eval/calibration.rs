//! Whether a stated confidence can be believed, and the table from which it is stated.
//!
//! The table is isotonic: pool adjacent violators over the scores of first causes, so that a higher
//! score is never less sure. How well it holds for cases that it was not made of is measured by
//! folds of whole sources: reports of one origin share their wording.

use serde::Serialize;

use super::fnv1a;
use super::measure::{Answered, ratio};

/// Bins of equal width for the expected calibration error.
const BINS: usize = 10;
/// From here on an answer counts as sure.
const SURE: f64 = 0.9;
/// Folds of the cross-validation.
const FOLDS: u64 = 5;
/// A row of the table is made of so many cases at least: where all of thirty were right, one in ten
/// may still be wrong (three over their number, at 95 %), and a row of fewer would promise more.
const LEAST: u32 = 30;

/// How far stated confidences can be believed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reliability {
    /// Answers that name a cause, and so state a confidence.
    pub answers: usize,
    /// The bins that hold any, of ten of equal width.
    pub bins: Vec<Bin>,
    /// The expected calibration error: the distance between stated and right over the bins,
    /// weighted by their answers.
    pub ece: Option<f64>,
    /// The Brier score: the mean square of stated minus right.
    pub brier: Option<f64>,
    /// Wrong answers that were stated with a confidence of 0.9 or more.
    pub sure_and_wrong: Vec<SureAndWrong>,
    /// What answering only from a confidence on would cost and gain, most sure first.
    pub risk_coverage: Vec<Level>,
}

/// Answers of like confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bin {
    /// Its lowest confidence.
    pub from: f64,
    /// How many answers.
    pub answers: usize,
    /// How many of them were right.
    pub right: usize,
    /// Their mean stated confidence.
    pub stated: f64,
    /// The share that was right.
    pub share: f64,
}

/// A wrong answer that sounded sure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SureAndWrong {
    /// The case.
    pub id: String,
    /// Its label.
    pub expected: String,
    /// The answer.
    pub got: String,
    /// What was stated.
    pub confidence: f64,
}

/// One point of the curve of risk over coverage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Answering from this confidence on...
    pub confidence: f64,
    /// ...answers this share of all cases,
    pub coverage: f64,
    /// of which this share is wrong.
    pub risk: f64,
}

#[expect(clippy::cast_precision_loss, reason = "numbers of cases are small")]
fn mean(sum: f64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// Which of the ten bins a confidence falls in; 1 falls in the last.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "from 0 to 10"
)]
fn bin_of(confidence: f64) -> usize {
    ((confidence.clamp(0.0, 1.0) * BINS as f64) as usize).min(BINS - 1)
}

/// The bins that hold any of the stated confidences.
fn bins(stated: &[(f64, bool)]) -> Vec<Bin> {
    let of_bin = |number: usize| {
        let held: Vec<&(f64, bool)> = stated.iter().filter(|(c, _)| bin_of(*c) == number).collect();
        let right = held.iter().filter(|(_, right)| *right).count();
        Some(Bin {
            #[expect(clippy::cast_precision_loss, reason = "from 0 to 9")]
            from: number as f64 / BINS as f64,
            answers: held.len(),
            right,
            stated: mean(held.iter().map(|(confidence, _)| confidence).sum(), held.len())?,
            share: ratio(right, held.len())?,
        })
    };
    (0..BINS).filter_map(of_bin).collect()
}

fn ece(bins: &[Bin]) -> Option<f64> {
    let answers: usize = bins.iter().map(|bin| bin.answers).sum();
    #[expect(clippy::cast_precision_loss, reason = "numbers of cases are small")]
    let apart = |bin: &Bin| (bin.share - bin.stated).abs() * bin.answers as f64;
    mean(bins.iter().map(apart).sum(), answers)
}

fn brier(stated: &[(f64, bool)]) -> Option<f64> {
    let square = |(confidence, right): &(f64, bool)| (confidence - f64::from(*right)).powi(2);
    mean(stated.iter().map(square).sum(), stated.len())
}

/// Measures the confidences that answers state.
pub(super) fn reliability(answered: &[Answered]) -> Reliability {
    let stated: Vec<(f64, bool)> =
        answered.iter().filter_map(|case| Some((case.confidence?, case.is_right()))).collect();
    let bins = bins(&stated);
    let sure = answered.iter().filter(|case| !case.is_right()).filter_map(|case| {
        let confidence = case.confidence.filter(|confidence| *confidence >= SURE)?;
        let (id, expected, got) = (case.id.clone(), case.expected.clone(), case.got.clone());
        Some(SureAndWrong { id, expected, got, confidence })
    });
    let mut levels: Vec<f64> = stated.iter().map(|(confidence, _)| *confidence).collect();
    levels.sort_by(|a, b| b.total_cmp(a));
    levels.dedup();
    let risk = |confidence: f64| {
        let taken = || stated.iter().filter(move |(stated, _)| *stated >= confidence);
        let wrong = taken().filter(|(_, right)| !right).count();
        Some(Level {
            confidence,
            coverage: ratio(taken().count(), answered.len())?,
            risk: ratio(wrong, taken().count())?,
        })
    };
    Reliability {
        answers: stated.len(),
        ece: ece(&bins),
        brier: brier(&stated),
        bins,
        sure_and_wrong: sure.collect(),
        risk_coverage: levels.into_iter().filter_map(risk).collect(),
    }
}

/// One row of the table: scores from a height on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its lowest score.
    pub from: f64,
    /// Cases whose first cause had such a score and was right.
    pub right: u32,
    /// Cases whose first cause had such a score.
    pub of: u32,
}

impl Row {
    fn share(&self) -> f64 {
        f64::from(self.right) / f64::from(self.of.max(1))
    }
}

/// The table that turns scores into confidences, and how well it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The rows, lowest first.
    pub rows: Vec<Row>,
    /// Cases with a first cause, guess or not.
    pub cases: usize,
    /// Cases of all; those without any cause count nowhere.
    pub of: usize,
    /// How many folds of whole sources.
    pub folds: u64,
    /// The expected calibration error on the cases of each fold, by a table made of the others.
    pub cross_validated_ece: Option<f64>,
    /// The Brier score likewise.
    pub cross_validated_brier: Option<f64>,
}

impl Table {
    /// The rows in the words of `classify/calibration.rs`, the highest first.
    pub fn source(&self) -> Vec<String> {
        let bin = |row: &Row| {
            format!("Bin {{ from: {:?}, right: {}, of: {} }}", row.from, row.right, row.of)
        };
        let Some((lowest, higher)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = vec![
            format!("const LOWEST: Bin = {};", bin(lowest)),
            format!("const HIGHER: [Bin; {}] = [", higher.len()),
        ];
        lines.extend(higher.iter().rev().map(|row| format!("    {},", bin(row))));
        lines.push("];".to_owned());
        lines
    }
}

/// Makes the table of all first causes, guesses too.
pub fn table(answered: &[Answered]) -> Table {
    let points: Vec<(u64, (f64, bool))> = answered
        .iter()
        .filter_map(|case| {
            let right = case.accepts(case.first.as_deref()?);
            Some((fnv1a(case.source.as_bytes()) % FOLDS, (case.score?, right)))
        })
        .collect();
    let mut told = Vec::new();
    for fold in 0..FOLDS {
        let others = points.iter().filter(|(own, _)| *own != fold).map(|(_, point)| *point);
        let rows = rows(&others.collect::<Vec<_>>());
        let held = points.iter().filter(|(own, _)| *own == fold);
        told.extend(held.filter_map(|(_, (score, right))| Some((look_up(&rows, *score)?, *right))));
    }
    let all: Vec<(f64, bool)> = points.into_iter().map(|(_, point)| point).collect();
    Table {
        rows: rows(&all),
        cases: all.len(),
        of: answered.len(),
        folds: FOLDS,
        cross_validated_ece: ece(&bins(&told)),
        cross_validated_brier: brier(&told),
    }
}

/// The confidence of a score by a table.
fn look_up(rows: &[Row], score: f64) -> Option<f64> {
    let row = rows.iter().rev().find(|row| score >= row.from).or(rows.first())?;
    Some(row.share())
}

/// Scores whose cases are counted together.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pool {
    lowest: f64,
    highest: f64,
    right: u32,
    of: u32,
}

impl Pool {
    fn join(&mut self, higher: Pool) {
        self.highest = higher.highest;
        self.right += higher.right;
        self.of += higher.of;
    }
}

/// Pool adjacent violators: the scores in pools whose shares rise strictly.
fn pools(points: &[(f64, bool)]) -> Vec<Pool> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut pools: Vec<Pool> = Vec::new();
    for (score, right) in sorted {
        let one = Pool { lowest: score, highest: score, right: u32::from(right), of: 1 };
        match pools.last_mut() {
            // One score is one pool, however its cases went.
            Some(last) if last.highest.total_cmp(&score).is_eq() => last.join(one),
            _ => pools.push(one),
        }
    }
    let mut rising: Vec<Pool> = Vec::new();
    for mut pool in pools {
        while let Some(last) = rising.last().copied()
            // last.right / last.of >= pool.right / pool.of
            && u64::from(last.right) * u64::from(pool.of)
                >= u64::from(pool.right) * u64::from(last.of)
        {
            rising.pop();
            let higher = pool;
            pool = last;
            pool.join(higher);
        }
        rising.push(pool);
    }
    rising
}

/// The rows of the table: rising pools, each of some cases at least.
fn rows(points: &[(f64, bool)]) -> Vec<Row> {
    let mut joined: Vec<Pool> = Vec::new();
    for pool in pools(points) {
        match joined.last_mut() {
            Some(last) if last.of < LEAST => last.join(pool),
            _ => joined.push(pool),
        }
    }
    // What is left at the top may be too little.
    if joined.last().is_some_and(|last| last.of < LEAST)
        && let Some(top) = joined.pop()
    {
        match joined.last_mut() {
            Some(last) => last.join(top),
            None => joined.push(top),
        }
    }
    let mut below: Option<f64> = None;
    let row = |pool: Pool| {
        let from = below.map_or(0.0, |below| between(below, pool.lowest));
        below = Some(pool.highest);
        Row { from, right: pool.right, of: pool.of }
    };
    joined.into_iter().map(row).collect()
}

/// The shortest number above `low` and not above `high`.
fn between(low: f64, high: f64) -> f64 {
    let rounded = (1..=6).map(|digits| {
        let scale = 10_f64.powi(digits);
        (high * scale).floor() / scale
    });
    rounded.into_iter().find(|number| *number > low).unwrap_or(high)
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::case;
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn calibration_by_hand() {
        // Bin 0.9: 0.95 right, 0.91 wrong: stated (0.95+0.91)/2 = 0.93, right 1/2, apart 0.43.
        // Bin 0.5: 0.5 right, 0.5 right, 0.58 wrong: stated 1.58/3, right 2/3,
        // apart 2/3 - 1.58/3 = 0.42/3 = 0.14. ECE = (2 * 0.43 + 3 * 0.14) / 5 = 1.28 / 5 = 0.256.
        // Brier = (0.05^2 + 0.91^2 + 0.5^2 + 0.5^2 + 0.58^2) / 5
        //       = (0.0025 + 0.8281 + 0.25 + 0.25 + 0.3364) / 5 = 1.667 / 5 = 0.3334.
        let stated = |id, confidence, got| {
            let mut case = case(id, "a", got);
            case.confidence = Some(confidence);
            case
        };
        let mut cases = vec![
            stated("1", 0.95, "a"),
            stated("2", 0.91, "b"),
            stated("3", 0.5, "a"),
            stated("4", 0.5, "a"),
            stated("5", 0.58, "b"),
        ];
        // One answer states nothing: it counts in the coverage only.
        cases.push(case("6", "a", "unknown"));
        let found = reliability(&cases);
        assert_eq!(found.answers, 5);
        near(found.ece, 0.256);
        near(found.brier, 0.3334);
        let sure: Vec<&str> = found.sure_and_wrong.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(sure, ["2"]);
        // From 0.91 on: 2 of 6 answered, 1 of 2 wrong; from 0.5 on: 5 of 6, 2 of 5 wrong.
        let at = |level: f64| {
            let point =
                found.risk_coverage.iter().find(|point| point.confidence.total_cmp(&level).is_eq());
            point.map(|point| (point.coverage, point.risk))
        };
        assert_eq!(at(0.91), Some((2.0 / 6.0, 1.0 / 2.0)));
        assert_eq!(at(0.5), Some((5.0 / 6.0, 2.0 / 5.0)));
        assert_eq!(found.risk_coverage.len(), 4, "0.95, 0.91, 0.58, 0.5");
    }

    #[test]
    fn nothing_stated_is_nothing_measured() {
        let found = reliability(&[]);
        assert_eq!((found.answers, found.ece, found.brier), (0, None, None));
        assert!(found.bins.is_empty() && found.risk_coverage.is_empty());
        assert!(table(&[]).rows.is_empty());
    }

    #[test]
    fn adjacent_violators_are_pooled() {
        // Scores 1 to 6 go wrong right wrong right right right: 0 1 0 1 1 1. 1 before 0 violates:
        // 2 and 3 become 1/2; 0 < 1/2 < 1, and equal shares at the top are one pool.
        let points =
            [(0.1, false), (0.2, true), (0.3, false), (0.4, true), (0.5, true), (0.6, true)];
        let found: Vec<(f64, u32, u32)> =
            pools(&points).iter().map(|pool| (pool.lowest, pool.right, pool.of)).collect();
        assert_eq!(found, [(0.1, 0, 1), (0.2, 1, 2), (0.4, 3, 3)]);
        // The order of the cases changes nothing, and a falling set is one pool of 1/2.
        let mut turned = points;
        turned.reverse();
        assert_eq!(pools(&turned), pools(&points));
        assert_eq!(pools(&[(0.1, true), (0.9, false)]).len(), 1);
        // One score with both outcomes stays together.
        assert_eq!(pools(&[(0.5, false), (0.5, true)]).len(), 1);
    }

    #[test]
    fn a_row_holds_thirty_cases_and_its_bound_lies_between() {
        // 32 wrong at 0.313, 29 of 30 right at 0.5777, 3 right at 0.9: the top is too small and
        // joins: 32 of 33. The bound is the shortest number in (0.313, 0.5777]: 0.5.
        let mut points = vec![(0.313, false); 32];
        points.extend([(0.5777, true); 29]);
        points.push((0.5777, false));
        points.extend([(0.9, true); 3]);
        assert_eq!(
            rows(&points),
            [Row { from: 0.0, right: 0, of: 32 }, Row { from: 0.5, right: 32, of: 33 }]
        );
        assert_eq!(format!("{} {}", between(0.5, 0.5777), between(0.5777, 0.5778)), "0.57 0.5778");
        let shares: Vec<f64> = [0.0, 0.4, 0.6, 1.0]
            .iter()
            .filter_map(|score| look_up(&rows(&points), *score))
            .collect();
        assert_eq!(shares, [0.0, 0.0, 32.0 / 33.0, 32.0 / 33.0]);
    }

    #[test]
    fn cases_of_one_source_are_never_on_both_sides() {
        // All from one source: the other folds are empty and nothing can be foretold.
        let mut cases = Vec::new();
        for number in 0..20 {
            let mut one = case(&number.to_string(), "a", "a");
            one.first = Some("a".to_owned());
            one.score = Some(0.8);
            one.source = "one".to_owned();
            cases.push(one);
        }
        let made = table(&cases);
        assert_eq!((made.cases, made.cross_validated_ece), (20, None));
        assert_eq!(made.rows, [Row { from: 0.0, right: 20, of: 20 }]);
    }
}
