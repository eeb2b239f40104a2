//! Reads the pod of a Deployment like the kubelet. Volumes become folders, variables get their values, and the
//! container gets its command and its arguments.
//!
//! A folder replaces the container's file system. In variables and arguments, this module replaces a path below a mount
//! with the path below the folder that stands for the mount. Any other path stays unchanged, and does not exist on this
//! machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::images::Image;

/// A container that is ready to start.
pub(crate) struct Container {
    pub(crate) image: String,
    /// The command in the pod. If the pod has no command, the container runs the image's command.
    command: Vec<String>,
    args: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) readiness: Probe,
    pub(crate) liveness: Probe,
    ports: Vec<Value>,
}

/// A probe of a container.
#[derive(Clone)]
pub(crate) struct Probe {
    /// The path of an HTTP probe. `None` for a probe that only opens a connection.
    pub(crate) path: Option<String>,
    pub(crate) port: u16,
    pub(crate) timeout_seconds: u64,
}

/// The objects to which a pod can refer.
pub(crate) struct Objects<'a>(pub(crate) &'a [Value]);

impl Container {
    /// Reads the first container of a Deployment that has a known image. Creates the container's volumes below `root`.
    pub(crate) fn of(deployment: &Value, objects: &Objects<'_>, root: &Path) -> Result<Self> {
        let pod = &deployment["spec"]["template"]["spec"];
        ensure!(pod["initContainers"].is_null(), "the node runs no init containers");
        // A user can add containers with other images. The node does not run these containers.
        let is_known = |it: &&Value| Image::named(it["image"].as_str().unwrap_or_default()).is_ok();
        let container =
            list(&pod["containers"]).iter().find(is_known).context("the node knows the image of no container")?;
        let mut mounts = Vec::new();
        for mount in list(&container["volumeMounts"]) {
            let path = mount["mountPath"].as_str().context("a mount without a path")?;
            let volume = list(&pod["volumes"]).iter().find(|volume| volume["name"] == mount["name"]);
            let folder = root.join(path.trim_start_matches('/'));
            fs::create_dir_all(&folder)?;
            objects.fill(volume.context("a mount of no volume")?, &folder)?;
            mounts.push((path.to_owned(), folder));
        }
        let place = |text: String| below(&mounts, text);
        let mut variables = BTreeMap::new();
        ensure!(container["envFrom"].is_null(), "the node reads no envFrom");
        for variable in list(&container["env"]) {
            let name = variable["name"].as_str().context("a variable without a name")?;
            if let Some(value) = objects.value(variable, &variables).with_context(|| name.to_owned())? {
                variables.insert(name.to_owned(), value);
            }
        }
        let words = |field: &str| -> Vec<String> {
            let words = list(&container[field]).iter().filter_map(Value::as_str);
            words.map(|word| place(expanded(word, &variables))).collect()
        };
        let (command, args) = (words("command"), words("args"));
        let ports = list(&container["ports"]).to_vec();
        let probe = |field: &str| Probe::of(&container[field], &ports).with_context(|| field.to_owned());
        Ok(Self {
            image: container["image"].as_str().context("a container without an image")?.to_owned(),
            command,
            args,
            readiness: probe("readinessProbe")?,
            liveness: probe("livenessProbe")?,
            variables: variables.into_iter().map(|(name, value)| (name, place(value))).collect(),
            ports,
        })
    }

    /// Returns the command and the arguments. If the pod has no command, uses the image's command.
    pub(crate) fn words(&self, image: &Image) -> Vec<String> {
        let command = if self.command.is_empty() { image.command() } else { self.command.clone() };
        command.into_iter().chain(self.args.iter().cloned()).collect()
    }

    /// Returns the number of a port. `target` is the port's name or number in a Service.
    pub(crate) fn port(&self, target: &Value) -> Result<u16> {
        number(target, &self.ports)
    }
}

impl Probe {
    fn of(probe: &Value, ports: &[Value]) -> Result<Self> {
        let http = &probe["httpGet"];
        let form = if http.is_object() { http } else { &probe["tcpSocket"] };
        let path = http["path"].as_str().map(str::to_owned);
        let timeout_seconds = probe["timeoutSeconds"].as_u64().unwrap_or(1);
        Ok(Self { path, port: number(&form["port"], ports)?, timeout_seconds })
    }
}

impl Objects<'_> {
    fn find(&self, kind: &str, name: &Value) -> Result<&Value> {
        let found = self.0.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == *name);
        found.with_context(|| format!("no {kind} has the name {name}"))
    }

    /// Writes the content of a volume into a folder.
    fn fill(&self, volume: &Value, folder: &Path) -> Result<()> {
        let files: BTreeMap<String, String> = if volume["configMap"].is_object() {
            let source = &volume["configMap"];
            chosen(texts(self.find("ConfigMap", &source["name"])?)?, list(&source["items"]))?
        } else if volume["secret"].is_object() {
            let source = &volume["secret"];
            chosen(texts(self.find("Secret", &source["secretName"])?)?, list(&source["items"]))?
        } else if let [source] = list(&volume["projected"]["sources"]) {
            let path = source["serviceAccountToken"]["path"].as_str().context("the node projects tokens only")?;
            BTreeMap::from([(path.to_owned(), "a-token-of-the-account".to_owned())])
        } else if volume["emptyDir"].is_object() || volume["persistentVolumeClaim"].is_object() {
            BTreeMap::new()
        } else {
            bail!("the node does not support this volume: {volume}")
        };
        for (name, text) in files {
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    }

    /// Returns the value of a variable. Returns `None` if the variable is an optional reference to a missing object or
    /// key.
    fn value(&self, variable: &Value, earlier: &BTreeMap<String, String>) -> Result<Option<String>> {
        let from = &variable["valueFrom"];
        if from.is_null() {
            return Ok(Some(expanded(variable["value"].as_str().unwrap_or_default(), earlier)));
        }
        let (kind, reference) = match (from["secretKeyRef"].is_object(), from["configMapKeyRef"].is_object()) {
            (true, _) => ("Secret", &from["secretKeyRef"]),
            (_, true) => ("ConfigMap", &from["configMapKeyRef"]),
            _ => bail!("the node does not support this source of a variable: {from}"),
        };
        let key = reference["key"].as_str().context("a reference without a key")?;
        let value = self.find(kind, &reference["name"]).and_then(texts).map(|texts| texts.get(key).cloned());
        match value {
            Ok(Some(value)) => Ok(Some(value)),
            _ if reference["optional"] == true => Ok(None),
            Ok(None) => bail!("{kind} {name} has no key {key}", name = reference["name"]),
            Err(error) => Err(error),
        }
    }
}

/// Returns the texts in a ConfigMap or a Secret.
fn texts(object: &Value) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for field in ["data", "stringData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let text = value.as_str().context("a value that is no text")?;
            let encoded = object["kind"] == "Secret" && field == "data";
            let text = if encoded { String::from_utf8(STANDARD.decode(text)?)? } else { text.to_owned() };
            texts.insert(key.clone(), text);
        }
    }
    Ok(texts)
}

/// Returns the texts that `items` selects, with the names in `items`. If `items` is empty, returns all texts.
fn chosen(texts: BTreeMap<String, String>, items: &[Value]) -> Result<BTreeMap<String, String>> {
    let choose = |item: &Value| {
        let (key, path) = (item["key"].as_str().unwrap_or_default(), item["path"].as_str().unwrap_or_default());
        Ok((path.to_owned(), texts.get(key).with_context(|| format!("there is no key {key}"))?.clone()))
    };
    if items.is_empty() { Ok(texts) } else { items.iter().map(choose).collect() }
}

/// Translates a path below a mount to a path on this machine. If a folder stands for the mount `/data`, `/data/x`
/// becomes `FOLDER/x`.
fn below(mounts: &[(String, PathBuf)], text: String) -> String {
    let within = |(path, folder): &(String, PathBuf)| {
        let rest = text.strip_prefix(path.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", folder.display()))
    };
    mounts.iter().find_map(within).unwrap_or(text)
}

/// Expands `$(NAME)` like Kubernetes. `$$` becomes a dollar sign, and a reference to an unknown name stays unchanged.
fn expanded(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        done.push_str(before);
        let name = after.strip_prefix('(').and_then(|named| named.split_once(')'));
        (done, rest) = match (after.strip_prefix('$'), name) {
            (Some(after), _) => (done + "$", after),
            (None, Some((name, after))) if known.contains_key(name) => (done + &known[name], after),
            _ => (done + "$", after),
        };
    }
    done + rest
}

fn number(port: &Value, ports: &[Value]) -> Result<u16> {
    let named = || ports.iter().find(|it| it["name"] == *port).and_then(|it| it["containerPort"].as_u64());
    let number = port.as_u64().or_else(named).with_context(|| format!("the container has no port {port}"))?;
    Ok(u16::try_from(number)?)
}

/// Returns the items of a list. Returns an empty list if the value is not a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
