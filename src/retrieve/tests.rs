#![expect(clippy::disallowed_methods, reason = "the model may be on the machine or not")]
#![expect(clippy::print_stderr, reason = "a test that was skipped says why")]

use proptest::prelude::*;

use super::*;

/// Questions as people put them, with the family that answers each. Written before any ranking was
/// seen, and by the author of this module: the order of methods means something, the level less.
const QUESTIONS: [(&str, &str); 40] = [
    ("host_oom", "my job was killed because it used too much memory"),
    ("host_oom", "the process just says Killed and exit code 137"),
    ("host_oom", "slurmstepd oom kill event, how much RAM should I request"),
    ("host_oom", "pandas reading a huge csv dies on the compute node"),
    ("host_oom", "ran out of RAM with many DataLoader workers"),
    ("time_limit", "job stopped before it finished, walltime exceeded"),
    ("time_limit", "cancelled due to time limit"),
    ("time_limit", "how do I ask for more hours"),
    ("time_limit", "simulation needs longer than the queue allows"),
    ("time_limit", "job ended with TIMEOUT, how to checkpoint and continue"),
    ("cuda_oom", "GPU ran out of memory during training"),
    ("cuda_oom", "batch size too large for the card"),
    ("cuda_oom", "jax RESOURCE_EXHAUSTED while allocating"),
    ("cuda_oom", "not enough VRAM for the model"),
    ("cuda_oom", "reserved but unallocated memory fragmentation pytorch"),
    ("python_import", "python cannot find numpy in the batch job but works on the login node"),
    ("python_import", "virtual environment not activated in script"),
    ("python_import", "No module named torch"),
    ("python_import", "cannot import name from package after upgrade"),
    ("python_import", "conda env packages missing when submitted"),
    ("file_not_found", "input file does not exist"),
    ("file_not_found", "path works on login node but the job says no such file"),
    ("file_not_found", "script cannot open config.yaml"),
    ("file_not_found", "relative path wrong working directory"),
    ("file_not_found", "FileNotFoundError for data in scratch"),
    ("segfault", "program crashes with signal 11"),
    ("segfault", "exit code 139"),
    ("segfault", "core dumped in my fortran code"),
    ("segfault", "invalid memory access null pointer in C++"),
    ("segfault", "SIGSEGV after loading a different MPI"),
    ("node_fail", "the machine died while my job was running"),
    ("node_fail", "compute node crashed or rebooted"),
    ("node_fail", "should I requeue after hardware failure"),
    ("node_fail", "lost contact with the node"),
    ("node_fail", "job state NODE_FAIL what now"),
    ("application_error", "KeyError in my own code"),
    ("application_error", "traceback TypeError NoneType"),
    ("application_error", "assertion failed in the program"),
    ("application_error", "java NullPointerException"),
    ("application_error", "my script raised an exception, bug in my code"),
];

/// The same with typing errors and joined words, which whole words cannot match.
const MISTYPED: [(&str, &str); 16] = [
    ("host_oom", "memorry exhasted on host"),
    ("host_oom", "oomkilled"),
    ("time_limit", "wall-time limmit reachd"),
    ("time_limit", "timelimit"),
    ("cuda_oom", "cudaoutofmemory"),
    ("cuda_oom", "pytorch fragmention"),
    ("cuda_oom", "ResourceExhausted"),
    ("python_import", "modulenotfound"),
    ("python_import", "virtualenv activaton"),
    ("python_import", "importerror"),
    ("file_not_found", "filenotfound"),
    ("file_not_found", "no such directry"),
    ("segfault", "segmentaton falt"),
    ("segfault", "segmentationfault"),
    ("node_fail", "nodefailure"),
    ("application_error", "nullpointer"),
];

fn built_in() -> Vec<Family> {
    crate::knowledge::built_in().expect("the embedded families")
}

fn library(families: &[Family]) -> Library {
    Library::build(families, &[], Box::new(HashEmbedder), &[], &mut |_, _| {}).expect("a library")
}

fn ask(text: &str) -> Query<'_> {
    Query { text, examples: &[], family: None, wants: Wants::Fix }
}

/// How many questions have the right family among the first three.
fn hits(library: &Library, questions: &[(&str, &str)], method: Method) -> usize {
    let right = |(family, question): &&(&str, &str)| {
        let found = library.ranked(&ask(question), method);
        found.iter().take(3).any(|found| found.chunk.family.0 == *family)
    };
    questions.iter().filter(right).count()
}

/// Other words in the knowledge base may move a question or two.
#[test]
fn both_rankings_together_are_no_worse_than_either() {
    let library = library(&built_in());
    for (questions, least) in [(&QUESTIONS[..], 32), (&MISTYPED[..], 12)] {
        let [words, both, vectors] = [Method::Words, Method::Fused, Method::Meaning]
            .map(|method| hits(&library, questions, method));
        assert!(both >= least, "{both} of {}", questions.len());
        assert!(both + 1 >= words && both + 1 >= vectors, "{words} {both} {vectors}");
    }
}

#[test]
fn a_described_symptom_leads_to_the_fixes() {
    let library = library(&built_in());
    let found = library.search(&ask("Segmentation fault (core dumped)"), 3);
    assert_eq!(found.len(), 3);
    let first = (found[0].chunk.family.0.as_str(), found[0].chunk.heading.as_str());
    assert_eq!(first, ("segfault", "Fixes"));
    let headings: Vec<&str> =
        found[0].sections.iter().map(|section| section.heading.as_str()).collect();
    assert_eq!(headings[..2], ["Fixes", "Symptoms"], "what fits best is second");
    for (wants, heading) in [(Wants::Why, "Causes"), (Wants::Check, "Verify")] {
        let asked = Query { wants, ..ask("Segmentation fault (core dumped)") };
        assert_eq!(library.search(&asked, 1)[0].chunk.heading, heading);
    }
    let notes: Vec<&FamilyId> = found.iter().map(|found| &found.chunk.family).collect();
    assert!(notes[0] != notes[1] && notes[1] != notes[2], "each note once");
}

#[test]
fn the_family_of_the_verdict_leads_whatever_the_words_say() {
    let library = library(&built_in());
    let named = FamilyId("node_fail".to_owned());
    for text in ["CUDA out of memory", ""] {
        let query = Query { family: Some(&named), ..ask(text) };
        let found = library.search(&query, 2);
        assert_eq!(found[0].chunk.family, named);
        assert_eq!(found[0].chunk.heading, "Fixes");
        let Parts { bm25, dense, family } = found[0].parts;
        assert!((found[0].score - (bm25 + dense + family)).abs() < 1e-12);
    }
    assert!(library.search(&ask(""), 9).is_empty());
    assert!(library.search(&ask("the of and"), 9).is_empty());
}

#[test]
fn the_order_of_the_files_changes_nothing() {
    let families = built_in();
    let mut reversed = families.clone();
    reversed.reverse();
    let (one, other) = (library(&families), library(&reversed));
    for (_, question) in QUESTIONS {
        assert_eq!(one.search(&ask(question), 9), other.search(&ask(question), 9));
    }
    let bytes = |library: &Library| library.index().encode().expect("encoded");
    assert_eq!(bytes(&one), bytes(&other));
}

/// The library of an index that was kept.
fn kept(families: &[Family], file: &[u8]) -> Result<Library, RetrieveError> {
    Library::open(
        families,
        &[],
        Box::new(HashEmbedder),
        Index::decode(file, &HashEmbedder.space())?,
    )
}

#[test]
fn a_decoded_library_answers_as_the_built_one() {
    let families = built_in();
    let built = library(&families);
    let decoded = kept(&families, &built.index().encode().expect("encoded")).expect("decoded");
    for (_, question) in QUESTIONS {
        assert_eq!(built.search(&ask(question), 9), decoded.search(&ask(question), 9));
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_own_name() {
    let families = built_in();
    let file = library(&families).index().encode().expect("encoded");
    let open = |file: &[u8]| Index::decode(file, &HashEmbedder.space()).map(|_| ());
    assert_eq!(open(&file), Ok(()));
    // A right-sized file with flipped bytes loads in usearch and crashes in the search.
    let mut flipped = file.clone();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 200].iter_mut().for_each(|byte| *byte ^= 0xff);
    let line = file.iter().position(|byte| *byte == b'\n').expect("a description");
    for damaged in [&flipped[..], &file[..middle], &file[..=line], &file[..line]] {
        assert_eq!(open(damaged), Err(RetrieveError::Damaged));
    }
    assert!(matches!(open(&file[..line / 2]), Err(RetrieveError::Unreadable(_))));
    let foreign = Index::decode(&file, &NoModel.space()).map(|_| ());
    assert!(matches!(foreign, Err(RetrieveError::Foreign { .. })));
    let text = String::from_utf8_lossy(&file[..line]).replacen("\"format\":3", "\"format\":4", 1);
    let newer = [text.as_bytes(), &file[line..]].concat();
    assert_eq!(open(&newer), Err(RetrieveError::Format { found: 4, expected: 3 }));
}

#[test]
fn a_section_that_has_changed_keeps_its_words_and_loses_its_vector() {
    let families = built_in();
    let file = library(&families).index().encode().expect("encoded");
    let index = || Index::decode(&file, &HashEmbedder.space()).expect("decoded");
    assert_eq!(index().lacking(&families), [""; 0]);
    assert!(index().of_all(&families, &[]).is_ok());
    let mut edited = families.clone();
    let segfault = edited.iter_mut().find(|family| family.id.0 == "segfault").expect("a family");
    let verify = segfault.sections.iter_mut().find(|section| section.heading == "Verify");
    verify.expect("a section").markdown.push_str(" Also look at the quokka.");
    let changed = vec!["segfault/Verify".to_owned()];
    assert_eq!(index().lacking(&edited), changed);
    assert_eq!(index().of_all(&edited, &[]).map(|_| ()), Err(RetrieveError::Stale { changed }));
    let library = kept(&edited, &file).expect("decoded");
    assert_eq!(library.without_vector(), 1);
    let found = library.search(&ask("quokka"), 1);
    assert_eq!(found[0].chunk.family.0, "segfault");
    let best = |a: &&Scored, b: &&Scored| a.score.total_cmp(&b.score);
    let section = found[0].sections.iter().max_by(best).expect("sections");
    assert_eq!(section.heading, "Verify");
}

/// Counts what it is asked to embed.
struct Counting<'c>(&'c std::sync::atomic::AtomicUsize);

impl Embedder for Counting<'static> {
    fn space(&self) -> Space {
        HashEmbedder.space()
    }
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.fetch_add(texts.len(), std::sync::atomic::Ordering::Relaxed);
        HashEmbedder.embed(texts)
    }
}

#[test]
fn a_second_build_embeds_only_what_has_changed_and_gives_the_same_bytes() {
    static ASKED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let build = |families: &[Family], known: &[&Index]| {
        ASKED.store(0, std::sync::atomic::Ordering::Relaxed);
        let library =
            Library::build(families, &[], Box::new(Counting(&ASKED)), known, &mut |_, _| {});
        let asked = ASKED.load(std::sync::atomic::Ordering::Relaxed);
        (library.expect("built"), asked)
    };
    let mut families = built_in();
    let (first, all) = build(&families, &[]);
    assert!(all > first.sections());
    let (second, again) = build(&families, &[first.index()]);
    assert_eq!(again, 0);
    let bytes = |library: &Library| library.index().encode().expect("encoded");
    assert_eq!(bytes(&first), bytes(&second));
    families[0].sections[0].markdown.push_str(" Changed.");
    assert_eq!(build(&families, &[first.index()]).1, 1);
}

#[test]
fn without_a_model_examples_still_have_a_meaning_and_words_have_none() {
    let families = built_in();
    let index = Index::empty(NoModel.space()).expect("an index");
    let library = Library::open(&families, &[], Box::new(NoModel), index).expect("a library");
    assert_eq!(library.similarities(Meaning::Words("memory")), Err(EmbedError::NoModel));
    assert_eq!(library.without_vector(), library.sections());
    let zero = library.similarities(Meaning::Examples(&["memory"])).expect("nothing to run");
    assert!(zero.iter().all(|similarity| *similarity == 0.0));
    assert!(!library.search(&ask("Segmentation fault"), 3).is_empty());
}

/// The site's own word comes before ours, for its family and for its words.
#[test]
fn a_page_leads_for_the_family_it_is_named_after() {
    use crate::knowledge::page;
    let families = built_in();
    let quota = page("site/disk_quota.md", "# Quotas here\n\n## Fixes\n\n1. Run `myquota`.\n");
    let ticket = page("site/ticket-7.md", "# Zebrafish pipeline\n\nThe index was rebuilt.\n");
    let build = |pages: &[Page]| {
        Library::build(&families, pages, Box::new(HashEmbedder), &[], &mut |_, _| {})
            .expect("a library")
    };
    let library = build(&[quota.clone(), ticket.clone()]);
    let named = FamilyId("disk_quota".to_owned());
    let query = Query { family: Some(&named), ..ask("Disk quota exceeded") };
    let found = library.search(&query, 2);
    assert_eq!(found[0].chunk.page.as_deref(), Some("site/disk_quota.md"));
    assert_eq!((&found[1].chunk.family, &found[1].chunk.page), (&named, &None));
    let found = library.search(&ask("zebrafish index"), 1);
    assert_eq!((&*found[0].chunk.title, found[0].chunk.domain), ("Zebrafish pipeline", None));
    // The order of the folders changes nothing.
    let other = build(&[ticket, quota]);
    assert_eq!(library.search(&query, 99), other.search(&query, 99));
}

#[test]
fn nothing_known_is_nothing_found() {
    let empty = library(&[]);
    assert!(empty.search(&ask("anything"), 5).is_empty());
    assert!(kept(&[], &empty.index().encode().expect("encoded")).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_question_and_any_file_are_taken(text: String, file: Vec<u8>) {
        let families = &built_in()[..1];
        let found = library(families).search(&ask(&text), 3);
        prop_assert!(found.iter().all(|found| found.score.is_finite()));
        first_steps(&text);
        prop_assert!(kept(families, &file).is_err());
    }
}

#[test]
fn words_that_no_note_knows_find_nothing_and_slips_find_something() {
    let library = library(&built_in());
    for text in ["zzzzqqq", "asdfgh qwertz uiop", "lorem ipsum dolor", "pizza", "xyzzy plugh"] {
        assert!(library.search(&ask(text), 3).is_empty(), "{text}");
    }
    for (_, text) in QUESTIONS.iter().chain(&MISTYPED) {
        assert!(!library.search(&ask(text), 3).is_empty(), "{text}");
    }
    // A family that the verdict named is found whatever the words are.
    let named = FamilyId("node_fail".to_owned());
    let query = Query { family: Some(&named), ..ask("zzzzqqq") };
    assert_eq!(library.search(&query, 9)[0].chunk.family, named);
}

/// The model, where it is installed. Where somebody says that it is there, it has to be.
fn model() -> Option<MiniLm> {
    use crate::host::packages::{LIBRARY, MODEL};
    let given = std::env::var("JOBWISE_TEST_MODEL").ok();
    let folder =
        given.clone().unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/target/model").into());
    let folder = std::path::Path::new(&folder);
    let Ok(bytes) = std::fs::read(folder.join(MODEL.file)) else {
        assert_eq!(given, None, "there is no model");
        eprintln!("skipped: the model is not in target/model; .ci/run model installs it");
        return None;
    };
    Some(MiniLm::open(bytes, &folder.join(LIBRARY.file), 2).expect("the model"))
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// `fixtures/embedding/reference.py` made the vectors with Python's onnxruntime.
#[test]
fn the_model_s_vectors_are_those_of_python() {
    #[derive(serde::Deserialize)]
    struct Reference {
        text: String,
        vector: Vec<f32>,
    }
    let Some(model) = model() else { return };
    let reference = include_str!("../../fixtures/embedding/reference.json");
    let reference: Vec<Reference> = serde_json::from_str(reference).expect("JSON");
    assert_eq!(reference.len(), 10);
    let texts: Vec<&str> = reference.iter().map(|one| one.text.as_str()).collect();
    let together = model.embed(&texts).expect("embedded");
    for (one, together) in reference.iter().zip(together) {
        let alone = model.embed(&[&one.text]).expect("embedded").remove(0);
        for vector in [alone, together] {
            let cosine = cosine(&vector, &one.vector);
            assert!(cosine > 0.9999, "{cosine} of {:?}", one.text);
        }
    }
}

/// Every tenth text; all of them take a minute.
#[test]
fn the_vectors_that_come_with_the_program_are_those_of_the_model() {
    let families = built_in();
    let index = Index::built_in().expect("sound");
    let Some(model) = model() else { return };
    let lacking = index.lacking(&families);
    assert!(lacking.is_empty(), "run jobwise kb vectors knowledge/vectors.bin for {lacking:?}");
    let sections = families.iter().flat_map(sections).step_by(10);
    for text in sections {
        let fresh = model.embed(&[&text]).expect("embedded").remove(0);
        let kept = index.section(TextHash::of(&text)).expect("kept");
        assert!(cosine(&fresh, &kept) > 0.999, "{text}");
    }
    for text in families.iter().flat_map(examples).step_by(10) {
        let fresh = model.embed(&[text]).expect("embedded").remove(0);
        let kept = index.example(TextHash::of(text)).expect("kept");
        assert!(cosine(&fresh, &kept) > 0.999, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    /// Of an index that was damaged nothing is opened, and of one that was not all is. A file of a
    /// few notes, so that every part of it is hit often: what usearch reads, and what it does not.
    #[test]
    fn a_damaged_index_is_refused_and_never_searched(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..6),
        cut: prop::sample::Index,
        more: Vec<u8>,
    ) {
        static WHOLE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            library(&built_in()[..3]).index().encode().expect("encoded")
        });
        let space = HashEmbedder.space();
        let whole = &*WHOLE;
        let mut flipped = whole.clone();
        for (at, flip) in flips {
            let at = at.index(flipped.len());
            flipped[at] = whole[at] ^ flip;
        }
        let meaning = vec![0.1; space.dimensions];
        let longer = [&whole[..], &more].concat();
        let inserted = [&whole[..cut.index(whole.len())], &more, &whole[cut.index(whole.len())..]];
        for damaged in
            [&flipped[..], &whole[..cut.index(whole.len())], &longer, &inserted.concat()]
        {
            // A blank in the description may be another; then it is the same index.
            if let Ok(index) = Index::decode(damaged, &space) {
                prop_assert!(index.vectors.similarities(&meaning).len() == index.sections());
            }
        }
        prop_assert!(Index::decode(&flipped, &space).is_err());
    }
}
