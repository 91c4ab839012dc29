//! `GET /wheels/history`.

use serde_json::{Value, json};

use super::Place;

fn names(history: &Value) -> Vec<(&str, &str)> {
    let events = history.as_array().unwrap().iter();
    events.map(|event| (event["action"].as_str().unwrap(), event["wheel_name"].as_str().unwrap())).collect()
}

const ONE: &str = "demo-1-py3-none-any.whl";
const TWO: &str = "demo-2-py3-none-any.whl";

#[tokio::test]
async fn the_newest_comes_first_and_filters_are_exact() {
    let place = Place::start().await;
    assert_eq!(place.server.get("/wheels/history").await.json, json!([]));
    place.put("demo", "1").await;
    place.put("demo", "2").await;
    place.delete(ONE).await;
    let all = [("delete", ONE), ("upload", TWO), ("upload", ONE)];
    for (query, wanted) in [
        ("", &all[..]),
        ("?limit=2", &all[..2]),
        ("?limit=500&action=&wheel_name=", &all[..]),
        ("?action=delete", &all[..1]),
        ("?action=UpLoad", &all[1..]),
        (&format!("?wheel_name={ONE}"), &[all[0], all[2]]),
        (&format!("?wheel_name={ONE}&action=upload"), &all[2..]),
        (&format!("?wheel_name={ONE}&limit=1"), &all[..1]),
        // A wheel's, but none that ever was; and a file's, but no wheel's.
        ("?wheel_name=none-1-py3-none-any.whl", &[]),
        ("?wheel_name=none.whl", &[]),
    ] {
        let history = place.server.get(&format!("/wheels/history{query}")).await.json;
        assert_eq!(names(&history), wanted, "{query}");
    }
}

#[tokio::test]
async fn a_query_that_cannot_be_read_is_told_why() {
    let place = Place::start().await;
    for (limit, kind) in
        [("0", "greater_than_equal"), ("501", "less_than_equal"), ("x", "int_parsing"), ("", "int_parsing")]
    {
        let answer = place.server.get(&format!("/wheels/history?limit={limit}")).await;
        assert_eq!(
            (&answer.problem()["type"], &answer.problem()["loc"]),
            (&json!(kind), &json!(["query", "limit"]))
        );
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0002");
    }
    for name in ["x", "a/b.whl", "a%20b.whl", "%FF.whl", ".whl"] {
        let answer = place.server.get(&format!("/wheels/history?wheel_name={name}")).await;
        assert_eq!(
            (answer.detail(422), &answer.json["err_id"]),
            (&json!("invalid wheel name"), &json!("ERR-PYOCO-0002"))
        );
    }
    let answer = place.server.get("/wheels/history?action=rename").await;
    assert_eq!(answer.detail(422), "invalid action");
}

#[tokio::test]
async fn what_is_older_than_the_store_keeps_is_forgotten() {
    let place = Place::start().await;
    place.put("demo", "1").await;
    place.server.hands.forward(7_776_001);
    place.put("demo", "2").await;
    assert_eq!(names(&place.server.get("/wheels/history").await.json), [("upload", TWO)]);
    assert_eq!(place.names().await, [ONE, TWO], "the wheels themselves stay");
}
