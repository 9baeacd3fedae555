//! Numbers with the digits that they deserve.

/// A share in per cent: one decimal below ten, none above.
pub(super) fn percent(share: f64) -> String {
    // Shares have four decimals, which a product in binary may lose half a step of.
    let percent = (share * 1e6).round() / 1e4;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// Hours to three digits; two of less than one, none behind the point of a hundred.
pub(super) fn hours(hours: f64) -> String {
    if hours < 99.95 {
        figure(hours, if hours < 1.0 { 2 } else { 3 })
    } else {
        format!("{hours:.0}")
    }
}

/// A number to so many significant digits, without an exponent.
pub(super) fn figure(value: f64, digits: usize) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    if value < 1e-6 {
        return "<0.000001".to_owned();
    }
    // The decimal form rounds first, so that 9.96 is 10 and not 10.0.
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent = rounded.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    let rounded: f64 = rounded.parse().unwrap_or(value);
    let decimals = i32::try_from(digits).unwrap_or(2) - 1 - exponent;
    format!("{rounded:.*}", usize::try_from(decimals).unwrap_or(0))
}
