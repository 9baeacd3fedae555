//! Failure families: `knowledge/<family>.md`, front matter = the rule, body = the fix.
//!
//! Reads the embedded files and those of an overlay, and checks what can be checked without
//! running a rule. It does not know what a job is or which family caused anything: that is
//! `classify`. Patterns are kept as text here, so that reading all families stays cheap.

mod check;
mod family;
mod page;
mod parse;
mod placeholder;

pub use check::{Finding, SECTIONS, VALUES, check};
pub use family::{Check, Family, Provenance, RecordPattern, Section, Signal, SignalSource};
pub use page::{Page, page};
pub use parse::{KnowledgeError, Notes, built_in, parse};
pub use placeholder::{filled, placeholder_names, unfilled};
