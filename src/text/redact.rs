//! Secrets masked in place.
//!
//! Masking keeps every length, so that offsets into a log stay true. A secret is known by the form that
//! its issuer publishes (`issued`), by a telling name before it (`name`, `value`), or as the option by
//! which a program takes it (`command`). It refuses to guess: a random-looking word without any of these
//! stays. Text is searched as it is and as a terminal would show it, so that no escape sequence hides a
//! name.

mod bytes;
mod command;
mod issued;
mod name;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memchr;

use self::command::{PROGRAMS, Program};
use self::issued::{Form, ISSUED};
use self::name::{Name, STEMS};
use super::clean::visible;

/// How a trigger leads to the bytes to mask.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The prefix of a token.
    Issued(Form),
    WebToken,
    Bearer,
    Address,
    /// A key of 40 hexadecimal digits later in the line.
    Hexadecimal,
    PrivateKey,
    /// The last word of a name that is given a value.
    Stem,
    /// `sig=` in the address of Azure.
    SharedSignature,
    Program(Program),
}

/// Triggers that are in no list of their own.
const OTHERS: &[(&str, Rule)] = &[
    ("eyJ", Rule::WebToken),
    ("bearer ", Rule::Bearer),
    ("://", Rule::Address),
    ("wandb", Rule::Hexadecimal),
    ("private key-----", Rule::PrivateKey),
    ("private key block-----", Rule::PrivateKey),
    ("&sig=", Rule::SharedSignature),
    ("?sig=", Rule::SharedSignature),
];

/// Found case-insensitively; the prefixes of tokens are then compared exactly.
static TRIGGERS: LazyLock<Vec<(&str, Rule)>> = LazyLock::new(|| {
    let issued = ISSUED.iter().map(|(prefix, form)| (*prefix, Rule::Issued(*form)));
    let stems = STEMS.iter().map(|stem| (*stem, Rule::Stem));
    let programs = PROGRAMS.iter().map(|(name, program)| (*name, Rule::Program(*program)));
    issued.chain(stems).chain(programs).chain(OTHERS.iter().copied()).collect()
});

#[expect(clippy::expect_used, reason = "a constant list of short literals always compiles")]
static AUTOMATON: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(TRIGGERS.iter().map(|(text, _)| text))
        .expect("the triggers compile")
});

/// Masks every secret with asterisks, each byte by one, and says how many there were.
pub fn mask_secrets(bytes: &mut [u8]) -> usize {
    /// Searched at a time, to the end of a line, where not all that is there is shown.
    const BLOCK: usize = 1 << 20;
    if bytes.iter().copied().all(is_plain) {
        return mask_all(bytes, |_| None);
    }
    let (mut count, mut start) = (0, 0);
    while start < bytes.len() {
        let most = bytes.len().min(start + BLOCK);
        let end = memchr(b'\n', &bytes[most..]).map_or(bytes.len(), |end| most + end + 1);
        count += mask_all(&mut bytes[start..end], |bytes| Some(shown(bytes)));
        start = end;
    }
    count
}

/// Whether a terminal shows a byte as it is.
fn is_plain(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte) || matches!(byte, b'\n' | b'\r' | b'\t')
}

/// Masks the secrets of a text as it is and as it is shown, until there are none: with asterisks in it,
/// a line may have other ones.
fn mask_all(bytes: &mut [u8], shown: impl Fn(&[u8]) -> Option<Shown>) -> usize {
    const ROUNDS: usize = 8;
    let mut count = 0;
    for _ in 0..ROUNDS {
        // Both before anything is masked: half of a secret would not be known for one.
        let found = secrets(bytes);
        let shown = shown(bytes).map(|text| (secrets(&text.bytes), text.places));
        let mut changed = 0;
        for secret in found {
            changed += usize::from(mask(bytes, secret));
        }
        if let Some((secrets, places)) = shown {
            for secret in secrets {
                changed += usize::from(mask(bytes, places[secret].iter().copied()));
            }
        }
        if changed == 0 {
            break;
        }
        count += changed;
    }
    count
}

/// The text with every secret masked.
pub fn masked(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    mask_secrets(&mut bytes);
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// As [`masked`], of a text that mostly holds none.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) && secrets(text.as_bytes()).is_empty() {
        return text.into();
    }
    masked(text).into()
}

/// Whether there is a secret in the text, masked or not.
pub fn holds_secret(text: &str) -> bool {
    let mut bytes = text.as_bytes().to_vec();
    let mut before = 0;
    for byte in &mut bytes {
        if *byte == b'*' {
            // Letters of both cases and digits, as every secret may hold them.
            *byte = match before {
                b'a' => b'7',
                b'7' => b'A',
                _ => b'a',
            };
        }
        before = *byte;
    }
    mask_secrets(&mut bytes) > 0
}

/// Masks the bytes at these places; says whether there was anything to mask. Line ends and escapes stay,
/// so that text stays lines and JSON stays JSON.
fn mask(bytes: &mut [u8], places: impl IntoIterator<Item = usize>) -> bool {
    let (mut changed, mut escaped) = (false, false);
    for place in places {
        let byte = &mut bytes[place];
        // Never the first byte of a longer character alone.
        let escape = escaped && byte.is_ascii();
        let keep = escape || matches!(*byte, b'\n' | b'\r' | b'\\' | b'*');
        escaped = *byte == b'\\' && !escaped;
        if !keep {
            *byte = b'*';
            changed = true;
        }
    }
    changed
}

/// Where the secrets of a text are.
fn secrets(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    // How far the commands of each program were searched: none is searched twice.
    let mut searched = [0; PROGRAMS.len()];
    for hit in AUTOMATON.find_overlapping_iter(bytes) {
        let index = hit.pattern().as_usize();
        let (text, rule) = TRIGGERS[index];
        let at = hit.range();
        if let Rule::Program(program) = rule {
            let reached = &mut searched[index - ISSUED.len() - STEMS.len()];
            if at.start >= *reached && command::begins(bytes, at.start) {
                let (passwords, end) = command::passwords(bytes, at.end, program);
                *reached = end;
                found.extend(passwords);
            }
            continue;
        }
        // What is in a secret goes with it.
        if found.last().is_some_and(|last| last.start <= at.start && at.end <= last.end) {
            continue;
        }
        found.extend(match rule {
            Rule::Issued(_) | Rule::WebToken if &bytes[at.clone()] != text.as_bytes() => None,
            Rule::Issued(form) => form.token(bytes, &at),
            Rule::WebToken => issued::web_token(bytes, &at),
            Rule::Bearer => issued::bearer(bytes, &at),
            Rule::Address => issued::in_address(bytes, at.end),
            Rule::Hexadecimal => issued::hexadecimal(bytes, at.end),
            Rule::PrivateKey => issued::private_key(bytes, &at),
            Rule::Stem => Name::around(bytes, &at).and_then(|name| value::secret(bytes, &name)),
            Rule::SharedSignature => {
                Some(value::unquoted(bytes, at.end)).filter(|value| value.len() >= 16)
            }
            Rule::Program(_) => None,
        });
    }
    found
}

/// What a terminal would show of a text, and where each byte of it is in there.
struct Shown {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

/// A text without escape sequences, invisible characters and broken ones.
fn shown(bytes: &[u8]) -> Shown {
    let mut sound = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        sound.extend_from_slice(chunk.valid().as_bytes());
        sound.resize(sound.len() + chunk.invalid().len(), 0);
    }
    let text = str::from_utf8(&sound).unwrap_or_default();
    let mut shown = Shown { bytes: Vec::new(), places: Vec::new() };
    for (at, character) in visible(text).filter(|(_, character)| *character != '\u{fffd}') {
        let end = at + character.len_utf8();
        shown.bytes.extend_from_slice(&bytes[at..end]);
        shown.places.extend(at..end);
    }
    shown
}
