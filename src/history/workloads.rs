//! Which runs are of the same work.
//!
//! A workload is what one user runs under one name, numbers in it left out, in one partition, with
//! or without GPUs. How much it asked for does not matter: that changes, and is what is judged.
//! Names such as `job` or `wrap` say little, so runs of one name are told apart by their script and
//! directory where those make a few groups of several runs each; where every run has its own, they
//! say nothing.

use std::collections::{BTreeSet, HashMap};

use crate::model::{History, Run, Symbol};
use crate::script::parse_submit_line;

/// Runs of the same work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The name that all runs have, or what their names have in common: `train-#`.
    pub label: String,
    /// Whose.
    pub user: Option<Symbol>,
    /// Where.
    pub partition: Option<Symbol>,
    /// Whether its runs hold GPUs.
    pub gpus: bool,
    /// The script that tells it from other work of its name, where that was needed.
    pub script: Option<String>,
    /// How many names the label stands for.
    pub names: usize,
    /// Indexes of its runs, those that started, in the order of their starts.
    pub runs: Vec<u32>,
}

impl Workload {
    /// Its runs in the order of their starts.
    pub fn runs<'h>(&'h self, history: &'h History) -> impl DoubleEndedIterator<Item = &'h Run> {
        self.runs.iter().filter_map(|index| history.runs.get(*index as usize))
    }
}

/// The folded name, the partition, whether there are GPUs, the user.
type Key = (u32, Option<Symbol>, bool, Option<Symbol>);

/// Groups of one name are told apart when they are at most this many.
const MOST_PARTS: usize = 8;
/// And hold at least this many runs each, on average.
const LEAST_RUNS: usize = 4;

/// The workloads of a history, in the order of their labels. Runs that never held anything are in
/// none.
pub fn workloads(history: &History) -> Vec<Workload> {
    let mut folds: HashMap<Option<Symbol>, u32> = HashMap::new();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    // A million names are folded in one buffer.
    let mut folded = String::new();
    let mut texts: Vec<String> = Vec::new();
    let mut groups: HashMap<Key, Vec<u32>> = HashMap::new();
    for (index, run) in history.runs.iter().enumerate() {
        if !run.has_started() || run.stale {
            continue;
        }
        let known = folds.get(&run.name).copied();
        let fold = known.unwrap_or_else(|| {
            folded.clear();
            fold_into(history.text(run.name), &mut folded);
            let number = numbers.get(folded.as_str()).copied().unwrap_or_else(|| {
                let next = u32::try_from(texts.len()).unwrap_or(u32::MAX);
                texts.push(folded.clone());
                numbers.insert(folded.clone(), next);
                next
            });
            folds.insert(run.name, number);
            number
        });
        let gpus = run.gpus.get().is_some_and(|gpus| gpus > 0);
        let key = (fold, run.partition, gpus, run.user);
        groups.entry(key).or_default().push(u32::try_from(index).unwrap_or(u32::MAX));
    }
    let mut scripts = Scripts::new(history);
    let mut found = Vec::new();
    for ((fold, partition, gpus, user), runs) in groups {
        for (script, mut runs) in scripts.apart(runs) {
            runs.sort_unstable_by_key(|index| {
                let run = &history.runs[*index as usize];
                (run.started.get(), run.number, run.part, run.submitted.get())
            });
            let mut names: Vec<Option<Symbol>> =
                runs.iter().map(|index| history.runs[*index as usize].name).collect();
            names.sort_unstable();
            names.dedup();
            let label = label(&texts[fold as usize], history, &names);
            let names = names.len();
            found.push(Workload { label, user, partition, gpus, script, names, runs });
        }
    }
    found.sort_by(|a, b| order(a, history).cmp(&order(b, history)));
    found
}

/// By what is printed, so that no number of a symbol shows.
fn order<'w>(workload: &'w Workload, history: &'w History) -> impl Ord + use<'w> {
    (
        workload.label.as_str(),
        history.text(workload.user),
        history.text(workload.partition),
        workload.gpus,
        workload.script.as_deref(),
        workload.runs.first(),
    )
}

/// The one name there is; the common part of several; one of them and a number where nothing but
/// digits is common.
fn label(fold: &str, history: &History, names: &[Option<Symbol>]) -> String {
    if let [only] = names {
        let name = history.text(*only);
        return if name.is_empty() { "?".to_owned() } else { name.to_owned() };
    }
    if fold.chars().any(char::is_alphabetic) {
        return fold.to_owned();
    }
    let first = names.iter().map(|name| history.text(*name)).min().unwrap_or_default();
    format!("{first} +{}", names.len() - 1)
}

/// A name without what counts or identifies: each run of digits is `#`, and so is each word that is
/// a hash.
pub fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    fold_into(name, &mut folded);
    folded
}

fn fold_into(name: &str, folded: &mut String) {
    /// A short commit hash is seven.
    const HASH: usize = 7;
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if !is_word(c) {
            folded.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        rest = after;
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        if word.len() >= HASH && has_digit && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            folded.push('#');
            continue;
        }
        for c in word.chars() {
            if !c.is_ascii_digit() {
                folded.push(c);
            } else if !folded.ends_with('#') {
                folded.push('#');
            }
        }
    }
}

/// The scripts and directories of submission commands, each read once.
struct Scripts<'h> {
    history: &'h History,
    names: HashMap<Option<Symbol>, String>,
    directories: HashMap<Option<Symbol>, String>,
}

impl<'h> Scripts<'h> {
    fn new(history: &'h History) -> Self {
        Self { history, names: HashMap::new(), directories: HashMap::new() }
    }

    /// The runs of one name, told apart where that makes sense.
    fn apart(&mut self, runs: Vec<u32>) -> Vec<(Option<String>, Vec<u32>)> {
        let of = |index: u32| {
            let run = &self.history.runs[index as usize];
            (run.submit_line, run.work_dir)
        };
        let first = runs.first().map(|index| of(*index));
        if runs.len() < 2 * LEAST_RUNS || runs.iter().all(|index| Some(of(*index)) == first) {
            return vec![(None, runs)];
        }
        let mut parts: HashMap<(String, String), Vec<u32>> = HashMap::new();
        for index in &runs {
            let (submit_line, work_dir) = of(*index);
            parts.entry(self.shape(submit_line, work_dir)).or_default().push(*index);
            if parts.len() > MOST_PARTS {
                return vec![(None, runs)];
            }
        }
        if parts.len() < 2 || runs.len() < parts.len() * LEAST_RUNS {
            return vec![(None, runs)];
        }
        let scripts: BTreeSet<&str> = parts.keys().map(|(script, _)| script.as_str()).collect();
        let by_script = scripts.len() == parts.len();
        let told = |(script, directory): (String, String)| {
            if by_script || directory.is_empty() {
                script
            } else {
                format!("{script} in {directory}")
            }
        };
        parts.into_iter().map(|(shape, runs)| (Some(told(shape)), runs)).collect()
    }

    /// The script's own name and the directory, both without numbers.
    fn shape(&mut self, submit_line: Option<Symbol>, work_dir: Option<Symbol>) -> (String, String) {
        let history = self.history;
        let script = self.names.entry(submit_line).or_insert_with(|| {
            let submit = parse_submit_line(history.text(submit_line));
            let script = submit.script.unwrap_or_default();
            fold(script.rsplit('/').next().unwrap_or_default())
        });
        let directory =
            self.directories.entry(work_dir).or_insert_with(|| fold(history.text(work_dir)));
        (script.clone(), directory.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BaseState, Maybe, RunPart};

    struct Made(History);

    impl Made {
        fn new() -> Self {
            Self(History::default())
        }

        fn run(&mut self, name: &str, line: &str, directory: &str) -> &mut Run {
            let number = u32::try_from(self.0.runs.len() + 1).expect("few");
            let mut symbol = |text: &str| self.0.names.intern_some(text);
            let run = Run {
                name: symbol(name),
                user: symbol("ada"),
                partition: symbol("cpu"),
                submit_line: symbol(line),
                work_dir: symbol(directory),
                node_list: symbol("n1"),
                started: Maybe::some(1000 + number),
                ended: Maybe::some(2000),
                gpus: Maybe::some(0),
                ..Run::bare(number, RunPart::Whole, BaseState::Completed)
            };
            self.0.runs.push(run);
            self.0.runs.last_mut().expect("just pushed")
        }

        fn found(&self) -> Vec<(String, Option<String>, usize, usize)> {
            let found = workloads(&self.0).into_iter();
            found.map(|w| (w.label, w.script, w.names, w.runs.len())).collect()
        }
    }

    #[test]
    fn numbers_and_hashes_in_names_do_not_count() {
        for (name, folded) in [
            ("train-17", "train-#"),
            ("fold3_lr0.001", "fold#_lr#.#"),
            ("snake_1a2b3c4d", "snake_#"),
            ("run-3f9c2d1", "run-#"),
            ("550e8400-e29b-41d4-a716-446655440000", "#-e#b-#d#-a#-#"),
            // A word of letters that hashes are made of is a word.
            ("defaced", "defaced"),
            ("größe-7", "größe-#"),
            ("", ""),
        ] {
            assert_eq!(fold(name), folded, "{name}");
        }
    }

    #[test]
    fn a_label_is_a_name_where_there_is_one() {
        let mut made = Made::new();
        for name in ["train-1", "train-2", "train-2", "align", "3", "17", ""] {
            made.run(name, "sbatch run.sh", "/w");
        }
        let told: Vec<_> = made.found().into_iter().map(|w| (w.0, w.2, w.3)).collect();
        let expected = [("17 +1", 2, 2), ("?", 1, 1), ("align", 1, 1), ("train-#", 2, 3)];
        assert_eq!(told, expected.map(|(label, names, runs)| (label.to_owned(), names, runs)));
    }

    #[test]
    fn one_name_for_different_scripts_is_different_work() {
        let mut made = Made::new();
        for _ in 0..5 {
            made.run("wrap", "sbatch --mem=4G fit.sh", "/w");
            made.run("wrap", "sbatch plot.sh 1", "/w");
        }
        let scripts: Vec<_> = made.found().into_iter().map(|w| (w.1, w.3)).collect();
        assert_eq!(scripts, [(Some("fit.sh".to_owned()), 5), (Some("plot.sh".to_owned()), 5)]);
        // A script of its own for every run says nothing, and neither does a number in it.
        let mut made = Made::new();
        for letter in 'a'..='j' {
            made.run("wrap", &format!("sbatch {letter}.sh"), "/w");
        }
        assert_eq!(made.found().len(), 1);
        let mut made = Made::new();
        for number in 0..10 {
            made.run("wrap", &format!("sbatch task-{number}.sh"), &format!("/w/{number}"));
        }
        assert_eq!(made.found().len(), 1);
    }

    #[test]
    fn whose_where_and_with_what_it_ran_tells_work_apart() {
        let mut made = Made::new();
        made.run("fit", "sbatch fit.sh", "/w");
        made.run("fit", "sbatch fit.sh", "/w").gpus = Maybe::some(2);
        let other = made.0.names.intern("bela");
        made.run("fit", "sbatch fit.sh", "/w").user = Some(other);
        made.run("fit", "sbatch fit.sh", "/w").partition = None;
        // Neither one that never held anything, nor one of which nobody knows the end.
        let waits = made.run("fit", "sbatch fit.sh", "/w");
        (waits.started, waits.node_list) = (Maybe::NONE, None);
        made.run("fit", "sbatch fit.sh", "/w").stale = true;
        assert_eq!(made.found().iter().map(|w| w.3).collect::<Vec<_>>(), [1, 1, 1, 1]);
    }

    #[test]
    fn the_order_of_the_runs_does_not_matter() {
        let mut made = Made::new();
        for number in 0..12 {
            made.run(&format!("w{}-{number}", number % 3), "sbatch a.sh", "/w");
        }
        let first = workloads(&made.0);
        let names = |found: &[Workload], history: &History| {
            let numbers = |w: &Workload| w.runs(history).map(|run| run.number).collect::<Vec<_>>();
            found.iter().map(|w| (w.label.clone(), numbers(w))).collect::<Vec<_>>()
        };
        let told = names(&first, &made.0);
        made.0.runs.reverse();
        assert_eq!(names(&workloads(&made.0), &made.0), told);
    }
}
