//! `bootstrap.yaml`: a file that says how a server of a cluster is to be, in the words of the original.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The name of the cluster.
    pub cluster: String,
    /// Where the server keeps its things, seen from the file.
    pub datafolder: Option<PathBuf>,
    /// Where clients come.
    pub client_port: Option<u16>,
    /// Where it tells about itself.
    pub http_port: Option<u16>,
    /// Where other servers come.
    pub cluster_port: Option<u16>,
    /// The address to listen on, `HOST` or `HOST:PORT`.
    pub listen: Option<String>,
    /// The account that looks after servers.
    pub system_account: PlannedAccount,
    /// The account of everybody else.
    pub app_account: PlannedAccount,
    /// Where others are told that it is.
    #[serde(default)]
    pub advertise: Advertise,
}

/// An account with one user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedAccount {
    /// What it is called.
    pub name: String,
    /// Its user.
    pub user: String,
    /// The variable of that user's password.
    pub password_env: String,
}

/// Where others are told that a server is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Advertise {
    /// To clients.
    pub client: Option<String>,
    /// To servers.
    pub cluster: Option<String>,
}

impl Plan {
    /// Understands the content of a file that stands in a folder.
    pub fn read(content: Value, folder: &Path) -> Result<Self, String> {
        let mut plan: Self = serde_json::from_value(content).map_err(|error| error.to_string())?;
        let accounts = [&plan.system_account, &plan.app_account];
        let names = accounts.iter().flat_map(|account| [&account.name, &account.user]);
        if let Some(bad) = names.chain([&plan.cluster]).find(|name| !is_name(name)) {
            return Err(format!(
                "{bad:?} is no name: letters, digits, '_', '-' and '.' are allowed, and '$' in front"
            ));
        }
        if let Some(bad) = accounts.iter().find(|account| !is_variable(&account.password_env)) {
            return Err(format!("password_env {:?} is no name of a variable", bad.password_env));
        }
        if plan.system_account.name == plan.app_account.name {
            return Err("system_account and app_account have the same name".to_owned());
        }
        plan.datafolder = plan.datafolder.map(|data| folder.join(data));
        Ok(plan)
    }
}

fn is_name(text: &str) -> bool {
    let rest = text.strip_prefix('$').unwrap_or(text);
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !rest.is_empty() && rest.len() <= 128 && rest.bytes().all(is_good)
}

fn is_variable(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        json!({"cluster": "c", "datafolder": "data", "client_port": 4222,
               "system_account": {"name": "SYS", "user": "sys", "password_env": "SYS_PW"},
               "app_account": {"name": "APP", "user": "app", "password_env": "APP_PW"},
               "advertise": {"client": "n1:4222"}})
    }

    #[test]
    fn a_folder_is_seen_from_the_file() {
        let plan = Plan::read(good(), Path::new("/etc/nats")).unwrap();
        assert_eq!(plan.datafolder, Some(PathBuf::from("/etc/nats/data")));
        assert_eq!((plan.client_port, plan.http_port), (Some(4222), None));
        assert_eq!(plan.advertise.client.as_deref(), Some("n1:4222"));
    }

    #[test]
    fn what_is_unknown_missing_or_no_name_is_refused() {
        let changed = |name: &str, value: Value| {
            let mut plan = good();
            plan[name] = value;
            Plan::read(plan, Path::new("")).unwrap_err()
        };
        assert!(changed("colour", json!("red")).contains("colour"));
        assert!(changed("client_port", json!(70_000)).contains("70000"));
        assert!(changed("cluster", json!("a b")).contains("no name"));
        assert!(
            changed("app_account", json!({"name": "SYS", "user": "u", "password_env": "P"}))
                .contains("same name")
        );
        assert!(
            changed("app_account", json!({"name": "A", "user": "u", "password_env": "a b"}))
                .contains("variable")
        );
        let mut missing = good();
        missing.as_object_mut().unwrap().remove("system_account");
        assert!(Plan::read(missing, Path::new("")).unwrap_err().contains("system_account"));
    }
}
