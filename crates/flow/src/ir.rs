//! A flow that a Python resolver built, described as data (IR version 1), into a plan.
//!
//! The functions stay with the process that built the flow, so every task is addressed by its name there.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use pyoco_core::expr::Expression;
use pyoco_core::json::Json;
use pyoco_core::plan::{Count, FailPolicy, Input, MAX_DEPTH, Plan, Policy, Runner, TaskSpec};
use pyoco_core::time::Millis;
use serde::Deserialize;
use serde_json::Value;

use crate::blueprint::{Blueprint, Member};
use crate::diagnostic::{Diagnostic, FlowError};
use crate::graph::DEFAULT_MAX_ROUNDS;
use crate::inputs;
use crate::program::{Control, ControlKind, NameId, Step};
use crate::tasks::RETRY_DELAY;

/// Makes a plan of a described flow.
pub fn compile(ir: &Value) -> Result<Plan, FlowError> {
    let flow = Flow::deserialize(ir).map_err(|error| refuse(error.to_string()))?;
    if flow.ir != 1 {
        return Err(refuse(format!("version {} is unknown, 1 is known", flow.ir)).into());
    }
    let mut numbers = HashMap::with_capacity(flow.tasks.len());
    for (number, task) in flow.tasks.iter().enumerate() {
        numbers.insert(task.name.clone(), number);
    }
    let mut reader = Reader { numbers, controls: 0, warnings: Vec::new() };
    let steps = match (flow.mode.as_str(), &flow.program) {
        ("dag", _) => None,
        ("program", steps) => Some(reader.steps(steps.as_deref().unwrap_or_default(), 0)?),
        (other, _) => return Err(refuse(format!("mode '{other}' is neither dag nor program")).into()),
    };
    let member_of = (0..flow.tasks.len()).collect();
    let members = flow.tasks.into_iter().map(|task| reader.member(task)).collect::<Result<_, _>>()?;
    let warnings = reader.warnings;
    Blueprint { flow: flow.flow, members, steps, member_of, explicit: false, expose_env: None, warnings }
        .build()
}

fn refuse(message: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new("invalid_ir", format!("the description of the flow is not usable: {message}"))
}

#[derive(Deserialize)]
struct Flow {
    ir: u32,
    flow: String,
    mode: String,
    tasks: Vec<Task>,
    #[serde(default)]
    program: Option<Vec<StepIr>>,
}

#[derive(Deserialize)]
struct Task {
    name: String,
    #[serde(default)]
    inputs: IndexMap<String, InputIr>,
    #[serde(default)]
    outputs: Vec<String>,
    #[serde(default)]
    deps: Vec<String>,
    #[serde(default)]
    deps_outside_flow: Vec<String>,
    #[serde(default)]
    trigger: Option<String>,
    #[serde(default)]
    fail: Option<String>,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    timeout_s: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum InputIr {
    Node {
        node: String,
        #[serde(default)]
        path: Vec<String>,
    },
    Param {
        param: String,
    },
    Env {
        env: String,
    },
    Invalid {
        invalid: String,
        reason: String,
    },
    Lit {
        lit: Value,
    },
}

#[derive(Deserialize)]
struct Expr {
    expr: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CountIr {
    Fixed(u64),
    Computed(Expr),
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum StepIr {
    Task {
        task: String,
    },
    Repeat {
        count: CountIr,
        body: Vec<Self>,
    },
    ForEach {
        over: Expr,
        #[serde(default)]
        item: Option<String>,
        #[serde(default)]
        index: Option<String>,
        body: Vec<Self>,
    },
    Until {
        cond: Expr,
        #[serde(default)]
        max_iter: Option<i64>,
        body: Vec<Self>,
    },
    Switch {
        on: Expr,
        cases: Vec<CaseIr>,
        #[serde(default)]
        default: Option<Vec<Self>>,
    },
}

#[derive(Deserialize)]
struct CaseIr {
    #[serde(default)]
    value: Value,
    /// It stands for a value that nothing equals.
    #[serde(default)]
    never: bool,
    body: Vec<StepIr>,
}

struct Reader {
    numbers: HashMap<String, usize>,
    controls: usize,
    warnings: Vec<String>,
}

impl Reader {
    fn member(&self, task: Task) -> Result<Member, Diagnostic> {
        let mut spec = TaskSpec::new(&task.name, Runner::Registered(task.name.clone()));
        spec.inputs = task.inputs.into_iter().map(|(name, input)| (name, read_input(input))).collect();
        spec.outputs = task.outputs;
        let timeout = match task.timeout_s.filter(|seconds| *seconds != 0.0) {
            None => None,
            Some(seconds) => {
                let limit = Millis::from_seconds(seconds);
                let limit =
                    limit.ok_or_else(|| refuse(format!("task '{}': timeout_s {seconds}", task.name)))?;
                Some(Millis(limit.0.max(1)))
            }
        };
        let fail =
            if task.fail.as_deref() == Some("isolate") { FailPolicy::Isolate } else { FailPolicy::Stop };
        spec.policy = Policy { fail, retries: task.retries, retry_delay: RETRY_DELAY, timeout };
        let after: Vec<usize> = task.deps.iter().filter_map(|name| self.numbers.get(name).copied()).collect();
        let outside = !task.deps_outside_flow.is_empty() || after.len() < task.deps.len();
        let any = task.trigger.as_deref() == Some("ANY");
        Ok(Member { after, outside, any, ..Member::new(spec) })
    }

    fn steps(&mut self, steps: &[StepIr], depth: usize) -> Result<Vec<Step>, Diagnostic> {
        if depth > MAX_DEPTH {
            return Err(refuse(format!("loops and switches are nested deeper than {MAX_DEPTH} levels")));
        }
        steps.iter().map(|step| self.step(step, depth)).collect()
    }

    fn step(&mut self, step: &StepIr, depth: usize) -> Result<Step, Diagnostic> {
        let kind = match step {
            StepIr::Task { task } => {
                let number = self.numbers.get(task).copied();
                let number =
                    number.ok_or_else(|| refuse(format!("the step '{task}' is no task of the flow")))?;
                return Ok(Step::Task(NameId(number)));
            }
            StepIr::Repeat { count, body } => {
                let count = match count {
                    CountIr::Fixed(count) => Count::Fixed(*count),
                    CountIr::Computed(count) => Count::Computed(expression(count)?),
                };
                ControlKind::Repeat { count, body: self.steps(body, depth + 1)? }
            }
            StepIr::ForEach { over, item, index, body } => ControlKind::ForEach {
                over: expression(over)?,
                item: item.clone(),
                index: index.clone(),
                body: self.steps(body, depth + 1)?,
            },
            StepIr::Until { cond, max_iter, body } => ControlKind::Until {
                condition: expression(cond)?,
                max_rounds: max_iter.filter(|rounds| *rounds != 0).unwrap_or(DEFAULT_MAX_ROUNDS),
                body: self.steps(body, depth + 1)?,
            },
            StepIr::Switch { on, cases, default } => self.switch(on, cases, default.as_deref(), depth)?,
        };
        let id = self.controls;
        self.controls += 1;
        Ok(Step::Control(Arc::new(Control { id, kind })))
    }

    fn switch(
        &mut self,
        on: &Expr,
        cases: &[CaseIr],
        default: Option<&[StepIr]>,
        depth: usize,
    ) -> Result<ControlKind, Diagnostic> {
        let mut listed = Vec::with_capacity(cases.len());
        for case in cases {
            let body = self.steps(&case.body, depth + 1)?;
            if case.never {
                self.warnings
                    .push(format!("a case of switch '{}' can never match and was left out", on.expr));
            } else {
                listed.push((case.value.clone(), body));
            }
        }
        let default = default.map(|body| self.steps(body, depth + 1)).transpose()?;
        Ok(ControlKind::Switch { on: expression(on)?, cases: listed, default })
    }
}

fn expression(text: &Expr) -> Result<Expression, Diagnostic> {
    Expression::parse(&text.expr).map_err(|error| refuse(format!("expression '{}': {error}", text.expr)))
}

fn read_input(input: InputIr) -> Input {
    match input {
        InputIr::Node { node, path } => Input::Node { node, path },
        InputIr::Param { param } => Input::Param(param),
        InputIr::Env { env } => Input::Env(env),
        InputIr::Invalid { invalid, reason } => inputs::invalid(&invalid, &reason),
        InputIr::Lit { lit } => Input::Lit(Json(lit)),
    }
}
