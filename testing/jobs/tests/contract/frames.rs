//! Bytes that are no frames of a WebSocket client, each with the code that it is closed with.

use pyoco_testing_executions::{Site, on_every_store};
use pyoco_testing_jobs::{Raw, submitted};

on_every_store!(bad_frames_are_answered_with_their_code);

/// A masked frame: its first byte, and so much that it announces.
fn frame(first: u8, announced: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match (u8::try_from(announced), u16::try_from(announced)) {
        (Ok(length @ 0..126), _) => bytes.push(0x80 | length),
        (_, Ok(length)) => {
            bytes.push(0x80 | 126);
            bytes.extend(length.to_be_bytes());
        }
        (_, Err(_)) => {
            bytes.push(0x80 | 127);
            bytes.extend(announced.to_be_bytes());
        }
    }
    // A mask of zeros leaves the payload as it is.
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

fn text(payload: &[u8]) -> Vec<u8> {
    frame(0x81, payload.len() as u64, payload)
}

async fn bad_frames_are_answered_with_their_code(site: Site) {
    let job = submitted(&site).await;
    let long = vec![b'x'; 66_000];
    let part = vec![b'x'; 40_000];
    // Two parts that are short enough, of a message that is not.
    let parts = [frame(0x01, 40_000, &part), frame(0x80, 40_000, &part)].concat();
    for (what, bytes, code) in [
        ("too long a frame", text(&long), 1009),
        ("the announcement of a frame without end", frame(0x81, u64::MAX >> 1, b"x"), 1009),
        ("too long a message", parts, 1009),
        ("a text that is not UTF-8", text(b"\xff\xfe"), 1007),
        ("half a character", text("é".as_bytes().split_at(1).0), 1007),
        ("an unmasked frame", b"\x81\x02hi".to_vec(), 1002),
        ("a compressed frame", frame(0xc1, 2, b"hi"), 1002),
        ("an unknown kind of frame", frame(0x83, 0, b""), 1002),
        ("a control frame in parts", frame(0x09, 0, b""), 1002),
        ("a control frame that is too long", frame(0x89, 126, &[b'x'; 126]), 1002),
        ("the second part of nothing", frame(0x80, 1, b"x"), 1002),
    ] {
        let mut raw = Raw::open(&site, &job).await;
        raw.send(&bytes).await;
        assert_eq!(raw.closed().await, Some(code), "{what}");
    }
    // A client that closes is answered.
    let mut raw = Raw::open(&site, &job).await;
    raw.send(&frame(0x88, 2, &1000_u16.to_be_bytes())).await;
    assert_eq!(raw.closed().await, Some(1000));
    assert_eq!(site.shown(&format!("/jobs/{job}")).await["status"], "pending");
}
