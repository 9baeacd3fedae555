//! The reservations of `scontrol show reservation`.

use std::collections::BTreeMap;

use crate::model::{Known, Reservation, Tres};

use super::controller::{self, Clock};
use super::scontrol::{self, Grammar};
use super::values;

/// A comment may hold anything, and stands last.
const GRAMMAR: Grammar = Grammar { free: &["Comment"], after: &[] };

/// The reservations of an output.
pub(super) fn reservations(output: &[u8], clock: &Clock) -> Vec<Reservation> {
    let text = String::from_utf8_lossy(output);
    let records = scontrol::split(&text, "ReservationName");
    let all = records.into_iter().map(|record| {
        let mut cells = BTreeMap::new();
        // Cores are listed, node by node, where the nodes are not reserved whole.
        let mut cores: Vec<(&str, u64)> = Vec::new();
        let mut node = "";
        scontrol::pairs(record, GRAMMAR, |key, value| match key {
            "NodeName" => node = value,
            "CoreIDs" => cores.push((node, listed(value))),
            _ => {
                cells.entry(key).or_insert(value);
            }
        });
        reservation(&cells, &cores, clock)
    });
    all.filter(|reservation| !reservation.name.is_empty()).collect()
}

/// How many numbers a list such as `0-1,4` has; none where it is no list.
fn listed(list: &str) -> u64 {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').filter_map(range).fold(0, u64::saturating_add)
}

fn reservation(cells: &BTreeMap<&str, &str>, cores: &[(&str, u64)], clock: &Clock) -> Reservation {
    let get = |key: &str| cells.get(key).copied().unwrap_or_default();
    let all = cores.iter().fold(0_u64, |all, (_, count)| all.saturating_add(*count)).max(1);
    // A core may have several CPUs: jobs are given those.
    let cpus = Tres::parse(get("TRES")).count("cpu").filter(|cpus| cpus.is_multiple_of(all));
    let each = cpus.map_or(1, |cpus| cpus / all).max(1);
    let names = |key: &str| values::names(get(key));
    Reservation {
        name: get("ReservationName").to_owned(),
        start: values::moment(get("StartTime"), &clock.0),
        end: values::moment(get("EndTime"), &clock.0),
        node_list: values::word(get("Nodes")).unwrap_or_default(),
        node_count: values::count(get("NodeCnt")),
        cores: values::count(get("CoreCnt")),
        parts: cores
            .iter()
            .map(|(node, cores)| ((*node).to_owned(), cores.saturating_mul(each)))
            .collect(),
        partition: values::word(get("PartitionName")),
        users: names("Users"),
        accounts: names("Accounts"),
        groups: names("Groups"),
        qos: names("QOS"),
        licences: controller::counted(get("Licenses")),
        flags: names("Flags"),
        is_active: match get("State") {
            "ACTIVE" => true,
            "" => Known::is_value(&values::moment(get("StartTime"), &clock.0)),
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reservations_of_slurm_22_05_are_read() {
        // `SLURM_TIME_FORMAT=%s scontrol --oneliner show reservation`.
        let text = "ReservationName=training StartTime=1796034858 EndTime=1798626858 \
            Duration=30-00:00:00 Nodes=c01 NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=batch \
            Flags=IGNORE_JOBS,SPEC_NODES   NodeName=c01 CoreIDs=0-1 TRES=cpu=2 Users=(null) \
            Groups=(null) Accounts=physics Licenses=(null) State=ACTIVE BurstBuffer=(null)\n\
            ReservationName=maint_next StartTime=1796639658 EndTime=1796654058 Duration=04:00:00 \
            Nodes=c02 NodeCnt=1 CoreCnt=8 PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES \
            TRES=cpu=8 Users=root,-bob Licenses=matlab:2 State=INACTIVE\n";
        let all = reservations(text.as_bytes(), &Clock(TimeZone::UTC));
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].parts, [("c01".to_owned(), 2)]);
        assert!(all[0].is_part_of_nodes() && all[0].is_active && !all[0].is_maintenance());
        assert_eq!(all[0].accounts, ["physics"]);
        assert!(all[1].is_maintenance() && !all[1].is_active && !all[1].is_part_of_nodes());
        assert_eq!(all[1].users, ["root", "-bob"]);
        assert_eq!(all[1].licences, [("matlab".to_owned(), 2)]);
        assert_eq!(all[1].start.get().map(jiff::Timestamp::as_second), Some(1_796_639_658));
    }

    #[test]
    fn no_reservation_is_none() {
        let none = b"No reservations in the system\n";
        assert_eq!(reservations(none, &Clock(TimeZone::UTC)), []);
    }

    proptest! {
        #[test]
        fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = [b"ReservationName=x ".as_slice(), &bytes].concat();
            let _ = reservations(&text, &Clock(TimeZone::UTC));
        }
    }
}
