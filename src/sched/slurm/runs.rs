//! Rows of `sacct` straight into the runs of a history.
//!
//! No full record is made on the way, and nothing depends on the order of the rows: a step belongs
//! to the run of its job in whose span it began, wherever its row stands; a row that comes twice
//! counts once. What a row means is what `records` reads in it, which tests compare.

use crate::model::{
    BaseState, History, JobId, Maybe, Names, Notice, Owner, Rows, Run, RunPart, State, StepKind,
    StepUse, Symbol, busy, is_failed, is_out_of_memory,
};

use super::fields::Field;
use super::numbers::{self, Clock};
use super::quirks;
use super::records::{self, Reading};
use super::rows::Row;
use super::values;

/// A history in the making.
pub(in crate::sched) struct Loader {
    names: Names,
    runs: Vec<Run>,
    steps: Vec<(Owner, StepUse)>,
    clock: Clock,
    reading: Reading,
    /// The last symbol of each column: most rows repeat it.
    last: [Option<Symbol>; LAST],
}

/// Columns whose text becomes a symbol, each with a place in [`Loader::last`].
const LAST: usize = 16;

impl Loader {
    pub(super) fn new(reading: Reading, clock: Clock) -> Self {
        Self {
            names: Names::default(),
            runs: Vec::new(),
            steps: Vec::new(),
            clock,
            reading,
            last: [None; LAST],
        }
    }

    /// What the rows to come mean, where they are of another release.
    pub(in crate::sched) fn read_as(&mut self, reading: Reading) {
        self.reading = reading;
    }

    /// Takes a row.
    pub(super) fn add(&mut self, row: &Row<'_>) {
        let Some((number, part, step)) = self.id(row.get(Field::Id)) else { return };
        let cluster = self.word(0, row.get(Field::Cluster));
        match step {
            None => {
                let run = self.run(row, number, part, cluster);
                self.runs.push(run);
            }
            Some(step) => {
                let used = self.step(row, step);
                self.steps.push((Owner { number, part, cluster }, used));
            }
        }
    }

    /// The runs so far, in the order in which they came.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// How many rows so far were of runs or steps.
    pub(super) fn rows(&self) -> usize {
        self.runs.len() + self.steps.len()
    }

    /// How many of the times so far were local.
    pub(in crate::sched) fn local_times(&self) -> u64 {
        self.clock.local
    }

    /// Takes a run that is none of `sacct`'s rows.
    pub(in crate::sched) fn push<E>(
        &mut self,
        make: impl FnOnce(&mut Names) -> Result<Run, E>,
    ) -> Result<(), E> {
        let run = make(&mut self.names)?;
        self.runs.push(run);
        Ok(())
    }

    /// The history; `unreadable` rows are told.
    pub(in crate::sched) fn finish(self, unreadable: usize) -> History {
        let read = (self.runs.len() + self.steps.len()) as u64;
        let rows = Rows { read, unreadable: unreadable as u64, ..Rows::default() };
        let mut history = History { names: self.names, runs: self.runs, notices: Vec::new(), rows };
        history.settle();
        history.add_steps(self.steps);
        if unreadable > 0 {
            history.notices.push(super::unreadable_rows(unreadable));
        }
        if history.rows.orphans > 0 {
            let orphans = crate::text::count(history.rows.orphans, "step");
            let text = format!("{orphans} without the record of a job: left out");
            history.notices.push(Notice::warning("orphan-steps", text));
        }
        history
    }

    fn run(&mut self, row: &Row<'_>, number: u32, part: RunPart, cluster: Option<Symbol>) -> Run {
        let state = row.get(Field::State);
        let base = base(state);
        let ended = self.clock.moment(row.get(Field::End));
        let started = self.clock.moment(row.get(Field::Start));
        let over = ended.is_some() || is_ended(base);
        let list = records::allocated(row);
        let allocated = numbers::allocated(&list);
        let exit = |field| {
            if over { numbers::exit(row.get(field), self.reading.folded) } else { None }
        };
        let (exit, derived_exit) = (exit(Field::Exit), exit(Field::DerivedExit));
        let begun = started.is_some();
        let elapsed = if begun { numbers::seconds(row.get(Field::Elapsed)) } else { Maybe::NONE };
        Run {
            cluster,
            name: self.text(1, row.get(Field::Name)),
            user: self.text(2, row.get(Field::User)),
            uid: numbers::count(row.get(Field::Uid)),
            account: self.text(3, row.get(Field::Account)),
            partition: self.text(4, row.get(Field::Partition)),
            qos: self.text(5, row.get(Field::Qos)),
            submit_line: self.text(6, row.get(Field::SubmitLine)),
            work_dir: self.text(7, row.get(Field::WorkDir)),
            node_list: self.word(8, row.get(Field::NodeList)),
            failed_node: self.word(9, row.get(Field::FailedNode)),
            reason: match row.get(Field::Reason) {
                reason if quirks::is_no_reason(reason, exit) => None,
                reason => self.word(10, reason),
            },
            gpu_type: if allocated.mixed {
                let list = crate::model::Tres::parse(&list);
                list.gpu_type().map(|types| self.names.intern(&types))
            } else {
                self.text(11, allocated.gpu_type.unwrap_or(""))
            },
            state_text: self.text(12, state.trim()),
            exit,
            derived_exit,
            submitted: self.clock.moment(row.get(Field::Submit)),
            eligible: self.clock.moment(row.get(Field::Eligible)),
            started,
            ended,
            elapsed,
            suspended: numbers::seconds(row.get(Field::Suspended)),
            limit: numbers::limit(row.get(Field::Limit)),
            nodes: numbers::positive(row.get(Field::Nodes)),
            cpus: numbers::positive(row.get(Field::Cpus)),
            gpus: allocated.gpus,
            requested_memory: numbers::requested(row.get(Field::RequestedMemory)),
            allocated_memory: allocated.memory,
            cpu_millis: if begun { self.cpu(row, over) } else { Maybe::NONE },
            joules: numbers::joules(row.get(Field::Energy)),
            restarts: numbers::count(row.get(Field::Restarts)),
            out_of_memory: is_out_of_memory(base, exit),
            exclusive: {
                let submitted = row.get(Field::SubmitLine);
                values::exclusive(row.get(Field::Exclusive), submitted).get()
            },
            ..Run::bare(number, part, base)
        }
    }

    fn step(&mut self, row: &Row<'_>, id: &str) -> StepUse {
        let base = base(row.get(Field::State));
        let over = is_ended(base) || self.clock.moment(row.get(Field::End)).is_some();
        let exit =
            if over { numbers::exit(row.get(Field::Exit), self.reading.folded) } else { None };
        let used = numbers::used(row.get(Field::TotalIn));
        let out = numbers::used(row.get(Field::TotalOut));
        let gpus = numbers::allocated(&records::allocated(row)).gpus;
        let cpu = self.cpu(row, over);
        let percent = busy(used.gpu_percent, used.gpu_memory);
        let percent = percent
            .get()
            .filter(|percent| self.reading.sums_gpus || *percent > 100 || gpus.get() == Some(1));
        StepUse {
            id: self.text(13, id).unwrap_or_else(|| self.names.intern("")),
            kind: if id == "extern" { StepKind::Extern } else { StepKind::Work },
            failed: is_failed(base, exit),
            out_of_memory: is_out_of_memory(base, exit),
            started: self.clock.moment(row.get(Field::Start)),
            elapsed: numbers::seconds(row.get(Field::Elapsed)),
            cpus: numbers::positive(row.get(Field::Cpus)),
            nodes: numbers::positive(row.get(Field::Nodes)),
            tasks: numbers::count(row.get(Field::Tasks)),
            gpus,
            node_list: self.word(14, row.get(Field::NodeList)),
            gpu_percent: percent.into(),
            cpu_millis: if cpu.get() > Some(0) { cpu } else { used.cpu_millis.positive().or(cpu) },
            task_memory: numbers::memory(row.get(Field::MaxRss), 1),
            total_memory: used.memory,
            gpu_memory: used.gpu_memory,
            read: used.disk,
            written: out.disk,
            joules: numbers::joules(row.get(Field::Energy)),
        }
    }

    /// Zero is no measurement while the work runs, and in releases that lose it.
    fn cpu(&self, row: &Row<'_>, over: bool) -> Maybe<u64> {
        let cpu = numbers::millis(row.get(Field::CpuTime));
        let lost = cpu.get() == Some(0) && (!over || self.reading.cpu_time_lost);
        if lost { Maybe::NONE } else { cpu }
    }

    /// Number and part of an id, and the step behind it.
    fn id<'t>(&mut self, text: &'t str) -> Option<(u32, RunPart, Option<&'t str>)> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at(digits);
        let number: Option<u32> = number.parse().ok().filter(|number| *number > 0);
        // `rows` has seen to it that these are ids.
        match (number, rest.as_bytes().first()) {
            (Some(number), None) => return Some((number, RunPart::Whole, None)),
            (Some(number), Some(b'.')) => return Some((number, RunPart::Whole, Some(&rest[1..]))),
            _ => {}
        }
        let (id, step) = JobId::parse_with_step(text).ok()?;
        let (number, part) = RunPart::of(&id, &mut self.names)?;
        let step = step.and_then(|step| text.len().checked_sub(step.0.len()));
        Some((number, part, step.map(|at| &text[at..])))
    }

    /// Text that a user wrote, in which any word is meant.
    fn text(&mut self, place: usize, text: &str) -> Option<Symbol> {
        if text.is_empty() || text == "(null)" {
            return None;
        }
        if !self.is_last(place, text) {
            self.last[place] = Some(self.names.intern(text));
        }
        self.last[place]
    }

    fn is_last(&self, place: usize, text: &str) -> bool {
        self.last[place].is_some_and(|last| self.names.get(last) == text)
    }

    /// A name out of Slurm's own vocabulary, where some words mean nothing.
    fn word(&mut self, place: usize, text: &str) -> Option<Symbol> {
        if self.is_last(place, text) {
            return self.last[place];
        }
        let text = text.trim();
        if values::is_null(text) { None } else { self.text(place, text) }
    }
}

/// The base state of a state word; the common ones without a search.
fn base(state: &str) -> BaseState {
    match state {
        "COMPLETED" => BaseState::Completed,
        "FAILED" => BaseState::Failed,
        "CANCELLED" => BaseState::Cancelled,
        "TIMEOUT" => BaseState::Timeout,
        _ => State::parse(state).base,
    }
}

/// As [`State::is_ended`].
fn is_ended(base: BaseState) -> bool {
    use BaseState::{Other, Pending, Running, Suspended};
    !matches!(base, Pending | Running | Suspended | Other)
}

#[cfg(test)]
mod tests;
