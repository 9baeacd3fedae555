//! Small English: plurals, lists, and the word that was probably meant.

/// A number with its noun: `1 job`, `2 jobs`, `3 tries`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    let before_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match before_y {
        Some(stem) => format!("{number} {stem}ies"),
        None if noun.ends_with(['s', 'x', 'z']) || noun.ends_with("ch") || noun.ends_with("sh") => {
            format!("{number} {noun}es")
        }
        None => format!("{number} {noun}s"),
    }
}

/// Joins words as a sentence lists them: `a`, `a and b`, `a, b and c`.
pub fn join<S: AsRef<str>>(words: &[S], conjunction: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {conjunction} {}", first.join(", "), last.as_ref())
        }
    }
}

/// The candidate that was probably meant by `word`: the nearest by edits, if a third of the word
/// or less is wrong. Of equally near ones the first.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (edits(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other.
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = last[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(before_last[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!(count(1, "job"), "1 job");
        assert_eq!(count(0, "job"), "0 jobs");
        assert_eq!(count(2, "query"), "2 queries");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(count(2, "match"), "2 matches");
        assert_eq!(count(2, "box"), "2 boxes");
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(join::<&str>(&[], "or"), "");
        assert_eq!(join(&["a"], "or"), "a");
        assert_eq!(join(&["a", "b"], "or"), "a or b");
        assert_eq!(join(&["a", "b", "c"], "and"), "a, b and c");
    }

    #[test]
    fn a_slip_finds_the_word_that_was_meant() {
        let families = ["cuda_oom", "host_oom", "time_limit", "disk_quota"];
        assert_eq!(did_you_mean("cuda_omo", families), Some("cuda_oom"));
        assert_eq!(did_you_mean("Timelimit", families), Some("time_limit"));
        assert_eq!(did_you_mean("network", families), None);
        assert_eq!(did_you_mean("", families), None);
    }
}
