//! What finding notes costs: with the notes that come with the program, with 2,000 sections of a
//! site, and with 20,000 synthetic vectors.
//!
//! Times are medians, memory is what the process holds more. Fails when a bound is broken: 3 ms for
//! all that a classified failure needs, 2 s for the index of 2,000 sections without a model, 1 s for
//! the second time. With the model, where it is installed, `kb search` from cold: 700 ms, 300 MiB.
//! The program's times are those of the processors where other work made it wait.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts processes and reads clocks")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has failed")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use jobwise::knowledge::{Family, Section, built_in};
use jobwise::model::FamilyId;
use jobwise::retrieve::{
    EmbedError, Embedder, Index, Library, Meaning, NoModel, Query, Space, Wants, model_space,
};

const JOBWISE: &str = env!("CARGO_BIN_EXE_jobwise");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/model");
const MANY: usize = 20_000;

/// Vectors out of a text's hash: nothing has to be installed, and they are as long as the real.
struct Synthetic;

impl Embedder for Synthetic {
    fn space(&self) -> Space {
        Space { model: "synthetic".to_owned(), ..model_space() }
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: &&str| {
            let mut state = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            let mut value = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                f32::from(i16::from_ne_bytes([state.to_be_bytes()[0], state.to_be_bytes()[1]]))
            };
            (0..model_space().dimensions).map(|_| value()).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// So many sections that differ from each other.
fn many(sections: usize) -> Vec<Family> {
    let families = built_in().expect("sound");
    let sources = families.iter().cycle().zip(0_usize..sections.div_ceil(4));
    sources
        .map(|(family, n)| Family {
            id: FamilyId(format!("{}_{n}", family.id)),
            signals: Vec::new(),
            sections: family
                .sections
                .iter()
                .map(|section| Section {
                    markdown: format!("Case {n}. {}", section.markdown),
                    ..section.clone()
                })
                .collect(),
            ..family.clone()
        })
        .collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn timed<T>(rounds: usize, mut call: impl FnMut() -> T) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        std::hint::black_box(call());
        begun.elapsed()
    };
    median((0..rounds).map(once).collect())
}

/// What this process holds now, in MiB.
fn held() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

struct Bounds {
    broken: bool,
}

impl Bounds {
    fn told(&mut self, name: &str, value: &str, bound: Option<(&str, bool)>) {
        let bound = bound.map_or_else(String::new, |(limit, holds)| {
            self.broken |= !holds;
            format!("  (bound {limit}{})", if holds { "" } else { ": BROKEN" })
        });
        println!("{name:<44} {value:>10}{bound}");
    }

    fn time(&mut self, name: &str, time: Duration, bound: Option<Duration>) {
        let limit = bound.map(|bound| (format!("{bound:?}"), time <= bound));
        let limit = limit.as_ref().map(|(limit, holds)| (limit.as_str(), *holds));
        self.told(name, &format!("{time:.2?}"), limit);
    }
}

/// The notes that come with the program, and a failure that was classified.
fn built_in_notes(bounds: &mut Bounds) {
    let families = built_in().expect("sound");
    let family = families.iter().find(|family| family.id.0 == "cuda_oom").expect("a family");
    let examples: Vec<&str> =
        family.signals.iter().filter_map(|signal| signal.example.as_deref()).take(3).collect();
    let open = || {
        let index = Index::built_in().expect("sound");
        Library::open(&families, &[], Box::new(NoModel), index).expect("a library")
    };
    let query = Query {
        text: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB",
        examples: &examples,
        family: Some(&family.id),
        wants: Wants::Fix,
    };
    // The fastest: the bound is on what it costs, and not on what else the machine does.
    let both = (0..21).map(|_| timed(1, || open().search(&query, 1))).min().unwrap_or_default();
    bounds.time("built-in notes: vectors", timed(21, || Index::built_in().expect("sound")), None);
    bounds.time("built-in notes: open", timed(21, open), None);
    let library = open();
    bounds.time(
        "built-in notes: meaning of a failure",
        timed(21, || library.similarities(Meaning::Examples(&examples))),
        None,
    );
    bounds.time("built-in notes: search", timed(21, || library.search(&query, 1)), None);
    // The aim is 3 ms; a fifth more is what other machines may cost.
    bounds.time("built-in notes: all of it", both, Some(Duration::from_micros(3600)));
}

/// More than can be compared one by one.
fn synthetic(bounds: &mut Bounds) {
    let families = many(MANY);
    let before = held();
    let begun = Instant::now();
    let library = Library::build(&families, &[], Box::new(Synthetic), &[], &mut |_, _| {});
    let library = library.expect("built");
    let name = format!("{MANY} vectors ({} search)", library.index().search_kind());
    bounds.time(&format!("{name}: build"), begun.elapsed(), None);
    bounds.told(&format!("{name}: memory"), &format!("{:.0} MiB", held() - before), None);
    let file = library.index().encode().expect("encoded");
    bounds.told(&format!("{name}: file"), &format!("{} MiB", file.len() >> 20), None);
    let space = Synthetic.space();
    let open = timed(3, || Index::decode(&file, &space).expect("sound"));
    bounds.time(&format!("{name}: open"), open, None);
    let ask = timed(21, || library.similarities(Meaning::Words("one of many")));
    bounds.time(&format!("{name}: search"), ask, None);
}

/// The system counts in these.
const TICK: Duration = Duration::from_millis(10);

/// What the processes that this one has started and that have ended took of the processors.
fn of_children() -> Duration {
    /// The fields after the name that hold it, in ticks.
    const USER_AND_SYSTEM: [usize; 2] = [13, 14];
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let field = |at: &usize| fields.get(at + 1).and_then(|field| field.parse::<u64>().ok());
    let ticks = USER_AND_SYSTEM.iter().filter_map(field).sum::<u64>();
    TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Runs the program; the time, and the most memory it held in MiB. The time is that of the
/// processors where it waited longer than that: for others, on a machine that is not idle.
fn once(home: &Path, model: Option<&str>, args: &[&str]) -> (Duration, u64) {
    let before = of_children();
    let mut command = Command::new(JOBWISE);
    command.args(args).env("JOBWISE_HOME", home).env("JOBWISE_EMBEDDINGS", "auto");
    command.env("JOBWISE_EMBEDDING_MODEL", model.unwrap_or_default());
    let begun = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let ended = child.try_wait().expect("waited");
        if let Some(ended) = ended {
            assert!(ended.success(), "{args:?}: {ended}");
            let took = of_children().saturating_sub(before);
            return (begun.elapsed().min(took.max(TICK)), peak >> 10);
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A site's own notes: 2,000 sections in a folder.
fn overlay(root: &Path) -> PathBuf {
    let folder = root.join("notes");
    fs::create_dir_all(&folder).expect("made");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("knowledge");
    let mut texts: Vec<(String, String)> = Vec::new();
    for entry in fs::read_dir(sources).expect("listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|end| end == "md") && name != "README" {
            texts.push((name, fs::read_to_string(path).expect("read")));
        }
    }
    texts.sort();
    for (n, (name, text)) in texts.iter().cycle().take(500).enumerate() {
        let id = format!("{name}_{n}");
        let text = text.replacen(&format!("family: {name}"), &format!("family: {id}"), 1);
        let text = text.replace("\n## ", &format!("\nSeen as case {n}.\n\n## "));
        fs::write(folder.join(format!("{id}.md")), text).expect("written");
    }
    folder
}

fn site(bounds: &mut Bounds, root: &Path) {
    let notes = overlay(root);
    let notes = notes.to_str().expect("UTF-8");
    let home = root.join("home");
    let build = ["kb", "build", "--knowledge", notes];
    let (first, _) = once(&home, None, &build);
    bounds.time("2000 sections, no model: kb build", first, Some(Duration::from_secs(2)));
    let (second, _) = once(&home, None, &build);
    bounds.time("2000 sections, no model: again", second, Some(Duration::from_secs(1)));
    if !Path::new(MODEL).join("model.onnx").exists() {
        println!("the model is not in target/model: nothing was measured with it");
        return;
    }
    let (first, memory) = once(&home, Some(MODEL), &build);
    bounds.time("2000 sections, model: kb build", first, Some(Duration::from_mins(3)));
    bounds.told("2000 sections, model: memory", &format!("{memory} MiB"), None);
    let (second, _) = once(&home, Some(MODEL), &build);
    bounds.time("2000 sections, model: again", second, Some(Duration::from_secs(1)));
    let (mut cold, mut kept, mut memory, mut least) = (Vec::new(), Vec::new(), 0, u64::MAX);
    // Other words each time: numbers say nothing, and a question that was asked is remembered.
    for (n, word) in
        ["night", "morning", "evening", "autumn", "winter", "spring"].iter().enumerate()
    {
        let question = format!("my program ended in the {word} without a word");
        let (time, peak) = once(&home, Some(MODEL), &["kb", "search", &question]);
        // The first one only fills the page cache.
        if n > 0 {
            cold.push(time);
            memory = memory.max(peak);
            let (time, peak) = once(&home, Some(MODEL), &["kb", "search", &question]);
            kept.push(time);
            least = least.min(peak);
        }
    }
    // The model alone is 22 MiB of weights and as much of library: less was not loaded.
    bounds.told("kb search, model: it was loaded", "", Some(("its memory", memory > 100)));
    bounds.told(
        "kb search, asked before: memory",
        &format!("{least} MiB"),
        Some(("100 MiB", least < 100)),
    );
    bounds.time("kb search, model: cold", median(cold), Some(Duration::from_millis(700)));
    bounds.told(
        "kb search, model: memory",
        &format!("{memory} MiB"),
        Some(("300 MiB", memory < 300)),
    );
    bounds.time("kb search, model: asked before", median(kept), None);
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("retrieve");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).expect("made");
    let mut bounds = Bounds { broken: false };
    built_in_notes(&mut bounds);
    synthetic(&mut bounds);
    site(&mut bounds, &root);
    fs::remove_dir_all(&root).expect("removed");
    if bounds.broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
