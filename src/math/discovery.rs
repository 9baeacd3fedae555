//! Many tests at once: some of them succeed by chance.

/// The p-values adjusted for how many there are, in the order given: calling those up to `q`
/// findings, an expected share of at most `q` of them is wrong.
///
/// Source: Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal
/// Statistical Society B 57 (1995) 289-300.
pub fn adjusted(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let mut adjusted = vec![1.0; values.len()];
    let mut least = 1.0_f64;
    for (below, index) in order.into_iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "counts of tests are far below 2^53")]
        let factor = values.len() as f64 / (values.len() - below) as f64;
        least = least.min(values[index] * factor);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper_has_four_findings() {
        // Section 4.1: of these 15 the procedure rejects four at 0.05 (Bonferroni's three).
        let values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let found = adjusted(&values);
        assert_eq!(found.iter().filter(|value| **value <= 0.05).count(), 4);
        // 0.0095 x 15 / 4.
        assert!((found[3] - 0.035_625).abs() < 1e-12);
        let mut backwards = values;
        backwards.reverse();
        let mut other = adjusted(&backwards);
        other.reverse();
        assert_eq!(other, found);
        assert!(adjusted(&[]).is_empty());
    }
}
