//! How one run used what it held, as far as that is worth saying.
//!
//! Judges use, never the cause of a failure: that comes in from outside, as `diagnose` names it, and
//! what it explains is not said again in other words. So nothing here contradicts a diagnosis, and
//! no two findings contradict each other: a run that did nothing is told so and not that its
//! CPUs were too many; who ran out of memory is not told that it had too much. Each finding carries
//! its figures. What was not measured gives no finding.

use serde::Serialize;

use crate::config::Findings as Thresholds;
use crate::model::{BaseState, Bytes, Idle, Job, Run, Span, Step};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// What was held was wasted, or the result may be wrong.
    Critical,
    /// Worth a change.
    Warning,
    /// Good to know.
    Info,
}

/// One number that a finding rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// Of what.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Its unit; empty for a count or a ratio.
    pub unit: &'static str,
}

/// One thing that is worth saying.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A stable word for programs.
    pub code: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// One sentence: what was seen.
    pub text: String,
    /// What can be done.
    pub action: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// Everything that is worth saying about a run, the heaviest first.
///
/// `run` is the run of `job`; `cause` the family that the diagnosis names, where it names one.
pub fn findings(
    job: &Job,
    run: &Run,
    cause: Option<&str>,
    idle: &Idle,
    from: &Thresholds,
) -> Vec<Finding> {
    let view = View { job, run, cause, from, idle: run.is_hang(idle) == Some(true) };
    let rules: [fn(&View<'_>) -> Option<Finding>; 17] = [
        step_out_of_memory,
        failed_step,
        did_nothing,
        gpus_little_used,
        gpus_not_measured,
        cpus_little_used,
        cpu_time_above_all,
        kernel_time,
        much_moved,
        straggler,
        uneven_memory,
        page_faults,
        memory_above_limit,
        memory_left_over,
        time_left_over,
        cancelled_by_another,
        suspended,
    ];
    let mut found: Vec<Finding> = rules.iter().filter_map(|rule| rule(&view)).collect();
    // Stable: of equal weight in the order above.
    found.sort_by_key(|finding| finding.weight);
    found
}

struct View<'r> {
    job: &'r Job,
    run: &'r Run,
    cause: Option<&'r str>,
    from: &'r Thresholds,
    /// It held its cores and did nothing.
    idle: bool,
}

impl View<'_> {
    /// Whether the state or the cause explains why little was used.
    fn is_explained(&self) -> bool {
        use BaseState::{BootFail, Deadline, NodeFail, OutOfMemory, Preempted};
        let by_state =
            matches!(self.run.state, BootFail | Deadline | NodeFail | OutOfMemory | Preempted);
        by_state || self.cause.is_some_and(|cause| !matches!(cause, "time_limit" | "hang"))
    }

    /// The wall time, where the run is over and took at least so long.
    fn seconds(&self, least: u64) -> Option<f64> {
        let elapsed = self.run.elapsed.get()?;
        (self.run.is_ended() && u64::from(elapsed) >= least).then(|| f64::from(elapsed))
    }

    fn work(&self) -> impl Iterator<Item = &Step> {
        self.job.steps.iter().filter(|step| !step.id.is_extern())
    }

    /// Whether a larger or smaller request would change what it is given.
    fn is_shared(&self) -> bool {
        self.run.exclusive != Some(true)
    }
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.001 {
        "under 0.1 %".to_owned()
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

fn below(share: f64, threshold: u64) -> bool {
    share * 100.0 < float(threshold)
}

#[expect(clippy::cast_precision_loss, reason = "figures are told to a few digits")]
fn float(number: u64) -> f64 {
    number as f64
}

fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure { name, value, unit }
}

fn finding(
    code: &'static str,
    weight: Weight,
    text: String,
    action: impl Into<String>,
    figures: Vec<Figure>,
) -> Finding {
    Finding { code, weight, text, action: action.into(), figures }
}

/// A process was killed for memory, which neither the state nor the cause tells.
fn step_out_of_memory(view: &View<'_>) -> Option<Finding> {
    let killed = |step: &&Step| {
        step.state.base == BaseState::OutOfMemory
            || step.exit.get().is_some_and(|exit| exit.signal == 125)
    };
    let step = view.work().find(killed)?;
    if view.run.state == BaseState::OutOfMemory || view.cause == Some("host_oom") {
        return None;
    }
    Some(finding(
        "step-out-of-memory",
        Weight::Critical,
        format!("the kernel killed a process of step {} for memory", step.id),
        "its result may be missing or wrong; jobwise diagnose says what to ask for",
        vec![figure("killed steps", float(view.work().filter(killed).count() as u64), "")],
    ))
}

/// The script ended well although something in it did not.
fn failed_step(view: &View<'_>) -> Option<Finding> {
    if view.run.state != BaseState::Completed {
        return None;
    }
    let steps = view.run.failed_steps.get().unwrap_or(0);
    let derived = view.job.derived_exit.get().filter(|exit| !exit.is_clean());
    if view.run.out_of_memory || (steps == 0 && derived.is_none()) {
        return None;
    }
    let exit = derived.map_or_else(String::new, |exit| format!(", {}", exit.in_words()));
    Some(finding(
        "failed-step",
        Weight::Warning,
        format!("a step failed inside a completed job{exit}"),
        "set -e ends a script at the first command that fails",
        vec![figure("failed steps", f64::from(steps.max(1)), "")],
    ))
}

fn did_nothing(view: &View<'_>) -> Option<Finding> {
    if !view.idle || view.is_explained() {
        return None;
    }
    let (seconds, used) = (view.run.elapsed.get()?, view.run.cpu_millis.get()?);
    let gpus = view.run.gpus.get().unwrap_or(0);
    let held = if gpus > 0 {
        format!(" and {}", crate::text::count(u64::from(gpus), "GPU"))
    } else {
        String::new()
    };
    Some(finding(
        "did-nothing",
        Weight::Critical,
        format!(
            "it used {} s of CPU in {} on {}{held}",
            float(used) / 1000.0,
            Span::seconds(u64::from(seconds)),
            crate::text::count(u64::from(view.run.cpus.get().unwrap_or(0)), "CPU"),
        ),
        if view.run.state == BaseState::Timeout {
            "find what it waited for before you raise --time"
        } else {
            "find what it waited for: a lock, a peer, a license, a read from standard input"
        },
        vec![
            figure("CPU time", float(used) / 1000.0, "s"),
            figure("wall time", f64::from(seconds), "s"),
            figure("CPUs", f64::from(view.run.cpus.get().unwrap_or(0)), ""),
        ],
    ))
}

fn gpus_little_used(view: &View<'_>) -> Option<Finding> {
    let gpus = view.run.gpus.get().filter(|gpus| *gpus > 0)?;
    let share = view.run.gpu_use()?;
    view.seconds(view.from.least_seconds_gpu)?;
    let idle = below(share, view.from.gpu_idle_percent);
    if view.is_explained() || !below(share, view.from.gpu_percent) {
        return None;
    }
    Some(finding(
        if idle { "gpu-idle" } else { "gpu-little-used" },
        if idle { Weight::Critical } else { Weight::Warning },
        format!(
            "{} were busy for {} of the time",
            crate::text::count(u64::from(gpus), "GPU"),
            percent(share)
        ),
        if gpus > 1 {
            "does the program use more than one? Ask for as many as it does"
        } else {
            "does the program find the GPU, and is it fed fast enough?"
        },
        vec![figure("GPU use", share * 100.0, "%"), figure("GPUs", f64::from(gpus), "")],
    ))
}

fn gpus_not_measured(view: &View<'_>) -> Option<Finding> {
    let gpus = view.run.gpus.get().filter(|gpus| *gpus > 0)?;
    view.seconds(view.from.least_seconds_gpu)?;
    let share = view.run.cpu_use()?;
    let measured = view.run.gpu_use().is_some();
    let suspect = below(share, view.from.gpu_suspect_cpu_percent);
    if measured || view.idle || view.is_explained() || !suspect {
        return None;
    }
    Some(finding(
        "gpu-perhaps-idle",
        Weight::Warning,
        format!(
            "nothing measured its {}, but its CPUs were busy for {} only",
            crate::text::count(u64::from(gpus), "GPU"),
            percent(share)
        ),
        "look at them while it runs: nvidia-smi on its node",
        vec![figure("CPU use", share * 100.0, "%"), figure("GPUs", f64::from(gpus), "")],
    ))
}

fn cpus_little_used(view: &View<'_>) -> Option<Finding> {
    view.seconds(view.from.least_seconds)?;
    let cpus = view.run.cpus.get().filter(|cpus| *cpus > 1)?;
    let share = view.run.cpu_use()?;
    let asked_for = view.is_shared() && !view.idle && !view.is_explained();
    // Beside GPUs, CPUs come with them.
    let beside = view.run.gpus.get().is_some_and(|gpus| gpus > 0);
    if !asked_for || beside || !below(share, view.from.cpu_percent) {
        return None;
    }
    let busy = share * f64::from(cpus);
    Some(finding(
        "cpu-little-used",
        Weight::Warning,
        format!("{busy:.1} of {cpus} CPUs were busy ({})", percent(share)),
        "ask for as many as it keeps busy, or give it as many threads as it has CPUs",
        vec![
            figure("CPU use", share * 100.0, "%"),
            figure("busy CPUs", busy, ""),
            figure("CPUs", f64::from(cpus), ""),
        ],
    ))
}

/// More CPU time than the CPUs have.
fn cpu_time_above_all(view: &View<'_>) -> Option<Finding> {
    let (seconds, used) = (view.run.elapsed.get()?, view.run.cpu_millis.get()?);
    let cpus = view.run.cpus.get()?;
    if seconds == 0 || view.run.cpu_use().is_some() {
        return None;
    }
    Some(finding(
        "cpu-time-above-all",
        Weight::Info,
        format!(
            "{} of CPU time are recorded, more than {} can give in {}",
            Span::millis(used),
            crate::text::count(u64::from(cpus), "CPU"),
            Span::seconds(u64::from(seconds)),
        ),
        "it ran on CPUs that it was not given, or accounting is wrong: no advice counts on it",
        vec![
            figure("CPU time", float(used) / 1000.0, "s"),
            figure("wall time", f64::from(seconds), "s"),
            figure("CPUs", f64::from(cpus), ""),
        ],
    ))
}

fn kernel_time(view: &View<'_>) -> Option<Finding> {
    view.seconds(view.from.least_seconds)?;
    let sum = |of: fn(&Step) -> Option<Span>| -> u64 {
        view.work().filter_map(of).map(Span::as_millis).sum()
    };
    let kernel = sum(|step| step.usage.system_cpu.get());
    let all = sum(|step| step.cpu_time.get());
    let share = float(kernel) / float(all.max(1));
    let little = all < view.from.kernel_least_seconds.saturating_mul(1000);
    // The two are measured apart, so one may be out of step.
    if view.idle || little || kernel > all || below(share, view.from.kernel_percent) {
        return None;
    }
    Some(finding(
        "kernel-time",
        Weight::Warning,
        format!("{} of the CPU time was spent in the kernel", percent(share)),
        "many small reads and writes, or too many threads, cost such time",
        vec![
            figure("kernel time", float(kernel) / 1000.0, "s"),
            figure("CPU time", float(all) / 1000.0, "s"),
        ],
    ))
}

fn much_moved(view: &View<'_>) -> Option<Finding> {
    let seconds = view.seconds(view.from.least_seconds)?;
    let moved = view.run.read.plus(view.run.written).get()?;
    let rate = float(moved) / seconds.max(1.0);
    if moved < view.from.moved_bytes || rate < float(view.from.moved_bytes_per_second) {
        return None;
    }
    Some(finding(
        "much-moved",
        Weight::Warning,
        format!("it moved {} from and to disks", Bytes(moved)),
        "copy what is read often to a disk of the node first, where the site has one",
        vec![figure("moved", float(moved), "bytes"), figure("rate", rate, "bytes/s")],
    ))
}

fn straggler(view: &View<'_>) -> Option<Finding> {
    view.seconds(view.from.least_seconds)?;
    let spread = |step: &Step| {
        let average = step.usage.average_cpu.get()?.as_seconds();
        let least = step.usage.least_cpu.get()?.as_seconds();
        let several = step.tasks.get()? > 1 && average >= view.from.straggler_least_seconds;
        let share = 1.0 - float(least) / float(average.max(1));
        (several && !below(share, view.from.straggler_percent)).then_some((share, average, least))
    };
    let (step, (share, average, least)) =
        view.work().find_map(|step| Some((step, spread(step)?)))?;
    let node =
        step.usage.least_cpu_node.as_deref().map_or_else(String::new, |node| format!(" on {node}"));
    Some(finding(
        "straggler",
        Weight::Warning,
        format!(
            "one task of step {}{node} used {} less CPU time than the others on average",
            step.id,
            percent(share)
        ),
        "share the work evenly, or look at that node",
        vec![
            figure("average CPU time of a task", float(average), "s"),
            figure("least CPU time of a task", float(least), "s"),
        ],
    ))
}

fn uneven_memory(view: &View<'_>) -> Option<Finding> {
    let ratio = |step: &Step| {
        let (most, average) = (step.max_rss.get()?.0, step.usage.average_rss.get()?.0);
        let several = step.tasks.get()? > 1 && most >= view.from.imbalance_bytes;
        let ratio = float(most) / float(average.max(1));
        (several && ratio * 100.0 >= float(view.from.imbalance_percent)).then_some((ratio, most))
    };
    let (step, (ratio, most)) = view.work().find_map(|step| Some((step, ratio(step)?)))?;
    Some(finding(
        "uneven-memory",
        Weight::Info,
        format!(
            "one task of step {} used {ratio:.1} times the memory of the others on average",
            step.id
        ),
        "the request has to fit the largest of them",
        vec![figure("times the average", ratio, ""), figure("largest task", float(most), "bytes")],
    ))
}

fn page_faults(view: &View<'_>) -> Option<Finding> {
    view.seconds(view.from.least_seconds)?;
    let faults = view.work().filter_map(|step| step.usage.page_faults.get()).max()?;
    if faults < view.from.page_faults || view.run.out_of_memory {
        return None;
    }
    Some(finding(
        "page-faults",
        Weight::Info,
        format!("a task read {faults} pages of its memory from a disk"),
        "files mapped into memory do that, and too little memory does",
        vec![figure("page faults", float(faults), "")],
    ))
}

fn memory_above_limit(view: &View<'_>) -> Option<Finding> {
    let (used, limit) = (view.run.node_memory.get()?, view.run.memory_per_node()?);
    if view.run.out_of_memory || used <= limit || limit == 0 {
        return None;
    }
    Some(finding(
        "memory-above-limit",
        Weight::Info,
        format!("it is recorded with {} of {} on a node", Bytes(used), Bytes(limit)),
        "shared pages may be counted twice, or this site enforces no limit: measure it while it runs",
        vec![
            figure("used on a node", float(used), "bytes"),
            figure("limit", float(limit), "bytes"),
        ],
    ))
}

fn memory_left_over(view: &View<'_>) -> Option<Finding> {
    view.seconds(view.from.least_seconds)?;
    let (used, limit) = (view.run.node_memory.get()?, view.run.memory_per_node()?);
    let share = float(used) / float(limit.max(1));
    let left = limit.saturating_sub(used);
    let killed = view.run.out_of_memory || view.cause == Some("host_oom");
    let quiet = view.idle || killed || !view.is_shared();
    let little = below(share, view.from.memory_percent) && left >= view.from.memory_left_bytes;
    if quiet || !view.run.is_completed() || !little {
        return None;
    }
    Some(finding(
        "memory-left-over",
        Weight::Info,
        format!("at most {} of {} were used on a node", Bytes(used), Bytes(limit)),
        "one run is little evidence: jobwise sizing weighs all runs of the same work",
        vec![
            figure("used on a node", float(used), "bytes"),
            figure("limit", float(limit), "bytes"),
        ],
    ))
}

fn time_left_over(view: &View<'_>) -> Option<Finding> {
    let seconds = view.seconds(view.from.least_seconds_time)?;
    let limit = view.run.limit.seconds()?;
    let share = seconds / f64::from(limit.max(1));
    if view.idle || !view.run.is_completed() || !below(share, view.from.time_percent) {
        return None;
    }
    Some(finding(
        "time-left-over",
        Weight::Info,
        format!(
            "it took {} of its time limit, {}",
            percent(share),
            Span::seconds(u64::from(limit))
        ),
        "a job with a shorter limit may start earlier in a gap; jobwise sizing weighs all runs",
        vec![figure("wall time", seconds, "s"), figure("limit", f64::from(limit), "s")],
    ))
}

fn cancelled_by_another(view: &View<'_>) -> Option<Finding> {
    if view.run.state != BaseState::Cancelled {
        return None;
    }
    let by = view.job.state.by.as_deref()?;
    let uid: u64 = by.parse().ok()?;
    let owner = view.job.uid.get()?;
    if uid == owner {
        return None;
    }
    let who =
        if uid == 0 { "root, or the scheduler itself".to_owned() } else { format!("user {uid}") };
    Some(finding(
        "cancelled-by-another",
        Weight::Info,
        format!("it was cancelled by {who}, not by its owner"),
        "ask the site's staff",
        vec![figure("user id", float(uid), "")],
    ))
}

fn suspended(view: &View<'_>) -> Option<Finding> {
    let (away, ran) = (view.run.suspended.get()?, view.run.elapsed.get()?);
    let (away, span) = (u64::from(away), u64::from(away) + u64::from(ran));
    if away == 0 || away * 100 < span.saturating_mul(view.from.suspended_percent) {
        return None;
    }
    Some(finding(
        "suspended",
        Weight::Info,
        format!("it stood still for {} of its span", Span::seconds(away)),
        "jobs of higher priority may take its place for a while here",
        vec![figure("suspended", float(away), "s"), figure("ran", f64::from(ran), "s")],
    ))
}

#[cfg(test)]
mod tests;
