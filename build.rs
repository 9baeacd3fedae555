//! Embeds `knowledge/*.md`, so that adding a failure family is adding one file.
//!
//! Decides nothing about the files: it lists them, sorted by name, as a table of name, front matter
//! as JSON, and text. JSON is read several times faster than YAML, at every start of the program;
//! front matter that is no YAML is left empty here and refused by the program, with file and line.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

#[expect(
    clippy::disallowed_methods,
    reason = "a build script is not the program: it has no Runner"
)]
fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    let folder = Path::new(&root).join("knowledge");
    println!("cargo:rerun-if-changed=build.rs");
    // A folder counts as changed when a file in it is added, removed or written.
    println!("cargo:rerun-if-changed=knowledge");

    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_markdown && name != "README.md" {
            names.push(name);
        }
    }
    names.sort();

    let mut table = String::from("&[\n");
    for name in names {
        let path = folder.join(&name);
        let front = front_matter(&fs::read_to_string(&path)?);
        let path = path.display().to_string();
        // Writing to a String cannot fail.
        let _ = writeln!(table, "    ({name:?}, {front:?}, include_str!({path:?})),");
    }
    table.push_str("]\n");
    fs::write(Path::new(&target).join("knowledge.rs"), table)
}

fn front_matter(text: &str) -> String {
    let yaml = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let value = yaml.and_then(|(yaml, _)| serde_yaml::from_str::<serde_json::Value>(yaml).ok());
    value.map(|value| value.to_string()).unwrap_or_default()
}
