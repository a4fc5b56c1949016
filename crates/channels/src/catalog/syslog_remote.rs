use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
};
use tokio_rustls::TlsConnector;

use crate::{
    prelude::*,
    syslog::{Facility, record},
    tls,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Remote>(About {
    name: "syslog_remote",
    title: "Syslog",
    docs: "https://www.rfc-editor.org/rfc/rfc5424",
    transport: Transport::Syslog,
    dialect: Dialect::Plain,
    // Receivers should take records of 2,048 bytes (RFC 5424, section 6.1).
    limits: Limits { title: 200, body: 1_400, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        host = "logs.example.com"
        protocol = "tls"
    "#,
})
.with_urls(Urls {
    schemes: &["rsyslog"],
    examples: &[
        "rsyslog://logs.example.com",
        "rsyslog://logs.example.com:1514/local3",
        "rsyslog://logs.example.com?facility=daemon&logpid=no",
    ],
    read,
    ..Urls::NONE
});

/// Sends records of syslog (RFC 5424) to another machine: rsyslog, syslog-ng, Graylog, Loki, Splunk.
///
/// 1. Let the receiver listen: for rsyslog `imudp` or `imtcp`, for Graylog a Syslog input.
/// 2. Set `host`, `protocol` and, if it is not the usual one, `port`.
///
/// Syslog does not acknowledge: a record counts as sent when it has left this machine. With `udp` it may get lost on
/// the way and everybody can read it; `tls` protects it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remote {
    /// Name or address of the receiver.
    host: String,
    /// Port of the receiver; without it 514, or 6514 for `tls`.
    port: Option<u16>,
    /// How records travel: `udp`, `tcp` or `tls`.
    #[serde(default)]
    protocol: Protocol,
    /// How records are told apart with `tcp` and `tls` (RFC 6587): `octets` before each say how long it is, or each
    /// ends with a `newline`.
    #[serde(default)]
    framing: Framing,
    /// Facility to write as, such as `user`, `daemon` or `local0`.
    #[serde(default)]
    facility: Facility,
    /// Application that the records name.
    #[serde(default = "deskbell")]
    application: String,
    /// Certificates to trust beside the machine's, as a PEM file, for receivers with a certificate of their own.
    ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Protocol {
    #[default]
    Udp,
    Tcp,
    Tls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Framing {
    #[default]
    Octets,
    Newline,
}

fn deskbell() -> String {
    "deskbell".to_owned()
}

/// How long a refusal may take to come back: a closed port or a connection that is reset.
const REFUSAL: Duration = Duration::from_millis(100);

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // The process id would be the daemon's.
    url.ignore(&["logpid"]);
    let written = url.path.pop();
    let facility = Facility::named(url, written)?;
    let (host, port) = url.host()?;
    Ok(url::options([
        ("host", Some(host.into())),
        ("port", port.map(|port| i64::from(port).into())),
        ("facility", facility),
    ]))
}

#[async_trait]
impl Channel for Remote {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let record = record(message, self.facility, &self.application);
        if let Some(preview) = &cx.preview {
            preview.note(json!({
                "transport": "syslog",
                "protocol": self.protocol,
                "host": self.host,
                "port": self.port(),
                "body": record,
            }));
            return Ok(Receipt::default());
        }
        let addresses = cx.resolve(&self.host, self.port()).await?;
        let sent = match self.protocol {
            Protocol::Udp => datagram(&record, &addresses).await,
            Protocol::Tcp => match TcpStream::connect(&*addresses).await {
                Ok(stream) => self.write(stream, &record).await,
                Err(error) => Err(error),
            },
            Protocol::Tls => {
                let (name, connector) = self.tls()?;
                match TcpStream::connect(&*addresses).await {
                    Ok(stream) => match connector.connect(name, stream).await {
                        Ok(stream) => self.write(stream, &record).await,
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                }
            }
        };
        sent.map_err(|error| SendError::temporary(format!("cannot reach the receiver: {error}")))?;
        Ok(Receipt::default())
    }
}

impl Remote {
    fn port(&self) -> u16 {
        self.port.unwrap_or(if self.protocol == Protocol::Tls { 6514 } else { 514 })
    }

    fn tls(&self) -> Result<(ServerName<'static>, TlsConnector), SendError> {
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| SendError::permanent("`host` is no name that a certificate could have"))?;
        let config = tls::client_config(self.ca_file.as_deref())
            .map_err(|error| SendError::permanent(error.to_string()))?;
        Ok((name, TlsConnector::from(Arc::new(config))))
    }

    /// Writes `record` and ends the stream. A receiver that resets it did not take the record.
    async fn write<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut stream: S,
        record: &str,
    ) -> io::Result<()> {
        let framed = match self.framing {
            Framing::Octets => format!("{} {record}", record.len()),
            Framing::Newline => format!("{record}\n"),
        };
        stream.write_all(framed.as_bytes()).await?;
        stream.shutdown().await?;
        let answer = tokio::time::timeout(REFUSAL, stream.read(&mut [0; 64])).await;
        match answer {
            // Many close without the goodbye that TLS asks for.
            Ok(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ => Ok(()),
        }
    }
}

/// Sends `record` to the first of `addresses` that does not say at once that nobody listens.
async fn datagram(record: &str, addresses: &[SocketAddr]) -> io::Result<()> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        outcome = datagram_to(record, *address).await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

async fn datagram_to(record: &str, address: SocketAddr) -> io::Result<()> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    socket.send(record.as_bytes()).await?;
    match tokio::time::timeout(REFUSAL, socket.recv(&mut [0; 1])).await {
        Ok(Err(error)) => Err(error),
        _ => Ok(()),
    }
}
