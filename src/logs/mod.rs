//! A job's logs: where they are, and one bounded pass over each.
//!
//! Knows nothing of failure families: it is handed literals and hands back the lines that hold
//! them, with the structure (tracebacks, ranks, tail) that judging them needs.

mod locate;
mod scan;

pub use locate::{Asked, Certainty, Located, Miss, locate};
pub use scan::{Block, BlockKind, Frame, Hit, Limits, Line, STEMS, Scan, Scanner, stem_of};
