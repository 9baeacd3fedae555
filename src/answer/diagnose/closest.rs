//! Notes that are near to what an unknown failure wrote: somewhere to begin to read.
//!
//! They are guesses by words, and by meaning where the model is installed. None becomes a cause: that
//! is the rules' to say, and they have said that they do not know.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Diagnosis, Engine};
use crate::logs;
use crate::model::{FamilyId, Outcome, Place};
use crate::retrieve::{Match, Parts};

/// A note that a line is near to.
#[derive(Debug, Serialize)]
pub struct Closest {
    /// The family whose note it is, or the name of a page.
    pub family: FamilyId,
    /// The note's title.
    pub title: String,
    /// The line by which it was found, secrets masked.
    pub line: String,
    /// How near; only the order means anything.
    pub score: f64,
    /// What that is made of.
    pub parts: Parts,
}

/// Lines of one job that are looked up.
const LINES: usize = 3;
/// Notes of one job that are told.
const TOLD: usize = 3;
/// Different lines that one run looks up: the tasks of an array mostly end alike.
const MOST: usize = 24;
/// What is less near than this has nothing to do with the line. Of the lines in the queries that
/// choices are made on, whose first note is the right one, nineteen of twenty are nearer.
const NEAR: f64 = 0.2;
/// The same where only words say something; nine of ten.
const NEAR_BY_WORDS: f64 = 0.1;

/// Looks up the lines of one run of the program.
pub(super) struct Finder<'e> {
    engine: &'e Engine,
    found: BTreeMap<String, Vec<Match>>,
}

impl<'e> Finder<'e> {
    pub(super) fn new(engine: &'e Engine) -> Self {
        Self { engine, found: BTreeMap::new() }
    }

    /// Adds the notes that are closest, where the cause is unknown. The diagnosis is masked already.
    pub(super) fn add(&mut self, told: &mut Diagnosis) {
        if told.verdict.outcome != Outcome::Unknown {
            return;
        }
        let mut best: BTreeMap<FamilyId, Closest> = BTreeMap::new();
        for line in lines(told) {
            for near in self.near(&line) {
                let family = near.chunk.family.clone();
                let guessed = told.verdict.causes.iter().any(|cause| cause.family == family);
                let better = best.get(&family).is_none_or(|known| known.score < near.score);
                if !guessed && better && family.0 != "unknown" {
                    let (score, parts, title) = (near.score, near.parts, near.chunk.title.clone());
                    let line = line.clone();
                    best.insert(family.clone(), Closest { family, title, line, score, parts });
                }
            }
        }
        told.closest = best.into_values().collect();
        told.closest.sort_by(|a, b| b.score.total_cmp(&a.score));
        told.closest.truncate(TOLD);
    }

    fn near(&mut self, line: &str) -> &[Match] {
        if !self.found.contains_key(line) {
            let mut found = Vec::new();
            if self.found.len() < MOST {
                found = self.engine.search(line);
                // The words of a line that complains of nothing are those of any line.
                let complains = logs::stem_of(line).is_some();
                found.retain(|found| {
                    if found.parts.dense > 0.0 {
                        found.score >= NEAR
                    } else {
                        complains && found.score >= NEAR_BY_WORDS
                    }
                });
                found.truncate(TOLD + 1);
            }
            self.found.insert(line.to_owned(), found);
        }
        self.found.get(line).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The lines that are worth looking up: those that the guesses rest on, then of the last lines those
/// that complain, the last of them first; where none does, the very last.
fn lines(told: &Diagnosis) -> Vec<String> {
    let of_log = |place: &Place| matches!(place, Place::Log { .. });
    let evidence = told.verdict.causes.iter().flat_map(|cause| &cause.evidence);
    let evidence = evidence.filter(|piece| of_log(&piece.place)).map(|piece| piece.text.as_str());
    let tails = || {
        told.logs.iter().flat_map(|log| log.tail.iter().rev().map(|quoted| quoted.text.as_str()))
    };
    let complains = |line: &&str| logs::stem_of(line).is_some();
    let mut lines: Vec<String> = Vec::new();
    for line in evidence.chain(tails().filter(complains)) {
        let line = line.trim();
        if !line.is_empty() && !lines.iter().any(|known| known == line) {
            lines.push(line.to_owned());
        }
    }
    if lines.is_empty() {
        lines.extend(tails().next().map(|line| line.trim().to_owned()));
    }
    lines.truncate(LINES);
    lines
}
