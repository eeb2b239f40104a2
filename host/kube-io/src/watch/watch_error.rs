//! Errors of requests and watches, classified by their consequences.

use std::time::Duration;

use serde_json::Value;

use crate::error_text::{with_causes, words};

/// Maximum time for an answer of the API server. The time includes the body, except for a watch.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Awaits a request within the time limit.
pub(super) async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, WatchError> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, request).await.map_err(|_| WatchError::Silent)?;
    answer.map_err(|error| WatchError::of(&error))
}

/// The reason why a request or a watch failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WatchError {
    /// The server has forgotten the requested version.
    #[error("the resource version is too old")]
    Gone,
    /// The server does not serve the requested collection.
    #[error("the API server does not serve this type")]
    Unserved,
    /// The operator lacks the right.
    #[error("the operator lacks the right to read: {0}")]
    Forbidden(String),
    /// The server cannot authenticate the operator, so the server cannot check rights.
    #[error("the API server could not authenticate the operator: {0}")]
    Unauthenticated(String),
    /// The server answered with an error.
    #[error("the API server answered {code}{}", behind(.text))]
    Answered {
        /// The status code.
        code: u16,
        /// The server's message, or an empty text if a proxy in front of the server answered.
        text: String,
        /// The wait that the server asks for.
        wait: Duration,
    },
    /// No answer arrived in time.
    #[error("the API server did not respond in time")]
    Silent,
    /// The connection broke, or the answer could not be decoded.
    #[error("{0}")]
    Connection(String),
    /// The answer violates the protocol.
    #[error("{0}")]
    Odd(String),
}

impl WatchError {
    /// Classifies an error of the client.
    pub(super) fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                let wait = Duration::from_secs(u64::from(after));
                Self::answered(status.code, &status.message, wait)
            }
            kube::Error::SerdeError(error) => Self::Odd(format!("could not read the API server's answer: {error}")),
            other => Self::Connection(with_causes(other)),
        }
    }

    /// Classifies an error event of a watch.
    pub(super) fn of_status(status: &Value) -> Self {
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
        let seconds = status["details"]["retryAfterSeconds"].as_u64().unwrap_or_default();
        Self::answered(code, status["message"].as_str().unwrap_or_default(), Duration::from_secs(seconds))
    }

    fn answered(code: u16, text: &str, wait: Duration) -> Self {
        match code {
            410 => Self::Gone,
            404 => Self::Unserved,
            401 => Self::Unauthenticated(words(code, text)),
            403 => Self::Forbidden(words(code, text)),
            _ => Self::Answered { code, text: text.to_owned(), wait },
        }
    }

    pub(super) fn odd(text: &str) -> Self {
        Self::Odd(text.to_owned())
    }

    pub(super) fn cut(error: &std::io::Error) -> Self {
        Self::Connection(format!("the connection of the watch broke: {error}"))
    }

    /// Returns the wait that the server asks for, at most one minute.
    pub(super) fn wait(&self) -> Duration {
        match self {
            Self::Answered { wait, .. } => (*wait).min(Duration::from_mins(1)),
            _ => Duration::ZERO,
        }
    }

    /// Returns whether no server handled the request: the server shuts down, starts or is overloaded, or a proxy in
    /// front of the server answered.
    pub(super) fn is_outage(&self) -> bool {
        matches!(self, Self::Silent | Self::Connection(_) | Self::Answered { code: 429 | 502..=504, .. })
    }

    /// Returns whether the server denies access, because it cannot authenticate the operator or because a right is
    /// missing.
    pub(super) fn is_denial(&self) -> bool {
        matches!(self, Self::Forbidden(_) | Self::Unauthenticated(_))
    }

    /// Returns whether the server rejects the form of the request, so that a request of another form can succeed.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Answered { code: 400 | 405 | 406 | 415 | 422, .. })
    }

    /// Returns one word for the metric.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Gone => "gone".to_owned(),
            Self::Unserved => "unserved".to_owned(),
            Self::Forbidden(_) | Self::Unauthenticated(_) => "forbidden".to_owned(),
            Self::Answered { code, .. } => code.to_string(),
            Self::Silent => "silent".to_owned(),
            Self::Connection(_) => "connection".to_owned(),
            Self::Odd(_) => "odd".to_owned(),
        }
    }
}

/// Puts a colon before a text. Returns an empty text unchanged.
fn behind(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl From<kube::Error> for WatchError {
    fn from(error: kube::Error) -> Self {
        Self::of(&error)
    }
}

impl From<serde_json::Error> for WatchError {
    fn from(error: serde_json::Error) -> Self {
        Self::Odd(format!("could not read the API server's answer: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    /// Returns the error texts for the same answer, once as an error of the client and once as an event of a watch.
    fn shown(code: u16, message: &str) -> [String; 2] {
        let answer = kube::Error::Api(Status::failure(message, "").with_code(code).boxed());
        [WatchError::of(&answer), WatchError::of_status(&json!({"code": code, "message": message}))]
            .map(|it| it.to_string())
    }

    #[test]
    fn an_error_shows_the_message_of_the_api_server() {
        let so = |text: &str| [text.to_owned(), text.to_owned()];
        assert_eq!(shown(500, "etcd is gone"), so("the API server answered 500: etcd is gone"));
        assert_eq!(shown(403, "no rights"), so("the operator lacks the right to read: no rights"));
    }

    #[test]
    fn an_answer_without_a_message_shows_its_code() {
        for (code, told) in [
            (502, "the API server answered 502"),
            (403, "the operator lacks the right to read: the API server answered 403"),
            (401, "the API server could not authenticate the operator: the API server answered 401"),
        ] {
            assert_eq!(shown(code, ""), [told, told]);
        }
    }
}
