//! The configuration of the servers.

use kaos_policy_sdk::SubjectExt;
use kaos_policy_sdk::types::Subject;

use crate::spec::{LogLevel, Settings, Spec};

/// Returns the text of `nats.conf`. The server replaces `$POD_NAME` and `$QUEUE_PASSWORD` with the values of these
/// environment variables.
pub(crate) fn text(subject: &Subject, spec: &Spec, settings: &Settings, extra: &str) -> String {
    let object = subject.object();
    let name = object.name();
    let mut text = format!(
        "server_name: $POD_NAME\n\
         listen: 0.0.0.0:4222\n\
         http: 0.0.0.0:8222\n\
         debug: {debug}\n\
         trace: {trace}\n\
         jetstream {{\n  store_dir: /data\n  limits {{ max_ack_pending: {limit} }}\n}}\n",
        debug = settings.log_level >= LogLevel::Debug,
        trace = settings.log_level >= LogLevel::Trace,
        limit = spec.max_messages.unwrap_or(settings.max_messages),
    );
    if spec.credentials_secret.is_some() {
        text += "authorization { user: queue, password: $QUEUE_PASSWORD }\n";
    }
    if spec.replicas > 1 {
        let host = subject.service_host(name, object.namespace());
        let routes: Vec<String> =
            (0..spec.replicas).map(|ordinal| format!("    \"nats://{name}-{ordinal}.{host}:6222\"\n")).collect();
        text += &format!(
            "cluster {{\n  name: \"{name}\"\n  listen: 0.0.0.0:6222\n  routes: [\n{}  ]\n}}\n",
            routes.concat()
        );
    }
    text + extra
}
