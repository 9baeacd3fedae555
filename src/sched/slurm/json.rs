//! `sacct --json` as the rows that `sacct` would have printed.
//!
//! The document changed with every data parser (v0.0.37 of Slurm 21.08 to v0.0.46): a value is a
//! number, an object that says whether it is set, a text or a list. Each is read by its shape, so no
//! version has to be known, and becomes the text that the rest of this folder reads. What the
//! document cannot say the same: up to v0.0.39 the exit code, which is `SUCCESS` for every job
//! that ended without a signal (the history says so); before v0.0.41 the paths of logs. Exit codes
//! never have 128 subtracted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::fields::Layout;
use super::quirks;
use super::records::Reading;
use super::release::{Release, Version};
use super::rows::Row;
use super::runs::Loader;

type Fields = BTreeMap<String, String>;

/// What a document lacks beside the jobs that it gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::sched) struct Lacking {
    /// Jobs that could not be read: their places in the list, from one on.
    pub(in crate::sched) unreadable: Vec<u64>,
    /// Jobs whose exit code the data parser lost.
    pub(in crate::sched) exits: usize,
}

/// Reads a document; says what it lacks.
pub(in crate::sched) fn read(bytes: &[u8], loader: &mut Loader) -> Result<Lacking, String> {
    let mut lacking = Lacking::default();
    let mut place = 0;
    let mut take = |found: Found| match found {
        Found::Release(release) => loader.read_as(reading(release)),
        Found::Job(job) => {
            place += 1;
            let Some(rows) = rows(&job) else { return lacking.unreadable.push(place) };
            let layout = Layout::whole();
            // A signal is told all the same.
            let has_lost = at(&job, "exit_code/status").as_str() == Some("SUCCESS");
            lacking.exits += usize::from(has_lost);
            for row in &rows {
                loader.add(&Row::from_fields(&layout, row));
            }
        }
    };
    take(Found::Release(Release { at_least: None, before: None }));
    let bytes = finite(bytes);
    let mut document = serde_json::Deserializer::from_slice(&bytes);
    let had_jobs = DeserializeSeed::deserialize(Document(&mut take), &mut document)
        .map_err(|error| format!("not the JSON of sacct: {error}"))?;
    if had_jobs { Ok(lacking) } else { Err("it holds no jobs".to_owned()) }
}

/// The document with `null` for the numbers that JSON does not have and Slurm before 25.05 wrote
/// all the same: `Infinity`, `-Infinity`, `NaN`, in any case or cut short.
fn finite(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (mut clean, mut kept, mut at) = (Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'a'..=b'z' | b'A'..=b'Z' => {
                let word = bytes[at..].iter().take_while(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
                });
                let end = at + word.count();
                let word = &bytes[at..end];
                let letters = word.strip_prefix(b"-").unwrap_or(word).to_ascii_lowercase();
                if letters.starts_with(b"inf") || letters.starts_with(b"nan") {
                    clean.extend_from_slice(&bytes[kept..at]);
                    clean.extend_from_slice(b"null");
                    kept = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(bytes);
    }
    clean.extend_from_slice(&bytes[kept..]);
    Cow::Owned(clean)
}

fn reading(release: Release) -> Reading {
    Reading {
        folded: false,
        cpu_time_lost: quirks::loses_cpu_time(release),
        sums_gpus: quirks::sums_gpus(release),
    }
}

/// What a document gives, one after the other: it may be larger than memory has room for twice.
enum Found {
    Release(Release),
    Job(Value),
}

struct Document<'t>(&'t mut dyn FnMut(Found));

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with jobs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut had_jobs = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "jobs" => {
                    map.next_value_seed(JobList(&mut *self.0))?;
                    had_jobs = true;
                }
                "meta" => {
                    if let Some(release) = release(&map.next_value()?) {
                        (self.0)(Found::Release(release));
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(had_jobs)
    }
}

struct JobList<'t>(&'t mut dyn FnMut(Found));

impl<'de> DeserializeSeed<'de> for JobList<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for JobList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(job) = list.next_element()? {
            (self.0)(Found::Job(job));
        }
        Ok(())
    }
}

/// The release that wrote a document: `Slurm` with numbers up to 23.02, `slurm` with texts since.
fn release(meta: &Value) -> Option<Release> {
    let slurm = meta.get("slurm").or_else(|| meta.get("Slurm"))?;
    // The parts of `version` are not in their places in every release; the name is.
    Version::parse(slurm.get("release")?.as_str()?.as_bytes()).map(Release::exact)
}

/// The value at a path such as `time/start`.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('/').try_fold(value, |value, key| value.get(key)).unwrap_or(&Value::Null)
}

/// A number, plain or in an object that says whether it is set; negative ones mean "none".
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Object(object) => {
            let is = |key| object.get(key).and_then(Value::as_bool);
            let set = is("set").unwrap_or(true) && !is("infinite").unwrap_or(false);
            if set { number(object.get("number")?) } else { None }
        }
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

fn is_infinite(value: &Value) -> bool {
    at(value, "infinite").as_bool() == Some(true)
}

/// Text; a list of words is joined.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(words) => words.iter().map(text).collect::<Vec<_>>().join(","),
        _ => String::new(),
    }
}

/// How a resource is counted in a list: text prints memory with its unit, CPU time as a clock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amounts {
    /// Allocated or asked for: memory in MiB.
    Given,
    /// Measured: memory in bytes, CPU time in milliseconds.
    Used,
}

/// A list of resources as text.
fn tres(list: &Value, amounts: Amounts) -> String {
    let entries = list.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(|entry| {
        let (kind, name) = (text(at(entry, "type")), text(at(entry, "name")));
        let count = number(at(entry, "count"))?;
        let name = if name.is_empty() { kind.clone() } else { format!("{kind}/{name}") };
        Some(match (kind.as_str(), amounts) {
            ("mem", Amounts::Given) => format!("{name}={count}M"),
            ("cpu", Amounts::Used) => format!("{name}={}.{:03}", count / 1000, count % 1000),
            _ => format!("{name}={count}"),
        })
    });
    entries.collect::<Vec<_>>().join(",")
}

/// The count of one resource in a list.
fn count(list: &Value, kind: &str) -> Option<u64> {
    let list = list.as_array()?;
    number(at(list.iter().find(|entry| at(entry, "type") == kind)?, "count"))
}

/// Seconds and microseconds as text.
fn seconds(value: &Value) -> String {
    let Some(seconds) = number(at(value, "seconds")) else { return String::new() };
    let micros = number(at(value, "microseconds")).unwrap_or(0);
    format!("{}.{:03}", seconds + micros / 1_000_000, micros / 1000 % 1000)
}

/// `code:signal`; none where the parser is known to have lost it.
fn exit(value: &Value) -> String {
    let signal = number(at(value, "signal/id")).or_else(|| number(at(value, "signal/signal_id")));
    // One word up to v0.0.39, of which only a signal is to be believed; a list since v0.0.40.
    if !at(value, "status").is_array() {
        let is_signal = at(value, "status").as_str() == Some("SIGNALED");
        let signal = signal.filter(|signal| is_signal && *signal > 0);
        return signal.map_or_else(String::new, |signal| format!("0:{signal}"));
    }
    let code = number(at(value, "return_code"));
    match (code, signal) {
        (None, None) => String::new(),
        (code, signal) => format!("{}:{}", code.unwrap_or(0), signal.unwrap_or(0)),
    }
}

/// What was asked for in memory, where the list of resources does not say it: per CPU or per node.
/// Before v0.0.40 one number, of which the highest bit says per CPU.
fn required_memory(required: &Value) -> Option<String> {
    const PER_CPU: u64 = 1 << 63;
    let of = |path, letter| {
        let mebibytes = number(at(required, path)).filter(|mebibytes| *mebibytes > 0)?;
        Some(format!("{mebibytes}M{letter}"))
    };
    let packed = || {
        let value = at(required, "memory");
        let bits = value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned))?;
        let letter = if bits & PER_CPU == 0 { 'n' } else { 'c' };
        Some(format!("{}M{letter}", bits & !PER_CPU)).filter(|_| bits & !PER_CPU > 0)
    };
    of("memory_per_cpu", 'c').or_else(|| of("memory_per_node", 'n')).or_else(packed)
}

fn state(value: &Value, by: &Value) -> String {
    let state = text(value);
    let by = text(by);
    if by.is_empty() || !state.starts_with("CANCELLED") {
        state
    } else {
        format!("{state} by {by}")
    }
}

/// A moment; of what never started some parsers write `NO_VAL` of `slurm.h`.
fn time(value: &Value) -> String {
    const NO_VAL: u64 = 0xffff_fffe;
    let moment = number(value).filter(|seconds| (1..NO_VAL).contains(seconds));
    moment.map_or_else(String::new, |at| at.to_string())
}

fn shown(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// The rows of a job: its own, and one for each step.
fn rows(job: &Value) -> Option<Vec<Fields>> {
    let number_of = |path| number(at(job, path));
    let id = number_of("job_id").filter(|id| *id > 0)?;
    let array = number_of("array/job_id").filter(|id| *id > 0);
    let waiting = text(at(job, "array/task"));
    let het = number_of("het/job_id").filter(|id| *id > 0);
    let name = match (array, het) {
        (Some(array), _) if !waiting.is_empty() => format!("{array}_[{waiting}]"),
        (Some(array), _) => match number_of("array/task_id") {
            Some(task) => format!("{array}_{task}"),
            None => id.to_string(),
        },
        (None, Some(het)) => match number_of("het/job_offset") {
            Some(offset) => format!("{het}+{offset}"),
            None => id.to_string(),
        },
        (None, None) => id.to_string(),
    };
    let limit = at(job, "time/limit");
    let allocated = at(job, "tres/allocated");
    let requested = at(job, "tres/requested");
    let limit = match number(limit) {
        _ if is_infinite(limit) => "UNLIMITED".to_owned(),
        Some(minutes) => format!("{}", minutes.saturating_mul(60)),
        None => String::new(),
    };
    let memory = count(requested, "mem").map(|mebibytes| format!("{mebibytes}M"));
    let memory = memory.or_else(|| required_memory(at(job, "required")));
    let own = [
        ("JobID", name.clone()),
        ("JobIDRaw", id.to_string()),
        ("State", state(at(job, "state/current"), at(job, "kill_request_user"))),
        ("ExitCode", exit(at(job, "exit_code"))),
        ("DerivedExitCode", exit(at(job, "derived_exit_code"))),
        ("User", text(at(job, "user"))),
        ("Account", text(at(job, "account"))),
        ("Cluster", text(at(job, "cluster"))),
        ("Partition", text(at(job, "partition"))),
        ("QOS", text(at(job, "qos"))),
        ("Reason", text(at(job, "state/reason"))),
        ("Submit", time(at(job, "time/submission"))),
        ("Eligible", time(at(job, "time/eligible"))),
        ("Start", time(at(job, "time/start"))),
        ("End", time(at(job, "time/end"))),
        ("Elapsed", shown(number_of("time/elapsed"))),
        ("Suspended", shown(number_of("time/suspended"))),
        ("Timelimit", limit),
        ("ReqMem", memory.unwrap_or_default()),
        ("NNodes", shown(number_of("allocation_nodes"))),
        ("AllocCPUS", shown(count(allocated, "cpu"))),
        ("ReqTRES", tres(requested, Amounts::Given)),
        ("AllocTRES", tres(allocated, Amounts::Given)),
        ("NodeList", text(at(job, "nodes"))),
        ("FailedNode", text(at(job, "failed_node"))),
        ("Restarts", shown(number_of("restart_cnt"))),
        ("TotalCPU", seconds(at(job, "time/total"))),
        ("ConsumedEnergyRaw", shown(count(allocated, "energy"))),
        ("Exclusive", text(at(job, "exclusive"))),
        ("Constraints", text(at(job, "constraints"))),
        ("WorkDir", text(at(job, "working_directory"))),
        ("StdOut", text(at(job, "stdout"))),
        ("StdErr", text(at(job, "stderr"))),
        ("JobName", text(at(job, "name"))),
        ("Comment", text(at(job, "comment/job"))),
        ("AdminComment", text(at(job, "comment/administrator"))),
        ("SubmitLine", text(at(job, "submit_line"))),
    ];
    let mut rows = vec![own.map(|(name, value)| (name.to_owned(), value)).into()];
    let cluster = text(at(job, "cluster"));
    let steps = at(job, "steps").as_array().map_or(&[][..], Vec::as_slice);
    rows.extend(steps.iter().filter_map(|of| step(of, &name, &cluster)));
    Some(rows)
}

fn step(step: &Value, job: &str, cluster: &str) -> Option<Fields> {
    let id = at(step, "step/id");
    // An object up to v0.0.38; `14.batch` since.
    let id = if id.is_object() { text(at(id, "step_id")) } else { text(id) };
    let id = id.rsplit('.').next().filter(|id| !id.is_empty())?.to_owned();
    let (used, written) = (at(step, "tres/requested"), at(step, "tres/consumed"));
    let allocated = at(step, "tres/allocated");
    let own = [
        ("JobID", format!("{job}.{id}")),
        ("Cluster", cluster.to_owned()),
        ("State", state(at(step, "state"), at(step, "kill_request_user"))),
        ("ExitCode", exit(at(step, "exit_code"))),
        ("Start", time(at(step, "time/start"))),
        ("End", time(at(step, "time/end"))),
        ("Elapsed", shown(number(at(step, "time/elapsed")))),
        ("NNodes", shown(number(at(step, "nodes/count")))),
        ("AllocCPUS", shown(count(allocated, "cpu"))),
        ("AllocTRES", tres(allocated, Amounts::Given)),
        ("NodeList", text(at(step, "nodes/range"))),
        ("TotalCPU", seconds(at(step, "time/total"))),
        ("NTasks", shown(number(at(step, "tasks/count")))),
        ("MaxRSS", shown(count(at(used, "max"), "mem"))),
        ("ConsumedEnergyRaw", shown(number(at(step, "statistics/energy/consumed")))),
        ("TRESUsageInTot", tres(at(used, "total"), Amounts::Used)),
        ("TRESUsageOutTot", tres(at(written, "total"), Amounts::Used)),
        ("JobName", text(at(step, "step/name"))),
        ("SubmitLine", text(at(step, "submit_line"))),
    ];
    Some(own.map(|(name, value)| (name.to_owned(), value)).into())
}
