//! Each rule of a site, and what it does to alice, whose accounts are physics (the default) and
//! chem. Partition, QOS and account records are of the forms that Slurm 20.11 to 26.05 printed.

use super::*;
use crate::capacity::lab::{Lab, NOW};
use crate::model::Shape;

/// What is asked for, by options of `sbatch`.
fn shape(options: &[(&str, &str)]) -> Shape {
    let mut shape = Shape::default();
    for (option, value) in options {
        shape.apply(option, Some(value)).expect("an option");
    }
    shape
}

/// The lab with its one partition under these rules.
fn partition(rules: &str) -> Lab {
    Lab::new()
        .says("show partition", &format!("PartitionName=batch Nodes=n1 TotalNodes=1 {rules}\n"))
}

struct Judged {
    access: Access,
    term: Term,
}

impl Judged {
    /// `code kind`, the hardest first.
    fn codes(&self) -> Vec<String> {
        let told = |gate: &Gate| format!("{} {:?}", gate.code, gate.kind).to_lowercase();
        self.access.gates.iter().map(told).collect()
    }

    fn first(&self) -> &Gate {
        self.access.gates.first().expect("something in the way")
    }
}

fn judge(lab: &Lab, options: &[(&str, &str)]) -> Judged {
    let cluster = lab.cluster();
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let wanted = shape(options);
    let queue = &cluster.queues[0];
    let access = gates.access(queue, (!options.is_empty()).then_some(&wanted));
    let term = Term::of(&access);
    Judged { access, term }
}

fn codes(lab: &Lab, options: &[(&str, &str)]) -> Vec<String> {
    judge(lab, options).codes()
}

#[test]
fn an_open_partition_is_open() {
    let judged = judge(&Lab::new(), &[("nodes", "1"), ("time", "1:00:00")]);
    assert_eq!((judged.codes(), judged.term), (Vec::new(), Term::Open));
    let way = &judged.access.way;
    assert_eq!((way.account.as_deref(), way.qos.as_deref()), (Some("physics"), Some("normal")));
    assert!(!way.names_account && !way.names_qos);
}

#[test]
fn the_state_of_a_partition_decides_first() {
    let state = |word: &str| {
        let judged = judge(&partition(&format!("State={word}")), &[]);
        (judged.first().code.clone(), judged.term)
    };
    // `man slurm.conf`; the lab: a job to a DOWN partition waits (PartitionDown), one to a draining
    // or inactive partition is refused.
    assert_eq!(state("DOWN"), ("QUEUE_NOT_STARTED".to_owned(), Term::Closed));
    assert_eq!(state("DRAIN"), ("QUEUE_DISABLED".to_owned(), Term::Closed));
    assert_eq!(state("INACTIVE"), ("QUEUE_DISABLED".to_owned(), Term::Closed));
    assert_eq!(state("BUSY"), ("QUEUE_STATE_UNKNOWN".to_owned(), Term::Unchecked));
}

#[test]
fn a_dead_partition_tells_all_that_closes_it() {
    let dead = partition("AllowAccounts=none AllowQos=none State=DOWN");
    let judged = judge(&dead, &[]);
    for code in ["queue_not_started fatal", "no_accounts fatal", "no_qos fatal"] {
        assert!(judged.codes().iter().any(|known| known == code), "{:?}", judged.codes());
    }
    assert_eq!(judged.term, Term::Closed);
}

#[test]
fn a_partition_whose_nodes_are_all_out_has_none() {
    let out =
        Lab::new().nodes(&["n1 CPUTot=8 CPUAlloc=0 State=DOWN*", "n2 CPUTot=8 State=IDLE+DRAIN"]);
    let judged = judge(&out, &[]);
    assert_eq!(
        (judged.codes(), judged.term),
        (vec!["all_nodes_unschedulable fatal".to_owned()], Term::NoNodes)
    );
    assert!(judged.first().text.contains("2 nodes, down or drained"), "{}", judged.first().text);
    // Nodes that boot on demand are there.
    let cloud = Lab::new().nodes(&["n1 CPUTot=8 CPUAlloc=0 State=IDLE+CLOUD+POWERED_DOWN"]);
    assert_eq!(judge(&cloud, &[]).term, Term::Open);
    let empty = Lab::new().says("show partition", "PartitionName=none TotalNodes=0 State=UP\n");
    assert_eq!(codes(&empty, &[]), ["no_nodes fatal"]);
}

#[test]
fn an_account_may_open_what_another_cannot() {
    // Only chem is let in: the way goes through chem, and says that it has to be named.
    let listed = judge(&partition("State=UP AllowAccounts=chem"), &[]);
    assert_eq!((listed.codes(), listed.term), (Vec::new(), Term::Open));
    let way = &listed.access.way;
    assert_eq!((way.account.as_deref(), way.names_account), (Some("chem"), true));
    let denied = judge(&partition("State=UP DenyAccounts=physics"), &[]);
    assert_eq!(denied.access.way.account.as_deref(), Some("chem"));
    assert_eq!(denied.term, Term::Open);
    // Whoever asks for physics is told about physics, and what would do instead.
    let asked = judge(&partition("State=UP AllowAccounts=chem"), &[("account", "physics")]);
    assert_eq!(asked.codes(), ["account_not_allowed fatal"]);
    assert_eq!(asked.first().lift.as_deref(), Some("--account=chem"));
    assert_eq!(asked.first().source, "partition batch AllowAccounts");
    let neither = judge(&partition("State=UP AllowAccounts=biology"), &[]);
    assert_eq!(
        (neither.codes(), neither.term),
        (vec!["account_not_allowed fatal".to_owned()], Term::NoAccess)
    );
    let both = judge(&partition("State=UP DenyAccounts=physics,chem"), &[]);
    assert_eq!(both.term, Term::NoAccess);
}

#[test]
fn an_account_that_is_not_mine_is_refused() {
    let judged = judge(&Lab::new(), &[("account", "biology")]);
    assert_eq!(judged.codes(), ["no_association fatal"]);
    assert!(judged.first().lift.as_deref().is_some_and(|lift| lift.contains("physics or chem")));
    let nobody = Lab::new().says("show assoc ", "");
    let judged = judge(&nobody, &[]);
    assert_eq!(
        (judged.codes(), judged.term),
        (vec!["no_association fatal".to_owned()], Term::NoAccess)
    );
    // Where what is enforced could not be read, it is not known whether that matters.
    let unread = Lab::new().says("show assoc ", "").refuses("show config", "no\n");
    assert_eq!(codes(&unread, &[]), ["no_association unchecked"]);
    // A site that enforces nothing needs no account.
    let free =
        Lab::new().says("show assoc ", "").says("show config", "AccountingStorageEnforce = none\n");
    assert_eq!(judge(&free, &[]).term, Term::Open);
}

#[test]
fn whether_a_parent_s_name_counts_is_not_guessed() {
    let tree = "ClusterName=lab Account=science UserName= ParentAccount=root(1)\n\
                ClusterName=lab Account=physics UserName= ParentAccount=science(2)\n\
                ClusterName=lab Account=physics UserName=alice(1001) DefAssoc=Yes\n";
    let only = Lab::new().says("show assoc ", "lab|physics||normal|normal||||||||||||\n");
    let only = only.says("assoc_mgr", tree);
    for rule in ["AllowAccounts=science", "DenyAccounts=science"] {
        let partition = format!("PartitionName=batch Nodes=n1 TotalNodes=1 State=UP {rule}\n");
        let lab = Lab { answers: only.answers.clone() }.says("show partition", &partition);
        assert_eq!(codes(&lab, &[]), ["account_by_parent unchecked"], "{rule}");
    }
}

#[test]
fn rights_on_another_cluster_are_none_here() {
    let other = Lab::new().says("show assoc ", "elsewhere|physics||normal|normal||||||||||||\n");
    assert_eq!(codes(&other, &[]), ["no_association fatal"]);
}

#[test]
fn what_could_not_be_checked_is_not_allowed() {
    let down = "sacctmgr: error: slurm_persist_conn_open: Connection refused\n";
    let blind = Lab::new().refuses("show assoc ", down);
    let judged = judge(&blind, &[]);
    assert_eq!(
        (judged.codes(), judged.term),
        (vec!["accounts_unknown unchecked".to_owned()], Term::Unchecked)
    );
    let blind = partition("State=UP AllowAccounts=chem").refuses("show assoc ", down);
    assert_eq!(judge(&blind, &[]).term, Term::Unchecked);
    let no_groups = partition("State=UP AllowGroups=vips").refuses("id", "id: cannot find name\n");
    assert_eq!(codes(&no_groups, &[]), ["groups_unknown unchecked"]);
}

#[test]
fn a_right_may_be_for_one_partition_only() {
    let there = Lab::new().says("show assoc ", "lab|physics|gpu|normal|normal||||||||||||\n");
    assert_eq!(codes(&there, &[]), ["no_association fatal"]);
    // Here it replaces that of the whole account, with its own QOS.
    let here = Lab::new().says(
        "show assoc ",
        "lab|physics||high|high||||||||||||\nlab|physics|batch|normal|normal||||||||||||\n",
    );
    assert_eq!(judge(&here, &[]).access.way.qos.as_deref(), Some("normal"));
    assert_eq!(codes(&here, &[("qos", "high")]), ["qos_not_yours fatal"]);
}

#[test]
fn a_qos_must_be_mine_and_taken_here() {
    assert_eq!(codes(&Lab::new(), &[("qos", "vip")]), ["qos_not_yours fatal"]);
    // The default is not taken; another of physics is, and has to be named.
    let listed = judge(&partition("State=UP AllowQos=high"), &[]);
    assert_eq!((listed.term, listed.access.way.qos.as_deref()), (Term::Open, Some("high")));
    assert!(listed.access.way.names_qos);
    let denied = judge(&partition("State=UP DenyQos=normal,high"), &[]);
    assert_eq!(denied.codes(), ["qos_not_allowed fatal"]);
    let asked = judge(&partition("State=UP DenyQos=normal"), &[("qos", "normal")]);
    assert_eq!(asked.codes(), ["qos_not_allowed fatal"]);
    assert_eq!(asked.first().lift.as_deref(), Some("--qos=high"));
}

#[test]
fn groups_root_and_hosts_keep_people_out() {
    assert_eq!(codes(&partition("State=UP AllowGroups=vips"), &[]), ["group_not_allowed fatal"]);
    assert_eq!(codes(&partition("State=UP AllowGroups=vips,staff"), &[]), Vec::<String>::new());
    assert_eq!(codes(&partition("State=UP RootOnly=YES"), &[]), ["root_only fatal"]);
    let hosts = judge(&partition("State=UP AllocNodes=login[2-3]"), &[]);
    assert_eq!(hosts.codes(), ["submit_host_not_allowed fatal"]);
    assert!(hosts.first().text.ends_with("this is login1"), "{}", hosts.first().text);
    assert_eq!(codes(&partition("State=UP AllocNodes=login[1-3]"), &[]), Vec::<String>::new());
}

#[test]
fn a_shape_has_to_fit_the_partition_s_own_limits() {
    let rules =
        "State=UP MaxTime=01:00:00 MinNodes=2 MaxNodes=4 MaxCPUsPerNode=8 MaxMemPerNode=16000";
    let check = |options: &[(&str, &str)]| {
        let judged = judge(&partition(rules), options);
        let gate = judged.first();
        (gate.code.clone(), gate.kind, gate.lift.clone().unwrap_or_default())
    };
    let two = ("nodes", "2");
    let (code, kind, lift) = check(&[two, ("time", "2:00:00")]);
    assert_eq!(
        (code.as_str(), kind, lift.as_str()),
        ("QUEUE_MAX_WALLTIME", Kind::Shape, "--time=01:00:00")
    );
    assert_eq!(check(&[("nodes", "1")]).0, "QUEUE_MIN_NODES");
    assert_eq!(check(&[("nodes", "5")]).0, "QUEUE_MAX_NODES");
    assert_eq!(check(&[two, ("cpus-per-task", "9")]).0, "QUEUE_MAX_CPUS_PER_NODE");
    let (code, _, lift) = check(&[two, ("mem", "16001M")]);
    assert_eq!((code.as_str(), lift.as_str()), ("QUEUE_MAX_MEM_PER_NODE", "--mem=16000M"));
    let open = judge(&partition(rules), &[two, ("time", "1:00:00"), ("mem", "16000M")]);
    assert_eq!(open.codes(), Vec::<String>::new());
    assert_eq!(open.term, Term::Open, "a shape that is too large closes no partition");
}

#[test]
fn what_costs_more_is_a_note_and_no_refusal() {
    let whole = judge(&partition("State=UP OverSubscribe=EXCLUSIVE"), &[("nodes", "1")]);
    assert_eq!(whole.codes(), ["exclusive note"]);
    assert!(whole.access.is_open());
    // 4000 / 1000: each CPU counts as four (`man slurm.conf`, MaxMemPerCPU).
    let cpu = judge(&partition("State=UP MaxMemPerCPU=1000"), &[("mem-per-cpu", "4000M")]);
    assert_eq!(cpu.codes(), ["queue_max_mem_per_cpu note"]);
    assert!(cpu.first().text.ends_with("counts as 4"), "{}", cpu.first().text);
}

#[test]
fn a_reservation_that_comes_bounds_the_time() {
    let window = |nodes: &str| {
        format!(
            "ReservationName=maint StartTime={} EndTime={} Nodes={nodes} Users=root Flags=MAINT \
             State=INACTIVE\n",
            NOW + 7200,
            NOW + 9000,
        )
    };
    let idle = "CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 State=IDLE";
    let (n1, n2) = (format!("n1 {idle}"), format!("n2 {idle}"));
    let lab = Lab::new().nodes(&[&n1, &n2]).says("show reservation", &window("n[1-2]"));
    let long = judge(&lab, &[("nodes", "1"), ("time", "3:00:00")]);
    assert_eq!(long.codes(), ["reservation_ahead shape"]);
    assert_eq!(long.first().lift.as_deref(), Some("--time below 02:00:00 starts before it"));
    assert_eq!(codes(&lab, &[("nodes", "1"), ("time", "2:00:00")]), Vec::<String>::new());
    // One node stays clear of it: enough for a job of one, not of two.
    let half = Lab::new().nodes(&[&n1, &n2]).says("show reservation", &window("n1"));
    assert_eq!(codes(&half, &[("nodes", "1"), ("time", "3:00:00")]), Vec::<String>::new());
    assert_eq!(codes(&half, &[("nodes", "2"), ("time", "3:00:00")]), ["reservation_ahead shape"]);
}

#[test]
fn a_reservation_that_is_named_must_be_mine_and_begun() {
    let lab = Lab::new().says(
        "show reservation",
        "ReservationName=mine StartTime=1 EndTime=9999999999 Nodes=n1 Accounts=physics State=ACTIVE\n\
         ReservationName=theirs StartTime=1 EndTime=9999999999 Nodes=n9 Users=bob State=ACTIVE\n\
         ReservationName=later StartTime=9999999998 EndTime=9999999999 Nodes=n9 Users=alice State=INACTIVE\n",
    );
    let named = |name: &str| codes(&lab, &[("reservation", name)]);
    assert_eq!(named("mine"), Vec::<String>::new());
    assert_eq!(named("theirs"), ["reservation_not_yours fatal"]);
    assert_eq!(named("later"), ["reservation_not_begun shape"]);
    assert_eq!(named("nosuch"), ["reservation_unknown fatal"]);
    // With chem it is not ours.
    let chem = codes(&lab, &[("reservation", "mine"), ("account", "chem")]);
    assert_eq!(chem, ["reservation_not_yours fatal"]);
    let needs = partition("State=UP ReqResv=YES");
    assert_eq!(codes(&needs, &[("nodes", "1")]), ["requires_reservation shape"]);
}

/// A running job of a user: `USER ACCOUNT QOS TRES LICENCES`.
fn job(number: u64, words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let [user, account, qos, tres, licences] = words[..] else { panic!("five words") };
    let cells = [
        &number.to_string(),
        user,
        account,
        "batch",
        qos,
        "RUNNING",
        "n1",
        "1",
        "1",
        tres,
        "1",
        "2",
        "1:00",
        "None",
        "1",
        licences,
        "OK",
        "(null)",
        "",
        "x",
    ];
    format!("{}@~@\n", cells.join("@~@"))
}

/// Limits of the QOS normal: columns of `sacctmgr` that are set.
fn qos(columns: &[(&str, &str)]) -> String {
    let names = limits_columns();
    let cells: Vec<&str> = names
        .iter()
        .map(|name| {
            let set = columns.iter().find(|(known, _)| known == name);
            set.map_or(if *name == "Name" { "normal" } else { "" }, |(_, value)| *value)
        })
        .collect();
    format!("{}\n", cells.join("|"))
}

fn limits_columns() -> Vec<&'static str> {
    "Name,Priority,Flags,UsageFactor,MaxWall,MaxTRESPerJob,MaxTRESMins,MaxTRESPerNode,MinTRES,MaxTRESPerUser,\
     MaxJobsPerUser,MaxSubmitJobsPerUser,MaxTRESPerAccount,MaxJobsPerAccount,\
     MaxSubmitJobsPerAccount,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall"
        .split(',')
        .collect()
}

/// Where normal is the only QOS, with these limits.
fn under(columns: &[(&str, &str)]) -> Lab {
    Lab::new()
        .says("show qos", &qos(columns))
        .says("show assoc ", "lab|physics||normal|normal||||||||||||\n")
}

#[test]
fn one_job_may_have_only_so_much() {
    let lab = under(&[("MaxTRESPerJob", "cpu=16,mem=93.75G"), ("MaxTRESPerNode", "gres/gpu=2")]);
    let many = judge(&lab, &[("ntasks", "32")]);
    assert_eq!(many.codes(), ["max_cpu_job shape"]);
    assert_eq!(many.first().source, "QOS normal MaxTRESPerJob");
    assert_eq!(many.first().text, "32 CPUs are more than the 16 that one job may have");
    // 93.75G is 96000M, and not 93 bytes or megabytes.
    assert_eq!(codes(&lab, &[("mem", "96000M")]), Vec::<String>::new());
    assert_eq!(codes(&lab, &[("mem", "96001M")]), ["max_mem_job shape"]);
    assert_eq!(codes(&lab, &[("gpus-per-node", "3")]), ["max_gpu_node shape"]);
    let few = under(&[("MinTRES", "cpu=4")]);
    assert_eq!(codes(&few, &[("ntasks", "2")]), ["min_cpu_job shape"]);
}

#[test]
fn another_qos_of_mine_may_give_more() {
    let both = [qos(&[("MaxTRESPerJob", "cpu=16")]), qos(&[("Name", "high")])];
    let lab = Lab::new().says("show qos", &both.concat());
    let judged = judge(&lab, &[("ntasks", "32")]);
    assert_eq!(judged.codes(), Vec::<String>::new());
    let way = &judged.access.way;
    assert_eq!((way.qos.as_deref(), way.names_qos), (Some("high"), true));
    // One whose limits are not told is no better than one that is known to refuse.
    let unknown = Lab::new().says("show qos", &qos(&[("MaxTRESPerJob", "cpu=16")]));
    assert_eq!(codes(&unknown, &[("ntasks", "32"), ("qos", "high")]), ["limits_unknown unchecked"]);
}

#[test]
fn a_longer_time_than_the_qos_gives_never_starts() {
    let lab = under(&[("MaxWall", "08:00:00")]);
    let long = judge(&lab, &[("time", "9:00:00")]);
    assert_eq!(long.codes(), ["max_walltime shape"]);
    assert_eq!(long.first().source, "QOS normal MaxWall");
    assert!(long.first().text.ends_with("the job is taken and never starts"));
    let denied = under(&[("MaxWall", "08:00:00"), ("Flags", "DenyOnLimit")]);
    let text = judge(&denied, &[("time", "9:00:00")]).first().text.clone();
    assert!(text.ends_with("the job is refused"), "{text}");
}

#[test]
fn what_is_in_use_counts_against_a_user_s_limit() {
    let cap = [("MaxTRESPerUser", "gres/gpu=8")];
    let eight = job(1, "alice physics normal cpu=8,gres/gpu=8 (null)");
    let full = under(&cap).says("squeue", &eight);
    let judged = judge(&full, &[("gpus-per-node", "1")]);
    assert_eq!(judged.codes(), ["max_gpu_user shape"]);
    assert_eq!(judged.first().text, "8 of 8 GPUs are held by your running jobs");
    // Bob's jobs are bob's; six of mine leave two.
    let bobs = under(&cap).says("squeue", &job(1, "bob physics normal gres/gpu=8 (null)"));
    assert_eq!(codes(&bobs, &[("gpus-per-node", "1")]), Vec::<String>::new());
    let six = under(&cap).says("squeue", &job(1, "alice physics normal gres/gpu:a100=6 (null)"));
    assert_eq!(codes(&six, &[("gpus-per-node", "2")]), Vec::<String>::new());
    assert_eq!(codes(&six, &[("gpus-per-node", "3")]), ["max_gpu_user shape"]);
    // Of another QOS they do not count.
    let other = under(&cap).says("squeue", &job(1, "alice physics high gres/gpu=8 (null)"));
    assert_eq!(codes(&other, &[("gpus-per-node", "1"), ("qos", "normal")]), Vec::<String>::new());
    // Where jobs could not be read the use is not known, and that is not zero.
    let blind = under(&cap).refuses("squeue", "slurm_load_jobs error: timed out\n");
    assert_eq!(
        codes(&blind, &[("gpus-per-node", "1"), ("qos", "normal")]),
        ["use_unknown unchecked"]
    );
}

#[test]
fn what_others_use_counts_where_a_limit_is_shared() {
    let cap = [("GrpTRES", "cpu=8"), ("MaxTRESPerAccount", "gres/gpu=2")];
    let jobs = [
        job(1, "bob physics normal cpu=6,gres/gpu=2 (null)"),
        job(2, "carol biology normal cpu=1 (null)"),
    ];
    let lab = under(&cap).says("squeue", &jobs.concat());
    let wanted = |options: &[(&str, &str)]| {
        let named = [&[("qos", "normal"), ("account", "physics")], options].concat();
        codes(&lab, &named)
    };
    assert_eq!(wanted(&[("ntasks", "2")]), ["max_cpu_group shape"]);
    assert_eq!(wanted(&[("ntasks", "1")]), Vec::<String>::new());
    assert_eq!(wanted(&[("ntasks", "1"), ("gpus-per-node", "1")]), ["max_gpu_account shape"]);
    // A site that hides the jobs of others hides the use, too.
    let hidden = under(&cap).says(
        "show config",
        "AccountingStorageEnforce = limits\nClusterName = lab\nPrivateData = jobs,usage\n",
    );
    let named = [("qos", "normal"), ("account", "physics"), ("ntasks", "1")];
    assert_eq!(codes(&hidden, &named), ["use_unknown unchecked"]);
}

#[test]
fn counts_of_jobs_are_limits_too() {
    let lab = under(&[("MaxJobsPerUser", "1"), ("MaxSubmitJobsPerUser", "3")]);
    let running = job(1, "alice physics normal cpu=1 (null)");
    let one = lab.says("squeue", &running);
    let named = [("qos", "normal")];
    assert_eq!(codes(&one, &named), ["max_jobs_user shape"]);
    // An array that waits stands for its tasks: 1 + 5.
    let array = running.replace("1@~@", "7_[1-9:2]@~@").replace("RUNNING", "PENDING");
    let more = one.adds("squeue", &array);
    assert_eq!(codes(&more, &named), ["max_jobs_user shape", "max_submit_user shape"]);
}

#[test]
fn the_partition_s_qos_comes_before_the_job_s() {
    let rules = partition("State=UP QoS=partcap").says(
        "show qos",
        &[
            qos(&[("Name", "partcap"), ("MaxTRESPerUser", "cpu=16"), ("MaxWall", "2-00:00:00")]),
            qos(&[("MaxTRESPerUser", "cpu=4"), ("MaxWall", "01:00:00")]),
            qos(&[("Name", "high"), ("Flags", "OverPartQOS"), ("MaxTRESPerUser", "cpu=4")]),
        ]
        .concat(),
    );
    let ask = |qos: &str, tasks: &str| codes(&rules, &[("qos", qos), ("ntasks", tasks)]);
    assert_eq!(ask("normal", "16"), Vec::<String>::new());
    assert_eq!(ask("normal", "17"), ["max_cpu_user shape"]);
    assert_eq!(ask("high", "16"), ["max_cpu_user shape"], "OverPartQOS turns it around");
    let cluster = rules.cluster();
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let way = gates.access(&cluster.queues[0], None).way;
    let (longest, source) = gates.longest(&cluster.queues[0], &way);
    assert_eq!(
        (longest.to_string(), source.as_str()),
        ("2-00:00:00".to_owned(), "QOS partcap MaxWall")
    );
    let ceilings = gates.ceilings(&cluster.queues[0], &way);
    assert_eq!((ceilings[0].most.as_str(), ceilings[0].resource.as_str()), ("16", "CPUs"));
    assert_eq!(ceilings[0].used, Known::Value("0".to_owned()));
}

/// The account physics with limits and what is used of them, as the controller tells.
fn account(fields: &str) -> Lab {
    Lab::new().says("show assoc ", "lab|physics||normal|normal||||||||||||\n").says(
        "assoc_mgr",
        &format!(
            "ClusterName=lab Account=root UserName= Partition= ParentAccount= GrpJobs=N(9)\n\
             ClusterName=lab Account=physics UserName= Partition= ParentAccount=root(1) {fields}\n\
             ClusterName=lab Account=physics UserName=alice(1001) Partition= ParentAccount= DefAssoc=Yes\n"
        ),
    )
}

#[test]
fn an_account_s_limits_hold_for_all_its_jobs() {
    let lab = account("GrpTRES=cpu=10(8),gres/gpu=N(3) GrpJobs=N(4)");
    assert_eq!(codes(&lab, &[("ntasks", "2")]), Vec::<String>::new());
    let three = judge(&lab, &[("ntasks", "3")]);
    assert_eq!(three.codes(), ["grp_cpu shape"]);
    assert_eq!(three.first().source, "account physics GrpTRES");
    assert_eq!(three.first().text, "8 of 10 CPUs are held by the running jobs of account physics");
    let eleven = judge(&lab, &[("ntasks", "11")]);
    assert_eq!(
        eleven.first().text,
        "11 CPUs are more than the 10 that account physics may have at once"
    );
    assert_eq!(codes(&account("GrpJobs=4(4)"), &[("ntasks", "1")]), ["grp_jobs shape"]);
    assert_eq!(codes(&account("GrpSubmitJobs=4(4)"), &[("ntasks", "1")]), ["grp_submit shape"]);
    // The account above has limits as well.
    let above = Lab::new().says("show assoc ", "lab|physics||normal|normal||||||||||||\n").says(
        "assoc_mgr",
        "ClusterName=lab Account=division UserName= ParentAccount=root(1) GrpTRES=cpu=4(4)\n\
         ClusterName=lab Account=physics UserName= ParentAccount=division(3) GrpTRES=cpu=N(4)\n",
    );
    let judged = judge(&above, &[("ntasks", "1")]);
    assert_eq!(judged.first().source, "account division GrpTRES");
}

#[test]
fn minutes_run_out() {
    let spent = judge(&account("GrpTRESMins=cpu=1000(1000)"), &[]);
    assert_eq!(
        (spent.codes(), spent.term),
        (vec!["grp_cpu_minutes fatal".to_owned()], Term::NoAccess)
    );
    assert_eq!(spent.first().text, "account physics has spent its 1000 CPU minutes");
    // 1000 - 600 spent - 100 promised = 300 left; 4 CPUs for 80 minutes are 320.
    let some = account("GrpTRESMins=cpu=1000(600) GrpTRESRunMins=cpu=N(100)");
    assert_eq!(codes(&some, &[("ntasks", "4"), ("time", "75")]), Vec::<String>::new());
    let much = judge(&some, &[("ntasks", "4"), ("time", "80")]);
    assert_eq!(much.codes(), ["grp_cpu_minutes shape"]);
    assert!(
        much.first().text.starts_with("320 CPU minutes are more than the 300"),
        "{}",
        much.first().text
    );
    // Without `safe` a job starts as long as anything is left.
    let unsafe_ =
        some.says("show config", "ClusterName = lab\nAccountingStorageEnforce = limits\n");
    assert_eq!(codes(&unsafe_, &[("ntasks", "4"), ("time", "80")]), Vec::<String>::new());
    // 5 x 60 + 800 promised of 1000.
    let running = account("GrpTRESRunMins=cpu=1000(800)");
    assert_eq!(codes(&running, &[("ntasks", "5"), ("time", "60")]), ["grp_cpu_run_minutes shape"]);
    assert_eq!(codes(&account("GrpWall=60(60)"), &[]), ["grp_wall fatal"]);
}

/// The fields are those that `scontrol show assoc_mgr qos=... flags=assoc,qos` of Slurm 20.11 to
/// 26.05 tells of a QOS.
#[test]
fn a_qos_s_minutes_run_out_too() {
    let minutes = |used: &str| {
        let lab = under(&[("GrpTRESMins", "cpu=1000"), ("GrpWall", "00:10:00")]);
        let told = "ClusterName=lab Account=physics UserName=alice(1001) Partition= DefAssoc=Yes\n";
        lab.says(
            "assoc_mgr",
            &format!("{told}\nQOS Records\n\nQOS=normal(1) {used} MaxWallPJ= Priority=0 Account Limits=No Accounts\n"),
        )
    };
    let spent = judge(&minutes("GrpTRESMins=cpu=1000(1000),mem=N(9)"), &[("qos", "normal")]);
    assert_eq!(spent.codes(), ["grp_cpu_minutes fatal"]);
    assert_eq!(spent.first().text, "QOS normal has spent its 1000 CPU minutes");
    assert_eq!(spent.first().source, "QOS normal GrpTRESMins");
    // 1000 - 600 - 100 = 300; 4 CPUs for 80 minutes are 320.
    let some = minutes("GrpWall=10(9.5) GrpTRESMins=cpu=1000(600) GrpTRESRunMins=cpu=N(100)");
    let ask = |time: &str| codes(&some, &[("qos", "normal"), ("ntasks", "4"), ("time", time)]);
    assert_eq!(ask("75"), Vec::<String>::new());
    assert_eq!(ask("80"), ["grp_cpu_minutes shape"]);
    let wall = minutes("GrpWall=10(10.2) GrpTRESMins=cpu=1000(600)");
    assert_eq!(codes(&wall, &[("qos", "normal"), ("time", "1")]), ["grp_wall fatal"]);
}

#[test]
fn an_account_may_bound_the_minutes_of_one_job() {
    let lab = Lab::new().says("show assoc ", "lab|physics||normal|normal|||cpu=100|||||||||\n");
    assert_eq!(codes(&lab, &[("ntasks", "2"), ("time", "50")]), Vec::<String>::new());
    let judged = judge(&lab, &[("ntasks", "2"), ("time", "51")]);
    assert_eq!(judged.codes(), ["max_cpu_minutes_job shape"]);
    assert_eq!(judged.first().source, "account physics MaxTRESMins");
}

#[test]
fn budgets_that_nobody_tells_are_not_taken_for_full() {
    let lab = under(&[("GrpTRESMins", "cpu=1")]);
    assert_eq!(codes(&lab, &[("ntasks", "1"), ("qos", "normal")]), ["minutes_unknown unchecked"]);
    let blind = Lab::new().refuses("assoc_mgr", "Access/permission denied\n");
    assert_eq!(codes(&blind, &[("ntasks", "1")]), ["account_use_unknown unchecked"]);
    assert_eq!(judge(&blind, &[]).term, Term::Open);
}

#[test]
fn limits_that_are_not_enforced_hold_nobody_up() {
    let lab = under(&[("MaxTRESPerJob", "cpu=1")])
        .says("show config", "ClusterName = lab\nAccountingStorageEnforce = associations\n");
    assert_eq!(codes(&lab, &[("ntasks", "9")]), Vec::<String>::new());
    let unread = under(&[("MaxTRESPerJob", "cpu=1")]).refuses("show config", "no\n");
    assert_eq!(codes(&unread, &[("ntasks", "9"), ("qos", "normal")]), ["max_cpu_job shape"]);
}

/// The lab's Slurm 22.05, a QOS with `UsageFactor=10` and budgets of 30 CPU minutes: a job of 2, of 5
/// and of 20 minutes ran. With the flag `UsageFactorSafe` that of 2 ran, and that of 5 waited with the
/// reasons `QOSGrpCPURunMinutesLimit`, `QOSGrpCPUMinutesLimit` and `QOSMaxCpuMinutesPerJobLimit`.
#[test]
fn a_usage_factor_counts_for_what_is_to_run_only_where_it_is_safe() {
    let lab = |flags: &str, budget: &'static str| {
        under(&[("UsageFactor", "10.000000"), ("Flags", flags), (budget, "cpu=30")]).says(
            "assoc_mgr",
            "ClusterName=lab Account=physics UserName=alice(1001) Partition= DefAssoc=Yes\n\
             QOS=normal(1) GrpTRESMins=cpu=30(0) GrpTRESRunMins=cpu=30(0)\n",
        )
    };
    let budgets = [
        ("GrpTRESRunMins", "grp_cpu_run_minutes shape"),
        ("GrpTRESMins", "grp_cpu_minutes shape"),
        ("MaxTRESMins", "max_cpu_minutes_job shape"),
    ];
    for (budget, code) in budgets {
        for (minutes, flags, held) in [
            ("2", "UsageFactorSafe", false),
            ("5", "UsageFactorSafe", true),
            ("5", "", false),
            ("20", "", false),
            ("31", "", true),
            // Which has no end takes more than any.
            ("0", "", true),
        ] {
            let gates = codes(&lab(flags, budget), &[("time", minutes)]);
            let held = if held { vec![code.to_owned()] } else { Vec::new() };
            let gates: Vec<String> =
                gates.into_iter().filter(|gate| !gate.contains("walltime")).collect();
            assert_eq!(gates, held, "{budget} {flags} {minutes}");
        }
    }
}

#[test]
fn licences_are_counted() {
    let busy = Lab::new().says("squeue", &job(1, "bob chem normal cpu=1 matlab:1"));
    assert_eq!(codes(&busy, &[("licenses", "matlab:1")]), Vec::<String>::new());
    let two = judge(&busy, &[("licenses", "matlab:2")]);
    assert_eq!(two.codes(), ["licence_busy wait"]);
    assert_eq!(two.first().text, "1 of 2 licences of matlab are free, 2 wanted");
    assert_eq!(codes(&busy, &[("licenses", "matlab:3")]), ["licence_total shape"]);
    assert_eq!(codes(&busy, &[("licenses", "ansys")]), ["licence_unknown unchecked"]);
    let held = Lab::new().says(
        "show reservation",
        "ReservationName=r StartTime=1 EndTime=9999999999 Nodes=n9 Users=bob Licenses=matlab:2 State=ACTIVE\n",
    );
    assert_eq!(codes(&held, &[("licenses", "matlab:1")]), ["licence_busy wait"]);
}

#[test]
fn every_queue_stands_in_one_term() {
    let lab = Lab::new().says(
        "show partition",
        "PartitionName=batch State=UP\nPartitionName=down State=DOWN\n\
         PartitionName=vip State=UP AllowGroups=vips\nPartitionName=none State=UP TotalNodes=0\n",
    ).says(
        "show node",
        "NodeName=n1 CPUTot=8 CPUAlloc=0 RealMemory=1 AllocMem=0 State=IDLE Partitions=batch,down,vip\n",
    );
    let cluster = lab.cluster();
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let terms: Vec<Term> =
        cluster.queues.iter().map(|queue| Term::of(&gates.access(queue, None))).collect();
    assert_eq!(terms, [Term::Open, Term::Closed, Term::NoAccess, Term::NoNodes]);
}
