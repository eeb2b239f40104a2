//! The last steps of the demo: the operator holds a package whose effect is too large. Then the rollout of another
//! package ends with a return, because this package makes pods crash.

use std::time::Duration;

use anyhow::Context as _;
use kaos_cluster::{Cluster, PodFate};
use kaos_policy::manifest::PolicyFile;

use super::{
    super::policy::{Until, ship},
    screen::Screen,
    shipping,
    stage::DemoCluster,
};

/// A package with a limit that its effect exceeds.
const HELD: (&str, &str) =
    ("docs/examples/settings/held-agents.yaml", include_str!("../../../../../docs/examples/settings/held-agents.yaml"));
/// A package whose image crashes.
const RETURNED: (&str, &str) = (
    "docs/examples/settings/returned-agents.yaml",
    include_str!("../../../../../docs/examples/settings/returned-agents.yaml"),
);
/// The image in `RETURNED`.
const CRASHES: &str = "registry.example/kaos-agent:4.0-crashes";

/// Makes all pods with the image in `RETURNED` crash.
pub(super) fn prepare(cluster: &Cluster) {
    cluster.set_pods_with_image(CRASHES, PodFate::CrashLoop);
}

/// Installs a package that the operator must hold.
pub(super) async fn hold(stage: &DemoCluster, screen: &mut Screen, patience: Duration) -> anyhow::Result<()> {
    screen.step(&format!("Installing a package that may replace no pod: {}", HELD.0))?;
    refused(HELD, stage, screen, patience).await
}

/// Installs a package whose rollout the operator must end with a return.
pub(super) async fn fail(stage: &DemoCluster, screen: &mut Screen, patience: Duration) -> anyhow::Result<()> {
    screen.step(&format!("Installing a package whose pods crash, in steps: {}", RETURNED.0))?;
    refused(RETURNED, stage, screen, patience).await
}

/// Installs a package that must not serve, and prints the operator's reason for this. Fails if the package serves.
async fn refused(
    (name, text): (&'static str, &'static str),
    stage: &DemoCluster,
    screen: &mut Screen,
    patience: Duration,
) -> anyhow::Result<()> {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        screen.say(&format!("  {line}"))?;
    }
    let file = PolicyFile::parse(text).context(name)?;
    let packed = shipping::settings_of(&file)?;
    let mut said = Ok(());
    let told = |news: String| {
        if said.is_ok() {
            said = screen.say(&format!("  {news}"));
        }
    };
    let ended = ship(stage.client.clone(), &packed, Until::Applied, patience, told).await?;
    said?;
    match ended {
        Ok(serves) => anyhow::bail!("{name}: this package must not serve, but {serves}"),
        Err(why) => Ok(screen.say(&format!("  {why}"))?),
    }
}
