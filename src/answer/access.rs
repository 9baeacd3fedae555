//! Which queues would take a job of the caller's at all? Asked by dry runs of the smallest job.
//!
//! For overviews, which people repeat: answers are kept in our own folder, one file for each cluster
//! that nobody else can read, and used again for a quarter of an hour unless the settings say
//! otherwise; each says how old it is. Where a job is really to be placed, the scheduler is asked
//! anew, never this. Silence is not kept.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::World;
use super::cluster::QueueRow;
use crate::capacity::gates::{Gate, Gates, Kind, Term};
use crate::model::{Cluster, DryRun, Known, Settled, Shape, Span};
use crate::sched::Backend;
use crate::sched::survey::{self, Candidate, Charge};
use crate::text;

/// What one queue says to the smallest job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// When it was asked.
    pub asked_at: Timestamp,
    /// The answer that says most.
    pub answer: DryRun,
    /// How many accounts were not tried.
    pub untried: usize,
    /// Seconds since then, where it was not asked just now.
    #[serde(skip_deserializing)]
    pub age_seconds: Option<i64>,
}

/// What the queues say to the smallest job.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Access {
    /// By queue; one that was not asked, or gave no answer, has none.
    pub queues: BTreeMap<String, Heard>,
    /// Dry runs made for this answer.
    pub asked: usize,
    /// Seconds since the oldest answer that was used again.
    pub oldest_seconds: Option<i64>,
    /// Whether dry runs can be made here.
    pub can_ask: bool,
}

/// What was asked, without the answers: those stand with their queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessSummary {
    /// Dry runs made for this answer.
    pub asked: usize,
    /// Queues whose answer was used again.
    pub reused: usize,
    /// Seconds since the oldest answer that was used again.
    pub oldest_seconds: Option<i64>,
    /// Whether dry runs can be made here.
    pub can_ask: bool,
}

impl Access {
    /// Without the answers.
    pub(super) fn summary(self) -> AccessSummary {
        AccessSummary {
            asked: self.asked,
            reused: self.queues.values().filter(|heard| heard.age_seconds.is_some()).count(),
            oldest_seconds: self.oldest_seconds,
            can_ask: self.can_ask,
        }
    }
}

impl AccessSummary {
    /// In one sentence: how sure what is told about access is, and how old.
    pub fn told(&self) -> String {
        let asked = match self.asked {
            0 => String::new(),
            asked => format!("asked just now by {}", text::count(asked as u64, "dry run")),
        };
        let reused = self.oldest_seconds.map(|seconds| {
            let age =
                if seconds < 60 { format!("{seconds} s") } else { format!("{} min", seconds / 60) };
            format!(
                "of {}, asked up to {age} ago (--fresh asks again)",
                text::count(self.reused as u64, "partition")
            )
        });
        match (asked.is_empty(), reused) {
            (true, None) if self.can_ask => "told by the rules: nothing was left to ask".to_owned(),
            (true, None) => "told by the rules: no dry run is possible here".to_owned(),
            (false, None) => asked,
            (true, Some(reused)) => reused,
            (false, Some(reused)) => format!("{asked}; {reused}"),
        }
    }
}

type Kept = BTreeMap<String, Heard>;

/// Asks these queues, or remembers what they said.
pub fn access(
    world: World<'_>,
    backend: &Backend<'_>,
    cluster: &Cluster,
    candidates: &[Candidate],
) -> Access {
    let mut access = Access { can_ask: backend.probe.is_some(), ..Access::default() };
    let now = world.cluster.now();
    let mut kept = kept(world, cluster).unwrap_or_default();
    if !world.fresh {
        let lasts =
            SignedDuration::from_secs(world.config.settings.scheduler.access_seconds.into());
        for candidate in candidates {
            let Some(heard) = kept.get(&candidate.queue) else { continue };
            let age = now.duration_since(heard.asked_at);
            // What was asked in the future was asked by another clock.
            if !age.is_negative() && age < lasts {
                let heard = Heard { age_seconds: Some(age.as_secs()), ..heard.clone() };
                access.queues.insert(candidate.queue.clone(), heard);
            }
        }
    }
    access.oldest_seconds = access.queues.values().filter_map(|heard| heard.age_seconds).max();
    let unknown: Vec<Candidate> = candidates
        .iter()
        .filter(|candidate| !access.queues.contains_key(&candidate.queue))
        .cloned()
        .collect();
    let Some(probe) = backend.probe.as_ref().filter(|_| !unknown.is_empty()) else {
        return access;
    };
    let survey = survey::survey(probe, &smallest(), &unknown);
    access.asked = survey.asked;
    access.can_ask = survey.can_ask;
    for answered in survey.answers {
        let Some(answer) = answered.best else { continue };
        let is_silence = answer.settled == Settled::NoAnswer;
        let heard = Heard { asked_at: now, answer, untried: answered.untried, age_seconds: None };
        if !is_silence {
            kept.insert(answered.queue.clone(), heard.clone());
        }
        access.queues.insert(answered.queue, heard);
    }
    keep(world, cluster, &kept);
    access
}

/// Asks the queues that are open by their rules, and puts what they say into their rows: a refusal
/// closes, a yes settles what could not be checked.
pub(super) fn confirm(
    world: World<'_>,
    backend: &Backend<'_>,
    cluster: &Cluster,
    gates: &Gates<'_>,
    rows: &mut [QueueRow],
) -> Access {
    let candidates: Vec<Candidate> = rows
        .iter()
        .filter(|row| row.is_usable())
        .filter_map(|row| Some((row, cluster.queue(&row.name)?)))
        .map(|(row, queue)| {
            let ways = gates.ways(queue, None);
            let plain = ways.iter().filter(|way| !way.names_qos);
            let mut charges: Vec<Charge> = Vec::new();
            for way in std::iter::once(&row.way).chain(plain) {
                let charge = Charge {
                    account: way.account.clone().filter(|_| way.names_account),
                    qos: way.qos.clone().filter(|_| way.names_qos),
                };
                if !charges.contains(&charge) {
                    charges.push(charge);
                }
            }
            Candidate { queue: row.name.clone(), charges }
        })
        .collect();
    let access = access(world, backend, cluster, &candidates);
    for row in rows {
        let Some(heard) = access.queues.get(&row.name) else { continue };
        let answer = &heard.answer;
        if answer.is_taken() && row.term == Term::Unchecked {
            row.term = Term::Open;
        }
        let durable = answer.refusal().filter(|refusal| refusal.is_durable());
        if let Some(refusal) = durable.filter(|_| heard.untried == 0) {
            row.term = Term::NoAccess;
            let said = if answer.message.is_empty() { refusal.label() } else { &answer.message };
            row.gates.insert(
                0,
                Gate {
                    code: "DRY_RUN_REFUSED".to_owned(),
                    kind: Kind::Fatal,
                    text: text::masked(&format!("the scheduler refuses the smallest job: {said}")),
                    source: "dry run".to_owned(),
                    lift: None,
                    clears: false,
                },
            );
        }
        row.heard = Some(heard.clone());
    }
    access
}

/// The smallest job that there is.
pub(super) fn smallest() -> Shape {
    Shape {
        nodes: Some((1, None)),
        tasks: Some(1),
        time: Known::Value(Span::seconds(60)),
        ..Shape::default()
    }
}

/// The file of a cluster; `None` where nothing may be kept, or nobody knows of which cluster.
fn file(world: World<'_>, cluster: &Cluster) -> Option<String> {
    let lasts = world.config.settings.scheduler.access_seconds > 0;
    let name = cluster.name.as_deref().filter(|_| world.live && lasts)?;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    plain.then(|| format!("access/{name}.json"))
}

fn kept(world: World<'_>, cluster: &Cluster) -> Option<Kept> {
    let bytes = world.store?.read(&file(world, cluster)?).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// Keeps what was heard. If it cannot be kept the next asks again: no harm is done.
fn keep(world: World<'_>, cluster: &Cluster, kept: &Kept) {
    if let (Some(store), Some(file), Ok(bytes)) =
        (world.store, file(world, cluster), serde_json::to_vec(kept))
    {
        let _ = store.replace(&file, &bytes);
    }
}
