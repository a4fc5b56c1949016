//! Where an event went, and why: each route, each delivery, each attempt.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use deskbell_core::{
    Event,
    level::LevelRange,
    route::{self, Route, Routing, Verdict, Way},
};

use super::{
    deliveries, events,
    problem::Problem,
    query::LIMIT_MAX,
    segment::Segment,
    wire::{DeliveryBody, EventBody, RouteBody, WhyBody},
};
use crate::{app::App, auth::Identity, intake::Rules, journal::DeliveryQuery};

/// Explains an event.
pub(super) async fn why(
    State(app): State<Arc<App>>,
    identity: Option<Extension<Identity>>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let entry = events::find(&app, &id).await?;
    let query =
        DeliveryQuery { event: Some(entry.event.id), limit: LIMIT_MAX, ..DeliveryQuery::default() };
    let found = app.journal.deliveries(query).await?;
    let deliveries: Vec<_> =
        found.into_iter().map(|delivery| deliveries::body(&app, delivery)).collect();
    // A folder names a file to read, so only the user's own look at events looks at it.
    let is_own = identity.is_none_or(|Extension(identity)| identity.as_str() == Identity::LOCAL);
    let folder = entry.event.source.project.as_ref().filter(|_| is_own).map(Path::new);
    let rules = app.intake.rules_from(folder).await;
    let body = WhyBody {
        chosen_by: chosen_by(&entry.event, &deliveries, &rules.routing),
        routes: routes(&entry.event, &rules),
        deliveries,
        event: EventBody::of(entry.cursor, &entry.event),
    };
    Ok(Json(body).into_response())
}

/// What chose the channels when `event` was accepted. Each delivery has its reason; the rules of today explain more,
/// but only where they would decide the same.
fn chosen_by(event: &Event, deliveries: &[DeliveryBody], today: &Routing) -> String {
    let chosen = |reason: &str| route::parts(reason).0.to_owned();
    let then = deliveries.iter().map(|one| (one.channel.clone(), chosen(&one.reason)));
    let then: BTreeSet<_> = then.collect();
    let now = today.choose(event).into_iter();
    let now = now.map(|choice| (choice.channel.to_string(), choice.reason.to_string())).collect();
    if then != now {
        let mut reasons: Vec<_> = then.into_iter().map(|(_, reason)| reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let then = if reasons.is_empty() { "nothing".to_owned() } else { reasons.join(", ") };
        return format!("{then}, as the rules were when it was reported; today's decide otherwise");
    }
    let way = today.way(event);
    let takes_more = matches!(way, Way::Routes | Way::EveryChannel | Way::NotSerious);
    match today.added.is_empty() {
        false if takes_more => format!("{way}; a project that is not trusted may add channels"),
        _ => way.to_string(),
    }
}

/// What each route finds of `event`: the user's or a trusted project's, and those that another project adds.
fn routes(event: &Event, rules: &Rules) -> Vec<RouteBody> {
    let file = |is_trusted| {
        let project = rules.project.as_ref().filter(|project| project.is_trusted == is_trusted);
        project.map(|project| project.file.as_path())
    };
    let mut found = verdicts(event, &rules.routing.routes, file(true));
    found.extend(verdicts(event, &rules.routing.added, file(false)));
    found
}

fn verdicts(event: &Event, routes: &[Route], file: Option<&Path>) -> Vec<RouteBody> {
    let numbered = routes.iter().zip(route::verdicts(routes, event)).enumerate();
    numbered
        .map(|(index, (route, verdict))| RouteBody {
            number: index + 1,
            file: file.map(|file| file.display().to_string()),
            takes: takes(route),
            channels: route.channels.iter().map(ToString::to_string).collect(),
            matches: verdict == Verdict::Matches,
            verdict: verdict.to_string(),
            groups: route.grouping.as_ref().map(ToString::to_string),
        })
        .collect()
}

/// What `route` takes, in the words of the configuration.
fn takes(route: &Route) -> String {
    let mut parts = Vec::new();
    if route.levels != LevelRange::ALL {
        parts.push(format!("level {}", route.levels));
    }
    let mut list = |name: &str, items: Vec<&str>| {
        if !items.is_empty() {
            parts.push(format!("{name} {}", items.join(" or ")));
        }
    };
    list("context", route.contexts.iter().map(deskbell_core::Context::as_str).collect());
    list("kind", route.kinds.iter().map(String::as_str).collect());
    list("client", route.clients.iter().map(String::as_str).collect());
    if parts.is_empty() { "everything".to_owned() } else { parts.join(", ") }
}
