//! Bundles of certificates: whether Go's TLS library would accept one.
//!
//! A bundle is valid if one of its certificates is well formed. The fields of a certificate are checked, but not their
//! contents. `x509-parser` checks the contents, too, and so refuses certificates that Go accepts in a bundle; and
//! clients see Go's errors.

use crate::value::pem;

/// Why a bundle can't be used, in Go's words; `None` for a valid one.
pub fn fault(bundle: &[u8]) -> Option<String> {
    certificates_fault(bundle).map(|fault| format!("unable to load root certificates: {fault}"))
}

fn certificates_fault(bundle: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bundle);
    let mut first_fault = None;
    let mut rest = text.as_ref();
    while !rest.is_empty() {
        let Some((block, after)) = pem::next_block(rest) else {
            return Some(first_fault.unwrap_or_else(|| "unable to parse bytes as PEM block".to_owned()));
        };
        rest = after;
        if block.label != "CERTIFICATE" || block.has_headers {
            continue;
        }
        match check_certificate(&block.bytes) {
            Ok(()) => return None,
            Err(fault) => _ = first_fault.get_or_insert_with(|| format!("failed to parse certificate: x509: {fault}")),
        }
    }
    Some(first_fault.unwrap_or_else(|| "no valid certificate authority data seen".to_owned()))
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// Checks that a certificate has its outer fields; the errors are Go's.
fn check_certificate(bytes: &[u8]) -> Result<(), &'static str> {
    const MALFORMED: &str = "malformed certificate";
    let (mut certificate, rest) = element(bytes, SEQUENCE).ok_or(MALFORMED)?;
    if !rest.is_empty() {
        return Err("trailing data");
    }
    let mut tbs = take(&mut certificate, SEQUENCE).ok_or("malformed tbs certificate")?;
    if tbs.first() == Some(&VERSION) {
        let version = take(&mut tbs, VERSION).and_then(|inner| element(inner, INTEGER));
        match version.ok_or("malformed version")?.0 {
            [0..=2] => {}
            _ => return Err("invalid version"),
        }
    }
    take(&mut tbs, INTEGER).ok_or("malformed serial number")?;
    let inner = take(&mut tbs, SEQUENCE).ok_or("malformed signature algorithm identifier")?;
    if take(&mut certificate, SEQUENCE).ok_or("malformed algorithm identifier")? != inner {
        return Err("inner and outer signature algorithm identifiers don't match");
    }
    take(&mut tbs, SEQUENCE).ok_or("malformed issuer")?;
    take(&mut tbs, SEQUENCE).ok_or("malformed validity")?;
    take(&mut tbs, SEQUENCE).ok_or("malformed issuer")?;
    take(&mut tbs, SEQUENCE).ok_or("malformed spki")?;
    take(&mut certificate, BIT_STRING).ok_or("malformed signature")?;
    Ok(())
}

/// Takes a DER element off the front of `bytes` and returns its contents.
fn take<'b>(bytes: &mut &'b [u8], tag: u8) -> Option<&'b [u8]> {
    let (inner, rest) = element(bytes, tag)?;
    *bytes = rest;
    Some(inner)
}

fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    if length < 0x80 {
        return rest.split_at_checked(usize::from(length));
    }
    let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f)).filter(|(digits, _)| digits.len() <= 4)?;
    let length = digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
    // A length that has a shorter form must use it.
    let is_shortest = length >= 0x80 && digits.first() != Some(&0);
    rest.split_at_checked(length).filter(|_| is_shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_certificate_is_told_in_gos_words() {
        let check =
            |bundle: &str, expected: &str| assert_eq!(certificates_fault(bundle.as_bytes()).as_deref(), Some(expected));
        check("nonsense", "unable to parse bytes as PEM block");
        check(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "failed to parse certificate: x509: malformed certificate",
        );
        check("-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n", "no valid certificate authority data seen");
    }
}
