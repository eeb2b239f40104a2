//! The test's policy in Rust. Its code contains each piece of code in the table's column `Rust`.

use kaos_policy_sdk::env::{self, Env};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Sample, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, Policy, SubjectExt as _, condition, json, need, plan};
use serde_json::{Value, json};

pub(super) struct Table;

impl Policy for Table {
    fn describe() -> Descriptor {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Website",
            "metadata": {"name": "blog", "namespace": "default"},
            "spec": {"title": "Hello", "passwordFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}});
        let sample = Sample { name: "minimal".to_owned(), object: json::text(&object), ..Sample::default() };
        let claim = Claim {
            primary: need::resource_type("example.com/v1", "Website"),
            emits: vec![need::resource_type("v1", "ConfigMap"), need::resource_type("apps/v1", "Deployment")],
            reads: vec![need::resource_type("v1", "Secret"), need::resource_type("kaos.tools/v1alpha1", "ModelAPI")],
            samples: vec![sample],
            ..Claim::default()
        };
        Descriptor {
            name: "table".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            ..Descriptor::default()
        }
    }

    fn needs(_: &Subject) -> Vec<Need> {
        let name = "login";
        let model = need::named("model", need::reference("kaos.tools/v1alpha1", "ModelAPI", "llm"));
        vec![need::named("login", need::reference("v1", "Secret", name)), model.fields(["status.ready"])]
    }

    fn map_env(_: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let (name, key, origin) = ("login", "password", "spec.passwordFrom.secretKeyRef");
        let mut env = Env::over(base);
        let mut server = env.container("server");
        server.bind("PASSWORD", env::secret_key(name, key), origin);
        Ok(env.into_vars())
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let login = || need::reference("v1", "Secret", "login");
        let told = match subject.secret("login") {
            Lookup::There(facts) => json!({"exists": "true", "keys": facts.keys.join(" "), "digest": facts.digest}),
            Lookup::Absent => json!({"exists": "false"}),
            Lookup::Forbidden(why) => json!({"forbidden": why}),
            Lookup::Unserved | Lookup::Unasked => Value::Null,
        };
        let is_absent = subject.secret("login") == Lookup::Absent;
        if is_absent && subject.object().at(&["spec", "waits"]) == Some(&Value::Bool(true)) {
            subject.secret("login").or_wait(login())?;
        }
        let model = if subject.one("model") == Lookup::Absent { "absent" } else { "there" };
        let metadata = json!({"name": "blog", "labels": {"model": model}});
        let child = Child::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": told}));
        let server = json!({"name": "server", "image": "server:1", "env": env::to_json(&env, "server")});
        let (labels, metadata) = (json!({"app": "blog"}), json!({"name": "blog"}));
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [server]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"selector": {"matchLabels": labels}, "template": template}});
        let (path, from) = ("data", "spec.title");
        let mut plan = plan::of(&[child.origin(path, from), deployment.into()], env);
        if is_absent {
            plan.gates.extend(subject.secret("login").or_blocker(login()).err());
            plan.gates_hold = true;
        }
        Ok(plan)
    }

    fn assess(_: &Subject, _: &Observation) -> Report {
        let (reason, message) = ("NotFound", "the Secret is missing");
        Report {
            phase: "Pending".to_owned(),
            conditions: vec![condition::no("LoginKnown", reason, message)],
            ..Report::default()
        }
    }
}
