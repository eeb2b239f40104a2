//! The addresses of the console. No request to these addresses changes anything in the cluster.

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
    page::{self, Address, Extent, Page},
    site::Site,
    updates,
};
use crate::{error_text::with_causes, serve::answer_for_long};

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Answers requests until `stop` is cancelled.
pub(super) async fn serve(listeners: Vec<TcpListener>, guard: Guard, model: Arc<Model>, stop: CancellationToken) {
    let site = Site { model, base: guard.base() };
    let asset = |kind: &'static str, text: &'static str| get(async move || ([(CONTENT_TYPE, kind)], text));
    let routes = Router::new()
        .route("/static/console.css", asset("text/css; charset=utf-8", STYLE))
        .route("/static/console.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/static/icon.svg", asset("image/svg+xml", ICON))
        .route("/events", get(updates::events))
        .route("/effect/{group}/{kind}/{namespace}/{name}", get(show).post(effect))
        .route("/candidate", get(show).post(effect))
        .fallback(show)
        .with_state(site);
    // The guard removes the secret path from the address, so the guard must run before the router chooses the page.
    let routes = Router::new().fallback_service(routes).layer(middleware::from_fn_with_state(guard, guarded));
    join_all(listeners.into_iter().map(|listener| answer_for_long(listener, routes.clone(), stop.clone()))).await;
}

/// Shows the page at an address.
async fn show(State(site): State<Site>, method: Method, uri: Uri) -> Response {
    if method != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, "this page only reads\n").into_response();
    }
    let Some(address) = address(&uri) else { return html(&site, &Page::not_found("There is no such page."), None) };
    let (asked, of) = (Arc::clone(&site.model), address.clone());
    match site.model.blocking(async move |_| page::build(&asked, &of, Extent::Whole).await).await {
        // With an address, the browser asks for updates of the page's parts. A page with only a form has no such parts,
        // so the address does no harm there.
        Ok(page) => html(&site, &page, Some(&address).filter(|_| page.status == StatusCode::OK)),
        Err(error) => html(&site, &Page::failed(&with_causes(error.as_ref())), None),
    }
}

/// Shows the effect of the text that the user wrote into a form.
async fn effect(State(site): State<Site>, uri: Uri, body: Bytes) -> Response {
    let Some(address) = address(&uri) else { return html(&site, &Page::not_found("There is no such page."), None) };
    let text = form_urlencoded::parse(&body).find(|(name, _)| name == "yaml").map(|(_, text)| text.into_owned());
    let asked = Arc::clone(&site.model);
    let text = text.unwrap_or_default();
    match site.model.blocking(async move |unwanted| page::effect_of(&asked, &address, &text, &unwanted).await).await {
        Ok(page) => html(&site, &page, None),
        Err(error) => html(&site, &Page::failed(&with_causes(error.as_ref())), None),
    }
}

fn address(uri: &Uri) -> Option<Address> {
    Address::parse(uri.path_and_query().map_or("/", PathAndQuery::as_str))
}

fn html(site: &Site, page: &Page, address: Option<&Address>) -> Response {
    (page.status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.html(&site.base, address)).into_response()
}
