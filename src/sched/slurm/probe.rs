//! Dry runs: `sbatch --test-only`, which submits nothing.
//!
//! What is asked is exactly what would be submitted, with a script that does nothing. Two may answer
//! in one output: a site's own submit filter, in front, and the scheduler; each is read for itself,
//! and a yes needs that nobody refused and that `sbatch` ended well. Every call takes a job id.
//!
//! A yes is no proof: with `EnforcePartLimits=NO` Slurm names a start for partitions that are down,
//! accounts that are closed out and times over the limit (seen in 20.11 to 26.05).

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::config;
use crate::host::{Cmd, ExecError, Runner};
use crate::model::{DryRun, Filter, Known, Refusal, Settled, Shape};

use super::values;

/// Dry runs on this cluster.
pub struct Probe<'h> {
    runner: &'h dyn Runner,
    deadline: Duration,
}

impl std::fmt::Debug for Probe<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// A question to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The queue.
    pub queue: String,
    /// The account to charge.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The scheduler, or silence where it should have spoken.
    Said(Box<DryRun>),
    /// The recording that is replayed does not hold this question.
    Unrecorded,
    /// It was not put, with the reason in place of an answer.
    NotPut(Box<DryRun>),
    /// There is no `sbatch` here.
    Impossible,
}

impl<'h> Probe<'h> {
    /// Asks nothing yet.
    pub fn new(runner: &'h dyn Runner, settings: &config::Scheduler) -> Self {
        Self { runner, deadline: Duration::from_secs(settings.deadline_seconds) }
    }

    /// Asks whether the queue would take a job of this shape.
    pub fn ask(&self, question: &Question, shape: &Shape) -> Answer {
        let cmd = Cmd::new("sbatch", &["--test-only"]).deadline(self.deadline);
        let cmd = cmd.arg(format!("--partition={}", question.queue));
        let named = [("account", &question.account), ("qos", &question.qos)];
        let named = named.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
        let cmd = named.fold(cmd, |cmd, (option, value)| cmd.arg(format!("--{option}={value}")));
        let cmd = shape.options().into_iter().fold(cmd, Cmd::arg).arg("--wrap=true");
        let mut is_put = true;
        let mut answer = match self.runner.run(&cmd) {
            Ok(output) => {
                let mut said = output.finished.stderr.clone();
                said.push(b'\n');
                said.extend_from_slice(&output.stdout);
                read(&said, output.finished.success(), &self.runner.zone())
            }
            Err(ExecError::NotRecorded { .. } | ExecError::NotInDemo) => return Answer::Unrecorded,
            Err(ExecError::Missing { .. } | ExecError::NotAllowed { .. }) => {
                return Answer::Impossible;
            }
            Err(error) => {
                is_put = !matches!(error, ExecError::NotAsked { .. });
                DryRun { message: error.to_string(), ..nothing() }
            }
        };
        answer.queue.clone_from(&question.queue);
        answer.account.clone_from(&question.account);
        answer.qos.clone_from(&question.qos);
        let answer = Box::new(answer);
        if is_put { Answer::Said(answer) } else { Answer::NotPut(answer) }
    }
}

fn nothing() -> DryRun {
    DryRun {
        queue: String::new(),
        account: None,
        qos: None,
        settled: Settled::NoAnswer,
        message: String::new(),
        filter: None,
        effective_qos: None,
        start: Known::NotGathered,
        nodes: None,
    }
}

/// What refusals mean, by a part of their text; the first that is found counts. Texts are those of
/// `slurm_errno.c` and of sites' filters, as recorded and as reported.
const MEANINGS: [(&str, Option<Refusal>); 42] = [
    // The controller could not even look: no answer.
    ("i/o error writing script", None),
    ("unable to contact slurm controller", None),
    ("unable to contact", None),
    ("connection timed out", None),
    ("connection refused", None),
    ("socket timed out", None),
    ("slurm controller is unavailable", None),
    ("slurm temporarily unable", None),
    ("zero bytes were transmitted", None),
    ("protocol authentication", None),
    ("incompatible versions", None),
    ("invalid account or account/partition", Some(Refusal::AccountMismatch)),
    ("job's account not permitted", Some(Refusal::AccountMismatch)),
    ("invalid membership", Some(Refusal::AccountMismatch)),
    ("account not specified", Some(Refusal::NoAccount)),
    ("must specify account", Some(Refusal::NoAccount)),
    ("group not permitted", Some(Refusal::Group)),
    ("invalid partition", Some(Refusal::UnknownQueue)),
    ("partition not available", Some(Refusal::QueueClosed)),
    ("required partition not", Some(Refusal::QueueClosed)),
    ("partition is down", Some(Refusal::QueueClosed)),
    ("invalid qos", Some(Refusal::Qos)),
    ("job's qos not permitted", Some(Refusal::Qos)),
    ("qos not permitted", Some(Refusal::Qos)),
    ("requested time limit", Some(Refusal::TimeLimit)),
    ("partition configuration not available", Some(Refusal::QueueClosed)),
    ("violates accounting/qos policy", Some(Refusal::Quota)),
    ("no sufficient su", Some(Refusal::Quota)),
    ("insufficient", Some(Refusal::Quota)),
    ("exceeds", Some(Refusal::Quota)),
    ("requested node configuration", Some(Refusal::Shape)),
    ("node count specification invalid", Some(Refusal::Shape)),
    ("node count invalid", Some(Refusal::Shape)),
    ("more processors requested", Some(Refusal::Shape)),
    ("memory specification", Some(Refusal::Shape)),
    ("generic resource", Some(Refusal::Shape)),
    ("invalid feature specification", Some(Refusal::Shape)),
    ("required node not available", Some(Refusal::Shape)),
    ("reservation", Some(Refusal::Reservation)),
    ("invalid license", Some(Refusal::Licence)),
    ("permission denied", Some(Refusal::NotEntitled)),
    ("cli_filter", Some(Refusal::Unrecognised)),
];

/// A dry run says so, and ends badly, where nobody knows when what the job wants is given back, as all
/// licences are held; the job itself is taken and waits (seen in 22.05).
const WAITS: &str = "requested nodes are busy";

/// Reads all that one dry run said.
fn read(said: &[u8], succeeded: bool, zone: &TimeZone) -> DryRun {
    let text = String::from_utf8_lossy(said);
    let mut answer = nothing();
    let mut refusals: Vec<&str> = Vec::new();
    let mut reason = None;
    // Whether the scheduler or a filter said no, and not only the client that something is wrong.
    let mut is_refused = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let bare = line.strip_prefix("sbatch:").unwrap_or(line).trim();
        let (bare, is_error) = match bare.strip_prefix("error:") {
            Some(rest) => (rest.trim(), true),
            None => (bare, false),
        };
        if let Some(verdict) = after(bare, "Verification:") {
            let passed = verdict.contains("PASSED");
            answer.filter = Some(Filter { passed, reason: None });
        } else if let Some(text) = after(bare, "Reason:") {
            reason = Some(text.to_owned());
        } else if let Some(name) = after(bare, "QOS-Flag:").or_else(|| after(bare, "QOS:")) {
            answer.effective_qos = values::word(name);
        } else if let Some(rest) = predicted(bare) {
            answer.start = moment(rest, zone);
            answer.nodes = between(rest, " on nodes ", " in partition").map(str::to_owned);
        } else if let Some(text) = after(bare, "Job submission rejected:") {
            answer.filter.get_or_insert(Filter { passed: false, reason: None });
            refusals.push(text);
            is_refused = true;
        } else if let Some(text) = after(bare, "allocation failure:")
            .or_else(|| after(bare, "Batch job submission failed:"))
        {
            refusals.push(text);
            is_refused = true;
        } else if is_error {
            // What goes before it often says more than the verdict.
            refusals.push(bare);
        }
    }
    let rejected = answer.filter.as_ref().is_some_and(|filter| !filter.passed);
    if let Some(filter) = &mut answer.filter {
        filter.reason.clone_from(&reason);
    }
    if succeeded && !rejected && refusals.is_empty() {
        answer.settled = Settled::Taken;
        return answer;
    }
    // The scheduler's own last word first, then the filter's, then whatever was printed.
    let sentence = refusals.last().map(|text| (*text).to_owned()).or(reason);
    let first_line = || text.lines().map(str::trim).find(|line| !line.is_empty());
    answer.message = sentence.or_else(|| first_line().map(str::to_owned)).unwrap_or_default();
    let said: Vec<String> = refusals
        .iter()
        .rev()
        .map(|text| text.to_ascii_lowercase())
        .chain([answer.message.to_ascii_lowercase()])
        .chain(
            answer.filter.iter().filter_map(|f| f.reason.as_ref()).map(|r| r.to_ascii_lowercase()),
        )
        .collect();
    if !rejected && is_refused && said[0].contains(WAITS) {
        answer.settled = Settled::Taken;
        return answer;
    }
    let meaning = said.iter().find_map(|text| {
        MEANINGS.iter().find(|(part, _)| text.contains(part)).map(|(_, meaning)| *meaning)
    });
    answer.settled = match meaning {
        Some(Some(refusal)) => Settled::Refused(refusal),
        None if is_refused || rejected => Settled::Refused(Refusal::Unrecognised),
        Some(None) | None => Settled::NoAnswer,
    };
    answer
}

/// The rest of a line behind a word that begins it, or stands in it after a filter's own prefix.
fn after<'t>(line: &'t str, word: &str) -> Option<&'t str> {
    let (before, rest) = line.split_once(word)?;
    let is_prefix =
        before.is_empty() || before.trim_end().ends_with([':', '>', '-', '*', '|', ']']);
    is_prefix.then(|| rest.trim())
}

/// What follows `Job N to start at `.
fn predicted(line: &str) -> Option<&str> {
    let (job, rest) = line.strip_prefix("Job ")?.split_once(" to start at ")?;
    job.trim().bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    let rest = text.split_once(from)?.1;
    let found = rest.split_once(to).map_or(rest, |(found, _)| found).trim();
    (!found.is_empty()).then_some(found)
}

/// Epoch seconds, or a local time where a wrapper sets its own format.
fn moment(text: &str, zone: &TimeZone) -> Known<Timestamp> {
    let word = text.split_whitespace().next().unwrap_or_default();
    match values::time(word) {
        Known::Unreadable(local) => {
            let civil = local.parse::<DateTime>().ok();
            let moment = civil.and_then(|civil| civil.to_zoned_datetime(zone.clone()).ok());
            moment.map(|moment| moment.timestamp()).into()
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(said: &str, succeeded: bool) -> DryRun {
        read(said.as_bytes(), succeeded, &TimeZone::UTC)
    }

    /// Each was printed by Slurm 20.11 to 26.05 to `sbatch --test-only`.
    #[test]
    fn what_slurm_says_is_understood() {
        let taken = answer(
            "sbatch: Job 667 to start at 1796047944 using 2 processors on nodes g01 in partition gpu\n",
            true,
        );
        assert!(taken.is_taken());
        assert_eq!(taken.start.get().map(Timestamp::as_second), Some(1_796_047_944));
        assert_eq!(taken.nodes.as_deref(), Some("g01"));
        // 26.05 and 20.11, and a wrapper that sets its own format of times.
        let local = answer(
            "sbatch: Job 5 to start at 2026-11-30T09:23:10 a using 1 processors on nodes mcn[53-54] \
             in partition short\n",
            true,
        );
        assert_eq!(
            local.start.get().map(|at| at.to_string()).as_deref(),
            Some("2026-11-30T09:23:10Z")
        );
        assert_eq!(local.nodes.as_deref(), Some("mcn[53-54]"));
        let refused = |text: &str| answer(text, false).refusal();
        for (text, refusal) in [
            ("allocation failure: Access/permission denied", Refusal::NotEntitled),
            ("allocation failure: Requested node configuration is not available", Refusal::Shape),
            (
                "allocation failure: Required partition not available (inactive or drain)",
                Refusal::QueueClosed,
            ),
            (
                "allocation failure: User's group not permitted to use this partition",
                Refusal::Group,
            ),
            (
                "allocation failure: Invalid account or account/partition combination specified",
                Refusal::AccountMismatch,
            ),
            ("allocation failure: Invalid qos specification", Refusal::Qos),
            (
                "allocation failure: Requested time limit is invalid (missing or exceeds some limit)",
                Refusal::TimeLimit,
            ),
            (
                "sbatch: error: Batch job submission failed: Requested reservation is invalid",
                Refusal::Reservation,
            ),
            ("sbatch: error: Invalid generic resource (gres) specification", Refusal::Shape),
            (
                "sbatch: error: Memory specification can not be satisfied\n\
                 allocation failure: Requested node configuration is not available",
                Refusal::Shape,
            ),
            ("allocation failure: The moon is in the wrong phase", Refusal::Unrecognised),
        ] {
            assert_eq!(refused(text), Some(refusal), "{text}");
        }
        // Nobody was asked: the client could not reach the controller, or did not even try.
        for text in [
            "sbatch: error: slurm_unpack_received_msg: Protocol authentication error\n\
             allocation failure: Protocol authentication error",
            "sbatch: fatal: Unable to process configuration file",
            "sbatch: unrecognized option '--test-only'",
            "Segmentation fault",
            "",
        ] {
            let said = answer(text, false);
            assert!(!said.is_taken() && said.refusal().is_none(), "{text}");
        }
    }

    /// Sites put a filter in front, which prints a report of its own.
    #[test]
    fn a_filter_and_the_scheduler_are_read_apart() {
        let both = "sbatch: Verification: ***PASSED***\nsbatch: QOS-Flag: normal\n\
                    allocation failure: Invalid account or account/partition combination specified\n";
        let split = answer(both, false);
        assert_eq!(split.refusal(), Some(Refusal::AccountMismatch));
        assert!(split.disagrees());
        assert_eq!(split.effective_qos.as_deref(), Some("normal"));
        // A filter that passes and a client that fails without a word: neither yes nor no.
        let silent = answer("Verification: ***PASSED***\n", false);
        assert_eq!(silent.settled, Settled::NoAnswer);
        let spent =
            answer("Verification: ***REJECTED***\nReason: No sufficient SU allocations\n", true);
        assert_eq!(spent.refusal(), Some(Refusal::Quota));
        assert_eq!(spent.message, "No sufficient SU allocations");
        assert!(!spent.disagrees());
    }

    #[test]
    fn silence_is_no_refusal() {
        for text in [
            "sbatch: error: Batch job submission failed: I/O error writing script/environment to file",
            "allocation failure: Unable to contact slurm controller (connect failure)",
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        ] {
            assert_eq!(answer(text, false).settled, Settled::NoAnswer, "{text}");
        }
    }

    proptest! {
        /// Only a client that ended well says yes.
        #[test]
        fn any_bytes_are_read(said in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!read(&said, false, &TimeZone::UTC).is_taken());
            let _ = read(&said, true, &TimeZone::UTC);
        }
    }
}
