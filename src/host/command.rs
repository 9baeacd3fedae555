//! A command to run, what came of it, and how it can fail.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A query to run: a program of the allow-list and its arguments.
///
/// Values that come from users go into one argument as `--option=VALUE`, so that none can be
/// taken for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cmd {
    /// The program's name; found in `PATH`.
    pub program: &'static str,
    /// The arguments.
    pub args: Vec<String>,
    /// After this it is ended with its whole process group.
    pub deadline: Duration,
    /// At most this many bytes of standard output are taken.
    pub cap: u64,
}

impl Cmd {
    /// A command with the deadline of an ordinary query and room for 64 MiB of output.
    pub fn new(program: &'static str, args: &[&str]) -> Self {
        Self {
            program,
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            deadline: Duration::from_secs(30),
            cap: 64 << 20,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the cap on standard output, in bytes.
    #[must_use]
    pub fn cap(mut self, bytes: u64) -> Self {
        self.cap = bytes;
        self
    }

    /// What is asked about, for messages: the program and its values, without how to print them.
    pub fn brief(&self) -> String {
        let how = [
            "--Format=",
            "--format=",
            "--delimiter=",
            "--parsable2",
            "--noheader",
            "--duplicates",
            "--allocations",
            "--oneliner",
        ];
        let kept = self.args.iter().filter(|arg| !how.iter().any(|how| arg.starts_with(how)));
        Self { args: kept.cloned().collect(), ..self.clone() }.to_string()
    }

    /// Program and arguments as one list.
    pub fn argv(&self) -> Vec<String> {
        std::iter::once(self.program.to_owned()).chain(self.args.iter().cloned()).collect()
    }
}

impl fmt::Display for Cmd {
    /// As a person would type it; arguments with blanks or special characters in single quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        for arg in &self.args {
            let plain = !arg.is_empty()
                && arg.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=+,./:@%[]".contains(&b));
            if plain {
                write!(f, " {arg}")?;
            } else {
                write!(f, " '{}'", arg.replace('\'', "'\\''").escape_debug())?;
            }
        }
        Ok(())
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Standard error, at most 64 KiB of it.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Whether it exited with zero.
    pub fn success(&self) -> bool {
        self.status == Some(0)
    }

    /// The first line of standard error that is not blank, as text.
    pub fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.unwrap_or("no message").to_owned()
    }
}

/// A finished command with its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output<'r> {
    /// Standard output.
    pub stdout: Cow<'r, [u8]>,
    /// How it ended.
    pub finished: Finished,
}

/// Why a command gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The program is not on this machine.
    #[error("'{program}' is not installed here")]
    Missing {
        /// The program.
        program: String,
    },
    /// The arguments are not a query of the allow-list; nothing was run.
    #[error("refused to run '{command}': not a query jobwise may make")]
    NotAllowed {
        /// The command.
        command: String,
    },
    /// It did not end in time and was ended.
    #[error("'{command}' gave no answer within {} s", after.as_millis().div_ceil(1000))]
    TimedOut {
        /// The command.
        command: String,
        /// The deadline.
        after: Duration,
    },
    /// It was not run: what hung before it used up the time of this answer.
    #[error("'{command}' was not asked, as '{hung}' had hung before it")]
    NotAsked {
        /// The command.
        command: String,
        /// The one that hung first.
        hung: String,
    },
    /// It printed more than its cap; what came before was delivered.
    #[error("'{command}' printed more than {cap} bytes")]
    Truncated {
        /// The command.
        command: String,
        /// The cap in bytes.
        cap: u64,
    },
    /// The recording holds no answer to this command.
    #[error("the recording holds no answer to '{command}'")]
    NotRecorded {
        /// The command.
        command: String,
    },
    /// The demo cluster holds no answer.
    #[error(
        "the demo cluster is a recording and cannot answer this; 'jobwise --demo jobs' lists its jobs"
    )]
    NotInDemo,
    /// It could not be started or read.
    #[error("'{command}' failed: {reason}")]
    Io {
        /// The command.
        command: String,
        /// The system's words.
        reason: String,
    },
}
