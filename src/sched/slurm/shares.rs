//! What a job has of each of its nodes: `scontrol --details show job`.
//!
//! A record holds the four pairs once for each group of nodes that have the same layout.

use crate::model::{Known, Share};
use crate::text;

use super::{nodes, scontrol, values};

/// The shares of the first job of an output.
pub(super) fn shares(output: &[u8]) -> Vec<Share> {
    let text = String::from_utf8_lossy(output);
    let mut found: Vec<Share> = Vec::new();
    let Some(record) = scontrol::split(&text, "JobId").into_iter().next() else { return found };
    scontrol::pairs(record, scontrol::JOB, |key, value| match (key, found.last_mut()) {
        ("Nodes", _) => found.push(Share {
            node_list: value.to_owned(),
            cpus: Known::NotGathered,
            memory: Known::NotGathered,
            gpus: Known::NotGathered,
        }),
        // The ids of the CPUs, not how many.
        ("CPU_IDs", Some(share)) => {
            let ids = text::expand(&format!("[{value}]"), 65_536);
            share.cpus = ids.ok().map(|ids| ids.len() as u64).into();
        }
        ("Mem", Some(share)) => share.memory = values::mebibytes(value),
        ("GRES", Some(share)) => {
            let gpus = nodes::entries(value).into_iter().filter(|entry| entry.name == "gpu");
            share.gpus = Known::Value(gpus.map(|entry| entry.count).sum());
        }
        _ => {}
    });
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Bytes;

    #[test]
    fn ids_of_cpus_are_counted_node_by_node() {
        // Cut from `scontrol --details --oneliner show job` of Slurm 22.05.
        let text = b"JobId=670 JobName=Nodes=c09 CPU_IDs=0 UserId=alice(1001) JobState=RUNNING \
            NodeList=c[01-03] NumNodes=3 JOB_GRES=gpu:a100:2   Nodes=c01 CPU_IDs=5-6 Mem=200 GRES=   \
            Nodes=c[02-03] CPU_IDs=0,4-7 Mem=15500 GRES=gpu:a100:1(IDX:0) MinCPUsNode=1 \
            WorkDir=/tmp/Nodes=x\n";
        let last = shares(text);
        assert_eq!(last.len(), 2);
        assert_eq!((last[0].node_list.as_str(), &last[0].cpus), ("c01", &Known::Value(2)));
        assert_eq!(last[0].gpus, Known::Value(0));
        assert_eq!((last[1].node_list.as_str(), &last[1].cpus), ("c[02-03]", &Known::Value(5)));
        assert_eq!(last[1].memory, Known::Value(Bytes(15500 * Bytes::MIB)));
        assert_eq!(last[1].gpus, Known::Value(1));
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = shares(&[b"JobId=1 Nodes=".as_slice(), &bytes].concat());
        }
    }
}
