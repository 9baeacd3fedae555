//! Bytes that are held once, whoever needs a part of them.
//!
//! What is read of a file in one go is often many answers: each is a part of it, not a copy.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// A part of bytes that live as long as any of their parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Piece {
    whole: Arc<Vec<u8>>,
    part: Range<usize>,
}

impl Piece {
    /// A part; nothing where the bytes do not reach so far.
    pub(super) fn of(whole: &Arc<Vec<u8>>, part: Range<usize>) -> Self {
        Self { whole: Arc::clone(whole), part }
    }
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Self {
        let part = 0..bytes.len();
        Self { whole: Arc::new(bytes), part }
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.whole.get(self.part.clone()).unwrap_or_default()
    }
}
