//! The subject of a request for a certificate: the attributes that the certificate will have.
//!
//! Input: a name of X.509. Output: the texts of those attributes that Go's `pkix.Name` keeps. Admission of a request
//! and its signing both read the subject here, so that nothing is signed that was not checked. Other attributes are
//! dropped, as Kubernetes' signer drops them: a user's uid is one of them.

use thiserror::Error;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::work;

/// The last arcs of the object identifiers of attributes, 2.5.4.x.
const ORGANIZATION: u8 = 10;
const COMMON_NAME: u8 = 3;
const SERIAL_NUMBER: u8 = 5;

/// Country, province, locality, street address, postal code, organization, organizational unit, common name and serial number, in
/// the order in which Go writes them.
const ARCS: [u8; 9] = [6, 8, 7, 9, 17, ORGANIZATION, 11, COMMON_NAME, SERIAL_NUMBER];

/// The object identifier 2.5.4 in DER.
const ATTRIBUTES: [u8; 2] = [0x55, 4];

/// An attribute of a subject is not a text, or one in letters that are not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("x509: the subject has an attribute that is not a text in UTF-8 or ASCII")]
pub struct UnreadableSubject;

/// Whom a certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The texts of each attribute, in the order of [`ARCS`].
    texts: [Vec<String>; ARCS.len()],
}

impl Subject {
    /// Reads the subject of a request.
    ///
    /// # Errors
    ///
    /// One of the kept attributes is not a text, or is in an encoding that is unknown here: `BMPString` and
    /// `T61String`, which Go reads.
    pub fn of(name: &X509Name<'_>) -> Result<Self, UnreadableSubject> {
        let mut subject = Subject::default();
        for attribute in name.iter_attributes() {
            work::bytes(attribute.as_slice().len());
            let Some(at) = place(attribute) else { continue };
            let text = attribute.as_str().map_err(|_| UnreadableSubject)?.to_owned();
            // Of the common name and the serial number, only the last counts.
            if [COMMON_NAME, SERIAL_NUMBER].contains(&ARCS[at]) {
                subject.texts[at].clear();
            }
            subject.texts[at].push(text);
        }
        Ok(subject)
    }

    /// Groups of the user that it is.
    pub fn organizations(&self) -> &[String] {
        self.of_arc(ORGANIZATION)
    }

    /// The common name, which is the user name; empty if there is none.
    pub fn common_name(&self) -> &str {
        self.of_arc(COMMON_NAME).first().map(String::as_str).unwrap_or_default()
    }

    /// The attributes that it has, in the order in which Go writes them: the last arc of each, and its texts.
    pub fn attributes(&self) -> impl Iterator<Item = (u8, &[String])> {
        let attributes = ARCS.into_iter().zip(self.texts.iter().map(Vec::as_slice));
        attributes.filter(|(arc, texts)| match *arc {
            COMMON_NAME | SERIAL_NUMBER => texts.iter().any(|text| !text.is_empty()),
            _ => !texts.is_empty(),
        })
    }

    fn of_arc(&self, arc: u8) -> &[String] {
        ARCS.iter().position(|known| *known == arc).map(|at| self.texts[at].as_slice()).unwrap_or_default()
    }
}

/// Where the texts of an attribute are kept; `None` for those that are dropped.
fn place(attribute: &AttributeTypeAndValue<'_>) -> Option<usize> {
    let arc = attribute.attr_type().as_bytes().strip_prefix(&ATTRIBUTES)?;
    ARCS.iter().position(|known| arc == [*known])
}
