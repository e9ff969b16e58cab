//! The environment of an expression: variables, functions, macros.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

use super::ast::{Ast, SourceInfo};
use super::checked::CheckedExpr;
use super::error::Issues;
use super::function::Function;
pub use super::language::{Env, Library, Variable};
use super::types::Type;
use super::{checker, library, macros, mutation, parser, wellknown};
use crate::meta::minor::Minor;
use crate::work;

/// Which functions an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expressions {
    /// Those that a server one minor version older would accept: in 1.37, those of 1.36.
    New,
    /// Those of any version: expressions that are stored already.
    Stored,
}

impl Expressions {
    /// The version of Kubernetes whose functions these are on a server of `minor`.
    pub fn version(self, minor: Minor) -> Minor {
        match self {
            Expressions::New => minor.previous(),
            Expressions::Stored => minor,
        }
    }
}

/// The libraries of each minor for new and for stored expressions, created on first use.
static KUBERNETES: [[OnceLock<Arc<Library>>; 2]; Minor::COUNT] =
    [const { [const { OnceLock::new() }; 2] }; Minor::COUNT];

/// The version of Kubernetes since which names in backquotes are allowed; the versions before tokenize and refuse them.
const QUOTED_NAMES_ALLOWED_SINCE: Minor = Minor::of(37);
/// The version that added checks of literals.
const LITERAL_VALIDATORS_SINCE: Minor = Minor::of(29);

static STANDARD: LazyLock<Arc<Library>> = LazyLock::new(|| library(Library::standard));

/// Creates a library, while others may be waiting for it.
fn library(make: impl FnOnce() -> Library) -> Arc<Library> {
    Arc::new(work::essential(make))
}

impl Library {
    /// Source: `baseOpts` in `k8s.io/apiserver/pkg/cel/environment/base.go`, releases 1.29 to 1.37.
    fn kubernetes(minor: Minor, expressions: Expressions) -> Library {
        let version = expressions.version(minor);
        let since = |first| version >= first;
        Library {
            functions: by_name(library::kubernetes(minor, version)),
            homogeneous_literals: true,
            quoted_names: minor >= QUOTED_NAMES_ALLOWED_SINCE,
            optionals: since(macros::OPTIONALS_SINCE),
            two_variable_comprehensions: since(macros::TWO_VARIABLES_SINCE),
            sort_by: since(macros::SORT_BY_SINCE),
            literal_validators: since(LITERAL_VALIDATORS_SINCE),
            mutations: false,
            minor,
        }
    }

    fn standard() -> Library {
        Library {
            functions: by_name(library::standard()),
            homogeneous_literals: false,
            quoted_names: true,
            optionals: false,
            two_variable_comprehensions: false,
            sort_by: false,
            literal_validators: false,
            mutations: false,
            minor: Minor::NEWEST,
        }
    }
}

fn by_name(declarations: Vec<Function>) -> HashMap<&'static str, Arc<Function>> {
    let mut functions = HashMap::new();
    declarations.into_iter().for_each(|declaration| declare(&mut functions, declaration));
    functions
}

/// Adds a declaration. If the name exists, its overloads are appended.
fn declare(functions: &mut HashMap<&'static str, Arc<Function>>, declaration: Function) {
    match functions.get_mut(declaration.name) {
        Some(function) => Arc::make_mut(function).overloads.extend(declaration.overloads),
        None => _ = functions.insert(declaration.name, Arc::new(declaration)),
    }
}

impl Env {
    /// The language of CustomResourceDefinitions, without variables, in the newest version of Kubernetes.
    pub fn kubernetes(expressions: Expressions) -> Env {
        Env::of(Minor::NEWEST, expressions)
    }

    /// The same in version `minor` of Kubernetes.
    ///
    /// ```
    /// use kubeskiff_engine::cel::env::{Env, Expressions};
    /// use kubeskiff_engine::meta::minor::Minor;
    ///
    /// let is_known = |minor| Env::of(Minor::of(minor), Expressions::Stored).compile("ip('::1').family()").is_ok();
    /// assert!(!is_known(29) && is_known(30));
    /// ```
    pub fn of(minor: Minor, expressions: Expressions) -> Env {
        let known = &KUBERNETES[minor.index()][usize::from(expressions == Expressions::Stored)];
        let made = known.get_or_init(|| library(|| Library::kubernetes(minor, expressions)));
        Env { library: Arc::clone(made), variables: Vec::new() }
    }

    /// The language as the CEL standard has it, without variables and extensions.
    pub fn standard() -> Env {
        Env { library: STANDARD.clone(), variables: Vec::new() }
    }

    /// The same with one more variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, ty: Type) -> Env {
        self.variables.push(Variable { name: name.into(), ty });
        self
    }

    /// The same with one more function, or with more overloads of one. Each defines the cost and the effect of a call.
    ///
    /// ```
    /// use kubeskiff_engine::cel::cost::Cost;
    /// use kubeskiff_engine::cel::env::Env;
    /// use kubeskiff_engine::cel::eval::{EvalError, Program, Value};
    /// use kubeskiff_engine::cel::function::{Function, Overload};
    /// use kubeskiff_engine::cel::types::Type;
    ///
    /// let params = [Type::String, Type::Int];
    /// let overload = Overload::member("string_shorten_int", params, Type::String, Cost::One, |_, arguments| {
    ///     let [Value::String(text), Value::Int(length)] = arguments else { return Err(EvalError::no_such_overload()) };
    ///     Ok(Value::string(text.chars().take(*length as usize).collect::<String>()))
    /// });
    /// let env = Env::standard().with_function(Function::new("shorten", [overload]));
    /// let expression = env.compile("'abc'.shorten(2)")?;
    /// assert_eq!(*expression.result_type(), Type::String);
    /// let evaluation = Program::new(&expression, &env)?.evaluate(&[], 1_000).result.map(Value::into_static);
    /// assert_eq!(evaluation?.is(&Value::borrowed("ab")), Ok(true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_function(mut self, function: Function) -> Env {
        declare(&mut Arc::make_mut(&mut self.library).functions, function);
        self
    }

    /// The same with the types of mutations and their functions.
    ///
    /// ```
    /// use kubeskiff_engine::cel::env::{Env, Expressions};
    ///
    /// let env = Env::kubernetes(Expressions::New).with_mutations();
    /// let patch = "[JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b')}]";
    /// assert_eq!(env.compile(patch)?.result_type().to_string(), "list(JSONPatch)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_mutations(mut self) -> Env {
        let library = Arc::make_mut(&mut self.library);
        library.mutations = true;
        library::json_patch::functions().into_iter().for_each(|function| declare(&mut library.functions, function));
        self
    }

    /// The version of Kubernetes of the server.
    pub fn minor(&self) -> Minor {
        self.library.minor
    }

    /// The type of a variable, of a constant, or of the name of a type.
    pub fn global(&self, name: &str) -> Option<Type> {
        if let Some(variable) = self.variables.iter().find(|variable| *variable.name == *name) {
            return Some(variable.ty.clone());
        }
        match wellknown::constant(name) {
            Some(constant) => Some(constant.ty()),
            None => self.declared_type(name).map(Type::type_of),
        }
    }

    /// The type with this `name` for the checker. Kubernetes declares `duration` and `timestamp` there, which are still
    /// undefined when the expression runs.
    pub fn declared_type(&self, name: &str) -> Option<Type> {
        if let Some(ty) = self.mutation(name) {
            return Some(ty);
        }
        match name {
            "duration" | "timestamp" if self.library.function("quantity").is_some() => wellknown::message(name),
            _ => self.type_named(name),
        }
    }

    /// The type called `name`, if it is one of mutations and these are enabled.
    pub fn mutation(&self, name: &str) -> Option<Type> {
        mutation::named(name).filter(|_| self.library.mutations)
    }

    /// The type of a field of messages of the type `message`, whose name is `name`.
    pub fn message_field(&self, message: &Type, name: &str, field: &str) -> Option<Type> {
        match self.mutation(name) {
            Some(_) => Some(mutation::field(name, field)),
            None => wellknown::field(message, field),
        }
    }

    /// The type with this name.
    pub fn type_named(&self, name: &str) -> Option<Type> {
        match name {
            Type::OPTIONAL if self.library.optionals && self.minor() >= Type::OPTIONAL_SINCE => {
                let of = (self.minor() >= Type::OPTIONAL_OF_DYN_SINCE).then_some(Type::Dyn);
                Some(Type::opaque(name, of.into_iter().collect()))
            }
            "net.IP" if self.library.function("ip").is_some() => Some(Type::opaque(name, Vec::new())),
            "net.CIDR" if self.library.function("cidr").is_some() => Some(Type::opaque(name, Vec::new())),
            _ => Type::named(name),
        }
    }

    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// All syntax errors, with their positions.
    pub fn parse(&self, text: &str) -> Result<Ast, Issues> {
        parser::parse(SourceInfo::new(text), &self.library)
    }

    /// Parses and checks `text`.
    ///
    /// # Errors
    /// All syntax errors; if there are none, all errors of types and names.
    pub fn compile(&self, text: &str) -> Result<CheckedExpr, Issues> {
        checker::check(self.parse(text)?, self)
    }

    /// Parses `text` and resolves its names, but leaves all types to the evaluation, where values decide which
    /// overloads are called. Values and errors are cel-go's for such an expression; so are the costs, except for some
    /// functions of the libraries, which cel-go prices by overload.
    ///
    /// ```
    /// use kubeskiff_engine::cel::env::Env;
    /// use kubeskiff_engine::cel::eval::Program;
    ///
    /// let env = Env::standard();
    /// assert!(env.compile("[1, 'a'][0] < 2 || 'a' < 2").is_err());
    /// let expression = env.resolve("[1, 'a'][0] < 2 || 'a' < 2")?;
    /// let program = Program::new(&expression, &env)?;
    /// assert_eq!(program.evaluate(&[], 1_000).result?.as_bool(), Some(true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// All syntax errors; there are no other errors before the evaluation.
    pub fn resolve(&self, text: &str) -> Result<CheckedExpr, Issues> {
        Ok(checker::resolve(self.parse(text)?, self))
    }
}
