//! The commands about nodes and partitions, on the demo cluster and on machines whose clients fail.
//! What the demo holds, and why, stands in `fixtures/demo/make-cluster`.
//!
//! Where each case of Slurm stands that this part was specified by, and each thing that nodetop 0.7.0
//! gets wrong; a test proves that the tests are there.
//!
//! | case | test |
//! |---|---|
//! | 1, 2 memory exhausted; below the default of one core | `cores_without_memory_cannot_be_had` |
//! | 3 memory not given out | `memory_that_is_not_given_out_holds_nobody_up` |
//! | 4 stranded GPUs | `gpus_without_a_core_are_stranded` |
//! | 5 to 10 not responding, planned, powered, completing, rebooting, reserved, unknown words | `each_state_has_its_class`, `only_what_takes_work_now_gives_something`, `whose_a_reservation_is_decides` |
//! | 11 records that break off, words in a reason | `a_record_that_breaks_off_gives_nothing`, `a_reason_that_looks_like_a_record_renames_nothing` |
//! | 12, 13 counts and types of GPUs | `gpus_are_counted_once_and_their_type_is_no_number`, `gpus_that_only_the_details_know_are_not_free` |
//! | 14 slices | `slices_are_counted_apart_from_gpus`, `a_slice_has_the_memory_of_its_profile` |
//! | 15 memory of a model | `features_name_what_an_untyped_device_is`, `names_that_disagree_pin_no_memory`, `a_word_that_names_no_model_names_none` |
//! | 16, 17 dead and draining partitions | `a_dead_partition_tells_all_that_closes_it`, `the_state_of_a_partition_decides_first`, `idle_nodes_of_a_dead_partition_are_told_and_not_counted` |
//! | 18 limits of a QOS, with what is used | `one_job_may_have_only_so_much`, `what_is_in_use_counts_against_a_user_s_limit` |
//! | 19, 20 two voices in a dry run | `a_filter_and_the_scheduler_are_read_apart`, `what_slurm_says_is_understood`, `check_shows_what_the_scheduler_overlooks` |
//! | 21 a refusal is no RUN NOW | `no_refusal_is_followed_by_run_now` |
//! | 22 the scheduler's own start | `a_start_that_the_scheduler_names_is_told_as_its_own` |
//! | 23 the account that works | `the_account_that_works_is_found_among_many`, `the_line_to_submit_says_what_made_it_work` |
//! | 24 accounting down | `a_part_that_fails_is_told_beside_the_rest`, `what_could_not_be_checked_is_not_allowed` |
//! | 25 one account denied, another not | `an_account_may_open_what_another_cannot` |
//! | 31 queries that fail | `an_error_is_not_an_answer`, `a_part_that_fails_is_told_beside_the_rest` |
//! | 32 snapshots of others | `a_snapshot_of_nodetop_is_read_and_promises_nothing`, `a_query_in_other_words_finds_its_answer`, `a_snapshot_answers_like_the_cluster_and_names_nobody_where_that_is_asked` |
//! | 33 host lists | `lists_expand_as_scontrol_does`, `a_huge_list_is_refused_before_it_is_built` |
//! | 34 ten thousand nodes | `benches/capacity.rs` |
//!
//! Cases 26 to 30 are of other schedulers.
//!
//! | nodetop 0.7.0 | test of ours |
//! |---|---|
//! | W1 RUN NOW after a refusal | `no_refusal_is_followed_by_run_now` |
//! | W2 line without the account | `the_line_to_submit_says_what_made_it_work` |
//! | W3 line for what cannot run | `hardware_that_is_too_small_too_few_or_not_identified_is_told_apart` |
//! | W4, W6 unreachable, completing, planned, unknown are free | `each_state_has_its_class`, `what_nobody_can_have_is_not_free` |
//! | W5 stranded GPUs are free | `gpus_without_a_core_are_stranded` |
//! | W7 use of GPUs from one field | `gpus_that_only_the_details_know_are_not_free` |
//! | W8 set-apart cores, mixed GPUs, slices | `cores_and_memory_of_the_system_are_no_jobs`, `kinds_are_counted_apart_and_what_is_not_identified_counts_for_no_ability`, `a_slice_has_the_memory_of_its_profile` |
//! | W9 amounts misread | `one_job_may_have_only_so_much`, `typed_and_generic_gpus_are_never_added`, `memory_suffixes_are_binary` |
//! | W10 gates that are not looked at | `a_qos_must_be_mine_and_taken_here`, `groups_root_and_hosts_keep_people_out`, `a_shape_has_to_fit_the_partition_s_own_limits`, `where_nodes_are_given_whole_a_part_is_nothing`, `a_job_that_names_no_memory_takes_the_default`, `a_reservation_that_comes_bounds_the_time`, `an_account_s_limits_hold_for_all_its_jobs`, `minutes_run_out`, `a_qos_s_minutes_run_out_too`, `licences_are_counted`, `a_busy_licence_is_a_wait_and_one_too_many_is_refused`, `no_time_limit_is_more_than_any`, `a_usage_factor_counts_for_what_is_to_run_only_where_it_is_safe`, `a_reservation_of_some_cores_has_those_and_no_more`, `jobs_that_wait_in_front_are_counted` |
//! | W11 accounts and clusters mixed up | `an_account_may_open_what_another_cannot`, `an_account_that_is_not_mine_is_refused`, `a_right_on_another_cluster_is_none_here` |
//! | W12 a QOS closes a partition | `a_refusal_for_the_quality_of_service_alone_does_not_close_a_queue` |
//! | W13 sums of what is closed | `nodes_and_partitions_add_up` |
//! | W14 the last job's end | `a_job_starts_when_enough_has_come_free_and_not_when_all_has` |
//! | W19 what was not asked runs now | `where_nobody_can_be_asked_nothing_is_promised`, `dry_runs_are_counted_and_bounded` |
//! | W20, W22, W23 snapshots without jobs, identity, zone, dry runs | `a_snapshot_answers_like_the_cluster_and_names_nobody_where_that_is_asked`, `a_snapshot_of_nodetop_is_read_and_promises_nothing` |
//! | W24 rows that cannot be reached | `every_row_can_be_reached` |
//! | W25, W26 age not told, asked on each look | `access_is_asked_once_in_a_quarter_of_an_hour_and_its_age_is_told` |
//! | W27 hidden refusals, no year | `no_refusal_is_followed_by_run_now`, `a_start_that_the_scheduler_names_is_told_as_its_own` |
//! | W29 JSON without schema, errors as text | `each_command_answers_in_text_and_in_json`, `an_error_is_a_document_too` |
//!
//! W21 and the screens of W24 are of a dashboard, W28 of a protocol: those have tests of their own.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::run::Test;

const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["status", "--all"],
    &["queues", "--all"],
    &["queues", "--detail", "--all"],
    &["queues", "-q", "gpu,biology"],
    &["queues", "--unusable-only"],
    &["zoom", "gpu,cn02,3100002"],
    &["zoom", "3100013"],
    &["nodes", "--all"],
    &["nodes", "--gpu", "--free", "-p", "gpu", "--top", "3", "--sort", "name"],
    &["health"],
    &["exclude", "--gpu-nodes", "--unschedulable", "--degraded"],
    &["backends"],
];

fn demo(args: &[&str]) -> crate::run::Shown {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("capacity-{}", RUNS.fetch_add(1, Ordering::Relaxed));
    Test::new(&name).env("COLUMNS", "80").run(&[&["--demo"], args].concat())
}

#[test]
fn each_command_answers_in_text_and_in_json() {
    for args in COMMANDS {
        let shown = demo(args);
        shown.ends(0);
        assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.all());
        let is_list = args[0] == "exclude";
        let width = |line: &str| line.chars().count();
        let long = shown.stdout.lines().find(|line| width(line) > 80);
        assert!(is_list || long.is_none(), "{args:?}: {long:?}");
        let again = demo(args);
        assert_eq!(again.stdout, shown.stdout, "{args:?}: same input, same bytes");
        let document = demo(&[args, &["--json"][..]].concat()).ends(0).json();
        assert_eq!(document["schema"], format!("jobwise/{}/1", args[0]), "{args:?}");
        let ascii = demo(&[args, &["--ascii"][..]].concat());
        assert!(ascii.stdout.is_ascii(), "{}", ascii.all());
    }
}

/// A cluster whose names and numbers are as long as they come: 400 nodes of 256 cores, 2 TiB and eight
/// GPUs, and one job of all of them.
fn wide(name: &str) -> Test {
    let test = machine(name, &[]);
    let queues =
        ["a_partition_with_a_very_long_name_indeed", "another_partition_of_the_same_site_gpu"];
    let node = |number: u32| {
        format!(
            "NodeName=compute-rack-a-node-{number:04} CPUAlloc=128 CPUEfctv=256 CPUTot=256 CPULoad=250.11 \
             RealMemory=2000000 AllocMem=1000000 FreeMem=10 Gres=gpu:nvidia_h100_80gb_hbm3:8 \
             AllocTRES=cpu=128,mem=1000000M,gres/gpu=4 State=MIXED{} ActiveFeatures=intel,sapphire_rapids,\
             infiniband_hdr200 Partitions={}{}\n",
            if number == 7 { "+DRAIN" } else { "" },
            queues.join(","),
            if number == 7 {
                " Reason=the_fan_of_the_second_power_supply_is_out_again [root@1796000000]"
            } else {
                ""
            },
        )
    };
    test.answer("nodes", &(1..=400).map(node).collect::<String>());
    let all = "compute-rack-a-node-[0001-0400]";
    let queue = |name: &&str| {
        format!("PartitionName={name} Nodes={all} TotalNodes=400 State=UP MaxTime=365-00:00:00\n")
    };
    test.answer("partitions", &queues.iter().map(queue).collect::<String>());
    let cells = [
        "123456789_1000",
        "a.user.with.a.long.login.name",
        "an_account_with_a_long_name",
        queues[0],
        "normal",
        "RUNNING",
        all,
        "400",
        "51200",
        "cpu=51200,mem=400000000M,node=400,billing=51200,gres/gpu=1600",
        "1795990000",
        "1827600000",
        "365-00:00:00",
        "None",
        "4294901555",
        "(null)",
        "OK",
        "(null)",
        "",
        "a name of a job that says all that there is to say about it",
    ];
    let row = format!("{}@~@", cells.join("@~@"));
    test.client("squeue", &format!("printf '%s\\n' '{row}'"));
    test.client(
        "sbatch",
        &format!("echo 'sbatch: Job 5 to start at 1 using 9 processors on nodes {all} in partition x' >&2"),
    );
    test
}

/// Nothing is wider than the terminal that it is printed on; what a program reads is never cut.
#[test]
fn nothing_is_wider_than_the_terminal() {
    let queue = "a_partition_with_a_very_long_name_indeed";
    let of_demo: Vec<Vec<&str>> =
        COMMANDS.iter().map(|args| [&["--demo"], *args].concat()).collect();
    let here: Vec<Vec<&str>> = [
        &[
            "where",
            "-N",
            "4",
            "-c",
            "16",
            "-g",
            "nvidia_h100_80gb_hbm3:4",
            "--mem",
            "100G",
            "-C",
            "sapphire_rapids",
        ][..],
        &["where", "-N", "400", "--what-if", "--all"],
        &["check", "-c", "4"],
        &["status", "--all"],
        &["queues"],
        &["queues", "--detail"],
        &["nodes"],
        &["gpus"],
        &["health"],
        &["zoom", queue],
        &["zoom", "compute-rack-a-node-0003"],
        &["zoom", "123456789_1000"],
        &["backends"],
    ]
    .map(<[&str]>::to_vec)
    .to_vec();
    let own = [
        &["--demo", "where", "-c", "4"][..],
        &["--demo", "where", "-g", "1", "--what-if"],
        &["--demo", "gpus"],
    ];
    let test = wide("wide");
    let commands = of_demo.into_iter().chain(here).chain(own.map(<[&str]>::to_vec));
    for args in commands.filter(|args| !args.contains(&"exclude")) {
        for width in [60, 80] {
            let shown =
                test.command(&args).env("COLUMNS", width.to_string()).output().expect("it runs");
            let text = String::from_utf8(shown.stdout).expect("text");
            assert!(!text.is_empty(), "{args:?}");
            let long = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(long, None, "{args:?} at {width}:\n{text}");
        }
    }
    // In a pipe all is there, in one piece.
    let piped = test.run(&["queues"]);
    assert!(piped.stdout.lines().any(|line| line.starts_with(queue)), "{}", piped.all());
    let shape = &["where", "-N", "4", "-c", "16", "-g", "4", "-C", "sapphire_rapids"];
    let line = |shown: &str| {
        shown.lines().find(|line| line.contains("sbatch --partition")).map(str::to_owned)
    };
    let whole = line(&test.run(shape).stdout).expect("a line to submit");
    // A shell reads the broken line as it reads the whole.
    let narrow = test.command(shape).env("COLUMNS", "60").output().expect("it runs");
    let narrow = String::from_utf8(narrow.stdout).expect("text").replace(" \\\n   ", "");
    assert_eq!(line(&narrow), Some(whole));
}

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn nodes_and_partitions_add_up() {
    let status = demo(&["status", "--json"]).json();
    let sum = |value: &Value| value.as_object().expect("a map").values().map(count).sum::<u64>();
    // 28 calls of node(), 17 of partition().
    assert_eq!((count(&status["nodes"]["nodes"]), sum(&status["nodes"]["classes"])), (28, 28));
    assert_eq!(sum(&status["terms"]), 17);
    // Two are hidden: counted, and told one by one only where that is asked for.
    assert_eq!(
        (count(&status["hidden"]), status["queues"].as_array().map(Vec::len)),
        (2, Some(15))
    );
    // The four GPUs of mix01 are in a partition that takes nothing from here: 6 x 4 - 1 are left.
    assert_eq!((count(&status["nodes"]["gpus"]), count(&status["yours"]["gpus"])), (27, 23));
    let nodes = demo(&["nodes", "--all", "--json"]).json();
    assert_eq!(nodes["nodes"].as_array().map(Vec::len), Some(28));
}

/// As Slurm's own clients: hidden unless all are wanted, and never refused to who knows the name.
#[test]
fn what_the_site_hides_is_told_to_who_asks_for_it() {
    let names = |args: &[&str], list: &str, key: &str| -> Vec<String> {
        let shown = demo(&[args, &["--json"][..]].concat()).json();
        let rows = shown[list].as_array().expect("a list").clone();
        rows.iter().filter_map(|row| row[key].as_str().map(str::to_owned)).collect()
    };
    let lists = [
        (&["status"][..], "queues", "name"),
        (&["queues"], "queues", "name"),
        (&["where", "-c", "4"], "placements", "queue"),
        (&["check"], "queues", "queue"),
    ];
    for (args, list, key) in lists {
        let has = |names: Vec<String>| {
            names.iter().filter(|name| *name == "admins" || *name == "repair").count()
        };
        assert_eq!(has(names(args, list, key)), 0, "{args:?}");
        assert_eq!(has(names(&[args, &["--all"][..]].concat(), list, key)), 2, "{args:?}");
        if args != ["status"] {
            let named = [args, &["-p", "admins"][..]].concat();
            assert_eq!(names(&named, list, key), ["admins"], "{args:?}");
        }
    }
    demo(&["status"]).says("3 closed (2 hidden: --all)");
    demo(&["where"]).says("2 hidden partitions left out: --all, or -p with the name");
}

fn gates(queue: &str) -> Vec<String> {
    let shown = demo(&["queues", "-p", queue, "--json"]).ends(0).json();
    let gates = shown["queues"][0]["gates"].as_array().expect("a list").clone();
    gates.iter().map(|gate| gate["code"].as_str().expect("a code").to_owned()).collect()
}

#[test]
fn each_closed_door_of_the_demo_has_its_reason() {
    for (queue, code) in [
        ("old", "QUEUE_NOT_STARTED"),
        ("legacy", "QUEUE_DISABLED"),
        ("biology", "ACCOUNT_NOT_ALLOWED"),
        ("admins", "GROUP_NOT_ALLOWED"),
        ("repair", "ALL_NODES_UNSCHEDULABLE"),
        ("mix", "SUBMIT_HOST_NOT_ALLOWED"),
        ("lost", "ALL_NODES_UNSCHEDULABLE"),
        ("trial", "GRP_CPU_MINUTES"),
    ] {
        assert_eq!(gates(queue).first().map(String::as_str), Some(code), "{queue}");
    }
    assert!(gates("repair").contains(&"ROOT_ONLY".to_owned()));
    assert_eq!(gates("retired"), ["QUEUE_DISABLED", "NO_ACCOUNTS", "NO_QOS"]);
    assert_eq!(gates("cpu"), Vec::<String>::new());
    // The way in names what has to be named.
    let way =
        |queue: &str| demo(&["queues", "-p", queue, "--json"]).json()["queues"][0]["way"].clone();
    assert_eq!(
        (way("gpu-long")["qos"].as_str(), way("gpu-long")["names_qos"].as_bool()),
        (Some("long"), Some(true))
    );
    assert_eq!(way("mig")["account"], "teaching");
    demo(&["queues", "-p", "gpu"])
        .says("6 GPUs for one user, of which you have 6, by QOS gpucap MaxTRESPerUser");
    demo(&["queues", "-p", "biology"])
        .says("partition biology is for biology, not for account physics (partition biology AllowAccounts)");
}

/// Partition course has `ReqResv=YES`, partition gpu `MaxCPUsPerNode=48`.
#[test]
fn what_holds_for_every_job_of_a_partition_is_said_of_the_partition() {
    let needs = "partition course takes only jobs that name a reservation";
    for args in [&["status"][..], &["queues", "-p", "course"], &["zoom", "course"]] {
        let shown = demo(args).ends(0).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(needs), "{shown}");
    }
    demo(&["zoom", "gpu"]).says("at once    48 cores of a node, by partition gpu MaxCPUsPerNode");
}

#[test]
fn a_name_that_is_not_there_is_said_once_with_those_that_are() {
    let hint = "did you mean 'cn05'?";
    for option in ["-x", "-w"] {
        let shown = demo(&["where", option, "cn05,cn055"]);
        let message = "there is no node 'cn055' here: sbatch refuses a job that names it";
        shown.ends(1).fails_with(message, hint);
    }
    for (options, reason, lift) in [
        (["-A", "nosuch"], "you may not charge account nosuch", "charge physics, teaching or"),
        (["--qos", "nosuch"], "account physics may not use QOS nosuch", "--qos=long|normal"),
        (["--reservation", "nosuch"], "there is no reservation nosuch", "--reservation=course-ada"),
    ] {
        let shown = demo(&[&["where", "-p", "cpu,gpu,cloud"], &options[..]].concat()).ends(1).all();
        assert_eq!(shown.matches(reason).count(), 1, "{shown}");
        assert!(shown.contains(lift), "{shown}");
    }
    // Whether there is such a licence elsewhere nobody can say; that is said where it would go.
    let shown = demo(&["where", "-p", "cpu,gpu", "-L", "foo"]).ends(0).all();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "fits now; not checked: the licence foo is not one of this cluster's own";
    assert_eq!(shown.matches(said).count(), 1, "{shown}");
}

#[test]
fn lists_count_what_they_show() {
    demo(&["queues", "--unusable-only"]).ends(0).says("2 hidden partitions not shown: --all");
    let all = demo(&["queues", "--unusable-only", "--all"]).ends(0).stdout.clone();
    assert!(!all.contains("not shown"), "{all}");
    demo(&["nodes", "-p", "course"]).says("nodes      2 of 28: 1 reserved for you, 1 reserved");
    // A node that is down does not work, however its jobs fared.
    let health = demo(&["health", "--history"]).ends(0).stdout.clone();
    let (out, works) = health.split_once("work, and are worse").expect("both");
    assert!(out.contains("cn06: 4 of 28 jobs failed") && !works.contains("cn06"), "{health}");
    // What `exclude` names is said where it is found.
    let avoided = demo(&["exclude", "--degraded"]).ends(0).stdout.clone();
    assert!(works.contains(&format!("(exclude --degraded): {avoided}")), "{health}");
}

#[test]
fn a_type_of_gpu_is_taken_as_gres_spells_it_and_unknown_ones_are_told() {
    for option in ["-g", "--gpus-per-task"] {
        demo(&["where", "-p", "gpu-long", option, "gpu:a100:1"]).says("1 a100 GPU");
    }
    let types = "no GPU here is of type 1g.10gb; they are a100, a100_1g.10gb or v100";
    demo(&["where", "-p", "mig", "-g", "1g.10gb:2"]).ends(1).says(types);
    let hint = "jobwise where --declared judges by rules and nodes";
    let message = "check is what the scheduler says: --declared would leave it unasked";
    demo(&["check", "--declared"]).ends(64).fails_with(message, hint);
    // Two on each node and four in all are two nodes.
    let script = Test::new("two-nodes");
    let text = "#!/bin/sh\n#SBATCH --gres=gpu:a100:2\n#SBATCH --gpus=4\ntrue\n";
    let path = script.file("job.sh", text.as_bytes()).display().to_string();
    let shown = demo(&["where", "-p", "gpu-long", "--script", &path]).ends(0).stdout.clone();
    let row = shown.lines().find(|line| line.contains("gpu-long  ")).expect("its row");
    assert_eq!(row.split_whitespace().nth(3), Some("1/2"), "{shown}");
}

/// The rules are those of `fixtures/demo/make-cluster`; each line asks for a little more than one of
/// them allows.
#[test]
fn each_gate_shows_on_the_demo() {
    for (options, code) in [
        ("-p gpu -g 1", "MAX_GPU_USER"),
        ("-p debug -N 2", "QUEUE_MAX_NODES"),
        ("-p debug -t 1h", "QUEUE_MAX_WALLTIME"),
        ("-p course", "REQUIRES_RESERVATION"),
        ("-p gpu -c 60", "QUEUE_MAX_CPUS_PER_NODE"),
        ("-p cloud --mem 62G", "QUEUE_MAX_MEM_PER_NODE"),
        ("-p whole", "EXCLUSIVE"),
        ("-p cpu -L matlab:2", "LICENCE_TOTAL"),
        ("-p cpu -L ansys:1", "LICENCE_UNKNOWN"),
        ("-p gpu -t 12h", "RESERVATION_AHEAD"),
        ("-p course --reservation course-bela", "RESERVATION_NOT_YOURS"),
        ("-p course --reservation nosuch", "RESERVATION_UNKNOWN"),
        ("-p gpu-long --qos normal", "QOS_NOT_ALLOWED"),
        ("-p cpu --qos gpucap", "QOS_NOT_YOURS"),
        ("-p cpu -A biology", "NO_ASSOCIATION"),
        ("-p cpu -A grant-2024", "GRP_CPU_MINUTES"),
        ("-p cpu -A teaching -n 32", "MAX_CPU_JOB"),
        ("-p cpu -A physics -n 400", "GRP_CPU"),
        ("-p admins", "GROUP_NOT_ALLOWED"),
        ("-p repair", "ROOT_ONLY"),
    ] {
        let args: Vec<&str> = options.split(' ').collect();
        let shown = demo(&[&["where", "--json"], &args[..]].concat());
        let gates = shown.json()["placements"][0]["access"]["gates"].clone();
        let gate = gates.as_array().expect("a list").iter().find(|gate| gate["code"] == code);
        let gate = gate.unwrap_or_else(|| panic!("{options}: no {code}\n{}", shown.all()));
        assert!(gate["source"].as_str().is_some_and(|source| !source.is_empty()), "{gate}");
    }
}

#[test]
fn what_nobody_can_have_is_not_free() {
    let nodes = demo(&["nodes", "--all", "--json"]).json();
    let node = |name: &str| {
        let all = nodes["nodes"].as_array().expect("a list");
        all.iter().find(|node| node["name"] == name).cloned().expect("there")
    };
    for (name, class, cpus) in [
        ("cn01", "room", 32),
        ("cn03", "memory-exhausted", 0),
        ("cn04", "idle", 64),
        ("cn07", "planned", 0),
        ("cn09", "completing", 0),
        ("cn13", "unknown", 0),
        ("cn14", "unreachable", 0),
        ("gpu02", "stranded", 0),
        ("cloud01", "powered-down", 0),
        ("cloud02", "powering-up", 0),
        ("course01", "reserved", 0),
        ("course02", "reserved-for-caller", 0),
        ("big01", "full", 0),
    ] {
        let found = node(name);
        assert_eq!(
            (found["class"].as_str(), found["cpus_free"].as_u64()),
            (Some(class), Some(cpus)),
            "{name}"
        );
    }
    assert_eq!(node("gpu02")["gpus_stranded"], 2);
    assert_eq!(node("mig01")["gres"][0]["kind"], "mig-slice");
    let free = demo(&["nodes", "--gpu", "--free", "--all", "--json"]).json();
    let names: Vec<&str> = free["nodes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|node| node["name"].as_str())
        .collect();
    assert!(!names.contains(&"gpu02") && names.contains(&"gpu05"), "{names:?}");
}

#[test]
fn a_job_s_share_is_that_of_this_node() {
    let zoom = demo(&["zoom", "cn02,cn03", "--json"]).json();
    let share = |index: usize| zoom["places"][index]["jobs"][0].clone();
    assert_eq!((share(0)["cpus_here"].as_u64(), share(0)["cpus"].as_u64()), (Some(64), Some(72)));
    assert_eq!(share(1)["cpus_here"], 8);
    demo(&["zoom", "3100002"]).says("cn[02-03]").says("cn03 8 250G");
    demo(&["zoom", "3100013"]).says("waits for QOSMaxGRESPerUser");
    demo(&["zoom", "cn05"]).says("from 2026-11-30 18:39:37 by new-switch: jobs must end before");
}

#[test]
fn nodes_that_are_out_are_told_with_who_and_when() {
    demo(&["health"])
        .says("1 drained ECC errors on GPU 2 gpu04, by ops, 36 h ago, 4 GPUs, 64 cores")
        .says("gpu05 takes work though it is marked \"HwPowerBrake active\"")
        .says("gpu06 has 3 GPUs, 5 of its 5 siblings have 4")
        .says("cn12 has a load of 97 for 0 CPUs in use");
    let list = demo(&["exclude", "--unschedulable", "-p", "cpu"]);
    // Rebooting and a state that is not known, too; a job to cn07 or cn09 will start soon.
    assert_eq!(list.stdout, "cn[06,08,10,13-14]\n");
    assert_eq!(demo(&["exclude", "--degraded"]).stdout, "cn12,gpu[05-06]\n");
    demo(&["exclude"]).ends(64);
    let none = demo(&["exclude", "--gpu-nodes", "-p", "cpu"]);
    assert_eq!((none.stdout.as_str(), none.code), ("", 0));
    assert!(none.stderr.contains("nothing to exclude"), "{}", none.all());
}

#[test]
fn the_history_of_failures_is_told_where_it_is_asked_for() {
    let words = "cn06: 4 of 28 jobs failed here, where the same work elsewhere explains 0.3";
    demo(&["health", "--history"]).ends(0).says(words);
    assert!(!demo(&["health"]).stdout.contains("failed here"));
    let document = demo(&["health", "--history", "--json"]).json();
    let found = document["degraded"].as_array().expect("a list").clone();
    assert!(found.iter().any(|row| row["finding"] == "failures" && row["node"] == "cn06"));
    // What could not be read costs the rest nothing.
    let machine = machine("no-history", &[]);
    machine
        .run(&["health", "--history"])
        .ends(0)
        .says("how jobs fared on the nodes could not be read");
    demo(&["health", "--since", "7d"]).ends(64);
}

#[test]
fn names_that_are_not_there_are_told() {
    let hint = "did you mean 'biology'?";
    demo(&["queues", "-p", "bilogy"])
        .ends(1)
        .fails_with("there is no partition 'bilogy' here", hint);
    let hint = "did you mean 'cn05'?";
    demo(&["zoom", "cn055"])
        .ends(1)
        .fails_with("there is no partition, node or job 'cn055' here", hint);
    demo(&["queues", "-p", ""]).ends(64);
}

/// Every test that the tables above name stands somewhere.
#[test]
fn the_tables_name_tests_that_are_there() {
    fn sources(folder: &Path, found: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push_str(&std::fs::read_to_string(path).expect("text"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for folder in ["src", "tests"] {
        sources(&root.join(folder), &mut all);
    }
    let tables = include_str!("capacity.rs").lines().take_while(|line| line.starts_with("//!"));
    let rows = tables.filter(|line| line.starts_with("//! |"));
    let named: Vec<&str> = rows.flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 60, "{}", named.len());
    for name in named.into_iter().filter(|name| !name.contains('/')) {
        assert!(all.contains(&format!("fn {name}(")), "{name}");
    }
}

#[test]
fn every_row_can_be_reached() {
    let rows = |args: &[&str], list: &str| {
        demo(&[args, &["--json"][..]].concat()).json()[list].as_array().map(Vec::len)
    };
    assert_eq!(rows(&["status", "--all"], "queues"), Some(17));
    assert_eq!(rows(&["nodes", "--top", "5"], "nodes"), Some(5));
    assert_eq!(rows(&["nodes", "--all"], "nodes"), Some(28));
    assert_eq!(rows(&["where", "--all"], "placements"), Some(17));
    // Narrow windows lose no column of numbers.
    let narrow = Test::new("narrow").env("COLUMNS", "45");
    for args in [&["status"][..], &["nodes", "--all"], &["queues", "--all"]] {
        narrow.run(&[&["--demo"], args].concat()).ends(0).says("GPUS");
    }
}

/// It closes the partition, and what it shows is still told.
#[test]
fn idle_nodes_of_a_dead_partition_are_told_and_not_counted() {
    let queues = demo(&["queues", "-p", "retired", "--json"]).json();
    let row = &queues["queues"][0];
    assert_eq!((count(&row["nodes"]["cpus_free"]), row["term"].as_str()), (0, Some("closed")));
    let old = demo(&["queues", "-p", "legacy,trial,old", "--json"]).json();
    assert!(
        old["queues"].as_array().expect("a list").iter().all(|row| row["advertised_idle"].is_u64())
    );
    let test = machine("dead", &[]);
    test.answer(
        "partitions",
        "PartitionName=batch Nodes=n1 TotalNodes=1 State=DOWN MaxTime=01:00:00\n",
    );
    test.run(&["queues", "-p", "batch"])
        .ends(0)
        .says("1 idle node")
        .says("takes jobs and starts none");
    let rows = test.run(&["queues", "-p", "batch", "--json"]).json();
    assert_eq!(count(&rows["queues"][0]["nodes"]["cpus_free"]), 0);
    assert_eq!(count(&rows["queues"][0]["advertised_idle"]), 1);
}

#[test]
fn an_error_is_a_document_too() {
    let test = machine("error-json", &["node"]);
    for command in ["status", "where", "nodes"] {
        let shown = test.run(&[command, "--json"]);
        shown.ends(3);
        assert_eq!(shown.json()["schema"], "jobwise/error/1", "{}", shown.all());
    }
}

/// Outputs that are empty, cut off, foreign, huge or at odds with each other, and clients that hang
/// or may not be used.
#[test]
fn what_clients_say_wrong_costs_only_its_part() {
    let nodes = |text: &str| {
        let test = machine("wrong", &[]);
        test.answer("nodes", text);
        test
    };
    let good =
        "NodeName=n1 CPUAlloc=0 CPUTot=8 RealMemory=16000 AllocMem=0 State=IDLE Partitions=batch\n";
    // Nothing to be learnt of nodes: no answer. Anything: an answer, and what it lacks.
    for text in ["", "\0\u{fffd}garbage", "<html>502 Bad Gateway</html>", "{\"nodes\": []}"] {
        nodes(text).run(&["status"]).ends(3);
    }
    let cut = nodes(&format!("{good}NodeName=n2 CPUAlloc=0 CPUT"));
    cut.run(&["status"]).ends(0).says("2: 1 idle, 1 state unknown");
    let twice = nodes(&format!("{good}{}", good.replace("CPUAlloc=0", "CPUAlloc=8")));
    assert_eq!(count(&twice.run(&["status", "--json"]).json()["nodes"]["nodes"]), 1);
    // More in use than there is.
    let over = nodes(
        &good.replace("CPUAlloc=0", "CPUAlloc=99").replace("AllocMem=0", "AllocMem=99999999"),
    );
    over.run(&["nodes"]).ends(0).says("0/8");
    let absurd =
        nodes(&good.replace("CPUTot=8", "CPUTot=99999999999999999999").replace("16000", "-5"));
    absurd.run(&["status"]).ends(0);
    // A partition of nodes that are not there, and a node of partitions that are not.
    let apart = nodes(&good.replace("batch", "nosuch"));
    apart.run(&["status"]).ends(0).says("1 not checked");
    let huge: String = (0..20_000).map(|n| good.replace("n1", &format!("n{n}"))).collect();
    let huge = nodes(&huge);
    assert_eq!(count(&huge.run(&["status", "--json"]).ends(0).json()["nodes"]["nodes"]), 20_000);
    // A client that hangs is given up, one that may not be run is told.
    let hung = machine("hung", &[]);
    hung.client("squeue", "pause 60");
    let hung = hung.env("JOBWISE_SCHEDULER_DEADLINE_SECONDS", "1");
    hung.run(&["status"]).ends(0).says("the jobs could not be read");
    let forbidden = machine("forbidden", &[]);
    let client = forbidden.path("bin/sacctmgr");
    std::fs::set_permissions(client, std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("set");
    forbidden.run(&["status"]).ends(0).says("your accounts could not be read");
}

/// A machine with a controller of one node; `broken` are shell patterns of commands that fail.
fn machine(name: &str, broken: &[&str]) -> Test {
    let test = Test::new(name);
    let mut cases: Vec<String> =
        broken.iter().map(|case| format!("*{case}*) echo 'slurm_load error: Unable to contact slurm controller' >&2; exit 1 ;;")).collect();
    cases.push("*config*) echo 'ClusterName = lab' ;;".to_owned());
    cases.push("*node*) say nodes ;;".to_owned());
    cases.push("*partition*) say partitions ;;".to_owned());
    cases.push("*assoc_mgr*) echo 'Current Association Manager state' ;;".to_owned());
    cases.push("*reservation*) echo 'No reservations in the system' ;;".to_owned());
    cases.push("*'show qos'*) echo 'normal|50|||||||||||||||||||' ;;".to_owned());
    cases.push("*'show assoc'*) echo 'lab|physics||normal|normal||||||||||||' ;;".to_owned());
    let body = format!("case \"$me $*\" in\n{}\nesac", cases.join("\n"));
    for client in ["scontrol", "squeue", "sacctmgr"] {
        test.client(client, &body);
    }
    test.client("id", "echo 'uid=1001(alice) gid=1001(alice) groups=1001(alice)'");
    test.answer(
        "nodes",
        "NodeName=n1 CPUAlloc=0 CPUTot=8 RealMemory=16000 AllocMem=0 State=IDLE Partitions=batch\n",
    );
    test.answer(
        "partitions",
        "PartitionName=batch Nodes=n1 TotalNodes=1 State=UP MaxTime=01:00:00\n",
    );
    test
}

/// Clients that hang: the first is waited for as long as its deadline says, all others together half
/// as long again, four at a time; then none is run.
#[test]
fn clients_that_hang_have_one_budget() {
    let test = Test::new("hang");
    for client in ["scontrol", "squeue", "sacctmgr", "sacct", "sbatch", "sinfo"] {
        test.client(client, "pause 600");
    }
    test.client("id", "echo 'uid=1001(alice) gid=1001(alice) groups=1001(alice)'");
    let path = test.path("calls").display().to_string();
    let test = test.env("CALLS", &path).env("JOBWISE_SCHEDULER_DEADLINE_SECONDS", "1");
    let calls = |test: &Test| {
        let log = std::fs::read_to_string(test.path("calls")).unwrap_or_default();
        let _ = std::fs::remove_file(test.path("calls"));
        log.lines().filter(|line| !line.starts_with("id")).count()
    };
    for (args, most) in [(&["where", "-c", "1"][..], 5), (&["status"], 5), (&["diagnose", "7"], 2)]
    {
        let shown = test.run(args);
        shown.ends(3);
        assert!(
            shown.stderr.contains("gave no answer within")
                || shown.stderr.contains("had hung before it"),
            "{}",
            shown.all()
        );
        assert!(
            shown.stderr.contains("scontrol") || shown.stderr.contains("sacct"),
            "{}",
            shown.all()
        );
        let made = calls(&test);
        assert!((1..=most).contains(&made), "{args:?}: {made} calls");
    }
}

/// A dry run that hangs is no dry run of all queues: those that were not asked say so.
#[test]
fn dry_runs_stop_where_the_scheduler_hangs() {
    let test = machine("hang-dry", &[]);
    let many: Vec<String> = (0..12).map(|n| format!("q{n:02}")).collect();
    let queue = |name: &String| format!("PartitionName={name} Nodes=n1 TotalNodes=1 State=UP\n");
    test.answer("partitions", &many.iter().map(queue).collect::<String>());
    test.answer(
        "nodes",
        &format!("NodeName=n1 CPUAlloc=0 CPUTot=8 RealMemory=16000 AllocMem=0 State=IDLE Partitions={}\n", many.join(",")),
    );
    test.client("sbatch", "pause 600");
    let test = test.env("JOBWISE_SCHEDULER_DEADLINE_SECONDS", "1");
    let document = test.run(&["where", "-c", "1", "--json"]).json();
    // Three at a time: the first three wait a second, the next three half of one.
    assert_eq!(document["asked"], 6);
    let verdicts = document["placements"].as_array().expect("placements");
    assert!(verdicts.iter().all(|place| place["verdict"] == "no_answer"), "{verdicts:?}");
    let last = verdicts.iter().filter_map(|place| place["because"].as_str());
    assert_eq!(last.filter(|text| text.contains("had hung before it")).count(), 6);
}

#[test]
fn an_error_is_not_an_answer() {
    for broken in [&["node"][..], &["partition"], &["scontrol", "squeue", "sacctmgr"]] {
        let test = machine("broken", broken);
        for command in ["status", "queues", "nodes", "health"] {
            let shown = test.run(&[command]);
            shown.ends(3);
            assert!(
                shown.stdout.is_empty() && shown.stderr.contains("Unable to contact"),
                "{}",
                shown.all()
            );
        }
    }
    // A client that prints nothing is no cluster without nodes.
    let test = machine("silent", &[]);
    test.answer("nodes", "");
    test.run(&["status"]).ends(3);
    let test = Test::new("bare");
    test.run(&["status"]).ends(2);
}

#[test]
fn a_part_that_fails_is_told_beside_the_rest() {
    let test = machine("partly", &["sacctmgr"]);
    let shown = test.run(&["status"]);
    shown.ends(0).says("1: 1 not checked").says("your accounts could not be read");
    let document = test.run(&["status", "--json"]).json();
    assert_eq!(document["accounts"], Value::Null, "not read is not none");
    let test = machine("jobless", &["squeue"]);
    test.run(&["nodes"]).ends(0).says("n/a").says("the jobs could not be read");
    let whole = machine("whole", &[]);
    whole.run(&["status"]).ends(0).says("1: 1 open").says("8 of 8 cores free");
}

#[test]
fn what_operators_and_users_write_cannot_steer_a_terminal() {
    let hostile = "\u{1b}[31mred\u{1b}]0;owned\u{7}\u{9b}2J\u{8}\u{202e}evil\u{2028}";
    let test = machine("hostile", &[]);
    test.answer(
        "nodes",
        &format!(
            "NodeName=n1 CPUAlloc=0 CPUTot=8 RealMemory=16000 AllocMem=0 ActiveFeatures={hostile} \
             Gres=gpu:{hostile}:4 State=IDLE+DRAIN+{hostile} Partitions=batch Reason={hostile} \
             password=hunter2hunter2 https://me:hunter2hunter2@host/x [{hostile}@1796000000]\n"
        ),
    );
    test.client("squeue", &format!("printf '%s\\n' '1@~@{hostile}@~@a@~@batch@~@q@~@RUNNING@~@n1@~@1@~@1@~@cpu=1@~@1@~@2@~@1:00@~@None@~@1@~@(null)@~@OK@~@(null)@~@@~@{hostile}@~@'"));
    for args in
        [&["status"][..], &["queues", "--detail"], &["nodes"], &["health"], &["zoom", "n1,batch,1"]]
    {
        for format in [&[][..], &["--json"]] {
            let shown = test.run(&[args, format].concat());
            let steers = |c: char| {
                (c.is_control() && c != '\n')
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}')
            };
            let found = [&shown.stdout, &shown.stderr]
                .iter()
                .find_map(|text| text.chars().find(|c| steers(*c)));
            assert_eq!(found, None, "{args:?}\n{}", shown.all());
            assert!(!shown.all().contains("hunter2hunter2"), "{args:?}\n{}", shown.all());
        }
    }
}
