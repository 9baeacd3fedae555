//! Which rank wrote a line, where a prefix says so.
//!
//! The prefixes are those of `PyTorch` (`[rank3]:`), torchrun (`[default3]:`, `[3]:`), Open MPI
//! (`[1,3]<stderr>:`, `[1,3]<stderr>: `) and `srun -l` (`3: `). The last is only believed in a
//! stream whose lines mostly have it: any sentence may begin with a number and a colon.

/// Whether the lines of a sample are labelled as `srun -l` does.
pub(super) fn is_labelled(sample: &[u8]) -> bool {
    let (mut lines, mut labelled, mut repeats) = (0_u32, 0_u32, false);
    let mut seen = Vec::new();
    for line in sample.split(|&byte| byte == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        lines += 1;
        let head = String::from_utf8_lossy(&line[..line.len().min(16)]);
        if let Some((rank, _)) = label(&head) {
            labelled += 1;
            // A numbered list counts from 1 and says each number once.
            repeats |= rank == 0 || seen.contains(&rank);
            if seen.len() < 64 {
                seen.push(rank);
            }
        }
    }
    labelled >= 2 && repeats && labelled * 2 >= lines
}

/// The rank and the text behind the prefix. Of two prefixes the inner one knows better: outside
/// stands the launcher's task, inside the rank.
pub(super) fn strip(text: &str, labelled: bool) -> (Option<u64>, &str) {
    let mut found = (None, text);
    if labelled && let Some((rank, rest)) = label(text) {
        found = (Some(rank), rest);
    }
    while let Some((rank, rest)) = tag(found.1) {
        found = (Some(rank), rest);
    }
    found
}

/// `  3: text`
fn label(text: &str) -> Option<(u64, &str)> {
    let (rank, rest) = number(text.trim_start_matches(' '))?;
    let rest = rest.strip_prefix(':')?;
    // An empty line keeps its label and loses the blank.
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    (rank < 1_000_000).then_some((rank, rest))
}

/// `[rank3]:text`, `[default3]: text`, `[3]: text`, `[1,3]<stdout>:text`
fn tag(text: &str) -> Option<(u64, &str)> {
    let inner = text.strip_prefix('[')?;
    let named = inner.strip_prefix("rank").or_else(|| inner.strip_prefix("default"));
    let (mut rank, mut rest) = number(named.unwrap_or(inner))?;
    let mut streamed = false;
    if named.is_none()
        && let Some(second) = rest.strip_prefix(',')
    {
        (rank, rest) = number(second)?;
        streamed = true;
    }
    rest = rest.strip_prefix(']')?;
    if streamed {
        rest = rest.strip_prefix("<stdout>").or_else(|| rest.strip_prefix("<stderr>"))?;
    }
    rest = rest.strip_prefix(':')?;
    Some((rank, rest.strip_prefix(' ').unwrap_or(rest)))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_launchers_name_their_rank() {
        for (line, rank, text) in [
            ("[rank3]: Traceback", 3, "Traceback"),
            ("[rank0]:[E ProcessGroupNCCL.cpp:607]", 0, "[E ProcessGroupNCCL.cpp:607]"),
            ("[default12]:  File \"x\"", 12, " File \"x\""),
            ("[3]:   File", 3, "  File"),
            ("[1,7]<stderr>:boom", 7, "boom"),
            ("1: [rank9]: boom", 9, "boom"),
            (" 4: boom", 4, "boom"),
            ("4:", 4, ""),
        ] {
            assert_eq!(strip(line, true), (Some(rank), text));
        }
    }

    #[test]
    fn what_only_looks_like_a_rank_stays() {
        for line in
            ["[2024-01-02] x", "[rank]: x", "[12] x", "[INFO]: x", "99999999999999999999: x"]
        {
            assert_eq!(strip(line, true), (None, line));
        }
        assert_eq!(strip("3: text", false), (None, "3: text"));
    }

    #[test]
    fn labels_count_only_where_most_lines_have_them() {
        assert!(is_labelled(b"0: a\n1: b\n0: c\n"));
        assert!(is_labelled(b"Loading module\n 0: a\n 1: b\n 0:\n"));
        assert!(!is_labelled(b"1: apples\n2: pears\n3: plums\n"), "a numbered list");
        assert!(!is_labelled(b"0: a\nx\ny\nz\n0: b\nv\n"));
        assert!(!is_labelled(b""));
    }
}
