//! Templates of stages: the part of Go's `text/template` that kwok's stages use.
//!
//! Input: a text with actions in `{{ }}`, and an object. Output: the resulting text. Variables, `if`, `range`, `with`,
//! pipelines and the functions in `nodes::FUNCTIONS` are supported; everything else is refused when the text is parsed.
//! The size of the output and the number of steps are limited.

mod nodes;
mod parse;
mod run;

use self::nodes::TemplateNode;
use crate::value::Value;

pub use self::nodes::TemplateError;
pub use self::run::TemplateContext;

/// A template, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template(Vec<TemplateNode>);

impl Template {
    /// Errors: the part of the text that can't be parsed.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::parse(text).map(Template)
    }

    /// The text for an object. Errors: a value that an action can't use, or an exceeded limit.
    pub fn render(&self, object: &Value, context: &TemplateContext) -> Result<String, TemplateError> {
        run::render(&self.0, object, context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::addresses::Addresses;
    use super::*;
    use crate::value::yaml;

    fn render(template: &str) -> Result<String, TemplateError> {
        let pod = "metadata: {name: p, annotations: {a.b/c: x}}\nspec: {nodeName: host, hostNetwork: true, containers: [{name: c, \
                   image: i}, {name: d}]}";
        let pod = yaml::decode(pod.as_bytes()).expect("YAML");
        let addresses = Addresses { host: Ipv4Addr::new(172, 31, 0, 1), pod: Ipv4Addr::new(10, 64, 0, 2) };
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let context = TemplateContext { now, addresses: Some(addresses) };
        Template::parse(template)?.render(&pod, &context)
    }

    fn check(template: &str, expected: &str) {
        assert_eq!(render(template), Ok(expected.to_owned()), "{template}");
    }

    #[test]
    fn actions_print_what_they_stand_for() {
        check("a {{ .metadata.name }} b", "a p b");
        check("{{ .metadata.name | Quote }} {{ Quote .missing }} {{ .missing }}", "\"p\" \"\" <no value>");
        check("{{ $now := Now }}{{ $now | Quote }}", "\"2026-01-01T00:00:00Z\"");
        check("{{ index .metadata.annotations \"a.b/c\" }} {{ (index .spec.containers 0).name }}", "x c");
        check("{{ or .missing ( index .metadata.annotations \"none\" ) \"d\" }}", "d");
        check("{{ NodeIPWith .spec.nodeName }} {{ PodIPWith .spec.nodeName false }}", "172.31.0.1 10.64.0.2");
        check("{{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) }}", "172.31.0.1");
        check("a {{- /* nothing */ -}} b{{- 1 -}} c", "ab1c");
        check("a:{{ YAML .metadata.annotations 1 }}", "a:\n  a.b/c: x\n  ");
        check("{{ printf \"%s-%v: 100%% of %d\" .metadata.name true 7 }}", "p-true: 100% of 7");
        check("{{ YAML .spec.hostNetwork }}", "true\n");
        check(
            "{{ range NodeConditions }}{{ .type }}={{ .status }} {{ end }}{{ with NodePort }}x{{ end }}",
            "MemoryPressure=False DiskPressure=False PIDPressure=False Ready=True ",
        );
    }

    #[test]
    fn blocks_choose_and_repeat() {
        check("{{ range .spec.containers }}[{{ .name }}]{{ end }}", "[c][d]");
        check("{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ end }}", "0c1d");
        check("{{ range .spec.none }}x{{ else }}none{{ end }}", "none");
        check("{{ if .spec.none }}a{{ else if eq .spec.nodeName \"host\" }}b{{ else }}c{{ end }}", "b");
        check("{{ with NodeIPsWith .spec.nodeName }}{{ index . 0 }}{{ end }}", "172.31.0.1");
        check("{{ with .none }}a{{ else }}{{ .metadata.name }}{{ end }}", "p");
        check("{{ $x := 1 }}{{ range .spec.containers }}{{ $x = 2 }}{{ end }}{{ $x }}", "2");
        check("{{ if and (not .none) (ne .metadata.name \"q\") }}{{ $.metadata.name }}{{ end }}", "p");
    }

    #[test]
    fn what_is_not_understood_is_told() {
        for (template, why) in [
            ("{{ .a", "the template has {{ without }}"),
            ("{{ if .a }}", "the template has {{ if }} without an end"),
            ("{{ end }}", "the template has {{ end }} without a beginning"),
            ("{{ .a .b }}", "the action `.a .b` of the template is not understood"),
            ("{{ $x }}", "the template has no variable $x"),
            ("{{ printf \"%x\" 1 }}", "of the verbs of printf, %s, %v and %d are understood, and not `%x`"),
            ("{{ range .metadata.name }}{{ end }}", "a range can't go over p"),
        ] {
            assert_eq!(render(template).expect_err(template).to_string(), why);
        }
        let unknown = render("{{ env \"HOME\" }}").expect_err("it is not known").to_string();
        assert!(unknown.ends_with("and not `env`"), "{unknown}");
        assert!(Template::parse(&"{{ if .a }}".repeat(100)).is_err());
    }

    #[test]
    fn what_is_made_is_bounded() {
        let nested = "{{ range $.spec.containers }}".repeat(40) + &"{{ end }}".repeat(40);
        assert_eq!(render(&nested), Err(TemplateError::Bound));
        // What is kept in a variable grows, too.
        for make in ["printf \"%s%s\" $x $x", "dict \"a\" $x \"b\" $x", "Quote $x", "YAML (dict \"a\" $x \"b\" $x)"] {
            let thirty_two = "{{ range $.spec.containers }}".repeat(5);
            let growing = format!("{{{{ $x := \"\\\"\" }}}}{thirty_two}{{{{ $x = {make} }}}}{}", "{{ end }}".repeat(5));
            assert_eq!(render(&growing), Err(TemplateError::Bound), "{make}");
        }
    }
}
