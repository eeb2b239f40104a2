//! A node that runs the containers of pods as processes of this machine.
//!
//! The other half of the node is `tests/runtimes/node/sitecustomize.py`, which runs inside each process. Both halves
//! share a folder:
//!
//! | file | content |
//! |---|---|
//! | `services/NAME` | the address of a Service; the module `network` writes this file |
//! | `endpoints/ADDRESS:PORT` | the path of the file with the port of the pod behind this address; `network` writes it |
//! | `pods/NAME/ports/PORT` | the port of this machine that replaces the container's port |

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kaos_tests::control_plane::Group;
use serde_json::{Value, json};

use crate::http::{self, Response};
use crate::images::{self, Image};
use crate::pod::{Container, Containers, Objects, Probe};
use crate::warm::Warm;

/// The time limit for the start of a process. On a machine that also compiles, a start takes a minute.
pub(crate) const START: Duration = Duration::from_mins(4);
/// The time between two polls.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// A node. When this value is dropped, the node's processes end.
pub(crate) struct Node {
    pub(crate) folder: PathBuf,
    running: Vec<Running>,
    group: Group,
}

/// A pod on the node.
pub(crate) struct Pod {
    pub(crate) name: String,
    folder: PathBuf,
    container: Container,
}

/// A pod, and its process.
struct Running {
    pod: Arc<Pod>,
    begun: Instant,
    /// The process of the current container. `None` if a [`Warm`] process runs the container.
    process: Option<Child>,
    /// The init containers that have not started yet.
    init: VecDeque<Container>,
    /// Whether the current container is the pod's main container. Otherwise, it is an init container.
    is_main: bool,
    is_ready: bool,
}

/// The state of a pod on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// The pod's probes do not pass yet. The text is the reason.
    Starting(String),
    /// The pod's probes have passed.
    Ready,
    /// A process of the pod has ended. The text is the log of the process.
    Ended(String),
}

impl Node {
    /// Creates an empty node. Each node has a separate folder.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let folder = images::installed().canonicalize()?.join("runs").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        for part in ["services", "endpoints", "pods", "volumes", "scratch"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let group = Group::new(&folder.join("scratch"))?;
        Ok(Self { folder, running: Vec::new(), group })
    }

    /// Starts a pod. `spec` is the spec of the pod.
    pub(crate) fn start(&mut self, name: &str, spec: &Value, objects: &Objects) -> Result<()> {
        let mut running = self.place(name, spec, objects)?;
        self.advance(&mut running)?;
        self.running.push(running);
        Ok(())
    }

    /// Starts a pod in a warm process.
    pub(crate) fn start_in(&mut self, warm: &mut Warm, name: &str, spec: &Value, objects: &Objects) -> Result<()> {
        let mut running = self.place(name, spec, objects)?;
        let pod = &running.pod;
        let image = Image::named(&pod.container.image)?;
        let mut variables = pod.container.variables.clone();
        variables.extend(of_image(image, &pod.folder)?);
        warm.run(&json!({
            "node": self.folder, "folder": pod.folder, "words": pod.container.words(image), "variables": variables,
        }))?;
        running.is_main = true;
        self.running.push(running);
        Ok(())
    }

    fn place(&self, name: &str, spec: &Value, objects: &Objects) -> Result<Running> {
        let folder = self.folder.join("pods").join(name);
        for part in ["ports", "root/root"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let Containers { init, main } = Containers::of(spec, objects, &folder.join("root"))?;
        let pod = Arc::new(Pod { name: name.to_owned(), folder, container: main });
        let begun = Instant::now();
        Ok(Running { pod, begun, process: None, init: init.into(), is_main: false, is_ready: false })
    }

    /// Starts the next container of a pod.
    fn advance(&self, running: &mut Running) -> Result<()> {
        let next = running.init.pop_front();
        running.is_main = next.is_none();
        let (pod, container) = (&running.pod, next.as_ref().unwrap_or(&running.pod.container));
        let image = Image::named(&container.image)?;
        let words = container.words(image);
        let log = fs::OpenOptions::new().create(true).append(true).open(pod.folder.join("log"))?;
        let mut command = image.program(&words)?;
        command
            .current_dir(pod.folder.join("root/root"))
            .envs(of_image(image, &pod.folder)?)
            .envs(&container.variables)
            .env("TESTS_NODE", &self.folder)
            .env("TESTS_POD", &pod.folder)
            .stdout(log.try_clone()?)
            .stderr(log);
        running.process = Some(self.group.spawn(&mut command).with_context(|| words.join(" "))?);
        Ok(())
    }

    /// Returns the pod with this name.
    pub(crate) fn pod(&self, name: &str) -> Result<Arc<Pod>> {
        let running = self.running.iter().find(|running| running.pod.name == name);
        Ok(Arc::clone(&running.with_context(|| format!("the node runs no pod {name}"))?.pod))
    }

    /// Returns the names of all pods on the node.
    pub(crate) fn names(&self) -> Vec<String> {
        self.running.iter().map(|running| running.pod.name.clone()).collect()
    }

    /// Returns the state of a pod. If an init container has ended, also starts the next container.
    pub(crate) fn state(&mut self, name: &str) -> Result<State> {
        let found = self.running.iter().position(|running| running.pod.name == name);
        let mut running = self.running.swap_remove(found.with_context(|| format!("the node runs no pod {name}"))?);
        let state = self.look(&mut running);
        self.running.push(running);
        state
    }

    fn look(&self, running: &mut Running) -> Result<State> {
        let pod = Arc::clone(&running.pod);
        let ended = match &mut running.process {
            Some(process) => process.try_wait()?,
            None => None,
        };
        if pod.folder.join("ended").exists() {
            return Ok(State::Ended(pod.log()));
        }
        match ended {
            Some(status) if status.success() && !running.is_main => self.advance(running)?,
            Some(status) => return Ok(State::Ended(format!("{status}\n{}", pod.log()))),
            None if running.is_ready => return Ok(State::Ready),
            None => {}
        }
        if !running.is_main {
            return Ok(State::Starting("an init container runs".to_owned()));
        }
        for probe in [&pod.container.readiness, &pod.container.liveness].into_iter().flatten() {
            if let Err(told) = pod.probe(probe) {
                return Ok(State::Starting(format!("{told:#}")));
            }
        }
        running.is_ready = true;
        println!("  {} is ready after {:.1} s", pod.name, running.begun.elapsed().as_secs_f32());
        Ok(State::Ready)
    }

    /// Waits until the probes of a pod pass.
    pub(crate) fn until_ready(&mut self, name: &str) -> Result<Arc<Pod>> {
        let begun = Instant::now();
        loop {
            match self.state(name)? {
                State::Ready => return self.pod(name),
                State::Ended(told) => bail!("{name} ended: {told}"),
                State::Starting(told) => {
                    ensure!(begun.elapsed() < START, "{name} is not ready: {told}\n{}", self.pod(name)?.log());
                }
            }
            thread::sleep(LOOK);
        }
    }

    /// Ends the process of a pod, and removes the pod from the node.
    pub(crate) fn end(&mut self, name: &str) {
        self.running.retain(|running| running.pod.name != name);
    }
}

/// Returns the variables that an image itself sets.
fn of_image(image: &Image, folder: &Path) -> Result<BTreeMap<String, String>> {
    let [programs, stand_ins] = image.programs();
    let variables = [
        ("PATH", format!("{}:{}:/usr/bin:/bin", programs.display(), stand_ins.display())),
        ("HOME", folder.join("root/root").display().to_string()),
        ("TIKTOKEN_CACHE_DIR", images::table_of_tokens()?.display().to_string()),
        (images::LOCAL_PRICES.0, images::LOCAL_PRICES.1.to_owned()),
    ];
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).into())
}

impl Pod {
    /// Returns the path of the file that describes a port of the container.
    ///
    /// The process listens on another port of this machine instead, and the file contains this other port.
    pub(crate) fn file_of_port(&self, port: u16) -> PathBuf {
        self.folder.join("ports").join(port.to_string())
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

    /// Returns the port of this machine that replaces the port of the container's readiness probe.
    pub(crate) fn served(&self) -> Result<u16> {
        self.port(self.container.readiness.as_ref().context("the container has no readiness probe")?.port)
    }

    /// Returns the port of this machine that replaces a port of the container.
    fn port(&self, port: u16) -> Result<u16> {
        let file = self.file_of_port(port);
        let text = fs::read_to_string(&file).with_context(|| {
            let listens: Vec<_> = fs::read_dir(self.folder.join("ports")).into_iter().flatten().flatten().collect();
            let listens: Vec<_> = listens.iter().map(fs::DirEntry::file_name).collect();
            format!("the pod {name} does not listen on {port}, but on {listens:?}", name = self.name)
        })?;
        Ok(text.parse()?)
    }

    /// Sends a request to the port that the readiness probe uses.
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

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // Ignore an error: the process may already have ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
