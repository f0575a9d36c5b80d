//! The certificates of one control plane.

use pem::Pem;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PublicKeyData, SigningKey,
};
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, Tag, tags};

/// A small certificate authority, made for one [`TestEnv`](crate::TestEnv), that signs certificates of servers and users. Its
/// key is nowhere but in memory.
pub struct Authority {
    name: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate that an [`Authority`] signed, and its key; both as PEM files hold them.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
const ECDSA_WITH_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];

impl Authority {
    /// A new one, with a key of its own.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn new(name: impl Into<String>) -> Result<Self, rcgen::Error> {
        let name = name.into();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name.clone());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        // Certificates of users are signed by the name of this algorithm.
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        Ok(Self { name, issuer: CertifiedIssuer::self_signed(params, key)? })
    }

    /// Its certificate, as a CA bundle holds it.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server with these host names and addresses.
    ///
    /// # Errors
    /// One of them cannot be in a certificate.
    pub fn server(&self, names: &[&str]) -> Result<Certificate, rcgen::Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kubewire-envtest server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Certificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// A certificate by which an API server knows this user, as one of these groups: it takes the common name for the user
    /// and each organization for a group.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn user(&self, name: &str, groups: &[String]) -> Result<Certificate, rcgen::Error> {
        // By hand, as a subject of rcgen has one organization.
        let key = KeyPair::generate()?;
        let serial = u64::from_be_bytes(first_bytes(key.der_bytes()));
        let groups = groups.iter().map(|group| (ORGANIZATION, group.as_str()));
        let subject: Vec<(&[u64], &str)> = groups.chain([(COMMON_NAME, name)]).collect();
        let signed_part = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
                writer.next().write_u64(serial);
                write_algorithm(writer.next());
                write_name(writer.next(), &[(COMMON_NAME, &self.name)]);
                writer.next().write_sequence(|writer| {
                    for time in [b"000101000000Z", b"491231235959Z"] {
                        let write = |writer: DERWriter<'_>| writer.write_bytes(time);
                        writer.next().write_tagged_implicit(tags::TAG_UTCTIME, write);
                    }
                });
                write_name(writer.next(), &subject);
                writer.next().write_der(&key.subject_public_key_info());
                writer.next().write_tagged(Tag::context(3), write_client_usage);
            });
        });
        let signature = self.issuer.key().sign(&signed_part)?;
        let der = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&signed_part);
                write_algorithm(writer.next());
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        Ok(Certificate { certificate_pem: pem::encode(&Pem::new("CERTIFICATE", der)), key_pem: key.serialize_pem() })
    }
}

/// A serial number that no other certificate of the authority has, but by chance: from the public key behind its first byte,
/// which tells the form of the key.
fn first_bytes(key: &[u8]) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (byte, from) in bytes.iter_mut().zip(key.iter().skip(1)) {
        *byte = *from;
    }
    bytes
}

fn oid(parts: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(parts)
}

fn write_algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| writer.next().write_oid(&oid(ECDSA_WITH_SHA256)));
}

fn write_name(writer: DERWriter<'_>, attributes: &[(&[u64], &str)]) {
    writer.write_sequence(|writer| {
        for (kind, value) in attributes {
            writer.next().write_set(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(kind));
                    writer.next().write_utf8_string(value);
                });
            });
        }
    });
}

fn write_client_usage(writer: DERWriter<'_>) {
    let usages = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| writer.next().write_oid(&oid(CLIENT_AUTH)));
    });
    writer.write_sequence(|writer| {
        writer.next().write_sequence(|writer| {
            writer.next().write_oid(&oid(EXTENDED_KEY_USAGE));
            writer.next().write_bytes(&usages);
        });
    });
}

#[cfg(test)]
mod tests {
    use x509_parser::pem::parse_x509_pem;
    use x509_parser::prelude::*;

    use super::*;

    #[test]
    fn a_users_certificate_has_its_name_and_all_its_groups_and_the_authoritys_signature() {
        let authority = Authority::new("test").unwrap();
        let groups = ["system:masters", "developers", "ä group"].map(str::to_owned);
        let user = authority.user("alice", &groups).unwrap();

        let (_, pem) = parse_x509_pem(user.certificate_pem.as_bytes()).unwrap();
        let (rest, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
        assert!(rest.is_empty());
        let subject = certificate.subject();
        let organizations: Vec<_> = subject.iter_organization().map(|group| group.as_str().unwrap()).collect();
        assert_eq!(organizations, groups);
        let names: Vec<_> = subject.iter_common_name().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(names, ["alice"]);
        assert!(certificate.extended_key_usage().unwrap().unwrap().value.client_auth);

        let (_, pem) = parse_x509_pem(authority.pem().as_bytes()).unwrap();
        let (_, issuer) = X509Certificate::from_der(&pem.contents).unwrap();
        assert_eq!(certificate.issuer().as_raw(), issuer.subject().as_raw());
        certificate.verify_signature(Some(issuer.public_key())).unwrap();
        let foreign = Authority::new("test").unwrap();
        let (_, pem) = parse_x509_pem(foreign.pem().as_bytes()).unwrap();
        let (_, foreign) = X509Certificate::from_der(&pem.contents).unwrap();
        assert!(certificate.verify_signature(Some(foreign.public_key())).is_err());
    }
}
