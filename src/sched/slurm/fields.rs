//! Which columns to ask `sacct` for, out of those that it has.
//!
//! One field that it does not know fails the whole call, so the list is what a [`Job`] and its
//! [`Step`]s hold, cut down to what `sacct --helpformat` names. Text that users write stands last:
//! whatever it holds, the columns before it keep their place.
//!
//! [`Job`]: crate::model::Job
//! [`Step`]: crate::model::Step

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::Depth;
use super::release::Release;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Id,
    RawId,
    State,
    Exit,
    DerivedExit,
    User,
    Uid,
    Account,
    Cluster,
    Partition,
    Qos,
    Reason,
    Submit,
    Eligible,
    Start,
    End,
    Elapsed,
    Limit,
    RequestedMemory,
    Nodes,
    Cpus,
    Requested,
    Allocated,
    AllocatedGres,
    NodeList,
    FailedNode,
    Restarts,
    CpuTime,
    Tasks,
    MaxRss,
    MaxRssNode,
    Constraints,
    WorkDir,
    Stdout,
    Stderr,
    Name,
    Comment,
    SubmitLine,
    Suspended,
    Energy,
    TotalIn,
    TotalOut,
    Exclusive,
    MostIn,
    AverageIn,
    UserCpu,
    SystemCpu,
    AverageCpu,
    LeastCpu,
    LeastCpuNode,
    AverageRss,
    PageFaults,
    Read,
    Written,
    AdminComment,
}

/// In the record of one job with its steps.
const RECORD: u8 = 1;
/// In a list of jobs. With `--allocations` what was used is printed as zero.
const LIST: u8 = 2;
/// In a history of allocations.
const RUNS: u8 = 4;
/// In a history of allocations with what their steps used.
const USE: u8 = 8;
/// In all that is recorded of one job.
const WHOLE: u8 = 16;

/// Every column with Slurm's name for it, in the order in which they are asked for, and where.
const COLUMNS: [(Field, &str, u8); 55] = [
    (Field::Id, "JobID", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::RawId, "JobIDRaw", RECORD | LIST | WHOLE),
    (Field::State, "State", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Exit, "ExitCode", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::DerivedExit, "DerivedExitCode", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::User, "User", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Uid, "UID", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Account, "Account", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Cluster, "Cluster", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Partition, "Partition", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Qos, "QOS", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Reason, "Reason", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Submit, "Submit", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Eligible, "Eligible", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Start, "Start", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::End, "End", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Elapsed, "Elapsed", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Limit, "Timelimit", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::RequestedMemory, "ReqMem", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Nodes, "NNodes", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Cpus, "AllocCPUS", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Requested, "ReqTRES", RECORD | LIST | WHOLE),
    (Field::Allocated, "AllocTRES", RECORD | LIST | RUNS | USE | WHOLE),
    // Gone in 20.11; before, sites that counted no GPUs in AllocTRES had them here.
    (Field::AllocatedGres, "AllocGRES", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::NodeList, "NodeList", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::FailedNode, "FailedNode", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Restarts, "Restarts", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::CpuTime, "TotalCPU", RECORD | USE | WHOLE),
    (Field::Tasks, "NTasks", RECORD | USE | WHOLE),
    (Field::MaxRss, "MaxRSS", RECORD | USE | WHOLE),
    (Field::MaxRssNode, "MaxRSSNode", RECORD | WHOLE),
    (Field::Suspended, "Suspended", RUNS | USE | WHOLE),
    (Field::Energy, "ConsumedEnergyRaw", RUNS | USE | WHOLE),
    (Field::Exclusive, "Exclusive", RUNS | USE | WHOLE),
    (Field::TotalIn, "TRESUsageInTot", RECORD | USE | WHOLE),
    (Field::TotalOut, "TRESUsageOutTot", USE | WHOLE),
    (Field::MostIn, "TRESUsageInMax", WHOLE),
    (Field::AverageIn, "TRESUsageInAve", WHOLE),
    (Field::UserCpu, "UserCPU", WHOLE),
    (Field::SystemCpu, "SystemCPU", WHOLE),
    (Field::AverageCpu, "AveCPU", WHOLE),
    (Field::LeastCpu, "MinCPU", WHOLE),
    (Field::LeastCpuNode, "MinCPUNode", WHOLE),
    (Field::AverageRss, "AveRSS", WHOLE),
    (Field::PageFaults, "MaxPages", WHOLE),
    (Field::Read, "MaxDiskRead", WHOLE),
    (Field::Written, "MaxDiskWrite", WHOLE),
    (Field::Constraints, "Constraints", RECORD | LIST | WHOLE),
    (Field::WorkDir, "WorkDir", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Stdout, "StdOut", RECORD | LIST | WHOLE),
    (Field::Stderr, "StdErr", RECORD | LIST | WHOLE),
    (Field::AdminComment, "AdminComment", WHOLE),
    (Field::Name, "JobName", RECORD | LIST | RUNS | USE | WHOLE),
    (Field::Comment, "Comment", RECORD | LIST | WHOLE),
    (Field::SubmitLine, "SubmitLine", RECORD | LIST | RUNS | USE | WHOLE),
];

/// What sums over many runs need: no step's column, and no text that users write but the command: of
/// most releases that alone says whether a run had its nodes to itself.
const SUMMED: [Field; 18] = [
    Field::Id,
    Field::State,
    Field::Exit,
    Field::DerivedExit,
    Field::Partition,
    Field::Reason,
    Field::Start,
    Field::End,
    Field::Elapsed,
    Field::Limit,
    Field::Cpus,
    Field::Allocated,
    Field::AllocatedGres,
    Field::NodeList,
    Field::Suspended,
    Field::Energy,
    Field::Exclusive,
    Field::SubmitLine,
];

/// Columns that say what another says in other words (the raw forms of times, counts under two
/// names, ids of names), or what follows from others (`CPUTime` is wall time times CPUs).
const SAID_ELSEWHERE: [&str; 15] = [
    "AllocNodes",
    "BlockID",
    "ConsumedEnergy",
    "CPUTime",
    "CPUTimeRAW",
    "ElapsedRaw",
    "GID",
    "NCPUS",
    "PlannedCPURAW",
    "QOSRAW",
    "ReqCPUFreq",
    "ResvCPU",
    "ResvCPURAW",
    "TimelimitRaw",
    "WCKeyID",
];

/// Other names of columns.
const OTHER_NAMES: [(&str, Field); 4] = [
    ("NCPUS", Field::Cpus),
    ("AllocNodes", Field::Nodes),
    ("ElapsedRaw", Field::Elapsed),
    ("ConsumedEnergy", Field::Energy),
];

/// The columns that this `sacct` has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    columns: Vec<(Field, &'static str, u8)>,
    /// The columns that nothing here reads, which are shown as they are.
    others: Vec<String>,
    /// What the list says about the release.
    pub(super) release: Release,
}

impl Fields {
    /// Reads the output of `sacct --helpformat`; `None` when it does not list the fields that
    /// every release has.
    pub(super) fn from_help(help: &[u8]) -> Option<Self> {
        let help = String::from_utf8_lossy(help);
        let lower = help.to_ascii_lowercase();
        let names: BTreeSet<&str> = lower.split_whitespace().collect();
        let has = |name: &str| names.contains(name.to_ascii_lowercase().as_str());
        if !["JobID", "State", "ExitCode", "JobName"].into_iter().all(has) {
            return None;
        }
        let columns = COLUMNS.into_iter().filter(|(_, name, _)| has(name)).collect();
        let known = COLUMNS.into_iter().map(|(_, name, _)| name).chain(SAID_ELSEWHERE);
        let known: Vec<&str> = known.collect();
        let is_other = |name: &&str| !known.iter().any(|known| known.eq_ignore_ascii_case(name));
        let others = help.split_whitespace().filter(is_other).map(str::to_owned).collect();
        Some(Self { columns, others, release: Release::from_fields(has) })
    }

    /// The columns for the record of a job with its steps, or for a list without.
    pub(super) fn layout(&self, steps: bool) -> Layout {
        let set = if steps { RECORD } else { LIST };
        self.select(|_, sets| sets & set != 0)
    }

    /// The columns of all that is recorded of a job: each measurement once.
    pub(super) fn whole(&self) -> Layout {
        let mut layout = self.select(|_, sets| sets & WHOLE != 0);
        layout.names.extend(self.others.iter().cloned().map(Cow::Owned));
        layout
    }

    /// The columns for a history.
    pub(super) fn history(&self, depth: Depth) -> Layout {
        let set = if depth == Depth::Steps { USE } else { RUNS };
        self.select(|_, sets| sets & set != 0)
    }

    /// The columns for sums over many runs.
    pub(super) fn summed(&self) -> Layout {
        self.select(|field, _| SUMMED.contains(&field))
    }

    fn select(&self, wanted: impl Fn(Field, u8) -> bool) -> Layout {
        let mut layout = Layout { names: Vec::new(), positions: [None; COLUMNS.len()] };
        let columns = self.columns.iter().filter(|(field, _, sets)| wanted(*field, *sets));
        for (field, name, _) in columns {
            layout.positions[*field as usize] = Some(layout.names.len());
            layout.names.push(Cow::Borrowed(name));
        }
        layout
    }

    /// Whether this `sacct` has a column.
    pub(super) fn has(&self, field: Field) -> bool {
        self.columns.iter().any(|(column, _, _)| *column == field)
    }
}

/// The columns of one query, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    names: Vec<Cow<'static, str>>,
    /// Where each [`Field`] stands.
    positions: [Option<usize>; COLUMNS.len()],
}

impl Layout {
    /// The value of `--format`.
    pub(super) fn format(&self) -> String {
        self.names.join(",")
    }

    /// Every column that is known here, for records that no `sacct` was asked for.
    pub(super) fn whole() -> Self {
        let names = COLUMNS.iter().map(|(_, name, _)| Cow::Borrowed(*name)).collect();
        let mut positions = [None; COLUMNS.len()];
        for (position, (field, _, _)) in COLUMNS.iter().enumerate() {
            positions[*field as usize] = Some(position);
        }
        Self { names, positions }
    }

    /// The columns that a heading names, for a file that somebody saved; `None` where it names no
    /// id and no state.
    pub(super) fn named(heading: &[&str]) -> Option<Self> {
        let mut layout = Self { names: Vec::new(), positions: [None; COLUMNS.len()] };
        for (position, heading) in heading.iter().enumerate() {
            let is_named = |(_, name, _): &&(Field, &str, u8)| name.eq_ignore_ascii_case(heading);
            let column = COLUMNS.iter().find(is_named).map(|(field, name, _)| (*field, *name));
            layout.names.push(Cow::Borrowed(column.map_or("", |(_, name)| name)));
            if let Some((field, _)) = column {
                layout.positions[field as usize].get_or_insert(position);
            }
        }
        // The same under other names (`man sacct`); the raw ones say the same to every reader.
        for (other, field) in OTHER_NAMES {
            let position = heading.iter().position(|name| name.eq_ignore_ascii_case(other));
            let place = &mut layout.positions[field as usize];
            *place = place.or(position);
        }
        let has = |field| layout.position(field).is_some();
        (has(Field::Id) && has(Field::State)).then_some(layout)
    }

    /// Where text stands that users write, or that nothing here reads: it may hold anything.
    pub(super) fn free_text(&self) -> impl Iterator<Item = usize> {
        const FREE: [Field; 8] = [
            Field::AdminComment,
            Field::Name,
            Field::Comment,
            Field::SubmitLine,
            Field::WorkDir,
            Field::Stdout,
            Field::Stderr,
            Field::Constraints,
        ];
        FREE.into_iter().filter_map(|field| self.position(field))
    }

    /// The columns' names, in order.
    pub(super) fn names(&self) -> &[Cow<'static, str>] {
        &self.names
    }

    /// The columns that nothing here reads, with their names.
    pub(super) fn others(&self) -> impl Iterator<Item = (usize, &str)> {
        let read = |position: &usize| self.positions.contains(&Some(*position));
        let all = self.names.iter().enumerate().filter(move |(position, _)| !read(position));
        all.map(|(position, name)| (position, name.as_ref()))
    }

    /// How many columns there are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Where a column stands.
    pub(super) fn position(&self, field: Field) -> Option<usize> {
        self.positions[field as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(help: &[u8], steps: bool) -> String {
        Fields::from_help(help).expect("a field list").layout(steps).format()
    }

    #[test]
    fn only_fields_that_exist_are_asked_for() {
        let old = names(include_bytes!("../../../fixtures/slurm-20.11/sacct-helpformat.txt"), true);
        let new = names(include_bytes!("../../../fixtures/slurm-26.05/sacct-helpformat.txt"), true);
        for absent in ["SubmitLine", "StdOut", "FailedNode", "Restarts"] {
            assert!(!old.contains(absent), "{absent}");
            assert!(new.contains(absent), "{absent}");
        }
        assert!(old.ends_with(",JobName,Comment"), "{old}");
        assert!(new.ends_with(",JobName,Comment,SubmitLine"), "{new}");
    }

    #[test]
    fn usage_is_not_asked_for_without_steps() {
        // `sacct -X` prints TotalCPU as 00:00:00, which is not what was used.
        let new =
            names(include_bytes!("../../../fixtures/slurm-26.05/sacct-helpformat.txt"), false);
        assert!(!new.contains("TotalCPU") && !new.contains("MaxRSS"), "{new}");
    }

    #[test]
    fn what_is_no_field_list_is_refused() {
        assert_eq!(Fields::from_help(b""), None);
        assert_eq!(Fields::from_help(b"Slurm accounting storage is disabled\n"), None);
    }
}
