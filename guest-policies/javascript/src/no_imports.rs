//! Defines the clock, the only import of QuickJS's C code. A component imports nothing, and a policy has no clock.

/// Returns the time for the C code, which is always 0. The prelude also removes the clock from the script's globals.
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    0.0
}
