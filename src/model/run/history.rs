//! Many runs, and how completely they were read.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use super::{Names, Part, Run, StepUse, Symbol};
use crate::model::Notice;

/// The rows that a history was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rows {
    /// Rows of jobs and steps that were read.
    pub read: u64,
    /// Rows that could not be read: in no run.
    pub unreadable: u64,
    /// Rows that told again what another told.
    pub repeated: u64,
    /// Rows of steps whose job has no row.
    pub orphans: u64,
}

/// Runs in the order of their jobs' numbers, each once, whatever order they were read in.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The texts that the symbols of the runs stand for.
    pub names: Names,
    /// The runs.
    pub runs: Vec<Run>,
    /// What to say beside what is made of it.
    pub notices: Vec<Notice>,
    /// The rows that it was read from.
    pub rows: Rows,
}

/// Whose a step is: one of the runs of a job, task or component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The number that all parts of the job share.
    pub number: u32,
    /// Which part of the job.
    pub part: Part,
    /// The cluster.
    pub cluster: Option<Symbol>,
}

/// What makes a run itself: numbers of jobs come round again, and a requeued job has several.
type Key = (u32, Part, Option<Symbol>, Option<u32>);

fn key(run: &Run) -> Key {
    (run.number, run.part, run.cluster, since(run))
}

/// When it came; a file may not say when it was submitted.
fn since(run: &Run) -> Option<u32> {
    run.submitted.or(run.started).get()
}

/// A requeue is submitted when the run before it ends; longer apart, the number was reused.
const REQUEUE_GAP: u32 = 24 * 3600;

impl History {
    /// The text of a symbol, or an empty one.
    pub fn text(&self, symbol: Option<Symbol>) -> &str {
        symbol.map_or("", |symbol| self.names.get(symbol))
    }

    /// Adds the runs of another history; runs that both hold stay one.
    pub fn merge(&mut self, other: &Self) {
        let mut symbols: HashMap<Symbol, Symbol> = HashMap::new();
        let names = &mut self.names;
        let mut moved = |symbol: Symbol| {
            *symbols.entry(symbol).or_insert_with(|| names.intern(other.names.get(symbol)))
        };
        for run in &other.runs {
            let mut run = *run;
            run.each_symbol(&mut moved);
            self.runs.push(run);
        }
        for notice in &other.notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
        self.rows.read += other.rows.read;
        self.rows.unreadable += other.rows.unreadable;
        self.rows.repeated += other.rows.repeated;
        self.rows.orphans += other.rows.orphans;
        self.settle();
    }

    /// Puts the runs in order, keeps one record of each, and marks those that a later run of the
    /// same job followed.
    pub fn settle(&mut self) {
        let names = &self.names;
        let text = |symbol: Option<Symbol>| symbol.map_or("", |symbol| names.get(symbol));
        self.runs.sort_unstable_by(|a, b| {
            let order = |run: &Run| (run.number, order_of(run.part, names));
            // Of two records of one run that of its end was written later.
            let late = |run: &Run| {
                let told = (run.ended.get(), run.elapsed.get(), run.cpu_millis.get());
                Reverse((run.is_ended(), told, run.failed_steps.get(), run.task_memory.get()))
            };
            (order(a), text(a.cluster), since(a))
                .cmp(&(order(b), text(b.cluster), since(b)))
                .then_with(|| late(a).cmp(&late(b)))
                // Of two that contradict each other the same one, whichever came first.
                .then_with(
                    || if a == b { Ordering::Equal } else { a.told(names).cmp(&b.told(names)) },
                )
        });
        let before = self.runs.len();
        self.runs.dedup_by_key(|run| key(run));
        self.rows.repeated += (before - self.runs.len()) as u64;
        for index in 0..self.runs.len().saturating_sub(1) {
            let (run, next) = (self.runs[index], self.runs[index + 1]);
            self.runs[index].earlier = is_earlier_run(&run, &next);
        }
        if let Some(last) = self.runs.last_mut() {
            last.earlier = false;
        }
    }

    /// Adds what steps used to the runs, which are settled: to the run of the owner in whose span
    /// the step began.
    pub fn add_steps(&mut self, mut steps: Vec<(Owner, StepUse)>) {
        steps.sort_unstable_by_key(|(owner, _)| *owner);
        let (mut used, mut runs, mut first) = (Vec::new(), Vec::new(), 0);
        for group in steps.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((owner, _)) = group.first() else { continue };
            let of_part = |run: &Run| (run.number, run.part).cmp(&(owner.number, owner.part));
            // Both are in order, so neither is searched.
            first += self.runs[first..].iter().take_while(|run| of_part(run).is_lt()).count();
            let those =
                self.runs[first..].iter().take_while(|run| of_part(run).is_eq()).zip(first..);
            runs.clear();
            runs.extend(those.filter(|(run, _)| run.cluster == owner.cluster).map(|(_, at)| at));
            if runs.is_empty() {
                self.rows.orphans += group.len() as u64;
            }
            for index in &runs {
                used.clear();
                let its = group.iter().filter(|(_, step)| self.run_of(step, &runs) == Some(*index));
                used.extend(its.map(|(_, step)| *step));
                let given = used.len();
                self.runs[*index].add_steps(&mut used);
                self.rows.repeated += (given - used.len()) as u64;
            }
        }
    }

    /// Which of the runs of one job a step is of: that in whose span it began, or the nearest, as
    /// clocks of controller and nodes differ; of two the later.
    fn run_of(&self, step: &StepUse, runs: &[usize]) -> Option<usize> {
        if let [only] = runs {
            return Some(*only);
        }
        let distance = |index: &&usize| {
            let run = &self.runs[**index];
            let Some(begun) = run.started.get() else { return u32::MAX };
            let Some(at) = step.started.get() else { return 0 };
            let end = run.ended.get().unwrap_or(u32::MAX);
            begun.saturating_sub(at).max(at.saturating_sub(end))
        };
        runs.iter().rev().min_by_key(distance).copied()
    }
}

fn order_of(part: Part, names: &Names) -> (u8, u32, &str) {
    match part {
        Part::Whole => (0, 0, ""),
        Part::Task(task) => (1, task, ""),
        Part::Component(component) => (2, component, ""),
        Part::Tasks(tasks) => (3, 0, names.get(tasks)),
    }
}

/// Whether the next record is of the same job, requeued.
fn is_earlier_run(run: &Run, next: &Run) -> bool {
    let same_job = (run.number, run.part, run.cluster) == (next.number, next.part, next.cluster);
    let same_owner = match (run.uid.get(), next.uid.get()) {
        (Some(one), Some(other)) => one == other,
        _ => run.user == next.user,
    };
    let end = run.ended.or(run.started).or(run.submitted);
    let near = match (end.get(), since(next)) {
        (Some(end), Some(came)) => came.saturating_sub(end) <= REQUEUE_GAP,
        _ => true,
    };
    same_job && same_owner && near && run.name == next.name
}

impl Run {
    /// All that it says, to be compared.
    fn told(&self, names: &Names) -> Vec<String> {
        self.flat(names).map(|(_, value)| value.to_string()).collect()
    }

    /// Changes every symbol, to those of another set of names.
    fn each_symbol(&mut self, change: &mut dyn FnMut(Symbol) -> Symbol) {
        let symbols = [
            &mut self.cluster,
            &mut self.name,
            &mut self.user,
            &mut self.account,
            &mut self.partition,
            &mut self.qos,
            &mut self.submit_line,
            &mut self.work_dir,
            &mut self.node_list,
            &mut self.failed_node,
            &mut self.reason,
            &mut self.gpu_type,
            &mut self.state_text,
        ];
        for symbol in symbols.into_iter().flatten() {
            *symbol = change(*symbol);
        }
        if let Part::Tasks(tasks) = &mut self.part {
            *tasks = change(*tasks);
        }
    }
}
