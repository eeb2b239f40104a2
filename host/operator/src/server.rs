//! Finds out whether the API server is newer than this program. A newer server may have fields that this program does
//! not know.

use std::sync::Arc;

#[cfg(test)]
use kaos_policy::gate::KnownServer;
use kaos_policy::gate::{self, LoadError, Server};
use kube::Client;

use crate::{blocking::off_thread, error_text::with_causes};

/// Returns whether an API server may have fields that this program does not know.
pub(crate) async fn is_newer(client: &Client) -> Result<bool, kube::Error> {
    let told = client.apiserver_version().await?;
    Ok(gate::is_newer(&told.major, &told.minor))
}

/// The API server whose version decides checks of policies and settings.
#[derive(Clone)]
pub(crate) enum TargetServer {
    /// A running server. The program asks the server for its version each time, because an administrator may upgrade
    /// the server while this program runs.
    Running(Client),
    /// A server whose version the test sets.
    #[cfg(test)]
    Known(KnownServer),
}

/// The server's version, if a running check already asked for the version.
#[derive(Clone, Copy)]
enum VersionSoFar {
    Unasked,
    Newer,
}

impl Server for VersionSoFar {
    fn is_newer(&self) -> Result<bool, String> {
        match self {
            Self::Unasked => Err("the API server was not asked".to_owned()),
            Self::Newer => Ok(true),
        }
    }
}

impl TargetServer {
    /// Runs a check on a thread that may block. The check first runs without the server's version. If the result
    /// depends on the version, this function asks the server for it. If the server is newer than this program, it runs
    /// the check again. The check itself never waits for the server.
    pub(crate) async fn check<T: Send + 'static>(
        &self,
        check: impl Fn(&dyn Server) -> Result<T, LoadError> + Send + Sync + 'static,
    ) -> Result<T, LoadError> {
        let check = Arc::new(check);
        let run = |version: VersionSoFar| {
            let check = Arc::clone(&check);
            off_thread(move || check(&version))
        };
        let error = match run(VersionSoFar::Unasked).await {
            Err(LoadError::Unanswered { error, .. }) => error,
            checked => return checked,
        };
        let is_newer = match self {
            Self::Running(client) => is_newer(client).await.map_err(|error| with_causes(&error)),
            #[cfg(test)]
            Self::Known(known) => known.is_newer(),
        };
        match is_newer {
            Ok(true) => run(VersionSoFar::Newer).await,
            Ok(false) => Err(*error),
            Err(why) => Err(LoadError::Unanswered { error, why }),
        }
    }
}
