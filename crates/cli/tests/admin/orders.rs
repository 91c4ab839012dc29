//! What the tool does and says, with a server beside it and without.

use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::desk::{Key, locked, ordered, refused, texts, tool};
use crate::support::Site;

fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Everything that can be ordered, in turn.
fn every_order(site: &Site) {
    let first = ordered(site, &["api-key", "create", "--tenant", "team-a"]);
    // As the original, then ours.
    assert_eq!(
        members(&first),
        ["key_id", "tenant_id", "api_key", "created_at", "role", "expires_at", "name"],
        "{first}"
    );
    assert_eq!(
        (&first["tenant_id"], &first["role"], &first["expires_at"], &first["name"]),
        (&json!("team-a"), &json!("submit"), &Value::Null, &Value::Null)
    );
    assert!(first["created_at"].is_f64());
    let first = Key::of(&first);
    assert!(first.text.starts_with(&format!("pyoco_{}.", first.id)));

    let more = ["--role", "read", "--expires", "30d", "--name", "Ada's laptop ✓"];
    let arguments: Vec<&str> = ["api-key", "create", "--tenant", "team_b"].into_iter().chain(more).collect();
    let second = ordered(site, &arguments);
    assert_eq!((&second["role"], &second["name"]), (&json!("read"), &json!("Ada's laptop ✓")));
    let days = second["expires_at"].as_f64().unwrap() - second["created_at"].as_f64().unwrap();
    assert!((days - 30.0 * 86_400.0).abs() < 60.0, "{second}");
    let second = Key::of(&second);

    let listed = ordered(site, &["api-key", "list"]);
    assert_eq!(
        members(&listed[0]),
        ["key_id", "tenant_id", "created_at", "revoked_at", "role", "expires_at", "name"],
        "{listed}"
    );
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&listed), [second.id.clone(), first.id.clone()], "newest first");

    let revoked = ordered(site, &["api-key", "revoke", "--key-id", &first.id]);
    assert_eq!(members(&revoked), ["key_id", "revoked_at"]);
    assert!(revoked["revoked_at"].is_f64());
    let again = ordered(site, &["api-key", "revoke", "--key-id", &first.id]);
    assert_eq!(again, revoked, "the first time counts");

    let rotated = ordered(site, &["api-key", "rotate", "--key-id", &second.id]);
    assert_eq!((&rotated["replaces"], &rotated["tenant_id"]), (&json!(second.id), &json!("team_b")));
    assert_eq!((&rotated["role"], &rotated["name"]), (&json!("read"), &json!("Ada's laptop ✓")));
    let third = Key::of(&rotated);

    let listed = ordered(site, &["api-key", "list", "--json"]);
    assert_eq!(ids(&listed), [third.id, second.id, first.id]);
    let is_revoked: Vec<bool> =
        listed.as_array().unwrap().iter().map(|key| !key["revoked_at"].is_null()).collect();
    assert_eq!(is_revoked, [false, true, true]);
    let text = listed.to_string();
    for secret in [first.text, second.text, third.text] {
        assert!(!text.contains(secret.split_once('.').unwrap().1), "a list has no secrets");
    }
    for verb in ["revoke", "rotate"] {
        for unknown in ["0123456789abcdef01234567", "not a key"] {
            let (answer, said) = refused(site, &["api-key", verb, "--key-id", unknown], 2);
            assert_eq!(answer, format!("{{\"error\": \"not_found\", \"key_id\": \"{unknown}\"}}\n"));
            assert_eq!(said, "");
        }
    }
}

#[test]
fn every_order_is_carried_out_on_the_file_when_there_is_no_server() {
    every_order(&locked());
}

#[test]
fn every_order_is_carried_out_by_the_server_while_it_runs() {
    let site = locked();
    let running = site.start();
    every_order(&site);
    let listed = ordered(&site, &["api-key", "list"]);
    assert!(running.stop(Signal::SIGTERM).success());
    assert_eq!(ordered(&site, &["api-key", "list"]), listed, "the file says the same");
}

#[test]
fn a_server_without_keys_takes_orders_too() {
    // Keys are made first, then they are asked for.
    let site = Site::new().argument("--no-worker");
    let _running = site.start();
    let key = Key::create(&site, &[]);
    assert_eq!(ordered(&site, &["api-key", "list"])[0]["key_id"], json!(key.id));
}

#[test]
fn tools_at_the_same_time_never_write_at_the_same_time() {
    let site = locked();
    Key::create(&site, &[]);
    let create = ["api-key", "create", "--tenant", "team-a"];
    let at_once = |site: &Site| -> Vec<Option<Key>> {
        let tools: Vec<_> = (0..6).map(|_| tool(site, &create).spawn().unwrap()).collect();
        let ends = tools.into_iter().map(|tool| tool.wait_with_output().unwrap());
        ends.map(|output| {
            let (answer, said) = texts(&output);
            if output.status.success() {
                return Some(Key::of(&serde_json::from_str(&answer).unwrap()));
            }
            assert_eq!(output.status.code(), Some(1));
            assert!(said.contains("in use by a process that takes no orders"), "{said}");
            None
        })
        .collect()
    };
    let alone = at_once(&site);
    let _running = site.start();
    let beside = at_once(&site);
    assert!(beside.iter().all(Option::is_some), "a server takes all of them");
    let mut wanted: Vec<String> = alone.into_iter().chain(beside).flatten().map(|key| key.id).collect();
    let listed = ordered(&site, &["api-key", "list"]);
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap()).collect();
    wanted.retain(|id| !listed.contains(&id.as_str()));
    assert_eq!(wanted, Vec::<String>::new(), "whoever was given a key has one");
}

#[test]
fn who_has_the_store_and_takes_no_orders_is_said() {
    let site = locked();
    let _running = site.start();
    std::fs::remove_file(site.path("data").join("admin.sock")).unwrap();
    let (answer, said) = refused(&site, &["api-key", "create", "--tenant", "team-a"], 1);
    assert_eq!(answer, "");
    assert!(said.contains("is in use by a process that takes no orders"), "{said}");
}

#[test]
fn arguments_that_make_no_sense_end_with_2_and_say_why() {
    let site = locked();
    for (arguments, reason) in [
        (&[][..], "required"),
        (&["api-key"], "required"),
        (&["api-key", "create"], "--tenant"),
        (&["api-key", "make"], "make"),
        (&["api-key", "create", "--tenant", "a", "--role", "root"], "a role is read, submit or admin"),
        (&["api-key", "create", "--tenant", "a", "--expires", "soon"], "2027-01-31T00:00:00Z"),
        (&["api-key", "create", "--tenant", "a", "--expires", "2020-01-01T00:00:00Z"], "over already"),
        (&["--nats-url", "nats://127.0.0.1:1", "api-key", "list"], "--data-dir"),
    ] {
        let (answer, said) = refused(&site, arguments, 2);
        assert_eq!(answer, "");
        assert!(said.starts_with("ERR-PYOCO-0018: ") && said.contains(reason), "{arguments:?}: {said}");
    }
    // As the original.
    for tenant in ["", "a.b", "a/b", &"a".repeat(65)] {
        let (answer, said) = refused(&site, &["api-key", "create", "--tenant", tenant], 1);
        assert_eq!(answer, "");
        assert!(said.contains("--tenant"), "{said}");
    }
    assert!(!site.path("data").exists(), "nothing was made");
}

#[test]
fn a_name_is_short_and_has_no_control_characters() {
    let site = locked();
    for name in ["", "two\nlines", "\u{1b}[2J", &"x".repeat(1_000)] {
        let (answer, said) = refused(&site, &["api-key", "create", "--tenant", "a", "--name", name], 1);
        assert_eq!(answer, "");
        assert!(said.contains("name"), "{said}");
    }
    assert_eq!(ordered(&site, &["api-key", "list"]), json!([]));
}

#[test]
fn a_folder_without_a_store_is_said_and_left_alone() {
    let site = locked();
    for arguments in [&["api-key", "list"][..], &["api-key", "revoke", "--key-id", "0123456789abcdef"]] {
        let (answer, said) = refused(&site, arguments, 1);
        assert_eq!(answer, "");
        assert!(said.contains("there is no store in") && said.contains("--data-dir"), "{said}");
        assert!(!site.path("data").exists());
    }
}

#[test]
fn a_file_of_another_program_is_said_and_left_alone() {
    let site = locked();
    std::fs::create_dir(site.path("data")).unwrap();
    let file = site.path("data").join("pyoco.db");
    std::fs::write(&file, "this is a letter").unwrap();
    let (_, said) = refused(&site, &["api-key", "create", "--tenant", "a"], 1);
    assert!(said.contains("pyoco.db") && said.contains("nothing was changed"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "this is a letter");
}

#[test]
fn nats_that_is_not_there_is_named() {
    let site = locked();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"))
        .args(["--nats-url", "nats://ada:s3cret@127.0.0.1:1", "api-key", "list"])
        .envs(&site.env)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (answer, said) = texts(&output);
    assert_eq!((output.status.code(), answer.as_str()), (Some(1), ""));
    assert!(said.contains("cannot connect to NATS") && said.contains("127.0.0.1:1"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn help_shows_an_example() {
    for arguments in [
        &["--help"][..],
        &["api-key", "create", "--help"],
        &["api-key", "list", "--help"],
        &["api-key", "revoke", "--help"],
        &["api-key", "rotate", "--help"],
    ] {
        let output = tool(&locked(), arguments).output().unwrap();
        let (shown, _) = texts(&output);
        assert!(output.status.success() && shown.contains("Example"), "{shown}");
    }
}
