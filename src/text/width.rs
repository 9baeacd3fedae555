//! Columns of a terminal: width, padding, cutting, wrapping.
//!
//! Widths are Unicode's (UAX #11) without the ambiguous-wide rule of East Asian locales. Expects
//! text that [`super::printable`] has been over.

use std::iter::repeat_n;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns a text takes.
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) { text.len() } else { text.width() }
}

/// Fills with blanks on the right up to `columns`; text that is wider stays as it is.
pub fn pad(text: &str, columns: usize) -> String {
    let mut filled = String::with_capacity(text.len().max(columns));
    filled.push_str(text);
    filled.extend(repeat_n(' ', columns.saturating_sub(width(text))));
    filled
}

/// Fills with blanks on the left up to `columns`, as numbers want it.
pub fn pad_left(text: &str, columns: usize) -> String {
    let mut filled = String::with_capacity(text.len().max(columns));
    filled.extend(repeat_n(' ', columns.saturating_sub(width(text))));
    filled.push_str(text);
    filled
}

/// Cuts to at most `columns`; what was cut shows as an ellipsis.
pub fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = take_columns(text, columns.saturating_sub(1)).to_owned();
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// Breaks text into lines of at most `columns`, each beginning with `indent` blanks. Breaks at
/// blanks, but not between a number and its per cent sign, and inside a word only when the word alone
/// is too long. Line ends in the text are kept.
pub fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let margin = " ".repeat(indent);
    let room = columns.saturating_sub(indent).max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut words = paragraph.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let counts = word.ends_with(|last: char| last.is_ascii_digit());
            let sign = words.next_if(|next| counts && next.starts_with('%'));
            let joined = sign.map(|sign| format!("{word} {sign}"));
            let mut word = joined.as_deref().unwrap_or(word);
            let needed = width(word) + usize::from(!line.is_empty());
            if width(&line) + needed > room && !line.is_empty() {
                lines.push(format!("{margin}{line}"));
                line.clear();
            }
            while width(word) > room {
                let mut head = take_columns(word, room);
                if head.is_empty() {
                    // One character wider than the room: it stands alone.
                    head = &word[..word.chars().next().map_or(0, char::len_utf8)];
                }
                lines.push(format!("{margin}{head}"));
                word = &word[head.len()..];
            }
            if !line.is_empty() && !word.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if line.is_empty() {
            if paragraph.trim().is_empty() {
                lines.push(String::new());
            }
        } else {
            lines.push(format!("{margin}{line}"));
        }
    }
    lines
}

/// The longest beginning that takes at most `columns`.
fn take_columns(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(width("漢字"), 4);
        assert_eq!(pad("漢字", 6), "漢字  ");
        assert_eq!(pad_left("7", 3), "  7");
        assert_eq!(truncate("漢字漢字", 5), "漢字…");
        assert_eq!(truncate("short", 5), "short");
        assert_eq!(truncate("longer", 4), "lon…");
        assert_eq!(truncate("longer", 0), "");
    }

    #[test]
    fn text_wraps_at_blanks_and_keeps_its_paragraphs() {
        assert_eq!(wrap("one two three", 9, 2), ["  one two", "  three"]);
        assert_eq!(wrap("a\n\nb", 10, 0), ["a", "", "b"]);
        assert_eq!(wrap("abcdefgh ij", 5, 1), [" abcd", " efgh", " ij"]);
        assert!(wrap("", 80, 2).is_empty());
        assert_eq!(wrap("rate 4.2 % of those", 8, 0), ["rate", "4.2 % of", "those"]);
        // A sign of three columns where there is room for two stands alone.
        assert_eq!(wrap("\u{17d8}", 4, 2), ["  \u{17d8}"]);
    }

    proptest! {
        #[test]
        fn no_wrapped_line_is_too_wide(text in "\\PC{0,80}", columns in 8usize..60) {
            for line in wrap(&text, columns, 2) {
                prop_assert!(width(&line) <= columns);
            }
            prop_assert!(width(&truncate(&text, columns)) <= columns);
        }
    }
}
