//! What could have been asked for instead of a partition, account or QOS that was refused: the cluster's
//! own list, and the name in it that was probably meant.
//!
//! Asked only for refusals of these three; where it cannot be asked, that is said. A partition that lets
//! this account or QOS not in, or only some groups, is no offer. Whether the name that was meant would
//! be accepted is the scheduler's to say.

use serde::Serialize;

use crate::model::{Association, Cause, Job, Notice, Outcome, Queue, Verdict};
use crate::sched::{Backend, SchedError};
use crate::script::{SubmitLine, parse_submit_line};
use crate::text::did_you_mean;

/// What there is to choose from.
#[derive(Debug, Serialize)]
pub struct Offer {
    /// What was refused.
    pub what: Refusable,
    /// The name that was given, where it is known.
    pub given: Option<String>,
    /// The name that was probably meant.
    pub nearest: Option<String>,
    /// Every name that could be given.
    pub valid: Vec<String>,
}

/// What a submission can be refused for by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Refusable {
    /// The partition.
    Partition,
    /// The account.
    Account,
    /// The quality of service.
    Qos,
}

impl Refusable {
    /// The long option of `sbatch`, which is also its name.
    pub fn option(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Account => "account",
            Self::Qos => "qos",
        }
    }
}

/// What the signal that carries the cause says was refused.
fn refused(cause: &Cause) -> &'static [Refusable] {
    use Refusable::{Account, Partition, Qos};
    match (cause.family.0.as_str(), cause.signal.as_str()) {
        (
            "submit_partition_qos",
            "partition-named" | "partition" | "no-default" | "closed" | "partition-down",
        )
        | ("submit_account", "group") => &[Partition],
        ("submit_partition_qos", "qos") | ("bad_constraints", "qos-invalid") => &[Qos],
        ("submit_account", "invalid-account" | "invalid-account-older" | "association")
        | ("bad_constraints", "account-invalid") => &[Account],
        _ => &[],
    }
}

/// Whether anything is to be asked for a verdict.
pub(super) fn is_wanted(verdict: &Verdict) -> bool {
    cause(verdict).is_some_and(|cause| !refused(cause).is_empty())
}

fn cause(verdict: &Verdict) -> Option<&Cause> {
    let named = matches!(verdict.outcome, Outcome::Cause | Outcome::Pending);
    verdict.causes.first().filter(|_| named)
}

/// What there is to choose from instead, and what could not be asked. `text` is what the command
/// printed, with the command itself where somebody pasted it too.
pub(super) fn offers(
    verdict: &Verdict,
    job: &Job,
    text: &str,
    backend: &Backend<'_>,
) -> (Vec<Offer>, Vec<Notice>) {
    let mut offers = Vec::new();
    let mut notices = Vec::new();
    let Some(cause) = cause(verdict) else { return (offers, notices) };
    for &what in refused(cause) {
        let named = |what| given(what, cause, job, text);
        let given = named(what);
        match valid(what, backend, &named) {
            Ok(valid) => {
                let known =
                    given.as_deref().filter(|given| !valid.iter().any(|name| name == given));
                let nearest = known.and_then(|given| {
                    did_you_mean(given, valid.iter().map(String::as_str)).map(str::to_owned)
                });
                offers.push(Offer { what, given, nearest, valid });
            }
            // Nothing here could be asked, and nobody expects it.
            Err(SchedError::NoScheduler) => {}
            Err(error) => {
                let text = format!("which {} there are could not be asked: {error}", plural(what));
                notices.push(Notice::warning("no-offers", text));
            }
        }
    }
    (offers, notices)
}

fn plural(what: Refusable) -> &'static str {
    match what {
        Refusable::Partition => "partitions",
        Refusable::Account => "accounts",
        Refusable::Qos => "QOS",
    }
}

/// The names that could be given, beside what else the job names.
fn valid(
    what: Refusable,
    backend: &Backend<'_>,
    named: &dyn Fn(Refusable) -> Option<String>,
) -> Result<Vec<String>, SchedError> {
    let facts = backend.jobs.as_ref().ok_or(SchedError::NoScheduler)?;
    let of = |pick: &dyn Fn(Association) -> Vec<String>| {
        let mut names: Vec<String> = facts.associations()?.into_iter().flat_map(pick).collect();
        names.sort();
        names.dedup();
        Ok::<_, SchedError>(names)
    };
    match what {
        Refusable::Partition => {
            let queues = facts.partitions()?;
            let (account, qos) = (named(Refusable::Account), named(Refusable::Qos));
            let is_told = account.is_some() && qos.is_some();
            let rights = if !is_told && queues.iter().any(Queue::has_lists) {
                facts.associations().unwrap_or_default()
            } else {
                Vec::new()
            };
            let ways = ways(account.as_ref(), qos.as_ref(), rights);
            let open = |queue: &&Queue| {
                ways.iter().any(|(account, qos)| queue.lets_in(account.as_deref(), qos.as_deref()))
            };
            Ok(queues.iter().filter(open).map(|queue| queue.name.clone()).collect())
        }
        Refusable::Account => of(&|association| vec![association.account]),
        Refusable::Qos => {
            let names = of(&|association| association.qos)?;
            if names.is_empty() { facts.all_qos() } else { Ok(names) }
        }
    }
}

/// What may be charged: what is named, and for what is not what the user's rights hold.
fn ways(
    account: Option<&String>,
    qos: Option<&String>,
    rights: Vec<Association>,
) -> Vec<(Option<String>, Option<String>)> {
    let mut ways = vec![(account.cloned(), qos.cloned())];
    for right in rights {
        if account.is_some_and(|account| *account != right.account) {
            continue;
        }
        let charged = account.cloned().or(Some(right.account));
        match qos {
            Some(qos) => ways.push((charged, Some(qos.clone()))),
            None => ways.extend(right.qos.into_iter().map(|qos| (charged.clone(), Some(qos)))),
        }
    }
    ways
}

/// The name that was given: in the message, on the submission command, or in the record.
fn given(what: Refusable, cause: &Cause, job: &Job, text: &str) -> Option<String> {
    let captured = cause.captures.get(what.option()).cloned();
    let option = |line: &SubmitLine| line.effective(0, what.option())?.value.clone();
    let commands = text.lines().filter_map(command);
    captured
        .or_else(|| option(&parse_submit_line(job.submit_line.as_deref()?)))
        .or_else(|| commands.map(parse_submit_line).find_map(|line| option(&line)))
        .or_else(|| match what {
            Refusable::Partition => job.partition.clone(),
            Refusable::Account => job.account.clone(),
            Refusable::Qos => job.qos.clone(),
        })
}

/// The submission command in a line that somebody pasted with its prompt.
fn command(line: &str) -> Option<&str> {
    let at =
        ["sbatch ", "srun ", "salloc "].iter().filter_map(|program| line.find(program)).min()?;
    let prompt = line[..at].trim_end();
    let pasted = prompt.is_empty() || prompt.ends_with(['$', '#', '>', '%']);
    pasted.then(|| &line[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_command_is_told_from_what_it_printed() {
        assert_eq!(command("[alice@login1 ~]$ sbatch -A x a.sh"), Some("sbatch -A x a.sh"));
        assert_eq!(command("sbatch -A x a.sh"), Some("sbatch -A x a.sh"));
        assert_eq!(command("sbatch: error: Batch job submission failed"), None);
        assert_eq!(command("I typed sbatch run.sh"), None);
    }
}
