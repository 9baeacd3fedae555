//! What the jobs of one question have in common, and so is asked for once: the script of an array,
//! the limits of a partition.
//!
//! Limits change only with the site's configuration. Those of each cluster are remembered for a day
//! in our own folder, and whoever rests on remembered ones says how old they are. A refusal is
//! never remembered, nor is anything of a cluster whose name is not known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::answer::World;
use crate::model::{History, Job, Limits, Notice, Source};
use crate::sched::{Backend, Filter, SchedError, Users};

use super::surroundings::FoundScript;

/// The file in our own folder.
const FILE: &str = "limits.json";

/// A cluster, as the job's record or its id names it.
type ClusterName = Option<String>;

/// What was asked for already.
pub(in crate::answer) struct Shared<'w> {
    pub(super) world: World<'w>,
    scripts: Mutex<BTreeMap<(ClusterName, u64), Arc<FoundScript>>>,
    limits: Mutex<BTreeMap<(ClusterName, String), Result<Dated, SchedError>>>,
    pasts: Mutex<BTreeMap<PastKey, Option<Arc<History>>>>,
}

/// What runs are asked for by: user, partition, and the name where it has no number in it.
type PastKey = (String, String, Option<String>);

/// Limits, and when the cluster named them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::answer) struct Dated {
    asked: Timestamp,
    limits: Limits,
    /// How old they are, where they were remembered.
    #[serde(skip)]
    age: Option<SignedDuration>,
}

impl Dated {
    /// The limits themselves.
    pub(in crate::answer) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How old they are, where that is worth telling: of a question that is asked twice in a row
    /// the answers are the same to the byte.
    pub(in crate::answer) fn age(&self) -> Option<Notice> {
        const WORTH_TELLING: i64 = 15;
        let minutes = self.age?.as_mins();
        if minutes < WORTH_TELLING {
            return None;
        }
        let age =
            if minutes < 90 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let partition = &self.limits.partition;
        let text = format!("the limits of partition {partition} were asked for {age} ago");
        Some(Notice::info("limits-remembered", text).hint("--fresh asks again"))
    }
}

/// What the file holds: limits by cluster and partition.
type Kept = BTreeMap<String, BTreeMap<String, Dated>>;

impl<'w> Shared<'w> {
    /// Nothing was asked for yet.
    pub(in crate::answer) fn new(world: World<'w>) -> Self {
        Self { world, scripts: Mutex::default(), limits: Mutex::default(), pasts: Mutex::default() }
    }

    /// The batch script of a job; the tasks of an array have one.
    pub(super) fn script(&self, backend: &Backend<'_>, job: &Job) -> Arc<FoundScript> {
        let read = || {
            let source = backend.jobs.as_ref();
            Arc::new(source.map_or_else(|| Err(Vec::new()), |source| source.script(job)))
        };
        let key = (cluster_of(job), job.id.number);
        // Tasks that want it meanwhile wait for the one that asks.
        locked(&self.scripts).entry(key).or_insert_with(read).clone()
    }

    /// The recent runs of a job's user and partition: of its name, a month of them; of a name with a
    /// number in it, which the next run will not have, a week of all. `None` where nobody can be
    /// asked or the answer does not come soon: a change can be sized without them.
    pub(super) fn past(&self, backend: &Backend<'_>, job: &Job) -> Option<Arc<History>> {
        // Accounting that did not even know the job does not know its past.
        let source = backend.jobs.as_ref().filter(|_| job.source == Source::Accounting)?;
        let user = job.uid.get().map(|uid| uid.to_string()).or_else(|| job.user.clone())?;
        let partition = job.partition.clone()?;
        let numbered = job.name.bytes().any(|byte| byte.is_ascii_digit()) || job.name.contains(',');
        let name = (!numbered && !job.name.is_empty()).then(|| job.name.clone());
        let days = if numbered { 7 } else { 30 };
        let ask = || {
            let now = self.world.cluster.now();
            let until = Timestamp::from_second(now.as_second()).ok()?;
            let filter = Filter {
                users: Users::Named(vec![user.clone()]),
                states: Vec::new(),
                accounts: Vec::new(),
                partitions: vec![partition.clone()],
                qos: Vec::new(),
                clusters: job.id.cluster.iter().cloned().collect(),
                names: name.iter().cloned().collect(),
                since: until.checked_sub(SignedDuration::from_hours(24 * days)).ok()?,
                until,
            };
            source.begun(&filter).ok().map(Arc::new)
        };
        let key = (user.clone(), partition.clone(), name.clone());
        locked(&self.pasts).entry(key).or_insert_with(ask).clone()
    }

    /// The limits of a job's partition; `None` where no scheduler can be asked.
    pub(super) fn limits(
        &self,
        backend: &Backend<'_>,
        job: &Job,
        partition: &str,
    ) -> Option<Result<Dated, SchedError>> {
        let source = backend.jobs.as_ref()?;
        let cluster = cluster_of(job);
        let mut known = locked(&self.limits);
        let key = (cluster.clone(), partition.to_owned());
        let ask = || {
            if let Some(dated) = self.recall(cluster.as_deref(), partition) {
                return Ok(dated);
            }
            let limits = source.limits(partition)?;
            let dated = Dated { asked: self.world.cluster.now(), limits, age: None };
            self.keep(cluster.as_deref(), partition, &dated);
            Ok(dated)
        };
        Some(known.entry(key).or_insert_with(ask).clone())
    }

    fn lasts(&self) -> SignedDuration {
        SignedDuration::from_secs(self.world.config.settings.scheduler.limits_seconds.into())
    }

    /// Everything remembered; nothing where that may not be used or cannot be read.
    fn kept(&self) -> Option<Kept> {
        let store = self.world.store.filter(|_| self.world.live && !self.lasts().is_zero())?;
        let bytes = store.read(FILE).ok().flatten().unwrap_or_default();
        Some(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn recall(&self, cluster: Option<&str>, partition: &str) -> Option<Dated> {
        if self.world.fresh {
            return None;
        }
        let dated = self.kept()?.remove(cluster?)?.remove(partition)?;
        let age = self.world.cluster.now().duration_since(dated.asked);
        // What was asked in the future was asked by another clock.
        let holds = !age.is_negative() && age < self.lasts();
        holds.then_some(Dated { age: Some(age), ..dated })
    }

    /// Keeps limits for the next question. If they cannot be kept it asks again: no harm is done.
    fn keep(&self, cluster: Option<&str>, partition: &str, dated: &Dated) {
        let (Some(mut kept), Some(cluster)) = (self.kept(), cluster) else { return };
        let partitions = kept.entry(cluster.to_owned()).or_default();
        partitions.insert(partition.to_owned(), dated.clone());
        if let (Some(store), Ok(bytes)) = (self.world.store, serde_json::to_vec(&kept)) {
            let _ = store.replace(FILE, &bytes);
        }
    }
}

fn cluster_of(job: &Job) -> ClusterName {
    job.cluster.clone().or_else(|| job.id.cluster.clone())
}

/// A value under a lock. Whoever panicked with it left a whole value behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
