//! The last stage, shared by every language: tasks with dependencies, or steps, become the blocks of a plan.

use std::collections::HashMap;

use pyoco_core::plan::{
    Block, BlockBuilder, Case, FailPolicy, JoinPolicy, Kind, Plan, Slot, TaskIndex, TaskSpec,
};

use crate::cycle;
use crate::diagnostic::{Diagnostic, FlowError};
use crate::program::{Control, ControlKind, NameId, Step};

/// Most "waits for" of one flow.
const MAX_WAITS: usize = 400_000;

/// One task and how it stands to the others.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) spec: TaskSpec,
    pub(crate) explicit_fail: bool,
    pub(crate) join: Option<JoinPolicy>,
    /// Numbers of the members it waits for.
    pub(crate) after: Vec<usize>,
    /// It waits for something that is no member.
    pub(crate) outside: bool,
    pub(crate) any: bool,
}

impl Member {
    pub(crate) const fn new(spec: TaskSpec) -> Self {
        Self { spec, explicit_fail: false, join: None, after: Vec::new(), outside: false, any: false }
    }
}

/// Everything a plan is made from.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) flow: String,
    pub(crate) members: Vec<Member>,
    /// The steps of a program; dependencies count only without them.
    pub(crate) steps: Option<Vec<Step>>,
    /// Which member each name of the steps is.
    pub(crate) member_of: Vec<usize>,
    /// Policies and joins are the author's own words (version 2).
    pub(crate) explicit: bool,
    pub(crate) expose_env: Option<Vec<String>>,
    pub(crate) warnings: Vec<String>,
}

impl Blueprint {
    pub(crate) fn build(mut self) -> Result<Plan, FlowError> {
        let steps = self.steps.take();
        let root = match &steps {
            Some(steps) => self.program(steps)?,
            None => self.graph()?,
        };
        let mut tasks: Vec<TaskSpec> = self.members.into_iter().map(|member| member.spec).collect();
        if steps.is_some() && !self.explicit {
            // A program of version 1 stops at the first failure and knows no deadlines.
            for task in &mut tasks {
                task.policy.fail = FailPolicy::Stop;
                task.policy.timeout = None;
            }
        }
        let mut plan = Plan::new(self.flow, tasks, root).map_err(|error| too_complex(error.to_string()))?;
        plan.expose_env = self.expose_env;
        plan.warnings = self.warnings;
        Ok(plan)
    }

    /// Every member runs, as soon as those it waits for allow it.
    fn graph(&mut self) -> Result<Block, FlowError> {
        let waits: usize = self.members.iter().map(|member| member.after.len()).sum();
        if waits > MAX_WAITS {
            return Err(too_complex(format!(
                "the tasks of a flow wait for others {waits} times, at most {MAX_WAITS} are possible"
            )));
        }
        let mut builder = BlockBuilder::new();
        let mut slots = Vec::with_capacity(self.members.len());
        for (number, member) in (0_u32..).zip(&self.members) {
            slots.push(builder.add(&member.spec.name, Kind::Task(TaskIndex(number))));
        }
        for (member, slot) in self.members.iter().zip(&slots) {
            for on in member.after.iter().filter_map(|number| slots.get(*number)) {
                builder.depend(*slot, *on);
            }
            if member.outside {
                builder.depend_outside(*slot);
            }
            if let Some(policy) = member.join_policy(member.any) {
                builder.join(*slot, policy);
            }
        }
        self.note_circle();
        Ok(self.finish(builder))
    }

    fn note_circle(&mut self) {
        let after: Vec<Vec<usize>> = self.members.iter().map(|member| member.after.clone()).collect();
        if let Some(circle) = cycle::find(&after) {
            let names = cycle::describe(&circle, |task| self.name_of(task));
            self.warnings.push(format!("tasks wait for each other and will never run: {names}"));
        }
    }

    fn name_of(&self, member: usize) -> String {
        self.members.get(member).map(|member| member.spec.name.clone()).unwrap_or_default()
    }

    fn finish(&mut self, builder: BlockBuilder) -> Block {
        let built = builder.finish(self.explicit);
        for task in built.sheltered {
            if let Some(member) = self.members.get_mut(task.0 as usize).filter(|member| !member.explicit_fail)
            {
                member.spec.policy.fail = FailPolicy::Isolate;
            }
        }
        built.block
    }

    /// Only the steps run, in their order.
    fn program(&mut self, steps: &[Step]) -> Result<Block, FlowError> {
        let mut waits = 0;
        let mut reached = vec![false; self.members.len()];
        let block = self.block(steps, &mut waits, &mut reached)?;
        let unreached: Vec<usize> = (0..reached.len()).filter(|number| !reached[*number]).collect();
        if !unreached.is_empty() {
            let names: Vec<String> = unreached.iter().take(8).map(|number| self.name_of(*number)).collect();
            let more = if unreached.len() > 8 { ", ..." } else { "" };
            self.warnings.push(format!(
                "the flow has a loop or switch, so only what 'flow >>' names runs; never run: {}{more}",
                names.join(", ")
            ));
        }
        Ok(block)
    }

    fn block(&mut self, steps: &[Step], waits: &mut usize, reached: &mut [bool]) -> Result<Block, FlowError> {
        let mut sequence =
            Sequence { builder: BlockBuilder::new(), counts: HashMap::new(), ends: Ends::default() };
        self.place(steps, &mut sequence, waits, reached)?;
        Ok(self.finish(sequence.builder))
    }

    fn place(
        &mut self,
        steps: &[Step],
        sequence: &mut Sequence,
        waits: &mut usize,
        reached: &mut [bool],
    ) -> Result<(), FlowError> {
        for step in steps {
            let (name, kind, join) = match step {
                Step::Task(NameId(name)) => {
                    let Some(member) = self.member_of.get(*name).copied() else { continue };
                    let Some(task) = self.members.get(member) else { continue };
                    let index = TaskIndex(u32::try_from(member).unwrap_or(u32::MAX));
                    reached[member] = true;
                    let join = task.join_policy(sequence.ends.any);
                    (task.spec.name.clone(), Kind::Task(index), join)
                }
                Step::Control(control) => {
                    let (name, kind) = self.control(control, waits, reached)?;
                    (name.to_owned(), kind, sequence.ends.any.then_some(JoinPolicy::AnySuccess))
                }
                Step::Parallel(parallel) => {
                    let before = std::mem::take(&mut sequence.ends);
                    let mut after = Ends { slots: Vec::new(), any: parallel.any };
                    for branch in &parallel.branches {
                        sequence.ends = before.clone();
                        self.place(branch, sequence, waits, reached)?;
                        after.slots.append(&mut sequence.ends.slots);
                    }
                    sequence.ends = after;
                    continue;
                }
            };
            *waits += sequence.ends.slots.len();
            if *waits > MAX_WAITS {
                return Err(too_complex(format!(
                    "the steps of a flow wait for others more than {MAX_WAITS} times"
                )));
            }
            sequence.add(&name, kind, join);
        }
        Ok(())
    }

    fn control(
        &mut self,
        control: &Control,
        waits: &mut usize,
        reached: &mut [bool],
    ) -> Result<(&'static str, Kind), FlowError> {
        Ok(match &control.kind {
            ControlKind::Repeat { count, body } => {
                let body = self.block(body, waits, reached)?;
                ("repeat", Kind::Repeat { count: count.clone(), body })
            }
            ControlKind::ForEach { over, item, index, body } => {
                let body = self.block(body, waits, reached)?;
                (
                    "foreach",
                    Kind::ForEach { over: over.clone(), item: item.clone(), index: index.clone(), body },
                )
            }
            ControlKind::Until { condition, max_rounds, body } => {
                let body = self.block(body, waits, reached)?;
                ("until", Kind::Until { condition: condition.clone(), max_rounds: *max_rounds, body })
            }
            ControlKind::Switch { on, cases, default } => {
                let mut built = Vec::with_capacity(cases.len());
                for (value, body) in cases {
                    built.push(Case { value: value.clone().into(), body: self.block(body, waits, reached)? });
                }
                let default = match default {
                    Some(body) => Some(self.block(body, waits, reached)?),
                    None => None,
                };
                ("switch", Kind::Switch { on: on.clone(), cases: built, default })
            }
        })
    }
}

impl Member {
    /// How it weighs what it waits for; the author's own word wins.
    fn join_policy(&self, any: bool) -> Option<JoinPolicy> {
        self.join.clone().or_else(|| any.then_some(JoinPolicy::AnySuccess))
    }
}

/// A block whose steps follow each other.
struct Sequence {
    builder: BlockBuilder,
    /// How often each name occurs: the builder would try all numbers from the beginning.
    counts: HashMap<String, usize>,
    ends: Ends,
}

/// What the next step waits for.
#[derive(Clone, Default)]
struct Ends {
    slots: Vec<Slot>,
    any: bool,
}

impl Sequence {
    fn add(&mut self, name: &str, kind: Kind, join: Option<JoinPolicy>) {
        let count = self.counts.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let slot = match *count {
            1 => self.builder.add(name, kind),
            number => self.builder.add(&format!("{name}~{number}"), kind),
        };
        for end in &self.ends.slots {
            self.builder.depend(slot, *end);
        }
        if let Some(policy) = join {
            self.builder.join(slot, policy);
        }
        self.ends = Ends { slots: vec![slot], any: false };
    }
}

fn too_complex(message: String) -> FlowError {
    Diagnostic::new("invalid_graph", message).into()
}
