//! The limits of partitions, of qualities of service and of associations, which every size must stay
//! within; every change within those of partitions.
//!
//! The first two change only with the site's configuration. Those of each cluster are remembered for
//! a day in our own folder, and whoever rests on remembered ones says how old they are. A refusal is
//! never remembered, nor is anything of a cluster whose name is not known. Associations are asked
//! for every time, in one question: those of all accounts, and of one user.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::World;
use super::past::Wanted;
use crate::history::workloads::Workload;
use crate::model::{AccountUse, Caps, History, Limits, Notice, Qos, Rule, Run};
use crate::sched::SchedError;
use crate::sched::slurm::Jobs;
use crate::text;

/// A file in our own folder.
const PARTITIONS: &str = "limits.json";
const QUALITIES: &str = "qos.json";
/// What all qualities of service of a cluster are kept under: they are asked for together.
const ALL: &str = "all";

/// What a cluster said, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Dated<T> {
    asked: Timestamp,
    /// What it said.
    pub(super) value: T,
    /// How old it is, where it was remembered.
    #[serde(skip)]
    age: Option<SignedDuration>,
}

impl<T> Dated<T> {
    /// How old that is, where it is worth telling: of a question that is asked twice in a row the
    /// answers are the same to the byte.
    fn age_of(&self, what: &str) -> Option<Notice> {
        const WORTH_TELLING: i64 = 15;
        let minutes = self.age?.as_mins();
        if minutes < WORTH_TELLING {
            return None;
        }
        let age =
            if minutes < 90 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let text = format!("the limits of {what} were asked for {age} ago");
        Some(Notice::info("limits-remembered", text).hint("--fresh asks again"))
    }
}

impl Dated<Limits> {
    /// How old they are, where that is worth telling.
    pub(super) fn age(&self) -> Option<Notice> {
        self.age_of(&format!("partition {}", self.value.partition))
    }
}

/// The limits of a partition of a cluster: remembered ones, or those that the scheduler names now.
pub(super) fn of(
    world: World<'_>,
    source: &Jobs<'_>,
    cluster: Option<&str>,
    partition: &str,
) -> Result<Dated<Limits>, SchedError> {
    remembered(world, PARTITIONS, cluster, partition, || source.limits(partition))
}

/// The qualities of service of a cluster, all in one question.
pub(super) fn qualities(
    world: World<'_>,
    source: &Jobs<'_>,
    cluster: Option<&str>,
) -> Result<Dated<Vec<Qos>>, SchedError> {
    remembered(world, QUALITIES, cluster, ALL, || source.qualities())
}

fn remembered<T: Clone + Serialize + DeserializeOwned>(
    world: World<'_>,
    file: &str,
    cluster: Option<&str>,
    key: &str,
    ask: impl FnOnce() -> Result<T, SchedError>,
) -> Result<Dated<T>, SchedError> {
    if let Some(dated) = recall(world, file, cluster, key) {
        return Ok(dated);
    }
    let dated = Dated { asked: world.cluster.now(), value: ask()?, age: None };
    keep(world, file, cluster, key, &dated);
    Ok(dated)
}

/// What a file holds, by cluster.
type Kept<T> = BTreeMap<String, BTreeMap<String, Dated<T>>>;

fn lasts(world: World<'_>) -> SignedDuration {
    SignedDuration::from_secs(world.config.settings.scheduler.limits_seconds.into())
}

/// Everything remembered; nothing where that may not be used or cannot be read.
fn kept<T: DeserializeOwned>(world: World<'_>, file: &str) -> Option<Kept<T>> {
    let store = world.store.filter(|_| world.live && !lasts(world).is_zero())?;
    let bytes = store.read(file).ok().flatten().unwrap_or_default();
    Some(serde_json::from_slice(&bytes).unwrap_or_default())
}

fn recall<T: DeserializeOwned>(
    world: World<'_>,
    file: &str,
    cluster: Option<&str>,
    key: &str,
) -> Option<Dated<T>> {
    if world.fresh {
        return None;
    }
    let dated: Dated<T> = kept(world, file)?.remove(cluster?)?.remove(key)?;
    let age = world.cluster.now().duration_since(dated.asked);
    // What was asked in the future was asked by another clock.
    let holds = !age.is_negative() && age < lasts(world);
    holds.then_some(Dated { age: Some(age), ..dated })
}

/// Keeps an answer for the next question. If it cannot be kept it asks again: no harm is done.
fn keep<T: Clone + Serialize + DeserializeOwned>(
    world: World<'_>,
    file: &str,
    cluster: Option<&str>,
    key: &str,
    dated: &Dated<T>,
) {
    let (Some(mut kept), Some(cluster)) = (kept::<T>(world, file), cluster) else { return };
    kept.entry(cluster.to_owned()).or_default().insert(key.to_owned(), dated.clone());
    if let (Some(store), Ok(bytes)) = (world.store, serde_json::to_vec(&kept)) {
        let _ = store.replace(file, &bytes);
    }
}

/// A controller is asked for the limits of at most this many partitions.
const MOST_PARTITIONS: usize = 8;

/// The limits that matter for a number of workloads, each asked for once.
pub(super) struct Ceilings {
    partitions: BTreeMap<String, Limits>,
    qualities: Vec<Qos>,
    places: Vec<AccountUse>,
}

impl Ceilings {
    pub(super) fn ask<'w>(
        world: World<'_>,
        wanted: &Wanted,
        history: &History,
        workloads: impl Iterator<Item = &'w Workload>,
        notices: &mut Vec<Notice>,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let mut names = Vec::new();
        let mut qos: BTreeMap<String, Option<&str>> = BTreeMap::new();
        let mut users = BTreeSet::new();
        for workload in workloads {
            users.extend(workload.user.map(|user| history.names.get(user)));
            let name = history.text(workload.partition);
            let runs = || workload.runs(history);
            // The scheduler at hand is asked, whatever cluster was named.
            let own = runs().find_map(|run| run.cluster);
            let own = own.map(|cluster| history.names.get(cluster));
            let cluster = own.filter(|_| wanted.filter.clusters.is_empty());
            if let Some(last) = last(history, workload) {
                qos.insert(history.text(last.qos).to_owned(), cluster);
            }
            // A list of partitions is what a waiting job asked for.
            if !name.is_empty() && !name.contains(',') && seen.insert(name) {
                names.push((name, cluster));
            }
        }
        // Files may be of another cluster, whose partitions have the same names.
        let backend = (wanted.files.is_empty() || !world.live).then(|| world.backend());
        let source = backend.as_ref().and_then(|backend| backend.jobs.as_ref());
        let mut partitions = BTreeMap::new();
        let mut without: Vec<&str> =
            names.iter().skip(MOST_PARTITIONS).map(|(name, _)| *name).collect();
        for (name, cluster) in names.into_iter().take(MOST_PARTITIONS) {
            match source.and_then(|source| of(world, source, cluster, name).ok()) {
                Some(found) => {
                    notices.extend(found.age());
                    if let Some(own) = &found.value.qos {
                        qos.insert(own.clone(), cluster);
                    }
                    partitions.insert(name.to_owned(), found.value);
                }
                None => without.push(name),
            }
        }
        notices.extend(unknown("partition", &without));
        qos.remove("");
        let mut qualities_found = Vec::new();
        if let (Some(source), Some(cluster)) = (source, qos.values().next().copied()) {
            if let Ok(found) = qualities(world, source, cluster) {
                notices.extend(found.age_of("qualities of service"));
                qualities_found = found.value;
            } else {
                let names: Vec<&str> = qos.keys().map(String::as_str).collect();
                notices.extend(unknown("QOS", &names));
            }
        }
        let places = source.map_or_else(Vec::new, |source| places(world, source, &users, notices));
        Self { partitions, qualities: qualities_found, places }
    }

    /// The limits of a workload's next run: those of its last one's partition and quality of
    /// service.
    pub(super) fn of(&self, history: &History, workload: &Workload) -> Option<Limits> {
        let qos = last(history, workload).map(|run| history.text(run.qos));
        let partition = history.text(workload.partition);
        let bare = || Limits { partition: partition.to_owned(), ..Limits::default() };
        let known = self.partitions.get(partition).cloned();
        let known =
            known.or_else(|| (!self.qualities.is_empty() || !self.places.is_empty()).then(bare))?;
        let account = last(history, workload).map_or("", |run| history.text(run.account));
        let user = history.text(workload.user);
        let places = Rule::of_places(&self.places, account, user, partition);
        Some(known.under(qos, &self.qualities).charged(places))
    }
}

/// Whether any of these limits what one job may ask for.
fn is_limited(places: &[AccountUse]) -> bool {
    let limits = |place: &AccountUse| {
        place.job != Caps::default() || !place.node.is_empty() || !place.limits.tres.is_empty()
    };
    places.iter().any(limits)
}

/// The limits of accounts, and of the one user whose workloads these are: of several users those of
/// the accounts alone.
fn places(
    world: World<'_>,
    source: &Jobs<'_>,
    users: &BTreeSet<&str>,
    notices: &mut Vec<Notice>,
) -> Vec<AccountUse> {
    let caller = world.cluster.caller();
    let user = match users.first() {
        Some(only) if users.len() == 1 => Some((*only).to_owned()),
        Some(_) => caller.name,
        None => None,
    };
    let Some(user) = user else { return Vec::new() };
    match source.places(&user) {
        // A site may set limits and not enforce them.
        Ok(found) if is_limited(&found) && source.enforces_limits() == Some(false) => Vec::new(),
        Ok(found) => {
            if users.len() > 1 {
                let text = "the limits of users' own associations are not checked, those of their \
                            accounts are";
                let hint = "sizing -u NAME checks those of one user";
                notices.push(Notice::info("no-limits", text).hint(hint));
            }
            found
        }
        Err(error) => {
            let text = format!("the limits of associations are not checked: {error}");
            notices.push(Notice::info("no-limits", text));
            Vec::new()
        }
    }
}

fn last<'h>(history: &'h History, workload: &'h Workload) -> Option<&'h Run> {
    workload.runs(history).next_back()
}

fn unknown(what: &str, names: &[&str]) -> Option<Notice> {
    let plural = if what == "QOS" || names.len() == 1 { "" } else { "s" };
    let text = format!(
        "the limits of {what}{plural} {} are unknown: advice is not capped by them",
        text::join(names, "and")
    );
    (!names.is_empty()).then(|| Notice::warning("no-limits", text))
}
