//! Text for people: each error under the line that causes it, with the rule beside it.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::{DocumentVerdict, Print, ReportedDocument, ReportedError};

/// The longest line that is shown with its errors: each of them is looked for in the whole line.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How many values of a rule's parts are printed.
const PARTS_MAX: usize = 12;

pub struct TextReport {
    renderer: Renderer,
    /// The number of documents with each verdict.
    counts: [usize; VERDICTS.len()],
}

/// The verdicts of the summary; the first one is printed even if its count is 0.
const VERDICTS: [(DocumentVerdict, &str); 4] = [
    (DocumentVerdict::Valid, "valid"),
    (DocumentVerdict::Invalid, "invalid"),
    (DocumentVerdict::Unchecked, "not checked"),
    (DocumentVerdict::Unreadable, "unreadable"),
];

impl TextReport {
    pub fn new(is_styled: bool) -> Self {
        let renderer = if is_styled { Renderer::styled() } else { Renderer::plain() };
        TextReport { renderer, counts: Default::default() }
    }
}

impl Print for TextReport {
    fn item(&mut self, out: &mut String, item: &ReportedDocument) {
        let counted = self.counts.iter_mut().zip(VERDICTS).filter(|(_, (verdict, _))| *verdict == item.verdict);
        counted.for_each(|(count, _)| *count += 1);
        for fault in &item.faults {
            out.push_str(&show_fault(item, fault, &self.renderer));
            out.push_str("\n\n");
        }
        for warning in &item.warnings {
            out.push_str(&format!("warning: {}: {}: {warning}\n", item.file, item.title()));
        }
    }

    fn end(&mut self, out: &mut String) {
        let all: usize = self.counts.iter().sum();
        let counts = self.counts.iter().zip(VERDICTS);
        let told = counts.filter(|(count, (verdict, _))| **count > 0 || *verdict == DocumentVerdict::Valid);
        let told: Vec<String> = told.map(|(count, (_, words))| format!("{count} {words}")).collect();
        let documents = if all == 1 { "document" } else { "documents" };
        out.push_str(&format!("{all} {documents}: {}\n", told.join(", ")));
    }
}

fn show_fault(item: &ReportedDocument, fault: &ReportedError, renderer: &Renderer) -> String {
    let ReportedError { rejected, place, .. } = fault;
    let title = match item.verdict {
        DocumentVerdict::Unreadable => fault.text(),
        _ => format!("{}: {}", item.title(), fault.text()),
    };
    let mut report =
        Level::ERROR.primary_title(title.as_str()).elements(std::iter::empty::<annotate_snippets::Message<'_>>());
    let label = rejected.rule.as_deref().map(|rule| format!("rule: {}", one_line(rule)));
    let excerpt = place.and_then(|place| {
        let line = item.source.line(place.line).filter(|line| line.len() <= LINE_BYTES_MAX)?;
        Some((place, span(line, place.column)?))
    });
    match excerpt {
        Some((place, (line, span))) => {
            let annotation = AnnotationKind::Primary.span(span).label(label.unwrap_or_default());
            let snippet = Snippet::source(line).line_start(place.line).path(item.file.as_str());
            report = report.element(snippet.annotation(annotation));
        }
        None => {
            let place = place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
            let file = format!("in {}{place}", item.file);
            report = report.element(Level::NOTE.message(file));
            report = report.elements(label.map(|label| Level::NOTE.message(label)));
        }
    }
    let parts = rejected.parts.iter().skip(1).take(PARTS_MAX);
    for part in parts {
        report = report.element(Level::NOTE.no_name().message(format!("{} is {}", one_line(&part.text), part.value)));
    }
    if let Some(template) = &item.template {
        report = report.element(Level::NOTE.no_name().message(format!("from {template}")));
    }
    renderer.render(&[report])
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line, and the range in it that is marked.
fn span(line: &str, column: usize) -> Option<(&str, Range<usize>)> {
    let (start, _) = line.char_indices().nth(column.checked_sub(1)?)?;
    let rest = &line[start..];
    let length = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        _ => {
            let within_flow = line[..start].contains(['{', '[']);
            let is_end = |(at, character): &(usize, char)| match character {
                ':' => rest[at + 1..].is_empty() || rest[at + 1..].starts_with(' '),
                '#' => rest[..*at].ends_with(' '),
                ',' | '}' | ']' => within_flow,
                _ => false,
            };
            let end = rest.char_indices().find(is_end).map_or(rest.len(), |(at, _)| at);
            rest[..end].trim_end().len()
        }
    };
    Some((line, start..start + length.max(1).min(rest.len())))
}
