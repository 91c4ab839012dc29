//! Others on the same store: our own processes, whose changes are heard of, and other implementations, whose snapshots become
//! records of the log.

use std::time::Duration;

use pyoco_core::command::{CancelExecution, ForeignStatus, ImportSnapshot, Issuer, Request};
use pyoco_core::decide::decide;
use pyoco_core::ids::{ExecutionId, Tag, TenantId};
use pyoco_core::json::Object;
use pyoco_core::outcome::Outcome;
use pyoco_core::state::State;
use pyoco_ports::{Heard, Listening, News, StoreError};
use serde::Deserialize;
use serde_json::Value;

use crate::watch::GONE;
use crate::{Engine, EngineError};

/// Before what was heard is looked at again.
const AGAIN: Duration = Duration::from_millis(500);

/// What the snapshot of another implementation says. Whatever else is in it does not concern the log.
#[derive(Debug, Deserialize)]
struct Foreign {
    flow_name: String,
    status: ForeignStatus,
    #[serde(default)]
    params: Option<serde_json::Map<String, Value>>,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    tenant_id: Option<String>,
    #[serde(default)]
    api_key_id: Option<String>,
    #[serde(default)]
    worker_id: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    cancel_requested_at: Option<f64>,
    #[serde(default)]
    start_time: Option<f64>,
}

impl Foreign {
    fn read(snapshot: &Value) -> Option<Self> {
        Self::deserialize(snapshot).ok()
    }

    /// Whether somebody asks for it to stop.
    fn wants_cancel(&self) -> bool {
        match self.status {
            ForeignStatus::Cancelling | ForeignStatus::Cancelled => true,
            ForeignStatus::Pending | ForeignStatus::Running => self.cancel_requested_at.is_some(),
            ForeignStatus::Completed | ForeignStatus::Failed => false,
        }
    }

    fn import(self) -> ImportSnapshot {
        let status = if self.status == ForeignStatus::Cancelled || !self.wants_cancel() {
            self.status
        } else if self.start_time.is_none() {
            // Nobody has taken it yet, so nobody has to be waited for: the cancel that follows ends it.
            ForeignStatus::Pending
        } else {
            ForeignStatus::Cancelling
        };
        ImportSnapshot {
            status,
            input: Object(self.params.unwrap_or_default()),
            worker: self.worker_id,
            error: self.error,
            graph_id: self.flow_name,
            tag: self.tag.and_then(|tag| Tag::new(&tag).ok()),
            labels: self.tags.unwrap_or_default(),
            tenant_id: self.tenant_id.and_then(|tenant| TenantId::new(&tenant).ok()),
            api_key_id: self.api_key_id,
            workflow: None,
        }
    }
}

impl Engine {
    /// Listens to what others write about an execution, for as long as it is kept. `None` if nobody else can.
    pub async fn listen(&self, execution: &ExecutionId) -> Result<Option<Box<dyn Listening>>, StoreError> {
        self.store.listen(execution, self.clock.now()).await
    }

    /// Takes in what was heard, however long the store is away: a cancel may stand nowhere else.
    pub async fn heed(&self, heard: &Heard) {
        loop {
            match self.heard(heard).await {
                Ok(()) => return,
                Err(error) if error.is_hopeless() || matches!(error, EngineError::Rejected(_)) => {
                    let run_id = &heard.execution;
                    tracing::warn!(%run_id, reason = %error, "what others wrote could not be looked at");
                    return;
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    /// Somebody else has written the snapshot of an execution: those who watch it are told, and what another implementation
    /// says is taken into the log.
    pub async fn heard(&self, heard: &Heard) -> Result<(), EngineError> {
        self.hub.tick();
        match &heard.news {
            News::Ours(version) => {
                if self.hub.is_watched(&heard.execution, *version) {
                    // Whoever watches is told what is found.
                    self.state(&heard.execution).await?;
                }
                Ok(())
            }
            News::Gone => {
                // Whatever asks next reads the log, if there still is one.
                self.cache.forget(&heard.execution);
                if self.hub.is_watched(&heard.execution, GONE)
                    && self.state(&heard.execution).await?.origin.is_none()
                {
                    self.forget(&heard.execution);
                }
                Ok(())
            }
            News::Foreign { snapshot, revision } => {
                self.take_in(&heard.execution, snapshot, *revision, false).await.map(|_| ())
            }
        }
    }

    /// An execution that only its snapshot tells of: as its log would be if it had one. Nothing is written.
    pub(crate) async fn as_others_say(&self, execution: &ExecutionId) -> Result<Option<State>, StoreError> {
        let Some(News::Foreign { snapshot, .. }) = self.store.snapshot(execution).await? else {
            return Ok(None);
        };
        let Some(foreign) = Foreign::read(&snapshot) else { return Ok(None) };
        let issuer = Issuer::Foreign { id: foreign.worker_id.clone() };
        let request = Request::new(issuer, self.clock.now(), foreign.import());
        let mut state = State::absent(execution.clone());
        let decided = decide(&mut state, &request);
        Ok(decided.is_ok().then_some(state))
    }

    /// Begins the log of an execution that only its snapshot tells of: another implementation has accepted it, and now
    /// something is asked of it here. `false` if there is no such snapshot either.
    pub async fn adopt(&self, execution: &ExecutionId) -> Result<bool, EngineError> {
        match self.store.snapshot(execution).await? {
            Some(News::Foreign { snapshot, revision }) => {
                self.take_in(execution, &snapshot, revision, true).await
            }
            Some(News::Ours(_) | News::Gone) | None => Ok(false),
        }
    }

    /// Begins the log of an execution that another implementation has put into the queue, as its job describes it; what its
    /// snapshot says beyond that is taken in. No job is added: the one in hand is its job.
    pub async fn adopt_job(&self, execution: &ExecutionId, job: ImportSnapshot) -> Result<(), EngineError> {
        let request = Request::new(Issuer::Foreign { id: None }, self.clock.now(), job);
        match self.command(execution, &request).await {
            Ok(_) | Err(EngineError::Rejected(_)) => {}
            Err(error) => return Err(error),
        }
        if let Some(News::Foreign { snapshot, revision }) = self.store.snapshot(execution).await? {
            self.take_in(execution, &snapshot, revision, true).await?;
        }
        Ok(())
    }

    /// Takes a foreign snapshot into the log; `false` if there is nothing to take. An execution without a log gets one only
    /// if asked: of most of them nobody will ever ask.
    async fn take_in(
        &self,
        execution: &ExecutionId,
        snapshot: &Value,
        revision: u64,
        begin: bool,
    ) -> Result<bool, EngineError> {
        let Some(foreign) = Foreign::read(snapshot) else { return Ok(false) };
        let state = self.state(execution).await?;
        // Another implementation can lose a cancel that it was asked for; a log does not.
        let is_asked = begin || (foreign.wants_cancel() && foreign.status != ForeignStatus::Cancelled);
        if state.origin.is_none() && !is_asked {
            return Ok(false);
        }
        let issuer = Issuer::Foreign { id: foreign.worker_id.clone() };
        let wants_cancel = foreign.wants_cancel();
        let request = Request::new(issuer.clone(), self.clock.now(), foreign.import());
        let taken = match self.command(execution, &request).await {
            Ok(answer) => answer.outcome == Outcome::Accepted,
            // One of ours has it: only the wish to cancel counts.
            Err(EngineError::Rejected(_)) => false,
            Err(error) => return Err(error),
        };
        if wants_cancel {
            let request = Request::new(issuer, self.clock.now(), CancelExecution { reason: None });
            match self.command(execution, &request).await {
                Ok(_) | Err(EngineError::Rejected(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.store.settle(execution, revision);
        self.put_right(execution, snapshot, wants_cancel).await?;
        Ok(taken || begin)
    }

    /// A snapshot that says less than the log knows is written over: an end or a cancel that the other has not seen.
    async fn put_right(
        &self,
        execution: &ExecutionId,
        snapshot: &Value,
        wants_cancel: bool,
    ) -> Result<(), EngineError> {
        let state = self.state(execution).await?;
        let status = pyoco_core::view::RunStatus::of(&state).to_string();
        let is_same = snapshot.get("status").and_then(Value::as_str) == Some(status.as_str());
        let is_ours = state.epoch.0 > 0;
        if is_ours || (!is_same && (state.phase.is_terminal() || state.cancel.is_some() && !wants_cancel)) {
            self.show_state(&state).await?;
        }
        Ok(())
    }
}
