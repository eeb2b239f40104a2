//! Starts a real control plane and runs a command against it. Without a command, the control plane runs until a user
//! ends this program:
//!
//! `cargo run --locked -p kaos-tests --bin control-plane -- [COMMAND [ARGUMENT …]]`
//!
//! The command finds the control plane through the variable `KUBECONFIG`. A test suite of this package finds the
//! control plane through the variable `KAOS_TEST_KUBECONFIG` instead.

use std::io::Write as _;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use kaos_tests::control_plane::ControlPlane;

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let cluster = ControlPlane::start()?;
    let kubeconfig = cluster.kubeconfig();
    let Some(program) = arguments.next() else {
        writeln!(std::io::stdout(), "export KUBECONFIG={}", kubeconfig.display())?;
        // Wait here, because the cluster ends when this process ends.
        loop {
            std::thread::park();
        }
    };
    let mut command = Command::new(&program);
    command.args(arguments).env("KUBECONFIG", &kubeconfig).env("KAOS_TEST_KUBECONFIG", &kubeconfig);
    let ended = command.status().with_context(|| program.display().to_string())?;
    Ok(ExitCode::from(u8::try_from(ended.code().unwrap_or(1)).unwrap_or(1)))
}
