//! Job and step ids as users type them and schedulers print them.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Why a text is no job id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a job id")]
pub struct IdError {
    /// What was given.
    pub text: String,
}

/// Which part of a job an id names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// All of it.
    Whole,
    /// One task of an array: `123_4`.
    Task(u64),
    /// Tasks of an array that are still one record: `123_[1-9%2]`; the text between the brackets.
    Tasks(String),
    /// One component of a heterogeneous job: `123+1`.
    Component(u32),
}

/// A job id: number, part, step and cluster, as in `123_4`, `123+1`, `123.batch`, `123;west`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    /// The number that all parts share.
    pub number: u64,
    /// The part named.
    pub part: Part,
    /// The cluster, when the id names one.
    pub cluster: Option<String>,
}

impl JobId {
    /// A whole job.
    pub fn whole(number: u64) -> Self {
        Self { number, part: Part::Whole, cluster: None }
    }

    /// How many tasks it names: one, or those of a list that waits in one record; nothing where the
    /// list was cut.
    pub fn tasks(&self) -> Option<u64> {
        let Part::Tasks(list) = &self.part else { return Some(1) };
        let list = list.split('%').next().unwrap_or_default();
        list.split(',').try_fold(0_u64, |sum, range| {
            let (range, step) = range.split_once(':').unwrap_or((range, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let [first, last, step] = [digits(first)?, digits(last)?, digits(step)?.max(1)];
            Some(sum + last.checked_sub(first)? / step + 1)
        })
    }

    /// Reads an id that may name a step, and returns the two apart.
    pub fn parse_with_step(text: &str) -> Result<(Self, Option<StepId>), IdError> {
        let error = || IdError { text: text.to_owned() };
        // Names of steps and clusters are words: anything else was not meant as an id.
        let word = |name: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+".contains(&byte);
            !name.is_empty() && name.bytes().all(fits)
        };
        let (id, cluster) = match text.trim().split_once(';') {
            Some((id, cluster)) if word(cluster) => (id, Some(cluster.to_owned())),
            Some(_) => return Err(error()),
            None => (text.trim(), None),
        };
        // A list of tasks may have dots of its own.
        let whole = id.rfind(']').unwrap_or(0);
        let (id, step) = match id[whole..].find('.').map(|dot| id.split_at(whole + dot)) {
            Some((id, step)) if word(&step[1..]) => (id, Some(StepId(step[1..].to_owned()))),
            Some(_) => return Err(error()),
            None => (id, None),
        };
        let (number, part) = if let Some((number, task)) = id.split_once('_') {
            let part = if let Some(rest) = task.strip_prefix('[') {
                let tasks = rest.strip_suffix(']').filter(|tasks| are_tasks(tasks));
                Part::Tasks(tasks.ok_or_else(error)?.to_owned())
            } else {
                Part::Task(digits(task).ok_or_else(error)?)
            };
            (number, part)
        } else if let Some((number, component)) = id.split_once('+') {
            let component = digits(component).and_then(|n| u32::try_from(n).ok());
            (number, Part::Component(component.ok_or_else(error)?))
        } else {
            (id, Part::Whole)
        };
        let number = digits(number).filter(|number| *number > 0).ok_or_else(error)?;
        Ok((Self { number, part, cluster }, step))
    }
}

/// A number of 32 bits, which is what schedulers count jobs, tasks and components with; their
/// clients read a larger one as another.
fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if all { text.parse::<u32>().ok().map(u64::from) } else { None }
}

/// Whether a text lists tasks: `1,3-9,20-40:10%2`; a list that was cut ends with `...`.
fn are_tasks(text: &str) -> bool {
    let (list, at_once) = text.split_once('%').unwrap_or((text, "1"));
    let is_range = |range: &str| {
        let (range, step) = range.split_once(':').unwrap_or((range, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        [first, last, step].into_iter().all(|number| digits(number).is_some())
    };
    let whole = list.strip_suffix(",...").unwrap_or(list);
    digits(at_once).is_some() && whole.split(',').all(is_range)
}

impl FromStr for JobId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse_with_step(text).map(|(id, _)| id)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.number.to_string();
        match &self.part {
            Part::Whole => {}
            Part::Task(task) => text.push_str(&format!("_{task}")),
            Part::Tasks(tasks) => text.push_str(&format!("_[{tasks}]")),
            Part::Component(component) => text.push_str(&format!("+{component}")),
        }
        if let Some(cluster) = &self.cluster {
            text.push_str(&format!(";{cluster}"));
        }
        f.pad(&text)
    }
}

/// Nothing where there is no job, only logs or a text: such a one has the number 0.
impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.number == 0 { serializer.serialize_none() } else { serializer.collect_str(self) }
    }
}

/// A step of a job: `batch`, `extern`, `interactive`, or a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct StepId(pub String);

impl StepId {
    /// The step that runs the batch script.
    pub fn is_batch(&self) -> bool {
        self.0 == "batch"
    }

    /// The step that holds the job's environment on each node; it runs none of the user's work.
    pub fn is_extern(&self) -> bool {
        self.0 == "extern"
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_as_they_were_typed() {
        let lists =
            ["123_[1,3-9,20-40:10%2]", "123_[1-3,...]", "123_[0,...%2]", "123_[4294967295]"];
        let plain = ["123", "123_4", "123_[1-9%2]", "123+1", "123;west", "123_4;west"];
        for text in lists.into_iter().chain(plain) {
            assert_eq!(text.parse::<JobId>().map(|id| id.to_string()).as_deref(), Ok(text));
        }
        let (id, step) = JobId::parse_with_step("123_4.batch").expect("a step id");
        assert_eq!((id.to_string().as_str(), step), ("123_4", Some(StepId("batch".into()))));
    }

    #[test]
    fn tasks_that_wait_in_one_record_are_counted() {
        // F109, F110, F111, F112: ten tasks counted as one, 1000 as one, disjoint ranges not read.
        for (text, tasks) in [
            ("12345_[1-10]", Some(10)),
            ("1234_[0-999]", Some(1000)),
            ("123_[60-89,91-94,96-98]", Some(37)),
            ("123_[1-100:10]", Some(10)),
            ("49046820_[1-20%10]", Some(20)),
            ("123_[1,3,7]", Some(3)),
            ("123_4", Some(1)),
            ("123+0", Some(1)),
            ("123", Some(1)),
            // Cut at SLURM_BITSTR_LEN.
            ("123_[1-3,...]", None),
            ("123_[9-3]", None),
        ] {
            let id: JobId = text.parse().expect("an id");
            assert_eq!(id.tasks(), tasks, "{text}");
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "abc",
            "-1",
            "12a",
            "123.",
            "123;",
            "123_",
            "123_x",
            "+1",
            "0",
            "4294967296",
            "649_4294967297",
            "649+4294967296",
            "67_[$(id)]",
            "67_[",
            "67_[]",
            "67_[1",
            "67_[1-]",
            "67_[1]2",
            "67_[1%]",
            "67_[-1]",
            "99999999999999999999999",
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
