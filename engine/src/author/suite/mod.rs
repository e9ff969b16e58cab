//! Suites: objects, and what is expected of them.
//!
//! Input: a suite as its author wrote it (`schemas/suite.json` describes it), and the kinds that it is about. Output: for each
//! case what is not as expected, and which rules the cases have covered. Files are read by the command line.

mod parse;
mod run;

use super::Catalog;
use super::coverage;
use super::policies::case::Setting;
use super::policies::{Policies, RequestUser};
use crate::value::Value;

pub use coverage::{Coverage, RuleAt, RuleCounts, fits, list_rules};
pub use parse::parse;
pub use run::run;
pub(super) use run::{admit, ratcheted};

/// A suite, its tables written out.
#[derive(Default)]
pub struct Suite {
    /// Files with definitions, as they are named in the suite.
    pub crds: Vec<String>,
    /// Files with policies, their bindings and what they look up.
    pub policies: Vec<String>,
    /// The cases, in the order they stand.
    pub cases: Vec<Case>,
    /// Cases that can't be made.
    pub broken: Vec<BrokenCase>,
}

/// A case that can't be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenCase {
    /// What the case is called, or else where it stands.
    pub name: String,
    /// Why; there is one at least.
    pub faults: Vec<SuiteError>,
}

/// The errors of a suite, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteError {
    /// `cases[3].table[0]`; empty for the whole suite.
    pub path: String,
    /// What is wrong.
    pub text: String,
}

impl Case {
    /// Whether the object is expected to be valid, be it said or not, and to be admitted.
    pub fn is_valid(&self) -> bool {
        let Expected::Stated(expect) = &self.expected else { return false };
        let is = |name: &str| expect.get(name).and_then(Value::as_bool);
        let (errors, message) = (expect.items_at(&["errors"]), expect.get("message"));
        is("valid").unwrap_or(errors.is_empty()) && is("admitted").unwrap_or(message.is_none())
    }
}

/// An object and what is expected of it.
pub struct Case {
    /// What the case is called.
    pub name: String,
    /// Its place in the suite: `cases[3].table[0]`.
    pub path: String,
    /// The object that is created, or that replaces `old`.
    pub object: Value,
    /// The object that is stored; `None` where one is created.
    pub old: Option<Value>,
    /// Where the write goes.
    pub part: WriteTarget,
    /// Who asks, where, and with which parameters.
    pub setting: Setting,
    /// What must come of it.
    pub expected: Expected,
}

/// What a write is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteTarget {
    /// The object.
    #[default]
    Object,
    /// Its `/status`.
    Status,
    /// Its `/scale`. The case has the objects that the Scales stand for.
    Scale,
}

impl WriteTarget {
    /// What `subresource` of a case names.
    pub fn of(case: &Value) -> Self {
        match case.str_at(&["subresource"]) {
            "status" => WriteTarget::Status,
            "scale" => WriteTarget::Scale,
            _ => WriteTarget::Object,
        }
    }

    /// As rules name it; empty for the object.
    pub const fn name(self) -> &'static str {
        match self {
            WriteTarget::Object => "",
            WriteTarget::Status => "status",
            WriteTarget::Scale => "scale",
        }
    }
}

/// What cases are run with.
pub struct SuiteStage<'s> {
    /// The kinds of definitions.
    pub catalog: &'s Catalog,
    /// What requests must pass.
    pub policies: &'s Policies,
    /// The user that a UserInfo describes.
    pub find_user: &'s dyn Fn(Value) -> RequestUser,
}

/// What is expected.
pub enum Expected {
    /// As a suite says.
    Stated(Value),
    /// The lines of a file: `FIELD: MESSAGE`, or the faults of strict decoding.
    Lines(Vec<String>),
}

/// What came of a case.
pub struct CaseOutcome {
    /// What is not as expected.
    pub failures: Vec<CaseFailure>,
    /// Errors that are forgiven, as the update left the values alone: of rules, and of schemas.
    pub ratcheted: Vec<String>,
    /// What a snapshot of it holds; `None` if the case has none.
    pub snapshot: Option<Value>,
}

/// Something that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseFailure {
    /// Nothing is known of the kind of the object.
    #[error("no definition has kind `{kind}` in `{api_version}`")]
    UnknownKind {
        /// `kind` of the object.
        kind: String,
        /// `apiVersion` of the object.
        api_version: String,
    },
    /// The case is to have a snapshot, and none was taken yet.
    #[error("it has no snapshot: run with --update to take one")]
    NoSnapshot,
    /// What came of the case is not what its snapshot holds.
    #[error("not as in the snapshot: {taken}, which was {known}")]
    OtherSnapshot {
        /// What came of the case, as JSON.
        taken: String,
        /// What the snapshot holds, as JSON.
        known: String,
    },
    /// The verdict is another one than is stated.
    #[error("{0}")]
    Verdict(String),
}

impl CaseFailure {
    /// Whether it is one of the snapshot alone, which taking a new one mends.
    pub fn is_of_snapshot(&self) -> bool {
        matches!(self, CaseFailure::NoSnapshot | CaseFailure::OtherSnapshot { .. })
    }
}

/// The texts of a list.
fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
