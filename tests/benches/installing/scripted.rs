//! Measures the time from an apply of a script's ConfigMap until the script serves an object.

use std::time::Instant;

use anyhow::Result;
use kaos_tests::widgets::{definition, widget};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::part::Part;
use crate::stage::{Stage, milliseconds, percentile};

/// The number of measured changes of the script. Before the measured changes, the bench makes one change that it does
/// not measure. If the operator's build contains no compiled code, this first change also compiles the script engine.
const CHANGES: u32 = 24;
/// The upper bound, in milliseconds, for the time from the apply until the script serves.
const AIM: f64 = 2000.0;

/// Returns the ConfigMap that `kubectl create configmap --from-file=policy.js` creates, with the label of packages.
fn script(number: u32) -> Value {
    let text = format!(
        "export function describe() {{
  return {{
    name: 'widget', version: '{number}.0.0',
    claims: [{{
      primary: {{apiVersion: 'test.example.com/v1', kind: 'Widget'}},
      emits: [{{apiVersion: 'v1', kind: 'ConfigMap'}}],
      samples: [{{name: 'one', object: {{apiVersion: 'test.example.com/v1', kind: 'Widget',
        metadata: {{name: 'sample', namespace: 'default'}}, spec: {{}}}}}}],
    }}],
  }};
}}
export function translate({{object}}) {{
  const {{name, namespace}} = object.metadata;
  return {{manifests: [{{apiVersion: 'v1', kind: 'ConfigMap', metadata: {{name, namespace}}, data: {{edition: '{number}'}}}}]}};
}}
"
    );
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"policy.js": text},
        "metadata": {"name": "widgets", "namespace": "kaos-system", "labels": {"kaos.tools/policy": "package"}}})
}

/// Changes the script repeatedly, and measures each change. Returns the rows of the bench's table.
pub(crate) async fn measure() -> Result<Part> {
    let stop = CancellationToken::new();
    let stage = Stage::with_operator(&stop).await?;
    stage.apply(&definition()).await?;
    stage.cluster.settled().await;
    stage.apply(&widget("w", &json!({}))).await?;
    let mut times = Vec::new();
    for number in 0..=CHANGES {
        // Wait until the operator has finished all work for the previous change.
        stage.cluster.settled().await;
        let began = Instant::now();
        stage.apply(&script(number)).await?;
        let edition = number.to_string();
        stage.until("the script serves", || stage.look("ConfigMap/w")["data"]["edition"] == *edition).await?;
        if number > 0 {
            times.push(began.elapsed());
        }
    }
    stop.cancel();
    let [median, most] = [50, 95].map(|percent| milliseconds(percentile(&times, percent)));
    let missed = (most > AIM)
        .then(|| format!("a script serves {most:.0} ms after the apply at p95, but the aim is at most {AIM}"));
    let text = format!(
        "A script, changed {CHANGES} times:\n\n\
         | ms | median | p95 |\n|---|---:|---:|\n\
         | from the apply of the ConfigMap to the first child of the script (aim: 2000) | {median:.0} | {most:.0} |\n"
    );
    Ok(Part { text, missed })
}
