//! How releases of Slurm differ where it changes an answer.
//!
//! One row per difference: since when or until when, what it does, and, where an answer can be
//! wrong for it, what to say and for which jobs. Sources: Slurm's CHANGELOG and release notes,
//! and what 20.11, 22.05, 24.11 and 26.05 were seen to print.

use crate::model::{BaseState, Exit, Job, Known, Notice};

use super::release::{Release, Version};

/// A difference between releases.
#[derive(Debug)]
pub struct Quirk {
    /// A stable name.
    pub id: &'static str,
    /// Whether the release may have it.
    pub applies: fn(Release) -> bool,
    /// What it does.
    pub effect: &'static str,
    /// What to say about a job whose answer it can change.
    caveat: Option<Caveat>,
}

#[derive(Debug)]
struct Caveat {
    code: &'static str,
    text: &'static str,
    concerns: fn(&Job) -> bool,
}

/// Every difference that jobwise minds.
pub static QUIRKS: &[Quirk] = &[
    Quirk {
        id: "folded-exit-codes",
        applies: |release| release.is_before(Version(25, 11)) != Some(false),
        effect: "exit codes of 128 and more are printed minus 128",
        caveat: Some(Caveat {
            code: "folded-exit-code",
            text: "this Slurm prints exit codes of 128 and more minus 128, so an exit code has two \
                   readings",
            concerns: |job| exits(job).any(is_ambiguous),
        }),
    },
    Quirk {
        id: "memory-request-per-node-or-cpu",
        applies: |release| release.is_before(Version(21, 8)) != Some(false),
        effect: "ReqMem counts per node (n) or CPU (c), and is 0n where memory follows GPUs",
        caveat: None,
    },
    Quirk {
        id: "no-log-path-in-accounting",
        applies: |release| release.is_before(Version(24, 5)) != Some(false),
        effect: "accounting keeps no path of the logs; only the controller knows it, for minutes",
        caveat: None,
    },
    Quirk {
        id: "lost-cpu-time",
        applies: loses_cpu_time,
        effect: "the CPU time of srun steps is zero in 25.05.0 to .6 and 25.11.0 to .2",
        caveat: None,
    },
    Quirk {
        id: "gpu-use-of-one",
        applies: |release| !sums_gpus(release),
        effect: "gres/gpuutil is that of the last GPU of a step; from 24.05 the sum over all",
        caveat: None,
    },
    Quirk {
        id: "sampled-memory",
        applies: |release| release.is_before(Version(24, 11)) != Some(false),
        effect: "MaxRSS is sampled; work that grows or ends between two samples shows less",
        caveat: Some(Caveat {
            code: "sampled-memory",
            text: "this Slurm samples memory at intervals, so the true peak was at least what is \
                   shown",
            concerns: |job| is_out_of_memory(job) && job.peak_memory().is_some(),
        }),
    },
];

/// Whether an exit code has two readings that both occur; nobody wonders whether 1 was 129.
pub(super) fn is_ambiguous(exit: Exit) -> bool {
    exit.code > 1 && exit.codes().len() > 1
}

/// Whether a reason only says again what state and exit of an ended run say, as 20.11 does: to it a
/// script that a signal killed was not launched.
pub(super) fn is_no_reason(reason: &str, exit: Option<Exit>) -> bool {
    match reason {
        "NonZeroExitCode" | "OutOfMemory" | "TimeLimit" => exit.is_some(),
        // Slurm's own number for what it could not set up is no signal.
        "JobLaunchFailure" => exit.is_some_and(|exit| !matches!(exit.signal, 0 | 53)),
        _ => false,
    }
}

/// Whether a CPU time of zero may be one that was lost.
pub(super) fn loses_cpu_time(release: Release) -> bool {
    release.is_before(Version(25, 5)) == Some(false)
        && release.is_before(Version(26, 5)) != Some(false)
}

/// Whether the use of GPUs is summed over all GPUs of a step, and not that of one of them.
pub(super) fn sums_gpus(release: Release) -> bool {
    release.is_before(Version(24, 5)) == Some(false)
}

/// What to say about these jobs.
pub(super) fn notices(release: Release, jobs: &[Job]) -> Vec<Notice> {
    let caveats = QUIRKS.iter().filter(|quirk| (quirk.applies)(release));
    caveats
        .filter_map(|quirk| quirk.caveat.as_ref())
        .filter(|caveat| jobs.iter().any(caveat.concerns))
        .map(|caveat| Notice::info(caveat.code, caveat.text))
        .collect()
}

fn exits(job: &Job) -> impl Iterator<Item = Exit> {
    let steps = job.steps.iter().map(|step| &step.exit);
    [&job.exit, &job.derived_exit].into_iter().chain(steps).filter_map(Known::get)
}

fn is_out_of_memory(job: &Job) -> bool {
    job.state.base == BaseState::OutOfMemory
        || job.steps.iter().any(|step| step.state.base == BaseState::OutOfMemory)
}
