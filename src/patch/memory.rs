//! How much more memory to ask for, in the option that is used already.

use super::script_edit::Edits;
use super::setting::{Sources, steps_have_their_own};
use super::{Proposal, Target};
use crate::model::request::{after_memory_limit, round_memory};
use crate::model::{BaseState, Bytes, Job, Limits, MemoryScope};

/// What was sampled is the truth up to the last sample (30 s apart by default) and grows somewhat
/// with the input: 30 % above it.
const PEAK_PERCENT: u64 = 130;

const OPTIONS: [&str; 3] = ["mem", "mem-per-cpu", "mem-per-gpu"];

/// What an option counts memory per.
struct Unit {
    option: &'static str,
    name: &'static str,
    /// How many there are per node, on average; at least 1.
    per_node: u64,
    /// How many the job has.
    count: Option<u64>,
    /// Its nodes.
    nodes: u64,
}

pub(super) fn propose(
    target: &Target<'_>,
    sources: &Sources<'_>,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    sources.overruled(&["mem="], &["-M", "mem="])?;
    let job = target.job;
    steps_have_their_own(job, BaseState::OutOfMemory, &OPTIONS)?;
    let setting = sources.setting(&OPTIONS)?;
    let unit = Unit::of(setting.given().map_or("mem", |(option, _)| option), job);
    let asked = match setting.given() {
        Some((_, value)) => {
            Some(Bytes::parse(value, Bytes::MIB).map_err(|error| format!("{error}: not changed"))?)
        }
        None => None,
    };
    if asked == Some(Bytes(0)) {
        return Err(format!(
            "{}: the job may already use all the memory of its nodes; it needs larger nodes, \
             or fewer tasks on each",
            setting.in_words()
        ));
    }
    let ran_with = unit.ran_with(job);
    let base = ran_with.or(asked).ok_or("the job's memory limit is not known")?;

    let (wanted, mut because) = wanted(target, &unit, base);
    if let Some(asked) = asked.filter(|asked| *asked != base) {
        because = format!("{because} ({}, that is {asked})", setting.in_words());
    }
    let mut amount = round_memory(wanted);
    if amount > wanted {
        because.push_str(", rounded up");
    }
    if let Some((most, whose)) = target.limits.and_then(|limits| unit.cap(limits))
        && amount > most
    {
        let unlikely = "use a partition with larger nodes, or spread the work over more of them";
        if most <= base {
            return Err(format!("{whose}, and the job has that already: {unlikely}"));
        }
        amount = most;
        because = format!("{because}, but {whose}; if this is not enough, {unlikely}");
    }
    if asked.is_some_and(|asked| asked >= amount) {
        return Err(format!("{}, and the job ran with {base}", setting.in_words()));
    }
    let value = spell(amount, setting.given().map(|(_, value)| value));
    sources.set(&setting, unit.option, &value, because, edits)
}

/// The amount to ask for per unit before rounding, and why.
fn wanted(target: &Target<'_>, unit: &Unit, base: Bytes) -> (Bytes, String) {
    let job = target.job;
    let killed = job.state.base == BaseState::OutOfMemory
        || job.steps.iter().any(|step| step.state.base == BaseState::OutOfMemory);
    let limit = after_memory_limit(base).0;
    let mut best = limit;
    let name = unit.name;
    let mut because = if killed {
        format!("killed at its limit of {base} per {name}, so its need lies above: twice the limit")
    } else {
        format!("it may use {base} per {name} now: twice that")
    };
    if let Some((peak, step)) = job.peak_memory() {
        let need = (peak.0 / 100).saturating_mul(PEAK_PERCENT).div_ceil(unit.per_node);
        if need > best {
            best = need;
            because = format!("step {} used {peak} (MaxRSS); 30 % above it", step.id);
        } else if killed {
            because = format!("{because} (MaxRSS {peak} was sampled before the end)");
        }
    }
    // What many runs say counts for more than what one did not live to say.
    if let Some(suggestion) = target.memory {
        let need = suggestion.value.0.div_ceil(unit.per_node);
        if need > base.0 {
            best = need;
            because = format!("runs of this work: {}", suggestion.because);
        }
    }
    (Bytes(best), because)
}

impl Unit {
    fn of(option: &str, job: &Job) -> Self {
        let nodes = job.nodes.get().filter(|nodes| *nodes > 0);
        let (option, name, count) = match option {
            "mem-per-cpu" => ("mem-per-cpu", "CPU", job.cpus.get()),
            "mem-per-gpu" => ("mem-per-gpu", "GPU", job.gpus()),
            _ => ("mem", "node", nodes),
        };
        let count = count.filter(|count| *count > 0);
        let per_node = match (count, nodes) {
            (Some(count), Some(nodes)) => (count / nodes).max(1),
            _ => 1,
        };
        Self { option, name, per_node, count, nodes: nodes.unwrap_or(1) }
    }

    /// What the job was allowed per unit, from its record.
    fn ran_with(&self, job: &Job) -> Option<Bytes> {
        let total = job.allocated.memory().or_else(|| job.requested.memory());
        let requested = job.requested_memory.get();
        let total = total.or_else(|| {
            requested.filter(|memory| memory.scope == MemoryScope::Job).map(|memory| memory.bytes)
        });
        let per_unit = match (total, self.count) {
            (Some(total), Some(count)) => Some(Bytes(total.0 / count)),
            _ => requested
                .filter(|memory| match memory.scope {
                    MemoryScope::Job => false,
                    MemoryScope::Node => self.option == "mem",
                    MemoryScope::Cpu => self.option == "mem-per-cpu",
                })
                .map(|memory| memory.bytes),
        };
        per_unit.filter(|bytes| bytes.0 > 0)
    }

    /// The most that may be asked for per unit, in whole MiB, and whose limit that is.
    fn cap(&self, limits: &Limits) -> Option<(Bytes, String)> {
        let partition = &limits.partition;
        let on_a_node = limits.memory_per_node(self.nodes);
        let on_a_node = on_a_node.map(|most| (Bytes(most.value.0 / self.per_node), most.whose));
        let per_cpu = limits.max_memory_per_cpu.get();
        let per_cpu = per_cpu
            .filter(|_| self.option == "mem-per-cpu")
            .map(|most| (most, format!("partition {partition} allows {most} per CPU at most")));
        let caps = on_a_node.into_iter().chain(per_cpu);
        let (most, whose) = caps.min_by_key(|(most, _)| *most)?;
        Some((Bytes(most.0 / Bytes::MIB * Bytes::MIB), whose))
    }
}

/// The amount in the unit that is written there now, if it is whole in it.
fn spell(amount: Bytes, now: Option<&str>) -> String {
    let suffix = now.map_or("", |now| now.trim_start_matches(|c: char| c.is_ascii_digit()));
    let unit = match suffix.bytes().next().map(|letter| letter.to_ascii_uppercase()) {
        Some(b'K') => Bytes::KIB,
        Some(b'M') => Bytes::MIB,
        Some(b'G') => Bytes::GIB,
        Some(b'T') => Bytes::GIB << 10,
        _ => return amount.to_option(),
    };
    if amount.0 > 0 && amount.0.is_multiple_of(unit) {
        format!("{}{suffix}", amount.0 / unit)
    } else {
        amount.to_option()
    }
}
