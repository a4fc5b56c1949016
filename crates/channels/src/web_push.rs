//! Web Push: a text that only one browser can read (RFC 8188, RFC 8291), and the word of who sends it (RFC 8292).

use aws_lc_rs::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{self, ECDH_P256, PrivateKey, UnparsedPublicKey},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand::{SecureRandom as _, SystemRandom},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use serde_json::json;

use crate::address::Address;

/// The size of a record, as large as every push service takes it (RFC 8030, section 7.2). The text is one record.
const RECORD: u32 = 4096;

/// The length of a public key, without compression.
const POINT: usize = 65;

/// How long a word of who sends holds, in seconds; RFC 8292 allows a day.
const HOLDS_S: i64 = 12 * 60 * 60;

/// The browser that can read.
pub(crate) struct Reader {
    /// Its public key.
    point: Vec<u8>,
    /// What only it and the page that it subscribed to know.
    auth: Vec<u8>,
}

impl Reader {
    /// The reader with `p256dh` and `auth` of a subscription.
    pub(crate) fn parse(p256dh: &str, auth: &str) -> Option<Self> {
        let (point, auth) = (base64(p256dh)?, base64(auth)?);
        (point.len() == POINT && auth.len() == 16).then_some(Self { point, auth })
    }

    /// `text` as only this reader can read it.
    pub(crate) fn seal(&self, text: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut salt = [0; 16];
        SystemRandom::new().fill(&mut salt)?;
        self.seal_with(text, &PrivateKey::generate(&ECDH_P256)?, salt)
    }

    fn seal_with(
        &self,
        text: &[u8],
        key: &PrivateKey,
        salt: [u8; 16],
    ) -> Result<Vec<u8>, Unspecified> {
        let public = key.compute_public_key()?;
        let theirs = UnparsedPublicKey::new(&ECDH_P256, self.point.as_slice());
        let shared = agreement::agree(key, theirs, Unspecified, |shared| {
            let info = [b"WebPush: info\0".as_slice(), &self.point, public.as_ref()];
            let mut derived = [0; 32];
            Salt::new(HKDF_SHA256, &self.auth)
                .extract(shared)
                .expand(&info, HKDF_SHA256)?
                .fill(&mut derived)?;
            Ok(derived)
        })?;
        let derived = Salt::new(HKDF_SHA256, &salt).extract(&shared);
        let key: UnboundKey =
            derived.expand(&[b"Content-Encoding: aes128gcm\0"], &AES_128_GCM)?.into();
        let mut nonce = [0; 12];
        derived.expand(&[b"Content-Encoding: nonce\0"], NonceLength)?.fill(&mut nonce)?;
        // The mark of the last record, after which padding could follow.
        let mut record = [text, &[2]].concat();
        // The key is made anew for each text, so it sees one nonce only.
        let nonce = Nonce::assume_unique_for_key(nonce);
        LessSafeKey::new(key).seal_in_place_append_tag(nonce, Aad::empty(), &mut record)?;
        let length = u8::try_from(public.as_ref().len()).map_err(|_| Unspecified)?;
        let head = [&salt[..], &RECORD.to_be_bytes(), &[length], public.as_ref()];
        Ok([head.concat(), record].concat())
    }
}

struct NonceLength;

impl KeyType for NonceLength {
    fn len(&self) -> usize {
        12
    }
}

/// The key of who sends, whose public half browsers were told when they subscribed.
pub(crate) struct SenderKey {
    key: EcdsaKeyPair,
    public: String,
}

impl SenderKey {
    /// Reads a private key of the curve P-256: PEM, or its number in Base64 as `web-push generate-vapid-keys` prints it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = if text.starts_with("-----BEGIN") {
            EcdsaKeyPair::from_private_key_der(algorithm, &pem(text)?).ok()?
        } else {
            let number = base64(text)?;
            let public = PrivateKey::from_private_key(&ECDH_P256, &number).ok()?;
            let public = public.compute_public_key().ok()?;
            EcdsaKeyPair::from_private_key_and_public_key(algorithm, &number, public.as_ref())
                .ok()?
        };
        let public = BASE64_URL_SAFE_NO_PAD.encode(key.public_key());
        Some(Self { key, public })
    }

    /// The word that `subject` sends to the push service of `endpoint`: a signed token.
    pub(crate) fn token(
        &self,
        endpoint: &Address,
        subject: &str,
        now: Timestamp,
    ) -> Result<String, Unspecified> {
        let claims = json!({
            "aud": endpoint.url().origin().ascii_serialization(),
            "exp": now.as_second() + HOLDS_S,
            "sub": subject,
        });
        let part = |part: &str| BASE64_URL_SAFE_NO_PAD.encode(part);
        let head = part(r#"{"typ":"JWT","alg":"ES256"}"#);
        let told = format!("{head}.{}", part(&claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), told.as_bytes())?;
        Ok(format!("{told}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The value of `Authorization` with `token`.
    pub(crate) fn authorization(&self, token: &str) -> String {
        format!("vapid t={token}, k={}", self.public)
    }
}

/// What stands between the lines of PEM (RFC 7468) that has a private key; `openssl ecparam` puts another block first.
fn pem(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("PRIVATE KEY-----")?;
    let (inner, _) = rest.split_once("-----END")?;
    base64(&inner.split_whitespace().collect::<String>())
}

/// What `text` in Base64 holds, in whichever alphabet, padded or not.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().trim_end_matches('=').replace('-', "+").replace('_', "/");
    BASE64_STANDARD_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{self, ECDSA_P256_SHA256_FIXED};

    use super::*;

    /// RFC 8291, appendix A.
    #[test]
    fn a_text_is_sealed_as_the_specification_shows_row_112() {
        let reader = Reader::parse(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "BTBZMqHH6r4Tts7J_aSIgg",
        )
        .unwrap();
        let number = base64("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw").unwrap();
        let key = PrivateKey::from_private_key(&ECDH_P256, &number).unwrap();
        let salt = base64("DGv6ra1nlYgDCS1FRnbzlw").unwrap().try_into().unwrap();
        let text = "When I grow up, I want to be a watermelon";
        let sealed = reader.seal_with(text.as_bytes(), &key, salt).unwrap();
        assert_eq!(
            BASE64_URL_SAFE_NO_PAD.encode(&sealed),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz\
             AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
        assert_eq!(sealed.len(), text.len() + 103);
        // The salt and the key are new each time.
        assert_ne!(reader.seal(b"x").unwrap(), reader.seal(b"x").unwrap());
    }

    /// The key of RFC 8291, appendix A, in the forms in which tools write it.
    #[test]
    fn a_sender_key_is_read_in_every_form_and_signs_row_112() {
        let raw = SenderKey::parse("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw").unwrap();
        let public = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
        assert_eq!(raw.public, public);
        let number = base64("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw").unwrap();
        // RFC 5915: version, number, curve.
        let der = [
            &[0x30, 0x31, 2, 1, 1, 4, 32][..],
            &number,
            &[0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
        ]
        .concat();
        let written = base64::prelude::BASE64_STANDARD.encode(der);
        let pem = format!(
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n\
             -----BEGIN EC PRIVATE KEY-----\n{written}\n-----END EC PRIVATE KEY-----\n"
        );
        assert_eq!(SenderKey::parse(&pem).unwrap().public, public);
        let endpoint =
            Address::parse("https://push.example.net:8443/p/JzLQ3raZJfFBR0aqvOMsLrt5").unwrap();
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let token = raw.token(&endpoint, "mailto:ada@example.com", now).unwrap();
        let (told, signed) = token.rsplit_once('.').unwrap();
        let (_, claims) = told.split_once('.').unwrap();
        assert_eq!(
            String::from_utf8(base64(claims).unwrap()).unwrap(),
            r#"{"aud":"https://push.example.net:8443","exp":1767366245,"sub":"mailto:ada@example.com"}"#
        );
        signature::UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, base64(public).unwrap())
            .verify(told.as_bytes(), &base64(signed).unwrap())
            .unwrap();
        assert!(SenderKey::parse("no key").is_none());
        assert!(
            SenderKey::parse("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----")
                .is_none()
        );
    }
}
