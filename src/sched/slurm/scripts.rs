//! The batch script of a job: from accounting, from the controller, or the file it was submitted from.
//!
//! A file is believed only as far as its owner and its time allow: it may have been changed since. A
//! place that gave none says why.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::{Job, Part, Source};
use crate::script::parse_submit_line;

use super::fields::Field;
use super::named::{own_number, queried};
use super::{Jobs, on_cluster, stored};

/// Where a script came from that accounting had, and why one did not.
const STORED: &str = "the copy in the accounting database";
pub(super) const NOT_STORED: &str = "no script is stored for this job, or not for you";
/// A batch script is text; what is larger is not read.
const SCRIPT_LIMIT: u64 = 4 << 20;

impl Jobs<'_> {
    /// The batch script, with words that say where it came from; or every place that was looked
    /// in and why it gave none.
    pub fn script(&self, job: &Job) -> Result<(String, Vec<u8>), Vec<String>> {
        let mut doors = [Self::stored_script, Self::controlled_script, Self::script_file];
        if controller_knows(job) {
            doors.swap(0, 1);
        }
        let mut closed = Vec::new();
        for door in doors {
            match door(self, job) {
                Ok(found) => return Ok(found),
                Err(reason) => closed.push(reason),
            }
        }
        Err(closed)
    }

    fn stored_script(&self, job: &Job) -> Result<(String, Vec<u8>), String> {
        let no = |why: &dyn fmt::Display| format!("accounting: {why}");
        // Stored scripts came with the same release as the submit line.
        if !self.fields().map_err(|error| no(&error))?.has(Field::SubmitLine) {
            return Err(no(&"this Slurm stores no scripts"));
        }
        if let Some(known) = self.stored_at_once(job) {
            let bytes = known.map_err(|why| no(&why))?;
            return Ok((STORED.to_owned(), bytes));
        }
        let cmd =
            self.ask("sacct", &["--batch-script"]).arg(format!("--jobs={}", queried(&job.id)));
        let output = self.query(&on_cluster(cmd, &job.id)).map_err(|error| no(&error))?;
        let script = stored::script(&output.stdout);
        let bytes = script.ok_or_else(|| no(&NOT_STORED))?;
        Ok((STORED.to_owned(), bytes))
    }

    fn controlled_script(&self, job: &Job) -> Result<(String, Vec<u8>), String> {
        let no = |why: &dyn fmt::Display| format!("controller: {why}");
        // Where its record was wanted it was asked already, and what it gave is in the job.
        let unasked = self.records_logs() && self.may_remember(job);
        if !(unasked || controller_knows(job)) {
            return Err(no(&"it has forgotten the job"));
        }
        if !self.may_write_script() {
            return Err(no(&"it was asked for the scripts of other jobs already"));
        }
        let id = match job.id.part {
            Part::Component(_) => own_number(job).to_string(),
            _ => queried(&job.id),
        };
        let cmd = on_cluster(self.ask("scontrol", &[]), &job.id);
        let cmd = cmd.arg("write").arg("batch_script").arg(id).arg("-");
        let output = self.query(&cmd).map_err(|error| no(&error))?;
        Ok(("the copy in the controller".to_owned(), output.stdout.into_owned()))
    }

    fn script_file(&self, job: &Job) -> Result<(String, Vec<u8>), String> {
        let submitted = job.submit_line.as_deref().map(parse_submit_line);
        let submitted =
            submitted.filter(|line| line.program == "sbatch").and_then(|line| line.script);
        // What the controller shows for work without a script is no path.
        let command = job.command.clone().filter(|command| command.starts_with('/'));
        let path = command.or(submitted).ok_or("file: the submission names no script")?;
        let path = match &job.work_dir {
            Some(directory) => Path::new(directory).join(path),
            None => PathBuf::from(path),
        };
        if path.is_relative() {
            return Err(format!("file: where {} was is not known", path.display()));
        }
        self.read_script(&path, job).map_err(|why| format!("file: {why}"))
    }

    fn read_script(&self, path: &Path, job: &Job) -> Result<(String, Vec<u8>), String> {
        let content = self.runner.open(path).map_err(|error| error.to_string())?;
        let shown = path.display();
        if !self.runner.caller().may_read_for(job.uid.get(), &*content) {
            return Err(format!("{shown}: is not the job owner's file"));
        }
        if content.size() > SCRIPT_LIMIT {
            return Err(format!("{shown}: too large for a batch script"));
        }
        let bytes = content.read_all(SCRIPT_LIMIT).map_err(|error| format!("{shown}: {error}"))?;
        let changed = match (content.modified(), job.submitted.get()) {
            // Submission is known to the second only.
            (Some(modified), Some(submitted)) => modified.as_second() > submitted.as_second(),
            _ => false,
        };
        let note = if changed { ", which was changed after the job was submitted" } else { "" };
        Ok((format!("the file {shown}{note}"), bytes))
    }
}

/// Whether the controller gave a part of the record.
fn controller_knows(job: &Job) -> bool {
    job.source == Source::Controller || job.command.is_some()
}
