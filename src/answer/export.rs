//! Every run of a history, as flat records that any program can read, ours included.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::past::{self, Wanted};
use super::{AnswerError, World, mask};
use crate::model::{History, Notice, RUN_SCHEMA, Run};

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One JSON object a line.
    Lines,
    /// Comma-separated values with a heading.
    Table,
}

/// The records.
#[derive(Debug)]
pub struct Export {
    /// The runs.
    pub history: History,
    /// How they are written.
    pub layout: Layout,
}

/// Reads a history to be written out.
pub fn export(world: World<'_>, wanted: &Wanted, layout: Layout) -> Result<Export, AnswerError> {
    let mut history = past::past(world, wanted)?;
    mask::history(&mut history);
    Ok(Export { history, layout })
}

impl Export {
    /// The name of the schema.
    pub const SCHEMA: &str = "jobwise/export/1";

    /// Each run as an object of its own.
    pub fn objects(&self) -> impl Iterator<Item = impl Serialize> {
        let (history, schema) = (&self.history, Some(RUN_SCHEMA));
        history.runs.iter().map(move |run| Flat { run, history, schema })
    }

    /// What the records lack.
    pub fn notices(&self) -> &[Notice] {
        &self.history.notices
    }
}

/// One run as one object, its fields in the order of the schema.
struct Flat<'h> {
    run: &'h Run,
    history: &'h History,
    /// The name of the schema, where the object stands alone.
    schema: Option<&'static str>,
}

impl Serialize for Flat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(schema) = self.schema {
            map.serialize_entry("schema", schema)?;
        }
        for (name, value) in self.run.flat(&self.history.names) {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

impl Serialize for Export {
    /// All of it as one document.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Runs<'h>(&'h History);
        impl Serialize for Runs<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut runs = serializer.serialize_seq(Some(self.0.runs.len()))?;
                for run in &self.0.runs {
                    runs.serialize_element(&Flat { run, history: self.0, schema: None })?;
                }
                runs.end()
            }
        }
        let mut document = serializer.serialize_map(Some(3))?;
        document.serialize_entry("schema", Self::SCHEMA)?;
        document.serialize_entry("runs", &Runs(&self.history))?;
        document.serialize_entry("notices", self.notices())?;
        document.end()
    }
}
