//! Places in a note that an answer fills in: `{module|NAME}` becomes the module that the message
//! names, and reads `NAME` where nothing is known.
//!
//! Knows the form alone. What names there are, and which values may stand in a command that people
//! copy, is decided where they are filled in.

use std::ops::Range;

/// A place that is filled in.
struct Placeholder<'t> {
    range: Range<usize>,
    name: &'t str,
    fallback: &'t str,
}

/// Every placeholder, in order. `${NAME}` is the shell's and none.
fn placeholders(text: &str) -> impl Iterator<Item = Placeholder<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(start) = text.get(from..)?.find('{').map(|at| from + at) {
            from = start + 1;
            let inside = text.get(from..)?;
            let Some(end) =
                inside.find(['{', '}', '\n']).filter(|end| inside[*end..].starts_with('}'))
            else {
                continue;
            };
            let Some((name, fallback)) = inside[..end].split_once('|') else { continue };
            let is_name = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            if is_name && !text[..start].ends_with('$') {
                from += end + 1;
                return Some(Placeholder { range: start..from, name, fallback });
            }
        }
        None
    })
}

/// The names of the places, in order.
pub fn placeholder_names(text: &str) -> Vec<&str> {
    placeholders(text).map(|place| place.name).collect()
}

/// The text with each place filled in, or as it reads where there is no value.
pub fn filled(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut done = 0;
    for place in placeholders(text) {
        whole.push_str(&text[done..place.range.start]);
        match value(place.name) {
            Some(value) => whole.push_str(&value),
            None => whole.push_str(place.fallback),
        }
        done = place.range.end;
    }
    whole.push_str(&text[done..]);
    whole
}

/// The text as it reads where nothing is known.
pub fn unfilled(text: &str) -> String {
    filled(text, &|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_or_read_as_they_stand() {
        let text =
            "`module spider {module|NAME}` on {node|the node}, `${HOME|x}` {a} {|b} {A|b} {c|}";
        assert_eq!(placeholder_names(text), ["module", "node", "c"]);
        let value = |name: &str| (name == "module").then(|| "gcc/13".to_owned());
        assert_eq!(
            filled(text, &value),
            "`module spider gcc/13` on the node, `${HOME|x}` {a} {|b} {A|b} "
        );
        assert!(unfilled(text).starts_with("`module spider NAME` on the node"));
        assert_eq!(unfilled("{{module|NAME}} {module|\n}"), "{NAME} {module|\n}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "([{}|$a-z\né]|\\PC){0,40}") {
            let once = unfilled(&text);
            proptest::prop_assert!(once.len() <= text.len());
        }
    }
}
