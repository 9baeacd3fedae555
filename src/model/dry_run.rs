//! What a scheduler said when it was asked whether it would take a job, without giving it one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Known;

/// One dry run and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DryRun {
    /// The queue asked about.
    pub queue: String,
    /// The account it was asked with.
    pub account: Option<String>,
    /// The quality of service it was asked with.
    pub qos: Option<String>,
    /// What is settled by it.
    pub settled: Settled,
    /// The scheduler's sentence; empty where it only said yes.
    pub message: String,
    /// What a site's own filter in front of the scheduler said.
    pub filter: Option<Filter>,
    /// The quality of service that the filter would give the job.
    pub effective_qos: Option<String>,
    /// When the scheduler would start it.
    pub start: Known<Timestamp>,
    /// On which nodes, as a compressed list.
    pub nodes: Option<String>,
}

/// What a dry run settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It would take the job.
    Taken,
    /// It would not.
    Refused(Refusal),
    /// Nobody answered.
    NoAnswer,
}

/// Why a scheduler would not take a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// This user may not.
    NotEntitled,
    /// The account cannot be charged, or not here.
    AccountMismatch,
    /// It wants an account to be named.
    NoAccount,
    /// A Unix group is missing.
    Group,
    /// There is no such queue.
    UnknownQueue,
    /// The queue takes nothing.
    QueueClosed,
    /// A budget is spent, or a limit reached.
    Quota,
    /// The quality of service does not fit.
    Qos,
    /// The time limit is too long.
    TimeLimit,
    /// No node is as asked for.
    Shape,
    /// The reservation does not hold.
    Reservation,
    /// There is no such licence, or there are not as many.
    Licence,
    /// It refuses in words that are not known here.
    Unrecognised,
}

impl Refusal {
    /// Whether it would be the same tomorrow, and so says something about access. A refusal of this
    /// shape, or in unknown words, says nothing about the next job; it is a refusal all the same.
    pub fn is_durable(self) -> bool {
        !matches!(self, Self::Shape | Self::Reservation | Self::Licence | Self::Unrecognised)
    }

    /// Whether it leaves open which rule it is.
    pub fn is_vague(self) -> bool {
        matches!(
            self,
            Self::NotEntitled
                | Self::Quota
                | Self::TimeLimit
                | Self::Shape
                | Self::Reservation
                | Self::Unrecognised
        )
    }

    /// Whether another account or quality of service might be taken.
    pub fn depends_on_account(self) -> bool {
        matches!(
            self,
            Self::NotEntitled
                | Self::AccountMismatch
                | Self::NoAccount
                | Self::Quota
                | Self::Qos
                | Self::Unrecognised
        )
    }

    /// Whether another queue might take it.
    pub fn depends_on_queue(self) -> bool {
        self != Self::Licence
    }

    /// In few words.
    pub fn label(self) -> &'static str {
        match self {
            Self::NotEntitled => "no access",
            Self::AccountMismatch => "wrong account",
            Self::NoAccount => "needs an account",
            Self::Group => "not your group",
            Self::UnknownQueue => "no such partition",
            Self::QueueClosed => "closed",
            Self::Quota => "over a limit",
            Self::Qos => "QOS rejected",
            Self::TimeLimit => "time limit",
            Self::Shape => "no such nodes",
            Self::Reservation => "reservation",
            Self::Licence => "no such licence",
            Self::Unrecognised => "refused",
        }
    }
}

/// The verdict of a site's own filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Whether it lets the job through.
    pub passed: bool,
    /// Its reason.
    pub reason: Option<String>,
}

impl DryRun {
    /// Whether the scheduler would take the job.
    pub fn is_taken(&self) -> bool {
        self.settled == Settled::Taken
    }

    /// Why it would not.
    pub fn refusal(&self) -> Option<Refusal> {
        match self.settled {
            Settled::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether a site's filter and the scheduler behind it say different things.
    pub fn disagrees(&self) -> bool {
        let scheduler = match self.settled {
            Settled::Taken => true,
            Settled::Refused(_) => false,
            Settled::NoAnswer => return false,
        };
        self.filter.as_ref().is_some_and(|filter| filter.passed != scheduler)
    }

    /// How much it says: a yes more than a refusal of one account, that more than silence.
    pub fn weight(&self) -> u8 {
        match self.settled {
            Settled::Taken => 3,
            Settled::Refused(refusal) if !refusal.is_durable() => 2,
            Settled::Refused(_) => 1,
            Settled::NoAnswer => 0,
        }
    }
}
