//! The dependency tree stays small, and each direct dependency says why it is there.

use std::fs;

/// Packages in `Cargo.lock`. Raise it only with a reason in the commit.
const BUDGET: usize = 180;

fn read(name: &str) -> String {
    fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).expect("a file of ours")
}

#[test]
fn the_tree_stays_within_its_budget() {
    let packages = read("Cargo.lock").matches("[[package]]").count();
    assert!(packages <= BUDGET, "{packages} packages, budget {BUDGET}");
}

#[test]
fn each_dependency_says_why() {
    let manifest = read("Cargo.toml");
    let (_, rest) = manifest.split_once("\n[dependencies]\n").expect("dependencies");
    let section = rest.split("\n[").next().expect("a section");
    let mut explained = false;
    for line in section.lines().filter(|line| !line.is_empty()) {
        let is_reason = line.starts_with('#');
        assert!(explained || is_reason, "no reason above: {line}");
        explained = is_reason;
    }
}
