//! Directs connections for a Service to the process of a pod, like kube-proxy and the cluster's DNS.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use kaos_tests::control_plane::files;
use kaos_tests::harness::read::{entries, name, text};
use serde_json::Value;

use crate::pod::list;

/// The files through which processes find Services.
pub(crate) struct Network {
    folder: PathBuf,
    /// The contents of the files.
    written: BTreeMap<PathBuf, String>,
}

impl Network {
    /// Creates an empty network. `folder` is the folder of the node.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, written: BTreeMap::new() }
    }

    /// Writes the files of all Services. The function `file` gets the address and a port of a pod, and returns the path
    /// of a file of the node. That file contains the port of this machine on which the pod's process listens instead.
    pub(crate) fn update(
        &mut self,
        services: &[Value],
        slices: &[Value],
        file: impl Fn(&str, u16) -> Option<PathBuf>,
    ) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for service in services {
            let (of, address) = (text(&service["metadata"]["namespace"]), text(&service["spec"]["clusterIP"]));
            let host = format!("{}.{of}.svc.cluster.local", name(service));
            wanted.insert(self.folder.join("services").join(host), address.to_owned());
            let is_own = |slice: &&Value| {
                slice["metadata"]["namespace"] == *of
                    && entries(slice, "labels").get("kubernetes.io/service-name") == Some(&service["metadata"]["name"])
            };
            for slice in slices.iter().filter(is_own) {
                for (port, target) in ports(service, slice) {
                    let ready = list(&slice["endpoints"]).iter().filter(|it| it["conditions"]["ready"] == true);
                    let mut pods = ready.flat_map(|endpoint| list(&endpoint["addresses"]));
                    if let Some(behind) = pods.find_map(|pod| file(text(pod), target)) {
                        let endpoint = self.folder.join("endpoints").join(format!("{address}:{port}"));
                        wanted.insert(endpoint, behind.display().to_string());
                    }
                }
            }
        }
        for (path, content) in &wanted {
            if self.written.get(path) != Some(content) {
                files::write(path, content)?;
            }
        }
        for gone in self.written.keys().filter(|path| !wanted.contains_key(*path)) {
            fs::remove_file(gone)?;
        }
        self.written = wanted;
        Ok(())
    }
}

/// Returns each port of a Service, with the port of the pods to which the Service directs connections.
fn ports(service: &Value, slice: &Value) -> Vec<(u64, u16)> {
    let all = list(&service["spec"]["ports"]).iter().filter_map(|port| {
        let target = list(&slice["ports"]).iter().find(|it| text(&it["name"]) == text(&port["name"]))?;
        Some((port["port"].as_u64()?, u16::try_from(target["port"].as_u64()?).ok()?))
    });
    all.collect()
}
