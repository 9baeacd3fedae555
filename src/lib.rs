//! jobwise answers why a batch job died or will not start, and what exactly to change.
//!
//! The library makes no semver promise: it is the binary, opened up for tests. This page is the
//! map of the house; a test compares the table with the imports that the code really has.
//!
//! # Layers
//!
//! A module may import any **earlier** group and its own folder, nothing else.
//!
//! | group | modules | what it is |
//! |---|---|---|
//! | 0 | `model`, `math`, `text` | plain data; statistics on counts; bytes and words |
//! | 1 | `host` | the only door to processes, files, clock, environment |
//! | 2 | `config`, `script` | settings with their origin; the batch-script parser |
//! | 3 | `hardware`, `knowledge`, `logs`, `sched` | facts: accelerators, what is known, the logs', the scheduler's |
//! | 4 | `capacity`, `classify`, `retrieve`, `patch`, `history`, `eval`, `wrapper` | judgements: data in, data out |
//! | 5 | `answer` | one file = one question -> one report value |
//! | 6 | `render` | a report -> text or JSON |
//! | 7 | `cli` | arguments, dispatch, exit codes |
//!
//! # One job id, from `cli` to `render`
//!
//! `cli` reads the arguments, chooses a [`host::Runner`] and calls [`answer::diagnose`]. That asks
//! `sched` for the record; `logs` for the streams and one scan of them (`script` says where they are,
//! if the record does not) for the signals of `knowledge`; `classify` for the verdict; `retrieve`
//! for the section of the notes that says what to do; `patch` for the change to the script, as
//! `script` reads it. What people wrote is masked, and a report value returned that `render` turns
//! into text or JSON.
//!
//! # A history, from text to advice
//!
//! Everything about many runs is a fold over a [`model::History`], wherever that comes from.
//!
//! ```
//! use std::path::Path;
//!
//! use jiff::{Timestamp, tz::TimeZone};
//! use jobwise::history::sizing::{Amount, Basis, Flag, sizing};
//! use jobwise::history::workloads::workloads;
//! use jobwise::model::{Bytes, Idle, Run};
//! use jobwise::sched::{Filter, Saved, Users};
//!
//! // What `sacct --parsable2` prints, with as many columns as are at hand.
//! let mut text = String::from(
//!     "JobID|JobName|State|Start|End|Elapsed|Timelimit|NNodes|AllocCPUS|AllocTRES|NodeList|MaxRSS\n",
//! );
//! for job in 1..=5 {
//!     let shared = "COMPLETED|1795000000|1795003600|01:00:00";
//!     text += &format!("{job}|fit-{job}|{shared}|1-00:00:00|1|4|cpu=4,mem=64G,node=1|n1|\n");
//!     text += &format!("{job}.batch|batch|{shared}||1|4|cpu=4,mem=64G,node=1|n1|{}K\n", 6 << 20);
//! }
//! let mut saved = Saved::new(TimeZone::UTC, Vec::new());
//! saved.read(Path::new("saved.txt"), &text.into_bytes())?;
//! let history = saved.finish(&Filter {
//!     users: Users::All,
//!     states: Vec::new(),
//!     accounts: Vec::new(),
//!     partitions: Vec::new(),
//!     qos: Vec::new(),
//!     clusters: Vec::new(),
//!     names: Vec::new(),
//!     since: Timestamp::MIN,
//!     until: Timestamp::MAX,
//! });
//!
//! let idle = Idle { least_seconds: 300, most_busy_permille: 10, most_bytes_per_second: 1 << 20 };
//! let basis = Basis { risk: Basis::RISK, idle };
//! for workload in workloads(&history) {
//!     let runs: Vec<&Run> = workload.runs(&history).collect();
//!     let advice = sizing(&runs, &history, None, &basis);
//!     for line in advice.iter().filter_map(|advice| advice.directive()) {
//!         println!("{}: {line}", workload.label);
//!     }
//!     // 6 GiB of 64 were used: 30 % above that.
//!     let memory = advice.iter().find(|advice| advice.flag == Flag::Memory);
//!     let wanted = memory.and_then(|advice| advice.suggestion);
//!     assert_eq!(wanted, Some(Amount::Memory(Bytes(8 << 30))));
//! }
//! # Ok::<(), jobwise::sched::SavedError>(())
//! ```
//!
//! # A cluster, from a snapshot to the best place
//!
//! A question about capacity is a judgement of one [`model::Cluster`], wherever that was read.
//!
//! ```
//! use std::path::Path;
//!
//! use jobwise::capacity::free::Frees;
//! use jobwise::capacity::gates::Gates;
//! use jobwise::capacity::rank::{Asked, Look, Verdict, sort};
//! use jobwise::config::Config;
//! use jobwise::hardware::Catalogue;
//! use jobwise::host::Replay;
//! use jobwise::model::Shape;
//! use jobwise::sched::slurm::Nodes;
//!
//! // What `scontrol` printed, in a snapshot of nodetop; `jobwise snapshot` writes a fuller one.
//! let said = |text: &str| serde_json::json!({ "rc": 0, "stdout": text, "stderr": "" });
//! let snapshot = serde_json::json!({
//!     "nodetop": "0.7.0", "backend": "slurm", "captured_at": "2026-11-30T08:00:00",
//!     "commands": {
//!         "scontrol show config": said("SelectTypeParameters = CR_CORE_MEMORY\n"),
//!         "scontrol show node --all --oneliner": said(
//!             "NodeName=c1 CPUAlloc=0 CPUTot=64 RealMemory=256000 AllocMem=0 State=IDLE Partitions=cpu\n\
//!              NodeName=g1 CPUAlloc=60 CPUTot=64 RealMemory=256000 AllocMem=0 Gres=gpu:h100:4 \
//!              AllocTRES=cpu=60,gres/gpu=3 State=MIXED Partitions=gpu\n",
//!         ),
//!         "scontrol show partition --all": said(
//!             "PartitionName=cpu State=UP TotalNodes=1\n\nPartitionName=gpu State=UP TotalNodes=1\n",
//!         ),
//!     },
//! });
//! let replay = Replay::parse(Path::new("snapshot.json"), snapshot.to_string().as_bytes())?;
//! let settings = Config::recorded(None)?.settings.scheduler;
//! let cluster = Nodes::new(&replay, &settings).cluster()?.value;
//!
//! let mut shape = Shape::default();
//! shape.apply("gres", Some("gpu:h100:2"))?;
//!
//! let frees = Frees::new(&cluster);
//! let gates = Gates::new(&cluster, &frees);
//! let catalogue = Catalogue::built_in()?;
//! let look = Look::new(&cluster, &frees, &gates, &catalogue);
//! let judged = look.judge(&shape, false).into_iter();
//! let mut places: Vec<_> = judged.map(|judged| look.place(judged, &shape, Asked::No)).collect();
//! sort(&mut places);
//!
//! // Nobody asked the scheduler, so nothing is promised; and one GPU is free, where two are wanted.
//! assert_eq!((places[0].queue.as_str(), places[0].verdict), ("gpu", Verdict::NoAnswer));
//! assert!(places[0].because.starts_with("g1 short of GPUs (node GresUsed, AllocTRES)"));
//! assert_eq!((places[1].queue.as_str(), places[1].verdict), ("cpu", Verdict::WrongHardware));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Seams
//!
//! * **Outside** is a [`host::Runner`]: the machine, a recording being made, or a replay.
//! * **A scheduler** is a [`sched::Backend`]: a struct of optional capabilities, so that "has no
//!   dry run" is a type and not an error at run time.
//! * **A failure family** is one markdown file in `knowledge/`: front matter is the rule, the body
//!   is the fix.
//! * **A number** that a site may not gather is a [`model::Known`]: it never prints as zero.

pub mod math;
pub mod model;
pub mod text;

pub mod host;

pub mod config;
pub mod script;

pub mod hardware;
pub mod knowledge;
pub mod logs;
pub mod sched;

pub mod capacity;
pub mod classify;
pub mod eval;
pub mod history;
pub mod patch;
pub mod retrieve;
pub mod wrapper;

pub mod answer;

pub mod render;

pub mod cli;
