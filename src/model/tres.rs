//! Trackable resources (TRES): what was asked for and what was allocated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Bytes;

/// Resources by name, as in `billing=1,cpu=2,gres/gpu:a100=1,mem=100M,node=1`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tres(pub BTreeMap<String, String>);

impl Tres {
    /// Reads the comma list; entries without `=` are kept with an empty value.
    pub fn parse(text: &str) -> Self {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        Self(
            entries
                .map(|entry| entry.split_once('=').unwrap_or((entry, "")))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// The value of one resource as printed.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A countable resource such as `cpu` or `node`.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// Host memory; a bare number is MiB.
    pub fn memory(&self) -> Option<Bytes> {
        Bytes::parse(self.get("mem")?, Bytes::MIB).ok()
    }

    /// GPUs: the generic entry where there is one, else the sum over types; never both.
    /// `None` when the list names no GPU at all, which is not the same as zero.
    pub fn gpus(&self) -> Option<u64> {
        self.count("gres/gpu").or_else(|| {
            let typed = self.0.iter().filter(|(name, _)| name.starts_with("gres/gpu:"));
            let counts: Vec<u64> = typed.filter_map(|(_, value)| value.parse().ok()).collect();
            if counts.is_empty() { None } else { Some(counts.iter().sum()) }
        })
    }

    /// Generic resources by name and type. The sum over types is left out where these are told: it
    /// says the same again.
    pub fn devices(&self) -> Vec<(&str, Option<&str>, u64)> {
        let all = self.0.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("gres/")?;
            let (name, kind) = match name.split_once(':') {
                Some((name, kind)) => (name, Some(kind)),
                None => (name, None),
            };
            Some((name, kind, value.parse().ok()?))
        });
        let mut all: Vec<(&str, Option<&str>, u64)> = all.collect();
        let typed: Vec<&str> =
            all.iter().filter(|(_, kind, _)| kind.is_some()).map(|(name, ..)| *name).collect();
        all.retain(|(name, kind, _)| kind.is_some() || !typed.contains(name));
        all
    }

    /// The type of the GPUs; of several types all, with `+` between them.
    pub fn gpu_type(&self) -> Option<String> {
        let typed = self.0.iter().filter(|(_, count)| *count != "0");
        let types: Vec<&str> =
            typed.filter_map(|(name, _)| name.strip_prefix("gres/gpu:")).collect();
        (!types.is_empty()).then(|| types.join("+"))
    }

    /// Whether anything is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_once_each() {
        let tres = Tres::parse("cpu=2,gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1,gres/shard=4");
        let (a100, v100) = (("gpu", Some("a100"), 2), ("gpu", Some("v100"), 1));
        assert_eq!(tres.devices(), [a100, v100, ("shard", None, 4)]);
        assert_eq!(Tres::parse("gres/gpu=3,mem=1G").devices(), [("gpu", None, 3)]);
    }

    #[test]
    fn typed_and_generic_gpus_are_never_added() {
        let gpus = |text: &str| Tres::parse(text).gpus();
        assert_eq!(gpus("cpu=2,gres/gpu:a100=2,gres/gpu=2,mem=8000M"), Some(2));
        assert_eq!(gpus("gres/gpu:a100=2,gres/gpu:nvidia_a100-sxm4-80gb=1"), Some(3));
        assert_eq!(gpus("cpu=2,mem=1G"), None);
        assert_eq!(Tres::parse("cpu=2,mem=8000M").memory(), Some(Bytes(8000 * Bytes::MIB)));
    }
}
