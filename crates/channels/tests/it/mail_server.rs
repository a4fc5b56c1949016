//! A real Exim, which keeps what it gets in its queue.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::real::{Certificate, Server};

/// The password of the user `bell`.
pub(crate) const PASSWORD: &str = "mail-password-0001";

/// A mail server that delivers nothing and keeps what it gets.
pub(crate) struct MailServer {
    server: Server,
    certificate: Certificate,
}

impl MailServer {
    pub(crate) fn start() -> Self {
        let certificate = Certificate::new();
        let server = Server::start("exim4", |folder, port| {
            let file = folder.join("exim.conf");
            fs::write(&file, configuration(folder, port, &certificate)).unwrap();
            ["-C", file.to_str().unwrap(), "-bdf"].map(str::to_owned).to_vec()
        });
        Self { server, certificate }
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.server.port
    }

    /// The certificate that vouches for it.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.certificate.path()
    }

    /// The queued mails, each with its envelope and headers before its text.
    pub(crate) fn mails(&self) -> Vec<String> {
        let mut ids: Vec<_> = fs::read_dir(self.server.folder.path().join("spool/input"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
            .filter_map(|path| path.strip_suffix("-H").map(str::to_owned))
            .collect();
        ids.sort();
        let read = |id: &String| {
            ["-H", "-D"].map(|part| fs::read_to_string(format!("{id}{part}")).unwrap()).concat()
        };
        ids.iter().map(read).collect()
    }
}

fn configuration(folder: &Path, port: u16, certificate: &Certificate) -> String {
    let (spool, cert, key) = (folder.join("spool"), certificate.path(), certificate.key());
    format!(
        r#"
spool_directory = {spool}
log_file_path = {spool}/%slog
pid_file_path = {folder}/pid
primary_hostname = mail.example.com
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = {cert}
tls_privatekey = {key}
auth_advertise_hosts = *
queue_only = true
keep_environment =
host_lookup =
rfc1413_query_timeout = 0s
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  deny message = no such user here
       local_parts = nobody
  defer message = try again later
       local_parts = later
  accept authenticated = *
  deny message = log in first
data:
  accept
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${{if and{{{{eq{{$auth2}}{{bell}}}}{{eq{{$auth3}}{{{PASSWORD}}}}}}}}}
  server_set_id = $auth2
  server_advertise_condition = ${{if eq{{$tls_in_cipher}}{{}}{{}}{{*}}}}
"#,
        spool = spool.display(),
        folder = folder.display(),
        cert = cert.display(),
        key = key.display(),
    )
}
