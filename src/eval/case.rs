//! Labelled cases, one JSON object a line.
//!
//! A case holds its record and its logs, or names a recording of a cluster. Unknown fields are
//! left alone: a set of cases may say more than is measured here. The format stands in
//! `eval/README.md`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::fnv1a;

/// One labelled case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// The label.
    pub family: String,
    /// Other labels that are as right.
    pub also: Vec<String>,
    /// `run`, `submit` or `pending`, where the case says it.
    pub stage: Option<String>,
    /// How hard it is, in the words of its set.
    pub difficulty: Option<String>,
    /// Where its messages come from; cases of one source are kept together.
    pub source: String,
    /// The line that tells the cause, as it stands in a log without escape sequences; empty where
    /// none does.
    pub root_cause_line: String,
    /// `log_out`, `log_err`, `sacct` or `none`.
    pub root_cause_in: String,
    /// What there is to diagnose.
    pub material: Material,
}

/// What there is to diagnose.
#[derive(Debug, Clone, PartialEq)]
pub enum Material {
    /// A record and logs.
    Texts(Texts),
    /// A job of a recorded cluster.
    Recording {
        /// The recording, relative to the folder of the cases.
        path: String,
        /// The job.
        job: String,
    },
}

/// A record and logs as they stand in a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Texts {
    /// The fields of the record by `sacct`'s names; empty where nothing was submitted.
    pub record: BTreeMap<String, String>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The batch script.
    pub script: String,
}

/// A line that is no case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Which cases of a set: a third is kept apart, so that rules written with the others in view can
/// be measured on cases that nobody has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Split {
    /// Those that may be looked at.
    Open,
    /// Those kept apart: their source hashes to 0 modulo 3.
    Blind,
    /// Both.
    #[default]
    All,
}

impl Split {
    /// Whether a case belongs to it.
    pub fn holds(self, case: &Case) -> bool {
        let blind = fnv1a(case.source.as_bytes()).is_multiple_of(3);
        match self {
            Self::All => true,
            Self::Open => !blind,
            Self::Blind => blind,
        }
    }
}

#[derive(Deserialize)]
struct Written {
    id: String,
    family: String,
    #[serde(default)]
    also: Vec<String>,
    stage: Option<String>,
    difficulty: Option<String>,
    #[serde(default)]
    source: String,
    #[serde(default)]
    root_cause_line: String,
    #[serde(default)]
    root_cause_in: String,
    #[serde(default)]
    sacct: BTreeMap<String, Value>,
    #[serde(default)]
    log_out: String,
    #[serde(default)]
    log_err: String,
    #[serde(default)]
    script: String,
    recording: Option<String>,
    job: Option<String>,
}

/// Reads a set of cases; a line that is none costs no other.
pub fn read(text: &str) -> (Vec<Case>, Vec<BadLine>) {
    let mut cases = Vec::new();
    let mut bad = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match case(line) {
            Ok(case) => cases.push(case),
            Err(what) => bad.push(BadLine { line: index + 1, what }),
        }
    }
    (cases, bad)
}

fn case(line: &str) -> Result<Case, String> {
    let written: Written = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let material = match (written.recording, written.job) {
        (Some(path), Some(job)) => Material::Recording { path, job },
        (None, None) => Material::Texts(Texts {
            record: record(written.sacct),
            out: written.log_out,
            err: written.log_err,
            script: written.script,
        }),
        _ => return Err("a recording needs a job, and a job a recording".to_owned()),
    };
    Ok(Case {
        id: written.id,
        family: written.family,
        also: written.also,
        stage: written.stage,
        difficulty: written.difficulty,
        source: written.source,
        root_cause_line: written.root_cause_line,
        root_cause_in: written.root_cause_in,
        material,
    })
}

/// When the jobs of cases without times began: any moment does, what counts is that they did.
const BEGAN: &str = "1700000000";

/// Fields as `sacct` prints them. Cases name no times, but a job that held nodes has begun.
fn record(written: BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = written
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => (name, text),
            Value::Null => (name, String::new()),
            other => (name, other.to_string()),
        })
        .collect();
    let nodes = fields.get("NodeList").map(|nodes| nodes.trim());
    if nodes.is_some_and(|nodes| !matches!(nodes, "" | "None assigned" | "(null)")) {
        fields.entry("Start".to_owned()).or_insert_with(|| BEGAN.to_owned());
    }
    fields
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_that_is_no_case_is_named_and_costs_no_other() {
        let set = "{\"id\": \"1\", \"family\": \"a\"}\n\nnot json\n\
                   {\"id\": \"2\"}\n{\"id\": \"3\", \"family\": \"b\", \"recording\": \"x\"}\n\
                   {\"id\": \"4\", \"family\": \"b\", \"notes\": \"more\"}\n";
        let (cases, bad) = read(set);
        let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, ["1", "4"]);
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [3, 4, 5]);
        assert!(bad[1].what.contains("family"), "{}", bad[1].what);
        assert_eq!(read(""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_record_is_as_sacct_prints_it() {
        let line = r#"{"id": "1", "family": "a", "sacct": {"NNodes": 2, "MaxRSS": null,
            "NodeList": "n[1-2]", "Elapsed": "00:00:05"}}"#;
        let (cases, _) = read(&line.replace('\n', ""));
        let Material::Texts(texts) = &cases[0].material else { panic!("a record") };
        assert_eq!(texts.record["NNodes"], "2");
        assert_eq!(texts.record["MaxRSS"], "");
        assert!(texts.record.contains_key("Start"), "a job that held nodes has begun");
        let pending = r#"{"id": "1", "family": "a", "sacct": {"NodeList": "None assigned"}}"#;
        let (cases, _) = read(pending);
        let Material::Texts(texts) = &cases[0].material else { panic!("a record") };
        assert!(!texts.record.contains_key("Start"));
    }

    #[test]
    fn the_splits_are_whole_and_apart() {
        // FNV-1a of "" is 14695981039346656037: its digits add up to 95, so modulo 3 it is 2.
        let (cases, _) = read(r#"{"id": "1", "family": "a"}"#);
        let held = [Split::Open, Split::Blind, Split::All].map(|split| split.holds(&cases[0]));
        assert_eq!(held, [true, false, true]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>()) {
            let (cases, bad) = read(&text);
            prop_assert!(cases.len() + bad.len() <= text.lines().count());
        }
    }
}
