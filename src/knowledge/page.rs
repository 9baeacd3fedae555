//! Pages: what a site or a user has written down in plain markdown or text, without a rule.
//!
//! A page is found by its words and shown; it never decides a cause. One whose file is named like a
//! family says what to do about that family here. It refuses nothing: any text is a page.

use std::path::Path;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde::Serialize;

use super::Section;
use crate::model::FamilyId;

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    /// The file's stem. Where it is a family's id, the page is about that family.
    pub id: FamilyId,
    /// Its first heading, or what the file's name says.
    pub title: String,
    /// Its text, cut at its headings; the heading of a part names those it lies under.
    pub sections: Vec<Section>,
    /// The file.
    pub path: String,
}

/// Between a heading and those below it.
const UNDER: &str = " > ";

/// Reads a page. `path` ends in the file's name.
pub fn page(path: &str, text: &str) -> Page {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_markdown = Path::new(name).extension().is_some_and(|end| end == "md");
    let (title, sections) = if is_markdown { parts(text) } else { (None, Vec::new()) };
    let title = title.filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| stem.replace(['_', '-'], " "));
    let sections = if sections.is_empty() {
        vec![Section { heading: title.clone(), markdown: text.trim().to_owned(), line: 1 }]
    } else {
        sections
    };
    Page { id: FamilyId(stem.to_owned()), title, sections, path: path.to_owned() }
}

/// The title, and the text cut at every heading below it.
fn parts(text: &str) -> (Option<String>, Vec<Section>) {
    struct Open {
        level: HeadingLevel,
        heading: String,
        start: usize,
        content: usize,
    }
    let mut opened: Vec<Open> = Vec::new();
    let mut in_heading = false;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = true;
                let (start, content) = (range.start, range.end);
                opened.push(Open { level, heading: String::new(), start, content });
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(words) | Event::Code(words) if in_heading => {
                if let Some(open) = opened.last_mut() {
                    open.heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    let is_title = |open: &Open| open.level == HeadingLevel::H1;
    let title = opened.first().filter(|open| is_title(open)).map(|open| open.heading.clone());
    let mut sections = Vec::new();
    let mut add = |heading: String, start: usize, content: &str| {
        let markdown = content.trim().to_owned();
        if !markdown.is_empty() {
            let line = text[..start].matches('\n').count() + 1;
            sections.push(Section { heading, markdown, line });
        }
    };
    let before = opened.first().map_or(text.len(), |open| open.start);
    add(title.clone().unwrap_or_default(), 0, &text[..before]);
    let mut above: Vec<(HeadingLevel, String)> = Vec::new();
    for (index, open) in opened.iter().enumerate() {
        above.retain(|(level, _)| *level < open.level);
        if index > 0 || title.is_none() {
            above.push((open.level, open.heading.clone()));
        }
        let end = opened.get(index + 1).map_or(text.len(), |next| next.start);
        let path: Vec<&str> = above.iter().map(|(_, heading)| heading.as_str()).collect();
        let heading = if path.is_empty() { open.heading.clone() } else { path.join(UNDER) };
        add(heading, open.start, &text[open.content..end]);
    }
    (title, sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_at_its_headings_which_name_those_above() {
        let text = "# Storage\n\nWelcome.\n\n## Quotas\n\nAsk `myquota`.\n\n### Projects\n\n- a\n\n## Scratch\n\nIs cleaned.\n";
        let page = page("site/storage.md", text);
        assert_eq!((page.id.0.as_str(), page.title.as_str()), ("storage", "Storage"));
        let told: Vec<(&str, &str, usize)> = page
            .sections
            .iter()
            .map(|section| (section.heading.as_str(), section.markdown.as_str(), section.line))
            .collect();
        assert_eq!(
            told,
            [
                ("Storage", "Welcome.", 1),
                ("Quotas", "Ask `myquota`.", 5),
                ("Quotas > Projects", "- a", 9),
                ("Scratch", "Is cleaned.", 13),
            ]
        );
    }

    #[test]
    fn a_text_without_headings_is_one_part_named_by_its_file() {
        for (name, title) in [("ticket_4711-gpu.txt", "ticket 4711 gpu"), ("x.md", "x")] {
            let page = page(name, "It was the cable.\n");
            assert_eq!(page.title, title);
            assert_eq!(page.sections.len(), 1);
            assert_eq!(page.sections[0].markdown, "It was the cable.");
        }
        // A hash in plain text is no heading.
        assert_eq!(page("a.txt", "# one\n# two\n").sections.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_page(text in "(#{0,3} ?[a-zé]{0,4}\n?|```|---\n|[ -~\n]{0,9}){0,12}") {
            for name in ["a.md", "b.txt", "c"] {
                proptest::prop_assert!(!page(name, &text).sections.is_empty());
            }
        }
    }
}
