//! What a job asks for, whoever says so: flags, the directives of a script, or a job's record.
//!
//! All three are options of `sbatch` by their long names, so there is one grammar and one place
//! where it is read. An option that decides where a job may run and is not weighed here is kept by
//! name, so that an answer can say what it left aside.
//!
//! Facts: `man sbatch` of 22.05 to 26.05.

use serde::Serialize;

use super::{Ability, Bytes, Job, Known, MemoryScope, Queue, Span};

/// What an amount is counted per.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// The whole job.
    Job,
    /// Each of its nodes.
    Node,
    /// Each of its tasks.
    Task,
    /// Each of its CPUs.
    Cpu,
    /// Each of its GPUs.
    Gpu,
}

/// Generic resources, GPUs first among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// The resource: `gpu`, `shard`.
    pub name: String,
    /// The type, where one is named.
    pub kind: Option<String>,
    /// How many.
    pub count: u64,
    /// Per what.
    pub per: Per,
}

/// Memory, per something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Room {
    /// How much.
    pub bytes: Bytes,
    /// Per what.
    pub per: Per,
}

/// What a job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Shape {
    /// The fewest nodes and, where that is bounded, the most.
    pub nodes: Option<(u64, Option<u64>)>,
    /// Tasks.
    pub tasks: Option<u64>,
    /// Tasks on each node.
    pub tasks_per_node: Option<u64>,
    /// CPUs of each task.
    pub cpus_per_task: Option<u64>,
    /// CPUs for each GPU.
    pub cpus_per_gpu: Option<u64>,
    /// GPUs and other generic resources.
    pub devices: Vec<Devices>,
    /// The memory that each GPU must have.
    pub gpu_memory: Option<Bytes>,
    /// What each GPU must be able to do.
    pub needs: Vec<Ability>,
    /// Host memory; `None` takes the partition's default, zero all of a node.
    pub memory: Option<Room>,
    /// The time limit; not told takes the partition's default.
    pub time: Known<Span>,
    /// The expression over node features.
    pub constraint: Option<String>,
    /// Licences, and how many of each.
    pub licences: Vec<(String, u64)>,
    /// The account to charge.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The partitions that may take it; empty for any.
    pub partitions: Vec<String>,
    /// The reservation to run in.
    pub reservation: Option<String>,
    /// Hosts to keep away from, as a host list.
    pub exclude: Option<String>,
    /// Hosts that it must have, as a host list.
    pub nodelist: Option<String>,
    /// Whether it wants its nodes to itself.
    pub exclusive: bool,
    /// Options that bear on where it may run and are not weighed.
    pub unweighed: Vec<String>,
}

/// An option whose value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{option}={value}: {expected}")]
pub struct ShapeError {
    /// The option.
    pub option: String,
    /// Its value.
    pub value: String,
    /// What would be understood.
    pub expected: &'static str,
}

/// Options that bear on where a job may run and are not weighed here.
const UNWEIGHED: [&str; 22] = [
    "array",
    "begin",
    "cluster-constraint",
    "contiguous",
    "core-spec",
    "cores-per-socket",
    "deadline",
    "dependency",
    "extra-node-info",
    "gpus-per-socket",
    "mincpus",
    "nodefile",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-socket",
    "sockets-per-node",
    "switches",
    "thread-spec",
    "threads-per-core",
    "time-min",
    "tmp",
    "tres-per-task",
];

/// What a time limit looks like.
const TIME_LIMIT: &str =
    "a time limit such as 90 (minutes), 2:30:00 or 1-12 (days-hours) is expected";

impl Shape {
    /// Takes one option of `sbatch` by its long name. An option that says nothing about where a job
    /// may run is passed over.
    pub fn apply(&mut self, option: &str, value: Option<&str>) -> Result<(), ShapeError> {
        let text = value.unwrap_or_default().trim();
        let fail =
            |expected| ShapeError { option: option.to_owned(), value: text.to_owned(), expected };
        let positive = || {
            let number = text.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| fail("a number from 1 on is expected"))
        };
        let memory =
            || Bytes::parse(text, Bytes::MIB).map_err(|_| fail("an amount like 64G is expected"));
        let word = || (!text.is_empty()).then(|| text.to_owned());
        match option {
            "nodes" => {
                self.nodes = Some(nodes(text).ok_or_else(|| fail("N or MIN-MAX is expected"))?);
            }
            "ntasks" => self.tasks = Some(positive()?),
            "ntasks-per-node" => self.tasks_per_node = Some(positive()?),
            "cpus-per-task" => self.cpus_per_task = Some(positive()?),
            "cpus-per-gpu" => self.cpus_per_gpu = Some(positive()?),
            "gres" | "gpus" | "gpus-per-node" | "gpus-per-task" => {
                let per = match option {
                    "gpus" => Per::Job,
                    "gpus-per-task" => Per::Task,
                    _ => Per::Node,
                };
                let listed = devices(text, per, option == "gres");
                let listed = listed.ok_or_else(|| {
                    fail(if option == "gres" {
                        "NAME[:TYPE]:COUNT is expected"
                    } else {
                        "[TYPE:]COUNT is expected"
                    })
                })?;
                // The later of two that say the same; `--gres` and `--gpus` stand beside each other.
                self.devices.retain(|known| {
                    !listed.iter().any(|new| new.name == known.name && new.per == known.per)
                });
                self.devices.extend(listed.into_iter().filter(|devices| devices.count > 0));
            }
            "mem" => self.memory = Some(Room { bytes: memory()?, per: Per::Node }),
            "mem-per-cpu" => self.memory = Some(Room { bytes: memory()?, per: Per::Cpu }),
            "mem-per-gpu" => self.memory = Some(Room { bytes: memory()?, per: Per::Gpu }),
            "time" => {
                // Zero, however it is written, asks for no limit (`man sbatch`), and so does it.
                let endless = ["unlimited", "infinite", "-1"];
                self.time = if endless.iter().any(|word| text.eq_ignore_ascii_case(word)) {
                    Known::Unlimited
                } else {
                    match Span::parse_limit(text).map_err(|_| fail(TIME_LIMIT))? {
                        span if span == Span::seconds(0) => Known::Unlimited,
                        span => Known::Value(span),
                    }
                };
            }
            "constraint" => self.constraint = word(),
            "licenses" => {
                let listed = licences(text).ok_or_else(|| fail("NAME[:COUNT] is expected"))?;
                self.licences = listed;
            }
            "account" => self.account = word(),
            "qos" => self.qos = word(),
            "partition" => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                self.partitions = names.map(str::to_owned).collect();
            }
            "reservation" => self.reservation = word(),
            "exclude" => self.exclude = word(),
            "nodelist" => self.nodelist = word(),
            // `user` and `mcs` bound who may share, which is less.
            "exclusive" => self.exclusive = text.is_empty(),
            other
                if UNWEIGHED.contains(&other)
                    && !self.unweighed.iter().any(|known| known == other) =>
            {
                self.unweighed.push(other.to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// What a job that is in the queue, or was, asked for.
    pub fn of_job(job: &Job) -> Self {
        let nodes = job.nodes.get().filter(|nodes| *nodes > 0).unwrap_or(1);
        let cpus = job.requested.count("cpu").or(job.cpus.get()).unwrap_or(nodes);
        let mut shape = Self {
            nodes: Some((nodes, None)),
            tasks: Some(nodes),
            cpus_per_task: Some(cpus.div_ceil(nodes)),
            time: job.limit.clone(),
            constraint: job.constraints.clone(),
            account: job.account.clone(),
            qos: job.qos.clone(),
            ..Self::default()
        };
        let whole = job.requested.memory().map(|bytes| Bytes(bytes.0.div_ceil(nodes)));
        shape.memory = match job.requested_memory.get() {
            Some(memory) if memory.scope == MemoryScope::Cpu => {
                Some(Room { bytes: memory.bytes, per: Per::Cpu })
            }
            Some(memory) if memory.scope == MemoryScope::Node => {
                Some(Room { bytes: memory.bytes, per: Per::Node })
            }
            _ => whole.map(|bytes| Room { bytes, per: Per::Node }),
        };
        let typed: Vec<(Option<&str>, u64)> = job
            .requested
            .0
            .iter()
            .filter_map(|(name, value)| {
                Some((Some(name.strip_prefix("gres/gpu:")?), value.parse().ok()?))
            })
            .collect();
        let all = job.requested.gpus().map(|count| vec![(None, count)]);
        let gpus = if typed.is_empty() { all.unwrap_or_default() } else { typed };
        for (kind, count) in gpus {
            let (count, per) = match count % nodes {
                0 => (count / nodes, Per::Node),
                _ => (count, Per::Job),
            };
            let kind = kind.map(str::to_owned);
            shape.devices.push(Devices { name: "gpu".to_owned(), kind, count, per });
        }
        shape
    }

    /// The nodes that it has at least.
    pub fn least_nodes(&self) -> u64 {
        let by_tasks = self.tasks_per_node.zip(self.tasks).map(|(per, all)| all.div_ceil(per));
        let fixed = self.nodes.map(|(least, _)| least).or(by_tasks);
        fixed.or_else(|| self.nodes_by_devices()).unwrap_or(1)
    }

    /// The nodes for which so many of a device in all, and so many on each, ask together.
    fn nodes_by_devices(&self) -> Option<u64> {
        let of = |per: Per| self.devices.iter().filter(move |devices| devices.per == per);
        let pairs = of(Per::Job).flat_map(|all| of(Per::Node).map(move |each| (all, each)));
        pairs
            .filter(|(all, each)| {
                all.name == each.name && (all.kind == each.kind || all.kind.is_none())
            })
            .map(|(all, each)| all.count.div_ceil(each.count.max(1)))
            .max()
    }

    /// The time limit that it has in a queue: what it asks for, or what the queue gives it.
    pub fn time_in(&self, queue: &Queue) -> Known<Span> {
        self.time.clone().or(queue.default_time.clone()).or(queue.max_time.clone())
    }

    /// Whether it says on how many nodes it runs; otherwise its tasks go wherever they fit.
    pub fn has_fixed_nodes(&self) -> bool {
        self.nodes.is_some() || self.tasks_per_node.is_some()
    }

    /// All its tasks.
    pub fn all_tasks(&self) -> u64 {
        let nodes = self.least_nodes();
        self.tasks.unwrap_or_else(|| nodes.saturating_mul(self.tasks_per_node.unwrap_or(1)))
    }

    /// The tasks that one node gets, the fullest of them.
    pub fn tasks_on_node(&self) -> u64 {
        let even = self.all_tasks().div_ceil(self.least_nodes().max(1));
        self.tasks_per_node.unwrap_or(even).max(1)
    }

    /// The GPUs that it asks for.
    pub fn gpus(&self) -> impl Iterator<Item = &Devices> {
        self.devices.iter().filter(|devices| devices.name == "gpu")
    }

    /// The generic resources that one node must have for it, by name and type.
    pub fn devices_on_node(&self) -> Vec<(&str, Option<&str>, u64)> {
        let nodes = self.least_nodes().max(1);
        let count = |devices: &Devices| match devices.per {
            Per::Job if self.has_fixed_nodes() => devices.count.div_ceil(nodes),
            Per::Task => devices.count.saturating_mul(self.tasks_on_node()),
            // Those of a whole job go wherever they fit: on one node, if one is large enough.
            _ => devices.count,
        };
        let listed = self
            .devices
            .iter()
            .map(|devices| (devices.name.as_str(), devices.kind.as_deref(), count(devices)));
        listed.collect()
    }

    /// The GPUs that one node must have for it.
    pub fn gpus_on_node(&self) -> u64 {
        let devices = self.devices_on_node();
        devices.iter().filter(|(name, ..)| *name == "gpu").map(|(.., count)| count).sum()
    }

    /// The GPUs of the whole job.
    pub fn all_gpus(&self) -> u64 {
        self.gpus()
            .map(|devices| match devices.per {
                Per::Task => devices.count.saturating_mul(self.all_tasks()),
                Per::Node => devices.count.saturating_mul(self.least_nodes()),
                _ => devices.count,
            })
            .sum()
    }

    /// The CPUs that one node must have for it.
    pub fn cpus_on_node(&self) -> u64 {
        let by_task = self.tasks_on_node().saturating_mul(self.cpus_per_task.unwrap_or(1));
        let by_gpu = self.cpus_per_gpu.map_or(0, |cpus| cpus.saturating_mul(self.gpus_on_node()));
        by_task.max(by_gpu)
    }

    /// The CPUs of the whole job.
    pub fn all_cpus(&self) -> u64 {
        let by_task = self.all_tasks().saturating_mul(self.cpus_per_task.unwrap_or(1));
        let by_gpu = self.cpus_per_gpu.map_or(0, |cpus| cpus.saturating_mul(self.all_gpus()));
        by_task.max(by_gpu)
    }

    /// The memory that one node must have for it, where it says so; `None` where the partition's
    /// default decides.
    pub fn memory_on_node(&self) -> Option<Bytes> {
        let Room { bytes, per } = self.memory?;
        let times = match per {
            Per::Cpu => self.cpus_on_node(),
            Per::Gpu => self.gpus_on_node(),
            _ => 1,
        };
        Some(Bytes(bytes.0.saturating_mul(times)))
    }

    /// The options that ask for this, in one order, without partition, account and QOS.
    pub fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let mut say = |option: &str, value: Option<String>| {
            options.extend(value.map(|value| format!("--{option}={value}")));
        };
        say(
            "nodes",
            self.nodes.map(|(least, most)| match most {
                Some(most) if most != least => format!("{least}-{most}"),
                _ => least.to_string(),
            }),
        );
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        say("ntasks", number(self.tasks));
        say("ntasks-per-node", number(self.tasks_per_node));
        say("cpus-per-task", number(self.cpus_per_task));
        say("cpus-per-gpu", number(self.cpus_per_gpu));
        let listed = |wanted: &dyn Fn(&Devices) -> bool, named: bool| {
            let words: Vec<String> = self
                .devices
                .iter()
                .filter(|devices| wanted(devices))
                .map(|Devices { name, kind, count, .. }| {
                    let name = if named { format!("{name}:") } else { String::new() };
                    let kind = kind.as_ref().map_or(String::new(), |kind| format!("{kind}:"));
                    format!("{name}{kind}{count}")
                })
                .collect();
            (!words.is_empty()).then(|| words.join(","))
        };
        say("gres", listed(&|devices| devices.per == Per::Node, true));
        say("gpus", listed(&|devices| devices.per == Per::Job, false));
        say("gpus-per-task", listed(&|devices| devices.per == Per::Task, false));
        if let Some(Room { bytes, per }) = self.memory {
            let option = match per {
                Per::Cpu => "mem-per-cpu",
                Per::Gpu => "mem-per-gpu",
                _ => "mem",
            };
            say(option, Some(bytes.to_option()));
        }
        say(
            "time",
            match self.time {
                Known::Value(time) => Some(time.to_string()),
                Known::Unlimited => Some("UNLIMITED".to_owned()),
                Known::NotGathered | Known::Unreadable(_) => None,
            },
        );
        say("constraint", self.constraint.clone());
        let licences: Vec<String> =
            self.licences.iter().map(|(name, count)| format!("{name}:{count}")).collect();
        say("licenses", (!licences.is_empty()).then(|| licences.join(",")));
        say("reservation", self.reservation.clone());
        say("exclude", self.exclude.clone());
        say("nodelist", self.nodelist.clone());
        if self.exclusive {
            options.push("--exclusive".to_owned());
        }
        options
    }
}

/// `4`, `2-8`; `2-8:2` and lists of counts take the least and the most.
fn nodes(text: &str) -> Option<(u64, Option<u64>)> {
    let text = text.split(':').next()?;
    let mut least = u64::MAX;
    let mut most = 0;
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.trim().parse::<u64>().ok()?, high.trim().parse::<u64>().ok()?);
        if low == 0 || high < low {
            return None;
        }
        (least, most) = (least.min(low), most.max(high));
    }
    Some((least, (most != least).then_some(most)))
}

/// `gpu:a100:2,shard:4` where names are given, else `a100:2,v100:1` of GPUs.
fn devices(text: &str, per: Per, is_named: bool) -> Option<Vec<Devices>> {
    if is_named && text.eq_ignore_ascii_case("none") {
        return Some(Vec::new());
    }
    let mut found = Vec::new();
    for item in text.split(',') {
        let mut words: Vec<&str> = item.trim().split(':').collect();
        // `gres/gpu:2` is the spelling of TRES, which is taken too.
        if let Some(first) = words.first_mut() {
            *first = first.strip_prefix("gres/").unwrap_or(first);
        }
        if words.iter().any(|word| word.is_empty()) {
            return None;
        }
        let name = if is_named { words.remove(0).to_owned() } else { "gpu".to_owned() };
        let count = words.last().and_then(|word| count(word));
        let (kind, count) = match (words.as_slice(), count) {
            ([], _) => (None, 1),
            ([_], Some(count)) => (None, count),
            ([kind], None) => (Some((*kind).to_owned()), 1),
            ([kind, _], Some(count)) => (Some((*kind).to_owned()), count),
            _ => return None,
        };
        found.push(Devices { name, kind, count, per });
    }
    Some(found)
}

/// A count of resources: `4`, `2K`.
fn count(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['k', 'K']);
    let times = if digits.len() < word.len() { 1024 } else { 1 };
    digits.parse::<u64>().ok()?.checked_mul(times)
}

/// `ansys:2,matlab` and `name@server:2`; alternatives (`a|b`) are those of which one will do, and
/// are not read.
fn licences(text: &str) -> Option<Vec<(String, u64)>> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items
        .map(|item| {
            let (name, count) = item.split_once([':', '=']).unwrap_or((item, "1"));
            let count = count.parse().ok()?;
            (!name.is_empty() && !name.contains('|')).then(|| (name.to_owned(), count))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(options: &[(&str, &str)]) -> Shape {
        let mut shape = Shape::default();
        for (option, value) in options {
            shape.apply(option, Some(value)).expect("read");
        }
        shape
    }

    /// `man sbatch`: without a count of tasks there is one for each node, and CPUs are per task.
    #[test]
    fn a_node_gets_its_share() {
        let two = shape(&[("nodes", "2"), ("ntasks", "9"), ("cpus-per-task", "4")]);
        assert_eq!((two.tasks_on_node(), two.cpus_on_node(), two.all_cpus()), (5, 20, 36));
        let bare = shape(&[("nodes", "3")]);
        assert_eq!((bare.all_tasks(), bare.cpus_on_node()), (3, 1));
        let per_node = shape(&[("ntasks", "10"), ("ntasks-per-node", "4")]);
        assert_eq!((per_node.least_nodes(), per_node.all_tasks()), (3, 10));
        // Two on each and four in all are on two nodes (`man sbatch`, --gpus).
        let gpus = shape(&[("gres", "gpu:a100:2"), ("gpus", "4")]);
        assert_eq!((gpus.least_nodes(), gpus.has_fixed_nodes()), (2, false));
        let anywhere = shape(&[("ntasks", "10")]);
        assert!(!anywhere.has_fixed_nodes());
    }

    #[test]
    fn memory_and_gpus_follow_what_they_are_counted_per() {
        let shape = shape(&[
            ("nodes", "2"),
            ("ntasks-per-node", "2"),
            ("gpus-per-task", "a100:2"),
            ("mem-per-gpu", "10G"),
            ("cpus-per-gpu", "8"),
        ]);
        assert_eq!((shape.gpus_on_node(), shape.all_gpus()), (4, 8));
        assert_eq!(shape.memory_on_node(), Some(Bytes(40 * Bytes::GIB)));
        assert_eq!((shape.cpus_on_node(), shape.all_cpus()), (32, 64));
    }

    #[test]
    fn the_forms_of_sbatch_are_read_and_written_back() {
        let said = [
            ("nodes", "2-4"),
            ("ntasks", "8"),
            ("gres", "gpu:a100:2,shard:1"),
            ("mem", "1500"),
            ("time", "90"),
            ("licenses", "ansys:2"),
            ("exclude", "n[1-3]"),
        ];
        let written = [
            "--nodes=2-4",
            "--ntasks=8",
            "--gres=gpu:a100:2,shard:1",
            "--mem=1500M",
            "--time=01:30:00",
            "--licenses=ansys:2",
            "--exclude=n[1-3]",
        ];
        assert_eq!(shape(&said).options(), written);
        let gpus = |option: &str, value: &str| {
            let shape = shape(&[(option, value)]);
            shape.devices.first().map(|devices| (devices.kind.clone(), devices.count))
        };
        assert_eq!(gpus("gres", "gpu"), Some((None, 1)));
        assert_eq!(gpus("gres", "gpu:4"), Some((None, 4)));
        assert_eq!(gpus("gres", "gpu:a100"), Some((Some("a100".to_owned()), 1)));
        assert_eq!(gpus("gpus", "a100:4"), Some((Some("a100".to_owned()), 4)));
        assert_eq!(gpus("gres", "none"), None);
        assert_eq!(gpus("gpus-per-node", "0"), None);
    }

    /// `man sbatch`: "A time limit of zero requests that no time limit be imposed."
    #[test]
    fn no_limit_is_a_limit_of_its_own() {
        for word in ["0", "0:00", "00:00:00", "UNLIMITED", "infinite", "-1"] {
            let shape = shape(&[("time", word)]);
            assert_eq!(
                (shape.time.clone(), shape.options()),
                (Known::Unlimited, vec!["--time=UNLIMITED".to_owned()]),
                "{word}"
            );
        }
        assert_eq!(shape(&[]).time, Known::NotGathered);
    }

    #[test]
    fn the_last_word_counts_and_what_is_not_weighed_is_named() {
        let mut shape = shape(&[("gres", "gpu:4"), ("gres", "gpu:2"), ("switches", "1")]);
        assert_eq!(
            (shape.gpus_on_node(), shape.unweighed.as_slice()),
            (2, &["switches".to_owned()][..])
        );
        shape.apply("job-name", Some("x")).expect("passed over");
        shape.apply("exclusive", None).expect("read");
        assert!(shape.exclusive && shape.unweighed.len() == 1);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let error = |option: &str, value: &str| {
            Shape::default().apply(option, Some(value)).expect_err("refused").to_string()
        };
        assert_eq!(error("nodes", "4-2"), "--nodes=4-2: N or MIN-MAX is expected");
        assert_eq!(error("ntasks", "0"), "--ntasks=0: a number from 1 on is expected");
        assert_eq!(error("gres", "gpu::2"), "--gres=gpu::2: NAME[:TYPE]:COUNT is expected");
        assert_eq!(error("mem", "lots"), "--mem=lots: an amount like 64G is expected");
        assert_eq!(
            error("time", "banana"),
            "--time=banana: a time limit such as 90 (minutes), 2:30:00 or 1-12 (days-hours) is expected"
        );
    }

    proptest! {
        /// Whatever is given, what was read is written so that it reads the same.
        #[test]
        fn what_is_written_reads_the_same(
            option in prop::sample::select(vec![
                "nodes", "ntasks", "gres", "gpus", "gpus-per-task", "mem", "time", "licenses",
                "cpus-per-task", "constraint",
            ]),
            value in "[a-z0-9:,|-]{0,10}",
        ) {
            let mut shape = Shape::default();
            if shape.apply(option, Some(&value)).is_ok() {
                let mut again = Shape::default();
                for written in shape.options() {
                    let (name, value) = written[2..].split_once('=').expect("a value");
                    prop_assert!(again.apply(name, Some(value)).is_ok(), "{written}");
                }
                prop_assert_eq!(again, shape);
            }
        }
    }
}
