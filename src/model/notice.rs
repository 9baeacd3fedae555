//! What an answer lacks, said beside the answer.

use serde::Serialize;

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Info,
    /// The answer is less complete or less certain for it.
    Warning,
}

/// A degraded part of an answer: shown in text, present in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// A stable word for programs, such as `no-accounting`.
    pub code: &'static str,
    /// How much it matters.
    pub level: Level,
    /// One sentence for people.
    pub text: String,
    /// What would help, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Notice {
    /// A notice that makes the answer less certain.
    pub fn warning(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, level: Level::Warning, text: text.into(), hint: None }
    }

    /// A notice that is only good to know.
    pub fn info(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, level: Level::Info, text: text.into(), hint: None }
    }

    /// Adds what would help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
