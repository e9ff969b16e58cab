//! Rules and objects of one schema, the same for the same seed.

use kubeskiff::cel::declared::DeclType;
use kubeskiff::schema::declare::declare;
use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{convert, json_schema};
use kubeskiff::value::{Value, json};

/// Fields of all types but those that are unknown before an object is there.
const PROPERTIES: &str = r#"
    "text":{"type":"string","maxLength":10},
    "other":{"type":"string","maxLength":10},
    "number":{"type":"integer"},
    "count":{"type":"integer"},
    "flag":{"type":"boolean"},
    "texts":{"type":"array","maxItems":4,"items":{"type":"string","maxLength":6}},
    "numbers":{"type":"array","maxItems":4,"items":{"type":"integer"}},
    "entries":{"type":"array","maxItems":3,"items":{"type":"object","required":["name"],"properties":{
        "name":{"type":"string","maxLength":6},"port":{"type":"integer"}}}},
    "labels":{"type":"object","maxProperties":3,"additionalProperties":{"type":"string","maxLength":6}}"#;

/// The schema with one rule, and its declared type.
pub fn schema(rule: &str) -> (Structural, DeclType) {
    let rule = json::encode_to_string(&Value::from(rule));
    let text =
        format!(r#"{{"type":"object","properties":{{{PROPERTIES}}},"x-kubernetes-validations":[{{"rule":{rule}}}]}}"#);
    let schema = json::decode(text.as_bytes()).expect("the schema is JSON");
    let schema = json_schema::decode(&schema).expect("the schema decodes").0;
    let schema = convert::to_structural(&schema).expect("the schema is structural");
    let decl = declare(&schema, false).expect("an object is declared");
    (schema, decl)
}

/// What an expression comes to.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    Text,
    Entry,
}

/// Makes rules and objects.
pub struct Generator {
    state: u64,
    /// Variables of the macros around.
    scope: Vec<(String, Kind)>,
    /// Whether the rule has something that may cost more than its estimate: integers that are compared for equality, keys
    /// of maps,
    /// and items of lists that the rule makes.
    pub may_exceed: bool,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Generator { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, scope: Vec::new(), may_exceed: false }
    }

    /// Below `bound`, by xorshift64*.
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % bound
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[usize::try_from(self.below(from.len() as u64)).expect("it is below a length")]
    }

    /// An object that fits the schema, and perhaps has not all fields.
    pub fn object(&mut self) -> String {
        let mut fields = Vec::new();
        for (name, kind) in [
            ("text", 't'),
            ("other", 't'),
            ("number", 'n'),
            ("count", 'n'),
            ("flag", 'b'),
            ("texts", 'T'),
            ("numbers", 'N'),
            ("entries", 'E'),
            ("labels", 'L'),
        ] {
            if self.below(20) > 0 {
                let value = self.value(kind);
                fields.push(format!(r#""{name}":{value}"#));
            }
        }
        format!("{{{}}}", fields.join(","))
    }

    fn value(&mut self, kind: char) -> String {
        match kind {
            't' => self.pick(&[r#""""#, r#""a""#, r#""abc""#, r#""äöü""#, r#""b c""#, r#""日本""#]).to_owned(),
            'n' => self.pick(&["0", "1", "-1", "3", "7", "9223372036854775807", "-9223372036854775808"]).to_owned(),
            'b' => self.pick(&["true", "false"]).to_owned(),
            'T' => self.values('t', 5),
            'N' => self.values('n', 5),
            'E' => self.values('e', 4),
            'e' => {
                let (name, port) = (self.value('t'), self.value('n'));
                if self.below(3) == 0 {
                    format!(r#"{{"name":{name}}}"#)
                } else {
                    format!(r#"{{"name":{name},"port":{port}}}"#)
                }
            }
            _ => {
                let names = ["a", "abc", "x y"];
                let count = usize::try_from(self.below(4)).expect("it is small");
                let entries: Vec<String> =
                    names.iter().take(count).map(|name| format!(r#""{name}":{}"#, self.value('t'))).collect();
                format!("{{{}}}", entries.join(","))
            }
        }
    }

    fn values(&mut self, kind: char, bound: u64) -> String {
        let values: Vec<String> = (0..self.below(bound)).map(|_| self.value(kind)).collect();
        format!("[{}]", values.join(","))
    }

    /// An expression that is true or false.
    pub fn rule(&mut self) -> String {
        self.bool(4)
    }

    fn bool(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.pick(&["true", "false", "self.flag", "has(self.text)", "has(self.number)"]).to_owned();
        }
        let depth = depth - 1;
        match self.below(14) {
            0 => format!("({} && {})", self.bool(depth), self.bool(depth)),
            1 => format!("({} || {})", self.bool(depth), self.bool(depth)),
            2 => format!("!{}", self.bool(depth)),
            3 => format!("({} ? {} : {})", self.bool(depth), self.bool(depth), self.bool(depth)),
            4 => {
                let operator = self.pick(&["<", "<=", ">", ">="]);
                format!("({} {operator} {})", self.int(depth), self.int(depth))
            }
            5 => {
                self.may_exceed = true;
                let operator = self.pick(&["==", "!="]);
                format!("({} {operator} {})", self.int(depth), self.int(depth))
            }
            6 => {
                let operator = self.pick(&["==", "!=", "<", ">="]);
                format!("({} {operator} {})", self.text(depth), self.text(depth))
            }
            7 => {
                let function = self.pick(&["contains", "startsWith", "endsWith"]);
                format!("{}.{function}({})", self.text(depth), self.text(depth))
            }
            8 => format!("({} in {})", self.text(depth), self.texts(depth)),
            9 => {
                self.may_exceed = true;
                format!("({} in {})", self.int(depth), self.ints(depth))
            }
            10 => {
                let list = self.texts(depth);
                self.quantified(&list, Kind::Text, depth)
            }
            11 => {
                let list = self.ints(depth);
                self.quantified(&list, Kind::Int, depth)
            }
            12 => self.quantified("self.entries", Kind::Entry, depth),
            _ => {
                self.may_exceed = true;
                self.quantified("self.labels", Kind::Text, depth)
            }
        }
    }

    fn quantified(&mut self, range: &str, kind: Kind, depth: u32) -> String {
        let function = self.pick(&["all", "exists", "exists_one"]);
        let (name, body) = self.within(kind, |generator| generator.bool(depth));
        format!("{range}.{function}({name}, {body})")
    }

    fn within(&mut self, kind: Kind, body: impl FnOnce(&mut Self) -> String) -> (String, String) {
        let name = format!("v{}", self.scope.len());
        self.scope.push((name.clone(), kind));
        let body = body(self);
        self.scope.pop();
        (name, body)
    }

    /// A variable around of the kind `kind`, or nothing now and then.
    fn variable(&mut self, kind: Kind) -> Option<String> {
        let at = self.below(self.scope.len() as u64 + 1);
        let (name, found) = self.scope.get(usize::try_from(at).ok()?)?;
        match (*found, kind) {
            (found, kind) if found == kind => Some(name.clone()),
            (Kind::Entry, Kind::Text) => Some(format!("{name}.name")),
            (Kind::Entry, Kind::Int) => Some(format!("{name}.port")),
            _ => None,
        }
    }

    fn int(&mut self, depth: u32) -> String {
        if let Some(variable) = self.variable(Kind::Int) {
            return variable;
        }
        if depth == 0 {
            return self.pick(&["0", "1", "2", "7", "self.number", "self.count"]).to_owned();
        }
        let depth = depth - 1;
        match self.below(6) {
            0 | 1 => {
                let operator = self.pick(&["+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.int(depth), self.int(depth))
            }
            2 => format!("size({})", self.text(depth)),
            3 => format!("{}.size()", self.texts(depth)),
            4 => format!("({} ? {} : {})", self.bool(depth), self.int(depth), self.int(depth)),
            _ => format!("{}[{}]", self.ints(depth), self.pick(&["0", "0", "1"])),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if let Some(variable) = self.variable(Kind::Text) {
            return variable;
        }
        if depth == 0 {
            return self.pick(&["''", "'a'", "'abc'", "'ö'", "self.text", "self.other"]).to_owned();
        }
        let depth = depth - 1;
        match self.below(4) {
            0 => format!("({} + {})", self.text(depth), self.text(depth)),
            1 => format!("{}[{}]", self.texts(depth), self.pick(&["0", "0", "1"])),
            2 => format!("({} ? {} : {})", self.bool(depth), self.text(depth), self.text(depth)),
            _ => format!("self.labels[{}]", self.pick(&["'a'", "'a'", "'abc'"])),
        }
    }

    fn texts(&mut self, depth: u32) -> String {
        if depth == 0 {
            return "self.texts".to_owned();
        }
        let depth = depth - 1;
        match self.below(4) {
            0 => {
                self.may_exceed = true;
                format!("[{}, {}]", self.text(depth), self.text(depth))
            }
            1 => {
                let list = self.texts(depth);
                let (name, body) = self.within(Kind::Text, |generator| generator.text(depth));
                format!("{list}.map({name}, {body})")
            }
            2 => {
                let list = self.texts(depth);
                let (name, body) = self.within(Kind::Text, |generator| generator.bool(depth));
                format!("{list}.filter({name}, {body})")
            }
            _ => "self.texts".to_owned(),
        }
    }

    fn ints(&mut self, depth: u32) -> String {
        if depth == 0 {
            return "self.numbers".to_owned();
        }
        let depth = depth - 1;
        match self.below(3) {
            0 => {
                self.may_exceed = true;
                format!("[{}, {}]", self.int(depth), self.int(depth))
            }
            1 => {
                let list = self.texts(depth);
                let (name, body) = self.within(Kind::Text, |generator| generator.int(depth));
                format!("{list}.map({name}, {body})")
            }
            _ => "self.numbers".to_owned(),
        }
    }
}
