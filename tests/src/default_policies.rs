//! Builds default policies for tests: policies like those that another version of the operator could contain.

use std::sync::Arc;

use anyhow::Result;
use kaos_operator::catalogue::DefaultPolicy;
use kaos_operator::package::{Package, PolicyCode};
use kaos_operator::policies::{Candidate, ComponentOrigin, Loader, sample_cluster};
use kaos_policy::gate;
use kaos_policy::manifest::PolicyFile;

use crate::shipped;

/// Returns a default policy with this component and this `policy.yaml`.
pub fn default_policy(component: &[u8], file: &str) -> Result<DefaultPolicy> {
    let file = PolicyFile::parse(file)?;
    let inner = gate::Candidate { bytes: component.to_vec(), file: file.clone(), ..gate::Candidate::default() };
    // Declare the component as embedded, so that the loader compiles it in this process instead of in a compile child.
    let candidate = Candidate { origin: ComponentOrigin::Embedded, inner };
    let policy = Loader::cached(sample_cluster())?.check(&candidate).result?;
    let (name, component) = (policy.id().name.clone(), Some(PolicyCode::component(component.to_vec())));
    Ok(DefaultPolicy { policy, package: Arc::new(Package { name, namespace: String::new(), file, component }) })
}

/// Returns the embedded policy of MCPServers with another log level, which changes all pods. If the operator moves the
/// objects in steps, the steps are: one object, half of the objects, and all objects.
pub fn mcp_servers_with_level(level: &str) -> Result<DefaultPolicy> {
    let (component, file) = shipped::embedded("mcpserver")?;
    let steps = "rollout: {steps: [1, 50%, 100%], pause: 30s, patience: 1m}";
    default_policy(component, &format!("{file}\nsettings: {{logLevel: {level}}}\n{steps}\n"))
}
