//! What is wanted of a server, from the flags of `up` and `join` and from a `bootstrap.yaml`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use pyoco_bootstrap::conf::{Listen, Tls};
use pyoco_bootstrap::folder::Folder;
use pyoco_bootstrap::plan::Plan;
use pyoco_bootstrap::seed::Seed;
use pyoco_bootstrap::setup::{self, Doors, Wish, WishedCluster};
use pyoco_flow::Limits;
use serde_json::Value;

use super::arguments::Form;
use super::{FOLDER, refused};
use crate::errors::Failure;

/// What the file says, if one is named.
pub(super) fn plan(form: &Form) -> Result<Option<Plan>, Failure> {
    let Some(path) = &form.bootstrap_config else { return Ok(None) };
    let invalid = |why: String| refused(format!("bootstrap config is invalid: {why}"));
    let text = std::fs::read(path).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
    let content =
        pyoco_flow::read_parameters(&text, Limits::default()).map_err(|error| invalid(error.to_string()))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    Plan::read(Value::Object(content), folder).map(Some).map_err(invalid)
}

/// What the server is called.
pub(super) fn server_name(form: &Form, plan: Option<&Plan>) -> String {
    let port = form.client_port.or_else(|| plan.and_then(|plan| plan.client_port));
    form.server_name.clone().unwrap_or_else(|| setup::usual_name(port.unwrap_or(4222)))
}

/// Everything together. Whoever lets others in without a password has to say so.
pub(super) fn wish(
    form: &Form,
    plan: Option<Plan>,
    cluster: Option<(String, Vec<Seed>)>,
) -> Result<Wish, Failure> {
    let said = form.listen.clone().or_else(|| plan.as_ref().and_then(|plan| plan.listen.clone()));
    let (host, port) = match said.as_deref() {
        Some(listen) => address(listen)?,
        None => ("127.0.0.1".to_owned(), None),
    };
    let planned = |port: fn(&Plan) -> Option<u16>| plan.as_ref().and_then(port);
    let client_port = form.client_port.or(port).or_else(|| planned(|plan| plan.client_port)).unwrap_or(4222);
    let http_port = form.http_port.or_else(|| planned(|plan| plan.http_port)).unwrap_or(8222);
    let cluster_port = form.cluster_port.or_else(|| planned(|plan| plan.cluster_port)).unwrap_or(6222);
    let name = server_name(form, plan.as_ref());
    let folder = form.datafolder.clone().or_else(|| plan.as_ref().and_then(|plan| plan.datafolder.clone()));
    let folder = folder.unwrap_or_else(|| PathBuf::from(FOLDER));
    let folder = Folder::new(&folder).map_err(|error| Failure::file(&folder.to_string_lossy(), &error))?;
    let advertise = plan.as_ref().map(|plan| plan.advertise.clone()).unwrap_or_default();
    let doors = match plan {
        Some(plan) => planned_doors(plan)?,
        None if form.with_users => Doors::Users,
        None => Doors::Open,
    };
    // A plan names accounts for programs, and none for the other servers of a cluster, which are trusted with everything.
    let asks_nobody = match &doors {
        Doors::Open => true,
        Doors::Planned { .. } => cluster.is_some(),
        Doors::Users => false,
    };
    if asks_nobody && !form.allow_unauthenticated && !is_loopback(&host) {
        let why = match doors {
            Doors::Open => {
                format!("others can reach {host}, and whoever does may read, change and run everything")
            }
            Doors::Planned { .. } | Doors::Users => {
                format!(
                    "others can reach {host}:{cluster_port}, where servers join the cluster without a password"
                )
            }
        };
        return Err(Failure::new(why).hint(
            "--with-users asks for passwords; --allow-unauthenticated if something else keeps others out",
        ));
    }
    let tls = form.tls_cert.clone().zip(form.tls_key.clone()).map(|(certificate, key)| {
        let rooted = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Tls { certificate: rooted(certificate), key: rooted(key), ca: form.tls_ca.clone().map(rooted) }
    });
    let listen = |host: &str, port: u16| Listen { host: host.to_owned(), port };
    Ok(Wish {
        folder,
        server_name: name,
        client: listen(&host, client_port),
        http: listen("127.0.0.1", http_port),
        client_advertise: advertise.client,
        tls,
        max_file: form.max_file_mib.map(|mib| mib << 20),
        doors,
        cluster: cluster.map(|(name, seeds)| WishedCluster {
            name,
            listen: listen(&host, cluster_port),
            advertise: advertise.cluster,
            seeds,
        }),
    })
}

fn planned_doors(plan: Plan) -> Result<Doors, Failure> {
    for account in [&plan.system_account, &plan.app_account] {
        let name = &account.password_env;
        if std::env::var_os(name).is_none_or(|password| password.is_empty()) {
            return Err(refused(format!("bootstrap config is invalid: the variable {name} is not set")));
        }
    }
    Ok(Doors::Planned { system: plan.system_account, app: plan.app_account })
}

/// `HOST` or `HOST:PORT`.
fn address(text: &str) -> Result<(String, Option<u16>), Failure> {
    if text.parse::<IpAddr>().is_ok() {
        return Ok((text.to_owned(), None));
    }
    if !text.contains(':') && !text.is_empty() {
        return Ok((text.to_owned(), None));
    }
    let seed: Seed =
        text.parse().map_err(|_| refused(format!("argument --listen: {text:?} is no HOST[:PORT]")))?;
    Ok((seed.host, Some(seed.port)))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}
