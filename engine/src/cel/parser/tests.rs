//! Tests of expressions, and of the faults of texts that are not expressions.

use super::*;
use crate::cel::env::{Env, Expressions};

/// The tree with each node's id after it.
fn show(expr: &Expr) -> String {
    let all = |exprs: &[Expr]| exprs.iter().map(show).collect::<Vec<_>>().join(", ");
    let shown = match &expr.kind {
        ExprKind::Constant(Constant::Int(number)) => number.to_string(),
        ExprKind::Constant(constant) => format!("{constant:?}"),
        ExprKind::Ident(name) => name.clone(),
        ExprKind::Select(select) if select.test_only => format!("has {}.{}", show(&select.operand), select.field),
        ExprKind::Select(select) => format!("{}.{}", show(&select.operand), select.field),
        ExprKind::Call(call) => {
            let target = call.target.as_ref().map(|target| format!("{}.", show(target))).unwrap_or_default();
            format!("{target}{}({})", call.function, all(&call.args))
        }
        ExprKind::List(list) => format!("[{}]", all(&list.elements)),
        ExprKind::Map(entries) => {
            let entry = |entry: &MapEntry| format!("{}: {} #{}", show(&entry.key), show(&entry.value), entry.id);
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        ExprKind::Struct(message) => message.type_name.clone(),
        ExprKind::Comprehension(fold) => format!(
            "fold({}, {} = {}, {}, {}, {})",
            show(&fold.iter_range),
            fold.iter_var,
            show(&fold.accu_init),
            show(&fold.loop_condition),
            show(&fold.loop_step),
            show(&fold.result)
        ),
    };
    format!("{shown}#{}", expr.id)
}

fn check(text: &str, expected: &str) {
    let found = Env::kubernetes(Expressions::Stored).parse(text);
    assert_eq!(found.map(|ast| show(&ast.expr)).map_err(|issues| issues.to_string()).as_deref(), Ok(expected));
}

fn check_errors(text: &str, expected: &str) {
    let found = Env::kubernetes(Expressions::Stored).parse(text);
    assert_eq!(found.map(|ast| show(&ast.expr)).map_err(|issues| issues.to_string()), Err(expected.to_owned()));
}

#[test]
fn ids_come_in_the_order_of_cel_go() {
    check("a.b + f(1)[2]", "_+_(a#1.b#2, _[_](f(1#5)#4, 2#7)#6)#3");
    check("{'a': 1, 'b': 2}", "{String(\"a\")#3: 1#4 #2, String(\"b\")#6: 2#7 #5}#1");
    check("!!a ? -b : --c", "_?_:_(a#1, -_(b#4)#3, c#5)#2");
}

#[test]
fn chains_of_and_are_balanced() {
    check("a && b && c && d", "_&&_(_&&_(a#1, b#2)#3, _&&_(c#4, d#6)#7)#5");
}

#[test]
fn macros_are_folds() {
    check(
        "l.all(x, x > 0)",
        "fold(l#1, x = Bool(true)#7, @not_strictly_false(@result#8)#9, \
             _&&_(@result#10, _>_(x#4, 0#6)#5)#11, @result#12)#13",
    );
    check("has(a.b)", "has a#2.b#4");
}

#[test]
fn a_minus_belongs_to_the_number_behind_it() {
    check("-1.f()", "-1#1.f()#2");
    check("-9223372036854775808", "-9223372036854775808#1");
}

#[test]
fn a_missing_operand_is_reported_with_all_that_could_come() {
    check_errors(
        "1 +",
        "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', \
             'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^",
    );
    check_errors("a.", "ERROR: <input>:1:3: Syntax error: no viable alternative at input '.'\n | a.\n | ..^");
    check_errors("f(1", "ERROR: <input>:1:4: Syntax error: missing ')' at '<EOF>'\n | f(1\n | ...^");
}

#[test]
fn reading_goes_on_after_a_fault() {
    check_errors(
        "[1 2] $ if(x)",
        "ERROR: <input>:1:4: Syntax error: extraneous input '2' expecting {']', ','}\n | [1 2] $ if(x)\n | ...^\n\
             ERROR: <input>:1:7: Syntax error: token recognition error at: '$'\n | [1 2] $ if(x)\n | ......^\n\
             ERROR: <input>:1:9: Syntax error: mismatched input 'if' expecting <EOF>\n | [1 2] $ if(x)\n | ........^",
    );
}

#[test]
fn macros_want_names() {
    check_errors(
        "l.exists(1, true) && has(a)",
        "ERROR: <input>:1:10: argument must be a simple name\n | l.exists(1, true) && has(a)\n | .........^\n\
             ERROR: <input>:1:26: invalid argument to has() macro\n | l.exists(1, true) && has(a)\n | \
             .........................^",
    );
}

#[test]
fn the_depth_is_bounded() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    check(&nested(249), "1#1");
    check_errors(&nested(250), "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
    check_errors(&["a"; 252].join(" + "), "ERROR: <input>:-1:0: max recursion depth exceeded");
    check_errors(&"(".repeat(90_000), "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
}

#[test]
fn what_macros_multiply_is_bounded() {
    let chained = format!("a{}", ".optMap(x, x)".repeat(100));
    check_errors(&chained, "ERROR: <input>:-1:0: expression node count exceeds limit: limit 200000");
}

#[test]
fn the_length_is_bounded() {
    let long = format!("'{}'", "é".repeat(CODE_POINTS_MAX));
    check_errors(&long, "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100002, limit 100000");
}
