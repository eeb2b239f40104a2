//! Measures the embedded cluster under load: `cargo run --release -p kaos-cluster --example load -- 10000`.

use std::{env, fs, time::Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kaos_cluster::Cluster;
use serde_json::json;
use tower_service::Service as _;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let count: u32 = env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1000);
    let cluster = Cluster::start();
    let mut service = cluster.service();
    let start = Instant::now();
    for at in 0..count {
        let name = format!("d{at}");
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}]}]}}}});
        let uri = format!("/apis/apps/v1/namespaces/default/deployments/{name}?fieldManager=load");
        let request = Request::patch(uri)
            .header("content-type", "application/apply-patch+yaml")
            .body(Full::new(Bytes::from(body.to_string())))?;
        let answer = service.call(request).await?;
        assert!(answer.status().is_success(), "{:?}", answer.into_body().collect().await);
        tokio::task::yield_now().await;
    }
    cluster.settled().await;
    let (time, pods) = (start.elapsed(), cluster.objects("", "pods").len());
    println!(
        "{count} Deployments with {pods} pods in {time:.2?}: {:.2?} each, {} writes, {} MiB resident",
        time / count,
        cluster.revision(),
        resident()
    );
    Ok(())
}
