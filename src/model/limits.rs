//! What a partition (queue) and its nodes can give: the ceiling of every suggestion.

use serde::{Deserialize, Serialize};

use super::{Bytes, Known, Span};

/// The limits of one partition and the size of its largest node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The partition.
    pub partition: String,
    /// The longest time limit that it takes.
    pub max_time: Known<Span>,
    /// The most memory that a job may use on one node.
    pub max_memory_per_node: Known<Bytes>,
    /// The most memory that a job may use per allocated CPU.
    pub max_memory_per_cpu: Known<Bytes>,
    /// The memory of the largest node.
    pub node_memory: Known<Bytes>,
    /// The CPUs of the node that has most of them.
    pub node_cpus: Known<u64>,
}
