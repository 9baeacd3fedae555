//! Verdicts on what real programs and a real Slurm printed.

mod verdicts;

use std::io;

use jiff::Timestamp;

use super::Rules;
use crate::host::Content;
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

/// Scans a text for the literals of `rules`.
fn scan(rules: &Rules, text: &str) -> Scan {
    Scanner::new(&rules.literals()).scan(&Text(text.as_bytes()), Limits { bytes: 1 << 30 })
}
