//! What Deskbell answers to each MCP request, in both eras, whatever the transport.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult,
        ErrorCode, Implementation, JsonObject, ListToolsResult, MetaObject, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool as Listing,
    },
    service::RequestContext,
};
use serde_json::json;

use super::{
    caller::{Caller, Connection},
    profiles::{Profile, ToolNames},
    tools::{self, Call},
};
use crate::app::App;

/// How long a client may keep a list that only changes with the program.
const STATIC_LIST_TTL_MS: u64 = 60 * 60 * 1000;

/// Methods that are served here. rmcp hands them over as custom requests when their parameters are malformed.
const SERVED_METHODS: &[&str] = &[
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];

/// The MCP server of one connection.
#[derive(Clone)]
pub struct Door {
    app: Arc<App>,
    profile: &'static Profile,
    tool_names: ToolNames,
    connection: Connection,
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
        Self { app, profile, tool_names, connection }
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

/// Whether the request is of the era without sessions, which began with 2026-07-28.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(implementation())
            .with_instructions(self.profile.instructions)
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
        };
        let mut result = call.run(tool, request.arguments.unwrap_or_default()).await;
        if is_modern(&context) {
            result.meta = Some(Self::meta());
        }
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if SERVED_METHODS.contains(&method.as_str()) {
            let text = format!("the parameters of `{method}` are missing or malformed");
            return Err(ErrorData::invalid_params(text, None));
        }
        let data = Some(json!({ "method": method }));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "unknown method", data))
    }
}
