//! What one job may ask for in a partition (queue): the ceiling of every suggestion.
//!
//! Three have a say: the partition, the size of its nodes, and the qualities of service, that of the
//! partition before that of the job. Whatever is not set limits nothing; what could not be asked for
//! looks the same here, so whoever asks has to say so.

use serde::{Deserialize, Serialize};

use super::{Bytes, Known, Qos, Span, Tres};

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
    /// The qualities of service whose limits a job has, the one that decides first.
    #[serde(skip)]
    pub rules: Vec<Qos>,
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
        let mut rules: Vec<Qos> = partition.into_iter().chain(job).cloned().collect();
        if over {
            rules.reverse();
        }
        rules.dedup_by(|a, b| a.name == b.name);
        Self { rules, ..self.clone() }
    }

    /// The longest time limit.
    pub fn longest(&self) -> Option<Most<Span>> {
        let own = self.max_time.get().map(|most| self.of_partition(most, most));
        let by_qos = self.by_qos(|qos| qos.job.wall.get(), |most| most.to_string());
        least([own, by_qos])
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
        let on_a_node =
            self.by_qos(|qos| qos.node.memory(), |most| format!("{} on a node", most.to_option()));
        let in_all = self
            .by_qos(|qos| qos.job.tres.memory(), |most| format!("{} for a job", most.to_option()));
        let in_all = in_all.map(|most| Most { value: Bytes(most.value.0 / nodes.max(1)), ..most });
        least([allowed, there, on_a_node, in_all])
    }

    /// The most CPUs on each node of a job of so many.
    pub fn cpus_per_node(&self, nodes: u64) -> Option<Most<u64>> {
        let there = self.node_cpus.get().map(|most| Most {
            value: most,
            whose: format!("nodes of partition {} have {most} CPUs", self.partition),
        });
        let on_a_node =
            self.by_qos(|qos| qos.node.count("cpu"), |most| format!("{most} CPUs on a node"));
        let in_all = self.in_all("cpu", "CPUs");
        let in_all = in_all.map(|most| Most { value: most.value / nodes.max(1), ..most });
        least([there, on_a_node, in_all])
    }

    /// The most nodes.
    pub fn nodes(&self) -> Option<Most<u64>> {
        self.in_all("node", "nodes")
    }

    /// What a quality of service allows a job of one resource.
    fn in_all(&self, resource: &str, name: &str) -> Option<Most<u64>> {
        let of: &dyn Fn(&Tres) -> Option<u64> = &|tres| tres.count(resource);
        self.by_qos(|qos| of(&qos.job.tres), |most| format!("{most} {name} for a job"))
    }

    fn of_partition<T>(&self, value: T, told: impl std::fmt::Display) -> Most<T> {
        Most { value, whose: format!("partition {} allows {told} at most", self.partition) }
    }

    /// The first rule that sets a limit is the one that counts.
    fn by_qos<T: Copy>(
        &self,
        limit: impl Fn(&Qos) -> Option<T>,
        told: impl Fn(T) -> String,
    ) -> Option<Most<T>> {
        self.rules.iter().find_map(|qos| {
            let value = limit(qos)?;
            let whose = format!("QOS {} allows {} at most", qos.name, told(value));
            Some(Most { value, whose })
        })
    }
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
        Limits {
            partition: "batch".to_owned(),
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
