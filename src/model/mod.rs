//! Plain data that every other layer speaks: ids, jobs, steps, states, exits, units, verdicts.
//!
//! Decides nothing and asks nobody: no process, file, clock or environment is reached from here.
//! The words are those that batch schedulers share; where only Slurm has a notion (a heterogeneous
//! component, say) its field is absent elsewhere. Every number that a site may not gather is a
//! [`Known`], so that "unknown" can never print as zero.

mod ability;
mod cluster;
mod drawn;
mod dry_run;
mod edit;
mod exit;
mod id;
mod job;
mod known;
mod limits;
mod node;
mod node_use;
mod notice;
mod pace;
mod queue;
pub mod request;
mod run;
mod shape;
mod state;
mod tres;
mod units;
mod verdict;

pub use ability::Ability;
pub use cluster::{
    AccountUse, Association, Caps, Cluster, Controller, Identity, Licence, Qos, QueuedJob,
    ReadFailure, Reading, Reservation, Share,
};
pub use drawn::Drawn;
pub use dry_run::{DryRun, Filter, Refusal, Settled};
pub use edit::{Edit, EditError};
pub use exit::{Exit, signal_name};
pub use id::{IdError, JobId, Part, StepId};
pub use job::{Job, Memory, MemoryScope, Source, Step, Usage};
pub use known::Known;
pub use limits::{Limits, Most, Rule};
pub use node::{Cpus, Gres, GresKind, Node, NodeBase, NodeFlag, NodeMemory, NodeReason, NodeState};
pub use node_use::{GpuUse, NodeUse};
pub use notice::{Level, Notice};
pub use pace::{Pace, Rest};
pub use queue::{Allowed, Queue, QueueState, Sharing};
pub use run::{
    Allowance, FlatError, FlatField, History, Idle, Maybe, Names, Owner, Part as RunPart,
    RUN_SCHEMA, Rows, Run, StepKind, StepUse, Symbol, busy, is_failed, is_out_of_memory,
    run_fields,
};
pub use shape::{Devices, Per, Room, Shape, ShapeError};
pub use state::{BaseState, State};
pub use tres::Tres;
pub use units::{Bytes, Span, UnitError};
pub use verdict::{
    Cause, Confidence, Domain, Evidence, FamilyId, Outcome, Place, Role, Stream, Verdict,
};
