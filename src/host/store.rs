//! The one place where jobwise writes: its own folder, and a file that somebody asked for by name.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{FileErrorKind, Runner, System};

/// What we write is much smaller.
const LARGEST: u64 = 256 << 20;

/// Why the folder could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}", path = path.display())]
pub struct StoreError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's words.
    pub source: io::Error,
}

/// Files that jobwise made for itself and can make again, in one folder.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    /// The mode of folders that are made: 0700, or 0755 where others are to read.
    folders: u32,
}

impl Store {
    /// `$JOBWISE_HOME`, or `jobwise` below `$XDG_CACHE_HOME` or `~/.cache`; `None` without a home.
    pub fn locate(runner: &dyn Runner) -> Option<Self> {
        let set = |name: &str| runner.env(name).filter(|value| value.starts_with('/'));
        let root = if let Some(home) = set("JOBWISE_HOME") {
            PathBuf::from(home)
        } else if let Some(cache) = set("XDG_CACHE_HOME") {
            Path::new(&cache).join("jobwise")
        } else {
            Path::new(&set("HOME")?).join(".cache/jobwise")
        };
        Some(Self { root, folders: 0o700 })
    }

    /// Where what a person has installed is kept: `$JOBWISE_HOME`, or `jobwise` below
    /// `$XDG_DATA_HOME` or `~/.local/share`. A cache may be emptied; this is no cache.
    pub fn locate_data(runner: &dyn Runner) -> Option<Self> {
        let set = |name: &str| runner.env(name).filter(|value| value.starts_with('/'));
        let root = if let Some(home) = set("JOBWISE_HOME") {
            PathBuf::from(home)
        } else if let Some(data) = set("XDG_DATA_HOME") {
            Path::new(&data).join("jobwise")
        } else {
            Path::new(&set("HOME")?).join(".local/share/jobwise")
        };
        Some(Self::at(root))
    }

    /// A store in a given folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), folders: 0o700 }
    }

    /// The same for files that everybody may read.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { folders: 0o755, ..self }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of that name, or `None` when it was never written.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.root.join(name);
        let content = match System::default().open(&path) {
            Ok(content) => content,
            Err(error) if error.kind == FileErrorKind::Absent => return Ok(None),
            Err(error) => return Err(StoreError { path, source: io::Error::other(error.reason) }),
        };
        if content.size() > LARGEST {
            return Err(StoreError { path, source: io::Error::other("is not ours: too large") });
        }
        content.read_all(LARGEST).map(Some).map_err(|source| StoreError { path, source })
    }

    /// Writes a file whole or not at all: beside its place first, then renamed over it.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.root.join(name);
        let fail = |path: &Path, source| StoreError { path: path.to_owned(), source };
        let folder = path.parent().unwrap_or(&self.root);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(self.folders)
            .create(folder)
            .map_err(|error| fail(folder, error))?;
        let stem = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = folder.join(format!(".{stem}.{}", std::process::id()));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(self.folders & 0o666)
            .open(&beside)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&beside, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            fail(&path, error)
        })
    }

    /// Removes a file; whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(StoreError { path, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "looks at what was written")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_private_and_replaced_whole() {
        let root = std::env::temp_dir().join(format!("jobwise-store-{}", std::process::id()));
        let store = Store::at(&root);
        assert!(store.read("a/b").expect("absent is no error").is_none());
        store.replace("a/b", b"one").expect("written");
        store.replace("a/b", b"two").expect("replaced");
        assert_eq!(store.read("a/b").expect("read").as_deref(), Some(b"two".as_slice()));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&root.join("a")), mode(&root.join("a/b"))), (0o700, 0o600));
        store.clone().shared().replace("c/d", b"three").expect("written");
        assert_eq!((mode(&root.join("c")), mode(&root.join("c/d"))), (0o755, 0o644));
        assert_eq!(store.remove("c/d").ok(), Some(true));
        assert_eq!(store.remove("c/d").ok(), Some(false));
        assert_eq!(
            fs::read_dir(root.join("a")).expect("listed").count(),
            1,
            "a stray file is left"
        );
        fs::remove_dir_all(&root).expect("removed");
    }
}
