//! A queue's own rules: its state, its nodes, who may use it, and how much at a time.

use std::sync::Arc;

use crate::model::{
    Allowed, Known, Per, Queue, QueueState, Reading, Reservation, Shape, Sharing, Span,
};
use crate::text;

use super::super::reserved;
use super::super::start::licences::kept;
use super::{Free, Gate, Gates, Kind, Way};

/// The state of a queue. Other than a rival thinks, DOWN takes jobs and starts none, and DRAIN
/// refuses new ones (`man slurm.conf`; so do all of 20.11 to 26.05).
pub(super) fn state(queue: &Queue, gates: &mut Vec<Gate>) {
    let source = format!("partition {} State", queue.name);
    let gate = |code: &str, text: &str| {
        Gate::fatal(code, &source, format!("partition {} {text}", queue.name))
            .lift("only an operator can open it")
    };
    gates.extend(match &queue.state {
        QueueState::Up => None,
        QueueState::Down => {
            Some(gate("QUEUE_NOT_STARTED", "is DOWN: it takes jobs and starts none"))
        }
        QueueState::Drain => Some(gate("QUEUE_DISABLED", "is DRAIN: it takes no new job")),
        QueueState::Inactive => {
            Some(gate("QUEUE_DISABLED", "is INACTIVE: it takes and starts no job"))
        }
        QueueState::Other(word) => Some(Gate::unchecked(
            "QUEUE_STATE_UNKNOWN",
            &source,
            format!("partition {} is {word}, a state that jobwise does not know", queue.name),
        )),
        QueueState::Unknown => Some(Gate::unchecked(
            "QUEUE_STATE_UNKNOWN",
            &source,
            format!("the state of partition {} was not told", queue.name),
        )),
    });
    let nobody = [
        (&queue.accounts, "NO_ACCOUNTS", "AllowAccounts", "no account"),
        (&queue.qos, "NO_QOS", "AllowQos", "no QOS"),
        (&queue.groups, "NO_GROUPS", "AllowGroups", "no group"),
    ];
    for (allowed, code, rule, what) in nobody {
        if *allowed == Allowed::Nobody {
            gates.push(Gate::fatal(
                code,
                format!("partition {} {rule}", queue.name),
                format!("partition {} lets {what} in", queue.name),
            ));
        }
    }
}

/// The nodes of a queue.
pub(super) fn place(gates_of: &Gates<'_>, queue: &Queue, gates: &mut Vec<Gate>) {
    let nodes = gates_of.nodes(queue);
    let source = format!("nodes of partition {}", queue.name);
    if nodes.is_empty() {
        let said = queue.node_count.get().unwrap_or(0);
        gates.push(if said > 0 {
            let text = format!("none of the {said} nodes of partition {} was told", queue.name);
            Gate::unchecked("NODES_UNKNOWN", source, text)
        } else {
            Gate::fatal("NO_NODES", source, format!("partition {} has no nodes", queue.name))
        });
    } else if nodes.iter().all(|free| !free.class.is_up()) {
        let mut classes: Vec<&str> = nodes.iter().map(|free| free.class.word()).collect();
        classes.sort_unstable();
        classes.dedup();
        let count = text::count(nodes.len() as u64, "node");
        let text = format!(
            "nothing can start in partition {}: {count}, {}",
            queue.name,
            text::join(&classes, "or"),
        );
        gates.push(
            Gate::fatal("ALL_NODES_UNSCHEDULABLE", source, text)
                .lift("wait until nodes are back: jobwise health says what became of them"),
        );
    }
}

/// Whether the caller, whatever is charged, may use a queue from here.
pub(super) fn caller(gates_of: &Gates<'_>, queue: &Queue, gates: &mut Vec<Gate>) {
    let cluster = gates_of.cluster;
    let identity = &cluster.identity;
    let name = &queue.name;
    let is_root = identity.uid == Known::Value(0);
    if queue.is_root_only && !is_root {
        gates.push(Gate::fatal(
            "ROOT_ONLY",
            format!("partition {name} RootOnly"),
            format!("only root may submit to partition {name}"),
        ));
    }
    if let Allowed::Only(groups) = &queue.groups
        && !is_root
    {
        let source = format!("partition {name} AllowGroups");
        let listed = text::join(groups, "or");
        if cluster.lacks(Reading::Identity) {
            let text = format!("your groups could not be read; partition {name} is for {listed}");
            gates.push(Gate::unchecked("GROUPS_UNKNOWN", source, text));
        } else if !identity.groups.iter().any(|group| queue.groups.lets_in(group)) {
            let text = format!("partition {name} is for the group {listed}; you are in none");
            let gate = Gate::fatal("GROUP_NOT_ALLOWED", source, text);
            gates.push(gate.lift("ask the site to be taken into the group"));
        }
    }
    if let Allowed::Only(hosts) = &queue.submit_hosts {
        let source = format!("partition {name} AllocNodes");
        let list = hosts.join(",");
        let allowed = text::expand(&list, 10_000).unwrap_or_default();
        match identity.host.as_deref() {
            Some(host) if allowed.iter().any(|known| is_same_host(known, host)) => {}
            Some(host) => gates.push(
                Gate::fatal(
                    "SUBMIT_HOST_NOT_ALLOWED",
                    source,
                    format!("partition {name} takes jobs from {list} only; this is {host}"),
                )
                .lift(format!("submit on one of {list}")),
            ),
            None => gates.push(Gate::unchecked(
                "SUBMIT_HOST_UNKNOWN",
                source,
                format!("partition {name} takes jobs from {list} only; where this is, is unknown"),
            )),
        }
    }
}

/// Whether two names are of one machine: one may lack the domain.
fn is_same_host(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    one.eq_ignore_ascii_case(other)
        || (short(one) == short(other) && !(one.contains('.') && other.contains('.')))
}

/// Whether what is charged may be charged here.
pub(super) fn way(gates_of: &Gates<'_>, queue: &Queue, way: &Way, gates: &mut Vec<Gate>) {
    account(gates_of, queue, way, gates);
    qos(gates_of, queue, way, gates);
}

fn account(gates_of: &Gates<'_>, queue: &Queue, way: &Way, gates: &mut Vec<Gate>) {
    let cluster = gates_of.cluster;
    let name = &queue.name;
    let is_unread = cluster.lacks(Reading::Associations);
    let has_right = gates_of.right(queue, way).is_some();
    let is_root = cluster.identity.uid == Known::Value(0);
    let is_enforced = gates_of.is_enforced("associations");
    if !is_unread && !has_right && is_enforced != Some(false) && !is_root {
        let mine = cluster.accounts();
        let text = match &way.account {
            // Which is so in every partition is said without one, that it can be said once.
            Some(account) if !mine.iter().any(|known| known.eq_ignore_ascii_case(account)) => {
                format!("you may not charge account {account}")
            }
            Some(account) => format!("you may not charge account {account} in partition {name}"),
            None if mine.is_empty() => "you have no account on this cluster".to_owned(),
            None => format!("none of your accounts may be charged in partition {name}"),
        };
        if is_enforced.is_none() {
            let text = format!("{text}, and whether one is needed could not be read");
            gates.push(Gate::unchecked("NO_ASSOCIATION", "association", text));
            return;
        }
        let gate = Gate::fatal("NO_ASSOCIATION", "association", text);
        gates.push(match mine.as_slice() {
            [] => gate.lift("ask the site for an account: nothing you submit will run"),
            mine => gate.lift(format!("charge {}", text::join(mine, "or"))),
        });
        return;
    }
    let (rule, is_listed) = match &queue.accounts {
        Allowed::Only(_) => ("AllowAccounts", true),
        _ if !queue.denied_accounts.is_empty() => ("DenyAccounts", false),
        _ => {
            if is_unread && gates_of.enforces("associations") {
                gates.push(unread_accounts(queue, "association"));
            }
            return;
        }
    };
    let source = format!("partition {name} {rule}");
    let Some(account) = way.account.as_deref() else {
        gates.push(if is_unread {
            unread_accounts(queue, &source)
        } else if is_listed {
            let text = format!("partition {name} is for some accounts only, and you have none");
            Gate::fatal("ACCOUNT_NOT_ALLOWED", source, text)
        } else {
            return;
        });
        return;
    };
    let denied = queue.denied_accounts.iter().any(|known| known.eq_ignore_ascii_case(account));
    // Where both are set, only who is let in counts (`man slurm.conf`).
    let is_refused = if is_listed { !queue.accounts.lets_in(account) } else { denied };
    let above = gates_of.above(account);
    let by_parent = above.iter().find(|above| {
        if is_listed {
            is_refused && queue.accounts.lets_in(above)
        } else {
            !is_refused
                && queue.denied_accounts.iter().any(|known| known.eq_ignore_ascii_case(above))
        }
    });
    if let Some(parent) = by_parent {
        // Newer manuals call the lists hierarchical; older ones say nothing of it.
        let text = format!(
            "partition {name} lists account {parent}, above {account}; whether that counts for \
             {account} differs between releases of Slurm"
        );
        gates.push(Gate::unchecked("ACCOUNT_BY_PARENT", source, text));
        return;
    }
    if is_refused {
        let lets_in = |other: &&str| {
            if is_listed {
                queue.accounts.lets_in(other)
            } else {
                !queue.denied_accounts.iter().any(|known| known.eq_ignore_ascii_case(other))
            }
        };
        let others: Vec<&str> = cluster.accounts().into_iter().filter(lets_in).collect();
        let text = match (&queue.accounts, is_listed) {
            (Allowed::Only(names), true) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("partition {name} is for {}, not for account {account}", few(&names, "or"))
            }
            _ => format!("partition {name} refuses account {account}"),
        };
        let gate = Gate::fatal("ACCOUNT_NOT_ALLOWED", source, text);
        gates.push(match others.as_slice() {
            [] => gate,
            others => gate.lift(format!("--account={}", others[0])),
        });
    }
}

fn unread_accounts(queue: &Queue, source: &str) -> Gate {
    let text = format!(
        "your accounts could not be read, so whether partition {} takes one is not known",
        queue.name
    );
    Gate::unchecked("ACCOUNTS_UNKNOWN", source, text)
}

/// A list that stays short enough for a sentence.
fn few(names: &[&str], conjunction: &str) -> String {
    const SHOWN: usize = 4;
    if names.len() <= SHOWN {
        return text::join(names, conjunction);
    }
    format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
}

fn qos(gates_of: &Gates<'_>, queue: &Queue, way: &Way, gates: &mut Vec<Gate>) {
    let cluster = gates_of.cluster;
    let name = &queue.name;
    let right = gates_of.right(queue, way);
    if let (Some(qos), Some(right)) = (way.qos.as_deref(), right) {
        let has = right.qos.iter().any(|known| known.eq_ignore_ascii_case(qos));
        if !has && !right.qos.is_empty() && gates_of.enforces("qos") {
            let text = format!("account {} may not use QOS {qos}", right.account);
            let gate = Gate::fatal("QOS_NOT_YOURS", format!("account {} QOS", right.account), text);
            gates.push(gate.lift(format!("--qos={}", right.qos.join("|"))));
        }
    }
    let is_listed = matches!(queue.qos, Allowed::Only(_));
    if !is_listed && queue.denied_qos.is_empty() {
        return;
    }
    let rule = if is_listed { "AllowQos" } else { "DenyQos" };
    let source = format!("partition {name} {rule}");
    let lets_in = |qos: &str| {
        if is_listed {
            queue.qos.lets_in(qos)
        } else {
            !queue.denied_qos.iter().any(|known| known.eq_ignore_ascii_case(qos))
        }
    };
    match way.qos.as_deref() {
        Some(qos) if lets_in(qos) => {}
        Some(qos) => {
            let gate = Gate::fatal(
                "QOS_NOT_ALLOWED",
                source,
                format!("partition {name} does not take QOS {qos}"),
            );
            let other = right.and_then(|right| right.qos.iter().find(|other| lets_in(other)));
            gates.push(match other {
                Some(other) => gate.lift(format!("--qos={other}")),
                None => gate,
            });
        }
        None if cluster.lacks(Reading::Associations) || is_listed => gates.push(Gate::unchecked(
            "QOS_UNKNOWN",
            source,
            format!("partition {name} takes some QOS only; which your job would have is not known"),
        )),
        None => {}
    }
}

/// That a job must name a reservation here: told of the queue, and in the way of a job that names none.
pub(super) fn needs_reservation(queue: &Queue, kind: Kind, gates: &mut Vec<Gate>) {
    if queue.needs_reservation {
        let name = &queue.name;
        let text = format!("partition {name} takes only jobs that name a reservation");
        let source = format!("partition {name} ReqResv");
        let gate = Gate::new(kind, "REQUIRES_RESERVATION", source, text);
        gates.push(gate.lift("--reservation=NAME of one that lets you in"));
    }
}

/// A shape against the queue's own limits, its nodes and what is reserved.
pub(super) fn shape(gates_of: &Gates<'_>, queue: &Queue, shape: &Shape, gates: &mut Vec<Gate>) {
    let name = &queue.name;
    let source = |rule: &str| format!("partition {name} {rule}");
    if shape.reservation.is_none() {
        needs_reservation(queue, Kind::Shape, gates);
    }
    let nodes = shape.least_nodes();
    if let Some(most) = queue.max_nodes.get().filter(|most| nodes > *most) {
        let text =
            format!("{nodes} nodes are more than the {most} that partition {name} gives a job");
        gates.push(
            Gate::shape("QUEUE_MAX_NODES", source("MaxNodes"), text)
                .lift(format!("--nodes={most}")),
        );
    }
    if let Some(least) = queue.min_nodes.get().filter(|least| nodes < *least) {
        let text = format!("{nodes} nodes are fewer than the {least} that partition {name} wants");
        gates.push(
            Gate::shape("QUEUE_MIN_NODES", source("MinNodes"), text)
                .lift(format!("--nodes={least}")),
        );
    }
    if let Some(most) = queue.max_time.get().filter(|most| shape.time.exceeds(most)) {
        let time = spoken(&shape.time);
        let text = format!("{time} is longer than the {most} of partition {name}");
        gates.push(
            Gate::shape("QUEUE_MAX_WALLTIME", source("MaxTime"), text)
                .lift(format!("--time={most}")),
        );
    }
    let cpus = shape.cpus_on_node();
    if let Some(most) = queue.max_cpus_per_node.get().filter(|most| cpus > *most) {
        let text = format!("{cpus} CPUs on a node are more than the {most} of partition {name}");
        gates.push(Gate::shape("QUEUE_MAX_CPUS_PER_NODE", source("MaxCPUsPerNode"), text));
    }
    memory(gates_of, queue, shape, gates);
    if queue.sharing == Sharing::Exclusive {
        let text = format!("partition {name} gives whole nodes: all of each is charged");
        gates.push(Gate::new(Kind::Note, "EXCLUSIVE", source("OverSubscribe"), text));
    }
    ahead(gates_of, queue, shape, gates);
    licences(gates_of, shape, gates);
    reservation(gates_of, shape, gates);
}

fn memory(gates_of: &Gates<'_>, queue: &Queue, shape: &Shape, gates: &mut Vec<Gate>) {
    let controller = &gates_of.cluster.controller;
    let name = &queue.name;
    let per_node = queue.max_memory_per_node.clone().or(controller.max_memory_per_node.clone());
    if let Some((wanted, most)) =
        shape.memory_on_node().zip(per_node.get()).filter(|(wanted, most)| wanted > most)
    {
        let text = format!("{wanted} on a node is more than the {most} of partition {name}");
        let gate =
            Gate::shape("QUEUE_MAX_MEM_PER_NODE", format!("partition {name} MaxMemPerNode"), text);
        gates.push(gate.lift(format!("--mem={}", most.to_option())));
    }
    let per_cpu = queue.max_memory_per_cpu.clone().or(controller.max_memory_per_cpu.clone());
    let wanted = shape.memory.filter(|memory| memory.per == Per::Cpu).map(|memory| memory.bytes);
    if let Some((wanted, most)) = wanted.zip(per_cpu.get()).filter(|(wanted, most)| wanted > most) {
        let times = wanted.0.div_ceil(most.0.max(1));
        gates.push(Gate::new(
            Kind::Note,
            "QUEUE_MAX_MEM_PER_CPU",
            format!("partition {name} MaxMemPerCPU"),
            format!(
                "{wanted} per CPU is more than the {most} of partition {name}: \
                 each CPU counts as {times}"
            ),
        ));
    }
}

/// A time limit in a sentence.
pub(super) fn spoken(time: &Known<Span>) -> String {
    match time {
        Known::Unlimited => "an unlimited time".to_owned(),
        known => known.to_string(),
    }
}

/// What is reserved soon: jobs must end before.
fn ahead(gates_of: &Gates<'_>, queue: &Queue, shape: &Shape, gates: &mut Vec<Gate>) {
    if shape.reservation.is_some() {
        return;
    }
    let time = shape.time_in(queue);
    let seconds = match &time {
        Known::Value(time) => i64::try_from(time.as_seconds()).unwrap_or(i64::MAX),
        Known::Unlimited => i64::MAX,
        Known::NotGathered | Known::Unreadable(_) => return,
    };
    let now = gates_of.cluster.taken_at;
    let left = |free: &&Arc<Free<'_>>| match free.until {
        None => true,
        Some((until, _)) => until.duration_since(now).as_secs() >= seconds,
    };
    let up: Vec<_> = gates_of.nodes(queue).iter().filter(|free| free.class.is_up()).collect();
    let wanted = usize::try_from(shape.least_nodes()).unwrap_or(usize::MAX);
    if up.len() < wanted || up.iter().copied().filter(left).count() >= wanted {
        return;
    }
    // The last of those that come first on enough nodes.
    let mut starts: Vec<_> = up.iter().filter_map(|free| free.until).collect();
    starts.sort_unstable();
    starts.reverse();
    let free_of_it = up.len() - starts.len();
    let Some((start, by)) = starts.get(wanted.saturating_sub(free_of_it + 1)).copied() else {
        return;
    };
    let window = Span::seconds(u64::try_from(start.duration_since(now).as_secs()).unwrap_or(0));
    let text = format!(
        "a job of {} would run into the reservation {by}, which begins in {window} on too many \
         nodes of partition {}",
        spoken(&time),
        queue.name,
    );
    let gate = Gate::shape("RESERVATION_AHEAD", format!("reservation {by}"), text);
    gates.push(gate.lift(format!("--time below {window} starts before it")));
}

fn licences(gates_of: &Gates<'_>, shape: &Shape, gates: &mut Vec<Gate>) {
    for (name, wanted) in &shape.licences {
        let known = gates_of.cluster.licences.iter().find(|licence| licence.name == *name);
        let source = format!("licence {name}");
        let Some(licence) = known else {
            let text = format!("the licence {name} is not one of this cluster's own");
            gates.push(Gate::unchecked("LICENCE_UNKNOWN", source, text));
            continue;
        };
        let total = licence.total;
        // Reservations hold licences, too.
        let kept = kept(gates_of.cluster, name, shape.reservation.as_deref());
        if *wanted > total {
            let text = format!("{wanted} licences of {name} are more than the {total} there are");
            gates.push(Gate::shape("LICENCE_TOTAL", source, text));
            continue;
        }
        match licence.used.get() {
            Some(used) if wanted.saturating_add(used).saturating_add(kept) > total => {
                let left = total.saturating_sub(used.saturating_add(kept));
                let text =
                    format!("{left} of {total} licences of {name} are free, {wanted} wanted");
                gates.push(
                    Gate::wait("LICENCE_BUSY", source, text).lift("wait until one is given back"),
                );
            }
            Some(_) => {}
            None => gates.push(Gate::unchecked(
                "LICENCE_USE_UNKNOWN",
                source,
                format!("how many licences of {name} are in use could not be read"),
            )),
        }
    }
}

/// The reservation that a job names.
fn reservation(gates_of: &Gates<'_>, shape: &Shape, gates: &mut Vec<Gate>) {
    let Some(name) = &shape.reservation else { return };
    let cluster = gates_of.cluster;
    let source = format!("reservation {name}");
    if cluster.lacks(Reading::Reservations) {
        let text = "the reservations could not be read".to_owned();
        gates.push(Gate::unchecked("RESERVATION_UNKNOWN", source, text));
        return;
    }
    let accounts: Vec<&str> = match &shape.account {
        Some(account) => vec![account],
        None => cluster.accounts(),
    };
    let lets_in = |held: &&Reservation| reserved::lets_in(held, &cluster.identity, &accounts);
    let others: Vec<&str> =
        cluster.reservations.iter().filter(lets_in).map(|held| held.name.as_str()).collect();
    let lift = match others.as_slice() {
        [] => "leave --reservation out: none lets you in".to_owned(),
        others => format!("--reservation={}", others.join("|")),
    };
    match cluster.reservations.iter().find(|held| held.name == *name) {
        None => {
            let text = format!("there is no reservation {name}");
            gates.push(Gate::fatal("RESERVATION_UNKNOWN", source, text).lift(lift));
        }
        Some(held) if !lets_in(&held) => {
            let text = format!("the reservation {name} is not for you");
            gates.push(Gate::fatal("RESERVATION_NOT_YOURS", source, text).lift(lift));
        }
        Some(held) if !held.is_active => {
            let text = format!("the reservation {name} has not begun");
            gates.push(Gate::shape("RESERVATION_NOT_BEGUN", source, text));
        }
        Some(_) => {}
    }
}
