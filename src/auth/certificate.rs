//! The user that a client certificate identifies.

use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::UserInfo;

/// The attribute of the subject that holds the user's uid.
const UID_ATTRIBUTE: &str = "1.3.6.1.4.1.57683.2";

/// Returns the user with the common name as name and the organizations as groups; `None` for a
/// certificate without a common name.
///
/// The caller has verified that `der` was signed by the CA and that the client holds its key.
/// Source: Kubernetes documentation, "X.509 client certificates".
pub fn user_of_certificate(der: &[u8]) -> Option<UserInfo> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().last()?.as_str().ok().filter(|name| !name.is_empty())?;
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned).collect();
    let mut user = UserInfo::authenticated(name, groups);
    let id = format!("X509SHA256={}", hex(&Sha256::digest(der)));
    user.extra.insert(UserInfo::CREDENTIAL_ID.to_owned(), vec![id]);
    let mut attributes = subject.iter_attributes();
    if let Some(uid) = attributes.find(|attribute| attribute.attr_type().to_id_string() == UID_ATTRIBUTE) {
        user.uid = uid.as_str().unwrap_or_default().to_owned();
    }
    Some(user)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(attributes: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (attribute, text) in attributes {
            params.distinguished_name.push(attribute.clone(), *text);
        }
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        params.self_signed(&key).expect("the parameters are complete").der().to_vec()
    }

    #[test]
    fn the_common_name_is_the_user_and_organisations_are_groups() {
        let der = certificate(&[(DnType::CommonName, "jane"), (DnType::OrganizationName, "system:masters")]);
        let user = user_of_certificate(&der).expect("the certificate names a user");
        assert_eq!(user.name, "jane");
        assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    }

    #[test]
    fn the_uid_attribute_is_the_uid() {
        let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let der = certificate(&[(DnType::CommonName, "jane"), (uid, "u-1")]);
        assert_eq!(user_of_certificate(&der).map(|user| user.uid).as_deref(), Some("u-1"));
    }

    #[test]
    fn a_certificate_without_a_name_is_nobody() {
        assert_eq!(user_of_certificate(&certificate(&[(DnType::OrganizationName, "o")])), None);
        assert_eq!(user_of_certificate(b"no certificate"), None);
    }
}
