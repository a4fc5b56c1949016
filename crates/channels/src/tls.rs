//! Which certificates are trusted: the machine's, one extra file, or Mozilla's where the machine has none.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::Verifier;

/// Certificates that cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot read certificates from `{0}`")]
    CaFile(String),
    #[error("cannot set up TLS: {0}")]
    Rustls(#[from] rustls::Error),
}

/// A client configuration that trusts the machine's roots and those in `ca_file`.
pub(crate) fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = verifier(ca_file.map(read).transpose()?.unwrap_or_default(), &provider)?;
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

fn verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Verifier, rustls::Error> {
    Verifier::new_with_extra_roots(extra.clone(), Arc::clone(provider)).or_else(|_| {
        // Slim containers have no certificate store at all, and then nothing can be built, not even for plain HTTP.
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        Verifier::new_with_extra_roots(roots.chain(extra), Arc::clone(provider))
    })
}

/// The certificates in a PEM file; at least one.
pub(crate) fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = || TlsError::CaFile(path.display().to_string());
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|_| unreadable())?.collect();
    certificates.ok().filter(|read| !read.is_empty()).ok_or_else(unreadable)
}
