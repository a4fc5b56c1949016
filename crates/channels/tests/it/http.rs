//! The outgoing HTTP client: what it follows, reads, waits for and refuses.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use deskbell_channels::{Http, HttpOptions, Manner, Names, SendContext};
use deskbell_core::{Message, delivery::Failure, event::Format};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use crate::{
    configured,
    real::Certificate,
    sample::{context, message},
};

const TEMPORARY: Failure = Failure::Temporary { retry_after: None };

#[tokio::test]
async fn a_huge_answer_is_read_only_in_part() {
    let server = MockServer::start().await;
    let huge = format!("{{\"id\":\"{}\"}}", "x".repeat(3 * 1024 * 1024));
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_string(huge))
        .mount(&server)
        .await;
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    // For a webhook 200 is success, whatever follows it.
    let webhook = configured("webhook_json", &format!("url = '{}'", server.uri()));
    webhook.deliver(&message, &cx).await.unwrap();
    let ntfy = configured("ntfy", &format!("topic = 't'\nserver = '{}'", server.uri()));
    let error = ntfy.deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.message, "the far end answered 200 without JSON");
}

#[tokio::test]
async fn an_answer_that_never_ends_is_a_time_out_row_109() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("url = 'http://{}'", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nx").await.unwrap();
        // Holds the connection open until the test is over.
        std::future::pending::<()>().await;
    });
    let message = message("text", Format::Text);
    let cx = SendContext { timeout: Duration::from_millis(300), ..context(&message, None) };
    let error = configured("webhook_json", &url).deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, TEMPORARY);
}

#[tokio::test]
async fn metadata_services_are_out_of_reach() {
    let message = message("text", Format::Text);
    for host in ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "2852039166"] {
        let webhook = configured("webhook_json", &format!("url = 'http://{host}/latest'"));
        let error = webhook.deliver(&message, &context(&message, None)).await.unwrap_err();
        assert_eq!(error.failure, Failure::Permanent, "{host}: {error}");
        assert!(error.message.contains("metadata service"), "{host}: {error}");
    }
}

#[tokio::test]
async fn neither_mail_nor_mqtt_nor_a_proxy_leads_to_metadata_services() {
    let message = message("text", Format::Text);
    // The last one is no address as it is written, only as it is resolved.
    for host in ["169.254.169.254", "::ffff:169.254.169.254", "2852039166"] {
        let written = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        for (kind, options) in [
            ("smtp", format!("host = '{host}'\nfrom = 'a@example.com'\nto = ['b@example.com']")),
            ("mqtt", format!("host = '{host}'\ntopic = 't'")),
            (
                "webhook_json",
                format!("url = 'http://far.example.com/'\nproxy = 'http://{written}:80'"),
            ),
            (
                "webhook_json",
                format!("url = 'http://far.example.com/'\nproxy = 'socks5h://{written}:80'"),
            ),
        ] {
            let cx = SendContext { timeout: Duration::from_secs(5), ..context(&message, None) };
            let error = configured(kind, &options).deliver(&message, &cx).await.unwrap_err();
            assert_eq!(error.failure, Failure::Permanent, "{options}: {error}");
            assert!(error.message.contains("metadata service"), "{options}: {error}");
        }
    }
}

/// A context in which names lead to this machine when they are looked up first, and to a metadata service after;
/// with the number of times that was asked.
fn rebinding(message: &Message) -> (SendContext, Arc<AtomicUsize>) {
    let lookups = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lookups);
    let names = Names::new(move |name| {
        let metadata = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
        let moving = || match counter.fetch_add(1, Ordering::Relaxed) {
            0 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => metadata,
        };
        vec![name.parse().unwrap_or_else(|_| moving())]
    });
    let http = Http::new(HttpOptions { names: Some(names), ..HttpOptions::default() });
    let cx = SendContext { http, timeout: Duration::from_secs(10), ..context(message, None) };
    (cx, lookups)
}

#[tokio::test]
async fn mail_and_mqtt_connect_to_the_address_that_was_checked() {
    let message = message("text", Format::Text);
    for (kind, rest) in [
        ("smtp", "security = 'none'\nfrom = 'a@example.com'\nto = ['b@example.com']"),
        ("mqtt", "topic = 't'"),
    ] {
        // Whoever resolves the name again gets nowhere: no machine has it.
        let far_end = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = far_end.local_addr().unwrap().port();
        let options = format!("host = 'far.invalid'\nport = {port}\n{rest}");
        let (channel, (cx, _)) = (configured(kind, &options), rebinding(&message));
        tokio::select! {
            _ = channel.deliver(&message, &cx) => panic!("{kind} did not come to the far end"),
            reached = far_end.accept() => drop(reached.unwrap()),
        }
    }
}

#[tokio::test]
async fn a_proxys_name_leads_nowhere_else_after_it_was_checked() {
    let message = message("text", Format::Text);
    for scheme in ["http", "socks5", "socks5h"] {
        let options = format!("url = 'http://127.0.0.2/'\nproxy = '{scheme}://proxy.invalid:80'");
        let (cx, lookups) = rebinding(&message);
        let error = configured("webhook_json", &options).deliver(&message, &cx).await.unwrap_err();
        // The connection asks the guard and not the machine, and is refused what was not there before.
        assert_eq!(lookups.load(Ordering::Relaxed), 2, "{scheme}: {error}");
        let told = if scheme == "http" { "metadata service" } else { "cannot connect: SOCKS" };
        assert!(error.message.contains(told), "{scheme}: {error}");
    }
}

#[test]
fn headers_that_http_does_not_allow_are_refused_when_the_channel_is_built() {
    #[track_caller]
    fn check(options: &str, expected: &str) {
        let options = toml::from_str(&format!("url = 'https://h.example/'\n{options}")).unwrap();
        let built = deskbell_channels::kind("webhook_json").unwrap().build(options);
        assert_eq!(built.map(drop).unwrap_err().to_string(), expected);
    }
    let name = "`headers` has a name with characters that HTTP does not allow";
    check(r#"headers = { "X\r\nY" = "v" }"#, name);
    check(r#"headers = { "" = "v" }"#, name);
    let value = "`headers`: the value of `X-Y` has characters that HTTP does not allow";
    check(r#"headers = { X-Y = "planted\r\nHost: x" }"#, value);
    check(r#"headers = { X-Y = "planted\u0000" }"#, value);
    check(r#"token = "a\nb""#, "`token` has characters that HTTP does not allow in a header");
}

#[tokio::test]
async fn what_the_far_end_repeats_of_a_login_is_masked_row_116() {
    let server = MockServer::start().await;
    let told = "not you: Authorization: Basic bWU6aHVudGVyMi14, hunter2%2Dx, aHVudGVyMi14";
    Mock::given(any())
        .respond_with(ResponseTemplate::new(401).set_body_string(told))
        .mount(&server)
        .await;
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    let url = server.uri().replace("http://", "http://me:hunter2-x@");
    let login = "user = 'me'\npassword = 'hunter2-x'\ntopic = 't'";
    for (kind, options) in [
        ("webhook_json", format!("url = '{url}'")),
        ("ntfy", format!("{login}\nserver = '{}'", server.uri())),
    ] {
        let error = configured(kind, &options).deliver(&message, &cx).await.unwrap_err();
        let expected = "not you: Authorization: Basic ***, ***, ***";
        assert!(error.message.ends_with(expected), "{kind}: {error}");
    }
}

#[tokio::test]
async fn a_channels_proxy_is_used_and_its_password_kept_row_116() {
    let proxy = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(407)).mount(&proxy).await;
    let proxy_url = proxy.uri().replace("http://", "http://me:proxy-password@");
    let options = format!("url = 'http://far.example.com/hook'\nproxy = '{proxy_url}'");
    let message = message("text", Format::Text);
    let error = configured("webhook_json", &options)
        .deliver(&message, &context(&message, None))
        .await
        .unwrap_err();
    assert!(!format!("{error:?}").contains("proxy-password"));
    let requests = proxy.received_requests().await.unwrap();
    assert_eq!(requests[0].url.host_str(), Some("far.example.com"));
    assert!(requests[0].headers.contains_key("proxy-authorization"));
}

#[tokio::test]
async fn a_login_in_the_address_becomes_a_header_and_is_masked_row_116() {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(204)).mount(&server).await;
    let url = server.uri().replace("http://", "http://me:pass%20word@");
    let webhook = configured("webhook_json", &format!("url = '{url}'"));
    let message = message("text", Format::Text);
    webhook.deliver(&message, &context(&message, None)).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests[0].headers["authorization"], "Basic bWU6cGFzcyB3b3Jk");
    let now = crate::sample::now();
    let shown = deskbell_channels::preview(
        webhook.kind,
        &*webhook.channel,
        &message,
        now,
        Manner::default(),
        false,
    )
    .await;
    assert_eq!(shown["requests"][0]["headers"]["authorization"], "Basic ***");
}

#[tokio::test]
async fn errors_name_no_address_row_116() {
    let message = message("text", Format::Text);
    let secret = "a-secret-path-0001";
    for url in [
        format!("http://127.0.0.1:1/{secret}"),
        format!("http://nowhere.invalid/{secret}"),
        format!("https://127.0.0.1:1/{secret}?key={secret}"),
    ] {
        let webhook = configured("webhook_json", &format!("url = '{url}'"));
        let error = webhook.deliver(&message, &context(&message, None)).await.unwrap_err();
        assert_eq!(error.failure, TEMPORARY, "{error}");
        assert!(!format!("{error} {error:?}").contains(secret), "{error}");
    }
}

fn server_config(certificate: &Certificate) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(certificate.path()).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificate.key()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(config.with_single_cert(chain, key).unwrap())
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_refused() {
    let certificate = Certificate::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = server_config(&certificate);
    let server = std::thread::spawn(move || {
        let mut connection = rustls::ServerConnection::new(config).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        connection.complete_io(&mut stream)
    });
    let webhook = configured("webhook_json", &format!("url = 'https://localhost:{port}/'"));
    let message = message("text", Format::Text);
    let error = webhook.deliver(&message, &context(&message, None)).await.unwrap_err();
    assert!(error.message.contains("certificate"), "{error}");
    assert!(server.join().unwrap().is_err(), "the client went on");
}
