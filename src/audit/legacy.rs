//! The line of an event in the legacy format of kube-apiserver's log,
//! `--audit-log-format=legacy`.
//!
//! Source: `EventString` of apiserver, release 1.36.

use std::borrow::Cow;

use super::{AuditEvent, AuditStage, cut};
use crate::value::go_quote;

impl AuditEvent {
    /// The line for one stage of the event, with its line break.
    pub(super) fn legacy_line(&self, stage: AuditStage) -> Vec<u8> {
        let user = Some(&self.user).filter(|user| !user.name.is_empty());
        let (user, groups) = user.map_or(("<none>", None), |user| (&user.name, Some(user.groups.as_slice())));
        let groups = groups.filter(|groups| !groups.is_empty()).map_or(Cow::Borrowed("<none>"), quoted);
        let (as_user, as_groups) = match &self.impersonated {
            Some(user) if user.groups.is_empty() => (user.name.as_str(), "<lookup>".into()),
            Some(user) => (user.name.as_str(), quoted(&user.groups)),
            None => ("<self>", "<lookup>".into()),
        };
        let namespace = self.object.as_ref().map(|object| object.namespace.as_str());
        let namespace = namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("<none>");
        let response = if stage == AuditStage::RequestReceived { "<deferred>".into() } else { self.code.to_string() };
        let ip = self.source_ips.first().map_or("<unknown>", String::as_str);
        let line = format!(
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} \
             uri={} response=\"{response}\"\n",
            self.received,
            go_quote(&self.id),
            go_quote(stage.as_str()),
            go_quote(ip),
            go_quote(&self.verb),
            go_quote(user),
            go_quote(&groups),
            go_quote(as_user),
            go_quote(&as_groups),
            go_quote(&cut(&self.user_agent)),
            go_quote(namespace),
            go_quote(&self.uri),
        );
        line.into_bytes()
    }
}

/// Quotes each text and joins them with commas; the caller quotes the result once more.
fn quoted(texts: &[String]) -> Cow<'static, str> {
    texts.iter().map(|text| go_quote(text)).collect::<Vec<_>>().join(",").into()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::ObjectReference;
    use super::*;
    use crate::auth::UserInfo;

    #[test]
    fn a_line_is_that_of_kube_apiserver() {
        let event = AuditEvent {
            id: "a-1".into(),
            uri: "/api/v1/namespaces/n/pods".into(),
            verb: "list".into(),
            user: UserInfo::authenticated("jane", vec!["ops".into()]),
            source_ips: vec!["10.0.0.1".into()],
            user_agent: "kubectl/v1".into(),
            object: Some(ObjectReference { namespace: "n".into(), ..ObjectReference::default() }),
            received: Timestamp::from_millisecond(1_500).expect("it is a time"),
            code: 200,
            ..AuditEvent::default()
        };
        let line = |event: &AuditEvent, stage| String::from_utf8(event.legacy_line(stage)).expect("it is text");
        let expected = concat!(
            r#"1970-01-01T00:00:01.5Z AUDIT: id="a-1" stage="ResponseComplete" ip="10.0.0.1" method="list" user="jane" "#,
            r#"groups="\"ops\",\"system:authenticated\"" as="<self>" asgroups="<lookup>" user-agent="kubectl/v1" "#,
            r#"namespace="n" uri="/api/v1/namespaces/n/pods" response="200""#,
            "\n"
        );
        assert_eq!(line(&event, AuditStage::ResponseComplete), expected);
        let impersonated = Some(UserInfo { name: "joe".into(), groups: vec!["dev".into()], ..UserInfo::default() });
        let event = AuditEvent { impersonated, ..AuditEvent::default() };
        let expected = concat!(
            r#"1970-01-01T00:00:00Z AUDIT: id="" stage="RequestReceived" ip="<unknown>" method="" user="<none>" "#,
            r#"groups="<none>" as="joe" asgroups="\"dev\"" user-agent="" namespace="<none>" uri="" "#,
            r#"response="<deferred>""#,
            "\n"
        );
        assert_eq!(line(&event, AuditStage::RequestReceived), expected);
    }
}
