//! Energy that meters counted while a job ran, and whether that is the job's own.
//!
//! Slurm's meters count nodes and not jobs (`man sacct`, `ConsumedEnergy`): a job that shared its
//! nodes is told what all of them drew together, and so is one that was suspended while others ran
//! there. Counters break: zero and Slurm's words for "none" are read as nothing elsewhere; here a
//! power that no node has is told apart. Which part of a node a meter sees only the site's
//! configuration says.

/// Watts that a node draws: from an idle small one to one full of GPUs.
const WATTS: std::ops::RangeInclusive<u64> = 20..=15_000;

/// Joules that were recorded for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// Its own: it had its nodes to itself.
    Own(u64),
    /// Also those of other jobs, or perhaps: it is not known to have had its nodes to itself.
    Shared(u64),
    /// No node draws so little or so much: the counter broke.
    Absurd(u64),
}

impl Drawn {
    /// Judges what was recorded of a job that held nodes for so many seconds, counted once for each
    /// node; `None` where nothing was recorded, or not for how long.
    pub fn of(
        joules: Option<u64>,
        alone: Option<bool>,
        suspended: Option<u64>,
        node_seconds: Option<u64>,
    ) -> Option<Self> {
        let joules = joules.filter(|joules| *joules > 0)?;
        let node_seconds = node_seconds.filter(|seconds| *seconds > 0)?;
        Some(if !WATTS.contains(&(joules / node_seconds)) {
            Self::Absurd(joules)
        } else if alone == Some(true) && suspended.unwrap_or(0) == 0 {
            Self::Own(joules)
        } else {
            Self::Shared(joules)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joules_are_a_job_s_own_only_on_nodes_of_its_own() {
        // F204, F208, F210, F211: node-level counters, weird values, several nodes.
        // 2 nodes x 3600 s x 400 W.
        let (joules, held) = (Some(2_880_000), Some(7200));
        assert_eq!(Drawn::of(joules, Some(true), None, held), Some(Drawn::Own(2_880_000)));
        for (alone, suspended) in [(None, None), (Some(false), None), (Some(true), Some(60))] {
            let shared = Drawn::of(joules, alone, suspended, held);
            assert_eq!(shared, Some(Drawn::Shared(2_880_000)), "{alone:?} {suspended:?}");
        }
        // 2 W and 40 kW are no power of a node.
        for joules in [2 * 7200, 40_000 * 7200] {
            let drawn = Drawn::of(Some(joules), Some(true), None, held);
            assert_eq!(drawn, Some(Drawn::Absurd(joules)));
        }
        assert_eq!(Drawn::of(joules, Some(true), None, None), None);
        assert_eq!(Drawn::of(Some(0), Some(true), None, held), None);
    }
}
