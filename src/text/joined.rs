//! Lines that run into each other: processes that die at the same time write over each other's line
//! ends, and the last frame of one traceback is followed by the exception of another.
//!
//! It knows Python's exceptions only, by the end of their names; a quoted one is not a joined one.

/// The exception behind what stands before it without a blank, as in
/// `pickle.load(from_parent)MemoryError`.
pub fn joined_exception(text: &str) -> Option<&str> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let frame = text.starts_with([' ', '\t']);
    text.match_indices("Error").find_map(|(at, word)| {
        let end = at + word.len();
        let tells = text[end..].starts_with(": ");
        if !tells && end < text.len() {
            return None;
        }
        let start = text[..end].trim_end_matches(part_of_name).len();
        let (before, name) = (&text[..start], &text[start..end]);
        if before.ends_with([')', ']', '}']) || frame && before.ends_with(':') {
            return Some(&text[start..]);
        }
        // A class begins with a capital letter: what stands before that is the end of a frame.
        let other = frame && tells && name.starts_with(char::is_lowercase) && !name.contains('.');
        let class = name.find(char::is_uppercase).filter(|_| other)?;
        Some(&text[start + class..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_found_behind_a_frame_without_a_line_end() {
        let bare = "    self = reduction.pickle.load(from_parent)MemoryError";
        assert_eq!(joined_exception(bare), Some("MemoryError"));
        let word = "    from core import runModuleNotFoundError: No module named 'yaml'";
        assert_eq!(joined_exception(word), Some("ModuleNotFoundError: No module named 'yaml'"));
        let dotted = "    return f(x)torch.cuda.OutOfMemoryError: CUDA out of memory.";
        let found = "torch.cuda.OutOfMemoryError: CUDA out of memory.";
        assert_eq!(joined_exception(dotted), Some(found));
    }

    #[test]
    fn what_stands_alone_or_is_quoted_is_not_joined() {
        for text in [
            "MemoryError",
            "    raise MemoryError",
            "    print(\"KeyError: x\")",
            "ERROR:root:KeyError: 'a'",
            "x: KeyError: 'a'",
            "    except OSError:",
            "    raise getError",
            "é",
        ] {
            assert_eq!(joined_exception(text), None, "{text}");
        }
    }
}
