//! Limits of qualities of service, associations and accounts, with what is used of them.
//!
//! Of a limit that several set, the partition's QOS decides, then the job's, then the association
//! (`OverPartQOS` turns the first two around). What is used of QOS limits is added up over the queue;
//! of accounts' limits the controller tells it. A job over a limit mostly is taken and waits for
//! ever, so a yes at submission proves nothing.
//!
//! `MaxTRESRunMins` of a user or an account is set and shown by `sacctmgr`, and held by nobody: under
//! `cpu=5` a lab's Slurm 22.05 ran jobs of 3, 4 and 6 minutes side by side. So it is not weighed.

use std::collections::BTreeMap;

use crate::model::{AccountUse, Caps, Known, Qos, Queue, Reading, Shape, Span, Tres};

use super::queue::spoken;
use super::usage::{Scope, amount, code_word, entries, noun, shown};
use super::{Gate, Gates, Kind, Way};

/// What a job would take.
struct Request {
    tres: BTreeMap<String, u64>,
    /// Of one node.
    on_node: BTreeMap<String, u64>,
    time: Known<Span>,
    /// Whether this is what somebody asked for, and not only the least there can be.
    is_asked: bool,
}

impl Request {
    fn new(queue: &Queue, shape: Option<&Shape>, longest: Known<Span>) -> Self {
        let least = Shape::default();
        let asked = shape.unwrap_or(&least);
        let nodes = asked.least_nodes();
        let mut tres: BTreeMap<String, u64> = BTreeMap::new();
        let mut on_node = BTreeMap::new();
        tres.insert("cpu".to_owned(), asked.all_cpus());
        tres.insert("node".to_owned(), nodes);
        on_node.insert("cpu".to_owned(), asked.cpus_on_node());
        if let Some(memory) = asked.memory_on_node() {
            tres.insert("mem".to_owned(), memory.0.saturating_mul(nodes));
            on_node.insert("mem".to_owned(), memory.0);
        }
        let gpus = asked.all_gpus();
        if gpus > 0 {
            tres.insert("gres/gpu".to_owned(), gpus);
        }
        for (name, kind, count) in asked.devices_on_node() {
            let generic = format!("gres/{name}");
            *on_node.entry(generic.clone()).or_insert(0) += count;
            let all = count.saturating_mul(nodes);
            if name != "gpu" {
                *tres.entry(generic.clone()).or_insert(0) += all;
            }
            if let Some(kind) = kind {
                let typed = format!("{generic}:{kind}");
                *tres.entry(typed.clone()).or_insert(0) += all;
                *on_node.entry(typed).or_insert(0) += count;
            }
        }
        for (name, count) in &asked.licences {
            tres.insert(format!("license/{name}"), *count);
        }
        let time = asked.time.clone().or(queue.default_time.clone()).or(longest);
        Self { tres, on_node, time, is_asked: shape.is_some() }
    }

    fn get(&self, name: &str) -> u64 {
        self.tres.get(name).copied().unwrap_or(0)
    }
}

/// The caller's limits on one way into a queue.
pub(super) fn check(
    gates_of: &Gates<'_>,
    queue: &Queue,
    way: &Way,
    shape: Option<&Shape>,
    gates: &mut Vec<Gate>,
) {
    if !gates_of.enforces("limits") {
        return;
    }
    let cluster = gates_of.cluster;
    let (longest, _) = gates_of.longest(queue, way);
    let request = Request::new(queue, shape, longest);
    let rules = gates_of.rules(queue, way);
    let check = Check { gates_of, queue, way, rules, request };
    check.job(gates);
    check.walltime(shape, gates);
    check.users(gates);
    check.levels(gates);
    let named = [&queue.limits_from, &way.qos];
    let unknown = named.into_iter().flatten().find(|name| cluster.qos_named(name).is_none());
    let is_refused = gates.iter().any(|gate| gate.kind == Kind::Fatal);
    if let Some(name) = unknown.filter(|_| shape.is_some() && !is_refused) {
        let text = format!("the limits of QOS {name} could not be read");
        gates.push(Gate::unchecked("LIMITS_UNKNOWN", format!("QOS {name}"), text));
    }
}

struct Check<'g, 'c> {
    gates_of: &'g Gates<'c>,
    queue: &'g Queue,
    way: &'g Way,
    rules: Vec<&'c Qos>,
    request: Request,
}

/// Whose budget it is, in words.
struct Whose {
    /// `account physics`.
    name: String,
    /// Where its rules stand.
    source: String,
    /// What another budget is asked for with.
    lift: &'static str,
}

impl<'c> Check<'_, 'c> {
    /// Each limit of a kind, from the first that sets it.
    fn first(&self, of: impl Fn(&'c Qos) -> &'c Tres) -> Vec<(&'c str, u64, &'c Qos)> {
        let mut found: Vec<(&str, u64, &Qos)> = Vec::new();
        for qos in &self.rules {
            for (name, limit, _) in entries(of(qos)) {
                if let Some(limit) = limit
                    && found.iter().all(|(known, ..)| *known != name)
                {
                    found.push((name, limit, qos));
                }
            }
        }
        found
    }

    /// What one job may have.
    fn job(&self, gates: &mut Vec<Gate>) {
        let mut limits: Vec<(&str, u64, String)> = self
            .first(|qos| &qos.job.tres)
            .into_iter()
            .map(|(name, limit, qos)| (name, limit, format!("QOS {} MaxTRESPerJob", qos.name)))
            .collect();
        let right = self.gates_of.right(self.queue, self.way);
        for (name, limit, _) in right.into_iter().flat_map(|right| entries(&right.job.tres)) {
            if let Some(limit) = limit
                && limits.iter().all(|(known, ..)| *known != name)
            {
                let account = self.way.account.as_deref().unwrap_or_default();
                limits.push((name, limit, format!("account {account} MaxTRESPerJob")));
            }
        }
        for (name, limit, source) in limits {
            let wanted = self.request.get(name);
            if wanted > limit {
                gates.push(too_much(name, "JOB", wanted, limit, source, "one job may have"));
            }
        }
        for (name, limit, qos) in self.first(|qos| &qos.node) {
            let wanted = self.request.on_node.get(name).copied().unwrap_or(0);
            if wanted > limit {
                let source = format!("QOS {} MaxTRESPerNode", qos.name);
                gates.push(too_much(
                    name,
                    "NODE",
                    wanted,
                    limit,
                    source,
                    "one job may have on a node",
                ));
            }
        }
        for (name, limit, qos) in self.first(|qos| &qos.least) {
            let wanted = self.request.get(name);
            if self.request.is_asked && wanted < limit {
                let text = format!(
                    "{} {} are less than the {} that QOS {} wants at least",
                    shown(name, wanted),
                    noun(name),
                    shown(name, limit),
                    qos.name,
                );
                let code = format!("MIN_{}_JOB", code_word(name));
                gates.push(Gate::shape(code, format!("QOS {} MinTRES", qos.name), text));
            }
        }
        if !self.request.is_asked {
            return;
        }
        let by_qos = self.first(|qos| &qos.job.minutes).into_iter();
        let mut limits: Vec<(&str, u64, String)> = by_qos
            .map(|(name, limit, qos)| (name, limit, format!("QOS {} MaxTRESMins", qos.name)))
            .collect();
        for (name, limit, _) in right.into_iter().flat_map(|right| entries(&right.job.minutes)) {
            if let Some(limit) = limit
                && limits.iter().all(|(known, ..)| *known != name)
            {
                let account = self.way.account.as_deref().unwrap_or_default();
                limits.push((name, limit, format!("account {account} MaxTRESMins")));
            }
        }
        for (name, limit, source) in limits {
            if self.minutes(name).is_some_and(|wanted| wanted > limit) {
                let text = format!(
                    "{} for {} are more than the {} minutes of it that one job may take",
                    noun(name),
                    spoken(&self.request.time),
                    shown(name, limit),
                );
                let code = format!("MAX_{}_MINUTES_JOB", code_word(name));
                gates.push(Gate::shape(code, source, text).lift("a shorter --time"));
            }
        }
    }

    /// The time limit, where it is not the partition's own that is too short.
    fn walltime(&self, shape: Option<&Shape>, gates: &mut Vec<Gate>) {
        let Some(time) = shape.map(|shape| &shape.time) else { return };
        let (longest, source) = self.gates_of.longest(self.queue, self.way);
        let Some(longest) = longest.get().filter(|longest| time.exceeds(longest)) else { return };
        if source.starts_with("partition ") {
            return;
        }
        let denies =
            self.rules.iter().any(|qos| qos.flags.iter().any(|flag| flag == "DenyOnLimit"));
        let then = if denies { "the job is refused" } else { "the job is taken and never starts" };
        let text = format!("{} is longer than {longest}: {then}", spoken(time));
        gates.push(Gate::shape("MAX_WALLTIME", source, text).lift(format!("--time={longest}")));
    }

    /// What users, accounts and everybody together may have under a quality of service.
    fn users(&self, gates: &mut Vec<Gate>) {
        self.scope(
            "USER",
            "MaxTRESPerUser",
            "your running jobs",
            true,
            false,
            |qos| &qos.user,
            gates,
        );
        let account = "the running jobs of your account";
        self.scope("ACCOUNT", "MaxTRESPerAccount", account, false, true, |qos| &qos.account, gates);
        let all = "everybody's running jobs under it";
        self.scope("GROUP", "GrpTRES", all, false, false, |qos| &qos.group, gates);
        for qos in &self.rules {
            let whose = Whose {
                name: format!("QOS {}", qos.name),
                source: format!("QOS {}", qos.name),
                lift: "another --qos",
            };
            if let Some(used) = &qos.group_used {
                self.budgets(&whose, &qos.group, used, gates);
            } else if self.request.is_asked
                && !(qos.group.minutes.is_empty()
                    && qos.group.running_minutes.is_empty()
                    && qos.group.wall.get().is_none())
            {
                let text = format!(
                    "{} has a budget of minutes; what is left of it was not told",
                    whose.name
                );
                let source = format!("{} GrpTRESMins", whose.source);
                gates.push(Gate::unchecked("MINUTES_UNKNOWN", source, text));
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the words of three scopes, side by side")]
    fn scope(
        &self,
        word: &str,
        rule: &str,
        whose: &str,
        is_mine: bool,
        by_account: bool,
        of: impl Fn(&'c Qos) -> &'c Caps,
        gates: &mut Vec<Gate>,
    ) {
        let scope = |qos: &'c Qos| Scope {
            qos: Some(&qos.name),
            account: self.way.account.clone().filter(|_| by_account),
            is_mine,
        };
        let usage = &self.gates_of.usage;
        for (name, limit, qos) in self.first(|qos| &of(qos).tres) {
            let wanted = self.request.get(name);
            let source = format!("QOS {} {rule}", qos.name);
            if wanted == 0 {
                continue;
            }
            let scope = scope(qos);
            let used = usage.of(&scope).tres.get(name).copied().unwrap_or(0);
            if wanted > limit {
                let may = match word {
                    "USER" => "one user may have at once",
                    "ACCOUNT" => "one account may have at once",
                    _ => "all its jobs may have at once",
                };
                let gate = too_much(name, word, wanted, limit, source, may);
                gates.push(held(gate, name, (used, limit), whose));
                continue;
            }
            let code = format!("MAX_{}_{word}", code_word(name));
            if wanted.saturating_add(used) > limit {
                gates.push(in_use(code, source, name, (used, limit), whose));
            } else if !usage.is_whole(&scope) && self.request.is_asked {
                let text = format!(
                    "at most {} {} at once; how many are in use could not be seen",
                    shown(name, limit),
                    noun(name),
                );
                gates.push(Gate::unchecked("USE_UNKNOWN", source, text));
            }
        }
        for (kind, is_running) in [("JOBS", true), ("SUBMIT", false)] {
            let count =
                |caps: &Caps| if is_running { caps.jobs.get() } else { caps.submitted.get() };
            let first = self.rules.iter().find_map(|qos| Some((count(of(qos))?, *qos)));
            let Some((limit, qos)) = first else { continue };
            let sum = usage.of(&scope(qos));
            let used = if is_running { sum.running } else { sum.submitted };
            if used >= limit {
                let what = if is_running { "run" } else { "run or wait" };
                let text = format!("{used} of {whose} {what} under QOS {}, {limit} may", qos.name);
                let text = text.replace("running jobs", "jobs");
                let code = format!("MAX_{kind}_{word}");
                let source = format!("QOS {} limit of jobs", qos.name);
                gates.push(Gate::shape(code, source, text).lift("wait until one ends").clears());
            }
        }
    }

    /// The caller's place in the account, the account, and those above it.
    fn levels(&self, gates: &mut Vec<Gate>) {
        let cluster = self.gates_of.cluster;
        let Some(account) = self.way.account.as_deref() else { return };
        if let Some(right) = self.gates_of.right(self.queue, self.way) {
            let scope = Scope { qos: None, account: Some(account.to_owned()), is_mine: true };
            let counts = [
                ("MAX_JOBS_ASSOCIATION", &right.job.jobs, true),
                ("MAX_SUBMIT_ASSOCIATION", &right.job.submitted, false),
            ];
            for (code, limit, is_running) in counts {
                let Some(limit) = limit.get() else { continue };
                let sum = self.gates_of.usage.of(&scope);
                let used = if is_running { sum.running } else { sum.submitted };
                if used >= limit {
                    let what = if is_running { "run" } else { "run or wait" };
                    let text =
                        format!("{used} of your jobs {what} under account {account}, {limit} may");
                    let source = format!("account {account} limit of jobs");
                    gates
                        .push(Gate::shape(code, source, text).lift("wait until one ends").clears());
                }
            }
        }
        if cluster.lacks(Reading::Usage) {
            if self.request.is_asked {
                let text =
                    format!("what is used of the limits of account {account} could not be read");
                gates.push(Gate::unchecked(
                    "ACCOUNT_USE_UNKNOWN",
                    format!("account {account}"),
                    text,
                ));
            }
            return;
        }
        let same = |place: &&AccountUse, name: &str| place.account.eq_ignore_ascii_case(name);
        let own = cluster.account_use.iter().filter(|place| {
            place.user.is_some()
                && same(place, account)
                && place.partition.as_deref().is_none_or(|name| name == self.queue.name)
        });
        // One for this partition replaces that of the whole account.
        if let Some(place) = own.max_by_key(|place| place.partition.is_some()) {
            self.level(place, "your share of account", gates);
        }
        let mut name = Some(account);
        for _ in 0..cluster.account_use.len() {
            let mut accounts = cluster.account_use.iter().filter(|place| place.user.is_none());
            let Some(place) = name.and_then(|name| accounts.find(|place| same(place, name))) else {
                return;
            };
            self.level(place, "account", gates);
            name = place.parent.as_deref();
        }
    }

    fn level(&self, place: &AccountUse, what: &str, gates: &mut Vec<Gate>) {
        let name = &place.account;
        let source = |rule: &str| format!("account {name} {rule}");
        let used = |tres: &Tres, resource: &str| {
            tres.get(resource).and_then(|value| amount(resource, value)).unwrap_or(0)
        };
        for (resource, limit, _) in entries(&place.limits.tres) {
            let wanted = self.request.get(resource);
            let Some(limit) = limit.filter(|_| wanted > 0) else { continue };
            let code = format!("GRP_{}", code_word(resource));
            let has = used(&place.used.tres, resource);
            if wanted > limit {
                let may = format!("{what} {name} may have at once");
                let source = source("GrpTRES");
                let mut gate = too_much(resource, "ACCOUNT", wanted, limit, source, &may);
                gate.code = code;
                let whose = format!("the running jobs of {what} {name}");
                gates.push(held(gate, resource, (has, limit), &whose));
            } else if wanted.saturating_add(has) > limit {
                let whose = format!("the running jobs of {what} {name}");
                gates.push(in_use(code, source("GrpTRES"), resource, (has, limit), &whose));
            }
        }
        let whose = Whose {
            name: format!("{what} {name}"),
            source: format!("account {name}"),
            lift: "another --account",
        };
        self.budgets(&whose, &place.limits, &place.used, gates);
        let counts = [
            ("GRP_JOBS", &place.limits.jobs, &place.used.jobs, "run"),
            ("GRP_SUBMIT", &place.limits.submitted, &place.used.submitted, "run or wait"),
        ];
        for (code, limit, used, verb) in counts {
            if let Some((limit, used)) =
                limit.get().zip(used.get()).filter(|(limit, used)| used >= limit)
            {
                let text = format!("{used} jobs of {what} {name} {verb}, {limit} may");
                gates.push(
                    Gate::shape(code, source("limit of jobs"), text)
                        .lift("wait until one ends")
                        .clears(),
                );
            }
        }
    }

    /// Budgets of resource-minutes and of wall time.
    fn budgets(&self, whose: &Whose, limits: &Caps, used: &Caps, gates: &mut Vec<Gate>) {
        let Whose { name, source, lift } = whose;
        let value = |tres: &Tres, resource: &str| {
            tres.get(resource).and_then(|value| amount(resource, value)).unwrap_or(0)
        };
        if let Some((limit, used)) =
            limits.wall.get().zip(used.wall.get()).filter(|(limit, used)| used >= limit)
        {
            let text = format!("{name} has used {used} of its {limit} of wall time");
            gates.push(Gate::fatal("GRP_WALL", format!("{source} GrpWall"), text).lift(*lift));
        }
        for (resource, limit, _) in entries(&limits.minutes) {
            let Some(limit) = limit else { continue };
            let spent = value(&used.minutes, resource);
            let code = format!("GRP_{}_MINUTES", code_word(resource));
            let source = format!("{source} GrpTRESMins");
            let unit = noun(resource);
            let unit = unit.trim_end_matches('s');
            if spent >= limit {
                let text =
                    format!("{name} has spent its {} {unit} minutes", shown(resource, limit));
                gates.push(
                    Gate::fatal(&code, source, text).lift(format!("{lift}, or more minutes")),
                );
                continue;
            }
            let Some(wanted) = self.minutes(resource).filter(|_| self.request.is_asked) else {
                continue;
            };
            // With `safe` a job starts only if what is left lasts to its end.
            let promised = value(&used.running_minutes, resource);
            let left = limit.saturating_sub(spent.saturating_add(promised));
            if self.gates_of.enforces_safe() && wanted > left {
                let wanted = in_minutes(wanted);
                let text = format!(
                    "{wanted} {unit} minutes are more than the {left} that {name} has left"
                );
                gates.push(
                    Gate::shape(code, source, text).lift(format!("a shorter --time, or {lift}")),
                );
            }
        }
        for (resource, limit, _) in entries(&limits.running_minutes) {
            let wanted = self.minutes(resource).filter(|_| self.request.is_asked);
            let Some((limit, wanted)) = limit.zip(wanted) else { continue };
            let promised = value(&used.running_minutes, resource);
            if wanted.saturating_add(promised) > limit {
                let text = format!(
                    "running jobs of {name} may take {promised} of {limit} {} minutes, this one \
                     {} more",
                    noun(resource).trim_end_matches('s'),
                    in_minutes(wanted),
                );
                let code = format!("GRP_{}_RUN_MINUTES", code_word(resource));
                let source = format!("{source} GrpTRESRunMins");
                gates.push(Gate::shape(code, source, text).lift("a shorter --time").clears());
            }
        }
    }

    /// Resource-minutes of a whole run, as they are weighed against a budget: a run without an end
    /// takes more than any. `None` where it is not known how long it is.
    ///
    /// Of a QOS that counts by a factor the controller has multiplied what is used; a job that is to
    /// run is weighed as it is, unless the QOS is `UsageFactorSafe` (seen in 22.05).
    fn minutes(&self, resource: &str) -> Option<u64> {
        let amount = self.request.get(resource);
        let minutes = match self.request.time {
            Known::Value(time) => amount.saturating_mul(time.as_seconds().div_ceil(60)),
            Known::Unlimited if amount > 0 => return Some(UNENDING),
            Known::Unlimited => 0,
            Known::NotGathered | Known::Unreadable(_) => return None,
        };
        let qos = self.way.qos.as_deref().and_then(|name| self.gates_of.cluster.qos_named(name));
        let safe = qos.filter(|qos| qos.flags.iter().any(|flag| flag == "UsageFactorSafe"));
        let factor = safe.and_then(|qos| qos.usage_factor.get()).unwrap_or(Qos::WHOLE);
        let counted = u128::from(minutes) * u128::from(factor) / u128::from(Qos::WHOLE);
        Some(u64::try_from(counted).unwrap_or(UNENDING))
    }
}

/// More minutes than any budget has.
const UNENDING: u64 = u64::MAX;

fn in_minutes(minutes: u64) -> String {
    if minutes == UNENDING { "unlimited".to_owned() } else { minutes.to_string() }
}

impl Gates<'_> {
    fn enforces_safe(&self) -> bool {
        let words = self.cluster.controller.enforces.value();
        words.is_none_or(|words| words.iter().any(|word| word == "safe" || word == "all"))
    }
}

/// More than is ever given.
fn too_much(name: &str, scope: &str, wanted: u64, limit: u64, source: String, may: &str) -> Gate {
    let text = format!(
        "{} {} are more than the {} that {may}",
        shown(name, wanted),
        noun(name),
        shown(name, limit),
    );
    let code = format!("MAX_{}_{scope}", code_word(name));
    Gate::shape(code, source, text).lift(format!("at most {} {}", shown(name, limit), noun(name)))
}

/// Says also what of the limit is in use: who asks for as much as it allows waits for that.
fn held(gate: Gate, name: &str, (used, limit): (u64, u64), whose: &str) -> Gate {
    if used == 0 {
        return gate;
    }
    let (limit, used) = (shown(name, limit), shown(name, used));
    gate.lift(format!("at most {limit} {}, of which {whose} hold {used}", noun(name)))
}

/// Enough for this job, were the rest not in use.
fn in_use(
    code: String,
    source: String,
    name: &str,
    (used, limit): (u64, u64),
    whose: &str,
) -> Gate {
    let text = format!(
        "{} of {} {} are held by {whose}",
        shown(name, used),
        shown(name, limit),
        noun(name),
    );
    let left = limit.saturating_sub(used);
    let lift = if left > 0 {
        format!("at most {} {}, or wait until more are given back", shown(name, left), noun(name))
    } else {
        "wait until some are given back".to_owned()
    };
    Gate::shape(code, source, text).lift(lift).clears()
}
