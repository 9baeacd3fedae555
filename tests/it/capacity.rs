//! The commands about nodes and partitions, on the demo cluster and on machines whose clients fail.
//! What the demo holds, and why, stands in `fixtures/demo/make-cluster`.

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
    Test::new(&name).run(&[&["--demo"], args].concat())
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

fn count(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn nodes_and_partitions_add_up() {
    let status = demo(&["status", "--json"]).json();
    let sum = |value: &Value| value.as_object().expect("a map").values().map(count).sum::<u64>();
    // 28 calls of node(), 16 of partition().
    assert_eq!((count(&status["nodes"]["nodes"]), sum(&status["nodes"]["classes"])), (28, 28));
    assert_eq!(sum(&status["terms"]), 16);
    // Two are hidden: counted, and told one by one only where that is asked for.
    assert_eq!(
        (count(&status["hidden"]), status["queues"].as_array().map(Vec::len)),
        (2, Some(14))
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
    let words = "cn06 4 of 28 jobs failed here, where the same work elsewhere explains 0.3";
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
    cases.push("*'show qos'*) echo 'normal|50||||||||||||||||||' ;;".to_owned());
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
    test.client("squeue", &format!("printf '%s\\n' '1@~@{hostile}@~@a@~@batch@~@q@~@RUNNING@~@n1@~@1@~@1@~@cpu=1@~@1@~@2@~@1:00@~@None@~@1@~@(null)@~@OK@~@{hostile}@~@'"));
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
