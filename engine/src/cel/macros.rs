//! Macros, which are expanded while parsing.
//!
//! Each macro replaces a call, given its target and arguments, by another node, most often a comprehension. New nodes
//! get their ids in cel-go's order and have the call's position.

use super::ast::{
    ACCUMULATOR, Call, Comprehension, Constant, Expr, ExprId, ExprKind, ListExpr, MapEntry, Select, Struct,
    StructField, operators,
};
use super::builder::Builder;
use super::language::Library;
use crate::meta::minor::Minor;

/// A call of a macro with wrong arguments.
#[derive(Debug)]
pub(super) struct Misuse {
    /// The argument that is wrong.
    pub at: ExprId,
    pub message: String,
}

pub(super) type Expand = fn(&mut Expansion<'_, '_>, Option<Expr>, Vec<Expr>) -> Result<Expr, Misuse>;

/// The accumulator's name in older versions; it stays forbidden.
const FORMER_ACCUMULATOR: &str = "__result__";
/// The iteration variable of a comprehension that never runs its step.
const UNUSED: &str = "#unused";
/// The variable for the list that `sortBy` sorts.
const SORTED: &str = "@__sortBy_input__";

/// The first version of Kubernetes with `optMap` and `optFlatMap`.
pub(super) const OPTIONALS_SINCE: Minor = Minor::of(28);
/// The first version with macros that take a key and a value.
pub(super) const TWO_VARIABLES_SINCE: Minor = Minor::of(32);
/// The first version with `sortBy`.
pub(super) const SORT_BY_SINCE: Minor = Minor::of(34);

/// The first version in which a target that an expansion uses twice has separate ids in each place. Before, it is
/// checked twice under the same ids, its faults are reported twice, and a type that differs from that of the first
/// check is one more fault.
pub(super) const COPIES_SINCE: Minor = Minor::of(32);

/// The first version of Kubernetes with a macro that the CEL standard does not have, in any of its forms.
pub(super) fn since(name: &str) -> Option<Minor> {
    match name {
        "all" | "exists" | "exists_one" | "existsOne" | "transformList" | "transformMap" | "transformMapEntry" => {
            Some(TWO_VARIABLES_SINCE)
        }
        "optMap" | "optFlatMap" => Some(OPTIONALS_SINCE),
        "sortBy" => Some(SORT_BY_SINCE),
        _ => None,
    }
}

/// Finds the macro for a call, by its name, the number of its arguments, and whether it has a target.
pub(super) fn find(library: &Library, function: &str, args: usize, has_target: bool) -> Option<Expand> {
    let expand: Expand = match (function, args, has_target) {
        ("has", 1, false) => has,
        ("all", 2, true) => all,
        ("exists", 2, true) => exists,
        ("exists_one", 2, true) => exists_one,
        ("map", 2 | 3, true) => map,
        ("filter", 2, true) => filter,
        _ if !has_target => return None,
        ("optMap", 2, _) if library.optionals => opt_map,
        ("optFlatMap", 2, _) if library.optionals => opt_flat_map,
        ("sortBy", 2, _) if library.sort_by => sort_by,
        _ if !library.two_variable_comprehensions => return None,
        ("all", 3, _) => all,
        ("exists", 3, _) => exists,
        ("exists_one" | "existsOne", 3, _) => exists_one,
        ("transformList", 3 | 4, _) => transform_list,
        ("transformMap", 3 | 4, _) => transform_map,
        ("transformMapEntry", 3 | 4, _) => transform_map_entry,
        _ => return None,
    };
    Some(expand)
}

/// Makes the nodes of one expansion.
pub(super) struct Expansion<'e, 'b> {
    pub builder: &'e mut Builder<'b>,
    /// The call to expand.
    pub at: ExprId,
}

/// The variables of a comprehension.
struct Variables {
    first: String,
    second: Option<String>,
}

/// The parts of a comprehension, apart from its range and its variables.
struct Fold {
    accu_init: Expr,
    loop_condition: Expr,
    loop_step: Expr,
    result: Expr,
}

fn has(expansion: &mut Expansion<'_, '_>, _: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let [argument] = take(args);
    match argument.kind {
        ExprKind::Select(select) => {
            let select = Select { test_only: true, ..*select };
            Ok(expansion.node(ExprKind::Select(Box::new(select))))
        }
        _ => Err(Misuse { at: argument.id, message: "invalid argument to has() macro".to_owned() }),
    }
}

fn all(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (variables, rest) = variables_of(args, SIMPLE_NAME)?;
    let [predicate] = take(rest);
    let accu_init = expansion.constant(Constant::Bool(true));
    let accu = expansion.accumulator();
    let loop_condition = expansion.call(operators::NOT_STRICTLY_FALSE, vec![accu]);
    let accu = expansion.accumulator();
    let loop_step = expansion.call(operators::LOGICAL_AND, vec![accu, predicate]);
    let result = expansion.accumulator();
    Ok(expansion.comprehension(target, variables, Fold { accu_init, loop_condition, loop_step, result }))
}

fn exists(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (variables, rest) = variables_of(args, SIMPLE_NAME)?;
    let [predicate] = take(rest);
    let accu_init = expansion.constant(Constant::Bool(false));
    let accu = expansion.accumulator();
    let not = expansion.call(operators::LOGICAL_NOT, vec![accu]);
    let loop_condition = expansion.call(operators::NOT_STRICTLY_FALSE, vec![not]);
    let accu = expansion.accumulator();
    let loop_step = expansion.call(operators::LOGICAL_OR, vec![accu, predicate]);
    let result = expansion.accumulator();
    Ok(expansion.comprehension(target, variables, Fold { accu_init, loop_condition, loop_step, result }))
}

fn exists_one(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (variables, rest) = variables_of(args, SIMPLE_NAME)?;
    let [predicate] = take(rest);
    let accu_init = expansion.constant(Constant::Int(0));
    let loop_condition = expansion.constant(Constant::Bool(true));
    let accu = expansion.accumulator();
    let one = expansion.constant(Constant::Int(1));
    let more = expansion.call(operators::ADD, vec![accu, one]);
    let accu = expansion.accumulator();
    let loop_step = expansion.call(operators::CONDITIONAL, vec![predicate, more, accu]);
    let accu = expansion.accumulator();
    let one = expansion.constant(Constant::Int(1));
    let result = expansion.call(operators::EQUALS, vec![accu, one]);
    Ok(expansion.comprehension(target, variables, Fold { accu_init, loop_condition, loop_step, result }))
}

fn map(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, mut args: Vec<Expr>) -> Result<Expr, Misuse> {
    let first = variable(args.remove(0), "argument is not an identifier")?;
    let (filter, transform) = filter_and_transform(args);
    let accu_init = expansion.list(Vec::new());
    let loop_condition = expansion.constant(Constant::Bool(true));
    let loop_step = expansion.append(filter, transform);
    let result = expansion.accumulator();
    let variables = Variables { first, second: None };
    Ok(expansion.comprehension(target, variables, Fold { accu_init, loop_condition, loop_step, result }))
}

fn filter(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let [name, predicate] = take(args);
    let first = variable(name.clone(), "argument is not an identifier")?;
    let accu_init = expansion.list(Vec::new());
    let loop_condition = expansion.constant(Constant::Bool(true));
    let loop_step = expansion.append(Some(predicate), name);
    let result = expansion.accumulator();
    let variables = Variables { first, second: None };
    Ok(expansion.comprehension(target, variables, Fold { accu_init, loop_condition, loop_step, result }))
}

fn transform_list(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (variables, rest) = variables_of(args, SIMPLE_NAME)?;
    let (filter, transform) = filter_and_transform(rest);
    let loop_step = expansion.append(filter, transform);
    let accu_init = expansion.list(Vec::new());
    Ok(expansion.collect(target, variables, accu_init, loop_step))
}

fn transform_map(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (variables, rest) = variables_of(args, SIMPLE_NAME)?;
    let (filter, transform) = filter_and_transform(rest);
    let accu = expansion.accumulator();
    let key = expansion.ident(&variables.first);
    let step = expansion.call(operators::MAP_INSERT, vec![accu, key, transform]);
    let loop_step = expansion.where_(filter, step);
    let accu_init = expansion.node(ExprKind::Map(Vec::new()));
    Ok(expansion.collect(target, variables, accu_init, loop_step))
}

fn transform_map_entry(
    expansion: &mut Expansion<'_, '_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expr, Misuse> {
    let (variables, rest) = variables_of(args, SIMPLE_NAME)?;
    let (filter, transform) = filter_and_transform(rest);
    let accu = expansion.accumulator();
    let step = expansion.call(operators::MAP_INSERT, vec![accu, transform]);
    let loop_step = expansion.where_(filter, step);
    let accu_init = expansion.node(ExprKind::Map(Vec::new()));
    Ok(expansion.collect(target, variables, accu_init, loop_step))
}

fn opt_map(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (present, value) = expansion.with_content(target, args, "optMap")?;
    let some = expansion.call("optional.of", vec![value]);
    let none = expansion.call("optional.none", Vec::new());
    Ok(expansion.call(operators::CONDITIONAL, vec![present, some, none]))
}

fn opt_flat_map(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let (present, value) = expansion.with_content(target, args, "optFlatMap")?;
    let none = expansion.call("optional.none", Vec::new());
    Ok(expansion.call(operators::CONDITIONAL, vec![present, value, none]))
}

/// Binds the target to a variable, and sorts it by the key that the argument computes for each element.
fn sort_by(expansion: &mut Expansion<'_, '_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expr, Misuse> {
    let target = target.expect("the macro was found by having a target");
    let loop_step = expansion.ident(SORTED);
    if matches!(target.kind, ExprKind::Constant(_) | ExprKind::Map(_) | ExprKind::Struct(_)) {
        let message =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression".to_owned();
        return Err(Misuse { at: target.id, message });
    }
    let sorted = expansion.ident(SORTED);
    let keys = map(expansion, Some(sorted), args)?;
    let sorted = expansion.ident(SORTED);
    let call = Call { function: "@sortByAssociatedKeys".to_owned(), target: Some(sorted), args: vec![keys] };
    let result = expansion.node(ExprKind::Call(Box::new(call)));
    Ok(expansion.bind(SORTED, target, loop_step, result))
}

const SIMPLE_NAME: &str = "argument must be a simple name";

/// Takes the variable's name from the front of two arguments, or both names if there are three arguments or more.
fn variables_of(mut args: Vec<Expr>, fault: &str) -> Result<(Variables, Vec<Expr>), Misuse> {
    if args.len() == 2 {
        let first = variable(args.remove(0), fault)?;
        return Ok((Variables { first, second: None }, args));
    }
    let (one, two) = (args.remove(0), args.remove(0));
    let (one_id, two_id) = (one.id, two.id);
    let (first, second) = (name_of(one, fault)?, name_of(two, fault)?);
    if first == second {
        return Err(Misuse { at: two_id, message: format!("duplicate variable name: {first}") });
    }
    keep_accumulator(one_id, &first)?;
    keep_accumulator(two_id, &second)?;
    Ok((Variables { first, second: Some(second) }, args))
}

fn name_of(argument: Expr, fault: &str) -> Result<String, Misuse> {
    match argument.kind {
        ExprKind::Ident(name) => Ok(name),
        _ => Err(Misuse { at: argument.id, message: fault.to_owned() }),
    }
}

fn variable(argument: Expr, fault: &str) -> Result<String, Misuse> {
    let id = argument.id;
    let name = name_of(argument, fault)?;
    keep_accumulator(id, &name)?;
    Ok(name)
}

fn keep_accumulator(at: ExprId, name: &str) -> Result<(), Misuse> {
    if name == ACCUMULATOR || name == FORMER_ACCUMULATOR {
        let message = "iteration variable overwrites accumulator variable".to_owned();
        return Err(Misuse { at, message });
    }
    Ok(())
}

fn filter_and_transform(mut args: Vec<Expr>) -> (Option<Expr>, Expr) {
    let transform = args.pop().expect("the macro was found by its number of arguments");
    (args.pop(), transform)
}

fn take<const COUNT: usize>(args: Vec<Expr>) -> [Expr; COUNT] {
    args.try_into().expect("the macro was found by its number of arguments")
}

impl Expansion<'_, '_> {
    fn node(&mut self, kind: ExprKind) -> Expr {
        Expr { id: self.builder.id_at(self.at), kind }
    }

    fn constant(&mut self, constant: Constant) -> Expr {
        self.node(ExprKind::Constant(constant))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(ExprKind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.node(ExprKind::List(ListExpr { elements, optional: Vec::new() }))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(ExprKind::Call(Box::new(Call { function: function.to_owned(), target: None, args })))
    }

    fn member_call(&mut self, function: &str, target: Expr) -> Expr {
        let call = Call { function: function.to_owned(), target: Some(target), args: Vec::new() };
        self.node(ExprKind::Call(Box::new(call)))
    }

    /// Makes a step that appends `transform` to the accumulator if `filter` holds.
    fn append(&mut self, filter: Option<Expr>, transform: Expr) -> Expr {
        let accu = self.accumulator();
        let one = self.list(vec![transform]);
        let step = self.call(operators::ADD, vec![accu, one]);
        self.where_(filter, step)
    }

    /// Makes a step that is `step` if `filter` holds, else the unchanged accumulator.
    fn where_(&mut self, filter: Option<Expr>, step: Expr) -> Expr {
        let Some(filter) = filter else { return step };
        let accu = self.accumulator();
        self.call(operators::CONDITIONAL, vec![filter, step, accu])
    }

    /// Makes a comprehension over all elements, whose result is its accumulator.
    fn collect(&mut self, target: Option<Expr>, variables: Variables, accu_init: Expr, loop_step: Expr) -> Expr {
        let loop_condition = self.constant(Constant::Bool(true));
        let result = self.accumulator();
        self.comprehension(target, variables, Fold { accu_init, loop_condition, loop_step, result })
    }

    fn comprehension(&mut self, target: Option<Expr>, variables: Variables, fold: Fold) -> Expr {
        let Fold { accu_init, loop_condition, loop_step, result } = fold;
        let comprehension = Comprehension {
            iter_range: target.expect("the macro was found by having a target"),
            iter_var: variables.first,
            iter_var2: variables.second,
            accu_var: ACCUMULATOR.to_owned(),
            accu_init,
            loop_condition,
            loop_step,
            result,
        };
        self.node(ExprKind::Comprehension(Box::new(comprehension)))
    }

    /// Makes an expression that evaluates `result` with the variable `name` bound to `value`.
    fn bind(&mut self, name: &str, value: Expr, loop_step: Expr, result: Expr) -> Expr {
        let iter_range = self.list(Vec::new());
        let loop_condition = self.constant(Constant::Bool(false));
        self.bound(iter_range, name, Fold { accu_init: value, loop_condition, loop_step, result })
    }

    /// Makes a comprehension over an empty list, whose accumulator serves as a variable.
    fn bound(&mut self, iter_range: Expr, name: &str, fold: Fold) -> Expr {
        let Fold { accu_init, loop_condition, loop_step, result } = fold;
        let comprehension = Comprehension {
            iter_range,
            iter_var: UNUSED.to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init,
            loop_condition,
            loop_step,
            result,
        };
        self.node(ExprKind::Comprehension(Box::new(comprehension)))
    }

    /// Makes the condition that the optional `target` has a value, and the expression over that value.
    fn with_content(&mut self, target: Option<Expr>, args: Vec<Expr>, name: &str) -> Result<(Expr, Expr), Misuse> {
        let [variable, transform] = take(args);
        let fault = format!("{name}() variable name must be a simple identifier");
        let accu_var = name_of(variable, &fault)?;
        let target = target.expect("the macro was found by having a target");
        let again = target.clone();
        let present = self.member_call("hasValue", target);
        let iter_range = self.list(Vec::new());
        // The ids are taken in either case: they count against the limit of nodes that expansions make.
        let copied = self.copy(again.clone());
        let again = if self.builder.minor() < COPIES_SINCE { again } else { copied };
        let accu_init = self.member_call("value", again);
        let loop_condition = self.constant(Constant::Bool(false));
        let loop_step = self.ident(&accu_var);
        let fold = Fold { accu_init, loop_condition, loop_step, result: transform };
        let value = self.bound(iter_range, &accu_var, fold);
        Ok((present, value))
    }

    /// Copies `expr` with new ids.
    fn copy(&mut self, expr: Expr) -> Expr {
        if self.builder.is_full() {
            return expr;
        }
        let range = self.builder.range_of(expr.id);
        let id = self.builder.id(range);
        let kind = match expr.kind {
            kind @ (ExprKind::Constant(_) | ExprKind::Ident(_)) => kind,
            ExprKind::Select(select) => {
                let Select { operand, field, test_only } = *select;
                ExprKind::Select(Box::new(Select { operand: self.copy(operand), field, test_only }))
            }
            ExprKind::Call(call) => {
                let Call { function, target, args } = *call;
                let args = self.copy_all(args);
                let target = target.map(|target| self.copy(target));
                ExprKind::Call(Box::new(Call { function, target, args }))
            }
            ExprKind::List(ListExpr { elements, optional }) => {
                ExprKind::List(ListExpr { elements: self.copy_all(elements), optional })
            }
            ExprKind::Map(entries) => ExprKind::Map(entries.into_iter().map(|entry| self.copy_entry(entry)).collect()),
            ExprKind::Struct(message) => {
                let Struct { type_name, fields } = *message;
                let fields = fields.into_iter().map(|field| self.copy_field(field)).collect();
                ExprKind::Struct(Box::new(Struct { type_name, fields }))
            }
            ExprKind::Comprehension(comprehension) => {
                ExprKind::Comprehension(Box::new(self.copy_comprehension(*comprehension)))
            }
        };
        Expr { id, kind }
    }

    fn copy_all(&mut self, exprs: Vec<Expr>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.copy(expr)).collect()
    }

    fn copy_entry(&mut self, entry: MapEntry) -> MapEntry {
        let id = self.builder.id_at(self.at);
        let key = self.copy(entry.key);
        MapEntry { id, key, value: self.copy(entry.value), optional: entry.optional }
    }

    fn copy_field(&mut self, field: StructField) -> StructField {
        let id = self.builder.id_at(self.at);
        StructField { id, value: self.copy(field.value), ..field }
    }

    fn copy_comprehension(&mut self, comprehension: Comprehension) -> Comprehension {
        Comprehension {
            iter_range: self.copy(comprehension.iter_range),
            accu_init: self.copy(comprehension.accu_init),
            loop_condition: self.copy(comprehension.loop_condition),
            loop_step: self.copy(comprehension.loop_step),
            result: self.copy(comprehension.result),
            ..comprehension
        }
    }
}
