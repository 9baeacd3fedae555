//! Which Slurm this is, as far as its own field list tells.
//!
//! Each release brought fields to `sacct` (release notes of 21.08 to 26.05), so the list that is
//! asked for anyway gives bounds without a process. `sacct --version` is run only where the bounds
//! leave a question open that changes the answer.

use std::fmt;

/// A release of Slurm: year and month, as in 24.05.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u16, pub u16);

impl Version {
    /// Reads the line of `sacct --version`: `slurm 24.11.5`, `slurm-wlm 22.05.8`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        text.split_whitespace().find_map(|word| {
            let mut parts = word.split('.');
            let year = parts.next()?.parse().ok()?;
            Some(Self(year, parts.next()?.parse().ok()?))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:02}.{:02}", self.0, self.1))
    }
}

/// Fields of `sacct` and the release that brought them.
const MARKS: [(&str, Version); 6] = [
    ("SubmitLine", Version(21, 8)),
    ("FailedNode", Version(23, 2)),
    ("StdOut", Version(24, 5)),
    ("Restarts", Version(24, 11)),
    ("SegmentSize", Version(25, 5)),
    ("OriginalSLUID", Version(26, 5)),
];

/// What is known about the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// It is this one or later; `None` when it may be any old one.
    pub at_least: Option<Version>,
    /// It is earlier than this one; `None` when it may be the newest.
    pub before: Option<Version>,
}

impl Release {
    /// Bounds from the fields that `sacct` has.
    pub fn from_fields(has: impl Fn(&str) -> bool) -> Self {
        let newest = MARKS.iter().rposition(|(field, _)| has(field));
        let next = newest.map_or(0, |index| index + 1);
        Self {
            at_least: newest.map(|index| MARKS[index].1),
            before: MARKS.get(next).map(|(_, version)| *version),
        }
    }

    /// The release that `sacct --version` named.
    pub fn exact(version: Version) -> Self {
        Self { at_least: Some(version), before: Some(Version(version.0, version.1 + 1)) }
    }

    /// Whether it is earlier than `version`; `None` when the bounds do not tell.
    pub fn is_before(self, version: Version) -> Option<bool> {
        if self.before.is_some_and(|before| before <= version) {
            Some(true)
        } else if self.at_least.is_some_and(|at_least| at_least >= version) {
            Some(false)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_list_bounds_the_release() {
        let with = |fields: &[&str]| Release::from_fields(|name| fields.contains(&name));
        let old = with(&[]);
        assert_eq!((old.at_least, old.before), (None, Some(Version(21, 8))));
        // The fields of the recorded 24.11.5.
        let middle = with(&["SubmitLine", "FailedNode", "StdOut", "Restarts"]);
        assert_eq!((middle.at_least, middle.before), (Some(Version(24, 11)), Some(Version(25, 5))));
        assert_eq!(middle.is_before(Version(25, 11)), Some(true));
        let open = with(&["SubmitLine", "FailedNode", "StdOut", "Restarts", "SegmentSize"]);
        assert_eq!(open.is_before(Version(25, 11)), None);
        assert_eq!(with(&["OriginalSLUID"]).is_before(Version(25, 11)), Some(false));
    }

    #[test]
    fn the_version_line_is_read_with_and_without_the_distribution_s_name() {
        // `sacct -V` of Debian's 22.05 and of SchedMD's packages.
        assert_eq!(Version::parse(b"slurm-wlm 22.05.8\n"), Some(Version(22, 5)));
        assert_eq!(Version::parse(b"slurm 25.11.0-0rc1\n"), Some(Version(25, 11)));
        assert_eq!(Version::parse(b"sacct: unknown option\n"), None);
        assert_eq!(Release::exact(Version(25, 5)).is_before(Version(25, 11)), Some(true));
        assert_eq!(Release::exact(Version(25, 11)).is_before(Version(25, 11)), Some(false));
    }
}
