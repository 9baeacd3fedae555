//! Qualities of service, associations, and what is used of accounts' limits.
//!
//! `sacctmgr` knows the limits that are set, and which qualities of service a user may ask for;
//! `scontrol show assoc_mgr` knows what the controller has counted against them (`limit(used)`, `N`
//! for no limit). Columns are those that 20.11 has, as one that is not known fails the whole call.

use crate::model::{AccountUse, Association, Caps, Known, Qos, Span, Tres};

use super::scontrol::{self, Grammar};
use super::values;

/// How records of the association manager are read.
const PLAIN: Grammar = Grammar { free: &["Comment"], after: &[] };

/// The columns of `sacctmgr show qos`.
pub(super) const QOS_COLUMNS: [&str; 21] = [
    "Name",
    "Priority",
    "Flags",
    "UsageFactor",
    "MaxWall",
    "MaxTRESPerJob",
    "MaxTRESMins",
    "MaxTRESPerNode",
    "MinTRES",
    "MaxTRESPerUser",
    "MaxJobsPerUser",
    "MaxSubmitJobsPerUser",
    "MaxTRESPerAccount",
    "MaxJobsPerAccount",
    "MaxSubmitJobsPerAccount",
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "GrpJobs",
    "GrpSubmitJobs",
    "GrpWall",
];
/// The columns of `sacctmgr show assoc`.
pub(super) const ASSOCIATION_COLUMNS: [&str; 17] = [
    "Cluster",
    "Account",
    "Partition",
    "QOS",
    "DefaultQOS",
    "MaxWall",
    "MaxTRESPerJob",
    "MaxTRESMinsPerJob",
    "MaxTRESPerNode",
    "MaxJobs",
    "MaxSubmitJobs",
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "GrpJobs",
    "GrpSubmitJobs",
    "GrpWall",
];

/// The argument that asks for columns.
pub(super) fn format(columns: &[&str]) -> String {
    format!("format={}", columns.join(","))
}

/// The cells of a line by their columns.
struct Row<'t> {
    columns: &'static [&'static str],
    cells: Vec<&'t str>,
}

impl<'t> Row<'t> {
    fn get(&self, column: &str) -> &'t str {
        let position = self.columns.iter().position(|known| *known == column);
        position.and_then(|position| self.cells.get(position)).copied().unwrap_or_default()
    }

    fn tres(&self, column: &str) -> Tres {
        Tres::parse(self.get(column))
    }

    fn count(&self, column: &str) -> Known<u64> {
        values::count(self.get(column))
    }

    fn span(&self, column: &str) -> Known<Span> {
        values::span(self.get(column))
    }

    /// The limits of all together.
    fn group(&self) -> Caps {
        Caps {
            tres: self.tres("GrpTRES"),
            minutes: self.tres("GrpTRESMins"),
            running_minutes: self.tres("GrpTRESRunMins"),
            jobs: self.count("GrpJobs"),
            submitted: self.count("GrpSubmitJobs"),
            wall: self.span("GrpWall"),
        }
    }
}

/// The lines of `sacctmgr --parsable2`; one that was cut off has less cells and is left out.
fn rows<'t>(text: &'t str, columns: &'static [&'static str]) -> impl Iterator<Item = Row<'t>> {
    let lines = text.lines().map(|line| line.split('|').collect::<Vec<_>>());
    lines.filter(move |cells| cells.len() == columns.len()).map(move |cells| Row { columns, cells })
}

/// The qualities of service.
pub(super) fn qos(output: &[u8]) -> Vec<Qos> {
    let text = String::from_utf8_lossy(output);
    rows(&text, &QOS_COLUMNS)
        .filter(|row| !row.get("Name").is_empty())
        .map(|row| Qos {
            name: row.get("Name").to_owned(),
            priority: row.count("Priority"),
            flags: values::names(row.get("Flags")),
            usage_factor: factor(row.get("UsageFactor")),
            job: Caps {
                tres: row.tres("MaxTRESPerJob"),
                minutes: row.tres("MaxTRESMins"),
                wall: row.span("MaxWall"),
                ..Caps::default()
            },
            node: row.tres("MaxTRESPerNode"),
            least: row.tres("MinTRES"),
            user: Caps {
                tres: row.tres("MaxTRESPerUser"),
                jobs: row.count("MaxJobsPerUser"),
                submitted: row.count("MaxSubmitJobsPerUser"),
                ..Caps::default()
            },
            account: Caps {
                tres: row.tres("MaxTRESPerAccount"),
                jobs: row.count("MaxJobsPerAccount"),
                submitted: row.count("MaxSubmitJobsPerAccount"),
                ..Caps::default()
            },
            group: row.group(),
            group_used: None,
        })
        .collect()
}

/// `0.100000`, in millionths.
fn factor(text: &str) -> Known<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: String = part.chars().chain("000000".chars()).take(6).collect();
    let number =
        || whole.parse::<u64>().ok()?.checked_mul(Qos::WHOLE)?.checked_add(part.parse().ok()?);
    if text.is_empty() {
        Known::NotGathered
    } else {
        number().map_or_else(|| Known::unreadable(text), Known::Value)
    }
}

/// The qualities of service with budgets, whose use the controller has to be asked for. A name that
/// could not stand in a list is left out, and its budget told as not checked.
pub(super) fn with_budgets(all: &[Qos]) -> String {
    let spends = |caps: &Caps| {
        !caps.minutes.is_empty() || !caps.running_minutes.is_empty() || caps.wall.is_value()
    };
    let is_plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte))
    };
    let names = all.iter().filter(|qos| spends(&qos.group) && is_plain(&qos.name));
    names.map(|qos| qos.name.as_str()).collect::<Vec<_>>().join(",")
}

/// What is used of the limits of each quality of service that `scontrol --oneliner show assoc_mgr`
/// tells of, by its name.
pub(super) fn qos_use(output: &[u8]) -> Vec<(String, Caps)> {
    let text = String::from_utf8_lossy(output);
    let records = one_line_each(&text, "QOS");
    let record = |record: &str| {
        let mut name = String::new();
        let mut used = Caps::default();
        // What single accounts and users have of it follows, under keys of other names.
        scontrol::pairs(record, PLAIN, |key, value| match key {
            "QOS" => before_bracket(value).clone_into(&mut name),
            "GrpTRESMins" => used.minutes = tres(value).1,
            "GrpTRESRunMins" => used.running_minutes = tres(value).1,
            "GrpWall" => used.wall = minutes(value).1,
            _ => {}
        });
        (!name.is_empty()).then_some((name, used))
    };
    records.filter_map(record).collect()
}

/// The associations on a cluster: a database may serve several, and a right on one is none on
/// another. A column that was not asked for is empty.
pub(super) fn associations(
    output: &[u8],
    columns: &'static [&'static str],
    cluster: Option<&str>,
) -> Vec<Association> {
    let text = String::from_utf8_lossy(output);
    rows(&text, columns)
        .filter(|row| {
            // A recording of another program may name none.
            let own = row.get("Cluster");
            own.is_empty() || cluster.is_none_or(|name| own.eq_ignore_ascii_case(name))
        })
        .filter(|row| !row.get("Account").is_empty())
        .map(|row| Association {
            cluster: row.get("Cluster").to_owned(),
            account: row.get("Account").to_owned(),
            partition: values::word(row.get("Partition")),
            qos: values::names(row.get("QOS")),
            default_qos: values::word(row.get("DefaultQOS")),
            job: Caps {
                tres: row.tres("MaxTRESPerJob"),
                minutes: row.tres("MaxTRESMinsPerJob"),
                jobs: row.count("MaxJobs"),
                submitted: row.count("MaxSubmitJobs"),
                wall: row.span("MaxWall"),
                ..Caps::default()
            },
            node: row.tres("MaxTRESPerNode"),
            group: row.group(),
        })
        .collect()
}

/// The records of a kind. Those of another kind may follow the last.
fn one_line_each<'t>(text: &'t str, first: &str) -> impl Iterator<Item = &'t str> {
    let records = scontrol::split(text, first).into_iter();
    records.map(|record| record.lines().next().unwrap_or_default())
}

/// The accounts, and the caller in them, of `scontrol --oneliner show assoc_mgr`.
pub(super) fn account_use(output: &[u8]) -> Vec<AccountUse> {
    let text = String::from_utf8_lossy(output);
    let records = one_line_each(&text, "ClusterName");
    let record = |record: &str| {
        let mut place = AccountUse::default();
        let (limits, used, job) = (&mut place.limits, &mut place.used, &mut place.job);
        scontrol::pairs(record, PLAIN, |key, value| match key {
            "Account" => value.clone_into(&mut place.account),
            // `alice(1001)`; empty for the account itself.
            "UserName" => place.user = values::text(before_bracket(value)),
            "Partition" => place.partition = values::word(value),
            "DefAssoc" => place.is_default = value == "Yes",
            "ParentAccount" => place.parent = values::word(before_bracket(value)),
            "GrpTRES" => (limits.tres, used.tres) = tres(value),
            "GrpTRESMins" => (limits.minutes, used.minutes) = tres(value),
            "GrpTRESRunMins" => (limits.running_minutes, used.running_minutes) = tres(value),
            "GrpJobs" => (limits.jobs, used.jobs) = counts(value),
            "GrpSubmitJobs" => (limits.submitted, used.submitted) = counts(value),
            "GrpWall" => (limits.wall, used.wall) = minutes(value),
            // `1(1)`, and nothing where there is no limit.
            "MaxJobs" => job.jobs = counts(value).0,
            "MaxWallPJ" => job.wall = values::count(value).map(whole_minutes),
            "MaxTRESPJ" => job.tres = Tres::parse(value),
            "MaxTRESPN" => place.node = Tres::parse(value),
            _ => {}
        });
        (!place.account.is_empty()).then_some(place)
    };
    records.filter_map(record).collect()
}

fn before_bracket(text: &str) -> &str {
    text.split('(').next().unwrap_or_default()
}

/// `8(3)`: the limit and what is used of it.
fn pair(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(')')?.split_once('(')
}

/// `cpu=8(3),mem=N(100)`: what is limited, and what is used.
fn tres(text: &str) -> (Tres, Tres) {
    let (mut limits, mut used) = (Tres::default(), Tres::default());
    let entries = text.split(',').filter_map(|entry| entry.split_once('='));
    for (name, (limit, use_of)) in entries.filter_map(|(name, value)| Some((name, pair(value)?))) {
        if limit != "N" {
            limits.0.insert(name.to_owned(), limit.to_owned());
        }
        used.0.insert(name.to_owned(), use_of.to_owned());
    }
    (limits, used)
}

fn counts(text: &str) -> (Known<u64>, Known<u64>) {
    let (limit, used) = pair(text).unwrap_or_default();
    let limit = if limit == "N" { Known::NotGathered } else { values::count(limit) };
    (limit, values::count(used))
}

/// `600(2.41)`: minutes.
fn minutes(text: &str) -> (Known<Span>, Known<Span>) {
    let (limit, used) = pair(text).unwrap_or_default();
    // Parts of a minute decide nothing.
    let whole = |text: &str| values::count(text.split('.').next().unwrap_or_default());
    let limit = if limit == "N" { Known::NotGathered } else { whole(limit) };
    (limit.map(whole_minutes), whole(used).map(whole_minutes))
}

fn whole_minutes(minutes: u64) -> Span {
    Span::seconds(minutes.saturating_mul(60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_that_sacctmgr_prints_are_read() {
        // `sacctmgr -nP show qos format=...` of Slurm 22.05.
        let text = "strict|100|DenyOnLimit||00:30:00|cpu=4|||||||||||||||\n\
                    onejob|100||||||||gres/gpu:a100=2|1|3||||cpu=8|cpu=1||||\n\
                    normal|50|||\n";
        let all = qos(text.as_bytes());
        assert_eq!(all.len(), 2, "a line that was cut off is not read askew");
        assert_eq!(all[0].job.tres.count("cpu"), Some(4));
        assert_eq!(all[0].job.wall, Known::Value(Span::seconds(1800)));
        assert_eq!(all[0].flags, ["DenyOnLimit"]);
        assert_eq!(all[1].user.tres.count("gres/gpu:a100"), Some(2));
        assert_eq!(
            (all[1].user.jobs.clone(), all[1].user.submitted.clone()),
            (Known::Value(1), Known::Value(3))
        );
        assert_eq!(all[1].group.minutes.count("cpu"), Some(1));
    }

    #[test]
    fn a_right_on_another_cluster_is_none_here() {
        let text = "lab|physics||high,normal|normal||||||||||||\n\
                    other|chem||normal|||||||||||||\n";
        let here = associations(text.as_bytes(), &ASSOCIATION_COLUMNS, Some("lab"));
        assert_eq!(here.len(), 1);
        assert_eq!((here[0].account.as_str(), here[0].qos.len()), ("physics", 2));
        assert_eq!(here[0].default_qos.as_deref(), Some("normal"));
        assert_eq!(associations(text.as_bytes(), &ASSOCIATION_COLUMNS, None).len(), 2);
    }

    #[test]
    fn a_limit_and_its_use_are_told_apart() {
        // Cut from `scontrol --oneliner show assoc_mgr users=alice flags=assoc` of Slurm 22.05.
        let text = "Current Association Manager state\n\nAssociation Records\n\n\
            ClusterName=lab Account=dead UserName= Partition= Priority=0 ID=5 \
            ParentAccount=root(1) DefAssoc=No GrpJobs=N(2) GrpSubmitJobs=10(3) GrpWall=60(2.41) \
            GrpTRES=cpu=8(3),mem=N(100) GrpTRESMins=cpu=1(5),gres/gpu=N(377) MaxJobs=1(1) MaxWallPJ=480 \
            MaxTRESPJ=cpu=8 MaxTRESPN=\n\
            ClusterName=lab Account=dead UserName=alice(1001) Partition=gpu ParentAccount= DefAssoc=Yes GrpJobs=N(0)\n";
        let all = account_use(text.as_bytes());
        assert_eq!(all.len(), 2);
        let account = &all[0];
        assert_eq!((account.user.as_deref(), account.parent.as_deref()), (None, Some("root")));
        assert_eq!(account.limits.minutes.count("cpu"), Some(1));
        assert_eq!(account.used.minutes.count("cpu"), Some(5));
        assert_eq!(account.limits.tres.get("mem"), None);
        assert_eq!(account.limits.submitted, Known::Value(10));
        assert_eq!(account.job.wall, Known::Value(Span::seconds(8 * 3600)));
        assert_eq!((account.job.jobs.get(), account.job.tres.count("cpu")), (Some(1), Some(8)));
        assert!(account.node.is_empty() && !all[1].job.wall.is_value());
        assert_eq!(account.limits.wall, Known::Value(Span::seconds(3600)));
        assert_eq!(account.used.wall, Known::Value(Span::seconds(120)));
        assert_eq!(all[1].user.as_deref(), Some("alice"));
        assert_eq!(all[1].partition.as_deref(), Some("gpu"));
        assert!(all[1].is_default && !account.is_default);
    }

    #[test]
    fn what_is_spent_of_a_qos_is_read() {
        // Cut from `scontrol --oneliner show assoc_mgr` of Slurm 20.11.
        let text = "QOS Records\n\n\
            QOS=minutes(11) UsageRaw=0.000000 GrpJobs=N(0) GrpWall=N(0.50) GrpTRES=cpu=N(0) \
            GrpTRESMins=cpu=1(6),mem=N(4654) GrpTRESRunMins=cpu=N(11038) MaxWallPJ= Priority=0 \
            Account Limits= physics={MaxJobsPA=N(4) MaxTRESPA=cpu=N(14)} User Limits=No Users\n";
        let all = qos_use(text.as_bytes());
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, "minutes");
        assert_eq!(all[0].1.minutes.count("cpu"), Some(6));
        assert_eq!(all[0].1.running_minutes.count("cpu"), Some(11_038));
        let set = qos(b"minutes|0|||||||||||||||cpu=1||||\nnormal|50|||||||||||||||||||\n");
        assert_eq!(with_budgets(&set), "minutes");
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (qos(&bytes), associations(&bytes, &ASSOCIATION_COLUMNS, Some("lab")));
            let _ = account_use(&[b"ClusterName=a Account=".as_slice(), &bytes].concat());
            let _ = qos_use(&[b"QOS=a(1) GrpTRESMins=".as_slice(), &bytes].concat());
        }
    }
}
