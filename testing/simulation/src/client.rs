//! Who asks: submits, cancels and answers waits, each under a key, until it is told what came of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyoco_core::command::{CancelExecution, Command, ResumeNode};
use pyoco_core::ids::{CommandId, ExecutionId, NodeId, Version};
use pyoco_core::json::Json;
use pyoco_core::outcome::Reason;
use pyoco_core::state::State;
use pyoco_engine::{Ask, Engine, EngineError, Flow, Submission};
use pyoco_testkit::{caller, create, key};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::process::Site;
use crate::scenario::Run;

/// What a caller hears.
#[derive(Debug)]
enum Reply<T> {
    Yes(T),
    No(Reason),
    /// Nothing, or that nobody knows.
    Nothing,
}

/// Something that was asked under a key.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Submit { flow: String, key: String },
    Cancel { execution: ExecutionId },
    Resume { execution: ExecutionId, node: NodeId },
}

/// How a wish was granted. The same for whoever asks again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    execution: ExecutionId,
    correlation_id: Option<String>,
}

/// What callers were told.
#[derive(Debug, Default)]
pub(crate) struct Book {
    granted: Mutex<BTreeMap<String, Page>>,
    /// Executions that somebody was told of.
    accepted: Mutex<Vec<ExecutionId>>,
}

#[derive(Debug, Clone)]
struct Page {
    wish: Wish,
    granted: Granted,
    /// Somebody was told that it was the first to ask.
    has_first: bool,
}

impl Book {
    pub(crate) fn accepted(&self) -> Vec<ExecutionId> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn pages(&self) -> Vec<Page> {
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        granted.values().cloned().collect()
    }
}

/// One caller.
pub(crate) struct Client {
    site: Arc<Site>,
    book: Arc<Book>,
    run: Run,
    rng: ChaCha8Rng,
}

impl Client {
    pub(crate) fn new(site: &Arc<Site>, book: &Arc<Book>, run: &Run, number: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(site.world.seed.wrapping_mul(31).wrapping_add(number));
        Self { site: site.clone(), book: book.clone(), run: run.clone(), rng }
    }

    /// Submits the run; with a key again and again until it is accepted.
    pub(crate) async fn submit(&mut self) -> Option<ExecutionId> {
        tokio::time::sleep(self.run.submitted_after).await;
        let (flow, key) = (self.run.flow.clone(), self.run.key.clone());
        loop {
            let submission = submission(&flow, key.as_deref(), 0);
            match self.asks(|engine| async move { engine.submit(submission).await }).await {
                Reply::Yes(submitted) => {
                    let (execution, is_repeat) = (submitted.execution, submitted.is_repeat);
                    let mut accepted = self.book.accepted.lock().unwrap_or_else(PoisonError::into_inner);
                    accepted.push(execution.clone());
                    drop(accepted);
                    if let Some(key) = key {
                        let granted = Granted { execution: execution.clone(), correlation_id: None };
                        self.grant(&Wish::Submit { flow, key }, &granted, is_repeat);
                    }
                    return Some(execution);
                }
                Reply::No(reason) => {
                    self.site.world.broken(format!("a submission was refused: {reason:?}"));
                    return None;
                }
                // Without a key nobody asks again: it could be another run.
                Reply::Nothing if key.is_none() => return None,
                Reply::Nothing => self.rest().await,
            }
        }
    }

    /// Cancels the run when it is time to, if it is.
    pub(crate) async fn cancel(&mut self, execution: &ExecutionId) {
        let Some(after) = self.run.canceled_after else { return };
        tokio::time::sleep(after).await;
        let wish = Wish::Cancel { execution: execution.clone() };
        if let Some(Reason::Ended(_)) = self.insist(&wish).await {
            let world = &self.site.world;
            if world.witness().logs.get(execution).is_some_and(|log| log.has_cancel) {
                world.broken(format!("{execution}: a cancel was refused, and it was canceled"));
            }
        }
    }

    /// Answers whatever waits, until the run has ended. What it sees never goes back.
    pub(crate) async fn answer_waits(&mut self, execution: &ExecutionId) {
        let mut seen = Version(0);
        loop {
            let id = execution.clone();
            let looked = self.asks(|engine| async move { engine.look(&id, glance).await }).await;
            match looked {
                Reply::Yes(Some((version, is_over, waiting))) => {
                    if version < seen {
                        self.site.world.broken(format!("{execution}: {version} was seen after {seen}"));
                    }
                    seen = version;
                    if is_over {
                        return;
                    }
                    for node in waiting {
                        let wish = Wish::Resume { execution: execution.clone(), node: node.clone() };
                        if let Some(reason) = self.insist(&wish).await {
                            self.was_refused(execution, &node, &reason);
                        }
                    }
                }
                Reply::Yes(None) => {
                    self.site.world.broken(format!("{execution} was accepted and is not there"));
                    return;
                }
                Reply::No(_) | Reply::Nothing => {}
            }
            self.rest().await;
        }
    }

    /// Nobody but this caller resumes the node, under one key: whoever is refused has not resumed it.
    fn was_refused(&self, execution: &ExecutionId, node: &NodeId, reason: &Reason) {
        let world = &self.site.world;
        let has_resumed = world.witness().logs.get(execution).is_some_and(|log| log.resumed.contains(node));
        if has_resumed {
            world.broken(format!("{execution}: {node} was resumed, and its caller heard {reason:?}"));
        }
    }

    /// Asks until it is told; gives the reason if it is refused.
    async fn insist(&mut self, wish: &Wish) -> Option<Reason> {
        loop {
            let asked = wish.clone();
            match self.asks(|engine| async move { ask(&engine, &asked).await }).await {
                Reply::Yes((granted, is_repeat)) => {
                    self.grant(wish, &granted, is_repeat);
                    return None;
                }
                Reply::No(reason) => return Some(reason),
                Reply::Nothing => self.rest().await,
            }
        }
    }

    /// Writes down how a wish was granted, and compares with how it was granted before.
    fn grant(&self, wish: &Wish, granted: &Granted, is_repeat: bool) {
        self.site.world.witness().seen.repeats_answered += u64::from(is_repeat);
        let mut book = self.book.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let page = book.entry(format!("{wish:?}")).or_insert_with(|| Page {
            wish: wish.clone(),
            granted: granted.clone(),
            has_first: false,
        });
        let is_second_first = !is_repeat && page.has_first;
        page.has_first |= !is_repeat;
        let is_other = page.granted != *granted;
        drop(book);
        if is_second_first {
            self.site.world.broken(format!("{wish:?} was done for the first time twice"));
        }
        if is_other {
            self.site.world.broken(format!("{wish:?} was answered differently: {granted:?}"));
        }
    }

    /// Asks one of the gateways, for as long as the caller has patience and the gateway lives. As a gateway does it, what was begun
    /// is finished, also when the caller hangs up meanwhile.
    async fn asks<T, F>(&mut self, call: impl FnOnce(Engine) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        let gateway = self.rng.random_range(0..2);
        let Some((engine, dies)) = self.site.gateway(gateway) else { return Reply::Nothing };
        let answering = tokio::spawn(dies.run_until_cancelled_owned(call(engine)));
        match tokio::time::timeout(self.run.patience, answering).await.map(Result::unwrap) {
            Ok(Some(Ok(value))) => Reply::Yes(value),
            Ok(Some(Err(EngineError::Rejected(rejection)))) => Reply::No(rejection.reason),
            Ok(Some(Err(error))) => {
                if error.is_hopeless() {
                    self.site.world.broken(format!("{error}"));
                }
                Reply::Nothing
            }
            Ok(None) | Err(_) => Reply::Nothing,
        }
    }

    async fn rest(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(50..800))).await;
    }
}

/// Version, whether it is over, and who waits.
fn glance(state: &State) -> (Version, bool, Vec<NodeId>) {
    let waiting = state.open.waiting.iter().filter_map(|number| state.node(*number));
    let waiting = waiting.map(|(id, _)| id.clone()).collect();
    (state.version, state.phase.is_terminal(), waiting)
}

fn submission(flow: &str, key: Option<&str>, input: u64) -> Submission {
    let mut command = create();
    (command.start, command.graph_id) = (true, flow.to_owned());
    command.input.0.insert("n".to_owned(), json!(input));
    Submission {
        command,
        flow: Flow::Named,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        key: key.map(|key| CommandId::new(key).unwrap()),
        is_key_made_up: false,
        digest: None,
        correlation_id: None,
    }
}

/// Asks once, and says whether it was a repeat.
async fn ask(engine: &Engine, wish: &Wish) -> Result<(Granted, bool), EngineError> {
    let (execution, command) = match wish {
        Wish::Submit { flow, key } => {
            let submitted = engine.submit(submission(flow, Some(key), 0)).await?;
            let granted = Granted { execution: submitted.execution, correlation_id: None };
            return Ok((granted, submitted.is_repeat));
        }
        Wish::Cancel { execution } => (execution, Command::from(CancelExecution { reason: None })),
        Wish::Resume { execution, node } => {
            let output = Some(Arc::new(Json(json!({"answer": node.as_str()}))));
            let resume = ResumeNode { node_id: node.clone(), resume_key: Some("door".to_owned()), output };
            (execution, Command::from(resume))
        }
    };
    let ask = Ask { command, issuer: caller(), key: Some(key("once")), correlation_id: None };
    let asked = engine.ask(execution, ask).await?;
    let granted = Granted { execution: asked.execution, correlation_id: Some(asked.correlation_id) };
    Ok((granted, asked.is_repeat))
}

/// Asks everything again that was granted, of both gateways: the same is answered, and nothing happens. The same key with
/// something else behind it is refused.
pub(crate) async fn ask_again(site: &Arc<Site>, book: &Book) {
    let world = &site.world;
    let lengths = || {
        let witness = world.witness();
        witness.logs.iter().map(|(id, log)| (id.clone(), log.state.version)).collect::<BTreeMap<_, _>>()
    };
    let before = lengths();
    for (gateway, page) in
        (0..2).flat_map(|gateway| book.pages().into_iter().map(move |page| (gateway, page)))
    {
        let Some((engine, _)) = site.gateway(gateway) else { continue };
        let wish = &page.wish;
        match ask(&engine, wish).await {
            Ok((granted, true)) if granted == page.granted => {}
            other => world.broken(format!("{wish:?} was answered with {other:?}, first {:?}", page.granted)),
        }
        if let Wish::Submit { flow, key } = wish {
            match engine.submit(submission(flow, Some(key), 1)).await {
                Err(EngineError::Rejected(rejection)) if rejection.reason == Reason::KeyReused => {}
                other => world.broken(format!("the key of {wish:?} with another input: {other:?}")),
            }
        }
    }
    if lengths() != before {
        world.broken("something was recorded when everything was asked again");
    }
}
