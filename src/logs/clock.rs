//! Times that lines of a log tell of themselves.

use jiff::civil::DateTime;

/// The time at the beginning of a line: `2026-11-30 10:34:25`, behind a bracket or a level too.
pub fn line_time(text: &str) -> Option<DateTime> {
    const FAR: usize = 24;
    let text = text.as_bytes();
    (0..text.len().min(FAR)).find_map(|at| civil(text.get(at..at + 19)?))
}

/// The time in `CANCELLED AT 2024-11-14T21:08:27 DUE TO TIME LIMIT`.
pub fn cancelled_at(text: &str) -> Option<DateTime> {
    let (_, rest) = text.split_once("CANCELLED AT ")?;
    civil(rest.as_bytes().get(..19)?)
}

fn civil(text: &[u8]) -> Option<DateTime> {
    let form = b"dddd-dd-dd dd:dd:dd";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'-' => matches!(byte, b'-' | b'/'),
        b' ' => matches!(byte, b' ' | b'T' | b'_'),
        _ => byte == form,
    };
    if !text.iter().zip(form).all(fits) {
        return None;
    }
    let number =
        |from: usize, to: usize| std::str::from_utf8(&text[from..to]).ok()?.parse::<i16>().ok();
    let small = |from: usize| i8::try_from(number(from, from + 2)?).ok();
    DateTime::new(number(0, 4)?, small(5)?, small(8)?, small(11)?, small(14)?, small(17)?, 0).ok()
}
