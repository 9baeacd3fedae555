//! What the scheduler says without a run: why a job waits, why a submission is refused.

use super::{RULES, scan};
use crate::classify::{Facts, LogFacts, decide, decide_text};
use crate::model::{Job, JobId, Outcome, Source, State, Stream, Verdict};

/// `reason, family, does waiting help (yes, no, - where it depends)`: every reason of Slurm's
/// `job_state_reason.c` up to 26.05, and the free texts that its controller and `squeue` write. The
/// families follow from what the manual says of each, not from what the rules answer.
const REASONS: &str = include_str!("../../../fixtures/reasons.tsv");

/// `text, family`: every distinct refusal that a real Slurm of each version printed for some hundred
/// wrong submissions; the families were judged from the commands.
const REFUSALS: [&str; 5] = [
    include_str!("../../../fixtures/submit/rejections-20.11.tsv"),
    include_str!("../../../fixtures/submit/rejections-22.05.tsv"),
    include_str!("../../../fixtures/submit/rejections-24.11.tsv"),
    include_str!("../../../fixtures/submit/rejections-26.05.tsv"),
    include_str!("../../../fixtures/submit/options-22.05.tsv"),
];

fn waits_for(reason: &str) -> Verdict {
    let mut job = Job::bare(JobId::whole(1), State::parse("PENDING"), Source::Controller);
    job.reason = Some(reason.to_owned());
    // What every record says, and no reason reads.
    job.qos = Some("normal".to_owned());
    job.dependency = Some("(null)".to_owned());
    decide(&RULES, &Facts { job: Some(&job), logs: Vec::new(), logs_complete: false })
}

fn log<'a>(path: &'a str, scan: &'a crate::logs::Scan) -> LogFacts<'a> {
    LogFacts { path, stream: Stream::Output, step: None, task: None, scan, end: None }
}

fn refused(text: &str) -> Verdict {
    let scan = scan(text);
    let log = log("text", &scan);
    decide_text(&RULES, &log, text.as_bytes())
}

fn family(verdict: &Verdict) -> &str {
    verdict.causes.first().map_or("nothing", |cause| &cause.family.0)
}

#[test]
fn every_reason_for_waiting_has_one_family_and_says_whether_waiting_helps() {
    let rows: Vec<&str> = REASONS.lines().collect();
    // 218 reasons, of which two words are shared by two, and the free texts.
    assert_eq!(rows.len(), 216 + 8);
    for row in rows {
        let [reason, expected, helps] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let verdict = waits_for(reason);
        assert_eq!(verdict.outcome, Outcome::Pending, "{reason}");
        let families: Vec<&str> = verdict.causes.iter().map(|c| c.family.0.as_str()).collect();
        assert_eq!(families, [expected], "{reason}");
        let signals = &RULES.family(&verdict.causes[0].family).expect("a family").signals;
        let signal = signals.iter().find(|signal| signal.id == verdict.causes[0].signal);
        let told = signal.expect("its signal").waiting_helps;
        let wanted = match helps {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        assert_eq!(told, wanted, "{reason}");
    }
}

#[test]
fn a_reason_that_no_family_knows_names_nothing() {
    for reason in ["NoSuchReason", "", "Prioritywise", "Dependency2", "xQOSGrpCpuLimit"] {
        let verdict = waits_for(reason);
        assert_eq!((verdict.outcome, verdict.causes.len()), (Outcome::Pending, 0), "{reason}");
    }
}

#[test]
fn a_reason_of_a_resource_to_come_is_read_by_its_structure() {
    assert_eq!(family(&waits_for("QOSGrpQuantumRunMinutes")), "pend_qos_limit");
    assert_eq!(family(&waits_for("AssocGrpQuantumMinutes")), "allocation_exhausted");
}

#[test]
fn every_refusal_of_four_versions_is_recognised() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in REFUSALS.iter().flat_map(|file| file.lines()) {
        let (text, expected) = row.rsplit_once('\t').expect("two cells");
        let text = text.replace("\\n", "\n").replace("\\\\", "\\");
        let verdict = refused(&text);
        count += 1;
        if verdict.outcome != Outcome::Cause || family(&verdict) != expected {
            wrong.push(format!("{text}: {} for {expected}", family(&verdict)));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_other_commands_print_is_no_refused_submission() {
    // From the same clusters: scontrol, sacct, scancel, and submissions that were taken.
    for text in [
        "slurm_load_jobs error: Invalid job id specified",
        "Node nosuch not found",
        "sacct: error: Invalid field requested: \"NoSuchField\"",
        "slurm_update error: Invalid user id",
        "scancel: error: Kill job error on job id 1: Access/permission denied",
        "Submitted batch job 166",
        "srun: Warning: can't run 4 processes on 9 nodes, setting nnodes to 4",
        "sbatch: error: Ignoring unrecognized power option (x)",
        "sbatch: Job 181 to start at 2026-11-30T08:40:14 using 1 processors on nodes c01 in partition down",
        "",
    ] {
        assert_eq!(refused(text).outcome, Outcome::Unknown, "{text}");
    }
}

#[test]
fn a_pasted_log_is_judged_as_a_log() {
    let log = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nModuleNotFoundError: No module named 'torch'\n";
    assert_eq!(family(&refused(log)), "python_import");
}

#[test]
fn the_place_of_a_refusal_can_be_read_again() {
    let text =
        "sbatch: Verifying job request ...\r\nsbatch: error: QOSMaxWallDurationPerJobLimit\n";
    let verdict = refused(text);
    assert_eq!(family(&verdict), "submit_time_limit");
    let crate::model::Place::Log { line, offset, length, .. } = verdict.causes[0].evidence[0].place
    else {
        panic!("in the text")
    };
    let (from, to) = (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
    assert_eq!((line, &text[from..to]), (Some(2), "sbatch: error: QOSMaxWallDurationPerJobLimit"));
}

#[test]
fn a_wrapper_whose_submissions_are_refused_is_told_why() {
    let mut job = Job::bare(JobId::whole(67), State::parse("FAILED"), Source::Given);
    job.exit = crate::model::Known::Value(crate::model::Exit { code: 1, signal: 0, folded: false });
    let text = "submitting task 7\nsbatch: error: Batch job submission failed: Invalid qos specification\n";
    let scan = scan(text);
    let log = log("job.out", &scan);
    let facts = Facts { job: Some(&job), logs: vec![log], logs_complete: true };
    assert_eq!(family(&decide(&RULES, &facts)), "submit_partition_qos");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(sbatch: error: |QOSMax|é|\u{1b}\\[|Invalid --|PerJob|\r|\n|[ -~]{0,8}){0,30}") {
        let _ = refused(&text);
        let _ = waits_for(&text);
    }
}
