//! What ends a hostile expression, and how: the errors and costs are those of cel-go 0.29 with the Kubernetes libraries
//! 1.37.

use kubeskiff::cel::env::{Env, Expressions};
use kubeskiff::cel::eval::{Program, Value};
use kubeskiff::cel::types::Type;

/// What one evaluation of a rule may cost.
const CALL_LIMIT: u64 = 1_000_000;
const TOO_DEEP: &str = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
const TOO_LONG: &str = "ERROR: <input>:-1:0: max recursion depth exceeded";

/// The first line of what is wrong with `text`, or the value that it comes to, with the cost.
fn outcome(text: &str) -> (String, u64) {
    let env = Env::kubernetes(Expressions::Stored).with_variable("self", Type::map(Type::String, Type::String));
    let checked = match env.compile(text) {
        Ok(checked) => checked,
        Err(issues) => return (issues.to_string().lines().next().unwrap_or_default().to_owned(), 0),
    };
    let program = match Program::new(&checked, &env) {
        Ok(program) => program,
        Err(error) => return (error.to_string(), 0),
    };
    let object = Value::Map(kubeskiff::cel::eval::map::Map::owned([(Value::borrowed("s"), Value::borrowed("abc"))]));
    let evaluation = program.evaluate(&[Some(Ok(object))], CALL_LIMIT);
    let shown = match evaluation.result {
        Ok(value) => kubeskiff::cel::eval::show::show(&value),
        Err(error) => error.to_string(),
    };
    (shown, evaluation.cost)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(outcome(text).0, expected, "{}", text.chars().take(80).collect::<String>());
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    for (open, inner, close, least) in [
        ("(", "1", ")", 250),
        ("[", "1", "]", 250),
        ("{1:", "1", "}", 250),
        ("int(", "1", ")", 250),
        ("true ? 1 : (", "1", ")", 249),
        ("[1].all(x, ", "true", ")", 250),
        ("1 in [", "1 == 1", "]", 125),
    ] {
        for times in [least, 1_000, 10_000 / open.len()] {
            check(&nested(open, inner, close, times), TOO_DEEP);
        }
        let (below, _) = outcome(&nested(open, inner, close, least / 2 - 1));
        assert!(!below.contains("recursion"), "{open}: {below}");
    }
    check(&"{".repeat(10_000), TOO_DEEP);
}

#[test]
fn what_is_chained_too_long_is_refused() {
    for (first, link) in [("'a'", ".trim()"), ("self", ".a"), ("self", "[0]"), ("self", ".?a"), ("[1]", ".map(x, x)")] {
        for times in [1_000, 10_000 / link.len()] {
            check(&format!("{first}{}", link.repeat(times)), TOO_LONG);
        }
    }
    for operator in ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in"] {
        for times in [1_000, 10_000 / (operator.len() + 3)] {
            check(&vec!["1"; times].join(&format!(" {operator} ")), TOO_LONG);
        }
    }
}

#[test]
fn chains_of_logic_and_of_signs_may_be_long() {
    for operator in [" && ", " || "] {
        check(&vec!["true"; 2_000].join(operator), "true");
    }
    check(&format!("{}true", "!".repeat(9_999)), "false");
    check(&format!("{}size(self)", "-".repeat(9_999)), "-1");
}

#[test]
fn what_is_written_too_large_is_refused() {
    let sized = |length: usize| {
        let size = length + 8;
        (format!("'{}' == ''", "x".repeat(length)), size)
    };
    check(&sized(10_000).0, "false");
    for (text, size) in [sized(100_000), sized(1_000_000)] {
        let expected =
            format!("ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit 100000");
        check(&text, &expected);
    }
    check(&format!("[{}].size()", vec!["1"; 10_000].join(",")), "10000");
    check(&format!("{} > 0", "9".repeat(10_000)), "ERROR: <input>:1:1: invalid int literal");
    check(&format!("0x{} > 0", "f".repeat(1_000)), "ERROR: <input>:1:1: invalid int literal");
    check(&format!("1e{} > 0.0", "9".repeat(100)), "ERROR: <input>:1:1: invalid double literal");
    let name = "a".repeat(10_000);
    check(&name, &format!("ERROR: <input>:1:1: undeclared reference to '{name}' (in container '')"));
}

#[test]
fn regular_expressions_are_bounded() {
    for bomb in
        ["(a{1000}){1000}", "a{1001}", "((a{100}){10}){10}", &format!("{}{}", "(".repeat(1_001), ")".repeat(1_001))]
    {
        let column = "self.s".len() + ".matches".len() + 1;
        check(
            &format!("self.s.matches('{bomb}')"),
            &format!("ERROR: <input>:1:{}: invalid matches argument", column + 1),
        );
    }
    check("self.s.matches('(a{500}){' + '3}')", "error parsing regexp: invalid repeat count: `{3}`");
    // Linear, whatever the expression.
    check(&format!("('{}').matches('^(a+)+$b')", "a".repeat(5_000)), "false");
}

#[test]
fn what_grows_while_it_runs_ends_at_the_limit() {
    let doubled = format!("['{}']{}[0].size()", "a".repeat(24), ".map(x, x + x)".repeat(23));
    let replaced = format!("'aaaaaaaaaa'{}.size()", ".replace('a', 'aaaaaaaaaa')".repeat(12));
    let nested = "lists.range(100).all(a, lists.range(100).all(b, lists.range(100).all(c, a + b + c >= 0)))";
    for (text, cost) in [(doubled.as_str(), 1_258_553), (&replaced, 2_222_222), (nested, 1_000_001)] {
        assert_eq!(outcome(text), ("operation cancelled: actual cost limit exceeded".to_owned(), cost), "{text}");
    }
}
