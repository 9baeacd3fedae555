//! Text cut into terms: identifiers in their parts, endings and filling words removed.
//!
//! Made for English prose mixed with identifiers, messages and paths. `ModuleNotFoundError` gives
//! itself and `module`, `found`, `error`; numbers of more than three digits (addresses, ids, dates)
//! say nothing and go.

/// Words that say nothing about a failure, sorted.
const STOP: &[&str] = &[
    "a", "about", "after", "again", "all", "an", "and", "any", "are", "as", "at", "be", "been",
    "before", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from", "had",
    "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "more", "my",
    "of", "on", "or", "our", "should", "so", "some", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "to", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "why", "will", "with", "would", "you", "your",
];

/// The length of the longest of them.
const LONGEST_STOP: usize = 6;

/// The terms of a text, in order, repeated as they occur.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        // Most words of prose: nothing to take apart.
        if run.bytes().all(|byte| byte.is_ascii_lowercase()) {
            push(&mut terms, run);
            continue;
        }
        let parts: Vec<String> = run.split('_').flat_map(camel_parts).collect();
        if parts.len() > 1 {
            push(&mut terms, &run.to_lowercase());
        }
        for part in &parts {
            push(&mut terms, part);
        }
    }
    terms
}

/// A line without what would only disturb its meaning: numbers, addresses, times, identifiers, and
/// the launcher's name before it.
pub(super) fn cleaned(text: &str) -> String {
    const LAUNCHERS: [&str; 5] = ["slurmstepd", "srun", "sbatch", "salloc", "slurmctld"];
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let digits = bare.bytes().filter(u8::is_ascii_digit).count();
        let hex = bare.strip_prefix("0x").is_some()
            || (digits > 0 && bare.len() > 7 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let launcher = LAUNCHERS.iter().any(|name| bare.starts_with(name)) && word.ends_with(':');
        let lead = kept.is_empty() && matches!(word, "error:" | "fatal:");
        let number =
            digits > 0 && digits * 2 >= bare.chars().filter(|c| c.is_alphanumeric()).count();
        if !hex && !launcher && !lead && !number {
            kept.push(word);
        }
    }
    // Of a line of numbers alone they are all there is.
    if kept.is_empty() { text.to_owned() } else { kept.join(" ") }
}

/// The share of words that stand in logs and in no sentence: with digits, brackets, paths, signs or
/// capitals within.
#[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^53")]
pub(super) fn machine_share(text: &str) -> f64 {
    let of_prose = |c: char| c.is_alphabetic() || "-'\u{2019}.,;?!".contains(c);
    let is_machines = |word: &&str| {
        let inner = || word.chars().zip(word.chars().skip(1));
        !word.chars().all(of_prose) || inner().any(|(a, b)| a.is_lowercase() && b.is_uppercase())
    };
    let all = text.split_whitespace().count();
    let machines = text.split_whitespace().filter(is_machines).count();
    machines as f64 / all.max(1) as f64
}

fn push(terms: &mut Vec<String>, word: &str) {
    let number = word.bytes().all(|byte| byte.is_ascii_digit());
    let stopped = word.len() <= LONGEST_STOP && STOP.binary_search(&word).is_ok();
    if word.is_empty() || stopped || (number && word.len() > 3) {
        return;
    }
    terms.push(stem(word));
}

/// `OutOfMemoryError` -> out, of, memory, error; `HTTPServer` -> http, server.
fn camel_parts(run: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let chars: Vec<char> = run.chars().collect();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| chars.get(before));
        let after = chars.get(at + 1);
        let starts = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase())
                || (before.is_some_and(|before| before.is_uppercase())
                    && after.is_some_and(|after| after.is_lowercase())));
        if starts || parts.is_empty() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

/// Removes the commonest endings; what is left must still look like a word.
fn stem(word: &str) -> String {
    const ENDINGS: [(&str, &str); 7] =
        [("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("ly", ""), ("s", "")];
    if !word.is_ascii() || word.ends_with("ss") {
        return word.to_owned();
    }
    for (ending, instead) in ENDINGS {
        let Some(rest) = word.strip_suffix(ending) else { continue };
        if rest.len() < 3 {
            continue;
        }
        let mut rest = rest.to_owned() + instead;
        // stopped -> stop, but crashing -> crash and failed -> fail.
        let doubled = rest.as_bytes().iter().rev().take(2).collect::<Vec<_>>();
        if matches!(doubled[..], [a, b] if a == b && !b"lsaeiou".contains(a)) {
            rest.pop();
        }
        return rest;
    }
    // So that `cache`, `caches` and `cached` meet.
    match word.strip_suffix('e') {
        Some(rest) if rest.len() >= 3 => rest.to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_words_are_sorted_as_they_are_searched() {
        assert!(STOP.is_sorted());
        assert_eq!(STOP.iter().map(|word| word.len()).max(), Some(LONGEST_STOP));
        assert_eq!(terms("the job was killed"), ["job", "kill"]);
    }

    #[test]
    fn identifiers_are_found_whole_and_in_parts() {
        assert_eq!(
            terms("torch.OutOfMemoryError: CUDA"),
            ["torch", "outofmemoryerror", "out", "memory", "error", "cuda"]
        );
        assert_eq!(
            terms("oom_kill HTTPServer"),
            ["oom_kill", "oom", "kill", "httpserver", "http", "server"]
        );
    }

    #[test]
    fn a_line_keeps_what_it_means() {
        for (line, meaning) in [
            (
                "slurmstepd: error: Detected 1 oom_kill event in StepId=33.0.",
                "Detected oom_kill event in StepId=33.0.",
            ),
            (
                "slurmstepd-c7: error: *** STEP 34.0 ON c7 CANCELLED AT 2021-10-27T19:35:36 ***",
                "*** STEP ON CANCELLED AT ***",
            ),
            ("segfault at 7f3a9c00ffee ip 0x55d0", "segfault at ip"),
            ("137", "137"),
            ("error: my file", "my file"),
        ] {
            assert_eq!(cleaned(line), meaning);
        }
    }

    #[test]
    fn a_line_from_a_log_is_told_from_a_sentence() {
        for (text, share) in [
            ("why was my job killed? It's strange, isn't it", 0.0),
            ("slurmstepd: error: Detected 1 oom_kill event in StepId=33.0.", 0.625),
            ("JobState=PENDING Reason=BadConstraints", 1.0),
            ("what does BadConstraints mean", 0.25),
            ("", 0.0),
        ] {
            assert!((machine_share(text) - share).abs() < 1e-12, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_meet_and_numbers_that_say_nothing_go() {
        for (one, other) in [
            ("killed", "kills"),
            ("crashing", "crashes"),
            ("caches", "cached"),
            ("stopped", "stops"),
        ] {
            assert_eq!(terms(one), terms(other));
        }
        assert_eq!(terms("exit 137 at 0x7f 20260101 the"), ["exit", "137", "0x7f"]);
    }
}
