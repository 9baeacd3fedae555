//! Verdicts on what real programs and a real Slurm printed.

mod aftermath;
mod attempts;
mod handled;
mod scheduler;
mod verdicts;

use std::io;
use std::sync::LazyLock;

use jiff::Timestamp;

use super::Rules;
use crate::host::Content;
use crate::knowledge::built_in;
use crate::logs::{Limits, Scan, Scanner};

/// A stream in memory.
struct Text<'a>(&'a [u8]);

impl Content for Text<'_> {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn modified(&self) -> Option<Timestamp> {
        None
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::new(built_in().expect("the embedded families can be read")));
static SCANNER: LazyLock<Scanner> = LazyLock::new(|| Scanner::new(&RULES.literals()));

/// Scans a text for the literals of [`RULES`].
fn scan(text: &str) -> Scan {
    SCANNER.scan(&Text(text.as_bytes()), Limits { bytes: 1 << 30 })
}
