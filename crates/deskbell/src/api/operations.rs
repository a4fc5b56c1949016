//! Every operation of the API, said once: its path, its code, and what the documents tell of it.

use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    channels, deliveries, events, openapi,
    preview::{self, PreviewBody, RequestsBody},
    problem::ProblemBody,
    report::ReportBody,
    runs, snooze, status, stream, why,
    wire::{
        AcceptedBody, ChannelList, DeliveryBody, DeliveryList, EventBody, EventPage, RunBody,
        RunList, SnoozedBody, StatusBody, TestBody, WhyBody,
    },
};
use crate::app::App;

/// One operation.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// A name for clients that are generated.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// More than the summary says.
    pub(super) text: &'static str,
    pub(super) parameters: &'static [&'static [Parameter]],
    pub(super) body: Option<SchemaOf>,
    pub(super) answers: &'static [Answer],
    /// Whether it needs a token.
    pub(super) is_guarded: bool,
    pub(super) handler: fn() -> MethodRouter<Arc<App>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

impl Method {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
        }
    }
}

pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A parameter in the path, the query or the head of a request.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) text: &'static str,
}

const fn in_path(name: &'static str, text: &'static str) -> Parameter {
    Parameter { name, place: "path", text }
}

const fn in_query(name: &'static str, text: &'static str) -> Parameter {
    Parameter { name, place: "query", text }
}

const fn in_head(name: &'static str, text: &'static str) -> Parameter {
    Parameter { name, place: "header", text }
}

/// What an operation answers.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: &'static str,
    pub(super) media_type: &'static str,
    pub(super) schema: Option<SchemaOf>,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn json<T: JsonSchema>(status: u16, text: &'static str) -> Answer {
    Answer { status, text, media_type: "application/json", schema: Some(schema_of::<T>) }
}

const fn plain(text: &'static str) -> Answer {
    Answer { status: 200, text, media_type: "text/plain", schema: None }
}

const fn problem(status: u16, text: &'static str) -> Answer {
    let schema: Option<SchemaOf> = Some(schema_of::<ProblemBody>);
    Answer { status, text, media_type: "application/problem+json", schema }
}

const INVALID: Answer = problem(422, "A value is wrong; `field`, `value` and `expected` name it.");
const NOT_FOUND: Answer = problem(404, "There is no such thing.");
const FAILED: Answer = problem(503, "The journal failed or cannot be written.");

const FILTERS: &[Parameter] = &[
    in_query("level", "Only these levels: one, or a range such as `warning..` or `info..error`."),
    in_query("context", "Only this category."),
    in_query("kind", "Only this kind of event: `notice`, `push` or `run`."),
    in_query("run", "Only steps of this run."),
    in_query("client", "Only what this client reported."),
];

const EVENT_ID: Parameter = in_path("id", "The event's id.");
const DELIVERY_ID: Parameter = in_path("id", "The delivery's id: `EVENT_ID.CHANNEL`.");
const AFTER: Parameter = in_query(
    "after",
    "Only events after this cursor, which is at most the newest event's. After one that is older than what is kept comes what is kept.",
);
const LIMIT: Parameter = in_query("limit", "How many at most, from 1 to 1000; 100 without it.");
const WAIT: Parameter =
    in_query("wait", "Wait up to this many seconds, at most 60, until the outcome is known.");

/// What most operations have in common.
const USUAL: Operation = Operation {
    method: Method::Get,
    path: "",
    id: "",
    summary: "",
    text: "",
    parameters: &[],
    body: None,
    answers: &[],
    is_guarded: true,
    handler: MethodRouter::new,
};

/// All operations, in the order in which they are documented.
pub(super) const ALL: &[Operation] = &[
    Operation {
        method: Method::Post,
        path: "/v1/events",
        id: "report",
        summary: "Report a notice, a push or a step of a run",
        text: "Answers once the event, the deliveries that it needs and the run that it changes are safe on disk. \
               Nothing waits for a channel. A second report with the same key is answered with the first event. With \
               `Content-Type: application/x-ndjson` each line is a report, at most 1000 of them; the answer is 200 \
               with a line for each, in order: what `201` or a problem would say. One that is refused keeps no \
               other from being accepted.",
        parameters: &[&[in_head(
            "Idempotency-Key",
            "Your own name for the report, under which it is accepted once: visible text, at most 200 bytes. Of many \
             reports in one request each gets this key with `:` and the number of its line behind it.",
        )]],
        body: Some(schema_of::<ReportBody<'static>>),
        answers: &[
            json::<AcceptedBody>(201, "Accepted."),
            json::<AcceptedBody>(200, "Accepted before, under the same key."),
            problem(400, "The body is not JSON."),
            problem(409, "The step does not fit its run."),
            problem(413, "The body is too large."),
            problem(415, "The body is of another media type than JSON."),
            INVALID,
            problem(429, "The journal is busy; `Retry-After` says when to try again."),
            FAILED,
        ],
        handler: || post(events::report),
        ..USUAL
    },
    Operation {
        path: "/v1/events",
        id: "listEvents",
        summary: "List events",
        text: "A page at a time, the newest first; with `after`, the oldest first. `next` of a page is where the \
               following one begins.",
        parameters: &[
            FILTERS,
            &[
                AFTER,
                in_query(
                    "before",
                    "Only events before this cursor, which is at most the newest event's.",
                ),
                in_query("since", "Only events accepted at or after this time, ISO 8601."),
                in_query("order", "`newest` or `oldest` first."),
                LIMIT,
            ],
        ],
        answers: &[json::<EventPage<'static>>(200, "A page of events."), INVALID, FAILED],
        handler: || get(events::list),
        ..USUAL
    },
    Operation {
        path: "/v1/events/{id}",
        id: "getEvent",
        summary: "Get an event",
        parameters: &[&[EVENT_ID]],
        answers: &[json::<EventBody<'static>>(200, "The event."), NOT_FOUND, INVALID, FAILED],
        handler: || get(events::one),
        ..USUAL
    },
    Operation {
        path: "/v1/events/{id}/why",
        id: "explainEvent",
        summary: "Explain where an event went",
        text: "Each route with its verdict, and each delivery with its attempts and what it waits for. The routes \
               are those of the configuration as it is now; `reason` of a delivery is what held at acceptance.",
        parameters: &[&[EVENT_ID]],
        answers: &[json::<WhyBody<'static>>(200, "The explanation."), NOT_FOUND, INVALID, FAILED],
        handler: || get(why::why),
        ..USUAL
    },
    Operation {
        path: "/v1/runs",
        id: "listRuns",
        summary: "List runs, the latest change first",
        parameters: &[&[
            in_query("state", "Only runs in this state: `open`, `ended` or `failed`."),
            LIMIT,
        ]],
        answers: &[json::<RunList>(200, "The runs."), INVALID, FAILED],
        handler: || get(runs::list),
        ..USUAL
    },
    Operation {
        path: "/v1/runs/{id}",
        id: "getRun",
        summary: "Get a run",
        parameters: &[&[in_path("id", "The run's id.")]],
        answers: &[json::<RunBody>(200, "The run."), NOT_FOUND, INVALID, FAILED],
        handler: || get(runs::one),
        ..USUAL
    },
    Operation {
        path: "/v1/deliveries",
        id: "listDeliveries",
        summary: "List deliveries, the newest event first",
        text: "With `wait`, answers once all that are found are settled (sent, given up or superseded) or the time \
               is over.",
        parameters: &[&[
            in_query("event", "Only deliveries of this event."),
            in_query("channel", "Only deliveries to this channel."),
            in_query(
                "state",
                "Only deliveries in this state: `pending`, `in_flight`, `sent`, `given_up` or `superseded`.",
            ),
            WAIT,
            LIMIT,
        ]],
        answers: &[json::<DeliveryList>(200, "The deliveries."), INVALID, FAILED],
        handler: || get(deliveries::list),
        ..USUAL
    },
    Operation {
        path: "/v1/deliveries/{id}",
        id: "getDelivery",
        summary: "Get a delivery",
        parameters: &[&[DELIVERY_ID]],
        answers: &[json::<DeliveryBody>(200, "The delivery."), NOT_FOUND, INVALID, FAILED],
        handler: || get(deliveries::one),
        ..USUAL
    },
    Operation {
        method: Method::Post,
        path: "/v1/deliveries/{id}/retry",
        id: "retryDelivery",
        summary: "Try a delivery again that was given up",
        text: "Its attempts are counted anew.",
        parameters: &[&[DELIVERY_ID]],
        answers: &[
            json::<DeliveryBody>(200, "The delivery, due again."),
            NOT_FOUND,
            problem(409, "The delivery was not given up."),
            INVALID,
            FAILED,
        ],
        handler: || post(deliveries::retry),
        ..USUAL
    },
    Operation {
        path: "/v1/channels",
        id: "listChannels",
        summary: "List the configured channels and how they do",
        answers: &[json::<ChannelList>(200, "The channels.")],
        handler: || get(channels::list),
        ..USUAL
    },
    Operation {
        method: Method::Post,
        path: "/v1/channels/{name}/test",
        id: "testChannel",
        summary: "Send a real message through a channel",
        text: "Waits for the far end's answer, 20 seconds where `wait` does not say.",
        parameters: &[&[in_path("name", "The channel."), WAIT]],
        answers: &[
            json::<TestBody>(200, "What it came to."),
            NOT_FOUND,
            problem(409, "The channel is configured and does not work."),
            INVALID,
            FAILED,
        ],
        handler: || post(channels::test),
        ..USUAL
    },
    Operation {
        path: "/v1/snooze",
        id: "listSnoozes",
        summary: "List what is snoozed",
        answers: &[json::<SnoozedBody>(200, "What is snoozed.")],
        handler: || get(snooze::list),
        ..USUAL
    },
    Operation {
        method: Method::Post,
        path: "/v1/snooze",
        id: "snooze",
        summary: "Silence a channel, or all, for a while, or end that",
        text: "What is for it meanwhile is held back until the end, whatever its level. What an earlier snooze holds \
               back is held until the new end, or told now where it is `off`.",
        parameters: &[&[
            in_query("channel", "The channel; all of them without it."),
            in_query("for", "For how long, such as `2h`, at most 366 days; `off` ends it."),
        ]],
        answers: &[json::<SnoozedBody>(200, "What is snoozed now."), NOT_FOUND, INVALID, FAILED],
        handler: || post(snooze::set),
        ..USUAL
    },
    Operation {
        method: Method::Post,
        path: "/v1/channels/preview",
        id: "previewChannel",
        summary: "Show what a channel would send, and send nothing",
        text: "Secrets are masked.",
        body: Some(schema_of::<PreviewBody>),
        answers: &[
            json::<RequestsBody>(200, "The requests."),
            NOT_FOUND,
            problem(409, "The channel is configured and does not work."),
            INVALID,
        ],
        handler: || post(preview::preview),
        ..USUAL
    },
    Operation {
        path: "/v1/status",
        id: "getStatus",
        summary: "Get the particulars of the daemon",
        answers: &[json::<StatusBody>(200, "The particulars.")],
        handler: || get(status::status),
        ..USUAL
    },
    Operation {
        path: "/events",
        id: "follow",
        summary: "Follow events live",
        text: "First the events after the cursor in `Last-Event-ID` or `after`, then each as it is accepted, with \
               no gap and no repeat; without a cursor it begins with the next event. As server-sent events each \
               `id:` is a cursor and each `data:` an event; with `Accept: application/x-ndjson` each line is an \
               event. A viewer that was too slow is told so (`event: lagged`, or a line with `lagged`) and loses \
               nothing. Comments, or blank lines, show that a quiet stream is alive.",
        parameters: &[
            FILTERS,
            &[AFTER, in_head("Last-Event-ID", "The cursor of the last event that was seen.")],
        ],
        answers: &[
            Answer {
                status: 200,
                text: "The stream.",
                media_type: "text/event-stream",
                schema: None,
            },
            problem(406, "`Accept` asks for something else."),
            INVALID,
            problem(503, "There are too many viewers."),
        ],
        handler: || get(stream::follow),
        ..USUAL
    },
    Operation {
        path: "/healthz",
        id: "isAlive",
        summary: "Whether the process answers",
        answers: &[plain("It does.")],
        is_guarded: false,
        handler: || get(status::healthz),
        ..USUAL
    },
    Operation {
        path: "/readyz",
        id: "isReady",
        summary: "Whether reports are accepted",
        text: "Reads the journal, sends a transaction through its writer, and looks whether its disk has at least 16 MiB left.",
        answers: &[plain("They are."), FAILED],
        handler: || get(status::readyz),
        ..USUAL
    },
    Operation {
        path: "/openapi.json",
        id: "describe",
        summary: "This description",
        answers: &[Answer {
            status: 200,
            text: "An OpenAPI 3.1 document.",
            media_type: "application/json",
            schema: None,
        }],
        handler: || get(openapi::serve),
        ..USUAL
    },
];
