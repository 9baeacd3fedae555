//! What the jobs of one question have in common, and so is asked for once: the script of an array,
//! the limits of a partition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::answer::World;
use crate::answer::limits::{self, Dated};
use crate::model::{Cluster, History, Job, Limits, Notice, Qos, Source};
use crate::sched::{Backend, Filter, SchedError, Users};

use super::surroundings::FoundScript;

/// A cluster, as the job's record or its id names it.
type ClusterName = Option<String>;

/// What a cluster said, or why it did not.
type Answer<T> = Result<Dated<T>, SchedError>;

/// What was asked for already.
pub(in crate::answer) struct Shared<'w> {
    pub(super) world: World<'w>,
    scripts: Mutex<BTreeMap<(ClusterName, u64), Arc<FoundScript>>>,
    limits: Mutex<BTreeMap<(ClusterName, String), Answer<Limits>>>,
    qualities: Mutex<BTreeMap<ClusterName, Answer<Vec<Qos>>>>,
    pasts: Mutex<BTreeMap<PastKey, Option<Arc<History>>>>,
    rules: Mutex<BTreeMap<String, Option<Arc<Cluster>>>>,
}

/// What runs are asked for by: user, partition, and the name where it has no number in it.
type PastKey = (String, String, Option<String>);

impl<'w> Shared<'w> {
    /// Nothing was asked for yet.
    pub(in crate::answer) fn new(world: World<'w>) -> Self {
        Self {
            world,
            scripts: Mutex::default(),
            limits: Mutex::default(),
            qualities: Mutex::default(),
            pasts: Mutex::default(),
            rules: Mutex::default(),
        }
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

    /// The rules that hold back jobs of one's owner; `None` where they cannot be read.
    pub(super) fn rules(&self, backend: &Backend<'_>, job: &Job) -> Option<Arc<Cluster>> {
        // The clients name the rules of the cluster at hand.
        let source = backend.nodes.as_ref().filter(|_| job.id.cluster.is_none())?;
        let user = job.user.clone()?;
        let ask = || source.rules(&user).ok().map(Arc::new);
        locked(&self.rules).entry(user.clone()).or_insert_with(ask).clone()
    }

    /// The limits of a job's partition and quality of service, with what to say of them; `None`
    /// where no scheduler can be asked.
    pub(super) fn limits(
        &self,
        backend: &Backend<'_>,
        job: &Job,
        partition: &str,
    ) -> Option<Result<(Limits, Vec<Notice>), SchedError>> {
        let source = backend.jobs.as_ref()?;
        let cluster = cluster_of(job);
        let key = (cluster.clone(), partition.to_owned());
        let ask = || limits::of(self.world, source, cluster.as_deref(), partition);
        let found = locked(&self.limits).entry(key).or_insert_with(ask).clone();
        Some(found.map(|found| {
            let mut notices: Vec<Notice> = found.age().into_iter().collect();
            let own = job.qos.as_deref().or(found.value.qos.as_deref());
            let Some(own) = own else { return (found.value, notices) };
            let ask = || limits::qualities(self.world, source, cluster.as_deref());
            match locked(&self.qualities).entry(cluster.clone()).or_insert_with(ask) {
                Ok(all) => (found.value.under(job.qos.as_deref(), &all.value), notices),
                Err(error) => {
                    notices.extend(no_qualities(own, error));
                    (found.value, notices)
                }
            }
        }))
    }
}

/// A recording of an older question holds no answer, and says no more than that.
fn no_qualities(name: &str, error: &SchedError) -> Option<Notice> {
    let not_kept = matches!(error, SchedError::NotRecorded { .. } | SchedError::NotInDemo(_));
    let text =
        format!("the limits of QOS {name} are unknown ({error}): the change is not capped by them");
    (!not_kept).then(|| Notice::warning("no-limits", text))
}

fn cluster_of(job: &Job) -> ClusterName {
    job.cluster.clone().or_else(|| job.id.cluster.clone())
}

/// A value under a lock. Whoever panicked with it left a whole value behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
