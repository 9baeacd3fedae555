//! Exit codes and signals, and the two readings that older Slurm leaves open.

use std::fmt;

use serde::Serialize;

/// How a job or step exited: `code:signal`.
///
/// Slurm before 25.11 prints a code of 128 or more minus 128, so `11:0` may be exit 11 or exit
/// 139 (a shell's word for SIGSEGV). `folded` says that the number was printed by such a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// The exit code as printed.
    pub code: u32,
    /// The signal that ended the process itself; 0 for none. 125 stands for "out of memory".
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
            (signal, _) => Some(signal),
        }
    }

    /// The exit in words, with both readings where there are two:
    /// `exit 11, or 139 (killed by SIGSEGV)`.
    pub fn in_words(self) -> String {
        if self.signal == 125 {
            return "out of memory".to_owned();
        }
        if self.signal != 0 {
            return match signal_name(self.signal) {
                Some(name) => format!("killed by {name}"),
                None => format!("signal {}", self.signal),
            };
        }
        let one = |code: u32| match code {
            126 => "126 (found, but could not be executed)".to_owned(),
            127 => "127 (command not found)".to_owned(),
            129..=192 => match signal_name(code - 128) {
                Some(name) => format!("{code} (killed by {name})"),
                None => code.to_string(),
            },
            code => code.to_string(),
        };
        let codes: Vec<String> = self.codes().into_iter().map(one).collect();
        format!("exit {}", codes.join(", or "))
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
        assert_eq!(Exit { code: 0, signal: 53, folded: true }.in_words(), "signal 53");
    }
}
