//! What the README shows is what the program prints.

use std::fs;
use std::process::Command;

#[test]
fn the_example_is_the_demo_s_own_output() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(readme).expect("the README");
    let (_, rest) = readme.split_once("```text\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let output = Command::new(env!("CARGO_BIN_EXE_jobwise"))
        .args(["diagnose", "--demo"])
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "80")
        .env("JOBWISE_HOME", "/nonexistent")
        .output()
        .expect("jobwise runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    // To renew it: paste what `jobwise diagnose --demo` prints.
    // A blank at the end of a line of the diff is one that an editor may have taken.
    let lines =
        |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&printed), lines(example));
}

/// Likewise the answers in the documentation: each block of text follows the command in the line
/// above it.
#[test]
fn the_examples_of_the_documentation_are_the_program_s_own_output() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/compared-with-slurmwise.md");
    let page = fs::read_to_string(page).expect("the page");
    let mut examples = 0;
    for (before, rest) in
        page.split("\n`jobwise ").skip(1).filter_map(|part| part.split_once("`:\n\n```text\n"))
    {
        let (example, _) = rest.split_once("```").expect("its end");
        let output = Command::new(env!("CARGO_BIN_EXE_jobwise"))
            .args(before.split(' '))
            .env("LANG", "C.UTF-8")
            .env("COLUMNS", "80")
            .env("JOBWISE_HOME", "/nonexistent")
            .output()
            .expect("jobwise runs");
        assert_eq!(String::from_utf8(output.stdout).expect("text"), example, "jobwise {before}");
        examples += 1;
    }
    assert_eq!(examples, 3);
}
