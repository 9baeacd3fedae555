//! Jobs that wait, in what somebody pasted: rows of `squeue`, a record of `scontrol show job`, a
//! `Reason=...`, or the reason alone.
//!
//! A text is taken for one of these only where it is nothing else: each of its lines a row, a heading,
//! a record, or the command that was typed. A log that prints its queue somewhere is a log.

use super::{reasons, scontrol};
use crate::model::{Job, JobId, Source, State};

/// Longer than any queue that somebody pastes.
const LONGEST: usize = 64 << 10;
/// Rows told of one paste.
const MOST: usize = 20;

/// The jobs that wait by a pasted text; none where it is any other text.
pub fn pasted(text: &str) -> Vec<Job> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST {
        return Vec::new();
    }
    let mut lines = text.lines();
    if let (Some(only), None) = (lines.next(), lines.next()) {
        return one_line(only).into_iter().collect();
    }
    let mut jobs: Vec<Job> = Vec::new();
    let mut record = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match kind(line) {
            None => return Vec::new(),
            Some(Kind::Record) => {
                record.push_str(line);
                record.push('\n');
            }
            Some(Kind::Waits(job)) => jobs.push(*job),
            Some(Kind::Other) => {}
        }
    }
    // A record tells more of a job than its row.
    for mut job in recorded(&record) {
        // Of a text of several words a record may have only the first.
        let row = jobs.iter().find(|row| row.id == job.id);
        let unknown = job.reason.as_deref().and_then(reasons::explain).is_none();
        if let Some(row) = row.filter(|_| unknown) {
            job.reason.clone_from(&row.reason);
        }
        jobs.retain(|other| other.id != job.id && other.id.number > 0);
        jobs.push(job);
    }
    jobs.truncate(MOST);
    jobs
}

/// What a line of a paste is.
enum Kind {
    /// A row or a field of a job that waits.
    Waits(Box<Job>),
    /// Part of a record.
    Record,
    /// A heading, a row of another job, or what was typed.
    Other,
}

/// `None` for a line that belongs to none.
fn kind(line: &str) -> Option<Kind> {
    let text = line.trim();
    if let Some(job) = row(text) {
        return Some(Kind::Waits(Box::new(job)));
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let heading = words.first() == Some(&"JOBID") || words.contains(&"NODELIST(REASON)");
    let prompt = ["$ ", "# ", "> "].iter().any(|sign| text.starts_with(sign))
        || text.contains("]$ ") && text.starts_with('[');
    let typed = |words: &[&str]| words.iter().any(|word| matches!(*word, "squeue" | "scontrol"));
    let runs = words.first().is_some_and(|first| first.parse::<JobId>().is_ok())
        && words.iter().skip(1).any(|word| matches!(*word, "R" | "RUNNING" | "CG" | "COMPLETING"));
    if heading || runs || (prompt && typed(&words)) {
        return Some(Kind::Other);
    }
    let is_pair = |word: &&str| {
        let key = word.split_once('=').map(|(key, _)| key);
        key.is_some_and(|key| key.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    words.first().filter(|word| is_pair(word)).map(|_| Kind::Record)
}

/// The jobs of a pasted record that wait.
fn recorded(text: &str) -> Vec<Job> {
    let waits = |job: &Job| job.state.text.starts_with("PENDING") && job.reason.is_some();
    let jobs: Vec<Job> = scontrol::jobs(text.as_bytes()).0.into_iter().filter(waits).collect();
    let named = text.split_ascii_whitespace().find_map(|word| word.strip_prefix("JobState="));
    if jobs.is_empty() && named.is_none_or(|state| state.starts_with("PENDING")) {
        // The piece of a record that somebody thought enough.
        let id = text.split_ascii_whitespace().find_map(|word| word.strip_prefix("JobId="));
        let id = id.and_then(|id| id.parse::<JobId>().ok());
        let found = text.lines().find_map(field);
        let reason = found.and_then(|job| job.reason);
        return reason.map(|reason| waiting(id, &reason)).into_iter().collect();
    }
    jobs
}

/// A line alone: a row, a field, or the reason and nothing else.
fn one_line(line: &str) -> Option<Job> {
    let line = line.trim();
    if line.contains("JobId=") || line.contains("JobState=") {
        return recorded(line).pop();
    }
    row(line).or_else(|| field(line)).or_else(|| {
        let bare = line.strip_prefix('(').and_then(|bare| bare.strip_suffix(')')).unwrap_or(line);
        let details =
            |rest: &str| rest.is_empty() || rest.starts_with(", ") || rest.starts_with(" (");
        let word = bare.split([',', ' ']).next().unwrap_or(bare);
        let alone =
            reasons::is_reason(bare) || details(&bare[word.len()..]) && reasons::is_reason(word);
        alone.then(|| waiting(None, bare))
    })
}

/// A row of `squeue` of a job that waits: `... PD 0:00 1 (Priority)`, or `41 PENDING Priority`.
fn row(line: &str) -> Option<Job> {
    let mut words = line.split_ascii_whitespace();
    if let (Some(id), Some("PD" | "PENDING"), Some(reason), None) =
        (words.next(), words.next(), words.next(), words.next())
        && let Ok(id) = id.parse::<JobId>()
        && reasons::explain(reason).is_some()
    {
        return Some(waiting(Some(id), reason));
    }
    let open = line.find('(')?;
    let reason = line[open + 1..].trim_end().strip_suffix(')')?;
    let words: Vec<&str> = line[..open].split_ascii_whitespace().collect();
    let waits = words.iter().position(|word| matches!(*word, "PD" | "PENDING"))?;
    // Behind it stand the time, the nodes and what else was asked for: numbers.
    let figures = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit()) || word == "N/A";
    let known = reasons::explain(reason).is_some();
    (known && words[waits + 1..].iter().copied().all(figures)).then(|| {
        let id = words.first().and_then(|first| first.parse::<JobId>().ok());
        waiting(id, reason)
    })
}

/// `Reason=BadConstraints`, and what stands behind it up to the next field.
fn field(line: &str) -> Option<Job> {
    let (_, behind) = line.split_once("Reason=")?;
    let next = behind.match_indices('=').next().map(|(at, _)| &behind[..at]);
    let reason =
        next.map_or(behind, |fields| fields.rsplit_once(' ').map_or(fields, |(reason, _)| reason));
    let reason = reason.trim().replace('_', " ");
    reasons::explain(&reason).map(|_| waiting(None, &reason))
}

fn waiting(id: Option<JobId>, reason: &str) -> Job {
    let source = if id.is_some() { Source::Controller } else { Source::Given };
    let id = id.unwrap_or_else(|| JobId::whole(0));
    Job { reason: Some(reason.to_owned()), ..Job::bare(id, State::parse("PENDING"), source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(String, String)> {
        let jobs = pasted(text).into_iter();
        jobs.map(|job| (job.id.to_string(), job.reason.unwrap_or_default())).collect()
    }

    #[test]
    fn every_shape_of_a_reason_is_read() {
        let one = |id: &str, reason: &str| vec![(id.to_owned(), reason.to_owned())];
        for (text, id, reason) in [
            ("... PD 0:00 1 (AssocGrpCPUMinutesLimit)", "0", "AssocGrpCPUMinutesLimit"),
            ("  41 gpu train alice PD 0:00 2 (Priority)", "41", "Priority"),
            (
                "41_[1-9%2] gpu a b alice PENDING 0:00 1-00:00:00 2 (Resources)",
                "41_[1-9%2]",
                "Resources",
            ),
            ("41 PENDING JobHeldUser", "41", "JobHeldUser"),
            ("Reason=BadConstraints", "0", "BadConstraints"),
            ("   JobState=PENDING Reason=BadConstraints Dependency=(null)", "0", "BadConstraints"),
            ("QOSMaxGRESPerUser", "0", "QOSMaxGRESPerUser"),
            ("(Priority)", "0", "Priority"),
            ("ReqNodeNotAvail, UnavailableNodes:g03", "0", "ReqNodeNotAvail, UnavailableNodes:g03"),
            (
                "JobId=7 JobName=a\n   JobState=PENDING Reason=Licenses Dependency=(null)",
                "7",
                "Licenses",
            ),
        ] {
            assert_eq!(told(text), one(id, reason), "{text}");
        }
        let both = "$ squeue -u a\nJOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 5 b n a R 1:00 1 c201\n 6 b n a PD 0:00 8 (launch failed requeued held)\n$ scontrol show job 6\nJobId=6 JobName=n\n   JobState=PENDING Reason=launch_failed_requeued_held Dependency=(null)\n";
        assert_eq!(told(both), one("6", "launch failed requeued held"));
    }

    #[test]
    fn a_log_that_speaks_of_its_queue_is_a_log() {
        for text in [
            "Priority is given to the first sample",
            "Resources used: 5 of 9",
            "step 1\n 41 gpu train alice PD 0:00 2 (Priority)\nstep 2",
            "JobId=7 JobName=a\n   JobState=RUNNING Reason=None Dependency=(null)",
            "JobState=FAILED Reason=NonZeroExitCode",
            "waits PD because (Priority)",
            "Reason=nothing that Slurm says",
            "Dependency graph of 5 tasks",
            "",
        ] {
            assert_eq!(told(text), [], "{text}");
        }
    }

    /// The words of `job_state_reason.c` of four releases, and the free texts.
    #[test]
    fn every_reason_is_known_alone_in_a_row_and_in_a_field() {
        for reason in reasons::words() {
            assert_eq!(told(reason).len(), 1, "{reason}");
            assert_eq!(told(&format!("41 gpu t a PD 0:00 2 ({reason})")).len(), 1, "{reason}");
            assert_eq!(told(&format!("Reason={}", reason.replace(' ', "_"))).len(), 1, "{reason}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "([(){}=:, \n]|PD|JobId=|JobState=PENDING|Reason=|Priority|\\PC){0,30}") {
            pasted(&text);
        }
    }
}
