//! Lines that belong to a failure without saying what failed: the frames of a trace, and the summary
//! that a launcher prints between rules.
//!
//! Such lines are no work that went on after the failure. They are known by their form alone, one by
//! one: the forms are those of Java, JavaScript, Rust, Go, Julia, R, Fortran, glibc, gdb, sanitizers,
//! `PyTorch` and Python's faulthandler. A form that is not known counts as work.

/// The shortest row of characters that is a rule, and how far apart two rules may be.
const RULE: usize = 20;
const LINES: usize = 60;

/// For each line whether it belongs to a failure.
pub(super) fn of_failure<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<bool> {
    let texts: Vec<&str> = texts.collect();
    let mut belongs: Vec<bool> = texts.iter().map(|text| is_frame(text)).collect();
    let rules = texts.iter().enumerate().filter(|(_, text)| is_rule(text)).map(|(at, _)| at);
    let rules: Vec<usize> = rules.collect();
    for (index, &first) in rules.iter().enumerate() {
        let Some(&last) = rules.get(index + 1).filter(|&&last| last - first <= LINES) else {
            continue;
        };
        if texts[first..last].iter().any(|text| tells_failure(text)) {
            belongs[first..=last].fill(true);
        }
    }
    belongs
}

/// Whether a line ends with a row of one character, as titles and frames of summaries do. A logger's
/// prefix may stand before it.
fn is_rule(text: &str) -> bool {
    let text = text.trim_end();
    let Some(last) = text.bytes().last().filter(|byte| b"-*=".contains(byte)) else { return false };
    text.bytes().rev().take_while(|&byte| byte == last).count() >= RULE
}

/// Whether a line of a summary says that something failed.
fn tells_failure(text: &str) -> bool {
    const WORDS: [&str; 6] =
        [" FAILED", "Failures:", "Root Cause (", "exitcode ", "non-zero", "MPI_ABORT"];
    WORDS.iter().any(|word| text.contains(word))
}

/// Whether a line is a frame or a heading of a trace.
pub(super) fn is_frame(text: &str) -> bool {
    const HEADINGS: [&str; 17] = [
        "stack backtrace:",
        "Stacktrace:",
        "Backtrace for this error:",
        "======= Backtrace",
        "======= Memory map",
        "note: run with `RUST_BACKTRACE",
        "note: Some details are omitted",
        "Current thread 0x",
        "Thread 0x",
        "goroutine ",
        "Caused by: ",
        "Suppressed: ",
        "Calls: ",
        "Execution halted",
        "frame #",
        "Exception raised from ",
        "Traceback:",
    ];
    let text = behind_time(text);
    let indented = text.starts_with([' ', '\t']);
    let line = text.trim();
    if HEADINGS.iter().any(|heading| line.starts_with(heading)) {
        return true;
    }
    if indented && is_indented_frame(line) {
        return true;
    }
    let numbered = line.strip_prefix('#').is_some_and(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with(' ')
    });
    numbered || has_address(line)
}

/// What stands behind the date and time that a launcher puts before each line, blanks and all.
fn behind_time(mut text: &str) -> &str {
    const SHORTEST: usize = "10:11:12".len();
    for _ in 0..2 {
        let Some((word, rest)) = text.split_once(' ') else { break };
        let digits = word.starts_with(|first: char| first.is_ascii_digit());
        let stamp = word.bytes().all(|byte| byte.is_ascii_digit() || b"-:.,/+TZ".contains(&byte));
        if !(digits && stamp && word.len() >= SHORTEST) {
            break;
        }
        text = rest;
    }
    text
}

/// What only a line with blanks before it can be.
fn is_indented_frame(line: &str) -> bool {
    let more = line.strip_prefix("... ").is_some_and(|rest| rest.ends_with(" more"));
    let underline = !line.is_empty() && line.bytes().all(|byte| b"^~ ".contains(&byte));
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    // Rust: `3: core::result::unwrap`; R: `3: f(x)`.
    let counted = digits > 0
        && line[digits..]
            .strip_prefix(": ")
            .is_some_and(|rest| rest.contains("::") || rest.ends_with(')'));
    // Julia: `[3] f(x::Int64)`.
    let bracketed = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let bracketed = bracketed.is_some_and(|(number, rest)| {
        !rest.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    line.starts_with("at ")
        || line.starts_with("@ ")
        || line.starts_with("File \"")
        || line.contains(" called at ")
        || more
        || underline
        || counted
        || bracketed
}

/// `prog(+0x12)[0x7f12]`, `main.go:3 +0x1d`, a line of a memory map, or a row of a Fortran trace.
fn has_address(line: &str) -> bool {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bracketed = line.strip_suffix(']').and_then(|rest| rest.rsplit_once("[0x"));
    if bracketed.is_some_and(|(_, address)| hex(address))
        || line.rsplit_once(" +0x").is_some_and(|(_, offset)| hex(offset))
    {
        return true;
    }
    let mut words = line.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mapped =
        first.split_once('-').is_some_and(|(from, to)| from.len() >= 8 && hex(from) && hex(to));
    mapped && second.len() == 4 || second.len() == 16 && hex(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_many_languages_are_known() {
        for text in [
            "\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)",
            "2026-11-30T10:11:12.250Z  [1] getindex(A::Vector{Int64}, i1::Int64)",
            "2026-11-30 10:11:12,250    @ Base ./essentials.jl:13",
            "\t... 12 more",
            "Caused by: java.io.IOException: disk",
            "    at JSON.parse (<anonymous>)",
            "   3: core::result::Result<T,E>::unwrap",
            "             at ./src/lib.rs:4:72",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            "\t/home/user/main.go:12 +0x1d",
            "goroutine 1 [running]:",
            " [1] getindex(A::Vector{Int64}, i1::Int64)",
            "   @ Base ./essentials.jl:13",
            "#0  0x7f5c0d8d2d21 in ???",
            "    #1 0x55d0c8a3f0c0 in main a.c:3",
            "./a.out(+0x1139)[0x55d0c8a3f139]",
            "[c01:04012] [ 0] /lib/libc.so.6(+0x42520)[0x7f1c2d442520]",
            "7f1c2d400000-7f1c2d428000 r--p 00000000 08:01 1234 /lib/libc.so.6",
            "a.out              0000000000402E1B  MAIN__  12  x.f90",
            "frame #3: c10::Error::Error() + 0x57 (0x7f in libc10.so)",
            "  File \"/home/user/train.py\", line 88 in step",
            "       ^^^^^^~~~",
        ] {
            assert!(is_frame(text), "{text}");
        }
        for text in
            ["step 12 loss 0.3", "at the end of epoch 3", "3: ready", "# step loss", "", "[12] x"]
        {
            assert!(!is_frame(text), "{text}");
        }
    }

    #[test]
    fn the_summary_of_torchrun_belongs_to_the_failure() {
        // As torch.distributed.elastic.multiprocessing.errors prints it.
        let summary = "\
step 3
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 1234)
============================================================
step 4";
        let belongs = of_failure(summary.lines());
        assert_eq!(belongs.iter().filter(|belongs| !**belongs).count(), 2);
        assert!(!belongs[0] && !belongs[12]);
        let table = "--------------------\nstep energy error\n1 2 3\n--------------------";
        assert!(of_failure(table.lines()).iter().all(|belongs| !belongs));
    }
}
