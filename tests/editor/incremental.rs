//! What is compiled again after an edit: what changed, and nothing else.

use kubeskiff::author::editor::check::{CheckCounts, Checks, Diagnostic};
use kubeskiff::author::editor::{Text, Workspace};

const TWO_VERSIONS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example.com}
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {length: {type: integer, minimum: 2}, rig: {type: string, maxLength: 9}}
            x-kubernetes-validations:
            - rule: self.rig != 'ketch' || self.length >= 9
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {metres: {type: integer, minimum: 2}}
            x-kubernetes-validations:
            - rule: self.metres < 90
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 1}
";

/// A workspace that nobody asks who somebody is: it has no policies.
pub fn workspace() -> Workspace {
    Workspace::new(Box::new(|_| unreachable!("there is no policy")))
}

/// A text that is being edited, and what is known of it.
struct Session {
    workspace: Workspace,
    text: Text,
    checks: Checks,
}

impl Session {
    fn begin() -> Session {
        let mut session = Session { workspace: workspace(), text: Text::from(TWO_VERSIONS), checks: Checks::default() };
        session.check();
        session
    }

    fn check(&mut self) -> Vec<Diagnostic> {
        self.workspace.check("/a.yaml", &self.text, &mut self.checks)
    }

    /// Writes `new` in place of the first `old`; how many documents, definitions and schemas were looked at then.
    #[track_caller]
    fn write(&mut self, old: &str, new: &str) -> (usize, usize, usize) {
        assert!(self.text.as_str().contains(old), "{old}");
        self.text = Text::from(self.text.as_str().replacen(old, new, 1));
        self.check();
        shown(self.checks.counts())
    }

    /// Whether what is found is what a fresh look finds.
    fn is_fresh(&mut self) -> bool {
        let fresh = workspace().check("/a.yaml", &self.text, &mut Checks::default());
        self.check() == fresh
    }
}

fn shown(CheckCounts { documents, definitions, schemas }: CheckCounts) -> (usize, usize, usize) {
    (documents, definitions, schemas)
}

#[test]
fn only_what_changed_is_compiled_again() {
    let mut session = Session::begin();
    assert_eq!(shown(session.checks.counts()), (2, 1, 2));
    session.check();
    assert_eq!(shown(session.checks.counts()), (0, 0, 0));
    // Of a comment the document is read. No definition changed, so that the object is left alone.
    assert_eq!(session.write("spec:\n", "spec: # a comment\n"), (1, 0, 0));
    assert_eq!(session.write("storage: true", "storage:  true"), (1, 0, 0));
    // A bound and a rule are of one version; the object is looked at again.
    assert_eq!(session.write("metres: {type: integer, minimum: 2}", "metres: {type: integer, minimum: 3}"), (2, 1, 1));
    assert_eq!(session.write("self.length >= 9", "self.lengt >= 9"), (2, 1, 1));
    assert!(session.is_fresh());
    assert_eq!(session.write("self.lengt >= 9", "self.length >= 90"), (2, 1, 1));
    // No schema has changed.
    assert_eq!(session.write("storage: false", "storage: false\n    deprecated: true"), (2, 1, 0));
    assert!(session.is_fresh());
}

#[test]
fn a_kind_stays_while_its_definition_cant_be_read() {
    let mut session = Session::begin();
    assert_eq!(session.write("group: harbour.example.com", "group: [harbour.example.com"), (1, 0, 0));
    assert!(session.check().iter().any(|found| found.message.contains("greater than or equal to 2")));
    assert_eq!(session.write("group: [harbour.example.com", "group: harbour.example.com"), (1, 0, 0));
    assert!(session.is_fresh());
}

#[test]
fn a_kind_that_another_file_took_over_is_compiled_again() {
    let mut session = Session::begin();
    session.workspace.add("/b.yaml", &TWO_VERSIONS.replace("minimum: 2", "minimum: 0"));
    assert_eq!(session.write("spec:\n", "spec: # mine\n").1, 1);
    assert!(session.is_fresh());
}
