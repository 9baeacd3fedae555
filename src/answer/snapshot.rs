//! A cluster at one instant, kept: for a report, for offline work, to compare with later.
//!
//! A snapshot is a recording of all that questions about capacity ask: nodes, partitions, limits,
//! reservations, jobs, who asks, and dry runs of the smallest job and of one shape.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::access::access;
use super::place::{self, Wanted};
use super::{AnswerError, World};
use crate::capacity::diff::{self, Difference};
use crate::host::{Recording, Replay};
use crate::model::{Allowed, Cluster, Notice};
use crate::sched::{Session, slurm};
use crate::text::{self, Renames};

/// What was kept.
#[derive(Debug, Serialize)]
pub struct Snapshot {
    /// `jobwise/snapshot/1`.
    pub schema: &'static str,
    /// Where it is.
    pub path: String,
    /// The cluster, by the name that it has in the snapshot.
    pub cluster: Option<String>,
    /// When it was read.
    pub taken_at: Timestamp,
    /// Nodes.
    pub nodes: usize,
    /// Partitions.
    pub queues: usize,
    /// Jobs that run or wait.
    pub jobs: usize,
    /// Dry runs made.
    pub asked: usize,
    /// Queries kept.
    pub queries: usize,
    /// Whether names were replaced.
    pub redacted: bool,
    /// What it lacks.
    pub notices: Vec<Notice>,
}

/// What is different between two snapshots.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// `jobwise/snapshot-diff/1`.
    pub schema: &'static str,
    /// When the first was taken.
    pub before: Timestamp,
    /// When the second was.
    pub after: Timestamp,
    /// What is different.
    pub differences: Vec<Difference>,
    /// What could not be compared.
    pub notices: Vec<Notice>,
}

/// Takes a snapshot into a recording, which is the cluster of `world`.
pub fn take(
    world: World<'_>,
    recording: &Recording<'_>,
    path: &Path,
    wanted: &Wanted,
    redact: bool,
) -> Result<Snapshot, AnswerError> {
    let read = place::read(world)?;
    let (smallest, shaped) = place::candidates(&read, wanted);
    let mut asked = access(world, &read.backend, &read.cluster, &smallest).asked;
    asked += place::ask(&read, &wanted.shape, &shaped);
    let place::Read { cluster, mut notices, .. } = read;
    let mut name = cluster.name.clone();
    if redact {
        let (renames, kept) = renames(&cluster);
        recording.rewrite(&|argv, text| renames.apply(&slurm::unnamed(argv, text)));
        name = name.map(|name| renames.apply(&name));
        for notice in &mut notices {
            notice.text = renames.apply(&notice.text);
        }
        if !kept.is_empty() {
            let text = format!(
                "not replaced, as the words mean something to the scheduler: {}",
                text::join(&kept, "and")
            );
            notices.push(Notice::warning("not-redacted", text));
        }
    }
    Ok(Snapshot {
        schema: "jobwise/snapshot/1",
        path: path.display().to_string(),
        cluster: name,
        taken_at: cluster.taken_at,
        nodes: cluster.nodes.len(),
        queues: cluster.queues.len(),
        jobs: cluster.jobs.len(),
        asked,
        queries: recording.queries(),
        redacted: redact,
        notices,
    })
}

/// Compares two snapshots.
pub fn compare(world: World<'_>, before: &Replay, after: &Replay) -> Result<Compared, AnswerError> {
    let (first, second) = (Session::default(), Session::default());
    let old = place::read(world.on(before, &first))?;
    let new = place::read(world.on(after, &second))?;
    let mut notices = old.notices;
    notices.extend(new.notices);
    notices.dedup();
    Ok(Compared {
        schema: "jobwise/snapshot-diff/1",
        before: old.cluster.taken_at,
        after: new.cluster.taken_at,
        differences: diff::differences(&old.cluster, &new.cluster),
        notices,
    })
}

/// Words of the schedulers' own that may be names, too: to replace them would break what is read.
const MEANT: [&str; 33] = [
    "all",
    "allocated",
    "alloc",
    "billing",
    "cluster",
    "config",
    "cpu",
    "default",
    "down",
    "drain",
    "energy",
    "false",
    "flags",
    "format",
    "fs",
    "gpu",
    "gres",
    "idle",
    "job",
    "mem",
    "mixed",
    "no",
    "node",
    "none",
    "normal",
    "null",
    "parent",
    "root",
    "slurm",
    "true",
    "up",
    "user",
    "yes",
];

/// Other names for users, accounts, groups, reservations, hosts, the cluster, and what is called after
/// one of them; and the names that stay.
fn renames(cluster: &Cluster) -> (Renames, Vec<String>) {
    let mut users: BTreeSet<&str> = cluster.identity.user.as_deref().into_iter().collect();
    let mut accounts: BTreeSet<&str> = cluster.accounts().into_iter().collect();
    let mut groups: BTreeSet<&str> = cluster.identity.groups.iter().map(String::as_str).collect();
    for job in &cluster.jobs {
        users.extend(job.user.as_deref());
        accounts.extend(job.account.as_deref());
    }
    let plain = |names: &'_ [String]| -> Vec<String> {
        names.iter().map(|name| name.trim_start_matches(['-', '+']).to_owned()).collect()
    };
    let held: Vec<[Vec<String>; 3]> = cluster
        .reservations
        .iter()
        .map(|held| [plain(&held.users), plain(&held.accounts), plain(&held.groups)])
        .collect();
    for [of_users, of_accounts, of_groups] in &held {
        users.extend(of_users.iter().map(String::as_str));
        accounts.extend(of_accounts.iter().map(String::as_str));
        groups.extend(of_groups.iter().map(String::as_str));
    }
    for node in &cluster.nodes {
        users.extend(node.reason.as_ref().and_then(|reason| reason.by.as_deref()));
    }
    for queue in &cluster.queues {
        if let Allowed::Only(names) = &queue.accounts {
            accounts.extend(names.iter().map(String::as_str));
        }
        accounts.extend(queue.denied_accounts.iter().map(String::as_str));
        if let Allowed::Only(names) = &queue.groups {
            groups.extend(names.iter().map(String::as_str));
        }
    }
    for place in &cluster.account_use {
        accounts.insert(&place.account);
        accounts.extend(place.parent.as_deref());
        users.extend(place.user.as_deref());
    }
    let mut kept = Vec::new();
    let mut words: Vec<(String, String)> = Vec::new();
    // A group that is called like its only user is that user.
    groups.retain(|group| !users.contains(group) && !accounts.contains(group));
    accounts.retain(|account| !users.contains(account));
    let named: BTreeSet<&str> = cluster.name.as_deref().into_iter().collect();
    // A reservation is mostly called after who has it.
    let reservations: BTreeSet<&str> = (cluster.reservations.iter().map(|held| held.name.as_str()))
        .chain(cluster.nodes.iter().filter_map(|node| node.reservation.as_deref()))
        .chain(cluster.jobs.iter().filter_map(|job| job.reservation.value().map(String::as_str)))
        .filter(|name| !name.is_empty())
        .collect();
    let told = |name: &&str| {
        let is_name =
            |part: &str| users.contains(part) || accounts.contains(part) || groups.contains(part);
        !is_name(name) && name.split(['_', '-', '.']).any(is_name)
    };
    let qos = cluster.qos.iter().map(|qos| qos.name.as_str()).filter(told).collect();
    let queues = cluster.queues.iter().map(|queue| queue.name.as_str()).filter(told).collect();
    for (kind, names) in [
        ("reservation", reservations),
        ("qos", qos),
        ("partition", queues),
        ("user", users),
        ("account", accounts),
        ("group", groups),
        ("cluster", named),
    ] {
        for (index, name) in names.into_iter().enumerate() {
            let lower = name.to_ascii_lowercase();
            if name.is_empty() || MEANT.contains(&lower.as_str()) {
                // Every cluster has these two.
                let everywhere = matches!(name, "" | "root" | "slurm");
                kept.extend((!everywhere).then(|| name.to_owned()));
            } else {
                words.push((name.to_owned(), format!("{kind}{}", index + 1)));
            }
        }
    }
    // Hosts keep their numbers, so that lists of them stay lists.
    let mut hosts: BTreeSet<String> = cluster.nodes.iter().map(|node| node.name.clone()).collect();
    hosts.extend(cluster.identity.host.clone());
    for queue in &cluster.queues {
        if let Allowed::Only(names) = &queue.submit_hosts {
            hosts.extend(text::expand(&names.join(","), 10_000).unwrap_or_default());
        }
    }
    // A domain is one for all: with and without it a host stays the same one.
    let short = |host: &'_ str| -> String { host.split('.').next().unwrap_or_default().to_owned() };
    let mut stems: BTreeSet<String> = BTreeSet::new();
    for host in hosts.iter().map(|host| short(host)).collect::<BTreeSet<_>>() {
        match host.find(|c: char| c.is_ascii_digit()) {
            Some(at) => {
                stems.insert(host[..at].to_owned());
            }
            None => words.push((host, format!("host-{}", words.len() + 1))),
        }
    }
    stems.remove("");
    let stems: Vec<(String, String)> = stems
        .into_iter()
        .enumerate()
        .map(|(index, stem)| (stem, format!("host{}-", letters(index))))
        .collect();
    let renames = Renames::new(&words, &stems);
    let domains = hosts.iter().filter(|host| host.contains('.'));
    let full: Vec<(String, String)> = domains
        .map(|host| (host.clone(), format!("{}.domain", renames.apply(&short(host)))))
        .collect();
    words.extend(full);
    (Renames::new(&words, &stems), kept)
}

/// `a`, `b`, ... `z`, `aa`: a stem must not end in a digit.
fn letters(index: usize) -> String {
    let last = char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    if index < 26 { last.to_string() } else { format!("{}{last}", letters(index / 26 - 1)) }
}
