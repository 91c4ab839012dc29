//! Wheels between the makes, on one nats-server, with real processes and real pip: who uploads one and who installs it are of
//! different makes, and the run says what the wheel says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod interop;
mod support;

use pyoco_client::WheelFile;
use pyoco_testkit::wheel;
use serde_json::{Value, json};

use interop::{Gateway, Site, Whose, is_terminal, until};

const FLOW: &str = "version: 1\nflow: {graph: 'tell'}\ntasks: {tell: {callable: 'interop_wheel:tell'}}\n";

#[tokio::test]
async fn the_worker_of_pypi_installs_what_was_uploaded_through_our_gateway() {
    ship(Whose::Ours, Whose::PyPI).await;
}

#[tokio::test]
async fn our_worker_installs_what_was_uploaded_through_the_gateway_of_pypi() {
    ship(Whose::PyPI, Whose::Ours).await;
}

#[tokio::test]
async fn our_worker_installs_what_was_uploaded_through_our_gateway_on_nats() {
    ship(Whose::Ours, Whose::Ours).await;
}

/// Uploads a version, runs a flow that uses it, uploads the next, and sees the next run use that.
async fn ship(via: Whose, by: Whose) {
    let site = Site::new().await;
    let python = site.own_python();
    let gateway = site.gateway(via).await;
    upload(&site, &gateway, "1.0").await;
    let mut worker = site.worker_with_wheels(by, "shipped", &python).await;
    for version in ["1.0", "2.0"] {
        if version == "2.0" {
            upload(&site, &gateway, version).await;
        }
        installed(&site, version).await;
        if by == Whose::PyPI && version == "2.0" {
            // It runs tasks in its own process, which keeps what it has imported.
            worker.stop().await;
            worker = site.worker_with_wheels(by, "shipped", &python).await;
        }
        let run = gateway.submit_yaml("tell", FLOW).await;
        let shown = until("the end of a run", async || {
            let shown = gateway.run(&run).await;
            if is_terminal(&shown) { Ok(shown) } else { Err(shown) }
        })
        .await;
        assert_eq!(shown["status"], "COMPLETED", "{shown:#}");
        assert_eq!(shown["task_records"]["tell"]["output"], format!("version {version}"), "{shown:#}");
        if via == Whose::Ours && by == Whose::Ours {
            assert_eq!(
                (&shown["wheels"][0]["name"], &shown["wheels"][0]["version"]),
                (&json!(name(version)), &json!(version))
            );
        }
    }
    drop(worker);
    // What is there, and who put it there, both makes tell alike.
    let other = site.gateway(if via == Whose::Ours { Whose::PyPI } else { Whose::Ours }).await;
    for gateway in [&gateway, &other] {
        assert_eq!(names(gateway).await, [name("1.0"), name("2.0")], "{:?}", gateway.whose);
    }
}

fn name(version: &str) -> String {
    format!("interop_wheel-{version}-py3-none-any.whl")
}

async fn upload(site: &Site, gateway: &Gateway, version: &str) {
    let module = format!("def tell():\n    return 'version {version}'\n");
    let (file, bytes) = wheel("interop-wheel", version, &[("interop_wheel.py", &module)]);
    let path = site.path(&file);
    std::fs::write(&path, bytes).unwrap();
    let upload = WheelFile { path, tags: vec!["default".to_owned()], replace: true };
    let answer = gateway.client.upload_wheel(&upload, |_| {}).await.unwrap();
    assert_eq!(answer.json()["tags"], json!(["default"]));
}

/// Waits until the worker says that it has installed a version.
async fn installed(site: &Site, version: &str) {
    until("the installation of a wheel", async || {
        let record = site.wire.worker("shipped").await.unwrap_or_default();
        let sync = record["wheel_sync"].clone();
        let has = |wheel: &Value| wheel["wheel_name"] == name(version);
        let is_there = sync["installed_wheels"].as_array().is_some_and(|wheels| wheels.iter().any(has));
        if is_there && sync["last_result"] == "ok" { Ok(()) } else { Err(sync) }
    })
    .await;
}

async fn names(gateway: &Gateway) -> Vec<String> {
    let list = until("a list of wheels", async || match gateway.client.list_wheels().await {
        Err(error) if gateway.whose == Whose::PyPI && error.status() == Some(503) => Err(error),
        answer => Ok(answer.unwrap().into_json()),
    });
    let list = list.await;
    list.as_array().unwrap().iter().map(|wheel| wheel["name"].as_str().unwrap().to_owned()).collect()
}
