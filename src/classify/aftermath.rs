//! Whether the program went on after an error and ended well, where no record tells how it ended.
//!
//! Successes print errors too: one that was caught, a file that was optional, the expected failure
//! of a test. The lines after an error and the end of the log tell them from failures. A record knows
//! better: with one, nothing of this counts. Knows no family.

use super::handled::{OVERCOME, WENT_ON};
use super::line::{goes_on, is_trouble, message};
use super::{LogFacts, Piece};
use crate::logs::{Line, Scan};
use crate::model::Role;
use crate::text::clean_line;

/// Lines at the end in which the summary of a test runner stands.
const SUMMARY: usize = 14;
/// Lines at the end that must not speak of trouble where the last one reports that all is done.
const CALM: usize = 2;
/// Lines at the end of which less than half may complain.
const MOSTLY: usize = 8;

/// A line that is not blank.
struct Told {
    offset: u64,
    text: String,
}

/// Makes roots of a log count less that it says were got over.
pub(super) fn weigh(log: &LogFacts<'_>, pieces: &mut [Piece]) {
    let Some(end) = log.end else { return };
    let lines = last_lines(end, log.scan.size.saturating_sub(end.len() as u64));
    let passed = is_passed(&lines);
    let done = is_done(log.scan, &lines, pieces);
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root) {
        // The script goes on after a program that failed: then a word of its own ends the log.
        let raised = piece.at.is_some_and(|(_, offset)| concludes(log.scan, offset));
        let went_on = done && piece.work_after >= if raised { WENT_ON } else { 2 };
        let over = if piece.official {
            // Of a daemon that tries again nobody knows that it gave up.
            goes_on(&piece.evidence.text)
        } else {
            passed || went_on || piece.overcome
        };
        if over {
            piece.score *= OVERCOME;
        }
    }
}

/// Whether the end reports that what was to be done is done, and complains of nothing.
fn is_done(scan: &Scan, lines: &[Told], pieces: &[Piece]) -> bool {
    let told = |offset| {
        let mut told = pieces.iter().filter(|piece| piece.role != Role::Confirm);
        told.any(|piece| piece.at.is_some_and(|(_, at)| at == offset))
    };
    let calm = lines[lines.len().saturating_sub(CALM)..]
        .iter()
        .all(|line| !told(line.offset) && !in_block(scan, line.offset) && !is_trouble(&line.text));
    let end = &lines[lines.len().saturating_sub(MOSTLY)..];
    let complaints = end.iter().filter(|line| is_trouble(&line.text)).count();
    calm && complaints * 2 < MOSTLY && lines.last().is_some_and(|line| is_report(&line.text))
}

/// The line by which a log without a record is seen to have ended well: its program says that all of
/// its work is done, or a test runner that nothing failed, and none of the last lines complains. That a
/// part is done is no end.
pub fn good_ending<'a>(log: &LogFacts<'a>) -> Option<&'a Line> {
    /// Lines at the end in which a program takes its leave.
    const LEAVE: usize = 4;
    let end = last_lines(log.end?, log.scan.size.saturating_sub(log.end?.len() as u64));
    let tail = &log.scan.tail;
    let last = &tail[tail.len().saturating_sub(LEAVE)..];
    if last.iter().any(|line| is_trouble(&line.text) && !says_all_is_done(&line.text)) {
        return None;
    }
    let passed = || last.last().filter(|_| is_passed(&end));
    last.iter().rev().find(|line| says_all_is_done(&line.text)).or_else(passed)
}

/// Whether a line says that the whole of the work came to a good end.
pub(super) fn says_all_is_done(text: &str) -> bool {
    const PHRASES: [&str; 15] = [
        "all done",
        "normal termination",
        "finished successfully",
        "completed successfully",
        "terminated normally",
        "ended normally",
        "exit code 0",
        "exit code: 0",
        "exit status 0",
        "total wall time:",
        "finished mdrun",
        "job done.",
        "finished with success",
        "finished without error",
        "finalised without error",
    ];
    const WHOLE: [&str; 16] = [
        "training",
        "simulation",
        "analysis",
        "calculation",
        "run",
        "job",
        "script",
        "program",
        "pipeline",
        "workflow",
        "evaluation",
        "inference",
        "everything",
        "assembly",
        "optimisation",
        "optimization",
    ];
    const DONE: [&str; 6] =
        ["finished", "completed", "complete", "done", "successful", "succeeded"];
    let lower = message(text).to_lowercase();
    if [" not ", "n't ", " in epoch", " with error"].iter().any(|word| lower.contains(word)) {
        return false;
    }
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let whole = words.first().is_some_and(|first| WHOLE.contains(first))
        && words.len() <= 6
        && words[1..].iter().any(|word| DONE.contains(word))
        && !words.iter().any(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    whole || PHRASES.iter().any(|phrase| lower.contains(phrase))
}

/// The lines of a text that begins at an offset.
fn last_lines(text: &[u8], mut offset: u64) -> Vec<Told> {
    let mut lines = Vec::new();
    for raw in text.split(|&byte| byte == b'\n') {
        let line = clean_line(raw);
        if !line.trim().is_empty() {
            lines.push(Told { offset, text: line.trim_end().to_owned() });
        }
        offset += raw.len() as u64 + 1;
    }
    lines
}

fn in_block(scan: &Scan, offset: u64) -> bool {
    scan.blocks.iter().any(|block| {
        let last = block.terminal.as_ref().map_or(block.first.offset, |line| line.offset);
        (block.first.offset..=last).contains(&offset)
    })
}

fn concludes(scan: &Scan, offset: u64) -> bool {
    let mut terminals = scan.blocks.iter().filter_map(|block| block.terminal.as_ref());
    terminals.any(|line| line.offset == offset)
}

/// Whether a line reports that what was to be done is done: by saying so, by a past participle as
/// `report written` or `1000 keys sorted` have, or by a count that is full.
fn is_report(text: &str) -> bool {
    const WORDS: [&str; 7] =
        ["done", "success", "successful", "successfully", "written", "sent", "built"];
    // What begins, what is wanted, and words that are no participles.
    const NOT_YET: [&str; 14] = [
        "started",
        "loaded",
        "initialized",
        "initialised",
        "launched",
        "submitted",
        "needed",
        "required",
        "expected",
        "supposed",
        "speed",
        "exceed",
        "proceed",
        "unchanged",
    ];
    let lower = message(text).to_lowercase();
    // A script that says when it ended says it of whatever it ran.
    if lower.starts_with("job ") || lower.contains("ended at") || lower.contains(" not ") {
        return false;
    }
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let tells = |word: &str| {
        WORDS.contains(&word) || word.len() > 4 && word.ends_with("ed") && !NOT_YET.contains(&word)
    };
    words.any(tells) || lower.trim_end_matches(['.', '!']).ends_with("complete") || of_all(&lower)
}

/// `9 of 9`
fn of_all(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(3).any(|three| {
        let counts = three[0].bytes().all(|byte| byte.is_ascii_digit());
        three[1] == "of" && three[0] == three[2] && counts
    })
}

/// Whether a test runner sums up that nothing failed that should not have: pytest, unittest, ctest,
/// cargo, go, node, prove.
fn is_passed(lines: &[Told]) -> bool {
    let last = &lines[lines.len().saturating_sub(SUMMARY)..];
    let failed = last.iter().any(|line| {
        let text = line.text.trim();
        text.starts_with("FAILED")
            || text.starts_with("FAIL\t")
            || text.starts_with("--- FAIL")
            || text == "FAIL"
    });
    let passed = last.iter().any(|line| {
        let text = line.text.trim();
        let bare = text.trim_matches(|c: char| c == '=' || c == ' ');
        let pytest = bare.contains(" passed")
            && bare.contains(" in ")
            && !bare.replace("xfailed", "").contains("failed")
            && !bare.contains(" error");
        pytest && bare.starts_with(|c: char| c.is_ascii_digit())
            || text == "OK"
            || text.starts_with("OK (")
            || text == "PASS"
            || text == "Result: PASS"
            || text == "# fail 0"
            || text.starts_with("test result: ok.")
            || text.starts_with("100% tests passed")
            || text.starts_with("All tests passed")
            || text.starts_with("All tests successful")
    });
    passed && !failed
}
