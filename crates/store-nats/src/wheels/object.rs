//! How a wheel is described: an object as the client of the original writes it. Other clients write other headers and times; whatever can
//! be understood of those is.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE};
use pyoco_core::time::Timestamp;
use pyoco_ports::{NewWheel, WheelRecord};
use pyoco_wheels::{Sha256Digest, WheelName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::message::Stored;
use crate::{Settings, names};

/// The workers it is for, with commas between.
const TAGS: &str = "x-pyoco-wheel-tags";
/// What stands before a digest.
const SHA_256: &str = "SHA-256=";
/// Some write the padding of a digest, some do not.
const DIGEST: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What stands at the name of an object, as far as it is understood here.
#[derive(Debug, Deserialize)]
struct Described {
    name: String,
    nuid: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    mtime: Option<String>,
    #[serde(default)]
    deleted: Option<bool>,
    #[serde(default)]
    headers: Option<Map<String, Value>>,
    #[serde(default)]
    options: Option<Value>,
}

/// The wheel that a message describes; `None` if it was deleted, or is no wheel.
pub(super) fn record(settings: &Settings, stored: &Stored) -> Option<WheelRecord> {
    let described: Described = serde_json::from_slice(&stored.payload).ok()?;
    let name = WheelName::parse(&described.name).ok()?;
    // A link has its bytes in another place, and a name in the wrong place is one that nobody finds.
    let is_link =
        described.options.is_some_and(|options| options.get("link").is_some_and(|link| !link.is_null()));
    let is_here = !is_link && settings.wheel(name.as_str()) == stored.subject;
    // What is no token could name the pieces of others.
    if described.deleted == Some(true) || !is_here || !names::is_token(&described.nuid) {
        return None;
    }
    let digest: [u8; 32] = DIGEST.decode(described.digest?.strip_prefix(SHA_256)?).ok()?.try_into().ok()?;
    Some(WheelRecord {
        name,
        nuid: described.nuid,
        size_bytes: described.size?,
        sha256: Sha256Digest::of_bytes(digest),
        modified: described.mtime.and_then(|text| time(&text)).unwrap_or(stored.time),
        tags: described.headers.as_ref().map(tags).unwrap_or_default(),
    })
}

/// Where the pieces are of an object that is there, wheel or not.
pub(super) fn nuid(stored: &Stored) -> Option<String> {
    // Only what is needed: whoever described the rest in a way of their own keeps their pieces as well.
    #[derive(Deserialize)]
    struct Named {
        nuid: String,
        #[serde(default)]
        deleted: Option<bool>,
    }
    let described: Named = serde_json::from_slice(&stored.payload).ok()?;
    (described.deleted != Some(true)).then_some(described.nuid)
}

/// A time that somebody wrote. Those who leave it to the message write the year 1, or nothing.
fn time(text: &str) -> Option<Timestamp> {
    let time = Timestamp::deserialize(Value::from(text)).ok()?;
    (time > Timestamp::from_micros(0)).then_some(time)
}

/// The tags in the headers. What could not be uploaded stays all the same: without its tags it would be for everybody.
fn tags(headers: &Map<String, Value>) -> Vec<String> {
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(TAGS)).map(|(_, value)| value);
    let lists: Vec<&str> = match found {
        Some(Value::String(list)) => vec![list],
        // Headers of messages have several values each, and some clients write them so.
        Some(Value::Array(lists)) => lists.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    let mut tags: Vec<String> = Vec::new();
    for tag in lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

/// How many pieces an upload has, and how large the largest may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces {
    pub(super) count: u64,
    pub(super) size: usize,
}

/// A wheel as the original describes it. Its client reads no other form of headers, and without tags there is no member for them.
pub(super) fn describe(bucket: &str, wheel: &NewWheel, nuid: &str, pieces: Pieces) -> Vec<u8> {
    #[derive(Serialize)]
    struct Description<'a> {
        name: &'a str,
        bucket: &'a str,
        nuid: &'a str,
        size: u64,
        mtime: String,
        chunks: u64,
        digest: String,
        deleted: bool,
        headers: Value,
        options: Value,
    }
    let mut headers = json!({"content-type": wheel.content_type, "sha256": wheel.sha256.as_str()});
    if !wheel.tags.is_empty() {
        headers[TAGS] = Value::from(wheel.tags.join(","));
    }
    let description = Description {
        name: wheel.name.as_str(),
        bucket,
        nuid,
        size: wheel.size_bytes,
        mtime: wheel.at.to_string().replace('Z', "+00:00"),
        chunks: pieces.count,
        digest: format!("{SHA_256}{}", URL_SAFE.encode(bytes_of(&wheel.sha256))),
        deleted: false,
        headers,
        options: json!({"max_chunk_size": pieces.size}),
    };
    json!(description).to_string().into_bytes()
}

/// The description of an object that is there, as that of one that is not. Whatever else it says stays.
pub(super) fn describe_deleted(stored: &Stored) -> Option<Vec<u8>> {
    let mut members: Map<String, Value> = serde_json::from_slice(&stored.payload).ok()?;
    let gone = [
        ("deleted", json!(true)),
        ("size", json!(0)),
        ("chunks", json!(0)),
        ("digest", json!("")),
        ("mtime", json!("")),
    ];
    members.extend(gone.map(|(name, value)| (name.to_owned(), value)));
    serde_json::to_vec(&members).ok()
}

/// The bytes that a digest's digits stand for.
fn bytes_of(digest: &Sha256Digest) -> Vec<u8> {
    let digit =
        |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    let digits: Vec<u8> = digest.as_str().as_bytes().iter().map(digit).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::Headers;

    const NAME: &str = "tool-1.0-py3-none-any.whl";

    fn stored(settings: &Settings, description: &Value) -> Stored {
        Stored {
            sequence: 1,
            subject: settings.wheel(NAME),
            headers: Headers::new(),
            payload: Bytes::from(description.to_string()),
            time: Timestamp::from_micros(9_000_000),
        }
    }

    fn sound() -> Value {
        json!({"name": NAME, "bucket": "pyoco_wheels", "nuid": "aBc123", "size": 3, "chunks": 1, "deleted": false,
               "digest": format!("SHA-256={}", URL_SAFE.encode([7; 32])), "mtime": "2026-11-15T08:55:53.183364+00:00",
               "headers": {"content-type": "x", "x-pyoco-wheel-tags": "gpu, cpu,,gpu"},
               "options": {"max_chunk_size": 131_072}})
    }

    fn with(member: &str, value: Value) -> Value {
        let mut description = sound();
        description[member] = value;
        description
    }

    #[test]
    fn what_any_client_writes_of_a_wheel_is_understood() {
        let settings = Settings::new(&[]);
        let read = |description: Value| record(&settings, &stored(&settings, &description)).unwrap();
        let wheel = read(sound());
        assert_eq!((wheel.name.as_str(), wheel.nuid.as_str(), wheel.size_bytes), (NAME, "aBc123", 3));
        assert_eq!(
            (wheel.sha256, wheel.tags),
            (Sha256Digest::of_bytes([7; 32]), vec!["gpu".to_owned(), "cpu".to_owned()])
        );
        assert_eq!(wheel.modified.to_string(), "2026-11-15T08:55:53.183364Z");
        for nobody in [json!("0001-01-01T00:00:00Z"), json!(""), Value::Null] {
            assert_eq!(read(with("mtime", nobody)).modified, Timestamp::from_micros(9_000_000));
        }
        let digest = format!("SHA-256={}", URL_SAFE.encode([7; 32]).trim_end_matches('='));
        assert_eq!(read(with("digest", json!(digest))).sha256, Sha256Digest::of_bytes([7; 32]));
        for (headers, tags) in [
            (json!({"X-Pyoco-Wheel-Tags": "a"}), vec!["a"]),
            (json!({"X-Pyoco-Wheel-Tags": ["a,b", "c"]}), vec!["a", "b", "c"]),
            (json!({"x-pyoco-wheel-tags": "no tag!"}), vec!["no tag!"]),
            (json!({}), vec![]),
            (Value::Null, vec![]),
        ] {
            assert_eq!(read(with("headers", headers)).tags, tags);
        }
    }

    #[test]
    fn what_is_no_wheel_is_not_shown_as_one() {
        let settings = Settings::new(&[]);
        for (member, value) in [
            ("deleted", json!(true)),
            ("name", json!("notes.txt")),
            ("name", json!("other-1.0-py3-none-any.whl")),
            ("nuid", json!(">")),
            ("nuid", json!("a.b")),
            ("nuid", json!("")),
            ("digest", json!("MD5=abc")),
            ("digest", json!("SHA-256=abcd")),
            ("size", json!(-1)),
            ("size", Value::Null),
            ("options", json!({"link": {"bucket": "other"}})),
        ] {
            let odd = stored(&settings, &with(member, value.clone()));
            assert_eq!(record(&settings, &odd), None, "{member} {value}");
        }
        let mut broken = stored(&settings, &sound());
        broken.payload = Bytes::from_static(b"{");
        assert_eq!(record(&settings, &broken), None);
    }

    #[test]
    fn what_is_written_is_what_the_original_writes() {
        let wheel = NewWheel {
            name: WheelName::parse(NAME).unwrap(),
            size_bytes: 3,
            sha256: Sha256Digest::of_bytes([7; 32]),
            at: Timestamp::from_micros(1_700_000_000_123_456),
            tags: vec!["a".to_owned(), "b".to_owned()],
            content_type: "application/zip".to_owned(),
        };
        let pieces = Pieces { count: 1, size: 131_072 };
        let described: Value =
            serde_json::from_slice(&describe("pyoco_wheels", &wheel, "n", pieces)).unwrap();
        let mut wanted = json!({
            "name": NAME, "bucket": "pyoco_wheels", "nuid": "n", "size": 3, "chunks": 1, "deleted": false,
            "mtime": "2023-11-14T22:13:20.123456+00:00", "digest": format!("SHA-256={}", URL_SAFE.encode([7; 32])),
            "headers": {"content-type": "application/zip", "sha256": "07".repeat(32), "x-pyoco-wheel-tags": "a,b"},
            "options": {"max_chunk_size": 131_072}});
        assert_eq!(described, wanted);
        let settings = Settings::new(&[]);
        let gone = describe_deleted(&stored(&settings, &described)).unwrap();
        for (member, value) in [
            ("deleted", json!(true)),
            ("size", json!(0)),
            ("chunks", json!(0)),
            ("digest", json!("")),
            ("mtime", json!("")),
        ] {
            wanted[member] = value;
        }
        assert_eq!(serde_json::from_slice::<Value>(&gone).unwrap(), wanted);
        let untagged = NewWheel { tags: Vec::new(), ..wheel };
        let described: Value = serde_json::from_slice(&describe("b", &untagged, "n", pieces)).unwrap();
        assert!(described["headers"].get(TAGS).is_none(), "{described}");
    }
}
