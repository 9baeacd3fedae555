//! Verdicts on what real programs and a real Slurm printed.

mod plain_scan;
mod verdicts;
