//! The table in the crate's documentation is the truth about who imports whom.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// Module -> group, read from the table in `src/lib.rs`.
fn table() -> BTreeMap<String, usize> {
    let page = fs::read_to_string(Path::new(SRC).join("lib.rs")).expect("the crate's page");
    let mut groups = BTreeMap::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let mut cells = row.split(" | ");
        let Some(Ok(group)) = cells.next().map(str::parse::<usize>) else { continue };
        for module in cells.next().unwrap_or("").split(", ") {
            groups.insert(module.trim_matches('`').to_owned(), group);
        }
    }
    groups
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The modules that a source names after `crate::`; documentation and comments do not count.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        for part in code.split("crate::").skip(1) {
            let name: String =
                part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            found.push((number + 1, name));
        }
    }
    found
}

#[test]
fn no_module_imports_a_later_layer_or_a_sibling() {
    let groups = table();
    let mut wrong = Vec::new();
    for path in sources(Path::new(SRC)) {
        let inside = path.strip_prefix(SRC).expect("below src");
        let module = inside.iter().next().and_then(|part| part.to_str()).expect("a name");
        let module = module.trim_end_matches(".rs");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let group = groups.get(module).unwrap_or_else(|| panic!("{module} is not in the table"));
        for (line, import) in imports(&fs::read_to_string(&path).expect("a source")) {
            let allowed =
                import == module || groups.get(&import).is_some_and(|other| other < group);
            if !allowed {
                wrong.push(format!("{}:{line}: {module} imports {import}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_names_exactly_the_modules_there_are() {
    let page = fs::read_to_string(Path::new(SRC).join("lib.rs")).expect("the crate's page");
    let declared: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let mut named: Vec<String> = table().into_keys().collect();
    named.sort_unstable();
    let mut sorted = declared.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, named);
    // Declared in the order of the table, so that reading top to bottom meets each module once.
    let groups: Vec<usize> = declared.iter().map(|module| table()[*module]).collect();
    assert!(groups.is_sorted(), "{declared:?}");
}
