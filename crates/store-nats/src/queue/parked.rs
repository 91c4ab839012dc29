//! Messages that were delivered as often as they may be. The server keeps them where nobody gets them and says so once; we
//! remove them, so that they do not come back when the consumer is made anew. The sweeper finds that their runs have no job.
//!
//! What is said while nobody listens is lost. The message then stays where it is, in no count (see `consumer`), until the sweeper
//! misses its run and asks which jobs there are.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde::Deserialize;

use crate::Settings;
use crate::connection::Connection;

const OPERATION: &str = "remove a parked job";

/// One of all our processes removes a message.
const GROUP: &str = "pyoco_parked";

/// What the server says of a message.
#[derive(Deserialize)]
struct Advisory {
    stream: String,
    consumer: String,
    stream_seq: u64,
    deliveries: u64,
}

/// Removes parked messages until the store is closed.
pub(super) async fn remove(connection: Arc<Connection>, settings: Arc<Settings>) {
    let closing = connection.closing().clone();
    let _ = closing.run_until_cancelled(listen(&connection, &settings)).await;
}

async fn listen(connection: &Connection, settings: &Settings) {
    let subject = format!("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{}.*", settings.work_stream);
    let mut line = connection.line();
    loop {
        match connection.subscribe_shared(OPERATION, &subject, GROUP).await {
            Ok(mut told) => {
                while let Some(message) = told.next().await {
                    remove_one(connection, settings, &message.payload).await;
                }
            }
            Err(error) => tracing::debug!(%error, "parked jobs are not heard of yet"),
        }
        // Without a connection there is nothing to hear.
        if line.changed().await.is_err() {
            return;
        }
    }
}

async fn remove_one(connection: &Connection, settings: &Settings, said: &[u8]) {
    let Ok(advisory) = serde_json::from_slice::<Advisory>(said) else { return };
    let Advisory { stream, consumer, stream_seq, deliveries } = advisory;
    if stream != settings.work_stream {
        return;
    }
    match connection.delete(OPERATION, &stream, stream_seq).await {
        Ok(_) => {
            tracing::warn!(consumer, stream_seq, deliveries, "a job was delivered too often and was removed");
        }
        Err(error) => tracing::warn!(%error, consumer, stream_seq, "a parked job stays in its stream"),
    }
}
