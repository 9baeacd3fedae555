//! Points in time as people type them.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// A text that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a time")]
pub struct WindowError {
    /// What was given.
    pub text: String,
}

/// Reads `now`, `now-7days`, `-7days`, `7d`, `2 weeks`, `today`, `2026-11-30`,
/// `2026-11-30T08:15` or `2026-11-30 08:15:00`, the latter in the zone given. A length of time
/// without `now` counts back from now: that is what `--since 7d` means.
pub fn parse_time(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, WindowError> {
    let error = || WindowError { text: text.to_owned() };
    let trimmed = text.trim();
    if trimmed == "now" {
        return Ok(now);
    }
    let here = now.to_zoned_datetime(zone.clone());
    let civil = |moment: DateTime| {
        moment.to_zoned_datetime(zone.clone()).map(|moment| moment.timestamp()).map_err(|_| error())
    };
    if trimmed == "today" {
        return civil(here.date().to_datetime(jiff::civil::Time::midnight()));
    }
    let (ahead, length) = if let Some(rest) = trimmed.strip_prefix("now") {
        (rest.starts_with('+'), rest.strip_prefix(['+', '-']).unwrap_or(rest))
    } else {
        (false, trimmed.strip_prefix('-').unwrap_or(trimmed))
    };
    let signed = length.starts_with(['+', '-']);
    if let Some(span) = length.parse::<Span>().ok().filter(|_| !signed) {
        let moved = if ahead { here.checked_add(span) } else { here.checked_sub(span) };
        return moved.map(|moment| moment.timestamp()).map_err(|_| error());
    }
    if let Ok(moment) = trimmed.parse::<DateTime>() {
        return civil(moment);
    }
    match trimmed.parse::<Date>() {
        Ok(date) => civil(date.to_datetime(jiff::civil::Time::midnight())),
        Err(_) => Err(error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_back_and_dates_stand_in_the_zone() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a time");
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let at = |text: &str| parse_time(text, now, &zone).map(|time| time.to_string());
        for week in ["now-7days", "-7days", "7d", "7 days", "1 week", "-1w"] {
            assert_eq!(at(week).as_deref(), Ok("2026-11-23T12:00:00Z"), "{week}");
        }
        assert_eq!(at("now+1h").as_deref(), Ok("2026-11-30T13:00:00Z"));
        assert_eq!(at("2026-11-30").as_deref(), Ok("2026-11-29T23:00:00Z"));
        assert_eq!(at("today").as_deref(), Ok("2026-11-29T23:00:00Z"));
        assert_eq!(at("2026-11-30T08:15").as_deref(), Ok("2026-11-30T07:15:00Z"));
        for bad in ["", "yesterdayish", "7", "2026-13-01", "now-", "--5d"] {
            assert!(at(bad).is_err(), "{bad}");
        }
    }
}
