//! What a tool gets: the way to tell its caller something.

use std::sync::{Arc, Once};

use rmcp::{
    ErrorData, RoleServer,
    handler::server::common::{AsRequestContext, FromContextPart},
    service::RequestContext,
};

use crate::{call::Call, log::Log, notify::Notify};

/// What a tool gets to tell its caller something while it works.
///
/// Any tool and prompt of an rmcp server with [`Notifying`](crate::Notifying) around it takes it as an argument.
/// Everything on it may be called at any time: where the client cannot or does not want to hear, nothing happens.
///
/// ```
/// use deskbell_sdk::ToolContext;
/// use rmcp::{tool, tool_router};
///
/// struct Files;
///
/// #[tool_router]
/// impl Files {
///     #[tool(description = "Reads all files")]
///     async fn read_all(&self, cx: ToolContext) -> String {
///         cx.log.info("reading");
///         let mut progress = cx.notify.progress("Reading files", 3.0);
///         for file in ["a", "b", "c"] {
///             progress.increment_with(1.0, format!("read {file}"));
///         }
///         "read 3 files".to_owned()
///     }
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// Messages of eight levels.
    pub log: Log,
    /// Progress, and changes of resources and lists.
    pub notify: Notify,
}

impl ToolContext {
    /// One that tells nobody, for tests of tools.
    pub fn silent() -> Self {
        Self::from(None)
    }

    /// The context of the request that `context` belongs to, also of a prompt or a resource.
    ///
    /// Without [`Notifying`](crate::Notifying) around the server it tells nobody: nothing would know when the call has
    /// its answer, behind which nothing may be told, and whether it failed.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        static MISSING: Once = Once::new();
        let call = context.extensions.get::<Arc<Call>>().cloned();
        if call.is_none() {
            MISSING.call_once(|| {
                tracing::warn!(target: crate::TARGET,
                    "tools tell nobody what they do: `Notifying` is not around the server");
            });
        }
        Self::from(call)
    }
}

impl From<Option<Arc<Call>>> for ToolContext {
    fn from(call: Option<Arc<Call>>) -> Self {
        Self { log: Log::new(call.clone()), notify: Notify::new(call) }
    }
}

impl<C: AsRequestContext> FromContextPart<C> for ToolContext {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        Ok(Self::of(context.as_request_context()))
    }
}
