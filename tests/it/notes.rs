//! Notes of a site's or a user's own, tickets that become notes, and steps with a job's own values.

use std::fs;

use serde_json::Value;

use crate::model::installed;
use crate::run::{Shown, Test};

/// The example of GNU coreutils on a full quota.
const QUOTA: &[u8] =
    b"cp: cannot create regular file '/scratch/alice/0809.sh': Disk quota exceeded\n";

fn json(shown: &Shown) -> Value {
    serde_json::from_str(&shown.stdout).expect("one document")
}

/// A family file as a site would write it.
fn family(id: &str, title: &str, literal: &str, fix: &str) -> String {
    format!(
        "---\nfamily: {id}\ntitle: {title}\ndomain: site\nsignals:\n  - id: own\n    from: log\n    \
         role: root\n    literal: \"{literal}\"\n    example: \"{literal} 7\"\nwithout_edit: \"none\"\n\
         sources: [\"https://example.org/\"]\n---\n\n## Symptoms\n\nSeen.\n\n## Causes\n\nKnown.\n\n\
         ## Fixes\n\n1. {fix}\n\n## Verify\n\nLook.\n"
    )
}

#[test]
fn a_site_s_page_on_a_family_comes_first_for_that_failure() {
    let test = Test::new("own-page");
    test.file(
        "notes/disk_quota.md",
        b"# Quotas on Hummel\n\n## Fixes\n\n1. Run `hummel-quota -v`.\n",
    );
    test.file("job.log", QUOTA);
    let (log, notes) = (test.path("job.log"), test.path("notes"));
    let (log, notes) = (log.display().to_string(), notes.display().to_string());
    let given = ["diagnose", "--log", &log, "--knowledge", &notes];
    let shown = test.run(&given);
    shown.ends(0).says("(disk_quota)").says("built-in notes and yours");
    let at =
        |text: &str| shown.stdout.find(text).unwrap_or_else(|| panic!("{text}: {}", shown.all()));
    assert!(at("hummel-quota -v") < at("lfs quota"), "{}", shown.all());
    assert!(at("Quotas on Hummel") < at("disk_quota.md") && at("disk_quota.md") < at("lfs quota"));
    shown.says("jobwise kb show disk_quota");
    // The pages of a family stand with its note, and are found by their own words.
    test.run(&["kb", "show", "disk_quota", "--knowledge", &notes])
        .ends(0)
        .says("hummel-quota")
        .says("lfs quota");
    let found = json(&test.run(&["kb", "search", "hummel quota", "--json", "--knowledge", &notes]));
    assert!(
        found["matches"][0]["chunk"]["page"]
            .as_str()
            .is_some_and(|page| page.ends_with("disk_quota.md"))
    );
    test.run(&["kb", "list", "--knowledge", &notes]).ends(0).says("disk_quota.md");
    // What is kept is of these notes, and is used for them.
    test.run(&["kb", "build", "--knowledge", &notes]).ends(0);
    test.run(&given).ends(0).says("stored index").says("hummel-quota -v");
}

#[test]
fn a_family_in_place_of_a_built_in_one_is_shown_as_such_and_a_later_folder_wins() {
    let test = Test::new("replaced");
    let own = family("disk_quota", "Our quota", "Disk quota exceeded", "Run `one`.");
    test.file("one/disk_quota.md", own.as_bytes());
    test.file("two/disk_quota.md", own.replace("Run `one`", "Run `two`").as_bytes());
    test.file("job.log", QUOTA);
    let folders = ["one", "two"].map(|name| test.path(name).display().to_string());
    let log = test.path("job.log").display().to_string();
    let shown = test.run(&["diagnose", "--log", &log, "--knowledge", &folders[0]]);
    shown.ends(0).says("Run `one`").says("in place of the built-in note");
    assert!(!shown.stdout.contains("lfs quota"), "{}", shown.all());
    let both = ["--knowledge", &folders[0], "--knowledge", &folders[1]];
    let shown = test.run(&[&["diagnose", "--log", &log, "--json"], &both[..]].concat());
    let fix = &json(&shown)["diagnoses"][0]["fix"];
    assert_eq!(fix["steps"][0], "Run `two`.");
    assert!(fix["provenance"]["replacement"].as_str().is_some_and(|path| path.contains("/two/")));
    test.run(&["kb", "show", "disk_quota", "--knowledge", &folders[0]])
        .says("in place of the built-in note");
    test.run(&["kb", "list", "--knowledge", &folders[0]])
        .says("replaced")
        .says("one/disk_quota.md");
    // The same by the environment.
    let test = test.env("JOBWISE_KNOWLEDGE", &folders.join(":"));
    test.run(&["diagnose", "--log", &log]).ends(0).says("Run `two`");
}

#[test]
fn a_malformed_note_is_refused_with_its_line_and_the_others_are_read() {
    let test = Test::new("malformed");
    let sound = family("myfs_gone", "MyFS went away", "MYFS-17 lost: error", "Wait for `myfs up`.");
    test.file("notes/myfs_gone.md", sound.as_bytes());
    test.file("notes/broken.md", sound.replace("role: root", "rol: root").as_bytes());
    test.file("notes/cut.md", sound.strip_prefix("---\n").expect("front matter").as_bytes());
    let misspelt = sound.replace("myfs_gone", "typo").replace("`myfs up`", "{nod|it}");
    test.file("notes/typo.md", misspelt.as_bytes());
    test.file("notes/howto.md", b"# How to get help\n\nWrite to the helpdesk zebra.\n");
    fs::create_dir(test.path("notes/folder.md")).expect("made");
    test.file("job.log", b"MYFS-17 lost: error 7\n");
    let (log, notes) = (test.path("job.log"), test.path("notes"));
    let (log, notes) = (log.display().to_string(), notes.display().to_string());
    let shown = test.run(&["diagnose", "--log", &log, "--knowledge", &notes]);
    shown.says("(myfs_gone)").says("Wait for `myfs up`");
    shown
        .says("folder.md: ")
        .says("broken.md:8: ")
        .says("unknown field `rol`")
        .says("cut.md:1: has no front matter");
    test.run(&["kb", "search", "helpdesk zebra", "--knowledge", &notes])
        .ends(0)
        .says("How to get help");
    let check = test.run(&["kb", "check", "--knowledge", &notes]);
    assert_eq!(check.code, 1, "{}", check.all());
    check.says("unknown field `rol`").says("typo.md:").says("fills in 'nod'");
}

#[test]
fn tickets_become_notes_without_their_secrets_as_often_as_one_likes() {
    let test = Test::new("tickets");
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = format!(
        "\u{1b}[31mzebrafish index\u{1b}[0m was stale\nexport GITHUB_TOKEN={token}\nRebuilt it: solved.\n"
    );
    test.file("tickets/Zebra 17.txt", text.as_bytes());
    test.file("tickets/18.md", b"# Walrus node lost its fabric\n\nThe cable was replaced.\n");
    test.file("tickets/ignored.pdf", b"%PDF");
    test.file("tickets/empty.txt", b"\n");
    let tickets = test.path("tickets").display().to_string();
    let import = ["kb", "import", &tickets];
    let shown = test.run(&import);
    shown
        .ends(0)
        .says("ticket-zebra-17.md")
        .says("1 secret masked")
        .says("Walrus node lost its fabric");
    let note =
        fs::read_to_string(test.path("home/cache/notes/ticket-zebra-17.md")).expect("imported");
    assert!(!note.contains(token) && !note.contains('\u{1b}'), "{note}");
    assert!(note.contains("Rebuilt it: solved."));
    // They are read without being named, and only where this machine is asked.
    test.run(&["kb", "search", "stale zebrafish index"]).ends(0).says("Rebuilt it: solved.");
    let demo = test.run(&["--demo", "kb", "search", "stale zebrafish index"]);
    assert!(!demo.stdout.contains("Rebuilt"), "{}", demo.all());
    let again = json(&test.run(&[&import[..], &["--json"]].concat()));
    let tickets = again["tickets"].as_array().expect("tickets");
    assert_eq!(tickets.len(), 2);
    assert!(tickets.iter().all(|ticket| ticket["changed"] == false), "{again:#}");
    // Into the site's folder, which is then named.
    let site = test.path("site").display().to_string();
    let from = test.path("tickets").display().to_string();
    test.run(&["kb", "import", &from, "--into", &site]).ends(0);
    let other = test.env("JOBWISE_HOME", "/nonexistent");
    other.run(&["kb", "search", "walrus cable", "--knowledge", &site]).ends(0).says("was replaced");
    other.run(&["kb", "import", "/nonexistent"]).ends(3);
}

/// The first line is Lmod's own; the second tries to become a command.
#[test]
fn steps_hold_the_values_that_the_log_names_and_never_a_command_of_its_own() {
    let test = Test::new("filled");
    for (line, step, without) in [
        (
            "Lmod has detected the following error:  The following module(s) are unknown: \"gcc/99.1\"",
            "module spider gcc/99.1",
            "module spider NAME`",
        ),
        (
            "Lmod has detected the following error:  The following module(s) are unknown: \"x;rm${IFS}-rf\"",
            "module spider NAME",
            "rm${IFS}-rf`",
        ),
        (
            "bash: line 7: samtools: command not found",
            "module spider samtools",
            "module spider PROGRAM",
        ),
    ] {
        test.file("job.log", format!("start\n{line}\n").as_bytes());
        let log = test.path("job.log").display().to_string();
        let shown = test.run(&["diagnose", "--log", &log, "--json"]);
        let steps = json(&shown)["diagnoses"][0]["fix"]["steps"].to_string();
        assert!(steps.contains(step) && !steps.contains(without), "{line}\n{steps}");
        assert!(!steps.contains('|') || !steps.contains("|NAME}"), "{steps}");
    }
    // The value that the change computes: 100M are doubled.
    let shown = test.run(&["--demo", "diagnose", "1", "--json"]);
    let fix = json(&shown)["diagnoses"][0]["fix"].clone();
    assert!(fix["steps"][0].as_str().is_some_and(|step| step.contains("--mem=200M")), "{fix}");
}

/// No note shows a place that should have been filled in.
#[test]
fn no_answer_shows_an_empty_place() {
    let test = Test::new("places");
    for command in
        [&["kb", "show", "module_load"][..], &["kb", "search", "module cannot be loaded"]]
    {
        let shown = test.run(command);
        shown.ends(0).says("module spider NAME");
        assert!(!shown.stdout.contains("{module"), "{}", shown.all());
    }
}

/// The jobs of the demo.
const DEMO: [&str; 14] =
    ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14"];

/// The fix of a diagnosis, as far as people read it.
fn told(diagnosis: &Value) -> Value {
    let fix = &diagnosis["fix"];
    serde_json::json!([fix["family"], fix["heading"], fix["steps"]])
}

/// The classified jobs of the demo: what to do is the same whatever embeds texts, also where nothing
/// does.
#[test]
fn the_demo_s_steps_need_no_model() {
    let fixes = |name: &str, embeddings: &str, model: &str| -> Vec<Value> {
        let test = Test::new(&format!("demo-{name}"))
            .env("JOBWISE_EMBEDDINGS", embeddings)
            .env("JOBWISE_EMBEDDING_MODEL", model);
        let shown = test.run(&[&["--demo", "diagnose", "--json"], &DEMO[..]].concat());
        let all = json(&shown);
        all["diagnoses"].as_array().expect("diagnoses").iter().map(told).collect()
    };
    let auto = fixes("auto", "auto", "");
    assert!(auto.iter().filter(|fix| !fix[0].is_null()).count() >= 8, "{auto:#?}");
    assert_eq!(auto, fixes("hash", "hash", ""));
    assert_eq!(auto, fixes("model", "model", ""));
    if let Some(model) = installed() {
        assert_eq!(auto, fixes("installed", "model", model.to_str().expect("UTF-8")));
    }
    for fix in auto.iter().filter(|fix| !fix[0].is_null()) {
        assert_eq!(fix[1], "Fixes");
        let steps = fix[2].as_array().expect("steps");
        assert!(steps.len() >= 3, "{fix}");
        // Whose number is known is never asked to fill it in.
        assert!(!steps.iter().any(|step| step.to_string().contains("JOBID")), "{fix}");
    }
}

/// The same by what their logs say, where the model may be asked: it is not needed there either.
#[test]
fn the_lines_of_the_demo_lead_to_the_same_steps_with_the_model_and_without() {
    let Some(model) = installed() else { return };
    let without = Test::new("lines-without");
    let with =
        Test::new("lines-with").env("JOBWISE_EMBEDDING_MODEL", model.to_str().expect("UTF-8"));
    let all = json(&without.run(&[&["--demo", "diagnose", "--json"], &DEMO[..]].concat()));
    let mut compared = 0;
    for diagnosis in all["diagnoses"].as_array().expect("diagnoses") {
        let evidence = diagnosis["verdict"]["causes"][0]["evidence"].as_array();
        let of_log = |piece: &&Value| piece["place"]["in"] == "log";
        let lines = evidence.into_iter().flatten().filter(of_log);
        let lines: Vec<&str> = lines.filter_map(|piece| piece["text"].as_str()).collect();
        if lines.is_empty() {
            continue;
        }
        let text = lines.join("\n");
        let [one, other] =
            [&without, &with].map(|test| json(&test.run(&["diagnose", "--json", "--text", &text])));
        let [one, other] = [one, other].map(|shown| shown["diagnoses"][0].clone());
        assert_eq!(one["verdict"]["outcome"], "cause", "{text}");
        assert_eq!(told(&one), told(&other), "{text}");
        compared += 1;
    }
    assert!(compared >= 5, "{compared} jobs have lines");
}

/// What the rules do not know is told as unknown, and notes on something like it as no more than
/// that.
#[test]
fn an_unknown_failure_shows_the_closest_notes_and_no_cause() {
    // No signal has these words; two notes are about them.
    let text = "step 7 done\nproject storage quota reached, writing output failed";
    let test = Test::new("closest");
    let shown = test.run(&["diagnose", "--text", text]);
    shown.ends(1).says("cause     unknown").says("closest").says("jobwise kb show disk_quota");
    shown.says("by: project storage quota reached").says("no cause");
    let told = json(&test.run(&["diagnose", "--text", text, "--json"]));
    let diagnosis = &told["diagnoses"][0];
    assert_eq!(diagnosis["verdict"]["outcome"], "unknown");
    assert_eq!(diagnosis["fix"]["family"], "unknown");
    let closest = diagnosis["closest"].as_array().expect("closest");
    assert!(closest.iter().any(|note| note["family"] == "disk_quota"), "{closest:#?}");
    assert!(closest.iter().all(|note| note["parts"]["dense"] == 0.0));
    // Nothing is near to what says nothing.
    let shown = test.run(&["diagnose", "--text", "epoch 7 of 10\nqwertz uiop"]);
    assert!(!shown.ends(1).stdout.contains("closest"), "{}", shown.all());
    // By meaning too, where the model is: no word of this stands in the note.
    let Some(model) = installed() else { return };
    let test = test.env("JOBWISE_EMBEDDING_MODEL", model.to_str().expect("UTF-8"));
    let text = "scribbling failed: my storage allowance is spent";
    let told = json(&test.run(&["diagnose", "--text", text, "--json"]));
    let closest = told["diagnoses"][0]["closest"].as_array().expect("closest").clone();
    assert!(closest.iter().any(|note| note["family"] == "disk_quota"), "{closest:#?}");
    assert!(closest.iter().all(|note| note["parts"]["dense"].as_f64() > Some(0.0)));
}

#[test]
fn scores_are_shown_with_their_parts_where_they_are_asked_for() {
    let test = Test::new("scores");
    let shown = test.run(&["--demo", "diagnose", "1", "--scores"]);
    // Two stands for the family that the rules named.
    shown.ends(0).says("+ family 2").says(" = words 0.").says("Symptoms 0.");
    let plain = test.run(&["--demo", "diagnose", "1"]);
    assert!(!plain.stdout.contains(" = words "), "{}", plain.all());
    let fix = &json(&test.run(&["--demo", "diagnose", "1", "--json"]))["diagnoses"][0]["fix"];
    let part = |name: &str| fix["parts"][name].as_f64().expect("a part");
    let sum = part("bm25") + part("dense") + part("family");
    assert!((sum - fix["score"].as_f64().expect("a score")).abs() < 1e-9, "{fix}");
    assert_eq!(fix["sections"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_note_is_found_by_its_tags() {
    let test = Test::new("tags");
    let own = family("quota_here", "Our quota", "QUOTA-9 error", "Run `one`.");
    let tagged = own.replace("domain: site\n", "domain: site\ntags: [kontingent, hummel]\n");
    assert_ne!(own, tagged);
    test.file("notes/quota_here.md", tagged.as_bytes());
    let notes = test.path("notes").display().to_string();
    let shown = test.run(&["kb", "search", "kontingent", "--knowledge", &notes, "--json"]);
    let chunk = &json(&shown)["matches"][0]["chunk"];
    assert_eq!((&chunk["family"], &chunk["domain"]), (&"quota_here".into(), &"site".into()));
    assert_eq!(chunk["tags"], serde_json::json!(["kontingent", "hummel"]));
    test.run(&["kb", "search", "kontingent"]).ends(1);
}

/// A cache may be emptied by anybody; what was imported stays.
#[test]
fn imported_notes_are_no_part_of_the_cache() {
    let test = Test::new("import-home").without("JOBWISE_HOME");
    test.file("tickets/7.md", b"# Walrus node lost its fabric\n\nThe cable was replaced.\n");
    let tickets = test.path("tickets").display().to_string();
    let folder = test.path("home/.local/share/jobwise/notes");
    test.run(&["kb", "import", &tickets]).ends(0).says(&folder.display().to_string());
    assert!(folder.join("ticket-7.md").exists());
    let _ = fs::remove_dir_all(test.path("home/.cache"));
    test.run(&["kb", "search", "walrus cable"]).ends(0).says("was replaced");
}

#[test]
fn a_folder_of_notes_that_is_gone_takes_no_answer_away() {
    let test = Test::slurm("notes-gone").env("JOBWISE_KNOWLEDGE", "/nonexistent");
    let shown = test.run(&["diagnose", "67"]);
    shown.ends(0).says("(host_oom)").says("notes were left out: /nonexistent: no such file");
}

#[test]
fn what_a_ticket_s_folder_only_points_at_is_not_imported() {
    let test = Test::new("import-link");
    test.file("private.md", b"# private\nnot for everybody\n");
    test.file("tickets/good.md", b"# quota\nask for more\n");
    test.file("tickets/long.md", &vec![b'x'; (1 << 20) + 1]);
    let (link, target) = (test.path("tickets/link.md"), test.path("private.md"));
    std::os::unix::fs::symlink(target, link).expect("made");
    let tickets = test.path("tickets").display().to_string();
    let shown = test.run(&["kb", "import", &tickets]);
    shown.ends(0).says("link.md").says("long.md: is longer than the 1 MiB");
    let told = test.run(&["kb", "import", &tickets, "--json"]).json();
    assert_eq!(told["tickets"].as_array().expect("a list").len(), 1);
    assert_eq!(told["notices"].as_array().expect("a list").len(), 2);
}
