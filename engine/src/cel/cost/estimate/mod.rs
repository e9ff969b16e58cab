//! The range of an expression's possible cost, by the limits that its schema sets for sizes.

mod call;
mod sizes;

pub use self::call::{Estimate, Sizes};
pub use self::sizes::EntrySizes;

use self::sizes::{Local, set};
use super::model;
use super::path::Path;
use super::range::Range;
use crate::cel::ast::{ACCUMULATOR, Call, Comprehension, Constant, Expr, ExprId, ExprKind, ListExpr, MapEntry, Select};
use crate::cel::checked::CheckedExpr;
use crate::cel::declared::DeclType;
use crate::cel::types::Type;
use crate::meta::minor::Minor;

/// The version of Kubernetes since which the size of a comprehension's result is known.
const FOLDS_SIZED_SINCE: Minor = Minor::of(30);

/// The range of the cost of one evaluation of `expr`, whose variables are all declared as `root`.
pub fn estimate(expr: &CheckedExpr, root: &DeclType) -> Range {
    Coster::new(expr, &|_| Some(root)).cost(&expr.ast.expr)
}

/// [`estimate()`] of an expression that no server estimates, with several variables: `root` declares each; `None` for
/// one of an unknown size. The texts that `string()` makes of numbers and times have a length here, while servers
/// assume them to be unbounded.
pub fn estimate_with<'e>(expr: &'e CheckedExpr, root: &'e dyn Fn(&str) -> Option<&'e DeclType>) -> Range {
    Coster { knows_conversions: true, ..Coster::new(expr, root) }.cost(&expr.ast.expr)
}

struct Coster<'e> {
    checked: &'e CheckedExpr,
    /// What declares a variable.
    root: &'e dyn Fn(&str) -> Option<&'e DeclType>,
    /// By the ids of expressions, as are the next two.
    paths: Vec<Option<Path<'e>>>,
    sizes: Vec<Option<Range>>,
    entries: Vec<Option<EntrySizes>>,
    /// Variables of comprehensions, the innermost last.
    locals: Vec<Local<'e>>,
    /// Whether the texts that `string()` makes have a size.
    knows_conversions: bool,
}

impl<'e> Coster<'e> {
    fn new(checked: &'e CheckedExpr, root: &'e dyn Fn(&str) -> Option<&'e DeclType>) -> Self {
        Coster {
            checked,
            root,
            paths: Vec::new(),
            sizes: Vec::new(),
            entries: Vec::new(),
            locals: Vec::new(),
            knows_conversions: false,
        }
    }

    fn cost(&mut self, expr: &'e Expr) -> Range {
        match &expr.kind {
            ExprKind::Constant(_) => Range::fixed(0),
            ExprKind::Ident(name) => self.cost_ident(expr.id, name),
            ExprKind::Select(select) => self.cost_select(expr.id, select),
            ExprKind::Call(call) => self.cost_call(expr, call),
            ExprKind::List(list) => self.cost_list(expr.id, list),
            ExprKind::Map(entries) => self.cost_map(expr.id, entries),
            ExprKind::Struct(message) => {
                let fields =
                    message.fields.iter().fold(Range::default(), |sum, field| sum.plus(self.cost(&field.value)));
                fields.plus(Range::fixed(model::MAKE_STRUCT))
            }
            ExprKind::Comprehension(fold) if is_bind(fold) && self.knows_entries() => self.cost_bind(expr.id, fold),
            ExprKind::Comprehension(fold) => self.cost_fold(expr.id, fold),
        }
    }

    fn cost_ident(&mut self, id: ExprId, name: &'e str) -> Range {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            // If accumulators are not tracked, there is no path to their contents.
            None if name == ACCUMULATOR => Path::default(),
            None => Path::of_variable(name),
        };
        set(&mut self.paths, id, path);
        Range::fixed(model::SELECT)
    }

    fn cost_select(&mut self, id: ExprId, select: &'e Select) -> Range {
        let cost = self.cost(&select.operand);
        if select.test_only {
            return cost;
        }
        let reads = matches!(self.checked.ty(select.operand.id), Type::Map(_) | Type::Object(_) | Type::Param(_));
        let path = self.path(&select.operand).child(&select.field);
        set(&mut self.paths, id, path);
        if reads { cost.plus(Range::fixed(model::SELECT)) } else { cost }
    }

    fn cost_list(&mut self, id: ExprId, list: &'e ListExpr) -> Range {
        let mut cost = Range::fixed(model::MAKE_LIST);
        let mut sizes = if list.elements.is_empty() { Range::fixed(0) } else { Range::EMPTY };
        for element in &list.elements {
            cost = cost.plus(self.cost(element));
            sizes = sizes.union(self.size_or_unknown(element));
        }
        self.note_entry(id, EntrySizes { of_list: true, key: Range::fixed(1), value: sizes });
        cost
    }

    fn cost_map(&mut self, id: ExprId, entries: &'e [MapEntry]) -> Range {
        let mut cost = Range::fixed(model::MAKE_MAP);
        let none = if entries.is_empty() { Range::fixed(0) } else { Range::EMPTY };
        let mut sizes = EntrySizes { of_list: false, key: none, value: none };
        for entry in entries {
            cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            sizes.key = sizes.key.union(self.size_or_unknown(&entry.key));
            sizes.value = sizes.value.union(self.size_or_unknown(&entry.value));
        }
        self.note_entry(id, sizes);
        cost
    }

    /// The cost of a variable bound by a macro such as `sortBy`: the body is evaluated once.
    fn cost_bind(&mut self, id: ExprId, bind: &'e Comprehension) -> Range {
        let cost = self.cost(&bind.iter_range).plus(self.cost(&bind.accu_init));
        self.push_accumulator(bind);
        let cost = cost.plus(self.cost(&bind.result));
        self.pop_accumulator(bind);
        if let Some(size) = self.size(&bind.result) {
            set(&mut self.sizes, id, size);
        }
        if let Some(entry) = self.entry(&bind.result) {
            self.note_entry(id, entry);
        }
        cost
    }

    fn cost_fold(&mut self, id: ExprId, fold: &'e Comprehension) -> Range {
        let mut cost = self.cost(&fold.iter_range).plus(self.cost(&fold.accu_init));
        self.push_accumulator(fold);
        let second = fold.iter_var2.as_deref().filter(|_| self.knows_entries());
        match second {
            Some(second) => {
                self.push_key(&fold.iter_var, &fold.iter_range);
                self.push_value(second, &fold.iter_range);
            }
            None if self.is_list(&fold.iter_range) => self.push_value(&fold.iter_var, &fold.iter_range),
            None => self.push_key(&fold.iter_var, &fold.iter_range),
        }
        let condition = self.cost(&fold.loop_condition);
        let step = self.cost(&fold.loop_step);
        self.pop_local(&fold.iter_var);
        if let Some(second) = second {
            self.pop_local(second);
        }
        cost = cost.plus(self.cost(&fold.result));
        self.pop_accumulator(fold);

        let times = self.size_or_unknown(&fold.iter_range);
        match &fold.accu_init.kind {
            _ if self.checked.minor < FOLDS_SIZED_SINCE => {}
            _ if !self.knows_entries() => set(&mut self.sizes, id, times),
            ExprKind::Constant(_) => {
                if let Some(size) = self.size(&fold.accu_init) {
                    set(&mut self.sizes, id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                set(&mut self.sizes, id, times);
                if let Some(entry) = self.entry(&fold.loop_step) {
                    self.note_entry(id, entry);
                }
            }
            _ => {}
        }
        cost.plus(times.times(step.plus(condition)))
    }

    fn cost_call(&mut self, expr: &'e Expr, call: &'e Call) -> Range {
        let mut costs = Vec::with_capacity(call.args.len());
        let mut nodes = Vec::with_capacity(call.args.len() + 1);
        for arg in &call.args {
            costs.push(self.cost(arg));
            nodes.push(self.node(arg));
        }
        let checked = self.checked;
        let overloads = checked.overloads(expr.id);
        if overloads.is_empty() {
            return Range::default();
        }
        let mut target_cost = Range::default();
        if let Some(target) = &call.target {
            target_cost = self.cost(target);
            nodes.insert(0, self.node(target));
        }
        let args_cost = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        let mut cost = Range::EMPTY;
        let mut result: Option<Range> = None;
        for overload in overloads {
            let sizes = Sizes { coster: self, nodes: &nodes, costs: &costs };
            let mut estimate = overload.cost.estimate(&sizes);
            if self.knows_conversions {
                estimate.result = estimate.result.or_else(|| overload.text_size.map(|size| size(&sizes)));
            }
            cost = cost.union(estimate.arguments.unwrap_or(args_cost).plus(estimate.cost));
            result = match (result, estimate.result) {
                (Some(known), Some(more)) => Some(known.union(more)),
                (known, more) => known.or(more),
            };
            if let Some(entry) = estimate.entry {
                self.note_entry(expr.id, entry);
            }
            if let (Some(step), Some(container)) = (estimate.step, call.args.first()) {
                result = self.entry(container).map(|entry| entry.value);
                let path = self.path(container).child(step);
                set(&mut self.paths, expr.id, path);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        if let Some(size) = result {
            set(&mut self.sizes, expr.id, size);
        }
        target_cost.plus(cost)
    }
}

/// Whether a comprehension only binds a value to a name.
fn is_bind(fold: &Comprehension) -> bool {
    matches!(&fold.iter_range.kind, ExprKind::List(list) if list.elements.is_empty())
        && fold.loop_condition.kind == ExprKind::Constant(Constant::Bool(false))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cel::declared::{DeclField, ObjectType};
    use crate::cel::env::{Env, Expressions};

    /// `{number: int, text: string up to 40 bytes, list: 3 texts of up to 100 bytes, map: 5 texts of up to 100 bytes,
    /// deep: 2 × {list: 4 × {short: up to 20 bytes, texts: 3 × up to 1000 bytes}}}`.
    fn root() -> DeclType {
        let text = |size| DeclType::scalar(Type::String, size, 2);
        let object = |name: &str, fields: Vec<(&str, DeclType)>| {
            let fields = fields.into_iter().map(|(name, decl)| (name.to_owned(), DeclField { decl, required: false }));
            let mut object = ObjectType::new(name);
            object.fields = fields.collect::<BTreeMap<_, _>>();
            DeclType::object(object, 2)
        };
        let inner = object("inner", vec![("short", text(20)), ("texts", DeclType::list(text(1000), 3))]);
        let deep = object("deep", vec![("list", DeclType::list(inner, 4))]);
        object(
            "root",
            vec![
                ("number", DeclType::scalar(Type::Int, 0, 1)),
                ("text", text(40)),
                ("list", DeclType::list(text(100), 3)),
                ("map", DeclType::map(text(0), text(100), 5)),
                ("deep", DeclType::list(deep, 2)),
            ],
        )
    }

    #[track_caller]
    fn check(expression: &str, min: u64, max: u64) {
        let root = root();
        let env = Env::kubernetes(Expressions::New).with_variable("self", root.ty.clone());
        let checked = env.compile(expression).expect("the expression of the test is fine");
        assert_eq!(estimate(&checked, &root), Range::new(min, max), "{expression}");
    }

    #[test]
    fn reading_costs_and_a_literal_is_free() {
        check("1 < 2", 1, 1);
        check("self.number < 2", 3, 3);
        check("has(self.text)", 1, 1);
    }

    #[test]
    fn texts_are_compared_as_far_as_the_shorter_one_goes() {
        check("self.text == self.list[0]", 6, 9);
        check("self.text == 'abc'", 3, 3);
    }

    #[test]
    fn what_an_object_holds_has_its_declared_size_even_if_that_is_none() {
        check("self.number == self.number", 4, 4);
        check("self.number + 1 == self.number + 1", 7, 7);
    }

    #[test]
    fn only_the_left_side_of_a_junction_is_certain() {
        check("self.number > 1 && self.number > 2", 3, 6);
    }

    #[test]
    fn a_fold_costs_as_often_as_its_range_is_long() {
        check("self.list.all(x, x == 'a')", 3, 18);
        check("self.list.map(x, x + x)", 13, 115);
    }

    #[test]
    fn keys_of_maps_count_as_empty() {
        check("self.map.all(k, k == 'a')", 3, 23);
    }

    #[test]
    fn expressions_are_priced_by_their_length() {
        check("self.text.matches('^[a-z]+$')", 4, 12);
    }

    #[test]
    fn a_text_of_a_number_is_bounded_where_no_server_estimates() {
        check("'a' + string(self.number)", 4, 1_844_674_407_370_955_267);
        let root = root();
        let env = Env::kubernetes(Expressions::New).with_variable("self", root.ty.clone());
        for (expression, most) in [
            ("'a' + string(self.number)", 6),
            ("'a' + string(self.text)", 8),
            ("'a' + string(self.number > 1)", 5),
            ("'a' + string(duration('1s')) + string(timestamp(self.number)) + string(1.5)", 25),
        ] {
            let checked = env.compile(expression).expect("the expression of the test is fine");
            assert_eq!(estimate_with(&checked, &|_| Some(&root)).max, most, "{expression}");
        }
    }

    #[test]
    fn a_path_may_be_overwritten_by_its_neighbour() {
        // The elements of `texts` are mistaken for those of `short`, so their size is unknown.
        check("self.deep.all(d, d.list.all(i, i.texts.all(t, i.short == 'a' && t.contains('b'))))", 3, u64::MAX);
        check("self.deep.all(d, d.list.all(i, i.texts.all(t, t.contains('b') && i.short == 'a')))", 3, 17183);
    }
}
