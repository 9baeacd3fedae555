//! A plain classifier to compare with: the state first, then ordered keywords, the first hit wins.
//!
//! It is what one would write in an afternoon, and no strawman: its words are good ones. It knows
//! 18 kinds, coarser than the families; `eval/family_map.json` says which family is which kind, so
//! that both can be held to the same coarse labels.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::Regex;
use serde::Serialize;

use super::HEALTHY;
use super::measure::{Answered, rank};

const MAP: &str = include_str!("../../eval/family_map.json");

/// States that decide alone.
const STATES: [(&str, &str); 7] = [
    ("OUT_OF_MEMORY", "oom"),
    ("TIMEOUT", "time_limit"),
    ("DEADLINE", "time_limit"),
    ("PREEMPTED", "preempted"),
    ("NODE_FAIL", "node_fail"),
    ("CANCELLED", "cancelled"),
    ("COMPLETED", HEALTHY),
];

/// Kinds with their words, the more telling first.
const WORDS: [(&str, &str); 18] = [
    ("cuda_oom", r"(?i)(cuda|hip) out of memory|CUDA_ERROR_OUT_OF_MEMORY"),
    ("time_limit", r"(?i)due to time limit"),
    ("preempted", r"(?i)due to preemption"),
    ("node_fail", r"(?i)node failure|DUE TO NODE FAIL"),
    ("oom", r"(?i)oom[-_ ]?kill|out of memory|cannot allocate|bad_alloc|MemoryError|OutOfMemory"),
    ("module_load", r"(?i)lmod has detected|unable to locate a modulefile|module: command not"),
    (
        "import_error",
        r"ModuleNotFoundError|ImportError|cannot open shared object|GLIBC|undefined symbol",
    ),
    ("disk_quota", r"(?i)quota exceeded|no space left on device"),
    ("segfault", r"(?i)segmentation fault|SIGSEGV"),
    ("cuda_error", r"(?i)cuda error|cudaError|CUDA_ERROR|no cuda-capable|\bXid\b"),
    ("nccl", r"(?i)nccl (warn|error|operation)|ncclSystemError|ncclUnhandled|ProcessGroupNCCL"),
    ("permission", r"(?i)permission denied|read-only file system"),
    ("file_not_found", r"(?i)no such file or directory|FileNotFoundError|command not found"),
    ("allocation_exhausted", r"AssocGrp|(?i)insufficient (balance|funds|allocation)"),
    ("qos_limit", r"QOS|AssocMax|PartitionTimeLimit|(?i)violates accounting"),
    ("dependency", r"Dependency"),
    ("resources_unavailable", r"\((Resources|Priority)\)|ReqNodeNotAvail|BadConstraints"),
    ("cancelled", r"(?i)cancelled at"),
];

/// What keywords make of a state and some text: a kind, `none` for a success, or nothing.
pub fn keywords(state: &str, text: &str) -> Option<&'static str> {
    static COMPILED: OnceLock<Vec<(&str, Regex)>> = OnceLock::new();
    let by_state = STATES.iter().find(|(word, _)| state.starts_with(word));
    if let Some((_, kind)) = by_state {
        return Some(kind);
    }
    let compiled = COMPILED.get_or_init(|| {
        let compile = |(kind, words)| Some((kind, Regex::new(words).ok()?));
        WORDS.into_iter().filter_map(compile).collect()
    });
    compiled.iter().find(|(_, words)| words.is_match(text)).map(|(kind, _)| *kind)
}

/// Right answers of both on the same cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Which cases.
    pub name: String,
    /// How many.
    pub cases: usize,
    /// Of these by jobwise.
    pub jobwise: usize,
    /// Of these by keywords.
    pub keywords: usize,
}

/// Both on the same cases, in the same coarse kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Right kinds, of cases that have one, by how hard they are; the last row is all.
    pub right: Vec<Compared>,
    /// Wrong names, of cases of no kind: there the keywords ought to say nothing.
    pub wrong: Compared,
}

/// The kind of a family, where it has one; a success is its own.
fn kind_of(map: &BTreeMap<String, Option<String>>, label: &str) -> Option<String> {
    if label == HEALTHY {
        return Some(HEALTHY.to_owned());
    }
    map.get(label).cloned().flatten()
}

/// Compares over the cases for which the keywords were asked.
pub fn compare(answered: &[Answered]) -> Comparison {
    let map: BTreeMap<String, Option<String>> = serde_json::from_str(MAP).unwrap_or_default();
    let mut rows: BTreeMap<&str, Compared> = BTreeMap::new();
    let empty = |name: &str| Compared { name: name.to_owned(), cases: 0, jobwise: 0, keywords: 0 };
    let mut all = empty("all");
    let mut wrong = empty("of no kind");
    for case in answered {
        let Some(keywords) = &case.keywords else { continue };
        let kind = kind_of(&map, &case.expected);
        if kind.is_none() {
            wrong.cases += 1;
            wrong.jobwise += usize::from(case.named && !case.is_right());
            wrong.keywords += usize::from(!matches!(keywords.as_str(), "" | HEALTHY));
            continue;
        }
        let ours = case.is_right() || kind == kind_of(&map, &case.got);
        let theirs = kind.as_deref() == Some(keywords);
        let name = case.difficulty.as_deref().unwrap_or("n/a");
        let row = rows.entry(name).or_insert_with(|| empty(name));
        for counts in [row, &mut all] {
            counts.cases += 1;
            counts.jobwise += usize::from(ours);
            counts.keywords += usize::from(theirs);
        }
    }
    let mut right: Vec<Compared> = rows.into_values().collect();
    right.sort_by_key(|row| rank(&row.name));
    right.push(all);
    Comparison { right, wrong }
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::case;
    use super::*;

    #[test]
    fn the_state_comes_first_and_the_first_words_win() {
        assert_eq!(keywords("OUT_OF_MEMORY", "Segmentation fault"), Some("oom"));
        assert_eq!(keywords("CANCELLED by 0", ""), Some("cancelled"));
        assert_eq!(keywords("FAILED", "CUDA out of memory; Segmentation fault"), Some("cuda_oom"));
        assert_eq!(keywords("FAILED", "all is well"), None);
    }

    #[test]
    fn every_pattern_compiles_and_every_kind_is_in_the_map() {
        let map: BTreeMap<String, Option<String>> = serde_json::from_str(MAP).expect("a map");
        for (kind, words) in WORDS {
            Regex::new(words).expect(kind);
            assert!(map.values().flatten().any(|known| known == kind), "{kind}");
        }
    }

    #[test]
    fn both_are_held_to_the_same_kinds() {
        let told = |expected: &str, got: &str, keywords: &str| {
            let mut case = case("1", expected, got);
            case.named = got != "unknown";
            case.keywords = Some(keywords.to_owned());
            case.difficulty = Some("easy".to_owned());
            case
        };
        let found = compare(&[
            // A sibling of the same kind is right in coarse labels: both are import errors.
            told("python_import", "conda_env", "import_error"),
            told("host_oom", "unknown", "oom"),
            told("none", "none", "none"),
            // Of no kind: a right family is no wrong name, saying nothing is none either.
            told("port_in_use", "port_in_use", "nccl"),
            told("port_in_use", "segfault", ""),
        ]);
        let counts = |row: &Compared| (row.cases, row.jobwise, row.keywords);
        assert_eq!(found.right.iter().map(counts).collect::<Vec<_>>(), [(3, 2, 3), (3, 2, 3)]);
        assert_eq!(counts(&found.wrong), (2, 1, 1));
    }
}
