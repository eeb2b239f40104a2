//! The tokens, users and kubeconfigs of a control plane.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::files;

/// A user for whom the control plane has a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The administrator, who sets up a cluster and has all rights.
    Admin,
    /// A user who has no rights until a test gives some rights to the user.
    Developer,
    /// The identity of kube-controller-manager.
    ControllerManager,
    /// The identity of kube-scheduler.
    Scheduler,
    /// The identity of kwok, which simulates the nodes.
    Nodes,
}

impl User {
    pub(super) const ALL: [Self; 5] =
        [Self::Admin, Self::Developer, Self::ControllerManager, Self::Scheduler, Self::Nodes];

    /// Returns the user's name on the API server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Developer => "developer",
            Self::ControllerManager => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
            Self::Nodes => "nodes",
        }
    }

    fn groups(self) -> &'static str {
        match self {
            Self::Admin | Self::Nodes => "system:masters",
            Self::Developer | Self::ControllerManager | Self::Scheduler => "",
        }
    }

    /// Returns the user's token. The token need not be secret: the API server listens on loopback and keeps no data.
    pub fn token(self) -> String {
        format!("{}-token", self.name().replace(':', "-"))
    }
}

/// The file with the key that signs service account tokens, and the file with the key's public half.
const KEYS: [&str; 2] = ["service-accounts.key", "service-accounts.pub"];

/// Writes the API server's authentication files into `folder`. Copies the key for service account tokens from the
/// folder `keys`. Without `keys`, generates a key.
pub(super) fn credentials(folder: &Path, keys: Option<&Path>) -> Result<()> {
    let mut users = String::new();
    for (number, user) in User::ALL.into_iter().enumerate() {
        users.push_str(&format!("{},{},{number},\"{}\"\n", user.token(), user.name(), user.groups()));
    }
    fs::write(folder.join("tokens.csv"), users)?;
    if let Some(keys) = keys {
        for file in KEYS {
            fs::copy(keys.join(file), folder.join(file)).with_context(|| keys.join(file).display().to_string())?;
        }
        return Ok(());
    }
    let (key, public) = signing_key()?;
    fs::write(folder.join(KEYS[0]), pem("PRIVATE KEY", &key))?;
    fs::write(folder.join(KEYS[1]), pem("PUBLIC KEY", &public))?;
    Ok(())
}

/// The DER prefix that marks a public key as a P-256 key.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Generates a key that signs service account tokens. Returns the key and its public half in DER.
fn signing_key() -> Result<(Vec<u8>, Vec<u8>)> {
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let key =
        EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| anyhow!("could not generate a signing key"))?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).map_err(|error| anyhow!("{error}"))?;
    let public = [&P256, pair.public_key().as_ref()].concat();
    Ok((key.as_ref().to_vec(), public))
}

fn pem(what: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {what}-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(&format!("{line}\n"));
        rest = after;
    }
    text + &format!("-----END {what}-----\n")
}

/// Returns the path of a kubeconfig.
pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.kubeconfig", name.replace(':', "-")))
}

/// Writes a kubeconfig with a token.
pub(super) fn write(folder: &Path, url: &str, name: &str, token: &str) -> Result<PathBuf> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster":
            {"server": url, "certificate-authority": folder.join("serving/apiserver.crt")}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
    });
    let path = path(folder, name);
    // Write the file atomically: several tests can write one user's file at the same time.
    files::write(&path, &serde_json::to_string_pretty(&config)?)?;
    Ok(path)
}

/// Copies a kubeconfig, and replaces the user's token. If `server` is not `None`, also replaces the address of the API
/// server with `server`.
pub fn with_token(of: &Path, token: &str, server: Option<&str>, into: &Path) -> Result<()> {
    let read = fs::read_to_string(of).with_context(|| of.display().to_string())?;
    let mut config: Value = serde_saphyr::from_str(&read).with_context(|| of.display().to_string())?;
    for user in config["users"].as_array_mut().into_iter().flatten() {
        user["user"] = json!({"token": token});
    }
    if let Some(server) = server {
        for cluster in config["clusters"].as_array_mut().into_iter().flatten() {
            cluster["cluster"]["server"] = json!(server);
        }
    }
    fs::write(into, serde_json::to_string_pretty(&config)?).with_context(|| into.display().to_string())
}

/// Returns a client for the user of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
