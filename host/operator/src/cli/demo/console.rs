//! Opens the console on the demo's cluster.

use std::path::PathBuf;

use clap::Args;

use super::{
    super::{
        console::{OpeningFile, ServedConsole},
        facts::OperatorFacts,
    },
    screen::Screen,
    stage::DemoCluster,
};
use crate::policies::sample_cluster;

/// The flag for the console.
#[derive(Debug, Args)]
pub(super) struct DemoConsole {
    /// Also serve the console, and open it in a browser
    #[arg(long, conflicts_with = "once")]
    console: bool,
    /// Print the address of the console, and open no browser
    #[arg(long, requires = "console")]
    no_browser: bool,
}

impl DemoConsole {
    /// Serves the console if the user wants it, and opens a browser. The returned file must exist until the browser has
    /// read it.
    pub(super) async fn open(
        &self,
        stage: &DemoCluster,
        policies: &[PathBuf],
        screen: &mut Screen,
    ) -> anyhow::Result<Option<OpeningFile>> {
        if !self.console {
            return Ok(None);
        }
        screen.step("Serving the console, which shows the cluster as pages in a browser")?;
        let operator = OperatorFacts { cluster: sample_cluster(), policies: policies.to_vec() };
        let console = ServedConsole::start(stage.client.clone(), operator, 0, Vec::new()).await?;
        screen.say(&console.address())?;
        let opening = if self.no_browser { None } else { console.open() };
        tokio::spawn(console.answer());
        Ok(opening)
    }
}
