//! Records of real clusters, and such as a real one may print, in and out.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;
use crate::model::{NodeBase, NodeFlag};

fn read(text: &str) -> Vec<Node> {
    nodes(text.as_bytes(), &Clock(TimeZone::UTC)).0
}

fn one(text: &str) -> Node {
    let mut all = read(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

/// `name:type total/used` of each resource.
fn shown(node: &Node) -> Vec<String> {
    let entry = |gres: &Gres| {
        let model = gres.model.as_deref().unwrap_or("-");
        format!("{}:{model} {}/{}", gres.name, gres.used, gres.total)
    };
    node.gres.iter().map(entry).collect()
}

#[test]
fn a_node_of_slurm_22_05_is_read() {
    // `scontrol --all --details --oneliner show node` with SLURM_TIME_FORMAT=%s, g03 of the lab.
    let node = one(
        "NodeName=g03 Arch=x86_64 CoresPerSocket=8  CPUAlloc=0 CPUEfctv=14 CPUTot=16 CPULoad=4.03 \
         AvailableFeatures=gpu,a100,hbm80 ActiveFeatures=gpu,a100,hbm80 Gres=gpu:a100:4(S:0-1) \
         GresDrain=N/A GresUsed=gpu:a100:0(IDX:N/A) NodeAddr=127.0.0.1 NodeHostName=vm Port=17016 \
         Version=22.05.8 OS=Linux 6.18.44-fc-v595 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=64000 \
         AllocMem=0 FreeMem=5206 Sockets=2 Boards=1 MemSpecLimit=1000 State=IDLE+DRAIN \
         ThreadsPerCore=1 TmpDisk=0 Weight=100 Owner=N/A MCS_label=N/A Partitions=gpu  \
         BootTime=1796034764 SlurmdStartTime=1796046897 LastBusyTime=1796046897 \
         CfgTRES=cpu=16,mem=62.50G,billing=71,gres/gpu=4,gres/gpu:a100=4 AllocTRES= CapWatts=n/a \
         CurrentWatts=0 AveWatts=0 Reason=ECC errors on GPU 2 | ticket #4711 [root@1796034858]\n",
    );
    assert_eq!((node.name.as_str(), node.state.base), ("g03", NodeBase::Idle));
    assert!(node.state.has(NodeFlag::Drain));
    assert_eq!(node.cpus.total, Known::Value(16));
    assert_eq!(node.cpus.effective, Known::Value(14), "two cores are the system's");
    assert_eq!(node.load, Known::Value(403));
    assert_eq!(node.memory.set_apart, Known::Value(Bytes(1000 * Bytes::MIB)));
    assert_eq!(shown(&node), ["gpu:a100 0/4"]);
    assert_eq!(*node.features, ["gpu", "a100", "hbm80"]);
    let reason = node.reason.expect("there");
    assert_eq!(reason.text, "ECC errors on GPU 2 | ticket #4711");
    assert_eq!(reason.by.as_deref(), Some("root"));
    assert_eq!(reason.at.get(), Timestamp::from_second(1_796_034_858).ok());
}

#[test]
fn a_node_of_slurm_20_11_is_read_over_several_lines() {
    // The form of `scontrol show node` without --oneliner, local times.
    let node = one(
        "NodeName=g01 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=48 CPUTot=64 CPULoad=12.03\n   \
         AvailableFeatures=a100,ib\n   ActiveFeatures=a100,ib\n   Gres=gpu:a100:4(S:0-1)\n   \
         CoreSpecCount=2 CPUSpecList=0-1,32-33 \n   RealMemory=515000 AllocMem=515000 \
         FreeMem=401234 Sockets=2 Boards=1\n   State=MIXED+DRAIN ThreadsPerCore=1 Weight=10\n   \
         Partitions=gpu,test\n   BootTime=2021-02-01T08:00:00\n   \
         CfgTRES=cpu=64,mem=515000M,billing=64,gres/gpu=4,gres/gpu:a100=4\n   \
         AllocTRES=cpu=48,mem=515000M,gres/gpu=2,gres/gpu:a100=2\n   \
         Reason=ECC errors = see ticket 12 [root@2021-02-20T10:00:00]\n\n",
    );
    assert_eq!(node.cpus.effective, Known::Value(60), "four CPUs are listed as set apart");
    assert_eq!(shown(&node), ["gpu:a100 2/4"]);
    assert_eq!(node.booted.get().map(Timestamp::as_second), Some(1_612_166_400));
    assert_eq!(*node.partitions, ["gpu", "test"]);
    assert_eq!(
        node.reason.map(|reason| reason.text).as_deref(),
        Some("ECC errors = see ticket 12")
    );
}

#[test]
fn a_reason_that_looks_like_a_record_renames_nothing() {
    let text = "NodeName=n1 State=IDLE+DRAIN CPUTot=8 Reason=State=IDLE NodeName=n2 per ticket \
                Gres=gpu:8 [ops@2026-11-02]\nNodeName=n3 State=IDLE\n";
    let all = read(text);
    assert_eq!(all.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["n1", "n3"]);
    assert!(all[0].state.has(NodeFlag::Drain) && all[0].gres.is_empty());
    let reason = all[0].reason.clone().expect("there");
    assert_eq!(reason.text, "State=IDLE NodeName=n2 per ticket Gres=gpu:8");
    assert!(reason.at.is_value(), "a day without a time");
}

#[test]
fn a_record_that_breaks_off_knows_nothing() {
    let node = one("NodeName=n1 Arch=x86_64 CoresPerSocket=8 CPUA");
    assert_eq!(node.state.base, NodeBase::Unknown);
    assert_eq!(node.cpus, Cpus::default());
    assert_eq!(node.memory.total, Known::NotGathered);
    assert_eq!(read("slurm_load_node error: Unable to contact slurm controller\n"), []);
}

#[test]
fn what_stands_in_brackets_is_no_count() {
    let gres = |list: &str| shown(&one(&format!("NodeName=n State=IDLE CPUAlloc=0 Gres={list}\n")));
    assert_eq!(gres("gpu:v100:4(S:0-1)"), ["gpu:v100 0/4"]);
    assert_eq!(gres("gpu:2(IDX:0,3)"), ["gpu:- 0/2"]);
    assert_eq!(gres("gpu:a100:2,gpu:v100:2"), ["gpu:a100 0/2", "gpu:v100 0/2"]);
    assert_eq!(gres("gpu"), ["gpu:- 0/1"]);
    assert_eq!(gres("(null)"), Vec::<String>::new());
    assert_eq!(
        gres("gpu:a100:4(S:0-3),nsight:no_consume:1,pfsdir:scratch:no_consume:1"),
        ["gpu:a100 0/4", "nsight:- 0/1", "pfsdir:scratch 0/1"],
    );
}

#[test]
fn slices_shards_and_shares_are_no_gpus() {
    let node = one("NodeName=n State=MIXED CPUAlloc=4 \
         Gres=gpu:a100_1g.10gb:28,shard:tesla:16(S:0),mps:400,gpu:a100:1 \
         GresUsed=gpu:a100_1g.10gb:3(IDX:0-2),shard:tesla:3(1/8,2/8),mps:50(50/100,0/100),\
         gpu:a100:0(IDX:N/A)\n");
    assert_eq!(
        shown(&node),
        ["gpu:a100_1g.10gb 3/28", "shard:tesla 3/16", "mps:- 50/400", "gpu:a100 0/1"],
    );
    assert_eq!((node.gpus(), node.count(GresKind::MigSlice)), (1, 28));
    assert_eq!(node.gpus_allocated, Known::Value(0));
}

#[test]
fn the_use_of_gpus_is_told_by_whoever_knows_it() {
    let used = |rest: &str| {
        let node = one(&format!("NodeName=n CPUAlloc=8 CPUTot=64 State=MIXED {rest}\n"));
        (shown(&node), node.gpus_allocated.to_string())
    };
    let said = |gres: &[&str], sum: &str| {
        (gres.iter().map(|&text| text.to_owned()).collect::<Vec<_>>(), sum.to_owned())
    };
    // A site that does not account for GPUs: only --details tells.
    assert_eq!(
        used("Gres=gpu:4 GresUsed=gpu:(null):4(IDX:0-3) CfgTRES=cpu=64 AllocTRES=cpu=8"),
        said(&["gpu:- 4/4"], "4"),
    );
    assert_eq!(used("Gres=gpu:4 CfgTRES=cpu=64 AllocTRES=cpu=8"), said(&["gpu:- n/a/4"], "n/a"));
    // One that does: nothing allocated is zero.
    assert_eq!(
        used("Gres=gpu:4 CfgTRES=cpu=64,gres/gpu=4 AllocTRES=cpu=8"),
        said(&["gpu:- 0/4"], "0"),
    );
    // Types that are accounted for one by one, without the sum.
    assert_eq!(
        used(
            "Gres=gpu:a100:2,gpu:v100:2 CfgTRES=cpu=64,gres/gpu:a100=2,gres/gpu:v100=2 \
             AllocTRES=cpu=8,gres/gpu:a100=1,gres/gpu:v100=2"
        ),
        said(&["gpu:a100 1/2", "gpu:v100 2/2"], "3"),
    );
    // Only the sum: of which type is not known.
    assert_eq!(
        used("Gres=gpu:a100:2,gpu:v100:2 CfgTRES=gres/gpu=4 AllocTRES=cpu=8,gres/gpu=3"),
        said(&["gpu:a100 n/a/2", "gpu:v100 n/a/2"], "3"),
    );
    // Two that disagree: the larger use.
    assert_eq!(
        used("Gres=gpu:4 GresUsed=gpu:1(IDX:0) AllocTRES=cpu=8,gres/gpu=2"),
        said(&["gpu:- 2/4"], "2"),
    );
}

#[test]
fn a_node_that_is_told_twice_is_one() {
    let all = read("NodeName=n1 State=IDLE\nNodeName=n1 State=DOWN\n");
    assert_eq!(all.len(), 1);
}

#[test]
fn a_state_word_that_is_not_known_is_said() {
    let (_, notices) =
        nodes(b"NodeName=n1 State=IDLE+FROBBED\nNodeName=n2 State=IDLE\n", &Clock(TimeZone::UTC));
    assert_eq!(notices.len(), 1);
    assert!(notices[0].text.contains("FROBBED"), "{}", notices[0].text);
}

proptest! {
    #[test]
    fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300), list in ".{0,40}") {
        let clock = Clock(TimeZone::UTC);
        let _ = nodes(&bytes, &clock);
        let _ = nodes(&[b"NodeName=n State=IDLE Gres=".as_slice(), &bytes].concat(), &clock);
        for gres in entries(&list) {
            prop_assert!(!gres.name.is_empty());
        }
    }
}
