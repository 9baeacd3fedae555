//! Texts that many records share, each kept once.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;

/// A text of [`Names`]. Comparable only with symbols of the same set; `Option<Symbol>` is four
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(NonZeroU32);

/// A set of texts that numbers them in the order in which they came.
///
/// A million job names are a million texts: they stand one after the other in one buffer, without
/// an allocation each. Hashes are seeded by chance, since names are what users write; no answer
/// depends on their order.
#[derive(Debug, Clone, Default)]
pub struct Names {
    text: String,
    /// Where each text ends.
    ends: Vec<usize>,
    /// Open addressing with linear probing, a power of two of places.
    table: Vec<Place>,
    seed: RandomState,
}

/// A place of the table. With half of the hash beside it a symbol whose text is another one is
/// passed over, and the table grows, without a look at the texts.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    hash: u32,
    symbol: Option<Symbol>,
}

impl Names {
    /// The symbol of a text.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if self.table.len() * 3 <= self.ends.len() * 4 {
            self.grow();
        }
        let hash = self.hash(text);
        let place = self.place(hash, text);
        if let Some(found) = self.table[place].symbol {
            return found;
        }
        self.text.push_str(text);
        self.ends.push(self.text.len());
        // Four thousand million different texts do not fit a machine that could ask for them.
        let number = u32::try_from(self.ends.len()).ok().and_then(NonZeroU32::new);
        let symbol = Symbol(number.unwrap_or(NonZeroU32::MAX));
        self.table[place] = Place { hash, symbol: Some(symbol) };
        symbol
    }

    /// The symbol of a text that says something: `None` for the empty one.
    pub fn intern_some(&mut self, text: &str) -> Option<Symbol> {
        (!text.is_empty()).then(|| self.intern(text))
    }

    /// The text of a symbol of this set; of another set's, some text or none.
    pub fn get(&self, symbol: Symbol) -> &str {
        let index = symbol.0.get() as usize - 1;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(index).copied().unwrap_or(0);
        self.text.get(start.unwrap_or(0)..end).unwrap_or("")
    }

    /// The symbol of a text, if it is in the set.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        if self.table.is_empty() {
            return None;
        }
        self.table[self.place(self.hash(text), text)].symbol
    }

    /// Changes every text; each keeps its symbol. Two may then be the same text under two symbols,
    /// so nothing is to be looked up any more.
    pub fn change(&mut self, change: impl Fn(&str) -> String) {
        let old = std::mem::take(self);
        let mut start = 0;
        for end in old.ends {
            self.text.push_str(&change(&old.text[start..end]));
            self.ends.push(self.text.len());
            start = end;
        }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
    fn hash(&self, text: &str) -> u32 {
        self.seed.hash_one(text) as u32
    }

    /// Where a text stands in the table, or the free place where it would.
    fn place(&self, hash: u32, text: &str) -> usize {
        let is_it = |place: Place| {
            place.hash == hash && place.symbol.is_some_and(|it| self.get(it) == text)
        };
        place(&self.table, hash, is_it)
    }

    fn grow(&mut self) {
        let mut table = vec![Place::default(); (self.table.len() * 2).max(64)];
        for old in self.table.iter().filter(|place| place.symbol.is_some()) {
            let free = place(&table, old.hash, |_| false);
            table[free] = *old;
        }
        self.table = table;
    }
}

/// The place of a table that is the one looked for, or the free one where it would stand.
fn place(table: &[Place], hash: u32, is_it: impl Fn(Place) -> bool) -> usize {
    let mask = table.len() - 1;
    let mut place = hash as usize & mask;
    while table[place].symbol.is_some() && !is_it(table[place]) {
        place = (place + 1) & mask;
    }
    place
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_symbol_is_small_and_absence_takes_no_room() {
        assert_eq!(size_of::<Option<Symbol>>(), 4);
    }

    proptest! {
        /// As a map of the standard library would have it.
        #[test]
        fn each_text_has_one_symbol(texts in prop::collection::vec("[ab]{0,3}|.{0,9}", 0..300)) {
            let mut names = Names::default();
            let mut known: HashMap<String, Symbol> = HashMap::new();
            for text in &texts {
                prop_assert_eq!(names.find(text), known.get(text).copied());
                let symbol = names.intern(text);
                prop_assert_eq!(*known.entry(text.clone()).or_insert(symbol), symbol);
            }
            prop_assert_eq!(names.len(), known.len());
            for (text, symbol) in &known {
                prop_assert_eq!(names.get(*symbol), text);
            }
        }
    }
}
