//! Runs the real program the way a person does: with clients, files and an environment of its own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub(crate) const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
/// Outputs recorded from real clusters.
pub(crate) const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// A machine of its own: `bin` is its whole `PATH`, `work` its users' folder, `home` its home.
pub(crate) struct Test {
    pub(crate) root: PathBuf,
    env: Vec<(String, String)>,
    wrapper: Vec<String>,
}

/// What a run showed.
pub(crate) struct Shown {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The exit code; that of a shell where a signal ended it.
    pub(crate) code: i32,
    pub(crate) took: Duration,
}

/// Before each client: where its answers are; `say FILE` and `say_cells COLUMNS` with the shell's own
/// means; each call is written down where that is asked for.
const HEADER: &str = r#"#!/bin/sh
me=${0##*/} answers=${0%/bin/*}/answers
say() { while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$answers/$1"; }
[ -z "$CALLS" ] || printf '%s %s\n' "$me" "$*" >>"$CALLS"
say_cells() {
    names=${1%% *} IFS=, row=
    for name in $names; do
        cell=; [ ! -f "$answers/cells/$name" ] || IFS= read -r cell <"$answers/cells/$name"
        row="$row@~@$cell"
    done
    printf '%s\n' "${row#@~@}"
}
# The rows of an answer in other columns than those that it is kept in.
say_columns() {
    IFS= read -r kept <"$answers/columns" || :
    wanted=${2%% *} IFS=,
    say "$1" | while IFS= read -r line; do
        for name in $kept; do
            eval "cell_$name=\${line%%@~@*}"
            line=${line#*@~@}
        done
        row=
        for name in $wanted; do eval "row=\$row@~@\$cell_$name"; done
        printf '%s\n' "${row#@~@}"
    done
}
pause() { PATH=/usr/bin:/bin sleep "$1"; }
"#;

impl Test {
    /// A machine without any scheduler.
    pub(crate) fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("jobwise-it-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for folder in ["bin", "answers", "work", "home"] {
            fs::create_dir_all(root.join(folder)).expect("made");
        }
        let mut test = Self { root, env: Vec::new(), wrapper: Vec::new() };
        for (name, folder) in [("PATH", "bin"), ("HOME", "home"), ("JOBWISE_HOME", "home/cache")] {
            let folder = test.path(folder).display().to_string();
            test = test.env(name, &folder);
        }
        test.env("LANG", "C.UTF-8").env("TZ", "UTC")
    }

    /// A machine with the clients of Slurm 22.05, whose accounting knows job 67, killed for its
    /// memory, and whose controller has forgotten it. Its log lies in `work`.
    pub(crate) fn slurm(name: &str) -> Self {
        let test = Self::new(name);
        test.answer("fields", &fixture("slurm-22.05/sacct-helpformat.txt"));
        test.answer("columns", COLUMNS);
        test.record("67", &fixture("slurm-22.05/sacct-oom.txt"));
        test.answer("partition", &fixture("slurm-22.05/scontrol-partition-gpu.txt"));
        test.answer("sizes", &fixture("slurm-22.05/sinfo-gpu.txt"));
        test.client("sacct", SACCT);
        test.client("scontrol", SCONTROL);
        test.client("sinfo", "say sizes");
        test.answer("qos", "normal|50|||||||||||||||||||\n");
        test.client("sacctmgr", "say qos");
        test.client("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
        test.file("work/oom-67_4294967294.out", OOM_LOG.as_bytes());
        test
    }

    /// Below the test's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Puts a client in place: a shell script.
    pub(crate) fn client(&self, program: &str, body: &str) {
        let path = self.path("bin").join(program);
        let _ = fs::remove_file(&path);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(path)
            .expect("made");
        file.write_all([HEADER, body, "\n"].concat().as_bytes()).expect("written");
    }

    /// What clients print with `say`; paths of the recorded cluster become those of this test.
    pub(crate) fn answer(&self, name: &str, text: &str) {
        let work = self.path("work").display().to_string();
        self.file(&format!("answers/{name}"), text.replace("/home/alice", &work).as_bytes());
    }

    /// Puts the record of a job in place: as a query by id prints it, and its first row cell by
    /// cell, so that a list of whatever columns can be printed.
    /// The job is that of whoever runs the test, whose files its logs are.
    pub(crate) fn record(&self, id: &str, rows: &str) {
        let owner = fs::metadata(&self.root).expect("there").uid();
        self.record_of(owner, id, rows);
    }

    /// The same for a job of the user with this id.
    pub(crate) fn record_of(&self, owner: u32, id: &str, rows: &str) {
        let at = COLUMNS.split(',').position(|name| name == "UID").expect("a column");
        let own = |row: &str| {
            let mut cells: Vec<String> = row.split("@~@").map(str::to_owned).collect();
            if let Some(cell) = cells.get_mut(at).filter(|cell| !cell.is_empty()) {
                *cell = owner.to_string();
            }
            cells.join("@~@")
        };
        let rows = &rows.split('\n').map(own).collect::<Vec<_>>().join("\n");
        self.answer(id, rows);
        let allocation = rows.lines().next().unwrap_or_default();
        for (name, cell) in COLUMNS.split(',').zip(allocation.split("@~@")) {
            self.answer(&format!("cells/{name}"), cell);
        }
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, bytes).expect("written");
        path
    }

    /// Sets a variable of the environment, which has nothing but what is set.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Unsets one.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// Runs the program under another one.
    pub(crate) fn under(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Runs as somebody who may not read everything; `None`, with a word why, where this test may
    /// not become somebody else.
    pub(crate) fn unprivileged(self) -> Option<Self> {
        if fs::metadata("/proc/self").map(|me| std::os::unix::fs::MetadataExt::uid(&me)).ok()
            != Some(0)
        {
            eprintln!("skipped: only root can become another user");
            return None;
        }
        // The build folder may be closed to others.
        let program = self.path("jobwise");
        fs::copy(JOBWISE, &program).expect("copied");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        Some(self.under(&["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]))
    }

    /// The command, ready to start.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let copy = self.path("jobwise");
        let program = if copy.exists() { copy } else { JOBWISE.into() };
        let mut words = self.wrapper.iter().map(PathBuf::from).chain([program]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).args(args).env_clear().envs(self.env.iter().cloned());
        command.current_dir(self.path("work")).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Shown {
        let begun = Instant::now();
        let output = self.command(args).output().expect("started");
        let shown = Shown {
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
            code: output.status.code().unwrap_or(128),
            took: begun.elapsed(),
        };
        assert_ne!(shown.code, 70, "{}", shown.all());
        shown
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Shown {
    /// Everything, for messages of tests.
    pub(crate) fn all(&self) -> String {
        let Self { stdout, stderr, code, took } = self;
        format!("exit {code} after {took:?}\n-- stdout\n{stdout}\n-- stderr\n{stderr}")
    }

    /// Ended with this code, in the time that people wait.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}", self.all());
        assert!(self.took < Duration::from_secs(30), "{}", self.all());
        self
    }

    /// The answer says this; lines may be wrapped anywhere.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Self {
        assert!(flat(&self.stdout).contains(&flat(words)), "no '{words}' in\n{}", self.all());
        self
    }

    /// There is no answer, but a message and a hint.
    #[track_caller]
    pub(crate) fn fails_with(&self, message: &str, hint: &str) -> &Self {
        assert_eq!(self.stdout, "", "{}", self.all());
        assert_eq!(self.stderr, format!("jobwise: {message}\nhint: {hint}\n"), "{}", self.all());
        self
    }

    /// The answer as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}", self.all()))
    }
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A recorded output.
pub(crate) fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(FIXTURES).join(name)).expect("a fixture")
}

const SACCT: &str = r#"case "$*" in
    *--helpformat*) say fields ;;
    *--version*) echo "slurm 22.05.8" ;;
    *--batch-script*) [ ! -f "$answers/script" ] || say script ;;
    *--jobs=*) ids=${*##*--jobs=}; format=${*##*--format=} IFS=,
        for id in $ids; do
            [ -f "$answers/$id" ] || continue
            say_columns "$id" "${format%% *}"
        done ;;
    *--format=*) say_cells "${*##*--format=}" ;;
esac"#;
/// The columns of the recorded queries by id.
pub(crate) const COLUMNS: &str = "JobID,JobIDRaw,State,ExitCode,DerivedExitCode,User,UID,Account,Cluster,\
    Partition,QOS,Reason,Submit,Eligible,Start,End,Elapsed,Timelimit,ReqMem,NNodes,AllocCPUS,ReqTRES,\
    AllocTRES,NodeList,TotalCPU,NTasks,MaxRSS,MaxRSSNode,Constraints,WorkDir,JobName,Comment,SubmitLine";
const SCONTROL: &str = r#"case "$*" in
    *partition*) say partition ;;
    *) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
esac"#;
/// As Slurm 22.05 wrote it for such a job.
pub(crate) const OOM_LOG: &str = "slurm_script: line 7:  5651 Killed                  python3 train.py
slurmstepd-c04: error: Detected 1 oom-kill event(s) in StepId=67.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.
";
