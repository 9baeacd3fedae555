//! Whether the lines around an error say that its program got over it: that it goes on without what
//! failed, tries again, or does not mind. Knows no record, no family, and nothing further away than
//! the lines next to the error.

use super::line::{goes_on, is_trouble};
use crate::logs::{Block, Hit};

/// What an error is still worth that was got over.
pub(super) const OVERCOME: f64 = 0.5;
/// Lines of work after which it is believed that a program went on.
pub(super) const WENT_ON: u32 = 4;

/// Whether it is said: in the lines behind the error, or by the logger that wrote its traceback in
/// the line before it. `concluded` is the traceback that ends in the error.
pub(super) fn is_overcome(hit: &Hit, concluded: Option<&Block>) -> bool {
    let logged = |text: &str| text.contains("ERROR") || text.contains("WARNING");
    let heading = concluded.and_then(|block| block.heading.as_deref());
    heading.is_some_and(|text| logged(text) && goes_on(text))
        || hit.next.iter().any(|text| goes_on(text) || is_mended(text))
}

/// Whether the line says that what had failed was done after all, or does not matter.
fn is_mended(text: &str) -> bool {
    const WORDS: [&str; 7] = [
        " again",
        " instead",
        "failed attempts",
        "rebuilt",
        "recomputed",
        "not needed",
        // What Slurm says of the next submission or step, where it took it.
        "Submitted batch job",
    ];
    let traced = text.trim_start_matches('+');
    let shrugged = traced.len() < text.len() && matches!(traced.trim(), "true" | ":");
    shrugged || WORDS.iter().any(|word| text.contains(word)) && !is_trouble(text)
}
