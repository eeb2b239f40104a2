//! `console`: serves a page on this machine that shows the objects of a cluster, with the user's kubeconfig and rights.
//! Nothing in the cluster listens, and no request of the page changes the cluster.
//!
//! | module | content |
//! |---|---|
//! | `guard` | who may ask: the secret, the cookie, the names of the host, and the headers of each answer |
//! | `server` | the addresses of the pages |
//! | `updates` | sends the parts of an open page that changed |
//! | `model` | the objects in memory, and the watches that keep them up to date |
//! | `page` | the pages |
//! | `picture` | where each object of a picture is |

mod guard;
mod model;
mod page;
mod picture;
mod server;
mod updates;

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    connection::on_cluster_with_threads,
    health::ClusterFlags,
    output::{Output, complain},
    stop::asked_to_stop,
};
use guard::Guard;

/// Arguments of `console`.
#[derive(Debug, Args)]
#[command(
    after_help = "The console listens on loopback only, and changes nothing in the cluster. Only a browser that \
                        opens the printed address can see the pages. Ctrl-C ends the console."
)]
pub(super) struct Console {
    /// Port of the page on the loopback addresses; 0 takes a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
    /// Namespaces to show; default: all namespaces in which the user has rights
    #[arg(short, long = "namespace", value_name = "A,B", value_delimiter = ',', value_parser = super::one_namespace)]
    namespaces: Vec<String>,
    #[command(flatten)]
    access: ClusterFlags,
}

impl Console {
    /// Serves the page until the user interrupts the verb.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { port, no_browser, namespaces, access } = self;
        let (connection, cluster) = access.split();
        on_cluster_with_threads(connection, async |client| {
            let (listeners, port) = listen(port).await?;
            let guard = Guard::new(port)?;
            let model = model::start(client, cluster, namespaces).await?;
            out.text(&format!("{}\n", guard.address()))?;
            out.flush()?;
            if !no_browser && !open(&guard.opening()) {
                complain("note", "no browser was found: open the address above yourself");
            }
            let stop = CancellationToken::new();
            let served = server::serve(listeners, guard, Arc::clone(&model), stop.clone());
            tokio::select! {
                () = served => {}
                asked = asked_to_stop() => asked?,
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Listens on both loopback addresses. The machine may have no IPv6.
async fn listen(port: u16) -> anyhow::Result<(Vec<TcpListener>, u16)> {
    let remedy = || format!("cannot listen on 127.0.0.1:{port}: name another port with --port, or 0 for a free port");
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.with_context(remedy)?;
    let port = first.local_addr()?.port();
    let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
    Ok((std::iter::once(first).chain(second).collect(), port))
}

/// Opens an address in the user's browser. Returns whether there is a program for this.
fn open(address: &str) -> bool {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty()));
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    let quiet = std::process::Stdio::null;
    command.arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet());
    has_screen && command.spawn().is_ok()
}
