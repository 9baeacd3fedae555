//! Which queues can run a job of a shape, best first.
//!
//! Three witnesses are heard of each queue: its rules ([`super::gates`]), its nodes ([`super::fit`])
//! and, where it was asked, the scheduler's dry run. `RUN NOW` needs all three to say so, and never
//! follows a refusal, whatever its words. A dry run's yes alone proves nothing: schedulers name a
//! start for queues that are down and limits that are exceeded.

mod inside;
mod placement;
mod when;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::fit::{Demand, Hardware, Host, Space};
use super::free::{Class, Free, Frees};
use super::gates::{self, Gates, Kind};
use super::reserved;
use super::start::{Closed, MOST_HOSTS, Timeline, is_open};
use crate::hardware::{Catalogue, Device};
use crate::model::{BaseState, Cluster, DryRun, Queue, QueuedJob, Refusal, Settled, Shape, Span};
use crate::text;

use inside::Inside;
pub use placement::{Asked, Busy, Fit, Judged, Placement, Source, Start, Verdict, sort};

/// A dry run so soon is of a job that starts now: where there is room the scheduler names the present
/// moment, within seconds; a start in a minute or two is one that waits for something we do not see.
const SOON: SignedDuration = SignedDuration::from_secs(30);
/// A dry run that is later than our estimate by more than this has been rounded up: on a real Slurm
/// 22.05 some two of five were, by about a minute where jobs took one, and jobs started as we said.
const ROUNDED: SignedDuration = SignedDuration::from_secs(30);
/// What starts so soon starts at once: the scheduler's clock and ours differ by a little.
const AT_ONCE: SignedDuration = SignedDuration::from_secs(10);

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
            if free.class.gives_now() || matches!(free.class, Class::Full | Class::Stranded) {
                host.free.cpus = host.free.cpus.min(free.cpus.get().unwrap_or(0));
            }
            hosts.push(host);
        }
        let closed = closed(cluster, frees);
        Self { cluster, gates, hosts, closed, timeline: OnceCell::new() }
    }

    /// Every queue for a shape, before the scheduler is asked. One that the site hides only where it
    /// is named, or where `hidden` ones are wanted, too.
    pub fn judge(&self, shape: &Shape, hidden: bool) -> Vec<Judged<'c>> {
        let queues = self.cluster.queues.iter();
        let wanted = queues.filter(|queue| match shape.partitions.as_slice() {
            [] => hidden || !queue.is_hidden,
            named => named.contains(&queue.name),
        });
        wanted.filter_map(|queue| self.judge_one(&queue.name, shape)).collect()
    }

    /// The queues, hidden ones among them.
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
        let inside = self.inside(shape);
        let inside = inside.as_ref();
        let mut fit = Fit { needed: shape.least_nodes(), ..Fit::default() };
        let (mut now, mut ever) = (Vec::new(), Vec::new());
        let (mut now_spaces, mut ever_spaces): (Vec<(&Host<'_>, &Space)>, Vec<_>) =
            (Vec::new(), Vec::new());
        for free in self.gates.nodes(queue) {
            let host = self.host(free.place, inside);
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
            if comes_back(free.class) && inside.is_none_or(|inside| inside.has(&free.node.name)) {
                ever.push(demand.tasks(host, &host.whole, false));
                ever_spaces.push((host, &host.whole));
            }
            let tasks = self.tasks_now(free, (&demand, length), shape, inside);
            match tasks {
                Ok(tasks) => {
                    fit.fitting += 1;
                    now.push(tasks);
                    now_spaces.push((host, &host.free));
                }
                Err((word, field)) => {
                    let busy = fit.busy.entry(word).or_default();
                    busy.nodes += 1;
                    busy.field = field;
                    if busy.named.len() < Busy::NAMED {
                        let by = || free.reservation.or(free.until.map(|(_, by)| by));
                        let reason = free.node.reason.as_ref().map(|reason| reason.text.as_str());
                        let reason = match field {
                            // Whose reservation a node outside of the named one is in is no matter.
                            RESERVATIONS if word != OUTSIDE => by(),
                            RESERVATIONS => None,
                            _ => reason.filter(|_| free.class.is_out()),
                        };
                        busy.named.push((free.node.name.clone(), reason.map(str::to_owned)));
                    }
                }
            }
        }
        fit.now = demand.enough(&now) && demand.enough_gpus(&now_spaces);
        fit.ever = demand.enough(&ever) && demand.enough_gpus(&ever_spaces);
        fit
    }

    /// The tasks that go on a node now, or where it stands that none do, and what says so.
    fn tasks_now(
        &self,
        free: &Free<'_>,
        (demand, length): (&Demand<'_>, Option<Span>),
        shape: &Shape,
        inside: Option<&Inside<'c>>,
    ) -> Result<u64, (&'static str, &'static str)> {
        let named = shape.reservation.as_deref();
        let part = inside.and_then(|inside| inside.part(free.place));
        let stands = match free.class {
            // Less memory than the default may be enough for less.
            Class::Idle | Class::Room | Class::MemoryExhausted => named.is_none() || part.is_some(),
            // What is left is kept for the jobs of the reservation.
            Class::Full | Class::Stranded => part.is_some(),
            Class::ReservedForCaller => named.is_some() && named == free.reservation,
            _ => false,
        };
        if !stands {
            return Err(match named {
                Some(_) if part.is_some() => (free.class.word(), told_by(free)),
                Some(_) if inside.is_some_and(|inside| inside.has(&free.node.name)) => (
                    "in a reservation of some cores, of which it is not told which are left",
                    RESERVATIONS,
                ),
                Some(_) => (OUTSIDE, RESERVATIONS),
                None => (free.class.word(), told_by(free)),
            });
        }
        if named.is_none() && !is_open(&self.closed[free.place], self.cluster.taken_at, length) {
            return Err(("reserved before it would end", RESERVATIONS));
        }
        let host = self.host(free.place, inside);
        match demand.tasks(host, &host.free, false) {
            0 if free.class == Class::MemoryExhausted => Err((free.class.word(), told_by(free))),
            0 => Err(demand.what_is_taken(host)),
            tasks => Ok(tasks),
        }
    }

    /// The verdict on one queue.
    pub fn place(&self, judged: Judged<'c>, shape: &Shape, asked: Asked<'_>) -> Placement {
        let Judged { queue, access, fit } = judged;
        let (dry_run, untried) = match asked {
            Asked::Yes(answer, untried) => (Some(answer), untried),
            _ => (None, 0),
        };
        let later = self.after_others(queue, shape);
        let (mut verdict, mut because) = self.verdict(&access, &fit, asked, later.is_some());
        if verdict == Verdict::Blocked
            && self.is_only_reserved(&access, &fit, dry_run, shape, queue)
        {
            (verdict, because) = (Verdict::Queue, told_busy(&fit.busy));
        }
        let now = self.cluster.taken_at;
        let is_now = |at: &Timestamp| at.duration_since(now) <= AT_ONCE;
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
        // What waits does not start now, whoever says so: the scheduler knows no limit that lets
        // jobs wait, and looks past nodes that are on their way to somebody else.
        let waits = verdict == Verdict::Queue || !fit.now;
        let predicted = predicted.filter(|at| !(waits && is_now(at)));
        // Nor does it look at the jobs that wait: after them is later.
        let predicted = predicted.filter(|at| later.is_none_or(|later| later <= *at));
        // It rounds up, by as much as a job takes, where ours knows the end of each.
        let ours = predicted
            .filter(|_| waits && !fit.now && !boots(&fit))
            .and_then(|_| self.estimate(queue, shape))
            .filter(|ours| !is_now(ours));
        let predicted =
            predicted.filter(|at| ours.is_none_or(|ours| at.duration_since(ours) <= ROUNDED));
        let start = if !reachable && verdict != Verdict::NoAnswer {
            None
        } else if let Some(at) = predicted {
            Some(Start { at, source: Source::Scheduler })
        } else {
            let at = match later {
                Some(later) => Some(later),
                None if fit.now && !access.has(Kind::Wait) => Some(now),
                None => self.estimate(queue, shape),
            };
            let at = at.filter(|at| !(waits && is_now(at)));
            at.map(|at| Start { at, source: Source::Estimate })
        };
        let submit = if reachable { submit(queue, &access, dry_run, shape) } else { Vec::new() };
        let waits_here = |job: &&QueuedJob| {
            job.state.base == BaseState::Pending
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
            waiting: self.cluster.jobs.iter().filter(waits_here).count() as u64,
        }
    }

    fn verdict(
        &self,
        access: &gates::Access,
        fit: &Fit,
        asked: Asked<'_>,
        behind: bool,
    ) -> (Verdict, String) {
        let gate = |kind| access.gates.iter().find(|gate| gate.kind == kind);
        if let Some(gate) = gate(Kind::Fatal) {
            return (Verdict::Blocked, told(gate));
        }
        if fit.right == 0 && fit.unverified == 0 {
            return (Verdict::WrongHardware, histogram(&fit.wrong));
        }
        if let Asked::Yes(answer, untried) = asked
            && let Some(refusal) = answer.refusal()
        {
            let (verdict, said) = refused(answer, refusal, untried);
            if !refusal.is_vague() {
                return (verdict, said);
            }
            // What is known here says more than "denied", or "not available", does.
            return match gate(Kind::Shape) {
                Some(gate) => (Verdict::Limit, format!("{}; {said}", told(gate))),
                None if !fit.ever && fit.unverified == 0 => {
                    (Verdict::TooFew, format!("{}; {said}", too_few(fit)))
                }
                None if !fit.now && !fit.busy.is_empty() => {
                    (verdict, format!("{}; {said}", told_busy(&fit.busy)))
                }
                None => (verdict, said),
            };
        }
        if let Some(gate) = gate(Kind::Shape) {
            return (Verdict::Limit, told(gate));
        }
        if !fit.ever {
            return if fit.unverified > 0 {
                let unverified = text::count(fit.unverified, "node");
                (Verdict::NoAnswer, format!("the GPUs of {unverified} are not identified"))
            } else {
                (Verdict::TooFew, too_few(fit))
            };
        }
        match asked {
            Asked::Yes(answer, _) if answer.is_taken() => self.taken(access, fit, answer, behind),
            Asked::Yes(answer, _) => {
                (Verdict::NoAnswer, format!("the scheduler gave no answer: {}", answer.message))
            }
            Asked::TooMany => {
                (Verdict::NoAnswer, "not asked: too many dry runs for one question".to_owned())
            }
            Asked::No => {
                let stands = match gate(Kind::Wait) {
                    Some(gate) => told(gate),
                    None if fit.now && behind => {
                        "there is room, but for the jobs that wait before it".to_owned()
                    }
                    None if fit.now => "fits now".to_owned(),
                    None if fit.busy.is_empty() => String::new(),
                    None => told_busy(&fit.busy),
                };
                let open = gate(Kind::Unchecked).map(|gate| format!("not checked: {}", gate.text));
                let said: Vec<String> =
                    [stands].into_iter().filter(|text| !text.is_empty()).chain(open).collect();
                (Verdict::NoAnswer, said.join("; "))
            }
        }
    }

    /// Whether a dry run refuses nodes only because they are kept for others for a while, as if there
    /// were none: `sbatch` takes such a job, and it starts when they are given back (on a real 22.05
    /// after 61 s and 105 s, when the reservations ended).
    fn is_only_reserved(
        &self,
        access: &gates::Access,
        fit: &Fit,
        dry_run: Option<&DryRun>,
        shape: &Shape,
        queue: &'c Queue,
    ) -> bool {
        /// What is kept for longer is kept for good.
        const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 30);
        let is_refused = dry_run.and_then(DryRun::refusal) == Some(Refusal::Shape);
        let is_open = access.refusals().next().is_none();
        let mut reserved = fit.busy.values().filter(|busy| busy.field == RESERVATIONS);
        is_refused
            && is_open
            && reserved.next().is_some()
            && self
                .estimate(queue, shape)
                .is_some_and(|at| at.duration_since(self.cluster.taken_at) <= LONGEST)
    }

    /// The scheduler would take it: whether that is now.
    fn taken(
        &self,
        access: &gates::Access,
        fit: &Fit,
        answer: &DryRun,
        behind: bool,
    ) -> (Verdict, String) {
        let now = self.cluster.taken_at;
        let starts = answer.start.get();
        let gate = |kind| access.gates.iter().find(|gate| gate.kind == kind);
        if let Some(gate) = gate(Kind::Wait) {
            return (Verdict::Queue, told(gate));
        }
        if let Some(gate) = gate(Kind::Unchecked) {
            return (Verdict::Queue, format!("not checked: {}", gate.text));
        }
        match starts {
            // A dry run looks past the queue.
            Some(_) if fit.now && behind => {
                (Verdict::Queue, "there is room, but for the jobs that wait before it".to_owned())
            }
            Some(start) if start.duration_since(now) <= SOON && fit.now => {
                (Verdict::RunNow, String::new())
            }
            Some(start) if start.duration_since(now) > SOON && fit.now => {
                (Verdict::Queue, "there is room, but the scheduler starts it later".to_owned())
            }
            None if fit.now => (Verdict::Queue, "the scheduler names no start".to_owned()),
            _ => (Verdict::Queue, told_busy(&fit.busy)),
        }
    }
}

/// A gate in a sentence, with whose rule it is.
fn told(gate: &gates::Gate) -> String {
    format!("{} ({})", gate.text, gate.source)
}

/// Nodes with the right hardware, and what keeps them.
pub fn too_few(fit: &Fit) -> String {
    let right = text::count(fit.right, "node");
    let out =
        if fit.busy.is_empty() { String::new() } else { format!(": {}", told_busy(&fit.busy)) };
    format!("{} needed, {right} with the right hardware{out}", fit.needed)
}

/// Whether a node may have to boot first: how long that takes the scheduler knows better.
fn boots(fit: &Fit) -> bool {
    let classes = [Class::PoweredDown, Class::PoweringUp, Class::PoweringDown, Class::Rebooting];
    classes.iter().any(|class| fit.busy.contains_key(class.word()))
}

/// Where a node stands that is none of the reservation that a job names.
const OUTSIDE: &str = "not in the reservation";

/// What tells of reservations.
const RESERVATIONS: &str = "scontrol show reservation";

/// What of the scheduler's words makes a node stand where it stands.
fn told_by(free: &Free<'_>) -> &'static str {
    match free.class {
        Class::Full | Class::Stranded => "CPUAlloc",
        Class::MemoryExhausted => "AllocMem",
        _ if free.reservation.is_some() => RESERVATIONS,
        _ => "State",
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
        Refusal::Quota | Refusal::TimeLimit | Refusal::Licence => Verdict::Limit,
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
        if held.is_part_of_nodes() || reserved::lets_in(held, &cluster.identity, &accounts) {
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

/// `g01 short of GPUs and 4 nodes full (node GresUsed and CPUAlloc)`: what is in the way on how
/// many nodes, the most frequent first, and what says so.
fn told_busy(busy: &BTreeMap<&'static str, Busy>) -> String {
    let mut sorted: Vec<(&&str, &Busy)> = busy.iter().collect();
    sorted.sort_by(|a, b| b.1.nodes.cmp(&a.1.nodes).then_with(|| a.0.cmp(b.0)));
    let words: Vec<String> = sorted.iter().map(|(word, busy)| told_of(word, busy)).collect();
    let mut fields: Vec<String> = Vec::new();
    for (_, busy) in sorted {
        let field = if busy.field == RESERVATIONS {
            busy.field.to_owned()
        } else {
            format!("node {}", busy.field)
        };
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    format!("{} ({})", text::join(&words, "and"), fields.join(", "))
}

fn told_of(word: &str, busy: &Busy) -> String {
    if busy.nodes > Busy::NAMED as u64 {
        return format!("{} {word}", text::count(busy.nodes, "node"));
    }
    let names = text::collapse(busy.named.iter().map(|(name, _)| name.as_str()));
    let mut reasons: Vec<&str> =
        busy.named.iter().filter_map(|(_, reason)| reason.as_deref()).collect();
    reasons.dedup();
    match reasons.as_slice() {
        [reason] => format!("{names} {word}, \"{reason}\""),
        _ => format!("{names} {word}"),
    }
}

/// Whether an answer says that the scheduler could not be asked.
pub fn is_silent(answer: &DryRun) -> bool {
    answer.settled == Settled::NoAnswer
}

/// How long a job takes at most: what it says, or what the queue gives one that says nothing.
fn length(queue: &Queue, shape: &Shape) -> Option<Span> {
    shape.time_in(queue).get()
}
