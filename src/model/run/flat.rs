//! A run as one flat record of named values: what is exported, and read back to the same run.
//!
//! The schema is one table. Amounts say their unit in their name; what is not known is `null`
//! (JSON) or empty (CSV), and is never zero.

use serde_json::{Map, Value, json};

use super::{Allowance, Maybe, Names, Part, Run, Symbol};
use crate::model::{BaseState, Bytes, Exit, JobId, Memory, MemoryScope, State};

/// The name of the schema, in the `schema` field of each record.
pub const SCHEMA: &str = "jobwise/run/1";

/// A field of the flat record.
pub struct FlatField {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
    get: fn(&Run, &Names) -> Value,
    set: fn(&mut Run, &mut Names, &Value) -> Result<(), Odd>,
}

/// Why a record is no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlatError {
    /// It is no record of this schema.
    #[error("not a record of {SCHEMA}")]
    Schema,
    /// A field holds what it cannot hold.
    #[error("'{0}' holds what it cannot hold")]
    Field(&'static str),
}

/// A value that its field cannot hold.
struct Odd;

fn text(symbol: Option<Symbol>, names: &Names) -> Value {
    symbol.map_or(Value::Null, |symbol| names.get(symbol).into())
}

fn symbol(value: &Value, names: &mut Names) -> Result<Option<Symbol>, Odd> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(names.intern_some(text)),
        _ => Err(Odd),
    }
}

/// A number, which CSV holds as text.
fn number<T: TryFrom<u64>>(value: &Value) -> Result<Option<T>, Odd> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.and_then(|number| T::try_from(number).ok()).map(Some).ok_or(Odd)
}

fn truth(value: &Value) -> Result<Option<bool>, Odd> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(truth) => Ok(Some(*truth)),
        Value::String(text) => text.parse().map(Some).map_err(|_| Odd),
        _ => Err(Odd),
    }
}

fn exit(value: &Value) -> Result<Option<Exit>, Odd> {
    let text = match value {
        Value::Null => return Ok(None),
        value => value.as_str().ok_or(Odd)?,
    };
    let (text, folded) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
    let (code, signal) = text.split_once(':').ok_or(Odd)?;
    let number = |text: &str| text.parse().map_err(|_| Odd);
    Ok(Some(Exit { code: number(code)?, signal: number(signal)?, folded }))
}

fn exit_text(exit: Option<Exit>) -> Value {
    exit.map_or(Value::Null, |exit| {
        format!("{exit}{}", if exit.codes().len() > 1 { "?" } else { "" }).into()
    })
}

macro_rules! texts {
    ($($field:ident $meaning:literal),*) => {
        [$(FlatField {
            name: stringify!($field),
            meaning: $meaning,
            get: |run, names| text(run.$field, names),
            set: |run, names, value| { run.$field = symbol(value, names)?; Ok(()) },
        }),*]
    };
}

macro_rules! numbers {
    ($($name:literal $field:ident $meaning:literal),*) => {
        [$(FlatField {
            name: $name,
            meaning: $meaning,
            get: |run, _| json!(run.$field),
            set: |run, _, value| { run.$field = Maybe::from(number(value)?); Ok(()) },
        }),*]
    };
}

/// Every field, in the order of CSV columns; the first is the id.
static FIELDS: &[&[FlatField]] = &[
    &[
        FlatField {
            name: "id",
            meaning: "the job, array task (123_4) or component (123+1)",
            get: |run, names| run.id(names).to_string().into(),
            set: |run, names, value| {
                let id: JobId = value.as_str().and_then(|text| text.parse().ok()).ok_or(Odd)?;
                (run.number, run.part) = Part::of(&id, names).ok_or(Odd)?;
                Ok(())
            },
        },
        FlatField {
            name: "state",
            meaning: "how it ended, as the scheduler says it",
            get: |run, names| {
                let state = run.state_text.map(|text| names.get(text));
                state.unwrap_or_else(|| run.state.word()).into()
            },
            set: |run, names, value| {
                let text = value.as_str().ok_or(Odd)?;
                (run.state, run.state_text) = (State::parse(text).base, names.intern_some(text));
                Ok(())
            },
        },
        FlatField {
            name: "exit",
            meaning: "exit code and signal of the script; with ? where 128 may have been subtracted",
            get: |run, _| exit_text(run.exit),
            set: |run, _, value| {
                run.exit = exit(value)?;
                Ok(())
            },
        },
        FlatField {
            name: "derived_exit",
            meaning: "the highest exit of its steps",
            get: |run, _| exit_text(run.derived_exit),
            set: |run, _, value| {
                run.derived_exit = exit(value)?;
                Ok(())
            },
        },
        FlatField {
            name: "limit_seconds",
            meaning: "the time limit: seconds or unlimited",
            get: |run, _| match run.limit {
                Allowance::Unknown => Value::Null,
                Allowance::Unlimited => "unlimited".into(),
                Allowance::Seconds(seconds) => seconds.into(),
            },
            set: |run, _, value| {
                run.limit = match value {
                    Value::String(text) if text == "unlimited" => Allowance::Unlimited,
                    other => number(other)?.map_or(Allowance::Unknown, Allowance::Seconds),
                };
                Ok(())
            },
        },
        FlatField {
            name: "requested_memory_bytes",
            meaning: "the memory asked for",
            get: |run, _| json!(run.requested_memory.map(|memory| memory.bytes.0)),
            set: |run, _, value| {
                let scope = run.requested_memory.map_or(MemoryScope::Job, |memory| memory.scope);
                let bytes: Option<u64> = number(value)?;
                run.requested_memory = bytes.map(|bytes| Memory { bytes: Bytes(bytes), scope });
                Ok(())
            },
        },
        FlatField {
            name: "requested_memory_per",
            meaning: "what it is counted per: job, node or cpu",
            get: |run, _| json!(run.requested_memory.map(|memory| memory.scope)),
            set: |run, _, value| {
                let scope = match value.as_str().unwrap_or("") {
                    "node" => MemoryScope::Node,
                    "cpu" => MemoryScope::Cpu,
                    "job" | "" => MemoryScope::Job,
                    _ => return Err(Odd),
                };
                run.requested_memory =
                    run.requested_memory.map(|memory| Memory { scope, ..memory });
                Ok(())
            },
        },
        FlatField {
            name: "gpu_use",
            meaning: "share of the time of its GPUs that they were busy, in thousandths",
            get: |run, _| json!(run.gpu_permille),
            set: |run, _, value| {
                run.gpu_permille = Maybe::from(number(value)?);
                Ok(())
            },
        },
        FlatField {
            name: "out_of_memory",
            meaning: "whether the kernel killed a process of it for memory",
            get: |run, _| run.out_of_memory.into(),
            set: |run, _, value| {
                run.out_of_memory = truth(value)?.unwrap_or(false);
                Ok(())
            },
        },
        FlatField {
            name: "exclusive",
            meaning: "whether it had its nodes to itself",
            get: |run, _| json!(run.exclusive),
            set: |run, _, value| {
                run.exclusive = truth(value)?;
                Ok(())
            },
        },
        FlatField {
            name: "stale",
            meaning: "whether its end was never recorded",
            get: |run, _| run.stale.into(),
            set: |run, _, value| {
                run.stale = truth(value)?.unwrap_or(false);
                Ok(())
            },
        },
    ],
    &texts![
        cluster "the cluster",
        name "the job's name",
        user "the owner's login name",
        account "the account charged",
        partition "the partition",
        qos "the quality of service",
        node_list "its nodes",
        failed_node "the node whose failure ended it",
        reason "why it waits, or waited",
        gpu_type "the type of its GPUs",
        work_dir "the working directory",
        submit_line "the submission command"
    ],
    &numbers![
        "uid" uid "the owner's numeric id",
        "submitted" submitted "submission, epoch seconds",
        "eligible" eligible "when it could first have started, epoch seconds",
        "started" started "start, epoch seconds",
        "ended" ended "end, epoch seconds",
        "elapsed_seconds" elapsed "wall time without suspension",
        "suspended_seconds" suspended "how long it was suspended",
        "nodes" nodes "nodes allocated",
        "cpus" cpus "CPUs allocated",
        "gpus" gpus "GPUs allocated",
        "tasks" tasks "the most tasks of a step",
        "allocated_memory_bytes" allocated_memory "memory allocated, all nodes together",
        "task_memory_bytes" task_memory "the most that one task used",
        "node_memory_bytes" node_memory "the most that was used on one node",
        "cpu_milliseconds" cpu_millis "CPU time of its work steps",
        "longest_step_seconds" longest_step "wall time of its longest work step",
        "gpu_memory_bytes" gpu_memory "the most GPU memory that one step used",
        "joules" joules "energy of its nodes meanwhile",
        "read_bytes" read "bytes read",
        "written_bytes" written "bytes written",
        "restarts" restarts "how often the job was requeued",
        "failed_steps" failed_steps "steps that ended badly"
    ],
];

/// Every field in order.
pub fn fields() -> impl Iterator<Item = &'static FlatField> {
    FIELDS.iter().copied().flatten()
}

impl Part {
    /// Number and part of an id.
    pub fn of(id: &JobId, names: &mut Names) -> Option<(u32, Self)> {
        let part = match &id.part {
            crate::model::Part::Whole => Self::Whole,
            crate::model::Part::Task(task) => Self::Task(u32::try_from(*task).ok()?),
            crate::model::Part::Component(component) => Self::Component(*component),
            crate::model::Part::Tasks(tasks) => Self::Tasks(names.intern(tasks)),
        };
        Some((u32::try_from(id.number).ok()?, part))
    }
}

impl Run {
    /// The values of [`fields`], in their order.
    pub fn flat<'n>(
        &'n self,
        names: &'n Names,
    ) -> impl Iterator<Item = (&'static str, Value)> + 'n {
        fields().map(|field| (field.name, (field.get)(self, names)))
    }

    /// The run of a flat record; fields that it lacks are not known.
    pub fn from_flat(record: &Map<String, Value>, names: &mut Names) -> Result<Self, FlatError> {
        if record.get("schema").and_then(Value::as_str) != Some(SCHEMA)
            || !record.contains_key("id")
        {
            return Err(FlatError::Schema);
        }
        let mut run = Self::bare(0, Part::Whole, BaseState::Other);
        for field in fields() {
            if let Some(value) = record.get(field.name) {
                (field.set)(&mut run, names, value).map_err(|Odd| FlatError::Field(field.name))?;
            }
        }
        Ok(run)
    }
}
