//! Which network addresses a channel may reach.
//!
//! Channels are set up by the user and may well point into the user's own network, so private and loopback addresses
//! are allowed. What nobody has a notification service on are the addresses where machines in a cloud find their own
//! credentials: those are refused, whatever name leads to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::channel::{SendContext, SendError};

/// Metadata services that do not live on a link-local address: Alibaba Cloud, Azure's wire server, AWS over IPv6.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// The guard's answer.
#[derive(Debug, thiserror::Error)]
#[error("the address is link-local or a metadata service, which channels may not reach")]
pub(crate) struct Refused;

impl SendContext {
    /// The addresses that `host` leads to, for connections that the HTTP client does not make. One bad address is
    /// enough to refuse it, because nobody here chooses which one is taken.
    ///
    /// Whoever connects takes these and does not ask for the name again: it may lead elsewhere by then.
    pub(crate) async fn resolve(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, SendError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let found = tokio::time::timeout(self.timeout, self.http.lookup(host, port));
        let found = found
            .await
            .map_err(|_| SendError::temporary("cannot find the host in time"))?
            .map_err(|error| SendError::temporary(format!("cannot find the host: {error}")))?;
        if !self.http.allows_link_local() && found.iter().any(|found| is_refused(found.ip())) {
            return Err(SendError::permanent(Refused.to_string()));
        }
        Ok(found)
    }
}

/// Whether `address` is link-local or a known metadata service.
pub(crate) fn is_refused(address: IpAddr) -> bool {
    let address = plain(address);
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    link_local || METADATA.contains(&address)
}

/// The IPv4 address that an IPv6 address stands for: mapped (RFC 4291) or translated (RFC 6052).
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    if let Some(mapped) = v6.to_ipv4_mapped() {
        return IpAddr::V4(mapped);
    }
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let bits = (u32::from(high) << 16) | u32::from(low);
            IpAddr::V4(Ipv4Addr::from_bits(bits))
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_services_are_refused_and_own_networks_are_not() {
        #[track_caller]
        fn check(address: &str, refused: bool) {
            assert_eq!(is_refused(address.parse().unwrap()), refused, "{address}");
        }
        check("169.254.169.254", true);
        check("169.254.0.1", true);
        check("fe80::1", true);
        check("::ffff:169.254.169.254", true);
        check("64:ff9b::a9fe:a9fe", true);
        check("100.100.100.200", true);
        check("fd00:ec2::254", true);
        check("127.0.0.1", false);
        check("::1", false);
        check("10.0.0.5", false);
        check("192.168.1.20", false);
        check("fd12:3456::1", false);
        check("1.1.1.1", false);
    }
}
