//! Reads a pod as the kubelet does. Volumes become folders, variables get their values, and the container gets its
//! command and its arguments.
//!
//! The process uses the file system of this machine, so a folder replaces each mount. If a variable or an argument
//! contains a path below a mount, this module replaces this path by the path in the mount's folder. Other paths stay
//! unchanged, and usually do not exist on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::images::Image;

/// The containers of a pod: the init containers in their order, and then the container that the node runs.
pub(crate) struct Containers {
    pub(crate) init: Vec<Container>,
    pub(crate) main: Container,
}

/// A container that is ready to start.
pub(crate) struct Container {
    pub(crate) image: String,
    /// The command in the pod. If the pod has no command, the container runs the image's command.
    command: Vec<String>,
    args: Vec<String>,
    pub(crate) variables: BTreeMap<String, String>,
    /// The readiness probe. `None` for a container without a readiness probe, such as an init container.
    pub(crate) readiness: Option<Probe>,
    pub(crate) liveness: Option<Probe>,
}

/// A probe of a container.
#[derive(Clone)]
pub(crate) struct Probe {
    /// The path of an HTTP probe. `None` for a probe that only opens a connection.
    pub(crate) path: Option<String>,
    pub(crate) port: u16,
    pub(crate) timeout_seconds: u64,
}

/// The objects and tokens to which a pod can refer.
#[derive(Default)]
pub(crate) struct Objects {
    /// The ConfigMaps and Secrets of the pod's namespace.
    pub(crate) all: Vec<Value>,
    /// The tokens of the pod's ServiceAccount, by audience. The token for the API server has an empty audience.
    pub(crate) tokens: BTreeMap<String, String>,
    /// The folder with the volumes of the namespace's volume claims.
    pub(crate) volumes: PathBuf,
    pub(crate) namespace: String,
}

impl Containers {
    /// Reads the containers of a pod. Creates the pod's volumes below `root`. Of the pod's main containers, reads only
    /// the first one with a known image, because users can add containers with other images.
    pub(crate) fn of(pod: &Value, objects: &Objects, root: &Path) -> Result<Self> {
        let is_known = |it: &&Value| Image::named(it["image"].as_str().unwrap_or_default()).is_ok();
        let main =
            list(&pod["containers"]).iter().find(is_known).context("the node knows the image of no container")?;
        let read = |container: &Value| Container::of(container, list(&pod["volumes"]), objects, root);
        let init = list(&pod["initContainers"]).iter().map(read).collect::<Result<_>>()?;
        Ok(Self { init, main: read(main)? })
    }
}

impl Container {
    fn of(container: &Value, volumes: &[Value], objects: &Objects, root: &Path) -> Result<Self> {
        let mut mounts = Vec::new();
        for mount in list(&container["volumeMounts"]) {
            let path = mount["mountPath"].as_str().context("a mount without a path")?;
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
            let folder = root.join(path.trim_start_matches('/'));
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
        let probe = |field: &str| Probe::of(&container[field], list(&container["ports"])).context(field.to_owned());
        Ok(Self {
            image: container["image"].as_str().context("a container without an image")?.to_owned(),
            command,
            args,
            readiness: probe("readinessProbe")?,
            liveness: probe("livenessProbe")?,
            variables: variables.into_iter().map(|(name, value)| (name, place(value))).collect(),
        })
    }

    /// Returns the command and the arguments. If the pod has no command, uses the image's command.
    pub(crate) fn words(&self, image: &Image) -> Vec<String> {
        let command = if self.command.is_empty() { image.command() } else { self.command.clone() };
        command.into_iter().chain(self.args.iter().cloned()).collect()
    }
}

impl Probe {
    fn of(probe: &Value, ports: &[Value]) -> Result<Option<Self>> {
        if probe.is_null() {
            return Ok(None);
        }
        let http = &probe["httpGet"];
        let form = if http.is_object() { http } else { &probe["tcpSocket"] };
        let path = http["path"].as_str().map(str::to_owned);
        let timeout_seconds = probe["timeoutSeconds"].as_u64().unwrap_or(1);
        Ok(Some(Self { path, port: number(&form["port"], ports)?, timeout_seconds }))
    }
}

impl Objects {
    fn find(&self, kind: &str, name: &Value) -> Result<&Value> {
        let found = self.all.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == *name);
        found.with_context(|| format!("no {kind} has the name {name}"))
    }

    /// Fills `folder` with the content of a volume, or makes `folder` a link to the folder of a volume claim.
    fn fill(&self, volume: &Value, folder: &Path) -> Result<()> {
        if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            ensure!(self.volumes.is_absolute(), "the node has no volume for the claim {claim}");
            let kept = self.volumes.join(claim);
            fs::create_dir_all(&kept)?;
            fs::create_dir_all(folder.parent().context("a mount at the root")?)?;
            return if folder.is_symlink() { Ok(()) } else { Ok(symlink(kept, folder)?) };
        }
        fs::create_dir_all(folder)?;
        let projected = &volume["projected"]["sources"];
        let sources = if projected.is_array() { list(projected) } else { std::slice::from_ref(volume) };
        for source in sources {
            for (name, text) in self.files(source)? {
                fs::write(folder.join(name), text)?;
            }
        }
        Ok(())
    }

    /// Returns the files of one source of a volume.
    fn files(&self, source: &Value) -> Result<BTreeMap<String, String>> {
        let [config, secret, token, pod] =
            ["configMap", "secret", "serviceAccountToken", "downwardAPI"].map(|field| &source[field]);
        if config.is_object() {
            chosen(texts(self.find("ConfigMap", &config["name"])?)?, list(&config["items"]))
        } else if secret.is_object() {
            chosen(texts(self.find("Secret", &secret["secretName"])?)?, list(&secret["items"]))
        } else if token.is_object() {
            let audience = token["audience"].as_str().unwrap_or_default();
            let text = self.tokens.get(audience).with_context(|| format!("there is no token for {audience}"))?;
            Ok(BTreeMap::from([(token["path"].as_str().unwrap_or_default().to_owned(), text.clone())]))
        } else if pod.is_object() {
            let file = |item: &Value| {
                ensure!(item["fieldRef"]["fieldPath"] == "metadata.namespace", "the node does not support {item}");
                Ok((item["path"].as_str().unwrap_or_default().to_owned(), self.namespace.clone()))
            };
            list(&pod["items"]).iter().map(file).collect()
        } else {
            ensure!(source["emptyDir"].is_object(), "the node does not support this volume: {source}");
            Ok(BTreeMap::new())
        }
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

/// Returns the texts in a ConfigMap or a Secret, by key.
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

/// Returns the texts that `items` selects, each with the file name in `items`. If `items` is empty, returns all texts.
fn chosen(texts: BTreeMap<String, String>, items: &[Value]) -> Result<BTreeMap<String, String>> {
    let choose = |item: &Value| {
        let (key, path) = (item["key"].as_str().unwrap_or_default(), item["path"].as_str().unwrap_or_default());
        Ok((path.to_owned(), texts.get(key).with_context(|| format!("there is no key {key}"))?.clone()))
    };
    if items.is_empty() { Ok(texts) } else { items.iter().map(choose).collect() }
}

/// Translates a path below a mount to a path on this machine. If the folder `FOLDER` replaces the mount `/data`, then
/// `/data/x` becomes `FOLDER/x`.
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
