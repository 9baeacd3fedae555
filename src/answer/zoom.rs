//! What is in a queue, on a node, or held by a job?

use std::thread;

use jiff::Timestamp;
use serde::Serialize;

use super::cluster::{MOST_NODES, NodeFilter, NodeRow, QueueRow, jobs_by_node, read};
use super::{AnswerError, World, mask};
use crate::capacity::free::{Frees, Sums};
use crate::capacity::gates::Gates;
use crate::model::{Bytes, Cluster, JobId, Known, Notice, QueuedJob, Reading, Share, Span};
use crate::sched::SchedError;
use crate::sched::slurm::Nodes;
use crate::text;

/// Jobs of several nodes on one node that are asked about, each with a query.
const MOST_ASKED: usize = 6;

/// What was looked into.
#[derive(Debug, Serialize)]
pub struct Zoom {
    /// `jobwise/zoom/1`.
    pub schema: &'static str,
    /// When it was read.
    pub taken_at: Timestamp,
    /// One entry for each name.
    pub places: Vec<Place>,
    /// What the answer lacks.
    pub notices: Vec<Notice>,
}

/// One of the things that can be looked into.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Place {
    /// A queue with its nodes.
    Queue {
        /// The queue.
        queue: Box<QueueRow>,
        /// Its nodes, at most as many as were asked for.
        nodes: Vec<NodeRow>,
        /// How many nodes matched.
        total: usize,
        /// What can be had of those that matched.
        sums: Box<Sums>,
    },
    /// A node with its jobs.
    Node {
        /// The node.
        node: Box<NodeRow>,
        /// The jobs on it; `None` where they could not be read.
        jobs: Option<Vec<JobOnNode>>,
    },
    /// A job with its nodes.
    Job {
        /// The job.
        job: Box<JobRow>,
        /// What it has of each node; empty while it waits, `None` where that is not told.
        shares: Option<Vec<Share>>,
    },
}

/// A job on one node.
#[derive(Debug, Serialize)]
pub struct JobOnNode {
    /// The job.
    #[serde(flatten)]
    pub job: JobRow,
    /// CPUs on this node.
    pub cpus_here: Known<u64>,
    /// Memory on this node.
    pub memory_here: Known<Bytes>,
    /// GPUs on this node.
    pub gpus_here: Known<u64>,
}

/// A job in the queue.
#[derive(Debug, Clone, Serialize)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub user: Option<String>,
    /// The account charged.
    pub account: Option<String>,
    /// Its queue.
    pub partition: Option<String>,
    /// Its quality of service.
    pub qos: Option<String>,
    /// Its state.
    pub state: String,
    /// Why it waits.
    pub reason: Option<String>,
    /// Its nodes, as a compressed list.
    pub node_list: Option<String>,
    /// How many nodes it has or wants.
    pub nodes: Known<u64>,
    /// CPUs in all.
    pub cpus: Known<u64>,
    /// Memory in all.
    pub memory: Known<Bytes>,
    /// GPUs in all.
    pub gpus: Known<u64>,
    /// When it started, or is expected to.
    pub start: Known<Timestamp>,
    /// When its time limit ends it.
    pub end: Known<Timestamp>,
    /// How long it still may run.
    pub left: Known<Span>,
    /// Its priority.
    pub priority: Known<u64>,
}

impl JobRow {
    fn new(job: &QueuedJob, now: Timestamp) -> Self {
        let runs = job.state.word() == "RUNNING";
        let left = job.end.get().filter(|_| runs).map(|end| {
            Span::seconds(u64::try_from(end.duration_since(now).as_secs()).unwrap_or(0))
        });
        Self {
            id: job.id.clone(),
            name: text::masked(&job.name),
            user: job.user.clone(),
            account: job.account.clone(),
            partition: job.partition.clone(),
            qos: job.qos.clone(),
            state: job.state.text.clone(),
            reason: job.reason.as_deref().map(text::masked),
            node_list: job.node_list.clone(),
            nodes: job.nodes.clone(),
            cpus: job.cpus.clone(),
            memory: job.tres.memory().into(),
            // A list of resources without a GPU is of a job without one.
            gpus: if job.tres.is_empty() {
                Known::NotGathered
            } else {
                Known::Value(job.tres.gpus().unwrap_or(0))
            },
            start: job.start.clone(),
            end: job.end.clone(),
            left: left.into(),
            priority: job.priority.clone(),
        }
    }
}

/// Looks into queues, nodes and jobs by their names; a name is that of a queue before that of a
/// node. The filter chooses among the nodes of queues.
pub fn zoom(world: World<'_>, names: &[String], filter: &NodeFilter) -> Result<Zoom, AnswerError> {
    let source = world.nodes()?;
    let (cluster, mut notices) = read(&source)?;
    let frees = Frees::new(&cluster);
    let gates = Gates::new(&cluster, &frees);
    let mut places = Vec::new();
    for name in names {
        places.push(place(&source, &cluster, &frees, &gates, name, filter, &mut notices)?);
    }
    Ok(Zoom { schema: "jobwise/zoom/1", taken_at: cluster.taken_at, places, notices })
}

fn place(
    source: &Nodes<'_>,
    cluster: &Cluster,
    frees: &Frees<'_>,
    gates: &Gates<'_>,
    name: &str,
    filter: &NodeFilter,
    notices: &mut Vec<Notice>,
) -> Result<Place, AnswerError> {
    if let Some(queue) = cluster.queue(name) {
        let here = NodeFilter { queues: vec![name.to_owned()], ..filter.clone() };
        let (nodes, total) = here.rows(cluster, frees);
        return Ok(Place::Queue {
            queue: Box::new(QueueRow::new(gates, queue, None)),
            nodes,
            total,
            sums: Box::new(Sums::of(gates.nodes(queue))),
        });
    }
    if let Some(free) = frees.named(name) {
        let jobs = jobs_by_node(cluster);
        let count = jobs.map(|jobs| jobs.get(name).copied().unwrap_or(0));
        let node = Box::new(NodeRow::new(free, count.into()));
        let jobs = (!cluster.lacks(Reading::Jobs)).then(|| jobs_on(source, cluster, name, notices));
        return Ok(Place::Node { node, jobs });
    }
    if let Ok(id) = name.parse::<JobId>() {
        let mut jobs = cluster.jobs.iter();
        // The id of an array finds its first record.
        let found = jobs.clone().find(|job| job.id == id);
        let job = found.or_else(|| jobs.find(|job| job.id.number == id.number));
        if let Some(job) = job {
            let row = Box::new(JobRow::new(job, cluster.taken_at));
            if job.node_list.is_none() {
                return Ok(Place::Job { job: row, shares: Some(Vec::new()) });
            }
            let shares = source.shares(&job.id).map_err(|error| notices.push(untold(&error))).ok();
            return Ok(Place::Job { job: row, shares });
        }
    }
    let queues = cluster.queues.iter().map(|queue| queue.name.as_str());
    let nodes = cluster.nodes.iter().map(|node| node.name.as_str());
    Err(AnswerError::UnknownPlace {
        name: name.to_owned(),
        nearest: text::did_you_mean(name, queues.chain(nodes)).map(str::to_owned),
    })
}

fn untold(error: &SchedError) -> Notice {
    let text = format!("what the job has of each node is not told: {error}");
    mask::notices(vec![Notice::warning("no-shares", text)]).remove(0)
}

/// The jobs on a node, the largest first, with what each has of **this** node.
fn jobs_on(
    source: &Nodes<'_>,
    cluster: &Cluster,
    node: &str,
    notices: &mut Vec<Notice>,
) -> Vec<JobOnNode> {
    let is_here = |job: &&QueuedJob| {
        let list = job.node_list.as_deref().unwrap_or_default();
        list == node
            || (list.contains(['[', ','])
                && text::expand(list, MOST_NODES)
                    .is_ok_and(|names| names.iter().any(|n| n == node)))
    };
    let here: Vec<&QueuedJob> = cluster.jobs.iter().filter(is_here).collect();
    let spread: Vec<&QueuedJob> =
        here.iter().copied().filter(|job| job.nodes.get().is_none_or(|nodes| nodes > 1)).collect();
    if spread.len() > MOST_ASKED {
        notices.push(Notice::info(
            "some-shares",
            format!(
                "what {MOST_ASKED} of the jobs here have of this node was asked, of the rest not"
            ),
        ));
    }
    let asked: Vec<Option<Share>> = thread::scope(|scope| {
        let queries: Vec<_> = spread
            .iter()
            .take(MOST_ASKED)
            .map(|job| {
                scope.spawn(|| source.shares(&job.id).ok().and_then(|all| share_of(all, node)))
            })
            .collect();
        let answers = queries.into_iter();
        answers
            .map(|query| query.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut rows: Vec<JobOnNode> = here
        .into_iter()
        .map(|job| {
            let row = JobRow::new(job, cluster.taken_at);
            let at = spread.iter().position(|other| std::ptr::eq(*other, job));
            match at {
                // All that it has is here.
                None => JobOnNode {
                    cpus_here: row.cpus.clone(),
                    memory_here: row.memory.clone(),
                    gpus_here: row.gpus.clone(),
                    job: row,
                },
                Some(at) => {
                    let share = asked.get(at).cloned().flatten();
                    JobOnNode {
                        job: row,
                        cpus_here: share.as_ref().map_or(Known::NotGathered, |s| s.cpus.clone()),
                        memory_here: share
                            .as_ref()
                            .map_or(Known::NotGathered, |s| s.memory.clone()),
                        gpus_here: share.as_ref().map_or(Known::NotGathered, |s| s.gpus.clone()),
                    }
                }
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let size = |row: &JobOnNode| (row.gpus_here.get(), row.cpus_here.get());
        size(b).cmp(&size(a)).then_with(|| a.job.id.cmp(&b.job.id))
    });
    rows
}

fn share_of(all: Vec<Share>, node: &str) -> Option<Share> {
    all.into_iter().find(|share| {
        text::expand(&share.node_list, MOST_NODES)
            .is_ok_and(|names| names.iter().any(|n| n == node))
    })
}
