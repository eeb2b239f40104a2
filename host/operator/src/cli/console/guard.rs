//! Checks requests to the console. The console answers only a browser that got an address with a secret, and only if
//! the `Host` of the request is a local name.
//!
//! The address in the terminal contains a secret. The first request exchanges the secret for a cookie with another
//! secret. A browser sends the cookies of 127.0.0.1 to every port, and another user of this machine may have a server
//! on another port. So all pages are below a secret path, and the cookie is only for this path. A page of another site
//! can make a browser send requests to this machine. The console recognizes such requests: they lack the cookie
//! (`SameSite=Strict`), or have another `Host` (DNS rebinding) or another `Origin`.
//!
//! The browser opens a file that contains one more secret, see [`super::opening`]. This secret is valid once, and only
//! for a short time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, ORIGIN, REFERRER_POLICY, SET_COOKIE,
            X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use kaos_policy::printable::printable;
use maud::{DOCTYPE, html};
use tokio::time::Instant;

use crate::{cli::output::complain, locking::lock};

/// Tells the browser to load only files of the console, to run no inline script, and to show the page in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The query parameter with the secret, in the address for the first request.
const PARAMETER: &str = "token=";
/// The length of a secret, in bytes.
const LENGTH: usize = 32;
/// The time for which the secret in the opening file is valid.
const OPENING: Duration = Duration::from_mins(2);

/// The secrets of one console, and its port.
#[derive(Clone)]
pub(super) struct Guard {
    /// The secret of the address in the terminal.
    token: Arc<str>,
    /// The value of the cookie.
    cookie: Arc<str>,
    /// The path below which all pages are, such as `/1f…`.
    base: Arc<str>,
    once: Arc<Mutex<Once>>,
    port: u16,
}

/// The secret in the opening file. A browser can use it only once.
#[derive(Debug)]
struct Once {
    secret: String,
    until: Instant,
    is_used: bool,
}

impl Guard {
    /// Creates the secrets of a console on this port.
    pub(super) fn new(port: u16) -> anyhow::Result<Self> {
        let once = Once { secret: secret()?, until: Instant::now() + OPENING, is_used: false };
        let (token, cookie, base) = (secret()?.into(), secret()?.into(), format!("/{}", secret()?).into());
        Ok(Self { token, cookie, base, once: Arc::new(Mutex::new(once)), port })
    }

    /// Returns the address that the console prints for the user.
    pub(super) fn address(&self) -> String {
        self.address_with(&self.token)
    }

    /// Returns the address to which the opening file leads the browser. The address is valid once.
    pub(super) fn opening(&self) -> String {
        self.address_with(&lock(&self.once).secret)
    }

    /// Returns the secret path.
    pub(super) fn base(&self) -> Arc<str> {
        Arc::clone(&self.base)
    }

    fn address_with(&self, secret: &str) -> String {
        format!("http://127.0.0.1:{}/?{PARAMETER}{secret}", self.port)
    }

    /// Returns the name of the cookie. The name contains the port, because several consoles can run at once.
    fn cookie_name(&self) -> String {
        format!("kaos-console-{}", self.port)
    }

    /// Returns whether a text is one of the secrets.
    fn lets_in(&self, text: &str) -> bool {
        if is_equal(text, &self.token) {
            return true;
        }
        let mut once = lock(&self.once);
        if !is_equal(text, &once.secret) {
            return false;
        }
        let is_new = !once.is_used && Instant::now() < once.until;
        once.is_used = true;
        drop(once);
        if !is_new {
            complain(
                "note",
                "a program used the opening file again, or too late, and got no page: open the address above",
            );
        }
        is_new
    }

    fn is_local(&self, host: &str) -> bool {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        names.iter().any(|name| *host == format!("{name}:{}", self.port))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(of, value)| of == name && is_equal(value, &self.cookie))
    }

    /// Returns the address of a page without the secret path; `None` if the path is not below the secret path.
    fn inner(&self, uri: &Uri) -> Option<Uri> {
        let (secret, rest) = uri.path().strip_prefix('/')?.split_once('/')?;
        if !is_equal(secret, self.base.strip_prefix('/')?) {
            return None;
        }
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("/{rest}{query}").parse().ok()
    }

    /// Returns why the console refuses a request; `None` if the request may pass.
    fn refusal(&self, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        if !text(&HOST).is_some_and(|host| self.is_local(host)) {
            return Some((StatusCode::MISDIRECTED_REQUEST, "use the address that the terminal shows"));
        }
        if !self.has_cookie(headers) {
            return Some((StatusCode::FORBIDDEN, "open the address that `console` printed in the terminal"));
        }
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|host| self.is_local(host));
        let is_foreign = text(&ORIGIN).is_some_and(|origin| !is_own(origin));
        // Refuse the value `same-site`, too: browsers send it for requests of pages on other ports of this machine.
        let of_site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        let is_cross = of_site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        if is_foreign || is_cross {
            return Some((StatusCode::FORBIDDEN, "only pages of the console may send this request"));
        }
        None
    }
}

fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("this system has no random numbers: {error}"))?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).concat())
}

/// Compares all bytes, so that the duration of the comparison does not show how many bytes are right.
fn is_equal(text: &str, secret: &str) -> bool {
    let differences = text.bytes().zip(secret.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    text.len() == secret.len() && differences == 0
}

/// Lets a request pass, exchanges the secret for a cookie, or refuses the request.
pub(super) async fn guarded(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_local = headers.get(HOST).and_then(|host| host.to_str().ok()).is_some_and(|host| guard.is_local(host));
    let query = request.uri().query().unwrap_or_default();
    let may_enter = is_local && request.method() == Method::GET && request.uri().path() == "/";
    let refused = |status: StatusCode, why: &str| (status, format!("{}\n", printable(why))).into_response();
    let mut response = match query.strip_prefix(PARAMETER) {
        Some(token) if may_enter && guard.lets_in(token) => enter(&guard),
        _ => match (guard.refusal(headers), guard.inner(request.uri())) {
            (Some((status, why)), _) => refused(status, why),
            (None, None) => refused(StatusCode::NOT_FOUND, "open the address that `console` printed in the terminal"),
            (None, Some(inner)) => {
                *request.uri_mut() = inner;
                next.run(request).await
            }
        },
    };
    protect(response.headers_mut());
    response
}

/// Answers the first request: sets the cookie, and makes the browser load the secret path. An HTTP redirect would fail,
/// because the browser would not send the cookie: it would treat the page or file that led to the console as the origin
/// of the redirected request.
fn enter(guard: &Guard) -> Response {
    let cookie = format!("{}={}; Path={}/; HttpOnly; SameSite=Strict", guard.cookie_name(), guard.cookie, guard.base);
    let to = format!("{}/", guard.base);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (to) };
                title { "KAOS console" }
            }
            body { p { a href=(to) { "Open the console" } } }
        }
    };
    let kind = "text/html; charset=utf-8".to_owned();
    ([(SET_COOKIE, cookie), (CONTENT_TYPE, kind)], page.into_string()).into_response()
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        // Do not use `no-referrer`: with it, a browser sends a form with the origin `null`, which the guard refuses.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_passes_only_with_the_cookie_a_local_name_and_the_own_origin() {
        let guard = Guard::new(8000).expect("secrets");
        let cookie = format!("x=1; kaos-console-8000={}", guard.cookie);
        let status = |given: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(*name, HeaderValue::from_str(value).expect("a header"));
            }
            guard.refusal(&headers).map(|(status, _)| status.as_u16())
        };
        let host = ("host", "127.0.0.1:8000");
        let own = ("cookie", cookie.as_str());
        assert_eq!(status(&[host, own]), None);
        assert_eq!(status(&[("host", "localhost:8000"), own]), None);
        assert_eq!(status(&[("host", "[::1]:8000"), own]), None);
        assert_eq!(status(&[host]), Some(403));
        assert_eq!(status(&[host, ("cookie", "kaos-console-8000=ab")]), Some(403));
        let printed = format!("kaos-console-8000={}", guard.token);
        assert_eq!(status(&[host, ("cookie", &printed)]), Some(403), "the cookie has a secret of its own");
        for foreign in ["kaos.example:8000", "127.0.0.1:8001", "127.0.0.1", "127.0.0.1.example:8000", ""] {
            assert_eq!(status(&[("host", foreign), own]), Some(421), "{foreign}");
        }
        for (name, value, expected) in [
            ("origin", "http://127.0.0.1:8000", None),
            ("origin", "http://kaos.example:8000", Some(403)),
            ("origin", "null", Some(403)),
            ("sec-fetch-site", "same-origin", None),
            ("sec-fetch-site", "none", None),
            ("sec-fetch-site", "same-site", Some(403)),
            ("sec-fetch-site", "cross-site", Some(403)),
        ] {
            assert_eq!(status(&[host, own, (name, value)]), expected, "{name}: {value}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_secret_of_the_opening_file_works_once_and_for_a_short_time() {
        let guard = Guard::new(8000).expect("secrets");
        let once = lock(&guard.once).secret.clone();
        assert!(guard.lets_in(&once) && !guard.lets_in(&once) && !guard.lets_in(""));
        assert!(guard.lets_in(&guard.token) && guard.lets_in(&guard.token));
        assert!(!guard.lets_in(&guard.cookie));
        let late = Guard::new(8000).expect("secrets");
        tokio::time::advance(OPENING).await;
        let once = lock(&late.once).secret.clone();
        assert!(!late.lets_in(&once) && late.lets_in(&late.token));
    }

    #[tokio::test]
    async fn all_pages_are_below_the_secret_path() {
        let guard = Guard::new(8000).expect("secrets");
        let inner = |path: &str| guard.inner(&path.parse().expect("an address")).map(|uri| uri.to_string());
        let base = guard.base();
        assert_eq!(inner(&format!("{base}/")).as_deref(), Some("/"));
        assert_eq!(inner(&format!("{base}/objects?name=a%26b")).as_deref(), Some("/objects?name=a%26b"));
        for path in ["/", "/objects", "//objects", &base, &format!("{base}x/"), &format!("/x{base}/")] {
            assert_eq!(inner(path), None, "{path}");
        }
    }
}
