//! Integration tests: one binary, so that one link serves them all.
#![expect(clippy::disallowed_methods, reason = "tests look at the machine they run on")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod dependencies;
mod eval;
mod layers;
mod readme;
mod text;
