//! What real and likely records say can be had. Figures are worked out beside them.

use super::*;
use crate::capacity::lab::{Lab, NOW};

/// The class and what can be had of one node: cores, GPUs, stranded GPUs.
fn free(lab: &Lab) -> (Class, String) {
    let cluster = lab.cluster();
    let frees = Frees::new(&cluster);
    let free = &frees.nodes[0];
    let told = format!("{} cores {} gpus {} stranded", free.cpus, free.gpus, free.gpus_stranded);
    (free.class, told)
}

fn node(record: &str) -> (Class, String) {
    free(&Lab::new().nodes(&[record]))
}

fn class(state: &str) -> Class {
    node(&format!("n1 CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 Gres=gpu:4 State={state}")).0
}

const MEMORY_GONE: &str = "n1 CPUAlloc=4 CPUTot=48 RealMemory=184320 AllocMem=184320 State=MIXED";

#[test]
fn cores_without_memory_cannot_be_had() {
    let (class, told) = node(MEMORY_GONE);
    assert_eq!((class, told.as_str()), (Class::MemoryExhausted, "0 cores 0 gpus 0 stranded"));
    // 250000 - 249750 = 250 MB are less than the 3810 of one core.
    let floor = Lab::new()
        .nodes(&["n1 CPUAlloc=31 CPUTot=128 RealMemory=250000 AllocMem=249750 State=MIXED"])
        .says("show config", "SelectTypeParameters = CR_CORE_MEMORY\nDefMemPerCPU = 3810\n");
    assert_eq!(free(&floor).0, Class::MemoryExhausted);
    let cluster = floor.cluster();
    let left = Frees::new(&cluster).nodes[0].memory.clone();
    assert_eq!(left, Known::Value(Bytes(250 * Bytes::MIB)), "a job that asks for less may fit");
}

#[test]
fn memory_that_is_not_given_out_holds_nobody_up() {
    let cores =
        Lab::new().nodes(&[MEMORY_GONE]).says("show config", "SelectTypeParameters = CR_CORE\n");
    assert_eq!(free(&cores), (Class::Room, "44 cores 0 gpus 0 stranded".to_owned()));
    // Where the setting could not be read, it is feared.
    let unread = Lab::new().nodes(&[MEMORY_GONE]).refuses("show config", "no\n");
    assert_eq!(free(&unread).0, Class::MemoryExhausted);
}

#[test]
fn cores_and_memory_of_the_system_are_no_jobs() {
    let (_, told) =
        node("n1 CPUAlloc=4 CPUEfctv=14 CPUTot=16 RealMemory=64000 AllocMem=1000 State=MIXED");
    assert_eq!(told, "10 cores 0 gpus 0 stranded");
    // 64000 - 63000 - 1000 set apart = nothing.
    let (class, _) = node(
        "n1 CPUAlloc=4 CPUTot=16 RealMemory=64000 AllocMem=63000 MemSpecLimit=1000 State=MIXED",
    );
    assert_eq!(class, Class::MemoryExhausted);
}

#[test]
fn gpus_without_a_core_are_stranded() {
    let full = "n1 CPUAlloc=64 CPUTot=64 RealMemory=250000 AllocMem=100000 Gres=gpu:4 \
                State=ALLOCATED AllocTRES=cpu=64,mem=100000M,gres/gpu=2";
    assert_eq!(node(full), (Class::Stranded, "0 cores 0 gpus 2 stranded".to_owned()));
    let no_memory = "n1 CPUAlloc=4 CPUTot=64 RealMemory=250000 AllocMem=250000 Gres=gpu:4 \
                     State=MIXED AllocTRES=cpu=4,gres/gpu=1";
    assert_eq!(node(no_memory), (Class::MemoryExhausted, "0 cores 0 gpus 3 stranded".to_owned()));
}

#[test]
fn gpus_that_only_the_details_know_are_not_free() {
    let record = "n1 CPUAlloc=60 CPUTot=64 RealMemory=250000 AllocMem=1 Gres=gpu:4 \
                  GresUsed=gpu:4(IDX:0-3) State=MIXED CfgTRES=cpu=64 AllocTRES=cpu=60";
    assert_eq!(node(record), (Class::Room, "4 cores 0 gpus 0 stranded".to_owned()));
    let untold = record.replace("GresUsed=gpu:4(IDX:0-3) ", "");
    assert_eq!(node(&untold), (Class::Room, "4 cores n/a gpus 0 stranded".to_owned()));
}

#[test]
fn each_state_has_its_class() {
    for (state, expected) in [
        ("IDLE", Class::Idle),
        ("IDLE*", Class::Unreachable),
        ("IDLE+NOT_RESPONDING", Class::Unreachable),
        ("IDLE+PLANNED", Class::Planned),
        ("IDLE+POWERED_DOWN", Class::PoweredDown),
        ("IDLE+CLOUD+POWER", Class::PoweredDown),
        ("IDLE+POWERING_UP", Class::PoweringUp),
        ("IDLE+CLOUD+POWERING_UP+NOT_RESPONDING", Class::PoweringUp),
        ("IDLE+POWERING_DOWN", Class::PoweringDown),
        ("COMPLETING", Class::Completing),
        ("IDLE+COMPLETING", Class::Completing),
        ("IDLE+REBOOT_ISSUED", Class::Rebooting),
        ("IDLE$", Class::Maintenance),
        ("IDLE+MAINT", Class::Maintenance),
        ("MIXED+RESERVED", Class::Reserved),
        ("RESERVED", Class::Reserved),
        ("DOWN*+DRAIN", Class::Down),
        ("IDLE+DRAIN", Class::Drained),
        ("ALLOCATED+DRAIN", Class::Drained),
        ("IDLE+FAIL", Class::Failing),
        ("IDLE+INVALID_REG", Class::Failing),
        ("IDLE+BLOCKED", Class::Blocked),
        ("FUTURE", Class::Down),
        ("IDLE+CLOUD", Class::Idle),
        ("IDLE+DYNAMIC_NORM", Class::Idle),
        ("IDLE+FROBBED", Class::Unknown),
        ("UNKNOWN", Class::Unknown),
    ] {
        assert_eq!(class(state), expected, "{state}");
    }
}

#[test]
fn only_what_takes_work_now_gives_something() {
    for state in ["IDLE*", "IDLE+COMPLETING", "IDLE+PLANNED", "IDLE+DRAIN", "IDLE+FROBBED"] {
        let record =
            format!("n1 CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 Gres=gpu:4 State={state}");
        assert_eq!(node(&record).1, "0 cores 0 gpus 0 stranded", "{state}");
    }
}

#[test]
fn a_record_that_breaks_off_gives_nothing() {
    let (class, told) = node("n1 Arch=x86_64 CPUTot=8");
    assert_eq!((class, told.as_str()), (Class::Unknown, "0 cores 0 gpus 0 stranded"));
}

/// A node in a reservation that is in force, on all of the node.
fn reserved(state: &str, whose: &str) -> Class {
    let record = format!("n1 CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 State={state}");
    let lab = Lab::new().nodes(&[&record]).says(
        "show reservation",
        &format!(
            "ReservationName=course StartTime=1 EndTime=9999999999 Nodes=n[1-2] NodeCnt=2 \
             CoreCnt=16 {whose} State=ACTIVE\n"
        ),
    );
    free(&lab).0
}

#[test]
fn whose_a_reservation_is_decides() {
    let state = "IDLE+RESERVED";
    assert_eq!(reserved(state, "Users=bob Accounts=(null)"), Class::Reserved);
    assert_eq!(reserved(state, "Users=alice"), Class::ReservedForCaller);
    assert_eq!(reserved(state, "Accounts=physics"), Class::ReservedForCaller);
    assert_eq!(reserved(state, "Groups=staff"), Class::ReservedForCaller);
    assert_eq!(reserved(state, "Users=-alice"), Class::Reserved);
    assert_eq!(reserved(state, "Accounts=-physics,-chem"), Class::Reserved);
    // Jobs of those it is for go into it by themselves.
    assert_eq!(reserved(state, "Accounts=physics Flags=MAGNETIC"), Class::Idle);
    assert_eq!(reserved("IDLE", "Users=root Flags=MAINT,SPEC_NODES"), Class::Maintenance);
}

#[test]
fn a_reservation_of_some_cores_keeps_those() {
    // c01 of the lab: 2 of 8 cores are kept for a course.
    let lab = Lab::new()
        .nodes(&["c01 CPUTot=8 CPUAlloc=4 RealMemory=16000 AllocMem=200 State=MIXED+RESERVED"])
        .says(
            "show reservation",
            "ReservationName=training StartTime=1 EndTime=9999999999 Nodes=c01 NodeCnt=1 CoreCnt=2 \
             Flags=IGNORE_JOBS,SPEC_NODES   NodeName=c01 CoreIDs=0-1 TRES=cpu=2 Accounts=biology \
             State=ACTIVE\n",
        );
    // 8 - 4 - 2.
    assert_eq!(free(&lab), (Class::Room, "2 cores 0 gpus 0 stranded".to_owned()));
}

#[test]
fn what_comes_is_told_and_takes_nothing_yet() {
    let lab = Lab::new().says(
        "show reservation",
        &format!(
            "ReservationName=later StartTime={} EndTime={} Nodes=n1 Users=root Flags=MAINT \
             State=INACTIVE\nReservationName=soon StartTime={} EndTime={} Nodes=n1 Users=root \
             State=INACTIVE\n",
            NOW + 7200,
            NOW + 9000,
            NOW + 3600,
            NOW + 4000,
        ),
    );
    let cluster = lab.cluster();
    let frees = Frees::new(&cluster);
    assert_eq!(frees.nodes[0].class, Class::Idle);
    let until = frees.nodes[0].until.map(|(at, by)| (at.as_second(), by));
    assert_eq!(until, Some((NOW + 3600, "soon")));
}

#[test]
fn a_node_in_a_reservation_that_could_not_be_read_is_not_free() {
    let lab = Lab::new()
        .nodes(&["n1 CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 State=IDLE+RESERVED"])
        .refuses("show reservation", "Access denied\n");
    assert_eq!(free(&lab).0, Class::Reserved);
    assert!(!is_sure(&lab.cluster()));
}

#[test]
fn where_nodes_are_given_whole_a_part_is_nothing() {
    let mixed = "n1 CPUTot=8 CPUAlloc=4 RealMemory=16000 AllocMem=200 State=MIXED";
    let whole = Lab::new().nodes(&[mixed]).says(
        "show partition",
        "PartitionName=batch Nodes=n1 TotalNodes=1 State=UP OverSubscribe=EXCLUSIVE\n",
    );
    assert_eq!(free(&whole), (Class::Full, "0 cores 0 gpus 0 stranded".to_owned()));
    // In a partition that shares the node as well, the part can be had there.
    let both =
        Lab::new().says("show node", &format!("NodeName={mixed} Partitions=batch,shared\n")).says(
            "show partition",
            "PartitionName=batch State=UP OverSubscribe=EXCLUSIVE\n\
             PartitionName=shared State=UP MaxCPUsPerNode=3\n",
        );
    let cluster = both.cluster();
    let frees = Frees::new(&cluster);
    let by_queue = frees.by_queue(&cluster);
    assert_eq!(frees.nodes[0].cpus, Known::Value(4));
    assert_eq!(by_queue["batch"][0].cpus, Known::Value(0));
    assert_eq!(by_queue["shared"][0].cpus, Known::Value(3), "no more than the partition gives");
}

#[test]
fn slices_are_counted_apart_from_gpus() {
    let lab = Lab::new().nodes(&[
        "n1 CPUTot=64 CPUAlloc=8 RealMemory=500000 AllocMem=1000 State=MIXED \
         Gres=gpu:a100_1g.10gb:28 GresUsed=gpu:a100_1g.10gb:5(IDX:0-4)",
        "n2 CPUTot=64 CPUAlloc=0 RealMemory=500000 AllocMem=0 State=IDLE Gres=gpu:a100:4",
    ]);
    let cluster = lab.cluster();
    let sums = Sums::of(&Frees::new(&cluster).nodes);
    assert_eq!((sums.gpus, sums.gpus_free, sums.slices_free), (4, 4, 23));
}

#[test]
fn every_node_is_in_one_class_and_sums_add_up() {
    let states = ["IDLE", "DOWN*", "IDLE+DRAIN", "MIXED+PLANNED", "IDLE+FROBBED", "IDLE+DRAIN"];
    let records: Vec<String> = states
        .iter()
        .enumerate()
        .map(|(index, state)| {
            format!("n{index} CPUTot=8 CPUAlloc=0 RealMemory=16000 AllocMem=0 State={state}")
        })
        .collect();
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let cluster = Lab::new().nodes(&records).cluster();
    let sums = Sums::of(&Frees::new(&cluster).nodes);
    assert_eq!(sums.nodes, 6);
    assert_eq!(sums.classes.values().sum::<u64>(), 6);
    assert_eq!((sums.in_class(Class::Drained), sums.nodes_idle, sums.cpus_free), (2, 1, 8));
}

#[test]
fn every_class_has_a_word_of_its_own() {
    let mut words = Class::ALL.map(Class::word).to_vec();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Class::ALL.len());
}
