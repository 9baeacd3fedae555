//! What a number of runs come to: how they ended, what they held, and how much of that was for
//! nothing.

use crate::model::{BaseState, History, Idle, Run};

use super::breakdown::is_idle;
use super::{Held, HostTime, Load, Outcome};

/// One number to rank what holds GPUs beside what does not, in core-seconds: a GPU counts as so many
/// cores as nodes have for each of theirs, about.
pub fn cost(core_seconds: u64, gpu_seconds: u64) -> u64 {
    const CORES_OF_A_GPU: u64 = 16;
    core_seconds.saturating_add(gpu_seconds.saturating_mul(CORES_OF_A_GPU))
}

impl Outcome {
    /// The outcome of a run.
    pub fn of_run(run: &Run) -> Self {
        if !run.is_ended() {
            return match run.state {
                BaseState::Pending => Self::Pending,
                BaseState::Other => Self::Other,
                _ => Self::Running,
            };
        }
        if !run.has_started() {
            return Self::NeverStarted;
        }
        match run.state {
            BaseState::Completed => Self::Completed,
            BaseState::Cancelled => Self::Cancelled,
            BaseState::Preempted => Self::Preempted,
            // Put back into the queue: the state speaks of its job, which waits.
            BaseState::Pending => Self::Requeued,
            _ if run.is_failure() => Self::Failed,
            _ => Self::Other,
        }
    }
}

impl Held {
    /// What one run held.
    pub fn by_run(run: &Run, history: &History) -> Self {
        let held = Self { runs: 1, ..Self::default() };
        let (Some(elapsed), Some(core_seconds)) = (run.elapsed.get(), run.core_seconds()) else {
            return Self { unrecorded: 1, ..held };
        };
        let memory = run.allocated_memory.get().map(|bytes| bytes >> 20);
        let share = HostTime {
            core_seconds,
            mib_seconds: memory.unwrap_or(0).saturating_mul(u64::from(elapsed)),
        };
        let mut held = Self {
            without_memory: u64::from(memory.is_none()),
            node_seconds: run.node_seconds().unwrap_or(0),
            ..held
        };
        let seconds = run.gpu_seconds().filter(|_| run.gpus.get() > Some(0));
        let gpus = seconds.map(|seconds| {
            // Of several types the record does not say how many of each.
            let name = history.text(run.gpu_type);
            let name = if name.contains('+') { "" } else { name };
            (name.to_owned(), seconds)
        });
        held.load = Load::of(gpus.into_iter().collect(), share);
        held.meter(run.drawn());
        held
    }
}

/// How runs ended and what they held.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Runs that held something and are over.
    pub ended: u64,
    /// Of these: the last command of the script returned zero.
    pub completed: u64,
    /// Ended badly.
    pub failed: u64,
    /// Cancelled by somebody.
    pub cancelled: u64,
    /// Made way for others, or were put back into the queue.
    pub preempted: u64,
    /// Ended in a state that is not known here.
    pub other: u64,
    /// Held their cores and did nothing; in one of the other counts too.
    pub hung: u64,
    /// Did nothing with what they held: hung, or held GPUs that stayed at 0 %; in one of the other
    /// counts too.
    pub idle: u64,
    /// Of these: completed all the same.
    pub idle_completed: u64,
    /// Lasted long enough to have hung, and nobody measured whether they did: in no count of hung
    /// ones.
    pub unjudged: u64,
    /// Failed or did nothing, each once.
    pub flagged: u64,
    /// Still running.
    pub running: u64,
    /// Core-seconds of all ended ones.
    pub core_seconds: u64,
    /// GPU-seconds of all ended ones.
    pub gpu_seconds: u64,
    /// Core-seconds of the flagged ones.
    pub wasted_core_seconds: u64,
    /// GPU-seconds of the flagged ones.
    pub wasted_gpu_seconds: u64,
    /// Runs that are in no sum: their record does not say what they held.
    pub unrecorded: u64,
    /// Runs that are in no sum of GPUs: their record does not say whether they held any.
    pub unrecorded_gpus: u64,
    /// Start of the first.
    pub first: Option<u32>,
    /// Start of the last.
    pub last: Option<u32>,
}

impl Summary {
    /// Adds a run that started.
    pub fn add(&mut self, run: &Run, idle: &Idle) {
        let outcome = Outcome::of_run(run);
        if outcome == Outcome::Running {
            self.running += 1;
        }
        if !Outcome::ENDED.contains(&outcome) || !run.is_ended() {
            return;
        }
        let judged = run.is_hang(idle);
        let hung = judged == Some(true);
        let did_nothing = is_idle(run, idle);
        let flagged = outcome == Outcome::Failed || did_nothing;
        self.ended += 1;
        self.completed += u64::from(outcome == Outcome::Completed);
        self.failed += u64::from(outcome == Outcome::Failed);
        self.cancelled += u64::from(outcome == Outcome::Cancelled);
        self.preempted += u64::from(matches!(outcome, Outcome::Preempted | Outcome::Requeued));
        self.other += u64::from(outcome == Outcome::Other);
        self.hung += u64::from(hung);
        self.idle += u64::from(did_nothing);
        self.idle_completed += u64::from(did_nothing && outcome == Outcome::Completed);
        self.unjudged += u64::from(judged.is_none() && run.elapsed.is_some());
        self.flagged += u64::from(flagged);
        match run.core_seconds() {
            Some(cores) => {
                let gpus = run.gpu_seconds().unwrap_or(0);
                self.core_seconds += cores;
                self.gpu_seconds += gpus;
                if flagged {
                    self.wasted_core_seconds += cores;
                    self.wasted_gpu_seconds += gpus;
                }
            }
            None => self.unrecorded += 1,
        }
        self.unrecorded_gpus += u64::from(run.gpu_seconds().is_none());
        if let Some(start) = run.started.get() {
            self.first = Some(self.first.map_or(start, |first| first.min(start)));
            self.last = self.last.max(Some(start));
        }
    }

    /// Adds the sums of others.
    pub fn merge(&mut self, other: &Self) {
        self.ended += other.ended;
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.preempted += other.preempted;
        self.other += other.other;
        self.hung += other.hung;
        self.idle += other.idle;
        self.idle_completed += other.idle_completed;
        self.unjudged += other.unjudged;
        self.flagged += other.flagged;
        self.running += other.running;
        self.core_seconds += other.core_seconds;
        self.gpu_seconds += other.gpu_seconds;
        self.wasted_core_seconds += other.wasted_core_seconds;
        self.wasted_gpu_seconds += other.wasted_gpu_seconds;
        self.unrecorded += other.unrecorded;
        self.unrecorded_gpus += other.unrecorded_gpus;
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
    }

    /// How many did nothing; `None` where none is known to have and some may.
    pub fn known_idle(&self) -> Option<u64> {
        (self.idle > 0 || self.unjudged == 0).then_some(self.idle)
    }

    /// How many hung; `None` where none is known to have and some may.
    pub fn known_hung(&self) -> Option<u64> {
        (self.hung > 0 || self.unjudged == 0).then_some(self.hung)
    }

    /// One number for what they held, to rank by.
    pub fn cost(&self) -> u64 {
        cost(self.core_seconds, self.gpu_seconds)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::history::workloads::workloads;
    use crate::model::{Maybe, RunPart};

    const IDLE: Idle =
        Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 };

    fn run(number: u32, state: BaseState, elapsed: u32) -> Run {
        Run {
            started: Maybe::some(1000),
            ended: Maybe::some(1000 + elapsed),
            elapsed: Maybe::some(elapsed),
            submitted: Maybe::some(900),
            nodes: Maybe::some(1),
            cpus: Maybe::some(4),
            gpus: Maybe::some(1),
            cpu_millis: Maybe::some(1_000_000),
            ..Run::bare(number, RunPart::Whole, state)
        }
    }

    #[test]
    fn what_failed_and_what_hung_is_flagged_once() {
        let mut summary = Summary::default();
        let mut hung = run(1, BaseState::Timeout, 3600);
        hung.cpu_millis = Maybe::some(500);
        summary.add(&hung, &IDLE);
        summary.add(&run(2, BaseState::Failed, 60), &IDLE);
        summary.add(&run(3, BaseState::Completed, 3600), &IDLE);
        summary.add(&run(4, BaseState::Cancelled, 60), &IDLE);
        let open = Run { ended: Maybe::NONE, ..run(5, BaseState::Running, 9000) };
        summary.add(&open, &IDLE);
        let counts = (summary.ended, summary.failed, summary.hung, summary.flagged);
        assert_eq!((counts, summary.running), ((4, 2, 1, 2), 1));
        assert_eq!(summary.wasted_core_seconds, 4 * 3660);
        assert_eq!(summary.gpu_seconds, 3600 + 60 + 3600 + 60);
        // A GPU-second counts as 16 core-seconds.
        assert_eq!(summary.cost(), 20 * 7320);
    }

    #[test]
    fn a_gpu_that_stayed_at_zero_did_nothing_although_its_run_completed() {
        let mut summary = Summary::default();
        let mut idle = run(1, BaseState::Completed, 3600);
        idle.gpu_permille = Maybe::some(0);
        summary.add(&idle, &IDLE);
        summary.add(&run(2, BaseState::Completed, 3600), &IDLE);
        assert_eq!((summary.idle, summary.idle_completed, summary.hung), (1, 1, 0));
        assert_eq!((summary.flagged, summary.wasted_gpu_seconds), (1, 3600));
        assert_eq!(summary.known_idle(), Some(1));
    }

    proptest! {
        /// Whatever order runs come in, and however they are divided into files: the same sums.
        #[test]
        fn order_and_division_change_no_sum(
            seeds in prop::collection::vec((0_usize..5, 1_u32..100_000, 0_u32..4), 1..40),
            cut in 0_usize..40,
        ) {
            let states = [
                BaseState::Completed, BaseState::Failed, BaseState::Timeout, BaseState::Cancelled,
                BaseState::Running,
            ];
            let mut whole = History::default();
            for (number, (state, elapsed, name)) in (1..).zip(&seeds) {
                let name = whole.names.intern(&format!("work-{name}x{number}"));
                let mut run = run(number, states[*state], *elapsed);
                run.name = Some(name);
                whole.runs.push(run);
            }
            let told = |history: &History| {
                let of = |workload: &crate::history::workloads::Workload| {
                    let mut summary = Summary::default();
                    workload.runs(history).for_each(|run| summary.add(run, &IDLE));
                    (workload.label.clone(), summary)
                };
                workloads(history).iter().map(of).collect::<Vec<_>>()
            };
            let expected = told(&whole);
            let cut = cut.min(whole.runs.len());
            let mut back = whole.clone();
            back.runs.reverse();
            prop_assert_eq!(told(&back), expected.clone());
            let (mut first, mut second) = (whole.clone(), whole.clone());
            first.runs.truncate(cut);
            second.runs.drain(..cut);
            second.merge(&first);
            // A file that is read twice counts once.
            second.merge(&first);
            prop_assert_eq!(told(&second), expected);
        }
    }
}
