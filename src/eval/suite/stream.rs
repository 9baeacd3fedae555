//! A stream between healthy lines that nobody has to store.

use std::io;

use jiff::Timestamp;

use crate::host::Content;

/// Bytes of one healthy line.
const LINE: u64 = 64;

/// A text with so many healthy lines before and after it.
pub(super) struct Stream {
    body: Vec<u8>,
    before: u64,
    after: u64,
    modified: Option<Timestamp>,
}

impl Stream {
    /// A text alone.
    pub(super) fn plain(body: Vec<u8>, modified: Option<Timestamp>) -> Self {
        Self { body, before: 0, after: 0, modified }
    }

    /// A text with at least so many bytes of healthy lines on either side.
    pub(super) fn padded(mut body: Vec<u8>, before: u64, after: u64) -> Self {
        if !body.ends_with(b"\n") {
            body.push(b'\n');
        }
        Self { body, before: before.div_ceil(LINE), after: after.div_ceil(LINE), modified: None }
    }
}

impl Content for Stream {
    fn size(&self) -> u64 {
        (self.before + self.after) * LINE + self.body.len() as u64
    }

    fn modified(&self) -> Option<Timestamp> {
        self.modified
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let begin = self.before * LINE;
        let end = begin + self.body.len() as u64;
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let rest = &mut buffer[filled..];
            let count = if at >= self.size() {
                break;
            } else if at < begin {
                copy(&healthy(at / LINE), at % LINE, rest)
            } else if at < end {
                copy(&self.body, at - begin, rest)
            } else {
                let at = at - end;
                copy(&healthy(self.before + at / LINE), at % LINE, rest)
            };
            filled += count;
        }
        Ok(filled)
    }
}

fn copy(from: &[u8], skip: u64, to: &mut [u8]) -> usize {
    let from = usize::try_from(skip).ok().and_then(|skip| from.get(skip..)).unwrap_or_default();
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}

/// The healthy line with this number: 63 columns and the line end.
fn healthy(number: u64) -> Vec<u8> {
    let samples = (number % 10_000) * 256;
    let text = format!("step {number:>12} samples {samples:>8} throughput 2048/s");
    format!("{text:<63}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_read_anywhere_is_that_piece_of_the_whole() {
        let stream = Stream::padded(b"boom".to_vec(), 100, 200);
        // Two and four lines of 64 bytes, and "boom" with a line end.
        assert_eq!(stream.size(), 128 + 5 + 256);
        let whole = stream.read_all(1 << 20).expect("memory");
        assert_eq!(whole.len() as u64, stream.size());
        assert_eq!(whole.split(|byte| *byte == b'\n').count(), 2 + 1 + 4 + 1);
        for (offset, length) in [(0, 7), (60, 80), (130, 10), (128, 5), (380, 100), (389, 3)] {
            let mut piece = vec![0; length];
            let count = stream.read_at(offset as u64, &mut piece).expect("memory");
            assert_eq!(piece[..count], whole[offset..whole.len().min(offset + length)]);
        }
    }
}
