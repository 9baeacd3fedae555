//! Other names for things, the same one each time.

use aho_corasick::{AhoCorasick, MatchKind};

/// What is called how from now on.
#[derive(Debug)]
pub struct Renames {
    finder: Option<AhoCorasick>,
    /// For each pattern: the new name, and whether a number must follow (the name is a stem).
    names: Vec<(String, bool)>,
}

impl Renames {
    /// `words` are replaced where they stand alone; `stems` where digits or a bracket of numbers
    /// follow, which stay.
    pub fn new(words: &[(String, String)], stems: &[(String, String)]) -> Self {
        let all: Vec<(&str, &str, bool)> = words
            .iter()
            .map(|(old, new)| (old.as_str(), new.as_str(), false))
            .chain(stems.iter().map(|(old, new)| (old.as_str(), new.as_str(), true)))
            .filter(|(old, ..)| !old.is_empty())
            .collect();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(all.iter().map(|(old, ..)| old))
            .ok()
            .filter(|_| !all.is_empty());
        Self {
            finder,
            names: all.iter().map(|(_, new, stem)| ((*new).to_owned(), *stem)).collect(),
        }
    }

    /// A text with every name replaced; of names that overlap the longest counts.
    pub fn apply(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return text.to_owned() };
        let bytes = text.as_bytes();
        // Standing alone: names are of letters, digits and these.
        let joins = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let mut found: Vec<(usize, usize, usize)> = finder
            .find_overlapping_iter(text)
            .filter(|hit| {
                let starts = hit.start() == 0 || !joins(bytes[hit.start() - 1]);
                let next = bytes.get(hit.end()).copied();
                let ends = if self.names[hit.pattern().as_usize()].1 {
                    next.is_some_and(|byte| byte.is_ascii_digit() || byte == b'[')
                } else {
                    // A full stop may end a sentence.
                    next.is_none_or(|byte| !joins(byte) || byte == b'.')
                };
                starts && ends
            })
            .map(|hit| (hit.start(), hit.end(), hit.pattern().as_usize()))
            .collect();
        found.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
        let (mut renamed, mut at) = (String::with_capacity(text.len()), 0);
        for (start, end, pattern) in found {
            if start >= at {
                renamed.push_str(&text[at..start]);
                renamed.push_str(&self.names[pattern].0);
                at = end;
            }
        }
        renamed.push_str(&text[at..]);
        renamed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(names: &[(&str, &str)]) -> Vec<(String, String)> {
        names.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect()
    }

    #[test]
    fn names_are_replaced_where_they_stand_alone() {
        let words = pairs(&[("alice", "user1"), ("al", "user2"), ("pi-okafor", "account1")]);
        let renames = Renames::new(&words, &pairs(&[("cn-", "node-a"), ("c", "node-b")]));
        for (before, after) in [
            ("UserId=alice(1001) al,alice", "UserId=user1(1001) user2,user1"),
            ("malice alicex alice-2", "malice alicex alice-2"),
            ("AllowAccounts=pi-okafor,x", "AllowAccounts=account1,x"),
            (
                "NodeList=cn-[001-003],c7 NodeName=cn-12",
                "NodeList=node-a[001-003],node-b7 NodeName=node-a12",
            ),
            ("cpu=4 cn-x", "cpu=4 cn-x"),
            ("Reason=ask alice.", "Reason=ask user1."),
        ] {
            assert_eq!(renames.apply(before), after);
        }
        assert_eq!(Renames::new(&[], &[]).apply("alice"), "alice");
    }

    proptest! {
        #[test]
        fn any_text_is_renamed(text in "\\PC{0,60}") {
            let renames = Renames::new(&pairs(&[("a", "b"), ("ab", "c")]), &pairs(&[("n", "m")]));
            let _ = renames.apply(&text);
        }
    }
}
