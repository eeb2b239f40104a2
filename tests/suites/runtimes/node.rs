//! A node that runs the containers of pods as processes of this machine, and gives addresses to Services.
//!
//! The other half of the node is `tests/runtimes/node/sitecustomize.py`, which runs inside each process. Both halves
//! share a folder:
//!
//! | file | content |
//! |---|---|
//! | `services/NAME` | the address of a Service |
//! | `endpoints/ADDRESS:PORT` | the path of the file with the port of the pod behind this address |
//! | `pods/NAME/ports/PORT` | the port of this machine that replaces the container's port |

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::http::{self, Response};
use crate::images::{self, Image};
use crate::pod::{Container, Objects, Probe, list};
use crate::warm::Warm;

/// The maximum time for a process to start. On a machine that also compiles, a start takes a minute.
const START: Duration = Duration::from_mins(4);
/// The time between two polls.
const LOOK: Duration = Duration::from_millis(100);

/// A node. When this value is dropped, the node's processes end.
pub(crate) struct Node {
    folder: PathBuf,
    pods: Vec<Pod>,
    services: u8,
}

/// A running pod.
pub(crate) struct Pod {
    /// The name of the Deployment that the pod belongs to.
    pub(crate) name: String,
    labels: Value,
    folder: PathBuf,
    container: Container,
    /// The process of the container. `None` if a [`Warm`] process runs the container.
    process: Option<Child>,
}

impl Node {
    /// Creates an empty node. Each node has a separate folder.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let folder = images::installed().canonicalize()?.join("runs").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        for part in ["services", "endpoints", "pods"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(Self { folder, pods: Vec::new(), services: 0 })
    }

    /// Starts the pod of a Deployment.
    pub(crate) fn start(&mut self, deployment: &Value, objects: &[Value]) -> Result<()> {
        let mut pod = self.place(deployment, objects)?;
        pod.process = Some(self.spawn(&pod)?);
        self.pods.push(pod);
        Ok(())
    }

    /// Starts the pod of a Deployment in a warm process.
    pub(crate) fn start_in(&mut self, warm: &mut Warm, deployment: &Value, objects: &[Value]) -> Result<()> {
        let pod = self.place(deployment, objects)?;
        let image = Image::named(&pod.container.image)?;
        let mut variables = pod.container.variables.clone();
        variables.extend(Self::of_image(image, &pod.folder)?);
        warm.run(&json!({
            "node": self.folder, "folder": pod.folder, "words": pod.container.words(image), "variables": variables,
        }))?;
        self.pods.push(pod);
        Ok(())
    }

    fn place(&self, deployment: &Value, objects: &[Value]) -> Result<Pod> {
        let name = deployment["metadata"]["name"].as_str().context("a Deployment without a name")?.to_owned();
        let folder = self.folder.join("pods").join(&name);
        for part in ["ports", "root", "home"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let container = Container::of(deployment, &Objects(objects), &folder.join("root"))?;
        let labels = deployment["spec"]["template"]["metadata"]["labels"].clone();
        Ok(Pod { name, labels, folder, container, process: None })
    }

    fn spawn(&self, pod: &Pod) -> Result<Child> {
        let image = Image::named(&pod.container.image)?;
        let words = pod.container.words(image);
        let log = fs::File::create(pod.folder.join("log"))?;
        image
            .program(&words)?
            .current_dir(pod.folder.join("home"))
            .envs(Self::of_image(image, &pod.folder)?)
            .envs(&pod.container.variables)
            .env("TESTS_NODE", &self.folder)
            .env("TESTS_POD", &pod.folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| words.join(" "))
    }

    /// Returns the variables that an image itself sets.
    fn of_image(image: &Image, folder: &Path) -> Result<BTreeMap<String, String>> {
        let variables = [
            ("PATH", format!("{}:/usr/bin:/bin", image.programs().display())),
            ("HOME", folder.join("home").display().to_string()),
            ("TIKTOKEN_CACHE_DIR", images::table_of_tokens()?.display().to_string()),
            (images::LOCAL_PRICES.0, images::LOCAL_PRICES.1.to_owned()),
        ];
        Ok(variables.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Gives an address to a Service. Connects the Service's ports to the pod that the Service selects.
    pub(crate) fn serve(&mut self, service: &Value) -> Result<()> {
        let text = |field: &str| service["metadata"][field].as_str().unwrap_or_default();
        let name = format!("{}.{}.svc.cluster.local", text("name"), text("namespace"));
        let selected = |pod: &&Pod| {
            let wanted = service["spec"]["selector"].as_object();
            wanted.is_some_and(|wanted| wanted.iter().all(|(label, value)| pod.labels[label] == *value))
        };
        let Some(pod) = self.pods.iter().find(selected) else { bail!("{name} selects no pod") };
        self.services += 1;
        // This range of addresses is reserved for network tests. Requests to these addresses never leave the process.
        let address = format!("198.18.0.{}", self.services);
        fs::write(self.folder.join("services").join(&name), &address)?;
        for port in list(&service["spec"]["ports"]) {
            let target = if port["targetPort"].is_null() { &port["port"] } else { &port["targetPort"] };
            let file = pod.file_of_port(pod.container.port(target)?);
            fs::write(
                self.folder.join("endpoints").join(format!("{address}:{}", port["port"])),
                file.to_string_lossy().as_bytes(),
            )?;
        }
        Ok(())
    }

    /// Returns the pod of a Deployment.
    pub(crate) fn pod(&mut self, name: &str) -> Result<&mut Pod> {
        self.pods.iter_mut().find(|pod| pod.name == name).with_context(|| format!("the node runs no pod of {name}"))
    }

    /// Ends the process of a pod, and forgets the pod.
    pub(crate) fn end(&mut self, name: &str) {
        self.pods.retain(|pod| pod.name != name);
    }
}

impl Pod {
    fn file_of_port(&self, port: u16) -> PathBuf {
        self.folder.join("ports").join(port.to_string())
    }

    /// Waits until the readiness probe passes. Fails if the liveness probe does not pass then.
    pub(crate) fn until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        let readiness = self.container.readiness.clone();
        loop {
            let told = match self.probe(&readiness) {
                Ok(()) => break,
                Err(told) => told,
            };
            if let Some(status) = self.process.as_mut().map_or(Ok(None), Child::try_wait)? {
                bail!("{} ended with {status}:\n{}", self.name, self.log());
            }
            ensure!(!self.folder.join("ended").exists(), "{} ended:\n{}", self.name, self.log());
            ensure!(begun.elapsed() < START, "{} is not ready: {told:#}\n{}", self.name, self.log());
            thread::sleep(LOOK);
        }
        self.probe(&self.container.liveness).with_context(|| format!("liveness of {}", self.name))?;
        println!("  {} is ready after {:.1} s", self.name, begun.elapsed().as_secs_f32());
        Ok(())
    }

    fn probe(&self, probe: &Probe) -> Result<()> {
        let patience = Duration::from_secs(probe.timeout_seconds);
        let Some(path) = &probe.path else {
            std::net::TcpStream::connect(("127.0.0.1", self.port(probe.port)?))?;
            return Ok(());
        };
        let answer = http::send(self.port(probe.port)?, path, &[], None, patience)?;
        ensure!((200..400).contains(&answer.status), "{path}: HTTP {}: {}", answer.status, answer.body);
        Ok(())
    }

    /// Returns the port of this machine that replaces the port of the readiness probe.
    pub(crate) fn served(&self) -> Result<u16> {
        self.port(self.container.readiness.port)
    }

    /// Returns the port of this machine that replaces a port of the container.
    fn port(&self, port: u16) -> Result<u16> {
        let file = self.file_of_port(port);
        let text = fs::read_to_string(&file).with_context(|| {
            let listens: Vec<_> = fs::read_dir(self.folder.join("ports")).into_iter().flatten().flatten().collect();
            let listens: Vec<_> = listens.iter().map(fs::DirEntry::file_name).collect();
            format!("the pod of {name} does not listen on {port}, but on {listens:?}", name = self.name)
        })?;
        Ok(text.parse()?)
    }

    /// Sends a request to the port of the readiness probe.
    pub(crate) fn ask(&self, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Result<Response> {
        http::send(self.served()?, path, headers, body, START)
            .with_context(|| format!("{}{path}\n{}", self.name, self.log()))
    }

    /// Returns the value of a variable in the container, or `None` without this variable.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.container.variables.get(name).map(String::as_str)
    }

    /// Returns the text of a file in a mounted volume.
    pub(crate) fn file(&self, path: &str) -> Result<String> {
        let path = self.folder.join("root").join(path.trim_start_matches('/'));
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    /// Returns the last lines of the process's output.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // Possibly the process has already ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
