//! Checks the host of a request. By default, the cluster has no authentication. So the cluster must not answer requests
//! of a web page whose host name points to this machine (DNS rebinding).

use std::net::IpAddr;

use http::{HeaderMap, StatusCode, header};

use crate::status::ApiError;

/// Refuses a request for any host except the names of this machine and the address of the connection.
pub(super) fn check(headers: &HeaderMap, connected: Option<IpAddr>) -> Result<(), ApiError> {
    // Browsers always send a host, so a request without a host does not come from a browser.
    let Some(host) = headers.get(header::HOST) else { return Ok(()) };
    if host.to_str().is_ok_and(|host| is_here(host, connected)) {
        return Ok(());
    }
    let message = "forbidden: use a local address, or the address that the cluster listens on";
    Err(ApiError::plain(StatusCode::FORBIDDEN, "Forbidden", message))
}

fn is_here(host: &str, connected: Option<IpAddr>) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_ours = |address: IpAddr| address.is_loopback() || connected == Some(address);
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_ours)
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn only_local_names_and_the_connections_address_are_accepted() {
        let connected = "192.168.1.5".parse().ok();
        for host in ["localhost:1", "127.0.0.1", "[::1]:7", "192.168.1.5:8001", "LOCALHOST"] {
            assert!(is_here(host, connected), "{host}");
        }
        for host in ["evil.example", "evil.example:1", "localhost.evil.example", "192.168.1.6", "", "[evil]:1"] {
            assert!(!is_here(host, connected), "{host}");
        }
    }
}
