use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;
use crate::host::{Caller, Cmd, ExecError, Finished};
use crate::model::{JobId, Known, Span, State, Step};

/// A machine that has these files, and refuses those of `/root`.
struct Machine(BTreeMap<String, String>);

struct Text(String);

impl Content for Text {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn modified(&self) -> Option<Timestamp> {
        None
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Runner for Machine {
    fn stream(&self, cmd: &Cmd, _: &mut dyn FnMut(&[u8])) -> Result<Finished, ExecError> {
        Err(ExecError::NotRecorded { command: cmd.to_string() })
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>, FileError> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        match found {
            Some((_, text)) => Ok(Box::new(Text(text.clone()))),
            None if path.starts_with("/root") => Err(FileError::new(path, FileErrorKind::Denied)),
            None => Err(FileError::new(path, FileErrorKind::Absent)),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        let names: Vec<String> = self
            .0
            .keys()
            .map(Path::new)
            .filter(|path| path.parent() == Some(directory))
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect();
        if names.is_empty() {
            return Err(FileError::new(directory, FileErrorKind::Absent));
        }
        Ok(names)
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn caller(&self) -> Caller {
        Caller { uid: 1001, name: None }
    }
}

fn machine(files: &[&str]) -> Machine {
    Machine(files.iter().map(|file| ((*file).to_owned(), String::new())).collect())
}

fn job(id: &str, submit_line: Option<&str>) -> Job {
    let id: JobId = id.parse().expect("an id");
    let mut job = Job::bare(id, State::parse("FAILED"), Source::Accounting);
    job.raw_id = Known::Value(job.id.number);
    job.name = "train".into();
    job.user = Some("alice".into());
    job.work_dir = Some("/data".into());
    job.started = Known::Value(Timestamp::UNIX_EPOCH);
    job.elapsed = Known::Value(Span::seconds(60));
    job.submit_line = submit_line.map(str::to_owned);
    job
}

fn step(id: &str, submit_line: &str) -> Step {
    Step {
        name: "x".into(),
        submit_line: Some(submit_line.into()),
        ..Step::bare(StepId(id.into()), State::parse("FAILED"))
    }
}

/// Stream, path, certainty, and whether it was found or why not.
fn seen(logs: &[Located]) -> Vec<(Stream, &str, Certainty, String)> {
    logs.iter()
        .map(|log| {
            let found = match &log.found {
                Ok(_) => "found".to_owned(),
                Err(miss) => miss.to_string(),
            };
            (log.stream, log.path.as_str(), log.certainty, found)
        })
        .collect()
}

fn found(stream: Stream, path: &str, certainty: Certainty) -> (Stream, &str, Certainty, String) {
    (stream, path, certainty, "found".to_owned())
}

/// The record and the files of lab jobs 52, 91 and 53 of Slurm 22.05.
#[test]
fn options_of_the_submission_lead_to_the_files_that_slurm_made() {
    let files = machine(&[
        "/data/fail-keyerror-52_4294967294.out",
        "/data/out dir train 91.txt",
        "/data/err train 91.txt",
    ]);
    let line = "sbatch --parsable -J train -o fail-keyerror-%A_%a.out /scripts/x.sh";
    assert_eq!(
        seen(&locate(&job("52", Some(line)), None, &files, &[])),
        [found(Stream::Output, "/data/fail-keyerror-52_4294967294.out", Certainty::Directive)]
    );

    let line = "sbatch -o x-%A.out -D /data/ -o out dir %x %j.txt -e err %x %j.txt /scripts/x.sh";
    assert_eq!(
        seen(&locate(&job("91", Some(line)), None, &files, &[])),
        [
            found(Stream::Output, "/data/out dir train 91.txt", Certainty::Directive),
            found(Stream::Error, "/data/err train 91.txt", Certainty::Directive)
        ]
    );

    let line = "sbatch -o /nonexistent/dir/%j.out /scripts/fail-outdir.sh";
    let logs = locate(&job("53", Some(line)), None, &files, &[]);
    let absent = "no such file".to_owned();
    assert_eq!(
        seen(&logs),
        [(Stream::Output, "/nonexistent/dir/53.out", Certainty::Directive, absent)]
    );
    assert_eq!(logs[0].how, "--output of the submission command");
}

/// Sites pack old logs; then the name that was asked for is gone.
#[test]
fn a_log_that_was_packed_is_found_by_its_old_name() {
    let files = machine(&["/data/a-5.out.gz", "/data/r-5-0.log", "/data/r-5-1.log.gz"]);
    let mut record = job("5", Some("sbatch -o a-%j.out -e /data/a-5.err x.sh"));
    record.steps = vec![step("0", "srun -o r-%j-%t.log ./a.out")];
    let logs = locate(&record, None, &files, &[]);
    let paths: Vec<_> =
        logs.iter().map(|log| (log.path.as_str(), log.task, log.found.is_ok())).collect();
    assert_eq!(
        paths,
        [
            ("/data/a-5.out.gz", None, true),
            ("/data/a-5.err", None, false),
            ("/data/r-5-0.log", Some(0), true),
            ("/data/r-5-1.log.gz", Some(1), true),
        ]
    );
    let guessed = machine(&["/data/train-6.err.gz"]);
    let logs = locate(&job("6", None), None, &guessed, &[]);
    let streams: Vec<_> = logs.iter().map(|log| (log.stream, log.path.as_str())).collect();
    assert!(streams.contains(&(Stream::Error, "/data/train-6.err.gz")), "{streams:?}");
}

#[test]
fn each_miss_has_its_reason() {
    let files = machine(&[]);
    let reason = |line: &str| seen(&locate(&job("7", Some(line)), None, &files, &[]))[0].3.clone();
    assert_eq!(reason("sbatch -o /root/%j.out x.sh"), "you may not read it");
    assert_eq!(reason("sbatch -o /dev/null x.sh"), "was discarded: the job sent it to /dev/null");
    let mut lost = job("7", None);
    lost.work_dir = None;
    let logs = locate(&lost, None, &files, &[]);
    assert_eq!(
        (logs[0].path.as_str(), seen(&logs)[0].3.as_str()),
        ("slurm-7.out", "is relative to a working directory that is not recorded")
    );
}

/// Slurm 24.11 and later record paths with their patterns and leave `StdErr` empty when it goes to
/// the same file; the controller tells names that are expanded already.
#[test]
fn recorded_paths_come_first_and_are_expanded_once() {
    let files = machine(&["/data/a-9_4294967294.out", "/data/100%j.out", "/data/x.err"]);
    let mut record = job("9", Some("sbatch -o other.out -e x.err run.sh"));
    record.stdout = Some("/data//a-%A_%a.out".into());
    record.stderr = Some(String::new());
    assert_eq!(
        seen(&locate(&record, None, &files, &[])),
        [found(Stream::Output, "/data//a-9_4294967294.out", Certainty::Recorded)]
    );
    record.source = Source::Controller;
    record.stdout = Some("/data/100%j.out".into());
    record.stderr = Some("/data/100%j.out".into());
    assert_eq!(
        seen(&locate(&record, None, &files, &[])),
        [found(Stream::Output, "/data/100%j.out", Certainty::Recorded)]
    );
}

#[test]
fn directives_and_then_slurms_own_names_follow() {
    let files = machine(&["/data/s-5.out", "/data/slurm-6.out", "/data/slurm-8_3.out"]);
    let asked = Asked { output: Some("s-%j.out".into()), ..Asked::default() };
    assert_eq!(
        seen(&locate(&job("5", Some("sbatch run.sh -o no")), Some(&asked), &files, &[])),
        [found(Stream::Output, "/data/s-5.out", Certainty::Directive)]
    );
    assert_eq!(
        seen(&locate(&job("6", None), None, &files, &[])),
        [found(Stream::Output, "/data/slurm-6.out", Certainty::Default)]
    );
    assert_eq!(
        seen(&locate(&job("8_3", None), None, &files, &[])),
        [found(Stream::Output, "/data/slurm-8_3.out", Certainty::Default)]
    );
    let mut lost = job("5", None);
    lost.work_dir = None;
    let asked = Asked { chdir: Some("/data".into()), ..asked };
    assert_eq!(
        seen(&locate(&lost, Some(&asked), &files, &[])),
        [found(Stream::Output, "/data/s-5.out", Certainty::Directive)]
    );
}

#[test]
fn every_task_of_a_step_with_its_own_file_is_found() {
    let files = machine(&[
        "/data/slurm-5.out",
        "/data/rank-5.0-0.log",
        "/data/rank-5.0-1.log",
        "/data/rank-5.0-10.log",
        "/data/rank-4.0-0.log",
    ]);
    let mut record = job("5", Some("sbatch run.sh"));
    record.steps = vec![
        step("batch", ""),
        step("0", "srun -n 11 -o rank-%J-%t.log -e none ./a.out -o x"),
        step("1", "srun -o all ./a.out"),
    ];
    let logs = locate(&record, None, &files, &[]);
    let steps: Vec<_> =
        logs[1..].iter().map(|log| (log.path.as_str(), log.task, log.found.is_ok())).collect();
    assert_eq!(
        steps,
        [
            ("/data/rank-5.0-0.log", Some(0), true),
            ("/data/rank-5.0-1.log", Some(1), true),
            ("/data/rank-5.0-10.log", Some(10), true),
            ("/dev/null", None, false)
        ]
    );
    assert_eq!(logs[1].step, Some(StepId("0".into())));
}

#[test]
fn a_job_without_a_script_has_no_log_of_its_own() {
    let files = machine(&[]);
    assert!(locate(&job("5", Some("salloc -n 2")), None, &files, &[]).is_empty());
    let mut record = job("5", Some("sbatch run.sh"));
    record.started = Known::NotGathered;
    record.elapsed = Known::NotGathered;
    assert!(locate(&record, None, &files, &[]).is_empty(), "it never started");
}

#[test]
fn names_with_the_id_are_guesses_of_last_resort() {
    let files = machine(&[
        "/data/fail-46_4294967294.out",
        "/data/fail-460.out",
        "/data/46.bin",
        "/logs/46.bin",
        "/logs/train.e46",
        "/logs/73_1.log",
        "/logs/73_2.log",
    ]);
    let guessed = locate(&job("46", None), None, &files, &[]);
    assert_eq!(
        seen(&guessed)[1..],
        [found(Stream::Output, "/data/fail-46_4294967294.out", Certainty::Guess)]
    );
    let logs = PathBuf::from("/logs");
    let line = Some("sbatch -o /data/fail-%A_%a.out x.sh");
    assert_eq!(
        seen(&locate(&job("46", line), None, &files, std::slice::from_ref(&logs)))[1..],
        [
            found(Stream::Output, "/logs/46.bin", Certainty::Guess),
            found(Stream::Error, "/logs/train.e46", Certainty::Guess)
        ]
    );
    let line = Some("sbatch -o /dev/null x.sh");
    assert_eq!(
        seen(&locate(&job("73_2", line), None, &files, &[logs]))[1..],
        [found(Stream::Output, "/logs/73_2.log", Certainty::Guess)]
    );
}
