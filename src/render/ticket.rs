//! A diagnosis as one block of Markdown for a ticket: who must act, why, by which lines, where, when,
//! and what was tried.
//!
//! For a person who was not there. Nothing is asked or worked out anew: it is the same value as any
//! other answer, secrets masked already. Lines of logs stand in fences that they cannot close, names in
//! code spans; nothing is painted, and long lines are left whole: a form wraps them by itself.

use std::io;

use jiff::Timestamp;

use super::diagnosis::{
    child_in_words, confidence, in_log, limit_in_words, offer_in_words, short, stories, where_to,
};
use super::page::{Label, Page};
use crate::answer::diagnose::{Diagnoses, Diagnosis};
use crate::model::{BaseState, Cause, Domain, Evidence, Exit, Job, Known, Outcome, Place};
use crate::text;

/// Pieces of evidence told.
const EVIDENCE: usize = 6;
/// Lines of one log where nothing is known better.
const TAIL: usize = 10;

/// Writes every story as a section, then what all of them lack.
pub(super) fn ticket(answer: &Diagnoses, page: &mut Page<'_>) -> io::Result<()> {
    for array in &answer.arrays {
        say(page, &format!("**{}**", array.in_words()))?;
        page.gap()?;
    }
    for (index, alike) in stories(&answer.diagnoses).iter().enumerate() {
        if index > 0 {
            page.gap()?;
        }
        let [first, others @ ..] = alike.as_slice() else { continue };
        one(page, first)?;
        if !others.is_empty() {
            let ids: Vec<String> = others.iter().map(|other| other.job.id.to_string()).collect();
            let what = text::count(others.len() as u64, "more job");
            say(page, &format!("- The same for {what}: {}", ids.join(" ")))?;
        }
    }
    let missing =
        answer.failures.iter().map(|failure| format!("{}: {}", failure.id, failure.error));
    let notices = answer.notices.iter().map(|notice| notice.text.clone());
    list(page, "Noted", missing.chain(notices).collect())?;
    let version = env!("CARGO_PKG_VERSION");
    page.gap()?;
    say(page, &format!("_Written by jobwise {version} from rules; secrets are masked._"))
}

fn say(page: &mut Page<'_>, line: &str) -> io::Result<()> {
    page.line(&[(Label::Plain, line)])
}

fn one(page: &mut Page<'_>, diagnosis: &Diagnosis) -> io::Result<()> {
    let Diagnosis { job, verdict, .. } = diagnosis;
    let named = matches!(verdict.outcome, Outcome::Cause | Outcome::Pending);
    let cause = verdict.causes.first().filter(|_| named);
    say(page, &format!("## {}", title(job, cause, verdict.outcome)))?;
    page.gap()?;
    say(page, &format!("**Who must act:** {}", who(verdict.outcome, cause)))?;
    page.gap()?;
    match cause {
        Some(cause) => {
            let text = format!("**Cause:** {} (`{}`)", cause.title, cause.family);
            say(page, &text)?;
            page.gap()?;
            say(page, &format!("**Sure:** {}", confidence(cause)))?;
        }
        None if verdict.outcome == Outcome::Unknown => {
            say(page, "**Cause:** unknown: the evidence does not decide")?;
        }
        None => say(page, "**Cause:** none: nothing says that it failed")?,
    }
    if let Some(report) = &diagnosis.report {
        page.gap()?;
        say(page, &format!("**Asked for:** {report}"))?;
    }
    list(page, "Limits", diagnosis.held.iter().map(limit_in_words).collect())?;
    list(page, "Waits for", diagnosis.parents.iter().map(child_in_words).collect())?;
    facts(page, job)?;

    let told = cause.map_or(&verdict.consequences, |cause| &cause.evidence);
    quoted(page, "Evidence", &lines(job, told.iter().take(EVIDENCE)))?;
    if cause.is_some() {
        quoted(page, "What followed", &lines(job, verdict.consequences.iter().take(EVIDENCE)))?;
    }
    for log in diagnosis.logs.iter().filter(|log| !log.tail.is_empty()) {
        let last: Vec<String> = log
            .tail
            .iter()
            .rev()
            .take(TAIL)
            .rev()
            .map(|quoted| {
                let number = quoted.line.map(|line| format!("{line}: ")).unwrap_or_default();
                format!("{number}{}", quoted.text)
            })
            .collect();
        quoted(page, &format!("The last lines of {}", short(job, &log.path)), &last)?;
    }
    list(page, "Tried so far", tried(page, job))?;
    let changes = diagnosis.patch.iter().flat_map(|patch| &patch.changes).map(|change| {
        let from = change.from.as_ref().map(|from| format!("{} -> ", code(from)));
        let from = from.unwrap_or_default();
        format!("{from}{}{}: {}", code(&change.to), where_to(change.place), change.because)
    });
    let refused = diagnosis.patch.iter().flat_map(|patch| &patch.refused);
    let refused = refused.map(|refused| format!("not changed: {}", refused.why));
    list(
        page,
        "Failed jobs of this workflow",
        diagnosis.children.iter().map(child_in_words).collect(),
    )?;
    let settings = diagnosis.wrapper.iter().flat_map(|wrapped| {
        wrapped.settings.iter().map(|setting| format!("in {}: {setting}", wrapped.tool))
    });
    let offers = diagnosis.offers.iter().map(offer_in_words);
    let refused = refused.chain(offers).chain(settings);
    list(page, "Change proposed", changes.chain(refused).collect())?;
    list(page, "Noted", diagnosis.notices.iter().map(|notice| notice.text.clone()).collect())
}

fn title(job: &Job, cause: Option<&Cause>, outcome: Outcome) -> String {
    let what = match (cause, outcome) {
        (Some(cause), _) => cause.title.clone(),
        (None, Outcome::Unknown) => "failed, cause unknown".to_owned(),
        (None, _) if job.state.text.is_empty() => "nothing found wrong".to_owned(),
        (None, _) => job.state.text.clone(),
    };
    if job.id.number == 0 {
        return what;
    }
    let name = if job.name.is_empty() { String::new() } else { format!(" {}", code(&job.name)) };
    format!("Job {}{name}: {what}", job.id)
}

fn who(outcome: Outcome, cause: Option<&Cause>) -> &'static str {
    match (outcome, cause.map(|cause| cause.domain)) {
        (_, Some(Domain::User)) => "the job's owner",
        (_, Some(Domain::Application)) => "the job's owner, or whoever maintains the program",
        (_, Some(Domain::Site)) => "the site's staff",
        (_, Some(Domain::Hardware)) => "the site's staff: a machine is at fault",
        (_, Some(Domain::Scheduler)) => "the job's owner; the limits are the site's",
        (Outcome::Unknown, None) => "not known: somebody has to look at the lines below",
        (_, None) => "nobody",
    }
}

/// What the record says, one fact a line; what it does not say is left out.
fn facts(page: &mut Page<'_>, job: &Job) -> io::Result<()> {
    let plain = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let coded = |text: &Option<String>| plain(text).map(|text| code(&text));
    let moment = |moment: &Known<Timestamp>| moment.is_value().then(|| page.dated(moment));
    let known = |value: String, is: bool| is.then_some(value);
    let exit = job.exit.get().filter(|exit| !exit.is_clean()).map(Exit::explained);
    let state = [plain(&Some(job.state.text.clone())), exit].into_iter().flatten();
    let state: Vec<String> = state.collect();
    let started = job.has_started();
    let resources = [
        job.nodes.get().map(|nodes| text::count(nodes, "node")),
        job.cpus.get().map(|cpus| text::count(cpus, "CPU")),
        job.gpus().filter(|gpus| *gpus > 0).map(|gpus| text::count(gpus, "GPU")),
        job.requested_memory.get().map(|memory| format!("{} of memory asked for", memory.bytes)),
    ];
    let resources: Vec<String> = resources.into_iter().flatten().collect();
    let facts = [
        ("Job", (job.id.number > 0).then(|| job.id.to_string())),
        ("State", known(state.join(", "), !state.is_empty())),
        ("Reason", plain(&job.reason)),
        ("User", plain(&job.user)),
        ("Account", plain(&job.account)),
        ("Partition", plain(&job.partition)),
        ("QOS", plain(&job.qos)),
        ("Cluster", plain(&job.cluster)),
        ("Nodes", plain(&job.node_list).filter(|_| started)),
        ("Failed node", plain(&job.failed_node)),
        ("Resources", known(resources.join(", "), !resources.is_empty())),
        ("Submitted", moment(&job.submitted)),
        ("Started", moment(&job.started).filter(|_| started)),
        ("Ended", moment(&job.ended)),
        ("Elapsed", known(format!("{} of {}", job.elapsed, job.limit), started)),
        ("Submitted as", coded(&job.submit_line)),
        ("Directory", coded(&job.work_dir)),
        ("Comment", coded(&job.comment)),
    ];
    let facts: Vec<String> =
        facts.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?))).collect();
    list(page, "", facts)
}

/// Earlier runs of the same job: what each came to, and where.
fn tried(page: &Page<'_>, job: &Job) -> Vec<String> {
    let mut tried: Vec<String> = job
        .earlier
        .iter()
        .map(|run| {
            let place = run.node_list.as_ref().filter(|_| run.has_started());
            let place = place.map(|nodes| format!(" on {nodes}")).unwrap_or_default();
            let ended = page.dated(&run.ended);
            format!("{} after {}{place}, ended {ended}", run.state.text, run.elapsed)
        })
        .collect();
    if let Some(restarts) = job.restarts.get().filter(|restarts| *restarts > 0) {
        tried.push(format!("requeued {}", text::count(restarts, "time")));
    }
    if tried.is_empty() && !matches!(job.state.base, BaseState::Pending) && job.id.number > 0 {
        tried.push("no earlier run of this job is recorded".to_owned());
    }
    tried
}

/// Evidence as `place  text`.
fn lines<'e>(job: &Job, evidence: impl Iterator<Item = &'e Evidence>) -> Vec<String> {
    let place = |piece: &Evidence| match &piece.place {
        Place::Log { .. } => in_log(job, &piece.place),
        Place::Record { step: Some(step), .. } => format!("record of step {step}"),
        Place::Record { .. } => "record".to_owned(),
    };
    evidence.map(|piece| format!("{}: {}", place(piece), piece.text)).collect()
}

/// Lines between fences that none of them closes.
fn quoted(page: &mut Page<'_>, heading: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    page.gap()?;
    say(page, &format!("### {heading}"))?;
    page.gap()?;
    let fence = "`".repeat(lines.iter().map(|line| backticks(line)).max().unwrap_or(0).max(2) + 1);
    say(page, &fence)?;
    for line in lines {
        say(page, line)?;
    }
    say(page, &fence)
}

/// The longest row of backticks.
fn backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text that stands for itself.
fn code(text: &str) -> String {
    let fence = "`".repeat(backticks(text) + 1);
    let space = if fence.len() > 1 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

fn list(page: &mut Page<'_>, heading: &str, items: Vec<String>) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    page.gap()?;
    if !heading.is_empty() {
        say(page, &format!("### {heading}"))?;
        page.gap()?;
    }
    for item in items {
        say(page, &format!("- {item}"))?;
    }
    Ok(())
}
