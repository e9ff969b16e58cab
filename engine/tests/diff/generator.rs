//! Schemas, changes of them and values for them, the same for the same seed.

use serde_json::{Map, Value, json};

const NAMES: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 5] = ["", "a", "ab", "abcd", "x-1"];
const PATTERNS: [&str; 3] = ["^[a-c]*$", "^a", "^.{0,3}$"];
const RULES: [&str; 6] = [
    "!has(self.a)",
    "has(self.a) || has(self.b)",
    "!has(self.a) || self.a == 'a'",
    "!has(self.a) || self.a / 2 < 2",
    "!has(self.b) || size(self.b) < 2",
    "self == self",
];

/// Makes schemas, changes and values.
pub struct Generator(u64);

impl Generator {
    pub fn new(seed: u64) -> Self {
        Generator(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Below `bound`, by xorshift64*.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32).expect("32 bits fit") % bound
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A schema of an object.
    pub fn object_schema(&mut self, depth: usize) -> Value {
        let mut schema = json!({"type": "object"});
        let mut properties = Map::new();
        for name in NAMES {
            if !self.one_in(3) {
                properties.insert(name.to_owned(), self.schema(depth));
            }
        }
        schema["properties"] = Value::Object(properties);
        if self.one_in(4) {
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        for _ in 0..self.below(3) {
            self.constrain(&mut schema);
        }
        schema
    }

    fn schema(&mut self, depth: usize) -> Value {
        let depth = depth.saturating_sub(1);
        let mut schema = match self.below(if depth == 0 { 6 } else { 10 }) {
            0 | 1 => json!({"type": "string"}),
            2 => json!({"type": "integer"}),
            3 => json!({"type": "number"}),
            4 => json!({"x-kubernetes-int-or-string": true}),
            5 => json!({"x-kubernetes-preserve-unknown-fields": true}),
            6 => self.object_schema(depth),
            7 => json!({"type": "array", "items": self.schema(depth)}),
            8 => json!({"type": "object", "additionalProperties": self.schema(depth)}),
            _ => json!({"type": "object", "additionalProperties": true}),
        };
        if self.one_in(3) {
            self.constrain(&mut schema);
        }
        schema
    }

    /// Asks for more, or says more.
    fn constrain(&mut self, schema: &mut Value) {
        if self.one_in(6) {
            schema["nullable"] = json!(true);
            return;
        }
        match schema["type"].as_str() {
            Some("string") => match self.below(6) {
                0 => schema["maxLength"] = json!(self.below(4)),
                1 => schema["minLength"] = json!(self.below(3)),
                2 => schema["pattern"] = json!(self.pick(&PATTERNS)),
                3 => schema["enum"] = json!([self.pick(&TEXTS), "a", "q"]),
                4 => schema["default"] = json!(self.pick(&TEXTS)),
                _ => schema["not"] = json!({"enum": [self.pick(&TEXTS)]}),
            },
            Some("integer" | "number") => match self.below(5) {
                0 => schema["maximum"] = json!(self.below(5)),
                1 => schema["minimum"] = json!(self.below(5)),
                2 => schema["multipleOf"] = json!(1 + self.below(3)),
                3 => schema["exclusiveMaximum"] = json!(true),
                _ => schema["default"] = json!(self.below(5)),
            },
            Some("array") => match self.below(3) {
                0 => schema["maxItems"] = json!(self.below(3)),
                1 => schema["minItems"] = json!(self.below(3)),
                _ => schema["x-kubernetes-list-type"] = json!("set"),
            },
            Some("object") => match self.below(7) {
                0 => schema["maxProperties"] = json!(self.below(4)),
                1 => schema["minProperties"] = json!(self.below(3)),
                2 => schema["required"] = json!([self.pick(&NAMES)]),
                3 => schema["anyOf"] = json!([{"required": ["a"]}, {"required": [self.pick(&NAMES)]}]),
                4 => schema["x-kubernetes-validations"] = json!([{"rule": self.pick(&RULES)}]),
                5 => schema["default"] = json!({}),
                _ => {
                    schema["x-kubernetes-embedded-resource"] = json!(true);
                    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
            },
            _ => schema["nullable"] = json!(true),
        }
    }

    /// Changes a node of `schema` at random.
    pub fn change(&mut self, schema: &mut Value) {
        let below: Vec<String> = ["items", "additionalProperties"]
            .into_iter()
            .filter(|name| schema[*name].is_object())
            .map(|name| format!("/{name}"))
            .chain(
                schema["properties"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| format!("/properties/{}", name.replace('~', "~0").replace('/', "~1"))),
            )
            .collect();
        if !below.is_empty() && !self.one_in(4) {
            let at = self.below(below.len());
            return self.change(schema.pointer_mut(&below[at]).expect("it was found there"));
        }
        self.change_node(schema);
    }

    fn change_node(&mut self, schema: &mut Value) {
        let fields = schema.as_object_mut().expect("a schema is an object");
        let name = self.pick(&NAMES);
        match self.below(9) {
            0 => self.constrain(schema),
            1 => {
                let loose: Vec<String> =
                    fields.keys().filter(|name| !["type", "items"].contains(&name.as_str())).cloned().collect();
                if !loose.is_empty() {
                    fields.remove(&loose[self.below(loose.len())]);
                }
            }
            2 => *schema = self.schema(2),
            3 if fields.contains_key("properties") => {
                _ = fields["properties"].as_object_mut().map(|all| all.remove(name))
            }
            4 if fields.contains_key("properties") => fields["properties"][name] = self.schema(2),
            5 => {
                let keeps = fields.remove("x-kubernetes-preserve-unknown-fields").is_some();
                if !keeps {
                    fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
                }
            }
            6 if fields.contains_key("additionalProperties") => {
                fields.insert("additionalProperties".to_owned(), self.schema(1));
            }
            7 if fields.contains_key("additionalProperties") => {
                *schema = json!({"type": "object", "additionalProperties": true});
            }
            8 => *schema = json!({"x-kubernetes-preserve-unknown-fields": true}),
            _ => self.constrain(schema),
        }
    }

    /// A value that is near to one that `schema` takes.
    pub fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if schema["nullable"] == true && self.one_in(4) {
            return Value::Null;
        }
        if let Some(listed) = schema["enum"].as_array() {
            return listed[self.below(listed.len())].clone();
        }
        match schema["type"].as_str() {
            Some("string") => json!(self.pick(&TEXTS)),
            Some("integer") => json!(self.below(6)),
            Some("number") => self.pick(&[json!(1), json!(2.5), json!(4)].each_ref()).clone(),
            Some("boolean") => json!(self.one_in(2)),
            Some("array") => {
                let items = schema["items"].clone();
                (0..self.below(3)).map(|_| self.value(&items, depth.saturating_sub(1))).collect()
            }
            Some("object") => self.object(schema, depth),
            _ if schema["x-kubernetes-int-or-string"] == true => self.pick(&[json!("ab"), json!(3)].each_ref()).clone(),
            _ => self.any(depth),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            if schema["required"].as_array().is_some_and(|all| all.contains(&json!(name))) || !self.one_in(3) {
                object.insert(name.clone(), self.value(property, depth.saturating_sub(1)));
            }
        }
        let others = &schema["additionalProperties"];
        for name in ["a", "k"] {
            if properties.is_some_and(|properties| properties.contains_key(name)) || self.one_in(2) {
                continue;
            }
            if others.is_object() {
                object.insert(name.to_owned(), self.value(others, depth.saturating_sub(1)));
            } else if others == true || schema["x-kubernetes-preserve-unknown-fields"] == true {
                object.insert(name.to_owned(), self.any(depth.saturating_sub(1)));
            }
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            for (name, value) in
                [("apiVersion", json!("v1")), ("kind", json!("Pod")), ("metadata", json!({"name": "p"}))]
            {
                object.insert(name.to_owned(), value);
            }
        }
        Value::Object(object)
    }

    fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => json!(self.pick(&TEXTS)),
            1 => json!(self.below(4)),
            2 => json!(null),
            3 => json!([self.any(depth - 1)]),
            _ => json!({"a": self.any(depth - 1), "k": self.any(depth - 1)}),
        }
    }
}
