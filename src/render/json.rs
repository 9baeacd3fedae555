//! JSON that is safe to look at and to send on: what could steer a terminal is escaped, not only what
//! must be, and no secret is in it, whoever forgot to mask it before.
//!
//! But for secrets the value is the same for every parser; only its spelling differs from
//! `serde_json`'s own.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

use crate::text;

/// Writes a value as one indented document; with `ascii` nothing else is in it.
pub(super) fn write(value: &impl Serialize, ascii: bool, out: &mut dyn Write) -> io::Result<()> {
    let formatter = Harmless { pretty: PrettyFormatter::new(), ascii, text: String::new() };
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, formatter))?;
    writeln!(out)
}

/// [`PrettyFormatter`], with one more kind of character escaped and secrets masked.
struct Harmless {
    pretty: PrettyFormatter<'static>,
    ascii: bool,
    /// The string that is being written: a secret is known by all of it.
    text: String,
}

impl Harmless {
    fn escapes(&self, c: char) -> bool {
        text::steers(c) || (self.ascii && !c.is_ascii())
    }
}

impl Formatter for Harmless {
    fn begin_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.text.clear();
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.text.push_str(fragment);
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.text.push(match escape {
            CharEscape::Quote => '"',
            CharEscape::ReverseSolidus => '\\',
            CharEscape::Solidus => '/',
            CharEscape::Backspace => '\x08',
            CharEscape::FormFeed => '\x0c',
            CharEscape::LineFeed => '\n',
            CharEscape::CarriageReturn => '\r',
            CharEscape::Tab => '\t',
            CharEscape::AsciiControl(byte) => char::from(byte),
        });
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let masked = text::without_secrets(&self.text);
        writer.write_all(b"\"")?;
        let mut rest = masked.as_ref();
        let must = |c: char| matches!(c, '"' | '\\') || self.escapes(c);
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| must(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            match c {
                '"' => writer.write_all(b"\\\"")?,
                '\\' => writer.write_all(b"\\\\")?,
                '\x08' => writer.write_all(b"\\b")?,
                '\x0c' => writer.write_all(b"\\f")?,
                '\n' => writer.write_all(b"\\n")?,
                '\r' => writer.write_all(b"\\r")?,
                '\t' => writer.write_all(b"\\t")?,
                c => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(writer, "\\u{unit:04x}")?;
                    }
                }
            }
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())?;
        writer.write_all(b"\"")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_escaped_and_means_the_same() {
        let value = vec!["\u{9b}31m\u{202e}a\u{e0041}\u{1b}[m\"\\é\n".to_owned()];
        let mut out = Vec::new();
        write(&value, false, &mut out).expect("written");
        let json = String::from_utf8(out).expect("text");
        // RFC 8259, section 7: characters beyond the first plane are two surrogates.
        assert_eq!(json, "[\n  \"\\u009b31m\\u202ea\\udb40\\udc41\\u001b[m\\\"\\\\é\\n\"\n]\n");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).expect("JSON"), value);
    }
    #[test]
    fn a_secret_is_known_by_the_whole_string() {
        let value = serde_json::json!({"name": "password=\"zq zx\"\ttoken: a1b2c3d4"});
        let mut out = Vec::new();
        write(&value, false, &mut out).expect("written");
        let json = String::from_utf8(out).expect("text");
        assert_eq!(json, "{\n  \"name\": \"password=\\\"*****\\\"\\ttoken: ********\"\n}\n");
    }
}
