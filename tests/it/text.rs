//! `jobwise diagnose --text`: what a submission command printed, or a piece of a log, is enough.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::run::Test;

fn diagnose(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_jobwise"))
        .arg("diagnose")
        .args(arguments)
        .env("JOBWISE_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("jobwise runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that does not read its input may be gone already.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_refusal_is_named_with_the_option_to_change() {
    // What Slurm 22.05 printed for `sbatch --qos=strict -t 2:00:00`.
    let text = "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n";
    let output = diagnose(&["--text", "-", "--json"], text.as_bytes());
    assert_eq!(output.status.code(), Some(0));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let diagnosis = &answer["diagnoses"][0];
    assert_eq!(diagnosis["verdict"]["causes"][0]["family"], "submit_time_limit");
    assert_eq!(diagnosis["verdict"]["causes"][0]["evidence"][0]["place"]["line"], 1);
    let steps = diagnosis["fix"]["steps"][0].as_str().expect("a step");
    assert!(steps.contains("--time"), "{steps}");

    let given = diagnose(&["--text", "sbatch: error: Invalid --time specification"], b"");
    let told = String::from_utf8(given.stdout).expect("text");
    assert!(told.starts_with("text without a record\n"), "{told}");
    assert!(told.contains("(submit_script)"), "{told}");
}

#[test]
fn a_text_that_tells_nothing_is_unknown_and_no_bytes_harm() {
    let output = diagnose(&["--text", "-"], b"all is well \xff\xfe \x1b[31m\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.contains(&0x1b), "escape sequences go");
    assert_eq!(diagnose(&["--text", "x", "12"], b"").status.code(), Some(64));
}

/// What Slurm 22.05 printed for a slip in each of the three names.
const PARTITION: &str = "sbatch: error: invalid partition specified: gpuu\nsbatch: error: Batch job submission failed: Invalid partition name specified";
const QOS: &str = "$ sbatch --qos=norml -A physics x.sh\nsbatch: error: Batch job submission failed: Invalid qos specification";
const ACCOUNT: &str = "[alice@login1 ~]$ sbatch -A phisics x.sh\nsbatch: error: Batch job submission failed: Invalid account or account/partition combination specified";

/// Partitions as `scontrol --all --oneliner show partition` of Slurm 22.05 prints them, cut down to what
/// says who may use them.
const PARTITIONS: &str = "\
PartitionName=batch AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Hidden=NO RootOnly=NO State=UP
PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Hidden=NO RootOnly=NO State=UP
PartitionName=gpuold AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Hidden=NO RootOnly=NO State=DOWN
";

/// The clients as Slurm 22.05 answered a user.
fn cluster(name: &str) -> Test {
    let test = Test::slurm(name);
    test.client("scontrol", "say partitions");
    test.answer("partitions", PARTITIONS);
    test.client(
        "sacctmgr",
        r#"case "$*" in
    "--readonly --noheader --parsable2 show associations user="*) echo "physics||high,normal" ;;
    *) exit 1 ;;
esac"#,
    );
    let calls = test.path("calls").display().to_string();
    test.env("CALLS", &calls).env("USER", "alice").env("LOGNAME", "alice")
}

#[test]
fn a_name_that_was_refused_meets_the_cluster_s_own_list() {
    let test = cluster("offers");
    let ask = |text: &str| {
        let _ = std::fs::remove_file(test.path("calls"));
        let shown = test.run(&["diagnose", "--text", text]);
        let calls = std::fs::read_to_string(test.path("calls")).unwrap_or_default();
        // The field list, by which the scheduler is found, and the one question.
        assert_eq!(calls.lines().count(), 2, "{calls}");
        shown
    };
    ask(PARTITION).ends(0).says("--partition=gpu instead of gpuu? there are batch, gpu fix");
    ask(QOS).ends(0).says("--qos=normal instead of norml? there are high, normal");
    ask(ACCOUNT).ends(0).says("--account=physics instead of phisics? there are physics");
    // A name that is there was refused for another reason.
    ask(&ACCOUNT.replace("phisics", "physics")).says("--account=physics is there, but not for");
    let answer = test.run(&["diagnose", "--text", PARTITION, "--json"]).json();
    let offer = &answer["diagnoses"][0]["offers"][0];
    assert_eq!((&offer["what"], &offer["nearest"]), (&"partition".into(), &"gpu".into()));
}

#[test]
fn a_text_has_no_job() {
    let answer =
        Test::new("text-null").run(&["diagnose", "--text", "CUDA out of memory", "--json"]);
    let job = &answer.json()["diagnoses"][0]["job"];
    for name in ["id", "name", "state", "exit"] {
        assert!(job[name].is_null(), "{name}: {job}");
    }
}

#[test]
fn a_partition_that_lets_the_user_not_in_is_no_offer() {
    let test = cluster("offers-gated");
    let queue = |name: &str, rules: &str| {
        format!("PartitionName={name} AllowGroups=ALL Hidden=NO RootOnly=NO {rules} State=UP\n")
    };
    let open = "AllowAccounts=ALL AllowQos=ALL";
    // The user has the account physics with the QOS high and normal.
    let all = [
        queue("batch", open),
        queue("gpux", "AllowAccounts=chem AllowQos=ALL"),
        queue("gpuy", "AllowAccounts=ALL AllowQos=debug"),
        queue("gpuz", "DenyAccounts=physics AllowQos=ALL"),
        queue("gpu1", &format!("{open} ReqResv=YES")),
        queue("gpu2", open).replace("AllowGroups=ALL", "AllowGroups=staff"),
        queue("gpu3", open).replace("RootOnly=NO", "RootOnly=YES"),
        queue("gpu4", "AllowAccounts=physics AllowQos=high"),
    ];
    test.answer("partitions", &all.concat());
    let shown = test.run(&["diagnose", "--text", PARTITION]);
    shown.ends(0).says("--partition=gpu4 instead of gpuu? there are batch, gpu4 fix");
    // What the command names counts, not what else could be charged.
    let pasted = format!("$ sbatch -A physics --qos=normal -p gpuu x.sh\n{PARTITION}");
    test.run(&["diagnose", "--text", &pasted]).ends(0).says("there are batch fix");
}

#[test]
fn a_list_that_cannot_be_asked_for_is_told() {
    let test = cluster("offers-refused");
    test.client("sacctmgr", "echo 'sacctmgr: error: Problem talking to the database' >&2; exit 1");
    test.run(&["diagnose", "--text", QOS])
        .ends(0)
        .says("warning: which QOS there are could not be asked: ")
        .says("Problem talking to the database");
    // What names none of the three asks nothing.
    let _ = std::fs::remove_file(test.path("calls"));
    test.run(&["diagnose", "--text", "CUDA out of memory"]);
    assert!(!test.path("calls").exists());
    // Where there is no scheduler, nobody misses the list.
    let alone = Test::new("offers-alone").run(&["diagnose", "--text", PARTITION]);
    alone.ends(0).says("(submit_partition_qos)");
    assert!(!alone.stdout.contains("warning"), "{}", alone.all());
}
