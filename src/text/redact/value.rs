//! What a telling name is given, and whether that is a secret or stands for one.

use std::ops::Range;

use super::bytes::{base64, run, run_before, skip, whole_run, word, word_before};
use super::name::{Kind, Name};

/// How a value follows its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=`, `:=`, `=>`, or the end of a tag.
    Equals,
    Colon,
    /// A blank, behind an option or a word that sets.
    Blank,
    /// A comma, in a call with two texts.
    Comma,
}

/// A value and how it was written.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) range: Range<usize>,
    pub(super) quoted: bool,
}

/// The secret that a name is given. What it is shows near the name: only a secret is read to its end, so
/// that none is read twice.
pub(super) fn secret(bytes: &[u8], name: &Name) -> Option<Range<usize>> {
    const NEAR: usize = 512;
    let near = &bytes[..bytes.len().min(name.range.end + NEAR)];
    let found = secret_in(near, name)?;
    // The last signs decide where it ends.
    if near.len() < bytes.len() { secret_in(bytes, name) } else { Some(found) }
}

fn secret_in(bytes: &[u8], name: &Name) -> Option<Range<usize>> {
    let (sign, from) = sign(bytes, name)?;
    let mut value = if bytes[..name.range.start].ends_with(b"<") && bytes[from - 1] == b'>' {
        Value { range: run(bytes, from, |byte| !b"<\n".contains(&byte)), quoted: true }
    } else {
        Value::at(bytes, from)
    };
    let text = &bytes[value.range.clone()];
    if text.is_empty() || is_reference(text) || is_code(text) || name.is(bytes, text) {
        return None;
    }
    match name.kind {
        Kind::Authorization => return authorization(bytes, value),
        Kind::Cookie => {
            if !value.quoted {
                let line = |byte| !b"\n\r'\"".contains(&byte);
                value.range = whole_run(bytes, value.range.start, line);
            }
            let sign = bytes[value.range.clone()].iter().position(|&byte| byte == b'=')?;
            return Some(value.range.start + sign + 1..value.range.end);
        }
        _ => {}
    }
    is_secret(bytes, name, sign, &value).then_some(value.range)
}

/// Where the value begins.
fn sign(bytes: &[u8], name: &Name) -> Option<(Sign, usize)> {
    let mut at = name.range.end;
    let quote = skip(bytes, at, b"\\");
    let named = matches!(bytes.get(quote), Some(b'"' | b'\''));
    if named {
        at = quote + 1;
    }
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    let gap = skip(bytes, at, b" \t");
    let blanks = |from| skip(bytes, from, b" \t");
    Some(match bytes.get(gap)? {
        b'=' => {
            let from = skip(bytes, gap + 1, b"=>");
            (Sign::Equals, if name.is_option { from } else { blanks(from) })
        }
        b':' if bytes.get(gap + 1) == Some(&b'=') => (Sign::Equals, blanks(gap + 2)),
        b':' if bytes.get(gap + 1) == Some(&b':') => return None,
        b':' => (Sign::Colon, blanks(gap + 1)),
        b'>' if bytes[..name.range.start].ends_with(b"<") => (Sign::Equals, gap + 1),
        b'%' if bytes[gap + 1..].starts_with(b"3D") || bytes[gap + 1..].starts_with(b"3d") => {
            (Sign::Equals, gap + 3)
        }
        b',' if named => {
            let from = blanks(gap + 1);
            matches!(bytes.get(from), Some(b'"' | b'\'' | b'\\')).then_some((Sign::Comma, from))?
        }
        b'-' => return None,
        _ if gap > at && (name.is_option || is_set(bytes, name)) => (Sign::Blank, gap),
        _ => return None,
    })
}

/// Whether the words before say that a value follows after a blank: `setenv HF_TOKEN x`, and `login me
/// password x` as in `.netrc`.
fn is_set(bytes: &[u8], name: &Name) -> bool {
    let before = word_before(bytes, name.range.start);
    let says = |word: &Range<usize>, words: &[&[u8]]| {
        words.iter().any(|known| bytes[word.clone()].eq_ignore_ascii_case(known))
    };
    let dotted = bytes[..name.range.start].ends_with(b".");
    if name.is_setting && says(&before, &[b"set", b"setenv", b"env", b"config"]) || dotted {
        return !dotted || {
            let whole = run_before(bytes, name.range.start, 256, |byte| byte > b' ');
            says(&word_before(bytes, whole.start), &[b"config"])
        };
    }
    name.kind == Kind::Password && says(&word_before(bytes, before.start), &[b"login"])
}

/// Whether the value of a name is a secret.
fn is_secret(bytes: &[u8], name: &Name, sign: Sign, value: &Value) -> bool {
    let text = &bytes[value.range.clone()];
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = text.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let mixed = |least: usize| text.len() >= least && digits > 0 && letters > 0;
    if sign == Sign::Comma {
        // Names of two fields stand beside each other, too.
        return name.is_setting && mixed(8);
    }
    // "invalid token: unexpected end" is prose.
    let bare = sign == Sign::Colon && !value.quoted;
    let prose = bare && !is_alone(bytes, name, value);
    match name.kind {
        Kind::Password => !prose || name.is_setting || mixed(6),
        Kind::Secret => !prose || mixed(8),
        Kind::Pass => {
            // "pass=3 fail=0", "pass=12.5s"
            let unit = text.iter().skip_while(|b| b.is_ascii_digit() || b"./,".contains(b)).count();
            let count = text[0].is_ascii_digit() && unit <= 3;
            let before = word_before(bytes, name.range.start);
            let to_openssl = bytes[before].starts_with(b"-pass");
            !count
                && (sign != Sign::Colon
                    || name.is_setting
                    || to_openssl
                    || value.quoted && letters > 0)
        }
        Kind::Pwd => !is_path(text) && (!prose || name.is_setting || mixed(6)),
        Kind::Token => text.len() >= 8 && letters > 0 && (!bare || digits > 0),
        Kind::Key => !is_path(text) && (!prose || mixed(8)),
        Kind::VariableKey => {
            let least = if letters > 0 { 6 } else { 8 };
            text.len() >= least && !is_path(text) && (!prose || digits > 0)
        }
        Kind::AnyKey => mixed(16) && !is_path(text),
        Kind::Signed => text.len() >= 16 && digits > 0 && !is_path(text),
        Kind::Login => {
            let upper = text.iter().any(u8::is_ascii_uppercase);
            let lower = text.iter().any(u8::is_ascii_lowercase);
            let packed = text.iter().all(|&byte| base64(byte)) && text.len().is_multiple_of(4);
            packed && upper && lower && text.len() >= 12
        }
        Kind::Authorization | Kind::Cookie => false,
    }
}

/// Whether a line consists of the name and the value, as in YAML.
fn is_alone(bytes: &[u8], name: &Name, value: &Value) -> bool {
    let indent = run_before(bytes, name.range.start, 200, |byte| b" \t-+#>'\"".contains(&byte));
    let first = bytes[..indent.start].last().is_none_or(|&byte| byte == b'\n');
    let rest = skip(bytes, value.range.end, b" \t\r,");
    first && bytes.get(rest).is_none_or(|&byte| byte == b'\n')
}

/// What stands behind `Authorization:`: the scheme stays (RFC 9110).
fn authorization(bytes: &[u8], value: Value) -> Option<Range<usize>> {
    const SCHEMES: [&[u8]; 10] = [
        b"basic",
        b"bearer",
        b"digest",
        b"token",
        b"negotiate",
        b"ntlm",
        b"apikey",
        b"oauth",
        b"aws4-hmac-sha256",
        b"sharedkey",
    ];
    let text = &bytes[value.range.clone()];
    let scheme = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    let known = SCHEMES.iter().any(|known| text[..scheme].eq_ignore_ascii_case(known));
    let from = value.range.start + scheme;
    if !known {
        let digit = text.iter().any(u8::is_ascii_digit);
        return (value.quoted || digit && text.len() >= 6).then_some(value.range);
    }
    let from = skip(bytes, from, b" \t");
    if value.quoted {
        return (from < value.range.end).then_some(from..value.range.end);
    }
    // A list goes on behind its commas.
    let mut rest = unquoted(bytes, from);
    let mut end = rest.end;
    while !rest.is_empty() && bytes.get(rest.end) == Some(&b',') {
        let next = skip(bytes, rest.end + 1, b" \t");
        if next == rest.end + 1 {
            break;
        }
        rest = unquoted(bytes, next);
        end = rest.end;
    }
    let credentials = from..end;
    (!is_reference(&bytes[credentials.clone()])).then_some(credentials)
}

impl Value {
    /// The value that begins at a position: in quotes, or up to the next blank.
    pub(super) fn at(bytes: &[u8], from: usize) -> Self {
        let prefixed = matches!(bytes.get(from), Some(b'b' | b'f' | b'r' | b'u'))
            && matches!(bytes.get(from + 1), Some(b'"' | b'\''));
        let from = from + usize::from(prefixed);
        let depth = skip(bytes, from, b"\\") - from;
        match bytes.get(from + depth) {
            Some(&quote @ (b'"' | b'\'')) => {
                let range = quoted(bytes, from + depth, depth, quote);
                Self { range, quoted: true }
            }
            _ => Self { range: unquoted(bytes, from), quoted: false },
        }
    }
}

/// What stands in quotes, to the end of the line where they are never closed. `depth` backslashes stand
/// before each of them, as in JSON in JSON.
fn quoted(bytes: &[u8], open: usize, depth: usize, quote: u8) -> Range<usize> {
    let triple = depth == 0 && bytes[open..].starts_with(&[quote; 3]);
    let start = open + if triple { 3 } else { 1 };
    let mut at = start;
    while let Some(&byte) = bytes.get(at).filter(|&&byte| byte != b'\n') {
        let slashes = whole_run(bytes, at, |byte| byte == b'\\').len();
        let closes = bytes.get(at + slashes) == Some(&quote);
        if closes && (if depth == 0 { slashes % 2 == 0 } else { slashes <= depth }) {
            let end = at + if depth == 0 { slashes } else { 0 };
            if !triple || bytes[at + slashes..].starts_with(&[quote; 3]) {
                return start..end;
            }
        }
        at += match slashes {
            0 if byte < 0x80 => 1,
            0 => bytes[at + 1..].iter().take_while(|&&byte| byte & 0xc0 == 0x80).count() + 1,
            _ if closes => slashes + 1,
            _ => slashes,
        };
    }
    start..at.min(bytes.len())
}

/// A value without quotes goes on to the blank. A bar ends it, as it ends the cells of tables; so do a
/// quote that closes what the value stands in, and a sign that another name and value follow.
pub(super) fn unquoted(bytes: &[u8], from: usize) -> Range<usize> {
    let from = from.min(bytes.len());
    let mut end = from;
    while let Some(&byte) = bytes.get(end) {
        let ends = match byte {
            0..=b' ' | b'|' => true,
            b'"' | b'\'' => {
                let next = skip(bytes, end + 1, b"\"'");
                bytes.get(next).is_none_or(|byte| *byte <= b' ' || b",:;)]}>|\\".contains(byte))
            }
            b'&' | b';' => {
                let next = bytes[end + 1..].iter().take(64).take_while(|&&byte| word(byte)).count();
                let sign = bytes.get(end + 1 + next);
                sign.is_none_or(|byte| *byte <= b' ' || next > 0 && *byte == b'=' || *byte == b'&')
            }
            _ => false,
        };
        if ends {
            break;
        }
        end += 1;
    }
    let closing = |byte: u8| b")]},;:'\"".contains(&byte);
    from..end - run_before(bytes, end, end - from, closing).len()
}

/// A value that stands for another one, or for none: `$VAR`, `<token>`, `None`, `****`.
pub(super) fn is_reference(text: &[u8]) -> bool {
    const NOTHING: [&[u8]; 7] =
        [b"none", b"null", b"nil", b"true", b"false", b"undefined", b"[redacted"];
    let encoded = || text.get(1..3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    match text {
        [] | [b'$' | b'<' | b'{', ..] => true,
        [b'%', ..] => !encoded(),
        _ => {
            NOTHING.iter().any(|word| text.eq_ignore_ascii_case(word))
                || text.iter().all(|&byte| byte == b'*')
        }
    }
}

/// Whether a value is an expression of a program, as the lines of a traceback show them.
fn is_code(text: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 8] = [
        b"os.",
        b"self.",
        b"args.",
        b"opts.",
        b"getpass",
        b"getenv(",
        b"process.env",
        b"settings.",
    ];
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// Whether a value says where something is. Keys in base64 may begin alike, but have other signs.
fn is_path(text: &[u8]) -> bool {
    let drive = || text.len() > 2 && text[0].is_ascii_alphabetic() && text[1] == b':';
    let named =
        [&b"/"[..], b"~", b"./", b"../", b"file:"].iter().any(|head| text.starts_with(head));
    (named || drive()) && text.len() != 40 && !text.iter().any(|byte| b"+=".contains(byte))
}
