//! Failure families: `knowledge/<family>.md`, front matter = the rule, body = the fix.

mod family;

pub use family::{Family, Provenance, RecordPattern, Section, Signal, SignalSource};
