//! The HTTP routes.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    extract::{Path, Request},
    http::{
        StatusCode,
        header::{CONTENT_TYPE, HOST},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};

use kaos_policy::printable::{printable, printable_json};
use serde_json::Value;

use super::Report;
use crate::metrics::{self, Metrics};

/// Returns the routes `/livez` and `/readyz`. Also returns `/healthz`, which is the Go operator's route for liveness.
pub(super) fn health(report: Arc<dyn Report>) -> Router {
    let ready = async move || match report.ready() {
        Ok(word) => (StatusCode::OK, printable(&word).into_owned() + "\n"),
        Err(missing) => {
            let lines: Vec<_> = missing.iter().map(|line| printable(line)).collect();
            (StatusCode::SERVICE_UNAVAILABLE, lines.join("\n") + "\n")
        }
    };
    let live = async || "ok\n";
    Router::new().route("/livez", get(live)).route("/healthz", get(live)).route("/readyz", get(ready))
}

/// Returns the route `/metrics`.
pub(super) fn metrics(metrics: Arc<Metrics>) -> Router {
    let page = async move || match metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    Router::new().route("/metrics", get(page))
}

/// Returns the routes `/debug/objects/<kind>/<namespace>/<name>[/decisions]` and `/debug/decisions[/<id>]`, for callers
/// on this machine. The caller must serve these routes only on loopback.
pub(super) fn debug(report: Arc<dyn Report>) -> Router {
    let (listing, of_object, recorded) = (Arc::clone(&report), Arc::clone(&report), Arc::clone(&report));
    let object = async move |Path((kind, namespace, name)): Path<(String, String, String)>| {
        answered(report.explain(kind, namespace, name).await)
    };
    let decisions = async move || answered(listing.decisions());
    let decisions_of = async move |Path((kind, namespace, name)): Path<(String, String, String)>| {
        answered(of_object.decisions_of(&kind, &namespace, &name))
    };
    let decision = async move |Path(id): Path<String>| answered(recorded.decision(id).await);
    Router::new()
        .route("/debug/objects/{kind}/{namespace}/{name}", get(object))
        .route("/debug/objects/{kind}/{namespace}/{name}/decisions", get(decisions_of))
        .route("/debug/decisions", get(decisions))
        .route("/debug/decisions/{id}", get(decision))
        .route_layer(middleware::from_fn(asked_by_local_name))
}

fn answered(known: Result<Value, String>) -> Response {
    match known {
        Ok(known) => {
            let known = printable_json(&format!("{known:#}\n")).into_owned();
            ([(CONTENT_TYPE, "application/json")], known).into_response()
        }
        Err(why) => (StatusCode::NOT_FOUND, format!("{}\n", printable(&why))).into_response(),
    }
}

/// Refuses requests whose host name is not local. It protects against web pages that make their host name point to this
/// machine (DNS rebinding).
async fn asked_by_local_name(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if host.is_none_or(is_local) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "forbidden: use a local address\n").into_response()
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
