//! The range of what an expression can cost, by the bounds that its schema sets to sizes.

use super::model::{self, CallCost, TraverseResult, call_cost};
use super::path::Path;
use super::range::Range;
use crate::cel::ast::{Call, Comprehension, Constant, Expr, ExprId, ExprKind, List, MapEntry, Select};
use crate::cel::checker::CheckedExpr;
use crate::cel::declared::{DeclType, Shape};
use crate::cel::types::{Scalar, Type};

/// The range of the cost of one evaluation of `expr`, whose variables are all declared as `root`.
pub fn estimate(expr: &CheckedExpr, root: &DeclType) -> Range {
    let mut coster =
        Coster { checked: expr, root, paths: Vec::new(), sizes: Vec::new(), entries: Vec::new(), locals: Vec::new() };
    coster.cost(&expr.ast.expr)
}

struct Coster<'e> {
    checked: &'e CheckedExpr,
    root: &'e DeclType,
    /// By the ids of expressions, as are the next two.
    paths: Vec<Option<Path<'e>>>,
    sizes: Vec<Option<Range>>,
    entries: Vec<Option<Entry>>,
    /// Variables of comprehensions, the innermost last.
    locals: Vec<Local<'e>>,
}

/// The sizes of the keys and the values of a map, or of the indices and elements of a list.
#[derive(Clone, Copy, Debug)]
struct Entry {
    of_list: bool,
    key: Range,
    value: Range,
}

struct Local<'e> {
    name: &'e str,
    path: Path<'e>,
    size: Option<Range>,
    entry: Option<Entry>,
}

/// An argument of a call.
struct Node<'e> {
    expr: &'e Expr,
    path: Path<'e>,
    size: Option<Range>,
}

/// The cost of a call with that of its arguments, and the size of its result where something is known about it.
struct Priced {
    cost: Range,
    result: Option<Range>,
}

impl Priced {
    fn cost(cost: Range) -> Priced {
        Priced { cost, result: None }
    }

    fn with_result(self, result: Range) -> Priced {
        Priced { result: Some(result), ..self }
    }
}

impl Entry {
    fn union(self, other: Entry) -> Entry {
        Entry { of_list: self.of_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

impl<'e> Coster<'e> {
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
            ExprKind::Comprehension(fold) if is_bind(fold) => self.cost_bind(expr.id, fold),
            ExprKind::Comprehension(fold) => self.cost_fold(expr.id, fold),
        }
    }

    fn cost_ident(&mut self, id: ExprId, name: &'e str) -> Range {
        let path = self.local(name).map_or_else(|| Path::of_variable(name), |local| local.path.clone());
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

    fn cost_list(&mut self, id: ExprId, list: &'e List) -> Range {
        let mut cost = Range::fixed(model::MAKE_LIST);
        let mut sizes = if list.elements.is_empty() { Range::fixed(0) } else { Range::EMPTY };
        for element in &list.elements {
            cost = cost.plus(self.cost(element));
            sizes = sizes.union(self.size_or_unknown(element));
        }
        set(&mut self.entries, id, Entry { of_list: true, key: Range::fixed(1), value: sizes });
        cost
    }

    fn cost_map(&mut self, id: ExprId, entries: &'e [MapEntry]) -> Range {
        let mut cost = Range::fixed(model::MAKE_MAP);
        let none = if entries.is_empty() { Range::fixed(0) } else { Range::EMPTY };
        let mut sizes = Entry { of_list: false, key: none, value: none };
        for entry in entries {
            cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            sizes.key = sizes.key.union(self.size_or_unknown(&entry.key));
            sizes.value = sizes.value.union(self.size_or_unknown(&entry.value));
        }
        set(&mut self.entries, id, sizes);
        cost
    }

    /// What a macro such as `sortBy` binds a variable with: the body is evaluated once.
    fn cost_bind(&mut self, id: ExprId, bind: &'e Comprehension) -> Range {
        let cost = self.cost(&bind.iter_range).plus(self.cost(&bind.accu_init));
        self.push_accumulator(bind);
        let cost = cost.plus(self.cost(&bind.result));
        self.pop_local(&bind.accu_var);
        if let Some(size) = self.size(&bind.result) {
            set(&mut self.sizes, id, size);
        }
        if let Some(entry) = self.entry(&bind.result) {
            set(&mut self.entries, id, entry);
        }
        cost
    }

    fn cost_fold(&mut self, id: ExprId, fold: &'e Comprehension) -> Range {
        let mut cost = self.cost(&fold.iter_range).plus(self.cost(&fold.accu_init));
        self.push_accumulator(fold);
        match &fold.iter_var2 {
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
        if let Some(second) = &fold.iter_var2 {
            self.pop_local(second);
        }
        cost = cost.plus(self.cost(&fold.result));
        self.pop_local(&fold.accu_var);

        let times = self.size_or_unknown(&fold.iter_range);
        match &fold.accu_init.kind {
            ExprKind::Constant(_) => {
                if let Some(size) = self.size(&fold.accu_init) {
                    set(&mut self.sizes, id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                set(&mut self.sizes, id, times);
                if let Some(entry) = self.entry(&fold.loop_step) {
                    set(&mut self.entries, id, entry);
                }
            }
            _ => {}
        }
        cost.plus(times.times(step.plus(condition)))
    }

    fn cost_call(&mut self, expr: &'e Expr, call: &'e Call) -> Range {
        if let ("dyn", Some(arg)) = (call.function.as_str(), call.args.first()) {
            let cost = self.cost(arg);
            if let Some(size) = self.size(arg) {
                set(&mut self.sizes, expr.id, size);
            }
            if let Some(entry) = self.entry(arg) {
                set(&mut self.entries, expr.id, entry);
            }
            return cost.plus(Range::fixed(model::CALL));
        }
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
        let mut cost = Range::EMPTY;
        let mut result: Option<Range> = None;
        for overload in overloads {
            let formula = call_cost(&call.function, overload.id);
            let priced = self.price(expr.id, formula, &nodes, &costs);
            cost = cost.union(priced.cost);
            result = match (result, priced.result) {
                (Some(known), Some(more)) => Some(known.union(more)),
                (known, more) => known.or(more),
            };
            if let (Some(step), Some(container)) = (element_step(overload.id), call.args.first()) {
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

    /// `nodes` are the arguments, the target of a member function first; `costs` are those of the arguments alone.
    fn price(&mut self, id: ExprId, formula: CallCost, nodes: &[Node<'e>], costs: &[Range]) -> Priced {
        let args_cost = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        match formula {
            CallCost::Logical => {
                let (left, right) = (costs.first().copied(), costs.get(1).copied());
                let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
                // The right side is not always reached.
                return Priced::cost(Range::new(left.min, left.plus(right).max));
            }
            CallCost::Conditional => return self.price_conditional(id, nodes, costs),
            CallCost::Concatenate | CallCost::ConcatenateLists => {
                let entries = nodes.first().zip(nodes.get(1));
                let entries = entries.and_then(|(left, right)| Some((self.entry(left.expr)?, self.entry(right.expr)?)));
                if let Some((left, right)) = entries {
                    set(&mut self.entries, id, left.union(right));
                }
            }
            _ => {}
        }
        let own = self.price_by_sizes(formula, nodes);
        Priced { cost: own.cost.plus(args_cost), ..own }
    }

    fn price_conditional(&mut self, id: ExprId, nodes: &[Node<'e>], costs: &[Range]) -> Priced {
        let ([_, yes, no], [condition, yes_cost, no_cost]) = (nodes, costs) else {
            return Priced::cost(Range::fixed(model::CALL));
        };
        if let (Some(yes), Some(no)) = (self.entry(yes.expr), self.entry(no.expr)) {
            set(&mut self.entries, id, yes.union(no));
        }
        let size = yes.size.unwrap_or(Range::UNKNOWN).union(no.size.unwrap_or(Range::UNKNOWN));
        Priced::cost(condition.plus(yes_cost.union(*no_cost))).with_result(size)
    }

    /// The cost apart from that of the arguments.
    fn price_by_sizes(&self, formula: CallCost, nodes: &[Node<'e>]) -> Priced {
        let one = Priced::cost(Range::fixed(model::CALL));
        let Some(first) = nodes.first() else { return one };
        let size = self.size_of(first);
        let second = nodes.get(1);
        let second_size = second.map_or(Range::UNKNOWN, |second| self.size_of(second));
        let traversal = |size: Range| size.scale(model::TRAVERSAL);
        match formula {
            CallCost::One | CallCost::Logical | CallCost::Conditional => one,
            CallCost::AuthorizationCheck => Priced::cost(Range::fixed(model::AUTHORIZATION_CHECK)),
            CallCost::Traverse { factor, result } => {
                let cost = Priced::cost(size.scale(factor));
                match traversed(size, result) {
                    Some(result) => cost.with_result(result),
                    None => cost,
                }
            }
            CallCost::Affix => Priced::cost(traversal(second_size)),
            CallCost::Contains => Priced::cost(traversal(size).times(traversal(second_size))),
            CallCost::Matches => Priced::cost(match_regex(size, second_size)),
            CallCost::Find => Priced::cost(match_regex(size, second_size)).with_result(Range::new(0, size.max)),
            CallCost::Compare { is_equals } => {
                let own_type = second.filter(|_| is_equals).and_then(|second| self.compare_own_types(first, second));
                Priced::cost(own_type.unwrap_or_else(|| compare(size, second_size)))
            }
            CallCost::Concatenate => {
                let both = size.plus(second_size);
                Priced::cost(traversal(both)).with_result(both)
            }
            CallCost::ConcatenateLists => one.with_result(size.plus(second_size)),
            CallCost::InList => Priced::cost(second_size.scale(1.0)),
            CallCost::EachElement { takes_dyn } => Priced::cost(self.each_element(first, size, takes_dyn)),
            CallCost::Replace => {
                let with_size = nodes.get(2).map_or(Range::UNKNOWN, |with| self.size_of(with));
                Priced::cost(size.scale(model::TRAVERSAL_AND_COPY)).with_result(replaced(size, second_size, with_size))
            }
            CallCost::Split => {
                let parts_max = nodes.get(2).and_then(|limit| int_literal(limit.expr));
                let result = Range::new(0, parts_max.map_or(size.max, |limit| limit as u64));
                Priced::cost(size.scale(model::TRAVERSAL_AND_COPY)).with_result(result)
            }
            CallCost::Join => {
                let joined = self.joined(first, size, second.map(|_| second_size));
                Priced::cost(traversal(joined)).with_result(joined)
            }
            CallCost::Selector => Priced::cost(
                second_size
                    .scale(model::REQUIREMENTS_PER_CHARACTER)
                    .scale(model::REQUIREMENT)
                    .plus(traversal(second_size))
                    .plus(Range::fixed(model::MAKE_LIST)),
            ),
            CallCost::ContainsIp { parses } => Priced::cost(compare_addresses(parses.then_some(second_size))),
            CallCost::ContainsCidr { parses } => {
                let compare = compare_addresses(parses.then_some(second_size));
                Priced::cost(compare.plus(traversal(ADDRESS)).plus(Range::fixed(1)))
            }
            CallCost::ValidateFormat => {
                Priced::cost(traversal(second_size).scale(model::FORMAT_REGEX_SIZE_MAX * model::REGEX))
            }
            CallCost::Slice => {
                let start = second.map_or(0, |start| unsigned_literal(start.expr, 0));
                let end = nodes.get(2).map_or(size.max, |end| unsigned_literal(end.expr, size.max));
                allocate_list(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            CallCost::ListRange => allocate_list(1.0, Range::fixed(unsigned_literal(first.expr, u64::MAX))),
            CallCost::ReverseList => allocate_list(1.0, size),
            CallCost::Flatten => {
                let depth = second.map_or(1, |depth| unsigned_literal(depth.expr, u64::MAX));
                allocate_list(depth as f64, size)
            }
            CallCost::Distinct => allocate_list(model::COMPARE_PAIR, size.times(size)),
            CallCost::Sort { by_keys, of_texts } => {
                let size = if by_keys { second_size } else { size };
                let text_factor = if of_texts { model::TRAVERSAL } else { 0.0 };
                allocate_list(model::COMPARE_PAIR + text_factor, size.times(size))
            }
            CallCost::Sets { factor } => {
                Priced::cost(size.times(second_size).scale(factor).plus(Range::fixed(model::CALL)))
            }
        }
    }

    /// `==` on two values of the same type of a library.
    fn compare_own_types(&self, left: &Node<'e>, right: &Node<'e>) -> Option<Range> {
        let ty = self.checked.ty(left.expr.id);
        if ty != self.checked.ty(right.expr.id) {
            return None;
        }
        match ty {
            Type::Opaque(opaque) if matches!(opaque.name.as_str(), "net.IP" | "net.CIDR") => Some(Range::fixed(1)),
            Type::Object(object) => match object.name.as_str() {
                "kubernetes.Quantity" | "kubernetes.Semver" => Some(Range::fixed(1)),
                name if name.starts_with("kubernetes.authorization.") => Some(Range::fixed(1)),
                "kubernetes.NamedFormat" => Some(Range::new(1, model::FORMAT_SIZE_MAX).scale(model::TRAVERSAL)),
                "kubernetes.URL" => {
                    let size_max = right.size.map_or(1, |size| size.max);
                    Some(Range::new(1, size_max).scale(model::TRAVERSAL))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn each_element(&self, list: &Node<'e>, size: Range, takes_dyn: bool) -> Range {
        match self.element_size(list) {
            Some(Some(texts)) => size.times(Range::fixed(1).plus(texts.scale(model::TRAVERSAL))),
            Some(None) => size,
            None if takes_dyn => size,
            None => size.scale(model::TRAVERSAL),
        }
    }

    fn joined(&self, list: &Node<'e>, count: Range, separator: Option<Range>) -> Range {
        let elements = match self.list_element(list) {
            Some(path) => count.times(self.declared_size(&path).unwrap_or(Range::UNKNOWN)),
            None => Range::default(),
        };
        match separator {
            Some(size) => {
                elements.plus(size.times(Range::new(count.min.saturating_sub(1), count.max.saturating_sub(1))))
            }
            None => elements,
        }
    }

    /// The size of the elements of `list` if they are strings or bytes; `None` outside if this is no list.
    fn element_size(&self, list: &Node<'e>) -> Option<Option<Range>> {
        let path = self.list_element(list)?;
        let is_text = match self.checked.ty(list.expr.id) {
            Type::List(element) => {
                matches!(
                    **element,
                    Type::String | Type::Bytes | Type::Wrapper(Scalar::String) | Type::Wrapper(Scalar::Bytes)
                )
            }
            _ => false,
        };
        Some(is_text.then(|| self.declared_size(&path).unwrap_or(Range::UNKNOWN)))
    }

    /// Where the elements of `list` are, by its path; `None` if its type has no parameters.
    fn list_element(&self, list: &Node<'e>) -> Option<Path<'e>> {
        match self.checked.ty(list.expr.id) {
            Type::List(_) if list.path.read(<[&str]>::is_empty) => Some(Path::default()),
            Type::List(_) => Some(list.path.copied_child("@items")),
            _ => None,
        }
    }

    fn node(&mut self, expr: &'e Expr) -> Node<'e> {
        Node { expr, path: self.path(expr), size: self.size(expr) }
    }

    fn size_of(&self, node: &Node<'e>) -> Range {
        node.size.unwrap_or(Range::UNKNOWN)
    }

    fn size_or_unknown(&mut self, expr: &'e Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    /// The size of what `expr` evaluates to. What a path says comes before what the type says: numbers in an object have
    /// the size 0 that they are declared with.
    fn size(&mut self, expr: &'e Expr) -> Option<Range> {
        if let Some(size) = get(&self.sizes, expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(Range::fixed(size));
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            set(&mut self.sizes, expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.ty(expr.id)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn entry(&self, expr: &Expr) -> Option<Entry> {
        if let Some(entry) = get(&self.entries, expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.entry,
            _ => None,
        }
    }

    fn path(&self, expr: &Expr) -> Path<'e> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        get(&self.paths, expr.id).cloned().unwrap_or_default()
    }

    /// What the declared type at the end of `path` says; the first step is a variable, whichever.
    fn declared_size(&self, path: &Path<'e>) -> Option<Range> {
        path.read(|steps| {
            let mut decl = self.root;
            for step in steps.get(1..)? {
                decl = match (*step, &decl.shape) {
                    ("@items" | "@values", _) => decl.element()?,
                    ("@keys", Shape::Map { key, .. }) => key,
                    ("@keys", _) => return None,
                    (name, _) => decl.field(name)?,
                };
            }
            Some(Range::new(0, decl.max_elements))
        })
    }

    fn local(&self, name: &str) -> Option<&Local<'e>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn pop_local(&mut self, name: &str) {
        if let Some(at) = self.locals.iter().rposition(|local| local.name == name) {
            self.locals.remove(at);
        }
    }

    fn push_accumulator(&mut self, fold: &'e Comprehension) {
        let (path, entry) = (self.path(&fold.accu_init), self.entry(&fold.accu_init));
        let size = self.size(&fold.accu_init);
        self.locals.push(Local { name: &fold.accu_var, path, size, entry });
    }

    fn push_key(&mut self, name: &'e str, range: &'e Expr) {
        let size = self.entry(range).map(|entry| entry.key);
        let step = if self.is_list(range) { "@indices" } else { "@keys" };
        let path = self.path(range).child(step);
        self.locals.push(Local { name, path, size, entry: None });
    }

    fn push_value(&mut self, name: &'e str, range: &'e Expr) {
        let size = self.entry(range).map(|entry| entry.value);
        let step = if self.is_list(range) { "@items" } else { "@values" };
        let path = self.path(range).child(step);
        self.locals.push(Local { name, path, size, entry: None });
    }

    fn is_list(&self, range: &Expr) -> bool {
        match self.entry(range) {
            Some(entry) => entry.of_list,
            None => matches!(self.checked.ty(range.id), Type::List(_)),
        }
    }
}

const ADDRESS: Range = Range::new(model::IP_BYTES_MIN, model::IP_BYTES_MAX);

fn get<T>(of: &[Option<T>], id: ExprId) -> Option<&T> {
    of.get(id.0 as usize).and_then(Option::as_ref)
}

fn set<T>(of: &mut Vec<Option<T>>, id: ExprId, value: T) {
    let at = id.0 as usize;
    if of.len() <= at {
        of.resize_with(at + 1, || None);
    }
    of[at] = Some(value);
}

/// What the result of indexing is to its container.
fn element_step(overload: &str) -> Option<&'static str> {
    match overload {
        "index_list" => Some("@items"),
        "index_map" => Some("@values"),
        _ => None,
    }
}

/// Whether a comprehension does nothing but to give a value a name.
fn is_bind(fold: &Comprehension) -> bool {
    matches!(&fold.iter_range.kind, ExprKind::List(list) if list.elements.is_empty())
        && fold.loop_condition.kind == ExprKind::Constant(Constant::Bool(false))
}

fn literal_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        ExprKind::Constant(Constant::String(text)) => text.chars().count() as u64,
        ExprKind::Constant(Constant::Bytes(bytes)) => bytes.len() as u64,
        ExprKind::Constant(_) => 1,
        ExprKind::List(list) => list.elements.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => true,
        Type::Wrapper(of) => !matches!(of, Scalar::String | Scalar::Bytes),
        Type::Opaque(_) => ty.optional_content().is_some_and(is_scalar),
        _ => false,
    }
}

fn int_literal(expr: &Expr) -> Option<i64> {
    match expr.kind {
        ExprKind::Constant(Constant::Int(number)) => Some(number),
        _ => None,
    }
}

/// The value of a literal, 0 if that is negative; `otherwise` for what is no literal.
fn unsigned_literal(expr: &Expr, otherwise: u64) -> u64 {
    int_literal(expr).map_or(otherwise, |number| u64::try_from(number).unwrap_or(0))
}

/// The size of the result of traversing `size`. The products wrap around, as they do in the reference.
fn traversed(size: Range, result: TraverseResult) -> Option<Range> {
    match result {
        TraverseResult::Unknown => None,
        TraverseResult::Same => Some(size),
        TraverseResult::Encoded => Some(Range::new(size.min, size.max.wrapping_mul(4))),
        TraverseResult::Decoded => Some(Range::new(size.min / 4, size.max)),
        TraverseResult::Quoted => Some(Range::new(size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2))),
    }
}

/// An empty text is not free: its expression may be dear.
fn match_regex(text: Range, regex: Range) -> Range {
    text.plus(Range::fixed(1)).scale(model::TRAVERSAL).times(regex.scale(model::REGEX))
}

fn compare(left: Range, right: Range) -> Range {
    let shorter_max = left.max.min(right.max);
    Range::new(shorter_max.min(1), shorter_max).scale(model::TRAVERSAL)
}

fn compare_addresses(parsed: Option<Range>) -> Range {
    let compare = ADDRESS.plus(ADDRESS).scale(model::TRAVERSAL);
    parsed.map_or(compare, |text| compare.plus(text.scale(model::TRAVERSAL)))
}

fn allocate_list(factor: f64, size: Range) -> Priced {
    let cost = size.scale(factor).plus(Range::fixed(model::CALL + model::MAKE_LIST));
    Priced::cost(cost).with_result(size)
}

/// The size of `text` with `what` replaced by `with`.
fn replaced(text: Range, what: Range, with: Range) -> Range {
    // How often, and how much of the text is left.
    let (count_max, kept_max) = if what.min == 0 {
        // The empty text stands before each character and at the end.
        (text.max.saturating_add(1), text.max)
    } else if with.max <= what.min {
        (0, text.max)
    } else {
        (divide(text.max, what.min), 0)
    };
    let (count_min, kept_min) = if what.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if what.max <= with.min {
        (0, text.min)
    } else {
        (divide(text.min, what.max), 0)
    };
    Range::new(count_min, count_max).times(with).plus(Range::new(kept_min, kept_max))
}

/// The quotient, rounded up. One that does not fit becomes half of the range, as Go converts it.
fn divide(size: u64, by: u64) -> u64 {
    let quotient = (size as f64 / by as f64).ceil();
    if quotient >= u64::MAX as f64 { 1 << 63 } else { quotient as u64 }
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
    fn a_path_may_be_overwritten_by_its_neighbour() {
        // The elements of `texts` are taken to be those of `short`, so their size is unknown.
        check("self.deep.all(d, d.list.all(i, i.texts.all(t, i.short == 'a' && t.contains('b'))))", 3, u64::MAX);
        check("self.deep.all(d, d.list.all(i, i.texts.all(t, t.contains('b') && i.short == 'a')))", 3, 17183);
    }
}
