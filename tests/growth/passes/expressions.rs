//! Rules: from their text to a price and a result.

use std::sync::LazyLock;

use kubeskiff::cel::ast::SourceInfo;
use kubeskiff::cel::cost::estimate;
use kubeskiff::cel::env::{Env, Expressions};
use kubeskiff::cel::eval::{Program, Value as Cel};
use kubeskiff::cel::parser::parse_keeping_macros;
use kubeskiff::cel::print::print;
use kubeskiff::cel::types::Type;
use kubeskiff::meta::minor::Minor;
use kubeskiff::policy::conditions;
use kubeskiff::schema::declare;
use kubeskiff::schema::json_schema::ValidationRule;
use kubeskiff::schema::rules::Rules;
use kubeskiff::value::Value;

use crate::inputs::{Shape, fields, list, structural, value, widget};
use crate::pass::{Pass, pass};

const SIZE: usize = 12;
/// More than the errors that are told of an expression.
const ERRORS_SIZE: usize = 40;
/// What one evaluation may cost: enough for all of these.
const COST_MAX: u64 = 1 << 40;

static ENV: LazyLock<Env> = LazyLock::new(|| Env::kubernetes(Expressions::Stored).with_variable("self", Type::Dyn));

/// Texts that are long in one way each.
const TEXTS: [Shape; 16] = [
    ("a sum", |size| vec!["1"; size].join(" + ")),
    ("a conjunction", |size| vec!["self.a"; size].join(" && ")),
    ("a list", |size| format!("[{}]", vec!["1"; size].join(","))),
    ("a map", |size| format!("{{{}}}", (0..size).map(|at| format!("'k{at}':1")).collect::<Vec<_>>().join(","))),
    ("a map of one key", |size| format!("{{{}}}", vec!["'k':1"; size].join(","))),
    ("a list of two types", |size| format!("[{}]", vec!["1,'a'"; size].join(","))),
    ("selections", |size| format!("self{}", ".a".repeat(size / 2 + 1))),
    ("calls", |size| format!("'a'{}", ".trim()".repeat(size / 2 + 1))),
    ("a chain of conditions", |size| format!("{}1", "true ? 1 : ".repeat(size / 2 + 1))),
    ("macros side by side", |size| vec!["self.l.all(x, x > 1)"; size].join(" && ")),
    ("a long text", |size| format!("'{}'", "a\\n".repeat(size * 10))),
    ("a long name", |size| "x".repeat(size * 10)),
    ("unknown names", |size| (0..size).map(|at| format!("none{at}")).collect::<Vec<_>>().join(" && ")),
    ("wrong characters", |size| "# ".repeat(size)),
    ("open brackets", |size| "(".repeat(size)),
    ("lines", |size| vec!["1"; size].join("\n+\n")),
];

/// Rules whose evaluation goes over a list or a text.
const RULES: [(&str, &str); 16] = [
    ("all", "self.l.all(x, x != 'z')"),
    ("map and filter", "self.l.map(x, x + 'a').filter(x, x != 'z').size() >= 0"),
    ("exists one", "self.l.exists_one(x, x == 'z')"),
    ("membership", "'z' in self.l"),
    ("equality", "self.l == self.l && self.m == self.m"),
    ("join and split", "self.l.join(',').split(',').size() >= 0"),
    ("replace", "self.t.replace('x', 'yy').size() >= 0"),
    ("a search in a text", "self.t.contains('xxxy') || self.t.indexOf('y') >= 0"),
    ("cases", "self.t.lowerAscii().upperAscii() != 'z'"),
    ("a pattern", "self.t.matches('^(x|y)*z$')"),
    ("a sort", "self.l.sort().size() >= 0"),
    ("distinct", "self.l.distinct().size() >= 0"),
    ("sets", "sets.contains(self.l, ['a'])"),
    ("sums", "self.l.map(x, size(x)).sum() >= 0"),
    ("entries", "self.m.all(k, self.m[k] != 'z')"),
    ("bytes and numbers", "size(bytes(self.t)) >= 0 && base64.encode(bytes(self.t)) != ''"),
];

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, text) in TEXTS {
        let size = if shape == "unknown names" { ERRORS_SIZE } else { SIZE };
        passes.extend([
            pass("expression parse", shape, size, text, |text| {
                ENV.parse(text).map_err(|issues| issues.to_string()).is_ok()
            }),
            pass("expression compile", shape, size, text, |text| {
                ENV.compile(text).map_err(|issues| issues.to_string()).is_ok()
            }),
            pass("expression print", shape, size, text, |text| {
                parse_keeping_macros(SourceInfo::new(text), &ENV.library).ok().map(|ast| print(&ast))
            }),
            pass("expression plan and run", shape, size, text, |text| {
                let program = Program::new(&ENV.resolve(text).ok()?, &ENV).ok()?;
                Some(program.evaluate(&[Some(Ok(Cel::Preserved(&Value::Null)))], COST_MAX).cost)
            }),
            pass("expression cost", shape, size, text, |text| {
                let declared = declare::declare(&structural(), false)?;
                Some(estimate(&ENV.compile(text).ok()?, &declared))
            }),
            pass("match condition", shape, size, text, |text| {
                conditions::fault(Minor::NEWEST, text, Expressions::New).is_none()
            }),
        ]);
    }
    for (shape, rule) in RULES {
        let input = move |size: usize| {
            let texts = list(size, |at| format!(r#""v{at}""#));
            let entries = fields(size, |at| format!(r#""k{at}":"v""#));
            let object = value(&format!(r#"{{"l":{texts},"m":{entries},"t":"{}"}}"#, "x".repeat(size)));
            let program = Program::new(&ENV.resolve(rule).expect("it is an expression"), &ENV).expect("it has a plan");
            (program, object)
        };
        passes.push(pass("rule over an object", shape, 40, input, |(program, object)| {
            program.evaluate(&[Some(Ok(Cel::Preserved(object)))], COST_MAX).cost
        }));
    }
    passes.extend(checked());
    passes
}

/// The rules of a schema, over many items and in an update.
fn checked() -> Vec<Pass> {
    let rules = |rule: &str| {
        let mut schema = structural();
        let spec = schema.properties.get_mut("spec").expect("there is one");
        let items = spec.properties.get_mut("items").expect("there is one");
        items.validations = vec![ValidationRule { rule: rule.to_owned(), ..ValidationRule::default() }];
        Rules::compile(&schema, true)
    };
    let shapes = [
        ("a rule that holds", "self.all(x, x.name != 'z')"),
        ("a rule that fails", "self.all(x, x.name == 'z')"),
        ("a transition", "self == oldSelf"),
    ];
    let make = |(shape, rule): (&'static str, &'static str)| {
        let input = move |size: usize| {
            let items = list(size, |at| format!(r#"{{"name":"n{at}"}}"#));
            (rules(rule), value(&widget("", &format!(r#"{{"items":{items}}}"#))))
        };
        pass("rules of a schema", shape, 40, input, |(rules, object)| rules.check(object, Some(object), None).errors)
    };
    shapes.into_iter().map(make).collect()
}
