//! Secrets masked in place.
//!
//! Masking keeps every length, so that offsets into a log stay true. The formats are those their
//! issuers publish (AWS, GitHub, `GitLab`, Hugging Face, `OpenAI`, Anthropic, Slack, Google, npm,
//! `PyPI`, RFC 7519, RFC 6750, RFC 7468), the usual ways to write a password down, and the options by
//! which curl, mysql and sshpass take theirs (their manuals). It refuses to guess: a random-looking
//! word without a published prefix or a telling name before it stays.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// How a trigger leads to the bytes to mask.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// A token that begins with the trigger, followed by at least so many bytes of a kind.
    Prefix(usize, fn(u8) -> bool),
    /// As `Prefix`, but only if a digit is in it: the prefix alone is too common.
    PrefixWithDigit(usize, fn(u8) -> bool),
    /// A JSON web token: three parts separated by dots.
    WebToken,
    /// A name that is given a value: `password=...`, `"api_key": "..."`, `--token ...`.
    Assignment,
    /// `Authorization: SCHEME value`.
    Header,
    /// `Bearer value`.
    Bearer,
    /// `://user:password@host`.
    Url,
    /// A key of 40 hexadecimal digits later in the line.
    HexKey,
    /// The body of a private key.
    Pem,
    /// A program that takes a password by an option.
    Program(Program),
}

/// How a program takes a password.
#[derive(Debug, Clone, Copy)]
struct Program {
    options: &'static [&'static str],
    /// Whether the value may be a word of its own.
    alone: bool,
    /// Whether the name of a user and a colon stand before it.
    behind_user: bool,
}

const CURL: Program =
    Program { options: &["-u", "-U", "--user", "--proxy-user"], alone: true, behind_user: true };
const MYSQL: Program = Program { options: &["-p"], alone: false, behind_user: false };
const SSHPASS: Program = Program { options: &["-p"], alone: true, behind_user: false };

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The longest secret looked for, keys in PEM apart.
const LONGEST: usize = 4096;

/// Found case-insensitively; the prefixes of tokens are then compared exactly.
const TRIGGERS: &[(&str, Rule)] = &[
    ("AKIA", Rule::Prefix(16, alphanumeric)),
    ("ASIA", Rule::Prefix(16, alphanumeric)),
    ("ghp_", Rule::Prefix(36, alphanumeric)),
    ("gho_", Rule::Prefix(36, alphanumeric)),
    ("ghu_", Rule::Prefix(36, alphanumeric)),
    ("ghs_", Rule::Prefix(36, alphanumeric)),
    ("ghr_", Rule::Prefix(36, alphanumeric)),
    ("github_pat_", Rule::Prefix(22, word)),
    ("glpat-", Rule::Prefix(20, dashed)),
    ("hf_", Rule::Prefix(30, alphanumeric)),
    ("sk-", Rule::PrefixWithDigit(20, dashed)),
    ("xoxa-", Rule::Prefix(10, dashed)),
    ("xoxb-", Rule::Prefix(10, dashed)),
    ("xoxe-", Rule::Prefix(10, dashed)),
    ("xoxp-", Rule::Prefix(10, dashed)),
    ("xoxr-", Rule::Prefix(10, dashed)),
    ("xoxs-", Rule::Prefix(10, dashed)),
    ("xapp-", Rule::PrefixWithDigit(10, dashed)),
    ("AIza", Rule::Prefix(35, dashed)),
    ("npm_", Rule::Prefix(36, alphanumeric)),
    ("pypi-", Rule::Prefix(50, dashed)),
    ("eyJ", Rule::WebToken),
    ("password", Rule::Assignment),
    ("passwd", Rule::Assignment),
    ("passphrase", Rule::Assignment),
    ("pass", Rule::Assignment),
    ("token", Rule::Assignment),
    ("secret", Rule::Assignment),
    ("api_key", Rule::Assignment),
    ("api-key", Rule::Assignment),
    ("apikey", Rule::Assignment),
    ("access_key", Rule::Assignment),
    ("authorization:", Rule::Header),
    ("bearer ", Rule::Bearer),
    ("://", Rule::Url),
    ("wandb", Rule::HexKey),
    ("private key-----", Rule::Pem),
    ("curl ", Rule::Program(CURL)),
    ("mysql ", Rule::Program(MYSQL)),
    ("mysqldump ", Rule::Program(MYSQL)),
    ("mysqladmin ", Rule::Program(MYSQL)),
    ("mariadb ", Rule::Program(MYSQL)),
    ("sshpass ", Rule::Program(SSHPASS)),
];

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
    let mut found: Vec<Range<usize>> = Vec::new();
    // How far the commands of each program were searched: none is searched twice.
    let mut searched = [0; TRIGGERS.len()];
    for hit in AUTOMATON.find_overlapping_iter(&*bytes) {
        let (text, rule) = TRIGGERS[hit.pattern().as_usize()];
        // A name in a secret goes with it.
        let inside = |last: &Range<usize>| last.start <= hit.start() && hit.end() <= last.end;
        if matches!(rule, Rule::Assignment) && found.last().is_some_and(inside) {
            continue;
        }
        let Rule::Program(program) = rule else {
            found.extend(secret(bytes, hit.range(), text, rule));
            continue;
        };
        let reached = &mut searched[hit.pattern().as_usize()];
        if hit.start() < *reached || bytes[..hit.start()].last().is_some_and(|&byte| word(byte)) {
            continue;
        }
        *reached = hit.end();
        while let Some(secret) = given(bytes, *reached, program) {
            *reached = secret.end;
            found.push(secret);
        }
        *reached = command(bytes, *reached);
    }
    let mut count = 0;
    for range in found {
        let mut changed = false;
        let mut escaped = false;
        for byte in &mut bytes[range] {
            // Line ends and escapes stay, so that text stays lines and JSON stays JSON.
            // Never the first byte of a longer character alone.
            let escape = escaped && byte.is_ascii();
            let keep = escape || matches!(*byte, b'\n' | b'\r' | b'\\' | b'*');
            escaped = *byte == b'\\' && !escaped;
            if !keep {
                *byte = b'*';
                changed = true;
            }
        }
        count += usize::from(changed);
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

/// Whether there is a secret in the text, masked or not.
pub fn holds_secret(text: &str) -> bool {
    let mut bytes = text.as_bytes().to_vec();
    let mut before = 0;
    for byte in &mut bytes {
        if *byte == b'*' {
            // Letters and digits, as every secret may hold them.
            *byte = if before == b'a' { b'7' } else { b'a' };
        }
        before = *byte;
    }
    mask_secrets(&mut bytes) > 0
}

/// The bytes to mask where a trigger was found.
fn secret(bytes: &[u8], at: Range<usize>, trigger: &str, rule: Rule) -> Option<Range<usize>> {
    let fresh = !bytes[..at.start].last().is_some_and(|&byte| word(byte));
    let exact = &bytes[at.clone()] == trigger.as_bytes();
    match rule {
        Rule::Prefix(..) | Rule::PrefixWithDigit(..) | Rule::WebToken if !fresh || !exact => None,
        Rule::Prefix(least, kind) => {
            let value = run(bytes, at.end, kind);
            (value.len() >= least).then_some(value)
        }
        Rule::PrefixWithDigit(least, kind) => {
            let value = run(bytes, at.end, kind);
            let digit = bytes[value.clone()].iter().any(u8::is_ascii_digit);
            (digit && value.len() >= least).then_some(value)
        }
        Rule::WebToken => {
            let first = run(bytes, at.end, dashed);
            let second = after_dot(bytes, &first)?;
            let third = after_dot(bytes, &second)?;
            let long = first.len() >= 10 && second.len() >= 4;
            long.then_some(at.end..third.end)
        }
        Rule::Assignment => assigned(bytes, at),
        Rule::Header => {
            let scheme = run(bytes, skip(bytes, at.end, b" \t"), alphanumeric);
            let value = unquoted(bytes, skip(bytes, scheme.end, b" \t"));
            // Without a scheme the one word is the value.
            let value = if value.is_empty() { scheme } else { value };
            (!value.is_empty()).then_some(value)
        }
        Rule::Bearer => {
            let value = run(bytes, at.end, |b| base64(b) || matches!(b, b'-' | b'.' | b'_' | b'~'));
            let digit = bytes[value.clone()].iter().any(u8::is_ascii_digit);
            (fresh && digit && value.len() >= 8).then_some(value)
        }
        Rule::Url => {
            let user = run(bytes, at.end, |b| b.is_ascii_graphic() && !b"/@:'\"<>".contains(&b));
            if bytes.get(user.end) != Some(&b':') {
                return None;
            }
            let password =
                run(bytes, user.end + 1, |b| b.is_ascii_graphic() && !b"/@'\"<>".contains(&b));
            let closed = bytes.get(password.end) == Some(&b'@');
            (closed && !is_reference(&bytes[password.clone()])).then_some(password)
        }
        Rule::HexKey => {
            let line = run(bytes, at.end, |byte| byte != b'\n');
            let end = line.end.min(line.start + 200);
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
        Rule::Pem => {
            let before = &bytes[at.start.saturating_sub(40)..at.start];
            if !before.windows(10).any(|seen| seen == b"-----BEGIN") {
                return None;
            }
            // The body, whether its line ends are real or written as \n.
            let body = bytes[at.end..].iter().take_while(|&&b| {
                base64(b) || matches!(b, b'\n' | b'\r' | b'\\' | b' ' | b':' | b',' | b'*')
            });
            let end = at.end + body.count();
            (end > at.end).then_some(at.end..end)
        }
        Rule::Program(program) => given(bytes, at.end, program),
    }
}

/// Where the command that goes on here ends.
fn command(bytes: &[u8], from: usize) -> usize {
    run(bytes, from, |b| !b"\n;|".contains(&b)).end
}

/// The password that a command is given by one of the options of its program.
fn given(bytes: &[u8], from: usize, program: Program) -> Option<Range<usize>> {
    let end = command(bytes, from);
    let mut at = skip(bytes, from, b" \t");
    while at < end {
        let word = run(bytes, at, |b| b > b' ');
        at = skip(bytes, word.end, b" \t").max(at + 1);
        let Some(attached) = program.value_in(&bytes[word.clone()]) else { continue };
        let from = match attached {
            0 if program.alone => at,
            0 => continue,
            length => word.end - length,
        };
        let quote = bytes.get(from).filter(|byte| matches!(byte, b'"' | b'\''));
        let mut secret = match quote {
            Some(quote) => run(bytes, from + 1, |b| b != *quote && b != b'\n'),
            None => unquoted(bytes, from),
        };
        if program.behind_user {
            let user = bytes[secret.clone()].iter().position(|&byte| byte == b':');
            let Some(user) = user else { continue };
            secret.start += user + 1;
        }
        if !is_reference(&bytes[secret.clone()]) {
            return Some(secret);
        }
    }
    None
}

impl Program {
    /// How many bytes of a word are the value of one of the options; `None` if the word is none.
    fn value_in(self, word: &[u8]) -> Option<usize> {
        self.options.iter().find_map(|option| {
            let rest = word.strip_prefix(option.as_bytes());
            match option.strip_prefix("--") {
                Some(_) if rest == Some(b"") => Some(0),
                Some(_) => rest?.strip_prefix(b"=").map(<[u8]>::len),
                // A row of short options: -sSu for -u.
                None if self.alone && clustered(word, option) => Some(0),
                None => rest.map(<[u8]>::len),
            }
        })
    }
}

/// Whether a word is a row of short options that ends with this one: `-sSu` for `-u`.
fn clustered(word: &[u8], option: &str) -> bool {
    word.len() > 2
        && word[0] == b'-'
        && word.ends_with(&option.as_bytes()[1..])
        && word[1..].iter().all(u8::is_ascii_alphabetic)
}

/// Words before `pass` that speak of a round of work.
const ROUNDS: [&[u8]; 14] = [
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
];

/// Whether a name that ends with `pass` speaks of a password: `db_pass`, `PASS`, `--pass`.
fn is_password(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"--").unwrap_or(name);
    let Some(before) = name.strip_suffix(b"pass") else { return true };
    match before {
        [] => true,
        [words @ .., b'_' | b'-'] => {
            let word = words.rsplit(|b| matches!(b, b'_' | b'-')).next().unwrap_or_default();
            !ROUNDS.contains(&word)
        }
        _ => matches!(before, b"db" | b"pg" | b"ssh" | b"user"),
    }
}

/// The special tokens of language models are no secrets.
const PLAIN_TOKENS: &[&[u8]] = &[b"pad", b"eos", b"bos", b"unk", b"sep", b"cls", b"mask", b"next"];

/// The value that a telling name is given.
fn assigned(bytes: &[u8], name: Range<usize>) -> Option<Range<usize>> {
    // The whole name: HF_TOKEN, --password, aws_secret_access_key.
    let before = bytes[..name.start].iter().rev().take(64).take_while(|&&b| dashed(b));
    let start = name.start - before.count();
    let end = run(bytes, name.end, word).end;
    let whole = bytes[start..end].to_ascii_lowercase();
    let suffix = &whole[name.end - start..];
    if !matches!(suffix, b"" | b"_access_key" | b"_key" | b"_value" | b"s") {
        return None;
    }
    let token = whole.ends_with(b"token");
    if whole.ends_with(b"s") && !whole.ends_with(b"pass")
        || token && PLAIN_TOKENS.iter().any(|kind| whole.strip_suffix(b"_token") == Some(kind))
    {
        return None;
    }
    let option = whole.starts_with(b"--");
    let password = [&b"password"[..], b"passwd", b"passphrase", b"pass"]
        .iter()
        .any(|kind| whole.ends_with(kind));
    if !is_password(&whole) {
        return None;
    }
    // A name in two parts is that of a setting: db_pass, not prose.
    let is_setting = password && whole.iter().any(|b| matches!(b, b'_' | b'-')) && !option;
    let mut at = end;
    if matches!(bytes.get(at), Some(b'"' | b'\'')) {
        at += 1;
    }
    let gap = skip(bytes, at, b" \t");
    let (from, sign) = match bytes.get(gap) {
        Some(b'=') => (gap + 1, b'='),
        Some(b':') => (gap + 1, b':'),
        _ if option && gap > at => (gap, b'='),
        _ => return None,
    };
    let from = if option && sign == b'=' { from } else { skip(bytes, from, b" \t") };
    let quoted = match bytes.get(from) {
        Some(&quote @ (b'"' | b'\'')) => {
            let value = run(bytes, from + 1, |b| b != quote && b != b'\n');
            (bytes.get(value.end) == Some(&quote)).then_some(value)
        }
        _ => None,
    };
    let value = quoted.clone().unwrap_or_else(|| unquoted(bytes, from));
    let text = &bytes[value.clone()];
    if text.is_empty() || is_reference(text) {
        return None;
    }
    // "pass=3 fail=0", "pass=12.5s"
    let count = |b: &u8| b.is_ascii_digit() || b"./,".contains(b);
    let unit = text.iter().skip_while(|b| count(b)).count();
    if whole.ends_with(b"pass")
        && (text[0].is_ascii_digit() && unit <= 3 || sign == b':' && !is_setting)
    {
        return None;
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = text.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let secret = match sign {
        // "invalid token: unexpected end" is prose.
        b':' if quoted.is_none() && !is_setting => {
            text.len() >= if password { 6 } else { 8 } && digits > 0 && letters > 0
        }
        _ => !token || text.len() >= 8 && letters > 0,
    };
    secret.then_some(value)
}

/// A value that stands for another one, or for none: `$VAR`, `<token>`, `None`, `****`.
fn is_reference(text: &[u8]) -> bool {
    text.is_empty()
        || matches!(text[0], b'$' | b'<' | b'%' | b'{')
        || [&b"none"[..], b"null", b"true", b"false"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word))
        || text.iter().all(|&byte| byte == b'*')
}

/// The bytes of a kind from a position on; at most [`LONGEST`], so that no input is slow.
fn run(bytes: &[u8], from: usize, kind: impl Fn(u8) -> bool) -> Range<usize> {
    let from = from.min(bytes.len());
    let length = bytes[from..].iter().take(LONGEST).take_while(|&&byte| kind(byte)).count();
    // Never half a character.
    let rest = bytes[from + length..].iter().take_while(|&&byte| byte & 0xc0 == 0x80);
    from..from + length + if length == LONGEST { rest.take(3).count() } else { 0 }
}

/// The first position from `from` on whose byte is none of `bytes_to_skip`.
fn skip(bytes: &[u8], from: usize, bytes_to_skip: &[u8]) -> usize {
    run(bytes, from, |byte| bytes_to_skip.contains(&byte)).end
}

fn unquoted(bytes: &[u8], from: usize) -> Range<usize> {
    run(bytes, from, |b| b > b' ' && !b"\"',;&)}]|".contains(&b))
}

fn after_dot(bytes: &[u8], part: &Range<usize>) -> Option<Range<usize>> {
    (bytes.get(part.end) == Some(&b'.')).then(|| run(bytes, part.end + 1, dashed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made-up values in the published formats; assembled so that no scanner takes this file for
    /// a leak.
    fn seeded() -> Vec<(String, String)> {
        let letters = "aB3dE5fG7hJ9kLmN0pQrS2tUvW4xYz6A8bC1";
        let token = |prefix: &str, length: usize| prefix.to_owned() + &letters.repeat(3)[..length];
        let upper = "Q7W2E5R6T3Y4U2I7";
        let mut cases: Vec<(String, String)> = vec![
            (format!("id {}{upper} used", "AKIA"), upper.into()),
            (format!("id {}{upper}", "ASIA"), upper.into()),
        ];
        for (prefix, length) in [
            ("ghp_", 36),
            ("gho_", 36),
            ("github_pat_", 82),
            ("glpat-", 20),
            ("hf_", 34),
            ("sk-", 48),
            ("sk-ant-api03-", 90),
            ("xoxb-", 30),
            ("AIza", 35),
            ("npm_", 36),
        ] {
            let secret = token("", length);
            cases.push((format!("x '{prefix}{secret}'"), secret.clone()));
            cases.push((format!("export KEY={prefix}{secret}\n"), secret));
        }
        let hex = "0123456789abcdef0123456789abcdef01234567";
        for (line, secret) in [
            ("password=hunter2 next", "hunter2"),
            ("PGPASSWORD=hunter2", "hunter2"),
            ("--password hunter2", "hunter2"),
            ("login --password zq", "zq"),
            ("login --http-password=zq", "zq"),
            ("db_pass: zq", "zq"),
            ("  smtp-password: zq", "zq"),
            ("DB_PASS=hunter2", "hunter2"),
            ("PASS=hunter", "hunter"),
            ("password: hunter2", "hunter2"),
            ("export GPG_PASSPHRASE=zq", "zq"),
            ("PASSPHRASE=zq", "zq"),
            ("passphrase = \"zq zx\"", "zq zx"),
            ("curl -u user:zqpw https://host", "zqpw"),
            ("+ curl -sS -u 'user:zq pw' https://host", "zq pw"),
            ("curl -fsSu user:zqpw https://host", "zqpw"),
            ("curl --user=user:zqpw https://host", "zqpw"),
            ("curl https://host --user user:zqpw", "zqpw"),
            ("mysql -h db -u me -phunter2 data", "hunter2"),
            ("mysqldump -p'hunter 2' data", "hunter 2"),
            ("sshpass -p hunter2 ssh host", "hunter2"),
            (r#"{"password": "hunter two"}"#, "hunter two"),
            ("export HF_TOKEN='abcdefghijkl'", "abcdefghijkl"),
            ("api_key = s3cretvalue", "s3cretvalue"),
            ("client_secret: s3cretvalue", "s3cretvalue"),
            ("aws_secret_access_key = abc/def+1234", "abc/def+1234"),
            ("url?token=abcd1234&x=1", "abcd1234"),
            ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
            ("-H 'authorization: Bearer abc.def-123'", "abc.def-123"),
            ("sent Bearer abcdef123456", "abcdef123456"),
            ("pull https://me:pa55@host/x.git", "pa55"),
            ("postgres://me:p:w@db:5432/x", "p:w"),
        ] {
            cases.push((line.into(), secret.into()));
        }
        cases.push((format!("wandb login --relogin {hex}"), hex.into()));
        cases.push((format!("wandb: using key {hex} from netrc"), hex.into()));
        let body = token("", 60);
        cases.push((
            format!("-----BEGIN RSA {}-----\n{body}\n-----END", "PRIVATE KEY"),
            body.clone(),
        ));
        let claims = ["eyJ", "hbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.", "c2lnbmF0dXJl"];
        cases.push((format!("cookie {}", claims.concat()), claims[3].into()));
        cases
    }

    #[test]
    fn every_seeded_secret_is_masked_and_its_length_kept() {
        for (line, secret) in seeded() {
            let clean = masked(&line);
            assert!(!clean.contains(&secret), "{line} -> {clean}");
            assert_eq!(clean.len(), line.len());
            assert_eq!(masked(&clean), clean);
            assert!(holds_secret(&line), "{line}");
            // The dots of a web token are masked with its parts.
            assert!(holds_secret(&clean) || line.starts_with("cookie"), "{clean}");
        }
        assert!(!holds_secret("#SBATCH --mem=1G\n# ******** train ********\n"));
    }

    #[test]
    fn a_very_long_secret_is_not_cut_inside_a_character() {
        let line = format!("password=x{}", "é".repeat(3000));
        assert_eq!(masked(&line).len(), line.len());
    }

    #[test]
    fn what_surrounds_a_secret_stays() {
        assert_eq!(masked("password=hunter2 next"), "password=******* next");
        assert_eq!(masked("https://me:pa55@host/x"), "https://me:****@host/x");
        assert_eq!(masked(r#"{"token": "abcd1234", "n": 1}"#), r#"{"token": "********", "n": 1}"#);
    }

    #[test]
    fn masked_json_stays_json() {
        let key = format!("-----BEGIN {}-----", "PRIVATE KEY");
        let text = format!(r#"{{"k":"{key}\nMIIB\nabc\n-----END","password":"a\"b\\"}}"#);
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        let clean = masked(&text);
        assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean}");
        assert!(!clean.contains("MIIB"));
    }

    #[test]
    fn each_command_of_a_long_line_is_searched_once() {
        let line = "curl ".repeat(400_000);
        assert_eq!(masked(&line), line);
        let line = format!(
            "{}-u me:zqpw; curl -u me:zqpx x; curl $(curl -u me:zqpy) -u me:zqpz",
            "curl ".repeat(900)
        );
        let clean = masked(&line);
        assert!(!clean.contains("zq"), "{}", &clean[4000..]);
    }

    #[test]
    fn ordinary_lines_stay_as_they_are() {
        for line in [
            "Epoch 3: loss=0.31 tokens=4096 tokens/s: 12345",
            "pad_token=<pad> eos_token: </s> pad_token_id=0 max_tokens=4096",
            "SyntaxError: invalid token: unexpected end of input",
            "OSError: Token is required, but no token found. token=None",
            "export HF_TOKEN=$TOKEN PASSWORD=${PW}",
            "task-0123456789abcdef0123456789 risk-assessment-2024-long-name-x",
            "commit 0123456789abcdef0123456789abcdef01234567",
            "master at tcp://10.0.0.1:29500 and http://host:8080/path@v1",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "hf_hub_download(repo_id='bert') sk-learn-compatible-estimators-only",
            "Permission denied (publickey,password).",
            "forward_pass: 12ms backward_pass=0.5s first_pass: done per_pass=x",
            "PASS: test_io_123 pass=12 fail=0 passed: 4 bypass: on compass=north",
            "PASS: test_forward (0.1s) pass: all44444 good",
            "curl -x proxy:3128 https://host:8080/x -o a:b",
            "docker run -u 1000:1000 image; mysql -p -h db; mysql -u me",
            "curl: (6) Could not resolve host: x",
            "Wrong password: access denied for user",
            "Enter password: ",
            "slurmstepd: error: Detected 1 oom_kill event in StepId=68.0.",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(masked(line), line);
        }
    }

    proptest! {
        #[test]
        fn lengths_and_a_second_pass_never_change(
            parts in proptest::collection::vec(
                prop_oneof![
                    "\\PC{0,12}",
                    proptest::sample::select(TRIGGERS).prop_map(|(text, _)| text.to_owned()),
                    "[=: \"'\n\\\\@/A-Za-z0-9-]{0,40}",
                ],
                0..12,
            ),
        ) {
            let text = parts.concat();
            let once = masked(&text);
            prop_assert_eq!(once.len(), text.len());
            prop_assert_eq!(once.lines().count(), text.lines().count());
            prop_assert_eq!(masked(&once), once);
        }

        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            mask_secrets(&mut bytes);
        }
    }
}
