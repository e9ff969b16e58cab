//! A certificate under the subject that was asked for.
//!
//! Input: a certificate in DER, and the subject of a request. Output: the same certificate with that subject, written as Go writes
//! it, and signed anew. rcgen keeps one value of each kind in a name, so that of several organizations, which are groups to a
//! server, only the last would stay.

use rcgen::{KeyPair, SigningKey as _};
use x509_parser::asn1_rs::{Any, FromDer as _};

use crate::kinds::certificates::Subject;
use crate::work;

/// Where the subject stands: behind version, serial number, algorithm, issuer and validity.
const SUBJECT: usize = 5;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// Why a certificate does not get another subject.
#[derive(Debug, thiserror::Error)]
pub(super) enum SubjectError {
    #[error("the certificate is not one")]
    Form,
    #[error(transparent)]
    Signature(#[from] rcgen::Error),
}

/// The certificate with another subject, signed by the key.
pub(super) fn with_subject(certificate: &[u8], subject: &Subject, key: &KeyPair) -> Result<Vec<u8>, SubjectError> {
    let parts = elements(certificate).ok_or(SubjectError::Form)?;
    let [content, algorithm, _] = parts.as_slice() else { return Err(SubjectError::Form) };
    let mut fields = elements(content).ok_or(SubjectError::Form)?;
    let subject = encoded(subject);
    *fields.get_mut(SUBJECT).ok_or(SubjectError::Form)? = &subject;
    let content = element(SEQUENCE, &fields);
    let signature = key.sign(&content)?;
    // All bits of the last byte count.
    let signature = element(BIT_STRING, &[&[0], &signature]);
    Ok(element(SEQUENCE, &[&content, algorithm, &signature]))
}

/// The subject in DER: the texts of each attribute in one set. Source: `ToRDNSequence` of Go's `crypto/x509/pkix`.
fn encoded(subject: &Subject) -> Vec<u8> {
    let sets = subject.attributes().map(|(arc, texts)| {
        let identifier = element(OBJECT_IDENTIFIER, &[&[0x55, 4, arc]]);
        let attribute = |text: &String| {
            work::bytes(text.len());
            element(SEQUENCE, &[&identifier, &element(tag_of(text), &[text.as_bytes()])])
        };
        let mut attributes: Vec<Vec<u8>> = texts.iter().map(attribute).collect();
        // DER orders the elements of a set.
        attributes.sort();
        element(SET, &[&attributes.concat()])
    });
    element(SEQUENCE, &[&sets.collect::<Vec<_>>().concat()])
}

/// The type of a text, as Go takes it.
fn tag_of(text: &str) -> u8 {
    let is_printable = |letter: u8| letter.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&letter);
    if text.bytes().all(is_printable) { PRINTABLE_STRING } else { UTF8_STRING }
}

/// The elements of a sequence; `None` where it is not one.
fn elements(der: &[u8]) -> Option<Vec<&[u8]>> {
    let (_, sequence) = Any::from_der(der).ok()?;
    let (mut elements, mut rest) = (Vec::new(), sequence.data);
    while !rest.is_empty() {
        let (behind, _) = Any::from_der(rest).ok()?;
        elements.push(rest.get(..rest.len() - behind.len())?);
        rest = behind;
    }
    Some(elements)
}

/// An element of this content.
pub(super) fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut der = vec![tag];
    match length.as_slice() {
        [] => der.push(0),
        [short @ 0..0x80] => der.push(*short),
        // The number of bytes that the length takes: eight at most.
        long => {
            der.push(0x80 | long.len() as u8);
            der.extend(long);
        }
    }
    der.extend(content);
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_element_takes_the_bytes_that_it_needs() {
        let head =
            |length: usize| element(SEQUENCE, &[&vec![0; length]])[..].iter().copied().take(4).collect::<Vec<_>>();
        assert_eq!(element(SEQUENCE, &[]), [0x30, 0]);
        assert_eq!(head(3), [0x30, 3, 0, 0]);
        assert_eq!(head(127)[..2], [0x30, 127]);
        assert_eq!(head(128)[..3], [0x30, 0x81, 128]);
        assert_eq!(head(300), [0x30, 0x82, 1, 44]);
    }

    #[test]
    fn what_is_not_a_certificate_is_refused() {
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        for der in [&b""[..], b"x", &[0x30, 0], &[0x30, 2, 0x30, 0]] {
            assert!(with_subject(der, &Subject::default(), &key).is_err(), "{der:?}");
        }
    }
}
