//! How Slurm is set up, who asks, and the licences: the small parts of a reading.

use jiff::tz::TimeZone;

use crate::model::{Cluster, Controller, Identity, Known, Licence, Reading};

use super::values;

/// The zone in which the controller prints local times.
#[derive(Debug, Clone)]
pub(super) struct Clock(pub(super) TimeZone);

/// The settings that `scontrol show config` prints: `Name   = value`, a line each.
pub(super) fn settings(output: &[u8]) -> Controller {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let settings: Vec<(String, String)> = lines
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .filter(|(name, _)| !name.is_empty() && !name.contains(' '))
        .collect();
    let mut controller = Controller { settings, ..Controller::default() };
    let memory = |name: &str| {
        let text = controller.setting(name).unwrap_or_default();
        values::mebibytes(text)
    };
    let parameters = controller.setting("SelectTypeParameters");
    let kind = controller.setting("SelectType").unwrap_or_default();
    let gives_out_memory = match parameters {
        // Whole nodes are given out, and their memory with them.
        _ if kind.ends_with("linear") => parameters.map(|words| words.contains("MEMORY")),
        words => words.map(|words| words.to_ascii_uppercase().contains("MEMORY")),
    };
    let enforces = controller.setting("AccountingStorageEnforce").map(|words| {
        let words = values::names(words);
        words.into_iter().map(|word| word.to_ascii_lowercase()).collect()
    });
    let refuses = controller.setting("EnforcePartLimits");
    let refuses = refuses.map(|word| !word.eq_ignore_ascii_case("NO"));
    let new = Controller {
        version: controller.setting("SLURM_VERSION").map(str::to_owned),
        gives_out_memory: gives_out_memory.into(),
        default_memory_per_cpu: memory("DefMemPerCPU"),
        default_memory_per_node: memory("DefMemPerNode"),
        max_memory_per_cpu: memory("MaxMemPerCPU"),
        max_memory_per_node: memory("MaxMemPerNode"),
        enforces: enforces.into(),
        refuses_over_limit: refuses.into(),
        settings: Vec::new(),
    };
    let settings = std::mem::take(&mut controller.settings);
    Controller { settings, ..new }
}

/// What `id` prints: `uid=1001(alice) gid=1001(alice) groups=1001(alice),27(domain users)`.
pub(super) fn identity(output: &[u8]) -> Identity {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    let part = |key: &str| text.find(key).map(|at| &text[at + key.len()..]);
    // A security context may follow the groups.
    let groups = part(" groups=").unwrap_or_default();
    let groups = groups.split_once(" context=").map_or(groups, |(groups, _)| groups);
    let named = |entry: &str| {
        let (number, name) = entry.split_once('(')?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        Some(name.strip_suffix(')').unwrap_or(name).to_owned())
    };
    let own = text.strip_prefix("uid=").unwrap_or_default();
    let own = own.split_once(" gid=").map_or(own, |(own, _)| own);
    Identity {
        user: named(own),
        uid: values::count(own.split('(').next().unwrap_or_default()),
        groups: groups.split(',').filter_map(named).collect(),
        host: None,
    }
}

/// The licences of this cluster's own configuration, and how many of each running jobs hold.
///
/// Licences that the database hands out to several clusters are not among them.
pub(super) fn licences(cluster: &Cluster) -> Vec<Licence> {
    let configured = counted(cluster.controller.setting("Licenses").unwrap_or_default());
    let used = |name: &str| {
        if cluster.lacks(Reading::Jobs) {
            return Known::NotGathered;
        }
        let running = cluster.jobs.iter().filter(|job| job.state.word() == "RUNNING");
        let held = running.flat_map(|job| &job.licences).filter(|(known, _)| known == name);
        Known::Value(held.map(|(_, count)| count).sum())
    };
    let licence = |(name, total): (String, u64)| Licence { used: used(&name), name, total };
    configured.into_iter().map(licence).collect()
}

/// `matlab:2,ansys:10`; of a licence without a number there is one.
pub(super) fn counted(text: &str) -> Vec<(String, u64)> {
    let entries = values::names(text);
    let entries = entries.iter().flat_map(|entry| entry.split(';'));
    let entry = |entry: &str| {
        let (name, count) = entry.rsplit_once([':', '=']).unwrap_or((entry, "1"));
        Some((name.to_owned(), count.parse().ok()?))
    };
    entries.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Bytes;

    #[test]
    fn settings_of_the_lab_are_read() {
        // Lines of `scontrol show config` of Slurm 24.11.5.
        let text = "Configuration data as of 2026-11-30T08:54:00\n\
                    AccountingStorageEnforce = associations,limits,qos,safe\n\
                    ClusterName             = labtrixie\n\
                    DefMemPerCPU            = 100\n\
                    EnforcePartLimits       = NO\n\
                    Licenses                = matlab:2\n\
                    MaxMemPerNode           = UNLIMITED\n\
                    SelectType              = select/cons_tres\n\
                    SelectTypeParameters    = CR_CORE_MEMORY\n\
                    SLURM_VERSION           = 24.11.5\n";
        let controller = settings(text.as_bytes());
        assert_eq!(controller.setting("ClusterName"), Some("labtrixie"));
        assert_eq!(controller.gives_out_memory, Known::Value(true));
        assert_eq!(controller.default_memory_per_cpu, Known::Value(Bytes(100 * Bytes::MIB)));
        assert_eq!(controller.max_memory_per_node, Known::Unlimited);
        assert_eq!(controller.refuses_over_limit, Known::Value(false));
        assert_eq!(settings(b"").gives_out_memory, Known::NotGathered);
        let cores = settings(b"SelectTypeParameters    = CR_CORE\n");
        assert_eq!(cores.gives_out_memory, Known::Value(false));
    }

    #[test]
    fn groups_may_hold_blanks() {
        let output = b"uid=1001(alice) gid=1001(alice) groups=1001(alice),500(domain users),7\n";
        let told = identity(output);
        assert_eq!(told.user.as_deref(), Some("alice"));
        assert_eq!(told.uid, Known::Value(1001));
        assert_eq!(told.groups, ["alice", "domain users"]);
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (settings(&bytes), identity(&bytes));
            let _ = counted(&String::from_utf8_lossy(&bytes));
        }
    }
}
