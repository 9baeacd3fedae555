//! The batch script that accounting stored.

/// The script in the output of `sacct --batch-script`; `None` when it says that none is stored.
///
/// Slurm prints a title and a rule above each script and a newline below; an array prints the same
/// script for each task, so the first is taken.
pub(super) fn script(output: &[u8]) -> Option<Vec<u8>> {
    const TITLE: &[u8] = b"Batch Script for ";
    let rest = output.strip_prefix(TITLE)?;
    let rest = &rest[memchr::memchr(b'\n', rest)? + 1..];
    let rule = memchr::memchr(b'\n', rest)?;
    if rule == 0 || !rest[..rule].iter().all(|byte| *byte == b'-') {
        return None;
    }
    let body = &rest[rule + 1..];
    let next = memchr::memmem::find_iter(body, b"\nBatch Script for ").find(|at| {
        let after = &body[at + 1..];
        memchr::memchr(b'\n', after).is_some_and(|end| after[end + 1..].starts_with(b"----------"))
    });
    let body = &body[..next.map_or(body.len(), |at| at + 1)];
    let body = if body.ends_with(b"\n\n") { &body[..body.len() - 1] } else { body };
    let nothing = body.trim_ascii().is_empty() || body.trim_ascii() == b"NONE";
    (!nothing).then(|| body.to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_stored_script_comes_without_title_and_rule() {
        // `sacct -B` of Slurm 22.05 and 24.11.
        let rule = "-".repeat(80);
        let body = "#!/bin/bash\necho \"something went wrong\" >&2; exit 1\n";
        let one = format!("Batch Script for 22\n{rule}\n{body}\n");
        assert_eq!(script(one.as_bytes()).as_deref(), Some(body.as_bytes()));
        let plain = format!("Batch Script for 15\n{rule}\n{body}");
        assert_eq!(script(plain.as_bytes()).as_deref(), Some(body.as_bytes()));
        let array = format!(
            "Batch Script for 73_0\n{rule}\n{body}\nBatch Script for 73_1\n{rule}\n{body}\n"
        );
        assert_eq!(script(array.as_bytes()).as_deref(), Some(body.as_bytes()));
    }

    #[test]
    fn no_stored_script_is_none() {
        // Slurm's own source prints NONE where there is no script.
        let rule = "-".repeat(80);
        assert_eq!(script(format!("Batch Script for 22\n{rule}\nNONE\n\n").as_bytes()), None);
        assert_eq!(script(b""), None);
        assert_eq!(script(b"sacct: invalid option -- 'B'\n"), None);
    }

    proptest! {
        /// Any bytes are read.
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = script(&bytes);
            let _ = script(&[b"Batch Script for 1\n---\n", bytes.as_slice()].concat());
        }
    }
}
