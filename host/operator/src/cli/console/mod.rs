//! `console`: serves a web page on this machine. The page shows the objects of a cluster, with the user's kubeconfig
//! and rights. The console runs no server in the cluster, and no request of the page changes the cluster.
//!
//! | module | content |
//! |---|---|
//! | `guard` | who may ask: the secrets, the cookie, the names of the host, and the headers of each answer |
//! | `opening` | opens the console in the user's browser |
//! | `server` | the addresses of the pages |
//! | `site` | what all requests share |
//! | `updates` | sends the parts of an open page that changed |
//! | `model` | the objects in memory, and the watches that keep them up to date |
//! | `page` | the pages |
//! | `picture` | where each object of a picture is |

mod guard;
mod model;
mod opening;
mod page;
mod picture;
mod server;
mod site;
mod updates;

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    connection::on_cluster_with_threads,
    facts::OperatorFacts,
    health::ClusterFlags,
    output::{Output, complain},
    stop::asked_to_stop,
};
use guard::Guard;
use model::Model;
pub(super) use opening::OpeningFile;

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
    /// Serves the page until the user interrupts the command.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { port, no_browser, namespaces, access } = self;
        let (connection, operator) = access.split();
        on_cluster_with_threads(connection, async |client| {
            let console = ServedConsole::start(client, operator, port, namespaces).await?;
            out.text(&format!("{}\n", console.address()))?;
            out.flush()?;
            let _opening = if no_browser { None } else { console.open() };
            tokio::select! {
                () = console.answer() => {}
                asked = asked_to_stop() => asked?,
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// A console that listens.
pub(super) struct ServedConsole {
    listeners: Vec<TcpListener>,
    guard: Guard,
    model: Arc<Model>,
}

impl ServedConsole {
    /// Listens on the port, reads the policies of the cluster, and starts the watches.
    pub(super) async fn start(
        client: Client,
        operator: OperatorFacts,
        port: u16,
        namespaces: Vec<String>,
    ) -> anyhow::Result<Self> {
        let (listeners, port) = listen(port).await?;
        let guard = Guard::new(port)?;
        let model = model::start(client, operator, namespaces).await?;
        Ok(Self { listeners, guard, model })
    }

    /// Returns the address that the console prints for the user.
    pub(super) fn address(&self) -> String {
        self.guard.address()
    }

    /// Opens the user's browser. Prints a note if there is no browser. The returned file must exist until the browser
    /// has read it.
    pub(super) fn open(&self) -> Option<OpeningFile> {
        let file = OpeningFile::new(&self.guard.opening());
        let is_open = file.as_ref().is_ok_and(OpeningFile::open);
        if !is_open {
            complain("note", "no browser was found: open the address above yourself");
        }
        file.ok()
    }

    /// Answers requests until the future is dropped.
    pub(super) async fn answer(self) {
        let Self { listeners, guard, model } = self;
        server::serve(listeners, guard, model, CancellationToken::new()).await;
    }
}

/// Listens on 127.0.0.1 and on `::1`, or only on 127.0.0.1 if the machine has no IPv6 loopback address. For port 0, the
/// system chooses the port.
async fn listen(asked: u16) -> anyhow::Result<(Vec<TcpListener>, u16)> {
    let remedy =
        |ip: &str| format!("cannot listen on {ip}:{asked}: name another port with --port, or 0 for a free port");
    loop {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, asked)).await.with_context(|| remedy("127.0.0.1"))?;
        let port = first.local_addr()?.port();
        match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
            Ok(second) => return Ok((vec![first, second], port)),
            // The system chose a port on which another program listens with IPv6 only. Try again with another port.
            Err(error) if error.kind() == ErrorKind::AddrInUse && asked == 0 => {}
            // Fail: for `localhost`, a browser would show the page of the program that listens on ::1.
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(error).with_context(|| remedy("[::1]")),
            Err(_) => return Ok((vec![first], port)),
        }
    }
}
