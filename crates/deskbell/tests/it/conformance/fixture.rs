//! A server with the suite's tools, resources and prompts, and everything that Deskbell's own door has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(deprecated, reason = "the suite still checks what the newest revision only tolerates")]

use std::sync::Arc;

use deskbell::mcp::Door;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult,
        GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, RequestStateCodec, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;

use super::{asking, offers};

const KEY: &[u8] = b"a key of the conformance fixture, at least 32 bytes";

/// Our door with the suite's offers beside ours.
pub(super) struct Fixture {
    door: Door,
    codec: Arc<RequestStateCodec>,
}

impl Fixture {
    pub(super) fn new(door: Door) -> Self {
        Self { door, codec: Arc::new(RequestStateCodec::try_new(KEY).unwrap()) }
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.door.get_info();
        info.capabilities.prompts = Some(Default::default());
        info.capabilities.completions = Some(Default::default());
        info.capabilities.logging = Some(Default::default());
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = self.door.list_tools(request, context).await?;
        result.tools.extend(offers::tools());
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let ours = || offers::tools().into_iter().find(|tool| tool.name == name);
        self.door.get_tool(name).or_else(ours)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name.starts_with("test_input_required") {
            return asking::call(&self.codec, &request, &context);
        }
        match offers::call(&request, &context).await {
            Some(answer) => answer,
            None => self.door.call_tool(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut result = self.door.list_resources(request, context).await?;
        result.resources.extend(offers::resources());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = self.door.list_resource_templates(request, context).await?;
        result.resource_templates.extend(offers::resource_templates());
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match offers::read(&request.uri) {
            Some(result) => Ok(result.into()),
            None => self.door.read_resource(request, context).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if offers::read(&request.uri).is_some() {
            return Ok(());
        }
        self.door.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.door.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.door.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.door.listen(context).await
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(offers::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            return asking::prompt(&request);
        }
        let arguments = request.arguments.unwrap_or_default();
        offers::prompt(&request.name, &arguments)
            .map(Into::into)
            .ok_or_else(|| ErrorData::invalid_params("unknown prompt", None))
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            let method = json!({ "method": "logging/setLevel" });
            let code = rmcp::model::ErrorCode::METHOD_NOT_FOUND;
            return Err(ErrorData::new(code, "unknown method", Some(method)));
        }
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.door.on_custom_request(request, context).await
    }
}
