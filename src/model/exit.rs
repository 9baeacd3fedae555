//! Exit codes and signals, and the two readings that older Slurm leaves open.

use std::fmt;

use serde::Serialize;

/// How a job or step exited: `code:signal`.
///
/// Slurm before 25.11 prints a code of 128 or more minus 128, so `11:0` may be exit 11 or exit
/// 139 (a shell's word for SIGSEGV). `folded` says that the number was printed by such a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Exit {
    /// The exit code as printed.
    pub code: u32,
    /// The signal that ended the process itself; 0 for none. Beyond the signals that there are,
    /// Slurm keeps words of its own here: 125 is "out of memory", 53 that the job could not begin.
    pub signal: u32,
    /// Whether `code` may stand for `code + 128`.
    pub folded: bool,
}

impl Exit {
    /// Neither code nor signal: what `0:0` says.
    pub fn is_clean(self) -> bool {
        self.code == 0 && self.signal == 0
    }

    /// Every exit status that the process may have had. A folded code has a second reading only
    /// where programs do end so: by a signal that ends programs, or with 255. (Exit 128 folds to
    /// 0, but 0 is nearly always 0: the state tells.)
    pub fn codes(self) -> Vec<u32> {
        const FATAL: [u32; 12] = [2, 4, 6, 7, 8, 9, 11, 13, 15, 24, 25, 31];
        if self.folded && (FATAL.contains(&self.code) || self.code == 127) {
            vec![self.code, self.code + 128]
        } else {
            vec![self.code]
        }
    }

    /// The signal number, from the field itself or from a shell's `128 + n`, when it is certain.
    pub fn signal_number(self) -> Option<u32> {
        match (self.signal, self.code) {
            (0, code) if (129..=192).contains(&code) => Some(code - 128),
            (0, _) => None,
            (signal, _) => Some(signal).filter(|signal| own_word(*signal).is_none()),
        }
    }

    /// The exit in words, with both readings where there are two:
    /// `exit 11, or 139 (killed by SIGSEGV)`.
    pub fn in_words(self) -> String {
        if let Some(word) = own_word(self.signal) {
            return word.to_owned();
        }
        if self.signal != 0 {
            return match signal_name(self.signal) {
                Some(name) => format!("killed by {name}"),
                None => format!("signal {}", self.signal),
            };
        }
        let one = |code: u32| match meaning(code) {
            Some(meaning) => format!("{code} ({meaning})"),
            None => code.to_string(),
        };
        let codes: Vec<String> = self.codes().into_iter().map(one).collect();
        format!("exit {}", codes.join(", or "))
    }

    /// The exit as recorded, with what that means where it says more than the numbers:
    /// `127:0 (command not found, or 255)`, `11:0 (or 139: killed by SIGSEGV)`, `1:0`.
    pub fn explained(self) -> String {
        if self.signal != 0 {
            return format!("{self} ({})", self.in_words());
        }
        // Programs end with small codes of their own every day: that they may stand for an interrupt
        // puzzles more people than it helps.
        let other = self.codes().get(1).copied().filter(|_| !matches!(self.code, 1..=3 | 5));
        let other = other.map(|code| match meaning(code) {
            Some(meaning) => format!("or {code}: {meaning}"),
            None => format!("or {code}"),
        });
        let words: Vec<String> = meaning(self.code).into_iter().chain(other).collect();
        if words.is_empty() { self.to_string() } else { format!("{self} ({})", words.join(", ")) }
    }
}

/// What Slurm says by a signal that is none.
fn own_word(signal: u32) -> Option<&'static str> {
    match signal {
        53 => Some("standard output or the working directory could not be opened"),
        125 => Some("out of memory"),
        _ => None,
    }
}

/// What a shell says by an exit code.
fn meaning(code: u32) -> Option<String> {
    match code {
        126 => Some("found, but could not be executed".to_owned()),
        127 => Some("command not found".to_owned()),
        129..=192 => signal_name(code - 128).map(|name| format!("killed by {name}")),
        _ => None,
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.code, self.signal))
    }
}

/// The name of a signal on Linux x86-64 and ARM (`man 7 signal`).
pub fn signal_name(number: u32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_code_is_told_with_both_readings() {
        let folded = Exit { code: 11, signal: 0, folded: true };
        assert_eq!(folded.codes(), [11, 139]);
        assert_eq!(folded.in_words(), "exit 11, or 139 (killed by SIGSEGV)");
        assert_eq!(folded.signal_number(), None);
        let ordinary = Exit { code: 1, signal: 0, folded: true };
        assert_eq!(ordinary.in_words(), "exit 1");
        let plain = Exit { code: 139, signal: 0, folded: false };
        assert_eq!(plain.in_words(), "exit 139 (killed by SIGSEGV)");
        assert_eq!(plain.signal_number(), Some(11));
    }

    #[test]
    fn a_signal_to_the_script_itself_is_certain() {
        let exit = Exit { code: 0, signal: 11, folded: true };
        assert_eq!(exit.signal_number(), Some(11));
        assert_eq!(exit.in_words(), "killed by SIGSEGV");
    }

    #[test]
    fn a_word_of_slurm_is_no_signal() {
        // The job of Slurm 22.05 whose output lay in a folder that was not there exited so.
        let no_output = Exit { code: 0, signal: 53, folded: true };
        assert_eq!(no_output.signal_number(), None);
        let words = "standard output or the working directory could not be opened";
        assert_eq!(no_output.explained(), format!("0:53 ({words})"));
        assert_eq!(Exit { code: 0, signal: 77, folded: true }.explained(), "0:77 (signal 77)");
    }

    #[test]
    fn an_exit_is_explained_once() {
        let explained = |code, signal, folded| Exit { code, signal, folded }.explained();
        assert_eq!(explained(127, 0, true), "127:0 (command not found, or 255)");
        assert_eq!(explained(127, 0, false), "127:0 (command not found)");
        assert_eq!(explained(11, 0, true), "11:0 (or 139: killed by SIGSEGV)");
        assert_eq!(explained(2, 0, true), "2:0");
        assert_eq!(explained(139, 0, false), "139:0 (killed by SIGSEGV)");
        assert_eq!(explained(0, 125, true), "0:125 (out of memory)");
        assert_eq!(explained(0, 9, true), "0:9 (killed by SIGKILL)");
        assert_eq!(explained(1, 0, true), "1:0");
    }
}
