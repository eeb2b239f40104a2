//! Handles one request from its bytes to the answer: parses the request, injects faults, and calls the API.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::{
    answer::{error, failure, render},
    body::{Body, Disconnected},
    stream::Watcher,
};
use crate::{
    api::{self, Answer, Call, Context, Options, Presentation, Route, Target},
    clock,
    faults::{Attempt, Entry, Failure, Outcome, Verb},
    inner::Inner,
    lock::lock,
    status::ApiError,
};

/// Answers a request.
pub(super) async fn respond(
    cluster: &Arc<Inner>,
    parts: Parts,
    body: Bytes,
    user: Option<String>,
) -> Result<Response<Body>, Disconnected> {
    let user = user.unwrap_or_else(|| user_of(cluster, &parts.headers));
    let call = match understand(cluster, &parts, body, user) {
        Ok(call) => call,
        Err(refusal) => return Ok(error(&refusal)),
    };
    let attempt = attempt(&call);
    let verdict = cluster.decide(&attempt);
    if !verdict.delay.is_zero() {
        tokio::time::sleep(verdict.delay).await;
    }
    let back = match verdict.outcome {
        Outcome::FailBefore(how) => return fail(cluster, &attempt, how),
        Outcome::Stale(back) => back,
        _ => 0,
    };
    let access = lock(&cluster.access).clone();
    let checked = cluster.with_state(|state| access.check(&attempt, &state.store));
    if let Err(refusal) = checked {
        record(cluster, &attempt, refusal.code);
        return Ok(error(&refusal));
    }
    if let Some(log) = log(cluster, &call) {
        record(cluster, &attempt, StatusCode::OK);
        return Ok(log);
    }
    let now = clock::text(cluster.now());
    let context = Context { now: &now, back, access: &access };
    let (answer, changed) = {
        let mut state = lock(&cluster.state);
        let changed = state.store.subscribe();
        (api::handle(&mut state, &call, &context), changed)
    };
    if attempt.verb.is_write() && answer.is_ok() {
        cluster.applied(&attempt);
    }
    if let (Outcome::FailAfter(how), Ok(_)) = (verdict.outcome, &answer) {
        return fail(cluster, &attempt, how);
    }
    match answer {
        Ok(Answer::Watch(watch)) => {
            record(cluster, &attempt, StatusCode::OK);
            let watcher = Watcher::new(Arc::clone(cluster), watch, attempt, changed, cluster.cuts());
            let body = StreamBody::new(watcher.frames().boxed()).boxed_unsync();
            let mut response = Response::new(body);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok(response)
        }
        Ok(answer) => {
            let response = render(&answer, &call.accept, &call.options.include_object, cluster.now());
            record(cluster, &attempt, response.status());
            Ok(response)
        }
        Err(refusal) => {
            record(cluster, &attempt, refusal.code);
            Ok(error(&refusal))
        }
    }
}

/// Answers a request for a log that a test wrote. Returns `None` for all other requests.
fn log(cluster: &Arc<Inner>, call: &Call) -> Option<Response<Body>> {
    let Target::Object { resource, namespace, name, subresource } = &call.target else { return None };
    if (resource.group.as_str(), resource.plural.as_str(), subresource.as_str()) != ("", "pods", "log") {
        return None;
    }
    let key = [namespace, name, &call.options.container].map(Clone::clone);
    let is_read = call.verb == Verb::Get && cluster.logs.has(&key);
    let reader = is_read.then(|| cluster.logs.open(key, call.options.tail_lines, call.options.follow))?;
    let lines = stream::unfold(reader, async |mut reader| {
        let line = reader.line().await?;
        Some((Ok(Frame::data(Bytes::from(line + "\n"))), reader))
    });
    let mut response = Response::new(StreamBody::new(lines.boxed()).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Some(response)
}

fn fail(cluster: &Arc<Inner>, attempt: &Attempt, how: Failure) -> Result<Response<Body>, Disconnected> {
    let failure = failure(how, &attempt.resource, &attempt.name);
    let code = failure.as_ref().map_or(0, |failure| failure.code.as_u16());
    cluster.journal.record(Entry { at: cluster.now(), attempt: attempt.clone(), code, revision: cluster.revision() });
    failure.map(|failure| error(&failure)).ok_or(Disconnected)
}

fn record(cluster: &Arc<Inner>, attempt: &Attempt, code: StatusCode) {
    cluster.journal.record(Entry {
        at: cluster.now(),
        attempt: attempt.clone(),
        code: code.as_u16(),
        revision: cluster.revision(),
    });
}

fn understand(cluster: &Arc<Inner>, parts: &Parts, body: Bytes, user: String) -> Result<Call, ApiError> {
    let accept = text(&parts.headers, header::ACCEPT);
    if !Presentation::acceptable(&accept) {
        let message = "only the following media types are accepted: application/json";
        return Err(ApiError::plain(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message));
    }
    let options = Options::parse(parts.uri.query().unwrap_or_default())?;
    let Route { verb, target } = {
        let state = lock(&cluster.state);
        let route = api::route(&state.catalogue, &parts.method, parts.uri.path(), options.watch);
        route.map_err(|error| match &cluster.instead {
            Some(there_is) if error.code == StatusCode::NOT_FOUND => ApiError::no_route_but(there_is),
            _ => error,
        })?
    };
    Ok(Call {
        verb,
        target,
        options,
        content_type: text(&parts.headers, header::CONTENT_TYPE),
        accept,
        user,
        program: text(&parts.headers, header::USER_AGENT),
        body,
    })
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn user_of(cluster: &Arc<Inner>, headers: &HeaderMap) -> String {
    let header = text(headers, header::AUTHORIZATION);
    let token = header.strip_prefix("Bearer ").unwrap_or("admin");
    lock(&cluster.users).get(token).cloned().unwrap_or_else(|| token.to_owned())
}

fn attempt(call: &Call) -> Attempt {
    let (group, resource, namespace, name, subresource) = match &call.target {
        Target::Objects { resource, namespace } => {
            let name = call.options.fields.name().unwrap_or_default();
            (resource.group.as_str(), resource.plural.as_str(), namespace.as_str(), name, "")
        }
        Target::Object { resource, namespace, name, subresource } => {
            (resource.group.as_str(), resource.plural.as_str(), namespace.as_str(), name.as_str(), subresource.as_str())
        }
        Target::Document(_) => ("", "", "", "", ""),
    };
    Attempt {
        user: call.user.clone(),
        program: call.program.clone(),
        verb: call.verb,
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        content_type: call.content_type.clone(),
        dry_run: call.options.dry_run,
    }
}
