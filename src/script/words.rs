//! One directive line cut into words, the way `sbatch` cuts it.
//!
//! Facts, each tried on sbatch 22.05: either quote groups, also in the middle of a word; a
//! backslash takes the next byte as it is, even within single quotes, but does not keep a blank in
//! the word; an unquoted `#` ends the line, even within a word; so does an empty word (`""`, or a
//! backslash at the end), silently; nothing else is special.

use std::ops::Range;

/// A word, with the place of every byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The bytes after quotes and backslashes are resolved.
    pub text: Vec<u8>,
    /// For every byte of `text`, where it stands in the script.
    pub places: Vec<usize>,
    /// The word as written, quotes included.
    pub span: Range<usize>,
    /// The line, from 1.
    pub line: usize,
}

impl Word {
    /// The place of `text[from..]` as written, where it can be replaced by plain characters
    /// without breaking a quote; `None` where it cannot.
    pub(super) fn written(&self, from: usize) -> Option<Range<usize>> {
        let places = self.places.get(from..)?;
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            // An empty value: only at the very end of the word is there a place for one.
            let end = self.places.last().map_or(self.span.start, |place| place + 1);
            return (end == self.span.end).then_some(end..end);
        };
        let contiguous = last + 1 - first == places.len();
        if contiguous {
            return Some(*first..last + 1);
        }
        // Quotes or backslashes within the value: all of it goes, if none was opened before it.
        let before = from.checked_sub(1).and_then(|index| self.places.get(index));
        let start = before.map_or(self.span.start, |place| place + 1);
        let prefix_is_plain = start - self.span.start == from;
        prefix_is_plain.then_some(start..self.span.end)
    }
}

/// What a line of directives is cut into.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// The words.
    pub words: Vec<Word>,
    /// A quote was opened and not closed: `sbatch` refuses the script.
    pub unmatched: bool,
    /// Something stands behind an empty word and is lost.
    pub lost: bool,
}

/// Cuts `line`, which begins at byte `offset` of the script, into words.
pub(super) fn cut(line: &[u8], offset: usize, number: usize) -> Cut {
    let mut cut = Cut::default();
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        if is_space(byte) {
            at += 1;
            continue;
        }
        if byte == b'#' {
            break;
        }
        let mut word = Word { text: vec![], places: vec![], span: 0..0, line: number };
        let start = at;
        let mut quote = None;
        let mut escaped = false;
        while let Some(&byte) = line.get(at) {
            if quote.is_none() && is_space(byte) {
                break;
            }
            let plain = match (escaped, quote) {
                (true, _) => {
                    escaped = false;
                    true
                }
                (false, _) if byte == b'\\' => {
                    escaped = true;
                    false
                }
                (false, Some(open)) if byte == open => {
                    quote = None;
                    false
                }
                (false, None) if byte == b'"' || byte == b'\'' => {
                    quote = Some(byte);
                    false
                }
                (false, None) if byte == b'#' => break,
                (false, _) => true,
            };
            if plain {
                word.text.push(byte);
                word.places.push(offset + at);
            }
            at += 1;
        }
        word.span = offset + start..offset + at;
        cut.unmatched |= quote.is_some();
        if word.text.is_empty() {
            cut.lost = line.get(at..).is_some_and(|rest| !rest.trim_ascii().is_empty());
            break;
        }
        cut.words.push(word);
    }
    cut
}

/// What C's `isspace` takes for a blank.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let words = cut(line.as_bytes(), 0, 1).words;
        words.iter().map(|word| String::from_utf8_lossy(&word.text).into_owned()).collect()
    }

    #[test]
    fn words_are_cut_where_sbatch_cuts_them() {
        // What `sbatch -v --test-only` (22.05) printed for these lines.
        assert_eq!(texts("-t 10 # comment --mem=99"), ["-t", "10"]);
        assert_eq!(texts("--mem=100#x"), ["--mem=100"]);
        assert_eq!(
            texts(r#"--mem="100"M --comment=a\"b --time='5'"#),
            ["--mem=100M", "--comment=a\"b", "--time=5"]
        );
        assert_eq!(texts(r"--job-name=a\ b"), ["--job-name=a", "b"]);
        assert_eq!(texts(r"--comment='a\'b c'"), ["--comment=a'b c"]);
        assert_eq!(texts(r"--comment=a\#b --mem=5"), ["--comment=a#b", "--mem=5"]);
        assert_eq!(texts(r#""--mem=100""#), ["--mem=100"]);
        assert_eq!(texts(r#"--comment="a # b" # c "unmatched"#), ["--comment=a # b"]);
        assert_eq!(texts("\t--mem=5 \\\r"), ["--mem=5"]);
        assert_eq!(texts("--mem=5 \"\" --time=3"), ["--mem=5"]);
        assert!(cut(b"--comment=\"abc", 0, 1).unmatched);
    }

    #[test]
    fn a_value_keeps_the_quotes_around_it() {
        let written = |line: &str| {
            let word = cut(line.as_bytes(), 0, 1).words.swap_remove(0);
            let from = word.text.iter().position(|byte| *byte == b'=').map_or(0, |at| at + 1);
            word.written(from).map(|span| line[span].to_owned())
        };
        assert_eq!(written("--mem=100").as_deref(), Some("100"));
        assert_eq!(written("--mem=\"100\"").as_deref(), Some("100"));
        assert_eq!(written("\"--mem=100\"").as_deref(), Some("100"));
        assert_eq!(written("--mem=\"100\"M").as_deref(), Some("\"100\"M"));
        assert_eq!(written("\"--mem=10\"0M"), None);
        assert_eq!(written("--mem=").as_deref(), Some(""));
    }
}
