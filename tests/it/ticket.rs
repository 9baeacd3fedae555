//! `jobwise diagnose --ticket`: one block of Markdown that can be pasted into a ticket as it is.

use crate::run::{Test, fixture};

#[test]
fn a_ticket_says_who_must_act_why_where_and_when() {
    let test = Test::slurm("ticket");
    let shown = test.run(&["diagnose", "67", "--ticket"]);
    shown.ends(0);
    for words in [
        "**Who must act:** the job's owner",
        "(`host_oom`)",
        "known cases as clear as this)",
        "- State: OUT_OF_MEMORY",
        "- Nodes: c04",
        "- Partition: ",
        "- Account: ",
        "- Submitted as: `sbatch ",
        "- no earlier run of this job is recorded",
        "### Change proposed",
        "oom-67_4294967294.out:2: slurmstepd-c04: error: Detected 1 oom-kill event(s)",
    ] {
        shown.says(words);
    }
    // With the distance from UTC: its reader may sit elsewhere.
    let ended = shown.stdout.lines().find(|line| line.starts_with("- Ended: ")).expect("a line");
    assert!(ended.ends_with(" +00:00"), "{ended}");
    // JSON is the same with it and without it.
    let with = test.run(&["diagnose", "67", "--ticket", "--json"]);
    assert_eq!(with.stdout, test.run(&["diagnose", "67", "--json"]).stdout);
}

#[test]
fn earlier_runs_are_what_was_tried() {
    let test = Test::slurm("ticket-requeue");
    // The job once before, ended by the failure of its node; newest run last, as sacct prints them.
    let record = fixture("slurm-22.05/sacct-oom.txt");
    let first = record.lines().next().expect("a row").replace("OUT_OF_MEMORY", "NODE_FAIL");
    test.record("67", &format!("{first}\n{record}"));
    test.run(&["diagnose", "67", "--ticket"]).ends(0).says("### Tried so far - NODE_FAIL after");
}

#[test]
fn a_fault_of_a_machine_comes_with_the_text_of_its_report() {
    let test = Test::slurm("ticket-hardware");
    let text = "NVRM: Xid (PCI:0000:4b:00): 79, pid=1, GPU has fallen off the bus.";
    let shown = test.run(&["diagnose", "--text", text, "--ticket"]);
    shown.ends(0).says("**Who must act:** the site's staff: a machine is at fault");
    shown.says("**Asked for:** A GPU of this node reports a hardware error. Please drain the node");
    // The usual answer says that there is such a thing.
    let usual = test.run(&["diagnose", "--text", text]);
    usual.says("report not yours to mend: with --ticket");
    let report =
        &test.run(&["diagnose", "--text", text, "--json"]).json()["diagnoses"][0]["report"];
    assert!(report.as_str().is_some_and(|report| report.contains("drain the node")), "{report}");
}

#[test]
fn no_line_leaves_its_fence_and_no_secret_the_ticket() {
    let test = Test::slurm("ticket-hostile");
    // A token in the form that the site publishes, of zeros.
    let token = format!("hf_{}", "0aB1".repeat(9));
    let log = format!(
        "export HF_TOKEN={token}\n```\n# not a heading\n\u{1b}[31mKeyError: '```{token}'\n"
    );
    test.file("work/train.out", log.as_bytes());
    let shown = test.run(&["diagnose", "--log", "train.out", "--ticket"]);
    assert!(!shown.stdout.contains(&token) && !shown.stdout.contains('\u{1b}'), "{}", shown.all());
    assert!(
        shown.stdout.contains("\n````\n"),
        "a fence longer than any row in it: {}",
        shown.all()
    );
    let fences = shown.stdout.lines().filter(|line| line.trim_matches('`').is_empty());
    assert_eq!(fences.filter(|line| line.len() == 4).count() % 2, 0, "{}", shown.all());
    // What nobody knows is asked of somebody.
    test.file("work/quiet.out", b"step 1\nstep 2\n");
    let shown = test.run(&["diagnose", "--log", "quiet.out", "--ticket"]);
    shown.ends(1).says("**Cause:** unknown").says("### The last lines of quiet.out");
}

#[test]
fn an_array_begins_with_the_counts_of_what_its_tasks_came_to() {
    let test = Test::slurm("ticket-array");
    // The recorded array, and three more tasks like its third, so that they are the most.
    let rows = fixture("slurm-22.05/sacct-array.txt");
    let more = |task: &str, id: &str| {
        let own = rows.lines().filter(|row| row.starts_with("73_3"));
        let own = own.map(|row| row.replace("73_3", task).replace("@~@106", id));
        own.collect::<Vec<_>>().join("\n")
    };
    let others = [("73_8", "@~@218"), ("73_9", "@~@219"), ("73_10", "@~@220")];
    let others = others.map(|(task, id)| more(task, id));
    let rows = format!("{rows}{}\n", others.join("\n"));
    test.record("73", &rows);
    let answer = test.run(&["diagnose", "73", "--json"]).json();
    let array = &answer["arrays"][0];
    let told = answer["diagnoses"].as_array().expect("tasks").len();
    assert_eq!((&array["job"], &array["tasks"]), (&73.into(), &told.into()));
    let ends = array["ends"].as_array().expect("counts");
    assert_eq!((&ends[0]["what"], &ends[0]["tasks"]), (&"host_oom".into(), &4.into()));
    let sum: u64 = ends.iter().filter_map(|end| end["tasks"].as_u64()).sum();
    assert_eq!(sum, told as u64);
    let head = format!("{told} tasks of array 73: 4 host_oom, ");
    let usual = test.run(&["diagnose", "73"]);
    assert!(usual.stdout.starts_with(&head), "{}", usual.all());
    let ticket = test.run(&["diagnose", "73", "--ticket"]);
    assert!(ticket.stdout.starts_with(&format!("**{head}")), "{}", ticket.all());
    // One story, however many tasks.
    assert_eq!(ticket.stdout.matches("(`host_oom`)").count(), 1, "{}", ticket.all());
    ticket.says("The same for 3 more jobs: 73_8 73_9 73_10");
    // A job that is no array has no such line.
    assert!(test.run(&["diagnose", "67", "--json"]).json()["arrays"].is_null());
}
