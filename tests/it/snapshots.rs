//! What each command about capacity prints of the demo cluster, kept in `tests/it/snapshots`: the
//! text at 80 columns without colour, and the shape of its JSON, so that no answer changes unseen.
//!
//! A file is no proof that an answer is right; the other tests are. To renew them after a change
//! that was meant: `JOBWISE_RENEW=1 cargo test --test it snapshots`, and read the difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::Test;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots");

/// The file, and what is asked.
const ASKED: &[(&str, &[&str])] = &[
    ("status", &["status"]),
    ("status-all", &["status", "--all"]),
    ("status-declared", &["status", "--declared"]),
    ("queues", &["queues"]),
    ("queues-detail", &["queues", "--detail", "--all"]),
    ("zoom", &["zoom", "gpu,cn02,3100002,3100013"]),
    ("nodes", &["nodes", "--all"]),
    ("gpus", &["gpus"]),
    ("health", &["health", "--history"]),
    ("exclude", &["exclude", "--gpu-nodes", "--unschedulable", "--degraded"]),
    ("backends", &["backends"]),
    ("where", &["where", "-g", "a100:2", "-t", "4h"]),
    ("where-all", &["where", "-c", "4", "--all"]),
    ("where-what-if", &["where", "-g", "1", "-p", "gpu", "--what-if"]),
    ("check", &["check"]),
];

/// Every place in a document that holds something, with what it holds.
fn shape(value: &Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            // Names of things are no part of the schema.
            let is_map =
                fields.keys().any(|key| !key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            for (key, value) in fields {
                let key = if is_map { "*" } else { key };
                shape(value, &format!("{place}.{key}"), found);
            }
        }
        Value::Array(items) => {
            for item in items {
                shape(item, &format!("{place}[]"), found);
            }
        }
        Value::Null => {}
        Value::Bool(_) => drop(found.insert(format!("{place} boolean"))),
        Value::Number(_) => drop(found.insert(format!("{place} number"))),
        Value::String(_) => drop(found.insert(format!("{place} text"))),
    }
}

#[test]
fn the_answers_about_the_demo_are_those_that_are_kept() {
    let renews = std::env::var_os("JOBWISE_RENEW").is_some();
    for (name, args) in ASKED {
        let test = Test::new(&format!("snapshot-{name}")).env("COLUMNS", "80").env("NO_COLOR", "1");
        let text = test.run(&[&["--demo"], *args].concat());
        let json = test.run(&[&["--demo"], *args, &["--json"]].concat());
        assert_eq!(text.code, json.code, "{args:?}\n{}", text.all());
        let mut places = BTreeSet::new();
        shape(&json.json(), "", &mut places);
        let places: Vec<String> = places.into_iter().collect();
        let printed = format!(
            "$ jobwise --demo {}\n{}\n$ jobwise --demo {} --json\n{}\n",
            args.join(" "),
            text.stdout,
            args.join(" "),
            places.join("\n")
        );
        let path = Path::new(FOLDER).join(format!("{name}.txt"));
        if renews {
            fs::write(&path, &printed).expect("written");
            continue;
        }
        let kept = fs::read_to_string(&path).expect("kept");
        assert_eq!(printed, kept, "{}", path.display());
    }
}
