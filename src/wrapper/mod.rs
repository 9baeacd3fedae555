//! Who submitted a job for its owner, and what to change there.
//!
//! A large share of people never wrote the `sbatch` line: a workflow engine or a form did. Decides by
//! signs that only one tool leaves which it was, what that tool calls the option that has to change,
//! and which jobs a workflow's log says failed. Refuses to guess: without a sign there is no tool, and
//! a job that is only named has not failed.

mod children;
mod tools;

pub use children::{Child, MOST as MOST_CHILDREN, children};

use crate::model::{Bytes, FamilyId, Span};

/// A tool that submits jobs.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    signs: &'static [Sign],
    memory: &'static str,
    time: &'static str,
    cpus: &'static str,
    gpus: &'static str,
    partition: &'static str,
    account: &'static str,
    other: &'static str,
    env: &'static str,
    /// Where its options are documented.
    pub source: &'static str,
}

/// What only one tool leaves, and where.
#[derive(Debug)]
enum Sign {
    /// In the submission command.
    Submission(&'static str),
    /// At the beginning of the job's name.
    Name(&'static str),
    /// At the beginning of the job's comment.
    Comment(&'static str),
    /// In the path of the working directory.
    Directory(&'static str),
    /// In the batch script.
    Script(&'static str),
    /// At the beginning or the end of a log.
    Log(&'static str),
}

/// What is known of a job where a tool may have left its sign.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen<'a> {
    /// The submission command.
    pub submission: Option<&'a str>,
    /// The job's name.
    pub name: &'a str,
    /// Its comment.
    pub comment: Option<&'a str>,
    /// Its working directory.
    pub directory: Option<&'a str>,
    /// Its batch script.
    pub script: Option<&'a str>,
    /// The first and last lines of its logs.
    pub logs: &'a [String],
}

/// A setting of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting<'a> {
    /// Memory per node.
    Memory(Option<Bytes>),
    /// The time limit.
    Time(Option<Span>),
    /// CPUs.
    Cpus,
    /// GPUs.
    Gpus,
    /// The partition.
    Partition(Option<&'a str>),
    /// The account.
    Account(Option<&'a str>),
    /// Another option of `sbatch`, as it is written.
    Other(&'a str),
    /// An environment variable: `NAME=VALUE`.
    Env(&'a str),
}

/// The tool that submitted a job, and where its sign was seen.
pub fn recognise(seen: &Seen<'_>) -> Option<(&'static Tool, &'static str)> {
    tools::TOOLS.iter().find_map(|tool| {
        let place = tool.signs.iter().find_map(|sign| sign.place(seen))?;
        Some((tool, place))
    })
}

impl Sign {
    /// Where the sign is, in words.
    fn place(&self, seen: &Seen<'_>) -> Option<&'static str> {
        let holds = |text: Option<&str>, sign: &str| text.is_some_and(|text| text.contains(sign));
        let begins =
            |text: Option<&str>, sign: &str| text.is_some_and(|text| text.starts_with(sign));
        let (there, place) = match self {
            Self::Submission(sign) => (holds(seen.submission, sign), "the submission command"),
            Self::Name(sign) => (seen.name.starts_with(sign), "the job's name"),
            Self::Comment(sign) => (begins(seen.comment, sign), "the job's comment"),
            Self::Directory(sign) => (holds(seen.directory, sign), "the working directory"),
            Self::Script(sign) => (holds(seen.script, sign), "the batch script"),
            Self::Log(sign) => (seen.logs.iter().any(|text| text.contains(sign)), "the log"),
        };
        there.then_some(place)
    }
}

impl Tool {
    /// What the tool calls a setting, with the value where one is proposed.
    pub fn says(&self, setting: Setting<'_>) -> String {
        let unknown = || "N".to_owned();
        match setting {
            Setting::Memory(bytes) => {
                let in_units = |unit: u64| {
                    bytes.map_or_else(unknown, |bytes| bytes.0.div_ceil(unit).to_string())
                };
                let text = self.memory.replace("{mb}", &in_units(Bytes::MIB));
                text.replace("{gb}", &in_units(Bytes::MIB << 10))
            }
            Setting::Time(span) => {
                let minutes = span.map(|span| span.as_millis().div_ceil(60_000).to_string());
                let text = self.time.replace("{minutes}", &minutes.unwrap_or_else(unknown));
                text.replace("{time}", &span.map_or_else(unknown, |span| span.to_string()))
            }
            Setting::Cpus => self.cpus.to_owned(),
            Setting::Gpus => self.gpus.to_owned(),
            Setting::Partition(name) => self.partition.replace("{value}", name.unwrap_or("NAME")),
            Setting::Account(name) => self.account.replace("{value}", name.unwrap_or("NAME")),
            Setting::Other(option) => self.other.replace("{value}", option),
            Setting::Env(pair) => self.env.replace("{value}", pair),
        }
    }
}

/// The settings that a family is about whose change is no edit: how many or which is its owner's to
/// know.
pub fn settings_of(family: &FamilyId) -> &'static [Setting<'static>] {
    const PARTITION: Setting<'static> = Setting::Partition(None);
    const TIME: Setting<'static> = Setting::Time(None);
    match family.0.as_str() {
        "submit_partition_qos" | "pend_partition_limit" => &[PARTITION],
        "submit_account" | "allocation_exhausted" => &[Setting::Account(None)],
        "submit_time_limit" => &[TIME],
        "submit_resources" | "bad_constraints" | "pend_resources" => {
            &[Setting::Cpus, Setting::Memory(None)]
        }
        "gpu_not_visible" => &[Setting::Gpus],
        "mpi_slots" => &[Setting::Cpus],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(seen: Seen<'_>) -> Option<(&'static str, &'static str)> {
        recognise(&seen).map(|(tool, place)| (tool.name, place))
    }

    #[test]
    fn tools_are_known_by_what_they_leave() {
        // Forms as the tools' own submission code writes them.
        let submitted = |line| named(Seen { submission: Some(line), ..Seen::default() });
        let called = |name| named(Seen { name, ..Seen::default() });
        let logged = |line: &str| {
            let logs = [line.to_owned()];
            named(Seen { logs: &logs, ..Seen::default() }).map(|(tool, _)| tool)
        };
        let by = "the submission command";
        assert_eq!(submitted("sbatch .command.run"), Some(("Nextflow", by)));
        let snakemake = "sbatch --parsable --job-name x --output /d/.snakemake/slurm_logs/a.log";
        assert_eq!(submitted(snakemake), Some(("Snakemake", by)));
        assert_eq!(submitted("sbatch logs/submission_file_0a.sh"), Some(("submitit", by)));
        let sweep = "sbatch multirun/2026-11-30/.submitit/submission_file_0a.sh";
        assert_eq!(submitted(sweep), Some(("Hydra", by)));
        assert_eq!(called("nf-ALIGN_(S1)"), Some(("Nextflow", "the job's name")));
        assert_eq!(called("dask-worker").map(|(tool, _)| tool), Some("dask-jobqueue"));
        assert_eq!(called("sys/dashboard/sys/bc_jupyter").map(|(t, _)| t), Some("Open OnDemand"));
        assert_eq!(called("parsl.htex.block-0.17").map(|(tool, _)| tool), Some("Parsl"));
        assert_eq!(logged("N E X T F L O W  ~  version 24.10.0"), Some("Nextflow"));
        assert_eq!(logged("### [bt]: This is batchtools v0.9.17"), Some("batchtools"));
        for plain in ["sbatch train.sh", "sbatch --wrap python train.py", "sbatch -J nf run.sh"] {
            assert_eq!(submitted(plain), None, "{plain}");
        }
        assert_eq!(called("train"), None);
    }

    #[test]
    fn each_tool_says_every_setting_in_its_own_words() {
        let memory = Setting::Memory(Some(Bytes(Bytes::MIB * 1536)));
        let time = Setting::Time(Some(Span::seconds(90 * 60)));
        let of = |name: &str| {
            tools::TOOLS.iter().find(|tool| tool.name == name).expect("a tool of the table")
        };
        assert!(of("Snakemake").says(memory).contains("mem_mb=1536"));
        assert!(of("Snakemake").says(time).contains("runtime=90"));
        // Whole gigabytes, rounded up: never less than asked for.
        assert!(of("Nextflow").says(memory).contains("memory = '2 GB'"));
        assert!(of("dask-jobqueue").says(time).contains("walltime=\"01:30:00\""));
        assert!(of("submitit").says(Setting::Memory(None)).contains("mem_gb=N"));
        for tool in &tools::TOOLS {
            assert!(tool.source.starts_with("https://"), "{}", tool.name);
            for setting in [
                memory,
                time,
                Setting::Memory(None),
                Setting::Time(None),
                Setting::Cpus,
                Setting::Gpus,
                Setting::Partition(Some("long")),
                Setting::Account(None),
                Setting::Other("--exclude=c04"),
                Setting::Env("OMP_NUM_THREADS=1"),
            ] {
                let text = tool.says(setting);
                let left = ["{mb}", "{gb}", "{minutes}", "{time}", "{value}"];
                assert!(!left.iter().any(|word| text.contains(word)), "{}: {text}", tool.name);
            }
        }
    }
}
