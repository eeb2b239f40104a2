//! Tests samples 7 and 8, and the tools of MCPServers, in a secured cluster. All requests of these tests go through the
//! gateway, which asks the decision point. So do the requests of the Agents to peers, tools and stores.
//!
//! The API server signs the tokens of the Agents. The tokens of the users come from a script, which replaces an
//! identity provider.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use kaos_tests::case;
use kaos_tests::control_plane::{ControlPlane, Extent};
use kaos_tests::harness::World;
use kaos_tests::harness::definitions::{gateway_policies, routes};
use kaos_tests::harness::read::{condition, name, text};
use kaos_tests::harness::samples::definition;
use kaos_tests::harness::scenario::SYSTEM;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::decision_point::DecisionPoint;
use crate::gateway::{Decided, Gateway, HOST};
use crate::http::{self, Response};
use crate::node::START;
use crate::{images, samples};

const ISSUER: &str = "https://people";
const AUDIENCE: &str = "kaos";
const CHART: &str = "../deploy/helm/kaos-operator";
const TOKEN: &str = "/var/run/secrets/kaos-agent/token";

/// A secured cluster, with a gateway, and with users.
struct Secured {
    cluster: Cluster,
    gateway: Gateway,
    /// The tokens of the users, by name.
    tokens: Value,
}

impl Secured {
    async fn start() -> Result<Self> {
        let folder = images::installed().join("runs/identities");
        fs::create_dir_all(&folder)?;
        let users = json!({"ada": {"sub": "ada"}, "bob": {"sub": "bob"}, "eve": {"sub": "u-7", "groups": ["staff"]}})
            .to_string();
        let mut command = Command::new(images::installed().join("litellm/bin/python"));
        command.arg(images::of_tests().join("identities.py")).arg(&folder).args([ISSUER, AUDIENCE, &users]);
        let printed = command.output()?;
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let identities: Value = serde_json::from_slice(&printed.stdout)?;
        // Start a separate control plane with an RSA key: the rules of the decision point accept only RS256, but the
        // control plane of the other tests signs with another algorithm.
        let control = ControlPlane::signing_with(&folder, Extent::WithoutNodes)?;
        let world = World::over(control.client().await?, "default");
        let mut references = definition("gateway.networking.k8s.io", "referencegrants", "ReferenceGrant");
        references["spec"]["versions"][0]["name"] = json!("v1beta1");
        references["metadata"]["annotations"] = routes()["metadata"]["annotations"].clone();
        for definition in [routes(), gateway_policies(), references] {
            world.apply(&definition).await;
            let at = format!("CustomResourceDefinition/{}", name(&definition));
            world.until("it is served", &at, |crd| condition(crd, "Established")["status"] == "True").await;
        }
        let manifests = rendered(&control, &identities["jwks"])?;
        let cluster = Cluster::over(control, "secured", &manifests).await?;
        let point = DecisionPoint::start(cluster.control())?;
        let gateway = Gateway::start(cluster.control(), &cluster.folder_of_node(), point)?;
        Ok(Self { cluster, gateway, tokens: identities["tokens"].clone() })
    }

    /// Waits until the SecurityPolicies of a namespace may refer to the decision point.
    async fn until_asked(&self, world: &World) {
        let system = World::over(self.cluster.control().client().await.unwrap(), SYSTEM);
        let grant = format!("ReferenceGrant/kaos-pdp-{}", world.namespace);
        system.until_true("a ReferenceGrant", async || !system.look(&grant).await.is_null()).await;
    }

    /// Sends a request to the gateway with these headers.
    fn send(&self, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Response {
        http::send(self.gateway.port, path, headers, body, START).unwrap()
    }

    /// Sends a request of a user.
    fn ask(&self, user: &str, path: &str, body: Option<&Value>) -> Response {
        let token = format!("Bearer {}", text(&self.tokens[user]));
        self.send(path, &[("authorization", &token)], body)
    }

    /// Sends a request as an Agent that does not act for a user.
    async fn ask_as_agent(&self, world: &World, agent: &str, path: &str, body: &Value) -> Response {
        let pod = self.cluster.pod(world, &format!("agent-{agent}")).await;
        let token = format!("Bearer {}", pod.file(TOKEN).unwrap());
        self.send(path, &[("x-agent-authorization", &token)], Some(body))
    }
}

/// Renders the chart for this cluster as the guide for secured clusters describes. Leaves out the Deployment of the
/// decision point, because [`DecisionPoint`] replaces this Deployment.
fn rendered(control: &ControlPlane, users: &Value) -> Result<PathBuf> {
    let raw = |path: &str| control.kubectl(&["get", "--raw", path]).expect();
    let about: Value = serde_json::from_str(&raw("/.well-known/openid-configuration"))?;
    let account = json!({"issuer": about["issuer"], "jwks": raw("/openid/v1/jwks")});
    let values = json!({
        "gatewayAPI": {"enabled": true},
        "security": {
            "pdp": {"enabled": true},
            "agentAuth": {"identity": {"provider": "serviceaccount", "serviceAccount": account}},
            "userAuth": {"issuer": ISSUER, "audience": AUDIENCE, "jwks": users.to_string()},
            "gatewayHost": HOST,
            "strictGatewayApi": {"enabled": true},
        },
    });
    let at = |file: &str| control.folder().join(file);
    fs::write(at("values.json"), values.to_string())?;
    let file = at("values.json").display().to_string();
    let text =
        control.helm(&["template", "kaos", CHART, "--namespace", SYSTEM, "--no-hooks", "--values", &file]).expect();
    fs::write(at("chart.yaml"), text)?;
    let objects = case::documents(&at("chart.yaml")).context("the chart")?;
    let is_replaced = |object: &&Value| object["kind"] == "Deployment" && name(object) == "kaos-pdp";
    let kept: Vec<String> = objects.iter().filter(|object| !is_replaced(object)).map(Value::to_string).collect();
    ensure!(kept.len() + 1 == objects.len(), "the chart has no decision point");
    fs::write(at("installed.yaml"), kept.join("\n---\n"))?;
    Ok(at("installed.yaml"))
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Returns an AccessGrant that lets the user ada call one resource.
fn grant(name: &str, resource: &Value) -> Value {
    object("AccessGrant", name, &json!({"subjects": [{"kind": "User", "name": "ada"}], "resources": [resource]}))
}

/// Returns an Agent that asks the Agent `asked` of sample 8, and an AccessGrant that lets the user ada call the
/// returned Agent.
fn courier() -> [Value; 2] {
    let delegates = json!({"tool_calls": [{"name": "delegate_to_asked", "arguments": {"task": "Is there a grant?"}}]});
    let responses = json!([delegates.to_string(), "It has answered."]).to_string();
    let agent = json!({
        "modelAPI": "authorization-modelapi", "model": "gpt-4o-mini", "agentNetwork": {"access": ["asked"]},
        "container": {"env": [{"name": "DEBUG_MOCK_RESPONSES", "value": responses}]},
    });
    [object("Agent", "courier", &agent), grant("courier", &json!({"kind": "Agent", "name": "courier"}))]
}

/// Returns an MCPServer, an Agent that names this MCPServer, and an AccessGrant that lets the user ada call the
/// MCPServer.
fn tools() -> [Value; 3] {
    let plus =
        "def plus(left: int, right: int) -> int:\n    \"\"\"Sum of two whole numbers.\"\"\"\n    return left + right\n";
    let agent = json!({"modelAPI": "authorization-modelapi", "model": "gpt-4o-mini", "mcpServers": ["sums"]});
    [
        object("MCPServer", "sums", &json!({"runtime": "python-string", "params": plus})),
        object("Agent", "adder", &agent),
        grant("sums", &json!({"kind": "MCPServer", "name": "sums"})),
    ]
}

/// Calls the tool `plus` of an MCPServer like an MCP client, with these headers. Returns the body of the answer, or the
/// status if the gateway refuses the first request.
fn call_tool(secured: &Secured, path: &str, headers: &[(&str, &str)]) -> std::result::Result<String, u16> {
    let send = |more: &[(&str, &str)], body: &Value| {
        let accept = ("accept", "application/json, text/event-stream");
        secured.send(path, &[headers, &[accept], more].concat(), Some(body))
    };
    let request =
        |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let client =
        json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let begun = send(&[], &request(1, "initialize", client));
    if begun.status != 200 {
        return Err(begun.status);
    }
    let session = [("mcp-session-id", begun.header("mcp-session-id").unwrap())];
    let ready = send(&session, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(ready.status, 202, "{}", ready.body);
    let arguments = json!({"name": "plus", "arguments": {"left": 19, "right": 23}});
    Ok(send(&session, &request(2, "tools/call", arguments)).body)
}

/// Checks that only callers with an AccessGrant reach the tools of an MCPServer. The test itself sends the tokens of
/// Agents, because KAOS's runtime does not send them. The runtime adds tokens only to requests of the library `httpx`,
/// but the pinned MCP client uses `httpx2`.
async fn only_callers_with_a_grant_reach_tools(secured: &Secured, world: &World) {
    world.apply_all(&tools()).await;
    secured.cluster.until_ready(world, &["MCPServer/sums".to_owned(), "Agent/adder".to_owned()]).await;
    until_enforced(world, "AccessGrant/sums").await;
    let route = world.look("HTTPRoute/mcp-sums").await;
    let path = format!("{}/mcp", text(&route["spec"]["rules"][0]["matches"][0]["path"]["value"]));
    let user = |name: &str| ("authorization", format!("Bearer {}", text(&secured.tokens[name])));
    let agent = async |name: &str| {
        let pod = secured.cluster.pod(world, &format!("agent-{name}")).await;
        ("x-agent-authorization", format!("Bearer {}", pod.file(TOKEN).unwrap()))
    };
    let (adder, patrol) = (agent("adder").await, agent("patrol").await);
    for (about, headers, is_allowed) in [
        ("a user with a grant", vec![user("ada")], true),
        ("a user without a grant", vec![user("bob")], false),
        ("an Agent that names the server, for a user", vec![adder.clone(), user("bob")], true),
        ("an Agent that names the server, for nobody", vec![adder], false),
        ("an Agent that does not name the server", vec![patrol], false),
        ("nobody", Vec::new(), false),
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match call_tool(secured, &path, &headers) {
            Ok(answer) => assert!(is_allowed && answer.contains("42"), "{about}: {answer}"),
            Err(status) => assert_eq!((is_allowed, status), (false, 403), "{about}"),
        }
    }
}

/// Waits until an AccessGrant is in force.
async fn until_enforced(world: &World, grant: &str) {
    let is_enforced = |it: &Value| condition(it, "Enforced")["status"] == "True";
    world.until("the decision point has the grant", grant, is_enforced).await;
}

#[tokio::test]
async fn in_a_secured_cluster_only_callers_with_a_grant_get_an_answer() {
    let secured = Secured::start().await.unwrap();

    // Sample 8: the user ada may call the Agent `asked`, and the autonomous Agent `patrol` names `asked` as a peer.
    let world = samples::run(&secured.cluster, "8-authorization-walkthrough").await;
    secured.until_asked(&world).await;
    until_enforced(&world, "AccessGrant/ada").await;
    let asked = secured.cluster.pod(&world, "agent-asked").await;
    let model = format!("http://{HOST}/{}/modelapi/authorization-modelapi", world.namespace);
    assert_eq!(asked.variable("MODEL_API_URL"), Some(model.as_str()));
    let to = |agent: &str| format!("/{}/agent/{agent}/v1/chat/completions", world.namespace);
    let chat = json!({"model": "any", "messages": [{"role": "user", "content": "hello"}]});
    let answer = secured.ask("ada", &to("asked"), Some(&chat)).json().unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "You have a grant.");
    for (user, agent) in [("bob", "asked"), ("eve", "asked"), ("ada", "patrol")] {
        let refused = secured.ask(user, &to(agent), Some(&chat));
        assert_eq!((refused.status, refused.body.as_str()), (403, "not allowed by kaos.authz"), "{user} to {agent}");
    }
    assert_eq!(secured.send(&to("asked"), &[], Some(&chat)).status, 403, "without a token");
    let answer = secured.ask_as_agent(&world, "patrol", &to("asked"), &chat).await.json().unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "You have a grant.");
    assert_eq!(secured.ask_as_agent(&world, "asked", &to("patrol"), &chat).await.status, 403);
    // Let the real process of an Agent ask the Agent's peer through the gateway.
    world.apply_all(&courier()).await;
    secured.cluster.until_ready(&world, &["Agent/courier".to_owned()]).await;
    until_enforced(&world, "AccessGrant/courier").await;
    let begun = secured.gateway.decided().len();
    let answer = secured.ask("ada", &to("courier"), Some(&chat)).json().unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "It has answered.");
    let decided = secured.gateway.decided().split_off(begun);
    let peer = format!("/{}/agent/asked", world.namespace);
    let is_call = |it: &Decided| (it.method.as_str(), it.is_allowed, it.status) == ("POST", true, 200);
    assert!(decided.iter().any(|it| is_call(it) && it.path.starts_with(&peer)), "{decided:?}");
    // The memory of the Agent must contain the peer's answer.
    let courier = secured.cluster.pod(&world, "agent-courier").await;
    let events = courier.ask("/memory/events", &[], None).unwrap().json().unwrap();
    let is_answer = |it: &Value| {
        it["event_type"] == "delegation_response" && it["content"].to_string().contains("You have a grant.")
    };
    assert!(events["events"].as_array().unwrap().iter().any(is_answer), "{events:#}");
    only_callers_with_a_grant_reach_tools(&secured, &world).await;
    // Delete the AccessGrant. The gateway must then refuse the same request.
    world.delete("AccessGrant/ada").await;
    let is_refused = async || secured.ask("ada", &to("asked"), Some(&chat)).status == 403;
    world.until_true("the withdrawn grant counts", is_refused).await;
    world.delete(&format!("Namespace/{}", world.namespace)).await;

    // Sample 7: the group `staff` may call one Agent and the store.
    let world = samples::run(&secured.cluster, "7-memory-agent").await;
    secured.until_asked(&world).await;
    until_enforced(&world, "AccessGrant/staff").await;
    let of = |agent: &str| format!("/{}/agent/{agent}/.well-known/agent.json", world.namespace);
    let card = secured.ask("eve", &of("knows-users"), None).json().unwrap();
    assert_eq!(card["name"], "knows-users");
    let recall = json!({"scope": {"level": "session", "session_id": "s"}, "query": "ferry"});
    let store = format!("/{}/memorystore/memory/v1/recall", world.namespace);
    assert_eq!(secured.ask("eve", &store, Some(&recall)).status, 200);
    for (user, path, body) in
        [("bob", of("knows-users"), None), ("bob", store, Some(&recall)), ("eve", of("knows-its-own"), None)]
    {
        assert_eq!(secured.ask(user, &path, body).status, 403, "{user} to {path}");
    }
    world.delete(&format!("Namespace/{}", world.namespace)).await;
}
