//! What a monitoring of the site measured of a job on one node.

use serde::Serialize;

/// The use of one node. `None` was not measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NodeUse {
    /// The node.
    pub node: String,
    /// CPUs of the job there.
    pub cpus: Option<u64>,
    /// CPU time in seconds.
    pub cpu_seconds: Option<u64>,
    /// The most memory that was used, in bytes.
    pub memory: Option<u64>,
    /// The memory of the job there, in bytes.
    pub of_memory: Option<u64>,
    /// Its GPUs.
    pub gpus: Vec<GpuUse>,
}

/// The use of one GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GpuUse {
    /// Its number on the node.
    pub index: String,
    /// Per cent of the time that it was busy.
    pub percent: Option<f64>,
    /// The most memory that was used, in bytes.
    pub memory: Option<u64>,
    /// Its memory, in bytes.
    pub of_memory: Option<u64>,
}
