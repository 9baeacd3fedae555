//! Which records an id names.

use crate::model::{Job, JobId, Known, Part};

/// An id as Slurm's clients take it: without the cluster, and without a bracket of tasks.
pub(super) fn queried(id: &JobId) -> String {
    let part = if matches!(id.part, Part::Tasks(_)) { Part::Whole } else { id.part.clone() };
    JobId { number: id.number, part, cluster: None }.to_string()
}

/// The number that a record has for itself: each array task and component has its own.
pub(super) fn own_number(job: &Job) -> u64 {
    match job.raw_id {
        Known::Value(number) => number,
        _ => job.id.number,
    }
}

/// Whether a record is of the job that was asked about: clients read numbers that are too large as
/// others. A task and a component have a number of their own, by which they can be asked for too.
pub(super) fn is_named(id: &JobId, job: &Job) -> bool {
    if own_number(job) == id.number && id.part == Part::Whole {
        return true;
    }
    let same_part = match (&id.part, &job.id.part) {
        (Part::Tasks(tasks), Part::Task(task)) => names_task(tasks, *task),
        (Part::Task(asked), Part::Task(task)) => asked == task,
        (Part::Component(asked), Part::Component(component)) => asked == component,
        // Tasks that wait are one record.
        _ => true,
    };
    job.id.number == id.number && same_part
}

/// Whether a bracket of tasks, such as `1-9,20-40:10%2`, names one; of a list that was cut (`...`)
/// the rest may name any.
pub(super) fn names_task(tasks: &str, task: u64) -> bool {
    let tasks = tasks.split('%').next().unwrap_or("");
    tasks.split(',').any(|range| {
        if range == "..." {
            return true;
        }
        let (range, step) = range.split_once(':').unwrap_or((range, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<u64>(), last.parse(), step.parse()) {
            (Ok(first), Ok(last), Ok(step)) if step > 0 => {
                (first..=last).contains(&task) && (task - first).is_multiple_of(step)
            }
            _ => false,
        }
    })
}
