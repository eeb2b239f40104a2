//! Writes kubeconfigs.

/// Returns a kubeconfig with a server's URL and a user's token.
pub(super) fn write(url: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: embedded\n\
         clusters:\n- name: embedded\n  cluster:\n    server: {url}\n\
         users:\n- name: embedded\n  user:\n    token: {token}\n\
         contexts:\n- name: embedded\n  context:\n    cluster: embedded\n    user: embedded\n    namespace: default\n"
    )
}
