//! The steps of a section, for people who read a terminal.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// The numbered steps of a section as plain text, in order; code stays in back-ticks, emphasis and
/// links lose their marks. Lists within a step belong to the step.
pub fn first_steps(markdown: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut lists = 0_usize;
    let mut numbered = false;
    let mut in_code = false;
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::List(first)) => {
                if lists == 0 {
                    numbered = first.is_some();
                }
                lists += 1;
            }
            Event::End(TagEnd::List(_)) => lists = lists.saturating_sub(1),
            _ if lists == 0 || !numbered => {}
            Event::Start(Tag::Item) if lists == 1 => steps.push(String::new()),
            event => {
                let Some(step) = steps.last_mut() else { continue };
                match event {
                    Event::Text(code) if in_code => {
                        step.push_str(&format!("`{}`", code.trim_end()));
                    }
                    Event::Text(text) => step.push_str(&text),
                    Event::Code(code) => step.push_str(&format!("`{code}`")),
                    Event::SoftBreak
                    | Event::HardBreak
                    | Event::Start(Tag::Paragraph | Tag::Item) => step.push(' '),
                    Event::Start(Tag::CodeBlock(_)) => {
                        step.push(' ');
                        in_code = true;
                    }
                    Event::End(TagEnd::CodeBlock) => in_code = false,
                    _ => {}
                }
            }
        }
    }
    let tidy = |step: String| step.split_whitespace().collect::<Vec<_>>().join(" ");
    steps.into_iter().map(tidy).filter(|step| !step.is_empty()).collect()
}

/// What a section says to do: its numbered steps, else its other points, else its paragraphs.
pub fn points(markdown: &str) -> Vec<String> {
    let steps = first_steps(markdown);
    if !steps.is_empty() {
        return steps;
    }
    let mut points: Vec<String> = vec![String::new()];
    let mut in_code = false;
    for event in Parser::new(markdown) {
        if matches!(event, Event::Start(Tag::Item | Tag::Paragraph | Tag::CodeBlock(_))) {
            points.push(String::new());
        }
        let Some(point) = points.last_mut() else { continue };
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(code) if in_code => point.push_str(&format!("`{}`", code.trim_end())),
            Event::Text(text) => point.push_str(&text),
            Event::Code(code) => point.push_str(&format!("`{code}`")),
            Event::SoftBreak | Event::HardBreak => point.push(' '),
            _ => {}
        }
    }
    let tidy = |point: String| point.split_whitespace().collect::<Vec<_>>().join(" ");
    points.into_iter().map(tidy).filter(|point| !point.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_steps_become_plain_text_with_their_code() {
        let markdown = "Before.\n\n- not a step\n\n1. Ask for *more*:\n   `--mem=8G`.\n2. Read \
                        [this](https://example.org).\n   - by pieces\n\n   ```\n   a <b>\n   ```\n\n\
                        Do not panic.";
        assert_eq!(
            first_steps(markdown),
            ["Ask for more: `--mem=8G`.", "Read this. by pieces `a <b>`"]
        );
        assert!(first_steps("- a\n- b").is_empty());
        assert_eq!(points("1. a\n2. b\n\nc"), ["a", "b"]);
        assert_eq!(
            points("Ask `x`:\n\n- a\n- *b*\n\n```\nmyquota\n```\n"),
            ["Ask `x`:", "a", "b", "`myquota`"]
        );
    }
}
