//! A snapshot file of nodetop, the program, as a recording.
//!
//! Such a file holds a few queries with other options and columns than ours. A query is answered
//! from the recorded one whose words are its own once options are left aside, and a table is given the
//! columns that were asked for, as far as it has them; what was not recorded stays unanswered, as in
//! any recording. Times in it are local and name no zone: they are read in that of this machine.
//!
//! Facts: files written by nodetop 0.7.0, and how it looks queries up in them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text::lossy;

use super::manifest::{Answered, End, FORMAT, Manifest, RecordedCaller, Zone};
use super::piece::Piece;
use super::{Cmd, RecordingError};

/// What is read of the file.
#[derive(Deserialize)]
struct Snapshot<'t> {
    backend: String,
    #[serde(default)]
    captured_at: Option<String>,
    #[serde(borrow)]
    commands: BTreeMap<String, Reply<'t>>,
}

/// Texts stay where they are in the file: of ten thousand nodes they are megabytes.
#[derive(Deserialize)]
struct Reply<'t> {
    rc: i32,
    #[serde(borrow, default)]
    stdout: Option<&'t RawValue>,
    #[serde(borrow, default)]
    stderr: Option<&'t RawValue>,
}

/// A recording, and the contents that its manifest names.
pub(super) type Parsed = (Manifest, BTreeMap<String, Piece>);

/// Whether a file looks like one of nodetop's: its first keys say so.
pub(super) fn is_snapshot(json: &[u8]) -> bool {
    let head = &json[..json.len().min(4096)];
    let has = |key: &[u8]| memchr::memmem::find(head, key).is_some();
    json.first() == Some(&b'{') && has(b"\"backend\"") && !has(b"\"format\"")
}

/// Reads it; `path` is for messages, `now` stands in for a time that is missing.
pub(super) fn parse(
    path: &Path,
    mut json: Vec<u8>,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Parsed, RecordingError> {
    let snapshot: Snapshot<'_> = serde_json::from_slice(&json)
        .map_err(|source| RecordingError::Malformed { path: path.to_owned(), source })?;
    if snapshot.backend != "slurm" {
        let reason = format!("it is of {}, of which no snapshot is read", snapshot.backend);
        return Err(RecordingError::Broken { path: path.to_owned(), reason });
    }
    let captured = snapshot.captured_at.as_deref().and_then(|text| {
        let civil = text.parse::<DateTime>().ok()?;
        Some(civil.to_zoned_datetime(zone.clone()).ok()?.timestamp())
    });
    let clock = captured.unwrap_or(now);
    let mut places: Vec<(String, Range<usize>)> = Vec::new();
    let mut commands = Vec::new();
    let mut user = None;
    for (index, (key, reply)) in snapshot.commands.into_iter().enumerate() {
        let argv: Vec<String> = key.split(' ').map(str::to_owned).collect();
        if let Some(name) = argv.iter().find_map(|word| word.strip_prefix("user=")) {
            user = Some(name.to_owned());
        }
        let mut keep = |kind: &str, text: Option<&RawValue>| {
            let name = format!("{index:x}{kind}");
            places.push((name.clone(), text.map_or(0..0, |text| place(&json, text))));
            name
        };
        commands.push(Answered {
            stdout: keep("0", reply.stdout),
            end: End::Exit { status: Some(reply.rc), stderr: keep("e", reply.stderr) },
            argv,
        });
    }
    for (_, place) in &mut places {
        let Some(length) = unescape(&mut json[place.clone()]) else {
            let reason = "an answer in it is no text".to_owned();
            return Err(RecordingError::Broken { path: path.to_owned(), reason });
        };
        place.end = place.start + length;
    }
    let json = Arc::new(json);
    let blobs = places.into_iter().map(|(name, place)| (name, Piece::of(&json, place))).collect();
    let manifest = Manifest {
        format: FORMAT,
        jobwise: "nodetop".to_owned(),
        clock,
        zone: Zone {
            name: zone.iana_name().map(str::to_owned),
            offset_seconds: zone.to_offset(clock).seconds(),
        },
        // Who recorded it is in its queries; the number is not.
        caller: RecordedCaller { uid: u32::MAX, name: user },
        environment: BTreeMap::new(),
        settings: None,
        commands,
        files: Vec::new(),
        directories: Vec::new(),
        blobs: BTreeMap::new(),
    };
    Ok((manifest, blobs))
}

/// Where a value stands in the text that it was read of.
fn place(json: &[u8], value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - json.as_ptr().addr();
    start..start + value.get().len()
}

/// Takes the quotes and escapes out of a JSON string where it stands, as what it says is never longer
/// than how it is written; the new length. `None` for other values, and half characters.
fn unescape(json: &mut [u8]) -> Option<usize> {
    let end = match json {
        [] => return Some(0),
        [b'"', .., b'"'] => json.len() - 1,
        _ => return None,
    };
    let (mut from, mut to) = (1, 0);
    while let Some(plain) = memchr::memchr(b'\\', &json[from..end]) {
        json.copy_within(from..from + plain, to);
        (from, to) = (from + plain + 2, to + plain);
        json[to] = match json[from - 1] {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let c = utf16(&json[from..end])?;
                from += if c.len_utf16() == 2 { 10 } else { 4 };
                to += c.encode_utf8(&mut json[to..]).len();
                continue;
            }
            itself => itself,
        };
        to += 1;
    }
    json.copy_within(from..end, to);
    Some(to + end - from)
}

/// The character that `e9` or the pair `d83d\ude00` begins with.
fn utf16(digits: &[u8]) -> Option<char> {
    let unit = |at: usize| {
        let digits = str::from_utf8(digits.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let pair = digits.get(4..6) == Some(br"\u");
    let second = if pair { unit(6) } else { None };
    char::decode_utf16(unit(0).into_iter().chain(second)).next()?.ok()
}

/// The recorded answer to a query that was asked in other words.
pub(super) fn answered<'m>(commands: &'m [Answered], cmd: &Cmd) -> Option<&'m Answered> {
    let asked = cmd.argv();
    let line = asked.join(" ");
    let within = commands
        .iter()
        .filter(|known| line.contains(&known.argv.join(" ")))
        .max_by_key(|known| known.argv.join(" ").len());
    if within.is_some() {
        return within;
    }
    // Of the lists of the queue only that with ids says which job is which.
    if cmd.program == "squeue" {
        return commands.iter().find(|known| {
            known.argv.first().is_some_and(|program| program == "squeue")
                && known.argv.iter().any(|word| word.contains("%i"))
        });
    }
    let bare = |argv: &[String]| -> Vec<String> {
        let words = argv.iter().filter(|word| !word.starts_with('-') && !word.contains('='));
        words.cloned().collect()
    };
    let words = bare(&asked);
    let mut alike = commands.iter().filter(|known| bare(&known.argv) == words);
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// One-letter columns of `squeue` and the names that its long form gives them.
const LETTERS: [(&str, &str); 15] = [
    ("%i", "JobArrayID"),
    ("%u", "UserName"),
    ("%a", "Account"),
    ("%P", "Partition"),
    ("%q", "QOS"),
    ("%T", "State"),
    ("%N", "NodeList"),
    ("%D", "NumNodes"),
    ("%C", "NumCPUs"),
    ("%S", "StartTime"),
    ("%e", "EndTime"),
    ("%l", "TimeLimit"),
    ("%r", "Reason"),
    ("%Q", "PriorityLong"),
    ("%j", "Name"),
];

/// The recorded table with the columns that a query wants, those it lacks empty; `None` where it is
/// no table, or is in that form already.
pub(super) fn columns(recorded: &Answered, cmd: &Cmd, stdout: &[u8]) -> Option<Vec<u8>> {
    let format = |argv: &[String]| {
        argv.iter().find_map(|word| word.strip_prefix("format=").map(str::to_owned))
    };
    let (have, wanted, delimiters) = if cmd.program == "squeue" {
        let letters = recorded.argv.iter().find(|word| word.contains("%i"))?;
        let have: Vec<String> = letters.split('|').map(long_name).collect();
        let asked = cmd.args.iter().find_map(|word| word.strip_prefix("--Format="))?;
        let (wanted, delimiters): (Vec<String>, Vec<String>) = asked
            .split(',')
            .filter_map(|field| field.split_once(':'))
            .map(|(name, delimiter)| (name.to_owned(), delimiter.to_owned()))
            .unzip();
        (have, wanted, delimiters)
    } else {
        let names = |text: String| text.split(',').map(str::to_owned).collect::<Vec<String>>();
        let (have, wanted) = (names(format(&recorded.argv)?), names(format(&cmd.args)?));
        let mut delimiters = vec!["|".to_owned(); wanted.len()];
        delimiters.pop();
        delimiters.push(String::new());
        (have, wanted, delimiters)
    };
    let places: Vec<Option<usize>> = wanted
        .iter()
        .map(|name| have.iter().position(|known| known.eq_ignore_ascii_case(name)))
        .collect();
    let mut table = Vec::with_capacity(stdout.len());
    for line in lossy(stdout).lines().filter(|line| !line.is_empty()) {
        // The last column is free text, and may hold the separator.
        let cells: Vec<&str> = line.splitn(have.len(), '|').collect();
        for (place, delimiter) in places.iter().zip(&delimiters) {
            let cell = place.and_then(|place| cells.get(place)).copied().unwrap_or_default();
            table.extend_from_slice(cell.as_bytes());
            table.extend_from_slice(delimiter.as_bytes());
        }
        table.push(b'\n');
    }
    Some(table)
}

fn long_name(letter: &str) -> String {
    let known = LETTERS.iter().find(|(short, _)| *short == letter);
    known.map_or_else(|| letter.to_owned(), |(_, long)| (*long).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SNAPSHOT: &str = r#"{"nodetop": "0.7.0", "backend": "slurm", "queue_term": "partition",
        "captured_at": "2026-07-01T12:00:00.123456", "errors": {}, "commands": {
        "scontrol show node --all --oneliner": {"rc": 0, "stdout": "NodeName=n1\n", "stderr": ""},
        "scontrol show config": {"rc": 127, "stdout": "", "stderr": "gone"},
        "sacctmgr -nP show qos format=Name,MaxWall,Flags": {"rc": 0, "stdout": "long|1-00:00:00|a,b\n", "stderr": ""},
        "sacctmgr -nP show assoc where user=alice format=Account,Partition": {"rc": 0, "stdout": "phys|\n", "stderr": ""},
        "squeue -h -t RUNNING -o %N|%e": {"rc": 0, "stdout": "n1|2026-07-02T00:00:00\n", "stderr": ""},
        "squeue -h -t RUNNING -o %i|%u|%T|%j": {"rc": 0, "stdout": "7|bob|RUNNING|a|b\n", "stderr": ""}}}"#;

    fn read(json: &str) -> Result<Parsed, RecordingError> {
        parse(Path::new("x.json"), json.into(), Timestamp::UNIX_EPOCH, &TimeZone::UTC)
    }

    #[test]
    fn a_query_in_other_words_finds_its_answer() {
        assert!(is_snapshot(SNAPSHOT.as_bytes()));
        assert!(!is_snapshot(br#"{"format": 1, "jobwise": "0.1.0"}"#) && !is_snapshot(b"[1]"));
        let (manifest, blobs) = read(SNAPSHOT).expect("sound");
        assert_eq!(manifest.clock.to_string(), "2026-07-01T12:00:00.123456Z");
        assert_eq!(manifest.caller.name.as_deref(), Some("alice"));
        let ask = |program, args: &[&str]| {
            let cmd = Cmd::new(program, args);
            let found = answered(&manifest.commands, &cmd)?;
            let stdout = blobs.get(&found.stdout)?;
            let table = columns(found, &cmd, stdout).unwrap_or_else(|| stdout.to_vec());
            String::from_utf8(table).ok()
        };
        let nodes = ask("scontrol", &["--all", "--details", "--oneliner", "show", "node"]);
        assert_eq!(nodes.as_deref(), Some("NodeName=n1\n"));
        let qos =
            ["--readonly", "--noheader", "--parsable2", "show", "qos", "format=Flags,Grp,Name"];
        assert_eq!(ask("sacctmgr", &qos).as_deref(), Some("a,b||long\n"));
        let jobs = ["--all", "--noheader", "--Format=JobArrayID:@,NumCPUs:@,Name:@"];
        assert_eq!(ask("squeue", &jobs).as_deref(), Some("7@@a|b@\n"));
        assert_eq!(ask("scontrol", &["--all", "--oneliner", "show", "reservation"]), None);
        assert_eq!(ask("sbatch", &["--test-only", "--wrap=true"]), None);
    }

    #[test]
    fn what_is_no_snapshot_is_refused_with_its_place() {
        let error = |json: &str| read(json).expect_err("refused").to_string();
        assert!(
            error(r#"{"backend": "slurm", "commands": []}"#).starts_with("x.json: not a recording")
        );
        assert!(error(r#"{"backend": "slurm", "commands": {"a": 1}}"#).contains("not a recording"));
        assert!(error(&SNAPSHOT[..300]).contains("not a recording"));
        assert!(error(r#"{"backend": "pbs", "commands": {}}"#).contains("it is of pbs"));
        for odd in ["1", r#"["a"]"#, r#""\ud83d""#, r#""\ud83d\u0041""#] {
            let json = format!(
                r#"{{"backend": "slurm", "commands": {{"a b": {{"rc": 0, "stdout": {odd}}}}}}}"#
            );
            assert_eq!(error(&json), "x.json: not a recording: an answer in it is no text");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_what_it_was_before_it_was_written(text in any::<String>(), all in any::<bool>()) {
            // As Python writes them: every character beyond ASCII as one or two units of UTF-16.
            let mut json = serde_json::to_string(&text).expect("a text");
            if all {
                let units = json.encode_utf16();
                json = units.map(|unit| match u8::try_from(unit).ok().filter(u8::is_ascii) {
                    Some(byte) => char::from(byte).to_string(),
                    None => format!("\\u{unit:04x}"),
                }).collect();
            }
            let mut bytes = json.into_bytes();
            let length = unescape(&mut bytes).expect("a sound text");
            prop_assert_eq!(str::from_utf8(&bytes[..length]), Ok(text.as_str()));
        }
    }
}
