//! What one job may ask for in a partition (queue): the ceiling of every suggestion.
//!
//! Four have a say: the partition, the size of its nodes, the qualities of service, that of the
//! partition before that of the job, and behind these the places in the tree of accounts: that of the
//! user, then the accounts upwards. Whatever is not set limits nothing; what could not be asked for
//! looks the same here, so whoever asks has to say so.

use serde::{Deserialize, Serialize};

use super::{AccountUse, Bytes, Caps, Known, Qos, Span, Tres};

/// The limits of one partition, the size of its largest node, and what qualities of service allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// The partition.
    pub partition: String,
    /// The longest time limit that it takes.
    pub max_time: Known<Span>,
    /// The most memory that a job may use on one node.
    pub max_memory_per_node: Known<Bytes>,
    /// The most memory that a job may use per allocated CPU.
    pub max_memory_per_cpu: Known<Bytes>,
    /// The memory of the largest node.
    pub node_memory: Known<Bytes>,
    /// The CPUs of the node that has most of them.
    pub node_cpus: Known<u64>,
    /// The quality of service whose limits every job in the partition has.
    #[serde(default)]
    pub qos: Option<String>,
    /// The other limits that a job has, those that decide first.
    #[serde(skip)]
    pub rules: Vec<Rule>,
}

/// Limits that a quality of service sets, or a place in the tree of accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// Which: "QOS short", "account physics".
    pub name: String,
    /// Whether it is a place in the tree: those above have a say in what all jobs together may hold,
    /// whatever those below allow.
    pub is_place: bool,
    /// Limits of one job, and how many may run at a time.
    pub job: Caps,
    /// The most that one job may have on one node.
    pub node: Tres,
    /// What all jobs may hold together, so no single one more.
    pub together: Tres,
}

impl From<&Qos> for Rule {
    fn from(qos: &Qos) -> Self {
        Self {
            name: format!("QOS {}", qos.name),
            is_place: false,
            job: Caps { jobs: qos.user.jobs.clone(), ..qos.job.clone() },
            node: qos.node.clone(),
            together: qos.group.tres.clone(),
        }
    }
}

impl Rule {
    /// The limits that hold for a user who charges an account, in a partition: the nearest first.
    pub fn of_places(all: &[AccountUse], account: &str, user: &str, partition: &str) -> Vec<Self> {
        let named = |place: &&AccountUse, name: &str| place.account.eq_ignore_ascii_case(name);
        let own = |place: &&AccountUse| {
            named(place, account) && place.user.as_deref() == Some(user) && !user.is_empty()
        };
        let here = |place: &&AccountUse| place.partition.as_deref() == Some(partition);
        let anywhere = |place: &&AccountUse| place.partition.is_none();
        let mut found = all.iter().filter(own);
        let own = found.clone().find(here).or_else(|| found.find(anywhere));
        let mut places: Vec<&AccountUse> = own.into_iter().collect();
        let mut above = Some(account);
        // A tree has no rings, and what is printed may hold anything.
        while let Some(name) = above.filter(|_| places.len() <= all.len()) {
            let place = all.iter().find(|place| place.user.is_none() && named(place, name));
            places.extend(place);
            above = place.and_then(|place| place.parent.as_deref());
        }
        places.into_iter().map(Self::from).collect()
    }
}

impl From<&AccountUse> for Rule {
    fn from(place: &AccountUse) -> Self {
        let account = format!("account {}", place.account);
        Self {
            name: match &place.user {
                Some(user) => format!("{user}'s association with {account}"),
                None => account,
            },
            is_place: true,
            job: place.job.clone(),
            node: place.node.clone(),
            together: place.limits.tres.clone(),
        }
    }
}

/// The most that may be asked for, and in words whose limit that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Most<T> {
    /// How much.
    pub value: T,
    /// "QOS short allows 00:30:00 at most".
    pub whose: String,
}

impl Limits {
    /// With the limits of the qualities of service that a job of `qos` has here.
    #[must_use]
    pub fn under(&self, qos: Option<&str>, all: &[Qos]) -> Self {
        let named = |name: Option<&str>| {
            let name = name.filter(|name| !name.is_empty())?;
            all.iter().find(|qos| qos.name.eq_ignore_ascii_case(name))
        };
        let (partition, job) = (named(self.qos.as_deref()), named(qos));
        let over = job.is_some_and(|qos| qos.flags.iter().any(|flag| flag == "OverPartQOS"));
        let mut rules: Vec<Rule> = partition.into_iter().chain(job).map(Rule::from).collect();
        if over {
            rules.reverse();
        }
        rules.dedup_by(|a, b| a.name == b.name);
        Self { rules, ..self.clone() }
    }

    /// With the limits of the places in the tree of accounts, which yield to those that are there.
    #[must_use]
    pub fn charged(mut self, places: Vec<Rule>) -> Self {
        self.rules.extend(places);
        self
    }

    /// The longest time limit.
    pub fn longest(&self) -> Option<Most<Span>> {
        let own = self.max_time.get().map(|most| self.of_partition(most, most));
        let by_rule = self.by_rule(|rule| rule.job.wall.get(), |most| most.to_string());
        least([own, by_rule])
    }

    /// The most memory on each node of a job of so many.
    pub fn memory_per_node(&self, nodes: u64) -> Option<Most<Bytes>> {
        let by_cpus = self.max_memory_per_cpu.get().zip(self.node_cpus.get());
        let by_cpus = by_cpus.map(|(per_cpu, cpus)| Bytes(per_cpu.0.saturating_mul(cpus)));
        let allowed = [self.max_memory_per_node.get(), by_cpus].into_iter().flatten().min();
        let allowed = allowed.map(|most| Most {
            value: most,
            whose: format!(
                "partition {} allows {} on a node at most",
                self.partition,
                most.to_option()
            ),
        });
        let there = self.node_memory.get().map(|most| Most {
            value: most,
            whose: format!("nodes of partition {} have {}", self.partition, most.to_option()),
        });
        let on_a_node = self
            .by_rule(|rule| rule.node.memory(), |most| format!("{} on a node", most.to_option()));
        let each = |most: Option<Most<Bytes>>| {
            most.map(|most| Most { value: Bytes(most.value.0 / nodes.max(1)), ..most })
        };
        let in_all = self.by_rule(
            |rule| rule.job.tres.memory(),
            |most| format!("{} for a job", most.to_option()),
        );
        let together = self.together(Tres::memory, Bytes::to_option);
        least([allowed, there, on_a_node, each(in_all), each(together)])
    }

    /// The most CPUs on each node of a job of so many.
    pub fn cpus_per_node(&self, nodes: u64) -> Option<Most<u64>> {
        let there = self.node_cpus.get().map(|most| Most {
            value: most,
            whose: format!("nodes of partition {} have {most} CPUs", self.partition),
        });
        let on_a_node =
            self.by_rule(|rule| rule.node.count("cpu"), |most| format!("{most} CPUs on a node"));
        let in_all = self.in_all("cpu", "CPUs");
        let in_all = in_all.map(|most| Most { value: most.value / nodes.max(1), ..most });
        least([there, on_a_node, in_all])
    }

    /// The most nodes.
    pub fn nodes(&self) -> Option<Most<u64>> {
        self.in_all("node", "nodes")
    }

    /// The most tasks of an array at a time.
    pub fn jobs_at_a_time(&self) -> Option<Most<u64>> {
        self.by_rule(|rule| rule.job.jobs.get(), |most| format!("{most} running jobs"))
    }

    /// What a job may have of one resource.
    fn in_all(&self, resource: &str, name: &str) -> Option<Most<u64>> {
        let of: &dyn Fn(&Tres) -> Option<u64> = &|tres| tres.count(resource);
        let of_a_job =
            self.by_rule(|rule| of(&rule.job.tres), |most| format!("{most} {name} for a job"));
        least([of_a_job, self.together(of, |most| format!("{most} {name}"))])
    }

    fn of_partition<T>(&self, value: T, told: impl std::fmt::Display) -> Most<T> {
        Most { value, whose: format!("partition {} allows {told} at most", self.partition) }
    }

    /// The first rule that sets a limit is the one that counts.
    fn by_rule<T: Copy>(
        &self,
        limit: impl Fn(&Rule) -> Option<T>,
        told: impl Fn(T) -> String,
    ) -> Option<Most<T>> {
        self.rules.iter().find_map(|rule| Some(allows(rule, limit(rule)?, &told)))
    }

    /// What all jobs may hold together: by the first quality of service that says it, else by the
    /// place that allows least.
    fn together<T: Copy + Ord>(
        &self,
        limit: impl Fn(&Tres) -> Option<T>,
        told: impl Fn(T) -> String,
    ) -> Option<Most<T>> {
        let told = |most| format!("{} for all jobs together", told(most));
        let mut found = self
            .rules
            .iter()
            .filter_map(|rule| Some((rule.is_place, allows(rule, limit(&rule.together)?, told))));
        let by_qos = found.clone().find(|(is_place, _)| !is_place);
        let least = by_qos.or_else(|| found.by_ref().min_by_key(|(_, most)| most.value))?;
        Some(least.1)
    }
}

fn allows<T: Copy>(rule: &Rule, value: T, told: impl Fn(T) -> String) -> Most<T> {
    Most { value, whose: format!("{} allows {} at most", rule.name, told(value)) }
}

fn least<T: Ord + Copy, const N: usize>(limits: [Option<Most<T>>; N]) -> Option<Most<T>> {
    limits.into_iter().flatten().min_by_key(|most| most.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Caps;

    fn qos(name: &str, hours: u64, per_job: &str, flags: &[&str]) -> Qos {
        Qos {
            name: name.to_owned(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            job: Caps {
                tres: Tres::parse(per_job),
                wall: Known::Value(Span::seconds(hours * 3600)),
                ..Caps::default()
            },
            ..Qos::default()
        }
    }

    fn partition() -> Limits {
        partition_limits("batch")
    }

    fn partition_limits(name: &str) -> Limits {
        Limits {
            partition: name.to_owned(),
            max_time: Known::Value(Span::seconds(24 * 3600)),
            node_memory: Known::Value(Bytes(250 * Bytes::GIB)),
            node_cpus: Known::Value(64),
            qos: Some("part".to_owned()),
            ..Limits::default()
        }
    }

    /// `man sacctmgr`: the limits of the partition's QOS override those of the job's, unless the
    /// job's has the flag `OverPartQOS`.
    #[test]
    fn the_partition_s_quality_of_service_decides_unless_the_job_s_overrides_it() {
        let told = |flags: &[&str]| {
            let all = [qos("part", 8, "", &[]), qos("mine", 12, "cpu=32", flags)];
            let limits = partition().under(Some("mine"), &all);
            let cpus = limits.cpus_per_node(2).expect("a limit");
            (limits.longest().expect("a limit").whose, cpus.value, cpus.whose)
        };
        // 32 CPUs on two nodes are 16 on each.
        let cpus = (16, "QOS mine allows 32 CPUs for a job at most".to_owned());
        let (time, value, whose) = told(&[]);
        assert_eq!(time, "QOS part allows 08:00:00 at most");
        assert_eq!((value, whose), cpus);
        assert_eq!(told(&["OverPartQOS"]).0, "QOS mine allows 12:00:00 at most");
    }

    /// `man sacctmgr`, RESOURCE LIMITS: a limit of a quality of service overrides that of the
    /// association, the user's that of the account; what a whole account may hold binds all below.
    #[test]
    fn the_places_in_the_tree_of_accounts_come_behind_the_qualities_of_service() {
        let place = |account: &str, user: Option<&str>, parent: Option<&str>| AccountUse {
            account: account.to_owned(),
            user: user.map(str::to_owned),
            parent: parent.map(str::to_owned),
            ..AccountUse::default()
        };
        let wall = |hours: u64| Caps {
            wall: Known::Value(Span::seconds(hours * 3600)),
            ..Caps::default()
        };
        let holds = |tres: &str| Caps { tres: Tres::parse(tres), ..Caps::default() };
        let all = [
            AccountUse { limits: holds("cpu=40"), job: wall(2), ..place("root", None, None) },
            AccountUse {
                limits: holds("cpu=48"),
                job: wall(4),
                ..place("lab", None, Some("root"))
            },
            AccountUse { job: wall(6), ..place("lab", Some("ada"), None) },
            AccountUse {
                job: wall(1),
                partition: Some("gpu".into()),
                ..place("lab", Some("ada"), None)
            },
        ];
        let limits = |qos: &[Qos], user: &str, partition: &str| {
            let limits = partition_limits(partition).under(Some("mine"), qos);
            limits.charged(Rule::of_places(&all, "lab", user, partition))
        };
        let longest = |limits: &Limits| limits.longest().expect("a limit").whose;
        let ada = limits(&[], "ada", "batch");
        assert_eq!(longest(&ada), "ada's association with account lab allows 06:00:00 at most");
        assert_eq!(longest(&limits(&[], "bob", "batch")), "account lab allows 04:00:00 at most");
        let here = "ada's association with account lab allows 01:00:00 at most";
        assert_eq!(longest(&limits(&[], "ada", "gpu")), here);
        let qos = [qos("mine", 12, "", &[])];
        assert_eq!(longest(&limits(&qos, "ada", "batch")), "QOS mine allows 12:00:00 at most");
        // The root allows 40 CPUs in all, less than the account below it: 20 on each of two nodes.
        let cpus = ada.cpus_per_node(2).expect("a limit");
        assert_eq!(cpus.value, 20);
        assert_eq!(cpus.whose, "account root allows 40 CPUs for all jobs together at most");
        // A ring is no tree, and ends.
        let ring = [place("a", None, Some("b")), place("b", None, Some("a"))];
        assert!(Rule::of_places(&ring, "a", "ada", "batch").len() <= 3);
    }

    #[test]
    fn the_tightest_limit_is_the_one_that_is_told() {
        let loose = partition().under(Some("long"), &[qos("long", 48, "mem=100G", &[])]);
        assert_eq!(
            loose.longest().expect("one").whose,
            "partition batch allows 1-00:00:00 at most"
        );
        let memory = loose.memory_per_node(1).expect("one");
        assert_eq!(memory.whose, "QOS long allows 100G for a job at most");
        assert_eq!(loose.memory_per_node(4).expect("one").value, Bytes(25 * Bytes::GIB));
        // A QOS that nobody knows limits nothing.
        let bare = partition().under(Some("gone"), &[]);
        assert_eq!(
            bare.memory_per_node(1).expect("one").whose,
            "nodes of partition batch have 250G"
        );
        assert_eq!(bare.nodes(), None);
    }
}
