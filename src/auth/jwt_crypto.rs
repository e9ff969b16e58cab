//! What the JSON web tokens are signed and verified with: ring, which TLS uses as well.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey};

/// Of all algorithms, ES256 alone: no token can name a weaker one.
static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Has the library use ring, in this process.
pub(super) fn install() {
    // It may have been done before.
    _ = PROVIDER.install_default();
}

struct Es256Signer(EcdsaKeyPair, SystemRandom);

struct Es256Verifier(UnparsedPublicKey<Vec<u8>>);

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if *algorithm != Algorithm::ES256 || key.family() != AlgorithmFamily::Ec {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_bytes(), &random);
    Ok(Box::new(Es256Signer(pair.map_err(|_| ErrorKind::InvalidEcdsaKey)?, random)))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if *algorithm != Algorithm::ES256 || key.family() != AlgorithmFamily::Ec {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    let point = key.try_get_as_bytes()?.to_vec();
    Ok(Box::new(Es256Verifier(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point))))
}

impl Signer<Vec<u8>> for Es256Signer {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let signature = self.0.sign(&self.1, message).map_err(|_| Error::new())?;
        Ok(signature.as_ref().to_vec())
    }
}

impl JwtSigner for Es256Signer {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}

impl Verifier<Vec<u8>> for Es256Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.0.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Es256Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}
