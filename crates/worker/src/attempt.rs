//! One attempt in a worker's hands: it ends by itself, because its time is over, or because it did not stop when asked.

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::notice::Notice;
use tokio::sync::watch;

use crate::runtime::{Call, End, Runtime, Stop, Urgency};

/// After it was told to end, so long an attempt may take before it is let go.
const LAST_CALL: Duration = Duration::from_secs(5);

/// Runs an attempt to its end. Nothing of it is left running when this returns, or is dropped.
pub(crate) async fn run(
    runtime: Arc<dyn Runtime>,
    call: Call,
    urgency: Arc<watch::Sender<Urgency>>,
    grace: Duration,
) -> End {
    let stop = Stop(urgency.subscribe());
    let timeout = call.task.policy.timeout.map(|limit| Duration::from_millis(limit.0));
    let timed_out = call.task.timed_out();
    let (run_id, task) = (call.execution.clone(), call.task.name.clone());
    let escalation = async {
        let mut watched = urgency.subscribe();
        let why = watched.wait_for(|now| *now > Urgency::None).await.map_or(Urgency::Asked, |now| *now);
        if grace.is_zero() {
            // It is only ever asked.
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(grace).await;
        if why >= Urgency::Asked {
            notice!(warn, Notice::CancelTimeout, %run_id, task);
        }
        urgency.send_replace(Urgency::Ending);
        tokio::time::sleep(LAST_CALL).await;
    };
    let deadline = async {
        match timeout {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    // Whatever comes first drops the attempt, and with it the process.
    tokio::select! {
        biased;
        end = runtime.run(call, stop) => end,
        () = deadline => End::Failed { error: timed_out, inputs: None, changes: None },
        () = escalation => End::Stopped,
    }
}
