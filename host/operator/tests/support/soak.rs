//! Measures the demo's memory under swaps and edits: `tests/run soak`. Without `KAOS_SOAK_SECONDS`, prints that nothing
//! was tested.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdout, Stdio},
    time::Duration,
};

use fastrand::Rng;
use kaos_operator::package::{Package, pack};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    stage::{HOME, edition, package},
    support::binary,
};

/// The number of Agents that the test creates, edits and deletes.
const AGENTS: usize = 40;
/// The delay between two edits.
const PACE: Duration = Duration::from_millis(100);
/// The number of edits between two swaps of settings, and the number of such swaps between two swaps of the policy.
const SWAPS: (u32, u32) = (20, 8);
/// The number of measurements.
const POINTS: u32 = 40;
/// The allowed growth of the memory from the second to the last quarter of the run: a share of the memory, plus some
/// MiB. The operator's histories fill up in the first minutes, so a run of less than ten minutes proves little.
const BOUND: (f64, f64) = (0.10, 8.0);

/// A running demo.
struct Demo {
    process: Child,
    _lines: ChildStdout,
    client: Client,
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

impl Demo {
    async fn start() -> Self {
        let mut process =
            binary().args(["demo", "--plain"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let kubeconfig = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the demo ended");
            if let Some(kubeconfig) = line.trim().strip_prefix("export KUBECONFIG=") {
                break kubeconfig.to_owned();
            }
        };
        let config = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        Self { process, _lines: lines.into_inner(), client: Client::try_from(config).unwrap() }
    }

    /// Returns the resident memory of the demo in MiB.
    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the demo runs");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }

    async fn apply(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let applied = self.api(object).patch(name, &PatchParams::apply("soak").force(), &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |field: &Value| field.as_str().unwrap().to_owned();
        let version = text(&object["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &text(&object["kind"])));
        Api::namespaced_with(self.client.clone(), &text(&object["metadata"]["namespace"]), &resource)
    }

    /// Makes one edit. After every `SWAPS.0` edits, also swaps the settings. After every `SWAPS.1` of these swaps, also
    /// swaps the policy.
    async fn act(&self, step: u32, rng: &mut Rng) {
        let agent = agent(rng.usize(..AGENTS), rng.u32(..));
        if rng.u8(..10) == 0 {
            let name = agent["metadata"]["name"].as_str().unwrap();
            let _gone = self.api(&agent).delete(name, &DeleteParams::default()).await;
        } else {
            self.apply(&agent).await;
        }
        let swap = step / SWAPS.0;
        if step.is_multiple_of(SWAPS.0) {
            self.apply(&shipped(&package(&format!("registry.example/agent:{}", swap % 5)))).await;
            if swap.is_multiple_of(SWAPS.1) {
                self.apply(&shipped(&edition(u8::try_from(swap / SWAPS.1 % 4).unwrap(), "{}"))).await;
            }
        }
    }
}

fn agent(number: usize, value: u32) -> Value {
    let env = json!([{"name": "SOAKED", "value": value.to_string()}]);
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": format!("soak-{number}"), "namespace": "default"},
        "spec": {"modelAPI": "soak", "model": "gpt", "container": {"env": env}}})
}

fn shipped(package: &Package) -> Value {
    let name = format!("soak-{}", package.name);
    let packed = pack(&name, HOME, &package.file, package.component.as_ref()).unwrap();
    let mut index = serde_json::to_value(packed.index).unwrap();
    (index["apiVersion"], index["kind"]) = (json!("v1"), json!("ConfigMap"));
    index
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_takes_no_more_memory_in_the_second_half_of_swaps_and_edits() {
    let Some(seconds) = std::env::var("KAOS_SOAK_SECONDS").ok().map(|text| text.parse::<u32>().unwrap()) else {
        eprintln!("KAOS_SOAK_SECONDS is not set: nothing was tested");
        return;
    };
    let demo = Demo::start().await;
    let model = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": "soak", "namespace": "default"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}});
    demo.apply(&model).await;
    let (mut rng, begin, mut curve, mut step) = (Rng::with_seed(1), Instant::now(), Vec::new(), 0);
    println!("{:>8} {:>8} {:>8}", "seconds", "edits", "MiB");
    for point in 1..=POINTS {
        let until = begin + Duration::from_secs(u64::from(seconds)) * point / POINTS;
        while Instant::now() < until {
            demo.act(step, &mut rng).await;
            step += 1;
            tokio::time::sleep(PACE).await;
        }
        let resident = demo.resident();
        println!("{:>8} {step:>8} {resident:>8.1}", begin.elapsed().as_secs());
        curve.push(resident);
    }
    let quarter = curve.len() / 4;
    let (middle, end) = (median(&curve[quarter..2 * quarter]), median(&curve[3 * quarter..]));
    let allowed = middle * (1.0 + BOUND.0) + BOUND.1;
    println!("{middle:.1} MiB before the middle, {end:.1} MiB at the end, {allowed:.1} MiB allowed");
    assert!(end <= allowed, "the memory grows: {middle:.1} MiB before the middle, {end:.1} MiB at the end");
}
