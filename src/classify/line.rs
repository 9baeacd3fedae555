//! What a line is worth by its manner of speaking, whatever it speaks of.
//!
//! Advice and conditional wording anchor nothing; a warning, an informational line or a program
//! that says it carries on is no cause; the shell's trace repeats commands, not results; what the
//! scheduler and the kernel say is final. They are known by the beginning of their lines: the same
//! words further on are a quotation.

/// The manner of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The scheduler or the kernel states a fact.
    Official,
    /// A program states a fact.
    Statement,
    /// It is not meant as an error, the program says that it goes on, or somebody else's words are
    /// repeated.
    Harmless,
    /// Advice, a condition, or the shell's trace of a command: no evidence at all.
    NoEvidence,
}

/// Judges a line; `at` is where the words that matter begin.
pub(super) fn manner(text: &str, at: usize) -> Manner {
    if is_official(text) {
        return Manner::Official;
    }
    if is_trace(message(text).trim_start()) || is_advice(text, at) || counts_none(text, at) {
        return Manner::NoEvidence;
    }
    if quotes_daemon(text)
        || quotes_file(text)
        || is_low_level(text.get(..at).unwrap_or(text))
        || goes_on(text)
    {
        return Manner::Harmless;
    }
    Manner::Statement
}

/// The message behind what loggers and launchers put before it: time stamps, tags in brackets,
/// ranks, levels. An indented line is quoted text and stays what it is.
pub(super) fn message(text: &str) -> &str {
    const LEVELS: [&str; 6] = ["ERROR", "CRITICAL", "FATAL", "CRASH", "E", "stderr"];
    let mut rest = text;
    for _ in 0..8 {
        let tagged = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let behind = match tagged {
            Some((tag, behind)) if tag.len() <= 48 => behind,
            _ => {
                let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
                let word = rest[..end].trim_end_matches([':', ',', '|']);
                let stamp = word.bytes().any(|b| b.is_ascii_digit())
                    && word.bytes().all(|b| b.is_ascii_digit() || b"-:.,/+TZ".contains(&b));
                if !stamp && !LEVELS.contains(&word) {
                    break;
                }
                &rest[end..]
            }
        };
        rest = behind.trim_start_matches([' ', '\t', ':', '|', '-']);
    }
    rest
}

/// Whether a daemon of the scheduler, its launcher or the kernel wrote the line. Nothing may stand
/// before their names but the time, and in lines of syslog the host.
pub(super) fn is_official(text: &str) -> bool {
    const KERNEL: [&str; 3] = ["Memory cgroup out of memory", "Out of memory: Kill", "kernel: "];
    let line = behind_time(text).trim_start();
    let daemon = ["slurmstepd", "slurmd"].iter().any(|name| {
        let rest = line.strip_prefix(name);
        rest.and_then(|rest| rest.split_once(": ")).is_some_and(|(host, _)| !host.contains(' '))
    });
    let kernel = || KERNEL.iter().any(|start| line.starts_with(start)) || is_syslog(text);
    daemon || line.starts_with("srun: ") || kernel()
}

/// Whether the words of a daemon are repeated further on in a line. What a program left of a line
/// without an end, as progress bars do, stands before them without a blank.
fn quotes_daemon(text: &str) -> bool {
    ["slurmstepd", "srun: error: "].iter().any(|name| {
        let mut places = text.match_indices(name).map(|(at, _)| &text[..at]);
        places.any(|before| before.ends_with([' ', '"', '\'', '`', '(', '[']))
    })
}

/// What follows the time at the beginning of a line, in brackets or not.
fn behind_time(text: &str) -> &str {
    let is_time = |word: &str| {
        word.bytes().any(|b| b.is_ascii_digit())
            && word.bytes().all(|b| b.is_ascii_digit() || b"-:.,/+TZ ".contains(&b))
    };
    let mut rest = text;
    for _ in 0..3 {
        let tagged = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (word, behind) = tagged.or_else(|| rest.split_once(' ')).unwrap_or((rest, ""));
        if !is_time(word.trim()) {
            break;
        }
        rest = behind.trim_start_matches([' ', ':']);
    }
    rest
}

/// `Nov 30 10:34:25 c04 kernel: ...`, or with the time as one word.
fn is_syslog(text: &str) -> bool {
    let Some((before, _)) = text.split_once(" kernel: ") else { return false };
    let words: Vec<&str> = before.split_ascii_whitespace().collect();
    let time = words
        .get(words.len().saturating_sub(2))
        .is_some_and(|word| word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit()));
    time && words.len() <= 4
}

/// `set -x` prints `+ command`, one plus for each level.
fn is_trace(line: &str) -> bool {
    line.trim_start_matches('+').len() < line.len() && line.trim_start_matches('+').starts_with(' ')
}

/// Whether the sentence that holds the words is conditional or advises.
fn is_advice(text: &str, at: usize) -> bool {
    const WORDS: [&str; 12] = [
        "if you",
        "may be",
        "might be",
        "could be",
        "can be caused",
        "consider ",
        "please ",
        "make sure",
        "perhaps ",
        "possibly ",
        "in case of",
        "to avoid ",
    ];
    let before = text.get(..at).unwrap_or(text);
    let sentence = before.rfind(". ").map_or(before, |end| &before[end..]).to_lowercase();
    WORDS.iter().any(|word| sentence.contains(word))
        || sentence.split_whitespace().next() == Some("try")
        || text.contains("CUDA_LAUNCH_BLOCKING")
}

/// Whether the words before the message mark a level below error, as loggers and glog do.
pub(super) fn is_low_level(before: &str) -> bool {
    // NCCL knows no level above WARN: there it says why a call failed. So does dask's nanny, when it
    // ends a worker.
    // TensorFlow's operations tell their failures as warnings as well.
    const ERRORS: [&str; 3] = [" NCCL WARN ", "distributed.nanny", "OP_REQUIRES failed at "];
    if ERRORS.iter().any(|words| before.contains(words)) {
        return false;
    }
    let words =
        || before.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    // `path/module.py:13: UserWarning: `, however deep the path.
    if words().any(|word| word.ends_with("Warning")) {
        return true;
    }
    let mut first = true;
    for word in words().take(16) {
        let glog = word.len() == 5
            && word.starts_with(['W', 'I'])
            && word[1..].bytes().all(|b| b.is_ascii_digit());
        if glog || (first && word == "W") {
            return true;
        }
        if matches!(word, "WARN" | "WARNING" | "warning" | "warn" | "INFO" | "DEBUG" | "NOTICE") {
            return true;
        }
        // A time stamp may stand before the one-letter level.
        first &= word.bytes().all(|b| b.is_ascii_digit() || b == b'T' || b == b'Z');
    }
    false
}

/// Whether the line reports how often it happened, and it did not: `Segmentation fault: 0`.
fn counts_none(text: &str, at: usize) -> bool {
    // What is counted may go on behind the words that matter.
    let Some((words, count)) = text.get(at..).and_then(|rest| rest.split_once([':', '='])) else {
        return false;
    };
    let count = count.trim_start();
    let none = count.strip_prefix('0').map(str::trim_end);
    let none = none.is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ';', ')', ']']));
    none && words.len() <= 40
        && words.bytes().all(|b| b.is_ascii_alphabetic() || b" _-".contains(&b))
}

/// What the C library says of files.
const ABOUT_FILES: [&str; 9] = [
    "No such file",
    "Permission denied",
    "Too many open files",
    "No space left",
    "Disk quota exceeded",
    "Input/output error",
    "Read-only file system",
    "Stale file handle",
    "Is a directory",
];

/// Whether the line is one of another file, as `grep` and digests of logs print them: `a.log:12: `.
fn quotes_file(text: &str) -> bool {
    let Some((path, rest)) = text.trim_start().split_once(':') else { return false };
    let Some((stem, ending)) = path.rsplit_once('.') else { return false };
    let job = ending.strip_prefix(['o', 'e']).is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = digits > 0 && rest[digits..].starts_with(':');
    // What the C library says of a file is about it, not from it.
    let about = ABOUT_FILES.iter().any(|words| rest.trim_start().starts_with(words));
    !stem.is_empty()
        && !about
        && !path.contains(' ')
        && (job || matches!(ending, "log" | "out" | "err" | "txt"))
        && (numbered || text.starts_with(' ') && rest.starts_with(' '))
}

/// Whether the line itself says that the program carries on.
pub(super) fn goes_on(text: &str) -> bool {
    const WORDS: [&str; 26] = [
        "using cached",
        "using the cached",
        "retrying",
        "retry in ",
        "retry with ",
        "will retry",
        "falling back",
        "ignoring",
        "ignored",
        "skipping",
        "using default",
        "recovered",
        "trying again",
        "trying the next",
        "trying another",
        ", trying ",
        "; trying ",
        "starting it again",
        "starting over",
        "starting from scratch",
        "continuing with",
        "continuing without",
        ", continuing",
        "will continue",
        "caught expected",
        "-> reducing",
    ];
    let lower = text.to_lowercase();
    // "attempt 2 of 5" goes on, "attempt to write a readonly database" does not.
    let counted = |(at, word): (usize, &str)| {
        lower[at + word.len()..].starts_with(|next: char| next.is_ascii_digit() || next == '#')
    };
    WORDS.iter().any(|word| lower.contains(word)) || lower.match_indices("attempt ").any(counted)
}

/// Whether a line has the form `package.SomeError: message`: where ranks write into each other's
/// lines, what stands at the end of a traceback may be anything.
pub(super) fn names_exception(text: &str) -> bool {
    let text = message(text);
    let path = text.split(": ").next().unwrap_or(text).trim_end_matches([':', ' ']);
    (path.ends_with("Error") || path.ends_with("Exception"))
        && path.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

/// Whether a line speaks of trouble. A count of none does not.
pub(super) fn is_trouble(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, words: &str) -> Manner {
        manner(text, text.find(words).expect("the words are in the line"))
    }

    #[test]
    fn a_message_is_found_behind_what_loggers_put_before_it() {
        for text in [
            "KeyError: 'x'",
            "2024-05-01 02:29:42 KeyError: 'x'",
            "2024-05-01T02:29:42.123Z ERROR KeyError: 'x'",
            "[2024-05-01 02:29:42] [ERROR] [node 3]: KeyError: 'x'",
            "3: [rank 3] KeyError: 'x'",
            "2023-05-09 22:07:38 | ERROR | KeyError: 'x'",
            "E   KeyError: 'x'",
        ] {
            assert_eq!(message(text), "KeyError: 'x'", "{text}");
        }
        assert_eq!(message("    raise KeyError"), "    raise KeyError");
        assert_eq!(message("Error using fit (line 117)"), "Error using fit (line 117)");
    }

    #[test]
    fn what_advises_or_repeats_is_no_evidence() {
        let oom = "CUDA out of memory";
        for text in [
            "This may be caused by CUDA out of memory",
            "Hint: if you see CUDA out of memory, lower the batch size",
            "+ echo 'CUDA out of memory'",
            "++ grep -c 'CUDA out of memory' log",
        ] {
            assert_eq!(of(text, oom), Manner::NoEvidence, "{text}");
        }
    }

    #[test]
    fn advice_in_another_sentence_does_not_weaken_a_statement() {
        // The real message of PyTorch ends with advice.
        let text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. If reserved memory is large please try another setting";
        assert_eq!(of(text, "CUDA out of memory"), Manner::Statement);
    }

    #[test]
    fn low_levels_and_carrying_on_are_harmless() {
        for (text, words) in [
            ("2023-05-09 22:07:38 | WARNING | OOM when allocating tensor", "OOM"),
            ("W tensorflow/core/framework/op_kernel.cc:1839] RESOURCE_EXHAUSTED: OOM", "OOM"),
            ("2025-01-20 02:23:44.901222: W tensorflow/x.cc:38] OOM when", "OOM"),
            ("W0828 19:47:36.067708 410273 torch/distributed/run.py:793] OOM", "OOM"),
            ("cn387:3409744 [0] NCCL INFO NET/Plugin: libnccl-net.so: No such file", "No such"),
            ("/site-packages/x.py:13: UserWarning: Failed: No such file", "No such"),
            ("/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/x.py:13: UserWarning: No such file", "No such"),
            ("CUDA out of memory, retrying with batch 8", "CUDA"),
            ("CUDA out of memory (attempt 2 of 5)", "CUDA"),
        ] {
            assert_eq!(of(text, words), Manner::Harmless, "{text}");
        }
    }

    #[test]
    fn a_count_of_none_and_lines_of_other_files_are_no_evidence_of_their_own() {
        let fault = "Segmentation fault";
        assert_eq!(of("Summary (Killed: 0, Segmentation fault: 0)", fault), Manner::NoEvidence);
        assert_eq!(of("Segmentation fault: 3", fault), Manner::Statement);
        // Triton's message; the number counts drivers.
        let triton = "RuntimeError: 0 active drivers ([]). There should only be one.";
        assert_eq!(of(triton, "RuntimeError"), Manner::Statement);
        for text in ["logs/a.out:12:c01: Segmentation fault", "    c.err: Segmentation fault"] {
            assert_eq!(of(text, fault), Manner::Harmless, "{text}");
        }
        assert_eq!(of("run.sh: line 3: 4711 Segmentation fault", fault), Manner::Statement);
        // Open MPI, which could not open its own help.
        let help = "    /usr/share/openmpi/help-mpi-btl-tcp.txt: Too many open files.  Sorry!";
        assert_eq!(of(help, "Too many"), Manner::Statement);
    }

    #[test]
    fn nccl_says_its_errors_as_warnings() {
        // `NCCL_DEBUG=WARN` "prints an explicit error message whenever any NCCL call errors out".
        let text =
            "c01:984:1003 [0] bootstrap.cc:110 NCCL WARN Bootstrap : no socket interface found";
        assert_eq!(of(text, "no socket"), Manner::Statement);
    }

    #[test]
    fn the_scheduler_and_the_kernel_are_official() {
        for text in [
            "slurmstepd-c04: error: Detected 1 oom-kill event(s) in StepId=67.batch.",
            "srun: error: c04: task 1: Segmentation fault",
            "Memory cgroup out of memory: Killed process 1 (python3)",
        ] {
            assert_eq!(manner(text, 0), Manner::Official, "{text}");
        }
        for text in [
            "2026-11-30T10:34:25 slurmstepd: error: *** JOB 67 ON c04 CANCELLED ***",
            "[2026-11-30T10:34:25.123] slurmd: error: x",
            "[12345.678901] Out of memory: Killed process 1 (python3)",
            "Nov 30 10:34:25 c04 kernel: Out of memory: Killed process 1 (python3)",
            "2026-11-30T10:34:25+01:00 c04 kernel: Killed process 1 (python3)",
        ] {
            assert_eq!(manner(text, 0), Manner::Official, "{text}");
        }
        assert_eq!(manner("Segmentation fault", 0), Manner::Statement);
        // SQLite's message; the word alone does not mean a repetition.
        assert_eq!(manner("attempt to write a readonly database", 0), Manner::Statement);
    }

    #[test]
    fn who_quotes_the_scheduler_is_not_the_scheduler() {
        for text in [
            "echo \"slurmstepd: error: *** JOB 1 ON c01 CANCELLED DUE TO TIME LIMIT ***\"",
            "RuntimeError: slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch.",
            "2026-11-30 10:34:25 ERROR slurmstepd: error: Detected 1 oom-kill event(s)",
            "[child] srun: error: c04: task 1: Segmentation fault",
        ] {
            assert_eq!(of(text, "error: "), Manner::Harmless, "{text}");
        }
        let glued = "50%|##  | 5/10 [00:01<00:01, 4.9it/s]slurmstepd: error: *** JOB 1 ON c01 ***";
        let manual = "the manual says: c04 kernel: Out of memory";
        for text in [glued, manual, "slurmstepd died: why"] {
            assert_eq!(manner(text, text.len()), Manner::Statement, "{text}");
        }
    }
}
