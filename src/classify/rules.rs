//! The families with what deciding needs beside them: one list of literals for the scan of logs, and
//! patterns that are compiled when their literal has been seen, never before.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::line::message;
use crate::knowledge::{Family, Signal, SignalSource};
use crate::model::FamilyId;
use crate::text::{in_english, joined_exception};

/// What submission commands put before the reason why they refused. A wrapper's log holds such lines
/// too: there the signals of submissions are listened to as well.
const REFUSED: &str = "sbatch: error: ";

/// The rules of one run of the program.
#[derive(Debug)]
pub struct Rules {
    families: Vec<Family>,
    /// Each literal once, with the signals (family, signal) that look for it.
    literals: Vec<(String, Vec<(usize, usize)>)>,
    /// Per family and signal.
    patterns: Vec<Vec<Patterns>>,
    /// The literals of all signals of submissions at once; `None` inside where that cannot be built.
    refusals: OnceLock<Option<AhoCorasick>>,
}

/// The patterns of a signal, once its literal was seen; `None` inside for one that does not
/// compile, which `kb check` tells.
#[derive(Debug, Default)]
struct Patterns {
    regex: OnceLock<Option<Regex>>,
    unless: OnceLock<Option<Regex>>,
}

/// A signal that a line bears.
pub(super) struct Match<'a> {
    pub(super) family: usize,
    pub(super) signal: &'a Signal,
    /// Where in the line the literal begins.
    pub(super) at: usize,
    pub(super) captures: BTreeMap<String, String>,
}

impl Rules {
    /// Takes the families; compiles nothing.
    pub fn new(families: Vec<Family>) -> Self {
        let mut literals: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
        for (family_index, family) in families.iter().enumerate() {
            for (signal_index, signal) in family.signals.iter().enumerate() {
                let looked_for = match (signal.from, &signal.literal) {
                    (SignalSource::Log, Some(literal)) => literal.as_str(),
                    (SignalSource::Submit, Some(_)) => REFUSED,
                    _ => continue,
                };
                let entry = literals.entry(looked_for.to_owned()).or_default();
                entry.push((family_index, signal_index));
            }
        }
        let patterns = families
            .iter()
            .map(|family| family.signals.iter().map(|_| Patterns::default()).collect())
            .collect();
        Self {
            families,
            literals: literals.into_iter().collect(),
            patterns,
            refusals: OnceLock::new(),
        }
    }

    /// What the log scanner looks for; a hit names its literal by the index in this list.
    pub fn literals(&self) -> Vec<String> {
        self.literals.iter().map(|(literal, _)| literal.clone()).collect()
    }

    /// All families.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Whether the first of two families is explained by the second where both hold.
    pub(super) fn yields(&self, family: usize, to: usize) -> bool {
        self.families[family].yields_to.contains(&self.families[to].id)
    }

    /// A family by its id.
    pub fn family(&self, id: &FamilyId) -> Option<&Family> {
        self.families.iter().find(|family| family.id == *id)
    }

    /// The signals of a literal of the scan that a line bears, in its own words or in English.
    pub(super) fn matches(&self, literal: usize, text: &str) -> Vec<Match<'_>> {
        let Some((literal, signals)) = self.literals.get(literal) else { return Vec::new() };
        let english = if text.contains(literal) { None } else { in_english(text) };
        let text = english.as_deref().unwrap_or(text);
        signals.iter().filter_map(|&(family, index)| self.fit(family, index, text)).collect()
    }

    /// Whether a line may be a refusal: it holds the literal of some signal of submissions.
    pub(super) fn may_refuse(&self, line: &[u8]) -> bool {
        let build = || {
            let signals = self.families.iter().flat_map(|family| &family.signals);
            let own = signals.filter(|signal| signal.from == SignalSource::Submit);
            AhoCorasick::new(own.filter_map(|signal| signal.literal.as_deref())).ok()
        };
        self.refusals.get_or_init(build).as_ref().is_none_or(|any| any.is_match(line))
    }

    /// The signals from one source, other than logs, that a text bears.
    pub(super) fn matches_from<'a>(
        &'a self,
        source: SignalSource,
        text: &'a str,
    ) -> impl Iterator<Item = Match<'a>> {
        let families = self.families.iter().enumerate();
        let all = families.flat_map(|(family, known)| {
            known.signals.iter().enumerate().map(move |(index, signal)| (family, index, signal))
        });
        let own = all.filter(move |(_, _, signal)| signal.from == source);
        own.filter_map(move |(family, index, _)| self.fit(family, index, text))
    }

    /// Whether a text bears a signal.
    fn fit<'a>(&'a self, family: usize, index: usize, text: &str) -> Option<Match<'a>> {
        let signal = &self.families[family].signals[index];
        let at = text.find(signal.literal.as_deref()?)?;
        let patterns = &self.patterns[family][index];
        if let Some(pattern) = &signal.unless {
            let unless = patterns.unless.get_or_init(|| Regex::new(pattern).ok());
            (!unless.as_ref()?.is_match(text)).then_some(())?;
        }
        let captures = match &signal.regex {
            None => BTreeMap::new(),
            Some(pattern) => {
                let regex = patterns.regex.get_or_init(|| Regex::new(pattern).ok());
                let regex = regex.as_ref()?;
                // Patterns that begin at the start of a line mean the start of its message.
                let found = regex
                    .captures(text)
                    .or_else(|| regex.captures(message(text)))
                    .or_else(|| regex.captures(joined_exception(text)?))?;
                let named = regex.capture_names().flatten();
                let pairs = named.filter_map(|name| Some((name, found.name(name)?.as_str())));
                pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
            }
        };
        Some(Match { family, signal, at, captures })
    }
}
