//! Runs OPA as the decision point, with the rules and the data of the ConfigMap that the operator writes.
//!
//! In the chart's decision point, a plugin answers the gateway over gRPC. OPA itself does not contain this plugin, so
//! this suite asks OPA over HTTP, with the same rules. A test in `tests/rego` starts OPA with the chart's arguments.

use std::cell::RefCell;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kaos_tests::control_plane::launch::free_port;
use kaos_tests::control_plane::{ControlPlane, programs::Programs};
use kaos_tests::harness::World;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::name;
use kaos_tests::harness::scenario::SYSTEM;
use serde_json::{Map, Value, json};

use crate::http;
use crate::node::{LOOK, START};

/// The ConfigMap with the rules and the data.
const CONFIG: &str = "kaos-authz-policy";
const PATIENCE: Duration = Duration::from_secs(30);

/// A running OPA. When this value is dropped, OPA ends.
pub(crate) struct DecisionPoint {
    opa: Child,
    port: u16,
    /// The resource version of the ConfigMap whose content is loaded into OPA.
    loaded: RefCell<String>,
}

impl DecisionPoint {
    /// Starts OPA without rules, and waits until OPA answers.
    pub(crate) fn start(cluster: &ControlPlane) -> Result<Self> {
        let port = free_port()?;
        let program = Programs::find().get("opa").context("run tests/control-plane/provision opa")?;
        let mut command = Command::new(program);
        command.args(["run", "--server", "--log-level=error", &format!("--addr=127.0.0.1:{port}")]);
        let opa = cluster.group().spawn(&mut command)?;
        let begun = Instant::now();
        while http::send(port, "/health", &[], None, PATIENCE).is_err() {
            ensure!(begun.elapsed() < START, "OPA does not answer");
            std::thread::sleep(LOOK);
        }
        Ok(Self { opa, port, loaded: RefCell::default() })
    }

    /// Asks OPA about a request, with the current rules and data of the ConfigMap.
    pub(crate) async fn decide(
        &self,
        world: &World,
        method: &str,
        path: &str,
        headers: &[(String, String)],
    ) -> Result<Value> {
        self.load(world).await?;
        let headers: Map<String, Value> = headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let request = json!({"method": method, "path": path, "headers": headers});
        let asked = json!({"input": {"attributes": {"request": {"http": request}}}});
        let answer = http::send(self.port, "/v1/data/kaos/authz/result", &[], Some(&asked), PATIENCE)?.json()?;
        Ok(answer["result"].clone())
    }

    async fn load(&self, world: &World) -> Result<()> {
        let all = world.try_list_in(Kind::named("ConfigMap"), SYSTEM).await?;
        // Fail without the ConfigMap, because a pod of the real decision point would not start either.
        let config = all.iter().find(|config| name(config) == CONFIG).context("the operator wrote no ConfigMap")?;
        let version = config["metadata"]["resourceVersion"].to_string();
        if *self.loaded.borrow() == version {
            return Ok(());
        }
        let of = |key: &str| config["data"][key].as_str().with_context(|| format!("the ConfigMap has no key {key}"));
        // Load each key below `kaos` in the data separately. OPA rejects a request that sets all of `data.kaos`,
        // because the rules define `data.kaos.authz`.
        http::put(self.port, "/v1/policies/authz", of("policy.rego")?, PATIENCE)?.json()?;
        let data: Value = serde_json::from_str(of("data.json")?)?;
        for (key, value) in data["kaos"].as_object().context("the data have no object kaos")? {
            let answer = http::put(self.port, &format!("/v1/data/kaos/{key}"), &value.to_string(), PATIENCE)?;
            ensure!(answer.status < 300, "OPA does not take {key}: {}", answer.body);
        }
        *self.loaded.borrow_mut() = version;
        Ok(())
    }
}

impl Drop for DecisionPoint {
    fn drop(&mut self) {
        // Ignore errors, because OPA may already have ended.
        let _ = self.opa.kill();
        let _ = self.opa.wait();
    }
}
