//! Reservations, node by node: which are in force, which come, and whether they are the caller's.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::model::{Cluster, Identity, Reservation};
use crate::text;

/// More nodes than any cluster has; a longer list is a mistake or worse.
const MOST_NODES: usize = 100_000;

/// The reservations of a cluster by the nodes they hold.
#[derive(Debug)]
pub(super) struct Reserved<'c> {
    by_node: HashMap<String, Vec<&'c Reservation>>,
    /// Reservations whose nodes cannot be told.
    pub(super) unclear: Vec<&'c Reservation>,
    now: Timestamp,
}

impl<'c> Reserved<'c> {
    pub(super) fn new(cluster: &'c Cluster) -> Self {
        let mut by_node: HashMap<String, Vec<&Reservation>> = HashMap::new();
        let mut unclear = Vec::new();
        for reservation in &cluster.reservations {
            match text::expand(&reservation.node_list, MOST_NODES) {
                Ok(names) => {
                    for name in names {
                        by_node.entry(name).or_default().push(reservation);
                    }
                }
                Err(_) => unclear.push(reservation),
            }
        }
        Self { by_node, unclear, now: cluster.taken_at }
    }

    /// Those in force on a node.
    pub(super) fn now_on(&self, node: &str) -> impl Iterator<Item = &'c Reservation> {
        self.on(node).filter(|reservation| reservation.is_active)
    }

    /// The first that comes on a node: a job there must end before.
    pub(super) fn next_on(&self, node: &str) -> Option<(Timestamp, &'c Reservation)> {
        let coming = self.on(node).filter(|reservation| !reservation.is_active);
        let starts = coming.filter_map(|reservation| Some((reservation.start.get()?, reservation)));
        starts.filter(|(start, _)| *start > self.now).min_by_key(|(start, _)| *start)
    }

    fn on(&self, node: &str) -> impl Iterator<Item = &'c Reservation> {
        self.by_node.get(node).into_iter().flatten().copied()
    }
}

/// Whether a reservation lets somebody in who charges one of these accounts.
///
/// A name with a `-` keeps out whom it names; a list of nothing else lets in everybody but those
/// (`man scontrol`). Users and accounts must both agree where both are given.
pub(super) fn lets_in(reservation: &Reservation, identity: &Identity, accounts: &[&str]) -> bool {
    let user = identity.user.as_deref();
    let lists: [(&[String], Vec<&str>); 3] = [
        (&reservation.users, user.into_iter().collect()),
        (&reservation.accounts, accounts.to_vec()),
        (&reservation.groups, identity.groups.iter().map(String::as_str).collect()),
    ];
    let given: Vec<_> = lists.iter().filter(|(list, _)| !list.is_empty()).collect();
    !reservation.is_maintenance()
        && !given.is_empty()
        && given.iter().all(|(list, names)| is_listed(list, names))
}

fn is_listed(list: &[String], names: &[&str]) -> bool {
    let has = |name: &str| names.contains(&name);
    let (kept_out, let_in): (Vec<&str>, Vec<&str>) =
        list.iter().map(String::as_str).partition(|entry| entry.starts_with('-'));
    if kept_out.iter().any(|entry| has(&entry[1..])) {
        return false;
    }
    let_in.is_empty() || let_in.iter().any(|entry| has(entry.trim_start_matches('+')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(users: &[&str], accounts: &[&str]) -> Reservation {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Reservation { users: own(users), accounts: own(accounts), ..Reservation::default() }
    }

    #[test]
    fn a_dash_keeps_out() {
        let alice = Identity { user: Some("alice".to_owned()), ..Identity::default() };
        let lets = |users: &[&str], accounts: &[&str]| {
            lets_in(&reservation(users, accounts), &alice, &["physics", "chem"])
        };
        assert!(lets(&["bob", "alice"], &[]) && !lets(&["bob"], &[]));
        assert!(lets(&[], &["physics"]) && !lets(&[], &["biology"]));
        assert!(lets(&["-bob"], &[]) && !lets(&["-alice"], &[]));
        assert!(lets(&["-bob"], &["physics"]) && !lets(&["-alice"], &["physics"]));
        assert!(!lets(&["alice"], &["biology"]), "both lists must agree");
        assert!(!lets(&[], &[]), "a reservation names whom it is for");
    }

    #[test]
    fn maintenance_is_for_nobody() {
        let root = Identity { user: Some("root".to_owned()), ..Identity::default() };
        let window = Reservation { flags: vec!["MAINT".to_owned()], ..reservation(&["root"], &[]) };
        assert!(!lets_in(&window, &root, &[]));
    }
}
