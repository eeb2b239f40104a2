//! The proxy of a ModelAPI, which forwards requests to model providers.

use alloc::{string::String, vec::Vec};
use kaos_crds::KeySelector;

/// The fields of a ModelAPI that describe its proxy.
#[derive(Debug, PartialEq)]
pub(crate) struct Proxy {
    pub(crate) models: Vec<String>,
    pub(crate) provider: Option<String>,
    pub(crate) api_base: Option<String>,
    pub(crate) api_key: Option<Key>,
    pub(crate) config: Config,
}

/// The source of the provider's key.
#[derive(Debug, PartialEq)]
pub(crate) enum Key {
    Literal(String),
    Secret(KeySelector),
    ConfigMap(KeySelector),
}

/// The source of the proxy's configuration file.
#[derive(Debug, PartialEq)]
pub(crate) enum Config {
    /// The policy generates the file from the other fields.
    Generated,
    /// The user wrote the file's text into the object.
    Text { text: String, path: &'static str },
    /// The user wrote the file's text into a Secret.
    Secret(KeySelector),
}
