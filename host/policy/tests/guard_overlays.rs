//! Tests which parts of a plan an overlay may change, which grants allow the changes, and which layer the guard blames
//! for a breach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    overlay::{Overlay, base, each, rendered},
    widget::{config, deployment, of, rules},
};
use kaos_policy::{
    contract::{Blocker, EnvSource, EnvVar, KeySelector, Note, Plan, Reference, Refusal, ResourceType, Severity},
    guard::Rule,
    render::{Rendered, Verdict},
};
use serde_json::{Value, json};

fn pod() -> Value {
    json!({"containers": [{"name": "main", "image": "img:1"}]})
}

/// Renders a Deployment and a ConfigMap with one overlay that has these grants.
fn amended(file: &str, amend: impl Fn(&mut Plan) + Send + Sync + 'static) -> Rendered {
    over(&json!([deployment(pod()), config("w")]), "{}", file, amend)
}

fn over(plan: &Value, below: &str, file: &str, amend: impl Fn(&mut Plan) + Send + Sync + 'static) -> Rendered {
    let overlay = Overlay::amending("over", amend).policy(file);
    rendered(base(below), vec![overlay], plan, json!({}))
}

/// Checks that the guard blames this layer. Returns the rules that the plan breaks.
fn broken(rendered: &Rendered, layer: &str) -> Vec<Rule> {
    let failed = rendered.failed().unwrap_or_else(|| panic!("{:?}", rendered.verdict));
    assert_eq!(failed.policy.name, layer, "{failed}");
    assert!(failed.to_string().starts_with(&format!("policy {layer} 0.1.0 ")), "{failed}");
    rules(rendered)
}

fn template(manifest: &mut Value) -> &mut Value {
    &mut manifest["spec"]["template"]
}

fn change_image(plan: &mut Plan) {
    each(plan, |manifest| {
        if manifest["kind"] == "Deployment" {
            template(manifest)["spec"]["containers"][0]["image"] = json!("mirror/img:1");
        }
    });
}

fn add_volume(volume: Value) -> impl Fn(&mut Plan) + Send + Sync + 'static {
    move |plan| {
        each(plan, |manifest| {
            if manifest["kind"] == "Deployment" {
                template(manifest)["spec"]["volumes"] = json!([volume]);
            }
        });
    }
}

#[test]
fn an_overlay_changes_images_tolerations_and_labels_and_adds_children() {
    let rendered = amended("{}", |plan| {
        change_image(plan);
        each(plan, |manifest| {
            if manifest["kind"] == "Deployment" {
                template(manifest)["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
                template(manifest)["metadata"]["labels"]["team"] = json!("x");
            }
        });
        plan.manifests.push(config("more").to_string());
        plan.notes.push(Note {
            severity: Severity::Info,
            reason: "Mirrored".into(),
            message: "images come from the mirror".into(),
            path: None,
        });
    });
    let manifests = rendered.manifests();
    assert_eq!(manifests.len(), 3, "{:?}", rendered.verdict);
    let pod = &manifests[0]["spec"]["template"];
    assert_eq!(pod["spec"]["containers"][0]["image"], "mirror/img:1");
    assert_eq!(pod["metadata"]["labels"]["team"], "x");
    assert_eq!(rendered.notes().len(), 1);
    let (overlay, children) = rendered.amended().next().unwrap();
    let children: Vec<_> = children.iter().map(|child| format!("{} {}", child.kind, child.name)).collect();
    assert_eq!(
        (overlay.name.as_str(), children),
        ("over", vec!["Deployment w".to_owned(), "ConfigMap more".to_owned()])
    );
    assert_eq!(rendered.author(&Reference::of_object(&manifests[0])).name, "over");
    assert_eq!(rendered.author(&Reference::of_object(&manifests[1])).name, "widget");
}

#[test]
fn overlays_amend_in_their_order_and_each_sees_the_plan_below() {
    let suffix = |name: &'static str| {
        let amend = move |plan: &mut Plan| {
            each(plan, |manifest| {
                let image = &mut template(manifest)["spec"]["containers"][0]["image"];
                *image = json!(format!("{}-{name}", image.as_str().unwrap()));
            });
        };
        Overlay::amending(name, amend).policy("{}")
    };
    let plan = json!([deployment(pod())]);
    let rendered = rendered(base("{}"), vec![suffix("a"), suffix("b")], &plan, json!({}));
    assert_eq!(rendered.manifests()[0]["spec"]["template"]["spec"]["containers"][0]["image"], "img:1-a-b");
    assert_eq!(rendered.author(&Reference::of_object(&rendered.manifests()[0])).name, "b");
}

#[test]
fn an_overlay_that_changes_nothing_leaves_the_plan_as_it_is() {
    let plan = json!([deployment(pod()), config("w")]);
    let without = rendered(base("{}"), vec![], &plan, json!({}));
    let with = amended("{}", |_| ());
    assert_eq!(with.manifests(), without.manifests());
    assert_eq!(with.amended().count(), 0);
}

#[test]
fn an_overlay_must_not_drop_or_rename_children_or_change_selectors() {
    let dropped = amended("{}", |plan| {
        plan.manifests.remove(1);
        plan.origins.retain(|origin| origin.manifest != 1);
    });
    assert_eq!(broken(&dropped, "over"), [Rule::KeepsBelow]);
    let told = dropped.failed().unwrap().to_string();
    assert!(told.contains("below manifests[1] (ConfigMap w): is a child of the layer below"), "{told}");
    let renamed = amended("{}", |plan| each(plan, |manifest| manifest["metadata"]["name"] = json!("other")));
    assert_eq!(broken(&renamed, "over"), [Rule::KeepsBelow; 2]);
    let selector = amended("{}", |plan| each(plan, |it| it["spec"]["selector"] = json!({"matchLabels": {"a": "b"}})));
    assert!(broken(&selector, "over").contains(&Rule::KeepsBelow));
}

#[test]
fn an_overlay_must_not_change_what_a_network_policy_or_a_service_selects() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"},
        "spec": {"selector": {"app": "w"}, "ports": [{"port": 80}]}});
    let network = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "w"},
        "spec": {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}});
    let mut workload = deployment(pod());
    workload["spec"]["template"]["metadata"]["labels"] = json!({"app": "w", "tier": "x", "free": "y"});
    let plan = json!([workload, service, network]);
    let run = |kind: &'static str, pointer: &'static str, value: Value| {
        over(&plan, "{}", "{}", move |plan| {
            each(plan, |manifest| {
                if manifest["kind"] == kind {
                    *manifest.pointer_mut(pointer).unwrap() = value.clone();
                }
            });
        })
    };
    let labels = "/spec/template/metadata/labels";
    for (kind, pointer, value, path) in [
        ("NetworkPolicy", "/spec/podSelector", json!({}), "spec.podSelector"),
        ("Service", "/spec/selector", json!({"app": "x"}), "spec.selector"),
        ("Deployment", labels, json!({"app": "w", "free": "y"}), "spec.template.metadata.labels[\"tier\"]"),
        ("Deployment", labels, json!({"app": "v", "tier": "x"}), "spec.template.metadata.labels[\"app\"]"),
    ] {
        let rendered = run(kind, pointer, value);
        assert_eq!(broken(&rendered, "over"), [Rule::KeepsBelow], "{kind} {pointer}");
        let told = rendered.failed().unwrap().to_string();
        assert!(told.contains(path), "{told}");
    }
    let free = run("Deployment", labels, json!({"app": "w", "tier": "x", "team": "t"}));
    assert!(free.planned().is_some(), "{:?}", free.verdict);
}

#[test]
fn gates_finalizer_kept_claims_and_notes_stay_with_the_policy_below() {
    let on = || Reference { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: "c".into() };
    let gate = move || Blocker { on: on(), reason: "Missing".into(), message: "no c".into() };
    #[expect(clippy::type_complexity, reason = "a table of this test")]
    let changes: [(&str, fn(&mut Plan)); 4] = [
        ("gates-hold", |plan| plan.gates_hold = true),
        ("finalizer", |plan| plan.finalizer = Some("example.com/mine".into())),
        ("kept", |plan| plan.kept.push("data".into())),
        ("notes", |plan| plan.notes.clear()),
    ];
    let noting = Overlay::amending("notes", |plan| {
        plan.notes.push(Note { severity: Severity::Warning, reason: "R".into(), message: "m".into(), path: None });
    });
    let plan = json!([config("w")]);
    for (field, change) in changes {
        let overlays = vec![noting.clone().policy("{}"), Overlay::amending("over", change).policy("{}")];
        let rendered = rendered(base("{}"), overlays, &plan, json!({}));
        assert_eq!(broken(&rendered, "over"), [Rule::KeepsBelow], "{field}");
        assert!(rendered.failed().unwrap().to_string().contains(&format!("{field}: ")), "{field}");
    }
    let gated = amended("{}", move |plan| plan.gates.push(gate()));
    assert_eq!(broken(&gated, "over"), [Rule::KeepsBelow]);
}

#[test]
fn an_overlay_changes_and_adds_only_types_that_its_own_claim_emits() {
    let only = |emits: Vec<ResourceType>, amend: fn(&mut Plan)| {
        let overlay = Overlay { emits, ..Overlay::amending("over", amend) }.policy("{}");
        rendered(base("{}"), vec![overlay], &json!([deployment(pod()), config("w")]), json!({}))
    };
    let config_maps = || vec![of("v1", "ConfigMap")];
    assert_eq!(broken(&only(config_maps(), change_image), "over"), [Rule::EmitsClaimed], "changed");
    let added = only(vec![], |plan| plan.manifests.push(config("more").to_string()));
    assert_eq!(broken(&added, "over"), [Rule::EmitsClaimed], "the policy below emits the type, the overlay does not");
    assert!(only(config_maps(), |plan| plan.manifests.push(config("more").to_string())).planned().is_some());
}

#[test]
fn a_host_path_of_an_overlay_needs_a_grant_of_the_overlay() {
    let host_path = || json!({"name": "h", "hostPath": {"path": "/"}});
    let refused = amended("{}", add_volume(host_path()));
    assert_eq!(broken(&refused, "over"), [Rule::NoPrivilege]);
    let plan = json!([deployment(pod())]);
    let grants = "grants: {privileges: [hostPath]}";
    assert_eq!(broken(&over(&plan, grants, "{}", add_volume(host_path())), "over"), [Rule::NoPrivilege]);
    assert!(amended(grants, add_volume(host_path())).planned().is_some());
}

#[test]
fn a_secret_that_nobody_named_needs_a_grant_of_the_overlay() {
    let secret = || json!({"name": "s", "secret": {"secretName": "token"}});
    let refused = amended("{}", add_volume(secret()));
    assert_eq!(broken(&refused, "over"), [Rule::NamedReferences]);
    let plan = json!([deployment(pod())]);
    let grants = "grants: {secrets: [token]}";
    assert_eq!(broken(&over(&plan, grants, "{}", add_volume(secret())), "over"), [Rule::NamedReferences]);
    assert!(amended(grants, add_volume(secret())).planned().is_some());
}

#[test]
fn privileges_of_the_policy_below_stay_while_its_pods_run_the_same() {
    let mut privileged = pod();
    privileged["volumes"] =
        json!([{"name": "h", "hostPath": {"path": "/"}}, {"name": "s", "secret": {"secretName": "t"}}]);
    let plan = json!([deployment(privileged), config("w")]);
    let below = "grants: {privileges: [hostPath], secrets: [t]}";
    let labelled = |plan: &mut Plan| {
        each(plan, |manifest| {
            manifest["metadata"]["labels"] = json!({"team": "x"});
            if manifest["kind"] == "Deployment" {
                template(manifest)["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
            }
        });
    };
    let kept = over(&plan, below, "{}", labelled);
    assert!(kept.planned().is_some(), "labels and tolerations: {:?}", kept.verdict);
    // Another image contains another program, and another program must not inherit the privilege.
    let both = [Rule::NoPrivilege, Rule::NamedReferences];
    assert_eq!(broken(&over(&plan, below, "{}", change_image), "over"), both, "image");
    // The containers may run a script in the ConfigMap.
    let script = |plan: &mut Plan| {
        each(plan, |manifest| {
            if manifest["kind"] == "ConfigMap" {
                manifest["data"]["a"] = json!("other");
            }
            labels_only(manifest);
        });
    };
    assert_eq!(broken(&over(&plan, below, "{}", script), "over"), both, "content");
    assert!(over(&plan, below, below, change_image).planned().is_some(), "the overlay has the grants, too");
}

fn labels_only(manifest: &mut Value) {
    manifest["metadata"]["labels"] = json!({"team": "x"});
}

#[test]
fn a_token_of_another_account_is_no_change_of_annotations() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}});
    let token = |plan: &mut Plan| {
        each(plan, |it| it["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "admin"}));
    };
    assert_eq!(broken(&over(&json!([secret]), "{}", "{}", token), "over"), [Rule::NoPrivilege]);
}

#[test]
fn an_overlay_answers_for_the_variables_that_it_maps() {
    let secret = |name: &str| EnvVar {
        container: "main".into(),
        name: "TOKEN".into(),
        source: EnvSource::SecretKey(KeySelector { name: name.into(), key: "k".into(), optional: false }),
        origin: "settings.x".into(),
    };
    let map = move |mut base: Vec<EnvVar>| {
        base.push(secret("token"));
        base
    };
    let mut pod = pod();
    pod["containers"][0]["env"] =
        json!([{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "k"}}}]);
    let plan = json!([deployment(pod)]);
    let run = |below: &str, file: &str| {
        rendered(base(below), vec![Overlay::mapping("over", map).policy(file)], &plan, json!({}))
    };
    let grants = "grants: {secrets: [token]}";
    assert_eq!(broken(&run("{}", "{}"), "over"), [Rule::NamedReferences]);
    assert_eq!(broken(&run(grants, "{}"), "over"), [Rule::NamedReferences], "the grant of the policy below");
    assert!(run("{}", grants).planned().is_some());
    // The overlay sets a variable of a container that does not exist. This is a mistake of the overlay and not of the
    // policy.
    let nowhere = Overlay::mapping("over", |mut base| {
        let source = EnvSource::Literal("x".into());
        base.push(EnvVar { container: "nowhere".into(), name: "X".into(), source, origin: "settings.x".into() });
        base
    });
    let nowhere = rendered(base("{}"), vec![nowhere.policy("{}")], &json!([config("w")]), json!({}));
    assert_eq!(broken(&nowhere, "over"), [Rule::EnvAsMapped]);
}

fn sidecar() -> Value {
    json!({"name": "side", "image": "i:1", "env": [{"name": "X", "value": "x"}]})
}

#[test]
fn a_variable_of_a_sidecar_belongs_to_the_overlay() {
    let rendered = amended("{}", |plan| {
        let source = EnvSource::Literal("x".into());
        plan.env.push(EnvVar { container: "side".into(), name: "X".into(), source, origin: "settings.x".into() });
        each(plan, |manifest| {
            if manifest["kind"] == "Deployment" {
                template(manifest)["spec"]["containers"].as_array_mut().unwrap().push(sidecar());
            }
        });
    });
    assert_eq!(rendered.env().len(), 1, "{:?}", rendered.verdict);
    assert_eq!(rendered.giver(&rendered.env()[0]).unwrap().0.name, "over");
    let unmapped = amended("{}", |plan| {
        each(plan, |manifest| {
            if manifest["kind"] == "Deployment" {
                template(manifest)["spec"]["containers"][0]["env"] = json!([{"name": "X", "value": "x"}]);
            }
        });
    });
    assert_eq!(broken(&unmapped, "over"), [Rule::EnvAsMapped]);
}

#[test]
fn a_breach_of_the_policy_below_names_the_policy_below() {
    let mut pod = pod();
    pod["hostNetwork"] = json!(true);
    let rendered = over(&json!([deployment(pod)]), "{}", "{}", change_image);
    assert_eq!(broken(&rendered, "widget"), [Rule::NoPrivilege]);
}

#[test]
fn a_refusal_of_an_overlay_names_the_overlay() {
    let refuses = Overlay {
        amend: std::sync::Arc::new(|_| Err(Refusal::Unsupported("no".into()))),
        ..Overlay::amending("over", |_| ())
    };
    let rendered = rendered(base("{}"), vec![refuses.policy("{}")], &json!([config("w")]), json!({}));
    assert!(matches!(rendered.verdict, Verdict::Refused(Refusal::Unsupported(_))));
    assert_eq!(rendered.refusing().name, "over");
}
