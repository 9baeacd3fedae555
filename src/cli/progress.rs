//! How far something is that takes long, on a terminal and nowhere else.

use std::io::{self, IsTerminal, Write};

use jiff::{SignedDuration, Timestamp};

use crate::answer::World;
use crate::answer::kb::Progress;

/// What ends sooner needs no words.
const SILENT: SignedDuration = SignedDuration::from_millis(500);
/// Cells of the bar.
const CELLS: usize = 24;

/// Does something that says how far it is, and shows that in one line of standard error that is gone
/// at the end.
pub(super) fn shown<T>(world: World<'_>, act: impl FnOnce(Progress<'_>) -> T) -> T {
    if !io::stderr().is_terminal() {
        return act(&mut |_, _| {});
    }
    let begun = world.machine.now();
    let mut drawn = false;
    let outcome = act(&mut |done, all| {
        let now = world.machine.now();
        if now.duration_since(begun) >= SILENT {
            let _ = write!(io::stderr(), "\r{}\x1b[K", line(done, all, begun, now));
            drawn = true;
        }
    });
    if drawn {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    outcome
}

fn line(done: usize, all: usize, begun: Timestamp, now: Timestamp) -> String {
    let full = (done * CELLS).checked_div(all).unwrap_or(CELLS).min(CELLS);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(CELLS - full));
    let taken = now.duration_since(begun).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "an estimate of seconds")]
    let left = if done > 0 { taken * (all - done.min(all)) as f64 / done as f64 } else { 0.0 };
    let rest = if done > 0 { format!(", {left:.0} s left") } else { String::new() };
    format!("[{bar}] {done} of {all} texts{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is_and_how_long_it_takes() {
        let begun = Timestamp::UNIX_EPOCH;
        let now = begun + SignedDuration::from_secs(10);
        assert_eq!(
            line(50, 200, begun, now),
            "[######..................] 50 of 200 texts, 30 s left"
        );
        assert_eq!(line(0, 200, begun, now), "[........................] 0 of 200 texts");
        assert_eq!(line(0, 0, begun, now), "[########################] 0 of 0 texts");
    }
}
