//! Where a job can run, and when: from facts at one instant to a judgement. Data in, data out.

pub mod fit;
pub mod start;
