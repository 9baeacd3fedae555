//! Environment variables, set before the first command of the script.

use super::script_edit::Edits;
use super::setting::Sources;
use super::{Place, Proposal};

pub(super) fn propose(
    sources: &Sources<'_>,
    name: &str,
    value: &str,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    let to = format!("export {name}={}", quoted(value));
    let because = format!("the script does not set {name}");
    if sources.exports(name) {
        return Err(format!("--export already sets {name}"));
    }
    let (Some(script), Some(bytes)) = (&sources.script, sources.bytes) else {
        let because = format!("set {name} before the program starts");
        return Ok(Proposal { place: Place::NotAtHand, from: None, to, because });
    };
    if let Some(set) = script.assignments.iter().find(|set| set.name == name) {
        return Err(format!("line {} already sets {name}", set.line));
    }
    if !script.is_posix_shell() {
        let interpreter = script.shebang.as_deref().unwrap_or("no interpreter line");
        return Err(format!(
            "'{interpreter}' is not a shell that has export: set {to} by its means"
        ));
    }
    let at = script.first_command.map_or(bytes.len(), |first| first.offset);
    edits.insert_command(bytes, at, &to);
    Ok(Proposal { place: Place::Script, from: None, to, because })
}

/// The value as a shell takes it literally.
fn quoted(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
    if value.bytes().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}
