//! What users and administrators reported of programs that read accounting: each report that
//! concerns accounting has a test of its kind, with the input that the report tells.
//!
//! The reports are numbered F002 to F253. Those that are not here are no matter of accounting:
//! states, sizes and GPUs of nodes and the live queue (F037, F039, F047 to F049, F051, F054, F055,
//! F058, F064, F065, F070, F073 to F078, F080 to F088, F117, F135, F136, F138 to F141, F171, F172),
//! logs, exit codes of containers and preemption signals (F103, F106 to F108, F115, F133, F134),
//! scripts and submission (F051, F122 to F125 as far as sbatch is concerned, F152, F153, F159,
//! F160), how often a
//! queue may be asked (F146, F173, F174, F176, F181 to F186, F188), LSF, PBS, SGE, Kubernetes
//! (F191, F214 to F249) and language models (F250 to F253). F038 (a CPU may be a hardware thread)
//! is told by no record: only nodes know their threads.
//!
//! | report | what was read wrong | test |
//! |---|---|---|
//! | F002, F007, F014, F015, F016, F017, F151, F206 | requests for memory | `field_reports::a_request_for_memory_is_of_the_job_a_node_or_a_cpu` |
//! | F018, F023, F028 | use that stands on steps | `field_reports::what_was_used_stands_on_the_steps` |
//! | F006, F008, F009, F010, F012, F161 | limits that are words | `field_reports::a_time_limit_may_be_a_word` |
//! | F024, F025, F026 | forms of times | `field_reports::a_clock_is_read_in_every_form` |
//! | F019, F036, F207 | more use than there was | `field_reports::more_cpu_time_than_there_was_is_told_and_not_counted` |
//! | F020, F029, F033, F071, F079 | GPUs | `field_reports::gpus_held_idle_and_unmeasured_are_three_things` |
//! | F062, F063, F067, F068 | forms of GPUs | `accounting::gpus_are_counted_in_every_form` |
//! | F022, F034, F213 | sites that gather nothing | `field_reports::what_a_site_does_not_gather_is_no_zero` |
//! | F004, F027, F041, F142 | a row that is odd | `field_reports::an_odd_row_costs_itself_alone` |
//! | F042, F044, F045, F046, F050, F052 | text of users | `field_reports::text_of_users_moves_no_column_and_loses_no_job` |
//! | F059, F060, F089, F090, F092, F093, F094, F095, F096, F097, F098, F099, F132 | states | `accounting::every_state_is_in_one_count` |
//! | F091 | absence from the queue | `accounting::a_record_that_was_never_closed_is_in_no_sum` |
//! | F100, F102, F105 | deaths by memory | `field_reports::a_death_by_memory_is_told_of_the_step_that_died` |
//! | F109, F110, F111, F112 | tasks that wait | `model::id::tasks_that_wait_in_one_record_are_counted` |
//! | F032, F113, F114, F118, F119, F120, F121 | forms of ids | `field_reports::a_job_is_found_by_each_of_its_numbers` |
//! | F116 | bundled arrays | `field_reports::tasks_that_ended_alike_are_told_once` |
//! | F031, F122, F123, F124, F125, F126, F127, F150 | clusters | `field_reports::a_cluster_is_part_of_a_job_s_name` |
//! | F129, F130, F137 | numbers that come again | `field_reports::each_run_of_a_requeued_job_counts_once` |
//! | F053, F061, F147, F149, F157, F158, F178, F180, F187 | how accounting is asked | `field_reports::accounting_is_asked_in_one_way_whatever_the_environment` |
//! | F144 | words for nothing | `sched::slurm::values::absence_is_never_a_number` |
//! | F145 | numbers that JSON does not have | `sched::saved::every_shape_of_a_value_reads_the_same` |
//! | F143 | numbers or objects | `sched::saved::every_data_parser_writes_the_same_record` |
//! | F148, F154 | fields by release | `scheduler::fields_that_a_release_lacks_cost_no_answer` |
//! | F155, F156 | times without a zone | `field_reports::local_times_are_read_in_the_zone_and_said_to_be` |
//! | F162, F164, F165, F166, F167, F168, F169, F170 | no accounting | `scheduler::accounting_that_is_off_or_closed_cannot_be_asked` |
//! | F163 | accounting that is silent | `scheduler::an_unknown_id_is_a_no` |
//! | F179 | a query for each job | `processes::the_tasks_of_an_array_cost_no_more_than_one` |
//! | F189 | everybody's history | `sched::slurm::the_history_of_one_user_is_one_query` |
//! | F190 | ids that get no answer | `sched::slurm::jobs_that_had_begun_before_the_window_are_asked_for_whole` |
//! | F192, F194, F196, F197, F198, F199, F200 | lists of nodes | `text::hostlist::lists_expand_as_scontrol_does` |
//! | F035 | advice to whole nodes | `field_reports::a_job_that_takes_whole_nodes_gets_no_advice_on_their_size` |
//! | F201, F202, F203, F205, F212 | energy of what was not held | `history::energy::a_gpu_run_by_hand` |
//! | F204, F208, F210, F211 | energy of nodes | `model::drawn::joules_are_a_job_s_own_only_on_nodes_of_its_own` |
//! | F209 | energy of job and steps | `field_reports::energy_of_a_job_and_its_steps_is_not_added` |

use std::fs;

use serde_json::Value;

use crate::accounting::{
    Row, START, cluster, codes, exported, gauge, job, lines, near, record, step,
};
use crate::run::Test;

const MIB: f64 = 1_048_576.0;

#[test]
fn a_request_for_memory_is_of_the_job_a_node_or_a_cpu() {
    let of = |name: &str, asked: &str, cpus: &str, nodes: &str| {
        let row = job("7", "COMPLETED", 600).with("ReqMem", asked).with("AllocTRES", "");
        let told = record(name, &[row.with("AllocCPUS", cpus).with("NNodes", nodes)]);
        gauge(&told, "memory")["of"].as_f64().map(|bytes| bytes / MIB)
    };
    // F002: 32G of a job on two nodes, 16 GiB on each; 7.7 GiB of them used are 48 %, not 183 %.
    let rows = [
        job("7", "COMPLETED", 27_363)
            .with("ReqMem", "32G")
            .with("NNodes", "2")
            .with("AllocCPUS", "16"),
        step("7.batch", 27_363, "4-23:56:21").with("MaxRSS", "8075732K").with("AllocCPUS", "8"),
    ];
    near(&gauge(&record("f002", &rows), "memory")["share"], 8_075_732.0 / (16.0 * 1024.0 * 1024.0));
    // F007: 7 GiB for each of 4 CPUs. F016, F017: `-N 2 --mem=4g` is 8G in all. F151: `1Gn` before
    // 21.08, `1G` since.
    assert_eq!(of("f007", "7Gc", "4", "1"), Some(28.0 * 1024.0));
    assert_eq!(of("f017", "8G", "2", "2"), Some(4096.0));
    assert_eq!(
        (of("f151-n", "1Gn", "2", "1"), of("f151", "1G", "2", "1")),
        (Some(1024.0), Some(1024.0))
    );
    // F014, F015, F206: none was asked for.
    for (name, nothing) in [("f014", "0c"), ("f015", "0n"), ("f206", "")] {
        assert_eq!(of(name, nothing, "1", "1"), None, "{name}");
    }
}

#[test]
fn what_was_used_stands_on_the_steps() {
    // F018: an srun step, beside one that shows 0 and a job that shows nothing.
    let rows = [
        job("7", "COMPLETED", 600).with("ReqMem", "10000Mn"),
        step("7.extern", 600, "00:00:00").with("MaxRSS", "0"),
        step("7.0", 600, "00:00:10").with("MaxRSS", "412420K"),
    ];
    near(&gauge(&record("f018", &rows), "memory")["used"], 412_420.0 * 1024.0);
    // F023: one record, with the request of the job and the use of the steps.
    let rows = [
        job("7", "COMPLETED", 91).with("ReqMem", "32000M").with("TotalCPU", "00:24.041"),
        step("7.batch", 91, "00:03.292").with("MaxRSS", "71180K"),
        step("7.0", 70, "00:20.749").with("MaxRSS", "183612K"),
    ];
    let runs = exported("f023", &rows);
    assert_eq!(runs.len(), 1);
    assert_eq!(
        (&runs[0]["task_memory_bytes"], &runs[0]["cpu_milliseconds"]),
        (&(183_612_u64 * 1024).into(), &24_041.into())
    );
    // F028: amounts may have decimals and be large; a list without steps says nothing of use.
    let rows = [
        job("7", "COMPLETED", 3600).with("ReqMem", "1.50T"),
        step("7.0", 3600, "03:44:59").with("MaxRSS", "3072M"),
    ];
    let test = cluster("f028", &rows);
    let run = &lines(&test.run(&["export", "--from", "rows.txt"]))[0];
    assert_eq!(run["requested_memory_bytes"], 3_u64 << 39);
    assert_eq!(run["task_memory_bytes"], 3_u64 << 30);
    let window = ["-S", "2026-11-01", "-E", "2026-12-31"];
    let short = lines(&test.run(&[&["export", "--no-steps"], &window[..]].concat()));
    assert!(short[0]["task_memory_bytes"].is_null() && short[0]["cpu_milliseconds"].is_null());
}

#[test]
fn a_time_limit_may_be_a_word() {
    let of = |name: &str, limit: &str| {
        let row = job("7", "COMPLETED", 12_167).with("Timelimit", limit);
        let test = cluster(name, std::slice::from_ref(&row));
        let told = test.run(&["job", "7", "--json"]).ends(0).json();
        let time = gauge(&told["jobs"][0], "time");
        assert!(time["share"].is_null(), "{name}: {time}");
        let run = lines(&test.run(&["export", "--from", "rows.txt"]))[0].clone();
        (run["limit_seconds"].clone(), run["elapsed_seconds"].as_u64())
    };
    // F006, F007, F009: no limit is a value of its own, and no share of it is one.
    assert_eq!(of("f006", "UNLIMITED"), ("unlimited".into(), Some(12_167)));
    // F008, F010, F012: the partition's, which is not known here; in either spelling.
    for (name, word) in [("f010", "Partition_Limit"), ("f010-man", "Partition_limit"), ("f012", "")]
    {
        assert_eq!(of(name, word), (Value::Null, Some(12_167)), "{name}");
    }
    // F008, F012: cancelled before it started.
    let never = job("7", "CANCELLED by 1000", 0).waiting().with("Start", "None");
    let never = never.with("End", &START.to_string()).with("Timelimit", "Partition_Limit");
    let told = record("f008", &[never.with("ReqMem", "4000G")]);
    assert!(told["started"].is_null() && told["elapsed"].is_null(), "{told:#}");
    // F161: longer than its limit: the record is right, and 22290 of 3600 s are its share.
    let over = job("7", "TIMEOUT", 22_290).with("Timelimit", "01:00:00");
    let time = gauge(&record("f161", &[over]), "time");
    assert_eq!((&time["used"], &time["share"]), (&22_290.0.into(), &(22_290.0 / 3600.0).into()));
}

#[test]
fn a_clock_is_read_in_every_form() {
    // F024, F025: `[D-]HH:MM:SS`, `MM:SS.mmm`. 25 min 34.179 s are 1534179 ms.
    for (text, millis) in [
        ("1-02:03:04", 93_784_000),
        ("00:24.041", 24_041),
        ("25:34.179", 1_534_179),
        ("02:59:58", 10_798_000),
        ("1-03:00:00", 97_200_000),
        ("2-04:05:06", 187_506_000),
    ] {
        let rows = [job("7", "COMPLETED", 200_000).with("TotalCPU", text)];
        assert_eq!(exported("f024", &rows)[0]["cpu_milliseconds"], millis, "{text}");
    }
    let long = job("7", "COMPLETED", 97_200);
    assert_eq!(exported("f025", &[long])[0]["elapsed_seconds"], 97_200);
    // F026: CPUTime is what was held, 8 CPUs for 2-01:24:56; what was used is TotalCPU.
    let held = job("7", "COMPLETED", 177_896).with("AllocCPUS", "8").with("CPUTimeRAW", "1423168");
    let run = &exported("f026", std::slice::from_ref(&held))[0];
    assert_eq!(run["cpu_milliseconds"], Value::Null);
    let run = &exported("f026-used", &[held.with("TotalCPU", "10:00:00")])[0];
    assert_eq!(run["cpu_milliseconds"], 36_000_000);
}

#[test]
fn more_cpu_time_than_there_was_is_told_and_not_counted() {
    // F019, F036, F207: 42 h on 2 CPUs in 26:34, 4629 %.
    let two = |row: Row| row.with("AllocCPUS", "2").with("AllocTRES", "cpu=2,node=1");
    let two = |row: Row| two(row).with("Timelimit", "00:30:00");
    let rows = [two(job("7", "COMPLETED", 1594)), two(step("7.0", 1594, "1-16:59:47"))];
    let told = record("f019", &rows);
    let cpu = gauge(&told, "cpu");
    assert!(cpu["share"].is_null() && cpu["gathered_by"].is_null(), "{cpu}");
    near(&cpu["used"], 147_587.0 / 1594.0);
    assert_eq!(codes(&told), ["cpu-time-above-all"]);
    // A second more than the clock of whole seconds tells is none too many.
    let rows = [two(job("7", "COMPLETED", 600)), two(step("7.0", 600, "00:20:01"))];
    assert_eq!(gauge(&record("f036", &rows), "cpu")["share"], 1.0);
}

#[test]
fn gpus_held_idle_and_unmeasured_are_three_things() {
    let with = |name: &str, tres: &str, used: &str| {
        let four = |row: Row| row.with("AllocCPUS", "4").with("AllocTRES", tres);
        let rows = [
            // Only Slurm since 24.05 has this column; before, the counter was that of one GPU.
            four(job("7", "COMPLETED", 7200)).with("StdOut", "x"),
            four(step("7.0", 7200, "06:00:00")).with("TRESUsageInTot", used),
        ];
        let test = cluster(name, &rows);
        let told = test.run(&["job", "7", "--json"]).ends(0).json()["jobs"][0].clone();
        let sums = test.run(&["stats", "--by", "gpu", "--from", "rows.txt", "--json"]);
        (told, sums.ends(0).json())
    };
    let idle = "cpu=06:00:00,gres/gpumem=400M,gres/gpuutil=0,mem=1G";
    let (told, sums) = with("f079", "cpu=4,gres/gpu=4,node=1", idle);
    // F029, F079: measured, and nothing was done with them: the first thing to say.
    assert_eq!(gauge(&told, "gpu")["share"], 0.0);
    assert_eq!(told["findings"][0]["code"], "gpu-idle");
    assert_eq!(told["findings"][0]["weight"], "critical");
    assert_eq!(
        (&sums["total"]["idle"]["runs"], &sums["total"]["idle"]["gpu_hours"]),
        (&1.into(), &8.0.into())
    );
    // F020: of the two hours that it ran, not of the day that it might have.
    assert_eq!(sums["total"]["used"]["gpu_hours"], 8.0);
    // F029: no GPU is no gauge.
    let (told, _) = with("f029", "cpu=4,node=1", "cpu=06:00:00,mem=1G");
    assert!(gauge(&told, "gpu").is_null());
    // F033: a use of 0 beside no memory is how it prints where nothing is measured.
    let nothing = "cpu=06:00:00,gres/gpumem=0,gres/gpuutil=0,mem=1G";
    let (told, sums) = with("f033", "cpu=4,gres/gpu=1,node=1", nothing);
    let gpu = gauge(&told, "gpu");
    assert!(gpu["used"].is_null() && gpu["gathered_by"].is_string(), "{gpu}");
    assert!(!codes(&told).iter().any(|code| code.starts_with("gpu-")), "{told:#}");
    assert_eq!(sums["total"]["idle"]["runs"], 0);
    // F071: the type of a slice has a dot.
    let slice = "cpu=4,gres/gpu:nvidia_h100_nvl_1g.12gb=1,node=1";
    let (told, sums) = with("f071", slice, "cpu=06:00:00,mem=1G");
    assert_eq!(gauge(&told, "gpu")["of"], 1.0);
    assert_eq!(sums["groups"][0]["name"], "nvidia_h100_nvl_1g.12gb");
}

#[test]
fn what_a_site_does_not_gather_is_no_zero() {
    // F022: no row has MaxRSS or TotalCPU. F034: the same, as accounting is a moment late. F213:
    // energy=0 in every list.
    let gathered =
        |row: Row| row.with("TRESUsageOutTot", "energy=0").with("ConsumedEnergyRaw", "0");
    let rows: Vec<Row> = (1..=8_u64)
        .flat_map(|id| {
            let start = START + id * 10_000;
            let own = job(&id.to_string(), "TIMEOUT", 7200).from(start, 7200);
            let batch = step(&format!("{id}.batch"), 7200, "").from(start, 7200);
            [gathered(own.with("AllocTRES", "cpu=1,mem=4G,node=1")), gathered(batch)]
        })
        .collect();
    let test = cluster("f022", &rows);
    let told = test.run(&["job", "7", "--json"]).ends(0).json()["jobs"][0].clone();
    for name in ["cpu", "memory"] {
        let gauge = gauge(&told, name);
        assert!(gauge["used"].is_null() && gauge["share"].is_null(), "{gauge}");
        let by = gauge["gathered_by"].as_str().expect("a setting");
        assert!(by.contains("JobAcctGatherType"), "{by}");
    }
    assert!(told["energy"].is_null() && codes(&told).is_empty(), "{told:#}");
    test.run(&["job", "7", "--all"]).ends(0).says("a site measures it with AcctGatherEnergyType");
    // Whether they hung is not known; no waste of memory, no advice is made of it.
    let sums = test.run(&["overview", "--from", "rows.txt", "--json"]).ends(0).json();
    assert_eq!((&sums["total"]["runs"], &sums["total"]["hung"]), (&8.into(), &Value::Null));
    let sized = test.run(&["sizing", "--from", "rows.txt", "--all", "--json"]).ends(0).json();
    let advice = sized["workloads"][0]["advice"].as_array().expect("advice").clone();
    let memory = advice.iter().find(|row| row["option"] == "--mem").expect("a verdict");
    assert!(memory["suggestion"].is_null(), "{memory}");
}

#[test]
fn an_odd_row_costs_itself_alone() {
    // F004: a row of no CPUs. F027: `16?` loses that field. F041: a job of nobody known.
    let rows = [
        job("1", "COMPLETED", 60).with("ReqCPUS", "0").with("AllocCPUS", "0").with("ReqMem", "0n"),
        job("2", "COMPLETED", 60).with("AllocCPUS", "16?").with("NNodes", "16?"),
        job("3", "COMPLETED", 60).with("User", "").with("UID", "4294967294"),
        job("4", "COMPLETED", 60),
    ];
    let runs = exported("f004", &rows);
    assert_eq!(runs.len(), 4);
    assert!(runs[0]["cpus"].is_null() && runs[1]["cpus"].is_null() && runs[1]["nodes"].is_null());
    assert_eq!((&runs[1]["elapsed_seconds"], &runs[2]["user"]), (&60.into(), &Value::Null));
    // F010, F142: a document with a record that has no number: counted, the rest is read.
    let test = Test::new("f142");
    let document = r#"{"jobs": [{"state": {"current": ["FAILED"]}},
        {"job_id": 8, "name": "x", "state": {"current": ["COMPLETED"]}}]}"#;
    test.file("work/jobs.json", document.as_bytes());
    let shown = test.run(&["export", "--from", "jobs.json"]);
    assert_eq!(lines(&shown).len(), 1);
    assert!(
        shown.stderr.contains("1 record could not be read: jobs.json, job 1"),
        "{}",
        shown.stderr
    );
}

#[test]
fn text_of_users_moves_no_column_and_loses_no_job() {
    // F042, F044, F046: pipes in a name, before the columns that decide. F045: a delimiter at the
    // end of each line (`sacct -p`). F050: a name that is no UTF-8. F052: one that is.
    let mut file =
        b"JobID|JobName|UID|State|ExitCode|Submit|Start|End|Elapsed|AllocCPUS|NodeList|\n".to_vec();
    let names: [&[u8]; 5] = [
        b"some_jobname . | grep hot",
        b"crazy|name",
        b"mail_test|",
        b"caf\xe9 job",
        "d\u{e9}d\u{e9} job".as_bytes(),
    ];
    for (id, name) in (1..).zip(names) {
        file.extend_from_slice(format!("{id}|").as_bytes());
        file.extend_from_slice(name);
        let rest = "|1001|FAILED|1:0|1796000000|1796000060|1796000120|00:01:00|4|n1|\n";
        file.extend_from_slice(rest.as_bytes());
    }
    let test = Test::new("f042");
    test.file("work/rows.txt", &file);
    let shown = test.run(&["export", "--from", "rows.txt"]);
    let runs = lines(&shown);
    let found: Vec<&str> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
    assert_eq!(
        found,
        [
            "some_jobname . | grep hot",
            "crazy|name",
            "mail_test|",
            "caf\u{fffd} job",
            "d\u{e9}d\u{e9} job"
        ]
    );
    for run in &runs {
        assert_eq!(
            (&run["uid"], &run["state"], &run["cpus"]),
            (&1001.into(), &"FAILED".into(), &4.into()),
            "{run}"
        );
    }
    assert!(!shown.stderr.contains("could not be read"), "{}", shown.stderr);
}

#[test]
fn a_death_by_memory_is_told_of_the_step_that_died() {
    // F100, F102: 0:125 is Slurm's own word and no signal; the state wins over the code.
    let rows = [
        job("7", "OUT_OF_MEMORY", 60).with("ExitCode", "0:125"),
        step("7.batch", 60, "00:00:50").with("State", "OUT_OF_MEMORY").with("ExitCode", "0:125"),
        step("7.extern", 60, "00:00:00"),
    ];
    let told = record("f100", &rows);
    assert_eq!((&told["cause"]["family"], codes(&told).len()), (&"host_oom".into(), 0));
    let shown = cluster("f102", &rows).run(&["job", "7"]);
    assert!(!shown.ends(0).stdout.contains("signal 125"), "{}", shown.stdout);
    // F105: the job goes on, and tries again in place.
    let mut rows = vec![job("7", "RUNNING", 60).with("End", "Unknown")];
    for number in 0..2 {
        let died = step(&format!("7.{number}"), 20, "00:00:10").with("State", "OUT_OF_ME+");
        rows.push(died.with("ExitCode", "0:125"));
    }
    let test = cluster("f105", &rows);
    test.client("squeue", "echo '7 alice'");
    let told = test.run(&["job", "7", "--json"]).ends(0).json()["jobs"][0].clone();
    assert_eq!(told["findings"][0]["code"], "step-out-of-memory");
    assert_eq!(told["findings"][0]["figures"][0]["value"], 2.0);
}

#[test]
fn a_job_is_found_by_each_of_its_numbers() {
    // F032, F118: a task of an array has a number of its own, by which it was submitted. F113,
    // F114, F119 to F121 (F120): ranges, tasks, steps and components are ids, and never job 0.
    let rows = [
        job("1043074_91", "COMPLETED", 60).with("JobIDRaw", "1043166"),
        step("1043074_91.batch", 60, "00:00:30").with("JobIDRaw", "1043166.batch"),
    ];
    let test = cluster("f118", &rows);
    // Slurm finds it by either.
    let sacct = fs::read_to_string(test.path("bin/sacct")).expect("the client");
    let (_, body) = sacct.split_once("pause()").expect("its header");
    let (_, body) = body.split_once('\n').expect("its body");
    test.client("sacct", &body.replace("ids=${*##*--jobs=}", "ids=1043074"));
    for id in ["1043166", "1043074_91", "1043074", "1043074_91.batch"] {
        let told = test.run(&["job", id, "--json"]).ends(0).json();
        assert_eq!(told["jobs"][0]["id"], "1043074_91", "{id}");
        assert_eq!(told["jobs"][0]["steps"][0]["cpu_time"], 30, "{id}");
    }
    let ids = ["57829110_[5-100]", "715219_23", "1234567+0", "1234567+1"];
    let rows: Vec<Row> = ids.iter().map(|id| job(id, "COMPLETED", 60)).collect();
    let runs = exported("f113", &rows);
    let mut found: Vec<&str> = runs.iter().filter_map(|run| run["id"].as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["1234567+0", "1234567+1", "57829110_[5-100]", "715219_23"]);
}

#[test]
fn tasks_that_ended_alike_are_told_once() {
    // F116: a line for each of 300 tasks is no summary.
    let rows: Vec<Row> = (0..300)
        .map(|task| {
            job(&format!("7_{task}"), "NODE_FAIL", 60).with("JobIDRaw", &(9000 + task).to_string())
        })
        .collect();
    let shown = cluster("f116", &rows).run(&["diagnose", "7"]);
    shown.ends(0).says("299 more jobs");
    assert_eq!(shown.stdout.matches("cause ").count(), 1, "{}", shown.stdout);
}

#[test]
fn a_cluster_is_part_of_a_job_s_name() {
    // F122 to F125 (F123, F124): `sbatch --parsable` prints id;cluster. F127: it is asked for there.
    let test = cluster("f123", &[job("7", "COMPLETED", 60)]);
    let calls = test.path("calls").display().to_string();
    let test = test.env("CALLS", &calls);
    let told = test.run(&["job", "7;nautilus", "--json"]).ends(0).json();
    assert_eq!(told["jobs"][0]["id"], "7;nautilus");
    let asked = fs::read_to_string(test.path("calls")).expect("calls");
    assert!(asked.contains("--clusters=nautilus"), "{asked}");
    // F150: no cluster is named unless somebody names one.
    fs::remove_file(test.path("calls")).expect("removed");
    test.run(&["job", "7"]).ends(0);
    test.run(&["export", "-S", "2026-11-01", "-E", "2026-12-31"]).ends(0);
    let asked = fs::read_to_string(test.path("calls")).expect("calls");
    assert!(!asked.contains("--cluster") && asked.contains("--jobs=7"), "{asked}");
    // F126: the same number on two clusters is two jobs. F031: what was held is told by AllocCPUS,
    // whatever unit the list of resources counts in.
    let rows = [
        job("7", "COMPLETED", 60).with("Cluster", "west"),
        job("7", "FAILED", 60).with("AllocCPUS", "16").with("AllocTRES", "billing=16,cpu=4,node=1"),
    ];
    let runs = exported("f126", &rows);
    let clusters: Vec<&str> = runs.iter().filter_map(|run| run["cluster"].as_str()).collect();
    assert_eq!(clusters, ["lab", "west"]);
    assert_eq!(runs[0]["cpus"], 16);
}

#[test]
fn each_run_of_a_requeued_job_counts_once() {
    // F130: requeued four times, after 01:04:49, 01:14:33, 01:42:02 and 00:35:53.
    let mut start = START;
    let mut rows = Vec::new();
    for (seconds, state) in [
        (3889, "REQUEUED"),
        (4473, "REQUEUED"),
        (6122, "REQUEUED"),
        (2153, "REQUEUED"),
        (600, "COMPLETED"),
    ] {
        rows.push(job("235929", state, seconds).from(start, seconds));
        start += seconds + 120;
    }
    let test = cluster("f130", &rows);
    let told = test.run(&["job", "235929", "--json"]).ends(0).json()["jobs"][0].clone();
    assert_eq!(told["earlier"].as_array().map(Vec::len), Some(4));
    // F137: a file that overlaps with another adds nothing.
    let from = ["--from", "rows.txt", "rows.txt", "--json"];
    let sums = test.run(&[&["stats", "--by", "user"], &from[..]].concat()).ends(0).json();
    assert_eq!(
        (&sums["total"]["used"]["runs"], &sums["total"]["preempted"]["runs"]),
        (&5.into(), &4.into())
    );
    near(&sums["total"]["preempted"]["core_hours"], 16_637.0 / 3600.0);
    // F129: a number of years ago is another job's.
    let rows =
        [job("235929", "FAILED", 60).from(START - 200_000_000, 60), job("235929", "COMPLETED", 60)];
    let told = cluster("f129", &rows).run(&["job", "235929", "--json"]).ends(0).json();
    assert_eq!(
        (&told["jobs"][0]["state"], told["jobs"][0]["earlier"].as_array().map(Vec::len)),
        (&"COMPLETED".into(), Some(0))
    );
}

#[test]
fn accounting_is_asked_in_one_way_whatever_the_environment() {
    // F053, F157: formats, filters and times of the user's own. F061: lists of tasks cut at 64 bytes.
    let test = cluster("f053", &[job("7", "COMPLETED", 60)])
        .env("SACCT_FORMAT", "jobid,state")
        .env("SQUEUE_FORMAT", "%i")
        .env("SLURM_CLUSTERS", "other")
        .env("SLURM_BITSTR_LEN", "8")
        .env("SLURM_TIME_FORMAT", "relative");
    let calls = test.path("calls").display().to_string();
    let test = test.env("CALLS", &calls);
    let sacct = fs::read_to_string(test.path("bin/sacct")).expect("the client");
    let (_, body) = sacct.split_once("pause()").expect("its header");
    let (_, body) = body.split_once('\n').expect("its body");
    let told = "echo \"$SACCT_FORMAT|$SQUEUE_FORMAT|$SLURM_CLUSTERS|$SLURM_BITSTR_LEN|$SLURM_TIME_FORMAT\" >\"$answers/seen\"\n";
    test.client("sacct", &[told, body].concat());
    for command in ["export", "overview", "sizing", "patterns", "reliability"] {
        test.run(&[command, "-S", "2026-11-01", "-E", "2026-12-31"]).ends(0);
    }
    let seen = fs::read_to_string(test.path("answers/seen")).expect("seen");
    assert_eq!(seen.trim(), "|||0|%s");
    let asked = fs::read_to_string(test.path("calls")).expect("calls");
    let histories: Vec<&str> = asked.lines().filter(|call| call.contains("--format=")).collect();
    // F147: no JSON for a history. F149, F158: both ends of the window, as moments. F178, F180,
    // F187: two windows of a month for each question, and never one without a begin; sizing asks
    // for the steps of the runs that it judges on top, by their ids.
    let by_id = histories.iter().filter(|call| call.contains("--jobs=7")).count();
    assert_eq!((histories.len(), by_id), (5 * 2 + 1, 1), "{asked}");
    for call in histories {
        assert!(call.contains("--starttime=uts") && call.contains("--endtime=uts"), "{call}");
        assert!(!call.contains("--json") && !call.contains("now-"), "{call}");
    }
}

#[test]
fn local_times_are_read_in_the_zone_and_said_to_be() {
    // F155, F156: `2026-11-30T08:34:36` says no zone; in Berlin it is 07:34:36 UTC, 1796024076.
    let row = job("7", "COMPLETED", 60).with("Start", "2026-11-30T08:34:36");
    let row = row.with("End", "2026-11-30T08:35:36").with("Submit", "2026-11-30T08:34:00");
    let test = cluster("f155", &[row]).env("TZ", "Europe/Berlin");
    let shown = test.run(&["export", "--from", "rows.txt"]);
    let run = &lines(&shown)[0];
    assert_eq!((&run["started"], &run["elapsed_seconds"]), (&1_796_024_076.into(), &60.into()));
    assert!(shown.stderr.contains("local times without a zone"), "{}", shown.stderr);
    assert!(exported("f155-epoch", &[job("7", "COMPLETED", 60)])[0]["started"] == START);
}

#[test]
fn a_job_that_takes_whole_nodes_gets_no_advice_on_their_size() {
    // F035: 6 of 180 GiB and 2 of 64 CPUs, on a node that nobody else could have had.
    let told = |name: &str, exclusive: &str| {
        let large = |row: Row| {
            row.with("AllocCPUS", "64")
                .with("AllocTRES", "cpu=64,mem=180G,node=1")
                .with("Exclusive", exclusive)
        };
        let rows = [
            large(job("7", "COMPLETED", 7200)),
            large(step("7.0", 7200, "04:00:00")).with("MaxRSS", "6G"),
        ];
        let told = record(name, &rows);
        codes(&told).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let advice = ["cpu-little-used", "memory-left-over"];
    assert!(!told("f035", "NODE").iter().any(|code| advice.contains(&code.as_str())));
    assert!(advice.iter().all(|code| told("f035-shared", "NO").contains(&(*code).to_owned())));
}

#[test]
fn energy_of_a_job_and_its_steps_is_not_added() {
    // F209: 4.19G of the job, 418.52M and 39.23M of its steps, in powers of 1000.
    let rows = [
        job("7", "COMPLETED", 7200).with("ConsumedEnergy", "4.19G"),
        step("7.batch", 7200, "00:00:10").with("ConsumedEnergy", "39.23M"),
        step("7.0", 7200, "00:10:00").with("ConsumedEnergy", "418.52M"),
    ];
    assert_eq!(exported("f209", &rows)[0]["joules"], 4_190_000_000_u64);
}
