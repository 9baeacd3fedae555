//! Settings, and which layer each value came from.
//!
//! Layers, lowest first: `defaults.toml` in the program, the site's file, the user's file, the
//! environment. An unknown key or a value of the wrong kind is an error that names its place:
//! a setting that does nothing would be worse. A file that was named must be readable; of the
//! others, which many share, one that cannot be read is told and left out.
//!
//! A recording keeps the settings that were in force, so that its replay answers as the run did.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::host::{FileError, FileErrorKind, Runner};
use crate::model::Notice;

const DEFAULTS: &str = include_str!("defaults.toml");
const SITE: &str = "/etc/jobwise/config.toml";
/// A configuration file is short; a longer one is a mistake.
const FILE_LIMIT: u64 = 1 << 20;
/// The section whose zeros say that nobody has told.
const ENERGY: &str = "energy";
/// Settings that are often wanted for one command have a short name in the environment too.
const SHORT_NAMES: [(&str, &str); 5] = [
    ("scheduler.backend", "JOBWISE_BACKEND"),
    ("scheduler.access_seconds", "JOBWISE_ACCESS_TTL"),
    ("diagnose.tail_lines", "JOBWISE_LOG_TAIL"),
    ("retrieval.embeddings", "JOBWISE_EMBEDDINGS"),
    ("retrieval.model_folder", "JOBWISE_EMBEDDING_MODEL"),
];

/// Every setting.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Queries of the scheduler.
    pub scheduler: Scheduler,
    /// Reading logs.
    pub scan: Scan,
    /// Diagnosing.
    pub diagnose: Diagnose,
    /// What counts as doing nothing.
    pub idle: Idle,
    /// What is worth saying about how a job used what it held.
    pub findings: Findings,
    /// Energy and carbon.
    pub energy: Energy,
    /// Finding notes.
    pub retrieval: Retrieval,
}

/// Queries of the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// The name of the scheduler to ask; `auto` for the first that is found.
    pub backend: String,
    /// Seconds after which an ordinary query is ended.
    pub deadline_seconds: u64,
    /// Seconds after which a listing of many jobs is ended.
    pub list_deadline_seconds: u64,
    /// Days of the newest piece of everybody's history; what it holds says how long others are.
    pub list_days: u64,
    /// Seconds for which the limits of a partition are remembered; zero for none.
    pub limits_seconds: u32,
    /// Seconds for which an overview reuses what dry runs said; zero for none.
    pub access_seconds: u32,
}

/// Reading logs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// Bytes of one log that are read at most.
    pub limit_bytes: u64,
}

/// Diagnosing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnose {
    /// Failed tasks of one array that are diagnosed at most.
    pub array_tasks: usize,
    /// Last lines of a log that are shown at most where the cause is unknown.
    pub tail_lines: usize,
}

/// What counts as doing nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// Seconds that a run has to take at least.
    pub least_seconds: u64,
    /// Thousandths of a core that it kept busy at most.
    pub most_busy_permille: u64,
    /// Bytes that it moved in a second at most.
    pub most_bytes_per_second: u64,
}

/// From where on something is worth saying about how a job used what it held.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Findings {
    /// Seconds below which CPU and memory are not judged.
    pub least_seconds: u64,
    /// Seconds below which the time limit is not judged.
    pub least_seconds_time: u64,
    /// Seconds below which GPUs are not judged.
    pub least_seconds_gpu: u64,
    /// Share of the time limit.
    pub time_percent: u64,
    /// Share of the memory.
    pub memory_percent: u64,
    /// Bytes of it that were left over.
    pub memory_left_bytes: u64,
    /// Share of the CPUs.
    pub cpu_percent: u64,
    /// Share of the CPU time that was spent in the kernel.
    pub kernel_percent: u64,
    /// Seconds of CPU time below which that is not judged.
    pub kernel_least_seconds: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Bytes moved in a second.
    pub moved_bytes_per_second: u64,
    /// How much less CPU time the slowest task used.
    pub straggler_percent: u64,
    /// Seconds of CPU time of a task below which that is not judged.
    pub straggler_least_seconds: u64,
    /// How much more memory the largest task used.
    pub imbalance_percent: u64,
    /// Bytes of the largest task below which that is not judged.
    pub imbalance_bytes: u64,
    /// Share of the span for which it was suspended.
    pub suspended_percent: u64,
    /// Page faults of one task.
    pub page_faults: u64,
    /// Share of the GPUs below which they were idle.
    pub gpu_idle_percent: u64,
    /// Share of the GPUs below which they were little used.
    pub gpu_percent: u64,
    /// Share of the CPUs below which GPUs that are not measured may have been idle.
    pub gpu_suspect_cpu_percent: u64,
}

/// Energy and carbon; zero where nobody has told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Power of the machine room in per cent of the power of its computers.
    pub pue_percent: u32,
    /// Watts of one GPU.
    pub gpu_watts: u32,
    /// Watts of one core.
    pub cpu_watts: u32,
    /// Grams of CO2 for a kilowatt-hour.
    pub carbon_grams_per_kwh: u32,
}

/// Finding notes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    /// How texts get a meaning.
    pub embeddings: Embeddings,
    /// A folder with the model, looked at first; empty for none.
    pub model_folder: PathBuf,
    /// A folder with the model for everybody, looked at before the user's own; empty for none.
    pub site_folder: PathBuf,
    /// Cores the model computes on.
    pub threads: usize,
}

/// How texts get a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Embeddings {
    /// By the model, where there is one.
    Auto,
    /// By the model; where there is none that is told.
    Model,
    /// By hashed pieces of words.
    Hash,
}

/// The layer that set a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The program itself.
    Default,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// An option of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => path.display().fmt(f),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// The settings in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The values.
    pub settings: Settings,
    /// Each value as text with its origin, by dotted key.
    pub origins: BTreeMap<String, (String, Origin)>,
    /// Files that could not be read.
    pub notices: Vec<Notice>,
    /// Where files were looked for, lowest first, and whether they were there.
    pub files: Vec<(PathBuf, bool)>,
}

/// A setting that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {reason}")]
pub struct ConfigError {
    /// The layer.
    pub origin: Origin,
    /// What is wrong, with the key or the line.
    pub reason: String,
}

impl Config {
    /// Reads all layers. `file` (`--config`) stands in for the site's and the user's.
    pub fn load(runner: &dyn Runner, file: Option<&Path>) -> Result<Self, ConfigError> {
        let mut layers = vec![(Origin::Default, parse(DEFAULTS.as_bytes(), &Origin::Default)?)];
        let files = match file {
            Some(path) => vec![path.to_owned()],
            None => std::iter::once(PathBuf::from(SITE)).chain(user_file(runner)).collect(),
        };
        let mut notices = Vec::new();
        let mut looked = Vec::new();
        for path in files {
            let origin = Origin::File(path.clone());
            let found = read(runner, &path);
            looked.push((path.clone(), found.is_ok()));
            match found {
                Ok(bytes) => layers.push((origin.clone(), parse(&bytes, &origin)?)),
                Err(error) if file.is_some() => {
                    return Err(ConfigError { origin, reason: error.reason });
                }
                Err(error) if error.kind == FileErrorKind::Absent => {}
                Err(error) => {
                    let text = format!("settings were left out: {error}");
                    notices.push(Notice::warning("settings-left-out", text));
                }
            }
        }
        let merged = Self::merge(layers, |name| runner.env(name))?;
        Ok(Self { notices, files: looked, ..merged })
    }

    /// The settings as a recording keeps them.
    pub fn kept(&self) -> serde_json::Value {
        // Texts and paths of text always become JSON; what does not is as if nothing was kept.
        serde_json::to_value(&self.origins).unwrap_or_default()
    }

    /// The settings that a recording kept; those of this program where it kept none.
    pub fn recorded(kept: Option<&serde_json::Value>) -> Result<Self, ConfigError> {
        let place = Origin::File("the recording".into());
        let kept = kept.filter(|kept| !kept.is_null());
        let kept: BTreeMap<String, (String, Origin)> = kept
            .map_or_else(|| Ok(BTreeMap::new()), BTreeMap::deserialize)
            .map_err(|error| ConfigError { origin: place.clone(), reason: error.to_string() })?;
        let mut layer = Table::new();
        for (dotted, (text, _)) in &kept {
            let (section, key) = dotted.split_once('.').unwrap_or((dotted, ""));
            let keys = layer.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(keys) = keys {
                keys.insert(key.to_owned(), written(text));
            }
        }
        let defaults = parse(DEFAULTS.as_bytes(), &Origin::Default)?;
        let mut config = Self::merge(vec![(Origin::Default, defaults), (place, layer)], |_| None)?;
        config.origins.extend(kept);
        Ok(config)
    }

    /// The same settings, but for the scheduler to ask: an option of the command line is over
    /// every layer.
    #[must_use]
    pub fn with_backend(mut self, name: &str) -> Self {
        let origin = Origin::Flag("--backend".to_owned());
        let text = Value::String(name.to_owned()).to_string();
        self.origins.insert("scheduler.backend".to_owned(), (text, origin));
        name.clone_into(&mut self.settings.scheduler.backend);
        self
    }

    fn merge(
        layers: Vec<(Origin, Table)>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut merged = Table::new();
        let mut origins = BTreeMap::new();
        for (origin, table) in layers {
            for (section, keys) in table {
                let Value::Table(keys) = keys else {
                    return Err(ConfigError {
                        origin,
                        reason: format!("'{section}' is no section"),
                    });
                };
                for (key, value) in keys {
                    place(&mut merged, &mut origins, (&section, &key), value, &origin)?;
                }
            }
        }
        let known: Vec<String> = origins.keys().cloned().collect();
        for dotted in known {
            let Some((section, key)) = dotted.split_once('.') else { continue };
            let short = SHORT_NAMES.iter().find(|(known, _)| *known == dotted);
            let whole = format!("JOBWISE_{}", dotted.replace('.', "_").to_ascii_uppercase());
            for name in short.map(|(_, name)| (*name).to_owned()).into_iter().chain([whole]) {
                if let Some(text) = env(&name) {
                    let origin = Origin::Environment(name);
                    place(&mut merged, &mut origins, (section, key), value(&text), &origin)?;
                }
            }
        }
        // Every value was checked where it was placed: only the defaults themselves could fail.
        let settings = merged.try_into().map_err(|error: toml::de::Error| ConfigError {
            origin: Origin::Default,
            reason: error.message().to_owned(),
        })?;
        Ok(Self { settings, origins, notices: Vec::new(), files: Vec::new() })
    }
}

/// Puts one value over what lower layers said; it must be a known key and of the same kind.
fn place(
    merged: &mut Table,
    origins: &mut BTreeMap<String, (String, Origin)>,
    (section, key): (&str, &str),
    value: Value,
    origin: &Origin,
) -> Result<(), ConfigError> {
    let fail = |reason: String| ConfigError { origin: origin.clone(), reason };
    let known = merged.get(section).and_then(|keys| keys.get(key));
    match known {
        None if *origin != Origin::Default => {
            return Err(fail(format!("there is no setting '{section}.{key}'")));
        }
        Some(known) if !known.same_type(&value) || !fits((section, key), &value) => {
            let kind = match known {
                Value::Integer(_) if may_be_zero((section, key)) => "positive integer or 0",
                Value::Integer(_) => "positive integer",
                _ => known.type_str(),
            };
            return Err(fail(format!("'{section}.{key}' must be a {kind}, not {value}")));
        }
        _ => {}
    }
    if (section, key) == ("retrieval", "embeddings") {
        Embeddings::deserialize(value.clone())
            .map_err(|_| fail("'retrieval.embeddings' is one of auto, model, hash".to_owned()))?;
    }
    origins.insert(format!("{section}.{key}"), (value.to_string(), origin.clone()));
    let keys = merged.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(keys) = keys {
        keys.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Whether a number is one that a setting can have.
fn fits(place: (&str, &str), value: &Value) -> bool {
    let range = if may_be_zero(place) { 0..=i64::from(u32::MAX) } else { 1..=i64::MAX };
    value.as_integer().is_none_or(|number| range.contains(&number))
}

/// Whether a number says by zero that there is none.
fn may_be_zero(place: (&str, &str)) -> bool {
    place.0 == ENERGY || matches!(place, ("scheduler", "limits_seconds" | "access_seconds"))
}

/// A value as text gives it: a number where it is one.
fn value(text: &str) -> Value {
    text.parse().map_or_else(|_| Value::String(text.to_owned()), Value::Integer)
}

/// A value as [`Config::kept`] wrote it.
fn written(text: &str) -> Value {
    let table = format!("value = {text}").parse::<Table>();
    table.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| value(text))
}

fn read(runner: &dyn Runner, path: &Path) -> Result<Vec<u8>, FileError> {
    let content = runner.open(path)?;
    if content.size() > FILE_LIMIT {
        let reason = format!("is longer than the {FILE_LIMIT} bytes that settings may take");
        return Err(FileError { reason, ..FileError::new(path, FileErrorKind::Io) });
    }
    content.read_all(FILE_LIMIT).map_err(|error| FileError::from_io(path, &error))
}

fn parse(bytes: &[u8], origin: &Origin) -> Result<Table, ConfigError> {
    let fail = |reason: String| ConfigError { origin: origin.clone(), reason };
    let text = std::str::from_utf8(bytes).map_err(|error| fail(error.to_string()))?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        fail(format!("line {line}: {}", error.message()))
    })
}

fn user_file(runner: &dyn Runner) -> Option<PathBuf> {
    let set = |name: &str| runner.env(name).filter(|value| value.starts_with('/'));
    let folder = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".config")))?;
    Some(folder.join("jobwise/config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(site: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let origin = Origin::File("site.toml".into());
        let defaults = parse(DEFAULTS.as_bytes(), &Origin::Default)?;
        let layers =
            vec![(Origin::Default, defaults), (origin.clone(), parse(site.as_bytes(), &origin)?)];
        Config::merge(layers, |name| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_higher_layer_wins_and_is_named() {
        let config = merged(
            "[scan]\nlimit_bytes = 5\n[scheduler]\ndeadline_seconds = 7\n",
            &[("JOBWISE_SCAN_LIMIT_BYTES", "6")],
        )
        .expect("valid");
        assert_eq!(config.settings.scan.limit_bytes, 6);
        assert_eq!(config.settings.scheduler.deadline_seconds, 7);
        let origin = |key: &str| config.origins[key].1.to_string();
        assert_eq!(origin("scan.limit_bytes"), "JOBWISE_SCAN_LIMIT_BYTES");
        assert_eq!(origin("scheduler.deadline_seconds"), "site.toml");
        assert_eq!(origin("scheduler.list_deadline_seconds"), "default");
    }

    #[test]
    fn what_cannot_be_taken_is_told_with_its_place() {
        let error = |site: &str| merged(site, &[]).expect_err("refused").to_string();
        assert_eq!(error("[scan]\nlimit = 5"), "site.toml: there is no setting 'scan.limit'");
        assert_eq!(
            error("[scan]\nlimit_bytes = \"x\""),
            "site.toml: 'scan.limit_bytes' must be a positive integer, not \"x\""
        );
        assert_eq!(error("scan = 1"), "site.toml: 'scan' is no section");
        assert!(error("[scan]\nlimit_bytes 5").starts_with("site.toml: line 2: "));
        let refused = merged("", &[("JOBWISE_SCAN_LIMIT_BYTES", "-1")]).expect_err("refused");
        assert!(refused.to_string().starts_with("JOBWISE_SCAN_LIMIT_BYTES: "));
        for key in ["deadline_seconds", "list_deadline_seconds", "list_days"] {
            assert_eq!(
                error(&format!("[scheduler]\n{key} = 0")),
                format!("site.toml: 'scheduler.{key}' must be a positive integer, not 0")
            );
        }
        assert!(merged("[scan]\nlimit_bytes = 0", &[]).is_err());
        assert_eq!(
            error("[retrieval]\nembeddings = \"modle\""),
            "site.toml: 'retrieval.embeddings' is one of auto, model, hash"
        );
        let refused = merged("", &[("JOBWISE_EMBEDDINGS", "no")]).expect_err("refused");
        assert!(refused.to_string().starts_with("JOBWISE_EMBEDDINGS: "));
        assert!(merged("[diagnose]\narray_tasks = 0", &[]).is_err());
        assert!(merged("[energy]\ngpu_watts = 0", &[]).is_ok());
        assert_eq!(
            error("[energy]\ngpu_watts = 4294967296"),
            "site.toml: 'energy.gpu_watts' must be a positive integer or 0, not 4294967296"
        );
    }

    #[test]
    fn what_a_recording_kept_comes_back_with_its_origins() {
        let env = [("JOBWISE_DIAGNOSE_ARRAY_TASKS", "6"), ("JOBWISE_EMBEDDINGS", "hash")];
        let config = merged("[scan]\nlimit_bytes = 5\n", &env).expect("valid");
        assert_eq!(config.settings.retrieval.embeddings, Embeddings::Hash);
        assert_eq!(Config::recorded(Some(&config.kept())).as_ref(), Ok(&config));
        // Of before settings were kept.
        // Texts come back as texts, whatever is in them.
        let chosen = config.with_backend("a \"b\"\n").kept();
        let again = Config::recorded(Some(&chosen)).expect("valid");
        assert_eq!(again.settings.scheduler.backend, "a \"b\"\n");
        let defaults = Config::recorded(None).expect("sound");
        assert_eq!(Config::recorded(Some(&defaults.kept())), Ok(defaults));
        let error = |kept: serde_json::Value| {
            Config::recorded(Some(&kept)).expect_err("refused").to_string()
        };
        assert!(error(serde_json::json!([1])).starts_with("the recording: "));
        assert_eq!(
            error(serde_json::json!({"scan.limit": ["5", "default"]})),
            "the recording: there is no setting 'scan.limit'"
        );
    }
}
