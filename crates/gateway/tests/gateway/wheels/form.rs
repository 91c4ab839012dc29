//! What an upload looks like: parts, names, tags, and the limits of each.

use pyoco_gateway::{ServerLimits, WheelSettings};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use super::{Place, demo, file};
use crate::support::{Answer, status_of};

fn problem(kind: &str, name: &str, msg: &str, input: &Value) -> Value {
    json!({"type": kind, "loc": ["body", name], "msg": msg, "input": input})
}

#[tokio::test]
async fn a_form_without_its_wheel_is_told_what_is_missing() {
    let place = Place::start().await;
    let missing = problem("missing", "wheel", "Field required", &Value::Null);
    assert_eq!(place.post(Form::new().text("tags", "a")).await.problem(), &missing);
    // Another kind of body is never read as if it were a form.
    let json = place.server.post("/wheels", &json!({"wheel": "x"})).await;
    assert_eq!((json.problem(), &json.json["err_id"]), (&missing, &json!("ERR-PYOCO-0002")));
    let bare = place.server.client.post(place.server.url("/wheels")).send().await.unwrap();
    assert_eq!(Answer::of(bare).await.problem(), &missing);

    let text = place.post(Form::new().text("wheel", "PK")).await;
    assert_eq!(text.problem()["type"], "value_error");
    assert_eq!(text.problem()["msg"], "Value error, Expected UploadFile, received: <class 'str'>");
    place.assert_untouched().await;
}

#[tokio::test]
async fn other_parts_have_to_be_what_they_are_taken_for() {
    let place = Place::start().await;
    let (name, bytes) = demo("demo", "1");
    let form = || Form::new().part("wheel", file(&name, bytes.clone()));
    let odd = place.post(form().text("replace", "maybe")).await;
    let rule = "Input should be a valid boolean, unable to interpret input";
    assert_eq!(odd.problem(), &problem("bool_parsing", "replace", rule, &json!("maybe")));
    // Left out, the wheel would go to every worker.
    let tags = place.post(form().part("tags", Part::text("gpu").file_name("tags"))).await;
    assert_eq!(
        tags.problem(),
        &problem("string_type", "tags", "Input should be a valid string", &Value::Null)
    );
    for tags in ["a.b", "a b", "é", "a/b", "*", &"x".repeat(65)] {
        assert_eq!(
            place.post(form().text("tags", tags.to_owned())).await.detail(422),
            "invalid wheel tags",
            "{tags}"
        );
    }
    let many: Vec<String> = (0..33).map(|number| format!("t{number}")).collect();
    assert_eq!(place.post(form().text("tags", many.join(","))).await.detail(422), "invalid wheel tags");
    place.assert_untouched().await;
    // What is left empty was not filled in; what nobody knows is read over.
    let answer =
        place.post(form().text("replace", "").text("tags", "").text("more", "x".repeat(60 << 10))).await;
    assert_eq!((answer.status, &answer.json["tags"]), (200, &json!([])), "{}", answer.json);
}

#[tokio::test]
async fn a_name_that_is_no_wheels_is_refused_before_the_file_is_read() {
    let place = Place::start().await;
    let (_, bytes) = demo("demo", "1");
    for name in [
        "",
        "demo",
        "demo.zip",
        ".whl",
        "../demo-1-py3-none-any.whl",
        "/tmp/demo-1-py3-none-any.whl",
        "a/demo-1-py3-none-any.whl",
        "C:\\demo-1-py3-none-any.whl",
        "demo-1-py3-none-any.whl\u{202e}",
        "demo-1-py3-none-any.whl ",
        "dé-1-py3-none-any.whl",
        &format!("{}-1-py3-none-any.whl", "d".repeat(300)),
    ] {
        assert_eq!(place.send(name, bytes.clone()).await.detail(422), "invalid wheel name", "{name}");
    }
    for name in [
        "demo.whl",
        "demo-1.whl",
        "demo-1-py3-none.whl",
        "demo-one-py3-none-any.whl",
        "demo-1-x-py3-none-any.whl",
        "..-1-py3-none-any.whl",
        "-1-py3-none-any.whl",
    ] {
        assert_eq!(place.send(name, bytes.clone()).await.detail(422), "invalid wheel filename", "{name}");
    }
    place.assert_untouched().await;
}

#[tokio::test]
async fn checks_come_in_the_contracts_order() {
    let place = Place::up_to(10_000).await;
    place.put("demo", "2").await;
    let large = vec![0; 20_000];
    let send = |name: &'static str, tags: &'static str, bytes: Vec<u8>| {
        place.post(Form::new().text("tags", tags).part("wheel", file(name, bytes)))
    };
    assert_eq!(send("a b.whl", "a.b", large.clone()).await.detail(422), "invalid wheel name");
    assert_eq!(send("demo-x.whl", "a.b", large.clone()).await.detail(422), "invalid wheel filename");
    assert_eq!(send("demo-1-py3-none-any.whl", "a.b", large.clone()).await.detail(422), "invalid wheel tags");
    let too_large = send("demo-1-py3-none-any.whl", "a", large).await;
    assert_eq!(
        (too_large.detail(413), &too_large.json["err_id"]),
        (&json!("wheel too large"), &json!("ERR-PYOCO-0002"))
    );
    let older = send("demo-1-py3-none-any.whl", "a", b"no zip".to_vec()).await;
    assert_eq!(older.status, 409, "{}", older.json);
    let unsound = send("demo-3-py3-none-any.whl", "a", b"no zip".to_vec()).await;
    assert_eq!(unsound.status, 422, "{}", unsound.json);
    assert_eq!(place.names().await, ["demo-2-py3-none-any.whl"]);
}

#[tokio::test]
async fn the_limit_of_a_wheel_is_exact_and_none_is_none() {
    let (name, bytes) = demo("demo", "1");
    let size = bytes.len() as u64;
    assert_eq!(Place::up_to(size - 1).await.send(&name, bytes.clone()).await.detail(413), "wheel too large");
    assert_eq!(Place::up_to(size).await.send(&name, bytes.clone()).await.status, 200);
    assert_eq!(Place::up_to(0).await.send(&name, bytes).await.status, 200);
}

/// A request as it stands on the wire.
fn raw(content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /wheels HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn a_form_that_is_malformed_or_boundless_is_refused() {
    let place = Place::start().await;
    let (name, bytes) = demo("demo", "1");
    let wheel = || file(&name, bytes.clone());
    let many = (0..17).fold(Form::new(), |form, number| form.text(format!("f{number}"), "x"));
    for (form, detail) in [
        (Form::new().part("wheel", wheel()).part("wheel", wheel()), "a part is given twice"),
        (Form::new().text("tags", "a").text("tags", "b").part("wheel", wheel()), "a part is given twice"),
        (
            Form::new().text("replace", "1").text("replace", "0").part("wheel", wheel()),
            "a part is given twice",
        ),
        (many, "too many parts"),
        (Form::new().text("tags", "x".repeat(65 << 10)), "a field of the form is too long"),
        (Form::new().text("more", "x".repeat(65 << 10)), "a field of the form is too long"),
        (
            Form::new().part("tags", Part::bytes(vec![0; 65 << 10]).file_name("t")),
            "a field of the form is too long",
        ),
        (Form::new().part("tags", Part::bytes(vec![0xff])), "a field of the form is not UTF-8"),
        (
            Form::new().part("wheel", file(&"n".repeat(9 << 10), Vec::new())),
            "the header of a part is too long",
        ),
    ] {
        let answer = place.post(form).await;
        assert_eq!((answer.detail(400), &answer.json["err_id"]), (&json!(detail), &json!("ERR-PYOCO-0002")));
    }
    let form = "multipart/form-data; boundary=b";
    let head = "--b\r\ncontent-disposition: form-data; name=wheel; filename=demo-1-py3-none-any.whl\r\n";
    for (content_type, body, what) in [
        ("multipart/form-data", Vec::new(), "no boundary"),
        (form, Vec::new(), "nothing in it"),
        (form, format!("{head}\r\nPK").into_bytes(), "no end"),
        (form, format!("{head}{}", "x: y\r\n".repeat(100)).into_bytes(), "no data"),
        // What a reader would hold to look for the end of it.
        (form, vec![b'x'; 3 << 20], "no beginning"),
        (form, [head.as_bytes(), b"x: ", &vec![b'y'; 3 << 20]].concat(), "a header without end"),
    ] {
        let answer = place.server.raw(&raw(content_type, &body)).await;
        assert_eq!(status_of(&answer), 400, "{what}: {answer}");
    }
    let compressed = place.server.client.post(place.server.url("/wheels")).header("content-encoding", "gzip");
    assert_eq!(compressed.multipart(Form::new().part("wheel", wheel())).send().await.unwrap().status(), 415);
    place.assert_untouched().await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_a_fault_of_the_server() {
    let place = Place::with(WheelSettings::default(), ServerLimits::default()).await;
    std::fs::remove_dir(place.folder.path()).unwrap();
    let (name, bytes) = demo("demo", "1");
    let answer = place.send(&name, bytes).await;
    assert_eq!(answer.detail(500), "the wheel could not be kept");
    assert!(!answer.json.to_string().contains("tmp"), "where it is is nobody's business: {}", answer.json);
    assert_eq!(place.names().await, [""; 0]);
}
