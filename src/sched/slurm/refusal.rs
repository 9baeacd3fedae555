//! What it means when a client of Slurm refuses.
//!
//! Clients tell by text only, and most exit with 1 whatever the trouble. The texts are those of
//! `slurm_errno.c` and of what Slurm 20.11 to 26.05 were seen to print.

use crate::host::{Cmd, Output};
use crate::text;

use super::super::SchedError;

/// The accounting database is off, down, or refuses this host.
const NO_ACCOUNTING: [&str; 6] = [
    "accounting storage is disabled",
    "Problem talking to the database",
    "Unable to connect to database",
    "open persistent connection",
    "PersistInit",
    "slurmdbd",
];
/// This user may not: the second is how `scontrol write` says it.
const FORBIDDEN: [&str; 3] =
    ["Access/permission denied", "failed: Invalid user id", "Operation not permitted"];

/// There is no configuration: neither a file nor a server that gives one (`man slurm.conf`,
/// configless).
const NOT_CONFIGURED: [&str; 3] = [
    "Could not establish a configuration source",
    "resolve_ctls_from_dns_srv",
    "unable to status file",
];

/// The error that a failed command stands for.
pub(super) fn meaning(cmd: &Cmd, output: &Output<'_>) -> SchedError {
    let mut stderr = output.finished.stderr.clone();
    // What a client complains of may quote what it was given.
    text::mask_secrets(&mut stderr);
    let stderr = String::from_utf8_lossy(&stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let says = |texts: &[&str]| texts.iter().any(|text| stderr.contains(text));
    let command = cmd.brief();
    if says(&NOT_CONFIGURED) {
        return SchedError::NotConfigured;
    }
    if cmd.program == "sacct" && says(&NO_ACCOUNTING) {
        let message = first_line(cmd, &stderr).unwrap_or_default();
        return SchedError::NoAccounting { message };
    }
    if says(&["Invalid job id specified"]) {
        let mut ids = cmd.args.iter().rev().map(|arg| arg.strip_prefix("--jobs=").unwrap_or(arg));
        if let Some(id) = ids.find_map(|arg| arg.split(',').next()?.parse().ok()) {
            return SchedError::UnknownJob { id };
        }
    }
    if let Some(name) = after(&stderr, "Invalid user id: ") {
        return SchedError::UnknownUser { name: name.trim().to_owned() };
    }
    let cluster = after(&stderr, "No cluster '").and_then(|rest| rest.split_once('\''));
    if let Some((name, _)) = cluster {
        return SchedError::UnknownCluster { name: name.to_owned() };
    }
    // `scontrol show partition` complains on standard output; of others that is the answer.
    let said = || first_line(cmd, &stdout).filter(|_| cmd.program == "scontrol");
    let message = first_line(cmd, &stderr).or_else(said);
    let message = message.unwrap_or_else(|| match output.finished.status {
        Some(status) => format!("exit {status} without a message"),
        None => "it was killed".to_owned(),
    });
    if says(&FORBIDDEN) {
        SchedError::Forbidden { command, message }
    } else {
        SchedError::Failed { command, message }
    }
}

/// The rest of the line behind some words.
fn after<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    text.split_once(words)?.1.lines().next()
}

/// The first line that says something, without `sacct: error:` before it.
fn first_line(cmd: &Cmd, text: &str) -> Option<String> {
    let mut line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    for prefix in [cmd.program, ":", " error:", " fatal:"] {
        line = line.strip_prefix(prefix).unwrap_or(line);
    }
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Finished;

    fn error(program: &'static str, args: &[&str], stderr: &str) -> SchedError {
        let finished = Finished { status: Some(1), stderr: stderr.as_bytes().to_vec() };
        meaning(&Cmd::new(program, args), &Output { stdout: Vec::new().into(), finished })
    }

    #[test]
    fn texts_of_the_real_clients_are_understood() {
        let off = error("sacct", &["--helpformat"], "Slurm accounting storage is disabled\n");
        assert!(matches!(off, SchedError::NoAccounting { .. }), "{off:?}");
        // slurmdbd down, 22.05.
        let down = "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent \
                    connection to host:localhost:6819: Connection refused\n\
                    sacct: error: Sending PersistInit msg: Connection refused\n";
        assert!(matches!(error("sacct", &[], down), SchedError::NoAccounting { .. }));
        // Reported by users of a site whose database refused the login node.
        let refused = "sacct: error: slurmdbd: Operation not permitted\n";
        assert!(matches!(error("sacct", &[], refused), SchedError::NoAccounting { .. }));
        // The texts of `fetch_config.c` and `read_config.c`, where there is no /etc/slurm.
        let bare = "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n\
                    scontrol: error: fetch_config: DNS SRV lookup failed\n\
                    scontrol: fatal: Could not establish a configuration source\n";
        assert!(matches!(error("scontrol", &[], bare), SchedError::NotConfigured));
        let gone = "slurm_load_jobs error: Invalid job id specified\n";
        let unknown = error("scontrol", &["--oneliner", "show", "job", "7_1"], gone);
        assert_eq!(unknown.to_string(), "no job 7_1 is known here, or you may not see it");
        let unknown = error("squeue", &["--noheader", "--jobs=7,8"], gone);
        assert!(matches!(unknown, SchedError::UnknownJob { .. }), "{unknown:?}");
        let other = "job script retrieval failed: Invalid user id\n";
        let forbidden = error("scontrol", &["write", "batch_script", "7", "-"], other);
        assert!(matches!(forbidden, SchedError::Forbidden { .. }), "{forbidden:?}");
        let user = error("sacct", &[], "sacct: error: Invalid user id: nosuchuser\n");
        assert_eq!(user.to_string(), "there is no user 'nosuchuser' here");
        // `scontrol --clusters=nosuch show job 1` of 22.05.
        let cluster = "scontrol: error: No cluster 'nosuch' known by database.\nscontrol: error: \
                       'nosuch' can't be reached now, or it is an invalid entry for --cluster.\n";
        let cluster = error("scontrol", &["--clusters=nosuch", "show", "job", "1"], cluster);
        assert_eq!(cluster.to_string(), "there is no cluster 'nosuch' here");
    }
}
