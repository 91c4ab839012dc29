//! The compiler of flows: flow.yaml and its graph text, or a Python flow described as data, into a
//! [`pyoco_core::plan::Plan`].
//!
//! Everything it refuses comes with a place in the document and with what to write instead. It reads no
//! files, imports nothing and runs nothing: a graph is Python in the reference and is only parsed here.
//!
//! ```
//! use pyoco_flow::{Limits, Loaded, parse};
//!
//! let source = b"flow: {graph: 'a >> b'}\ntasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}}\n";
//! let workflow = parse(source, Limits::default())?;
//! let plan = workflow.compile("main", &Loaded::default())?;
//! assert_eq!(plan.tasks.len(), 2);
//! # Ok::<(), pyoco_flow::FlowError>(())
//! ```

mod blueprint;
mod cycle;
mod diagnostic;
mod document;
mod extended;
mod graph;
mod inputs;
pub mod ir;
mod names;
mod native;
mod parameters;
mod program;
mod source;
mod tasks;
mod workflow;
mod yaml;

pub use diagnostic::{Diagnostic, FlowError, Position};
pub use document::{Document, Limits, TaskEntry, validate};
pub use parameters::read_parameters;
pub use tasks::Loaded;
pub use workflow::{Workflow, parse, parse_native};
