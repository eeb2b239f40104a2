//! A proxy to model providers, as an object asks for it.

use alloc::{string::String, vec::Vec};
use kaos_crds::KeySelector;

/// A proxy to model providers.
#[derive(Debug, PartialEq)]
pub(crate) struct Proxy {
    pub(crate) models: Vec<String>,
    pub(crate) provider: Option<String>,
    pub(crate) api_base: Option<String>,
    pub(crate) api_key: Option<Key>,
    pub(crate) config: Config,
}

/// Where the provider's key is.
#[derive(Debug, PartialEq)]
pub(crate) enum Key {
    Literal(String),
    Secret(KeySelector),
    ConfigMap(KeySelector),
}

/// Where the proxy's configuration file is.
#[derive(Debug, PartialEq)]
pub(crate) enum Config {
    /// Made from the other fields.
    Generated,
    /// The user's own text.
    Text { text: String, path: &'static str },
    /// The user's own text in a Secret.
    Secret(KeySelector),
}
