use proptest::prelude::*;

use super::*;

fn read(lines: &[&str]) -> Script {
    parse(format!("#!/bin/bash\n{}\ntrue\n", lines.join("\n")).as_bytes())
}

fn value(lines: &[&str], long: &str) -> Option<String> {
    read(lines).effective(long)?.value.clone()
}

/// Every row was submitted to sbatch 22.05 with `-v --test-only`, which printed this value.
#[test]
fn directives_mean_what_sbatch_reads() {
    let rows: &[(&[&str], &str, &str)] = &[
        (&["#SBATCH -t 10 # comment --mem=99", "#SBATCH --mem=100M # x"], "mem", "100M"),
        (&["#SBATCH -t10 --mem 100M -n1"], "mem", "100M"),
        (&["#SBATCH -t10 --mem 100M -n1"], "time", "10"),
        (&["#SBATCH\t--time=10\t--mem=100"], "time", "10"),
        (&["#SBATCH --mem=100", "#SBATCH --mem=200"], "mem", "200"),
        (&["#SBATCH--mem=100"], "mem", "100"),
        (&["#SBATCH --mem-per-c=30"], "mem-per-cpu", "30"),
        (&["#SBATCH --job=foo"], "job-name", "foo"),
        (&["#SBATCH --mem", "#SBATCH 200"], "mem", "200"),
        (&["#SBATCH -t", "# plain comment", "", "#SBATCH 5"], "time", "5"),
        (&["", "   ", "# c", "#SBATCH --mem=100"], "mem", "100"),
        (&["#SBATCH -vt 10"], "time", "10"),
        (&["#SBATCH -Hn2"], "ntasks", "2"),
        (&["#SLURM --mem=100"], "mem", "100"),
        (&["#SBATCH --mem=100#x"], "mem", "100"),
        (&["#SBATCH --mem=5 \\", "#SBATCH --time=3"], "time", "3"),
        (&["\u{c}", "#SBATCH\u{b}--comment=y"], "comment", "y"),
        (&["#SBATCH -t 5 --mem=100 hetjob", "#SBATCH --mem=200"], "mem", "200"),
    ];
    for (lines, long, expected) in rows {
        assert_eq!(value(lines, long).as_deref(), Some(*expected), "{lines:?}");
    }
}

#[test]
fn what_is_no_directive_is_named_and_not_read() {
    // sbatch 22.05 read no memory from this.
    let script = read(&[
        "##SBATCH --mem=100",
        "# SBATCH --mem=200",
        "#Sbatch --mem=300",
        " #SBATCH --mem=400",
    ]);
    assert!(script.effective("mem").is_none());
    let kinds: Vec<&NoteKind> = script.notes.iter().map(|note| &note.kind).collect();
    assert_eq!(
        kinds,
        [
            &NoteKind::CommentedOut,
            &NoteKind::BlankAfterHash,
            &NoteKind::Miscased,
            &NoteKind::Indented
        ]
    );
    assert_eq!(script.notes[0].line, 2);
    assert!(read(&["# sbatch is run by hand"]).notes.is_empty());
}

#[test]
fn directives_after_the_first_command_are_reported_as_ignored() {
    let script = read(&["set -e", "#SBATCH --mem=100", ": <<X", "#SBATCH hetjob"]);
    assert!(script.effective("mem").is_none());
    assert_eq!(script.directives[0].ignored, Some(Ignored::AfterCommand(2)));
    assert_eq!((script.directives[0].line, script.components), (3, 1));
}

#[test]
fn components_inherit_until_they_say_otherwise() {
    // sbatch 22.05: `mem 100, time 5` for both, then `mem 100` and `mem 200` with `packjob`.
    let script = read(&["#SBATCH --mem=100 -t 5", "#SBATCH hetjob --mem=200", "#SBATCH -n 2"]);
    assert_eq!(script.components, 2);
    let mem = script.effective_in(1, "mem").expect("inherited");
    assert_eq!((mem.value.as_deref(), mem.component), (Some("100"), 0));
    assert!(script.effective("ntasks").is_none());
    assert!(script.notes.iter().any(|note| note.kind == NoteKind::RestOfLineLost));
    let script = read(&["#SBATCH --mem=100", "#SBATCH packjob", "#SBATCH --mem=200"]);
    let mem = |component| script.effective_in(component, "mem").and_then(|d| d.value.clone());
    assert_eq!((mem(0).as_deref(), mem(1).as_deref()), (Some("100"), Some("200")));
}

#[test]
fn what_sbatch_refuses_is_a_note() {
    let kind = |line: &str| read(&[line]).notes.first().map(|note| note.kind.clone());
    assert_eq!(kind("#SBATCH --tim=10"), Some(NoteKind::Ambiguous("--tim".into())));
    assert_eq!(kind("#SBATCH --mem=1 word"), Some(NoteKind::NotAnOption("word".into())));
    assert_eq!(kind("#SBATCHX --mem=1"), Some(NoteKind::NotAnOption("X".into())));
    assert_eq!(kind("#SBATCH --exclusive user"), Some(NoteKind::NotAnOption("user".into())));
    assert_eq!(kind("#SBATCH --nice 5"), Some(NoteKind::NotAnOption("5".into())));
    assert_eq!(kind("#SBATCH --comment=\"abc"), Some(NoteKind::UnmatchedQuote));
    assert_eq!(kind("#SBATCH --mem"), Some(NoteKind::LacksValue("--mem".into())));
    assert_eq!(kind("#SBATCH --mem=1\r"), Some(NoteKind::DosLineEnds));
    let foreign = NoteKind::OtherScheduler("#PBS -l mem=1gb".into());
    assert_eq!(kind("#PBS -l mem=1gb"), Some(foreign));
}

#[test]
fn spellings_and_places_of_values_are_kept() {
    let text = b"#!/bin/bash\n#SBATCH --time 10 -n4 --mem=\"1G\"\ntrue\n";
    let script = parse(text);
    let spelled: Vec<&str> = script.directives.iter().map(|d| d.spelled.as_str()).collect();
    assert_eq!(spelled, ["--time ", "-n", "--mem="]);
    for directive in &script.directives {
        let span = directive.span.clone().expect("a place");
        assert_eq!(Some(text[span].to_vec()), directive.value.clone().map(String::into_bytes));
    }
}

#[test]
fn the_body_tells_environments_containers_and_variables() {
    let script = read(&[
        "module load gcc/12 && source ~/venv/bin/activate",
        "ml purge; ml python",
        "export NCCL_SOCKET_IFNAME_X=ib0 OMP_NUM_THREADS=4",
        "srun --container-image=foo.sqsh python a.py",
        "singularity --version",
    ]);
    let lines: Vec<usize> = script.activations.iter().map(|found| found.line).collect();
    assert_eq!(lines, [2, 2, 3]);
    let names: Vec<&str> = script.assignments.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["NCCL_SOCKET_IFNAME_X", "OMP_NUM_THREADS"]);
    assert_eq!(script.container, Some(5));
    assert!(read(&["module purge", "singularity --version"]).container.is_none());
    assert_eq!(read(&["#SBATCH --container-image=foo.sqsh"]).container, Some(2));
}

#[test]
fn only_shells_that_export_are_shells_here() {
    let is = |shebang: &str| parse(format!("#!{shebang}\n").as_bytes()).is_posix_shell();
    assert!(is("/bin/bash -l") && is("/usr/bin/env bash") && is("/usr/bin/env -S bash -e"));
    assert!(!is("/bin/tcsh") && !is("/usr/bin/env python3") && !is(""));
}

/// The lines are what accounting of Slurm 22.05 recorded.
#[test]
fn recorded_submission_commands_are_read() {
    let options = |line: &str| {
        let submit = parse_submit_line(line);
        let given: Vec<String> = submit.options.iter().map(Given::as_written).collect();
        (given.join(" "), submit.script)
    };
    let (given, script) = options("sbatch --parsable -J oom -o oom-%A_%a.out --mem=100 /s/oom.sh");
    assert_eq!(given, "--parsable -J oom -o oom-%A_%a.out --mem=100");
    assert_eq!(script.as_deref(), Some("/s/oom.sh"));
    let (given, script) = options("sbatch -J my job with spaces -t 5 /s/name-space.sh --mem=9");
    assert_eq!(given, "-J my -t 5");
    assert_eq!(script.as_deref(), Some("/s/name-space.sh"));
    assert_eq!(options("sbatch -t 1 jobfile --mem=3").1.as_deref(), Some("jobfile"));
    let step = parse_submit_line("srun --exact -n 1 --mem=20 bash -c exit 0 --mem=9 /a/b");
    let given: Vec<String> = step.options.iter().map(Given::as_written).collect();
    assert_eq!(given.join(" "), "--exact -n 1 --mem=20");
    let wrapped = parse_submit_line("sbatch -t 1 --wrap=python a.py --mem=3");
    assert!(wrapped.wrap && wrapped.effective(0, "mem").is_none());
    let het = parse_submit_line("sbatch --mem=1G : --mem=2G job.sh");
    let mem = |component| het.effective(component, "mem").and_then(|given| given.value.as_deref());
    assert_eq!((mem(0), mem(1)), (Some("1G"), Some("2G")));
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>) {
        check(&bytes)?;
    }

    #[test]
    fn any_directives_are_read(lines in proptest::collection::vec("(#SBATCH|#PBS|##SBATCH| #SBATCH)?[ \\\\\"'#=a-z0-9-]{0,24}\r?", 0..8)) {
        check(lines.join("\n").as_bytes())?;
    }

    #[test]
    fn any_submission_command_is_read(line in "(sbatch )?[ :=a-z-]{0,40}") {
        parse_submit_line(&line);
    }
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let script = parse(bytes);
    for directive in &script.directives {
        if let Some(span) = &directive.span {
            prop_assert!(span.start <= span.end && span.end <= bytes.len());
        }
    }
    for component in 0..script.components {
        prop_assert!(script.insertion_point(component) <= bytes.len());
    }
    Ok(())
}
