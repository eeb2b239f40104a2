//! Runs policies for the steps of a pass that do no I/O: selection, rendering, assessment. The runner has no client.

use std::sync::Arc;

use kaos_policy::{render::Renderer, settings::SettingsErrors};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{memory::Memories, shutdown::computed};
use crate::{
    budgets::Budgets,
    catalogue::{Catalogue, Kind, Renderers},
    clock::Clock,
    metrics::Metrics,
    processors::Processors,
    record::Recorder,
    watch::Watch,
};

/// Runs policies.
pub(crate) struct PolicyRunner {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) renderers: Renderers,
    pub(crate) watch: Watch,
    pub(crate) memories: Memories,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether a change of a referenced ConfigMap or Secret restarts the pods.
    pub(crate) hashes_references: bool,
    pub(crate) processors: Processors,
    pub(crate) recorder: Arc<Recorder>,
    /// Limits the fuel and the passes of each kind in each namespace.
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) clock: Clock,
    /// Is cancelled when the operator shuts down.
    pub(crate) stopping: CancellationToken,
}

impl PolicyRunner {
    /// Returns the renderer for the selected policies, with the types that the cluster serves now.
    pub(crate) fn renderer(&self, kind: &Kind) -> Result<Arc<Renderer>, SettingsErrors> {
        self.renderers.of(kind, |of| self.watch.served(of).is_some())
    }

    /// Returns a renderer for the selected policies, to explain an object. Its calls are not in metrics and traces.
    pub(crate) fn unobserved_renderer(&self, kind: &Kind) -> Result<Arc<Renderer>, SettingsErrors> {
        self.renderers.unobserved(kind, |of| self.watch.served(of).is_some())
    }

    /// Runs a policy or other CPU-bound work. The trace spans of the work are children of the current step's span.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        is_local: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let span = Span::current();
        computed(&self.stopping, self.processors.run(is_local, move || span.in_scope(work))).await
    }
}
