//! A compiler that fails on some components and hangs on others. The test chooses the components.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kaos_policy::compile::{Compilation, Compile, CompileError, Order};

use super::once::Once;

/// The error with which the compiler fails on some components. `None` if the test set no such error.
pub(super) type Hindered = Arc<Mutex<Option<Hindrance>>>;

/// A planned error of the compiler: a text, the error for components that contain this text, and how often the compiler
/// returned this error.
pub(super) struct Hindrance {
    pub(super) text: &'static str,
    pub(super) why: CompileError,
    pub(super) hits: usize,
}

/// A compiler in this process. The compiler fails on some components. On other components, it hangs until the test ends
/// the hang, or until the operator no longer wants the result.
pub(super) struct Mortal {
    pub(super) compiler: Once,
    pub(super) hindered: Hindered,
    pub(super) held: Held,
}

/// The planned hang of the compiler. The test and the compiler share this value.
pub(super) type Held = Arc<Mutex<Stall>>;

/// A planned hang of the compiler: a text, the number of components with this text on which the compiler hangs now, and
/// how often the compiler has hung so far.
#[derive(Default)]
pub(super) struct Stall {
    pub(super) text: Option<&'static str>,
    pub(super) now: usize,
    pub(super) ever: usize,
}

impl Mortal {
    /// Returns the error that the test planned for a component, or `None` without such an error. Also counts this
    /// error.
    fn hindered_over(&self, component: &[u8]) -> Option<CompileError> {
        let mut hindered = lock(&self.hindered);
        let hindrance = hindered.as_mut().filter(|hindrance| holds(component, hindrance.text))?;
        hindrance.hits += 1;
        Some(hindrance.why.clone())
    }

    /// If the test chose this component for a hang, waits until the test ends the hang, or until the operator no longer
    /// wants the result.
    fn wait(&self, order: &Order<'_>) -> Result<(), CompileError> {
        let is_held = || lock(&self.held).text.is_some_and(|text| holds(order.component, text));
        if !is_held() {
            return Ok(());
        }
        lock(&self.held).now += 1;
        lock(&self.held).ever += 1;
        while is_held() && (order.is_wanted)() {
            std::thread::sleep(Duration::from_millis(1));
        }
        lock(&self.held).now -= 1;
        if (order.is_wanted)() { Ok(()) } else { Err(CompileError::Unwanted) }
    }
}

fn holds(component: &[u8], text: &str) -> bool {
    component.windows(text.len()).any(|at| at == text.as_bytes())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Compile for Mortal {
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
        self.wait(order)?;
        self.hindered_over(order.component).map_or_else(|| self.compiler.compile(order), Err)
    }
}
