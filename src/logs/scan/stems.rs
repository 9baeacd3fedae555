//! The first stage of the scan: short pieces of words that messages of trouble contain.
//!
//! A few dozen short strings can be searched for with SIMD at the speed of memory, hundreds of
//! whole literals cannot; so whole literals are only looked for on lines that hold a stem. Stems
//! are chosen to be rare in the logs of healthy jobs: `on fault` and not `egmentation`, which is
//! also a task of computer vision; no bare `emory`, which training loops print with every step.

use std::ops::Range;

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, MatchKind};

/// The stems. The searcher that uses SIMD takes at most 64.
pub const STEMS: &[&str] = &[
    "rror",
    "RROR",
    "xception",
    "raceback",
    "fail",
    "Fail",
    "FAIL",
    "atal",
    "kill",
    "Kill",
    "OOM",
    "f memory",
    "Of Mem",
    "emory limit",
    "lloc",
    "NCCL",
    "Xid",
    "egfault",
    "on fault",
    "SIG",
    "ignal",
    "annot",
    "an't",
    "nable to",
    "enied",
    "permitted",
    "ot found",
    "o such",
    "o module",
    "imeout",
    "imed out",
    "DUE TO",
    "ancel",
    "ANCEL",
    "efused",
    "nreachable",
    "xceed",
    "uota",
    "bort",
    "ABORT",
    "nvalid",
    "oo many",
    "o space",
    "xpired",
    "losed by",
    "severe",
    "nan",
    "NaN",
    "ecogni",
    "issing",
    "orrupt",
    "nsupported",
    "ndefined",
    "ismatch",
    "erminat",
    "ERMINAT",
    "available",
    "enough",
    "nsufficient",
    "XHAUST",
    "eempt",
    "nterrupt",
    "xited with",
    "halted",
];

/// The stem that proves that lines with this literal pass the first stage.
pub fn stem_of(literal: &str) -> Option<&'static str> {
    STEMS.iter().copied().find(|stem| literal.contains(stem))
}

/// A searcher for the stems.
#[derive(Debug)]
pub(super) enum Stems {
    /// With SIMD.
    Packed(packed::Searcher),
    /// Where the processor lacks it, or there are too many stems.
    Automaton(AhoCorasick),
    /// The automaton could not be built: every line counts as holding a stem.
    Everything,
}

impl Stems {
    /// For the stems, and for the literals that hold none, which then are their own stems: slower,
    /// never wrong.
    pub(super) fn new(literals: &[&str]) -> Self {
        let own = literals.iter().copied().filter(|literal| stem_of(literal).is_none());
        let stems: Vec<&str> = STEMS.iter().copied().chain(own).collect();
        if let Some(searcher) = packed::Searcher::new(&stems) {
            return Self::Packed(searcher);
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(&stems);
        automaton.map_or(Self::Everything, Self::Automaton)
    }

    /// Where the first stem in a part of a text begins.
    pub(super) fn find(&self, text: &[u8], part: Range<usize>) -> Option<usize> {
        match self {
            Self::Packed(searcher) => searcher.find_in(text, part.into()).map(|hit| hit.start()),
            Self::Automaton(automaton) => {
                let input = aho_corasick::Input::new(text).range(part);
                automaton.find(input).map(|hit| hit.start())
            }
            Self::Everything => (!part.is_empty()).then_some(part.start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stems_fit_the_fast_searcher() {
        assert!(STEMS.len() <= 64);
        assert!(STEMS.iter().all(|stem| (2..=12).contains(&stem.len())));
        for (index, stem) in STEMS.iter().enumerate() {
            let twice = STEMS.iter().enumerate().any(|(i, s)| i != index && stem.contains(s));
            assert!(!twice, "{stem} holds another stem");
        }
    }

    #[test]
    fn a_literal_names_the_stem_it_holds() {
        assert_eq!(stem_of("CUDA out of memory"), Some("f memory"));
        assert_eq!(stem_of("Segmentation fault"), Some("on fault"));
        assert_eq!(stem_of("all is well"), None);
    }

    #[test]
    fn a_literal_without_a_stem_is_found_all_the_same() {
        let stems = Stems::new(&["all is well"]);
        let text = b"0123456789 and so: all is well";
        assert_eq!(stems.find(text, 0..text.len()), Some(19));
        assert_eq!(stems.find(text, 20..text.len()), None);
    }
}
