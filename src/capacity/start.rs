//! When a job that cannot start now could: the cluster played forward over the ends of its jobs.
//!
//! Each job gives back, on each of its nodes, its cores, memory and devices at the end of its time
//! limit; jobs that wait are placed first ([`waiting`]). The first moment at which the shape fits and
//! delays none of them is told as our estimate: jobs that end early make it sooner, new ones of higher
//! priority later. How a job's resources lie on its nodes is not in what was read, so each node is
//! taken to hold an even share.

pub mod licences;
pub mod waiting;

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::fit::{Demand, Host, Space};
use crate::model::{BaseState, Bytes, Cluster, QueuedJob, Span};
use crate::text;

/// No job has more nodes than the largest cluster.
pub(crate) const MOST_HOSTS: usize = 262_144;

/// What running jobs give back, and when.
#[derive(Debug, Default)]
pub struct Timeline {
    /// By the moment: the nodes, by their place in [`Cluster::nodes`], and what comes free on each.
    releases: BTreeMap<Timestamp, Vec<(usize, Share)>>,
    /// By the place of a node: what jobs that wait will have of it.
    claims: HashMap<usize, Vec<Claim>>,
    /// Running jobs whose end, nodes or resources are not known.
    pub unknown: usize,
}

/// What one job holds of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) cpus: u64,
    memory: Bytes,
    /// By name and type.
    devices: Vec<(String, Option<String>, u64)>,
}

/// What a job that waits will have of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    from: Timestamp,
    until: Timestamp,
    share: Share,
}

/// Time in which a node is kept for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

impl Timeline {
    /// What the running jobs of a cluster, or some of them, will give back.
    pub fn new(cluster: &Cluster, counts: impl Fn(&QueuedJob) -> bool) -> Self {
        let places: BTreeMap<&str, usize> =
            cluster.nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
        let mut timeline = Self::default();
        for job in &cluster.jobs {
            if !holds_nodes(job) || !counts(job) {
                continue;
            }
            let end = job.end.get();
            let list = job.node_list.as_deref().unwrap_or_default();
            let hosts = text::expand(list, MOST_HOSTS).unwrap_or_default();
            let (Some(end), false) = (end, hosts.is_empty()) else {
                timeline.unknown += 1;
                continue;
            };
            // What is over its time is ended any moment.
            let end = end.max(cluster.taken_at);
            let share = share(job, hosts.len() as u64);
            let nodes = hosts.iter().filter_map(|host| places.get(host.as_str()));
            let releases = timeline.releases.entry(end).or_default();
            releases.extend(nodes.map(|node| (*node, share.clone())));
        }
        timeline
    }

    /// The first moment from `now` on, but not before some moment, at which the shape fits on these
    /// hosts, each named by its place in [`Cluster::nodes`] and with the times in which it is closed.
    pub fn earliest(
        &self,
        demand: &Demand<'_>,
        hosts: &[(usize, &Host<'_>, &[Closed])],
        (now, not_before): (Timestamp, Timestamp),
        length: Option<Span>,
    ) -> Option<Timestamp> {
        self.place(demand, hosts, (now, not_before), length).map(|(moment, _)| moment)
    }

    /// Whether jobs that wait will have something of one of these nodes.
    pub fn is_claimed(&self, mut places: impl Iterator<Item = usize>) -> bool {
        places.any(|place| self.claims.contains_key(&place))
    }

    /// The same with the nodes that it would take, the roomiest; not before some moment.
    fn place(
        &self,
        demand: &Demand<'_>,
        hosts: &[(usize, &Host<'_>, &[Closed])],
        (now, not_before): (Timestamp, Timestamp),
        length: Option<Span>,
    ) -> Option<(Timestamp, Vec<usize>)> {
        let index: BTreeMap<usize, usize> =
            hosts.iter().enumerate().map(|(at, (place, ..))| (*place, at)).collect();
        let mut free: Vec<Space> = hosts.iter().map(|(_, host, _)| host.free.clone()).collect();
        let tasks_at = |free: &[Space], moment: Timestamp, at: usize| {
            let (place, host, closed) = &hosts[at];
            if !is_open(closed, moment, length) {
                return 0;
            }
            let left = self.left(*place, host, &free[at], moment, length);
            demand.tasks(host, left.as_ref().unwrap_or(&free[at]), false)
        };
        let mut tasks: Vec<u64> = (0..hosts.len()).map(|at| tasks_at(&free, now, at)).collect();
        // A moment matters when a job ends, and when a host opens, or is closed before a job that
        // starts then would end.
        let mut moments: BTreeMap<Timestamp, Vec<usize>> =
            BTreeMap::from([(now, Vec::new()), (not_before, (0..hosts.len()).collect())]);
        for (moment, released) in self.releases.range(now..) {
            if released.iter().any(|(place, _)| index.contains_key(place)) {
                moments.entry(*moment).or_default();
            }
        }
        for (at, (place, _, closed)) in hosts.iter().enumerate() {
            let claims = self.claims.get(place).into_iter().flatten();
            let claims = claims.map(|claim| Closed { from: claim.from, until: claim.until });
            for time in closed.iter().copied().chain(claims) {
                let last = length.and_then(|length| earlier(time.from, length));
                for moment in [Some(time.until), last].into_iter().flatten() {
                    if moment >= now {
                        moments.entry(moment).or_default().push(at);
                    }
                }
            }
        }
        let mut sum: u64 = tasks.iter().sum();
        let mut fitting = tasks.iter().filter(|tasks| **tasks > 0).count() as u64;
        let nodes = if demand.shape.has_fixed_nodes() { demand.shape.least_nodes() } else { 1 };
        for (moment, mut touched) in moments {
            for (place, share) in self.releases.get(&moment).into_iter().flatten() {
                let Some(&at) = index.get(place) else { continue };
                release(&mut free[at], hosts[at].1, share);
                touched.push(at);
            }
            for at in touched {
                let count = tasks_at(&free, moment, at);
                sum = sum - tasks[at] + count;
                fitting = fitting - u64::from(tasks[at] > 0) + u64::from(count > 0);
                tasks[at] = count;
            }
            // Most moments change too little to look at every host.
            if moment < not_before || fitting < nodes || sum < demand.shape.all_tasks() {
                continue;
            }
            let spaces: Vec<(&Host<'_>, &Space)> = hosts
                .iter()
                .zip(&free)
                .zip(&tasks)
                .filter(|(_, tasks)| **tasks > 0)
                .map(|(((_, host, _), free), _)| (*host, free))
                .collect();
            if demand.enough(&tasks) && demand.enough_gpus(&spaces) {
                // The roomiest: a part of the job on each of the others would not be all of it.
                let mut fitting: Vec<(usize, u64)> =
                    hosts.iter().zip(&tasks).map(|((place, ..), tasks)| (*place, *tasks)).collect();
                fitting.sort_by_key(|(_, tasks)| std::cmp::Reverse(*tasks));
                fitting.truncate(usize::try_from(nodes).unwrap_or(1));
                return Some((moment, fitting.into_iter().map(|(place, _)| place).collect()));
            }
        }
        None
    }
}

impl Timeline {
    /// What is left of a node while a job runs on it, where jobs that wait will have a part.
    fn left(
        &self,
        place: usize,
        host: &Host<'_>,
        free: &Space,
        from: Timestamp,
        length: Option<Span>,
    ) -> Option<Space> {
        let claims = self.claims.get(&place)?;
        let mut left = free.clone();
        for claim in claims {
            let time = [Closed { from: claim.from, until: claim.until }];
            if !is_open(&time, from, length) {
                take(&mut left, host, &claim.share);
            }
        }
        Some(left)
    }
}

/// Takes a share away; of what is not there, nothing is left.
fn take(free: &mut Space, host: &Host<'_>, share: &Share) {
    free.cpus = free.cpus.saturating_sub(share.cpus);
    if let Some(memory) = free.memory {
        free.memory = Some(Bytes(memory.0.saturating_sub(share.memory.0)));
    }
    for (name, kind, count) in &share.devices {
        let mut left = *count;
        for (index, device) in host.devices.iter().enumerate() {
            let matches = device.name == name
                && kind.as_deref().is_none_or(|kind| {
                    device.kind.is_some_and(|known| known.eq_ignore_ascii_case(kind))
                });
            if matches {
                let taken = left.min(free.devices[index]);
                free.devices[index] -= taken;
                left -= taken;
            }
        }
    }
}

/// A moment so much earlier, and just past it: a job that starts then does not end in time.
fn earlier(moment: Timestamp, length: Span) -> Option<Timestamp> {
    let seconds = i64::try_from(length.as_seconds()).ok()?;
    moment.checked_sub(SignedDuration::from_secs(seconds.saturating_sub(1))).ok()
}

/// So much later; the end of time where it is not known how much.
fn after(from: Timestamp, length: Option<Span>) -> Timestamp {
    length
        .and_then(|length| i64::try_from(length.as_seconds()).ok())
        .and_then(|seconds| from.checked_add(SignedDuration::from_secs(seconds)).ok())
        .unwrap_or(Timestamp::MAX)
}

/// Whether a job that starts at a moment ends before the host is closed. One without a known length
/// is taken to have none.
pub fn is_open(closed: &[Closed], moment: Timestamp, length: Option<Span>) -> bool {
    let end = after(moment, length);
    !closed.iter().any(|time| time.until > moment && time.from < end)
}

fn holds_nodes(job: &QueuedJob) -> bool {
    matches!(job.state.base, BaseState::Running | BaseState::Suspended)
}

/// What a job has of each of so many nodes.
pub(super) fn share(job: &QueuedJob, nodes: u64) -> Share {
    let each = |count: u64| count / nodes.max(1);
    let devices = job.tres.devices().into_iter();
    let devices =
        devices.map(|(name, kind, count)| (name.to_owned(), kind.map(str::to_owned), each(count)));
    Share {
        cpus: job.tres.count("cpu").or(job.cpus.get()).map_or(0, each),
        memory: Bytes(job.tres.memory().map_or(0, |bytes| each(bytes.0))),
        devices: devices.collect(),
    }
}

/// Gives a share back, never beyond what the node has.
fn release(free: &mut Space, host: &Host<'_>, share: &Share) {
    free.cpus = free.cpus.saturating_add(share.cpus).min(host.whole.cpus);
    if let (Some(memory), Some(whole)) = (free.memory, host.whole.memory) {
        free.memory = Some(Bytes(memory.0.saturating_add(share.memory.0)).min(whole));
    }
    for (name, kind, count) in &share.devices {
        let typed_host = host.devices.iter().any(|d| d.name == name && d.kind.is_some());
        let mut left = *count;
        for (index, device) in host.devices.iter().enumerate() {
            let matches = device.name == name
                && kind.as_deref().is_none_or(|kind| {
                    device.kind.is_none_or(|known| known.eq_ignore_ascii_case(kind))
                });
            if matches && (kind.is_none() || !typed_host || device.kind.is_some()) {
                let room = host.whole.devices[index].saturating_sub(free.devices[index]);
                let back = left.min(room);
                free.devices[index] += back;
                left -= back;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit::tests::{cluster, gpu_node, host, shape};
    use super::*;
    use crate::hardware::Catalogue;
    use crate::model::{Known, State, Tres};

    fn job(id: &str, nodes: &str, tres: &str, end: i64) -> QueuedJob {
        QueuedJob {
            id: id.parse().expect("an id"),
            name: String::new(),
            user: None,
            account: None,
            partition: Some("gpu".to_owned()),
            qos: None,
            state: State::parse("RUNNING"),
            node_list: Some(nodes.to_owned()),
            nodes: Known::NotGathered,
            cpus: Known::NotGathered,
            tres: Tres::parse(tres),
            start: Known::NotGathered,
            end: Timestamp::from_second(end).ok().into(),
            limit: Known::NotGathered,
            reason: None,
            priority: Known::NotGathered,
            licences: Vec::new(),
            reservation: Known::NotGathered,
            wanted_nodes: None,
            sharing: None,
        }
    }

    fn waits(job: QueuedJob, seconds: u64, priority: u64) -> QueuedJob {
        QueuedJob {
            state: State::parse("PENDING"),
            node_list: None,
            nodes: Known::Value(1),
            end: Known::NotGathered,
            limit: Known::Value(Span::seconds(seconds)),
            reason: Some("Priority".to_owned()),
            priority: Known::Value(priority),
            ..job
        }
    }

    /// One node of 16 cores, all held until 1000 s. Two jobs wait for all of it, of 600 s and 300 s,
    /// so a third of that size begins at 1000 + 600 + 300; one that waits for something else holds
    /// nobody up. A job of 4 cores goes beside one of 12 that is over before the next begins.
    #[test]
    fn jobs_that_wait_come_first_and_are_not_delayed() {
        let cluster = cluster(vec![gpu_node("g1", 16, "a100", 4, 16, 0)]);
        let all = "cpu=16,mem=1000M";
        let running = job("1", "g1", all, 1000);
        let mut held = waits(job("5", "", all, 0), 9000, 9);
        held.reason = Some("Dependency".to_owned());
        let start = |waiting: Vec<QueuedJob>, options: &[(&str, &str)]| {
            let mut cluster = cluster.clone();
            cluster.jobs = std::iter::once(running.clone()).chain(waiting).collect();
            let catalogue = Catalogue::built_in().expect("sound");
            let host = host(&cluster.nodes[0], &cluster, &catalogue);
            let mut timeline = Timeline::new(&cluster, |_| true);
            cluster.taken_at = Timestamp::from_second(500).expect("a time");
            timeline.seat(&cluster, |_| true, |_, _| vec![(0, &host, &[])]);
            let shape = shape(options);
            let demand = Demand::new(&shape, &cluster, &cluster.queues[0]);
            let hosts = [(0, &host, &[][..])];
            timeline
                .earliest(&demand, &hosts, (cluster.taken_at, cluster.taken_at), shape.time.get())
                .map(Timestamp::as_second)
        };
        let whole = [("ntasks", "16"), ("nodes", "1"), ("mem", "100M"), ("time", "5")];
        let two = vec![waits(job("2", "", all, 0), 600, 5), waits(job("3", "", all, 0), 300, 7)];
        assert_eq!(start(Vec::new(), &whole), Some(1000));
        assert_eq!(start(two, &whole), Some(1900));
        assert_eq!(start(vec![held], &whole), Some(1000));
        // One that the scheduler passed over, while it expects one behind it, holds nobody up.
        let mut told = waits(job("3", "", all, 0), 300, 4);
        told.start = Timestamp::from_second(1000).ok().into();
        let passed = vec![waits(job("2", "", all, 0), 600, 5), told];
        assert_eq!(start(passed, &whole), Some(1300));
        // Not so one of another queue, whose turn does not depend on this one's.
        let mut elsewhere = waits(job("3", "", all, 0), 300, 4);
        elsewhere.partition = Some("short".to_owned());
        elsewhere.start = Timestamp::from_second(1000).ok().into();
        let new = vec![waits(job("2", "", all, 0), 600, 5), elsewhere];
        assert_eq!(start(new, &whole), Some(1600));
        // A real 22.05 words it so where any node of the queue is down, and starts it all the same.
        let mut worded = waits(job("2", "", all, 0), 600, 5);
        worded.reason = Some(
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority \
             partitions"
                .to_owned(),
        );
        assert_eq!(start(vec![worded.clone()], &whole), Some(1000));
        worded.start = Timestamp::from_second(1000).ok().into();
        assert_eq!(start(vec![worded], &whole), Some(1600));
        let most = vec![
            waits(job("2", "", "cpu=12,mem=1000M", 0), 600, 5),
            waits(job("3", "", all, 0), 300, 4),
        ];
        let four = |time| [("ntasks", "4"), ("nodes", "1"), ("mem", "100M"), ("time", time)];
        assert_eq!(start(most.clone(), &four("10")), Some(1000));
        assert_eq!(start(most, &four("11")), Some(1900));
    }

    /// Two nodes are wanted, and of three one has only half its cores: the job waits for the other
    /// two, the first of which is free from 1000 s on and the second from 2000 s; so a third job has
    /// to be over before 2000 s there, and may stay on the node with half its cores.
    #[test]
    fn a_job_that_waits_takes_nodes_that_hold_all_of_it() {
        let nodes = [("n1", 8), ("n2", 16), ("n3", 16)];
        let nodes = nodes.map(|(name, used)| gpu_node(name, 16, "v100", 0, used, 0)).to_vec();
        let mut cluster = cluster(nodes);
        cluster.jobs = vec![
            job("1", "n2", "cpu=16,mem=100M", 1000),
            job("2", "n3", "cpu=16,mem=100M", 2000),
            QueuedJob {
                nodes: Known::Value(2),
                ..waits(job("3", "", "cpu=32,mem=100M", 0), 600, 5)
            },
        ];
        cluster.taken_at = Timestamp::from_second(500).expect("a time");
        let catalogue = Catalogue::built_in().expect("sound");
        let hosts: Vec<_> =
            cluster.nodes.iter().map(|node| host(node, &cluster, &catalogue)).collect();
        let all: waiting::Hosts<'_> =
            hosts.iter().enumerate().map(|(at, host)| (at, host, &[][..])).collect();
        let mut timeline = Timeline::new(&cluster, |_| true);
        timeline.seat(&cluster, |_| true, |_, _| all.clone());
        let start = |place: usize, time: &str| {
            let shape = shape(&[("ntasks", "8"), ("nodes", "1"), ("mem", "50M"), ("time", time)]);
            let demand = Demand::new(&shape, &cluster, &cluster.queues[0]);
            let at = timeline.earliest(
                &demand,
                &all[place..=place],
                (cluster.taken_at, cluster.taken_at),
                shape.time.get(),
            );
            at.map(Timestamp::as_second)
        };
        assert_eq!(
            (start(0, "90"), start(1, "10"), start(1, "20")),
            (Some(500), Some(1000), Some(2600))
        );
        assert_eq!(start(2, "1"), Some(2600));
    }

    /// A node of 16 cores and four GPUs has three jobs that end one after the other: a shape that
    /// needs two GPUs starts when the second ends, not when the last does.
    #[test]
    fn a_job_starts_when_enough_has_come_free_and_not_when_all_has() {
        let mut cluster = cluster(vec![gpu_node("g1", 16, "a100", 4, 16, 4)]);
        let mib = "mem=1000M";
        cluster.jobs = vec![
            job("1", "g1", &format!("cpu=4,{mib},gres/gpu=1,gres/gpu:a100=1"), 1000),
            job("2", "g1", &format!("cpu=8,{mib},gres/gpu=1,gres/gpu:a100=1"), 2000),
            job("3", "g1", &format!("cpu=4,{mib},gres/gpu=2,gres/gpu:a100=2"), 9000),
        ];
        let at = |options: &[(&str, &str)], closed: Vec<Closed>| {
            let catalogue = Catalogue::built_in().expect("sound");
            let shape = shape(options);
            let queue = &cluster.queues[0];
            let demand = Demand::new(&shape, &cluster, queue);
            let host = host(&cluster.nodes[0], &cluster, &catalogue);
            let timeline = Timeline::new(&cluster, |_| true);
            let length = shape.time.get();
            let hosts = [(0, &host, closed.as_slice())];
            let now = Timestamp::from_second(500).expect("a time");
            timeline.earliest(&demand, &hosts, (now, now), length).map(Timestamp::as_second)
        };
        let memory = ("mem", "100M");
        assert_eq!(at(&[("gres", "gpu:a100:2"), memory], vec![]), Some(2000));
        assert_eq!(at(&[("cpus-per-task", "4"), memory], vec![]), Some(1000));
        assert_eq!(at(&[("gres", "gpu:4"), memory], vec![]), Some(9000));
        assert_eq!(at(&[("gres", "gpu:5"), memory], vec![]), None);
        // Ten minutes do not go in before a maintenance at 2100 s; a quarter of a minute does.
        let second = |second| Timestamp::from_second(second).expect("a time");
        let closed = vec![Closed { from: second(2100), until: second(5000) }];
        let two = ("gres", "gpu:2");
        assert_eq!(at(&[two, memory, ("time", "10")], closed.clone()), Some(5000));
        assert_eq!(at(&[two, memory, ("time", "0:15")], closed), Some(2000));
    }

    #[test]
    fn a_job_of_several_nodes_gives_back_on_each() {
        let nodes = ["n1", "n2"].map(|name| gpu_node(name, 8, "v100", 0, 8, 0)).to_vec();
        let mut cluster = cluster(nodes);
        cluster.jobs =
            vec![job("1", "n[1-2]", "cpu=16,mem=2000M", 700), job("2", "n9", "cpu=1", 800)];
        let timeline = Timeline::new(&cluster, |_| true);
        let shares: Vec<u64> =
            timeline.releases.values().flatten().map(|(_, share)| share.cpus).collect();
        assert_eq!(shares, [8, 8]);
        // The end is not known: it is counted and never taken for now.
        cluster.jobs[0].end = Known::NotGathered;
        assert_eq!(Timeline::new(&cluster, |_| true).unknown, 1);
    }
}
