//! The embedding model and its library on this machine: what they are, where they are, installing
//! and removing them.
//!
//! The only answers that fetch something or remove it. Nothing is kept before everything that was
//! asked for is there and verified, and each file is replaced whole.

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use super::embedding::Candidate;
use super::embedding::{self, Places};
use super::queries::Queries;
use super::{AnswerError, World};
use crate::host::packages::{LARGEST, LIBRARY, MODEL, Package, PackageError, is_wheel};
use crate::host::{FileError, FileErrorKind, Runner, Store};
use crate::model::Notice;
use crate::retrieve::{MiniLm, model_space};

/// What can be installed.
#[derive(Debug, Serialize)]
pub struct Models {
    /// `jobwise/kb-model-list/1`.
    pub schema: &'static str,
    /// One row a file.
    pub files: Vec<Row>,
}

/// A file that can be installed.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What it is for.
    pub what: &'static str,
    /// The name of what it holds.
    pub name: String,
    /// The package of the Python registry that it is published in.
    pub package: &'static str,
    /// The file.
    pub file: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes to fetch.
    pub download: u64,
    /// Its SHA-256.
    pub sha256: &'static str,
    /// Under which terms it is published.
    pub licence: &'static str,
}

const PACKAGES: [(&str, Package); 2] = [("model", MODEL), ("library", LIBRARY)];

/// Lists what can be installed.
pub fn list() -> Models {
    let files = PACKAGES.map(|(what, package)| Row {
        what,
        name: match what {
            "model" => format!("{}, int8", model_space().model),
            _ => "ONNX Runtime".to_owned(),
        },
        package: package.requirement,
        file: package.file,
        bytes: package.bytes,
        download: package.download,
        sha256: package.sha256,
        licence: package.licence,
    });
    Models { schema: "jobwise/kb-model-list/1", files: files.into() }
}

/// Which model is used here.
#[derive(Debug, Serialize)]
pub struct Whereabouts {
    /// `jobwise/kb-model-where/1`.
    pub schema: &'static str,
    /// Whether texts can be embedded here.
    pub works: bool,
    /// Every file that was looked at, in that order.
    pub candidates: Vec<Candidate>,
    /// Why it does not work.
    pub notices: Vec<Notice>,
}

/// Says which model and library are used, and why the others are not. Tries them.
pub fn whereabouts(world: World<'_>) -> Whereabouts {
    let settings = &world.config.settings.retrieval;
    let found = Places::of(settings, world.machine).look(true);
    let mut notices = Vec::new();
    let mut works = false;
    match (found.model, found.library) {
        (Some(model), Some(library)) => match MiniLm::open(model, &library, settings.threads) {
            Ok(_) => works = true,
            Err(error) => notices.push(Notice::warning("embedding-model", error.to_string())),
        },
        _ => notices.push(
            Notice::info("embedding-model", "no embedding model is used here")
                .hint("run: jobwise kb model install"),
        ),
    }
    let schema = "jobwise/kb-model-where/1";
    Whereabouts { schema, works, candidates: found.candidates, notices }
}

/// What was installed.
#[derive(Debug, Serialize)]
pub struct Installed {
    /// `jobwise/kb-model-install/1`.
    pub schema: &'static str,
    /// One a file.
    pub files: Vec<InstalledFile>,
    /// What is missing still.
    pub notices: Vec<Notice>,
}

/// A file that is in its place.
#[derive(Debug, Serialize)]
pub struct InstalledFile {
    /// `model` or `library`.
    pub what: &'static str,
    /// Where.
    pub path: PathBuf,
    /// Where it came from; `None` where it was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Where something is installed from, and to.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Files, packages, or folders with them, in place of the registry.
    pub from: Vec<PathBuf>,
    /// The folder, in place of the user's own.
    pub to: Option<PathBuf>,
}

/// Installs the model and its library.
pub fn install(world: World<'_>, wanted: &Wanted) -> Result<Installed, AnswerError> {
    let store = target(world, wanted.to.as_deref())?;
    let mut given: Vec<(String, Vec<u8>)> = Vec::new();
    for path in &wanted.from {
        given.extend(offered(world.machine, path)?);
    }
    // Everything is there and verified before anything is kept.
    let mut got = Vec::new();
    let mut notices = Vec::new();
    for (what, package) in PACKAGES {
        let source = if is_there(&store, &package) {
            None
        } else if wanted.from.is_empty() {
            Some((package.requirement.to_owned(), package.download(store.root())?))
        } else if let Some(picked) = pick(&package, &given)? {
            Some(picked)
        } else {
            let text = format!("the {what} was not among what was given");
            let hint = format!("it is {} of {}", package.file, package.requirement);
            notices.push(Notice::warning("not-given", text).hint(hint));
            continue;
        };
        got.push((what, package, source));
    }
    if got.is_empty() {
        return Err(AnswerError::NothingGiven);
    }
    let mut files = Vec::new();
    for (what, package, source) in got {
        let from = match source {
            None => None,
            Some((from, bytes)) => {
                store.replace(package.file, &bytes)?;
                Some(from)
            }
        };
        files.push(InstalledFile { what, path: store.root().join(package.file), from });
    }
    Ok(Installed { schema: "jobwise/kb-model-install/1", files, notices })
}

/// What was removed.
#[derive(Debug, Serialize)]
pub struct Removed {
    /// `jobwise/kb-model-remove/1`.
    pub schema: &'static str,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// Removes what was installed.
pub fn remove(world: World<'_>, from: Option<&Path>) -> Result<Removed, AnswerError> {
    let store = target(world, from)?;
    let mut files = Vec::new();
    for (_, package) in PACKAGES {
        if store.remove(package.file)? {
            files.push(store.root().join(package.file));
        }
    }
    if let Some(cache) = world.store {
        Queries::forget(cache);
    }
    Ok(Removed { schema: "jobwise/kb-model-remove/1", files })
}

/// The folder that is meant: one that is named is for everybody who may read it.
fn target(world: World<'_>, named: Option<&Path>) -> Result<Store, AnswerError> {
    match named {
        Some(folder) => Ok(Store::at(folder).shared()),
        None => embedding::own_folder(world.machine).map(Store::at).ok_or(AnswerError::NoStore),
    }
}

/// Whether the very file is in its place already.
fn is_there(store: &Store, package: &Package) -> bool {
    let bytes = store.read(package.file).ok().flatten();
    bytes.is_some_and(|bytes| package.verify(package.file, &bytes).is_ok())
}

/// The files of a path that may be what is wanted, with their names.
fn offered(machine: &dyn Runner, path: &Path) -> Result<Vec<(String, Vec<u8>)>, AnswerError> {
    let read = |path: &Path| -> Result<(String, Vec<u8>), FileError> {
        let content = machine.open(path)?;
        let bytes = content.read_all(LARGEST).map_err(|error| FileError::from_io(path, &error))?;
        Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes))
    };
    match read(path) {
        Err(error) if error.kind == FileErrorKind::Directory => {
            let names = machine.list(path)?.into_iter();
            let known = |name: &str| PACKAGES.iter().any(|(_, package)| package.file == name);
            let names = names.filter(|name| known(name) || is_wheel(name));
            names.map(|name| Ok(read(&path.join(name))?)).collect()
        }
        other => Ok(vec![other?]),
    }
}

/// The file of a package among what was given: itself, or in its package. One that bears its name
/// and is another is refused.
fn pick(
    package: &Package,
    given: &[(String, Vec<u8>)],
) -> Result<Option<(String, Vec<u8>)>, PackageError> {
    let project = package.requirement.split("==").next().unwrap_or_default().replace('-', "_");
    let mut refused = None;
    for (name, bytes) in given {
        let (verified, named) = if is_wheel(name) {
            (package.unpack(name, bytes), name.starts_with(&project))
        } else {
            let verified = package.verify(name, bytes).map(|()| bytes.clone());
            (verified, name == package.file)
        };
        match verified {
            Ok(bytes) => return Ok(Some((name.clone(), bytes))),
            Err(error) if named => refused = refused.or(Some(error)),
            Err(_) => {}
        }
    }
    refused.map_or(Ok(None), Err)
}
