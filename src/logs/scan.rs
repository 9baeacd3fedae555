//! The staged scan of one stream.
//!
//! Stage one looks for [stems](STEMS) over the raw bytes, at the speed of memory; stage two for the
//! whole literals, on the cleaned text of lines that hold a stem; structure (tracebacks, banners,
//! the tail) is put together around what was found. Memory is bounded whatever the stream: blocks
//! of 1 MiB, windows in lines that never end, a few hits per literal.
//!
//! It refuses to judge: a hit is a place, not a cause. And it never claims to have read what it
//! has not: a stream beyond the limit is read at both ends, and says so.

mod banner;
mod ending;
mod pass;
mod rank;
mod stems;
mod trace;
mod traceback;

use std::collections::BTreeMap;
use std::io;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use jiff::Timestamp;

pub use stems::{STEMS, stem_of};

use self::ending::Ending;
use self::pass::{Found, LONG, Pass};
use self::stems::Stems;
use self::traceback::MARKS;
use crate::host::Content;
use crate::model::Bytes;
use crate::text::{foreign, masked};

/// Bytes read at a time.
const BLOCK: usize = 1 << 20;
/// The most that is kept of a line's text.
const TEXT: usize = 4096;
/// How much of either end of a stream is looked at for rank labels.
const SAMPLE: u64 = 64 << 10;
/// Hits around which a banner is looked for.
const BANNERS: usize = 512;

/// A line of a log; of a line that redraws itself with carriage returns, one state of it; of a
/// line longer than 64 KiB, the part around the hit.
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
    /// The cleaned text without the rank prefix, cut at 4 KiB, with secrets masked.
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
    /// How many lines that are not blank follow until the end of the stream, capped at 1000; only
    /// the last 16 MiB of the stream are counted.
    pub lines_after: u32,
    /// How many of those hold no literal, are part of no block, no frame of a trace and no summary of
    /// a failure, and are not another rank's. Only the last 1000 lines are counted, and where the last
    /// line that holds a literal stands before them, those up to it as well: so two hits can be
    /// compared, however much follows both.
    pub other_lines_after: u32,
    /// Whether a frame of a trace follows at once; only known of the lines that are counted.
    pub traced: bool,
    /// What is written next, by the same rank as far as ranks are told: two lines at most, none a
    /// frame of its trace or the same again. Empty where the line is not among those counted.
    pub next: Vec<String>,
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
    /// Where it stands, and as it stands there.
    pub at: Line,
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
    /// Whether the interpreter said before that it ignores this exception, as it does with those
    /// raised while an object is destroyed or a line is logged.
    pub ignored: bool,
    /// How many lines that are not blank follow it until the end, capped at 1000.
    pub lines_after: u32,
    /// The line before it that is not blank, where it is among those counted.
    pub heading: Option<String>,
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
    /// The lines before and just after the last one that holds a literal, oldest first; empty where
    /// that is one of the last 1000 lines.
    pub last_told: Vec<Line>,
    /// Bytes of the stream.
    pub size: u64,
    /// Bytes read.
    pub scanned: u64,
    /// When the stream was last written.
    pub modified: Option<Timestamp>,
    /// Why the pass ended before the end of the stream, in words.
    pub stopped: Option<String>,
}

impl Scan {
    /// Every line that is kept, but those of the tail.
    fn lines_mut(&mut self) -> impl Iterator<Item = &mut Line> {
        let of_blocks = self.blocks.iter_mut().flat_map(|block| {
            let frames = block.frames.iter_mut().map(|frame| &mut frame.at);
            frames.chain(block.terminal.as_mut()).chain([&mut block.first])
        });
        self.hits.iter_mut().map(|hit| &mut hit.line).chain(of_blocks)
    }
}

/// How far a scan may go. Of a larger stream a quarter of this is read at the beginning, the rest
/// at the end; holes do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most this many bytes of one stream.
    pub bytes: u64,
}

/// How far a stream was read.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes read.
    scanned: u64,
    /// From here on nothing was left out.
    floor: u64,
    /// Whether something could not be had.
    gaps: bool,
}

/// What a pattern of the automaton is.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    /// A mark of a traceback.
    Mark(usize),
    /// A literal, by its index in the caller's list.
    Literal(usize),
    /// A message in another language, which a literal may be the English of.
    Foreign,
}

/// The automata for one set of literals.
#[derive(Debug)]
pub struct Scanner {
    stems: Stems,
    longest_stem: usize,
    /// `None` only if it could not be built, beyond two thousand million states.
    automaton: Option<AhoCorasick>,
    /// What each of its patterns is.
    index: Vec<Pattern>,
    literals: usize,
    block: usize,
}

impl Scanner {
    /// Builds the automata. Each literal is matched as bytes, case-sensitively, on cleaned text;
    /// an empty one never matches.
    pub fn new(literals: &[String]) -> Self {
        let marks = MARKS.iter().enumerate().map(|(index, mark)| (Pattern::Mark(index), *mark));
        let own = literals.iter().enumerate().filter(|(_, literal)| !literal.is_empty());
        let own = own.map(|(index, literal)| (Pattern::Literal(index), literal.as_str()));
        let foreign = foreign().map(|message| (Pattern::Foreign, message));
        let (index, patterns): (Vec<Pattern>, Vec<&str>) = marks.chain(own).chain(foreign).unzip();
        let longest = STEMS.iter().chain(&patterns).map(|stem| stem.len()).max();
        Self {
            stems: Stems::new(&patterns),
            longest_stem: longest.unwrap_or_default(),
            // Of the kinds the soonest built: it only sees lines that hold a stem.
            automaton: AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::NoncontiguousNFA))
                .prefilter(false)
                .build(&patterns)
                .ok(),
            index,
            literals: literals.len(),
            block: BLOCK,
        }
    }

    /// Passes once over a stream.
    pub fn scan(&self, content: &dyn Content, limits: Limits) -> Scan {
        let size = content.size();
        let labelled = [0, size.saturating_sub(SAMPLE)].into_iter().any(|from| {
            read(content, from, size.min(from + SAMPLE)).is_ok_and(|s| rank::is_labelled(&s))
        });
        let mut scan = Scan { size, modified: content.modified(), ..Scan::default() };
        let mut pass = Pass::new(self, labelled);
        let floor = self.read_through(content, limits, &mut pass, &mut scan);

        let newlines = pass.newlines();
        let Found { hits, told, tracebacks } = pass.finish();
        scan.hits = hits;
        let mut blocks: Vec<(Block, u64)> = Vec::new();
        let mut ids = BTreeMap::new();
        for closed in tracebacks.finish() {
            ids.insert(closed.id, blocks.len());
            blocks.push((closed.block, closed.end));
        }
        for (block, _) in &mut blocks {
            block.leads_to = block.leads_to.and_then(|id| ids.get(&id).copied());
        }
        for hit in &mut scan.hits {
            hit.block = hit.block.and_then(|id| ids.get(&id).copied());
        }
        add_banners(content, labelled, &mut scan.hits, &mut blocks);

        let ending = Ending::read(content, floor, size, newlines, labelled);
        let ending = ending.unwrap_or_else(|error| {
            scan.stopped.get_or_insert_with(|| format!("could not be read: {error}"));
            Ending::default()
        });
        let spans = blocks.iter().map(|(block, end)| (block.first.offset, *end));
        let spans: Vec<(u64, u64)> = spans.collect();
        let others = ending.others(&told, &spans);
        for hit in &mut scan.hits {
            hit.lines_after = ending.lines_after(hit.line.offset);
            hit.other_lines_after = others.after(&hit.line);
            hit.traced = ending.is_traced(hit.line.offset);
            hit.next = ending.next(&hit.line);
        }
        for (block, _) in &mut blocks {
            block.heading = ending.before(block.first.offset);
        }
        if let Some(&last) = told.last()
            && !ending.reaches(last)
        {
            // The same once more, as if the stream ended a little after it.
            let until = last + ending::lines_from(content, last).unwrap_or(0);
            let around = Ending::read(content, floor, until, None, labelled).unwrap_or_default();
            let others = around.others(&told, &spans);
            for hit in &mut scan.hits {
                hit.other_lines_after += others.after(&hit.line);
                hit.traced = around.is_traced(hit.line.offset);
                hit.next = around.next(&hit.line);
            }
            for (block, _) in &mut blocks {
                block.heading = around.before(block.first.offset);
            }
            scan.last_told = around.tail;
        }
        for (block, end) in &mut blocks {
            block.lines_after = ending.lines_after(*end);
        }
        scan.blocks = blocks.into_iter().map(|(block, _)| block).collect();
        scan.tail = ending.tail;
        for line in scan.lines_mut() {
            line.text = masked(&line.text);
        }
        scan
    }

    /// Feeds the stream to the pass as far as the limits let it; says from where on everything
    /// was read to the end.
    fn read_through(
        &self,
        content: &dyn Content,
        limits: Limits,
        pass: &mut Pass<'_>,
        scan: &mut Scan,
    ) -> u64 {
        let size = scan.size;
        let all = size <= limits.bytes;
        let head = if all { size } else { limits.bytes / 4 };
        let mut progress = Progress::default();
        let mut lacks = None;
        let mut result = self.part(content, 0, head, pass, &mut progress);
        if let Ok(reached) = result
            && reached < size
            && !all
        {
            let rest = limits.bytes - head;
            let from = reached.max(size.saturating_sub(rest));
            if from > reached {
                pass.jump();
                progress.floor = from;
                lacks = Some("the beginning and the end");
            }
            result = self.part(content, from, rest, pass, &mut progress);
        }
        if progress.gaps {
            lacks = lacks.or(Some("the rest is not in the recording"));
        }
        scan.scanned = progress.scanned;
        scan.stopped = lacks.map(|lacks| {
            format!("scanned {} of {}: {lacks}", Bytes(progress.scanned), Bytes(size))
        });
        match result {
            Ok(reached) if reached < size => {
                scan.stopped = Some(format!("became shorter while it was read, at byte {reached}"));
            }
            Err(error) => scan.stopped = Some(format!("could not be read on: {error}")),
            Ok(_) => {}
        }
        progress.floor
    }

    /// Feeds at most `budget` bytes of data from an offset on; says where it stopped.
    fn part(
        &self,
        content: &dyn Content,
        from: u64,
        mut budget: u64,
        pass: &mut Pass<'_>,
        progress: &mut Progress,
    ) -> io::Result<u64> {
        let size = content.size();
        // What the pass wants to see again is at most a unit and a window.
        let mut buffer = vec![0; self.block + 2 * LONG];
        let (mut filled, mut base, mut position) = (0, from, from);
        let mut failed = None;
        while position < size && budget > 0 {
            if let Some(end) = content.gap(position) {
                // Nothing is known of what is not there, least of all how many lines it has.
                pass.feed(&buffer[..filled], base, true);
                pass.jump();
                (filled, base, position) = (0, end, end);
                (progress.floor, progress.gaps) = (end, true);
                continue;
            }
            let data = content.next_data(position).unwrap_or(size).min(size);
            if data > position {
                // A hole ends what came before it.
                pass.feed(&buffer[..filled], base, true);
                (filled, base, position) = (0, data, data);
                continue;
            }
            let wanted = (self.block as u64).min(size - position).min(budget);
            let room = filled + usize::try_from(wanted).unwrap_or(self.block);
            match content.read_at(position, &mut buffer[filled..room]) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    position += count as u64;
                    budget -= count as u64;
                    progress.scanned += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            let done = pass.feed(&buffer[..filled], base, false);
            buffer.copy_within(done..filled, 0);
            filled -= done;
            base += done as u64;
        }
        pass.feed(&buffer[..filled], base, true);
        failed.map_or(Ok(position), Err)
    }
}

/// Finds the banners around hits and puts them where they belong among the blocks.
fn add_banners(
    content: &dyn Content,
    labelled: bool,
    hits: &mut [Hit],
    blocks: &mut Vec<(Block, u64)>,
) {
    let tracebacks = blocks.len();
    let mut around: Vec<(usize, usize)> = Vec::new();
    let loose = hits.iter().enumerate().filter(|(_, hit)| hit.block.is_none());
    for (index, hit) in loose.take(BANNERS) {
        let Some((block, end)) = banner::around(content, &hit.line, labelled) else { continue };
        let same = |(known, _): &(Block, u64)| known.first.offset == block.first.offset;
        let known = blocks[tracebacks..].iter().position(same).map(|at| tracebacks + at);
        around.push((index, known.unwrap_or(blocks.len())));
        if known.is_none() {
            blocks.push((block, end));
        }
    }
    for (index, block) in around {
        hits[index].block = Some(block);
    }

    // In the order of the stream; what pointed at a block follows it.
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&index| (blocks[index].0.first.offset, index));
    let mut place = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    blocks.sort_by_key(|(block, _)| block.first.offset);
    for (block, _) in blocks {
        block.leads_to = block.leads_to.map(|index| place[index]);
    }
    for hit in hits {
        hit.block = hit.block.map(|index| place[index]);
    }
}

/// At most 4 KiB of a text, around a position. Secrets are masked first: half of one would not be
/// known for what it is.
fn cut(text: &str, at: usize) -> String {
    if text.len() <= TEXT {
        return text.to_owned();
    }
    let text = masked(text);
    let latest = text.len() - TEXT;
    let mut start = at.saturating_sub(TEXT / 4).min(latest);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mut end = (start + TEXT).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[start..end].to_owned()
}

/// The bytes between two offsets; fewer where the stream ends before.
fn read(content: &dyn Content, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match content.read_at(from + filled as u64, &mut bytes[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
