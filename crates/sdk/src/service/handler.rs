//! Each request and notification, on its way to the server.

#![expect(deprecated, reason = "clients of 2025-11-25 and before still use what later ones do not")]

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
        CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
        DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams,
        GetSkillResult, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
        ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
        SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use super::{Notifying, Outcome, SET_LEVEL, first_text, refused_level, with_logging};
use crate::{client::Client, declared::Declared, listening, wire};

impl<S: ServerHandler> ServerHandler for Notifying<S> {
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let Some(declared) = context.extensions.get::<Declared>() {
            self.session.declare(declared.clone());
        }
        context.extensions.insert(Client::new(Arc::clone(&self.session)));
        let mut result = self.server.initialize(request, context).await?;
        with_logging(&mut result.capabilities);
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.server.discover(context).await?;
        with_logging(&mut result.capabilities);
        Ok(result)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if wire::is_stateless(&context) {
            return self.server.set_level(request, context).await;
        }
        self.enter(&mut context);
        let level = wire::set_level(&request);
        tracing::debug!(target: crate::TARGET, %level, "the client set its level");
        self.session.set_level(level);
        Ok(())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        let work = |context| self.server.call_tool(request, context);
        let outcome = |response: &CallToolResponse| match response {
            CallToolResponse::Complete(result) if result.is_error == Some(true) => {
                Outcome::Failed(first_text(result))
            }
            CallToolResponse::Complete(_) => Outcome::Done,
            _ => Outcome::Open,
        };
        self.call(context, &name, work, outcome).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name.clone();
        let work = |context| self.server.get_prompt(request, context);
        let outcome = |response: &GetPromptResponse| match response {
            GetPromptResponse::Complete(_) => Outcome::Done,
            _ => Outcome::Open,
        };
        self.call(context, &name, work, outcome).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let work = |context| self.server.read_resource(request, context);
        let outcome = |response: &ReadResourceResponse| match response {
            ReadResourceResponse::Complete(_) => Outcome::Done,
            _ => Outcome::Open,
        };
        self.call(context, "resources/read", work, outcome).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let work = |context| self.server.complete(request, context);
        self.call(context, "completion/complete", work, |_| Outcome::Done).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if !wire::is_stateless(&context) {
            self.enter(&mut context);
            if request.method == SET_LEVEL {
                return Err(refused_level(&request));
            }
            if let Some(narrowed) = self.narrow(&request.method, request.params.as_ref()) {
                return narrowed
                    .map(CustomResult::new)
                    .map_err(|refused| ErrorData::invalid_params(refused.to_string(), None));
            }
        }
        let method = request.method.clone();
        let work = |context| self.server.on_custom_request(request, context);
        self.call(context, &method, work, |_| Outcome::Done).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.enter(&mut context);
        let uri = request.uri.clone();
        let followed = self.session.subscriptions(|subscriptions| subscriptions.follow(&uri));
        followed.map_err(|text| ErrorData::invalid_params(text, None))?;
        match self.server.subscribe(request, context).await {
            Err(error) if !self.answers_instead(&error) => {
                self.session.subscriptions(|subscriptions| subscriptions.unfollow(&uri));
                Err(error)
            }
            _ => Ok(()),
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.enter(&mut context);
        self.session.subscriptions(|subscriptions| subscriptions.unfollow(&request.uri));
        match self.server.unsubscribe(request, context).await {
            Err(error) if !self.answers_instead(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let accepted = self.server.accepted_subscription_filter(requested);
        accepted.or_else(|| Some(listening::accepted(requested)))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        if self.server.accepted_subscription_filter(context.requested()).is_some() {
            return self.server.listen(context).await;
        }
        listening::listen(&self.session.notifier, &context).await;
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.meet(&context.peer);
        self.server.on_initialized(context).await;
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        match self.narrow(&notification.method, notification.params.as_ref()) {
            Some(outcome) => {
                tracing::debug!(target: crate::TARGET, ?outcome, "narrowed without an answer");
            }
            None => self.server.on_custom_notification(notification, context).await,
        }
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = self.server.get_info();
        with_logging(&mut info.capabilities);
        info
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.server.negotiate_initialize(request)?;
        with_logging(&mut result.capabilities);
        Ok(result)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.get_tool(name)
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.server.ping(context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.server.list_tools(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.server.list_prompts(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.server.list_resources(request, context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.server.list_resource_templates(request, context).await
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.server.on_cancelled(notification, context).await;
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.server.on_progress(notification, context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.server.on_roots_list_changed(context).await;
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.server.get_task(request, context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.cancel_task(request, context).await
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.server.list_skills(request, context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.server.get_skill(request, context).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.server.read_resource_directory(request, context).await
    }
}
