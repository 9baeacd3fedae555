//! Jobs that a tool submitted for their owner: what to change there, and which of its own jobs failed.

use serde::Serialize;

use super::reading::Scanned;
use super::surroundings::Surroundings;
use super::{Diagnosis, Engine, Refusable};
use crate::classify::Rules;
use crate::model::{Bytes, Edit, Job, JobId, Outcome, Span, Verdict};
use crate::patch::Change;
use crate::wrapper::{self, Seen, Setting, Tool};

/// The tool that submitted a job, and what the change is called there.
#[derive(Debug, Serialize)]
pub struct Wrapped {
    /// Its name.
    pub tool: &'static str,
    /// Where it is known from, in words.
    pub seen_in: &'static str,
    /// What to set there; empty where nothing is to be changed.
    pub settings: Vec<String>,
    /// Where its options are documented.
    pub source: &'static str,
}

/// A job that a workflow submitted, and that failed.
#[derive(Debug, Serialize)]
pub struct ChildJob {
    /// Its id.
    pub id: String,
    /// The step of the workflow, where the log names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its diagnosis, where it could be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Box<Diagnosis>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The tool that submitted a job, if one left its sign.
pub(super) fn tool(
    job: &Job,
    script: Option<&[u8]>,
    logs: &[Scanned],
) -> Option<(&'static Tool, &'static str)> {
    /// A job of a thousand ranks may have as many logs; the tool writes to the first.
    const LOGS: usize = 4;
    let script = script.map(String::from_utf8_lossy);
    let edges: Vec<String> = logs.iter().take(LOGS).map(Scanned::edges).collect();
    wrapper::recognise(&Seen {
        submission: job.submit_line.as_deref(),
        name: &job.name,
        comment: job.comment.as_deref(),
        directory: job.work_dir.as_deref(),
        script: script.as_deref(),
        logs: &edges,
    })
}

/// What the tool calls the settings that have to change.
pub(super) fn advice(
    (tool, seen_in): (&'static Tool, &'static str),
    rules: &Rules,
    told: &Diagnosis,
) -> Wrapped {
    let mut settings: Vec<String> = Vec::new();
    let mut add = |setting| {
        let text = tool.says(setting);
        if !settings.contains(&text) {
            settings.push(text);
        }
    };
    let changes = told.patch.iter().flat_map(|patch| &patch.changes);
    changes.filter_map(changed).for_each(&mut add);
    for offer in &told.offers {
        let nearest = offer.nearest.as_deref();
        match offer.what {
            Refusable::Partition => add(Setting::Partition(nearest)),
            Refusable::Account => add(Setting::Account(nearest)),
            Refusable::Qos => {}
        }
    }
    let named = matches!(told.verdict.outcome, Outcome::Cause | Outcome::Pending);
    let named = named && told.offers.is_empty();
    if let Some(cause) = told.verdict.causes.first().filter(|_| named) {
        wrapper::settings_of(&cause.family).iter().copied().for_each(&mut add);
        // A child that could not be read: its end stands in what the workflow says of it.
        let unread = told.children.iter().all(|child| child.diagnosis.is_none());
        let says = |words: &[&str]| {
            let mut texts = cause.evidence.iter().map(|evidence| evidence.text.as_str());
            texts.any(|text| words.iter().any(|word| text.contains(word)))
        };
        if unread && cause.family.0 == "workflow_engine" {
            if says(&["OUT_OF_MEMORY", "exit status (137)"]) {
                add(Setting::Memory(None));
            }
            if says(&["'TIMEOUT'"]) {
                add(Setting::Time(None));
            }
        }
        // Where the script is not at hand and nothing could be worked out, what it is about.
        if told.patch.as_ref().is_some_and(|patch| patch.changes.is_empty()) {
            let family = rules.family(&cause.family);
            for edit in family.iter().flat_map(|family| &family.edits) {
                match edit {
                    Edit::Memory => add(Setting::Memory(None)),
                    Edit::Time => add(Setting::Time(None)),
                    _ => {}
                }
            }
        }
    }
    Wrapped { tool: tool.name, seen_in, settings, source: tool.source }
}

/// The setting that a change to a script is about.
fn changed(change: &Change) -> Option<Setting<'_>> {
    let (option, value) = change.to.split_once(['=', ' ']).unwrap_or((&change.to, ""));
    Some(match &change.edit {
        // Only memory per node can be told in a tool's own unit.
        Edit::Memory => {
            let per_node = Some(value).filter(|_| option == "--mem");
            Setting::Memory(per_node.and_then(|value| Bytes::parse(value, Bytes::MIB).ok()))
        }
        Edit::Time => Setting::Time(Span::parse_limit(value).ok()),
        Edit::Requeue | Edit::Exclude => Setting::Other(&change.to),
        Edit::Env { .. } => Setting::Env(change.to.strip_prefix("export ").unwrap_or(&change.to)),
        Edit::Activate | Edit::MakeDirectory => return None,
    })
}

/// The failed jobs that the log of a workflow names, diagnosed where that can be had.
pub(super) fn children(
    engine: &Engine,
    verdict: &Verdict,
    job: &Job,
    logs: &[Scanned],
    surroundings: &impl Surroundings,
) -> Vec<ChildJob> {
    let engine_stopped = verdict.causes.first().is_some_and(|cause| {
        verdict.outcome == Outcome::Cause && cause.family.0 == "workflow_engine"
    });
    if !engine_stopped && verdict.outcome != Outcome::Unknown {
        return Vec::new();
    }
    let mut found: Vec<(JobId, Option<String>)> = Vec::new();
    for child in logs.iter().flat_map(|log| wrapper::children(&log.last_lines())) {
        let Ok(id) = child.id.parse::<JobId>() else { continue };
        let known = id.number == job.id.number || found.iter().any(|(other, _)| *other == id);
        if !known && found.len() < wrapper::MOST_CHILDREN {
            found.push((id, child.step));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let ids: Vec<JobId> = found.iter().map(|(id, _)| id.clone()).collect();
    let (mut diagnoses, trouble) = match surroundings.children(engine, &ids) {
        None => (Vec::new(), "no scheduler is asked here".to_owned()),
        Some(Err(error)) => (Vec::new(), error.to_string()),
        Some(Ok(diagnoses)) => (diagnoses, "accounting does not know it".to_owned()),
    };
    let told = found.into_iter().map(|(id, step)| {
        // Of an array that failed in one task that task.
        let own = |told: &Diagnosis| {
            told.job.id == id || told.job.id.number == id.number && told.job.state.is_failure()
        };
        let at = diagnoses.iter().position(own);
        let at = at.or_else(|| diagnoses.iter().position(|told| told.job.id.number == id.number));
        let diagnosis = at.map(|at| Box::new(diagnoses.swap_remove(at)));
        let trouble = diagnosis.is_none().then(|| trouble.clone());
        ChildJob { id: id.to_string(), step, diagnosis, trouble }
    });
    told.collect()
}
