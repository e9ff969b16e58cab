//! Which requests a fault is for.

use crate::value::{Map, Value};

use super::super::exchange::Exchange;
use super::super::path::Target;

/// What a request is about, as far as faults care. Texts that do not apply are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultSubject {
    /// Kubernetes' verb; for a path that is not a resource, the method in lower case.
    pub verb: String,
    pub group: String,
    /// Empty for a path that is not a resource.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The user that the request is made as.
    pub user: String,
    pub path: String,
    /// Whether any state will do (`resourceVersion=0`).
    pub takes_any_state: bool,
}

/// The requests that a fault is for: all the fields that are given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Empty for all; each verb once.
    pub verbs: Vec<&'static str>,
    pub group: Option<String>,
    /// The plural name.
    pub resource: Option<String>,
    /// The empty text stands for the object itself.
    pub subresource: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub user: Option<String>,
    /// A path, or a path prefix followed by `*`. Without one, only requests for resources match.
    pub path: Option<String>,
}

impl FaultSubject {
    /// What a request is about.
    pub fn of(exchange: &Exchange, target: &Target) -> Self {
        let (user, path) = (exchange.user.name.clone(), exchange.path.clone());
        let Target::Resource(of) = target else {
            return FaultSubject {
                verb: exchange.method.as_str().to_lowercase(),
                user,
                path,
                ..FaultSubject::default()
            };
        };
        let verb = exchange.verb(of);
        FaultSubject {
            verb: verb.as_str().to_owned(),
            group: of.group.clone(),
            resource: of.resource.clone(),
            subresource: of.subresource.clone(),
            namespace: of.namespace.clone(),
            name: exchange.object_name(of, verb).into_owned(),
            user,
            path,
            takes_any_state: exchange.query.first("resourceVersion") == Some("0"),
        }
    }
}

impl Match {
    /// Whether `subject` matches.
    pub fn fits(&self, subject: &FaultSubject) -> bool {
        let same = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        (self.verbs.is_empty() || self.verbs.contains(&&*subject.verb))
            && match &self.path {
                None => !subject.resource.is_empty(),
                Some(path) => match path.strip_suffix('*') {
                    Some(beginning) => subject.path.starts_with(beginning),
                    None => subject.path == *path,
                },
            }
            && same(&self.group, &subject.group)
            && same(&self.resource, &subject.resource)
            && same(&self.subresource, &subject.subresource)
            && same(&self.namespace, &subject.namespace)
            && same(&self.name, &subject.name)
            && same(&self.user, &subject.user)
    }

    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        if !self.verbs.is_empty() {
            let verbs = self.verbs.iter().map(|verb| Value::from(*verb));
            fields.insert("verbs", Value::Array(verbs.collect()));
        }
        let texts = [
            ("group", &self.group),
            ("resource", &self.resource),
            ("subresource", &self.subresource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("user", &self.user),
            ("path", &self.path),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.insert(name, Value::from(text.as_str()));
            }
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_given_must_fit() {
        let subject = FaultSubject {
            verb: "update".into(),
            group: "apps".into(),
            resource: "deployments".into(),
            namespace: "a".into(),
            name: "web".into(),
            user: "jane".into(),
            path: "/apis/apps/v1/namespaces/a/deployments/web".into(),
            ..FaultSubject::default()
        };
        let text = |text: &str| Some(text.to_owned());
        let check = |matching: Match, fits: bool| assert_eq!(matching.fits(&subject), fits, "{matching:?}");
        check(Match::default(), true);
        check(Match { verbs: vec!["patch", "update"], ..Match::default() }, true);
        check(Match { verbs: vec!["patch"], ..Match::default() }, false);
        check(Match { group: text("apps"), resource: text("deployments"), ..Match::default() }, true);
        check(Match { group: text(""), resource: text("deployments"), ..Match::default() }, false);
        check(Match { subresource: text(""), ..Match::default() }, true);
        check(Match { subresource: text("status"), ..Match::default() }, false);
        check(Match { namespace: text("a"), name: text("web"), user: text("jane"), ..Match::default() }, true);
        check(Match { user: text("joe"), ..Match::default() }, false);
        check(Match { path: text("/apis/apps/*"), ..Match::default() }, true);
        check(Match { path: text("/apis/apps"), ..Match::default() }, false);
    }

    #[test]
    fn paths_that_are_no_resource_are_meant_by_path_alone() {
        let subject = FaultSubject { verb: "get".into(), path: "/apis".into(), ..FaultSubject::default() };
        assert!(!Match::default().fits(&subject));
        assert!(Match { path: Some("/api*".into()), ..Match::default() }.fits(&subject));
    }
}
