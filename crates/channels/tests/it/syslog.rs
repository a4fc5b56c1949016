//! Syslog over real sockets.

use std::{path::Path, sync::Arc, time::Duration};

use deskbell_channels::{SendContext, SendError};
use deskbell_core::{Message, delivery::Failure, event::Format};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, UdpSocket},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    configured,
    real::Certificate,
    sample::{context, message},
};

/// A warning (4) of `user` (1).
const RECORD: &str = "<12>1 2026-01-02T03:04:05.000Z - deskbell - workflow - \
    Build failed: a **b**\\n\\u{1b}c <d> ü";

fn hostile() -> Message {
    let body = "a **b**\n\u{1b}c <d> ü".to_owned();
    Message { body, link: None, ..message("text", Format::Text) }
}

async fn send(port: u16, more: &str) -> Result<(), SendError> {
    let options = format!("host = 'localhost'\nport = {port}\n{more}");
    let message = hostile();
    configured("syslog_remote", &options)
        .deliver(&message, &context(&message, None))
        .await
        .map(drop)
}

#[tokio::test]
async fn a_datagram_is_one_record() {
    let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = receiver.local_addr().unwrap().port();
    send(port, "protocol = 'udp'").await.unwrap();
    let mut room = [0; 4096];
    let length = receiver.recv(&mut room).await.unwrap();
    assert_eq!(str::from_utf8(&room[..length]).unwrap(), RECORD);
}

#[tokio::test]
async fn records_in_a_stream_are_framed_by_their_length_or_by_a_line_break() {
    for (framing, expected) in
        [("octets", format!("{} {RECORD}", RECORD.len())), ("newline", format!("{RECORD}\n"))]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receive = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut told = String::new();
            stream.read_to_string(&mut told).await.unwrap();
            told
        };
        let options = format!("protocol = 'tcp'\nframing = '{framing}'");
        let (sent, told) = tokio::join!(send(port, &options), receive);
        sent.unwrap();
        assert_eq!(told, expected);
    }
}

fn acceptor(certificate: &Certificate) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(certificate.path()).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificate.key()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn tls_protects_records_and_wants_a_certificate_that_is_trusted() {
    let certificate = Certificate::new();
    let acceptor = acceptor(&certificate);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let receive = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut told = String::new();
        acceptor.accept(stream).await?.read_to_string(&mut told).await?;
        std::io::Result::Ok(told)
    };
    let trusted = format!("protocol = 'tls'\nca_file = '{}'", certificate.path().display());
    let (sent, told) = tokio::join!(send(port, &trusted), receive);
    sent.unwrap();
    assert_eq!(told.unwrap(), format!("{} {RECORD}", RECORD.len()));

    let receive = async {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.map(drop)
    };
    let (sent, told) = tokio::join!(send(port, "protocol = 'tls'"), receive);
    assert!(sent.is_err() && told.is_err());
}

/// Row 109. Only over TLS is there an answer to wait for.
#[tokio::test]
async fn a_receiver_that_says_nothing_is_a_time_out() {
    // Connections wait in the queue of a listener that never takes them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let message = hostile();
    let options = format!("host = 'localhost'\nport = {port}\nprotocol = 'tls'");
    let channel = configured("syslog_remote", &options);
    let cx = SendContext { timeout: Duration::from_millis(200), ..context(&message, None) };
    let error = channel.deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None }, "{error}");
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_a_failure_that_may_pass() {
    for protocol in ["udp", "tcp", "tls"] {
        // Bound and closed again, the port is nobody's.
        let port = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let options = format!("host = '127.0.0.1'\nport = {port}\nprotocol = '{protocol}'");
        let message = hostile();
        let channel = configured("syslog_remote", &options);
        let error = channel.deliver(&message, &context(&message, None)).await.unwrap_err();
        assert_eq!(error.failure, Failure::Temporary { retry_after: None }, "{protocol}: {error}");
    }
}

async fn write(socket: &Path) -> Result<(), SendError> {
    let options = format!("facility = 'local3'\nsocket = '{}'", socket.display());
    let message = hostile();
    configured("syslog_local", &options).deliver(&message, &context(&message, None)).await.map(drop)
}

#[tokio::test]
async fn the_machines_own_syslog_gets_a_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("log");
    let error = write(&socket).await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent, "{error}");

    let receiver = tokio::net::UnixDatagram::bind(&socket).unwrap();
    write(&socket).await.unwrap();
    let mut room = [0; 4096];
    let length = receiver.recv(&mut room).await.unwrap();
    let told = str::from_utf8(&room[..length]).unwrap();
    assert_eq!(told, "<156>deskbell: Build failed: a **b**\\n\\u{1b}c <d> ü");

    drop(receiver);
    let error = write(&socket).await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None }, "{error}");
}
