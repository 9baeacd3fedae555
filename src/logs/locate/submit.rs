//! What a recorded submission command says about files.
//!
//! The record joins the arguments with blanks and drops the quotes, so it is read as `sbatch` and
//! `srun` read theirs (options end at the first word that is none; the last of several wins), and
//! where a value may have held blanks it is completed from what else is known: the job's name, its
//! comment, its directory, and which files exist. Which options take a value is from the programs'
//! `--help` (Slurm 22.05 and 26.05).

/// Options without a value, or whose value must be attached, of sbatch, salloc and srun.
const FLAGS: &[&str] = &[
    "bcast",
    "compress",
    "contiguous",
    "debugger-test",
    "disable-status",
    "disable-stdout-job-summary",
    "exact",
    "exclusive",
    "external-launcher",
    "get-user-env",
    "help",
    "hold",
    "ignore-pbs",
    "immediate",
    "interactive",
    "kill-on-bad-exit",
    "label",
    "multi-prog",
    "nice",
    "no-allocate",
    "no-kill",
    "no-requeue",
    "no-shell",
    "oom-kill-step",
    "overcommit",
    "overlap",
    "oversubscribe",
    "parsable",
    "preserve-env",
    "propagate",
    "pty",
    "quiet",
    "quit-on-interrupt",
    "reboot",
    "requeue",
    "resv-ports",
    "send-libs",
    "share",
    "spread-job",
    "spread-segments",
    "stepmgr",
    "test-only",
    "unbuffered",
    "usage",
    "use-min-nodes",
    "verbose",
    "version",
    "x11",
];

/// The program that submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A batch script.
    Sbatch,
    /// A step, or a job of one step.
    Srun,
    /// An allocation that a person types into.
    Salloc,
}

/// What a submission command asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Submitted {
    pub(super) program: Program,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) chdir: Option<String>,
}

/// Values that are recorded elsewhere, with their blanks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recorded<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) comment: Option<&'a str>,
    pub(super) directory: Option<&'a str>,
}

/// Reads a submission command; `None` when it is not one. `exists` says whether a value of
/// `--output` or `--error` leads to a file.
pub(super) fn read(
    line: &str,
    recorded: Recorded<'_>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<Submitted> {
    let mut words = Words { rest: line };
    let program = match words.next()?.rsplit('/').next()? {
        "sbatch" => Program::Sbatch,
        "srun" => Program::Srun,
        "salloc" => Program::Salloc,
        _ => return None,
    };
    let mut submitted = Submitted { program, output: None, error: None, chdir: None };
    while let Some(word) = words.peek() {
        if !word.starts_with('-') || word == "-" || word == "--" {
            break;
        }
        let (name, value) = if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            let flag = FLAGS.iter().any(|flag| flag.starts_with(name));
            let flag = flag || name == "wait" && program == Program::Sbatch;
            words.skip(if attached { "--=".len() + name.len() } else { word.len() });
            (long_name(name), attached || !flag)
        } else {
            let flags = match program {
                Program::Sbatch => "HIOQVWhksv",
                Program::Srun => "EHIKOQVXZhklsuv",
                Program::Salloc => "HIKOQVhksv",
            };
            let Some((at, letter)) =
                word.char_indices().skip(1).find(|(_, letter)| !flags.contains(*letter))
            else {
                words.skip(word.len());
                continue;
            };
            // A flag with an attached value: -I60.
            if letter.is_ascii_digit() {
                words.skip(word.len());
                continue;
            }
            words.skip(at + letter.len_utf8());
            (short_name(letter), true)
        };
        if !value {
            continue;
        }
        let value = match name {
            Name::Output | Name::Error => words.take_file(exists),
            Name::Job => words.take(recorded.name),
            Name::Comment => words.take(recorded.comment),
            Name::Directory => words.take(recorded.directory),
            Name::Script => break,
            Name::Other => words.take(None),
        };
        match name {
            Name::Output => submitted.output = Some(value.to_owned()),
            Name::Error => submitted.error = Some(value.to_owned()),
            Name::Directory => submitted.chdir = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(submitted)
}

/// The options that matter.
#[derive(Clone, Copy)]
enum Name {
    Output,
    Error,
    Directory,
    Job,
    Comment,
    /// The script itself follows: `--wrap`.
    Script,
    Other,
}

/// Long options may be shortened as long as they are unique.
fn long_name(name: &str) -> Name {
    let means = |full: &str, least: usize| name.len() >= least && full.starts_with(name);
    match () {
        () if means("output", 3) => Name::Output,
        () if means("error", 2) => Name::Error,
        () if means("chdir", 2) => Name::Directory,
        () if means("job-name", 5) => Name::Job,
        () if means("comment", 4) => Name::Comment,
        () if means("wrap", 2) => Name::Script,
        () => Name::Other,
    }
}

fn short_name(letter: char) -> Name {
    match letter {
        'o' => Name::Output,
        'e' => Name::Error,
        'D' => Name::Directory,
        'J' => Name::Job,
        _ => Name::Other,
    }
}

/// The words of a command that are still to be read.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn peek(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start();
        self.rest.split_whitespace().next()
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.skip(word.len());
        Some(word)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// A value: what is recorded if that stands here, else a word.
    fn take(&mut self, recorded: Option<&str>) -> &'a str {
        let start = self.rest.strip_prefix(' ').unwrap_or(self.rest);
        if let Some(recorded) = recorded
            && let Some(after) = start.strip_prefix(recorded)
            && (after.is_empty() || after.starts_with(char::is_whitespace))
        {
            self.rest = after;
            return &start[..recorded.len()];
        }
        self.next().unwrap_or_default()
    }

    /// The name of a file: a word, and if that leads to none, the longest run of words up to the
    /// next option that does.
    fn take_file(&mut self, exists: &dyn Fn(&str) -> bool) -> &'a str {
        let Some(word) = self.peek() else { return "" };
        let until = self.rest.find(" -").unwrap_or(self.rest.len());
        let run = &self.rest[..until];
        if run.len() > word.len() && !exists(word) {
            let ends = run.match_indices(' ').map(|(at, _)| at).chain([run.len()]);
            let mut ends: Vec<usize> = ends.filter(|&end| end > word.len()).take(32).collect();
            ends.reverse();
            if let Some(end) = ends.into_iter().find(|&end| exists(&run[..end])) {
                self.skip(end);
                return &run[..end];
            }
        }
        self.skip(word.len());
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(line: &str) -> Option<String> {
        read(line, Recorded::default(), &|_| false).and_then(|submitted| submitted.output)
    }

    #[test]
    fn every_way_to_write_an_option_is_read() {
        for line in [
            "sbatch -o x.out run.sh",
            "sbatch -ox.out run.sh",
            "/usr/bin/sbatch --output x.out run.sh",
            "sbatch --output=x.out run.sh",
            "sbatch --out x.out run.sh",
            "sbatch -o first.out -o x.out run.sh",
            "sbatch -HQo x.out run.sh",
            "sbatch -W --parsable -n 4 --exclusive --nice=5 -o x.out run.sh",
            "sbatch -p gpu --gres gpu:1 -o x.out --wrap=python a.py -o no",
            "srun -l -W 60 -K1 -o x.out ./a.out -o no",
        ] {
            assert_eq!(output(line).as_deref(), Some("x.out"), "{line}");
        }
    }

    #[test]
    fn options_of_the_script_are_not_options_of_the_job() {
        // Weakness 22: the last `-o` of the line was taken, whosever it was.
        for line in [
            "sbatch run.sh -o results.txt",
            "sbatch -n 2 run.sh --output=results.txt",
            "sbatch --wrap=python a.py -o results.txt",
            "sbatch -- run.sh -o results.txt",
            "python train.py -o results.txt",
            "",
        ] {
            assert_eq!(output(line), None, "{line}");
        }
    }

    /// Commands as Slurm 22.05 recorded them.
    #[test]
    fn values_with_blanks_are_completed_from_what_is_known() {
        let line = "sbatch --parsable -J workdir-space -o workdir-space-%A_%a.out -D /data/ -o \
            out dir %x %j.txt -e err %x %j.txt /scripts/workdir-space.sh";
        let exists = |file: &str| matches!(file, "out dir %x %j.txt" | "err %x %j.txt");
        let submitted = read(line, Recorded::default(), &exists).expect("a command");
        assert_eq!(submitted.output.as_deref(), Some("out dir %x %j.txt"));
        assert_eq!(submitted.error.as_deref(), Some("err %x %j.txt"));
        assert_eq!(submitted.chdir.as_deref(), Some("/data/"));

        let line = "sbatch -J my job with spaces --comment=a - b -o x.out run.sh";
        let recorded =
            Recorded { name: Some("my job with spaces"), comment: Some("a - b"), directory: None };
        let submitted = read(line, recorded, &|_| false).expect("a command");
        assert_eq!(submitted.output.as_deref(), Some("x.out"));
    }

    proptest::proptest! {
        #[test]
        fn no_command_panics(line in "(sbatch|srun) [-a-zA-Z=o \u{e9}\t0-9]{0,60}") {
            read(&line, Recorded { name: Some("a b"), ..Recorded::default() }, &|_| true);
        }
    }
}
