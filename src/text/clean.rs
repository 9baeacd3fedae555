//! Hostile bytes made fit for a terminal.
//!
//! Logs, job names and comments come from anybody, so nothing in them may move a cursor, change a
//! title or reorder what a reader sees. Escape sequences are those of ECMA-48 and xterm; the
//! direction controls are Unicode's (UAX #9). What is dropped leaves no mark: the reader wants the
//! words.

use std::borrow::Cow;

/// Text of one line without anything that could steer a terminal.
///
/// Invalid UTF-8 becomes the replacement character; escape sequences, control characters,
/// direction overrides and invisible characters go; tabs and line ends become a blank each.
pub fn printable(bytes: &[u8]) -> String {
    let special = bytes.iter().filter(|&&byte| !(0x20..0x7f).contains(&byte)).count();
    if special == 0 {
        // The common case, and all of most logs.
        return String::from_utf8_lossy(bytes).into_owned();
    }
    visible(&String::from_utf8_lossy(bytes))
        .map(|(_, c)| match c {
            '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
            c => c,
        })
        .collect()
}

/// The characters that are neither part of an escape sequence nor invisible, each with its place; tabs
/// and line ends are among them.
pub(super) fn visible(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut rest = text;
    // Up to here nothing closes a control string: what is known is not looked for again.
    let mut open = 0;
    std::iter::from_fn(move || {
        while let Some(c) = rest.chars().next() {
            let at = text.len() - rest.len();
            let after = &rest[c.len_utf8()..];
            let mut string = |after: &'_ str| -> usize {
                let from = text.len() - after.len();
                let end = if from >= open { string_end(after) } else { Err(0) };
                open = open.max(from + end.err().unwrap_or(0));
                end.unwrap_or(0)
            };
            rest = match c {
                '\x1b' => match after.strip_prefix(['P', 'X', ']', '^', '_']) {
                    Some(after) => &after[string(after)..],
                    None => skip_escape(after),
                },
                '\u{9b}' => skip_csi(after),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => &after[string(after)..],
                _ => after,
            };
            let blank = matches!(c, '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
            if blank || !c.is_control() && !is_invisible(c) {
                return Some((at, c));
            }
        }
        None
    })
}

/// Bytes as text, invalid ones as the replacement character. Text that is long and sound, as what
/// programs print mostly is, is checked many bytes at a time.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// One line of a log as a terminal would finally show it: [`printable`], and of a progress bar
/// that redraws itself with carriage returns only the last state that is not blank.
pub fn clean_line(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut last = String::new();
    for segment in bytes.rsplit(|&byte| byte == b'\r') {
        last = printable(segment);
        if !last.trim().is_empty() {
            break;
        }
    }
    last
}

/// Whether a character could steer a terminal or hide what a reader sees.
pub fn steers(c: char) -> bool {
    c.is_control() || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters without a glyph that reorder, join or hide text.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// What follows the sequence that an ESC began, unless that is a control string.
fn skip_escape(rest: &str) -> &str {
    let mut chars = rest.chars();
    match chars.next() {
        Some('[') => skip_csi(chars.as_str()),
        // Intermediate bytes and a final one, as in ESC ( B.
        Some(' '..='/') => {
            let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            rest.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(rest)
        }
        Some('0'..='~') => chars.as_str(),
        _ => rest,
    }
}

/// What follows a control sequence: parameters, intermediates, one final character.
fn skip_csi(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='?'));
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// Where a control string such as a window title ends. One that is not closed on its line loses only
/// its introducer, so that nobody can hide the rest of a line behind it: how far that was looked for.
fn string_end(rest: &str) -> Result<usize, usize> {
    let found = rest.char_indices().find_map(|(at, c)| match c {
        '\x07' | '\u{9c}' => Some(Ok(at + c.len_utf8())),
        '\x1b' if rest[at..].starts_with("\x1b\\") => Some(Ok(at + 2)),
        '\n' => Some(Err(at)),
        _ => None,
    });
    found.unwrap_or(Err(rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_titles_and_cursor_moves_disappear() {
        for (raw, text) in [
            (&b"\x1b[31mred\x1b[0m"[..], "red"),
            (b"\x1b]0;owned\x07title", "title"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"a\x1b[2J\x1b[1;1Hb\x1b(Bc\x1b7d\x1bMe", "abcde"),
            (b"\x1b[?25lhidden\x1b[38;2;1;2;3mx", "hiddenx"),
            (b"\xc2\x9b31mred", "red"),
            (b"\x1bPq#0\x1b\\sixel", "sixel"),
            (b"end\x1b", "end"),
            (b"end\x1b[12", "end"),
        ] {
            assert_eq!(printable(raw), text, "{raw:?}");
        }
    }

    #[test]
    fn an_unclosed_title_cannot_hide_the_rest_of_a_line() {
        assert_eq!(printable(b"\x1b]0;CUDA out of memory"), "0;CUDA out of memory");
        assert_eq!(printable(b"\x1b]0;CUDA\nout of\x07 memory"), "0;CUDA out of memory");
    }

    #[test]
    fn titles_that_never_end_cost_no_more_than_their_length() {
        let line = "\x1b]a".repeat(1 << 20);
        assert_eq!(printable(line.as_bytes()).len(), 1 << 20);
    }

    #[test]
    fn controls_and_direction_overrides_go_and_blanks_stay() {
        assert_eq!(printable(b"a\tb\x00c\x08d\x7fe"), "a bcde");
        assert_eq!(printable("x\u{202e}gnp\u{2066}\u{200b}\u{feff}.exe".as_bytes()), "xgnp.exe");
        assert_eq!(printable("Grüße 漢字 🚀".as_bytes()), "Grüße 漢字 🚀");
        assert_eq!(printable(b"caf\xe9"), "caf\u{fffd}");
        assert_eq!(printable(b"two\nlines"), "two lines");
    }

    #[test]
    fn a_progress_bar_is_its_last_state() {
        assert_eq!(clean_line(b"\rprogress 1%\rprogress 2%\rprogress 3%\n"), "progress 3%");
        assert_eq!(clean_line(b"\r 99%\rRuntimeError: boom\r\n"), "RuntimeError: boom");
        assert_eq!(clean_line(b"windows line\r\n"), "windows line");
        assert_eq!(clean_line(b"50%\r      \r"), "50%");
        assert_eq!(clean_line(b"\0\0sparse\0"), "sparse");
    }

    proptest! {
        #[test]
        fn no_byte_can_steer_a_terminal(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for text in [printable(&bytes), clean_line(&bytes)] {
                prop_assert!(!text.chars().any(|c| c.is_control() || is_invisible(c)));
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing(text in "[\\x1b\\[\\];0-9a-z\\r\u{9b}\\x07]{0,60}") {
            let once = printable(text.as_bytes());
            prop_assert_eq!(printable(once.as_bytes()), once);
        }
    }
}
