//! Measures each compilation of a package.

use std::{sync::Arc, time::Instant};

use kaos_policy::compile::{Compilation, Compile, CompileError, Order};

use crate::metrics::Metrics;

/// A compiler whose compilations are measured.
pub(super) struct TimedCompiler {
    pub(super) compiler: Arc<dyn Compile>,
    pub(super) metrics: Arc<Metrics>,
}

impl Compile for TimedCompiler {
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
        let began = Instant::now();
        let compiled = self.compiler.compile(order);
        self.metrics.compilation(compiled.is_ok(), began.elapsed());
        compiled
    }
}
