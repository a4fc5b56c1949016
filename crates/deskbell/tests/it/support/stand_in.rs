//! A proxy that stands for services on the Internet: whoever asks for one of their hosts comes to a server of ours.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{fs, io, sync::Arc};

use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

/// The longest request for a tunnel.
const REQUEST_LIMIT: usize = 4_096;

/// The proxy, with a certificate for the hosts. It ends with its value.
pub(crate) struct StandIn {
    url: String,
    folder: TempDir,
    _runtime: Runtime,
}

impl StandIn {
    /// A proxy that leads tunnels to `hosts` to the plain HTTP server at `to`, such as `127.0.0.1:8390`.
    pub(crate) fn start(hosts: Vec<String>, to: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(hosts).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("certificate.pem"), made.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let to = to.to_owned();
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // A daemon that is killed breaks its connections off.
                tokio::spawn(lead(stream, acceptor.clone(), to.clone()));
            }
        });
        Self { url, folder, _runtime: runtime }
    }

    /// What a program needs in its environment to come this way and to trust it.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        let certificate = self.folder.path().join("certificate.pem");
        [
            ("HTTPS_PROXY", self.url.clone()),
            ("SSL_CERT_FILE", certificate.to_str().unwrap().to_owned()),
        ]
    }
}

async fn lead(mut stream: TcpStream, acceptor: TlsAcceptor, to: String) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
        assert!(request.len() < REQUEST_LIMIT, "a request for a tunnel has no end");
    }
    assert!(request.starts_with(b"CONNECT "), "a request without TLS came to the proxy");
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let mut client = acceptor.accept(stream).await?;
    let mut server = TcpStream::connect(to).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
