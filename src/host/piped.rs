//! What comes through a pipe, kept as a file is read: by position, and in bounded memory.
//!
//! Of what is short all is kept, of what is long the beginning and the end. What lay between is gone,
//! and is told as a gap: nothing is counted across it.

use std::io::{self, Read};

use jiff::Timestamp;

use super::Content;
use super::file::within;

/// Kept of the beginning.
const HEAD: usize = 16 << 20;
/// Kept of the end; a cause mostly stands there.
const TAIL: usize = 48 << 20;
/// Read at a time.
const CHUNK: usize = 256 << 10;

/// What came through a pipe.
#[derive(Debug, Default)]
pub(super) struct Piped {
    head: Vec<u8>,
    /// The last bytes behind the head.
    tail: Vec<u8>,
    size: u64,
}

impl Piped {
    /// Reads until the end.
    pub(super) fn read(source: &mut dyn Read) -> io::Result<Self> {
        Self::within(source, HEAD, TAIL)
    }

    fn within(source: &mut dyn Read, most_head: usize, most_tail: usize) -> io::Result<Self> {
        let mut kept = Self::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = match source.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            kept.size += count as u64;
            let (first, rest) = chunk[..count].split_at(count.min(most_head - kept.head.len()));
            kept.head.extend_from_slice(first);
            kept.tail.extend_from_slice(rest);
            // Now and then, so that each byte is moved once on average.
            if kept.tail.len() > 2 * most_tail {
                kept.tail.drain(..kept.tail.len() - most_tail);
            }
        }
        let beyond = kept.tail.len().saturating_sub(most_tail);
        kept.tail.drain(..beyond);
        Ok(kept)
    }

    /// Where the kept end begins.
    fn tail_at(&self) -> u64 {
        self.size - self.tail.len() as u64
    }
}

impl Content for Piped {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Timestamp> {
        None
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (head, tail) = (self.head.len() as u64, self.tail_at());
        let (bytes, from, end) = if offset < head {
            (self.head.as_slice(), offset, head)
        } else if offset < tail {
            (&[][..], 0, tail)
        } else {
            (self.tail.as_slice(), offset - tail, self.size)
        };
        let buffer = within(end, offset, buffer);
        match usize::try_from(from).ok().and_then(|from| bytes.get(from..from + buffer.len())) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            // In the gap.
            None => buffer.fill(0),
        }
        Ok(buffer.len())
    }

    fn gap(&self, offset: u64) -> Option<u64> {
        let gap = self.head.len() as u64..self.tail_at();
        gap.contains(&offset).then_some(gap.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_long_the_beginning_and_the_end_are_kept() {
        let text: Vec<u8> = (0..100).collect();
        let kept = Piped::within(&mut text.as_slice(), 10, 20).expect("read");
        assert_eq!((kept.size(), kept.gap(9), kept.gap(10)), (100, None, Some(80)));
        assert_eq!((kept.gap(79), kept.gap(80)), (Some(80), None));
        let at = |offset: u64| {
            let mut buffer = [7; 4];
            let count = kept.read_at(offset, &mut buffer).expect("read");
            buffer[..count].to_vec()
        };
        assert_eq!((at(0), at(8)), (vec![0, 1, 2, 3], vec![8, 9]));
        assert_eq!((at(78), at(80)), (vec![0, 0], vec![80, 81, 82, 83]));
        assert_eq!((at(98), at(100), at(1000)), (vec![98, 99], vec![], vec![]));
        let short = Piped::within(&mut &text[..25], 10, 20).expect("read");
        assert_eq!((0..25).find_map(|at| short.gap(at)), None);
        assert_eq!(short.read_all(100).expect("read"), text[..25]);
    }
}
