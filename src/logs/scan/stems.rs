//! The first stage of the scan: short pieces of words that messages of trouble contain.
//!
//! A few dozen short strings can be searched for with SIMD at the speed of memory, hundreds of
//! whole literals cannot; so whole literals are only looked for on lines that hold a stem. Stems
//! are chosen to be rare in the logs of healthy jobs: ` fault` and not `egmentation`, which is
//! also a task of computer vision; no bare `emory`, which training loops print with every step.

use std::ops::Range;

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, MatchKind};

/// The stems. A searcher that uses SIMD takes at most 64, and each searcher passes over the text
/// once: the first 64 serve most literals, the others the rest.
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
    "f memory",
    "Of Mem",
    "emory limit",
    "lloc",
    "NCCL",
    "Xid",
    "egfault",
    " fault",
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
    "efus",
    "reach",
    "xceed",
    "uota",
    "bort",
    "ABORT",
    "nvalid",
    "oo ",
    "o space",
    "xpired",
    "losed by",
    "severe",
    "nan",
    "NaN",
    "CFL",
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
    "nterrupt",
    "xit",
    "ould not",
    "nexpected",
    "nknown",
    "[E::",
    "llegal",
    "ertificate",
    "tale ",
    "endpoint",
    "locked",
    "ddress alr",
    "etry",
    "no CUDA",
    "evices were",
    "nauthor",
    "redentials",
    "rate limit",
    "ipFile",
    "bad magic",
    "truncated",
    "gzip format",
    "sum: WARN",
    " not ",
    "divi",
    "o route",
    "anicked",
    "commande in",
    "gefunden",
    "peicher",
    " espac",
    "nbound",
    "onflict",
    "mamba init",
    "otFound",
    "rocessor",
    "valid model",
    "Got completion",
    "processes than",
    "curl: (",
    "otential energy",
    "communicated to",
    "roblem",
    "sigHandler",
    "multiplicity",
    "settings are wrong",
    "domain decomp",
    "FIO-F-",
    " thread",
    "onnection",
    "fallen off",
    "FATAL",
    "no p",
    "Need at least",
    "from checkpoint",
    "Checkpoint file",
    "ead-only file",
    "NOT ",
    "DISPLAY",
    "erechtigung",
    "on accord",
    "de segment",
    "a conda env",
    "denegad",
    "el directorio",
    "nconsisten",
    "be settled",
    "fich",
    "lowing-up",
];

/// The stem that proves that lines with this literal pass the first stage.
pub fn stem_of(literal: &str) -> Option<&'static str> {
    STEMS.iter().copied().find(|stem| literal.contains(stem))
}

/// How many stems a searcher that uses SIMD takes.
const PACKED: usize = 64;

/// The searchers for the stems, each for a part of them.
#[derive(Debug)]
pub(super) struct Stems(Vec<Searcher>);

#[derive(Debug)]
enum Searcher {
    /// With SIMD.
    Packed(packed::Searcher),
    /// Where the processor lacks it.
    Automaton(AhoCorasick),
    /// The automaton could not be built: every line counts as holding a stem.
    Everything,
}

impl Stems {
    /// For the stems, and for the literals that hold none, which then are their own stems: with
    /// many of them slower, never wrong.
    pub(super) fn new(literals: &[&str]) -> Self {
        // One automaton asks a literal for all stems at once.
        let known = AhoCorasick::new(STEMS).ok();
        let holds = |literal: &str| match &known {
            Some(known) => known.is_match(literal),
            None => stem_of(literal).is_some(),
        };
        let own = literals.iter().copied().filter(|literal| !holds(literal));
        let stems: Vec<&str> = STEMS.iter().copied().chain(own).collect();
        Self(stems.chunks(PACKED).map(Searcher::new).collect())
    }

    /// The stems in a part of a text.
    pub(super) fn hits<'a>(&'a self, text: &'a [u8], part: Range<usize>) -> Hits<'a> {
        let next = vec![Next::Unknown; self.0.len()];
        Hits { searchers: &self.0, text, end: part.end, next }
    }
}

impl Searcher {
    fn new(stems: &[&str]) -> Self {
        if let Some(searcher) = packed::Searcher::new(stems) {
            return Self::Packed(searcher);
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(stems);
        automaton.map_or(Self::Everything, Self::Automaton)
    }

    fn find(&self, text: &[u8], part: Range<usize>) -> Option<usize> {
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

/// What a searcher found last: looked for anew only once it is passed.
#[derive(Debug, Clone, Copy)]
enum Next {
    Unknown,
    At(usize),
    Nowhere,
}

/// The stems in a part of a text, from front to back.
pub(super) struct Hits<'a> {
    searchers: &'a [Searcher],
    text: &'a [u8],
    end: usize,
    next: Vec<Next>,
}

impl Hits<'_> {
    /// Where the first stem at or behind `from` begins. `from` never goes back.
    pub(super) fn at_or_after(&mut self, from: usize) -> Option<usize> {
        let part = from.min(self.end)..self.end;
        let look = |(searcher, next): (&Searcher, &mut Next)| {
            *next = match *next {
                Next::At(at) if at >= from => *next,
                Next::Nowhere => Next::Nowhere,
                _ => searcher.find(self.text, part.clone()).map_or(Next::Nowhere, Next::At),
            };
            match *next {
                Next::At(at) => Some(at),
                _ => None,
            }
        };
        self.searchers.iter().zip(&mut self.next).filter_map(look).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stems_fit_the_fast_searcher() {
        assert!(STEMS.len() <= 2 * PACKED, "a third pass over every log");
        assert!(STEMS.iter().all(|stem| (2..=20).contains(&stem.len())));
        for (index, stem) in STEMS.iter().enumerate() {
            let twice = STEMS.iter().enumerate().any(|(i, s)| i != index && stem.contains(s));
            assert!(!twice, "{stem} holds another stem");
        }
    }

    #[test]
    fn messages_in_other_languages_are_looked_at() {
        let missed: Vec<&str> = crate::text::foreign().filter(|m| stem_of(m).is_none()).collect();
        assert_eq!(missed, Vec::<&str>::new());
    }

    #[test]
    fn a_literal_names_the_stem_it_holds() {
        assert_eq!(stem_of("CUDA out of memory"), Some("f memory"));
        assert_eq!(stem_of("Segmentation fault"), Some(" fault"));
        assert_eq!(stem_of("all is well"), None);
    }

    #[test]
    fn a_literal_without_a_stem_is_found_all_the_same() {
        let stems = Stems::new(&["all is well"]);
        let text = b"an error: all is well, no error";
        let mut hits = stems.hits(text, 0..text.len());
        let found = [0, 5, 11].map(|from| hits.at_or_after(from));
        // The stem of "error" begins behind its "e".
        assert_eq!(found, [Some(4), Some(10), Some(27)]);
        assert_eq!(hits.at_or_after(28), None);
    }
}
