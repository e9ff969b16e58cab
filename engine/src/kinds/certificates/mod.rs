//! Shared code of the kinds of certificates.k8s.io: PEM, and requests by PKCS#10. The names of signers are in
//! [`super::signers`].
//!
//! Source: `pkg/apis/certificates`, release 1.37.

mod certificate;
mod der;
mod pair;
pub(crate) mod pod_request;
mod proof;
mod request;
mod subject;

pub use crate::value::pem::{PemBlock, blocks};
pub use certificate::{CertificateError, read as read_certificate};
pub use pair::check as check_pair;
pub use request::{Request, RequestError, is_authority, is_certificate};
pub use subject::{Subject, UnreadableSubject};
