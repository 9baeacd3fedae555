//! A value that may not be known, and why.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A measurement or setting as far as it is known.
///
/// Absence is a value of its own: it prints as `n/a` (never a digit) and is `null` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Known<T> {
    /// The scheduler said so.
    Value(T),
    /// The site, the scheduler version or the moment does not provide it.
    #[default]
    NotGathered,
    /// There is explicitly no limit.
    Unlimited,
    /// Something was there that could not be understood; the text is what was found.
    /// Boxed, so that a number that may not be known takes two words.
    Unreadable(Box<String>),
}

impl<T> Known<T> {
    /// Something that could not be understood.
    pub fn unreadable(text: &str) -> Self {
        Self::Unreadable(Box::new(text.to_owned()))
    }

    /// The value, when there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether there is a value.
    pub fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// Applies `f` to the value; every kind of absence stays what it is.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Value(value) => Known::Value(f(value)),
            Self::NotGathered => Known::NotGathered,
            Self::Unlimited => Known::Unlimited,
            Self::Unreadable(text) => Known::Unreadable(text),
        }
    }

    /// Borrows the value.
    pub fn as_ref(&self) -> Known<&T> {
        match self {
            Self::Value(value) => Known::Value(value),
            Self::NotGathered => Known::NotGathered,
            Self::Unlimited => Known::Unlimited,
            Self::Unreadable(text) => Known::Unreadable(text.clone()),
        }
    }

    /// This value, or `other` where this one was not gathered.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::NotGathered => other,
            known => known,
        }
    }
}

impl<T: Ord> Known<T> {
    /// Whether it is more than some amount; what is not known is not.
    pub fn exceeds(&self, most: &T) -> bool {
        match self {
            Self::Value(value) => value > most,
            Self::Unlimited => true,
            Self::NotGathered | Self::Unreadable(_) => false,
        }
    }
}

impl<T: Copy> Known<T> {
    /// A copy of the value, when there is one.
    pub fn get(&self) -> Option<T> {
        self.value().copied()
    }
}

impl<T> From<Option<T>> for Known<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NotGathered, Self::Value)
    }
}

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Unlimited => f.pad("unlimited"),
            Self::NotGathered | Self::Unreadable(_) => f.pad("n/a"),
        }
    }
}

impl<T: Serialize> Serialize for Known<T> {
    /// A value as itself, no limit as `"unlimited"`, anything unknown as `null`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Unlimited => serializer.serialize_str("unlimited"),
            Self::NotGathered | Self::Unreadable(_) => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Known<T> {
    /// What [`Serialize`] wrote; what was unreadable comes back as not gathered.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written<T> {
            Value(T),
            Word(Unlimited),
            Nothing(()),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Unlimited {
            Unlimited,
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Value(value) => Self::Value(value),
            Written::Word(Unlimited::Unlimited) => Self::Unlimited,
            Written::Nothing(()) => Self::NotGathered,
        })
    }
}
