//! Tests a team of Agents with tools, a model and a memory. Each Agent, tool server, model server and memory service is
//! a real process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kaos_tests::harness::read::{condition, name};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::node::Pod;
use crate::pod::list;

const NAMESPACE: &str = "today";
/// The Python source of the tools. The source contains dollar signs that Kubernetes would expand in the value of a
/// variable, unless the policy escapes them.
const TOOLS: &str = r#"
def plus(left: int, right: int) -> int:
    """Sum of two whole numbers."""
    return left + right


def price() -> str:
    """A price."""
    return "$$5 $(LOG_LEVEL)"
"#;
/// The time limit until the memory service has extracted facts from the turns of a session. The service first answers
/// the Agent, and extracts the facts afterwards.
const EXTRACTION: Duration = Duration::from_mins(2);

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

/// Returns the objects of the provider to which the ModelAPI forwards requests, and the Secret with the provider's key.
/// The test itself creates these objects, because no policy does.
fn provider() -> Vec<Value> {
    let labels = json!({"app": "provider"});
    let probe = json!({"tcpSocket": {"port": 8000}});
    let container = json!({
        "name": "provider", "image": "provider", "ports": [{"containerPort": 8000}], "readinessProbe": probe, "livenessProbe": probe,
    });
    let metadata = json!({"name": "provider", "namespace": NAMESPACE});
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": NAMESPACE},
            "stringData": {"provider": "the-key-of-the-secret"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 8000}]}}),
    ]
}

/// Returns the prepared answers of the model of the Agent `lead`. With these answers, the Agent calls a tool for a sum
/// and a tool for a price, and runs code that calls a tool. The Agent also asks its peer, saves a fact, searches for
/// facts, and answers.
fn turns_of_lead() -> String {
    let call =
        |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]}).to_string();
    json!([
        call("plus", json!({"left": 19, "right": 23})),
        call("price", json!({})),
        call("execute", json!({"code": "return await call_tool('sums_plus', {'left': 100, 'right': 23})"})),
        call("delegate_to_worker", json!({"task": "When does the ferry leave?"})),
        call("save_memory", json!({"content": "The ferry of the island leaves at nine in the morning."})),
        call("search_memory", json!({"query": "ferry", "level": "agent"})),
        "It leaves at nine.",
    ])
    .to_string()
}

/// Returns the configuration of the server `codes`, which runs code. The code can call the tools of the listed servers.
fn servers_of_codes() -> Value {
    json!({"servers": [{"name": "sums", "url": "http://mcpserver-sums.today.svc.cluster.local:8000/mcp"}]})
}

fn objects() -> Vec<Value> {
    vec![
        object(
            "ModelAPI",
            "llm",
            &json!({"mode": "Proxy", "proxyConfig": {
                "models": ["chat", "embed"], "provider": "openai", "apiBase": "http://provider.today.svc.cluster.local:8000/v1",
                "apiKey": {"valueFrom": {"secretKeyRef": {"name": "keys", "key": "provider"}}},
            }}),
        ),
        object("MCPServer", "sums", &json!({"runtime": "python-string", "params": TOOLS})),
        object("MCPServer", "codes", &json!({"runtime": "fastmcp-codemode", "params": servers_of_codes().to_string()})),
        object(
            "MemoryStore",
            "notes",
            &json!({
                "storage": {"type": "local"},
                "models": {"summarization": {"modelAPI": "llm", "model": "chat"}, "embedding": {"modelAPI": "llm", "model": "embed"}},
                "shortTerm": {"tokenBudget": 600},
                "mediumTerm": {"compactionTrigger": 500, "compactionTarget": 60},
                "longTerm": {"scoreThreshold": 0.25},
            }),
        ),
        object("Agent", "worker", &json!({"modelAPI": "llm", "model": "chat", "config": {"toolCallMode": "native"}})),
        object(
            "Agent",
            "lead",
            &json!({
                "modelAPI": "llm", "model": "chat", "mcpServers": ["codes", "sums"], "agentNetwork": {"access": ["worker"]},
                "config": {
                    "description": "Leads the team", "reasoningLoopMaxSteps": 12,
                    "memory": {"memoryStore": "notes", "tools": "all", "failureMode": "strict"},
                },
                "container": {"env": [{"name": "DEBUG_MOCK_RESPONSES", "value": turns_of_lead()}]},
            }),
        ),
    ]
}

/// Sends a chat to an Agent in a session. Returns the answer.
fn chat(agent: &Pod, session: &str, text: &str) -> String {
    let body = json!({"model": "any", "messages": [{"role": "user", "content": text}]});
    let answer = agent.ask("/v1/chat/completions", &[("x-session-id", session)], Some(&body)).unwrap().json().unwrap();
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Returns the memory of a scope: the turns of a session, and the facts.
fn recalled(store: &Pod, scope: &Value) -> Value {
    let body = json!({"scope": scope, "query": "ferry"});
    store.ask("/v1/recall", &[], Some(&body)).unwrap().json().unwrap()
}

/// Returns the turns of a session as text.
fn turns(store: &Pod, session: &str) -> String {
    let recalled = recalled(store, &json!({"level": "session", "session_id": session}));
    recalled["short_term"]["window"].to_string()
}

/// Returns the facts of an Agent as text.
fn facts(store: &Pod, agent: &str) -> String {
    let owner = format!("kaos://agent/{NAMESPACE}/{agent}");
    recalled(store, &json!({"level": "agent", "agent_client_id": owner}))["long_term"]["block"].to_string()
}

/// Returns the claims in a token of the API server.
fn claims(token: &str) -> Value {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

#[tokio::test]
async fn a_team_of_real_processes_becomes_ready_talks_remembers_and_uses_tools() {
    let cluster = Cluster::shared();
    let world = cluster.world(NAMESPACE).await;
    let objects = objects();
    world.apply_all(&provider()).await;
    world.apply_all(&objects).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let keys: Vec<String> =
        objects.iter().map(|it| format!("{}/{}", text(&it["kind"]), text(&it["metadata"]["name"]))).collect();
    cluster.until_ready(&world, &keys).await;
    let [lead, worker, store]: [Arc<Pod>; 3] = [
        cluster.pod(&world, "agent-lead").await,
        cluster.pod(&world, "agent-worker").await,
        cluster.pod(&world, "memorystore-notes").await,
    ];

    assert_eq!(lead.variable("AGENT_IDENTITY"), Some("kaos://agent/today/lead"));
    let claims = claims(&lead.file("/var/run/secrets/kaos-agent/token").unwrap());
    assert_eq!(
        (&claims["aud"], &claims["sub"]),
        (&json!(["kaos-gateway"]), &json!("system:serviceaccount:today:kaos-agent-lead"))
    );
    assert!(lead.variable("AGENT_AUTH_TOKEN_FILE").unwrap().ends_with("/root/var/run/secrets/kaos-agent/token"));
    let card = lead.ask("/.well-known/agent.json", &[], None).unwrap().json().unwrap();
    assert_eq!((&card["name"], &card["description"]), (&json!("lead"), &json!("Leads the team")));
    let skills: Vec<&str> = list(&card["skills"]).iter().filter_map(|skill| skill["name"].as_str()).collect();
    for skill in ["plus", "price", "execute", "delegate_to_worker"] {
        assert!(skills.contains(&skill), "{skill} in {skills:?}");
    }
    assert_eq!(world.look("MCPServer/sums").await["status"]["availableTools"], json!(["plus", "price"]));

    // The Agent `worker` asks the provider through the proxy, with the key from the Secret.
    let of_provider = "the ferry leaves at nine";
    assert!(chat(&worker, "s0", "When does the ferry leave?").contains(of_provider));
    assert_eq!(chat(&lead, "s1", "When does the ferry leave?"), "It leaves at nine.");
    let told = turns(&store, "s1");
    for result in [
        "[tool result plus: 42]",
        "[tool result price: $$5 $(LOG_LEVEL)]",
        // The result of the code, which ran in a sandbox and called a tool of another server.
        "123",
        "[delegation result delegate_to_worker: {",
        "[tool result save_memory: Saved to long-term memory.]",
        "[tool result search_memory: No relevant memories found.]",
        "It leaves at nine.",
    ] {
        assert!(told.contains(result), "the session has no {result}: {told}");
    }
    assert!(told.contains(of_provider), "{told}");

    // If the session has too many turns for its window, the service removes turns from the window. The service extracts
    // facts from these turns with the models of the ModelAPI.
    let begun = Instant::now();
    while !facts(&store, "lead").contains(of_provider) {
        assert!(begun.elapsed() < EXTRACTION, "no fact: {}", store.log());
        chat(&lead, "s1", "And tomorrow?");
    }
    assert_eq!(facts(&store, "worker"), json!("").to_string());
    chat(&lead, "s2", "When does the ferry leave?");
    let told = turns(&store, "s2");
    assert!(told.contains("[tool result search_memory: ## Relevant memory"), "{told}");

    // Delete the store's pod. The facts are in the store's volume, so the new pod must have them, too.
    let pods = world.list("Pod").await;
    let old = pods.iter().map(name).find(|name| name.starts_with("memorystore-notes-")).unwrap();
    world.delete(&format!("Pod/{old}")).await;
    world.until_gone(&format!("Pod/{old}")).await;
    let is_new = |pod: &Value| {
        name(pod).starts_with("memorystore-notes-") && name(pod) != old && condition(pod, "Ready")["status"] == "True"
    };
    world.until_true("another pod of the store is ready", async || world.list("Pod").await.iter().any(is_new)).await;
    let store = cluster.pod(&world, "memorystore-notes").await;
    assert!(facts(&store, "lead").contains(of_provider), "{}", store.log());
    world.delete(&format!("Namespace/{NAMESPACE}")).await;
}
