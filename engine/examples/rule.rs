//! Checks, prices and runs a rule over an object, with no server around.
//!
//!     cargo run -p kubeskiff-engine --example rule -- 'self.replicas <= 3' '{"replicas": 5}'
//!
//! A third argument is the schema, in JSON; without one the object is a map of integers. Prints the type, what the rule
//! may cost and what it did cost, and the value. Exit code 1 if there is something wrong, which is told.

use std::error::Error;
use std::process::ExitCode;

use kubeskiff_engine::cel::cost::estimate;
use kubeskiff_engine::cel::env::{Env, Expressions};
use kubeskiff_engine::cel::eval::show::literal;
use kubeskiff_engine::cel::eval::{Program, Value};
use kubeskiff_engine::schema::declare::declare;
use kubeskiff_engine::schema::form::form;
use kubeskiff_engine::schema::{convert, json_schema};
use kubeskiff_engine::value::json;

const INTEGERS: &str = r#"{"type": "object", "maxProperties": 10, "additionalProperties": {"type": "integer"}}"#;
const COST_LIMIT: u64 = 1_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let told = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [rule, object] => run(rule, object, INTEGERS),
        [rule, object, schema] => run(rule, object, schema),
        _ => Err("usage: rule EXPRESSION OBJECT [SCHEMA]".into()),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(rule: &str, object: &str, schema: &str) -> Result<(), Box<dyn Error>> {
    let (schema, _) = json_schema::decode(&json::decode(schema.as_bytes())?)?;
    let schema = convert::to_structural(&schema)?;
    let declared = declare(&schema, false).ok_or("rules see nothing of such an object")?.named("self");

    let env = Env::kubernetes(Expressions::New).with_variable("self", declared.ty.clone());
    let expression = env.compile(rule)?;
    println!("type      {}", expression.result_type());
    println!("estimate  {}", estimate(&expression, &declared).max);

    let program = Program::new(&expression, &env)?;
    let (object, form) = (json::decode(object.as_bytes())?, form(&schema, false));
    let evaluation = program.evaluate(&[Some(Value::host(&object, &form))], COST_LIMIT);
    println!("cost      {}", evaluation.cost);
    println!("value     {}", literal(&evaluation.result?));
    Ok(())
}
