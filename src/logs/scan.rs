//! The staged scan of one stream.

use jiff::Timestamp;

use crate::host::Content;

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1; `None` where the scan did not start at the top.
    pub number: Option<u64>,
    /// The byte at which it begins.
    pub offset: u64,
    /// Its bytes in the file, without the line end.
    pub length: u64,
    /// The rank that wrote it, where a prefix such as `3: ` or `[rank3]:` says so.
    pub rank: Option<u64>,
    /// The cleaned text without the rank prefix, cut at 4 KiB.
    pub text: String,
}

/// A line that holds a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The index of the literal in the list the scanner was made from.
    pub literal: usize,
    /// The line.
    pub line: Line,
    /// The block the line is part of, as an index into [`Scan::blocks`].
    pub block: Option<usize>,
    /// How many lines that are not blank follow until the end of the stream, capped at 1000.
    pub lines_after: u32,
}

/// What kind of structure a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A Python traceback, from `Traceback (most recent call last)` to its exception.
    PythonTraceback,
    /// A banner between rules of `---`, `***` or `===`, as MPI and applications print.
    Banner,
}

/// A frame of a traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The source file.
    pub file: String,
    /// The line in it.
    pub line: u64,
    /// The function.
    pub function: String,
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// The first line.
    pub first: Line,
    /// The line that concludes it: the terminal exception of a traceback.
    pub terminal: Option<Line>,
    /// The frames of a traceback, outermost first.
    pub frames: Vec<Frame>,
    /// Whether another traceback says that this one was handled or led to it ("During handling
    /// of the above exception", "direct cause"): the index of the block that follows it.
    pub leads_to: Option<usize>,
    /// How many lines that are not blank follow it until the end, capped at 1000.
    pub lines_after: u32,
}

/// What one pass over a stream found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scan {
    /// Hits in the order of the file; per literal the first and last few.
    pub hits: Vec<Hit>,
    /// Blocks in the order of the file; the first and last few.
    pub blocks: Vec<Block>,
    /// The last lines that are not blank, oldest first.
    pub tail: Vec<Line>,
    /// Bytes of the stream.
    pub size: u64,
    /// Bytes read.
    pub scanned: u64,
    /// When the stream was last written.
    pub modified: Option<Timestamp>,
    /// Why the pass ended before the end of the stream, in words.
    pub stopped: Option<String>,
}

/// How far a scan may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most this many bytes of one stream.
    pub bytes: u64,
}

/// The automata for one set of literals.
#[derive(Debug)]
pub struct Scanner {}

impl Scanner {
    /// Builds the automata. Each literal is matched as bytes, case-sensitively, on cleaned text.
    pub fn new(_literals: &[String]) -> Self {
        Self {}
    }

    /// Passes once over a stream.
    pub fn scan(&self, _content: &dyn Content, _limits: Limits) -> Scan {
        Scan::default()
    }
}
