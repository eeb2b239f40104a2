//! Serves an embedded cluster on loopback, and writes a kubeconfig: `cargo run -p kaos-cluster --example serve --
//! kubeconfig 8001`.

use std::{env, fs, future, io};

use kaos_cluster::Cluster;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "kubeconfig".into());
    let port = arguments.next().and_then(|port| port.parse().ok()).unwrap_or(0);
    let cluster = Cluster::start();
    let server = cluster.listen(([127, 0, 0, 1], port).into()).await?;
    fs::write(&path, server.kubeconfig("admin"))?;
    println!("export KUBECONFIG={path}   # {}", server.url());
    future::pending().await
}
