//! What Deskbell answers to each MCP request, in both eras, whatever the transport.

use std::sync::Arc;

use deskbell_sdk::{Client, Declared};
use futures_util::future::join_all;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
        Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, Tool as Listing, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext, SubscriptionSendError, SubscriptionSink},
};
use serde_json::json;

use super::{
    caller::{Caller, Connection},
    profiles::{Profile, ToolNames},
    prompts,
    resources::{self, Address, Follower, MIME_TYPE, SUBSCRIPTION_LIMIT, Subscriptions},
    told::{Failures, Lists},
    tools::{self, Call},
};
use crate::app::App;

/// How long a client may keep a list that only changes with the program.
const STATIC_LIST_TTL_MS: u64 = 60 * 60 * 1000;

/// Methods that are served here in both eras. rmcp hands them over as custom requests when their parameters are
/// malformed.
const SERVED_METHODS: &[&str] = &[
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// Further methods of the era with sessions.
const SESSION_METHODS: &[&str] =
    &["initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"];

/// Further methods of the era without sessions.
const SESSIONLESS_METHODS: &[&str] = &["subscriptions/listen"];

/// The MCP server of one connection.
#[derive(Clone)]
pub struct Door {
    app: Arc<App>,
    profile: &'static Profile,
    tool_names: ToolNames,
    connection: Connection,
    subscriptions: Subscriptions,
    failures: Failures,
}

impl Door {
    /// The server that a connection with `profile` meets. `tool_names` goes before the profile's own.
    pub fn new(
        app: Arc<App>,
        profile: &'static Profile,
        tool_names: Option<ToolNames>,
        connection: Connection,
    ) -> Self {
        let tool_names = tool_names.unwrap_or(profile.tool_names);
        let (subscriptions, failures) = (Subscriptions::default(), Failures::default());
        Self { app, profile, tool_names, connection, subscriptions, failures }
    }

    /// The server's identity, which the modern era wants on every result.
    fn meta() -> MetaObject {
        let mut meta = JsonObject::new();
        let identity = serde_json::to_value(implementation()).unwrap_or_default();
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), identity);
        meta.into()
    }
}

fn implementation() -> Implementation {
    Implementation::new("deskbell", env!("CARGO_PKG_VERSION"))
        .with_title("Deskbell")
        .with_description("Messages between AI agents and people, both ways, and none lost")
}

fn address(uri: &str) -> Result<Address, ErrorData> {
    uri.parse::<Address>().map_err(|invalid| not_found(invalid.to_string(), uri))
}

fn not_found(text: String, uri: &str) -> ErrorData {
    ErrorData::resource_not_found(text, Some(json!({ "uri": uri })))
}

/// Tells a session of each change of a resource, with the time, until it is gone.
async fn tell_session(client: Client, uri: String, mut follower: Follower) {
    while follower.changed().await {
        client.resource_updated(&uri);
    }
}

/// Tells a listen stream whenever the lists may have changed, until it is gone.
async fn tell_listener_of_lists(sink: &SubscriptionSink, mut lists: Lists) {
    while lists.changed().await {
        let told =
            [sink.notify_tool_list_changed().await, sink.notify_resource_list_changed().await];
        if told.iter().any(|told| matches!(told, Err(SubscriptionSendError::SubscriptionClosed))) {
            return;
        }
    }
}

/// Tells a listen stream of each change of a resource, until it is gone.
async fn tell_listener(sink: &SubscriptionSink, uri: &str, mut follower: Follower) {
    while follower.changed().await {
        if sink.notify_resource_updated(uri).await.is_err() {
            return;
        }
    }
}

/// Whether the request is of the era without sessions, which began with 2026-07-28.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(implementation())
            .with_instructions(self.profile.instructions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // Over HTTP it comes along with the request's head; on the local socket the SDK finds it itself.
        let parts = context.extensions.get::<http::request::Parts>();
        if let Some(declared) = parts.and_then(|parts| parts.extensions.get::<Declared>())
            && let Some(client) = Client::of(&context)
        {
            client.declare(declared.clone());
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = ListToolsResult::with_all_items(self.profile.list(self.tool_names))
            .with_ttl_ms(STATIC_LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public);
        if is_modern(&context) {
            result.meta = Some(Self::meta());
        } else {
            (result.ttl_ms, result.cache_scope) = (None, None);
        }
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Listing> {
        self.profile.list(self.tool_names).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            let listed: Vec<_> =
                self.profile.list(self.tool_names).into_iter().map(|tool| tool.name).collect();
            let text = format!("unknown tool; this server has {}", listed.join(", "));
            return Err(ErrorData::invalid_params(text, Some(json!({ "name": request.name }))));
        };
        let call = Call {
            app: &self.app,
            profile: self.profile,
            name: &request.name,
            caller: Caller::new(&self.connection, &context),
            failures: &self.failures,
        };
        let mut result = call.run(tool, request.arguments.unwrap_or_default()).await;
        if is_modern(&context) {
            result.meta = Some(Self::meta());
        }
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut result = ListResourcesResult::with_all_items(resources::list());
        if is_modern(&context) {
            result = result.with_ttl_ms(STATIC_LIST_TTL_MS).with_cache_scope(CacheScope::Public);
            result.meta = Some(Self::meta());
        }
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = ListResourceTemplatesResult::with_all_items(resources::templates());
        if is_modern(&context) {
            result = result.with_ttl_ms(STATIC_LIST_TTL_MS).with_cache_scope(CacheScope::Public);
            result.meta = Some(Self::meta());
        }
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let address = address(&request.uri)?;
        let document = resources::read(self.app.journal.as_ref(), &address)
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
            .ok_or_else(|| not_found("nothing is known under this uri".to_owned(), &request.uri))?;
        let contents = ResourceContents::text(document, request.uri).with_mime_type(MIME_TYPE);
        let mut result = ReadResourceResult::new(vec![contents]);
        if is_modern(&context) {
            result.meta = Some(Self::meta());
        }
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let caller = Caller::new(&self.connection, &context);
        let mut result = prompts::list(&self.app, &caller, cursor.as_deref()).await?;
        if is_modern(&context) {
            result = result.with_ttl_ms(prompts::LIST_TTL_MS).with_cache_scope(CacheScope::Private);
            result.meta = Some(Self::meta());
        }
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = Caller::new(&self.connection, &context);
        let arguments = request.arguments.unwrap_or_default();
        let mut result = prompts::get(&self.app, &caller, &request.name, arguments).await?;
        if is_modern(&context) {
            result.meta = Some(Self::meta());
        }
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = Caller::new(&self.connection, &context);
        let mut result = prompts::complete(&self.app, &caller, request).await?;
        if is_modern(&context) {
            result.meta = Some(Self::meta());
        }
        Ok(result)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (uri, address) = (request.uri.clone(), address(&request.uri)?);
        let follower = Follower::start(Arc::clone(&self.app.journal), address).await;
        let client = Client::of(&context)
            .ok_or_else(|| ErrorData::internal_error("subscriptions belong to a session", None))?;
        let telling = tell_session(client, uri.clone(), follower);
        if self.subscriptions.start(uri, telling) {
            return Ok(());
        }
        let text = format!("at most {SUBSCRIPTION_LIMIT} subscriptions on one connection");
        Err(ErrorData::invalid_params(text, None))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known = uris.filter(|uri| uri.parse::<Address>().is_ok()).take(SUBSCRIPTION_LIMIT);
        let lists = SubscriptionFilter::builder().tools_list_changed().resources_list_changed();
        Some(lists.resource_subscriptions(known.cloned()).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let lists = Lists::new(self.app.channels.clone());
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let mut telling = Vec::new();
        for uri in uris {
            if let Ok(address) = uri.parse() {
                let follower = Follower::start(Arc::clone(&self.app.journal), address).await;
                telling.push(tell_listener(context.sink(), uri, follower));
            }
        }
        tokio::select! {
            () = context.cancelled() => {}
            // Where there is nothing to tell, or no longer, the stream stays open until its client leaves.
            () = async {
                drop(join_all(telling).await);
                std::future::pending::<()>().await;
            } => {}
            () = async {
                tell_listener_of_lists(context.sink(), lists).await;
                std::future::pending::<()>().await;
            } => {}
        }
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let of_the_era = if is_modern(&context) { SESSIONLESS_METHODS } else { SESSION_METHODS };
        if SERVED_METHODS.iter().chain(of_the_era).any(|served| *served == method) {
            let text = format!("the parameters of `{method}` are missing or malformed");
            return Err(ErrorData::invalid_params(text, None));
        }
        let data = Some(json!({ "method": method }));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "unknown method", data))
    }
}
