//! A gateway for tests. It reads the operator's HTTPRoutes, and asks the decision point before it forwards a request.
//!
//! [`GatewayPolicy`] is the part of a SecurityPolicy that this gateway reads. Unlike the real gateway, this gateway
//! does not check tokens, and does not set headers from the claims of tokens. But the rules of the decision point check
//! the tokens, too.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use kaos_tests::control_plane::{ControlPlane, client, files};
use kaos_tests::harness::World;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::{name, text};
use kaos_tests::harness::scenario::SYSTEM;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::decision_point::DecisionPoint;
use crate::gateway_policy::GatewayPolicy;
use crate::pod::list;

/// The host in the addresses that Agents call.
pub(crate) const HOST: &str = "gw.tests";
/// The address to which [`HOST`] resolves. No pod and no Service has this address.
const ADDRESS: &str = "198.19.0.1";

/// The gateway of a cluster.
pub(crate) struct Gateway {
    /// The port of this machine on which the gateway listens.
    pub(crate) port: u16,
    decided: Arc<Mutex<Vec<Decided>>>,
}

/// A decision of the decision point about a request of an Agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) is_allowed: bool,
    /// The HTTP status of the answer that the Agent got from the backend or from the gateway.
    pub(crate) status: u64,
}

/// The parts of an HTTP request that the gateway reads.
struct Request {
    method: String,
    path: String,
    /// The names of headers are in lower case.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

struct State {
    world: World,
    /// The folder of the node.
    node: PathBuf,
    point: DecisionPoint,
    decided: Arc<Mutex<Vec<Decided>>>,
}

impl Gateway {
    /// Starts the gateway. `node` is the folder of the node. Processes on this node then find the gateway under the
    /// name [`HOST`].
    pub(crate) fn start(cluster: &ControlPlane, node: &Path, point: DecisionPoint) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let of_port = node.join("scratch/gateway");
        files::write(&of_port, &port.to_string())?;
        files::write(&node.join("services").join(HOST), ADDRESS)?;
        files::write(&node.join(format!("endpoints/{ADDRESS}:80")), &of_port.display().to_string())?;
        let decided = Arc::new(Mutex::new(Vec::new()));
        let (shared, node, kubeconfig) = (Arc::clone(&decided), node.to_owned(), cluster.kubeconfig());
        std::thread::spawn(move || {
            let serving = async {
                let world = World::over(client(&kubeconfig).await?, "default");
                let state = Rc::new(State { world, node, point, decided: shared });
                serve(TcpListener::from_std(listener)?, &state).await
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let ended =
                runtime.context("no runtime").and_then(|it| tokio::task::LocalSet::new().block_on(&it, serving));
            println!("  the gateway ended: {ended:?}");
        });
        Ok(Self { port, decided })
    }

    /// Returns the decisions about requests of Agents.
    pub(crate) fn decided(&self) -> Vec<Decided> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, state: &Rc<State>) -> Result<()> {
    loop {
        let (mut client, _) = listener.accept().await?;
        let state = Rc::clone(state);
        tokio::task::spawn_local(async move {
            let answered = state.answer(&mut client).await;
            if let Err(error) = answered {
                println!("  the gateway could not forward a request: {error:#}");
                // Ignore an error, because the client may already have closed the connection.
                let _ = reply(&mut client, 503, "the gateway cannot forward the request").await;
            }
        });
    }
}

async fn reply(client: &mut TcpStream, status: u64, body: &str) -> Result<()> {
    let head = format!("HTTP/1.1 {status} Answer\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    client.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(client.shutdown().await?)
}

impl State {
    async fn answer(&self, client: &mut TcpStream) -> Result<()> {
        let request = Request::read(client).await?;
        let routes = self.world.try_list_in(Kind::named("HTTPRoute"), "").await?;
        let is_it =
            |route: &&Value| request.path.strip_prefix(prefix(route)).is_some_and(|it| it.starts_with(['/', '?']));
        let Some(route) = routes.iter().filter(is_it).max_by_key(|route| prefix(route).len()) else {
            return reply(client, 404, "no route has this path").await;
        };
        if let Some(policy) = self.policy(route).await? {
            let refusal = self.refusal(&policy, &request).await?;
            if let Some((status, body)) = refusal {
                self.record(&request, false, status);
                return reply(client, status, &body).await;
            }
        }
        let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.backend(route)?)).await?;
        server.write_all(&request.forwarded(route)).await?;
        let mut answer = Vec::new();
        while !answer.windows(2).any(|window| window == b"\r\n") && server.read_buf(&mut answer).await? > 0 {}
        let line = String::from_utf8_lossy(&answer);
        self.record(&request, true, line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default());
        client.write_all(&answer).await?;
        tokio::io::copy(&mut server, client).await?;
        Ok(client.shutdown().await?)
    }

    /// Returns the SecurityPolicy that applies to a route and names a decision point.
    async fn policy(&self, route: &Value) -> Result<Option<GatewayPolicy>> {
        let namespace = text(&route["metadata"]["namespace"]);
        let policies = self.world.try_list_in(Kind::named("SecurityPolicy"), namespace).await?;
        Ok(GatewayPolicy::of(&policies, name(route)))
    }

    /// If the request is not allowed, returns the status and the body of the gateway's answer.
    async fn refusal(&self, policy: &GatewayPolicy, request: &Request) -> Result<Option<(u64, String)>> {
        let grants = self.world.try_list_in(Kind::named("ReferenceGrant"), SYSTEM).await?;
        if !policy.reaches(&grants) {
            return Ok(Some((500, "the SecurityPolicy must not refer to this decision point".to_owned())));
        }
        let headers = policy.forwarded(&request.headers);
        let decision = match self.point.decide(&self.world, &request.method, &request.path, &headers).await {
            Err(error) if policy.fails_open() => {
                println!("  the decision point gave no answer: {error:#}");
                return Ok(None);
            }
            decided => decided?,
        };
        let refusal = || (decision["http_status"].as_u64().unwrap_or(403), text(&decision["body"]).to_owned());
        Ok((decision["allowed"] != true).then(refusal))
    }

    /// Records the decision about a request if an Agent sent the request.
    fn record(&self, request: &Request, is_allowed: bool, status: u64) {
        if request.headers.iter().any(|(name, _)| name == "x-agent-authorization") {
            let (method, path) = (request.method.clone(), request.path.clone());
            let decided = Decided { method, path, is_allowed, status };
            self.decided.lock().unwrap_or_else(PoisonError::into_inner).push(decided);
        }
    }

    /// Returns the port of this machine on which the backend of a route listens.
    fn backend(&self, route: &Value) -> Result<u16> {
        let backend = &rule(route)["backendRefs"][0];
        let host = format!("{}.{}.svc.cluster.local", text(&backend["name"]), text(&route["metadata"]["namespace"]));
        let read = |path: PathBuf| std::fs::read_to_string(&path).with_context(|| path.display().to_string());
        let address = read(self.node.join("services").join(host))?;
        let file = read(self.node.join(format!("endpoints/{address}:{}", backend["port"])))?;
        Ok(read(file.into())?.parse()?)
    }
}

impl Request {
    /// Reads a request. Fails if the body comes in chunks: the clients in this suite send the length.
    async fn read(client: &mut TcpStream) -> Result<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if client.read_buf(&mut bytes).await? == 0 {
                bail!("the request ends early");
            }
        };
        let mut body = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes)?;
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let header =
            |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let headers: Vec<(String, String)> = lines.filter_map(header).collect();
        let of = |name: &str| headers.iter().find(|(it, _)| it == name).map(|(_, value)| value);
        anyhow::ensure!(of("transfer-encoding").is_none(), "a body in chunks");
        let length: usize = of("content-length").map_or(Ok(0), |length| length.parse())?;
        while body.len() < length {
            anyhow::ensure!(client.read_buf(&mut body).await? > 0, "the body ends early");
        }
        Ok(Self { method, path, headers, body })
    }

    /// Returns the bytes of the request as the gateway sends it to the backend of the route.
    fn forwarded(&self, route: &Value) -> Vec<u8> {
        let rest = self.path.strip_prefix(prefix(route)).unwrap_or_default();
        let mut head = format!("{} {}{rest} HTTP/1.1\r\n", self.method, if rest.starts_with('/') { "" } else { "/" });
        let set = list(&rule(route)["filters"]).iter().flat_map(|filter| list(&filter["requestHeaderModifier"]["set"]));
        let set: Vec<(&str, &str)> = set.map(|header| (text(&header["name"]), text(&header["value"]))).collect();
        let kept = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let kept = kept.filter(|(name, _)| *name != "connection" && set.iter().all(|(other, _)| other != name));
        for (name, value) in kept.chain(set.iter().copied()).chain([("connection", "close")]) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        [format!("{head}\r\n").as_bytes(), &self.body].concat()
    }
}

fn rule(route: &Value) -> &Value {
    &route["spec"]["rules"][0]
}

/// Returns the path prefix of a route.
fn prefix(route: &Value) -> &str {
    text(&rule(route)["matches"][0]["path"]["value"])
}
