//! Tests objects of KAOS 0.8 with the preset `kaos-0.8`: images, probes, commands, scopes and identities are the same
//! as in KAOS. Two values differ. A new proxy gets the permission to start without a master key. The ModelAPI in sample
//! 16 gets the image from its spec, which KAOS ignores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::support::{Ran, run};
use serde_json::Value;

pub(crate) fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/today")
}

pub(crate) fn sample(name: &str) -> String {
    samples().join(name).display().to_string()
}

/// The facts that KAOS's operator asks the API server for. Policies get these facts from settings.
const DISCOVERED: [&str; 6] = [
    "--set",
    "security.agents.issuer=https://cluster",
    "--set",
    "security.agents.jwks={\"keys\": []}",
    "--set",
    "gatewayRouting.host=gateway.example",
];

/// Renders the samples in these files with the preset `kaos-0.8`.
fn render(files: &[&str]) -> Ran {
    let mut arguments = vec!["render", "--compatibility", "kaos-0.8", "--status", "-o", "json"];
    arguments.extend(DISCOVERED);
    let files: Vec<String> = files.iter().map(|file| sample(file)).collect();
    arguments.extend(files.iter().flat_map(|file| ["-f", file.as_str()]));
    run(arguments, "")
}

/// Formats those fields of the status and of the children that these tests compare, one on each line.
fn told(ran: &Ran) -> String {
    let mut text = String::new();
    for entry in ran.json().as_array().unwrap() {
        let object = &entry["object"];
        let _ = writeln!(text, "{} {}", word(&object["kind"]), word(&object["name"]));
        let status = &entry["status"];
        let _ = writeln!(text, "  status: {}: {}", word(&status["phase"]), word(&status["message"]));
        for condition in status["conditions"].as_array().into_iter().flatten() {
            if ["Enforced", "MemoryDegraded", "Ready"].iter().any(|of| condition["type"] == *of) {
                let of = ["type", "status", "reason"].map(|field| word(&condition[field]));
                let _ = writeln!(text, "  condition: {} {} {}", of[0], of[1], of[2]);
            }
        }
        for (kind, name) in status["linkedResources"].as_object().into_iter().flatten() {
            let _ = writeln!(text, "  linked: {kind} {}", word(name));
        }
        for manifest in entry["manifests"].as_array().into_iter().flatten() {
            let _ = writeln!(
                text,
                "  {} {}{}",
                word(&manifest["kind"]),
                word(&manifest["metadata"]["name"]),
                amounts(manifest)
            );
            pods(&manifest["spec"]["template"]["spec"], &mut text);
        }
    }
    text
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the compared fields of a child, except the fields of its pods.
fn amounts(manifest: &Value) -> String {
    let spec = &manifest["spec"];
    match word(&manifest["kind"]).as_str() {
        "Deployment" => format!(", replicas {}", spec["replicas"]),
        "PersistentVolumeClaim" => format!(", {}", word(&spec["resources"]["requests"]["storage"])),
        "PodDisruptionBudget" => format!(", minAvailable {}", spec["minAvailable"]),
        "HTTPRoute" => format!(", {}", each(&spec["rules"][0]["filters"], |filter| word(&filter["type"]))),
        "SecurityPolicy" => {
            let backend = |it: &Value| format!("{}.{}:{}", word(&it["name"]), word(&it["namespace"]), it["port"]);
            let asked = each(&spec["extAuth"]["grpc"]["backendRefs"], backend);
            format!(", asks {asked}, tokens of {}", each(&spec["jwt"]["providers"], |it| word(&it["name"])))
        }
        "NetworkPolicy" => {
            let namespace = |it: &Value| word(&it["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]);
            format!(", from {}", each(&spec["ingress"][0]["from"], namespace))
        }
        "Service" => format!(", port {}", spec["ports"][0]["port"]),
        "ServiceAccount" => {
            let labels = &manifest["metadata"]["labels"];
            format!(
                ", automount {}, of {}",
                manifest["automountServiceAccountToken"],
                word(&labels["kaos.tools/agent"])
            )
        }
        _ => String::new(),
    }
}

/// Formats each item of a list with `told`, and joins the texts with spaces.
fn each(list: &Value, told: impl Fn(&Value) -> String) -> String {
    list.as_array().into_iter().flatten().map(told).collect::<Vec<_>>().join(" ")
}

fn pods(spec: &Value, text: &mut String) {
    if !spec["securityContext"].is_null() {
        let _ = writeln!(text, "    securityContext: {}", spec["securityContext"]);
    }
    if !spec["serviceAccountName"].is_null() {
        let automount = &spec["automountServiceAccountToken"];
        let _ = writeln!(text, "    account: {}, automount {automount}", word(&spec["serviceAccountName"]));
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let source: Vec<String> = volume
            .as_object()
            .unwrap()
            .iter()
            .filter(|(field, _)| *field != "name")
            .map(|(field, source)| format!("{field} {source}"))
            .collect();
        let _ = writeln!(text, "    volume {}: {}", word(&volume["name"]), source.join(", "));
    }
    let containers = ["initContainers", "containers"].map(|field| spec[field].as_array().cloned().unwrap_or_default());
    for container in containers.iter().flatten() {
        let _ = writeln!(text, "    container {}: {}", word(&container["name"]), word(&container["image"]));
        for field in ["command", "args", "workingDir", "resources", "securityContext"] {
            if !container[field].is_null() {
                let _ = writeln!(text, "      {field}: {}", container[field]);
            }
        }
        for field in ["livenessProbe", "readinessProbe"] {
            let probe = &container[field];
            if !probe.is_null() {
                let _ = writeln!(text, "      {field}: {}", asked(probe));
            }
        }
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let mode = if mount["readOnly"] == true { ", read only" } else { "" };
            let _ = writeln!(text, "      mount {}: {}{mode}", word(&mount["name"]), word(&mount["mountPath"]));
        }
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = if variable["valueFrom"].is_null() {
                word(&variable["value"])
            } else {
                variable["valueFrom"].to_string()
            };
            let _ = writeln!(text, "      {}={}", word(&variable["name"]), value.replace('\n', "\\n"));
        }
    }
}

/// Returns the target of a probe, and its initial delay, period, timeout and failure threshold.
fn asked(probe: &Value) -> String {
    let (get, tcp) = (&probe["httpGet"], &probe["tcpSocket"]);
    let place = if get.is_null() {
        format!("TCP {}", tcp["port"])
    } else {
        format!("GET {}:{}", word(&get["path"]), get["port"])
    };
    let number = |field: &str, usual: u32| probe[field].as_u64().unwrap_or(usual.into());
    let times = [
        number("initialDelaySeconds", 0),
        number("periodSeconds", 10),
        number("timeoutSeconds", 1),
        number("failureThreshold", 3),
    ];
    format!("{place} {}", times.map(|time| time.to_string()).join("/"))
}

/// The samples, each with further files that it needs.
const SAMPLES: [(&str, &[&str]); 18] = [
    ("01-modelapi-proxy", &[]),
    ("02-modelapi-hosted", &[]),
    ("03-mcp-codemode", &[]),
    ("04-mcp-kubernetes", &[]),
    ("05-agent-plain", &[]),
    ("06-agent-autonomous", &[]),
    ("07-agent-memory-local", &[]),
    ("08-memorystore-local", &[]),
    ("09-memorystore-external", &[]),
    ("10-agents-memory-remote", &[]),
    ("11-agent-store-not-ready", &[]),
    ("12-accessgrant", &[]),
    ("13-team", &[]),
    ("15-agent-harness-pr", &["harness-runtimes.yaml"]),
    ("16-container-overrides", &[]),
    ("17-agent-telemetry", &[]),
    ("19-operator-config", &["03-mcp-codemode.yaml", "05-agent-plain.yaml"]),
    ("20-as-found", &["20-model.yaml"]),
];

#[test]
fn objects_of_kaos_0_8_get_what_kaos_0_8_gave_them() {
    let mut wrong = Vec::new();
    for (name, more) in SAMPLES {
        let own = format!("{name}.yaml");
        let files: Vec<&str> = [own.as_str()].into_iter().chain(more.iter().copied()).collect();
        let ran = render(&files);
        let expected = samples().join(format!("expected/{name}.txt"));
        let (ours, theirs) = (told(&ran), fs::read_to_string(&expected).unwrap_or_default());
        if ours != theirs {
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("today");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{name}.txt")), &ours).unwrap();
            wrong.push(format!("{name}: see {} and {}", expected.display(), folder.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn access_grants_tell_what_the_gateway_enforces() {
    let folder = crate::support::Folder::new("today-grants");
    let projection = serde_json::json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "AuthorizationPolicy",
        "metadata": {"name": "kaos-authz", "namespace": "today"},
        "spec": {"namespaces": ["today"], "configMap": "kaos-authz-policy"},
        "status": {"phase": "Ready",
            "grants": {"today/readers": 0, "today/one-person": 0, "today/watcher-may": 0}}});
    let projection = folder.write("projection.json", projection.to_string());
    let grants = sample("12-accessgrant.yaml");
    let enforced = |settings: &[&str]| -> Vec<[String; 4]> {
        let files =
            ["render", "--compatibility", "kaos-0.8", "--status", "-o", "json", "-f", &grants, "-f", &projection];
        let home = ["--operator-namespace", "today"];
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let ran = run(files.into_iter().chain(home).chain(set), "");
        let told = |entry: &Value| {
            let conditions = entry["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let of = |kind: &str| conditions.iter().find(|it| it["type"] == kind).cloned().unwrap_or_default();
            let enforced = of("Enforced");
            let words = ["status", "reason", "message"].map(|field| word(&enforced[field]));
            [words[0].clone(), words[1].clone(), words[2].clone(), word(&of("Ready")["status"])]
        };
        let all = ran.json().as_array().unwrap().clone();
        let is_grant = |entry: &&Value| entry["object"]["kind"] == "AccessGrant";
        let found: Vec<_> = all.iter().filter(is_grant).map(told).collect();
        assert_eq!(found.len(), 3, "{}", ran.stderr);
        found
    };
    let starts = |told: &[String; 4], status: &str, reason: &str, message: &str, ready: &str| {
        assert_eq!([&*told[0], &*told[1], &*told[3]], [status, reason, ready]);
        assert!(told[2].starts_with(message), "{}", told[2]);
    };
    for grant in enforced(&[]) {
        let message = "Gateway authorization is not enabled; this AccessGrant is not enforced";
        starts(&grant, "False", "AuthorizationDisabled", message, "False");
    }
    let agents = [
        "authorization.enabled=true",
        "authorization.agents.issuer=https://cluster",
        "authorization.agents.jwks={\"keys\": []}",
    ];
    let included = "AccessGrant is included in the successfully projected authorization policy";
    let without_users = enforced(&agents);
    for grant in &without_users[..2] {
        let message = "A user identity provider must be configured for this AccessGrant to be enforced";
        starts(grant, "False", "NoUserIdentityProvider", message, "False");
    }
    starts(&without_users[2], "True", "Enforced", included, "True");
    let users = [
        "authorization.users.issuer=https://login",
        "authorization.users.audience=kaos",
        "authorization.users.jwks={\"keys\": []}",
    ];
    for grant in enforced(&[agents, users].concat()) {
        starts(&grant, "True", "Enforced", included, "True");
    }
}

#[test]
fn objects_that_kaos_0_8_refuses_are_refused_in_its_words() {
    let text = fs::read_to_string(sample("14-refused.yaml")).unwrap();
    let refusals = [
        "type 'remote' requires memoryStore to be set",
        "type 'local' must not set memoryStore",
        "tools requires memoryStore to be set",
        "non-session maxReadScope requires memoryStore to be set",
        "storage.external is required when storage.type is external",
        "replicas must be 1 in local storage mode",
        "short-term compaction marks must satisfy 0 < compactionTarget < compactionTrigger <= tokenBudget",
        "spec.subjects",
    ];
    let documents: Vec<&str> = text.split("\n---\n").collect();
    assert_eq!(documents.len(), refusals.len());
    for (document, refusal) in documents.into_iter().zip(refusals) {
        let ran = run(["render", "--compatibility", "kaos-0.8", "-f", "-"], document);
        assert!(ran.code != 0 && ran.stderr.contains(refusal), "{document}\n{}", ran.stderr);
    }
}

#[test]
fn plan_between_the_presets_shows_what_would_roll() {
    let objects = sample("13-team.yaml");
    let plan = |preset: &str, more: &[&str]| {
        let plan = ["policy", "plan", "--compatibility", preset, "-f", &objects, "-o", "json"];
        run(plan.iter().copied().chain(more.iter().copied()), "")
    };
    let ran = plan("kaos-0.8", &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let told = ran.json();
    // The children of all four objects change. The files contain no Deployment of the proxy, so the plan treats the
    // proxy as new: it gets the permission to start without a master key. The proxy changes in nothing else.
    assert_eq!((&told["objects"], &told["changed"], &told["rolls"]), (&4.into(), &4.into(), &4.into()));
    let ran = plan("kaos-0.1", &[]);
    assert_eq!((ran.code, &ran.json()["objects"]), (0, &4.into()), "{}", ran.stderr);
    // If the files contain the ConfigMap of a preset, `policy plan` treats this preset as the preset of the cluster.
    let folder = crate::support::Folder::new("plan-preset");
    let preset = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-compatibility", "namespace": "kaos-system"},
        "data": {"kaos-0.8.yaml": kaos_operator::presets::ALL[1].1}});
    let there = folder.write("preset.json", preset.to_string());
    assert_eq!(plan("kaos-0.8", &["-f", &there]).code, 0);
    let ran = plan("kaos-0.1", &["-f", &there]);
    assert_eq!((ran.code, &ran.json()["rolls"]), (2, &4.into()), "{}", ran.stderr);
    let ran = run(["policy", "plan", "--compatibility", "kaos-0.9", "-f", &objects], "");
    assert!(ran.code == 1 && ran.stderr.contains("the presets are kaos-0.1, kaos-0.8"), "{}", ran.stderr);
    let ran = run(["policy", "plan", "-f", &objects], "");
    assert!(ran.code == 1 && ran.stderr.contains("required arguments"), "{}", ran.stderr);
}

#[test]
fn render_says_that_a_value_is_the_presets_and_a_setting_of_ones_own_wins() {
    let objects = sample("05-agent-plain.yaml");
    let folder = crate::support::Folder::new("own-preset");
    let own = folder.write("mine.yaml", "agent: {logLevel: DEBUG}\n");
    let env = run(["render", "--env", "--compatibility", &own, "-f", &objects], "").stdout;
    assert!(env.contains("settings.logLevel, the preset mine"), "{env}");
    let ran = run(["render", "--compatibility", "kaos-0.8", "--set", "agent.image=mine:1", "-f", &objects], "");
    assert!(ran.stdout.contains("image: mine:1"), "{}", ran.stdout);
}
