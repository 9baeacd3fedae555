//! What a partition and its nodes allow at most.

use serde::Serialize;

use super::{Bytes, Known, Span};

/// The limits of one partition, and the size of its largest node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Limits {
    /// The partition.
    pub partition: String,
    /// The longest time limit it accepts.
    pub max_time: Known<Span>,
    /// The most memory a job may ask for on one node.
    pub max_memory_per_node: Known<Bytes>,
    /// The most memory a job may ask for per CPU.
    pub max_memory_per_cpu: Known<Bytes>,
    /// The memory of its largest node.
    pub node_memory: Known<Bytes>,
    /// The CPUs of its largest node.
    pub node_cpus: Known<u64>,
}
