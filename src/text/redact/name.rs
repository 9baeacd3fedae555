//! Names that tell that their value is a secret: `PGPASSWORD`, `accessToken`, `STRIPE_KEY`, `db_pass`.
//!
//! What decides is the last word of the name, whatever stands before and whatever number behind:
//! `max_tokens`, `tokenizer`, `password_file` and `key_id` end in other words.

use std::ops::Range;

use super::bytes::{dashed, run_before};

/// Words that may end a telling name.
pub(super) const STEMS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "pw",
    "token",
    "secret",
    "key",
    "jwt",
    "authorization",
    "cookie",
    "signature",
    "sig",
    "auth",
];

/// What a telling name promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Password,
    /// Also a round of work, or a test that went well.
    Pass,
    /// Also a working directory.
    Pwd,
    /// Also a piece of text.
    Token,
    Secret,
    /// A key that is surely one to a lock.
    Key,
    /// A key of whatever sort, called as variables of the environment are.
    VariableKey,
    /// A key of whatever sort.
    AnyKey,
    /// A web token or the like, known by its length.
    Signed,
    /// What stands behind `Authorization:`, with its scheme.
    Authorization,
    Cookie,
    /// A name and a password in base64, as in the settings of Docker and npm.
    Login,
}

/// A telling name.
#[derive(Debug)]
pub(super) struct Name {
    /// Where it is, the dashes of an option with it.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// `--token`, `-password`.
    pub(super) is_option: bool,
    /// Of several words, and no option: that of a setting, not prose.
    pub(super) is_setting: bool,
}

/// Names are not longer.
const LONGEST: usize = 64;

/// Words before `pass` that speak of a round of work or of tests.
const ROUNDS: [&[u8]; 19] = [
    b"forward",
    b"backward",
    b"fwd",
    b"bwd",
    b"first",
    b"second",
    b"third",
    b"last",
    b"next",
    b"one",
    b"two",
    b"single",
    b"multi",
    b"per",
    b"test",
    b"tests",
    b"num",
    b"all",
    b"did",
];

/// Words that `pass` and `pw` are written together with.
const ACCOUNTS: [&[u8]; 18] = [
    b"db",
    b"pg",
    b"ssh",
    b"user",
    b"smtp",
    b"mysql",
    b"postgres",
    b"ldap",
    b"bind",
    b"mail",
    b"admin",
    b"root",
    b"http",
    b"proxy",
    b"ftp",
    b"redis",
    b"storage",
    b"login",
];

/// The special tokens of language models are no secrets.
const PLAIN_TOKENS: [&[u8]; 14] = [
    b"pad", b"eos", b"bos", b"unk", b"sep", b"cls", b"mask", b"next", b"image", b"stop",
    b"special", b"per", b"max", b"num",
];

/// What a key that opens something is called after.
const LOCKS: [&[u8]; 26] = [
    b"api",
    b"access",
    b"private",
    b"priv",
    b"auth",
    b"encryption",
    b"signing",
    b"account",
    b"storage",
    b"master",
    b"session",
    b"subscription",
    b"consumer",
    b"license",
    b"licence",
    b"deploy",
    b"ssh",
    b"hmac",
    b"jwt",
    b"aes",
    b"admin",
    b"service",
    b"openai",
    b"anthropic",
    b"wandb",
    b"munge",
];

/// What a key to look something up by is called after, and the one that everybody may know.
const INDEXES: [&[u8]; 24] = [
    b"public",
    b"pub",
    b"sort",
    b"primary",
    b"foreign",
    b"cache",
    b"partition",
    b"prng",
    b"rng",
    b"random",
    b"group",
    b"index",
    b"hash",
    b"map",
    b"dict",
    b"state",
    b"object",
    b"lookup",
    b"hot",
    b"wc",
    b"row",
    b"column",
    b"batch",
    b"join",
];

impl Name {
    /// The telling name that a stem ends; `None` if the name goes on, or speaks of something else.
    pub(super) fn around(bytes: &[u8], stem: &Range<usize>) -> Option<Self> {
        let start = run_before(bytes, stem.start, LONGEST, dashed).start;
        let rest = bytes[stem.end..].iter().take(LONGEST).take_while(|&&byte| dashed(byte)).count();
        let end = stem.end + rest;
        let number = strip_value(&bytes[stem.end..end]);
        if rest == LONGEST || !number.iter().all(|byte| byte.is_ascii_digit() || !word(*byte)) {
            return None;
        }
        let dashes = bytes[start..].iter().take_while(|&&byte| byte == b'-').count();
        let whole = &bytes[(start + dashes).min(stem.start)..stem.end];
        let before = &whole[..whole.len() - stem.len()];
        let kind = kind(before, &whole[before.len()..], !number.is_empty())?;
        let is_option = dashes > 0;
        let is_setting = !is_option && whole.iter().any(|byte| matches!(byte, b'_' | b'-'));
        Some(Self { range: start..end, kind, is_option, is_setting })
    }

    /// Whether a value is the name itself, as in a call: `login(token=token)`.
    pub(super) fn is(&self, bytes: &[u8], value: &[u8]) -> bool {
        let name = &bytes[self.range.clone()];
        name.trim_ascii_start().eq_ignore_ascii_case(value)
    }
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// `_value` says nothing.
fn strip_value(rest: &[u8]) -> &[u8] {
    let end = rest.len().saturating_sub(5);
    let bare = rest.strip_prefix(b"_").or_else(|| rest.strip_prefix(b"-")).unwrap_or(rest);
    if bare.eq_ignore_ascii_case(b"value") { &rest[..end.min(1)] } else { rest }
}

fn kind(before: &[u8], stem: &[u8], numbered: bool) -> Option<Kind> {
    let lower = before.to_ascii_lowercase();
    let ends_in = |words: &[&[u8]]| words.iter().any(|word| lower.ends_with(word));
    let humps = stem[0].is_ascii_uppercase()
        && before.last().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let parted = before.last().is_some_and(|byte| matches!(byte, b'_' | b'-'));
    let apart = parted || humps;
    // The word before: `smtp` of `my_smtp_pass` and of `mySmtpPass`.
    let last = {
        let words = lower.strip_suffix(b"_").or_else(|| lower.strip_suffix(b"-")).unwrap_or(&lower);
        let from = if humps {
            before.iter().rposition(|byte| !byte.is_ascii_lowercase() && !byte.is_ascii_digit())
        } else {
            words.iter().rposition(|byte| !word(*byte)).map(|at| at + 1)
        };
        let from = from.unwrap_or(0);
        words[from..].strip_prefix(b"_").unwrap_or(&words[from..])
    };
    let found = match stem.to_ascii_lowercase().as_slice() {
        b"password" | b"passwd" | b"passphrase" | b"passcode" => Kind::Password,
        b"pass" if before.is_empty() => (!numbered).then_some(Kind::Pass)?,
        b"pass" if apart => (!ROUNDS.contains(&last)).then_some(Kind::Pass)?,
        b"pass" => ends_in(&ACCOUNTS).then_some(Kind::Pass)?,
        b"pwd" => (!ends_in(&[b"old"])).then_some(Kind::Pwd)?,
        b"pw" => ends_in(&ACCOUNTS)
            .then_some(Kind::Password)
            .or_else(|| (apart && ACCOUNTS.contains(&last)).then_some(Kind::Password))?,
        b"token" => (!apart || !PLAIN_TOKENS.contains(&last)).then_some(Kind::Token)?,
        b"secret" => Kind::Secret,
        b"jwt" => Kind::Signed,
        b"key" if ends_in(&[b"secret", b"secret_", b"secret-", b"secret_access_"]) => Kind::Secret,
        b"key" if apart && INDEXES.contains(&last) || before.is_empty() => return None,
        b"key" if apart && LOCKS.contains(&last) => Kind::Key,
        b"key" if !apart => {
            ends_in(&[b"api", b"access", b"private", b"auth", b"account"]).then_some(Kind::Key)?
        }
        b"key" if parted && !before.iter().any(u8::is_ascii_lowercase) => Kind::VariableKey,
        b"key" => Kind::AnyKey,
        b"authorization" => Kind::Authorization,
        b"cookie" if before.is_empty() || lower.ends_with(b"set-") => Kind::Cookie,
        b"signature" => [&b"amz"[..], b"goog", b"access", b"oauth", b"shared"]
            .contains(&last)
            .then_some(Kind::Signed)?,
        b"auth" if matches!(lower.as_slice(), b"" | b"_") => Kind::Login,
        _ => return None,
    };
    Some(found)
}
