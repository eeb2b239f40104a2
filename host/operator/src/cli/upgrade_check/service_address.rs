//! Reads the address of a decision point, with the parser that the policies use for the same setting.

#[path = "../../../../../guest-policies/workload/src/security/address.rs"]
#[allow(dead_code, reason = "the policies also need the port, and the namespaces of other addresses")]
mod address;

/// Returns the name and the namespace of the Service in an address such as `grpc://pdp.authz.svc:9191`. `None` if the
/// text is not the address of a Service.
pub(super) fn service(text: &str) -> Option<(&str, &str)> {
    address::service(text).map(|it| (it.name, it.namespace))
}
