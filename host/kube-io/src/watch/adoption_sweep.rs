//! Finds the children that an earlier operator created and that lack the operator's label. Lists each type once, and
//! requests only metadata.

use kaos_objects::metadata;
use kube::{api::ListParams, core::Request};
use serde::Deserialize;
use serde_json::Value;

use super::{apply_event, shared::Shared, slot::Handle, watch_error::WatchError};

#[derive(Deserialize)]
struct Metadata {
    metadata: Meta,
    /// The API server writes null for an empty list.
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    r#continue: String,
}

/// Lists a type once, and retries after failures.
pub(super) async fn run(shared: &Shared, handle: &Handle) {
    let mut rng = shared.rng(("sweep", &*handle.spec));
    let mut failures = 0;
    while let Err(broken) = sweep_once(shared, handle).await {
        if broken == WatchError::Unserved {
            return;
        }
        failures += 1;
        shared.metrics.watch_error(&handle.spec.of, &broken.reason());
        tokio::time::sleep(shared.options.backoff.after(failures, &mut rng)).await;
    }
}

async fn sweep_once(shared: &Shared, handle: &Handle) -> Result<(), WatchError> {
    let path = handle.served.path(handle.spec.namespace.as_deref());
    let mut next = None;
    let mut size = shared.options.page_size();
    loop {
        let request = |limit| {
            let params = ListParams {
                label_selector: Some(format!("{}!={}", metadata::MANAGED_BY, metadata::MANAGER)),
                limit,
                continue_token: next.clone(),
                ..ListParams::default()
            };
            Request::new(&path).list_metadata(&params)
        };
        let page: Metadata = serde_json::from_str(&size.next_page(&shared.client, request).await?)?;
        for object in page.items.iter().flatten() {
            shared.tell(|state| apply_event::swept(state, handle, object));
        }
        if page.metadata.r#continue.is_empty() {
            return Ok(());
        }
        next = Some(page.metadata.r#continue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_metadata_may_be_written_in_three_ways() {
        for items in [r#", "items": []"#, r#", "items": null"#, ""] {
            let page: Metadata =
                serde_json::from_str(&format!(r#"{{"metadata": {{"resourceVersion": "7"}}{items}}}"#)).unwrap();
            assert_eq!(page.items.iter().flatten().count(), 0);
        }
    }
}
