//! Oddities of a script, each with its line and its consequence.

use std::fmt;

use serde::{Serialize, Serializer};

/// An oddity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The line, from 1.
    pub line: usize,
    /// What it is.
    pub kind: NoteKind,
}

/// What is odd about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// `##SBATCH`.
    CommentedOut,
    /// Blanks before `#SBATCH`.
    Indented,
    /// `# SBATCH`.
    BlankAfterHash,
    /// `#Sbatch`.
    Miscased,
    /// `#SLURM`, which `sbatch` still reads.
    OldMagicWord,
    /// The script has DOS line ends.
    DosLineEnds,
    /// A quote is not closed.
    UnmatchedQuote,
    /// Words behind `hetjob` or behind an empty word.
    RestOfLineLost,
    /// A `#PBS` or `#BSUB` line; the text is the line.
    OtherScheduler(String),
    /// An option that is not in the table: a site plugin's, or a mistake.
    UnknownOption(String),
    /// An abbreviation of several options.
    Ambiguous(String),
    /// An option without the value it needs.
    LacksValue(String),
    /// A word that is no option.
    NotAnOption(String),
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommentedOut => f.write_str("commented out: '##SBATCH' is not read"),
            Self::Indented => f.write_str("not read: '#SBATCH' must begin in the first column"),
            Self::BlankAfterHash => f.write_str("not read: '# SBATCH' has a blank after '#'"),
            Self::Miscased => f.write_str("not read: '#SBATCH' must be in capitals"),
            Self::OldMagicWord => f.write_str("'#SLURM' is an old form of '#SBATCH'"),
            Self::DosLineEnds => f.write_str("DOS line ends: sbatch refuses the script"),
            Self::UnmatchedQuote => f.write_str("a quote is not closed: sbatch refuses the script"),
            Self::RestOfLineLost => f.write_str("sbatch does not read the rest of this line"),
            Self::OtherScheduler(line) => {
                write!(f, "sbatch reads '{line}' too, and it wins over '#SBATCH'")
            }
            Self::UnknownOption(name) => write!(f, "'{name}' is not an option of sbatch itself"),
            Self::Ambiguous(name) => {
                write!(f, "'{name}' may be several options: sbatch refuses it")
            }
            Self::LacksValue(name) => write!(f, "'{name}' lacks its value"),
            Self::NotAnOption(word) => {
                write!(f, "'{word}' is not an option: sbatch refuses the script")
            }
        }
    }
}

impl Serialize for NoteKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
