//! Whether the program went on after an error and ended well, where no record tells how it ended.
//!
//! Successes print errors too: one that was caught, a file that was optional, the expected failure
//! of a test. The lines after an error and the end of the log tell them from failures. A record knows
//! better: with one, nothing of this counts. Knows no family.

use super::line::{goes_on, message};
use super::{LogFacts, Piece};
use crate::logs::{Line, Scan};
use crate::model::Role;
use crate::text::clean_line;

/// What an error is still worth that the log itself says was got over.
const OVERCOME: f64 = 0.5;
/// Lines at the end in which the summary of a test runner stands.
const SUMMARY: usize = 14;
/// Lines at the end that must not speak of trouble where the last one reports that all is done.
const CALM: usize = 2;
/// Lines at the end of which less than half may complain.
const MOSTLY: usize = 8;
/// Lines right after an error in which a program says how it goes on.
const NEXT: usize = 2;
/// Lines of work after which a plain end speaks against an error.
const WENT_ON: u32 = 4;

/// A line that is not blank.
struct Told {
    offset: u64,
    text: String,
}

/// Makes roots of a log count less that its end says were got over.
pub(super) fn weigh(log: &LogFacts<'_>, pieces: &mut [Piece]) {
    let Some(end) = log.end else { return };
    let scan = log.scan;
    let lines = last_lines(end, scan.size.saturating_sub(end.len() as u64));
    let told: Vec<u64> = pieces
        .iter()
        .filter(|piece| piece.role != Role::Confirm)
        .filter_map(|piece| Some(piece.at?.1))
        .collect();
    let last = lines.len().saturating_sub(CALM);
    let calm = lines[last..].iter().all(|line| {
        !told.contains(&line.offset) && !in_block(scan, line.offset) && !is_trouble(&line.text)
    });
    let end = &lines[lines.len().saturating_sub(MOSTLY)..];
    let complaints = end.iter().filter(|line| is_trouble(&line.text)).count();
    let calm = calm && complaints * 2 < MOSTLY;
    // Of a daemon that tries again nobody knows that it gave up.
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && piece.official) {
        if goes_on(&piece.evidence.text) {
            piece.score *= OVERCOME;
        }
    }
    let passed = is_passed(&lines);
    let done = calm && lines.last().is_some_and(|line| is_report(&line.text));
    for piece in pieces.iter_mut().filter(|piece| piece.role == Role::Root && !piece.official) {
        let Some((_, offset)) = piece.at else { continue };
        let raised = concludes(scan, offset);
        // The script goes on after a program that failed: then a word of its own ends the log.
        let enough = if raised { WENT_ON } else { 2 };
        let went_on = done && piece.work_after >= enough;
        if passed || went_on || is_overcome(scan, &lines, offset) {
            piece.score *= OVERCOME;
        }
    }
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
fn says_all_is_done(text: &str) -> bool {
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

/// Whether the lines around an error say that the program goes on without what failed: those after
/// it, behind its trace, or the one before its traceback.
fn is_overcome(scan: &Scan, lines: &[Told], offset: u64) -> bool {
    let own = scan
        .blocks
        .iter()
        .find(|block| block.terminal.as_ref().is_some_and(|line| line.offset == offset));
    let begin = own.map_or(offset, |block| block.first.offset);
    let before = lines.partition_point(|line| line.offset < begin);
    let heading = own.and_then(|_| lines.get(before.checked_sub(1)?));
    let after = lines.partition_point(|line| line.offset <= offset);
    let is_frame =
        |text: &str| text.starts_with([' ', '\t']) || text.ends_with(':') && text.contains("0x");
    let same = lines.get(after.wrapping_sub(1)).map_or("", |line| line.text.as_str());
    let mut next = lines[after..]
        .iter()
        .map(|line| line.text.as_str())
        // What failed again and again is told together.
        .filter(|text| *text != same && !text.contains("(most recent call first)"))
        // Of that exception it speaks, not of this one.
        .filter(|text| !text.starts_with("Exception ignored"))
        .skip_while(|text| is_frame(text))
        .take(NEXT);
    let logged = |text: &str| text.contains("ERROR") || text.contains("WARNING");
    heading.is_some_and(|line| logged(&line.text) && goes_on(&line.text))
        || next.any(|text| goes_on(text) || is_retried(text))
}

/// Whether the line says that what had failed was done after all, or does not matter.
fn is_retried(text: &str) -> bool {
    const WORDS: [&str; 6] =
        [" again", " instead", "failed attempts", "rebuilt", "recomputed", "not needed"];
    let traced = text.trim_start_matches('+');
    let shrugged = traced.len() < text.len() && matches!(traced.trim(), "true" | ":");
    shrugged || WORDS.iter().any(|word| text.contains(word)) && !is_trouble(text)
}

/// Whether a line speaks of trouble. A count of none does not.
fn is_trouble(text: &str) -> bool {
    const WORDS: [&str; 27] = [
        "error",
        "fail",
        "fatal",
        "abort",
        "kill",
        "exception",
        "cannot",
        "can't",
        "could not",
        "unable",
        "denied",
        "terminat",
        "cancel",
        "traceback",
        "panic",
        "core dumped",
        "exit code",
        "exit status",
        "exited",
        "not found",
        "crash",
        "interrupt",
        "refused",
        "rejected",
        "lost",
        "timed out",
        "giving up",
    ];
    const NONE: [&str; 6] =
        [" 0 error", " 0 fail", "no error", "no fail", "without error", "failed attempts"];
    let lower = format!(" {}", text.to_lowercase());
    let lower = NONE.iter().fold(lower, |text, none| text.replace(none, ""));
    WORDS.iter().any(|word| lower.contains(word))
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
