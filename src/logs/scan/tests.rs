use proptest::prelude::*;

use super::*;
use crate::text::clean_line;

/// A stream in memory, with holes where asked.
struct Stream {
    bytes: Vec<u8>,
    /// From here to there nothing was ever written.
    hole: Option<(u64, u64)>,
    gap: Option<(u64, u64)>,
}

impl Stream {
    fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), hole: None, gap: None }
    }
}

impl Content for Stream {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn modified(&self) -> Option<Timestamp> {
        None
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let gap = self.gap.and_then(|(from, _)| from.checked_sub(offset)).filter(|left| *left > 0);
        let left = gap.map_or(usize::MAX, |left| usize::try_from(left).unwrap());
        let count = rest.len().min(buffer.len()).min(left);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> Option<u64> {
        let next = match self.hole {
            Some((from, to)) if (from..to).contains(&offset) => to,
            _ => offset,
        };
        (next < self.size()).then_some(next)
    }

    fn gap(&self, offset: u64) -> Option<u64> {
        self.gap.filter(|(from, to)| (*from..*to).contains(&offset)).map(|(_, to)| to)
    }
}

#[test]
fn over_a_gap_no_line_is_counted_and_nothing_is_joined() {
    // Bytes 19 to 28 are not there; what reads there instead is zeros.
    let bytes = b"one\ntwo: bad\nthree:\0\0\0\0\0\0\0\0\0\0bad\nfive: bad\nsix\n".to_vec();
    let stream = Stream { gap: Some((19, 29)), ..Stream::new(bytes) };
    let scan = scanner(&["bad"]).scan(&stream, ALL);
    let hits: Vec<(Option<u64>, &str)> =
        scan.hits.iter().map(|hit| (hit.line.number, hit.line.text.as_str())).collect();
    assert_eq!(hits, [(Some(2), "two: bad"), (None, "five: bad")]);
    assert_eq!(tail(&scan), ["bad", "five: bad", "six"]);
    assert!(scan.tail.iter().all(|line| line.number.is_none()));
    assert_eq!((scan.size, scan.scanned), (47, 37));
    assert_eq!(
        scan.stopped.as_deref(),
        Some("scanned 37B of 47B: the rest is not in the recording")
    );

    let none = Stream { gap: Some((0, 47)), ..stream };
    let scan = scanner(&["bad"]).scan(&none, ALL);
    assert!(scan.hits.is_empty() && scan.tail.is_empty() && scan.stopped.is_some());
}

const ALL: Limits = Limits { bytes: u64::MAX };

fn scanner(literals: &[&str]) -> Scanner {
    Scanner::new(&literals.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
}

fn scan(literals: &[&str], bytes: impl Into<Vec<u8>>) -> Scan {
    scanner(literals).scan(&Stream::new(bytes), ALL)
}

fn tail(scan: &Scan) -> Vec<&str> {
    scan.tail.iter().map(|line| line.text.as_str()).collect()
}

fn terminal(block: &Block) -> &str {
    block.terminal.as_ref().map_or("", |line| line.text.as_str())
}

#[test]
fn a_hit_says_where_it_stands() {
    let log = "start\nstep 1\nRuntimeError: CUDA out of memory\n\nbye\n";
    let scan = scan(&["CUDA out of memory", "memory"], log);
    let [first, second] = &scan.hits[..] else { panic!("{:?}", scan.hits) };
    assert_eq!((first.literal, second.literal), (0, 1));
    assert_eq!(first.line.number, Some(3));
    assert_eq!((first.line.offset, first.line.length), (13, 32));
    assert_eq!(first.line.text, "RuntimeError: CUDA out of memory");
    assert_eq!(first.lines_after, 1);
    assert_eq!((scan.size, scan.scanned, scan.stopped.as_deref()), (51, 51, None));
    assert_eq!(tail(&scan), ["start", "step 1", "RuntimeError: CUDA out of memory", "bye"]);
    assert_eq!(scan.tail[3].number, Some(5));
}

/// What a failing Slurm 22.05 step really left behind.
#[test]
fn the_log_of_a_step_killed_for_memory() {
    let log =
        b"srun: error: c03: task 0: Out Of Memory\nslurmstepd-c03: error: Detected 1 oom-kill \
        event(s) in StepId=68.0. Some of your processes may have been killed by the cgroup \
        out-of-memory handler.\n";
    let scan = scan(&["oom-kill event", "Out Of Memory"], &log[..]);
    let lines: Vec<_> = scan.hits.iter().map(|hit| (hit.literal, hit.line.number)).collect();
    assert_eq!(lines, [(1, Some(1)), (0, Some(2))]);
    assert_eq!(scan.hits[0].lines_after, 1);
}

#[test]
fn empty_and_binary_streams_are_no_trouble() {
    let empty = scan(&["error"], "");
    assert_eq!(empty, Scan { size: 0, ..Scan::default() });
    let binary: Vec<u8> = (0..100_000_u32).flat_map(|i| (i * 7919).to_be_bytes()).collect();
    scan(&["error"], binary);
    assert!(scan(&[], "error\n").hits.is_empty());
    assert!(scan(&[""], "error\n").hits.is_empty());
}

#[test]
fn colours_line_ends_and_nuls_do_not_hide_a_message() {
    let log = b"\x1b[31mERROR\x1b[0m: no such\r\n\0\0\0Killed\0\n\xff\xfe Killed \xe2\n";
    let scan = scan(&["ERROR: no such", "Killed"], &log[..]);
    let texts: Vec<_> = scan.hits.iter().map(|hit| hit.line.text.as_str()).collect();
    assert_eq!(texts, ["ERROR: no such", "Killed", "\u{fffd}\u{fffd} Killed \u{fffd}"]);
    assert_eq!(tail(&scan)[0], "ERROR: no such");
}

#[test]
fn a_message_between_two_states_of_a_progress_bar_is_found() {
    let log = "\r 1%\rCUDA error: x\r 99%\rdone\nnext\n";
    let scan = scan(&["CUDA error"], log);
    assert_eq!(scan.hits[0].line.text, "CUDA error: x");
    assert_eq!((scan.hits[0].line.number, scan.hits[0].line.offset), (Some(1), 5));
    assert_eq!(tail(&scan), ["done", "next"]);
}

#[test]
fn of_many_hits_the_first_and_the_last_are_kept() {
    let log = (1..=100).map(|n| format!("error {n}")).collect::<Vec<_>>().join("\n");
    let scan = scan(&["error"], log);
    let numbers: Vec<u64> = scan.hits.iter().filter_map(|hit| hit.line.number).collect();
    assert_eq!(numbers, (1..=8).chain(93..=100).collect::<Vec<_>>());
    assert_eq!(scan.hits[0].lines_after, 99);
    assert_eq!(scan.tail.len(), 40);
}

#[test]
fn lines_after_are_capped_and_blank_ones_do_not_count() {
    let mut log = "error one\n".to_owned();
    log.push_str(&"step\n  \n\n".repeat(5000));
    log.push_str("error two\n\n \nend");
    let scan = scan(&["error"], log);
    assert_eq!(scan.hits.iter().map(|hit| hit.lines_after).collect::<Vec<_>>(), [1000, 1]);
    assert_eq!(scan.tail.last().map(|line| line.number), Some(Some(15_005)));
}

#[test]
fn a_line_that_never_ends_is_searched_in_windows() {
    let mut log = b"first\n".to_vec();
    log.extend(std::iter::repeat_n(b'x', 3 << 20));
    log.extend_from_slice(b" CUDA out of memory ");
    log.extend(std::iter::repeat_n(b'y', 3 << 20));
    log.extend_from_slice(b"\nKilled\n");
    let stream = Stream::new(log);
    let scan = scanner(&["CUDA out of memory", "Killed"]).scan(&stream, ALL);
    let [memory, killed] = &scan.hits[..] else { panic!("{:?}", scan.hits.len()) };
    assert_eq!((memory.line.number, killed.line.number), (Some(2), Some(3)));
    assert!(memory.line.text.contains("CUDA out of memory") && memory.line.text.len() <= TEXT);
    let again = read(&stream, memory.line.offset, memory.line.offset + memory.line.length);
    assert!(clean_line(&again.unwrap()).contains("CUDA out of memory"));
    assert_eq!(memory.lines_after, 1);
}

#[test]
fn a_stream_beyond_the_limit_is_read_at_both_ends_and_says_so() {
    let mut log = "error at the start\n".to_owned();
    log.push_str(&"a line of the middle, nothing to see\n".repeat(1000));
    log.push_str("error in the middle\n");
    log.push_str(&"a line of the middle, nothing to see\n".repeat(1000));
    log.push_str("error at the end\n");
    let scan = scanner(&["error"]).scan(&Stream::new(log), Limits { bytes: 4096 });
    let found: Vec<_> = scan.hits.iter().map(|hit| (&*hit.line.text, hit.line.number)).collect();
    assert_eq!(found, [("error at the start", Some(1)), ("error at the end", None)]);
    assert_eq!(scan.scanned, 4096);
    let stopped = scan.stopped.expect("a reason");
    assert!(stopped.starts_with("scanned 4K of 72.3K"), "{stopped}");
    assert_eq!(scan.tail.len(), 40);
}

#[test]
fn holes_are_passed_over() {
    let mut log = b"error one\n".to_vec();
    log.resize(16 << 20, 0);
    log.extend_from_slice(b"\nerror two\n");
    let stream = Stream { hole: Some((10, 16 << 20)), ..Stream::new(log) };
    // The limit counts what is read, one block and what follows the hole.
    let scan = scanner(&["error"]).scan(&stream, Limits { bytes: 8 << 20 });
    let numbers: Vec<_> = scan.hits.iter().map(|hit| hit.line.number).collect();
    assert_eq!(numbers, [Some(1), Some(3)]);
    assert_eq!((scan.scanned, scan.stopped), ((1 << 20) + 11, None));
}

/// The next three logs were written by jobs of a real Slurm 22.05.
#[test]
fn the_log_of_a_host_that_is_not_found() {
    let log = &include_bytes!("../../../fixtures/logs/unresolved-host.out")[..];
    let scan = scan(&["Name or service not known"], log);
    let found: Vec<_> = scan.blocks.iter().map(|b| (terminal(b), b.leads_to)).collect();
    assert_eq!(
        found,
        [
            ("socket.gaierror: [Errno -2] Name or service not known", Some(1)),
            ("urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", None)
        ]
    );
    let frame = scan.blocks[0].frames.last().map(|frame| (frame.line, frame.function.as_str()));
    assert_eq!(frame, Some((962, "getaddrinfo")));
    assert_eq!(scan.hits.iter().map(|hit| hit.block).collect::<Vec<_>>(), [Some(0), Some(1)]);
}

#[test]
fn the_log_of_srun_with_labels() {
    let scan = scan(&[], &include_bytes!("../../../fixtures/logs/labelled-ranks.out")[..]);
    let ranks: Vec<_> = scan.tail.iter().filter_map(|line| line.rank).collect();
    assert_eq!(ranks, [2, 3, 0, 1, 4, 5]);
    assert_eq!(scan.tail[4].text, "c04 4");
}

#[test]
fn the_log_of_a_progress_bar() {
    let scan = scan(&[], &include_bytes!("../../../fixtures/logs/progress-bar.out")[..]);
    assert_eq!(tail(&scan), ["progress 300%", "\u{fffd}\u{fffd} binary  bytes"]);
}

#[test]
fn a_traceback_is_a_block_with_frames_and_an_exception() {
    let log = "go\nTraceback (most recent call last):\n  File \"/a/train.py\", line 3, in main\n    \
        run()\n    ^^^^^\n  File \"/a/json.py\", line 30, in load\n    raise E\n\
        json.decoder.JSONDecodeError: Expecting value: line 1\nsrun: error: x\n";
    let scan = scan(&["JSONDecodeError", "srun: error"], log);
    let [block] = &scan.blocks[..] else { panic!("{:?}", scan.blocks) };
    assert_eq!(terminal(block), "json.decoder.JSONDecodeError: Expecting value: line 1");
    assert_eq!(block.terminal.as_ref().and_then(|line| line.number), Some(8));
    let frames: Vec<_> = block.frames.iter().map(|f| (&*f.file, f.line, &*f.function)).collect();
    assert_eq!(frames, [("/a/train.py", 3, "main"), ("/a/json.py", 30, "load")]);
    assert_eq!((block.first.number, block.lines_after), (Some(2), 1));
    assert_eq!(scan.hits.iter().map(|hit| hit.block).collect::<Vec<_>>(), [Some(0), None]);
}

#[test]
fn a_traceback_behind_a_progress_bar_or_indented_is_read_too() {
    let log = "\r 50%|#####     | 5/10Traceback (most recent call last):\n  File \"a.py\", line 1, \
        in <module>\nKeyError: 'x'\n    Traceback (most recent call last):\n      File \"b.py\", \
        line 2, in f\n    ValueError: y\n";
    let found: Vec<_> = scan(&[], log).blocks.iter().map(|b| terminal(b).to_owned()).collect();
    assert_eq!(found, ["KeyError: 'x'", "ValueError: y"]);
}

#[test]
fn interleaved_ranks_are_told_apart() {
    let log = "\
[rank0]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank0]:   File \"t.py\", line 1, in a
[rank1]:   File \"t.py\", line 2, in b
[rank1]: RuntimeError: one
some other output
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried
";
    let scan = scan(&["CUDA out of memory"], log);
    let found: Vec<_> = scan.blocks.iter().map(|b| (b.first.rank, terminal(b))).collect();
    assert_eq!(
        found,
        [
            (Some(0), "torch.OutOfMemoryError: CUDA out of memory. Tried"),
            (Some(1), "RuntimeError: one")
        ]
    );
    assert_eq!((scan.hits[0].line.rank, scan.hits[0].block), (Some(0), Some(0)));
}

#[test]
fn labels_of_srun_are_ranks() {
    let log = "0: loading\n1: loading\n1: Traceback (most recent call last):\n0: step 1\n\
        1:   File \"t.py\", line 1, in a\n0: step 2\n1: ValueError: bad\n0: step 3\n";
    let scan = scan(&[], log);
    assert_eq!(scan.blocks[0].first.rank, Some(1));
    assert_eq!(terminal(&scan.blocks[0]), "ValueError: bad");
    assert_eq!((scan.tail[7].rank, scan.tail[7].text.as_str()), (Some(0), "step 3"));
}

#[test]
fn chained_exceptions_lead_to_each_other() {
    let log = "\
Traceback (most recent call last):
  File \"a.py\", line 1, in a
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"a.py\", line 3, in a
OSError: disk

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File \"a.py\", line 5, in a
RuntimeError: gave up
Traceback (most recent call last):
  File \"b.py\", line 5, in a
TypeError: unrelated
";
    let links: Vec<_> = scan(&[], log).blocks.iter().map(|block| block.leads_to).collect();
    assert_eq!(links, [Some(1), Some(2), None, None]);
}

#[test]
fn syntax_errors_and_exception_groups_keep_what_can_be_read() {
    let log = "\
Traceback (most recent call last):
  File \"<string>\", line 1, in <module>
  File \"/a/m.py\", line 7
    def f(
         ^
SyntaxError: '(' was never closed
  + Exception Group Traceback (most recent call last):
  |   File \"g.py\", line 2, in <module>
  |     raise ExceptionGroup(\"many\", [])
  | ExceptionGroup: many (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File \"g.py\", line 9, in f
    | ValueError: inner
    +------------------------------------
";
    let scan = scan(&[], log);
    let found: Vec<_> = scan.blocks.iter().map(|b| (terminal(b), b.frames.len())).collect();
    assert_eq!(
        found,
        [
            ("SyntaxError: '(' was never closed", 2),
            ("ExceptionGroup: many (1 sub-exception)", 1),
            ("ValueError: inner", 1)
        ]
    );
}

#[test]
fn a_traceback_that_breaks_off_has_no_exception_and_a_mention_is_none() {
    let log = "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\n";
    let cut_off = scan(&[], log);
    assert_eq!((cut_off.blocks.len(), &cut_off.blocks[0].terminal), (1, &None));
    let mention = "the words Traceback (most recent call last) in a manual\n".to_owned();
    assert!(scan(&[], mention + &"text\n".repeat(100)).blocks.is_empty());
    let endless = log.to_owned() + &"  File \"a.py\", line 2, in deep\n    deep()\n".repeat(3000);
    let endless = scan(&[], endless + "RecursionError: maximum recursion depth exceeded\n");
    assert_eq!(endless.blocks[0].frames.len(), 64);
    assert_eq!(endless.blocks[0].frames[0].function, "a");
}

#[test]
fn only_the_first_and_last_tracebacks_are_kept_and_nothing_points_astray() {
    let one = "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\nValueError: x\n";
    let scan = scan(&["ValueError"], one.repeat(200));
    assert_eq!(scan.blocks.len(), 64);
    assert_eq!(scan.blocks[63].terminal.as_ref().and_then(|line| line.number), Some(600));
    for hit in &scan.hits {
        let block = &scan.blocks[hit.block.expect("a kept block")];
        assert_eq!(block.terminal.as_ref().map(|line| line.offset), Some(hit.line.offset));
    }
}

#[test]
fn a_banner_around_a_hit_is_a_block() {
    let rule = "-".repeat(74);
    let log = format!(
        "start\n{rule}\nThere are not enough slots available in the system to satisfy the 2\n\
         slots that were requested:\n{rule}\nafter\n{}\nlone error\n",
        "=".repeat(40)
    );
    let scan = scan(&["not enough slots", "lone error", "requested"], log);
    let [block] = &scan.blocks[..] else { panic!("{:?}", scan.blocks) };
    assert_eq!((block.kind, block.first.number), (BlockKind::Banner, Some(2)));
    assert_eq!((block.first.offset, block.first.length, block.lines_after), (6, 74, 3));
    let of_hits: Vec<_> = scan.hits.iter().map(|hit| (hit.literal, hit.block)).collect();
    assert_eq!(of_hits, [(0, Some(0)), (2, Some(0)), (1, None)]);
}

#[test]
fn lines_of_an_error_that_is_repeated_are_no_other_lines() {
    let mut log = "step 1\n".to_owned();
    log.push_str(&"error: no\n".repeat(3000));
    log.push_str("step 2\nstep 3\n");
    let repeated = scan(&["error: no"], log.as_str());
    let first = &repeated.hits[0];
    assert_eq!((first.line.number, first.lines_after, first.other_lines_after), (Some(2), 1000, 2));
    // Between states of a progress bar, in a traceback, and where lines are not numbered.
    let mixed = "error: no\n\r 1%\rerror: no\r 2%\nTraceback (most recent call last):\n  \
        File \"a.py\", line 1, in f\nKeyError: 'x'\nstep\n";
    assert_eq!(scan(&["error: no"], mixed).hits[0].other_lines_after, 1);
    let end = scanner(&["error: no"]).scan(&Stream::new(log), Limits { bytes: 4096 });
    let last = end.hits.last().expect("a hit");
    assert_eq!((last.line.number, last.other_lines_after), (None, 2));
}

#[test]
fn two_hits_can_be_compared_however_much_follows_both() {
    let trouble = "error: one\nstep 1\nstep 2\nerror: two\nbye\n";
    let near = scan(&["error: "], trouble);
    let far = scan(&["error: "], format!("{trouble}{}", "step 3\n".repeat(100_000)));
    let apart = |scan: &Scan| scan.hits[0].other_lines_after - scan.hits[1].other_lines_after;
    assert_eq!((apart(&near), apart(&far)), (2, 2));
    assert!(far.hits[1].other_lines_after >= 1000);
    assert!(near.last_told.is_empty());
    let shown: Vec<&str> = far.last_told.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(shown[..5], ["error: one", "step 1", "step 2", "error: two", "bye"]);
    assert!(far.last_told.len() < 20, "{}", far.last_told.len());
}

/// A key that was never used for anything.
fn key(lines: usize) -> String {
    let body = format!("{}\n", "MIIEvQIBADANBgkq".repeat(4)).repeat(lines);
    format!("-----BEGIN {0}-----\n{body}-----END {0}-----\n", "PRIVATE KEY")
}

#[test]
fn a_key_at_the_end_of_a_log_is_masked_however_long_it_is() {
    for lines in [3, 60, 300] {
        for log in [format!("start\n{}", key(lines)), format!("{}bye\n", key(lines))] {
            for cut in [log.len(), log.len() - 40] {
                let scan = scan(&[], &log[..cut]);
                let shown = tail(&scan).join("\n");
                assert!(!shown.contains("MIIE") && shown.contains("****"), "{lines} {cut} {shown}");
                let last = scan.tail.last().expect("a line");
                assert_eq!(last.number, Some(number_at(log.as_bytes(), last.offset)));
            }
        }
    }
}

#[test]
fn no_half_of_a_secret_stands_at_the_edge_of_a_cut() {
    let secret = "aB3dE5fG7hJ9kLmN0pQrS2tUvW4xYz6A8bC1";
    let token = format!("ghp_{secret} ");
    for width in [5000, 200_000] {
        // Around the beginning and the end of what is kept of such a line.
        for gap in (900..1100).chain(2900..3200).step_by(7) {
            let filler = "x".repeat(width);
            let space = " ".repeat(gap);
            let log = format!("{filler} {token}{space}Killed{space}{token}{filler}\n");
            let scan = scan(&["Killed"], log);
            let text = &scan.hits[0].line.text;
            let leaks = (0..secret.len() - 4).find(|&at| text.contains(&secret[at..at + 4]));
            assert_eq!(leaks, None, "{width} {gap} {text}");
        }
    }
}

/// Pieces of which logs are made, joined at random.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            &b"\n"[..],
            b"\n",
            b"\n",
            b"\r",
            b"\r\n",
            b"\0",
            b" ",
            b"\xff",
            b"\x1b[31m",
            b"\x1b]0;",
            b"error",
            b"Killed",
            b"CUDA out of memory",
            b"all well",
            b"0: ",
            b"1: ",
            b"[rank1]: ",
            b"Traceback (most recent call last):\n",
            b"  File \"a.py\", line 1, in f\n",
            b"ValueError: x\n",
            b"\nDuring handling of the above exception, another exception occurred:\n",
            b"--------------------------\n",
        ])
        .prop_map(<[u8]>::to_vec),
        proptest::collection::vec(any::<u8>(), 0..20),
        (any::<u8>(), 1_usize..70_000).prop_map(|(byte, count)| vec![byte; count]),
    ];
    proptest::collection::vec(prop_oneof![9 => piece.clone(), 1 => piece], 0..40)
        .prop_map(|pieces| pieces.concat())
}

/// The number of the line at an offset, counted the simple way.
fn number_at(log: &[u8], offset: u64) -> u64 {
    log[..usize::try_from(offset).unwrap()].split(|&byte| byte == b'\n').count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_hit_can_be_read_again(log in pieces()) {
        const LITERALS: [&str; 4] = ["error", "Killed", "CUDA out of memory", "all well"];
        let stream = Stream::new(log.clone());
        let scan = scanner(&LITERALS).scan(&stream, ALL);
        for hit in &scan.hits {
            let line = &hit.line;
            let raw = read(&stream, line.offset, line.offset + line.length).unwrap();
            prop_assert_eq!(raw.len() as u64, line.length);
            prop_assert!(clean_line(&raw).contains(LITERALS[hit.literal]));
            prop_assert!(line.text.contains(LITERALS[hit.literal]));
            prop_assert_eq!(line.number, Some(number_at(&log, line.offset)));
        }
        for line in &scan.tail {
            prop_assert_eq!(line.number, Some(number_at(&log, line.offset)));
        }
    }

    #[test]
    fn the_size_of_blocks_changes_nothing(log in pieces(), block in 1_usize..5000) {
        let mut other = scanner(&["error", "Killed", "CUDA out of memory", "all well"]);
        let stream = Stream::new(log);
        let one = other.scan(&stream, ALL);
        other.block = block;
        prop_assert_eq!(other.scan(&stream, ALL), one);
    }

    #[test]
    fn a_limit_never_panics_and_is_kept(log in pieces(), bytes in 0_u64..3000) {
        let scan = scanner(&["error", "Killed"]).scan(&Stream::new(log), Limits { bytes });
        prop_assert!(scan.scanned <= bytes);
        prop_assert_eq!(scan.stopped.is_some(), scan.size > bytes);
    }
}

#[test]
fn a_traceback_behind_times_is_one() {
    let log = "2024-05-01 02:29:42,123 Traceback (most recent call last):\n2024-05-01 02:29:42,124   File \"a.py\", line 3, in main\n2024-05-01 02:29:42,125     boom()\n2024-05-01 02:29:43,001 Boom: why\n";
    let scan = scan(&[], log);
    assert_eq!(scan.blocks.len(), 1);
    assert_eq!(terminal(&scan.blocks[0]), "Boom: why");
    assert_eq!(scan.blocks[0].frames.len(), 1);
}

#[test]
fn frames_and_other_ranks_are_no_work_of_a_rank() {
    let trace = "java.lang.Boom: why\n\tat A.main(A.java:3)\n\tat B.run(B.java:4)\nstep 1\n";
    let hit = &scan(&["Boom"], trace).hits[0];
    assert!((hit.other_lines_after, hit.traced) == (1, true), "{hit:?}");
    let ranks = "[rank0]: boom\n[rank1]: step 1\n[rank1]: step 2\n[rank0]: step 3\nlauncher\n";
    assert_eq!(scan(&["boom"], ranks).hits[0].other_lines_after, 2);
}

#[test]
fn only_the_traceback_right_behind_is_ignored() {
    let traceback =
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in main\nKeyError: 1\n";
    let log = format!("Exception ignored in: <x>\n{traceback}step\n{traceback}");
    let ignored: Vec<bool> = scan(&[], log).blocks.iter().map(|block| block.ignored).collect();
    assert_eq!(ignored, [true, false]);
    let log = format!("Exception ignored in: <x>\nstep\n{traceback}");
    assert!(!scan(&[], log).blocks[0].ignored);
}
