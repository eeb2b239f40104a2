//! Formats errors for people. If an API server answered, shows the server's message. If no server answered, shows the
//! whole chain of causes, each cause once.

use std::{error::Error, iter::successors};

use kube::runtime::watcher;

/// The text that the server's message contains if an applied manifest has an unknown field or a value of a wrong type.
/// The server answers 500 with this text, although the same manifest will fail again.
const MISFIT: &str = "failed to create typed patch object";

/// Returns whether the server's message reports an applied manifest that does not fit the schema.
pub fn is_misfit(message: &str) -> bool {
    message.contains(MISFIT)
}

/// Formats an error with its causes.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in causes(error) {
        match cause.downcast_ref::<kube::Error>() {
            // The causes of this error repeat the server's message in technical terms, so leave them out.
            Some(kube::Error::Api(status)) => return with(text, &words(status.code, &status.message)),
            // Leave out these errors, because each only names a layer of the client and repeats its cause.
            Some(kube::Error::Service(_) | kube::Error::HyperError(_)) => {}
            _ => text = with(text, &cause.to_string()),
        }
    }
    text
}

/// Returns whether an error means that an API server did not answer.
pub fn is_unanswered(error: &(dyn Error + 'static)) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<kube::Error>())
        .any(|error| matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_)))
}

/// Returns the HTTP status with which the API server broke a watch; `None` if the API server did not answer.
pub fn watch_status(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

/// Returns the error and its chain of causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Appends a cause. Some errors already include their causes, so this function appends nothing if the text ends with
/// the cause.
fn with(text: String, cause: &str) -> String {
    if text.ends_with(cause) {
        text
    } else if text.is_empty() {
        cause.to_owned()
    } else {
        format!("{text}: {cause}")
    }
}

/// Returns the API server's message. If the message is empty, returns a text with the code, because a proxy in front of
/// the server may answer without a message.
pub fn words(code: u16, message: &str) -> String {
    if message.is_empty() { format!("the API server answered {code}") } else { message.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::anyhow;
    use kube::core::Status;

    use super::*;

    /// An error with a cause, like the errors that layers of the client return.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] io::Error);

    fn refused() -> kube::Error {
        kube::Error::Service(Box::new(Layer("tcp connect error", io::Error::other("Connection refused"))))
    }

    fn forbidden() -> kube::Error {
        kube::Error::Api(Status::failure("widgets is forbidden", "Forbidden").with_code(403).boxed())
    }

    #[test]
    fn a_cause_that_is_shown_already_is_not_shown_again() {
        let shown = anyhow!("no such file").context("a.wasm: no such file");
        assert_eq!(with_causes(shown.as_ref()), "a.wasm: no such file");
        let hidden = anyhow!("no such file").context("a.wasm");
        assert_eq!(with_causes(hidden.as_ref()), "a.wasm: no such file");
    }

    #[test]
    fn an_answer_of_the_api_server_is_reported_once_and_in_its_own_words() {
        assert_eq!(with_causes(&forbidden()), "widgets is forbidden");
        let listed = anyhow::Error::new(forbidden()).context("Widgets cannot be listed");
        assert_eq!(with_causes(listed.as_ref()), "Widgets cannot be listed: widgets is forbidden");
        assert!(!is_unanswered(listed.as_ref()));
        let silent = kube::Error::Api(Status::failure("", "Failed to parse error data").with_code(502).boxed());
        assert_eq!(with_causes(&silent), "the API server answered 502");
    }

    #[test]
    fn of_an_api_server_that_does_not_answer_every_cause_is_told() {
        assert_eq!(with_causes(&refused()), "tcp connect error: Connection refused");
        let listed = anyhow::Error::new(refused()).context("Widgets cannot be listed");
        assert_eq!(with_causes(listed.as_ref()), "Widgets cannot be listed: tcp connect error: Connection refused");
        assert!(is_unanswered(listed.as_ref()));
        // A broken pipe alone does not mean that the API server did not answer: it must be the cause of a request's
        // error.
        assert!(!is_unanswered(&io::Error::from(io::ErrorKind::BrokenPipe)));
    }
}
