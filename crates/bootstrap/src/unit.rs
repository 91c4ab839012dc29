//! The unit with which systemd keeps a server running. Only its text is made here.

use std::path::Path;

/// Whose service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The machine's.
    System,
    /// A user's, as long as that user is there.
    User,
}

/// Whether a text can be the name of a service.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// The text of a unit that runs a command in a folder.
pub fn text(name: &str, scope: Scope, command: &[String], folder: &Path) -> String {
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let wanted_by = match scope {
        Scope::System => "multi-user.target",
        Scope::User => "default.target",
    };
    // A user's manager cannot make these rooms.
    let rooms = match scope {
        Scope::System => "PrivateTmp=yes\nProtectSystem=full\n",
        Scope::User => "",
    };
    format!(
        "# Written by nats-bootstrap service.\n\
         [Unit]\n\
         Description=NATS server ({name})\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         WorkingDirectory={folder}\n\
         ExecStart={command}\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         # It hands over its streams before it ends.\n\
         TimeoutStopSec=90\n\
         LimitNOFILE=65536\n\
         NoNewPrivileges=yes\n\
         {rooms}\
         \n\
         [Install]\n\
         WantedBy={wanted_by}\n",
        folder = specified(&folder.to_string_lossy()),
        command = command.join(" "),
    )
}

/// A word of a command as systemd reads it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':' | b'=' | b',')
    };
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    let escaped = specified(word).replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// A percent sign stands for something unless it is doubled; a line has one line.
fn specified(text: &str) -> String {
    text.replace('%', "%%").replace(char::is_control, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_as_systemd_reads_it() {
        let command = ["/opt/a b/nats-bootstrap", "up", "--name", "50% $x \"y\""].map(str::to_owned);
        let text = text("nats", Scope::System, &command, Path::new("/var/lib/100%"));
        assert!(
            text.contains("ExecStart=\"/opt/a b/nats-bootstrap\" up --name \"50%% $$x \\\"y\\\"\"\n"),
            "{text}"
        );
        assert!(
            text.contains("WorkingDirectory=/var/lib/100%%\n") && text.contains("WantedBy=multi-user.target")
        );
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_folder_of_units() {
        assert!(is_name("nats-server") && is_name("n.1"));
        for bad in ["", "../x", "a/b", "-x", "a b", "é"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
