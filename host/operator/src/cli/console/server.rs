//! The addresses of the console. All of them only read.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode, Uri, header::CONTENT_TYPE, uri::PathAndQuery},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::future::join_all;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    guard::{Guard, guarded},
    model::Model,
    page::{self, Address, Page},
    updates,
};
use crate::{error_text::with_causes, serve::answer};

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Answers requests until `stop` is cancelled.
pub(super) async fn serve(listeners: Vec<TcpListener>, guard: Guard, model: Arc<Model>, stop: CancellationToken) {
    let asset = |kind: &'static str, text: &'static str| get(async move || ([(CONTENT_TYPE, kind)], text));
    let routes = Router::new()
        .route("/static/console.css", asset("text/css; charset=utf-8", STYLE))
        .route("/static/console.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/static/icon.svg", asset("image/svg+xml", ICON))
        .route("/events", get(updates::events))
        .route("/effect/{group}/{kind}/{namespace}/{name}", get(show).post(effect))
        .route("/candidate", get(show).post(effect))
        .fallback(show)
        .with_state(model)
        .layer(middleware::from_fn_with_state(guard, guarded));
    join_all(listeners.into_iter().map(|listener| answer(listener, routes.clone(), stop.clone()))).await;
}

/// Shows the page at an address.
async fn show(State(model): State<Arc<Model>>, method: Method, uri: Uri) -> Response {
    if method != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, "this page only reads\n").into_response();
    }
    let Some(address) = address(&uri) else { return html(&Page::not_found("There is no such page."), None) };
    let (asked, of) = (Arc::clone(&model), address.clone());
    match model.blocking(async move || page::build(&asked, &of).await).await {
        // A form has no parts that change.
        Ok(page) => html(&page, Some(&address).filter(|_| page.status == StatusCode::OK)),
        Err(error) => html(&Page::failed(&with_causes(error.as_ref())), None),
    }
}

/// Shows the effect of the text in a form.
async fn effect(State(model): State<Arc<Model>>, uri: Uri, body: Bytes) -> Response {
    let Some(address) = address(&uri) else { return html(&Page::not_found("There is no such page."), None) };
    let text = form_urlencoded::parse(&body).find(|(name, _)| name == "yaml").map(|(_, text)| text.into_owned());
    let asked = Arc::clone(&model);
    let text = text.unwrap_or_default();
    match model.blocking(async move || page::effect_of(&asked, &address, &text).await).await {
        Ok(page) => html(&page, None),
        Err(error) => html(&Page::failed(&with_causes(error.as_ref())), None),
    }
}

fn address(uri: &Uri) -> Option<Address> {
    Address::parse(uri.path_and_query().map_or("/", PathAndQuery::as_str))
}

fn html(page: &Page, address: Option<&Address>) -> Response {
    (page.status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.html(address)).into_response()
}
