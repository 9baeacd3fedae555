//! Integration tests: one binary, so that one link serves them all.
#![expect(clippy::disallowed_methods, reason = "tests look at the machine they run on")]
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test that was skipped says why")]

mod accounting;
mod advice;
mod answers;
mod any_order;
mod capacity;
mod dependencies;
mod eval;
mod field_reports;
mod history;
mod layers;
mod logs;
mod model;
mod notes;
mod output;
mod own_files;
mod place;
mod processes;
mod readme;
mod recordings;
mod run;
mod scheduler;
mod snapshots;
mod stats;
mod suites;
mod text;
mod ticket;
mod usage;
mod workloads;
mod wrappers;
