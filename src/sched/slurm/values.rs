//! The words and numbers that Slurm's clients print, read into model values.
//!
//! Facts: `man sacct`, `man scontrol`, the recorded outputs of Slurm 20.11 to 26.05. Times arrive
//! as epoch seconds because `host` asks for them so; accounting's local time is kept as unreadable
//! rather than guessed into a zone.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::model::{Bytes, Exit, Known, Memory, MemoryScope, Span};
use crate::script::parse_submit_line;

/// Words that stand for "nothing here", whatever their case.
const NULL_WORDS: [&str; 11] = [
    "",
    "unknown",
    "none",
    "n/a",
    "n/s",
    "invalid",
    "(null)",
    "none assigned",
    "not_set",
    "partition_limit",
    "null",
];

/// Whether a text of Slurm's own vocabulary says nothing.
pub(super) fn is_null(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && NULL_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// [`str::trim`], which takes its time over each of the half million values of a large cluster.
pub(super) fn trim(text: &str) -> &str {
    let text = text.strip_suffix(' ').unwrap_or(text);
    let is_plain = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_graphic);
    let bytes = text.as_bytes();
    if is_plain(bytes.first()) && is_plain(bytes.last()) { text } else { text.trim() }
}

/// A name or list out of Slurm's own vocabulary, where null words mean nothing.
pub(super) fn word(text: &str) -> Option<String> {
    let text = trim(text);
    (!is_null(text)).then(|| text.to_owned())
}

/// Text that a user wrote, in which any word is meant: only the empty one is nothing.
pub(super) fn text(text: &str) -> Option<String> {
    (!text.is_empty() && text != "(null)").then(|| text.to_owned())
}

fn known<T, E>(text: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Known<T> {
    let text = trim(text);
    if is_null(text) {
        Known::NotGathered
    } else if text.eq_ignore_ascii_case("unlimited") || text.eq_ignore_ascii_case("infinite") {
        Known::Unlimited
    } else {
        read(text).map_or_else(|_| Known::unreadable(text), Known::Value)
    }
}

/// A point in time, in epoch seconds.
pub(super) fn time(text: &str) -> Known<Timestamp> {
    known(text, |text| {
        text.parse().map_err(|_| ()).and_then(|seconds| {
            // Slurm keeps "never" as 0.
            if seconds > 0 { Timestamp::from_second(seconds).map_err(|_| ()) } else { Err(()) }
        })
    })
}

/// A point in time as the controller prints it: epoch seconds where the client heeded what it was
/// told, else local time in the zone of the cluster.
pub(super) fn moment(text: &str, zone: &TimeZone) -> Known<Timestamp> {
    let local = |text: &str| zone.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    // No number holds it, and a local time is what it mostly is.
    if text.contains('T')
        && let Some(moment) = local(trim(text))
    {
        return Known::Value(moment);
    }
    match time(text) {
        Known::Unreadable(text) => local(&text).map_or(Known::Unreadable(text), Known::Value),
        known => known,
    }
}

/// Names separated by commas; none for the words that stand for nothing.
pub(super) fn names(text: &str) -> Vec<String> {
    let names = text.split(',').map(trim).filter(|name| !is_null(name));
    names.map(str::to_owned).collect()
}

/// A span such as `1-02:03:04` or `00:00.116`.
pub(super) fn span(text: &str) -> Known<Span> {
    known(text, Span::parse_clock)
}

/// A count.
pub(super) fn count(text: &str) -> Known<u64> {
    known(text, str::parse)
}

/// A measured amount of memory; a bare number is bytes.
pub(super) fn bytes(text: &str) -> Known<Bytes> {
    known(text, |text| Bytes::parse(text, 1))
}

/// A configured amount of memory; a bare number is MiB.
pub(super) fn mebibytes(text: &str) -> Known<Bytes> {
    known(text, |text| Bytes::parse(text, Bytes::MIB))
}

/// `ReqMem`: before 21.08 per node (`100Mn`) or per CPU (`50Mc`), later the job's total. Zero,
/// which 20.11 prints where memory follows GPUs (`0n`), says that no request was recorded.
pub(super) fn requested_memory(text: &str) -> Known<Memory> {
    let text = trim(text);
    if is_null(text) {
        return Known::NotGathered;
    }
    let (amount, scope) = match text.as_bytes().last() {
        Some(b'n') => (&text[..text.len() - 1], MemoryScope::Node),
        Some(b'c') => (&text[..text.len() - 1], MemoryScope::Cpu),
        _ => (text, MemoryScope::Job),
    };
    match mebibytes(amount) {
        Known::Value(Bytes(0)) => Known::NotGathered,
        Known::Unreadable(_) => Known::unreadable(text),
        amount => amount.map(|bytes| Memory { bytes, scope }),
    }
}

/// Joules. Zero is how a site without a meter prints, and the greatest numbers are Slurm's own
/// words for "none". Those of `ConsumedEnergy` have decimal units (`man sacct`): `12.34K`.
pub(super) fn joules(text: &str) -> Known<u64> {
    /// `NO_VAL64` of `slurm.h`; above it is `INFINITE64`.
    const NONE: u64 = u64::MAX - 1;
    let read = known(text, |text| {
        if let Ok(whole) = text.parse::<u64>() {
            return Ok(whole);
        }
        let unit = match text.bytes().last() {
            Some(b'K') => 1e3,
            Some(b'M') => 1e6,
            Some(b'G') => 1e9,
            Some(b'T') => 1e12,
            _ => return Err(()),
        };
        let number: f64 = text[..text.len() - 1].parse().map_err(|_| ())?;
        let joules = (number * unit).round();
        if !(0.0..1e18).contains(&joules) {
            return Err(());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "range checked above"
        )]
        Ok(joules as u64)
    });
    match read {
        Known::Value(0 | NONE..) => Known::NotGathered,
        known => known,
    }
}

/// `Exclusive` of 26.05: the whole nodes, or those that no other user (or group) may share. Before,
/// only a command that asked for whole nodes tells; a script or a partition may have done so too.
pub(super) fn exclusive(text: &str, submitted: &str) -> Known<bool> {
    match text {
        "NODE" => Known::Value(true),
        "NO" | "USER" | "MCS" | "TOPO" => Known::Value(false),
        _ if asks_for_whole_nodes(submitted) => Known::Value(true),
        _ => Known::NotGathered,
    }
}

fn asks_for_whole_nodes(submitted: &str) -> bool {
    if !submitted.contains("--exclusive") {
        return false;
    }
    let line = parse_submit_line(submitted);
    // `--exclusive=user` keeps only other users away.
    line.effective(0, "exclusive").is_some_and(|given| given.value.is_none())
        && line.effective(0, "oversubscribe").is_none()
}

/// `code:signal`.
pub(super) fn exit(text: &str, folded: bool) -> Known<Exit> {
    known(text, |text| {
        let (code, signal) = text.split_once(':').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok::<_, ()>(Exit { code: number(code)?, signal: number(signal)?, folded })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn absence_is_never_a_number() {
        // F144: nothing has many names.
        for text in ["", "Unknown", "None", "N/A", "n/s", "INVALID", "None assigned", "(null)"] {
            assert_eq!(time(text), Known::NotGathered, "{text}");
            assert_eq!(span(text), Known::NotGathered, "{text}");
            assert_eq!(word(text), None, "{text}");
        }
        assert_eq!(span("UNLIMITED"), Known::Unlimited);
        assert_eq!(span("Partition_Limit"), Known::NotGathered);
        // `SLURM_TIME_FORMAT` that the client did not heed.
        let local = "2026-11-30T08:34:36";
        assert_eq!(time(local), Known::unreadable(local));
        assert_eq!(
            time("1796034868"),
            Timestamp::from_second(1_796_034_868).map_or(Known::NotGathered, Known::Value)
        );
    }

    #[test]
    fn a_request_for_memory_says_what_it_counts_per() {
        let memory = |mebibytes: u64, scope| {
            Known::Value(Memory { bytes: Bytes(mebibytes * Bytes::MIB), scope })
        };
        // 20.11 prints the suffix, 22.05 and later the total.
        assert_eq!(requested_memory("100Mn"), memory(100, MemoryScope::Node));
        assert_eq!(requested_memory("50Mc"), memory(50, MemoryScope::Cpu));
        assert_eq!(requested_memory("300M"), memory(300, MemoryScope::Job));
        assert_eq!(requested_memory("4000"), memory(4000, MemoryScope::Job));
        for nothing in ["0n", "0c", "0", ""] {
            assert_eq!(requested_memory(nothing), Known::NotGathered, "{nothing}");
        }
        assert_eq!(requested_memory("n"), Known::NotGathered);
        assert_eq!(requested_memory("xn"), Known::unreadable("xn"));
    }

    #[test]
    fn energy_that_nobody_measured_is_no_energy() {
        // Case 22: decimal units; 0, NO_VAL64 and INFINITE64 are what is printed without a meter.
        assert_eq!(joules("12.34K"), Known::Value(12_340));
        assert_eq!(joules("2M"), Known::Value(2_000_000));
        assert_eq!(joules("1234"), Known::Value(1234));
        for nothing in ["0", "", "0K", "18446744073709551614", "18446744073709551615"] {
            assert_eq!(joules(nothing), Known::NotGathered, "{nothing}");
        }
        for odd in ["-2", "K", "1e30K", "infK", "NaNM"] {
            assert_eq!(joules(odd), Known::unreadable(odd), "{odd}");
        }
    }

    #[test]
    fn an_exit_has_two_numbers() {
        assert_eq!(exit("0:125", true), Known::Value(Exit { code: 0, signal: 125, folded: true }));
        assert_eq!(exit("", true), Known::NotGathered);
        assert_eq!(exit("1", true), Known::unreadable("1"));
    }

    proptest! {
        /// Whatever Slurm prints, nothing panics, and what is not a value prints no digit.
        #[test]
        fn any_text_is_read(text in any::<String>()) {
            let shown = [
                time(&text).map(jiff::Timestamp::as_second).to_string(),
                span(&text).to_string(),
                count(&text).to_string(),
                bytes(&text).to_string(),
                mebibytes(&text).to_string(),
                exit(&text, true).to_string(),
                requested_memory(&text).map(|memory| memory.bytes).to_string(),
            ];
            let values = [
                time(&text).is_value(), span(&text).is_value(), count(&text).is_value(),
                bytes(&text).is_value(), mebibytes(&text).is_value(),
                exit(&text, true).is_value(), requested_memory(&text).is_value(),
            ];
            for (shown, value) in shown.iter().zip(values) {
                prop_assert!(value || !shown.contains(|c: char| c.is_ascii_digit()), "{shown}");
            }
        }
    }
}
