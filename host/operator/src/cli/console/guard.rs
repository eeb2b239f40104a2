//! Checks requests to the console. Only a browser that got the address from the terminal gets answers, and only under a
//! local name.
//!
//! The address in the terminal contains a secret. The first request exchanges the secret for a cookie, so that the
//! secret does not stay in the address. Other users of this machine can see the arguments of the program that opens the
//! browser, so that program gets another secret, which works once. A page of another site can make a browser send requests to this machine. Such
//! requests have no cookie (`SameSite=Strict`), or another `Host` (DNS rebinding), or another `Origin`.

use std::sync::{Arc, Mutex};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
            X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use kaos_policy::printable::printable;

use crate::locking::lock;

/// The browser loads nothing but files of the console, runs no inline script, and shows the page in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The parameter of the first address.
const PARAMETER: &str = "token=";

/// The length of the secret, in bytes.
const LENGTH: usize = 32;

/// The secret of one console, and its port.
#[derive(Clone)]
pub(super) struct Guard {
    token: String,
    /// A second secret, until its first use.
    once: Arc<Mutex<Option<String>>>,
    port: u16,
}

impl Guard {
    /// Creates the secret of a console on this port.
    pub(super) fn new(port: u16) -> anyhow::Result<Self> {
        Ok(Self { token: secret()?, once: Arc::new(Mutex::new(Some(secret()?))), port })
    }

    /// Returns the address for the user.
    pub(super) fn address(&self) -> String {
        self.address_with(&self.token)
    }

    /// Returns the address for the program that opens the browser. The address works once.
    pub(super) fn opening(&self) -> String {
        self.address_with(lock(&self.once).as_deref().unwrap_or_default())
    }

    fn address_with(&self, secret: &str) -> String {
        format!("http://127.0.0.1:{}/?{PARAMETER}{secret}", self.port)
    }

    /// Cookies do not depend on the port, so the name of the cookie contains the port.
    fn cookie_name(&self) -> String {
        format!("kaos-console-{}", self.port)
    }

    /// Returns whether a text is one of the secrets. The second secret works once.
    fn lets_in(&self, text: &str) -> bool {
        let mut once = lock(&self.once);
        let is_once = once.as_ref().is_some_and(|once| is_equal(text, once));
        if is_once {
            *once = None;
        }
        is_once || is_equal(text, &self.token)
    }

    fn is_local(&self, host: &str) -> bool {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        names.iter().any(|name| *host == format!("{name}:{}", self.port))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(of, value)| of == name && is_equal(value, &self.token))
    }

    /// Returns why the console refuses a request; `None` if the request may pass.
    fn refusal(&self, method: &Method, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        if !text(&HOST).is_some_and(|host| self.is_local(host)) {
            return Some((StatusCode::MISDIRECTED_REQUEST, "use the address that the terminal shows"));
        }
        if !self.has_cookie(headers) {
            return Some((StatusCode::FORBIDDEN, "open the address that `console` printed in the terminal"));
        }
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|host| self.is_local(host));
        let is_foreign = text(&ORIGIN).is_some_and(|origin| !is_own(origin));
        let of_site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        let is_cross = of_site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        if *method != Method::GET && (is_foreign || is_cross) {
            return Some((StatusCode::FORBIDDEN, "only pages of the console may send this form"));
        }
        None
    }
}

fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("this system has no random numbers: {error}"))?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).concat())
}

/// Compares all bytes, so that the time does not show how many bytes are right.
fn is_equal(text: &str, secret: &str) -> bool {
    let differences = text.bytes().zip(secret.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    text.len() == secret.len() && differences == 0
}

/// Lets a request pass, exchanges the secret for a cookie, or refuses the request.
pub(super) async fn guarded(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_local = headers.get(HOST).and_then(|host| host.to_str().ok()).is_some_and(|host| guard.is_local(host));
    let query = request.uri().query().unwrap_or_default();
    let mut response = match query.strip_prefix(PARAMETER) {
        Some(token) if is_local && request.method() == Method::GET && guard.lets_in(token) => enter(&guard),
        _ => match guard.refusal(request.method(), headers) {
            None => next.run(request).await,
            Some((status, why)) => (status, format!("{}\n", printable(why))).into_response(),
        },
    };
    protect(response.headers_mut());
    response
}

/// Answers the first request: sets the cookie, and leads to the address without the secret.
fn enter(guard: &Guard) -> Response {
    let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", guard.cookie_name(), guard.token);
    (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, "/".to_owned())]).into_response()
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        // With `no-referrer`, a browser sends a form with the origin `null`.
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

    #[test]
    fn a_request_passes_only_with_the_cookie_a_local_name_and_the_own_origin() {
        let guard =
            Guard { token: "ab".repeat(LENGTH), once: Arc::new(Mutex::new(Some("once".to_owned()))), port: 8000 };
        assert!(guard.lets_in("once") && !guard.lets_in("once") && !guard.lets_in(""));
        assert!(guard.lets_in(&guard.token) && guard.lets_in(&guard.token));
        let cookie = format!("x=1; kaos-console-8000={}", guard.token);
        let status = |method: Method, given: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(*name, HeaderValue::from_str(value).expect("a header"));
            }
            guard.refusal(&method, &headers).map(|(status, _)| status.as_u16())
        };
        let host = ("host", "127.0.0.1:8000");
        let own = ("cookie", cookie.as_str());
        assert_eq!(status(Method::GET, &[host, own]), None);
        assert_eq!(status(Method::GET, &[("host", "localhost:8000"), own]), None);
        assert_eq!(status(Method::GET, &[("host", "[::1]:8000"), own]), None);
        assert_eq!(status(Method::GET, &[host]), Some(403));
        assert_eq!(status(Method::GET, &[host, ("cookie", "kaos-console-8000=ab")]), Some(403));
        for foreign in ["kaos.example:8000", "127.0.0.1:8001", "127.0.0.1", "127.0.0.1.example:8000", ""] {
            assert_eq!(status(Method::GET, &[("host", foreign), own]), Some(421), "{foreign}");
        }
        assert_eq!(status(Method::POST, &[host, own, ("origin", "http://127.0.0.1:8000")]), None);
        assert_eq!(status(Method::POST, &[host, own, ("origin", "http://kaos.example:8000")]), Some(403));
        assert_eq!(status(Method::POST, &[host, own, ("origin", "null")]), Some(403));
        assert_eq!(status(Method::POST, &[host, own, ("sec-fetch-site", "cross-site")]), Some(403));
    }
}
