//! What the commands of a script say about its environment, by their words alone.
//!
//! A line is looked at by itself: no variable is expanded, no function followed, and a here
//! document counts as commands. Enough to know that something is there; never proof that it ran.

use serde::Serialize;

use super::{Script, text};

/// A line that prepares an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activation {
    /// The line, from 1.
    pub line: usize,
    /// The command, blanks trimmed.
    pub text: String,
}

/// A variable that the body sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The line, from 1.
    pub line: usize,
    /// The variable.
    pub name: String,
}

/// Reads one command line of the body.
pub(super) fn read(script: &mut Script, line: usize, bytes: &[u8]) {
    let whole = text(bytes);
    for command in whole.split([';', '&', '|']).map(str::trim).filter(|part| !part.is_empty()) {
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        if activates(&words) {
            script.activations.push(Activation { line, text: command.to_owned() });
        }
        if script.container.is_none() && contains(&words) {
            script.container = Some(line);
        }
        for name in assigned(&words) {
            script.assignments.push(Assignment { line, name: name.to_owned() });
        }
    }
}

fn activates(words: &[&str]) -> bool {
    match words {
        ["ml", "purge" | "list" | "avail" | "use" | "unload", ..] => false,
        ["module", verb, ..] => matches!(*verb, "load" | "add" | "swap" | "switch" | "restore"),
        ["source" | ".", path, ..] => *path == "activate" || path.ends_with("/activate"),
        ["conda" | "mamba" | "micromamba", verb, ..] => *verb == "activate",
        ["spack", verb, ..] => matches!(*verb, "load" | "env"),
        ["ml", _, ..] => true,
        _ => false,
    }
}

fn contains(words: &[&str]) -> bool {
    let runs = |program: &str| {
        let at = words.iter().position(|word| word.rsplit('/').next() == Some(program));
        at.is_some_and(|at| {
            words.iter().skip(at + 1).any(|word| matches!(*word, "exec" | "run" | "shell"))
        })
    };
    ["apptainer", "singularity", "podman", "docker", "enroot"].into_iter().any(runs)
        || words.iter().any(|word| word.starts_with("--container-image"))
}

/// The variables that a command sets: `export A=1 B=2`, `A=1`, `setenv A 1`. A variable set for
/// one command only (`A=1 program`) counts too: the script has its own will about it.
fn assigned<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let rest = match words {
        ["setenv", name, ..] => return vec![*name],
        ["export" | "declare" | "typeset" | "local" | "readonly" | "env", rest @ ..] => rest,
        other => other,
    };
    let settings = rest.iter().skip_while(|word| word.starts_with('-'));
    let names = settings.map_while(|word| Some(word.split_once('=')?.0));
    names.filter(|name| is_name(name)).collect()
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
