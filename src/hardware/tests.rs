//! Names are those of `nvidia-smi -L`, of `AutoDetect` in gres.conf(5) and of the cases that are known
//! to mislead; what a model can do is checked against its maker's tables.

use proptest::prelude::*;

use super::*;

fn catalogue() -> Catalogue {
    Catalogue::built_in().expect("the built-in file is sound")
}

/// Model, and memory in GiB as least and most.
fn seen(kind: Option<&str>, features: &[&str]) -> (Option<String>, Option<(u64, u64)>) {
    let catalogue = catalogue();
    let device = catalogue.identify(kind, features);
    let gib = |bytes: Bytes| bytes.0 / Bytes::GIB;
    (
        device.model.map(|model| model.name.clone()),
        device.memory.map(|memory| (gib(memory.least), gib(memory.most))),
    )
}

fn known(name: &str, least: u64, most: u64) -> (Option<String>, Option<(u64, u64)>) {
    (Some(name.to_owned()), Some((least, most)))
}

#[test]
fn a_type_names_its_model_however_it_is_spelt() {
    for (kind, name, least, most) in [
        ("a100", "A100", 40, 80),
        ("A100_80GB", "A100", 80, 80),
        ("a100_80", "A100", 80, 80),
        ("nvidia_a100-sxm4-40gb", "A100", 40, 40),
        ("NVIDIA-A100-SXM4-80GB", "A100", 80, 80),
        ("tesla_v100-sxm2-32gb", "V100", 32, 32),
        ("Tesla-V100-SXM2-16GB", "V100", 16, 16),
        ("teslav100", "V100", 16, 32),
        ("nvidia_h100_80gb_hbm3", "H100", 80, 80),
        ("nvidia_h100_nvl", "H100 NVL", 94, 94),
        ("nvidia_geforce_rtx_2080_ti", "RTX 2080 Ti", 11, 11),
        ("rtx2080ti", "RTX 2080 Ti", 11, 11),
        ("nvidia_rtx_6000_ada_generation", "RTX 6000 Ada", 48, 48),
        ("rtx6000", "RTX 6000", 24, 24),
        ("nvidia_rtx_a6000", "RTX A6000", 48, 48),
        ("rtx_pro_6000", "RTX PRO 6000", 96, 96),
        ("nvidia_gh200_480gb", "GH200", 96, 144),
        ("amd_instinct_mi250x_oam", "MI250X", 64, 64),
        ("mi300a", "MI300A", 128, 128),
        ("pvc", "Max series", 48, 128),
        ("gaudi3", "Gaudi 3", 128, 128),
        ("l4", "L4", 24, 24),
        ("l40s", "L40S", 48, 48),
    ] {
        assert_eq!(seen(Some(kind), &[]), known(name, least, most), "{kind}");
    }
}

#[test]
fn a_word_that_names_no_model_names_none() {
    let nothing = (None, None);
    for kind in ["weirdgpu9000", "a1000", "tesla", "nvidia_driver_535", "", "gpu", "h10"] {
        assert_eq!(seen(Some(kind), &[]), nothing, "{kind}");
    }
    // Features of CPUs, memory, networks, racks and software.
    let features = [
        "epyc-7702",
        "xeon-gold",
        "256g",
        "ib",
        "hdr100",
        "nvidia_driver_535",
        "cuda12.2",
        "l4",
        "a2",
        "rack-a100x",
        "a100x-chassis",
        "intel_8380",
    ];
    assert_eq!(seen(None, &features), nothing);
    assert_eq!(catalogue().identify(Some("weirdgpu9000"), &[]).name(), "weirdgpu9000");
}

#[test]
fn features_name_what_an_untyped_device_is() {
    assert_eq!(seen(None, &["a100", "ib"]), known("A100", 40, 80));
    assert_eq!(seen(None, &["gpu_model=NVIDIA-A100-SXM4-80GB"]), known("A100", 80, 80));
    assert_eq!(seen(None, &["v100-32gb"]), known("V100", 32, 32));
    assert_eq!(seen(None, &["gpumem80", "a100"]), known("A100", 80, 80));
    // Two models on one node, and no type that tells them apart.
    assert_eq!(seen(None, &["a100", "v100"]), (None, None));
    assert_eq!(seen(Some("v100"), &["a100", "v100"]), known("V100", 16, 32));
}

#[test]
fn names_that_disagree_pin_no_memory() {
    assert_eq!(seen(Some("a100-80gb"), &["a100-40gb"]), known("A100", 40, 80));
    assert_eq!(seen(Some("a100-80gb"), &["a100-80gb"]), known("A100", 80, 80));
}

#[test]
fn a_slice_has_the_memory_of_its_profile() {
    assert_eq!(seen(Some("a100_1g.10gb"), &[]), known("A100", 10, 10));
    assert_eq!(seen(Some("nvidia_a100_80gb_pcie_3g.40gb"), &[]), known("A100", 40, 40));
    assert_eq!(seen(Some("1g.5gb"), &[]), (None, Some((5, 5))));
    // The node is cut, and the type does not say how.
    assert_eq!(seen(None, &["a100", "1g.10gb"]), known("A100", 10, 10));
    let catalogue = catalogue();
    let slice = catalogue.identify(Some("h100_1g.12gb"), &[]);
    assert_eq!((slice.can(Ability::Fp8), slice.can(Ability::Nvlink)), (Some(true), Some(false)));
    assert_eq!(slice.name(), "H100 1g.12gb");
}

#[test]
fn unidentified_is_not_incapable() {
    let catalogue = catalogue();
    let unknown = catalogue.identify(Some("weirdgpu9000"), &[]);
    assert_eq!((unknown.can(Ability::Bf16), unknown.holds(Bytes(1))), (None, None));
    let a100 = catalogue.identify(Some("a100"), &[]);
    let gib = |gib| Bytes(gib * Bytes::GIB);
    assert_eq!(a100.holds(gib(40)), Some(true));
    assert_eq!(a100.holds(gib(80)), None);
    assert_eq!(a100.holds(gib(81)), Some(false));
}

/// Generations by their makers' tables: bf16 from Ampere on, fp8 from Ada on, fp4 from Blackwell on.
#[test]
fn generations_can_what_their_makers_say() {
    let catalogue = catalogue();
    let can = |name: &str, ability| catalogue.identify(Some(name), &[]).can(ability);
    for (name, bf16, fp8, fp4) in [
        ("v100", false, false, false),
        ("t4", false, false, false),
        ("a30", true, false, false),
        ("rtx4090", true, true, false),
        ("h20", true, true, false),
        ("b200", true, true, true),
        ("rtx5090", true, true, true),
        ("mi100", true, false, false),
        ("mi250x", true, false, false),
        ("mi300x", true, true, false),
        ("mi355x", true, true, true),
    ] {
        let found = [Ability::Bf16, Ability::Fp8, Ability::Fp4].map(|ability| can(name, ability));
        assert_eq!(found, [Some(bf16), Some(fp8), Some(fp4)], "{name}");
    }
    assert_eq!(can("mi300x", Ability::Cuda), Some(false));
    assert_eq!(can("a40", Ability::Mig), Some(false));
    assert_eq!(can("h800", Ability::Fp64), Some(false));
    // Whether an A100 has NVLink depends on its board.
    assert_eq!(can("a100", Ability::Nvlink), None);
}

#[test]
fn every_name_finds_its_own_model_and_every_figure_has_a_source() {
    let catalogue = catalogue();
    for model in catalogue.models() {
        for name in &model.names {
            let found = catalogue.identify(Some(name), &[]).model;
            assert_eq!(found.map(|found| &found.name), Some(&model.name), "{name}");
        }
        let source = model.watts.as_ref().map(|watts| watts.source.as_str());
        assert!(
            source.is_none_or(|source| {
                let vendor =
                    ["NVIDIA ", "AMD ", "Intel, "].iter().any(|name| source.starts_with(name));
                source == "believed" || source.starts_with("https://") || vendor
            }),
            "{}",
            model.name
        );
    }
    assert!(catalogue.models().len() > 70, "{}", catalogue.models().len());
}

#[test]
fn a_site_adds_and_corrects() {
    let mut catalogue = Catalogue::default();
    let mut targets = BTreeMap::new();
    catalogue.add("built in", BUILT_IN, &mut targets).expect("sound");
    let site = r#"
        [models]
        ours = [
            { name = "H100", target = "sm_90", gib = [64] },
            { name = "Cat 9", target = "sm_90", gib = [7], names = ["cat"] },
        ]
    "#;
    catalogue.add("site", site, &mut targets).expect("sound");
    catalogue.index();
    let memory = |name: &str| catalogue.identify(Some(name), &[]).memory.map(|m| m.most.0 >> 30);
    assert_eq!((memory("h100"), memory("cat")), (Some(64), Some(7)));
    let error = |text: &str| {
        let mut targets = targets.clone();
        Catalogue::default().add("site", text, &mut targets).expect_err("refused").to_string()
    };
    assert_eq!(
        error("[models]\nx = [{ name = \"X\", target = \"sm_9\" }]"),
        "site: 'X' has an unknown target 'sm_9'"
    );
    assert!(error("[models]\nx = [{ name = \"X\" }]").starts_with("site: line 2: "));
}

proptest! {
    #[test]
    fn any_words_are_identified_or_not(kind in ".{0,40}", feature in "[ -~]{0,40}") {
        let catalogue = catalogue();
        let device = catalogue.identify(Some(&kind), &[&feature]);
        prop_assert!(device.memory.is_none_or(|memory| memory.least <= memory.most));
    }
}
