//! The batch script: which options it gives to `sbatch`, and what its body does that matters.
//!
//! Decides what Slurm reads and what it does not; judges nothing. The script is bytes: nothing is
//! rewritten here, every value knows where it stands, so that an edit leaves all else untouched.
//! What a site's submit plugin or `SBATCH_*` variables change is not to be seen in a script.
//!
//! Facts: `man sbatch`, and every form in the tests tried on sbatch 22.05 with `--test-only`:
//! directives count up to the first line that is neither blank nor a comment; the words of all
//! lines form one command line (`--mem` on one line and `200` on the next are one option); the
//! last of repeated options wins; a component of a heterogeneous job inherits what the one before
//! it said; `#PBS` and `#BSUB` lines are read too, and win over `#SBATCH`.

mod body;
mod note;
mod options;
mod shape;
mod submit;
mod words;

use std::ops::Range;

use serde::Serialize;

pub use body::{Activation, Assignment};
pub use note::{Note, NoteKind};
use options::Item;
pub use submit::{Given, SubmitLine, parse_submit_line};
use words::{Word, cut, is_space};

/// A batch script as read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Script {
    /// The interpreter line without `#!`.
    pub shebang: Option<String>,
    /// Every directive, those that Slurm ignores included, in the order written.
    pub directives: Vec<Directive>,
    /// Oddities that change what Slurm reads.
    pub notes: Vec<Note>,
    /// How many components the job has; 1 unless `#SBATCH hetjob` separates more.
    pub components: usize,
    /// The first command, before which an `export` belongs.
    pub first_command: Option<LineStart>,
    /// Lines that prepare an environment: modules, conda, a virtual environment.
    pub activations: Vec<Activation>,
    /// Environment variables that the body sets.
    pub assignments: Vec<Assignment>,
    /// The first line that asks for a container, or runs something in one.
    pub container: Option<usize>,
    /// For each component, the byte behind its last directive line (behind the shebang where it
    /// has none): the place for one more.
    #[serde(skip)]
    insert_at: Vec<usize>,
}

/// Where a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LineStart {
    /// The line, from 1.
    pub line: usize,
    /// Its first byte.
    pub offset: usize,
}

/// One option of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Directive {
    /// The line, from 1.
    pub line: usize,
    /// The long name, abbreviations and short forms resolved: `mem`, `time`, `output`.
    pub option: String,
    /// As written up to the value: `-t`, `-t `, `--time=`, `--time `.
    pub spelled: String,
    /// The value, quotes resolved.
    pub value: Option<String>,
    /// Where the value stands in the script; `None` where it cannot be replaced as it stands.
    pub span: Option<Range<usize>>,
    /// Why Slurm does not read it.
    pub ignored: Option<Ignored>,
    /// The component of a heterogeneous job, from 0.
    pub component: usize,
}

/// Why Slurm does not read a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ignored {
    /// It stands behind the first command, on the given line.
    AfterCommand(usize),
}

impl Directive {
    /// The option with its value, as written: `--mem=100`, `-t 10`.
    pub fn as_written(&self) -> String {
        format!("{}{}", self.spelled, self.value.as_deref().unwrap_or_default())
    }
}

impl Script {
    /// The directive that decides an option for the (first component of the) job: the last one.
    pub fn effective(&self, long: &str) -> Option<&Directive> {
        self.effective_in(0, long)
    }

    /// The directive that decides an option for one component: its own last one, or what it
    /// inherits from the nearest component before it.
    pub fn effective_in(&self, component: usize, long: &str) -> Option<&Directive> {
        let read = self.directives.iter().filter(|directive| directive.ignored.is_none());
        read.filter(|directive| directive.option == long && directive.component <= component)
            .max_by_key(|directive| directive.component)
    }

    /// The byte at which a further directive line of `component` belongs.
    pub fn insertion_point(&self, component: usize) -> usize {
        self.insert_at.get(component).or(self.insert_at.last()).copied().unwrap_or_default()
    }

    /// Whether the interpreter is a shell that understands `export NAME=VALUE`.
    pub fn is_posix_shell(&self) -> bool {
        let Some(shebang) = &self.shebang else { return false };
        let mut names = shebang
            .split_ascii_whitespace()
            .map(|word| word.rsplit_once('/').map_or(word, |(_, name)| name));
        let interpreter = match names.next() {
            Some("env") => names.find(|name| !name.starts_with('-') && !name.contains('=')),
            other => other,
        };
        matches!(interpreter, Some("sh" | "bash" | "dash" | "ksh" | "zsh" | "ash"))
    }
}

/// A line of the script.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    number: usize,
    offset: usize,
    /// Without its `\n`.
    bytes: &'a [u8],
}

fn lines(script: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut offset = 0;
    script.split_inclusive(|byte| *byte == b'\n').enumerate().map(move |(index, whole)| {
        let bytes = whole.strip_suffix(b"\n").unwrap_or(whole);
        let line = Line { number: index + 1, offset, bytes };
        offset += whole.len();
        line
    })
}

/// Reads a script. Never fails: what `sbatch` would refuse becomes a note.
pub fn parse(bytes: &[u8]) -> Script {
    let mut script = Script { components: 1, ..Script::default() };
    let mut reader = Reader { components: vec![Vec::new()] };
    let mut dos = None;
    for line in lines(bytes) {
        if line.bytes.ends_with(b"\r") && dos.is_none() {
            dos = Some(line.number);
        }
        let end = (line.offset + line.bytes.len() + 1).min(bytes.len());
        if line.number == 1 {
            script.shebang = line.bytes.strip_prefix(b"#!").map(|rest| text(rest.trim_ascii()));
            script.insert_at.push(if script.shebang.is_some() { end } else { 0 });
        }
        if let Some(rest) = directive(line.bytes) {
            match script.first_command {
                None => reader.directive(&mut script, line, rest, end),
                Some(first) => ignored(&mut script, line, rest, first.line),
            }
        } else if let Some(kind) = near_miss(line.bytes) {
            script.notes.push(Note { line: line.number, kind });
        } else if is_command(line.bytes) {
            let start = LineStart { line: line.number, offset: line.offset };
            script.first_command.get_or_insert(start);
            body::read(&mut script, line.number, line.bytes);
        }
    }
    if let Some(line) = dos {
        script.notes.push(Note { line, kind: NoteKind::DosLineEnds });
    }
    reader.finish(&mut script);
    let in_container = ["container", "container-image"].map(|long| script.effective(long));
    let line = in_container.into_iter().flatten().map(|directive| directive.line).min();
    script.container = line.or(script.container);
    script.directives.sort_by_key(|directive| directive.line);
    script.notes.sort_by_key(|note| note.line);
    script
}

/// What follows the magic word, when the line has one in its first column.
fn directive(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"#SBATCH").or_else(|| line.strip_prefix(b"#SLURM"))
}

fn is_command(line: &[u8]) -> bool {
    line.iter().find(|byte| !is_space(**byte)).is_some_and(|byte| *byte != b'#')
}

/// A comment that looks like a directive and is none, or is another scheduler's.
fn near_miss(line: &[u8]) -> Option<NoteKind> {
    let trimmed = line.trim_ascii_start();
    if line.starts_with(b"#PBS") || line.starts_with(b"#BSUB") {
        return Some(NoteKind::OtherScheduler(text(line.trim_ascii_end())));
    }
    let hashes = trimmed.iter().take_while(|byte| **byte == b'#').count();
    let rest = trimmed.get(hashes..)?;
    let word = rest.trim_ascii_start();
    let named = word.get(..6).is_some_and(|name| name.eq_ignore_ascii_case(b"SBATCH"));
    let option = word.get(6..).is_some_and(|rest| {
        rest.first().is_some_and(|byte| is_space(*byte))
            && rest.trim_ascii_start().starts_with(b"-")
    });
    if hashes == 0 || !named || !option {
        return None;
    }
    Some(if hashes > 1 {
        NoteKind::CommentedOut
    } else if !line.starts_with(b"#") {
        NoteKind::Indented
    } else if rest.len() != word.len() {
        NoteKind::BlankAfterHash
    } else {
        NoteKind::Miscased
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The words of every component so far.
struct Reader {
    components: Vec<Vec<Word>>,
}

impl Reader {
    fn directive(&mut self, script: &mut Script, line: Line<'_>, rest: &[u8], end: usize) {
        let note = |kind| Note { line: line.number, kind };
        if line.bytes.starts_with(b"#SLURM") {
            script.notes.push(note(NoteKind::OldMagicWord));
        }
        let cut = cut(rest, line.offset + line.bytes.len() - rest.len(), line.number);
        if cut.unmatched {
            script.notes.push(note(NoteKind::UnmatchedQuote));
        }
        let mut lost = cut.lost;
        let is_separator = |word: &Word| word.text == b"hetjob" || word.text == b"packjob";
        let mut words = cut.words;
        // First on its line it separates components; the rest of such a line is lost either way.
        let separates = words.first().is_some_and(is_separator);
        if let Some(at) = words.iter().position(is_separator) {
            lost |= !separates || words.len() > at + 1;
            words.truncate(at);
        }
        if lost {
            script.notes.push(note(NoteKind::RestOfLineLost));
        }
        if separates {
            self.components.push(Vec::new());
            script.components += 1;
            script.insert_at.push(end);
        } else if let Some(insert_at) = script.insert_at.last_mut() {
            *insert_at = end;
        }
        if let Some(words_so_far) = self.components.last_mut() {
            words_so_far.append(&mut words);
        }
    }

    fn finish(self, script: &mut Script) {
        for (component, words) in self.components.iter().enumerate() {
            keep(script, words, component, None);
        }
    }
}

/// A directive line behind the first command: read for the report only.
fn ignored(script: &mut Script, line: Line<'_>, rest: &[u8], first_command: usize) {
    let words = cut(rest, line.offset + line.bytes.len() - rest.len(), line.number).words;
    let component = script.components - 1;
    keep(script, &words, component, Some(Ignored::AfterCommand(first_command)));
}

fn keep(script: &mut Script, words: &[Word], component: usize, ignored: Option<Ignored>) {
    for item in options::read(words) {
        let (line, kind) = match item {
            Item::Option { long, spelled, value, span, line, known } => {
                script.directives.push(Directive {
                    line,
                    option: long.clone(),
                    spelled,
                    value,
                    span,
                    ignored,
                    component,
                });
                if known {
                    continue;
                }
                (line, NoteKind::UnknownOption(long))
            }
            Item::Ambiguous { text, line } => (line, NoteKind::Ambiguous(text)),
            Item::Lacking { text, line } => (line, NoteKind::LacksValue(text)),
            Item::Plain { index } => {
                let Some(word) = words.get(index) else { continue };
                (word.line, NoteKind::NotAnOption(text(&word.text)))
            }
        };
        if ignored.is_none() {
            script.notes.push(Note { line, kind });
        }
    }
}

#[cfg(test)]
mod tests;
