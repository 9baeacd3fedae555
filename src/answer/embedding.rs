//! Which embedder answers here: where the model and its library are, and what was embedded before.
//!
//! Looks for files and loads none of them before a text is to be embedded. Nothing is fetched: that
//! is `kb model install`. What was asked is kept as a hash with its vector, so that the same
//! question does not load the model again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::World;
use super::queries::Queries;
use crate::config::{Embeddings, Retrieval};
use crate::host::packages::{LIBRARY, MODEL, Package};
use crate::host::{FileErrorKind, Runner, Store, System};
use crate::model::Notice;
use crate::retrieve::{EmbedError, Embedder, HashEmbedder, MiniLm, NoModel, Space, model_space};

/// The folder of the model below that of what a person has installed.
pub(super) const FOLDER: &str = "model";

/// A file that was looked at, in the order of looking.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Candidate {
    /// `model` or `library`.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Whose place that is.
    pub place: &'static str,
    /// Whether it is the one that is used.
    pub used: bool,
    /// Why it is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// The places where the model and its library may be.
#[derive(Debug)]
pub(super) struct Places {
    folders: Vec<(&'static str, PathBuf)>,
    /// Python environments, which may have the library.
    pythons: Vec<(&'static str, PathBuf)>,
}

impl Places {
    pub(super) fn of(settings: &Retrieval, machine: &dyn Runner) -> Self {
        let own = own_folder(machine).unwrap_or_default();
        let folders = [
            ("JOBWISE_EMBEDDING_MODEL", settings.model_folder.clone()),
            ("the site's", settings.site_folder.clone()),
            ("your own", own),
        ];
        let set = |name: &str| machine.env(name).map(PathBuf::from).unwrap_or_default();
        let pythons = [
            ("Python environment", set("VIRTUAL_ENV")),
            ("conda environment", set("CONDA_PREFIX")),
        ];
        let given = |(_, path): &(&str, PathBuf)| !path.as_os_str().is_empty();
        Self {
            folders: folders.into_iter().filter(given).collect(),
            pythons: pythons.into_iter().filter(given).collect(),
        }
    }

    /// Every candidate, and the bytes of the model and path of the library to use. Stops at the
    /// first that will do, unless `all` are wanted.
    pub(super) fn look(&self, all: bool) -> Found {
        let mut found = Found::default();
        for (place, folder) in &self.folders {
            if found.model.is_none() || all {
                let path = folder.join(MODEL.file);
                let read = read(&MODEL, &path);
                found.consider("model", place, &path, read.as_ref().err().cloned());
                if let (Ok(bytes), None) = (read, &found.model) {
                    found.model = Some(bytes);
                }
            }
        }
        for (place, folder) in &self.folders {
            if found.library.is_none() || all {
                let path = folder.join(LIBRARY.file);
                let why_not = read(&LIBRARY, &path).err();
                found.consider("library", place, &path, why_not);
            }
        }
        for (place, environment) in &self.pythons {
            if found.library.is_none() || all {
                for path in of_python(environment) {
                    found.consider("library", place, &path, incomplete(&path));
                }
            }
        }
        found
    }
}

/// Where `kb model install` puts what it installs.
pub(super) fn own_folder(machine: &dyn Runner) -> Option<PathBuf> {
    Some(Store::locate_data(machine)?.root().join(FOLDER))
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) model: Option<Vec<u8>>,
    pub(super) library: Option<PathBuf>,
}

impl Found {
    fn consider(
        &mut self,
        what: &'static str,
        place: &'static str,
        path: &Path,
        why_not: Option<String>,
    ) {
        let earlier = self.candidates.iter().any(|known| known.what == what && known.used);
        let used = why_not.is_none() && !earlier;
        let why_not = why_not.or_else(|| earlier.then(|| "an earlier one is used".to_owned()));
        if used && what == "library" {
            self.library = Some(path.to_owned());
        }
        let path = path.to_owned();
        self.candidates.push(Candidate { what, path, place, used, why_not });
    }

    /// Why there is no model or no library, if somebody has tried to have one.
    fn trouble(&self) -> Option<String> {
        let missing = |why: &str| why == absent();
        let told = self.candidates.iter().find_map(|candidate| {
            let why = candidate.why_not.as_deref().filter(|why| !missing(why))?;
            Some(format!("{}: {why}", candidate.path.display()))
        });
        let half = match (&self.model, &self.library) {
            (Some(_), None) => {
                Some("the model is here, the library that runs it is not".to_owned())
            }
            (None, Some(path)) if path.ends_with(LIBRARY.file) && told.is_none() => {
                Some("the library is here, the model is not".to_owned())
            }
            _ => None,
        };
        told.or(half)
    }
}

fn absent() -> String {
    "no such file".to_owned()
}

/// The bytes of a file that we install, verified; or why not.
fn read(package: &Package, path: &Path) -> Result<Vec<u8>, String> {
    let content = System::default().open(path).map_err(|error| match error.kind {
        FileErrorKind::Absent => absent(),
        _ => error.reason,
    })?;
    if content.size() != package.bytes {
        let (found, expected) = (content.size(), package.bytes);
        return Err(format!("it has {found} bytes, not {expected}: incomplete, or another"));
    }
    let bytes = content.read_all(package.bytes).map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    package.verify(&name, &bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The libraries in a Python environment, the newest version first.
fn of_python(environment: &Path) -> Vec<PathBuf> {
    let machine = System::default();
    let mut found = Vec::new();
    let lib = environment.join("lib");
    for python in machine.list(&lib).unwrap_or_default() {
        if !python.starts_with("python3") {
            continue;
        }
        let folder = lib.join(python).join("site-packages/onnxruntime/capi");
        let mut names = machine.list(&folder).unwrap_or_default();
        names.retain(|name| name.starts_with("libonnxruntime.so."));
        names.sort_by_key(|name| std::cmp::Reverse(version(name)));
        found.extend(names.into_iter().map(|name| folder.join(name)));
    }
    found
}

fn version(name: &str) -> Vec<u64> {
    name.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Why a library that is not ours cannot even be tried: the loader ends the process with a signal
/// when a part of the file is missing. Its last part is the table of sections.
fn incomplete(path: &Path) -> Option<String> {
    const HEADER: usize = 64;
    let content = match System::default().open(path) {
        Ok(content) => content,
        Err(error) => return Some(error.reason),
    };
    let mut header = [0; HEADER];
    let whole = content.read_at(0, &mut header).is_ok_and(|read| read == HEADER);
    if !whole || !header.starts_with(b"\x7fELF\x02\x01") {
        return Some("it is no library of this machine".to_owned());
    }
    // Fields of the header of a 64-bit ELF file: where the table is, the size and number of its rows.
    let number = |at: usize, bytes: usize| {
        let field = header.iter().skip(at).take(bytes).rev();
        field.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (start, row, rows) = (number(40, 8), number(58, 2), number(60, 2));
    let end = start.saturating_add(row * rows);
    (end > content.size()).then(|| "it is incomplete".to_owned())
}

/// The embedder of this run, as the settings say, and what has to be told about it afterwards. The
/// model is taken only where what this machine has may change the answer.
pub(super) fn choose(world: World<'_>) -> (Box<dyn Embedder>, Told) {
    let settings = &world.config.settings.retrieval;
    match settings.embeddings {
        Embeddings::Hash => (Box::new(HashEmbedder), Told(None)),
        _ if !world.live => (Box::new(NoModel), Told(None)),
        Embeddings::Auto | Embeddings::Model => {
            let model = Arc::new(OnDemand {
                places: Places::of(settings, world.machine),
                threads: settings.threads,
                expected: settings.embeddings == Embeddings::Model,
                loaded: OnceLock::new(),
                queries: world.store.map(|store| Mutex::new(Queries::of(store.clone()))),
            });
            (Box::new(Arc::clone(&model)), Told(Some(model)))
        }
    }
}

/// What has to be told about the embedder.
#[derive(Clone)]
pub(super) struct Told(Option<Arc<OnDemand>>);

impl Told {
    /// Why the model was not used although it was asked for something.
    pub(super) fn notice(&self) -> Option<Notice> {
        let model = self.0.as_ref()?;
        let Err(EmbedError::Unusable(reason)) = model.loaded.get()? else { return None };
        let hint = if model.expected && reason == NONE {
            "run: jobwise kb model install"
        } else {
            "jobwise kb model where says what was looked at"
        };
        let text = format!("the embedding model was not used: {reason}");
        Some(Notice::warning("embedding-model", text).hint(hint))
    }
}

/// That there is none, where one was asked for.
const NONE: &str = "it is not installed";

/// The model, loaded when the first text needs it.
struct OnDemand {
    places: Places,
    threads: usize,
    /// Whether somebody has asked for the model by name.
    expected: bool,
    loaded: OnceLock<Result<MiniLm, EmbedError>>,
    queries: Option<Mutex<Queries>>,
}

impl OnDemand {
    fn load(&self) -> Result<MiniLm, EmbedError> {
        let mut found = self.places.look(false);
        match (found.model.take(), found.library.take()) {
            (Some(model), Some(library)) => MiniLm::open(model, &library, self.threads),
            (model, library) => {
                let found = Found { model, library, ..found };
                Err(match found.trouble() {
                    Some(trouble) => EmbedError::Unusable(trouble),
                    None if self.expected => EmbedError::Unusable(NONE.to_owned()),
                    None => EmbedError::NoModel,
                })
            }
        }
    }

    fn run(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let loaded = self.loaded.get_or_init(|| self.load());
        loaded.as_ref().map_err(Clone::clone)?.embed(texts)
    }
}

impl Embedder for Arc<OnDemand> {
    fn space(&self) -> Space {
        model_space()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        // One text is a question, and questions come again; sections are kept in the index.
        let ([text], Some(queries)) = (texts, &self.queries) else { return self.run(texts) };
        let mut queries = queries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vector) = queries.get(text) {
            return Ok(vec![vector]);
        }
        let vectors = self.run(texts)?;
        if let [vector] = vectors.as_slice() {
            queries.keep(text, vector);
        }
        Ok(vectors)
    }
}
