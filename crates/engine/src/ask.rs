//! Commands under a caller's key: asked as often as one likes, done once, answered the same each time. A key counts for its
//! endpoint only, and for as long as the execution is kept.

use pyoco_core::command::{Command, CreateExecution, Issuer, Request};
use pyoco_core::digest::Digest;
use pyoco_core::ids::{CommandId, ExecutionId, Version};
use pyoco_core::outcome::{Outcome, Reason, Rejection};
use pyoco_ports::{ErrorKind, StoreError};

use crate::{Engine, EngineError, Flow, Submission, uuid};

/// What a caller asks of an execution.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What.
    pub command: Command,
    /// Who asks.
    pub issuer: Issuer,
    /// The caller's key; one is made up where there is none.
    pub key: Option<CommandId>,
    /// The caller's thread through several commands; one is made up where there is none.
    pub correlation_id: Option<String>,
}

/// What a caller wants to exist: an execution of a registered graph.
#[derive(Debug, Clone)]
pub struct Create {
    /// What to create; its graph is looked up by its name.
    pub command: CreateExecution,
    /// Which version of the graph; the newest when not said.
    pub version: Option<u64>,
    /// Who asks.
    pub issuer: Issuer,
    /// The caller's key; one is made up where there is none.
    pub key: Option<CommandId>,
    /// The caller's thread through several commands; one is made up where there is none.
    pub correlation_id: Option<String>,
}

/// An accepted command, as it was answered the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The execution it is about.
    pub execution: ExecutionId,
    /// It was accepted before, under the same key.
    pub is_repeat: bool,
    /// The thread that its events name.
    pub correlation_id: String,
    /// Its key.
    pub key: CommandId,
}

impl Engine {
    /// Asks a command of an execution.
    pub async fn ask(&self, execution: &ExecutionId, ask: Ask) -> Result<Asked, EngineError> {
        let (key, correlation_id) =
            self.named(ask.key, ask.correlation_id, &endpoint(execution, &ask.command));
        let id = scoped(execution, &ask.command, &key);
        let mut request = Request::new(ask.issuer, self.clock.now(), ask.command);
        if let Some(id) = id {
            request = request.with_id(id);
        }
        request.correlation_id = Some(correlation_id.clone());
        let asked = self.in_time(self.deadline(), self.command_of_any(execution, &request)).await;
        let Some(answer) = asked else {
            self.doubts.add(execution);
            return Err(StoreError::plain(ErrorKind::Timeout, "command").into());
        };
        let first = match answer?.outcome {
            Outcome::Repeated(record) => Some(self.first_thread(execution, &request, record).await?),
            Outcome::Accepted | Outcome::AlreadyCanceling | Outcome::AlreadyCanceled => None,
            Outcome::AlreadyArchived
            | Outcome::AlreadyEnded(_)
            | Outcome::Claimed(_)
            | Outcome::Unchanged => None,
        };
        let is_repeat = first.is_some();
        let correlation_id = first.flatten().unwrap_or(correlation_id);
        Ok(Asked { execution: execution.clone(), is_repeat, correlation_id, key })
    }

    /// Makes an execution of a registered graph exist.
    pub async fn create(&self, create: Create) -> Result<Asked, EngineError> {
        const ENDPOINT: &str = "POST /executions";
        let is_key_made_up = create.key.is_none();
        let (key, correlation_id) = self.named(create.key, create.correlation_id, ENDPOINT);
        let mut command = create.command;
        // As it was asked for; which one it became is written over it.
        command.graph_version = create.version;
        let submission = Submission {
            command,
            flow: Flow::Registered(create.version),
            issuer: create.issuer,
            endpoint: ENDPOINT.into(),
            key: Some(key.clone()),
            is_key_made_up,
            digest: None,
            correlation_id: Some(correlation_id.clone()),
        };
        self.submitted(submission, key, correlation_id).await
    }

    /// A submission whose repeat is answered as it was.
    pub(crate) async fn submitted(
        &self,
        submission: Submission,
        key: CommandId,
        correlation_id: String,
    ) -> Result<Asked, EngineError> {
        let submitted = self.submit(submission).await?;
        let (execution, is_repeat) = (submitted.execution, submitted.is_repeat);
        let first = match is_repeat {
            true => self.thread_of(&execution).await?,
            false => None,
        };
        Ok(Asked { execution, is_repeat, correlation_id: first.unwrap_or(correlation_id), key })
    }

    /// The thread in which an execution was made.
    pub(crate) async fn thread_of(&self, execution: &ExecutionId) -> Result<Option<String>, EngineError> {
        let mut events = self.events(execution, Default::default(), 1).await?.into_iter();
        let first = events.next().and_then(|page| page.events.into_iter().next());
        Ok(first.and_then(|event| event.envelope()?.correlation_id.clone()))
    }

    /// A key and a thread for whoever brought none. The thread follows from the key, so that a repeat has the same.
    pub(crate) fn named(
        &self,
        key: Option<CommandId>,
        correlation_id: Option<String>,
        endpoint: &str,
    ) -> (CommandId, String) {
        let key = key.unwrap_or_else(|| self.new_key());
        let correlation_id = correlation_id.unwrap_or_else(|| uuid(&("correlation", endpoint, key.as_str())));
        (key, correlation_id)
    }

    fn new_key(&self) -> CommandId {
        loop {
            // The name of an event is a valid key, and used once.
            if let Ok(key) = CommandId::new(self.ids.event().as_str()) {
                return key;
            }
        }
    }

    /// What another implementation has accepted has a log from the first command on.
    async fn command_of_any(
        &self,
        execution: &ExecutionId,
        request: &Request,
    ) -> Result<pyoco_core::decide::Answer, EngineError> {
        match self.command(execution, request).await {
            Err(EngineError::Rejected(Rejection { reason: Reason::UnknownExecution(_), .. }))
                if self.adopt(execution).await? =>
            {
                self.command(execution, request).await
            }
            answer => answer,
        }
    }

    /// The thread of a command that was accepted before.
    async fn first_thread(
        &self,
        execution: &ExecutionId,
        request: &Request,
        record: Version,
    ) -> Result<Option<String>, EngineError> {
        let before = Version(record.0.saturating_sub(1));
        let records = self.store.read_some(execution, before, 1).await?;
        let Some(stored) = records.first() else { return Ok(None) };
        let decoded = decode(execution, stored)?;
        let found = decoded.commands.into_iter().find(|command| Some(&command.id) == request.id.as_ref());
        Ok(found.and_then(|command| command.correlation_id))
    }
}

use crate::history::decode;

/// The name under which a key is remembered: nothing but a fingerprint, so that no key is too long and none is kept.
fn scoped(execution: &ExecutionId, command: &Command, key: &CommandId) -> Option<CommandId> {
    let parts = serde_json::to_vec(&(endpoint(execution, command), key.as_str())).ok()?;
    CommandId::new(&Digest::of_bytes(&parts).to_string()).ok()
}

/// The door a command came through.
fn endpoint(execution: &ExecutionId, command: &Command) -> String {
    let node = match command {
        Command::StartNode(command) => Some(&command.node_id),
        Command::ReportNodeProgress(command) => Some(&command.node_id),
        Command::PutNodeWaiting(command) => Some(&command.node_id),
        Command::ResumeNode(command) => Some(&command.node_id),
        Command::SucceedNode(command) => Some(&command.node_id),
        Command::FailNode(command) => Some(&command.node_id),
        Command::CancelNode(command) => Some(&command.node_id),
        Command::ChooseNode(command) => Some(&command.node_id),
        Command::ConfirmNodeStopped(command) => Some(&command.node_id),
        Command::CreateExecution(_) | Command::StartExecution(_) | Command::CancelExecution(_) => None,
        Command::ArchiveExecution(_) | Command::ClaimExecution(_) | Command::ReleaseExecution(_) => None,
        Command::FailExecution(_) | Command::ForceEnd(_) | Command::FireTimers(_) => None,
        Command::AdvanceExecution(_) | Command::AnnotateExecution(_) | Command::ImportSnapshot(_) => None,
    };
    format!("{} {execution}/{}", command.name(), node.map_or("", |node| node.as_str()))
}
