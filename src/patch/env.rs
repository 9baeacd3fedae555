//! Environment variables, set before the first command of the script.

use super::Proposal;
use super::script_edit::Edits;
use super::setting::{Sources, quoted};

pub(super) fn propose(
    sources: &Sources<'_>,
    name: &str,
    value: &str,
    edits: &mut Edits,
) -> Result<Proposal, String> {
    if sources.exports(name) {
        return Err(format!("--export already sets {name}"));
    }
    let assignments = sources.script.iter().flat_map(|script| &script.assignments);
    if let Some(set) = assignments.into_iter().find(|set| set.name == name) {
        return Err(format!("line {} already sets {name}", set.line));
    }
    let because = if sources.script.is_some() {
        format!("the script does not set {name}")
    } else {
        format!("set {name} before the program starts")
    };
    sources.add_command(format!("export {name}={}", quoted(value)), because, edits)
}
