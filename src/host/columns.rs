//! A recorded table for a query that names other columns.
//!
//! `sacct`, `sacctmgr` and `squeue` print the columns that are named, and a jobwise that asks for more than the one that
//! made a recording would find nothing in it. So a query that differs in that list only is answered
//! from the recorded table: each column by its name, empty where it was not recorded, which every
//! reader takes for not known. A row of jobs ends where the next one begins with an id, as names and
//! comments hold line ends; of other tables, where its line does. What has fewer columns than have to
//! move is left as it is.

use std::borrow::Cow;

use super::Cmd;
use super::manifest::Answered;

/// What names the columns, by the program.
const OPTIONS: [(&str, &str); 3] =
    [("sacct", "--format="), ("sacctmgr", "format="), ("squeue", "--Format=")];

/// The recorded query of which this one differs only in its columns; of several the one that has most
/// of them.
pub(super) fn answered<'a>(commands: &'a [Answered], cmd: &Cmd) -> Option<&'a Answered> {
    let asked = cmd.argv();
    let wanted = names(&asked)?;
    let same = |answered: &&Answered| {
        let rest = |argv: &[String]| -> Vec<String> {
            let list = list(argv).map(|list| list.0);
            let others = argv.iter().enumerate().filter(|(place, _)| Some(*place) != list);
            others.map(|(_, word)| word.clone()).collect()
        };
        rest(&answered.argv) == rest(&asked)
    };
    let common = |answered: &&Answered| {
        let have = names(&answered.argv).unwrap_or_default();
        wanted.iter().filter(|name| position(&have, name).is_some()).count()
    };
    let found = commands.iter().filter(same).rev().max_by_key(common)?;
    (common(&found) > 0).then_some(found)
}

/// The recorded table with the columns that a query names; `None` where it has these already.
pub(super) fn projected(recorded: &Answered, cmd: &Cmd, stdout: &[u8]) -> Option<Vec<u8>> {
    let asked = cmd.argv();
    let (have, wanted) = (names(&recorded.argv)?, names(&asked)?);
    if have == wanted {
        return None;
    }
    let delimiter = asked.iter().find_map(|word| word.strip_prefix("--delimiter="));
    // `squeue` is told with each column what ends it.
    let of_first = || list(&asked)?.1.split(',').next()?.split_once(':').map(|(_, end)| end);
    let delimiter = delimiter.or_else(of_first).unwrap_or("|").as_bytes();
    // What stands at the end of both is left alone: it is what users write, and may hold anything.
    let pairs = have.iter().rev().zip(wanted.iter().rev());
    let tail = pairs.take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count();
    let moved = have.len() - tail;
    let own = &wanted[..wanted.len() - tail];
    let places: Vec<Option<usize>> =
        own.iter().map(|name| position(&have[..moved], name)).collect();
    let is_of_jobs = have.first().is_some_and(|name| name.eq_ignore_ascii_case("JobID"));
    let table = rows(stdout, delimiter, is_of_jobs).into_iter().map(|line| {
        let ended = line.strip_suffix(b"\n").unwrap_or(line);
        let (cells, rest) = cells(ended, delimiter, moved);
        if cells.len() < moved || rest.is_some() != (tail > 0) {
            return Cow::Borrowed(line);
        }
        let own = places.iter().map(|place| place.map_or(&[][..], |place| cells[place]));
        let row: Vec<&[u8]> = own.chain(rest).collect();
        let mut row = row.join(delimiter);
        row.extend_from_slice(&line[ended.len()..]);
        Cow::Owned(row)
    });
    Some(table.collect::<Vec<_>>().concat())
}

/// The rows of a table, each with the line end behind it.
fn rows<'t>(table: &'t [u8], delimiter: &[u8], is_of_jobs: bool) -> Vec<&'t [u8]> {
    let (mut rows, mut begin, mut at) = (Vec::new(), 0, 0);
    for line in table.split_inclusive(|byte| *byte == b'\n') {
        if at > begin && (!is_of_jobs || opens(line, delimiter)) {
            rows.push(&table[begin..at]);
            begin = at;
        }
        at += line.len();
    }
    if begin < at {
        rows.push(&table[begin..]);
    }
    rows
}

/// Whether a line begins with an id: a number, perhaps with a task, component or step behind it.
fn opens(line: &[u8], delimiter: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(line, delimiter) else { return false };
    let digits = line[..end].iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && line[digits..end].first().is_none_or(|next| b"._+;".contains(next))
}

/// The first cells of a line, and what follows them.
fn cells<'l>(
    mut line: &'l [u8],
    delimiter: &[u8],
    count: usize,
) -> (Vec<&'l [u8]>, Option<&'l [u8]>) {
    let mut cells = Vec::with_capacity(count);
    while cells.len() < count {
        let Some(end) = memchr::memmem::find(line, delimiter) else {
            cells.push(line);
            return (cells, None);
        };
        cells.push(&line[..end]);
        line = &line[end + delimiter.len()..];
    }
    (cells, Some(line))
}

/// The list of columns in a query, and which word it is.
fn list(argv: &[String]) -> Option<(usize, &str)> {
    let program = argv.first()?;
    let (_, option) = OPTIONS.iter().find(|(known, _)| known == program)?;
    argv.iter().enumerate().find_map(|(place, word)| Some((place, word.strip_prefix(option)?)))
}

/// The columns that a query names.
fn names(argv: &[String]) -> Option<Vec<&str>> {
    let (_, list) = list(argv)?;
    Some(list.split(',').map(|name| name.split_once(':').map_or(name, |(name, _)| name)).collect())
}

fn position(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::manifest::End;
    use super::*;

    fn recorded(format: &str, stdout: &str) -> Answered {
        let argv = ["sacct", "--parsable2", "--delimiter=@~@", format, "--jobs=7"];
        Answered {
            argv: argv.map(str::to_owned).to_vec(),
            stdout: stdout.to_owned(),
            end: End::Exit { status: Some(0), stderr: String::new() },
        }
    }

    fn query(format: &str) -> Cmd {
        Cmd::new("sacct", &["--parsable2", "--delimiter=@~@"]).arg(format).arg("--jobs=7")
    }

    fn read(have: &str, wanted: &str, table: &str) -> String {
        let table = projected(&recorded(have, ""), &query(wanted), table.as_bytes());
        String::from_utf8(table.expect("other columns")).expect("text")
    }

    #[test]
    fn a_column_that_was_not_recorded_is_empty_and_the_others_stay_with_their_names() {
        let table = "7@~@FAILED@~@fit\n7.batch@~@FAILED@~@batch\n";
        assert_eq!(
            read("--format=JobID,State,JobName", "--format=JobID,MaxRSS,State,JobName", table),
            "7@~@@~@FAILED@~@fit\n7.batch@~@@~@FAILED@~@batch\n"
        );
        assert_eq!(
            read("--format=JobID,State,JobName", "--format=State,jobid,Comment", table),
            "FAILED@~@7@~@\nFAILED@~@7.batch@~@\n"
        );
    }

    #[test]
    fn a_name_with_a_line_break_or_the_delimiter_in_it_stays_whole() {
        let have = "--format=JobID,State,ExitCode,JobName";
        let table = "7@~@FAILED@~@1:0@~@two\nlines@~@more\n";
        assert_eq!(
            read(have, "--format=JobID,State,ExitCode,MaxRSS,JobName", table),
            "7@~@FAILED@~@1:0@~@@~@two\nlines@~@more\n"
        );
    }

    #[test]
    fn a_name_with_a_line_break_moves_with_its_row() {
        // Slurm 22.05 printed job 80 so, and text columns have been asked for behind these since.
        let table =
            "80@~@COMPLETED@~@two\nlines@~@line1\n2nd\ttab\n80.batch@~@COMPLETED@~@batch@~@\n";
        assert_eq!(
            read(
                "--format=JobID,State,JobName,Comment",
                "--format=JobID,State,JobName,Comment,SystemComment",
                table
            ),
            "80@~@COMPLETED@~@two\nlines@~@line1\n2nd\ttab@~@\n80.batch@~@COMPLETED@~@batch@~@@~@\n"
        );
    }

    #[test]
    fn each_program_has_its_own_way_to_name_columns() {
        let of = |argv: &[&str]| Answered {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            ..recorded("", "")
        };
        let read = |kept: &[&str], wanted: &Cmd, table: &str| {
            let kept = [of(kept)];
            let found = answered(&kept, wanted).expect("the same but for its columns");
            projected(found, wanted, table.as_bytes())
                .map(String::from_utf8)
                .expect("other columns")
        };
        let queue =
            Cmd::new("squeue", &["--all", "--Format=JobID:@~@,State:@~@,ReqNodes:@~@,Name:@~@"]);
        let kept = ["squeue", "--all", "--Format=JobID:@~@,State:@~@,Name:@~@"];
        let table = "7@~@PENDING@~@two\nlines@~@\n8@~@RUNNING@~@fit@~@\n";
        let wanted = "7@~@PENDING@~@@~@two\nlines@~@\n8@~@RUNNING@~@@~@fit@~@\n";
        assert_eq!(read(&kept, &queue, table).as_deref(), Ok(wanted));
        let qos = Cmd::new("sacctmgr", &["show", "qos", "format=Name,Flags,UsageFactor,MaxWall"]);
        let kept = ["sacctmgr", "show", "qos", "format=Name,Flags,MaxWall"];
        assert_eq!(read(&kept, &qos, "long||7-0\n").as_deref(), Ok("long|||7-0\n"));
    }

    #[test]
    fn only_a_query_that_differs_in_nothing_else_is_answered() {
        let few = recorded("--format=JobID,State", "few");
        let most = recorded("--format=JobID,State,ExitCode", "most");
        let mut other = recorded("--format=JobID,State,ExitCode,JobName", "other");
        other.argv[4] = "--jobs=8".to_owned();
        let commands = [few, other, most];
        let wanted = query("--format=JobID,State,ExitCode,JobName");
        assert_eq!(answered(&commands, &wanted).map(|found| found.stdout.as_str()), Some("most"));
        assert_eq!(answered(&commands, &query("--format=Account")), None);
        assert_eq!(answered(&commands, &Cmd::new("sinfo", &["--format=JobID"])), None);
        let same = query("--format=JobID,State,ExitCode");
        assert_eq!(projected(&commands[2], &same, b"7@~@FAILED@~@1:0\n"), None);
    }
}
