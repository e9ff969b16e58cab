//! The compiled rules of a schema, as a tree of its nodes.

use std::sync::{Arc, OnceLock};

use super::compile::{CompiledRule, ExpressionOrigin, RuleError, compile_for};
use crate::cel::declared::DeclType;
use crate::cel::escape::escape;
use crate::cel::eval::Program;
use crate::cel::eval::host::HostForm;
use crate::meta::minor::Minor;
use crate::schema::declare::declare_in;
use crate::schema::form::form_in;
use crate::schema::json_schema::ValidationRule;
use crate::schema::structural::{NestedValueValidation, Structural, StructuralOrBool};
use crate::value::{Map, Value};
use crate::work;

/// The rules of a schema at all its nodes, ready to run. Nodes without rules at or below them are left out.
#[derive(Debug, Default)]
pub struct Rules {
    pub(super) root: Option<RuleNode>,
    /// The version of Kubernetes that they were compiled for.
    pub(super) minor: Minor,
}

/// The rules of the root of a custom resource, compiled on first use.
#[derive(Clone, Debug, Default)]
pub struct LazyRules(Arc<OnceLock<Rules>>);

impl LazyRules {
    /// The rules of `schema`, which must always be the same one, in that version of Kubernetes.
    pub fn of(&self, schema: &Structural, minor: Minor) -> &Rules {
        if let Some(rules) = self.0.get() {
            return rules;
        }
        // Outside of the lock, as it may be ended.
        let rules = Rules::compile_for(minor, schema, true);
        self.0.get_or_init(|| rules)
    }
}

/// The rules are derived from the schema, so they don't make two versions differ.
impl PartialEq for LazyRules {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The rules of a node and of its descendants.
#[derive(Debug)]
pub(super) struct RuleNode {
    /// The type that the schema declares: errors show it in place of the value.
    pub type_: String,
    /// Whether entries are compared with their old values.
    pub is_correlatable: bool,
    /// The keys that match items with their old values, for lists of type `map`.
    pub item_keys: Vec<String>,
    /// Why none of the rules can run.
    pub error: Option<&'static str>,
    pub rules: Vec<RunnableRule>,
    /// How `self` is read.
    pub form: Arc<HostForm>,
    /// Rules under `allOf`, which apply to this node, too.
    pub all_of: Vec<RuleNode>,
    pub items: Option<Box<RuleNode>>,
    pub values: Option<Box<RuleNode>>,
    pub properties: Map<RuleNode>,
}

/// A rule, ready to run.
#[derive(Debug)]
pub(super) struct RunnableRule {
    pub rule: ValidationRule,
    /// `None` for a blank rule, which always holds.
    pub program: Option<Result<Arc<Program>, RuleError>>,
    pub uses_old_self: bool,
    pub message: Option<Arc<Program>>,
    /// The path of the field to report a failure at, relative to the node; empty for the node itself.
    pub field_path: String,
}

impl Rules {
    /// Compiles the rules of `schema`, which is stored: they may use every function. `is_resource` is for the root of a
    /// custom resource.
    pub fn compile(schema: &Structural, is_resource: bool) -> Rules {
        Rules::compile_for(Minor::NEWEST, schema, is_resource)
    }

    /// [`Rules::compile`] in that version of Kubernetes.
    pub fn compile_for(minor: Minor, schema: &Structural, is_resource: bool) -> Rules {
        Rules::compile_of(minor, schema, is_resource, None)
    }

    /// [`Rules::compile_for`] for those rules only that concern something in `value`; they must not be run over other
    /// objects.
    pub fn compile_within(minor: Minor, schema: &Structural, is_resource: bool, value: &Value) -> Rules {
        Rules::compile_of(minor, schema, is_resource, Some(value))
    }

    fn compile_of(minor: Minor, schema: &Structural, is_resource: bool, value: Option<&Value>) -> Rules {
        let has_rules = value.map_or_else(|| super::any(schema), |value| super::any_about(schema, value));
        if !has_rules {
            return Rules::default();
        }
        let decl = declare_in(minor, schema, is_resource);
        let form = Arc::new(form_in(minor, schema, is_resource));
        Rules { root: node(minor, &Spine::of(schema), schema, (&form, decl.as_ref()), value), minor }
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }
}

/// Where rules stand: in a schema, or in an `allOf` beside it.
struct Spine<'s> {
    rules: &'s [ValidationRule],
    items: Option<Below<'s>>,
    values: Option<Below<'s>>,
    properties: Vec<(&'s str, Below<'s>)>,
    all_of: &'s [NestedValueValidation],
}

#[derive(Clone, Copy)]
enum Below<'s> {
    Schema(&'s Structural),
    Nested(&'s NestedValueValidation),
}

impl<'s> Below<'s> {
    fn spine(self) -> Spine<'s> {
        match self {
            Below::Schema(schema) => Spine::of(schema),
            Below::Nested(nested) => Spine::nested(nested),
        }
    }
}

impl<'s> Spine<'s> {
    fn of(schema: &'s Structural) -> Self {
        Spine {
            rules: &schema.validations,
            items: schema.items.as_deref().map(Below::Schema),
            values: values_of(schema).map(Below::Schema),
            properties: schema.properties.iter().map(|(name, schema)| (name, Below::Schema(schema))).collect(),
            all_of: schema.value_validation.as_deref().map_or(&[], |validation| &validation.junctors.all_of),
        }
    }

    fn nested(nested: &'s NestedValueValidation) -> Self {
        Spine {
            rules: &nested.validations,
            items: nested.items.as_deref().map(Below::Nested),
            values: nested.additional_properties.as_deref().map(Below::Nested),
            properties: nested.properties.iter().map(|(name, nested)| (name, Below::Nested(nested))).collect(),
            all_of: &nested.value_validation.junctors.all_of,
        }
    }
}

fn values_of(schema: &Structural) -> Option<&Structural> {
    schema.additional_properties.as_ref().and_then(StructuralOrBool::structural)
}

/// The rules of `spine` about values of `schema`, which have a form and a declared type; `None` if there are none here
/// or below. With a value, rules about parts that it lacks are left out.
fn node(
    minor: Minor,
    spine: &Spine<'_>,
    schema: &Structural,
    (form, decl): (&Arc<HostForm>, Option<&DeclType>),
    value: Option<&Value>,
) -> Option<RuleNode> {
    work::steps(1 + spine.properties.len());
    let element = (form.element(), decl.and_then(DeclType::element));
    let has_any = |is_empty: fn(&Value) -> bool| value.is_none_or(|value| !is_empty(value));
    let has_items = has_any(|value| value.as_array().is_none_or(<[Value]>::is_empty));
    let items = match (spine.items, &schema.items) {
        (Some(items), Some(schema)) if has_items => below(minor, items, schema, element, None),
        _ => None,
    };
    let has_values = has_any(|value| value.as_object().is_none_or(|fields| fields.is_empty()));
    let values = match (spine.values, values_of(schema)) {
        (Some(values), Some(schema)) if has_values => below(minor, values, schema, element, None),
        _ => None,
    };
    let properties = properties(minor, spine, schema, (form, decl), value);
    let all_of = spine.all_of.iter();
    let all_of: Vec<RuleNode> =
        all_of.filter_map(|nested| node(minor, &Spine::nested(nested), schema, (form, decl), value)).collect();
    let (rules, error) = match decl {
        Some(decl) => (compile_for(minor, spine.rules, schema, decl, ExpressionOrigin::Stored), None),
        None if spine.rules.is_empty() => (Vec::new(), None),
        None => (Vec::new(), Some("failed to convert to declType for CEL validation rules")),
    };
    let is_list_of_entries = schema.generic.type_ == "array" && schema.extensions.list_type.as_deref() == Some("map");
    let is_empty = rules.is_empty()
        && error.is_none()
        && items.is_none()
        && values.is_none()
        && properties.is_empty()
        && all_of.is_empty();
    (!is_empty).then(|| RuleNode {
        type_: schema.generic.type_.clone(),
        is_correlatable: matches!(schema.extensions.map_type.as_deref(), None | Some("granular" | "atomic")),
        item_keys: if is_list_of_entries { schema.extensions.list_map_keys.clone() } else { Vec::new() },
        error,
        rules: spine.rules.iter().zip(rules).map(|(rule, compiled)| RunnableRule::new(rule, compiled)).collect(),
        form: Arc::clone(form),
        all_of,
        items: items.map(Box::new),
        values: values.map(Box::new),
        properties,
    })
}

/// The rules about the fields of such values, by their names.
fn properties(
    minor: Minor,
    spine: &Spine<'_>,
    schema: &Structural,
    (form, decl): (&Arc<HostForm>, Option<&DeclType>),
    value: Option<&Value>,
) -> Map<RuleNode> {
    let mut properties = Map::new();
    for (name, property) in spine.properties.iter() {
        let Some(schema) = schema.properties.get(name) else { continue };
        let inner = value.and_then(|value| value.get(name));
        if value.is_some() && inner.is_none() {
            continue;
        }
        let own;
        let decl = match escape(name) {
            Some(escaped) => decl.and_then(|decl| decl.field(&escaped)),
            // Expressions of parents don't see it, but its own rules do.
            None => {
                own = declare_in(minor, schema, schema.extensions.embedded_resource);
                own.as_ref()
            }
        };
        if let Some(decl) = decl
            && let Some(node) = below(minor, *property, schema, (form.field(name), Some(decl)), inner)
        {
            properties.insert(*name, node);
        }
    }
    properties
}

/// The rules of `below` about values of `schema` within others.
fn below(
    minor: Minor,
    below: Below<'_>,
    schema: &Structural,
    (form, decl): (Option<&Arc<HostForm>>, Option<&DeclType>),
    value: Option<&Value>,
) -> Option<RuleNode> {
    // Expressions of parents can't reach a value without a form.
    let own = form.is_none().then(|| Arc::new(form_in(minor, schema, false)));
    node(minor, &below.spine(), schema, (form.or(own.as_ref())?, decl), value)
}

impl RunnableRule {
    fn new(rule: &ValidationRule, compiled: CompiledRule) -> Self {
        let program = match (compiled.expression, compiled.error) {
            (_, Some(error)) => Some(Err(error)),
            (Some(expression), None) => Some(Ok(expression.program)),
            (None, None) => None,
        };
        RunnableRule {
            rule: rule.clone(),
            program,
            uses_old_self: compiled.uses_old_self,
            message: compiled.message.and_then(Result::ok).map(|message| message.program),
            field_path: compiled.field_path,
        }
    }
}
