//! The passwords of a server's users: made once, kept in one file of their owner, and given to the server as variables. They stand in
//! no other file but one for each program, and are never shown.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use pyoco_store_nats::rights::Party;

use crate::folder::{self, Folder};

/// Whose password it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// The system account: it may take servers out of the cluster.
    System,
    /// Everybody, where nobody is asked who they are.
    Open,
    /// A program.
    Party(Party),
    /// A server of the same cluster.
    Route,
}

impl Holder {
    const ALL: [Self; 6] = [
        Self::System,
        Self::Open,
        Self::Party(Party::Gateway),
        Self::Party(Party::Worker),
        Self::Party(Party::Admin),
        Self::Route,
    ];

    /// The variable of its password.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::System => "NATS_BOOTSTRAP_SYSTEM_PASSWORD",
            Self::Open => "NATS_BOOTSTRAP_OPEN_PASSWORD",
            Self::Party(Party::Gateway) => "NATS_BOOTSTRAP_GATEWAY_PASSWORD",
            Self::Party(Party::Worker) => "NATS_BOOTSTRAP_WORKER_PASSWORD",
            Self::Party(Party::Admin) => "NATS_BOOTSTRAP_ADMIN_PASSWORD",
            Self::Route => "NATS_BOOTSTRAP_ROUTE_PASSWORD",
        }
    }
}

/// The passwords. They do not show themselves.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(BTreeMap<Holder, String>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl Credentials {
    /// Those of a folder, if it has some.
    pub fn of(folder: &Folder) -> io::Result<Option<Self>> {
        match std::fs::read_to_string(folder.credentials()) {
            Ok(text) => Self::read(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Those of a folder, made now if it has none.
    pub fn ensure(folder: &Folder) -> io::Result<Self> {
        if let Some(known) = Self::of(folder)? {
            return Ok(known);
        }
        let made = Self::make()?;
        match folder::write_new(&folder.credentials(), &made.text()) {
            Ok(()) => Ok(made),
            // Somebody was faster: theirs count.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::of(folder)?.ok_or(error),
            Err(error) => Err(error),
        }
    }

    fn make() -> io::Result<Self> {
        let mut passwords = BTreeMap::new();
        for holder in Holder::ALL {
            let mut bytes = [0_u8; 24];
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            // Servers read the value of a variable as a part of their configuration: a letter first makes it a text.
            let password = bytes.iter().fold("p".to_owned(), |text, byte| format!("{text}{byte:02x}"));
            passwords.insert(holder, password);
        }
        Ok(Self(passwords))
    }

    fn read(text: &str) -> io::Result<Self> {
        let lines: BTreeMap<&str, &str> =
            text.lines().filter_map(|line| line.trim().split_once('=')).collect();
        let mut passwords = BTreeMap::new();
        for holder in Holder::ALL {
            let found = lines.get(holder.variable()).filter(|password| is_password(password));
            let Some(password) = found else {
                let why = format!("{} is missing or is no password of ours", holder.variable());
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            };
            passwords.insert(holder, (*password).to_owned());
        }
        Ok(Self(passwords))
    }

    fn text(&self) -> String {
        let head = "# The passwords of this nats-server, made once. Copy this file to the other servers of the cluster; keep it secret.\n";
        self.variables().fold(head.to_owned(), |text, (name, password)| format!("{text}{name}={password}\n"))
    }

    /// For the environment of a server.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(holder, password)| (holder.variable(), password.as_str()))
    }

    /// Whoever asks for it needs it now.
    pub fn password(&self, holder: Holder) -> &str {
        self.0.get(&holder).map_or("", String::as_str)
    }

    /// Writes a file for each program, to be named by `PYOCO_ENV_FILE`; says where they are.
    pub fn write_for_programs(&self, folder: &Folder, url: &str) -> io::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for party in Party::ALL {
            let (user, prefix) = (party.user(), party.inbox_prefix());
            let password = self.password(Holder::Party(party));
            let text = format!(
                "PYOCO_NATS_URL={url}\nPYOCO_NATS_USER={user}\nPYOCO_NATS_PASSWORD={password}\nPYOCO_NATS_INBOX_PREFIX={prefix}\n"
            );
            let path = Self::file_of(party, folder);
            folder::write(&path, &text)?;
            written.push(path);
        }
        Ok(written)
    }

    /// Removes these files.
    pub fn remove_for_programs(folder: &Folder) -> io::Result<()> {
        for party in Party::ALL {
            match std::fs::remove_file(Self::file_of(party, folder)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The file for a program.
    pub fn file_of(party: Party, folder: &Folder) -> PathBuf {
        folder.path().join(format!("{}.env", party.user()))
    }
}

/// Nothing that a configuration could understand as something else.
fn is_password(text: &str) -> bool {
    text.len() >= 16
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_made_once_and_differ() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path()).unwrap();
        assert!(Credentials::of(&folder).unwrap().is_none());
        let made = Credentials::ensure(&folder).unwrap();
        assert_eq!(Credentials::ensure(&folder).unwrap(), made);
        let mut all: Vec<&str> = made.variables().map(|(_, password)| password).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Holder::ALL.len());
        assert_eq!(format!("{made:?}"), "Credentials(…)");
    }

    #[test]
    fn a_file_that_somebody_broke_is_refused_and_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path()).unwrap();
        std::fs::write(folder.credentials(), "NATS_BOOTSTRAP_SYSTEM_PASSWORD=x\n").unwrap();
        let refused = Credentials::ensure(&folder).unwrap_err().to_string();
        assert!(refused.contains("NATS_BOOTSTRAP_SYSTEM_PASSWORD") && !refused.contains("=x"), "{refused}");
        assert_eq!(
            std::fs::read_to_string(folder.credentials()).unwrap(),
            "NATS_BOOTSTRAP_SYSTEM_PASSWORD=x\n"
        );
    }
}
