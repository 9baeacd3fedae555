//! Compressed lists of hosts: `n[01-03,05]` to names.
//!
//! The form is Slurm's. Expected results in the tests are those of `scontrol show hostnames` of
//! Slurm 22.05, except that text after a bracket (`n[1-2]-int`), which that version refuses and
//! later ones take, is taken.

use std::collections::{BTreeSet, HashMap};

/// Why a list was not expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostlistError {
    /// It is not a list of hosts.
    #[error("'{text}' is not a list of hosts")]
    Malformed {
        /// The list as it was given.
        text: String,
    },
    /// It names more hosts than the caller wants.
    #[error("'{text}' names more than {cap} hosts")]
    TooMany {
        /// The list as it was given.
        text: String,
        /// How many were allowed.
        cap: usize,
    },
}

/// The names in a compressed list, in its order; at most `cap` of them.
///
/// The words that stand for "no nodes" (`(null)`, `None assigned`) give no names.
pub fn expand(list: &str, cap: usize) -> Result<Vec<String>, HostlistError> {
    let text = list.trim();
    if matches!(text, "" | "(null)" | "None assigned" | "n/a") {
        return Ok(Vec::new());
    }
    let malformed = || HostlistError::Malformed { text: list.to_owned() };
    let mut names = Vec::new();
    for word in words(text).ok_or_else(malformed)? {
        let mut made = vec![String::new()];
        for piece in pieces(word) {
            let endings = match piece {
                Piece::Text(text) => vec![text.to_owned()],
                Piece::Numbers(ranges) => numbers(list, ranges, cap)?,
            };
            if names.len() + made.len().saturating_mul(endings.len()) > cap {
                return Err(HostlistError::TooMany { text: list.to_owned(), cap });
            }
            made = made
                .iter()
                .flat_map(|start| endings.iter().map(move |end| format!("{start}{end}")))
                .collect();
        }
        names.append(&mut made);
    }
    Ok(names)
}

/// Names as one compressed list, `n[01-03,05],login`: in the order in which each kind of name comes
/// first, its numbers in order, each once. [`expand`] gives the names back.
pub fn collapse<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    /// More digits do not fit in a number.
    const DIGITS: usize = 18;
    /// What stands before the numbers, and how many digits they have; none for a plain name.
    type Kind<'n> = (&'n str, usize);
    let mut order: Vec<Kind<'_>> = Vec::new();
    let mut numbers: HashMap<Kind<'_>, BTreeSet<u64>> = HashMap::new();
    for name in names {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (stem, digits) = name.split_at(stem.max(name.len().saturating_sub(DIGITS)));
        let kind = (stem, digits.len());
        let known = numbers.entry(kind).or_insert_with(|| {
            order.push(kind);
            BTreeSet::new()
        });
        known.extend(digits.parse::<u64>());
    }
    let listed: Vec<String> = order.iter().map(|kind| one_kind(*kind, &numbers[kind])).collect();
    listed.join(",")
}

fn one_kind((stem, width): (&str, usize), numbers: &BTreeSet<u64>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let run = |(first, last): &(u64, u64)| {
        if first == last {
            format!("{first:0width$}")
        } else {
            format!("{first:0width$}-{last:0width$}")
        }
    };
    match runs.as_slice() {
        [] => stem.to_owned(),
        [(first, last)] if first == last => format!("{stem}{first:0width$}"),
        runs => format!("{stem}[{}]", runs.iter().map(run).collect::<Vec<_>>().join(",")),
    }
}

enum Piece<'a> {
    Text(&'a str),
    Numbers(&'a str),
}

/// The comma-separated words outside brackets; `None` when the brackets do not match.
fn words(text: &str) -> Option<Vec<&str>> {
    let (mut found, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return None,
            ']' if !inside => return None,
            '[' | ']' => inside = !inside,
            ',' if !inside => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            c if c.is_whitespace() || c.is_control() => return None,
            _ => {}
        }
    }
    found.push(&text[start..]);
    found.retain(|word| !word.is_empty());
    (!inside).then_some(found)
}

fn pieces(word: &str) -> impl Iterator<Item = Piece<'_>> {
    // Brackets alternate: the words were checked.
    word.split(['[', ']']).enumerate().filter_map(|(index, part)| match (index % 2, part) {
        (1, ranges) => Some(Piece::Numbers(ranges)),
        (_, "") => None,
        (_, text) => Some(Piece::Text(text)),
    })
}

/// The numbers of `01-03,05`, padded as the lower end of each range is.
fn numbers(list: &str, ranges: &str, cap: usize) -> Result<Vec<String>, HostlistError> {
    let malformed = || HostlistError::Malformed { text: list.to_owned() };
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = number(low).zip(number(high)).ok_or_else(malformed)?;
        let more = last.checked_sub(first).ok_or_else(malformed)?;
        if more >= (cap - all.len()) as u64 {
            return Err(HostlistError::TooMany { text: list.to_owned(), cap });
        }
        let width = low.len();
        all.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(all)
}

fn number(text: &str) -> Option<u64> {
    // Not parse alone: it takes a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each pair was printed by `scontrol show hostnames` of Slurm 22.05.

    #[test]
    fn lists_expand_as_scontrol_does() {
        // F192, F194, F196, F197, F198, F199, F200: padding, several brackets, hyphens in names.
        for (list, hosts) in [
            ("n01", "n01"),
            ("n[01-03,05]", "n01 n02 n03 n05"),
            ("b04-[09-10]", "b04-09 b04-10"),
            ("nodeA,nodeB[001,003],nodeC", "nodeA nodeB001 nodeB003 nodeC"),
            ("rack[0-1]_blade[0-1]", "rack0_blade0 rack0_blade1 rack1_blade0 rack1_blade1"),
            ("foo-m11-16", "foo-m11-16"),
            ("n[08-11]", "n08 n09 n10 n11"),
            ("n[8-011]", "n8 n9 n10 n11"),
            ("n[9-10],n[099-101]", "n9 n10 n099 n100 n101"),
            ("n1,,n2", "n1 n2"),
            ("", ""),
        ] {
            assert_eq!(expand(list, 100).map(|names| names.join(" ")).as_deref(), Ok(hosts));
        }
        assert_eq!(expand("None assigned", 9), Ok(Vec::new()));
        assert_eq!(expand("(null)", 9), Ok(Vec::new()));
        let suffixed = expand("node[0001-0002]-int", 9).map(|names| names.join(" "));
        assert_eq!(suffixed.as_deref(), Ok("node0001-int node0002-int"));
    }

    #[test]
    fn what_scontrol_refuses_is_refused_with_its_text() {
        for list in ["n[3-1]", "n[]", "n[1,,2]", "n[a-b]", "n[1-3]]", "n[1-3", "n]1[", "n[[1]]"] {
            let error = Err(HostlistError::Malformed { text: list.to_owned() });
            assert_eq!(expand(list, 100), error, "{list}");
        }
    }

    #[test]
    fn a_huge_list_is_refused_before_it_is_built() {
        for list in ["n[0-18446744073709551615]", "a[0-9999]b[0-9999]c[0-9999]", "n[1-6]"] {
            assert!(matches!(expand(list, 5), Err(HostlistError::TooMany { .. })), "{list}");
        }
        assert_eq!(expand("n[1-5]", 5).map(|names| names.len()), Ok(5));
    }

    #[test]
    fn names_collapse_to_what_slurm_takes() {
        // `scontrol show hostlist c01,c02,c03,c07,gpu10` of Slurm 22.05 and 24.11: c[01-03,07],gpu10.
        let collapsed = |names: &str| collapse(names.split(','));
        assert_eq!(collapsed("c01,c02,c03,c07,gpu10"), "c[01-03,07],gpu10");
        assert_eq!(collapsed("n9,n10,n11,n9"), "n9,n[10-11]");
        assert_eq!(collapsed("login,b04-09,b04-10,login"), "login,b04-[09-10]");
        assert_eq!(collapse([]), "");
    }

    proptest! {
        #[test]
        fn what_collapses_expands_to_the_same(names in prop::collection::vec("[a-c]{1,2}[0-9]{0,3}", 1..30)) {
            let list = collapse(names.iter().map(String::as_str));
            let mut back = expand(&list, 1000).expect("a list of our own");
            let mut names = names;
            names.sort_unstable();
            names.dedup();
            back.sort_unstable();
            prop_assert_eq!(back, names, "{}", list);
        }

        #[test]
        fn any_text_is_expanded_or_refused(list in "[\\[\\]a,0-9-]{0,24}") {
            if let Ok(names) = expand(&list, 200) {
                prop_assert!(names.len() <= 200);
            }
        }
    }
}
