//! Reading the logs of a job: one pass over each, and what to say of those that gave less than all.

use rayon::prelude::*;

use super::{Engine, LogReport, Quoted};
use crate::classify::END;
use crate::host::{Content, Unpacked, is_packed, no_text};
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
    /// Its last bytes, where they are wanted.
    pub(super) end: Option<Vec<u8>>,
    /// The log itself, to be read again.
    pub(super) content: Box<dyn Content>,
}

impl Scanned {
    /// Its first and its last lines, in which tools that submit jobs name themselves.
    pub(super) fn edges(&self) -> String {
        let mut head = vec![0; HEAD];
        let count = self.content.read_at(0, &mut head).unwrap_or(0);
        let tail = self.scan.tail.iter().map(|line| line.text.as_str());
        let head = lines(&head[..count]);
        std::iter::once(head.as_str()).chain(tail).collect::<Vec<_>>().join("\n")
    }

    /// Its last lines, as many as there are in a megabyte.
    pub(super) fn last_lines(&self) -> String {
        end(&*self.content, self.scan.size).map(|bytes| lines(&bytes)).unwrap_or_default()
    }
}

/// Bytes of a log as clean lines.
fn lines(bytes: &[u8]) -> String {
    bytes.split(|&byte| byte == b'\n').map(text::clean_line).collect::<Vec<_>>().join("\n")
}

/// So much of a log's beginning is looked at for the name of a tool.
const HEAD: usize = 4 << 10;

/// Reads every log that was found; of each there is a report, of those that were read a scan.
/// `alone` says that nothing but the logs themselves tells how the run ended.
pub(super) fn read_logs(
    engine: &Engine,
    located: Vec<Located>,
    alone: bool,
) -> (Vec<Scanned>, Vec<LogReport>) {
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
                    if let Some(why) = no_text(&log.path, &*content) {
                        report.trouble = Some(why);
                        return (report, None);
                    }
                    report.unpacked = is_packed(&*content);
                    let (scan, end, content) = scan(&engine.scanner, content, engine.scan, alone);
                    report.size = Known::Value(scan.size);
                    report.scanned = Known::Value(scan.scanned);
                    report.trouble.clone_from(&scan.stopped);
                    let Located { path, stream, step, task, .. } = log;
                    (report, Some(Scanned { path, stream, step, task, scan, end, content }))
                }
            }
        })
        .collect();
    let (reports, scanned): (Vec<LogReport>, Vec<Option<Scanned>>) = read.into_iter().unzip();
    (scanned.into_iter().flatten().collect(), reports)
}

/// One pass over a log, packed or not, its end where that is wanted, and the text, to be read again. Why
/// a packed one gave no more comes before what the pass itself has to say.
fn scan(
    scanner: &Scanner,
    content: Box<dyn Content>,
    limits: logs::Limits,
    alone: bool,
) -> (Scan, Option<Vec<u8>>, Box<dyn Content>) {
    let ending = |content: &dyn Content, scan: &Scan| alone.then(|| end(content, scan.size))?;
    if !is_packed(&*content) {
        let scan = scanner.scan(&*content, limits);
        let end = ending(&*content, &scan);
        return (scan, end, content);
    }
    let text = Unpacked::new(content, limits.bytes);
    let mut scan = scanner.scan(&text, limits);
    let end = ending(&text, &scan);
    scan.damaged = text.trouble().is_some();
    scan.stopped = text.trouble().map(str::to_owned).or(scan.stopped);
    (scan, end, Box::new(text.shrunk_to(END)))
}

/// The last bytes of a log; `None` where they cannot be had whole.
fn end(content: &dyn Content, size: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(size).unwrap_or(END).min(END);
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let at = size - (length - filled) as u64;
        match content.read_at(at, &mut bytes[filled..]) {
            Ok(0) | Err(_) => return None,
            Ok(count) => filled += count,
        }
    }
    Some(bytes)
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
    if reports.iter().all(|log| log.size == Known::Value(0) && log.trouble.is_none()) {
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
