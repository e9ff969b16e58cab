//! What holds for every rule that checks and every object that fits its schema.

use kubeskiff::cel::eval::EvalError;
use kubeskiff::meta::field::Path;
use kubeskiff::schema::rules::compile::{ExpressionOrigin, RuleError, compile};
use kubeskiff::schema::rules::{CostLimits, Rules};
use kubeskiff::schema::validate;
use kubeskiff::value::json;

use super::generator::{Generator, schema};

/// How many rules are made, and how many objects for each.
const RULES: u64 = 1_500;
const OBJECTS: u64 = 4;

/// What a value can be wrong in, other than its type.
const FAILURES: [&str; 6] = [
    "no such key",
    "index out of bounds",
    "integer overflow",
    "division by zero",
    "modulus by zero",
    "invalid_argument: index",
];

#[test]
fn a_checked_rule_fails_by_no_type_and_costs_no_more_than_its_estimate() {
    let (mut evaluated, mut priced) = (0_u64, 0_u64);
    for seed in 1..=RULES {
        let mut generator = Generator::new(seed);
        let rule = generator.rule();
        let (schema, decl) = schema(&rule);
        let compiled = compile(&schema.validations, &schema, &decl, ExpressionOrigin::Stored).remove(0);
        // Constant parts may fail before anything runs: `1 / 0`.
        let Some(expression) = &compiled.expression else {
            assert!(matches!(compiled.error, Some(RuleError::Program(_))), "`{rule}`: {:?}", compiled.error);
            continue;
        };
        let rules = Rules::compile(&schema, false);
        for _ in 0..OBJECTS {
            let text = generator.object();
            let object = json::decode(text.as_bytes()).expect("the object is JSON");
            let is_valid = validate::validate(&Path::ROOT, &object, &schema).is_empty();
            assert!(is_valid, "the schema allows {text}");
            rules.evaluate(&Path::ROOT, &object, None, None, CostLimits::default(), &mut |run| {
                evaluated += 1;
                match run.result {
                    Ok(value) => assert!(value.as_bool().is_some(), "`{rule}` is true or false"),
                    Err(EvalError::CostLimitExceeded) => {}
                    Err(EvalError::Failed(why)) if FAILURES.iter().any(|failure| why.contains(failure)) => {}
                    Err(error) => panic!("`{rule}` fails by a type for {text}: {error}"),
                }
                // Causes to cost more have counterexamples: below, and in `schema::rules::compile`.
                if !generator.may_exceed {
                    priced += 1;
                    let most = expression.cost_max;
                    assert!(run.cost <= most, "`{rule}` cost {}, not {most} at most, for {text}", run.cost);
                }
            });
        }
    }
    assert!(evaluated > RULES * OBJECTS / 2 && priced > RULES / 2, "most rules run: {evaluated}, {priced}");
    println!("{evaluated} evaluations, {priced} of them within their estimates");
}

#[test]
fn items_of_a_list_that_the_rule_makes_cost_more_than_their_estimate() {
    let rule = "[7 - self.number, self.count + 7][1] <= self.numbers[0]";
    let (schema, decl) = schema(rule);
    let estimate = compile(&schema.validations, &schema, &decl, ExpressionOrigin::Stored)[0].cost_max();
    let object = json::decode(br#"{"number":1,"count":2,"numbers":[3]}"#).expect("the object is JSON");
    let mut actual = 0;
    Rules::compile(&schema, false)
        .evaluate(&Path::ROOT, &object, None, None, CostLimits::default(), &mut |run| actual = run.cost);
    // To the estimate, such an item has no size, as the integers of an object.
    assert_eq!((estimate, actual), (21, 22));
}
