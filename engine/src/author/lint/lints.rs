//! The lints of definitions, with their reasons.

use super::entry::{Lint, Severity};
use super::of_policies;

/// The introduction of the lints' documentation.
const HEAD: &str = "\
# Lints

What `skiff lint` looks for in CustomResourceDefinitions and in policies of admission with their bindings, and why. \"API
conventions\" are those of the Kubernetes community, cited by heading. `skiff lint --list` prints this page, `skiff lint
--explain ID` the part about one lint.

| severity | of what | shown |
|---|---|---|
| error | the server refuses the definition or the policy, or no object passes | always |
| warning | something does not do what it seems to, and can be corrected without harm to stored objects and clients | always |
| advice | a convention that a new kind or version may follow; those in use can't, or have reasons not to | with `--severity advice`, or named by `--only` |

What a finding is about is its author's to change. So nothing is reported about fields within types of Kubernetes that a schema
embeds (PodSpec, Condition, LabelSelector and the rest): they are known by their fields. Nor are warnings reported for versions
that are deprecated or no longer served, and what stands in several versions is reported once. Policies are looked at with all
that lies beside them: which binding belongs to which policy, and what the definitions say of the objects that are matched.

`--only ID,…` and `--ignore ID,…` choose lints for a run. The annotation `skiff.kubeskiff.dev/lint-ignore` of a definition,
a policy or a binding turns findings off for good: ids, or `id:path` for one field, with commas between. Lints marked *fixed* have an edit that
changes nothing for objects; `skiff lint --fix` makes it and keeps the rest of the text as it is.

`-o sarif` writes SARIF 2.1.0 and `-o github` annotations of a workflow of GitHub Actions.
";

/// All lints, in the order of the documentation: those of definitions, then those of policies.
pub const LINTS: [&Lint; 44] = [
    &REFUSED,
    &OLDER_REFUSES,
    &OLDER_IGNORES,
    &NOT_STRUCTURAL,
    &DEPRECATED,
    &UNKNOWN_IGNORE,
    &UNKNOWN_FIELDS,
    &REQUIRED_UNSPECIFIED,
    &REQUIRED_WITH_DEFAULT,
    &RULE_COST,
    &SCHEMA_COST,
    &UNBOUNDED,
    &NEVER_FAILS,
    &NEVER_HOLDS,
    &WITHOUT_HAS,
    &LIST_TYPE,
    &KIND_CASE,
    &STATUS,
    &CONDITIONS,
    &PHASE,
    &REFERENCE,
    &CROSS_NAMESPACE,
    &MAP,
    &INT64,
    &UNBOUNDED_NUMBER,
    &FLOAT,
    &BOOLEAN,
    &ENUM_TYPE,
    &ENUM_CASE,
    &UNIT,
    &TIME_NAME,
    &BOOLEAN_NAME,
    &NAME_CASE,
    &RESERVED_GROUP,
    &RESERVED_PREFIX,
    &of_policies::POLICY_REFUSED,
    &of_policies::POLICY_TYPES,
    &of_policies::VALIDATION_NEVER_FAILS,
    &of_policies::MATCH_NEVER,
    &of_policies::BINDING_WITHOUT_POLICY,
    &of_policies::POLICY_WITHOUT_BINDING,
    &of_policies::BINDING_PARAMS,
    &of_policies::VARIABLE_UNREAD,
    &of_policies::CONDITION_ALWAYS,
];

pub(super) const OLDER_REFUSES: Lint = Lint {
    id: "older-refuses",
    severity: Severity::Error,
    finds: "An older Kubernetes, from `--min-kubernetes-version` on, refuses the definition, or an object of a built-in kind.",
    reason: "a definition must work on the clusters that its users have, and functions, formats, prices and kinds differ by minor",
    remedy: "do without what came later, or name a later minor as the oldest",
    is_fixed: false,
};

pub(super) const OLDER_IGNORES: Lint = Lint {
    id: "older-ignores",
    severity: Severity::Warning,
    finds: "An older Kubernetes, from `--min-kubernetes-version` on, takes the definition or object and ignores a part of it.",
    reason: "what is ignored does not protect objects there: a field that is dropped, a format that is not checked",
    remedy: "say the same in a way that the older one understands, too, or name a later minor as the oldest",
    is_fixed: false,
};

pub(super) const REFUSED: Lint = Lint {
    id: "refused",
    severity: Severity::Error,
    finds: "The server does not take the definition.",
    reason: "a definition with a fault is not served",
    remedy: "correct what the server says",
    is_fixed: false,
};

pub(super) const NOT_STRUCTURAL: Lint = Lint {
    id: "not-structural",
    severity: Severity::Error,
    finds: "A schema is not structural, or there is none.",
    reason: "without a structural schema nothing is pruned, defaulted or published, and v1 refuses it",
    remedy: "specify every field outside of allOf, anyOf, oneOf and not, and give it a type",
    is_fixed: false,
};

pub(super) const DEPRECATED: Lint = Lint {
    id: "deprecated-construct",
    severity: Severity::Warning,
    finds: "`apiextensions.k8s.io/v1beta1`, `spec.preserveUnknownFields`, or what the server warns of.",
    reason: "it is left over from v1beta1, which 1.22 removed, or does nothing",
    remedy: "use what v1 has in its place",
    is_fixed: true,
};

pub(super) const UNKNOWN_IGNORE: Lint = Lint {
    id: "unknown-ignore",
    severity: Severity::Warning,
    finds: "The annotation `skiff.kubeskiff.dev/lint-ignore` names something that is not a lint.",
    reason: "nothing is turned off by it",
    remedy: "correct the id; `skiff lint --list` has them all",
    is_fixed: false,
};

pub(super) const UNKNOWN_FIELDS: Lint = Lint {
    id: "unknown-fields-kept",
    severity: Severity::Warning,
    finds: "All of an object, of its spec or of its status keeps fields that nothing specifies.",
    reason: "what is not specified is neither checked nor pruned",
    remedy: "specify the fields, and keep unknown ones only where they belong",
    is_fixed: false,
};

pub(super) const REQUIRED_UNSPECIFIED: Lint = Lint {
    id: "required-unspecified",
    severity: Severity::Error,
    finds: "A field is required that the schema does not specify.",
    reason: "the field is pruned, and so no object passes",
    remedy: "specify the field, or don't require it",
    is_fixed: false,
};

pub(super) const REQUIRED_WITH_DEFAULT: Lint = Lint {
    id: "required-with-default",
    severity: Severity::Warning,
    finds: "A field is required and has a default.",
    reason: "API conventions, \"Optional vs. Required\": a field with a default is optional for those who write it",
    remedy: "don't require it",
    is_fixed: false,
};

pub(super) const RULE_COST: Lint = Lint {
    id: "rule-cost",
    severity: Severity::Warning,
    finds: "A rule takes half of what one may cost, or more.",
    reason: "a definition with a rule over the limit is refused",
    remedy: "bound what the rule goes over; `skiff cost` tells how much",
    is_fixed: false,
};

pub(super) const SCHEMA_COST: Lint = Lint {
    id: "schema-cost",
    severity: Severity::Warning,
    finds: "All rules of a schema take half of what they may cost together, or more.",
    reason: "a definition whose rules are over the limit together is refused",
    remedy: "bound what the dearest rules go over; `skiff cost` tells which those are",
    is_fixed: false,
};

pub(super) const UNBOUNDED: Lint = Lint {
    id: "unbounded-under-rule",
    severity: Severity::Advice,
    finds: "A rule's price depends on a list, a map or a text without a bound.",
    reason: "what has no bound is priced as if it filled the largest request",
    remedy: "set maxItems, maxProperties or maxLength",
    is_fixed: false,
};

pub(super) const NEVER_FAILS: Lint = Lint {
    id: "rule-never-fails",
    severity: Severity::Warning,
    finds: "A rule holds for every object that the schema lets in, by constants, bounds, enum or required alone.",
    reason: "the rule checks nothing",
    remedy: "remove the rule",
    is_fixed: true,
};

pub(super) const NEVER_HOLDS: Lint = Lint {
    id: "rule-never-holds",
    severity: Severity::Error,
    finds: "A rule holds for no object that the schema lets in, by constants, bounds, enum or required alone.",
    reason: "no object passes the rule",
    remedy: "correct the rule",
    is_fixed: false,
};

pub(super) const WITHOUT_HAS: Lint = Lint {
    id: "optional-without-has",
    severity: Severity::Warning,
    finds: "A rule reads an optional field without asking whether it is there.",
    reason: "reading a field that is absent ends the rule with an error",
    remedy: "ask with has() first, require the field, or give it a default",
    is_fixed: false,
};

pub(super) const LIST_TYPE: Lint = Lint {
    id: "list-type-missing",
    severity: Severity::Advice,
    finds: "A list has no `x-kubernetes-list-type`.",
    reason: "API conventions, \"Lists\": server-side apply replaces a list as a whole unless it has a type",
    remedy: "add x-kubernetes-list-type: map (with its keys), set or atomic",
    is_fixed: true,
};

pub(super) const KIND_CASE: Lint = Lint {
    id: "kind-case",
    severity: Severity::Advice,
    finds: "A kind is not a CamelCase word in the singular, or ends in List.",
    reason: "API conventions, \"Types (Kinds)\" and \"Naming conventions\": kinds are CamelCase and singular, and List is for lists",
    remedy: "call it by a CamelCase word",
    is_fixed: false,
};

pub(super) const STATUS: Lint = Lint {
    id: "status-without-subresource",
    severity: Severity::Warning,
    finds: "There is a status, but no `/status`.",
    reason: "API conventions, \"Spec and Status\": writes to the object ignore the status, and writes to /status all else",
    remedy: "add subresources: {status: {}}",
    is_fixed: false,
};

pub(super) const CONDITIONS: Lint = Lint {
    id: "conditions",
    severity: Severity::Warning,
    finds: "Conditions are not a list map by type, or lack fields of `metav1.Condition`.",
    reason: "API conventions, \"Typical status properties\": conditions are a list map by type, of standard fields",
    remedy: "take the schema of metav1.Condition in a list map by type",
    is_fixed: false,
};

pub(super) const PHASE: Lint = Lint {
    id: "phase",
    severity: Severity::Advice,
    finds: "The status has a phase.",
    reason: "API conventions, \"Typical status properties\": phases are deprecated for conditions",
    remedy: "use conditions",
    is_fixed: false,
};

pub(super) const REFERENCE: Lint = Lint {
    id: "reference-name",
    severity: Severity::Advice,
    finds: "The name of a reference ends in Reference.",
    reason: "API conventions, \"Naming of the reference field\": a reference is called `{field}Ref`",
    remedy: "call it {field}Ref",
    is_fixed: false,
};

pub(super) const CROSS_NAMESPACE: Lint = Lint {
    id: "cross-namespace-reference",
    severity: Severity::Advice,
    finds: "A reference may name an object of another namespace.",
    reason: "API conventions, \"Object references\": references into other namespaces cross a security boundary",
    remedy: "leave the namespace out, or ask the other side for its consent",
    is_fixed: false,
};

pub(super) const MAP: Lint = Lint {
    id: "map-of-objects",
    severity: Severity::Advice,
    finds: "A map holds objects.",
    reason: "API conventions, \"Lists of named subobjects preferred over maps\"",
    remedy: "use a list map by name",
    is_fixed: false,
};

pub(super) const INT64: Lint = Lint {
    id: "int64-precision",
    severity: Severity::Advice,
    finds: "An int64 may be larger than 2^53.",
    reason: "API conventions, \"Primitive types\": JavaScript and others lose precision beyond 2^53",
    remedy: "use format int32, a maximum of 9007199254740991, or a string",
    is_fixed: false,
};

pub(super) const UNBOUNDED_NUMBER: Lint = Lint {
    id: "number-unbounded",
    severity: Severity::Advice,
    finds: "A number in a spec has no minimum or no maximum.",
    reason: "API conventions, \"Primitive types\": all numbers are checked for being too small and too large",
    remedy: "set minimum and maximum",
    is_fixed: false,
};

pub(super) const FLOAT: Lint = Lint {
    id: "float-in-spec",
    severity: Severity::Advice,
    finds: "A floating-point number stands in a spec.",
    reason: "API conventions, \"Primitive types\": floats don't round-trip, and must not stand in a spec",
    remedy: "use an integer with a unit, or a quantity as a string",
    is_fixed: false,
};

pub(super) const BOOLEAN: Lint = Lint {
    id: "boolean",
    severity: Severity::Advice,
    finds: "A boolean stands in a spec.",
    reason: "API conventions, \"Primitive types\": many ideas start as boolean and trend towards a small set of states",
    remedy: "consider a string with an enum",
    is_fixed: false,
};

pub(super) const ENUM_TYPE: Lint = Lint {
    id: "enum-of-numbers",
    severity: Severity::Advice,
    finds: "An enum has numbers.",
    reason: "API conventions, \"Constants\": the values of enumerations are strings",
    remedy: "use CamelCase words",
    is_fixed: false,
};

pub(super) const ENUM_CASE: Lint = Lint {
    id: "enum-camel-case",
    severity: Severity::Advice,
    finds: "Values of an enum are not CamelCase.",
    reason: "API conventions, \"Constants\": enum values are CamelCase",
    remedy: "write them as CamelCase words",
    is_fixed: false,
};

pub(super) const UNIT: Lint = Lint {
    id: "unit-suffix",
    severity: Severity::Advice,
    finds: "A duration or size does not say its unit, or is a text in Go's format of durations.",
    reason: "API conventions, \"Units\": units stand in the name of the field, and durations are integers",
    remedy: "use an integer, and put the unit in its name: {field}Seconds",
    is_fixed: false,
};

pub(super) const TIME_NAME: Lint = Lint {
    id: "time-name",
    severity: Severity::Advice,
    finds: "The name of a point in time does not end in Time.",
    reason: "API conventions, \"Naming conventions\": a point in time is called somethingTime, without stamp",
    remedy: "call it {field}Time",
    is_fixed: false,
};

pub(super) const BOOLEAN_NAME: Lint = Lint {
    id: "boolean-name",
    severity: Severity::Advice,
    finds: "The name of a boolean begins with is.",
    reason: "API conventions, \"Naming conventions\": a boolean is called fooable, not isFooable",
    remedy: "leave `is` out",
    is_fixed: false,
};

pub(super) const NAME_CASE: Lint = Lint {
    id: "field-name-case",
    severity: Severity::Advice,
    finds: "The name of a field is not lowerCamelCase.",
    reason: "API conventions, \"Naming conventions\": field names are lowerCamelCase",
    remedy: "begin with a small letter, without _ and -",
    is_fixed: false,
};

pub(super) const RESERVED_GROUP: Lint = Lint {
    id: "reserved-group",
    severity: Severity::Warning,
    finds: "The group is under `k8s.io` or `kubernetes.io`.",
    reason: "API conventions, \"API groups\": groups under k8s.io and kubernetes.io are reserved for Kubernetes",
    remedy: "choose a group under a domain of your own",
    is_fixed: false,
};

pub(super) const RESERVED_PREFIX: Lint = Lint {
    id: "reserved-prefix",
    severity: Severity::Warning,
    finds: "The name of a field is a key under `k8s.io/` or `kubernetes.io/`.",
    reason: "API conventions, \"Label, selector, and annotation conventions\": these prefixes are reserved for Kubernetes",
    remedy: "put the key under a domain of your own",
    is_fixed: false,
};

impl Lint {
    /// The lint called `id`.
    pub fn find(id: &str) -> Option<&'static Lint> {
        LINTS.into_iter().find(|lint| lint.id == id)
    }

    /// The documentation of the lint, as Markdown.
    pub fn markdown(&self) -> String {
        let fixed = if self.is_fixed { ", *fixed*" } else { "" };
        let Lint { id, severity, finds, reason, remedy, .. } = self;
        format!(
            "## {id}\n\n{finds}\n\n- Severity: {}{fixed}.\n- Why: {reason}.\n- Remedy: {remedy}.\n",
            severity.word()
        )
    }
}

/// The documentation of all lints, as Markdown.
pub fn markdown() -> String {
    LINTS.iter().fold(HEAD.to_owned(), |text, lint| text + "\n" + &lint.markdown())
}
