//! Who may speak HTTP to the daemon: names and origins it answers to, and tokens.
//!
//! This guards the TCP listener. The local socket needs no token, because only the user can open it.

mod token;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, header, uri::Authority};
use tokio::sync::watch;
use url::Url;

pub use self::token::{Token, state_token};
use crate::{api::problem::Problem, config::Config};

/// The TCP listener that is guarded.
#[derive(Debug, Clone)]
pub struct Door {
    /// The token of the state folder.
    pub token: Token,
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether a flag asks for no token on loopback.
    pub anonymous_loopback: bool,
}

/// Who sent a request: the name of the token that it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(Arc<str>);

impl Identity {
    /// The user, through the local socket or with the token of the state folder.
    pub const LOCAL: &'static str = "local";

    /// Somebody on loopback who needed no token.
    pub const ANONYMOUS: &'static str = "anonymous";

    /// Who sent the request with these extensions. What came past no guard came through the local socket.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_else(|| Self(Self::LOCAL.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `router` for the listener `door`: only for requests that name the right host, come from an allowed origin and
/// bring a token. `/healthz` is free.
pub fn guard(router: Router, config: watch::Receiver<Arc<Config>>, door: Door) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(Guard { config, door }), admit))
}

struct Guard {
    config: watch::Receiver<Arc<Config>>,
    door: Door,
}

async fn admit(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    if request.uri().path() == "/healthz" {
        return next.run(request).await;
    }
    let config = Arc::clone(&guard.config.borrow());
    let origin = match guard.origin(&request, &config) {
        Ok(origin) => origin,
        Err(problem) => return problem.into_response(),
    };
    let mut response = if is_preflight(&request) {
        preflight()
    } else {
        match guard.identify(request.headers(), &config) {
            Ok(identity) => {
                request.extensions_mut().insert(identity);
                next.run(request).await
            }
            Err(problem) => problem.into_response(),
        }
    };
    if let Some(origin) = origin {
        allow_origin(response.headers_mut(), origin);
    }
    response
}

impl Guard {
    /// Checks the host that the request names and the origin that it comes from, which is given back.
    ///
    /// A page that points its own name at this machine (DNS rebinding) names that name as host; a page of another
    /// site names its site as origin.
    fn origin(&self, request: &Request, config: &Config) -> Result<Option<HeaderValue>, Problem> {
        let host =
            host(request).ok_or_else(|| forbidden("the request names no host, or several"))?;
        if !self.answers_to(host.host(), config) {
            return Err(forbidden(format!(
                "this server does not answer to the host `{}`; add it to serve.allowed_hosts",
                deskbell_core::text::one_line(host.host()),
            )));
        }
        let mut origins = request.headers().get_all(header::ORIGIN).into_iter();
        let Some(origin) = origins.next() else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default();
        if origins.next().is_some() || !is_allowed_origin(text, &host, config) {
            return Err(forbidden(format!(
                "the origin `{}` is not allowed; add it to serve.allowed_origins",
                deskbell_core::text::one_line(text),
            )));
        }
        Ok(Some(origin.clone()))
    }

    fn answers_to(&self, host: &str, config: &Config) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        // An address cannot be rebound as a name can.
        let is_own_address = ip(&host).is_some_and(|ip| {
            ip == self.door.address.ip()
                || (self.door.address.ip().is_unspecified() && !ip.is_loopback())
        });
        is_loopback(&host)
            || is_own_address
            || config.serve.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&host))
    }

    fn identify(&self, headers: &HeaderMap, config: &Config) -> Result<Identity, Problem> {
        match bearer(headers) {
            Some(given) => self.owner(given, config).ok_or_else(|| {
                Problem::unauthorized(
                    "the token is not known",
                    r#"Bearer realm="deskbell", error="invalid_token""#,
                )
            }),
            None if self.is_anonymous_allowed(config) => Ok(Identity(Identity::ANONYMOUS.into())),
            None => Err(Problem::unauthorized(
                "a token is needed: `Authorization: Bearer …`, as in the file `token` of the state folder",
                r#"Bearer realm="deskbell""#,
            )),
        }
    }

    /// The owner of the token `given`. Every token is compared, whichever fits, and in constant time.
    fn owner(&self, given: &str, config: &Config) -> Option<Identity> {
        let own = (Identity::LOCAL, self.door.token.reveal());
        let configured =
            config.serve.tokens.iter().map(|(name, token)| (name.as_str(), token.as_str()));
        std::iter::once(own).chain(configured).fold(None, |owner, (name, token)| {
            let fits = verify_slices_are_equal(given.as_bytes(), token.as_bytes()).is_ok();
            if fits && !token.is_empty() { Some(Identity(name.into())) } else { owner }
        })
    }

    fn is_anonymous_allowed(&self, config: &Config) -> bool {
        self.door.address.ip().is_loopback()
            && (self.door.anonymous_loopback || config.serve.anonymous_loopback)
    }
}

/// The host that `request` names.
fn host(request: &Request) -> Option<Authority> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    let mut hosts = request.headers().get_all(header::HOST).into_iter();
    let host = hosts.next()?.to_str().ok()?.parse().ok()?;
    hosts.next().is_none().then_some(host)
}

fn ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || ip(host).is_some_and(|ip| ip.is_loopback())
}

fn is_allowed_origin(origin: &str, host: &Authority, config: &Config) -> bool {
    if config.serve.allowed_origins.iter().any(|allowed| allowed.trim_end_matches('/') == origin) {
        return true;
    }
    let Some(url) = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
    else {
        return false;
    };
    let own = [format!("http://{host}"), format!("https://{host}")];
    url.host_str().is_some_and(is_loopback) || own.iter().any(|own| own == origin)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn forbidden(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

/// Whether a browser asks if it may send the real request. It sends no token with the question.
fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ORIGIN)
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, accept, idempotency-key, last-event-id, mcp-session-id, \
             mcp-protocol-version, mcp-method, mcp-name",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn allow_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("location, retry-after, mcp-session-id"),
    );
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, routing};
    use tower::ServiceExt as _;

    use super::*;

    struct Scene {
        address: &'static str,
        config: Config,
        anonymous_loopback: bool,
    }

    impl Default for Scene {
        fn default() -> Self {
            let mut config = Config::default();
            config.serve.tokens.insert("ci".to_owned(), "ci-token".to_owned());
            config.serve.allowed_hosts.push("desk.example".to_owned());
            config.serve.allowed_origins.push("https://app.example".to_owned());
            Self { address: "127.0.0.1:8377", config, anonymous_loopback: false }
        }
    }

    impl Scene {
        async fn ask(self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
            async fn who(request: Request) -> String {
                Identity::of(request.extensions()).as_str().to_owned()
            }
            let router = Router::new()
                .route("/v1/status", routing::get(who))
                .route("/healthz", routing::get(who));
            let (_sender, config) = watch::channel(Arc::new(self.config));
            let door = Door {
                token: Token::for_tests("state-token"),
                address: self.address.parse().unwrap(),
                anonymous_loopback: self.anonymous_loopback,
            };
            let mut request = Request::builder().method(method).uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            guard(router, config, door).oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
        }

        async fn status(self, headers: &[(&str, &str)]) -> u16 {
            self.ask(Method::GET, "/v1/status", headers).await.status().as_u16()
        }
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8377");
    const STATE: (&str, &str) = ("authorization", "Bearer state-token");

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_token_is_asked_for_and_names_its_owner_row_59() {
        let refused = Scene::default().ask(Method::GET, "/v1/status", &[HOST]).await;
        assert_eq!(refused.status(), 401);
        assert!(
            refused.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer")
        );
        for (token, owner) in [("state-token", "local"), ("ci-token", "ci")] {
            let header = ("authorization", &*format!("bearer {token}"));
            let response = Scene::default().ask(Method::GET, "/v1/status", &[HOST, header]).await;
            assert_eq!(text(response).await, owner);
        }
        for wrong in ["Bearer nonsense", "Bearer ", "Basic state-token", "state-token"] {
            let status = Scene::default().status(&[HOST, ("authorization", wrong)]).await;
            assert_eq!(status, 401, "{wrong}");
        }
    }

    #[tokio::test]
    async fn an_empty_token_in_the_configuration_lets_nobody_in() {
        let mut scene = Scene::default();
        scene.config.serve.tokens.insert("empty".to_owned(), String::new());
        assert_eq!(scene.status(&[HOST, ("authorization", "Bearer ")]).await, 401);
    }

    #[tokio::test]
    async fn health_is_free() {
        let response = Scene::default().ask(Method::GET, "/healthz", &[]).await;
        assert_eq!(response.status(), 200);
    }

    #[tokio::test]
    async fn anonymity_holds_on_loopback_only() {
        let anonymous = || Scene { anonymous_loopback: true, ..Scene::default() };
        assert_eq!(anonymous().status(&[HOST]).await, 200);
        assert_eq!(anonymous().status(&[HOST, ("authorization", "Bearer wrong")]).await, 401);
        let open = Scene { address: "192.0.2.1:8377", ..anonymous() };
        assert_eq!(open.status(&[("host", "192.0.2.1:8377")]).await, 401);
    }

    #[tokio::test]
    async fn only_known_hosts_are_answered_to() {
        for good in [
            "localhost",
            "LOCALHOST:8377",
            "[::1]:1",
            "127.8.8.8",
            "a.localhost",
            "desk.example:80",
        ] {
            assert_eq!(Scene::default().status(&[("host", good), STATE]).await, 200, "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "192.0.2.1", "notlocalhost"] {
            assert_eq!(Scene::default().status(&[("host", bad), STATE]).await, 403, "{bad}");
        }
        assert_eq!(Scene::default().status(&[STATE]).await, 403);
        assert_eq!(Scene::default().status(&[HOST, ("host", "evil.example"), STATE]).await, 403);
    }

    #[tokio::test]
    async fn only_known_origins_are_let_in() {
        for good in ["http://localhost:3000", "https://app.example", "http://127.0.0.1:8377"] {
            let response = Scene::default()
                .ask(Method::GET, "/v1/status", &[HOST, STATE, ("origin", good)])
                .await;
            assert_eq!(response.status(), 200, "{good}");
            assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], good);
        }
        for bad in [
            "https://evil.example",
            "null",
            "http://app.example",
            "file://",
            "https://app.example.evil",
        ] {
            let headers = [HOST, STATE, ("origin", bad)];
            assert_eq!(Scene::default().status(&headers).await, 403, "{bad}");
        }
    }

    #[tokio::test]
    async fn a_page_of_the_server_itself_is_let_in() {
        let headers = [("host", "desk.example"), STATE, ("origin", "https://desk.example")];
        assert_eq!(Scene::default().status(&headers).await, 200);
    }

    #[tokio::test]
    async fn a_browser_may_ask_first_without_a_token() {
        let ask = ("access-control-request-method", "POST");
        let allowed = [HOST, ("origin", "https://app.example"), ask];
        let response = Scene::default().ask(Method::OPTIONS, "/v1/events", &allowed).await;
        assert_eq!(response.status(), 204);
        let headers = response.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap();
        assert!(headers.contains("authorization") && headers.contains("idempotency-key"));
        let refused = [HOST, ("origin", "https://evil.example"), ask];
        let response = Scene::default().ask(Method::OPTIONS, "/v1/events", &refused).await;
        assert_eq!(response.status(), 403);
    }
}
