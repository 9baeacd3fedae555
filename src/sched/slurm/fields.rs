//! Which columns to ask `sacct` for, out of those that it has.
//!
//! One field that it does not know fails the whole call, so the list is what a [`Job`] and its
//! [`Step`]s hold, cut down to what `sacct --helpformat` names. Text that users write stands last:
//! whatever it holds, the columns before it keep their place.
//!
//! [`Job`]: crate::model::Job
//! [`Step`]: crate::model::Step

use std::collections::BTreeSet;

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
}

/// Every column with Slurm's name for it, in the order in which they are asked for, and whether
/// it says something without steps: with `--allocations` usage is printed as zero.
const COLUMNS: [(Field, &str, bool); 37] = [
    (Field::Id, "JobID", true),
    (Field::RawId, "JobIDRaw", true),
    (Field::State, "State", true),
    (Field::Exit, "ExitCode", true),
    (Field::DerivedExit, "DerivedExitCode", true),
    (Field::User, "User", true),
    (Field::Uid, "UID", true),
    (Field::Account, "Account", true),
    (Field::Cluster, "Cluster", true),
    (Field::Partition, "Partition", true),
    (Field::Qos, "QOS", true),
    (Field::Reason, "Reason", true),
    (Field::Submit, "Submit", true),
    (Field::Eligible, "Eligible", true),
    (Field::Start, "Start", true),
    (Field::End, "End", true),
    (Field::Elapsed, "Elapsed", true),
    (Field::Limit, "Timelimit", true),
    (Field::RequestedMemory, "ReqMem", true),
    (Field::Nodes, "NNodes", true),
    (Field::Cpus, "AllocCPUS", true),
    (Field::Requested, "ReqTRES", true),
    (Field::Allocated, "AllocTRES", true),
    (Field::NodeList, "NodeList", true),
    (Field::FailedNode, "FailedNode", true),
    (Field::Restarts, "Restarts", true),
    (Field::CpuTime, "TotalCPU", false),
    (Field::Tasks, "NTasks", false),
    (Field::MaxRss, "MaxRSS", false),
    (Field::MaxRssNode, "MaxRSSNode", false),
    (Field::Constraints, "Constraints", true),
    (Field::WorkDir, "WorkDir", true),
    (Field::Stdout, "StdOut", true),
    (Field::Stderr, "StdErr", true),
    (Field::Name, "JobName", true),
    (Field::Comment, "Comment", true),
    (Field::SubmitLine, "SubmitLine", true),
];

/// What sums over many runs need: no text that users write, no step's column.
const SUMMED: [Field; 13] = [
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
    Field::NodeList,
];

/// The columns that this `sacct` has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    columns: Vec<(Field, &'static str, bool)>,
    /// What the list says about the release.
    pub(super) release: Release,
}

impl Fields {
    /// Reads the output of `sacct --helpformat`; `None` when it does not list the fields that
    /// every release has.
    pub(super) fn from_help(help: &[u8]) -> Option<Self> {
        let help = String::from_utf8_lossy(help).to_ascii_lowercase();
        let names: BTreeSet<&str> = help.split_whitespace().collect();
        let has = |name: &str| names.contains(name.to_ascii_lowercase().as_str());
        if !["JobID", "State", "ExitCode", "JobName"].into_iter().all(has) {
            return None;
        }
        let columns = COLUMNS.into_iter().filter(|(_, name, _)| has(name)).collect();
        Some(Self { columns, release: Release::from_fields(has) })
    }

    /// The columns for a query with or without steps.
    pub(super) fn layout(&self, steps: bool) -> Layout {
        self.select(|_, alone| steps || alone)
    }

    /// The columns for sums over many runs.
    pub(super) fn summed(&self) -> Layout {
        self.select(|field, _| SUMMED.contains(&field))
    }

    fn select(&self, wanted: impl Fn(Field, bool) -> bool) -> Layout {
        let mut layout = Layout { names: Vec::new(), positions: [None; COLUMNS.len()] };
        let columns = self.columns.iter().filter(|(field, _, alone)| wanted(*field, *alone));
        for (field, name, _) in columns {
            layout.positions[*field as usize] = Some(layout.names.len());
            layout.names.push(name);
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
    names: Vec<&'static str>,
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
        let names = COLUMNS.iter().map(|(_, name, _)| *name).collect();
        let mut positions = [None; COLUMNS.len()];
        for (position, (field, _, _)) in COLUMNS.iter().enumerate() {
            positions[*field as usize] = Some(position);
        }
        Self { names, positions }
    }

    /// The columns' names, in order.
    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
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
