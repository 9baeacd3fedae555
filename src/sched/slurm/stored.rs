//! The batch scripts that accounting stored.

use std::collections::BTreeMap;

/// The script in the output of `sacct --batch-script`; `None` when it says that none is stored.
///
/// Slurm prints a title and a rule above each script and a newline below; an array prints the same
/// script for each task, so the first is taken.
pub(super) fn script(output: &[u8]) -> Option<Vec<u8>> {
    let rest = output.strip_prefix(TITLE)?;
    let rest = &rest[memchr::memchr(b'\n', rest)? + 1..];
    let rule = memchr::memchr(b'\n', rest)?;
    if rule == 0 || !rest[..rule].iter().all(|byte| *byte == b'-') {
        return None;
    }
    let body = &rest[rule + 1..];
    let body = &body[..next_title(body).unwrap_or(body.len())];
    let body = if body.ends_with(b"\n\n") { &body[..body.len() - 1] } else { body };
    let nothing = body.trim_ascii().is_empty() || body.trim_ascii() == b"NONE";
    (!nothing).then(|| body.to_vec())
}

/// The scripts of several jobs, by the jobs' numbers; `None` where two differ, as a script may hold
/// what looks like the title of another.
pub(super) fn scripts(output: &[u8]) -> BTreeMap<u64, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut rest = output;
    while let Some(named) = rest.strip_prefix(TITLE) {
        let digits = named.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&named[..digits]).ok().and_then(|text| text.parse().ok());
        if let (Some(number), Some(script)) = (number, script(rest)) {
            let script = Some(script);
            let known = found.entry(number).or_insert_with(|| script.clone());
            if *known != script {
                *known = None;
            }
        }
        rest = next_title(named).map_or(&[], |at| &named[at..]);
    }
    found
}

/// Where the next title with its rule begins, after a line's end.
fn next_title(text: &[u8]) -> Option<usize> {
    let next = memchr::memmem::find_iter(text, b"\nBatch Script for ").find(|at| {
        let after = &text[at + 1..];
        memchr::memchr(b'\n', after).is_some_and(|end| after[end + 1..].starts_with(b"----------"))
    });
    next.map(|at| at + 1)
}

const TITLE: &[u8] = b"Batch Script for ";

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
    fn the_scripts_of_several_jobs_are_told_apart() {
        // `sacct -B -j 73,22` of Slurm 22.05: a title for each task, and none for a job without.
        let rule = "-".repeat(80);
        let text = format!(
            "Batch Script for 73_0\n{rule}\n#!/bin/bash\none\n\nBatch Script for 73_1\n{rule}\n\
             #!/bin/bash\none\n\nBatch Script for 22\n{rule}\n#!/bin/sh\ntwo\n\n"
        );
        let found = scripts(text.as_bytes());
        let told: Vec<(u64, Option<&[u8]>)> =
            found.iter().map(|(id, script)| (*id, script.as_deref())).collect();
        let (one, two): (&[u8], &[u8]) = (b"#!/bin/bash\none\n", b"#!/bin/sh\ntwo\n");
        assert_eq!(told, [(22, Some(two)), (73, Some(one))]);
        // One that pretends to be another is believed no more than that.
        let forged =
            format!("Batch Script for 5\n{rule}\n:\n\nBatch Script for 22\n{rule}\nrm\n\n");
        assert_eq!(scripts((forged + &text).as_bytes())[&22], None);
        assert_eq!(scripts(b"sacct: error: nothing\n").len(), 0);
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
