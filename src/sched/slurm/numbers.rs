//! Numbers and lists of `sacct`, read from where they stand, for histories of millions of rows.
//!
//! Reads what [`values`] reads, to the same values; what is not of the common form goes there.
//! Tests compare the two on anything.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::model::{Allowance, Bytes, Exit, Known, Maybe, Memory, MemoryScope, Span};

use super::values;

/// A number in digits.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.bytes().try_fold(0, |number: u64, byte| {
        byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0'))
    })
}

/// A count that fits 32 bits.
pub(super) fn count(text: &str) -> Maybe<u32> {
    digits(text).and_then(|number| u32::try_from(number).ok()).into()
}

/// A count of what no job has none of: zero says that none were assigned.
pub(super) fn positive(text: &str) -> Maybe<u32> {
    count(text).get().filter(|count| *count > 0).into()
}

/// Milliseconds of a span such as `1-02:03:04` or `00:00.116`.
pub(super) fn millis(text: &str) -> Maybe<u64> {
    let two = |at: usize| {
        let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        Some(digit(text.as_bytes()[at])? * 10 + digit(text.as_bytes()[at + 1])?)
    };
    let common = match text.as_bytes() {
        [_, _, b':', _, _, b':', _, _] => two(0)
            .zip(two(3))
            .zip(two(6))
            .map(|((hours, minutes), seconds)| ((hours * 60 + minutes) * 60 + seconds) * 1000),
        _ => None,
    };
    common.map_or_else(|| values::span(text).get().map(Span::as_millis).into(), Maybe::some)
}

/// Whole seconds of a span.
pub(super) fn seconds(text: &str) -> Maybe<u32> {
    let seconds = millis(text).get().map(|millis| millis / 1000);
    seconds.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX - 1)).into()
}

/// A time limit.
pub(super) fn limit(text: &str) -> Allowance {
    match seconds(text).get() {
        Some(seconds) => Allowance::Seconds(seconds),
        None if values::span(text) == Known::Unlimited => Allowance::Unlimited,
        None => Allowance::Unknown,
    }
}

/// Bytes of an amount such as `4108K` or `1.5G`; a bare number counts `bare` bytes. Nothing for 0:
/// no work uses no memory, and no job is given none.
pub(super) fn memory(text: &str, bare: u64) -> Maybe<u64> {
    amount(text, bare).filter(|bytes| *bytes > 0).into()
}

/// Bytes, of which there may be none.
fn amount(text: &str, bare: u64) -> Option<u64> {
    let (number, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], Bytes::KIB),
        b'M' => (&text[..text.len() - 1], Bytes::MIB),
        b'G' => (&text[..text.len() - 1], Bytes::GIB),
        _ => (text, bare),
    };
    match digits(number) {
        Some(number) => number.checked_mul(unit),
        None => Bytes::parse(text, bare).ok().map(|bytes| bytes.0),
    }
}

/// `code:signal`.
pub(super) fn exit(text: &str, folded: bool) -> Option<Exit> {
    if text == "0:0" {
        return Some(Exit { code: 0, signal: 0, folded });
    }
    values::exit(text, folded).get()
}

/// Joules. Zero is how a site without a meter prints, and the greatest numbers are Slurm's own
/// words for "none". Those of `ConsumedEnergy` have decimal units (`man sacct`): `12.34K`.
pub(super) fn joules(text: &str) -> Maybe<u64> {
    if matches!(text, "" | "0") { Maybe::NONE } else { values::joules(text).get().into() }
}

/// The entries of a resource list. They are short, so bytes are looked at one by one.
fn entries(mut list: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        while !list.is_empty() {
            let (mut name, mut end) = (None, list.len());
            for (at, byte) in list.bytes().enumerate() {
                match byte {
                    b'=' if name.is_none() => name = Some(at),
                    b',' => {
                        end = at;
                        break;
                    }
                    _ => {}
                }
            }
            let entry = &list[..end];
            list = list.get(end + 1..).unwrap_or("");
            if let Some(name) = name {
                return Some((&entry[..name], &entry[name + 1..]));
            }
        }
        None
    })
}

/// `ReqMem`: the job's total, or per node or CPU where a letter says so.
pub(super) fn requested(text: &str) -> Option<Memory> {
    match text.as_bytes().last() {
        Some(b'n' | b'c') => values::requested_memory(text).get(),
        _ => memory(text, Bytes::MIB)
            .get()
            .map(|bytes| Memory { bytes: Bytes(bytes), scope: MemoryScope::Job }),
    }
}

/// What `AllocTRES` says of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Allocated<'t> {
    /// Bytes of memory.
    pub(super) memory: Maybe<u64>,
    /// GPUs; nothing where the list is empty.
    pub(super) gpus: Maybe<u32>,
    /// The type of the GPUs, where all have one.
    pub(super) gpu_type: Option<&'t str>,
    /// Whether they have several types, which must be joined.
    pub(super) mixed: bool,
}

/// Reads an allocation.
pub(super) fn allocated(list: &str) -> Allocated<'_> {
    let mut found = Allocated::default();
    if list.split(',').all(|entry| entry.trim().is_empty()) {
        return found;
    }
    let (mut generic, mut typed) = (None, None);
    for (name, value) in entries(list) {
        if name == "mem" {
            found.memory = memory(value, Bytes::MIB);
        } else if name == "gres/gpu" {
            generic = value.parse().ok();
        } else if let Some(kind) = name.strip_prefix("gres/gpu:") {
            if let Ok(count) = value.parse::<u64>() {
                typed = Some(typed.unwrap_or(0_u64).saturating_add(count));
            }
            if value != "0" {
                found.mixed |= found.gpu_type.is_some();
                found.gpu_type = Some(kind);
            }
        }
    }
    let gpus: u64 = generic.or(typed).unwrap_or(0);
    found.gpus = u32::try_from(gpus).ok().into();
    found
}

/// What `TRESUsageInTot` says of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) cpu_millis: Maybe<u64>,
    pub(super) memory: Maybe<u64>,
    pub(super) disk: Maybe<u64>,
    pub(super) gpu_percent: Maybe<u32>,
    pub(super) gpu_memory: Maybe<u64>,
}

/// Reads the use of a step.
pub(super) fn used(list: &str) -> Used {
    let mut used = Used::default();
    for (name, value) in entries(list) {
        match name {
            "cpu" => used.cpu_millis = millis(value),
            "mem" => used.memory = memory(value, 1),
            "fs/disk" => used.disk = amount(value, 1).into(),
            "gres/gpuutil" => used.gpu_percent = value.parse().ok().into(),
            "gres/gpumem" => used.gpu_memory = memory(value, 1),
            _ => {}
        }
    }
    used
}

/// Moments, which files may hold as local times.
#[derive(Debug)]
pub(super) struct Clock {
    zone: TimeZone,
    /// The offset in the hour that was looked up last: most rows are of the same.
    last: Option<(i64, i64)>,
    /// How many local times there were.
    pub(super) local: u64,
}

impl Clock {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self { zone, last: None, local: 0 }
    }

    /// A moment in epoch seconds; Slurm keeps "never" as 0.
    pub(super) fn moment(&mut self, text: &str) -> Maybe<u32> {
        if let Some(seconds) = digits(text) {
            return u32::try_from(seconds).ok().filter(|seconds| *seconds > 0).into();
        }
        self.local(text).and_then(|seconds| u32::try_from(seconds).ok()).into()
    }

    /// A local time such as `2026-11-30T08:34:36`.
    fn local(&mut self, text: &str) -> Option<i64> {
        if text.len() != 19 || !text.is_ascii() {
            return None;
        }
        let local: DateTime = text.parse().ok()?;
        self.local += 1;
        let naive = local.to_zoned_datetime(TimeZone::UTC).ok()?.timestamp().as_second();
        let hour = naive.div_euclid(3600);
        let offset = match self.last {
            Some((known, offset)) if known == hour => offset,
            _ => {
                let here: Timestamp = local.to_zoned_datetime(self.zone.clone()).ok()?.timestamp();
                let offset = naive - here.as_second();
                self.last = Some((hour, offset));
                offset
            }
        };
        Some(naive - offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Tres;

    #[test]
    fn local_times_stand_in_the_zone_of_whoever_reads() {
        // Central European time: 1 h ahead in winter, 2 h in summer; the clock goes back on
        // 2026-10-25, so 02:30 comes twice, of which the first is meant (RFC 5545 says so).
        let zone = TimeZone::get("Europe/Berlin").expect("a zone of the time zone database");
        let mut clock = Clock::new(zone);
        let hour = 3600;
        for (text, utc) in [
            ("2026-11-30T08:34:36", 1_796_024_076),
            ("2026-07-30T08:34:36", 1_785_393_276),
            ("2026-10-25T02:30:00", 1_792_888_200),
        ] {
            assert_eq!(clock.moment(text).get(), Some(utc), "{text}");
        }
        assert_eq!(clock.local, 3);
        assert_eq!(clock.moment("1796027676").get(), Some(1_796_024_076 + hour));
        for nothing in ["Unknown", "None", "", "0", "2026-13-30T08:34:36", "99999999999999999999"] {
            assert_eq!(clock.moment(nothing).get(), None, "{nothing}");
        }
    }

    #[test]
    fn gpus_are_counted_once_and_their_type_is_no_number() {
        // Case 8.
        let gpus = |list| allocated(list).gpus.get();
        assert_eq!(gpus("cpu=8,gres/gpu:a100=2,gres/gpu=2"), Some(2));
        assert_eq!(gpus("gres/gpu:a100=2,gres/gpu:h100=1"), Some(3));
        assert_eq!(gpus("gres/gpu:2080ti=1,node=1"), Some(1));
        assert_eq!((gpus("cpu=8,mem=1G"), gpus("")), (Some(0), None));
        assert!(allocated("gres/gpu:a100=2,gres/gpu:h100=1").mixed);
    }

    proptest! {
        /// The same as the full readers say, of anything that looks a little like it.
        #[test]
        fn numbers_are_those_of_the_full_reader(
            text in "[0-9]{0,4}-?[0-9]{0,2}:?[0-9]{0,3}:?[0-9.]{0,4}[KMGTPnc]?|UNLIMITED|.{0,6}",
        ) {
            let u32_of = |known: Known<u64>| known.get().and_then(|n| u32::try_from(n).ok());
            if !text.starts_with('+') && text.trim() == text {
                prop_assert_eq!(count(&text).get(), u32_of(values::count(&text)));
            }
            let span = values::span(&text);
            prop_assert_eq!(millis(&text).get(), span.get().map(Span::as_millis));
            prop_assert_eq!(limit(&text) == Allowance::Unlimited, span == Known::Unlimited);
            let bytes = values::bytes(&text).get().filter(|bytes| bytes.0 > 0);
            prop_assert_eq!(memory(&text, 1).get(), bytes.map(|bytes| bytes.0));
            prop_assert_eq!(exit(&text, true), values::exit(&text, true).get());
            prop_assert_eq!(requested(&text), values::requested_memory(&text).get());
        }

        #[test]
        fn lists_are_those_of_the_full_reader(
            entries in prop::collection::vec(
                ("cpu|mem|node|gres/gpu|gres/gpu:a|gres/gpu:b", "[0-9]{1,3}[KMG]?"), 0..5,
            ),
        ) {
            let list: Vec<String> =
                entries.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let list = list.join(",");
            let mut names: Vec<&String> = entries.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            // Slurm prints each resource once.
            prop_assume!(names.len() == entries.len());
            let full = Tres::parse(&list);
            let expected = if full.is_empty() { None } else { Some(full.gpus().unwrap_or(0)) };
            prop_assert_eq!(allocated(&list).gpus.get().map(u64::from), expected);
            let memory = full.memory().filter(|memory| memory.0 > 0).map(|memory| memory.0);
            prop_assert_eq!(allocated(&list).memory.get(), memory);
        }
    }
}
