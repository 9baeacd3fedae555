//! Where a job's logs are.
//!
//! A ladder: what the scheduler recorded, what the submission command said, what the script says,
//! what Slurm does by itself, and last a name that holds the job's id. The first rung that says
//! anything about a stream is believed, and the answer says which it was. A file that is not there
//! is reported with its reason. The names are the job owner's choice, so one that leads whoever may
//! read more to somebody else's file is not followed; and nobody is told that a log is missing that was sent to `/dev/null`.

mod pattern;
mod submit;

use std::path::{Path, PathBuf};

pub use self::pattern::written;
use self::pattern::{Name, Writer, expand};
use self::submit::{Program, Recorded, Submitted};
use crate::host::{Content, FileError, FileErrorKind, Runner};
use crate::model::{Job, Part, Source, StepId, Stream};

/// Files taken of one pattern or directory.
const MOST: usize = 256;
/// How gzip calls what it packed.
const GZIP: &str = ".gz";
/// Folders of the working directory in which logs are often kept.
const USUAL_FOLDERS: &[&str] = &["logs", "log", "slurm_logs", "slurm", "out", "output"];

/// What a batch script's directives say about files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// `--output`
    pub output: Option<String>,
    /// `--error`
    pub error: Option<String>,
    /// `--chdir`
    pub chdir: Option<String>,
}

/// How sure it is that a file is the job's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The user named the file.
    Given,
    /// The scheduler recorded the path.
    Recorded,
    /// The submission command or the script asked for it.
    Directive,
    /// Nobody asked for anything, so it is where Slurm puts it.
    Default,
    /// Its name holds the job's id.
    Guess,
}

/// Why there is no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Miss {
    /// The job sent the stream to `/dev/null`.
    #[error("was discarded: the job sent it to /dev/null")]
    Discarded,
    /// The path is relative and no working directory is recorded.
    #[error("is relative to a working directory that is not recorded")]
    NoDirectory,
    /// Somebody else's file, which the names that the job's owner chose lead to.
    #[error("is not the job owner's file: not read; name it with --log to read it anyway")]
    NotOwners,
    /// It could not be opened.
    #[error("{}", .0.reason)]
    File(#[from] FileError),
}

/// A log, found or not.
pub struct Located {
    /// Which stream it is.
    pub stream: Stream,
    /// The path; what the record leaves open is a star.
    pub path: String,
    /// How sure it is.
    pub certainty: Certainty,
    /// Where the path comes from, in words.
    pub how: String,
    /// The step that wrote it; `None` for the batch script.
    pub step: Option<StepId>,
    /// The task that wrote it, where its name says so.
    pub task: Option<u64>,
    /// The content, or why there is none.
    pub found: Result<Box<dyn Content>, Miss>,
}

impl Located {
    /// A file that the user named. Its ending says which stream it is.
    pub fn given(path: &Path, opened: Result<Box<dyn Content>, FileError>) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self {
            stream: if is_error_file(&name) { Stream::Error } else { Stream::Output },
            path: path.display().to_string(),
            certainty: Certainty::Given,
            how: "named on the command line".to_owned(),
            step: None,
            task: None,
            found: opened.map_err(Miss::from),
        }
    }
}

/// Finds the logs of a job. `asked` is what its script says; `extra_dirs` are folders in which
/// every file counts whose name holds the job's id. Of a job that never started, nothing.
pub fn locate(
    job: &Job,
    asked: Option<&Asked>,
    runner: &dyn Runner,
    extra_dirs: &[PathBuf],
) -> Vec<Located> {
    let mut search = Search { job, runner, directory: job.work_dir.clone(), found: Vec::new() };
    if job.has_started() {
        let line = job.submit_line.as_deref();
        let submitted = line.and_then(|line| search.read_submission(line, Writer::Batch));
        if search.directory.is_none() {
            let from_script = || asked.and_then(|asked| asked.chdir.clone());
            let from_command = submitted.as_ref().and_then(|command| command.chdir.clone());
            search.directory = from_command.or_else(from_script);
        }
        search.streams(submitted.as_ref(), asked);
        search.steps();
    }
    for directory in extra_dirs {
        search.names_with_id(directory, true);
    }
    let lost = |log: &Located| log.certainty == Certainty::Default && log.found.is_err();
    if search.found.iter().filter(|log| log.step.is_none()).all(lost)
        && let Some(directory) = search.directory.clone()
        && job.has_started()
    {
        search.names_with_id(Path::new(&directory), false);
        for folder in USUAL_FOLDERS {
            search.names_with_id(&Path::new(&directory).join(folder), false);
        }
    }
    search.found
}

struct Search<'a> {
    job: &'a Job,
    runner: &'a dyn Runner,
    directory: Option<String>,
    found: Vec<Located>,
}

/// A path that something names.
struct Claim<'a> {
    stream: Stream,
    certainty: Certainty,
    how: String,
    writer: Writer<'a>,
}

impl<'a> Search<'a> {
    fn read_submission(&self, line: &str, writer: Writer<'_>) -> Option<Submitted> {
        let recorded = Recorded {
            name: Some(self.job.name.as_str()).filter(|name| !name.is_empty()),
            comment: self.job.comment.as_deref(),
            directory: self.job.work_dir.as_deref(),
        };
        submit::read(line, recorded, &|file| {
            self.names(file, writer).iter().any(|name| !self.open(name).0.is_empty())
        })
    }

    /// The two streams of the batch script.
    fn streams(&mut self, submitted: Option<&Submitted>, asked: Option<&Asked>) {
        let job = self.job;
        let by = match job.source {
            Source::Controller => "the scheduler's record of the running job",
            _ => "the accounting record",
        };
        let recorded = |path: &Option<String>| {
            path.clone().filter(|p| !p.is_empty()).map(|p| (p, Certainty::Recorded, by.to_owned()))
        };
        let said = |path: Option<&String>, what: &str, option: &str| {
            let how = format!("{option} of the {what}");
            path.cloned().map(|path| (path, Certainty::Directive, how))
        };
        let interactive = submitted.is_some_and(|command| command.program != Program::Sbatch)
            || submitted.is_none()
                && !matches!(job.id.part, Part::Component(_))
                && !job.steps.is_empty()
                && !job.steps.iter().any(|step| step.id.is_batch());
        let command = submitted.filter(|_| !interactive);

        let output = recorded(&job.stdout)
            .or_else(|| said(command?.output.as_ref(), "submission command", "--output"))
            .or_else(|| said(asked?.output.as_ref(), "batch script", "--output"))
            .or_else(|| {
                let name = match job.id.part {
                    Part::Task(_) | Part::Tasks(_) => "slurm-%A_%a.out",
                    _ => "slurm-%j.out",
                };
                let how = "Slurm's own choice where none is asked for".to_owned();
                (!interactive).then(|| (name.to_owned(), Certainty::Default, how))
            });
        // Where the record knows of output but of no error file, there is one file for both.
        let error = recorded(&job.stderr).or_else(|| {
            let unknown = job.stdout.as_ref().is_none_or(String::is_empty);
            said(command?.error.as_ref(), "submission command", "--error")
                .or_else(|| said(asked?.error.as_ref(), "batch script", "--error"))
                .filter(|_| unknown)
        });
        for (stream, claim) in [(Stream::Output, output), (Stream::Error, error)] {
            if let Some((path, certainty, how)) = claim {
                self.take(&path, Claim { stream, certainty, how, writer: Writer::Batch });
            }
        }
    }

    /// The files of steps that do not write to those of the batch script.
    fn steps(&mut self) {
        let job: &'a Job = self.job;
        for step in job.steps.iter().filter(|step| !step.id.is_batch() && !step.id.is_extern()) {
            let writer = Writer::Step(&step.id);
            let line = step.submit_line.as_deref();
            let command = line
                .and_then(|line| self.read_submission(line, writer))
                .filter(|command| command.program == Program::Srun);
            for (stream, recorded, asked) in [
                (Stream::Output, &step.stdout, command.as_ref().and_then(|c| c.output.as_ref())),
                (Stream::Error, &step.stderr, command.as_ref().and_then(|c| c.error.as_ref())),
            ] {
                let recorded = recorded.as_ref().filter(|path| !path.is_empty());
                let (path, certainty, how) = match (recorded, asked) {
                    (Some(path), _) => (path, Certainty::Recorded, "the record"),
                    (None, Some(path)) => (path, Certainty::Directive, "the command"),
                    (None, None) => continue,
                };
                // Words of srun that name no file.
                if matches!(path.as_str(), "all") || path.bytes().all(|b| b.is_ascii_digit()) {
                    continue;
                }
                let path = if path == "none" { "/dev/null" } else { path };
                let how = format!("{how} of step {}", step.id);
                self.take(path, Claim { stream, certainty, how, writer });
            }
        }
    }

    /// The names that a path may stand for, absolute where that can be.
    fn names(&self, path: &str, writer: Writer<'_>) -> Vec<Name> {
        let mut names = expand(path, self.job, writer);
        // The controller tells expanded names, and they may hold percent signs.
        let verbatim = Name::verbatim(path);
        if !names.contains(&verbatim) {
            let at = if self.job.source == Source::Controller { 0 } else { names.len() };
            names.insert(at, verbatim);
        }
        match self.directory.as_deref() {
            Some(directory) => names.into_iter().map(|name| name.below(directory)).collect(),
            None => names,
        }
    }

    /// The files by a name, each with its task, or why there is none.
    fn open(&self, name: &Name) -> (Vec<Opened>, Option<FileError>) {
        let shown = name.shown();
        let absent = || FileError::new(Path::new(&shown), FileErrorKind::Absent);
        if !name.is_absolute() {
            return (Vec::new(), Some(absent()));
        }
        if let Some(path) = name.exact() {
            return match self.open_or_packed(path) {
                Ok((path, content)) => (vec![Opened { path, task: None, content }], None),
                Err(error) => (Vec::new(), Some(error)),
            };
        }
        let Some((directory, name)) = name.split_directory() else {
            return (Vec::new(), Some(absent()));
        };
        let files = match self.runner.list(Path::new(directory)) {
            Ok(files) => files,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut fitting: Vec<(Option<u64>, String)> = files
            .into_iter()
            .filter_map(|file| {
                let fit = name.matches(&file).or_else(|| name.matches(file.strip_suffix(GZIP)?))?;
                Some((fit.task, format!("{directory}{file}")))
            })
            .collect();
        fitting.sort();
        let mut error = None;
        let mut opened = Vec::new();
        for (task, path) in fitting.into_iter().take(MOST) {
            match self.runner.open(Path::new(&path)) {
                Ok(content) => opened.push(Opened { path, task, content }),
                Err(why) => error = Some(why),
            }
        }
        let error = error.or_else(|| opened.is_empty().then(absent));
        (opened, error)
    }

    /// A file, or where there is none the one that somebody packed since.
    fn open_or_packed(&self, path: &str) -> Result<(String, Box<dyn Content>), FileError> {
        let error = match self.runner.open(Path::new(path)) {
            Ok(content) => return Ok((path.to_owned(), content)),
            Err(error) => error,
        };
        if error.kind == FileErrorKind::Absent {
            let packed = format!("{path}{GZIP}");
            if let Ok(content) = self.runner.open(Path::new(&packed)) {
                return Ok((packed, content));
            }
        }
        Err(error)
    }

    /// Adds what a claim leads to.
    fn take(&mut self, path: &str, claim: Claim<'_>) {
        if Path::new(path) == Path::new("/dev/null") {
            self.add(claim, path.to_owned(), None, Err(Miss::Discarded));
            return;
        }
        let names = self.names(path, claim.writer);
        let Some(first) = names.first() else { return };
        if !first.is_absolute() {
            let shown = first.shown();
            self.add(claim, shown, None, Err(Miss::NoDirectory));
            return;
        }
        let mut miss = None;
        for name in &names {
            let (opened, error) = self.open(name);
            if opened.is_empty() {
                miss = miss.or(error.map(|error| (name.shown(), error)));
                continue;
            }
            for file in opened {
                let claim = Claim { how: claim.how.clone(), ..claim };
                self.add(claim, file.path, file.task, Ok(file.content));
            }
            return;
        }
        if let Some((shown, error)) = miss {
            self.add(claim, shown, None, Err(error.into()));
        }
    }

    fn add(
        &mut self,
        claim: Claim<'_>,
        path: String,
        task: Option<u64>,
        found: Result<Box<dyn Content>, Miss>,
    ) {
        if self.found.iter().any(|log| Path::new(&log.path) == Path::new(&path)) {
            return;
        }
        let step = match claim.writer {
            Writer::Batch => None,
            Writer::Step(step) => Some(step.clone()),
        };
        let may_read =
            |content: &dyn Content| self.runner.caller().may_read_for(self.job.uid.get(), content);
        let found = match found {
            Ok(content) if !may_read(&*content) => Err(Miss::NotOwners),
            found => found,
        };
        let Claim { stream, certainty, how, .. } = claim;
        self.found.push(Located { stream, path, certainty, how, step, task, found });
    }

    /// Adds the files of a directory whose names hold the job's id. A folder that a person named
    /// may hold logs of any name; in others it has to look like a log.
    fn names_with_id(&mut self, directory: &Path, named: bool) {
        let Ok(files) = self.runner.list(directory) else { return };
        let fitting =
            files.into_iter().filter(|file| holds_id(file, self.job) && (named || log_like(file)));
        for file in fitting.take(MOST).collect::<Vec<_>>() {
            let path = directory.join(&file);
            let Ok(content) = self.runner.open(&path) else { continue };
            let how = format!("the job's id in its name, in {}", directory.display());
            let stream = if is_error_file(&file) { Stream::Error } else { Stream::Output };
            let claim = Claim { stream, certainty: Certainty::Guess, how, writer: Writer::Batch };
            self.add(claim, path.display().to_string(), None, Ok(content));
        }
    }
}

struct Opened {
    path: String,
    task: Option<u64>,
    content: Box<dyn Content>,
}

/// Whether a name holds the id of the job, and not only of another task of its array.
fn holds_id(file: &str, job: &Job) -> bool {
    let numbers: Vec<&str> =
        file.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).collect();
    let holds = |number: u64| {
        let text = number.to_string();
        numbers.iter().any(|digits| digits.trim_start_matches('0') == text)
    };
    match job.id.part {
        Part::Task(task) => {
            let both = numbers
                .windows(2)
                .any(|pair| pair[0].parse() == Ok(job.id.number) && pair[1].parse() == Ok(task));
            let own = job.raw_id.get().filter(|raw| *raw != job.id.number);
            both || own.is_some_and(holds)
        }
        _ => holds(job.id.number),
    }
}

/// Whether a name looks like that of a log.
fn log_like(file: &str) -> bool {
    let extension = Path::new(file.strip_suffix(GZIP).unwrap_or(file))
        .extension()
        .and_then(|ext| ext.to_str())
        .unwrap_or_default();
    let digits = extension.trim_start_matches(['o', 'e']);
    matches!(extension, "out" | "err" | "log" | "txt" | "stdout" | "stderr")
        // slurm.o123, as PBS names them
        || digits.len() < extension.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_error_file(file: &str) -> bool {
    let extension = Path::new(file.strip_suffix(GZIP).unwrap_or(file))
        .extension()
        .and_then(|ext| ext.to_str())
        .unwrap_or_default();
    extension.starts_with("err") || extension == "stderr" || {
        let digits = extension.strip_prefix('e').unwrap_or("x");
        digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}

#[cfg(test)]
mod tests;
