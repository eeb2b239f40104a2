//! Generates a random test case from a seed: the options of an operator, and the objects of its cluster.

use fastrand::Rng;
use kaos_operator::package::{PolicyCode, pack};
use kaos_policy::manifest::PolicyFile;
use serde_json::{Value, json};

use crate::{
    stage::{HOME, edition},
    support::Folder,
};

/// The namespaces of objects.
const NAMESPACES: [&str; 2] = ["team", "blue"];

/// A test case.
pub(crate) struct Drawn {
    rng: Rng,
    /// The values of `--set`.
    set: Vec<String>,
    /// The content of the `--settings` file; `None` without the flag.
    file: Option<String>,
    /// The environment variables of the process.
    pub(crate) environment: Vec<(String, String)>,
    /// Whether tenants may install policies in their namespaces.
    in_namespaces: bool,
    /// The objects that a user applies: the operator's ConfigMap, packages, objects and their dependencies.
    pub(crate) objects: Vec<Value>,
}

impl Drawn {
    pub(crate) fn of(seed: u64) -> Self {
        let rng = Rng::with_seed(seed);
        let (set, environment, objects) = (Vec::new(), Vec::new(), Vec::new());
        let mut drawn = Self { rng, set, file: None, environment, in_namespaces: false, objects };
        // Half of the operators start without settings. With the other operators, the test skips `policy plan`, which
        // knows neither the flags nor the environment of an operator.
        if drawn.rng.bool() {
            drawn.set = drawn.some(&[
                "logLevel=DEBUG",
                "agent.image=set/agent:1",
                "agent.resources.limits.memory=1Gi",
                "modelapi.proxy.image=set/litellm:1",
            ]);
            drawn.file = drawn.rng.bool().then(|| "logLevel: TRACE\nagent: {image: 'file/agent:1'}\n".to_owned());
            let variables = drawn.some(&["DEFAULT_AGENT_IMAGE=env/agent:1", "DEFAULT_LOG_LEVEL=WARNING"]);
            drawn.environment = variables.iter().filter_map(|text| text.split_once('=')).map(owned).collect();
        }
        drawn.in_namespaces = drawn.rng.bool();
        drawn.objects = NAMESPACES.iter().flat_map(|namespace| dependencies(namespace)).collect();
        drawn.change();
        drawn
    }

    /// Generates the operator's ConfigMap, packages and objects again. Each new object replaces the earlier object of
    /// the same kind, namespace and name.
    pub(crate) fn change(&mut self) {
        let mut objects: Vec<Value> = NAMESPACES.iter().flat_map(|namespace| dependencies(namespace)).collect();
        objects.push(self.config());
        objects.extend(self.drawn_packages());
        for number in 0..6 {
            objects.push(self.agent(number));
        }
        for number in 0..2 {
            objects.push(self.other(number));
        }
        // Keep each earlier object that no new object replaces.
        let is_same = |one: &Value, other: &Value| {
            let of = |object: &Value| {
                [&object["kind"], &object["metadata"]["namespace"], &object["metadata"]["name"]].map(Value::to_string)
            };
            of(one) == of(other)
        };
        let before = std::mem::take(&mut self.objects);
        let kept = before.into_iter().filter(|old| !objects.iter().any(|new| is_same(old, new)));
        self.objects = kept.chain(objects.iter().cloned()).collect();
    }

    /// Returns the packages that the operator reads.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &Value> {
        let counts = |package: &&Value| self.in_namespaces || package["metadata"]["namespace"] == HOME;
        self.objects.iter().filter(|object| !object["metadata"]["labels"]["kaos.tools/policy"].is_null()).filter(counts)
    }

    /// Returns whether the operator of this case starts without settings in flags, in a file and in the environment.
    pub(crate) fn is_plain(&self) -> bool {
        self.set.is_empty() && self.file.is_none() && self.environment.is_empty()
    }

    pub(crate) fn packages_flag(&self) -> Vec<&'static str> {
        if self.in_namespaces { vec!["--namespace-policies"] } else { Vec::new() }
    }

    /// Returns the operator's flags that `render` also has.
    pub(crate) fn arguments(&self, folder: &Folder) -> Vec<String> {
        let mut arguments: Vec<String> = self.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]).collect();
        if let Some(file) = &self.file {
            arguments.extend(["--settings".to_owned(), folder.write("operator-settings.yaml", file)]);
        }
        arguments.extend(self.packages_flag().into_iter().map(str::to_owned));
        arguments
    }

    /// Picks each of these texts with a probability of one half.
    fn some(&mut self, all: &[&str]) -> Vec<String> {
        all.iter().filter(|_| self.rng.bool()).map(|&text| text.to_owned()).collect()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        self.rng.choice(of.iter().copied()).unwrap()
    }

    /// Generates the operator's own ConfigMap.
    fn config(&mut self) -> Value {
        let variables = self.some(&[
            "DEFAULT_AGENT_IMAGE=config/agent:1",
            "DEFAULT_LOG_LEVEL=ERROR",
            "DEFAULT_LITELLM_IMAGE=config/litellm:1",
            "DEFAULT_TELEMETRY_ENABLED=true",
            "GATEWAY_API_ENABLED=true",
            "DEFAULT_AGENT_IMG=misspelt",
        ]);
        let variables: Vec<(String, String)> =
            variables.iter().filter_map(|text| text.split_once('=')).map(owned).collect();
        let data: serde_json::Map<String, Value> =
            variables.into_iter().map(|(key, value)| (key, json!(value))).collect();
        let metadata = json!({"name": "kaos-operator-config", "namespace": HOME});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    }

    /// Generates valid and invalid packages of settings for different scopes, and sometimes also a package with a
    /// policy.
    fn drawn_packages(&mut self) -> Vec<Value> {
        let (image, level) = (self.rng.u32(1..9), self.one(&["DEBUG", "TRACE"]));
        let everywhere = format!("{{name: agent, settings: {{image: 'everywhere/agent:{image}'}}}}");
        let scoped = format!("{{name: agent, scope: {{namespaces: [team]}}, settings: {{logLevel: {level}}}}}");
        let own = format!("{{name: agent, settings: {{image: 'own/agent:{image}'}}}}");
        let mut all = vec![
            settings(HOME, "everywhere", &everywhere),
            settings(HOME, "scoped", &scoped),
            settings("blue", "own", &own),
            // An operator refuses the next four packages.
            settings(HOME, "broken", "{name: agent, settings: {resources: {limit: {memory: 1Gi}}}}"),
            settings(HOME, "unknown", "{name: nobody, settings: {image: x}}"),
            settings("team", "elsewhere", "{name: agent, scope: {namespaces: [blue]}, settings: {logLevel: INFO}}"),
            settings(HOME, "misfit", "{name: modelapi, settings: {logLevel: 5}}"),
            settings(HOME, "every-second", "{name: agent, settings: {image: 'second/agent:1'}}"),
        ];
        all.retain(|_| self.rng.bool());
        if self.rng.u8(..3) == 0 {
            let scope = self.one(&["", "scope: {namespaces: [team]}", "scope: {pinned: true}"]);
            all.push(policy(scope));
        }
        all
    }

    fn agent(&mut self, number: usize) -> Value {
        let (pin, namespace) = (self.pin(), NAMESPACES[number % 2]);
        let model_api = self.one(&["llm", "llm", "llm", "llm", "llm", "llm", "missing", "broken"]);
        let mut spec = json!({"modelAPI": model_api, "model": self.one(&["gpt-4o", "gpt-4o", "gpt-4o", "gpt-4o", "gpt-4o", "a/*"])});
        match self.rng.u8(..6) {
            0 => spec["podSpec"] = json!({"nodeSelector": {"a": "b"}}),
            1 => spec["podSpec"] = json!({"volumes": [{"name": "A B", "emptyDir": {}}]}),
            2 => spec["mcpServers"] = json!(["tools"]),
            3 => spec["container"] = json!({"env": [{"name": "A", "value": "1"}], "image": "mine/agent:1"}),
            _ => {}
        }
        object("Agent", namespace, &format!("a{number}"), pin, &spec)
    }

    fn other(&mut self, number: usize) -> Value {
        let (pin, namespace) = (self.pin(), NAMESPACES[number % 2]);
        if self.rng.bool() {
            let runtime = self.one(&["python-string", "nothing-of-that-name"]);
            return object(
                "MCPServer",
                namespace,
                "drawn",
                pin,
                &json!({"runtime": runtime, "params": "def a(): pass"}),
            );
        }
        let spec = match self.rng.u8(..3) {
            0 => json!({"mode": "Hosted", "hostedConfig": {"model": "smollm2:135m"}}),
            1 => json!({"mode": "Proxy", "proxyConfig": {"models": ["a", "b"], "apiKey": {"value": "k"}}}),
            _ => json!({"mode": "Proxy", "proxyConfig": {"models": [""]}}),
        };
        object("ModelAPI", namespace, "drawn", pin, &spec)
    }

    /// Draws a pin or `None`. The pin names an existing or unknown policy, for this kind or another kind, by name,
    /// version or digest.
    fn pin(&mut self) -> Option<String> {
        let own = kaos_operator::embedded::DEFAULTS.iter().find(|it| it.manifest.contains("name: agent\n")).unwrap();
        let digest = kaos_policy::digest::Digest::of(own.component);
        let digest = digest.hex();
        Some(match self.rng.u8(..18) {
            0 => "agent".to_owned(),
            1 => " agent ".to_owned(),
            2 => "nope".to_owned(),
            3 => "modelapi".to_owned(),
            4 => "agent@0.1.0".to_owned(),
            5 => digest[..12].to_owned(),
            6 => format!("sha256:{digest}"),
            7 => digest[..11].to_owned(),
            8 => String::new(),
            _ => return None,
        })
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns the objects that Agents need, including one broken ModelAPI.
fn dependencies(namespace: &str) -> [Value; 4] {
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    let broken = json!({"mode": "Hosted"});
    let tools = json!({"runtime": "custom", "container": {"image": "img:1"}});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": namespace}}),
        object("ModelAPI", namespace, "llm", None, &proxy),
        object("ModelAPI", namespace, "broken", None, &broken),
        object("MCPServer", namespace, "tools", None, &tools),
    ]
}

fn object(kind: &str, namespace: &str, name: &str, pin: Option<String>, spec: &Value) -> Value {
    let mut metadata = json!({"name": name, "namespace": namespace});
    if let Some(pin) = pin {
        metadata["annotations"] = json!({"kaos.tools/policy": pin});
    }
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// Returns a package of settings.
fn settings(namespace: &str, name: &str, file: &str) -> Value {
    package(namespace, name, &PolicyFile::parse(file).unwrap(), None)
}

/// Returns a package with the default policy of Agents and the given scope. Its component has the code of the built-in
/// component, but other bytes.
fn policy(scope: &str) -> Value {
    let mut edition = edition(1, "{}");
    if !scope.is_empty() {
        edition.file.scope = PolicyFile::parse(&format!("{{{scope}}}")).unwrap().scope;
    }
    package(HOME, "edition", &edition.file, edition.component.as_ref())
}

fn package(namespace: &str, name: &str, file: &PolicyFile, component: Option<&PolicyCode>) -> Value {
    let packed = pack(name, namespace, file, component).unwrap();
    assert!(packed.chunks.is_empty(), "one ConfigMap is enough");
    let mut index = serde_json::to_value(packed.index).unwrap();
    (index["apiVersion"], index["kind"]) = (json!("v1"), json!("ConfigMap"));
    index
}
