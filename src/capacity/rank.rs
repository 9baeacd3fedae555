//! Which queues can run a job of a shape, best first.
//!
//! Three witnesses are heard of each queue: its rules ([`super::gates`]), its nodes ([`super::fit`])
//! and, where it was asked, the scheduler's dry run. `RUN NOW` needs all three to say so, and never
//! follows a refusal, whatever its words. A dry run's yes alone proves nothing: schedulers name a
//! start for queues that are down and limits that are exceeded.

mod placement;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::fit::{Demand, Hardware, Host, Space};
use super::free::{Class, Free, Frees};
use super::gates::{self, Gates, Kind};
use super::reserved;
use super::start::{Closed, Timeline, is_open};
use crate::hardware::{Catalogue, Device};
use crate::model::{Cluster, DryRun, Queue, Refusal, Settled, Shape, Span};
use crate::text;

pub use placement::{Asked, Fit, Judged, Placement, Source, Start, Verdict, sort};

/// A start so soon is now.
const SOON: SignedDuration = SignedDuration::from_secs(120);
/// No reservation has more nodes than a cluster.
const MOST_HOSTS: usize = 262_144;

/// A cluster, ready to be asked about shapes.
pub struct Look<'c> {
    cluster: &'c Cluster,
    gates: &'c Gates<'c>,
    pub(super) hosts: Vec<Host<'c>>,
    /// By the place of a node: when it is kept for others.
    closed: Vec<Vec<Closed>>,
    timeline: OnceCell<Timeline>,
}

impl<'c> Look<'c> {
    /// Gets ready.
    pub fn new(
        cluster: &'c Cluster,
        frees: &Frees<'c>,
        gates: &'c Gates<'c>,
        catalogue: &'c Catalogue,
    ) -> Self {
        let mut known: HashMap<(Option<&str>, &[String]), Device<'c>> = HashMap::new();
        let mut hosts = Vec::with_capacity(cluster.nodes.len());
        for (node, free) in cluster.nodes.iter().zip(&frees.nodes) {
            let mut host = Host::new(node, &cluster.controller, |kind| {
                let key = (kind, &*node.features);
                let identify = || {
                    let features: Vec<&str> = node.features.iter().map(String::as_str).collect();
                    catalogue.identify(kind, &features)
                };
                known.entry(key).or_insert_with(identify).clone()
            });
            // Cores that a reservation keeps are not free; what the node does not tell, neither.
            if free.class.gives_now() {
                host.free.cpus = host.free.cpus.min(free.cpus.get().unwrap_or(0));
            }
            hosts.push(host);
        }
        let closed = closed(cluster, frees);
        Self { cluster, gates, hosts, closed, timeline: OnceCell::new() }
    }

    /// Every queue for a shape, before the scheduler is asked.
    pub fn judge(&self, shape: &Shape) -> Vec<Judged<'c>> {
        let queues = self.cluster.queues.iter();
        let wanted = queues
            .filter(|queue| shape.partitions.is_empty() || shape.partitions.contains(&queue.name));
        wanted.filter_map(|queue| self.judge_one(&queue.name, shape)).collect()
    }

    /// The queues.
    pub fn queues(&self) -> impl Iterator<Item = &'c Queue> {
        self.cluster.queues.iter()
    }

    /// What stands between the caller and a queue.
    pub fn access(&self, queue: &Queue, shape: &Shape) -> gates::Access {
        self.gates.access(queue, Some(shape))
    }

    /// One queue for a shape, before the scheduler is asked.
    pub fn judge_one(&self, queue: &str, shape: &Shape) -> Option<Judged<'c>> {
        let queue = self.cluster.queue(queue)?;
        let access = self.gates.access(queue, Some(shape));
        Some(Judged { queue, access, fit: self.fit(queue, shape) })
    }

    /// How the nodes of the queue of that name suit a shape.
    pub fn fit_of(&self, queue: &str, shape: &Shape) -> Option<Fit> {
        self.cluster.queue(queue).map(|queue| self.fit(queue, shape))
    }

    /// The time limits that the rules of a queue and the reservations of its nodes leave.
    pub fn spare_times(&self, queue: &Queue, shape: &Shape) -> Vec<Span> {
        let way = self.access(queue, shape).way;
        let longest = self.gates.longest(queue, &way).0.get();
        let nodes = self.gates.nodes(queue).iter();
        let until = nodes.flat_map(|free| &self.closed[free.place]).filter_map(|time| {
            let left = time.from.duration_since(self.cluster.taken_at).as_secs();
            // A whole minute before it begins.
            Some(Span::seconds(u64::try_from(left).ok()? / 60 * 60))
        });
        let mut times: Vec<Span> = longest.into_iter().chain(until).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// How the nodes of a queue suit a shape.
    pub fn fit(&self, queue: &'c Queue, shape: &Shape) -> Fit {
        let demand = Demand::new(shape, self.cluster, queue);
        let length = length(queue, shape);
        let mut fit = Fit { needed: shape.least_nodes(), ..Fit::default() };
        let (mut now, mut ever) = (Vec::new(), Vec::new());
        let (mut now_spaces, mut ever_spaces): (Vec<(&Host<'_>, &Space)>, Vec<_>) =
            (Vec::new(), Vec::new());
        for free in self.gates.nodes(queue) {
            let host = &self.hosts[free.place];
            fit.considered += 1;
            match demand.hardware(host) {
                Hardware::Right => fit.right += 1,
                Hardware::Unverified => {
                    fit.unverified += 1;
                    continue;
                }
                Hardware::Wrong(why) => {
                    *fit.wrong.entry(why).or_default() += 1;
                    continue;
                }
            }
            for device in host.devices.iter().filter(|device| device.name == "gpu") {
                *fit.gpus.entry(device.device.name()).or_default() += 1;
            }
            if comes_back(free.class) {
                ever.push(demand.tasks(host, &host.whole, false));
                ever_spaces.push((host, &host.whole));
            }
            let tasks = self.tasks_now(free, &demand, length, shape);
            match tasks {
                Ok(tasks) => {
                    fit.fitting += 1;
                    now.push(tasks);
                    now_spaces.push((host, &host.free));
                }
                Err(word) => *fit.busy.entry(word).or_default() += 1,
            }
        }
        fit.now = demand.enough(&now) && demand.enough_gpus(&now_spaces);
        fit.ever = demand.enough(&ever) && demand.enough_gpus(&ever_spaces);
        fit
    }

    /// The tasks that go on a node now, or where it stands that none do.
    fn tasks_now(
        &self,
        free: &Free<'_>,
        demand: &Demand<'_>,
        length: Option<Span>,
        shape: &Shape,
    ) -> Result<u64, &'static str> {
        let named = shape.reservation.as_deref();
        let stands = match free.class {
            // Less memory than the default may be enough for less.
            Class::Idle | Class::Room | Class::MemoryExhausted => named.is_none(),
            Class::ReservedForCaller => named.is_some() && named == free.reservation,
            _ => false,
        };
        if !stands {
            return Err(if named.is_some() { "not in the reservation" } else { free.class.word() });
        }
        if named.is_none() && !is_open(&self.closed[free.place], self.cluster.taken_at, length) {
            return Err("reserved before it would end");
        }
        let host = &self.hosts[free.place];
        match demand.tasks(host, &host.free, false) {
            0 => Err(demand.what_is_taken(host)),
            tasks => Ok(tasks),
        }
    }

    /// When a shape would fit in a queue, played forward; `None` where it never does, or where the
    /// end of what is in the way is not known.
    pub fn estimate(&self, queue: &'c Queue, shape: &Shape) -> Option<Timestamp> {
        if self.cluster.lacks(crate::model::Reading::Jobs) {
            return None;
        }
        let demand = Demand::new(shape, self.cluster, queue);
        let hosts: Vec<(usize, &Host<'_>, &[Closed])> = self
            .gates
            .nodes(queue)
            .iter()
            .filter(|free| comes_back(free.class))
            .map(|free| free.place)
            .map(|place| (place, &self.hosts[place], self.closed[place].as_slice()))
            .filter(|(_, host, _)| demand.hardware(host) == Hardware::Right)
            .collect();
        let timeline = self.timeline.get_or_init(|| Timeline::new(self.cluster));
        timeline.earliest(&demand, &hosts, self.cluster.taken_at, length(queue, shape))
    }

    /// The verdict on one queue.
    pub fn place(&self, judged: Judged<'c>, shape: &Shape, asked: Asked<'_>) -> Placement {
        let Judged { queue, access, fit } = judged;
        let (dry_run, untried) = match asked {
            Asked::Yes(answer, untried) => (Some(answer), untried),
            _ => (None, 0),
        };
        let (verdict, because) = self.verdict(&access, &fit, asked);
        let confirmed = dry_run.is_some_and(DryRun::is_taken);
        let reachable = match verdict {
            Verdict::RunNow | Verdict::Queue => true,
            // Nobody could be asked, and nothing speaks against it.
            Verdict::NoAnswer => {
                asked == Asked::No && access.refusals().next().is_none() && fit.ever
            }
            _ => false,
        };
        let predicted = dry_run.filter(|answer| answer.is_taken()).and_then(|a| a.start.get());
        let start = if !reachable && verdict != Verdict::NoAnswer {
            None
        } else if let Some(at) = predicted {
            Some(Start { at, source: Source::Scheduler })
        } else {
            let at =
                if fit.now { Some(self.cluster.taken_at) } else { self.estimate(queue, shape) };
            at.map(|at| Start { at, source: Source::Estimate })
        };
        let submit = if reachable { submit(queue, &access, dry_run, shape) } else { Vec::new() };
        let waits = |job: &&crate::model::QueuedJob| {
            job.state.base == crate::model::BaseState::Pending
                && job
                    .partition
                    .as_deref()
                    .is_some_and(|names| names.split(',').any(|name| name == queue.name))
        };
        Placement {
            queue: queue.name.clone(),
            verdict,
            because,
            reachable,
            confirmed,
            start,
            fit,
            access,
            dry_run: dry_run.cloned(),
            untried,
            submit,
            waiting: self.cluster.jobs.iter().filter(waits).count() as u64,
        }
    }

    fn verdict(&self, access: &gates::Access, fit: &Fit, asked: Asked<'_>) -> (Verdict, String) {
        let gate = |kind| access.gates.iter().find(|gate| gate.kind == kind);
        let told = |gate: &gates::Gate| format!("{} ({})", gate.text, gate.source);
        if let Some(gate) = gate(Kind::Fatal) {
            return (Verdict::Blocked, told(gate));
        }
        if fit.right == 0 && fit.unverified == 0 {
            return (Verdict::WrongHardware, histogram(&fit.wrong));
        }
        if let Asked::Yes(answer, untried) = asked
            && let Some(refusal) = answer.refusal()
        {
            return refused(answer, refusal, untried);
        }
        if let Some(gate) = gate(Kind::Shape) {
            return (Verdict::Limit, told(gate));
        }
        if !fit.ever {
            return if fit.unverified > 0 {
                let unverified = text::count(fit.unverified, "node");
                (Verdict::NoAnswer, format!("the GPUs of {unverified} are not identified"))
            } else {
                let right = text::count(fit.right, "node");
                let out =
                    if fit.busy.is_empty() { String::new() } else { histogram_words(&fit.busy) };
                let out = if out.is_empty() { out } else { format!(": {out}") };
                (
                    Verdict::TooFew,
                    format!("{} needed, {right} with the right hardware{out}", fit.needed),
                )
            };
        }
        match asked {
            Asked::Yes(answer, _) if answer.is_taken() => self.taken(access, fit, answer),
            Asked::Yes(answer, _) => {
                (Verdict::NoAnswer, format!("the scheduler gave no answer: {}", answer.message))
            }
            Asked::TooMany => {
                (Verdict::NoAnswer, "not asked: too many dry runs for one question".to_owned())
            }
            Asked::No if fit.now => {
                (Verdict::NoAnswer, "fits now; the scheduler was not asked".to_owned())
            }
            Asked::No => (Verdict::NoAnswer, "the scheduler was not asked".to_owned()),
        }
    }

    /// The scheduler would take it: whether that is now.
    fn taken(&self, access: &gates::Access, fit: &Fit, answer: &DryRun) -> (Verdict, String) {
        let now = self.cluster.taken_at;
        let starts = answer.start.get();
        if let Some(gate) = access.gates.iter().find(|gate| gate.kind == Kind::Unchecked) {
            return (Verdict::Queue, format!("not checked: {}", gate.text));
        }
        match starts {
            Some(start) if start.duration_since(now) <= SOON && fit.now => {
                (Verdict::RunNow, String::new())
            }
            Some(start) if start.duration_since(now) > SOON && fit.now => {
                (Verdict::Queue, "there is room, but the scheduler starts it later".to_owned())
            }
            None if fit.now => (Verdict::Queue, "the scheduler names no start".to_owned()),
            _ => (Verdict::Queue, histogram_words(&fit.busy)),
        }
    }
}

/// What a refusal of the scheduler makes of a queue.
fn refused(answer: &DryRun, refusal: Refusal, untried: usize) -> (Verdict, String) {
    let said = if answer.message.is_empty() { refusal.label() } else { &answer.message };
    if refusal.depends_on_account() && untried > 0 {
        let tried = text::count(untried as u64, "account");
        let text = format!("refused with the accounts that were tried, {tried} untried: {said}");
        return (Verdict::NoAnswer, text);
    }
    let text = format!("the scheduler refuses: {said}");
    let verdict = match refusal {
        Refusal::Quota | Refusal::TimeLimit => Verdict::Limit,
        _ => Verdict::Blocked,
    };
    (verdict, text)
}

/// Whether a node that stands so will take jobs again by itself.
fn comes_back(class: Class) -> bool {
    matches!(
        class,
        Class::Idle
            | Class::Room
            | Class::Full
            | Class::MemoryExhausted
            | Class::Stranded
            | Class::Planned
            | Class::Completing
            | Class::PoweringUp
            | Class::PoweredDown
            | Class::PoweringDown
            | Class::Reserved
            | Class::ReservedForCaller
            | Class::Blocked
            | Class::Rebooting
            | Class::Maintenance
    )
}

/// When each node is kept for others, by reservations that are in force or come.
fn closed(cluster: &Cluster, frees: &Frees<'_>) -> Vec<Vec<Closed>> {
    let mut closed: Vec<Vec<Closed>> = vec![Vec::new(); cluster.nodes.len()];
    let accounts = cluster.accounts();
    for held in &cluster.reservations {
        if held.is_part_of_nodes || reserved::lets_in(held, &cluster.identity, &accounts) {
            continue;
        }
        let from = held.start.get().unwrap_or(cluster.taken_at);
        let until = held.end.get().unwrap_or(Timestamp::MAX);
        let hosts = text::expand(&held.node_list, MOST_HOSTS).unwrap_or_default();
        for free in hosts.iter().filter_map(|host| frees.named(host)) {
            closed[free.place].push(Closed { from, until });
        }
    }
    closed
}

/// The options that were, or would be, taken.
fn submit(
    queue: &Queue,
    access: &gates::Access,
    dry_run: Option<&DryRun>,
    shape: &Shape,
) -> Vec<String> {
    let mut options = vec![format!("--partition={}", queue.name)];
    let way = &access.way;
    let (account, qos) = match dry_run {
        // What worked, word for word.
        Some(answer) => (answer.account.as_ref(), answer.qos.as_ref()),
        None => (
            way.account.as_ref().filter(|_| way.names_account),
            way.qos.as_ref().filter(|_| way.names_qos),
        ),
    };
    options.extend(account.map(|account| format!("--account={account}")));
    options.extend(qos.map(|qos| format!("--qos={qos}")));
    options.extend(shape.options());
    options
}

/// `3 without a100, 2 with 16 cores`, the most frequent first.
fn histogram(reasons: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<(&String, &u64)> = reasons.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let words: Vec<String> = sorted
        .iter()
        .take(3)
        .map(|(why, nodes)| format!("{}: {why}", text::count(**nodes, "node")))
        .collect();
    words.join("; ")
}

fn histogram_words(classes: &BTreeMap<&'static str, u64>) -> String {
    let mut sorted: Vec<(&&str, &u64)> = classes.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let words: Vec<String> =
        sorted.iter().map(|(class, nodes)| format!("{nodes} {class}")).collect();
    text::join(&words, "and")
}

/// Whether an answer says that the scheduler could not be asked.
pub fn is_silent(answer: &DryRun) -> bool {
    answer.settled == Settled::NoAnswer
}

/// How long a job takes at most: what it says, or what the queue gives one that says nothing.
fn length(queue: &Queue, shape: &Shape) -> Option<Span> {
    shape.time.or(queue.default_time.get()).or(queue.max_time.get())
}
