//! Why a queue refuses a job, or would let it wait.
//!
//! Each refusal is a [`Gate`]: what it is, in one sentence, whose rule it is, whether another shape
//! would pass, and what would lift it. What could not be checked is a gate of its own kind, so that
//! it can never be taken for allowed.
//!
//! A user may have several ways in, one for each account and quality of service; the way with the
//! least in it is told. Facts: `man slurm.conf` (partitions), `man sacctmgr` (limits and their
//! precedence), and what Slurm 20.11 to 26.05 answered to refused submissions.

mod limits;
mod queue;
mod room;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::model::{Association, Cluster, Known, Qos, Queue, Shape, Span};

use super::free::{Free, Frees};
pub use room::{Left, within};
use usage::Usage;

/// How hard a gate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Lets nothing of this user through, whatever is asked for.
    Fatal,
    /// Does not let this much through; less, shorter or later may pass.
    Shape,
    /// Lets it through and holds it until others give something back.
    Wait,
    /// Could not be checked.
    Unchecked,
    /// Lets it through, at a price.
    Note,
}

/// One reason why a job does not run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gate {
    /// A stable word for programs, such as `QUEUE_DISABLED`.
    pub code: String,
    /// How hard it is.
    pub kind: Kind,
    /// One sentence for people.
    pub text: String,
    /// Whose rule it is, such as `QOS long MaxWall`.
    pub source: String,
    /// What would lift it, where something would.
    pub lift: Option<String>,
    /// Whether it clears by itself, when running jobs end.
    #[serde(skip)]
    pub clears: bool,
}

impl Gate {
    fn new(
        kind: Kind,
        code: impl Into<String>,
        source: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let (code, source, text) = (code.into(), source.into(), text.into());
        Self { code, kind, text, source, lift: None, clears: false }
    }

    fn fatal(code: &str, source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Kind::Fatal, code, source, text)
    }

    fn shape(code: impl Into<String>, source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Kind::Shape, code, source, text)
    }

    fn wait(code: &str, source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Kind::Wait, code, source, text).clears()
    }

    fn unchecked(code: &str, source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Kind::Unchecked, code, source, text)
    }

    fn lift(mut self, lift: impl Into<String>) -> Self {
        self.lift = Some(lift.into());
        self
    }

    /// Says that it clears when running jobs end.
    fn clears(self) -> Self {
        Self { clears: true, ..self }
    }
}

/// One way into a queue: what is charged, and by which rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Way {
    /// The account that is charged; `None` where the site needs none.
    pub account: Option<String>,
    /// The quality of service; `None` where it is not known which.
    pub qos: Option<String>,
    /// Whether `--account` has to be given for it.
    pub names_account: bool,
    /// Whether `--qos` has to be given for it.
    pub names_qos: bool,
}

/// What stands between this user and a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The way that has the least in it.
    pub way: Way,
    /// What is in it, the hardest first.
    pub gates: Vec<Gate>,
}

impl Access {
    /// Whether something of a kind is in the way.
    pub fn has(&self, kind: Kind) -> bool {
        self.gates.iter().any(|gate| gate.kind == kind)
    }

    /// Whether nothing refuses and nothing was left unchecked.
    pub fn is_open(&self) -> bool {
        self.gates.iter().all(|gate| gate.kind == Kind::Note)
    }

    /// What refuses this user or this shape, without what is only unchecked.
    pub fn refusals(&self) -> impl Iterator<Item = &Gate> {
        self.gates.iter().filter(|gate| matches!(gate.kind, Kind::Fatal | Kind::Shape))
    }
}

/// What the caller may have at once of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ceiling {
    /// Of what.
    pub resource: String,
    /// How much.
    pub most: String,
    /// How much the caller's running jobs have of it.
    pub used: Known<String>,
    /// Whose rule that is.
    pub source: String,
}

/// Where a queue stands for this user. Every queue is in exactly one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// Takes and starts jobs of this user, as far as its rules tell.
    Open,
    /// Not everything could be checked.
    Unchecked,
    /// Lets this user not in.
    NoAccess,
    /// Has no node that works.
    NoNodes,
    /// Takes or starts nothing, whoever asks.
    Closed,
}

impl Term {
    /// Where a queue with such gates stands.
    pub fn of(access: &Access) -> Self {
        let has =
            |codes: &[&str]| access.gates.iter().any(|gate| codes.contains(&gate.code.as_str()));
        if has(&["QUEUE_DISABLED", "QUEUE_NOT_STARTED", "NO_ACCOUNTS", "NO_QOS", "NO_GROUPS"]) {
            Self::Closed
        } else if has(&["NO_NODES", "ALL_NODES_UNSCHEDULABLE"]) {
            Self::NoNodes
        } else if access.has(Kind::Fatal) {
            Self::NoAccess
        } else if access.has(Kind::Unchecked) {
            Self::Unchecked
        } else {
            Self::Open
        }
    }

    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Unchecked => "not checked",
            Self::NoAccess => "no access",
            Self::NoNodes => "no nodes",
            Self::Closed => "closed",
        }
    }
}

/// Judges the queues of one reading.
#[derive(Debug)]
pub struct Gates<'c> {
    cluster: &'c Cluster,
    nodes: BTreeMap<&'c str, Vec<Arc<Free<'c>>>>,
    usage: Usage<'c>,
}

impl<'c> Gates<'c> {
    /// For a cluster and what is free of it.
    pub fn new(cluster: &'c Cluster, frees: &Frees<'c>) -> Self {
        Self { cluster, nodes: frees.by_queue(cluster), usage: Usage::new(cluster) }
    }

    /// The nodes of a queue, as one of its jobs could have them.
    pub fn nodes(&self, queue: &Queue) -> &[Arc<Free<'c>>] {
        self.nodes.get(queue.name.as_str()).map_or(&[], Vec::as_slice)
    }

    /// What stands between the caller and a queue; with a shape also what stands against that.
    pub fn access(&self, queue: &Queue, shape: Option<&Shape>) -> Access {
        let mut common = Vec::new();
        queue::state(queue, &mut common);
        queue::place(self, queue, &mut common);
        queue::caller(self, queue, &mut common);
        if let Some(shape) = shape {
            queue::shape(self, queue, shape, &mut common);
        } else {
            queue::needs_reservation(queue, Kind::Note, &mut common);
        }
        let best = self
            .ways(queue, shape)
            .into_iter()
            .map(|way| {
                let mut gates = Vec::new();
                queue::way(self, queue, &way, &mut gates);
                limits::check(self, queue, &way, shape, &mut gates);
                (way, gates)
            })
            // Of several alike the first: ways are in the order of how little has to be named.
            .min_by_key(|(_, gates)| weight(gates));
        let (way, gates) = best.unwrap_or_default();
        common.extend(gates);
        common.sort_by_key(|gate| gate.kind);
        Access { way, gates: common }
    }

    /// The ways in, those for which the least has to be named first.
    pub fn ways(&self, queue: &Queue, shape: Option<&Shape>) -> Vec<Way> {
        let account = shape.and_then(|shape| shape.account.as_deref());
        let qos = shape.and_then(|shape| shape.qos.as_deref());
        let rights = self.rights(queue);
        let wanted: Vec<&Association> = rights
            .iter()
            .copied()
            .filter(|right| account.is_none_or(|name| right.account.eq_ignore_ascii_case(name)))
            .collect();
        if wanted.is_empty() {
            return vec![Way {
                account: account.map(str::to_owned),
                qos: qos.map(str::to_owned),
                names_account: account.is_some(),
                names_qos: qos.is_some(),
            }];
        }
        let default =
            self.cluster.account_use.iter().find(|place| place.is_default && place.user.is_some());
        let default = default.map(|place| place.account.as_str());
        let mut ways = Vec::new();
        for right in wanted {
            let own = right.default_qos.as_deref().or(match right.qos.as_slice() {
                [only] => Some(only.as_str()),
                _ => None,
            });
            let names_account = account.is_some() || default != Some(right.account.as_str());
            let way = |qos: Option<&str>, names_qos| Way {
                account: Some(right.account.clone()),
                qos: qos.map(str::to_owned),
                names_account,
                names_qos,
            };
            if qos.is_some() {
                ways.push(way(qos, true));
                continue;
            }
            ways.push(way(own, false));
            let others = right.qos.iter().filter(|name| Some(name.as_str()) != own);
            ways.extend(others.map(|name| way(Some(name), true)));
        }
        ways.sort_by_key(|way| (way.names_account, way.names_qos));
        ways
    }

    /// The caller's associations that count in a queue: one for this queue replaces that of the
    /// whole account.
    fn rights(&self, queue: &Queue) -> Vec<&'c Association> {
        let here = |right: &Association| right.partition.as_deref() == Some(queue.name.as_str());
        let all = &self.cluster.associations;
        let special: Vec<&str> =
            all.iter().filter(|right| here(right)).map(|right| right.account.as_str()).collect();
        let counts = |right: &&Association| match right.partition {
            Some(_) => here(right),
            None => !special.contains(&right.account.as_str()),
        };
        all.iter().filter(counts).collect()
    }

    /// The association of a way.
    fn right(&self, queue: &Queue, way: &Way) -> Option<&'c Association> {
        let account = way.account.as_deref()?;
        self.rights(queue).into_iter().find(|right| right.account.eq_ignore_ascii_case(account))
    }

    /// The qualities of service whose limits a job has, the one that decides first.
    fn rules(&self, queue: &Queue, way: &Way) -> Vec<&'c Qos> {
        let named = |name: &Option<String>| self.cluster.qos_named(name.as_deref()?);
        let (partition, job) = (named(&queue.limits_from), named(&way.qos));
        let over = job.is_some_and(|qos| qos.flags.iter().any(|flag| flag == "OverPartQOS"));
        let mut rules: Vec<&Qos> = partition.into_iter().chain(job).collect();
        if over {
            rules.reverse();
        }
        rules.dedup_by(|a, b| a.name == b.name);
        rules
    }

    /// The longest time limit of a job that goes a way into a queue, and whose rule that is.
    pub fn longest(&self, queue: &Queue, way: &Way) -> (Known<Span>, String) {
        let own = format!("partition {} MaxTime", queue.name);
        let rules = self.rules(queue, way);
        let by_qos = rules.iter().find_map(|qos| Some((qos.job.wall.get()?, qos)));
        let by_right = self.right(queue, way).and_then(|right| {
            // The limit of a quality of service replaces that of the association.
            Some((right.job.wall.get()?, right)).filter(|_| by_qos.is_none())
        });
        let mut shortest = (queue.max_time.clone(), own);
        let candidates = [
            by_qos.map(|(wall, qos)| (wall, format!("QOS {} MaxWall", qos.name))),
            by_right.map(|(wall, right)| (wall, format!("account {} MaxWall", right.account))),
        ];
        for (wall, source) in candidates.into_iter().flatten() {
            if shortest.0.get().is_none_or(|known| wall < known) {
                shortest = (Known::Value(wall), source);
            }
        }
        shortest
    }

    /// What the caller may have at once in a queue, by resource.
    pub fn ceilings(&self, queue: &Queue, way: &Way) -> Vec<Ceiling> {
        let mut found: Vec<Ceiling> = Vec::new();
        for qos in self.rules(queue, way) {
            let scope = usage::Scope { qos: Some(&qos.name), account: None, is_mine: true };
            for (name, most, _) in usage::entries(&qos.user.tres) {
                let resource = usage::noun(name);
                let Some(most) = most.filter(|_| found.iter().all(|c| c.resource != resource))
                else {
                    continue;
                };
                let used = self.usage.of(&scope).tres.get(name).copied().unwrap_or(0);
                let used = Some(used).filter(|_| self.usage.is_whole(&scope));
                found.push(Ceiling {
                    resource,
                    most: usage::shown(name, most),
                    used: used.map(|used| usage::shown(name, used)).into(),
                    source: format!("QOS {} MaxTRESPerUser", qos.name),
                });
            }
        }
        found
    }

    /// Whether accounting enforces something; not to know is to assume so.
    fn enforces(&self, what: &str) -> bool {
        self.is_enforced(what) != Some(false)
    }

    /// Whether accounting enforces something, as far as is known. What is enforced implies what it
    /// rests on (`man slurm.conf`).
    fn is_enforced(&self, what: &str) -> Option<bool> {
        let words = self.cluster.controller.enforces.value()?;
        let implied = |word: &str| match what {
            "associations" => !matches!(word, "none" | "nojobs" | "nosteps"),
            "limits" => matches!(word, "safe" | "all"),
            _ => word == "all",
        };
        Some(words.iter().any(|word| word == what || implied(word)))
    }

    /// The accounts above one, nearest first.
    fn above(&self, account: &str) -> Vec<&'c str> {
        let places = &self.cluster.account_use;
        let parent = |name: &str| {
            let mut own = places.iter().filter(|place| place.user.is_none());
            own.find(|place| place.account.eq_ignore_ascii_case(name))?.parent.as_deref()
        };
        let mut found: Vec<&str> = Vec::new();
        let mut next = parent(account);
        while let Some(name) = next.filter(|name| !found.contains(name)) {
            found.push(name);
            next = parent(name);
        }
        found
    }
}

/// How much is in a way: what kind counts before how many.
fn weight(gates: &[Gate]) -> (usize, usize, usize) {
    let count = |kind| gates.iter().filter(|gate| gate.kind == kind).count();
    (count(Kind::Fatal), count(Kind::Shape), count(Kind::Unchecked))
}

#[cfg(test)]
mod tests;
