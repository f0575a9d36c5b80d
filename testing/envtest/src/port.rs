//! Ports that nobody else takes.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// A TCP port of the loopback address that is kept for one program, also while that is away for a restart.
///
/// The same port of UDP is held for it: of all who choose ports in this way, in any process, only one gets it, and it is free
/// again when the process ends, however it ends, without a file. It lies below the ports that systems give to clients, so
/// that none of these takes it meanwhile. Only a foreign server that starts on it at the same time can.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _held: UdpSocket,
}

const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;
const ATTEMPTS: usize = 1000;

impl Port {
    /// One that is free now.
    pub(crate) fn reserve() -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let number = FIRST + (RandomState::new().build_hasher().finish() % u64::from(COUNT)) as u16;
            if let Some(port) = Self::hold(number) {
                return Ok(port);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("no free port of {ATTEMPTS} tried between {FIRST} and {}: end what uses them", FIRST + COUNT - 1),
        ))
    }

    fn hold(number: u16) -> Option<Self> {
        let address = (Ipv4Addr::LOCALHOST, number);
        let _held = UdpSocket::bind(address).ok()?;
        TcpListener::bind(address).ok()?;
        Some(Self { number, _held })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_reserved_port_is_given_to_nobody_else_until_it_is_dropped() {
        let port = Port::reserve().unwrap();
        let number = port.number();
        assert!((FIRST..FIRST + COUNT).contains(&number));
        assert!(Port::hold(number).is_none());
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok(), "it is for its user to listen on");
        drop(port);
        // A process that another test is just starting has it too, until it runs its own program.
        let is_free = || {
            Port::hold(number).is_some() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        };
        assert!((0..1000).any(|_| is_free()));
    }

    #[test]
    fn a_port_that_a_server_listens_on_is_not_chosen() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(Port::hold(server.local_addr().unwrap().port()).is_none());
    }
}
