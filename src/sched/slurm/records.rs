//! Records of `sacct --duplicates` into jobs: which row is which run, and whose each step is.
//!
//! Facts: `man sacct`, data seen in Slurm 20.11 to 26.05. One id may have several rows: the runs of
//! a requeued job (each with its own submit time, within seconds of the end of the one before), or
//! a job of years ago whose number came round again. Only the first kind is an earlier run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::model::{
    Bytes, Exit, IdError, Job, JobId, Known, Notice, Part, Source, Span, State, Step, StepId, Tres,
    Usage,
};

use super::fields::{Field, Layout};
use super::jobstats;
use super::nodes;
use super::quirks;
use super::rows::Row;
use super::values;

/// A requeue is submitted when the run before it ends; longer apart, the number was reused.
const REQUEUE_GAP: SignedDuration = SignedDuration::from_hours(24);
/// Clocks of controller and node may differ by this much.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_secs(60);

/// What the release means for reading a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sched) struct Reading {
    /// Exit codes of 128 and more were printed minus 128.
    pub(super) folded: bool,
    /// A CPU time of zero may be one that was lost.
    pub(super) cpu_time_lost: bool,
    /// The use of GPUs is the sum over all of a step; before 24.05 it was that of one of them.
    pub(super) sums_gpus: bool,
}

/// A step that waits for its run.
struct Loose {
    step: Step,
    started: Option<Timestamp>,
    /// The job row it followed, as an index into the runs of its id.
    after: Option<usize>,
}

#[derive(Default)]
struct Runs {
    runs: Vec<Job>,
    steps: Vec<Loose>,
}

/// Whether any row shows an exit code, so that it matters how codes are printed.
pub(super) fn has_exit_code(rows: &[Row<'_>]) -> bool {
    let code = |text: &str| text.split_once(':').is_some_and(|(code, _)| code != "0");
    rows.iter().any(|row| code(row.get(Field::Exit)) || code(row.get(Field::DerivedExit)))
}

/// One job per id, in the order of the records, with steps and earlier runs.
pub(super) fn jobs(rows: &[Row<'_>], reading: Reading) -> (Vec<Job>, Vec<Notice>) {
    let mut records = Records::new(reading);
    for row in rows {
        records.add(row);
    }
    records.finish()
}

/// Jobs that are put together while their rows come.
pub(super) struct Records {
    reading: Reading,
    found: Vec<(JobId, Runs)>,
    places: BTreeMap<JobId, usize>,
}

impl Records {
    pub(super) fn new(reading: Reading) -> Self {
        Self { reading, found: Vec::new(), places: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, row: &Row<'_>) {
        let (found, reading) = (&mut self.found, self.reading);
        // `rows` lets only records pass that begin with an id.
        let Ok((id, step)) = JobId::parse_with_step(row.get(Field::Id)) else { return };
        let place = *self.places.entry(id.clone()).or_insert_with(|| {
            found.push((id.clone(), Runs::default()));
            found.len() - 1
        });
        let runs = &mut found[place].1;
        match step {
            None => runs.runs.push(job(row, id, reading)),
            Some(step) => runs.steps.push(Loose {
                step: read_step(row, step, reading),
                started: values::time(row.get(Field::Start)).get(),
                after: runs.runs.len().checked_sub(1),
            }),
        }
    }

    /// The jobs, and what to say beside them.
    pub(super) fn finish(self) -> (Vec<Job>, Vec<Notice>) {
        let mut notices = Vec::new();
        let found = self.found.into_iter();
        let jobs = found.filter_map(|(id, runs)| runs.join(&id, &mut notices)).collect();
        (jobs, notices)
    }
}

/// One job from the fields of its record by Slurm's names, as of a release that is not known. The
/// peak of memory is a step's: it becomes that of the batch step.
pub(super) fn from_fields(fields: &BTreeMap<String, String>) -> Result<Job, IdError> {
    let mut fields = fields.clone();
    // The same number under two names (`man sacct`).
    if let Some(cpus) = fields.get("NCPUS").cloned() {
        fields.entry("AllocCPUS".to_owned()).or_insert(cpus);
    }
    let layout = Layout::whole();
    let reading = Reading { folded: true, cpu_time_lost: false, sums_gpus: false };
    let row = Row::from_fields(&layout, &fields);
    let (id, _) = JobId::parse_with_step(row.get(Field::Id))?;
    let mut job = job(&row, id, reading);
    if !row.get(Field::MaxRss).is_empty() {
        fields.insert("JobName".to_owned(), "batch".to_owned());
        let batch = Row::from_fields(&layout, &fields);
        job.steps.push(read_step(&batch, StepId("batch".to_owned()), reading));
    }
    Ok(job)
}

impl Runs {
    /// The newest run, with its earlier ones; `None` when there are only steps.
    fn join(self, id: &JobId, notices: &mut Vec<Notice>) -> Option<Job> {
        let mut runs = self.runs;
        for Loose { step, started, after } in self.steps {
            let holds = |run: &Job| match (run.started.get(), started) {
                (Some(begin), Some(at)) => {
                    // Differences, not sums: a time may be the last that there is.
                    begin.duration_since(at) <= CLOCK_SLACK
                        && run.ended.get().is_none_or(|end| at.duration_since(end) <= CLOCK_SLACK)
                }
                _ => true,
            };
            let after = after.filter(|index| holds(&runs[*index]));
            let owner =
                after.or_else(|| runs.iter().rposition(holds)).or(runs.len().checked_sub(1));
            match owner {
                Some(owner) => runs[owner].steps.push(step),
                None => notices.push(Notice::warning(
                    "unreadable-rows",
                    format!("step {id}.{} has no job record; it is left out", step.id),
                )),
            }
        }
        runs.sort_by_key(|run| run.submitted.get());
        let mut newest = runs.pop()?;
        while let Some(run) = runs.pop() {
            let later = newest.earlier.first().unwrap_or(&newest);
            if !is_earlier_run(&run, later) {
                notices.push(Notice::info(
                    "reused-id",
                    format!(
                        "the number of job {id} was used before by another job; this is the newest"
                    ),
                ));
                break;
            }
            newest.earlier.insert(0, run);
        }
        Some(newest)
    }
}

fn is_earlier_run(run: &Job, later: &Job) -> bool {
    let same_owner = match (run.uid.get(), later.uid.get()) {
        (Some(one), Some(other)) => one == other,
        _ => run.user == later.user,
    };
    let end = run.ended.get().or(run.started.get()).or(run.submitted.get());
    let near = match (end, later.submitted.get()) {
        (Some(end), Some(submitted)) => submitted.duration_since(end) <= REQUEUE_GAP,
        _ => true,
    };
    same_owner && near
}

/// One row of a job as a run without steps.
pub(super) fn job(row: &Row<'_>, id: JobId, reading: Reading) -> Job {
    let state = State::parse(row.get(Field::State));
    let over = is_over(&state, row);
    let started = values::time(row.get(Field::Start));
    let has_begun = started.is_value();
    let raw_id = match id.part {
        Part::Whole => Known::NotGathered,
        _ => values::count(row.get(Field::RawId)),
    };
    let exited = exit(row, Field::Exit, over, reading);
    Job {
        raw_id,
        name: row.get(Field::Name).to_owned(),
        user: values::text(row.get(Field::User)),
        uid: values::count(row.get(Field::Uid)),
        account: values::text(row.get(Field::Account)),
        cluster: values::text(row.get(Field::Cluster)),
        partition: values::text(row.get(Field::Partition)),
        qos: values::text(row.get(Field::Qos)),
        derived_exit: exit(row, Field::DerivedExit, over, reading),
        reason: values::word(row.get(Field::Reason))
            .filter(|reason| !quirks::is_no_reason(reason, exited.get())),
        exit: exited,
        submitted: values::time(row.get(Field::Submit)),
        eligible: values::time(row.get(Field::Eligible)),
        ended: values::time(row.get(Field::End)),
        elapsed: if has_begun { values::span(row.get(Field::Elapsed)) } else { Known::NotGathered },
        suspended: values::span(row.get(Field::Suspended)),
        energy: values::joules(row.get(Field::Energy)),
        exclusive: values::exclusive(row.get(Field::Exclusive), row.get(Field::SubmitLine)),
        measured: jobstats::read(row.get(Field::AdminComment)),
        admin_comment: values::text(row.get(Field::AdminComment)),
        recorded: row.others(),
        started,
        limit: values::span(row.get(Field::Limit)),
        cpu_time: if has_begun { cpu_time(row, over, reading) } else { Known::NotGathered },
        requested_memory: values::requested_memory(row.get(Field::RequestedMemory)),
        nodes: positive(values::count(row.get(Field::Nodes))),
        cpus: positive(values::count(row.get(Field::Cpus))),
        requested: Tres::parse(row.get(Field::Requested)),
        allocated: Tres::parse(&allocated(row)),
        node_list: values::word(row.get(Field::NodeList)),
        failed_node: values::word(row.get(Field::FailedNode)),
        constraints: values::text(row.get(Field::Constraints)),
        restarts: values::count(row.get(Field::Restarts)),
        submit_line: values::text(row.get(Field::SubmitLine)),
        work_dir: values::text(row.get(Field::WorkDir)),
        stdout: values::text(row.get(Field::Stdout)),
        stderr: values::text(row.get(Field::Stderr)),
        comment: values::text(row.get(Field::Comment)),
        ..Job::bare(id, state, Source::Accounting)
    }
}

fn read_step(row: &Row<'_>, id: StepId, reading: Reading) -> Step {
    let state = State::parse(row.get(Field::State));
    let over = is_over(&state, row);
    Step {
        name: row.get(Field::Name).to_owned(),
        exit: exit(row, Field::Exit, over, reading),
        elapsed: values::span(row.get(Field::Elapsed)),
        started: values::time(row.get(Field::Start)),
        ended: values::time(row.get(Field::End)),
        cpu_time: cpu_time(row, over, reading),
        tasks: values::count(row.get(Field::Tasks)),
        nodes: positive(values::count(row.get(Field::Nodes))),
        cpus: positive(values::count(row.get(Field::Cpus))),
        node_list: values::word(row.get(Field::NodeList)),
        max_rss: measured(values::bytes(row.get(Field::MaxRss))),
        max_rss_node: values::word(row.get(Field::MaxRssNode)),
        submit_line: values::text(row.get(Field::SubmitLine)),
        stdout: values::text(row.get(Field::Stdout)),
        stderr: values::text(row.get(Field::Stderr)),
        allocated: Tres::parse(&allocated(row)),
        usage: usage(row, reading),
        recorded: row.others(),
        ..Step::bare(id, state)
    }
}

/// What was allocated. The GPUs of a Slurm before 20.11 may stand in the list of generic resources
/// alone, as in `gpu:tesla:4(S:0-1)`.
pub(super) fn allocated<'r>(row: &'r Row<'_>) -> Cow<'r, str> {
    let list = row.get(Field::Allocated);
    let generic = row.get(Field::AllocatedGres);
    if generic.is_empty() || list.contains("gres/gpu") {
        return list.into();
    }
    let mut list = list.to_owned();
    for entry in nodes::entries(generic).iter().filter(|entry| entry.name == "gpu") {
        let model = entry.model.map_or_else(String::new, |model| format!(":{model}"));
        let comma = if list.is_empty() { "" } else { "," };
        list.push_str(&format!("{comma}gres/gpu{model}={}", entry.count));
    }
    list.into()
}

/// What was measured of a step, as far as it was asked for.
fn usage(row: &Row<'_>, reading: Reading) -> Usage {
    let mut total = Tres::parse(row.get(Field::TotalIn));
    let gpus = Tres::parse(&allocated(row)).gpus();
    // Of several GPUs, or of nobody knows how many, it may be that of one; more than one can give
    // is a sum whoever printed it.
    let is_of_one = |percent: &String| percent.parse().is_ok_and(|percent: u64| percent <= 100);
    if !reading.sums_gpus && gpus != Some(1) && total.0.get("gres/gpuutil").is_some_and(is_of_one) {
        total.0.remove("gres/gpuutil");
    }
    // Releases before lost what they had measured: then both print as zero.
    let is_zero = |name| total.get(name) == Some("0");
    if !reading.sums_gpus && is_zero("gres/gpuutil") && is_zero("gres/gpumem") {
        total.0.remove("gres/gpuutil");
        total.0.remove("gres/gpumem");
    }
    Usage {
        total,
        most: Tres::parse(row.get(Field::MostIn)),
        average: Tres::parse(row.get(Field::AverageIn)),
        total_out: Tres::parse(row.get(Field::TotalOut)),
        user_cpu: values::span(row.get(Field::UserCpu)),
        system_cpu: values::span(row.get(Field::SystemCpu)),
        average_cpu: values::span(row.get(Field::AverageCpu)),
        least_cpu: values::span(row.get(Field::LeastCpu)),
        least_cpu_node: values::word(row.get(Field::LeastCpuNode)),
        average_rss: measured(values::bytes(row.get(Field::AverageRss))),
        page_faults: values::count(row.get(Field::PageFaults)),
        read: values::bytes(row.get(Field::Read)),
        written: values::bytes(row.get(Field::Written)),
        energy: values::joules(row.get(Field::Energy)),
    }
}

/// A requeued run is over although its job waits again.
fn is_over(state: &State, row: &Row<'_>) -> bool {
    state.is_ended() || values::time(row.get(Field::End)).is_value()
}

/// Before the end `0:0` is only a place holder.
fn exit(row: &Row<'_>, field: Field, over: bool, reading: Reading) -> Known<Exit> {
    if over { values::exit(row.get(field), reading.folded) } else { Known::NotGathered }
}

/// Zero is no measurement while the work runs, and in releases that lose it.
fn cpu_time(row: &Row<'_>, over: bool, reading: Reading) -> Known<Span> {
    match values::span(row.get(Field::CpuTime)) {
        Known::Value(span) if span == Span::default() && (!over || reading.cpu_time_lost) => {
            Known::NotGathered
        }
        known => known,
    }
}

/// Where the sampler had not run yet it prints zero: no step uses no memory.
fn measured(bytes: Known<Bytes>) -> Known<Bytes> {
    if bytes == Known::Value(Bytes(0)) { Known::NotGathered } else { bytes }
}

/// No job has zero nodes or CPUs: zero says that none were assigned.
fn positive(count: Known<u64>) -> Known<u64> {
    if count == Known::Value(0) { Known::NotGathered } else { count }
}
