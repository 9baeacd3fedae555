//! Where can a job of this shape run, and when?
//!
//! Also `check`: what the scheduler itself says about each queue and account.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::{AnswerError, World, mask};
use crate::capacity::change::{self, Change};
use crate::capacity::free::Frees;
use crate::capacity::gates::{Gates, Kind};
use crate::capacity::rank::{self, Asked, Judged, Look, Placement, Verdict};
use crate::capacity::start::MOST_HOSTS;
use crate::hardware::Catalogue;
use crate::host::FileError;
use crate::model::{Cluster, Devices, DryRun, JobId, Notice, Shape, ShapeError};
use crate::sched::survey::{self, Candidate, Charge, Survey};
use crate::sched::{self, Backend, SchedError};
use crate::script::{self, Note, NoteKind};
use crate::text;

/// A batch script is text; what is larger is not read.
const SCRIPT_LIMIT: u64 = 4 << 20;
/// A queue is asked with at most so many ways that name a quality of service.
const NAMED_QOS: usize = 12;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// What the job asks for.
    pub shape: Shape,
    /// The script to submit, for the line to paste.
    pub script: Option<String>,
    /// Who named its partitions, in words: `the script`, `-p`.
    pub named_by: &'static str,
    /// Only these accounts are tried; empty for all of the caller's.
    pub accounts: Vec<String>,
    /// Whether the scheduler is left alone.
    pub declared: bool,
    /// Whether queues that cannot take it are told one by one, and hidden ones at all.
    pub all: bool,
    /// Whether the one change is looked for that would let it run now.
    pub what_if: bool,
}

/// Every queue with its verdict.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Places {
    /// `jobwise/where/1`.
    pub schema: &'static str,
    /// The cluster.
    pub cluster: Option<String>,
    /// When it was read.
    pub taken_at: Timestamp,
    /// The caller.
    pub user: Option<String>,
    /// What was asked for.
    pub shape: Shape,
    /// The script that is to run, where one was named.
    pub script: Option<String>,
    /// Whether it could be taken somewhere.
    pub somewhere: bool,
    /// Whether it starts somewhere at once.
    pub now: bool,
    /// The queues, best first.
    pub placements: Vec<Placement>,
    /// Other queues that would take it by rules and nodes, where those that were named do not.
    pub elsewhere: Vec<String>,
    /// Who named the queues.
    #[serde(skip)]
    pub named_by: &'static str,
    /// The change that would let it run now, where one was looked for.
    pub changes: Option<Vec<Possible>>,
    /// Dry runs made.
    pub asked: usize,
    /// Whether the scheduler could be asked.
    pub can_ask: bool,
    /// Whether queues that cannot take it are printed one by one; all are in JSON.
    #[serde(skip)]
    pub all: bool,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// A change, and what the scheduler says to it.
#[derive(Debug, Serialize)]
pub struct Possible {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// Whether the scheduler would start it now; `None` where it was not asked.
    pub confirmed: Option<bool>,
    /// The options with which to submit.
    pub submit: Vec<String>,
}

/// What the scheduler says of each queue and account.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// `jobwise/check/1`.
    pub schema: &'static str,
    /// The cluster.
    pub cluster: Option<String>,
    /// When it was asked.
    pub taken_at: Timestamp,
    /// What was asked for.
    pub shape: Shape,
    /// The best answer of each queue, those that would take it first.
    pub queues: Vec<CheckedQueue>,
    /// Dry runs made.
    pub asked: usize,
    /// Queues that would take it, and whose rules do not say otherwise.
    pub accepted: usize,
    /// Queues that gave no answer, or were not asked.
    pub unanswered: usize,
    /// What a dry run does not look at.
    pub not_covered: Vec<&'static str>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// What the scheduler says of one queue.
#[derive(Debug, Serialize)]
pub struct CheckedQueue {
    /// The queue.
    pub queue: String,
    /// The answer that says most; `None` where it was not asked.
    pub answer: Option<DryRun>,
    /// Accounts tried.
    pub tried: usize,
    /// Accounts not tried.
    pub untried: usize,
    /// Why its rules say no all the same: a dry run looks over much.
    pub but: Option<String>,
    /// Answers in which a site's filter and the scheduler say different things.
    pub disagreements: Vec<DryRun>,
}

/// The options of a script as a shape, with what in it cannot be read.
pub fn shape_of_script(world: World<'_>, path: &Path) -> Result<(Shape, Vec<Notice>), AnswerError> {
    let content = world.machine.open(path)?;
    let bytes = content.read_all(SCRIPT_LIMIT).map_err(|error| FileError::from_io(path, &error))?;
    let script = script::parse(&bytes);
    let (shape, errors) = script.shape();
    let mut notices = unreadable(&errors);
    notices.extend(mask::notices(script.notes.iter().filter_map(refused).collect()));
    Ok((shape, notices))
}

/// What a job asks for: by its script and command line, else by its record.
pub fn shape_of_job(world: World<'_>, id: &JobId) -> Result<(Shape, Vec<Notice>), AnswerError> {
    let backend = world.backend();
    let source = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let found = source.job(id)?;
    let mut notices = mask::notices(found.notices);
    let job = found.value.first().ok_or_else(|| SchedError::UnknownJob { id: id.clone() })?;
    if found.value.len() > 1 {
        let text = format!("{id} is {} records; the first is taken", found.value.len());
        notices.push(Notice::info("first-record", text));
    }
    Ok((Shape::of_job(job), notices))
}

/// What makes `sbatch` refuse the script, whatever it asks for.
fn refused(note: &Note) -> Option<Notice> {
    let then = match note.kind {
        NoteKind::UnknownOption(_) => {
            ": sbatch refuses the script, unless a plugin of the site takes it"
        }
        NoteKind::LacksValue(_) => ": sbatch refuses the script",
        NoteKind::Ambiguous(_)
        | NoteKind::NotAnOption(_)
        | NoteKind::DosLineEnds
        | NoteKind::UnmatchedQuote => "",
        _ => return None,
    };
    let text = format!("line {} of the script: {}{then}", note.line, note.kind);
    Some(Notice::warning("script-refused", text))
}

fn unreadable(errors: &[ShapeError]) -> Vec<Notice> {
    let told = errors.iter().map(|error| {
        Notice::warning("option-left-out", format!("an option of the script was left out: {error}"))
    });
    mask::notices(told.collect())
}

/// A cluster as read, and what can be asked of it.
pub(super) struct Read<'w> {
    pub(super) backend: Backend<'w>,
    pub(super) cluster: Cluster,
    pub(super) catalogue: Catalogue,
    pub(super) notices: Vec<Notice>,
}

pub(super) fn read(world: World<'_>) -> Result<Read<'_>, AnswerError> {
    let backend = world.capacity();
    let source = backend.nodes.as_ref().ok_or(SchedError::NoScheduler)?;
    let (cluster, mut notices) = super::cluster::read(source)?;
    let (catalogue, more) = Catalogue::load(world.cluster)?;
    notices.extend(more);
    Ok(Read { backend, cluster, catalogue, notices })
}

/// What to ask the queues: with the smallest job, and with the one that is wanted.
pub(super) fn candidates(read: &Read<'_>, wanted: &Wanted) -> (Vec<Candidate>, Vec<Candidate>) {
    let frees = Frees::new(&read.cluster);
    let gates = Gates::new(&read.cluster, &frees);
    let look = Look::new(&read.cluster, &frees, &gates, &read.catalogue);
    let asked = |wanted: &Wanted, all: bool| -> Vec<Candidate> {
        let judged = look.judge(&wanted.shape, true);
        let worth = judged.iter().filter(|judged| all || judged.is_worth_asking());
        worth.map(|judged| candidate(&gates, judged, wanted)).collect()
    };
    let smallest = Wanted { shape: super::access::smallest(), ..Wanted::default() };
    // `check` asks also those that are closed by their rules.
    (asked(&smallest, false), asked(wanted, true))
}

/// Asks for nothing but the record of it; how often is told.
pub(super) fn ask(read: &Read<'_>, shape: &Shape, candidates: &[Candidate]) -> usize {
    let frees = Frees::new(&read.cluster);
    let gates = Gates::new(&read.cluster, &frees);
    let shape = Look::new(&read.cluster, &frees, &gates, &read.catalogue).narrowed(shape);
    let probe = read.backend.probe.as_ref();
    probe.map_or(0, |probe| survey::survey(probe, &shape, candidates).asked)
}

/// Judges every queue for a shape, best first.
pub fn places(world: World<'_>, wanted: Wanted) -> Result<Places, AnswerError> {
    let Read { backend, cluster, catalogue, mut notices } = read(world)?;
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let look = Look::new(&cluster, &frees, &gates, &catalogue);
    let shape = &wanted.shape;
    known_names(&cluster, &frees, shape)?;
    let judged = look.judge(shape, wanted.all);
    let candidates: Vec<Candidate> = judged
        .iter()
        .filter(|judged| judged.is_worth_asking())
        .map(|judged| candidate(&gates, judged, &wanted))
        .collect();
    let probe = backend.probe.as_ref().filter(|_| !wanted.declared);
    let narrowed = look.narrowed(shape);
    let survey =
        probe.map_or_else(Survey::default, |probe| survey::survey(probe, &narrowed, &candidates));
    let mut asked = survey.asked;
    let mut placements: Vec<Placement> = judged
        .into_iter()
        .map(|judged| {
            let answer = survey.of(&judged.queue.name);
            let heard = match answer {
                _ if !survey.can_ask => Asked::No,
                Some(answered) => match &answered.best {
                    Some(best) => Asked::Yes(best, answered.untried),
                    None if answered.untried > 0 => Asked::TooMany,
                    // The recording does not hold it.
                    None => Asked::No,
                },
                None => Asked::No,
            };
            look.place(judged, &narrowed, heard)
        })
        .collect();
    rank::sort(&mut placements);
    let somewhere = placements.iter().any(|placement| placement.reachable);
    let now = placements.iter().any(|placement| placement.verdict == Verdict::RunNow);
    let elsewhere = if somewhere { Vec::new() } else { elsewhere(&look, shape) };
    let mut changes = None;
    // What fits needs no cure, whoever could not be asked.
    let fits = placements
        .iter()
        .any(|place| place.reachable && place.verdict == Verdict::NoAnswer && place.fit.now);
    if wanted.what_if && !now && !fits {
        let mut possible = Vec::new();
        for change in change::changes(&look, shape) {
            let (confirmed, submit) = confirm(&look, &gates, &change, probe, &mut asked);
            possible.push(Possible { change, confirmed, submit });
        }
        // What the scheduler starts later after all does not help now.
        possible.retain(|possible| possible.confirmed != Some(false));
        changes = Some(possible);
    }
    notices.extend(unknown_types(&cluster, shape));
    notices.extend(left_aside(shape));
    notices.extend(left_out(&cluster, &wanted));
    if !wanted.declared && !survey.can_ask && !candidates.is_empty() {
        notices.push(no_dry_run());
    }
    for placement in &mut placements {
        placement.because = text::masked(&placement.because);
    }
    Ok(Places {
        schema: "jobwise/where/1",
        cluster: cluster.name.clone(),
        taken_at: cluster.taken_at,
        user: cluster.identity.user.clone(),
        shape: wanted.shape,
        script: wanted.script,
        somewhere,
        now,
        placements,
        elsewhere,
        named_by: wanted.named_by,
        changes,
        asked,
        can_ask: survey.can_ask,
        all: wanted.all,
        notices,
    })
}

/// The queues that were not named and would take it, those with room first.
fn elsewhere(look: &Look<'_>, shape: &Shape) -> Vec<String> {
    if shape.partitions.is_empty() {
        return Vec::new();
    }
    let anywhere = Shape { partitions: Vec::new(), ..shape.clone() };
    let mut found = look.judge(&anywhere, false);
    found.retain(|judged| {
        !shape.partitions.contains(&judged.queue.name)
            && judged.access.refusals().next().is_none()
            && judged.fit.ever
    });
    found.sort_by_key(|judged| !judged.fit.now);
    found.into_iter().map(|judged| judged.queue.name.clone()).collect()
}

/// Asks the scheduler about a change; whether it would start at once, and how to submit it.
fn confirm(
    look: &Look<'_>,
    gates: &Gates<'_>,
    change: &Change,
    probe: Option<&sched::slurm::Probe<'_>>,
    asked: &mut usize,
) -> (Option<bool>, Vec<String>) {
    let Some(judged) = look.judge_one(&change.queue, &change.shape) else {
        return (None, Vec::new());
    };
    let wanted = Wanted { shape: change.shape.clone(), ..Wanted::default() };
    let candidates = [candidate(gates, &judged, &wanted)];
    let narrowed = look.narrowed(&change.shape);
    let survey = probe.map(|probe| survey::survey(probe, &narrowed, &candidates));
    let survey = survey.filter(|survey| survey.can_ask).unwrap_or_default();
    *asked += survey.asked;
    let best = survey.answers.first().and_then(|answered| answered.best.as_ref());
    let heard = best.map_or(Asked::No, |best| Asked::Yes(best, 0));
    let placement = look.place(judged, &narrowed, heard);
    (best.map(|_| placement.verdict == Verdict::RunNow), placement.submit)
}

/// Asks the scheduler about every queue, whatever its rules say.
pub fn check(world: World<'_>, wanted: &Wanted) -> Result<Checked, AnswerError> {
    let Read { backend, cluster, catalogue, mut notices } = read(world)?;
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let look = Look::new(&cluster, &frees, &gates, &catalogue);
    let shape = &wanted.shape;
    known_names(&cluster, &frees, shape)?;
    let judged = look.judge(shape, wanted.all);
    notices.extend(left_out(&cluster, wanted));
    let candidates: Vec<Candidate> =
        judged.iter().map(|judged| candidate(&gates, judged, wanted)).collect();
    let probe = backend.probe.as_ref().ok_or(AnswerError::NoDryRun)?;
    let survey = survey::survey(probe, &look.narrowed(shape), &candidates);
    if !survey.can_ask {
        return Err(AnswerError::NoDryRun);
    }
    let mut queues: Vec<CheckedQueue> = survey
        .answers
        .into_iter()
        .zip(&judged)
        .map(|(answered, judged)| {
            let refusal = judged.access.refusals().next();
            let taken = answered.best.as_ref().is_some_and(DryRun::is_taken);
            CheckedQueue {
                queue: answered.queue,
                answer: answered.best,
                tried: answered.tried,
                untried: answered.untried,
                but: refusal
                    .filter(|_| taken)
                    .map(|gate| format!("{} ({})", gate.text, gate.source)),
                disagreements: answered.disagreements,
            }
        })
        .collect();
    queues.sort_by_key(|queue| {
        let weight = queue.answer.as_ref().map_or(0, DryRun::weight);
        (queue.but.is_some() || weight < 3, std::cmp::Reverse(weight), queue.queue.clone())
    });
    let accepts = |queue: &&CheckedQueue| {
        queue.but.is_none() && queue.answer.as_ref().is_some_and(DryRun::is_taken)
    };
    let silent = |queue: &&CheckedQueue| queue.answer.as_ref().is_none_or(rank::is_silent);
    let mut not_covered = vec![
        "limits of a QOS, budgets, closed accounts and partitions that are down: a scheduler that lets such jobs wait says yes to them",
    ];
    if shape.gpu_memory.is_some() || !shape.needs.is_empty() {
        not_covered.push("--gpu-mem and --needs: the scheduler knows neither");
    }
    notices.extend(unknown_types(&cluster, shape));
    notices.extend(left_aside(shape));
    Ok(Checked {
        schema: "jobwise/check/1",
        cluster: cluster.name.clone(),
        taken_at: cluster.taken_at,
        shape: shape.clone(),
        accepted: queues.iter().filter(accepts).count(),
        unanswered: queues.iter().filter(silent).count(),
        queues,
        asked: survey.asked,
        not_covered,
        notices,
    })
}

/// The ways to ask a queue, the most promising first.
fn candidate(gates: &Gates<'_>, judged: &Judged<'_>, wanted: &Wanted) -> Candidate {
    let shape = &wanted.shape;
    let listed = |account: &Option<String>| {
        wanted.accounts.is_empty()
            || account.as_ref().is_some_and(|account| wanted.accounts.contains(account))
    };
    let best = judged.access.way.clone();
    let mut named = 0;
    let mut charges: Vec<Charge> = Vec::new();
    for way in std::iter::once(best).chain(gates.ways(judged.queue, Some(shape))) {
        named += usize::from(way.names_qos);
        if !listed(&way.account) || (way.names_qos && named > NAMED_QOS) {
            continue;
        }
        // What its rules refuse for this way alone is not worth a dry run.
        let asked = Shape { account: way.account.clone(), qos: way.qos.clone(), ..shape.clone() };
        let refused = gates.access(judged.queue, Some(&asked)).has(Kind::Fatal);
        let names_account = way.names_account || !wanted.accounts.is_empty();
        let charge = Charge {
            account: way.account.filter(|_| names_account),
            qos: way.qos.filter(|_| way.names_qos),
        };
        if !charges.contains(&charge) && (!refused || charges.is_empty()) {
            charges.push(charge);
        }
    }
    if charges.is_empty() {
        charges.push(Charge { account: shape.account.clone(), qos: shape.qos.clone() });
    }
    Candidate { queue: judged.queue.name.clone(), charges }
}

/// Every queue and every node that is named must be there: `sbatch` refuses a job that names another.
fn known_names(cluster: &Cluster, frees: &Frees<'_>, shape: &Shape) -> Result<(), AnswerError> {
    known_queues(cluster, &shape.partitions)?;
    for list in shape.exclude.iter().chain(&shape.nodelist) {
        let hosts = text::expand(list, MOST_HOSTS).unwrap_or_default();
        if let Some(name) = hosts.into_iter().find(|host| frees.named(host).is_none()) {
            let known = cluster.nodes.iter().map(|node| node.name.as_str());
            let nearest = text::did_you_mean(&name, known).map(str::to_owned);
            return Err(AnswerError::UnknownNode { name, nearest });
        }
    }
    Ok(())
}

/// Every queue that is named must be there.
pub(super) fn known_queues(cluster: &Cluster, names: &[String]) -> Result<(), AnswerError> {
    let known = || cluster.queues.iter().map(|queue| queue.name.as_str());
    match names.iter().find(|name| cluster.queue(name).is_none()) {
        None => Ok(()),
        Some(name) => Err(AnswerError::UnknownQueue {
            name: name.clone(),
            nearest: text::did_you_mean(name, known()).map(str::to_owned),
        }),
    }
}

/// A type that no node has, with those that there are, as they are typed.
fn unknown_types(cluster: &Cluster, shape: &Shape) -> Vec<Notice> {
    let mut notices = Vec::new();
    for Devices { name, kind, .. } in &shape.devices {
        let Some(kind) = kind else { continue };
        let all =
            cluster.nodes.iter().flat_map(|node| &node.gres).filter(|gres| gres.name == *name);
        let types: BTreeSet<&str> = all.filter_map(|gres| gres.model.as_deref()).collect();
        if types.is_empty() || types.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            continue;
        }
        let types: Vec<&str> = types.into_iter().collect();
        let what = if name == "gpu" { "GPU" } else { name };
        let text =
            format!("no {what} here is of type {kind}; they are {}", text::join(&types, "or"));
        notices.push(Notice::warning("unknown-type", text));
    }
    notices
}

fn left_aside(shape: &Shape) -> Option<Notice> {
    let options: Vec<String> = shape.unweighed.iter().map(|option| format!("--{option}")).collect();
    (!options.is_empty()).then(|| {
        let text = format!("not weighed: {}", text::join(&options, "and"));
        Notice::info("not-weighed", text)
    })
}

/// Partitions that the site hides are told only where that is asked for.
fn left_out(cluster: &Cluster, wanted: &Wanted) -> Option<Notice> {
    let hidden = cluster.queues.iter().filter(|queue| queue.is_hidden).count();
    let is_told = wanted.all || hidden == 0 || !wanted.shape.partitions.is_empty();
    (!is_told).then(|| {
        let what = text::count(hidden as u64, "hidden partition");
        Notice::info("hidden", format!("{what} left out: --all, or -p with the name"))
    })
}

fn no_dry_run() -> Notice {
    let text = "the scheduler could not be asked: no dry run is possible here";
    Notice::info("no-dry-run", text.to_owned())
}
