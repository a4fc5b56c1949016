//! rmcp's service for each profile, made once for each configuration.

use std::{
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use deskbell_core::Invalid;
use http::{HeaderMap, header};
use rmcp::{
    ServerHandler,
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::BODY_LIMIT;
use crate::{
    app::App,
    config::Config,
    mcp::{
        Connection, Door,
        profiles::{self, Profile},
        sessions::Sessions,
    },
};

/// Names under which a client on the same machine reaches it.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// How many services are kept; with one more, all are made again. There is one for each profile, and one more for
/// each further address by which it was reached.
const SERVICE_LIMIT: usize = 32;

/// rmcp's service for the requests of one endpoint.
pub(super) type Service<H> = StreamableHttpService<H, Sessions>;

/// The services of the endpoints.
pub(super) struct Services<H, W> {
    app: Arc<App>,
    stop: CancellationToken,
    sessions: Arc<Sessions>,
    keep_alive: Duration,
    wrap: W,
    made: RwLock<Made<H>>,
}

/// What was made of one configuration.
struct Made<H> {
    config: Arc<Config>,
    services: Vec<Endpoint<H>>,
}

struct Endpoint<H> {
    profile: &'static str,
    /// The further address by which it is reached.
    address: Option<String>,
    service: Arc<Service<H>>,
}

impl<H, W> Services<H, W>
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    pub(super) fn new(
        app: Arc<App>,
        stop: CancellationToken,
        sessions: Arc<Sessions>,
        keep_alive: Duration,
        wrap: W,
    ) -> Self {
        let config = Arc::clone(&app.config.borrow());
        let made = RwLock::new(Made { config, services: Vec::new() });
        Self { app, stop, sessions, keep_alive, wrap, made }
    }

    /// The profile where a path names none.
    pub(super) fn configured_profile(&self) -> &'static str {
        let config = self.app.config.borrow();
        let named = config.mcp.profile.as_deref().unwrap_or(profiles::DEFAULT);
        profiles::find(named).map_or(profiles::DEFAULT, |profile| profile.name)
    }

    /// The service for a request with `headers`, by the newest configuration.
    pub(super) fn get(
        &self,
        profile: &str,
        headers: &HeaderMap,
    ) -> Result<Arc<Service<H>>, Invalid> {
        let host = named_by_address(headers);
        let config = Arc::clone(&self.app.config.borrow());
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&made.config, &config)
            && let Some(service) = made.find(profile, host)
        {
            return Ok(service);
        }
        drop(made);
        let profile = profiles::find(profile)?;
        let service = Arc::new(self.make(profile, &config, host));
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&made.config, &config) || made.services.len() >= SERVICE_LIMIT {
            *made = Made { config, services: Vec::new() };
        }
        let address = host.map(str::to_owned);
        made.services.push(Endpoint {
            profile: profile.name,
            address,
            service: Arc::clone(&service),
        });
        Ok(service)
    }

    fn make(&self, profile: &'static Profile, config: &Config, host: Option<&str>) -> Service<H> {
        let names = config.mcp.tool_names;
        let (app, wrap) = (Arc::clone(&self.app), self.wrap.clone());
        let make =
            move || Ok(wrap(Door::new(Arc::clone(&app), profile, names, Connection::default())));
        let hosts = LOOPBACK.map(str::to_owned).into_iter();
        let hosts = hosts.chain(config.serve.allowed_hosts.clone()).chain(host.map(str::to_owned));
        let origins = LOOPBACK
            .iter()
            .flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:*")));
        let mut options = StreamableHttpServerConfig::default()
            .with_cancellation_token(self.stop.clone())
            .with_max_request_body_bytes(BODY_LIMIT)
            .with_sse_keep_alive(Some(self.keep_alive))
            // The sessions write the first event of a stream themselves; rmcp's has the same id on each.
            .with_sse_retry(None)
            .with_allowed_hosts(hosts)
            .with_allowed_origins(
                origins.chain(config.serve.allowed_origins.iter().map(|o| with_port(o))),
            )
            .enforce_origin_validation();
        options.session_store = self.sessions.store();
        StreamableHttpService::new(make, Arc::clone(&self.sessions), options)
    }
}

impl<H> Made<H> {
    fn find(&self, profile: &str, address: Option<&str>) -> Option<Arc<Service<H>>> {
        let mut endpoints = self.services.iter();
        let found = endpoints
            .find(|endpoint| endpoint.profile == profile && endpoint.address.as_deref() == address);
        found.map(|endpoint| Arc::clone(&endpoint.service))
    }
}

/// Whether a request names this machine in one of the usual ways, or by an address.
pub(super) fn is_reached_locally(headers: &HeaderMap) -> bool {
    host(headers).is_some_and(|host| LOOPBACK.contains(&host))
        || named_by_address(headers).is_some()
}

/// The host of a request that names an address of this machine other than the usual ones. Whoever rebinds a DNS name
/// cannot do without that name, so an address is no danger and the listener's own need not be configured.
fn named_by_address(headers: &HeaderMap) -> Option<&str> {
    let host = host(headers)?;
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (is_address && !LOOPBACK.contains(&host)).then_some(host)
}

/// The host that a request names, without the port.
fn host(headers: &HeaderMap) -> Option<&str> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    Some(match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    })
}

/// An origin with its port, because rmcp takes an entry without one for any port.
fn with_port(origin: &str) -> String {
    match Url::parse(origin) {
        Ok(url) if url.port().is_none() => {
            let port = url.port_or_known_default().unwrap_or_default();
            format!("{}:{port}", origin.trim_end_matches('/'))
        }
        _ => origin.trim_end_matches('/').to_owned(),
    }
}
