//! The chapters of the bench. Each chapter acts on an operator, for example restarts it, and records figures.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kaos_tests::control_plane::audit::Tail;
use kube::api::DeleteParams;
use serde_json::Value;

use crate::calls::{self, Calls, Sort};
use crate::figures::Figures;
use crate::load::{self, Load};
use crate::stage::{Cluster, Stage};
use crate::subject::Subject;

/// The times for which the bench waits for an idle operator, and for which it records requests.
#[derive(Debug)]
pub(crate) struct Pace {
    /// An operator counts as idle after it has sent only watches and Lease requests for this time.
    pub(crate) still: Duration,
    /// How long to record the requests of an idle operator.
    pub(crate) silence: Duration,
}

/// The time limit of each chapter.
const PATIENCE: Duration = Duration::from_mins(10);

/// Runs all chapters once.
pub(crate) async fn tell(
    cluster: &Cluster,
    install: &Path,
    command: &str,
    load: &Load,
    pace: &Pace,
    namespace: &str,
) -> Result<Figures> {
    let stage = Stage::set(cluster, install, namespace).await?;
    let mut subject = Subject::start(&stage, command)?;
    let mut story = Story { stage: &stage, command, load, pace, figures: Figures::default() };
    let told = story.all(&mut subject).await;
    let subject = match told {
        Ok(()) => story.again(subject).await.context("after the load")?,
        Err(error) => {
            return Err(error.context(format!("the operator's log is in {folder}", folder = stage.folder().display())));
        }
    };
    if !stage.is_own() {
        load::take_away(&stage.client, namespace).await?;
        load::api(&stage.client, "Namespace", "").delete(namespace, &DeleteParams::default()).await?;
    }
    subject.stop()?;
    Ok(story.figures)
}

struct Story<'s> {
    stage: &'s Stage,
    command: &'s str,
    load: &'s Load,
    pace: &'s Pace,
    figures: Figures,
}

impl Story<'_> {
    /// Runs all chapters before the restart: start, load, silence, and the two changes of the shared ModelAPI.
    async fn all(&mut self, subject: &mut Subject) -> Result<()> {
        if let Some(ready) = subject.until_ready()? {
            self.figures.note("ready", ready.as_secs_f64());
        }
        self.load(subject).await?;
        // Read the size of the program only now: right after the start, the process is still the shell that runs the
        // command.
        #[expect(clippy::cast_precision_loss, reason = "every program is small enough")]
        self.figures.note("binary", subject.size()? as f64 / 1e6);
        self.silence(subject).await?;
        self.models(subject).await?;
        self.mode(subject).await
    }

    async fn load(&mut self, subject: &mut Subject) -> Result<()> {
        let (stage, count) = (self.stage, self.load.count());
        let mut tail = stage.listen()?;
        // Wait until the operator has finished its work at startup.
        let mut calls = Calls::default();
        calls.until_still(&mut tail, (Duration::from_secs(2), PATIENCE), |_| Ok(true)).await?;
        let (begin, cluster, mut calls) = (calls::now(), stage.processor(), Calls::default());
        let loading = self.load.put(&stage.client, stage.namespace());
        let listening = calls.until_still(&mut tail, (self.pace.still, PATIENCE), |calls| {
            subject.check()?;
            Ok(calls.made_of("deployments") >= count)
        });
        tokio::try_join!(loading, listening)?;
        let usage = subject.usage();
        let cluster = cluster.and_then(|before| Some(stage.processor()?.saturating_sub(before)));
        load::check(&stage.client, stage.namespace(), self.load).await?;
        let figures = &mut self.figures;
        figures.note("children", calls.last_made()?.context("the operator created nothing")? - begin);
        figures.note("settled", calls.last_write()?.context("the operator wrote nothing")? - begin);
        figures.count("load.writes", calls.count(Sort::Write));
        figures.count("load.status", calls.statuses());
        figures.count("load.events", calls.count(Sort::Event));
        figures.count("load.reads", calls.count(Sort::Read));
        figures.note("load.processor", usage.processor.as_secs_f64());
        figures.note("peak", mebibytes(usage.peak));
        figures.note("peaks", mebibytes(usage.peaks));
        if let Some(cluster) = cluster {
            figures.note("load.cluster", cluster.as_secs_f64());
        }
        if let Some(passes) = subject.passes() {
            figures.note("load.passes", passes);
        }
        figures.calls.insert("load", calls.by_verb());
        Ok(())
    }

    async fn silence(&mut self, subject: &mut Subject) -> Result<()> {
        let mut tail = self.stage.listen()?;
        let before = subject.usage().processor;
        tokio::time::sleep(self.pace.silence).await;
        subject.check()?;
        let mut calls = Calls::default();
        calls.hear(&mut tail)?;
        let used = subject.usage().processor.saturating_sub(before);
        let figures = &mut self.figures;
        figures.count("silence.writes", calls.count(Sort::Write) + calls.count(Sort::Event));
        figures.count("silence.calls", calls.count(Sort::Write) + calls.count(Sort::Event) + calls.count(Sort::Read));
        figures.count("silence.leases", calls.count(Sort::Lease));
        figures.note("silence.processor", used.as_secs_f64());
        figures.calls.insert("silence", calls.by_verb());
        Ok(())
    }

    async fn models(&mut self, subject: &mut Subject) -> Result<()> {
        let done = self.change(subject, &load::other_models()).await?;
        let figures = &mut self.figures;
        figures.count("models.writes", done.calls.count(Sort::Write));
        figures.count("models.agents", done.calls.writes_of("agents/status") + done.calls.writes_of("agents"));
        figures.count("models.events", done.calls.count(Sort::Event));
        figures.note("models.processor", done.processor);
        if let Some(passes) = done.passes {
            figures.note("models.passes", passes);
        }
        figures.calls.insert("models", done.calls.by_verb());
        Ok(())
    }

    async fn mode(&mut self, subject: &mut Subject) -> Result<()> {
        let done = self.change(subject, &load::other_mode()).await?;
        let figures = &mut self.figures;
        figures.count("mode.writes", done.calls.count(Sort::Write));
        figures.count("mode.deployments", done.calls.writes_of("deployments"));
        figures.count("mode.events", done.calls.count(Sort::Event));
        figures.note("mode.processor", done.processor);
        if let Some(passes) = done.passes {
            figures.note("mode.passes", passes);
        }
        figures.calls.insert("mode", done.calls.by_verb());
        Ok(())
    }

    /// Changes the shared ModelAPI, and waits until the operator is idle again.
    async fn change(&self, subject: &mut Subject, spec: &Value) -> Result<Done> {
        let mut tail = self.stage.listen()?;
        let (used, passes) = (subject.usage().processor, subject.passes());
        load::change(&self.stage.client, self.stage.namespace(), "ModelAPI", load::SHARED, spec).await?;
        let mut calls = self.settle(&mut tail).await?;
        calls.hear(&mut tail)?;
        let processor = subject.usage().processor.saturating_sub(used).as_secs_f64();
        let passes = passes.and_then(|before| Some(subject.passes()? - before));
        Ok(Done { calls, processor, passes })
    }

    async fn settle(&self, tail: &mut Tail) -> Result<Calls> {
        let mut calls = Calls::default();
        let wrote = |calls: &Calls| Ok(calls.count(Sort::Write) > 0);
        calls.until_still(tail, (self.pace.still, PATIENCE), wrote).await?;
        Ok(calls)
    }

    /// Kills the operator, deletes a Deployment, and starts the operator again. After the operator is idle, restarts it
    /// once more.
    async fn again(&mut self, subject: Subject) -> Result<Subject> {
        let deployments = load::api(&self.stage.client, "Deployment", self.stage.namespace());
        let mut tail = self.stage.listen()?;
        subject.kill();
        let lost = "agent-agent-0";
        deployments.delete(lost, &DeleteParams::default()).await?;
        let killed = Instant::now();
        let mut next = Subject::start(self.stage, self.command)?;
        while deployments.get_opt(lost).await?.is_none() {
            next.check()?;
            anyhow::ensure!(killed.elapsed() < PATIENCE, "the operator does not create {lost} again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.figures.note("recovery", killed.elapsed().as_secs_f64());
        let calls = self.settle(&mut tail).await?;
        self.figures.count("recovery.writes", calls.count(Sort::Write));
        self.figures.calls.insert("recovery", calls.by_verb());
        next.stop()?;
        self.restart().await
    }

    async fn restart(&mut self) -> Result<Subject> {
        let mut tail = self.stage.listen()?;
        let begin = calls::now();
        let mut subject = Subject::start(self.stage, self.command)?;
        if let Some(ready) = subject.until_ready()? {
            self.figures.note("restart.ready", ready.as_secs_f64());
        }
        let mut calls = Calls::default();
        let asked = |calls: &Calls| Ok(calls.count(Sort::Read) > 0);
        calls.until_still(&mut tail, (self.pace.still, PATIENCE), asked).await?;
        let usage = subject.usage();
        let figures = &mut self.figures;
        figures.note("restart.quiet", calls.last()?.context("the operator sent no request")? - begin);
        figures.count("restart.writes", calls.count(Sort::Write) + calls.count(Sort::Event));
        figures.count("restart.reads", calls.count(Sort::Read));
        figures.note("restart.processor", usage.processor.as_secs_f64());
        figures.note("restart.peak", mebibytes(usage.peak));
        figures.calls.insert("restart", calls.by_verb());
        Ok(subject)
    }
}

/// The cost of a change: requests, processor time and passes.
struct Done {
    calls: Calls,
    processor: f64,
    passes: Option<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "no process needs so much memory")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
