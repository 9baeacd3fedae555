//! The closed vocabulary of changes that a family may ask of a batch script.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A change to a batch script, as a family's front matter names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Ask for more host memory, in the option the script already uses.
    Memory,
    /// Ask for more time.
    Time,
    /// Set an environment variable, unless the script already sets it.
    Env {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
    /// Let the scheduler run the job again when a node fails or it is preempted.
    Requeue,
    /// Leave out the node that failed.
    Exclude,
    /// Activate the virtual environment that lies beside the job.
    Activate,
    /// Make the directory of the logs before submitting.
    MakeDirectory,
}

/// An edit that is not in the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an edit (known: {known})", known = Edit::FORMS.join(", "))]
pub struct EditError {
    /// What was found.
    pub text: String,
}

impl Edit {
    /// Every form, as it is written in front matter.
    pub const FORMS: [&'static str; 7] =
        ["memory", "time", "env NAME=VALUE", "requeue", "exclude", "activate", "make-directory"];
}

impl FromStr for Edit {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        let error = || EditError { text: text.to_owned() };
        match text.trim() {
            "memory" => Ok(Self::Memory),
            "time" => Ok(Self::Time),
            "requeue" => Ok(Self::Requeue),
            "exclude" => Ok(Self::Exclude),
            "activate" => Ok(Self::Activate),
            "make-directory" => Ok(Self::MakeDirectory),
            other => {
                let setting = other.strip_prefix("env ").ok_or_else(error)?;
                let (name, value) = setting.trim().split_once('=').ok_or_else(error)?;
                let valid = !name.is_empty()
                    && !name.starts_with(|c: char| c.is_ascii_digit())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if !valid {
                    return Err(error());
                }
                Ok(Self::Env { name: name.to_owned(), value: value.to_owned() })
            }
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Time => f.write_str("time"),
            Self::Env { name, value } => write!(f, "env {name}={value}"),
            Self::Requeue => f.write_str("requeue"),
            Self::Exclude => f.write_str("exclude"),
            Self::Activate => f.write_str("activate"),
            Self::MakeDirectory => f.write_str("make-directory"),
        }
    }
}

impl Serialize for Edit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
