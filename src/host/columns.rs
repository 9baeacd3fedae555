//! A recorded table for a query that names other columns.
//!
//! `sacct` prints the columns that `--format` names, and a jobwise that asks for more than the one that
//! made a recording would find nothing in it. So a query that differs in that list only is answered
//! from the recorded table: each column by its name, empty where it was not recorded, which every
//! reader takes for not known. Refuses to guess where a row ends: a line that does not begin with the
//! columns that have to move belongs to a text above it and is left as it is.

use std::borrow::Cow;

use super::Cmd;
use super::manifest::Answered;

const OPTION: &str = "--format=";

/// The recorded query of which this one differs only in its columns; of several the one that has most
/// of them.
pub(super) fn answered<'a>(commands: &'a [Answered], cmd: &Cmd) -> Option<&'a Answered> {
    let asked = cmd.argv();
    let wanted = names(&asked)?;
    let same = |answered: &&Answered| {
        let rest = |argv: &'_ [String]| -> Vec<String> {
            argv.iter().filter(|word| !word.starts_with(OPTION)).cloned().collect()
        };
        answered.argv.first() == asked.first() && rest(&answered.argv) == rest(&asked)
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
    let delimiter = delimiter.unwrap_or("|").as_bytes();
    // What stands at the end of both is left alone: it is what users write, and may hold anything.
    let pairs = have.iter().rev().zip(wanted.iter().rev());
    let tail = pairs.take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count();
    let moved = have.len() - tail;
    let own = &wanted[..wanted.len() - tail];
    let places: Vec<Option<usize>> =
        own.iter().map(|name| position(&have[..moved], name)).collect();
    let table = stdout.split_inclusive(|byte| *byte == b'\n').map(|line| {
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

/// The columns that a query of `sacct` names.
fn names(argv: &[String]) -> Option<Vec<&str>> {
    let listed = argv.first().filter(|program| *program == "sacct");
    let list = listed.and_then(|_| argv.iter().find_map(|word| word.strip_prefix(OPTION)))?;
    Some(list.split(',').collect())
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
