//! The command line that submitted a job, as accounting recorded it.
//!
//! Accounting joins the arguments with blanks and quotes nothing, so `-J my job -t 5 run.sh` cannot
//! be told apart from a script `job` with arguments. The rule here: the script is the first free
//! word that looks like a file of a script; if none does, the first free word. For `srun` it is
//! the first free word: what follows belongs to the program.

use serde::Serialize;

use super::options::{self, Item};
use super::words::Word;

/// A submission command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SubmitLine {
    /// The program: `sbatch`, `srun`, `salloc`.
    pub program: String,
    /// The options before the script; they win over the script's own.
    pub options: Vec<Given>,
    /// The script.
    pub script: Option<String>,
    /// Whether `--wrap` took the place of a script.
    pub wrap: bool,
}

/// One option of a submission command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Given {
    /// The long name.
    pub option: String,
    /// As written up to the value.
    pub spelled: String,
    /// The value.
    pub value: Option<String>,
    /// The component of a heterogeneous job, from 0.
    pub component: usize,
}

impl Given {
    /// The option with its value, as written.
    pub fn as_written(&self) -> String {
        format!("{}{}", self.spelled, self.value.as_deref().unwrap_or_default())
    }
}

impl SubmitLine {
    /// The option that decides for a component: its own last one, or what it inherits; options
    /// before any `:` hold for every component, those of the script included.
    pub fn effective(&self, component: usize, long: &str) -> Option<&Given> {
        let given = self.options.iter().filter(|given| given.option == long);
        given.filter(|given| given.component <= component).max_by_key(|given| given.component)
    }
}

/// Reads a submission command as accounting recorded it.
pub fn parse_submit_line(line: &str) -> SubmitLine {
    let mut words = line.split_ascii_whitespace();
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut submit = SubmitLine { program, ..SubmitLine::default() };
    let words: Vec<Word> = words.map(word).collect();
    let items = options::read(&words);
    let is_script = |item: &Item| match item {
        Item::Plain { index } => words.get(*index).is_some_and(looks_like_script),
        _ => false,
    };
    let free = |item: &Item| match item {
        Item::Plain { index } => words.get(*index).is_some_and(|word| word.text != b":"),
        _ => false,
    };
    let first = || items.iter().position(free);
    let end = match submit.program.as_str() {
        "srun" => first(),
        _ => items.iter().position(is_script).or_else(first),
    };
    let mut component = 0;
    for (at, item) in items.into_iter().enumerate() {
        match item {
            Item::Plain { index } if Some(at) == end => {
                submit.script = words.get(index).map(|word| super::text(&word.text));
                break;
            }
            Item::Plain { index } => {
                component += usize::from(words.get(index).is_some_and(|word| word.text == b":"));
            }
            // What follows belongs to the wrapped command.
            Item::Option { long, .. } if long == "wrap" => {
                submit.wrap = true;
                break;
            }
            Item::Option { long, spelled, value, .. } => {
                submit.options.push(Given { option: long, spelled, value, component });
            }
            Item::Ambiguous { .. } | Item::Lacking { .. } => {}
        }
    }
    submit
}

fn word(text: &str) -> Word {
    Word { text: text.as_bytes().to_vec(), places: vec![], span: 0..0, line: 1 }
}

fn looks_like_script(word: &Word) -> bool {
    const ENDINGS: [&str; 13] = [
        "sh", "bash", "zsh", "ksh", "csh", "slurm", "sbatch", "batch", "job", "sub", "slm", "py",
        "run",
    ];
    let text = String::from_utf8_lossy(&word.text);
    let ending = text.rsplit_once('.').map(|(_, ending)| ending);
    text.contains('/') || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}
