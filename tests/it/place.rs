//! Where a job can run: rules, nodes and dry runs together, on a cluster of four partitions.

use crate::run::{Shown, Test};

const CONFIG: &str = "Configuration data as of 2026-11-30T08:00:00
AccountingStorageEnforce = associations,limits,qos
ClusterName             = lab
EnforcePartLimits       = NO
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SLURM_VERSION           = 22.05.8
";

/// A node as `scontrol --details --oneliner show node` of 22.05 prints it.
fn node(name: &str, state: &str, cpus: (u32, u32), gres: &str, used: &str, queues: &str) -> String {
    let (all, given) = cpus;
    format!(
        "NodeName={name} Arch=x86_64 CoresPerSocket=1 CPUAlloc={given} CPUEfctv={all} CPUTot={all} \
         CPULoad=0.10 AvailableFeatures=intel ActiveFeatures=intel Gres={gres} GresUsed={used} \
         NodeAddr={name} NodeHostName={name} RealMemory=16000 AllocMem={} FreeMem=9000 Sockets={all} \
         Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A \
         Partitions={queues} BootTime=1796030000 CfgTRES=cpu={all},mem=16000M AllocTRES=cpu={given}\n",
        given * 1000
    )
}

fn queue(name: &str, nodes: &str, more: &str) -> String {
    let set = |key: &str, default: &str| {
        let found = more.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        format!("{key}={}", found.unwrap_or(default))
    };
    format!(
        "PartitionName={name} AllowGroups=ALL {} {} AllocNodes=ALL Default=NO QoS=N/A DefaultTime=NONE \
         DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED {} MinNodes=0 \
         LLN=NO MaxCPUsPerNode=UNLIMITED Nodes={nodes} PriorityJobFactor=1 PriorityTier=1 RootOnly=NO \
         ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF {} TotalCPUs=16 TotalNodes=2 \
         SelectTypeParameters=NONE JobDefaults=(null) DefMemPerCPU=1000 MaxMemPerNode=UNLIMITED\n",
        set("AllowAccounts", "ALL"),
        set("AllowQos", "ALL"),
        set("MaxTime", "1-00:00:00"),
        set("State", "UP"),
    )
}

/// Two idle nodes of 8 cores in `cpu`, one of two busy A100s in `gpu`, and partitions that are down
/// and for another account.
fn cluster(name: &str) -> Test {
    let test = Test::new(name);
    let gpus = "gpu:a100:2(S:0-1)";
    let nodes = [
        node("c01", "IDLE", (8, 0), "(null)", "gpu:0", "cpu,down,chemists,short"),
        node("c02", "IDLE", (8, 0), "(null)", "gpu:0", "cpu,down,chemists,short"),
        node("g01", "MIXED", (8, 4), gpus, "gpu:a100:2(IDX:0-1)", "gpu"),
    ];
    test.answer("nodes", &nodes.concat());
    let queues = [
        queue("cpu", "c[01-02]", ""),
        queue("gpu", "g01", ""),
        queue("down", "c[01-02]", "State=DOWN"),
        queue("chemists", "c[01-02]", "AllowAccounts=chem"),
        queue("short", "c[01-02]", "MaxTime=00:30:00"),
    ];
    test.answer("queues", &queues.concat());
    test.answer("config", CONFIG);
    test.answer(
        "use",
        "ClusterName=lab Account=physics UserName=alice(1001) Partition= Priority=0 ID=7 \
         SharesRaw/Norm/Level/Factor=1/0.00/1/0.00 UsageRaw/Norm/Efctv=0.00/0.00/0.00 \
         ParentAccount= DefAssoc=Yes\n",
    );
    // Its four cores and both GPUs are held until 08:20.
    let cells = [
        "90",
        "bob",
        "chem",
        "gpu",
        "normal",
        "RUNNING",
        "g01",
        "1",
        "4",
        "cpu=4,mem=4000M,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2",
        "1796025600",
        "1796026800",
        "20:00",
        "None",
        "1",
        "(null)",
        "OK",
        "(null)",
        "",
        "train",
    ];
    test.answer("jobs", &format!("{}\n", cells.map(|cell| format!("{cell}@~@")).concat()));
    test.client(
        "scontrol",
        r#"case "$*" in
        *config*) say config ;;
        *assoc_mgr*) say use ;;
        *partition*) say queues ;;
        *reservation*) [ ! -f "$answers/held" ] || say held ;;
        *node*) say nodes ;;
        esac"#,
    );
    // As many cells as columns were asked for.
    test.client(
        "sacctmgr",
        r#"columns() { IFS=,; set -- ${1#*format=}; IFS=' '; echo $#; }
        row() { cells=$1 left=$2; while [ "$left" -gt 0 ]; do cells="$cells|" left=$((left - 1)); done; printf '%s\n' "$cells"; }
        count=$(columns "$*")
        case "$*" in
        *qos\ format*) row normal $((count - 1)) ;;
        *) for account in physics staff; do row "lab|$account||normal|normal" $((count - 5)); done ;;
        esac"#,
    );
    test.client("squeue", "say jobs");
    test.client("id", "echo 'uid=1001(alice) gid=1001(alice) groups=1001(alice)'");
    test
}

/// `sbatch` says yes, from a moment on that has long come.
fn says_yes(test: &Test) {
    test.client(
        "sbatch",
        r#"for word; do case "$word" in --partition=*) queue=${word#*=} ;; esac; done
        echo "sbatch: Job 5 to start at 1 using 1 processors on nodes c01 in partition $queue" >&2"#,
    );
}

/// `sbatch` refuses with these words.
fn says_no(test: &Test, words: &str) {
    test.client("sbatch", &format!("echo '{words}' >&2; exit 1"));
}

fn verdict(shown: &Shown, queue: &str) -> String {
    let json = shown.json();
    let places = json["placements"].as_array().expect("placements");
    let found = places.iter().find(|place| place["queue"] == queue);
    found.map_or_else(
        || "none".to_owned(),
        |place| place["verdict"].as_str().expect("a word").to_owned(),
    )
}

fn ask(test: &Test, args: &[&str]) -> Shown {
    test.run(&[&["where", "--json"], args].concat())
}

#[test]
fn run_now_needs_rules_nodes_and_scheduler_to_agree() {
    let test = cluster("place-agree");
    says_yes(&test);
    let shown = ask(&test, &["-c", "4", "-t", "1h"]);
    shown.ends(0);
    let verdicts = ["cpu", "gpu", "down", "chemists", "short"].map(|queue| verdict(&shown, queue));
    // The scheduler said yes to each that it was asked about: real ones do, to all of these.
    assert_eq!(verdicts, ["run_now", "run_now", "blocked", "blocked", "limit"], "{}", shown.all());
    assert_eq!(shown.json()["schema"], "jobwise/where/1");
    assert_eq!(shown.json()["asked"], 3, "what is closed is not asked about");
    // The GPUs of `gpu` are busy until 08:20: a yes of the scheduler does not make them free.
    let shown = ask(&test, &["-g", "a100:1", "-t", "1h"]);
    assert_eq!(verdict(&shown, "gpu"), "queue");
    assert_eq!(verdict(&shown, "cpu"), "wrong_hardware");
    // What waits does not start now, though the scheduler says so; and job 90, which is over its
    // time, may end any moment.
    assert_eq!(shown.json()["placements"][0]["start"], serde_json::Value::Null);
    let text = test.run(&["where", "-g", "a100:1"]);
    text.ends(0)
        .says("QUEUE gpu")
        .says("gpu: g01 short of GPUs (node GresUsed, AllocTRES)")
        .says("1 dry run was made; it took a job id");
    text.says("sbatch --partition=gpu --nodes=1 --gres=gpu:a100:1 --time=01:00:00 SCRIPT");
}

/// A refusal is a refusal, in whatever words; nodetop 0.7.0 prints RUN NOW after each of these.
#[test]
fn no_refusal_is_followed_by_run_now() {
    let test = cluster("place-refused");
    for words in [
        "allocation failure: Requested node configuration is not available",
        "allocation failure: Required partition not available (inactive or drain)",
        "sbatch: error: Invalid generic resource (gres) specification",
        "allocation failure: The moon is in the wrong phase",
    ] {
        says_no(&test, words);
        let shown = ask(&test, &["-c", "4", "-p", "cpu"]);
        shown.ends(1);
        assert_eq!(verdict(&shown, "cpu"), "blocked", "{}", shown.all());
        assert_eq!(shown.json()["placements"][0]["submit"], serde_json::json!([]));
        let said = words.rsplit(": ").next().expect("words");
        test.run(&["where", "-c", "4", "-p", "cpu"]).ends(1).says("NOWHERE").says(said);
    }
    for words in [
        "allocation failure: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: I/O error writing script/environment to file",
    ] {
        says_no(&test, words);
        let shown = ask(&test, &["-c", "4", "-p", "cpu"]);
        shown.ends(1);
        assert_eq!(verdict(&shown, "cpu"), "no_answer", "{}", shown.all());
    }
    says_no(&test, "Verification: ***REJECTED***\nReason: No sufficient SU allocations");
    assert_eq!(verdict(&ask(&test, &["-p", "cpu"]), "cpu"), "limit");
}

/// The account that was taken stands in the line to paste.
#[test]
fn the_line_to_submit_says_what_made_it_work() {
    let test = cluster("place-account");
    test.client(
        "sbatch",
        r#"case "$*" in
        *--account=staff*) echo "sbatch: Job 5 to start at 1 using 1 processors on nodes c01 in partition cpu" >&2 ;;
        *) echo "allocation failure: Invalid account or account/partition combination specified" >&2; exit 1 ;;
        esac"#,
    );
    let shown = ask(&test, &["-c", "2", "-p", "cpu"]);
    shown.ends(0);
    let submit = shown.json()["placements"][0]["submit"].clone();
    assert_eq!(
        submit,
        serde_json::json!([
            "--partition=cpu",
            "--account=staff",
            "--nodes=1",
            "--cpus-per-task=2",
            "--time=01:00:00"
        ])
    );
    assert_eq!(shown.json()["asked"], 2);
    // An account of one's own choice is the only one that is tried.
    let shown = ask(&test, &["-c", "2", "-p", "cpu", "-A", "physics"]);
    shown.ends(1);
    assert_eq!(verdict(&shown, "cpu"), "blocked");
}

#[test]
fn a_start_that_the_scheduler_names_is_told_as_its_own() {
    let test = cluster("place-later");
    test.client(
        "sbatch",
        r#"echo "sbatch: Job 5 to start at 9999999999 a using 1 processors on nodes mcn53 in partition cpu" >&2"#,
    );
    let shown = ask(&test, &["-c", "2", "-p", "cpu"]);
    shown.ends(0);
    let place = &shown.json()["placements"][0];
    assert_eq!(place["verdict"], "queue");
    // A start in another year is told with that year.
    test.run(&["check", "-c", "2", "-p", "cpu"]).says("2286-11-20");
    assert_eq!(place["start"]["source"], "scheduler");
    assert_eq!(place["dry_run"]["nodes"], "mcn53");
}

/// A quality of service that is not the default opens the queue: it is found, and named.
#[test]
fn a_refusal_for_the_quality_of_service_alone_does_not_close_a_queue() {
    let test = cluster("place-qos");
    let client = std::fs::read_to_string(test.path("bin/sacctmgr")).expect("there");
    let body = client.replace("||normal|normal", "||normal,long|normal");
    let body = body.replace(
        "row normal $((count - 1)) ;;",
        "row normal $((count - 1)); row long $((count - 1)) ;;",
    );
    test.client(
        "sacctmgr",
        body.split_once("pause()").and_then(|(_, rest)| rest.split_once('\n')).expect("a body").1,
    );
    test.client(
        "sbatch",
        r#"case "$*" in
        *--qos=long*) echo "sbatch: Job 5 to start at 1 using 1 processors on nodes c01 in partition cpu" >&2 ;;
        *) echo "allocation failure: Invalid qos specification" >&2; exit 1 ;;
        esac"#,
    );
    let shown = ask(&test, &["-c", "2", "-p", "cpu"]);
    shown.ends(0);
    let submit = shown.json()["placements"][0]["submit"].to_string();
    assert!(submit.contains("--qos=long"), "{}", shown.all());
}

/// Without a dry run nothing is promised, and what fits is told as possible.
#[test]
fn where_nobody_can_be_asked_nothing_is_promised() {
    let test = cluster("place-declared");
    says_no(&test, "it must not be asked");
    let shown = ask(&test, &["-c", "4", "--declared"]);
    shown.ends(0);
    assert_eq!(
        (verdict(&shown, "cpu"), shown.json()["asked"].clone()),
        ("no_answer".to_owned(), 0.into())
    );
    std::fs::remove_file(test.path("bin/sbatch")).expect("removed");
    let shown = ask(&test, &["-c", "4"]);
    shown.ends(0);
    assert_eq!(
        (verdict(&shown, "cpu"), shown.json()["can_ask"].clone()),
        ("no_answer".to_owned(), false.into())
    );
    test.run(&["check", "-c", "4"]).ends(2).fails_with(
        "the scheduler cannot be asked here: there is no dry run",
        "jobwise where judges by rules and nodes without it",
    );
}

#[test]
fn hardware_that_is_too_small_too_few_or_not_identified_is_told_apart() {
    let test = cluster("place-hardware");
    says_yes(&test);
    let of = |args: &[&str], queue: &str| verdict(&ask(&test, args), queue);
    assert_eq!(of(&["-c", "64"], "cpu"), "wrong_hardware");
    assert_eq!(of(&["-N", "3"], "cpu"), "too_few");
    assert_eq!(of(&["-N", "2", "-x", "c01"], "cpu"), "too_few");
    assert_eq!(of(&["-x", "c[01-02]"], "cpu"), "wrong_hardware");
    assert_eq!(of(&["--gpu-mem", "90"], "gpu"), "wrong_hardware");
    assert_eq!(of(&["--needs", "fp8"], "gpu"), "wrong_hardware");
    assert_eq!(of(&["--needs", "bf16"], "gpu"), "queue");
    // An A100 has 40 or 80 GiB, and nothing says which.
    let shown = ask(&test, &["--gpu-mem", "80"]);
    assert_eq!(verdict(&shown, "gpu"), "no_answer");
    test.run(&["where", "-N", "3", "-p", "cpu"])
        .ends(1)
        .says("3 needed, 2 nodes with the right hardware");
    let none = test.run(&["where", "-N", "3", "-p", "cpu"]);
    assert!(!none.stdout.contains("submit ("), "{}", none.all());
}

/// A real Slurm 22.05 named a start in 117 s for a job that had room by all that is known here (of a
/// node that a queue with OverSubscribe=FORCE shares), and it did wait: it is not told to start now.
#[test]
fn what_the_scheduler_starts_in_two_minutes_does_not_run_now() {
    let test = cluster("place-soon");
    says_yes(&test);
    assert_eq!(verdict(&ask(&test, &["-c", "1", "-p", "cpu"]), "cpu"), "run_now");
    test.client(
        "sbatch",
        r#"echo "sbatch: Job 5 to start at $(($(/bin/date +%s) + 117)) using 1 processors on nodes c01 in partition cpu" >&2"#,
    );
    let shown = ask(&test, &["-c", "1", "-p", "cpu"]);
    assert_eq!(verdict(&shown, "cpu"), "queue", "{}", shown.all());
}

/// How many stand in front is told where a job would wait.
#[test]
fn jobs_that_wait_in_front_are_counted() {
    let test = cluster("place-waiting");
    says_yes(&test);
    let queued = std::fs::read_to_string(test.path("answers/jobs")).expect("jobs");
    let waits =
        queued.replace("90@~@", "91@~@").replace("RUNNING", "PENDING").replace("g01@~@", "@~@");
    test.answer("jobs", &format!("{queued}{waits}"));
    test.run(&["where", "-g", "a100:1"])
        .says("g01 short of GPUs (node GresUsed, AllocTRES); 1 job waits there");
    let shown = ask(&test, &["-g", "a100:1", "-p", "gpu"]);
    assert_eq!(shown.json()["placements"][0]["waiting"], 1);
}

/// The scheduler knows neither the memory of a GPU nor what it can do. A real Slurm 22.05 gave a
/// V100 to `--gres=gpu:1`, printed for a job that needs 40 GiB on each GPU.
#[test]
fn the_line_to_submit_gets_only_gpus_that_suit() {
    let test = cluster("place-narrow");
    let gpus = ["gpu:a100:2", "gpu:v100:2", "gpu:h100:2"];
    let nodes = |count: usize| -> String {
        let row = |(at, gpus): (usize, &&str)| {
            node(&format!("g0{}", at + 1), "IDLE", (8, 0), gpus, "gpu:0", "gpu")
        };
        gpus.iter().take(count).enumerate().map(row).collect()
    };
    test.answer("queues", &queue("gpu", "g[01-03]", ""));
    says_yes(&test);
    // One type will do: it is named, to the scheduler as in the line.
    test.answer("nodes", &nodes(2));
    test.run(&["where", "--gpu-mem", "40", "-g", "1", "-t", "1h"])
        .says("sbatch --partition=gpu --nodes=1 --gres=gpu:a100:1 --time=01:00:00 SCRIPT");
    // Two types will do: the nodes of the third are kept out, besides those that the user names.
    test.answer("nodes", &nodes(3));
    test.run(&["where", "--needs", "bf16", "-g", "1", "-t", "1h"])
        .says("sbatch --partition=gpu --nodes=1 --gres=gpu:1 --time=01:00:00 --exclude=g02 SCRIPT");
    test.run(&["where", "--needs", "bf16", "-g", "1", "-t", "1h", "-x", "g01"]).says(
        "sbatch --partition=gpu --nodes=1 --gres=gpu:1 --time=01:00:00 --exclude=g01,g02 SCRIPT",
    );
    // All will do: nothing is added.
    test.run(&["where", "--gpu-mem", "16", "-g", "1", "-t", "1h"])
        .says("sbatch --partition=gpu --nodes=1 --gres=gpu:1 --time=01:00:00 SCRIPT");
}

/// Each node that is in the way stands with what says so, and with the operator's note.
#[test]
fn what_keeps_a_node_is_told_with_its_source() {
    let test = cluster("place-busy");
    says_yes(&test);
    let nodes = [
        node("c01", "IDLE+DRAIN", (8, 0), "(null)", "gpu:0", "cpu").trim_end().to_owned()
            + " Reason=bad fan [root@1796000000]\n",
        node("c02", "MIXED", (8, 4), "(null)", "gpu:0", "cpu")
            .replace("AllocMem=4000", "AllocMem=16000"),
        node("c03", "ALLOCATED", (8, 8), "(null)", "gpu:0", "cpu"),
        node("c04", "MIXED+PLANNED", (8, 4), "(null)", "gpu:0", "cpu"),
        node("g01", "MIXED", (8, 4), "gpu:a100:2", "gpu:a100:2(IDX:0-1)", "gpu")
            .replace("Features=intel", "Features=amd"),
    ];
    test.answer("nodes", &nodes.concat());
    let says = |args: &[&str], words: &str| {
        test.run(&[&["where", "-t", "1h"], args].concat()).says(words);
    };
    says(
        &["-w", "c01"],
        "1 needed, 1 node with the right hardware: c01 drained, \"bad fan\" (node State)",
    );
    says(&["-w", "c02", "--mem", "4G"], "cpu: c02 memory exhausted (node AllocMem)");
    says(&["-w", "c03"], "cpu: c03 full (node CPUAlloc)");
    says(&["-w", "c04"], "cpu: c04 planned (node State)");
    says(&["-C", "amd", "-g", "1"], "gpu: g01 short of GPUs (node GresUsed, AllocTRES)");
    test.answer(
        "held",
        "ReservationName=course StartTime=1 EndTime=9999999999 Duration=1-00:00:00 Nodes=c03 NodeCnt=1 \
         CoreCnt=8 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=carol \
         Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a\n",
    );
    says(&["-w", "c03"], "c03 reserved, \"course\" (scontrol show reservation)");
    // The scheduler's words say less.
    says_no(&test, "allocation failure: Requested node configuration is not available");
    says(
        &["-w", "c03"],
        "c03 reserved, \"course\" (scontrol show reservation); the scheduler refuses: Requested node",
    );
    says(
        &["-w", "c01"],
        "c01 drained, \"bad fan\" (node State); the scheduler refuses: Requested node",
    );
}

/// A client that ends well without a word has not said that nothing is used.
#[test]
fn an_empty_answer_about_what_is_used_is_none() {
    let test = cluster("place-unused");
    says_yes(&test);
    assert_eq!(verdict(&ask(&test, &["-c", "1", "-p", "cpu"]), "cpu"), "run_now");
    test.answer("use", "\n");
    let shown = ask(&test, &["-c", "1", "-p", "cpu"]);
    let notices = shown.json()["notices"].to_string();
    assert!(notices.contains("it printed nothing"), "{}", shown.all());
}

/// A real Slurm 22.05 took jobs that its dry run refused so, and started them when the reservation
/// ended, after 61 s and 105 s. One that is kept for good is no wait.
#[test]
fn a_job_behind_a_reservation_waits() {
    let test = cluster("place-reserved");
    test.answer("nodes", &node("c01", "IDLE", (8, 0), "(null)", "gpu:0", "cpu"));
    says_no(&test, "allocation failure: Requested node configuration is not available");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    let until = |seconds: u64| {
        let end = now.as_secs() + seconds;
        test.answer(
            "held",
            &format!(
                "ReservationName=course StartTime=1 EndTime={end} Duration=1-00:00:00 Nodes=c01 NodeCnt=1 \
                 CoreCnt=8 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=carol \
                 Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a\n"
            ),
        );
        ask(&test, &["-c", "1", "-t", "1h", "-p", "cpu"])
    };
    let shown = until(3600);
    assert_eq!(verdict(&shown, "cpu"), "queue", "{}", shown.all());
    let place = &shown.json()["placements"][0];
    assert_eq!(place["because"], "c01 reserved, \"course\" (scontrol show reservation)");
    assert!(place["start"]["at"].is_string(), "{place}");
    assert_eq!(verdict(&until(400 * 24 * 3600), "cpu"), "blocked");
}

/// What would lift a limit is of no use where the reason is another one.
#[test]
fn only_what_lifts_the_reason_that_is_told_is_offered() {
    let test = cluster("place-lift");
    says_yes(&test);
    let shown = test.run(&["where", "-g", "h100:1", "-t", "2h", "-p", "short"]);
    shown.ends(1).says("short: no GPU");
    assert!(!shown.stdout.contains("--time=00:30:00"), "{}", shown.all());
}

#[test]
fn one_change_is_named_that_would_let_it_run() {
    let test = cluster("place-change");
    says_yes(&test);
    let shown = test.run(&["where", "-t", "2h", "-p", "short", "--what-if"]);
    shown.ends(1).says("in partition cpu (the scheduler says so)");
    shown.says(
        "with 1 h 30 min less time (--time=00:30:00), in partition short (the scheduler says so)",
    );
    test.run(&["where", "-N", "3", "-p", "cpu", "--what-if"])
        .says("on 2 nodes instead of 3, in partition cpu");
}

#[test]
fn a_script_and_a_job_say_what_they_need() {
    let test = cluster("place-script");
    says_yes(&test);
    test.file(
        "work/run.sh",
        b"#!/bin/bash\n#SBATCH --nodes=2 --cpus-per-task=4\n#SBATCH -t 10 --switches=1\nsrun ./x\n",
    );
    let shown = test.run(&["where", "--script", "run.sh", "-p", "cpu"]);
    shown.ends(0).says("2 nodes, 4 CPUs on each, 00:10:00").says("not weighed: --switches");
    shown.says("sbatch --partition=cpu --nodes=2 --cpus-per-task=4 --time=00:10:00 run.sh");
    // A flag wins over the script.
    test.run(&["where", "--script", "run.sh", "-N", "3", "-p", "cpu"]).ends(1).says("3 nodes");
}

#[test]
fn check_shows_what_the_scheduler_overlooks() {
    let test = cluster("place-check");
    says_yes(&test);
    let shown = test.run(&["check", "-t", "1h"]);
    shown.ends(0).says("down yes, but").says("partition down is DOWN").says("5 dry runs were made");
    let json = test.run(&["check", "-t", "1h", "--json"]).json();
    assert_eq!(
        (json["schema"].as_str(), json["accepted"].as_u64()),
        (Some("jobwise/check/1"), Some(2))
    );
    // A filter that passes what the scheduler refuses.
    says_no(
        &test,
        "Verification: ***PASSED***\nallocation failure: Invalid account or account/partition combination specified",
    );
    let shown = test.run(&["check", "-p", "cpu"]);
    shown.ends(1).says("the site's submit filter passes it, the scheduler says: Invalid account");
}

#[test]
fn what_is_not_there_is_told_with_the_nearest() {
    let test = cluster("place-usage");
    says_yes(&test);
    let fails = |args: &[&str], message: &str, hint: &str| {
        let code = if message.starts_with("there is no partition") { 1 } else { 64 };
        test.run(args).ends(code).fails_with(message, hint);
    };
    fails(
        &["where", "-p", "chemist"],
        "there is no partition 'chemist' here",
        "did you mean 'chemists'?",
    );
    fails(
        &["where", "--mem", "lots"],
        "--mem: 'lots' is no amount of memory",
        "it is 64, 64G or 65536M",
    );
    fails(&["where", "-N", "4-2"], "--nodes: '4-2' is not understood", "N or MIN-MAX is expected");
    assert_eq!(test.run(&["where", "-p", ""]).code, 64);
}

/// Nobody may be asked more than the budget allows, whatever the cluster's size.
#[test]
fn dry_runs_are_counted_and_bounded() {
    let test = cluster("place-budget");
    let many: String = (0..200).map(|n| queue(&format!("q{n:03}"), "c[01-02]", "")).collect();
    test.answer("queues", &many);
    let names: Vec<String> = (0..200).map(|n| format!("q{n:03}")).collect();
    let nodes = node("c01", "IDLE", (8, 0), "(null)", "gpu:0", &names.join(","));
    test.answer("nodes", &nodes);
    says_yes(&test);
    let shown = ask(&test, &["-c", "1"]);
    shown.ends(0);
    assert_eq!(shown.json()["asked"], 150);
}

#[test]
fn a_snapshot_answers_like_the_cluster_and_names_nobody_where_that_is_asked() {
    let test = cluster("place-snapshot");
    says_yes(&test);
    test.answer(
        "held",
        "ReservationName=course StartTime=1 EndTime=9999999999 Duration=1-00:00:00 Nodes=c02 NodeCnt=1 \
         CoreCnt=8 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=carol \
         Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a\n",
    );
    let held = std::fs::read_to_string(test.path("answers/held")).expect("there");
    test.answer("held", &held.replace("=course ", "=carol_17 "));
    let queues = std::fs::read_to_string(test.path("answers/queues")).expect("there");
    let (open, down) = queues.split_once("PartitionName=down ").expect("there");
    let down = down.replacen("AllocNodes=ALL", "AllocNodes=submit[1-2],gate.example.org", 1);
    let queues = format!("{open}PartitionName=down {down}");
    test.answer("queues", &queues);
    let shape = ["-c", "2", "-t", "1h"];
    let taken = test.run(&[&["snapshot", "-o", "snap.json"][..], &shape].concat());
    taken.ends(0).says("cluster lab, 3 nodes, 5 partitions, 1 job").says("--redact replaces them");
    test.run(&[&["snapshot", "--redact", "-o", "shown.json"][..], &shape].concat()).ends(0);
    let json = |file: &str| {
        let replayed = test.run(&[&["where", "--json", "--replay", file][..], &shape].concat());
        replayed.ends(0);
        replayed.json()
    };
    let (plain, shown) = (json("snap.json"), json("shown.json"));
    let live = ask(&test, &shape).json();
    let verdicts = |json: &serde_json::Value| -> Vec<String> {
        let places = json["placements"].as_array().expect("placements");
        let words = places.iter().map(|place| {
            format!("{} {} {}", place["queue"], place["verdict"], place["fit"]["fitting"])
        });
        words.collect()
    };
    assert_eq!(verdicts(&plain), verdicts(&live));
    assert_eq!(verdicts(&shown), verdicts(&live));
    let text = std::fs::read_to_string(test.path("work/shown.json")).expect("there");
    for name in [
        "alice",
        "bob",
        "carol",
        "physics",
        "staff",
        "chem\"",
        "train",
        "c01",
        "c[01",
        "g01",
        "submit",
        "gate",
        "example.org",
    ] {
        assert!(!text.contains(name), "{name}");
    }
    // The scheduler's own word is in it.
    let checked = [&["check", "--replay", "snap.json"][..], &shape].concat();
    test.run(&checked).ends(0).says("2 of 5 partitions would take it");
    // Of the two only the names differ; of the same one nothing.
    test.run(&["snapshot", "diff", "snap.json", "snap.json"]).ends(0).says("nothing differs");
    let nodes = node("c01", "DOWN", (8, 0), "(null)", "gpu:0", "cpu");
    test.answer("nodes", &nodes);
    test.run(&["snapshot", "-o", "later.json"]).ends(0);
    let differs = test.run(&["snapshot", "diff", "snap.json", "later.json"]);
    differs.ends(0).says("- 2 nodes c02 g01").says("~ node c01: state idle -> down");
    test.run(&["snapshot"])
        .ends(64)
        .fails_with("it was not said where to", "jobwise snapshot -o FILE");
    // What is no snapshot is told, and is no bug.
    for bytes in [&b"[1]"[..], b"{\"backend\": \"slurm\", \"commands\": 7}", b"{\"backend\""] {
        test.file("work/foreign.json", bytes);
        assert_eq!(test.run(&["where", "--replay", "foreign.json"]).code, 64);
    }
}

/// A file that nodetop 0.7.0 wrote: it holds neither who asks nor dry runs nor reservations.
#[test]
fn a_snapshot_of_nodetop_is_read_and_promises_nothing() {
    let test = cluster("place-nodetop");
    let read =
        |name: &str| std::fs::read_to_string(test.path("answers").join(name)).expect("there");
    let reply = |text: String| serde_json::json!({"rc": 0, "stdout": text, "stderr": ""});
    let snapshot = serde_json::json!({
        "nodetop": "0.7.0", "backend": "slurm", "queue_term": "partition",
        "captured_at": "2026-11-30T08:00:00.5", "errors": {},
        "commands": {
            "scontrol show node --all --oneliner": reply(read("nodes")),
            "scontrol show partition --all": reply(read("queues").replace(" Allow", "\n   Allow")),
            "scontrol show config": reply(read("config")),
            "sacctmgr -nP show assoc where user=alice format=Account,Partition,QOS,DefaultQOS":
                reply("physics||normal|normal\n".to_owned()),
            "sacctmgr -nP show qos format=Name,MaxWall,MaxTRESPerUser,MaxTRESPerJob,MaxJobsPerUser,MaxSubmitJobsPerUser,Priority,Flags":
                reply("normal||||||0|\n".to_owned()),
            "squeue -h -t RUNNING -o %N|%e": reply("g01|2026-11-30T08:20:00\n".to_owned()),
        },
    });
    test.file("work/nodetop.json", snapshot.to_string().as_bytes());
    let shown = ask(&test, &["-c", "4", "--replay", "nodetop.json"]);
    shown.ends(0);
    assert!(shown.stderr.contains("names no time zone"), "{}", shown.all());
    let verdicts = ["cpu", "down", "chemists", "short"].map(|queue| verdict(&shown, queue));
    assert_eq!(verdicts, ["no_answer", "blocked", "blocked", "limit"], "{}", shown.all());
    let json = shown.json();
    assert_eq!((json["can_ask"].clone(), json["user"].clone()), (false.into(), "alice".into()));
    // Who runs what was not recorded, and that is told.
    test.run(&["where", "-c", "4", "--replay", "nodetop.json"]).says("no answer to 'squeue");
}

/// Overviews, which people repeat, reuse what the scheduler said; to place a job it is asked.
#[test]
fn access_is_asked_once_in_a_quarter_of_an_hour_and_its_age_is_told() {
    let log = |test: &Test| {
        let log = std::fs::read_to_string(test.path("calls")).unwrap_or_default();
        let _ = std::fs::remove_file(test.path("calls"));
        log
    };
    let calls = |test: &Test| log(test).lines().filter(|line| line.starts_with("sbatch")).count();
    let test = cluster("place-access");
    let path = test.path("calls").display().to_string();
    let test = test.env("CALLS", &path);
    says_yes(&test);
    test.run(&["status"]).ends(0).says("access     asked just now by 3 dry runs");
    assert_eq!(calls(&test), 3);
    test.run(&["status"])
        .ends(0)
        .says("access     of 3 partitions, asked up to")
        .says("--fresh asks again");
    let again = test.run(&["queues", "--json"]);
    again.ends(0);
    assert_eq!(
        (again.json()["access"]["asked"].clone(), again.json()["access"]["reused"].clone()),
        (0.into(), 3.into())
    );
    assert!(again.json()["queues"][0]["heard"]["age_seconds"].is_u64(), "{}", again.all());
    assert_eq!(calls(&test), 0);
    test.run(&["where", "-p", "cpu"]).ends(0);
    assert_eq!(calls(&test), 1);
    test.run(&["status", "--fresh"]).ends(0);
    assert_eq!(calls(&test), 3);
    test.run(&["status", "--declared"]).ends(0);
    let asked = log(&test);
    let clients: Vec<&str> = asked.lines().filter(|line| !line.starts_with("id")).collect();
    assert!((1..=8).contains(&clients.len()), "{asked}");
    assert!(!asked.contains("sbatch"), "{asked}");
    let file = std::fs::metadata(test.path("home/cache/access/lab.json")).expect("kept");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777, 0o600);
    // Switched off, each asks and none keeps.
    let test = test.env("JOBWISE_ACCESS_TTL", "0");
    for _ in 0..2 {
        test.run(&["status"]).ends(0);
        assert_eq!(calls(&test), 3);
    }
}

#[test]
fn a_queue_that_refuses_the_smallest_job_is_not_told_as_open() {
    let test = cluster("place-closed");
    says_no(&test, "allocation failure: Access/permission denied");
    let shown = test.run(&["queues", "--json"]);
    let queues = shown.ends(0).json()["queues"].clone();
    let cpu = queues.as_array().expect("queues").iter().find(|queue| queue["name"] == "cpu");
    assert_eq!(cpu.expect("there")["term"], "no-access", "{}", shown.all());
    // Silence closes nothing, and is not kept.
    says_no(&test, "allocation failure: Unable to contact slurm controller (connect failure)");
    let shown = test.run(&["queues", "--json", "--fresh"]);
    let queues = shown.ends(0).json()["queues"].clone();
    let cpu = queues.as_array().expect("queues").iter().find(|queue| queue["name"] == "cpu");
    assert_eq!(cpu.expect("there")["term"], "open", "{}", shown.all());
}

/// `NOW` seconds from now, as the clients print times.
fn in_seconds(seconds: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    (now.as_secs() + seconds).to_string()
}

/// A job of the queue: `ID STATE NODES CPUS END LIMIT REASON PRIORITY LICENCES RESERVATION WANTED`.
fn job(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let [id, state, nodes, cpus, end, limit, reason, priority, licences, reservation, wanted] =
        words[..]
    else {
        panic!("eleven words")
    };
    let nodes = if nodes == "-" { "" } else { nodes };
    let wanted = if wanted == "-" { "" } else { wanted };
    let tres = format!("cpu={cpus},mem={cpus}000M,node=1,billing={cpus}");
    let cells = [
        id,
        "bob",
        "chem",
        "cpu",
        "normal",
        state,
        nodes,
        "1",
        cpus,
        &tres,
        "N/A",
        end,
        limit,
        reason,
        priority,
        licences,
        "OK",
        reservation,
        wanted,
        "x",
    ];
    format!("{}\n", cells.map(|cell| format!("{cell}@~@")).concat())
}

/// What the lab's Slurm 22.05 did with two licences, both held: `sbatch --test-only -L matlab:1` said
/// "allocation failure: Requested nodes are busy" and failed, `sbatch -L matlab:1` was taken and waited
/// with the reason Licenses; `-L matlab:3` and `-L nosuch` were refused at once, dry or not.
#[test]
fn a_busy_licence_is_a_wait_and_one_too_many_is_refused() {
    let test = cluster("place-licence");
    test.answer("config", &format!("{CONFIG}Licenses                = matlab:2\n"));
    let path = test.path("calls").display().to_string();
    let test = test.env("CALLS", &path);
    let dry_runs = |test: &Test| {
        let log = std::fs::read_to_string(test.path("calls")).unwrap_or_default();
        let _ = std::fs::remove_file(test.path("calls"));
        log.lines().filter(|line| line.starts_with("sbatch")).count()
    };
    says_no(&test, "allocation failure: Requested nodes are busy");
    let end = in_seconds(1200);
    let running = job(&format!("90 RUNNING c01 1 {end} 30:00 None 1 matlab:2 (null) -"));
    test.answer("jobs", &running);
    let shown = ask(&test, &["-L", "matlab:1", "-p", "cpu"]);
    assert_eq!(verdict(&shown, "cpu"), "queue", "{}", shown.all());
    let place = &shown.json()["placements"][0];
    assert_eq!(place["because"], "0 of 2 licences of matlab are free, 1 wanted (licence matlab)");
    assert_eq!(place["access"]["gates"][0]["kind"], "wait");
    assert_eq!(seconds_from_now(&place["start"]["at"]) / 60, 1200 / 60);
    assert_eq!(dry_runs(&test), 1);
    // Who waits for them is before us: both for ten minutes from then on.
    let waits = job("91 PENDING - 1 N/A 10:00 Licenses 9 matlab:2 (null) -");
    test.answer("jobs", &format!("{running}{waits}"));
    let shown = ask(&test, &["-L", "matlab:1", "-p", "cpu"]);
    let at = &shown.json()["placements"][0]["start"]["at"];
    assert_eq!(seconds_from_now(at) / 60, (1200 + 600) / 60);
    let _ = dry_runs(&test);
    // More than there are: nobody has to be asked.
    let shown = ask(&test, &["-L", "matlab:3"]);
    assert_eq!((verdict(&shown, "cpu"), dry_runs(&test)), ("limit".to_owned(), 0));
    // A name that the controller does not count is known to the scheduler alone, for all queues.
    says_no(&test, "allocation failure: Invalid license specification");
    let shown = ask(&test, &["-L", "nosuch:1", "--all"]);
    for queue in ["cpu", "gpu"] {
        assert_eq!(verdict(&shown, queue), "limit", "{}", shown.all());
    }
    shown.ends(1);
    assert!((1..=3).contains(&dry_runs(&test)));
    // Words that nobody knows are not asked for with account after account.
    says_no(&test, "sbatch: error: the moon is in the wrong phase");
    let _ = ask(&test, &["-p", "cpu"]);
    assert!((1..=2).contains(&dry_runs(&test)));
}

fn seconds_from_now(at: &serde_json::Value) -> i64 {
    let at: jiff::Timestamp = at.as_str().expect("a time").parse().expect("a time");
    // The nearest minute: the answer took a moment.
    at.duration_since(jiff::Timestamp::now()).as_secs() + 30
}

/// The lab's Slurm 22.05 took `sbatch -t 0` and `-t UNLIMITED` in a partition with a `MaxTime`, its dry
/// run named a start, and the job waited for ever (`PartitionTimeLimit`). Where the partition has no
/// limit it runs.
#[test]
fn no_time_limit_is_more_than_any() {
    let test = cluster("place-endless");
    let queues = [queue("cpu", "c[01-02]", ""), queue("short", "c[01-02]", "MaxTime=UNLIMITED")];
    test.answer("queues", &queues.concat());
    says_yes(&test);
    for time in ["0", "UNLIMITED", "infinite"] {
        let shown = ask(&test, &["-t", time, "--all"]);
        assert_eq!(verdict(&shown, "cpu"), "limit", "{}", shown.all());
        assert_eq!(verdict(&shown, "short"), "run_now", "{}", shown.all());
        let json = shown.json();
        assert_eq!(json["shape"]["time"], "unlimited");
        let placements = json["placements"].as_array().expect("placements");
        let of = |name: &str| placements.iter().find(|place| place["queue"] == name).expect("it");
        assert_eq!(
            of("cpu")["because"],
            "an unlimited time is longer than the 1-00:00:00 of partition cpu (partition cpu MaxTime)"
        );
        let options: Vec<&str> = of("short")["submit"]
            .as_array()
            .expect("options")
            .iter()
            .filter_map(|o| o.as_str())
            .collect();
        assert!(options.contains(&"--time=UNLIMITED"), "{options:?}");
    }
    test.run(&["where", "-t", "0", "-p", "short"]).says("1 CPU, no time limit");
}

/// On the lab's Slurm 22.05, of a reservation of two cores of c01: a job of one core started at once, a
/// second one of two cores waited until the first ended, one of three was never startable ("Requested
/// node configuration is not available").
#[test]
fn a_reservation_of_some_cores_has_those_and_no_more() {
    let test = cluster("place-part");
    test.answer(
        "held",
        "ReservationName=training StartTime=1 EndTime=9999999999 Duration=30-00:00:00 Nodes=c01 \
         NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=cpu Flags=IGNORE_JOBS,SPEC_NODES   \
         NodeName=c01 CoreIDs=0-1 TRES=cpu=2 Users=(null) Groups=(null) Accounts=physics \
         Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n",
    );
    let inside = |tasks: &str| {
        ask(
            &test,
            &["--reservation", "training", "-n", tasks, "-t", "5m", "-p", "cpu", "--mem", "100M"],
        )
    };
    let start = |shown: &Shown| shown.json()["placements"][0]["start"]["at"].clone();
    says_yes(&test);
    test.answer("jobs", "");
    assert_eq!(verdict(&inside("2"), "cpu"), "run_now");
    // All else of the node is given away; one core of the reservation is left.
    let end = in_seconds(420);
    let own = job(&format!("92 RUNNING c01 1 {end} 30:00 None 1 (null) training -"));
    let other =
        job(&format!("93 RUNNING c01 6 {} 2:00:00 None 1 (null) (null) -", in_seconds(7200)));
    test.answer("jobs", &format!("{own}{other}"));
    test.answer("nodes", &node("c01", "MIXED", (8, 7), "(null)", "gpu:0", "cpu"));
    assert_eq!(verdict(&inside("1"), "cpu"), "run_now");
    let shown = inside("2");
    assert_eq!(verdict(&shown, "cpu"), "queue", "{}", shown.all());
    assert_eq!(seconds_from_now(&start(&shown)) / 60, 420 / 60, "{}", shown.all());
    says_no(&test, "allocation failure: Requested node configuration is not available");
    let shown = inside("3");
    assert_eq!(verdict(&shown, "cpu"), "too_few", "{}", shown.all());
    // Where the queue does not tell whose jobs are in it, nothing is promised.
    says_yes(&test);
    test.answer("jobs", &own.replace("@~@training@~@", "@~@@~@"));
    let shown = inside("1");
    assert_eq!(verdict(&shown, "cpu"), "queue", "{}", shown.all());
    assert!(
        shown.json()["placements"][0]["because"]
            .as_str()
            .is_some_and(|text| text.contains("not told which are left"))
    );
}

/// A job in front that must have c01 leaves c02 to others, however large it is.
#[test]
fn a_job_in_front_takes_the_nodes_that_it_names() {
    let test = cluster("place-named");
    test.client(
        "sbatch",
        "echo \"sbatch: Job 5 to start at 1 using 1 processors on nodes c02 in partition cpu\" >&2",
    );
    let busy = |cpus| node("c01", "MIXED", (8, cpus), "(null)", "gpu:0", "cpu");
    let nodes = [busy(4), node("c02", "IDLE", (8, 0), "(null)", "gpu:0", "cpu")];
    test.answer("nodes", &nodes.concat());
    let running =
        job(&format!("90 RUNNING c01 4 {} 1:00:00 None 1 (null) (null) -", in_seconds(1800)));
    let waits = |wanted: &str| {
        let job = job(&format!("91 PENDING - 8 N/A 1:00:00 Resources 9 (null) (null) {wanted}"));
        test.answer("jobs", &format!("{running}{job}"));
        verdict(&ask(&test, &["-c", "8", "-t", "3h", "-p", "cpu", "--mem", "1G"]), "cpu")
    };
    assert_eq!(waits("c01"), "run_now");
    assert_eq!(waits("-"), "queue", "it would take c02");
}
