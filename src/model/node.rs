//! A node as the controller sees it: its state, what it has, and what of that is given away.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{Bytes, Known};

/// One node at one instant. What is mostly the same on many nodes is held once for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: Arc<NodeState>,
    /// Its CPUs.
    pub cpus: Cpus,
    /// Its load, in hundredths.
    pub load: Known<u64>,
    /// Its memory.
    pub memory: NodeMemory,
    /// Its generic resources, one entry for each name and type.
    pub gres: Vec<Gres>,
    /// GPUs given away, whatever their type; of cut ones the slices do not count.
    pub gpus_allocated: Known<u64>,
    /// The features that a job may ask for, as they are now.
    pub features: Arc<[String]>,
    /// The scheduler fills nodes of small weight first.
    pub weight: Known<u64>,
    /// The partitions it belongs to.
    pub partitions: Arc<[String]>,
    /// Since when it is up.
    pub booted: Known<Timestamp>,
    /// Why an operator, or the scheduler, took it out.
    pub reason: Option<Box<NodeReason>>,
    /// The reservation it is in now, where the scheduler names it.
    pub reservation: Option<String>,
}

/// CPUs of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpus {
    /// All.
    pub total: Known<u64>,
    /// Those that jobs may have: cores set apart for the system do not count.
    pub effective: Known<u64>,
    /// Those given to jobs.
    pub allocated: Known<u64>,
}

/// Memory of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeMemory {
    /// As configured.
    pub total: Known<Bytes>,
    /// Given to jobs.
    pub allocated: Known<Bytes>,
    /// What the operating system calls free, which caches make small.
    pub free: Known<Bytes>,
    /// Set apart for the system; jobs cannot have it.
    pub set_apart: Known<Bytes>,
}

/// A generic resource of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    /// What it is.
    pub kind: GresKind,
    /// Its name, as in `--gres=NAME`.
    pub name: String,
    /// Its type, as in `gpu:TYPE`, where the site gives one.
    pub model: Option<String>,
    /// How many there are.
    pub total: u64,
    /// How many are given away.
    pub used: Known<u64>,
}

/// What a generic resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GresKind {
    /// A whole GPU.
    Gpu,
    /// A slice of a GPU that hardware cuts off.
    MigSlice,
    /// A share of a GPU that jobs agree on.
    Shard,
    /// A hundredth, mostly, of a GPU.
    Mps,
    /// Anything else.
    Other,
}

impl GresKind {
    /// The kind, by name and type. A slice is known by its profile, such as `1g.5gb`.
    pub fn of(name: &str, model: Option<&str>) -> Self {
        match name {
            "gpu" if model.is_some_and(is_slice) => Self::MigSlice,
            "gpu" => Self::Gpu,
            "shard" => Self::Shard,
            "mps" => Self::Mps,
            _ => Self::Other,
        }
    }
}

/// Whether a type is of slices: it holds a profile (`1g.5gb`, `3g.71gb`) or says so.
pub(super) fn is_slice(model: &str) -> bool {
    let lower = model.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    words.any(|word| {
        let size = word.split_once("g.").filter(|(cut, _)| cut.parse::<u8>().is_ok());
        let is_size = |size: &str| size.starts_with(|c: char| c.is_ascii_digit());
        word == "mig" || size.is_some_and(|(_, size)| is_size(size) && size.contains("gb"))
    })
}

/// Why a node is out, or said to be slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeReason {
    /// The words, without who and when.
    pub text: String,
    /// Who set it.
    pub by: Option<String>,
    /// When.
    pub at: Known<Timestamp>,
}

/// A node's state: the base, and the flags that ride on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeState {
    /// The base.
    pub base: NodeBase,
    /// The flags that are known, in the scheduler's order.
    pub flags: Vec<NodeFlag>,
    /// Words that this version does not know: what they mean for a job is not known either.
    pub unknown: Vec<String>,
    /// The text as printed.
    pub text: String,
}

/// The base of a node's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum NodeBase {
    /// Nothing runs on it.
    Idle,
    /// Some of it is given away.
    Mixed,
    /// All of it is given away.
    Allocated,
    /// Down.
    Down,
    /// In error.
    Error,
    /// Not there yet.
    Future,
    /// The controller does not know, or said nothing.
    #[default]
    Unknown,
    /// A word this version does not know.
    Other,
}

/// What rides on a node's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeFlag {
    /// Kept free by a job that needs its whole topology block.
    Blocked,
    /// Belongs to a cloud.
    Cloud,
    /// A job is being cleaned up.
    Completing,
    /// Takes no new work.
    Drain,
    /// Came at run time.
    Dynamic,
    /// Is not run by this scheduler alone.
    External,
    /// Expected to fail.
    Fail,
    /// Registered with less than is configured.
    InvalidRegistration,
    /// In a maintenance window.
    Maintenance,
    /// Does not answer.
    NotResponding,
    /// Its performance counters are in use.
    PerformanceCounters,
    /// Kept for a job of higher priority.
    Planned,
    /// Will be powered down.
    PowerDownPending,
    /// Powered down; boots when a job needs it.
    PoweredDown,
    /// On its way down.
    PoweringDown,
    /// On its way up.
    PoweringUp,
    /// Was told to boot and is doing so.
    RebootIssued,
    /// Will boot as soon as it is idle.
    RebootRequested,
    /// In a reservation.
    Reserved,
    /// On its way out of a drain or failure.
    Returning,
}

/// State words of `scontrol show node` and `sinfo`, in 20.11 to 26.05.
const BASES: &[(&str, NodeBase)] = &[
    ("IDLE", NodeBase::Idle),
    ("MIXED", NodeBase::Mixed),
    ("ALLOCATED", NodeBase::Allocated),
    ("DOWN", NodeBase::Down),
    ("ERROR", NodeBase::Error),
    ("FUTURE", NodeBase::Future),
    ("UNKNOWN", NodeBase::Unknown),
];
const FLAGS: &[(&str, NodeFlag)] = &[
    ("BLOCKED", NodeFlag::Blocked),
    ("CLOUD", NodeFlag::Cloud),
    ("COMPLETING", NodeFlag::Completing),
    ("DRAIN", NodeFlag::Drain),
    ("DRAINED", NodeFlag::Drain),
    ("DRAINING", NodeFlag::Drain),
    ("POWER_DRAIN", NodeFlag::Drain),
    ("DYNAMIC_FUTURE", NodeFlag::Dynamic),
    ("DYNAMIC_NORM", NodeFlag::Dynamic),
    ("EXTERNAL", NodeFlag::External),
    ("FAIL", NodeFlag::Fail),
    ("FAILING", NodeFlag::Fail),
    ("INVAL", NodeFlag::InvalidRegistration),
    ("INVALID_REG", NodeFlag::InvalidRegistration),
    ("MAINT", NodeFlag::Maintenance),
    ("MAINTENANCE", NodeFlag::Maintenance),
    ("NOT_RESPONDING", NodeFlag::NotResponding),
    ("NO_RESPOND", NodeFlag::NotResponding),
    ("NPC", NodeFlag::PerformanceCounters),
    ("PERFCTRS", NodeFlag::PerformanceCounters),
    ("PLANNED", NodeFlag::Planned),
    ("POWER_DOWN", NodeFlag::PowerDownPending),
    ("POWER", NodeFlag::PoweredDown),
    ("POWERED_DOWN", NodeFlag::PoweredDown),
    ("POWERING_DOWN", NodeFlag::PoweringDown),
    ("POWER_UP", NodeFlag::PoweringUp),
    ("POWERING_UP", NodeFlag::PoweringUp),
    ("REBOOT_ISSUED", NodeFlag::RebootIssued),
    ("REBOOT", NodeFlag::RebootRequested),
    ("REBOOT_REQUESTED", NodeFlag::RebootRequested),
    ("RESERVED", NodeFlag::Reserved),
    ("REBOOT_CANCELED", NodeFlag::Returning),
    ("RESUME", NodeFlag::Returning),
    ("UNDRAIN", NodeFlag::Returning),
];
/// What `sinfo` and releases before 21.08 put behind the word (`man sinfo`).
const SUFFIXES: &[(char, NodeFlag)] = &[
    ('*', NodeFlag::NotResponding),
    ('~', NodeFlag::PoweredDown),
    ('#', NodeFlag::PoweringUp),
    ('!', NodeFlag::PowerDownPending),
    ('%', NodeFlag::PoweringDown),
    ('$', NodeFlag::Maintenance),
    ('@', NodeFlag::RebootRequested),
    ('^', NodeFlag::RebootIssued),
    ('-', NodeFlag::Planned),
];

impl NodeState {
    /// Reads `IDLE+DRAIN`, `DOWN*`, `MIXED+RESERVED+PLANNED`. Never fails: a word that is not known
    /// is kept as such, and is never taken for a harmless one.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let mut state = Self { text: text.to_owned(), ..Self::default() };
        for (index, word) in text.split('+').enumerate() {
            let bare = word.trim_end_matches(|c| SUFFIXES.iter().any(|(suffix, _)| *suffix == c));
            let upper = bare.to_ascii_uppercase();
            let base = BASES.iter().find(|(known, _)| *known == upper).map(|(_, base)| *base);
            let flag = FLAGS.iter().find(|(known, _)| *known == upper).map(|(_, flag)| *flag);
            match (base, flag) {
                (Some(base), _) if index == 0 => state.base = base,
                // `DRAINED`, `RESERVED`, `PLANNED` alone: the base word is not printed with them.
                (_, Some(flag)) => {
                    if index == 0 {
                        state.base = base_under(flag);
                    }
                    state.add(flag);
                }
                // An empty end is the `+` of `allocated+`: some job is completing.
                _ if upper.is_empty() && index > 0 => state.add(NodeFlag::Completing),
                _ if upper.is_empty() => {}
                _ => {
                    if index == 0 {
                        state.base = NodeBase::Other;
                    }
                    state.unknown.push(bare.to_owned());
                }
            }
            for suffix in word[bare.len()..].chars() {
                if let Some((_, flag)) = SUFFIXES.iter().find(|(known, _)| *known == suffix) {
                    state.add(*flag);
                }
            }
        }
        state
    }

    /// Whether a flag rides on it.
    pub fn has(&self, flag: NodeFlag) -> bool {
        self.flags.contains(&flag)
    }

    fn add(&mut self, flag: NodeFlag) {
        if !self.has(flag) {
            self.flags.push(flag);
        }
    }
}

/// The base that a lone word implies; what it hides is not invented.
fn base_under(flag: NodeFlag) -> NodeBase {
    match flag {
        NodeFlag::Planned | NodeFlag::Reserved => NodeBase::Idle,
        _ => NodeBase::Unknown,
    }
}

impl Serialize for NodeState {
    /// As the scheduler printed it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Node {
    /// Whole GPUs that it has.
    pub fn gpus(&self) -> u64 {
        self.count(GresKind::Gpu)
    }

    /// How many of a kind it has.
    pub fn count(&self, kind: GresKind) -> u64 {
        self.gres.iter().filter(|gres| gres.kind == kind).map(|gres| gres.total).sum()
    }

    /// The types of its GPUs and slices; a GPU without one is the empty text.
    pub fn gpu_models(&self) -> impl Iterator<Item = &str> {
        let gpus = self.gres.iter();
        gpus.filter(|gres| matches!(gres.kind, GresKind::Gpu | GresKind::MigSlice))
            .map(|gres| gres.model.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn states_of_four_releases_are_read() {
        // `scontrol show node` of 20.11, 22.05, 24.11 and 26.05 on a small cluster.
        let state = NodeState::parse("IDLE+CLOUD+POWER");
        assert_eq!(state.base, NodeBase::Idle);
        assert_eq!(state.flags, [NodeFlag::Cloud, NodeFlag::PoweredDown]);
        let state = NodeState::parse("DOWN*");
        assert_eq!((state.base, state.has(NodeFlag::NotResponding)), (NodeBase::Down, true));
        let state = NodeState::parse("MIXED+RESERVED+PLANNED");
        assert_eq!(state.flags, [NodeFlag::Reserved, NodeFlag::Planned]);
        let state = NodeState::parse("DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING");
        assert_eq!((state.flags.len(), state.unknown.len()), (3, 0));
        // `man sinfo`: the word alone, with a sign for one flag.
        let state = NodeState::parse("drained*");
        assert_eq!(state.base, NodeBase::Unknown);
        assert_eq!(state.flags, [NodeFlag::Drain, NodeFlag::NotResponding]);
        let state = NodeState::parse("allocated+");
        assert_eq!(state.flags, [NodeFlag::Completing]);
        assert_eq!(NodeState::parse("COMPLETING").flags, [NodeFlag::Completing]);
    }

    #[test]
    fn a_word_that_is_not_known_is_kept_and_not_guessed() {
        let state = NodeState::parse("IDLE+FROBBED");
        assert_eq!((state.base, state.unknown), (NodeBase::Idle, vec!["FROBBED".to_owned()]));
        let state = NodeState::parse("SHINY");
        assert_eq!((state.base, state.unknown), (NodeBase::Other, vec!["SHINY".to_owned()]));
        assert_eq!(NodeState::parse("").base, NodeBase::Unknown);
    }

    #[test]
    fn a_slice_is_no_gpu() {
        for model in ["a100_1g.10gb", "nvidia_a100_1g.5gb", "1g.5gb", "h100-3g.71gb+me", "mig"] {
            assert_eq!(GresKind::of("gpu", Some(model)), GresKind::MigSlice, "{model}");
        }
        for model in ["a100", "a100-sxm4-80gb", "h100_80gb", "v100g.gb", "migrated"] {
            assert_eq!(GresKind::of("gpu", Some(model)), GresKind::Gpu, "{model}");
        }
        assert_eq!(GresKind::of("shard", None), GresKind::Shard);
        assert_eq!(GresKind::of("mps", None), GresKind::Mps);
        assert_eq!(GresKind::of("nsight", None), GresKind::Other);
    }

    proptest! {
        #[test]
        fn any_state_is_read(text in any::<String>(), words in "[A-Z_+*~#!%$@^-]{0,30}") {
            prop_assert_eq!(&NodeState::parse(&text).text, text.trim());
            let _ = NodeState::parse(&words);
            let _ = GresKind::of("gpu", Some(&text));
        }
    }
}
