//! Changes to a batch script, sized from what the job itself used and was allowed.
//!
//! Decides how much more to ask for and where that is written; refuses what could make things
//! worse: a value is never lowered, an option never added beside one that decides, a limit never
//! exceeded, and what cannot be placed with certainty is refused with the reason. Whether more is
//! the right answer at all (a hang is not a short time limit) is the verdict's to know.
//!
//! Nothing is written to disk: the result is a diff and the bytes it leads to.

mod activate;
mod env;
mod exclude;
mod make_directory;
mod memory;
mod requeue;
mod script_edit;
mod setting;
mod time;

use serde::Serialize;

use crate::model::{Bytes, Edit, Job, Limits, Pace, Span};
use script_edit::Edits;
use setting::Sources;

/// What is to be patched, and all that is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The batch script, where it is at hand.
    pub script: Option<&'a [u8]>,
    /// What the script is called in the diff.
    pub name: &'a str,
    /// The submission command; the job's own when `None`.
    pub submit_line: Option<&'a str>,
    /// The run that failed.
    pub job: &'a Job,
    /// What its partition allows.
    pub limits: Option<&'a Limits>,
    /// Memory per node that the runs of the same work ask for.
    pub memory: Option<Suggestion<'a, Bytes>>,
    /// The time limit that they ask for.
    pub time: Option<Suggestion<'a, Span>>,
    /// How far its log says that it got.
    pub pace: Option<Pace>,
    /// The node that failed, where the log names one.
    pub node: Option<&'a str>,
    /// Virtual environments that lie in the job's directory.
    pub environments: &'a [String],
    /// The directory of the logs, when it does not exist.
    pub missing_directory: Option<&'a str>,
}

/// What sizing advises, from runs of the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suggestion<'a, T> {
    /// How much.
    pub value: T,
    /// Why, in a sentence.
    pub because: &'a str,
}

/// Where a change belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The batch script; the diff shows it.
    Script,
    /// The submission command, which wins over the script.
    CommandLine,
    /// A shell, before the job is submitted.
    BeforeSubmitting,
    /// The script is not at hand: wherever the job is described.
    NotAtHand,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The edit that asked for it.
    pub edit: Edit,
    /// Where it belongs.
    pub place: Place,
    /// What stands there now, as written: `--mem=100`; `None` where nothing does.
    pub from: Option<String>,
    /// What should stand there: `--mem=200M`.
    pub to: String,
    /// Why this value.
    pub because: String,
}

/// An edit that is not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The edit.
    pub edit: Edit,
    /// Why not.
    pub why: String,
}

/// The changes proposed for one job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Patch {
    /// What changes, in the order of the edits.
    pub changes: Vec<Change>,
    /// What does not, and why.
    pub refused: Vec<Refused>,
    /// The change to the script as a unified diff.
    pub diff: Option<String>,
    /// The options to give on the submission command instead of those it has.
    pub command_line: Option<String>,
    /// How the diff differs from the script, so that it does not apply as it is.
    #[serde(skip)]
    pub altered: Option<Altered>,
    /// The script after the change.
    #[serde(skip)]
    pub patched: Option<Vec<u8>>,
}

/// Why a diff does not show a script as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Altered {
    /// A secret in it is masked.
    Secret,
    /// It holds what is no text.
    Unprintable,
}

/// What one edit comes to, before it is known whether the script can take it.
struct Proposal {
    place: Place,
    from: Option<String>,
    to: String,
    because: String,
}

/// Works out the changes. The same target and edits give the same patch; applied to the patched
/// script they give none, as far as the job's record says what it was allowed.
pub fn propose(target: &Target<'_>, edits: &[Edit]) -> Patch {
    let sources = Sources::new(target);
    let mut script = Edits::default();
    let mut patch = Patch::default();
    let mut command_line = Vec::new();
    for edit in edits {
        let outcome = match edit {
            Edit::Memory => memory::propose(target, &sources, &mut script),
            Edit::Time => time::propose(target, &sources, &mut script),
            Edit::Env { name, value } => env::propose(&sources, name, value, &mut script),
            Edit::Requeue => requeue::propose(&sources, &mut script),
            Edit::Exclude => exclude::propose(target, &sources, &mut script),
            Edit::Activate => activate::propose(target, &sources, &mut script),
            Edit::MakeDirectory => make_directory::propose(target),
        };
        match outcome {
            Ok(Proposal { place, from, to, because }) => {
                if place == Place::CommandLine {
                    command_line.push(to.clone());
                }
                patch.changes.push(Change { edit: edit.clone(), place, from, to, because });
            }
            Err(why) => patch.refused.push(Refused { edit: edit.clone(), why }),
        }
    }
    if !command_line.is_empty() {
        patch.command_line = Some(command_line.join(" "));
    }
    if let Some(before) = sources.bytes.filter(|_| !script.is_empty()) {
        let after = script.apply(before);
        let (diff, altered) = script_edit::shown(target.name, before, &after);
        (patch.diff, patch.altered) = (Some(diff), altered);
        patch.patched = Some(after);
    }
    patch
}

#[cfg(test)]
mod tests;
