//! Whoever uses the system: submits, repeats, cancels, answers, uploads, reads and watches, until told to stop. Every intent and
//! every answer goes to the history.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use reqwest::multipart::{Form, Part};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use crate::flows;
use crate::history::{Recorder, Said};

/// So many of the newest runs are looked at, watched and canceled.
const KNOWN: usize = 200;
/// So long a watch goes on at most.
const WATCH: Duration = Duration::from_secs(15);

/// What a submission runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// A flow that the workers know by name.
    Named,
    /// A flow.yaml of its own.
    Sent,
    /// A registered graph in which a person answers.
    Approval,
    /// A task that fails.
    Broken,
    /// A flow that nobody knows.
    Missing,
}

/// A submission, to be sent once or again and again.
#[derive(Debug, Clone)]
pub struct Order {
    /// What the ledger calls it.
    pub label: String,
    /// Its key, if it may be repeated.
    pub key: Option<String>,
    /// What it runs.
    pub flow: Flow,
    /// How long its first task takes.
    pub seconds: f64,
}

/// What a request came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// It was answered as it should be.
    Yes(Value),
    /// There is no such thing.
    Nothing,
    /// It was refused with this status.
    No(u16),
    /// There was no whole answer.
    Silence(String),
}

/// What all clients share.
#[derive(Debug)]
pub struct Board {
    urls: Vec<String>,
    http: reqwest::Client,
    recorder: Recorder,
    stop: AtomicBool,
    number: AtomicU64,
    known: Mutex<VecDeque<String>>,
    /// Submissions under a key whose answer never came.
    open: Mutex<Vec<Order>>,
    pause: Duration,
}

impl Board {
    /// For clients of these gateways.
    pub fn new(urls: Vec<String>, recorder: Recorder, pause: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().unwrap();
        let (stop, number) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { urls, http, recorder, stop, number, known: Mutex::default(), open: Mutex::default(), pause }
    }

    /// A submission that nobody has made yet.
    pub fn order(&self, random: &mut ChaCha8Rng) -> Order {
        let label = format!("run-{}", self.number.fetch_add(1, Ordering::SeqCst));
        let flow = match random.random_range(0..21) {
            0..9 => Flow::Named,
            9..17 => Flow::Sent,
            17..19 => Flow::Approval,
            19 => Flow::Broken,
            _ => Flow::Missing,
        };
        let seconds = if random.random_bool(0.2) { random.random_range(0.0..1.5) } else { 0.0 };
        let key = random.random_bool(0.6).then(|| format!("key-{label}"));
        Order { label, key, flow, seconds }
    }

    fn url(&self, random: &mut ChaCha8Rng, path: &str) -> String {
        format!("{}{path}", self.urls.choose(random).unwrap())
    }

    async fn ask(&self, request: RequestBuilder) -> Heard {
        match request.send().await {
            Ok(answer) => heard(answer).await,
            Err(error) => Heard::Silence(error.to_string()),
        }
    }

    /// Sends a submission once.
    pub async fn submit(&self, order: &Order, random: &mut ChaCha8Rng) -> Heard {
        let operation = self.recorder.operation();
        let Order { label, key, flow, seconds } = order;
        self.recorder.note(operation, Said::Submits { label: label.clone(), key: key.clone() }).await;
        let name = match flow {
            Flow::Named => flows::NAMED,
            Flow::Approval => "approval",
            Flow::Broken => "broken",
            Flow::Missing => "missing",
            Flow::Sent => "sent",
        };
        let request = if *flow == Flow::Sent {
            let defaults = format!("  defaults: {{label: {label}, seconds: {seconds:.3}}}\ntasks:");
            let text = flows::FORKED.replacen("tasks:", &defaults, 1);
            let part = Part::bytes(text.into_bytes()).file_name("flow.yaml");
            let form = Form::new().part("workflow", part).text("flow_name", name);
            self.http.post(self.url(random, "/runs/yaml")).multipart(form)
        } else {
            let body = json!({"flow_name": name, "params": {"label": label, "seconds": seconds}});
            self.http.post(self.url(random, "/runs")).json(&body)
        };
        let request = match key {
            Some(key) => request.header("x-idempotency-key", key),
            None => request,
        };
        let heard = self.ask(request).await;
        let said = match &heard {
            Heard::Yes(answer) => {
                let run = answer["run_id"].as_str().unwrap_or_default().to_owned();
                let mut known = self.known.lock().unwrap();
                known.push_back(run.clone());
                if known.len() > KNOWN {
                    known.pop_front();
                }
                Said::Accepted { label: label.clone(), run }
            }
            other => not_done(other),
        };
        self.recorder.note(operation, said).await;
        heard
    }

    /// One of the newest so many runs.
    fn one(&self, random: &mut ChaCha8Rng, newest: usize) -> Option<String> {
        let known = self.known.lock().unwrap();
        let from = known.len().saturating_sub(newest);
        (!known.is_empty()).then(|| known[random.random_range(from..known.len())].clone())
    }

    /// Asks for the end of a run.
    pub async fn cancel(&self, run: &str, random: &mut ChaCha8Rng) {
        let operation = self.recorder.operation();
        self.recorder.note(operation, Said::Cancels { run: run.to_owned() }).await;
        let heard = self.ask(self.http.post(self.url(random, &format!("/runs/{run}/cancel")))).await;
        let said = match &heard {
            Heard::Yes(shown) => {
                let status = shown["status"].as_str().unwrap_or_default().to_owned();
                Said::Canceling { run: run.to_owned(), status }
            }
            other => not_done(other),
        };
        self.recorder.note(operation, said).await;
    }

    /// Answers everything that waits. Says how many there were.
    pub async fn answer_waits(&self, random: &mut ChaCha8Rng) -> Option<usize> {
        let waits = self.ask(self.http.get(self.url(random, "/waits"))).await;
        let Heard::Yes(waits) = waits else { return None };
        let waits = waits["items"].as_array().cloned().unwrap_or_default();
        for wait in &waits {
            let run = wait["executionId"].as_str().unwrap_or_default().to_owned();
            let operation = self.recorder.operation();
            self.recorder.note(operation, Said::Resumes { run: run.clone() }).await;
            let url = self.url(random, &format!("/executions/{run}/nodes/approve/resume"));
            let request = self.http.post(url).header("x-idempotency-key", format!("resume-{run}"));
            let heard = self.ask(request.json(&json!({"resumeKey": "go"}))).await;
            let said = match &heard {
                Heard::Yes(_) => Said::Resumed { run },
                other => not_done(other),
            };
            self.recorder.note(operation, said).await;
        }
        Some(waits.len())
    }

    /// Uploads a wheel that nobody has.
    pub async fn upload(&self, random: &mut ChaCha8Rng) -> Heard {
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        let text = format!("NUMBER = {number}\n").repeat(random.random_range(1..2_000));
        let (wheel, bytes) = pyoco_testkit::wheel(&format!("chaos-{number}"), "1.0", &[("chaos.py", &text)]);
        let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let operation = self.recorder.operation();
        self.recorder.note(operation, Said::Uploads { wheel: wheel.clone(), sha256: sha256.clone() }).await;
        let form = Form::new().part("wheel", Part::bytes(bytes).file_name(wheel.clone()));
        let heard = self.ask(self.http.post(self.url(random, "/wheels")).multipart(form)).await;
        let said = match &heard {
            Heard::Yes(_) => Said::Uploaded { wheel, sha256 },
            other => not_done(other),
        };
        self.recorder.note(operation, said).await;
        heard
    }

    /// Looks at a run.
    pub async fn read(&self, run: &str, random: &mut ChaCha8Rng) -> Heard {
        let operation = self.recorder.operation();
        self.recorder.note(operation, Said::Reads { run: run.to_owned() }).await;
        let heard = self.ask(self.http.get(self.url(random, &format!("/runs/{run}")))).await;
        let said = match &heard {
            Heard::Yes(shown) => Said::Sees {
                run: run.to_owned(),
                version: shown["version"].as_u64().unwrap_or_default(),
                status: shown["status"].as_str().unwrap_or_default().to_owned(),
            },
            Heard::Nothing => Said::Misses { run: run.to_owned() },
            other => not_done(other),
        };
        self.recorder.note(operation, said).await;
        heard
    }

    /// Follows the events of a run, from its beginning, over broken connections, until its end or for a while.
    pub async fn watch(&self, run: &str, random: &mut ChaCha8Rng) {
        let (since, mut after) = (Instant::now(), 0);
        while since.elapsed() < WATCH && !self.stop.load(Ordering::SeqCst) {
            let operation = self.recorder.operation();
            self.recorder.note(operation, Said::Follows { run: run.to_owned(), after }).await;
            let url = self.url(random, &format!("/executions/{run}/events/stream"));
            let request = self.http.get(url).header("last-event-id", after.to_string());
            match request.send().await {
                Ok(mut answer) if answer.status().as_u16() == 200 => {
                    if self.listen(&mut answer, operation, run, &mut after).await {
                        return;
                    }
                }
                // Everything was told.
                Ok(answer) if answer.status().as_u16() == 204 => {
                    self.recorder.note(operation, Said::HearsTheEnd { run: run.to_owned() }).await;
                    return;
                }
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Whether the end was told.
    async fn listen(&self, answer: &mut Response, operation: u64, run: &str, after: &mut u64) -> bool {
        let mut text = String::new();
        while let Ok(Some(piece)) = answer.chunk().await {
            text.push_str(&String::from_utf8_lossy(&piece));
            while let Some((block, rest)) = text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                let (id, event) = (field("id: ").and_then(|id| id.parse().ok()), field("event: "));
                let is_end = event == Some("end");
                if let Some(seq) = id {
                    self.recorder.note(operation, Said::Hears { run: run.to_owned(), seq }).await;
                    *after = seq;
                }
                if is_end {
                    self.recorder.note(operation, Said::HearsTheEnd { run: run.to_owned() }).await;
                    return true;
                }
                text = rest.to_owned();
            }
        }
        false
    }

    /// Tells everybody to stop, and waits for them.
    pub async fn rest(&self, clients: Vec<JoinHandle<()>>) {
        self.stop.store(true, Ordering::SeqCst);
        for client in clients {
            client.await.unwrap();
        }
    }

    /// Remembers a submission under a key that was not answered.
    pub fn owe(&self, order: Order) {
        self.open.lock().unwrap().push(order);
    }

    /// Repeats what was never answered, until it is.
    pub async fn settle(&self, random: &mut ChaCha8Rng, patience: Duration) {
        let since = Instant::now();
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        for order in &open {
            while let Heard::No(500..) | Heard::Silence(_) = self.submit(order, random).await {
                if since.elapsed() > patience {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn not_done(heard: &Heard) -> Said {
    match heard {
        Heard::Yes(_) => Said::Unknown { why: "an answer without sense".to_owned() },
        Heard::Nothing => Said::Refused { status: 404 },
        Heard::No(status) => Said::Refused { status: *status },
        Heard::Silence(why) => Said::Unknown { why: why.clone() },
    }
}

async fn heard(answer: Response) -> Heard {
    match answer.status().as_u16() {
        200..300 => match answer.json().await {
            Ok(value) => Heard::Yes(value),
            Err(error) => Heard::Silence(error.to_string()),
        },
        404 => Heard::Nothing,
        status => Heard::No(status),
    }
}

/// Starts everybody; each has random numbers of its own.
pub fn start(board: &Arc<Board>, seed: u64) -> Vec<JoinHandle<()>> {
    let roles = [Role::Submits, Role::Submits, Role::Submits, Role::Cancels, Role::Answers, Role::Uploads];
    let roles = roles.into_iter().chain([Role::Reads, Role::Reads, Role::Watches, Role::Watches]);
    let client = |(number, role): (u64, Role)| {
        let random = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(number));
        tokio::spawn(client(board.clone(), role, random))
    };
    (0..).zip(roles).map(client).collect()
}

#[derive(Debug, Clone, Copy)]
enum Role {
    Submits,
    Cancels,
    Answers,
    Uploads,
    Reads,
    Watches,
}

async fn client(board: Arc<Board>, role: Role, mut random: ChaCha8Rng) {
    let mut again: Vec<Order> = Vec::new();
    while !board.stop.load(Ordering::SeqCst) {
        let pace = match role {
            Role::Submits => 1,
            Role::Reads => 1,
            Role::Watches => 1,
            Role::Answers => 4,
            Role::Cancels => 3,
            Role::Uploads => 20,
        };
        tokio::time::sleep(board.pause.mul_f64(random.random_range(0.2..1.8)) * pace).await;
        // Who cancels or watches has to be quick: most runs end soon.
        let newest = if matches!(role, Role::Reads) { KNOWN } else { 4 };
        match (role, board.one(&mut random, newest)) {
            (Role::Submits, _) => submits(&board, &mut again, &mut random).await,
            (Role::Answers, _) => drop(board.answer_waits(&mut random).await),
            (Role::Uploads, _) => drop(board.upload(&mut random).await),
            (Role::Cancels, Some(run)) => board.cancel(&run, &mut random).await,
            (Role::Reads, Some(run)) => drop(board.read(&run, &mut random).await),
            (Role::Watches, Some(run)) => board.watch(&run, &mut random).await,
            (Role::Cancels | Role::Reads | Role::Watches, None) => {}
        }
    }
    // Whoever comes later goes on with it.
    board.open.lock().unwrap().append(&mut again);
}

/// One submission: a new one, or again one whose answer never came, or, now and then, one that was answered long ago.
async fn submits(board: &Board, again: &mut Vec<Order>, random: &mut ChaCha8Rng) {
    let order = if !again.is_empty() && (again.len() > 20 || random.random_bool(0.3)) {
        again.swap_remove(random.random_range(0..again.len()))
    } else {
        board.order(random)
    };
    let heard = board.submit(&order, random).await;
    let is_open = matches!(heard, Heard::No(500..) | Heard::Silence(_));
    if order.key.is_some() && (is_open || random.random_bool(0.3)) {
        again.push(order);
    }
}
