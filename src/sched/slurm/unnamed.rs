//! Which parts of Slurm's outputs people wrote or a site would not show, apart from names.
//!
//! A recording that is to be shown keeps what capacity is judged by. Job names, comments and what
//! operators note are replaced whole; of the settings those stay that are read. Names of users,
//! accounts and hosts are another matter: they are told apart all through.

use super::queued;
use super::rows::DELIMITER;

/// Settings that are read, or that explain what was seen.
const SETTINGS: [&str; 18] = [
    "AccountingStorageEnforce",
    "AccountingStorageTRES",
    "ClusterName",
    "DefMemPerCPU",
    "DefMemPerNode",
    "EnforcePartLimits",
    "Licenses",
    "MaxMemPerCPU",
    "MaxMemPerNode",
    "MinJobAge",
    "OverTimeLimit",
    "PreemptMode",
    "PreemptType",
    "PriorityType",
    "ResumeTimeout",
    "SelectType",
    "SelectTypeParameters",
    "SLURM_VERSION",
];
/// Keys of nodes whose values are left out; none is read.
const NODE_KEYS: [&str; 6] =
    ["NodeAddr=", "NodeHostName=", "OS=", "Comment=", "Extra=", "InstanceId="];

/// An answer without what people wrote.
pub fn unnamed(argv: &[String], text: &str) -> String {
    let has = |word: &str| argv.iter().any(|known| known == word);
    match argv.first().map(String::as_str) {
        Some("squeue") => without_job_names(text),
        Some("scontrol") if has("config") => {
            let kept = text.lines().filter(|line| {
                let name = line.split('=').next().unwrap_or_default().trim();
                SETTINGS.contains(&name)
            });
            kept.flat_map(|line| [line, "\n"]).collect()
        }
        Some("scontrol") if has("node") => text.lines().map(without_node_text).collect(),
        Some("scontrol") if has("assoc_mgr") => text.lines().map(without_others).collect(),
        _ => text.to_owned(),
    }
}

/// The last cell of each record is the name, which may hold anything but the delimiter.
fn without_job_names(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (index, cell) in text.split(DELIMITER).enumerate() {
        let place = index % queued::FIELDS.len();
        let is_name = place == queued::FIELDS.len() - 1;
        if index > 0 {
            shown.push_str(DELIMITER);
        }
        shown.push_str(if is_name && !cell.is_empty() { "job" } else { cell });
    }
    shown
}

fn without_node_text(line: &str) -> String {
    let mut line = line.to_owned();
    for key in NODE_KEYS {
        let Some(at) = line.find(&format!(" {key}")) else { continue };
        let rest = &line[at + 1 + key.len()..];
        // Up to the next key: the value may hold blanks.
        let mut starts = rest.match_indices(' ').map(|(blank, _)| blank);
        let end = starts.find(|blank| {
            let word = &rest[blank + 1..];
            let name = word.split('=').next().unwrap_or_default();
            word.contains('=')
                && name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        let end = end.map_or(line.len(), |blank| at + 1 + key.len() + blank);
        line.replace_range(at..end, "");
    }
    line.push('\n');
    line
}

/// Of a quality of service what is used of it in all, not by whom: those need not be in the queue,
/// so that nothing else would replace their names.
fn without_others(line: &str) -> String {
    let end = if line.starts_with("QOS=") { line.find(" Account Limits") } else { None };
    format!("{}\n", &line[..end.unwrap_or(line.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_people_wrote_is_gone_and_what_is_read_stays() {
        let cells = vec!["1"; queued::FIELDS.len() - 1].join(DELIMITER);
        let queue = format!(
            "{cells}{DELIMITER}my | secret\nname{DELIMITER}\n{cells}{DELIMITER}b{DELIMITER}\n"
        );
        let shown = unnamed(&argv("squeue --all"), &queue);
        assert_eq!(
            shown,
            format!("{cells}{DELIMITER}job{DELIMITER}\n{cells}{DELIMITER}job{DELIMITER}\n")
        );
        let config =
            "SlurmctldHost[0]        = head.site.org\nSelectType              = select/cons_tres\n";
        let shown = unnamed(&argv("scontrol show config"), config);
        assert_eq!(shown, "SelectType              = select/cons_tres\n");
        let node = "NodeName=n1 NodeAddr=n1.site.org NodeHostName=n1 OS=Linux 4.18 #1 SMP RealMemory=1 \
                    Comment=ask bob State=IDLE\n";
        let shown = unnamed(&argv("scontrol --all show node"), node);
        assert_eq!(shown, "NodeName=n1 RealMemory=1 State=IDLE\n");
        let used = "QOS=long(3) GrpTRESMins=cpu=9(4) Account Limits= chem={MaxJobsPA=N(0)} User Limits= \
                    bob(1002)={MaxJobsPU=N(0)}\n";
        let shown = unnamed(&argv("scontrol --oneliner show assoc_mgr users=alice"), used);
        assert_eq!(shown, "QOS=long(3) GrpTRESMins=cpu=9(4)\n");
    }
}
