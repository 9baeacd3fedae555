use proptest::prelude::*;

use super::*;
use crate::model::{JobId, Known, Source, Span, State, Step, StepId, Tres};
use crate::script;

const MIB: u64 = Bytes::MIB;
const GIB: u64 = Bytes::GIB;

/// A job killed for memory on one node, as accounting shows it.
fn killed(limit: Bytes, cpus: u64) -> Job {
    let mut job = Job::bare(JobId::whole(67), State::parse("OUT_OF_MEMORY"), Source::Accounting);
    job.nodes = Known::Value(1);
    job.cpus = Known::Value(cpus);
    job.allocated = Tres::parse(&format!("cpu={cpus},mem={},node=1", limit.to_option()));
    job
}

fn timed_out(limit: Span) -> Job {
    let mut job = Job::bare(JobId::whole(1), State::parse("TIMEOUT"), Source::Accounting);
    job.limit = Known::Value(limit);
    job
}

fn step(state: &str, submit_line: Option<&str>) -> Step {
    Step {
        name: "a".into(),
        submit_line: submit_line.map(str::to_owned),
        ..Step::bare(StepId("0".into()), State::parse(state))
    }
}

fn unlimited(partition: &str) -> Limits {
    Limits {
        partition: partition.to_owned(),
        max_time: Known::Unlimited,
        max_memory_per_node: Known::Unlimited,
        max_memory_per_cpu: Known::Unlimited,
        ..Limits::default()
    }
}

fn target<'a>(script: &'a str, job: &'a Job) -> Target<'a> {
    Target {
        script: Some(script.as_bytes()),
        name: "job.sh",
        submit_line: None,
        job,
        limits: None,
        memory: None,
        time: None,
        pace: None,
        node: None,
        environments: &[],
        missing_directory: None,
    }
}

fn with(line: &str) -> String {
    format!("#!/bin/bash\n{line}\n./run\n")
}

/// The one changed script of one edit, or why there is none.
fn patched(script: &str, job: &Job, edit: Edit) -> Result<String, String> {
    let patch = propose(&target(script, job), &[edit]);
    match (patch.patched, patch.refused.first()) {
        (Some(bytes), None) => Ok(String::from_utf8(bytes).expect("text")),
        (_, refused) => Err(refused.map_or("no change".into(), |refused| refused.why.clone())),
    }
}

/// The forms in which another tool cut a request, or made the script invalid.
#[test]
fn memory_is_raised_in_the_form_that_is_there() {
    let big = killed(Bytes(256 * GIB), 4);
    let rows = [
        ("#SBATCH --mem 256G", "#SBATCH --mem 512G"),
        ("#SBATCH --mem=256GB", "#SBATCH --mem=512GB"),
        ("#SBATCH --mem=256G # x", "#SBATCH --mem=512G # x"),
        ("#SBATCH --mem=\"256G\"", "#SBATCH --mem=\"512G\""),
        ("#SBATCH --mem=262144", "#SBATCH --mem=512G"),
        ("#SBATCH --mem-per-cpu=64G", "#SBATCH --mem-per-cpu=128G"),
        ("#SBATCH --mem=1G\n#SBATCH --mem=256G", "#SBATCH --mem=1G\n#SBATCH --mem=512G"),
    ];
    for (line, expected) in rows {
        assert_eq!(patched(&with(line), &big, Edit::Memory).as_deref(), Ok(&*with(expected)));
    }
    let small = killed(Bytes(8 * GIB), 1);
    let changed = patched(&with("#SBATCH -n 1 --mem=8G"), &small, Edit::Memory);
    assert_eq!(changed.as_deref(), Ok(&*with("#SBATCH -n 1 --mem=16G")));
}

#[test]
fn memory_per_gpu_stays_per_gpu() {
    let mut job = killed(Bytes(64 * GIB), 8);
    job.allocated = Tres::parse("cpu=8,gres/gpu=2,mem=64G,node=1");
    let script = with("#SBATCH --gpus=2 --mem-per-gpu=32G");
    let changed = patched(&script, &job, Edit::Memory);
    assert_eq!(changed.as_deref(), Ok(&*with("#SBATCH --gpus=2 --mem-per-gpu=64G")));
}

#[test]
fn all_of_a_node_cannot_be_doubled() {
    let script = with("#SBATCH --mem=0");
    let why = patched(&script, &killed(Bytes(16 * GIB), 8), Edit::Memory).expect_err("refused");
    assert!(why.contains("--mem=0") && why.contains("all the memory"), "{why}");
}

#[test]
fn a_script_that_asks_for_nothing_gets_a_line_of_its_own() {
    let job = killed(Bytes(100 * MIB), 1);
    let changed = patched(&with("#SBATCH -n 1\n# why\n#SBATCH -J x"), &job, Edit::Memory);
    let expected = with("#SBATCH -n 1\n# why\n#SBATCH -J x\n#SBATCH --mem=200M");
    assert_eq!(changed.as_deref(), Ok(&*expected));
    let bare = patched("#!/bin/bash\r\ntrue\r\n", &job, Edit::Memory);
    assert_eq!(bare.as_deref(), Ok("#!/bin/bash\r\n#SBATCH --mem=200M\r\ntrue\r\n"));
    let unended = patched("#!/bin/bash", &job, Edit::Memory);
    assert_eq!(unended.as_deref(), Ok("#!/bin/bash\n#SBATCH --mem=200M\n"));
}

#[test]
fn what_was_measured_counts_when_it_is_more() {
    let mut job = killed(Bytes(100 * MIB), 1);
    let mut step = |rss| {
        job.steps = vec![Step { max_rss: Known::Value(Bytes(rss)), ..step("FAILED", None) }];
        let script = with("#SBATCH --mem=100M");
        propose(&target(&script, &job), &[Edit::Memory]).changes.swap_remove(0)
    };
    // 300 MiB x 1.3 = 390 MiB, to the next 50; 80 MiB x 1.3 is less than twice the limit.
    let change = step(300 * MIB);
    assert_eq!(change.to, "--mem=400M");
    assert!(change.because.contains("MaxRSS") && change.because.contains("300M"));
    assert_eq!(step(80 * MIB).to, "--mem=200M");
    let mut suggested = target("#!/bin/bash\n", &job);
    suggested.memory = Some(Suggestion { value: Bytes(3 * GIB), because: "5 runs" });
    let change = propose(&suggested, &[Edit::Memory]).changes.swap_remove(0);
    assert_eq!((change.to.as_str(), change.from), ("--mem=3G", None));
    assert_eq!(change.because, "runs of this work: 5 runs");
    // Less than twice the limit, but more than it: what runs say counts.
    suggested.memory = Some(Suggestion { value: Bytes(150 * MIB), because: "5 runs" });
    let change = propose(&suggested, &[Edit::Memory]).changes.swap_remove(0);
    assert_eq!(change.to, "--mem=150M");
    // It died with 100 MiB, whatever others needed.
    suggested.memory = Some(Suggestion { value: Bytes(50 * MIB), because: "5 runs" });
    let change = propose(&suggested, &[Edit::Memory]).changes.swap_remove(0);
    assert_eq!(change.to, "--mem=200M");
}

#[test]
fn what_runs_of_the_same_work_took_decides_the_time() {
    let job = timed_out(Span::seconds(3600));
    let script = with("#SBATCH --time=1:00:00");
    let mut suggested = target(&script, &job);
    suggested.time = Some(Suggestion { value: Span::seconds(4500), because: "9 runs" });
    let change = propose(&suggested, &[Edit::Time]).changes.swap_remove(0);
    assert_eq!(change.to, "--time=01:15:00");
    suggested.time = Some(Suggestion { value: Span::seconds(1800), because: "9 runs" });
    let change = propose(&suggested, &[Edit::Time]).changes.swap_remove(0);
    assert_eq!(change.to, "--time=01:30:00", "it ran for an hour and was not done");
}

#[test]
fn a_limit_of_the_step_is_not_raised_by_the_jobs() {
    let mut job = killed(Bytes(GIB), 4);
    job.steps = vec![step("OUT_OF_MEMORY", Some("srun --exact -n 1 --mem=20 bash -c sleep 1"))];
    let why = patched(&with("#SBATCH --mem=1G"), &job, Edit::Memory).expect_err("refused");
    assert!(why.contains("step 0") && why.contains("--mem=20"), "{why}");
    job.steps = vec![step("OUT_OF_MEMORY", Some("srun python3 --mem=20"))];
    assert!(patched(&with("#SBATCH --mem=1G"), &job, Edit::Memory).is_ok());
}

#[test]
fn no_limit_of_the_partition_is_exceeded() {
    let limits = |node: u64, per_cpu: Option<u64>| Limits {
        node_memory: Known::Value(Bytes(node)),
        max_memory_per_cpu: per_cpu.map(Bytes).into(),
        ..unlimited("batch")
    };
    let job = killed(Bytes(10 * GIB), 4);
    let run = |line: &str, limits: &Limits| {
        let script = with(line);
        let target = Target { limits: Some(limits), ..target(&script, &job) };
        propose(&target, &[Edit::Memory])
    };
    let capped = run("#SBATCH --mem=10G", &limits(16_000 * MIB, None));
    assert_eq!(capped.changes[0].to, "--mem=16000M");
    assert!(capped.changes[0].because.contains("nodes of partition batch have 16000M"));
    // 16000 MiB on a node for 4 CPUs of it: 4000 each; the partition itself allows 3 GiB.
    assert_eq!(
        run("#SBATCH --mem-per-cpu=2560M", &limits(16_000 * MIB, None)).changes[0].to,
        "--mem-per-cpu=4000M"
    );
    assert_eq!(
        run("#SBATCH --mem-per-cpu=2560M", &limits(16_000 * MIB, Some(3 * GIB))).changes[0].to,
        "--mem-per-cpu=3072M"
    );
    let full = run("#SBATCH --mem=10G", &limits(10 * GIB, None));
    assert!(full.changes.is_empty() && full.diff.is_none());
    assert!(full.refused[0].why.contains("larger nodes"), "{}", full.refused[0].why);
}

#[test]
fn time_is_raised_in_the_form_that_is_there() {
    let hours = |hours: u64| Span::seconds(hours * 3600);
    let rows = [
        // 48 h x 1.5 = 72 h.
        (hours(48), "#SBATCH -t 48:00:00", "#SBATCH -t 3-00:00:00"),
        (hours(48), "#SBATCH --time 48:00:00", "#SBATCH --time 3-00:00:00"),
        // 36 h x 1.5 = 54 h.
        (hours(36), "#SBATCH --time=1-12", "#SBATCH --time=2-06:00:00"),
        // 10 min x 1.5 = 15 min; 45 min x 1.5 = 67.5, to the next quarter.
        (Span::seconds(600), "#SBATCH -t10 # short", "#SBATCH -t00:15:00 # short"),
        (Span::seconds(2700), "#SBATCH --time=45:00", "#SBATCH --time=01:15:00"),
        (Span::seconds(600), "#SBATCH -n 1", "#SBATCH -n 1\n#SBATCH --time=00:15:00"),
    ];
    for (limit, line, expected) in rows {
        let changed = patched(&with(line), &timed_out(limit), Edit::Time);
        assert_eq!(changed.as_deref(), Ok(&*with(expected)));
    }
}

#[test]
fn a_job_without_a_time_limit_is_left_alone() {
    for line in ["#SBATCH --time=UNLIMITED", "#SBATCH -t infinite", "#SBATCH -t 0"] {
        let why = patched(&with(line), &timed_out(Span::seconds(60)), Edit::Time);
        assert!(why.expect_err("refused").contains("no time limit"), "{line}");
    }
}

#[test]
fn time_stops_at_the_partitions_limit() {
    let limits = Limits { max_time: Known::Value(Span::seconds(300)), ..unlimited("short") };
    let script = with("#SBATCH -t 4");
    let job = timed_out(Span::seconds(240));
    let patch = propose(&Target { limits: Some(&limits), ..target(&script, &job) }, &[Edit::Time]);
    assert_eq!(patch.changes[0].to, "-t 00:05:00");
    let job = timed_out(Span::seconds(300));
    let patch = propose(&Target { limits: Some(&limits), ..target(&script, &job) }, &[Edit::Time]);
    assert!(patch.refused[0].why.contains("partition short allows 00:05:00 at most"));
}

#[test]
fn the_submission_command_wins_and_is_what_must_change() {
    // As accounting of Slurm 22.05 recorded job 67 of a test cluster.
    let mut job = killed(Bytes(100 * MIB), 1);
    job.submit_line = Some("sbatch --parsable -J oom --mem=100 /s/oom.sh".into());
    let script = with("#SBATCH --mem=4G");
    let patch = propose(&target(&script, &job), &[Edit::Memory]);
    assert_eq!(patch.changes[0].place, Place::CommandLine);
    assert_eq!(patch.changes[0].from.as_deref(), Some("--mem=100"));
    assert_eq!(patch.command_line.as_deref(), Some("--mem=200M"));
    assert!(patch.diff.is_none());
}

#[test]
fn without_a_script_the_change_is_still_said() {
    let job = killed(Bytes(100 * MIB), 1);
    let nothing = Target { script: None, ..target("", &job) };
    let patch = propose(&nothing, &[Edit::Memory]);
    assert_eq!(patch.changes[0].to, "--mem=200M");
    assert!(patch.changes[0].because.contains("100M per node"));
    assert_eq!((patch.changes[0].place, patch.diff), (Place::NotAtHand, None));
    let wrapped = Target { submit_line: Some("sbatch --wrap=python a.py"), ..nothing };
    assert_eq!(propose(&wrapped, &[Edit::Memory]).command_line.as_deref(), Some("--mem=200M"));
}

#[test]
fn a_variable_is_set_unless_that_very_one_is() {
    let edit = || Edit::Env { name: "NCCL_SOCKET_IFNAME".into(), value: "ib0".into() };
    let job = timed_out(Span::seconds(60));
    let changed =
        patched("#!/bin/bash\n#SBATCH -n 1\n\nexport NCCL_SOCKET_IFNAME_X=1\n", &job, edit());
    assert_eq!(
        changed.as_deref(),
        Ok(
            "#!/bin/bash\n#SBATCH -n 1\n\nexport NCCL_SOCKET_IFNAME=ib0\nexport NCCL_SOCKET_IFNAME_X=1\n"
        )
    );
    for line in [
        "export NCCL_SOCKET_IFNAME=eth0",
        "NCCL_SOCKET_IFNAME=eth0 srun x",
        "#SBATCH --export=ALL,NCCL_SOCKET_IFNAME=eth0",
    ] {
        let why = patched(&with(line), &job, edit()).expect_err("refused");
        assert!(why.contains("already sets NCCL_SOCKET_IFNAME"), "{why}");
    }
    let python = patched("#!/usr/bin/env python3\nprint(1)\n", &job, edit());
    assert!(python.expect_err("refused").contains("not a shell"));
}

#[test]
fn a_new_directive_stays_in_front_of_a_new_command() {
    let script = "#!/bin/bash\n./run\n";
    let job = killed(Bytes(100 * MIB), 1);
    let edits = [Edit::Env { name: "A".into(), value: "b c".into() }, Edit::Memory];
    let patched = propose(&target(script, &job), &edits).patched.expect("changed");
    let expected = b"#!/bin/bash\n#SBATCH --mem=200M\nexport A='b c'\n./run\n";
    assert_eq!(patched, expected);
}

#[test]
fn of_several_components_only_the_one_concerned_changes() {
    let script = with("#SBATCH -n 1 --mem=50\n#SBATCH hetjob\n#SBATCH -p gpu");
    let mut job = killed(Bytes(50 * MIB), 1);
    let why = patched(&script, &job, Edit::Memory).expect_err("which?");
    assert!(why.contains("2 components") && why.contains("67+0"), "{why}");
    let nobody =
        Job { source: Source::Given, ..Job::bare(JobId::whole(0), job.state.clone(), job.source) };
    let why = patched(&script, &nobody, Edit::Memory).expect_err("which?");
    assert!(why.contains("2 components") && !why.contains("ask for"), "{why}");
    job.id = "67+1".parse().expect("an id");
    let inherited = patched(&script, &job, Edit::Memory).expect("changed");
    assert_eq!(
        inherited,
        with("#SBATCH -n 1 --mem=50\n#SBATCH hetjob\n#SBATCH -p gpu\n#SBATCH --mem=100M")
    );
    job.id = "67+0".parse().expect("an id");
    let own = patched(&script, &job, Edit::Memory).expect("changed");
    assert_eq!(own, with("#SBATCH -n 1 --mem=100M\n#SBATCH hetjob\n#SBATCH -p gpu"));
}

#[test]
fn a_line_of_another_scheduler_that_wins_is_named() {
    let script = with("#PBS -l walltime=00:05:00,mem=100mb");
    let why = patched(&script, &killed(Bytes(100 * MIB), 1), Edit::Memory).expect_err("refused");
    assert!(why.contains("#PBS") && why.contains("line 2"), "{why}");
    let named = with("#PBS -N member");
    assert!(patched(&named, &killed(Bytes(100 * MIB), 1), Edit::Memory).is_ok());
}

#[test]
fn the_diff_is_one_that_patch_takes() {
    let script = with("#SBATCH --mem=100M");
    let job = killed(Bytes(100 * MIB), 1);
    let patch = propose(&target(&script, &job), &[Edit::Memory]);
    let expected = "--- job.sh\n+++ job.sh\n@@ -1,3 +1,3 @@\n #!/bin/bash\n-#SBATCH --mem=100M\n\
                    +#SBATCH --mem=200M\n ./run\n";
    assert_eq!(patch.diff.as_deref(), Some(expected));
}

fn directives() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        (1u64..5000).prop_map(|n| format!("#SBATCH --mem={n}")),
        (1u64..500, "[KMGkmg]B?").prop_map(|(n, unit)| format!("#SBATCH --mem {n}{unit} # c")),
        (1u64..500).prop_map(|n| format!("#SBATCH -n 1 --mem=\"{n}M\"\r")),
        (1u64..5000).prop_map(|n| format!("#SBATCH -t{n}")),
        (0u64..9, 0u64..24).prop_map(|(d, h)| format!("#SBATCH --time {d}-{h}")),
        (1u64..99).prop_map(|h| format!("#SBATCH --time='{h}:30:00'  ")),
        "# [a-z ]{0,9}",
        Just("##SBATCH --mem=1".to_owned()),
        Just(String::new()),
    ];
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

/// What the script asks for now: bytes of memory, milliseconds of time.
fn asked(script: &script::Script, long: &str) -> Option<u64> {
    let value = script.effective(long)?.value.clone()?;
    Some(match long {
        "mem" => Bytes::parse(&value, MIB).expect("memory").0,
        _ => Span::parse_limit(&value).expect("a limit").as_millis(),
    })
}

proptest! {
    #[test]
    fn a_patch_raises_stays_put_and_touches_nothing_else(
        lines in directives(),
        limit in 1u64..3_000_000,
        seconds in 1u64..2_000_000,
        memory in any::<bool>(),
    ) {
        let script = format!("#!/bin/bash\n{lines}\necho '#SBATCH --mem=1'\n#SBATCH --mem=2\n");
        let mut job = killed(Bytes(limit * MIB), 2);
        job.limit = Known::Value(Span::seconds(seconds));
        let (edit, long, floor) = if memory {
            (Edit::Memory, "mem", limit * MIB)
        } else {
            (Edit::Time, "time", seconds * 1000)
        };
        let patch = propose(&target(&script, &job), std::slice::from_ref(&edit));
        let Some(after) = patch.patched else { return Ok(()) };
        let after = String::from_utf8(after).expect("text");
        let (was, is) = (script::parse(script.as_bytes()), script::parse(after.as_bytes()));
        prop_assert!(asked(&is, long) > asked(&was, long));
        prop_assert!(asked(&is, long) > Some(floor));

        let new = is.effective(long).and_then(|said| said.value.clone()).expect("a value");
        if let Some(span) = was.effective(long).and_then(|said| said.span.clone()) {
            let expected = format!("{}{new}{}", &script[..span.start], &script[span.end..]);
            prop_assert_eq!(&after, &expected);
        } else {
            let line = format!("#SBATCH --{long}={new}");
            let kept: Vec<&str> = after.lines().filter(|kept| *kept != line).collect();
            prop_assert_eq!(kept, script.lines().collect::<Vec<&str>>());
        }
        let again = propose(&target(&after, &job), &[edit]);
        prop_assert!(again.changes.is_empty(), "{:?}", again.changes);
    }

    #[test]
    fn any_script_is_patched_or_refused(bytes: Vec<u8>, line: String) {
        let job = killed(Bytes(100 * MIB), 1);
        let target = Target {
            script: Some(&bytes), name: &line, submit_line: Some(&line), ..target("", &job)
        };
        let edits = [Edit::Memory, Edit::Time, Edit::Env { name: "A".into(), value: "b".into() }];
        let patch = propose(&target, &edits);
        prop_assert_eq!(patch.changes.len() + patch.refused.len(), 3);
    }
}

fn failed_on(nodes: u64, list: &str) -> Job {
    let mut job = Job::bare(JobId::whole(6), State::parse("NODE_FAIL"), Source::Accounting);
    job.nodes = Known::Value(nodes);
    job.node_list = Some(list.to_owned());
    job
}

#[test]
fn requeue_is_added_once_and_never_against_the_owner() {
    let job = failed_on(1, "cn03");
    let added = patched("#!/bin/bash\n#SBATCH -t 10\n./run\n", &job, Edit::Requeue);
    assert_eq!(added.as_deref(), Ok("#!/bin/bash\n#SBATCH -t 10\n#SBATCH --requeue\n./run\n"));
    let again = patched(&added.expect("added"), &job, Edit::Requeue);
    assert_eq!(again.expect_err("there already"), "line 3 says --requeue already");
    let refused = patched(&with("#SBATCH --no-requeue"), &job, Edit::Requeue);
    assert!(refused.expect_err("the owner said no").starts_with("line 2 says --no-requeue"));
}

#[test]
fn only_a_node_that_is_known_to_have_failed_is_left_out() {
    let exclude = |line: &str, job: &Job| patched(&with(line), job, Edit::Exclude);
    let one = failed_on(1, "cn03");
    let added = exclude("#SBATCH -t 10", &one).expect("added");
    assert!(added.contains("#SBATCH --exclude=cn03\n"), "{added}");
    let extended = exclude("#SBATCH -x cn01", &one).expect("extended");
    assert!(extended.contains("#SBATCH -x cn01,cn03\n"), "{extended}");
    for list in ["cn01,cn03", "cn[01-03]", "gpu7,cn[1,03]"] {
        assert!(exclude(&format!("#SBATCH -x {list}"), &one).is_err(), "{list} has it already");
    }
    let extended = exclude("#SBATCH -x cn[01-02]", &one).expect("extended");
    assert!(extended.contains("#SBATCH -x cn[01-02],cn03\n"), "{extended}");
    let file = exclude("#SBATCH -x ./bad-nodes", &one).expect_err("a file");
    assert!(file.ends_with("add cn03 to that file"), "{file}");
    assert!(exclude("#SBATCH -w cn03", &one).is_err(), "asked for by name");
    let mut two = failed_on(2, "cn[03-04]");
    let unknown = exclude("#SBATCH -t 10", &two).expect_err("which of them is not known");
    assert_eq!(unknown, "which node of cn[03-04] failed is not recorded");
    two.failed_node = Some("cn04".to_owned());
    assert!(exclude("#SBATCH -t 10", &two).expect("known").contains("--exclude=cn04\n"));
}

#[test]
fn an_environment_is_activated_only_where_it_lies_beside_the_job_and_none_is_active() {
    let job = failed_on(1, "cn03");
    let activate = |script: &str, environments: &[String]| {
        let target = Target { environments, ..target(script, &job) };
        let patch = propose(&target, &[Edit::Activate]);
        let bytes = patch.patched.map(|bytes| String::from_utf8(bytes).expect("text"));
        bytes.ok_or_else(|| patch.refused[0].why.clone())
    };
    let here = ["/home/ada/my project/.venv".to_owned()];
    assert_eq!(
        activate("#!/bin/bash\n#SBATCH -t 10\npython train.py\n", &here).as_deref(),
        Ok(
            "#!/bin/bash\n#SBATCH -t 10\nsource '/home/ada/my project/.venv/bin/activate'\npython train.py\n"
        )
    );
    for script in [
        "#!/bin/bash\nsource ~/venv/bin/activate\npython train.py\n",
        "#!/bin/bash\nconda activate torch\npython train.py\n",
        "#!/bin/bash\napptainer exec image.sif python train.py\n",
    ] {
        assert!(activate(script, &here).is_err(), "{script}");
    }
    assert!(activate("#!/bin/bash\npython train.py\n", &[]).is_err(), "which one is not known");
}

#[test]
fn a_missing_log_directory_is_made_before_submitting_not_in_the_script() {
    let job = failed_on(1, "cn03");
    let script = with("#SBATCH -o /scratch/ada/my logs/%j.out");
    let missing_directory = Some("/scratch/ada/my logs");
    let target = Target { missing_directory, ..target(&script, &job) };
    let patch = propose(&target, &[Edit::MakeDirectory]);
    assert_eq!(patch.changes[0].place, Place::BeforeSubmitting);
    assert_eq!(patch.changes[0].to, "mkdir -p '/scratch/ada/my logs'");
    assert_eq!(patch.diff, None);
}
