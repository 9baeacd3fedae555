//! The options of `sbatch` and the way `getopt_long` reads them.
//!
//! Facts: `sbatch --help` of 22.05, 24.11 and 26.05, the manual page, and what sbatch 22.05 names
//! when an abbreviation is ambiguous. Options of site plugins are not in the table; they are kept
//! as written.

use super::words::Word;
use std::ops::Range;

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Only attached: `--nice=5`, never `--nice 5`.
    Maybe,
    Value,
}
use Takes::{Maybe, Nothing, Value};

/// Long name, short name, value.
const OPTIONS: &[(&str, Option<u8>, Takes)] = &[
    ("account", Some(b'A'), Value),
    ("acctg-freq", None, Value),
    ("array", Some(b'a'), Value),
    ("batch", None, Value),
    ("bb", None, Value),
    ("bbf", None, Value),
    ("begin", Some(b'b'), Value),
    ("chdir", Some(b'D'), Value),
    ("cluster", None, Value),
    ("cluster-constraint", None, Value),
    ("clusters", Some(b'M'), Value),
    ("comment", None, Value),
    ("constraint", Some(b'C'), Value),
    ("container", None, Value),
    ("container-id", None, Value),
    ("container-type", None, Value),
    ("context", None, Value),
    ("contiguous", None, Nothing),
    ("core-spec", Some(b'S'), Value),
    ("cores-per-socket", None, Value),
    ("cpu-freq", None, Value),
    ("cpus-per-gpu", None, Value),
    ("cpus-per-task", Some(b'c'), Value),
    ("deadline", None, Value),
    ("delay-boot", None, Value),
    ("dependency", Some(b'd'), Value),
    ("distribution", Some(b'm'), Value),
    ("error", Some(b'e'), Value),
    ("exclude", Some(b'x'), Value),
    ("exclusive", None, Maybe),
    ("export", None, Value),
    ("export-file", None, Value),
    ("extra", None, Value),
    ("extra-node-info", Some(b'B'), Value),
    ("get-user-env", None, Maybe),
    ("gid", None, Value),
    ("gpu-bind", None, Value),
    ("gpu-freq", None, Value),
    ("gpus", Some(b'G'), Value),
    ("gpus-per-node", None, Value),
    ("gpus-per-socket", None, Value),
    ("gpus-per-task", None, Value),
    ("gres", None, Value),
    ("gres-flags", None, Value),
    ("help", Some(b'h'), Nothing),
    ("hint", None, Value),
    ("hold", Some(b'H'), Nothing),
    ("ignore-pbs", None, Nothing),
    ("input", Some(b'i'), Value),
    ("job-name", Some(b'J'), Value),
    ("kill-on-invalid-dep", None, Value),
    ("licenses", Some(b'L'), Value),
    ("mail-type", None, Value),
    ("mail-user", None, Value),
    ("mcs-label", None, Value),
    ("mem", None, Value),
    ("mem-bind", None, Value),
    ("mem-per-cpu", None, Value),
    ("mem-per-gpu", None, Value),
    ("mincpus", None, Value),
    ("network", None, Value),
    ("nice", None, Maybe),
    ("no-kill", Some(b'k'), Maybe),
    ("no-requeue", None, Nothing),
    ("nodefile", Some(b'F'), Value),
    ("nodelist", Some(b'w'), Value),
    ("nodes", Some(b'N'), Value),
    ("ntasks", Some(b'n'), Value),
    ("ntasks-per-core", None, Value),
    ("ntasks-per-gpu", None, Value),
    ("ntasks-per-node", None, Value),
    ("ntasks-per-socket", None, Value),
    ("ntasks-per-tres", None, Value),
    ("oom-kill-step", None, Maybe),
    ("open-mode", None, Value),
    ("output", Some(b'o'), Value),
    ("overcommit", Some(b'O'), Nothing),
    ("oversubscribe", Some(b's'), Nothing),
    ("parsable", None, Nothing),
    ("partition", Some(b'p'), Value),
    ("power", None, Value),
    ("prefer", None, Value),
    ("priority", None, Value),
    ("profile", None, Value),
    ("propagate", None, Maybe),
    ("qos", Some(b'q'), Value),
    ("quiet", Some(b'Q'), Nothing),
    ("reboot", None, Nothing),
    ("requeue", None, Maybe),
    ("reservation", None, Value),
    ("resv-ports", None, Maybe),
    ("segment", None, Value),
    ("signal", None, Value),
    ("sockets-per-node", None, Value),
    ("spread-job", None, Nothing),
    ("spread-segments", None, Nothing),
    ("switches", None, Value),
    ("tasks-per-node", None, Value),
    ("test-only", None, Nothing),
    ("thread-spec", None, Value),
    ("threads-per-core", None, Value),
    ("time", Some(b't'), Value),
    ("time-min", None, Value),
    ("tmp", None, Value),
    ("tres-bind", None, Value),
    ("tres-per-task", None, Value),
    ("uid", None, Value),
    ("usage", None, Nothing),
    ("use-min-nodes", None, Nothing),
    ("verbose", Some(b'v'), Nothing),
    ("version", Some(b'V'), Nothing),
    ("wait", Some(b'W'), Nothing),
    ("wait-all-nodes", None, Value),
    ("wckey", None, Value),
    ("wrap", None, Value),
];

/// What one or two words say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An option.
    Option {
        /// The canonical long name, or the name as written where it is not in the table.
        long: String,
        /// The option as written, up to its value: `-t`, `-t `, `--time=`, `--time `.
        spelled: String,
        /// The value.
        value: Option<String>,
        /// Where the value stands, when it can be replaced.
        span: Option<Range<usize>>,
        /// The line of the option.
        line: usize,
        /// Whether the table knows it.
        known: bool,
    },
    /// An abbreviation of several options: `sbatch` refuses it.
    Ambiguous {
        /// As written.
        text: String,
        /// The line.
        line: usize,
    },
    /// An option that lacks its value.
    Lacking {
        /// As written.
        text: String,
        /// The line.
        line: usize,
    },
    /// A word that is no option.
    Plain {
        /// Its place among the words.
        index: usize,
    },
}

enum Found {
    Known(&'static str, Takes),
    Ambiguous,
    Unknown,
}

fn find(name: &str) -> Found {
    let mut prefixed = OPTIONS.iter().filter(|(long, ..)| long.starts_with(name));
    if let Some((long, _, takes)) = OPTIONS.iter().find(|(long, ..)| *long == name) {
        return Found::Known(long, *takes);
    }
    match (prefixed.next(), prefixed.next()) {
        (Some((long, _, takes)), None) if !name.is_empty() => Found::Known(long, *takes),
        (Some(_), Some(_)) if !name.is_empty() => Found::Ambiguous,
        _ => Found::Unknown,
    }
}

/// One name for the two that mean the same.
fn canonical(long: &str) -> String {
    match long {
        "cluster" => "clusters",
        "tasks-per-node" => "ntasks-per-node",
        other => other,
    }
    .to_owned()
}

/// Reads words as options. Words that are none are reported and passed over.
pub(super) fn read(words: &[Word]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = String::from_utf8_lossy(&word.text).into_owned();
        let (index, line) = (at, word.line);
        at += 1;
        if let Some(name) = text.strip_prefix("--").filter(|name| !name.is_empty()) {
            let (name, attached) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let (long, takes, known) = match find(name) {
                Found::Known(long, takes) => (canonical(long), takes, true),
                Found::Ambiguous => {
                    items.push(Item::Ambiguous { text: format!("--{name}"), line });
                    continue;
                }
                // A plugin's: whether it takes a value can only be guessed from what follows.
                Found::Unknown => {
                    let follows = words.get(at).is_some_and(|next| !next.text.starts_with(b"-"));
                    (name.to_owned(), if follows { Value } else { Nothing }, false)
                }
            };
            let (spelled, value, span) = if attached.is_some() {
                let equals = word.text.iter().position(|byte| *byte == b'=');
                let span = equals.and_then(|equals| word.written(equals + 1));
                (format!("--{name}="), attached, span)
            } else if takes == Value {
                let Some(next) = words.get(at) else {
                    items.push(Item::Lacking { text, line });
                    continue;
                };
                at += 1;
                let value = String::from_utf8_lossy(&next.text).into_owned();
                (format!("--{name} "), Some(value), next.written(0))
            } else {
                (text, None, None)
            };
            items.push(Item::Option { long, spelled, value, span, line, known });
        } else if text.starts_with('-') && text.len() > 1 && text != "--" {
            at = read_short(words, index, &mut items);
        } else {
            items.push(Item::Plain { index });
        }
    }
    items
}

/// Reads a cluster of short options (`-Hn2`); returns the index of the next unread word.
fn read_short(words: &[Word], index: usize, items: &mut Vec<Item>) -> usize {
    let Some(word) = words.get(index) else { return index + 1 };
    let line = word.line;
    let mut letter = 1;
    while let Some(&byte) = word.text.get(letter) {
        let known = OPTIONS.iter().find(|(_, short, _)| *short == Some(byte));
        let shown = format!("-{}", char::from(byte));
        let long = known.map_or_else(|| char::from(byte).to_string(), |(long, ..)| canonical(long));
        let takes = known.map_or(Nothing, |(_, _, takes)| *takes);
        let known = known.is_some();
        letter += 1;
        let attached = letter < word.text.len();
        if takes == Nothing || (takes == Maybe && !attached) {
            items.push(Item::Option { long, spelled: shown, value: None, span: None, line, known });
            continue;
        }
        let (spelled, value, span, next) = if attached {
            (shown, word.text.get(letter..), word.written(letter), index + 1)
        } else if let Some(next) = words.get(index + 1) {
            (format!("{shown} "), Some(next.text.as_slice()), next.written(0), index + 2)
        } else {
            items.push(Item::Lacking { text: shown, line });
            return index + 1;
        };
        let value = value.map(|value| String::from_utf8_lossy(value).into_owned());
        items.push(Item::Option { long, spelled, value, span, line, known });
        return next;
    }
    index + 1
}
