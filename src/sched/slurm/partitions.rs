//! The partitions of `scontrol show partition`.

use std::collections::BTreeMap;

use crate::model::{Allowed, Known, Queue, QueueState, Sharing, Tres};

use crate::text;

use super::scontrol::{self, Grammar};
use super::values;

/// Nothing here is free text.
const GRAMMAR: Grammar = Grammar { free: &[], after: &[] };

/// The partitions of an output, each once, in its order.
pub(super) fn queues(output: &[u8]) -> Vec<Queue> {
    let text = text::lossy(output);
    let mut queues: Vec<Queue> = Vec::new();
    for record in scontrol::split(&text, "PartitionName") {
        let mut cells = BTreeMap::new();
        scontrol::pairs(record, GRAMMAR, |key, value| {
            cells.entry(key).or_insert(value);
        });
        let queue = queue(&cells);
        if !queue.name.is_empty() && queues.iter().all(|known| known.name != queue.name) {
            queues.push(queue);
        }
    }
    queues
}

fn queue(cells: &BTreeMap<&str, &str>) -> Queue {
    let get = |key: &str| cells.get(key).copied().unwrap_or_default();
    let yes = |key: &str| get(key).eq_ignore_ascii_case("YES");
    let count = |key: &str| match values::count(get(key)) {
        // What 20.11 prints for "no least number", and what no partition can mean as a most.
        Known::Value(0) => Known::NotGathered,
        known => known,
    };
    // `DefCpuPerGPU=2,DefMemPerGPU=4000`; the first key of the list is cut off as one of its own.
    let defaults = Tres::parse(get("JobDefaults"));
    let default = |key: &str| defaults.get(key).unwrap_or_else(|| get(key)).to_owned();
    let sharing = sharing(get("OverSubscribe"));
    let exclusive = get("Exclusive");
    Queue {
        name: get("PartitionName").to_owned(),
        state: state(get("State")),
        is_default: yes("Default"),
        is_hidden: yes("Hidden"),
        is_root_only: yes("RootOnly"),
        needs_reservation: yes("ReqResv"),
        accounts: allowed(get("AllowAccounts")),
        denied_accounts: values::names(get("DenyAccounts")),
        qos: allowed(get("AllowQos")),
        denied_qos: values::names(get("DenyQos")),
        groups: allowed(get("AllowGroups")),
        submit_hosts: allowed(get("AllocNodes")),
        limits_from: values::word(get("QoS")),
        max_time: values::span(get("MaxTime")),
        default_time: values::span(get("DefaultTime")),
        min_nodes: count("MinNodes"),
        max_nodes: count("MaxNodes"),
        max_cpus_per_node: count("MaxCPUsPerNode"),
        max_memory_per_node: values::mebibytes(get("MaxMemPerNode")),
        max_memory_per_cpu: values::mebibytes(get("MaxMemPerCPU")),
        default_memory_per_node: values::mebibytes(get("DefMemPerNode")),
        default_memory_per_cpu: values::mebibytes(get("DefMemPerCPU")),
        default_memory_per_gpu: values::mebibytes(&default("DefMemPerGPU")),
        default_cpus_per_gpu: values::count(&default("DefCpuPerGPU")),
        sharing: if exclusive.contains("NODE") { Sharing::Exclusive } else { sharing },
        is_one_user_per_node: yes("ExclusiveUser") || exclusive.contains("USER"),
        tier: values::count(get("PriorityTier")),
        node_list: values::word(get("Nodes")).unwrap_or_default(),
        node_count: values::count(get("TotalNodes")),
        cpu_count: values::count(get("TotalCPUs")),
        tres: Tres::parse(get("TRES")),
    }
}

fn state(text: &str) -> QueueState {
    match text {
        "UP" => QueueState::Up,
        "DOWN" => QueueState::Down,
        "DRAIN" => QueueState::Drain,
        "INACTIVE" => QueueState::Inactive,
        "" => QueueState::Unknown,
        other => QueueState::Other(other.to_owned()),
    }
}

/// `ALL`, names, or the word by which a site says "nobody". Nothing said lets everybody in: the
/// line is not printed where its opposite is.
fn allowed(text: &str) -> Allowed {
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    match names[..] {
        [] => Allowed::Everybody,
        [name, ..] if name.eq_ignore_ascii_case("none") => Allowed::Nobody,
        [name] if name.eq_ignore_ascii_case("all") || name == "(null)" => Allowed::Everybody,
        _ => Allowed::Only(names.into_iter().map(str::to_owned).collect()),
    }
}

/// `NO`, `EXCLUSIVE`, `YES:4`, `FORCE:4`.
fn sharing(text: &str) -> Sharing {
    let (word, most) = text.split_once(':').unwrap_or((text, "4"));
    // Four is the manual's number where there is none.
    let most = most.parse().unwrap_or(4);
    match word {
        "EXCLUSIVE" => Sharing::Exclusive,
        // One job on a core is no sharing.
        "FORCE" if most > 1 => Sharing::ForcedCores(most),
        "YES" if most > 1 => Sharing::Cores(most),
        _ => Sharing::Nodes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Bytes, Span};

    fn one(text: &str) -> Queue {
        let mut queues = queues(text.as_bytes());
        assert_eq!(queues.len(), 1);
        queues.remove(0)
    }

    #[test]
    fn a_partition_of_slurm_24_11_is_read() {
        let queue = one(
            "PartitionName=gpu AllowGroups=ALL DenyAccounts=physics AllowQos=high,normal \
            AllocNodes=ALL Default=NO QoS=N/A DefaultTime=00:10:00 DisableRootJobs=NO \
            ExclusiveUser=NO Hidden=NO MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0 LLN=NO \
            MaxCPUsPerNode=UNLIMITED Nodes=g[01-03] PriorityTier=1 RootOnly=NO ReqResv=NO \
            OverSubscribe=EXCLUSIVE State=UP TotalCPUs=40 TotalNodes=3 \
            JobDefaults=DefCpuPerGPU=2,DefMemPerGPU=4000 DefMemPerNode=UNLIMITED \
            MaxMemPerNode=UNLIMITED TRES=cpu=40,mem=160000M,node=3,gres/gpu=10 PowerDownOnIdle=NO\n",
        );
        assert_eq!(queue.name, "gpu");
        assert_eq!(queue.accounts, Allowed::Everybody);
        assert_eq!(queue.denied_accounts, ["physics"]);
        assert!(queue.qos.lets_in("normal") && !queue.qos.lets_in("low"));
        assert_eq!(queue.max_time, Known::Value(Span::seconds(172_800)));
        assert_eq!(queue.min_nodes, Known::NotGathered);
        assert_eq!(queue.max_nodes, Known::Unlimited);
        assert_eq!(queue.sharing, Sharing::Exclusive);
        assert_eq!(queue.default_cpus_per_gpu, Known::Value(2));
        assert_eq!(queue.default_memory_per_gpu, Known::Value(Bytes(4000 * Bytes::MIB)));
        assert_eq!(queue.limits_from, None);
        assert_eq!(queue.tres.gpus(), Some(10));
    }

    #[test]
    fn a_list_that_says_none_lets_nobody_in() {
        let queue = one("PartitionName=old AllowAccounts=none AllowQos=none State=DOWN");
        assert_eq!((queue.accounts, queue.qos), (Allowed::Nobody, Allowed::Nobody));
        assert_eq!(queue.state, QueueState::Down);
        let queue = one("PartitionName=cut Sta");
        assert_eq!(queue.state, QueueState::Unknown);
        assert_eq!(one("PartitionName=x State=BUSY").state, QueueState::Other("BUSY".to_owned()));
    }

    #[test]
    fn sharing_is_what_the_manual_says() {
        assert_eq!(sharing("FORCE:4"), Sharing::ForcedCores(4));
        assert_eq!(sharing("FORCE:1"), Sharing::Nodes);
        assert_eq!(sharing("YES:2"), Sharing::Cores(2));
        assert_eq!(sharing("NO"), Sharing::Nodes);
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = queues(&bytes);
            let _ = queues(&[b"PartitionName=p ".as_slice(), &bytes].concat());
        }
    }
}
