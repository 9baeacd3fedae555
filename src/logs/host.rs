//! The node that a log says it was written on, where it says that of one node.

/// The node named by what job scripts print at their start, or by the scheduler's last words.
pub fn host(text: &str) -> Option<String> {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim();
        let name = match line {
            "+ hostname" | "+ hostname -s" | "$ hostname" => lines.peek().copied(),
            _ => named(line),
        };
        if let Some(name) = name.map(str::trim).filter(|name| is_node(name)) {
            return Some(name.to_owned());
        }
    }
    None
}

fn named(line: &str) -> Option<&str> {
    const KEYS: [&str; 8] = [
        "SLURM_JOB_NODELIST",
        "SLURM_NODELIST",
        "SLURMD_NODENAME",
        "HOSTNAME",
        "host",
        "hostname",
        "node",
        "nodelist",
    ];
    // `*** JOB 5 ON n1 CANCELLED AT ...`
    if let Some((_, behind)) = line.split_once("*** JOB ") {
        let mut words = behind.split_ascii_whitespace().skip(1);
        return words.next().filter(|word| *word == "ON").and(words.next());
    }
    let (key, value) = line.split_once(['=', ':'])?;
    let key = key.trim();
    KEYS.iter().any(|known| key.eq_ignore_ascii_case(known)).then_some(value)
}

/// Whether a word is the name of one node and no list of them.
fn is_node(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (2..=64).contains(&name.len())
        && name.bytes().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_is_named_and_no_list() {
        for (text, expected) in [
            ("start\nSLURM_JOB_NODELIST=c206\n", Some("c206")),
            ("+ hostname\nhpc-n139\n+ date\n", Some("hpc-n139")),
            ("host     : r2n040\n", Some("r2n040")),
            ("*** JOB 5 ON n1 CANCELLED AT 2026-11-30T08:10:00 DUE TO TIME LIMIT ***", Some("n1")),
            ("SLURM_JOB_NODELIST=c[206-207]\n", None),
            ("host: everything\nnode 5: c1\n", None),
            ("+ hostname\n", None),
        ] {
            assert_eq!(host(text).as_deref(), expected, "{text}");
        }
    }
}
