//! Programs that take a password by an option, as their manuals say.

use std::ops::Range;

use super::bytes::{skip, whole_run, word};
use super::value::{self, Value};

/// How a program takes a password.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    options: &'static [&'static str],
    /// The word that must come before the option.
    verb: Option<&'static str>,
    /// Whether the value may be a word of its own.
    alone: bool,
    /// What parts the password from the name of the user before it.
    behind: Option<u8>,
}

const fn word_after(options: &'static [&'static str]) -> Program {
    Program { options, verb: None, alone: true, behind: None }
}

const fn attached(options: &'static [&'static str]) -> Program {
    Program { options, verb: None, alone: false, behind: None }
}

const LOGIN: Program = Program { verb: Some("login"), ..word_after(&["-p"]) };

/// By their names.
pub(super) const PROGRAMS: &[(&str, Program)] = &[
    ("curl", Program { behind: Some(b':'), ..word_after(&["-u", "-U", "--user", "--proxy-user"]) }),
    ("smbclient", Program { behind: Some(b'%'), ..word_after(&["-U", "--user"]) }),
    ("mysql", attached(&["-p"])),
    ("mysqldump", attached(&["-p"])),
    ("mysqladmin", attached(&["-p"])),
    ("mysqlimport", attached(&["-p"])),
    ("mariadb", attached(&["-p"])),
    ("mariadb-dump", attached(&["-p"])),
    ("7z", attached(&["-p"])),
    ("sshpass", word_after(&["-p"])),
    ("redis-cli", word_after(&["-a"])),
    ("mongosh", word_after(&["-p"])),
    ("mongodump", word_after(&["-p"])),
    ("ldapsearch", word_after(&["-w"])),
    ("ipmitool", word_after(&["-P"])),
    ("unzip", word_after(&["-P"])),
    ("docker", LOGIN),
    ("podman", LOGIN),
    ("skopeo", LOGIN),
    ("buildah", LOGIN),
    ("helm", LOGIN),
    ("apptainer", LOGIN),
    ("singularity", LOGIN),
];

/// The passwords in the command that a name begins, and where it ends: with its line, or at a sign
/// outside of quotes that begins another.
pub(super) fn passwords(bytes: &[u8], name: usize, program: Program) -> (Vec<Range<usize>>, usize) {
    let mut found = Vec::new();
    let mut at = skip(bytes, name, b"\\'\"");
    // ['curl', '-u', 'me:x'], as Python shows the command that failed.
    let listed = at > name && bytes.get(at) == Some(&b',');
    if !listed && !matches!(bytes.get(at), Some(b' ' | b'\t')) {
        return (found, name);
    }
    let mut ready = program.verb.is_none();
    let mut open = None;
    loop {
        at = apart(bytes, at, listed);
        let word = whole_run(bytes, at, |byte| byte > b' ');
        if word.is_empty() {
            return (found, at);
        }
        let text = &bytes[word.clone()];
        let quotes = text.iter().take_while(|&&byte| b"\\'\"".contains(&byte)).count();
        let closing = |byte: &&u8| b"\\'\",])".contains(byte);
        let end = text.len() - text.iter().rev().take_while(closing).count();
        let bare = word.start + quotes..word.start + end.max(quotes);
        at = word.end;
        ready |= program.verb.is_some_and(|verb| &bytes[bare.clone()] == verb.as_bytes());
        let option = if ready {
            program.value_in(&bytes[bare.start..word.end], &bytes[bare.clone()])
        } else {
            None
        };
        if let Some(length) = option {
            let from = if length > 0 { bare.start + length } else { apart(bytes, at, listed) };
            let secret = match Value::at(bytes, word.start) {
                // The option and its value in the same quotes.
                Value { range, quoted: true } if length > 0 => from..range.end.max(from),
                _ if length > 0 || program.alone => Value::at(bytes, from).range,
                _ => continue,
            };
            found.extend(program.password(bytes, secret.clone()));
            at = at.max(secret.end);
        }
        for &byte in &bytes[word.clone()] {
            open = match open {
                None if matches!(byte, b'"' | b'\'') => Some(byte),
                Some(quote) if quote == byte => None,
                _ => open,
            };
        }
        let text = &bytes[word];
        let ends = text.ends_with(b";") || matches!(text, b"|" | b"||" | b"&&" | b"&");
        if open.is_none() && ends || listed && text.ends_with(b"]") {
            return (found, at);
        }
    }
}

/// Past what stands between two words: blanks, and a line end behind a backslash.
fn apart(bytes: &[u8], from: usize, listed: bool) -> usize {
    let mut at = from.min(bytes.len());
    loop {
        at = match bytes.get(at) {
            Some(b' ' | b'\t') => at + 1,
            Some(b',') if listed => at + 1,
            Some(b'\\') if bytes.get(at + 1) == Some(&b'\n') => at + 2,
            Some(b'\\') if bytes[at + 1..].starts_with(b"\r\n") => at + 3,
            _ => return at,
        };
    }
}

impl Program {
    /// Where in a word the value of one of the options begins, 0 if that is the next word; `None` if the
    /// word is no such option. `bare` is the word without the quotes behind it.
    fn value_in(self, word: &[u8], bare: &[u8]) -> Option<usize> {
        self.options
            .iter()
            .find_map(|option| {
                let rest = word.strip_prefix(option.as_bytes())?.first();
                if bare.len() <= option.len() {
                    return Some(0);
                }
                let long = option.starts_with("--");
                (!long || rest == Some(&b'=')).then_some(option.len() + usize::from(long))
            })
            // A row of short options: -sSu for -u.
            .or_else(|| {
                self.options.iter().any(|option| self.alone && clustered(bare, option)).then_some(0)
            })
    }

    /// The password in the value of an option.
    fn password(self, bytes: &[u8], mut value: Range<usize>) -> Option<Range<usize>> {
        if let Some(sign) = self.behind {
            value.start += bytes[value.clone()].iter().position(|&byte| byte == sign)? + 1;
        }
        (!value::is_reference(&bytes[value.clone()])).then_some(value)
    }
}

/// Whether a word is a row of short options that ends with this one: `-sSu` for `-u`.
fn clustered(word: &[u8], option: &str) -> bool {
    word.len() > 2
        && word[0] == b'-'
        && word.ends_with(&option.as_bytes()[1..])
        && word[1..].iter().all(u8::is_ascii_alphabetic)
}

/// Whether a name that was found begins a word: `/usr/bin/curl`, not `mycurl`.
pub(super) fn begins(bytes: &[u8], name: usize) -> bool {
    !bytes[..name].last().is_some_and(|&byte| word(byte) || byte == b'-')
}
