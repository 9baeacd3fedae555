//! The `%` patterns of Slurm's file names.
//!
//! Measured on Slurm 22.05 (each row of the tests is a name that it made): `%a` of a job that is
//! no array is 4294967294, widths are padded with zeros to at most ten digits, `%J` and `%s` of a
//! batch script are `JOBID` and `batch`, `%%` is a percent sign, other letters stay as they are,
//! and a backslash anywhere disables all expansion: it goes, and of two one stays. `%b` stays as it is there and
//! is the array index modulo ten in later versions, so both names are tried.

use crate::model::{Job, Part, Source, StepId};

/// What Slurm takes for the array index of a job that is no array (`NO_VAL`).
const NO_INDEX: u64 = 4_294_967_294;
/// Slurm pads to no more digits than this.
const WIDEST: usize = 10;

/// Each open piece multiplies the ways in which a name can be read.
const MOST_OPEN: usize = 4;

/// A piece of an expanded name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// It is known.
    Text(String),
    /// The number of a task, which there may be many of.
    Task,
    /// Something that the record does not say.
    Unknown,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer<'a> {
    /// The batch script.
    Batch,
    /// A step.
    Step(&'a StepId),
}

/// An expanded name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(Vec<Piece>);

/// The names that a pattern may stand for, likeliest first.
pub(super) fn expand(pattern: &str, job: &Job, writer: Writer<'_>) -> Vec<Name> {
    if pattern.contains('\\') {
        return vec![Name::verbatim(&unescaped(pattern))];
    }
    let mut names = vec![expand_as(pattern, job, writer, true)];
    let older = expand_as(pattern, job, writer, false);
    if !names.contains(&older) {
        names.push(older);
    }
    names
}

/// The name that a batch script's file has by a recorded path, as far as all of it is known: accounting
/// keeps the pattern where the controller tells the name.
pub fn written(path: &str, job: &Job) -> String {
    if job.source == Source::Controller {
        return path.to_owned();
    }
    let names = expand(path, job, Writer::Batch);
    names.first().and_then(Name::exact).unwrap_or(path).to_owned()
}

/// The name without the backslashes that escape what follows them.
fn unescaped(pattern: &str) -> String {
    let mut chars = pattern.chars();
    let taken = std::iter::from_fn(|| match chars.next() {
        Some('\\') => Some(chars.next()),
        other => other.map(Some),
    });
    taken.flatten().collect()
}

fn expand_as(pattern: &str, job: &Job, writer: Writer<'_>, modulo: bool) -> Name {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let width = after[..digits].parse::<usize>().unwrap_or(WIDEST).min(WIDEST);
        let width = if digits == 0 { 0 } else { width };
        let Some(letter) = after[digits..].chars().next() else {
            text.push('%');
            rest = after;
            continue;
        };
        let piece = match letter {
            '%' if digits == 0 => Some(Piece::Text("%".into())),
            'b' if !modulo => None,
            _ => piece(letter, job, writer, width),
        };
        let taken = digits + letter.len_utf8();
        match piece {
            Some(Piece::Text(known)) => text.push_str(&known),
            Some(open) => {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(open);
            }
            None => text.push_str(&rest[before.len()..=before.len() + taken]),
        }
        rest = &after[taken..];
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    Name(pieces)
}

/// What a letter stands for; `None` when for nothing.
fn piece(letter: char, job: &Job, writer: Writer<'_>, width: usize) -> Option<Piece> {
    let padded = |number: u64| Piece::Text(format!("{number:0width$}"));
    let word = |text: &str| Piece::Text(text.to_owned());
    let index = match job.id.part {
        Part::Task(index) => index,
        _ => NO_INDEX,
    };
    let own_id = match job.id.part {
        // Of a heterogeneous job only the leader writes, under the common number.
        Part::Whole | Part::Component(_) => Some(job.id.number),
        Part::Task(_) | Part::Tasks(_) => job.raw_id.get(),
    };
    Some(match letter {
        'A' => padded(job.id.number),
        'a' => padded(index),
        'b' => padded(index % 10),
        'j' => own_id.map_or(Piece::Unknown, padded),
        'J' => match (own_id, writer) {
            (None, _) => Piece::Unknown,
            (Some(id), Writer::Batch) => padded(id),
            (Some(id), Writer::Step(step)) => Piece::Text(format!("{id:0width$}.{step}")),
        },
        's' => match writer {
            Writer::Batch => word("batch"),
            Writer::Step(step) => step.0.parse().map_or_else(|_| word(&step.0), padded),
        },
        't' if writer != Writer::Batch => Piece::Task,
        'n' if writer != Writer::Batch => Piece::Unknown,
        't' | 'n' => padded(0),
        // The host's own name, which need not be the node's.
        'N' => Piece::Unknown,
        'u' => job.user.as_deref().map_or(Piece::Unknown, word),
        'x' => word(&job.name),
        _ => return None,
    })
}

/// A file's name that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// The number of the task, where the name has it.
    pub(super) task: Option<u64>,
}

impl Name {
    /// A name that is taken as it is.
    pub(super) fn verbatim(text: &str) -> Self {
        Self(vec![Piece::Text(text.to_owned())])
    }

    /// The name, if all of it is known.
    pub(super) fn exact(&self) -> Option<&str> {
        match &self.0[..] {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The directory part with its slash, if it is known, and the name in it.
    pub(super) fn split_directory(&self) -> Option<(&str, Self)> {
        let Some((Piece::Text(first), rest)) = self.0.split_first() else { return None };
        let later = rest.iter().any(|piece| matches!(piece, Piece::Text(t) if t.contains('/')));
        let slash = first.rfind('/').filter(|_| !later)?;
        let mut pieces = vec![Piece::Text(first[slash + 1..].to_owned())];
        pieces.extend_from_slice(rest);
        Some((&first[..=slash], Self(pieces)))
    }

    /// Puts a directory before a relative name.
    pub(super) fn below(mut self, directory: &str) -> Self {
        if let Some(Piece::Text(first)) = self.0.first_mut()
            && !first.starts_with('/')
        {
            *first = format!("{}/{first}", directory.trim_end_matches('/'));
        }
        self
    }

    /// Whether it says where it is.
    pub(super) fn is_absolute(&self) -> bool {
        matches!(self.0.first(), Some(Piece::Text(first)) if first.starts_with('/'))
    }

    /// Whether a file's name fits, and the number of the task where the name has it.
    pub(super) fn matches(&self, file: &str) -> Option<Fit> {
        let open = self.0.iter().filter(|piece| !matches!(piece, Piece::Text(_))).count();
        if open > MOST_OPEN { None } else { fit(&self.0, file) }
    }

    /// For people: what is not known as a star.
    pub(super) fn shown(&self) -> String {
        self.0.iter().map(|p| if let Piece::Text(text) = p { text.as_str() } else { "*" }).collect()
    }
}

fn fit(pieces: &[Piece], file: &str) -> Option<Fit> {
    let Some((first, rest)) = pieces.split_first() else {
        return file.is_empty().then_some(Fit { task: None });
    };
    match first {
        Piece::Text(text) => fit(rest, file.strip_prefix(text.as_str())?),
        Piece::Task => {
            let digits = file.bytes().take_while(u8::is_ascii_digit).count();
            (1..=digits).rev().find_map(|end| {
                let inner = fit(rest, &file[end..])?;
                Some(Fit { task: file[..end].parse().ok().or(inner.task) })
            })
        }
        // Names of hosts and users and numbers hold no blanks.
        Piece::Unknown => file
            .char_indices()
            .take_while(|(_, c)| !c.is_whitespace())
            .map(|(at, c)| at + c.len_utf8())
            .find_map(|end| fit(rest, &file[end..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JobId, Known, State};

    fn job(id: &str, raw: Option<u64>) -> Job {
        let id = id.parse::<JobId>().expect("an id");
        let mut job = Job::bare(id, State::parse("FAILED"), Source::Accounting);
        job.raw_id = Known::from(raw);
        job.user = Some("alice".into());
        job.name = "out-patterns".into();
        job
    }

    fn batch(pattern: &str, job: &Job) -> String {
        expand(pattern, job, Writer::Batch)[0].shown()
    }

    #[test]
    fn what_accounting_keeps_as_a_pattern_is_told_as_the_name() {
        // 24.11 kept this of job 80, whose file its own sbatch called so.
        let mut job = job("80", None);
        assert_eq!(written("/h/n-%A_%a.out", &job), "/h/n-80_4294967294.out");
        assert_eq!(written("/h/%N-%j.out", &job), "/h/%N-%j.out");
        job.source = Source::Controller;
        assert_eq!(written("/h/100%A.out", &job), "/h/100%A.out");
    }

    /// Each name was made by a job of Slurm 22.05.
    #[test]
    fn names_of_batch_logs_are_those_that_slurm_makes() {
        // Weakness 21: `%a` of a job that is no array is 4294967294, not 0.
        let plain = job("346", Some(346));
        for (pattern, name) in [
            (
                "J%J-s%s-3j%6j-z%4a-15j%15j-q%q.o",
                "J346-sbatch-3j000346-z4294967294-15j0000000346-q%q.o",
            ),
            ("pc%%j.o", "pc%j.o"),
            ("three%%%j.o", "three%346.o"),
            ("bs\\j-%j.o", "bsj-%j.o"),
            // By the source of its `fname.c`.
            (r"a\\b%j.out", r"a\b%j.out"),
            (r"end\", "end"),
            ("oom-%A_%a.out", "oom-346_4294967294.out"),
            ("p-%u-%x-%n-%t-%%.log", "p-alice-out-patterns-0-0-%.log"),
        ] {
            assert_eq!(batch(pattern, &plain), name);
        }
        let task = job("349_12", Some(349));
        assert_eq!(batch("arr%A-%a-%4a-%J.o", &task), "arr349-12-0012-349.o");
        let older: Vec<String> =
            expand("%b.o", &task, Writer::Batch).iter().map(Name::shown).collect();
        assert_eq!(older, ["2.o", "%b.o"]);
        assert_eq!(batch("het-%j.out", &job("75+1", Some(76))), "het-75.out");
    }

    /// The files that `srun -o step-%J-%s-%t-%n-%3t-%j-%A-%a.o` of the same Slurm made.
    #[test]
    fn names_of_task_logs_tell_the_task() {
        let step = StepId("0".into());
        let pattern = "step-%J-%s-%t-%n-%3t-%j-%A-%a.o";
        let name = &expand(pattern, &job("346", None), Writer::Step(&step))[0];
        assert_eq!(
            name.matches("step-346.0-0-0-0-000-346-346-4294967294.o"),
            Some(Fit { task: Some(0) })
        );
        assert_eq!(
            name.matches("step-346.0-0-1-0-001-346-346-4294967294.o"),
            Some(Fit { task: Some(1) })
        );
        assert_eq!(name.matches("step-347.0-0-0-0-000-347-347-4294967294.o"), None);
    }

    #[test]
    fn what_the_record_does_not_say_is_left_open() {
        let task = job("349_12", None);
        let name = &expand("/a/%N/%j.o", &task, Writer::Batch)[0];
        assert_eq!((name.shown().as_str(), name.exact()), ("/a/*/*.o", None));
        assert_eq!(name.split_directory(), None);
        let name = &expand("/a/log-%N.o", &task, Writer::Batch)[0];
        let (directory, name) = name.split_directory().expect("a directory");
        assert_eq!((directory, name.matches("log-n01.o")), ("/a/", Some(Fit { task: None })));
        assert_eq!(name.matches("log-.o"), None);
    }

    #[test]
    fn many_open_pieces_are_not_tried_for_ever() {
        let name = &expand(&"%N-".repeat(40), &job("1", None), Writer::Batch)[0];
        assert_eq!(name.matches(&"a-".repeat(120)), None);
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_panics(pattern in "[%0-9a-zA-Z\\\\/äé.]{0,30}", file in "\\PC{0,30}") {
            for name in expand(&pattern, &job("349_12", None), Writer::Batch) {
                name.matches(&file);
                name.split_directory();
            }
        }
    }
}
