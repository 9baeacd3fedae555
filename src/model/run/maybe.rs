//! A number that may not be known, in the room of the number.

use std::fmt;

use serde::{Serialize, Serializer};

/// A number or nothing. The greatest number of its kind, which no record holds, stands for nothing;
/// so a million records cost half of what `Option` would take.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Maybe<T>(T);

impl<T: Number> Maybe<T> {
    /// Nothing is known.
    pub const NONE: Self = Self(T::NOTHING);

    /// A known number.
    pub fn some(number: T) -> Self {
        Self(number)
    }

    /// The number, where it is known.
    pub fn get(self) -> Option<T> {
        (self.0 != T::NOTHING).then_some(self.0)
    }

    /// Whether it is known.
    pub fn is_some(self) -> bool {
        self.0 != T::NOTHING
    }

    /// This one, or the other where this one is not known.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self.is_some() { self } else { other }
    }
}

impl Maybe<u64> {
    /// The sum of what is known; nothing where nothing is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self.get(), other.get()) {
            (Some(one), Some(other)) => Self(one.saturating_add(other).min(u64::MAX - 1)),
            _ => self.or(other),
        }
    }

    /// This one, where it is more than zero.
    #[must_use]
    pub fn positive(self) -> Self {
        self.get().filter(|number| *number > 0).into()
    }

    /// The greater of what is known.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.get().max(other.get()).into()
    }
}

/// A number with a value that stands for nothing.
pub trait Number: Copy + PartialEq {
    /// That value.
    const NOTHING: Self;
}

impl Number for u16 {
    const NOTHING: Self = Self::MAX;
}

impl Number for u32 {
    const NOTHING: Self = Self::MAX;
}

impl Number for u64 {
    const NOTHING: Self = Self::MAX;
}

impl<T: Number> Default for Maybe<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T: Number> From<Option<T>> for Maybe<T> {
    fn from(number: Option<T>) -> Self {
        number.map_or(Self::NONE, Self)
    }
}

impl<T: Number + fmt::Debug> fmt::Debug for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<T: Number + Serialize> Serialize for Maybe<T> {
    /// The number, or `null`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_number_and_takes_no_room() {
        assert_eq!(size_of::<Maybe<u64>>(), 8);
        assert_eq!(Maybe::<u32>::default().get(), None);
        assert_eq!(Maybe::some(0_u32).get(), Some(0));
        assert_eq!(serde_json::to_string(&Maybe::<u64>::NONE).ok().as_deref(), Some("null"));
    }

    #[test]
    fn only_what_is_known_is_added_and_compared() {
        let (none, two, three) = (Maybe::NONE, Maybe::some(2_u64), Maybe::some(3));
        assert_eq!((two.plus(three), two.plus(none)), (Maybe::some(5), two));
        assert_eq!((none.plus(none), none.max(two), two.max(three)), (none, two, three));
        // A sum never turns into "not known".
        assert!(Maybe::some(u64::MAX - 1).plus(three).is_some());
    }
}
