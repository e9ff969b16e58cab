//! Faults as annotations in the formats of code review systems, which are printed together at the
//! end.

use super::super::annotate::{Annotation, AnnotationLevel};
use super::{Print, ReportedDocument};

/// The annotations so far, and how they are printed.
pub struct Annotated {
    found: Vec<Annotation>,
    show: fn(&[Annotation]) -> String,
}

impl Annotated {
    pub fn new(show: fn(&[Annotation]) -> String) -> Self {
        Annotated { found: Vec::new(), show }
    }
}

impl Print for Annotated {
    fn item(&mut self, _: &mut String, item: &ReportedDocument) {
        self.found.extend(item.faults.iter().map(|fault| Annotation {
            file: item.file.clone(),
            place: fault.place,
            level: AnnotationLevel::Error,
            id: fault.rejected.error.kind.reason().to_owned(),
            message: format!("{}: {}", item.title(), fault.text()),
        }));
    }

    fn end(&mut self, out: &mut String) {
        out.push_str(&(self.show)(&self.found));
    }
}
