//! Runs as lines of JSON or as a table of comma-separated values (RFC 4180).
//!
//! A line of JSON comes back exactly. A cell of the table shows text as a terminal may: what could
//! steer one is left out, for a table is opened by people.

use std::io;

use serde_json::Value;

use super::Report;
use super::page::Page;
use crate::answer::export::{Export, Layout};
use crate::model::run_fields;
use crate::text;

impl Report for Export {
    fn text(&self, page: &mut Page<'_>) -> io::Result<()> {
        let history = &self.history;
        match self.layout {
            Layout::Lines => {
                for object in self.objects() {
                    page.verbatim(&harmless(&serde_json::to_string(&object)?))?;
                }
            }
            Layout::Table => {
                let names: Vec<&str> = run_fields().map(|field| field.name).collect();
                page.verbatim(&names.join(","))?;
                for run in &history.runs {
                    let cells = run.flat(&history.names).map(|(_, value)| cell(&value));
                    page.verbatim(&cells.collect::<Vec<_>>().join(","))?;
                }
            }
        }
        Ok(())
    }
}

/// The same JSON, in which nothing can steer a terminal.
fn harmless(line: &str) -> String {
    if !line.contains(text::steers) {
        return line.to_owned();
    }
    let mut clean = String::with_capacity(line.len());
    for c in line.chars() {
        if text::steers(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                clean.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            clean.push(c);
        }
    }
    clean
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text::printable(text.as_bytes()),
        other => other.to_string(),
    };
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
