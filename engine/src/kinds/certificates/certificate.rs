//! A certificate of X.509, as far as Go's reader tells its faults.
//!
//! Input: DER. Output: the public key, or Go's error. What is within names, times and most extensions is not looked at.
//!
//! Source: `parseCertificate` of `crypto/x509`, Go 1.26.

use std::collections::BTreeSet;

use thiserror::Error;

use super::der::{BOOLEAN, Der, GENERALIZED_TIME, OCTET_STRING, SEQUENCE, SET, UTC_TIME, context};

const VERSION_MAX: u8 = 2;
/// The object identifiers of keys, in DER.
pub const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
pub const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
pub const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// The curves that Go knows: P-224, P-256, P-384 and P-521, and the bytes of a number of each.
const CURVES: [(&[u8], usize); 4] = [
    (&[0x2b, 0x81, 4, 0, 0x21], 28),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], 32),
    (&[0x2b, 0x81, 4, 0, 0x22], 48),
    (&[0x2b, 0x81, 4, 0, 0x23], 66),
];
const NULL: &[u8] = &[5, 0];
const ED25519_BYTES: usize = 32;
/// The first byte of a point that is not compressed.
const UNCOMPRESSED: u8 = 4;
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];

/// Why bytes are not a certificate, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("x509: {0}")]
pub struct CertificateError(pub &'static str);

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicKey<'a> {
    /// Its modulus and its exponent, without zeros before them.
    Rsa(&'a [u8], &'a [u8]),
    /// Its curve, and its point.
    Ec(Curve, &'a [u8]),
    /// Its bytes.
    Ed25519(&'a [u8]),
    /// Of another algorithm.
    Other,
}

/// An elliptic curve, by the bytes of a number: 28, 32, 48 or 66.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve(pub usize);

impl Curve {
    /// The curve with this object identifier.
    pub fn of(identifier: &[u8]) -> Option<Self> {
        CURVES.iter().find(|(known, _)| *known == identifier).map(|(_, bytes)| Curve(*bytes))
    }
}

/// Reads a certificate, and returns its key and the bytes after it.
///
/// # Errors
///
/// The bytes are not a certificate.
pub fn read(der: &[u8]) -> Result<(PublicKey<'_>, &[u8]), CertificateError> {
    let at = |fault: &'static str| move || CertificateError(fault);
    let mut input = Der(der);
    let mut certificate = input.read(SEQUENCE).ok_or_else(at("malformed certificate"))?;
    let mut tbs = certificate.read(SEQUENCE).ok_or_else(at("malformed tbs certificate"))?;
    let version = version(&mut tbs)?;
    let serial = tbs.integer().ok_or_else(at("malformed serial number"))?;
    if serial.is_negative() {
        return Err(CertificateError("negative serial number"));
    }
    let inner = tbs.read(SEQUENCE).ok_or_else(at("malformed signature algorithm identifier"))?;
    let outer = certificate.read(SEQUENCE).ok_or_else(at("malformed algorithm identifier"))?;
    if inner != outer {
        return Err(CertificateError("inner and outer signature algorithm identifiers don't match"));
    }
    algorithm(inner)?;
    name(tbs.read(SEQUENCE).ok_or_else(at("malformed issuer"))?)?;
    let mut validity = tbs.read(SEQUENCE).ok_or_else(at("malformed validity"))?;
    time(&mut validity)?;
    time(&mut validity)?;
    name(tbs.read(SEQUENCE).ok_or_else(at("malformed issuer"))?)?;
    let key = key(tbs.read(SEQUENCE).ok_or_else(at("malformed spki"))?)?;
    if version > 0 {
        extensions(&mut tbs, version)?;
    }
    certificate.bits().ok_or_else(at("malformed signature"))?;
    Ok((key, input.0))
}

/// [`read`] for bytes that are one certificate.
///
/// # Errors
///
/// The bytes are not a certificate, or more than one.
pub fn read_one(der: &[u8]) -> Result<PublicKey<'_>, CertificateError> {
    match read(der)? {
        (key, []) => Ok(key),
        _ => Err(CertificateError("trailing data")),
    }
}

/// Versions are written as one less than they are.
fn version(tbs: &mut Der<'_>) -> Result<u8, CertificateError> {
    const MALFORMED: CertificateError = CertificateError("malformed version");
    let Some(mut written) = tbs.optional(context(0)).ok_or(MALFORMED)? else { return Ok(0) };
    let number = written.integer().filter(|number| written.is_empty() && !number.is_negative()).ok_or(MALFORMED)?;
    number.small().filter(|version| *version <= VERSION_MAX).ok_or(CertificateError("invalid version"))
}

/// The object identifier of an algorithm, and the element of its parameters.
fn algorithm(mut der: Der<'_>) -> Result<(&[u8], &[u8]), CertificateError> {
    let identifier = der.identifier().ok_or(CertificateError("malformed OID"))?;
    if der.is_empty() {
        return Ok((identifier, &[]));
    }
    let parameters = der.any().ok_or(CertificateError("malformed parameters"))?;
    Ok((identifier, parameters.whole))
}

fn name(mut sets: Der<'_>) -> Result<(), CertificateError> {
    let at = |fault: &'static str| move || CertificateError(fault);
    while !sets.is_empty() {
        let mut set = sets.read(SET).ok_or_else(at("invalid RDNSequence"))?;
        while !set.is_empty() {
            let mut attribute = set.read(SEQUENCE).ok_or_else(at("invalid RDNSequence: invalid attribute"))?;
            attribute.identifier().ok_or_else(at("invalid RDNSequence: invalid attribute type"))?;
            attribute.any().ok_or_else(at("invalid RDNSequence: invalid attribute value"))?;
        }
    }
    Ok(())
}

fn time(der: &mut Der<'_>) -> Result<(), CertificateError> {
    let (tag, fault) = if der.is_next(UTC_TIME) {
        (UTC_TIME, "malformed UTCTime")
    } else if der.is_next(GENERALIZED_TIME) {
        (GENERALIZED_TIME, "malformed GeneralizedTime")
    } else {
        return Err(CertificateError("unsupported time format"));
    };
    let written = der.read(tag).and_then(|time| str::from_utf8(time.0).ok());
    let is_time = match tag {
        UTC_TIME => written.is_some_and(|text| is_time(text, 2, &[8, 10])),
        _ => written.is_some_and(|text| is_time(text, 4, &[10])),
    };
    if is_time { Ok(()) } else { Err(CertificateError(fault)) }
}

/// Whether a text is a time: a year of some digits, the month, the day, the hour and the minute, maybe the second, so that
/// there is one of the `lengths` behind the year; and `Z`, or another zone.
///
/// Source: `ReadASN1UTCTime` and `ReadASN1GeneralizedTime` of `golang.org/x/crypto/cryptobyte`.
fn is_time(text: &str, year_digits: usize, lengths: &[usize]) -> bool {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, zone) = text.split_at(end);
    let Some((year, rest)) = digits.split_at_checked(year_digits) else { return false };
    let Ok(year) = year.parse::<i16>() else { return false };
    // Years of two digits begin in 1969, as far as leap years go.
    let year = if year_digits > 2 { year } else { year + if year >= 69 { 1900 } else { 2000 } };
    let parts: Vec<i8> = (0..rest.len() / 2).filter_map(|at| rest[2 * at..][..2].parse().ok()).collect();
    let [month, day, hour, minute, ref second @ ..] = parts[..] else { return false };
    let second = second.first().copied().unwrap_or_default();
    let is_date = jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0).is_ok();
    lengths.contains(&rest.len()) && is_date && is_zone(zone)
}

/// `Z`, or hours and minutes that are not zero.
fn is_zone(text: &str) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else { return text == "Z" };
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u8>().ok()).unwrap_or(u8::MAX);
    let (hours, minutes) = (number(offset.get(..2)), number(offset.get(2..)));
    offset.len() == 4 && hours <= 24 && minutes < 60 && (hours, minutes) != (0, 0)
}

/// The key in a SubjectPublicKeyInfo.
fn key(mut info: Der<'_>) -> Result<PublicKey<'_>, CertificateError> {
    let identifier = info.read(SEQUENCE).ok_or(CertificateError("malformed public key algorithm identifier"))?;
    let (identifier, parameters) = algorithm(identifier)?;
    let bytes = info.bits().ok_or(CertificateError("malformed subjectPublicKey"))?;
    match identifier {
        RSA if parameters != NULL => Err(CertificateError("RSA key missing NULL parameters")),
        RSA => rsa(bytes),
        EC => {
            let curve = Der(parameters).identifier().ok_or(CertificateError("invalid ECDSA parameters"))?;
            let curve = Curve::of(curve).ok_or(CertificateError("unsupported elliptic curve"))?;
            let is_point = bytes.first() == Some(&UNCOMPRESSED) && bytes.len() == 1 + 2 * curve.0;
            // Go has other words for it, which depend on the point.
            if is_point { Ok(PublicKey::Ec(curve, bytes)) } else { Err(CertificateError("invalid public key")) }
        }
        ED25519 if !parameters.is_empty() => Err(CertificateError("Ed25519 key encoded with illegal parameters")),
        ED25519 if bytes.len() != ED25519_BYTES => Err(CertificateError("wrong Ed25519 public key size")),
        ED25519 => Ok(PublicKey::Ed25519(bytes)),
        _ => Ok(PublicKey::Other),
    }
}

fn rsa(bytes: &[u8]) -> Result<PublicKey<'_>, CertificateError> {
    let mut numbers = Der(bytes).read(SEQUENCE).ok_or(CertificateError("invalid RSA public key"))?;
    let modulus = numbers.integer().ok_or(CertificateError("invalid RSA modulus"))?;
    let exponent = numbers.integer().ok_or(CertificateError("invalid RSA public exponent"))?;
    if !modulus.is_positive() {
        return Err(CertificateError("RSA modulus is not a positive number"));
    }
    if !exponent.is_positive() {
        return Err(CertificateError("RSA public exponent is not a positive number"));
    }
    Ok(PublicKey::Rsa(modulus.magnitude(), exponent.magnitude()))
}

fn extensions(tbs: &mut Der<'_>, version: u8) -> Result<(), CertificateError> {
    const MALFORMED: CertificateError = CertificateError("malformed extensions");
    for (tag, fault) in [(1, "malformed issuerUniqueID"), (2, "malformed subjectUniqueID")] {
        tbs.optional(context(tag) & !0x20).ok_or(CertificateError(fault))?;
    }
    if version < VERSION_MAX {
        return Ok(());
    }
    let Some(mut outer) = tbs.optional(context(3)).ok_or(MALFORMED)? else { return Ok(()) };
    let mut list = outer.read(SEQUENCE).ok_or(MALFORMED)?;
    let mut seen = BTreeSet::new();
    let mut values = Vec::new();
    while !list.is_empty() {
        let extension = list.read(SEQUENCE).ok_or(CertificateError("malformed extension"))?;
        let (identifier, value) = self::extension(extension)?;
        if !seen.insert(identifier) {
            // Go says which, by its numbers.
            return Err(CertificateError("certificate contains duplicate extension"));
        }
        values.push((identifier, value));
    }
    values.into_iter().try_for_each(|(identifier, value)| check_value(identifier, value))
}

/// The identifier and the value of an extension.
fn extension(mut der: Der<'_>) -> Result<(&[u8], &[u8]), CertificateError> {
    let identifier = der.identifier().ok_or(CertificateError("malformed extension OID field"))?;
    if der.is_next(BOOLEAN) && !is_boolean(&mut der) {
        return Err(CertificateError("malformed extension critical field"));
    }
    let value = der.read(OCTET_STRING).ok_or(CertificateError("malformed extension value field"))?;
    Ok((identifier, value.0))
}

fn is_boolean(der: &mut Der<'_>) -> bool {
    der.read(BOOLEAN).is_some_and(|value| matches!(value.0, [0 | 0xff]))
}

fn check_value(identifier: &[u8], value: &[u8]) -> Result<(), CertificateError> {
    let mut value = Der(value);
    let fault = match identifier {
        KEY_USAGE if value.bits().is_none() => "invalid key usage",
        BASIC_CONSTRAINTS => {
            let is_read = value.read(SEQUENCE).is_some_and(|mut constraints| {
                let is_boolean = !constraints.is_next(BOOLEAN) || is_boolean(&mut constraints);
                is_boolean && (!constraints.is_next(super::der::INTEGER) || constraints.integer().is_some())
            });
            if is_read {
                return Ok(());
            }
            "invalid basic constraints"
        }
        _ => return Ok(()),
    };
    Err(CertificateError(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for good in ["260102030405Z", "2601020304Z", "260102030405+0100", "000229000000Z"] {
            assert!(is_time(good, 2, &[8, 10]), "{good}");
        }
        for bad in
            ["261302030405Z", "zzzzzzzzzzzzz", "260102030405", "260102030405+0000", "250229000000Z", "26010203Z", ""]
        {
            assert!(!is_time(bad, 2, &[8, 10]), "{bad}");
        }
        assert!(is_time("20260102030405Z", 4, &[10]));
        assert!(!is_time("202601020304Z", 4, &[10]));
    }

    #[test]
    fn what_is_not_a_certificate_is_told_in_gos_words() {
        let told = |der: &[u8]| read_one(der).err().map(|error| error.to_string());
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut der = rcgen::CertificateParams::default().self_signed(&key).expect("a certificate").der().to_vec();
        assert_eq!(told(&der), None);
        assert!(matches!(read_one(&der), Ok(PublicKey::Ec(Curve(32), _))));
        assert_eq!(told(&[1, 2, 3]).as_deref(), Some("x509: malformed certificate"));
        assert_eq!(told(&der[..der.len() - 1]).as_deref(), Some("x509: malformed certificate"));
        assert_eq!(told(&[SEQUENCE, 0]).as_deref(), Some("x509: malformed tbs certificate"));
        assert_eq!(told(&[SEQUENCE, 2, SEQUENCE, 0]).as_deref(), Some("x509: malformed serial number"));
        der.push(0);
        assert_eq!(told(&der).as_deref(), Some("x509: trailing data"));
        let at = der.windows(4).position(|bytes| bytes == [context(0), 3, 2, 1]).expect("it has a version");
        der[at + 4] = 3;
        assert_eq!(told(&der).as_deref(), Some("x509: invalid version"));
    }
}
