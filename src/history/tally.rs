//! The fold over records: what counts as what, and the sums.

use std::collections::BTreeMap;

use super::breakdown::is_idle;
use crate::model::{BaseState, Bytes, Drawn, Exit, History, Idle, Job, Known, Run, Span, Tres};

/// How a run ended, or why it counts in no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The last command of its script returned zero.
    Completed,
    /// It ended in a way that its owner did not want: [`State::is_failure`].
    ///
    /// [`State::is_failure`]: crate::model::State::is_failure
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// It made way for another job.
    Preempted,
    /// It was put back into the queue: the record of a run before the job's last.
    Requeued,
    /// It ended in a state that jobwise does not know.
    Other,
    /// Refused at submission, or cancelled or overdue while it waited: it never held anything.
    NeverStarted,
    /// It has not ended.
    Running,
    /// It waits.
    Pending,
}

impl Outcome {
    /// Outcomes of runs that held nodes and are over.
    pub const ENDED: [Self; 6] = [
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Preempted,
        Self::Requeued,
        Self::Other,
    ];

    /// The outcome of a record.
    pub fn of(job: &Job) -> Self {
        let state = job.state.base;
        // A run that was requeued is over although the state speaks of its job, which waits.
        if !job.state.is_ended() && !job.ended.is_value() {
            return match state {
                BaseState::Pending => Self::Pending,
                BaseState::Other => Self::Other,
                _ => Self::Running,
            };
        }
        if !job.has_started() {
            return Self::NeverStarted;
        }
        match state {
            BaseState::Completed => Self::Completed,
            BaseState::Cancelled => Self::Cancelled,
            BaseState::Preempted => Self::Preempted,
            BaseState::Pending => Self::Requeued,
            _ if job.state.is_failure() => Self::Failed,
            _ => Self::Other,
        }
    }
}

/// What a number of runs held, for as long as they held it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// The runs.
    pub runs: u64,
    /// Those of them whose record does not say what they held or how long: they are in no sum.
    pub unrecorded: u64,
    /// Those of them whose record does not say how much memory they held.
    pub without_memory: u64,
    /// Nodes held whole or in part, times seconds.
    pub node_seconds: u64,
    /// Everything else that they held.
    pub load: Load,
    /// What was measured of some of them.
    pub metered: Metered,
}

/// What draws power, for as long as it was held.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// Runs that held no GPU.
    pub on_cpus: HostTime,
    /// Runs that held GPUs: what they held beside them.
    pub beside_gpus: HostTime,
    /// GPU-seconds by type; of no type where the record names none.
    pub gpus: BTreeMap<String, u64>,
}

/// Energy that meters counted: of runs whose own it is ([`Drawn::Own`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metered {
    /// The runs.
    pub runs: u64,
    /// What their nodes drew.
    pub joules: u64,
    /// What these runs held, which no estimate has to stand for.
    pub load: Load,
    /// Other runs of which energy was recorded that is not known to be their own.
    pub shared: u64,
    /// Other runs of which energy was recorded that no node can draw.
    pub absurd: u64,
}

impl Metered {
    fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.joules = self.joules.saturating_add(other.joules);
        self.load.merge(&other.load);
        self.shared += other.shared;
        self.absurd += other.absurd;
    }
}

impl Load {
    /// With GPUs, or beside none.
    pub(super) fn of(gpus: BTreeMap<String, u64>, share: HostTime) -> Self {
        let none = HostTime::default();
        let (on_cpus, beside_gpus) = if gpus.is_empty() { (share, none) } else { (none, share) };
        Self { on_cpus, beside_gpus, gpus }
    }

    fn merge(&mut self, other: &Self) {
        self.on_cpus.merge(other.on_cpus);
        self.beside_gpus.merge(other.beside_gpus);
        for (name, seconds) in &other.gpus {
            match self.gpus.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*seconds),
                None => {
                    self.gpus.insert(name.clone(), *seconds);
                }
            }
        }
    }

    /// What is left without a part of it.
    fn without(&self, part: &Self) -> Self {
        let rest = |name: &String, seconds: &u64| {
            seconds.saturating_sub(part.gpus.get(name).copied().unwrap_or(0))
        };
        let gpus = self.gpus.iter().map(|(name, seconds)| (name.clone(), rest(name, seconds)));
        Self {
            on_cpus: self.on_cpus.without(part.on_cpus),
            beside_gpus: self.beside_gpus.without(part.beside_gpus),
            gpus: gpus.filter(|(_, seconds)| *seconds > 0).collect(),
        }
    }
}

/// Cores and memory, for as long as they were held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostTime {
    /// CPUs as the scheduler counts them, times seconds.
    pub core_seconds: u64,
    /// Memory in MiB, times seconds.
    pub mib_seconds: u64,
}

impl HostTime {
    fn merge(&mut self, other: Self) {
        self.core_seconds = self.core_seconds.saturating_add(other.core_seconds);
        self.mib_seconds = self.mib_seconds.saturating_add(other.mib_seconds);
    }

    fn without(self, part: Self) -> Self {
        Self {
            core_seconds: self.core_seconds.saturating_sub(part.core_seconds),
            mib_seconds: self.mib_seconds.saturating_sub(part.mib_seconds),
        }
    }
}

impl Held {
    /// What one run held.
    fn by(job: &Job) -> Self {
        let mut held = Self { runs: 1, ..Self::default() };
        let (Some(elapsed), Some(cpus)) = (job.elapsed.get(), job.cpus.get()) else {
            return Self { unrecorded: 1, ..held };
        };
        // What was asked for stands in for nothing here: it may not have been given.
        if job.allocated.is_empty() {
            return Self { unrecorded: 1, ..held };
        }
        let seconds = elapsed.as_seconds();
        let memory = job.allocated.memory().map(|memory| memory.0 / Bytes::MIB);
        let share = HostTime {
            core_seconds: cpus.saturating_mul(seconds),
            mib_seconds: memory.unwrap_or(0).saturating_mul(seconds),
        };
        held.without_memory = u64::from(memory.is_none());
        held.node_seconds = job.node_seconds().unwrap_or(0);
        let gpus = gpu_types(&job.allocated).into_iter();
        let gpus = gpus.map(|(name, count)| (name.to_owned(), count.saturating_mul(seconds)));
        held.load = Load::of(gpus.collect(), share);
        held.meter(job.drawn());
        held
    }

    /// Takes what was measured of one run for its energy.
    pub(super) fn meter(&mut self, drawn: Option<Drawn>) {
        let none = Metered::default();
        self.metered = match drawn {
            None => none,
            Some(Drawn::Shared(_)) => Metered { shared: 1, ..none },
            Some(Drawn::Absurd(_)) => Metered { absurd: 1, ..none },
            Some(Drawn::Own(joules)) => {
                Metered { runs: 1, joules, load: self.load.clone(), ..none }
            }
        };
    }

    /// What one run held in its last seconds.
    pub fn at_the_end(job: &Job, seconds: u64) -> Self {
        let Some(all) = job.elapsed.get().map(Span::as_seconds) else { return Self::by(job) };
        let elapsed = Known::Value(Span::seconds(all.min(seconds)));
        // What was measured is of the whole run.
        let energy = if seconds < all { Known::NotGathered } else { job.energy.clone() };
        Self::by(&Job { elapsed, energy, ..job.clone() })
    }

    /// Adds what others held.
    pub fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.unrecorded += other.unrecorded;
        self.without_memory += other.without_memory;
        self.node_seconds = self.node_seconds.saturating_add(other.node_seconds);
        self.load.merge(&other.load);
        self.metered.merge(&other.metered);
    }

    /// What those held whose energy nobody measured.
    pub fn unmetered(&self) -> Load {
        self.load.without(&self.metered.load)
    }

    /// Core-seconds; `None` when no run's record says what it held.
    pub fn core_seconds(&self) -> Option<u64> {
        let Load { on_cpus, beside_gpus, .. } = &self.load;
        let sum = on_cpus.core_seconds.saturating_add(beside_gpus.core_seconds);
        self.is_recorded().then_some(sum)
    }

    /// Node-seconds; `None` when no run's record says what it held, or none on how many nodes.
    pub fn node_seconds(&self) -> Option<u64> {
        let held = self.core_seconds()?;
        (held == 0 || self.node_seconds > 0).then_some(self.node_seconds)
    }

    /// GPU-seconds; `None` when no run's record says what it held.
    pub fn gpu_seconds(&self) -> Option<u64> {
        let sum = self.load.gpus.values().fold(0_u64, |sum, seconds| sum.saturating_add(*seconds));
        self.is_recorded().then_some(sum)
    }

    /// Whether the sums say anything: no runs held nothing, unrecorded runs an unknown amount.
    pub fn is_recorded(&self) -> bool {
        self.runs == 0 || self.unrecorded < self.runs
    }
}

/// GPUs by type. The generic count is the sum over the types where both are printed, so they are
/// never added; what the types leave of it has no type.
fn gpu_types(allocated: &Tres) -> Vec<(&str, u64)> {
    let total = allocated.gpus().unwrap_or(0);
    let typed = allocated.0.iter().filter_map(|(name, value)| {
        let count = value.parse().ok().filter(|count| *count > 0)?;
        Some((name.strip_prefix("gres/gpu:")?, count))
    });
    let mut types: Vec<(&str, u64)> = typed.collect();
    let sum = types.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    if sum > total {
        types.clear();
    }
    let rest = if types.is_empty() { total } else { total - sum };
    if rest > 0 {
        types.push(("", rest));
    }
    types
}

/// What the sums take of a record.
struct Entry<'r> {
    outcome: Outcome,
    held: Held,
    partition: Option<&'r str>,
    exit: Option<Exit>,
    derived_exit: Option<Exit>,
}

/// What a record of an outcome adds: only what is over held something.
fn entered(outcome: Outcome, tasks: Option<u64>, held: impl FnOnce() -> Held) -> Held {
    if Outcome::ENDED.contains(&outcome) {
        held()
    } else {
        Held { runs: tasks.unwrap_or(1), ..Held::default() }
    }
}

/// The sums over records.
///
/// A record is one run: of a requeued job each run counts, of an array each task. It counts where
/// it ended, with all the time it took. Runs that never held anything are no failed runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// By partition; of no partition where the record names none.
    pub partitions: BTreeMap<Option<String>, Outcomes>,
    /// Failed runs by cause; `None` where nothing names one.
    pub causes: BTreeMap<Option<String>, Held>,
    /// How the runs of no known cause exited.
    pub exits: BTreeMap<String, u64>,
    /// Completed runs that did nothing with what they held, where steps tell.
    pub idle: Held,
    /// Completed runs of which a step failed.
    pub failed_steps: u64,
    /// Whether any record names GPUs: else this scheduler may not count them at all.
    pub names_gpus: bool,
}

/// What runs held, by how they ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcomes(BTreeMap<Outcome, Held>);

impl Outcomes {
    /// What the runs of these outcomes held.
    pub fn held(&self, outcomes: &[Outcome]) -> Held {
        let mut sum = Held::default();
        for held in outcomes.iter().filter_map(|outcome| self.0.get(outcome)) {
            sum.merge(held);
        }
        sum
    }

    /// How many runs had this outcome.
    pub fn runs(&self, outcome: Outcome) -> u64 {
        self.0.get(&outcome).map_or(0, |held| held.runs)
    }

    fn merge(&mut self, other: &Self) {
        for (outcome, held) in &other.0 {
            self.0.entry(*outcome).or_default().merge(held);
        }
    }
}

impl Tally {
    /// Adds a record; `cause` names the cause of a failed one.
    pub fn add(&mut self, job: &Job, cause: impl FnOnce(&Job) -> Option<String>) {
        let outcome = Outcome::of(job);
        // A record may be of many tasks that wait.
        let tasks = if outcome == Outcome::Pending { job.id.tasks() } else { None };
        let entry = Entry {
            outcome,
            held: entered(outcome, tasks, || Held::by(job)),
            partition: job.partition.as_deref(),
            exit: job.exit.get(),
            derived_exit: job.derived_exit.get(),
        };
        self.names_gpus |= job.allocated.gpus().is_some();
        self.enter(entry, || cause(job));
    }

    /// Adds a run of a history; a record that was never closed is in no sum.
    pub fn add_run(
        &mut self,
        run: &Run,
        history: &History,
        idle: &Idle,
        cause: impl FnOnce(&Run) -> Option<String>,
    ) {
        if run.stale {
            return;
        }
        let outcome = Outcome::of_run(run);
        let waits = outcome == Outcome::Pending;
        let tasks = if waits { run.id(&history.names).tasks() } else { None };
        let entry = Entry {
            outcome,
            held: entered(outcome, tasks, || Held::by_run(run, history)),
            partition: run.partition.map(|name| history.names.get(name)),
            exit: run.exit,
            derived_exit: run.derived_exit,
        };
        if outcome == Outcome::Completed && is_idle(run, idle) {
            self.idle.merge(&entry.held);
        }
        self.names_gpus |= run.gpus.get() > Some(0);
        self.enter(entry, || cause(run));
    }

    fn enter(&mut self, entry: Entry<'_>, cause: impl FnOnce() -> Option<String>) {
        let Entry { outcome, held, partition, exit, derived_exit } = entry;
        if outcome == Outcome::Failed {
            let cause = cause();
            if cause.is_none() {
                let exit = exit.map_or_else(|| "n/a".to_owned(), Exit::in_words);
                *self.exits.entry(exit).or_default() += 1;
            }
            self.causes.entry(cause).or_default().merge(&held);
        }
        let failed_step = derived_exit.is_some_and(|exit| !exit.is_clean());
        self.failed_steps += u64::from(outcome == Outcome::Completed && failed_step);
        let outcomes = self.partitions.entry(partition.map(str::to_owned)).or_default();
        outcomes.0.entry(outcome).or_default().merge(&held);
    }

    /// Adds the sums over other records.
    pub fn merge(&mut self, other: &Self) {
        for (partition, outcomes) in &other.partitions {
            self.partitions.entry(partition.clone()).or_default().merge(outcomes);
        }
        for (cause, held) in &other.causes {
            self.causes.entry(cause.clone()).or_default().merge(held);
        }
        for (exit, runs) in &other.exits {
            *self.exits.entry(exit.clone()).or_default() += runs;
        }
        self.idle.merge(&other.idle);
        self.failed_steps += other.failed_steps;
        self.names_gpus |= other.names_gpus;
    }

    /// The runs of all partitions.
    pub fn all(&self) -> Outcomes {
        let mut all = Outcomes::default();
        for outcomes in self.partitions.values() {
            all.merge(outcomes);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{JobId, Known, Source, State};

    fn run(state: &str, seconds: u64, cpus: u64, allocated: &str) -> Job {
        let moment = |second| Known::Value(jiff::Timestamp::from_second(second).expect("a time"));
        Job {
            started: moment(1_000),
            ended: moment(2_000),
            elapsed: Known::Value(Span::seconds(seconds)),
            cpus: Known::Value(cpus),
            allocated: Tres::parse(allocated),
            node_list: Some("c01".to_owned()),
            partition: Some("batch".to_owned()),
            ..Job::bare(JobId::whole(1), State::parse(state), Source::Accounting)
        }
    }

    fn outcome(state: &str) -> Outcome {
        Outcome::of(&run(state, 5, 1, "cpu=1"))
    }

    #[test]
    fn what_counts_as_failed() {
        for state in ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"] {
            assert_eq!(outcome(state), Outcome::Failed, "{state}");
        }
        assert_eq!(outcome("CANCELLED by 1001"), Outcome::Cancelled);
        assert_eq!(outcome("PREEMPTED"), Outcome::Preempted);
        // `sacct -D` of 22.05 prints so the run before the last of a requeued job.
        assert_eq!(outcome("REQUEUED"), Outcome::Requeued);
        assert_eq!(outcome("HYPERSPACE"), Outcome::Other);
    }

    #[test]
    fn what_never_held_anything_is_no_failed_run() {
        // A refused submission as 22.05 records it: FAILED 1:0, its start its submission, no node.
        let refused = Job { node_list: None, ..run("FAILED", 0, 1, "") };
        assert_eq!(Outcome::of(&refused), Outcome::NeverStarted);
        let overdue = Job { started: Known::NotGathered, ..refused };
        assert_eq!(Outcome::of(&overdue), Outcome::NeverStarted);
        // A run that failed within its first second did hold a node.
        assert_eq!(Outcome::of(&run("FAILED", 0, 1, "cpu=1")), Outcome::Failed);
    }

    #[test]
    fn an_open_record_holds_nothing_yet() {
        let open = |state| Job { ended: Known::NotGathered, ..run(state, 3_000, 8, "cpu=8") };
        let mut tally = Tally::default();
        for state in ["RUNNING", "SUSPENDED", "PENDING"] {
            tally.add(&open(state), |_| None);
        }
        let held = tally.all().held(&[Outcome::Running, Outcome::Pending]);
        assert_eq!((held.runs, held.core_seconds(), held.gpu_seconds()), (3, Some(0), Some(0)));
    }

    #[test]
    fn typed_and_generic_gpus_are_not_added() {
        // AllocTRES of 22.05 with both tracked, of sites that track one of them, and mixed.
        let types = |text: &str| {
            let tres = Tres::parse(text);
            let types = gpu_types(&tres);
            types.iter().map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>()
        };
        assert_eq!(types("cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8000M"), ["a100=2"]);
        assert_eq!(types("cpu=4,gres/gpu:a100=2,gres/gpu:v100=1"), ["a100=2", "v100=1"]);
        assert_eq!(types("cpu=4,gres/gpu=2"), ["=2"]);
        assert_eq!(types("gres/gpu:a100=1,gres/gpu=3"), ["a100=1", "=2"]);
        assert_eq!(types("gres/gpu:a100=4,gres/gpu=3"), ["=3"]);
        assert_eq!(types("cpu=1,gres/gpu=0"), [""; 0]);
    }

    #[test]
    fn what_is_not_recorded_is_no_zero() {
        let mut tally = Tally::default();
        tally.add(&run("FAILED", 100, 4, ""), |_| None);
        let held = tally.all().held(&[Outcome::Failed]);
        assert_eq!((held.runs, held.unrecorded), (1, 1));
        assert_eq!((held.core_seconds(), held.gpu_seconds()), (None, None));
        // 4 CPUs for 100 s and 2 GPUs for as long; the unrecorded run adds nothing to the sums.
        tally.add(&run("FAILED", 100, 4, "cpu=4,gres/gpu=2,mem=1G"), |_| None);
        let held = tally.all().held(&[Outcome::Failed]);
        assert_eq!((held.runs, held.unrecorded), (2, 1));
        assert_eq!((held.core_seconds(), held.gpu_seconds()), (Some(400), Some(200)));
        assert_eq!(held.load.beside_gpus.mib_seconds, 102_400);
    }

    #[test]
    fn a_run_of_no_known_cause_keeps_its_exit() {
        let exit = |code| Known::Value(Exit { code, signal: 0, folded: false });
        let mut tally = Tally::default();
        tally.add(&Job { exit: exit(1), ..run("FAILED", 1, 1, "cpu=1") }, |_| None);
        tally.add(&Job { exit: exit(1), ..run("FAILED", 1, 1, "cpu=1") }, |_| None);
        tally.add(&run("TIMEOUT", 1, 1, "cpu=1"), |_| Some("time_limit".to_owned()));
        assert_eq!(tally.exits, BTreeMap::from([("exit 1".to_owned(), 2)]));
        assert_eq!(tally.causes[&None].runs, 2);
        assert_eq!(tally.causes[&Some("time_limit".to_owned())].runs, 1);
    }

    fn any_run() -> impl Strategy<Value = Job> {
        let state = prop::sample::select(vec!["COMPLETED", "FAILED", "TIMEOUT", "REQUEUED", "X"]);
        let allocated =
            prop::sample::select(vec!["", "cpu=1", "cpu=1,mem=1G,gres/gpu:a100=1", "gres/gpu=2"]);
        let partition = prop::sample::select(vec![None, Some("batch"), Some("gpu")]);
        (state, any::<u64>(), any::<u64>(), allocated, partition).prop_map(
            |(state, seconds, cpus, allocated, partition)| {
                let job = run(state, seconds % (1 << 40), cpus, allocated);
                Job { partition: partition.map(str::to_owned), ..job }
            },
        )
    }

    fn folded(jobs: &[Job]) -> Tally {
        let mut tally = Tally::default();
        for job in jobs {
            tally.add(job, |job| {
                (job.state.base == BaseState::Timeout).then(|| "time_limit".into())
            });
        }
        tally
    }

    proptest! {
        /// Any order, any division into parts: the same sums.
        #[test]
        fn parts_in_any_order_give_the_whole(
            (jobs, shuffled) in prop::collection::vec(any_run(), 0..30)
                .prop_flat_map(|jobs| (Just(jobs.clone()), Just(jobs).prop_shuffle())),
            cut in any::<prop::sample::Index>(),
        ) {
            let cut = cut.index(jobs.len() + 1);
            let (left, right) = shuffled.split_at(cut);
            let mut merged = folded(right);
            merged.merge(&folded(left));
            prop_assert_eq!(merged, folded(&jobs));
        }
    }
}
