use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<TeamsWorkflows>(About {
    name: "teams_workflows",
    title: "Microsoft Teams",
    docs: "https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook",
    transport: Transport::Http {
        accepted: "",
        // A flow that has taken a message answers 202 with nothing, or what its own last step says.
        verdict: Verdict {
            success: Success::NoPage,
            code: Some("/error/code"),
            reason: &["/error/message"],
            hints: &[("WorkflowTriggerIsNotEnabled", "switch the workflow on")],
            ..Verdict::STATUS
        },
        refusals: &[
            Refusal::permanent(401, r#"{"error":{"code":"DirectApiAuthorizationRequired","message":"The request must be authenticated only by Shared Access scheme."}}"#),
            Refusal::permanent(400, r#"{"error":{"code":"WorkflowTriggerIsNotEnabled","message":"Could not execute workflow trigger because it is not enabled."}}"#),
            Refusal::temporary(429, r#"{"error":{"code":"WorkflowRunsThrottled","message":"Too many requests."}}"#),
        ],
    },
    dialect: Dialect::AdaptiveCard,
    // 28 KB for the whole request, of which every line break and quotation mark takes two bytes.
    limits: Limits { title: 500, body: 11_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        url = "https://prod-12.westeurope.logic.azure.com/workflows/5f2c/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=Zm9vYmFyYmF6"
    "#,
})
.with_urls(Urls {
    schemes: &["workflow", "workflows"],
    native: &["*.logic.azure.com", "*.environment.api.powerplatform.com"],
    examples: &[
        "workflows://prod-12.westeurope.logic.azure.com/5f2c/Zm9vYmFyYmF6",
        "workflows://default1.environment.api.powerplatform.com:443/5f2c/Zm9vYmFyYmF6?pa=yes&route=12&ver=2022-03-01-preview",
    ],
    read,
    ..Urls::NONE
});

/// Messages to a Microsoft Teams channel or chat through a workflow.
///
/// 1. In Teams, open the menu of the channel or chat and choose "Workflows".
/// 2. Add "Post to a channel when a webhook request is received", or the one for a chat.
/// 3. Set `url` to the address that appears at the end.
///
/// Teams does not tell whether the workflow could post the message; its runs are listed in Power Automate.
/// The addresses of Office 365 connectors, with `webhook.office.com`, do not work any more.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TeamsWorkflows {
    /// Address of the workflow.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    if url.is_native() {
        return Ok(url::options([("url", Some(url.native_whole().into()))]));
    }
    url.ignore(&["wrap", "template"]);
    url.parameters(':');
    let power_automate = url.parameter("powerautomate").or_else(|| url.parameter("pa"));
    let route = url.parameter("route").or_else(|| url.parameter("routeid"));
    let version = url.parameter("api-version").or_else(|| url.parameter("ver"));
    let workflow = match url.parameter("workflow").or_else(|| url.parameter("id")) {
        Some(workflow) => workflow,
        None => url.next("workflow")?,
    };
    let signature = match url.parameter("signature").or_else(|| url.parameter("sig")) {
        Some(signature) => signature,
        None => url.next("signature")?,
    };
    url.host()?;
    let host = Address::parse(&format!("https://{}", url.authority));
    let mut address = host.ok_or_else(|| url.wrong("names no host"))?;
    if power_automate.is_some_and(|answer| url::is_yes(&answer)) {
        address = address.at(&["powerautomate", "automations", "direct"]);
        if let Some(route) = route {
            address = address.at(&["cu", &route]);
        }
    }
    let address = address
        .at(&["workflows", &workflow, "triggers", "manual", "paths", "invoke"])
        .with("api-version", version.as_deref().unwrap_or("2016-06-01"))
        .with("sp", "/triggers/manual/run")
        .with("sv", "1.0")
        .with("sig", &signature);
    Ok(url::options([("url", Some(address.url().as_str().into()))]))
}

#[async_trait]
impl Channel for TeamsWorkflows {
    fn check(&self) -> Result<(), ConfigError> {
        let host = self.url.url().host_str().unwrap_or_default();
        if host.ends_with("webhook.office.com") || host == "outlook.office.com" {
            let gone =
                "`url` is one of an Office 365 connector, which work no more; make a workflow";
            return Err(ConfigError(gone.to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        cx.post(&self.url).json(&card(message)).delivered(&KIND).await
    }
}

/// An Adaptive Card. What a `TextRun` says is read literally, what a `TextBlock` says as Markdown.
fn card(message: &Message) -> Value {
    let color = match message.level {
        Level::Debug | Level::Info | Level::Notice => "Default",
        Level::Warning => "Warning",
        Level::Error | Level::Critical | Level::Alert | Level::Emergency => "Attention",
    };
    let text = KIND.about.dialect.body(message);
    let literal = |run: Value| json!({ "type": "RichTextBlock", "inlines": [run] });
    let title = message.title.as_ref().map(|title| {
        let title = format!("{}{title}", mark(message.level));
        literal(json!({ "type": "TextRun", "text": title, "weight": "Bolder", "size": "Medium", "color": color }))
    });
    let body = match message.format {
        Format::Text => literal(json!({ "type": "TextRun", "text": text })),
        Format::Markdown => json!({ "type": "TextBlock", "text": text, "wrap": true }),
    };
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": title.into_iter().chain([body]).collect::<Vec<_>>(),
                "msteams": { "width": "full" },
            },
        }],
    })
}

#[cfg(test)]
mod tests {
    use crate::catalog::from_url;

    #[test]
    fn addresses_of_workflows_are_channels() {
        #[track_caller]
        fn check(address: &str, url: &str) {
            let read = from_url(address).unwrap();
            assert_eq!(
                (read.kind, read.options.get("url").unwrap().as_str()),
                ("teams_workflows", Some(url))
            );
        }
        let own = "https://prod-12.westeurope.logic.azure.com:443/workflows/5f2c/triggers/manual/paths/invoke\
            ?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=a_b";
        check(own, own);
        check("workflows://prod-12.westeurope.logic.azure.com/5f2c/a_b", &own.replace(":443", ""));
        check(
            "workflow://x.api.powerplatform.com/?id=5f2c&sig=a_b&pa=yes&route=12&ver=2",
            "https://x.api.powerplatform.com/powerautomate/automations/direct/cu/12/workflows/5f2c/\
             triggers/manual/paths/invoke?api-version=2&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=a_b",
        );
    }
}
