//! A page of text: width, colour or none, ASCII or not, and the zone of its times.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::model::{Known, Level, Notice};
use crate::text;

/// What a piece of text is; the theme says how that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Ordinary text.
    Plain,
    /// What the eye should find first.
    Strong,
    /// Went well.
    Good,
    /// Failed.
    Bad,
    /// Uncertain or degraded.
    Warn,
    /// Names of parts.
    Dim,
    /// An added line of a diff.
    Added,
    /// A removed line of a diff.
    Removed,
}

/// The theme: the one place that knows colours.
fn style(label: Label) -> Style {
    let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
    match label {
        Label::Plain => Style::new(),
        Label::Strong => Style::new().bold(),
        Label::Good | Label::Added => color(AnsiColor::Green),
        Label::Bad | Label::Removed => color(AnsiColor::Red),
        Label::Warn => color(AnsiColor::Yellow),
        Label::Dim => Style::new().dimmed(),
    }
}

/// How text is to look, decided once by the command line and the terminal.
#[derive(Debug, Clone)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether to paint.
    pub color: bool,
    /// Whether to keep to ASCII.
    pub ascii: bool,
    /// The zone of printed times.
    pub zone: TimeZone,
    /// The present year in that zone: times of other years say theirs.
    pub year: i16,
    /// Whether a table that is too wide is cut: for a person, not for a program that reads it.
    pub cut: bool,
}

/// A writer that knows how text is to look.
pub struct Page<'p> {
    out: &'p mut dyn Write,
    look: &'p Look,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// The heading.
    pub(super) heading: &'static str,
    /// Numbers stand to the right.
    pub(super) right: bool,
    /// The narrowest it may be cut to, when the terminal is too small.
    pub(super) least: usize,
}

/// [`Column::least`] of a column that is never cut: half a number is another number.
pub(super) const WHOLE: usize = usize::MAX;

/// Where the page is too narrow for what columns want at least, names are cut to this.
const NARROW: usize = 4;

/// In front of what does not fit beside the first columns of a table.
const BELOW: &str = "  ";

/// How a table stands on a page.
struct Form {
    widths: Vec<usize>,
    /// What stands between two columns.
    gap: &'static str,
    /// The columns that begin a line of their own.
    below: Vec<usize>,
}

/// A cell.
pub(super) type Cell = (Label, String);

/// The cells of a table, row after row. Their texts are clean and in one piece: of a large cluster
/// there are a hundred thousand.
pub(super) struct Cells {
    ascii: bool,
    text: String,
    /// What each is, and where its text ends.
    ends: Vec<(Label, usize)>,
}

impl Cells {
    /// Adds the next cell.
    pub(super) fn push(&mut self, label: Label, cell: impl Display) {
        let start = self.text.len();
        // A string takes everything.
        let _ = write!(self.text, "{cell}");
        if let Cow::Owned(clean) = clean(&self.text[start..], self.ascii) {
            self.text.truncate(start);
            self.text.push_str(&clean);
        }
        self.ends.push((label, self.text.len()));
    }

    fn rows(&self, columns: usize) -> impl Iterator<Item = impl Iterator<Item = (Label, &str)>> {
        let mut next = 0;
        self.ends.chunks(columns.max(1)).map(move |row| {
            let mut start = next;
            next = row.last().map_or(start, |(_, end)| *end);
            row.iter().map(move |(label, end)| {
                let text = &self.text[start..*end];
                start = *end;
                (*label, text)
            })
        })
    }
}

impl<'p> Page<'p> {
    /// A page on a writer.
    pub fn new(out: &'p mut dyn Write, look: &'p Look) -> Self {
        Self { out, look }
    }

    /// Whether it is for a person at a terminal of that width, and not for a program.
    pub(super) fn is_cut(&self) -> bool {
        self.look.cut
    }

    /// The columns there are.
    pub fn width(&self) -> usize {
        self.look.width
    }

    /// Writes a line of labelled pieces. Whatever they hold, nothing can steer the terminal.
    pub fn line(&mut self, pieces: &[(Label, &str)]) -> io::Result<()> {
        let mut line = String::new();
        for (label, piece) in pieces {
            self.paint(*label, &self.clean(piece), &mut line);
        }
        writeln!(self.out, "{}", line.trim_end())
    }

    /// Adds clean text to a line.
    fn paint(&self, label: Label, clean: &str, line: &mut String) {
        if self.look.color && label != Label::Plain && !clean.is_empty() {
            let style = style(label);
            line.push_str(&format!("{style}{clean}{style:#}"));
        } else {
            line.push_str(clean);
        }
    }

    /// Writes a line of a diff. Its tabs, its last blanks and a carriage return at its end stay, so
    /// that it can be applied.
    pub(super) fn diff_line(&mut self, label: Label, line: &str) -> io::Result<()> {
        let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
        let cells: Vec<Cow<'_, str>> = line.split('\t').map(|cell| self.clean(cell)).collect();
        let clean = cells.join("\t");
        if self.look.color && label != Label::Plain {
            let style = style(label);
            writeln!(self.out, "{style}{clean}{style:#}{end}")
        } else {
            writeln!(self.out, "{clean}{end}")
        }
    }

    /// Writes pieces beside each other, two blanks apart; what does not fit begins a line of its
    /// own, indented by two.
    pub fn row(&mut self, pieces: &[(Label, &str)]) -> io::Result<()> {
        let columns = self.width();
        let mut line: Vec<(Label, String)> = Vec::new();
        let mut used = 0;
        for (label, piece) in pieces {
            let clean = self.clean(piece);
            for part in text::wrap(&clean, columns - 2, 0) {
                let width = text::width(&part);
                let gap = (Label::Plain, "  ".to_owned());
                if used > 0 && used + 2 + width > columns {
                    self.owned_line(&line)?;
                    (line, used) = (vec![gap], 2);
                } else if used > 0 {
                    line.push(gap);
                    used += 2;
                }
                used += width;
                line.push((*label, part));
            }
        }
        self.owned_line(&line)
    }

    fn owned_line(&mut self, pieces: &[(Label, String)]) -> io::Result<()> {
        let pieces: Vec<(Label, &str)> =
            pieces.iter().map(|(label, piece)| (*label, piece.as_str())).collect();
        self.line(&pieces)
    }

    /// Writes a line of our own exactly as it is, blanks at its end included.
    pub(super) fn verbatim(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// Writes an empty line.
    pub fn gap(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Writes `name` in a margin and text beside it, wrapped.
    pub fn entry(&mut self, name: &str, margin: usize, label: Label, body: &str) -> io::Result<()> {
        let columns = self.width().saturating_sub(margin).max(20);
        let name = text::pad(name, margin);
        for (index, line) in text::wrap(body, columns, 0).iter().enumerate() {
            let blank = " ".repeat(margin);
            let margin = if index == 0 { &name } else { &blank };
            self.line(&[(Label::Dim, margin), (label, line)])?;
        }
        Ok(())
    }

    /// Writes a table whose rows are at hand.
    pub(super) fn table(&mut self, columns: &[Column], rows: &[Vec<Cell>]) -> io::Result<()> {
        let mut cells = self.cells(columns, rows.len());
        for row in rows {
            for index in 0..columns.len() {
                match row.get(index) {
                    Some((label, cell)) => cells.push(*label, cell),
                    None => cells.push(Label::Plain, ""),
                }
            }
        }
        self.grid(columns, &cells)
    }

    /// Room for the cells of so many rows, for [`Self::grid`].
    pub(super) fn cells(&self, columns: &[Column], rows: usize) -> Cells {
        let count = rows * columns.len();
        let text = String::with_capacity(10 * count);
        Cells { ascii: self.look.ascii, text, ends: Vec::with_capacity(count) }
    }

    /// Writes a table: columns as wide as their widest cell; where that is too much for the page,
    /// the widest that may still shrink is cut first, and where that is not enough rows go on below.
    /// What a program reads is never cut.
    pub(super) fn grid(&mut self, columns: &[Column], cells: &Cells) -> io::Result<()> {
        let mut widths: Vec<usize> =
            columns.iter().map(|column| text::width(column.heading)).collect();
        for row in cells.rows(columns.len()) {
            for ((_, cell), width) in row.zip(&mut widths) {
                *width = clean_width(cell).max(*width);
            }
        }
        let distinct = || {
            let names = cells.rows(columns.len()).filter_map(|mut row| row.next());
            distinct(names.map(|(_, name)| name).collect())
        };
        let form = self.fit(columns, widths, distinct);
        let headings = columns.iter().map(|column| (Label::Dim, column.heading));
        self.grid_row(columns, &form, headings)?;
        cells.rows(columns.len()).try_for_each(|row| self.grid_row(columns, &form, row))
    }

    /// Narrows the columns to what the page has. The first names the rows: it is not cut below what
    /// tells them apart.
    fn fit(&self, columns: &[Column], whole: Vec<usize>, distinct: impl FnOnce() -> usize) -> Form {
        let mut widths = whole.clone();
        let between = columns.len().saturating_sub(1);
        let too_wide = |widths: &[usize], gap: &str| {
            widths.iter().sum::<usize>() + gap.len() * between > self.width()
        };
        let mut gap = "  ";
        let distinct = if self.look.cut && too_wide(&widths, gap) { distinct() } else { 0 };
        // A page too narrow for that loses the second blank between columns, then more of the names.
        for (narrower, floor) in [("  ", usize::MAX), (" ", usize::MAX), (" ", NARROW)] {
            if !self.look.cut || !too_wide(&widths, gap) {
                break;
            }
            gap = narrower;
            while too_wide(&widths, gap) {
                let least = |index: usize| match columns[index].least {
                    WHOLE => WHOLE,
                    least if index == 0 => least.min(floor).max(distinct),
                    least => least.min(floor),
                };
                let shrinkable = (0..widths.len()).filter(|&index| widths[index] > least(index));
                let Some(widest) = shrinkable.max_by_key(|&index| widths[index]) else { break };
                widths[widest] -= 1;
            }
        }
        if !self.look.cut || !too_wide(&widths, gap) {
            return Form { widths, gap, below: Vec::new() };
        }
        let most = self.width() - BELOW.len();
        let mut form = Form { widths: whole, gap: "  ", below: Vec::new() };
        let mut used = 0;
        for (index, (width, column)) in form.widths.iter_mut().zip(columns).enumerate() {
            if column.least != WHOLE {
                *width = (*width).min(most);
            }
            if index > 0 && used + form.gap.len() + *width > self.width() {
                form.below.push(index);
                used = BELOW.len() + *width;
            } else {
                used += *width + if index > 0 { form.gap.len() } else { 0 };
            }
        }
        form
    }

    fn grid_row<'c>(
        &mut self,
        columns: &[Column],
        Form { widths, gap, below }: &Form,
        row: impl Iterator<Item = (Label, &'c str)>,
    ) -> io::Result<()> {
        let mut line = String::with_capacity(self.width());
        let mut filled = String::new();
        for (index, ((label, cell), column)) in row.zip(columns).enumerate() {
            let cut = self.cut(cell, widths[index]);
            let blanks = widths[index].saturating_sub(clean_width(&cut));
            filled.clear();
            blank(&mut filled, if column.right { blanks } else { 0 });
            filled.push_str(&cut);
            blank(&mut filled, if column.right { 0 } else { blanks });
            if below.contains(&index) {
                line.truncate(line.trim_end().len());
                line.push('\n');
                line.push_str(BELOW);
            } else if index > 0 {
                line.push_str(gap);
            }
            self.paint(label, &filled, &mut line);
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }

    /// Writes what an answer lacks.
    pub fn notices(&mut self, notices: &[Notice]) -> io::Result<()> {
        for notice in notices {
            let (name, label) = match notice.level {
                Level::Info => ("note: ", Label::Plain),
                Level::Warning => ("warning: ", Label::Warn),
            };
            self.entry(name, name.len(), label, &notice.text)?;
            if let Some(hint) = &notice.hint {
                self.entry("hint: ", 6, Label::Plain, hint)?;
            }
        }
        Ok(())
    }

    /// The same below an empty line, at the end of an answer.
    pub fn notices_apart(&mut self, notices: &[Notice]) -> io::Result<()> {
        if !notices.is_empty() {
            self.gap()?;
        }
        self.notices(notices)
    }

    /// A moment in the page's zone, to the second.
    pub fn moment(&self, moment: &Known<Timestamp>) -> String {
        match moment.get() {
            None => moment.to_string(),
            Some(moment) => {
                let here = moment.to_zoned_datetime(self.look.zone.clone());
                here.strftime("%Y-%m-%d %H:%M:%S").to_string()
            }
        }
    }

    /// A moment in the page's zone with its distance from UTC, for readers elsewhere.
    pub(super) fn dated(&self, moment: &Known<Timestamp>) -> String {
        let Some(moment) = moment.get() else { return moment.to_string() };
        let here = moment.to_zoned_datetime(self.look.zone.clone());
        here.strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
    }

    /// A moment in few columns, for tables: day and minute, or the day of another year.
    pub(super) fn brief_moment(&self, moment: &Known<Timestamp>) -> String {
        let Some(moment) = moment.get() else { return moment.to_string() };
        let here = moment.to_zoned_datetime(self.look.zone.clone());
        let format = if here.year() == self.look.year { "%m-%d %H:%M" } else { "%Y-%m-%d" };
        here.strftime(format).to_string()
    }

    /// A clean text in at most so many columns; in ASCII the mark of what is missing takes three.
    fn cut<'t>(&self, text: &'t str, columns: usize) -> Cow<'t, str> {
        if clean_width(text) <= columns {
            return text.into();
        }
        if self.look.ascii {
            let cut = text::truncate(text, columns.saturating_sub(2));
            return self.clean(&cut).into_owned().into();
        }
        text::truncate(text, columns).into()
    }

    fn clean<'t>(&self, piece: &'t str) -> Cow<'t, str> {
        clean(piece, self.look.ascii)
    }
}

/// The columns to which names can be cut so that all that differ still do.
fn distinct(mut names: Vec<&str>) -> usize {
    names.sort_unstable();
    names.dedup();
    let shared = |pair: &[&str]| {
        let both = pair[0].chars().zip(pair[1].chars());
        let same: String = both.take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
        // One more character, and the mark of what is missing.
        text::width(&same) + 2
    };
    names.windows(2).map(shared).max().unwrap_or(0)
}

/// Whether a text is clean as it is, and takes as many columns as it has bytes.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// The columns that a clean text takes.
fn clean_width(clean: &str) -> usize {
    if clean.is_ascii() { clean.len() } else { text::width(clean) }
}

/// Adds so many blanks.
fn blank(line: &mut String, mut count: usize) {
    const BLANKS: &str = "                                ";
    while count > 0 {
        let now = count.min(BLANKS.len());
        line.push_str(&BLANKS[..now]);
        count -= now;
    }
}

/// Text that cannot steer the terminal and holds no secret, whoever forgot to mask it before; in ASCII
/// where that is asked for.
fn clean(piece: &str, ascii: bool) -> Cow<'_, str> {
    // Most of what is printed.
    if is_plain(piece) {
        return text::without_secrets(piece);
    }
    let clean = text::masked(&text::printable(piece.as_bytes()));
    if !ascii {
        return clean.into();
    }
    let fold = |c: char| match c {
        '…' => "...".to_owned(),
        '–' | '—' => "-".to_owned(),
        '‘' | '’' => "'".to_owned(),
        '“' | '”' => "\"".to_owned(),
        '→' => "->".to_owned(),
        '█' => "#".to_owned(),
        '░' => ".".to_owned(),
        c if c.is_ascii() => c.to_string(),
        _ => "?".to_owned(),
    };
    clean.chars().map(fold).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(look: &Look, draw: impl Fn(&mut Page<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        draw(&mut Page::new(&mut out, look)).expect("a vector takes everything");
        String::from_utf8(out).expect("text")
    }

    fn look(width: usize, color: bool, ascii: bool) -> Look {
        Look { width, color, ascii, zone: TimeZone::UTC, year: 2026, cut: true }
    }

    #[test]
    fn a_hostile_name_cannot_steer_the_terminal() {
        let name = "\u{1b}[31mred\u{1b}[0m\u{7}\u{1b}]0;title\u{7}";
        let text = drawn(&look(80, false, false), |page| page.line(&[(Label::Bad, name)]));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        let painted = drawn(&look(80, true, false), |page| page.line(&[(Label::Bad, name)]));
        assert_eq!(painted.matches('\u{1b}').count(), 2, "only our own colour: {painted:?}");
    }

    #[test]
    fn a_row_breaks_between_its_pieces() {
        let pieces = [(Label::Plain, "twelve chars"), (Label::Bad, "x"), (Label::Plain, "y")];
        let at = |columns| drawn(&look(columns, false, true), |page| page.row(&pieces));
        assert_eq!(at(18), "twelve chars  x  y\n");
        assert_eq!(at(17), "twelve chars  x\n  y\n");
        assert_eq!(at(14), "twelve chars\n  x  y\n");
    }

    #[test]
    fn ascii_keeps_to_ascii() {
        let text = drawn(&look(80, false, true), |page| page.line(&[(Label::Plain, "Grüße → …")]));
        assert_eq!(text, "Gr??e -> ...\n");
    }

    #[test]
    fn a_table_fits_the_page_and_keeps_its_numbers() {
        let columns = [
            Column { heading: "NAME", right: false, least: 4 },
            Column { heading: "N", right: true, least: 3 },
        ];
        let rows = vec![vec![(Label::Plain, "x".repeat(100)), (Label::Plain, "123".to_owned())]];
        let text = drawn(&look(30, false, true), |page| page.table(&columns, &rows));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| text::width(line) <= 32), "{text}");
        assert!(lines[1].ends_with("  123"), "{text}");
        assert!(lines[1].contains("x...  123") && lines.iter().all(|line| line.len() <= 30));
    }

    #[test]
    fn what_is_whole_is_never_cut() {
        let columns = [
            Column { heading: "NAME", right: false, least: 4 },
            Column { heading: "EXIT", right: true, least: WHOLE },
        ];
        let rows = vec![vec![(Label::Plain, "x".repeat(9)), (Label::Plain, "255:125".to_owned())]];
        // 4 + 1 + 7 columns are the least.
        let text = drawn(&look(10, false, false), |page| page.table(&columns, &rows));
        assert!(text.lines().all(|line| text::width(line) <= 12), "{text}");
        assert!(text.ends_with(" 255:125\n"), "{text}");
    }

    #[test]
    fn a_narrow_page_costs_blanks_and_names_but_no_number() {
        let columns = [
            Column { heading: "NAME", right: false, least: 8 },
            Column { heading: "N", right: true, least: WHOLE },
        ];
        let rows = vec![vec![
            (Label::Plain, "a-long-name".to_owned()),
            (Label::Plain, "1234567".to_owned()),
        ]];
        let at = |width| drawn(&look(width, false, false), |page| page.table(&columns, &rows));
        // 11 + 2 + 7 fit into 20; 8 + 1 + 7 into 16; 5 + 1 + 7 into 13.
        let second = |text: String| text.lines().nth(1).map(str::to_owned).expect("a row");
        assert_eq!(second(at(20)), "a-long-name  1234567");
        assert_eq!(second(at(16)), "a-long-… 1234567");
        assert_eq!(second(at(13)), "a-lo… 1234567");
        // What another program reads keeps its names.
        let piped = Look { cut: false, ..look(13, false, false) };
        let text = drawn(&piped, |page| page.table(&columns, &rows));
        assert_eq!(second(text), "a-long-name  1234567");
    }

    /// A table that the page has no room for goes on below, and names are cut no further than they
    /// can be told apart.
    #[test]
    fn what_has_no_room_beside_goes_below() {
        let look = Look {
            width: 20,
            color: false,
            ascii: false,
            zone: TimeZone::UTC,
            year: 2026,
            cut: true,
        };
        let columns = [
            Column { heading: "NODE", right: false, least: 4 },
            Column { heading: "CORES", right: true, least: WHOLE },
            Column { heading: "MEMORY", right: true, least: WHOLE },
        ];
        let table = |names: [&str; 2], cores: &str| {
            let row = |name: &str| -> Vec<Cell> {
                [name, cores, "1.5T"].map(|cell| (Label::Plain, cell.to_owned())).to_vec()
            };
            drawn(&look, |page| page.table(&columns, &names.map(row)))
        };
        assert_eq!(
            table(["alpha-of-rack-1", "beta-of-rack-2"], "8"),
            "NODE   CORES  MEMORY\nalph…      8    1.5T\nbeta…      8    1.5T\n"
        );
        assert_eq!(
            table(["node-in-rack-1", "node-in-rack-2"], "8"),
            "NODE\n  CORES  MEMORY\nnode-in-rack-1\n      8    1.5T\nnode-in-rack-2\n      8    1.5T\n"
        );
    }
}
