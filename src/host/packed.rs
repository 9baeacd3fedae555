//! Logs packed by gzip, read as the text they hold.
//!
//! Knows one thing about a file: whether it begins as gzip does (RFC 1952), whatever its name. The
//! text is unpacked once to learn how much there is; what is short stays in memory, of what is
//! long only the end, and the rest is unpacked again in passing when it is read. So memory is
//! bounded whatever a file claims to hold, and nothing is written anywhere.
//!
//! A file that breaks off or is damaged gives what stands before, and says so. What other programs
//! packed is known for that and not read: who unpacks it is told.

use std::io::{self, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;

use super::Content;

/// The end of the text, kept in memory: readers look there more than once.
const TAIL: usize = 16 << 20;
/// What was unpacked last, kept so that a reader can step back a little.
const WINDOW: usize = 1 << 20;
/// Unpacked at a time.
const CHUNK: usize = 256 << 10;

/// The text of a packed file.
pub struct Unpacked {
    packed: Arc<dyn Content>,
    /// Bytes of text that can be had.
    size: u64,
    tail: Vec<u8>,
    window: Mutex<Window>,
    /// Why there is not more of it.
    trouble: Option<String>,
}

/// Whether a file is packed by gzip.
pub fn is_packed(content: &dyn Content) -> bool {
    let mut head = [0; 3];
    // The two bytes of gzip, and the only method there is.
    matches!(content.read_at(0, &mut head), Ok(3)) && head == [0x1f, 0x8b, 8]
}

/// Why a file is no text and not to be read as one, in words that follow its name: it is packed by a
/// program other than gzip, as its first bytes tell (the formats' own), or is called like a packed one
/// and begins like nothing.
pub fn no_text(path: &str, content: &dyn Content) -> Option<String> {
    const PACKERS: [(&str, &[u8]); 4] = [
        ("xz", b"\xfd7zXZ\0"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("bzip2", b"BZh"),
        ("lz4", b"\x04\x22\x4d\x18"),
    ];
    let mut head = [0; HEAD];
    let count = content.read_at(0, &mut head).ok()?;
    let head = &head[..count];
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\x0c\r\x1b".contains(byte);
    if head.iter().all(is_text) {
        return None;
    }
    if let Some((packer, _)) = PACKERS.iter().find(|(_, magic)| head.starts_with(magic)) {
        return Some(format!(
            "is packed by {packer}: unpack it ({packer} -dc) and name the text with --log"
        ));
    }
    let called = path.rsplit('.').next().unwrap_or_default();
    let suffixes = [("gz", "gzip"), ("xz", "xz"), ("zst", "zstd"), ("bz2", "bzip2")];
    let (_, packer) = suffixes.iter().find(|(suffix, _)| *suffix == called)?;
    (!is_packed(content))
        .then(|| format!("is damaged: it does not begin as {packer} does, name a text with --log"))
}

/// So much of a file's beginning tells what it is.
pub(super) const HEAD: usize = 64;

/// Packs a text; one that is not whole without the end, so that it still breaks off.
pub(super) fn pack(text: &[u8], whole: bool) -> io::Result<Vec<u8>> {
    /// The checksum and the length.
    const END: usize = 8;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text)?;
    let mut packed = encoder.finish()?;
    if !whole {
        packed.truncate(packed.len().saturating_sub(END));
    }
    Ok(packed)
}

impl Unpacked {
    /// The same with no more than so many bytes of the end in memory; what stands before is unpacked
    /// again where it is asked for.
    #[must_use]
    pub fn shrunk_to(mut self, bytes: usize) -> Self {
        self.tail.drain(..self.tail.len().saturating_sub(bytes));
        self.tail.shrink_to_fit();
        *self.window.get_mut().unwrap_or_else(PoisonError::into_inner) = Window::new(&self.packed);
        self
    }

    /// Unpacks a file to learn how much text it holds, at most `limit` bytes of it.
    pub fn new(packed: Box<dyn Content>, limit: u64) -> Self {
        let packed: Arc<dyn Content> = packed.into();
        let mut decoder = decoder(&packed);
        let (mut size, mut trouble) = (0_u64, None);
        let mut tail = Vec::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            let room = usize::try_from(limit - size).unwrap_or(CHUNK).min(CHUNK);
            match decoder.read(&mut chunk[..room]) {
                Ok(0) if room == 0 => {
                    if !matches!(decoder.read(&mut [0]), Ok(0)) {
                        trouble = Some(format!("holds more text than the {limit} bytes unpacked"));
                    }
                    break;
                }
                Ok(0) => break,
                Ok(count) => {
                    size += count as u64;
                    if tail.len() + count > 2 * TAIL {
                        tail.drain(..tail.len() - TAIL);
                    }
                    tail.extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    trouble = Some(match error.kind() {
                        io::ErrorKind::UnexpectedEof => "breaks off: it is not complete".to_owned(),
                        _ => format!("is damaged ({error})"),
                    });
                    break;
                }
            }
        }
        if size > TAIL as u64 {
            tail.drain(..tail.len() - TAIL);
        }
        tail.shrink_to_fit();
        let window = Mutex::new(Window::new(&packed));
        Self { packed, size, tail, window, trouble }
    }

    /// Why there is not more text, in words that follow the file's name.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

impl Content for Unpacked {
    fn size(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> Option<Timestamp> {
        self.packed.modified()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let kept_from = self.size - self.tail.len() as u64;
        if let Some(into) = offset.checked_sub(kept_from) {
            let rest = usize::try_from(into).ok().and_then(|into| self.tail.get(into..));
            buffer[..length].copy_from_slice(&rest.unwrap_or_default()[..length]);
            return Ok(length);
        }
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if offset < window.start {
            *window = Window::new(&self.packed);
        }
        window.read_at(offset, &mut buffer[..length])
    }
}

type Decoder = MultiGzDecoder<BufReader<Tape>>;

/// Where unpacking is, and what it gave last.
struct Window {
    decoder: Decoder,
    /// The offset of the first byte that is kept.
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn new(packed: &Arc<dyn Content>) -> Self {
        Self { decoder: decoder(packed), start: 0, bytes: Vec::new() }
    }

    /// Reads at an offset that is not before the window.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start + self.bytes.len() as u64 <= offset {
            if self.bytes.len() >= 2 * WINDOW {
                let done = self.bytes.len() - WINDOW;
                self.bytes.drain(..done);
                self.start += done as u64;
            }
            let filled = self.bytes.len();
            self.bytes.resize(filled + CHUNK, 0);
            let read = self.decoder.read(&mut self.bytes[filled..]);
            self.bytes.truncate(filled + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Ok(0);
            }
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(from..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn decoder(packed: &Arc<dyn Content>) -> Decoder {
    // A rotated log may be several packed files one after the other, which is one packed file.
    MultiGzDecoder::new(BufReader::with_capacity(
        64 << 10,
        Tape { content: Arc::clone(packed), position: 0 },
    ))
}

/// A file read from its beginning on.
struct Tape {
    content: Arc<dyn Content>,
    position: u64,
}

impl Read for Tape {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read_at(self.position, buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        pack(text, true).expect("a vector takes everything")
    }

    fn unpacked(bytes: Vec<u8>, limit: u64) -> (Vec<u8>, Option<String>) {
        let text = Unpacked::new(Box::new(bytes), limit);
        (text.read_all(u64::MAX).expect("read"), text.trouble.clone())
    }

    /// `printf 'hello\n' | gzip -n` of gzip 1.12.
    const HELLO: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 2, 0, 0x20, 0x30,
        0x3a, 0x36, 6, 0, 0, 0,
    ];

    #[test]
    fn the_text_of_gzip_is_read_and_that_of_two_in_a_row() {
        assert!(is_packed(&HELLO.to_vec()));
        assert!(!is_packed(&b"\x1f\x8b".to_vec()) && !is_packed(&b"hello".to_vec()));
        assert_eq!(unpacked(HELLO.to_vec(), 100), (b"hello\n".to_vec(), None));
        assert_eq!(unpacked([HELLO, HELLO].concat(), 100).0, b"hello\nhello\n");
    }

    #[test]
    fn what_stands_before_the_damage_is_read() {
        let text: Vec<u8> =
            (0..9000_u32).flat_map(|n| format!("step {n}\n").into_bytes()).collect();
        let whole = packed(&text);
        let (cut, trouble) = unpacked(whole[..whole.len() / 2].to_vec(), u64::MAX);
        assert!(cut.len() > text.len() / 4 && text.starts_with(&cut), "{}", cut.len());
        assert_eq!(trouble.as_deref(), Some("breaks off: it is not complete"));
        let (empty, trouble) = unpacked([HELLO, b"rubbish after it"].concat(), 100);
        assert_eq!(empty, b"hello\n");
        assert!(trouble.is_some_and(|said| said.starts_with("is damaged (")));
    }

    #[test]
    fn a_text_that_was_not_whole_is_not_made_whole() {
        let (text, trouble) = unpacked(pack(b"half", false).expect("packed"), 100);
        assert_eq!(text, b"half");
        assert_eq!(trouble.as_deref(), Some("breaks off: it is not complete"));
    }

    #[test]
    fn a_bomb_is_unpacked_only_as_far_as_the_limit() {
        let bomb = packed(&vec![b'a'; 4 << 20]);
        assert!(bomb.len() < 40 << 10);
        let (text, trouble) = unpacked(bomb, 100_000);
        assert_eq!(text.len(), 100_000);
        assert_eq!(trouble.as_deref(), Some("holds more text than the 100000 bytes unpacked"));
        assert_eq!(unpacked(HELLO.to_vec(), 6).1, None);
    }

    #[test]
    fn a_long_text_is_read_anywhere_and_only_its_end_is_kept() {
        let line = |number: u64| format!("line {number:09}\n");
        let lines: u64 = 3 << 20;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for number in 0..lines {
            encoder.write_all(line(number).as_bytes()).expect("packed");
        }
        let text = Unpacked::new(Box::new(encoder.finish().expect("packed")), u64::MAX);
        assert_eq!((text.size(), text.tail.len()), (lines * 15, TAIL));
        // Forward, back a little, back to the beginning, the end.
        for number in [7, 2_000_000, 1_999_000, 0, lines - 1, 100_000] {
            let mut found = [0; 15];
            assert_eq!(text.read_at(number * 15, &mut found).expect("read"), 15);
            assert_eq!(String::from_utf8_lossy(&found), line(number));
        }
        let window = text.window.lock().expect("whole");
        assert!(window.bytes.capacity() <= 4 * WINDOW);
    }

    /// The first bytes are those of xz 5.4, zstd 1.5 and bzip2 1.0 for `hello`.
    #[test]
    fn what_others_packed_and_what_is_only_called_packed_is_no_text() {
        let told = |name: &str, bytes: &[u8]| no_text(name, &bytes.to_vec());
        for (packer, bytes) in [
            ("xz", &b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46"[..]),
            ("zstd", b"\x28\xb5\x2f\xfd\x04\x58\x31\0\0hello\n"),
            ("bzip2", b"BZh91AY&SY\xc1\xc0\x80\xe2\0\0"),
        ] {
            let said = told("job.out", bytes).expect("told");
            assert!(said.starts_with(&format!("is packed by {packer}: ")), "{said}");
        }
        assert_eq!(told("job.out.gz", HELLO), None);
        for broken in [&HELLO[..2], b"\0\0\0\0", b"\x1f\x8b\x07"] {
            assert!(
                told("job.out.gz", broken).is_some_and(|said| said.starts_with("is damaged: "))
            );
        }
        // An empty file, a text by that name, and one that speaks of packing.
        assert_eq!(told("job.out.gz", b""), None);
        assert_eq!(told("job.out.gz", "Grüße\n".as_bytes()), None);
        assert_eq!(told("job.out", b"BZh is what bzip2 begins with\n"), None);
    }

    proptest! {
        /// Any bytes, also such as begin like gzip, are read within the limit.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..40_usize) {
            let (text, _) = unpacked(bytes.clone(), 1000);
            prop_assert!(text.len() <= 1000);
            let whole = packed(&bytes);
            let broken = [&whole[..cut.min(whole.len())], &bytes].concat();
            prop_assert!(unpacked(broken, 1000).0.len() <= 1000);
        }
    }
}
