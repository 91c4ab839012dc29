//! Ports: whether one is free, and who has it if it is not.

use std::net::{TcpListener, ToSocketAddrs as _};

use procfs::net::TcpState;
use procfs::process::FDTarget;

use crate::pidfile;

/// Why a server cannot listen somewhere.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Somebody else does.
    #[error("port {port} of {host} is in use by {by}; stop that program, or choose another port")]
    Taken {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Who has it.
        by: String,
    },
    /// It cannot be listened on.
    #[error("cannot listen on {host}:{port}: {why}")]
    Impossible {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the system said.
        why: String,
    },
}

/// Looks whether a server could listen here now.
pub fn is_free(host: &str, port: u16) -> Result<(), Refused> {
    let impossible = |why: String| Refused::Impossible { host: host.to_owned(), port, why };
    let addresses = (host, port).to_socket_addrs().map_err(|error| impossible(error.to_string()))?;
    for address in addresses {
        match TcpListener::bind(address) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                let by = who(port).map_or_else(
                    || "another program".to_owned(),
                    |pid| format!("{} (pid {pid})", pidfile::name_of(pid)),
                );
                return Err(Refused::Taken { host: host.to_owned(), port, by });
            }
            Err(error) => return Err(impossible(error.to_string())),
        }
    }
    Ok(())
}

/// The process that listens on a port, as far as this user may see it.
pub fn who(port: u16) -> Option<i32> {
    let four = procfs::net::tcp().unwrap_or_default();
    let six = procfs::net::tcp6().unwrap_or_default();
    let listens = |entry: &procfs::net::TcpNetEntry| {
        entry.state == TcpState::Listen && entry.local_address.port() == port
    };
    let sockets: Vec<u64> = four.into_iter().chain(six).filter(listens).map(|entry| entry.inode).collect();
    let mut processes = procfs::process::all_processes().ok()?.flatten();
    let has_one = |process: &procfs::process::Process| {
        let mut files = process.fd().into_iter().flatten().flatten();
        files.any(|file| matches!(file.target, FDTarget::Socket(inode) if sockets.contains(&inode)))
    };
    processes.find(has_one).map(|process| process.pid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_port_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_eq!(who(port), i32::try_from(std::process::id()).ok());
        let refused = is_free("127.0.0.1", port).unwrap_err().to_string();
        assert!(refused.contains(&format!("pid {}", std::process::id())), "{refused}");
        drop(taken);
        // A process that another test starts in this moment has a copy of it until it is another program.
        assert!((0..10_000).any(|_| is_free("127.0.0.1", port).is_ok()));
        assert!(matches!(is_free("203.0.113.7", port), Err(Refused::Impossible { .. })));
    }
}
