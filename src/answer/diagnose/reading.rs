//! Reading the logs of a job: one pass over each, and what to say of those that gave less than all.

use rayon::prelude::*;

use super::{Engine, LogReport, Quoted};
use crate::host::{Content, Unpacked, is_packed};
use crate::logs::{self, Line, Located, Scan, Scanner};
use crate::model::{Job, Known, Notice, StepId, Stream};
use crate::text;

/// A log that was read.
pub(super) struct Scanned {
    pub(super) path: String,
    pub(super) stream: Stream,
    pub(super) step: Option<StepId>,
    pub(super) task: Option<u64>,
    pub(super) scan: Scan,
}

/// Reads every log that was found; of each there is a report, of those that were read a scan.
pub(super) fn read_logs(engine: &Engine, located: Vec<Located>) -> (Vec<Scanned>, Vec<LogReport>) {
    let read: Vec<(LogReport, Option<Scanned>)> = located
        .into_par_iter()
        .map(|log| {
            let mut report = LogReport {
                path: log.path.clone(),
                stream: log.stream,
                how: log.how,
                size: Known::NotGathered,
                scanned: Known::NotGathered,
                unpacked: false,
                trouble: None,
                tail: Vec::new(),
            };
            match log.found {
                Err(error) => {
                    report.trouble = Some(error.to_string());
                    (report, None)
                }
                Ok(content) => {
                    report.unpacked = is_packed(&*content);
                    let scan = scan(&engine.scanner, content, engine.scan);
                    report.size = Known::Value(scan.size);
                    report.scanned = Known::Value(scan.scanned);
                    report.trouble.clone_from(&scan.stopped);
                    let Located { path, stream, step, task, .. } = log;
                    (report, Some(Scanned { path, stream, step, task, scan }))
                }
            }
        })
        .collect();
    let (reports, scanned): (Vec<LogReport>, Vec<Option<Scanned>>) = read.into_iter().unzip();
    (scanned.into_iter().flatten().collect(), reports)
}

/// One pass over a log, packed or not. Why a packed one gave no more comes before what the pass
/// itself has to say.
fn scan(scanner: &Scanner, content: Box<dyn Content>, limits: logs::Limits) -> Scan {
    if !is_packed(&*content) {
        return scanner.scan(&*content, limits);
    }
    let text = Unpacked::new(content, limits.bytes);
    let mut scan = scanner.scan(&text, limits);
    scan.stopped = text.trouble().map(str::to_owned).or(scan.stopped);
    scan
}

/// What to say of the logs of a job beside their reports.
pub(super) fn notices(job: &Job, reports: &[LogReport]) -> Vec<Notice> {
    if reports.iter().any(|log| log.size.is_value()) {
        log_notices(reports)
    } else {
        vec![no_logs(job, reports)]
    }
}

/// What to say of logs that were read, but not as they are or not to their end, and of those that
/// could not be read beside others that could.
fn log_notices(reports: &[LogReport]) -> Vec<Notice> {
    /// A job of a thousand ranks may have as many logs.
    const TOLD: usize = 3;
    let mut notices = Vec::new();
    let unpacked: Vec<&str> =
        reports.iter().filter(|log| log.unpacked).map(|log| log.path.as_str()).collect();
    if !unpacked.is_empty() {
        let (first, others) = unpacked.split_at(unpacked.len().min(TOLD));
        let mut names: Vec<String> = first.iter().map(|&path| path.to_owned()).collect();
        if !others.is_empty() {
            names.push(text::count(others.len() as u64, "more log"));
        }
        let names = text::join(&names, "and");
        let text = format!("unpacked {names}: lines and bytes count in the unpacked text");
        notices.push(Notice::info("unpacked-log", text));
    }
    if reports.iter().all(|log| log.size == Known::Value(0)) {
        let names: Vec<&str> = reports.iter().take(TOLD).map(|log| log.path.as_str()).collect();
        let text = format!("nothing was written to {}", text::join(&names, "and"));
        notices.push(Notice::warning("empty-log", text));
    }
    let incomplete: Vec<String> = reports
        .iter()
        .filter_map(|log| Some(format!("{}: {}", log.path, log.trouble.as_deref()?)))
        .collect();
    let (told, others) = incomplete.split_at(incomplete.len().min(TOLD));
    notices.extend(told.iter().map(|text| Notice::warning("log-incomplete", text)));
    if !others.is_empty() {
        let text = format!(
            "{} could not be read to the end",
            text::count(others.len() as u64, "more log")
        );
        notices.push(Notice::warning("log-incomplete", text));
    }
    notices
}

/// Adds the last lines of each stream to its report, at most so many.
pub(super) fn quote_tails(scanned: &[Scanned], reports: &mut [LogReport], most: usize) {
    for log in scanned {
        let Some(report) = reports.iter_mut().find(|report| report.path == log.path) else {
            continue;
        };
        // Once more, as one text: what escape sequences and ranks stood between is gone now.
        let lines: Vec<&str> = log.scan.tail.iter().map(|line| line.text.as_str()).collect();
        let masked = text::masked(&lines.join("\n"));
        let quote =
            |(line, text): (&Line, &str)| Quoted { line: line.number, text: text.to_owned() };
        let from = lines.len().saturating_sub(most);
        report.tail = log.scan.tail.iter().zip(masked.split('\n')).skip(from).map(quote).collect();
    }
}

fn no_logs(job: &Job, reports: &[LogReport]) -> Notice {
    let text = match reports {
        [] => "no log could be located".to_owned(),
        [first, ..] => {
            let trouble = first.trouble.as_deref().unwrap_or("empty");
            format!("no log was read: {}: {trouble}", first.path)
        }
    };
    let notice = Notice::warning("no-log", text);
    let is_told = notice.text.contains("--log");
    if job.has_started() && !is_told {
        notice.hint("name the log's folder with --log-dir DIR")
    } else {
        notice
    }
}
