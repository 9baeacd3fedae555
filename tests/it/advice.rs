//! Advice about where a job can run holds when it is followed, and no number promises too much.
//!
//! On the demo cluster (`fixtures/demo/make-cluster`): ada's jobs hold the 6 GPUs that QOS `gpucap`,
//! which is that of partition `gpu`, allows one user. Free there are 4 GPUs of gpu05, 3 of gpu06 and 2
//! of gpu01; only gpu01 is in `gpu-long`, too, which has no such limit. The 2 A100s and 2 V100s of mix01
//! are in `mix` alone, which takes no job from this host. Account physics may have 512 cores, its jobs
//! have 121.

use crate::run::{Shown, Test};

fn demo(name: &str, args: &[&str]) -> Shown {
    let test = Test::new(name).env("COLUMNS", "80");
    test.run(&[&["--demo"], args].concat())
}

#[test]
fn all_that_is_in_the_way_is_told_beside_the_first_remedy() {
    let shown = demo("advice-all", &["where", "-N", "2", "-g", "a100:4", "-t", "1d", "-p", "gpu"]);
    shown
        .ends(1)
        .says("--time below 05:59:59 starts before it")
        .says("also: 8 GPUs are more than the 6 that one user may have at once")
        .says("at most 6 GPUs, of which your running jobs hold 6");
    // Followed, nothing new comes up.
    let followed =
        demo("advice-all", &["where", "-N", "2", "-g", "a100:3", "-t", "5:59:00", "-p", "gpu"]);
    followed.ends(1).says("6 of 6 GPUs are held by your running jobs");
    assert!(!followed.stdout.contains("also:"), "{}", followed.all());
}

#[test]
fn what_is_yours_is_what_limits_and_closed_partitions_leave() {
    let status = demo("advice-yours", &["status", "--json"]).json();
    assert_eq!(status["yours"]["gpus_free"], 2);
    // 512 - 121 = 391 for physics, and the 60 of mig01, which teaching is charged for.
    assert_eq!(
        (status["yours"]["cpus_free"].as_u64(), &status["limited"]),
        (Some(451), &true.into())
    );
    let queues = status["queues"].as_array().expect("queues");
    let gpu = queues.iter().find(|queue| queue["name"] == "gpu").expect("there");
    assert_eq!(
        (gpu["nodes"]["gpus_free"].as_u64(), gpu["gpus_left"]["amount"].as_u64()),
        (Some(9), Some(0))
    );
    demo("advice-yours", &["status"])
        .ends(0)
        .says("451 of 1760 cores free, 2 of 23 GPUs")
        .says("not within your limits")
        .says("gpu: of 9 free GPUs limits leave you 0 (QOS gpucap MaxTRESPerUser)");
    let gpus = demo("advice-yours", &["gpus", "--json"]).json();
    let models = gpus["models"].as_array().expect("models");
    let yours = |name: &str| {
        let model = models.iter().find(|model| model["name"] == name).expect("there");
        (model["yours"].as_u64(), model["free"].as_u64())
    };
    assert_eq!(yours("A100"), (Some(2), Some(11)));
    assert_eq!(yours("V100"), (Some(0), Some(2)));
}

#[test]
fn a_script_that_names_a_partition_is_told_of_others_that_would_take_it() {
    let test = Test::new("advice-script");
    test.file(
        "work/run.sh",
        b"#!/bin/bash\n#SBATCH -p gpu --tiem=3\n#SBATCH -N2 --gpus-per-node=a100:4 -t 4:00:00\nsrun x\n",
    );
    let shown = test.run(&["--demo", "where", "--script", "run.sh"]);
    shown
        .ends(1)
        .says("gpu was named by the script; by rules and nodes gpu-long would take it")
        .says("line 2 of the script: 'tiem' is not an option of sbatch itself: sbatch refuses");
    let json = test.run(&["--demo", "where", "--script", "run.sh", "--json"]).json();
    assert_eq!(json["elsewhere"], serde_json::json!(["gpu-long"]));
}

#[test]
fn what_fits_needs_no_cure() {
    let args = ["where", "--what-if", "--declared", "-g", "a100:2", "-t", "4h", "--json"];
    let json = demo("advice-cure", &args).json();
    assert_eq!(json["placements"][0]["because"], "fits now");
    assert_eq!(json["changes"], serde_json::Value::Null);
}

#[test]
fn options_that_sbatch_reads_otherwise_are_told() {
    let args = ["where", "--declared", "-N", "2", "--gpus", "4", "--mem", "64"];
    demo("advice-options", &args)
        .says("2 nodes, 1 CPU on each, 4 GPUs on each, 64G per node")
        .says("4 on each of 2, 8 in all; that of sbatch counts all")
        .says("--mem 64 is read as 64G; sbatch reads a bare number as MiB");
    let plain = demo("advice-options", &["where", "--declared", "--gpus", "4", "--mem", "64G"]);
    assert!(!plain.all().contains("sbatch reads") && !plain.all().contains("counts all"));
}

#[test]
fn help_says_that_dry_runs_are_made_and_how_to_do_without() {
    let test = Test::new("advice-help");
    for command in ["status", "queues", "where", "check"] {
        let help = test.run(&[command, "--help"]);
        help.ends(0).says("at most 150 times and 3 at a time").says("Each takes a job id");
        help.says("--declared");
    }
}

#[test]
fn what_is_near_is_shown_before_what_has_not_the_hardware() {
    // mix01 has two free A100s, and only the host is wrong: that is worth knowing.
    let near = demo("advice-near", &["where", "--declared", "-g", "a100:2", "-t", "1h"]);
    near.says("BLOCKED mix").says("6 WRONG HW").says("FITS: nodes with room now/needed");
    let rows = near.stdout.lines().filter(|line| line.starts_with("WRONG HW"));
    assert_eq!(rows.count(), 0, "{}", near.all());
    assert!(!near.stdout.contains("ACCESS"), "{}", near.all());
    // Nobody knows is not nowhere.
    let unsure = demo("advice-near", &["where", "-g", "2", "--gpu-mem", "80G"]);
    unsure.ends(1).says("not known whether in gpu-long");
    assert!(!unsure.stdout.contains("NOWHERE"), "{}", unsure.all());
    let none = demo("advice-near", &["where", "-g", "h100:1"]);
    none.ends(1).says("gpu, gpu-long and mig: no GPU of type h100 (node Gres)");
}

#[test]
fn hints_name_what_can_be_typed_and_no_code_is_cut() {
    demo("advice-hints", &["where", "-t", "99x"]).ends(64).fails_with(
        "--time: '99x' is not understood",
        "a time limit such as 90 (minutes), 2:30:00 or 1-12 (days-hours) is expected",
    );
    demo("advice-hints", &["zoom", "11"]).ends(1).fails_with(
        "there is no partition, node or job '11' here",
        "only jobs that run or wait are here; of others: jobwise job ID",
    );
    let queues = demo("advice-hints", &["queues"]);
    queues.ends(0).says("ACCOUNT_NOT_ALLOWED").says("SUBMIT_HOST_NOT_ALLOWED");
    assert!(!queues.stdout.contains('…'), "{}", queues.all());
}
