//! Steps through bytes that are bounded, so that no input is slow.

use std::ops::Range;

/// The longest piece that is looked at before it is known for a secret.
pub(super) const LONGEST: usize = 4096;

pub(super) fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn dashed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

pub(super) fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The bytes of a kind from a position on; at most [`LONGEST`].
pub(super) fn run(bytes: &[u8], from: usize, kind: impl Fn(u8) -> bool) -> Range<usize> {
    let from = from.min(bytes.len());
    let length = bytes[from..].iter().take(LONGEST).take_while(|&&byte| kind(byte)).count();
    // Never half a character.
    let rest = bytes[from + length..].iter().take_while(|&&byte| byte & 0xc0 == 0x80);
    from..from + length + if length == LONGEST { rest.take(3).count() } else { 0 }
}

/// As [`run`], to the end of it: for what is known to be a secret, and so is stepped over once.
pub(super) fn whole_run(bytes: &[u8], from: usize, kind: impl Fn(u8) -> bool) -> Range<usize> {
    let length = bytes[from..].iter().take_while(|&&byte| kind(byte)).count();
    from..from + length
}

/// The bytes of a kind right before a position, at most so many.
pub(super) fn run_before(
    bytes: &[u8],
    to: usize,
    most: usize,
    kind: impl Fn(u8) -> bool,
) -> Range<usize> {
    let length = bytes[..to].iter().rev().take(most).take_while(|&&byte| kind(byte)).count();
    to - length..to
}

/// The first position from `from` on whose byte is none of `bytes_to_skip`.
pub(super) fn skip(bytes: &[u8], from: usize, bytes_to_skip: &[u8]) -> usize {
    run(bytes, from, |byte| bytes_to_skip.contains(&byte)).end
}

/// The word that ends right before a position and blanks.
pub(super) fn word_before(bytes: &[u8], to: usize) -> Range<usize> {
    let blanks = run_before(bytes, to, 64, |byte| byte.is_ascii_whitespace());
    if blanks.is_empty() {
        return to..to;
    }
    run_before(bytes, blanks.start, 256, |byte| byte > b' ')
}
