//! Tokens that are known by the form in which their issuers publish them.

use std::ops::Range;

use super::bytes::{base64, dashed, run, run_before, whole_run, word};
use super::value::is_reference;

/// What follows the prefix of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// At least so many bytes ...
    least: usize,
    /// ... of this kind.
    kind: fn(u8) -> bool,
    /// The prefix is short or a word: it must begin a word, and a digit must follow.
    common: bool,
}

const fn of(least: usize, kind: fn(u8) -> bool) -> Form {
    Form { least, kind, common: false }
}

const fn common(least: usize, kind: fn(u8) -> bool) -> Form {
    Form { least, kind, common: true }
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

fn path(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'/'
}

/// Compared exactly. AWS, GitHub, `GitLab`, Hugging Face, `OpenAI` and Anthropic, Slack, Google, npm,
/// `PyPI`, NVIDIA, Groq, Replicate, Docker, Vault, Stripe, `SendGrid`, Weights & Biases, age.
pub(super) const ISSUED: &[(&str, Form)] = &[
    ("AKIA", of(16, alphanumeric)),
    ("ASIA", of(16, alphanumeric)),
    ("ghp_", of(36, alphanumeric)),
    ("gho_", of(36, alphanumeric)),
    ("ghu_", of(36, alphanumeric)),
    ("ghs_", of(36, alphanumeric)),
    ("ghr_", of(36, alphanumeric)),
    ("github_pat_", of(22, word)),
    ("glpat-", of(20, dotted)),
    ("gldt-", of(20, dashed)),
    ("glrt-", of(20, dashed)),
    ("glptt-", of(20, dashed)),
    ("glcbt-", of(20, dashed)),
    ("hf_", of(30, alphanumeric)),
    ("sk-", common(20, dashed)),
    ("sk_live_", of(20, alphanumeric)),
    ("rk_live_", of(20, alphanumeric)),
    ("xoxa-", of(10, dashed)),
    ("xoxb-", of(10, dashed)),
    ("xoxd-", of(10, dashed)),
    ("xoxe-", of(10, dashed)),
    ("xoxp-", of(10, dashed)),
    ("xoxr-", of(10, dashed)),
    ("xoxs-", of(10, dashed)),
    ("xapp-", common(10, dashed)),
    ("hooks.slack.com/services/", of(20, path)),
    ("AIza", of(35, dashed)),
    ("ya29.", of(20, dashed)),
    ("GOCSPX-", of(20, dashed)),
    ("npm_", of(36, alphanumeric)),
    ("pypi-", of(50, dashed)),
    ("nvapi-", of(40, dashed)),
    ("gsk_", of(40, alphanumeric)),
    ("r8_", of(37, alphanumeric)),
    ("dckr_pat_", of(20, dashed)),
    ("hvs.", of(24, dashed)),
    ("SG.", common(40, dotted)),
    ("wandb_v1_", of(40, word)),
    ("AGE-SECRET-KEY-1", of(50, alphanumeric)),
];

impl Form {
    /// The token behind a prefix.
    pub(super) fn token(self, bytes: &[u8], prefix: &Range<usize>) -> Option<Range<usize>> {
        let begun = bytes[..prefix.start].last().is_some_and(|&byte| word(byte));
        if self.common && begun {
            return None;
        }
        let near = &bytes[..bytes.len().min(prefix.end + 256)];
        let value = run(near, prefix.end, self.kind);
        let digit = || bytes[value.clone()].iter().any(u8::is_ascii_digit);
        let known = value.len() >= self.least && (!self.common || digit());
        known.then(|| whole_run(bytes, prefix.end, self.kind))
    }
}

/// A JSON web token behind its `eyJ` (RFC 7519): three parts with dots between.
pub(super) fn web_token(bytes: &[u8], start: &Range<usize>) -> Option<Range<usize>> {
    let after_dot = |part: &Range<usize>| {
        (bytes.get(part.end) == Some(&b'.')).then(|| run(bytes, part.end + 1, dashed))
    };
    let first = run(bytes, start.end, dashed);
    let second = after_dot(&first)?;
    let third = after_dot(&second)?;
    let long = first.len() >= 10 && second.len() >= 4;
    long.then(|| start.end..whole_run(bytes, third.start, dashed).end)
}

/// `Bearer value` (RFC 6750).
pub(super) fn bearer(bytes: &[u8], at: &Range<usize>) -> Option<Range<usize>> {
    let kind = |byte| base64(byte) || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let value = run(bytes, at.end, kind);
    let digit = bytes[value.clone()].iter().any(u8::is_ascii_digit);
    let begun = bytes[..at.start].last().is_some_and(|&byte| word(byte));
    (!begun && digit && value.len() >= 8).then(|| whole_run(bytes, at.end, kind))
}

/// A key of 40 hexadecimal digits later in the line, as Weights & Biases gave them.
pub(super) fn hexadecimal(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let line = run(&bytes[..bytes.len().min(from + 200)], from, |byte| byte != b'\n');
    let end = line.end;
    let mut from = line.start;
    while from < end {
        let value = run(bytes, from, word);
        if value.len() == 40 && bytes[value.clone()].iter().all(u8::is_ascii_hexdigit) {
            return Some(value);
        }
        from = value.end + 1;
    }
    None
}

/// The body of a private key (RFC 7468), from the first line or the last one, whether its line ends are
/// real or written as `\n`. Where only one of the two is there, what looks like a body is.
pub(super) fn private_key(bytes: &[u8], at: &Range<usize>) -> Option<Range<usize>> {
    /// Ed25519 has one line, RSA of 16384 bits some 12 KiB.
    const LARGEST: usize = 64 << 10;
    let before = &bytes[at.start.saturating_sub(40)..at.start];
    let kind = before.windows(5).rposition(|seen| seen == b"-----").map(|at| &before[at + 5..]);
    if kind?.starts_with(b"END") {
        let line = bytes[..at.start].len() - kind?.len() - 5;
        let body = |byte: u8| base64(byte) || matches!(byte, b'\n' | b'\r' | b'\\' | b'*');
        let body = run_before(bytes, line, LARGEST, body);
        return (body.len() >= 8).then_some(body);
    }
    if !kind?.starts_with(b"BEGIN") {
        return None;
    }
    let rest = &bytes[at.end..bytes.len().min(at.end + LARGEST)];
    let next = memchr::memmem::find(rest, b"-----");
    if let Some(next) = next.filter(|next| rest[next + 5..].starts_with(b"END")) {
        return (next > 0).then_some(at.end..at.end + next);
    }
    let body = |byte: u8| base64(byte) || matches!(byte, b'\n' | b'\r' | b'\\' | b' ' | b'*');
    let body = whole_run(&bytes[..at.end + rest.len()], at.end, body);
    (!body.is_empty()).then_some(body)
}

/// `://user:password@host` (RFC 3986), also with signs in the password that ought to be encoded.
pub(super) fn in_address(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let part = |from: usize, ends: &[u8]| {
        let from = from.min(bytes.len());
        let most = &bytes[..bytes.len().min(from + 512)];
        run(most, from, |byte| byte > b' ' && !ends.contains(&byte))
    };
    let user = part(from, b"/@:'\"<>[");
    if bytes.get(user.end) != Some(&b':') {
        return None;
    }
    let start = user.end + 1;
    let rest = &bytes[part(start, b"'\"<>|")];
    let first = rest.iter().position(|&byte| byte == b'@')?;
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let is_port = slash < first && rest[..slash].iter().all(u8::is_ascii_digit);
    // The digest of an image is no host.
    if is_port || rest[first..].starts_with(b"@sha256:") {
        return None;
    }
    // The host ends at the next slash: the last sign before that parts it from the password.
    let host = rest[first..].iter().position(|byte| b"/?#".contains(byte));
    let authority = &rest[..host.map_or(rest.len(), |host| first + host)];
    let last = authority.iter().rposition(|&byte| byte == b'@')?;
    let password = start..start + last;
    (!is_reference(&bytes[password.clone()])).then_some(password)
}
