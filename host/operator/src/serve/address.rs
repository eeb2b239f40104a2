//! Parses the addresses to listen on from flags.

use std::{
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4},
    str::FromStr,
};

use tokio::net::TcpListener;

/// An address to listen on: `:8080`, `127.0.0.1:8080`, `[::1]:8080`, or `0` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BindAddress {
    /// No address.
    Off,
    /// Every address of the machine.
    Everywhere(u16),
    /// One address.
    One(SocketAddr),
}

/// The error for an invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address to listen on: write :8080, 127.0.0.1:8080, or 0 for no address")]
pub struct AddressError(String);

impl FromStr for BindAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        match text.strip_prefix(':') {
            _ if text == "0" => Ok(Self::Off),
            Some(port) => port.parse().map(Self::Everywhere).map_err(|_| wrong()),
            None => {
                let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
                named.as_deref().unwrap_or(text).parse().map(Self::One).map_err(|_| wrong())
            }
        }
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Everywhere(port) => write!(f, ":{port}"),
            Self::One(address) => address.fmt(f),
        }
    }
}

/// A loopback address to listen on: `127.0.0.1:8082`, `[::1]:8082`, or `0` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddress(BindAddress);

/// The error for an address that is invalid or not on loopback. If the server listened on another address, callers on
/// other machines would see the content of objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a loopback address, but these pages show the content of objects: use 127.0.0.1:PORT and kubectl \
     port-forward, or 0 for no address"
)]
pub struct LocalAddressError(String);

impl LocalAddress {
    /// Returns a port of `127.0.0.1`.
    pub const fn on_loopback(port: u16) -> Self {
        Self(BindAddress::One(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))))
    }
}

impl Default for LocalAddress {
    fn default() -> Self {
        Self::on_loopback(8082)
    }
}

impl FromStr for LocalAddress {
    type Err = LocalAddressError;

    fn from_str(text: &str) -> Result<Self, LocalAddressError> {
        match text.parse::<BindAddress>() {
            Ok(BindAddress::Off) => Ok(Self(BindAddress::Off)),
            Ok(BindAddress::One(one)) if one.ip().is_loopback() => Ok(Self(BindAddress::One(one))),
            _ => Err(LocalAddressError(text.to_owned())),
        }
    }
}

impl fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<LocalAddress> for BindAddress {
    fn from(local: LocalAddress) -> Self {
        local.0
    }
}

impl BindAddress {
    /// Starts to listen. Returns `None` for [`Off`](Self::Off).
    pub(super) async fn bind(self) -> io::Result<Option<TcpListener>> {
        match self {
            Self::Off => Ok(None),
            Self::One(address) => TcpListener::bind(address).await.map(Some),
            Self::Everywhere(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
                // The machine may have no IPv6. Try IPv4.
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.map(Some)
                }
                bound => bound.map(Some),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_go_operator_reads_them() {
        let one = |text: &str| BindAddress::One(text.parse().expect("an address"));
        for (text, expected) in [
            ("0", BindAddress::Off),
            (":8080", BindAddress::Everywhere(8080)),
            ("127.0.0.1:1", one("127.0.0.1:1")),
            ("localhost:1", one("127.0.0.1:1")),
            ("[::1]:2", one("[::1]:2")),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        for text in ["", "8080", ":", ":70000", "host:80", "127.0.0.1"] {
            let error = text.parse::<BindAddress>().expect_err("no address");
            assert!(error.to_string().contains(":8080"));
        }
    }

    #[test]
    fn an_address_beyond_loopback_is_refused_with_a_remedy() {
        for text in ["0", "127.0.0.1:8082", "127.0.0.9:1", "[::1]:0"] {
            assert_eq!(text.parse::<LocalAddress>().expect("a local address").to_string(), text);
        }
        assert_eq!("localhost:8082".parse(), Ok(LocalAddress::on_loopback(8082)));
        for text in [":8082", "0.0.0.0:8082", "[::]:8082", "10.0.0.1:8082", "[::ffff:10.0.0.1]:1", "8082", ""] {
            let error = text.parse::<LocalAddress>().expect_err("not a local address").to_string();
            assert!(error.contains("127.0.0.1:PORT and kubectl port-forward, or 0"), "{error}");
        }
    }
}
