//! `demo`: shows the operator on a laptop. The command starts an embedded cluster and the operator, waits until a
//! sample is ready, and then changes the policies while the operator runs.

mod answers;
mod changes;
#[cfg(feature = "console")]
mod console;
mod protections;
mod row;
mod screen;
mod served;
mod shipping;
mod stage;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use clap::Args;
use kaos_policy::{
    contract::{HOME, Scopes},
    settings,
};
use serde_json::Value;
use tokio::{task::JoinError, time::Instant};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "console")]
use self::console::DemoConsole;
use self::{screen::Screen, stage::DemoCluster};
use super::{
    HELD_BACK,
    compatibility::Compatibility,
    output::complain,
    policy::{Until, ship},
    run::installing,
    settings::{layers, schemas},
    stop::asked_to_stop,
};
use crate::{
    catalogue::{Catalogue, Installing},
    definitions::embedded,
    input::{self, Document, InputError, InputPaths},
    masking::Hidden,
    metrics::Metrics,
    operator::{Operator, OperatorError, Options},
    package::Packed,
    policies::{Loaded, Loader, sample_cluster},
    schema::Crd,
};

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(super) struct Demo {
    /// File or directory with objects to apply instead of the sample
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    filenames: Vec<String>,
    /// Policy to start with, for the kinds that it claims; an overlay is added to the default policy
    #[arg(long = "policy", value_name = "X.wasm")]
    policies: Vec<PathBuf>,
    /// CRDs of further kinds
    #[arg(long, value_name = "FILE|DIR|-")]
    crds: Vec<String>,
    /// File with the settings that the demo applies while it runs, instead of the sample's settings
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    #[command(flatten)]
    compatibility: Compatibility,
    /// Port of the cluster on 127.0.0.1; 0 takes a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Watch Secrets, as `run --watch-secrets` does: their existence, keys and a digest
    #[arg(long)]
    watch_secrets: bool,
    /// End after the last step
    #[arg(long)]
    once: bool,
    /// Print lines instead of a table that changes, also on a terminal
    #[arg(long)]
    plain: bool,
    #[cfg(feature = "console")]
    #[command(flatten)]
    console: DemoConsole,
    /// Seconds to wait until all objects are ready
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
}

fn after_help() -> String {
    let codes =
        "Exit codes with --once: 0 = all objects are ready; 1 = an object is not ready; 2 = the demo cannot run.";
    let lacks =
        "Pods in the demo's cluster run no containers, so `kubectl logs`, `exec` and `port-forward` do not work.";
    format!("{codes} Kinds: {}. {lacks}", served::served())
}

/// The sample, and the settings that the demo applies later.
const SAMPLE: (&str, &str) = ("docs/examples/team.yaml", include_str!("../../../../../docs/examples/team.yaml"));
const CHANGE: (&str, &str) = (
    "docs/examples/settings/team-settings.yaml",
    include_str!("../../../../../docs/examples/settings/team-settings.yaml"),
);

/// Interval at which the demo reads the cluster.
const FRAME: Duration = Duration::from_millis(100);

/// If nothing changes for this time, the demo treats the cluster as settled.
const QUIET: Duration = Duration::from_secs(2);

impl Demo {
    /// Runs the demo.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let once = self.once;
        runtime.block_on(async {
            tokio::select! {
                ended = self.show() => ended,
                asked = asked_to_stop() => {
                    asked?;
                    // Starts a new line below the output. Ignores an error, because the terminal may be closed.
                    let _shown = writeln!(io::stdout());
                    Ok(if once { ExitCode::from(HELD_BACK) } else { ExitCode::SUCCESS })
                }
            }
        })
    }

    async fn show(&self) -> anyhow::Result<ExitCode> {
        let (sample, definitions) = (self.sample()?, self.definitions()?);
        let mut screen = Screen::new(self.plain);
        screen.step("Starting an in-memory cluster in this process")?;
        let mut stage = DemoCluster::start(self.port).await?;
        protections::prepare(&stage.cluster);
        let defined = stage.define(&definitions).await?;
        screen.say(&format!("{} serves {}", stage.url(), defined.join(", ")))?;

        screen.step("Checking the policies: each runs in a sandbox and imports nothing")?;
        let (policies, installing) = tokio::task::block_in_place(|| self.policies())?;
        for Loaded { policy, .. } in &policies {
            let kinds: Vec<_> = policy.descriptor().claims.iter().map(|claim| claim.primary.kind.as_str()).collect();
            screen.say(&format!("{} answers for {}", policy.id(), kinds.join(", ")))?;
        }
        let stop = CancellationToken::new();
        let options = self.options();
        let metrics = Arc::new(Metrics::new());
        let catalogue = Arc::new(Catalogue::default());
        let operator = Operator::new(stage.client.clone(), catalogue, metrics, options).installing(installing);
        let mut running = tokio::spawn(operator.run(stop.clone()));
        #[cfg(feature = "console")]
        let _opening = self.console.open(&stage, &self.policies, &mut screen).await?;
        let ready = tokio::select! {
            ready = self.play(&sample, &policies, &mut stage, &mut screen) => ready?,
            // Stop the demo: without the operator, the objects on the screen would no longer change.
            ended = &mut running => return Err(too_early(ended)),
        };
        stop.cancel();
        running.await??;
        Ok(if ready { ExitCode::SUCCESS } else { ExitCode::from(HELD_BACK) })
    }

    /// Returns the operator's options. The key for digests of Secrets is random, because the key and the digests exist
    /// only while the process runs.
    fn options(&self) -> Options {
        let secret_key = Hidden(std::iter::repeat_with(|| fastrand::u8(..)).take(32).collect());
        Options { workers: 4, secrets: self.watch_secrets, secret_key, ..Options::default() }
    }

    /// Plays the steps while the operator runs. Returns whether all objects became ready.
    async fn play(
        &self,
        sample: &[Document],
        policies: &[Loaded],
        stage: &mut DemoCluster,
        screen: &mut Screen,
    ) -> anyhow::Result<bool> {
        let objects = if sample.len() == 1 { "object" } else { "objects" };
        screen.step(&format!("Applying {} {objects}", sample.len()))?;
        stage.play(sample).await?;
        let waits = answers::any(policies, sample);
        if !waits {
            screen.say("no object of a kind for which a policy answers: nothing to wait for")?;
        }
        let mut ready = !waits || self.until_ready(stage, screen).await?;
        if waits
            && ready
            && let Some(change) = self.change(policies, sample)?
        {
            ready = self.swap(change, policies, stage, screen).await?;
        }
        // A user who passes `--policy` wants to see these policies, so the demo installs no other component.
        if waits && ready && self.policies.is_empty() {
            ready = self.ship(stage, screen).await?;
        }
        if ready && self.is_sample() {
            ready = self.protect(stage, screen).await?;
        }
        if !self.once {
            leave_open(stage, screen).await?;
        }
        Ok(ready)
    }

    /// Loads the default policies and the policies of `--policy`. A policy of `--policy` replaces the default policy
    /// for the kinds that it claims.
    fn policies(&self) -> anyhow::Result<(Vec<Loaded>, Installing)> {
        let loader = Loader::lasting(sample_cluster())?;
        let policies = loader.load(&self.policies)?;
        let layers = self.compatibility.over(layers(&policies, None, &[])?)?;
        let installing = installing(&loader, &policies, layers, false)?;
        Ok((policies, installing))
    }

    /// Changes settings while the operator runs, and prints the changes of the children.
    async fn swap(
        &self,
        (name, document): (String, Value),
        policies: &[Loaded],
        stage: &DemoCluster,
        screen: &mut Screen,
    ) -> anyhow::Result<bool> {
        screen.step(&format!("Changing the policies' settings, live: {name}"))?;
        for line in serde_saphyr::to_string(&document)?.lines() {
            screen.say(&format!("  {line}"))?;
        }
        let layers = settings::file(&name, &document, &schemas(policies))?;
        self.let_answer(&shipping::settings(layers)?, stage, screen).await
    }

    /// Installs another component while the operator runs, and prints the changes of the children.
    async fn ship(&self, stage: &DemoCluster, screen: &mut Screen) -> anyhow::Result<bool> {
        screen.step(&format!("Installing another component, live, with {}", shipping::FILE.0))?;
        self.let_answer(&[shipping::component()?], stage, screen).await
    }

    /// Installs a package that the operator holds, and a package whose rollout the operator ends with a return.
    async fn protect(&self, stage: &DemoCluster, screen: &mut Screen) -> anyhow::Result<bool> {
        let before = stage.children().await?;
        protections::hold(stage, screen, self.patience()).await?;
        protections::fail(stage, screen, self.patience()).await?;
        let ready = self.until_ready(stage, screen).await?;
        changes::tell(&before, &stage.children().await?, screen)?;
        Ok(ready)
    }

    /// Installs packages as ConfigMaps, and prints the changes of the children.
    async fn let_answer(&self, packed: &[Packed], stage: &DemoCluster, screen: &mut Screen) -> anyhow::Result<bool> {
        let before = stage.children().await?;
        for packed in packed {
            let name = packed.index.metadata.name.as_deref().unwrap_or_default();
            screen.say(&format!("  kubectl apply -n {HOME}: ConfigMap {name}"))?;
            match ship(stage.client.clone(), packed, Until::Active, self.patience(), |_| ()).await? {
                Ok(serves) => screen.say(&format!("  {serves}"))?,
                Err(why) => {
                    complain("error", why);
                    return Ok(false);
                }
            }
        }
        let ready = self.until_ready(stage, screen).await?;
        changes::tell(&before, &stage.children().await?, screen)?;
        Ok(ready)
    }

    /// Shows the objects until all objects are ready and the cluster has settled. Returns false after a timeout.
    async fn until_ready(&self, stage: &DemoCluster, screen: &mut Screen) -> anyhow::Result<bool> {
        let deadline = Instant::now() + self.patience();
        let (mut revision, mut since) = (stage.cluster.revision(), Instant::now());
        loop {
            let rows = stage.rows();
            screen.show(&rows)?;
            if revision != stage.cluster.revision() {
                (revision, since) = (stage.cluster.revision(), Instant::now());
            }
            if !rows.is_empty() && rows.iter().all(|row| row.ready) && since.elapsed() >= QUIET {
                screen.keep();
                return Ok(true);
            }
            if Instant::now() >= deadline {
                screen.keep();
                for row in rows.iter().filter(|row| !row.ready) {
                    complain("error", format_args!("{} is not ready: {}", row.object, row.message));
                }
                return Ok(false);
            }
            tokio::time::sleep(FRAME).await;
        }
    }

    /// Whether the demo applies only its own objects, policies and settings.
    fn is_sample(&self) -> bool {
        self.filenames.is_empty() && self.policies.is_empty() && self.settings.is_none()
    }

    /// The maximum duration of a step.
    fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    fn sample(&self) -> anyhow::Result<Vec<Document>> {
        let (documents, errors) = if self.filenames.is_empty() {
            input::parse(&SAMPLE.0.into(), SAMPLE.1, "default")
        } else {
            let sources = InputPaths { paths: &self.filenames, recursive: false, namespace: "default" };
            input::read(sources, &Scopes::of(&self.definitions()?))
        };
        let documents = usable(documents, &errors)?;
        if documents.is_empty() {
            return Err(anyhow!("the input has no objects: use -f to specify files that contain objects"));
        }
        Ok(documents)
    }

    fn definitions(&self) -> anyhow::Result<Vec<Value>> {
        let mut definitions: Vec<Value> = embedded().collect();
        let sources = InputPaths { paths: &self.crds, recursive: false, namespace: "default" };
        let (documents, errors) = input::read(sources, &Scopes::default());
        for Document { origin, object, .. } in usable(documents, &errors)? {
            Crd::new(&object).with_context(|| origin.to_string())?;
            definitions.push(object);
        }
        Ok(definitions)
    }

    /// Returns the settings that the demo applies, with their name. Returns `None` if the user named no settings, and
    /// the demo's own settings are for none of the objects.
    fn change(&self, policies: &[Loaded], sample: &[Document]) -> anyhow::Result<Option<(String, Value)>> {
        if let Some(path) = &self.settings {
            return Ok(Some((path.display().to_string(), input::document(path)?)));
        }
        let document = serde_saphyr::from_str(CHANGE.1)?;
        Ok(answers::concern(&document, policies, sample).then(|| (CHANGE.0.to_owned(), document)))
    }
}

/// Prints the errors of the input. Returns the documents, or an error if any input is unusable.
fn usable(documents: Vec<Document>, errors: &[InputError]) -> anyhow::Result<Vec<Document>> {
    for error in errors {
        complain("error", error);
    }
    match errors.len() {
        0 => Ok(documents),
        count => Err(anyhow!("{count} documents cannot be used")),
    }
}

/// Returns the error for an operator that ended before the demo stopped it.
fn too_early(ended: Result<Result<(), OperatorError>, JoinError>) -> anyhow::Error {
    const WHAT: &str = "the operator ended while the demo ran";
    match ended {
        Ok(Ok(())) => anyhow!(WHAT),
        Ok(Err(error)) => anyhow::Error::new(error).context(WHAT),
        Err(error) => anyhow::Error::new(error).context(WHAT),
    }
}

/// Prints the next commands to try. Then shows the objects until the user interrupts the demo or closes its output.
async fn leave_open(stage: &DemoCluster, screen: &mut Screen) -> anyhow::Result<()> {
    screen.step("The cluster and the operator run until Ctrl-C. In another terminal:")?;
    screen.say(&format!("  export KUBECONFIG={}", stage.kubeconfig().display()))?;
    if cfg!(feature = "console") {
        screen.say("  kaos-operator console   # pages with all of this; `demo --console` opens them at once")?;
    }
    for namespace in stage.namespaces() {
        screen.say(&format!("  kubectl get kaos,deployments -n {namespace}"))?;
        screen.say(&format!("  kubectl delete deployments --all -n {namespace}   # they come back"))?;
    }
    screen.say("")?;
    while !screen.is_unseen() {
        screen.show(&stage.rows())?;
        tokio::time::sleep(FRAME).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_operator_that_ends_too_early_is_an_error() {
        let error = too_early(tokio::spawn(async { Ok(()) }).await);
        assert_eq!(error.to_string(), "the operator ended while the demo ran");
        let task = tokio::spawn(std::future::pending());
        task.abort();
        let error = format!("{:#}", too_early(task.await));
        assert!(error.starts_with("the operator ended while the demo ran: task "), "{error}");
    }
}
