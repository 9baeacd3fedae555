//! What somebody has at hand, without any accounting: logs, or a text that was pasted.

use std::path::{Path, PathBuf};

use super::closest::Finder;
use super::reading::{quote_tails, read_logs};
use super::surroundings::AtHand;
use super::{
    Diagnoses, Diagnosis, Engine, add_beside, bare, ended_well, facts_of, fix, offers, one,
};
use crate::answer::{AnswerError, World, mask};
use crate::classify;
use crate::host::{Content, FileError, FileErrorKind};
use crate::logs::Located;
use crate::model::{Exit, Job, JobId, Outcome, Source, State};
use crate::sched::slurm;

/// Logs without accounting.
#[derive(Debug)]
pub struct Given {
    /// The logs, in order.
    pub logs: Vec<PathBuf>,
    /// The batch script.
    pub script: Option<PathBuf>,
    /// How the job ended. Where neither this nor its exit is known, the logs themselves say it.
    pub state: Option<State>,
    /// Its exit.
    pub exit: Option<Exit>,
}

/// Diagnoses logs without any accounting.
pub fn diagnose_given(world: World<'_>, given: &Given) -> Result<Diagnoses, AnswerError> {
    let (engine, mut notices) = Engine::start(world)?;
    let state = match (&given.state, given.exit) {
        (Some(state), _) => state.clone(),
        (None, Some(exit)) if exit.is_clean() => State::parse("COMPLETED"),
        (None, Some(_)) => State::parse("FAILED"),
        (None, None) => State::parse(""),
    };
    let mut job = Job::bare(JobId::whole(0), state, Source::Given);
    job.exit = given.exit.into();
    let mut logs = Vec::new();
    let mut refused = None;
    for path in &given.logs {
        let opened = open_given(world, path);
        let is_piped = path.as_os_str() == "-";
        if is_piped && opened.as_ref().is_ok_and(|content| content.size() == 0) {
            return Err(AnswerError::NothingToRead("standard input"));
        }
        refused = refused.or_else(|| opened.as_ref().err().cloned());
        let name = if is_piped { Path::new("standard input") } else { path };
        logs.push(Located::given(name, opened));
    }
    // Of several files the others are an answer; if none can be read, that is the answer.
    if let Some(error) = refused
        && logs.iter().all(|log| log.found.is_err())
    {
        return Err(error.into());
    }
    let nothing_else = given.state.is_none() && given.exit.is_none();
    if let Some(diagnoses) = nothing_else.then(|| pasted(&engine, &logs)).flatten() {
        notices.extend(engine.model_notice());
        return Ok(Diagnoses {
            schema: "jobwise/diagnose/1",
            arrays: Vec::new(),
            diagnoses,
            failures: Vec::new(),
            scores: false,
            notices,
        });
    }
    let script = match &given.script {
        None => None,
        Some(path) => {
            let content = world.cluster.open(path)?;
            let bytes = content
                .read_all(SCRIPT_LIMIT)
                .map_err(|error| AnswerError::File(FileError::from_io(path, &error)))?;
            Some(Ok((path.display().to_string(), bytes)))
        }
    };
    let mut diagnosis = one(&engine, job, &mut AtHand { logs, script });
    Finder::new(&engine).add(&mut diagnosis);
    notices.extend(engine.model_notice());
    Ok(Diagnoses {
        schema: "jobwise/diagnose/1",
        arrays: Vec::new(),
        diagnoses: vec![diagnosis],
        failures: Vec::new(),
        scores: false,
        notices,
    })
}

/// Opens a file that somebody named: a file, or what is piped in where the machine itself is asked.
pub(in crate::answer) fn open_given(
    world: World<'_>,
    path: &Path,
) -> Result<Box<dyn Content>, FileError> {
    if path.as_os_str() == "-" {
        return world.machine.piped(path);
    }
    match world.cluster.open(path) {
        Err(error) if error.kind == FileErrorKind::Special && world.live => {
            world.machine.piped(path)
        }
        opened => opened,
    }
}

/// Diagnoses a text that somebody has at hand: a log, or what a submission command printed.
pub fn diagnose_text(world: World<'_>, text: &[u8]) -> Result<Diagnoses, AnswerError> {
    let (engine, mut notices) = Engine::start(world)?;
    let waiting = of_paste(&engine, &String::from_utf8_lossy(text));
    if !waiting.is_empty() {
        notices.extend(engine.model_notice());
        return Ok(Diagnoses {
            schema: "jobwise/diagnose/1",
            arrays: Vec::new(),
            diagnoses: waiting,
            failures: Vec::new(),
            scores: false,
            notices,
        });
    }
    let mut told = of_text(&engine, text);
    if offers::is_wanted(&told.verdict) {
        let text = String::from_utf8_lossy(text);
        let (found, lacking) = offers::offers(&told.verdict, &told.job, &text, &world.backend());
        told.offers = found;
        told.notices.extend(lacking);
    }
    let mut told = mask::diagnosis(told);
    Finder::new(&engine).add(&mut told);
    notices.extend(engine.model_notice());
    Ok(Diagnoses {
        schema: "jobwise/diagnose/1",
        arrays: Vec::new(),
        diagnoses: vec![told],
        failures: Vec::new(),
        scores: false,
        notices,
    })
}

/// The jobs that wait by what somebody pasted from the queue.
fn of_paste(engine: &Engine, text: &str) -> Vec<Diagnosis> {
    let jobs = slurm::pasted(text).into_iter();
    jobs.map(|job| one(engine, job, &mut AtHand::default())).collect()
}

/// The same of files, where they hold nothing else.
fn pasted(engine: &Engine, logs: &[Located]) -> Option<Vec<Diagnosis>> {
    /// A queue that was pasted is short.
    const LONGEST: u64 = 64 << 10;
    let contents = logs.iter().filter_map(|log| log.found.as_ref().ok());
    let mut written = contents.filter(|content| content.size() > 0);
    let only = written.next().filter(|content| content.size() <= LONGEST)?;
    if written.next().is_some() {
        return None;
    }
    let text = only.read_all(LONGEST).ok()?;
    let found = of_paste(engine, &String::from_utf8_lossy(&text));
    (!found.is_empty()).then_some(found)
}

/// Diagnoses a text without a job.
pub(in crate::answer) fn of_text(engine: &Engine, text: &[u8]) -> Diagnosis {
    let job = Job::bare(JobId::whole(0), State::parse(""), Source::Given);
    let located = Located::given(Path::new("text"), Ok(Box::new(text.to_vec())));
    let (scanned, mut reports) = read_logs(engine, vec![located], true);
    let facts = facts_of(&job, &scanned, &reports);
    let verdict = match facts.logs.first() {
        Some(log) => classify::decide_text(&engine.rules, log, text),
        None => classify::decide(&engine.rules, &facts),
    };
    let (verdict, ending) = ended_well(verdict, &facts);
    if verdict.outcome == Outcome::Unknown {
        quote_tails(&scanned, &mut reports, engine.tail_lines);
    }
    let mut told = Diagnosis { logs: reports, ending, ..bare(engine, job, verdict) };
    add_beside(engine, &mut told, &scanned, &AtHand::default());
    fix::fill(&mut told);
    mask::diagnosis(told)
}

/// A batch script is short; Slurm itself refuses one of more than 4 MiB.
const SCRIPT_LIMIT: u64 = 4 << 20;
