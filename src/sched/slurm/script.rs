//! The batch script out of what Slurm's clients print and what the submission says.

use std::path::{Path, PathBuf};

/// The script in the output of `sacct --batch-script`; `None` when it says that none is stored.
///
/// Slurm prints a title and a rule above each script and a newline below; an array prints the same
/// script for each task, so the first is taken.
pub(super) fn from_accounting(output: &[u8]) -> Option<Vec<u8>> {
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

/// The script's path out of the submission command: the first argument that is no option.
pub(super) fn path_in_submit_line(line: &str) -> Option<&str> {
    // `man sbatch`: options that stand alone; every other long option may take the next word.
    const ALONE: [&str; 19] = [
        "--contiguous",
        "--exclusive",
        "--get-user-env",
        "--hold",
        "--ignore-pbs",
        "--no-kill",
        "--no-requeue",
        "--overcommit",
        "--oversubscribe",
        "--parsable",
        "--propagate",
        "--quiet",
        "--reboot",
        "--requeue",
        "--spread-job",
        "--test-only",
        "--use-min-nodes",
        "--verbose",
        "--wait",
    ];
    const ALONE_LETTERS: &str = "HIkOQsvW";
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| *word == "sbatch" || word.ends_with("/sbatch"))?;
    while let Some(word) = words.next() {
        if word == "--wrap" || word.starts_with("--wrap=") {
            return None;
        } else if word.starts_with("--") {
            if !word.contains('=') && !ALONE.contains(&word) {
                words.next();
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            let takes_next = letters.len() == 1 && !ALONE_LETTERS.contains(letters);
            if takes_next {
                words.next();
            }
        } else {
            return Some(word);
        }
    }
    None
}

/// A path as the submission meant it; `None` when it is relative to an unknown directory.
pub(super) fn resolve(path: &str, work_dir: Option<&str>) -> Option<PathBuf> {
    let path = Path::new(path);
    if path.is_absolute() { Some(path.to_owned()) } else { Some(Path::new(work_dir?).join(path)) }
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
        assert_eq!(from_accounting(one.as_bytes()).as_deref(), Some(body.as_bytes()));
        let plain = format!("Batch Script for 15\n{rule}\n{body}");
        assert_eq!(from_accounting(plain.as_bytes()).as_deref(), Some(body.as_bytes()));
        let array = format!(
            "Batch Script for 73_0\n{rule}\n{body}\nBatch Script for 73_1\n{rule}\n{body}\n"
        );
        assert_eq!(from_accounting(array.as_bytes()).as_deref(), Some(body.as_bytes()));
    }

    #[test]
    fn no_stored_script_is_none() {
        // Slurm's own source prints NONE where there is no script.
        let rule = "-".repeat(80);
        assert_eq!(
            from_accounting(format!("Batch Script for 22\n{rule}\nNONE\n\n").as_bytes()),
            None
        );
        assert_eq!(from_accounting(b""), None);
        assert_eq!(from_accounting(b"sacct: invalid option -- 'B'\n"), None);
    }

    #[test]
    fn the_path_is_the_first_word_that_is_no_option() {
        let line =
            "sbatch --parsable -J oom -o oom-%A_%a.out --mem=100 --time 5 /home/a/oom.sh -o x";
        assert_eq!(path_in_submit_line(line), Some("/home/a/oom.sh"));
        assert_eq!(path_in_submit_line("/usr/bin/sbatch -H -n4 job.sh"), Some("job.sh"));
        assert_eq!(path_in_submit_line("sbatch --wrap=hostname"), None);
        assert_eq!(path_in_submit_line("srun -n 2 hostname"), None);
        assert_eq!(resolve("job.sh", Some("/home/a")), Some(PathBuf::from("/home/a/job.sh")));
        assert_eq!(resolve("job.sh", None), None);
    }

    proptest! {
        /// Any bytes and any words are read.
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..100), line in any::<String>()) {
            let _ = from_accounting(&bytes);
            let _ = from_accounting(&[b"Batch Script for 1\n---\n", bytes.as_slice()].concat());
            let _ = path_in_submit_line(&format!("sbatch {line}"));
        }
    }
}
