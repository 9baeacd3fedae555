//! A job's logs: where they are, and one bounded pass over each.
//!
//! Knows nothing of failure families: it is handed literals and hands back the lines that hold
//! them, with the structure (tracebacks, ranks, tail) that judging them needs.

mod clock;
mod host;
mod locate;
mod pace;
mod scan;
mod standstill;

pub use clock::{cancelled_at, line_time};
pub use host::host;
pub use locate::{Asked, Certainty, Located, Miss, locate, written};
pub use pace::{has_open_rounds, pace};
pub use scan::{Block, BlockKind, Frame, Hit, Limits, Line, STEMS, Scan, Scanner, stem_of};
pub use standstill::standstill;
